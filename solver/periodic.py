"""Sets of integers as formulas over one symbol describe them: periodic between finitely many cuts.

`solutions(formula, name)` is exact or None. It needs no search: a term over one symbol, of symbols,
`//` and `%` by integers, is a polynomial on each residue class of a period, so its sign changes at
finitely many places.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache, reduce
from itertools import combinations, pairwise
from math import gcd, inf, lcm

from msgspec import Struct

from ..constraints.dims import (
    Apply,
    Dim,
    Symbol,
    Term,
    applications,
    coefficients,
    evaluate,
    linear_parts,
    lone_atom,
)
from ..constraints.formula import And, Compare, Formula, Or, holds

MAX_PERIOD = 1 << 12
MAX_CUTS = 1 << 12
MAX_CLASSES = 1 << 7
MAX_WORK = 1 << 14
MAX_DEGREE = 1 << 6
"""Evaluations of a comparison, polynomials whose roots are looked for, and their degree, beyond which it is
not looked at here.
"""


class IntegerSet(Struct, frozen=True):
    """The integers s for which bit `s % period` of a mask is set; between two cuts one mask holds.

    `masks[i]` is about `cuts[i-1] <= s < cuts[i]`, with infinities at both ends.
    """

    period: int
    cuts: tuple[int, ...]
    masks: tuple[int, ...]

    def __contains__(self, value: int) -> bool:
        index = sum(cut <= value for cut in self.cuts)
        return bool(self.masks[index] >> value % self.period & 1)

    def __bool__(self) -> bool:
        return self.min != inf

    def __and__(self, other: IntegerSet) -> IntegerSet:
        return _common(self, other)

    def __or__(self, other: IntegerSet) -> IntegerSet:
        return self._combine(other, int.__or__)

    def __invert__(self) -> IntegerSet:
        full = (1 << self.period) - 1
        return IntegerSet(self.period, self.cuts, tuple(mask ^ full for mask in self.masks))

    def __le__(self, other: IntegerSet) -> bool:
        return not self & ~other

    def lies_in(self, other: IntegerSet) -> bool | None:
        """Are all members in the other set? None where some are and some are not; yes if there are none."""
        both = self & other
        return True if both == self else None if both else False

    def _combine(self, other: IntegerSet, join: Callable[[int, int], int]) -> IntegerSet:
        period = lcm(self.period, other.period)
        cuts = sorted({*self.cuts, *other.cuts})
        if period > MAX_PERIOD or len(cuts) > MAX_CUTS:
            raise TooLarge
        masks: list[int] = []
        i = j = 0
        for low in (None, *cuts):
            i += i < len(self.cuts) and self.cuts[i] == low
            j += j < len(other.cuts) and other.cuts[j] == low
            one = _repeat(self.masks[i], self.period, period)
            masks.append(join(one, _repeat(other.masks[j], other.period, period)))
        return _normal(period, cuts, masks)

    def _stretches(self) -> Iterator[tuple[int, float, float]]:
        """`(mask, low, high)` for each stretch, both ends included."""
        ends = (-inf, *self.cuts, inf)
        for mask, (low, high) in zip(self.masks, pairwise(ends), strict=True):
            yield mask, low, high - 1

    def _first(self, mask: int, low: float, high: float) -> int | None:
        """The least member of a stretch from `low` on; some member where `low` is minus infinity."""
        if not mask or low > high:
            return None
        if low == -inf:
            return self._last(mask, low, high)
        at = int(low) % self.period
        turned = (mask >> at) | (mask & ((1 << at) - 1)) << (self.period - at)
        found = int(low) + (turned & -turned).bit_length() - 1
        return found if found <= high else None

    def _last(self, mask: int, low: float, high: float) -> int | None:
        """The greatest member of a stretch up to `high`; some member where `high` is infinity."""
        if not mask or low > high:
            return None
        if high == inf:
            return self._first(mask, 0 if low == -inf else low, high)
        at = (int(high) + 1) % self.period
        turned = (mask >> at) | (mask & ((1 << at) - 1)) << (self.period - at)
        found = int(high) - (self.period - turned.bit_length())
        return found if found >= low else None

    def at_least(self, value: int) -> int | None:
        """The least member that is not below the value."""
        for mask, low, high in self._stretches():
            if high >= value and (found := self._first(mask, max(low, value), high)) is not None:
                return found
        return None

    def at_most(self, value: int) -> int | None:
        """The greatest member that is not above the value."""
        for mask, low, high in reversed([*self._stretches()]):
            if low <= value and (found := self._last(mask, low, min(high, value))) is not None:
                return found
        return None

    @property
    def min(self) -> int | float:
        """The least member; minus infinity where there is none, infinity of the empty set."""
        return _ends(self)[0]

    @property
    def max(self) -> int | float:
        """The greatest member; infinity where there is none, minus infinity of the empty set."""
        return _ends(self)[1]

    def congruence(self) -> tuple[int, int]:
        """`(m, r)` with the greatest m such that every member is r modulo m, 0 <= r < m; (0, r) if r is
        the only one.
        """
        found = _congruence(self)
        assert found is not None, "the empty set has no congruence"
        return found

    def _least(self) -> int | float:
        for mask, low, high in self._stretches():
            if (found := self._first(mask, low, high)) is not None:
                return -inf if low == -inf else found
        return inf

    def _greatest(self) -> int | float:
        for mask, low, high in reversed([*self._stretches()]):
            if (found := self._last(mask, low, high)) is not None:
                return inf if high == inf else found
        return -inf

    def _residue(self) -> tuple[int, int] | None:
        step, base = 0, None
        for mask, low, high in self._stretches():
            for residue in range(self.period):
                if not mask >> residue & 1:
                    continue
                first = self._first(1 << residue, low, high)
                if first is None:
                    continue
                base = first if base is None else base
                step = gcd(step, first - base)
                if first + self.period <= high or first - self.period >= low:
                    step = gcd(step, self.period)
        return None if base is None else (step, base % step if step else base)

    def runs(self, limit: int) -> tuple[tuple[int | None, int | None], ...] | None:
        """The set as intervals, None standing for no bound; None instead where there are more than the limit.

        Members count as neighbours when they differ by the modulus of `congruence`.
        """
        step = self.congruence()[0] or 1
        found: list[tuple[int | None, int | None]] = []
        try:
            for mask, low, high in self._stretches():
                for start, end in self._pieces(mask, low, high, step):
                    if found and start is not None and found[-1][1] == start - step:
                        start = found.pop()[0]
                    found.append((start, end))
                    if len(found) > limit:
                        return None
        except TooLarge:
            return None
        return tuple(found)

    def members(self, limit: int) -> list[int] | None:
        """All members in order, if there are no more than the limit."""
        found: list[int] = []
        if not self:
            return found
        if inf in (-self.min, self.max):
            return None
        at = self.at_least(int(self.min))
        while at is not None and len(found) <= limit:
            found.append(at)
            at = self.at_least(at + 1)
        return found if len(found) <= limit else None

    def residues(self, limit: int) -> tuple[int, tuple[int, ...]] | None:
        """`(m, rs)`: the members are all integers from the least to the greatest that are one of rs modulo m,
        some of those and not all. None where that is not so, or takes more than the limit of residues, or
        of residues left out.
        """
        for mask in dict.fromkeys(self.masks):
            count = mask.bit_count()
            regular = _bounded(self.period, mask, self.min, self.max)
            if 0 < min(count, self.period - count) <= limit and regular <= self and self <= regular:
                return self.period, tuple(r for r in range(self.period) if mask >> r & 1)
        return None

    def _pieces(
        self, mask: int, low: float, high: float, step: int
    ) -> Iterator[tuple[int | None, int | None]]:
        """The intervals of a stretch, None where it is unbounded. Endlessly many are TooLarge."""
        if mask.bit_count() * step == self.period:
            first, last = self._first(mask, low, high), self._last(mask, low, high)
            if first is not None:
                yield None if low == -inf else first, None if high == inf else last
            return
        if mask and inf in (-low, high):
            raise TooLarge
        start = self._first(mask, low, high)
        while start is not None:
            end = start
            while end + step <= high and mask >> (end + step) % self.period & 1:
                end += step
            yield start, end
            start = self._first(mask, end + 1, high)


class TooLarge(Exception):
    """A set with a period or a number of cuts beyond what is looked at here."""


EVERY = IntegerSet(1, (), (1,))
NONE = IntegerSet(1, (), (0,))


@lru_cache(maxsize=1 << 12)
def _ends(values: IntegerSet) -> tuple[int | float, int | float]:
    return values._least(), values._greatest()


@lru_cache(maxsize=1 << 12)
def _congruence(values: IntegerSet) -> tuple[int, int] | None:
    return values._residue()


@lru_cache(maxsize=1 << 12)
def _common(one: IntegerSet, other: IntegerSet) -> IntegerSet:
    """The members of both: programs ask of the same few sets again and again."""
    return one._combine(other, int.__and__)


def _bounded(period: int, mask: int, low: float, high: float) -> IntegerSet:
    """The integers from low to high, either perhaps infinite, whose residues are in the mask."""
    cuts = [*([] if low == -inf else [int(low)]), *([] if high == inf else [int(high) + 1])]
    return _normal(period, cuts, [*([] if low == -inf else [0]), mask, *([] if high == inf else [0])])


def _repeat(mask: int, period: int, longer: int) -> int:
    """The mask over a multiple of its period."""
    return mask * (((1 << longer) - 1) // ((1 << period) - 1))


def _normal(period: int, cuts: list[int], masks: list[int]) -> IntegerSet:
    """Neighbouring stretches joined where one mask serves both, and the least period that still tells
    them apart.

    A stretch shorter than the period says nothing of the residues that do not occur in it, so those
    bits are free.
    """
    full = (1 << period) - 1
    kept: list[int] = []
    said: list[tuple[int, int]] = []  # mask, and the residues it speaks of
    ends = (-inf, *cuts, inf)
    for mask, (low, high) in zip(masks, pairwise(ends), strict=True):
        cares = full
        if high - low < period:
            cares = sum(1 << s % period for s in range(int(low), int(high)))
        if said and not (said[-1][0] ^ mask) & said[-1][1] & cares:
            old, spoken = said[-1]
            said[-1] = (old & spoken) | (mask & cares), spoken | cares
        else:
            if said:
                kept.append(int(low))
            said.append((mask & cares, cares))
    for prime in _primes(period):
        while period % prime == 0:
            folded = [_fold(mask, cares, period, period // prime) for mask, cares in said]
            if any(f is None for f in folded):
                break
            said = [f for f in folded if f is not None]
            period //= prime
    return IntegerSet(period, tuple(kept), tuple(mask for mask, _ in said))


def _fold(mask: int, cares: int, period: int, shorter: int) -> tuple[int, int] | None:
    """The mask over a divisor of its period, if it says one thing of each residue."""
    part = (1 << shorter) - 1
    yes = no = 0
    for at in range(0, period, shorter):
        yes |= (mask & cares) >> at & part
        no |= (~mask & cares) >> at & part
    return None if yes & no else (yes, yes | no)


def _primes(number: int) -> list[int]:
    found, p = [], 2
    while number > 1:
        if number % p == 0:
            found.append(p)
            while number % p == 0:
                number //= p
        p += 1
    return found


# --- images ------------------------------------------------------------------------------------------------


def image(values: IntegerSet, term: Term, name: str) -> IntegerSet | None:
    """All values that a term over the symbol takes where the symbol takes these values. None: not mine.

    On a residue class s = r + L*n of a period L of term and set, a term of degree 1 without min and max is
    d + c*n, so each class of a stretch gives a progression of step c.
    """
    try:
        if isinstance(lone_atom(term), Symbol):
            return values
        if (few := values.members(MAX_CLASSES)) is not None:
            taken = {evaluate(term, {name: value}) for value in few}
            return reduce(IntegerSet.__or__, (_bounded(1, 1, value, value) for value in taken), NONE)
        period = lcm(values.period, _period(term, 1))
        classes = sum(mask.bit_count() for mask in values.masks) * (period // values.period)
        if classes > MAX_CLASSES or _degree(term) > 1 or _differences(term):
            return None
        found = NONE
        for mask, low, high in values._stretches():
            whole = _repeat(mask, values.period, period)
            for residue in (r for r in range(period) if whole >> r & 1):
                found = found | _progression(term, name, *_class(residue, period, low, high), period)
    except TooLarge:
        return None
    return found


def _class(residue: int, period: int, low: float, high: float) -> tuple[float, float]:
    """The first and the last member of a residue class in a stretch, infinities where there is none."""
    first = low if low == -inf else int(low) + (residue - int(low)) % period
    last = high if high == inf else int(high) - (int(high) - residue) % period
    if first == -inf and last == inf:
        raise TooLarge
    return first, last


def _progression(term: Term, name: str, first: float, last: float, period: int) -> IntegerSet:
    """The values of the term at first, first + period, …, last, one of which may be infinite."""
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
    return _bounded(abs(step), 1 << there % abs(step), low, high)


# --- from formulas to sets ---------------------------------------------------------------------------------


@lru_cache(maxsize=1 << 14)
def solutions(formula: Formula, name: str) -> IntegerSet | None:
    """All values of the symbol for which the formula, over no other symbol, holds. None: not mine."""
    try:
        return _solutions(formula, name)
    except TooLarge:
        return None


@lru_cache(maxsize=1 << 14)
def _solutions(formula: Formula, name: str) -> IntegerSet:
    match formula:
        case bool():
            return EVERY if formula else NONE
        case And(parts):
            found = EVERY
            for part in parts:
                found = found & _solutions(part, name)
            return found
        case Or(parts):
            found = NONE
            for part in parts:
                found = found | _solutions(part, name)
            return found
        case Compare():
            return _compared(formula, name)


def _compared(compare: Compare, name: str) -> IntegerSet:
    term = compare.term
    linear = linear_parts(term)
    if compare.op == ">=" and linear and len(linear[0]) == 1 and isinstance(linear[0][0][0], Symbol):
        return _half_line(linear[0][0][1], linear[1])
    period = _period(term, 1)
    degree = _degree(term)
    if period * (degree + 1) > MAX_PERIOD or degree > MAX_DEGREE:
        raise TooLarge
    dims = (*_differences(term), term)
    if period * sum(_degree(dim) + 1 for dim in dims) > MAX_WORK:
        raise TooLarge
    cuts: set[int] = set()
    for residue in range(period):
        cuts.update(residue + n * period for n in _sign_changes(dims, name, residue, period))
    ordered = sorted(cuts)
    ends = (-inf, *ordered, inf)
    if sum(min(period, high - low) for low, high in pairwise(ends)) > MAX_WORK or len(cuts) > MAX_CUTS:
        raise TooLarge
    masks = []
    for low, high in pairwise(ends):
        start = int(low) if low != -inf else int(high) - period if high != inf else 0
        mask = 0
        for s in range(start, start + int(min(period, high - start))):
            if holds(compare, {name: s}):
                mask |= 1 << s % period
        masks.append(mask)
    return _normal(period, ordered, masks)


def _half_line(factor: int, constant: int) -> IntegerSet:
    """c*s + d >= 0 is s >= -d/c rounded up for c > 0, and s <= d/-c rounded down for c < 0"""
    if factor > 0:
        return IntegerSet(1, (-(constant // factor),), (0, 1))
    return IntegerSet(1, (constant // -factor + 1,), (1, 0))


def period(dim: Dim) -> int | None:
    """P > 0 such that a dim over one symbol, without min and max, is a polynomial on each residue class
    modulo P. None: not mine.
    """
    try:
        return None if _differences(dim) else _period(dim, 1)
    except TooLarge:
        return None


def _period(dim: Dim, k: int) -> int:
    """P > 0 such that dim(s + P) - dim(s) is a multiple of k, and every `//` in dim shifts by a whole number.

    Of s itself P = k; of x//m it is that of x modulo m*k; of x % m that of x modulo m, and then the
    difference is 0; of c*y that of y modulo k/gcd(c, k); of sums and products the least common
    multiple; of min and max as well, between the places where the least or greatest argument changes.
    """
    period = 1
    for mono, c in coefficients(dim):
        rest = k // gcd(c, k)
        for atom in mono:
            period = lcm(period, rest if isinstance(atom, Symbol) else _period_of(atom, rest))
            if period > MAX_PERIOD:
                raise TooLarge
    return period


@lru_cache(maxsize=1 << 14)
def _period_of(atom: Apply, k: int) -> int:
    if atom.op == "isqrt":
        raise TooLarge
    if atom.op in ("min", "max"):
        return lcm(*(_period(arg, k) for arg in atom.args))
    x, m = atom.args
    if not isinstance(m, int):
        raise TooLarge
    return _period(x, m * k if atom.op == "//" else m)


def _degree(dim: Dim) -> int:
    """The degree of the polynomial that the dim is on a residue class of its period, or more."""
    return max((sum(map(_degree_of, mono)) for mono, _ in coefficients(dim)), default=0)


@lru_cache(maxsize=1 << 14)
def _degree_of(atom: Symbol | Apply) -> int:
    if isinstance(atom, Symbol):
        return 1
    if atom.op == "isqrt":
        raise TooLarge
    return 0 if atom.op == "%" else max(map(_degree, atom.args))


def _sign_changes(dims: Iterable[Dim], name: str, residue: int, period: int) -> list[int]:
    """All n at which the sign of term(residue + n*period) is not that at n - 1, others perhaps among them;
    the term is the last of the dims, those before it are the differences of its min and max.

    The term is a polynomial in n but for min and max, whose arguments change places where the sign of a
    difference changes; so those places are cut out first, innermost first.
    """
    cuts: list[int] = []
    for dim in dims:
        degree = _degree(dim)

        @cache
        def value(n: int, dim: Dim = dim) -> int:
            return evaluate(dim, {name: residue + n * period})

        ends = (-inf, *cuts, inf)
        found = {n for low, high in pairwise(ends) for n in _changes(value, degree, low, high - 1)}
        cuts = sorted({*cuts, *found})
    return cuts


def _differences(dim: Dim) -> tuple[Dim, ...]:
    """x - y for the arguments x, y of every min and max in the dim, innermost first, each once."""
    extrema = (atom for atom in applications(dim) if atom.op in ("min", "max"))
    return (*dict.fromkeys(x - y for atom in extrema for x, y in combinations(atom.args, 2)),)


def _changes(value: Callable[[int], int], degree: int, low: float, high: float) -> list[int]:
    """All n with low < n <= high at which the sign of a polynomial is not that at n - 1.

    Where the sign of value(n + 1) - value(n) does not change, value is monotone, and bisection finds
    its zero. On an unbounded stretch it then moves by at least 1 a step, or not at all.
    """
    if degree == 0 or low >= high:
        return []
    if degree == 1:
        cuts: list[int] = []
    else:
        # kept, or a value of the k-th difference would take 2**k values
        cuts = _changes(cache(lambda n: value(n + 1) - value(n)), degree - 1, low, high - 1)
    found = []
    for a, b in pairwise((low, *cuts, high)):
        found += _crossings(value, a, b)
    return found


def _crossings(value: Callable[[int], int], low: float, high: float) -> list[int]:
    """All n with low < n <= high at which the sign of a function that is monotone from low to high
    changes.
    """
    if low == -inf and high == inf:
        return [*_crossings(value, -inf, 0), *_crossings(value, 0, inf)]
    if low == -inf:
        # of value(-n) a change at m is one of value at 1 - m
        return sorted(1 - m for m in _crossings(lambda n: value(-n), -high, inf))
    start = int(low)
    end = start + 1 if high == inf else int(high)
    if end <= start:
        return []
    if high == inf:
        slope = value(start + 1) - value(start)
        if slope == 0:
            return []
        while _sign(value(end)) != _sign(slope):
            end = start + 2 * (end - start)
    found = []
    at, target = start, _sign(value(end))
    while (before := _sign(value(at))) != target:
        below, above = at, end
        while above - below > 1:
            middle = (below + above) // 2
            if _sign(value(middle)) == before:
                below = middle
            else:
                above = middle
        found.append(above)
        at = above
    return found


def _sign(value: int) -> int:
    return (value > 0) - (value < 0)
