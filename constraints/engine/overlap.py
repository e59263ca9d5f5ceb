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
    SOME = "in part, for some arguments"
    """As PART, or nothing: numbers among the arguments decide whether the operand is copied first."""
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
_ITERATORS: Final = """
    logaddexp logaddexp2 maximum minimum fmax fmin where isneginf isposinf signbit bernoulli gelu hardshrink
    softplus softshrink polygamma frexp special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0
    special_bessel_y1 special_entr special_erfcx special_i0e special_i1 special_i1e special_log_ndtr
    special_modified_bessel_i0 special_modified_bessel_i1 special_modified_bessel_k0 special_ndtri
    special_modified_bessel_k1 special_scaled_modified_bessel_k0 special_scaled_modified_bessel_k1
    special_spherical_bessel_j0 special_xlog1py special_zeta
""".split()
UNCHECKED: Final = frozenset(
    "sum prod amax amin bmm mv all any argmax argmin histc cummax cummin tril triu linalg_matrix_rank".split()
)
"""Operators that write into any `out=`, also one with several elements in one memory location."""
_SOME_APART: Final = frozenset(
    "sort mm matmul norm std var linalg_norm linalg_matrix_norm linalg_multi_dot linalg_lu lu_unpack".split()
)
"""Operators that write into such an `out=` for some operands."""
_WITHOUT_CHECK: Final = """
    mean mm matmul tensordot softmax log_softmax logsumexp std var norm cholesky cholesky_inverse
    cholesky_solve geqrf ormqr qr lu_unpack bucketize avg_pool2d logsigmoid special_ndtr inverse det
    linalg_cholesky linalg_cholesky_ex linalg_inv_ex linalg_householder_product linalg_ldl_factor
    linalg_ldl_factor_ex linalg_ldl_solve linalg_lu_factor linalg_lu_factor_ex linalg_lu linalg_lstsq
    linalg_qr linalg_eig linalg_eigh linalg_eigvals linalg_solve linalg_solve_ex linalg_svdvals
    linalg_slogdet linalg_pinv linalg_tensorinv linalg_tensorsolve linalg_multi_dot linalg_matrix_norm
    linalg_norm
""".split()
_ADDING: Final[_Rule] = MappingProxyType({"input": Overlap.SOME, "": Overlap.NOTHING})

OUT: Final[Mapping[str, _Rule]] = {
    **dict.fromkeys((*_POINTWISE, *_COMPARISONS, *_ITERATORS), Overlap.PART),
    **dict.fromkeys("sort msort topk mode aminmax max min".split(), Overlap.PART),
    **dict.fromkeys("cat stack cross linalg_cross kthvalue masked_select nonzero".split(), Overlap.ANY),
    **dict.fromkeys(
        "index_copy index_add index_reduce scatter scatter_add scatter_reduce".split(), _ANY_OF_OTHERS
    ),
    **dict.fromkeys("addmm addmv addbmm baddbmm".split(), _ADDING),
    **dict.fromkeys("linalg_lu_solve linalg_solve_triangular".split(), Overlap.SOME),
    "ldexp": MappingProxyType({"input": Overlap.PART, "": Overlap.NOTHING}),
    "gather": MappingProxyType({"input": Overlap.ANY, "index": Overlap.PART}),
    "index_select": Overlap.ANY,
    "take": Overlap.ANY,
    **dict.fromkeys((*UNCHECKED, *_WITHOUT_CHECK), Overlap.NOTHING),
}
"""The overlaps that operators refuse for operands in the memory of their `out=`."""
APART: Final = OUT.keys() - UNCHECKED - _SOME_APART
"""Operators that refuse an `out=` with several elements in one memory location."""
FIRST_ONLY: Final = frozenset({"sort", "kthvalue"})
"""Operators that check no `out=` but the first of several for overlaps."""


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
"""Operators that may put a result into an `out=` of a dtype to which the result is not promoted."""
ITERATED: Final = frozenset(
    {*_POINTWISE, *_COMPARISONS, *_ITERATORS, "index_select", "take"}
    - {"cumsum", "cumprod", "logcumsumexp", "renorm"}
)
"""Operators that check an `out=` before they give it the shape of the result; others do so after."""
SHAPED_FIRST: Final = ITERATED | {"dot", "vdot"}
"""Operators that refuse an operand as an `out=` of another shape than that of the result."""


_NUMBERS: Final = frozenset("alpha beta dim nan posinf neginf diagonal decimals".split())
"""Parameters that torch reads a number from, which an element of a tensor may be, too."""
_SCALED: Final = frozenset("addcmul addcmul_ addcdiv addcdiv_".split())
"""Operators whose `value` is such a number."""
_OF_TWO: Final = frozenset("max min".split())
"""Operators that take a second tensor under the name `dim`."""


def refused(op: str, parameter: str, out: bool, place: int = 0) -> Overlap:
    """Returns the overlaps that the operator refuses for the operand of this name, and the `out=` at this
    place among several.
    """
    if place and op in FIRST_ONLY:
        return Overlap.NOTHING
    is_number = op in _SCALED if parameter == "value" else parameter in _NUMBERS
    if is_number and not (parameter == "dim" and op in _OF_TWO):
        return Overlap.NOTHING
    unlisted = _OF_LISTS if op.startswith("_foreach_") and not out else Overlap.UNKNOWN
    rule = (OUT if out else IN_PLACE).get(op, unlisted)
    if isinstance(rule, Overlap):
        return rule
    return rule.get(parameter, rule.get("", Overlap.UNKNOWN))
