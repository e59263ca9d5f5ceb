"""The sizes that an exported program can take, and those of them that the checks of its trace refuse.

torch guards a program against everything that it had to decide while it traced. A guard may mean that the
graph is wrong for the sizes that it refuses, or only that the tracer did not know. The graph decides: its
operators are checked like any other program, under the sizes of the inputs alone.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from torch.export import ExportedProgram

from ....constraints.engine.ruleset import Rules
from ....constraints.ir.language import Dynamic, Number, Tensor
from ....constraints.ir.program import Origin, Ref
from ....constraints.ir.spec import InputPath, Spec
from ....constraints.ir.system import Domain, Path
from ....constraints.terms.dims import Dim, Term
from ....constraints.terms.formula import Formula, conjuncts
from ....solver.decide import decide
from ....solver.tactics.judge import Budget
from ....tracer.host.exports import guards_of, set_checks
from ....tracer.readers import export
from ....tracer.readers.expressions import NotRead, guard
from ....tracer.readers.graph import ASSERTIONS, flat, retype
from ....tracer.readers.graph import system as graph_system
from ..tracing.tracing import Trace


@dataclass(frozen=True, slots=True)
class ProgramRequirement:
    """A requirement on sizes, with its reason and its origin."""

    formula: Formula
    reason: str
    origin: Origin = Origin()  # noqa: RUF009 - frozen


@dataclass(frozen=True, slots=True)
class Needs:
    """The requirements of a program on the sizes of its inputs."""

    graph: tuple[ProgramRequirement, ...]
    """The requirements of its operators, the assertions of its graph, and the structure of its inputs: sizes
    that are one symbol, or numbers.
    """
    checks: tuple[ProgramRequirement, ...] = ()
    """The requirements that the trace has added: guards and ranges."""
    unread: tuple[str, ...] = ()
    """Guards that formulas cannot say, as Python."""
    certain: bool = True
    """False where an operator's law is not known, or an assertion of the graph: it may need more."""


def needs(trace: Trace, spec: Spec, given: Sequence[Formula], rules: Rules, seconds: float) -> Needs:
    """Returns the requirements of the program on its sizes, where the given formulas hold.

    Raises SpecError where the spec does not fit the program, GraphError where its graph is damaged.
    """
    domain = Domain(spec.domain.symbols, tuple(dict.fromkeys((*spec.domain.assumptions, *given))))
    narrowed = Spec(spec.inputs, domain)
    program = trace.program
    whole = retype(export.read(program), narrowed)
    bare = retype(export.read(_without_checks(program)), narrowed)
    lines: dict[Formula, ProgramRequirement] = {}
    for text, origin in trace.lines.items():
        if (formula := formula_of(text, narrowed)) is not None:
            lines[formula] = ProgramRequirement(formula, f"torch guards {text}", origin)
    structure = {limit.formula for limit in bare.limits}
    system = graph_system(bare, rules)
    decision = decide(system, Budget(seconds))
    asked = [ProgramRequirement(r.needs, r.reason, r.origin) for r in decision.residual]
    if decision.verdict == "refuted":
        asked = [ProgramRequirement(False, "its operators run for no sizes")]
    checks = [ProgramRequirement(f, c.reason) for c in whole.limits for f in conjuncts(c.formula)]
    return Needs(
        tuple(_told(r, lines) for r in asked),
        tuple(_told(r, lines) for r in checks if r.formula not in structure),
        guards_of(program) if whole.lost else whole.unread,
        decision.verdict != "unknown" and decision.exact and _legible(system.paths[0]),
    )


def _without_checks(program: ExportedProgram) -> ExportedProgram:
    bare = copy.copy(program)
    set_checks(bare, [], {})
    return bare


def _told(requirement: ProgramRequirement, lines: Mapping[Formula, ProgramRequirement]) -> ProgramRequirement:
    """With the line at which torch decided it, where no other is known."""
    return requirement if requirement.origin.file else lines.get(requirement.formula, requirement)


def formula_of(text: str, spec: Spec) -> Formula | None:
    """A guard as a formula over the symbols of the spec."""
    declared = {flat(d.path): d.type for d in spec.inputs}

    def source(path: InputPath, axis: int | None) -> Dim:
        value = declared.get(flat(path))
        found = value.shape[axis] if isinstance(value, Tensor) and axis is not None else value
        if isinstance(found, int | Term) and not isinstance(found, bool):
            return found
        raise NotRead("a guard on something that is not a size")

    try:
        return guard(text, source, dict.fromkeys(spec.domain.symbols, (0, inf)))
    except (NotRead, IndexError):
        return None


def _legible(path: Path) -> bool:
    """Returns whether the rules have understood every assertion of the graph."""
    return not any(
        isinstance(path.values[argument.id], Number | Dynamic)
        for node in path.program.nodes
        if node.op in ASSERTIONS
        for _, argument in node.args[:1]
        if isinstance(argument, Ref)
    )
