"""Changes to the work that torch has sympy do while it traces a model, which some traces need."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import sympy
from torch.fx.experimental.symbolic_shapes import DimConstraints

from ....tracer.host.patches import Patch
from ....tracer.host.symbolic_shapes import refuse_contradictions


@contextlib.contextmanager
def unsolved_constraints() -> Iterator[None]:
    """While this lasts torch skips the constraints on one size that sympy cannot solve.

    torch solves them to see whether a dim would have to be a number, and to suggest other dims. Some of them
    need methods that sympy lacks (`(h + 1)//2 == 16`), in an order of symbols that differs from run to run.
    For others torch takes sympy's answer for an equation of the dim, and fails on it (`n//(n//2) == 2` is an
    equation of 2 to sympy). The requirements of the program are in its guards, which are read whatever torch
    makes of the constraints.
    """


    def make(solve: Callable[..., Any]) -> Callable[..., Any]:
        def solving(self: DimConstraints) -> None:
            refuse_contradictions(self)
            with contextlib.suppress(NotImplementedError, AssertionError, ValueError):
                solve(self)

        return solving

    with Patch(DimConstraints, "solve", make, "sympy cannot solve some constraints").in_force():
        yield


@contextlib.contextmanager
def plain_quotients() -> Iterator[None]:
    """While this lasts torch takes a quotient of sizes as it is once nothing is divided in it any more.

    To write `a // b` without what divides both, torch has sympy simplify a/d and b/d. Dividing cancels d; the
    search for a shorter form of what is left takes minutes where windows have padded the sizes.
    """


    def make(simplify: Callable[..., Any]) -> Callable[..., Any]:
        def simplified(quotient: Any) -> Any:
            return simplify(quotient) if _divides(quotient) else quotient

        return simplified

    with Patch(sympy, "simplify", make, "simplifying takes minutes").in_force():
        yield


def _divides(expression: sympy.Expr) -> bool:
    """Returns whether the expression has a fraction, or a power with a negative exponent, among its factors.
    """
    factors = (f for term in sympy.Add.make_args(expression) for f in sympy.Mul.make_args(term))
    return any((f.is_Rational and f.q != 1) or (f.is_Pow and f.exp.is_negative) for f in factors)
