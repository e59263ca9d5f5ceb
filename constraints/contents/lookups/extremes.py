"""The least and the greatest element of a tensor, where facts about all of its elements do not tell them.

`(torch.arange(n).half() * 3).long().max()` is looked up the other way: a function that keeps the order of
numbers takes the greatest one to the greatest one, and one that turns it round takes the least. So the
extreme is followed back, call by call, to a tensor that says its own, and the laws of elements apply to that
one number on the way. Operators that move elements keep extremes, and those that put elements side by side
have one of theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeAlias

from msgspec import structs

from ...ir.language import (
    UNTRACKED,
    Affine,
    Dots,
    Index,
    Piece,
    Pieces,
    Proportion,
    Quotient,
    Slice,
    Tensor,
    Truths,
    product,
)
from ...ir.program import Argument, Ref
from ...terms.dims import Dim, Term
from ...terms.formula import Formula, all_of, any_of, ge, le, negate
from ..elements.cycles import step_of
from ..elements.dtypes import DIGITS, INTEGRAL, LARGEST_HALF, width
from ..elements.functions import corners, is_infinite, known, number, symbol_of, tightest
from ..elements.values import of, pieces_of
from ..laws.calls import CASTS, MOVES
from ..laws.following import with_elements
from .computed import chains_of
from .cuts import SIDES
from .places import LAWS as PLACES
from .places import NAMES, Law, Place, PlacedCall, better, is_exact

Extreme: TypeAlias = Callable[[PlacedCall, bool], "Tensor | None"]
"""Returns the greatest element of a result, or the least, as a tensor without dims; None where it is not
known.
"""


def extreme(call: PlacedCall, argument: Argument, greatest: bool) -> Tensor | None:
    """Returns the greatest element of an operand that has elements, or the least."""
    if not isinstance(argument, Ref) or not call.places.is_as_made(argument.id, call.time):
        return None
    key = argument.id, greatest
    if key not in call.places.extremes:
        call.places.extremes[key] = _extreme(call, argument.id, greatest)
    return call.places.extremes[key]


def _extreme(call: PlacedCall, ref: int, greatest: bool) -> Tensor | None:
    value, made = _value(call, Ref(ref)), call.places.program.made(ref)
    if value is None or call.depth < 0:
        return None
    plain = _plainly(call, value, greatest)
    if made is None or (plain is not None and is_exact(plain.elements)):
        return plain
    args, op = dict(made.node.args), made.op.rstrip("_") or made.op
    law = EXTREMES.get(op)
    if law is None or args.get("out") is not None:
        return plain
    inner = PlacedCall(call.places, op, args, value, made.place, made.time, call.depth - 1)
    found = better(plain, law(inner, greatest))
    return found if found is None or is_exact(found.elements) else _within_limit(inner, ref, greatest, found)


def _within_limit(call: PlacedCall, ref: int, greatest: bool, found: Tensor) -> Tensor:
    """Returns the last number of a narrow dtype at the sizes at which that is among the elements, since no
    other is beyond it, and what was found elsewhere.
    """
    if (within := width(call.result.dtype or "")) is None:
        return found
    last = within[greatest]
    without = [chain.valid(lambda x: x != last) for chain in chains_of(call.places, ref, call.time + 1)]
    there = any_of(negate(none) for none in without if none is not None)
    return call.if_(there, lambda: call.constant(last), lambda: found) or found


def _value(call: PlacedCall, argument: Argument) -> Tensor | None:
    value = call.places.program.value(argument.id) if isinstance(argument, Ref) else None
    return value if isinstance(value, Tensor) else None


def _plainly(call: PlacedCall, value: Tensor, greatest: bool) -> Tensor | None:
    """Returns the extreme where the facts about all elements tell it."""
    if of(value) is None or of(value) is UNTRACKED:
        return None
    found = _computed(call, "amax" if greatest else "amin", {"input": value}, value.dtype)
    return found if found is not None and is_single(found) else None


def _computed(call: PlacedCall, op: str, named: Mapping[str, Any], dtype: str | None) -> Tensor | None:
    """Returns the result of an operator on tensors of one element, according to the laws of elements."""
    bare = Tensor((), dtype)
    made: Tensor = with_elements(op, named, bare, call.places.at_least, lambda tensor: False)
    return None if made.elements is None or made.elements is UNTRACKED else made


def is_single(tensor: Tensor) -> bool:
    """Returns whether the facts about an only element name it, except at some sizes perhaps."""
    match tensor.elements:
        case Affine(_, ()) | Truths():
            return True
        case Pieces(pieces, False, 0, False, False):
            return any(p.term is not None for p in pieces) and not any(p.indices for p in pieces)
    return False


# --- functions that keep the order of numbers --------------------------------------------------------------


def _by_element(call: PlacedCall, greatest: bool) -> Tensor | None:
    """Returns the function of one extreme of the only operand that has several elements."""
    operands = [name for name in NUMBERS if name in call.args and not _is_number(call, call.args[name])]
    if len(operands) == 2:
        return _beside_each_other(call, greatest)
    if len(operands) != 1:
        return None
    (name,) = operands
    ends = [extreme(call, call.args[name], side) for side in (False, True)]
    way = _direction(call, name, ends)
    if way is None:
        return None
    value = _value(call, call.args[name])
    if call.op in CASTS and call.result.dtype in INTEGRAL and value is not None and value.dtype in DIGITS:
        return _cut(call, ends, greatest)
    low, high = (_at(call, {name: end}) for end in ends[::way])
    return _held(call, low, high, greatest)


def _cut(call: PlacedCall, ends: Sequence[Tensor | None], greatest: bool) -> Tensor | None:
    """Returns the extreme of floats as integers. Infinity as an integer is the least of all, or any, beside
    which the greatest is the greatest finite one.
    """
    low, high = ends
    pieces = None if high is None else pieces_of(of(high), ())
    if low is None or high is None or pieces is None:
        return None
    infinite = any_of(p.given for p in pieces.pieces if p.term is None or is_infinite(p))
    finite = tuple(p for p in pieces.pieces if p.term is not None and not is_infinite(p))
    if not finite:
        return None
    high = structs.replace(high, elements=replace(pieces, pieces=finite))
    found = _held(call, _at(call, {"input": low}), _at(call, {"input": high}), greatest)
    if infinite is False or found is None:
        return found
    least = pieces_of(of(low), ())
    begins = least is not None and not any(p.term is None or is_infinite(p) for p in least.pieces)
    beside = _beside_infinity(call, call.args["input"]) if greatest and begins else None
    other = call.single(Pieces((beside or _between(-(1 << 63), (1 << 63) - 1),)))
    return call.either(((negate(infinite), found), (infinite, other)))


def _between(low: int, high: int) -> Piece:
    """Returns some number between two others."""
    index = Index("#0", high - low + 1, None, ordered=False)
    return Piece(low + symbol_of(index), indices=(index,), attained=False)


def _beside_infinity(call: PlacedCall, operand: Argument) -> Piece | None:
    """Returns the greatest of finite halves, where there are infinite ones: the largest half, if they are
    made from integers that begin with a finite one and go on in small steps, and a large one after
    arithmetic with small numbers.
    """
    made = call.places.program.made(operand.id) if isinstance(operand, Ref) else None
    args = {} if made is None else dict(made.node.args)
    value, other = _value(call, args.get("input")), args.get("other")
    if made is None or value is None:
        return None
    if made.op in ("add", "sub", "mul") and value.dtype == "float16":
        small = isinstance(other, int | float) and abs(other) <= SMALL
        beside = _beside_infinity(call, args["input"]) if small else None
        return beside and _between(1 << 13, LARGEST_HALF)
    pieces = pieces_of(of(value), value.shape)
    if made.op not in CASTS or value.dtype not in INTEGRAL or pieces is None:
        return None
    return Piece(LARGEST_HALF) if all(_goes_on(call, p) for p in pieces.pieces) else None


def _goes_on(call: PlacedCall, piece: Piece) -> bool:
    ends = None if piece.term is None else corners(piece.term, piece.indices, call.places.at_least)
    if ends is None or not all(call.places.at_least(LARGEST_HALF - low, 0) for low in ends[0]):
        return False
    step = step_of(piece) if piece.indices else 1
    return step is not None and step <= SMALL


SMALL: Final = 32
"""One of the integers no farther from each other is the largest half, and halves that are multiplied by no
more leave no large gap.
"""
NUMBERS: Final = ("input", "other", "exponent", "min", "max")
"""Names of arguments that arithmetic computes with."""


def _is_number(call: PlacedCall, argument: Argument) -> bool:
    """Returns whether an argument is no tensor, or a tensor of one element."""
    value = _value(call, argument)
    return value is None if not isinstance(argument, Ref) else value is not None and not value.shape


def _at(call: PlacedCall, ends: Mapping[str, Tensor | None]) -> Tensor | None:
    """Returns the function of the extremes of some operands, as a wide integer where it is one."""
    named: dict[str, Any] = {}
    for name, argument in call.args.items():
        found: Any = argument
        if name in ends:
            found = ends[name]
        elif isinstance(argument, Ref) and (call.op, name) != ("type_as", "other"):
            found = call.at((), argument)
        if found is None and argument is not None:
            return None
        named[name] = found
    dtype = call.result.dtype
    return _computed(call, call.op, named, "int64" if dtype in INTEGRAL else dtype)


def _held(call: PlacedCall, low: Tensor | None, high: Tensor | None, greatest: bool) -> Tensor | None:
    """Returns one of the two extremes as the result's dtype holds it: integers within its limits keep their
    order, and beyond them any number may be the extreme.
    """
    chosen, within = high if greatest else low, width(call.result.dtype or "")
    if within is None or chosen is None:
        return chosen if chosen is None else structs.replace(chosen, dtype=call.result.dtype)
    ends = [_whole(end) for end in (low, high)]
    if ends[0] is None or ends[1] is None:
        return None
    least, most = within
    inside = all_of(any_of((negate(p.given), _is_between(p, least, most))) for p in (*ends[0], *ends[1]))
    known = tuple(p for p in ends[greatest] or () if p.term is not None)
    loose = call.single(Pieces((_between(least, most),)))
    return call.if_(inside, lambda: call.single(Pieces(known)), lambda: loose)


def _is_between(piece: Piece, least: int, most: int) -> Formula:
    """Returns the sizes at which an integer is known, and lies between two numbers."""
    if piece.term is None:
        return False
    return all_of((negate(piece.doubt), ge(piece.term, least), le(piece.term, most)))


def _whole(end: Tensor | None) -> tuple[Piece, ...] | None:
    """Returns the integers that one element may be; a piece that runs over a range has the term None. Returns
    None for fractions, and where data choose.
    """
    pieces = None if end is None else pieces_of(of(end), ())
    if pieces is None or pieces.by_data or pieces.slack or pieces.roundings or pieces.and_data:
        return None
    if any(p.over != 1 for p in pieces.pieces):
        return None
    return tuple([Piece(None, given=p.given) if p.indices else p for p in pieces.pieces])


def _sign(call: PlacedCall, ends: Iterable[Tensor | None]) -> int | None:
    """Returns 1 where the least of some numbers is certainly not negative, and -1 where the greatest is not
    positive.
    """
    for sign, end in zip((1, -1), ends, strict=True):
        pieces = None if end is None else pieces_of(of(end), ())
        if pieces is None or pieces.by_data or pieces.slack or pieces.and_data:
            continue
        terms = [p.term for p in known(pieces) if not p.indices]
        whole = len(terms) == len(pieces.pieces)
        if whole and all(call.places.at_least(sign * term, 0) for term in terms if term is not None):
            return sign
    return None


def _sign_of_number(call: PlacedCall, argument: Argument) -> int | None:
    match argument:
        case bool() | None:
            return None
        case int() | float():
            return 1 if argument >= 0 else -1
        case Quotient(_, over, _) | Proportion(_, over, _):
            return 1 if call.places.at_least(over, 0) else None
        case Term():
            return next((s for s in (1, -1) if call.places.at_least(s * argument, 0)), None)
    return None


def _direction(call: PlacedCall, name: str, ends: list[Tensor | None]) -> int | None:
    """Returns 1 where the result does not fall as an operand rises, -1 where it does not rise."""
    op = call.op
    if op in CASTS and call.result.dtype == "bool":
        return _sign(call, ends)
    if op in KEEPING or op in CASTS:
        return 1
    if op in ("add", "sub", "rsub"):
        return _sign_in_sum(call, name)
    if op == "neg":
        return -1
    if op == "abs":
        return _sign(call, ends)
    if name == "input" and op in ("mul", "div", "floor_divide", "lshift", "rshift"):
        return 1 if op.endswith("shift") else _sign_of_number(call, call.args.get("other"))
    if op == "pow" and name == "input" and _sign(call, ends) == 1:
        exponent = call.args.get("exponent")
        return 1 if isinstance(exponent, int | float) and exponent >= 0 else None
    return None


def _sign_in_sum(call: PlacedCall, name: str) -> int | None:
    if call.args.get("alpha", 1) != 1:
        return None
    negative = {"sub": "other", "rsub": "input"}.get(call.op)
    return -1 if name == negative else 1


KEEPING: Final = frozenset(
    "clamp clamp_min clamp_max maximum minimum sign ceil floor trunc round sqrt".split()
)
"""Functions that keep the order of numbers, whatever their other operands are."""


def _beside_each_other(call: PlacedCall, greatest: bool) -> Tensor | None:
    """Returns the extreme of sums of two tensors that do not vary along the same axis: all pairs occur."""
    pair = [call.args.get(name) for name in ("input", "other")]
    shapes = [call.size_of(one) for one in pair]
    both = zip(*(shape[::-1] for shape in shapes), strict=False)
    if call.op not in ("add", "sub", "rsub") or not all(1 in sizes for sizes in both):
        return None
    ways = [_sign_in_sum(call, name) for name in ("input", "other")]
    if None in ways:
        return None

    def end(side: bool) -> Tensor | None:
        found = [extreme(call, one, side == (way == 1)) for one, way in zip(pair, ways, strict=True)]
        return None if None in found else _at(call, dict(zip(("input", "other"), found, strict=True)))

    return _held(call, end(False), end(True), greatest)


def _kept_or_replaced(call: PlacedCall, greatest: bool) -> Tensor | None:
    """Returns the extreme where a comparison of the elements chooses those on one side of a bound, and a
    number for the others that lies on the other side, or next to the bound: this keeps the order.
    """
    mask, one, other = (call.args.get(name) for name in NAMES[call.op])
    compared = call.places.program.made(mask.id) if isinstance(mask, Ref) else None
    if compared is None or compared.op not in SIDES or not isinstance(mask, Ref):
        return None
    args = dict(compared.node.args)
    source, bound = args.get("input"), args.get("other")
    tensor = _value(call, source)
    if tensor is None or tensor.dtype not in INTEGRAL or not isinstance(bound, int | Term):
        return None
    if not call.places.is_as_made(mask.id, call.time) or tensor.shape != call.result.shape:
        return None
    more, below = SIDES[compared.op]
    bound, kept = bound + more, one
    if one != source:
        below, kept = not below, other
    replacement = other if kept is one else one
    if kept != source or isinstance(replacement, bool) or not isinstance(replacement, int | Term):
        return None
    apart = replacement - bound + 1 if below else bound - replacement
    beyond = call.places.at_least(apart, 0)
    pieces = _whole(extreme(call, source, greatest)) if beyond else None
    if pieces is None or not all(_is_on_a_side(p, bound) for p in pieces):
        return None
    cases: list[tuple[Formula, Tensor | None]] = []
    for piece in pieces:
        there = le(number(piece), bound - 1) if below else ge(number(piece), bound)
        kept_one = call.single(Pieces((replace(piece, given=True),)))
        cases.append((all_of((piece.given, there)), kept_one))
        cases.append((all_of((piece.given, negate(there))), call.constant(replacement)))
    return call.either((tightest(given), one) for given, one in cases)


def _is_on_a_side(piece: Piece, bound: Dim) -> bool:
    """Returns whether an integer is known to lie on the side of a bound that its term does: rounded numbers
    of `least` and more do, if the bound is less.
    """
    exact = piece.doubt is False or (isinstance(bound, int) and abs(bound) < piece.least)
    return piece.term is not None and exact


# --- elements that are moved, and elements side by side ----------------------------------------------------


def _moved(call: PlacedCall, greatest: bool) -> Tensor | None:
    source, repeats = call.tensor("input"), call.args.get("repeats", 1)
    if source is None or source.dtype != call.result.dtype or call.part:
        return None
    return extreme(call, call.args["input"], greatest) if isinstance(repeats, int | Term | tuple) else None


def _viewed(call: PlacedCall, greatest: bool) -> Tensor | None:
    """Returns the extreme of all elements under other dims."""
    index = call.args.get("index")
    items = index if isinstance(index, tuple) else (index,)
    whole = all(item is None or item is Dots or item == Slice() for item in items)
    return extreme(call, call.args["input"], greatest) if whole else None


def _beside(call: PlacedCall, greatest: bool) -> Tensor | None:
    """Returns the extreme of several tensors. One of them may have no elements."""
    several = call.args.get("tensors")
    if not isinstance(several, tuple) or not several:
        return None
    return _of_all(
        call,
        [(product(call.size_of(one)), partial(extreme, call, one, greatest)) for one in several],
        greatest,
    )


def _padded(call: PlacedCall, greatest: bool) -> Tensor | None:
    """Returns the extreme of the elements and of the number around them."""
    sides, value = call.args.get("pad"), call.args.get("value")
    if not isinstance(sides, tuple) or not all(type(side) is int and side >= 0 for side in sides):
        return None
    if call.args.get("mode", "constant") not in (None, "constant"):
        return None
    around = 0 if value is None else value
    parts = [(product(call.shape), partial(extreme, call, call.args["input"], greatest))]
    if any(sides):
        parts.append((1, partial(call.constant, around)))
    return _of_all(call, parts, greatest)


def _on_diagonal(call: PlacedCall, greatest: bool) -> Tensor | None:
    """Returns the extreme of a vector and of the zeros beside its diagonal, if it has several elements."""
    if len(call.shape) != 1 or call.args.get("diagonal", 0) != 0:
        return None
    (size,) = call.shape
    parts = [
        (size, partial(extreme, call, call.args["input"], greatest)),
        (size - 1, partial(call.constant, 0)),
    ]
    return _of_all(call, parts, greatest)


def _of_all(
    call: PlacedCall, parts: Sequence[tuple[Dim, Callable[[], Tensor | None]]], greatest: bool
) -> Tensor | None:
    """Returns the extreme of several groups of elements, each with their number: of those that have any."""
    (count, one), *rest = parts
    if not rest:
        return one()

    def both() -> Tensor | None:
        pair = [one(), _of_all(call, rest, greatest)]
        if None in pair:
            return None
        named = dict(zip(("input", "other"), pair, strict=True))
        return _computed(call, "maximum" if greatest else "minimum", named, call.result.dtype)

    others = any_of(ge(count, 1) for count, _ in rest)
    return call.if_(
        ge(count, 1),
        lambda: call.if_(others, both, one),
        lambda: _of_all(call, rest, greatest),
    )


EXTREMES: Final[Mapping[str, Extreme]] = {
    **dict.fromkeys(MOVES, _moved),
    "getitem": _viewed,
    **dict.fromkeys(
        (*CASTS, *KEEPING, *"add sub rsub mul div floor_divide neg abs lshift rshift pow".split()),
        _by_element,
    ),
    **dict.fromkeys(NAMES, _kept_or_replaced),
    **dict.fromkeys(("cat", "stack"), _beside),
    **dict.fromkeys(("pad", "constant_pad_nd"), _padded),
    "diag": _on_diagonal,
}
"""For each operator the extremes of its result; of other operators they are not known."""


# --- single elements that are extremes ---------------------------------------------------------------------


def _reduced(greatest: bool) -> Law:
    """Returns the law of the extreme of all elements."""

    def reduced(call: PlacedCall, place: Place) -> Tensor | None:
        whole = call.args.get("dim") in (None, ()) and call.args.get("other") is None and not call.part
        found = extreme(call, call.args.get("input"), greatest) if whole else None
        return PLACES[call.op](call, place) if found is None and call.op in PLACES else found

    return reduced


def _in_order(call: PlacedCall, place: Place) -> Tensor | None:
    """Returns the first of sorted elements of a vector, the least, and the last."""
    at = dict(zip((0, call.result.shape[0] - 1 if place else 0), (False, True), strict=False))
    whole = len(place) == 1 and len(call.shape) == 1 and not call.part and not call.args.get("descending")
    found = extreme(call, call.args.get("input"), at[place[0]]) if whole and place[0] in at else None
    return PLACES[call.op](call, place) if found is None else found


LAWS: Final[Mapping[str, Law]] = {
    **PLACES,
    **dict.fromkeys(("max", "amax"), _reduced(greatest=True)),
    **dict.fromkeys(("min", "amin"), _reduced(greatest=False)),
    **dict.fromkeys("sort msort unique unique2 _unique _unique2".split(), _in_order),
}
"""The laws of single elements, with those that are extremes."""
