"""Tensors that some data make as great, and others as small, as is asked: all elements at once.

Their elements need not be independent, as those in `scattered.py` are: each result of a convolution is a sum,
which shares terms with its neighbours.
"""

from __future__ import annotations

from itertools import combinations
from math import isfinite
from typing import Final

from ...ir.language import Tensor
from ...terms.formula import ge
from .constancy import Made
from .dataless import RANDOM, SAMPLING, STRETCHING, Dataless
from .scattered import (
    COPIES,
    DEEPEST,
    DRAWN,
    JOINING,
    MOVED,
    TRANSPOSED,
    are_independent,
    bounds,
    fills,
    free_numbers,
    may_be_finite,
    operands_of,
    scales,
)

_PICKING: Final = frozenset(
    """
    getitem index index_select gather take take_along_dim masked_select repeat repeat_interleave tile
    embedding sort topk kthvalue median nanmedian mode max min amax amin cummax cummin quantile nanquantile
    max_pool1d max_pool2d max_pool3d adaptive_max_pool1d adaptive_max_pool2d unfold
    """.split()
)
"""Operators whose first result has some elements of their first operand, or numbers between them."""
_ADDING: Final = frozenset(
    """
    sum nansum mean nanmean cumsum logsumexp logcumsumexp trace avg_pool1d avg_pool2d avg_pool3d
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d interpolate
    """.split()
)
"""Operators whose results are all great where all elements are, and all small where they are small."""
_OF_ALL: Final = frozenset("sum mean".split())
"""Operators that add all elements, unless they are given dims."""
_ALIKE: Final = COPIES | MOVED | TRANSPOSED | STRETCHING | _PICKING | _ADDING
"""Operators whose results are elements of the first operand, or sums and means of them."""
_CONVOLVING: Final = frozenset(
    """
    conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution conv_tbc
    """.split()
)
_WEIGHTED: Final = _CONVOLVING | frozenset(
    """
    linear mm bmm matmul mv dot vdot inner outer addmm baddbmm addmv tensordot einsum bilinear mul div kron
    """.split()
)
"""Operators that multiply elements of one operand with those of others."""
POSITIVE: Final = frozenset("exp exp2 sigmoid softmax _softmax softplus cosh".split())
"""Operators whose results are positive, whatever the data."""
_RISING: Final = frozenset("relu relu6 gelu silu elu selu celu mish leaky_relu tanh hardswish".split())
"""Operators whose results are positive for positive elements."""
_NUMBERS: Final = (1.0, 0.0, -1.0, 2.0, 0.5, -3.0, 7.0, 0.25)
_POSITIVE: Final = (1.0, 2.0, 0.5, 7.0, 0.25)
DRAWN_NUMBERS: Final = {
    **dict.fromkeys(("rand", "rand_like"), (0.25, 0.5)),
    **dict.fromkeys("randn randn_like normal cauchy empty empty_like new_empty".split(), _NUMBERS),
    **dict.fromkeys("exponential log_normal _standard_gamma".split(), _POSITIVE),
    **dict.fromkeys("bernoulli binomial poisson".split(), (0.0, 1.0)),
}
"""For each operator that draws at random some numbers that all of its elements may be."""


def drawn_numbers(made: Made) -> tuple[float, ...]:
    """Returns numbers of which each may be all that an operator draws at random."""
    if made.op not in DRAWN:
        return DRAWN_NUMBERS.get(made.op, ())
    first, last, gap = DRAWN[made.op]
    low, high = made.get(first), made.get(last)
    if made.op != "uniform" and high is None:
        low, high = 0, low
    low, high = 0 if low is None else low, 1 if high is None else high
    if not isinstance(low, int | float) or not isinstance(high, int | float) or high <= low:
        return (low,) if isinstance(low, int) and made.op != "uniform" else ()
    return (low, high - gap) if gap else ((3 * low + high) / 4, (low + high) / 2)


def is_free(program: Dataless, ref: int, depth: int = DEEPEST) -> bool:
    """Returns whether, for any number, some data make all elements of a tensor greater, and some smaller."""
    value, made = program.value(ref), program.made(ref)
    if not isinstance(value, Tensor) or program.is_overwritten(ref) or depth == 0:
        return False
    if program.counted(ref):
        return False
    if not (value.dtype or "").startswith(("float", "bfloat")):
        return False
    if free_numbers(program, ref, depth) == "all":
        return True
    if made is None or made.op in RANDOM | SAMPLING or not (operands := _read_of(made)):
        return False
    if any(isinstance(given, float) and not isfinite(given) for _, given in made.node.args):
        return False
    first, *others = operands

    def free(one: int) -> bool:
        return is_free(program, one, depth - 1)

    if made.op in JOINING:
        return all(map(free, operands)) and _are_apart(program, [*dict.fromkeys(operands)])
    if made.op in ("add", "sub", "rsub"):
        return made.get("alpha") in (None, 1) and _is_free_sum(program, operands, depth - 1)
    if made.op == "diff":
        return free_numbers(program, first, depth - 1) == "all" and not others
    if made.op == "scaled_dot_product_attention":
        is_whole = len(others) == 2 and made.get("dropout_p") in (None, 0)
        return is_whole and free(others[1])
    if made.op in _WEIGHTED and others:
        return _is_free_product(program, made, operands, depth - 1)
    if others and made.op in ("max", "min"):
        return False
    if fills(program, made, value):
        return False
    is_whole = made.place == 0 or made.op in MOVED
    if made.op == "neg" or scales(program, made) or _scales_back(made):
        return free(first)
    if made.op in _OF_ALL and made.get("dim") is None and _is_partly_free(program, first, depth - 1):
        return True
    return made.op in _ALIKE and is_whole and made.get("max_norm") is None and free(first)


def _read_of(made: Made) -> list[int]:
    """Returns the operands of a call, by reference, first the one whose elements it passes on: the table of
    an embedding.
    """
    operands = operands_of(made)
    turned = made.op == "embedding" and operands[:1] == [made.ref("input")]
    return operands[::-1] if turned else operands


def _is_free_sum(program: Dataless, operands: list[int], depth: int) -> bool:
    """Returns whether the sum of tensors is free: one of them is, and the others are finite for some data."""
    if not _are_apart(program, operands):
        return False
    are_free = [is_free(program, one, depth) for one in operands]
    rest = (one for one, free in zip(operands, are_free, strict=True) if not free)
    return any(are_free) and all(may_be_finite(program, one, depth) for one in rest)


def _is_free_product(program: Dataless, made: Made, operands: list[int], depth: int) -> bool:
    """Returns whether sums of products are free: those of a free operand with others that some data make
    positive, where no sum has no product.
    """
    if not _are_apart(program, operands) or not {made.get("alpha"), made.get("beta")} <= {None, 1}:
        return False
    are_free = [is_free(program, one, depth) for one in operands]
    if made.op == "div" and not are_free[0]:
        return False
    if made.op in _CONVOLVING:
        bias = made.ref("bias")
        if bias is not None and are_free[operands.index(bias)]:
            return True
        if _may_miss(made):
            return False
    rest = (one for one, free in zip(operands, are_free, strict=True) if not free)
    return any(are_free) and all(_may_be_positive(program, one, depth) for one in rest)


def _may_miss(made: Made) -> bool:
    """Returns whether some results of a convolution may be of padding alone."""
    if made.get("transposed") or made.op.startswith("conv_transpose"):
        return True
    padding = made.get("padding")
    parts = padding if isinstance(padding, tuple | list) else (padding,)
    return any(part not in (None, 0, "valid") for part in parts)


def _may_be_positive(program: Dataless, ref: int, depth: int) -> bool:
    """Returns whether some data make all elements of a tensor positive, or they are positive constants."""
    made = program.made(ref)
    if free_numbers(program, ref, depth) in ("all", "positive") or is_free(program, ref, depth):
        return True
    if made is not None and depth > 0 and (operands := _read_of(made)):
        value = program.value(ref)
        if made.op in POSITIVE | _RISING:
            return is_free(program, operands[0], depth - 1)
        if made.op in _ALIKE - {"min"} and made.place == 0 and isinstance(value, Tensor):
            return not fills(program, made, value) and _may_be_positive(program, operands[0], depth - 1)
    return any(low > 0 and isfinite(high) for low, high in bounds(program, ref))


def _is_partly_free(program: Dataless, ref: int, depth: int) -> bool:
    """Returns whether the sum of all elements of a tensor is free: some elements are free together, and the
    others are finite and depend on other data.
    """
    value, made, operands = program.value(ref), program.made(ref), []
    if made is not None:
        operands = operands_of(made)
    if program.is_overwritten(ref):
        if not program.keeps_data(ref):
            return False
        if made is None:
            return program.is_given(ref)
        return made.op in COPIES and _is_partly_free(program, operands[0], depth - 1)
    if is_free(program, ref, depth):
        return True
    if made is None or depth == 0 or not operands or not isinstance(value, Tensor):
        return False
    if made.op in JOINING:
        are_free = [_is_partly_free(program, one, depth - 1) for one in operands]
        rest = (one for one, free in zip(operands, are_free, strict=True) if not free)
        are_finite = all(may_be_finite(program, one, depth - 1) for one in rest)
        return any(are_free) and are_finite and _are_apart(program, [*dict.fromkeys(operands)])
    return _widens(program, made, value) and _is_partly_free(program, operands[0], depth - 1)


def _widens(program: Dataless, made: Made, value: Tensor) -> bool:
    """Returns whether a call keeps some elements, whatever the sizes, and puts numbers next to them or in
    the place of the others.
    """
    if made.op in ("tril", "triu"):
        return made.get("diagonal") in (None, 0)
    if made.op not in ("pad", "constant_pad_nd"):
        return fills(program, made, value)
    pad, number = made.get("pad"), made.get("value")
    is_finite = number is None or (isinstance(number, int | float) and isfinite(number))
    widens = isinstance(pad, tuple | list) and all(program.is_certain(ge(part, 0)) for part in pad)
    return is_finite and widens


def _scales_back(made: Made) -> bool:
    """Returns whether a tensor is multiplied with, or divided by, a negative number."""
    number = made.get("other")
    is_scaled = made.op in ("mul", "div") and made.get("rounding_mode") is None
    return is_scaled and isinstance(number, int | float) and number < 0


def _are_apart(program: Dataless, operands: list[int]) -> bool:
    """Returns whether no two of some tensors depend on the same data."""
    return all(are_independent(program, *two) for two in combinations(operands, 2))
