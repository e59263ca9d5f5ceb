"""One call of `torch.export.export` that fixes as few sizes as torch can be kept from fixing."""

from __future__ import annotations

import contextlib
import functools
import io
import logging
import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch
import torch.nn.functional as F
from torch._C import DispatchKey
from torch.export import ExportedProgram
from torch.fx.experimental import _config
from torch.fx.experimental.symbolic_shapes import ShapeEnv, ShapeGuardPythonPrinter
from torch.overrides import TorchFunctionMode

from ...constraints.program import Origin
from ...tracer import named_axes
from ...tracer.alone import alone
from ...tracer.caches import forgetting
from ...tracer.origins import ModuleNames, here
from ...tracer.stand_ins import rebound, replaced, sources_of
from .broadcasting import Alike, Certain, Either, never, open_broadcasts, size_text, unsure
from .data_sizes import settled_by_other_sizes
from .example_inputs import Arguments
from .loop_rows import same_size
from .scans import Scans
from .sympy_work import plain_quotients, unsolved_constraints

aten = torch.ops.aten


@dataclass(frozen=True, slots=True)
class Trace:
    """A program, and the lines of the model at which torch made its guards."""

    program: ExportedProgram
    lines: Mapping[str, Origin]
    """By the text of the guard, `L['x'].size()[0] % 4 == 0`."""
    scans: int = 0
    """How many loops of the model's are scans."""


@alone
def traced(
    model: Any,
    given: Arguments,
    dynamic_shapes: Any,
    oblivious: bool,
    either: Either = never,
    certain: Certain = unsure,
    loops: bool = False,
    seconds: float = math.inf,
) -> Trace:
    """The model as torch exports it. What torch logs, prints and warns of is kept quiet, not what it raises.

    `oblivious`: sizes of 0 and 1 are treated like others, and Python's `int`, `max`, `min` and `len` give
    sizes. A few of torch's own functions cannot be traced so. `either`: which sizes broadcast either way.
    `certain`: what holds of all sizes, so that the larger of two may be known. `loops`: Python's loops over a
    size become scans, as far as they can. Raises TimeoutError where it takes longer than `seconds`.

    What torch cannot decide becomes a guard, and is not left to run time
    (`prefer_deferred_runtime_asserts_over_guards`): there it loses conditions on fractions of sizes, and the
    program is wrong without a word.
    """
    module = model if isinstance(model, torch.nn.Module) else _Function(model)
    scans = Scans(model, lambda: _modes(either)) if loops else None
    builtins = {**(builtins_on_sizes(certain) if oblivious else {}), **(scans.builtins if scans else {})}
    sources = sources_of(model)
    with (
        _quiet(),
        forgetting(sources),
        recurrent_shapes(),
        rebound(sources, builtins),
        replaced(sources, named_axes.plain_functions(), named_axes.TRACED),
        scans.in_force() if scans else contextlib.nullcontext(),
        open_broadcasts(either),
        _modes(either),
        _Deadline(time.monotonic() + seconds),
        _noting_lines(ModuleNames(module)) as noted,
        unsolved_constraints(),
        plain_quotients(),
        settled_by_other_sizes(certain),
        _config.patch(backed_size_oblivious=oblivious),  # type: ignore[attr-defined]
    ):
        program = torch.export.export(
            module, given[0], given[1], dynamic_shapes=dynamic_shapes, strict=False
        )
    lines = {_python(program, guard): origin for guard, origin in noted.items()}
    return Trace(program, lines, scans.found if scans else 0)


@contextlib.contextmanager
def _modes(either: Either) -> Iterator[None]:
    """Calls of torch's that go otherwise while a model is traced."""
    with _Pooling(), _Squeezing(), Alike(either):
        yield


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


# ---- Python's builtins


def _int(*args: Any) -> Any:
    """`int(…)` of a fraction of sizes is another size, not a number."""
    symbolic = len(args) == 1 and isinstance(args[0], torch.SymInt | torch.SymFloat)
    return torch.sym_int(args[0]) if symbolic else int(*args)  # type: ignore[no-untyped-call]


def _extremum(
    plain: Callable[..., Any], symbolic: Callable[[Any, Any], Any], order: str, certain: Certain
) -> Callable[..., Any]:
    """`max` and `min` of sizes are sizes, and no branch: one of the two, where it is known which. torch would
    carry the other along, and take minutes over what comes of a dozen of them.
    """

    def extremum(one: Any, other: Any) -> Any:
        texts = size_text(one), size_text(other)
        if "" not in texts:
            if certain(f"{texts[0]} {order} {texts[1]}"):
                return one
            if certain(f"{texts[1]} {order} {texts[0]}"):
                return other
        return symbolic(one, other)

    def call(*args: Any, **kwargs: Any) -> Any:
        alone = len(args) == 1 and not isinstance(args[0], torch.Tensor)
        several = [*args[0]] if alone else args
        of_sizes = all(isinstance(a, torch.SymInt) or type(a) is int for a in several)
        if kwargs or not of_sizes or not any(isinstance(a, torch.SymInt) for a in several):
            return plain(several, **kwargs) if alone else plain(*args, **kwargs)
        return functools.reduce(extremum, several)

    return call


def _len(value: Any) -> Any:
    """`len(x)` of a tensor is its first size, which Python would make a number."""
    return value.shape[0] if isinstance(value, torch.Tensor) and value.dim() else len(value)


def _range(*args: Any) -> Any:
    """`range(start, stop, step)` up to a size, in steps of more than 1: how many steps there are is a number,
    `stop` need not be one.
    """
    start, stop, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
    if type(start) is not int or type(step) is not int or step < 2 or not isinstance(stop, torch.SymInt):
        return range(*args)
    count = int((stop - start + step - 1) // step)
    return range(start, start + count * step, step)


def builtins_on_sizes(certain: Certain) -> Mapping[str, Callable[..., Any]]:
    """Python's functions as they are called while a model is traced."""
    return {
        "int": _int, "len": _len, "range": _range,
        "max": _extremum(max, torch.sym_max, ">=", certain),
        "min": _extremum(min, torch.sym_min, "<=", certain),
    }  # fmt: skip


# ---- pooling


class _Pooling(TorchFunctionMode):
    """Pooling is called by the name under which its sizes stay sizes.

    `max_pool1d(x, x.shape[-1])` takes no size for a kernel: torch would make a number of it, and does so of
    the size that any `max_pool1d` is given, unless that tells the places of the maxima, too.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if func in _POOLING:
            names, adaptive, joined, dimensions = _POOLING[func]
            named = {**dict(zip(names, args, strict=False)), **given}
            whole = _whole_axes(dimensions, **named)
            if len(whole) == dimensions:
                return adaptive(named["input"], (1,) * dimensions)
            if whole:
                axes = [axis - dimensions for axis in whole]
                return joined(func(**named | _elsewhere(dimensions, whole, **named)), axes, keepdim=True)
            if func in (torch.max_pool1d, F.max_pool1d) and not named.pop("return_indices", False):
                stride = named.get("stride") or []
                return torch.max_pool1d_with_indices(**named | {"stride": stride})[0]
        return func(*args, **given)


_MAX: Final = ("input", "kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices")
_AVERAGE: Final = (
    "input", "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override",
)  # fmt: skip
_POOLING: Final[Mapping[Any, tuple[tuple[str, ...], Any, Any, int]]] = {
    torch.max_pool1d: (_MAX, F.adaptive_max_pool1d, torch.amax, 1),
    torch.max_pool2d: (_MAX, F.adaptive_max_pool2d, torch.amax, 2),
    torch.max_pool3d: (_MAX, F.adaptive_max_pool3d, torch.amax, 3),
    F.max_pool1d: (_MAX, F.adaptive_max_pool1d, torch.amax, 1),
    F.max_pool2d: (_MAX, F.adaptive_max_pool2d, torch.amax, 2),
    F.max_pool3d: (_MAX, F.adaptive_max_pool3d, torch.amax, 3),
    torch.avg_pool1d: (_AVERAGE, F.adaptive_avg_pool1d, torch.mean, 1),
    torch._C._nn.avg_pool2d: (_AVERAGE, F.adaptive_avg_pool2d, torch.mean, 2),
    torch._C._nn.avg_pool3d: (_AVERAGE, F.adaptive_avg_pool3d, torch.mean, 3),
}
"""Names of the parameters, what the call is where the kernel is the whole input, what it is along some dims
where the kernel is as large as the input there, and its dimensions.
"""


def _whole_axes(
    dimensions: int,
    input: torch.Tensor,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
    count_include_pad: bool = True,  # without padding it does not matter
    divisor_override: int | None = None,
    return_indices: bool = False,
) -> list[int]:
    """Along which dims is the kernel as large as the input? There is one window, whatever the stride. None
    where a number would do: where no size of the kernel varies, or one that is not that of the input.
    """
    kernel = _each(kernel_size, dimensions)
    plain = {*_each(padding, dimensions)} == {0} and {*_each(dilation, dimensions)} == {1}
    if not plain or divisor_override is not None or return_indices or len(kernel) != dimensions:
        return []
    varying = [axis for axis, size in enumerate(kernel) if isinstance(size, torch.SymInt)]
    whole = [axis for axis in range(dimensions) if same_size(kernel[axis], input.shape[axis - dimensions])]
    return whole if varying and {*varying} <= {*whole} else []


def _elsewhere(
    dimensions: int, whole: list[int], kernel_size: Any, stride: Any = None, **others: Any
) -> dict[str, Any]:
    """The kernel and the stride of the pooling along the other dims alone."""
    kernel = _each(kernel_size, dimensions)
    steps = _each(stride, dimensions) if stride not in (None, []) else kernel
    return {
        "kernel_size": [1 if axis in whole else kernel[axis] for axis in range(dimensions)],
        "stride": [1 if axis in whole else steps[axis] for axis in range(dimensions)],
    }


def _each(value: Any, dimensions: int) -> list[Any]:
    given = list(value) if isinstance(value, list | tuple) else [value]
    return given * dimensions if len(given) == 1 else given


# ---- squeeze


class _Deadline(TorchFunctionMode):
    """No call begins after it, by the monotonic clock."""

    def __init__(self, until: float) -> None:
        super().__init__()
        self.until = until

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if time.monotonic() > self.until:
            raise TimeoutError("the trace takes too long")
        return func(*args, **(kwargs or {}))


class _Squeezing(TorchFunctionMode):
    """Whether a size that `squeeze` may take away is 1 is asked before the call, as the model would ask it.

    Where sizes of 1 are treated like others, `squeeze` takes every size that varies for a larger one. Along
    dims of size 1 it is `select(dim, 0)`.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if func in (torch.squeeze, torch.Tensor.squeeze):
            selected = _squeezed(*args, **given)
            if selected is not None:
                return selected
        return func(*args, **given)


def _squeezed(input: torch.Tensor, dim: Any = None) -> torch.Tensor | None:
    """What `squeeze` returns where a size that varies is 1; None where torch itself gets it right."""
    rank = input.dim()
    axes = range(rank) if dim is None else [dim] if isinstance(dim, int) else dim
    if any(not -rank <= axis < rank for axis in axes):
        return None  # torch refuses the call
    taken = sorted({axis % rank for axis in axes if bool(input.shape[axis] == 1)}, reverse=True)
    if not any(isinstance(input.shape[axis], torch.SymInt) for axis in taken):
        return None
    for axis in taken:
        input = input.select(axis, 0)
    return input


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
