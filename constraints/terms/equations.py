"""Rewriting by equations: once calls have required terms to be equal, one of them replaces the others.

After a window partition has required `(h//2)*(w//2) == 16*(h//8)*(w//8)`, the batch of the result,
`(16*b*(h//8)*(w//8)) // ((h//2)*(w//2))`, is `b`. Rewriting is sound wherever the equations hold; it decides
nothing, and need not find everything.
"""

from __future__ import annotations

from collections import Counter

from .dims import BUILD, Apply, Atom, Dim, Mono, Symbol, Term, applications, symbols, total
from .formula import And, Compare, Formula, Or, all_of, any_of, compare, conjuncts

ROUNDS = 4
"""Rewriting stops after this many passes over a dim, whether or not it still changes."""


class Equations:
    """Oriented equations: for products of atoms, the dim that replaces each."""

    __slots__ = ("_cache", "_products", "_quotients", "_spoken")

    def __init__(self) -> None:
        self._products: dict[Atom, dict[Mono, Dim]] = {}  # by the first atom of the product
        self._quotients: dict[Atom, tuple[Dim, int]] = {}  # q -> (p, k), where k*q is p
        self._spoken: set[str] = set()
        """The symbols of atoms that are rewritten: a dim without any of them never changes."""
        self._cache: dict[Term, Dim] = {}

    def __bool__(self) -> bool:
        return bool(self._products)

    def learn(self, formula: Formula) -> None:
        """Adds a formula that holds from here on: its conjuncts `m == rest`, m with coefficient 1 or -1,
        become rewritings. `p % k == 0` implies besides that k * (p // k) is p.
        """
        for part in conjuncts(formula):
            if not isinstance(part, Compare) or part.op != "==":
                continue
            for mono, coefficient in part.term.terms:
                if not mono or abs(coefficient) != 1:
                    continue
                rest = (Term(((mono, coefficient),), part.term.modular) - part.term) * coefficient
                if rest == 0 and len(mono) == 1:
                    self._learn_multiple(mono[0])
                if not _within(mono, rest):
                    self._products.setdefault(mono[0], {})[mono] = rest
                    self._spoken |= mono[0].symbols
                    self._cache.clear()
                    break

    def _learn_multiple(self, atom: Atom) -> None:
        """From `p % k == 0`: k * (p // k) is p. Where p // k is s*q + c with s = ±1, k*q is s*(p - k*c)."""
        if isinstance(atom, Apply) and atom.op == "%":
            dividend, divisor = atom.args
            quotient = dividend // divisor
            if isinstance(divisor, int) and isinstance(quotient, Term):
                constant = sum(factor for mono, factor in quotient.terms if not mono)
                found = [(mono, factor) for mono, factor in quotient.terms if mono]
                if len(found) == 1 and len(found[0][0]) == 1 and abs(found[0][1]) == 1:
                    ((atom,), sign), = found
                    self._quotients[atom] = (dividend - divisor * constant) * sign, divisor
                    self._spoken |= atom.symbols

    def simplify(self, dim: Dim) -> Dim:
        """Returns the dim rewritten by the equations."""
        if isinstance(dim, int) or self._spoken.isdisjoint(symbols(dim)):
            return dim
        found = self._cache.get(dim)
        if found is None:
            self._cache[dim] = dim  # where equations lead back to it, it stays as it is
            found = self._cache[dim] = self._rewritten(dim)
        return found

    def _rewritten(self, dim: Dim) -> Dim:
        for _ in range(ROUNDS):
            before = dim
            try:
                dim = self._pass(dim)
            except ZeroDivisionError:  # the equations contradict that a divisor is not 0
                return before
            if dim == before:
                break
        return dim

    def simplify_formula(self, formula: Formula) -> Formula:
        """Returns the formula with each dim rewritten."""
        match formula:
            case Compare(op, term):
                simpler = self.simplify(term)
                return formula if simpler is term else compare(op, simpler)
            case And(parts):
                return all_of(map(self.simplify_formula, parts))
            case Or(parts):
                return any_of(map(self.simplify_formula, parts))
        return formula

    def _pass(self, dim: Dim) -> Dim:
        if isinstance(dim, int):
            return dim
        return total([self._product(mono, coefficient) for mono, coefficient in dim.terms])

    def _product(self, mono: Mono, coefficient: int) -> Dim:
        for atom in mono:
            for left, right in self._products.get(atom, {}).items():
                if Counter(left) <= Counter(mono):
                    return right * coefficient * _times([*(Counter(mono) - Counter(left)).elements()])
        for place, atom in enumerate(mono):
            found = self._quotients.get(atom)
            if found is not None and coefficient % found[1] == 0:
                return found[0] * (coefficient // found[1]) * _times([*mono[:place], *mono[place + 1 :]])
        result: Dim = coefficient
        for atom in mono:
            result = result * self._atom(atom)
        return result

    def _atom(self, atom: Atom) -> Dim:
        if isinstance(atom, Symbol):
            return _times([atom])
        return BUILD[atom.op](*map(self.simplify, atom.args))


def _times(atoms: list[Atom]) -> Dim:
    result: Dim = 1
    for atom in atoms:
        result = result * Term((((atom,), 1),), isinstance(atom, Apply) and atom.op == "%")
    return result


def _within(mono: Mono, dim: Dim) -> bool:
    """Returns whether rewriting the product to the dim would bring the product back, or replace a symbol by a
    larger term.
    """
    inside = {*applications(dim)}
    return any(a.name in symbols(dim) if isinstance(a, Symbol) else a in inside for a in mono)
