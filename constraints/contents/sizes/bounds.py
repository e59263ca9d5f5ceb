"""The bounds of the results of operators: a table of laws, and those of elements that are made, moved, or put
together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

from ...ir.language import Affine, Dots, Slice, Tensor, product
from ...ir.program import Ref
from ...terms.dims import Dim, Term
from ..elements.dtypes import DIGITS, INTEGRAL
from ..elements.shaping import is_permutation
from ..lookups.computed import NotComputed
from .arrays import is_whole_topk, picked_alike
from .functions import FUNCTIONS, at_most
from .held import rounded, stored
from .lines import (
    Bound,
    Ends,
    Growth,
    Sameness,
    constant,
    flat,
    greater,
    less,
    lower,
    product_above,
    product_below,
    single,
    upper,
)
from .tails import EndsCall, Law


def _moved(call: EndsCall) -> Ends:
    """The same elements, each at least once, and in their order only in a vector."""
    ends, value = call.ends(), call.operand()
    if call.part or value.dtype != call.dtype:
        raise NotComputed
    kept = call.op in KEEPING and (call.op not in SHAPED or len(value.shape) == len(call.result.shape) == 1)
    growth = ends.growth if kept else min(ends.growth, Growth.BAG)
    if call.op == "_unique2" and growth >= Growth.NUMBERS:
        growth = Growth.NUMBERS if ends.chosen else Growth.BAG  # each number that stays is there once
    if not all(map(call.tail.rises, (*value.shape, *call.result.shape))):
        growth = Growth.NOTHING if call.op in COPYING else min(growth, Growth.BAG)
    root = ends.root if call.op in SAME and value.shape == call.result.shape else None
    alike = min(ends.alike, Sameness.ALL) if call.op in COPYING | ORDERING else ends.alike
    alike = Sameness.NO if call.op in ORDERING and alike < Sameness.ALL else alike
    return replace(ends, growth=growth, root=root, alike=alike)


SAME: Final = frozenset("clone contiguous detach alias reshape view flatten".split())
"""Operators that leave each element at its place where they leave the shape."""
COPYING: Final = frozenset("expand repeat repeat_interleave".split())
"""Operators that return elements as often as their arguments say."""
ORDERING: Final = frozenset("sort _unique2".split())
KEEPING: Final = frozenset("clone contiguous detach alias unsqueeze expand t transpose reshape view".split())
"""Operators that move elements to places that do not depend on n."""
SHAPED: Final = frozenset("reshape view".split())


def _item(call: EndsCall) -> Ends:
    """The bounds of some of the elements. If the rows of a tensor stay as n grows, so does a column of it.
    The same holds for a vector and the part of it from some place on.
    """
    ends, value, index = call.ends(), call.operand(), call.args.get("index")
    items = index if isinstance(index, tuple) else (index,)
    if _takes_all(call, items):
        return replace(ends, root=None)
    if len(items) <= len(value.shape) and all(
        type(item) is int and n == 1 for item, n in zip(items, value.shape, strict=False)
    ):
        return replace(ends, growth=min(ends.growth, Growth.BAG), root=None)
    if len(items) == 1 and isinstance(items[0], Ref):
        positions = call.places.program.value(items[0].id)
        if items[0] == call.args.get("input") and ends.alike >= Sameness.ALL:
            # where all are one number, so is each
            return replace(ends, growth=Growth.NOTHING, root=None, alike=Sameness.ALL)
        if not ends.chosen and is_permutation(positions, value.shape):
            low, both = call.tail.lines(value.shape[0])[0], (ends.alike, call.ends_of(items[0]).alike)
            several = low is not None and flat(3).is_below(low)
            alike = picked_alike(call, items[0], both, several=several)
            return replace(ends, growth=min(ends.growth, Growth.BAG), root=None, alike=alike)
    if len(items) == 1 and type(items[0]) is int and (one := call.tail.at(ends, items[0], call)) is not None:
        return one
    if ends.alike >= Sameness.ALL and items in ((0,), (-1,)):  # one of those that are all the same
        return replace(ends, growth=Growth.NOTHING, root=None)
    source = call.args.get("input")
    made = call.places.program.made(source.id) if isinstance(source, Ref) else None
    column = len(items) == 2 and _is_whole(items[:1]) and type(items[1]) is int
    row = len(items) == 1 and type(items[0]) is int and made is not None and made.op in TRIANGLES
    if row or (column and made is not None and made.op in ROWS and made.place == 0):
        return replace(ends.loose, growth=ends.growth if row else min(ends.growth, Growth.BAG))
    is_vector = len(items) == len(value.shape) == 1 and ends.growth == Growth.PLACES
    if is_vector and (_goes_on(items[0]) or _is_fixed(call, items)):
        return replace(ends.loose, growth=Growth.PLACES)
    last = items == (Slice(-1),) or items == (-1,)
    if last and made is not None and made.op in RISING and made.place == 0 and not ends.chosen:
        greatest = greater(ends.low, ends.top)
        return Ends(greatest, ends.high, greatest, ends.high)
    if all(n == 1 for n in value.shape) and call.tail.has_elements(call.result):
        return ends
    sought = any(isinstance(item, Ref) for item in items)
    return replace(ends, alike=Sameness.NO if sought else ends.alike).loose


def _is_whole(items: Iterable[Any]) -> bool:
    return all(item is None or item is Dots or item == Slice() for item in items)


def _is_beyond(call: EndsCall, part: Any) -> bool:
    """Returns whether an end of a slice of a vector surely lies at the vector's end, or beyond."""
    if not isinstance(part, int | Term) or len(call.operand().shape) != 1:
        return False
    low, high = call.tail.lines(part)[0], call.tail.lines(call.operand().shape[0])[1]
    return low is not None and high is not None and high.is_below(low)


def _takes_all(call: EndsCall, items: Sequence[Any]) -> bool:
    """Returns whether an index surely takes all elements, in their order."""
    match items:
        case (Slice(None | 0, stop, None | 1),) if _is_beyond(call, stop):
            return True
    return _is_whole(items)


def _assigned(call: EndsCall) -> Ends:
    """The elements from before, and a number that is written over some of them, or over all."""
    ends, put, index = call.ends(), call.ends("value"), call.args.get("index")
    items = index if isinstance(index, tuple) else (index,)
    if ends.chosen or put.chosen or ends.wild or put.wild or isinstance(call.args["value"], Ref):
        raise NotComputed
    if _takes_all(call, items):
        return put
    growth = ends.growth if single(put) is not None and _is_fixed(call, items) else Growth.NOTHING
    return Ends(lower(ends.low, put.low), upper(ends.high, put.high), growth=growth)


def _is_fixed(call: EndsCall, items: Sequence[Any]) -> bool:
    """Returns whether an index is a slice of a vector that is the same for all n, as is the vector's size."""
    match items:
        case (Slice(start, stop, int() | None),) if call.tail.is_fixed(product(call.operand().shape)):
            ends = [end for end in (start, stop) if isinstance(end, int | Term)]
            fixed = (_is_beyond(call, end) or call.tail.is_fixed(end) for end in ends)
            known = len(ends) + [start, stop].count(None) == 2
            return known and call.tail.begins_there and all(fixed)
    return False


def _goes_on(item: Any) -> bool:
    """Returns whether a slice begins at a place from the start, and goes on to the end or to another."""
    parts = [getattr(item, name, -1) for name in ("start", "stop", "step")]
    return all(part is None or (type(part) is int and part >= 0) for part in parts)


RISING: Final = frozenset("_unique2 unique msort".split())
"""Operators that return the elements in rising order."""
ROWS: Final = frozenset("cartesian_prod combinations nonzero argwhere".split())
TRIANGLES: Final = frozenset("triu_indices tril_indices".split())


def _rows(call: EndsCall) -> Ends:
    """Rows made from vectors that stay as n grows, or the places of numbers other than 0."""
    several = call.args.get("tensors", (call.args.get("input"),))
    if not isinstance(several, tuple):
        raise NotComputed
    found = [call.ends_of(one) for one in several]
    if any(one.chosen for one in found):
        raise NotComputed
    places = call.op in ("nonzero", "argwhere", "combinations")
    enough = all(one.growth == Growth.PLACES if places else one.growth >= Growth.BAG for one in found)
    if call.op in ("nonzero", "argwhere"):
        return Ends(growth=Growth.BAG if enough else Growth.NOTHING)
    low, high = found[0].low, found[0].high
    for one in found[1:]:
        low, high = lower(low, one.low), upper(high, one.high)
    return Ends(low, high, growth=Growth.BAG if enough else Growth.NOTHING)


def _triangle(call: EndsCall) -> Ends:
    """Rows and columns, which stay where rows are added below: where each is as long as it may be."""
    rows, columns, offset = (call.args.get(name, 0) for name in ("row", "col", "offset"))
    if not isinstance(rows, int | Term) or not isinstance(columns, int | Term) or not isinstance(offset, int):
        raise NotComputed
    if not (call.tail.rises(rows) and call.tail.rises(columns)):
        raise NotComputed
    whole = call.op == "tril_indices" and call.places.at_least(columns - rows - offset, 0)
    return Ends(growth=Growth.PLACES if whole else Growth.BAG)


def _meshed(call: EndsCall) -> Ends:
    several = call.args.get("tensors")
    if not isinstance(several, tuple):
        raise NotComputed
    found = [call.ends_of(one) for one in several]
    if any(one.chosen for one in found) or not call.tail.has_elements(call.result):
        raise NotComputed
    kept = call.args.get("indexing") == "ij" and all(one.growth == Growth.PLACES for one in found)
    return replace(found[call.part], growth=Growth.PLACES if kept else Growth.NOTHING, root=None)


def _joined(call: EndsCall) -> Ends:
    several = call.args.get("tensors")
    if not isinstance(several, tuple) or not several:
        raise NotComputed
    found = [call.ends_of(one) for one in several]
    if any(one.wild for one in found):
        raise NotComputed
    chosen = any(one.chosen for one in found)
    together, *rest = found
    for one in rest:
        low, high = lower(together.low, one.low), upper(together.high, one.high)
        top, bottom = greater(together.top, one.top), less(together.bottom, one.bottom)
        together = Ends(low, high, top, bottom)
    values = [call.places.program.value(one.id) for one in several if isinstance(one, Ref)]
    before = [n for value in values[:-1] if isinstance(value, Tensor) for n in value.shape]
    kept = Growth.PLACES if all(map(call.tail.is_fixed, before)) else Growth.BAG  # none moves behind others
    growth = min(Growth.NUMBERS if chosen else kept, *(one.growth for one in found))
    sure = all(isinstance(value, Tensor) and call.tail.has_elements(value) for value in values)
    found_ends = together if sure else together.loose
    return replace(found_ends, growth=growth, root=None, chosen=chosen)


def _padded(call: EndsCall) -> Ends:
    """The elements, with a number before and after them."""
    ends, sides, value = call.ends(), call.args.get("pad"), call.args.get("value")
    around = call.ends_of(0 if value is None else value)
    if call.args.get("mode", "constant") not in (None, "constant") or not isinstance(sides, tuple):
        raise NotComputed
    if ends.wild or not all(type(side) is int and side >= 0 for side in sides):
        raise NotComputed
    low, high = lower(ends.low, around.low), upper(ends.high, around.high)
    if not any(sides) or not call.tail.has_elements(call.operand()):
        return Ends(low, high, chosen=ends.chosen)
    top, bottom = greater(ends.top, around.top), less(ends.bottom, around.bottom)
    growth = Growth.NOTHING if ends.chosen else min(ends.growth, around.growth, Growth.BAG)
    return Ends(low, high, top, bottom, growth, chosen=ends.chosen)


def _on_diagonal(call: EndsCall) -> Ends:
    """The elements of a vector, and zeros where there are several."""
    ends, value = call.ends(), call.operand()
    if ends.wild or ends.chosen or len(value.shape) != 1 or call.args.get("diagonal", 0) != 0:
        raise NotComputed
    low, high, zero = lower(ends.low, flat(0)), upper(ends.high, flat(0)), flat(0)
    top, bottom = greater(ends.top, zero), less(ends.bottom, zero)
    several = flat(2).is_below(call.tail.lines(value.shape[0])[0] or zero)
    found = Ends(low, high, top, bottom) if several else Ends(low, high)
    return replace(found, growth=min(ends.growth, Growth.BAG))


def _made(call: EndsCall) -> Ends:
    """Numbers that are given one by one."""
    data = call.args.get("data") if "data" in call.args else call.args.get("fill_value")
    if isinstance(data, Ref) and call.operand("data").dtype == call.dtype:
        return call.ends("data")
    parts = data if isinstance(data, tuple) else (data,)
    if any(isinstance(part, tuple) for part in parts) or not parts:
        raise NotComputed
    found = [call.ends_of(part) for part in parts]
    together, *rest = found
    for one in rest:
        low, high = lower(together.low, one.low), upper(together.high, one.high)
        together = Ends(low, high, greater(together.top, one.top), less(together.bottom, one.bottom))
    same = all(one.growth == Growth.PLACES for one in found) and all(map(call.tail.rises, call.result.shape))
    return stored(replace(together, growth=Growth.PLACES if same else Growth.NOTHING, root=None), call.dtype)


def _cut(call: EndsCall) -> Ends:
    """Some of the elements, and perhaps zeros."""
    ends = call.ends()
    if ends.wild or ends.chosen:
        raise NotComputed
    return Ends(lower(ends.low, flat(0)), upper(ends.high, flat(0)))


def _hot(call: EndsCall) -> Ends:
    """Rows of zeros and a one each."""
    if not call.tail.has_elements(call.result):
        return Ends(flat(0), flat(1))
    several = call.tail.lines(call.result.shape[-1])[0]
    zero = several is not None and flat(2).is_below(several)
    return Ends(flat(0), flat(1), flat(1), flat(0 if zero else 1))


def _drawn(call: EndsCall) -> Ends:
    """Multiples of 2**-p from 0 on that are less than 1, if floats have p digits."""
    if call.dtype not in DIGITS:
        raise NotComputed
    return Ends(flat(0), flat(1), flat(1 - Fraction(1, 1 << DIGITS[call.dtype])), flat(0), chosen=True)


def _unit(call: EndsCall) -> Ends:
    """Ones, zeros, or both."""
    stays = all(map(call.tail.rises, call.result.shape))
    return Ends(flat(0), flat(1), growth=Growth.PLACES if stays else Growth.NOTHING)


def _shuffled(call: EndsCall) -> Ends:
    """The places of a vector, or its elements in their order."""
    if call.op == "sort" and not call.part:
        return _moved(call)
    if len(call.result.shape) != 1 or (call.op == "topk" and not is_whole_topk(call)):
        raise NotComputed
    low, high = call.tail.lines(call.result.shape[0] - 1)
    grows = call.tail.rises(call.result.shape[0])
    return Ends(flat(0), high, low, flat(0), Growth.BAG if grows else Growth.NOTHING)


def _arange(call: EndsCall) -> Ends:
    """A range with a step of a fraction."""
    end, step = call.args.get("end"), call.args.get("step", 1)
    start = call.args.get("start") if end is not None else 0
    last = call.ends_of(end if end is not None else call.args.get("start"))
    first = call.ends_of(start)
    if not isinstance(step, int | float) or step <= 0 or not call.tail.has_elements(call.result):
        raise NotComputed
    stays = isinstance(start, int) and all(map(call.tail.rises, call.result.shape))
    top = last.low and last.low.plus(flat(-Fraction(step)))
    found = Ends(first.low, last.high, top, first.high, Growth.PLACES if stays else Growth.NOTHING)
    return stored(found, call.dtype)


def _logspace(call: EndsCall) -> Ends:
    """Powers of 2 from 1 to the power of `end`. The last one is at least as great as at the first n."""
    end, count = call.ends("end"), call.args.get("steps")
    last, most = end.low, None if end.high is None else end.high.most
    plain = call.args.get("base", 10) == 2 and call.args.get("start") == 0
    if not plain or type(count) is not int or count < 1 or last is None:
        raise NotComputed
    least = flat(1)
    reached = flat(1 << min(math.floor(last.at), 64)) if last.at >= 0 and last.rises else least
    if count == 1:
        return Ends(least, least, least, least)
    if most is not None and most <= 62:
        return rounded(Ends(least, flat(1 << max(math.ceil(most), 0)), reached, least), call.dtype)
    return Ends(least, None, reached, least, wild=True)


def _linspace(call: EndsCall) -> Ends:
    """Numbers from one natural number to another: the first and the last element are these two."""
    start, end = call.ends_of(call.args.get("start")), call.ends_of(call.args.get("end"))
    count = call.tail.lines(call.result.shape[0])[0]
    if call.dtype not in DIGITS or not (start.natural and end.natural) or count is None:
        raise NotComputed
    low, high = lower(start.low, end.low), upper(start.high, end.high)
    several = flat(2).is_below(count)
    found = Ends(low, high, end.low, start.high) if several else Ends(low, high)
    by_ones = call.args.get("start") == 0 and call.args.get("end") == call.result.shape[0] - 1
    growth = Growth.PLACES if by_ones and call.tail.rises(call.result.shape[0]) else Growth.NOTHING
    return replace(rounded(found, call.dtype, exact=False), growth=growth)


def _bucketed(call: EndsCall) -> Ends:
    """The number of those among 0, ..., m - 1 that are less than a natural number x: the lesser one of x and
    m.
    """
    bounds = call.operand("boundaries" if call.op == "bucketize" else "sorted_sequence")
    ends = call.ends()
    plain = not any(call.args.get(name) for name in ("right", "side", "sorter", "out_int32"))
    if bounds.elements != Affine(0, ((-1, 1),)) or len(bounds.shape) != 1 or not plain or not ends.natural:
        raise NotComputed
    low, high = call.tail.lines(bounds.shape[0])
    if ends.wild or call.operand().dtype not in INTEGRAL:
        raise NotComputed
    if ends.high is not None and low is not None and ends.high.is_below(low):
        return call.tail.kept(ends, call.operand(), bounds.shape[0])
    return replace(at_most(ends, Ends(low, high, low, high)), chosen=ends.chosen)


def _sum_of(call: EndsCall) -> Ends:
    """A sum of natural numbers is at least each of them, and at least as many times the least one.

    It is at least the sum of the numbers that stay as n grows; one of these may be the greatest number that
    is reached. A number that the data may choose for all elements is added up as often as there are elements.
    """
    ends, value = call.ends(), call.operand()
    if not ends.natural or ends.wild or call.dtype not in INTEGRAL:
        raise NotComputed
    if all(n == 1 for n in value.shape):
        return ends
    dim = call.args.get("dim")
    whole = dim in (None, ()) or len(value.shape) <= 1
    top = ends.top if call.tail.has_elements(value) else None
    count = call.tail.lines(value.shape[dim] if not whole and isinstance(dim, int) else _count(value))
    if ends.chosen and ends.alike >= Sameness.ALL and whole:
        low, high = product_below(count[0], ends.low), product_above(count[1], ends.high)
        top, bottom = product_below(count[0], ends.top), product_above(count[1], ends.bottom)
        return Ends(low, high, top, bottom, chosen=True)
    if not whole or ends.chosen:
        if ends.alike >= Sameness.ALL and top is not None and flat(1).is_below(count[0] or flat(0)):
            top = product_below(count[0], top)
        return Ends(flat(0), product_above(count[1], ends.high), top, chosen=ends.chosen)
    low = product_below(count[0], ends.low) if count[0] and flat(0).is_below(count[0]) else flat(0)
    least = greater(greater(low, flat(0)), top)
    if ends.growth >= Growth.BAG and (there := call.tail.numbers(call.args.get("input"), call.time)):
        stays = flat(sum(there))
        least = greater(greater(least, stays), top and top.plus(stays).plus(flat(-max(there))))
    return Ends(least, product_above(count[1], ends.high), least)


def _count(value: Tensor) -> Dim:
    found: Dim = 1
    for n in value.shape:
        found = found * n
    return found


def _product_of(call: EndsCall) -> Ends:
    """A product that is 0, modulo the width, stays so with further factors, in any order: that of 64 even
    numbers is.
    """
    ends, value = call.ends(), call.operand()
    if all(n == 1 for n in value.shape):
        return ends
    whole = call.args.get("dim") is None or len(value.shape) <= 1
    if whole and (found := _product_of_few(call, ends) or _doubled(call, ends)) is not None:
        return found
    if single(ends) in (0, 1) and not ends.wild and call.tail.has_elements(value):
        return constant(single(ends) or 0)
    if whole and ends.growth >= Growth.BAG and not ends.wild and call.dtype == "int64":
        there = call.tail.numbers(call.args.get("input"), call.time)
        if there and value.dtype in INTEGRAL and math.prod(map(int, there)) % (1 << 64) == 0:
            return constant(0)
    raise NotComputed


def _product_of_few(call: EndsCall, ends: Ends) -> Ends | None:
    """Returns the bounds of a product of a few natural numbers that 64 bits hold: powers of bounds of each.
    Those that are reached are reached by all at once.
    """
    low, high = ends.low, ends.high
    if ends.wild or low is None or high is None or not high.constant or not ends.natural:
        return None
    least, most = call.tail.lines(_count(call.operand()))
    if call.dtype != "int64" or least is None or most is None or not least.constant or high.at < 1:
        return None
    count = math.floor(least.at)
    if most != least or count > 62 or math.ceil(high.at) ** count >= 1 << 62:
        return None
    at_least, at_most = (flat(one.at**count if one.constant else 0) for one in (low, high))
    if not ends.chosen:
        return Ends(at_least, at_most, at_least, at_most)
    reached = (ends.top, ends.bottom) if ends.alike >= Sameness.ALL else (None, None)
    top, bottom = (
        flat(one.at**count) if one is not None and one.constant and one.at >= 0 else None for one in reached
    )
    return Ends(at_least, at_most, top, bottom, chosen=True)


def _running(call: EndsCall) -> Ends:
    """Sums and products of the elements up to a place stay where these do, in dtypes of 64 bits, which wrap.
    """
    ends, value = call.ends(), call.operand()
    if all(n == 1 for n in value.shape):
        return ends
    if ends.wild or call.dtype != "int64":
        raise NotComputed
    if call.op == "cumprod" and (found := _doubled(call, ends)) is not None:
        return found
    growth = ends.growth if ends.growth == Growth.PLACES and not ends.chosen else Growth.NOTHING
    axis = call.args.get("dim")
    size = value.shape[axis] if isinstance(axis, int) else 0
    count = call.tail.lines(size)
    if call.op == "cumsum" and ends.natural:
        reached = ends.low if not ends.chosen else ends.top if ends.alike >= Sameness.ALL else None
        top = greater(ends.top, product_below(count[0], reached)) if call.tail.has_elements(value) else None
        if len(value.shape) == 1 and not ends.chosen and call.tail.has_elements(value):
            top = greater(top, _sum_of(call).low)  # the last one is the sum of all
        first = ends.high if not ends.chosen else ends.bottom if ends.alike else None
        high = product_above(count[1], ends.high)
        return Ends(ends.low, high, top, first, growth, chosen=ends.chosen)
    if ends.natural and isinstance(size, int) and ends.high is not None and ends.high.constant:
        most = math.ceil(max(ends.high.at, Fraction(1))) ** size
        found = Ends(flat(0), flat(most)) if most < 1 << 62 else Ends()
        return replace(found, growth=growth, chosen=ends.chosen)
    return Ends(growth=growth, chosen=ends.chosen)


def _doubled(call: EndsCall, ends: Ends) -> Ends | None:
    """Returns the bounds of running products of a vector of ones and twos. In any order of its elements,
    these are the powers of 2 up to the product of all elements; 2**63 wraps, and the powers from 2**64 on are
    0.
    """
    low, high = ends.low, ends.high
    if low is None or high is None or not (flat(1).is_below(low) and high.is_below(flat(2))):
        return None
    if len(call.operand().shape) != 1 or call.operand().dtype not in INTEGRAL or call.dtype != "int64":
        return None
    if ends.alike is Sameness.FREE and ends.chosen:
        return _freely_doubled(call, ends)
    if ends.growth < Growth.BAG or call.op == "prod":
        return None
    twos = [*call.tail.numbers(call.args.get("input"), call.time)].count(2)
    least, most = flat(-(1 << 63)), flat(1 << 62)
    growth = ends.growth if ends.growth == Growth.PLACES and not ends.chosen else Growth.NOTHING
    if not twos:
        return Ends(least, most, growth=growth)
    return Ends(least, most, flat(1 << min(twos, 62)), least if twos > 62 else flat(2), growth)


def _freely_doubled(call: EndsCall, ends: Ends) -> Ends:
    """Returns the bounds of products of ones and twos that the data choose freely: all powers of 2."""
    count = call.tail.lines(call.operand().shape[0])
    twos = ends.top is not None and flat(2).is_below(ends.top)
    least, most = (None if one is None else one.least for one in (count[0], count[1] and count[1].negated))
    ones = call.op == "cumprod" or (ends.bottom is not None and ends.bottom.is_below(flat(1)))
    certain = math.floor(least) if twos and least is not None and (ones or least < 63) else 0
    last = 64 if most is None else math.ceil(-most)
    low, high = flat(1 if last < 63 else -(1 << 63)), flat(1 << min(max(last, 0), 62))
    bottom = low if certain > 62 else ends.bottom if call.op == "cumprod" else None
    return Ends(low, high, flat(1 << min(certain, 62)), bottom, chosen=True)


def _extreme(greatest: bool) -> Law:
    def of(call: EndsCall) -> Ends:
        ends, value = call.ends(), call.operand()
        whole = call.args.get("dim") in (None, ()) or len(value.shape) <= 1
        if call.part or call.args.get("other") is not None:
            raise NotComputed
        if ends.wild:
            there = call.tail.numbers(call.args.get("input"), call.time)
            if not (whole and greatest and ends.growth and there and value.dtype == "int64") or ends.chosen:
                raise NotComputed
            return Ends(flat(max(there)), None, flat(max(there)))
        if whole and ends.chosen:
            least, most = _together(call, greatest)
            ends = replace(ends, low=greater(ends.low, least), high=less(ends.high, most))
        if all(n == 1 for n in value.shape):
            return ends
        if not whole or ends.chosen:
            some = whole or call.tail.has_elements(value)  # of nothing there is no extreme: torch refuses
            all_ = ends.alike >= Sameness.ALL
            top = ends.top if some and (greatest or all_) else None
            bottom = ends.bottom if some and (all_ or not greatest) else None
            alike = ends.alike if all_ else Sameness.NO
            return Ends(ends.low, ends.high, top, bottom, chosen=ends.chosen, alike=alike)
        if greatest:
            low = greater(ends.low, ends.top)
            return Ends(low, ends.high, low, ends.high)
        high = less(ends.high, ends.bottom)
        return Ends(ends.low, high, ends.low, high)

    return of


def _together(call: EndsCall, greatest: bool) -> tuple[Bound, Bound]:
    """Returns bounds of the greatest, or the least, of several tensors, or of a padded one: it is at least
    the greatest of each that has elements.
    """
    source = call.args.get("input")
    made = call.places.program.made(source.id) if isinstance(source, Ref) else None
    args: Mapping[str, Any] = {} if made is None else call.places.args(made)
    parts: Iterable[Any] = args["tensors"] if made is not None and made.op in ("cat", "stack") else ()
    if made is not None and made.op in PADDING and _is_around(args):
        parts = (0 if args.get("value") is None else args["value"],)
    least: Bound = None
    most: Bound = None
    for part in parts:
        value = call.places.program.value(part.id) if isinstance(part, Ref) else None
        if value is None or (isinstance(value, Tensor) and call.tail.has_elements(value)):
            ends = call.ends_of(part)
            reached = Ends() if ends.chosen or ends.wild else ends
            least = greater(least, greater(ends.low, reached.top))
            most = less(most, less(ends.high, reached.bottom))
    return (least, None) if greatest else (None, most)


def _is_around(args: Mapping[str, Any]) -> bool:
    """Returns whether a call surely pads with a number."""
    sides = args.get("pad")
    sure = isinstance(sides, tuple) and all(type(n) is int and n >= 0 for n in sides) and any(sides)
    return sure and args.get("mode", "constant") in (None, "constant")


PADDING: Final = ("pad", "constant_pad_nd")


def _differences(call: EndsCall) -> Ends:
    ends, value = call.ends(), call.operand()
    alone = all(call.args.get(name) is None for name in ("prepend", "append"))
    plain = alone and call.args.get("n", 1) == 1
    if ends.wild or ends.low is None or ends.high is None or not plain:
        raise NotComputed
    reach = ends.high.plus(ends.low.times(-1))
    if ends.chosen:
        free = ends.alike is Sameness.FREE and call.tail.has_elements(call.result)
        most = ends.top.minus(ends.bottom) if free and ends.top and ends.bottom else None
        return Ends(reach.times(-1), reach, most, most and most.negated, chosen=True)
    growth = ends.growth if ends.growth == Growth.PLACES and len(value.shape) == 1 else Growth.NOTHING
    return Ends(reach.times(-1), reach, growth=growth)


def _of_all(law: Law) -> Law:
    """Returns the law of one number that is made of all elements, in any order: it stays where these do."""

    def of(call: EndsCall) -> Ends:
        ends, value = call.ends(), call.operand()
        whole = call.args.get("dim") in (None, ()) or len(value.shape) <= 1
        same = whole and ends.growth >= Growth.BAG and all(map(call.tail.is_fixed, value.shape))
        if not same or ends.chosen or ends.wild or call.args.get("other") is not None:
            return law(call)
        try:
            return replace(law(call), growth=Growth.PLACES)
        except NotComputed:
            return Ends(growth=Growth.PLACES)

    return of


LAWS: Final[Mapping[str, Law]] = {
    **FUNCTIONS,
    **dict.fromkeys(
        "clone contiguous detach alias unsqueeze squeeze reshape view flatten t transpose permute flip roll "
        "expand repeat repeat_interleave _unique2".split(),
        _moved,
    ),
    "getitem": _item,
    "setitem": _assigned,
    **dict.fromkeys(("select", "unbind"), lambda call: call.ends().loose),
    **dict.fromkeys(ROWS, _rows),
    **dict.fromkeys(TRIANGLES, _triangle),
    **dict.fromkeys("zeros ones zeros_like ones_like eye".split(), _unit),
    **dict.fromkeys("argsort randperm sort topk".split(), _shuffled),
    "rand": _drawn,
    "one_hot": _hot,
    **dict.fromkeys(("tril", "triu"), _cut),
    "meshgrid": _meshed,
    **dict.fromkeys(PADDING, _padded),
    "diag": _on_diagonal,
    **dict.fromkeys(("cat", "stack"), _joined),
    **dict.fromkeys("tensor as_tensor full new_full".split(), _made),
    "arange": _arange,
    "logspace": _logspace,
    "linspace": _linspace,
    **dict.fromkeys(("bucketize", "searchsorted"), _bucketed),
    "sum": _of_all(_sum_of),
    "prod": _of_all(_product_of),
    **dict.fromkeys(("cumsum", "cumprod"), _running),
    **dict.fromkeys(("max", "amax"), _extreme(greatest=True)),
    **dict.fromkeys(("min", "amin"), _extreme(greatest=False)),
    "diff": _differences,
}
"""For each operator the bounds of the elements of its result."""
