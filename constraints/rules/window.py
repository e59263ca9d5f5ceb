"""Operators that slide a window over their spatial axes: convolutions, pools, unfold and fold.

Spatial axes are the last 1, 2 or 3; the axis before them is the channel, and before it there may be a batch.
A window of kernel k and dilation d covers e = d*(k - 1) + 1 positions; `windows` counts where it fits.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..contents.elements.values import extremes
from ..engine.ruleset import RuleFunction
from ..ir.language import Context, Layout, Shape, Span, Tensor, product
from ..terms.dims import Dim, ceildiv, maximum, minimum
from ..terms.formula import Formula, all_of, any_of, divides, eq, ge, gt, le, lt, ne, negate
from .common import (
    ABSENT,
    axis,
    category,
    channels_innermost,
    channels_last,
    counted,
    like_input,
    rank_is,
    same_dim,
    strides_of,
)
from .elementwise import same_dtype
from .rounding import scaled
from .strides import copied_if_needed, laid_out, unsqueezed

PerAxis = Any
"""A value for every spatial axis, or a tuple with one for each."""


def windows(size: Dim, kernel: Dim, stride: Dim = 1, padding: Dim = 0, dilation: Dim = 1) -> Dim:
    """`n -> (n + p - d*(k - 1) - 1) // s + 1`, p being the padding of both sides together.

    Windows start at 0, s, 2*s, … of the padded axis, and start i fits where i*s + e <= n + p with
    e = d*(k - 1) + 1: that is i <= (n + p - e) // s, counted from 0.
    """
    return (size + (padding - dilation * (kernel - 1) - 1)) // stride + 1


def windows_ceil(size: Dim, kernel: Dim, stride: Dim, padding: Dim, dilation: Dim = 1) -> Dim:
    """`n -> min(ceil((n + 2*p - d*(k - 1) - 1) / s), (n + p - 1) // s) + 1`, p being the padding per side.

    A last window may hang over the right end (ceil), but it has to start in the input or in the left
    padding: i*s <= n + p - 1. torch drops one window that does not. With a = n + 2*p - d*(k - 1) - 1 and
    g = d*(k - 1) - p that is the minimum of ceil(a / s) and (a + g) // s, where g >= k/2 - 1 > -1, as pools
    require 2*p <= k: the ceiling is larger by 1 at most, so one is enough. Where s <= g + 1 the ceiling,
    (a + s - 1) // s, is the minimum; where s >= g + 1 it is (a + g) // s.
    """
    overhang = dilation * (kernel - 1) - padding
    last = ceildiv(size + 2 * padding - dilation * (kernel - 1) - 1, stride)
    start = (size + padding - 1) // stride
    if le(stride, overhang + 1) is True:
        return last + 1
    return start + 1 if ge(stride, overhang + 1) is True else minimum(last, start) + 1


def per_axis(c: Context, value: PerAxis, spatial: int, name: str) -> Shape:
    """One value for each spatial axis: 3, (3,) and (3, 3) say the same of two."""
    if not isinstance(value, tuple):
        return (value,) * spatial
    if len(value) not in (1, spatial):
        c.refuse(f"{name} must be one number or {spatial}, not {len(value)}")
    return value * spatial if len(value) == 1 else value


def positive(c: Context, values: Iterable[Dim], name: str, error: type[Exception] = RuntimeError) -> None:
    """Requires that every value is at least 1."""
    for value in values:
        if type(value) is int and value > 0:
            continue
        if (holds := ge(value, 1)) is False:
            c.refuse(f"{name} must be at least 1, not {value}", error)
        c.require(holds, f"{name} must be at least 1, not {value}", error)


def split(c: Context, input: Tensor, spatial: int, name: str = "input") -> tuple[Shape, Dim, Shape]:
    """`[*batch, channels, *spatial]` taken apart; the batch is one dim or none."""
    rank_is(c, input, name, spatial + 1, spatial + 2)
    return input.shape[: -spatial - 1], input.shape[-spatial - 1], input.shape[-spatial:]


# --- convolution -----------------------------------------------------------------------------------------


def conv(spatial: int) -> RuleFunction:
    """conv1d, conv2d, conv3d."""

    def rule(
        c: Context, input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: PerAxis = 1,
        padding: PerAxis = 0, dilation: PerAxis = 1, groups: Dim = 1,
    ) -> Tensor:
        """`[*b, g*i, *n], weight [g*o, i, *k], bias [g*o] -> [*b, g*o, *windows(n, k, s, p, d)]`

        padding='valid' is p = 0; 'same' is d*(k - 1) on both sides together, which keeps n where s = 1.
        """
        split(c, input, spatial)
        strides, dilations = _steps(c, input, weight, stride, dilation, spatial)
        if padding == "same":
            for step in strides:
                c.require(eq(step, 1), f"padding='same' needs stride 1, not {step}")
            around = tuple(d * (k - 1) for k, d in zip(weight.shape[2:], dilations, strict=True))
            for both in around:
                c.require(ge(both, -1), f"padding='same' is negative for the kernel of {weight}")
        elif isinstance(padding, str):
            if padding != "valid":
                c.refuse(f"padding must be 'valid', 'same' or sizes, not {padding!r}")
            around = (0,) * spatial
        else:
            around = _both_sides(c, padding, spatial)
        return _convolve(c, input, weight, bias, strides, around, dilations, groups)

    return rule


def _steps(
    c: Context, input: Tensor, weight: Tensor, stride: PerAxis, dilation: PerAxis, spatial: int
) -> tuple[Shape, Shape]:
    """Strides and dilations, each at least 1, for a weight of as many spatial axes; where the input has no
    elements, a dilation may be 0.
    """
    rank_is(c, weight, "weight", spatial + 2)
    strides, dilations = per_axis(c, stride, spatial, "stride"), per_axis(c, dilation, spatial, "dilation")
    positive(c, strides, "stride")
    for size in dilations:
        if type(size) is int and size > 0:
            continue
        nothing = any_of(eq(n, 0) for n in input.shape if not c.at_least(n, 1))
        wide = any_of((ge(size, 1), all_of((eq(size, 0), nothing))))
        c.require(wide, f"dilation must be at least 1, not {size}")
    return strides, dilations


def _both_sides(c: Context, padding: PerAxis, spatial: int) -> Shape:
    """Padding per side, which may not be negative -> padding of both sides."""
    sides = per_axis(c, padding, spatial, "padding")
    for side in sides:
        if type(side) is not int or side < 0:
            c.require(ge(side, 0), f"padding must not be negative, but is {side}")
    return tuple([2 * side for side in sides])


def _grouped(c: Context, weight: Tensor, bias: Tensor | None, groups: Dim, outputs: Dim) -> None:
    """Requires that weight, bias and groups fit each other; torch wants each group to hold at least one
    filter.
    """
    positive(c, (groups,), "groups")
    first = weight.shape[0]
    if groups != 1 or type(first) is not int or first < 1:
        c.require(
            all_of((ge(first, groups), divides(groups, first))),
            f"the first dimension of weight, {first}, must be a positive multiple of groups = {groups}",
        )
    if bias is not None:
        rank_is(c, bias, "bias", 1)
        c.require(eq(bias.shape[0], outputs), f"bias has {bias.shape[0]} elements for {outputs} channels")


def _one_dtype(
    c: Context, input: Tensor, weight: Tensor, bias: Tensor | None, batch: Shape, channels: Dim
) -> None:
    """Input and weight have one dtype, but where no kernel runs. A bias is compared with the input before."""
    if bias is not None:
        same_dtype(c, "a convolution with a bias", weight, bias)
    known = {input.dtype, weight.dtype} - {None}
    if len(known) < 2:
        return
    told = f"a convolution takes tensors of one dtype, not {' and '.join(sorted(map(str, known)))}"
    if bias is not None or any("complex" in str(dtype) for dtype in known):
        c.refuse(told)
    c.require(any_of(eq(n, 0) for n in (*batch, channels)), told)


def _has_elements(c: Context, batch: Shape, channels: Dim, sizes: Shape, padding: Shape) -> None:
    """Spatial sizes of 0 pass only with an empty batch or without channels."""
    for size, pad in zip(sizes, padding, strict=True):
        if pad == 0 or c.at_least(size, 1):  # without padding a kernel of 1 or more asks for it anyway
            continue
        free = [eq(n, 0) for n in (*batch, channels)]
        c.require(any_of((ge(size, 1), *free)), f"an input size is 0 in {Tensor((*batch, channels, *sizes))}")


def _convolve(
    c: Context, input: Tensor, weight: Tensor, bias: Tensor | None, strides: Shape, around: Shape,
    dilations: Shape, groups: Dim,
) -> Tensor:
    spatial = len(strides)
    batch, channels, sizes = split(c, input, spatial)
    outputs, inputs, *kernel = weight.shape
    _grouped(c, weight, bias, groups, outputs)
    _one_dtype(c, input, weight, bias, batch, channels)
    if channels != inputs * groups:
        channels = same_dim(
            c,
            channels,
            inputs * groups,
            f"input has {channels} channels, but {weight} takes {inputs * groups}"
            + (f" ({inputs} for each of {groups} groups)" if groups != 1 else ""),
        )
    for k in kernel:
        if type(k) is not int or k < 1:
            told = f"a kernel size is {k}"
            c.require(any_of((ge(k, 1), eq(channels, 0))), told, _of_empty_weight(c, batch))
    for n, k, p, d in zip(sizes, kernel, around, dilations, strict=True):
        c.require(
            ge(n, d * (k - 1) + 1 - p),
            f"kernel of {k}{f' with dilation {d}' if d != 1 else ''} does not fit into the input size {n}"
            + (f" padded by {p}" if p != 0 else ""),
        )
    _has_elements(c, batch, channels, sizes, around)
    if not c.at_least(channels, 1):
        outputs = outputs * minimum(channels, 1)  # without input channels torch returns none either
    spots = tuple(windows(*args) for args in zip(sizes, kernel, strides, around, dilations, strict=True))
    shape = (*batch, outputs, *spots)
    return Tensor(shape, input.dtype, _conv_layout(c, input, weight, shape))


def _of_empty_weight(c: Context, batch: Shape) -> type[Exception]:
    """Returns the exception that torch raises for a weight without elements.

    Where the batch may be empty, any exception is possible: torch then asks for the first element of the
    weight.
    """
    return RuntimeError if all(c.at_least(b, 1) for b in batch) else Exception


def _conv_layout(c: Context, input: Tensor, weight: Tensor, shape: Shape) -> Layout | Shape:
    """Convolutions put the channels innermost if input or weight suggests so, else the result is contiguous.

    An input of one dimension is made contiguous, and with its weight seen as an image of height 1. A volume
    is not sure to have its channels innermost unless oneDNN computes it.
    """
    batched, vectors = input.rank == weight.rank, weight.rank == 3
    if not batched:
        input, shape = unsqueezed(input, 0), (1, *shape)
    if vectors:
        input, weight = unsqueezed(copied_if_needed(c, input), 2), unsqueezed(weight, 2)
        shape = (*shape[:2], 1, shape[2])
    suggest = [channels_innermost(c, tensor) for tensor in (input, weight)]
    if True not in suggest:
        return Layout.UNKNOWN if None in suggest else Layout.CONTIGUOUS
    if input.rank == 4 or (input.dtype == "float32" and c.at_least(shape[0], 2)):
        strides = channels_last(shape)
    else:
        return Layout.UNKNOWN
    kept = [i for i in range(len(shape)) if not (i == 0 and not batched) and not (i == 2 and vectors)]
    return laid_out(tuple(shape[i] for i in kept), tuple(strides[i] for i in kept))


def conv_transpose(spatial: int) -> RuleFunction:
    """conv_transpose1d, conv_transpose2d, conv_transpose3d."""

    def rule(
        c: Context, input: Tensor, weight: Tensor, bias: Tensor | None = None, stride: PerAxis = 1,
        padding: PerAxis = 0, output_padding: PerAxis = 0, groups: Dim = 1, dilation: PerAxis = 1,
    ) -> Tensor:
        """`[*b, i, *n], weight [i, o, *k], bias [g*o] -> [*b, g*o, *((n - 1)*s - 2*p + d*(k - 1) + q + 1)]`

        The sizes whose convolution gives n are `(n - 1)*s - 2*p + d*(k - 1) + 1` and up to s - 1 more: q, the
        output padding, chooses among them.
        """
        batch, channels, sizes = split(c, input, spatial)
        strides, dilations = _steps(c, input, weight, stride, dilation, spatial)
        inputs, per_group, *kernel = weight.shape
        around = _both_sides(c, padding, spatial)
        extra = per_axis(c, output_padding, spatial, "output_padding")
        outputs = per_group * groups
        _grouped(c, weight, bias, groups, outputs)
        _one_dtype(c, input, weight, None, batch, channels)
        if bias is not None and bias.dtype != weight.dtype and None not in (bias.dtype, weight.dtype):
            c.approximate("the kernel chosen decides whether a bias may have another dtype", "accept")
        c.require(eq(channels, inputs), f"input has {channels} channels, but weight takes {inputs}")
        positive(c, (per_group, *kernel), "a size of weight", _of_empty_weight(c, batch))
        empty = [eq(b, 0) for b in batch]
        spots = []
        for n, k, s, p, d, q in zip(sizes, kernel, strides, around, dilations, extra, strict=True):
            c.require(ge(q, 0), f"output_padding must not be negative, but is {q}")
            c.require(
                any_of((lt(q, s), lt(q, d), *empty)),
                f"output_padding {q} must be smaller than stride {s} or dilation {d}",
            )
            spot = (n - 1) * s - p + d * (k - 1) + q + 1
            may_be_empty: Formula = False
            if not c.at_least(spot, 1):
                lenient = _onednn(c, input, weight, strides, dilations, extra, groups, spot)
                may_be_empty = any_of((*empty, lenient))
            c.require(
                any_of((ge(spot, 1), all_of((ge(spot, 0), may_be_empty)))),
                f"the output size {spot} must be at least 1 (input size {n})",
            )
            spots.append(spot)
        _has_elements(c, batch, channels, sizes, (1,) * spatial)
        shape = (*batch, outputs, *spots)
        return Tensor(shape, input.dtype, _conv_layout(c, input, weight, shape))

    return rule


def _onednn(
    c: Context, input: Tensor, weight: Tensor, strides: Shape, dilations: Shape, extra: Shape, groups: Dim,
    spot: Dim,
) -> Formula:
    """Returns the condition under which torch has oneDNN compute a transposed convolution, whose result of
    size `spot` may then be empty.

    That is for a batch of 2 or more, groups, kernels of 4 x 4 or more, and inputs that are large without
    their last size; not where an output padding reaches its stride.
    """
    if input.dtype not in ("float32", "bfloat16", "float16", None):
        return False
    if input.dtype != "float32":
        c.approximate("whether a result may be empty depends on the processor", "accept", eq(spot, 0))
        return True
    spatial = len(strides)
    sizes = input.shape if input.rank == spatial + 2 else (1, *input.shape)
    kernel = weight.shape[2:]
    if spatial == 1:  # computed as an image of height 1
        sizes, kernel = (*sizes[:2], 1, sizes[2]), (1, *kernel)
    large = any_of(
        (gt(groups, 1), all_of(gt(k, 3) for k in kernel[-2:]), gt(sizes[0], 1), gt(product(sizes[:4]), 20480))
    )
    moves = any_of((*(ne(n, 1) for n in (*strides, *dilations, *kernel[-2:])), ge(sizes[0], 16)))
    alone = all_of((negate(moves), eq(spot, 0)))
    c.approximate("whether a result may be empty depends on the number of threads", "accept", alone)
    return all_of((*(lt(q, s) for q, s in zip(extra, strides, strict=True)), large))

CONV = {spatial: conv(spatial) for spatial in (1, 2, 3)}
CONV_TRANSPOSE = {spatial: conv_transpose(spatial) for spatial in (1, 2, 3)}


def convolution(
    c: Context, input: Tensor, weight: Tensor, bias: Tensor | None, stride: PerAxis, padding: PerAxis,
    dilation: PerAxis, transposed: bool, output_padding: PerAxis, groups: Dim, benchmark: bool = False,
    deterministic: bool = False, cudnn_enabled: bool = False, allow_tf32: bool = False,
) -> Tensor:
    """ATen's one form of all convolutions, whose input is always batched."""
    rank_is(c, weight, "weight", 3, 4, 5)
    rank_is(c, input, "input", weight.rank)
    spatial = weight.rank - 2
    if transposed:
        result = CONV_TRANSPOSE[spatial](
            c, input, weight, bias, stride, padding, output_padding, groups, dilation
        )
    else:
        for q in per_axis(c, output_padding, spatial, "output_padding"):
            c.require(ge(q, 0), f"output_padding must not be negative, but is {q}")
        result = CONV[spatial](c, input, weight, bias, stride, padding, dilation, groups)
    assert isinstance(result, Tensor)
    return result


def convolution_mode(
    c: Context, input: Tensor, weight: Tensor, bias: Tensor | None, stride: PerAxis, padding: str,
    dilation: PerAxis, groups: Dim,
) -> Tensor:
    """Convolutions with padding given as a word, "same" or "valid"."""
    rank_is(c, weight, "weight", 3, 4, 5)
    result = CONV[weight.rank - 2](c, input, weight, bias, stride, padding, dilation, groups)
    assert isinstance(result, Tensor)
    return result


def conv_tbc(c: Context, input: Tensor, weight: Tensor, bias: Tensor, pad: Dim = 0) -> Tensor:
    """`[n, b, i], weight [k, i, o], bias [o] -> [n + 2*p - k + 1, b, o]`"""
    rank_is(c, input, "input", 3)
    rank_is(c, weight, "weight", 3)
    rank_is(c, bias, "bias", 1)
    length, batch, channels = input.shape
    kernel, inputs, outputs = weight.shape
    c.require(eq(channels, inputs), f"input has {channels} channels, but weight takes {inputs}")
    c.require(eq(bias.shape[0], outputs), f"bias has {bias.shape[0]} elements for {outputs} channels")
    spots = length + 2 * pad - kernel + 1
    c.require(ge(spots, 0), f"kernel of {kernel} does not fit into the input size {length} padded by {pad}")
    return Tensor((spots, batch, outputs), input.dtype)


# --- pools -----------------------------------------------------------------------------------------------


def _pool(
    c: Context, input: Tensor, spatial: int, kernel_size: PerAxis, stride: PerAxis, padding: PerAxis,
    dilation: PerAxis, ceil_mode: bool,
) -> Shape:
    """`[*b, c, *n] -> [*b, c, *windows(n, k, s, p, d)]`; only the batch may be empty, also in the result.

    Padding of more than half a window is refused. A stride that is left out is the kernel size.
    """
    batch, channels, sizes = split(c, input, spatial)
    kernel = per_axis(c, kernel_size, spatial, "kernel_size")
    strides = kernel if stride is None or stride == () else per_axis(c, stride, spatial, "stride")
    sides, dilations = per_axis(c, padding, spatial, "padding"), per_axis(c, dilation, spatial, "dilation")
    for values, name in ((kernel, "kernel_size"), (strides, "stride"), (dilations, "dilation")):
        positive(c, values, name)
    spots = []
    for n, k, s, p, d in zip(sizes, kernel, strides, sides, dilations, strict=True):
        c.require(ge(p, 0), f"padding must not be negative, but is {p}")
        c.require(le(p, k // 2), f"padding {p} must be at most half of the kernel size {k}")
        spot = windows_ceil(n, k, s, p, d) if ceil_mode else windows(n, k, s, 2 * p, d)
        c.require(ge(spot, 1), f"kernel of {k} does not fit into the input size {n} with padding {p}")
        spots.append(spot)
    _not_empty(c, input, (channels, *sizes))
    return (*batch, channels, *spots)


def _pooled(c: Context, input: Tensor, shape: Shape, spatial: int) -> Layout | Shape:
    """The format that the input suggests; one of one dimension is seen as an image of height 1."""
    if spatial > 1:
        return like_input(c, input, shape, input.rank == spatial + 2)
    at = input.rank - 1
    image = (*shape[:at], 1, *shape[at:])
    strides = strides_of(Tensor(image, None, like_input(c, unsqueezed(input, at), image)))
    return laid_out(shape, None if strides is None else (*strides[:at], *strides[at + 1 :]))


def _not_empty(c: Context, input: Tensor, sizes: Shape) -> None:
    for size in sizes:
        c.require(ge(size, 1), f"only the batch may be empty in {input}")


def max_pool(spatial: int, with_indices: bool = False) -> RuleFunction:
    """max_pool1d, max_pool2d, max_pool3d, and those that return where each maximum was."""

    def rule(
        c: Context, input: Tensor, kernel_size: PerAxis, stride: PerAxis = None, padding: PerAxis = 0,
        dilation: PerAxis = 1, ceil_mode: bool = False, return_indices: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """`[*b, c, *n] -> [*b, c, *windows(n, k, s, p, d)]`, and the same in int64 for the indices."""
        shape = _pool(c, input, spatial, kernel_size, stride, padding, dilation, ceil_mode)
        if input.rank == 4 and spatial == 3 and channels_innermost(c, input) is not False:
            c.approximate("a volume without batch may be refused for lying as images do", "accept")
        result = Tensor(shape, input.dtype, _pooled(c, input, shape, spatial))
        return (result, _indices(input, spatial, result)) if with_indices or return_indices else result

    return rule


def _indices(input: Tensor, spatial: int, result: Tensor) -> Tensor:
    """Where each maximum was, counted through the spatial sizes of its input."""
    last = product(input.shape[-spatial:]) - 1
    return Tensor(result.shape, "int64", result.layout, Span(0, last, attained=False))


def avg_pool(spatial: int) -> RuleFunction:
    """avg_pool1d, avg_pool2d, avg_pool3d."""

    def rule(
        c: Context, input: Tensor, kernel_size: PerAxis, stride: PerAxis = None, padding: PerAxis = 0,
        ceil_mode: bool = False, count_include_pad: bool = True, divisor_override: Dim | None = None,
    ) -> Tensor:
        """`[*b, c, *n] -> [*b, c, *windows(n, k, s, p)]`"""
        if divisor_override is not None:
            c.require(ne(divisor_override, 0), "divisor_override must not be 0")
        return _averaged(c, input, spatial, kernel_size, stride, padding, ceil_mode)

    return rule


def _averaged(
    c: Context, input: Tensor, spatial: int, kernel_size: PerAxis, stride: PerAxis, padding: PerAxis,
    ceil_mode: bool,
) -> Tensor:
    """An average pool; in three dimensions torch wants the input, padding aside, as large as the kernel."""
    shape = _pool(c, input, spatial, kernel_size, stride, padding, 1, ceil_mode)
    if spatial < 3:
        return Tensor(shape, input.dtype, _pooled(c, input, shape, spatial))
    for n, k in zip(input.shape[-3:], per_axis(c, kernel_size, spatial, "kernel_size"), strict=True):
        c.require(ge(n, k), f"kernel of {k} is larger than the input size {n}")
    return Tensor(shape, input.dtype)


def lp_pool(spatial: int) -> RuleFunction:
    """lp_pool1d, lp_pool2d, lp_pool3d: an average pool of powers, without padding."""

    def rule(
        c: Context, input: Tensor, norm_type: Dim | float, kernel_size: PerAxis, stride: PerAxis = None,
        ceil_mode: bool = False,
    ) -> Tensor:
        """`[*b, c, *n] -> [*b, c, *windows(n, k, s)]`"""
        is_some = norm_type != 0 if isinstance(norm_type, float) else ne(norm_type, 0)
        c.require(is_some, "the norm of lp_pool is not 0", Exception)
        if isinstance(kernel_size, tuple) and (spatial == 1 or len(kernel_size) != spatial):
            c.refuse(f"kernel_size has {len(kernel_size)} numbers, which is not for lp_pool{spatial}d")
        return _averaged(c, input, spatial, kernel_size, stride, 0, ceil_mode)

    return rule


def adaptive_pool(spatial: int, maximum: bool = False, mean: bool = False) -> RuleFunction:
    """adaptive_avg_pool1d, …, adaptive_max_pool3d."""

    def rule(
        c: Context, input: Tensor, output_size: PerAxis, return_indices: bool | None = None
    ) -> Tensor | tuple[Tensor, Tensor]:
        """`[*b, c, *n], m -> [*b, c, *m]`, where a None among m keeps its n.

        Averages over whole axes (all m = 1) are means and take any size and further batch axes. Else the
        first axis may be empty, and the channels too of averages in one and two dimensions. Complex numbers
        have means, and no other averages but of nothing in one or two dimensions. torch's functions
        `adaptive_max_pool*` return indices too; those of torch.nn.functional always say whether they do.
        """
        wanted = output_size if isinstance(output_size, tuple) else (output_size,) * spatial
        if len(wanted) != spatial:
            c.refuse(f"output_size must be one number or {spatial}, not {len(wanted)}")
        if input.rank < spatial:
            c.refuse(f"input must have rank {spatial + 1} or {spatial + 2}, not {input.rank} ({input})")
        kept = tuple(n if m is None else m for n, m in zip(input.shape[-spatial:], wanted, strict=True))
        for m in kept:
            c.require(ge(m, 0), f"output_size must not be negative, but is {m}")
        means = all_of(eq(m, 1) for m in kept) if mean else False
        shape = (*input.shape[:-spatial], *kept)
        if means is not False and spatial > 1 and input.rank not in (spatial + 1, spatial + 2):
            c.require(means, f"input must have rank {spatial + 1} or {spatial + 2} unless its sizes become 1")
            means = True
        if means is not True or spatial == 1:
            batch, channels, sizes = split(c, input, spatial)
            strict = batch and (maximum or spatial == 3)
            for n in (channels, *sizes) if strict else sizes:
                c.require(any_of((means, ge(n, 1))), f"only the batch may be empty in {input}")
        layout = Layout.CONTIGUOUS if spatial == 3 else _pooled(c, input, shape, spatial)
        if layout is Layout.UNKNOWN and means is True and input.rank < spatial + 3:
            layout = Layout.ROW_MAJOR
        result = Tensor(shape, input.dtype, layout)
        if mean and category(input.dtype or "float32") < 2:
            c.require(negate(means), f"the mean of {input.dtype}")
        if mean and category(input.dtype or "") == 3:
            nothing = spatial < 3 and eq(result.numel, 0)
            c.require(any_of((means, nothing)), f"averages of {input.dtype}", NotImplementedError)
        told = maximum and return_indices is not False
        return (result, _indices(input, spatial, result)) if told else result

    return rule


def _exactly(c: Context, value: PerAxis, count: int, name: str) -> Shape:
    """One value for all axes, or a tuple with one for each of them; (3,) will not do for two."""
    if isinstance(value, tuple) and len(value) != count:
        c.refuse(f"{name} must be one number or {count}, not {len(value)}")
    return value if isinstance(value, tuple) else (value,) * count


def fractional_max_pool(spatial: int, with_indices: bool = False) -> RuleFunction:
    """fractional_max_pool2d, fractional_max_pool3d: windows at random positions."""

    def rule(
        c: Context, input: Tensor, kernel_size: PerAxis, output_size: PerAxis = None,
        output_ratio: Any = None, return_indices: bool = False, _random_samples: Tensor | None = None,
        random_samples: Tensor | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """`[*b, c, *n], m -> [*b, c, *m]` with m + k - 1 <= n, in three dimensions < n; a ratio r is m = n*r.

        ATen's operator has the samples, `[b, c, spatial]`, for its fourth argument, and returns indices too.
        """
        batch, channels, sizes = split(c, input, spatial)
        if _random_samples is not None:
            same_dtype(c, "fractional pooling with samples", input, _random_samples)
        aten = isinstance(output_ratio, Tensor) or random_samples is not None
        samples = output_ratio if isinstance(output_ratio, Tensor) else random_samples or _random_samples
        if output_size is None:
            if output_ratio is None or (spatial == 2 and not isinstance(output_ratio, tuple)):
                c.refuse(f"an output_size, or an output_ratio of {spatial} numbers, must be given")
            ratios = _exactly(c, output_ratio, spatial, "output_ratio")
            output_size = tuple(scaled(c, n, r) for n, r in zip(sizes, ratios, strict=True))
        kernel = _exactly(c, kernel_size, spatial, "kernel_size")
        wanted = _exactly(c, output_size, spatial, "output_size")
        if c.since(2, 14):
            positive = all_of(ge(k, 1) for k in kernel)
            c.require(positive, f"the kernel of fractional pooling must be positive, not {kernel_size}")
        for n in (channels, *sizes) if batch else sizes:
            c.require(ge(n, 1), f"only the first axis may be empty in {input}")
        for n, k, m in zip(sizes, kernel, wanted, strict=True):
            c.require(ge(m, 0), f"output_size must not be negative, but is {m}")
            fits = le(m + k - 1, n) if spatial == 2 else lt(m + k - 1, n)
            c.require(fits, f"{m} different windows of {k} do not fit into the input size {n}")
        if samples is not None:
            rank_is(c, samples, "random samples", 3)
            inputs, per_input, numbers = samples.shape
            reason = f"random samples {samples} are not those of {spatial} axes of {input}"
            least = batch[0] if batch else 1
            c.require(all_of((ge(inputs, least), eq(per_input, channels), eq(numbers, spatial))), reason)
        result = Tensor((*batch, channels, *wanted), input.dtype)
        told = with_indices or aten or return_indices
        return (result, _indices(input, spatial, result)) if told else result

    return rule


def max_unpool(spatial: int) -> RuleFunction:
    """max_unpool1d, max_unpool2d, max_unpool3d."""

    def rule(
        c: Context, input: Tensor, indices: Tensor, kernel_size: PerAxis = None, stride: PerAxis = None,
        padding: PerAxis = 0, output_size: PerAxis = ABSENT,
    ) -> Tensor:
        """`[*b, c, *n], [*b, c, *n] -> [*b, c, *((n - 1)*s - 2*p + k)]`, or an output_size less than s away.

        The third argument of ATen's operators is the output size. Those of torch.nn.functional, which go by
        the same names, always name it.
        """
        batch, channels, sizes = split(c, input, spatial)
        if indices.dtype not in ("int64", None):
            c.refuse(f"indices must be int64, not {indices.dtype}")
        rank_is(c, indices, "indices", input.rank)
        for mine, theirs in zip(input.shape, indices.shape, strict=True):
            c.require(eq(mine, theirs), f"indices {indices} must have the shape of the input {input}")
        _not_empty(c, input, input.shape[1:])
        if spatial == 3 and isinstance(stride, tuple):
            positive(c, stride, "stride")
        if kernel_size is None or output_size is ABSENT:
            wanted = output_size if kernel_size is None else kernel_size
            if len(wanted) != spatial:
                c.refuse(f"output_size must have {counted(spatial, 'size')}, not {len(wanted)}")
        else:
            wanted = _unpooled(c, sizes, kernel_size, stride, padding, output_size)
        for at, m in enumerate(wanted):
            # Before torch 2.13, a size after one that is 0 may be negative.
            odd = () if c.since(2, 13) else (eq(n, 0) for n in (*batch, *wanted[:at]))
            c.require(any_of((ge(m, 0), *odd)), f"an output size is negative: {m}")
        span, places = extremes(indices), product(wanted)
        if span is not None and not c.at_least(places - 1 - span.high, 0):
            empty = [eq(n, 0) for n in batch if not c.at_least(n, 1)]
            # Which of them is greatest is for the data to say. Of no indices there is none.
            last = c.fresh("index", span.low, span.high if not empty else maximum(span.low, span.high))
            if not c.at_least(places, 1):
                empty += [eq(places, 0)]
            c.require(any_of((lt(last, places), *empty)), f"index {last} is beyond an output of {places}")
        shape = (*batch, channels, *wanted)
        layout = Layout.CONTIGUOUS if spatial == 3 else _pooled(c, input, shape, spatial)
        return Tensor(shape, input.dtype, layout)

    return rule


def _unpooled(
    c: Context, sizes: Shape, kernel_size: PerAxis, stride: PerAxis, padding: PerAxis, output_size: PerAxis
) -> Shape:
    """`n -> (n - 1)*s + k - 2*p`, or the output size given, which may differ from it by less than s."""
    spatial = len(sizes)
    kernel, sides = _exactly(c, kernel_size, spatial, "kernel_size"), _exactly(c, padding, spatial, "padding")
    strides = kernel if stride is None else _exactly(c, stride, spatial, "stride")
    if spatial == 3:
        positive(c, strides, "stride")
    usual = tuple((n - 1) * s + k - 2 * p for n, s, k, p in zip(sizes, strides, kernel, sides, strict=True))
    if output_size is None:
        return usual
    if len(output_size) not in (spatial, spatial + 2):
        c.refuse(f"output_size must have {spatial} or {spatial + 2} sizes, not {len(output_size)}")
    wanted: Shape = output_size[-spatial:]
    for m, u, s in zip(wanted, usual, strides, strict=True):
        between = all_of((lt(u - s, m), lt(m, u + s)))
        c.require(between, f"output_size {m} must lie between {u - s} and {u + s}")
    return wanted


# --- windows as an axis of their own ---------------------------------------------------------------------


def _blocks(
    c: Context, sizes: Shape, kernel_size: PerAxis, dilation: PerAxis, padding: PerAxis, stride: PerAxis
) -> tuple[Shape, Shape]:
    """`(kernel, windows)` for each of the two axes."""
    named = {"kernel_size": kernel_size, "dilation": dilation, "padding": padding, "stride": stride}
    kernel, dilations, sides, strides = (_exactly(c, value, 2, name) for name, value in named.items())
    for values, name in ((kernel, "kernel_size"), (dilations, "dilation"), (strides, "stride")):
        positive(c, values, name)
    for p in sides:
        c.require(ge(p, 0), f"padding must not be negative, but is {p}")
    pairs = zip(sizes, kernel, strides, sides, dilations, strict=True)
    return kernel, tuple(windows(n, k, s, 2 * p, d) for n, k, s, p, d in pairs)


def im2col(
    c: Context, input: Tensor, kernel_size: PerAxis, dilation: PerAxis = 1, padding: PerAxis = 0,
    stride: PerAxis = 1,
) -> Tensor:
    """`[*b, c, h, w] -> [*b, c*k*k, l]`, where l = windows(h, k, s, p, d) * windows(w, k, s, p, d)"""
    batch, channels, sizes = split(c, input, 2)
    kernel, blocks = _blocks(c, sizes, kernel_size, dilation, padding, stride)
    _not_empty(c, input, (channels, *sizes))
    for n, k, count in zip(sizes, kernel, blocks, strict=True):
        c.require(ge(count, 1), f"blocks of {k} do not fit into the input size {n}")
    return Tensor((*batch, channels * product(kernel), product(blocks)), input.dtype)


def col2im(
    c: Context, input: Tensor, output_size: PerAxis, kernel_size: PerAxis, dilation: PerAxis = 1,
    padding: PerAxis = 0, stride: PerAxis = 1,
) -> Tensor:
    """`[*b, c*k*k, l], (h, w) -> [*b, c, h, w]`, where l = windows(h, k, s, p, d) * windows(w, k, s, p, d)"""
    rank_is(c, input, "input", 2, 3)
    *batch, rows, columns = input.shape
    sizes = _exactly(c, output_size, 2, "output_size")
    positive(c, sizes, "output_size")
    kernel, blocks = _blocks(c, sizes, kernel_size, dilation, padding, stride)
    _not_empty(c, input, (rows, columns))
    area = product(kernel)
    c.require(divides(area, rows), f"the {rows} rows must be a multiple of the elements of a block, {area}")
    c.require(
        all_of((*(ge(count, 1) for count in blocks), eq(columns, product(blocks)))),
        f"input has {columns} columns, but {' x '.join(map(str, blocks))} blocks cover the output",
    )
    return Tensor((*batch, rows // area, *sizes), input.dtype)


def unfold(
    c: Context, input: Tensor, dimension: Any = None, size: Dim | None = None, step: Dim | None = None,
    kernel_size: PerAxis = None, dilation: PerAxis = None, padding: PerAxis = None, stride: PerAxis = None,
) -> Tensor:
    """`[*a, n, *b] -> [*a, (n - size)//step + 1, *b, size]`, a view.

    `torch.nn.functional.unfold` goes by the same name; it is `im2col`, and names all from dilation on.
    """
    if kernel_size is not None or stride is not None:
        given = {"dilation": dilation, "padding": padding, "stride": stride}
        kernel_size = dimension if kernel_size is None else kernel_size
        return im2col(c, input, kernel_size, **{name: v for name, v in given.items() if v is not None})
    if size is None or step is None:
        c.refuse("unfold needs a dimension, a size and a step")
    along = axis(c, dimension, input.rank)
    length = input.shape[along] if input.shape else 1
    c.require(ge(size, 0), f"size must not be negative, but is {size}")
    positive(c, (step,), "step")
    c.require(le(size, length), f"windows of {size} do not fit into the dimension of {length}")
    shape, strides = list(input.shape), strides_of(input)
    if not shape:
        return Tensor((size,), input.dtype, (1,))
    shape[along] = (length - size) // step + 1
    if strides is None:
        return Tensor((*shape, size), input.dtype, Layout.UNKNOWN)
    steps = (*strides[:along], strides[along] * step, *strides[along + 1 :], strides[along])
    return Tensor((*shape, size), input.dtype, steps)


def unfold_copy(c: Context, input: Tensor, dimension: int, size: Dim, step: Dim) -> Tensor:
    """`[*a, n, *b] -> [*a, (n - size)//step + 1, *b, size]`"""
    result = unfold(c, input, dimension, size, step)
    return Tensor(result.shape, result.dtype)


RULES: dict[str, RuleFunction] = {
    "_convolution": convolution,
    "_convolution_mode": convolution_mode,
    "convolution": convolution,
    **{f"conv{n}d": CONV[n] for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": CONV_TRANSPOSE[n] for n in (1, 2, 3)},
    **{f"max_pool{n}d": max_pool(n) for n in (1, 2, 3)},
    **{f"max_pool{n}d_with_indices": max_pool(n, with_indices=True) for n in (1, 2, 3)},
    **{f"avg_pool{n}d": avg_pool(n) for n in (1, 2, 3)},
    **{f"lp_pool{n}d": lp_pool(n) for n in (1, 2, 3)},
    **{f"adaptive_avg_pool{n}d": adaptive_pool(n, mean=True) for n in (1, 2, 3)},
    **{f"_adaptive_avg_pool{n}d": adaptive_pool(n) for n in (2, 3)},
    **{f"adaptive_max_pool{n}d": adaptive_pool(n, maximum=True) for n in (1, 2, 3)},
    "fractional_max_pool2d": fractional_max_pool(2),
    "fractional_max_pool3d": fractional_max_pool(3),
    "fractional_max_pool2d_with_indices": fractional_max_pool(2, with_indices=True),
    "fractional_max_pool3d_with_indices": fractional_max_pool(3, with_indices=True),
    **{f"max_unpool{n}d": max_unpool(n) for n in (1, 2, 3)},
    "im2col": im2col,
    "col2im": col2im,
    "fold": col2im,
    "unfold": unfold,
    "unfold_copy": unfold_copy,
    "conv_tbc": conv_tbc,
}
