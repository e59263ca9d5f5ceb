"""Elements that are one number for all data, at some sizes: the sum of nothing is 0, its mean is NaN, and
`all` of nothing is true.

A value has cases: sizes, and the number that each of its elements is at these. A number is kept only where
every dtype of floats holds it; of another one bounds are kept, in float32 and float64.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from itertools import product as combinations
from typing import Any, Final, NoReturn, TypeAlias

from ...ir.language import Between, Case, Cases, Ratio, Tensor, Value, product
from ...ir.program import Ref
from ...terms.dims import Dim, Term, maximum, minimum
from ...terms.formula import Formula, all_of, any_of, eq, le, negate
from ..elements.dtypes import INTEGRAL
from ..elements.enclosures import FUNCTIONS
from ..elements.values import extremes
from ..laws.masks import COMPARISONS, one_value, truths_of
from .constancy import NANS, SPREADS, Made, is_number

Number: TypeAlias = "int | float | Between | None"
"""The number that each element is, or the bounds of all; None where there are no elements."""
Bounded: TypeAlias = "int | float | Between"
CasesOf: TypeAlias = Callable[[int], Cases]
"""Returns the cases of a value, by its reference."""
Law: TypeAlias = "Callable[[Made, CasesOf], Iterator[Case]]"
Function: TypeAlias = Callable[..., Number]

MOST: Final = 8
"""At most so many cases of one value are followed."""
BITS: Final = 8
"""Bits of the significand of the shortest float."""
FEW: Final = 64
"""The sums of so many numbers are rounded by no more than bounds are widened."""
SMALLEST: Final = 2.0**-21
LARGEST: Final = 2.0**15
"""Numbers between these two are neither zero nor infinity in any dtype of floats."""
SMALL: Final = range(-64, 65)
BOUNDED: Final = 1e30
"""Bounds are kept up to this number, far below what float32 holds."""
WIDER: Final = 2.0**-17
"""The part of itself by which a bound is widened where kernels round: by some more than they do."""
LEAST: Final = 1e-44
"""The number by which a bound is widened at least: float32 holds no positive number below."""
ROUNDED: Final = frozenset({"float32", "float64"})
"""The dtypes in which bounds are kept."""
NAN: Final = math.nan
INF: Final = math.inf


class NotFixed(Exception):
    """Raised where a number is not followed any further."""


def cases(made: Made, value: Value, of: CasesOf) -> Cases:
    """Returns the cases of a result of a call, besides those in which it has no elements."""
    law = LAWS.get(made.op)
    found: list[Case] = [*law(made, of)] if law is not None else []
    if made.op in NANS:
        found.append((all_of((NANS[made.op](made), _one_at_most(made))), NAN))
    return held(found, value)


def _one_at_most(made: Made) -> Formula:
    """Returns, of a deviation, that it is one of a single number, which is 0; of more it may be infinite."""
    if made.op in SPREADS:
        return made.place > 0 or le(made.size(made.get("dim")), 1)
    return made.op not in ("cov", "corrcoef") or (bool(made.shape) and le(made.shape[-1], 1))


def of_constant(value: Value) -> Cases:
    """Returns the cases of a value that sizes decide: numbers, and masks."""
    if (one := one_value(value)) is not None:
        return ((True, one),)
    if isinstance(value, Tensor) and isinstance(value.elements, Ratio):
        over, under = value.elements.numerator, value.elements.denominator
        return held([(True, over / under)], value) if isinstance(over, int) else ()
    span = extremes(value) if isinstance(value, Tensor) and _dtype(value) in ROUNDED else None
    if span is not None and isinstance(span.low, int) and isinstance(span.high, int):
        return ((True, Between(span.low, span.high)),)
    found = truths_of(value) if isinstance(value, Tensor) and value.dtype == "bool" else None
    return () if found is None else held([(found.every, 1), (negate(found.some), 0)], value)


def outcomes(known: Cases) -> tuple[Formula, Formula]:
    """Returns the sizes at which the truth of an element is True, and those at which it is False."""
    truths = [(where, _truth_of(number)) for where, number in known if number is not None]
    return any_of(w for w, truth in truths if truth), any_of(w for w, truth in truths if truth is False)


def _truth_of(number: Number) -> bool | None:
    """Returns the truth of elements; None where they may be 0 or another number, and where there are none."""
    if isinstance(number, Between):
        return True if number.low > 0 or number.high < 0 else None
    return None if number is None else bool(number)


def comparison(op: str, known: Cases, number: float) -> Cases:
    """Returns the cases of a comparison of a value with a number."""
    return tuple(_computed(_compared(op), (known, ((True, number),)), bounds=True))


def equality(values: Sequence[Cases]) -> Cases:
    """Returns the cases of the equality of values of one shape; of none it holds."""
    found = [tuple(zip(*chosen, strict=True)) for chosen in combinations(*values)]
    certain = [(where, numbers) for where, numbers in found if not _has_bounds(numbers)]
    return tuple((all_of(where), int(all(first == n for n in rest))) for where, (first, *rest) in certain)


def number_of_results(op: str, number: Number, input: Tensor, named: Mapping[str, Any]) -> Dim | None:
    """Returns how many results an operator has for a tensor whose elements are all this number; None where
    that is not known, as of integers that NaN is cast to.
    """
    if isinstance(number, Between):
        return None
    if number is not None and not math.isfinite(number) and op not in PICKING:
        return None
    match op:
        case "bincount":
            least = named.get("minlength", 0)
            return least if number is None else maximum(least, int(number) + 1)
        case "one_hot":
            return None if number is None else int(number) + 1
        case "repeat_interleave":
            return _repeated(0 if number is None else int(number), input, named)
        case _ if op in DISTINCT and named.get("dim") is None:
            return 0 if number is None else minimum(1, input.numel)
        case _ if op in PICKING:
            return input.numel if number else 0
    return None


def _repeated(number: int, repeats: Tensor, named: Mapping[str, Any]) -> Dim | None:
    """Returns how many elements come out along a dim if each comes out so many times, or the number of times
    if that is given once for all; None where sizes decide which of the two it is, and where the tensor is not
    the one with the numbers of times.
    """
    given, dim, times = named.get("input"), named.get("dim"), named.get("repeats")
    if not isinstance(given, Tensor) or times is None:
        return repeats.numel * number
    if times is not repeats:
        return None
    size = given.numel if dim is None else given.shape[dim]
    return repeats.numel * number if repeats.numel in (1, size) else None


DISTINCT: Final = frozenset("unique unique_consecutive unique2 _unique2".split())
PICKING: Final = frozenset("nonzero argwhere".split())


def held(found: Iterable[Case], value: Value) -> Cases:
    """Returns the cases with their numbers in the dtype of a value, as far as it surely holds them."""
    kept = []
    for where, number in found:
        try:
            if where is not False:
                kept.append((where, _held(number, _dtype(value))))
        except NotFixed:
            continue
    return tuple(dict.fromkeys(kept))[:MOST]


def _dtype(value: Any) -> str | None:
    return value.dtype if isinstance(value, Tensor) else None


def _held(number: Number, dtype: str | None) -> Number:
    if number is None:
        return None
    if dtype == "bool":
        truth = _truth_of(number)
        return _fail() if truth is None else int(truth)
    if isinstance(number, Between):
        return number if dtype in ROUNDED else _fail()
    if dtype in INTEGRAL:
        if not math.isfinite(number) or not (-128 if dtype.startswith("int") else 0) <= int(number) <= 127:
            raise NotFixed
        return int(number)
    if dtype is None or not dtype.startswith(("float", "bfloat")):
        raise NotFixed
    return float(number) if _is_short(number) else _held(_rounded(number), dtype)


def _rounded(*numbers: float) -> Between:
    """Returns bounds of numbers between these, however a kernel rounds them."""
    low, high = min(numbers), max(numbers)
    if not all(abs(number) <= BOUNDED for number in numbers):  # as NaN is not
        raise NotFixed
    return Between(low - abs(low) * WIDER - LEAST, high + abs(high) * WIDER + LEAST)


def _ends(number: Number) -> tuple[float, ...]:
    """Returns the bounds of a number, which is converted to another dtype if it is no element."""
    if isinstance(number, Between):
        return number.low, number.high
    if number is None or _is_short(number):
        return () if number is None else (number,)
    return _ends(_rounded(number))


def _is_short(number: float) -> bool:
    """Returns whether floats of every dtype hold the number, with some digits to spare on either side."""
    if not math.isfinite(number):
        return True
    over, under = float(number).as_integer_ratio()
    return over.bit_length() <= BITS and under.bit_length() <= BITS


def _fail() -> NoReturn:
    raise NotFixed


# ---- laws


def monotonic(function: Callable[..., float], *, exact: bool = False) -> Callable[..., Bounded]:
    """Returns a function of numbers, or of the bounds of numbers, from one that in each operand alone never
    falls, or never rises: of bounds it has its extremes at ends. Unless it is `exact`, kernels round it.
    """

    def of_bounds(*operands: Bounded) -> Bounded:
        if not _has_bounds(operands):
            return function(*operands)
        found = [function(*corner) for corner in combinations(*map(_ends, operands))]
        if len(set(found)) == 1 and (exact or found[0] == 0 or math.isinf(found[0])):
            return found[0]
        around = _rounded(*found)
        return Between(min(found), max(found)) if exact else around

    return of_bounds


def _has_bounds(numbers: Iterable[Number]) -> bool:
    return any(isinstance(number, Between) for number in numbers)


def elementwise(function: Function, *names: str, bounds: bool = False) -> Law:
    """Returns the law of a function of operands at the same place, of their `bounds`, too, or of numbers
    alone: next to one without elements, whatever the others are, there is nothing.
    """

    def law(made: Made, of: CasesOf) -> Iterator[Case]:
        operands = [_of(dict(made.node.args).get(name), of) for name in names]
        yield from ((where, None) for known in operands for where, number in known if number is None)
        if made.get("alpha") in (None, 1) and made.get("rounding_mode") is None:
            yield from _computed(function, operands, bounds=bounds)

    return law


def _rising(function: Callable[..., float], *names: str, exact: bool = False) -> Law:
    """Returns the law of a function that is monotonic in each operand."""
    return elementwise(monotonic(function, exact=exact), *names, bounds=True)


def _comparing(op: str) -> Law:
    """Returns the law of a comparison. An element that is not NaN compares with itself as 0 with 0 does.

    A size that is rounded stays above all small integers that it is above, and below.
    """
    law = elementwise(_compared(op), "input", "other", bounds=True)

    def compared(made: Made, of: CasesOf) -> Iterator[Case]:
        yield from law(made, of)
        size: Any = made.node.get("other")
        for where, number in _of(made.node.get("input"), of) if isinstance(size, Term) else ():
            if isinstance(number, int | float) and number in SMALL:
                holds = COMPARISONS[op](int(number), size)
                yield from ((all_of((where, holds)), 1), (all_of((where, negate(holds))), 0))
        if made.ref("input") is not None and made.ref("input") == made.ref("other"):
            same = int(getattr(operator, op)(0, 0))
            yield from ((w, same) for w, n in _of(made.node.get("input"), of) if isinstance(n, Between))

    return compared


def _filled_with(made: Made, of: CasesOf) -> Iterator[Case]:
    yield from _of(made.node.get("fill_value"), of)


def _of(operand: Any, of: CasesOf) -> Cases:
    """Returns the cases of an operand: a value of the program, or a number."""
    if isinstance(operand, Ref):
        return of(operand.id)
    return ((True, operand),) if isinstance(operand, int | float) else ()


def _computed(function: Function, operands: Sequence[Cases], *, bounds: bool = False) -> Iterator[Case]:
    """Yields the results of a function for each combination of operands. With `bounds`, an operand may be
    given by bounds. A result without elements is None.
    """
    for chosen in combinations(*operands):
        where = all_of(w for w, _ in chosen)
        numbers = [number for _, number in chosen]
        if any(number is None for number in numbers):
            yield where, None
            continue
        if _has_bounds(numbers) and not bounds:
            continue
        try:
            yield where, function(*numbers)
        except (NotFixed, ArithmeticError, ValueError):
            continue


def _kept(made: Made, of: CasesOf) -> Iterator[Case]:
    """The elements are some of those of the operand."""
    ref, result = made.ref("input"), made.values.get(made.node.results[made.place])
    read_anew = made.op == "view" and _dtype(result) != _dtype(made.get("input"))
    if ref is not None and not read_anew:
        yield from of(ref)


def _largest(made: Made, of: CasesOf) -> Iterator[Case]:
    """Some element of one tensor; not its index."""
    if made.place == 0 and len(made.node.refs) == 1:
        yield from _kept(made, of)


def _middle(made: Made, of: CasesOf) -> Iterator[Case]:
    """Some element of one tensor; of none torch makes NaN."""
    some = negate(eq(product(made.shape), 0))
    yield from ((all_of((where, some)), number) for where, number in _largest(made, of) if number is not None)


def _spread(made: Made, of: CasesOf) -> Iterator[Case]:
    """Numbers that are all the same do not deviate from their mean. Of one number alone the deviation may be
    NaN; of few short numbers the sum is exact.
    """
    ref, count = made.ref("input"), made.size(made.get("dim"))
    if ref is not None and isinstance(count, int) and 1 < count <= FEW:
        yield from ((where, 0) for where, n in of(ref) if isinstance(n, int | float) and n == n)


def _places(made: Made, of: CasesOf) -> Iterator[Case]:
    """The places of elements other than 0. There may be none."""
    ref = made.ref("input")
    if ref is not None:
        yield from ((where, None) for where, truth in _truths(of(ref)) if not truth)


def _joined(made: Made, of: CasesOf) -> Iterator[Case]:
    """The elements of several tensors. Some tensors may have none."""
    members = made.node.get("tensors")
    if not isinstance(members, tuple) or len(members) > MOST:
        return
    known: list[Case] = [(True, None)]
    for member in members:
        pairs = combinations(known, _of(member, of))
        each = (((one, other), both) for (one, a), (other, b) in pairs for both in _side_by_side(a, b))
        known = [(all_of(where), both) for where, both in each][:MOST]
    yield from known


def _same(a: Number, b: Number) -> bool:
    return a == b or (a != a and b != b)


def _side_by_side(a: Number, b: Number) -> Iterator[Number]:
    """Yields what is known of elements when some are one number, or within its bounds, and the others
    another: that number if both are the same, else bounds of all, unless one of the numbers is not finite.
    """
    if a is None or b is None or _same(a, b):
        yield b if a is None else a
        return
    with suppress(NotFixed):
        ends = (*_ends(a), *_ends(b))
        if all(abs(end) <= BOUNDED for end in ends):
            yield Between(min(ends), max(ends))


def _triangle(made: Made, of: CasesOf) -> Iterator[Case]:
    """The elements of a matrix after some were replaced by 0."""
    for where, number in _of(made.node.get("input"), of):
        yield from ((where, each) for each in ((None,) if number is None else _side_by_side(0, number)))


def _averaged(made: Made, of: CasesOf) -> Iterator[Case]:
    """Means of few elements, which lie where these do; zeros have a mean of 0."""
    few = isinstance(count := product(made.shape), int) and count <= FEW
    known = _of(made.node.get("input"), of)
    yield from ((where, number) for where, number in known if number == 0)
    others: Cases = tuple((where, number) for where, number in known if number is not None and number != 0)
    if few:
        yield from _computed(lambda x: _rounded(*_ends(x)), [others], bounds=True)


def _broadcast(made: Made, of: CasesOf) -> Iterator[Case]:
    """The tensor at the place of the result."""
    members = made.node.get("tensors")
    if isinstance(members, tuple):
        yield from _of(members[made.place], of)


def reduction(neutral: Number, keeps: Sequence[float] = (), *, nan: bool = True) -> Law:
    """Returns the law of a reduction, which of nothing is `neutral`. Of equal numbers it is that number, for
    those that it `keeps`, and NaN of NaN; the sum of n is n times the number.
    """

    def law(made: Made, of: CasesOf) -> Iterator[Case]:
        ref = made.ref("input")
        if ref is None or made.place or made.get("ord", "p") not in (None, 2, "fro"):
            return
        nothing, count = _without(made), made.size(made.get("dim"))
        yield nothing, neutral
        for where, number in of(ref):
            if number is None:
                yield where, neutral
            elif made.op == "sum" and isinstance(count, int):
                yield from ((where, total) for total in _total(number, count))
            elif number in keeps or (nan and number != number):
                yield all_of((where, negate(nothing))), number

    return law


def _total(number: Number, count: int) -> Iterator[Number]:
    """Yields the sum of so many elements: of few where they are rounded."""
    if isinstance(number, Between):
        most = max(abs(number.low), abs(number.high)) * count
        if count <= FEW and most <= BOUNDED:
            wider = most * WIDER + LEAST
            yield Between(number.low * count - wider, number.high * count + wider)
    elif number is not None and (count <= FEW or _is_short(number * count)):
        yield number * count


def _truth(neutral: int) -> Law:
    """Returns the law of `all` and `any`."""

    def law(made: Made, of: CasesOf) -> Iterator[Case]:
        ref = made.ref("input")
        nothing = _without(made)
        yield nothing, neutral
        for where, truth in () if ref is None else _truths(of(ref)):
            truth = neutral if truth is None else truth
            yield where if truth == neutral else all_of((where, negate(nothing))), truth

    return law


def _truths(known: Cases) -> Iterator[tuple[Formula, int | None]]:
    """Yields the cases of the truths of elements; None where there are no elements."""
    for where, number in known:
        truth = _truth_of(number)
        if number is None or truth is not None:
            yield where, None if truth is None else int(truth)


def _without(made: Made) -> Formula:
    """Returns the sizes at which the dims that are reduced have no elements."""
    shape, dim = made.shape, made.get("dim")
    dims = dim if isinstance(dim, tuple) else (dim,)
    if dims in ((), (None,)):
        return any_of(eq(n, 0) for n in shape)
    if not all(isinstance(d, int) and -len(shape) <= d < len(shape) for d in dims):
        return False
    return any_of(eq(shape[d], 0) for d in dims)


def _contracted(made: Made, of: CasesOf) -> Iterator[Case]:
    """A matrix product. Each of its elements is a sum, and a sum of nothing is 0."""
    if made.shape and made.ref("bias") is None:
        yield eq(made.shape[-1], 0), 0


def _both(made: Made, of: CasesOf) -> Iterator[Case]:
    """Of two truths one that is False suffices."""
    yield from _connected(made, of, 0)


def _either(made: Made, of: CasesOf) -> Iterator[Case]:
    yield from _connected(made, of, 1)


def _connected(made: Made, of: CasesOf, settling: int) -> Iterator[Case]:
    operands = dict(made.node.args)
    sides = [(*_truths(_of(operands.get(name), of)),) for name in ("input", "other")]
    masks = all(_is_mask(made, operands.get(name)) for name in ("input", "other"))
    if not masks and not made.op.startswith("logical"):
        return
    yield from ((w, truth) for w, truth in (*sides[0], *sides[1]) if truth in (None, settling))
    yield from _computed(lambda a, b: int(bool(a or b if settling else a and b)), sides)


def _is_mask(made: Made, operand: Any) -> bool:
    value = made.values.get(operand.id) if isinstance(operand, Ref) else operand
    return value.dtype == "bool" if isinstance(value, Tensor) else isinstance(value, bool)


def _chosen(made: Made, of: CasesOf) -> Iterator[Case]:
    yield from _where(made, of, "condition", "input", "other")


def _filled(made: Made, of: CasesOf) -> Iterator[Case]:
    yield from _where(made, of, "mask", "value", "input")


def _where(made: Made, of: CasesOf, mask: str, first: str, second: str) -> Iterator[Case]:
    """Each element is that of one operand or of the other."""
    operands = dict(made.node.args)
    known, *sides = (_of(operands.get(name), of) for name in (mask, first, second))
    for (one, a), (other, b) in combinations(*sides):
        found = (None,) if a is None or b is None else _side_by_side(a, b)
        yield from ((all_of((one, other)), both) for both in found)
    for where, truth in _truths(known):
        if truth is None:
            yield where, None
            continue
        for there, number in sides[0] if truth else sides[1]:
            yield all_of((where, there)), number


# ---- functions of numbers


def _compared(op: str) -> Function:
    decide = getattr(operator, op)

    def compared(a: Bounded, b: Bounded) -> Number:
        """Numbers that are rounded to the other's dtype have to be far enough away from it."""
        if _has_bounds((a, b)):
            return _of_bounds(a, b)
        assert not isinstance(a, Between) and not isinstance(b, Between)
        most = max(abs(a), abs(b))
        far = abs(a - b) > most / 64 and most > SMALLEST
        if math.isfinite(a) and math.isfinite(b) and not far and not (_is_short(a) and _is_short(b)):
            raise NotFixed
        return int(decide(a, b))

    def _of_bounds(a: Bounded, b: Bounded) -> Number:
        """Bounds that do not overlap decide; where they do, all elements may still be on one side."""
        one, other = _ends(a), _ends(b)
        apart = min(one) > max(other) or max(one) < min(other)
        found = {int(decide(*corner)) for corner in combinations(one, other)}
        return found.pop() if len(found) == 1 and (apart or op not in ("eq", "ne")) else _fail()

    return compared


def _times(a: float, b: float) -> float:
    return a * b if all(abs(side) <= LARGEST or side != side for side in (a, b)) else _fail()


def _divided(a: Bounded, b: Bounded) -> Bounded:
    """By zero only NaN is known, since zero may have either sign."""
    if isinstance(b, Between):
        return _fail() if b.low <= 0 <= b.high else monotonic(operator.truediv)(a, b)
    if b == 0:
        return NAN if a == 0 or a != a else _fail()
    return monotonic(operator.truediv)(a, b) if abs(b) > SMALLEST else _fail()


def _rest(a: float, b: float) -> Number:
    return a % b if all(math.isfinite(side) and _is_short(side) for side in (a, b)) else _fail()


def _real(op: str) -> Function:
    """Returns a function that makes NaN of NaN, and whose value at 0 is known. If it rises, it maps the
    bounds of a number to bounds.
    """

    def computed(x: Bounded) -> Bounded:
        if not isinstance(x, Between) and (x != x or (x == 0 and op in AT_ZERO)):
            return NAN if x != x else AT_ZERO[op]
        return _rounded(*map(REAL[op], _ends(x))) if op in REAL else _fail()

    return computed


def _power(a: Bounded, b: Bounded) -> Bounded:
    """Of bounds, and to a power that is no whole number, only for a base that is not negative."""
    if b == 1:
        return a
    if not isinstance(a, Between) and isinstance(b, int) and b >= 0:
        return a**b
    bases, exponents = _ends(a), _ends(b)
    if a == 1 or (a == 0 and min(exponents) > 0):
        return a
    if not all(base >= 0 for base in bases):
        raise NotFixed
    return _rounded(*(base**exponent for base, exponent in combinations(bases, exponents)))


def _size(x: Bounded) -> Bounded:
    if not isinstance(x, Between):
        return abs(x)
    ends = abs(x.low), abs(x.high)
    return Between(0 if x.low <= 0 <= x.high else min(ends), max(ends))


def _squared(x: Bounded) -> Bounded:
    return monotonic(_times)(_size(x), _size(x)) if isinstance(x, Between) else x * x


def _of_floats(is_so: Callable[[float], bool]) -> Function:
    """Returns a condition on floats that all finite ones meet, or none."""
    return lambda x: int(is_so(0.0 if isinstance(x, Between) else x))


def _least(a: float, b: float) -> float:
    return NAN if a != a or b != b else min(a, b)


def _most(a: float, b: float) -> float:
    return NAN if a != a or b != b else max(a, b)


def _clamped(made: Made, of: CasesOf) -> Iterator[Case]:
    functions = {"min": _most, "max": _least}
    given = [name for name in functions if made.get(name) is not None]
    operands = [_of(made.node.get(name), of) for name in ("input", *given)]

    def clamped(x: float, *ends: float) -> float:
        return reduce(lambda y, end: functions[end[0]](y, end[1]), zip(given, ends, strict=True), x)

    yield from _computed(monotonic(clamped, exact=True), operands, bounds=True)


def _without_nan(x: Bounded) -> Bounded:
    if isinstance(x, Between):
        return x
    return 0 if x != x else x if math.isfinite(x) else _fail()


MOVES: Final = (
    "view reshape flatten unflatten ravel squeeze unsqueeze transpose permute t expand expand_as "
    "broadcast_to repeat getitem select narrow slice index index_select gather flip roll clone detach "
    "contiguous alias to _to_copy type float double half bfloat16 long int short bool view_as "
    "lift_fresh_copy repeat_interleave diagonal unfold take movedim masked_select split chunk "
    "split_with_sizes unbind tensor_split swapaxes swapdims tile amax amin atleast_1d type_as "
    "T mT H"
)
"""Operators that return some elements of their operand."""
ORDERING: Final = "max min topk sort msort kthvalue mode cummax cummin".split()
"""Operators whose first result has some elements of their operand."""
AT_ZERO: Final = {
    **dict.fromkeys("exp cos cosh exp2".split(), 1.0),
    **dict.fromkeys("sin sinh tan tanh asin atan erf expm1 log1p sqrt".split(), 0.0),
    **dict.fromkeys("log log2 log10".split(), -INF),
    "sigmoid": 0.5,
}
REAL: Final[Mapping[str, Callable[[float], float]]] = {
    **{op: FUNCTIONS[op] for op in "exp exp2 expm1 log log2 log10 log1p sqrt tanh atan asinh sinh".split()},
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
}
"""Functions that rise, whose kernels err by few roundings."""
LAWS: Final[Mapping[str, Law]] = {
    **dict.fromkeys(MOVES.split(), _kept),
    **dict.fromkeys((*ORDERING, *DISTINCT), _largest),
    **dict.fromkeys(("median", "nanmedian"), _middle),
    **dict.fromkeys(("std", "var"), _spread),
    **dict.fromkeys(("tril", "triu"), _triangle),
    **dict.fromkeys(("adaptive_avg_pool1d", "adaptive_avg_pool2d"), _averaged),
    **dict.fromkeys(PICKING, _places),
    **dict.fromkeys(("cat", "stack", "hstack", "vstack"), _joined),
    "broadcast_tensors": _broadcast,
    "sum": reduction(0, (0,)),
    **dict.fromkeys(("norm", "vector_norm", "linalg_vector_norm", "linalg_norm"), reduction(0, (0,))),
    "nansum": reduction(0, (0,), nan=False),
    "prod": reduction(1, (0, 1)),
    "mean": reduction(NAN, (0,)),
    "logsumexp": reduction(-INF, ()),
    "count_nonzero": reduction(0, (0,), nan=False),
    **dict.fromkeys(("all", "_is_all_true"), _truth(1)),
    **dict.fromkeys(("any", "_is_any_true"), _truth(0)),
    **dict.fromkeys("mm bmm matmul mv dot linear".split(), _contracted),
    **dict.fromkeys(("logical_and", "bitwise_and"), _both),
    **dict.fromkeys(("logical_or", "bitwise_or"), _either),
    "where": _chosen,
    "masked_fill": _filled,
    "clamp": _clamped,
    "clamp_min": _rising(_most, "input", "min", exact=True),
    "clamp_max": _rising(_least, "input", "max", exact=True),
    **{op: _comparing(op) for op in COMPARISONS},
    **{op: elementwise(_real(op), "input", bounds=True) for op in AT_ZERO.keys() | REAL},
    **dict.fromkeys("full full_like new_full".split(), _filled_with),
    "add": _rising(operator.add, "input", "other"),
    "sub": _rising(operator.sub, "input", "other"),
    "rsub": _rising(lambda a, b: b - a, "input", "other"),
    "mul": _rising(_times, "input", "other"),
    "div": elementwise(_divided, "input", "other", bounds=True),
    "reciprocal": elementwise(lambda x: _divided(1, x), "input", bounds=True),
    "remainder": elementwise(_rest, "input", "other"),
    "bernoulli": lambda made, of: ((is_number(made.get("p"), number), number) for number in (0, 1)),
    "pow": elementwise(_power, "input", "exponent", bounds=True),
    "minimum": _rising(_least, "input", "other", exact=True),
    "maximum": _rising(_most, "input", "other", exact=True),
    "neg": _rising(operator.neg, "input", exact=True),
    "abs": elementwise(_size, "input", bounds=True),
    "square": elementwise(_squared, "input", bounds=True),
    "relu": _rising(lambda x: _most(x, 0), "input", exact=True),
    **{op.__name__: _rising(op, "input", exact=True) for op in (math.floor, math.ceil, round, math.trunc)},
    "isnan": elementwise(_of_floats(math.isnan), "input", bounds=True),
    "isinf": elementwise(_of_floats(math.isinf), "input", bounds=True),
    "isfinite": elementwise(_of_floats(math.isfinite), "input", bounds=True),
    "logical_not": elementwise(operator.not_, "input"),
    "nan_to_num": elementwise(_without_nan, "input", bounds=True),
    **dict.fromkeys(
        "floor_divide fmod sign bitwise_xor lshift rshift".split(),
        elementwise(lambda *numbers: _fail(), "input", "other"),
    ),
}
"""For each operator the cases of its result."""
