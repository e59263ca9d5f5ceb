"""Conversion of sizes between torch's form, in sympy, and dims and formulas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

import sympy
import torch

from ...constraints.terms.dims import Atom, Dim, Symbol, coefficients
from ...constraints.terms.formula import And, Compare, Formula, Or, sides
from ...constraints.terms.intervals import Ranges, interval
from ...tracer.host.symbolic_shapes import FloorDiv, Max, Min, Mod, PythonMod
from ...tracer.readers import expressions
from ...tracer.readers.expressions import NotRead


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


class Writer:
    """Writes dims and formulas in torch's own terms."""

    def __init__(self, symbols: Mapping[str, sympy.Symbol], ranges: Ranges | None = None) -> None:
        self.symbols, self.ranges = symbols, ranges or {}

    def formula(self, formula: Formula) -> Any:
        """The condition as sympy has it. Raises NotRead where it has none."""
        match formula:
            case bool():
                return sympy.true if formula else sympy.false
            case And(parts):
                return sympy.And(*map(self.formula, parts))
            case Or(parts):
                return sympy.Or(*map(self.formula, parts))
            case Compare(op, term):
                return _COMPARE[op](*map(self.size, sides(term)))

    def size(self, dim: Dim) -> Any:
        """The dim as sympy has it. Raises NotRead where it has none."""
        return sympy.Add(*(sympy.Mul(c, *map(self._atom, mono)) for mono, c in coefficients(dim)))

    def _atom(self, atom: Atom) -> Any:
        if isinstance(atom, Symbol):
            return self.symbols[atom.name]
        if atom.op not in _APPLY:
            raise NotRead(f"{atom.op} cannot be expressed in torch")
        apply = _APPLY[atom.op]
        if atom.op == "%" and self._natural(*atom.args):
            apply = Mod
        return apply(*map(self.size, atom.args))

    def _natural(self, dividend: Dim, divisor: Dim) -> bool:
        """Returns whether a term is certainly not negative. torch's `Mod` requires that, and torch knows most
        about it.
        """
        return interval(dividend, self.ranges)[0] >= 0 and interval(divisor, self.ranges)[0] >= 1


_COMPARE: Final[Mapping[str, Callable[[Any, Any], Any]]] = {"==": sympy.Eq, "!=": sympy.Ne, ">=": sympy.Ge}
_APPLY: Final[Mapping[str, Callable[..., Any]]] = {
    "//": FloorDiv, "%": PythonMod, "min": Min, "max": Max,
}
