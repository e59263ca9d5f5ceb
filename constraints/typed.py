"""The gradual types of a program's values: with their sizes as terms, at an assignment, and as the constants
that they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .dims import Dim, Term, UnknownSymbol, evaluate, substitute
from .formula import And, Compare, Or
from .language import Dyn, Dynamic, Number, Tensor, Value
from .lattice import DimType, Plain, Ranked, Rowed, Several, Type


def type_of(value: Value) -> Type:
    """The type of a value, its sizes as the terms that they are."""
    match value:
        case Tensor():
            return Ranked(value.shape)
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
    """The type with each of its sizes changed."""

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


def at(type: Type, values: Mapping[str, int]) -> Type:
    """The type at an assignment; sizes that data decide stay Dyn."""

    def size(dim: Dim) -> DimType:
        try:
            return evaluate(dim, values)
        except (UnknownSymbol, ZeroDivisionError):
            return Dyn

    return mapped(size, type)


def rewritten(type: Type, replacements: Mapping[str, Dim]) -> Type:
    """The type with symbols replaced by terms."""
    return mapped(lambda dim: substitute(dim, replacements), type)
