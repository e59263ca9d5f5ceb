"""Which outcomes of a condition on data are possible: no x equals x + 1, and no distance is below 0.

Outcomes are looked for by trials: all elements of an input are one number, and the calls are followed from
there. An outcome found at each size tried is possible. Of one that is not found nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import permutations
from typing import Final, TypeAlias

from ...ir.language import Cases, Tensor
from ...terms.dims import evaluate, symbols
from ...terms.formula import Formula, all_of, any_of, free_symbols, holds, negate
from ..laws.masks import COMPARISONS, CONNECTIVES
from .constancy import Made
from .data import CHOOSING, DEPTH, FOLLOWED, Datum, chosen, data_of, is_related, parts_of
from .dataless import RANDOM, SAMPLING, WITHOUT_NAN, Dataless, less
from .fitting import may_leave_numbers
from .fixed import LAWS, outcomes
from .freedom import drawn_numbers, is_free
from .ranges import OPEN, Outlook, Usual
from .scalars import Sizes
from .scattered import COPIES, INJECTIVE, free_numbers
from .tried import AtAnySize, NoSize, ProgramAt, TriedNumbers

NUMBERS: Final = (1, 0, -1, 2, 0.5, -3, 7, 0.25)
"""The numbers with which all elements of an input are filled in trials."""
SMALL: Final = (1, 2, 3)
"""Numbers that all symbols of sizes are tried to be."""
LARGE: Final = (17, 64)
"""Those that are tried where none of the small ones is possible."""
MOST_SYMBOLS: Final = 4
"""So many symbols are tried to be 1, one by one, where the others are not."""
FAR: Final = 64
"""Numbers are tried that are this many times as far from 0 as those that values are compared with."""
COUNTING: Final = frozenset(
    """
    sum count_nonzero view reshape flatten squeeze unsqueeze clone to long int float getitem select narrow
    """.split()
)
"""Operators that count the true elements of a mask, or keep such numbers."""
BY_PLACE: Final = frozenset(
    (*COMPARISONS, *CONNECTIVES, *INJECTIVE, *COPIES, "abs", "logical_not", "bitwise_not")
)
"""Operators whose results depend on the element at the same place alone."""
PARTS: Final = frozenset("getitem select sum any".split())
"""Operators that give a part of a mask, or tell of each part."""
BOTH: Final = frozenset((True, False))
Truth: TypeAlias = Callable[[Sequence[Cases], Sizes | None], Cases]
"""Returns the cases of a condition, from those of the values that it is about, at the sizes tried."""


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
    is_nan = usual != OPEN and any(may_leave_numbers(program, ref, WITHOUT_NAN) for ref in values)
    found = BOTH
    if is_nan or True not in (*usual, true, false):
        known = dataless if is_nan else any_of((dataless, *usual))
        found = possible(program, values, truth, known, numbers)
    if True in usual and (usual.always is True) in found:
        found = BOTH  # the other one is that of NaN
    return Outlook(usual, *news, unknown, found, not found and _are_drawn(program, values))


def is_doubtful(program: Dataless, ref: int) -> bool:
    """Returns whether a number that data decide may be the same for all: it is made of a relation of two
    results of the same data, and not found to be true for some data and false for others; or it counts the
    elements of a mask, and only one of the two is found, or the mask is one of what no law tells of.
    """
    related = is_related(program, (ref,))
    if not related and not _is_of_mask(program, ref, DEPTH):
        return False
    found = possible(program, (ref,), lambda known, sizes: known[0], program.region(ref))
    return found != BOTH and (related or bool(found) or _is_of_unknown(program, ref, DEPTH))


def marks_choices(program: Dataless, ref: int) -> bool:
    """Returns whether a mask is a part of one that marks places which the data choose, such as a column of
    `one_hot`, or is computed from sums over parts. No data make all elements of the whole alike, so that
    trials tell nothing of it.
    """
    is_part = False
    for _ in range(FOLLOWED):
        made = program.made(ref)
        if made is None or made.op == "one_hot" or not (sources := program.sources(ref)):
            return is_part and made is not None and made.op == "one_hot"
        is_part |= made.op in PARTS
        ref = sources[0]
    return False


def is_of_each(program: Dataless, ref: int) -> bool:
    """Returns whether each element of a mask is computed from the numbers of the data at its own place alone,
    which are independent of those at the others.
    """
    shape = getattr(program.value(ref), "shape", None)
    seen, last = {ref}, [ref]
    for _ in range(DEPTH):
        made = [back for back in last if not free_numbers(program, back)]
        if any(getattr(program.value(back), "shape", None) != shape for back in last):
            return False
        if any(program.is_overwritten(back) or not _is_by_place(program, back) for back in made):
            return False
        sources = (source for back in made for source in program.sources(back))
        last = [*dict.fromkeys(source for source in sources if source not in seen)]
        seen.update(last)
        if not last:
            return True
    return False


def _is_by_place(program: Dataless, ref: int) -> bool:
    made = program.made(ref)
    return made is not None and made.op in BY_PLACE


def possible(
    program: Dataless,
    values: Sequence[int],
    truth: Truth,
    known: Formula = False,
    numbers: Sequence[float] = (),
    *,
    every: bool = True,
) -> frozenset[bool]:
    """Returns outcomes that a condition on values has for some data, at `every` size tried or at some.
    Sizes at which its outcome is `known` are not tried. The condition compares with `numbers`.
    """
    parts = parts_of(program, values)
    data = [*dict.fromkeys(d for ref in values for d in data_of(program, ref, FOLLOWED, parts))]
    known_of = AtAnySize(program, parts)
    near = {n for number in (*numbers, *_compared(program, values)) for n in _around(number)}
    found: frozenset[bool] | None = None
    telling: list[int] = []
    for sizes in _sizes_of(program, (*values, *(datum for datum in data if isinstance(datum, int)))):
        if found is not None and sizes.common in LARGE:
            break
        if _holds(known, sizes):
            continue
        more = sorted({*near, *_around(sizes.common), 1 / sizes.common}.difference(NUMBERS))
        trials = [*_trials(program, data, more, sizes)]
        if (here := _found(known_of, values, truth, trials, sizes, telling)) is not None:
            found = here if found is None else found & here if every else found | here
            if len(found) == (0 if every else 2):
                break
    return found or frozenset()


def _are_drawn(program: Dataless, values: Sequence[int]) -> bool:
    """Returns whether all data that values are made of are drawn at random."""
    data = [datum for ref in values for datum in data_of(program, ref, FOLLOWED)]
    return bool(data) and all(isinstance(datum, int) and program.made(datum) is not None for datum in data)


def _found(
    known_of: AtAnySize,
    values: Sequence[int],
    truth: Truth,
    trials: Sequence[Mapping[Datum, float]],
    sizes: Sizes,
    telling: list[int],
) -> frozenset[bool] | None:
    """Returns the outcomes that are found at some sizes; None if the program has no such sizes. The places of
    trials that are `telling` come first; those of others that tell an outcome are added to them.
    """
    found: set[bool] = set()
    here = ProgramAt(known_of, sizes)
    first = [place for place in telling if place < len(trials)]
    for at, place in enumerate((*first, *(p for p in range(len(trials)) if p not in first))):
        numbers = TriedNumbers(here, values, trials[place])
        try:
            known = truth([numbers.of(ref) for ref in values], sizes)
        except NoSize:
            return None
        true, false = outcomes(known)
        told = {outcome for outcome, where in ((True, true), (False, false)) if where is True}
        if not told <= found and place not in telling:
            telling.append(place)
        found |= told
        if len(found) == 2 or (at == len(NUMBERS) and not found):
            break
    return frozenset(found)


def _sizes_of(program: Dataless, values: Sequence[int]) -> Iterator[Sizes]:
    """Yields the sizes that are tried: all symbols one number, and then each of the first of them 1, where
    the others are not.
    """
    shapes = (value.shape for ref in values if isinstance(value := program.value(ref), Tensor))
    names = [*dict.fromkeys(name for shape in shapes for dim in shape for name in sorted(symbols(dim)))]
    yield from map(Sizes, SMALL)
    if len(names) > 1:
        yield from (Sizes(SMALL[-1], frozenset((name,))) for name in names[:MOST_SYMBOLS])
    yield from map(Sizes, LARGE)


def _holds(formula: Formula, sizes: Sizes) -> bool:
    """Returns whether a formula holds at some sizes."""
    try:
        return holds(formula, sizes.of(free_symbols(formula)))
    except ZeroDivisionError:
        return False


def _is_of_mask(program: Dataless, ref: int, depth: int) -> bool:
    """Returns whether a number counts the true elements of a mask that is computed from data."""
    value, made = program.value(ref), program.made(ref)
    if made is None or not depth or not isinstance(value, Tensor):
        return False
    sources = program.sources(ref)
    if value.dtype == "bool":
        return made.op in COMPARISONS and len(sources) == 1
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
    program: Dataless, data: Sequence[Datum], more: Sequence[float], sizes: Sizes
) -> Iterator[Mapping[Datum, float]]:
    """Yields numbers for data: one for all of them, of these or of `more`; then none, so that elements
    differ; then one for the first and another for the rest. What is drawn at random is of its range.
    """
    drawn: dict[Datum, tuple[float, ...]] = {
        datum: _numbers_of(program, datum, made, sizes)
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


def _numbers_of(program: Dataless, ref: int, made: Made, sizes: Sizes) -> tuple[float, ...]:
    """Returns numbers that all elements of a value may be that is chosen from a range or drawn at random."""
    span = chosen(program, ref) if made.op in CHOOSING else None
    if span is None:
        return drawn_numbers(made)
    try:
        low, high = (evaluate(end, sizes.of(symbols(end))) for end in (span.low, span.high))
    except ZeroDivisionError:
        return ()
    return (low, high, (low + high) // 2) if span.dense else (low, high)


