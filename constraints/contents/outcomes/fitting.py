"""Whether some data give a tensor elements that an operator takes: chances from 0 to 1, finite numbers."""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import partial
from itertools import combinations
from math import ceil, floor, isfinite
from typing import Final

from ...ir.language import Between, Cases, Tensor
from ...terms.dims import Dim, Term
from ...terms.formula import Formula, any_of, ge, negate
from ..elements.dtypes import WHOLE
from .constancy import Made
from .dataless import RANDOM, STRETCHING, Dataless
from .fixed import cases, held
from .ranges import End, Ranges, below
from .scattered import (
    COPIES,
    DEEPEST,
    JOINING,
    MOVED,
    TRANSPOSED,
    are_independent,
    free_numbers,
    operands_of,
    scales,
)

_ALWAYS: Final = frozenset("sigmoid softmax _softmax exp exp2 softplus cosh gumbel_softmax".split())
"""Operators whose results are positive, whatever the data."""
_GROWING: Final = frozenset("abs exp exp2 relu softplus sqrt square cosh".split())
"""Those and others that give great numbers for great ones."""
_KEEPING: Final = STRETCHING | COPIES | MOVED | TRANSPOSED | frozenset(
    """
    sum mean max min amax amin median cumsum sort topk gather index_select index take sqrt square abs relu
    nan_to_num repeat repeat_interleave tile norm vector_norm linalg_vector_norm
    """.split()
)
"""Operators whose results are positive where their first operand is."""
_COMBINING: Final = JOINING | frozenset("add mul div maximum minimum".split())
"""Operators whose results are positive where all operands are."""
_ROOTS: Final = frozenset("sqrt log1p".split())
"""Operators that give finite numbers for those that are not negative, and NaN for some others."""
_PARTIAL: Final = frozenset("rsqrt log log2 log10 reciprocal pow float_power rdiv".split())
"""Operators that give finite numbers for positive ones, and NaN or infinity for some others."""
_NARROW: Final = frozenset(
    """
    acos acosh arccos arccosh arcsin arctanh asin atanh digamma erfinv lgamma logit mvlgamma polygamma
    special_ndtri special_erfinv special_logit special_psi special_digamma special_gammaln special_polygamma
    logdet slogdet
    """.split()
)
"""Operators that give NaN or infinity beyond an interval of their own."""
_LAST: Final = {
    **dict.fromkeys("div remainder fmod floor_divide xlogy xlog1py special_xlogy special_xlog1py".split(), 1),
    "addcdiv": 2,
}
"""Operators that give NaN or infinity for some numbers that are not positive of an operand, by its place."""
_CLEARING: Final = frozenset("nan_to_num isnan isfinite".split())
"""Operators that make finite numbers of NaN."""
_SAMPLES: Final = (0.0, 1.0, 0.5, -1.0, 2.0, -100.0)
"""What all data may be."""
_MOST: Final = 64
"""So many calls back NaN is looked for."""


def none_between(program: Dataless, ref: int, low: Dim | None, high: Dim | None, some: bool) -> Formula:
    """Returns whether there may be no data that give a tensor, by its reference, elements between two
    numbers, or where `some`, above 0.
    """
    value = program.value(ref)
    if not isinstance(value, Tensor) or (value.elements is not None and not some):
        return False  # elements of a known range are looked at elsewhere, and so are known numbers
    is_known = any(not isinstance(number, Between) for _, number in program.fixed(ref))
    if program.region(ref) is True and (not some or is_known):
        return False
    if free_numbers(program, ref) == "all":
        return False
    bounds = Ranges(program).of(ref)
    is_above = low is None or _is_up_to(program, low, bounds.low)
    is_below = high is None or _is_up_to(program, bounds.high, high)
    if (is_above and is_below and not some) or (high is None and _positive(program, ref, DEEPEST)):
        return never_finite(program, ref)
    fits = partial(_lies_between, program, low, 0 if some else None, high)
    return negate(_where_one_number(program, ref, fits))


def no_index_between(program: Dataless, ref: int, low: Dim, high: Dim) -> Formula:
    """Returns whether there may be no data that give indices, by their reference, between two numbers: none
    that are made of floats. Those made of integers of the user's are taken to be valid.
    """
    return _is_of_floats(program, ref) and none_between(program, ref, low, high, False)


def _is_of_floats(program: Dataless, ref: int) -> bool:
    """Returns whether integers are made of floats that data decide."""
    seen, stack = {ref}, [ref]
    while stack and len(seen) < _MOST:
        value = program.value(one := stack.pop())
        if isinstance(value, Tensor) and (value.dtype or "").startswith(("float", "bfloat")):
            return program.region(one) is not True
        new = [source for source in program.sources(one) if source not in seen]
        seen.update(new)
        stack += new
    return False


def _lies_between(
    program: Dataless, low: Dim | None, under: int | None, high: Dim | None, number: float | Between
) -> bool:
    """Returns whether a number lies between two others at all sizes, and above one that is under it."""
    ends = (number.low, number.high) if isinstance(number, Between) else (number, number)
    if not all(map(isfinite, ends)):
        return False
    is_above = low is None or program.is_certain(ge(floor(ends[0]), low))
    is_below = high is None or program.is_certain(ge(high, ceil(ends[1])))
    return is_above and is_below and (under is None or ends[0] > under)


def _where_one_number(program: Dataless, ref: int, fits: Callable[[float | Between], bool]) -> Formula:
    """Returns sizes at which some data give a tensor elements that are all one number that fits. The data are
    all one number themselves.
    """
    return any_of(
        where
        for number in _SAMPLES
        for where, found in _cases_at(program, number, ref, {})
        if found is not None and fits(found)
    )


def _cases_at(program: Dataless, number: float, ref: int, known: dict[int, Cases]) -> Cases:
    """Returns the cases of a value where all data are one number."""
    if ref in known:
        return known[ref]
    value, made = program.value(ref), program.made(ref)
    known[ref] = ()  # also of what is too far back
    if program.is_overwritten(ref) or len(known) > _MOST:
        return ()
    if program.region(ref) is True:
        known[ref] = program.fixed(ref)
    elif made is None and program.is_given(ref):
        known[ref] = held([(True, number)], value)
    elif made is not None and made.op not in RANDOM:
        known[ref] = cases(made, value, partial(_cases_at, program, number, known=known))
    return known[ref]


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
    if value.dtype in WHOLE and made.op in COPIES and not _is_unbounded(program, operands[0], depth - 1):
        return ""  # the numbers may all be rounded to 0
    number = made.get("other")
    if made.op == "add" and len(operands) == 1 and isinstance(number, int | float) and number >= 0:
        return _positive(program, operands[0], depth - 1)
    given = [_positive(program, one, depth - 1) for one in operands]
    if made.op in _COMBINING and given and (len(given) > 1 or made.op in JOINING):
        return "" if "" in given or given.count("some") > 1 else min(given, key=("some", "always").index)
    return given[0] if given and (made.op in _KEEPING or scales(program, made)) else ""


def _is_unbounded(program: Dataless, ref: int, depth: int) -> bool:
    """Returns whether all elements of a tensor are as great as is asked, for some data."""
    value, made = program.value(ref), program.made(ref)
    if made is not None and made.op in _GROWING and isinstance(value, Tensor):
        return any(free_numbers(program, one, depth) == "all" for one in operands_of(made))
    return free_numbers(program, ref, depth) == "all" or getattr(value, "dtype", None) in WHOLE


def never_finite(program: Dataless, ref: int) -> Formula:
    """Returns sizes at which a tensor, by its reference, may be made of NaN or infinity whatever the data."""
    return may_leave_numbers(program, ref) and negate(_where_one_number(program, ref, _is_finite))


def _is_finite(number: float | Between) -> bool:
    return isinstance(number, Between) or isfinite(number)


def may_leave_numbers(program: Dataless, ref: int, clearing: Container[str] = _CLEARING) -> bool:
    """Returns whether a call that a tensor is made by may give NaN or infinity whatever the data, unless the
    operators that are `clearing` make numbers of them.
    """
    seen, stack = {ref}, [ref]
    suited: list[int] = []
    while stack:
        one = stack.pop()
        value, made = program.value(one), program.made(one)
        if program.may_hold_nan(one):
            return True
        if made is None:
            if not program.is_finite(one) and getattr(value, "dtype", None) not in WHOLE:
                return True
            continue
        if made.op in clearing:
            continue
        operands = operands_of(made)
        asked = _asked_for_numbers(program, made, operands)
        if len(seen) > _MOST or asked is None:
            return True
        suited += asked
        new = [operand for operand in operands if operand not in seen]
        seen.update(new)
        stack += new
    return not all(are_independent(program, *two) for two in combinations(dict.fromkeys(suited), 2))


def _asked_for_numbers(program: Dataless, made: Made, operands: list[int]) -> tuple[int, ...] | None:
    """Returns the operands that some data, not all, make such that a call gives finite numbers; None where
    perhaps no data do.
    """
    if any(isinstance(given, float) and not isfinite(given) for _, given in made.node.args):
        return None
    if not operands:
        return ()
    first = operands[0]
    if made.op in _NARROW:
        return (first,) if free_numbers(program, first) == "all" else None
    if made.op in _ROOTS and _is_up_to(program, 0, Ranges(program).of(first).low):
        return ()
    if made.op in _PARTIAL | _ROOTS:
        exponent = made.get("exponent")
        is_whole = isinstance(exponent, int | Term) and program.is_certain(ge(exponent, 0))
        return () if is_whole else _if_positive(program, first)
    if made.op in _LAST:
        if len(operands) > _LAST[made.op]:
            last = operands[_LAST[made.op]]
            divides = "xlog" not in made.op and free_numbers(program, last) == "some"
            return (last,) if divides else _if_positive(program, last)
        return None if made.get("other") == 0 else ()
    return ()


def _if_positive(program: Dataless, ref: int) -> tuple[int, ...] | None:
    """Returns the tensor if its elements are positive for some data, nothing if they are for all; else None.
    What no data decide may be positive.
    """
    positive = _positive(program, ref, DEEPEST)
    if positive == "always" or program.region(ref) is True:
        return ()
    return (ref,) if positive else None
