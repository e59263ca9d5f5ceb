"""`branches`: which way each condition on shapes goes; `eliminate`: the program without the decided ones."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ...constraints.engine.ruleset import Rules
from ...constraints.ir.claims import listening
from ...constraints.ir.program import Origin
from ...constraints.ir.spec_text import Inputs, parse_spec
from ...constraints.ir.system import Condition, Path, System
from ...constraints.terms.formula import Formula, all_of, any_of, conjuncts, free_symbols, negate
from ...solver.decide import DomainOracle
from ...solver.facts.refine import simplify
from ...solver.tactics.judge import Budget
from ..checking.api import ReadTarget, default_rules, question
from ..checking.clock import Clock, Progress
from ..targets.target import is_graph_module, resolve
from ..targets.target_error import TargetError
from .nodes import NODE

if TYPE_CHECKING:
    from ...tracer.bytecode.conditions import Watched
    from ...tracer.readers.annotated import GraphModule
    from ...tracer.recording.record import Recording

SHAPELY: Final = ("shape", "size", "dim", "len(", "isinstance", "numel", "rank", "stride")
"""Words by which a condition that no size decides is known for one on shapes all the same."""


@dataclass(frozen=True, slots=True)
class BranchOn:
    """A condition on shapes in the program."""

    origin: Origin
    text: str
    """The condition as the program has it."""
    outcome: bool | None
    """The truth of the condition for all declared inputs that reach it; None where it differs."""
    when_true: Formula
    """The declared inputs that reach the condition and for which it holds."""
    when_false: Formula
    """The declared inputs that reach the condition and for which it does not hold. In a loop, an input may be
    in both sets: the condition holds in one iteration and not in another.
    """
    true_at: Mapping[str, int] | None = None
    """An input for which the condition holds."""
    false_at: Mapping[str, int] | None = None
    """An input for which the condition does not hold."""
    on_data: bool = False
    """Whether it is about data, about a size that data decide, or about iterations of a loop that were
    examined together. Then the two sets overlap, and are not exact.
    """
    replayed: bool | None = None
    """Whether a run of the program at the examples took the expected branches; None where that cannot be
    observed.
    """

    missed: str = ""
    """The reason if a part of the program was not examined: no outcome is claimed then."""

    def __str__(self) -> str:
        if self.outcome is not None:
            return f"{self.text}: always {self.outcome}"
        told = f"{self.text}: True where {self.when_true}, False where {self.when_false}"
        return f"{told}, as far as was examined ({self.missed})" if self.missed else told

    def to_json(self) -> dict[str, Any]:
        """The same as plain data for `json.dump`."""
        return {
            "file": self.origin.file, "line": self.origin.line, "condition": self.text,
            "outcome": self.outcome,
            "true": {"where": str(self.when_true), "at": self.true_at and dict(self.true_at)},
            "false": {"where": str(self.when_false), "at": self.false_at and dict(self.false_at)},
            "on_data": self.on_data, "replayed": self.replayed, "missed": self.missed,
        }  # fmt: skip


def branches(
    target: Any, inputs: Inputs | None = None, assume: str | Iterable[str] = (), *, budget_s: float = 30.0,
    rules: Rules | None = None, progress: Progress | None = None,
) -> tuple[BranchOn, ...]:
    """Returns every condition on shapes, with its outcome for all declared inputs, in the order of the lines.

    The arguments are those of `check`, and so are the exceptions. In a `torch.fx.GraphModule` the conditions
    are the nodes whose value is a bool. In a Python program they are the conditions of its own functions
    (`if`, `assert`, `while`, `and`, `or`) that sizes decide, or that mention shapes (SHAPELY).
    """
    declared = [str(d.path[0]) for d in parse_spec(inputs).inputs] if inputs is not None else ()
    named = resolve(target, declared)
    value = named.value
    clock = Clock(progress or (lambda step: None), budget_s)
    rules = rules or default_rules()
    if is_graph_module(value):
        from ...tracer.readers.fx import reporting
        from ..targets.annotations import spec_of

        inputs = spec_of(value) if inputs is None else inputs
        asked = question(reporting(value), inputs, assume, clock, rules, replay=False)
        lines = dict(_LINE.findall(value.code))
        seen = {_way(path): _nodes_seen(path, lines) for path in asked.system.paths}
        found = [*_Branches(asked.system, clock, lambda sizes: _nodes_at(asked, sizes, lines)).found(seen)]
        order = [_node(name, lines)[1] for name in lines]
        return tuple(sorted(found, key=lambda b: order.index(b.text) if b.text in order else len(order)))
    if named.kind != "python":
        return branches_of(question(value, inputs, assume, clock, rules, replay=False).system, clock)
    from ...tracer.bytecode.conditions import watching
    from ...tracer.recording.record import Recording

    with watching(Recording.run.__code__, _progress) as runs:
        asked = question(value, inputs, assume, clock, rules, replay=False, ways=math.inf)
    seen = {_way(path): _conditions_seen(path, watched) for path, watched in runs if path is not None}
    found = [*_Branches(asked.system, clock, lambda sizes: _conditions_at(asked, sizes)).found(seen)]
    return _in_order(found)


def branches_of(system: System, clock: Clock) -> tuple[BranchOn, ...]:
    """Returns the branches of a program from its constraint system alone: the conditions about which the
    solver was asked when the program was recorded. The branch taken at the examples is unknown.
    """
    return _in_order(_Branches(system, clock, lambda sizes: {}).found({}))


def _in_order(found: Iterable[BranchOn]) -> tuple[BranchOn, ...]:
    return tuple(sorted(found, key=lambda b: (b.origin.file, b.origin.line, b.origin.start)))


Place: TypeAlias = tuple[Origin, str]
Truths: TypeAlias = Mapping[Place, list[bool]]
Way: TypeAlias = "tuple[tuple[Formula | None, bool], ...]"


def _way(path: Path) -> Way:
    """Returns the decisions of a path, which distinguish it from all others."""
    return tuple((c.formula, c.taken) for c in path.conditions)


def _conditions_at(asked: ReadTarget, sizes: Mapping[str, int]) -> Truths:
    """Returns the outcomes of the program's conditions in an eager run."""
    from ...tracer.bytecode.conditions import watching

    with watching() as runs:
        asked.source.run(sizes, True)
    return {_place_of(*at): found for at, found in runs[0][1].truths.items()}


_LINE: Final = re.compile(r"^    (\w+) = (.*?)(?:;  .*)?$", re.MULTILINE)
"""The names of nodes, and what they are, in the code of a graph."""
_NODE_ORIGIN = Origin("<torch.fx>")


def _node(name: str, lines: Mapping[str, str]) -> Place:
    return _NODE_ORIGIN, f"{name} = {lines.get(name, '?')}"


def _nodes_at(asked: ReadTarget, sizes: Mapping[str, int], lines: Mapping[str, str]) -> Truths:
    """The truths that nodes of a graph are in an eager run."""
    truths: dict[Place, list[bool]] = {}

    def listener(kind: str, value: Any, text: str) -> None:
        if kind == "node" and isinstance(value, bool):
            truths[_node(text, lines)] = [value]

    with listening(listener):
        asked.source.run(sizes, True)
    return truths


@dataclass(frozen=True, slots=True)
class _Seen:
    """A condition on a path: what it was, after how many of the path's requirements and of its decisions."""

    truth: bool
    required: int
    decided: int


def _progress(run: Recording) -> tuple[int, int]:
    return len(run.generator.said.constraints), len(run.conditions)


def _conditions_seen(path: Path, watched: Watched) -> Mapping[Place, list[_Seen]]:
    """The conditions that were watched. Loops that are summarised go back, and so do their numbers: all the
    decisions of the path count there.
    """
    found: dict[Place, list[_Seen]] = {}
    for (origin, text), truths in watched.truths.items():
        at = watched.reached[origin, text]
        if path.program.iterations:
            at = [(0, len(path.conditions))] * len(truths)
        seen = [_Seen(truth, *numbers) for truth, numbers in zip(truths, at, strict=True)]
        found.setdefault(_place_of(origin, text), []).extend(seen)
    return found


def _nodes_seen(path: Path, lines: Mapping[str, str]) -> Mapping[Place, list[_Seen]]:
    """The nodes of a graph that are truths."""
    found: dict[Place, list[_Seen]] = {}
    for at, node in enumerate(path.program.nodes):
        arguments = dict(node.args) if node.op == NODE else {}
        if isinstance(truth := arguments.get("input"), bool):
            required = sum(1 for c in path.constraints if c.node < at)
            seen = _Seen(truth, required, len(path.conditions))
            found[_node(str(arguments["name"]), lines)] = [seen]
    return found


@dataclass(slots=True)
class _Met:
    """The known facts about one condition."""

    true: list[Formula]
    false: list[Formula]
    on_data: bool = False


class _Branches:
    """Gathers conditions over all paths, those that were asked of the solver and those that were seen."""

    def __init__(self, system: System, clock: Clock, watch: Callable[[Mapping[str, int]], Truths]) -> None:
        self.system = system
        self.oracle = DomainOracle(system.domain, Budget(clock.left))
        self.watch = watch
        self.met: dict[Place, _Met] = {}
        ends = [path.end.reason for path in self.system.paths if path.end.how == "gave-up"]
        self.missed = self.system.incomplete or next(iter(ends), "")
        self._runs: dict[tuple[tuple[str, int], ...], Truths] = {}

    def found(self, seen: Mapping[Way, Mapping[Place, list[_Seen]]]) -> Iterator[BranchOn]:
        """The conditions in the order in which they were met."""
        tested = {place for path in seen.values() for place in path}
        shapely = _varying(seen)
        for path in self.system.paths:
            shapely |= self._ask(path, tested)
        for path in self.system.paths:
            for place, found in seen.get(_way(path), {}).items():
                spoken = place in shapely or any(word in place[1] for word in SHAPELY)
                if spoken or place[0] == _NODE_ORIGIN:
                    self._see(path, place, found)
        for (origin, text), known in self.met.items():
            told = self._told(origin, text, known)
            if self.missed or told.when_true is not False or told.when_false is not False:
                yield told

    def _ask(self, path: Path, tested: set[Place]) -> set[Place]:
        """Records the questions to the solver that belong to no watched condition of the program.

        Returns the places that belong to a watched one: the question may differ from the tested condition, as
        in `x.shape != y.shape`.
        """
        others: set[Place] = set()
        for at, c in enumerate(path.conditions):
            if c.formula is None:
                continue
            place = _place_of(c.origin, str(c.formula))
            if place in tested:
                others.add(place)
            elif not _is_inner(place[1], c.formula):
                before = self._before(path, c.after, at)
                self._meet(path, place, all_of((before, c.formula)), True)
                self._meet(path, place, all_of((before, negate(c.formula))), False)
        for c in path.turns:
            place = _place_of(c.origin, str(c.formula))
            if c.formula is not None and not _is_inner(place[1], c.formula):
                before = all_of((self._before(path, c.after, 0), c.given))
                self._meet(path, place, all_of((before, c.formula)), True)
                self._meet(path, place, all_of((before, negate(c.formula))), False)
        return others

    def _see(self, path: Path, place: Place, seen: list[_Seen]) -> None:
        for one in dict.fromkeys(seen):
            self._meet(path, place, self._before(path, one.required, one.decided), one.truth)
            chosen = path.conditions[max(one.decided - 1, 0) : one.decided]
            self.met[place].on_data |= any(c.formula is None for c in chosen)
        if path.program.iterations:
            self.met[place].on_data |= len({one.truth for one in seen}) > 1

    def _before(self, path: Path, required: int, decided: int) -> Formula:
        """The inputs that come so far on the path."""
        open_ = ((c.formula, c.taken) for c in path.conditions[:decided] if not c.forced)
        ways = (formula if taken else negate(formula) for formula, taken in open_ if formula is not None)
        needs = (r.formula for r in path.constraints[:required] if r.kind == "model")
        return all_of((*ways, *needs))

    def _meet(self, path: Path, place: Place, formula: Formula, truth: bool) -> None:
        known = self.met.setdefault(place, _Met([], []))
        (known.true if truth else known.false).append(formula)
        data = {name for name, _ in path.unbacked} | {i.index for i in path.program.iterations}
        known.on_data |= not data.isdisjoint(free_symbols(formula))

    def _told(self, origin: Origin, text: str, known: _Met) -> BranchOn:
        true, false = self._where(known.true), self._where(known.false)
        both = (true is not False) == (false is not False)
        outcome = None if known.on_data or self.missed or both else true is not False
        sides = [self._shown(side, truth, (origin, text)) for side, truth in ((true, True), (false, False))]
        (true_at, one), (false_at, other) = sides
        wrong = None if known.on_data else False
        replayed = wrong if False in (one, other) else one or other
        return BranchOn(
            origin, text, outcome, true, false, true_at, false_at, known.on_data, replayed, self.missed
        )

    def _where(self, sides: list[Formula]) -> Formula:
        """The inputs for which one of the formulas holds, in short; False where there are none."""
        domain, judge = self.system.domain, self.oracle.judge
        possible = [f for f in dict.fromkeys(sides) if self._some(f)]
        if not possible or not self._some(negate(any_of(possible))):
            return bool(possible)
        together = any_of(possible)
        weaker = dict.fromkeys(all_of(self._weakened([*conjuncts(f)], together)) for f in possible)
        needed = [*weaker]
        for formula in weaker:
            rest = [f for f in needed if f != formula]
            if rest and not self._some(all_of((formula, negate(any_of(rest))))):
                needed = rest
        return simplify(judge, domain, conjuncts(any_of(needed)))

    def _weakened(self, parts: list[Formula], limit: Formula) -> list[Formula]:
        """The conjuncts without those that can be left out without leaving what `limit` says."""
        for part in [*parts]:
            rest = [f for f in parts if f != part]
            if rest and not self._some(all_of((*rest, negate(limit)))):
                parts = rest
        return parts

    def _some(self, formula: Formula) -> bool:
        """Returns whether a declared input may satisfy the formula, as far as is known."""
        return self.oracle.judge.satisfiable((*self.system.domain.assumptions, formula)) != "unsat"

    def _shown(
        self, side: Formula, truth: bool, place: Place
    ) -> tuple[Mapping[str, int] | None, bool | None]:
        """An example of a side, and whether the program was seen to go that way there."""
        found = None if side is False else self.oracle.example((side,))
        if found is None:
            return None, None
        key = tuple(found.items())
        if key not in self._runs:
            self._runs[key] = self.watch(found)
        truths = self._runs[key].get(place)
        return found, None if truths is None else truth in truths


def _place_of(origin: Origin, formula: str) -> Place:
    """Returns the place of a condition in the user's file, or in the graph."""
    if origin.file.startswith("<eval_with_key>") and (found := _LINE.match(f"    {origin.code}")):
        return _node(found[1], {found[1]: found[2]})
    return replace(origin, module=""), origin.code[origin.start : origin.stop] or formula


def _is_inner(text: str, formula: Formula) -> bool:
    """Returns whether the condition is not the program's own: a rank that a call needs, or a size that `max`
    compares.
    """
    if any(sign in text for sign in ("==", "!=", "<", ">")):
        return False
    return "(" in text or any(name.startswith("rank(") for name in free_symbols(formula))


def _varying(seen: Mapping[Way, Mapping[Place, list[_Seen]]]) -> set[Place]:
    """Returns the places that are true on one path and false on another: they depend on a shape, though they
    name none.
    """
    truths: dict[Place, set[bool]] = {}
    for path in seen.values():
        for place, found in path.items():
            truths.setdefault(place, set()).update(one.truth for one in found)
    return {place for place, found in truths.items() if len(found) > 1}


class OpenBranch(TargetError):
    """A branch that declared inputs take either way, so that it cannot be left out."""


def eliminate(
    target: Any, inputs: Inputs | None = None, assume: str | Iterable[str] = (), *, budget_s: float = 30.0,
    rules: Rules | None = None,
) -> GraphModule:
    """The program as a torch.fx graph without branches, which computes the same for all declared inputs.

    Raises Undecided where declared inputs go either way, with the condition to assume; else what `check`
    raises.
    """
    from ...tracer.readers.fx import ShapeTracer
    from ...tracer.recording.binding import NotCallable as DoesNotFit
    from ..targets.annotations import spec_of

    declared = [str(d.path[0]) for d in parse_spec(inputs).inputs] if inputs is not None else ()
    found = resolve(target, declared)
    if found.kind != "python":
        problem = f"{found.name} has no branches of its own"
        raise TargetError(problem, "name the program that it was made from")
    spec = parse_spec(spec_of(found.value) if inputs is None else inputs, assume)
    oracle = DomainOracle(spec.domain, Budget(budget_s))
    tracer = ShapeTracer(spec, rules or default_rules(), oracle)
    try:
        traced = tracer.trace_all(found.value)
    except DoesNotFit as error:
        _all_decided(c for c in tracer.run.conditions if not c.forced)
        raise TargetError(str(error)) from None
    _all_decided(traced.open)
    return traced.graph_module


def _all_decided(conditions: Iterable[Condition]) -> None:
    """Raises Undecided at the first condition, if there is one."""
    for condition in conditions:
        if condition.formula is None:
            raise OpenBranch("data decide a branch", "only sizes can be assumed", condition.origin)
        either = f'"{condition.formula}" or "{negate(condition.formula)}"'
        raise OpenBranch(f"sizes decide whether {condition.formula}", f"assume {either}", condition.origin)
