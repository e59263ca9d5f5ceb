"""The sets of integers that formulas over one symbol describe: periodic between finitely many cuts.

`solutions(formula, name)` is exact or None. It needs no search: the terms are polynomials on each residue
class of a period (quasi_polynomials.py), and quotients by terms are eventually constant (settling.py).
"""
from __future__ import annotations

from functools import lru_cache, reduce
from itertools import pairwise
from math import inf, lcm

from ...constraints.terms.dims import Dim, Symbol, Term, evaluate, linear_parts, lone_atom
from ...constraints.terms.formula import And, Compare, Formula, Or, compare, comparisons, holds
from .integer_sets import (
    EVERY,
    MAX_CUTS,
    MAX_PERIOD,
    NONE,
    IntegerSet,
    TooLarge,
    bounded,
    joined,
    of_members,
    repeated,
)
from .quasi_polynomials import degree, differences, period, sign_changes
from .settling import is_partial, settled

MAX_CLASSES = 1 << 7
MAX_WORK = 1 << 14
MAX_DEGREE = 1 << 6
"""The limit for evaluations of a comparison, for polynomials whose roots are computed, and for their degree.
"""


# --- images ------------------------------------------------------------------------------------------------


def image(values: IntegerSet, term: Term, name: str) -> IntegerSet | None:
    """Returns all values that a term over the symbol takes where the symbol takes these values; None where
    this is not decided here.

    On a residue class s = r + L*n of a period L of term and set, a term of degree 1 without min and max is d
    + c*n, so each class of a stretch gives a progression of step c.
    """
    try:
        return _image(values, term, name)
    except (TooLarge, ZeroDivisionError):
        return None


def _image(values: IntegerSet, term: Dim, name: str) -> IntegerSet:
    if isinstance(term, int):
        return of_members([term] if values else [])
    if isinstance(lone_atom(term), Symbol):
        return values
    if (few := values.members(MAX_CLASSES)) is not None:
        return of_members(evaluate(term, {name: value}) for value in few)
    if is_partial(term):
        early, late = _settled(values, term, name)
        found = of_members(evaluate(term, {name: value}) for value in early)
        return reduce(IntegerSet.__or__, (_image(on, there, name) for there, on, _ in late), found)
    modulus = lcm(values.period, period(term))
    classes = sum(mask.bit_count() for mask in values.masks) * (modulus // values.period)
    if classes > MAX_CLASSES or degree(term) > 1 or differences(term):
        raise TooLarge
    found = NONE
    for mask, low, high in values.stretches():
        whole = repeated(mask, values.period, modulus)
        for residue in (r for r in range(modulus) if whole >> r & 1):
            found = found | _progression(term, name, *_class(residue, modulus, low, high), modulus)
    return found


def _class(residue: int, period: int, low: float, high: float) -> tuple[float, float]:
    """Returns the first and the last member of a residue class in a stretch, infinite where the stretch has
    no end.
    """
    first = low if low == -inf else int(low) + (residue - int(low)) % period
    last = high if high == inf else int(high) - (int(high) - residue) % period
    if first == -inf and last == inf:
        raise TooLarge
    return first, last


def _progression(term: Term, name: str, first: float, last: float, period: int) -> IntegerSet:
    """Returns the values of the term at first, first + period, …, last, where one of the ends may be
    infinite.
    """
    if first > last:
        return NONE
    at = int(first) if first != -inf else int(last)
    there = evaluate(term, {name: at})
    step = evaluate(term, {name: at + period}) - there
    if step == 0:
        return IntegerSet(1, (there, there + 1), (0, 1, 0))
    if abs(step) > MAX_PERIOD:
        raise TooLarge
    ends = [first, last] if step > 0 else [last, first]
    low, high = (e if isinstance(e, float) else evaluate(term, {name: int(e)}) for e in ends)
    if step < 0:
        low, high = (-low if isinstance(low, float) else low), (-high if isinstance(high, float) else high)
    return bounded(abs(step), 1 << there % abs(step), low, high)


# --- from formulas to sets ---------------------------------------------------------------------------------


def solutions(formula: Formula, name: str, within: IntegerSet = EVERY) -> IntegerSet | None:
    """Returns the values of the symbol, within the given ones, for which the formula, over no other symbol,
    holds.

    None where this is not decided here, or where the formula divides by 0 within the given values.
    """
    return _kept(formula, name, within if _is_partial(formula) else EVERY)


@lru_cache(maxsize=1 << 14)
def _kept(formula: Formula, name: str, within: IntegerSet) -> IntegerSet | None:
    try:
        return _solutions(formula, name, within)
    except (TooLarge, ZeroDivisionError):
        return None


@lru_cache(maxsize=1 << 14)
def _is_partial(formula: Formula) -> bool:
    return is_partial(*(c.term for c in comparisons(formula)))


@lru_cache(maxsize=1 << 14)
def _solutions(formula: Formula, name: str, within: IntegerSet) -> IntegerSet:
    """Returns the solutions.

    Parts that divide by terms are examined only at values that the other parts leave open.
    """
    match formula:
        case bool():
            return EVERY if formula else NONE
        case And(parts):
            found = EVERY
            for part in sorted(parts, key=_is_partial):
                found = found & _solutions(part, name, found & within if _is_partial(part) else EVERY)
            return found
        case Or(parts):
            found = NONE
            for part in sorted(parts, key=_is_partial):
                found = found | _solutions(part, name, within & ~found if _is_partial(part) else EVERY)
            return found
        case Compare():
            return _where_settled(formula, name, within) if _is_partial(formula) else _compared(formula, name)


def _where_settled(asked: Compare, name: str, within: IntegerSet) -> IntegerSet:
    """Returns the solutions of a comparison that divides by terms.

    Values before its quotients become constant are tried one by one.
    """
    early, late = _settled(within, asked.term, name)
    found = of_members(value for value in early if holds(asked, {name: value}))
    for there, on, (modulus, residue) in late:
        inside = _solutions(compare(asked.op, there), name, on)
        found = found | (inside & on).scaled(modulus, residue)
    return found


def _settled(
    values: IntegerSet, term: Term, name: str
) -> tuple[list[int], list[tuple[Dim, IntegerSet, tuple[int, int]]]]:
    """Returns the values at which a partial term is not yet in its eventual form.

    For all others it returns the term on each residue class m*n + r, with the n, and (m, r).
    """
    if (few := values.members(MAX_CUTS)) is not None:
        return few, []
    if values.min == -inf or values.max != inf:
        raise TooLarge
    found = settled(term, name, values)
    early = (values & bounded(1, 1, -inf, found.start - 1)).members(MAX_CUTS)
    if early is None:
        raise TooLarge
    m = found.modulus
    return early, [
        (there, bounded(1, 1, -((residue - found.start) // m), inf), (m, residue))
        for residue, there in found.terms.items()
    ]


def _compared(asked: Compare, name: str) -> IntegerSet:
    term = asked.term
    linear = linear_parts(term)
    if asked.op == ">=" and linear and len(linear[0]) == 1 and isinstance(linear[0][0][0], Symbol):
        return _half_line(linear[0][0][1], linear[1])
    modulus, most = period(term), degree(term)
    if modulus * (most + 1) > MAX_PERIOD or most > MAX_DEGREE:
        raise TooLarge
    dims = (*differences(term), term)
    if modulus * sum(degree(dim) + 1 for dim in dims) > MAX_WORK:
        raise TooLarge
    cuts: set[int] = set()
    for residue in range(modulus):
        cuts |= {residue + n * modulus for n in sign_changes(dims, name, residue, modulus)}
    ordered = sorted(cuts)
    ends = (-inf, *ordered, inf)
    if sum(min(modulus, high - low) for low, high in pairwise(ends)) > MAX_WORK or len(cuts) > MAX_CUTS:
        raise TooLarge
    masks = []
    for low, high in pairwise(ends):
        start = int(low) if low != -inf else int(high) - modulus if high != inf else 0
        mask = 0
        for s in range(start, start + int(min(modulus, high - start))):
            if holds(asked, {name: s}):
                mask |= 1 << s % modulus
        masks.append(mask)
    return joined(modulus, ordered, masks)


def _half_line(factor: int, constant: int) -> IntegerSet:
    """Returns the solutions of c*s + d >= 0: s >= -d/c rounded up for c > 0, s <= d/-c rounded down for c <
    0.
    """
    if factor > 0:
        return IntegerSet(1, (-(constant // factor),), (0, 1))
    return IntegerSet(1, (constant // -factor + 1,), (1, 0))


