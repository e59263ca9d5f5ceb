"""Sources: each records the constraint system of a target, and runs the target at concrete sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from ...constraints.engine.ruleset import Rules
from ...constraints.ir.claims import listening
from ...constraints.ir.release import Release
from ...constraints.ir.spec import Spec
from ...constraints.ir.spec_text import parse_spec, write_spec
from ...constraints.ir.system import Path, System
from ...solver.decide import DomainOracle
from ...tracer.readers.archive import ArchiveError
from ...tracer.readers.exported import GraphError
from ...tracer.readers.graph import Traced
from ...tracer.readers.graph import system as graph_system
from ..replay.replay import Inconclusive, Outcome, Replayer, at, by_rules
from ..targets.near_names import key_hint
from ..targets.target import Target, is_graph_module
from ..targets.target_error import TargetError
from .clock import Clock


class Source(Protocol):
    """A target with its spec: gives the constraint system, and runs the program at concrete sizes."""

    spec: Spec
    release: Release | None
    """The release of torch that runs the program; None where it is not known."""
    floats: str
    """The dtype of floats for which the program names none."""

    def system(self, rules: Rules, oracle: DomainOracle, clock: Clock) -> tuple[System, list[str]]:
        """All that the program asks of its inputs, and the attributes that a run of it assigns."""

    def run(self, values: Mapping[str, int], accepted: bool) -> Outcome:
        """Returns the outcome of the program at these sizes; `accepted` is the expected outcome."""


class PythonSource:
    """A Python program, recorded as it runs."""

    def __init__(self, target: Target, spec: Spec, ways: float | None, device: str | None) -> None:
        from ...tracer.host.operators import INSTALLED
        from ...tracer.values.real_tensors import default_dtype

        self.target, self.spec, self.ways, self.device = target.value, spec, ways, device
        self._replayer = Replayer(self.target, spec)
        self.release, self.floats = INSTALLED, default_dtype()

    def system(self, rules: Rules, oracle: DomainOracle, clock: Clock) -> tuple[System, list[str]]:
        from ...tracer.host.alone import TURN
        from ...tracer.readers.fx import listen
        from ...tracer.recording.binding import NotCallable as DoesNotFit
        from ...tracer.recording.record import record

        def tell(paths: int) -> None:
            clock.progress(f"trace, {paths} paths" if paths > 1 else "trace")

        held = self._replayer.held()
        try:
            with TURN, listening(listen), self._replayer.annotations.reported():
                system, changed = record(
                    self.target,
                    self.spec,
                    rules,
                    oracle,
                    budget_s=clock.left,
                    ways=self.ways,
                    progress=tell,
                    held=held,
                    device=self.device,
                )
        except DoesNotFit as error:
            hint = error.hint or key_hint(str(error), self.spec.inputs)
            raise TargetError(str(error), hint, error.origin) from None
        self._replayer.see(system)
        return system, changed

    def run(self, values: Mapping[str, int], accepted: bool) -> Outcome:
        return self._replayer.run(values, accepted)


class TracedSource:
    """A traced program, live or saved: its graph is all that there is."""

    def __init__(
        self, target: Target, spec: Spec | None, assume: str | Iterable[str], device: str | None = None
    ) -> None:
        self.traced, self.device = _read(target), device
        if spec is None and assume:
            spec = parse_spec(write_spec(self.traced.spec), assume)
        self.spec = spec.with_dtypes_of(self.traced.spec) if spec else self.traced.spec
        self.release = self.traced.release
        self.floats = self.traced.floats

    def system(self, rules: Rules, oracle: DomainOracle, clock: Clock) -> tuple[System, list[str]]:
        self.rules = rules
        with clock.step("generate"):
            self._system = graph_system(self.traced, rules, self.spec, self.device)
        return self._system, []

    def run(self, values: Mapping[str, int], accepted: bool) -> Outcome:
        path = self.at(values)
        return path if isinstance(path, Inconclusive) else by_rules(path)

    def at(self, values: Mapping[str, int]) -> Path | Inconclusive:
        """The graph at these sizes, with what the rules say there."""
        spec = at(self.spec, values)
        same = spec == self.spec  # it has no symbols
        try:
            system = self._system if same else graph_system(self.traced, self.rules, spec, self.device)
            (path,) = system.paths
        except ZeroDivisionError:
            return Inconclusive("the trace has a size that is divided by zero there")
        return path


def _read(target: Target) -> Traced:
    """The program of an archive, read without torch, or of an `ExportedProgram`."""
    if isinstance(target.value, Traced):
        return target.value
    try:
        if target.kind == "pt2":
            from ...tracer.readers import pt2

            return pt2.read(target.value)
        from ...tracer.readers import export
        from ...tracer.values.real_tensors import default_dtype

        return replace(export.read(target.value), floats=default_dtype())
    except OSError as error:
        raise TargetError(f"{target.name} cannot be read: {error.strerror}") from None
    except (ArchiveError, GraphError) as error:
        raise TargetError(str(error)) from None


def source_of(
    target: Target, spec: Spec | None, assume: str | Iterable[str], *, ways: float | None = None,
    device: str | None = None,
) -> Source:
    """Builds the Source of a target; at most `ways` paths through a Python program are kept separate. The
    `device` is that of the kernels; without it, that of the target's tensors.
    """
    if target.kind == "recorded":
        from .recorded import RecordedSource

        return RecordedSource(target.value, spec, assume)
    if target.kind != "python":
        return TracedSource(target, spec, assume, device)
    if spec is None:
        from ..targets.annotations import spec_of

        spec = parse_spec(spec_of(target.value), assume)
    if is_graph_module(target.value):
        from ...tracer.readers.fx import is_annotated, quiet, reporting

        plain = quiet if not is_annotated(target.value) else reporting
        target = replace(target, value=plain(target.value))
    return PythonSource(target, spec, ways, device)
