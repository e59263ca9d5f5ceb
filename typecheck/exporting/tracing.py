"""One call of `torch.export.export` that fixes as few sizes as torch can be kept from fixing."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch._C import DispatchKey
from torch.export import ExportedProgram
from torch.fx.experimental import _config
from torch.fx.experimental.symbolic_shapes import ShapeEnv, ShapeGuardPythonPrinter

from ...constraints.program import Origin
from ...tracer.origins import ModuleNames, here
from .example_inputs import Arguments

aten = torch.ops.aten


@dataclass(frozen=True, slots=True)
class Trace:
    """A program, and the lines of the model at which torch made its guards."""

    program: ExportedProgram
    lines: Mapping[str, Origin]
    """By the text of the guard, `L['x'].size()[0] % 4 == 0`."""


def traced(model: Any, given: Arguments, dynamic_shapes: Any, oblivious: bool) -> Trace:
    """The model as torch exports it. What torch logs, prints and warns of is kept quiet, not what it raises.

    `oblivious`: sizes of 0 and 1 are treated like others. A few of torch's own functions cannot be traced so.

    What torch cannot decide becomes a guard, and is not left to run time
    (`prefer_deferred_runtime_asserts_over_guards`): there it loses conditions on fractions of sizes, and the
    program is wrong without a word.
    """
    module = model if isinstance(model, torch.nn.Module) else _Function(model)
    with (
        _quiet(),
        recurrent_shapes(),
        _noting_lines(ModuleNames(module)) as noted,
        _config.patch(backed_size_oblivious=oblivious),  # type: ignore[attr-defined]
    ):
        program = torch.export.export(
            module, given[0], given[1], dynamic_shapes=dynamic_shapes, strict=False
        )
    return Trace(program, {_python(program, guard): origin for guard, origin in noted.items()})


@contextlib.contextmanager
def _noting_lines(names: ModuleNames) -> Iterator[dict[Any, Origin]]:
    """While this lasts each guard, an expression of sympy's, is noted with the line that is being traced."""
    noted: dict[Any, Origin] = {}
    log = ShapeEnv._log_guard

    def noting(self: ShapeEnv, prefix: str, guard: Any, forcing_spec: bool) -> None:
        noted.setdefault(guard, here(names))
        log(self, prefix, guard, forcing_spec)

    ShapeEnv._log_guard = noting  # type: ignore[method-assign,assignment]
    try:
        yield noted
    finally:
        ShapeEnv._log_guard = log  # type: ignore[method-assign]


def _python(program: ExportedProgram, guard: Any) -> str:
    """A guard as torch writes it; by its own text where it is about something else than inputs."""
    for node in program.graph.nodes:
        env = getattr(getattr(node.meta.get("val"), "fake_mode", None), "shape_env", None)
        if env is not None and guard.free_symbols <= env.var_to_sources.keys():
            sources = env.var_to_sources
            text: str = ShapeGuardPythonPrinter(sources, lambda s: s.name, sources).doprint(guard)
            return text
    return str(guard)


class _Function(torch.nn.Module):
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


# ---- recurrent networks


@contextlib.contextmanager
def recurrent_shapes() -> Iterator[None]:
    """While this lasts the shapes of what an LSTM, GRU or RNN returns are told by their law.

    torch finds them by running through the sequence step by step, which makes its length a number; yet the
    operator stays one node of the graph, which takes sequences of any length.
    """
    keys = (DispatchKey.CompositeImplicitAutograd, DispatchKey.Autograd, DispatchKey.Meta)
    laws = {
        aten.lstm.input: _lstm, aten.gru.input: _rnn, aten.rnn_tanh.input: _rnn, aten.rnn_relu.input: _rnn,
    }  # fmt: skip
    before = {op: dict(op.py_kernels) for op in laws}
    try:
        for op, law in laws.items():
            op.py_kernels.update(dict.fromkeys(keys, law))
            op._dispatch_cache.clear()
        yield
    finally:
        for op, kernels in before.items():
            op.py_kernels.clear()
            op.py_kernels.update(kernels)
            op._dispatch_cache.clear()


def _rnn(
    input: torch.Tensor, hx: torch.Tensor, params: Any, has_biases: bool, num_layers: int, dropout: float,
    train: bool, bidirectional: bool, batch_first: bool,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    """[t, b, k], [layers, b, n] -> [t, b, n or 2*n], [layers, b, n]; b comes first if batch_first says so."""
    return _output(input, hx, bidirectional), torch.empty_like(hx)


def _lstm(
    input: torch.Tensor, hx: Any, params: Any, has_biases: bool, num_layers: int, dropout: float,
    train: bool, bidirectional: bool, batch_first: bool,
) -> tuple[torch.Tensor, ...]:  # fmt: skip
    """As of an RNN, with the cells [layers, b, m] besides."""
    return _output(input, hx[0], bidirectional), torch.empty_like(hx[0]), torch.empty_like(hx[1])


def _output(input: torch.Tensor, hidden: torch.Tensor, bidirectional: bool) -> torch.Tensor:
    return input.new_empty((*input.shape[:-1], hidden.shape[-1] * (2 if bidirectional else 1)))
