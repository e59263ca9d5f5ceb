"""Sizes at which a matrix may be singular whatever the data: all its rows are copies of one, or it is a
product through fewer dimensions than it has.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import Final

from ...ir.language import Affine, Number, Shape, Tensor, Value
from ...ir.program import refs
from ...terms.dims import Term
from ...terms.formula import Formula, all_of, any_of, ge, lt
from .constancy import Made
from .dataless import STRETCHING, Dataless

_ELEMENTWISE: Final = frozenset(
    """
    _conj _conj_physical _to_copy abs acos acosh add addcdiv addcmul alias alias_copy angle asin asinh
    atan atan2 atanh bfloat16 bitwise_and bitwise_not bitwise_or bitwise_xor bool byte cdouble ceil celu
    cfloat chalf char clamp clamp_max clamp_min clone complex conj conj_physical contiguous copy
    copysign cos cosh cpu deg2rad detach digamma div double elu elu_backward eq erf erfc erfinv exp exp2
    expm1 float float_power floor floor_divide fmax fmin fmod frac frexp gcd ge gelu gt half hardshrink
    hardshrink_backward hardsigmoid hardsigmoid_backward hardswish hardswish_backward hardtanh
    hardtanh_backward heaviside hypot i0 igamma igammac imag int isclose isfinite isinf isnan isneginf
    isposinf isreal lcm ldexp le leaky_relu leaky_relu_backward lerp lgamma lift_fresh lift_fresh_copy
    log log10 log1p log2 log_sigmoid_forward logaddexp logaddexp2 logical_and logical_not logical_or
    logical_xor logit logit_backward logsigmoid long lshift lt masked_fill maximum minimum mish mul
    mvlgamma nan_to_num ne neg nextafter polar polygamma positive pow rad2deg rdiv real reciprocal relu
    relu6 remainder resolve_conj resolve_neg rfloordiv round rpow rremainder rshift rsqrt rsub selu sgn
    short sigmoid sigmoid_backward sign signbit silu silu_backward sin sinc sinh softplus
    softplus_backward softshrink softshrink_backward softsign special_airy_ai special_bessel_j0
    special_bessel_j1 special_bessel_y0 special_bessel_y1 special_chebyshev_polynomial_t
    special_chebyshev_polynomial_u special_chebyshev_polynomial_v special_chebyshev_polynomial_w
    special_entr special_erfcx special_hermite_polynomial_h special_hermite_polynomial_he special_i0e
    special_i1 special_i1e special_laguerre_polynomial_l special_legendre_polynomial_p special_log_ndtr
    special_modified_bessel_i0 special_modified_bessel_i1 special_modified_bessel_k0
    special_modified_bessel_k1 special_ndtr special_ndtri special_scaled_modified_bessel_k0
    special_scaled_modified_bessel_k1 special_shifted_chebyshev_polynomial_t
    special_shifted_chebyshev_polynomial_u special_shifted_chebyshev_polynomial_v
    special_shifted_chebyshev_polynomial_w special_spherical_bessel_j0 special_xlog1py special_zeta sqrt
    square sub tan tanh tanh_backward tanhshrink threshold threshold_backward to trunc type where xlogy
    """.split()
)
"""Operators that compute each element from one element of each operand."""
_EACH: Final = _ELEMENTWISE | frozenset(
    "T adjoint getitem mH mT mean narrow norm permute slice sum t transpose unsqueeze".split()
)
"""Those, and others whose rows are alike where those of their operand are. A part of a singular matrix may be
regular; the two cases are not distinguished.
"""
_COPYING: Final = STRETCHING | frozenset("repeat tile repeat_interleave".split())
_PRODUCTS: Final = frozenset("matmul mm bmm".split())
_OUTER: Final = frozenset("outer ger".split())
_SAMPLING: Final = frozenset(
    """
    interpolate upsample_nearest1d upsample_nearest2d upsample_linear1d upsample_bilinear2d upsample_bicubic2d
    _upsample_nearest_exact1d _upsample_nearest_exact2d _upsample_bilinear2d_aa _upsample_bicubic2d_aa
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_max_pool1d adaptive_max_pool2d pad constant_pad_nd
    reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d
    """.split()
)
"""Operators that compute each row from rows of their operand, or fill it with one number: where there are
more rows than before, they depend on each other.
"""
_SHOWING: Final = frozenset(
    """
    getitem unsqueeze transpose t permute mT T expand view reshape roll flip diff narrow select slice
    """.split()
)
_SCALING: Final = frozenset("mul div addcmul addcdiv where".split())
"""Operators that give zeros where one of their operands has such."""
_OVERWRITING: Final = frozenset(
    """
    index_fill index_copy index_put index_add scatter scatter_add scatter_reduce select_scatter slice_scatter
    diagonal_scatter masked_scatter put fill_diagonal index_select gather take take_along_dim
    """.split()
)
"""Operators that may put the same numbers into several rows, or columns."""
_DIFFERENCES: Final = frozenset("sub cdist".split())
"""Operators whose result is singular for some sizes where their operands show one tensor: it is zero on the
diagonal.
"""
_JOINING: Final = frozenset("stack cat concat concatenate".split())
_TRIANGLES: Final[Mapping[str, int]] = {"tril": -1, "triu": 1}
"""For each operator the sign of the diagonals beyond the main one, without which a triangle is singular."""
_DRAWN: Final[Mapping[str, tuple[str, str, int]]] = {
    "uniform": ("from", "to", 0), "random": ("low", "high", 1), "randint": ("low", "high", 1),
    "randint_like": ("low", "high", 1),
}  # fmt: skip
"""Operators that draw from a range: its ends, and how far apart they are where it holds one number alone."""
_CONVOLUTIONS: Final = frozenset("conv1d conv2d conv3d".split())
_CONSTANT: Final = frozenset(
    "zeros ones full zeros_like ones_like full_like new_zeros new_ones new_full".split()
)
_DEEPEST: Final = 16
"""At most this many operators back a matrix is looked at."""


def may_be_singular(program: Dataless, ref: int) -> Formula:
    """Returns sizes at which all data may give a singular matrix, by the reference of the tensor."""
    value = program.value(ref)
    if not isinstance(value, Tensor) or len(value.shape) < 2:
        return False
    return all_of((ge(value.shape[-1], 1), _degenerate(program, ref, _DEEPEST)))


def _degenerate(program: Dataless, ref: int, depth: int) -> Formula:
    value, made = program.value(ref), program.made(ref)
    if isinstance(value, Tensor) and isinstance(value.elements, Affine) and not value.elements.steps:
        return True
    if made is None or depth == 0:
        return False
    operands = [r.id for _, argument in made.node.args for r in refs(argument)]
    parts = [(one, _matrix(program.value(one))) for one in operands]
    if made.op in _CONSTANT or made.op in _OUTER:
        return True
    if made.op == "bernoulli":  # with a chance that is not known, which may be 0
        return type(made.get("p")) is Number
    if made.op in _DRAWN:
        return _of_one_number(made)
    if made.op.removesuffix("_") in _OVERWRITING or (made.op == "getitem" and len(operands) > 1):
        return True
    if made.op in _JOINING:
        parts_of_one = [_shown(program, one) for one in operands if _is_part(program, one)]
        pairs = (*combinations(operands, 2), *combinations(parts_of_one, 2))
        return any(_are_one(program, one, other) for one, other in pairs)
    if made.op in _SCALING and len(operands) > 1 and any(_has_zeros(program, one) for one in operands):
        return True
    if made.op in _TRIANGLES:
        beyond = made.get("diagonal")
        return isinstance(beyond, int) and beyond * _TRIANGLES[made.op] > 0
    if made.op in _CONVOLUTIONS:
        return any_of(_degenerate(program, weight, depth - 1) for weight in operands[1:2])
    if made.op in _SAMPLING:
        before, after = _matrix(program.value(operands[0])), _matrix(value)
        return any_of(lt(n, m) for n, m in zip(reversed(before), reversed(after), strict=False))
    if made.op in _PRODUCTS:
        return _of_product(program, made, operands, depth)
    if made.op == "linear":
        weight = _matrix(program.value(operands[1]))
        return any_of(lt(weight[-1], n) for n in _matrix(value)[-1:])
    if made.op in _DIFFERENCES and len(operands) == 2 and _are_one(
        program, *(_shown(program, one) for one in operands)
    ):
        return True
    if made.op not in _EACH | _COPYING:
        return False
    turned = made.op not in _COPYING and len(operands) == 1
    found = (
        _degenerate(program, one, depth - 1) if turned or shape == _matrix(value) else True
        for one, shape in parts
    )
    return all_of(found) if operands else False


def _of_one_number(made: Made) -> Formula:
    """Returns the sizes at which numbers that are drawn from a range are all the same, as far as is known."""
    first, last, gap = _DRAWN[made.op]
    low, high = made.get(first), made.get(last)
    if high is None:  # `random_(high)`, or the range that is not given
        if low is None or gap == 0:
            return False
        low, high = 0, low
    low = 0 if low is None else low
    if isinstance(low, int | Term) and isinstance(high, int | Term):
        return lt(high - low, gap + 1)
    return high - low <= gap if isinstance(low, int | float) and isinstance(high, int | float) else True


def _of_product(program: Dataless, made: Made, operands: list[int], depth: int) -> Formula:
    """`[n, k] @ [k, n]` has a rank of at most k, and no more than either operand."""
    left = program.value(operands[0])
    if len(operands) != 2 or not isinstance(left, Tensor) or len(left.shape) < 2:
        return False
    short = lt(left.shape[-1], left.shape[-2])
    return any_of((short, *(_degenerate(program, one, depth - 1) for one in operands)))


def _are_one(program: Dataless, one: int, other: int) -> bool:
    """Returns whether two values are one, or results of the same call of the same operands."""
    a, b = program.made(one), program.made(other)
    same = a is not None and b is not None and (a.op, a.node.args, a.place) == (b.op, b.node.args, b.place)
    return one == other or same


_OVERLAPPING: Final = frozenset("getitem narrow slice roll flip diff".split())
"""Operators whose results may have an element of the operand each, at another place."""


def _is_part(program: Dataless, ref: int) -> bool:
    """Returns whether a tensor is a slice of another, which may overlap with others."""
    made = program.made(ref)
    if made is None or made.op not in _OVERLAPPING:
        return False
    index = made.get("index")
    return not isinstance(index, int | Term)


def _has_zeros(program: Dataless, ref: int) -> bool:
    """Returns whether no data decide a tensor, some of whose elements may be 0."""
    value = program.value(ref)
    match value:
        case Tensor(elements=Affine(start, ())):
            return start == 0
        case Tensor(elements=known) if known is not None:
            return True
    return program.made(ref) is not None and program.region(ref) is True


def _shown(program: Dataless, ref: int) -> int:
    """Returns the tensor that a chain of views shows."""
    for _ in range(_DEEPEST):
        made = program.made(ref)
        operands = [r.id for _, argument in made.node.args for r in refs(argument)] if made else []
        if made is None or made.op not in _SHOWING or len(operands) != 1:
            break
        ref = operands[0]
    return ref


def _matrix(value: Value | None) -> Shape:
    return value.shape[-2:] if isinstance(value, Tensor) else ()
