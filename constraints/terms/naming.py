"""Names for the parts that a condition repeats: `H*W*b != 1, where H = ceil(h/32) and W = ceil(w/32)`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from string import ascii_uppercase
from typing import Final

from .dims import Apply, Dim, Term, applications, ceildiv, ceiling, lone, mapped, sym
from .formula import And, Compare, Formula, Or, all_of, any_of, compare, comparisons, free_symbols

MOST: Final = 40
"""No part of a formula with more applications is named: it would not be readable either way."""


def named_text(formula: Formula) -> str:
    """Returns the text of the formula, with names for the quotients that it repeats where that is shorter."""
    short, names = named(formula)
    if not names:
        return str(formula)
    *first, last = (f"{name} = {term}" for name, term in names.items())
    return f"{short}, where {', '.join(first)}{' and ' if first else ''}{last}"


def named(formula: Formula) -> tuple[Formula, Mapping[str, Term]]:
    """Returns a formula over new symbols, and the terms of which they are names.

    The terms put in place of their names give the formula again. An application gets a name if the text of
    the formula becomes shorter by more than a definition takes. Names are given from the longest on, so
    that a term is named as a whole, and definitions hold no names.
    """
    names: dict[str, Term] = {}
    taken = {*free_symbols(formula)}
    while (found := _best(formula, taken, names)) is not None:
        name, term, formula = found
        names[name] = term
        taken.add(name)
    return formula, names


def _best(
    formula: Formula, taken: Set[str], names: Mapping[str, Term]
) -> tuple[str, Term, Formula] | None:
    """Returns the name that makes the text shortest, its term, and the formula with it; None if none does."""
    found, least = None, len(str(formula))
    atoms = applications(*(c.term for c in comparisons(formula)))
    for atom in atoms if len(atoms) <= MOST else ():
        if not atom.symbols.isdisjoint(names):
            continue  # a definition holds no names
        name = next(n for n in _names(atom) if n not in taken)
        term: Dim = lone(atom)
        instead: Dim = sym(name)
        if (raised := ceiling(atom)) is not None:
            sign, (dividend, divisor), added = raised[0], raised[1].args, raised[2]
            term, instead = ceildiv(dividend, divisor), sign * sym(name) + added
        changed = _replaced(formula, atom, instead)
        length = len(f"{changed}, {name} = {term}")
        if length < least and isinstance(term, Term):
            found, least = (name, term, changed), length
    return found


def _names(atom: Apply) -> Iterator[str]:
    """Yields names: the capital of the only symbol, then other letters, then letters with numbers."""
    if len(atom.symbols) == 1:
        (only,) = atom.symbols
        yield only.lstrip("_")[:1].upper() or "N"
    yield from ascii_uppercase
    number = 0
    while True:
        number += 1
        yield f"N{number}"


def _replaced(formula: Formula, atom: Apply, instead: Dim) -> Formula:
    """Returns the formula with a dim in place of the application."""

    def change(other: Apply) -> Dim:
        return instead if other == atom else lone(other)

    match formula:
        case Compare(op, term):
            return compare(op, mapped(term, change))
        case And(parts):
            return all_of(_replaced(part, atom, instead) for part in parts)
        case Or(parts):
            return any_of(_replaced(part, atom, instead) for part in parts)
    return formula
