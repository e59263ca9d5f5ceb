"""The accepted set in readable form: a fact per dim, the remaining relations, and both as a line of text."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from ...constraints.ir.language import Fact
from ...constraints.ir.system import Domain
from ...constraints.terms.dims import Dim, Term, sym, total
from ...constraints.terms.formula import And, Formula, all_of, any_of, conjuncts, eq, ne
from ..tactics.judge import Judge
from .facts import fact, facts
from .shorten import between, needed, simplify

__all__ = ["Summary", "fact", "fact_formula", "fact_text", "facts", "simplify", "summary"]


@dataclass(frozen=True, slots=True)
class Summary:
    """The accepted set within its domain: facts, and relations between symbols that the facts do not imply.
    """

    facts: Mapping[str, Fact]
    relations: tuple[Formula, ...]

    def __str__(self) -> str:
        if False in self.relations:
            return "no sizes"
        said = [fact_text(name, fact) for name, fact in self.facts.items()]
        said += [f"({r})" if isinstance(r, And) else str(r) for r in self.relations]
        return ", ".join(filter(None, said)) or "any sizes"


def summary(judge: Judge, domain: Domain, accepted: Formula, facts: Mapping[str, Fact]) -> Summary:
    """Returns the facts, and those of the formulas that do not follow from them."""
    said = [f for name, fact in facts.items() for f in conjuncts(fact_formula(name, fact))]
    kept = conjuncts(all_of((*domain.declared, accepted)))
    return Summary(facts, tuple(needed(judge, Domain(domain.symbols, tuple(domain.axioms)), kept, said)))


def fact_formula(name: str, fact: Fact) -> Formula:
    """Returns a fact about a symbol as a formula."""
    s = sym(name)
    if fact.divisor == 0:
        return eq(s, fact.remainder)
    parts = [between(s, fact.min, fact.max), eq(s % fact.divisor, fact.remainder)]
    if fact.values is not None:
        parts.append(any_of(between(s, a, b) for a, b in fact.values))
    if fact.residues is not None:
        parts.append(_pattern(s, fact.residues))
    if fact.equals is not None:
        parts.append(eq(s, fact.equals))
    return all_of(parts)


def fact_text(name: str, fact: Fact) -> str:
    """`h = 64*_h` (with _h at least 1), `h = 64*_h + 32` (with _h at least 0), `2 <= b <= 64`, `w = h`, `c =
    3`.

    A bound that the first form does not imply is added; the text for an unrestricted symbol is empty.
    """
    if fact.divisor == 0:
        return f"{name} = {fact.remainder}"
    if fact.equals is not None:
        return f"{name} = {_text(fact.equals)}"
    parts = []
    low = fact.min
    if fact.divisor > 1:
        parts.append(f"{name} = {fact.divisor * sym('_' + name) + fact.remainder}")
        if low == (fact.remainder or fact.divisor):
            low = None
    holes = _holes(fact)
    if holes is None and fact.values is not None:
        parts.append(" or ".join(_range_text(name, a, b) for a, b in fact.values))
    elif low is not None or fact.max is not None:
        parts.append(_range_text(name, low, fact.max))
    parts += [f"{name} != {v}" for v in holes or ()]
    if fact.residues is not None:
        parts.append(str(_pattern(sym(name), fact.residues)))
    return ", ".join(parts)


def _pattern(s: Dim, residues: tuple[int, tuple[int, ...]]) -> Formula:
    """Returns the condition that s has one of the residues, or none of the others where those are fewer."""
    modulus, wanted = residues
    left = [r for r in range(modulus) if r not in wanted]
    if len(left) < len(wanted):
        return all_of(ne(s % modulus, r) for r in left)
    return any_of(eq(s % modulus, r) for r in wanted)


def _holes(fact: Fact) -> list[int] | None:
    """Returns the values that are missing between a fact's intervals, if those are at most two; else None."""
    holes: list[int] = []
    for (_, end), (start, _) in pairwise(fact.values or ()):
        assert end is not None and start is not None, "only the outer ends of intervals are open"
        holes += range(end + fact.divisor, start, fact.divisor)
    return holes if len(holes) <= 2 else None


def _text(dim: Dim) -> str:
    """Returns the dim's text with positive terms first: `32 - a`."""
    if isinstance(dim, int) or dim.terms[0][1] > 0:
        return str(dim)
    added = total(Term((term,), dim.modular) if term[0] else term[1] for term in dim.terms if term[1] > 0)
    taken = added - dim
    alone = isinstance(taken, int) or len(taken.terms) == 1
    return str(dim) if added == 0 else f"{added} - {taken if alone else f'({taken})'}"


def _range_text(name: str, low: int | None, high: int | None) -> str:
    if low is not None and low == high:
        return f"{name} = {low}"
    return f"{'' if low is None else f'{low} <= '}{name}{'' if high is None else f' <= {high}'}"
