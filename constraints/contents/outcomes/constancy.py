"""Sizes at which an operator gives the same result for all data: the deviation of a single row is NaN, the
softmax of one element is 1, `x - x` and `x * 0` are 0 for all finite data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from ...ir.language import Quotient, Shape, Tensor, Value, product
from ...ir.program import Node, Ref
from ...terms.dims import Dim, Term
from ...terms.formula import Formula, all_of, any_of, eq, le, negate
from ..laws.masks import one_dim, one_value, truths_of


@dataclass(frozen=True, slots=True)
class Made:
    """A result of a call that a program has made: the call, and the place among its results."""

    node: Node
    time: int
    """The number of the call among those of the program."""
    place: int
    values: Mapping[int, Value]
    equal: Callable[[int, int], Formula]
    """Returns sizes at which two values are surely equal."""
    region: Callable[[int], Formula]
    """Returns the sizes at which a value that the call is given depends on no data."""
    ratios: Mapping[str, Quotient]
    """The quotients of sizes among its arguments, which its node leaves out."""

    @property
    def op(self) -> str:
        """Returns the operator; a call in place is one of the operator that it is named after."""
        return self.node.op.rstrip("_") or self.node.op

    def get(self, *names: str) -> Any:
        """Returns the first of these arguments that the call is given, as a value; else None."""
        name = next((name for name in names if self.node.get(name) is not None), "")
        found = self.ratios.get(name, self.node.get(name))
        return self.values.get(found.id) if isinstance(found, Ref) else found

    def ref(self, *names: str) -> int | None:
        """Returns the reference of the first of these arguments that is a tensor; else None."""
        return next((a.id for a in map(self.node.get, names) if isinstance(a, Ref)), None)

    @property
    def shape(self) -> Shape:
        """Returns the shape of the first operand."""
        found = self.get("input")
        return found.shape if isinstance(found, Tensor) else ()

    def size(self, dim: Any) -> Dim:
        """Returns the number of elements along dims of the first operand, along all for None."""
        dims = dim if isinstance(dim, tuple) else (dim,)
        if dims in ((), (None,)) or any(isinstance(d, bool) for d in dims):
            return product(self.shape)
        rank = len(self.shape)
        return product([self.shape[d] for d in dims if isinstance(d, int) and -rank <= d < rank])

    def alike(self) -> Formula:
        """Returns sizes at which both operands are surely equal."""
        one, other = self.ref("input"), self.ref("other", "target", "x2")
        return one is not None and other is not None and self.equal(one, other)


Law: TypeAlias = Callable[[Made], Formula]


class ProgramValues(Protocol):
    """The calls and values of a program, by reference."""

    def made(self, ref: int) -> Made | None: ...

    def value(self, ref: int) -> Value: ...


def _of_few(made: Made) -> Formula:
    """Squares of deviations are divided by their number less a correction, which is to be above 0."""
    dim, correction = made.get("dim"), made.get("correction")
    if correction is None:
        correction = int(made.get("unbiased") is not False and dim is not False)
    if made.place:
        return _of_none(made)
    return isinstance(correction, int | float) and le(made.size(dim), int(correction))


def _of_none(made: Made) -> Formula:
    """A mean of no numbers."""
    return made.get("reduction") in (None, "mean") and eq(made.size(made.get("dim")), 0)


def _covariance(made: Made) -> Formula:
    correction = 1 if made.get("correction") is None else made.get("correction")
    return isinstance(correction, int) and bool(made.shape) and le(made.shape[-1], correction)


def _of_one_column(made: Made) -> Formula:
    if made.op == "corrcoef" and len(made.shape) < 2:
        return True
    return bool(made.shape) and le(made.shape[-1], 1)


def _of_one(made: Made) -> Formula:
    """A share among one, or the area under one point."""
    dim = made.get("dim")
    if dim is None and not made.op.startswith("trap"):
        return False
    return eq(made.size(-1 if dim is None else dim), 1)


def _normalised(made: Made) -> Formula:
    """Numbers less their mean, where each is normalised alone."""
    match made.op:
        case "layer_norm" | "native_layer_norm":
            shape = made.get("normalized_shape")
            return made.place == 0 and isinstance(shape, tuple) and eq(product(shape), 1)
        case "group_norm":
            groups = made.get("num_groups")
            return isinstance(groups, int | Term) and eq(product(made.shape[1:]), groups)
    return eq(product(made.shape[2:]), 1)


def _one_class(made: Made) -> Formula:
    return bool(made.shape) and eq(made.shape[min(1, len(made.shape) - 1)], 1)


def _triangle(made: Made) -> Formula:
    """No entry of a matrix is above all of its columns, or below all of its rows."""
    diagonal, shape = made.get("diagonal"), made.shape
    diagonal = 0 if diagonal is None else diagonal
    if not isinstance(diagonal, int | Term) or len(shape) < 2:
        return False
    return le(shape[-1], diagonal) if made.op.startswith("triu") else le(shape[-2] + diagonal, 0)


def _product(made: Made) -> Formula:
    """Products with zeros."""
    given = (made.get(name) for name in ("input", "other", "mat2", "vec", "vec2", "tensor"))
    zero = any_of(is_number(value, 0) for value in given)
    return any_of((zero, made.op in QUOTIENTS and made.alike()))


def is_number(value: Any, number: int) -> Formula:
    """Returns the sizes at which an operand, or each of its elements, is this number."""
    if isinstance(value, Quotient):
        return eq(value.over, value.under * number)
    found = one_dim(value)
    return found is not None and eq(found, number)


def _power(made: Made) -> Formula:
    return is_number(made.get("exponent"), 0)


def _dropped(made: Made) -> Formula:
    return one_value(made.get("p")) == 1 and made.get("training", "train") is not False


def _filled(made: Made) -> Formula:
    """All elements are replaced by a value."""
    found, value = truths_of(made.get("mask")), made.ref("value")
    where = True if value is None else made.region(value)
    return found is not None and all_of((found.every, where))


def _chosen(made: Made) -> Formula:
    """All elements are those of one operand."""
    found = truths_of(made.get("condition"))
    if found is None:
        return False
    sides = ((name, made.ref(name)) for name in ("input", "other"))
    first, second = (ref is None or made.region(ref) for _, ref in sides)
    return any_of((all_of((found.every, first)), all_of((negate(found.some), second))))


def _clamped(made: Made) -> Formula:
    low, high = made.get("min"), made.get("max")
    return all(isinstance(end, int | float) for end in (low, high)) and low >= high


PRODUCTS: Final = frozenset("mul matmul mm bmm mv dot vdot inner outer ger bitwise_and logical_and".split())
SPREADS: Final = frozenset("std var std_mean var_mean".split())
MEANS: Final = frozenset("mean median nanmean nanmedian l1_loss mse_loss smooth_l1_loss huber_loss".split())
NANS: Final[Mapping[str, Law]] = {
    **dict.fromkeys(SPREADS, _of_few),
    **dict.fromkeys(MEANS, _of_none),
    **dict.fromkeys(("cov", "corrcoef"), _covariance),
}
"""For each operator the sizes at which it makes NaN, whatever the data."""
QUOTIENTS: Final = frozenset("div floor_divide remainder fmod".split())
DIFFERENCES: Final = frozenset(
    "sub rsub bitwise_xor logical_xor l1_loss mse_loss smooth_l1_loss huber_loss dist "
    "pairwise_distance".split()
)
LAWS: Final[Mapping[str, Law]] = {
    **dict.fromkeys(SPREADS, lambda made: not made.place and le(made.size(made.get("dim")), 1)),
    **dict.fromkeys(("cov", "corrcoef"), _of_one_column),
    **dict.fromkeys("softmax _softmax log_softmax _log_softmax softmin trapezoid trapz".split(), _of_one),
    **dict.fromkeys("layer_norm native_layer_norm group_norm instance_norm".split(), _normalised),
    **dict.fromkeys("cross_entropy cross_entropy_loss".split(), _one_class),
    **dict.fromkeys("triu tril".split(), _triangle),
    **dict.fromkeys(DIFFERENCES, Made.alike),
    **dict.fromkeys(PRODUCTS | QUOTIENTS, _product),
    "pow": _power,
    "dropout": _dropped,
    "bernoulli": lambda made: any_of(is_number(made.get("p"), drawn) for drawn in (0, 1)),
    "masked_fill": _filled,
    "where": _chosen,
    "clamp": _clamped,
}
"""For each operator the sizes at which all data give the same result, whatever its operands depend on."""
