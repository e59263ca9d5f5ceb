"""einsum: a small language of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from ..ir.language import Context, Dots, Layout, Shape, Tensor
from ..terms.dims import Dim
from ..terms.formula import all_of, any_of, eq
from .common import broadcast_dim, category, contiguous_strides, promote, same_dim, strides_of
from .linalg import NO_PRODUCTS, no_elements

Labels: TypeAlias = tuple[str, ...]
"""One label per dim: a letter, or `...i` for the i-th dim from the right of those that an ellipsis covers."""


def einsum(
    c: Context, equation: Any, *operands: Any, tensors: tuple[Tensor, ...] = (), path: Any = None
) -> Tensor:
    """One letter, one size: it stretches where it is 1 in an operand, and is summed where the output leaves
    it out

    `bij,bjk->bik`; without an arrow the output has the letters that occur once, sorted. A letter twice in an
    operand takes the diagonal. The dims of an ellipsis broadcast. Also `einsum(a, [0, 1], b, [1, 2], [0,
    2])`.
    """
    if isinstance(equation, Tensor):
        # A lone list of subscripts has been spread like `permute((1, 0))`.
        interleaved = (equation, *(operands if any(isinstance(o, tuple) for o in operands) else (operands,)))
        inputs = [_sublist(c, s) for s in interleaved[1::2]]
        output = _sublist(c, interleaved[-1]) if len(interleaved) % 2 else None
        given = interleaved[: 2 * len(inputs) : 2]
        if output is not None:
            inputs = inputs[: len(given)]
    else:
        left, arrow, right = equation.partition("->")
        inputs = [_letters(c, text) for text in left.split(",")]
        output = _letters(c, right) if arrow else None
        given = tensors or operands
    if len(inputs) != len(given):
        c.refuse(f"the equation has {len(inputs)} operands, the call {len(given)}")
    covered = max(
        (t.rank - len(ls) + 1 for ls, t in zip(inputs, given, strict=True) if "..." in ls), default=0
    )
    labels = [_spelt_out(c, ls, t) for ls, t in zip(inputs, given, strict=True)]
    dots = tuple(f"...{i}" for i in range(covered, 0, -1))
    out = _output(c, labels, output, dots)
    sizes = _label_sizes(c, labels, given)
    summed = [label for label in sizes if label not in out]
    dtype = _einsum_dtype(c, labels, given, sizes, summed)
    shape = tuple(sizes[label] for label in out)
    return Tensor(shape, dtype, _einsum_layout(c, labels, given, out, summed))


def _letters(c: Context, text: str) -> Labels:
    """`"b...ij" -> ("b", "...", "i", "j")`"""
    before, dots, after = text.replace(" ", "").partition("...")
    if not all("a" <= letter.lower() <= "z" for letter in before + after):
        c.refuse(f"subscripts are letters, with one ellipsis at most, not {text!r}")
    return (*before, "...", *after) if dots else tuple(before)


def _sublist(c: Context, subscripts: tuple[Any, ...]) -> Labels:
    """`[0, ..., 27] -> ("A", "...", "b")`"""
    if not all(s is Dots or 0 <= s < 52 for s in subscripts):
        c.refuse(f"subscripts are numbers from 0 to 51, not {subscripts}")
    names = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
    return tuple("..." if s is Dots else names[s] for s in subscripts)


def _spelt_out(c: Context, labels: Labels, tensor: Tensor) -> Labels:
    """The labels of every dim of the operand, those under the ellipsis included."""
    covered = tensor.rank - len([label for label in labels if label != "..."])
    if covered < 0 or (covered and "..." not in labels):
        c.refuse(f"the subscripts {''.join(labels)!r} do not fit {tensor}")
    if "..." not in labels:
        return labels
    at = labels.index("...")
    return (*labels[:at], *(f"...{i}" for i in range(covered, 0, -1)), *labels[at + 1 :])


def _output(c: Context, inputs: list[Labels], output: Labels | None, dots: Labels) -> Labels:
    letters = [label for labels in inputs for label in labels if label[0] != "."]
    if output is None:
        return dots + tuple(sorted(label for label in letters if letters.count(label) == 1))
    for label in output:
        if output.count(label) > 1 or label not in ("...", *letters):
            c.refuse(f"{label!r} occurs twice in the output, or in no operand")
    return tuple(label for one in output for label in (dots if one == "..." else (one,)))


def _label_sizes(c: Context, inputs: list[Labels], operands: Sequence[Tensor]) -> dict[str, Dim]:
    """The size of each label: equal within an operand, broadcast between operands."""
    sizes: dict[str, Dim] = {}
    for labels, tensor in zip(inputs, operands, strict=True):
        own: dict[str, Dim] = {}
        for label, size in zip(labels, tensor.shape, strict=True):
            twice = f"{label!r} occurs twice in an operand, with sizes {own.get(label)} and {size}"
            own[label] = same_dim(c, own[label], size, twice) if label in own else size
        for label, size in own.items():
            sizes[label] = broadcast_dim(c, sizes[label], size) if label in sizes else size
    return sizes


def _einsum_dtype(
    c: Context, inputs: list[Labels], operands: Sequence[Tensor], sizes: dict[str, Dim], summed: list[str]
) -> str | None:
    """Without a sum the operands are multiplied pointwise and promote; a sum goes through `bmm`, which wants
    one dtype. That of a single operand is a plain sum, which counts integers in int64.
    """
    dtype = promote(operands)
    shared = [label for label in summed if sum(label in labels for labels in inputs) > 1]
    if dtype is not None and shared:
        mixed = any(t.dtype != dtype for t in operands)
        if mixed or dtype in NO_PRODUCTS:
            no_bmm = all_of(eq(sizes[label], 1) for label in shared)
            what = "operands of several dtypes are" if mixed else f"{dtype} is"
            c.require(any_of((no_bmm, no_elements(*sizes.values()))), f"{what} not contracted by any kernel")
            if not mixed or len(operands) > 2:
                c.approximate(
                    f"which contractions of {dtype} run depends on the order in which pairs are taken"
                )
    integral = dtype is not None and category(dtype) < 2
    if integral and summed and len(operands) == 1:
        return "int64"
    return None if integral and summed and dtype != "int64" else dtype


def _einsum_layout(
    c: Context, inputs: list[Labels], operands: Sequence[Tensor], out: Labels, summed: list[str]
) -> Layout | Shape:
    """One operand without a sum is a view; two with one are a `bmm`, permuted; the rest is not known."""
    if len(operands) == 1 and not summed and (strides := strides_of(operands[0])) is not None:
        steps: dict[str, Dim] = dict.fromkeys(out, 0)
        for label, stride in zip(inputs[0], strides, strict=True):
            steps[label] = steps[label] + stride
        return tuple(steps[label] for label in out)
    if len(operands) != 2:
        return Layout.UNKNOWN
    left, right = (
        {label: size for label, size in zip(ls, t.shape, strict=True) if size != 1}
        for ls, t in zip(inputs, operands, strict=True)
    )
    order = _bmm_order(c, left, right, out, summed)
    if order is None:
        return Layout.UNKNOWN
    sizes = right | left
    made = contiguous_strides(tuple(sizes.get(label, 1) for label in order))
    return tuple(made[order.index(label)] for label in out)


def _bmm_order(
    c: Context, left: dict[str, Dim], right: dict[str, Dim], out: Labels, summed: list[str]
) -> list[str] | None:
    """The output's labels as they lie in memory, None where that depends on which sizes are 1.

    A bmm gives [shared, left only, right only], or [shared, right only, left only] if in the output every
    right-only label comes before every left-only one. In that comparison sizes 1 count as right-only,
    wherever they come from; `left` and `right` leave out those that are known.
    """
    shared = [label for label in left if label in right]
    if any(left[label] != right[label] for label in shared):
        return None
    if not any(c.at_least(left[label], 2) for label in shared if label in summed):
        return None  # with sizes 1 alone to sum over it is a pointwise product
    both = [label for label in out if label in shared]
    rows = [label for label in out if label in left and label not in right]
    columns = [label for label in out if label not in left]
    if not rows or not columns:
        return both + rows + columns
    place = {label: i for i, label in enumerate(out)}
    last = place[columns[-1]]
    if last < place[rows[0]]:
        after = [label for label in both if place[label] > last] + (rows if len(rows) > 1 else [])
        certain = all(c.at_least(left[label], 2) for label in after)
        return both + columns + rows if certain else None
    before = [label for label in rows if place[label] < last]
    certain = len(before) == len(rows) or any(c.at_least(left[label], 2) for label in before)
    return both + rows + columns if certain else None


RULES: dict[str, Any] = {"einsum": einsum}
