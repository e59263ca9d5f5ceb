"""The fast path: decides formulas by substitution, intervals, congruences and sets over one symbol, without
z3.

`Consequences` holds a conjunction in a form that answers questions at once. `ask` returns True (it follows),
False (its negation follows) or None (not decided here); every step is sound, none searches. When time is up
it learns no more and examines no more, so that it returns None more often, but nothing wrong.
"""
from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from math import inf, prod
from typing import TypeAlias

from ...constraints.terms.dims import (
    BUILD,
    Apply,
    Atom,
    Dim,
    Mono,
    Symbol,
    Term,
    coefficients,
    divide,
    lone,
    lone_atom,
    mapped,
    substitute,
    sym,
    symbols,
    total,
)
from ...constraints.terms.formula import (
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
    le,
    ne,
    negate,
    rewrite,
)
from ...constraints.terms.intervals import EVERYTHING, Bound, Interval, interval, narrow
from .integer_sets import EVERY, IntegerSet, TooLarge
from .periodic import image, solutions
from .settling import is_partial

RELATIONS = 32
"""One question examines at most this many inequalities over several symbols."""
RULES = 32
PASSES = 4
"""At most this many rules are kept, and all are applied this many times in turn."""
QUOTIENTS = 4
"""At most this many quotients of a term are replaced by bounds."""
PRIMES = (2, 3, 5, 7, 11, 13)
DIVISORS = 40
"""The divisors of a number are listed if it is a product of these primes and has no more divisors than this.
"""
SHIFTED = "_shifted_"
"""Internal symbols begin with this; formulas that already use such a name are ignored."""


def _unhurried() -> bool:
    return False


names_of = lru_cache(maxsize=1 << 15)(free_symbols)
"""Returns the symbols of a formula, from a cache."""
STATE = "sets ranges equal _facts _relations _rules _shift _answers _spans _moved".split()


class Consequences:
    """The consequences of a conjunction of formulas.

    `learn` adds a formula, `ask` decides one; `hurried` says whether time is up.
    """

    def __init__(
        self, formulas: Iterable[Formula] = (), hurried: Callable[[], bool] = _unhurried,
        thorough: bool = False,
    ) -> None:
        self.contradictory = False
        self.thorough = thorough
        """Whether slow deductions are made as well."""
        self._hurried = hurried
        self.sets: dict[str, IntegerSet] = {}
        """The values of each symbol that satisfy the facts over it alone."""
        self.ranges: dict[str, Interval] = {}
        self.equal: dict[str, Dim] = {}
        """Symbols that equations define by others; the definitions contain no defined symbols."""
        self._facts: dict[Formula, frozenset[str]] = {}
        self._relations: list[tuple[Term, frozenset[str]]] = []
        """Terms over several symbols that are at least 0."""
        self._rules: dict[Formula, Rule] = {}
        """Equations that define no symbol, as rules that rewrite a product into the rest of the equation."""
        self._shift: dict[str, Dim] = {}
        self._view: _Replacement | None = None
        self._answers: dict[Formula, bool | None] = {}
        self._spans: dict[Mono, Interval] = {}
        """A cache of intervals of products, valid until ranges change."""
        self._moved: set[str] = set()
        """Symbols with new knowledge since the facts were last examined."""
        self.learn(*formulas)

    def copy(self) -> Consequences:
        """Returns an independent copy."""
        twin = object.__new__(Consequences)
        twin.contradictory, twin.thorough = self.contradictory, self.thorough
        twin._hurried, twin._view = self._hurried, self._view
        for name in STATE:
            setattr(twin, name, getattr(self, name).copy())
        return twin

    @property
    def facts(self) -> Collection[Formula]:
        """Returns the known facts, in terms of symbols that are not defined by others."""
        return self._facts.keys()

    @property
    def shifts(self) -> Mapping[str, Dim]:
        """Returns each symbol with a bound as its least or greatest value plus or minus a multiple of an
        internal symbol that starts at 0.
        """
        return self._shift

    # --- learning

    def learn(self, *formulas: Formula) -> None:
        """Adds formulas to the known facts."""
        queue = list(formulas)
        while queue and not self.contradictory and not self._hurried():
            for part in conjuncts(queue.pop(0)):
                queue += self._learn(part)
            if not queue and self._moved:
                queue, self._moved = self._reducible(), set()

    def _learn(self, part: Formula) -> list[Formula]:
        """Adds one formula other than a conjunction; returns formulas to learn instead or again."""
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
        self._forget()
        again = [*self._of_factors(part), *self._met(part)] if self.thorough else []
        if len(names) == 1:
            self._facts[part] = names
            return again + self._narrow(min(names), part)
        narrow(self.ranges, part)
        if isinstance(part, Compare) and part.op != "!=":
            if part.op == "==":
                if definition := _definition(part.term):
                    return self._define(*definition)
                self._relations.append((-part.term, names))
                if (rule := _rule(part.term)) and len(self._rules) < RULES:
                    again += self._changed_by(rule)
                    self._rules[part] = rule
            self._relations.append((part.term, names))
        self._facts[part] = names
        return again

    def shorten(self, formula: Formula) -> Formula:
        """Returns a formula that is equivalent where the known facts hold, without decided parts and positive
        factors.

        A min or max is split into cases where that makes an `and` or an `or`.
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
        """Returns a disjunction without parts that cannot hold; a comparison without positive factors, min
        and max.

        If `moved` is given, only parts of a disjunction that mention those symbols are examined.
        """
        if isinstance(part, Or) and len(names_of(part)) > 1:  # of one symbol the values are known
            asked = [p for p in part.parts if not moved or not names_of(p).isdisjoint(moved)]
            refused = [p for p in asked if self.ask(p) is False]
            return any_of(p for p in part.parts if p not in refused) if refused else part
        if isinstance(part, Compare):
            if (rest := self._cofactor(part.term)) is not None:
                return _COMPARE[part.op](rest, 0)
            if (factors := self._factors_of_one(part.term)) and part.op != "!=":
                return all_of(_COMPARE[part.op](lone(atom), 1) for atom in factors)
            plain = self._undominated(part) if self.thorough else self._settled(part)
            return _told_apart(plain) if isinstance(plain, Compare) else plain
        return part

    def _undominated(self, compare: Compare) -> Formula:
        """Returns the comparison without arguments of min and max that another one surely outdoes, and
        without multiples of terms that are known to be divisible.
        """
        term = mapped(compare.term, self._simpler)
        return compare if term == compare.term else _COMPARE[compare.op](term, 0)

    def _simpler(self, atom: Apply) -> Dim:
        """max(x, y) is y where y >= x, min(x, y) is x; where k divides p, (s*p + r) % k is r % k, and (s*p +
        r)//k is s*(p//k) + r//k; a quotient of one symbol by terms may have a single value.
        """
        if atom.op in ("min", "max"):
            return self._least_arguments(atom)
        if atom.op in ("//", "%"):
            whole, k = atom.args
            if (only := self._only(atom)) is not None:
                return only
            for p in self._divided_by(k):
                times, rest = divide(whole, p)
                if times != 0 and whole != p:
                    return rest % k if atom.op == "%" else times * (p // k) + rest // k
        return lone(atom)

    def _settled(self, compare: Compare) -> Formula:
        """Returns the comparison with quotients by terms replaced by their values, where those are unique."""
        if not is_partial(compare.term):
            return compare
        term = mapped(compare.term, lambda atom: lone(atom) if (v := self._only(atom)) is None else v)
        return compare if term == compare.term else _COMPARE[compare.op](term, 0)

    def _only(self, atom: Apply) -> int | None:
        """Returns the only value of a quotient or remainder by a term, over one symbol; None where it has
        several.
        """
        if atom.op not in ("//", "%") or isinstance(atom.args[1], int) or len(atom.symbols) != 1:
            return None
        (name,) = atom.symbols
        taken = image(self.sets.get(name, EVERY), lone(atom), name)
        return int(taken.min) if taken and taken.min == taken.max else None

    def _divided_by(self, k: Dim) -> Iterator[Dim]:
        """Yields the dims p for which p % k == 0 is known, for a symbolic k."""
        for fact in self._facts if isinstance(k, Term) else ():
            if isinstance(fact, Compare) and fact.op == "==":
                atom = lone_atom(fact.term)
                if isinstance(atom, Apply) and atom.op == "%" and atom.args[1] == k:
                    yield atom.args[0]

    def _least_arguments(self, atom: Apply) -> Dim:
        args = [*atom.args]
        for arg in atom.args:
            others = (a for a in args if a is not arg)
            if any(self.ask(ge(arg, a) if atom.op == "min" else ge(a, arg)) is True for a in others):
                args.remove(arg)
        return BUILD[atom.op](*args)

    def _met(self, part: Formula) -> list[Formula]:
        """Returns consequences of a fact: t >= 0 and -t >= 0 imply t == 0; x*y == n > 0 implies that x
        divides n.
        """
        if not isinstance(part, Compare):
            return []
        if part.op == ">=" and Compare(">=", -part.term) in self._facts:
            return [eq(part.term, 0)]
        bound = _upper_bound(part) if part.op == "==" else None
        if bound is None or not (few := _divisors(bound[1])):
            return []
        lone_atoms = [lone(atom) for atom in dict.fromkeys(bound[0]) if len(atom.symbols) == 1]
        return [
            any_of(eq(factor, d) for d in few)
            for factor in lone_atoms
            if interval(factor, self.ranges)[0] >= 0
        ]

    def _of_factors(self, part: Formula) -> list[Formula]:
        """Returns the consequences of an upper bound of a product for its factors, none negative: from x*y <=
        n and y >= m > 0 follows x <= n//m; from x*y == n > 0 follows x >= 1.
        """
        bound = _upper_bound(part)
        if bound is None:
            return []
        mono, most, least = bound
        ranges = {atom: interval(lone(atom), self.ranges) for atom in mono}
        if most < 1 or any(low < 0 for low, _ in ranges.values()):
            return []
        lows = {atom: max(low, 1) if least > 0 else low for atom, (low, _) in ranges.items()}
        found = [ge(lone(atom), 1) for atom, (low, _) in ranges.items() if lows[atom] > low]
        for atom, (_, high) in ranges.items():
            others = prod(low for other, low in lows.items() if other is not atom)
            if others > 0 and most // others < high:
                found.append(le(lone(atom), int(most // others)))
        return found

    def _reducible(self) -> list[Formula]:
        """Removes and returns the facts that have become shorter since symbols moved, to be learnt anew."""
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
        """Returns the comparison with defined symbols, products that rules rewrite, and quotients of a single
        value replaced.
        """
        defined = not self.equal.keys().isdisjoint(names_of(compare))
        plain = _rewritten(compare, self.equal) if defined else compare
        plain = self._settled(plain) if isinstance(plain, Compare) else plain
        if not self._rules or not isinstance(plain, Compare):
            return plain
        term = _reduced(plain.term, [*self._rules.values()])
        return plain if term == plain.term else _COMPARE[plain.op](term, 0)

    def _changed_by(self, rule: Rule) -> list[Formula]:
        """Removes and returns the facts that a new rule rewrites, to be learnt anew."""
        found = [f for f in self._facts if any(_reduced(c.term, [rule]) != c.term for c in comparisons(f))]
        for fact in found:
            del self._facts[fact]
            self._rules.pop(fact, None)
        return found

    def _narrow(self, name: str, part: Formula) -> list[Formula]:
        """Adds a fact over one symbol: its set shrinks, and with it interval and congruence."""
        possible = self.sets.get(name, EVERY)
        values = solutions(part, name, possible)
        if values is None:
            return []
        try:
            left = possible & values
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
        """Sets name = value, a term over its shifted symbol, which lies in the range."""
        self._shift[name] = value
        self.ranges[SHIFTED + name] = range
        self._view = None
        self._forget()

    def _forget(self) -> None:
        """Clears the caches that depend on changed facts."""
        self._answers.clear()
        self._spans.clear()

    def _define(self, name: str, value: Dim) -> list[Formula]:
        """Defines name == value from now on: every fact about the name becomes one about the value."""
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
        self._forget()
        self._moved |= {name, *symbols(value)}
        return again

    @property
    def view(self) -> _Replacement:
        """Returns the replacement of all symbols that are defined or shifted by the free symbols."""
        if self._view is None:
            self._view = _Replacement(
                {**self._shift, **{n: _substituted(v, self._shift) for n, v in self.equal.items()}}
            )
        return self._view

    # --- asking

    def ask(self, formula: Formula) -> bool | None:
        """Returns True if the formula holds wherever every known fact does, False if nowhere, and None if
        this is not decided here.
        """
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

    def _compare(self, compare: Compare, floors: bool = True) -> bool | None:
        """Decides a comparison by interval, by fact, by normal form under the known facts, by the values of a
        symbol, by interval there, by adding one known inequality, and with `floors` by bounds of quotients.
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
        viewed = _rewritten(plain, self.view.replacements)
        if isinstance(viewed, bool):
            return viewed
        assert isinstance(viewed, Compare)
        answer = _judge(viewed.op, *interval(viewed.term, self.ranges))
        if answer is None:
            answer = self._apart(plain)
        if answer is None and self._relations:
            answer = self._related(plain)
        if answer is None and floors and self.thorough:
            answer = self._without_floors(plain)
        return self._whole(compare) if answer is None else answer

    def _apart(self, compare: Compare) -> bool | None:
        """Decides a comparison without a common factor: a*t op 0 is t op 0 for an atom a > 0, taken out of
        every monomial: x*y == x*z is y == z where x > 0
        """
        rest = self._cofactor(compare.term)
        return None if rest is None else self.ask(_COMPARE[compare.op](rest, 0))

    def _without_floors(self, compare: Compare) -> bool | None:
        """Decides t >= 0 by a lower bound in which quotients are replaced by bounds; the same for t < 0."""
        term = compare.term
        if compare.op == ">=":
            return True if self._not_negative(term) else False if self._not_negative(-term - 1) else None
        apart = self._not_negative(term - 1) or self._not_negative(-term - 1)
        return compare.op == "!=" if apart else None

    def _not_negative(self, term: Dim) -> bool:
        """Returns whether a term is at least 0, proved for a lower bound with fewer quotients."""
        for _ in range(QUOTIENTS):
            simpler = self._unfloored(term)
            if simpler is None:
                return False
            least = ge(simpler, 0)
            if not isinstance(least, Compare):
                return least is True
            if self._compare(least, floors=False):
                return True
            term = least.term
        return False

    def _unfloored(self, term: Dim) -> Dim | None:
        """Returns a term that is at least 0 only where t = a*(p//k) + b is, for k >= 1, with its first
        quotient replaced:

        k*t >= a*p + k*b where a <= 0, since p//k <= p/k; k*t >= a*(p - k + 1) + k*b where a >= 0, since p//k
        >= (p - k + 1)/k. None where t has no such quotient.
        """
        if isinstance(term, int):
            return None
        for mono, _ in term.terms:
            for atom in mono:
                if isinstance(atom, Symbol) or atom.op != "//" or mono.count(atom) > 1:
                    continue
                found = self._unfloored_at(term, atom)
                if found is not None:
                    return found
        return None

    def _unfloored_at(self, term: Term, atom: Apply) -> Dim | None:
        p, k = atom.args
        if interval(k, self.ranges)[0] < 1 or any(mono.count(atom) > 1 for mono, _ in term.terms):
            return None
        parts = [(left, c) for mono, c in term.terms if (left := _without(mono, (atom,))) is not None]
        a = total(Term(((left, c),), term.modular) if left else c for left, c in parts)
        b = term - a * lone(atom)
        low, high = interval(a, self.ranges)
        if high <= 0:
            return a * p + k * b
        return a * (p - k + 1) + k * b if low >= 0 else None

    def _cofactor(self, term: Term) -> Dim | None:
        """Returns the term divided by an atom that is positive and in every monomial; None where no atom is.
        """
        (first, _), *others = term.terms
        for atom in first:
            if all(atom in mono for mono, _ in others):
                divisor = Term((((atom,), 1),), term.modular)
                if interval(divisor, self.ranges)[0] > 0:
                    return term // divisor
        return None

    def _factors_of_one(self, term: Term) -> Mono:
        """Returns the factors of t in t - 1, if there are several and all are at least 0: x*y == 1 implies
        that both are 1, and x*y >= 1 that both are at least 1.
        """
        if len(term.terms) != 2 or len(term.terms[0][0]) < 2 or [c for _, c in term.terms] != [1, -1]:
            return ()
        (mono, _), (rest, _) = term.terms
        return () if rest or any(interval(lone(a), self.ranges)[0] < 0 for a in mono) else mono

    def _related(self, compare: Compare) -> bool | None:
        """Decides a comparison by one known k >= 0: t - k >= 0 gives t >= 0, and -t - 1 - k >= 0 gives t < 0.
        """
        names = symbols(compare.term)
        related = [k for k, over in self._relations if not names.isdisjoint(over)][:RELATIONS]
        at_least_0 = self._above(compare.term, related)
        below_0 = self._above(-compare.term - 1, related)
        if compare.op == ">=":
            return True if at_least_0 else False if below_0 else None
        differ = below_0 or self._above(compare.term - 1, related)
        if not differ:
            return None
        return compare.op == "!="

    def _above(self, term: Dim, relations: Sequence[Term]) -> bool:
        """Returns whether t - k >= 0 follows by interval for one of these terms k or a multiple of it."""
        seen = self.view.of(term)
        for k in (multiple for relation in relations for multiple in _multiples(relation, term)):
            if self._hurried():
                break
            other = self.view.of(k)
            if isinstance(seen, int) or isinstance(other, int) or seen.modular or other.modular:
                # a remainder may go with a product of the other
                least = interval(seen - other, self.ranges)[0]
            else:
                least = self._least_difference(self.view.coefficients(seen), self.view.coefficients(other))
            if least >= 0 or self._holds_alone(term - k):
                return True
        return False

    def _holds_alone(self, term: Dim) -> bool:
        """Returns whether a term over one symbol is at least 0 for all values of the symbol."""
        if len(names := symbols(term)) != 1:
            return False
        with suppress(TooLarge):
            return self._by_values(ge(term, 0), *names) is True
        return False

    def _least_difference(self, one: Mapping[Mono, int], other: Mapping[Mono, int]) -> Bound:
        """Returns a lower bound of the difference of two sums, infinite as soon as that of one product is."""
        least: Bound = 0
        for mono, c in one.items():
            if (c := c - other.get(mono, 0)) and (least := least + self._least(mono, c)) == -inf:
                return least
        for mono, c in other.items():
            if mono not in one and (least := least + self._least(mono, -c)) == -inf:
                return least
        return least

    def _least(self, mono: Mono, c: int) -> Bound:
        if not mono:
            return c
        if mono not in self._spans:
            self._spans[mono] = interval(Term(((mono, 1),), False), self.ranges)
        bound = self._spans[mono][c < 0]
        return c * bound if isinstance(bound, int) else bound if c > 0 else -bound

    def _whole(self, formula: Formula) -> bool | None:
        """Decides a formula: as a fact; else exactly, where the formula and the facts about its symbol are
        sets (periodic.py).
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
        """Decides the formula, which is over one symbol, by the values that the symbol may have.

        Raises TooLarge where their sets are too large.
        """
        possible = self.sets.get(name, EVERY)
        values = solutions(formula, name, possible)
        if values is None:
            raise TooLarge
        return possible.lies_in(values)


def _multiples(relation: Term, term: Dim) -> Iterator[Dim]:
    """Yields a term, and those multiples of it that share a summand with another term."""
    yield relation
    summands = dict(coefficients(term))
    ratios = {divmod(summands[mono], c) for mono, c in coefficients(relation) if mono and mono in summands}
    yield from (relation * times for times, rest in sorted(ratios) if times > 1 and not rest)


@lru_cache(maxsize=256)
def _divisors(number: int) -> tuple[int, ...]:
    """Returns the positive divisors of a positive number; empty where they are many, or where the number is
    large and not made of small primes.
    """
    if number < 1:
        return ()
    found, left = [1], number
    for prime in PRIMES:
        powers = [1]
        while left % prime == 0:
            left //= prime
            powers.append(powers[-1] * prime)
        found = [d * power for d in found for power in powers]
        if len(found) > DIVISORS:
            return ()
    return tuple(sorted(found)) if left == 1 else ()


def _upper_bound(part: Formula) -> tuple[Mono, int, int] | None:
    """Returns (m, n, k) where the formula is k <= m <= n for a product m of several atoms; k is 0 where there
    is no lower bound.
    """
    if not isinstance(part, Compare) or part.op == "!=":
        return None
    (mono, c), *rest = part.term.terms
    if len(mono) < 2 or any(m for m, _ in rest):
        return None
    constant = rest[0][1] if rest else 0
    if part.op == "==":
        return None if constant % c else (mono, -constant // c, -constant // c)
    return (mono, constant // -c, 0) if c < 0 else None


class _Replacement:
    """A replacement of symbols by dims, with a cache of the dims that result."""

    def __init__(self, replacements: Mapping[str, Dim]) -> None:
        self.replacements = replacements
        self._dims: dict[Dim, Dim] = {}
        self._coefficients: dict[Term, Mapping[Mono, int]] = {}

    def of(self, dim: Dim) -> Dim:
        """Returns the dim, its symbols replaced."""
        if dim not in self._dims:
            self._dims[dim] = _substituted(dim, self.replacements)
        return self._dims[dim]

    def coefficients(self, term: Term) -> Mapping[Mono, int]:
        """Returns the coefficients of the products of a term."""
        if term not in self._coefficients:
            self._coefficients[term] = dict(term.terms)
        return self._coefficients[term]


_COMPARE: Mapping[str, Callable[[Dim, Dim], Formula]] = {"==": eq, "!=": ne, ">=": ge}


def _judge(op: str, low: float, high: float) -> bool | None:
    """Decides `term op 0` where term lies from low to high."""
    if op == ">=":
        return True if low >= 0 else False if high < 0 else None
    if low > 0 or high < 0:
        return op == "!="
    return op == "==" if low == high == 0 else None


def _definition(term: Term) -> tuple[str, Dim] | None:
    """Returns (s, t) such that term == 0 is equivalent to s == t, for a symbol s that t does not contain; of
    several such symbols the last by name.
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
    """Splits a comparison r + c*max(x, y) op 0 into cases, for an integer c and r without x and y inside:

    - c > 0: r + c*max >= 0 is `r + c*x >= 0 or r + c*y >= 0`; c < 0: the same with `and`
    - c*max == c*x is x >= y, and != its negation

    and vice versa for min.
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
"""A product of atoms, and the dim that it equals."""


def _rule(term: Term) -> Rule | None:
    """Returns (m, t) such that term == 0 is equivalent to m == t, where m is the greatest product, if m has
    no factor and t does not contain m.
    """
    mono, c = max(((m, c) for m, c in term.terms if m), key=lambda part: _size(part[0]))
    if c not in (1, -1):
        return None
    rest = Term(((mono, 1),), term.modular) - c * term
    return None if _reduced(rest, [(mono, 0)]) != rest else (mono, rest)


def _size(mono: Mono) -> tuple[int, int, list[str]]:
    texts = [atom.text for atom in mono]
    return len(mono), sum(map(len, texts)), texts


def _reduced(dim: Dim, rules: Sequence[Rule]) -> Dim:
    """Returns the dim after all rules, inside its atoms too."""
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
    """Returns mono / part, if it is a product; else None."""
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
    """Returns the comparison with symbols replaced, or unchanged where that divides by zero."""
    try:
        return rewrite(compare, replacements)
    except ZeroDivisionError:
        return compare


def _substituted(dim: Dim, replacements: Mapping[str, Dim]) -> Dim:
    try:
        return substitute(dim, replacements)
    except ZeroDivisionError:
        return dim
