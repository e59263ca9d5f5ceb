"""Real tensors as rules see them: parameters, buffers and constants of a program, and the names of dtypes."""

from __future__ import annotations

import functools
from itertools import product
from typing import Final

import torch
from msgspec import structs

from ...constraints.contents.elements.values import stored
from ...constraints.contents.laws.calls import of_number
from ...constraints.engine.memory import contiguous_strides
from ...constraints.ir.language import UNTRACKED, Affine, Elements, Layout, Piece, Pieces, Span, Tensor
from ...constraints.ir.program import Contents
from ..host.tensors import is_fake, overrides_off

SPARSE: Final = {torch.sparse_coo: Layout.COO, torch.sparse_csr: Layout.CSR}
_STRIDED = torch.strided
_LARGE: Final = 1 << 20
"""Of larger tensors it is not looked whether their elements are finite."""
_INTEGRAL = frozenset({torch.int8, torch.int16, torch.int32, torch.int64})
_COMPARED: Final = _INTEGRAL | {
    torch.bool, torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.float16, torch.bfloat16,
    torch.float32, torch.float64, torch.complex32, torch.complex64, torch.complex128,
}  # fmt: skip
"""The dtypes of which torch tells whether elements are finite: not those of 8 bits and less."""


@functools.cache
def dtype_name(dtype: torch.dtype) -> str:
    """The name by which rules know a dtype."""
    return str(dtype).removeprefix("torch.")


def default_dtype() -> str:
    """Returns the dtype of floats for which the program names none."""
    return dtype_name(torch.get_default_dtype())


def value_of(tensor: torch.Tensor) -> Tensor:
    """Returns a real tensor as a value for rules."""
    strided, shape = tensor.layout is _STRIDED, tuple(tensor.shape)
    layout: Layout | tuple[int, ...]
    if strided:
        row_major = tensor.is_contiguous() and (  # which ignores the stride along a dim of size 1
            1 not in shape or 0 in shape or tensor.stride() == contiguous_strides(shape)
        )
        layout = Layout.CONTIGUOUS if row_major else tuple(tensor.stride())
    else:
        coalesced = tensor.layout is torch.sparse_coo and tensor.is_coalesced()
        layout = Layout.COALESCED if coalesced else SPARSE.get(tensor.layout, Layout.UNKNOWN)
    dtype = tensor.dtype
    elements = _elements_of(tensor) if strided and dtype in _INTEGRAL else None
    return Tensor(shape, dtype_name(dtype), layout, elements)


def with_numbers(known: Tensor, tensor: torch.Tensor) -> Tensor:
    """Returns the value of a constant of the program with its elements; no data decide it, whether floats or
    bytes.
    """
    told = known.elements is not None or tensor.dtype in _INTEGRAL
    if told or tensor.layout is not _STRIDED:
        return known
    if tensor.dtype is torch.bool:
        same = number_of_true(tensor) in (0, tensor.numel()) and tensor.numel() > 0
        return structs.replace(known, elements=Affine(int(number_of_true(tensor) != 0))) if same else known
    with overrides_off():
        return structs.replace(known, elements=_numbers_of(tensor))


def contents_of(tensor: torch.Tensor) -> Contents:
    """Returns what a tensor that is not on the meta device holds. A large one may hold anything."""
    if isinstance(tensor, torch.nn.Parameter):
        return "data"
    if tensor.layout is not _STRIDED or is_fake(tensor) or tensor.numel() > _LARGE:
        return "given"
    if tensor.dtype not in _COMPARED:
        return "given"
    with overrides_off():
        return "finite" if bool(tensor.isfinite().all()) else "given"


def number_of_true(tensor: torch.Tensor) -> int | None:
    """Returns how many elements of a mask are true; None of another tensor, and of one without data."""
    if tensor.dtype is not torch.bool or tensor.layout is not _STRIDED or is_fake(tensor):
        return None
    with overrides_off():  # a mask on the meta device has no data
        return None if tensor.is_meta else int(tensor.sum())


def is_identity(tensor: torch.Tensor) -> bool:
    """Returns whether the tensor is an identity matrix, and has data."""
    square = tensor.dim() == 2 and tensor.shape[0] == tensor.shape[1] and 0 < tensor.numel() <= _MANY
    if not square or tensor.layout is not _STRIDED or tensor.is_meta or is_fake(tensor):
        return False
    with overrides_off():
        return torch.equal(tensor, torch.eye(tensor.shape[0], device=tensor.device).to(tensor.dtype))


def _numbers_of(tensor: torch.Tensor) -> Elements:
    if tensor.device.type == "meta" or is_fake(tensor) or tensor.numel() == 0:
        return None
    if tensor.is_complex() or tensor.numel() > _MANY:
        return UNTRACKED
    whole = tensor.long()
    told = tensor.dtype is not torch.uint64 or int(whole.min()) >= 0  # there are larger ones than an int64
    if told and bool((tensor == whole.to(tensor.dtype)).all()):  # as uint16 is not promoted with int64
        return _elements_of(whole)
    one = of_number(tensor.flatten()[0].item()) if bool((tensor == tensor.flatten()[0]).all()) else None
    return stored(one, tuple(tensor.shape), lambda dim, bound: isinstance(dim, int) and dim >= bound)


_MANY: Final = 1 << 16
_FEW: Final = 12
"""The elements of a constant that is not affine are listed up to this many."""


def _elements_of(tensor: torch.Tensor) -> Elements:
    """Returns the elements of a constant or a buffer of integers (position ids): affine in the index, each at
    its place where they are few, or a range.
    """
    if tensor.device.type == "meta" or is_fake(tensor) or tensor.numel() == 0:
        return None
    start = tensor[(0,) * tensor.dim()]
    affine, steps = start, []
    for axis in range(tensor.dim()):
        size = tensor.shape[axis]
        if size > 1:
            step = tensor[(0,) * axis + (1,) + (0,) * (tensor.dim() - axis - 1)] - start
            ramp = torch.arange(size, dtype=tensor.dtype) * step
            affine = affine + ramp.view(-1, *[1] * (tensor.dim() - axis - 1))
            steps.append((axis - tensor.dim(), int(step)))
    if torch.equal(affine.expand(tensor.shape), tensor):
        return Affine(int(start), tuple(s for s in steps if s[1]))
    if tensor.numel() > _FEW:
        return Span(int(tensor.min()), int(tensor.max()), attained=True)
    places, rank = product(*map(range, tensor.shape)), tensor.dim()
    fixed = (tuple((axis - rank, at) for axis, at in enumerate(place)) for place in places)
    numbers = map(int, tensor.flatten().tolist())
    return Pieces(tuple(Piece(number, fixed=at) for number, at in zip(numbers, fixed, strict=True)))
