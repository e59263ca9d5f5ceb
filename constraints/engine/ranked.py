"""A spec with inputs of unknown rank, at some ranks: its rows (rows.py) are dims with names, `x_0`, `x_1`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from msgspec import structs

from ..ir.language import Tensor, Value, product
from ..ir.spec import Spec
from ..ir.system import Domain
from ..terms.dims import Dim, sym
from ..terms.formula import Formula, all_of, any_of, conjuncts, free_symbols, ge, negate, rewrite
from ..terms.relations import relations, spelt
from ..terms.rows import belongs, is_relation, row_of

_ABOUT: Final = re.compile(
    r"rank\((?P<rank>\w+)\) | numel\((?P<count>\w+)(?:\[(?P<start>\d*):(?:-(?P<stop>\d+))?\])?\)"
    r" | (?P<dim>\w+)\[(?P<index>-?\d+)\]",
    re.VERBOSE,
)


def of_ranks(spec: Spec, ranks: Mapping[str, int]) -> Spec | None:
    """Returns the spec with each row expanded to that many dims; None where its assumptions exclude that."""
    taken = {*spec.domain.symbols}
    dims: dict[str, tuple[Dim, ...]] = {}
    for row, rank in ranks.items():
        stems = (row + "_" * n for n in range(1, 64))
        stem = next(s for s in stems if not any(name.startswith(s) for name in taken))
        dims[row] = tuple(sym(f"{stem}{i}") for i in range(rank))
    formulas: list[Formula] = [ge(dim, 1) for row in dims.values() for dim in row]
    for assumption in spec.domain.declared:
        formulas.append(_formula_at(assumption, dims))
    together = all_of(formulas)
    if together is False:
        return None
    names = [n for n in spec.domain.symbols if not belongs(n, ranks)]
    names += [str(dim) for row in dims.values() for dim in row]
    inputs = tuple(replace(d, type=_spelt(d.type, dims)) for d in spec.inputs)
    return Spec(inputs, Domain(tuple(names), conjuncts(together)))


def _formula_at(formula: Formula, dims: Mapping[str, tuple[Dim, ...]]) -> Formula:
    """Returns a formula for rows of these dims, in which relations between rows are true or false."""
    spoken = [n for n in free_symbols(formula) if belongs(n, dims) and not is_relation(n)]
    about = {name: _at(name, dims) for name in spoken}
    formula = rewrite(formula, about)
    for related in relations(free_symbols(formula)):
        holds, symbol = spelt(related, dims), str(related)
        holding = all_of((rewrite(formula, {symbol: 1}), holds))
        formula = any_of((holding, all_of((rewrite(formula, {symbol: 0}), negate(holds)))))
    return formula


def _at(symbol: str, dims: Mapping[str, tuple[Dim, ...]]) -> Dim:
    """Returns the value of a symbol about a row. A dim that the row is too short for counts as 1."""
    found = _ABOUT.fullmatch(symbol)
    assert found is not None, symbol
    if found["rank"]:
        return len(dims[found["rank"]])
    if found["count"]:
        row = dims[found["count"]]
        start, stop = int(found["start"] or 0), int(found["stop"] or 0)
        return product(row[start : max(len(row) - stop, start)])
    row, index = dims[found["dim"]], int(found["index"])
    return row[index] if -len(row) <= index < len(row) else 1


def _spelt(value: Value, dims: Mapping[str, tuple[Dim, ...]]) -> Value:
    if isinstance(value, tuple):
        return tuple(_spelt(part, dims) for part in value)
    if not isinstance(value, Tensor):
        return value
    shape: tuple[Dim, ...] = ()
    for dim in value.shape:
        row = row_of(dim)
        shape += (dim,) if row is None else dims[row[0].name]
    return structs.replace(value, shape=shape)
