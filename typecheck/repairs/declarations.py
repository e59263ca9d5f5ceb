"""Repairs of declarations: declaring that some inputs never come, or declaring other sizes of an input."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from msgspec import structs

from ...constraints.ir.language import Tensor, Value, tensors
from ...constraints.ir.program import Origin
from ...constraints.ir.spec import Spec
from ...constraints.ir.spec_text import write_spec
from ...constraints.ir.system import Domain
from ...constraints.terms.dims import Dim, sym, symbols
from ...constraints.terms.formula import (
    Formula,
    all_of,
    conjuncts,
    disjuncts,
    eq,
    free_symbols,
    ge,
    holds,
    rewrite,
)
from ...constraints.terms.formula_text import parse_formula
from ...solver.decide import Decision, decide, requirements
from ...solver.repair import fillings
from ...solver.tactics.judge import Judge
from ...tracer.patches.edits import OpenNumber
from ..replay.replay import Ran, Replayer
from ..report.codes import Code
from ..report.report import Finding, Repair
from .places import leaves_most
from .proving import ELEMENTWISE, Prover, left


def declared(finding: Finding, before: Decision, alone: bool) -> Repair | None:
    """Returns the repair that declares that the refused inputs never come, which restricts the domain.

    Unless it stands alone, it is reported only where it leaves most sizes: a multiple, a least size.
    """
    condition = finding.condition
    if finding.code is Code.SHAPE_MISMATCH or before.verdict != "refined" or not condition:
        return None
    if len(condition) > 60 or not (alone or leaves_most(condition)):
        return None
    return Repair(f"declare {condition}", Origin())


def relation(finding: Finding, spec: Spec) -> Formula:
    """Returns the equations between sizes of different inputs that the finding asks for, such as `s == t` of
    tokens `[b, t]` and a mask `[b, s]`; True if it asks for others.

    That one of two sizes is 1 lets them broadcast, but is not what such inputs are meant to have.
    """
    needs = parse_formula(finding.condition) if finding.condition else True
    parts = []
    for part in conjuncts(needs):
        equal = [one for one in disjuncts(part) if _relates(one, spec)]
        if not equal and not leaves_most(str(part)):
            return True
        parts += equal[:1]
    return all_of(parts)


def _relates(formula: Formula, spec: Spec) -> bool:
    """Returns whether a formula equates a size of an input with a size of another."""
    names = re.fullmatch(r"(\w+) == (\w+)", str(formula))
    if names is None or not {*names.groups()} <= {*spec.domain.symbols}:
        return False
    one, other = ({d.path for d in spec.inputs if name in _named(d.type)} for name in names.groups())
    return one.isdisjoint(other)


def _named(value: Value) -> frozenset[str]:
    return frozenset().union(*(symbols(dim) for tensor in tensors(value) for dim in tensor.shape))


def sizes(finding: Finding, spec: Spec) -> Formula:
    """Returns the least equal sizes at which an input fits a tensor of the program's own, such as a table of
    positions: `h == 32 and w == 32`; True if there are none.

    An input of size 1 may broadcast, but is not what such a tensor is made for.
    """
    if finding.op not in ELEMENTWISE or not finding.condition or leaves_most(finding.condition):
        return True
    needs = parse_formula(finding.condition)
    largest = [
        max(disjuncts(part), key=lambda one: next(_equal_sizes(one, spec), 0)) for part in conjuncts(needs)
    ]
    found = [*islice(_equal_sizes(all_of(largest), spec), 3)]
    if len(found) == 2 and found[0] == 1:
        del found[0]
    if not found or found[0] == 1:
        return True
    return all_of(eq(sym(name), found[0]) for name in sorted(free_symbols(needs)))


MAX_SIZE: Final = 4096


def _equal_sizes(formula: Formula, spec: Spec) -> Iterator[int]:
    """Yields the sizes at which a formula holds of declared inputs if all of its symbols have them."""
    names = free_symbols(formula)
    given = (a for a in spec.domain.assumptions if free_symbols(a) <= names)
    whole = all_of((formula, *given))
    if names <= {*spec.domain.symbols}:
        yield from (n for n in range(1, MAX_SIZE) if _holds(whole, dict.fromkeys(names, n)))


def _holds(formula: Formula, values: Mapping[str, int]) -> bool:
    try:
        return holds(formula, values)
    except ZeroDivisionError:
        return False


def with_dtypes(finding: Finding, prover: Prover, until: float) -> Iterator[Repair]:
    """Yields declarations of another dtype of an input, after which the finding is gone."""
    spec = prover.spec
    for index, given in enumerate(spec.inputs):
        type_ = given.type
        if not isinstance(type_, Tensor) or type_.dtype is None or type_.dtype not in finding.message:
            continue
        for dtype in _DTYPES if type_.dtype.startswith("float") else ("float32",):
            inputs = [*spec.inputs]
            inputs[index] = replace(given, type=structs.replace(type_, dtype=dtype))
            changed = Spec(tuple(inputs), spec.domain)
            if prover.removed_by(changed, finding, until):
                yield Repair(f"declare {write_spec(changed)[index]}", Origin())
                break


_DTYPES: Final = ("int64", "bool")
"""What indices, classes and masks are."""


def assumed(formula: Formula, finding: Finding, prover: Prover, until: float) -> Repair | None:
    """Returns the declaration of a condition, if the finding is gone where it holds."""
    spec = prover.spec
    domain = replace(spec.domain, assumptions=(*spec.domain.assumptions, formula))
    if formula is True or not prover.removed_by(Spec(spec.inputs, domain), finding, until):
        return None
    return Repair(f"declare {formula}", Origin())


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
        picked = _rounder(values, [r.needs for r in asked or ()], judge, spec.domain)
        if any(not n // 2 <= picked[name] <= 2 * n for name, n in holes.items()):
            continue
        found = tuple(picked[numbers[i].name] if i in numbers else d for i, d in enumerate(shape))
        told = _with_input(spec, index, found, {})
        if _accepts_all(prover, told, until):
            yield Repair(f"declare {write_spec(told)[index]}, if that is what comes", Origin())


def _rounder(
    values: Mapping[str, int], needs: Sequence[Formula], judge: Judge, domain: Domain
) -> Mapping[str, int]:
    """Returns the sizes of an input as people pick them, a multiple of a power of two if one is as near."""
    for power in (64, 32, 16, 8):
        rounder = {name: n - n % power or n for name, n in values.items()}
        try:
            fits = judge.follows(all_of(rewrite(need, rounder) for need in needs), domain.assumptions)
        except ZeroDivisionError:
            continue
        if fits:
            return rounder
    return values


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
