"""Rules on tensors of unknown rank: prepares rows (rows.py) for the rule.

A rule sees a row as one dim. That is right for a rule that looks only at dims near the ends, and not at those
between: `reach` says how far. So a row is split until all dims that the rule looks at are outside of it;
where it may be too short for that, its small ranks are tried with the rule one by one, and ranks that it
refuses at once are excluded by a requirement. Rows that are broadcast become one. For a rule that needs the
whole shape the ranks of a row are tried one by one, too; if it refuses none of them, they end at a declared
largest rank. If a rule requires something of a row, or calculates with it, after all (`is_stray`), it is
treated as one that needs the whole shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import product as combinations
from math import inf
from typing import Any, Final, Protocol, TypeAlias

from msgspec import structs

from ..ir.language import Context, Generated, Layout, Refused, Shape, Slice, Tensor, Value, product, tensors
from ..ir.program import is_numbers, parts_of
from ..ir.system import Domain
from ..terms.dims import Dim, Term, maximum, substitute, sym, symbols
from ..terms.equations import Equations
from ..terms.formula import Formula, all_of, any_of, eq, free_symbols, ge, le
from ..terms.intervals import Bounds
from ..terms.parts import Row, RowPart, count, depth, dim_at, rank
from ..terms.relations import Relation, relation
from ..terms.rows import DEEPEST, Deeper, as_dim, has_rows, is_dim, names, place_of, rank_of, row_of
from .broadcasting import broadcast
from .known import Known, exactly
from .trying import Trying

Named: TypeAlias = Mapping[str, Any]
ROUNDS: Final = 64
MANY: Final = 64
"""A largest rank beyond this, which torch's kernels do not reach, counts as no bound."""


@dataclass(frozen=True, slots=True)
class Reach:
    """The part of a shape that a call looks at: so many `leading` and `trailing` dims; the dims between pass
    through.
    """

    leading: int = 0
    trailing: int = 0
    melts: bool = False
    """Whether only the number of elements between matters: their product remains."""
    broadcasts: bool = False
    """Whether the dims between of several operands are broadcast."""
    joins: bool = False
    """Whether the dims between of several operands have to be the same."""
    of: str = "input"
    """The parameter with this reach, if operands are not broadcast; the shapes of all others are needed
    whole. Empty means all parameters.
    """
    into: str = ""
    """The operand, if any, whose shape the result has: the others are broadcast to it, or have as many
    elements.
    """
    ignores: str = ""
    """The operand, if any, whose shape does not matter."""
    scalars: bool = False
    """Whether a tensor without dims is treated differently from one with some."""
    alike: bool = False
    """Whether all operands must have the same, unknown, rank."""
    apart: bool = False
    """Whether each operand passes through by itself, whatever the others are."""
    few: bool = False
    """Whether the whole shape is needed, and few ranks are accepted."""
    within: str = ""
    """The operand, if any, whose dims between must not be larger than those of the others."""

    def __or__(self, other: Reach) -> Reach:
        return Reach(
            max(self.leading, other.leading),
            max(self.trailing, other.trailing),
            self.melts or other.melts,
            self.broadcasts or other.broadcasts,
            self.joins or other.joins,
            self.of,
            self.into,
            self.ignores,
            self.scalars or other.scalars,
            self.alike or other.alike,
            self.apart or other.apart,
            self.few or other.few,
            self.within or other.within,
        )


class Caller(Context, Protocol):
    """The context of a call, with the facts that are known there."""

    domain: Domain
    nothing: Known
    said: Generated
    bounds: Bounds
    equations: Equations

    @property
    def learnt(self) -> frozenset[Formula]:
        """Formulas that hold here, without the axioms of rows."""

    def learn(self, formula: Formula) -> None:
        """Makes the formula known from here on."""

    def deepen(self, wanted: Deeper) -> None:
        """Declares more of the rows. Raises an error where that cannot be done."""


class Lifted(Protocol):
    """A rule, with how much of a shape it looks at."""

    @property
    def function(self) -> Callable[..., Any]:
        """Takes a context and the arguments by their names."""

    @property
    def reach(self) -> Callable[[Named], Reach | None]:
        """Returns how far from either end of a shape the rule looks, None where it needs all of it."""

    def __call__(self, context: Context, named: dict[str, Any]) -> Value:
        """Returns the rule's result for arguments by the rule's own names."""


def prepared(g: Caller, rule: Lifted, named: dict[str, Any], whole: bool = False) -> dict[str, Any]:
    """Returns the arguments of a call in a form that its rule can take.

    `whole` means that the rule has turned out to need the whole shape of arguments with a row. A step that
    changes the arguments, or what is known of their rows, is followed by all steps again.
    """
    call = _Preparation(g, rule, named, whole)
    for _ in range(ROUNDS):
        if not call.begin():
            return call.named
        outcome = next(filter(None, (step(call) for step in STEPS)))
        if outcome is not Outcome.CHANGED:
            return call.named
    raise AssertionError("a call is never prepared for its rule")


class Outcome(Enum):
    """The end of a round of steps."""

    CHANGED = auto()
    """The steps begin again."""
    READY = auto()
    """The rule can take the arguments."""


class _Preparation:
    """The arguments of a call on their way to its rule."""

    def __init__(self, g: Caller, rule: Lifted, named: dict[str, Any], whole: bool) -> None:
        self.g, self.rule, self.named, self.whole = g, rule, named, whole
        self.rowed: list[Tensor] = []
        """The arguments with a row, which the rule looks at."""
        self.reach: Reach = Reach()
        """The part of the shapes that the rule looks at."""

    def begin(self) -> bool:
        """Opens the rows; returns whether any is left."""
        self.named = _mapped(self.named, lambda tensor: opened(self.g, tensor))
        self.rowed = _with_rows(self.named)
        return bool(self.rowed)

    def becomes(self, named: dict[str, Any]) -> Outcome:
        self.named = named
        return Outcome.CHANGED

    def with_ranks_of(self, tensors: list[Tensor], few: bool = False) -> Outcome:
        """Tries the ranks of these tensors one by one."""
        _choose_rank(self.g, self.rule, self.named, tensors, few)
        return Outcome.CHANGED


Step: TypeAlias = Callable[[_Preparation], Outcome | None]


def _with_rows(named: Named) -> list[Tensor]:
    return [t for t in _tensors(named) if place_of(t.shape) is not None]


def _counted(call: _Preparation) -> Outcome | None:
    """Counts dims from the end where the row is before them, and asks the rule how far it looks; without an
    answer the ranks are tried.
    """
    call.named = {n: _counted_from_the_end(call.rowed[0], value) for n, value in call.named.items()}
    reach = None if call.whole else call.rule.reach(call.named)
    if reach is None:
        call.whole = False
        return call.with_ranks_of(call.rowed)
    call.reach = reach
    return None


def _closed(call: _Preparation) -> Outcome | None:
    """Gives all operands that are broadcast to one of known rank that rank."""
    if not call.reach.broadcasts:
        return None
    closed = _with_closed_target(call.g, call.named, call.rowed, call.reach.into)
    return None if closed is None else call.becomes(closed)


def _ignored(call: _Preparation) -> Outcome | None:
    """Leaves out the operand whose shape does not matter."""
    if call.reach.ignores:
        call.rowed = _with_rows({n: value for n, value in call.named.items() if n != call.reach.ignores})
    return None if call.rowed else Outcome.READY


def _ranked(call: _Preparation) -> Outcome | None:
    """Tries the ranks where few are accepted, or the target of a broadcast is not open to all."""
    reach = call.reach
    into_closed = reach.broadcasts and bool(reach.into) and not _is_open(call.named[reach.into])
    return call.with_ranks_of(call.rowed, reach.few) if reach.few or into_closed else None


def _beside(call: _Preparation) -> Outcome | None:
    """Tries the ranks of operands other than the one with this reach."""
    reach = call.reach
    if not reach.of or reach.broadcasts or reach.into:
        return None
    rest = {n: value for n, value in call.named.items() if n not in (*reach.of.split(), reach.ignores)}
    others = [t for t in _tensors(rest) if t in call.rowed]
    return call.with_ranks_of(others) if others else None


def _told_scalars(call: _Preparation) -> Outcome | None:
    """Decides whether a tensor has dims, where that matters."""
    bare = (t for t in call.rowed if _may_be_scalar(call.g, t)) if call.reach.scalars else iter(())
    if (first := next(bare, None)) is None:
        return None
    _tell_scalar(call.g, first)
    return Outcome.CHANGED


def _lengthened(call: _Preparation) -> Outcome | None:
    """Takes dims at which the rule looks out of the row."""
    short = next((t for t in call.rowed if _missing(t, call.reach) != (0, 0)), None)
    if short is None:
        return None
    return call.becomes(_deepened(call.g, call.rule, call.named, short, call.reach))


def _made_alike(call: _Preparation) -> None:
    """Requires one rank of all operands."""
    first = call.rowed[0]
    for other in call.rowed[1:] if call.reach.alike else ():
        same = eq(rank_of(first.shape), rank_of(other.shape))
        call.g.require(same, f"{first} and {other} have different ranks")


def _united(call: _Preparation) -> Outcome | None:
    """Makes one row of those of all operands; where that is not possible, the whole shape is needed."""
    g, reach = call.g, call.reach
    found: dict[str, Any] | None = call.named
    if reach.within:
        found = _within(g, call.named, call.rowed, reach)
    elif not (reach.apart or (reach.melts and reach.into)):
        found = _aligned(g, call.named, call.rowed, reach)
    if found is None or (reach.melts and any(len(_row_in(t)) > 1 for t in call.rowed)):
        call.whole = True
        return Outcome.CHANGED
    call.named = found
    return None


def _finished(call: _Preparation) -> Outcome:
    """Learns that what is left of a row has a dim, and melts it where only its elements count."""
    for tensor in _with_rows(call.named):
        place = place_of(tensor.shape)
        assert place is not None
        call.g.bounds.learn(ge(tensor.shape[place], 1))
    if call.reach.melts:
        call.named = _mapped(call.named, lambda tensor: _melted(call.g, tensor))
    return Outcome.READY


STEPS: Final[tuple[Step, ...]] = (
    _counted,
    _closed,
    _ignored,
    _ranked,
    _beside,
    _told_scalars,
    _lengthened,
    _made_alike,
    _united,
    _finished,
)
"""The steps of a round, in their order; the first outcome ends it."""


def _may_be_scalar(g: Caller, tensor: Tensor) -> bool:
    """Returns whether a tensor whose shape is a single row may have no dims."""
    return tensor.rank == 1 and not _surely_has(g, _row_in(tensor), 1)


def _tell_scalar(g: Caller, tensor: Tensor) -> None:
    """Decides whether a tensor whose shape is a single row has dims."""
    row = _row_in(tensor)
    if g.choose(_has(row, 1), "whether there are dims"):
        g.learn(_has(row, 1))
        return
    for part in row:
        _pick(g, part.name, range(part.start + part.stop + 1))


def _within(g: Caller, named: dict[str, Any], rowed: list[Tensor], reach: Reach) -> dict[str, Any] | None:
    """Returns the arguments with the row of one operand, which has to be within those of the others, in all
    of them; or None.
    """
    small = named[reach.within]
    place = place_of(small.shape)
    if any((t.rank, place_of(t.shape)) != (small.rank, place) or len(_row_in(t)) > 1 for t in rowed):
        return None
    (part,) = _row_in(small)
    for other in rowed:
        (its,) = _row_in(other)
        if its != part:
            reason = f"sizes *{part.short} of {small} are larger than *{its.short}"
            _related(g, relation("within", part, its), reason)
    return _mapped(named, lambda t: _with_row(t, (part,)))


def has_row(value: Any) -> bool:
    """Returns whether a row occurs anywhere in an argument."""
    kind = type(value)
    if kind is Tensor:
        return place_of(value.shape) is not None
    if kind is tuple or kind is Slice:
        return any(map(has_row, parts_of(value)))
    return kind is Term and has_rows(symbols(value))


def into_first(reach: Callable[[Named], Reach | None]) -> Callable[[Named], Reach | None]:
    """Returns the reach of a call that writes into the first of its operands."""

    def written(named: Named) -> Reach | None:
        found = reach(named)
        if found is not None and found.within and found.into == next(iter(named)):
            return found
        pointwise = found in (Reach(broadcasts=True), Reach(broadcasts=True, scalars=True))
        return replace(found, into=next(iter(named))) if found is not None and pointwise else None

    return written


def _is_open(value: Any) -> bool:
    """Returns whether the value is a tensor that begins with a single row, to which no others broadcast."""
    shape = as_shape(value)
    if shape is None or place_of(shape.shape) != 0:
        return False
    first, *others = _row_in(shape)
    return not others and not first.start


def _with_closed_target(
    g: Caller, named: dict[str, Any], rowed: list[Tensor], into: str
) -> dict[str, Any] | None:
    """Returns the arguments where all are broadcast to an operand of known rank: no other has a greater rank,
    and dims that one does not have are 1. None where the operand has a row, or others do not begin with
    theirs.
    """
    target = named.get(into)
    if not isinstance(target, Tensor) or place_of(target.shape) is not None:
        return None
    if any(place_of(t.shape) or t.rank - 1 > target.rank or any(p.start for p in _row_in(t)) for t in rowed):
        return None

    def last(tensor: Tensor) -> Tensor:
        g.require(le(rank_of(tensor.shape), target.rank), _no_wider(tensor, target))
        shape = _padded(g, tensor, target.rank).shape[1:]
        return structs.replace(tensor, shape=shape, layout=_relaid(tensor))

    return _mapped(named, last)


def _no_wider(tensor: Tensor, target: Tensor) -> str:
    return f"{tensor} is broadcast to {target}, which keeps its shape"


def fitted(g: Caller, named: Named, into: str, result: Value) -> Value:
    """Returns the result with the shape of the operand `into`, which no other operand enlarges.

    The others have no greater rank, and each of their dims, counted from the end, is that of the operand, or
    1.
    """
    if not isinstance(result, Tensor) or place_of(result.shape) is None:
        return result
    target = opened(g, as_shape(named[into]) or Tensor(named[into]))
    others = [opened(g, t) for name, value in named.items() if name != into for t in tensors(value)]
    for other in others:
        reason = _no_wider(other, target)
        g.require(le(rank_of(other.shape), rank_of(target.shape)), reason)
        number = _looked_at(g, other, target, reason)
        wide = [_padded(g, t, number) if place_of(t.shape) is not None else t for t in (other, target)]
        for size, kept in zip(*(t.shape[::-1][:number] for t in wide), strict=True):
            g.require(any_of((eq(size, 1), eq(size, kept))), f"{reason}: {size} is not {kept}")
    layout = result.layout if result.shape == target.shape else _relaid(result)
    if next(iter(named)) != into and any(other.shape != target.shape for other in others):
        layout = Layout.UNKNOWN  # a view of the others, expanded where they differ
    return structs.replace(result, shape=target.shape, layout=layout)


def restored(g: Caller, named: Named, into: str, result: Value) -> Value:
    """Returns the result with the shape of the operand `into`, which had the row of another operand for a
    while.
    """
    if not isinstance(result, Tensor):
        return result
    return structs.replace(result, shape=opened(g, named[into]).shape)


def shaped(g: Caller, named: Named, into: str, result: Value) -> Value:
    """Returns a result with as many elements as the operand `into`, with the row of that operand in its
    place.
    """
    target = opened(g, as_shape(named[into]) or Tensor(named[into]))
    place = place_of(target.shape)
    if not isinstance(result, Tensor) or place is None or place_of(result.shape) is not None:
        return result
    shape = (*result.shape[:place], target.shape[place], *result.shape[place + 1 :])
    return structs.replace(result, shape=shape)


def _looked_at(g: Caller, tensor: Tensor, target: Tensor, reason: str) -> int:
    """Returns how many dims, from the end, of a tensor that is broadcast to another may differ from the
    other's, rows aside: these are required to expand to them.
    """
    if place_of(tensor.shape) is None:
        return tensor.rank
    behind = max(tensor.rank, target.rank) - 1
    row, kept = (_row_in(_padded(g, t, behind)) for t in (tensor, target))
    if len(kept) == 1:
        for part in row:
            if part not in kept:
                told = f"{reason}: *{part.short} does not expand to *{kept[0].short}"
                _related(g, relation("expands", part, *kept), told)
        return behind
    for part in row:
        _bound(g, part.name, DEEPEST + part.stop)
    return max(max(_limit(g, part.name) - part.stop for part in row), 0) + behind


def is_stray(g: Caller, before: int, result: Value) -> bool:
    """Returns whether a rule has used a row as a dim, in a requirement or a calculation."""
    if any(has_rows(free_symbols(c.formula)) for c in g.said.constraints[before:]):
        return True
    return any(
        sum(row_of(d) is not None for d in t.shape) > 1
        or any(row_of(d) is None and has_rows(symbols(d)) for d in t.shape)
        for t in tensors(result)
    )


# ---- what a run asks of a tensor of unknown rank


def reached(g: Caller, tensor: Tensor, leading: int, trailing: int) -> Tensor:
    """Returns the tensor with so many dims at either end written out; with all of them, where it has no more.
    """
    for _ in range(ROUNDS):
        tensor = opened(g, tensor)
        if place_of(tensor.shape) is None:
            return tensor
        first, last = _missing(tensor, Reach(leading, trailing))
        if not first + last:
            return tensor
        row = _row_in(tensor)
        enough = _has(row, first + last)
        if (len(row) == 1 or not first) and g.choose(enough, "how many dims there are"):
            tensor = _split(g, tensor, first, last)
        else:
            _spell_out(g, tensor)
    raise AssertionError("the end of a shape is never reached")


def bounded(g: Caller, dim: Dim) -> None:
    """Declares a largest rank where a dim that is needed as a number depends on a rank without one."""
    for name in names(symbols(dim)):
        _bound(g, name, DEEPEST)


def are_equal(g: Caller, a: Tensor, b: Tensor) -> Formula | None:
    """Returns the condition that two tensors have the same shape; None where their rows are at different
    positions.
    """
    a, b = opened(g, a), opened(g, b)
    place = place_of(a.shape)
    if place is None or (a.rank, place) != (b.rank, place_of(b.shape)):
        return None
    if len(_row_in(a)) > 1 or len(_row_in(b)) > 1:
        return None
    (one,), (other,) = _row_in(a), _row_in(b)
    pairs = zip(a.shape[:place] + a.shape[place + 1 :], b.shape[:place] + b.shape[place + 1 :], strict=True)
    dims = [eq(m, n) for m, n in pairs]
    if one == other:
        return all_of(dims)
    same = relation("equal", one, other)
    _declared(g, [same.truth])
    return all_of((*dims, same.holds))


def spelt_out(g: Caller, tensor: Tensor) -> Tensor:
    """Returns the tensor with its rank decided."""
    while place_of((tensor := opened(g, tensor)).shape) is not None:
        _spell_out(g, tensor)
    return tensor


def number_of_elements(g: Caller, tensor: Tensor) -> Dim:
    """Returns the product of all sizes."""
    tensor = opened(g, tensor)
    while (row := place_of(tensor.shape)) is not None and len(row_of(tensor.shape[row]) or ()) > 1:
        _spell_out(g, tensor)
        tensor = opened(g, tensor)
    return product(tensor.shape if row is None else _melted(g, tensor).shape)


def _spell_out(g: Caller, tensor: Tensor) -> None:
    name = _row_in(tensor)[0].name
    _pick(g, name, range(_limit(g, name) + 1), bounded=True)


# ---- arguments


def as_shape(value: Any) -> Tensor | None:
    """Returns a tensor unchanged, and sizes that contain a row (`torch.zeros(x.shape)`) as a tensor; else
    None.
    """
    if type(value) is tuple and not is_numbers(value):
        return Tensor(value) if any(type(d) is Term and row_of(d) is not None for d in value) else None
    return value if type(value) is Tensor else None


def _tensors(named: Named) -> Iterator[Tensor]:
    for value in named.values():
        if type(value) is Tensor:
            yield value
        elif type(value) is tuple:
            if (shape := as_shape(value)) is not None:
                yield shape
            else:
                yield from tensors(value)


def _mapped(named: Named, change: Callable[[Tensor], Tensor]) -> dict[str, Any]:
    """Returns the arguments with each tensor, and each tuple of sizes, that has a row changed."""

    def walk(value: Any) -> Any:
        if type(value) is Tensor:
            return value if place_of(value.shape) is None else change(value)
        if type(value) is not tuple or is_numbers(value):
            return value
        shape = as_shape(value)
        return tuple(map(walk, value)) if shape is None else change(shape).shape

    return {name: walk(value) for name, value in named.items()}


def _counted_from_the_end(tensor: Tensor, value: Any) -> Any:
    """Returns -1 for `x.dim() - 1`, and so on."""
    if isinstance(value, Term) and any(name.startswith("rank(") for name in symbols(value)):
        back = value - rank_of(tensor.shape)
        return back if isinstance(back, int) and back < 0 else value
    return tuple(_counted_from_the_end(tensor, v) for v in value) if type(value) is tuple else value


def _row_in(tensor: Tensor) -> Row:
    place = place_of(tensor.shape)
    assert place is not None
    return row_of(tensor.shape[place]) or ()


def _has(row: Row, number: int) -> Formula:
    """Returns the condition that the row has at least so many dims, more than 0."""
    return any_of(ge(rank(part.name), part.start + part.stop + number) for part in row)


def _surely_has(g: Caller, row: Row, number: int) -> bool:
    some = any(g.at_least(rank(part.name), part.start + part.stop + number) for part in row)
    return some or g.bounds.certain(_has(row, number))


def _missing(tensor: Tensor, reach: Reach) -> tuple[int, int]:
    """Returns how many dims of the row the rule needs, from either end."""
    place = place_of(tensor.shape) or 0
    return max(reach.leading - place, 0), max(reach.trailing - (tensor.rank - 1 - place), 0)


# ---- rows


def _replaced(tensor: Tensor, dims: Shape, value: Dim) -> Tensor:
    """Returns the tensor with other dims in place of its row, whose product is `value`."""
    place = place_of(tensor.shape) or 0
    row = tensor.shape[place]
    layout = tensor.layout
    if isinstance(layout, tuple):
        (name,) = symbols(row)
        strides = [substitute(s, {name: value}) for s in layout]
        inner = [strides[place] * product(dims[i + 1 :]) for i in range(len(dims))]
        layout = (*strides[:place], *inner, *strides[place + 1 :])
    shape = (*tensor.shape[:place], *dims, *tensor.shape[place + 1 :])
    return structs.replace(tensor, shape=shape, layout=layout)


def _declared(g: Caller, dims: Iterable[Dim]) -> None:
    """Declares the dims of rows that are used but missing in the domain."""
    wanted = {name for dim in dims for name in symbols(dim)} - {*g.domain.symbols}
    if wanted := {name for name in wanted if not has_rows((name,)) and name[-1:] in ")]"}:
        g.deepen(Deeper(sorted(wanted)))


def opened(g: Caller, tensor: Tensor) -> Tensor:
    """Returns the tensor with the parts of its row written out whose rank is known by now."""
    place = place_of(tensor.shape)
    if place is None:
        return tensor
    row = row_of(tensor.shape[place]) or ()
    ranks = {part.name: _number(g, rank(part.name)) for part in row}
    short = [part for part in row if ranks[part.name] is not None]
    if not short:
        return tensor
    rest = tuple(part for part in row if ranks[part.name] is None)
    dims: Shape = ()
    for part in short:
        long = ranks[part.name] or 0
        own = tuple(dim_at(part.name, i - long) for i in range(part.start, long - part.stop))
        _declared(g, own)
        dims = broadcast(g, dims, own)
    if not rest:
        return _replaced(tensor, dims, product(dims))
    inner, taken = _taken(g, rest, len(dims))
    dims = broadcast(g, taken, dims)
    return structs.replace(_replaced(tensor, (inner, *dims), inner), layout=_relaid(tensor))


def _relaid(tensor: Tensor) -> Layout:
    """Returns the layout of a tensor whose sizes have changed so that its strides are no longer valid."""
    return tensor.layout if isinstance(tensor.layout, Layout) else Layout.UNKNOWN


def _number(g: Caller, dim: Dim) -> int | None:
    """Returns the dim if it is known as a number, else None."""
    simple = g.equations.simplify(dim)
    if isinstance(simple, int):
        return simple
    low, high = g.bounds.ranges.get(str(simple), (-inf, inf))
    return int(low) if low == high else None


def _taken(g: Caller, row: Row, number: int) -> tuple[Dim, Shape]:
    """Returns a row without its last dims, and these dims; where the row is shorter, they are 1."""
    found: list[Dim] = []
    for back in range(number, 0, -1):
        dims = [dim_at(part.name, -(part.stop + back)) for part in row]
        _declared(g, dims)
        found.append(maximum(*dims))
    return as_dim(tuple(replace(part, stop=part.stop + number) for part in row)), tuple(found)


def _split(g: Caller, tensor: Tensor, leading: int, trailing: int) -> Tensor:
    """Returns the tensor with dims of its row written out at either end. The row must have as many."""
    row = _row_in(tensor)
    first: Shape = ()
    if leading:
        (part,) = row
        first = tuple(dim_at(part.name, part.start + i) for i in range(leading))
        _declared(g, first)
        row = (replace(part, start=part.start + leading),)
    inner, last = _taken(g, row, trailing)
    dims = (*first, inner, *last)
    return _replaced(tensor, dims, product(dims))


def _melted(g: Caller, tensor: Tensor) -> Tensor:
    """Returns the tensor with the product of the row's sizes in place of the row."""
    (part,) = _row_in(tensor)
    value = _count(g, part)
    return _replaced(tensor, (value,), value)


def _count(g: Caller, part: RowPart) -> Dim:
    """Returns the product of a part of a row: of its dims and of the rest between, where these are certainly
    disjoint.
    """
    leading, trailing = depth(g.domain.symbols, part.name)
    first, last = max(leading, part.start), max(trailing, part.stop)
    inner, outer = (
        count(RowPart(part.name, first, last)),
        [*range(part.start, first), *range(-last, -part.stop)],
    )
    one_sided = (part.start == 0 and first == 0) or (part.stop == 0 and last == 0)
    if one_sided or g.at_least(rank(part.name), first + last):
        dims: tuple[Dim, ...] = (inner, *(dim_at(part.name, i) for i in outer))
    else:
        dims = (count(part),)
    _declared(g, dims)
    return product(dims)


# ---- ranks


def _largest(g: Caller, name: str) -> int | None:
    """Returns the largest rank that the row has here, if ranks can be enumerated up to it; else None."""
    high = g.bounds.ranges.get(str(rank(name)), (0, inf))[1]
    return int(high) if high <= MANY else None


def _limit(g: Caller, name: str, least: int = DEEPEST) -> int:
    """Returns the largest rank that is tried."""
    largest = _largest(g, name)
    return least if largest is None else largest


def _bound(g: Caller, name: str, limit: int) -> None:
    """Declares a largest rank where the row has none here. On a path of short rows only, it has one."""
    if _largest(g, name) is None:
        g.deepen(Deeper(bounded={name: limit}))


def _pick(g: Caller, name: str, ranks: Iterable[int], bounded: bool = False) -> None:
    """Decides the rank of a row among a few: each is a branch, except the last one, which remains."""
    found = [*ranks]
    if bounded:
        _bound(g, name, max(found))
    for n in found:
        if n == found[-1] or g.choose(eq(rank(name), n), f"how many dims {name} has"):
            g.learn(eq(rank(name), n))
            return


def _choose_rank(
    g: Caller, rule: Lifted, named: dict[str, Any], rowed: list[Tensor], few: bool = False
) -> None:
    """Decides the rank of one row, among those that the rule does not refuse at once.

    `few` means that it refuses larger ones.
    """
    name = _row_in(rowed[0])[0].name
    longest = max((len(v) for v in named.values() if type(v) is tuple), default=0)
    closed = max((t.rank for t in _tensors(named)), default=0)
    limit = _limit(g, name, max(DEEPEST, longest + 2, closed + 2))
    answers = _fitting(g, rule, named, [name], range(limit + 1))
    fits = [n for n, refusal in answers.items() if refusal is None]
    if not few and (not fits or fits[-1] > limit - 2):  # it may take all ranks from some on
        _bound(g, name, limit)
    refusals = _refusals(answers)
    for refusal in refusals if fits else refusals[:-1]:
        others = (eq(rank(name), n) for n in _not_refused_as(refusal, answers))
        g.require(any_of(others), str(refusal), refusal.error)
    if not fits:
        raise refusals[-1]
    _pick(g, name, fits)


def _refusals(answers: Mapping[int, Refused | None]) -> list[Refused]:
    """Returns the first refusal of each type."""
    found: dict[type[Exception], Refused] = {}
    for refusal in answers.values():
        if refusal is not None:
            found.setdefault(refusal.error, refusal)
    return [*found.values()]


def _not_refused_as(refusal: Refused, answers: Mapping[int, Refused | None]) -> Iterator[int]:
    """Yields the ranks that are accepted, or refused by an exception of another type."""
    return (n for n, other in answers.items() if other is None or other.error is not refusal.error)


def _fitting(
    g: Caller, rule: Lifted, named: Named, rows: list[str], ranks: Iterable[int]
) -> Mapping[int, Refused | None]:
    """Returns the possible ranks, of all these rows at once, each with the rule's refusal, if it refuses the
    rank.

    Declarations about a row that follow do not affect the result, so that other paths can reuse it.
    """
    tried = tuple(n for n in ranks if not any(g.at_least(rank(name), n + 1) for name in rows))
    key = rule.function, g.learnt, *rows, tried, *named, *map(exactly, named.values())
    if key not in g.nothing.fitting:
        every = (part.name for t in _tensors(named) if place_of(t.shape) is not None for part in _row_in(t))
        others = [*dict.fromkeys(row for row in every if row not in rows)]
        g.nothing.fitting[key] = {
            n: _refused_at(g, rule, named, dict.fromkeys(rows, n), others) for n in tried
        }
    return g.nothing.fitting[key]


def _refused_at(
    g: Caller, rule: Lifted, named: Named, known: Mapping[str, int], others: list[str]
) -> Refused | None:
    """Returns the refusal if the rule refuses all calls in which rows have these ranks, else None."""
    if len(others) > 1:
        return None
    first: Refused | None = None
    longest = max((*known.values(), *(_limit(g, name) for name in others))) + 2
    for ranks in combinations(range(longest + 1), repeat=len(others)):
        given = _at(named, {**known, **dict(zip(others, ranks, strict=True))})
        for dim in {d for tensor in _tensors(given) for d in tensor.shape if type(d) is Term}:
            if is_dim(str(dim)) and str(dim) not in g.bounds.ranges:
                g.bounds.learn(ge(dim, 1))
        try:
            rule(_Scout(g), given)
        except Refused as refusal:
            first = first or refusal
            continue
        except RecursionError:
            raise
        except Exception:  # noqa: BLE001 (a rule that fails here fails when it is asked in earnest, too)
            pass
        return None
    return first


def _at(named: Named, ranks: Mapping[str, int]) -> dict[str, Any]:
    """Returns the arguments with rows of these ranks."""

    def spelt(tensor: Tensor) -> Tensor:
        dims: list[Dim] = []
        for part in _row_in(tensor):
            long = ranks[part.name]
            own: list[Dim] = [dim_at(part.name, i - long) for i in range(part.start, long - part.stop)]
            dims = own if len(own) > len(dims) else dims
        return structs.replace(_replaced(tensor, tuple(dims), product(dims)), layout=_relaid(tensor))

    return _mapped(named, spelt)


class _Scout(Trying):
    """A context that notices refusals only."""

    def __init__(self, g: Caller) -> None:
        self.bounds, self.since, self.floats = g.bounds, g.since, g.floats  # type: ignore[method-assign]
        self.without_data, self.range_of = g.without_data, g.range_of  # type: ignore[method-assign]
        self.is_identity, self.is_data = g.is_identity, g.is_data  # type: ignore[method-assign]
        self.no_inverse, self.none_between = g.no_inverse, g.none_between  # type: ignore[method-assign]
        self.may_be_nan, self.no_index_between = g.may_be_nan, g.no_index_between  # type: ignore[method-assign]
        self.may_be_true, self.may_differ = g.may_be_true, g.may_differ  # type: ignore[method-assign]
        self.may_be_alike = g.may_be_alike  # type: ignore[method-assign]

    def fresh(self, hint: str, *known: Any, **options: Any) -> Term:
        return sym(f"{hint}_")

    def trues(self, mask: Tensor) -> Term:
        return sym("true_")

    def stored(self, tensor: Tensor) -> Term:
        return sym("stored_")


def _deepened(g: Caller, rule: Lifted, named: dict[str, Any], tensor: Tensor, reach: Reach) -> dict[str, Any]:
    """Returns the arguments with the dims of a row that the rule needs written out; all dims of a shorter
    row, where the rule accepts that.
    """
    leading, trailing = _missing(tensor, reach)
    row, needed = _row_in(tensor), leading + trailing
    if len(row) > 1 and leading:
        _spell_out(g, tensor)
        return named
    if not _surely_has(g, row, needed):
        enough, short = _has(row, needed), [*range(max(p.start + p.stop for p in row) + needed)]
        answers = _fitting(g, rule, named, [part.name for part in row], short)
        fits = [n for n, refusal in answers.items() if refusal is None]
        for refusal in _refusals(answers):
            which = (eq(rank(part.name), n) for part in row for n in _not_refused_as(refusal, answers))
            g.require(any_of((enough, *which)), str(refusal), refusal.error)
        if fits and not g.choose(enough, "how many dims there are"):
            if len(row) > 1:
                _spell_out(g, tensor)
            else:
                _pick(g, row[0].name, fits)
            return named
    return _mapped(named, lambda t: _split(g, t, leading, trailing) if t.shape == tensor.shape else t)


# ---- several rows


def _aligned(g: Caller, named: dict[str, Any], rowed: list[Tensor], reach: Reach) -> dict[str, Any] | None:
    """Returns the arguments with the same row at the same position wherever there is one; None where that is
    impossible.
    """
    closed = max((t.rank for t in _tensors(named) if place_of(t.shape) is None), default=0)
    trailing = max(t.rank - 1 - (place_of(t.shape) or 0) for t in rowed)
    heads = {t.shape[: (place_of(t.shape) or 0) + 1] for t in rowed}
    if reach.joins and len(heads) > 1:
        return _joined(g, named, rowed)
    if not reach.broadcasts:
        return named if len(heads) == 1 and not any(map(_is_mixed, named.values())) else None
    longest = max(trailing, closed)
    if len(heads) == 1 and closed <= trailing and all(t.rank == rowed[0].rank for t in rowed):
        return named
    if any(place_of(t.shape) or any(part.start for part in _row_in(t)) for t in rowed):
        return None
    named = _mapped(named, lambda t: _padded(g, t, longest))
    rows = sorted(
        {_row_in(t) for t in _tensors(named) if place_of(t.shape) is not None}, key=len, reverse=True
    )
    if len(rows) == 1:
        return named
    joined = tuple(sorted({part for row in rows for part in row}))
    if joined != rows[0] and not reach.into:  # else it is required to expand to that, in the end
        told = " and ".join("*" + str(as_dim(row)).replace("[:]", "") for row in rows)
        reason = f"{told} do not broadcast (at each place, equal, or one is 1)"
        _related(g, relation("broadcast", *joined), reason)
    return _mapped(named, lambda t: _with_row(t, joined))


def _joined(g: Caller, named: dict[str, Any], rowed: list[Tensor]) -> dict[str, Any] | None:
    """Returns the arguments where different rows have to be the same; None where these are at different
    positions.
    """
    first = rowed[0]
    row = _row_in(first)
    if any(map(_is_mixed, named.values())):
        return None
    for other in rowed[1:]:
        its = _row_in(other)
        if (
            len(row) > 1
            or len(its) > 1
            or (other.rank, place_of(other.shape)) != (first.rank, place_of(first.shape))
        ):
            return None
    for its in dict.fromkeys(_row_in(t) for t in rowed[1:]):
        _equate(g, row[0], its[0])
    return _mapped(named, lambda t: _with_row(t, row))


def _equate(g: Caller, a: RowPart, b: RowPart) -> None:
    """Requires two parts of rows to have the same dims."""
    if a == b:
        return
    g.require(eq(a.rank, b.rank), "the tensors have different ranks")
    _related(g, relation("equal", a, b), f"the sizes *{a.short} and *{b.short} have to be equal")


def _related(g: Caller, needed: Relation, reason: str) -> None:
    """Requires a relation between rows."""
    _declared(g, [needed.truth])
    g.require(needed.holds, reason)


def _is_mixed(value: Any) -> bool:
    """Returns whether only some of several tensors of one argument have a row."""
    return isinstance(value, tuple) and len({place_of(t.shape) for t in value if isinstance(t, Tensor)}) > 1


def _padded(g: Caller, tensor: Tensor, trailing: int) -> Tensor:
    """Returns the tensor with so many dims behind its row; those that it does not have are 1."""
    missing = trailing - (tensor.rank - 1 - (place_of(tensor.shape) or 0))
    return tensor if missing <= 0 else _split(g, tensor, 0, missing)


def _with_row(tensor: Tensor, row: Row) -> Tensor:
    if _row_in(tensor) == row:
        return tensor
    inner = as_dim(row)
    return structs.replace(_replaced(tensor, (inner,), inner), layout=_relaid(tensor))
