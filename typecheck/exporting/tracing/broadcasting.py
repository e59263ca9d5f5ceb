"""Broadcasts of sizes that need not be equal: the trace leaves open which of the two is 1.

Where sizes a and b meet, torch goes by the example: they are one size, or one of them is 1, and the program
holds for nothing else. Where the model takes both, the result has max(a, b), sizes being at least 1, and what
is asked of them is `a == b or a == 1 or b == 1`.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias

import torch
import torch.nn.functional as F
from torch.fx.experimental.symbolic_shapes import ShapeGuardPythonPrinter, sym_or
from torch.overrides import TorchFunctionMode

from ....tracer.host.broadcasts import OF_RESULTS, OF_SHAPES, order_in_memory
from ....tracer.host.patches import Patch
from ....tracer.host.tensors import torch_check

Either: TypeAlias = Callable[[str, str], bool]
"""Returns whether two sizes, as Python over `L['x'].size()[0]`, may differ while one of them is 1."""
Certain: TypeAlias = Callable[[str], bool]
"""Returns whether a condition on sizes, in the same form, holds wherever the program is to run."""


@contextlib.contextmanager
def open_broadcasts(either: Either) -> Iterator[None]:
    """While this lasts, pairs of sizes for which `either` is true broadcast to their maximum."""
    with contextlib.ExitStack() as restored:
        for change, places in _CHANGES:
            make = functools.partial(change, either)
            for place in places:
                restored.enter_context(Patch(*place, make, "broadcasts are left open").in_force())
        yield


def _of_shapes(either: Either, original: Callable[..., Any]) -> Callable[..., Any]:
    def broadcast(*shapes: Any) -> Any:
        return original(*_common(shapes, either))

    return broadcast


def _of_tensors(either: Either, original: Callable[..., Any]) -> Callable[..., Any]:
    def broadcast(*values: Any) -> Any:
        several = values[0] if len(values) == 1 and isinstance(values[0], list | tuple) else values
        return original(*_wider(several, either, torch.Tensor.expand))

    return broadcast


def _of_results(either: Either, original: Callable[..., Any]) -> Callable[..., Any]:
    def broadcast(*values: Any, **options: Any) -> Any:
        return original(*_wider(values, either, _like), **options)

    return broadcast


def _like(value: torch.Tensor, shape: list[Any]) -> torch.Tensor:
    """Returns a tensor of this shape whose dims have the same order in memory. (To expand a tensor, torch
    would have to know which sizes are 1.)
    """
    return torch.empty_permuted(shape, order_in_memory(value), dtype=value.dtype, device=value.device)


_CHANGES: Final = (
    (_of_shapes, OF_SHAPES),
    (_of_results, OF_RESULTS),
    (_of_tensors, ((torch, "broadcast_tensors"), (torch.functional, "broadcast_tensors"))),
)
"""The functions by which torch computes the shape of a broadcast, broadcasts tensors to find out what an
operator would return, and broadcasts them in the graph.
"""


class Alike(TorchFunctionMode):
    """Patches functions that compare the shapes of their operands and act differently if these differ. They
    get operands of one shape instead. Losses warn; attention and products of matrices have a kernel for equal
    batches.
    """

    def __init__(self, either: Either) -> None:
        super().__init__()
        self.either = either

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if func in _LOSSES:
            named = {**dict(zip(("input", "target"), args, strict=False)), **given}
            if {"input", "target"} <= named.keys():
                both = [named.pop("input"), named.pop("target")]
                alike = _wider(both, self.either, torch.Tensor.expand)
                return func(*alike, *args[2:], **named)
        if func in _PRODUCTS and len(args) == 2 and not given and all(a.dim() > 2 for a in args):
            return func(*_of_one_batch(args, self.either))
        if func is torch.einsum and args and isinstance(args[0], str) and not given:
            operands = args[1] if isinstance(args[1], list | tuple) else args[1:]
            return func(args[0], *_of_letters(args[0], operands, self.either))
        if func is F.scaled_dot_product_attention:
            named = {**dict(zip(_ATTENDING, args, strict=False)), **given}
            tensors = {name: value for name, value in named.items() if isinstance(value, torch.Tensor)}
            alike = _of_one_batch([*tensors.values()], self.either)
            return func(**named | dict(zip(tensors, alike, strict=True)))
        return func(*args, **given)


_PRODUCTS: Final = (torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__)
_LOSSES: Final = (F.mse_loss, F.l1_loss, F.smooth_l1_loss, F.huber_loss)
_ATTENDING: Final = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")


def _of_one_batch(tensors: Sequence[torch.Tensor], either: Either) -> list[torch.Tensor]:
    """`[*b, n, k]` with the b broadcast, as far as they may differ"""
    before = [tensor.shape[:-2] for tensor in tensors]
    return [
        tensor.expand(*new, *tensor.shape[-2:]) if _texts(old) != _texts(new) else tensor
        for tensor, old, new in zip(tensors, before, _common(before, either), strict=True)
    ]


def _of_letters(equation: str, tensors: Sequence[torch.Tensor], either: Either) -> list[torch.Tensor]:
    """The operands of an einsum, the sizes of each letter broadcast; one with an ellipsis is left alone."""
    terms = equation.partition("->")[0].replace(" ", "").split(",")
    if [*map(len, terms)] != [tensor.dim() for tensor in tensors] or "." in equation:
        return [*tensors]
    common: dict[str, Any] = {}
    for letter, size in zip("".join(terms), chain.from_iterable(t.shape for t in tensors), strict=True):
        common[letter] = _maximum(common.get(letter, 1), size, either)
    found = []
    for term, tensor in zip(terms, tensors, strict=True):
        shape = [_widened(size, common[a], either) for a, size in zip(term, tensor.shape, strict=True)]
        found.append(tensor.expand(shape) if _texts(shape) != _texts(tensor.shape) else tensor)
    return found


def _wider(values: Sequence[Any], either: Either, made: Callable[[torch.Tensor, Any], Any]) -> list[Any]:
    """Returns the values; tensors whose sizes change are replaced by those that `made` returns."""
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    shapes = [tensor.shape for tensor in tensors]
    wider = iter(zip(shapes, _common(shapes, either), strict=True))
    found = []
    for value in values:
        if isinstance(value, torch.Tensor):
            before, after = next(wider)
            value = made(value, after) if _texts(before) != _texts(after) else value
        found.append(value)
    return found


def _common(shapes: Sequence[Any], either: Either) -> list[Any]:
    """The shapes, with the maximum in place of sizes that may differ from one another."""
    wider = [[*s] if isinstance(s, Sequence) else s for s in shapes]
    lists = [s for s in wider if isinstance(s, list)]
    for axis in range(-1, -1 - max(map(len, lists), default=0), -1):
        holding = [s for s in lists if len(s) >= -axis]
        common: Any = 1
        for shape in holding:
            common = _maximum(common, shape[axis], either)
        for shape in holding:
            shape[axis] = _widened(shape[axis], common, either)
    return wider


def _maximum(one: Any, other: Any, either: Either) -> Any:
    """Returns the size to which two sizes broadcast: their maximum where `either` applies, else the first
    that is not 1.
    """
    if not _differ(one, other, either):
        return other if type(one) is int and one == 1 else one
    torch_check(sym_or(one == other, one == 1, other == 1))  # type: ignore[no-untyped-call]
    return torch.sym_max(one, other)  # type: ignore[no-untyped-call]


def _widened(size: Any, common: Any, either: Either) -> Any:
    """The maximum in place of a size that it has been taken of."""
    taken = isinstance(common, torch.SymInt) and size_text(size) != size_text(common)
    return common if taken and _differ(size, common, either) else size


def _differ(one: Any, other: Any, either: Either) -> bool:
    symbolic = any(isinstance(size, torch.SymInt) for size in (one, other))
    known = all(isinstance(size, torch.SymInt) or type(size) is int for size in (one, other))
    if not symbolic or not known or any(type(size) is int and size <= 1 for size in (one, other)):
        return False
    texts = size_text(one), size_text(other)
    return "" not in texts and texts[0] != texts[1] and either(*texts)


def size_text(size: Any) -> str:
    """The size over those of the inputs; nothing where it is about something else."""
    if not isinstance(size, torch.SymInt):
        return str(size)
    expression, sources = size.node.expr, size.node.shape_env.var_to_sources
    if not expression.free_symbols <= sources.keys():
        return ""
    text: str = ShapeGuardPythonPrinter(sources, lambda s: s.name, sources).doprint(expression)
    return text


def _texts(sizes: Iterable[Any]) -> list[str]:
    return [*map(size_text, sizes)]


def unsure(condition: str) -> bool:
    """Nothing is known of sizes."""
    return False


def never(one: str, other: str) -> bool:
    """torch alone decides."""
    return False
