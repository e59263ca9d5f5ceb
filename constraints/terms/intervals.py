"""Interval arithmetic over dims: bounds of a term from ranges of the symbols, at once and without search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import gcd, inf, isqrt, prod
from typing import TypeAlias

from .dims import (
    MOST_EXPONENT,
    Apply,
    Atom,
    Dim,
    Mono,
    Symbol,
    Term,
    coefficients,
    lone,
    nearest_float,
    symbols,
    total,
)
from .formula import And, Compare, Formula, Or, all_of, conjuncts, ge, le

Bound: TypeAlias = "int | float"
"""An integer, or an infinity."""
Interval: TypeAlias = tuple[Bound, Bound]
Ranges: TypeAlias = Mapping[str, Interval]
"""Intervals by the text of an atom: of a symbol, or of a quotient, remainder, minimum or maximum."""

EVERYTHING: Interval = (-inf, inf)


SUMS = 8
"""At most this many known sums that share a summand with a dim are tried."""


def interval(dim: Dim, ranges: Ranges) -> Interval:
    """Returns an interval that contains every value of the dim, where each atom lies in its range.

    The interval is sound, not tight: the parts of a sum vary together, and here each is bounded alone.
    """
    return _interval(dim, ranges, {})


def _interval(dim: Dim, ranges: Ranges, done: dict[Atom, Interval]) -> Interval:
    """Returns the interval of the dim.

    `done` keeps the intervals of atoms, since nested dims hold many copies.
    """
    if isinstance(dim, int):
        return dim, dim
    low: Bound = 0
    high: Bound = 0
    for mono, coefficient in dim.terms:
        if not mono:  # the constant
            low, high = low + coefficient, high + coefficient
            continue
        least, greatest = _product(mono, ranges, done)
        if coefficient != 1:
            if coefficient < 0:
                least, greatest = greatest, least
            least, greatest = _scaled(coefficient, least), _scaled(coefficient, greatest)
        low, high = low + least, high + greatest
    return low, high


def _scaled(coefficient: int, bound: Bound) -> Bound:
    """Returns coefficient * bound.

    Of an infinity only the sign matters: as a float it cannot be multiplied by every integer.
    """
    if isinstance(bound, int):
        return coefficient * bound
    return bound if coefficient > 0 else -bound


def _product(mono: Mono, ranges: Ranges, done: dict[Atom, Interval]) -> Interval:
    if len(mono) == 1:  # as nearly all are
        atom = mono[0]
        if (known := done.get(atom)) is None:
            known = done[atom] = _atom(atom, ranges, done)
        return known
    part: Interval | None = None
    index = 0
    while index < len(mono):
        atom = mono[index]
        if atom not in done:
            done[atom] = _atom(atom, ranges, done)
        power = mono.count(atom)
        factor = _power(done[atom], power) if power > 1 else done[atom]
        part = factor if part is None else _times(part, factor)
        index += power
    assert part is not None, "the monomial is not constant"
    return part


def _atom(atom: Atom, ranges: Ranges, done: dict[Atom, Interval]) -> Interval:
    if isinstance(atom, Symbol):
        return ranges.get(atom.name, EVERYTHING)
    low, high = ranges.get(atom.text, EVERYTHING)
    least, greatest = _applied(atom, [_interval(a, ranges, done) for a in atom.args])
    return max(low, least), min(high, greatest)


def _applied(atom: Apply, parts: list[Interval]) -> Interval:
    match atom.op:
        case "min":
            return min(p[0] for p in parts), min(p[1] for p in parts)
        case "max":
            return max(p[0] for p in parts), max(p[1] for p in parts)
        case "%":
            return _modulo(*parts)
        case "isqrt":
            return _root(parts[0][0]), _root(parts[0][1])
        case "**":
            base = int(parts[0][0])
            return _exponential(base, parts[1][0]), _exponential(base, parts[1][1])
        case "rounded":
            digits = int(parts[1][0])
            return _nearest_float(parts[0][0], digits), _nearest_float(parts[0][1], digits)
        case _:
            return _quotient(*parts)


def _root(bound: float) -> float:
    """Returns the square root, rounded down, of a bound: isqrt grows with its argument."""
    return bound if bound == inf else isqrt(int(max(bound, 0)))


def _exponential(base: int, bound: float) -> float:
    value: int = base ** int(min(max(bound, 0), MOST_EXPONENT))
    return value


def _nearest_float(bound: float, digits: int) -> float:
    """Returns the float nearest to a bound: rounding keeps order."""
    return bound if abs(bound) == inf else nearest_float(int(bound), digits)


def _times(a: Interval, b: Interval) -> Interval:
    """The product is extreme at the corners; 0 * inf is 0, since the factor 0 is reached and infinity is not.
    """
    corners = [0 if x == 0 or y == 0 else x * y for x in a for y in b]
    return min(corners), max(corners)


def _power(a: Interval, exponent: int) -> Interval:
    """x*x >= 0 for an even exponent, which the product of two intervals would not see."""
    result = a
    for _ in range(exponent - 1):
        result = _times(result, a)
    return (max(result[0], 0), result[1]) if exponent % 2 == 0 else result


def _quotient(a: Interval, b: Interval) -> Interval:
    """For b >= 1, floor(a / b) grows with a, and with b where a < 0, falls with b where a >= 0: extreme at
    corners. The interval of b is empty where conditions contradict each other.
    """
    if not 1 <= b[0] <= b[1]:
        return EVERYTHING
    corners = [_floor(x, y) for x in a for y in b]
    return min(corners), max(corners)


def _floor(x: Bound, y: Bound) -> Bound:
    if y == inf:
        return -1 if x < 0 else 0 if x != inf else inf
    return x if x in (inf, -inf) else x // y


def _modulo(a: Interval, b: Interval) -> Interval:
    """For b >= 1, 0 <= a % b <= b - 1, and a % b is a itself where 0 <= a < b."""
    if b[0] < 1:
        return EVERYTHING
    if 0 <= a[0] and a[1] < b[0]:
        return a
    return 0, (min(b[1] - 1, a[1]) if a[0] >= 0 else b[1] - 1)


def narrow(ranges: dict[str, Interval], formula: Formula) -> None:
    """Narrows the ranges by the conjuncts `c*a + d >= 0` and `c*a + d == 0` with one atom a; others are
    ignored.
    """
    for part in conjuncts(formula):
        if not isinstance(part, Compare) or part.op == "!=":
            continue
        (mono, factor), *rest = part.term.terms
        if len(mono) != 1 or any(m for m, _ in rest):
            continue
        constant = rest[0][1] if rest else 0
        low, high = ranges.get(mono[0].text, EVERYTHING)
        if part.op == "==":
            low, high = max(low, -constant // factor), min(high, -(constant // factor))
        elif factor > 0:
            low = max(low, -(constant // factor))  # a >= -d/c, rounded up
        else:
            high = min(high, constant // -factor)  # a <= d/-c, rounded down
        ranges[mono[0].text] = low, high
        _narrow_dividend(ranges, mono[0], low, high)


def _narrow_dividend(ranges: dict[str, Interval], atom: Atom, low: Bound, high: Bound) -> None:
    """Narrows the range of a dividend: p // k >= n implies p >= k*n, and p // k <= n implies
    p <= k*n + k - 1, for a positive integer k.
    """
    if isinstance(atom, Apply) and atom.op == "//":
        dividend, divisor = atom.args
        if isinstance(divisor, int) and divisor > 0:
            narrow(ranges, True if low == -inf else ge(dividend, divisor * int(low)))
            narrow(ranges, True if high == inf else le(dividend, divisor * int(high) + divisor - 1))


class Bounds:
    """Knowledge about dims: intervals, and lower bounds on whole sums that formulas state."""

    def __init__(self, ranges: Ranges) -> None:
        self.ranges: dict[str, Interval] = dict(ranges)
        self._sums: dict[tuple[tuple[Mono, int], ...], int] = {}
        self._atoms: dict[Atom, Interval] = {}
        """A cache of the intervals of atoms, cleared when something is learnt: sizes are asked for over and
        over.
        """
        self._answers: dict[tuple[Term, int], bool] = {}
        """The answers of `at_least`, cleared likewise."""
        self._holding: dict[Mono, list[Term]] = {}
        """Terms of several summands that are at least 0, by each of their summands."""

    def learn(self, formula: Formula) -> None:
        """Adds a formula that holds from here on."""
        narrow(self.ranges, formula)
        self._atoms.clear()
        self._answers.clear()
        for part in conjuncts(formula):
            if isinstance(part, Compare) and part.op == "!=":
                self._learn_apart(part.term)
            elif isinstance(part, Compare):
                self._hold(part.term)
                if part.op == "==":
                    self._hold(-part.term)

    def _hold(self, term: Term) -> None:
        """Notes that the term is at least 0."""
        self._answers.clear()
        varying, times, constant = _split(term.terms)
        least = -(constant // times)
        self._sums[varying] = max(least, self._sums.get(varying, least))
        for mono, _ in varying if len(varying) > 1 else ():
            self._holding.setdefault(mono, []).append(term)
        for factor in _common(varying) if least > 0 else ():
            self._learn_of_factors(factor, varying)

    def _learn_apart(self, term: Term) -> None:
        """Learns that a term other than 0 is at least 1 if never negative, at most -1 if never positive."""
        for side in (term, -term):
            if self.at_least(side, 0) and isinstance(above := side - 1, Term):
                narrow(self.ranges, Compare(">=", above))  # of a remainder, `ge` says again that it is not 0
                self._atoms.clear()
                self._hold(above)

    def _learn_of_factors(self, x: Atom, product: tuple[tuple[Mono, int], ...]) -> None:
        """Learns from `x*y >= 1`, where x is not negative, that both are at least 1."""
        if self.at_least(lone(x), 0):
            y = total(coefficient * _without(mono, x) for mono, coefficient in product)
            self.learn(all_of((ge(lone(x), 1), ge(y, 1))))

    def copy(self) -> Bounds:
        """Returns the same knowledge, to which more may be added."""
        copied = Bounds(self.ranges)
        copied._sums = dict(self._sums)
        copied._holding = {mono: [*terms] for mono, terms in self._holding.items()}
        return copied

    def sums(self) -> Iterator[Formula]:
        """Yields the known lower bounds of sums and products."""
        for varying, least in self._sums.items():
            if len(varying) > 1 or len(varying[0][0]) > 1:
                yield ge(Term(varying, False), least)

    def contradict(self) -> bool:
        """Returns whether the range of some atom is empty."""
        return any(low > high for low, high in self.ranges.values())

    def certain(self, formula: Formula) -> bool:
        """Returns whether the known facts imply the formula. False also where they cannot decide it."""
        if isinstance(formula, Compare):
            if formula.op == "!=":
                return self.at_least(formula.term, 1) or self.at_least(-formula.term, 1)
            return formula.op == ">=" and self.at_least(formula.term, 0)
        if isinstance(formula, And | Or):
            return (all if isinstance(formula, And) else any)(map(self.certain, formula.parts))
        return formula

    def at_least(self, dim: Dim, bound: int) -> bool:
        """Returns whether dim >= bound is certain."""
        if isinstance(dim, int):
            return dim >= bound
        found = self._answers.get((dim, bound))
        if found is None:
            found = self._is_seen(dim, bound) or any(
                self._is_seen(dim - multiple, bound) for multiple in self._multiples(dim)
            )
            self._answers[dim, bound] = found
        return found

    def at_most_0(self, term: Term) -> bool:
        """Returns whether term <= 0 is certain; of a single symbol, once, its range tells all."""
        (mono, c), *rest = term.terms
        alone = abs(c) == len(mono) == 1 and isinstance(mono[0], Symbol)
        if alone and not any(other for other, _ in rest):
            return _interval(term, self.ranges, self._atoms)[1] <= 0
        return self.at_least(-term, 0)

    def _is_seen(self, dim: Dim, bound: int) -> bool:
        """Returns whether the bound follows from an interval, from a known sum, or from a lower bound of a
        quotient.
        """
        if isinstance(dim, int):
            return dim >= bound
        if _interval(dim, self.ranges, self._atoms)[0] >= bound:
            return True
        varying, times, constant = _split(dim.terms)
        if varying in self._sums and times * self._sums[varying] + constant >= bound:
            return True
        whole = _without_quotient(dim)
        return whole is not None and self._is_seen(whole[0], whole[1] * (bound - 1) + 1)

    def _multiples(self, dim: Dim) -> Iterator[Dim]:
        """Yields multiples of terms that are at least 0, whose removal leaves the dim with a summand less: `t
        - 4*k` is at least `t - 4*(t//4)`, where `t//4 - k` is not negative.
        """
        for mono, c in coefficients(dim):
            for other in self._holding.get(mono, [])[-SUMS:] if abs(c) > 1 else ():
                times, rest = divmod(c, dict(other.terms)[mono])
                if times > 1 and not rest:
                    yield times * other


def _without_quotient(dim: Term) -> tuple[Dim, int] | None:
    """Returns another dim and a number k >= 1 such that `k*dim >= other`, or None.

    A quotient `p//k` whose symbols the dim mentions elsewhere, too, is replaced by its lower bound `(p - k +
    1)/k`, and by `p/k` where it is subtracted. None where the dim has no such quotient.
    """
    for mono, coefficient in dim.terms:
        if len(mono) == 1 and isinstance(atom := mono[0], Apply) and atom.op == "//":
            dividend, divisor = atom.args
            if isinstance(divisor, int) and divisor > 0 and isinstance(dividend, Term):
                factors = [factor for other, _ in dim.terms if other is not mono for factor in other]
                others = {name for factor in factors for name in factor.symbols}
                if not others.isdisjoint(symbols(dividend)):
                    rest = dim - coefficient * lone(atom)
                    least = dividend - (divisor - 1) if coefficient > 0 else dividend
                    return divisor * rest + coefficient * least, divisor
    return None


def _common(terms: tuple[tuple[Mono, int], ...]) -> tuple[Atom, ...]:
    """Returns the atoms that all of several terms have for a factor."""
    (first, _), *others = terms
    common = [atom for atom in dict.fromkeys(first) if all(atom in mono for mono, _ in others)]
    return tuple(common) if others or len(first) > 1 else ()


def _without(mono: Mono, factor: Atom) -> Dim:
    """Returns the product without one factor."""
    atoms = list(mono)
    atoms.remove(factor)
    return prod(map(lone, atoms), start=1)


def _split(terms: tuple[tuple[Mono, int], ...]) -> tuple[tuple[tuple[Mono, int], ...], int, int]:
    """Returns (varying, times, constant) with `terms = times * varying + constant`: the terms that vary, over
    the common divisor of their factors, that divisor, and the constant, which is the last term.
    """
    varying, constant = (terms[:-1], terms[-1][1]) if terms[-1][0] == () else (terms, 0)
    times = gcd(*(c for _, c in varying))
    return (varying if times == 1 else tuple((mono, c // times) for mono, c in varying)), times, constant
