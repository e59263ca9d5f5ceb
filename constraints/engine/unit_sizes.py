"""The layout of a tensor in memory, where it depends on which sizes are 1.

A dim of size 1 has any stride: torch treats a tensor as contiguous whatever that stride is, joins dims across
it, and also finds the channels innermost in some row-major tensors. So a result may have different layouts
where `h` is 1 and where it is 2 or more, and a rule that is applied to all sizes at once has to report an
unknown layout. Applied again with 1 in place of `h`, or with `h` known to be at least 2, it can determine it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from msgspec import structs

from ..ir.language import LOOSE, Refused, Situation, Slice, Tensor, Value, tensors
from ..ir.release import Release
from ..terms.dims import Apply, Atom, Dim, Term, coefficients, constant_part, lone, mapped, substitute
from ..terms.equations import Equations
from ..terms.formula import And, Compare, Formula, Or, all_of, any_of, compare, eq, ge
from ..terms.intervals import Bounds
from .known import Known, Made, Rule
from .trying import Trying, Undecided

MOST_CASES: Final = 400
"""At most this many cases are examined for one tensor."""
LONGEST: Final = 200
"""At most this many calls are repeated for one tensor and one case."""
_TO_TWO: Final = 1
_TO_THREE: Final = 2
"""Sizes up to this have a case each; one more case covers all greater ones."""
_FURTHEST: Final = 9
"""Of a size that is less by so much, as of `h - 9`, no more cases are examined than of others."""


@dataclass(slots=True)
class SizeCase(Trying, Situation):
    """A context in which some sizes are numbers and others have larger lower bounds.

    Rules are applied again in it; what they state is recorded for all sizes already.
    """

    numbers: Mapping[Atom, int]
    least: Mapping[Atom, int]
    made: Mapping[int, tuple[Tensor, Made]]
    bounds: Bounds
    equations: Equations
    found: dict[int, Tensor]
    release: Release | None
    sizes: dict[Dim, Dim] = field(default_factory=dict)
    """Dims as they are in this case, as far as they were asked for."""

    @property
    def condition(self) -> Formula:
        """Returns the condition that describes this case."""
        numbers = (eq(lone(atom), n) for atom, n in self.numbers.items())
        return all_of((*numbers, *(ge(lone(atom), n) for atom, n in self.least.items())))

    def here(self, value: Any) -> Any:
        """Returns a value as it is in this case, tensors with their layouts."""
        match value:
            case Tensor():
                return self.tensor(value)
            case Term():
                return self._number(value)
            case tuple():
                return tuple(map(self.here, value))
            case Slice(start, stop, step):
                return Slice(self.here(start), self.here(stop), self.here(step))
            case Compare(op, term):
                return compare(op, self._number(term))
            case And(parts):
                return all_of(map(self.here, parts))
            case Or(parts):
                return any_of(map(self.here, parts))
        return value

    def _number(self, dim: Dim) -> Dim:
        """Returns the dim as the equations rewrite it, with atoms that have a single value here replaced by
        it, as `min(h, 1)` has.
        """
        if (known := self.sizes.get(dim)) is not None:
            return known
        numbers = {atom.text: n for atom, n in self.numbers.items()}
        found = mapped(substitute(self.equations.simplify(dim), numbers), self._value)
        return self.sizes.setdefault(dim, found)

    def _value(self, atom: Apply) -> Dim:
        itself = lone(atom)
        for n in range(_TO_THREE + 1):
            if self.bounds.at_least(itself, n) and self.bounds.at_least(-itself, -n):
                return n
        return itself

    def tensor(self, tensor: Tensor) -> Tensor:
        """Returns the tensor in this case. Raises Undecided where its layout is not known here, either."""
        if tensor.layout not in LOOSE:
            shape = tuple(self.here(n) for n in tensor.shape)
            layout = self.here(tensor.layout) if isinstance(tensor.layout, tuple) else tensor.layout
            return structs.replace(tensor, shape=shape, layout=layout, elements=None)
        for one in self._missing(tensor):
            self._make(one)
        return self.found[id(tensor)]

    def _missing(self, tensor: Tensor) -> list[Tensor]:
        """Returns the tensors whose layout has to be found, each after those that its call is given."""
        order: dict[int, Tensor] = {}
        waiting = [(tensor, False)]
        while waiting:
            one, is_ready = waiting.pop()
            if is_ready:
                order[id(one)] = one
            elif one.layout in LOOSE and id(one) not in order and id(one) not in self.found:
                if id(one) not in self.made or len(order) > LONGEST:
                    raise Undecided
                _, made = self.made[id(one)]
                waiting.append((one, True))
                waiting.extend((each, False) for each in tensors(tuple(made.named.values())))
        return [*order.values()]

    def _make(self, tensor: Tensor) -> None:
        _, made = self.made[id(tensor)]
        result = made.rule(self, self._named(made))
        part = result if made.place is None else result[made.place] if isinstance(result, tuple) else None
        if not isinstance(part, Tensor) or part.layout in LOOSE:
            raise Undecided
        shape, layout = tuple(self.here(n) for n in tensor.shape), self.here(part.layout)
        if part.rank != len(shape):
            raise Undecided  # something has given it another shape since
        self.found[id(tensor)] = structs.replace(part, shape=shape, layout=layout, elements=None)

    def _named(self, made: Made) -> dict[str, Any]:
        return {name: self.here(value) for name, value in made.named.items()}

    def memory_of(self, tensor: Tensor) -> None:
        """Returns None: it is not known in a case."""

    def layouts(self, tensor: Tensor) -> None:
        """Returns None: a case is not divided into cases."""


def cases_of(
    tensor: Tensor, known: Known, bounds: Bounds, equations: Equations, release: Release | None
) -> list[tuple[SizeCase, Tensor]] | None:
    """Returns the tensor in cases, with its layout in each; None where they cannot be found. One of the cases
    holds whatever the sizes are.

    Cases in which it has no elements, or the calls that make it never run, are left out.
    """
    atoms, least = _varying(tensor, known.made, bounds)
    case = partial(_case, known=known, bounds=bounds, equations=equations, release=release)
    levels = (_TO_TWO, _TO_THREE, *([1 - least] if -_FURTHEST < least < -1 else []))
    tried = (_found(atoms, most, tensor, case) for most in levels)
    return next((found for found in tried if found is not None), None)


def _found(
    atoms: list[Atom], most: int, tensor: Tensor, case_of: Callable[[Mapping[Atom, int], int], SizeCase]
) -> list[tuple[SizeCase, Tensor]] | None:
    """A case that does not say enough is cut by the next of the atoms."""
    found: list[tuple[SizeCase, Tensor]] = []
    waiting: list[dict[Atom, int]] = [{}]
    for _ in range(MOST_CASES):
        if not waiting:
            return found
        sizes = waiting.pop()
        case = case_of(sizes, most)
        if case.bounds.contradict() or any(case.here(n) == 0 for n in tensor.shape):
            continue
        try:
            found.append((case, case.tensor(tensor)))
        except Refused:
            continue
        except Undecided:
            at_least = case.bounds.at_least
            atom = next((a for a in atoms if a not in sizes and not at_least(lone(a), most + 1)), None)
            if atom is None or not at_least(lone(atom), 0):
                return None
            waiting += ({**sizes, atom: n} for n in range(most + 2) if not at_least(lone(atom), n + 1))
    return None


def _case(
    sizes: Mapping[Atom, int], most: int, *, known: Known, bounds: Bounds, equations: Equations,
    release: Release | None,
) -> SizeCase:
    here = bounds.copy()
    for atom, n in sizes.items():
        here.learn(eq(lone(atom), n) if n <= most else ge(lone(atom), n))
    numbers = {atom: n for atom, n in sizes.items() if n <= most}
    least = {atom: n for atom, n in sizes.items() if n > most}
    found = known.in_case((most, frozenset(sizes.items())))
    case = SizeCase(numbers, least, known.made, here, equations, found, release)
    for formula in [*bounds.sums()] if numbers else ():
        here.learn(case.here(formula))
        case.sizes.clear()
    return case


def _varying(
    tensor: Tensor, made: Mapping[int, tuple[Tensor, Made]], bounds: Bounds
) -> tuple[list[Atom], int]:
    """Returns the atoms in sizes and strides of the tensor, or of the arguments that it is made of, that may
    be less than 2, or be in such a size: for `2*h*(w//4)` these are h and w//4. Also returns the least number
    that such a size adds to its atoms, -2 for `h - 2`.
    """
    found: dict[Atom, None] = {}
    least = 0
    met: set[int] = set()
    waiting = [tensor]
    while waiting:
        one = waiting.pop()
        if id(one) in met:
            continue
        met.add(id(one))
        strides = one.layout if isinstance(one.layout, tuple) else ()
        for size in (*one.shape, *strides):
            is_low = not bounds.at_least(size, 2)
            least = min(least, constant_part(size)) if is_low else least
            atoms = (atom for mono, _ in coefficients(size) for atom in mono)
            found |= dict.fromkeys(a for a in atoms if is_low or not bounds.at_least(lone(a), 2))
        if one.layout in LOOSE and id(one) in made:
            waiting.extend(tensors(tuple(made[id(one)][1].named.values())))
    return list(found), least


def remade(value: Value, rule: Rule, named: Mapping[str, Any]) -> Iterator[tuple[Tensor, Made]]:
    """Yields the tensors of a result whose layout is not known, each with the call that made it."""
    parts = value if isinstance(value, tuple) else (value,)
    for place, part in enumerate(parts):
        if isinstance(part, Tensor) and part.layout in LOOSE:
            yield part, Made(rule, named, place if isinstance(value, tuple) else None)
