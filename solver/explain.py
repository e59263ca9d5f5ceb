"""Explains conflicts between sizes: follows the sizes that a requirement mentions back to their sources, and
finds the lines that impose a condition.

A size flows from operand to result where the rule says so: the rule is applied again with a fresh symbol in
place of the operand's size, and every size that changes depends on it. So this module needs no knowledge
about operators.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import structs

from ..constraints.engine.generate import Generator
from ..constraints.engine.ruleset import Rules, leaves
from ..constraints.ir.language import Constraint, Layout, Slice, Tensor, Value, tensors
from ..constraints.ir.program import Argument, Ref, parts_of
from ..constraints.ir.system import Domain, Path
from ..constraints.terms.dims import Dim, sym, symbols
from ..constraints.terms.formula import Formula, conjuncts, free_symbols, ge, negate, rewrite
from .decide import Requirement
from .tactics.judge import Judge

if TYPE_CHECKING:
    import networkx as nx

Place: TypeAlias = "tuple[int, int]"
"""A size of a path's values: the id of the value, and the axis."""

MAX_CALLS: Final = 200
"""At most this many calls are followed back."""
SHORT: Final = 6
"""The short chain has at most this many steps."""
MAX_PARTS: Final = 8
MAX_REQUIREMENTS: Final = 32
"""The largest number of parts of a condition that are traced to their lines, and of requirements searched for
each.
"""
_PROBE: Final = "size_in_question__"


@dataclass(frozen=True, slots=True)
class ConflictStep:
    """A value on the path to a conflict."""

    value: int
    """The id of the value in the program."""
    node: int | None
    """The call that returned the value; None for an input or a parameter."""
    axes: tuple[int, ...]
    """The axes whose sizes matter."""
    passed: bool
    """Whether the short chain leaves the step out, because it passes the sizes on unchanged or for lack of
    room.
    """


class WithoutRequirements(Generator):
    """A generator that requires nothing, for a call of which only the results are wanted."""

    def require(self, formula: Formula, *told: Any, **how: Any) -> None:
        pass


class Flow:
    """The dependencies between the sizes of a path's values, computed on demand."""

    def __init__(self, path: Path, rules: Rules, domain: Domain) -> None:
        self.path, self.rules = path, rules
        self.domain = Domain((*domain.symbols, _PROBE), (*domain.assumptions, ge(sym(_PROBE), 1)))
        self._nodes = path.program.nodes
        self._maker = {r: index for index, node in enumerate(self._nodes) for r in node.results}
        self._parameters = {i.id for i in path.program.inputs if i.parameter}
        self._effects: dict[int, dict[Place, set[Place]]] = {}

    def chain(self, requirements: Iterable[Requirement]) -> tuple[ConflictStep, ...]:
        """Returns the steps that lead to the requirements, in program order: inputs and parameters first."""
        import networkx as nx  # which takes a while to import, and most checks find nothing

        graph: nx.DiGraph[Any] = nx.DiGraph()
        concerned: dict[Place, None] = {}
        for requirement in requirements:
            found = (
                self._declared(requirement.needs)
                if requirement.constraint is None
                else self._concerned(requirement.constraint)
            )
            concerned.update(dict.fromkeys(found))
        self._follow(graph, [*concerned])
        axes: dict[int, list[int]] = {}
        for value, axis in graph:
            axes.setdefault(value, []).append(axis)
        aside = self._parameters - {value for value, _ in concerned}
        made = {place[0] for place in graph if self._is_made(graph, place)} - aside
        if len(made) > SHORT:
            made &= self._nearest(graph, concerned)
        order = sorted(axes, key=lambda value: (self._maker.get(value, -1), value))
        return tuple(
            ConflictStep(value, self._maker.get(value), tuple(sorted(axes[value])), value not in made)
            for value in order
        )

    def _follow(self, graph: nx.DiGraph[Any], todo: list[Place]) -> None:
        """Adds all sizes that these depend on, with an edge from each source to the size that it flows into.
        """
        graph.add_nodes_from(todo)
        while todo:
            place = todo.pop()
            node = self._maker.get(place[0])
            if node is None or (node not in self._effects and len(self._effects) >= MAX_CALLS):
                continue
            for source, reached in self._effect(node).items():
                if place in reached:
                    if source not in graph:
                        todo.append(source)
                    graph.add_edge(source, place)

    def _is_made(self, graph: nx.DiGraph[Any], place: Place) -> bool:
        """Returns whether the call computes the size or moves it to another axis, rather than passing it on.
        """
        size, axis, rank = self._size(place), place[1], self._rank(place[0])
        for source in graph.predecessors(place):
            same_axis = source[1] == axis or self._rank(source[0]) - source[1] == rank - axis
            if same_axis and self._size(source) == size:
                return False
        return True

    def _nearest(self, graph: nx.DiGraph[Any], concerned: Mapping[Place, None]) -> set[int]:
        """Returns the values on a shortest path from its source to each of the sizes concerned."""
        import networkx as nx

        kept: set[int] = set()
        for place in concerned:
            sources = [p for p in (*nx.ancestors(graph, place), place) if graph.in_degree(p) == 0]
            first = [p for p in sources if p[0] not in self._parameters] or sources
            ways = [nx.shortest_path(graph, source, place) for source in first]
            if ways:
                way = min(ways, key=len)
                kept.update(value for value, _ in (way[0], *way[1:][1 - SHORT :]))
        return kept

    def _size(self, place: Place) -> Dim:
        value = self.path.values[place[0]]
        assert isinstance(value, Tensor)
        return value.shape[place[1]]

    def _rank(self, id: int) -> int:
        value = self.path.values[id]
        return value.rank if isinstance(value, Tensor) else 0

    # ---- what a call does with a size

    def _operands(self, index: int, parameters: bool = True) -> Iterator[Place]:
        node = self._nodes[index]
        for id in dict.fromkeys(r.id for r in node.refs):
            for axis in range(self._rank(id) if parameters or id not in self._parameters else 0):
                yield id, axis

    def _concerned(self, constraint: Constraint) -> list[Place]:
        """Returns the operands' sizes that the requirement mentions; all of them where it is not about sizes.
        """
        index = constraint.node
        _, plain = self._again(index, None)
        wanted = {c.formula for c in plain if c.reason == constraint.reason} | {constraint.formula}
        found = [p for p in self._operands(index) if any(f in wanted for f in self._requires(index, p))]
        return found or [*self._operands(index)]

    def _declared(self, formula: Formula) -> list[Place]:
        """Returns the sizes of inputs that a formula mentions. They are the origin of a check by the program
        itself, which is not a call.
        """
        names = free_symbols(formula)
        return [
            (given.id, axis)
            for given in self.path.program.inputs
            if isinstance(given.type, Tensor) and not given.parameter
            for axis, size in enumerate(given.type.shape)
            if not names.isdisjoint(symbols(size))
        ]

    def _requires(self, index: int, place: Place) -> Iterator[Formula]:
        """Yields the requirements of the call on a size, with the actual size put in."""
        for constraint in self._again(index, place)[1]:
            if _PROBE in free_symbols(constraint.formula):
                yield rewrite(constraint.formula, {_PROBE: self._size(place)})

    def _effect(self, index: int) -> dict[Place, set[Place]]:
        """Returns, for each size of the operands, the sizes of the results that depend on it."""
        if index not in self._effects:
            results = self._nodes[index].results
            plain = self._results(index, None)
            self._effects[index] = {
                place: {
                    (result, axis)
                    for result, *pair in zip(results, plain, self._results(index, place), strict=False)
                    for axis in _differences(*pair)
                    if axis < self._rank(result)
                }
                for place in self._operands(index, parameters=False)  # these tell nothing further on
            }
        return self._effects[index]

    def _results(self, index: int, place: Place | None) -> list[Value]:
        return self._again(index, place, WithoutRequirements(self.rules, self.domain))[0]

    def _again(
        self, index: int, place: Place | None, generator: Generator | None = None
    ) -> tuple[list[Value], list[Constraint]]:
        """Returns the results and requirements of a call, repeated with the probe for one of its sizes."""
        node = self._nodes[index]
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for name, argument in node.args:
            value = self._resolve(argument, place)
            if name.startswith("arg") and name[3:].isdigit():
                positional.append(value)
            else:
                named[name] = value
        generator = generator or Generator(self.rules, self.domain)
        _, result = generator.call(node.op, tuple(positional), named)
        return [] if result is None else leaves(result), generator.said.constraints

    def _resolve(self, argument: Argument, place: Place | None) -> Any:
        if isinstance(argument, Ref):
            value = self.path.values[argument.id]
            if place is None or place[0] != argument.id or not isinstance(value, Tensor):
                return value
            shape = (*value.shape[: place[1]], sym(_PROBE), *value.shape[place[1] + 1 :])
            layout = value.layout if isinstance(value.layout, Layout) else Layout.UNKNOWN
            return structs.replace(value, shape=shape, layout=layout)
        if isinstance(argument, tuple):
            return tuple(self._resolve(part, place) for part in argument)
        if isinstance(argument, Slice):
            return Slice(*(self._resolve(part, place) for part in parts_of(argument)))
        return argument


def _differences(before: Value, after: Value) -> Iterator[int]:
    """Yields the axes at which two results differ."""
    if isinstance(before, Tensor) and isinstance(after, Tensor) and before.rank == after.rank:
        for axis, (one, other) in enumerate(zip(before.shape, after.shape, strict=True)):
            if one != other:
                yield axis


def shape_of(path: Path, step: ConflictStep) -> str:
    """Returns the text of a step's value with its sizes."""
    return ", ".join(map(str, tensors(path.values[step.value])))


# ---- which lines impose a condition


@dataclass(frozen=True, slots=True)
class Imposed:
    """A part of the accepted set, and a minimal set of requirements that impose it."""

    condition: Formula
    requirements: tuple[Requirement, ...]
    refused: Mapping[str, int] | None
    """Sizes that satisfy every other part but not this one; None where there are none."""


def imposed(
    judge: Judge, domain: Domain, accepted: Formula, residual: Sequence[Requirement]
) -> Iterator[Imposed]:
    """Yields each part of the condition with the requirements that imply it, where there are not very many.

    A part p follows from requirements R where domain, R and not p contradict each other; a minimal core of
    these contains exactly the requirements that are needed.
    """
    by_needs = {r.needs: r for r in reversed(residual)}
    parts = [*conjuncts(accepted)]
    if len(parts) > MAX_PARTS or len(by_needs) > MAX_REQUIREMENTS:
        return
    for part in parts:
        against = negate(part)
        members = (*domain.assumptions, against, *by_needs)
        if judge.satisfiable(members) != "unsat":
            continue  # the budget ran out
        core = judge.core(members)
        others = [other for other in parts if other != part]
        shown = judge.satisfiable((*domain.assumptions, *others, against), domain.symbols)
        refused = {n: judge.model[n] for n in domain.symbols} if shown == "sat" else None
        yield Imposed(part, tuple(by_needs[f] for f in core if f in by_needs), refused)
