"""The data that a value of a program is made of: inputs, random numbers, their parts, and chosen indices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import Any, Final, Literal, TypeAlias

from ...ir.language import Span, Tensor
from ..elements.values import extremes
from ..laws.masks import COMPARISONS, CONNECTIVES
from .constancy import Made
from .dataless import Dataless
from .fixed import MOVES
from .scattered import are_apart, free_numbers

DEPTH: Final = 12
"""At most so many calls back relations, and numbers with which values are compared, are looked for."""
FOLLOWED: Final = 24
"""At most so many calls numbers are followed through."""
MOST_LOOKED_AT: Final = 64
"""Parts of data are looked for among so many values."""
RELATIONS: Final = COMPARISONS.keys() | CONNECTIVES.keys() | {"sub", "rsub", "isclose", "logical_xor"}
"""Operators whose result may be the same for all data if both operands are made of the same data."""
PICKING: Final = frozenset("getitem select narrow unbind split chunk tensor_split diagonal".split())
"""Operators that return a part of their first operand."""
CHOOSING: Final = frozenset("argmax argmin max min median nanmedian mode kthvalue".split())
"""Operators that return indices, each chosen by other data."""
ORDERING: Final = frozenset("max min topk sort msort median nanmedian mode kthvalue cummax cummin".split())
"""Operators whose second result are indices of elements by their order."""
RISING: Final = frozenset(
    "softmax _softmax log_softmax _log_softmax sigmoid exp tanh softplus to float view flatten".split()
)
"""Operators that keep the order of elements."""
Parts: TypeAlias = Literal["none", "apart", "all"]
"""Which values besides inputs are data of their own: none; parts of independent numbers, and indices that
other data choose; or all parts.
"""
Datum: TypeAlias = int | tuple[Any, ...]
"""A value that data decide, by its reference, or the call that picks a part of one."""


def data_of(
    program: Dataless, ref: int, depth: int = DEPTH, parts: Parts = "none", without: int | None = None
) -> dict[Datum, None]:
    """Returns the data that a value is made of: inputs, random numbers, and parts of such; `without` those
    that it is made of by way of another value alone.
    """
    found: dict[Datum, None] = {}
    met, last = {ref, without}, [ref]
    for _ in range(depth):
        data = {back: datum for back in last if (datum := datum_of(program, back, parts)) is not None}
        found |= dict.fromkeys(data.values())
        sources = (source for back in last if back not in data for source in program.sources(back))
        last = [*dict.fromkeys(source for source in sources if source not in met)]
        met.update(last)
    return found


def datum_of(program: Dataless, ref: int, parts: Parts) -> Datum | None:
    """Returns the value itself if it is data, or the call that picks a part of data."""
    made = program.made(ref)
    if program.is_data(ref) or (parts == "apart" and made is not None and _is_chosen(program, ref, made)):
        return ref
    if parts == "none" or made is None or made.op not in PICKING:
        return None
    is_one = bool(data_of(program, made.node.refs[0].id)) if parts == "all" else free_numbers(program, ref)
    return (made.op, made.node.args, made.place) if is_one else None


def _is_chosen(program: Dataless, ref: int, made: Made) -> bool:
    """Returns whether the data choose each element of a value, an index, apart from the others."""
    is_index = made.op in CHOOSING and (made.place == 1 or made.op.startswith("arg"))
    return is_index and chosen(program, ref) is not None and orders_freely(program, made.node.refs[0].id)


def is_fixed_choice(program: Dataless, ref: int) -> bool:
    """Returns whether a number is an index of an extreme, or of a place in an order, and it is not known that
    data give each order of what is ordered.
    """
    for _ in range(DEPTH):
        made = program.made(ref)
        if made is None or not made.node.refs:
            return False
        first = made.node.refs[0].id
        if made.op.startswith("arg") or (made.op in ORDERING and made.place == 1):
            return made.op in (*ORDERING, *CHOOSING, "argsort") and not orders_freely(program, first)
        if made.op not in MOVES:
            return False
        ref = first
    return False


def orders_freely(program: Dataless, ref: int) -> bool:
    """Returns whether data give each order of the elements of a tensor."""
    for _ in range(DEPTH):
        made = program.made(ref)
        if made is None or made.op not in RISING or not made.node.refs:
            break
        ref = made.node.refs[0].id
    return free_numbers(program, ref) is not None


def chosen(program: Dataless, ref: int) -> Span | None:
    """Returns the range that the data choose elements of a value from, both ends for some data."""
    value = program.value(ref)
    span = extremes(value) if isinstance(value, Tensor) and value.elements is not None else None
    return span if span is not None and span.attained and span.by_data else None


def parts_of(program: Dataless, values: Sequence[int]) -> Parts:
    """Returns which values count as data of their own: parts and indices, if no two of those that the values
    are made of have an element in common or depend on the same data.
    """
    met: dict[Datum, int] = {}
    stack = [*values]
    seen = {*values}
    while stack and len(seen) <= MOST_LOOKED_AT:
        ref = stack.pop()
        datum = datum_of(program, ref, "apart")
        if datum is not None:
            met.setdefault(datum, ref)
            continue
        new = [source for source in program.sources(ref) if source not in seen]
        seen.update(new)
        stack += new
    has_parts = not stack and any(isinstance(datum, tuple) or not program.is_data(datum) for datum in met)
    apart = has_parts and all(are_apart(program, *two) for two in combinations(met.values(), 2))
    return "apart" if apart else "none"


def is_related(program: Dataless, values: Sequence[int]) -> bool:
    """Returns whether the values, or operands of a relation from which they are computed, share data."""
    pairs = [*pairwise(values), *(pair for ref in values for pair in _relations(program, ref, DEPTH))]
    return any(
        not data_of(program, one, parts="all").keys().isdisjoint(data_of(program, other, parts="all"))
        for one, other in pairs
    )


def share_data(program: Dataless, values: Sequence[int]) -> bool:
    """Returns whether two of the values are made of the same data."""
    return any(
        not data_of(program, one, FOLLOWED).keys().isdisjoint(data_of(program, other, FOLLOWED))
        for one, other in combinations(values, 2)
    )


def _relations(program: Dataless, ref: int, depth: int) -> Iterator[tuple[int, int]]:
    """Yields the operands of relations from which a condition is computed, one operand at a time."""
    made = program.made(ref)
    if made is None or not depth:
        return
    sources = program.sources(ref)
    if made.op in RELATIONS:
        yield from pairwise(sources)
    if len(sources) == 1 or made.op in CONNECTIVES:
        for source in sources:
            yield from _relations(program, source, depth - 1)
