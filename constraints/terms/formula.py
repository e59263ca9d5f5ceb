"""Formulas over dims: comparisons with zero, joined by *and* and *or*.

Negation is pushed down to the comparisons when a formula is built, so there is no `not` node. `True` and
`False` are Python's own. A comparison is normalised as its term is: `2*h >= 5` and `h >= 3` are one object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import gcd
from typing import Literal, TypeAlias

from .dims import (
    LARGEST_FLOAT,
    Apply,
    Dim,
    Mono,
    Term,
    constant_part,
    divide,
    evaluate,
    least_rounded,
    lone,
    plain_text,
    products,
    substitute,
    sum_text,
    symbols,
)

Operator: TypeAlias = Literal["==", "!=", ">="]
Formula: TypeAlias = "bool | Compare | And | Or"


class _Hashed:
    """Base of formulas, which compute their hash once: they are looked up far more often than they are built,
    and may be long.
    """

    __slots__ = ("_hash",)
    _hash: int

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            parts = tuple(getattr(self, name) for name in self.__match_args__)  # type: ignore[attr-defined]
            object.__setattr__(self, "_hash", hash(parts))
            return self._hash


@dataclass(frozen=True, slots=True)
class Compare(_Hashed):
    """`term op 0`."""

    op: Operator
    term: Term
    __hash__ = _Hashed.__hash__

    def __str__(self) -> str:
        """Returns the shorter text of two: with all of the term on one side factored, or each side alone."""
        together = _said(self.op, *_factored_sides(self.term))
        apart = plain_comparison(self, str)
        return together if len(together) < len(apart) else apart


@dataclass(frozen=True, slots=True)
class And(_Hashed):
    """Every part holds. Parts are judged from left to right, so an early one may guard a division in a later
    one.
    """

    parts: tuple[Formula, ...]
    __hash__ = _Hashed.__hash__

    def __str__(self) -> str:
        return _joined_text(self, str)


@dataclass(frozen=True, slots=True)
class Or(_Hashed):
    """At least one part holds."""

    parts: tuple[Formula, ...]
    __hash__ = _Hashed.__hash__

    def __str__(self) -> str:
        return _joined_text(self, str)


def plain_comparison(compare: Compare, text: Callable[[Dim], str] = plain_text) -> str:
    """Returns the comparison of the positive summands with the negative ones, as one of `left < right`."""
    left, right = sides(compare.term)
    known = isinstance(left, int) or isinstance(right, int)
    if compare.op == ">=" and not known and constant_part(right) == 1:
        return f"{text(right - 1)} < {text(left)}"
    return _said(compare.op, text(left), text(right))


def _said(op: Operator, left: str, right: str) -> str:
    return f"{right} <= {left}" if op == ">=" else f"{left} {op} {right}"


def _factored_sides(term: Term) -> tuple[str, str]:
    summands = products(term)
    left = [product for product in summands if not product.negative]
    right = [product._replace(negative=False) for product in summands if product.negative]
    return sum_text(left), sum_text(right)


def plain_formula(formula: Formula) -> str:
    """Returns the formula in Python's operators on integers and the functions of the language."""
    match formula:
        case Compare():
            return plain_comparison(formula)
        case And() | Or():
            return _joined_text(formula, plain_formula)
    return str(formula)


def _joined_text(formula: And | Or, text: Callable[[Formula], str]) -> str:
    """Returns the texts of the parts, with parentheses around a part that is joined by the other word."""
    word, other = (" and ", Or) if isinstance(formula, And) else (" or ", And)
    return word.join(f"({text(p)})" if isinstance(p, other) else text(p) for p in formula.parts)


def sides(term: Term) -> tuple[Dim, Dim]:
    """`(left, right)` with `term == left - right` and every coefficient in both positive."""
    positive = tuple((mono, c) for mono, c in term.terms if c > 0)
    negative = tuple((mono, -c) for mono, c in term.terms if c < 0)
    return _sum(positive, term.modular), _sum(negative, term.modular)


def _sum(terms: tuple[tuple[Mono, int], ...], modular: bool) -> Dim:
    if not terms:
        return 0
    return terms[0][1] if terms[0][0] == () else Term(terms, modular)


def compare(op: Operator, term: Dim) -> Formula:
    """`term op 0`, divided by the gcd g of its coefficients.

    With term = g*t + c: `== 0` needs g | c, else it is false; `>= 0` is t + floor(c/g) >= 0, since t is an
    integer. Of a remainder r = p % k with k > 0, `r <= 0` says `r == 0`, and `r >= 1` says `r != 0`.
    """
    if isinstance(term, int):
        return term == 0 if op == "==" else term >= 0 if op == ">=" else term != 0
    constant = sum(c for mono, c in term.terms if not mono)
    divisor = gcd(*(c for mono, c in term.terms if mono))
    if op == ">=":
        reduced = term if divisor == 1 else (term - constant) // divisor + constant // divisor
    elif constant % divisor:
        return op == "!="
    else:
        divisor = -divisor if term.terms[0][1] < 0 else divisor
        reduced = term if divisor == 1 else term // divisor
    if isinstance(reduced, int):  # it is one wherever it is, which only the division has shown
        return compare(op, reduced)
    if op == ">=":
        return _of_remainder(reduced) or _of_float(reduced) or Compare(op, reduced)
    return Compare(op, _remainder_form(reduced))


def _of_remainder(term: Term) -> Compare | None:
    """Returns the shorter form of `term >= 0` for a remainder r, which is at least 0: `r == 0` for the term
    -r, `r != 0` for r - 1. None for other terms.
    """
    (mono, coefficient), *rest = term.terms
    if len(mono) == 1 and isinstance(atom := mono[0], Apply) and atom.op == "%":
        divisor = atom.args[1]
        remainder = Term(((mono, 1),), term.modular)
        if isinstance(divisor, int) and divisor > 0:
            if coefficient == -1 and not rest:
                return Compare("==", remainder)
            if coefficient == 1 and rest == [((), -1)]:
                return Compare("!=", remainder)
    return None


def _of_float(term: Term) -> Formula | None:
    """Returns `p >= c` for `term >= 0`, where a float rounded(p, d) is compared with a number, and c is the
    least integer that is rounded to it or more. None for other terms.
    """
    match term.terms:
        case (((Apply(op="rounded", args=(p, int(digits))),), 1 | -1 as sign), *rest) if all(
            not mono for mono, _ in rest
        ):
            bound = -sum(c for _, c in rest)
            if abs(bound) < LARGEST_FLOAT:
                return compare(">=", sign * p - least_rounded(bound, digits))
    return None


def _remainder_form(term: Term) -> Term:
    """Returns `p % q` for `q*(p//q) - p`: the two are zero at the same values, and the first is shorter."""
    for atom in dict.fromkeys(atom for mono, _ in term.terms for atom in mono):
        if isinstance(atom, Apply) and atom.op == "//":
            dividend, divisor = atom.args
            missing = divisor * lone(atom) - dividend
            whole, rest = divide(term, missing)
            if rest == 0 and isinstance(whole, int):
                remainder = dividend % divisor
                return remainder if isinstance(remainder, Term) else term
    return term


def eq(a: Dim, b: Dim) -> Formula:
    """a == b."""
    return True if a is b else compare("==", a - b)


def ne(a: Dim, b: Dim) -> Formula:
    """a != b."""
    return False if a is b else compare("!=", a - b)


def ge(a: Dim, b: Dim) -> Formula:
    """a >= b."""
    return compare(">=", a - b)


def le(a: Dim, b: Dim) -> Formula:
    """a <= b."""
    return compare(">=", b - a)


def gt(a: Dim, b: Dim) -> Formula:
    """a > b, which over the integers is a - b - 1 >= 0."""
    return compare(">=", a - b - 1)


def lt(a: Dim, b: Dim) -> Formula:
    """a < b, which over the integers is b - a - 1 >= 0."""
    return compare(">=", b - a - 1)


def divides(k: Dim, a: Dim) -> Formula:
    """k divides a; the caller sees to k != 0."""
    return eq(a % k, 0)


def all_of(formulas: Iterable[Formula]) -> Formula:
    """The conjunction, flattened, without repetitions, in the order given."""
    return _flattened(formulas, And, False)


def any_of(formulas: Iterable[Formula]) -> Formula:
    """The disjunction, flattened, without repetitions, in the order given."""
    return _flattened(formulas, Or, True)


def _flattened(formulas: Iterable[Formula], kind: type[And] | type[Or], absorbing: bool) -> Formula:
    parts: dict[Formula, None] = {}
    neutral = not absorbing
    for formula in formulas:
        if formula is absorbing:
            return absorbing
        if isinstance(formula, kind):
            parts.update(dict.fromkeys(formula.parts))
        elif formula is not neutral:
            parts[formula] = None
    return kind(tuple(parts)) if len(parts) > 1 else next(iter(parts), neutral)


def negate(formula: Formula) -> Formula:
    """Returns the negation, pushed down to the comparisons by De Morgan's laws."""
    match formula:
        case bool():
            return not formula
        case Compare("==", term):
            return Compare("!=", term)
        case Compare("!=", term):
            return Compare("==", term)
        case Compare(_, term):
            return compare(">=", -term - 1)
        case And(parts):
            return any_of(map(negate, parts))
        case Or(parts):
            return all_of(map(negate, parts))


def implies(premise: Formula, conclusion: Formula) -> Formula:
    """premise => conclusion."""
    if premise is True:
        return conclusion
    if premise is False or conclusion is True:
        return True
    return any_of((negate(premise), conclusion))


def comparisons(formula: Formula) -> Iterator[Compare]:
    """Every comparison in the formula, from left to right."""
    if isinstance(formula, Compare):
        yield formula
    elif isinstance(formula, And | Or):
        for part in formula.parts:
            yield from comparisons(part)


def conjuncts(formula: Formula) -> tuple[Formula, ...]:
    """The parts of a conjunction, or the formula itself."""
    return formula.parts if isinstance(formula, And) else () if formula is True else (formula,)


def disjuncts(formula: Formula) -> tuple[Formula, ...]:
    """The parts of a disjunction, or the formula itself."""
    return formula.parts if isinstance(formula, Or) else (formula,)


def free_symbols(formula: Formula) -> frozenset[str]:
    """The names of the symbols in the formula."""
    return frozenset().union(*(symbols(c.term) for c in comparisons(formula)))


def holds(formula: Formula, values: Mapping[str, int]) -> bool:
    """The truth of the formula at an assignment.

    Raises ZeroDivisionError where a division by zero is not guarded by an earlier part, UnknownSymbol where a
    value is missing.
    """
    match formula:
        case bool():
            return formula
        case Compare(op, term):
            value = evaluate(term, values)
            return value == 0 if op == "==" else value != 0 if op == "!=" else value >= 0
        case And(parts):
            return all(holds(p, values) for p in parts)
        case Or(parts):
            return any(holds(p, values) for p in parts)


def rewrite(formula: Formula, replacements: Mapping[str, Dim]) -> Formula:
    """The formula with symbols replaced by dims, normalised again."""
    match formula:
        case bool():
            return formula
        case Compare(op, term):
            changed = substitute(term, replacements)
            return formula if changed is term else compare(op, changed)
        case And(parts):
            return all_of(rewrite(p, replacements) for p in parts)
        case Or(parts):
            return any_of(rewrite(p, replacements) for p in parts)
