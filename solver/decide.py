"""The verdict on a constraint system, and the oracle that answers the recorder's questions.

The accepted set is the conjunction of `premise => requirement` over all paths; a path that ends in the
program's own `raise` contributes `premise => false`. Requirements that the fast path proves from the domain
and the requirements before them are dropped at once; the others are the residual. Where knowledge is missing
(an operator without a rule, a path that the recorder gave up, a size that the data decides) the sizes
concerned form an *open* region: a verdict other than `refuted` needs a proof that the region is empty.

Two sets enclose the accepted set, S <= accepted <= P. The sizes in S are certainly accepted: they meet all
requirements, and reach no approximation that may accept too much. The sizes outside of P are certainly
refused: by a requirement that is exact, whatever the data. `proved` says that S is the whole domain,
`refuted` that P is empty, and the accepted set is exact where S and P are one.
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Final, Literal, NamedTuple, TypeAlias

from ..constraints.contents.requirements.indices import SAME_DATA
from ..constraints.ir.language import Constraint, Fact, Note
from ..constraints.ir.program import Origin
from ..constraints.ir.system import Answer, Condition, Domain, End, Path, System, in_order, premise
from ..constraints.terms.formula import Formula, all_of, any_of, conjuncts, free_symbols, implies, le, negate
from ..constraints.terms.parts import rank
from ..constraints.terms.rows import is_possible, is_rank
from .facts import refine
from .tactics import examples
from .tactics.judge import Budget, Judge, Stats
from .theory.bounds import Consequences

Verdict: TypeAlias = Literal["proved", "refined", "refuted", "unknown"]
Decisions: TypeAlias = "tuple[tuple[Formula | None, bool], ...]"
MAX_CORES = 16
LONG = 8
"""Examples avoid rows of more dims than this, which people would hardly try."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """A condition on the sizes that reach one node, or one `raise` of the program."""

    premise: Formula
    """The sizes that reach the node, as far as the preceding branches determine them."""
    formula: Formula
    reason: str
    origin: Origin
    path: int
    constraint: Constraint | None = None
    """The node's constraint; None for the program's own `raise`."""
    needs: Formula = True
    """The condition on the inputs: `premise => formula`, with the sizes that data decides eliminated. It
    holds of the inputs for which some data are accepted.
    """
    doubt: Formula = False
    """The sizes at which torch may accept what this requirement refuses, since an approximation precedes it,
    or a branch on data whose other side runs there.
    """

    some_data: bool = False
    """Whether only some data reach the node, and others run."""
    some_choice: bool = False
    """Whether some data may get past a later requirement that all the data have to satisfy."""

    @property
    def surely(self) -> Requirement:
        """Returns the certain part of the requirement: it holds at the sizes in doubt."""
        return self if self.doubt is False else replace(self, needs=any_of((self.needs, self.doubt)))

    @property
    def of_trace(self) -> bool:
        """Returns whether the requirement is a limit of the trace, which the program's operators do not have.
        """
        return self.constraint is not None and self.constraint.kind == "trace"

    @property
    def by_data(self) -> bool:
        """Returns whether some data may satisfy the requirement at sizes that it refuses."""
        return self.some_choice or (self.constraint is not None and self.constraint.by_data)

    @property
    def node(self) -> int:
        """Returns the index of the node in its path's program, -1 for a `raise`."""
        return self.constraint.node if self.constraint else -1


@dataclass(frozen=True, slots=True)
class Core:
    """Requirements, and assumptions of the domain, that contradict each other; without any one of them they
    do not.
    """

    requirements: tuple[Requirement, ...]
    assumptions: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class OpenSizes:
    """Sizes that are not known to be accepted or refused, and the reason."""

    region: Formula
    reason: str
    origin: Origin = Origin()  # noqa: RUF009 - frozen
    path: int = 0


@dataclass(frozen=True, slots=True)
class OnData:
    """An error that the program raises for some data, at sizes at which it runs for other data."""

    reason: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class Told:
    """The accepted set as a short formula, and sizes outside of it."""

    accepted: Formula
    summary: refine.Summary
    certain: Formula
    """The part of the accepted set that is proved in spite of approximations."""
    outside: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict with everything found on the way."""

    verdict: Verdict
    domain: Domain
    judge: Judge = field(repr=False)
    told: Callable[[], Told] = field(repr=False)
    """Computes a short formula and good examples, which takes as long as finding the verdict and is done
    once.
    """
    residual: tuple[Requirement, ...] = ()
    """Requirements that the domain alone does not guarantee, in program order."""
    cores: tuple[Core, ...] = ()
    inside: Mapping[str, int] | None = None
    trace: tuple[Constraint, ...] = ()
    """The limits of the trace, which the operators of the program do not have."""
    exact: bool = True
    """False where an approximation may have changed the accepted set."""
    reasons: tuple[OpenSizes, ...] = ()
    """The reasons why the verdict is unknown."""
    on_data: tuple[OnData, ...] = ()
    """Errors that the program raises for some data, whatever the sizes."""

    @property
    def accepted(self) -> Formula:
        """Returns the accepted sizes within the domain, exactly if `exact`.

        With verdict `unknown` all accepted sizes satisfy the formula.
        """
        return self.told().accepted

    @property
    def certain(self) -> Formula:
        """Returns the sizes within the domain that are certainly accepted; if `exact`, all accepted ones."""
        return self.told().certain

    @property
    def possible(self) -> Formula:
        """Returns a formula that all accepted sizes satisfy; other sizes within the domain are certainly
        refused.
        """
        return all_of(r.surely.needs for r in self.residual)

    @property
    def summary(self) -> refine.Summary:
        """Returns the accepted set as facts and relations, whose text is one line."""
        return self.told().summary

    @property
    def outside(self) -> Mapping[str, int] | None:
        """Returns sizes in the domain that are refused, as near to `inside` as possible."""
        return self.told().outside

    @property
    def stats(self) -> Stats:
        """Returns the effort spent so far."""
        return self.judge.stats

    @property
    def facts(self) -> Mapping[str, Fact]:
        """Returns a fact about each symbol of the domain, implied by the accepted set."""
        return self.summary.facts

    def holds(self, values: Mapping[str, int]) -> bool:
        """Returns whether the assignment is in the domain and in the accepted set."""
        return examples.satisfies((*self.domain.assumptions, self.accepted), values)

    def violated(self, values: Mapping[str, int]) -> tuple[Requirement, ...]:
        """Returns the requirements that an assignment does not meet."""
        return tuple(r for r in self.residual if not examples.satisfies((r.needs,), values))


EFFORT: Final = 600_000
"""Z3's resource units for a question of the recorder's. A branch that is left open is followed on both sides,
and may still be decided by all requirements of a path.
"""


class DomainOracle:
    """Answers the recorder's questions about sizes. The given conditions are added to the domain."""

    def __init__(self, domain: Domain, budget: Budget | None = None) -> None:
        self.domain = domain
        self.judge = Judge(budget)
        self._consistent: dict[tuple[Formula, ...], tuple[Formula, ...]] = {}

    def decide(self, formula: Formula, given: Sequence[Formula] = ()) -> Answer:
        """Returns whether the formula holds for all assignments that satisfy the given conditions, for none,
        or for some.
        """
        return self.judge.ask(formula, self._given(given), EFFORT)

    def example(
        self, given: Sequence[Formula] = (), prefer: Callable[[Mapping[str, int]], object] | None = None, *,
        forgiving: bool = False,
    ) -> dict[str, int] | None:
        """Returns a small assignment that satisfies the given conditions; None where none was found or
        exists.

        `prefer` tests whether an assignment is welcome; a welcome one is returned if one is at hand. With
        `forgiving`, conditions that contradict the others are ignored, as in `decide`.
        """
        asked = self._given(given) if forgiving else (*self.domain.assumptions, *given)
        if self.judge.satisfiable(asked, self.domain.symbols) != "sat":
            return None
        known = self.judge.known(asked)
        found = _possible(examples.polished(self.judge.model, asked, known, self.domain.symbols))
        found = found or dict(self.judge.model)
        if prefer is not None and not prefer(found):
            found = _possible(examples.find(known, asked, self.domain.symbols, prefer)) or found
        return found

    def neighbour(
        self, inside: Mapping[str, int], given: Sequence[Formula], refused: Formula
    ) -> dict[str, int] | None:
        """Returns sizes that differ from these in one symbol, and satisfy the given conditions and `refused`.
        """
        known = self.judge.known(given)
        return _possible(examples.neighbour(inside, given, refused, known, self.domain.symbols))

    def _given(self, given: Sequence[Formula]) -> tuple[Formula, ...]:
        """Returns the domain and the given conditions, without requirements that contradict those before
        them.

        After a refusal the recorder continues as if the requirement held; where it cannot hold, it is no
        assumption.
        """
        key = (*self.domain.assumptions, *given)
        if not self.judge.contradicts(key):
            return key
        if key not in self._consistent:
            kept: tuple[Formula, ...] = ()
            for formula in key:
                if not self.judge.contradicts((*kept, formula)):
                    kept = (*kept, formula)
            self._consistent[key] = kept
        return self._consistent[key]


Prefer: TypeAlias = "Callable[[Mapping[str, int], Callable[[Mapping[str, int]], bool]], dict[str, int]]"
"""Returns preferred sizes instead of these ones, among those that the second argument allows."""


def decide(
    system: System, budget: Budget | None = None, *, tried: bool = True,
    prefer: Prefer = lambda sizes, allowed: dict(sizes),
) -> Decision:
    """Returns the verdict on a system, with examples at preferred sizes. Unless examples are `tried` on the
    program later, nothing shows that some data pass several checks together.
    """
    judge = Judge(budget)
    try:
        reading = _PathReading(system, judge)
        if not tried:
            reading.doubts += reading.together(system)
        decision = _Deciding(system.domain, judge, reading, prefer).decision()
        return _within_bounds(system, decision)
    except RecursionError:
        too_deep = OpenSizes(True, "sizes are nested too deeply to be decided")
        return Decision(
            "unknown", system.domain, judge, lambda: Told(True, refine.Summary({}, (True,)), False),
            exact=False, reasons=(too_deep,),
        )


def requirements(system: System, judge: Judge) -> tuple[Requirement, ...] | None:
    """Returns all requirements of a system on its inputs, without a verdict; None where they are not known in
    full.
    """
    try:
        reading = _PathReading(system, judge)
    except RecursionError:  # sizes are nested too deeply
        return None
    inexact = reading.open or reading.doubts or any(r.doubt is not False for r in reading.requirements)
    return None if inexact else tuple(reading.requirements)


def _within_bounds(system: System, decision: Decision) -> Decision:
    """Returns the decision, with verdict `unknown` if only some ranks were examined, since others may differ.
    """
    bounds = [note for path in system.paths for note in path.notes if note.code == "bounded-rank"]
    if not bounds or decision.verdict not in ("proved", "refuted"):
        return decision
    reasons = tuple(OpenSizes(True, f"{decision.verdict} apart from this: {note.reason}") for note in bounds)
    return replace(decision, verdict="unknown", reasons=reasons)


class _PathReading:
    """Reads the paths of a system as requirements on its inputs, and drops those that hold anyway."""

    def __init__(self, system: System, judge: Judge) -> None:
        self.requirements: list[Requirement] = []
        self.trace: list[Constraint] = []
        self.open: list[OpenSizes] = []
        self.doubts: list[OpenSizes] = []
        """Sizes that reach an approximation that may accept too much."""
        self._perhaps_no_data: list[OpenSizes] = []
        """The sizes that reach a point of a path which perhaps no data do."""
        self.on_data: list[OnData] = []
        self._judge = judge
        self._domain = system.domain
        self._seen: set[tuple[object, ...]] = set()
        self._ways = [(_decisions(p), p.end) for p in system.paths]
        self._undecided: list[_DataDecide] = []
        for index, path in enumerate(system.paths):
            self._read(index, path)
        self.doubts += self._of_other_data(system)
        self._settle(system)
        if system.incomplete:
            surely = [p for p in system.paths if not p.on_data and not _on_data_sizes(p)]
            missed = [negate(p.premise) for p in surely]
            self.open.append(OpenSizes(all_of(missed), system.incomplete, Origin()))

    def _read(self, index: int, path: Path) -> None:
        known = self._judge.known(self._domain.assumptions).copy()
        walk = _PathPosition(index, path, known, self._may_refuse(path))
        for _, step in in_order(path.conditions, enumerate(path.constraints)):
            if isinstance(step, Condition):
                walk.enter(step)
            elif walk.known.contradictory:
                return
            else:
                self._constraint(walk, step)
        if walk.known.contradictory:
            return
        self._end(walk)
        required: defaultdict[int, list[Constraint]] = defaultdict(list)
        for constraint in path.constraints:
            required[constraint.node].append(constraint)
        for note in path.notes:
            origin = _origin(path, note.node)
            if note.code == "no-rule":
                self.open.append(OpenSizes(walk.reached, note.reason, origin, index))
            elif note.may_accept and path.end.how != "raised":  # which accepts nothing
                region = all_of((walk.reached, self._where(note)))
                if note.reason == SAME_DATA:
                    region = all_of((region, self._fails_for_some(walk, required[note.node])))
                doubts = self._perhaps_no_data if note.reason == SAME_DATA else self.doubts
                doubts.append(OpenSizes(region, note.reason, origin, index))

    def _fails_for_some(self, walk: _PathPosition, constraints: Sequence[Constraint]) -> Formula:
        """Returns sizes, at least all those, at which some data fail a requirement of a node; True where the
        node has no requirement on sizes that data decide.
        """
        about = [c for c in constraints if not walk.unbacked.keys().isdisjoint(free_symbols(c.formula))]
        failing = (
            self._judge.project(all_of((*walk.decided(c.decided), negate(c.formula))), walk.unbacked)
            for c in about
        )
        return any_of(True if where is None else where for where in failing) if about else True

    def _of_other_data(self, system: System) -> Iterator[OpenSizes]:
        """Yields the sizes that paths accept which perhaps no data follow. Where all paths accept, they are
        accepted, whichever the data follow; and where one does that some data surely follow.
        """
        if not self._perhaps_no_data:
            return
        runs = [(path, any_of(self._runs(path, each=True))) for path in system.paths]
        refused = any_of(map(self._perhaps_refused, system.paths))
        surely = [negate(where) for path, where in runs if not any(n.may_accept for n in path.notes)]
        missed = all_of((refused, *map(self._of_inputs, surely)))
        for doubt in self._perhaps_no_data:
            yield replace(doubt, region=all_of((doubt.region, missed)))

    def _perhaps_refused(self, path: Path) -> Formula:
        """Returns sizes, at least all those, at which a path ends in a refusal."""
        reached = path.premise if self._of_inputs(path.premise) == path.premise else True
        if path.end.how != "returned":
            return reached
        failing = (self._of_inputs(negate(c.formula)) for c in path.constraints)
        return all_of((reached, any_of(failing)))

    def _where(self, note: Note) -> Formula:
        """Returns the sizes of inputs at which an approximation is not exact."""
        return self._of_inputs(note.where)

    def _of_inputs(self, where: Formula) -> Formula:
        """Returns the formula; True where it mentions more than sizes of inputs."""
        return where if free_symbols(where) <= {*self._domain.symbols} else True

    def _may_refuse(self, path: Path) -> tuple[tuple[int, Formula], ...]:
        """Returns the nodes after which more may be required than torch does, each with the sizes concerned.

        Later shapes may depend on such a node, through Python as well as through the program.
        """
        return tuple((note.node, self._where(note)) for note in path.notes if note.may_refuse)

    def _constraint(self, walk: _PathPosition, constraint: Constraint) -> None:
        formula = constraint.formula
        if constraint.kind == "trace":
            self.trace.append(constraint)
        on_data = not walk.unbacked.keys().isdisjoint(free_symbols(formula)) or walk.premise != walk.reached
        known = walk.with_data(constraint.decided) if on_data else walk.known
        answer = known.ask(formula)
        if answer is True:
            return
        origin = _origin(walk.path, constraint.node)
        requirement = Requirement(
            walk.premise, formula, constraint.reason, origin, walk.index, constraint,
            doubt=walk.doubt(constraint.node),
        )
        needs = self._needs(walk, requirement) if on_data else walk.guard(formula)
        requirement = replace(requirement, needs=needs)
        if constraint.alone:  # what some data satisfy is all that is required of the inputs
            requirement = replace(requirement, constraint=replace(constraint, by_data=False))
        if walk.forked and not on_data:
            region = all_of((walk.reached, negate(formula)))
            self._undecided.append(_DataDecide(region, requirement, "refused"))
        else:
            self._add(self.requirements, requirement)
        if answer is None:
            walk.assume(formula)

    def _needs(self, walk: _PathPosition, requirement: Requirement) -> Formula:
        """Returns the condition on the inputs that a requirement on sizes that data decide imposes. Regions
        where the data matter are recorded as undecided.

        Some data u fail where `exists u: known(u) and premise and not formula`; all do where no u is left.
        With a branch on data before it, other data may take another path.
        """
        count = None if requirement.constraint is None else requirement.constraint.decided
        formula, data = requirement.formula, all_of(walk.decided(count))
        some_fail = self._judge.project(all_of((data, walk.premise, negate(formula))), walk.unbacked)
        if some_fail is False:
            return True
        needs: Formula = True
        plainly = walk.premise == walk.reached and not walk.forked
        if plainly:
            some_pass = self._judge.project(all_of((data, formula)), walk.unbacked)
            needs = True if some_pass is None else implies(walk.reached, some_pass)
        region = walk.reached if some_fail is None else all_of((walk.reached, some_fail))
        alone = requirement.constraint is not None and requirement.constraint.alone
        alone = alone and plainly and len(_numbers_of_data(walk.path)) == 1
        self._undecided.append(_DataDecide(region, requirement, "remarked" if alone else "open"))
        return needs

    def _settle(self, system: System) -> None:
        """Decides the regions where a requirement fails for some data.

        Their sizes are refused if a requirement fails for all other data as well. Otherwise the kind of each
        undecided requirement determines how its sizes are treated.
        """
        if not self._undecided:
            return
        runs, some = ({w: frozenset(conjuncts(w)) for p in system.paths for w in self._runs(p, each)}
                      for each in (True, False))
        settled: dict[Formula, tuple[bool, bool]] = {}
        for region, requirement, otherwise in self._undecided:
            if region not in settled:
                refused = not system.incomplete and self._fails_always(region, runs)
                settled[region] = refused, refused and runs.keys() != some.keys() \
                    and not self._fails_always(region, some)
            refused, some_choice = settled[region]
            if refused:
                needs = negate(region)
                self._add(self.requirements, replace(requirement, needs=needs, some_choice=some_choice))
            elif otherwise == "open":
                reason = "it depends on a size that the data decides"
                self.open.append(OpenSizes(region, reason, requirement.origin, requirement.path))
            elif otherwise == "refused":
                self._add(self.requirements, replace(requirement, doubt=True, some_data=True))
            else:
                self.on_data.append(OnData(requirement.reason, requirement.origin))
                self._add_unless_some_run(region, requirement, runs, system)
        self.requirements.sort(key=lambda r: (r.path, r.constraint is None, r.node))

    def _add_unless_some_run(
        self, region: Formula, requirement: Requirement, runs: Iterable[Formula], system: System
    ) -> None:
        """Requires that sizes of the region are in `runs`, where some data get through. The others are
        refused.
        """
        needs = implies(region, any_of(runs))
        if not system.incomplete and not self._judge.follows(needs, self._domain.assumptions):
            self._add(self.requirements, replace(requirement, needs=needs))

    def _fails_always(self, region: Formula, runs: Mapping[Formula, frozenset[Formula]]) -> bool:
        """Returns whether no data get through the program at any of these sizes."""
        contrary = frozenset(map(negate, conjuncts(region)))
        given = (*self._domain.assumptions, region)
        return all(
            not contrary.isdisjoint(parts) or self._judge.satisfiable((*given, way)) == "unsat"
            for way, parts in runs.items()
        )

    def _runs(self, path: Path, each: bool) -> tuple[Formula, ...]:
        """Returns sizes, at least all those, that follow the path to its end with some data; none where it
        raises. For branches on data any outcome counts. With `each`, all that the data choose has to be valid
        there.
        """
        may_refuse = self._may_refuse(path)
        doubtful = min((node for node, _ in may_refuse), default=_ALL)
        raised = path.end.how == "raised"
        if raised and not may_refuse:
            return ()
        there = any_of(where for _, where in may_refuse) if raised else True
        names = [name for name, _ in path.unbacked]
        certain = (c for c in path.constraints if c.node < doubtful)
        kept = (c for c in certain if each or not c.by_data or not free_symbols(c.formula).isdisjoint(names))
        met = (c.formula for c in kept)
        data = [known for _, known in path.unbacked]
        whole = all_of((*data, path.premise, *met, there))
        found = self._judge.project(whole, names)
        if found is None:
            found = all_of((there, premise(c for c in path.conditions if not _speaks_of(c, names))))
        return (found,)

    def _on_data(self, path: Path) -> list[Condition]:
        """Returns the branches on data that alone make the path raise: after each of them every continuation
        raises, and the other side of it does not, or was not examined.
        """
        return [c for c, one, other in _data_branches(path) if self._raises(one) and not self._raises(other)]

    def together(self, system: System) -> Iterator[OpenSizes]:
        """Yields the sizes at which the program runs only for data that pass several checks of its own,
        branches on data whose other side raises. Those of torch's libraries are made to be passed.
        """
        several: list[tuple[int, Path, Condition]] = []
        others: list[Formula] = []
        for index, path in enumerate(system.paths):
            if path.end.how == "returned":
                checks = self._checks(path)
                if len(checks) > 1:
                    several.append((index, path, checks[-1]))
                else:
                    others += self._runs(path, each=True)
        for index, path, last in several:
            region = all_of((*self._runs(path, each=True), *map(negate, others)))
            yield OpenSizes(region, TOGETHER, last.origin, index)

    def _checks(self, path: Path) -> list[Condition]:
        """Returns the branches on data of a path on whose other side lines of the model raise."""
        return [
            condition
            for condition, _, other in _data_branches(path)
            if all(end.how == "raised" and not end.by_library for end in self._ends(other, End()))
        ]

    def _raises(self, first: Decisions) -> bool:
        """Returns whether paths with this beginning exist and all of them raise."""
        return all(end.how == "raised" for end in self._ends(first, End("gave-up")))

    def _ends(self, first: Decisions, without: End) -> list[End]:
        """Returns the ends of the paths with this beginning, or that one where there are none."""
        return [end for way, end in self._ways if way[: len(first)] == first] or [without]

    def _end(self, walk: _PathPosition) -> None:
        end = walk.path.end
        if end.how == "gave-up":
            self.open.append(OpenSizes(walk.reached, end.reason, end.origin, walk.index))
        elif end.how == "raised":
            requirement = Requirement(
                walk.premise, False, end.reason, end.origin, walk.index, None, walk.guard(False),
                walk.doubt(_ALL),
            )
            on_data = self._on_data(walk.path)
            settled = all_of(self._of_inputs(condition.settled) for condition in on_data)
            if on_data and settled is not False:
                self.doubts.append(
                    OpenSizes(all_of((walk.reached, settled)), SETTLED, end.origin, walk.index)
                )
            if walk.premise != walk.reached or on_data:
                self._undecided.append(_DataDecide(walk.reached, requirement, "remarked"))
            elif walk.forked:
                self._undecided.append(_DataDecide(walk.reached, requirement, "refused"))
            else:
                self._add(self.requirements, requirement)

    def _add(self, to: list[Requirement], requirement: Requirement) -> None:
        # Two lines that ask the same are one matter; two that no sizes get through are two mistakes.
        line = (requirement.origin.file, requirement.origin.line) if requirement.formula is False else ()
        key = requirement.premise, requirement.formula, requirement.needs, line
        if requirement.needs is not True and key not in self._seen:
            self._seen.add(key)
            to.append(requirement)


_ALL = 1 << 62
TOGETHER: Final = "no data were tried, and perhaps none pass all the checks of data on the way"
SETTLED: Final = "whether it raises seems to depend on data, but may be the same for all data"


class _DataDecide(NamedTuple):
    """Sizes at which a requirement fails for some data, and their treatment unless it fails for all data.

    They are `open`; `refused`, though not certainly; or accepted, while the failure that only data decide is
    `remarked`.
    """

    region: Formula
    requirement: Requirement
    otherwise: Literal["open", "refused", "remarked"]


@dataclass(slots=True)
class _PathPosition:
    """A position on a path, with the knowledge about the sizes that get there."""

    index: int
    path: Path
    known: Consequences
    """The domain, the branches taken and the requirements so far, where they mention inputs only."""
    may_refuse: tuple[tuple[int, Formula], ...]
    """Nodes after which more may be required than torch does, each with the sizes concerned."""
    premise: Formula = True
    reached: Formula = True
    """The premise without its conditions on sizes that data decide."""
    forked: bool = False
    """Whether the data have decided a branch."""
    unbacked: dict[str, Formula] = field(default_factory=dict)
    """All sizes that the data decide on the path, with what is known of them in the end."""
    _said_of_data: list[Formula] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.unbacked = dict(self.path.unbacked)

    def enter(self, condition: Condition) -> None:
        """Adds a branch decision.

        A forced one follows from the rest, or rests on something that need not be true.
        """
        self.forked |= condition.formula is None and not condition.forced
        if condition.formula is None or condition.forced:
            return
        taken = condition.known
        self.premise = all_of((self.premise, taken))
        if self.unbacked.keys().isdisjoint(free_symbols(taken)):
            self.reached = all_of((self.reached, taken))
            self.known.learn(taken)
        else:
            self._said_of_data.append(taken)

    def assume(self, formula: Formula) -> None:
        """Adds a requirement, which holds from here on, unless no sizes would remain."""
        if not self.unbacked.keys().isdisjoint(free_symbols(formula)):
            self._said_of_data.append(formula)
            return
        trial = self.known.copy()
        trial.learn(formula)
        if not trial.contradictory:
            self.known = trial

    def with_data(self, count: int | None) -> Consequences:
        """Returns the knowledge about sizes, the first `count` that data decide included."""
        known = self.known.copy()
        known.learn(*self.decided(count), *self._said_of_data)
        return known

    def decided(self, count: int | None) -> list[Formula]:
        """Returns what is known of the first sizes that the data decide; of all of them without a count."""
        return [known for _, known in self.path.unbacked[:count]]

    def doubt(self, node: int) -> Formula:
        """Returns the sizes at which the requirement of a node may be stronger than torch's."""
        return any_of(where for first, where in self.may_refuse if first <= node)

    def guard(self, formula: Formula) -> Formula:
        return implies(self.premise, formula)


def _decisions(path: Path) -> Decisions:
    """Returns the branch decisions at which another path leaves this one; None is a branch on data."""
    return tuple((c.formula, c.taken) for c in path.conditions if not c.forced)


def _data_branches(path: Path) -> Iterator[tuple[Condition, Decisions, Decisions]]:
    """Yields the branches on data, with the decisions up to each, and up to its other side."""
    decisions = _decisions(path)
    for index, condition in enumerate(c for c in path.conditions if not c.forced):
        if condition.formula is None:
            before = decisions[:index]
            yield condition, decisions[: index + 1], (*before, (None, not condition.taken))


def _speaks_of(condition: Condition, names: Sequence[str]) -> bool:
    return condition.formula is not None and not free_symbols(condition.formula).isdisjoint(names)


def _numbers_of_data(path: Path) -> set[str]:
    """Returns the numbers of true elements that the data alone decide to be enough."""
    names = {name for name, _ in path.unbacked}
    return {name for c in path.constraints if c.alone for name in free_symbols(c.formula) & names}


def _on_data_sizes(path: Path) -> bool:
    """Returns whether the path's premise mentions sizes that data decide."""
    return not {n for n, _ in path.unbacked}.isdisjoint(free_symbols(path.premise))


def _origin(path: Path, node: int) -> Origin:
    return path.program.nodes[node].origin if 0 <= node < len(path.program.nodes) else Origin()


def _possible(values: dict[str, int] | None) -> dict[str, int] | None:
    """Returns the assignment, if rows exist that agree with it and none of them is long; else None."""
    long = values and any(n > LONG for name, n in values.items() if is_rank(name))
    return values if values and not long and is_possible(values) else None


def _unsure(requirement: Requirement) -> OpenSizes:
    """Returns the sizes that a requirement refuses, though not certainly."""
    some = requirement.some_data
    whose = "only for data that lead here" if some else "an approximation may refuse too much"
    region = negate(requirement.needs)
    return OpenSizes(region, f"{whose}: {requirement.reason}", requirement.origin, requirement.path)


class _Deciding:
    """Computes a decision from requirements."""

    def __init__(self, domain: Domain, judge: Judge, reading: _PathReading, prefer: Prefer) -> None:
        self.domain = domain
        self.prefer = prefer
        self.judge = judge
        self.reading = reading
        self.assumptions = domain.assumptions
        self.residual = tuple(map(self._freed, reading.requirements))

    def _freed(self, requirement: Requirement) -> Requirement:
        """Returns a requirement without its doubt if what it refuses lies outside of the sizes in doubt."""
        if isinstance(requirement.doubt, bool):
            return requirement
        refused = (*self.assumptions, negate(requirement.needs), requirement.doubt)
        certain = self.judge.satisfiable(refused) == "unsat"
        return replace(requirement, doubt=False) if certain else requirement

    def decision(self) -> Decision:
        needs = [r.needs for r in self.residual]
        answer = self.judge.satisfiable((*self.assumptions, *needs), self.domain.symbols)
        inside = dict(self.judge.model) if answer == "sat" else None
        if inside is None and self.judge.satisfiable(self.assumptions, self.domain.symbols) == "unsat":
            return self._decision("unknown", (OpenSizes(True, "the assumptions exclude all sizes"),))
        if answer == "unsat":
            return self._refuted()
        inside = inside and self._short(needs, inside)
        outside, sure, undecided = self._outside()
        if outside is None and not undecided:
            self.residual = ()
        reasons = [*self._reachable(needs, self.reading.open)]
        doubts = [*self._reachable(needs, self.reading.doubts)]
        if (reasons or doubts) and inside:
            inside = self._certain(needs, reasons, doubts)
        if answer == "unknown":
            reasons.append(
                OpenSizes(True, "the budget ran out before sizes were found that satisfy all requirements")
            )
        for r in undecided:
            reasons.append(OpenSizes(negate(r.needs), f"the budget ran out: {r.reason}", r.origin, r.path))
        inside = inside and self._polished(inside, reasons, doubts)
        if not sure:  # nothing is certainly refused; perhaps not all is certainly accepted
            reasons += doubts if outside is None else [*doubts, *map(_unsure, self.residual)]
        verdict: Verdict = "unknown" if reasons else "proved" if outside is None else "refined"
        open_ = (*reasons, *doubts)
        told = dict.fromkeys((*reasons, *(doubt for doubt in doubts if doubt.reason == TOGETHER)))
        return self._decision(verdict, tuple(told), inside=inside, outside=outside, left=True, open_=open_)

    def _certain(
        self, needs: Sequence[Formula], reasons: Sequence[OpenSizes], doubts: Sequence[OpenSizes]
    ) -> dict[str, int] | None:
        """Returns accepted sizes. Sizes that meet the known requirements need not be accepted: they must also
        lie outside open regions.

        Where an approximation leaves no certain ones, sizes that are probably accepted are returned.
        """
        for regions in ((*reasons, *doubts), reasons):
            closed = [negate(r.region) for r in regions]
            if self.judge.satisfiable((*self.assumptions, *needs, *closed), self.domain.symbols) == "sat":
                return dict(self.judge.model)
        return None

    def _short(self, needs: Sequence[Formula], inside: dict[str, int]) -> dict[str, int]:
        """Returns sizes that meet the requirements, as these do, with rows of few dims if there are rows."""
        ranks = [rank(name) for name in self.domain.rows]
        for most in (2, 3, 4) if ranks else ():
            if all(inside[str(long)] <= most for long in ranks):
                break
            formulas = (*self.assumptions, *needs, *(le(long, most) for long in ranks))
            if self.judge.satisfiable(formulas, self.domain.symbols) == "sat":
                return dict(self.judge.model)
        return inside

    def _outside(self) -> tuple[dict[str, int] | None, bool, list[Requirement]]:
        """Returns sizes in the domain that a requirement refuses, whether it certainly does, and the
        undecided requirements.
        """
        undecided = []
        certain = [(r, r.surely.needs) for r in self.residual if r.doubt is not True]
        others = [(r, r.needs) for r in self.residual if r.doubt is not False]
        for requirement, needs in (*certain, *others):
            answer = self.judge.satisfiable((*self.assumptions, negate(needs)), self.domain.symbols)
            if answer == "sat":
                return dict(self.judge.model), (requirement, needs) in certain, []
            if answer == "unknown":
                undecided.append(requirement)
        return None, False, undecided

    def _reachable(self, needs: Sequence[Formula], regions: Iterable[OpenSizes]) -> Iterator[OpenSizes]:
        """Yields the regions that are not proved to be empty."""
        for region in regions:
            if self.judge.satisfiable((*self.assumptions, *needs, region.region)) != "unsat":
                yield region

    def _polished(
        self, inside: dict[str, int], reasons: Sequence[OpenSizes], doubts: Sequence[OpenSizes]
    ) -> dict[str, int]:
        """Returns preferred sizes, or else small ones, within the regions in which these lie."""
        closed = [negate(r.region) for r in (*reasons, *doubts)]
        also = [f for f in closed if examples.satisfies((f,), inside)]
        formulas = (*self.assumptions, *(r.needs for r in self.residual), *also)
        found = examples.polished(inside, formulas, self.judge.known(formulas), self.domain.symbols)
        small = _possible(found) or inside
        return _possible(self.prefer(small, lambda sizes: examples.satisfies(formulas, sizes))) or small

    def _near(self, inside: Mapping[str, int]) -> dict[str, int] | None:
        """Returns refused sizes that differ from the accepted ones in one symbol."""
        refused = negate(all_of(r.needs for r in self.residual))
        known = self.judge.known(self.assumptions)
        return _possible(examples.neighbour(inside, self.assumptions, refused, known, self.domain.symbols))

    def _refuted(self) -> Decision:
        """Returns the decision where no sizes are left.

        Parts of requirements that are not certain do not count, nor requirements that some data meet.
        """
        surely = [r.surely for r in self.residual if r.doubt is not True and not r.by_data]
        cores = self._cores(surely)
        witness = self._refused_by(cores)
        if cores:
            return self._decision("refuted", cores=cores, outside=witness)
        surely = [r.surely for r in self.residual if r.doubt is not True]
        if any(r.by_data for r in surely) and (suspects := self._cores(surely)):
            return self._empty(suspects, witness)
        suspects = self._cores(list(self.residual))
        if any(r.by_data for r in self.residual):
            reason = "at every size some data are refused; others may be accepted"
        elif all(r.doubt is False for r in self.residual):
            reason = "every size is refused, but the budget ran out before the reason was found"
        else:
            reason = "every size is refused, but only for some data, or by an approximation"
        origin = suspects[0].requirements[0].origin if suspects else Origin()
        return self._decision("unknown", (OpenSizes(True, reason, origin),), cores=suspects, outside=witness)

    def _refused_by(self, cores: tuple[Core, ...]) -> Mapping[str, int] | None:
        """Returns declared sizes that meet all requirements but those of the cores, if there are any, and
        else any declared sizes. Preferred ones are returned where they are such sizes.
        """
        others = [r.needs for r in self.residual if not any(r in core.requirements for core in cores)]
        for given in ((*self.assumptions, *others), self.assumptions):
            if self.judge.satisfiable(given, self.domain.symbols) == "sat" and self.judge.model:
                some = dict(self.judge.model)
                return _possible(self.prefer(some, partial(examples.satisfies, given))) or some
        return None

    def _empty(self, cores: tuple[Core, ...], outside: Mapping[str, int] | None) -> Decision:
        """Returns the decision where at all sizes some data are refused, though not all of them: the accepted
        set is empty, and that is exact.
        """
        self.residual = tuple(replace(r, doubt=False) for core in cores for r in core.requirements)
        choice = next(r for r in self.residual if r.by_data)
        self.reading.on_data.append(OnData(f"at all sizes: {choice.reason}", choice.origin))
        return self._decision("refined", outside=outside, empty=True)

    def _cores(self, requirements: list[Requirement]) -> tuple[Core, ...]:
        """Returns disjoint minimal cores: first those of one requirement, then those among the others."""
        found: list[Core] = []
        left: list[Requirement] = []
        for requirement in requirements:
            alone = (*self.assumptions, requirement.needs)
            if len(found) < MAX_CORES and self.judge.known(alone).contradictory:
                found.append(self._core([requirement]))
            else:
                left.append(requirement)
        while left and len(found) < MAX_CORES:
            if self.judge.satisfiable((*self.assumptions, *(r.needs for r in left))) != "unsat":
                break
            core = self._core(left)
            found.append(core)
            left = [r for r in left if r not in core.requirements]
        return tuple(found)

    def _core(self, requirements: list[Requirement]) -> Core:
        needs = {r.needs: r for r in reversed(requirements)}
        core = self.judge.core([*conjuncts(all_of(self.assumptions)), *(r.needs for r in requirements)])
        named = tuple(needs[f] for f in core if f in needs)
        return Core(named, tuple(f for f in core if f not in needs))

    def _decision(
        self, verdict: Verdict, reasons: tuple[OpenSizes, ...] = (), *, cores: tuple[Core, ...] = (),
        inside: Mapping[str, int] | None = None, outside: Mapping[str, int] | None = None, left: bool = False,
        open_: Sequence[OpenSizes] = (), empty: bool = False,
    ) -> Decision:
        """Builds a decision; `empty` means that nothing is accepted, though not all is certainly refused.

        `left` means that, as far as is known, all requirements accept some sizes. Those in regions that are
        `open_` are not certainly accepted.
        """
        exact = not open_ and all(r.doubt is False for r in self.residual)
        exact |= verdict == "refuted"

        @cache
        def told() -> Told:
            if verdict == "refuted" or empty:
                return Told(False, refine.Summary({}, (False,)), False, outside)
            needs = [r.surely.needs if verdict == "unknown" else r.needs for r in self.residual]
            accepted, summary = self._in_words(needs, exact and verdict != "unknown")
            regions = [negate(r.region) for r in open_]
            if not left or False in regions:
                certain: Formula = False
            elif exact:
                certain = accepted
            else:
                certain, _ = self._in_words([*(r.needs for r in self.residual), *regions], None)
            refused = (inside and outside and self._near(inside)) or outside
            return Told(accepted, summary, certain, refused)

        return Decision(
            verdict, self.domain, self.judge, told, self.residual, cores, inside, tuple(self.reading.trace),
            exact, reasons, tuple(dict.fromkeys(self.reading.on_data)),
        )

    def _in_words(self, needs: Sequence[Formula], exact: bool | None) -> tuple[Formula, refine.Summary]:
        """Returns the conjunction of the needs as a short formula, with facts if `exact` is not None: it says
        whether they are exact.
        """
        try:
            accepted = refine.simplify(self.judge, self.domain, needs)
            if exact is None:
                return accepted, refine.Summary({}, ())
            found = refine.facts(self.judge, self.domain, accepted, exact)
            return accepted, refine.summary(self.judge, self.domain, accepted, found)
        except RecursionError:  # sizes are nested too deeply to be told more shortly
            return all_of(needs), refine.Summary({}, tuple(needs))
