"""Sizes as a Python program sees them: integers and fractions over dims, for as long as the program lets
them.

A `Size` is a `torch.SymInt`, so that torch's functions take it wherever they take a size, and calls itself an
`int`, so that `isinstance(n, int)` has the same result as in an eager run. It hashes as its term does. A
comparison is a branch: its outcome is a plain `bool` at once, since torch's C++ side takes no other. Where
Python insists on a number (`range(n)`, `int(n)`, a list index), the run chooses one.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Final, NoReturn

import torch

from ...constraints.contents.outcomes.ranges import Outlook
from ...constraints.contents.outcomes.scalars import Computed
from ...constraints.contents.outcomes.trials import BOTH
from ...constraints.ir.system import Answer
from ...constraints.terms import dims
from ...constraints.terms import formula as logic
from ...constraints.terms.dims import Dim, Term
from ...constraints.terms.formula import Formula
from ...constraints.terms.formula_text import stated
from ...constraints.terms.intervals import EVERYTHING, Ranges, interval
from ..bytecode.conclusive import is_checked
from ..bytecode.operations import hands_on
from ..host.interpreter import frame_above
from ..recorder import Compared, Recorder
from .floats import (
    LARGEST,
    OPERATORS,
    OVER_DIMS,
    PLAIN,
    Comparison,
    Near,
    Ratio,
    Rise,
    constant,
    difference,
    floor_quotient,
    fraction,
    power_of_two,
    product,
    quotient,
    ratio_of,
    remainder,
    root_against,
    sum_of,
)


class _SymIntNode:
    """The node behind a `SymInt`, with the few methods that torch's C++ code calls while recording."""

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

    @property
    def expr(self) -> Any:
        """Ends the run: torch's own symbolic tracing needs an expression of SymPy."""
        return self.number.run.give_up("torch traces sizes symbolically, which is not followed")

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

    def wrap_int(self, value: int) -> _SymIntNode:
        return _SymIntNode(value)

    def wrap_bool(self, value: bool) -> _SymIntNode:
        return _SymIntNode(value)

    def clone(self) -> _SymIntNode:
        return self

    def _graph_repr(self) -> str:
        return str(self.number)

    __str__ = __repr__ = _graph_repr
    vars()["str"] = _graph_repr  # under this name by C++ code

    def __getattr__(self, name: str) -> Any:
        operation = _NODE_OPERATIONS.get(name)
        if operation is None:
            raise AttributeError(name)
        return lambda other: _SymIntNode(operation(self.number, other.number))


_NO_NUMBERS: Final = (list, tuple, dict, set, str, bytes, type(None))
"""Types that have no quotient, rest or power with a number."""
_NO_QUOTIENTS: Final = (*_NO_NUMBERS, torch.Tensor)
"""Those without a quotient and a rest at once (`divmod`)."""
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
    "sym_and": lambda a, b: a and b,
    "sym_or": lambda a, b: a or b,
    "sym_min": lambda a, b: smaller(a, b),
    "sym_max": lambda a, b: larger(a, b),
}


def smaller(a: Any, b: Any) -> Any:
    """Returns min(a, b) without a branch, where a dim can express it."""
    return _both(a, b, dims.minimum, min)


def larger(a: Any, b: Any) -> Any:
    """Returns max(a, b) without a branch, where a dim can express it."""
    return _both(a, b, dims.maximum, max)


def _both(a: Any, b: Any, over_dims: Callable[[Dim, Dim], Dim], plain: Callable[[Any, Any], Any]) -> Any:
    x, y = dim_of(a), dim_of(b)
    run = a.run if type(a) is Size else b.run if type(b) is Size else None
    if x is None or y is None or run is None:
        return plain(a, b)
    return size(run, over_dims(x, y))


AS_ARRAY: dict[str, Callable[..., Any]] = {}
"""The methods of a size that serve NumPy's protocols, by name. `arrays.py` adds its functions here if NumPy
is installed.
"""


def size(run: Recorder, dim: Dim) -> Any:
    """Returns a dim as the program sees it: an `int`, or a Size."""
    dim = dim if isinstance(dim, int) else run.simplified(dim)
    return dim if isinstance(dim, int) else Size(run, dim)


def returned(value: torch.SymInt) -> Any:
    """Returns the number behind a size that torch's C++ code has passed on."""
    return value.node.number if isinstance(value.node, _SymIntNode) else value


def dim_of(value: Any) -> Dim | None:
    """Returns the dim behind an integer of the program, None for any other value."""
    if type(value) is Size:
        return value.term
    if isinstance(value, int):
        return int(value)
    return None


def _arithmetic(operation: Callable[[Dim, Dim], Dim], divides: bool = False) -> tuple[Any, Any]:
    """Returns `a op b` and its reflection, for sizes and integers; a division requires that the divisor is
    not zero.
    """

    def apply(run: Recorder, a: Dim, b: Dim) -> Any:
        if divides:
            if b == 0:
                raise ZeroDivisionError("integer division or modulo by zero")
            if not isinstance(b, int):
                run.require(logic.ne(b, 0), "integer division or modulo by zero", ZeroDivisionError)
                b = run.divisor(b)
                a = run.simplified(a) if isinstance(b, int) else a
        return size(run, operation(a, b))

    def forward(self: Size, other: Any) -> Any:
        if type(other) is float or type(other) is Real:
            return operation(self.as_float(), other)  # type: ignore[arg-type]
        dim = dim_of(other)
        return NotImplemented if dim is None else apply(self.run, self.term, dim)

    def reflected(self: Size, other: Any) -> Any:
        if type(other) is float:
            return operation(other, self.as_float())  # type: ignore[arg-type]
        dim = dim_of(other)
        return NotImplemented if dim is None else apply(self.run, dim, self.term)

    return forward, reflected


def _comparing(how: Comparison) -> Any:
    return lambda self, other: self._compare(other, how)


def _comparison(
    over_dims: Callable[[Dim, Dim], Formula], operation: Callable[[Any, Any], Any], other_kind: Any
) -> Any:
    def compare(self: Size, other: Any) -> Any:
        if type(other) is float or type(other) is Real:
            return operation(self.as_float(), other)
        dim = dim_of(other)
        if dim is None or (type(other) is Size and other.run is not self.run):
            return other_kind
        formula, self.run.compared = over_dims(self.term, dim), Compared(over_dims, self.term, dim)
        if is_checked(frame_above(1)) and not isinstance(formula, bool):
            told = stated(formula, "the program checks that {}", "the program checks this")
            self.run.require(formula, told)
            return True
        return self.run.truth(formula)

    return compare


def _bitwise(operation: Callable[[int, int], int], swap: bool = False) -> Any:
    """Returns the method of an operator on the bits of integers, which are computed from numbers."""

    def apply(self: Size, other: Any) -> Any:
        if dim_of(other) is None:
            return NotImplemented
        return operation(int(other), int(self)) if swap else operation(int(self), int(other))

    return apply


def _no_members(self: Any) -> NoReturn:
    """Raises AttributeError, as a number of Python's has no `__dict__`, so that `vars` raises TypeError."""
    raise AttributeError(f"'{self.__class__.__name__}' object has no attribute '__dict__'")


_NO_MEMBERS: Final = property(_no_members)


def _shift(count: Any) -> int:
    """Returns by how many bits an integer is shifted. Raises ValueError for fewer than 0."""
    if count < 0:
        raise ValueError("negative shift count")
    return int(count)


class Size(torch.SymInt):
    """An integer of the program whose value is a term over the symbols of its inputs."""

    def __init__(self, run: Recorder, term: Term) -> None:
        self.run = run
        self.term = term

    @property
    def node(self) -> _SymIntNode:
        return _SymIntNode(self)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return int

    __dict__ = _NO_MEMBERS

    def as_float(self) -> Real:
        rise, near = Rise(self.term, float), Near(self.term, 1)
        return Real(self.run, (self.term, 1), lambda: float(int(self)), rise=rise, near=near)

    __add__, __radd__ = _arithmetic(lambda a, b: a + b)
    __sub__, __rsub__ = _arithmetic(lambda a, b: a - b)
    _product, _ = _arithmetic(lambda a, b: a * b)
    __floordiv__, __rfloordiv__ = _arithmetic(lambda a, b: a // b, divides=True)
    __mod__, __rmod__ = _arithmetic(lambda a, b: a % b, divides=True)

    __eq__ = _comparison(logic.eq, lambda a, b: a == b, NotImplemented)
    __ne__ = _comparison(logic.ne, lambda a, b: a != b, NotImplemented)
    __lt__ = _comparison(logic.lt, lambda a, b: a < b, NotImplemented)
    __le__ = _comparison(logic.le, lambda a, b: a <= b, NotImplemented)
    __gt__ = _comparison(logic.gt, lambda a, b: a > b, NotImplemented)
    __ge__ = _comparison(logic.ge, lambda a, b: a >= b, NotImplemented)

    def __mul__(self, other: Any) -> Any:
        if type(other) in (list, tuple):
            return self.run.times(other, self.term)
        return self._product(other)

    def __rmul__(self, other: Any) -> Any:
        return self * other

    def __truediv__(self, other: Any) -> Any:
        if type(other) is int and abs(other) >= 2**1000:  # it may be no float, and the quotient is one
            return int(self) / other
        if isinstance(other, _NO_NUMBERS):
            return NotImplemented
        return self.as_float() / other

    def __rtruediv__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, _NO_NUMBERS) else other / self.as_float()

    def __pow__(self, other: Any, modulo: Any = None) -> Any:
        if modulo is not None:
            return pow(int(self), other, modulo)
        if type(other) is float or type(other) is Real:
            return self.as_float() ** other
        if dim_of(other) is None:
            return NotImplemented
        exponent = int(other)
        return size(self.run, self.term**exponent) if exponent >= 0 else self.as_float() ** exponent

    def __rpow__(self, other: Any, modulo: Any = None) -> Any:
        if isinstance(other, _NO_NUMBERS):
            return NotImplemented
        is_base = type(other) is int and 2 <= other <= dims.MOST_BASE
        if is_base and 0 <= self <= dims.MOST_EXPONENT:
            return size(self.run, dims.exponential(other, self.term))
        return other ** (self.as_float() if type(other) is float else int(self))

    def __neg__(self) -> Any:
        return size(self.run, -self.term)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __divmod__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, _NO_QUOTIENTS) else (self // other, self % other)

    def __rdivmod__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, _NO_QUOTIENTS) else (other // self, other % self)

    def __floor__(self) -> Any:
        return self

    __ceil__ = __trunc__ = __sym_int__ = __floor__

    @hands_on
    def __round__(self, ndigits: int | None = None) -> Any:
        """Returns the size; with fewer than 0 digits, the multiple of a power of 10 that is nearest to it."""
        if ndigits is None or operator.index(ndigits) >= 0:
            return self
        unit = 10 ** -int(ndigits)
        return round(Real(self.run, (self.term, unit), None)) * unit

    def __sym_float__(self) -> Any:
        return self.as_float()

    def __sym_max__(self, other: Any) -> Any:
        return larger(self, other)

    def __sym_min__(self, other: Any) -> Any:
        return smaller(self, other)

    def __bool__(self) -> bool:
        return bool(self != 0)

    def __int__(self) -> int:
        self.run.insists(frame_above(1))
        return self.run.number(self.term)

    def __index__(self) -> int:
        frame = frame_above(1)
        self.run.insists(frame)
        return self.run.place(self.term, frame)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        """Returns the size as an array; called by NumPy."""
        return AS_ARRAY["__array__"](self, dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return AS_ARRAY["__array_ufunc__"](ufunc, method, inputs, options)

    def __float__(self) -> float:
        return float(int(self))

    def __lshift__(self, other: Any) -> Any:
        return NotImplemented if dim_of(other) is None else self * 2 ** _shift(other)

    def __rlshift__(self, other: Any) -> Any:
        if dim_of(other) is None:
            return NotImplemented
        if self < 0:
            raise ValueError("negative shift count")
        return other * 2**self

    def __rshift__(self, other: Any) -> Any:
        return NotImplemented if dim_of(other) is None else self // 2 ** _shift(other)

    def __and__(self, other: Any) -> Any:
        """Returns the bits that a size and a mask have in common, as floor division and remainder give them:
        `n % 2**k` for the mask `2**k - 1`, and bit by bit for any other; `n - (n & ~m)` for a negative one.
        """
        if type(other) is not int or abs(other) >= 2**16:
            return _bitwise(operator.and_)(self, other)
        if other < 0:
            return self - (self & ~other)
        if (other & (other + 1)) == 0:
            return self % (other + 1)
        return sum(((self >> k) % 2) << k for k in range(other.bit_length()) if other >> k & 1)

    def __or__(self, other: Any) -> Any:
        plain = type(other) is not int
        return _bitwise(operator.or_)(self, other) if plain else self + other - (self & other)

    def __xor__(self, other: Any) -> Any:
        plain = type(other) is not int
        return _bitwise(operator.xor)(self, other) if plain else self + other - (self & other) * 2

    __rrshift__ = _bitwise(operator.rshift, swap=True)
    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__

    def __invert__(self) -> Any:
        return -self - 1

    @property
    def numerator(self) -> Any:
        return self

    real, imag, denominator = numerator, 0, 1

    def bit_count(self) -> int:
        return int(self).bit_count()

    def to_bytes(self, *args: Any, **options: Any) -> bytes:
        return int(self).to_bytes(*args, **options)

    def bit_length(self) -> int:
        """Returns the bit length, which rises with a size that is not negative."""
        if self >= 0:
            found = Rise(self.term, int.bit_length, low=0).whole(int, self.run.truth)
            if found is not None:
                return found
        return int(self).bit_length()

    def is_integer(self) -> bool:
        return True

    def __hash__(self) -> int:
        """Returns the hash of the key that the size is equal to, if any, else a hash of this run alone: in a
        cache of the program's that outlives a run, the next run finds nothing.
        """
        return self.run.hash(self, frame_above(1))

    def __repr__(self) -> str:
        return self.run.text(self, frame_above(1))

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        if not spec:
            return self.run.text(self, frame_above(1))
        self.run.writes(frame_above(1))
        return str(self.written())

    def written(self) -> Dim:
        """Returns the dim for use as a key or in a text: one name for one number, which an index of all
        iterations is not.
        """
        return int(self) if self.run.varies(self.term) else self.term

    def __deepcopy__(self, memo: Any) -> Any:
        return self


def _is_float(base: float, exponent: float) -> bool:
    """Returns whether the power of a float that is not negative is one, or infinite by its operands."""
    try:
        return bool(base**exponent >= 0)
    except (OverflowError, ZeroDivisionError):
        return False


class Real(torch.SymFloat):
    """A float of the program that depends on sizes, or on data.

    Knowledge about it (`floats.py`) lets `int`, `floor`, `ceil` and comparisons stay symbolic. Beyond that
    the run chooses numbers for the sizes, and `compute` computes the float from them as the program would. A
    float from data (`x.item()`) has neither.

    The root of a size (`n ** 0.5`) stays symbolic, too: for n below 2**52 the float is correctly rounded, no
    less than the integer root, and less than the next integer.
    """

    def __init__(
        self, run: Recorder, ratio: Ratio | None, compute: Callable[[], float] | None,
        square: Dim | None = None, *, rise: Rise | None = None, near: Near | None = None,
        given: float | None = None,
    ) -> None:
        self.run = run
        self.of_numpy = False
        """Whether it is a float of NumPy's, which is infinite or no number where one of Python's raises an
        error.
        """
        self.ratio = ratio
        self.compute = compute
        self.square = square
        """The dim whose square root the float is, or None."""
        self.rise = rise
        self.near = near
        self.given = given
        """For a number that the program wrote, that number."""
        self.about: Callable[[str, float], Outlook] | None = None
        """For an element of a tensor, what is usual of a comparison of it with a number."""
        self.data: Computed | None = None
        """For a float that the data decide, how it is computed from them, if that is known."""
        self.is_input = False
        """Whether it is an input of the user's, or computed from such alone: it may be any number."""

    @classmethod
    def of(cls, run: Recorder, value: float) -> Real:
        return cls(run, ratio_of(value), lambda: value, near=Near.of(value), given=value)

    @property
    def node(self) -> _SymIntNode:
        return _SymIntNode(self)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return float

    __dict__ = _NO_MEMBERS

    def _lift(self, other: Any) -> Real | None:
        if type(other) is Real:
            return other
        if type(other) is Size:
            return other.as_float()
        if isinstance(other, int | float):
            return Real.of(self.run, other)
        return None

    def _combine(
        self, other: Any, plain: Callable[[float, float], Any],
        exact: Callable[[Ratio, Ratio], Ratio | None] | None = None, *,
        near: Callable[[Near, Near], Near | None] | None = None, sign: Callable[[float], float] | None = None,
        swap: bool = False,
    ) -> Any:
        """`sign` of a constant operand says whether the result rises with the other, falls, or does neither
        (a positive number, a negative one, 0).
        """
        lifted = self._lift(other)
        if lifted is None:
            return NotImplemented
        a, b = (lifted, self) if swap else (self, lifted)
        if a.compute is None or b.compute is None:
            return self._of_data(plain, a, b)._like(a, b)
        ratio = exact(a.ratio, b.ratio) if exact and a.ratio and b.ratio else None
        about = near(a.near, b.near) if near and a.near and b.near else None
        first, second, constant, rise = a.compute, b.compute, lifted.given, None
        if sign and constant is not None and self.rise and sign(constant):
            step = (lambda x: plain(constant, x)) if swap else (lambda x: plain(x, constant))
            rise = self.rise.then(step, sign(constant) > 0)
        made = Real(self.run, ratio, lambda: plain(first(), second()), rise=rise, near=about)
        return made._like(a, b)

    def _of_data(self, plain: Callable[[float, float], Any], *operands: Real) -> Real:
        """Returns the result of a function of two floats, or of this one, some of which the data decide."""
        found, known = Real(self.run, None, None), [operand._in_data() for operand in operands]
        found.is_input = all(operand.is_input or operand.given is not None for operand in operands)
        match known:
            case [Computed() as a, Computed() as b]:
                found.data = a.beside(b, plain)
        return found

    def _in_data(self) -> Computed | None:
        """Returns how the float is computed where others are of data."""
        if self.data is not None or self.given is None:
            return self.data or (fraction(self.ratio) if self.ratio else None)
        return constant(self.given)

    def _like(self, *operands: Real) -> Real:
        """Returns the float, which is one of NumPy's if an operand is."""
        self.of_numpy = any(operand.of_numpy for operand in operands)
        return self

    def as_numpy(self) -> Real:
        """Returns the float as one of NumPy's."""
        found = Real(
            self.run, self.ratio, self.compute, self.square, rise=self.rise, near=self.near, given=self.given
        )
        found.of_numpy = True
        return found

    def _undefined(self, error: Exception, *others: Any) -> NoReturn:
        """Raises the error that an operation on floats of Python's raises; gives the path up for NumPy's."""
        if self.of_numpy or any(type(other) is Real and other.of_numpy for other in others):
            self.run.give_up("a float of NumPy's is infinite, or no number")
        raise error

    def __add__(self, other: Any) -> Any:
        return self._combine(other, lambda a, b: a + b, sum_of, sign=lambda c: 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._combine(other, lambda a, b: a - b, difference, sign=lambda c: 1)

    def __rsub__(self, other: Any) -> Any:
        return self._combine(other, lambda a, b: a - b, difference, sign=lambda c: -1, swap=True)

    def __mul__(self, other: Any) -> Any:
        """Returns the product. Where sizes make a factor 0 it is 0 for all finite data."""
        lifted = self._lift(other)
        if lifted is not None and (self.compute is None or lifted.compute is None):
            zeros = [logic.eq(factor.ratio[0], 0) for factor in (self, lifted) if factor.ratio]
            self.run.dataless_floats = logic.any_of((self.run.dataless_floats, *zeros))
        return self._combine(other, lambda a, b: a * b, product, near=Near.times, sign=lambda c: c)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        self._nonzero(other)
        return self._combine(other, lambda a, b: a / b, quotient, near=Near.over, sign=lambda c: c)

    def __rtruediv__(self, other: Any) -> Any:
        self._nonzero(self)
        return self._combine(other, lambda a, b: a / b, quotient, near=Near.over, swap=True)

    def __floordiv__(self, other: Any) -> Any:
        self._nonzero(other)
        return self._combine(other, lambda a, b: a // b, floor_quotient, sign=lambda c: c)

    def __rfloordiv__(self, other: Any) -> Any:
        self._nonzero(self)
        return self._combine(other, lambda a, b: a // b, swap=True)

    def __mod__(self, other: Any) -> Any:
        self._nonzero(other)
        return self._combine(other, lambda a, b: a % b, remainder)

    def __rmod__(self, other: Any) -> Any:
        self._nonzero(self)
        return self._combine(other, lambda a, b: a % b, swap=True)

    def __divmod__(self, other: Any) -> Any:
        return NotImplemented if isinstance(other, _NO_QUOTIENTS) else (self // other, self % other)

    def __pow__(self, other: Any) -> Any:
        lifted = self._lift(other)
        return NotImplemented if lifted is None else self._to_power(lifted)

    def __rpow__(self, other: Any) -> Any:
        lifted = self._lift(other)
        return NotImplemented if lifted is None else lifted._to_power(self)

    def _to_power(self, exponent: Real) -> Any:
        """Returns the power.

        Raises ZeroDivisionError for 0 to a negative power, and OverflowError beyond the greatest float. The
        power of a negative number to a fraction is complex; it is computed from numbers, and so is a power if
        it is not known whether it is beyond.
        """
        e = exponent if exponent.given is None else float(exponent.given)
        if (self == 0 and e < 0) if exponent.given is None else (e < 0 and self == 0):
            self._undefined(ZeroDivisionError("0.0 cannot be raised to a negative power"), exponent)
        if self.compute is None or exponent.compute is None:
            return self._of_data(operator.pow, self, exponent)._like(self, exponent)
        if self < 0 and not e.is_integer():
            return float(self) ** float(exponent)
        if e == 0.5 and self.ratio and self.ratio[1] == 1:
            return self.root()._like(self, exponent)
        beyond = self._overflows(exponent)
        if beyond is None:
            return float(self) ** float(exponent)
        if beyond:
            self._undefined(OverflowError(34, "Numerical result out of range"), exponent)
        power = self._combine(exponent, lambda a, b: a**b)
        if exponent.given is not None and 2**-6 <= e <= 8 and self._spaced():
            power.rise = self._not_negative(lambda x: x**e)
        return power

    def _overflows(self, exponent: Real) -> bool | None:
        """Returns whether the power is beyond the greatest float, by a branch on the size that it rises with;
        None where it is not known to rise or fall with one.

        A fraction of sizes lies between 2**-126 and 2**126, so that its power to at most 8 is a float.
        """
        b, e = self.given, exponent.given
        if b is not None:
            if b < 0 or exponent.rise is None:
                return None
            within = exponent.rise.passes(lambda y: _is_float(b, y) == (b <= 1))
            return b != 0 and self.run.truth(within) == (b > 1)
        if e is None:
            return None
        if self.ratio is not None and abs(e) <= 8:
            return False
        if self.rise is None or not self._certain(self.rise.passes(lambda x: x >= 0)):
            return None
        return self.run.truth(self.rise.passes(lambda x: _is_float(x, e) == (e <= 0))) == (e > 0)

    def _not_negative(self, step: Callable[[float], float]) -> Rise | None:
        """Returns a monotone step of a float that is certainly not negative."""
        if self.rise is None or not self._certain(self.rise.passes(lambda x: x >= 0)):
            return None
        return self.rise.where(lambda x: x >= 0, True).then(step)

    def _certain(self, formula: Formula) -> bool:
        """Returns whether the formula holds for all sizes at which floats are computed.

        Intervals decide it, since it is needed for every comparison; the oracle is used only for formulas
        over one size.
        """
        names = sorted(logic.free_symbols(formula))
        known = self.run.domain.ranges
        ranges = {name: (known.get(name, EVERYTHING)[0], LARGEST) for name in names}
        if all(_holds_within(part, ranges) for part in logic.conjuncts(formula)):
            return True
        small = [logic.le(dims.sym(name), LARGEST) for name in names]
        return len(names) == 1 and self.run.judged(formula, small) is Answer.ALWAYS

    def _spaced(self) -> bool:
        """Returns whether the values for different sizes lie so far apart that functions of the C library,
        which err in the last bit, keep their order.
        """
        return self.ratio is not None and isinstance(self.ratio[1], int)

    def through(
        self, function: Callable[[float], float], undefined: tuple[Comparison, float] | None = None
    ) -> Any:
        """Returns the result of a function of `math` that rises with its argument.

        Raises the function's own error for arguments at which it is undefined, as a comparison says.
        """
        if undefined is not None and self._compare(undefined[1], undefined[0]):
            error = OverflowError("math range error"), ValueError("math domain error")
            raise error[undefined[0] != ">"]
        if self.compute is None:
            found = Real(self.run, None, None)
            found.data, found.is_input = self.data and self.data.then(function), self.is_input
            return found
        compute, rise = self.compute, self.rise if self._spaced() else None
        if rise is not None and undefined is not None:
            how, limit = undefined
            rise = rise.where(lambda x: PLAIN[how](x, limit) == (how == ">"), how != ">")
        return Real(self.run, None, lambda: function(compute()), rise=rise and rise.then(function))

    def root(self) -> Any:
        """Returns the square root; that of a dim remembers its square. Raises ValueError below 0."""
        n, divisor = self.ratio or (0, 0)
        if divisor != 1:
            return self.through(math.sqrt, ("<", 0.0))
        if self < 0:
            raise ValueError("math domain error")
        rise = self.rise and self.rise.where(lambda x: x >= 0, True).then(math.sqrt)
        found = dims.exact_root(n)
        if found is not None:
            found = found if self.run.truth(logic.ge(found, 0)) else -found
            return Real(self.run, (found, 1), self._sqrt, rise=rise, near=Near(found, 1))
        return Real(self.run, None, self._sqrt, n, rise=rise)

    def _sqrt(self) -> float:
        return math.sqrt(float(self))

    def __neg__(self) -> Any:
        return self * -1

    def __pos__(self) -> Any:
        return self

    __sym_float__ = __pos__

    def __abs__(self) -> Any:
        found = self._combine(0.0, lambda a, b: abs(a))
        if self.ratio and isinstance(self.ratio[1], int):
            found.ratio = dims.maximum(self.ratio[0], -self.ratio[0]), self.ratio[1]
        return found

    def _nonzero(self, divisor: Any) -> None:
        """Raises ZeroDivisionError at the sizes at which the divisor is 0."""
        term: Dim | None = divisor.term if type(divisor) is Size else None
        if type(divisor) is Real and divisor.ratio and not divisor.of_numpy:
            term = divisor.ratio[0]
        if term is not None and not isinstance(term, int) and not self.of_numpy:
            self.run.require(logic.ne(term, 0), "division by zero", ZeroDivisionError)
        elif type(divisor) in (bool, int, float, Size, Real) and divisor == 0:
            self._undefined(ZeroDivisionError("float division by zero"), divisor)

    def _round(self, exact: Callable[[Dim, Dim], Dim], plain: Callable[[float], int]) -> Any:
        if self.ratio:
            return size(self.run, exact(*self.ratio))
        found = self.rise.whole(plain, self.run.truth) if self.rise else None
        return plain(float(self)) if found is None else found

    def __floor__(self) -> Any:
        if self.square is not None:
            return size(self.run, dims.square_root(self.square))
        return self._round(lambda p, q: p // q, math.floor)

    def __ceil__(self) -> Any:
        """Returns the ceiling.

        For √n it is the least r with r*r >= n: isqrt(n - 1) + 1 for n >= 1, and 0 for n = 0.
        """
        if self.square is not None:
            return size(self.run, dims.square_root(self.square - 1) + dims.minimum(self.square, 1))
        return self._round(lambda p, q: -(-p // q), math.ceil)

    def __trunc__(self) -> Any:
        if self.square is not None:
            return math.floor(self)
        if self.ratio is None:
            return self._round(lambda p, q: p // q, math.trunc)
        return math.floor(self) if self >= 0 else math.ceil(self)

    def _fraction(self) -> Ratio | None:
        """Returns p/q with q > 0; the sign of a symbolic denominator is a branch."""
        if self.ratio is None:
            return None
        p, q = self.ratio
        return (p, q) if self.run.truth(logic.gt(q, 0)) else (-p, -q)

    def __round__(self, ndigits: int | None = None) -> Any:
        """Returns the float rounded half to even: r = floor(x + 1/2), less one where x + 1/2 is an integer,
        and odd.

        With x = p/q, x + 1/2 is (2p + q) / 2q; 1 - min(1, rest) says that it is an integer, and r % 2 that r
        is odd. For √n it is floor((√(4n) + 1) / 2): no root of an integer is half an odd number.
        """
        if ndigits is not None:
            digits = operator.index(ndigits)
            found = Real(self.run, None, self.compute and (lambda: round(float(self), digits)))
            found.rise = self.rise and self.rise.then(lambda x: round(x, digits))
            found.data = self.data and self.data.then(lambda x: round(x, digits))
            found.is_input = self.is_input
            return found
        if self.square is not None:
            return size(self.run, (dims.square_root(4 * self.square) + 1) // 2)
        if self.ratio:
            p, q = self._fraction() or self.ratio
            rounded, rest = (2 * p + q) // (2 * q), (2 * p + q) % (2 * q)
            return size(self.run, rounded - (1 - dims.minimum(1, rest)) * (rounded % 2))
        return self._round(lambda p, q: p // q, round)

    def _compare(self, other: Any, how: Comparison) -> Any:
        lifted = self._lift(other)
        if lifted is None:
            return NotImplemented
        if self.compute is None or lifted.compute is None:
            if self.about is not None and lifted.given is not None:
                return self.run.coin(self.about(OPERATORS[how], lifted.given))
            unknown = self.run.dataless_floats
            return self.run.coin(Outlook(unknown=unknown, possible=self._found(lifted, how)))
        mine, theirs = self._fraction(), lifted._fraction()
        if lifted.given is not None and lifted.given == lifted.given // 1:
            theirs = int(lifted.given), 1  # however large: floats are compared with it as numbers are
        if self.square is not None and theirs:
            p, q = theirs
            return self.run.truth(root_against(OVER_DIMS[how], self.square * q * q, p))
        if mine and theirs and (power_of_two(mine[1]) or power_of_two(theirs[1])):
            # Two that are both rounded (`n * 0.1 == 0.3`) compare as their roundings do.
            (p, q), (r, s) = mine, theirs
            return self.run.truth(OVER_DIMS[how](p * s, r * q))
        if self.rise and lifted.given is not None:
            return self.run.truth(self.rise.compared(how, lifted.given))
        if self.near and lifted.near:
            positive = logic.all_of((self.near.positive(), lifted.near.positive()))
            if self._certain(positive):
                return self._compare_near(self.near, lifted.near, how)
        return PLAIN[how](float(self), float(lifted))

    def _found(self, other: Real, how: Comparison) -> frozenset[bool]:
        """Returns the outcomes that a comparison of floats that the data decide has for some of these."""
        if all(one.is_input or one.given is not None for one in (self, other)):
            return BOTH
        mine, theirs = self._in_data(), other._in_data()
        if mine is None or theirs is None:
            return frozenset()
        compared = mine.beside(theirs, PLAIN[how])
        near = (other.given,) if other.given is not None else ()
        return self.run.generator.outcomes_of(compared, near)

    def _compare_near(self, mine: Near, theirs: Near, how: Comparison) -> bool:
        greater, less, equal = mine.against(theirs, self._certain)
        for formula, a, b in (greater, 1, 0), (less, 0, 1), (equal, 0, 0):
            if self.run.truth(formula):
                return PLAIN[how](a, b)
        return self.run.guess("two floats that are computed from sizes lie too close together to compare")

    __eq__, __ne__ = _comparing("=="), _comparing("!=")
    __lt__, __le__ = _comparing("<"), _comparing("<=")
    __gt__, __ge__ = _comparing(">"), _comparing(">=")

    def is_integer(self) -> bool:
        if self.square is not None:
            return self.run.truth(logic.eq(dims.square_root(self.square) ** 2, self.square))
        if self.ratio:
            return self.run.truth(logic.eq(self.ratio[0] % self.ratio[1], 0))
        below = self.rise and self.rise.whole(math.floor, self.run.truth)
        return float(self).is_integer() if below is None else bool(self == below)

    def __bool__(self) -> bool:
        return bool(self != 0.0)

    __array__, __array_ufunc__ = Size.__array__, Size.__array_ufunc__

    def __float__(self) -> float:
        if self.compute is None:
            self.run.give_up("a float that the data decides is needed as a number")
        return float(self.compute())

    def __int__(self) -> int:
        if self.ratio is not None or self.square is not None:
            self.run.insists(frame_above(1))
        whole: int = math.trunc(self)
        return int(whole)

    def __sym_sqrt__(self) -> Any:
        return math.sqrt(self)

    def __sym_log2__(self) -> Any:
        return math.log2(self)

    def __hash__(self) -> int:
        """Returns one hash for all floats of a run, since those that are equal are found by comparison; where
        the program may see it, or a number is among the keys, that of the value.
        """
        if self.compute is None:
            self.run.give_up("a float that the data decides is a key")
        return hash(float(self)) if self.run.hashes_values(frame_above(1)) else hash((id(self.run), Real))

    def _text(self) -> str:
        return f"{self.ratio[0]}/{self.ratio[1]}" if self.ratio else "float"

    def __repr__(self) -> str:
        self.run.writes(frame_above(1))
        return self._text()

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        self.run.writes(frame_above(1))
        return self._text()


def _holds_within(formula: Formula, ranges: Ranges) -> bool:
    """Returns whether the formula follows from these intervals."""
    if isinstance(formula, logic.Compare) and formula.op == ">=":
        return interval(formula.term, ranges)[0] >= 0
    return formula is True
