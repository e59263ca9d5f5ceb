"""Universal quantification: states a formula that has to hold for every value of an index without the index.

A loop's body imposes its requirement for iteration i in all of them. Where the index occurs by itself, its
extremes decide: a monotone function of i has its least value over an interval at one of the two ends.
"""

from __future__ import annotations

from .dims import Apply, Atom, Dim, Term, substitute, symbols
from .formula import And, Compare, Formula, Operator, Or, all_of, any_of, compare, free_symbols, gt, lt, ne


def for_all(formula: Formula, index: str, low: Dim, high: Dim) -> Formula | None:
    """`for all integers index with low <= index <= high: formula`, exactly, without the index.

    The interval has to hold an integer at least. None where the index cannot be eliminated in this way: where
    it occurs in a remainder or a product with itself, in parts of a sum that do not all rise or all fall,
    or in several parts of an *or*.
    """
    if index not in free_symbols(formula):
        return formula
    match formula:
        case And(parts):
            return _all(parts, index, low, high)
        case Or(parts):
            one, *more = (p for p in parts if index in free_symbols(p))
            each = None if more else for_all(one, index, low, high)
            return None if each is None else any_of((*(p for p in parts if p is not one), each))
        case Compare(op, term):
            return _comparison(op, term, index, low, high)
    return formula


def _all(parts: tuple[Formula, ...], index: str, low: Dim, high: Dim) -> Formula | None:
    """Returns the quantified conjunction: the quantifier distributes over its parts."""
    each: list[Formula] = []
    for part in parts:
        if (found := for_all(part, index, low, high)) is None:
            return None
        each.append(found)
    return all_of(each)


def _comparison(op: Operator, term: Term, index: str, low: Dim, high: Dim) -> Formula | None:
    """Returns the condition that the term compares so for all i with low <= i <= high.

    `>= 0` holds throughout if it holds at both ends of a monotone function. So does `== 0`, since between two
    zeros it can neither rise nor fall. `!= 0` of a*i + c, with an integer a, means that the only i with
    a*i = -c, which is q = -c // a if a*q = -c, lies outside.
    """
    split = affine(term, index)
    if op == "!=":
        if split is None or not isinstance(split[0], int):
            return None
        a, c = split
        root = (-c) // a
        return any_of((ne(a * root + c, 0), lt(root, low), gt(root, high)))
    if split is None and slope(term, index) is None:
        return None
    return all_of(compare(op, substitute(term, {index: end})) for end in (low, high))


def affine(term: Dim, index: str) -> tuple[Dim, Dim] | None:
    """Returns a and c with term = a*index + c, where the index occurs in neither; None where no such dims
    exist.
    """
    if isinstance(term, int):
        return 0, term
    for mono, _ in term.terms:
        times = sum(index in atom.symbols for atom in mono)
        if times > 1 or any(isinstance(atom, Apply) and index in atom.symbols for atom in mono):
            return None
    c = substitute(term, {index: 0})
    return substitute(term, {index: 1}) - c, c


def slope(dim: Dim, index: str) -> int | None:
    """Returns 1 for a dim that never falls where the index rises, -1 for one that never rises, 0 for one
    without it; None where none of these is known.

    A sum is as all its parts are; `min` and `max` as all their arguments; a floor of a positive part of a dim
    as the dim itself.
    """
    if index not in symbols(dim):
        return 0
    assert isinstance(dim, Term)
    parts = []
    for mono, times in dim.terms:
        own = [atom for atom in mono if index in atom.symbols]
        one = 0 if not own else _slope(mono[0], index) if len(mono) == 1 else None
        parts.append(one if one is None or times > 0 else -one)
    return _common(parts)


def _slope(atom: Atom, index: str) -> int | None:
    match atom:
        case Apply(op="min" | "max", args=args):
            return _common([slope(arg, index) for arg in args])
        case Apply(op="//", args=(whole, int(parts))) if parts > 0:
            return slope(whole, index)
    return None if isinstance(atom, Apply) else 1


def _common(slopes: list[int | None]) -> int | None:
    """Returns the only slope other than 0; None where there are two, or one is not known."""
    found = {*slopes} - {0}
    return 0 if not found else found.pop() if len(found) == 1 else None
