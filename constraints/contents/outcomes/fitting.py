"""Sizes at which no data may give a tensor elements that an operator takes, such as chances from 0 to 1."""

from __future__ import annotations

from typing import Final

from ...ir.language import Tensor
from ...terms.dims import Dim
from ...terms.formula import Formula, negate
from .dataless import STRETCHING, Dataless
from .ranges import End, Ranges, below
from .scattered import COPIES, DEEPEST, JOINING, MOVED, TRANSPOSED, free_numbers, operands_of, scales

_ALWAYS: Final = frozenset("sigmoid softmax _softmax exp exp2 softplus cosh gumbel_softmax".split())
"""Operators whose results are positive, whatever the data."""
_KEEPING: Final = STRETCHING | COPIES | MOVED | TRANSPOSED | frozenset(
    """
    sum mean max min amax amin median cumsum sort topk gather index_select index take sqrt square abs relu
    nan_to_num repeat repeat_interleave tile index_copy
    """.split()
)
"""Operators whose results are positive where their first operand is."""
_COMBINING: Final = JOINING | frozenset("add mul div maximum minimum".split())
"""Operators whose results are positive where all operands are."""


def none_between(program: Dataless, ref: int, low: Dim | None, high: Dim | None, some: bool) -> Formula:
    """Returns whether there may be no data that give a tensor, by its reference, elements between two
    numbers, or where `some`, above 0.
    """
    value = program.value(ref)
    if not isinstance(value, Tensor) or program.region(ref) is True:
        return False  # what no data decide is looked at elsewhere, and so are elements of a known range
    if value.elements is not None and not some:
        return False
    if free_numbers(program, ref) == "all":
        return False
    bounds = Ranges(program).of(ref)
    is_above = low is None or _is_up_to(program, low, bounds.low)
    is_below = high is None or _is_up_to(program, bounds.high, high)
    if is_above and is_below and not some:
        return False
    return high is not None or not _positive(program, ref, DEEPEST)


def _is_up_to(program: Dataless, one: End, other: End) -> bool:
    """Returns whether both ends are known, and one is certainly no greater than the other."""
    known = one is not None and other is not None
    return known and program.is_certain(negate(below(other, one)))


def _positive(program: Dataless, ref: int, depth: int) -> str:
    """Returns whether all elements of a tensor are positive "always", for "some" data, or "" if not known."""
    value, made = program.value(ref), program.made(ref)
    if not isinstance(value, Tensor) or program.is_overwritten(ref):
        return ""
    if made is not None and made.op in _ALWAYS:
        return "always"
    if free_numbers(program, ref, depth) in ("all", "positive"):
        return "some"
    if made is None or depth == 0:
        return ""
    operands = operands_of(made)
    given = [_positive(program, one, depth - 1) for one in operands]
    if made.op in _COMBINING and given and (len(given) > 1 or made.op in JOINING):
        return "" if "" in given or given.count("some") > 1 else min(given, key=("some", "always").index)
    return given[0] if given and (made.op in _KEEPING or scales(program, made)) else ""
