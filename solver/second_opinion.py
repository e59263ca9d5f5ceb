"""The questions for another solver, whose answers decide whether a verdict is reported as agreed.

The questions are made of the system alone: each requirement as its rule stated it, under the branches before
it, without the simplifications of the fast path. Let D be the declared inputs, A the condition that the
report prints and R the requirements of all paths. Then the verdict and the condition are right if

- each branch that was assumed to have one outcome has that outcome for all of D that reaches it,
- the paths together cover all of D,
- D and A imply R (`proved`, where A is true, and `refined`),
- D and R imply A (`refined`),
- D contradicts the requirements of a core, and R implies each of them (`refuted`),
- the examples are in D, inside and outside of A.

The requirements along a path form a chain: `first and (second or (third and ...))`, as deep as the path is
long.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Literal, TypeAlias

from ..constraints.ir.language import Constraint
from ..constraints.ir.program import Origin
from ..constraints.ir.system import Condition, Path, System
from ..constraints.terms.dims import Apply, Dim, Symbol, coefficients, sym
from ..constraints.terms.formula import (
    And,
    Compare,
    Formula,
    Or,
    all_of,
    conjuncts,
    eq,
    free_symbols,
    holds,
    implies,
    negate,
)
from ..constraints.terms.rows import is_possible
from .decide import Core, Requirement

Kind: TypeAlias = Literal["taken", "forced", "required"]
Link: TypeAlias = tuple[Literal["and", "or"], Formula]


@dataclass(frozen=True, slots=True)
class Chain:
    """A nested formula: `links`, from left to right, are joined by `and` or `or` with everything after them,
    and `last` is the innermost part.
    """

    links: tuple[Link, ...]
    last: bool

    def holds(self, values: Mapping[str, int]) -> bool:
        """Returns whether the chain is true for these values."""
        for how, formula in self.links:
            true = holds(formula, values)
            if true == (how == "or"):
                return true
        return self.last


@dataclass(frozen=True, slots=True)
class OpinionQuestion:
    """Formulas and chains that must be satisfiable, or unsatisfiable, if the verdict is right."""

    claim: str
    """The conclusion that the expected answer supports."""
    expected: Literal["sat", "unsat"]
    formulas: tuple[Formula, ...]
    chains: tuple[Chain, ...] = ()
    parts: Callable[[], Iterable[OpinionQuestion]] = tuple
    """Questions whose expected answers together imply that of this one, for when it is not found as a whole.
    """
    enough: tuple[Formula, ...] | None = None
    """Formulas that follow from the question, and are likely to be contradictory if it is."""
    linear: bool = False
    """Whether comparisons that multiply symbols, or divide by them, are left free to be true or false."""

    @property
    def names(self) -> list[str]:
        """Returns the symbols that the question mentions."""
        formulas = [*self.formulas, *(formula for chain in self.chains for _, formula in chain.links)]
        return sorted(frozenset[str]().union(*map(free_symbols, formulas)))

    @property
    def relaxed(self) -> tuple[OpinionQuestion, ...]:
        """Returns weaker versions of the question, the easiest first: if one is unsatisfiable, so is the
        question.
        """
        if self.expected == "sat":
            return ()
        forms = [] if self.enough is None else [replace(self, formulas=self.enough, chains=(), enough=None)]
        forms = [each for form in (*forms, self) for each in (replace(form, linear=True), form)]
        return tuple(form for form in forms if form is not self and not (form.linear and form.is_linear))

    @property
    def is_linear(self) -> bool:
        """Returns whether the question multiplies no symbols and divides by none."""
        return all(map(is_linear, (*self.formulas, *(f for chain in self.chains for _, f in chain.links))))

    def holds(self, values: Mapping[str, int]) -> bool:
        """Returns whether these values satisfy the question, by Python's arithmetic, and are possible for
        rows.
        """
        try:
            true = all(holds(f, values) for f in self.formulas) and all(c.holds(values) for c in self.chains)
        except ZeroDivisionError:
            return False
        return true and is_possible(values)


@dataclass(frozen=True, slots=True)
class Questions:
    """All questions, and the reason, if any, why the verdict rests on more than their answers."""

    asked: tuple[OpinionQuestion, ...]
    uncovered: str = ""


def questions(
    system: System, verdict: str, accepted: Formula, cores: Sequence[Core], residual: Sequence[Requirement],
    inside: Mapping[str, int] | None, outside: Mapping[str, int] | None,
) -> Questions:
    """Returns the questions whose expected answers show that this verdict on a system, and its accepted set,
    are right.
    """
    declared = system.domain.assumptions
    asked = [*_branches(system), *_cover(system, accepted)]
    uncovered = _uncovered(system, verdict)
    if verdict == "refuted":
        asked += [q for core in cores for q in _contradiction(system, core)]
    elif not _raises_on_data(system):
        asked += _sufficient(system, accepted)
    if verdict == "refined" and not uncovered:
        asked.append(_necessary(system, accepted, residual))
    for values, there, where in ((inside, accepted, "accepted"), (outside, negate(accepted), "refused")):
        if values is not None:
            at = tuple(eq(sym(name), value) for name, value in values.items())
            asked.append(OpinionQuestion(f"the example is {where}", "sat", (*declared, there, *at)))
    return Questions(tuple(asked), uncovered)


def is_linear(formula: Formula) -> bool:
    """Returns whether the formula multiplies no symbols and divides by none."""
    match formula:
        case And(parts) | Or(parts):
            return all(map(is_linear, parts))
        case Compare(_, term):
            return _is_linear(term)
    return True


def _is_linear(dim: Dim) -> bool:
    if isinstance(dim, int):
        return True
    return all(
        len(mono) < 2 and all(isinstance(atom, Symbol) or _is_linear_apply(atom) for atom in mono)
        for mono, _ in coefficients(dim)
    )


def _is_linear_apply(atom: Apply) -> bool:
    divided = atom.op not in ("//", "%") or isinstance(atom.args[1], int)
    return divided and atom.op not in ("isqrt", "**") and all(map(_is_linear, atom.args))


# ---- a path as steps


@dataclass(frozen=True, slots=True)
class PathStep:
    """A branch of a path or a requirement, in program order."""

    kind: Kind
    formula: Formula
    reason: str
    origin: Origin
    constraint: Constraint | None = None


def _steps(path: Path) -> Iterator[PathStep]:
    """Yields the steps of a path from its start.

    What is known of a size that data decide is taken before the first requirement that comes after it.
    """
    facts = deque(
        PathStep("taken", known, f"what is known of {name}", Origin()) for name, known in path.unbacked
    )
    conditions = deque(sorted((c for c in path.conditions if c.formula is not None), key=lambda c: c.after))
    for position, constraint in enumerate(path.constraints):
        left = 0 if constraint.decided is None else max(0, len(path.unbacked) - constraint.decided)
        while len(facts) > left:
            yield facts.popleft()
        while conditions and conditions[0].after <= position:
            yield _branch(conditions.popleft())
        nodes = path.program.nodes
        origin = nodes[constraint.node].origin if 0 <= constraint.node < len(nodes) else Origin()
        yield PathStep("required", constraint.formula, constraint.reason, origin, constraint)
    yield from (*facts, *map(_branch, conditions))


def _branch(condition: Condition) -> PathStep:
    return PathStep("forced" if condition.forced else "taken", condition.known, "a branch", condition.origin)


def _premise(steps: Sequence[PathStep]) -> tuple[Formula, ...]:
    return tuple(step.formula for step in steps if step.kind == "taken")


# ---- questions


def _branches(system: System) -> Iterator[OpinionQuestion]:
    """Yields a question for each forced branch of each path: the domain and all steps before imply it."""
    declared = system.domain.assumptions
    for path in system.paths:
        steps = [*_steps(path)]
        if not any(step.kind == "forced" for step in steps):
            continue
        chain = Chain(tuple(_unless(s) if s.kind == "forced" else _given(s) for s in steps), False)
        claim = "the branches of a path that have one outcome"
        yield OpinionQuestion(claim, "unsat", declared, (chain,), partial(_each_branch, declared, steps))


def _each_branch(declared: tuple[Formula, ...], steps: Sequence[PathStep]) -> Iterator[OpinionQuestion]:
    for index, step in enumerate(steps):
        if step.kind == "forced":
            before = tuple(s.formula for s in steps[:index] if s.kind != "forced")
            claim = f"the branch at {step.origin} has one outcome"
            yield OpinionQuestion(claim, "unsat", (*declared, *before, negate(step.formula)))


def _given(step: PathStep) -> Link:
    """Returns the link that asks for the rest where the step's formula holds."""
    return "and", step.formula


def _unless(step: PathStep) -> Link:
    """Returns the link that makes the rest true where the step's formula does not hold."""
    return "or", negate(step.formula)


def _cover(system: System, accepted: Formula) -> Iterator[OpinionQuestion]:
    """Yields the question whether the paths cover the domain; sizes that no path covers are not accepted."""
    missed = []
    for path in system.paths:
        premise = all_of(_premise([s for s in _steps(path) if s.reason == "a branch"]))
        if premise is True or not {n for n, _ in path.unbacked}.isdisjoint(free_symbols(premise)):
            return
        missed.append(negate(premise))
    also = (accepted,) if system.incomplete else ()
    yield OpinionQuestion("the paths take all inputs", "unsat", (*system.domain.assumptions, *also, *missed))


def _sufficient(system: System, accepted: Formula) -> Iterator[OpinionQuestion]:
    """Yields questions for each path: accepted sizes meet all its requirements, and none of them ends in a
    raise, or where knowledge is missing.
    """
    given = (*system.domain.assumptions, accepted)
    for path in system.paths:
        steps = [s for s in _steps(path) if s.kind != "forced"]
        ends_badly = path.end.how != "returned" or any(note.code == "no-rule" for note in path.notes)
        chain = Chain(tuple(_given(s) if s.kind == "taken" else _unless(s) for s in steps), ends_badly)
        if ends_badly or any(step.kind == "required" for step in steps):
            claim = "what is accepted meets all requirements of a path"
            bad_end = (path.end.reason or "what is not known") if ends_badly else ""
            yield OpinionQuestion(
                claim, "unsat", given, (chain,), partial(_each_requirement, given, steps, bad_end)
            )


def _each_requirement(
    given: tuple[Formula, ...], steps: Sequence[PathStep], bad_end: str
) -> Iterator[OpinionQuestion]:
    for index, step in enumerate(steps):
        if step.kind == "required":
            claim = f"what is accepted meets what {step.origin} requires: {step.reason}"
            yield OpinionQuestion(claim, "unsat", (*given, *_premise(steps[:index]), negate(step.formula)))
    if bad_end:
        yield OpinionQuestion(
            f"what is accepted does not come to: {bad_end}", "unsat", (*given, *_premise(steps))
        )


def _necessary(system: System, accepted: Formula, residual: Sequence[Requirement]) -> OpinionQuestion:
    """Returns the question whether all sizes that meet the requirements of all paths are accepted.

    Usually the residual requirements suffice.
    """
    chains = []
    for path in system.paths:
        steps = [s for s in _steps(path) if s.kind != "forced"]
        links = tuple(_unless(step) if step.kind == "taken" else _given(step) for step in steps)
        chains.append(Chain(links, path.end.how != "raised"))
    given, together = system.domain.assumptions, tuple(chains)
    enough = (*given, *_stated(system, residual))
    claim = "what meets all requirements is accepted"

    def parts() -> Iterator[OpinionQuestion]:
        for part in conjuncts(accepted):
            fails = negate(part)
            yield OpinionQuestion(
                f"{claim}: {part}", "unsat", (*given, fails), together, tuple, (*enough, fails)
            )

    return OpinionQuestion(
        claim, "unsat", (*given, negate(accepted)), together, parts, (*enough, negate(accepted))
    )


def _contradiction(system: System, core: Core) -> Iterator[OpinionQuestion]:
    """Yields the questions whether a core's requirements contradict each other, and whether paths have them.
    """
    declared = system.domain.assumptions
    needs = tuple(requirement.needs for requirement in core.requirements)
    yield OpinionQuestion("the requirements of a core contradict each other", "unsat", (*declared, *needs))
    for requirement, stated in zip(core.requirements, _stated(system, core.requirements), strict=True):
        if stated != requirement.needs:
            claim = f"{requirement.origin} requires what the core says: {requirement.reason}"
            yield OpinionQuestion(claim, "unsat", (*declared, stated, negate(requirement.needs)))


def _stated(system: System, requirements: Sequence[Requirement]) -> list[Formula]:
    """Returns the requirements as the paths themselves state them; True for one that its path does not have.
    """
    found: dict[tuple[int, int], Formula] = {}
    for index in {requirement.path for requirement in requirements}:
        path, premise = system.paths[index], list[Formula]()
        for step in _steps(path):
            if step.kind == "taken":
                premise.append(step.formula)
            elif step.constraint is not None:
                found[index, id(step.constraint)] = implies(all_of(premise), step.formula)
        if path.end.how == "raised":
            found[index, id(None)] = negate(all_of(premise))
    return [found.get((requirement.path, id(requirement.constraint)), True) for requirement in requirements]


# ---- what is not asked

_ON_DATA: Final = "sizes that the data decide"


def _uncovered(system: System, verdict: str) -> str:
    """Returns the reason why a verdict rests on more than the questions; empty where it does not."""
    if verdict != "refuted" and _raises_on_data(system):
        return "errors that the data decide"
    if verdict != "proved" and any(path.unbacked for path in system.paths):
        return _ON_DATA
    if any(not _is_on_inputs(path) for path in system.paths) and len(system.paths) > 1:
        return _ON_DATA
    return ""


def _raises_on_data(system: System) -> bool:
    """Returns whether the data may influence where a path raises."""
    return any(
        path.end.how == "raised" and (path.on_data or not _is_on_inputs(path)) for path in system.paths
    )


def _is_on_inputs(path: Path) -> bool:
    return {name for name, _ in path.unbacked}.isdisjoint(free_symbols(path.premise))
