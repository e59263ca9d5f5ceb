"""Eliminates symbols from a formula by comparing their bounds, without z3."""
from __future__ import annotations

from itertools import product

from ...constraints.terms.dims import Dim, Symbol, sym, symbols
from ...constraints.terms.formula import (
    And,
    Compare,
    Formula,
    Or,
    all_of,
    any_of,
    conjuncts,
    free_symbols,
    ge,
    le,
    rewrite,
)

CASES = 64
"""A formula is treated as a disjunction of at most this many conjunctions."""


def without(formula: Formula, name: str) -> Formula | None:
    """Returns `exists name: formula`, where the integer occurs by itself, with factor 1 or -1, in each
    comparison that mentions it; None where this method does not apply.

    In a conjunction each such comparison is a bound, `l <= name` or `name <= u`, or both of them. An integer
    lies between them all iff every `l <= u`. If it is equal to a term, it is replaced by that term
    everywhere.
    """
    parts = conjuncts(formula)
    for part in parts:
        if isinstance(part, Compare) and part.op == "==" and (equal := _bound(part, name)) is not None:
            others = [p for p in parts if name not in free_symbols(p)]
            about = [rewrite(p, {name: equal[1]}) for p in parts if p not in others]
            return all_of((*others, *about))
    cases = _cases(formula, name)
    if cases is None:
        return None
    found = []
    for case in cases:
        lower: list[Dim] = []
        upper: list[Dim] = []
        rest: list[Formula] = []
        for part in case:
            if name not in free_symbols(part):
                rest.append(part)
                continue
            if not isinstance(part, Compare) or (bound := _bound(part, name)) is None:
                return None
            factor, value = bound
            if part.op == "==" or factor == 1:
                lower.append(value)
            if part.op == "==" or factor == -1:
                upper.append(value)
        found.append(all_of((*rest, *(le(low, high) for low, high in product(lower, upper)))))
    return any_of(found)


def _bound(compare: Compare, name: str) -> tuple[int, Dim] | None:
    """Returns (c, t) such that the term is c * (name - t), for c = 1 or -1 and t without the name."""
    factor = next((c for mono, c in compare.term.terms if mono == (Symbol(name),)), 0)
    if factor not in (1, -1):
        return None
    value = sym(name) - factor * compare.term
    return None if name in symbols(value) else (factor, value)


def _cases(formula: Formula, name: str) -> list[tuple[Formula, ...]] | None:
    """Returns the formula as a disjunction of conjunctions, as far as it mentions the name; None if they are
    many.
    """
    if isinstance(formula, bool) or name not in free_symbols(formula):
        return [(formula,)]
    match formula:
        case Or(parts):
            of_parts = [_cases(part, name) for part in parts]
            joined = [case for cases in of_parts for case in cases or ()]
            return None if None in of_parts or len(joined) > CASES else joined
        case And():
            found: list[tuple[Formula, ...]] = [()]
            for part in conjuncts(formula):
                more = _cases(part, name)
                if more is None or len(found) * len(more) > CASES:
                    return None
                found = [(*case, *also) for case in found for also in more]
            return found
        case Compare("!=", term):
            return [(ge(term, 1),), (le(term, -1),)]
    return [(formula,)]
