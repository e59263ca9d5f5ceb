"""Calls for which torch wants numbers, by others that take sizes, while a model is traced.

torch would make numbers of the sizes in `linspace(0, 1, x.shape[0])` and `affine_grid(theta, x.shape)`. Each
function here has the name and the parameters of torch's, computes the same in the same way, and gives None
where torch's own is to be called.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from ....tracer.host.tensors import torch_assert_async
from ..scans.loop_rows import same_size

aten = torch.ops.aten


class SizedCalls(TorchFunctionMode):
    """Calls with sizes go another way than calls with numbers."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if func in _INSTEAD:
            call, names = _INSTEAD[func]
            named = {**dict(zip(names, args, strict=False)), **given}
            if named.keys() <= set(names) and len(args) <= len(names):
                made = call(**named)
                if made is not None:
                    return made
        return func(*args, **given)


def _is_size(value: Any) -> bool:
    return isinstance(value, torch.SymInt)


# ---- places in a row


def linspace(start: Any, end: Any, steps: Any, dtype: Any = None, device: Any = None) -> torch.Tensor | None:
    """[steps]: from both ends to the middle in equal steps."""
    dtype = dtype or torch.get_default_dtype()
    numbers = all(isinstance(value, int | float) for value in (start, end))
    if not _is_size(steps) or not numbers or dtype not in _FLOATS:
        return None
    places = torch.arange(steps, device=device)
    # Of one step no more is asked than where it begins.
    step = (end - start) / torch.sym_max(steps - 1, 1)  # type: ignore[no-untyped-call]
    ahead, behind = start + step * places.to(dtype), end - step * (steps - 1 - places).to(dtype)
    return torch.where(2 * places < steps, ahead, behind)


def fftfreq(n: Any, d: float = 1.0, dtype: Any = None, device: Any = None) -> torch.Tensor | None:
    """[n]: 0, 1, … and then …, -2, -1, in units of 1/(n*d)."""
    dtype = dtype or torch.get_default_dtype()
    if not _is_size(n) or dtype not in _FLOATS:
        return None
    places, unit = torch.arange(n, device=device), 1.0 / (n * d)
    places = torch.where(places < (n + 1) // 2, places, places - n)
    return torch.mul(places.to(dtype), unit)


def rfftfreq(n: Any, d: float = 1.0, dtype: Any = None, device: Any = None) -> torch.Tensor | None:
    """[n//2 + 1]: 0, 1, … in units of 1/(n*d)."""
    dtype = dtype or torch.get_default_dtype()
    if not _is_size(n) or dtype not in _FLOATS:
        return None
    return torch.mul(torch.arange(n // 2 + 1, device=device).to(dtype), 1.0 / (n * d))


def one_hot(input: torch.Tensor, num_classes: Any = -1) -> torch.Tensor | None:
    """[*shape] -> [*shape, num_classes], as in torch, for a fixed number of classes, too; without reading the
    data.
    """
    if not _is_size(num_classes):
        return None
    return (input.unsqueeze(-1) == torch.arange(num_classes, device=input.device)).to(torch.int64)


# ---- triangles of squares


def tril_indices(
    row: Any, col: Any, offset: int = 0, dtype: Any = torch.long, device: Any = None
) -> torch.Tensor | None:
    """[2, m*(m + 1)//2] where m rows of a square have 1, 2, …, m places on or below its diagonal, or one that
    is further down.
    """
    if not _is_square(row, col) or offset > 0:
        return None
    first, second = _triangle(row + offset, False, dtype, device)
    return torch.stack((first - offset, second))


def triu_indices(
    row: Any, col: Any, offset: int = 0, dtype: Any = torch.long, device: Any = None
) -> torch.Tensor | None:
    """[2, m*(m + 1)//2] where m rows of a square have m, …, 2, 1 places on or above its diagonal, or one that
    is further up.
    """
    if not _is_square(row, col) or offset < 0:
        return None
    first, second = _triangle(row - offset, True, dtype, device)
    return torch.stack((row - offset - 1 - first, row - 1 - second))


def _is_square(row: Any, col: Any) -> bool:
    return _is_size(row) and same_size(row, col)


def _triangle(rows: Any, backwards: bool, dtype: Any, device: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """The places (i, j), j <= i, of so many rows one after the other: the k-th is in row
    (sqrt(8*k + 1) - 1)//2, since i*(i + 1)/2 are before row i. float64 has these roots to the last place.
    """
    rows = torch.sym_max(rows, 0)  # type: ignore[no-untyped-call]
    count = rows * (rows + 1) // 2
    places = torch.arange(count, device=device)
    if backwards:
        places = count - 1 - places
    row = ((8 * places + 1).to(torch.float64).sqrt() - 1).div(2).floor().to(torch.int64)
    return row.to(dtype), (places - row * (row + 1) // 2).to(dtype)


# ---- grids, pooling, pieces


def affine_grid(theta: torch.Tensor, size: Any, align_corners: bool | None = None) -> torch.Tensor | None:
    """[n, 2, 3], (n, c, h, w) -> [n, h, w, 2]; [n, 3, 4], (n, c, d, h, w) -> [n, d, h, w, 3]."""
    if not any(map(_is_size, size[2:])) or theta.dtype not in _FLOATS:
        return None
    inner = tuple(size[2:])
    axes = []
    for axis, length in enumerate(inner):
        row = _around_0(length, bool(align_corners), theta)
        axes.append(row.view(-1, *[1] * (len(inner) - 1 - axis)).expand(inner))
    places = torch.stack((*reversed(axes), torch.ones_like(axes[0])), -1).flatten(0, -2)
    moved = torch.bmm(places.expand(size[0], *places.shape), theta.mT)
    return moved.view(size[0], *inner, len(inner))


def _around_0(size: Any, align_corners: bool, like: torch.Tensor) -> torch.Tensor:
    """[size]: from -1 to 1, or half a step inwards; 0 where it is one place."""
    made = linspace(-1, 1, size, like.dtype, like.device)
    row = torch.linspace(-1, 1, size, dtype=like.dtype, device=like.device) if made is None else made
    if align_corners:
        return torch.mul(row, torch.sym_min(size - 1, 1))  # type: ignore[no-untyped-call]
    return torch.div(torch.mul(row, size - 1), size)


def adaptive_avg_pool1d(input: torch.Tensor, output_size: Any) -> torch.Tensor | None:
    """[*n, c, t] -> [*n, c, output_size]: as of a picture with one row, which torch makes of it, too."""
    (size,) = output_size if isinstance(output_size, tuple | list) else (output_size,)
    if not _is_size(size):
        return None
    of_row: Any = (1, size)
    return F.adaptive_avg_pool2d(input.unsqueeze(-2), of_row).squeeze(-2)


def tensor_split(input: torch.Tensor, indices_or_sections: Any, dim: int = 0) -> Any:
    """Returns pieces, the first of them longer by 1: of n elements the i-th of k pieces has (n + k - 1 -
    i)//k.
    """
    count = indices_or_sections
    if type(count) is not int or count < 1 or not _is_size(input.shape[dim]):
        return None
    sizes = [(input.shape[dim] + count - 1 - place) // count for place in range(count)]
    return torch.split_with_sizes(input, sizes, dim)


# ---- sound


def istft(
    input: torch.Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
    window: torch.Tensor | None = None, center: bool = True, normalized: bool = False,
    onesided: bool | None = None, length: Any = None, return_complex: bool = False,
) -> torch.Tensor | None:
    """[*n, n_fft//2 + 1, t] -> [*n, length]: the windows one hop after the other, divided by what the windows
    add up to, cut off or filled with zeros.
    """
    if not _is_size(length) or return_complex or onesided is False:
        return None
    if onesided is None and bool(input.shape[-2] == n_fft):  # then they are not
        return None
    hop, width = hop_length or n_fft // 4, win_length or n_fft
    one = torch.ones(width, dtype=input.real.dtype, device=input.device) if window is None else window
    one = F.pad(one, ((n_fft - width) // 2, n_fft - width - (n_fft - width) // 2))
    frames = torch.fft.irfft(input.mT, n_fft, norm="ortho" if normalized else "backward") * one
    frames = frames if input.dim() > 2 else frames.unsqueeze(0)
    whole, start = n_fft + hop * (input.shape[-1] - 1), n_fft // 2 if center else 0
    taken = torch.sym_min(length, whole - start)  # type: ignore[no-untyped-call]

    def overlapping(windows: torch.Tensor) -> Any:
        sizes = [windows.shape[0], whole]
        return aten.unfold_backward(windows, sizes, 1, n_fft, hop).narrow(1, start, taken)

    weight = overlapping(one.pow(2).expand(1, input.shape[-1], n_fft))
    torch_assert_async(weight.abs().min() > 1e-11, "the windows add up to 0 somewhere")
    sound = F.pad(overlapping(frames) / weight, (0, length - taken))
    return sound if input.dim() > 2 else sound.squeeze(0)


_FLOATS: Final = frozenset({torch.float32, torch.float64})
_CALLS: Final[Mapping[Any, Callable[..., Any]]] = {
    torch.linspace: linspace,
    torch.fft.fftfreq: fftfreq,
    torch.fft.rfftfreq: rfftfreq,
    F.one_hot: one_hot,
    torch.tril_indices: tril_indices,
    torch.triu_indices: triu_indices,
    F.affine_grid: affine_grid,
    torch.affine_grid_generator: affine_grid,
    torch.adaptive_avg_pool1d: adaptive_avg_pool1d,
    torch.tensor_split: tensor_split,
    torch.Tensor.tensor_split: tensor_split,
    torch.istft: istft,
    torch.Tensor.istft: istft,
}
_INSTEAD: Final = {func: (call, [*inspect.signature(call).parameters]) for func, call in _CALLS.items()}
"""The functions called in place of torch's, with the names of their parameters."""
