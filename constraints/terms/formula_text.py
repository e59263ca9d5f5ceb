"""Text to formulas, by a grammar of our own: text is never evaluated.

    formula    = both ("or" both)*
    both       = negated ("and" negated)*
    negated    = "not" negated | "True" | "False" | comparison | "(" formula ")"
    comparison = dim (("==" | "!=" | "<" | "<=" | ">" | ">=") dim)+

Precedence is Python's, and so is a chain: `1 <= h <= w` is `1 <= h and h <= w`. A comparison that divides
by a symbol says as well that the divisor is not zero. `parse_formula(str(formula)) == formula`, such guards
aside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final

from .dims import MOST_EXPONENT, Apply, Dim, applications
from .formula import Formula, all_of, any_of, eq, ge, gt, le, lt, ne, negate
from .syntax import DimSyntaxError, Tokens, parse_expression

COMPARISONS: Final[Mapping[str, Callable[[Dim, Dim], Formula]]] = {
    "==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge,
}


MOST_SHOWN: Final = 120
"""A formula of more characters is left out of a message."""


def stated(formula: Formula, text: str, otherwise: str) -> str:
    """Returns the text with the formula in place of `{}`, or the other text if the formula is long."""
    shown = str(formula)
    return text.format(shown) if len(shown) <= MOST_SHOWN else otherwise


def parse_formula(text: str) -> Formula:
    """Returns the formula that a text denotes. Raises DimSyntaxError."""
    tokens = Tokens(text)
    formula = parse_condition(tokens)
    tokens.expect_end()
    return formula


def parse_condition(tokens: Tokens) -> Formula:
    """Returns the formula at the position, reading as far as it goes."""
    return _either(tokens, True)


def defined(dim: Dim) -> Formula:
    """Returns the condition that the dim has a value: no divisor in it is zero, and all exponents are from 0
    to MOST_EXPONENT.

    Divisors inside divisors come first.
    """
    return all_of(part for atom in applications(dim) for part in _needs(atom))


def _needs(atom: Apply) -> tuple[Formula, ...]:
    match atom:
        case Apply(op="//" | "%", args=(_, divisor)):
            return (ne(divisor, 0),)
        case Apply(op="**", args=(_, exponent)):
            return ge(exponent, 0), le(exponent, MOST_EXPONENT)
    return ()


# `positive` is False under an odd number of negations. They are pushed down while reading, so that the guards
# of a division are never negated: `not 8 % k == 0` is `k != 0 and 8 % k != 0`.


def _either(tokens: Tokens, positive: bool) -> Formula:
    with tokens.nested():
        parts = [_both(tokens, positive)]
        while tokens.accept("or"):
            parts.append(_both(tokens, positive))
    return any_of(parts) if positive else all_of(parts)


def _both(tokens: Tokens, positive: bool) -> Formula:
    parts = [_negated(tokens, positive)]
    while tokens.accept("and"):
        parts.append(_negated(tokens, positive))
    return all_of(parts) if positive else any_of(parts)


def _negated(tokens: Tokens, positive: bool) -> Formula:
    while tokens.accept("not"):
        positive = not positive
    if word := tokens.accept("True", "False"):
        return (word.text == "True") == positive
    if not tokens.at("("):
        return _comparison(tokens, positive)
    start = tokens.position
    try:  # `(h + 1) * 2 == w`
        return _comparison(tokens, positive)
    except DimSyntaxError as as_comparison:
        tokens.rewind(start)
        try:  # `(h == 1 or w == 1)`
            tokens.next()
            formula = _either(tokens, positive)
            tokens.expect(")")
            return formula
        except DimSyntaxError as as_formula:
            raise max(as_comparison, as_formula, key=lambda error: error.column) from None


def _comparison(tokens: Tokens, positive: bool) -> Formula:
    dims = [parse_expression(tokens)]
    links: list[Formula] = []
    while operator := tokens.accept(*COMPARISONS):
        dims.append(parse_expression(tokens))
        link = COMPARISONS[operator.text](*dims[-2:])
        links.append(link if positive else negate(link))
    if not links:
        if tokens.at("="):
            raise tokens.error("expected '==', got '='")
        raise tokens.expected("a comparison such as '==' or '<='")
    pairs = zip(pairwise(dims), links, strict=True)
    guarded = [all_of((defined(a), defined(b), link)) for (a, b), link in pairs]
    return all_of(guarded) if positive else any_of(guarded)
