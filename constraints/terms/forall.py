"""Universal quantification: states a formula that has to hold for every value of an index without the index.

A loop's body imposes its requirement for iteration i in all of them. Where the index occurs by itself, its
extremes decide: an affine function of i has its least value over an interval at one of the two ends.
"""

from __future__ import annotations

from .dims import Apply, Dim, Term, substitute
from .formula import And, Compare, Formula, Operator, Or, all_of, any_of, compare, free_symbols, gt, lt, ne


def for_all(formula: Formula, index: str, low: Dim, high: Dim) -> Formula | None:
    """`for all integers index with low <= index <= high: formula`, exactly, without the index.

    The interval has to hold an integer at least. None where the index cannot be eliminated in this way: where
    it occurs inside of a quotient, a remainder, a minimum or a maximum, in a product with itself, or in
    several parts of an *or*.
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
    """Returns the condition that a*i + c compares so for all i with low <= i <= high.

    `>= 0` holds throughout if it holds at both ends. So does `== 0`, since an affine function that is zero at
    two points is zero everywhere. `!= 0`, with an integer a, means that the only i with a*i = -c, which is q
    = -c // a if a*q = -c, lies outside.
    """
    split = affine(term, index)
    if split is None:
        return None
    a, c = split
    if op == "!=":
        if not isinstance(a, int):
            return None
        root = (-c) // a
        return any_of((ne(a * root + c, 0), lt(root, low), gt(root, high)))
    return all_of(compare(op, a * end + c) for end in (low, high))


def affine(term: Term, index: str) -> tuple[Dim, Dim] | None:
    """Returns a and c with term = a*index + c, where the index occurs in neither; None where no such dims
    exist.
    """
    for mono, _ in term.terms:
        times = sum(index in atom.symbols for atom in mono)
        if times > 1 or any(isinstance(atom, Apply) and index in atom.symbols for atom in mono):
            return None
    c = substitute(term, {index: 0})
    return substitute(term, {index: 1}) - c, c
