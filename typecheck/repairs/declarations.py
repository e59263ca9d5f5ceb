"""Repairs of declarations: declaring that some inputs never come, or declaring other sizes of an input."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from msgspec import structs

from ...constraints.ir.language import Tensor
from ...constraints.ir.program import Origin
from ...constraints.ir.spec import Spec
from ...constraints.ir.spec_text import write_spec
from ...constraints.ir.system import Domain
from ...constraints.terms.dims import Dim, sym
from ...constraints.terms.formula import ge
from ...solver.decide import Decision, decide, requirements
from ...solver.repair import fillings
from ...solver.tactics.judge import Judge
from ...tracer.patches.edits import OpenNumber
from ..replay.replay import Ran, Replayer
from ..report.codes import Code
from ..report.report import Finding, Repair
from .proving import Prover, left


def declared(finding: Finding, before: Decision, repaired: bool) -> Repair | None:
    """Returns the repair that declares that the refused inputs never come, which restricts the domain.

    If another repair exists, this one is reported only where it leaves most sizes: a multiple, a least size.
    """
    if finding.code is Code.SHAPE_MISMATCH or before.verdict != "refined":
        return None
    condition = finding.condition
    if not condition or len(condition) > 60 or (repaired and not leaves_most(condition)):
        return None
    return Repair(f"exclude other inputs: assume {condition}", Origin())


def leaves_most(condition: str) -> bool:
    """Returns whether the condition consists of multiples, least sizes and unequal sizes alone."""
    asked = re.compile(r"\w+ % \d+ == \d+|\d+ <= \w+|\w+ != \d+")
    return all(asked.fullmatch(part) for part in condition.split(" and "))


def redeclared(prover: Prover, until: float) -> Iterator[Repair]:
    """Other sizes of an input, where they are declared as numbers: the program may be right, these wrong."""
    spec = prover.spec
    for index, given in enumerate(spec.inputs):
        if not isinstance(given.type, Tensor):
            continue
        shape = given.type.shape
        sizes_now = [*dict.fromkeys(n for n in shape if isinstance(n, int) and n > 1)]
        if not sizes_now:
            continue
        # What is equal stays equal: a square image is one number.
        numbers = {
            i: OpenNumber.nth(sizes_now.index(n), n)
            for i, n in enumerate(shape)
            if isinstance(n, int) and n > 1
        }
        holes = {number.name: number.now for number in numbers.values()}
        dims = tuple(sym(numbers[i].name) if i in numbers else d for i, d in enumerate(shape))
        system = prover.recorded(prover.target, _with_input(spec, index, dims, holes), until)
        judge = Judge(left(until))
        asked = None if system is None else requirements(system, judge)
        values = next(fillings([r.needs for r in asked], spec.domain, holes, judge), None) if asked else None
        if values is None:
            continue
        sizes = tuple(values[numbers[i].name] if i in numbers else d for i, d in enumerate(shape))
        told = _with_input(spec, index, sizes, {})
        if _accepts_all(prover, told, until):
            yield Repair(f"declare {write_spec(told)[index]}, if that is what comes", Origin())


def _accepts_all(prover: Prover, spec: Spec, until: float) -> bool:
    """Returns whether the program runs for all inputs of the spec, by proof and by a run at an example."""
    system = prover.recorded(prover.target, spec, until)
    decision = None if system is None else decide(system, left(until))
    if decision is None or decision.verdict != "proved" or decision.inside is None:
        return False
    return isinstance(Replayer(prover.target, spec).run(decision.inside, True), Ran)


def widened(domain: Domain, holes: Iterable[str]) -> Domain:
    """The domain with symbols for numbers that are left open."""
    at_least = (ge(sym(name), 1) for name in holes)
    return replace(domain, symbols=(*domain.symbols, *holes), assumptions=(*domain.assumptions, *at_least))


def _with_input(spec: Spec, index: int, shape: tuple[Dim, ...], holes: Iterable[str]) -> Spec:
    """The spec with other sizes of one input."""
    inputs = [*spec.inputs]
    old = inputs[index].type
    assert isinstance(old, Tensor)
    inputs[index] = replace(inputs[index], type=structs.replace(old, shape=shape))
    return Spec(tuple(inputs), widened(spec.domain, holes))
