"""Requirements on a number that the data choose from a range, such as the first of `torch.randperm(n)`.

Each choice has to be valid, as it has for an index. A requirement that holds of the numbers of an interval,
as `k < n` does, holds of all choices if it holds of the least and the greatest, which both occur for some
data. So it becomes one on sizes. When a number lies between two others may also be sought size by size, as it
is for elements that become indices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from ...ir.language import Tensor
from ...terms.dims import Apply, Atom, Dim, Symbol, coefficients, lone, symbols
from ...terms.formula import And, Compare, Formula, Or, all_of, any_of, free_symbols, ge, negate, rewrite
from ..elements.functions import AtLeast, corners, known
from ..elements.values import of, pieces_of


@dataclass(frozen=True, slots=True)
class Choice:
    """Numbers that occur for some data, each with its sizes; all others lie between them if `whole`."""

    numbers: tuple[tuple[Formula, Dim], ...]
    whole: bool


@dataclass(frozen=True, slots=True)
class Sought:
    """A number that is made from sizes, or chosen by the data.

    `between` returns the sizes at which it lies between two others, and whether the data choose it; None
    where that is not found.
    """

    between: Callable[[Dim | None, Dim | None], tuple[Formula, bool] | None]


class Asked(NamedTuple):
    """When a requirement holds, whether the data choose that, whether it asks nothing else, and when some
    choice of the data may satisfy it.
    """

    condition: Formula
    by_data: bool
    whole: bool
    some: Formula = True


def choice_of(tensor: Tensor, at_least: AtLeast) -> Choice | None:
    """Returns the choices of the data for the only element of a tensor; None where they are not known."""
    pieces = pieces_of(of(tensor), tensor.shape)
    if pieces is None or not pieces.by_data or pieces.and_data or pieces.slack or pieces.roundings:
        return None
    numbers: list[tuple[Formula, Dim]] = []
    found = [p for p in known(pieces) if p.attained and p.over == 1 and p.doubt is False]
    for piece in found:
        ends = None if piece.term is None else corners(piece.term, piece.indices, at_least)
        if ends is None:
            return None
        numbers += [(piece.given, end) for end in dict.fromkeys((*ends[0], *ends[1]))]
    return Choice(tuple(numbers), len(found) == len(pieces.pieces)) if numbers else None


def of_each_choice(formula: Formula, choices: Mapping[str, Choice | Sought]) -> Asked | None:
    """Returns the condition under which a requirement on one number holds of all the choices that are known;
    None where it is on another, or does not hold of an interval.
    """
    names = free_symbols(formula) & choices.keys()
    if len(names) != 1:
        return None
    (name,) = names
    formula, choice = _of_arguments(formula, name), choices[name]
    if isinstance(choice, Sought):
        found = _sought(formula, name, choice)
        of_all = found and (not found[1] or _is_of_interval(formula, name))
        return Asked(*found, whole=True) if found and of_all else None
    if not _is_of_interval(formula, name):
        return None
    each = [(given, rewrite(formula, {name: number})) for given, number in choice.numbers]
    rises = isinstance(formula, Compare) and formula.op == ">="  # then it holds at an end, if anywhere
    some = any_of(map(all_of, each)) if rises and choice.whole else True
    condition = all_of(any_of((negate(given), there)) for given, there in each)
    return Asked(condition, by_data=True, whole=choice.whole, some=some)


MOST_TERMS: Final = 8
"""A sum of more terms is not looked at: each minimum in it doubles what is."""


def _of_arguments(formula: Formula, name: str) -> Formula:
    """Returns a formula with conditions on the arguments in place of those on a minimum or a maximum of them:
    `min(x, y) <= n` is `x <= n or y <= n`. A sum of many of them stays as it is.
    """
    match formula:
        case And(parts) | Or(parts):
            together = all_of if isinstance(formula, And) else any_of
            return together(_of_arguments(part, name) for part in parts)
        case Compare(">=", term) if len(coefficients(term)) <= MOST_TERMS:
            for mono, factor in coefficients(term):
                match mono:
                    case (Apply(op="min" | "max" as op, args=args) as atom,) if name in atom.symbols:
                        rest = term - factor * lone(atom)
                        each = (_of_arguments(ge(rest + factor * arg, 0), name) for arg in args)
                        return all_of(each) if (op == "min") == (factor > 0) else any_of(each)
    return formula


def _sought(formula: Formula, name: str, sought: Sought) -> tuple[Formula, bool] | None:
    """Returns the sizes at which a formula holds of a number, and whether the data choose that."""
    match formula:
        case Compare(op, term) if name in free_symbols(formula):
            factor = dict(coefficients(term)).get((Symbol(name),), 0)
            rest = term - factor * lone(Symbol(name))
            if not isinstance(factor, int) or factor == 0 or name in symbols(rest):
                return None
            if op in ("==", "!="):
                same = sought.between(-factor * rest, -factor * rest) if abs(factor) == 1 else None
                return same if op == "==" or same is None else (negate(same[0]), same[1])
            below = (None, rest // -factor) if factor < 0 else (-1 * (rest // factor), None)
            return sought.between(*below) if op == ">=" else None
        case And(parts) | Or(parts):
            found = [_sought(part, name, sought) for part in parts]
            together = all_of if isinstance(formula, And) else any_of
            known = [one for one in found if one is not None]
            whole = len(known) == len(found)
            return (together(one for one, _ in known), any(data for _, data in known)) if whole else None
    return formula, False


def _is_of_interval(formula: Formula, name: str) -> bool:
    """Returns whether a formula, at any sizes, holds of the numbers of an interval and of no others."""
    match formula:
        case Compare(op, term):
            here = [mono for mono, _ in coefficients(term) if any(name in atom.symbols for atom in mono)]
            return op != "!=" and all(_is_linear(mono, name) for mono in here)
        case And(parts):
            return all(_is_of_interval(part, name) for part in parts)
        case Or(parts):
            about = [part for part in parts if name in free_symbols(part)]
            return len(about) <= 1 and all(_is_of_interval(part, name) for part in about)
    return True


def _is_linear(mono: tuple[Atom, ...], name: str) -> bool:
    about = [atom for atom in mono if name in atom.symbols]
    return len(about) == 1 and isinstance(about[0], Symbol)
