"""One model exported twice: by anyshape, and by torch with named dims and the fixes that it suggests.

Both get the same example and know the same of the sizes: the symbols of the spec and their ranges. Both
programs are then run next to the model, at the ends of the ranges that either of them claims and just beyond.
"""

from __future__ import annotations

import multiprocessing
import resource
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import sympy
import torch
from models import eager
from torch.export import Dim, ExportedProgram
from torch.export.dynamic_shapes import refine_dynamic_shapes_from_suggested_fixes
from zoo.row import Row

from anyshape.constraints.ir.language import Fact, Tensor
from anyshape.constraints.ir.spec import Spec
from anyshape.constraints.ir.spec_text import parse_spec
from anyshape.constraints.terms.dims import Symbol, Term, linear_parts
from anyshape.constraints.terms.formula import Formula, holds
from anyshape.typecheck import ExportError, Report, TargetError, check, export
from anyshape.typecheck.exporting.examples.example_inputs import arguments
from anyshape.typecheck.exporting.export import Exported

ATTEMPTS = 6
PATIENCE = 100
"""Seconds of the processor that torch's own attempts may take."""
FORK = multiprocessing.get_context("fork")
POINTS = 32
LARGE = 200_000
"""Elements of all inputs together up to which a program is run."""


@dataclass(frozen=True)
class Side:
    """One way to export, and the program that came of it."""

    attempts: int = 0
    error: str = ""  # why there is no program
    takes: str = ""
    points: int = 0
    tighter: tuple[str, ...] = ()  # sizes that eager runs and the program refuses, and no one has said so;
    told: tuple[str, ...] = ()  # that it refuses, and the export says so, as a formula;
    elsewhere: tuple[str, ...] = ()  # that it refuses, and where the model takes another way;
    looser: tuple[str, ...] = ()  # and sizes that eager refuses and the program takes
    given_up: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def exported(self) -> bool:
        return not self.error

    @property
    def exact(self) -> bool:
        return self.on_its_way and not self.elsewhere

    @property
    def on_its_way(self) -> bool:
        """Exact where the model takes the way that is traced."""
        return self.as_told and not self.told

    @property
    def as_told(self) -> bool:
        """Exact where the export says that the program runs: one that says nothing claims all sizes."""
        return self.exported and not self.tighter and not self.looser


@dataclass(frozen=True)
class Outcome:
    """The result for one model. A model that torch cannot export at fixed sizes either has `unexportable`."""

    name: str
    package: str
    failure: str = ""
    unexportable: str = ""
    verdict: str = ""
    accepts: str = ""
    spec_exports: str | None = None
    """torch.export with `report.dynamic_shapes`, nothing else: an error, or nothing; None is not known."""
    ours: Side = Side()
    torch: Side = Side()


def measure(row: Row) -> Outcome:
    """Exports a model both ways. Each way has a fresh copy."""
    _register_outputs()
    fresh = row.copies()
    model = fresh()
    spec = parse_spec(row.inputs, row.assume)
    started = time.perf_counter()
    mine = _mine(fresh(), row)
    seconds = time.perf_counter() - started
    report = mine.report if isinstance(mine, Exported) else check(model, row.inputs, row.assume, replay=False)
    told = Outcome(row.name, row.package, verdict=str(report.verdict), accepts=_short(str(report.accepts)))
    example = mine.example if isinstance(mine, Exported) else report.runs_at
    if example is None:
        return replace(told, failure="no sizes are known at which it runs")
    given = eager.make_inputs(row.inputs, example)
    static = _exported(lambda: torch.export.export(fresh(), (), given, strict=False))
    if isinstance(static, str):
        return replace(told, unexportable=static)
    plain = late = f"no answer in {PATIENCE} s"
    theirs, loop = None, Side(1, f"stuck: {late}")
    if _in_time(lambda: _plain(fresh(), given, report)):
        plain = _plain(fresh(), given, report)
        if _in_time(lambda: _loop(fresh, spec, given)):
            theirs, loop = _loop(fresh, spec, given)
    points = _points(row, spec, report, example, theirs)
    chosen = mine.shapes if isinstance(mine, Exported) else report.dynamic_shapes
    way = chosen.way if chosen else True
    ours = Side(1, mine if isinstance(mine, str) else "", seconds=seconds)
    if isinstance(mine, Exported):
        given_up = tuple(_short(str(g)) for g in mine.given_up)
        ours = Side(len(mine.attempts), "", _short(str(mine.accepts)), given_up=given_up, seconds=seconds)
        runs = _runner(mine.program, lambda sizes: arguments(model, spec, sizes, "zeros"))
        ours = _beside(ours, fresh, row, points, runs, way, mine.accepts)
    if theirs is not None:
        runs = _runner(theirs, lambda sizes: ((), eager.make_inputs(row.inputs, sizes)))
        loop = _beside(loop, fresh, row, points, runs, way)
    return replace(told, spec_exports=plain, ours=ours, torch=loop)


def _register_outputs() -> None:
    """Models of transformers return caches, which torch can take once it is told how to flatten them."""
    try:
        from transformers.cache_utils import DynamicCache, EncoderDecoderCache
        from transformers.integrations.executorch import register_dynamic_cache_export_support
    except ImportError:
        return
    pytree = torch.utils._pytree
    if DynamicCache not in pytree.SUPPORTED_NODES:
        register_dynamic_cache_export_support()
    if EncoderDecoderCache not in pytree.SUPPORTED_NODES:
        pytree.register_pytree_node(
            EncoderDecoderCache,
            lambda cache: ([cache.self_attention_cache, cache.cross_attention_cache], None),
            lambda caches, _: EncoderDecoderCache(*caches),
            serialized_type_name="transformers.cache_utils.EncoderDecoderCache",
        )


def _mine(model: Any, row: Row) -> Exported | str:
    try:
        return export(model, row.inputs, row.assume)
    except ExportError as error:
        return _short(str(error))
    except TargetError as error:
        return f"no program: {_short(str(error))}"


def _exported(call: Callable[[], ExportedProgram]) -> ExportedProgram | str:
    try:
        return call()
    except Exception as error:  # noqa: BLE001 (torch raises anything; it is told)
        return _short(f"{type(error).__name__}: {error}")


def _in_time(call: Callable[[], object]) -> bool:
    """Returns whether it ends within `PATIENCE` seconds. It is tried in a process of its own: after an
    interrupted trace torch is left in a state in which models fail that run otherwise.
    """

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE, PATIENCE))
        call()

    child = FORK.Process(target=limited)
    child.start()
    child.join()
    return child.exitcode not in (-signal.SIGXCPU, -signal.SIGKILL)


def _plain(model: Any, given: Mapping[str, Any], report: Report) -> str:
    """Returns the result of plain torch.export with the spec."""
    shapes = report.dynamic_shapes
    if shapes is None:
        return "there is no spec"
    dynamic = shapes.to_torch((), given)
    found = _exported(
        lambda: torch.export.export(model, (), dict(given), dynamic_shapes=dynamic, strict=False)
    )
    return found if isinstance(found, str) else ""


# ---- torch's own loop


def _loop(
    fresh: Callable[[], Any], spec: Spec, given: Mapping[str, Any]
) -> tuple[ExportedProgram | None, Side]:
    """Exports by named dims; takes what torch suggests, until it exports or there is nothing more to take."""
    shapes = _named(spec)
    started = time.perf_counter()
    error = ""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            program = torch.export.export(
                fresh(), (), dict(given), dynamic_shapes=shapes, strict=False
            )
        except Exception as failed:  # noqa: BLE001 (torch raises anything; it is told)
            message = getattr(failed, "msg", str(failed))
            error = f"{type(failed).__name__}: {message}"
            if "Suggested fixes:" not in message:
                return None, Side(attempt, _short(f"stuck: {error}"))
            try:
                refined = refine_dynamic_shapes_from_suggested_fixes(message, shapes)
            except Exception as unfit:  # noqa: BLE001
                told = f"its fix cannot be applied: {type(unfit).__name__}: {unfit}"
                return None, Side(attempt, _short(told))
            if repr(refined) == repr(shapes):
                return None, Side(attempt, _short(f"its fix changes nothing: {error}"))
            shapes = refined
            continue
        return program, Side(attempt, takes=_ranges(program, spec), seconds=time.perf_counter() - started)
    return None, Side(ATTEMPTS, _short(f"not in {ATTEMPTS} attempts: {error}"))


def _named(spec: Spec) -> dict[str, Any]:
    """A Dim for each symbol, with the range that was declared; a term that no Dim can say has its own."""
    dims: dict[str, Any] = {}

    def symbol(name: str) -> Any:
        low, high = spec.domain.ranges.get(name, (1, float("inf")))
        bounds = {"min": int(low)} if low > 1 else {}
        bounds |= {"max": int(high)} if high != float("inf") else {}
        return dims.setdefault(name, Dim(name, **bounds))

    def said(dim: Any, place: str) -> Any:
        if isinstance(dim, int):
            return None
        atoms, start = linear_parts(dim) or ((), 0)
        if len(atoms) != 1 or not isinstance(atoms[0][0], Symbol) or atoms[0][1] < 1:
            return Dim(place)
        atom, factor = atoms[0]
        found = symbol(atom.name) if factor == 1 else factor * symbol(atom.name)
        return found + start if start else found

    shapes: dict[str, Any] = {}
    for declared in spec.inputs:
        value: Any = None
        if isinstance(declared.type, Tensor):
            value = {i: said(d, f"dim_{len(shapes)}_{i}") for i, d in enumerate(declared.type.shape)}
        elif isinstance(declared.type, Term):
            value = Dim.DYNAMIC
        eager._put(shapes, declared.path, value)
    return shapes


def _ranges(program: ExportedProgram, spec: Spec) -> str:
    return ", ".join(f"{expr} in {r.lower}..{r.upper}" for expr, r in program.range_constraints.items())


# ---- next to the model


def _points(
    row: Row, spec: Spec, report: Report, example: Mapping[str, int], theirs: ExportedProgram | None
) -> list[dict[str, int]]:
    """Sizes on and around the ends of the ranges, of the report and of torch's program, one symbol at a time
    and several at once.
    """
    claimed = [] if theirs is None else [*_ends(theirs)]
    values: dict[str, set[int]] = {}
    for name, known in report.dims.items():
        found = {1, 2, 3, example[name], example[name] + 1, *row.probe.get(name, ()), *claimed}
        for end in _range(known):
            found |= {end - 1, end, end + 1, end + known.divisor, end - known.divisor}
        values[name] = {v for v in found if v >= 0}
    random = Random(0)
    names = [*values]
    first = [dict(example), *(dict(p) for p in (report.runs_at, report.fails_at) if p is not None)]
    tried = [{**example, name: value} for name in names for value in sorted(values[name])]
    tried += [{n: random.choice(sorted(values[n])) for n in names} for _ in range(4 * POINTS)]
    ends = [{**example, name: value} for name in names for value in (1, *_range(report.dims[name]))]
    random.shuffle(tried)
    chosen: list[dict[str, int]] = []
    for sizes in (*first, *ends[: POINTS // 2], *tried):
        declared = eager.in_domain(row.inputs, row.assume, sizes) and _elements(spec, sizes) <= LARGE
        if declared and sizes not in chosen and len(chosen) < POINTS:
            chosen.append(sizes)
    return chosen


def _range(fact: Fact) -> list[int]:
    """The least and the greatest size, as far as there is one."""
    return [end for end in (fact.min, fact.max) if end is not None]


def _ends(program: ExportedProgram) -> Iterator[int]:
    for expr, known in program.range_constraints.items():
        if expr.is_Symbol:
            for end in (known.lower, known.upper):
                if isinstance(end, int | sympy.Integer) and 0 < end < 4096:
                    yield from (int(end) - 1, int(end), int(end) + 1)


def _elements(spec: Spec, sizes: Mapping[str, int]) -> int:
    from anyshape.typecheck.exporting.examples.example_inputs import elements

    try:
        return elements(spec, sizes)
    except ZeroDivisionError:
        return 0


def _runner(program: ExportedProgram, given: Callable[[Mapping[str, int]], Any]) -> Callable[..., bool]:
    module = program.module()

    def runs(sizes: Mapping[str, int]) -> bool:
        args, kwargs = given(sizes)
        try:
            with torch.no_grad():
                module(*args, **kwargs)
        except Exception:  # noqa: BLE001 (a program refuses with anything)
            return False
        return True

    return runs


def _beside(
    side: Side,
    fresh: Callable[[], Any],
    row: Row,
    points: list[dict[str, int]],
    runs: Callable[..., bool],
    way: Formula,
    taken: Formula = True,
) -> Side:
    """The side with what came of running its program next to the model; `taken` is what it says it takes."""
    tighter, told, elsewhere, looser = [], [], [], []
    for sizes in points:  # a run may leave something behind, such as a Swin with smaller windows
        truth = eager.refusal(fresh(), row.inputs, sizes, fake=False) is None
        if truth != runs(sizes):
            refused = elsewhere if not holds(way, sizes) else tighter if holds(taken, sizes) else told
            (refused if truth else looser).append(", ".join(f"{n}={v}" for n, v in sizes.items()))
    return replace(
        side, points=len(points),
        tighter=tuple(tighter), told=tuple(told), elsewhere=tuple(elsewhere), looser=tuple(looser),
    )  # fmt: skip


def _short(text: str) -> str:
    return " ".join(text.split())[:300]
