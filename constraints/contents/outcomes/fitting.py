"""Whether some data give a tensor elements that an operator takes: chances from 0 to 1, finite numbers."""

from __future__ import annotations

from math import isfinite
from typing import Final

from ...ir.language import Tensor
from ...terms.dims import Dim, Term
from ...terms.formula import Formula, ge, negate
from .constancy import Made
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
_PARTIAL: Final = frozenset("sqrt rsqrt log log2 log10 log1p reciprocal pow float_power".split())
"""Operators that give finite numbers for positive ones, and NaN for some others."""
_NARROW: Final = frozenset(
    """
    acos acosh arccos arccosh arcsin arctanh asin atanh digamma erfinv lgamma logit mvlgamma polygamma
    """.split()
)
"""Operators that give NaN or infinity beyond an interval of their own."""
_ROUNDING: Final = frozenset("softmax _softmax sigmoid nan_to_num isnan isfinite".split())
"""Operators that make finite numbers of infinite ones."""
_MOST: Final = 64
"""So many calls back NaN is looked for."""


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
    if one is None or other is None:
        return False
    return program.is_certain(negate(below(other, one)))


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


def never_finite(program: Dataless, ref: int) -> bool:
    """Returns whether a tensor, by its reference, may be made of NaN or infinity whatever the data."""
    seen, stack = {ref}, [ref]
    while stack:
        one = stack.pop()
        value, made = program.value(one), program.made(one)
        if made is None and program.region(one) is True and getattr(value, "elements", None) is None:
            return True  # a constant whose elements are not known
        if made is None or made.op in _ROUNDING:
            continue
        if len(seen) > _MOST or _may_leave_numbers(program, made):
            return True
        new = [operand for operand in operands_of(made) if operand not in seen]
        seen.update(new)
        stack += new
    return False


def _may_leave_numbers(program: Dataless, made: Made) -> bool:
    """Returns whether a call may give NaN or infinity for all finite operands that data can give it."""
    if any(isinstance(given, float) and not isfinite(given) for _, given in made.node.args):
        return True
    first, *others = operands_of(made) or [-1]
    if made.op in _NARROW:
        return free_numbers(program, first) != "all"
    if made.op in _PARTIAL:
        exponent = made.get("exponent")
        is_whole = isinstance(exponent, int | Term) and program.is_certain(ge(exponent, 0))
        return not is_whole and not _is_never_negative(program, first)
    if made.op == "div":
        if others:
            return not _is_never_negative(program, others[0]) and free_numbers(program, others[0]) is None
        return bool(made.get("other") == 0)
    return False


def _is_never_negative(program: Dataless, ref: int) -> bool:
    """Returns whether no element of a tensor is negative, for some data at least."""
    is_above = _is_up_to(program, 0, Ranges(program).of(ref).low)
    return is_above or bool(_positive(program, ref, DEEPEST)) or program.region(ref) is True
