"""Where sizes leave no data: the elements of a tensor are computed from inputs without any element.

What the data decide of such a tensor (`x.sum() > 0` of an x without elements) the sizes decide, each time
alike. A claim about some data says nothing there.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from ...ir.language import Cases, Quotient, Tensor, Value, product
from ...ir.program import Input, Node, Ref, refs
from ...terms.dims import Dim, Term, symbols
from ...terms.equations import Equations
from ...terms.formula import Formula, all_of, any_of, conjuncts, disjuncts, eq, free_symbols, ge, negate
from .constancy import LAWS, NANS, Made
from .fixed import cases, of_constant
from .ranges import Ranges, below
from .scalars import Computed

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
"""Operators that make data of their own."""
SAMPLING: Final = frozenset(
    "multinomial bernoulli poisson binomial normal _standard_gamma _sample_dirichlet dropout "
    "native_dropout".split()
)
"""Operators that make data of their own from given probabilities; these may all be 0 or 1."""
COPIES: Final = frozenset("clone detach contiguous alias lift_fresh_copy".split())
OF_ONE: Final = frozenset("sum mean max min amax amin median prod nansum nanmean nanmedian logsumexp".split())
"""Operators that give the one element of a tensor of one element."""
STRETCHING: Final = frozenset("expand expand_as broadcast_to broadcast_tensors".split())
"""Operators that return a tensor as it is where it has the shape asked for."""
WITHOUT_NAN: Final = frozenset("nan_to_num nansum nanmean nanmedian".split())
"""Operators whose results are no NaN where their operands are."""
WITHOUT_ZERO: Final = frozenset("div reciprocal rsqrt log log2 log10 log1p logit".split())
"""Operators that make NaN or infinity of 0."""
MOST_COPIES: Final = 8
"""At most this many operators back two values are compared."""


class Region(NamedTuple):
    """The sizes at which a value depends on no data."""

    whole: Formula
    plain: Formula
    """Those where it has no element, or none that it is made of."""
    nan: Formula
    """Those where it, or a number that it is made of, is NaN for all data."""
    fixed: Cases = ()
    """Those where each of its elements is a known number, with the numbers."""


class Dataless:
    """Answers at which sizes values of a program hold no data. Each value is looked at once."""

    def __init__(
        self,
        values: Mapping[int, Value],
        inputs: Sequence[Input],
        nodes: Sequence[Node],
        data: Container[str],
        certain: Callable[[Formula], bool],
        ratios: Mapping[int, Mapping[str, Quotient]] = MappingProxyType({}),
        counts: Mapping[str, Computed] = MappingProxyType({}),
    ) -> None:
        self._values, self._inputs, self._nodes = values, inputs, nodes
        self._data = data
        """The sizes that the data decide."""
        self._certain = certain
        self._ratios = ratios
        """The quotients of sizes among the arguments of calls, by the number of the call."""
        self.counts = counts
        """How sizes that the data decide are computed, by their names, where that is known."""
        self._makers: dict[int, Input | tuple[Node, int, int] | Made | None] = {}
        """By reference, the input that a value is, or the call that made it, as `Made` once it is asked for;
        None of a value that is not found.
        """
        self._sources: dict[int, tuple[int, ...] | None] = {}
        """By reference, the values whose elements a value is made of; None of one that is data itself."""
        self._looked_at = 0, 0
        """The numbers of inputs and of nodes that were examined."""
        self._unwritten: list[int] = []
        """The numbers of those nodes that had neither arguments nor results."""
        self._regions: dict[int, Region] = {}
        self._has_loops = False
        self._overwritten: dict[int, tuple[Formula, Formula]] = {}
        """Where what was left, and what was written over all of a tensor, depends on no data."""
        self._infinite: set[int] = set()
        """Tensors into which NaN or infinity may have been written."""
        self._zero: dict[Dim, Formula] = {}

    def overwritten(self, ref: int, region: Formula, whole: Formula, is_finite: bool) -> None:
        """Values that depend on no data in a region have been written into the tensor, at some sizes over all
        of it. A second time, and in a loop, that may be all that was left.
        """
        sources: tuple[int, ...] | None = (ref,)
        while sources:
            (ref,) = sources
            if not is_finite:
                self._infinite.add(ref)
            left, over = self._overwritten.get(ref, (True, None))
            over = whole if over is None else True
            self._overwritten[ref] = all_of((left, region)), all_of((region, over))
            self._regions.pop(ref, None)
            made_of, whole = self._made_of(ref), True
            sources = made_of if self._is_by(ref, ("carried",)) and region is not False else None

    @property
    def has_loops(self) -> bool:
        """Returns whether a loop of the program carries values from one iteration to the next."""
        self._look()
        return self._has_loops

    def forget(self) -> None:
        """Forgets the answers, after something was taken back that was known."""
        self._regions.clear()
        self._zero.clear()

    def close(self) -> None:
        """Releases the calls that made values, which refer back to it."""
        self._makers.clear()

    def undecided(self, ref: int) -> Formula:
        """Returns the sizes at which a condition is the same for all data, perhaps an unusual one: that of
        nothing, or of NaN.
        """
        found = self._region(ref)
        return any_of((found.plain, found.nan))

    def is_overwritten(self, ref: int) -> bool:
        """Returns whether something has been written into the value by another name."""
        return ref in self._overwritten

    def keeps_data(self, ref: int) -> bool:
        """Returns whether all that has been written into the value by another name is finite and depends on
        no data.
        """
        return ref not in self._infinite and self._overwritten.get(ref, (True, False))[0] is True

    def may_hold_nan(self, ref: int) -> bool:
        """Returns whether NaN or infinity may have been written into the value by another name."""
        return ref in self._infinite

    def counted(self, ref: int) -> tuple[str, ...]:
        """Returns the sizes of the value that are decided by data, which perhaps make it empty, also where
        the program goes on only if they do not.
        """
        shape = getattr(self._values.get(ref), "shape", ())
        found = [(size, name) for size in shape for name in symbols(size) if name in self._data]
        return tuple([n for size, n in found if n in self.counts or not self.is_certain(ge(size, 1))])

    def sources(self, ref: int) -> tuple[int, ...]:
        """Returns the values whose elements a value is made of; none for random numbers."""
        sources = self._made_of(ref)
        return () if sources is None or self._is_by(ref, SAMPLING) else sources

    def is_data(self, ref: int) -> bool:
        """Returns whether the value is an input, a parameter, or drawn at random."""
        return self._made_of(ref) is None or self._is_by(ref, SAMPLING)

    def is_certain(self, formula: Formula) -> bool:
        """Returns whether a formula holds at all sizes."""
        return formula is True or (formula is not False and self._certain(formula))

    def is_given(self, ref: int) -> bool:
        """Returns whether the value is an input, a parameter, or drawn at random from a given range."""
        return self._made_of(ref) is None

    def is_finite(self, ref: int) -> bool:
        """Returns whether the value is an input or a constant without NaN and infinity, or is made of known
        numbers.
        """
        maker = self._maker(ref)
        if isinstance(maker, Input):
            return maker.holds != "given"
        return getattr(self._values.get(ref), "elements", None) is not None

    def region(self, ref: int) -> Formula:
        """Returns the sizes at which the value depends on no data."""
        return self._region(ref).whole

    def nan(self, ref: int) -> Formula:
        """Returns the sizes at which the value, or a number that it is made of, is NaN for all data."""
        return self._region(ref).nan

    def _region(self, ref: int) -> Region:
        stack = [ref]
        while stack:
            ref, sources = stack[-1], self._made_of(stack[-1])
            if waiting := [s for s in sources or () if s not in self._regions]:
                stack += waiting
                continue
            self._regions[ref] = self._found(ref, sources)
            stack.pop()
        return self._regions[ref]

    def _found(self, ref: int, sources: tuple[int, ...] | None) -> Region:
        """Returns the region of a value, from those of the values that it is made of."""
        given = [self._regions[source] for source in sources or ()]
        left, over = self._overwritten.get(ref, (True, False))
        made, empty = self.made(ref), self._empty(self._values.get(ref))

        def region(made_of: Formula) -> Formula:
            drawn = sources is None or (made_of is True and self._is_by(ref, SAMPLING))
            nothing = not drawn and made_of
            return any_of((all_of((nothing, left)), over, empty))

        plain = region(all_of(r.plain for r in given))
        if made is None:
            return Region(plain, plain, False, self._fixed(ref, plain, empty))
        nan = [] if made.op in WITHOUT_NAN else [r.nan for r in given]
        nan += [self._possible(NANS[made.op](made)) if made.op in NANS else False, self._by_zero(made)]
        one = self._possible(LAWS[made.op](made)) if made.op in LAWS else False
        same = all_of((any_of((one, *nan)), left))
        whole = any_of((region(all_of(r.whole for r in given)), same))
        return Region(whole, plain, all_of((any_of(nan), left)), self._fixed(ref, whole, empty))

    def _fixed(self, ref: int, whole: Formula, empty: Formula) -> Cases:
        """Returns the cases of a value that depends on no data at some sizes."""
        value, made = self._values.get(ref), self.made(ref)
        none: Cases = () if empty is False else ((empty, None),)
        if whole is False or value is None or ref in self._overwritten:
            return none
        found = of_constant(value)
        if not found and made is not None:
            found = cases(made, value, lambda source: self._regions[source].fixed)
        possible = ((self._possible(where), number) for where, number in found)
        return (*none, *((where, number) for where, number in possible if where is not False))

    def fixed(self, ref: int) -> Cases:
        """Returns sizes at which each element of the value is the same known number for all data; None where
        it has no elements.
        """
        return self._region(ref).fixed

    def _by_zero(self, made: Made) -> Formula:
        """Returns the sizes at which a divisor, or what a logarithm is taken of, is the same for all data: it
        may be 0.
        """
        ref = made.ref("other" if made.op == "div" else "input") if made.op in WITHOUT_ZERO else None
        if ref is None or self._regions[ref].plain is True or below(0, Ranges(self).of(ref).low) is True:
            return False
        return self._regions[ref].whole

    def _possible(self, formula: Formula) -> Formula:
        """Returns the formula; False where the data decide it, or no sizes meet it."""
        if isinstance(formula, bool) or any(name in self._data for name in free_symbols(formula)):
            return formula is True
        return not self._certain(negate(formula)) and formula

    def of_elements(self, ref: int) -> Formula:
        """Returns the sizes at which the value has elements and none of them depends on data."""
        value = self._values.get(ref)
        region, empty = self.region(ref), self._empty(value)
        parts = (part for part in disjuncts(region) if part not in disjuncts(empty))
        return any_of(part for part in parts if not _leaves_nothing(part, value))

    def equal(self, one: int, other: int) -> Formula:
        """Returns sizes at which two values are surely equal: one is a copy of the other, or its sum, mean or
        maximum where it has one element.
        """
        others = dict(self._copied(other))
        return any_of(all_of((given, others[ref])) for ref, given in self._copied(one) if ref in others)

    def made(self, ref: int) -> Made | None:
        """Returns the call that made a value; None for inputs."""
        found = self._maker(ref)
        if type(found) is tuple:
            found = self._makers[ref] = self._made(*found)
        return found if isinstance(found, Made) else None

    def assignment(self, time: int, ref: int) -> Made | None:
        """Returns the call of this number, if it assigns to a part of a value."""
        node = self._nodes[time]
        if node.op != "setitem" or node.get("input") != Ref(ref):
            return None
        return self._made(node, time, 0)

    def _made(self, node: Node, time: int, place: int) -> Made:
        ratios = self._ratios.get(time, {})
        return Made(node, time, place, self._values, self.equal, self._whole, ratios)

    def _is_by(self, ref: int, ops: Container[str]) -> bool:
        """Returns whether one of these operators made a value."""
        made = self.made(ref)
        return made is not None and made.node.op in ops

    def _whole(self, ref: int) -> Formula:
        return self._regions[ref].whole

    def value(self, ref: int) -> Value:
        return self._values.get(ref)

    def _copied(self, ref: int) -> Iterator[tuple[int, Formula]]:
        """Yields the value, and those that it is a copy of, each with the sizes at which it is."""
        given: Formula = True
        for _ in range(MOST_COPIES):
            yield ref, given
            made = self.made(ref)
            if made is None or made.op not in COPIES | OF_ONE | STRETCHING:
                return
            sources = made.node.refs
            source = sources[made.place if made.op == "broadcast_tensors" else 0].id
            if made.op in OF_ONE:
                given = all_of((given, eq(product(made.shape), 1)))
            elif made.op in STRETCHING and not _is_like(self.value(source), self.value(ref)):
                return
            ref = source

    def _made_of(self, ref: int) -> tuple[int, ...] | None:
        """Returns the values that a value is made of; of one that is not found nothing is known."""
        if (maker := self._maker(ref)) is None:
            return ()
        if ref not in self._sources:
            made = self.made(ref)
            constant = isinstance(maker, Input) and maker.holds != "data"
            of_input = () if constant else None
            self._sources[ref] = of_input if made is None else _made_of(made.node, made.place)
        return self._sources[ref]

    def _maker(self, ref: int) -> Input | tuple[Node, int, int] | Made | None:
        """Returns the input that a value is, or the call that made it. If the value is not found, calls have
        been taken back, so the program is searched again from the start.
        """
        if ref not in self._makers:
            self._look()
        if ref not in self._makers:
            self._looked_at = 0, 0
            self._sources.clear()
            self._look()
        return self._makers.setdefault(ref, None)

    def _look(self) -> None:
        """Looks through what has been written down since the last time."""
        inputs, first = self._looked_at
        self._makers.update((given.id, given) for given in self._inputs[inputs:])
        places = (*(p for p in self._unwritten if p < first), *range(first, len(self._nodes)))
        self._unwritten = []
        for place, node in ((p, self._nodes[p]) for p in places if p < len(self._nodes)):
            if not node.results and not node.args:  # it is being written, or its refusal was caught
                self._unwritten.append(place)
            for at, ref in enumerate(node.results):
                self._makers[ref] = node, place, at
            self._has_loops |= node.op == "carried" and node.get("listed") is not True
        self._looked_at = len(self._inputs), max(first, len(self._nodes))

    def _empty(self, value: Value | None) -> Formula:
        if not isinstance(value, Tensor):
            return False
        return any_of(self._is_zero(dim) for dim in value.shape if not isinstance(dim, int) or dim == 0)

    def _is_zero(self, dim: Dim) -> Formula:
        """Where a size is 0; nowhere that the data decide it."""
        found = self._zero.get(dim)
        if found is None:
            of_data = isinstance(dim, Term) and any(name in self._data for name in symbols(dim))
            found = self._zero[dim] = False if of_data or self._certain(ge(dim, 1)) else eq(dim, 0)
        return found


def _leaves_nothing(condition: Formula, value: Value | None) -> bool:
    """Returns whether a tensor has no element wherever an equation holds, as one of `c*s - c` elements where
    `s == 1`. False also where this is not found out.
    """
    known = Equations()
    known.learn(condition)
    return isinstance(value, Tensor) and any(known.simplify(dim) == 0 for dim in value.shape)


def _is_like(one: Value, other: Value) -> bool:
    return isinstance(one, Tensor) and isinstance(other, Tensor) and one.shape == other.shape


def less(formula: Formula, other: Formula) -> Formula:
    """Returns the formula where the other one does not hold."""
    if any(set(disjuncts(part)) <= set(disjuncts(other)) for part in conjuncts(formula)):
        return False
    rest = any_of(part for part in disjuncts(formula) if part not in disjuncts(other))
    return all_of((rest, negate(other)))


def _made_of(node: Node, place: int) -> tuple[int, ...] | None:
    op = node.op.rstrip("_") or node.op
    if op == "broadcast_tensors":
        return tuple(ref.id for ref in [*refs(dict(node.args)["tensors"])][place : place + 1])
    if op in RANDOM and not any(isinstance(argument, Ref) for name, argument in node.args if name != "input"):
        return None
    template = TEMPLATES.get(op)
    return tuple([ref.id for name, argument in node.args if name != template for ref in refs(argument)])
