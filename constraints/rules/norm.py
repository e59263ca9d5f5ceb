"""Normalisations: `[n, c, *s] -> [n, c, *s]`, with means per channel, instance, group or position.

Parameters and running statistics are vectors of c; torch looks at them closely, but hardly where nothing is
normalised.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..engine.memory import is_contiguous, require_apart
from ..engine.ruleset import RuleFunction
from ..ir.language import Context, Layout, Refused, Shape, Tensor, Value, product
from ..terms.dims import Dim
from ..terms.formula import Formula, all_of, any_of, divides, eq, ge, ne
from .common import axis, category, channels_last, contiguous_strides, like_input, promote, text
from .elementwise import apply_law, pointwise, pointwise_layout, same_dtype
from .layout import empty as is_empty
from .numbers import lacks_of_nothing
from .strides import Strides, copied_if_needed, is_refuted, lies_so, preserved, strides_of, view_of

Vector = Tensor | None


def is_full(c: Context, shape: Shape) -> Formula:
    """No size is 0."""
    return all_of(ne(n, 0) for n in shape if not c.at_least(n, 1))


def suggested_layout(c: Context, input: Tensor) -> Layout | Strides:
    """`suggest_memory_format`: contiguous, but for images and volumes whose channels lie innermost."""
    if input.rank not in (4, 5) or input.layout is Layout.CONTIGUOUS:
        return Layout.CONTIGUOUS
    return like_input(c, input, input.shape)


def parameters_fit(c: Context, input: Tensor, operation: str, *parameters: Value) -> str | None:
    """Parameters have the dtype of the input, or float32 where that is a half. Returns their dtype."""
    apply_law(c, "xx=x", input.dtype, operation)
    dtypes = {p.dtype for p in parameters if isinstance(p, Tensor)} - {None}
    if input.dtype is None or not dtypes or dtypes == {input.dtype}:
        return input.dtype
    if input.dtype in ("float16", "bfloat16") and dtypes == {"float32"}:
        return "float32"
    c.refuse(
        f"{operation} of {input.dtype} does not take parameters of {' and '.join(sorted(map(str, dtypes)))}"
    )


def _dtype(
    c: Context, input: Tensor, operation: str, weight: Vector, bias: Vector, *fit: Vector
) -> str | None:
    """Returns the dtype of a result whose kernel, which takes these and what has to `fit` them, is asked only
    where there are elements; else torch computes with the first numbers of weight and bias.
    """
    try:
        parameters_fit(c, input, operation, weight, bias, *fit)
    except Refused as refusal:
        c.require(is_empty(c, input.shape), str(refusal), refusal.error)
    return promote((input, *(Tensor((), vector.dtype) for vector in (weight, bias) if vector is not None)))


# One mean per channel.


def _channels(c: Context, input: Tensor, operation: str) -> Dim:
    if input.rank < 2:
        told = f"{operation} takes an input of rank 2 or more, [n, c, …], not {input}"
        c.refuse(told, RuntimeError if operation == "group_norm" else IndexError)
    return input.shape[1]


def _per_channel(c: Context, input: Tensor, weight: Vector, bias: Vector, mean: Vector, var: Vector) -> None:
    """Each vector has c elements; of an empty input, torch multiplies by the first element of the weight."""
    channels, empty, full = input.shape[1], is_empty(c, input.shape), is_full(c, input.shape)
    for name, vector in {"weight": weight, "bias": bias, "running_mean": mean, "running_var": var}.items():
        if vector is None:
            continue
        fits = eq(vector.numel, channels)
        statistic = name.startswith("running")
        if statistic and vector.rank != 1:
            fits = False
        least: Formula = True if statistic else ge(vector.numel, 1)
        if fits is True and least is True:
            continue
        told = f"{name} must hold a number for each of {channels} channels, and is {vector}"
        c.require(any_of((empty, fits)), told)
        c.require(any_of((full, least)), told, IndexError)


def _sizes_fit(c: Context, input: Tensor, **vectors: Vector) -> None:
    """Each vector holds c numbers, unless there is nothing to normalise."""
    for name, vector in vectors.items():
        if vector is not None:
            fits = any_of((eq(vector.numel, input.shape[1]), is_empty(c, input.shape)))
            c.require(
                fits, f"{name} must hold a number for each of {input.shape[1]} channels, and is {vector}"
            )


def batch_norm(
    c: Context, input: Tensor, running_mean: Vector = None, running_var: Vector = None, weight: Vector = None,
    bias: Vector = None, training: bool = False, momentum: Value = 0.1, eps: float = 1e-5,
    cudnn_enabled: Value = None,
) -> Tensor:  # fmt: skip
    """[n, c, *s], four times [c] -> [n, c, *s]; in training n * ∏s != 1, else with running statistics.

    The ATen form, known by its last argument, has weight and bias first and takes a single value per channel.
    """
    aten = cudnn_enabled is not None
    if aten:
        weight, bias, running_mean, running_var = running_mean, running_var, weight, bias
    if training and not aten:
        count = product((input.shape[0], *input.shape[2:])) if input.shape else 1
        told = f"batch_norm in training needs more than one value per channel, and {input} has one"
        c.require(ne(count, 1), told, ValueError if input.shape else IndexError)
    empty, vectors = is_empty(c, input.shape), (running_mean, running_var, weight, bias)
    if input.rank < 2:  # the vectors are compared first, with the 0 channels that it is said to have
        told = f"batch_norm takes an input of rank 2 or more, not {input}"
        none = all_of(eq(vector.numel, 0) for vector in vectors if vector is not None)
        c.require(any_of((empty, none)), told)
        c.require(empty, told, IndexError)
    dtype = _dtype(c, input, "batch_norm", weight, bias, running_mean, running_var)
    given = running_mean is not None, running_var is not None
    if not training and sum(given) < 2:
        c.require(empty, "batch_norm in evaluation needs running_mean and running_var")
    if training and not aten and sum(given) == 1:
        c.require(empty, "batch_norm takes both running_mean and running_var, or none of them")
    if input.rank > 1:
        _per_channel(c, input, weight, bias, running_mean, running_var)
    return Tensor(input.shape, dtype, _kernel_layout(c, input))


def _kernel_layout(c: Context, input: Tensor) -> Layout | Strides:
    """Returns the suggested layout, except that a contiguous input gives a contiguous result, and that the
    channels of another lie innermost where they do so in the input, axes of size 1 aside.
    """
    if is_contiguous(input):
        return Layout.CONTIGUOUS
    suggested, strides = suggested_layout(c, input), strides_of(input)
    if input.rank not in (4, 5) or strides is None:
        return suggested
    last = channels_last(input.shape)
    innermost = lies_so(input.shape, strides, last)
    row_major = lies_so(input.shape, strides, contiguous_strides(input.shape))
    if row_major is True or (suggested is Layout.CONTIGUOUS and is_refuted(c, innermost)):
        return Layout.CONTIGUOUS
    if not is_refuted(c, row_major):
        return Layout.UNKNOWN
    return last if innermost is True else suggested if suggested is not Layout.CONTIGUOUS else Layout.UNKNOWN


def _native(
    c: Context, input: Tensor, weight: Vector, bias: Vector, mean: Vector, var: Vector, training: Value
) -> tuple[Tensor, Tensor, Tensor]:
    """The kernel itself, with its mean and inverse deviation: [c] in training, [0] in evaluation.

    It reads vectors without a look at their sizes; a vector of other than c numbers is refused here.
    """
    channels = _channels(c, input, "batch_norm")
    dtype = parameters_fit(c, input, "batch_norm", weight, bias, mean, var)
    if training:
        c.require(is_full(c, input.shape), f"batch_norm in training needs an element, and {input} has none")
    elif mean is None or var is None:
        c.refuse("batch_norm in evaluation needs running_mean and running_var")
    _sizes_fit(c, input, weight=weight, bias=bias, running_mean=mean, running_var=var)
    statistics = Tensor((channels if training else 0,), dtype)
    return Tensor(input.shape, input.dtype, suggested_layout(c, input)), statistics, statistics


def native_batch_norm(
    c: Context, input: Tensor, weight: Vector, bias: Vector, running_mean: Value = None,
    running_var: Value = None, training: Value = True, momentum: Value = 0.1, eps: float = 1e-5,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """[n, c, *s], four times [c] -> [n, c, *s], [c], [c]; one overload has no running statistics"""
    if isinstance(running_mean, bool):  # (input, weight, bias, training, momentum, eps)
        running_mean, running_var, training = None, None, running_mean
    mean, var = (v if isinstance(v, Tensor) else None for v in (running_mean, running_var))
    return _native(c, input, weight, bias, mean, var, training)


def native_batch_norm_functional(
    c: Context, input: Tensor, weight: Vector, bias: Vector, running_mean: Tensor, running_var: Tensor,
    training: Value, momentum: Value = 0.1, eps: float = 1e-5,
) -> tuple[Tensor, ...]:  # fmt: skip
    """[n, c, *s], four times [c] -> [n, c, *s] and four times [c], the new running statistics last"""
    return *_native(c, input, weight, bias, running_mean, running_var, training), running_mean, running_var


NORMS: Final = frozenset({"batch_norm", "instance_norm"})


def statistics_of(named: Mapping[str, Any]) -> tuple[Any, Any]:
    """Returns the running mean and variance among the arguments of `batch_norm` or `instance_norm`, as these
    are recorded: those of the ATen form in its order, under the names of the other.
    """
    names = ("running_mean", "running_var") if named.get("cudnn_enabled") is None else ("weight", "bias")
    return named.get(names[0]), named.get(names[1])


def batch_norm_of(training: bool, reserve: bool = True, statistics: bool = False) -> RuleFunction:
    """The rule of a batch norm that trains or not. With `reserve` it returns a buffer, empty on the CPU, and
    with `statistics` the new running ones.
    """

    def rule(
        c: Context, input: Tensor, weight: Vector, bias: Vector, running_mean: Vector, running_var: Vector,
        momentum: Value = 0.1, eps: float = 1e-5,
    ) -> tuple[Value, ...]:  # fmt: skip
        """[n, c, *s], four times [c] -> [n, c, *s], twice [c] or, in evaluation, [0]; uint8[0]; twice [c]"""
        result = _native(c, input, weight, bias, running_mean, running_var, training)
        buffer = (Tensor((0,), "uint8"),) if reserve else ()
        return *result, *buffer, *((running_mean, running_var) if statistics else ())

    return rule


# One mean per instance and channel, which is a batch norm of [1, n*c, *s].


def _are_converted(input: Tensor, mean: Vector, var: Vector) -> bool:
    """Returns whether running statistics of these dtypes are surely taken: those of one dtype are converted
    to that of an input of floats.
    """
    dtypes = {v.dtype for v in (mean, var) if v is not None}
    return len(dtypes) == 1 and (input.dtype is None or category(input.dtype) >= 2)


def instance_norm(
    c: Context, input: Tensor, running_mean: Vector = None, running_var: Vector = None, weight: Vector = None,
    bias: Vector = None, use_input_stats: Value = True, momentum: Value = 0.1, eps: float = 1e-5,
    cudnn_enabled: Value = None,
) -> Tensor:  # fmt: skip
    """[n, c, *s], four times [c] -> [n, c, *s], contiguous; on the input's own statistics, ∏s != 1"""
    aten = cudnn_enabled is not None
    if aten:  # weight and bias come first there, as in batch_norm
        weight, bias, running_mean, running_var = running_mean, running_var, weight, bias
    if use_input_stats and not aten:
        spatial = product(input.shape[2:])
        c.require(
            ne(spatial, 1), f"instance_norm needs more than one element per channel, and {input} has one"
        )
    channels = _channels(c, input, "instance_norm")
    dtype = _dtype(c, input, "instance_norm", weight, bias)  # running statistics are converted
    given = running_mean is not None, running_var is not None
    if given == (True, True) and not _are_converted(input, running_mean, running_var):
        told = "whether instance_norm takes running statistics of these dtypes is not known"
        c.approximate(told, "accept")
    for vector in (running_mean, running_var):
        if use_input_stats and vector is not None:  # it is written
            require_apart(c, "instance_norm", vector, {})
    if not use_input_stats and sum(given) < 2:
        c.refuse("instance_norm without the input's own statistics needs running_mean and running_var")
    batch, empty, full = input.shape[0], is_empty(c, input.shape), is_full(c, input.shape)
    if use_input_stats and not aten and sum(given) == 1:
        c.require(empty, "instance_norm takes both running_mean and running_var, or none of them")
    for name, vector in {
        "weight": weight,
        "bias": bias,
        "running_mean": running_mean,
        "running_var": running_var,
    }.items():
        if vector is None:
            continue
        if vector.rank > 1:
            c.refuse(f"{name} of instance_norm has rank 1, not {vector.rank}")
        fits = eq(vector.numel, channels)
        if vector is weight or vector is bias:
            told = f"{name} must have a first number for each of {batch} inputs, and is {vector}"
            c.require(any_of((full, all_of((ge(batch, 1), ge(vector.numel, 1))))), told, IndexError)
            otherwise = empty
        elif (
            use_input_stats
        ):  # the mean over the batch is written back, and broadcasts where there is no batch
            otherwise = all_of((empty, any_of((fits, all_of((eq(batch, 0), eq(channels, 1)))))))
        else:
            otherwise = empty
        c.require(
            any_of((all_of((full, fits)), otherwise)),
            f"{name} must hold a number for each of {channels} channels, and is {vector}",
        )
    return Tensor(input.shape, dtype)


# One mean per group of channels.


def group_norm(
    c: Context, input: Tensor, num_groups: Dim, weight: Vector = None, bias: Vector = None, eps: float = 1e-5,
    cudnn_enabled: Value = None,
) -> Tensor:  # fmt: skip
    """[n, g*k, *s], twice [g*k] -> [n, g*k, *s], where n*k*∏s != 1 but for the ATen form"""
    _grouped(c, input, num_groups, weight, bias)
    if cudnn_enabled is None and num_groups != 0:
        count = product((input.shape[0] * input.shape[1] // num_groups, *input.shape[2:]))
        c.require(ne(count, 1), f"group_norm needs more than one value per group, and {input} has one")
    return Tensor(input.shape, input.dtype, suggested_layout(c, input))


def _grouped(c: Context, input: Tensor, groups: Dim, weight: Vector, bias: Vector) -> str | None:
    channels = _channels(c, input, "group_norm")
    dtype = parameters_fit(c, input, "group_norm", weight, bias)
    if c.since(2, 14):
        filled = all_of(ge(n, 1) for n in input.shape[1:])
        c.require(filled, f"group_norm takes samples with elements, and {input} has none")
    c.require(ge(groups, 1), f"group_norm takes one group or more, not {groups}")
    if groups != 0:
        c.require(divides(groups, channels), f"{channels} channels do not divide into {groups} groups")
    for name, vector in {"weight": weight, "bias": bias}.items():
        if vector is not None:
            fits = vector.rank == 1 and eq(vector.shape[0], channels)
            c.require(fits, f"{name} of group_norm must hold {channels} numbers, and is {vector}")
    return dtype


def native_group_norm(
    c: Context,
    input: Tensor,
    weight: Vector,
    bias: Vector,
    N: Dim,
    C: Dim,
    HxW: Dim,
    group: Dim,
    eps: float = 1e-5,
) -> tuple[Tensor, Tensor, Tensor]:
    """A tensor of n*c*s numbers, contiguous before torch 2.14, twice [c] -> the same shape, [n, g], [n, g]

    From torch 2.15 on, nothing is computed of no samples, and the tensor may have any numbers.
    """
    dtype = _grouped(c, Tensor((N, C, HxW), input.dtype), group, weight, bias)
    nothing = c.since(2, 15) and eq(N, 0)
    told = f"native_group_norm of {input} is said to be {N} * {C} * {HxW}"
    c.require(any_of((nothing, eq(input.numel, N * C * HxW))), told)
    layout = suggested_layout(c, input)
    if not c.since(2, 14):
        _as_suggested(c, input, layout)
    statistics = Tensor((N, group), dtype)
    return Tensor(input.shape, input.dtype, layout), statistics, statistics


def _as_suggested(c: Context, input: Tensor, layout: Layout | Strides) -> None:
    """Requires that native_group_norm need not copy its input."""
    strides = strides_of(input)
    if strides is None or layout is Layout.UNKNOWN:
        reason = "native_group_norm takes contiguous tensors only, and the layout is not known here"
        c.approximate(reason, "accept")
    else:
        expected = layout if isinstance(layout, tuple) else contiguous_strides(input.shape)
        dense = any_of((eq(input.numel, 0), lies_so(input.shape, strides, expected)))
        c.require(dense, f"native_group_norm takes contiguous tensors only, not one of strides {strides}")


# One mean per position, over the trailing axes.


def _trailing(
    c: Context, input: Tensor, normalized_shape: Value, weight: Vector, bias: Vector, operation: str
) -> Shape:
    """[*a, *k], k and twice [*k] -> [*a, 1, …]: the shape of the statistics"""
    if not isinstance(normalized_shape, tuple):
        c.refuse(f"{operation} takes its normalized_shape as a tuple, not {normalized_shape}")
    sizes: Shape = normalized_shape  # type: ignore[assignment]
    count = len(sizes)
    if not count:
        c.refuse(f"{operation} normalises over one trailing axis or more, not over none")
    for name, vector in {"weight": weight, "bias": bias}.items():
        if vector is not None:
            if vector.rank != count:
                c.refuse(f"{name} of {operation} must have the shape {list(sizes)}, and is {vector}")
            for have, want in zip(vector.shape, sizes, strict=True):
                c.require(
                    eq(have, want),
                    f"{name} of {operation} must have the shape {text(sizes)}, and is {vector}",
                )
    if input.rank < count:
        c.refuse(f"{operation} over {text(sizes)} takes an input of rank {count} or more, not {input}")
    for have, want in zip(input.shape[-count:], sizes, strict=True):
        c.require(eq(have, want), f"{operation} over {text(sizes)} takes an input that ends so, not {input}")
    return (*input.shape[:-count], *(1,) * count)


def layer_norm(
    c: Context, input: Tensor, normalized_shape: Value, weight: Vector = None, bias: Vector = None,
    eps: float = 1e-5, cudnn_enable: Value = None,
) -> Tensor:  # fmt: skip
    """[*a, *k], twice [*k] -> [*a, *k], contiguous"""
    return native_layer_norm(c, input, normalized_shape, weight, bias, eps)[0]


def native_layer_norm(
    c: Context,
    input: Tensor,
    normalized_shape: Value,
    weight: Vector = None,
    bias: Vector = None,
    eps: float = 1e-5,
) -> tuple[Tensor, Tensor, Tensor]:
    """[*a, *k], twice [*k] -> [*a, *k], mean and inverse deviation: [*a, 1, …]"""
    shape = _trailing(c, input, normalized_shape, weight, bias, "layer_norm")
    statistics = Tensor(shape, parameters_fit(c, input, "layer_norm", weight, bias))
    return Tensor(input.shape, input.dtype), statistics, statistics


def rms_norm(
    c: Context, input: Tensor, normalized_shape: Value, weight: Vector = None, eps: float | None = None
) -> Tensor:
    """[*a, *k], [*k] -> [*a, *k]; any dtype of the weight will do. The result lies as a contiguous copy of
    the input does, in the format that is suggested.
    """
    _trailing(c, input, normalized_shape, weight, None, "rms_norm")
    layout = suggested_layout(c, input)
    if layout is Layout.CONTIGUOUS:  # as the input itself lies where it needs no copy
        layout = copied_if_needed(c, input).layout
    return Tensor(input.shape, apply_law(c, "xx==", input.dtype, "rms_norm"), layout)


def fused_rms_norm(
    c: Context, input: Tensor, normalized_shape: Value, weight: Vector = None, eps: float | None = None
) -> tuple[Tensor, Tensor]:
    """[*a, *k], [*k] -> [*a, *k], inverse root mean square: [*a, 1, …]"""
    shape = _trailing(c, input, normalized_shape, weight, None, "rms_norm")
    result = rms_norm(c, input, normalized_shape, weight)
    return result, Tensor(
        shape, None if input.dtype in ("float16", "bfloat16") else result.dtype, Layout.UNKNOWN
    )


# Neighbouring channels.


def local_response_norm(
    c: Context, input: Tensor, size: Dim, alpha: Value = 1e-4, beta: Value = 0.75, k: Value = 1.0
) -> Tensor:
    """[n, c, *s] -> [n, c, *s] by the mean square of `size` channels, size >= 1.

    The axes after the third are seen as one, so their strides must allow it.
    """
    if input.rank < 3:
        c.refuse(f"local_response_norm takes a tensor of rank 3 or more, not {input.rank}")
    empty = is_empty(c, input.shape)
    c.require(any_of((ge(size, 1), empty)), f"local_response_norm takes one channel or more, not {size}")
    square = preserved(c, input.shape, input.layout)  # but for axes of size 1, which no view minds
    if input.rank > 4 and square is not Layout.CONTIGUOUS:
        strides = square if isinstance(square, tuple) else None
        if strides is None:
            reason = "local_response_norm sees the last axes as one, which depends on strides not known here"
            c.approximate(reason, "accept")
        else:
            merged = (*input.shape[:3], product(input.shape[3:]))
            possible = view_of(c, input.shape, strides, merged).possible
            c.require(any_of((possible, empty)), "local_response_norm cannot see the last axes as one")
    mean = Tensor(input.shape, input.dtype, Layout.UNKNOWN)
    dtype = apply_law(c, "xf=x", input.dtype, "local_response_norm")
    return Tensor(input.shape, dtype, pointwise_layout(c, (input, mean), input.shape))


# Weights with a direction and a length.


def norm_except_dim(c: Context, v: Tensor, pow: Value = 2, dim: int = 0) -> Tensor:
    """[*a, n, *b] -> [1, …, n, …, 1]; the dim -1 means no axis and gives []"""
    dtype = apply_law(c, "xx=r", v.dtype, "norm_except_dim")
    if dim == -1:
        return Tensor((), dtype)
    if not v.shape:
        c.refuse("norm_except_dim takes a tensor of rank 1 or more", IndexError)
    at = axis(c, dim, v.rank)
    if lacks_of_nothing(c, pow):
        others = (*v.shape[:at], *v.shape[at + 1 :])
        c.require(is_full(c, others), f"the {pow} norms of norm_except_dim need numbers, and {v} has none")
    c.require(ne(v.shape[at], 0), f"norm_except_dim takes elements along axis {at}, and {v} has none")
    return Tensor(tuple(n if i == at else 1 for i, n in enumerate(v.shape)), dtype)


def weight_norm(c: Context, v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """v: [*a, n, *b], g: [1, …, n, …, 1] -> [*a, n, *b]"""
    return weight_norm_interface(c, v, g, dim)[0]


def weight_norm_interface(c: Context, v: Tensor, g: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    """v: [*a, n, *b], g: [1, …, n, …, 1] -> [*a, n, *b] and the lengths of v, of the shape of g.

    The kernel for the first and the last axis reads g without a look at its size; less than n is refused
    here.
    """
    same_dtype(c, "weight_norm", v, g)
    length = norm_except_dim(c, v, 2, dim)
    if dim in (0, v.rank - 1):
        c.require(
            ge(g.numel, length.numel), f"weight_norm takes a length for each of {length.numel}, not {g}"
        )
        return Tensor(v.shape, v.dtype), Tensor(g.shape, length.dtype)
    return pointwise(c, "====", Tensor(v.shape, v.dtype), pointwise(c, "====", g, length)), length


RULES: Final[dict[str, RuleFunction]] = {
    "_batch_norm_no_update": batch_norm_of(False),
    "_batch_norm_with_update": batch_norm_of(True),
    "_batch_norm_with_update_functional": batch_norm_of(True, statistics=True),
    "_fused_rms_norm": fused_rms_norm,
    "_native_batch_norm_legit": native_batch_norm,
    "_native_batch_norm_legit_functional": native_batch_norm_functional,
    "_native_batch_norm_legit_no_training": batch_norm_of(False, reserve=False),
    "_weight_norm": weight_norm,
    "_weight_norm_interface": weight_norm_interface,
    "batch_norm": batch_norm,
    "group_norm": group_norm,
    "instance_norm": instance_norm,
    "layer_norm": layer_norm,
    "local_response_norm": local_response_norm,
    "native_batch_norm": native_batch_norm,
    "native_group_norm": native_group_norm,
    "native_layer_norm": native_layer_norm,
    "norm_except_dim": norm_except_dim,
    "rms_norm": rms_norm,
}
