"""One call of `torch.export.export` that fixes as few sizes as torch can be kept from fixing."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._C import DispatchKey
from torch.export import ExportedProgram
from torch.fx.experimental import _config

from .example_inputs import Arguments

aten = torch.ops.aten


def traced(model: Any, given: Arguments, dynamic_shapes: Any, careful: bool) -> ExportedProgram:
    """The model as torch exports it. What torch logs, prints and warns of is kept quiet, not what it raises.

    `careful`: sizes are treated as if nothing were known of them, 0 and 1 like others, and what cannot be
    decided is left to run time. A few of torch's own functions cannot be traced in this way.
    """
    module = model if isinstance(model, torch.nn.Module) else _Function(model)
    with _quiet(), recurrent_shapes(), _config.patch(backed_size_oblivious=careful):  # type: ignore[attr-defined]
        return torch.export.export(
            module,
            given[0],
            given[1],
            dynamic_shapes=dynamic_shapes,
            strict=False,
            prefer_deferred_runtime_asserts_over_guards=careful,
        )


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
