"""Fourier transforms: of whole axes (`fft_*`), of frames of a signal (`stft`); complex numbers as pairs."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from ..engine.memory import is_contiguous
from ..engine.ruleset import RuleFunction
from ..ir.language import Context, Layout, Number, Shape, Tensor
from ..terms.dims import Dim, maximum, minimum
from ..terms.formula import all_of, any_of, eq, ge, le
from .common import (
    ABSENT,
    DEFAULTS,
    at_least_as_great,
    axis,
    category,
    contiguous_strides,
    counted,
    given_or_left_out,
    promote,
    rank_is,
    strides_of,
)
from .creation import at_least_0, real_steps
from .resize import constant_pad_nd, pad
from .strides import dense_in, is_less, preserved
from .window import positive, windows

COMPLEX = {"float16": "complex32", "float32": "complex64", "float64": "complex128"}
REAL = {name: dtype for dtype, name in COMPLEX.items()}


def to_complex(c: Context, dtype: str | None) -> str | None:
    """The complex dtype of a transform's result: integers count as floats."""
    if dtype is None or category(dtype) == 3:
        return dtype
    if category(dtype) < 2 and c.floats not in COMPLEX:
        c.approximate(f"whether transforms take integers as {c.floats} is not followed", "accept")
    return COMPLEX.get(dtype) or DEFAULTS[c.floats][3]


def to_real(c: Context, dtype: str | None) -> str | None:
    """The real dtype of an inverse transform's result."""
    found = to_complex(c, dtype)
    return None if found is None else REAL[found]


def needs_real(c: Context, input: Tensor) -> None:
    """Refuses a complex input."""
    if input.dtype is not None and category(input.dtype) == 3:
        error = TypeError if c.since(2, 14) else RuntimeError
        c.refuse(f"input must be real, not {input.dtype}", error)


# --- whole axes ------------------------------------------------------------------------------------------

# What happens to the last of the axes.
FULL, HALVED, DOUBLED = "full", "halved", "doubled"


def transformed(
    c: Context,
    input: Tensor,
    dims: tuple[int, ...],
    lengths: tuple[Dim | None, ...],
    kind: str,
    ordered: bool = True,
    raw: bool = False,
) -> Tensor:
    """`[*n] -> [*m]` along the axes, with m = n where no length m is given.

    The last axis of a real input is halved to m//2 + 1; inverted, it is doubled to 2*(n - 1) where no length
    is given. There must be at least one point on each transformed axis; before torch 2.15, the tensor may not
    be empty, unless there is no such axis. Since then, a `raw` operator does nothing where its result is
    empty.
    """
    if len(set(dims)) != len(dims):
        c.refuse(f"an axis is transformed twice: {dims}")
    if kind == HALVED:
        needs_real(c, input)
    if kind != FULL and not dims:
        c.refuse("at least one axis must be transformed")
    shape, resized = list(input.shape), input
    transforms: list[Dim] = []
    is_real = input.dtype is not None and category(input.dtype) < 3
    if kind == DOUBLED and is_real and all(c.at_least(n, 1) for n in input.shape):  # is made complex first
        resized = Tensor(input.shape, input.dtype, preserved(c, input.shape, input.layout))
    for i, (along, length) in enumerate(zip(dims, lengths, strict=True)):
        last = i == len(dims) - 1
        n = shape[along]
        points = length if length is not None else 2 * (n - 1) if kind == DOUBLED and last else n
        transforms.append(points)
        half = points // 2 + 1
        shape[along] = half if kind == HALVED and last else points
        resized = _resized(c, resized, along, half if kind == DOUBLED and last else points)
    nothing = c.since(2, 15) and any_of(eq(n, 0) for n in shape)
    for points in transforms:
        c.require(any_of((raw and nothing, ge(points, 1))), f"a transform of {points} points ({input})")
    for i, n in enumerate(input.shape):
        if dims and i not in dims:
            c.require(any_of((nothing, ge(n, 1))), f"MKL transforms no empty tensor ({input})")
    dtype = to_real(c, input.dtype) if kind == DOUBLED else to_complex(c, input.dtype)
    return Tensor(tuple(shape), dtype, _layout(c, resized, tuple(shape), dims, ordered))


def _resized(c: Context, input: Tensor, along: int, points: Dim) -> Tensor:
    """Returns the operand of the transform, as far as strides go: the input cut to so many points along an
    axis, or padded with zeros. For a contiguous input both keep the order of its axes.
    """
    if is_contiguous(input) or c.at_least(input.shape[along] - points, 0):
        return input
    if c.at_least(points - input.shape[along], 1):
        sides = (*(0, 0) * (input.rank - 1 - along), 0, points - input.shape[along])
        return constant_pad_nd(c, input, sides)
    return Tensor(input.shape, input.dtype, Layout.UNKNOWN)


def _layout(c: Context, input: Tensor, shape: Shape, dims: tuple[int, ...], ordered: bool) -> Layout | Shape:
    """Trailing axes of a contiguous input, in order, give a contiguous result. `_exec_fft` puts a single axis
    that is transformed innermost and sorts the others by their strides; of several, the library decides.
    """
    trailing = dims == tuple(range(input.rank - len(dims), input.rank))
    settled = input.layout is Layout.CONTIGUOUS or (len(dims) > 1 and is_contiguous(input))
    if settled and trailing and ordered:
        return Layout.CONTIGUOUS
    whole = tuple(1 if n == 0 else n for n in input.shape)  # torch takes strides of sizes of 0 as of 1
    strides = strides_of(structs.replace(input, shape=whole))
    if len(dims) != 1 or strides is None:
        return Layout.UNKNOWN
    (along,) = dims
    order = _falling(c, strides, along)
    return Layout.UNKNOWN if order is None else dense_in(shape, (*order, along))


def _falling(c: Context, strides: Shape, along: int) -> list[int] | None:
    """Returns all axes but one in the order of falling strides; None where it depends on sizes.

    `std::partition` first swaps that one with the last. Axes of equal strides keep their order.
    """
    axes = [*range(len(strides))]
    axes[along], axes[-1] = axes[-1], along
    order: list[int] = []
    for one in axes[:-1]:
        at = len(order)
        while at and is_less(c, strides[order[at - 1]], strides[one]):
            at -= 1
        if at and at_least_as_great(c, strides[order[at - 1]], strides[one]) is not True:
            return None
        order.insert(at, one)
    return order


def _axes(c: Context, dims: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """The axes to transform, which a scalar does not have."""
    if dims and not rank:
        c.refuse("input has no dimension to transform", IndexError)
    return tuple(axis(c, d, rank) for d in dims)


def check_norm(c: Context, norm: str | None) -> None:
    """Refuses a normalisation that torch does not know."""
    if norm not in (None, "forward", "backward", "ortho"):
        c.refuse(f"norm {norm!r} is not one of forward, backward, ortho")


def along_one(kind: str) -> RuleFunction:
    """fft, ifft, rfft, irfft, hfft, ihfft."""

    def rule(
        c: Context, input: Tensor, n: Dim | None = None, dim: int = -1, norm: str | None = None
    ) -> Tensor:
        """`[*a, n, *b] -> [*a, m, *b]`; see `transformed`."""
        check_norm(c, norm)
        return transformed(c, input, _axes(c, (dim,), input.rank), (n,), kind)

    return rule


def along_many(kind: str, default: tuple[int, ...] | None, ordered: bool = True) -> RuleFunction:
    """fft2, fftn and their kin."""

    def rule(
        c: Context, input: Tensor, s: Any = None, dim: Any = default, norm: str | None = None
    ) -> Tensor:
        """`[*n] -> [*m]`; see `transformed`. Without dim the axes are the last len(s), or all without s."""
        check_norm(c, norm)
        lengths = s if isinstance(s, tuple) or s is None else (s,)
        if dim is not None:
            dims = _axes(c, dim if isinstance(dim, tuple) else (dim,), input.rank)
        elif lengths is not None and len(lengths) > input.rank:
            c.refuse(f"{len(lengths)} lengths are given for {input.rank} dimensions")
        else:
            dims = tuple(range(input.rank - (input.rank if lengths is None else len(lengths)), input.rank))
        if lengths is None:
            lengths = (None,) * len(dims)
        if len(lengths) != len(dims):
            c.refuse(f"{counted(len(lengths), 'length')} for {counted(len(dims), 'dim')}")
        given = (n if n is None else given_or_left_out(c, n, f"the length {n}") for n in lengths)
        kept = tuple(None if length == -1 else length for length in given)
        return transformed(c, input, dims, kept, kind, ordered)

    return rule


def _fft_c2c(c: Context, input: Tensor, dim: tuple[int, ...], normalization: int, forward: bool) -> Tensor:
    """`[*n] -> [*n]`"""
    return transformed(c, input, _axes(c, dim, input.rank), (None,) * len(dim), FULL, raw=True)


def _fft_r2c(c: Context, input: Tensor, dim: tuple[int, ...], normalization: int, onesided: bool) -> Tensor:
    """`[*n] -> [*n]`, where the last axis transformed is halved if onesided"""
    needs_real(c, input)
    kind = HALVED if onesided else FULL
    return transformed(c, input, _axes(c, dim, input.rank), (None,) * len(dim), kind, raw=True)


def _fft_c2r(
    c: Context, input: Tensor, dim: tuple[int, ...], normalization: int, last_dim_size: Dim
) -> Tensor:
    """`[*n] -> [*n]`, where the last axis transformed gets the size given"""
    lengths = (*(None,) * (len(dim) - 1), last_dim_size)
    at = _axes(c, dim, input.rank)
    sizes = [last_dim_size if i == at[-1] else n for i, n in enumerate(input.shape)] if at else input.shape
    nothing = c.since(2, 15) and any_of(eq(n, 0) for n in sizes)
    for size in input.shape:
        c.require(any_of((nothing, ge(size, 1))), f"input must not be empty ({input})")
    have = input.shape[at[-1]] if at else last_dim_size
    c.require(
        any_of((nothing, eq(have, last_dim_size), eq(have, last_dim_size // 2 + 1))),
        f"a transform to {last_dim_size} takes as many frequencies, or half of them and one, not {have}",
    )
    return transformed(c, input, at, lengths, DOUBLED, raw=True)


def fftshift(c: Context, input: Tensor, dim: Any = None) -> Tensor:
    """`[*n] -> [*n]`"""
    along = dim if isinstance(dim, tuple) else range(input.rank) if dim is None else (dim,)
    if not _axes(c, tuple(along), input.rank):
        c.refuse("input has no dimension to shift")
    return Tensor(input.shape, input.dtype)


def fftfreq(c: Context, n: Any, d: float = 1.0, dtype: str | None = None) -> Tensor:
    """`n -> [n]`, of floats"""
    size = at_least_0(c, n, "n")
    real_steps(c, "fftfreq", size, dtype, -1)
    return Tensor((size,), dtype or c.floats)


def rfftfreq(c: Context, n: Any, d: float = 1.0, dtype: str | None = None) -> Tensor:
    """`n -> [n/2 + 1]`, where n/2 is rounded towards 0: from -3 on that is a size."""
    real_steps(c, "rfftfreq", 0, dtype, -1)
    if isinstance(n, Number | Tensor) or c.at_least(n, 0):
        return Tensor((at_least_0(c, n, "n") // 2 + 1,), dtype or c.floats)
    c.require(ge(n, -3), f"n must be at least -3, not {n}")
    half = maximum(n // 2, 0) + minimum((n + 1) // 2, 0)
    return Tensor((half + 1,), dtype or c.floats)


# --- frames of a signal ----------------------------------------------------------------------------------


def _frames(
    c: Context, n_fft: Dim, hop_length: Dim | None, win_length: Dim | None, window: Tensor | None
) -> tuple[Dim, Dim]:
    """`(hop, win)`: hop is n_fft//4 and win is n_fft if they are not given; a window has win elements."""
    hop = n_fft // 4 if hop_length is None else hop_length
    win = n_fft if win_length is None else win_length
    positive(c, (hop,), "hop_length")
    c.require(
        all_of((ge(win, 1), le(win, n_fft))), f"win_length {win} must lie between 1 and n_fft = {n_fft}"
    )
    if window is not None:
        rank_is(c, window, "window", 1)
        c.require(eq(window.shape[0], win), f"window has {window.shape[0]} elements for win_length = {win}")
    return hop, win


def stft(
    c: Context,
    input: Tensor,
    n_fft: Dim,
    hop_length: Dim | None = None,
    win_length: Dim | None = None,
    window: Tensor | None = None,
    center: Any = ABSENT,
    pad_mode: Any = ABSENT,
    normalized: Any = False,
    onesided: Any = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """`[*b, l] -> [*b, f, windows(l + p, n_fft, hop)]`, f = n_fft//2 + 1 for real, n_fft for complex values

    p is n_fft//2 on both sides of a signal that is centred, else 0. ATen's shorter form knows neither center
    nor pad_mode, so that the arguments in their positions are normalized, onesided and return_complex.
    """
    if not isinstance(pad_mode, str) and (pad_mode is not ABSENT or center is ABSENT):
        if return_complex is None:
            return_complex = normalized
        if pad_mode is not ABSENT:
            onesided = pad_mode
        center = False
    rank_is(c, input, "input", 1, 2)
    if input.dtype is not None and category(input.dtype) < 2:
        error = NotImplementedError if c.since(2, 14) else RuntimeError
        c.refuse(f"input must be floating or complex, not {input.dtype}", error)
    values = promote([input, *([] if window is None else [window])])
    is_complex = values is not None and category(values) == 3
    if onesided and is_complex:
        c.refuse("complex values have no onesided transform")
    if return_complex is None and not is_complex:
        c.refuse("return_complex must be given for real input")
    c.require(ge(n_fft, 1), f"n_fft must be at least 1, not {n_fft}")
    hop, win = _frames(c, n_fft, hop_length, win_length, window)
    *batch, length = input.shape
    if center:
        extended = Tensor((*(1,) * (3 - input.rank), *input.shape), input.dtype)
        length = pad(c, extended, (n_fft // 2, n_fft // 2), pad_mode).shape[-1]
    if align_to_window:
        c.approximate("what align_to_window asks of sizes is not modelled in full")
    frame = win if align_to_window else n_fft
    c.require(ge(length, frame), f"the signal of {length} is shorter than n_fft = {frame}")
    for n in batch:
        c.require(c.since(2, 15) or ge(n, 1), f"the batch of {input} must not be empty")
    bins = n_fft if is_complex or onesided is False else n_fft // 2 + 1
    count = windows(length, frame, hop)
    strides = _strides_of_frames(c, input, (*batch, count, bins), hop, copied=center and c.at_least(n_fft, 2))
    dtype = to_complex(c, values)
    shape = (*batch, bins, count)
    if return_complex is False:
        twice = Layout.UNKNOWN if strides is None else (*(2 * s for s in strides), 1)
        return Tensor((*shape, 2), to_real(c, values), twice)
    return Tensor(shape, dtype, Layout.UNKNOWN if strides is None else strides)


def _strides_of_frames(c: Context, input: Tensor, shape: Shape, hop: Dim, copied: bool) -> Shape | None:
    """Returns the strides of `[*b, bins, frames]`, of which the bins lie innermost; of the frames and the
    batch that with the greater stride in the signal lies outermost. A signal that is padded is copied; None
    where the strides are not known.
    """
    order: list[int] | None = [*range(len(shape) - 1)]
    if input.rank == 2 and not (copied or is_contiguous(input)):
        strides = strides_of(input)
        order = None if strides is None else _falling(c, (strides[0], hop * strides[1], strides[1]), 2)
    if order is None:
        return None
    *outer, frames, bins = dense_in(shape, (*order, len(shape) - 1))
    return (*outer, bins, frames)


def istft(
    c: Context,
    input: Tensor,
    n_fft: Dim,
    hop_length: Dim | None = None,
    win_length: Dim | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: Dim | None = None,
    return_complex: bool = False,
) -> Tensor:
    """`[*b, f, t] -> [*b, l]`, l being the length given, or n_fft + hop*(t - 1), less 2*(n_fft//2) if centred

    Windows have to overlap everywhere: those of ones, which lie in the middle of the n_fft positions of a
    frame, cover from (n_fft - win)//2 to there plus win + hop*(t - 1).
    """
    rank_is(c, input, "input", 2, 3)
    if input.dtype is not None and category(input.dtype) != 3:
        c.refuse(f"input must be complex, not {input.dtype}", TypeError if c.since(2, 14) else RuntimeError)
    if return_complex:
        if onesided:
            c.refuse("a onesided transform has no complex signal")
        if onesided is None:
            c.require(eq(input.shape[-2], n_fft), "a onesided transform has no complex signal")
    # torch cuts the signal at the index -(n_fft//2), and -0 is no place at its end.
    least = 2 if center and length is None else 1
    c.require(ge(n_fft, least), f"n_fft must be at least {least}, not {n_fft}")
    hop, win = _frames(c, n_fft, hop_length, win_length, window)
    c.require(le(hop, win), f"hop_length {hop} must be at most win_length {win}")
    *batch, bins, count = input.shape
    full, half = eq(bins, n_fft), eq(bins, n_fft // 2 + 1)
    c.require(
        any_of((full, half)) if onesided is None else half if onesided else full,
        f"{bins} frequencies are not those of n_fft = {n_fft}",
    )
    for n in (*batch, count):
        c.require(ge(n, 1), f"input must not be empty ({input})")
    whole = n_fft + hop * (count - 1)
    start: Dim = n_fft // 2 if center else 0
    end = start + length if length is not None else whole - start
    last = end if length is None else minimum(end, whole)
    c.require(ge(last, start + 1), f"no signal is left of {input}")
    margin = (n_fft - win) // 2
    c.require(
        all_of((ge(start, margin), le(last, margin + win + hop * (count - 1)))),
        f"windows of {win} do not cover the signal from {start} to {last}",
    )
    if window is not None and (not center or le(2 * hop, win) is not True):
        c.approximate("whether the windows vanish together is a matter of their values", "accept")
    dtype = input.dtype if return_complex else to_real(c, input.dtype)
    return Tensor((*batch, end - start), dtype)


# --- complex numbers as pairs ----------------------------------------------------------------------------


def view_as_real(c: Context, input: Tensor) -> Tensor:
    """`[*n] -> [*n, 2]`, a view"""
    if input.dtype is not None and category(input.dtype) != 3:
        c.refuse(f"input must be complex, not {input.dtype}", TypeError if c.since(2, 15) else RuntimeError)
    strides = strides_of(input)
    layout = Layout.UNKNOWN if strides is None else (*(2 * s for s in strides), 1)
    shape: Shape = (*input.shape, 2)
    contiguous = is_contiguous(input)
    return Tensor(shape, to_real(c, input.dtype), Layout.CONTIGUOUS if contiguous else layout)


def view_as_complex(c: Context, input: Tensor) -> Tensor:
    """`[*n, 2] -> [*n]`, a view; pairs lie side by side, and strides of axes that need one are even"""
    if input.dtype is not None and category(input.dtype) != 2:
        error: type[Exception] = TypeError if category(input.dtype) == 3 else NotImplementedError
        error = error if c.since(2, 15) else RuntimeError
        c.refuse(f"input must be floating, not {input.dtype}", error)
    if not input.shape:
        c.refuse("input must have a last dimension of 2")
    c.require(eq(input.shape[-1], 2), f"the last dimension must be 2, not {input.shape[-1]}")
    shape, dtype = input.shape[:-1], to_complex(c, input.dtype)
    strides = strides_of(input)
    if strides is None:
        c.approximate("the strides of a tensor that is viewed as complex are not known", "accept")
        return Tensor(shape, dtype, Layout.UNKNOWN)
    plain = input.layout is Layout.CONTIGUOUS
    nothing = False if plain else any_of(eq(n, 0) for n in shape)
    c.approximate("which strides a view of no elements has is not followed", "accept", nothing)
    last = any_of((eq(strides[-1], 1), nothing))
    c.require(last, f"the stride of the last dimension must be 1, not {strides[-1]}")
    for n, step in zip(shape, strides, strict=False):
        c.require(any_of((eq(step % 2, 0), eq(n, 1), nothing)), f"a stride of {step} is not even")
    contiguous = input.layout is Layout.CONTIGUOUS or strides == contiguous_strides(input.shape)
    return Tensor(shape, dtype, Layout.CONTIGUOUS if contiguous else tuple(s // 2 for s in strides[:-1]))


def view_as_real_copy(c: Context, input: Tensor) -> Tensor:
    """`[*n] -> [*n, 2]`"""
    result = view_as_real(c, input)
    return Tensor(result.shape, result.dtype)


def view_as_complex_copy(c: Context, input: Tensor) -> Tensor:
    """`[*n, 2] -> [*n]`; the strides must be those of a view"""
    result = view_as_complex(c, input)
    return Tensor(result.shape, result.dtype)


LAST_TWO = (-2, -1)

RULES: dict[str, RuleFunction] = {
    **dict.fromkeys(("fft_fft", "fft_ifft"), along_one(FULL)),
    **dict.fromkeys(("fft_rfft", "fft_ihfft"), along_one(HALVED)),
    **dict.fromkeys(("fft_irfft", "fft_hfft"), along_one(DOUBLED)),
    **dict.fromkeys(("fft_fft2", "fft_ifft2"), along_many(FULL, LAST_TWO)),
    **dict.fromkeys(("fft_fftn", "fft_ifftn"), along_many(FULL, None)),
    "fft_rfft2": along_many(HALVED, LAST_TWO),
    "fft_rfftn": along_many(HALVED, None),
    "fft_ihfft2": along_many(HALVED, LAST_TWO, ordered=False),
    "fft_ihfftn": along_many(HALVED, None, ordered=False),
    **dict.fromkeys(("fft_irfft2", "fft_hfft2"), along_many(DOUBLED, LAST_TWO)),
    **dict.fromkeys(("fft_irfftn", "fft_hfftn"), along_many(DOUBLED, None)),
    "_fft_c2c": _fft_c2c,
    "_fft_r2c": _fft_r2c,
    "_fft_c2r": _fft_c2r,
    **dict.fromkeys(("fft_fftshift", "fft_ifftshift"), fftshift),
    "fft_fftfreq": fftfreq,
    "fft_rfftfreq": rfftfreq,
    "stft": stft,
    "istft": istft,
    "view_as_real": view_as_real,
    "view_as_complex": view_as_complex,
    "view_as_real_copy": view_as_real_copy,
    "view_as_complex_copy": view_as_complex_copy,
}
