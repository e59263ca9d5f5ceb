"""The numbers of a program's values where all elements of its inputs are numbers that are tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final

from msgspec import structs

from ...ir.language import Affine, Between, Cases, Quotient, Ratio, Tensor, Value
from ...terms.dims import Dim, Symbol, Term, evaluate, lone, symbols
from ...terms.formula import ne
from .constancy import Made
from .data import FOLLOWED, Datum, Parts, data_of, datum_of
from .dataless import Dataless
from .fitting import may_leave_numbers
from .fixed import BOUNDED, LEAST, cases, held, of_constant
from .freedom import POSITIVE, is_free
from .scalars import Sizes, of_elements
from .scattered import free_numbers

NEAR: Final = 0.5
"""Elements of a tensor that may be any numbers are this near to the number of a trial."""
SMALLEST: Final = 2.0**-40
SMALL: Final = 2.0**-20
"""Positive numbers that depend on data alone may all lie between these two."""


class NoSize(Exception):
    """Raised where a tensor has no such size."""


class AtAnySize:
    """Answers about a program's values that are the same for all sizes and numbers that are tried, each found
    once.
    """

    def __init__(self, program: Dataless, parts: Parts) -> None:
        self.program = program
        self.datum_of = cache(partial(datum_of, program, parts=parts))
        self.data_of = cache(partial(data_of, program, depth=FOLLOWED, parts=parts))
        self.counted = cache(program.counted)
        self.is_free = cache(partial(is_free, program))
        self.free_numbers = cache(partial(free_numbers, program))
        self.may_leave_numbers = cache(partial(may_leave_numbers, program))


class ProgramAt:
    """The values and the calls of a program at sizes that are tried."""

    def __init__(self, known: AtAnySize, sizes: Sizes) -> None:
        self.known, self.program, self.sizes = known, known.program, sizes
        self._values: dict[int, Value] = {}
        self._calls: dict[int, Made] = {}

    def value(self, ref: int) -> Value:
        """Returns a value with its shape in numbers. Raises NoSize if it cannot have elements there."""
        if ref not in self._values:
            self._values[ref] = self._at(self.program.value(ref))
        return self._values[ref]

    def call(self, ref: int, made: Made) -> Made:
        """Returns the call that made a value, with sizes as numbers. Raises NoSize."""
        if ref not in self._calls:
            values = {value: self.value(value) for value in (*self.program.sources(ref), *made.node.results)}
            given = (*made.node.args, *made.ratios.items())
            args = tuple([(name, self._number(argument)) for name, argument in given])
            self._calls[ref] = replace(made, values=values, node=structs.replace(made.node, args=args))
        return self._calls[ref]

    def of_sizes(self, value: Tensor) -> Tensor:
        """Returns a tensor of one number or of a fraction of sizes with the number that it is."""
        match value.elements:
            case Ratio(numerator, denominator, _):
                ratio = Ratio(self._at_size(numerator), denominator, 0)
                return structs.replace(value, elements=ratio)
            case Affine(Term() as start, ()):
                return structs.replace(value, elements=Affine(self._at_size(start)))
        return value

    def _at(self, value: Value) -> Value:
        if not isinstance(value, Tensor):
            return value
        names = {name for dim in value.shape for name in symbols(dim)}
        for name, size in self.sizes.of(names).items():
            if self.program.is_certain(ne(lone(Symbol(name)), size)):
                raise NoSize
        shape = tuple(map(self._at_size, value.shape))
        if any(size <= 0 for size in shape):
            raise NoSize
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
        """Returns a size as a number. Raises NoSize if it is not defined at the sizes that are tried."""
        if not isinstance(dim, Term):
            return dim
        try:
            return evaluate(dim, self.sizes.of(symbols(dim)))
        except ZeroDivisionError:
            raise NoSize from None


class TriedNumbers:
    """The numbers of a program's values, where each element of an input is the same."""

    def __init__(self, at: ProgramAt, values: Sequence[int], data: Mapping[Datum, float]) -> None:
        self._at, self._known, self._program = at, at.known, at.program
        self._values, self._data = values, data
        self._found: dict[int, Cases] = {}

    def of(self, ref: int, depth: int = FOLLOWED) -> Cases:
        """Returns the number that each element of a value is, in the form of a case."""
        if ref not in self._found:
            self._found[ref] = ()
            found = self._cases(ref, depth) if depth else ()
            certain = ((True, number) for where, number in found if self._program.is_certain(where))
            self._found[ref] = tuple(case for case in certain if case[1] is not None)[:1]
        return self._found[ref]

    def _cases(self, ref: int, depth: int) -> Cases:
        value, made = self._at.value(ref), self._program.made(ref)
        if self._program.is_overwritten(ref) or not isinstance(value, Tensor):
            return ()
        if not all(self._is_positive(name, depth) for name in self._known.counted(ref)):
            return ()
        datum = self._known.datum_of(ref)
        if datum is not None:
            return held([(True, self._data[datum])], value) if datum in self._data else ()
        if made is not None and made.op == "carried":  # in the first iteration
            return self.of(self._program.sources(ref)[0], depth - 1)
        known = of_constant(self._at.of_sizes(value))
        if known or made is None:
            return known
        found = cases(self._at.call(ref, made), value, lambda source: self.of(source, depth - 1))
        if any(isinstance(number, int | float) for _, number in found):
            return found
        if not found and made.op in POSITIVE and not self._known.may_leave_numbers(ref):
            return held([(True, Between(LEAST, BOUNDED))], value)
        return self._near(ref, value) or found

    def _is_positive(self, name: str, depth: int) -> bool:
        """Returns whether a size that the data decide is found to be 1 or more."""
        computed = self._program.counts.get(name)
        if computed is None:
            return False
        known = [self.of(ref, depth - 1) for ref in computed.refs]
        some = of_elements(known, self._at.sizes, lambda *given: computed.compute(*given) >= 1)
        return some == ((True, 1),)

    def _near(self, ref: int, held_in: Tensor) -> Cases:
        """Returns bounds of a tensor that may be any numbers, next to the number that its data are. Where
        these differ, it returns bounds of deviations and their like, which may be small and positive.
        """
        if not self._data and self._known.free_numbers(ref) == "positive":
            return held([(True, Between(SMALLEST, SMALL))], held_in)
        own = self._known.data_of(ref)
        numbers = {self._data.get(datum) for datum in own}
        number = numbers.pop() if len(numbers) == 1 else None
        if number is None or not self._known.is_free(ref):
            return ()
        for value in self._values:
            others = {} if value == ref else self._known.data_of(value, without=ref)
            if not own.keys().isdisjoint(others):
                return ()  # the condition looks at these data otherwise, too
        return held([(True, Between(number - NEAR, number + NEAR))], held_in)
