"""The largest box within the accepted set: each size a number, or `step*root + start` with a range of roots.

A box can express only this: a range and a step for each root, and sizes that share a root. In a set that is
not a box a part has to be chosen. The largest is chosen, where larger means: with more endless roots; then
with more sizes (of an endless root those up to a horizon, so that a bound that excludes usual sizes is not
paid for by unusual ones); then with fewer sizes that are mere numbers; then with smaller numbers.

To find it, sizes that some equation of the set ties together are given one root, or not (ties.py; each choice
is tried). Then each parameter grows from a single value, the others held: its possible values, for a few
values of the others, are known exactly (periodic.py). The largest progression among these is proposed; the
solver proves it for all values of the others, or finds values that refute it, and the search repeats. Where
it is not known (a root of the parameter, a division by another one), it grows at its ends as far as the
solver proves. A box that cannot grow any more is improved by making one parameter smaller where others can
grow for it by more. Every box that is kept is proved to lie within the set. As far as the solver answers
within EFFORT, none of its parameters could take one value more. A larger box may exist elsewhere.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import lcm, prod
from random import Random
from typing import Final

from ...constraints.terms.dims import Dim, Symbol, Term, evaluate, linear_parts, substitute, sym, symbols
from ...constraints.terms.formula import Formula, all_of, conjuncts, eq, negate, rewrite
from ..tactics.judge import Judge
from ..theory.bounds import names_of
from ..theory.integer_sets import EVERY, TooLarge
from ..theory.periodic import solutions
from ..theory.quasi_polynomials import plain_period
from .progressions import HORIZON, Progression, largest, rank
from .ties import choices

EFFORT: Final = 300_000
"""Z3's resource units for a question about a box."""
ROUNDS: Final = 12
"""A parameter stays as it is after this many refuted guesses."""
SAMPLES: Final = 6
FAR: Final = 1 << 31
"""A box is stretched by steps up to this size; beyond it only an endless range is tried."""
TRADES: Final = 24
"""At most this many reductions of one parameter are tried, to enlarge the box elsewhere."""


@dataclass(frozen=True, slots=True)
class Root:
    """A variable that sizes are expressed by: all integers from low to high, where None is no bound."""

    name: str
    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Box:
    """Accepted sizes: each symbol as a number or `step*root + start`, step at least 1."""

    sizes: Mapping[str, Dim]
    roots: tuple[Root, ...]

    @property
    def ranges(self) -> tuple[Formula, ...]:
        """Returns the bounds of the roots as formulas."""
        return tuple(f for r in self.roots for f in conjuncts(_range(r).formula(sym(r.name))))

    def formula(self) -> Formula:
        """Returns the sizes of the box as a condition on the symbols themselves."""
        said: list[Formula] = []
        standing: dict[str, Dim] = {}
        for name, size in self.sizes.items():
            s = sym(name)
            if isinstance(size, int):
                said.append(eq(s, size))
                continue
            ((root, step),), start = _linear(size)
            if root in standing:
                said.append(eq(s, substitute(size, {root: standing[root]})))
                continue
            said.append(eq(s % step, start % step))
            standing[root] = (s - start) // step
            bounds = next(_range(r) for r in self.roots if r.name == root)
            said.append(_times(bounds, step, start).formula(s))
        return all_of(said)

    @property
    def rank(self) -> tuple[int, ...]:
        """Returns a measure of the box; larger is better. Numbers other than 0 and 1 are preferred."""
        ends = {r.name: r.low if r.high is None else r.high for r in self.roots}
        at_0, at_1 = ({r.name: value for r in self.roots} for value in (0, 1))
        return (
            sum(r.high is None for r in self.roots),
            prod(_range(r).count for r in self.roots),
            -sum(isinstance(s, int) for s in self.sizes.values()),
            -sum(evaluate(s, at_1) - evaluate(s, at_0) for s in self.sizes.values()),  # the steps
            -sum(isinstance(s, int) and s < 2 for s in self.sizes.values()),
            -max((evaluate(s, ends) for s in self.sizes.values()), default=0),
        )

    def at(self, roots: Mapping[str, int]) -> dict[str, int]:
        """Returns the sizes at values of the roots."""
        return {name: evaluate(size, roots) for name, size in self.sizes.items()}


def _range(root: Root) -> Progression:
    return Progression(root.low, root.high)


def _times(p: Progression, step: int, start: int) -> Progression:
    last = None if p.last is None else step * p.last + start
    return Progression(step * p.start + start, last, step * p.step)


def _linear(dim: Dim) -> tuple[tuple[tuple[str, int], ...], int]:
    """Returns the symbols of a linear dim with their coefficients, and its constant."""
    parts = linear_parts(dim)
    assert parts is not None, dim
    return tuple((atom.text, c) for atom, c in parts[0]), parts[1]


def largest_box(
    judge: Judge, names: Sequence[str], accepted: Sequence[Formula], seed: Mapping[str, int],
    wanted: Iterable[Dim] = (), lone: Iterable[str] = (),
) -> Box:
    """Returns the largest box found that contains only accepted sizes.

    - `seed`: accepted sizes, which are the box if no larger one is proved.
    - `wanted`: dims that shall be numbers or `step*root + start` as well, such as the sizes of inputs.
    - `lone`: symbols that are a root of their own or a number: integer inputs.
    """
    search = _BoxSearch(judge, tuple(names), tuple(accepted), seed, tuple(wanted), frozenset(lone))
    return max(search.boxes(), key=lambda grown: grown.rank).box()


@dataclass(slots=True)
class _Grown:
    """A box as it grows: the symbols as terms over parameters, and a progression of values for each."""

    sizes: dict[str, Dim]
    parts: dict[str, Progression]

    @property
    def rank(self) -> tuple[int, ...]:
        return self.box().rank

    def box(self) -> Box:
        """Returns the box.

        Parameters that take consecutive values are roots; others are `step*_name + start`.
        """
        roots: list[Root] = []
        replaced: dict[str, Dim] = {}
        for name, part in self.parts.items():
            if part.is_single:
                replaced[name] = part.start
            elif part.step == 1:
                roots.append(Root(name, part.start, part.last))
            else:
                root, start = f"_{name}", part.start % part.step
                last = None if part.last is None else part.last // part.step
                roots.append(Root(root, part.start // part.step, last))
                replaced[name] = part.step * sym(root) + start
        sizes = {name: substitute(size, replaced) for name, size in self.sizes.items()}
        used = frozenset().union(*map(symbols, sizes.values()))
        return Box(sizes, tuple(r for r in roots if r.name in used))


@dataclass(slots=True)
class _BoxSearch:
    judge: Judge
    names: tuple[str, ...]
    accepted: tuple[Formula, ...]
    seed: Mapping[str, int]
    wanted: tuple[Dim, ...]
    lone: frozenset[str]

    def boxes(self) -> Iterator[_Grown]:
        """Yields a grown box for each choice of sizes that share a root and for each seed, until a box is the
        whole set.
        """
        single = {name: Progression.single(self.seed[name]) for name in self.names}
        best = _Grown({name: sym(name) for name in self.names}, single)
        yield best
        seeds = [*self._seeds()]
        for links in choices(self.judge, self.names, self.accepted, self.lone):
            for seed in seeds:
                for order in (1, -1):
                    if (growth := self._start(links, seed)) is None or self.judge.exhausted:
                        break
                    grown = growth.grown([*growth.state.parts][::order], best)
                    best = max(best, grown, key=lambda g: g.rank)
                    yield grown
                    if is_all(self.judge, grown.box(), self.accepted):
                        return
                    if not growth.tangled:
                        break

    def _seeds(self) -> Iterator[Mapping[str, int]]:
        """Yields seeds: the one given; one whose sizes are as equal as possible; one of the least sizes."""
        yield self.seed
        if all(len(names_of(f)) < 2 for f in self.accepted):
            return
        seen = [self.seed]
        equal = [eq(sym(one), sym(other)) for one, other in combinations(self.names, 2)]
        for wishes in (equal, [eq(sym(name), low) for name in self.names for low in (0, 1)]):
            given = [*self.accepted]
            for wish in wishes:
                if not self.judge.exhausted and self._holds_somewhere((*given, wish)):
                    given.append(wish)
            if self._holds_somewhere(given):
                seed = {name: self.judge.model[name] for name in self.names}
                if seed not in seen:
                    seen.append(seed)
                    yield seed

    def _holds_somewhere(self, formulas: Sequence[Formula]) -> bool:
        return self.judge.satisfiable(formulas, self.names, EFFORT) == "sat"

    # --- growing

    def _start(self, sizes: dict[str, Dim], seed: Mapping[str, int]) -> _BoxGrowth | None:
        """Returns single values of the parameters, from the seed if it fits the links, else found by the
        solver.
        """
        try:
            formulas = [f for part in self.accepted for f in conjuncts(rewrite(part, sizes))]
            wanted = [substitute(dim, sizes) for dim in (*self.wanted, *sizes.values())]
        except ZeroDivisionError:
            return None
        params = [*dict.fromkeys(n for size in sizes.values() for n in sorted(symbols(size)))]
        values = {n: seed.get(n, 0) for n in params}
        fits = all(evaluate(size, values) == seed[name] for name, size in sizes.items())
        if False in formulas:
            return None
        if not fits:
            if self.judge.satisfiable(formulas, params, EFFORT) != "sat":
                return None
            values = {n: self.judge.model[n] for n in params}
        single = {n: Progression.single(values[n]) for n in params}
        return _BoxGrowth(self.judge, _Grown(sizes, single), tuple(formulas), tuple(wanted), self.lone)


@dataclass(slots=True)
class _BoxGrowth:
    """Makes a box larger as long as it can be proved to lie within the formulas over its parameters."""

    judge: Judge
    state: _Grown
    formulas: tuple[Formula, ...]
    wanted: tuple[Dim, ...]
    lone: frozenset[str]
    random: Random = field(default_factory=lambda: Random(0))

    @property
    def tangled(self) -> bool:
        """Returns whether the order in which parameters grow may matter."""
        together = (*map(names_of, self.formulas), *map(symbols, self.wanted))
        return any(len(names) > 1 for names in together)

    def grown(self, order: Sequence[str], best: _Grown) -> _Grown:
        """Returns the box grown in this order, and improved further unless it is far smaller than the best.
        """
        self._grow(order)
        if self.tangled and self.state.rank[0] >= best.rank[0]:
            self._improve()
        return self.state

    def _grow(self, names: Sequence[str]) -> None:
        for name in names:
            self.state.parts[name] = self._widest(name)

    def _improve(self) -> None:
        """Removes a part of one parameter's values, where the others can gain more by it."""
        left = TRADES
        better = True
        while better and left > 0:
            better = False
            for name in [*self.state.parts]:
                for smaller in self._smaller(self.state.parts[name]):
                    if (left := left - 1) < 0 or self.judge.exhausted:
                        return
                    before = self.state
                    self.state = _Grown(before.sizes, {**before.parts, name: smaller})
                    self._grow([n for n in before.parts if n != name])
                    self._grow([name])
                    if self.state.rank > before.rank:
                        better = True
                        break
                    self.state = before

    def _smaller(self, part: Progression) -> Iterator[Progression]:
        """Yields smaller progressions: halves, quarters, and all but one value."""
        count = part.count
        for index in dict.fromkeys((count // 2, count // 4, 3 * count // 4, 1, count - 1)):
            yield from part.split(index) or ()

    def _widest(self, name: str) -> Progression:
        """Returns the largest progression that is proved for all values of the others, or else the current
        one.
        """
        part = self.state.parts[name]
        modulus = self._modulus(name)
        if modulus is None or self.judge.exhausted:
            return part
        about = [f for f in self.formulas if name in names_of(f)]
        others = [n for n in self.state.parts if n != name and any(n in names_of(f) for f in about)]
        allowed = EVERY
        points = self._points(others)
        for _ in range(ROUNDS):
            try:
                for point in points:
                    found = solutions(all_of(rewrite(f, point) for f in about), name)
                    if found is None:
                        return self._stretched(name, modulus, about, others)
                    allowed = allowed & found
            except (TooLarge, ZeroDivisionError):
                return self._stretched(name, modulus, about, others)
            guess = largest(allowed, modulus, name in self.lone)
            if guess is None or rank(guess) <= rank(part):
                return part
            given = [guess.formula(sym(name)), *(self.state.parts[n].formula(sym(n)) for n in others)]
            answer = self._all_accepted(about, given)
            if answer is True:
                return guess
            if answer is None or not others:
                return part
            points = [{n: self.judge.model.get(n, self.state.parts[n].start) for n in others}]
        return part

    def _stretched(
        self, name: str, modulus: int, about: Sequence[Formula], others: Sequence[str]
    ) -> Progression:
        """Returns the current progression, extended at its ends as far as the solver proves it."""
        part = self.state.parts[name]
        step = modulus if part.is_single else part.step
        given = [self.state.parts[n].formula(sym(n)) for n in others]

        def proves(longer: Progression) -> bool:
            return self._all_accepted(about, [longer.formula(sym(name)), *given]) is True

        if part.last is not None:
            endless = Progression(part.start, None, step)
            first, last = part.start, part.last
            if proves(endless):
                part = endless
            elif more := _most(lambda k: proves(Progression(first, last + k * step, step))):
                part = Progression(first, last + more * step, step)
        start, end = part.start, part.last
        if more := _most(lambda k: start >= k * step and proves(Progression(start - k * step, end, step))):
            part = Progression(start - more * step, end, step)
        return part

    def _all_accepted(self, about: Sequence[Formula], given: Sequence[Formula]) -> bool | None:
        """Returns whether the given conditions imply the formulas.

        If False, the judge has a model; None means that it is not known.
        """
        for formula in about:
            answer = self.judge.satisfiable((*given, negate(formula)), (), EFFORT)
            if answer != "unsat":
                return False if answer == "sat" else None
        return True

    def _points(self, others: Sequence[str]) -> list[dict[str, int]]:
        """Returns values of the others: all at their start, all far on, and mixtures."""
        parts = {n: self.state.parts[n] for n in others}
        indices: list[int | None] = [0, 1, HORIZON]
        points = [{n: p.at(i or 0) for n, p in parts.items()} for i in indices]
        for _ in range(SAMPLES if others else 0):
            points.append({n: p.at(self.random.choice((0, 1, 2, 5, HORIZON))) for n, p in parts.items()})
        return [dict(items) for items in dict.fromkeys(tuple(p.items()) for p in points)]

    def _modulus(self, name: str) -> int | None:
        """Returns the step that makes the wanted dims over the symbol `step*root + start`; None where none
        does.

        A dim over several symbols has that form while all but one of them are numbers.
        """
        modulus = 1
        for dim in self.wanted:
            if name not in symbols(dim):
                continue
            fixed = {n: self.state.parts[n].start for n in symbols(dim) if n != name}
            if not all(self.state.parts[n].is_single for n in fixed):
                return None
            alone = substitute(dim, fixed)
            if isinstance(alone, Term):
                if (found := plain_period(alone)) is None:
                    return None
                modulus = lcm(modulus, found)
                if not _increasing(alone, name, modulus):
                    return None
        return modulus


def _most(holds: Callable[[int], bool]) -> int:
    """Returns the largest k for which `holds` is true, assuming that it is true for all smaller ones; at most
    2*FAR.
    """
    high = 1
    while high <= FAR and holds(high):
        high *= 2
    low = high // 2
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _increasing(dim: Term, name: str, modulus: int) -> bool:
    """Returns whether the dim is a number or `step*n + start` with step at least 1, for name = modulus*n + r
    and each r.
    """
    for residue in range(modulus):
        there = substitute(dim, {name: modulus * sym(name) + residue})
        parts = linear_parts(there)
        if parts is None or any(not isinstance(a, Symbol) or c < 0 for a, c in parts[0]):
            return False
    return True


def proved(judge: Judge, box: Box, accepted: Iterable[Formula]) -> bool:
    """Returns whether the box lies within the accepted set, decided independently, in terms of the roots."""
    try:
        return all(
            judge.follows(rewrite(f, box.sizes), box.ranges) for part in accepted for f in conjuncts(part)
        )
    except ZeroDivisionError:
        return False


def is_all(judge: Judge, box: Box, accepted: Sequence[Formula]) -> bool:
    """Returns whether the box is the whole accepted set."""
    return judge.follows(box.formula(), accepted)
