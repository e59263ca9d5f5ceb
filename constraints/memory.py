"""What writing into a tensor asks of the memory that it lies in.

The laws are those of `at::assert_no_internal_overlap` and `at::assert_no_partial_overlap` in torch's
MemoryOverlap.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import permutations
from typing import Any, Final

from .dims import Dim
from .formula import Formula, all_of, any_of, eq, ge, le, lt, ne, negate
from .language import Context, Layout, Shape, Tensor
from .rows import place_of, row_of

Named = Mapping[str, Any]


def _drops(named: Named) -> bool:
    return named.get("train", named.get("training", True)) is True and named.get("p", 0.5) != 0


def _never(named: Named) -> bool:
    return False


LENIENT: Final[Mapping[str, Callable[[Named], bool]]] = {
    **dict.fromkeys(
        """
        zero_ _foreach_zero_ fill_diagonal_ requires_grad_ detach_ addmv_ baddbmm_ masked_fill_ threshold_
        index_fill_ index_put_ _index_put_impl_ tril_ triu_
        """.split(),
        _never,
    ),
    "fill_": lambda named: isinstance(named.get("value"), Tensor),
    "conj_physical_": lambda named: (named["input"].dtype or "complex").startswith("complex"),
    "nan_to_num_": lambda named: (named["input"].dtype or "float").startswith(("float", "complex", "bfloat")),
    **dict.fromkeys("dropout_ feature_dropout_ alpha_dropout_ feature_alpha_dropout_".split(), _drops),
}
"""In-place operators that write into any memory, or do where this is false of their arguments."""


def require_apart(c: Context, op: str, target: Tensor, named: Named) -> None:
    """No two elements of the tensor that is written into may lie at one place: along a dim of stride 0 there
    is at most one element, if there are any at all.
    """
    if isinstance(target.layout, tuple) and (op not in LENIENT or LENIENT[op](named)):
        along = [*zip(target.shape, target.layout, strict=True)]
        if place_of(target.shape) is not None:  # sizes are at least 1 there, and so are products of them
            along = [(n, step) for n, step in along if not c.at_least(step, 1)]
        if any(row_of(n) is not None for n, _ in along):
            c.approximate(f"{op} writes into a tensor of unknown rank that may have been expanded", "accept")
            return
        single = (any_of((ne(step, 0), le(n, 1))) for n, step in along)
        apart = any_of((*(eq(n, 0) for n in target.shape if row_of(n) is None), all_of(single)))
        c.require(apart, f"{op} writes into a tensor of which several elements lie at one place: {target}")


def contiguous_strides(shape: Shape) -> Shape:
    """`[a, b, c] -> (b*c, c, 1)`, the strides of a contiguous tensor, where it has elements."""
    strides: list[Dim] = []
    step: Dim = 1
    for size in reversed(shape):
        strides.append(step)
        step = step * size
    return tuple(reversed(strides))


def strides_of(tensor: Tensor) -> Shape | None:
    """The strides in elements, None where they are not known."""
    if isinstance(tensor.layout, tuple):
        return tensor.layout
    return contiguous_strides(tensor.shape) if tensor.layout is Layout.CONTIGUOUS else None


def dense(tensor: Tensor) -> Formula | None:
    """In some order of its dims each stride is the product of the sizes before it; a dim of size 1 has any
    stride. None where that is not known.
    """
    if tensor.layout is Layout.CONTIGUOUS:
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


def clash(written: Tensor, start: Dim | None, read: Tensor, from_: Dim | None) -> Formula | None:
    """Do the two, that begin at these places in one memory, overlap in a way that torch refuses? It looks at
    dense tensors alone, and lets those be that are the same. None where it is not known, as of tensors of
    unknown rank.
    """
    if any(place_of(t.shape) is not None for t in (written, read)):
        one = start is not None and start == from_ and written.shape == read.shape
        return False if one and written.layout == read.layout else None
    parts = dense(written), dense(read)
    if False in parts:
        return False
    mine, theirs = strides_of(written), strides_of(read)
    if None in (start, from_, *parts) or mine is None or theirs is None or start is None or from_ is None:
        return None
    n, m = written.numel, read.numel
    meet = (ge(n, 1), ge(m, 1), lt(start, from_ + m), lt(from_, start + n))
    alike: Formula = len(mine) == len(theirs) and all_of(eq(a, b) for a, b in zip(mine, theirs, strict=True))
    same = all_of((eq(start, from_), eq(n, m), alike))
    return all_of((*(p for p in parts if p is not None), *meet, negate(same)))
