"""One model of the catalogue: checked, and compared with eager PyTorch at sampled sizes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from models import eager
from models.entry import USUAL

from anyshape.constraints.ir.language import Fact
from anyshape.typecheck import check
from anyshape.typecheck.facade import Report
from anyshape.typecheck.report.codes import Code

from .row import Row

GRID = 4000
"""Assignments among which the samples are chosen, at most."""
STUCK = (Code.INCOMPLETE, Code.INTERNAL_ERROR)


@dataclass(frozen=True)
class Result:
    """The measurements of one model. A model that fails to be measured has a `failure` and nothing else."""

    name: str
    package: str
    failure: str = ""
    traced: bool = False  # every way through the program was followed to its end
    nodes: int = 0
    paths: int = 0
    no_rule: tuple[str, ...] = ()  # what is said of operators without a rule
    approximate: tuple[str, ...] = ()
    verdict: str = ""
    exact: bool = False  # the accepted set is known in full
    accepts: str = ""
    sampled: int = 0
    agreed: int = 0
    runs: bool = False  # eager PyTorch accepts a sample
    disagreements: tuple[str, ...] = ()
    build_s: float = 0.0
    trace_s: float = 0.0
    check_s: float = 0.0  # all of the check, tracing included
    reasons: tuple[str, ...] = ()  # why it is not traced, or undecided


def measure(row: Row, samples: int, budget_s: float) -> Result:
    """Builds the model, checks it, and runs it eagerly at sizes on and around the boundary of what the check
    accepts. Of an undecided model the samples say whether eager PyTorch runs it, and whether it does where
    that is certain.
    """
    started = time.perf_counter()
    fresh = row.copies()
    built = time.perf_counter()
    report = check(fresh(), row.inputs, row.assume, budget_s=budget_s, replay=False)
    decided = report.verdict != "unknown"
    sampled, agreed, runs, wrong = 0, 0, False, []
    for sizes in chosen(row, report, samples):
        refusal = eager.refusal(fresh(), row.inputs, sizes)
        sampled += 1
        runs |= refusal is None
        agrees = report.accepts.holds(**sizes) == (refusal is None) if decided else True
        agreed += decided and agrees
        if not agrees or (refusal is not None and report.accepts.certain.holds(**sizes)):
            wrong.append(f"{_text(sizes)}: eager {_told(refusal)}")
    return Result(
        row.name,
        row.package,
        traced=not any(f.code in STUCK for f in report.findings),
        nodes=int(report.stats["nodes"]),
        paths=int(report.stats["paths"]),
        no_rule=_messages(report, Code.NO_RULE),
        approximate=_messages(report, Code.APPROXIMATE),
        verdict=str(report.verdict),
        exact=report.accepts.exact,
        accepts=str(report.accepts)[:300],
        sampled=sampled if decided else 0,
        agreed=agreed,
        runs=runs,
        disagreements=tuple(wrong),
        build_s=built - started,
        trace_s=report.stats["trace_s"],
        check_s=report.stats["total_s"],
        reasons=_messages(report, *STUCK),
    )


def chosen(row: Row, report: Report, count: int) -> list[dict[str, int]]:
    """Sizes to run at, as many accepted as refused where there are so many, those at the boundary first."""
    names = eager.symbols(row.inputs)
    many = max(2, int(GRID ** (1 / max(1, len(names)))))
    values = {}
    for name in names:
        tried = row.probe.get(name, USUAL)
        near = [v for v in _near(report.dims[name]) if v <= 2 * max(tried)]
        values[name] = tuple(dict.fromkeys((1, *near, *tried)))[:many]
    accepts = report.accepts.holds if report.verdict != "unknown" else None
    return eager.assignments(row.inputs, row.assume, values, accepts, count)


def _near(fact: Fact) -> Iterator[int]:
    """Sizes next to the bounds of a dim, and next to its multiples."""
    low = max(1, fact.min or 1)
    steps = [low, low + fact.divisor] if fact.divisor > 1 else [low]
    for bound in (*steps, *([fact.max] if fact.max is not None else [])):
        yield from (v for v in (bound, bound - 1, bound + 1) if v >= 1)


def _messages(report: Report, *codes: Code) -> tuple[str, ...]:
    told = (
        f"{f.message} [{f.origin.file.rsplit('/', 1)[-1]}:{f.origin.line} {f.origin.code.strip()}]"
        for f in report.findings
        if f.code in codes
    )
    return tuple(dict.fromkeys(told))


def _text(sizes: Mapping[str, int]) -> str:
    return " ".join(f"{name}={size}" for name, size in sizes.items())


def _told(refusal: Exception | None) -> str:
    return "runs" if refusal is None else f"{type(refusal).__name__}: {' '.join(str(refusal).split())[:200]}"
