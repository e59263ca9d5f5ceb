"""Numbers drawn from a range by way of floats: `(torch.rand(k) * n).long()` is any of 0 ... n - 1.

The greatest float32 that is drawn is 1 - 2**-24. Its product with m, the float that stands for n, is
m - m/2**24. That is between half of the distance to the next lower float and all of it, so that it is rounded
to a float below m. This is below n, too, as m exceeds n by half of that distance at most. Every integer below
n is drawn where n is at most 2**24.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...ir.language import Index, Piece, Pieces, Tensor
from ...ir.program import Argument, Ref
from ...terms.dims import Dim, Term, maximum
from ...terms.formula import all_of, ge, le
from ..elements.dtypes import DIGITS
from ..elements.functions import symbol_of
from ..laws.calls import CASTS
from .places import Places

MOST: Final = 1 << DIGITS["float32"]


def scaled_draw(places: Places, op: str, args: Mapping[str, Argument], time: int) -> Pieces | None:
    """Returns the integers that uniform numbers times a size are cut to; None for any other call."""
    ref = args.get("input")
    times = places.program.made(ref.id) if op in CASTS and isinstance(ref, Ref) else None
    if times is None or times.node.op != "mul" or not isinstance(ref, Ref):
        return None
    factors = dict(times.node.args)
    drawn, size = factors.get("input"), factors.get("other")
    made = places.program.made(drawn.id) if isinstance(drawn, Ref) else None
    if made is None or made.op != "rand" or not isinstance(drawn, Ref) or not isinstance(size, int | Term):
        return None
    if not (places.is_as_made(ref.id, time) and places.is_as_made(drawn.id, times.time)):
        return None
    floats = [places.program.value(one.id) for one in (drawn, ref)]
    if not all(isinstance(value, Tensor) and value.dtype == "float32" for value in floats):
        return None
    if isinstance(size, bool):
        return None
    pieces = _drawn(size, places)
    return Pieces(pieces if places.at_least(size, 0) else pieces + _drawn(-size, places, -1), by_data=True)


def _drawn(size: Dim, places: Places, sign: int = 1) -> tuple[Piece, ...]:
    """Returns the integers that uniform numbers times a size are cut to, where it is not negative; with the
    sign -1 those of the opposite size, where that is negative. All of them occur up to 2**24.
    """
    more = size if places.at_least(size, 1) else maximum(size, 1)  # nothing times a number is 0
    index = Index("#0", more, None, ordered=False)
    there = True if places.at_least(size, 0) else ge(size, 0 if sign > 0 else 1)
    few, many = all_of((there, le(size, MOST))), ge(size, MOST + 1)
    term = sign * symbol_of(index)
    every, some = Piece(term, 1, (index,), given=few), Piece(term, 1, (index,), given=many, attained=False)
    return (every,) if many is False else (every, some)
