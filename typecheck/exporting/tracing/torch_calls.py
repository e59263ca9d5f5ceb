"""Replacements for calls of torch while a model is traced, so that fewer sizes become numbers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import torch
import torch.nn.functional as F
from torch.fx.experimental.symbolic_shapes import has_free_unbacked_symbols, statically_known_true
from torch.overrides import TorchFunctionMode

from ....tracer.host.exports import READS_INDICES
from ....tracer.host.operators import KEYS_OF_SHAPES, forget_kernels
from ....tracer.host.patches import Patch, Setting
from ....tracer.host.symbolic_shapes import Mod, PythonMod
from ..scans.loop_rows import same_size
from .broadcasting import Alike, Either
from .held_sizes import HeldSizes
from .sized_calls import SizedCalls

aten = torch.ops.aten


@contextlib.contextmanager
def other_calls(either: Either) -> Iterator[None]:
    """Inside, calls are replaced. `either` says which sizes broadcast either way."""
    modes = _Pooling(), _Squeezing(), _SliceEnds(), _ViewWriting(), SizedCalls(), Alike(either), HeldSizes()
    with contextlib.ExitStack() as calls:
        for context in (*modes, *([] if READS_INDICES else [_IndexReading()]), _paddings()):
            calls.enter_context(context)
        yield


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
    F.avg_pool2d: (_AVERAGE, F.adaptive_avg_pool2d, torch.mean, 2),
    F.avg_pool3d: (_AVERAGE, F.adaptive_avg_pool3d, torch.mean, 3),
}
"""The names of the parameters, the replacement if the kernel is the whole input, the replacement along some
dims if the kernel is as large as the input there, and the number of dimensions.
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
    padded = not all(same_size(size, 0) for size in _each(padding, dimensions))
    dilated = not all(same_size(size, 1) for size in _each(dilation, dimensions))
    if padded or dilated or divisor_override is not None or return_indices or len(kernel) != dimensions:
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
    """Returns the result of `squeeze` where a size that varies is 1; None where torch itself is right."""
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


# ---- slices


class _SliceEnds(TorchFunctionMode):
    """Whether the ends of a slice count from the front is asked before the call, as the model would ask it.

    Where sizes of 1 are treated like others, torch leaves that to run time if it cannot tell for all sizes,
    and what is cut out has a size that nothing is known of.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten.slice:
            for end in args[2:4]:
                if isinstance(end, torch.SymInt) and not has_free_unbacked_symbols(end):
                    bool(end >= 0)
        return func(*args, **(kwargs or {}))


class _IndexReading(TorchFunctionMode):
    """`x[:n]` of a tensor `n` is a slice up to its number, and `x[n]` a row, as torch has them since 2.13."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.__getitem__:
            given = args[1] if isinstance(args[1], tuple) else (args[1],)
            read = any(_is_number(value) for place in given for value in (place, *_ends(place)))
            if read and {type(place) for place in given if not _is_number(place)} <= _PLACES:
                return _view(args[0], tuple(map(_read, given)))
        return func(*args, **(kwargs or {}))


def _ends(place: Any) -> tuple[Any, ...]:
    return (place.start, place.stop, place.step) if isinstance(place, slice) else ()


def _is_number(place: Any) -> bool:
    """Returns whether it is a tensor of one integer."""
    return isinstance(place, torch.Tensor) and place.dim() == 0 and place.dtype in _INTEGERS


def _read(place: Any) -> Any:
    """Returns the place with the numbers of tensors, which are sizes or unknown."""
    if isinstance(place, slice):
        return slice(*map(_read, _ends(place)))
    return place.item() if _is_number(place) else place


_INTEGERS: Final = frozenset({torch.int8, torch.int16, torch.int32, torch.int64})
"""A tensor of uint8 is a mask."""


# ---- writes


class _ViewWriting(TorchFunctionMode):
    """`y[:, n] = x` is written into the view `y[:, n]`: torch would make a number of a size in the index."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.Tensor.__setitem__ and type(args[1]) is tuple:
            kinds = {*map(type, args[1])}
            if torch.SymInt in kinds and kinds <= _PLACES:
                args = _view(args[0], args[1]), ..., args[2]
        return func(*args, **(kwargs or {}))


def _view(whole: torch.Tensor, places: tuple[Any, ...]) -> torch.Tensor:
    """`whole[places]`"""
    view, dim = whole, 0
    for place in places:
        if place is Ellipsis:
            dim += whole.dim() - sum(other is not None and other is not Ellipsis for other in places)
        elif place is None:
            view, dim = view.unsqueeze(dim), dim + 1
        elif isinstance(place, slice):
            step = 1 if place.step is None else place.step
            view, dim = aten.slice(view, dim, place.start, place.stop, step), dim + 1
        else:
            view = view.select(dim, place)
    return view


_PLACES: Final = frozenset({int, torch.SymInt, slice, type(None), type(Ellipsis)})
"""Of these an index gives a view."""


# ---- padding


@contextlib.contextmanager
def _paddings() -> Iterator[None]:
    """Inside, `k - n % k` is written as `-(n % k) % k`. For a multiple n of k that is 0, the number of
    elements to pad then, so that a trace of the path that pads may hold for multiples, too.
    """


    def make(plain: Callable[..., Any]) -> Callable[..., Any]:
        def subtracted(self: torch.SymInt, other: Any) -> Any:
            remainder = getattr(self.node, "expr", None)  # sizes of nested tensors have none
            of_same = isinstance(remainder, Mod | PythonMod) and remainder.args[1] == other
            return -self % other if of_same and statically_known_true(self != 0) else plain(self, other)

        return subtracted

    with Patch(torch.SymInt, "__rsub__", make, "a padding may be 0").in_force():
        yield


# ---- recurrent networks


@contextlib.contextmanager
def recurrent_shapes() -> Iterator[None]:
    """Inside, the shapes of the results of an LSTM, GRU or RNN are computed by their law.

    torch finds them by running through the sequence step by step, which makes its length a number. Yet the
    operator stays one node of the graph, which takes sequences of any length.
    """
    laws = {
        aten.lstm.input: _lstm, aten.gru.input: _rnn, aten.rnn_tanh.input: _rnn, aten.rnn_relu.input: _rnn,
    }  # fmt: skip
    with contextlib.ExitStack() as told:
        for op, law in laws.items():
            told.callback(forget_kernels, op)
            kernels = dict.fromkeys(KEYS_OF_SHAPES, law)
            told.enter_context(Setting(op.py_kernels, kernels, "the law of an RNN's shapes").in_force())
            forget_kernels(op)
        yield


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
