"""Which sizes an exported program can take, and which of them the checks of its trace refuse.

torch guards a program against everything that it had to decide while it traced. Whether the graph is wrong
for the sizes that are refused, or right, and the guard only says what the tracer could not know, is a
question to the graph: its operators are checked like any other program, under the sizes of the inputs alone.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from torch.export import ExportedProgram

from ..constraints.formula import Formula, all_of, conjuncts, free_symbols
from ..constraints.generate import Rules
from ..constraints.language import Constraint
from ..constraints.program import Origin
from ..constraints.spec import Spec
from ..constraints.system import Domain, Path, System
from ..solver.decide import decide
from ..solver.judge import Budget
from ..tracer import export
from ..tracer.graph import ASSERTIONS
from ..tracer.graph import system as graph_system


@dataclass(frozen=True, slots=True)
class Requirement:
    """What is asked of the sizes, by whom, and where."""

    formula: Formula
    reason: str
    origin: Origin = Origin()  # noqa: RUF009 - frozen


@dataclass(frozen=True, slots=True)
class Needs:
    """What a program asks of the sizes of its inputs."""

    graph: tuple[Requirement, ...]
    """What its operators need, and the structure of its inputs: sizes that are one symbol, or numbers."""
    checks: tuple[Requirement, ...]
    """What the trace has put in front: guards, ranges and assertions."""
    unread: tuple[str, ...]
    """Guards that formulas cannot say."""
    certain: bool
    """False where an operator's law is not known: the graph may need more."""


def needs(
    program: ExportedProgram, spec: Spec, given: Sequence[Formula], rules: Rules, seconds: float
) -> Needs:
    """What the program needs where the given formulas hold.

    Raises SpecError where the spec does not fit the program, GraphError where its graph is damaged.
    """
    domain = Domain(spec.domain.symbols, tuple(dict.fromkeys((*spec.domain.assumptions, *given))))
    narrowed = Spec(spec.inputs, domain)
    whole = export.read(program)
    full = graph_system(whole, rules, narrowed)
    bare = graph_system(export.read(_without_checks(program)), rules, narrowed)
    names = frozenset(domain.symbols)
    structure = {c.formula for path in bare.paths for c in path.constraints if c.kind == "trace"}
    decision = decide(_unasserted(bare, names), Budget(seconds))
    asked = [Requirement(r.needs, r.reason, r.origin) for r in (*decision.trace, *decision.residual)]
    checks = [r for path in full.paths for r in _checks(path, names) if r.formula not in structure]
    return Needs(
        tuple(asked) if decision.verdict != "refuted" else (Requirement(False, "it runs for no sizes"),),
        tuple(checks),
        whole.unread,
        decision.verdict != "unknown" and decision.exact,
    )


def _without_checks(program: ExportedProgram) -> ExportedProgram:
    bare = copy.copy(program)
    bare._guards_code = []
    bare._range_constraints = {}
    return bare


def _unasserted(system: System, names: frozenset[str]) -> System:
    """The system without what is asserted of the sizes of inputs."""
    paths = []
    for path in system.paths:
        kept = tuple(c for c in path.constraints if not _is_assertion(path, c, names))
        paths.append(
            Path(path.program, path.values, kept, path.notes, path.conditions, path.end, path.unbacked)
        )
    return System(system.domain, tuple(paths), system.incomplete)


def _is_assertion(path: Path, constraint: Constraint, names: frozenset[str]) -> bool:
    asserted = constraint.node >= 0 and path.program.nodes[constraint.node].op in ASSERTIONS
    return asserted and free_symbols(constraint.formula) <= names


def _checks(path: Path, names: frozenset[str]) -> Iterator[Requirement]:
    for constraint in path.constraints:
        if constraint.kind == "trace" or _is_assertion(path, constraint, names):
            origin = path.program.nodes[constraint.node].origin if constraint.node >= 0 else Origin()
            for formula in conjuncts(all_of((constraint.formula,))):
                yield Requirement(formula, constraint.reason, origin)
