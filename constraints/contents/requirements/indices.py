"""Index tensors: which arguments of an operator they are, and their requirements on sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

from msgspec import structs

from ...ir.language import Affine, Between, Context, Direction, Dots, Piece, Pieces, Shape, Tensor, product
from ...terms.dims import Apply, Dim, Term, lone_atom
from ...terms.formula import Formula, all_of, any_of, eq, ge, le, lt, ne, negate
from ..elements.cycles import is_run
from ..elements.dtypes import INTEGRAL
from ..elements.functions import Corners, corners, is_near, number
from ..elements.values import is_data, of, pieces_of, surely
from ..outcomes.ranges import below

Named = Mapping[str, Any]
NO_DATA: Final = "at some sizes there are no data that decide this, which is not followed"

SAME_DATA: Final = "a condition on data may have one outcome for all data"


def _tensor(named: Named) -> Tensor:
    found = named.get("input")
    return found if isinstance(found, Tensor) else next(v for v in named.values() if isinstance(v, Tensor))


def _embedding(named: Named) -> Iterator[tuple[Tensor, Dim, bool]]:
    weight = named["weight"]
    if weight.shape:
        yield named["input"] if "input" in named else named["indices"], weight.shape[0], False


def _bags(named: Named) -> Iterator[tuple[Tensor, Dim, bool]]:
    """Yields the offsets, which are positions in the indices, or their end."""
    yield from _embedding(named)
    offsets, indices = named.get("offsets"), named["input"] if "input" in named else named["indices"]
    if isinstance(offsets, Tensor) and indices.rank == 1:
        yield offsets, indices.shape[0] + 1, False


def _renormed(named: Named) -> Iterator[tuple[Tensor, Dim, bool]]:
    if named["input"].shape:
        yield named["indices"], named["input"].shape[0], False


def _along_dim(named: Named) -> Iterator[tuple[Tensor, Dim, bool]]:
    """Yields the index along a dim; a tensor without dims is a vector of one element here."""
    shape = _tensor(named).shape or (1,)
    index = named.get("index", named.get("indices"))
    dim = named.get("dim")
    if isinstance(index, Tensor) and isinstance(dim, int) and -len(shape) <= dim < len(shape):
        yield index, shape[dim], False


def _flat(named: Named) -> Iterator[tuple[Tensor, Dim, bool]]:
    """Yields indices that count all elements, whatever the dims are (`take`, `put`)."""
    yield named["index"], _tensor(named).numel, True


def _flat_along(named: Named) -> Iterator[tuple[Tensor, Dim, bool]]:
    """Yields indices that count all elements, without a dim; along a dim, torch itself checks no index."""
    if named.get("dim") is None:
        yield named["indices"], _tensor(named).numel, False


def _hot(named: Named) -> Iterator[tuple[Tensor, Dim, bool]]:
    classes = named.get("num_classes", -1)
    if isinstance(classes, int | Term) and classes != -1:
        yield named["input"], classes, False


def _margins(named: Named) -> Iterator[tuple[Tensor, Dim, bool]]:
    if named["input"].shape:
        yield named["target"], named["input"].shape[-1], False


def _classes(named: Named) -> Iterator[tuple[Tensor, Dim, bool]]:
    """Yields the classes of a loss, except the one that it ignores."""
    input, target, ignored = named["input"], named["target"], named.get("ignore_index", -100)
    same = isinstance(target.elements, Affine) and target.elements == Affine(ignored)
    if target.dtype not in INTEGRAL or not input.shape or same:
        return
    pieces, size = pieces_of(of(target), target.shape), input.shape[min(1, input.rank - 1)]
    if pieces is not None:
        left = tuple(part for p in pieces.pieces for part in _beside(p, ignored, size))
        if not left:
            return
        target = structs.replace(target, elements=replace(pieces, pieces=left))
    yield target, size, False


def _beside(piece: Piece, ignored: Any, size: Dim) -> Iterator[Piece]:
    """Yields the piece without a number that is ignored, marked as one where not all elements count at the
    sizes where this may be an end.

    If the least number is another one than a negative one that is ignored, it has to be valid, and the
    greatest, which is no valid class below 0. If it is that, the next one is not valid. A number that the
    program computes may be any.
    """
    if not isinstance(ignored, int):
        yield replace(piece, attained=False)
        return
    ends = None if piece.term is None else corners(piece.term, piece.indices, surely)
    if ends is None or piece.over != 1 or ignored >= 0:
        yield piece if surely(size, ignored + 1) else replace(piece, attained=False)
        return
    apart = all_of((piece.given, *(ne(low, ignored) for low in ends[0])))
    if apart is not False:
        yield replace(piece, given=apart)
    if piece.indices and apart != piece.given:
        there = all_of((piece.given, any_of(eq(low, ignored) for low in ends[0])))
        others = any_of(ne(high, low) for high in ends[1] for low in ends[0])
        next_is_class = not is_run(piece) or ignored == -1
        yield replace(piece, given=all_of((there, others)), attained=piece.attained and not next_is_class)


def _items(named: Named) -> Iterator[tuple[Tensor, Dim, bool]]:
    tensor = named.get("input")
    if not isinstance(tensor, Tensor):
        return
    index = named["index"] if "index" in named else named["indices"]
    items = index if isinstance(index, tuple) else (index,)
    axis = 0
    for place, item in enumerate(items):
        if item is Dots:
            axis = tensor.rank - sum(map(consumed, items[place + 1 :]))
        elif isinstance(item, Tensor) and item.dtype == "bool":
            axis += item.rank
        elif item is not None or "indices" in named:
            if isinstance(item, Tensor) and 0 <= axis < tensor.rank:
                yield item, tensor.shape[axis], True
            axis += 1


def consumed(item: object) -> int:
    """Returns how many dims an item of an index consumes."""
    return item.rank if isinstance(item, Tensor) and item.dtype == "bool" else int(item is not None)


GREATEST_SIZE: Final = 1 << 60
"""The number of elements of a tensor is less than this."""
LOSSES: Final = ("cross_entropy", "nll_loss", "cross_entropy_loss", "nll_loss_nd")
INDICES: Mapping[str, Callable[[Named], Iterator[tuple[Tensor, Dim, bool]]]] = {
    **dict.fromkeys("embedding aten_embedding".split(), _embedding),
    **dict.fromkeys("embedding_bag _embedding_bag".split(), _bags),
    "embedding_renorm": _renormed,
    **dict.fromkeys(
        "index_select gather scatter scatter_add scatter_reduce index_add index_copy "
        "index_reduce".split(),
        _along_dim,
    ),
    "take_along_dim": _flat_along,
    "index_fill": lambda named: ((index, size, True) for index, size, _ in _along_dim(named)),
    **dict.fromkeys(("take", "put"), _flat),
    "one_hot": _hot,
    "multi_margin_loss": _margins,
    **dict.fromkeys(LOSSES, _classes),
    **dict.fromkeys("getitem setitem index index_put".split(), _items),
}
"""For each operator its index tensors, each with the size that it indexes, and whether -1 counts from the
end.
"""


CHECKED_BY_KERNEL: Final = frozenset(
    "gather scatter scatter_add scatter_reduce take_along_dim one_hot embedding_bag _embedding_bag "
    "multi_margin_loss".split()
)
"""Operators that refuse an index beyond the size by a RuntimeError."""


def errors(c: Context, op: str, named: Named, size: Dim) -> Iterator[tuple[Formula, type[Exception]]]:
    """Yields the types of the error by which torch refuses an index beyond the size, each with the sizes at
    which it is that one: most often an IndexError.

    By a RuntimeError do so `index_select` along the second dim and from nothing, unless it is from a vector;
    `index_add` along the first and the last dim of a matrix or more; `index_copy` and `index_fill` into
    nothing.
    """
    by_kernel: Formula = op in CHECKED_BY_KERNEL
    table = named["weight"] if op in ("embedding", "aten_embedding") else _tensor(named)
    last, dim = table.rank - 1, named.get("dim")
    dim = dim % table.rank if isinstance(dim, int) and last > 0 else 0
    if op in ("index_copy", "index_fill"):
        by_kernel = not c.at_least(size, 1) and eq(size, 0)
    elif op == "index_add":
        by_kernel = last > 0 and dim in (0, last)
    elif op in ("index_select", "embedding", "aten_embedding") and last > 0:
        by_kernel = any_of((dim == 1, *(eq(n, 0) for n in table.shape if not c.at_least(n, 1))))
    yield by_kernel, RuntimeError
    yield negate(by_kernel), IndexError


def require_in_range(c: Context, op: str, named: Named, unchecked: Formula) -> None:
    """Requires that index tensors whose elements the sizes decide stay in range, except at the sizes where
    the rule calls this `unchecked`: where nothing is indexed.

    An index without dims is checked like a number. If the data choose among elements that sizes allow, every
    choice has to be valid.
    """
    for index, size, wraps in INDICES[op](named):
        bottom = -size if wraps else 0
        require_some(c, op, index, bottom, size - 1)
        if index.elements is None:
            none = c.no_index_between(index, bottom, size - 1)
            empty = (eq(n, 0) for n in index.shape if not c.at_least(n, 1))
            reason = f"{op} may be given indices that are valid for no data"
            approximate(c, reason, any_of((negate(none), unchecked, *empty)))
        for there, error in errors(c, op, named, size):
            if there is not False:
                _require_inside(c, op, named, (index, size, wraps), any_of((unchecked, negate(there))), error)


def _require_inside(
    c: Context,
    op: str,
    named: Named,
    indices: tuple[Tensor, Dim, bool],
    unchecked: Formula,
    error: type[Exception],
) -> None:
    """Requires that one index tensor stays in range, which torch refuses by this error."""
    index, size, wraps = indices
    bottom = -size if wraps else 0
    inside = partial(_is_inside, bottom, size - 1)
    require_data(c, op, index, inside, error, unchecked, numbers=index.elements is not None)
    if index.elements is None:
        return
    empty = [] if all(c.at_least(n, 1) for n in index.shape) else [eq(product(index.shape), 0)]
    if index.shape or op not in ("getitem", "setitem"):
        empty.append(unchecked)
    pieces = pieces_of(of(index), index.shape)
    if pieces is None or not is_settled(c, pieces, bottom, size - 1):
        given = named["target"] if op in LOSSES else index
        ignored = named.get("ignore_index", -100) if op in LOSSES else None
        reason = f"indices, computed one by one, into a size of {size}"
        followed = ignored is None or isinstance(ignored, int)
        if followed and require_followed(c, given, bottom, size - 1, reason, empty, error, ignored):
            return
    if pieces is None or pieces.roundings:
        reason = f"{op} is given indices that the sizes decide, in a way that is not followed"
        c.approximate(reason, "accept", negate(unchecked))
        return
    _require(c, op, pieces, size, wraps, empty, error)


def _is_inside(low: Dim, high: Dim, number: float) -> Formula:
    return all_of((ge(int(number), low), le(int(number), high)))


def require_data(
    c: Context,
    op: str,
    operand: Any,
    is_valid: Callable[[float], Formula | None],
    error: type[Exception] = RuntimeError,
    unchecked: Formula = False,
    *,
    numbers: bool = False,
) -> None:
    """Requires that elements which no data decide are valid. `is_valid` returns None for a number if it is
    not known whether that is valid.

    Where the elements are not known either, the call is marked as approximate. With `numbers`, all numbers
    that the operand may contain are valid.
    """
    if not isinstance(operand, Tensor) or not is_data(operand):
        return
    known, rest = c.without_data(operand, numbers=numbers)
    for where, value in known:
        valid = True if value is None else None if isinstance(value, Between) else is_valid(value)
        if valid is None:
            rest = any_of((rest, where))
        elif not c.certain(needed := any_of((negate(where), unchecked, valid))):
            c.require(needed, f"{op} is given elements that are {value} for all data", error)
    if rest is not False:
        approximate(c, f"{op}: {NO_DATA}", any_of((negate(rest), unchecked)), "both")


def doubt_places(c: Context, places: Tensor, sizes: Shape) -> None:
    """Marks a sparse tensor as approximate, unless the places `[d, s]` of its elements certainly lie within
    the sizes: torch checks them only in some operators on it, and only some of them.
    """
    none = eq(places.shape[-1], 0)
    reason = f"places of elements beyond the sizes ({', '.join(map(str, sizes))}) of a sparse tensor"
    if is_data(places):
        approximate(c, reason, any_of((none, all_of(ge(n, 1) for n in sizes))))
        return
    pieces = pieces_of(of(places), places.shape)
    for piece in pieces.pieces if pieces is not None and not pieces.roundings else (Piece(None),):
        row = dict(piece.fixed).get(-2)
        limits = sizes if row is None else sizes[row : row + 1]
        ends = None if piece.term is None else corners(piece.term, piece.indices, c.at_least)
        lows, highs = ends if ends is not None and piece.over == 1 and piece.doubt is False else ((-1,), ())
        inside = all_of((*(ge(low, 0) for low in lows), *(lt(e, n) for e in highs for n in limits)))
        approximate(c, reason, any_of((none, negate(piece.given), inside)))


def require_some(c: Context, op: str, operand: Any, low: Dim | None, high: Dim | None) -> None:
    """Marks the call as approximate where the bounds of the elements show that none lies between `low` and
    `high`, whatever the data.
    """
    if isinstance(operand, Tensor) and operand.elements is None:
        least, most = c.range_of(operand)
        empty = (eq(n, 0) for n in operand.shape if not c.at_least(n, 1))
        valid = all_of((negate(below(most, low)), negate(below(high, least))))
        approximate(c, f"{op} is given elements that are valid for no data", any_of((*empty, valid)))


def require_followed(
    c: Context,
    operand: Tensor,
    low: Dim | None,
    high: Dim | None,
    reason: str,
    empty: Iterable[Formula],
    error: type[Exception] = RuntimeError,
    ignored: int | None = None,
) -> bool:
    """Requires that elements, which are computed one by one or size by size, lie between two numbers, except
    one that is `ignored`, and except at the sizes in `empty`. Returns whether they are computed.
    """
    found: Sequence[tuple[Formula | None, bool]] = ()
    if isinstance(low, int | None) and isinstance(high, int | None):

        def is_valid(x: float) -> bool:
            return x == ignored or ((low is None or x >= low) and (high is None or x <= high))

        found = [(one.valid(is_valid), one.by_data) for one in c.computed(operand)]
    if not found or any(needed is None for needed, _ in found):
        found = [c.needed(operand, low, high, ignored) or (None, False)]
    for needed, by_data in found:
        if needed is None:
            return False
        none = map(c.with_all_true, empty) if by_data else empty
        if not c.certain(needed := any_of((needed, *none))):
            c.require(needed, reason, error, by_data=by_data)
    return True


def is_settled(c: Context, pieces: Pieces, least: Dim | None, most: Dim | None) -> bool:
    """Returns whether the pieces give the exact condition for numbers that must lie between two others, or
    their ends surely do.
    """
    if pieces.roundings or pieces.slack or any(p.term is None or p.over != 1 for p in pieces.pieces):
        return False
    ends = [corners(number(p), p.indices, c.at_least) for p in pieces.pieces]
    if None in ends:
        return False
    if all(p.attained and p.doubt is False for p in pieces.pieces):
        return True
    return all(
        end is not None
        and p.doubt is False
        and all(least is None or _is_above(c, low - least) for low in end[0])
        and all(most is None or _is_below(c, high, most + 1) for high in end[1])
        for p, end in zip(pieces.pieces, ends, strict=True)
    )


ROUGH: Final = 32
"""Numbers in doubt, which are finite, differ from those that they are rounded from by less than one part in
so many, and 1: even those that are rounded to 8 bits, by one in 512 each time.
"""


def _within_one(c: Context, ends: Corners, bottom: Dim, size: Dim, by: int) -> Formula:
    """Returns whether ends lie within the size even if they are off by one, or, with -1 for 1, only then.
    Numbers that are not negative stay so.
    """
    lows, highs = ends
    natural = all(_is_above(c, low) for low in lows) and _is_above(c, -1 * bottom)
    below = () if natural else (ge(low - by, bottom) for low in lows)
    return all_of((*below, *(lt(high + by, size) for high in highs)))


def _is_close(end: Dim, size: Dim, least: int) -> Formula:
    """Returns whether a number is so near to a size that it matters how it is rounded, as those from the
    least one on are.
    """
    if isinstance(end, int):
        return end >= least
    return all_of((ge(end + end // ROUGH + 1, size), ge(size, end - end // ROUGH - 1)))


def _require(
    c: Context,
    op: str,
    pieces: Pieces,
    size: Dim,
    wraps: bool,
    empty: list[Formula],
    error: type[Exception],
) -> None:
    """Requires that each piece of an index lies within the size, wherever the piece has elements.

    With slack a number may be one less than its piece says, as long as it is not negative.
    """
    bottom = -size if wraps else 0
    empty = [*map(c.with_all_true, empty)] if pieces.by_data else empty
    for piece in pieces.pieces:
        nowhere = [*empty, negate(piece.given)]
        ends = None if piece.term is None else corners(piece.term, piece.indices, c.at_least)
        if ends is None or piece.over != 1:
            reason = f"{op} is given indices that the sizes decide, in a way that is not followed"
            approximate(c, reason, any_of(nowhere))
            continue
        doubt = piece.doubt
        if doubt is not False:
            reason = f"{op} is given indices that floats are rounded to, into a size of {size}"
            near = all_of((doubt, is_near(piece)))
            if near is not False:
                valid, possible = (_within_one(c, ends, bottom, size, by) for by in (1, -1))
                approximate(c, reason, any_of((valid, negate(near), *nowhere)))
                nowhere.append(all_of((valid, any_of((negate(doubt), near)))))
                if piece.attained:
                    there = any_of((possible, negate(near), *nowhere))
                    c.require(there, reason, error, by_data=pieces.by_data)
                doubt = all_of((doubt, negate(near)))
                nowhere.append(near)
            below = (ge(-piece.least, e) for e in ends[0] if wraps)  # others are invalid, rounded or not
            beyond = (*below, *(ge(e, piece.least) for e in ends[1]))
            sides = (*(-1 * e for e in ends[0] if wraps), *ends[1])
            close = any_of(_is_close(e, size, piece.least) for e in sides)
            far = all_of((doubt, ge(size, piece.least), any_of(beyond), close))
            approximate(c, reason, any_of((negate(far), *nowhere)))
            nowhere.append(far)
        inside = all_of(
            (
                *(ge(low, bottom) for low in ends[0] if not _is_above(c, low - bottom)),
                *(lt(high, size) for high in ends[1] if not _is_below(c, high, size)),
                *(False for end in (*ends[0], *ends[1]) if isinstance(end, int) and abs(end) > GREATEST_SIZE),
            )
        )
        needed: Formula = any_of((inside, *nowhere))
        told = f"indices {_told(ends)} into a size of {size}"
        if c.certain(needed):
            continue
        if not piece.attained:
            approximate(c, f"{op} is given some of the {told}", needed)
            continue
        if pieces.slack and not (piece.near and piece.near.sharp and is_near(piece) is not False):
            approximate(c, f"{op} is given {told}, which floats are rounded to", needed)
            needed = any_of((*(lt(high, size + 1) for high in ends[1]), *nowhere))
        c.require(needed, told, error, by_data=pieces.by_data)


def approximate(c: Context, reason: str, fine: Formula, may: Direction = "accept") -> None:
    """Marks the call as approximate outside of the sizes in `fine`: torch may refuse there, or accept a
    refused call.
    """
    if not c.certain(fine):
        c.approximate(reason, may, negate(fine))


MOST_TOLD: Final = 200
"""Ends of more letters are left out of a message."""


def _told(ends: tuple[tuple[Dim, ...], tuple[Dim, ...]]) -> str:
    low, high = (" or ".join(map(str, side)) for side in ends)
    return f"from {low} to {high}" if len(low) + len(high) <= MOST_TOLD else "that are computed from sizes"


def _is_above(c: Context, dim: Dim) -> bool:
    """Returns whether the dim is at least 0. A minimum is, where all its arguments are."""
    return all(c.at_least(part, 0) for part in _arguments("min", dim))


def _is_below(c: Context, dim: Dim, size: Dim) -> bool:
    return all(c.at_least(size - 1 - part, 0) for part in _arguments("max", dim))


def _arguments(op: str, dim: Dim) -> tuple[Dim, ...]:
    """Returns the arguments of `op(x, y, …)`; any other dim is its own only argument."""
    atom = lone_atom(dim)
    return atom.args if isinstance(atom, Apply) and atom.op == op else (dim,)
