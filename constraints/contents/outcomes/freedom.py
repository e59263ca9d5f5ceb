"""Tensors that some data make as great, and others as small, as is asked: all elements at once.

Their elements need not be independent, as those in `scattered.py` are: each result of a convolution is a sum,
which shares terms with its neighbours.
"""

from __future__ import annotations

from itertools import combinations
from typing import Final

from ...ir.language import Tensor
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
    free_numbers,
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
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d interpolate lp_pool1d trapezoid trapz
    """.split()
)
"""Operators whose results are sums of elements with positive weights."""
_WEIGHTED: Final = frozenset(
    """
    linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution mm bmm matmul
    mv dot vdot inner outer addmm baddbmm addmv tensordot einsum bilinear mul div kron
    """.split()
)
"""Operators that multiply elements of one operand with those of others, which are in general position."""
_WIDENING: Final = frozenset("pad constant_pad_nd tril triu diag diag_embed block_diag".split())
"""Operators that put numbers in the place of some elements, or next to them."""
_SIGNED: Final = frozenset("neg diff".split())
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
    if not (value.dtype or "").startswith(("float", "bfloat")):
        return False
    if free_numbers(program, ref, depth) == "all":
        return True
    if made is None or made.op in RANDOM | SAMPLING or not (operands := operands_of(made)):
        return False
    if made.op == "embedding":
        operands = operands[::-1] if operands[0] == made.ref("input") else operands
    first, *others = operands

    def free(one: int) -> bool:
        return is_free(program, one, depth - 1)

    if made.op in JOINING:
        return all(map(free, operands)) and _are_apart(program, [*dict.fromkeys(operands)])
    if made.op in ("add", "sub", "rsub"):
        return any(map(free, operands)) and _are_apart(program, operands)
    if made.op == "diff":
        return free_numbers(program, first, depth - 1) == "all" and not others
    if made.op == "scaled_dot_product_attention":
        return len(others) > 1 and free(others[1])
    if made.op in _WEIGHTED and others:
        return _are_apart(program, operands) and any(map(free, operands))
    if others and made.op in ("max", "min"):
        return False
    is_whole = made.place == 0 or made.op in MOVED
    if made.op in _SIGNED or scales(program, made) or _scales_back(made):
        return free(first)
    if made.op in _ADDING:
        return is_whole and _is_partly_free(program, first, depth - 1)
    alike = COPIES | MOVED | TRANSPOSED | STRETCHING | _PICKING
    return made.op in alike and is_whole and free(first)


def _is_partly_free(program: Dataless, ref: int, depth: int) -> bool:
    """Returns whether some elements of a tensor are free together, and the others depend on other data."""
    made, operands = program.made(ref), []
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
    if made is None or depth == 0 or not operands:
        return False
    if made.op in JOINING:
        some = any(_is_partly_free(program, one, depth - 1) for one in operands)
        return some and _are_apart(program, [*dict.fromkeys(operands)])
    return made.op in _WIDENING and _is_partly_free(program, operands[0], depth - 1)


def _scales_back(made: Made) -> bool:
    """Returns whether a tensor is multiplied with, or divided by, a negative number."""
    number = made.get("other")
    is_scaled = made.op in ("mul", "div") and made.get("rounding_mode") is None
    return is_scaled and isinstance(number, int | float) and number < 0


def _are_apart(program: Dataless, operands: list[int]) -> bool:
    """Returns whether no two of some tensors depend on the same data."""
    return all(are_independent(program, *two) for two in combinations(operands, 2))
