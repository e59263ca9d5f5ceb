"""The facts of a ShapeEnv, as formulas over its own symbols: ranges, equalities, guards, asserts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import sympy
import torch
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from ...constraints.ir.spec import quoted
from ...constraints.ir.spec_text import SpecError
from ...constraints.terms.formula import Formula, conjuncts, free_symbols
from .terms import formula_of, size_of


def symbols_of(shape_env: ShapeEnv) -> dict[str, sympy.Symbol]:
    """The integers of a ShapeEnv by their names."""
    known = {*shape_env.var_to_range, *shape_env.backed_var_to_val, *shape_env.replacements}
    return {str(symbol): symbol for symbol in known if symbol.is_integer}


def hints_of(shape_env: ShapeEnv) -> dict[str, int]:
    """The sizes that a ShapeEnv was made with."""
    found = shape_env.backed_var_to_val.items()
    return {str(symbol): int(value) for symbol, value in found if isinstance(value, sympy.Integer)}


def known(shape_env: ShapeEnv) -> tuple[Formula, ...]:
    """Returns the known facts about the sizes of a ShapeEnv. Those without an exact formula are left out.

    A symbol that the ShapeEnv has replaced by a term occurs only in the equality that defines it.
    """
    found: dict[Formula, None] = {}
    for expression in _conditions(shape_env):
        formula = formula_of(expression)
        if formula is not None:
            found.update(dict.fromkeys(conjuncts(formula)))
    return (*found,)


def _conditions(shape_env: ShapeEnv) -> Iterator[sympy.Basic]:
    for symbol, term in shape_env.replacements.items():
        yield sympy.Eq(symbol, shape_env.replace(term), evaluate=False)
    for symbol, values in shape_env.var_to_range.items():
        size = shape_env.replace(symbol)
        for end, compare in ((values.lower, sympy.Ge), (values.upper, sympy.Le)):
            if isinstance(end, sympy.Integer):
                yield compare(size, end)
    # Not by `get_axioms`, whose cache does not see a new guard.
    for guard in shape_env.guards:
        yield shape_env.replace(guard.expr)
    for asserts in shape_env.deferred_runtime_asserts.values():
        for stated in asserts:
            yield shape_env.replace(stated.expr)


def assumptions_of(shape_env: ShapeEnv, names: Iterable[str] | None = None) -> tuple[str, ...]:
    """Returns the known facts about the sizes of a ShapeEnv as assumptions for `check`: one text per
    condition.

    `names` are the symbols that the inputs of the check mention. A condition on others is left out, so that
    less is assumed: a program that is proved to run still runs for all sizes that the ShapeEnv allows.
    """
    wanted = None if names is None else frozenset(names)
    return tuple(str(f) for f in known(shape_env) if wanted is None or free_symbols(f) <= wanted)


def inputs_of(values: Mapping[str, Any]) -> tuple[str, ...]:
    """A line of a spec for each input by its name: the sizes of a fake tensor, the value of a `SymInt`.

    Raises SpecError where an input has no counterpart in a spec.
    """
    return tuple(line for name, value in values.items() for line in _lines(name, value))


def _lines(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, part in value.items():
            yield from _lines(f"{name}[{key if isinstance(key, int) else quoted(str(key))}]", part)
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            yield from _lines(f"{name}[{index}]", part)
    elif isinstance(value, torch.Tensor):
        sizes = ", ".join(_size(f"{name}.shape[{i}]", size) for i, size in enumerate(value.shape))
        yield f"{name}: {str(value.dtype).removeprefix('torch.')}[{sizes}]"
    elif isinstance(value, torch.SymInt):
        yield f"{name}: int = {_size(name, value)}"
    elif value is None or type(value) in (bool, int, float):
        yield f"{name}={value}"
    elif isinstance(value, str):
        yield f"{name}={quoted(value)}"
    else:
        raise SpecError(f"{name} is of type {type(value).__name__}", hint="leave it out of the check")


def _size(name: str, value: Any) -> str:
    dim = size_of(value)
    if dim is None:
        raise SpecError(f"{name} is {value}, which cannot be written as a dim")
    return str(dim)
