"""Bounds of elements that data decide, and the comparisons that they settle: no absolute value is negative,
and of n elements no more than n are counted.

NaN lies within no bounds, so a comparison that fails for all numbers holds for no data, and one that holds
for all numbers fails for NaN alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil, floor, isfinite
from typing import Any, Final, NamedTuple, TypeAlias

from ...ir.language import Tensor
from ...ir.program import Ref
from ...terms.dims import Dim, Term, maximum, minimum
from ...terms.formula import Formula, all_of, any_of, ge, lt, negate
from ..elements.dtypes import INTEGRAL
from ..elements.values import extremes, is_data
from ..laws.masks import COMPARISONS, MIRRORED, NEGATIONS, truths_of
from .constancy import Made, ProgramValues

End: TypeAlias = "Dim | float | None"


class Range(NamedTuple):
    """The least and the greatest number that elements may be; None where no bound is known."""

    low: End = None
    high: End = None


class Usual(NamedTuple):
    """The sizes at which a condition is false for all data, and those at which it is true for all data; NaN
    and infinity aside.
    """

    never: Formula = False
    always: Formula = False

    @property
    def negated(self) -> Usual:
        return Usual(self.always, self.never)


class Outlook(NamedTuple):
    """The outcomes of a condition on data: the usual ones, the sizes at which it is true, or false, for all
    data, and those at which it may be the same for all, in a way that is not known. At other sizes some data
    give each of the outcomes that are `possible`; of a condition on what is `drawn` at random alone, perhaps
    others, too.
    """

    usual: Usual = Usual()
    true: Formula = False
    false: Formula = False
    unknown: Formula = False
    possible: frozenset[bool] = frozenset((True, False))
    drawn: bool = False

    @property
    def negated(self) -> Outlook:
        possible = frozenset(not outcome for outcome in self.possible)
        return Outlook(self.usual.negated, self.false, self.true, self.unknown, possible, self.drawn)


CLEAR: Final = Outlook()


ANY: Final = Range()
OPEN: Final = Usual()
DEPTH: Final = 8
"""At most this many operators back bounds are looked for."""


class Ranges:
    """Answers about the values of a program, each found by looking a few calls back."""

    def __init__(self, program: ProgramValues) -> None:
        self._program = program

    def made(self, ref: int) -> Made | None:
        """Returns the call that made a value."""
        return self._program.made(ref)

    def usual(self, ref: int, depth: int = DEPTH) -> Usual:
        """Returns what is usual of a mask, or of the truth of numbers."""
        value, made = self._program.value(ref), self._program.made(ref)
        if isinstance(value, Tensor) and not is_data(value) and (known := truths_of(value)) is not None:
            return Usual(negate(known.some), known.every)
        if made is not None and depth and (law := CONDITIONS.get(made.op)):
            return law(Step(self, made, depth - 1))
        mask = not isinstance(value, Tensor) or value.dtype == "bool"
        return OPEN if mask else compared("ne", self.of(ref, depth), Range(0, 0))

    def of(self, ref: int, depth: int = DEPTH) -> Range:
        """Returns the bounds of the elements of a value."""
        value, made = self._program.value(ref), self._program.made(ref)
        if not isinstance(value, Tensor):
            return ANY
        if value.dtype == "bool":
            never, always = self.usual(ref, depth)
            return Range(int(always is True), int(never is not True))
        if value.elements is not None and (span := extremes(value)) is not None:
            return Range(span.low, span.high)
        first = made is not None and (not made.place or made.op in ("broadcast_tensors", "where"))
        law = BOUNDS.get(made.op) if made is not None and depth and first else None
        found = ANY if law is None or made is None else law(Step(self, made, depth - 1))
        return Range(0, found.high) if found.low is None and (value.dtype or "").startswith("u") else found


class Step(NamedTuple):
    """A call, with the bounds of its operands."""

    ranges: Ranges
    made: Made
    depth: int

    def range(self, name: str) -> Range:
        """Returns the bounds of an operand."""
        return self.of(self.made.node.get(name))

    def of(self, value: Any) -> Range:
        return self.ranges.of(value.id, self.depth) if isinstance(value, Ref) else range_of(value)

    def operand(self, name: str) -> Made | None:
        """Returns the call that made an operand."""
        ref = self.made.ref(name)
        return None if ref is None else self.ranges.made(ref)

    def usual(self, name: str = "input") -> Usual:
        """Returns what is usual of an operand."""
        ref = self.made.ref(name)
        return OPEN if ref is None else self.ranges.usual(ref, self.depth)


Law: TypeAlias = Callable[[Step], Range]
Condition: TypeAlias = Callable[[Step], Usual]


def _at_least(one: End, other: End) -> Formula:
    if one is None or other is None or not _in_terms(one, other):
        return one is not None and other is not None and bool(one >= other)  # type: ignore[operator]
    return ge(_down(one), _up(other))


def below(one: End, other: End) -> Formula:
    """Returns whether one end is certainly less than another; an integer is, if it is below the next."""
    if one is None or other is None or not _in_terms(one, other):
        return one is not None and other is not None and bool(one < other)  # type: ignore[operator]
    return lt(_down(one), _up(other))


def _in_terms(*ends: End) -> bool:
    return any(isinstance(end, Term) for end in ends)


def _down(end: Dim | float) -> Dim:
    return floor(end) if isinstance(end, float) else end


def _up(end: Dim | float) -> Dim:
    return ceil(end) if isinstance(end, float) else end


def _ends(range: Range, *others: End) -> tuple[Any, Any]:
    """Returns bounds that can be computed with the others: integers, where one of all is a term."""
    low, high = range
    if not _in_terms(low, high, *others):
        return range
    return None if low is None else _down(low), None if high is None else _up(high)


def _least(ends: list[Any]) -> Any:
    return minimum(*map(_down, ends)) if _in_terms(*ends) else min(ends)


def _greatest(ends: list[Any]) -> Any:
    return maximum(*map(_up, ends)) if _in_terms(*ends) else max(ends)


def range_of(value: Any) -> Range:
    """Returns the bounds of a number."""
    match value:
        case int() | Term():
            return Range(value, value)
        case float() if isfinite(value):
            return Range(value, value)
    return ANY


def compared(op: str, x: Range, y: Range) -> Usual:
    """Returns what bounds of both sides say of a comparison."""
    if op in ("gt", "ge"):
        return compared(MIRRORED[op], y, x)
    if op == "lt":
        return Usual(_at_least(x.low, y.high), below(x.high, y.low))
    if op == "le":
        return Usual(below(y.high, x.low), _at_least(y.low, x.high))
    apart = any_of((below(x.high, y.low), below(y.high, x.low)))
    same = all_of((_at_least(x.low, y.high), _at_least(y.low, x.high)))
    return Usual(apart, same) if op == "eq" else Usual(same, apart)


def _comparison(step: Step) -> Usual:
    """A comparison, of a value with itself perhaps."""
    op, alike = step.made.op, step.made.alike()
    found = compared(op, step.range("input"), step.range("other"))
    if op in ("eq", "le", "ge"):
        return Usual(found.never, any_of((found.always, alike)))
    return Usual(any_of((found.never, alike)), found.always)


def _within(low: int | None, high: int | None) -> Law:
    return lambda step: Range(low, high)


def _same(step: Step) -> Range:
    return step.range("input")


def _joined(*names: str) -> Law:
    def joined(step: Step) -> Range:
        given = dict(step.made.node.args)
        members = [m for v in map(given.get, names) for m in (v if isinstance(v, tuple) else (v,))]
        return _hull([step.of(member) for member in members])

    return joined


def _selected(step: Step) -> Range:
    """Elements of two tensors, or, with a condition alone, the indices of true elements."""
    return _joined("input", "other")(step) if "input" in dict(step.made.node.args) else Range(0)


def _hull(ranges: list[Range]) -> Range:
    lows, highs = [r.low for r in ranges], [r.high for r in ranges]
    known = [bool(ends) and all(end is not None for end in ends) for ends in (lows, highs)]
    return Range(_least(lows) if known[0] else None, _greatest(highs) if known[1] else None)


def _summed(step: Step) -> Range:
    """The sum of n elements lies between n times the bounds of one; that of shares is 1."""
    if (of := _shared(step)) is not None:
        summed = step.made.get("dim")
        if summed in (of, (of,)) if summed is not None else len(step.made.shape) == 1:
            return Range(1, 1)
    count = step.made.size(step.made.get("dim"))
    return Range(*(None if end is None else end * count for end in _ends(step.range("input"), count)))


def _shared(step: Step) -> Any:
    """Returns the dim along which the operand is shares of 1: a softmax, or numbers over their sum."""
    made = step.operand("input")
    if made is None or made.op != "div":
        return made.get("dim") if made is not None and made.op in SUMMING_TO_ONE else None
    ref = made.ref("other")
    total = None if ref is None else step.ranges.made(ref)
    summed = total is not None and total.op == "sum" and total.ref("input") == made.ref("input")
    dim = total.get("dim") if total is not None and summed else None
    return dim[0] if isinstance(dim, tuple) and len(dim) == 1 else dim


def _quotient(step: Step) -> Range:
    """Numbers that are not negative, over their sum."""
    total = step.operand("other")
    summed = total is not None and total.op == "sum" and total.ref("input") == step.made.ref("input")
    return Range(0, 1) if summed and step.range("input").low in (0, 1) else ANY


def _broadcast(step: Step) -> Range:
    """The tensor at the place of the result."""
    given = step.made.node.get("tensors")
    return step.of(given[step.made.place]) if isinstance(given, tuple) else ANY


def _plus(step: Step) -> Range:
    if step.made.get("alpha") not in (None, 1):
        return ANY
    other = step.range("other")
    return _sum(step.range("input"), other if step.made.op == "add" else _negative(other))


def _sum(x: Range, y: Range) -> Range:
    sides = zip(_ends(x, *y), _ends(y, *x), strict=True)
    return Range(*(None if a is None or b is None else a + b for a, b in sides))


def _negative(x: Range) -> Range:
    return Range(None if x.high is None else -x.high, None if x.low is None else -x.low)


def _times(step: Step) -> Range:
    """Products of what is not negative, and squares, are not negative."""
    sides = (step.range("input"), step.range("other"))
    return Range(0) if step.made.alike() is True or all(r.low in (0, 1) for r in sides) else ANY


def _rest(step: Step) -> Range:
    """Remainders of a positive integer; those of integers are below it."""
    divisor, value = step.made.get("other"), step.made.get("input")
    if not isinstance(divisor, int) or divisor < 1:
        return ANY
    return Range(0, divisor - 1 if isinstance(value, Tensor) and value.dtype in INTEGRAL else divisor)


def _power(step: Step) -> Range:
    exponent = step.made.get("exponent")
    return Range(0) if isinstance(exponent, int | float) and exponent % 2 == 0 else ANY


def _clamped(step: Step) -> Range:
    """Numbers of the range that are brought between two others."""
    (low, high), least, most = step.range("input"), step.range("min"), step.range("max")
    given = [end for end in (low, least.low) if end is not None]
    others = [end for end in (high, most.high) if end is not None]
    return Range(_greatest(given) if given else None, _least(others) if others else None)


def _absolute(step: Step) -> Range:
    low, high = step.range("input")
    if low is None or high is None or _in_terms(low, high):
        return Range(0)
    return Range(0, max(-low, high))  # type: ignore[type-var]


def _either(step: Step) -> Usual:
    one, other = step.usual(), step.usual("other")
    return Usual(all_of((one.never, other.never)), any_of((one.always, other.always)))


def _both(step: Step) -> Usual:
    one, other = step.usual(), step.usual("other")
    return Usual(any_of((one.never, other.never)), all_of((one.always, other.always)))


def _finite(step: Step) -> Usual:
    return Usual(always=True)


VIEWS: Final = (
    "view reshape flatten unflatten ravel squeeze unsqueeze transpose permute t expand expand_as "
    "broadcast_to repeat getitem select narrow slice index index_select gather flip roll clone detach "
    "contiguous alias to _to_copy type float double long int half sort max min amax amin median mean "
    "quantile cummax cummin lift_fresh_copy repeat_interleave diagonal unfold take tile movedim "
    "masked_select max_pool1d max_pool2d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_max_pool2d "
    "nan_to_num"
)
"""Operators whose results lie within the bounds of their input. A cast to integers rounds towards 0, within
bounds that are integers.
"""
SUMMING_TO_ONE: Final = frozenset({"softmax", "_softmax"})
SHARES: Final = "sigmoid softmax _softmax hardsigmoid gumbel_softmax"
WAVES: Final = "tanh sin cos erf sign softsign cosine_similarity"
POSITIVE: Final = (
    "relu exp exp2 square softplus norm vector_norm linalg_vector_norm linalg_norm matrix_norm std var "
    "mse_loss l1_loss smooth_l1_loss huber_loss cross_entropy cdist dist pairwise_distance pdist cosh sqrt "
    "rsqrt"
)
BOUNDS: Final[Mapping[str, Law]] = {
    **dict.fromkeys(VIEWS.split(), _same),
    **dict.fromkeys(SHARES.split(), _within(0, 1)),
    **dict.fromkeys(WAVES.split(), _within(-1, 1)),
    **dict.fromkeys(POSITIVE.split(), _within(0, None)),
    **dict.fromkeys("log_softmax _log_softmax logsigmoid".split(), _within(None, 0)),
    **dict.fromkeys(("add", "sub"), _plus),
    **dict.fromkeys(("cat", "stack"), _joined("tensors")),
    "where": _selected,
    "relu6": _within(0, 6),
    "abs": _absolute,
    "sum": _summed,
    "neg": lambda step: _negative(step.range("input")),
    "mul": _times,
    "div": _quotient,
    "broadcast_tensors": _broadcast,
    "pow": _power,
    "remainder": _rest,
    "clamp": _clamped,
    "clamp_min": _clamped,
    "clamp_max": _clamped,
}
"""For each operator the bounds of its first result; other operators have none that are known."""
KEEPING: Final = "any all _is_all_true _is_any_true bool view reshape squeeze unsqueeze expand clone"
CONDITIONS: Final[Mapping[str, Condition]] = {
    **dict.fromkeys(COMPARISONS, _comparison),
    **dict.fromkeys(KEEPING.split(), Step.usual),
    **dict.fromkeys(NEGATIONS, lambda step: step.usual().negated),
    **dict.fromkeys(("logical_or", "bitwise_or"), _either),
    **dict.fromkeys(("logical_and", "bitwise_and"), _both),
    **dict.fromkeys("isfinite isreal".split(), _finite),
    **dict.fromkeys("isnan isinf isposinf isneginf".split(), lambda step: Usual(never=True)),
}
"""For each operator that makes a mask what is usual of it. Of no elements, and of constants, nothing is meant
here (dataless.py).
"""
