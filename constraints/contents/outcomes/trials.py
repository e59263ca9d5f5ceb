"""Which outcomes of a condition on data are possible: no x equals x + 1, and no distance is below 0.

Outcomes are looked for by trials: all elements of an input are one number, and the calls are followed from
there. An outcome found at each size tried is possible. Of one that is not found nothing is known.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice, pairwise, permutations
from typing import Any, Final, Literal, TypeAlias

from msgspec import structs

from ...ir.language import UNTRACKED, Affine, Between, Cases, Quotient, Ratio, Span, Tensor, Value
from ...terms.dims import Dim, Symbol, Term, evaluate, lone, symbols
from ...terms.formula import Formula, all_of, any_of, free_symbols, holds, ne, negate
from ..elements.values import extremes
from ..laws.masks import COMPARISONS, CONNECTIVES
from .constancy import Made
from .dataless import RANDOM, SAMPLING, Dataless, less
from .fixed import BOUNDED, LAWS, LEAST, cases, held, of_constant, outcomes
from .freedom import drawn_numbers, is_free
from .ranges import Outlook, Usual
from .scattered import are_apart, free_numbers

NUMBERS: Final = (1, 0, -1, 2, 0.5, -3, 7, 0.25)
"""The numbers with which all elements of an input are filled in trials."""
SIZES: Final = (1, 2, 3, 17, 64)
"""The numbers that all symbols of sizes are tried to be."""
SMALL_SIZES: Final = 3
"""Sizes above are tried only where none of those up to this one is possible."""
DEPTH: Final = 12
"""At most so many calls back numbers are looked for with which values are compared."""
FOLLOWED: Final = 24
"""At most so many calls numbers are followed through."""
NEAR: Final = 0.5
"""Elements of a tensor that may be any numbers are this near to the number of a trial."""
SMALLEST: Final = 2.0**-40
SMALL: Final = 2.0**-20
"""Positive numbers that depend on data alone may all lie between these two."""
FAR: Final = 64
"""Numbers are tried that are this many times as far from 0 as those that values are compared with."""
MOST_LOOKED_AT: Final = 64
"""Parts of data are looked for among so many values."""
RELATIONS: Final = COMPARISONS.keys() | CONNECTIVES.keys() | {"sub", "rsub", "isclose", "logical_xor"}
"""Operators whose result may be the same for all data if both operands are made of the same data."""
PICKING: Final = frozenset("getitem select narrow unbind split chunk tensor_split diagonal".split())
"""Operators that return a part of their first operand."""
POSITIVE: Final = frozenset("exp exp2 sigmoid softmax _softmax softplus cosh".split())
"""Operators whose results are positive, whatever the data."""
CHOOSING: Final = frozenset("argmax argmin max min median nanmedian mode kthvalue".split())
"""Operators that return indices, each chosen by other data."""
COUNTING: Final = frozenset(
    """
    sum count_nonzero view reshape flatten squeeze unsqueeze clone to long int float getitem select narrow
    """.split()
)
"""Operators that count the true elements of a mask, or keep such numbers."""
Parts: TypeAlias = Literal["none", "apart", "all"]
"""Which values besides inputs are data of their own: none; parts of independent numbers, and indices that
other data choose; or all parts.
"""
Datum: TypeAlias = int | tuple[Any, ...]
"""A value that data decide, by its reference, or the call that picks a part of one."""
BOTH: Final = frozenset((True, False))
Truth: TypeAlias = Callable[[Sequence[Cases], int | None], Cases]
"""Returns the cases of a condition, from those of the values that it is about, at the size that is tried."""


def outlook(
    program: Dataless,
    dataless: Formula,
    usual: Usual,
    values: Sequence[int],
    truth: Truth,
    numbers: Sequence[float] = (),
) -> Outlook:
    """Returns what sizes say of a condition on values, and those at which the values depend on no data. The
    condition compares with `numbers`.

    An outcome that is usual at all sizes is no news.
    """
    true, false = outcomes(truth([*map(program.fixed, values)], None) if dataless is not False else ())
    same = any_of((negate(any_of(usual)), *map(program.undecided, values)))
    unknown = all_of((less(dataless, any_of((true, false))), same))
    news = usual.always is not True and true, usual.never is not True and false
    settled = True in usual or any(outcome is True for outcome in (true, false))
    found = BOTH if settled else possible(program, values, truth, any_of((dataless, *usual)), numbers)
    return Outlook(usual, *news, unknown, found, not found and _are_drawn(program, values))


def is_doubtful(program: Dataless, ref: int) -> bool:
    """Returns whether a number that data decide may be the same for all: it is made of a relation of two
    results of the same data, and not found to be true for some data and false for others; or it counts the
    elements of a mask, and only one of the two is found, or the mask is one of what no law tells of.
    """
    related = is_related(program, (ref,))
    if not related and not _is_of_mask(program, ref, DEPTH):
        return False
    found = possible(program, (ref,), lambda known, size: known[0], program.region(ref))
    return found != BOTH and (related or bool(found) or _is_of_unknown(program, ref, DEPTH))


def possible(
    program: Dataless,
    values: Sequence[int],
    truth: Truth,
    known: Formula = False,
    numbers: Sequence[float] = (),
) -> frozenset[bool]:
    """Returns outcomes that a condition on values has for some data, at each of the sizes that are tried but
    those at which its outcome is `known`. The condition compares with `numbers`.
    """
    parts = _parts(program, values)
    data = [*dict.fromkeys(d for ref in values for d in _data(program, ref, FOLLOWED, parts))]
    near = {n for number in (*numbers, *_compared(program, values)) for n in _around(number)}
    found: frozenset[bool] | None = None
    for size in SIZES:
        if found is not None and size > SMALL_SIZES:
            break
        if _holds(known, size):
            continue
        more = sorted({*near, *_around(size)}.difference(NUMBERS))
        trials = [*_trials(program, data, more, size)]
        if (here := _found(program, values, truth, trials, size, parts)) is not None:
            found = here if found is None else found & here
            if not found:
                break
    return found or frozenset()


@dataclass(frozen=True, slots=True)
class Computed:
    """How a number is computed from the only elements of tensors, given by reference, and from sizes."""

    refs: tuple[int, ...]
    compute: Callable[[Sequence[float], int], float]
    """Returns the number, from these elements and the number that all symbols of sizes are."""

    def then(self, function: Callable[[float], float]) -> Computed:
        """Returns the result of a function of the number."""
        return Computed(self.refs, lambda numbers, size: function(self.compute(numbers, size)))

    def beside(self, other: Computed, function: Callable[[float, float], float]) -> Computed:
        """Returns the result of a function of both numbers."""
        count = len(self.refs)

        def computed(numbers: Sequence[float], size: int) -> float:
            return function(self.compute(numbers[:count], size), other.compute(numbers[count:], size))

        return Computed((*self.refs, *other.refs), computed)


def holding(formula: Formula, names: Sequence[str], known: Mapping[str, Computed]) -> Computed:
    """Returns the truth of a formula on numbers with these names."""
    others = free_symbols(formula).difference(names)

    def computed(numbers: Sequence[float], size: int) -> float:
        values, given = dict.fromkeys(others, size), iter(numbers)
        for name in names:
            one = known[name]
            values[name] = math.trunc(one.compute([*islice(given, len(one.refs))], size))
        return holds(formula, values)

    return Computed(tuple([ref for name in names for ref in known[name].refs]), computed)


def of_elements(
    known: Sequence[Cases], size: int, compute: Callable[[Sequence[float], int], float]
) -> Cases:
    """Returns the case of a condition on the only elements of tensors. An element between two bounds may be
    any number between them; that in the middle is taken.
    """
    numbers = [cases[0][1] for cases in known if cases]
    if len(numbers) < len(known) or None in numbers:
        return ()
    chosen = [(n.low + n.high) / 2 if isinstance(n, Between) else n for n in numbers if n is not None]
    try:
        return ((True, int(bool(compute(chosen, size)))),)
    except (ArithmeticError, ValueError, TypeError):  # there the program raises an error of its own
        return ()


def _are_drawn(program: Dataless, values: Sequence[int]) -> bool:
    """Returns whether all data that values are made of are drawn at random."""
    data = [datum for ref in values for datum in _data(program, ref, FOLLOWED)]
    return bool(data) and all(isinstance(datum, int) and program.made(datum) is not None for datum in data)


class _NoSize(Exception):
    """Raised where a tensor has no such size."""


def _found(
    program: Dataless,
    values: Sequence[int],
    truth: Truth,
    trials: Sequence[Mapping[Datum, float]],
    size: int,
    parts: Parts,
) -> frozenset[bool] | None:
    """Returns the outcomes that are found at a size; None if the program has no such sizes."""
    found: set[bool] = set()
    for at, data in enumerate(trials):
        numbers = _Numbers(program, values, data, size, parts)
        try:
            known = truth([numbers.of(ref) for ref in values], size)
        except _NoSize:
            return None
        true, false = outcomes(known)
        found |= {outcome for outcome, where in ((True, true), (False, false)) if where is True}
        if len(found) == 2 or (at == len(NUMBERS) and not found):
            break
    return frozenset(found)


def _holds(formula: Formula, size: int) -> bool:
    """Returns whether a formula holds where all symbols are of this size."""
    try:
        return holds(formula, dict.fromkeys(free_symbols(formula), size))
    except ZeroDivisionError:
        return False


def is_related(program: Dataless, values: Sequence[int]) -> bool:
    """Returns whether the values, or operands of a relation from which they are computed, share data."""
    pairs = [*pairwise(values), *(pair for ref in values for pair in _relations(program, ref, DEPTH))]
    return any(
        not _data(program, one, parts="all").keys().isdisjoint(_data(program, other, parts="all"))
        for one, other in pairs
    )


def _relations(program: Dataless, ref: int, depth: int) -> Iterator[tuple[int, int]]:
    """Yields the operands of relations from which a condition is computed, one operand at a time."""
    made = program.made(ref)
    if made is None or not depth:
        return
    sources = program.sources(ref)
    if made.op in RELATIONS:
        yield from pairwise(sources)
    if len(sources) == 1 or made.op in CONNECTIVES:
        for source in sources:
            yield from _relations(program, source, depth - 1)


def _is_of_mask(program: Dataless, ref: int, depth: int) -> bool:
    """Returns whether a number counts the true elements of a mask that is computed from data."""
    value, made = program.value(ref), program.made(ref)
    if made is None or not depth or not isinstance(value, Tensor):
        return False
    sources = program.sources(ref)
    if value.dtype == "bool":
        return made.op in COMPARISONS and len(sources) == 1 and not _is_tracked(program, sources[0])
    return made.op in COUNTING and len(sources) == 1 and _is_of_mask(program, sources[0], depth - 1)


def _is_of_unknown(program: Dataless, ref: int, depth: int) -> bool:
    """Returns whether floats that a mask compares with a number are made by an operator without a law."""
    value, made = program.value(ref), program.made(ref)
    if made is None or not depth or not isinstance(value, Tensor):
        return False
    is_float = (value.dtype or "").startswith(("float", "bfloat"))
    if is_float and made.op not in LAWS and made.op not in RANDOM | SAMPLING and made.op != "carried":
        return not is_free(program, ref)
    return any(_is_of_unknown(program, source, depth - 1) for source in program.sources(ref)[:1])


def _is_tracked(program: Dataless, ref: int) -> bool:
    """Returns whether sizes give a range for the elements of a value, from which the data choose."""
    value = program.value(ref)
    return isinstance(value, Tensor) and value.elements not in (None, UNTRACKED)


def _data(
    program: Dataless, ref: int, depth: int = DEPTH, parts: Parts = "none", without: int | None = None
) -> dict[Datum, None]:
    """Returns the data that a value is made of: inputs, random numbers, and parts of such; `without` those
    that it is made of by way of another value alone.
    """
    found: dict[Datum, None] = {}
    met, last = {ref, without}, [ref]
    for _ in range(depth):
        data = {back: datum for back in last if (datum := _datum(program, back, parts)) is not None}
        found |= dict.fromkeys(data.values())
        sources = (source for back in last if back not in data for source in program.sources(back))
        last = [*dict.fromkeys(source for source in sources if source not in met)]
        met.update(last)
    return found


def _datum(program: Dataless, ref: int, parts: Parts) -> Datum | None:
    """Returns the value itself if it is data, or the call that picks a part of data."""
    made = program.made(ref)
    if program.is_data(ref) or (parts == "apart" and made is not None and _is_chosen(program, ref, made)):
        return ref
    if parts == "none" or made is None or made.op not in PICKING:
        return None
    is_one = bool(_data(program, made.node.refs[0].id)) if parts == "all" else free_numbers(program, ref)
    return (made.op, made.node.args, made.place) if is_one else None


def _is_chosen(program: Dataless, ref: int, made: Made) -> bool:
    """Returns whether the data choose each element of a value, an index, apart from the others."""
    is_index = made.op in CHOOSING and (made.place == 1 or made.op.startswith("arg"))
    return is_index and _chosen(program, ref) is not None


def _chosen(program: Dataless, ref: int) -> Span | None:
    """Returns the range that the data choose elements of a value from, both ends for some data."""
    value = program.value(ref)
    span = extremes(value) if isinstance(value, Tensor) and value.elements is not None else None
    return span if span is not None and span.attained and span.by_data else None


def _parts(program: Dataless, values: Sequence[int]) -> Parts:
    """Returns which values count as data of their own: parts and indices, if no two of those that the values
    are made of have an element in common or depend on the same data.
    """
    met: dict[Datum, int] = {}
    stack = [*values]
    seen = {*values}
    while stack and len(seen) <= MOST_LOOKED_AT:
        ref = stack.pop()
        datum = _datum(program, ref, "apart")
        if datum is not None:
            met.setdefault(datum, ref)
            continue
        new = [source for source in program.sources(ref) if source not in seen]
        seen.update(new)
        stack += new
    has_parts = not stack and any(isinstance(datum, tuple) or not program.is_data(datum) for datum in met)
    apart = has_parts and all(are_apart(program, *two) for two in combinations(met.values(), 2))
    return "apart" if apart else "none"


def _compared(program: Dataless, values: Sequence[int]) -> Iterator[float]:
    """Yields the numbers with which values are compared that a condition is computed from."""
    seen, last = {*values}, [*values]
    for _ in range(DEPTH):
        for made in filter(None, map(program.made, last)):
            if made.op in COMPARISONS:
                yield from (n for _, n in made.node.args if isinstance(n, int | float))
        sources = (source for ref in last for source in program.sources(ref))
        last = [*dict.fromkeys(source for source in sources if source not in seen)]
        seen.update(last)


def _around(number: float) -> tuple[float, ...]:
    """Returns numbers next to one, and some far away."""
    far = FAR * (abs(number) + 1)
    return number - 1, number, number + 1, -number, far, -far


def _trials(
    program: Dataless, data: Sequence[Datum], more: Sequence[float], size: int
) -> Iterator[Mapping[Datum, float]]:
    """Yields numbers for data: one for all of them, of these or of `more`; then none, so that elements
    differ; then one for the first and another for the rest. What is drawn at random is of its range.
    """
    drawn: dict[Datum, tuple[float, ...]] = {
        datum: _numbers_of(program, datum, made, size)
        for datum in data
        if isinstance(datum, int) and (made := program.made(datum)) is not None
    }

    def filled(number: float, at: int, some: Sequence[Datum]) -> Iterator[tuple[Datum, float]]:
        for datum in some:
            own = drawn.get(datum)
            if own is None or number in own:
                yield datum, number
            elif own:
                yield datum, own[at % len(own)]

    for at, number in enumerate((*NUMBERS, *more)):
        yield dict(filled(number, at, data))
    yield {}
    for first, rest in permutations(NUMBERS, 2) if len(data) > 1 else ():
        yield dict(filled(rest, 0, data)) | dict(filled(first, 1, data[:1]))


def _numbers_of(program: Dataless, ref: int, made: Made, size: int) -> tuple[float, ...]:
    """Returns numbers that all elements of a value may be that is chosen from a range or drawn at random."""
    span = _chosen(program, ref) if made.op in CHOOSING else None
    if span is None:
        return drawn_numbers(made)
    try:
        low, high = (evaluate(end, dict.fromkeys(symbols(end), size)) for end in (span.low, span.high))
    except ZeroDivisionError:
        return ()
    return (low, high, (low + high) // 2) if span.dense else (low, high)


class _Numbers:
    """The numbers of a program's values, where each element of an input is the same."""

    def __init__(
        self,
        program: Dataless,
        values: Sequence[int],
        data: Mapping[Datum, float],
        size: int,
        parts: Parts,
    ) -> None:
        self._program, self._values, self._data = program, values, data
        self._size, self._parts = size, parts
        self._found: dict[int, Cases] = {}

    def of(self, ref: int, depth: int = FOLLOWED) -> Cases:
        """Returns the number that each element of a value is, in the form of a case."""
        if ref not in self._found:
            self._found[ref] = ()
            found = self._cases(ref, depth) if depth else ()
            certain = ((True, number) for where, number in found if self._program.is_certain(where))
            self._found[ref] = tuple(case for case in certain if case[1] is not None)[:1]
        return self._found[ref]

    def _value(self, ref: int) -> Value:
        """Returns a value at the size that is tried. Raises _NoSize if it cannot have elements there."""
        value = self._program.value(ref)
        if not isinstance(value, Tensor):
            return value
        names = {name for dim in value.shape for name in symbols(dim)}
        if any(self._program.is_certain(ne(lone(Symbol(name)), self._size)) for name in names):
            raise _NoSize
        shape = tuple(map(self._at_size, value.shape))
        if any(size <= 0 for size in shape):
            raise _NoSize
        return structs.replace(value, shape=shape)

    def _number(self, argument: Any) -> Any:
        """Returns an argument of a call, a size or a fraction of sizes as a number."""
        match argument:
            case Term():
                return self._at_size(argument)
            case Quotient(over=over, under=under):
                return self._at_size(over) / self._at_size(under)
        return argument

    def _at_size(self, dim: Dim) -> int:
        """Returns a size as a number. Raises _NoSize if it is not defined at the size that is tried."""
        if not isinstance(dim, Term):
            return dim
        try:
            return evaluate(dim, dict.fromkeys(symbols(dim), self._size))
        except ZeroDivisionError:
            raise _NoSize from None

    def _of_sizes(self, value: Tensor) -> Tensor:
        """Returns a tensor of one number or of a fraction of sizes with the number that it is."""
        match value.elements:
            case Ratio(numerator, denominator, _):
                ratio = Ratio(self._at_size(numerator), denominator, 0)
                return structs.replace(value, elements=ratio)
            case Affine(Term() as start, ()):
                return structs.replace(value, elements=Affine(self._at_size(start)))
        return value

    def _cases(self, ref: int, depth: int) -> Cases:
        value, made = self._value(ref), self._program.made(ref)
        if self._program.is_overwritten(ref) or not isinstance(value, Tensor):
            return ()
        datum = _datum(self._program, ref, self._parts)
        if datum is not None:
            return held([(True, self._data[datum])], value) if datum in self._data else ()
        if made is not None and made.op == "carried":  # in the first iteration
            return self.of(self._program.sources(ref)[0], depth - 1)
        known = of_constant(self._of_sizes(value))
        if known or made is None:
            return known
        values = {value: self._value(value) for value in (*self._program.sources(ref), *made.node.results)}
        given = (*made.node.args, *made.ratios.items())
        args = tuple([(name, self._number(argument)) for name, argument in given])
        here = replace(made, values=values, node=structs.replace(made.node, args=args))
        found = cases(here, value, lambda source: self.of(source, depth - 1))
        if any(isinstance(number, int | float) for _, number in found):
            return found
        if not found and made.op in POSITIVE and self._program.nan(ref) is False:
            return held([(True, Between(LEAST, BOUNDED))], value)
        return self._near(ref, value) or found

    def _near(self, ref: int, held_in: Tensor) -> Cases:
        """Returns bounds of a tensor that may be any numbers, next to the number that its data are. Where
        these differ, it returns bounds of deviations and their like, which may be small and positive.
        """
        if not self._data and free_numbers(self._program, ref) == "positive":
            return held([(True, Between(SMALLEST, SMALL))], held_in)
        own = _data(self._program, ref, FOLLOWED, self._parts)
        numbers = {self._data.get(datum) for datum in own}
        number = numbers.pop() if len(numbers) == 1 else None
        if number is None or not is_free(self._program, ref):
            return ()
        for value in self._values:
            others = {} if value == ref else _data(self._program, value, FOLLOWED, self._parts, ref)
            if not own.keys().isdisjoint(others):
                return ()  # the condition looks at these data otherwise, too
        return held([(True, Between(number - NEAR, number + NEAR))], held_in)
