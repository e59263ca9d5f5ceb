"""Sizes as torch writes them, in sympy, as dims and formulas, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import sympy
import torch
from torch.utils._sympy import functions as theirs

from ...constraints.dims import Atom, Dim, Symbol, coefficients
from ...constraints.formula import And, Compare, Formula, Or
from ...tracer import expressions
from ...tracer.expressions import NotRead


@lru_cache(maxsize=8192)
def formula_of(expression: sympy.Basic) -> Formula | None:
    """The formula that a condition of torch's states; None where it has no exact counterpart."""
    formula: Formula | None = _read(expressions.formula_of, expression)
    return formula


@lru_cache(maxsize=8192)
def dim_of(expression: sympy.Basic) -> Dim | None:
    """The dim that a size of torch's is; None where it has no exact counterpart."""
    dim: Dim | None = _read(expressions.dim_of, expression)
    return dim


def _read(read: Callable[[str], Any], expression: sympy.Basic) -> Any:
    if not all(symbol.is_integer for symbol in expression.free_symbols):
        return None
    try:
        return read(sympy.srepr(expression))
    except NotRead:
        return None


def size_of(value: int | torch.SymInt | sympy.Expr | str) -> Dim | None:
    """The dim that a size is: an integer, torch's `SymInt`, its expression, or the name of a symbol."""
    if isinstance(value, torch.SymInt):
        value = value.node.expr
    if isinstance(value, str):
        value = sympy.Symbol(value, integer=True)
    return value if isinstance(value, int) else dim_of(value)


Symbols = Mapping[str, sympy.Symbol]


def to_sympy(formula: Formula, symbols: Symbols) -> Any:
    """The condition in torch's own terms. Raises NotRead where it has none."""
    match formula:
        case bool():
            return sympy.true if formula else sympy.false
        case And(parts):
            return sympy.And(*(to_sympy(part, symbols) for part in parts))
        case Or(parts):
            return sympy.Or(*(to_sympy(part, symbols) for part in parts))
        case Compare(op, term):
            left = tuple((mono, c) for mono, c in term.terms if c > 0)
            right = tuple((mono, -c) for mono, c in term.terms if c < 0)
            return _COMPARE[op](_sum(left, symbols), _sum(right, symbols))


def to_sympy_size(dim: Dim, symbols: Symbols) -> Any:
    """The size in torch's own terms. Raises NotRead where it has none."""
    return _sum(coefficients(dim), symbols)


def _sum(terms: tuple[tuple[tuple[Atom, ...], int], ...], symbols: Symbols) -> Any:
    return sympy.Add(*(sympy.Mul(c, *(_atom(atom, symbols) for atom in mono)) for mono, c in terms))


def _atom(atom: Atom, symbols: Symbols) -> Any:
    if isinstance(atom, Symbol):
        return symbols[atom.name]
    if atom.op not in _APPLY:
        raise NotRead(f"{atom.op} has no counterpart in torch")
    return _APPLY[atom.op](*(to_sympy_size(arg, symbols) for arg in atom.args))


def _modulo(dividend: Any, divisor: Any) -> Any:
    """torch's `Mod` is for what is not negative, and what it knows most about."""
    natural = dividend.is_nonnegative and divisor.is_positive
    return (theirs.Mod if natural else theirs.PythonMod)(dividend, divisor)


_COMPARE: Final[Mapping[str, Callable[[Any, Any], Any]]] = {"==": sympy.Eq, "!=": sympy.Ne, ">=": sympy.Ge}
_APPLY: Final[Mapping[str, Callable[..., Any]]] = {
    "//": theirs.FloorDiv, "%": _modulo, "min": theirs.Min, "max": theirs.Max,
}
