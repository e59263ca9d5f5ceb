"""Gradual questions to a constraint system: its solutions one by one, their number, and their common type.

A solution gives every size of the inputs, and so every value of the program, a number: a static migration of
the program. Since nothing can be added to a type without Dyn, the static migrations are the maximal ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from ..constraints.ir.language import Dyn, Fact, Tensor, Value
from ..constraints.ir.lattice import DimType, Ranked, Several, Type, rowed
from ..constraints.ir.system import Answer, Domain
from ..constraints.ir.typed import mapped, type_of
from ..constraints.terms.dims import Dim, Term, evaluate, substitute, sym, symbols, total
from ..constraints.terms.formula import Formula, all_of, eq, free_symbols, ge, le, ne
from ..constraints.terms.intervals import interval
from ..constraints.terms.parts import Row, depth, dim_at, rank
from ..constraints.terms.rows import place_of, rank_of, row_of
from .facts.facts import fact
from .tactics.judge import Judge, components
from .theory.periodic import solutions as periodic

MANY = 10_000
"""At most this many solutions are counted one by one."""


class Solutions:
    """The assignments to the symbols that satisfy formulas, in a stable order, computed on demand.

    They come by their sum, those of one sum in lexicographic order: from small to large, and each of them
    after finitely many. `complete` is False where the solver could not decide whether there are more.
    """

    def __init__(self, judge: Judge, names: Sequence[str], formulas: Sequence[Formula]) -> None:
        self.judge, self.names, self.formulas = judge, tuple(names), tuple(formulas)
        self.complete = True

    def __iter__(self) -> Iterator[dict[str, int]]:
        sum_of = total(sym(name) for name in self.names)
        if isinstance(sum_of, int):
            if self._some(()):
                yield {}
            return
        least = self._least(sum_of, ())
        while least is not None:
            yield from self._of((eq(sum_of, least),), {})
            least = self._least(sum_of, (ge(sum_of, least + 1),))

    def _of(self, given: tuple[Formula, ...], chosen: dict[str, int]) -> Iterator[dict[str, int]]:
        """Yields the solutions in lexicographic order: for each value of the next symbol those of the rest.
        """
        if len(chosen) == len(self.names):
            yield chosen
            return
        name = self.names[len(chosen)]
        value = self._least(sym(name), given)
        while value is not None:
            yield from self._of((*given, eq(sym(name), value)), {**chosen, name: value})
            value = self._least(sym(name), (*given, ge(sym(name), value + 1)))

    def _least(self, term: Term, given: tuple[Formula, ...]) -> int | None:
        """Returns the least value of a term, by bisection between its known bounds and the values of
        examples.
        """
        if not self._some(given):
            return None
        best = self._value(term)
        low, _ = interval(term, self.judge.known((*self.formulas, *given)).ranges)
        step = 1
        while low == -inf:
            if self._some((*given, le(term, best - step))):
                best, step = self._value(term), 2 * step
            else:
                low = best - step + 1
        at_least = int(low)
        while at_least < best:
            middle = (at_least + best - 1) // 2
            if self._some((*given, le(term, middle))):
                best = self._value(term)
            else:
                at_least = middle + 1
        return best

    def _value(self, term: Term) -> int:
        return evaluate(term, {**dict.fromkeys(symbols(term), 1), **self.judge.model})

    def _some(self, given: tuple[Formula, ...]) -> bool:
        answer = self.judge.satisfiable((*self.formulas, *given), self.names)
        self.complete = self.complete and answer != "unknown"
        return answer == "sat"


@dataclass(frozen=True, slots=True)
class SolutionCount:
    """The number of solutions, or a lower bound of it where it is not `exact`."""

    number: int | float
    exact: bool = True

    def __str__(self) -> str:
        if self.number == inf:
            return "infinitely many"
        return str(self.number) if self.exact else f"at least {self.number}"


def count(
    judge: Judge, names: Sequence[str], formulas: Sequence[Formula], limit: int = MANY
) -> SolutionCount:
    """Returns how many assignments satisfy the formulas.

    Parts that share no symbol are counted separately.
    """
    if judge.satisfiable(formulas, names) != "sat":
        return SolutionCount(0, judge.satisfiable(formulas, names) == "unsat")
    result = SolutionCount(1)
    parts = components(formulas)
    free = {*names} - frozenset().union(*(free_symbols(f) for part in parts for f in part))
    if free:
        return SolutionCount(inf)
    for part in parts:
        over = tuple(n for n in names if any(n in free_symbols(f) for f in part))
        found = _count(judge, over, part, limit) if over else SolutionCount(1)
        result = SolutionCount(result.number * found.number, result.exact and found.exact)
    return result


def _count(judge: Judge, names: tuple[str, ...], part: tuple[Formula, ...], limit: int) -> SolutionCount:
    facts = [fact(judge, part, sym(name)) for name in names]
    if any(f.max is None or f.min is None for f in facts):
        surely = any(f.exact and (f.max is None or f.min is None) for f in facts)
        return SolutionCount(inf) if surely else SolutionCount(limit, exact=False)
    if len(names) == 1 and (values := periodic(all_of(part), names[0])) is not None:
        members = values.members(limit)
        return SolutionCount(limit, exact=False) if members is None else SolutionCount(len(members))
    found = Solutions(judge, names, part)
    number = sum(1 for _, _ in zip(range(limit), found, strict=False))
    return SolutionCount(number, exact=number < limit and found.complete)


def constant(judge: Judge, formulas: Sequence[Formula], dim: Dim) -> int | None:
    """Returns the value of a dim if the formulas, which are satisfiable, allow just one; else None."""
    if isinstance(dim, int):
        return dim
    if judge.satisfiable(formulas, sorted(symbols(dim))) != "sat":
        return None
    value = evaluate(dim, judge.model)
    return value if judge.ask(ne(dim, value), formulas) is Answer.NEVER else None


def shared(judge: Judge, formulas: Sequence[Formula], type: Type, known: dict[Dim, DimType]) -> Type:
    """Returns the most precise type that a value has in all solutions: sizes that differ among them are Dyn.

    `known` caches the sizes.
    """

    def size(dim: Dim) -> DimType:
        if dim not in known:
            value = constant(judge, formulas, dim) if symbols(dim) <= judged else None
            known[dim] = Dyn if value is None else value
        return known[dim]

    judged = frozenset().union(*map(free_symbols, formulas))
    return mapped(size, type)


def most_ranks(judge: Judge, domain: Domain, formulas: Sequence[Formula]) -> list[int | None]:
    """Returns the largest rank of each row where the formulas hold; None for a row without a bound."""
    return [fact(judge, formulas, rank(row)).max for row in domain.rows]


def spelt(judge: Judge, formulas: Sequence[Formula], domain: Domain, value: Value) -> Type:
    """Returns the type of a value where the formulas hold, with its rows expanded as far as they are known.

    A row whose rank is the same in all solutions has that many dims. Of any other row, those dims are given,
    the last ones first, that it has in every solution.
    """
    if isinstance(value, tuple):
        return Several(tuple(spelt(judge, formulas, domain, part) for part in value))
    if not isinstance(value, Tensor) or (place := place_of(value.shape)) is None:
        return type_of(value)
    row = row_of(value.shape[place]) or ()
    before, after = value.shape[:place], value.shape[place + 1 :]
    dims = rank_of((value.shape[place],))
    if (number := constant(judge, formulas, dims)) is not None:
        return Ranked((*before, *(_dim(domain, row, i, number) for i in range(number)), *after))
    ends = [depth(domain.symbols, part.name) for part in row]
    leading, trailing = min(first for first, _ in ends), min(last for _, last in ends)
    sure = 0
    while sure < leading + trailing and judge.follows(ge(dims, sure + 1), formulas):
        sure += 1
    last = min(max(trailing - max(p.stop for p in row), 0), sure)
    first = 0 if len(row) > 1 else min(max(leading - row[0].start, 0), sure - last)
    lead = [_dim(domain, row, i, None) for i in range(first)]
    trail = [_dim(domain, row, i, None) for i in range(-last, 0)]
    return rowed((*before, *lead), (*trail, *after), len(before) + sure + len(after))


def _dim(domain: Domain, row: Row, index: int, number: int | None) -> DimType:
    """Returns a dim of a row, counted from its start or its end; Dyn where no symbol denotes it."""
    if len(row) > 1:
        return Dyn
    (part,) = row
    from_start = part.start + index if index >= 0 else None
    from_end = index - part.stop if index < 0 else index - number - part.stop if number is not None else None
    for place in (from_start, from_end):
        if place is not None and str(dim_at(part.name, place)) in domain.symbols:
            return dim_at(part.name, place)
    return Dyn


def replacements(facts: Mapping[str, Fact]) -> dict[str, Dim]:
    """Returns the symbols that facts determine: those that have one value, and those that equal a term over
    others.
    """
    fixed: dict[str, Dim] = {name: known.remainder for name, known in facts.items() if known.divisor == 0}
    equal = {name: known.equals for name, known in facts.items() if known.equals is not None}
    return fixed | {name: substitute(term, fixed) for name, term in equal.items() if name not in fixed}
