"""The ranges of the numbers that operators take: probabilities from 0 to 1, tolerances from 0 on.

A number is one that the program writes, a size, a quotient of sizes, or one that the data decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, Final, TypeAlias

from ..ir.language import Context, Number, Quotient, Tensor, Value
from ..terms.dims import Dim, Term
from ..terms.formula import Formula, all_of, any_of, ge, gt, le, lt, negate
from .layout import empty

Limit: TypeAlias = Callable[[Context, Mapping[str, Any]], None]
"""Requires something of the arguments of a call, given by the names of its rule."""

EXACT: Final = 1 << 20
"""A quotient of sizes is rounded to the nearest float, which changes no comparison with a fraction of an
integer and a power of two up to this one.
"""


def less(a: Value, b: Value, *, or_equal: bool = False) -> Formula | None:
    """Returns the condition under which one number is less than another; None where the data decide it, or
    the rounding of floats may. No number is less than nan, nor nan than another.
    """
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a <= b if or_equal else a < b
    for x, least in ((a, -inf), (b, inf)):
        if isinstance(x, float) and not isfinite(x):
            return x == least
    one, two = _fraction(a), _fraction(b)
    if one is None or two is None:
        return None
    floats = [x for x in (a, b) if isinstance(x, float)]
    if Quotient in (type(a), type(b)) and (
        type(a) is type(b) or any(x.as_integer_ratio()[1] > EXACT for x in floats)
    ):
        return None
    (over, under), (other_over, other_under) = one, two
    # Either denominator may be negative, which turns the comparison round.
    below = (le if or_equal else lt)(over * other_under, other_over * under)
    above = (ge if or_equal else gt)(over * other_under, other_over * under)
    product = under * other_under
    return any_of((all_of((gt(product, 0), below)), all_of((lt(product, 0), above))))


def _fraction(number: Value) -> tuple[Dim, Dim] | None:
    match number:
        case bool() | int() | Term():
            return number, 1
        case float():
            return number.as_integer_ratio()
        case Quotient():
            return number.over, number.under
    return None


def equals(number: Value, *others: int) -> Formula | None:
    """Returns the condition under which a number is one of some integers; None where the data decide it."""
    sides = [
        (less(number, n, or_equal=True), less(n, number, or_equal=True)) for n in others
    ]
    known = [all_of((low, high)) for low, high in sides if low is not None and high is not None]
    return any_of(known) if len(known) == len(sides) else None


def unless(condition: Formula | None) -> Formula | None:
    """Returns the negation of a condition of numbers: of nan, no number is less, and none is not less."""
    return None if condition is None else negate(condition)


def branch(c: Context, condition: Formula | None, otherwise: bool, reason: str) -> bool:
    """Returns whether a condition of numbers holds; `otherwise` where the data decide it."""
    return otherwise if condition is None else c.choose(condition, reason)


def lacks_of_nothing(c: Context, order: Value) -> bool:
    """Returns whether the norm of this order has no value for no numbers: negative and infinite ones."""
    negative = order == inf or less(order, 0)
    if negative is None:
        c.approximate("the data decide the order of a norm, which may have no value of no numbers", "accept")
    return branch(c, negative, False, "the norm")


def require_number(
    c: Context, condition: Formula | None, told: str, error: type[Exception] = RuntimeError
) -> None:
    """Requires a condition of numbers; an approximation where it is None."""
    if condition is None:
        c.approximate(f"{told}, which the data decide", "accept")
    elif condition is not True:
        c.require(condition, told, error)


@dataclass(frozen=True, slots=True)
class InRange:
    """Some arguments of an operator lie between two numbers; `above` and `below` where these are not allowed.
    """

    names: str
    low: int | None = None
    high: float | None = None
    above: bool = False
    below: bool = False
    error: type[Exception] = RuntimeError

    def __call__(self, c: Context, named: Mapping[str, Any]) -> None:
        for name in self.names.split():
            value = named.get(name)
            if not isinstance(value, int | float | Term | Number):
                continue
            if self.low is not None:
                told = f"{name} must be {'more than' if self.above else 'at least'} {self.low}, not {value}"
                require_number(c, less(self.low, value, or_equal=not self.above), told, self.error)
            if self.high is not None:
                told = f"{name} must be {'less than' if self.below else 'at most'} {self.high}, not {value}"
                require_number(c, less(value, self.high, or_equal=not self.below), told, self.error)


@dataclass(frozen=True, slots=True)
class Ordered:
    """One argument of an operator is at most another, each with its default; both are `finite` if so said.

    Of two floats that are not known nothing is asked: as a rule one is the negative of the other, as in the
    functions of `torch.nn.init`.
    """

    low: str
    high: str
    defaults: tuple[Any, Any] = (None, None)
    error: type[Exception] = RuntimeError
    finite: bool = False

    def __call__(self, c: Context, named: Mapping[str, Any]) -> None:
        low, high = named.get(self.low, self.defaults[0]), named.get(self.high, self.defaults[1])
        known = [x for x in (low, high) if isinstance(x, int | float | Term | Quotient)]
        if not known or not all(isinstance(x, int | float | Term | Number) for x in (low, high)):
            return
        if self.finite and any(isinstance(x, float) and not -inf < x < inf for x in (low, high)):
            c.refuse(f"{self.low} and {self.high} must be finite, not {low} and {high}", self.error)
        told = f"{self.low} must be at most {self.high}, not {low} and {high}"
        require_number(c, less(low, high, or_equal=True), told, self.error)


def _histogram(c: Context, named: Mapping[str, Any]) -> None:
    """The range of each dimension goes from a number to another that is not less; both are finite."""
    ends = named.get("range")
    for pair in zip(ends[::2], ends[1::2], strict=False) if isinstance(ends, tuple) else ():
        Ordered("min", "max", finite=True)(c, dict(zip(("min", "max"), pair, strict=True)))


def _celu(c: Context, named: Mapping[str, Any]) -> None:
    require_number(c, unless(equals(named.get("alpha", 1.0), 0)), "alpha of celu must not be 0")


def _polygamma(c: Context, named: Mapping[str, Any]) -> None:
    """The order is the first argument of the function and the last one of the method."""
    order = next((v for v in named.values() if not isinstance(v, Tensor)), 0)
    told = f"the order of polygamma must not be negative, but is {order}"
    require_number(c, less(0, order, or_equal=True), told)


def _native_dropout(c: Context, named: Mapping[str, Any]) -> None:
    """Nothing is dropped but in training, and of no elements."""
    nothing = empty(c, named["input"].shape)
    if named.get("train") is not False:
        for side in (less(0, p := named["p"], or_equal=True), less(p, 1, or_equal=True)):
            inside = None if side is None else any_of((nothing, side))
            require_number(c, inside, f"p must be from 0 to 1, not {p}")


def _smooth_l1(c: Context, named: Mapping[str, Any]) -> None:
    """ATen has beta after the reduction, where the Python function has `reduce`."""
    reduce = named.get("reduce")
    of_aten = reduce is not None and not isinstance(reduce, bool)
    InRange("beta", 0)(c, {"beta": reduce if of_aten else named.get("beta")})


_SHARE: Final = InRange("p", 0, 1)
LIMITS: Final[Mapping[str, Iterable[Limit]]] = {
    **dict.fromkeys("bernoulli bernoulli_".split(), (_SHARE,)),
    **dict.fromkeys("isclose allclose".split(), (InRange("rtol atol", 0),)),
    **dict.fromkeys("cdist pdist _cdist_forward".split(), (InRange("p", 0),)),
    **dict.fromkeys("normal normal_ normal_functional prims::normal".split(), (InRange("std", 0),)),
    **dict.fromkeys("quantile nanquantile".split(), (InRange("q", 0, 1),)),
    "cauchy": (InRange("sigma", 0, above=True),),
    "celu": (_celu,),
    "cosine_similarity": (InRange("eps", 0),),
    "exponential": (InRange("lambd", 0, above=True),),
    **dict.fromkeys(
        """fake_quantize_per_tensor_affine fake_quantize_per_tensor_affine_cachemask
        fake_quantize_per_channel_affine fake_quantize_per_channel_affine_cachemask
        _fake_quantize_per_tensor_affine_cachemask_tensor_qparams _fake_quantize_learnable_per_tensor_affine
        _fake_quantize_learnable_per_channel_affine fused_moving_avg_obs_fake_quant
        _fused_moving_avg_obs_fq_helper _fused_moving_avg_obs_fq_helper_functional""".split(),
        (
            Ordered("quant_min", "quant_max"),
            Ordered("quant_min", "zero_point"),
            Ordered("zero_point", "quant_max"),
        ),
    ),
    "geometric": (InRange("p", 0, 1, above=True, below=True),),
    **dict.fromkeys(
        "histogram histogramdd _histogramdd_bin_edges _histogramdd_from_bin_cts".split(), (_histogram,)
    ),
    "histc": (Ordered("min", "max", (0, 0), finite=True),),
    "huber_loss": (InRange("delta", 0, above=True),),
    "log_normal": (InRange("std", 0, above=True),),
    "mvlgamma": (InRange("p", 1),),
    "polygamma": (_polygamma,),
    "prims::uniform": (Ordered("low", "high", (0, 1)),),
    "renorm": (InRange("p", 0, above=True), InRange("maxnorm", 0)),
    "rrelu": (Ordered("lower", "upper", (0.125, 1 / 3), finite=True),),
    "smooth_l1_loss": (_smooth_l1,),
    "native_dropout": (_native_dropout,),
    "softshrink": (InRange("lambd", 0, inf, below=True),),
    "uniform": (Ordered("from", "to", (0, 1), finite=True),),
}
"""The requirements of each operator on its plain numbers, which are stated before its rule is asked. Those on
the elements of its tensors are in `contents/requirements/operands.py`.
"""
