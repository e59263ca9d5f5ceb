"""Decides whether a conjunction is satisfiable and whether a formula follows: by the fast path, then by
trying, then by z3.

z3 is imported when the first question gets that far.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from ...constraints.ir.system import Answer
from ...constraints.terms.dims import evaluate, sym
from ...constraints.terms.formula import (
    Formula,
    all_of,
    any_of,
    conjuncts,
    le,
    ne,
    negate,
    plain_formula,
    rewrite,
)
from ...constraints.terms.rows import is_possible, is_rank, is_relation
from ..theory import residues
from ..theory.bounds import Consequences, names_of
from . import cases, coordinates, corners, elimination, examples

if TYPE_CHECKING:
    from ..backends.z3_backend import Z3Problem

KEPT = 256
THOUGHT = 1024
ANSWERS = 4096
"""The number of cached conjunctions, of cached conjunctions with thorough deductions, and of cached answers.
"""
MANY = 64
"""Among more connected conditions than these no redundant ones are dropped: the result would be no shorter to
read.
"""
SHORT: Final = 4
"""Rows of at most this many dims are tried first."""
OTHERS: Final = 4
"""Other sizes are sought this many times, where no rows agree with those found."""
Satisfiable: TypeAlias = Literal["sat", "unsat", "unknown"]
Found: TypeAlias = tuple[Satisfiable, dict[str, int]]
"""An answer, with a satisfying assignment if it is `sat`."""
UNKNOWN: Final[Found] = "unknown", {}


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits of deciding."""

    seconds: float = 30.0
    grace_s: float = 5.0
    """Seconds beyond those in which the fast path still answers."""
    units: int = 3_000_000
    """Z3's resource units per query, which repeat from run to run."""
    few: int = 10_000
    """Those of the first attempt at a goal: milliseconds, and enough for most goals."""
    splits: int = 2
    """A goal is split at most this many times into one where a comparison holds and one where it does not."""
    disjunctions: int = 16
    """Disjunctions that thorough deduction examines case by case without learning from them; `cases.Patience`
    keeps the balance.
    """


@dataclass(frozen=True, slots=True)
class Component:
    """Formulas that are connected by their symbols, whose satisfiability is to be decided."""

    part: tuple[Formula, ...]
    units: int | None = None
    """Z3's resource units per query, if they are less than the budget's."""
    splits: int = 0
    """The number of times that the goal may still be split."""


Tactic: TypeAlias = "Callable[[Judge, Component], Found | None]"
"""A way to decide a goal. After None the next tactic is tried; any other answer is final."""


@dataclass(slots=True)
class Stats:
    """The effort spent."""

    questions: int = 0
    z3_queries: int = 0
    z3_units: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class _Prefix:
    """A conjunction by its parts in order, shared with longer ones, and the facts learnt from it."""

    known: Consequences | None = None
    following: dict[Formula, _Prefix] = field(default_factory=dict)


def components(formulas: Iterable[Formula]) -> list[tuple[Formula, ...]]:
    """Returns the conjuncts of the formulas, grouped by shared symbols, directly or through others."""
    return [part for part, _ in _components(tuple(formulas))]


@lru_cache(maxsize=256)
def _components(formulas: tuple[Formula, ...]) -> tuple[tuple[tuple[Formula, ...], frozenset[str]], ...]:
    """Returns components with their symbols: those without any first, then by their first conjunct."""
    parts = [*dict.fromkeys(c for f in formulas for c in conjuncts(f))]
    joined: dict[str, str] = {}  # a symbol to another one of its component, up to the one that stands for it

    def root(name: str) -> str:
        while (above := joined.setdefault(name, name)) != name:
            joined[name] = joined[above]
            name = above
        return name

    for part in parts:
        first, *others = names_of(part) or ("",)
        for name in others:
            joined[root(name)] = root(first)
    groups: dict[str, list[Formula]] = {}
    for part in parts:
        if names := names_of(part):
            groups.setdefault(root(next(iter(names))), []).append(part)
    lone = [((part,), frozenset[str]()) for part in parts if not names_of(part)]
    return (*lone, *((tuple(g), frozenset().union(*map(names_of, g))) for g in groups.values()))


def connected(formulas: Iterable[Formula], names: Iterable[str]) -> tuple[Formula, ...]:
    """Returns the conjuncts of the formulas that mention the names, directly or through others."""
    wanted = frozenset(names)
    formulas = tuple(formulas)
    reached = [part for part, over in _components(formulas) if not wanted.isdisjoint(over)]
    if len(reached) < 2:
        return reached[0] if reached else ()
    kept = frozenset().union(*reached)
    return tuple(f for f in dict.fromkeys(c for f in formulas for c in conjuncts(f)) if f in kept)


def _apart(parts: Iterable[Formula], names: Collection[str]) -> tuple[list[Formula], list[Formula]]:
    """Returns the parts that mention the names, and the others."""
    about: list[Formula] = []
    rest: list[Formula] = []
    for part in parts:
        (rest if names_of(part).isdisjoint(names) else about).append(part)
    return about, rest


class Judge:
    """Answers questions about conjunctions, and caches the facts learnt from their prefixes."""

    def __init__(self, budget: Budget | None = None) -> None:
        self.budget = budget or Budget()
        self.questions = 0
        self._started = time.monotonic()
        self._rests: float | None = None
        self._prefixes = _Prefix(self._nothing())
        self._kept = 0
        self._settled = _Prefix(self._nothing(thorough=True))
        self._thought = 0
        self._patience = cases.Patience(self.budget.disjunctions)
        self._answers: dict[tuple[Formula, ...], Found] = {}
        self._problems: dict[bool, Z3Problem] = {}
        """The problem of z3, and the one for short attempts: by whether questions are asked afresh."""
        self.model: dict[str, int] = {}
        """An assignment that satisfies the last question to `satisfiable`, if the answer was `sat`."""

    @property
    def stats(self) -> Stats:
        problems = self._problems.values()
        return Stats(
            self.questions, sum(p.queries for p in problems), sum(p.units for p in problems), self._spent
        )

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Excludes the time inside the block, which serves no question of the caller's, from the seconds."""
        if self._rests is not None:
            yield
            return
        self._rests = time.monotonic()
        try:
            yield
        finally:
            self._started += time.monotonic() - self._rests
            self._rests = None

    @property
    def _spent(self) -> float:
        """Returns the seconds since the judge was made, without those of rest."""
        return (time.monotonic() if self._rests is None else self._rests) - self._started

    @property
    def exhausted(self) -> bool:
        """Returns whether the time has run out."""
        return self._spent > self.budget.seconds

    @property
    def hurried(self) -> bool:
        """Returns whether the time of the fast path has run out as well."""
        return self._spent > self.budget.seconds + self.budget.grace_s

    def _nothing(self, thorough: bool = False) -> Consequences:
        judge = weakref.ref(self)  # which has these facts, and is freed with its last user

        def is_hurried() -> bool:
            return (living := judge()) is not None and living.hurried

        return Consequences((), is_hurried, thorough)

    def known(self, given: Iterable[Formula]) -> Consequences:
        """Returns the facts that the fast path derives from a conjunction. Callers must not change them."""
        node, start, rest = self._prefixes, self._prefixes, []
        for formula in given:
            following = node.following.get(formula)
            if following is None:
                following = node.following[formula] = _Prefix()
            node = following
            rest.append(formula)
            if node.known is not None:
                start, rest = node, []
        if node.known is None:
            assert start.known is not None
            node.known = start.known.copy()
            node.known.learn(*rest)
            self._kept += 1
            if self._kept > KEPT:
                self._prefixes, self._kept = _Prefix(self._nothing()), 0
        return node.known

    def settled(self, given: Iterable[Formula]) -> Consequences:
        """Returns the facts that thorough deduction derives from a conjunction, formula by formula.

        Callers must not change them.
        """
        node = self._settled
        for formula in given:
            assert node.known is not None
            following = node.following.get(formula)
            if following is None:
                following = node.following[formula] = _Prefix(node.known.copy())
                assert following.known is not None
                following.known.learn(formula)
                corners.contract(following.known, names_of(formula))
                cases.settle(following.known, names_of(formula), self._patience)
                self._thought += 1
            node = following
        known = node.known
        assert known is not None
        if self._thought > THOUGHT:
            self._settled, self._thought = _Prefix(self._nothing(thorough=True)), 0
        return known

    def contradicts(self, formulas: Iterable[Formula]) -> bool:
        """Returns whether the fast path proves that nothing satisfies all formulas."""
        return any(self.known(part).contradictory for part in components(formulas))

    def satisfiable(
        self, formulas: Iterable[Formula], names: Sequence[str] = (), units: int | None = None
    ) -> Satisfiable:
        """Returns `sat` if some integers satisfy all formulas, `unsat` if none do, else `unknown`. If `sat`,
        `model` has them, for the names and all symbols.

        Where no rows agree with the model, other sizes are sought.
        """
        formulas = tuple(formulas)
        answer, apart = self._satisfiable(formulas, names, units), list[Formula]()
        if answer == "sat" and any(map(is_relation, self.model)) and not self._is_small():
            found = self.model
            short = [le(sym(s), SHORT) for s in found if is_rank(s)]
            if self._satisfiable((*formulas, *short), names, units) == "sat" and is_possible(self.model):
                return "sat"
            self.model = found
        while answer == "sat" and not is_possible(self.model):
            rows = (s for s in self.model if is_rank(s) or is_relation(s))
            apart.append(any_of(ne(sym(s), self.model[s]) for s in rows))
            if len(apart) == OTHERS:
                break
            answer = self._satisfiable((*formulas, *apart), names, units)
        if apart and (answer != "sat" or not is_possible(self.model)):
            self.model = {}
            return "unknown"
        return answer

    def _is_small(self) -> bool:
        """Returns whether rows exist that agree with the model, all of few dims."""
        return all(n <= SHORT for s, n in self.model.items() if is_rank(s)) and is_possible(self.model)

    def _satisfiable(
        self, formulas: Iterable[Formula], names: Sequence[str], units: int | None
    ) -> Satisfiable:
        """Returns `sat` if some integers satisfy all formulas, `unsat` if none do, else `unknown`.

        Formulas that share no symbol are independent, so each component is decided separately, and only once.
        `units` bounds the effort of z3 for a component, if it is less than the budget.
        """
        self.questions += 1
        answer, model = self._together(formulas, units, self.budget.splits)
        self.model = dict.fromkeys(names, 2) | model if answer == "sat" else {}
        return answer

    def _together(self, formulas: Iterable[Formula], units: int | None, splits: int) -> Found:
        """Returns the answer for formulas, computed from those for their components."""
        parts = components(formulas)
        hard = [part for part in parts if self._easily(part)[0] == "unknown"]
        found = [self._easily(part) for part in parts if part not in hard]
        if all(answer == "sat" for answer, _ in found):
            found += [self._with_effort(Component(part, units, splits)) for part in hard]
        answers = [answer for answer, _ in found]
        if "unsat" in answers or "unknown" in answers:
            return ("unsat" if "unsat" in answers else "unknown"), {}
        return "sat", {name: value for _, model in found for name, value in model.items()}

    def _easily(self, part: tuple[Formula, ...]) -> Found:
        """Returns the answer for a component by the fast path, and by trying."""
        if part not in self._answers:
            known = self.known(part)
            found = None if known.contradictory else examples.find(known, part)
            if len(self._answers) >= ANSWERS:
                self._answers.clear()
            self._answers[part] = (
                ("unsat", {}) if known.contradictory else ("unknown", {}) if found is None else ("sat", found)
            )
        return self._answers[part]

    def _with_effort(self, goal: Component) -> Found:
        """Returns the answer of the first tactic that has one."""
        if self.exhausted:
            return UNKNOWN
        found = next((found for tactic in TACTICS if (found := tactic(self, goal)) is not None), UNKNOWN)
        if found[0] != "unknown":
            self._answers[goal.part] = found
        return found

    def _quickly(self, goal: Component) -> Found | None:
        """Returns z3's answer within few units."""
        found = self._with_z3(goal.part, self.known(goal.part), (goal.part,), self.budget.few, afresh=False)
        return None if found[0] == "unknown" else found

    def _split(self, goal: Component) -> Found | None:
        """Returns the answer from those where a comparison holds and where it does not, if it decides many
        disjunctions.
        """
        by = cases.deciding(goal.part) if goal.splits else None
        if by is None:
            return None
        answers = []
        for side in (by, negate(by)):
            parts = (side, *(cases.under(side, f) for f in goal.part))
            answer, values = self._together(parts, goal.units, goal.splits - 1)
            if answer == "sat":
                model = examples.completed(self.known((side,)), values, goal.part)
                if model is not None:
                    return "sat", model
            answers.append(answer)
        return ("unsat", {}) if answers == ["unsat", "unsat"] else UNKNOWN

    def _by_classes(self, goal: Component) -> Found | None:
        """Returns the answer from those for the residue classes of the symbols, within few units each, if the
        classes leave no divisions.
        """
        known = self.known(goal.part)
        parts = residues.classes(known, goal.part) if goal.splits else []
        for sizes in parts:
            try:
                inside = [rewrite(formula, sizes) for formula in goal.part]
            except ZeroDivisionError:
                return None
            if residues.divided(inside):
                return None
            answer, values = self._together(inside, self.budget.few, 0)
            if answer == "sat":
                at = {name: evaluate(dim, {name: 2} | values) for name, dim in sizes.items()}
                model = examples.completed(known, values | at, goal.part)
                return None if model is None else ("sat", model)
            if answer == "unknown":
                return None
        return ("unsat", {}) if parts else None

    def _thoroughly(self, goal: Component) -> Found:
        """Returns the answer by thorough deductions, by solving for one symbol at a time, or by z3 on the
        deduced facts within the full budget.
        """
        known = self.settled(goal.part)
        if known.contradictory:
            return "unsat", {}
        if (model := coordinates.find(known, goal.part)) is not None:
            return "sat", model
        return self._with_z3(goal.part, known, (tuple(known.facts), goal.part), goal.units)

    def _with_z3(
        self, part: tuple[Formula, ...], known: Consequences, forms: Iterable[tuple[Formula, ...]],
        units: int | None, *, afresh: bool = True,
    ) -> Found:
        """Returns the answer for a component by z3, asked in several forms.

        For a form that follows from the component, a model counts only if it satisfies the component, too.
        Short attempts have a problem of their own, which no hard question slows down.
        """
        problem = self._z3(afresh)
        for form in dict.fromkeys(forms):
            answer = problem.check(form, units, afresh=afresh)
            if answer == "unsat":
                return answer, {}
            if answer == "sat" and (model := examples.completed(known, problem.model(), part)) is not None:
                return answer, model
        return UNKNOWN  # or sat by an unguarded division by zero, of which z3 may assume what it likes

    def ask(self, formula: Formula, given: Sequence[Formula] = (), units: int | None = None) -> Answer:
        """Returns the truth of the formula where all given ones hold.

        If nothing satisfies the given formulas, any answer may be returned. Given formulas that share no
        symbols with it, not even through others, are ignored.
        """
        given = connected(given, names_of(formula))
        quick = self.known(given).ask(formula)
        if quick is not None:
            return Answer.ALWAYS if quick else Answer.NEVER
        can_fail = self.satisfiable((*given, negate(formula)), (), units)
        if can_fail == "unsat":
            return Answer.ALWAYS
        can_hold = self.satisfiable((*given, formula), (), units)
        if can_hold == "unsat":
            return Answer.NEVER
        return Answer.SOMETIMES if can_fail == can_hold == "sat" else Answer.UNKNOWN

    def follows(self, formula: Formula, given: Sequence[Formula] = ()) -> bool:
        """Returns whether the formula holds wherever all given ones do.

        False also where this is not found out.
        """
        given = connected(given, names_of(formula))
        quick = self.known(given).ask(formula)
        return quick is True or (quick is None and self.satisfiable((*given, negate(formula))) == "unsat")

    def core(self, formulas: Sequence[Formula]) -> tuple[Formula, ...]:
        """Returns a subset that is unsatisfiable, but not without any of its members; earlier formulas are
        preferred.

        The formulas are unsatisfiable together. Each round finds the shortest prefix that is unsatisfiable
        together with the formulas kept so far; its last formula is indispensable. Where the budget ends the
        core may not be minimal.
        """
        refused = next((part for part in components(formulas) if self.satisfiable(part) == "unsat"), ())
        rest = [f for f in dict.fromkeys(formulas) if not {*refused}.isdisjoint(conjuncts(f))]
        if not rest:
            return tuple(formulas)
        problem = self._problems.get(True) or self._problems.get(False)
        if problem is not None and problem.check(rest) == "unsat":
            rest = list(problem.core())
        kept: list[Formula] = []
        while self.satisfiable(kept) != "unsat":
            low, high = 0, len(rest)  # rest[:high] is too long, rest[:low] too short
            while high - low > 1:
                middle = (low + high) // 2
                if self.satisfiable((*kept, *rest[:middle])) == "unsat":
                    high = middle
                else:
                    low = middle
            kept.append(rest[high - 1])
            rest = rest[: high - 1]
            if not rest:
                break
        return tuple(f for f in dict.fromkeys(formulas) if f in kept)

    def irredundant(self, parts: Sequence[Formula], given: Sequence[Formula] = ()) -> list[Formula]:
        """Returns the parts that do not follow from the given formulas and the others, dropping long ones
        first; all parts where too many are connected.
        """
        known = {c for f in given for c in conjuncts(f)}
        asked = [f for f in parts if f not in known]
        needed: set[Formula] = set()
        for together in components((*given, *asked)):
            long_first = sorted((f for f in together if f not in known), key=lambda f: -len(plain_formula(f)))
            if len(long_first) > MANY:
                needed.update(long_first)
                continue
            needed.update(self._needed(long_first, tuple(f for f in together if f in known)))
        return [f for f in asked if f in needed]

    def _needed(self, parts: list[Formula], given: tuple[Formula, ...]) -> list[Formula]:
        """Returns the parts that do not follow from the needed parts before them and all parts after them.

        The search recurses on halves: the right half is given while the left one is examined, and then vice
        versa. So each formula is learnt log n times, instead of n times one after the other.
        """
        if self.exhausted or not parts:
            return parts
        if len(parts) == 1:
            return [] if self.follows(parts[0], given) else parts
        left, right = parts[: len(parts) // 2], parts[len(parts) // 2 :]
        self.known((*given, *right))  # remembered for whatever is asked with more given
        left = self._needed(left, (*given, *right))
        self.known((*given, *left))
        return left + self._needed(right, (*given, *left))

    def project(self, formula: Formula, names: Iterable[str]) -> Formula | None:
        """Returns a formula without these symbols that is true where some values of them make the given one
        true; None if not found. Names that are compared with bounds go first: z3 does not eliminate beside
        products.
        """
        parts = conjuncts(formula)
        left = frozenset().union(*map(names_of, parts)).intersection(names)
        for name in sorted(left):
            if self.exhausted:
                return None
            about, rest = _apart(parts, {name})
            shorter = elimination.without(all_of(about), name)
            if shorter is not None:
                parts, left = conjuncts(all_of((*rest, shorter))), left - {name}
        if False in parts or self.contradicts(parts):
            return False
        about, rest = _apart(parts, left)
        if not about:
            return all_of(parts)
        from ..backends.z3_backend import project

        without = project(all_of(about), left, max(self.budget.seconds - self._spent, 0.0))
        return None if without is None else all_of((*rest, without))

    def _z3(self, afresh: bool) -> Z3Problem:
        if afresh not in self._problems:
            from ..backends.z3_backend import Z3Problem

            left = max(self.budget.seconds - self._spent, 0.0)
            self._problems[afresh] = Z3Problem(left, self.budget.units)
        return self._problems[afresh]


TACTICS: Final[tuple[Tactic, ...]] = Judge._quickly, Judge._split, Judge._by_classes, Judge._thoroughly
"""In order of cost."""
