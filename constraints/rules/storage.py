"""Operators that give a tensor another extent in memory, and the legacy way to make one like it."""

from __future__ import annotations

from typing import Any, Final

from ..engine.memory import is_contiguous
from ..engine.ruleset import BadCall, RuleFunction
from ..ir.language import Context, Layout, Shape, Tensor, Value
from ..terms.dims import Dim, Term
from ..terms.formula import all_of, eq
from .creation import in_format, sizes, tensor
from .elementwise import same_dtype


def resize(c: Context, input: Tensor, *size: Any, memory_format: str | None = None) -> Tensor:
    """`[*d], *n -> [*n]`, contiguous; of the same sizes, the tensor as it lies in memory"""
    return _resized(c, input, sizes(c, size), memory_format)


def _resized(c: Context, input: Tensor, shape: Shape, memory_format: str | None) -> Tensor:
    if memory_format is not None:
        return in_format(c, Tensor(shape, input.dtype), memory_format)
    same = len(shape) == input.rank and all_of(map(eq, shape, input.shape))
    if same is True:
        return input
    known = same is False or is_contiguous(input)
    return Tensor(shape, input.dtype, Layout.CONTIGUOUS if known else Layout.UNKNOWN)


def resize_as(c: Context, input: Tensor, the_template: Tensor, memory_format: str | None = None) -> Tensor:
    """`[*d], [*n] -> [*n]`, contiguous; of the same sizes, the tensor as it lies in memory"""
    if memory_format == "preserve_format":
        return Tensor(the_template.shape, input.dtype, Layout.UNKNOWN)
    return _resized(c, input, the_template.shape, memory_format)


def set_(
    c: Context, input: Tensor, source: Value = None, storage_offset: Value = 0, size: Shape | None = None,
    stride: Shape | None = None,
) -> Tensor:
    """`[*d], [*n] -> [*n]`, the memory of the source; with sizes and strides, these; of nothing, `[0]`"""
    if isinstance(source, Tensor):
        same_dtype(c, "set_", input, source)
    if size is not None:
        return Tensor(size, input.dtype, stride if stride else Layout.CONTIGUOUS)
    if source is None:
        return Tensor((0,), input.dtype)
    if not isinstance(source, Tensor):
        return Tensor((c.fresh("stored", 0, None),), input.dtype)
    return Tensor(source.shape, input.dtype, source.layout)


def new(c: Context, input: Tensor, *size: Dim | tuple[Any, ...] | Tensor) -> Tensor:
    """`*n -> [*n]`, of the dtype of the input; of nothing `[0]`, of a tensor that tensor, of data theirs

    A tuple of integers is taken for a `torch.Size`; of a list of integers torch makes a tensor of these.
    """
    if not size:
        return Tensor((0,), input.dtype)
    if len(size) > 1 and any(isinstance(n, Tensor) for n in size):
        raise BadCall("new takes a tensor for a size where it has one element")
    if isinstance(size[0], Tensor):
        same_dtype(c, "new", input, size[0])
        return size[0]
    if not all(isinstance(n, int | Term) for n in size):
        return tensor(c, size, input.dtype)
    return Tensor(sizes(c, size), input.dtype)


def fill_diagonal(c: Context, input: Tensor, fill_value: Value, wrap: Value = False) -> Tensor:
    """`[n, m] -> [n, m]`, `[n, n, n, …] -> [n, n, n, …]`"""
    if input.rank < 2:
        c.refuse(f"fill_diagonal_ takes a tensor of rank 2 or more, not {input.rank}")
    if wrap and not is_contiguous(input):
        reason = "a wrapped diagonal of a matrix with gaps may leave its memory, which is not modelled"
        c.approximate(reason, "accept")
    if input.rank > 2:
        for size in input.shape[1:]:
            c.require(eq(size, input.shape[0]), f"the sizes of {input} must all agree to have one diagonal")
    return input


RULES: Final[dict[str, RuleFunction]] = {
    "fill_diagonal_": fill_diagonal,
    "new": new,
    "resize": resize,
    "resize_as": resize_as,
    "set": set_,
}
