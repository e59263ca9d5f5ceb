"""Sizes tied to one another by equations, written as terms over fewer parameters."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations, product
from math import gcd
from typing import Final, TypeAlias

from ...constraints.terms.dims import Dim, Symbol, constant_part, linear_parts, substitute, sym, symbols
from ...constraints.terms.formula import Compare, Formula, comparisons
from ..tactics.judge import Judge, connected

EQUATIONS: Final = 6
CHOICES: Final = 24
"""The largest number of equations between sizes that are examined, and of combinations of ties for them."""

Tie: TypeAlias = "tuple[str, Dim]"
"""A symbol and the term that it shall equal; or a term that contains the symbol and shall be 0."""


def choices(
    judge: Judge, names: Sequence[str], accepted: Sequence[Formula], lone: frozenset[str]
) -> Iterator[dict[str, Dim]]:
    """Yields the symbols as terms over parameters: with ties for all equations of the accepted set, then for
    fewer.

    Symbols that are `lone` are tied to nothing.
    """
    alternatives = [*_alternatives(judge, names, accepted, lone)][:EQUATIONS]
    ranked = product(*(range(len(options)) for options in alternatives))
    seen: list[dict[str, Dim]] = []
    for choice in sorted(ranked, key=lambda indices: (sum(map(bool, indices)), sum(indices)))[:CHOICES]:
        ties = [tie for options, index in zip(alternatives, choice, strict=True) for tie in options[index]]
        links = _linked(names, ties)
        if links is not None and links not in seen:
            seen.append(links)
            yield links


def _alternatives(
    judge: Judge, names: Sequence[str], accepted: Sequence[Formula], lone: frozenset[str]
) -> Iterator[list[list[Tie]]]:
    """Yields, for each equation, the ties that would make it hold, best first, and the choice of no tie."""
    found: list[Tie] = []
    for compare in dict.fromkeys(c for f in accepted for c in comparisons(f)):
        if compare.op == "==" and len(symbols(compare.term)) > 1:
            solved = [*_solved(compare, names, lone)]
            found += solved
            options = [*_pairings(compare, names, lone), *([tie] for tie in solved)]
            if options:
                yield [*options, []]
    for index, name in enumerate(names):
        known = judge.known(connected(accepted, (name,))).equal.get(name)
        if known is None or name in lone or not symbols(known) <= {*names[:index]} - lone:
            continue
        if (name, known) not in found:
            yield [[(name, known)], []]


def _pairings(compare: Compare, names: Sequence[str], lone: frozenset[str]) -> Iterator[list[Tie]]:
    """Yields ties that equate each symbol of one side to one of the other: `b*t == c*s` holds where c is b
    and s is t.
    """
    if len(symbols(compare.term)) < 3:
        return
    left, right = (
        [n for n in names if any(n in a.symbols for m, c in compare.term.terms if c * sign > 0 for a in m)]
        for sign in (1, -1)
    )
    if len(left) == len(right) and not {*left} & {*right} and not lone & {*left, *right}:
        for order in permutations(left):
            yield [(b, sym(a)) for a, b in zip(order, right, strict=True)]


def _solved(compare: Compare, names: Sequence[str], lone: frozenset[str]) -> Iterator[Tie]:
    """Yields the last symbol that is a summand of the equation by itself, tied to a term over the others."""
    for name in reversed(names):
        for sign in (1, -1):
            rest = sym(name) - sign * compare.term
            if name not in symbols(rest) and name not in lone and not symbols(rest) & lone:
                yield name, rest
                return
    parts = linear_parts(compare.term)
    if parts is not None and len(parts[0]) == 2 and not symbols(compare.term) & lone:
        (one, p), (other, q) = parts[0]
        if isinstance(one, Symbol) and isinstance(other, Symbol) and p * q < 0:
            yield one.name, compare.term


def _linked(names: Sequence[str], ties: Sequence[Tie]) -> dict[str, Dim] | None:
    """Returns all symbols as terms over parameters that satisfy the ties; None where two ties clash."""
    sizes: dict[str, Dim] = {name: sym(name) for name in names}
    for name, term in ties:
        tied = name in symbols(term)
        difference = substitute(term if tied else sym(name) - term, sizes)
        if difference == 0:
            continue
        alone = not tied and sizes[name] == sym(name) and name not in symbols(substitute(term, sizes))
        solved = {name: substitute(term, sizes)} if alone else _parametrised(difference)
        if solved is None:
            return None
        sizes = {n: substitute(size, solved) for n, size in sizes.items()}
    return sizes


def _parametrised(difference: Dim) -> dict[str, Dim] | None:
    """Returns replacements of symbols that make the difference 0; None where none are found.

    A symbol that is a summand by itself is replaced by the rest. In `p*a - q*b + c` with p, q > 0, both
    symbols are replaced, by `a0 + q/g*t` and `b0 + p/g*t`, g their greatest common divisor.
    """
    if isinstance(difference, int) or (parts := linear_parts(difference)) is None:
        return None
    for atom, c in parts[0]:
        if isinstance(atom, Symbol) and abs(c) == 1:
            rest = sym(atom.name) - c * difference
            if atom.name not in symbols(rest):
                return {atom.name: rest}
    if len(parts[0]) != 2 or not all(isinstance(atom, Symbol) for atom, _ in parts[0]):
        return None
    (one, p), (other, q) = parts[0]
    if p * q > 0 or constant_part(difference) % (g := gcd(p, q)):
        return None
    p, q, c = p // g, -q // g, constant_part(difference) // g
    if p < 0:
        p, q, c = -p, -q, -c
    b0 = next(b for b in range(p) if (q * b - c) % p == 0)
    t = sym(f"_{one.text}")
    return {one.text: q * t + (q * b0 - c) // p, other.text: p * t + b0}
