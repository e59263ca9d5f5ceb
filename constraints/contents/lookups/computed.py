"""Elements that are computed one by one from the integers of a range: `(torch.arange(n).half() * 3).long()`.

What a chain of casts, roundings and wraps does to a range has no short form, but it can be computed, number
by number. If all of 0 ... n - 1 occur, and 683 is the first number that becomes an index beyond the table,
then the index is valid exactly for n <= 683.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, count, islice, pairwise
from struct import pack, unpack
from typing import Any, Final, TypeAlias

from ...ir.language import Affine, Piece, Slice, Tensor, product
from ...ir.program import Argument, Ref
from ...terms.dims import Dim, Term, maximum, minimum, substitute
from ...terms.formula import Formula, all_of, any_of, eq, ge, le, negate
from ...terms.sums import triangle
from ..elements.cycles import is_run
from ..elements.dtypes import DIGITS, INTEGRAL
from ..elements.functions import corners, number, symbol_of
from ..elements.shaping import is_permutation
from ..elements.values import ROOTED, of, pieces_of
from ..laws.calls import CASTS, MOVES
from .places import MadeValue, Places

Number: TypeAlias = "int | float"
Function: TypeAlias = Callable[[Number], Number]
Stage: TypeAlias = Callable[[Iterator[Number]], Iterator[Number]]
"""Makes elements, one after the other, from others: each from one of them, or from some of those before."""
SEARCHED: Final = 1 << 16
"""At most this many numbers of a range are computed."""
MOST_SUMS: Final = 1 << 8
"""At most so many sums of the first numbers are compared with a size."""
DEPTH: Final = 16


class NotComputed(Exception):
    """Raised where it is not known what torch computes."""


@dataclass(frozen=True, slots=True)
class Ray:
    """The `count` integers `first`, `first + step`, ...; there are none if `count` is negative."""

    first: int
    step: int
    count: Dim


@dataclass(frozen=True, slots=True)
class ComputedRange:
    """Elements that are made in stages from all integers of some rays, at the sizes that satisfy `given`."""

    rays: tuple[Ray, ...]
    stages: tuple[Stage, ...] = ()
    given: Formula = True
    by_data: bool = False
    order: int = 0
    """1 where the ray goes through the places of a vector from the first to the last, each once, -1 where it
    goes from the last to the first, 0 where that is not known.
    """

    def then(self, function: Function) -> ComputedRange:
        return replace(self, stages=(*self.stages, partial(map, function)))

    def in_place(self, stage: Stage | None, count: Dim) -> ComputedRange:
        """Returns so many elements that a stage makes, in the order of places."""
        (ray,) = self.rays
        stages = self.stages if stage is None else (*self.stages, stage)
        return replace(self, rays=(replace(ray, count=count),), stages=stages)

    def valid(self, is_valid: Callable[[Number], bool]) -> Formula | None:
        """Returns the condition under which all elements are valid; None where it is not found."""
        few: list[Formula] = []
        for ray in self.rays:
            if (first := self._first(ray, is_valid)) is None:
                return None
            few.append(le(ray.count, first))
        return any_of((all_of(few), negate(self.given)))

    def adds_up(self, total: Dim, length: Dim) -> Formula | None:
        """Returns the condition under which numbers, none of them negative, add up to a number; None where it
        is not found.

        The sums of the first of them do not fall, so that those with one sum are next to each other.
        """
        if len(self.rays) != 1 or self.given is not True or self.by_data:
            return None
        (ray,) = self.rays
        if length not in (ray.count, maximum(ray.count, 0)):  # some integers may occur more than once
            return None
        sums = [0]
        try:
            for value in islice(self._values(ray), SEARCHED):
                if value < 0 or (isinstance(total, int) and sums[-1] > total):
                    break
                sums.append(sums[-1] + int(value))
            else:
                return None
        except NotComputed:
            return None
        if isinstance(total, int):
            at = [k for k, found in enumerate(sums) if found == total]
            return all_of((ge(length, at[0]), le(length, at[-1]))) if at else False
        first, step = _progression(sums)
        if all(found == k * first + triangle(k) * step for k, found in enumerate(sums)):
            whole = length * first + triangle(length) * step
            return all_of((le(length, len(sums) - 1), eq(total, whole)))
        if len(sums) > MOST_SUMS:
            return None
        return any_of(all_of((eq(length, k), eq(total, found))) for k, found in enumerate(sums))

    def strides_fit(self, length: Dim) -> Formula | None:
        """Returns the condition under which 64 bits hold the strides and the bytes of a tensor of floats with
        these sizes, none of them negative; None where it is not found.

        The first stride is the product of all sizes but the first, with 1 in place of 0. It does not fall as
        more sizes follow, at either end. Sizes are multiplied from the first one on, so that the product of
        those before a 0 has to fit.
        """
        if self.order == 0 or self.given is not True or self.by_data:
            return None
        (ray,), forwards = self.rays, self.order == 1
        stride, leading, before, none = 1, 1, 1, False
        good = [0]
        try:
            for place, value in enumerate(islice(self._values(ray), SEARCHED)):
                size = int(value)
                stride *= max(size if forwards and place else before, 1)
                if size < 0 or stride >= 1 << 63:
                    return _is_among(length, good)
                if forwards:
                    leading *= size
                else:
                    leading, before = (leading * size if size else 1), size
                none = none or size == 0
                if forwards and leading >= 1 << 64:
                    return _is_among(length, good)
                if leading < 1 << (64 if none else 61):  # torch counts up to 2**63 bytes
                    good.append(place + 1)
        except NotComputed:
            pass
        return None

    def _values(self, ray: Ray) -> Iterator[Number]:
        """Returns the elements that are made from a ray that has no end."""
        values: Iterator[Number] = count(ray.first, ray.step)
        for stage in self.stages:
            values = stage(values)
        return values

    def _first(self, ray: Ray, is_valid: Callable[[Number], bool]) -> int | None:
        """Returns the place of the first number of a ray that becomes an element which is not valid."""
        most = min(ray.count, SEARCHED) if isinstance(ray.count, int) else SEARCHED
        try:
            for place, value in enumerate(islice(self._values(ray), max(most, 0))):
                if not is_valid(value):
                    return place
        except NotComputed:
            return None
        return ray.count if isinstance(ray.count, int) and ray.count <= SEARCHED else None


def _is_among(number: Dim, numbers: list[int]) -> Formula:
    """Returns whether a number is one of these, which rise."""
    first = [n for n, before in zip(numbers, [None, *numbers], strict=False) if before != n - 1]
    last = [n for n, after in zip(numbers, [*numbers[1:], None], strict=False) if after != n + 1]
    return any_of(all_of((ge(number, a), le(number, b))) for a, b in zip(first, last, strict=True))


def _progression(sums: list[int]) -> tuple[int, int]:
    """Returns the first number and the step of an arithmetic progression, given its running sums."""
    numbers = [after - before for before, after in pairwise(sums[:3])]
    return (numbers[0] if numbers else 0), (numbers[1] - numbers[0] if len(numbers) > 1 else 0)


def chains_of(
    places: Places, ref: int, time: int, depth: int = DEPTH, *, one: bool = False
) -> tuple[ComputedRange, ...]:
    """Returns the chains that make the elements of a value, all of them; none where they are not known.

    With `one`, a range is followed to where it is a single ray, in the order of places if possible.
    """
    made, value = places.program.made(ref), places.program.value(ref)
    if not isinstance(value, Tensor) or depth < 0 or not places.is_as_made(ref, time):
        return ()
    plain = _plain(value, places, one)
    if made is None or _is_enough(plain, one):
        return plain
    step = _RangeStep(places, made, value, depth, one)
    for law in (_moved, _sliced, _running, _beside, _by_element):
        if found := law(step):
            return found
    return plain


def _is_enough(plain: tuple[ComputedRange, ...], one: bool) -> bool:
    return bool(plain) and not (one and plain[0].order == 0)


@dataclass(frozen=True, slots=True)
class _RangeStep:
    places: Places
    made: MadeValue
    value: Tensor
    depth: int
    one: bool

    @property
    def args(self) -> dict[str, Argument]:
        return dict(self.made.node.args)

    def chains(self, argument: Argument, *, one: bool = False) -> tuple[ComputedRange, ...]:
        if not isinstance(argument, Ref):
            return ()
        return chains_of(self.places, argument.id, self.made.time, self.depth - 1, one=one or self.one)

    def in_order(self) -> ComputedRange | None:
        """Returns the chain of a vector of integers in the order of its places."""
        source, found = self.tensor(self.args.get("input")), self.chains(self.args.get("input"), one=True)
        plain = source is not None and source.dtype == self.value.dtype and source.dtype in INTEGRAL
        return found[0] if plain and len(found) == 1 and found[0].order else None

    def before(self, made: MadeValue, tensor: Tensor) -> _RangeStep:
        """Returns the step that makes an operand of this one."""
        return _RangeStep(self.places, made, tensor, self.depth - 1, self.one)

    def tensor(self, argument: Argument) -> Tensor | None:
        found = self.places.program.value(argument.id) if isinstance(argument, Ref) else None
        return found if isinstance(found, Tensor) else None


# --- ranges ------------------------------------------------------------------------------------------------


def _plain(value: Tensor, places: Places, one: bool) -> tuple[ComputedRange, ...]:
    """Returns chains without functions if the elements are all integers of some ranges. With `one`, returns
    none unless there is a single ray.
    """
    if value.dtype not in INTEGRAL:
        return ()
    pieces = pieces_of(of(value), value.shape)
    if pieces is None or pieces.slack or pieces.roundings or pieces.and_data:
        return ()
    found: list[ComputedRange] = []
    for piece in pieces.pieces:
        rays = _rays(piece, places)
        if not rays:
            return ()
        order = _order(piece, value) if len(pieces.pieces) == 1 else 0
        found.append(ComputedRange(rays, (), piece.given, pieces.by_data, order))
    return () if one and sum(len(chain.rays) for chain in found) > 1 else tuple(found)


def _rays(piece: Piece, places: Places) -> tuple[Ray, ...]:
    if piece.term is None or piece.over != 1 or not piece.attained or piece.doubt is not False:
        return ()
    term = number(piece)
    if not piece.indices:
        return (Ray(term, 1, 1),) if isinstance(term, int) else ()
    if (line := _line(piece)) is not None:
        start, by, size = line
        last = start + by * (size - 1)
        if isinstance(start, int):
            return (Ray(start, by, size),)
        if isinstance(last, int):
            return (Ray(last, -by, size),)
    ends = corners(term, piece.indices, places.at_least) if is_run(piece) else None
    if ends is None:
        return ()
    low, high = minimum(*ends[0]), maximum(*ends[1])
    if isinstance(low, int):
        return (Ray(low, 1, high - low + 1),)
    if isinstance(high, int):
        return (Ray(high, -1, high - low + 1),)
    if places.at_least(high, 0) and places.at_least(-low, 0):
        return (Ray(0, 1, high + 1), Ray(0, -1, -low + 1))
    return ()


def _line(piece: Piece) -> tuple[Dim, int, Dim] | None:
    """Returns a, s and n, where the numbers are a, a + s, ..., a + s*(n - 1), and s is not 0."""
    if len(piece.indices) != 1 or not piece.indices[0].dense:
        return None
    (index,), term = piece.indices, number(piece)
    start = substitute(term, {index.name: 0})
    by = substitute(term, {index.name: 1}) - start
    linear = isinstance(by, int) and by and term - start - by * symbol_of(index) == 0
    return (start, by, index.size) if linear and isinstance(by, int) else None


def _order(piece: Piece, value: Tensor) -> int:
    """Returns how the ray of a piece, which has one, goes through the places of a vector."""
    line = _line(piece)
    if line is None or value.rank != 1 or piece.fixed or piece.given is not True:
        return 0
    (index,) = piece.indices
    if not index.ordered or index.axis != -1 or index.size != value.shape[0]:
        return 0
    return 1 if isinstance(line[0], int) else -1


# --- elements that are moved, all of them ------------------------------------------------------------------


def _moved(step: _RangeStep) -> tuple[ComputedRange, ...]:
    op, args = step.made.op, step.args
    source = step.tensor(args.get("input"))
    if source is None or source.dtype != step.value.dtype or step.made.place:
        return ()
    repeats = args.get("repeats", 1)
    if op in MOVES and isinstance(repeats, int | Term | tuple):
        turned = {"flip": -1}.get(op, 0 if op in MIXING or source.shape != step.value.shape else 1)
        return tuple([replace(chain, order=chain.order * turned) for chain in step.chains(args["input"])])
    if op == "getitem":
        index = args["index"]
        alone = index[0] if isinstance(index, tuple) and len(index) == 1 else index
        if (positions := step.tensor(alone)) is not None and is_permutation(positions, source.shape):
            return tuple([replace(chain, order=0) for chain in step.chains(args["input"])])
    return ()


MIXING: Final = frozenset(
    "roll rot90 msort sort unique unique2 _unique _unique2 fliplr flipud".split()
)
"""Operators that change the order of the elements of a vector."""


def _sliced(step: _RangeStep) -> tuple[ComputedRange, ...]:
    """The elements of `x[a::s]`, with any end, and of `x[a:]` where the ray begins at the last place."""
    index = step.args.get("index")
    index = index[0] if isinstance(index, tuple) and len(index) == 1 else index
    if step.made.op != "getitem" or not isinstance(index, Slice) or step.value.rank != 1:
        return ()
    start = 0 if index.start is None else index.start
    by = 1 if index.step is None else index.step
    if (chain := step.in_order()) is None or type(by) is not int:
        return ()
    if chain.order == 1 and type(start) is int and start >= 0:
        return (chain.in_place(lambda values: islice(values, start, None, by), step.value.shape[0]),)
    if chain.order == -1 and by == 1 and index.stop is None:
        return (chain.in_place(None, step.value.shape[0]),)
    return ()


def _running(step: _RangeStep) -> tuple[ComputedRange, ...]:
    """Sums and products of the first elements of a vector, and differences of its neighbours."""
    op, dtype = step.made.op, step.value.dtype or ""
    if op not in RUNNING or step.value.rank != 1 or (chain := step.in_order()) is None:
        return ()
    law = RUNNING[op]
    if op == "diff":
        plain = step.args.get("n", 1) == 1 and step.args.get("prepend") is step.args.get("append") is None
        stage = partial(_differences, dtype=dtype, sign=chain.order)
        return (chain.in_place(stage, step.value.shape[0]),) if plain else ()
    whole = partial(accumulate, func=lambda a, b: held(law(a, b), dtype))
    return (chain.in_place(whole, step.value.shape[0]),) if chain.order == 1 else ()


def _differences(values: Iterator[Number], dtype: str, sign: int) -> Iterator[Number]:
    return (held(sign * (b - a), dtype) for a, b in pairwise(values))


RUNNING: Final = {"cumsum": operator.add, "cumprod": operator.mul, "diff": operator.sub}
"""Operators that compute elements of a vector from several, in the order of places."""


def _beside(step: _RangeStep) -> tuple[ComputedRange, ...]:
    """The elements of several tensors, or those of a tensor and the number that it is padded with."""
    op, args = step.made.op, step.args
    found: list[ComputedRange] = []
    if op in ("cat", "stack") and isinstance(several := args.get("tensors"), tuple):
        for argument in several:
            chains, tensor = step.chains(argument), step.tensor(argument)
            if not chains or tensor is None or tensor.dtype != step.value.dtype:
                return ()
            there = ge(product(tensor.shape), 1)
            found += [replace(chain, given=all_of((chain.given, there)), order=0) for chain in chains]
    elif op in ("pad", "constant_pad_nd") and args.get("mode", "constant") in (None, "constant"):
        sides, value, tensor = args.get("pad"), args.get("value"), step.tensor(args.get("input"))
        value = 0 if value is None else value
        chains = step.chains(args["input"])
        if not isinstance(sides, tuple) or not all(type(side) is int and side >= 0 for side in sides):
            return ()
        if not chains or tensor is None or type(value) is not int:
            return ()
        there = ge(product(tensor.shape), 1)
        found += [replace(chain, given=all_of((chain.given, there)), order=0) for chain in chains]
        if any(sides):
            found.append(ComputedRange((Ray(value, 1, 1),)))
    return tuple(found)


# --- functions ---------------------------------------------------------------------------------------------


def _by_element(step: _RangeStep) -> tuple[ComputedRange, ...]:
    """The chains of the one tensor that a function of its elements is computed from."""
    try:
        root, function = _function(step)
    except NotComputed:
        return ()
    return tuple([chain.then(function) for chain in step.chains(Ref(root))]) if root is not None else ()


def _function(step: _RangeStep) -> tuple[int | None, Function]:
    """Returns the value that elements are computed from, and how; None for a constant."""
    made, value = step.made, step.value
    law = FUNCTIONS.get(made.op)
    if law is None or made.place or step.depth < 0 or step.args.get("out") is not None:
        raise NotComputed
    given = {name: _operand(step, name, argument) for name, argument in step.args.items()}
    function = law(given, value.dtype or "")
    roots = {operand.root for operand in given.values() if operand.root is not None and not operand.aside}
    if len(roots) > 1:
        raise NotComputed
    return (roots.pop() if roots else None), function


@dataclass(frozen=True, slots=True)
class RangeOperand:
    root: int | None
    get: Function
    dtype: str
    plain: Any = None
    """The argument, where it is no tensor."""
    aside: bool = False
    rooted: bool = False
    """Whether it is a square root, which is only known after it is cut to an integer."""


def _operand(step: _RangeStep, name: str, argument: Argument) -> RangeOperand:
    if not isinstance(argument, Ref):
        return RangeOperand(None, lambda x: argument, "", argument)  # type: ignore[arg-type, return-value]
    tensor = step.tensor(argument)
    if (step.made.op, name) == ("type_as", "other"):
        return RangeOperand(None, _same, tensor.dtype or "" if tensor else "", aside=True)
    if tensor is None or not step.places.is_as_made(argument.id, step.made.time):
        raise NotComputed
    dtype = tensor.dtype or ""
    match tensor.elements:
        case Affine(int() as one, ()) if dtype in INTEGRAL:
            return RangeOperand(None, lambda x: one, dtype)
    made = step.places.program.made(argument.id)
    same = tensor.shape == step.value.shape
    if not same:
        raise NotComputed
    is_root = dtype in INTEGRAL and _is_enough(_plain(tensor, step.places, step.one), step.one)
    if made is not None and made.op in FUNCTIONS and not is_root:
        inner = step.before(made, tensor)
        try:
            root, function = _function(inner)
            return RangeOperand(root, function, dtype)
        except NotComputed:
            pass
    if made is not None and made.op == "sqrt":
        inner = step.before(made, tensor)
        found = _operand(inner, "input", inner.args["input"])
        if found.dtype not in INTEGRAL:
            raise NotComputed
        return replace(found, get=lambda x: _root(found.get(x)), dtype=dtype, rooted=True)
    return RangeOperand(argument.id, _same, dtype)


def _same(x: Number) -> Number:
    return x


def _root(x: Number) -> Number:
    if not 0 <= x < ROOTED:
        raise NotComputed
    return math.isqrt(int(x))


def held(x: Number, dtype: str) -> Number:
    """Returns a number as a tensor of this dtype holds it."""
    if dtype == "bool":
        return int(bool(x))
    if dtype in INTEGRAL:
        bits = int(dtype.lstrip("uint"))
        if isinstance(x, float):
            if dtype == "int64" and not abs(x) < 1 << bits - 1:
                return -(1 << bits - 1)
            if not abs(x) < 1 << bits - 1 or (dtype.startswith("u") and x < 0):
                raise NotComputed
            x = int(x)
        x %= 1 << bits
        return x if dtype.startswith("u") or x < 1 << bits - 1 else x - (1 << bits)
    if dtype not in DIGITS or 1 << 64 < abs(x) < math.inf or x != x:
        raise NotComputed
    if dtype == "float64":
        return float(x)
    if math.isinf(x):
        return x
    if float(x) != x:
        raise NotComputed  # singles are rounded once
    single: float = unpack("f", pack("f", x))[0]
    if dtype == "float32":
        return single
    if dtype == "float16":
        if abs(single) >= 65520:
            return math.copysign(math.inf, single)
        half: float = unpack("e", pack("e", single))[0]
        return half
    (bits,) = unpack("I", pack("f", single))
    brain: float = unpack("f", pack("I", (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000))[0]
    return brain


FunctionLaw: TypeAlias = Callable[[Mapping[str, RangeOperand], str], Function]
"""Returns how an element of the result is computed, given the operands and the dtype of the result."""


def _number(operand: RangeOperand | None, dtype: str) -> Function:
    """Returns an operand as arithmetic in this dtype takes it. A number that the dtype does not hold, or the
    root of a number, is not taken.
    """
    if operand is None or operand.rooted or isinstance(operand.plain, bool):
        raise NotComputed
    if operand.dtype:
        return lambda x: held(operand.get(x), dtype)
    if not isinstance(operand.plain, int | float):
        raise NotComputed
    one = held(operand.plain, dtype)
    if one != operand.plain and not (dtype == "float32" and isinstance(operand.plain, float)):
        raise NotComputed
    return lambda x: one


def _computed(law: Callable[..., Number], *names: str) -> FunctionLaw:
    """Returns the law of arithmetic in the dtype of the result. That of short floats is in singles."""

    def of(given: Mapping[str, RangeOperand], dtype: str) -> Function:
        for name, operand in given.items():
            if name not in names and operand.plain not in (None, 1):
                raise NotComputed
        parts = [_number(given.get(name), dtype) for name in names]
        short = dtype in ("float16", "bfloat16")

        def compute(x: Number) -> Number:
            try:
                found = law(*(part(x) for part in parts))
            except (ZeroDivisionError, OverflowError, ValueError):
                raise NotComputed from None
            return held(held(found, "float32") if short else found, dtype)

        return compute

    return of


def _of_integers(law: FunctionLaw) -> FunctionLaw:
    def of(given: Mapping[str, RangeOperand], dtype: str) -> Function:
        if dtype not in INTEGRAL:
            raise NotComputed
        return law(given, dtype)

    return of


def _compared(law: Callable[[Number, Number], bool]) -> FunctionLaw:
    """The law of a comparison with an integer that the dtype of the other side holds."""

    def of(given: Mapping[str, RangeOperand], dtype: str) -> Function:
        sides = [given["input"], given["other"]]
        dtypes = {side.dtype for side in sides if side.dtype}
        if len(dtypes) != 1:
            raise NotComputed
        one, other = (_number(side, *dtypes) for side in sides)
        return lambda x: int(law(one(x), other(x)))

    return of


def _cast(given: Mapping[str, RangeOperand], dtype: str) -> Function:
    source = given["input"]
    if source.rooted and dtype not in INTEGRAL:
        raise NotComputed
    short = dtype in ("float16", "bfloat16")
    return lambda x: held(held(source.get(x), "float32") if short else source.get(x), dtype)


def _quotient(given: Mapping[str, RangeOperand], dtype: str) -> Function:
    mode = given["rounding_mode"].plain if "rounding_mode" in given else None
    rest = {name: operand for name, operand in given.items() if name != "rounding_mode"}
    if mode is None and dtype in DIGITS:
        return _computed(operator.truediv, "input", "other")(rest, dtype)
    if mode is None or dtype not in INTEGRAL:
        raise NotComputed
    law = operator.floordiv if mode == "floor" else _cut_quotient
    return _computed(law, "input", "other")(rest, dtype)


def _cut_quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _rest_of_sign(a: int, b: int) -> int:
    return a - b * _cut_quotient(a, b)


def _clamped(given: Mapping[str, RangeOperand], dtype: str) -> Function:
    there = {name: given[name] for name in ("min", "max") if name in given}
    bounds = {name: bound for name, bound in there.items() if bound.dtype or bound.plain is not None}
    source = _number(given.get("input"), dtype)
    ends = {name: _number(bound, dtype) for name, bound in bounds.items()}

    def clamp(x: Number) -> Number:
        found = source(x)
        found = max(found, ends["min"](x)) if "min" in ends else found
        return min(found, ends["max"](x)) if "max" in ends else found

    return clamp


def _chosen(condition: str, one: str, other: str) -> FunctionLaw:
    def of(given: Mapping[str, RangeOperand], dtype: str) -> Function:
        if condition not in given or given[condition].dtype != "bool":
            raise NotComputed
        left, right = _number(given.get(one), dtype), _number(given.get(other), dtype)
        return lambda x: left(x) if given[condition].get(x) else right(x)

    return of


def _power(a: Number, b: Number) -> Number:
    if b < 0 or b > 62:
        raise NotComputed
    return a**b


def _shifted(law: Callable[[int, int], int]) -> Callable[[int, int], int]:
    def shift(a: int, b: int) -> int:
        if not 0 <= b < 8:
            raise NotComputed
        return law(a, b)

    return shift


def _plus_scaled(sign: int, *names: str) -> FunctionLaw:
    return _computed(lambda a, b: a + sign * b, *names)


PAIR: Final = ("input", "other")
FUNCTIONS: Final[Mapping[str, FunctionLaw]] = {
    "add": _plus_scaled(1, *PAIR),
    "sub": _plus_scaled(-1, *PAIR),
    "rsub": _plus_scaled(-1, *PAIR[::-1]),
    "mul": _computed(operator.mul, *PAIR),
    "div": _quotient,
    "floor_divide": _of_integers(_computed(operator.floordiv, *PAIR)),
    "remainder": _of_integers(_computed(operator.mod, *PAIR)),
    "fmod": _of_integers(_computed(_rest_of_sign, *PAIR)),
    "pow": _of_integers(_computed(_power, "input", "exponent")),
    "neg": _computed(operator.neg, "input"),
    "abs": _computed(abs, "input"),
    "sign": _computed(lambda a: (a > 0) - (a < 0), "input"),
    **dict.fromkeys("clamp clamp_min clamp_max".split(), _clamped),
    "maximum": _computed(max, *PAIR),
    "minimum": _computed(min, *PAIR),
    "where": _chosen("condition", "input", "other"),
    "masked_fill": _chosen("mask", "value", "input"),
    "bitwise_and": _of_integers(_computed(operator.and_, *PAIR)),
    "bitwise_or": _of_integers(_computed(operator.or_, *PAIR)),
    "bitwise_xor": _of_integers(_computed(operator.xor, *PAIR)),
    "lshift": _of_integers(_computed(_shifted(operator.lshift), *PAIR)),
    "rshift": _of_integers(_computed(_shifted(operator.rshift), *PAIR)),
    "ceil": _computed(math.ceil, "input"),
    "floor": _computed(math.floor, "input"),
    "trunc": _computed(math.trunc, "input"),
    "round": _computed(round, "input"),
    "eq": _compared(operator.eq),
    "ne": _compared(operator.ne),
    "lt": _compared(operator.lt),
    "le": _compared(operator.le),
    "gt": _compared(operator.gt),
    "ge": _compared(operator.ge),
    **dict.fromkeys(CASTS, _cast),
}
"""For each operator how an element of its result is computed from the elements of its operands there."""
