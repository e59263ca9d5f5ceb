"""A `while` whose iterations shrink something by amounts that differ: `while len(x) > 3: x = x[::2]`.

No formula gives the number of its iterations, nor the sizes that it leaves. But both are bounded, and that is
enough where the code behind it requires nothing more of them.

**The argument.** The first iteration runs as it is, and leads to the state s. The sizes that the second would
change become symbols u; only 0 <= u <= s is known about them. The body runs once in that state: it has to
lead to sizes between 0 and u, so that the bounds hold after any number of iterations by induction. One of
these sizes has to become less than u, so that the loop ends. The requirements of the body have to follow from
the bounds, unless the loop divides its size for as long as that is whole (`divisions.py`).

**The test.** After an iteration the program tests the state e(u) that the body has led to. If what it tests
is G(e(u)), and u occurs nowhere else in it, then the test is G for every state that an iteration leads to.
So G(u) holds before each iteration but the first, and not of the sizes that the loop leaves.

**Afterwards** these sizes are symbols with the same bounds, for which G does not hold. They are no data.
Where the bounds do not decide a branch or a requirement that mentions them, the loop fails (`Ledger.left`),
and the recording starts again without this.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import replace

from ...constraints.ir.language import Constraint
from ...constraints.ir.program import Iteration
from ...constraints.ir.system import Answer
from ...constraints.terms.dims import Dim, Term, lone, mapped, sym, symbols
from ...constraints.terms.formula import (
    And,
    Compare,
    Formula,
    Or,
    all_of,
    any_of,
    compare,
    conjuncts,
    eq,
    free_symbols,
    ge,
    implies,
    le,
    negate,
    rewrite,
)
from ..ledger import Mark
from .active import Stage
from .cells import Cell
from .divisions import Iterations, divisions
from .laws import Law, Things, guess
from .loop import Loop

MOST_LAWS = 8
"""At most this many laws are tried, each weaker than the one before."""
MOST_LEAST = 2
"""Sizes that a loop leaves may be known to be at least this number."""
_HERE = "#here"
"""The symbol of a size in a test that is stated of any state."""


class Descent(Loop):
    """One execution of such a `while`."""

    def part(self, test: Formula) -> bool:
        """Notes a part of the test after an iteration, which holds if the next iteration is made."""
        self._tested.append(test)
        return True

    def goes_on(self, test: Formula) -> bool:
        """Returns whether there is another iteration, given the last part of the test after an iteration."""
        assert self._elements is not None
        if self.stage is not None:
            self._tested.append(test)
        return next(self._elements, None) is not None

    def way(self, formula: Formula | None) -> bool:
        self.fail("a branch in a `while` differs from iteration to iteration")

    def _iterations(self, n: Dim, first: int) -> Iterator[bool]:
        run = self.run
        self._tested: list[Formula] = []
        self._stands: dict[tuple[int, int], Term] = {}
        """The symbol in place of a size, by the identity of its law and its position."""
        self._least: Mapping[tuple[int, int], int] = {}
        """The least sizes that an iteration leads to."""
        self._facts: Mapping[tuple[int, int], Formula] = {}
        """Facts about a size that the loop leaves besides its bounds, in terms of _HERE."""
        self._inside: tuple[Formula, ...] = ()
        """Facts about these symbols that hold in the body alone, where there is a second iteration."""
        self._left: Mapping[tuple[int, int], frozenset[int]] = {}
        """All that the loop may leave of such a size, where that is known."""
        self._first = 1
        self.loops.enter(self)
        start, self._said_before = self._look(), run.position.constraints
        yield from self._element(0, Stage.ITSELF)
        law, found = yield from self._supposed()
        self._things = Things(start.value, law.cell.value)
        whole = run.mark()
        self._first_datum = whole.position.unbacked
        for _ in range(MOST_LAWS):
            mark = yield from self._any(law, found, Stage.GUESS, {})
            weaker, found = self._check(law, 0, run)
            facts = self._tests(law, found, mark) if weaker is law else {}
            run.start_again(whole)
            if weaker is law:
                mark = yield from self._any(law, found, Stage.ALL, facts)
                weaker, found = self._check(law, 0, run)
                if weaker is law:
                    break
                run.start_again(whole)
            law = weaker
        else:
            self.fail("no law is found for a `while`")
        left_open = self._concludes(mark, whole)
        if left_open:
            self._divides(left_open, law, found, start)
        else:
            self._descends(law, found)
        self._leaves(law, found, facts)
        self._end()

    def _supposed(self) -> Generator[bool, None, tuple[Law, Cell]]:
        """Runs a second iteration and undoes it; returns the law of what it leaves unchanged, and the state.
        """
        run, before, mark = self.run, self._look(), self.run.mark()
        self._tested_first = all_of(self._tested)
        run.assume(self._tested_first)
        yield from self._element(0, Stage.GUESS)
        after, data = self._look(), frozenset(run.data_since(mark.position))
        law, found = self._attempt(lambda: guess(before, after, self.index, 1, run, data))
        run.erase(mark)
        run.forget(mark)
        return self._attempt(lambda: law.without(data | {self.index})), found

    def _any(
        self, law: Law, found: Cell, stage: Stage, facts: Mapping[tuple[int, int], Formula]
    ) -> Generator[bool, None, Mark]:
        """Runs the body in any state that the law allows, in which the facts hold of its sizes; returns the
        mark before it.
        """
        self._stands.clear()
        self._make(law, found, 0, carry=True)
        mark = self.run.mark()
        self._inside = tuple(rewrite(fact, {_HERE: self._stands[key]}) for key, fact in facts.items())
        for known in self._inside:
            self.run.assume(known)
        self._tested.clear()
        yield from self._element(0, stage)
        return mark

    def _unknown(self, law: Law, place: int) -> Dim:
        """Returns the symbol in place of a size: not more than after the first iteration. It returns a number
        where the loop always leaves that.
        """
        if len(self._left.get((id(law), place), ())) == 1:
            (number,) = self._left[id(law), place]
            return number
        least, most = (0, law.cell.dims[place]) if law.cell.fixed[0] == "tensor" else (None, None)
        least = self._least.get((id(law), place), least)
        fact = self._facts.get((id(law), place), True)
        made = self.run.generator.fresh("left", least, most, lambda own: rewrite(fact, {_HERE: own}))
        self._stands[id(law), place] = made
        return made

    def _certain_inside(self, formula: Formula) -> bool:
        """Returns whether the formula holds in any iteration but the first."""
        return self.run.judged(formula, self._inside) is Answer.ALWAYS

    def _tests(self, law: Law, found: Cell, mark: Mark) -> Mapping[tuple[int, int], Formula]:
        """Returns G for each size, if it is about that size alone, by its law's identity and its position.

        The iteration must have made no supposition, since its sizes could be written by that.
        """
        run, tested = self.run, all_of(self._tested)
        said, _ = run.said_since(mark)
        if len(run.settled) != len(mark.settled) or any(_equates(c.formula) for _, c in said):
            return {}
        made, facts = frozenset(self._data), {}
        for key, _, size in _changed(law, found):
            fact = _about(tested, size)
            if _HERE in free_symbols(fact) and free_symbols(fact).isdisjoint(made):
                facts[key] = fact
        return facts

    def _descends(self, law: Law, found: Cell) -> None:
        """Fails unless all sizes that the law does not state stay within their bounds, and one of them is
        less after an iteration than before.
        """
        inside, changed = self._certain_inside, [*_changed(law, found)]
        sizes = [(self._stands[key], size) for key, one, size in changed if one.cell.fixed[0] == "tensor"]
        if not all(inside(all_of((ge(after, 0), le(after, before)))) for before, after in sizes):
            self.fail("a size may grow in a `while`")
        if not any(inside(le(after, before - 1)) for before, after in sizes):
            self.fail("a `while` is not known to end")

        def at_least(first: Dim, other: Dim, n: int) -> bool:
            return self.run.certain(ge(first, n)) and inside(ge(other, n))

        self._least = {
            key: next((n for n in range(MOST_LEAST, 0, -1) if at_least(one.cell.dims[key[1]], size, n)), 0)
            for key, one, size in changed
            if one.cell.fixed[0] == "tensor"
        }

    def _concludes(self, mark: Mark, whole: Mark) -> list[Constraint]:
        """Forgets what holds in the body alone; returns the requirements of it that do not always hold."""
        run = self.run
        said, conditions = run.said_since(mark)
        run.forget(mark)
        for condition in conditions:
            if not condition.forced:
                run.branch(condition)
        times = run.generator.fresh("times", 1, None)
        run.iterations.append(Iteration(self.index, 1, times, whole.position.nodes, run.position.nodes))
        return [constraint for _, constraint in said if not self._certain_inside(constraint.formula)]

    def _divides(self, left_open: list[Constraint], law: Law, found: Cell, start: Cell) -> None:
        """Requires, of the size before the loop, what all iterations require of theirs.

        Fails where the loop does not divide it, or where the first iteration differs from the others.
        """
        run, (constraint, *_) = self.run, left_open
        changed = [*_changed(law, found)]
        before = [size for key, *_ in changed for size in _size_at(law, start, key)]
        if len(changed) != 1 or len(before) != 1:
            self.fail(f"{constraint.reason}: not understood for all iterations")
        ((key, one, after),), (size,) = changed, before
        own = self._stands[key]
        (name,) = symbols(own)
        needs, goes_on = all_of(c.formula for c in left_open), all_of(self._tested)
        known = free_symbols(all_of((needs, goes_on, ge(after, 0)))) <= {name}
        of = Iterations(name, needs, after, goes_on)
        proves: Callable[[Formula], bool] = lambda f: run.oracle.decide(f, (ge(own, 0),)) is Answer.ALWAYS  # noqa: E731
        divided = divisions(of, proves) if known and one.cell.fixed[0] == "tensor" else None
        alike = rewrite(all_of((needs, eq(after, one.cell.dims[key[1]]))), {name: size})
        alike = all_of((ge(size, 1), alike))
        if divided is None or not run.certain(alike) or not self._tests_alike(of, size):
            self.fail(f"{constraint.reason}: not understood for all iterations")
        never = functools.cache(lambda n: run.judged(eq(size, n)) is Answer.NEVER)
        self._requires(constraint, rewrite(constraint.formula, {name: size}), divided.runs(size, never))
        self._left = {key: divided.leaves(never)}

    def _requires(self, of: Constraint, first: Formula, formula: Formula) -> None:
        """Requires the formula instead of what the first iteration requires, which follows from it."""
        run, said = self.run, self.run.generator.said.constraints

        def follows(formula: Formula) -> bool:
            return run.oracle.decide(formula, (first,)) is Answer.ALWAYS

        for place in range(self._said_before, len(said)):
            one = said[place]
            if (one.error, one.by_data) == (of.error, of.by_data) and follows(one.formula):
                said[place] = replace(one, formula=formula)
                return run.assume(formula)
        run.require_instead(of, formula)

    def _tests_alike(self, of: Iterations, size: Dim) -> bool:
        """Returns whether the test after the first iteration is that after any other one."""
        test, first = rewrite(of.goes_on, {of.size: size}), self._tested_first
        return self.run.certain(all_of((implies(test, first), implies(first, test))))

    def _leaves(self, law: Law, found: Cell, facts: Mapping[tuple[int, int], Formula]) -> None:
        """Makes the state what it is after the last iteration."""
        self.loops.ended.update(dict.fromkeys((self.index, *self._data), self.site))
        self._facts = {key: negate(fact) for key, fact in facts.items()}
        self._facts |= {key: any_of(eq(sym(_HERE), n) for n in left) for key, left in self._left.items()}
        self._stands.clear()
        self._make(law, found, 0, carry=False)
        too_little = functools.partial(self.fail, "of the sizes that a `while` leaves, only bounds are known")
        for size in self._stands.values():
            for name in symbols(size) - self.loops.ended.keys():
                self.run.left[name] = too_little


def _changed(law: Law, found: Cell) -> Iterator[tuple[tuple[int, int], Law, Dim]]:
    """Yields the sizes about which a law says nothing, as they were found, with their positions and laws."""
    for place, (stated, size) in enumerate(zip(law.dims, found.dims, strict=True)):
        if stated is None:
            yield (id(law), place), law, size
    for child, member in zip(law.children, found.children, strict=True):
        yield from _changed(child, member)


def _size_at(law: Law, cell: Cell, key: tuple[int, int]) -> Iterator[Dim]:
    """Yields the size in the cell for which the law has this key, where the cell is built as the law's is."""
    if id(law) == key[0] and key[1] < len(cell.dims):
        yield cell.dims[key[1]]
    if len(law.children) == len(cell.children):
        for child, member in zip(law.children, cell.children, strict=True):
            yield from _size_at(child, member, key)


def _about(formula: Formula, size: Dim) -> Formula:
    """Returns the formula with _HERE in place of this size, where that is no sum and no symbol."""
    match formula:
        case And(parts=parts):
            return all_of(_about(part, size) for part in parts)
        case Or(parts=parts):
            return any_of(_about(part, size) for part in parts)
        case Compare(op=op, term=term):
            replaced = mapped(term, lambda atom: sym(_HERE) if lone(atom) == size else lone(atom))
            return compare(op, replaced)
    return formula


def _equates(formula: Formula) -> bool:
    """Returns whether the formula contains an equation by which sizes could be rewritten."""
    return any(not isinstance(part, Compare) or part.op != ">=" for part in conjuncts(formula))
