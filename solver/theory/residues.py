"""Splits sizes with few possible residues into residue classes.

Models that cut pictures into windows accept sizes that fit, and those that they pad to fit: `h % 64 == 0 or h
% 64 == 63`. On a class, h == 64*k + 63, quotients of h by divisors of 64 are polynomials in k, and most
conditions on them are decided.
"""
from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from itertools import product
from math import prod

from ...constraints.terms.dims import Dim, applications, sym
from ...constraints.terms.formula import Formula, comparisons
from .bounds import Consequences, names_of
from .integer_sets import EVERY, TooLarge

CLASSES = 16
"""Where there are more classes, sizes are left as they are."""


def classes(known: Consequences, formulas: Sequence[Formula]) -> list[dict[str, Dim]]:
    """Returns, for each class, replacements of symbols by terms over the same symbols: every assignment that
    satisfies all formulas belongs to one of them. Empty where there is only one class.
    """
    found: dict[str, list[Dim]] = {}
    for name in sorted(divided(formulas)):
        residues = _residues(known, name)
        if residues and prod(map(len, found.values())) * len(residues) <= CLASSES:
            found[name] = residues
    if prod(map(len, found.values())) == 1:
        return []
    return [dict(zip(found, dims, strict=True)) for dims in product(*found.values())]


def divided(formulas: Sequence[Formula]) -> frozenset[str]:
    """Returns the symbols in quotients and remainders of comparisons between several symbols."""
    related = [c.term for f in formulas if len(names_of(f)) > 1 for c in comparisons(f)]
    divisions = [atom for atom in applications(*related) if atom.op in ("//", "%")]
    return frozenset().union(*(atom.symbols for atom in divisions))


def _residues(known: Consequences, name: str) -> list[Dim]:
    """Returns a symbol s as m*s + r, for each residue r modulo m that it may leave."""
    values = known.sets.get(name, EVERY)
    if name in known.equal or not values:
        return []
    with suppress(TooLarge):
        found = values.residues(CLASSES)
        if found is not None and len(found[1]) <= CLASSES:
            return [found[0] * sym(name) + r for r in found[1]]
    return []
