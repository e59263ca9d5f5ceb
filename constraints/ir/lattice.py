"""The gradual types, and how they are ordered: consistency, precision, bounds from below and from above.

    dim     d ::= integer | term | Dyn
    type    t ::= Dyn                      nothing is known
                | Ranked(d, ..., d)        a tensor of this rank
                | Rowed(d..., d..., n)     a tensor of at least n dims, the first and the last of them known
                | Plain(name)              a number or a truth: `int`, `bool`, `float`
                | Several(t, ..., t)       a tuple

A type denotes a set of static ones, those without Dyn: it is *more precise* than another where its set lies
within the other's, and *consistent* with it where the two sets meet. The symbols of terms are constants here,
each different from all others: only the solver reasons about their values.

torch's own `Dyn` is both the dim and the type; an unknown tensor is `Rowed((), (), 0)`.

With rows the order is no lattice: `[2, ...]` and `[..., 2]` have two greatest lower bounds, `[2]` and `[2,
..., 2]`. So `meet` and `join` return all of them; without rows there is one at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from ..terms.dims import Dim
from .language import Dyn, Dynamic

DimType: TypeAlias = "Dim | Dynamic"
Type: TypeAlias = "Dynamic | Ranked | Rowed | Plain | Several"


@dataclass(frozen=True, slots=True)
class Ranked:
    """A tensor whose rank is known."""

    dims: tuple[DimType, ...]

    def __str__(self) -> str:
        return f"[{', '.join(map(str, self.dims))}]"


@dataclass(frozen=True, slots=True)
class Rowed:
    """A tensor of `least` or more dims; the first ones are `lead` and the last ones `trail`.

    Built by `rowed`, so that equal types are equal objects: neither end has a Dyn next to the row.
    """

    lead: tuple[DimType, ...]
    trail: tuple[DimType, ...]
    least: int

    def __str__(self) -> str:
        unknown = [str(Dyn)] * (self.least - len(self.lead) - len(self.trail))
        return f"[{', '.join((*map(str, self.lead), *unknown, '...', *map(str, self.trail)))}]"


@dataclass(frozen=True, slots=True)
class Plain:
    """A value other than a tensor, by the name of its Python type."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Several:
    """A tuple of values."""

    parts: tuple[Type, ...]

    def __str__(self) -> str:
        return f"({', '.join(map(str, self.parts))})"


def rowed(lead: Iterable[DimType], trail: Iterable[DimType], least: int = 0) -> Rowed:
    """The type of tensors with these first and last dims, and at least `least` in all."""
    front, back = [*lead], [*trail]
    least = max(least, len(front) + len(back))
    while front and front[-1] is Dyn:
        front.pop()
    while back and back[0] is Dyn:
        back.pop(0)
    return Rowed(tuple(front), tuple(back), least)


def is_static(type: Type) -> bool:
    """Returns whether the type contains no Dyn."""
    match type:
        case Ranked(dims):
            return Dyn not in dims
        case Several(parts):
            return all(map(is_static, parts))
    return isinstance(type, Plain)


# ---- dims: Dyn above all, integers and terms side by side below it


def _dims_meet(a: DimType, b: DimType) -> DimType | None:
    return b if a is Dyn else a if b is Dyn or a == b else None


def _dims_join(a: DimType, b: DimType) -> DimType:
    return a if a == b else Dyn


# ---- the order


def is_more_precise(a: Type, b: Type) -> bool:
    """Returns whether every static type in the set of a is in that of b.

    The order is reflexive and transitive.
    """
    if b is Dyn or a == b:
        return True
    match a, b:
        case Ranked(dims), Ranked(others):
            return len(dims) == len(others) and all(map(_covers, others, dims))
        case Ranked(dims), Rowed(lead, trail, least):
            return len(dims) >= least and _begins(dims, lead) and _begins(dims[::-1], trail[::-1])
        case Rowed(), Rowed(lead, trail, least):
            return a.least >= least and _begins(a.lead, lead) and _begins(a.trail[::-1], trail[::-1])
        case Several(parts), Several(others):
            return len(parts) == len(others) and all(map(is_more_precise, parts, others))
    return False


def _covers(general: DimType, dim: DimType) -> bool:
    return general is Dyn or general == dim


def _begins(dims: tuple[DimType, ...], wanted: tuple[DimType, ...]) -> bool:
    """Returns whether the dims, which unknown ones may follow, begin as wanted."""
    padded = (*dims, *[Dyn] * (len(wanted) - len(dims)))
    return all(map(_covers, wanted, padded))


def is_consistent(a: Type, b: Type) -> bool:
    """Returns whether the sets of the two types share a static type.

    The relation is reflexive and symmetric, but not transitive: Dyn is consistent with `[2]` and with `[3]`.
    """
    return bool(meet(a, b))


# ---- bounds


def meet(a: Type, b: Type) -> tuple[Type, ...]:
    """Returns the greatest lower bounds: any type more precise than both is more precise than one of them.

    Empty where the two are not consistent. Only types with rows have more than one.
    """
    if a is Dyn or b is Dyn:
        return (b if a is Dyn else a,)
    match a, b:
        case Ranked(dims), Ranked(others):
            return _all_dims(dims, others)
        case (Ranked(dims), Rowed() as row) | (Rowed() as row, Ranked(dims)):
            return _of_rank(dims, row) if len(dims) >= row.least else ()
        case Rowed(), Rowed():
            return tuple(_of_rows(a, b))
        case Several(parts), Several(others) if len(parts) == len(others):
            return tuple(map(Several, product(*map(meet, parts, others))))
    return (a,) if a == b else ()


def _all_dims(dims: tuple[DimType, ...], others: tuple[DimType, ...]) -> tuple[Ranked, ...]:
    if len(dims) != len(others):
        return ()
    found = [*map(_dims_meet, dims, others)]
    return () if None in found else (Ranked(tuple(d for d in found if d is not None)),)


def _of_rank(dims: tuple[DimType, ...], row: Rowed) -> tuple[Ranked, ...]:
    """Returns the dims, made more precise by the first and last dims of the row's type.

    The two ends may overlap.
    """
    rank = len(dims)
    after = (*row.lead, *[Dyn] * (rank - len(row.lead)))
    before = (*[Dyn] * (rank - len(row.trail)), *row.trail)
    return tuple(m for n in _all_dims(dims, after) for m in _all_dims(n.dims, before))


def _of_rows(a: Rowed, b: Rowed) -> Iterable[Type]:
    """Yields the lower bounds of two types with rows.

    Where the lead of one may overlap the trail of the other, each such rank is a bound of its own.
    """
    least = max(a.least, b.least)
    apart = max(len(a.lead), len(b.lead)) + max(len(a.trail), len(b.trail))
    for rank in range(least, apart):
        for ranked in _of_rank((Dyn,) * rank, a):
            yield from _of_rank(ranked.dims, b)
    lead = _all_dims(*_padded(a.lead, b.lead))
    trail = _all_dims(*_padded(a.trail[::-1], b.trail[::-1]))
    if lead and trail:
        yield rowed(lead[0].dims, trail[0].dims[::-1], max(least, apart))


def _padded(*rows: tuple[DimType, ...]) -> list[tuple[DimType, ...]]:
    longest = max(map(len, rows))
    return [(*row, *[Dyn] * (longest - len(row))) for row in rows]


def join(a: Type, b: Type) -> tuple[Type, ...]:
    """Returns the least upper bounds: for any type less precise than both, one of them is more precise than
    it.

    Only tensors of different ranks, or with rows, have more than one.
    """
    match a, b:
        case Ranked(dims), Ranked(others) if len(dims) == len(others):
            return (Ranked(tuple(map(_dims_join, dims, others))),)
        case (Ranked() | Rowed()), (Ranked() | Rowed()):
            return _minimal([*_splits(a, b)])
        case Several(parts), Several(others) if len(parts) == len(others):
            return tuple(map(Several, product(*map(join, parts, others))))
    return (a if a == b else Dyn,)


def _splits(a: Ranked | Rowed, b: Ranked | Rowed) -> Iterable[Rowed]:
    """Yields upper bounds of as many dims as both have, the first few taken from the front, the rest from the
    back.
    """
    least = min(_least(a), _least(b))
    for count in range(least + 1):
        lead = map(_dims_join, _first(a, count), _first(b, count))
        trail = map(_dims_join, _last(a, least - count), _last(b, least - count))
        yield rowed(lead, trail, least)


def _least(type: Ranked | Rowed) -> int:
    return len(type.dims) if isinstance(type, Ranked) else type.least


def _first(type: Ranked | Rowed, count: int) -> tuple[DimType, ...]:
    known = type.dims if isinstance(type, Ranked) else type.lead
    return (*known, *[Dyn] * count)[:count]


def _last(type: Ranked | Rowed, count: int) -> tuple[DimType, ...]:
    known = type.dims if isinstance(type, Ranked) else type.trail
    return (*[Dyn] * count, *known)[len(known) :]


def _minimal(types: list[Rowed]) -> tuple[Rowed, ...]:
    kept = dict.fromkeys(types)
    return tuple(t for t in kept if not any(is_more_precise(u, t) for u in kept if u != t))


def least_upper(types: Iterable[Type]) -> Type:
    """Returns one type that all are more precise than; of several least ones, the one that knows the first
    dims.
    """
    return _folded(types, lambda a, b: max(join(a, b), key=_knows))


def greatest_lower(types: Iterable[Type]) -> Type | None:
    """Returns the only greatest lower bound of all types; None where there are none, or several."""
    bounds: tuple[Type, ...] = (Dyn,)
    for type in types:
        found = dict.fromkeys(m for n in bounds for m in meet(n, type))
        bounds = tuple(t for t in found if not any(is_more_precise(t, u) for u in found if u != t))
    return bounds[0] if len(bounds) == 1 else None


def _knows(type: Type) -> int:
    return len(type.lead) if isinstance(type, Rowed) else 0


def _folded(types: Iterable[Type], bound: Callable[[Type, Type], Type]) -> Type:
    rest = iter(types)
    found = next(rest, Dyn)
    for type in rest:
        found = bound(found, type)
    return found
