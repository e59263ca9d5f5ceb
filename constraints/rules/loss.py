"""Losses and distances: a number per element, sample or position, and its mean or sum.

The functional forms say `reduction="mean"`, or `size_average` and `reduce` as they once did; ATen's say
`reduction=1`, in the position of `size_average`. Laws of dtypes are those of `elementwise`.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from ..engine.memory import is_contiguous
from ..engine.ruleset import RuleFunction
from ..ir.language import Context, Layout, Shape, Tensor, Value
from ..terms.dims import Dim, Term, maximum, total
from ..terms.formula import Formula, all_of, any_of, eq, ge, le, lt, ne
from .common import axis, broadcast, category, promote
from .elementwise import apply_law, pointwise, same_dtype, sub
from .layout import empty
from .linalg import linear
from .numbers import equals, lacks_of_nothing, less, require_number, unless
from .reduction import not_empty, reduced
from .strides import preserved

Weight = Tensor | None
MODES: Final = ("none", "mean", "sum")
FLOATING: Final = "xx=x"


def mode_of(c: Context, size_average: Value, reduce: Value, reduction: Value) -> str:
    """`none`, `mean` or `sum`, however the call says it."""
    numbers = (n for n in (size_average, reduce) if isinstance(n, int) and not isinstance(n, bool))
    if (number := next(numbers, None)) is not None:
        size_average, reduce, reduction = None, None, number
    if size_average is not None or reduce is not None:
        return "none" if reduce is False else "sum" if size_average is False else "mean"
    if isinstance(reduction, int) and 0 <= reduction < len(MODES):
        return MODES[reduction]
    if reduction == "elementwise_mean":
        return "mean"
    if reduction not in MODES:
        c.refuse(f"{reduction!r} is not a reduction; a loss has 'none', 'mean' and 'sum'")
    return str(reduction)


def finish(c: Context, mode: str, losses: Tensor) -> Tensor:
    """[*a] -> [*a], or [] for their mean or sum; integers have no mean"""
    if mode == "none":
        return losses
    return Tensor(
        (), apply_law(c, "xx==", losses.dtype, "the mean of a loss") if mode == "mean" else losses.dtype
    )


def same_shape(c: Context, a: Tensor, b: Tensor, reason: str) -> None:
    """The shapes are equal, size by size."""
    if a.rank != b.rank:
        c.refuse(f"{reason}: {a} and {b}")
    for m, n in zip(a.shape, b.shape, strict=True):
        c.require(eq(m, n), f"{reason}: {a} and {b}")


def fits_into(c: Context, part: Tensor, whole: Shape, reason: str) -> None:
    """The part broadcasts to the whole, which keeps its shape."""
    if part.rank > len(whole):
        c.refuse(f"{reason}: {part}")
    for have, want in zip(reversed(part.shape), reversed(whole), strict=False):
        c.require(any_of((eq(have, want), eq(have, 1))), f"{reason}: {part}")


def _laid_out(operands: Iterable[Value]) -> Layout:
    """Returns the layout of a result: contiguous where the operands are, else unknown."""
    tensors = [o for o in operands if isinstance(o, Tensor)]
    return Layout.CONTIGUOUS if all(is_contiguous(t) for t in tensors) else Layout.UNKNOWN


# A loss for each element.


def mse_loss(
    c: Context, input: Tensor, target: Tensor, size_average: Value = None, reduce: Value = None,
    reduction: Value = "mean", weight: Weight = None,
) -> Tensor:  # fmt: skip
    """[*a], [*b], weight: [*a] -> [*broadcast(a, b)], reduced"""
    losses = pointwise(c, FLOATING, input, target, operation="mse_loss")
    return finish(c, mode_of(c, size_average, reduce, reduction), _weighted(c, losses, input, weight))


def _weighted(c: Context, losses: Tensor, input: Tensor, weight: Weight) -> Tensor:
    if weight is None:
        return losses
    same_shape(c, weight, input, "the weights of a loss must have the shape of its input")
    return pointwise(c, "====", losses, weight)


def l1_loss(
    c: Context, input: Tensor, target: Tensor, size_average: Value = None, reduce: Value = None,
    reduction: Value = "mean", weight: Weight = None,
) -> Tensor:  # fmt: skip
    """[*a], [*b], weight: [*a] -> [*broadcast(a, b)], reduced"""
    difference = sub(c, input, target)
    assert isinstance(difference, Tensor)
    losses = Tensor(difference.shape, apply_law(c, "x==r", difference.dtype, "l1_loss"), difference.layout)
    return finish(c, mode_of(c, size_average, reduce, reduction), _weighted(c, losses, input, weight))


def smooth_l1_loss(
    c: Context, input: Tensor, target: Tensor, size_average: Value = None, reduce: Value = None,
    reduction: Value = "mean", beta: Value = 1.0,
) -> Tensor:  # fmt: skip
    """[*a], [*b] -> [*broadcast(a, b)], reduced; with beta == 0 it is l1_loss"""
    if beta == 0:
        return l1_loss(c, input, target, size_average, reduce, reduction)
    losses = pointwise(c, FLOATING, input, target, operation="smooth_l1_loss")
    return finish(c, mode_of(c, size_average, reduce, reduction), losses)


def huber_loss(
    c: Context, input: Tensor, target: Tensor, reduction: Value = "mean", delta: Value = 1.0,
    weight: Weight = None,
) -> Tensor:  # fmt: skip
    """[*a], [*b], weight: [*a] -> [*broadcast(a, b)], reduced; the dtype is that of the input"""
    losses = pointwise(c, FLOATING, input, target, operation="huber_loss")
    alike = losses.shape == input.shape  # then the memory is made like that of the input, else for the result
    layout = preserved(c, input.shape, input.layout) if alike else losses.layout
    losses = Tensor(losses.shape, apply_law(c, FLOATING, input.dtype, "huber_loss"), layout)
    return finish(c, mode_of(c, None, None, reduction), _weighted(c, losses, input, weight))


def binary_cross_entropy(
    c: Context, input: Tensor, target: Tensor, weight: Weight = None, size_average: Value = None,
    reduce: Value = None, reduction: Value = "mean",
) -> Tensor:  # fmt: skip
    """[*a], [*b], weight: [*c] -> [*a], reduced, where c broadcasts to a.

    Without their sizes of 1, a and b broadcast. (Python's function wants them to be equal.)
    """
    apply_law(c, FLOATING, input.dtype, "binary_cross_entropy")
    same_dtype(c, "binary_cross_entropy", input, target)
    if input.shape != target.shape:
        broadcast(c, *(_squeezed(c, t.shape) for t in (input, target)))
    if weight is not None:
        fits_into(c, weight, input.shape, f"weights of binary_cross_entropy must broadcast to {input}")
    losses = Tensor(input.shape, input.dtype, _laid_out((input, target)))
    return finish(c, mode_of(c, size_average, reduce, reduction), losses)


def _squeezed(c: Context, shape: Shape) -> Shape:
    """[*a] -> its sizes other than 1"""
    return tuple(n for n in shape if c.at_least(n, 2) or not c.choose(eq(n, 1), "which sizes are 1"))


def binary_cross_entropy_with_logits(
    c: Context, input: Tensor, target: Tensor, weight: Weight = None, size_average: Value = None,
    reduce: Value = None, reduction: Value = "mean", pos_weight: Weight = None,
) -> Tensor:  # fmt: skip
    """[*a], [*b], two weights: [*c], [*d] -> [*b], reduced, where a, c and d broadcast to b.

    The dtype is that of the target. ATen has pos_weight before the reduction.
    """
    if isinstance(size_average, Tensor):
        size_average, pos_weight = None, size_average
    apply_law(c, FLOATING, input.dtype, "binary_cross_entropy_with_logits")
    dtype = apply_law(c, "xx==", target.dtype, "the target of binary_cross_entropy_with_logits")
    for operand, name in ((input, "inputs"), (weight, "weights"), (pos_weight, "weights")):
        if operand is not None:
            fits_into(c, operand, target.shape, f"{name} of binary_cross_entropy must broadcast to {target}")
    losses = Tensor(target.shape, dtype, _laid_out((input, target)))
    return finish(c, mode_of(c, size_average, reduce, reduction), losses)


def kl_div(
    c: Context, input: Tensor, target: Tensor, size_average: Value = None, reduce: Value = None,
    reduction: Value = "mean", log_target: Value = False,
) -> Tensor:  # fmt: skip
    """[*a], [*b] -> [*broadcast(a, b)], reduced; 'batchmean' is the sum over the batch size"""
    for operand in (input, target):
        apply_law(c, FLOATING, operand.dtype, "kl_div")
    losses = pointwise(c, FLOATING, input, target)
    losses = Tensor(losses.shape, losses.dtype, _laid_out((input, target)))
    if reduction == "batchmean" and size_average is None and reduce is None:
        return finish(c, "sum", losses)
    return finish(c, mode_of(c, size_average, reduce, reduction), losses)


def hinge_embedding_loss(
    c: Context, input: Tensor, target: Tensor, margin: Value = 1.0, size_average: Value = None,
    reduce: Value = None, reduction: Value = "mean",
) -> Tensor:  # fmt: skip
    """[*a], [*b] -> [*broadcast(a, b)], reduced; the dtype is that of the input"""
    dtype = apply_law(c, "x==x", input.dtype, "hinge_embedding_loss")
    losses = Tensor(broadcast(c, input.shape, target.shape), dtype, _laid_out((input, target)))
    return finish(c, mode_of(c, size_average, reduce, reduction), losses)


def poisson_nll_loss(
    c: Context, input: Tensor, target: Tensor, log_input: Value = True, full: Value = False,
    size_average: Value = None, eps: Value = 1e-8, reduce: Value = None, reduction: Value = "mean",
) -> Tensor:  # fmt: skip
    """[*a], [*b] -> [*broadcast(a, b)], reduced; ATen has eps and the reduction after `full`"""
    if size_average is not None and not isinstance(size_average, bool):
        size_average, reduction = None, eps
    # exp(input) - target * input, or input - target * log(input); booleans are not subtracted.
    exponential = Tensor(input.shape, apply_law(c, "ff==", input.dtype, "poisson_nll_loss"), input.layout)
    product = pointwise(c, "====", target, exponential if log_input is False else input)
    minuend, subtrahend = (input, product) if log_input is False else (exponential, product)
    difference = sub(c, minuend, subtrahend)
    if full is True and target.dtype in ("uint16", "uint32", "uint64"):  # 1 is compared with the target
        c.require(empty(c, target.shape), f"le does not take {target.dtype}", NotImplementedError)
    losses = pointwise(c, FLOATING if full is True else "xx==", difference, operation="poisson_nll_loss")
    return finish(c, mode_of(c, size_average, reduce, reduction), losses)


def soft_margin_loss(
    c: Context, input: Tensor, target: Tensor, size_average: Value = None, reduce: Value = None,
    reduction: Value = "mean",
) -> Tensor:  # fmt: skip
    """[*a], [*b] -> [*a], reduced, where b broadcasts to a"""
    dtype = apply_law(c, "xx==", input.dtype, "soft_margin_loss")
    if target.dtype is not None and dtype is not None and category(target.dtype) > category(dtype):
        c.refuse(f"soft_margin_loss of {dtype} does not take a target of {target.dtype}")
    fits_into(c, target, input.shape, f"the target of soft_margin_loss must broadcast to {input}")
    losses = Tensor(input.shape, dtype, _laid_out((input, target)))
    return finish(c, mode_of(c, size_average, reduce, reduction), losses)


def margin_ranking_loss(
    c: Context, input1: Tensor, input2: Tensor, target: Tensor, margin: Value = 0.0,
    size_average: Value = None, reduce: Value = None, reduction: Value = "mean",
) -> Tensor:  # fmt: skip
    """[*a], [*b], [*c] -> [*broadcast(a, b, c)], reduced; of one rank, but for the ATen form"""
    aten = any(isinstance(r, int) and not isinstance(r, bool) for r in (size_average, reduction))
    if not aten and not input1.rank == input2.rank == target.rank:
        c.refuse(f"margin_ranking_loss takes tensors of one rank, not {input1}, {input2} and {target}")
    apply_law(c, "x===", target.dtype, "margin_ranking_loss")
    difference = sub(c, input1, input2)
    losses = pointwise(c, "xf=x", target, difference, operation="margin_ranking_loss")
    return finish(c, mode_of(c, size_average, reduce, reduction), losses)


def gaussian_nll_loss(
    c: Context, input: Tensor, target: Tensor, var: Value, full: Value = False, eps: Value = 1e-6,
    reduction: Value = "mean",
) -> Tensor:  # fmt: skip
    """[*a], [*b], var: [*a], or [*a] without its last axis, or with a 1 on one axis -> [*broadcast(a, b)]"""
    operands: tuple[Tensor, ...] = (input, target)
    if isinstance(var, Tensor):
        apply_law(c, FLOATING, var.dtype, "the variance of gaussian_nll_loss")
        operands = (*operands, _variance(c, input, var))
    elif not isinstance(var, float):
        c.refuse(f"gaussian_nll_loss takes a variance that is a tensor or a float, not {var}")
    losses = pointwise(c, "xf=x", *operands, operation="gaussian_nll_loss")
    losses = Tensor(losses.shape, losses.dtype, _laid_out(operands))
    if reduction not in MODES:
        c.refuse(f"{reduction!r} is not a reduction; a loss has 'none', 'mean' and 'sum'")
    return finish(c, str(reduction), losses)


def _variance(c: Context, input: Tensor, var: Tensor) -> Tensor:
    """The variance as it is broadcast. Of the sizes that differ from the input's, the sum must be 1."""
    reason = f"the variance of gaussian_nll_loss must have the shape of {input}, but for one axis, not {var}"
    if var.rank == input.rank - 1:
        for have, want in zip(var.shape, input.shape, strict=False):
            c.require(eq(have, want), reason)
        return Tensor((*var.shape, 1), var.dtype, var.layout)
    if var.rank != input.rank:
        c.refuse(reason)
    pairs = list(zip(var.shape, input.shape, strict=True))
    one_differs = (
        all_of(
            all_of((eq(have, 1), ne(want, 1))) if j == i else any_of((eq(have, want), eq(have, 0)))
            for j, (have, want) in enumerate(pairs)
        )
        for i in range(len(pairs))
    )
    c.require(any_of((all_of(eq(have, want) for have, want in pairs), *one_differs)), reason)
    return var


# A loss for each sample.


def cross_entropy(
    c: Context, input: Tensor, target: Tensor, weight: Weight = None, size_average: Value = None,
    ignore_index: Value = -100, reduce: Value = None, reduction: Value = "mean", label_smoothing: Value = 0.0,
) -> Tensor:  # fmt: skip
    """[n, c, *s], classes [n, *s] or probabilities [n, c, *s] -> [n, *s], reduced; or [c], [] or [c] -> []"""
    mode = mode_of(c, size_average, reduce, reduction)
    told = f"label_smoothing must be at most 1, not {label_smoothing}"
    require_number(c, unless(less(1, label_smoothing)), told)
    floating = target.dtype is not None and category(target.dtype) == 2
    if not floating and target.rank == input.rank > 1:
        apply_law(c, FLOATING, target.dtype, "cross_entropy with a target of the input's rank")
    apply_law(c, FLOATING, input.dtype, "cross_entropy")
    if not input.shape:
        c.refuse("cross_entropy takes an input of rank 1 or more")
    if target.rank == input.rank and (floating or input.rank > 1):
        if isinstance(ignore_index, int | Term):
            c.require(lt(ignore_index, 0), "cross_entropy of probabilities has no class to ignore")
        _one_batch(c, input, target, "cross_entropy")
        return finish(c, mode, _probabilities(c, input, target, weight))
    if target.rank == input.rank:
        # A target of one class for a vector of one class is taken for probabilities, which are not integers.
        c.require(
            ne(input.shape[0], 1), f"cross_entropy takes {target} for the probability of a single class"
        )
        if label_smoothing:
            c.refuse(f"cross_entropy of a vector with label_smoothing takes a target of rank 0, not {target}")
    _one_batch(c, input, target, "cross_entropy")
    return finish(c, mode, _classes(c, input, target, weight, "cross_entropy"))


def _probabilities(c: Context, input: Tensor, target: Tensor, weight: Weight) -> Tensor:
    """[n, c, *s], [n, c, *s], weight: [c] -> [n, *s]"""
    apply_law(c, FLOATING, target.dtype, "cross_entropy with a target of the input's rank")
    same_shape(c, input, target, "cross_entropy with probabilities takes a target of the shape of its input")
    at = 0 if input.rank == 1 else 1
    if weight is not None:
        _class_weights(c, weight, input.shape[at], 1, "cross_entropy")
    return Tensor(reduced(input.shape, (at,), False), promote((input, target)))


def _one_batch(c: Context, input: Tensor, target: Tensor, operation: str) -> None:
    """Requires as many targets as samples; torch checks this before anything else."""
    if input.rank > 1 and target.shape:
        sizes = f"{input.shape[0]} samples and {target.shape[0]} targets"
        c.require(eq(input.shape[0], target.shape[0]), f"{operation} of {sizes}", ValueError)


def _class_weights(c: Context, weight: Tensor, classes: Dim, rank: int | None, operation: str) -> None:
    fits = rank in (None, weight.rank) and eq(weight.numel, classes)
    c.require(
        fits, f"the weight of {operation} must hold a number for each of {classes} classes, and is {weight}"
    )


def _classes(c: Context, input: Tensor, target: Tensor, weight: Weight, operation: str) -> Tensor:
    """[n, c, *s], classes [n, *s], weight: [c] -> [n, *s]; [c], [] or [1] -> []"""
    rows = input.rank < 3
    if target.dtype is not None and target.dtype not in (("int64", "uint8") if rows else ("int64",)):
        c.refuse(f"{operation} takes classes of int64, not {target.dtype}")
    if weight is not None:
        same_dtype(c, f"{operation} with a weight", input, weight)
        # Images are not asked for the rank of their weight.
        _class_weights(c, weight, input.shape[0 if input.rank == 1 else 1], 1 if rows else None, operation)
    if input.rank == 1:
        if target.rank > 1:
            c.refuse(f"{operation} of {input} takes a target of rank 0 or 1, not {target}")
        c.require(eq(target.numel, 1), f"{operation} of {input} takes one class, not {target}")
        return Tensor((), input.dtype)
    wanted = (input.shape[0], *input.shape[2:])
    if target.rank != len(wanted):
        c.refuse(f"{operation} of {input} takes a target of rank {len(wanted)}, not {target}")
    for have, want in zip(target.shape, wanted, strict=True):
        c.require(
            eq(have, want), f"{operation} of {input} takes a class per position, and the target is {target}"
        )
    if input.rank not in (2, 4):  # these alone have kernels of their own, others are viewed as 4
        some = any_of((ge(input.shape[1], 1), eq(target.numel, 0)))
        c.require(some, f"{operation} of {input} has no classes for {target}")
    return Tensor(wanted, input.dtype)


def nll_loss(
    c: Context, input: Tensor, target: Tensor, weight: Weight = None, size_average: Value = None,
    ignore_index: Value = -100, reduce: Value = None, reduction: Value = "mean",
) -> Tensor:  # fmt: skip
    """[n, c, *s], classes [n, *s], weight: [c] -> [n, *s], reduced; without a batch [c], [] or [1]"""
    mode = mode_of(c, size_average, reduce, reduction)
    apply_law(c, FLOATING, input.dtype, "nll_loss")
    if not input.shape:
        c.refuse("nll_loss takes an input of rank 1 or more")
    return finish(c, mode, _classes(c, input, target, weight, "nll_loss"))


def nll_loss_nd(
    c: Context, input: Tensor, target: Tensor, weight: Weight = None, reduction: Value = "mean",
    ignore_index: Value = -100,
) -> Tensor:  # fmt: skip
    """[n, c, *s], classes [n, *s], weight: [c] -> [n, *s], reduced; without a batch [c], [] or [1]"""
    if not input.shape:
        c.refuse("nll_loss takes an input of rank 1 or more", ValueError)
    _one_batch(c, input, target, "nll_loss")
    if input.rank == target.rank == 1:
        c.require(eq(target.shape[0], 1), f"nll_loss of one sample takes one class, not {target}", ValueError)
    return nll_loss(c, input, target, weight, None, ignore_index, None, reduction)


def cross_entropy_loss(
    c: Context, input: Tensor, target: Tensor, weight: Weight = None, reduction: Value = "mean",
    ignore_index: Value = -100, label_smoothing: Value = 0.0,
) -> Tensor:  # fmt: skip
    """[n, c, *s], classes [n, *s] or probabilities [n, c, *s] -> [n, *s], reduced"""
    return cross_entropy(c, input, target, weight, None, ignore_index, None, reduction, label_smoothing)


def nll_loss_forward(
    c: Context, input: Tensor, target: Tensor, weight: Weight, reduction: Value, ignore_index: Value = -100
) -> tuple[Tensor, Tensor]:
    """[n, c, *s], classes [n, *s], weight: [c] -> [n, *s], reduced, and the total weight: []"""
    losses = nll_loss(c, input, target, weight, None, ignore_index, None, reduction)
    return losses, Tensor((), losses.dtype)


def multi_margin_loss(
    c: Context, input: Tensor, target: Tensor, p: Value = 1, margin: Value = 1.0, weight: Weight = None,
    size_average: Value = None, reduce: Value = None, reduction: Value = "mean",
) -> Tensor:  # fmt: skip
    """[n, c], classes [n], weight: [c] -> [n], reduced; [c] or [] is one sample, and c >= 1"""
    require_number(c, equals(p, 1, 2), f"multi_margin_loss takes p = 1 or 2, not {p}", ValueError)
    count, classes = _samples(c, input, "multi_margin_loss")
    apply_law(c, FLOATING, input.dtype, "multi_margin_loss")
    _margins_int64(c, target, "multi_margin_loss")
    if weight is not None:
        same_dtype(c, "multi_margin_loss with a weight", input, weight)
        _class_weights(c, weight, classes, 1, "multi_margin_loss")
    if target.rank > 1:
        c.refuse(f"multi_margin_loss takes a target of rank 1, not {target}")
    c.require(eq(target.numel, count), f"multi_margin_loss of {input} takes {count} classes, not {target}")
    return finish(c, mode_of(c, size_average, reduce, reduction), Tensor(target.shape, input.dtype))


def _samples(c: Context, input: Tensor, operation: str) -> tuple[Dim, Dim]:
    """[n, c] -> n, c >= 1; without a batch n is 1"""
    if input.rank > 2:
        c.refuse(f"{operation} takes an input of rank 2 at most, not {input}")
    classes = input.shape[-1] if input.shape else 1
    c.require(ne(classes, 0), f"{operation} takes one class or more, and {input} has none")
    return input.shape[0] if input.rank == 2 else 1, classes


def _int64(c: Context, target: Tensor, operation: str) -> None:
    if target.dtype not in ("int64", None):
        c.refuse(f"{operation} takes classes of int64, not {target.dtype}")


def _margins_int64(c: Context, target: Tensor, operation: str) -> None:
    """Requires classes of int64 where there are any: kernels of no samples do not look at their dtype."""
    if target.dtype not in ("int64", None):
        c.require(eq(target.numel, 0), f"{operation} takes classes of int64, not {target.dtype}")


def multilabel_margin_loss(
    c: Context, input: Tensor, target: Tensor, size_average: Value = None, reduce: Value = None,
    reduction: Value = "mean",
) -> Tensor:  # fmt: skip
    """[n, c], classes [n, c] -> [n], reduced; [c], [c] -> [], and c >= 1"""
    _, classes = _samples(c, input, "multilabel_margin_loss")
    apply_law(c, FLOATING, input.dtype, "multilabel_margin_loss")
    _margins_int64(c, target, "multilabel_margin_loss")
    if input.rank == 2:
        same_shape(c, input, target, "multilabel_margin_loss takes a target of the shape of its input")
    elif target.rank > 1:
        c.refuse(f"multilabel_margin_loss of {input} takes a target of rank 1, not {target}")
    else:
        c.require(
            eq(target.numel, classes),
            f"multilabel_margin_loss of {input} takes {classes} classes, not {target}",
        )
    return finish(c, mode_of(c, size_average, reduce, reduction), Tensor(input.shape[:-1], input.dtype))


def multilabel_margin_loss_forward(
    c: Context, input: Tensor, target: Tensor, reduction: Value
) -> tuple[Tensor, Tensor]:
    """[n, c], classes [n, c] -> [n], reduced, and a mask of the classes that are targets: [n, c]"""
    return multilabel_margin_loss(c, input, target, None, None, reduction), Tensor(target.shape, input.dtype)


def multilabel_soft_margin_loss(
    c: Context, input: Tensor, target: Tensor, weight: Weight = None, size_average: Value = None,
    reduce: Value = None, reduction: Value = "mean",
) -> Tensor:  # fmt: skip
    """[*a, c], [*b], weight: [*w] -> [*broadcast(a c, b, w)] without the axis of c, reduced"""
    if not input.shape:
        c.refuse("multilabel_soft_margin_loss takes an input of rank 1 or more")
    apply_law(c, FLOATING, input.dtype, "multilabel_soft_margin_loss")
    apply_law(c, "x===", target.dtype, "multilabel_soft_margin_loss")
    losses = pointwise(c, "====", *(t for t in (input, target, weight) if t is not None))
    # The position of the axis is counted in the input, and the sum is over that of the broadcast shape.
    shape = reduced(losses.shape, (input.rank - 1,), False)
    return finish(c, mode_of(c, size_average, reduce, reduction), Tensor(shape, losses.dtype))


def ctc_loss(
    c: Context, log_probs: Tensor, targets: Tensor, input_lengths: Value, target_lengths: Value,
    blank: Dim = 0, reduction: Value = "mean", zero_infinity: Value = False,
) -> Tensor:  # fmt: skip
    """[t, n, c], targets [n, s] or one after the other, 2n lengths -> [n], reduced; [t, c] is one sample.

    Lengths in tensors are data, which may be wrong; lengths that are given as numbers are checked.
    """
    dtype = apply_law(c, FLOATING, log_probs.dtype, "ctc_loss")
    batched = log_probs.rank == 3
    if log_probs.rank not in (2, 3):
        c.refuse(f"ctc_loss takes log_probs of rank 3, [t, n, c], or 2, not {log_probs}")
    for size in log_probs.shape:
        c.require(ne(size, 0), f"ctc_loss takes log_probs with elements, and {log_probs} has none")
    steps, classes = log_probs.shape[0], log_probs.shape[-1]
    batch: Dim = log_probs.shape[1] if batched else 1
    if targets.rank not in (1, 2):
        c.refuse(f"ctc_loss takes targets of rank 2 or 1, not {targets}")
    c.require(
        all_of((ge(blank, 0), ge(classes, blank + 1))), f"the blank of {classes} classes cannot be {blank}"
    )
    if targets.rank == 2:
        c.require(eq(targets.shape[0], batch), f"ctc_loss takes targets for {batch} samples, not {targets}")
    if isinstance(input_lengths, Tensor) is not isinstance(target_lengths, Tensor):
        c.refuse("ctc_loss takes both lengths as tensors, or none of them")
    for name, lengths in (("input_lengths", input_lengths), ("target_lengths", target_lengths)):
        if isinstance(lengths, Tensor):
            apply_law(c, "x=xx", lengths.dtype, f"{name} of ctc_loss")
            c.require(
                eq(lengths.numel, batch), f"{name} of ctc_loss must hold {batch} numbers, and is {lengths}"
            )
        elif isinstance(lengths, tuple):
            c.require(
                eq(len(lengths), batch),
                f"{name} of ctc_loss must hold {batch} numbers, and has {len(lengths)}",
            )
            limit = steps if name == "input_lengths" else targets.shape[1] if targets.rank == 2 else None
            _lengths_fit(c, name, lengths, limit)
    if targets.rank == 1 and isinstance(target_lengths, tuple):
        sum_of = total(target_lengths)  # type: ignore[arg-type]
        c.require(
            eq(targets.shape[0], sum_of), f"the targets of ctc_loss must hold {sum_of} classes, not {targets}"
        )
    return finish(c, mode_of(c, None, None, reduction), Tensor((batch,) if batched else (), dtype))


def ctc_loss_forward(
    c: Context, log_probs: Tensor, targets: Tensor, input_lengths: Value, target_lengths: Value,
    blank: Dim = 0, zero_infinity: Value = False,
) -> tuple[Tensor, Tensor]:
    """[t, n, c], targets, lengths -> [n], and for the derivative [n, t, 2*s + 1], s the longest target"""
    losses = ctc_loss(c, log_probs, targets, input_lengths, target_lengths, blank, "none")
    if isinstance(target_lengths, tuple) and target_lengths:
        longest: Dim = maximum(*target_lengths)  # type: ignore[arg-type]
    else:
        longest = c.fresh("longest", 0, targets.shape[-1])
    steps = log_probs.shape[0]
    batch = log_probs.shape[1:-1]
    return losses, Tensor((*batch, steps, 2 * longest + 1), losses.dtype, Layout.UNKNOWN)


def _scores(c: Context, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """[n, d], [k, d], [k] -> [n, k]"""
    scores = linear(c, input, weight, bias)
    if bias is not None:
        fits = eq(bias.numel, weight.shape[0])
        c.require(fits, f"the bias has {bias.numel} numbers for {weight.shape[0]} classes")
    return scores


def _some_class(c: Context, scores: Tensor) -> None:
    """A largest score is of one class or more, unless there are no samples."""
    some = any_of((ge(scores.shape[-1], 1), eq(scores.shape[0], 0)))
    c.require(some, "a cross entropy is of one class or more", IndexError)


def linear_cross_entropy_chunked(
    c: Context, input: Tensor, linear_weight: Tensor, target: Tensor, linear_bias: Tensor | None,
    weight: Tensor | None, reduction: str, ignore_index: Value, label_smoothing: Value,
    batch_chunk_size: Value, acc_policy: Value, acc_dtype: Value, allow_retain_graph: bool,
    compute_input_grad: bool, compute_linear_weight_grad: bool, compute_linear_bias_grad: bool,
) -> tuple[Tensor, ...]:
    """[n, d], [k, d], classes [n] or probabilities [n, k], [k], [k] -> [], and the derivatives asked for"""
    losses = linear_cross_entropy_each(
        c, input, linear_weight, target, linear_bias, weight, ignore_index, batch_chunk_size, acc_policy,
        acc_dtype,
    )  # fmt: skip
    if _holds_probabilities(c, target):
        _weighs(c, weight, input.shape[0], linear_weight.shape[0])
    return (
        finish(c, mode_of(c, None, None, reduction), losses),
        Tensor(input.shape if compute_input_grad else (0, 0), input.dtype),
        Tensor(linear_weight.shape if compute_linear_weight_grad else (0, 0), linear_weight.dtype),
        Tensor(linear_weight.shape[:-1] if compute_linear_bias_grad else (0,), linear_weight.dtype),
    )


def _holds_probabilities(c: Context, target: Tensor) -> bool:
    return c.since(2, 15) and target.dtype is not None and category(target.dtype) == 2


def _weighs(c: Context, weight: Tensor | None, count: Dim, classes: Dim, otherwise: Formula = False) -> None:
    """Requires one weight, or one for each class, unless there are no samples or something else holds."""
    if weight is not None:
        fits = weight.rank < 2 and any_of((eq(weight.numel, 1), eq(weight.numel, classes), otherwise))
        told = f"cross_entropy takes a weight for each of {classes} classes, not {weight}"
        c.require(any_of((eq(count, 0), fits)), told)


def linear_cross_entropy_each(
    c: Context, input: Tensor, linear_weight: Tensor, target: Tensor, linear_bias: Tensor | None,
    weight: Tensor | None, ignore_index: Value, batch_chunk_size: Value, acc_policy: Value, acc_dtype: Value,
) -> Tensor:
    """[n, d], [k, d], classes [n] or more, [k], numbers for the classes that occur -> [n]

    From torch 2.15 on the target may hold probabilities [n, k] of the dtype of the scores instead.
    """
    scores = _scores(c, input, linear_weight, linear_bias)
    apply_law(c, FLOATING, scores.dtype, "cross_entropy")
    count = scores.shape[0]
    if _holds_probabilities(c, target):
        if target.dtype != scores.dtype:
            c.refuse(f"probabilities of {target.dtype} do not fit scores of {scores.dtype}", TypeError)
        same_shape(c, scores, target, "cross_entropy with probabilities takes one for each score")
        _some_class(c, scores)
        _weighs(c, weight, count, scores.shape[-1], eq(scores.shape[-1], 1))
        return Tensor((count,), scores.dtype)
    _int64(c, target, "cross_entropy")
    told = f"cross_entropy takes a class for each of {count} samples, not {target}"
    if target.rank != 1:
        c.refuse(told)
    fits = ge(target.shape[0], count)
    # The classes of the first chunk are taken from the target before its scores are looked at.
    chunk = isinstance(batch_chunk_size, int | Term) and ge(target.shape[0], batch_chunk_size)
    c.require(any_of((fits, chunk)), told)
    _some_class(c, scores)
    c.require(fits, told)
    if weight is not None:
        c.require(weight.rank == 1, f"cross_entropy takes a vector of weights, not {weight}")
    return Tensor((count,), scores.dtype)


def _lengths_fit(c: Context, name: str, lengths: tuple[Any, ...], limit: Dim | None) -> None:
    for length in lengths:
        inside: Formula = all_of((ge(length, 0), True if limit is None else le(length, limit)))
        c.require(
            inside, f"{name} of ctc_loss run from 0{'' if limit is None else f' to {limit}'}, not to {length}"
        )


# Distances.


def cosine_similarity(c: Context, x1: Tensor, x2: Tensor, dim: int = 1, eps: Value = 1e-8) -> Tensor:
    """[*a], [*b] -> [*broadcast(a, b)] without one axis"""
    shape = broadcast(c, x1.shape, x2.shape)
    at = axis(c, dim, len(shape))
    return Tensor(
        reduced(shape, (at,), False), apply_law(c, FLOATING, promote((x1, x2)), "cosine_similarity")
    )


def pairwise_distance(
    c: Context, x1: Tensor, x2: Tensor, p: Value = 2.0, eps: Value = 1e-6, keepdim: Value = False
) -> Tensor:
    """[*a], [*b] -> [*broadcast(a, b)] without the last axis; a norm may need an element there"""
    difference = sub(c, x1, x2)
    assert isinstance(difference, Tensor)
    at = (difference.rank - 1,) if difference.shape else ()
    if lacks_of_nothing(c, p):
        not_empty(c, difference, at, "pairwise_distance", RuntimeError)
    dtype = apply_law(c, "xf=r", difference.dtype, "pairwise_distance")
    return Tensor(reduced(difference.shape, at, keepdim), dtype)


def cosine_embedding_loss(
    c: Context, input1: Tensor, input2: Tensor, target: Tensor, margin: Value = 0.0,
    size_average: Value = None, reduce: Value = None, reduction: Value = "mean",
) -> Tensor:  # fmt: skip
    """[n, k], [n, k], target [n] -> [n], reduced; [k], [k], [] -> []"""
    if target.rank > 1:
        c.refuse(f"cosine_embedding_loss takes a target of rank 0 or 1, not {target}")
    if not input1.rank == input2.rank == target.rank + 1:
        c.refuse(
            f"cosine_embedding_loss with {target} takes rank {target.rank + 1}, not {input1} and {input2}"
        )
    shape = broadcast(c, broadcast(c, input1.shape, input2.shape)[:-1], target.shape)
    dtype = apply_law(c, "ff=x", promote((input1, input2)), "cosine_embedding_loss")
    losses = Tensor(shape, dtype, _laid_out((input1, input2, target)))
    return finish(c, mode_of(c, size_average, reduce, reduction), losses)


def triplet_margin_loss(
    c: Context, anchor: Tensor, positive: Tensor, negative: Tensor, margin: Value = 1.0, p: Value = 2.0,
    eps: Value = 1e-6, swap: Value = False, size_average: Value = None, reduce: Value = None,
    reduction: Value = "mean",
) -> Tensor:  # fmt: skip
    """[*a], [*b], [*c] of one rank -> [*broadcast(a, b, c)] without the last axis, reduced"""
    told = f"the margin of triplet_margin_loss must be greater than 0, not {margin}"
    require_number(c, unless(less(margin, 0, or_equal=True)), told, ValueError)
    if not anchor.rank == positive.rank == negative.rank:
        c.refuse(f"triplet_margin_loss takes tensors of one rank, not {anchor}, {positive} and {negative}")
    distances = [pairwise_distance(c, anchor, positive, p), pairwise_distance(c, anchor, negative, p)]
    if swap:
        distances.append(pairwise_distance(c, positive, negative, p))
    losses = pointwise(c, "====", *distances)
    return finish(c, mode_of(c, size_average, reduce, reduction), losses)


def cdist(c: Context, x1: Tensor, x2: Tensor, p: Value = 2.0, compute_mode: Value = None) -> Tensor:
    """[*a, m, k], [*b, n, k] -> [*broadcast(a, b), m, n]"""
    for x in (x1, x2):
        apply_law(c, FLOATING, x.dtype, "cdist")
        if x.rank < 2:
            c.refuse(f"cdist takes tensors of rank 2 or more, not {x}")
    same_dtype(c, "cdist", x1, x2)
    c.require(eq(x1.shape[-1], x2.shape[-1]), f"cdist takes points of one dimension: {x1} and {x2}")
    batch = broadcast(c, x1.shape[:-2], x2.shape[:-2])
    return Tensor((*batch, x1.shape[-2], x2.shape[-2]), x1.dtype)


def pdist(c: Context, input: Tensor, p: Value = 2.0) -> Tensor:
    """[n, k] -> [n * (n - 1) // 2]"""
    apply_law(c, FLOATING, input.dtype, "pdist")
    if input.rank != 2:
        c.refuse(f"pdist takes a tensor of rank 2, not {input}")
    count = input.shape[0]
    return Tensor((count * (count - 1) // 2,), input.dtype)


RULES: Final[dict[str, RuleFunction]] = {
    "_cdist_forward": cdist,
    "_ctc_loss": ctc_loss_forward,
    "_pdist_forward": pdist,
    "binary_cross_entropy": binary_cross_entropy,
    "binary_cross_entropy_with_logits": binary_cross_entropy_with_logits,
    "cdist": cdist,
    "cosine_embedding_loss": cosine_embedding_loss,
    "cosine_similarity": cosine_similarity,
    "cross_entropy": cross_entropy,
    "cross_entropy_loss": cross_entropy_loss,
    "ctc_loss": ctc_loss,
    "gaussian_nll_loss": gaussian_nll_loss,
    "hinge_embedding_loss": hinge_embedding_loss,
    "huber_loss": huber_loss,
    "kl_div": kl_div,
    "l1_loss": l1_loss,
    "margin_ranking_loss": margin_ranking_loss,
    "mse_loss": mse_loss,
    "multi_margin_loss": multi_margin_loss,
    "multilabel_margin_loss": multilabel_margin_loss,
    "multilabel_margin_loss_forward": multilabel_margin_loss_forward,
    "multilabel_soft_margin_loss": multilabel_soft_margin_loss,
    "nll_loss": nll_loss,
    "nll_loss2d": nll_loss,
    "nll_loss2d_forward": nll_loss_forward,
    "nll_loss_forward": nll_loss_forward,
    "nll_loss_nd": nll_loss_nd,
    "pairwise_distance": pairwise_distance,
    "pdist": pdist,
    "poisson_nll_loss": poisson_nll_loss,
    "smooth_l1_loss": smooth_l1_loss,
    "soft_margin_loss": soft_margin_loss,
    "torch_nn::_linear_cross_entropy_batch_chunked": linear_cross_entropy_chunked,
    "torch_nn::_linear_cross_entropy_batch_chunked_no_reduction": linear_cross_entropy_each,
    "triplet_margin_loss": triplet_margin_loss,
}
