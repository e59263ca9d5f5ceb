"""The fast path: what substitution, intervals, congruences and sets over one symbol say of a formula,
without z3.

`Known` holds a conjunction in a form that answers questions at once. `ask` says True (it follows), False (its
negation follows) or None (not mine); every step is sound, none searches. Where it is told that time is up it
learns no more and looks no further, so that it says None more often, and nothing wrong.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from math import inf
from typing import TypeAlias

from ..constraints.dims import (
    BUILD,
    Atom,
    Dim,
    Mono,
    Symbol,
    Term,
    substitute,
    sym,
    symbols,
    total,
)
from ..constraints.formula import (
    And,
    Compare,
    Formula,
    Or,
    all_of,
    any_of,
    comparisons,
    conjuncts,
    eq,
    free_symbols,
    ge,
    ne,
    negate,
    rewrite,
)
from ..constraints.intervals import EVERYTHING, Interval, interval, narrow
from .periodic import EVERY, IntegerSet, TooLarge, solutions

RELATIONS = 32
"""Inequalities over several symbols that one question looks at."""
RULES = 32
PASSES = 4
"""How many rules are kept, and how often all are applied in turn."""
SHIFTED = "_shifted_"
"""Symbols of our own start so; formulas that already use such a name are left alone."""


def _unhurried() -> bool:
    return False


names_of = lru_cache(maxsize=1 << 15)(free_symbols)
"""The symbols of a formula, looked up rather than collected again."""
STATE = "sets ranges equal _facts _relations _rules _shift _answers _moved".split()


class Known:
    """What a conjunction of formulas says. `learn` adds to it, `ask` consults it; `hurried` says whether time
    is up.
    """

    def __init__(
        self, formulas: Iterable[Formula] = (), hurried: Callable[[], bool] = _unhurried
    ) -> None:
        self.contradictory = False
        self._hurried = hurried
        self.sets: dict[str, IntegerSet] = {}
        """The values that facts over a symbol alone leave to it."""
        self.ranges: dict[str, Interval] = {}
        self.equal: dict[str, Dim] = {}
        """Symbols that equations define by others; none of those is defined here itself."""
        self._facts: dict[Formula, frozenset[str]] = {}
        self._relations: list[tuple[Term, frozenset[str]]] = []
        """Terms over several symbols that are at least 0."""
        self._rules: dict[Formula, Rule] = {}
        """Equations that define no symbol, as rules that rewrite a product into the rest of the equation."""
        self._shift: dict[str, Dim] = {}
        self._view: dict[str, Dim] | None = {}
        self._answers: dict[Formula, bool | None] = {}
        self._moved: set[str] = set()
        """Symbols of which more is known since facts were last looked through."""
        self.learn(*formulas)

    def copy(self) -> Known:
        """An independent copy."""
        twin = object.__new__(Known)
        twin.contradictory, twin._hurried, twin._view = self.contradictory, self._hurried, self._view
        for name in STATE:
            setattr(twin, name, getattr(self, name).copy())
        return twin

    # --- learning

    def learn(self, *formulas: Formula) -> None:
        """Adds formulas to what is known."""
        queue = list(formulas)
        while queue and not self.contradictory and not self._hurried():
            for part in conjuncts(queue.pop(0)):
                queue += self._learn(part)
            if not queue and self._moved:
                queue, self._moved = self._reducible(), set()

    def _learn(self, part: Formula) -> list[Formula]:
        """Takes in one formula that is no conjunction; returns what is to be learnt instead or again."""
        if self._rules or not self.equal.keys().isdisjoint(names_of(part)):
            part = _map_comparisons(part, self._plain)
        if (shorter := self._shorter(part)) != part:
            return [shorter]
        if part is False:
            self.contradictory = True
        if isinstance(part, bool) or part in self._facts:
            return []
        if isinstance(part, And):
            return [part]
        names = names_of(part)
        if any(name.startswith(SHIFTED) for name in names):
            return []
        self._answers.clear()
        again: list[Formula] = []
        if len(names) == 1:
            self._facts[part] = names
            return self._narrow(min(names), part)
        narrow(self.ranges, part)
        if isinstance(part, Compare) and part.op != "!=":
            if part.op == "==":
                if definition := _definition(part.term):
                    return self._define(*definition)
                self._relations.append((-part.term, names))
                if (rule := _rule(part.term)) and len(self._rules) < RULES:
                    again = self._changed_by(rule)
                    self._rules[part] = rule
            self._relations.append((part.term, names))
        self._facts[part] = names
        return again

    def shorten(self, formula: Formula) -> Formula:
        """An equivalent formula, where what is known holds: without parts that are decided, factors that are
        positive, and with min and max told apart where that makes an `and` or an `or`.
        """
        if self._hurried():
            return formula
        answer = self.ask(formula)
        if answer is not None:
            return answer
        if isinstance(formula, Compare):
            shorter = self._shorter(formula)
            return formula if shorter == formula else self.shorten(shorter)
        assert isinstance(formula, And | Or)
        return (all_of if isinstance(formula, And) else any_of)(map(self.shorten, formula.parts))

    def _shorter(self, part: Formula, moved: Collection[str] = ()) -> Formula:
        """A disjunction without parts that cannot hold; a comparison without positive factors, min and
        max. Of a disjunction only those parts are asked that speak of what has moved, where that is said.
        """
        if isinstance(part, Or):
            asked = [p for p in part.parts if not moved or not names_of(p).isdisjoint(moved)]
            refused = [p for p in asked if self.ask(p) is False]
            return any_of(p for p in part.parts if p not in refused) if refused else part
        if isinstance(part, Compare):
            if (rest := self._cofactor(part.term)) is not None:
                return _COMPARE[part.op](rest, 0)
            return _told_apart(part)
        return part

    def _reducible(self) -> list[Formula]:
        """Facts that have got shorter since symbols moved; those are forgotten, to be learnt anew."""
        found = []
        moved = self._moved
        for fact, names in [*self._facts.items()]:
            if self._hurried():
                break
            if not names.isdisjoint(moved) and (shorter := self._shorter(fact, moved)) != fact:
                del self._facts[fact]
                found.append(shorter)
        return found

    def _plain(self, compare: Compare) -> Formula:
        """The comparison with defined symbols replaced, and products that rules rewrite."""
        plain = _rewritten(compare, self.equal)
        if not self._rules or not isinstance(plain, Compare):
            return plain
        term = _reduced(plain.term, [*self._rules.values()])
        return plain if term == plain.term else _COMPARE[plain.op](term, 0)

    def _changed_by(self, rule: Rule) -> list[Formula]:
        """The facts that a new rule rewrites; those are forgotten, to be learnt anew."""
        found = [f for f in self._facts if any(_reduced(c.term, [rule]) != c.term for c in comparisons(f))]
        for fact in found:
            del self._facts[fact]
            self._rules.pop(fact, None)
        return found

    def _narrow(self, name: str, part: Formula) -> list[Formula]:
        """A fact over one symbol alone: its set shrinks, and with it interval and congruence."""
        values = solutions(part, name)
        if values is None:
            return []
        try:
            left = self.sets.get(name, EVERY) & values
        except TooLarge:
            return []
        if left == self.sets.get(name):
            return []
        self.sets[name] = left
        self._moved.add(name)
        if not left:
            self.contradictory = True
            return []
        low, high = self.ranges[name] = left.min, left.max
        modulus, residue = left.congruence()
        if low == high:
            return self._define(name, int(low))
        inner, step = sym(SHIFTED + name), modulus or 1
        count = (high - low) // step if inf not in (-low, high) else inf
        if low != -inf:
            self._set_shift(name, int(low) + step * inner, (0, count))
        elif high != inf:
            self._set_shift(name, int(high) - step * inner, (0, count))
        elif step > 1:
            self._set_shift(name, residue + step * inner, (-inf, inf))
        return []

    def _set_shift(self, name: str, value: Dim, range: Interval) -> None:
        """name = value, a term over its shifted symbol, which lies in the range."""
        self._shift[name] = value
        self.ranges[SHIFTED + name] = range
        self._view = None

    def _define(self, name: str, value: Dim) -> list[Formula]:
        """name == value holds from now on: every fact about the name becomes one about the value."""
        again = [fact for fact, names in self._facts.items() if name in names]
        for fact in again:
            del self._facts[fact]
            self._rules.pop(fact, None)
        self._relations = [r for r in self._relations if name not in r[1]]
        self.sets.pop(name, None)
        self._shift.pop(name, None)
        for other, known in self.equal.items():
            if name in symbols(known):
                self.equal[other] = _substituted(known, {name: value})
        self.equal[name] = value
        low, high = self.ranges.get(name, EVERYTHING)
        least, greatest = interval(value, self.ranges)
        self.ranges[name] = max(low, least), min(high, greatest)
        self._view = None
        self._answers.clear()
        self._moved |= {name, *symbols(value)}
        return again

    @property
    def view(self) -> Mapping[str, Dim]:
        """Every symbol of which more is known than a range, by symbols of which no more is."""
        if self._view is None:
            self._view = {**self._shift, **{n: _substituted(v, self._shift) for n, v in self.equal.items()}}
        return self._view

    # --- asking

    def ask(self, formula: Formula) -> bool | None:
        """True: it holds wherever everything known does. False: nowhere. None: not mine."""
        if isinstance(formula, bool):
            return formula
        if self.contradictory:
            return True
        if formula not in self._answers:
            if self._hurried():
                return None
            self._answers[formula] = self._ask(formula)
        return self._answers[formula]

    def _ask(self, formula: Compare | And | Or) -> bool | None:
        if isinstance(formula, Compare):
            return self._compare(formula)
        answers = [self.ask(p) for p in formula.parts]
        if isinstance(formula, And):
            answer = False if False in answers else True if None not in answers else None
        else:
            answer = True if True in answers else False if None not in answers else None
        return self._whole(formula) if answer is None else answer

    def _compare(self, compare: Compare) -> bool | None:
        """By interval, by fact, by normal form under what is known, by the values of a symbol, by interval
        there, by adding one known inequality.
        """
        if any(name.startswith(SHIFTED) for name in symbols(compare.term)):
            return None
        answer = _judge(compare.op, *interval(compare.term, self.ranges))
        if answer is not None:
            return answer
        plain = self._plain(compare)
        if isinstance(plain, bool):
            return plain
        if plain in self._facts:
            return True
        if negate(plain) in self._facts:
            return False
        assert isinstance(plain, Compare)
        if plain != compare:
            answer = _judge(plain.op, *interval(plain.term, self.ranges))
            if answer is not None:
                return answer
        if not self._rules and len(names := symbols(plain.term)) == 1:
            with suppress(TooLarge):  # the exact answer, but for what relates the symbol to others
                (name,) = names
                answer = self._by_values(plain, name)
                return self._related(plain) if answer is None and self._relations else answer
        viewed = _rewritten(plain, self.view)
        if isinstance(viewed, bool):
            return viewed
        assert isinstance(viewed, Compare)
        answer = _judge(viewed.op, *interval(viewed.term, self.ranges))
        if answer is None:
            answer = self._apart(plain)
        if answer is None and self._relations:
            answer = self._related(plain)
        return self._whole(compare) if answer is None else answer

    def _apart(self, compare: Compare) -> bool | None:
        """a*t op 0 is t op 0 for an atom a > 0, taken out of every monomial: x*y == x*z is y == z where
        x > 0
        """
        rest = self._cofactor(compare.term)
        return None if rest is None else self.ask(_COMPARE[compare.op](rest, 0))

    def _cofactor(self, term: Term) -> Dim | None:
        """The term divided by an atom that is positive and in every monomial; None where there is none."""
        (first, _), *others = term.terms
        for atom in first:
            if all(atom in mono for mono, _ in others):
                divisor = Term((((atom,), 1),), term.modular)
                if interval(divisor, self.ranges)[0] > 0:
                    return term // divisor
        return None

    def _related(self, compare: Compare) -> bool | None:
        """With k >= 0 known: t - k >= 0 gives t >= 0, and -t - 1 - k >= 0 gives t < 0"""
        names = symbols(compare.term)
        related = [k for k, over in self._relations if not names.isdisjoint(over)][:RELATIONS]

        def nonnegative(term: Dim) -> bool:
            return any(
                interval(_substituted(term - k, self.view), self.ranges)[0] >= 0
                for k in related
                if not self._hurried()
            )

        at_least_0, below_0 = nonnegative(compare.term), nonnegative(-compare.term - 1)
        if compare.op == ">=":
            return True if at_least_0 else False if below_0 else None
        differ = below_0 or nonnegative(compare.term - 1)
        if not differ:
            return None
        return compare.op == "!="

    def _whole(self, formula: Formula) -> bool | None:
        """As a fact; else exactly where the formula and what is known of its symbol are sets
        (periodic.py).
        """
        if _map_comparisons(formula, self._plain) in self._facts:
            return True
        formula = _map_comparisons(formula, lambda c: _rewritten(c, self.equal))
        names = names_of(formula)
        if len(names) == 1:
            with suppress(TooLarge):
                (name,) = names
                return self._by_values(formula, name)
        return None

    def _by_values(self, formula: Formula, name: str) -> bool | None:
        """The formula, which is over one symbol, beside the values that the symbol may have. Raises TooLarge
        where these are no sets that are looked at.
        """
        values = solutions(formula, name)
        if values is None:
            raise TooLarge
        return self.sets.get(name, EVERY).lies_in(values)


_COMPARE: Mapping[str, Callable[[Dim, Dim], Formula]] = {"==": eq, "!=": ne, ">=": ge}


def _judge(op: str, low: float, high: float) -> bool | None:
    """`term op 0` where term lies from low to high."""
    if op == ">=":
        return True if low >= 0 else False if high < 0 else None
    if low > 0 or high < 0:
        return op == "!="
    return op == "==" if low == high == 0 else None


def _definition(term: Term) -> tuple[str, Dim] | None:
    """(s, t) such that term == 0 says s == t, for a symbol s that t does not contain; the last such by
    name.
    """
    found: dict[str, Dim] = {}
    for mono, c in term.terms:
        if len(mono) == 1 and isinstance(mono[0], Symbol) and c in (1, -1):
            rest = sym(mono[0].name) - c * term
            if mono[0].name not in symbols(rest):
                found[mono[0].name] = rest
    if not found:
        return None
    name = max(found)
    return name, found[name]


def _told_apart(compare: Compare) -> Formula:
    """With r + c*max(x, y) op 0, for an integer c, r without x and y inside:

    - c > 0: r + c*max >= 0 is `r + c*x >= 0 or r + c*y >= 0`; c < 0: the same with `and`
    - c*max == c*x is x >= y, and != its negation

    and the other way round for min.
    """
    for mono, c in compare.term.terms:
        if len(mono) > 1 or not mono or isinstance(mono[0], Symbol) or mono[0].op not in ("min", "max"):
            continue
        atom = mono[0]
        rest = compare.term - c * Term(((mono, 1),), compare.term.modular)
        if compare.op == ">=":
            join = any_of if (c > 0) == (atom.op == "max") else all_of
            return join(ge(rest + c * arg, 0) for arg in atom.args)
        for arg in atom.args:
            if rest == -c * arg:
                least = all_of(ge(other, arg) if atom.op == "min" else ge(arg, other) for other in atom.args)
                return least if compare.op == "==" else negate(least)
    return compare


Rule: TypeAlias = "tuple[Mono, Dim]"
"""A product of atoms, and what it equals."""


def _rule(term: Term) -> Rule | None:
    """(m, t) such that term == 0 says m == t, m the greatest product, if it has no factor and t no m."""
    mono, c = max(((m, c) for m, c in term.terms if m), key=lambda part: _size(part[0]))
    if c not in (1, -1):
        return None
    rest = Term(((mono, 1),), term.modular) - c * term
    return None if _reduced(rest, [(mono, 0)]) != rest else (mono, rest)


def _size(mono: Mono) -> tuple[int, int, list[str]]:
    texts = [atom.text for atom in mono]
    return len(mono), sum(map(len, texts)), texts


def _reduced(dim: Dim, rules: Sequence[Rule]) -> Dim:
    """The dim after all rules, inside its atoms too."""
    done: dict[Atom, Dim] = {}

    def whole(dim: Dim) -> Dim:
        if isinstance(dim, int):
            return dim
        return total(product(mono, c) for mono, c in dim.terms)

    def product(mono: Mono, c: int) -> Dim:
        result: Dim = c
        for found, rest in rules:
            if (left := _without(mono, found)) is not None:
                result, mono = result * rest, left
        for atom in mono:
            result = result * inside(atom)
        return result

    def inside(atom: Atom) -> Dim:
        if isinstance(atom, Symbol):
            return sym(atom.name)
        if atom not in done:
            done[atom] = BUILD[atom.op](*map(whole, atom.args))
        return done[atom]

    try:
        for _ in range(PASSES):
            before, dim = dim, whole(dim)
            if dim == before:
                break
    except ZeroDivisionError:
        return dim
    return dim


def _without(mono: Mono, part: Mono) -> Mono | None:
    """mono / part, if it is a product"""
    left = [*mono]
    for atom in part:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def _map_comparisons(formula: Formula, change: Callable[[Compare], Formula]) -> Formula:
    match formula:
        case Compare():
            return change(formula)
        case Or(parts):
            return any_of(_map_comparisons(p, change) for p in parts)
        case And(parts):
            return all_of(_map_comparisons(p, change) for p in parts)
    return formula


def _rewritten(compare: Compare, replacements: Mapping[str, Dim]) -> Formula:
    """The comparison with symbols replaced; as it was where that divides by zero."""
    try:
        return rewrite(compare, replacements)
    except ZeroDivisionError:
        return compare


def _substituted(dim: Dim, replacements: Mapping[str, Dim]) -> Dim:
    try:
        return substitute(dim, replacements)
    except ZeroDivisionError:
        return dim
