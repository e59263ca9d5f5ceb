"""The gradual types of a program's values: with sizes as terms, with the sizes of an assignment, or with
constants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..terms.dims import Dim, Term, UnknownSymbol, evaluate, substitute
from ..terms.formula import And, Compare, Or
from ..terms.rows import place_of, sizes
from .language import Dyn, Dynamic, Number, Tensor, Value
from .lattice import DimType, Plain, Ranked, Rowed, Several, Type, rowed


def type_of(value: Value) -> Type:
    """Returns the type of a value, its sizes as terms."""
    match value:
        case Tensor():
            place = place_of(value.shape)
            return (
                Ranked(value.shape)
                if place is None
                else rowed(value.shape[:place], value.shape[place + 1 :])
            )
        case tuple():
            return Several(tuple(map(type_of, value)))
        case Number(kind):
            return Plain(kind)
        case bool() | Compare() | And() | Or():
            return Plain("bool")
        case int() | Term():
            return Plain("int")
        case float():
            return Plain("float")
    return Dyn


def mapped(change: Callable[[Dim], DimType], type: Type) -> Type:
    """Returns the type with each of its sizes changed."""

    def dims(row: tuple[DimType, ...]) -> tuple[DimType, ...]:
        return tuple(d if isinstance(d, Dynamic) else change(d) for d in row)

    match type:
        case Ranked(row):
            return Ranked(dims(row))
        case Rowed(lead, trail, least):
            return Rowed(dims(lead), dims(trail), least)
        case Several(parts):
            return Several(tuple(mapped(change, part) for part in parts))
    return type


def at(value: Value, values: Mapping[str, int]) -> Type:
    """Returns the type of a value at an assignment, its rows expanded; sizes that data decide stay Dyn."""

    def size(dim: Dim) -> DimType:
        try:
            return evaluate(dim, values)
        except (UnknownSymbol, ZeroDivisionError):
            return Dyn

    if isinstance(value, tuple):
        return Several(tuple(at(part, values) for part in value))
    if isinstance(value, Tensor) and (place := place_of(value.shape)) is not None:
        row = sizes((value.shape[place],), values)
        return Ranked((*map(size, value.shape[:place]), *row, *map(size, value.shape[place + 1 :])))
    return mapped(size, type_of(value))


def rewritten(type: Type, replacements: Mapping[str, Dim]) -> Type:
    """Returns the type with symbols replaced by terms."""
    return mapped(lambda dim: substitute(dim, replacements), type)
