"""Text to dims, by a grammar of our own: text is never evaluated.

    dim     = product (("+" | "-") product)*
    product = unary (("*" | "//" | "%") unary)*
    unary   = "-"* power
    power   = atom ["**" unary]                       the exponent is an integer from 0 to 256, or, of an
                                                      integer from 2 to 1024, any dim
    atom    = integer | name | row | ("min" | "max") "(" dim ("," dim)* ")" | "isqrt" "(" dim ")"
            | "rounded" "(" dim "," integer ")"
            | "ceil" "(" product "/" unary ")"         the quotient, rounded up
            | "(" dim ")"
    row     = name "[" integer "]" | "rank" "(" name ")" | "numel" "(" name [slice] ")"
            | name slice ("|" name slice)*            what is said of rows, see rows.py
            | ("broadcast" | "equal" | "expands" | "within") "(" name [slice] ("," name [slice])+ ")"
    slice   = "[" [integer] ":" [integer] "]"

Precedence is Python's. `Tokens` and `parse_expression` serve the larger grammars of formulas and input specs,
too. Length, depth and the size of the result are bounded, so that hostile text ends in a `DimSyntaxError` at
once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from .dims import (
    BUILD,
    KEYWORDS,
    MOST_BASE,
    Dim,
    Term,
    ceildiv,
    coefficients,
    depth,
    exponential,
    floordiv,
    modulo,
    multiply,
    sym,
    total,
)

MAX_LENGTH: Final = 20_000
MAX_DEPTH: Final = 80
MAX_DIGITS: Final = 400
MAX_BITS: Final = 1024  # 309 digits: whatever is built from this can be read again
MAX_EXPONENT: Final = 256
MAX_DEGREE: Final = 256
MAX_MONOMIALS: Final = 4096
MAX_TEXT: Final = 100_000

_UNREADABLE = re.compile(r"(?<![A-Za-z0-9_])[0-9]{320}|…")
"""Long numbers, and abbreviated texts."""
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<float> [0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)? | [0-9]+[eE][+-]?[0-9]+ )
    | (?P<int>   [0-9]+ )
    | (?P<name>  [A-Za-z_][A-Za-z0-9_]* )
    | (?P<string> "[^"\n]*" | '[^'\n]*' )
    | (?P<op>    \.\.\. | \*\* | // | <= | >= | == | != | -> | [-+*%()\[\]{},:;=<>.?|&@/] )
    )""",
    re.VERBOSE,
)


class DimSyntaxError(ValueError):
    """Raised for a text that the grammar refuses; says where, and what was expected there."""

    def __init__(self, text: str, column: int, problem: str) -> None:
        self.text = text
        self.column = column
        self.problem = problem
        super().__init__(f"{problem} at column {column} of {_shortened(text, column)!r}")

    def __reduce__(self) -> tuple[object, ...]:
        return DimSyntaxError, (self.text, self.column, self.problem)


def _shortened(text: str, column: int) -> str:
    """Returns at most some 60 characters around the column."""
    start, end = max(0, column - 31), column + 29
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")


@dataclass(frozen=True, slots=True)
class Token:
    """`kind` is float, int, name, string, op or end; `column` counts from 1."""

    kind: str
    text: str
    column: int

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else repr(self.text)


class Tokens:
    """The tokens of a text and a position among them."""

    def __init__(self, text: str) -> None:
        self.source = text
        if len(text) > MAX_LENGTH:
            raise self.error(f"expected at most {MAX_LENGTH} characters, got {len(text)}", MAX_LENGTH + 1)
        self._tokens = [*self._split(text)]
        self._at = 0
        self._depth = 0

    def _split(self, text: str) -> Iterator[Token]:
        at = 0
        while match := _TOKEN.match(text, at):
            kind = match.lastgroup
            assert kind is not None
            yield Token(kind, match[kind], match.start(kind) + 1)
            at = match.end()
        rest = text[at:].lstrip()
        column = len(text) - len(rest) + 1
        if rest:
            raise self.error(f"expected a name, a number or an operator, got {rest[0]!r}", column)
        yield Token("end", "", column)

    @property
    def position(self) -> int:
        """Returns the position of the next token, for `rewind`."""
        return self._at

    def rewind(self, position: int) -> None:
        """Goes back to a `position` seen earlier, to try another reading."""
        self._at = position

    def peek(self, ahead: int = 0) -> Token:
        """The token that `next` would return, or one further on."""
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def next(self) -> Token:
        """Returns the next token and consumes it; the end token stays."""
        token = self.peek()
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def at(self, *texts: str) -> bool:
        """Whether the next token is one of these operators or words."""
        token = self.peek()
        return token.kind in ("op", "name") and token.text in texts

    def accept(self, *texts: str) -> Token | None:
        """Returns the next token and consumes it, if it is one of these operators or words; else None."""
        return self.next() if self.at(*texts) else None

    def expect(self, *texts: str) -> Token:
        """Consumes and returns the next token, which must be one of these operators or words."""
        if not self.at(*texts):
            raise self.expected(" or ".join(map(repr, texts)))
        return self.next()

    def expect_kind(self, kind: str, description: str) -> Token:
        """Consumes and returns the next token, which must be of this kind."""
        if self.peek().kind != kind:
            raise self.expected(description)
        return self.next()

    def expect_end(self) -> None:
        """Raises an error unless the text ends here."""
        if self.peek().kind != "end":
            raise self.expected("an operator or the end")

    def expected(self, description: str) -> DimSyntaxError:
        """Returns the error that says what was expected in place of the next token."""
        return self.error(f"expected {description}, got {self.peek()}")

    def error(self, problem: str, column: int | None = None) -> DimSyntaxError:
        """Returns an error at a column, by default that of the next token."""
        return DimSyntaxError(self.source, self.peek().column if column is None else column, problem)

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Enters one more level of nesting; beyond MAX_DEPTH the text is refused."""
        if self._depth >= MAX_DEPTH:
            raise self.error(f"expected at most {MAX_DEPTH} levels of nesting")
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1


def parse_dim(text: str) -> Dim:
    """Returns the dim that a text denotes; `parse_dim(str(dim)) == dim`."""
    tokens = Tokens(text)
    dim = parse_expression(tokens)
    tokens.expect_end()
    return dim


def parse_expression(tokens: Tokens) -> Dim:
    """Returns the dim at the position, reading as far as it goes."""
    with tokens.nested():
        parts = [_product(tokens)]
        while sign := tokens.accept("+", "-"):
            part = _product(tokens)
            parts.append(part if sign.text == "+" else -part)
        return total(parts)


def _product(tokens: Tokens) -> Dim:
    left = _unary(tokens)
    while operator := tokens.accept("*", "//", "%"):
        left = _PRODUCTS[operator.text](tokens, operator, left, _unary(tokens))
    return left


def _unary(tokens: Tokens) -> Dim:
    negative = False
    while tokens.accept("-"):
        negative = not negative
    dim = _power(tokens)
    return -dim if negative else dim


def _power(tokens: Tokens) -> Dim:
    base = _atom(tokens)
    operator = tokens.accept("**")
    if operator is None:
        return base
    column = tokens.peek().column
    with tokens.nested():
        exponent = _unary(tokens)
    if isinstance(exponent, Term) and isinstance(base, int) and 2 <= base <= MOST_BASE:
        return _applied(tokens, operator, exponential, base, exponent)
    if isinstance(exponent, Term) or not 0 <= exponent <= MAX_EXPONENT:
        raise tokens.error(f"expected an exponent from 0 to {MAX_EXPONENT}", column)
    result: Dim = 1
    for _ in range(exponent):
        result = _times(tokens, operator, result, base)
    return result


def _atom(tokens: Tokens) -> Dim:
    token = tokens.peek()
    if token.kind == "int":
        if len(token.text) > MAX_DIGITS:
            raise tokens.error(f"expected at most {MAX_DIGITS} digits, got {len(token.text)}")
        return int(tokens.next().text)
    if token.kind == "name" and token.text not in KEYWORDS:
        tokens.next()
        if token.text == "ceil" and tokens.at("("):
            return _quotient_rounded_up(tokens, token)
        if token.text in _FUNCTIONS and tokens.at("("):
            args = _arguments(tokens)
            if token.text == "isqrt" and len(args) != 1:
                raise tokens.error("expected one argument of isqrt", token.column)
            if token.text == "rounded" and not (len(args) == 2 and args[1] in range(1, MAX_BITS)):
                raise tokens.error("expected a dim and a number of digits in rounded", token.column)
            return _applied(tokens, token, _FUNCTIONS[token.text], *args)
        of_row = tokens.at("[") or (tokens.at("(") and token.text in _OF_ROWS)
        return _of_row(tokens, token) if of_row else sym(token.text)
    if tokens.accept("("):
        inner = parse_expression(tokens)
        tokens.expect(")")
        return inner
    raise tokens.expected("a name, an integer, '-' or '('")


def _quotient_rounded_up(tokens: Tokens, token: Token) -> Dim:
    tokens.expect("(")
    with tokens.nested():
        dividend = _product(tokens)
        tokens.expect("/")
        divisor = _unary(tokens)
    tokens.expect(")")
    return _divided(ceildiv)(tokens, token, dividend, divisor)


def _of_row(tokens: Tokens, first: Token) -> Dim:
    """Returns a symbol about a row, read on from the name that it begins with."""
    text, closing = first.text, "]" if tokens.at("[") else ")"
    while True:
        token = tokens.next()
        text += token.text
        if token.text == closing and not tokens.at("|"):
            break
        if token.kind == "end" or (token.kind == "int" and len(token.text) > 4):
            raise tokens.expected(repr(closing))
    try:
        return sym(text)
    except ValueError:
        problem = f"expected a dim of a row (x[-1]), rank(x) or numel(x), got {text[:40]!r}"
        raise tokens.error(problem, first.column) from None


def _arguments(tokens: Tokens) -> list[Dim]:
    tokens.expect("(")
    args = [parse_expression(tokens)]
    while tokens.accept(","):
        args.append(parse_expression(tokens))
    tokens.expect(")")
    return args


def _times(tokens: Tokens, operator: Token, left: Dim, right: Dim) -> Dim:
    """Returns left * right, refused where it would be large: n·m monomials, sums of degrees and of sizes."""
    a, b = coefficients(left), coefficients(right)
    if a and b:
        degree = len(a[0][0]) + len(b[0][0])
        bits = max(c.bit_length() for _, c in a) + max(c.bit_length() for _, c in b)
        if len(a) * len(b) > MAX_MONOMIALS or degree > MAX_DEGREE or bits > MAX_BITS:
            raise tokens.error("expected a product of moderate size", operator.column)
    return multiply(left, right)


def _applied(tokens: Tokens, operator: Token, function: Callable[..., Dim], *args: Dim) -> Dim:
    """Returns function(*args), refused where the result would be deep or its text long.

    A power of a sum repeats the text of its atoms, so that nesting these would be exponential; nested
    divisions by integers multiply the divisors.
    """
    if all(depth(arg) < MAX_DEPTH // 2 for arg in args) and sum(map(_text_size, args)) <= MAX_TEXT:
        result = function(*args)
        if not _UNREADABLE.search(str(result)):
            return result
    raise tokens.error(f"expected operands of {operator.text!r} of moderate size", operator.column)


def _text_size(dim: Dim) -> int:
    return sum(1 + sum(len(atom.text) for atom in set(mono)) for mono, _ in coefficients(dim))


def _divided(function: Callable[[Dim, Dim], Dim]) -> Callable[[Tokens, Token, Dim, Dim], Dim]:
    def build(tokens: Tokens, operator: Token, left: Dim, right: Dim) -> Dim:
        if right == 0:
            raise tokens.error("expected a divisor other than zero", operator.column)
        return _applied(tokens, operator, function, left, right)

    return build


_PRODUCTS: Final[Mapping[str, Callable[[Tokens, Token, Dim, Dim], Dim]]] = {
    "*": _times, "//": _divided(floordiv), "%": _divided(modulo),
}
_OF_ROWS: Final = ("rank", "numel", "broadcast", "equal", "expands", "within")
_FUNCTIONS: Final[Mapping[str, Callable[..., Dim]]] = {
    name: BUILD[name] for name in ("min", "max", "isqrt", "rounded")
}
