"""Where sizes leave no data: the elements of a tensor are computed from inputs without any element.

What the data decide of such a tensor (`x.sum() > 0` of an x without elements) the sizes decide, each time
alike. A claim about some data says nothing there.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Final

from ..ir.language import Tensor, Value
from ..ir.program import Argument, Input, Node, Ref, refs
from ..terms.dims import Dim, Term, substitute, sym, symbols
from ..terms.formula import Compare, Formula, Or, all_of, any_of, eq

TEMPLATES: Final[Mapping[str, str]] = {
    **dict.fromkeys("zeros_like ones_like full_like zero fill copy".split(), "input"),
    **dict.fromkeys("new_zeros new_ones new_full new_tensor".split(), "input"),
    **dict.fromkeys("expand_as view_as reshape_as type_as".split(), "other"),
}
"""Operator -> the operand that it takes no element of."""
RANDOM: Final = frozenset(
    "rand randn randint randperm rand_like randn_like randint_like uniform normal random exponential "
    "geometric cauchy log_normal empty empty_like new_empty empty_strided".split()
)
"""What makes data of its own."""
SAMPLING: Final = frozenset("multinomial bernoulli poisson binomial dropout native_dropout".split())
"""What makes data of its own of chances that are given; there may be none but 0 and 1."""
CONSTANT: Final = "constant_"
"""What the names of tensors begin with that a program makes of numbers."""


class Dataless:
    """Answers at which sizes values of a program hold no data. Each value is looked at once."""

    def __init__(
        self,
        values: Mapping[int, Value],
        inputs: Sequence[Input],
        nodes: Sequence[Node],
        data: Container[str],
        at_least: Callable[[Dim, int], bool],
    ) -> None:
        self._values, self._inputs, self._nodes = values, inputs, nodes
        self._data = data
        """The sizes that the data decide."""
        self._at_least = at_least
        self._sources: dict[int, tuple[int, ...] | None] = {}
        """By reference, the values whose elements a value is made of; None of one that is data itself."""
        self._looked_at = 0, 0
        """How many of the inputs and nodes."""
        self._regions: dict[int, Formula] = {}
        self._carried: set[int] = set()
        """What a loop carries from one iteration to the next."""
        self._sampled: set[int] = set()
        """What is drawn at random, with chances that are given."""
        self._overwritten: dict[int, tuple[Formula, Formula]] = {}
        """Where what was left, and what was written over all of a tensor, depends on no data."""
        self._zero: dict[Dim, Formula] = {}

    def overwritten(self, ref: int, region: Formula, whole: Formula) -> None:
        """What depends on no data in a region has been written into the tensor, at some sizes over all of
        it. A second time, and in a loop, that may be all that was left.
        """
        sources: tuple[int, ...] | None = (ref,)
        while sources:
            (ref,) = sources
            left, over = self._overwritten.get(ref, (True, None))
            over = whole if over is None else True
            self._overwritten[ref] = all_of((left, region)), all_of((region, over))
            self._regions.pop(ref, None)
            made_of, whole = self._made_of(ref), True
            sources = made_of if ref in self._carried and region is not False else None

    def forget(self) -> None:
        """Forgets the answers, after something was taken back that was known."""
        self._regions.clear()
        self._zero.clear()

    def region(self, ref: int) -> Formula:
        """The sizes at which the value depends on no data: it has no element, or none that it is made of."""
        stack = [ref]
        while stack:
            ref, sources = stack[-1], self._made_of(stack[-1])
            if waiting := [s for s in sources or () if s not in self._regions]:
                stack += waiting
                continue
            made_of = sources is not None and all_of(self._regions[source] for source in sources)
            if made_of is True and ref in self._sampled:
                made_of = False
            left, over = self._overwritten.get(ref, (True, False))
            empty = self._empty(self._values.get(ref))
            self._regions[ref] = any_of((all_of((made_of, left)), over, empty))
            stack.pop()
        return self._regions[ref]

    def of_elements(self, ref: int) -> Formula:
        """Returns the sizes at which the value has elements, none of which depends on data."""
        value = self._values.get(ref)
        region, empty = self.region(ref), self._empty(value)
        parts = (part for part in _parts(region) if part not in _parts(empty))
        return any_of(part for part in parts if not _leaves_nothing(part, value))

    def _made_of(self, ref: int) -> tuple[int, ...] | None:
        if ref not in self._sources:
            self._look(ref)
        return self._sources[ref]

    def _look(self, wanted: int) -> None:
        """Looks through what has been written down since the last time; through all, where the value is not
        found: something was taken back. Of a value that is not found either nothing is known.
        """
        for given in self._inputs[self._looked_at[0] :]:
            constant = given.parameter and given.name.startswith(CONSTANT)
            self._sources[given.id] = () if constant else None
        place = self._looked_at[1]
        for node in self._nodes[place:]:
            if not node.results and not node.args:
                break  # it is being written down
            made_of = _made_of(node)
            self._sources.update((result, made_of) for result in node.results)
            self._carried.update(node.results if node.op == "carried" else ())
            self._sampled.update(node.results if node.op in SAMPLING else ())
            place += 1
        again, self._looked_at = self._looked_at != (0, 0), (len(self._inputs), place)
        if wanted not in self._sources and again:
            self._looked_at = 0, 0
            self._look(wanted)
        self._sources.setdefault(wanted, ())

    def _empty(self, value: Value | None) -> Formula:
        if not isinstance(value, Tensor):
            return False
        return any_of(self._is_zero(dim) for dim in value.shape if not isinstance(dim, int) or dim == 0)

    def _is_zero(self, dim: Dim) -> Formula:
        """Where a size is 0; nowhere that the data decide it."""
        found = self._zero.get(dim)
        if found is None:
            of_data = isinstance(dim, Term) and any(name in self._data for name in symbols(dim))
            found = self._zero[dim] = False if of_data or self._at_least(dim, 1) else eq(dim, 0)
        return found


def _leaves_nothing(condition: Formula, value: Value | None) -> bool:
    """Returns whether a tensor has no element wherever an equation `k*n + c == 0` holds, as one of `c*s - c`
    elements where `s == 1`. False also where this is not found out.
    """
    if not (isinstance(value, Tensor) and isinstance(condition, Compare) and condition.op == "=="):
        return False
    term, names = condition.term, symbols(condition.term)
    if len(names) != 1:
        return False
    (name,) = names
    c = substitute(term, {name: 0})
    k = substitute(term, {name: 1}) - c
    if not (isinstance(c, int) and isinstance(k, int) and k and c % k == 0 and k * sym(name) + c == term):
        return False
    return any(substitute(dim, {name: -c // k}) == 0 for dim in value.shape)


def _parts(formula: Formula) -> tuple[Formula, ...]:
    return formula.parts if isinstance(formula, Or) else (formula,)


def _made_of(node: Node) -> tuple[int, ...] | None:
    op = node.op.rstrip("_") or node.op
    if op in RANDOM and not any(_names(argument) for name, argument in node.args if name != "input"):
        return None
    template = TEMPLATES.get(op)
    return tuple([ref.id for name, argument in node.args if name != template for ref in refs(argument)])


def _names(argument: Argument) -> bool:
    return isinstance(argument, Ref)
