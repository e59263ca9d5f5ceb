"""Shows what was found to be true by example: finds the sizes, and tries them on the program."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from random import Random

from ...constraints.ir.language import Fact
from ...constraints.ir.program import Origin
from ...constraints.ir.spec import Spec
from ...constraints.ir.system import System
from ...constraints.terms.formula import negate
from ...constraints.terms.rows import consistent, is_rank, legible
from ...solver.decide import Decision, DomainOracle, Requirement
from ...solver.tactics.examples import satisfies
from ..replay.replay import Inconclusive, Outcome, Ran, RunRefused
from ..replay.unseen import Unseen, unseen
from ..report import findings
from ..report.codes import Code
from ..report.report import Accepts, Finding
from .sources import Source

MAX_WITNESSES = 8
"""This many findings get a witness of their own."""
SAMPLES = 3
"""This many more assignments are tried on either side of the accepted set."""
SAMPLE_NODES = 20_000
"""They are tried as long as the nodes of their programs together are no more than this."""
SAMPLE_ATTEMPTS = 200
"""They are chosen among this many candidates."""
STEPS = (0, 1, 2, 3, 4, 5, 6, 7, 15, 31, 63, 200)
"""Candidates lie this far from the smallest value of a symbol."""
RANKS = range(6)
"""Candidates of a rank lie this far from the smallest rank."""
CORNERS = 6
"""This many corners are tried where fake tensors do not see everything that matters."""
FAR = (200, 4097)
"""Corners lie this far out: beyond 128, where bytes wrap, and beyond 2048, where short floats round."""


class Trial:
    """Replays claims and gathers what came of it."""

    def __init__(self, source: Source, system: System, decision: Decision) -> None:
        self.source, self.decision = source, decision
        self.unseen = unseen(system)
        self.on_data = self.unseen.asserts or any(p.on_data or p.unbacked for p in system.paths)
        self.nodes = max((len(path.program.nodes) for path in system.paths), default=0)
        """The number of nodes of the longest program: the cost of a run."""
        self.mistakes: list[Finding] = []
        """Runs that contradict what was claimed."""
        self.remarks: list[Finding] = []
        self.by_data: list[Finding] = []
        """Runs that ended at a line that some data are refused at."""
        self.how = ""
        self.ran = False
        """Whether the program ran at any sizes at which it was claimed to."""
        self.late: Inconclusive | None = None
        """A run that the clock has broken off. It might have contradicted, so that the verdict is `unknown`,
        and nothing more is tried.
        """
        self.outcomes: dict[tuple[bool, tuple[tuple[str, int], ...]], Outcome] = {}

    def run(self, values: Mapping[str, int], accepted: bool) -> Outcome:
        """Returns the outcome of the program at these sizes; each assignment is run once."""
        if self.late is not None:
            return self.late
        key = accepted, tuple(values.items())
        if key not in self.outcomes:
            self.outcomes[key] = self.source.run(values, accepted)
        return self.outcomes[key]

    def claimed(self, values: Mapping[str, int], accepted: bool) -> bool:
        """Returns whether the decision claims with certainty that the program runs at these sizes, or that it
        does not.
        """
        if accepted:
            return satisfies((self.decision.certain,), values)
        return not satisfies((self.decision.possible,), values)

    def confirms(self, values: Mapping[str, int], accepted: bool) -> bool:
        """Returns whether the program does what is expected at these sizes. If not, the reason is recorded;
        and if the expectation was claimed with certainty, the claim is wrong, or data decide.
        """
        outcome = self.run(values, accepted)
        expected = f"{show(values)} should {'run' if accepted else 'be refused'}"
        if isinstance(outcome, Inconclusive) and outcome.late:
            if self.late is None:
                self.late = outcome
                told = f"{expected}; this could not be confirmed: {outcome.reason}"
                self.mistakes.append(findings.make(Code.INCOMPLETE, told))
            return False
        if isinstance(outcome, Inconclusive) and not (outcome.raised and accepted):
            self._remark(Code.NOT_REPLAYED, f"{expected}; not tried: {outcome.reason}")
            return True
        self.how = self.how or ("" if isinstance(outcome, Inconclusive) else outcome.how)
        if isinstance(outcome, Ran) == accepted:
            self.ran |= accepted
            return True
        did = f"{expected}, but it {_did(outcome)}"
        if not self.claimed(values, accepted):
            why = "the data decide there" if self.on_data else "an approximation decides there"
            self._remark(Code.NOT_REPLAYED, f"{did}; the report is not certain of these sizes: {why}")
        elif not accepted and all(r.by_data for r in self.decision.violated(values)):
            self._remark(Code.NOT_REPLAYED, f"{did} with the data that were tried; other data are refused")
        elif isinstance(outcome, RunRefused) and self._by_data(outcome):
            told = f"{did}; the data cause this"
            self.by_data.append(findings.make(Code.NOT_REPLAYED, told, outcome.origin))
        else:
            self._contradicted(outcome, did, values)
        return False

    def _by_data(self, outcome: RunRefused) -> bool:
        """Returns whether the program is refused at a line that also refuses some data."""
        line = outcome.origin.file, outcome.origin.line
        return any((one.origin.file, one.origin.line) == line for one in self.decision.on_data)

    def _contradicted(self, outcome: Outcome, did: str, values: Mapping[str, int]) -> None:
        if isinstance(outcome, Inconclusive):
            finding = findings.make(Code.CONTRADICTED, f"{did}, for a reason other than sizes")
        elif self.on_data:
            finding = findings.make(Code.CONTRADICTED, f"{did}; data decide which path the program takes")
        else:
            finding = findings.make(Code.INTERNAL_ERROR, f"{did}: a defect of anyshape, please report it")
        origin = finding.origin if isinstance(outcome, Ran) else outcome.origin
        self.mistakes.append(replace(finding, origin=origin, witness=dict(values)))

    def ends(self) -> None:
        """Looks back: where all data that were tried are refused, it may be that all data are."""
        if self.by_data and not self.ran:
            told = f"{self.by_data[0].message}; all data that were tried are refused"
            finding = findings.make(Code.CONTRADICTED, told, self.by_data[0].origin)
            self.mistakes.append(finding)
        else:
            self.remarks.extend(self.by_data[:1])

    def sample(self, accepts: Accepts, facts: Mapping[str, Fact]) -> None:
        """Runs some more assignments about which the report makes a claim: corners, where fake tensors do not
        see everything that matters, and small and mixed ones, fewer where there were corners.

        The choice is the same from run to run.
        """
        left = {True: SAMPLES, False: SAMPLES}
        corners = _corners(accepts.symbols, facts, self.unseen) if self.unseen else ()
        for values in islice(self._distinct(accepts, corners), CORNERS):
            accepted = accepts.holds(**values)
            left[accepted] = max(1, left[accepted] - 1)
            if not self._tried(values, accepted):
                break
        spent = 0
        for values in self._distinct(accepts, () if self.mistakes else _mixed(accepts.symbols, facts)):
            accepted = accepts.holds(**values)
            if left[accepted] == 0:
                continue
            left[accepted] -= 1
            spent += self.nodes
            if not self._tried(values, accepted) or spent > SAMPLE_NODES or not any(left.values()):
                return

    def _tried(self, values: Mapping[str, int], accepted: bool) -> bool:
        """Returns whether the program could be run at these sizes, and did what is expected."""
        return self.confirms(values, accepted) and not isinstance(self.run(values, accepted), Inconclusive)

    def _distinct(
        self, accepts: Accepts, candidates: Iterable[Mapping[str, int]]
    ) -> Iterator[dict[str, int]]:
        """Yields the assignments within the domain about which the report makes a claim, each once."""
        seen: set[tuple[int, ...]] = set()
        for candidate in candidates:
            values = consistent(accepts.symbols, candidate)
            if tuple(values.values()) in seen:
                continue
            seen.add(tuple(values.values()))
            accepted = accepts.holds(**values)
            if (accepted or accepts.declared(**values)) and self.claimed(values, accepted):
                yield values

    def _remark(self, code: Code, message: str) -> None:
        finding = findings.make(code, message)
        if finding not in self.remarks:
            self.remarks.append(finding)


def _mixed(symbols: Iterable[str], facts: Mapping[str, Fact]) -> Iterator[dict[str, int]]:
    """Random assignments, the same each time."""
    random = Random(0)
    for _ in range(SAMPLE_ATTEMPTS):
        yield {name: _candidate(name, facts[name], random) for name in symbols}


def _corners(symbols: Sequence[str], facts: Mapping[str, Fact], unseen: Unseen) -> Iterator[dict[str, int]]:
    """Assignments where all symbols are least but for one that matters to what is not seen, or none of these
    is least.
    """
    least = {name: _reached(facts[name], 0) for name in symbols if not is_rank(name)}
    others = [name for name in least if name in unseen.symbols]
    for far in (FAR[0], *(size + 1 for size in unseen.sizes), *FAR[1:]):
        for name in others:
            yield {**dict.fromkeys(symbols, 1), **least, name: _reached(facts[name], far)}
    yield {**dict.fromkeys(symbols, 1), **least, **{n: _reached(facts[n], FAR[0]) for n in others}}


def _reached(fact: Fact, far: int) -> int:
    """The first value from there on that the fact allows, or else its greatest."""
    low = fact.min if fact.min is not None else 1
    if fact.divisor == 0:
        return fact.remainder
    value = low + fact.divisor * max(-((low - far) // fact.divisor), 0)
    return value if fact.max is None else min(value, fact.max)


def _candidate(name: str, fact: Fact, random: Random) -> int:
    """A value that the fact allows, most often a small one, or now and then one beside it."""
    low = fact.min if fact.min is not None else -2 if fact.max is None else fact.max - 8
    step = random.choice(RANKS if is_rank(name) else STEPS)
    value = fact.remainder if fact.divisor == 0 else low + fact.divisor * step
    if fact.max is not None:
        value = min(value, fact.max)
    return value + random.choice((0, 0, 0, 0, 1, -1))


def _is_there(raised: Origin, required: Origin) -> bool:
    """Returns whether an error was raised by the call that requires something, as far as is known."""
    unknown = not raised.stop or not required.stop
    return raised.line == required.line and (unknown or raised.start == required.start)


def _did(outcome: Outcome) -> str:
    match outcome:
        case Ran(how):
            return f"runs ({how})"
        case RunRefused(how, reason, exception, _):
            return f"is refused ({how}): {exception}: {reason}"
        case Inconclusive(reason):
            return f"raises {reason}"


def show(values: Mapping[str, int]) -> str:
    """`b=2, h=64`, `x=[2, 512]` of a row."""
    return ", ".join(legible(values)) or "the only input"


class Witnesses:
    """Finds, for one line after the other, sizes that it refuses and those before it do not."""

    def __init__(
        self, spec: Spec, decision: Decision, outside: Mapping[str, int] | None, oracle: DomainOracle,
        trial: Trial | None,
    ) -> None:
        self.given, self.residual = spec.domain.assumptions, decision.residual
        self.refuted = decision.verdict == "refuted"
        self.outside, self.oracle, self.trial = outside, oracle, trial
        self.near = decision.inside
        self.left = MAX_WITNESSES

    def show(self, group: findings.Group) -> findings.Witness:
        """Sizes that break the last of the group, if they are refused indeed, and what the program raised."""
        if self.left == 0:
            return None, ""
        self.left -= 1
        requirement = group.requirements[-1]
        witness = self.outside if self.refuted else self._example(requirement)
        if witness is None or self.trial is None:
            return witness, ""
        if not self.trial.confirms(witness, False):
            return None, ""
        outcome = self.trial.run(witness, False)
        if isinstance(outcome, RunRefused) and _is_there(outcome.origin, requirement.origin):
            return witness, ": ".join(filter(None, (outcome.exception, outcome.reason)))
        return witness, ""

    def _example(self, requirement: Requirement) -> Mapping[str, int] | None:
        """Sizes that are refused here and no earlier, or else refused here, near to accepted ones."""
        before = [r.needs for r in self.residual[: self.residual.index(requirement)]]
        refused = negate(requirement.needs)
        for given in ((*self.given, *before), self.given):
            if self.near is not None and (found := self.oracle.neighbour(self.near, given, refused)):
                return found
        for given in ((*self.given, *before, refused), (*self.given, refused)):
            if (found := self.oracle.example(given)) is not None:
                return found
        return None
