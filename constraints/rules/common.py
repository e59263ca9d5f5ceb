"""Helpers that the rules of every family share: axes, broadcasting, type promotion."""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ..engine.broadcasting import broadcast as broadcast
from ..engine.broadcasting import broadcast_dim as broadcast_dim
from ..engine.memory import contiguous_strides as contiguous_strides
from ..engine.memory import is_contiguous
from ..engine.memory import strides_of as strides_of
from ..ir.dtypes import CATEGORY as CATEGORY
from ..ir.dtypes import category as category
from ..ir.language import Context, Layout, Number, Shape, Tensor
from ..ir.release import Release
from ..terms.dims import Dim, Term, divide
from ..terms.formula import eq, ge


class _Absent:
    """The default of an argument that only one of two spellings of an operator has, where None is a value."""


ABSENT: Any = _Absent()


def text(shape: Sequence[Dim]) -> str:
    """`[b, 3*h]`"""
    return f"[{', '.join(map(str, shape))}]"


def counted(number: int, noun: str) -> str:
    """Returns a number of things in words: `1 dim`, `2 dims`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def axis(c: Context, dim: Dim, rank: int) -> int:
    """An axis from 0 to rank-1; torch counts negative axes from the end, and takes a scalar for a vector
    here.
    """
    limit = max(rank, 1)
    if isinstance(dim, Term):
        dim = next((i for i in range(-limit, limit) if c.choose(eq(dim, i), f"which dim {dim} is")), limit)
    if not -limit <= dim < limit:
        told = f"dimension {dim} is out of range for a tensor of rank {rank} (-{limit} to {limit - 1})"
        c.refuse(told, IndexError)
    return dim % limit


def axes(c: Context, dims: Dim | Sequence[Dim] | None, rank: int) -> tuple[int, ...]:
    """Returns distinct axes in the order given.

    None and the empty list select all axes, as in torch's reductions.
    """
    if dims is None or dims == ():
        return tuple(range(rank))
    found = tuple(axis(c, d, rank) for d in ((dims,) if isinstance(dims, int | Term) else dims))
    if len(set(found)) != len(found):
        c.refuse(f"a dimension appears twice in {dims}")
    return found


def rank_is(c: Context, tensor: Tensor, name: str, *ranks: int) -> None:
    """Refuses a tensor whose rank is not among those given."""
    if len(tensor.shape) not in ranks:
        wanted = " or ".join(map(str, ranks))
        c.refuse(f"{name} must have rank {wanted}, not {len(tensor.shape)} ({tensor})")


def same_dim(c: Context, a: Dim, b: Dim, reason: str) -> Dim:
    """Requires a == b and returns the simpler of the two."""
    if a is b or a == b:
        return a
    c.require(eq(a, b), reason)
    return b if isinstance(b, int) or (isinstance(a, Term) and len(b.terms) < len(a.terms)) else a


# Type promotion: torch.result_type's two rules. A category (bool < integral < floating < complex) is taken
# from tensors with dims before 0-dim tensors before plain numbers; within a category the widest type wins.
WIDTH = {name: index for index, name in enumerate(CATEGORY)}
REAL_OF = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
COMPLEX_OF = {"bfloat16": "complex64"} | {real: name for name, real in REAL_OF.items()}
DEFAULTS: Final[Mapping[str, tuple[str, str, str, str]]] = {
    floats: ("bool", "int64", floats, complexes) for floats, complexes in COMPLEX_OF.items()
}
"""The dtypes of numbers by their category, for each default dtype."""
COMPLEX_SINCE_2_14 = {**COMPLEX_OF, "bfloat16": "bcomplex32"}
"""The same since torch 2.14, where hardly any kernel takes that dtype."""
UNORDERED = {frozenset(("bfloat16", "float16")): "float32", frozenset(("uint8", "int8")): "int16"}
KINDS: Final = ("bool", "int", "float", "complex")
"""The names of the categories."""
SCALARS = {"bool": 0, "int": 1, "float": 2, "complex": 3}


_ORDERS: Final = "argmax argmin topk sort maximum minimum fmax fmin isposinf isneginf".split()
"""Operators that order numbers, which complex numbers are not."""
_ALONG: Final = ("max along a dim", "min along a dim")
_FLOATING: Final = "imag mean nanmean normalize std renorm dist linalg_lu_solve ldl_solve".split()
_REAL: Final = "nansum rad2deg deg2rad heaviside".split()
_DIFFERENCES: Final = "dist trapezoid cumulative_trapezoid margin_ranking_loss gradient cov".split()
_OF_BOOL: Final = "relu relu6 hardtanh hinge_embedding_loss soft_margin_loss l1_loss poisson_nll_loss".split()
_REFUSES_ITSELF: Final[Mapping[str, Release | None]] = {
    **dict.fromkeys(("neg", "positive", "sub"), (2, 14)),
    **{f"{operation} of bool": (2, 14) for operation in (*_DIFFERENCES, *_OF_BOOL)},
    **dict.fromkeys((*_FLOATING, "the mean of a loss", *_REAL, *_ORDERS, *_ALONG), (2, 15)),
    **dict.fromkeys("frexp multinomial cauchy exponential _weight_int8pack_mm".split()),
    **dict.fromkeys("quantile pdist kl_div cosine_similarity cdist".split()),
    **dict.fromkeys(("soft_margin_loss of int", "mvlgamma of bool", "dropout of bool", "dropout of int")),
    "random between bounds": None,
    "cross_entropy with a target of the input's rank": None,
}
"""Operations that look at the dtype, of all or of one kind, before they look for a kernel, and the release
since which they raise what others raise.
"""
_COMPUTES_FIRST: Final = frozenset({"dist", "dropout", "soft_margin_loss", "the mean of a loss"})
"""Of these the ones before whose look at the dtype a kernel runs that wide unsigned integers do not have."""


def dtype_error(c: Context, operation: str, dtype: str) -> type[Exception]:
    """Returns the type of the exception by which an operation refuses a dtype."""
    of_kind = f"{operation} of {KINDS[category(dtype)]}"
    key = of_kind if of_kind in _REFUSES_ITSELF else operation
    no_kernel = operation in _COMPUTES_FIRST and dtype in ("uint16", "uint32", "uint64")
    if key not in _REFUSES_ITSELF or no_kernel:
        return NotImplementedError
    since = _REFUSES_ITSELF[key]
    if since is None or not c.since(*since):
        return RuntimeError
    orders = category(dtype) == 3 and operation in (*_ORDERS, *_ALONG)
    return TypeError if operation == "imag" or orders else NotImplementedError


def is_floating(dtype: str | None) -> bool:
    """Returns whether the dtype is certainly a real floating type; False for an unknown dtype."""
    return dtype is not None and category(dtype) == 2


def widest(a: str, b: str) -> str:
    """The join of two dtypes in torch's lattice.

    Of one category it is the wider, save for two pairs without an order; of two the higher, and a complex
    dtype is made wide enough for the floating one.
    """
    if a == b:
        return a
    low, high = sorted((a, b), key=category)
    if category(low) == category(high):
        return UNORDERED.get(frozenset((a, b))) or max(a, b, key=lambda d: WIDTH.get(d, 0))
    if category(high) == 3 and category(low) == 2:
        return COMPLEX_OF.get(widest(REAL_OF[high], low), high)
    return high


def promote(
    operands: Iterable[Any], floats: str = "float32", complex_of: Mapping[str, str] = COMPLEX_OF
) -> str | None:
    """Returns the dtype of a pointwise result; None where an operand's dtype is not known. Numbers that are
    floats have the dtype `floats`.
    """
    numbers = DEFAULTS[floats]
    levels: list[str | None] = [None, None, None]  # tensors with dims, 0-dim tensors, numbers
    for operand in operands:
        if isinstance(operand, Tensor):
            if operand.dtype is None:
                return None
            level, dtype = (0 if operand.shape else 1), operand.dtype
        elif isinstance(operand, Number):
            level, dtype = 2, numbers[SCALARS[operand.kind]]
        elif isinstance(operand, bool | int | float | complex):
            level, dtype = 2, numbers[SCALARS[type(operand).__name__]]
        elif isinstance(operand, Term):
            level, dtype = 2, "int64"
        else:
            continue
        held = levels[level]
        levels[level] = dtype if held is None else widest(held, dtype)
    result: str | None = None
    for found in levels:
        if found is None:
            continue
        if result is None or (category(result) < 2 and category(found) > category(result)):
            result = found
        elif category(found) == 3:
            result = complex_of.get(result, result)  # the complex dtype as wide as what comes before
    return result


def channels_last(shape: Shape) -> Shape:
    """`[n, c, *s]` as it lies in memory when its order there is [n, *s, c]."""
    strides = contiguous_strides((shape[0], *shape[2:], shape[1]))
    return strides[0], strides[-1], *strides[1:-1]


def like_input(c: Context, input: Tensor, shape: Shape, batched: bool = True) -> Layout | Shape:
    """The layout of a new tensor in the format that the input suggests (`suggest_memory_format`): the
    channels innermost if the input, which has a batch then, has them there; else contiguous.
    """
    if input.layout is Layout.CONTIGUOUS or strides_of(input) == contiguous_strides(input.shape):
        return Layout.CONTIGUOUS
    if input.rank < 4 or (input.rank > 5 and is_contiguous(input)):
        return Layout.CONTIGUOUS
    if not batched or len(shape) not in (4, 5) or input.rank != len(shape):
        return Layout.UNKNOWN
    innermost = channels_innermost(c, input)
    if innermost is None:
        return Layout.UNKNOWN
    return channels_last(shape) if innermost else Layout.CONTIGUOUS


def channels_innermost(c: Context, input: Tensor) -> bool | None:
    """`is_channels_last_strides`: whether strides rise along the channels, the spatial axes from the last to
    the first, and the batch, each by at least the size of the one before. None where that depends on sizes.

    The stride along an axis of size 1 counts, too. An ambiguous layout, such as a contiguous `[n, 1, 1, 1]`,
    does not count as one with its channels innermost.
    """
    if input.layout is Layout.CONTIGUOUS and c.at_least(input.shape[1], 2):
        return False  # the stride of the last axis, 1, is less than the size of the channels
    strides = strides_of(input)
    if input.layout is Layout.ROW_MAJOR and c.at_least(input.shape[1], 2):
        return False if any(c.at_least(n, 2) for n in input.shape[2:]) else None
    if strides is None:
        return None
    known, least, lone = True, 0, True
    if strides[1] == 0:
        return False
    for axis in (1, *range(input.rank - 1, 1, -1), 0):
        size, stride = input.shape[axis], strides[axis]
        rises = at_least_as_great(c, stride, least)
        if size == 0 or rises is False:
            return False
        known &= c.at_least(size, 1)
        if axis == 0 and least == strides[1]:
            return False
        known &= rises is True and not (axis == 0 and lone)
        least = stride * size
        lone &= not at_least_as_great(c, least, strides[1] + 1)
    return True if known else None


def at_least_as_great(c: Context, a: Dim, b: Dim) -> bool | None:
    """Returns whether a >= b holds for these products of sizes, each at least 1; None where that depends on
    the sizes.
    """
    if c.at_least(a - b, 0):
        return True
    if c.at_least(b - a, 1):
        return False
    for great, small, answer in ((a, b, True), (b, a, False)):
        if small != 0 and isinstance(great, int | Term):
            whole, rest = divide(great, small)
            if rest == 0 and c.at_least(whole, 1 if answer else 2) and c.at_least(small, 1):
                return answer
    return None


def given_or_left_out(c: Context, size: Dim, what: str) -> Dim:
    """Returns the size, or the -1 that a computed size may be, by which a size is left out."""
    if isinstance(size, Term) and not c.at_least(size, 0) and not c.certain(ge(size, 0)):
        return -1 if c.choose(eq(size, -1), f"{what} is left out") else size
    return size
