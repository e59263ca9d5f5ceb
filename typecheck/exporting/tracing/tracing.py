"""One call of `torch.export.export` that fixes as few sizes as torch can be kept from fixing."""

from __future__ import annotations

import contextlib
import io
import logging
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.fx.experimental.symbolic_shapes import ShapeEnv, ShapeGuardPythonPrinter
from torch.overrides import TorchFunctionMode

from ....constraints.ir.program import Origin
from ....tracer.bytecode.origins import ModuleNames, here, is_inner
from ....tracer.host.alone import alone
from ....tracer.host.exports import sizes_like_0_and_1
from ....tracer.host.patches import Patch
from ....tracer.host.surroundings import surroundings_kept
from ....tracer.host.symbolic_shapes import LOGGED
from ....tracer.patches.caches import forgetting
from ....tracer.patches.functions import own_functions
from ....tracer.patches.stand_ins import rebound, replaced, sources_of
from ....tracer.plugins import announced
from ....tracer.recording.held import Held
from ..examples.example_inputs import Arguments
from ..scans.scans import Scans
from .broadcasting import Certain, Either, never, open_broadcasts, unsure
from .data_sizes import settled_by_other_sizes
from .integral import make_integral
from .python_calls import ON_SIZES, PLAIN, builtins_on_sizes
from .sympy_work import plain_quotients, unsolved_constraints
from .torch_calls import other_calls, recurrent_shapes


@dataclass(frozen=True, slots=True)
class Trace:
    """A program, and the lines of the model at which torch made its guards."""

    program: ExportedProgram
    lines: Mapping[str, Origin]
    """By the text of the guard, `L['x'].size()[0] % 4 == 0`."""
    scans: int = 0
    """The number of the model's loops that are scans."""


@alone
def traced(
    model: Any, given: Arguments, dynamic_shapes: Any, oblivious: bool, either: Either = never,
    certain: Certain = unsure, loops: bool = False, seconds: float = math.inf,
) -> Trace:
    """The model as torch exports it. What torch logs, prints and warns of is kept quiet, not what it raises.

    `oblivious`: sizes of 0 and 1 are treated like others, and functions such as `int` (python_calls.py) give
    sizes. A few of torch's own functions cannot be traced so. `either`: which sizes broadcast either way.
    `certain`: what holds of all sizes, so that the larger of two may be known. `loops`: Python's loops over a
    size become scans, as far as they can. Raises TimeoutError where it takes longer than `seconds`.

    What torch cannot decide becomes a guard, and is not left to run time
    (`prefer_deferred_runtime_asserts_over_guards`): there it loses conditions on fractions of sizes, and the
    program is wrong without a word.
    """
    module = model if isinstance(model, torch.nn.Module) else _FunctionModule(model)
    scans = Scans(model, lambda: other_calls(either)) if loops else None
    builtins = {**(builtins_on_sizes(certain) if oblivious else {}), **(scans.builtins if scans else {})}
    sources = [*dict.fromkeys((*sources_of(model), *_homes(own_functions(model))))]
    with (
        surroundings_kept(),
        Held(model).lent(copied=True, but=(*module.parameters(), *module.buffers())),
        _quiet(),
        forgetting(sources),
        recurrent_shapes(),
        rebound(sources, builtins),
        replaced(sources, announced.plain_functions(), announced.traced()),
        replaced(sources, PLAIN if oblivious else {}, ON_SIZES),
        scans.in_force() if scans else contextlib.nullcontext(),
        open_broadcasts(either),
        other_calls(either),
        _Deadline(time.monotonic() + seconds),
        _noting_lines(ModuleNames(module)) as noted,
        unsolved_constraints(),
        plain_quotients(),
        settled_by_other_sizes(certain),
        sizes_like_0_and_1(oblivious),
    ):
        program = torch.export.export(module, given[0], given[1], dynamic_shapes=dynamic_shapes, strict=False)
    make_integral(program)
    lines = {_python(program, guard): origin for guard, origin in noted.items()}
    return Trace(program, lines, scans.found if scans else 0)


@alone
def traced_as_it_is(
    model: Any, given: Arguments, dynamic_shapes: Any, seconds: float = math.inf
) -> ExportedProgram:
    """The model as torch exports it where nothing is replaced. Raises what torch raises, and TimeoutError."""
    module = model if isinstance(model, torch.nn.Module) else _FunctionModule(model)
    with (
        surroundings_kept(),
        Held(model).lent(copied=True, but=(*module.parameters(), *module.buffers())),
        _quiet(),
        _Deadline(time.monotonic() + seconds),
    ):
        return torch.export.export(module, given[0], given[1], dynamic_shapes=dynamic_shapes, strict=False)


def _homes(functions: Iterable[FunctionType]) -> Iterator[ModuleType]:
    """The modules of the user's that functions are from."""
    for function in functions:
        home = sys.modules.get(function.__module__)
        file = getattr(home, "__file__", None)
        if home is not None and file and not is_inner(file):
            yield home


@contextlib.contextmanager
def _noting_lines(names: ModuleNames) -> Iterator[dict[Any, Origin]]:
    """While this lasts each guard, an expression of sympy's, is noted with the line that is being traced."""
    noted: dict[Any, Origin] = {}


    def make(log: Callable[..., Any]) -> Callable[..., Any]:
        def noting(self: ShapeEnv, prefix: str, guard: Any, forcing_spec: bool) -> None:
            noted.setdefault(guard, here(names))
            log(self, prefix, guard, forcing_spec)

        return noting

    with Patch(*LOGGED, make, "guards are noted with their lines").in_force():
        yield noted


def _python(program: ExportedProgram, guard: Any) -> str:
    """A guard as torch writes it; by its own text where it is about something else than inputs."""
    for node in program.graph.nodes:
        env = getattr(getattr(node.meta.get("val"), "fake_mode", None), "shape_env", None)
        if env is not None and guard.free_symbols <= env.var_to_sources.keys():
            sources = env.var_to_sources
            text: str = ShapeGuardPythonPrinter(sources, lambda s: s.name, sources).doprint(guard)
            return text
    return str(guard)


class _FunctionModule(torch.nn.Module):
    """A function as the module that torch.export wants."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.forward = function


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    level = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


class _Deadline(TorchFunctionMode):
    """No call begins after it, by the monotonic clock."""

    def __init__(self, until: float) -> None:
        super().__init__()
        self.until = until

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if time.monotonic() > self.until:
            raise TimeoutError("the trace takes too long")
        return func(*args, **(kwargs or {}))
