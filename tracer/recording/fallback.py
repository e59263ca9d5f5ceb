"""Estimates the result of an operator without a rule: torch itself computes it, on meta tensors at two
examples of the sizes.

A result size that equals one of the operands' sizes at both examples is identified with that size, and one
that is the same at both examples with a constant: likely, not certain, hence `approximate`. Anything else is
Dyn.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import torch
from msgspec import structs

from ...constraints.contents.traits import is_sparse
from ...constraints.ir.language import Dyn, Layout, Note, Tensor, Value
from ...constraints.terms.dims import Dim, evaluate
from ...constraints.terms.formula import free_symbols, holds
from ...constraints.terms.rows import sizes
from ..host.operators import OpOverload
from ..host.tensors import overrides_off
from ..recorder import Recorder
from ..values.numbers import Size
from ..values.real_tensors import value_of
from ..values.symbolic import SymbolicTensor

_PRIMES: Final = (
    2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97,
)  # fmt: skip


def estimated(run: Recorder, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Value:
    """Returns the result of a call whose operator has no rule, marked as approximate; Dyn where it is not
    found.
    """
    if func is None or isinstance(func, OpOverload):
        return Dyn
    terms = {d: None for leaf in leaves((args, kwargs)) for d in _dims_of(leaf)}
    runs = []
    for example in _examples(run):
        try:
            with overrides_off():
                result = func(*_concrete(args, example), **_concrete(kwargs, example))
        except Exception:  # noqa: BLE001 (whatever torch raises at an example tells nothing of other sizes)
            return Dyn
        runs.append((example, result))
    if len(runs) < 2:
        return Dyn
    (first, one), (second, two) = runs
    value: Value = _match(one, two, first, second, list(terms))
    if value is not Dyn:
        notes = run.generator.said.notes
        note = notes.pop()
        reason = f"{note.reason}; torch's own results at two examples are used instead"
        notes.append(Note("approximate", reason, note.node))
    return value


def _examples(run: Recorder) -> Iterator[dict[str, int]]:
    """Yields two assignments that satisfy the known facts, of distinct primes if possible."""
    known = run.known()
    names = sorted({n for f in known for n in free_symbols(f)} | set(run.spec.domain.symbols))
    found = 0
    for start in (3, 4, 5, 6):
        example = {name: _PRIMES[(start * 3 + 2 * i) % len(_PRIMES)] for i, name in enumerate(names)}
        if all(holds(f, example) for f in known):
            yield example
            found += 1
        if found == 2:
            return
    small = run.oracle.example(known) if found == 0 else None
    if small is not None:
        yield {**dict.fromkeys(names, 1), **small}


def leaves(value: Any) -> Iterator[Any]:
    """Yields the arguments of a call, with the members of lists, tuples and dicts among them."""
    if isinstance(value, list | tuple):
        for part in value:
            yield from leaves(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from leaves(part)
    else:
        yield value


def _dims_of(leaf: Any) -> tuple[Dim, ...]:
    if isinstance(leaf, SymbolicTensor):
        return leaf.value.shape if isinstance(leaf.value, Tensor) else ()
    if isinstance(leaf, torch.Tensor):
        return tuple(leaf.shape)
    return (leaf.term,) if type(leaf) is Size else ()


def _concrete(value: Any, example: Mapping[str, int]) -> Any:
    """Returns arguments on the meta device, at an example of the sizes."""
    if isinstance(value, SymbolicTensor):
        if not isinstance(value.value, Tensor) or is_sparse(value.value):
            raise TypeError("an argument of unknown shape, or sparse")
        return torch.empty(sizes(value.value.shape, example), dtype=value.dtype, device="meta")
    if isinstance(value, torch.Tensor):
        if value.layout is not torch.strided:
            raise TypeError("an argument that is sparse")
        return value.to("meta")
    if type(value) is Size:
        return evaluate(value.term, example)
    if isinstance(value, list | tuple):
        return (list if isinstance(value, list) else tuple)(_concrete(v, example) for v in value)
    if isinstance(value, slice):
        return slice(*(_concrete(v, example) for v in (value.start, value.stop, value.step)))
    if isinstance(value, dict):
        return {k: _concrete(v, example) for k, v in value.items()}
    if isinstance(value, torch.device):
        return torch.device("meta")
    return value


def _match(one: Any, two: Any, first: Mapping[str, int], second: Mapping[str, int], terms: list[Dim]) -> Any:
    if isinstance(one, torch.Tensor) and isinstance(two, torch.Tensor) and one.dim() == two.dim():
        if one.layout is not torch.strided:
            return Dyn
        dims: list[Dim] = []
        for a, b in zip(one.shape, two.shape, strict=True):
            same = [t for t in terms if evaluate(t, first) == a and evaluate(t, second) == b]
            if not same and a != b:
                return Dyn
            dims.append(same[0] if same else a)
        return structs.replace(value_of(one), shape=tuple(dims), layout=Layout.UNKNOWN)
    if isinstance(one, list | tuple) and isinstance(two, list | tuple) and len(one) == len(two):
        parts = tuple(_match(a, b, first, second, terms) for a, b in zip(one, two, strict=True))
        return Dyn if any(p is Dyn for p in parts) else parts
    return (
        one if type(one) is type(two) and isinstance(one, int | float | bool | None) and one == two else Dyn
    )
