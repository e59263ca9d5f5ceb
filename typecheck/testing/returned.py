"""What a test claims of the results of a model: `returns="logits: float32[b, 10]"`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from ...constraints.engine.generate import resolved
from ...constraints.ir.annotations import Annotation
from ...constraints.ir.claims import BoundNames, Claim, RanksOpen, claimed
from ...constraints.ir.language import Tensor, Value
from ...constraints.ir.spec_text import SpecError
from ...constraints.terms.dims import sym
from ...constraints.terms.formula import Formula, negate
from ...solver.decide import DomainOracle
from ...solver.tactics.judge import Budget
from ..checking.api import Examined
from ..render.text import sizes
from ..report.values import readable
from ..targets.annotation_reader import AnnotationReader

_LINE: Final = re.compile(r"\s*(?P<name>[\w.\[\]]+)\s*:\s*(?P<type>\w*\s*\[[^]]*\])\s*")


def parsed_returns(returns: str | Sequence[str]) -> dict[str, Claim]:
    """Returns the claims on results, by their names. Raises SpecError."""
    lines = re.split(r"[;\n]", returns) if isinstance(returns, str) else returns
    found: dict[str, Claim] = {}
    for line in filter(str.strip, lines):
        said = _LINE.fullmatch(line)
        annotation: Annotation | None = said and AnnotationReader().read(said["type"])
        if said is None or not isinstance(annotation, Claim):
            raise SpecError("a result is claimed by its name and type", line, hint='"logits: float32[b, 10]"')
        found[said["name"]] = annotation
    return found


def other_results(examined: Examined, claims: dict[str, Claim], seconds: float) -> list[str]:
    """Returns a line for each claim that is not proved for all declared inputs that run, with the result that
    is found and, if they are known, sizes at which it is another than claimed.

    Raises SpecError where the claims do not fit the results.
    """
    oracle = DomainOracle(examined.spec.domain, Budget(seconds))
    told: dict[str, None] = {}
    unseen = [path.end.reason for path in examined.system.paths if path.end.how == "gave-up"]
    for reason in filter(None, (examined.system.incomplete, *unseen)):
        told[f"the results are not known in full: {reason}"] = None
    for path in examined.system.paths:
        if path.end.how == "returned":
            results = [(name, resolved(argument, path.values)) for name, argument in path.program.outputs]
            given = (*examined.spec.domain.assumptions, path.premise, *(c.formula for c in path.constraints))
            names = BoundNames({name: sym(name) for name in examined.spec.domain.symbols})
            for name, claim, value in _matched(claims, results):
                told |= dict.fromkeys(_differing(oracle, given, names, name, claim, value))
    return [*told]


def _matched(
    claims: dict[str, Claim], results: Sequence[tuple[str, Value]]
) -> Iterator[tuple[str, Claim, Value]]:
    """Yields each claim with its result: that of its name, else that at its position."""
    known = dict(results)
    if claims.keys() <= known.keys():
        yield from ((name, claim, known[name]) for name, claim in claims.items())
    elif len(claims) == len(results):
        for (name, claim), (_, value) in zip(claims.items(), results, strict=True):
            yield name, claim, value
    else:
        has = f"it returns {', '.join(known)}" if known else "it returns nothing"
        raise SpecError(f"{', '.join(claims)} are not the results: {has}")


def _differing(
    oracle: DomainOracle, given: Sequence[Formula], names: BoundNames, name: str, claim: Claim, value: Value
) -> Iterator[str]:
    said = f"{name} is {readable(value)}, claimed {claim.text}"
    if not isinstance(value, Tensor) or (claim.dtypes is not None and value.dtype not in claim.dtypes):
        yield said
        return
    try:
        formula = claimed(claim, value.shape, names)
    except RanksOpen:
        yield f"{said}: how many dims it has is not known"
        return
    if not oracle.judge.follows(formula, given):
        at = oracle.example((*given, negate(formula)))
        yield f"{said}: not known to be that" if at is None else f"{said}: another at {sizes(at)}"

