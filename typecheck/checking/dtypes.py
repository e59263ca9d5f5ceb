"""Finds the dtypes that a program needs of its inputs, by recording it with others than those it refuses.

A spec may leave dtypes out: these inputs are float32 unless the program refuses that. Where a declared dtype
is refused, another that is not is the repair.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Final, TypeAlias

from ...constraints.ir.program import Origin
from ...constraints.ir.spec import Spec
from ...constraints.ir.spec_text import DTYPES, write_spec
from ...constraints.ir.system import Path, System
from ..report.codes import Code
from ..report.findings import make
from ..report.report import Finding, Repair, ReportData, Verdict
from ..targets.target_error import TargetError

Dtypes: TypeAlias = Mapping[str, str]
"""A dtype for each of some inputs, by name."""
Recording: TypeAlias = "Callable[[Dtypes], System]"
"""Records a program with other dtypes of some inputs. Raises TargetError."""
MOST: Final = 60
"""At most so many recordings are tried."""
SECONDS: Final = 6.0
"""No recording begins after this time."""
_USUAL: Final = ("int64", "bool", "float32", "int32", "complex64")
"""Dtypes that are tried in any case."""
_A_DTYPE: Final = rf"(?:{'|'.join(sorted({*DTYPES.values()}))})\b(?!\[)"
_ABOUT_DTYPES: Final = re.compile(
    rf"\b(?:not|take|and|got|expected) {_A_DTYPE}|\bdtypes?\b|\b[Ss]calar type\b"
)
"""A reason that is about a dtype, not about a size."""


@dataclass(frozen=True, slots=True)
class DtypeRefusal:
    """A call that refuses the dtype of an operand, and the inputs that the operand may come from."""

    reason: str
    origin: Origin
    op: str
    inputs: tuple[str, ...]
    """The nearest first."""

    def is_of(self, other: DtypeRefusal) -> bool:
        """Returns whether both are about one call."""
        return (self.origin, self.op) == (other.origin, other.op)


def refusals(system: System, inputs: Sequence[str]) -> list[DtypeRefusal]:
    """Returns the refusals of dtypes along all paths, in the order of the program. `inputs` are the names of
    the declared inputs.
    """
    found: dict[DtypeRefusal, None] = {}
    for path in system.paths:
        for one in path.constraints:
            if one.formula is not True and _ABOUT_DTYPES.search(one.reason):
                node = path.program.nodes[one.node]
                behind = tuple(name for name in _behind(path, one.node) if name in inputs)
                found[DtypeRefusal(one.reason, node.origin, node.op, behind)] = None
        if path.end.how != "returned" and _ABOUT_DTYPES.search(path.end.reason):
            found[DtypeRefusal(path.end.reason, path.end.origin, "", tuple(inputs))] = None
    return [*found]


def _behind(path: Path, node: int) -> Iterator[str]:
    """Yields the names of the inputs that a call's operands are computed from, the nearest first."""
    program = path.program
    made = {result: at for at, one in enumerate(program.nodes) for result in one.results}
    names = {given.id: given.name for given in program.inputs}
    queue = deque(ref.id for ref in program.nodes[node].refs)
    seen: set[int] = set()
    while queue:
        if (id := queue.popleft()) in seen:
            continue
        seen.add(id)
        if id in names:
            yield names[id]
        elif id in made:
            queue.extend(ref.id for ref in program.nodes[made[id]].refs)


def failure(error: TargetError, inputs: Sequence[str]) -> list[DtypeRefusal]:
    """Returns the refusal of a program that fails for a reason other than sizes, where it may be a dtype."""
    if "TypeError" not in error.problem and not _ABOUT_DTYPES.search(error.problem):
        return []
    return [DtypeRefusal(error.problem, error.origin, "", tuple(inputs))]


def suited(
    refused: Sequence[DtypeRefusal], dtypes: Dtypes, names: Sequence[str], recorded: Recording
) -> dict[str, str]:
    """Returns other dtypes for those of some inputs that a program refuses; none where it refuses none of
    them, or where no other is better. `dtypes` are the present ones of the inputs that may change, `names`
    those of all inputs.
    """
    search = _Search(dict(dtypes), tuple(names), recorded, len(refused))
    search.descend({}, frozenset(dtypes), refused)
    return search.best


@dataclass(slots=True)
class _Search:
    """Changes the dtypes of the inputs behind one refusal after the other, and goes back where that fails."""

    now: dict[str, str]
    names: tuple[str, ...]
    recorded: Recording
    left: int
    """The number of refusals that the best dtypes so far leave."""
    best: dict[str, str] = field(default_factory=dict)
    tries: int = 0
    until: float = field(default_factory=lambda: time.monotonic() + SECONDS)

    def descend(self, chosen: dict[str, str], free: frozenset[str], refused: Sequence[DtypeRefusal]) -> bool:
        """Returns whether dtypes were found that the program takes; `best` has those that it refuses least.
        """
        if len(refused) < self.left:
            self.best, self.left = chosen, len(refused)
        if not refused:
            return True
        first = refused[0]
        for names, dtype in self._moves(first, free):
            if self.tries >= MOST or time.monotonic() > self.until:
                return False
            changed = {**chosen, **dict.fromkeys(names, dtype)}
            now = self._tried(changed)
            if now is None or any(one.is_of(first) for one in now):
                continue
            if self.descend(changed, free - {*names}, now):
                return True
        return False

    def _moves(self, first: DtypeRefusal, free: frozenset[str]) -> Iterator[tuple[tuple[str, ...], str]]:
        """Yields inputs behind a refusal with a dtype to try: one input after the other, then all of them."""
        names = tuple(name for name in first.inputs if name in free)
        groups = [(name,) for name in names] + ([names] if len(names) > 1 else [])
        candidates = dict.fromkeys((*sorted(_named(first.reason), key=_rank), *_USUAL))
        for group, dtype in product(groups, candidates):
            if any(self.now[name] != dtype for name in group):
                yield group, dtype

    def _tried(self, chosen: Dtypes) -> list[DtypeRefusal] | None:
        """Returns what is refused with these dtypes; None where the program fails otherwise."""
        self.tries += 1
        try:
            return refusals(self.recorded(chosen), self.names)
        except TargetError:
            return None


def _named(reason: str) -> list[str]:
    return re.findall(_A_DTYPE, reason)


def _rank(dtype: str) -> int:
    """Returns the place of a dtype among those that a reason names."""
    return _USUAL.index(dtype) if dtype in _USUAL else len(_USUAL)


def lines_of(spec: Spec, names: Mapping[str, object]) -> tuple[str, ...]:
    """Returns the lines of a spec for some of its inputs."""
    lines = zip(spec.inputs, write_spec(spec), strict=True)
    return tuple([line for one, line in lines if one.name in names])


def led_by_dtypes(
    report: ReportData, refused: Sequence[DtypeRefusal], spec: Spec, repaired: ReportData
) -> tuple[Finding, ...]:
    """Returns the findings of a report, first of all that inputs should have other dtypes. `spec` has these,
    and `repaired` is the report on it. What is refused because of the dtypes is not told again.
    """
    now = dict(zip((one.name for one in spec.inputs), report.inputs, strict=True))
    wrong = {name: dtype for name, dtype in spec.dtypes().items() if f": {dtype}[" not in now[name]}
    lines = lines_of(spec, wrong)
    first = next((one for one in refused if {*one.inputs} & wrong.keys()), refused[0])
    told = " and ".join(f"{name} should be {dtype}" for name, dtype in wrong.items())
    then = "" if repaired.verdict is Verdict.PROVED else f", with which {_then(repaired)}"
    repair = Repair(f"declare {'; '.join(lines)}{then}", Origin())
    bare = make(Code.DTYPE, first.reason, first.origin)
    there = next((one for one in report.findings if one.origin == first.origin), bare)
    message = f"{told}: {first.reason}"
    lead = replace(
        there, code=Code.DTYPE, severity=bare.severity, message=message, op=first.op, repairs=(repair,)
    )
    places = {(one.origin.file, one.origin.line) for one in refused}
    return (lead, *(one for one in report.findings if not _rests_on(one, places)))


def _rests_on(finding: Finding, places: set[tuple[str, int]]) -> bool:
    """Returns whether a finding is about a refused dtype, or contradicts one."""
    if finding.code not in (Code.SHAPE_MISMATCH, Code.CONDITION, Code.RAISES):
        return False
    origins = (finding.origin, *(link.origin for link in finding.conflict))
    return any((origin.file, origin.line) in places for origin in origins)


def _then(report: ReportData) -> str:
    """Returns what a program does, in the middle of a sentence."""
    match report.verdict:
        case Verdict.REFINED:
            return f"it runs where {report.accepts}"
        case Verdict.REFUTED:
            reason = report.findings[0].message if report.findings else "sizes"
            return f"its dtype is taken, and another reason is left: {reason}"
    return "its dtype is taken"
