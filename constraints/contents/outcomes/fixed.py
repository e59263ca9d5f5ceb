"""Elements that are one number for all data, at some sizes: the sum of nothing is 0, its mean is NaN, and
`all` of nothing is true.

A value has cases: sizes, and the number that each of its elements is at these. Numbers are kept only where
every dtype of floats holds them.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import product as combinations
from typing import Any, Final, TypeAlias

from ...ir.language import Case, Cases, Tensor, Value
from ...ir.program import Ref
from ...terms.dims import Dim, maximum, minimum
from ...terms.formula import Formula, all_of, any_of, eq, le, negate
from ..dtypes import INTEGRAL
from ..masks import COMPARISONS, one_value, truths_of
from .constancy import NANS, SPREADS, Made

Number: TypeAlias = "int | float | None"
"""What each element is; None where there are no elements."""
CasesOf: TypeAlias = Callable[[int], Cases]
"""Returns the cases of a value, by its reference."""
Law: TypeAlias = "Callable[[Made, CasesOf], Iterator[Case]]"
Function: TypeAlias = Callable[..., Number]

MOST: Final = 8
"""At most so many cases of one value are followed."""
BITS: Final = 8
"""Bits of the significand of the shortest float."""
SMALLEST: Final = 2.0**-21
LARGEST: Final = 2.0**15
"""Numbers between these two are neither zero nor infinity in any dtype of floats."""
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
    found = truths_of(value) if isinstance(value, Tensor) and value.dtype == "bool" else None
    return () if found is None else held([(found.every, 1), (negate(found.some), 0)], value)


def outcomes(known: Cases) -> tuple[Formula, Formula]:
    """Returns the sizes at which the truth of an element is True, and those at which it is False."""
    numbers = [(where, number) for where, number in known if number is not None]
    return any_of(w for w, number in numbers if number), any_of(w for w, number in numbers if not number)


def comparison(op: str, known: Cases, number: float) -> Cases:
    """Returns the cases of a comparison of a value with a number."""
    return tuple(_computed(_compared(getattr(operator, op)), (known, ((True, number),))))


def equality(values: Sequence[Cases]) -> Cases:
    """Returns the cases of the equality of values of one shape; of none it holds."""
    found = [tuple(zip(*chosen, strict=True)) for chosen in combinations(*values)]
    return tuple((all_of(where), int(all(first == n for n in rest))) for where, (first, *rest) in found)


def number_of_results(op: str, number: Number, input: Tensor, named: Mapping[str, Any]) -> Dim | None:
    """Returns how many results an operator has of a tensor of which each element is the number."""
    match op:
        case "bincount":
            least = named.get("minlength", 0)
            return least if number is None else maximum(least, int(number) + 1)
        case "one_hot":
            return None if number is None else int(number) + 1
        case _ if op in DISTINCT and named.get("dim") is None:
            return 0 if number is None else minimum(1, input.numel)
        case _ if op in PICKING:
            return input.numel if number else 0
    return None


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
        return int(bool(number))
    if dtype in INTEGRAL:
        if not math.isfinite(number) or not (-128 if dtype.startswith("int") else 0) <= int(number) <= 127:
            raise NotFixed
        return int(number)
    if dtype is None or not dtype.startswith(("float", "bfloat")):
        raise NotFixed
    return float(number) if _is_short(number) else _fail()


def _is_short(number: float) -> bool:
    """Returns whether floats of every dtype hold the number, with some digits to spare on either side."""
    if not math.isfinite(number):
        return True
    over, under = float(number).as_integer_ratio()
    return over.bit_length() <= BITS and under.bit_length() <= BITS


def _fail() -> Number:
    raise NotFixed


# ---- laws


def elementwise(function: Function, *names: str) -> Law:
    """Returns the law of a function of operands at the same place: next to one without elements, whatever
    the others are, there is nothing.
    """

    def law(made: Made, of: CasesOf) -> Iterator[Case]:
        operands = [_of(dict(made.node.args).get(name), of) for name in names]
        yield from ((where, None) for known in operands for where, number in known if number is None)
        if made.get("alpha") in (None, 1) and made.get("rounding_mode") is None:
            yield from _computed(function, operands)

    return law


def _of(operand: Any, of: CasesOf) -> Cases:
    """Returns the cases of an operand: a value of the program, or a number."""
    if isinstance(operand, Ref):
        return of(operand.id)
    return ((True, operand),) if isinstance(operand, int | float) else ()


def _computed(function: Function, operands: Sequence[Cases]) -> Iterator[Case]:
    """Yields the results of a function of each combination of operands; of no elements there are none."""
    for chosen in combinations(*operands):
        where = all_of(w for w, _ in chosen)
        numbers = [number for _, number in chosen]
        if any(number is None for number in numbers):
            yield where, None
            continue
        try:
            yield where, function(*numbers)
        except (NotFixed, ArithmeticError):
            continue


def _kept(made: Made, of: CasesOf) -> Iterator[Case]:
    """The elements are some of those of the operand."""
    ref, result = made.ref("input"), made.values.get(made.node.results[made.place])
    read_anew = made.op == "view" and _dtype(result) != _dtype(made.get("input"))
    if ref is not None and not read_anew:
        yield from of(ref)


def _largest(made: Made, of: CasesOf) -> Iterator[Case]:
    """Some element of one tensor; not its index."""
    if made.place == 0 and made.ref("other") is None:
        yield from _kept(made, of)


def _places(made: Made, of: CasesOf) -> Iterator[Case]:
    """The places of elements other than 0, of which there may be none."""
    ref = made.ref("input")
    if ref is not None:
        yield from ((where, None) for where, number in of(ref) if not number)


def _joined(made: Made, of: CasesOf) -> Iterator[Case]:
    """The elements of several tensors, of which some may have none."""
    members = made.node.get("tensors")
    if not isinstance(members, tuple) or len(members) > MOST:
        return
    known: list[Case] = [(True, None)]
    for member in members:
        pairs = combinations(known, _of(member, of))
        known = [
            (all_of((one, other)), b if a is None else a)
            for (one, a), (other, b) in pairs
            if a is None or b is None or _same(a, b)
        ][:MOST]
    yield from known


def _same(a: Number, b: Number) -> bool:
    return a == b or (a != a and b != b)


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
                yield where, number * count
            elif number in keeps or (nan and number != number):
                yield all_of((where, negate(nothing))), number

    return law


def _truth(neutral: int) -> Law:
    """Returns the law of `all` and `any`."""

    def law(made: Made, of: CasesOf) -> Iterator[Case]:
        ref = made.ref("input")
        nothing = _without(made)
        yield nothing, neutral
        for where, number in () if ref is None else of(ref):
            truth = neutral if number is None else int(bool(number))
            yield where if truth == neutral else all_of((where, negate(nothing))), truth

    return law


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
    """A matrix product, of which each element is a sum; of nothing it is 0."""
    if made.shape and made.ref("bias") is None:
        yield eq(made.shape[-1], 0), 0


def _both(made: Made, of: CasesOf) -> Iterator[Case]:
    """Of two truths one that is False suffices."""
    yield from _connected(made, of, 0)


def _either(made: Made, of: CasesOf) -> Iterator[Case]:
    yield from _connected(made, of, 1)


def _connected(made: Made, of: CasesOf, settling: int) -> Iterator[Case]:
    operands = dict(made.node.args)
    sides = [_of(operands.get(name), of) for name in ("input", "other")]
    masks = all(_is_mask(made, operands.get(name)) for name in ("input", "other"))
    if not masks and not made.op.startswith("logical"):
        return
    for where, number in (*sides[0], *sides[1]):
        if number is None or bool(number) == bool(settling):
            yield where, None if number is None else settling
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
    yield from _computed(lambda a, b: a if _same(a, b) else _fail(), sides)
    for where, truth in known:
        if truth is None:
            yield where, None
            continue
        for there, number in sides[0] if truth else sides[1]:
            yield all_of((where, there)), number


# ---- functions of numbers


def _compared(op: Callable[[Any, Any], Any]) -> Function:
    def compared(a: float, b: float) -> Number:
        """Numbers that are rounded to the other's dtype have to be far enough away from it."""
        most = max(abs(a), abs(b))
        far = abs(a - b) > most / 64 and most > SMALLEST
        if math.isfinite(a) and math.isfinite(b) and not far and not (_is_short(a) and _is_short(b)):
            raise NotFixed
        return int(op(a, b))

    return compared


def _times(a: float, b: float) -> Number:
    return a * b if all(abs(side) <= LARGEST or side != side for side in (a, b)) else _fail()


def _divided(a: float, b: float) -> Number:
    """By zero only NaN is known, since zero may have either sign."""
    if b == 0:
        return NAN if a == 0 or a != a else _fail()
    return a / b if abs(b) > SMALLEST else _fail()


def _rest(a: float, b: float) -> Number:
    return a % b if math.isfinite(a) and math.isfinite(b) and _is_short(b) else _fail()


def _at_zero(number: float) -> Function:
    """Returns a function of which only the value at 0 is known, and that NaN becomes NaN."""
    return lambda x: NAN if x != x else number if x == 0 else _fail()


def _power(a: float, b: float) -> Number:
    return a**b if isinstance(b, int) and b >= 0 else _fail()


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

    yield from _computed(clamped, operands)


def _whole(x: float) -> Number:
    return x if x % 1 == 0 else _fail()


def _without_nan(x: float) -> Number:
    return 0 if x != x else x if math.isfinite(x) else _fail()


MOVES: Final = (
    "view reshape flatten unflatten ravel squeeze unsqueeze transpose permute t expand expand_as "
    "broadcast_to repeat getitem select narrow slice index index_select gather flip roll clone detach "
    "contiguous alias to _to_copy type float double half bfloat16 long int short bool view_as "
    "lift_fresh_copy repeat_interleave diagonal unfold take movedim masked_select split chunk "
    "split_with_sizes unbind tensor_split swapaxes swapdims tile amax amin atleast_1d type_as"
)
"""Operators that return some elements of their operand."""
AT_ZERO: Final = {
    **dict.fromkeys("exp cos cosh exp2".split(), 1.0),
    **dict.fromkeys("sin sinh tan tanh asin atan erf expm1 log1p sqrt".split(), 0.0),
    **dict.fromkeys("log log2 log10".split(), -INF),
    "sigmoid": 0.5,
}
LAWS: Final[Mapping[str, Law]] = {
    **dict.fromkeys(MOVES.split(), _kept),
    **dict.fromkeys(("max", "min", *DISTINCT), _largest),
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
    "clamp_min": elementwise(_most, "input", "min"),
    "clamp_max": elementwise(_least, "input", "max"),
    **{op: elementwise(_compared(getattr(operator, op)), "input", "other") for op in COMPARISONS},
    **{op: elementwise(_at_zero(number), "input") for op, number in AT_ZERO.items()},
    "add": elementwise(operator.add, "input", "other"),
    "sub": elementwise(operator.sub, "input", "other"),
    "rsub": elementwise(lambda a, b: b - a, "input", "other"),
    "mul": elementwise(_times, "input", "other"),
    "div": elementwise(_divided, "input", "other"),
    "reciprocal": elementwise(lambda x: _divided(1, x), "input"),
    "remainder": elementwise(_rest, "input", "other"),
    "pow": elementwise(_power, "input", "exponent"),
    "minimum": elementwise(_least, "input", "other"),
    "maximum": elementwise(_most, "input", "other"),
    "neg": elementwise(operator.neg, "input"),
    "abs": elementwise(abs, "input"),
    "square": elementwise(lambda x: x * x, "input"),
    "relu": elementwise(lambda x: _most(x, 0), "input"),
    **dict.fromkeys("floor ceil round trunc".split(), elementwise(_whole, "input")),
    "isnan": elementwise(lambda x: x != x, "input"),
    "isinf": elementwise(lambda x: abs(x) == INF, "input"),
    "isfinite": elementwise(lambda x: math.isfinite(x), "input"),
    "logical_not": elementwise(operator.not_, "input"),
    "nan_to_num": elementwise(_without_nan, "input"),
    **dict.fromkeys(
        "floor_divide fmod sign bitwise_xor lshift rshift".split(),
        elementwise(lambda *numbers: _fail(), "input", "other"),
    ),
}
"""For each operator the cases of its result."""
