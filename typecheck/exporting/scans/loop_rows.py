"""The sequences that a loop over a size iterates over, and those that it fills, for any number of iterations.

`range(n)`, `x`, `x.unbind(1)` and the like become `Rows`, from which each iteration gets an element: a slice
of a tensor, or its own number, an `IterationIndex`. A list that is filled by a loop over a size holds a
`Run` of tensors, which `stack` and `cat` take.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NoReturn, Protocol

import torch
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
from torch.overrides import TorchFunctionMode

from ....tracer.host.trees import pytree


class Slicing(Protocol):
    """An iteration, as far as elements need it."""

    def slice(self, tensor: torch.Tensor, axis: int, index: IterationIndex) -> torch.Tensor:
        """The slice of a tensor from outside that is meant in this iteration."""


class NotScanned(Exception):
    """The body of a loop does something that a scan does not."""


class _Unasked:
    """A value without comparisons, truth, text or hash: each raises NotScanned."""

    def _asked(self, *_: Any) -> NoReturn:
        raise NotScanned("a question that a scan has no answer to")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __bool__ = __str__ = __format__ = _asked
    __hash__ = None  # type: ignore[assignment]


UNBOUND: Final = _Unasked()
"""The value of a name that has none."""


# ---- what a loop goes over


@dataclass(frozen=True, eq=False)
class IterationIndex(_Unasked):
    """The number of an iteration, `start + step*k` for the k-th of so many. It can be moved and multiplied,
    and say which slice of a tensor is meant, or which slices, if it has a width; nothing else is known of it.
    """

    start: Any
    step: int
    count: Any
    width: int | None = None

    def __add__(self, other: Any) -> IterationIndex:
        if not isinstance(other, int | torch.SymInt):
            raise NotScanned("more than a number is added")
        with disable_proxy_modes_tracing():  # it is no part of the body
            return replace(self, start=self.start + other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> IterationIndex:
        return self.__add__(-other)

    def __rsub__(self, other: Any) -> IterationIndex:
        return self.__mul__(-1).__add__(other)

    def __mul__(self, other: Any) -> IterationIndex:
        if type(other) is not int or other == 0:
            raise NotScanned("more than a number is multiplied")
        with disable_proxy_modes_tracing():
            return replace(self, start=other * self.start, step=other * self.step)

    __rmul__ = __mul__

    def up_to(self, stop: IterationIndex) -> IterationIndex:
        """The slices from here to before another number of the same iteration."""
        with disable_proxy_modes_tracing():
            width = _number(stop.start - self.start)
        if stop.step != self.step or not same_size(stop.count, self.count) or width is None or width < 1:
            raise NotScanned("a part that grows")
        return replace(self, width=width)

    def cut(self, tensor: torch.Tensor, axis: int) -> torch.Tensor:
        """The slices of a tensor that are meant, in order: `[*a, n, *z] -> [count, *a, *z]`; with the axis
        where there is a width: `[count, *a, width, *z]`.
        """
        tensor = self.part(tensor, axis)
        tensor = tensor.movedim(-1, axis + 1) if self.width else tensor
        tensor = tensor.movedim(axis, 0) if axis else tensor
        return tensor if self.step > 0 else tensor.flip(0)

    def fill(self, tensor: torch.Tensor, axis: int, rows: torch.Tensor) -> None:
        """Writes rows `[count, *a, *z]` to where they are cut from."""
        rows = rows if self.step > 0 else rows.flip(0)
        self.part(tensor, axis).copy_(rows.movedim(0, axis) if axis else rows)

    def part(self, tensor: torch.Tensor, axis: int) -> torch.Tensor:
        """All that is meant, as it lies in the tensor: `[*a, n, *z] -> [*a, count, *z]`, with a width
        `[*a, count, *z, width]`.
        """
        step, length = abs(self.step), abs(self.step) * (self.count - 1) + (self.width or 1)
        first = self.start if self.step > 0 else self.start - step * (self.count - 1)
        if isinstance(first, int) and first < 0:
            raise NotScanned("counts from the end")
        if not (same_size(first, 0) and same_size(length, tensor.shape[axis])):
            tensor = tensor.narrow(axis, first, length)
        if self.width:
            return tensor.unfold(axis, self.width, step)
        return tensor if step == 1 else torch.ops.aten.slice.Tensor(tensor, axis, 0, None, step)


@dataclass(frozen=True)
class Rows:
    """The sequence that a loop over a size iterates over: its length, and its elements."""

    count: Any
    element: Callable[[Slicing], Any]
    """An element, which may take slices of tensors."""
    each: Callable[[], Any]
    """Runs Python's own loop where there is no scan; the size is a number then."""
    back: Callable[[], Rows] | None = None
    """Returns the rows in reverse."""

    def __iter__(self) -> Iterator[Any]:
        return iter(self.each())

    def __len__(self) -> int:
        return len(self.each())

    def __getitem__(self, place: Any) -> Any:
        return self.each()[place]


def rows_of(iterable: Any) -> Rows | None:
    """Returns the Rows that a loop iterates over, if their length is a symbolic size; None if it is a number.
    """
    if isinstance(iterable, Rows):
        return iterable
    if isinstance(iterable, torch.Tensor) and iterable.dim() and isinstance(iterable.shape[0], torch.SymInt):
        return _along(iterable, 0)
    if type(iterable) is builtins.list and len(iterable) == 1 and isinstance(iterable[0], Run):
        return rows_of(iterable[0].rows)
    return None


def _along(tensor: torch.Tensor, axis: int, width: int | None = None) -> Rows:
    """Returns the slices of a tensor, or its pieces of a width; the last piece may be narrower."""
    size, step = tensor.shape[axis], width or 1
    count = -(-size // step)
    axis %= tensor.dim()

    def element(run: Slicing) -> torch.Tensor:
        return run.slice(tensor, axis, IterationIndex(0, step, count, width))

    def each() -> list[torch.Tensor]:
        taken = [tensor.narrow(axis, i, min(step, size - i)) for i in range(0, size, step)]
        return taken if width else [part.squeeze(axis) for part in taken]

    return Rows(count, element, each)


def _range(*args: Any) -> Any:
    first, stop, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
    if not any(isinstance(a, torch.SymInt) for a in args) or type(step) is not int or step == 0:
        return range(*args)
    count = -(((first - stop) if step > 0 else (stop - first)) // abs(step))
    if not isinstance(count, torch.SymInt):
        return range(*args)
    forth, back = IterationIndex(first, step, count), IterationIndex(first + step * (count - 1), -step, count)
    backward = Rows(count, lambda run: back, lambda: range(*args)[::-1])
    return Rows(count, lambda run: forth, lambda: range(*args), lambda: backward)


def _enumerate(iterable: Any, start: Any = 0) -> Any:
    rows = rows_of(iterable)
    if rows is None:
        return enumerate(iterable, start)
    number = IterationIndex(start, 1, rows.count)
    return Rows(rows.count, lambda run: (number, rows.element(run)), lambda: [*enumerate(iterable, start)])


def _zip(*iterables: Any, strict: bool = False) -> Any:
    several = [*map(rows_of, iterables)]
    whole = [rows for rows in several if rows is not None]
    if not whole or len(whole) != len(several) or any(rows.count != whole[0].count for rows in whole):
        return zip(*iterables, strict=strict)
    return Rows(
        whole[0].count,
        lambda run: tuple(rows.element(run) for rows in whole),
        lambda: [*zip(*iterables, strict=strict)],
    )


def _reversed(sequence: Any) -> Any:
    if not isinstance(sequence, Rows):
        return reversed(sequence)
    return sequence.back() if sequence.back is not None else reversed([*sequence])


def _len(sequence: Any) -> Any:
    if type(sequence) is builtins.list and any(isinstance(part, Run) for part in sequence):
        return sum(part.rows.shape[0] if isinstance(part, Run) else 1 for part in sequence)
    return sequence.count if isinstance(sequence, Rows) else len(sequence)


BUILTINS: Final[Mapping[str, Callable[..., Any]]] = {
    "range": _range, "enumerate": _enumerate, "zip": _zip, "reversed": _reversed, "len": _len,
}  # fmt: skip


def same_index(one: IterationIndex, other: IterationIndex) -> bool:
    sizes = zip((one.start, one.count), (other.start, other.count), strict=True)
    return (one.step, one.width) == (other.step, other.width) and all(same_size(*pair) for pair in sizes)


def _number(size: Any) -> int | None:
    """The number that a size is, whatever the others are."""
    expr = size.node.expr if isinstance(size, torch.SymInt) else size
    return int(expr) if isinstance(expr, int) or expr.is_number else None


def same_size(one: Any, other: Any) -> bool:
    """Returns whether both are the same size, without adding a guard to the trace."""
    exprs = [size.node.expr if isinstance(size, torch.SymInt) else size for size in (one, other)]
    return bool(exprs[0] == exprs[1])


# ---- what a loop gathers


class Run:
    """As many tensors in a list as a loop has had iterations."""

    def __init__(self, rows: torch.Tensor) -> None:
        self.rows = rows
        """`[count, …]`"""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> NoReturn:
        raise NotScanned(f"{func} of what a loop has gathered")


class Gathering(TorchFunctionMode):
    """`stack` and `cat` take lists that a loop has filled; `unbind` gives what a loop can go over."""

    def __init__(self, inner: Mapping[int, torch.Tensor]) -> None:
        super().__init__()
        self.made = inner

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if self.made and any(id(leaf) in self.made for leaf in pytree.tree_leaves((args, given))):
            raise NotScanned("the body has left something behind")
        if func in _JOINING and (args or "tensors" in given):
            named = {**dict(zip(("tensors", "dim"), args, strict=False)), **given}
            parts = named["tensors"]
            if isinstance(parts, list | tuple) and any(isinstance(part, Run) for part in parts):
                return _JOINING[func](**named)
        if func in _PARTING:
            found = _PARTING[func](*args, **given)
            return func(*args, **given) if found is None else found
        return func(*args, **given)


def _stack(tensors: Sequence[Any], dim: int = 0) -> torch.Tensor:
    """`[n, *a, *z] -> [*a, n, *z]`"""
    parts = [part.rows if isinstance(part, Run) else part.unsqueeze(0) for part in tensors]
    rows = torch.cat(parts) if len(parts) > 1 else parts[0]
    return rows.movedim(0, dim).contiguous() if dim else rows


def _cat(tensors: Sequence[Any], dim: int = 0) -> torch.Tensor:
    """`[n, *a, d, *z] -> [*a, n*d, *z]`"""
    parts = []
    for part in tensors:
        if isinstance(part, Run):
            axis = dim % (part.rows.dim() - 1)
            part = part.rows.movedim(0, axis).flatten(axis, axis + 1)
        parts.append(part)
    return torch.cat(parts, dim) if len(parts) > 1 else parts[0].contiguous()


def _unbind(input: torch.Tensor, dim: int = 0) -> Rows | None:
    return _along(input, dim) if isinstance(input.shape[dim], torch.SymInt) else None


def _split(tensor: torch.Tensor, size: Any = None, dim: int = 0, **others: Any) -> Rows | None:
    varies = isinstance(tensor.shape[dim], torch.SymInt)
    return _along(tensor, dim, size) if varies and not others and type(size) is int and size > 0 else None


_JOINING: Final[Mapping[Any, Callable[..., torch.Tensor]]] = {
    torch.stack: _stack, torch.cat: _cat, torch.concat: _cat, torch.concatenate: _cat,
}  # fmt: skip
_PARTING: Final[Mapping[Any, Callable[..., Any]]] = {
    torch.unbind: _unbind, torch.Tensor.unbind: _unbind, torch.split: _split, torch.Tensor.split: _split,
}  # fmt: skip
