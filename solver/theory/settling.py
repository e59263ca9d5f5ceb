"""Eventual constants: on each residue class, quotients by terms over one symbol are constant from some value
on.

`h//(h//7)` is 7 from 42 on. Of two polynomials x and m, x//m is v where 1 <= m and v*m <= x < (v + 1)*m, and
where x grows no faster than m, the signs of these comparisons are constant from some value on.
"""
from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import lcm

from msgspec import Struct

from ...constraints.terms.dims import Apply, Dim, Term, applications, evaluate, lone, mapped, substitute, sym
from .integer_sets import IntegerSet, TooLarge
from .quasi_polynomials import differences, period, sign_changes

MAX_MODULUS = 1 << 7
MAX_START = 1 << 12
FAR = 1 << 40
"""The limit for moduli of residue classes, and for the value from which quotients are constant. All quotients
that qualify are constant from here on.
"""


class Settled(Struct, frozen=True):
    """The eventual form of a term: from `start` on, its value at n*modulus + r is `terms[r]`, over n."""

    start: int
    modulus: int
    terms: dict[int, Dim]


@lru_cache(maxsize=1 << 14)
def is_partial(*dims: Dim) -> bool:
    """Returns whether the dims divide by a term, which may be 0."""
    return any(map(_is_by_term, applications(*dims)))


def settled(term: Dim, name: str, values: IntegerSet) -> Settled:
    """Returns the eventual form of a partial term on the residue classes of the values, which are only
    bounded below: there it has fewer quotients by terms. Raises TooLarge where it has none, or too late.
    """
    inner = [atom for atom in _partial(term) if not is_partial(*atom.args)]
    modulus = lcm(values.period, *(period(arg) for atom in inner for arg in atom.args))
    if modulus > MAX_MODULUS:
        raise TooLarge
    start, terms = max(values.cuts), {}
    for residue in range(modulus):
        if values.masks[-1] >> residue % values.period & 1:
            there = substitute(term, {name: modulus * sym(name) + residue})
            terms[residue], since = _with_limits(there, name)
            start = max(start, modulus * since + residue)
            if len([*_partial(terms[residue])]) >= len([*_partial(term)]):
                raise TooLarge
    if start > MAX_START:
        raise TooLarge
    return Settled(start, modulus, terms)


def _with_limits(term: Dim, name: str) -> tuple[Dim, int]:
    """Returns the term with quotients of polynomials replaced by their limits, and the value from which those
    hold.
    """
    places = [0]

    def change(atom: Apply) -> Dim:
        if not _is_by_term(atom) or is_partial(*atom.args) or any(period(arg) != 1 for arg in atom.args):
            return lone(atom)
        whole, divisor = atom.args
        limit, since = _limit(whole, divisor, name)
        places.append(since)
        return limit if atom.op == "//" else whole - limit * divisor

    return mapped(term, change), max(places)


def _limit(whole: Dim, divisor: Dim, name: str) -> tuple[int, int]:
    """Returns the eventual value of whole//divisor, of polynomials, and the value from which it holds."""
    far = {name: FAR}
    if evaluate(divisor, far) < 1:
        raise TooLarge
    limit = evaluate(whole, far) // evaluate(divisor, far)
    signs = divisor - 1, whole - limit * divisor, whole - (limit + 1) * divisor
    since = max(sign_changes((*differences(whole), *differences(divisor), *signs), name, 0, 1), default=0)
    if since > MAX_START:
        raise TooLarge
    return limit, since


def _partial(term: Dim) -> Iterator[Apply]:
    """Yields the quotients and remainders by terms."""
    return filter(_is_by_term, applications(term))


def _is_by_term(atom: Apply) -> bool:
    return atom.op in ("//", "%") and isinstance(atom.args[1], Term)
