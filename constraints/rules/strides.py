"""The algebra of strides: when one tensor is a view of another, and how elements lie in memory.

Everything here assumes tensors with at least one element; torch never uses the strides of an empty one. A
size is then at least 1, so that a common factor of two sides that divides the number of elements may be
cancelled.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from ..engine.memory import is_contiguous, is_row_major
from ..ir.language import Context, Layout, Shape, Tensor, product
from ..terms.dims import Apply, Dim, Term, divide, lone
from ..terms.formula import And, Compare, Formula, Or, all_of, any_of, eq, ne, negate
from .common import contiguous_strides, text
from .common import strides_of as strides_of

Strides: TypeAlias = tuple[Dim, ...]
UNDECIDED: Final = "undecided"


def lies_so(shape: Shape, strides: Strides, expected: Strides) -> Formula:
    """Returns the condition that the strides equal those expected, except along dims of size 1, whose stride
    is never used.
    """
    rows = zip(shape, strides, expected, strict=True)
    return all_of(any_of((eq(n, 1), eq(s, e))) for n, s, e in rows if s != e)


def is_refuted(c: Context, formula: Formula) -> bool:
    """Returns whether intervals alone disprove the formula."""
    match formula:
        case And(parts):
            return any(is_refuted(c, part) for part in parts)
        case Or(parts):
            return all(is_refuted(c, part) for part in parts)
        case Compare("==", term):
            rest: Dim = term
            for atom in term.terms[0][0]:
                without = quotient(rest, lone(atom))
                rest = without if without is not None and c.at_least(lone(atom), 1) else rest
            return c.at_least(rest, 1) or c.at_least(-rest, 1)
        case Compare(">=", term):
            return c.at_least(-term, 1)
    return formula is False


def laid_out(shape: Shape, strides: Strides | None) -> Layout | Strides:
    """Returns the layout with these strides, by its short name where it has one.

    A tensor of size 1 along an axis may be contiguous although it has another stride there. That stride is
    kept, since kernels look at it.
    """
    if strides is None:
        return Layout.UNKNOWN
    return Layout.CONTIGUOUS if strides == contiguous_strides(shape) else strides


def unsqueezed(input: Tensor, at: int) -> Tensor:
    """`[*a, *z] -> [*a, 1, *z]`, where z begins at this axis."""
    shape = (*input.shape[:at], 1, *input.shape[at:])
    strides = None if input.layout is Layout.CONTIGUOUS else strides_of(input)
    if strides is None:
        return Tensor(shape, input.dtype, input.layout)
    step: Dim = strides[at] * input.shape[at] if at < input.rank else 1
    return Tensor(shape, input.dtype, laid_out(shape, (*strides[:at], step, *strides[at:])))


def copied_if_needed(c: Context, input: Tensor) -> Tensor:
    """Returns the tensor as `contiguous` returns it: itself where it is contiguous, axes of size 1 aside,
    which then keep their strides.
    """
    if is_contiguous(input):
        return input
    wanted, strides = contiguous_strides(input.shape), strides_of(input)
    if strides is None:
        return Tensor(input.shape, input.dtype, Layout.ROW_MAJOR)
    already = lies_so(input.shape, strides, wanted)
    kept = any(s != w and not c.at_least(n, 2) for n, s, w in zip(input.shape, strides, wanted, strict=True))
    layout = Layout.ROW_MAJOR if kept and not is_refuted(c, already) else Layout.CONTIGUOUS
    return Tensor(input.shape, input.dtype, layout)


# --- cancelling ------------------------------------------------------------------------------------------


def quotient(a: Dim, b: Dim) -> Dim | None:
    """a / b, where b divides a as a polynomial."""
    if isinstance(b, int) and isinstance(a, int):
        return a // b if b and a % b == 0 else None
    if b == 0:
        return None
    whole, rest = divide(a, b)
    return whole if rest == 0 else None


def factors(dims: Iterable[Dim]) -> Iterator[Term]:
    """The symbolic factors that can be read off dims: of `4*h*w` h and w, of `h + 1` itself."""
    for dim in dims:
        if isinstance(dim, Term) and len(dim.terms) == 1:
            for atom in dim.terms[0][0]:
                yield Term((((atom,), 1),), isinstance(atom, Apply) and atom.op == "%")
        elif isinstance(dim, Term):
            yield dim


def without_common(a: Dim, b: Dim, candidates: Iterable[Dim]) -> tuple[Dim, Dim, list[Dim]]:
    """(x, y, common) with a = f·x and b = f·y, where f is the product of the candidates in `common`."""
    common = []
    for factor in candidates:
        x, y = quotient(a, factor), quotient(b, factor)
        if x is not None and y is not None and factor != 1:
            a, b = x, y
            common.append(factor)
    return a, b, common


def cancelled(left: Sequence[Dim], right: Sequence[Dim]) -> tuple[Dim, Dim, list[Dim]]:
    """(x, y, common) with ∏left = ∏common · x and ∏right = ∏common · y"""
    ours, theirs, common = list(left), [], []
    for size in right:
        if size in ours:
            ours.remove(size)
            common.append(size)
        else:
            theirs.append(size)
    x, y, more = without_common(product(ours), product(theirs), factors(ours))
    return x, y, [size for size in common + more if size != 1]


def same_numel(c: Context, left: Sequence[Dim], right: Sequence[Dim]) -> Formula:
    """∏left == ∏right. With a common factor f, f·x == f·y holds where x == y or f == 0."""
    split = _divided(c, left, right)
    if split is not None:
        return split
    x, y, common = cancelled(left, right)
    return any_of((eq(x, y), *(eq(f, 0) for f in common if not c.at_least(f, 1))))


def _divided(c: Context, left: Sequence[Dim], right: Sequence[Dim]) -> Formula | None:
    """`[h, w]` as `[h//4, 4, w//4, 4]`: each k has to divide its dim. None where the sizes do not pair up so.

    4·(h//4) <= h always, so the products of positive dims are equal only where each of the factors is.
    """
    sizes, asked = list(right), []
    for dim in left:
        if dim in sizes:
            sizes.remove(dim)
            continue
        for k in {n for n in sizes if isinstance(n, int) and n > 1}:
            quotient = dim // k
            if isinstance(quotient, Term) and quotient in sizes:
                sizes.remove(k)
                sizes.remove(quotient)
                asked.append((dim, k))
                break
        else:
            return None
    if any(n != 1 for n in sizes) or not asked or not all(c.at_least(dim, 1) for dim in left):
        return None
    return all_of(eq(k * (dim // k), dim) for dim, k in asked)


def equal_nonzero(c: Context, a: Dim, b: Dim, nonzero: Sequence[Dim]) -> Formula:
    """a == b, given that no dim in `nonzero` is 0. A product is 1 where all its factors are."""
    a, b, _ = without_common(a, b, nonzero)
    if c.at_least(a - b, 1) or c.at_least(b - a, 1):
        return False
    if 1 in (a, b):
        other = a if b == 1 else b
        parts = list(factors((other,)))
        if product(tuple(parts)) == other and all(c.at_least(factor, 0) for factor in parts):
            return all_of(eq(factor, 1) for factor in parts)
    return eq(a, b)


def either(*formulas: Formula) -> Formula:
    """The disjunction, without the parts that another one contains: `p or (p and q)` is `p`."""
    parts = parts_of(any_of(formulas), Or)
    return any_of(
        p for p in parts if not any(q != p and set(parts_of(q, And)) < set(parts_of(p, And)) for q in parts)
    )


def parts_of(formula: Formula, kind: type[And] | type[Or]) -> tuple[Formula, ...]:
    """Returns the parts of an `And` or an `Or` of this kind; any other formula is its own only part."""
    return formula.parts if isinstance(formula, kind) else (formula,)


# --- views -----------------------------------------------------------------------------------------------


class Block(NamedTuple):
    """Neighbouring dims that lie in memory as one: index i along the block is at i * stride."""

    size: Dim
    stride: Dim


def blocks(shape: Shape, strides: Strides) -> list[Block]:
    """Dims p, q are one block where stride(p) == size(q) * stride(q), whatever the symbols are."""
    found: list[Block] = []
    for size, stride in zip(shape, strides, strict=True):
        if size == 1:
            continue
        if found and found[-1].stride == size * stride:
            found[-1] = Block(found[-1].size * size, stride)
        else:
            found.append(Block(size, stride))
    return found


class View(NamedTuple):
    """Whether a tensor with elements can be seen in another shape, and how the result then lies in memory."""

    possible: Formula
    layout: Layout | Strides


def view_of(c: Context, shape: Shape, strides: Strides, new: Shape, inferred: int | None = None) -> View:
    """A tensor `[d0, …]` with `strides` seen as `[e0, …]`, the numbers of elements being equal and not 0.

    This is torch's `computeStride` as a formula. Between dims p and k, all dims between them being of size 1
    and these two not, memory *breaks* if stride(p) != d(k) * stride(k). The view is possible if and only if
    the new shape splits at each break: for some j, e(j) * e(j+1) * … is the number of elements to the right
    of the break. Then the dims of a new shape between two breaks divide the stretch of memory there.

    `inferred` is the position of the size that was given as -1: it is a quotient, and products are best
    formed without.
    """
    if 0 in shape:
        return View(True, Layout.CONTIGUOUS)
    parts = blocks(shape, strides)
    last = strides[-1] if shape and shape[-1] == 1 else None
    nonzero = [*factors(shape), *factors(new)]
    conditions: list[Formula] = []
    ends: list[int | None] = []
    for at in range(1, len(parts)):
        split, j = _splits(c, [b.size for b in parts], at, new, inferred, nonzero)
        ends.append(j)
        if split is not True:
            conditions.append(either(_no_break(c, parts, at, nonzero), split))
    possible = all_of(conditions)
    if None not in ends:
        steps = _new_strides(c, parts, [j for j in ends if j is not None], new, last)
        return View(possible, laid_out(new, steps))
    if contiguous_under(possible, shape, strides):
        return View(possible, Layout.CONTIGUOUS)
    return View(possible, Layout.UNKNOWN)


def is_flat(input: Tensor) -> bool:
    """Returns whether the tensor can be viewed as a vector whatever its sizes are."""
    return input.rank < 2 or is_contiguous(input)


def require_flat(c: Context, input: Tensor, unless: Formula = False) -> None:
    """Requires that the tensor can be viewed as a vector, or has no elements, unless a condition holds.

    That is what kernels need which call `view(-1)` on an operand.
    """
    if unless is True or is_flat(input):
        return
    strides = strides_of(input)
    allowed = any_of((unless, eq(input.numel, 0)))
    if strides is None:
        reason = f"whether strides let {text(input.shape)} be viewed as a vector is not known"
        c.approximate(reason, "accept", negate(allowed))
        return
    possible = view_of(c, input.shape, strides, (input.numel,)).possible
    told = f"{text(input.shape)} with strides {text(strides)} cannot be viewed as a vector"
    c.require(any_of((allowed, possible)), f"{told}: it is not contiguous, and has to be copied (contiguous)")


def _no_break(c: Context, parts: list[Block], at: int, nonzero: Sequence[Dim]) -> Formula:
    """Memory does not break between block p = at-1 and the next block k >= at whose size is not 1.

    If the last block is the next one and of size 1, nothing is to the right, and any shape splits there.
    """
    before = parts[at - 1]
    if before.size == 1:
        return True
    conditions: list[Formula] = []
    between: list[Formula] = []  # "a block between p and k is not of size 1"
    for k, block in enumerate(parts[at:], at):
        lone = False if c.at_least(block.size, 2) else eq(block.size, 1)
        joined = equal_nonzero(c, before.stride, block.size * block.stride, nonzero)
        conditions.append(either(*between, joined, lone if k < len(parts) - 1 else False))
        if lone is False:
            break
        between.append(ne(block.size, 1))
    return either(False if c.at_least(before.size, 2) else eq(before.size, 1), all_of(conditions))


def _splits(
    c: Context, sizes: list[Dim], at: int, new: Shape, inferred: int | None, nonzero: Sequence[Dim]
) -> tuple[Formula, int | None]:
    """Whether some j has ∏new[j:] == ∏sizes[at:], and that j where it is the same for all sizes.

    Since the two shapes have equally many elements, ∏new[:j] == ∏sizes[:at] says the same. From right to left
    the products ∏new[j:] are multiples of each other: of those known to divide ∏sizes[at:] only the greatest
    matters, of those known to be a multiple of it only the least.
    """
    left, right = product(sizes[:at]), product(sizes[at:])
    sides = [(product(new[:j]), product(new[j:])) for j in range(len(new) + 1)]
    for j, (ours, theirs) in enumerate(sides):
        if ours == left or theirs == right:
            return True, j
    candidates: list[Formula] = []
    for j, (ours, theirs) in reversed(list(enumerate(sides))):
        small, large = (left, ours) if inferred is not None and j <= inferred else (theirs, right)
        if quotient(large, small) is not None:
            candidates.clear()
        candidates.append(equal_nonzero(c, small, large, nonzero))
        if quotient(small, large) is not None:
            break
    return any_of(candidates), None


def _new_strides(
    c: Context, parts: list[Block], ends: list[int], new: Shape, last: Dim | None
) -> Strides | None:
    """Returns the strides of the new dims; None where they depend on which sizes are 1.

    The block m holds the dims from ends[m-1] to ends[m], row-major, on its own stride. Those of size 1 at the
    end of a block belong to the next one, as if they stood at its beginning: their stride is the length of
    that block. At the end of the last block they take over the stride `last` of an old dim.
    """
    parts = parts or [Block(1, 1)]
    bounds = [0, *ends, len(new)]
    beyond = [*(block.size * block.stride for block in parts[1:]), last]
    strides: list[Dim] = []
    for block, step, (start, end) in zip(parts, beyond, pairwise(bounds), strict=True):
        own = [n * block.stride for n in contiguous_strides(new[start:end])]
        for i in reversed(range(end - start)):
            if step is None or c.at_least(new[start + i], 2):
                break
            if new[start + i] == 1:
                own[i] = step
            elif own[i] != step:
                return None
        strides += own
    return tuple(strides)


def contiguous_under(premise: Formula, shape: Shape, strides: Strides) -> bool:
    """Returns whether the premise makes the tensor contiguous.

    Under u == 0, every dim may be reduced modulo u.
    """
    match premise:
        case Or(parts):
            return all(contiguous_under(part, shape, strides) for part in parts)
        case And(parts):
            return any(contiguous_under(part, shape, strides) for part in parts)
        case Compare("==", u):
            reduced = [tuple(divide(dim, u)[1] for dim in dims) for dims in (shape, strides)]
            return is_row_major(reduced[0], reduced[1])
        case False:
            return True
    return is_row_major(shape, strides)


# --- results that keep the order of their operand's dims -------------------------------------------------


def channels_last(shape: Shape) -> Strides:
    """`[n, c, h, w] -> (h*w*c, 1, w*c, c)`: the channels lie innermost."""
    order = (0, *range(2, len(shape)), 1)
    return dense_in(shape, order)


def dense_in(shape: Shape, order: Sequence[int]) -> Strides:
    """Strides without gaps, the dims from the outermost to the innermost being in this order."""
    steps = contiguous_strides(tuple(shape[i] for i in order))
    return tuple(step for _, step in sorted(zip(order, steps, strict=True)))


def preserved(c: Context, shape: Shape, layout: Layout | Strides) -> Layout | Strides:
    """The layout of a new tensor under `torch.preserve_format`: the strides of the operand, those along axes
    of size 1 too, where it has no gaps and no element twice; else no gaps, the axes in the order of
    `infer_dense_strides`.
    """
    if not isinstance(layout, tuple) or is_row_major(shape, layout):
        return layout
    exact = by_stride(c, shape, (layout,))
    axes = exact or _by_division(shape, layout)
    if axes is None:
        return Layout.UNKNOWN
    found = dense_in(shape, axes)
    gapless = lies_so(shape, layout, found)
    if c.certain(gapless):
        return layout
    open_ones = [i for i, size in enumerate(shape) if found[i] != layout[i] and not c.at_least(size, 2)]
    if open_ones and not (exact and is_refuted(c, gapless)):
        return Layout.UNKNOWN
    return laid_out(shape, found)


def _by_division(shape: Shape, layout: Strides) -> tuple[int, ...] | None:
    """Returns the axes, slowest first, where each stride divides the one before it as a polynomial; those of
    size 1 come last. None where some does not.
    """
    order: list[int] = []
    lone = [i for i, size in enumerate(shape) if size == 1]
    for i, stride in enumerate(layout):
        if i in lone:
            continue
        at = len(order)
        while at and not _outer(layout[order[at - 1]], stride):
            at -= 1
        order.insert(at, i)
    decided = all(_outer(layout[i], layout[j]) for i, j in pairwise(order))
    return (*order, *lone) if decided and all(layout[i] != 0 for i in order) else None


def _outer(outer: Dim, inner: Dim) -> bool:
    """Returns whether the first stride is surely a multiple of the second."""
    return quotient(outer, inner) is not None


def by_stride(c: Context, shape: Shape, operands: Iterable[Sequence[Dim] | None]) -> tuple[int, ...] | None:
    """The axes, slowest first, in the order of a new result of TensorIterator, or of `infer_dense_strides`,
    for operands with these strides along the axes of the shape, None for one whose strides are not known.
    None where it depends on sizes.

    torch sorts by insertion, from the last axis to the first. The first operand whose strides along two axes
    are not 0 says which of these is slower: that with the greater stride or, of equal strides, with more
    elements. A pair of axes that no operand decides is skipped.
    """
    operands = [*operands]
    order = list(reversed(range(len(shape))))
    for end in range(1, len(order)):
        at = end
        for before in reversed(range(end)):
            slower = _is_slower(c, shape, operands, order[before], order[at])
            if slower is UNDECIDED:
                return None
            if slower is True:
                order[before], order[at] = order[at], order[before]
                at = before
            elif slower is False:
                break
    return tuple(reversed(order))

def _is_slower(
    c: Context, shape: Shape, operands: Sequence[Sequence[Dim] | None], axis: int, other: int
) -> bool | str | None:
    """Returns whether the axis is slower than the other: True, False, `UNDECIDED` where sizes decide, or None
    where no operand decides.
    """
    for strides in operands:
        if strides is None:
            return UNDECIDED
        one, two = strides[axis], strides[other]
        if one == 0 or two == 0:
            continue
        if one != two:
            if is_less(c, one, two):
                return False
            return True if is_less(c, two, one) else UNDECIDED
        if is_less(c, shape[other], shape[axis]):
            return True
        if not (shape[axis] == shape[other] or is_less(c, shape[axis], shape[other] + 1)):
            return UNDECIDED
    return None


def is_less(c: Context, a: Dim, b: Dim) -> bool:
    """Returns whether a < b is certain, where no factor of either is 0."""
    if c.at_least(b - a, 1):
        return True
    x, y, common = without_common(a, b, factors((a, b)))
    return bool(common) and c.at_least(y - x, 1)
