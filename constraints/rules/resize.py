"""Operators that make the spatial axes larger or smaller: interpolation, padding, shuffling, sampling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..engine.ruleset import Rule, RuleFunction
from ..ir.language import Context, Layout, Shape, Tensor
from ..terms.dims import Dim, maximum
from ..terms.formula import Formula, all_of, any_of, divides, eq, ge, gt
from .common import counted, like_input, rank_is, strides_of
from .rounding import scaled
from .strides import laid_out, preserved
from .window import adaptive_pool, positive

# --- interpolation ---------------------------------------------------------------------------------------

# mode -> the ranks of its inputs
MODES = {
    "nearest": (3, 4, 5),
    "nearest-exact": (3, 4, 5),
    "area": (3, 4, 5),
    "linear": (3,),
    "bilinear": (4,),
    "bicubic": (4,),
    "lanczos": (4,),
    "trilinear": (5,),
}
ANTIALIASED = ("bilinear", "bicubic", "lanczos")


def _resized(c: Context, input: Tensor, wanted: Shape) -> Tensor:
    """`[b, c, *n], m -> [b, c, *m]`, where only the batch may be empty."""
    for n in input.shape[1:]:
        c.require(ge(n, 1), f"only the batch may be empty in {input}")
    for m in wanted:
        c.require(ge(m, 1), f"an output size must be at least 1, not {m} ({input})")
    shape = (*input.shape[:2], *wanted)
    return Tensor(shape, input.dtype, like_input(c, input, shape))


def interpolate(
    c: Context, input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool | None = None, recompute_scale_factor: bool | None = None, antialias: bool = False,
) -> Tensor:
    """`[b, c, *n], m -> [b, c, *m]`, where a scale factor f gives m = floor(n * f)"""
    if mode not in MODES:
        c.refuse(f"mode {mode!r} is not one of {', '.join(MODES)}")
    rank_is(c, input, f"input for mode {mode!r}", *MODES[mode])
    if mode in ("nearest", "nearest-exact", "area") and align_corners is not None:
        c.refuse(f"align_corners is not for mode {mode!r}")
    if antialias and mode not in ANTIALIASED:
        c.refuse(f"antialias is not for mode {mode!r}")
    if mode == "lanczos" and (align_corners or not antialias):
        c.refuse("mode 'lanczos' needs antialias, and no align_corners")
    if (size is None) == (scale_factor is None):
        c.refuse("one of size and scale_factor must be given")
    if size is not None and recompute_scale_factor:
        c.refuse("recompute_scale_factor is not for a size that is given")
    wanted = _wanted(c, input, size, scale_factor)
    if mode == "area":
        result = adaptive_pool(input.rank - 2, mean=True)(c, input, wanted)
        assert isinstance(result, Tensor)
        return result
    return _resized(c, input, wanted)


def _wanted(c: Context, input: Tensor, size: Any, scale_factor: Any) -> Shape:
    """Returns the output sizes: those given, or floor(n * f). One number applies to all axes."""
    spatial = input.shape[2:]
    given = scale_factor if size is None else size
    values = given if isinstance(given, tuple) else (given,) * len(spatial)
    if len(values) != len(spatial):
        axes = counted(len(spatial), "spatial dimension")
        c.refuse(f"{counted(len(values), 'size')} for {axes} of {input}")
    if size is not None:
        return values
    return tuple(scaled(c, n, f) for n, f in zip(spatial, values, strict=True))


def upsample(spatial: int, corners: bool) -> Rule:
    """Returns the rule of ATen's upsampling in its two forms, `(size, scale, …)` and `(size or None, scales
    or None)`.

    In the first form the scales do not matter for shapes; in the second (`vec`) they replace a missing size.
    """

    def rule(
        c: Context, input: Tensor, output_size: Any, scale_factors: Any = None, **ignored: Any
    ) -> Tensor:
        """`[b, c, *n], m -> [b, c, *m]`"""
        rank_is(c, input, "input", spatial + 2)
        if output_size is None and not isinstance(scale_factors, tuple):
            c.refuse("one of output_size and scale_factors must be given")
        return _resized(c, input, _wanted(c, input, output_size, scale_factors))

    ignored = "scales_h scales_w scales_d scales".split()
    names = ("input", "output_size", *["align_corners"] * corners, "scale_factors", *ignored)
    return Rule(rule, names, "", frozenset(names), frozenset(names[:2]))


# --- padding ---------------------------------------------------------------------------------------------


def _sides(c: Context, pad: Shape, rank: int) -> list[tuple[int, Dim, Dim]]:
    """Returns triples `(axis, left, right)`; pad begins with the last axis."""
    if len(pad) % 2 or len(pad) > 2 * rank:
        c.refuse(f"pad must have two numbers for each of at most {rank} dimensions, not {len(pad)}")
    return [(rank - 1 - i // 2, pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]


def constant_pad_nd(c: Context, input: Tensor, pad: Shape, value: Any = 0) -> Tensor:
    """`[*a, *n] -> [*a, *(left + n + right)]`; negative padding crops at most all elements, on each side."""
    shape, sides = list(input.shape), _sides(c, pad, input.rank)
    for axis, left, right in sides:
        n = shape[axis]
        shape[axis] = n + left + right
        c.require(
            all_of((ge(n + left, 0), ge(n + right, 0), ge(shape[axis], 0))),
            f"padding of {left} and {right} crops more than the {n} that are there",
        )
    last = max((axis for axis, left, right in sides if (left, right) != (0, 0)), default=0)
    return Tensor(tuple(shape), input.dtype, _padded(c, input, tuple(shape), pad, last))


def _padded(c: Context, input: Tensor, shape: Shape, pad: Shape, last: int) -> Layout | Shape:
    """Returns the layout of a tensor that is padded by constants along axes up to the `last` one.

    What only crops is a copy of a part, which keeps the strides of the whole where it has no gaps: where it
    has no elements, or one element along each axis before the last one.
    """
    if any(c.at_least(p, 1) for p in pad):
        return Layout.CONTIGUOUS if input.rank not in (4, 5) else like_input(c, input, shape)
    strides, lone = strides_of(input), all(n == 1 for n in shape[:last])
    if strides is not None and all(c.at_least(-1 * p, 0) for p in pad):
        if lone and input.layout is Layout.CONTIGUOUS:
            return laid_out(shape, strides)
        if isinstance(input.layout, tuple):
            return preserved(c, shape, strides)
    layout = like_input(c, input, shape)
    gaps = any(c.at_least(n, 2) for n in shape[:last]) and all(c.at_least(n, 1) for n in shape)
    return Layout.ROW_MAJOR if layout is Layout.CONTIGUOUS and last and not gaps else layout


Fits = Callable[[Dim, Dim], Formula]
"""Returns the condition that a padding on one side, the first argument, fits a dimension of the given size.
"""

# mode -> what it asks of a padding p and a size n
FITS: dict[str, Fits] = {
    "reflect": lambda p, n: gt(n, p),
    "replicate": lambda p, n: True,
    "circular": lambda p, n: ge(n, p),
}


def _pad_spatially(c: Context, input: Tensor, pad: Shape, mode: str) -> Tensor:
    """`[*b, c, *n] -> [*b, c, *(left + n + right)]`; a reflection takes less than n, a circle n at most.

    Only the batch may be empty. Negative padding may crop no axis to nothing: not all of them before torch
    2.14, and 2.15 for a reflection. A circle may be empty anywhere.
    """
    spatial = len(pad) // 2
    if len(pad) not in (2, 4, 6):
        c.refuse(f"{mode} padding needs 2, 4 or 6 numbers, not {len(pad)}")
    rank_is(c, input, f"input of {mode} padding with {len(pad)} numbers", spatial + 1, spatial + 2)
    shape = list(input.shape)
    for axis, left, right in _sides(c, pad, input.rank):
        n = shape[axis]
        shape[axis] = n + left + right
        for side in (left, right):
            c.require(FITS[mode](side, n), f"{mode} padding of {side} is too much for a dimension of {n}")
        c.require(ge(shape[axis], 0), f"padding of {left} and {right} crops more than the {n} that are there")
        if mode == "circular":
            for side, other in ((left, right), (right, left)):
                if not (c.at_least(-side, 0) or c.at_least(other, 0) or c.at_least(n + other - side, 0)):
                    c.approximate("a circle that is cropped may be refused for overlapping memory", "accept")
    batched = input.rank == spatial + 2
    if mode != "circular":
        kept = all_of if c.since(2, 15 if mode == "reflect" else 14) else any_of
        c.require(kept(ge(n, 1) for n in shape[-spatial:]), f"nothing is left of {input}")
        for n in input.shape[batched:]:
            c.require(ge(n, 1), f"only the batch may be empty in {input}")
    plain = mode == "circular" or input.rank < 4
    layout = Layout.CONTIGUOUS if plain else like_input(c, input, tuple(shape), batched)
    return Tensor(tuple(shape), input.dtype, layout)


def pad(
    c: Context, input: Tensor, pad: Shape, mode: str = "constant", value: float | None = None
) -> Tensor:
    """`[*a, *n] -> [*a, *(left + n + right)]`"""
    if mode == "constant":
        return constant_pad_nd(c, input, pad)
    if mode not in FITS:
        c.refuse(f"padding mode {mode!r} is not one of constant, {', '.join(FITS)}")
    if value not in (None, 0):
        c.refuse(f"padding mode {mode!r} takes no value")
    fits = len(pad) in (2, 4, 6) and input.rank - len(pad) // 2 in (1, 2)
    if not fits and len(pad) % 2 == 0 and len(pad) <= 2 * input.rank:
        told = f"{mode} padding with {len(pad)} numbers is not for a tensor of rank {input.rank}"
        c.refuse(told, NotImplementedError)
    return _pad_spatially(c, input, pad, mode)


def pad_enum(c: Context, input: Tensor, sides: Shape, mode: int, value: float | None = None) -> Tensor:
    """As `pad`, whose modes have numbers here."""
    if not 0 <= mode < 4:
        c.refuse(f"padding mode {mode} is not one of 0 to 3")
    return pad(c, input, sides, (*FITS, "constant")[mode], value)


def _pad_circular(c: Context, input: Tensor, pad: Shape) -> Tensor:
    """`[*b, c, *n] -> [*b, c, *(left + n + right)]`"""
    return _pad_spatially(c, input, pad, "circular")


def pad_mode(mode: str, spatial: int) -> RuleFunction:
    """Returns the rule of reflection_pad1d, …, replication_pad3d."""

    def rule(c: Context, input: Tensor, padding: Any) -> Tensor:
        """`[*b, c, *n] -> [*b, c, *(left + n + right)]`"""
        sides = padding if isinstance(padding, tuple) else (padding,) * (2 * spatial)
        if len(sides) != 2 * spatial:
            c.refuse(f"padding must have {2 * spatial} numbers, not {len(sides)}")
        return _pad_spatially(c, input, sides, mode)

    return rule


def pad_sequence(
    c: Context, sequences: tuple[Tensor, ...], batch_first: bool = False, padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """`[l, *a], [m, *a], … -> [max(l, m, …), the number of sequences, *a]`, or the batch first

    Each sequence is copied into its place, so that it may be broadcast to the sizes *a of the first one.
    """
    if not sequences:
        c.refuse("pad_sequence of nothing")
    if padding_side not in ("left", "right"):
        c.refuse(f"padding_side must be left or right, not {padding_side!r}")
    for sequence in sequences:
        if not sequence.shape:
            c.refuse("a sequence has no dimensions")
        place = (sequence.shape[0], *sequences[0].shape[1:])
        if sequence.rank > len(place):
            c.refuse(f"{sequence} has more dimensions than the first sequence, {sequences[0]}")
        for n, m in zip(reversed(sequence.shape), reversed(place), strict=False):
            c.require(any_of((eq(n, m), eq(n, 1))), f"{sequence} does not fit beside {sequences[0]}")
    length = maximum(*(sequence.shape[0] for sequence in sequences))
    batch = (len(sequences), length) if batch_first else (length, len(sequences))
    return Tensor((*batch, *sequences[0].shape[1:]), sequences[0].dtype)


# --- shuffling -------------------------------------------------------------------------------------------


def pixel_shuffle(c: Context, input: Tensor, upscale_factor: Dim) -> Tensor:
    """`[*b, c*r*r, h, w] -> [*b, c, h*r, w*r]`"""
    if input.rank < 3:
        c.refuse(f"input must have at least 3 dimensions, not {input.rank}")
    positive(c, (upscale_factor,), "upscale_factor")
    *batch, channels, height, width = input.shape
    square = upscale_factor * upscale_factor
    c.require(divides(square, channels), f"the {channels} channels must be divisible by {square}")
    shape = (*batch, channels // square, height * upscale_factor, width * upscale_factor)
    return Tensor(shape, input.dtype, like_input(c, input, shape, input.rank == 4))


def pixel_unshuffle(c: Context, input: Tensor, downscale_factor: Dim) -> Tensor:
    """`[*b, c, h*r, w*r] -> [*b, c*r*r, h, w]`; torch returns an empty input as it is."""
    if input.rank < 3:
        c.refuse(f"input must have at least 3 dimensions, not {input.rank}")
    positive(c, (downscale_factor,), "downscale_factor")
    *batch, channels, height, width = input.shape
    for n in (height, width):
        c.require(divides(downscale_factor, n), f"the size {n} must be divisible by {downscale_factor}")
    if c.choose(any_of(eq(n, 0) for n in input.shape if not c.at_least(n, 1)), "the number of channels"):
        return input
    square = downscale_factor * downscale_factor
    shape = (*batch, channels * square, height // downscale_factor, width // downscale_factor)
    return Tensor(shape, input.dtype, like_input(c, input, shape, input.rank == 4))


def channel_shuffle(c: Context, input: Tensor, groups: Dim) -> Tensor:
    """`[b, g*c, *n] -> [b, g*c, *n]`"""
    if input.rank < 3:
        c.refuse(f"input must have at least 3 dimensions, not {input.rank}")
    positive(c, (groups,), "groups")
    c.require(divides(groups, input.shape[1]), f"the {input.shape[1]} channels must be divisible by {groups}")
    return Tensor(input.shape, input.dtype, like_input(c, input, input.shape))


# --- sampling --------------------------------------------------------------------------------------------


def _sampled(c: Context, input: Tensor, grid: Tensor) -> Tensor:
    """`[b, c, *n], [b, *m, len(n)] -> [b, c, *m]`, with non-empty n"""
    rank_is(c, input, "input", 4, 5)
    rank_is(c, grid, "grid", input.rank)
    c.require(eq(input.shape[0], grid.shape[0]), f"input {input} and grid {grid} must have the same batch")
    c.require(eq(grid.shape[-1], input.rank - 2), f"grid {grid} must have {input.rank - 2} coordinates")
    for n in input.shape[2:]:
        c.require(ge(n, 1), f"the spatial dimensions of {input} must not be empty")
    return Tensor((*input.shape[:2], *grid.shape[1:-1]), input.dtype)


def grid_sample(
    c: Context, input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """`[b, c, *n], [b, *m, len(n)] -> [b, c, *m]`; before torch 2.15 bicubic for two dimensions only"""
    if mode not in ("bilinear", "nearest", "bicubic"):
        c.refuse(f"mode {mode!r} is not one of bilinear, nearest, bicubic")
    if padding_mode not in ("zeros", "border", "reflection"):
        c.refuse(f"padding mode {padding_mode!r} is not one of zeros, border, reflection")
    if mode == "bicubic" and not c.since(2, 15):
        rank_is(c, input, "input of mode 'bicubic'", 4)
    return _sampled(c, input, grid)


def grid_sampler(
    c: Context, input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Tensor:
    """`[b, c, *n], [b, *m, len(n)] -> [b, c, *m]`; mode 2 is bicubic, before torch 2.15 for two axes."""
    if interpolation_mode == 2 and not c.since(2, 15):
        rank_is(c, input, "input of bicubic interpolation", 4)
    return _sampled(c, input, grid)


def affine_grid_generator(c: Context, theta: Tensor, size: Shape, align_corners: bool) -> Tensor:
    """`[b, d, d + 1], (b, c, *n) -> [b, *n, d]` for d = len(n), which is 2 or 3"""
    if len(size) not in (4, 5):
        c.refuse(f"size must have 4 or 5 numbers, not {len(size)}")
    axes = len(size) - 2
    rank_is(c, theta, "theta", 3)
    wanted = (size[0], axes, axes + 1)
    c.require(
        all_of(eq(n, m) for n, m in zip(theta.shape, wanted, strict=True)),
        f"theta {theta} must have the shape [{', '.join(map(str, wanted))}]",
    )
    for n in size[2:]:
        c.require(ge(n, 0), f"the size {n} must not be negative")
    return Tensor((size[0], *size[2:], axes), theta.dtype)


def affine_grid(c: Context, theta: Tensor, size: Shape, align_corners: bool | None = None) -> Tensor:
    """`[b, d, d + 1], (b, c, *n) -> [b, *n, d]` for d = len(n), which is 2 or 3; no size may be 0"""
    result = affine_grid_generator(c, theta, size, bool(align_corners))
    for n in size[2:]:
        c.require(ge(n, 1), f"the size {n} must be at least 1")
    # Where it warns of an axis of 1, torch leaves the check of batch and channels out.
    warns = any_of(eq(n, 1) for n in size[2:]) if align_corners else False
    for n in size[:2]:
        c.require(any_of((ge(n, 1), warns)), f"the size {n} must be at least 1")
    return result


RULES: dict[str, RuleFunction | Rule] = {
    "interpolate": interpolate,
    "upsample": interpolate,
    **{f"upsample_nearest{n}d": upsample(n, corners=False) for n in (1, 2, 3)},
    **{f"_upsample_nearest_exact{n}d": upsample(n, corners=False) for n in (1, 2, 3)},
    "upsample_linear1d": upsample(1, corners=True),
    "upsample_bilinear2d": upsample(2, corners=True),
    "upsample_bicubic2d": upsample(2, corners=True),
    "upsample_trilinear3d": upsample(3, corners=True),
    "_upsample_bilinear2d_aa": upsample(2, corners=True),
    "_upsample_bicubic2d_aa": upsample(2, corners=True),
    "_upsample_lanczos2d_aa": upsample(2, corners=True),
    "pad": pad,
    "constant_pad_nd": constant_pad_nd,
    **{f"reflection_pad{n}d": pad_mode("reflect", n) for n in (1, 2, 3)},
    **{f"replication_pad{n}d": pad_mode("replicate", n) for n in (1, 2, 3)},
    "_pad_circular": _pad_circular,
    "_pad_enum": pad_enum,
    "pad_sequence": pad_sequence,
    "pixel_shuffle": pixel_shuffle,
    "pixel_unshuffle": pixel_unshuffle,
    "channel_shuffle": channel_shuffle,
    "native_channel_shuffle": channel_shuffle,
    "grid_sample": grid_sample,
    "grid_sampler": grid_sampler,
    "grid_sampler_2d": grid_sampler,
    "grid_sampler_3d": grid_sampler,
    "affine_grid": affine_grid,
    "affine_grid_generator": affine_grid_generator,
}
