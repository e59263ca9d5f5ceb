"""Expressions over sizes as torch writes them, as dims and formulas: text is never evaluated.

An exported program has two kinds. Sizes are in sympy's constructor notation, `Add(Symbol('s0', integer=True),
Integer(1))`; guards are Python, `L['x'].size()[0] % 2 == 0`. Both are translated to the notation of dims and
read again by its grammar, whose bounds on length, depth and growth hold for hostile text, too.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import inf, isfinite
from typing import Final, TypeAlias, TypeVar

from ...constraints.terms.dims import Dim
from ...constraints.terms.formula import Formula
from ...constraints.terms.formula_text import parse_formula
from ...constraints.terms.intervals import Ranges, interval
from ...constraints.terms.syntax import DimSyntaxError, parse_dim

MAX_LENGTH: Final = 100_000
MAX_DEPTH: Final = 150


class NotRead(ValueError):
    """Raised for an expression without an exact counterpart among dims and formulas, or a text that is no
    expression.
    """


@dataclass(frozen=True, slots=True)
class TrueDivision:
    """A true division, which is no dim; rounding turns it into one."""

    over: str
    under: str


@dataclass(frozen=True, slots=True)
class SquareRoot:
    """A square root, which is no dim; rounding turns it into one."""

    of: str


_T = TypeVar("_T")
Text: TypeAlias = "str | TrueDivision | SquareRoot"
"""A translated expression."""


# ---- what both notations share


def _infix(symbol: str) -> Callable[..., str]:
    return lambda *args: f"({f' {symbol} '.join(map(_whole, args))})"


def _pair(symbol: str) -> Callable[..., str]:
    return lambda left, right: f"({_whole(left)} {symbol} {_whole(right)})"


def _call(name: str) -> Callable[..., str]:
    return lambda *args: f"{name}({', '.join(map(_whole, args))})"


def _whole(text: Text) -> str:
    if isinstance(text, TrueDivision):
        raise NotRead("a fraction of sizes is not a size")
    if isinstance(text, SquareRoot):
        raise NotRead("a root of sizes is not a size")
    return text


def _product(*factors: Text) -> Text:
    """Returns the product; fractions multiply as fractions, integers among themselves."""
    if not any(isinstance(factor, TrueDivision) for factor in factors):
        return _infix("*")(*factors)
    parts = [f if isinstance(f, TrueDivision) else TrueDivision(_whole(f), "1") for f in factors]
    return TrueDivision(_infix("*")(*(p.over for p in parts)), _infix("*")(*(p.under for p in parts)))


def _decimal(number: float) -> TrueDivision:
    """Returns a float as an exact fraction, if sizes below 2**32 times it are exact."""
    over, under = number.as_integer_ratio() if isfinite(number) else (0, inf)
    if abs(over) > 1 << 20 or under > 1 << 20:
        raise NotRead(f"{number} is a float, and its products with sizes are rounded")
    return TrueDivision(f"({over})", f"({under})")


def _ratio(over: Text, under: Text) -> TrueDivision:
    """Returns the quotient: (a / 2**j) / (b / 2**k) is a*2**k / (b*2**j), as division by a power of two
    rounds nothing.
    """
    (a, i), (b, k) = map(_scaled, (over, under))
    return TrueDivision(a if k == "(1)" else f"({a} * {k})", b if i == "(1)" else f"({b} * {i})")


def _scaled(value: Text) -> tuple[str, str]:
    """Returns an expression as an integer one and the power of two that divides it."""
    if not isinstance(value, TrueDivision):
        return _whole(value), "(1)"
    under = _parsed(parse_dim, value.under)
    if not isinstance(under, int) or under < 1 or under & (under - 1):
        raise NotRead("a fraction of fractions is rounded twice")
    return value.over, f"({under})"


def _compared(one: Text, operator: str, other: Text) -> str:
    """Returns the comparison: a / 2**j < b / 2**k is a*2**k < b*2**j, as division by a power of two rounds
    nothing.

    a / b < n is a < n*b where b is positive: a fraction other than n is not rounded to n as long as n*b is
    below 2**53, so for an n up to 2**10.
    """
    if not isinstance(one, TrueDivision) and not isinstance(other, TrueDivision):
        return f"{_whole(one)} {operator} {_whole(other)}"
    if isinstance(one, TrueDivision) and (number := _small(other)) is not None:
        return _multiplied(one, operator, number)
    if isinstance(other, TrueDivision) and (number := _small(one)) is not None:
        return _multiplied(other, _TURNED[operator], number)
    (a, i), (b, k) = map(_scaled, (one, other))
    return f"{a} * {k} {operator} {b} * {i}"


def _small(value: Text) -> int | None:
    """Returns the integer, if the text is a small one; else None."""
    over, under = (value.over, value.under) if isinstance(value, TrueDivision) else (_whole(value), "(1)")
    number = re.fullmatch(r"\((-?\d{1,4})\)", over)
    return int(number[1]) if number and under == "(1)" and abs(int(number[1])) <= 1 << 10 else None


def _multiplied(fraction: TrueDivision, operator: str, number: int) -> str:
    """Returns `fraction operator number` without a fraction; multiplying by a negative number reverses the
    comparison.
    """
    over, under = fraction.over, fraction.under
    positive, negative = (f"{over} {side} {number}*{under}" for side in (operator, _TURNED[operator]))
    return f"({under} > 0 and {positive} or {under} < 0 and {negative})"


_TURNED: Final = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "==": "==", "!=": "!="}
"""Comparisons with their sides swapped."""


def _floor(value: Text) -> str:
    if isinstance(value, SquareRoot):
        return f"isqrt({value.of})"
    return f"({value.over} // {value.under})" if isinstance(value, TrueDivision) else value


def _ceil(value: Text) -> str:
    return f"(-((-{value.over}) // {value.under}))" if isinstance(value, TrueDivision) else _whole(value)


def _round(value: Text) -> str:
    """Returns the nearest integer, the even one of two: q = (2a + b)//2b, less 1 where it is odd and 2b | 2a
    + b.
    """
    if not isinstance(value, TrueDivision):
        return _whole(value)
    doubled, under = f"(2*{value.over} + {value.under})", f"(2*{value.under})"
    nearest = f"({doubled} // {under})"
    return f"({nearest} - ({nearest} % 2)*(1 - min(1, {doubled} % {under})))"


def _power(base: Text, exponent: Text) -> Text:
    """Returns the power; `n**0.5` is a root."""
    return SquareRoot(_whole(base)) if exponent == _decimal(0.5) else _pair("**")(base, exponent)


def _truncate(value: Text, ranges: Ranges) -> str:
    """Returns the value rounded towards zero, which is rounding down where neither side is negative."""
    if isinstance(value, TrueDivision):
        sides = (_parsed(parse_dim, value.over), _parsed(parse_dim, value.under))
        if any(interval(side, ranges)[0] < 0 for side in sides):
            raise NotRead("a quotient that may be negative is rounded towards zero")
    return _floor(value)


def _parsed(parse: Callable[[str], _T], text: str) -> _T:
    try:
        return parse(text)
    except DimSyntaxError as error:
        raise NotRead(str(error)) from None


# ---- sympy's constructors

_CONSTRUCTORS: Final[Mapping[str, Callable[..., Text]]] = {
    "Add": _infix("+"),
    "Mul": _product,
    "Pow": _pair("**"),
    "PowByNatural": _pair("**"),
    "FloatPow": _power,
    "OpaqueUnaryFn_sqrt": lambda part: SquareRoot(_whole(part)),
    "FloorDiv": _pair("//"),
    "CleanDiv": _pair("//"),
    "Mod": _pair("%"),
    "PythonMod": _pair("%"),
    "IntTrueDiv": _ratio,
    "FloatTrueDiv": _ratio,
    "FloorToInt": _floor,
    "CeilToInt": _ceil,
    "RoundToInt": _round,
    "Min": _call("min"),
    "Max": _call("max"),
    "Identity": _whole,
    "ToFloat": _whole,
    "Equality": _pair("=="),
    "Unequality": _pair("!="),
    "GreaterThan": _pair(">="),
    "LessThan": _pair("<="),
    "StrictGreaterThan": _pair(">"),
    "StrictLessThan": _pair("<"),
    "And": _infix("and"),
    "Or": _infix("or"),
    "Not": lambda part: f"(not {_whole(part)})",
}
_SREPR = re.compile(
    r"\s*(?:(?P<name>[A-Za-z_]\w*)|(?P<int>-?\d+)|(?P<string>'[A-Za-z_]\w*')|(?P<decimal>'-?\d{1,20}\.\d{1,20}')"
    r"|(?P<op>[(),=]))"
)


class _Srepr:
    """Reads one text in sympy's constructor notation."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_LENGTH:
            raise NotRead(f"an expression of {len(text)} characters")
        self.ranges: dict[str, tuple[int | float, int | float]] = {}
        """The ranges of symbols that the text declares, such as `positive=True`."""
        self._tokens: list[tuple[str, str]] = []
        at = 0
        while match := _SREPR.match(text, at):
            self._tokens.append((str(match.lastgroup), match[str(match.lastgroup)]))
            at = match.end()
        if text[at:].strip():
            raise NotRead(f"not an expression of sympy: {text[at : at + 30]!r}")
        self._tokens.append(("end", ""))
        self._at = 0
        self._depth = 0

    def read(self) -> str:
        text = _whole(self._expression())
        self._expect("")
        return text

    def _next(self) -> tuple[str, str]:
        token = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _expect(self, text: str) -> None:
        if (found := self._next()[1]) != text:
            raise NotRead(f"{text or 'the end'!r} was expected, not {found!r}")

    def _expression(self) -> Text:
        kind, name = self._next()
        if kind != "name":
            raise NotRead(f"the name of a constructor was expected, not {name!r}")
        if name in ("true", "false"):
            return name.capitalize()
        self._expect("(")
        if name == "Integer":
            value = self._literal("int")
            self._expect(")")
            return f"({value})"
        if name == "Symbol":
            return self._symbol()
        if name == "Float":
            return self._float()
        build = self._truncate if name == "TruncToInt" else _CONSTRUCTORS.get(name)
        if build is None:
            raise NotRead(f"{name} cannot be written as a dim")
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise NotRead(f"more than {MAX_DEPTH} levels of nesting")
        args = [self._expression()]
        while (token := self._next()[1]) == ",":
            args.append(self._expression())
        if token != ")":
            raise NotRead(f"')' was expected, not {token!r}")
        self._depth -= 1
        try:
            return build(*args)
        except TypeError:
            raise NotRead(f"{name} of {len(args)} arguments") from None

    def _truncate(self, value: Text) -> str:
        return _truncate(value, self.ranges)

    def _float(self) -> TrueDivision:
        """Reads `'0.5', precision=53)`."""
        number = float(self._literal("decimal")[1:-1])
        for text in (",", "precision", "=", "53", ")"):
            self._expect(text)
        return _decimal(number)

    def _literal(self, kind: str) -> str:
        found, text = self._next()
        if found != kind:
            raise NotRead(f"a literal was expected, not {text!r}")
        return text

    def _symbol(self) -> str:
        """Reads `'s0', positive=True, integer=True)`."""
        name = self._literal("string")[1:-1]
        while (token := self._next()[1]) == ",":
            assumption = self._literal("name")
            self._expect("=")
            if (assumption, self._literal("name")) == ("positive", "True"):
                self.ranges[name] = (1, float("inf"))
        if token != ")":
            raise NotRead(f"')' was expected, not {token!r}")
        return name


@lru_cache(maxsize=4096)
def dim_of(srepr: str) -> Dim:
    """Returns the dim of a text in sympy's constructor notation. Raises NotRead."""
    return _parsed(parse_dim, _Srepr(srepr).read())


@lru_cache(maxsize=4096)
def formula_of(srepr: str) -> Formula:
    """Returns the formula of a text in sympy's constructor notation. Raises NotRead."""
    return _parsed(parse_formula, _Srepr(srepr).read())


# ---- guards

_BINARY: Final[Mapping[type[ast.operator], Callable[..., Text]]] = {
    ast.Add: _pair("+"),
    ast.Sub: _pair("-"),
    ast.Mult: _product,
    ast.FloorDiv: _pair("//"),
    ast.Mod: _pair("%"),
    ast.Pow: _power,
    ast.Div: _ratio,
}
_COMPARE: Final[Mapping[type[ast.cmpop], str]] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}

Source: TypeAlias = Callable[[tuple[str | int, ...], int | None], Dim]
"""Maps `(path, axis)` to the size of the input at the path along the axis; without an axis, to the input's
value.
"""


def guard(text: str, source: Source, ranges: Ranges) -> Formula:
    """Returns the formula of a guard of an exported program; `source` gives its inputs. Raises NotRead."""
    if len(text) > MAX_LENGTH:
        raise NotRead(f"a guard of {len(text)} characters")
    try:
        tree = ast.parse(text.strip(), mode="eval")
        return _parsed(parse_formula, _whole(_Guard(source, ranges).read(tree.body)))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        known = isinstance(error, NotRead)
        raise error if known else NotRead(f"invalid Python: {type(error).__name__}") from None


class _Guard:
    """Walks the tree of a guard. Any unexpected node raises NotRead."""

    def __init__(self, source: Source, ranges: Ranges) -> None:
        self.source, self.ranges = source, ranges

    def read(self, node: ast.expr) -> Text:
        match node:
            case ast.Constant(value=bool(truth)):
                return str(truth)
            case ast.Constant(value=int(number)) if number.bit_length() <= 1024:
                return f"({number})"
            case ast.Constant(value=float(number)):
                return _decimal(number)
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="torch"), attr="sym_float"), args=[arg], keywords=[]
            ):
                return _whole(self.read(arg))
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="torch"), attr="_sym_sqrt"), args=[arg], keywords=[]
            ):
                return SquareRoot(_whole(self.read(arg)))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"(-{_whole(self.read(operand))})"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"(not {_whole(self.read(operand))})"
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in _BINARY:
                return _BINARY[type(operator)](self.read(left), self.read(right))
            case ast.BoolOp(op=operator, values=values):
                return _infix("and" if isinstance(operator, ast.And) else "or")(*map(self.read, values))
            case ast.Compare(left=left, ops=operators, comparators=others):
                return self._comparison(left, operators, others)
            case ast.Call(func=ast.Name(id="round"), args=[arg], keywords=[]):
                return _round(self.read(arg))
            case ast.Call(func=ast.Name(id="min" | "max" as extremum), args=args, keywords=[]) if args:
                return _call(extremum)(*map(self.read, args))
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="torch"), attr="sym_min" | "sym_max" as extremum),
                args=args,
                keywords=[],
            ) if args:
                return _call(extremum.removeprefix("sym_"))(*map(self.read, args))
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="math"), attr="trunc" | "floor" | "ceil" as rounding),
                args=[arg],
                keywords=[],
            ):
                return self._rounded(rounding, self.read(arg))
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="math"), attr="isqrt"), args=[arg], keywords=[]
            ):
                return f"isqrt({_whole(self.read(arg))})"
            case ast.Subscript(
                value=ast.Call(func=ast.Attribute(value=tensor, attr="size"), args=[], keywords=[]),
                slice=ast.Constant(value=int(axis)),
            ):
                return f"({self.source(_path(tensor), axis)})"
            case ast.Subscript():
                return f"({self.source(_path(node), None)})"
        raise NotRead(f"a guard with {type(node).__name__}")

    def _rounded(self, how: str, value: Text) -> str:
        if how == "trunc":
            return _truncate(value, self.ranges)
        return _floor(value) if how == "floor" else _ceil(value)

    def _comparison(self, left: ast.expr, operators: list[ast.cmpop], others: list[ast.expr]) -> str:
        sides, parts = [self.read(side) for side in (left, *others)], []
        for operator, (one, other) in zip(operators, itertools.pairwise(sides), strict=True):
            if type(operator) not in _COMPARE:
                raise NotRead(f"a guard with {type(operator).__name__}")
            parts.append(_compared(one, _COMPARE[type(operator)], other))
        return f"({' and '.join(parts)})"


def _path(node: ast.expr) -> tuple[str | int, ...]:
    """Returns ("batch", "b", 0) for `L['batch']['b'][0]`."""
    match node:
        case ast.Name(id="L"):
            return ()
        case ast.Subscript(value=inner, slice=ast.Constant(value=str(key) | int(key))):
            return (*_path(inner), key)
    raise NotRead("a guard on something that is not an input")


def shown(text: str) -> str:
    """Returns a guard as a person would write it: `x.shape[0]` for `L['x'].size()[0]`."""
    text = re.sub(r"L\['(\w+)'\]", r"\1", text).replace(".size()[", ".shape[")
    return re.sub(r"torch\.sym_(min|max)\b", r"\1", text)
