"""Elements on one side of a bound: `torch.where(i < n, i, 0)`, `i.masked_fill(i > 5, 0)`, `i[i < k]`.

The mask is a comparison of the elements themselves. So the integers up to the bound are those that the mask
picks, whatever their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ...ir.language import Index, Piece, Pieces, Tensor
from ...ir.program import Argument, Ref
from ...terms.dims import Dim, Term, maximum, minimum, substitute
from ...terms.formula import all_of, ge
from ..elements.cycles import is_run
from ..elements.dtypes import INTEGRAL
from ..elements.functions import AtLeast, corners, gathered, number, symbol_of
from ..elements.shaping import spread
from ..elements.values import of, pieces_of
from ..laws.calls import of_number
from .places import NAMES, Places

CHOOSING: Final = NAMES.keys() | {"getitem"}
SIDES: Final[Mapping[str, tuple[int, bool]]] = {
    "lt": (0, True),
    "le": (1, True),
    "gt": (1, False),
    "ge": (0, False),
}
"""For each comparison `x ? b` the c for which it is `x < b + c`, or else `x >= b + c`."""


@dataclass(frozen=True, slots=True)
class Cut:
    """The elements of a tensor that are less than a bound where `below`, and the others."""

    ref: int
    pieces: Pieces
    bound: Dim
    below: bool

    def part(self, true: bool, at_least: AtLeast) -> Pieces | None:
        """Returns the elements for which the comparison is true, or those for which it is not."""
        found = [_beside(piece, self.bound, self.below == true, at_least) for piece in self.pieces.pieces]
        known = [piece for piece in found if piece is not None]
        return replace(self.pieces, pieces=tuple(known)) if len(known) == len(found) else None


def chosen(
    places: Places, op: str, args: Mapping[str, Argument], result: Tensor, time: int
) -> Pieces | None:
    """Returns the elements of a result that a comparison of a tensor's elements chooses; None where it is no
    such call, or it is not known which they are, or they are known already.
    """
    if op == "getitem":
        index = args["index"]
        mask = index[0] if isinstance(index, tuple) and len(index) == 1 else index
        cut = _cut(places, mask, time)
        if cut is None or not isinstance(source := args.get("input"), Ref) or source.id != cut.ref:
            return None
        return cut.part(True, places.at_least)
    if op not in NAMES:
        return None
    mask, one, other = (args.get(name) for name in NAMES[op])
    if (cut := _cut(places, mask, time)) is None or not (cut.pieces.by_data or _is_loose(result)):
        return None
    sides = [_side(places, cut, argument, true) for argument, true in ((one, True), (other, False))]
    if sides[0] is None or sides[1] is None:
        return None
    by_data = any(side.by_data for side in sides if side is not None)
    return gathered([p for side in sides if side is not None for p in side.pieces], False, by_data, 0, False)


def _is_loose(result: Tensor) -> bool:
    pieces = pieces_of(of(result), result.shape)
    return pieces is None or not all(p.attained for p in pieces.pieces)


def _cut(places: Places, mask: Argument, time: int) -> Cut | None:
    """Returns the comparison of a tensor of integers with a number that a mask is."""
    made = places.program.made(mask.id) if isinstance(mask, Ref) else None
    if not isinstance(mask, Ref) or made is None or made.op not in SIDES:
        return None
    if not places.is_as_made(mask.id, time):
        return None
    args = dict(made.node.args)
    left, bound = args.get("input"), args.get("other")
    value = places.program.value(left.id) if isinstance(left, Ref) else None
    asked = places.program.value(mask.id)
    if not isinstance(left, Ref) or not isinstance(value, Tensor) or not isinstance(bound, int | Term):
        return None
    if value.dtype not in INTEGRAL or not isinstance(asked, Tensor) or asked.shape != value.shape:
        return None
    pieces = pieces_of(of(value), value.shape)
    if pieces is None or pieces.slack or pieces.roundings or pieces.and_data or isinstance(bound, bool):
        return None
    if not places.is_as_made(left.id, time):
        return None
    more, below = SIDES[made.op]
    return Cut(left.id, spread(pieces), bound + more, below)


def _side(places: Places, cut: Cut, argument: Argument, true: bool) -> Pieces | None:
    """Returns the elements of an operand at the places where the comparison is true, or is not."""
    part = cut.part(true, places.at_least)
    if part is None or (isinstance(argument, Ref) and argument.id == cut.ref):
        return part
    value: Any = places.program.value(argument.id) if isinstance(argument, Ref) else argument
    found = pieces_of(of(value), value.shape) if isinstance(value, Tensor) else of_number(value)
    if found is None or found.slack or found.roundings or found.and_data:
        return None
    (piece, *others) = found.pieces
    if others or piece.indices or piece.term is None or piece.over != 1 or piece.doubt is not False:
        return replace(found, pieces=tuple(replace(p, attained=False) for p in spread(found).pieces))
    there = [replace(piece, given=all_of((p.given, piece.given)), attained=p.attained) for p in part.pieces]
    return replace(part, pieces=tuple(dict.fromkeys(there)))


def _beside(piece: Piece, bound: Dim, below: bool, at_least: AtLeast) -> Piece | None:
    """Returns the numbers of a piece that are less than a bound, or those that are not, at the sizes where
    there are any. Of `start + s*k` with s > 0 the first (bound - start + s - 1) // s are less.
    """
    if piece.term is None or piece.over != 1:
        return None
    term = number(piece)
    if piece.doubt is not False:
        if not isinstance(bound, int) or not 0 < bound < piece.least or not _is_natural(piece, at_least):
            return None
        if below:  # what is in doubt is greater
            piece = replace(piece, doubt=False, least=0)
    if not piece.indices:
        return replace(piece, given=all_of((piece.given, ge(bound - 1, term) if below else ge(term, bound))))
    rising = _rising(piece, term, at_least)
    if rising is None:
        return None
    start, step, count = rising
    less = minimum(maximum((bound - start + step - 1) // step, 0), count)
    first, many = (0, less) if below else (less, count - less)
    index = Index("#0", many, None, ordered=False, dense=True)
    given = all_of((piece.given, ge(many, 1)))
    return replace(piece, term=start + step * (first + symbol_of(index)), indices=(index,), given=given)


def _is_natural(piece: Piece, at_least: AtLeast) -> bool:
    """Returns whether no number of a piece is negative."""
    ends = corners(number(piece), piece.indices, at_least)
    return ends is not None and all(at_least(low, 0) for low in ends[0])


def _rising(piece: Piece, term: Term | int, at_least: AtLeast) -> tuple[Dim, int, Dim] | None:
    """Returns the least number of a piece, the distance to the next, and how many there are."""
    if len(piece.indices) == 1 and piece.indices[0].dense:
        (index,) = piece.indices
        start = substitute(term, {index.name: 0})
        step = substitute(term, {index.name: 1}) - start
        if isinstance(step, int) and step and term - start - step * symbol_of(index) == 0:
            least = start if step > 0 else start + step * (index.size - 1)
            return least, abs(step), index.size
    ends = corners(term, piece.indices, at_least) if is_run(piece) else None
    if ends is None:
        return None
    low, high = minimum(*ends[0]), maximum(*ends[1])
    return low, 1, high - low + 1
