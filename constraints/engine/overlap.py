"""Tables of the operators that check for shared memory before they write, and refuse some overlaps.

Everything here is learnt from torch by calling its operators on tensors that overlap
(`tests/tracer/overlaps.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from ..ir.language import Tensor

Named: TypeAlias = Mapping[str, Any]


class Overlap(Enum):
    """The overlaps that an operator refuses for an operand that lies in the memory that it writes into."""

    PART = "in part"
    """Overlaps with the written tensor, unless the two are the same (`assert_no_partial_overlap`)."""
    ANY = "at all"
    """Any overlap with the written tensor (`assert_no_overlap`)."""
    NOTHING = "nothing"
    UNKNOWN = "unknown"


def _drops(named: Named) -> bool:
    return named.get("train", named.get("training", True)) is True and named.get("p", 0.5) != 0


def _never(named: Named) -> bool:
    return False


LENIENT: Final[Mapping[str, Callable[[Named], bool]]] = {
    **dict.fromkeys(
        """
        zero_ _foreach_zero_ fill_diagonal_ requires_grad_ detach_ addmv_ baddbmm_ masked_fill_ threshold_
        index_fill_ index_put_ _index_put_impl_ tril_ triu_
        """.split(),
        _never,
    ),
    "fill_": lambda named: isinstance(named.get("value"), Tensor),
    "copy_": lambda named: named.get("src") is not named.get("input"),
    "conj_physical_": lambda named: (named["input"].dtype or "complex").startswith("complex"),
    "nan_to_num_": lambda named: (named["input"].dtype or "float").startswith(("float", "complex", "bfloat")),
    **dict.fromkeys("dropout_ feature_dropout_ alpha_dropout_ feature_alpha_dropout_".split(), _drops),
}
"""In-place operators that write into any memory, or do so where this function of their arguments is false."""


def writes_anywhere(op: str, named: Named) -> bool:
    """Returns whether the operator also writes where several elements have one memory location."""
    return op in LENIENT and not LENIENT[op](named)


_POINTWISE = """
    abs acos acosh angle asin asinh atan atanh bitwise_not ceil conj_physical cos cosh cumsum cumprod deg2rad
    digamma erf erfc erfinv exp exp2 expm1 frac floor i0 lgamma log log10 log1p log2 logit logcumsumexp
    nan_to_num neg rad2deg reciprocal renorm round rsqrt sigmoid sign sgn sin sinc sinh sqrt square tan tanh
    trunc add clamp_max clamp_min mul sub atan2 bitwise_left_shift bitwise_right_shift copysign div
    floor_divide fmod remainder bitwise_and bitwise_or bitwise_xor heaviside lcm gcd nextafter igamma igammac
    pow hypot xlogy addcmul addcdiv clamp lerp
""".split()
_COMPARISONS = "eq ne lt le gt ge logical_and logical_or logical_xor logical_not".split()
_ALONE = """
    relu relu6 hardtanh leaky_relu elu celu selu silu hardsigmoid hardswish mish rrelu normal uniform
    exponential cauchy log_normal geometric bernoulli random zero fill mvlgamma tril triu polygamma
""".split()
_Rule: TypeAlias = "Overlap | Mapping[str, Overlap]"
_ANY_OF_OTHERS: Final[_Rule] = MappingProxyType({"input": Overlap.PART, "": Overlap.ANY})

IN_PLACE: Final[Mapping[str, _Rule]] = {
    **dict.fromkeys([f"{op}_" for op in _POINTWISE + _COMPARISONS], Overlap.PART),
    "copy_": Overlap.PART,
    "setitem": Overlap.PART,
    **dict.fromkeys([f"{op}_" for op in _ALONE], Overlap.NOTHING),
    **dict.fromkeys("addmm_ addmv_ addbmm_ baddbmm_ ldexp_ masked_scatter_ set_".split(), Overlap.NOTHING),
    **dict.fromkeys(
        "index_copy_ index_add_ index_reduce_ scatter_ scatter_add_ scatter_reduce_ put_ index_put_".split(),
        Overlap.ANY,
    ),
    "index_fill_": MappingProxyType({"index": Overlap.ANY, "value": Overlap.NOTHING}),
    "masked_fill_": MappingProxyType({"mask": Overlap.PART, "value": Overlap.NOTHING}),
}
"""The overlaps that in-place operators refuse: for all operands, or by the name of the parameter."""

_OF_LISTS: Final[_Rule] = MappingProxyType({"input": Overlap.NOTHING, "": Overlap.UNKNOWN})
"""Operators of lists write into one tensor after the other."""
UNCHECKED: Final = frozenset("sum prod amax amin".split())
"""Reductions write into any `out=`, also one with several elements in one memory location."""

OUT: Final[Mapping[str, _Rule]] = {
    **dict.fromkeys(
        (*_POINTWISE, *"logaddexp logaddexp2 maximum minimum fmax fmin where".split()), Overlap.PART
    ),
    **dict.fromkeys("cat cross".split(), Overlap.ANY),
    **dict.fromkeys("index_copy index_add index_reduce scatter scatter_add".split(), _ANY_OF_OTHERS),
    "gather": MappingProxyType({"input": Overlap.ANY, "index": Overlap.PART}),
    "index_select": Overlap.ANY,
    "take": Overlap.ANY,
    **dict.fromkeys((*UNCHECKED, "mean"), Overlap.NOTHING),
    "sort": Overlap.PART,
}
"""The overlaps that operators refuse for operands in the memory of their `out=`. All of these but the
unchecked refuse an `out=` with several elements in one memory location, unless `sort` has to copy nothing.
"""


PROMOTED: Final = frozenset(
    """
    acos acosh add addcdiv addcmul angle asin asinh atan atan2 atanh bitwise_and bitwise_or bitwise_xor
    copysign cos cosh deg2rad digamma div eq erf erfc erfinv exp exp2 expm1 floor_divide fmax fmin fmod
    gcd ge gt hypot i0 igamma igammac lcm ldexp le lgamma log log10 log1p log2 logaddexp logaddexp2
    logical_and logical_not logical_or logical_xor logit lt maximum minimum mul ne nextafter polygamma
    pow rad2deg reciprocal remainder rsqrt sigmoid sin sinc sinh sqrt square sub tan tanh xlogy
    """.split()
)
"""Operators that put their result into an `out=` of any dtype that it is promoted to."""
CONVERTING: Final = frozenset(
    "sum prod cumsum cumprod bernoulli zeros ones full empty arange linspace logspace eye randint randperm "
    "any all isin".split()
)
"""Operators of which some put a result into an `out=` of a dtype that it is not promoted to."""
ITERATED: Final = frozenset(
    {*_POINTWISE, *"logaddexp logaddexp2 maximum minimum fmax fmin where index_select take".split()}
) - {"cumsum", "cumprod", "logcumsumexp", "renorm"}
"""Operators that check an `out=` before they give it the shape of the result; others do so after."""


def refused(op: str, parameter: str, out: bool) -> Overlap:
    """Returns the overlaps that the operator refuses for the operand of this name."""
    unlisted = _OF_LISTS if op.startswith("_foreach_") and not out else Overlap.UNKNOWN
    rule = (OUT if out else IN_PLACE).get(op, unlisted)
    if isinstance(rule, Overlap):
        return rule
    return rule.get(parameter, rule.get("", Overlap.UNKNOWN))
