"""What a check costs, stage by stage, on a Python model and on a saved `.pt2`.

- `trace`: the Python model is recorded; generation is included, for the rules are its kernels.
- `generate`: the rules alone, over the programs that were recorded.
- `solve`: the verdict, and `refine` in it: the accepted set as facts and as a short formula.
- `report`: findings, shapes, outputs, and the text.
- `replay`: the examples on the real program with fake tensors, which `together` leaves out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from anyshape.constraints.engine.generate import generate
from anyshape.constraints.ir.spec_text import parse_spec
from anyshape.constraints.ir.system import System
from anyshape.constraints.rules import default_rules
from anyshape.solver.decide import DomainOracle
from anyshape.solver.facts import refine
from anyshape.tracer.recording.record import record
from anyshape.typecheck import Report, check
from anyshape.typecheck.checking import clock

from .models import Measured
from .timing import now, seconds

REFINING = ("simplify", "facts", "summary")
"""The functions of `solver.refine` that `decide` calls."""


def spec_of(measured: Measured, symbolic: bool) -> tuple[str, tuple[str, ...]]:
    """The inputs with their symbols, and what is assumed of these; or the inputs at the example's sizes."""
    if symbolic:
        return measured.inputs, measured.assume
    inputs = (
        f"{name}: {str(dtype).removeprefix('torch.')}[{', '.join(map(str, sizes))}]"
        for name, (sizes, dtype) in measured.example.items()
    )
    return "; ".join(inputs), ()


def recorded(model: Any, inputs: str, assume: tuple[str, ...]) -> System:
    """All paths of a model."""
    spec = parse_spec(inputs, assume)
    return record(model, spec, default_rules, DomainOracle(spec.domain))[0]


def generation(system: System) -> Callable[[], float]:
    """Applies the rules to the programs of a system, once more."""

    def once() -> float:
        return sum(
            seconds(lambda path=path: generate(path.program, default_rules, system.domain))  # type: ignore[misc]
            for path in system.paths
        )

    return once


@dataclass
class Checked:
    """Checks a target again and again; `report` is the last answer, without its replay."""

    target: Any
    inputs: str | None = None
    assume: tuple[str, ...] = ()
    replay: bool = False
    report: Report | None = None

    def __call__(self) -> Mapping[str, float]:
        """Seconds of each stage, and `together`."""
        spent = [0.0]
        with _timed(REFINING, spent), patch.object(clock, "time", SimpleNamespace(monotonic=now)):
            started = now()
            report = check(self.target, self.inputs, self.assume, replay=self.replay)
            report.to_text()
            together = now() - started
        self.report = report
        stats = report.stats
        load, trace, solve = stats["load_s"], stats["trace_s"], stats["solve_s"]
        return {
            "load": load,
            "trace": trace,
            "solve": solve,
            "refine": spent[0],
            "report": together - load - trace - solve,
            "together": together,
        }


@contextmanager
def _timed(names: tuple[str, ...], spent: list[float]) -> Iterator[None]:
    """Adds up what calls of these functions of `solver.refine` take, but not those that they make."""
    saved = {name: getattr(refine, name) for name in names}
    inside = False

    def timing(function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            nonlocal inside
            if inside:
                return function(*args, **kwargs)
            inside = True
            started = now()
            try:
                return function(*args, **kwargs)
            finally:
                spent[0] += now() - started
                inside = False

        return timed

    for name, function in saved.items():
        setattr(refine, name, timing(function))
    try:
        yield
    finally:
        for name, function in saved.items():
            setattr(refine, name, function)
