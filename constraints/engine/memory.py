"""The requirements of writes on memory: torch refuses to write where several elements of a tensor have one
memory location, or where a tensor that is read lies partly in the memory that is written.

The laws are those of `at::assert_no_internal_overlap`, `at::assert_no_partial_overlap` and
`at::assert_no_overlap` in torch's MemoryOverlap.cpp. The table `overlap.py` says which operator has which
requirement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import permutations
from typing import Any, Final, NamedTuple

from ..ir.language import Context, Layout, Shape, Tensor
from ..terms.dims import Dim, Term, divide
from ..terms.formula import Formula, all_of, any_of, eq, ge, le, lt, ne, negate
from ..terms.rows import place_of, row_of
from .overlap import Named, writes_anywhere


def require_apart(c: Context, op: str, target: Tensor, named: Named) -> None:
    """Requires that no two elements of the tensor that `op` writes into have one memory location: along a dim
    of stride 0 there is at most one element, if there are any at all. A copy of what lies there already is
    no write.
    """
    if isinstance(target.layout, tuple) and not writes_anywhere(op, named):
        along = [*zip(target.shape, target.layout, strict=True)]
        if place_of(target.shape) is not None:  # sizes are at least 1 there, and so are products of them
            along = [(n, step) for n, step in along if not c.at_least(step, 1)]
        if any(row_of(n) is not None for n, _ in along):
            c.approximate(f"{op} writes into a tensor of unknown rank that may have been expanded", "accept")
            return
        sizes = [n for n in target.shape if row_of(n) is None]
        single = (any_of((ne(step, 0), le(n, 1))) for n, step in along if not _is_positive(c, step, sizes))
        apart = any_of((*(eq(n, 0) for n in sizes), all_of(single)))
        if op in COPYING and apart is not True:
            resting = c.at_rest(target)
            if resting is None:
                reason = f"whether {op} copies what lies there already is not known"
                c.approximate(reason, "refuse", negate(apart))
            apart = any_of((apart, resting or False))
        c.require(apart, f"{op} writes into {target}, where several elements lie at one place in memory")


def _is_positive(c: Context, step: Dim, sizes: Iterable[Dim]) -> bool:
    """Returns whether a stride is surely positive where there are elements: it is a product of some of the
    sizes and of a term that is.
    """
    for n in sizes:
        times, rest = divide(step, n) if isinstance(n, Term) else (step, 1)
        step = times if rest == 0 else step
    return c.at_least(step, 1)


COPYING: Final = frozenset({"copy_", "setitem"})


def contiguous_strides(shape: Shape) -> Shape:
    """Returns `(b*c, c, 1)` for `[a, b, c]`, the strides of a contiguous tensor that has elements."""
    strides: list[Dim] = []
    step: Dim = 1
    for size in reversed(shape):
        strides.append(step)
        step = step * size
    return tuple(reversed(strides))


def strides_of(tensor: Tensor) -> Shape | None:
    """Returns the strides in elements, None where they are not known."""
    if isinstance(tensor.layout, tuple):
        return tensor.layout
    return contiguous_strides(tensor.shape) if tensor.layout is Layout.CONTIGUOUS else None


def is_row_major(shape: Shape, strides: Shape) -> bool:
    """Returns whether the tensor is contiguous for all values of the symbols.

    The stride along a dim of size 1 is never used.
    """
    step: Dim = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size == 1:
            continue
        if stride != step:
            return False
        step = step * size
    return True


def is_contiguous(tensor: Tensor) -> bool:
    """Returns whether torch finds the tensor contiguous, for all values of the symbols."""
    if isinstance(tensor.layout, tuple):
        return is_row_major(tensor.shape, tensor.layout)
    return tensor.layout in (Layout.CONTIGUOUS, Layout.ROW_MAJOR)


def dense(tensor: Tensor) -> Formula | None:
    """Returns the condition that, in some order of the dims, each stride is the product of the sizes before
    it.

    A dim of size 1 may have any stride. None where the strides are not known.
    """
    if is_contiguous(tensor):
        return True
    strides = strides_of(tensor)
    if strides is None or len(strides) > 4:
        return None
    orders = []
    for order in permutations(range(len(strides))):
        step: Dim = 1
        parts = []
        for axis in order:
            parts.append(any_of((le(tensor.shape[axis], 1), eq(strides[axis], step))))
            step = step * tensor.shape[axis]
        orders.append(all_of(parts))
    return any_of(orders)


def extent(tensor: Tensor) -> Dim | None:
    """Returns the number of elements of a memory that contains only this tensor; None where there may be
    gaps.
    """
    return tensor.numel if place_of(tensor.shape) is None and dense(tensor) is True else None


class Region(NamedTuple):
    """A tensor and its offset in a memory, in elements; None where that is not known."""

    tensor: Tensor
    start: Dim | None
    expanded_to: Shape = ()
    """Sizes that dims were expanded to, of this tensor or of one that it was cut from. Where such a size is
    1, the dim has kept its stride, though the layout says 0.
    """
    kept: Shape | None = None
    """The strides of its dims that have them from before they were expanded; None where they are not known.
    """
    is_restrided: bool = False
    """Whether its strides along other dims of size 1, too, may not be those that its layout says."""

    def here(self, here: Callable[[Any], Any]) -> Region:
        """Returns the region in a case of sizes."""
        tensor, start, expanded_to, kept = map(here, self[:4])
        return self._replace(tensor=tensor, start=start, expanded_to=expanded_to, kept=kept)


def meets(written: Region, read: Region) -> Formula | None:
    """Returns the condition that the two, which lie in one memory, share memory locations, as far as torch
    checks.

    torch checks tensors without gaps, from the first location of each to the last. None where the condition
    is not known, as for tensors of unknown rank.
    """
    if any(place_of(t.shape) is not None for t in (written.tensor, read.tensor)):
        return None
    if 0 in (written.tensor.numel, read.tensor.numel):
        return False
    parts = dense(written.tensor), dense(read.tensor)
    if False in parts:
        return False
    if None in parts or written.start is None or read.start is None:
        return None
    n, m = written.tensor.numel, read.tensor.numel
    apart = (ge(n, 1), ge(m, 1), lt(written.start, read.start + m), lt(read.start, written.start + n))
    return all_of((*(p for p in parts if p is not None), *apart))


def clash(written: Region, read: Region, seated: bool = False) -> Formula | None:
    """Returns the condition that the two, which lie in one memory, overlap and are not the same
    (`assert_no_partial_overlap`).

    With `seated`, the tensor that is read is first expanded to the other, as in `x[:] = y`. None where it is
    not known.
    """
    if any(place_of(t.shape) is not None for t in (written.tensor, read.tensor)):
        same = written.start is not None and written == read
        return False if same else None
    meeting = meets(written, read)
    if meeting is None or meeting is False:
        return meeting
    mine, theirs = strides_of(written.tensor), strides_of(read.tensor)
    if mine is None or theirs is None:
        return None
    assert written.start is not None and read.start is not None
    n, m = written.tensor.numel, read.tensor.numel
    one = eq(n, m)
    if seated:
        if mine and not theirs:
            return False  # a scalar is filled in
        meeting = all_of((meeting, one))  # what has been expanded is not looked at
    alike: Formula = False
    if len(mine) == len(theirs):
        alike = all_of(map(partial(_same_stride, written, read), range(len(mine))))
    elif seated:
        alike = any_of(_alike_in_its_seat(written.tensor, mine, read.tensor, theirs))
    return all_of((meeting, negate(all_of((eq(written.start, read.start), one, alike)))))


def unsettled(written: Region, read: Region, seated: bool = False) -> Iterator[Formula]:
    """Yields the sizes, at least all those, at which `clash` depends on a stride along a dim of size 1 that
    is not known: the two begin at one place and have equally many elements.
    """
    mine, theirs = strides_of(written.tensor), strides_of(read.tensor)
    meeting = meets(written, read)
    if not meeting or mine is None or theirs is None or (seated and not theirs):
        return
    sizes: Shape = ()
    if written.is_restrided or read.is_restrided:
        sizes = written.tensor.shape + read.tensor.shape
    elif len(mine) != len(theirs):
        sizes = written.expanded_to + read.expanded_to
    elif not all(_is_settled(written, read, i) for i in range(len(mine))):
        sizes = written.expanded_to + read.expanded_to  # none where a copy has kept strides of 0
        sizes = sizes or written.tensor.shape + read.tensor.shape
    assert written.start is not None and read.start is not None
    same = (eq(written.start, read.start), eq(written.tensor.numel, read.tensor.numel))
    for size in dict.fromkeys(sizes):
        yield all_of((eq(size, 1), *same, meeting))


def _is_settled(written: Region, read: Region, axis: int) -> bool:
    """Returns whether `_same_stride` is right where a dim was expanded to a size of 1, too: both or neither
    were expanded, or it is known what stride the one that was has kept.
    """
    strides = [(strides_of(r.tensor) or ())[axis] for r in (written, read)]
    return (strides[0] == 0) == (strides[1] == 0) or all(
        step != 0 or region.kept is not None for step, region in zip(strides, (written, read), strict=True)
    )


def lies_there(target: Region, value: Region, seated: bool = False) -> Formula | None:
    """Returns the condition that the value, which is in the memory of the target, lies at its very place.

    With `seated`, it is first expanded to the target. None where the condition is not known.
    """
    mine, theirs = strides_of(target.tensor), strides_of(value.tensor)
    if target.tensor.dtype != value.tensor.dtype:
        return False
    if mine is None or theirs is None or target.start is None or value.start is None:
        return None
    if target.is_restrided or value.is_restrided:
        return None
    alike: Formula = False
    one_shape: Formula = False
    if target.tensor.rank == value.tensor.rank:
        one_shape = all_of(map(eq, target.tensor.shape, value.tensor.shape))
        alike = all_of((one_shape, *map(eq, mine, theirs)))
    if seated and value.tensor.rank:  # a scalar is filled in
        expanded = any_of(_alike_in_its_seat(target.tensor, mine, value.tensor, theirs))
        alike = any_of((alike, all_of((negate(one_shape), expanded))))
    return all_of((eq(target.start, value.start), alike))


def _same_stride(written: Region, read: Region, axis: int) -> Formula:
    """Returns the condition that the strides along a dim agree.

    A stride of 0 is that of an expanded dim; a dim expanded to a size that is 1 keeps its own.
    """
    (mine, mine_kept), (theirs, theirs_kept) = (_strides_along(r, axis) for r in (written, read))
    if (mine == 0) == (theirs == 0):
        return eq(mine, theirs)
    n = (written if mine == 0 else read).tensor.shape[axis]
    return any_of((all_of((ne(n, 1), eq(mine, theirs))), all_of((eq(n, 1), eq(mine_kept, theirs_kept)))))


def _strides_along(region: Region, axis: int) -> tuple[Dim, Dim]:
    """Returns the stride along a dim, and the stride that the dim has at size 1 if it was expanded from that.
    """
    stride = (strides_of(region.tensor) or ())[axis]
    return stride, region.kept[axis] if stride == 0 and region.kept is not None else stride


def _alike_in_its_seat(target: Tensor, mine: Shape, value: Tensor, theirs: Shape) -> Iterator[Formula]:
    """Yields the conditions under which a value of another shape gets the strides of its target.

    torch drops the leading dims of size 1 of the value by a view and expands the rest. A dim that is expanded
    has the stride 0; one that is missing, and not expanded, has that of a contiguous tensor around the next
    one. With no dims left all strides are 0.
    """
    for first in range(max(value.rank - target.rank, 0), value.rank):
        missing = target.rank - (value.rank - first)
        parts = [eq(n, 1) for n in value.shape[:first]] + [ne(value.shape[first], 1)]
        for i, (n, step) in enumerate(zip(target.shape, mine, strict=True)):
            expanded = all_of((ne(n, 1), eq(step, 0)))
            if i < missing:
                as_it_is = all_of((eq(n, 1), eq(step, target.shape[i + 1] * mine[i + 1])))
            else:
                at = first + i - missing
                expanded = all_of((expanded, eq(value.shape[at], 1)))
                as_it_is = all_of((eq(value.shape[at], n), any_of(_viewed(value.shape, theirs, at, step))))
            parts.append(any_of((expanded, as_it_is)))
        yield all_of(parts)
    yield all_of((*(eq(n, 1) for n in value.shape), *(eq(step, 0) for step in mine)))


def _viewed(shape: Shape, strides: Shape, axis: int, step: Dim) -> Iterator[Formula]:
    """Yields the conditions under which a dim of a view that drops leading dims has the stride `step`.

    A dim of size 1 gets the stride that it would have in a contiguous tensor around the next one; the last
    dim keeps its own.
    """
    ones: Formula = True
    for at in range(axis, len(shape)):
        around = strides[at] if at == axis else shape[at] * strides[at]
        yield all_of((ones, ne(shape[at], 1), eq(step, around)))
        ones = all_of((ones, eq(shape[at], 1)))
    yield all_of((ones, eq(step, strides[-1])))
