"""The ledger of a run: the program recorded so far, its branches and constraints, and the facts that are
known.

A run that looks ahead (`loop.py`) marks its position, goes on, and then takes back the records, the facts,
or both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn, TypeVar

import torch

from ..constraints.engine.generate import Generator
from ..constraints.ir.language import Constraint, Note, Tensor, Value
from ..constraints.ir.program import Contents, Input, Iteration, Node, Ref
from ..constraints.ir.system import Answer, Condition, Domain, Oracle
from ..constraints.terms.dims import Dim
from ..constraints.terms.formula import Compare, Formula, conjuncts, eq, free_symbols, negate

Said = TypeVar("Said", Constraint, Note)


@dataclass(frozen=True, slots=True)
class Position:
    """The number of records of each kind."""

    nodes: int
    inputs: int
    values: int
    constraints: int
    notes: int
    unbacked: int
    conditions: int
    iterations: int


@dataclass(frozen=True, slots=True)
class Mark:
    """A position, and the facts known there."""

    position: Position
    given: tuple[Formula, ...]
    settled: Mapping[Formula, bool]


class Ledger:
    """The records of a run, and its knowledge about sizes."""

    def __init__(self, domain: Domain, oracle: Oracle, generator: Generator) -> None:
        self.domain, self.oracle, self.generator = domain, oracle, generator
        self.inputs: list[Input] = []
        self.nodes: list[Node] = []
        self.values: dict[int, Value] = generator.said.values
        self.conditions: list[Condition] = []
        self.iterations: list[Iteration] = []
        self.real: dict[int, tuple[torch.Tensor, Tensor, Ref]] = {}
        """Parameters, buffers and constants that the program has used, by identity: kept alive, so that no
        other object gets the same identity.
        """
        self.settled: dict[Formula, bool] = {}
        """Conditions that have been decided on this path."""
        self.left: dict[str, Callable[[], NoReturn]] = {}
        """For each size that a `while` leaves, for which only bounds are known, a function that ends the run
        where the bounds do not suffice.
        """
        self.supposes: Callable[[], NoReturn] | None = None
        """A function that ends the run where anything is refused. It is set on a path that such sizes may not
        take.
        """
        self._given: list[Formula] = [*domain.assumptions]
        self._seen_constraints = 0
        self._made_values = 0
        self._indices: set[str] = set()
        generator.follow(self.inputs, self.nodes)

    # ---- writing

    def new_value(self, value: Value) -> Ref:
        ref = Ref(self._made_values)
        self._made_values += 1
        self.values[ref.id] = value
        self.generator.contents.name(value, ref.id)
        return ref

    def new_input(
        self, name: str, value: Value, parameter: bool = False, holds: Contents = "data"
    ) -> Ref:
        ref = self.new_value(value)
        if not parameter:
            self.generator.contents.given_freely(value, ref.id)
        self.inputs.append(Input(ref.id, name, value, parameter, holds))
        return ref

    def index(self, name: str) -> str:
        """Returns a new symbol for the iterations of a loop, named after its variable."""
        while name in self._indices or name in self.domain.symbols or name[-1:].isdigit():
            name += "_"  # sizes that data decide end in digits
        self._indices.add(name)
        return name

    def branch(self, condition: Condition) -> None:
        """Records a branch decision."""
        self.conditions.append(replace(condition, after=len(self.generator.said.constraints)))
        if condition.formula is not None:
            self._settle(condition.formula, condition.taken)
            told = condition.known
            if not condition.forced:
                self._learn(told)
            elif isinstance(told, Compare) and told.op == "==":
                self.generator.learn(told)  # no news to the oracle, but sizes are written by it

    def require_instead(self, constraint: Constraint, formula: Formula) -> None:
        """Replaces a node's requirement by another form of it."""
        self.generator.node = constraint.node
        self.generator.require(formula, constraint.reason, constraint.error)

    # ---- knowing

    def known(self) -> tuple[Formula, ...]:
        """Returns the facts that hold here: the domain, the branches taken, and the requirements of the calls
        so far.
        """
        constraints = self.generator.said.constraints
        fresh = constraints[self._seen_constraints :]
        if self.left and fresh:
            self._suffice([constraint.formula for constraint in fresh])
        self._given.extend(c.formula for c in fresh if c.formula is not False)
        self._seen_constraints = len(constraints)
        return (*self._given, *self.generator.said.unbacked.values())

    def _suffice(self, formulas: Sequence[Formula]) -> None:
        """Checks that requirements on the sizes that a `while` leaves, or on a path that these may not take,
        follow from what held before them.
        """
        before = (*self._given, *self.generator.said.unbacked.values())
        for formula in formulas:
            fails = self.supposes or self.fails_on(free_symbols(formula))
            if fails is not None and self.oracle.decide(formula, before) is not Answer.ALWAYS:
                fails()

    def fails_on(self, names: frozenset[str]) -> Callable[[], NoReturn] | None:
        """Returns what ends the run where one of these is a size that a `while` leaves, else None."""
        return next((fails for name, fails in self.left.items() if name in names), None)

    def declare(self, domain: Domain) -> None:
        """Replaces the domain by one that states more."""
        self.known()
        before = frozenset(self.domain.assumptions)
        self._given += [known for known in domain.assumptions if known not in before]
        self.domain = domain
        self.generator.declare(domain)

    def judged(self, formula: Formula, more: Sequence[Formula] = ()) -> Answer:
        """Returns the truth of the formula under the facts that hold here, and `more`."""
        formula = self.generator.equations.simplify_formula(formula)
        if isinstance(formula, bool):
            return Answer.ALWAYS if formula else Answer.NEVER
        return self.oracle.decide(formula, (*self.known(), *more))

    def certain(self, formula: Formula) -> bool:
        return self.judged(formula) is Answer.ALWAYS

    def simplified(self, dim: Dim) -> Dim:
        """Returns the dim, rewritten by known equations."""
        return self.generator.equations.simplify(dim)

    def equal(self, a: Dim, b: Dim) -> bool:
        """Returns whether the two dims are certainly equal."""
        return a == b or self.certain(eq(a, b))

    def assume(self, formula: Formula) -> None:
        """Adds a formula to the facts, until they are taken back."""
        for part in conjuncts(formula):
            self._settle(part, True)
        self._learn(formula)

    def _settle(self, formula: Formula, truth: bool) -> None:
        self.settled[formula], self.settled[negate(formula)] = truth, not truth

    def _learn(self, formula: Formula) -> None:
        self.known()
        self._given.append(formula)
        self.generator.learn(formula)

    # ---- going back

    @property
    def position(self) -> Position:
        said = self.generator.said
        return Position(
            len(self.nodes),
            len(self.inputs),
            self._made_values,
            len(said.constraints),
            len(said.notes),
            len(said.unbacked),
            len(self.conditions),
            len(self.iterations),
        )

    def mark(self) -> Mark:
        self.known()
        return Mark(self.position, tuple(self._given), dict(self.settled))

    def erase(self, mark: Mark) -> None:
        """Takes back the nodes recorded since the mark."""
        at, said = mark.position, self.generator.said
        del self.nodes[at.nodes :], self.inputs[at.inputs :], self.iterations[at.iterations :]
        del said.notes[at.notes :]
        for name in (erased := [*said.unbacked][at.unbacked :]):
            del said.unbacked[name]
        if erased:
            self.generator.forget_data()
        for id in range(at.values, self._made_values):
            self.values.pop(id, None)
        self.real = {key: known for key, known in self.real.items() if known[2].id < at.values}

    def forget(self, mark: Mark) -> None:
        """Takes back the requirements, branches and facts recorded since the mark."""
        del self.generator.said.constraints[mark.position.constraints :]
        del self.conditions[mark.position.conditions :]
        self._given, self.settled = [*mark.given], dict(mark.settled)
        self._seen_constraints = mark.position.constraints
        self.learn_anew()

    def start_again(self, mark: Mark) -> None:
        """Takes back everything since the mark, except the branch decisions of this path."""
        taken = [c for c in self.conditions[mark.position.conditions :] if not c.forced]
        self.erase(mark)
        self.forget(mark)
        for condition in taken:
            self.branch(condition)

    def learn_anew(self) -> None:
        """Derives all facts again, after some were taken back."""
        self.generator.forget()
        for known in self.known():
            self.generator.learn(known)

    def data_since(self, position: Position) -> tuple[str, ...]:
        """Returns the sizes that the data has decided since then."""
        return (*[*self.generator.said.unbacked][position.unbacked :],)

    def calls_since(self, mark: Mark) -> tuple[str, ...]:
        """Returns the operators of the calls since the mark. A call with numbers only is no node."""
        nodes = self.nodes[mark.position.nodes :]
        return tuple(node.op for node in nodes if node.refs)

    def said_since(self, mark: Mark) -> tuple[list[tuple[int, Constraint]], list[Condition]]:
        """Returns the constraints since the mark, each with its position, and the branches."""
        first = mark.position.constraints
        constraints = enumerate(self.generator.said.constraints[first:], first)
        return [*constraints], self.conditions[mark.position.conditions :]

    def drop_unused(self, start: Position, stop: Position, used: set[int]) -> None:
        """Removes the nodes between two positions whose results neither later nodes nor `used` refer to."""
        later = self.nodes[stop.nodes :]
        used = used | {r.id for node in later for r in node.refs}
        between = self.nodes[start.nodes : stop.nodes]
        kept = [node for node in between if not used.isdisjoint(node.results)]
        for id in {r for node in between for r in node.results} - {r for node in kept for r in node.results}:
            del self.values[id]
        self.nodes[start.nodes :] = [*kept, *later]
        back, said = len(between) - len(kept), self.generator.said
        said.constraints[:] = _moved(said.constraints, stop.nodes, back)
        said.notes[:] = _moved(said.notes, stop.nodes, back)
        for place in range(start.iterations, len(self.iterations)):
            one = self.iterations[place]
            self.iterations[place] = replace(one, start=one.start - back, stop=one.stop - back)


def _moved(said: list[Said], first: int, back: int) -> list[Said]:
    """Returns the records with the indices of nodes from `first` on reduced by `back`."""
    return [replace(one, node=one.node - back) if one.node >= first else one for one in said]
