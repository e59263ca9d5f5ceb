"""A `while` that divides a size for as long as that is whole: `while n > 1: x = x[:n // 2] + x[n // 2:]`.

An iteration at the size u requires R(u), leads to the size e(u), and is followed by another one if T(u). For
all u beyond a number m, and a prime c, R(u) is that c divides u, e(u) is u / c, and T(u) holds: so the loop
runs at such a size if it runs at u / c. What it does at the sizes up to m is computed one by one. It runs
beyond m at n * c^k, for each n of these at which it runs, and with n * c beyond m.

With r not divisible by c, the numbers r * c^k are those that r divides and that divide r * c^K. Every size is
less than 2^63, so it suffices that c^K is the greatest power up to there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from math import gcd
from typing import Final

from ...constraints.terms.dims import Dim, Term, evaluate, floordiv, modulo, sym
from ...constraints.terms.formula import (
    Formula,
    all_of,
    any_of,
    divides,
    eq,
    ge,
    holds,
    implies,
)

PRIMES: Final = (2, 3, 5, 7)
MOST: Final = 48
"""The number m is at most this one."""
LOOKED_AT: Final = 4 * MOST
SIZES: Final = 1 << 63


@dataclass(frozen=True, slots=True)
class Iterations:
    """The effect of an iteration on a size, which is the symbol `size` in the other attributes."""

    size: str
    needs: Formula
    after: Dim
    goes_on: Formula

    def leads_to(self, n: int) -> int | None:
        """Returns the size that the loop leaves, which iterates at n at least once; None where it does not
        run.
        """
        at = {self.size: n}
        if not holds(self.needs, at):
            return None
        after = evaluate(self.after, at)
        if not holds(self.goes_on, at):
            return after
        return self.leads_to(after)

    def shrinks(self, n: int) -> bool:
        """Returns whether the size does not grow at n, and is less before another iteration."""
        at = {self.size: n}
        after = evaluate(self.after, at)
        return not holds(self.needs, at) or 0 <= after < n + (not holds(self.goes_on, at))

    def divides_by(self, c: int, n: int) -> bool:
        """Returns whether it is at n as it is beyond m."""
        at = {self.size: n}
        needs = holds(self.needs, at)
        if needs != (n % c == 0) or not needs:
            return not needs and n % c != 0
        return c * evaluate(self.after, at) == n and holds(self.goes_on, at)

    def divides_beyond(self, c: int, m: int) -> Formula:
        """Returns the formula that it divides by c at all sizes beyond m."""
        u = sym(self.size)
        whole = divides(c, u)
        step = all_of((eq(c * self.after, u), self.goes_on))
        each = all_of((implies(self.needs, whole), implies(whole, self.needs), implies(whole, step)))
        return implies(ge(u, m + 1), each)


@dataclass(frozen=True, slots=True)
class Divisions:
    """A loop that divides by c at all sizes beyond m."""

    c: int
    m: int
    left: Mapping[int, int]
    """The sizes up to m at which it runs, each with the size that it leaves."""

    def runs(self, size: Dim, never: Callable[[int], bool]) -> Formula:
        """Returns the condition that it runs at a size, which is at least 1 and none that is `never`."""
        by_root: dict[int, list[int]] = {}
        for n in range(self.m // self.c + 1, self.m + 1):
            if n in self.left:
                by_root.setdefault(self._root(n), []).append(n)
        whole = {r for r in by_root if all(n in self.left or never(n) for n in self._multiples(r))}
        covered = {n for r in whole for n in self._multiples(r)}
        single = [eq(size, n) for n in self.left if n not in covered and not never(n)]
        beyond = [all_of((ge(size, self.m + 1), self._powers(size, r, ()))) for r in by_root.keys() - whole]
        return any_of((*single, *self._all_powers(size, whole), *beyond))

    def leaves(self, never: Callable[[int], bool]) -> frozenset[int]:
        """Returns the sizes that it may leave."""
        return frozenset(left for n, left in self.left.items() if not never(n))

    def _root(self, n: int) -> int:
        return n if n % self.c else self._root(n // self.c)

    def _multiples(self, root: int) -> list[int]:
        found = [root]
        while found[-1] * self.c <= self.m:
            found.append(found[-1] * self.c)
        return [n for n in found if n <= self.m]

    def _all_powers(self, size: Dim, roots: Collection[int]) -> list[Formula]:
        """Returns the conditions that it is a power of c times one of these roots."""
        among = any(map(_is_prime, roots))
        return [self._powers(size, r, roots) for r in sorted(roots) if r > 1 or not among]

    def _powers(self, size: Dim, root: int, roots: Collection[int]) -> Formula:
        """Returns the condition that it is a power of c times the root; or times 1, if the root is prime and
        1 is among the roots.
        """
        greatest = root
        while greatest * self.c < root * SIZES:
            greatest *= self.c
        among = 1 in roots and _is_prime(root)
        times = gcd(*(times for _, times in size.terms)) if isinstance(size, Term) else 1
        whole = greatest % times == 0 and eq(modulo(greatest // times, floordiv(size, times)), 0)
        return all_of((True if among else divides(root, size), whole))


def divisions(of: Iterations, proves: Callable[[Formula], bool]) -> Divisions | None:
    """Returns how the loop divides; None where it does something else, or that is not proved."""
    for c in PRIMES:
        others = [n for n in range(LOOKED_AT + 1) if not of.divides_by(c, n)]
        m = max(others, default=0)
        if m <= MOST and all(map(of.shrinks, range(m + 1))) and proves(of.divides_beyond(c, m)):
            left = {n: after for n in range(m + 1) if (after := of.leads_to(n)) is not None}
            return Divisions(c, m, left)
    return None


def _is_prime(n: int) -> bool:
    return n > 1 and all(n % k for k in range(2, n))
