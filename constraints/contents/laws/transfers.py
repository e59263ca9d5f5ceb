"""The laws of elements: for each operator, the elements of its result.

`torch.arange(t)` as positions into an embedding of 1024 rows requires t <= 1024: a condition on sizes that no
shape shows. So tensors whose elements the sizes decide carry facts about them (`language.Elements`), and
`LAWS` gives those of an operator's result. An operator without a law makes unknown elements from these.
Elements that come from the user's data carry nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...ir.language import UNTRACKED, Affine, Elements, Piece, Pieces, Tensor
from ...terms.dims import maximum, minimum
from ..elements.dtypes import DIGITS, WHOLE
from ..elements.enclosures import FUNCTIONS
from ..elements.values import fitted, is_float, pieces_of, stored
from .arithmetic import (
    absolute,
    cast,
    ceiled,
    clamped_between,
    filled_where,
    floor_divide,
    floored,
    nearest,
    negated,
    of_fraction,
    of_two,
    plus,
    power,
    quotient,
    remainder,
    remainder_of_sign,
    sign,
    times,
    truncated,
    where_chosen,
)
from .bits import flipped, joined, masked, shifted_left, shifted_right
from .calls import CASTS, Law, NamedCall, of_number
from .images import ROUNDINGS, made_of
from .makers import (
    arange,
    bucket,
    combinations,
    counted,
    drawn_between,
    eye,
    filled_with,
    given_data,
    linspace,
    one_hot,
    places_along,
    product_of,
    size_along,
    sorted_size,
    triangle,
    up_to,
)
from .moves import (
    all_of_them,
    anywhere,
    beside_zeros,
    differences,
    expanded,
    flipped_along,
    getitem,
    given_order,
    index_select,
    kept,
    last_two,
    moved_axes,
    narrowed,
    on_diagonal,
    overwritten,
    padded,
    padded_together,
    permuted,
    repeated_each,
    reshaped,
    scattered,
    selected,
    side_by_side,
    sliced,
    some_of_them,
    tiled,
    transposed,
)
from .reductions import contracted, extreme_of, products, running_products, running_sums, sums

CONVERTING: Final = frozenset((*CASTS, "full", "full_like", "new_full"))
"""Operators that round each number once, to the nearest float."""
ADDING: Final = frozenset("add sub rsub mul neg".split())
"""Operators that do so with what they compute from floats, after they have rounded other operands."""
SCALING: Final = frozenset(("mul", "div"))
"""Operators that do so with powers of 2."""
LAWS: Mapping[str, Law] = {
    # makers
    "arange": arange,
    "prims::iota": lambda call: Affine(call.named["start"], ((-1, call.named["step"]),)),
    **dict.fromkeys("linspace logspace".split(), linspace),
    **dict.fromkeys("tensor as_tensor scalar_tensor new_tensor asarray".split(), given_data),
    **dict.fromkeys("zeros zeros_like new_zeros".split(), lambda call: Affine(0)),
    **dict.fromkeys("ones ones_like new_ones".split(), lambda call: Affine(1)),
    **dict.fromkeys("full full_like new_full".split(), filled_with("fill_value")),
    **dict.fromkeys(("fill", "fill_"), filled_with("value")),
    **dict.fromkeys(("zero", "zero_"), lambda call: Affine(0)),
    "copy_": lambda call: call.operand("src") or UNTRACKED,
    "eye": eye,
    **dict.fromkeys("tril_indices triu_indices".split(), triangle),
    **dict.fromkeys("randint randint_like".split(), drawn_between),
    "randperm": lambda call: places_along(-1, call.result.shape[0]),
    "multinomial": up_to(lambda call: call.input.shape[-1]),
    "argsort": up_to(sorted_size, all_occur=True),
    **dict.fromkeys("argmax argmin".split(), up_to(size_along)),
    **dict.fromkeys("bucketize searchsorted".split(), bucket),
    "count_nonzero": up_to(lambda call: size_along(call) + 1),
    "one_hot": one_hot,
    "cartesian_prod": product_of,
    "combinations": combinations,
    "bincount": counted,
    # arithmetic
    "add": plus(1),
    "sub": plus(-1),
    "rsub": plus(-1, swapped=True),
    "mul": times,
    "div": quotient,
    "floor_divide": floor_divide,
    "remainder": remainder,
    "pow": power,
    "neg": negated,
    "abs": absolute,
    **dict.fromkeys("clamp clamp_min clamp_max".split(), clamped_between),
    "where": where_chosen,
    "masked_fill": filled_where,
    "sign": sign,
    "fmod": remainder_of_sign,
    "bitwise_and": masked,
    "bitwise_or": joined,
    "bitwise_xor": flipped,
    "lshift": shifted_left,
    "rshift": shifted_right,
    "maximum": of_two(maximum),
    "minimum": of_two(minimum),
    "cumprod": running_products,
    "prod": products,
    "cumsum": running_sums,
    "sum": sums,
    **dict.fromkeys(("matmul", "mm"), contracted),
    "diff": differences,
    **dict.fromkeys("amax max".split(), extreme_of(greatest=True)),
    **dict.fromkeys("amin min".split(), extreme_of(greatest=False)),
    # roundings and casts
    "ceil": of_fraction(ceiled),
    "floor": of_fraction(floored),
    "trunc": of_fraction(truncated),
    "round": of_fraction(nearest),
    **dict.fromkeys(CASTS, of_fraction(cast)),
    **dict.fromkeys(FUNCTIONS, made_of),
    # places
    **dict.fromkeys("clone contiguous detach alias lift_fresh_copy cpu".split(), kept),
    **dict.fromkeys("expand expand_as broadcast_to".split(), expanded),
    **dict.fromkeys(
        "unsqueeze squeeze view reshape view_as reshape_as flatten unflatten ravel".split(), reshaped
    ),
    "transpose": permuted(transposed),
    "permute": permuted(given_order),
    **dict.fromkeys(("T", "t"), permuted(lambda call, rank: tuple(range(rank))[::-1])),
    "mT": permuted(last_two),
    "movedim": permuted(moved_axes),
    **dict.fromkeys("flip fliplr flipud".split(), flipped_along),
    **dict.fromkeys("roll rot90 msort".split(), all_of_them),
    **dict.fromkeys(("repeat", "tile"), tiled),
    "repeat_interleave": repeated_each,
    **dict.fromkeys("cat stack".split(), side_by_side),
    **dict.fromkeys("pad constant_pad_nd".split(), padded),
    "pad_sequence": padded_together,
    "getitem": getitem,
    "index": getitem,
    "slice": sliced,
    "select": selected,
    "narrow": narrowed,
    "index_select": index_select,
    **dict.fromkeys("gather take_along_dim take masked_select".split(), some_of_them),
    "scatter": scattered,
    "diag": on_diagonal,
    **dict.fromkeys(("tril", "triu"), beside_zeros),
    "index_fill": overwritten("value"),
    **dict.fromkeys("index_copy masked_scatter put".split(), overwritten("source")),
    **dict.fromkeys("select_scatter slice_scatter diagonal_scatter".split(), overwritten("src")),
    "index_put": overwritten("values"),
    **dict.fromkeys("hstack vstack dstack column_stack".split(), anywhere),
    **{f"upsample_nearest{n}d": some_of_them for n in (1, 2, 3)},
    **{f"_upsample_nearest_exact{n}d": some_of_them for n in (1, 2, 3)},
}
"""The law of each operator. Operators that are not here make unknown elements."""


def followed(call: NamedCall, elements: Elements | Pieces, result: Tensor) -> Elements:
    """Returns the elements of a result, given by a law, as its dtype holds them."""
    if elements is UNTRACKED or elements is None:
        return elements
    pieces = pieces_of(elements, result.shape)
    if pieces is None:
        return elements
    if result.dtype in WHOLE and any(p.over != 1 for p in pieces.pieces):
        return UNTRACKED
    if call.op in ROUNDINGS and result.dtype in DIGITS:  # of floats, these are floats
        return stored(pieces, result.shape, call.at_least)
    held = fitted(pieces, result.dtype, call.at_least, once=_is_rounded_once(call, result))
    if held is pieces and not isinstance(elements, Pieces):
        return elements
    return stored(held, result.shape, call.at_least)


def _is_rounded_once(call: NamedCall, result: Tensor) -> bool | None:
    """Returns whether each element is an exact number that is rounded once; None for other operators."""
    operands = [value for value in call.named.values() if isinstance(value, Tensor)]
    numbers = [of_number(value) for value in call.named.values() if not isinstance(value, Tensor | None)]
    if call.op in SCALING and len(operands) == 1 and all(map(_is_power, numbers)):
        return True
    if call.op == "linspace":  # its ends; the numbers between them lie between the rounded ones
        return result.dtype == "float32" or None
    if call.op not in ADDING:
        return True if call.op in CONVERTING else None
    return call.named.get("alpha", 1) == 1 and all(t.dtype == result.dtype for t in operands)


def _is_power(pieces: Pieces | None) -> bool:
    """Returns whether an operand is a power of 2, or the negative of one."""
    match pieces:
        case Pieces((Piece(int() as n, int()) as piece,), roundings=0, slack=False):
            return n != 0 and abs(n) & (abs(n) - 1) == 0 and is_float(piece)
    return False
