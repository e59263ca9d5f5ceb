"""`infer`: from example inputs to a spec, and to the relations between sizes that the program really needs.

Examples show which sizes vary and what else they have in common. Each relation among them is put to the
checker: it is proved where every input that the program takes meets it, and refuted by an input that it takes
and that does not. A proved one goes into the spec, a refuted one is a coincidence of the examples.

Because sizes of 1 broadcast, hardly any relation would be needed at all sizes. Examples without a size of 1
give no evidence about size 1, so a relation that is needed at all sizes from 2 on counts as proved as well;
the result says which of the two was proved.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from msgspec import structs

from ...constraints.engine.ruleset import Rules
from ...constraints.ir.language import Tensor, Value
from ...constraints.ir.spec import Declared, Spec
from ...constraints.ir.spec_text import parse_spec, write_spec
from ...constraints.ir.system import Answer, Domain
from ...constraints.terms.dims import Dim, Symbol, Term, substitute, sym, symbols
from ...constraints.terms.formula import (
    Compare,
    Formula,
    all_of,
    conjuncts,
    free_symbols,
    ge,
    negate,
    rewrite,
)
from ...solver.decide import DomainOracle
from ...solver.tactics.judge import Budget
from ...solver.theory.bounds import Consequences
from ...tracer.host.interpreter import signature
from ..facade import Report
from ..replay.replay import Ran
from ..report.codes import Code
from ..report.report import Verdict
from ..targets.target import Target, resolve
from .api import Examined, examine
from .clock import Clock, Progress
from .sources import source_of

if TYPE_CHECKING:
    from ...tracer.readers.examples import Common

Status: TypeAlias = Literal["proved", "refuted", "unknown"]


@dataclass(frozen=True, slots=True)
class InferredRelation:
    """A relation that holds in all examples, and whether the program needs it."""

    formula: Formula
    """Over the symbols of `Inferred.places`."""
    text: str
    """The same in the words of the program: `y.shape[0] == 2*x.shape[0]`."""
    status: Status
    given: Formula = True
    """The sizes for which it is proved: all, or those that are at least 2."""
    witness: Mapping[str, int] | None = None
    """Sizes that the program takes and for which the relation does not hold."""


@dataclass(frozen=True, slots=True)
class Inferred:
    """The spec of a program's inputs that examples suggest and the program needs."""

    spec: tuple[str, ...]
    """The input spec, one line per input: sizes that vary are symbols, or terms over those that they need."""
    assume: tuple[str, ...]
    """Assumptions that belong to it."""
    places: Mapping[str, str]
    """The size that each symbol denotes: `x_0` is `x.shape[0]`."""
    relations: tuple[InferredRelation, ...]
    refused: tuple[int, ...]
    """The examples that the program refuses, counted from 1."""
    report: Report
    """Of a check of the spec."""

    @property
    def text(self) -> str:
        """The spec as `check` takes it."""
        return "; ".join(self.spec)

    def to_json(self) -> dict[str, Any]:
        """Plain data for `json.dump`."""
        return {
            "spec": [*self.spec],
            "assume": [*self.assume],
            "places": dict(self.places),
            "relations": [
                {
                    "relation": str(relation.formula),
                    "text": relation.text,
                    "status": relation.status,
                    "given": str(relation.given),
                    "witness": None if relation.witness is None else dict(relation.witness),
                }
                for relation in self.relations
            ],
            "refused": [*self.refused],
            "report": self.report.to_json(),
        }


def infer(
    target: Any, examples: Sequence[Any], *, assume: str | Iterable[str] = (), budget_s: float = 30.0,
    rules: Rules | None = None, progress: Progress | None = None,
) -> Inferred:
    """Returns the sizes of a target's inputs that vary among two or more examples, and the relations that it
    needs.

    `target` and `rules` are those of `check`. An example is a tuple or list of arguments, a dict of arguments
    by name, or one tensor; only its sizes and numbers are used. `assume` is over the symbols of `places`.

    Raises SpecError where examples differ in more than sizes, and what `check` raises.
    """
    from ...tracer.readers.examples import common

    clock = Clock(progress or (lambda step: None), budget_s)
    found = resolve(target)
    shared = common(_signature(found), examples)
    lowest = [f"{name} >= {min(values)}" for name, values in shared.values.items() if min(values) < 1]
    given = (*lowest, *((assume,) if isinstance(assume, str) else assume))
    lines = write_spec(Spec(shared.inputs, Domain()))
    examined = examine(found.value, lines, given, budget_s=clock.left, rules=rules, progress=progress)
    report = examined.report
    judging = _Judging(found, examined, shared, clock.left)
    relations = tuple(judging.relations())
    refused = [i + 1 for i in range(len(examples)) if not report.accepts.holds(**shared.example(i))]
    spec, conditions = _related(shared.inputs, examined.spec.domain, judging)
    if judging.meaning or judging.needed:
        report = examine(found.value, spec, conditions, budget_s=clock.left, rules=rules).report
    places = {name: str(place) for name, place in shared.places.items()}
    report = replace(report, target=found.name)
    return Inferred(spec, conditions, places, relations, tuple(refused), report)


def _signature(target: Target) -> inspect.Signature | None:
    """The parameters of a target; None of a builtin, which does not tell them."""
    if target.kind != "python":
        names = dict.fromkeys(str(declared.path[0]) for declared in source_of(target, None, ()).spec.inputs)
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(name, kind) for name in names])
    try:
        return signature(getattr(target.value, "forward", target.value))
    except ValueError:
        return None


class _Judging:
    """Asks of relations whether the program needs them."""

    def __init__(self, target: Target, examined: Examined, shared: Common, seconds: float) -> None:
        self.report, self.shared = examined.report, shared
        self.oracle = DomainOracle(examined.spec.domain, Budget(seconds))
        self.source = source_of(target, examined.spec, ()) if target.kind == "python" else None
        told = {finding.code for finding in self.report.findings}
        self.sure = self.report.verdict is not Verdict.REFUTED and told.isdisjoint(_UNSURE)
        sizes = [name for name, place in shared.places.items() if place.axis is not None]
        large = all_of(ge(sym(name), 2) for name in sizes)
        self.given = (True, large) if all(min(shared.values[name]) >= 2 for name in sizes) else (True,)

        self.meaning: dict[str, Dim] = {}
        """Symbols that proved relations define, with their terms."""
        self.needed: list[Formula] = []
        """Proved relations that define no symbol."""

    def relations(self) -> Iterator[InferredRelation]:
        """The proposed relations, without those that others say already, given what was proved before."""
        seen: set[Formula] = {True}
        for formula in self.shared.relations:
            reduced = rewrite(formula, self.meaning)
            if reduced in seen or self.oracle.judge.follows(reduced, self.needed):
                continue
            seen.add(reduced)
            relation = self._judged(InferredRelation(formula, _in_words(formula, self.shared), "unknown"))
            if relation.status == "proved":
                self._learn(reduced)
            yield relation

    def _learn(self, formula: Formula) -> None:
        defined = _definition(formula, [*self.shared.places])
        if defined is None:
            self.needed.append(formula)
            return
        new = dict([defined])
        self.meaning = {name: substitute(dim, new) for name, dim in self.meaning.items()} | new
        self.needed = [rewrite(part, new) for part in self.needed]

    def _judged(self, relation: InferredRelation) -> InferredRelation:
        """All that is accepted meets it, or something that is accepted, and runs, does not."""
        accepted, formula = self.report.accepts.formula, relation.formula
        if not self.sure:
            return relation
        for given in self.given:
            if self.oracle.decide(formula, (accepted, given)) is Answer.ALWAYS:
                return replace(relation, status="proved", given=given)
        for given in reversed(self.given):
            witness = self.oracle.example((accepted, given, negate(formula)))
            if witness is not None and self._runs(witness):
                return replace(relation, status="refuted", witness=witness)
        return relation

    def _runs(self, sizes: Mapping[str, int]) -> bool:
        """The program really does; of a graph alone its rules say so."""
        if self.source is None:
            return self.report.accepts.exact
        return isinstance(self.source.run(sizes, True), Ran)


_UNSURE: Final = frozenset({Code.APPROXIMATE, Code.CONTRADICTED, Code.INTERNAL_ERROR})
"""Findings that make the accepted set uncertain."""


def _in_words(formula: Formula, shared: Common) -> str:
    """The relation with places for symbols, a size defined by the others where it does that."""
    defined = _definition(formula, [*shared.places])
    text = f"{defined[0]} == {defined[1]}" if defined else str(formula)
    return re.sub(r"\w+", lambda found: str(shared.places.get(found[0], found[0])), text)


# ---- the spec


def _related(
    inputs: tuple[Declared, ...], domain: Domain, judging: _Judging
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The spec in which symbols that relations define are terms over the others, and what else is assumed."""
    related = tuple(Declared(d.path, _substituted(d.type, judging.meaning)) for d in inputs)
    lines = write_spec(Spec(related, Domain()))
    said = parse_spec(lines).domain.assumptions
    wanted = conjuncts(all_of((*(rewrite(f, judging.meaning) for f in domain.assumptions), *judging.needed)))
    more = [
        f for f in wanted if f not in said and Consequences(g for g in wanted if g != f).ask(f) is not True
    ]
    return lines, tuple(map(str, more))


def _definition(formula: Formula, order: Sequence[str]) -> tuple[str, Dim] | None:
    """The last symbol that an equation gives as a term over the others, and the term."""
    if not isinstance(formula, Compare) or formula.op != "==":
        return None
    for name in sorted(free_symbols(formula), key=order.index, reverse=True):
        factor = dict(formula.term.terms).get((Symbol(name),), 0)
        other = sym(name) - factor * formula.term
        if abs(factor) == 1 and name not in symbols(other):
            return name, other
    return None


def _substituted(value: Value, meaning: Mapping[str, Dim]) -> Value:
    if isinstance(value, Tensor):
        return structs.replace(value, shape=tuple(substitute(dim, meaning) for dim in value.shape))
    return substitute(value, meaning) if isinstance(value, Term) else value
