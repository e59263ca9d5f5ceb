"""Sizes as a Python program sees them: integers and fractions over dims, for as long as the program lets
them.

A `Size` is a `torch.SymInt`, so that torch's functions take it wherever they take a size, and calls itself an
`int`, so that `isinstance(n, int)` goes the way that it goes in an eager run. It hashes as its term does. A
comparison is a branch: its outcome is a plain `bool` at once, since torch's C++ side takes no other. Where
Python insists on a number (`range(n)`, `int(n)`, a list index), the run is asked for one.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction
from types import FrameType
from typing import Any, Protocol

import torch

from ..constraints import dims
from ..constraints import formula as logic
from ..constraints.dims import Dim, Term
from ..constraints.formula import Formula
from .conclusive import is_checked


class Run(Protocol):
    """Who answers where a number or a truth is needed: the run that is being recorded."""

    def truth(self, formula: Formula) -> bool:
        """The outcome of a branch on this condition, on the path that is being recorded."""

    def number(self, term: Term) -> int:
        """The value of a size, on the path that is being recorded."""

    def insists(self, frame: FrameType) -> None:
        """In this frame something of Python's makes a size a number."""

    def coin(self) -> bool:
        """The outcome of a branch on data, on the path that is being recorded."""

    def datum(self, dtype: str | None) -> Any:
        """A number of this dtype that the data decides."""

    def writes(self, frame: FrameType) -> None:
        """In this frame a number that depends on sizes is written into a text."""

    def hash(self, size: Size, frame: FrameType) -> int:
        """The hash of a size that this frame uses as a key."""

    def simplified(self, dim: Dim) -> Dim:
        """The dim, rewritten by what is known to be equal on the path that is being recorded."""

    def varies(self, dim: Dim) -> bool:
        """Does the dim stand for many numbers at once: for those of all iterations of a loop?"""

    def require(self, formula: Formula, reason: str, error: type[Exception] = ZeroDivisionError) -> None:
        """The program raises the error unless this holds."""


class _Node:
    """What torch's C++ code asks of a `SymInt`: little, since hardly any of it is reached while recording."""

    __slots__ = ("number",)

    def __init__(self, number: Any) -> None:
        self.number = number

    def is_int(self) -> bool:
        return type(self.number) is Size

    def is_float(self) -> bool:
        return type(self.number) is Real

    def is_symbolic(self) -> bool:
        return True

    def is_constant(self) -> bool:
        return False

    is_nested_int = is_constant

    def is_bool(self) -> bool:
        return isinstance(self.number, bool)

    def maybe_as_int(self) -> None:
        return None

    constant_int = constant_bool = nested_int = maybe_as_int

    def int_(self) -> int:
        return int(self.number)

    def guard_int(self, file: str, line: int) -> int:
        return int(self.number)

    def guard_bool(self, file: str, line: int) -> bool:
        return bool(self.number)

    guard_size_oblivious = guard_or_false = guard_or_true = expect_true = expect_size = guard_bool

    def bool_(self) -> bool:
        return bool(self.number)

    def guard_float(self, file: str, line: int) -> float:
        return float(self.number)

    def wrap_int(self, value: int) -> _Node:
        return _Node(value)

    def clone(self) -> _Node:
        return self

    def _graph_repr(self) -> str:
        return str(self.number)

    __str__ = __repr__ = _graph_repr
    vars()["str"] = _graph_repr  # under this name by C++ code

    def __getattr__(self, name: str) -> Any:
        operation = _NODE_OPERATIONS.get(name)
        if operation is None:
            raise AttributeError(name)
        return lambda other: _Node(operation(self.number, other.number))


_NODE_OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "int_floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "sym_min": lambda a, b: smaller(a, b),
    "sym_max": lambda a, b: larger(a, b),
}


def smaller(a: Any, b: Any) -> Any:
    """min(a, b) without a branch, where a dim can say it."""
    return _both(a, b, dims.minimum, min)


def larger(a: Any, b: Any) -> Any:
    """max(a, b) without a branch, where a dim can say it."""
    return _both(a, b, dims.maximum, max)


def _both(a: Any, b: Any, over_dims: Callable[[Dim, Dim], Dim], plain: Callable[[Any, Any], Any]) -> Any:
    x, y = dim_of(a), dim_of(b)
    run = a.run if type(a) is Size else b.run if type(b) is Size else None
    if x is None or y is None or run is None:
        return plain(a, b)
    return size(run, over_dims(x, y))


def size(run: Run, dim: Dim) -> Any:
    """A dim as the program sees it: an `int`, or a Size."""
    dim = dim if isinstance(dim, int) else run.simplified(dim)
    return dim if isinstance(dim, int) else Size(run, dim)


def dim_of(value: Any) -> Dim | None:
    """The dim behind an integer of the program, None for anything else."""
    if type(value) is Size:
        return value.term
    if isinstance(value, int):
        return int(value)
    return None


def _arithmetic(operation: Callable[[Dim, Dim], Dim], divides: bool = False) -> tuple[Any, Any]:
    """`a op b` and its reflection, for sizes and integers; a division asks that the divisor be not zero."""

    def apply(run: Run, a: Dim, b: Dim) -> Any:
        if divides:
            if b == 0:
                raise ZeroDivisionError("integer division or modulo by zero")
            if not isinstance(b, int):
                run.require(logic.ne(b, 0), "integer division or modulo by zero")
        return size(run, operation(a, b))

    def forward(self: Size, other: Any) -> Any:
        if type(other) is float or type(other) is Real:
            return operation(self.real(), other)  # type: ignore[arg-type]
        dim = dim_of(other)
        return NotImplemented if dim is None else apply(self.run, self.term, dim)

    def reflected(self: Size, other: Any) -> Any:
        if type(other) is float:
            return operation(Real.of(self.run, other), self.real())  # type: ignore[arg-type]
        dim = dim_of(other)
        return NotImplemented if dim is None else apply(self.run, dim, self.term)

    return forward, reflected


def _comparison(
    over_dims: Callable[[Dim, Dim], Formula], operation: Callable[[Any, Any], Any], other_kind: Any
) -> Any:
    def compare(self: Size, other: Any) -> Any:
        if type(other) is float or type(other) is Real:
            return operation(self.real(), other)
        dim = dim_of(other)
        if dim is None or (type(other) is Size and other.run is not self.run):
            return other_kind
        formula = over_dims(self.term, dim)
        if is_checked(sys._getframe(1)) and not isinstance(formula, bool):
            self.run.require(formula, f"the program checks that {formula}", RuntimeError)
            return True
        return self.run.truth(formula)

    return compare


class Size(torch.SymInt):
    """An integer of the program whose value is a term over the symbols of its inputs."""

    def __init__(self, run: Run, term: Term) -> None:
        self.run = run
        self.term = term

    @property
    def node(self) -> _Node:
        return _Node(self)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return int

    def real(self) -> Real:
        return Real(self.run, (self.term, 1), lambda: float(int(self)))

    __add__, __radd__ = _arithmetic(lambda a, b: a + b)
    __sub__, __rsub__ = _arithmetic(lambda a, b: a - b)
    __mul__, __rmul__ = _arithmetic(lambda a, b: a * b)
    __floordiv__, __rfloordiv__ = _arithmetic(lambda a, b: a // b, divides=True)
    __mod__, __rmod__ = _arithmetic(lambda a, b: a % b, divides=True)

    __eq__ = _comparison(logic.eq, lambda a, b: a == b, False)
    __ne__ = _comparison(logic.ne, lambda a, b: a != b, True)
    __lt__ = _comparison(logic.lt, lambda a, b: a < b, NotImplemented)
    __le__ = _comparison(logic.le, lambda a, b: a <= b, NotImplemented)
    __gt__ = _comparison(logic.gt, lambda a, b: a > b, NotImplemented)
    __ge__ = _comparison(logic.ge, lambda a, b: a >= b, NotImplemented)

    def __truediv__(self, other: Any) -> Any:
        return self.real() / other

    def __rtruediv__(self, other: Any) -> Any:
        return other / self.real()

    def __pow__(self, other: Any) -> Any:
        if type(other) is int and other >= 0:
            return size(self.run, self.term**other)
        return self.real() ** other

    def __rpow__(self, other: Any) -> Any:
        return other ** int(self)

    def __neg__(self) -> Any:
        return size(self.run, -self.term)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __floor__(self) -> Any:
        return self

    __ceil__ = __trunc__ = __sym_int__ = __floor__

    def __round__(self, ndigits: int | None = None) -> Any:
        return self

    def __sym_float__(self) -> Any:
        return self.real()

    def __sym_max__(self, other: Any) -> Any:
        return larger(self, other)

    def __sym_min__(self, other: Any) -> Any:
        return smaller(self, other)

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __int__(self) -> int:
        self.run.insists(sys._getframe(1))
        return self.run.number(self.term)

    def __index__(self) -> int:
        self.run.insists(sys._getframe(1))
        return self.run.number(self.term)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        """What NumPy, which calls this, makes of a size: a number, since programs ask for the dtype."""
        return sys.modules["numpy"].array(self.run.number(self.term), dtype=dtype)

    def __float__(self) -> float:
        return float(int(self))

    def __lshift__(self, other: int) -> Any:
        return self * 2**other

    def __rshift__(self, other: int) -> Any:
        return self // 2**other

    def __rlshift__(self, other: int) -> int:
        return other << int(self)

    def __rrshift__(self, other: int) -> int:
        return other >> int(self)

    def __and__(self, other: int) -> Any:
        """`n & (2**k - 1)` is `n % 2**k`; any other mask needs the number, and so do `|` and `^`."""
        if type(other) is int and other > 0 and (other & (other + 1)) == 0:
            return self % (other + 1)
        return int(self) & int(other)

    def __or__(self, other: int) -> Any:
        return int(self) | int(other)

    def __xor__(self, other: int) -> Any:
        return int(self) ^ int(other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Any:
        return -self - 1

    def bit_length(self) -> int:
        return int(self).bit_length()

    def is_integer(self) -> bool:
        return True

    def __hash__(self) -> int:
        """That of the key that it is equal to, where there is one. Else one of this run alone: a cache of the
        program's that outlives a run holds nothing for the next one.
        """
        return self.run.hash(self, sys._getframe(1))

    def __repr__(self) -> str:
        self.run.writes(sys._getframe(1))
        return str(self.written())

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        self.run.writes(sys._getframe(1))
        return str(self.written())

    def written(self) -> Dim:
        """As a key or a text: one name for one number, which an index of all iterations is not."""
        return int(self) if self.run.varies(self.term) else self.term

    def __deepcopy__(self, memo: Any) -> Any:
        return self


def _ratio_of(value: float) -> Ratio | None:
    """The fraction of small numbers that a constant of the program stands for, where sizes times it are
    rounded as if it were that.

    A multiple of a power of two near 1 is exact, and so is a product of it with a size below 2**40. Of any
    other, let f be the double nearest to p/q, and g = q*f - p. Where q does not divide n, n*p/q is at least
    1/q from an integer, further than n*f is from it. For n = q*t, n*f = v + t*g with v = p*t; where
    |g| <= p * 2**-54, that is at most half the distance from v to the doubles beside it, and is rounded to v.
    """
    if not math.isfinite(value):
        return None
    near = Fraction(value).limit_denominator(1024)
    p, q = near.numerator, near.denominator
    gap = q * Fraction(value) - p
    small = abs(p) < 2**12 and float(near) == value
    return (p, q) if small and abs(gap) <= abs(p) * Fraction(1, 2**54) else None


class Real(torch.SymFloat):
    """A float of the program that depends on sizes, or on data.

    While it is a fraction of dims that float arithmetic reproduces exactly (an integer quotient, scaled by
    constant factors: for integers below 2**40 the quotient is correctly rounded, and rounding cannot reach an
    integer that the quotient misses), `int`, `floor`, `ceil` and comparisons stay symbolic. Beyond that the
    numbers are asked for, and `compute` does what the program would. A float from data (`x.item()`) has
    neither.

    The root of a size (`n ** 0.5`) stays symbolic, too: for n below 2**52 the float is correctly rounded, no
    less than the integer root, and less than the next integer.
    """

    def __init__(
        self,
        run: Run,
        ratio: tuple[Dim, Dim] | None,
        compute: Callable[[], float] | None,
        square: Dim | None = None,
    ) -> None:
        self.run = run
        self.ratio = ratio
        self.compute = compute
        self.square = square
        """What the float is the square root of, where that is a dim."""

    @classmethod
    def of(cls, run: Run, value: float) -> Real:
        return cls(run, _ratio_of(value), lambda: value)

    @property
    def node(self) -> _Node:
        return _Node(self)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return float

    def _lift(self, other: Any) -> Real | None:
        if type(other) is Real:
            return other
        if type(other) is Size:
            return other.real()
        if isinstance(other, int | float):
            return Real.of(self.run, other)
        return None

    def _combine(
        self, other: Any, plain: Callable[[float, float], Any], exact: Any = None, swap: bool = False
    ) -> Any:
        lifted = self._lift(other)
        if lifted is None:
            return NotImplemented
        a, b = (lifted, self) if swap else (self, lifted)
        ratio = exact(a.ratio, b.ratio) if exact and a.ratio and b.ratio else None
        if a.compute is None or b.compute is None:
            return Real(self.run, None, None)
        first, second = a.compute, b.compute
        return Real(self.run, ratio, lambda: plain(first(), second()))

    def __add__(self, other: Any) -> Any:
        return self._combine(other, lambda a, b: a + b, _sum)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._combine(other, lambda a, b: a - b, _difference)

    def __rsub__(self, other: Any) -> Any:
        return self._combine(other, lambda a, b: a - b, _difference, swap=True)

    def __mul__(self, other: Any) -> Any:
        return self._combine(other, lambda a, b: a * b, _product)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        self._nonzero(other)
        return self._combine(other, lambda a, b: a / b, _quotient)

    def __rtruediv__(self, other: Any) -> Any:
        self._nonzero(self)
        return self._combine(other, lambda a, b: a / b, _quotient, swap=True)

    def __floordiv__(self, other: Any) -> Any:
        return self._combine(other, lambda a, b: a // b)

    def __rfloordiv__(self, other: Any) -> Any:
        return self._combine(other, lambda a, b: a // b, swap=True)

    def __mod__(self, other: Any) -> Any:
        return self._combine(other, lambda a, b: a % b)

    def __pow__(self, other: Any) -> Any:
        if type(other) is float and other == 0.5 and self.ratio and self.ratio[1] == 1:
            return self.root()
        return self._combine(other, lambda a, b: a**b)

    def root(self) -> Any:
        """The square root of a float that is a dim; negative ones have none."""
        assert self.ratio is not None
        n, _ = self.ratio
        if self.run.truth(logic.lt(n, 0)):
            return Real(self.run, None, lambda: math.sqrt(float(self)))
        found = dims.exact_root(n)
        if found is not None:
            return Real(self.run, (found if self.run.truth(logic.ge(found, 0)) else -found, 1), self._sqrt)
        return Real(self.run, None, self._sqrt, n)

    def _sqrt(self) -> float:
        return math.sqrt(float(self))

    def __rpow__(self, other: Any) -> Any:
        return self._combine(other, lambda a, b: a**b, swap=True)

    def __neg__(self) -> Any:
        return self * -1

    def __abs__(self) -> Any:
        return self._combine(0.0, lambda a, b: abs(a))

    def _nonzero(self, divisor: Any) -> None:
        if type(divisor) is Size:
            self.run.require(logic.ne(divisor.term, 0), "division by zero")
        elif type(divisor) is Real and divisor.ratio and not isinstance(divisor.ratio[0], int):
            self.run.require(logic.ne(divisor.ratio[0], 0), "division by zero")

    def _round(self, exact: Callable[[Dim, Dim], Dim], plain: Callable[[float], int]) -> Any:
        if self.ratio:
            return size(self.run, exact(*self.ratio))
        return plain(float(self))

    def __floor__(self) -> Any:
        if self.square is not None:
            return size(self.run, dims.square_root(self.square))
        return self._round(lambda p, q: p // q, math.floor)

    def __ceil__(self) -> Any:
        """Of √n the least r with r*r >= n, which is isqrt(n - 1) + 1 for n >= 1, and 0 for n = 0."""
        if self.square is not None:
            return size(self.run, dims.square_root(self.square - 1) + dims.minimum(self.square, 1))
        return self._round(lambda p, q: -(-p // q), math.ceil)

    def __trunc__(self) -> Any:
        if self.square is not None:
            return math.floor(self)
        return math.floor(self) if self >= 0 else math.ceil(self)

    def _fraction(self) -> Ratio | None:
        """p/q with q > 0; the sign of a symbolic denominator is a branch."""
        if self.ratio is None:
            return None
        p, q = self.ratio
        return (p, q) if self.run.truth(logic.gt(q, 0)) else (-p, -q)

    def __round__(self, ndigits: int | None = None) -> Any:
        """Half to even: r = floor(x + 1/2), less one where x + 1/2 is an integer, and odd.

        With x = p/q, x + 1/2 is (2p + q) / 2q; 1 - min(1, rest) says that it is an integer, and r % 2 that
        r is odd. Of √n it is floor((√(4n) + 1) / 2): no root of an integer is half an odd number.
        """
        if ndigits is None and self.square is not None:
            return size(self.run, (dims.square_root(4 * self.square) + 1) // 2)
        if ndigits is None and self.ratio:
            p, q = self._fraction() or self.ratio
            rounded, rest = (2 * p + q) // (2 * q), (2 * p + q) % (2 * q)
            return size(self.run, rounded - (1 - dims.minimum(1, rest)) * (rounded % 2))
        return round(float(self), ndigits)

    def _compare(
        self, other: Any, exact: Callable[[Dim, Dim], Formula], plain: Callable[[float, float], bool]
    ) -> Any:
        lifted = self._lift(other)
        if lifted is None:
            return NotImplemented
        if self.compute is None or lifted.compute is None:
            return self.run.coin()
        mine, theirs = self._fraction(), lifted._fraction()
        if isinstance(other, int | float) and not isinstance(other, Size | Real) and other == other // 1:
            theirs = int(other), 1  # however large: a float is compared with it as the two numbers are
        if self.square is not None and theirs:
            p, q = theirs
            return self.run.truth(_root_against(exact, self.square * q * q, p))
        if mine and theirs and (_power_of_two(mine[1]) or _power_of_two(theirs[1])):
            # Two that are both rounded (`n * 0.1 == 0.3`) compare as their roundings do.
            (p, q), (r, s) = mine, theirs
            return self.run.truth(exact(p * s, r * q))
        return plain(float(self), float(lifted))

    def __eq__(self, other: Any) -> Any:
        return self._compare(other, logic.eq, lambda a, b: a == b)

    def __ne__(self, other: Any) -> Any:
        return self._compare(other, logic.ne, lambda a, b: a != b)

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, logic.lt, lambda a, b: a < b)

    def __le__(self, other: Any) -> Any:
        return self._compare(other, logic.le, lambda a, b: a <= b)

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, logic.gt, lambda a, b: a > b)

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, logic.ge, lambda a, b: a >= b)

    def is_integer(self) -> bool:
        if self.square is not None:
            return self.run.truth(logic.eq(dims.square_root(self.square) ** 2, self.square))
        if self.ratio:
            return self.run.truth(logic.eq(self.ratio[0] % self.ratio[1], 0))
        return float(self).is_integer()

    def __bool__(self) -> bool:
        return bool(self != 0.0)

    def __float__(self) -> float:
        if self.compute is None:
            raise DataNeeded("a float that the data decides is needed as a number")
        return float(self.compute())

    def __int__(self) -> int:
        if self.ratio is not None or self.square is not None:
            self.run.insists(sys._getframe(1))
        whole: int = math.trunc(self)
        return int(whole)

    __hash__ = object.__hash__

    def _text(self) -> str:
        return f"{self.ratio[0]}/{self.ratio[1]}" if self.ratio else "float"

    def __repr__(self) -> str:
        self.run.writes(sys._getframe(1))
        return self._text()

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        self.run.writes(sys._getframe(1))
        return self._text()


class DataNeeded(Exception):
    """The program asks for a value that only real data has."""


Ratio = tuple[Dim, Dim]


def _root_against(compare: Callable[[Dim, Dim], Formula], n: Dim, p: Dim) -> Formula:
    """`compare(√n, p)`: of two numbers that are not negative, the squares compare as they do; a root is
    greater than what is negative.
    """
    return logic.any_of(
        (
            logic.all_of((logic.ge(p, 0), compare(n, p * p))),
            logic.all_of((logic.lt(p, 0), compare(1, 0))),
        )
    )


def _lowest(p: Dim, q: Dim) -> Ratio | None:
    """p/q with a positive integer below, the form in which comparisons and rounding are exact."""
    if not isinstance(q, int):
        return p, q
    if q == 0:
        return None
    if q < 0:
        p, q = -p, -q
    return (p, q) if q <= 2**20 else None


def _sum(a: Ratio, b: Ratio) -> Ratio | None:
    """Exact in floats only where both denominators are powers of two."""
    return (
        _lowest(a[0] * b[1] + b[0] * a[1], a[1] * b[1])
        if _power_of_two(a[1]) and _power_of_two(b[1])
        else None
    )


def _difference(a: Ratio, b: Ratio) -> Ratio | None:
    return _sum(a, (-b[0], b[1]))


def _product(a: Ratio, b: Ratio) -> Ratio | None:
    """Exact where both denominators are powers of two; rounded well where a size meets a constant."""
    if (a[1] == 1 and isinstance(b[0], int)) or (b[1] == 1 and isinstance(a[0], int)):
        return _lowest(a[0] * b[0], a[1] * b[1])
    return _lowest(a[0] * b[0], a[1] * b[1]) if _power_of_two(a[1]) and _power_of_two(b[1]) else None


def _quotient(a: Ratio, b: Ratio) -> Ratio | None:
    """One rounding: exact operands on both sides of it."""
    if not (_power_of_two(a[1]) and _power_of_two(b[1])):
        return None
    return _lowest(a[0] * b[1], a[1] * b[0])


def _power_of_two(q: Dim) -> bool:
    return isinstance(q, int) and q > 0 and (q & (q - 1)) == 0
