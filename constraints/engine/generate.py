"""The loop that applies rules to a program: each call goes to its rule, which states its requirements and
returns its result.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from operator import attrgetter, is_
from types import MappingProxyType
from typing import Any, Final, NoReturn

from msgspec import structs

from ..contents.elements.dtypes import INTEGRAL
from ..contents.elements.values import extremes, stored, ways_of
from ..contents.elements.values import fitted as fitted_to
from ..contents.laws.calls import CASTS
from ..contents.laws.following import with_elements
from ..contents.laws.masks import number_of_true, one_value, whether_some
from ..contents.lookups.computed import ComputedRange, chains_of
from ..contents.lookups.cuts import CHOOSING, chosen
from ..contents.lookups.draws import scaled_draw
from ..contents.lookups.extremes import LAWS
from ..contents.lookups.places import CUTTING, Places, is_exact, referring
from ..contents.outcomes.choices import Asked, Choice, Sought, choice_of, of_each_choice
from ..contents.outcomes.data import is_fixed_choice, share_data
from ..contents.outcomes.dataless import Dataless, less
from ..contents.outcomes.fitting import may_leave_numbers, never_finite, no_index_between, none_between
from ..contents.outcomes.fixed import comparison, equality, number_of_results, outcomes
from ..contents.outcomes.ranges import OPEN, Outlook, Range, Ranges, Usual, compared, range_of
from ..contents.outcomes.scalars import Computed, Sizes, holding, of_elements
from ..contents.outcomes.scattered import free_numbers
from ..contents.outcomes.singular import no_inverse
from ..contents.outcomes.trials import BOTH, Truth, is_doubtful, is_of_each, marks_choices, outlook, possible
from ..contents.requirements.indices import NO_DATA, SAME_DATA
from ..contents.requirements.operands import Refusals, errors_of, refused_by_data, require_elements
from ..contents.sizes.needed import Limits, needed
from ..contents.traits import SPARSE_LAYOUTS, Border, Contents, TrueCount
from ..ir.dtypes import category
from ..ir.language import (
    Affine,
    Between,
    Cases,
    Constraint,
    Direction,
    Dyn,
    Generated,
    Layout,
    Note,
    Number,
    Quotient,
    Refused,
    Situation,
    Slice,
    Span,
    Tensor,
    Value,
    product,
    tensors,
)
from ..ir.opnames import is_in_place, parameters
from ..ir.program import Argument, Input, Node, Program, Ref, is_numbers, parts_of, refs
from ..ir.release import is_since
from ..ir.system import Domain
from ..terms.dims import Dim, Symbol, Term, coefficients, evaluate, lone_atom, minimum, sym, symbols
from ..terms.equations import Equations
from ..terms.formula import (
    And,
    Compare,
    Formula,
    Or,
    all_of,
    any_of,
    comparisons,
    eq,
    free_symbols,
    ge,
    implies,
    le,
    negate,
    rewrite,
)
from ..terms.formula_text import stated
from ..terms.intervals import Bounds
from ..terms.rows import Deeper
from .collector import collector_at_rest
from .kernels import Kernels, require_kernel
from .known import Known, exactly
from .lifting import (
    fitted,
    has_row,
    into_first,
    is_stray,
    number_of_elements,
    opened,
    prepared,
    restored,
    shaped,
)
from .memory import require_apart
from .ruleset import PER_DIM, BadCall, Rule, RuleFailed, Rules, leaves
from .unit_sizes import cases_of, remade


def nowhere(target: Tensor) -> Formula:
    """Returns that nothing lies where a copy is to go."""
    return False


PINNED: Final = frozenset(
    "unique unique_dim unique_consecutive unique2 _unique2 nonzero argwhere masked_select".split()
)
"""Operators whose number of results is decided by the data; it is 0 if they get no element."""
BY_ELEMENTS: Final = frozenset("bincount one_hot repeat_interleave".split())
"""Operators whose number of results is computed from integers."""
RESHAPING = frozenset(
    "as_strided_ resize_ resize_as_ set_ squeeze_ swapaxes_ swapdims_ t_ transpose_ unsqueeze_".split()
)
"""In-place operators that change the shape of the tensor; every other has to leave it as it is."""


COUNTED: Final = {
    **dict.fromkeys(("arange", "range"), ("start", "end", "step")),
    **dict.fromkeys(("linspace", "logspace"), ("steps",)),
    **dict.fromkeys(("eye", "randperm", "fftfreq", "rfftfreq"), ("n", "m")),
    **dict.fromkeys(("tril_indices", "triu_indices"), ("row", "col")),
    **dict.fromkeys(
        "bartlett_window blackman_window hamming_window hann_window kaiser_window".split(), ("window_length",)
    ),
}
"""Parameters of operators that make tensors, with which these count elements; a tensor in place is read."""
_NO_CALL: Final[tuple[str, Mapping[str, Any]]] = "", MappingProxyType({})


@dataclass(slots=True)
class _Call:
    """A call between the steps of `Generator.call`."""

    op: str
    base: str
    """The operator whose rule applies: `add` for `add_`, which has no rule of its own."""
    rule: Rule
    named: dict[str, Any]
    """The arguments by the rule's own names."""
    shaped: dict[str, Any]
    """The arguments that contain something other than plain numbers and texts."""
    writes: bool
    inplace: bool
    """Whether the operator writes into its first argument by the rule of another operator."""
    rowed: bool = False
    """Whether the rank of some argument is unknown."""


@dataclass(slots=True)
class Generator:
    """Applies rules call by call and collects their statements; it is the Context of each of them.

    `count` gives the number of results of a call where its rule cannot know it (`split` along a symbolic
    size). `chooser` decides a formula on which the kind of the result depends (`squeeze` of a symbolic size).
    """

    rules: Rules
    domain: Domain = field(default_factory=Domain)
    count: Callable[[Dim], int] | None = None
    chooser: Callable[[Formula], bool] | None = None
    deeper: Callable[[Deeper], None] | None = None
    """Declares more of the rows; None where that is no longer possible."""
    said: Generated = field(default_factory=Generated)
    node: int = -1
    nothing: Known = field(default_factory=Known)
    """The initial state of knowledge; generators of the same rules that share it share cached answers."""
    given: Formula = True
    """The condition under which the call is made at all; its requirements apply under it."""
    bounds: Bounds = field(init=False)
    """The facts that are certain where the next call is made: the domain, and the requirements of the calls
    so far.
    """
    equations: Equations = field(default_factory=Equations)
    known: Known = field(init=False)
    """The same facts, as a key to cached answers."""
    _learnt: list[Formula] = field(default_factory=list)
    _choices: dict[str, Choice | Sought] = field(default_factory=dict)
    """Numbers that the data choose from known values, by name."""
    computed_numbers: dict[str, Computed] = field(default_factory=dict)
    """How numbers that the data decide, about which no more is known, are computed from elements."""
    _free_counts: dict[str, Dim] = field(default_factory=dict)
    """The number of elements of each mask whose elements the user may choose, by the name of the number of
    its true elements.
    """
    _true_counts: dict[str, tuple[Dim, bool]] = field(default_factory=dict)
    """The number of elements of each mask, by the name of the number of its true elements, and whether any
    elements may be true.
    """
    _ratios: dict[int, Mapping[str, Quotient]] = field(default_factory=dict)
    """The quotients of sizes that a call is given, by the number of its node, which only says that they are
    floats.
    """
    contents: Contents = field(init=False)
    """Facts about the tensors of the program besides their elements, by reference."""
    _fresh: int = 0
    """The number of sizes that data have decided, including those taken back: no name is used twice."""
    _indexed: tuple[str, Mapping[str, Any]] = _NO_CALL
    """The last call, with its arguments by name."""
    _last: tuple[str, Mapping[str, Any]] = _NO_CALL
    """The last call as its rule saw it, where it is an operator and its arguments by name."""
    _dataless: Dataless | None = None
    _writes: list[int] = field(default_factory=list)
    """The calls that have written into tensors."""
    storage: tuple[Dim, Dim] | None = None
    lying: Callable[[Tensor], Formula | None] = nowhere
    """The answer of `memory_of` for the tensor of the next call."""
    kernels: Kernels | None = None
    """The kernels that run the program, if they are known; they do not support all dtypes."""
    repeatable: bool = False
    """Whether the result was the only output of the last call."""
    _unchecked: Formula = False
    """The condition, stated by the last rule, under which torch does not check the indices of the call."""
    _asked: bool = False
    """Whether the current call has asked for something that its arguments alone do not decide."""

    def __post_init__(self) -> None:
        self.bounds, self.known = Bounds(self.domain.ranges), self.nothing.after(self.domain)
        self.contents = Contents(self._most)
        self._learnt += self.domain.assumptions
        for known in self.domain.beyond_ranges:
            self._apply(known)

    def close(self) -> None:
        """Releases what refers back to the generator, so that it is freed with its last user and needs no
        garbage collection.
        """
        self.count = self.chooser = self.deeper = None
        if self._dataless is not None:
            self._dataless.close()
            self._dataless = None
        self.lying = nowhere
        del self.contents

    @property
    def learnt(self) -> frozenset[Formula]:
        """Returns the learnt facts, without the axioms of rows."""
        return frozenset((*self._learnt, *self.said.unbacked.values())) - self.domain.axioms

    def require(
        self,
        formula: Formula,
        reason: str,
        error: type[Exception] = RuntimeError,
        *,
        by_data: bool = False,
    ) -> None:
        if formula is True:  # as nearly all are, of sizes that are numbers
            return
        formula = implies(self.given, formula)
        if self.equations:
            formula = self.equations.simplify_formula(formula)
        alone = False
        if not by_data and self._choices and (each := self._of_each_choice(formula)) is not None:
            if each.condition is False and self._asks_for_trues(formula):
                by_data = alone = True
            else:
                by_choice = each.by_data and not self.bounds.certain(negate(each.some))
                self.require(each.condition, reason, error, by_data=by_choice)
                if each.whole:
                    return
        if not self.bounds.certain(formula):
            constraint = Constraint(
                formula, reason, self.node, by_data=by_data, error=error, alone=alone,
                decided=len(self.said.unbacked),
            )
            self.said.constraints.append(constraint)
            self.learn(formula)
            if True not in self.outcomes_of_numbers(formula):
                self.approximate(SAME_DATA, "accept")

    def _asks_for_trues(self, formula: Formula) -> bool:
        """Returns whether a requirement holds from some number of true elements of a free mask on."""
        bound = self._as_bound(formula)
        if not isinstance(bound, Compare) or bound.op != ">=":
            return False
        names = {name for name in symbols(bound.term) if name in self._free_counts}
        about = [(mono, c) for mono, c in coefficients(bound.term) if any(a.symbols & names for a in mono)]
        return len(about) == 1 and about[0][1] > 0 and [a.text for a in about[0][0]] == [*names]

    def _as_bound(self, formula: Formula) -> Formula:
        """Returns `n >= 1` for `n != 0` if n is at least 0."""
        natural = isinstance(formula, Compare) and formula.op == "!=" and self.at_least(formula.term, 0)
        return ge(formula.term, 1) if natural and isinstance(formula, Compare) else formula

    def _of_each_choice(self, formula: Formula) -> Asked | None:
        """Returns what a requirement asks of all choices of the data, if no branch has distinguished them."""
        spoken_of = free_symbols(formula) & self.said.unbacked.keys()
        if len(spoken_of) != 1:
            return None
        required = {constraint.formula for constraint in self.said.constraints}
        branches = (told for told in self._learnt if told not in required)
        if any(spoken_of & free_symbols(told) for told in branches):
            return None
        bound, counts = self._as_bound(formula), spoken_of & self._free_counts.keys()
        if counts and any(c.op != ">=" and counts & free_symbols(c) for c in comparisons(bound)):
            return None  # all choices satisfy no equation
        return of_each_choice(bound, self._choices)

    def learn(self, formula: Formula) -> None:
        """Adds a formula that holds from here on."""
        self.known = self.known.after(formula)
        self._learnt.append(formula)
        self._apply(formula)

    def _apply(self, formula: Formula) -> None:
        """Narrows the bounds and extends the equations by a formula that holds."""
        self.bounds.learn(formula)
        self.equations.learn(formula)
        if isinstance(formula, Compare) and formula.op == ">=" and self.bounds.at_most_0(formula.term):
            self.equations.learn(eq(formula.term, 0))

    def simplified(self, value: Value) -> Value:
        """Returns a result with its sizes written as simply as the equations so far allow."""
        if isinstance(value, Tensor):
            shape = tuple(map(self.equations.simplify, value.shape))
            layout = value.layout
            if isinstance(layout, tuple):
                layout = tuple(map(self.equations.simplify, layout))
            same = shape == value.shape and layout == value.layout
            return value if same else structs.replace(value, shape=shape, layout=layout)
        if isinstance(value, tuple):
            return tuple(map(self.simplified, value))
        return self.equations.simplify(value) if isinstance(value, Term) else value

    def retract(self, count: int) -> list[Constraint]:
        """Takes back all constraints but the first `count`, and the facts learnt from them, and returns them.
        """
        retracted = self.said.constraints[count:]
        del self.said.constraints[count:]
        without, learnt = {c.formula for c in retracted}, self._learnt
        self.forget()
        for known in (*self.said.unbacked.values(), *(f for f in learnt if f not in without)):
            self.learn(known)
        return retracted

    def follow(self, inputs: Sequence[Input], nodes: Sequence[Node]) -> None:
        """The program that the calls are written down in, which grows."""
        data = self.said.unbacked
        counts = self.computed_numbers
        self._dataless = Dataless(self.said.values, inputs, nodes, data, self.certain, self._ratios, counts)

    def forget(self) -> None:
        """Takes back everything that was learnt, except the ranges of the domain."""
        if self._dataless is not None:
            self._dataless.forget()
        self._learnt, self.known = [], self.nothing.after(self.domain)
        self.bounds, self.equations = Bounds(self.domain.ranges), Equations()

    def refuse(self, reason: str, error: type[Exception] = RuntimeError) -> NoReturn:
        raise Refused(reason, error)

    def approximate(
        self, reason: str, may: Direction = "both", where: Formula = True, *, number: str = ""
    ) -> None:
        if where is not False:
            self.said.notes.append(Note("approximate", reason, self.node, may, where, number))

    def fresh(
        self,
        hint: str,
        low: Dim | None,
        high: Dim | None,
        also: Callable[[Term], Formula] | None = None,
        counted: Tensor | None = None,
    ) -> Term:
        name = f"{hint}_{self._fresh}"
        self._fresh += 1
        while name in self.domain.symbols:  # a name that the user gave to a size of an input
            name += "_"
        size = sym(name)
        above: Formula = True if low is None else ge(size, low)
        below: Formula = True if high is None else le(size, high)
        more = True if also is None else also(size)
        self._choices.pop(name, None)
        self.computed_numbers.pop(name, None)
        if counted is not None and hint == "true":
            self._compute_trues(name, self.contents.name_of(counted), counted, self.contents.is_free(counted))
        if counted is not None and (sought := self._sought(counted, hint)) is not None:
            self._choices[name] = sought
        known = self.said.unbacked[name] = all_of((above, below, more))
        self.known = self.known.after(known)
        self.bounds.learn(known)
        return size

    def trues(self, mask: Tensor) -> Dim:
        self._asked = True
        if (same := one_value(mask)) is not None and not self.contents.masks_written:
            return mask.numel if same else 0
        if self.contents.of(mask).diagonal and not self.contents.masks_written:
            return minimum(*mask.shape)
        count = self.contents.count(mask) if mask.dtype == "bool" else None
        decided = number_of_true(mask) if not self.contents.masks_written else None
        if decided is not None:
            return decided
        if count is None:
            total: Dim = self.fresh("true", 0, self._most(mask), counted=mask)
        else:
            total = self._total(count)
        if isinstance(total, Term) and self.is_data(total):
            if self.contents.is_free(mask) and isinstance(lone_atom(total), Symbol):
                name, most = "".join(symbols(total)), self._most(mask)
                self._free_counts[name] = most
                if self._is_open(mask):
                    self._choices[name] = Choice(((True, 0), (True, most)), whole=True)
            if self._counts_matter():
                self._doubt_count(mask, total)
            self._of_nothing("nonzero", total, {"input": mask})
        return total

    def may_be_alike(self, tensor: Tensor) -> bool:
        self._asked = True
        return self.contents.may_be_alike(tensor)

    def _is_open(self, mask: Tensor) -> bool:
        """Returns whether any elements of a free mask may be true: those of truths and of comparisons of
        floats. Other numbers may all lie on one side of a bound.
        """
        ref = self.contents.name_of(mask)
        if ref is None or self._dataless is None or self._usual_of(mask) != OPEN:
            return False
        made = (self._dataless.value(source) for source in self._dataless.sources(ref))
        return all(isinstance(v, Tensor) and (v.dtype or "").startswith(("float", "bool")) for v in made)

    def _most(self, mask: Tensor) -> Dim:
        return number_of_elements(self, mask) if has_row(mask) else mask.numel

    def stored(self, tensor: Tensor) -> Dim:
        self._asked = True
        count = self.contents.of(tensor).stored
        if count is not None:
            return count
        ref = self.contents.ref(tensor)
        made = None if self._dataless is None or ref is None else self._dataless.made(ref)

        def make() -> Term:
            count = self.fresh("stored", 0, tensor.numel)
            if made is not None:  # perhaps no data make each number of elements other than 0
                self.approximate(SAME_DATA, number="".join(symbols(count)))
            return count

        return self.contents.number("stored", ref, make)

    def since(self, *release: int) -> bool:
        return is_since(self.rules.release, release)

    @property
    def floats(self) -> str:
        return self.rules.floats

    def makes_floats(self, dtype: str) -> None:
        """Applies the rules with another default dtype from now on. The answers before are not used again."""
        self.rules = self.rules.of_torch(self.rules.release, dtype)
        self.known.answered.clear()
        self.known.repeated.clear()

    def unchecked(self, formula: Formula) -> None:
        self._unchecked = any_of((self._unchecked, formula))

    def layouts(self, tensor: Tensor) -> Sequence[tuple[Situation, Tensor]] | None:
        return cases_of(tensor, self.known, self.bounds, self.equations, self.rules.release)

    def memory_of(self, tensor: Tensor) -> tuple[Dim, Dim] | None:
        self._asked = True
        return self.storage

    def at_rest(self, target: Tensor) -> Formula | None:
        self._asked = True
        return self.lying(target)

    def is_data(self, dim: Dim) -> bool:
        return not symbols(dim).isdisjoint(self.said.unbacked)

    def dataless(self, tensor: Tensor | int, *, empty: bool = False, numbers: bool = False) -> Formula:
        """The sizes at which a tensor, an argument of the last call or by its reference, depends on no data,
        as far as such may still come; and those at which it is `empty`.
        """
        self._asked = True
        ref = tensor if isinstance(tensor, int) else self.contents.name_of(tensor)
        if ref is None or self._dataless is None:
            return False
        found = self._dataless.region(ref) if empty else self._dataless.of_elements(ref)
        if numbers:
            found = all_of((found, self._dataless.undecided(ref)))
        return found is not False and not self.certain(negate(found)) and found

    def outlook(self, ref: int) -> Outlook:
        """Returns what sizes say of the truth of a value, by its reference."""
        usual = OPEN if self._dataless is None else Ranges(self._dataless).usual(ref)
        return self._outlook(usual, ref, lambda known, sizes: known[0])

    def outcomes(self, ref: int) -> tuple[Formula, Formula]:
        """Returns sizes at which a value is true for all data, and such at which it is false."""
        return (False, False) if self._dataless is None else outcomes(self._dataless.fixed(ref))

    def float_of(self, ref: int) -> float | None:
        """Returns the only element of floats where it is the same for all data, at all sizes; else None."""
        known = () if self._dataless is None else self._dataless.fixed(ref)
        numbers = (n for where, n in known if isinstance(n, int | float) and self.certain(where))
        return next(map(float, numbers), None)

    def _usual_of(self, mask: Tensor) -> Usual:
        self._asked = True
        ref = self.contents.name_of(mask)
        return OPEN if ref is None or self._dataless is None else Ranges(self._dataless).usual(ref)

    def outlook_of(self, op: str, ref: int, number: float) -> Outlook:
        """Returns what sizes say of a comparison of the one element of a value with a number."""
        usual = compared(op, self._range_of(ref), range_of(number))
        return self._outlook(usual, ref, lambda known, sizes: comparison(op, known[0], number), number)

    def _outlook(self, usual: Usual, ref: int, truth: Truth, *numbers: float) -> Outlook:
        if self._dataless is None:
            return Outlook(usual)
        return outlook(self._dataless, self.dataless(ref), usual, (ref,), truth, numbers)

    def outlook_equal(self, values: Sequence[int]) -> Outlook:
        """Returns what sizes say of the equality of values."""
        if self._dataless is None:
            return Outlook()
        first, *others = values
        usual = Usual(always=all_of(self._dataless.equal(first, other) for other in others))
        dataless = all_of(self.dataless(ref, empty=True) for ref in values)
        one_shape = len({getattr(self.said.values.get(ref), "shape", ref) for ref in values}) == 1

        def truth(known: Sequence[Cases], sizes: Sizes | None) -> Cases:
            return equality(known) if one_shape else ()

        return outlook(self._dataless, dataless, usual, values, truth)

    def outcomes_of(
        self, computed: Computed, near: Sequence[float], *, every: bool = True
    ) -> frozenset[bool]:
        """Returns the outcomes that are found of a condition that is computed from elements of tensors, at
        `every` size or at some. Numbers `near` its limits are tried.
        """
        if self._dataless is None:
            return BOTH
        known = all_of(map(self._dataless.region, computed.refs))

        def truth(known: Sequence[Cases], sizes: Sizes | None) -> Cases:
            return () if sizes is None else of_elements(known, sizes, computed.compute)

        return possible(self._dataless, computed.refs, truth, known, near, every=every)

    def outcomes_of_numbers(self, formula: Formula) -> frozenset[bool]:
        """Returns the outcomes that are found of a formula on numbers that the data decide; both of one on
        sizes, and on numbers whose range is known. If it mentions sizes, too, these decide where it holds.
        """
        if not self.computed_numbers:
            return BOTH
        names = [name for name in free_symbols(formula) if name in self.computed_numbers]
        if not names or self._are_open(names):
            return BOTH
        if len(names) == 1 and (count := self._true_counts.get(names[0])) is not None:
            return self._outcomes_of_none_and_all(formula, names[0], count[0])
        near = [compare.term if isinstance(compare.term, int) else dict(coefficients(compare.term)).get((), 0)
                for compare in comparisons(formula)]  # fmt: skip
        every = len(names) == len(free_symbols(formula))
        return self.outcomes_of(holding(formula, names, self.computed_numbers), near, every=every)

    def _are_open(self, names: Sequence[str]) -> bool:
        """Returns whether numbers count the true elements of masks that may be any, and no two of the masks
        are made of the same data.
        """
        if self._dataless is None or not all(self._true_counts.get(name, (0, False))[1] for name in names):
            return False
        refs = [ref for name in names for ref in self.computed_numbers[name].refs]
        return not share_data(self._dataless, refs)

    def _outcomes_of_none_and_all(self, formula: Formula, name: str, most: Dim) -> frozenset[bool]:
        """Returns the outcomes of a formula on the number of true elements that none and all of them give, at
        all sizes; at some if it mentions sizes, too.
        """
        found = [rewrite(formula, {name: count}) for count in (0, most)]
        if free_symbols(formula) == {name}:
            given = {True: any(map(self.certain, found)), False: any(map(self.certain, map(negate, found)))}
        else:
            given = {True: any(f is not False for f in found), False: any(f is not True for f in found)}
        return frozenset(outcome for outcome, is_given in given.items() if is_given)

    def _range_of(self, ref: int | None) -> Range:
        return Range() if ref is None or self._dataless is None else Ranges(self._dataless).of(ref)

    def computed(self, tensor: Tensor, *, one: bool = False) -> tuple[ComputedRange, ...]:
        self._asked = True
        places, ref = self._places(), self.contents.name_of(tensor)
        return () if places is None or ref is None else chains_of(places, ref, self.node, one=one)

    def adds_up(self, tensor: Tensor, ref: int, total: Dim) -> Formula | None:
        """Returns the condition under which integers, none of them negative, add up to a number; None where
        they are not computed one by one.
        """
        self.contents.about(((tensor, ref),))
        found = self.computed(tensor, one=True)
        return found[0].adds_up(total, product(tensor.shape)) if len(found) == 1 else None

    def equals(self, tensor: Tensor, ref: int, number: Dim) -> Formula | None:
        """Returns the sizes at which all elements are a number; None where that is not found, or the data
        choose it.
        """
        self.contents.about(((tensor, ref),))
        found = self.needed(tensor, number, number)
        return None if found is None or found[1] else found[0]

    def needed(
        self,
        tensor: Tensor,
        low: Dim | None,
        high: Dim | None,
        ignored: int | None = None,
        *,
        sizes: bool = False,
    ) -> tuple[Formula, bool] | None:
        self._asked = True
        places, ref = self._places(), self.contents.name_of(tensor)
        if places is None or ref is None:
            return None
        return needed(places, ref, self.node, Limits(low, high, ignored, sizes), self.said.unbacked)

    def with_all_true(self, formula: Formula) -> Formula:
        return rewrite(formula, self._free_counts)

    def range_of(self, tensor: Tensor) -> Range:
        self._asked = True
        return self._range_of(self.contents.name_of(tensor))

    def is_identity(self, tensor: Tensor) -> bool:
        self._asked = True
        return self.contents.is_identity(tensor)

    def no_inverse(self, op: str, tensor: Tensor) -> Formula:
        self._asked = True
        ref = self.contents.name_of(tensor)
        if ref is None or self._dataless is None:
            return False
        return no_inverse(self._dataless, self.contents.holds_identities, op, ref)

    def none_between(self, tensor: Tensor, low: Dim | None, high: Dim | None, some: bool) -> Formula:
        self._asked = True
        ref = self.contents.name_of(tensor)
        if ref is None or self._dataless is None:
            return False
        return none_between(self._dataless, ref, low, high, some)

    def no_index_between(self, tensor: Tensor, low: Dim, high: Dim) -> Formula:
        self._asked = True
        ref = self.contents.name_of(tensor)
        if ref is None or self._dataless is None:
            return False
        return no_index_between(self._dataless, ref, low, high)

    def may_be_true(self, tensor: Tensor) -> bool:
        self._asked = True
        ref = self.contents.name_of(tensor)
        if ref is None or self._dataless is None:
            return True
        outlook = self.outlook(ref)
        return True in outlook.possible or outlook.drawn

    def may_differ(self, tensor: Tensor) -> bool:
        self._asked = True
        ref = self.contents.name_of(tensor)
        return ref is None or self._dataless is None or free_numbers(self._dataless, ref) is not None

    def may_be_nan(self, tensor: Tensor) -> Formula:
        self._asked = True
        ref = self.contents.name_of(tensor)
        if ref is None or self._dataless is None:
            return False
        return any_of((self._dataless.nan(ref), never_finite(self._dataless, ref)))

    def overwritten(self, ref: int, by: Sequence[int], whole: Formula, is_finite: bool) -> None:
        """These values have been written into a tensor, at some sizes over the `whole` of it. A number among
        them is finite or not.
        """
        if self._dataless is not None:
            region = all_of(map(self._dataless.region, by))
            is_finite = is_finite and not any(may_leave_numbers(self._dataless, one, ()) for one in by)
            self._dataless.overwritten(ref, region, whole, is_finite)

    def without_data(self, tensor: Tensor, *, numbers: bool = False) -> tuple[Cases, Formula]:
        dataless = self.dataless(tensor, numbers=numbers)
        known = self._cases(tensor) if dataless is not False else ()
        return known, less(dataless, any_of(where for where, _ in known))

    def _cases(self, tensor: Tensor) -> Cases:
        """Returns the known cases of an argument of the last call, those with elements apart from the others.
        """
        ref = self.contents.name_of(tensor)
        found = () if ref is None or self._dataless is None else self._dataless.fixed(ref)
        some = all_of(ge(n, 1) for n in tensor.shape if not self.at_least(n, 1))
        return tuple((where if number is None else all_of((where, some)), number) for where, number in found)

    def _of_nothing(self, op: str, count: Dim, named: Mapping[str, Any]) -> None:
        """Learns how many results a call has where no data decide that: it counts elements that are a known
        number, or none.
        """
        given, pinned = [*tensors((*named.values(),))], op in PINNED
        others: list[Formula] = []
        for tensor in given:
            rest = dataless = self.dataless(tensor, empty=not pinned)
            if rest is not False and tensor is named.get("input") and isinstance(lone_atom(count), Symbol):
                rest = less(rest, self._learn_count(op, count, tensor, named))
            others += [rest] if dataless is not True or rest is False else []
        number = "".join(symbols(count)) if len(symbols(count)) == 1 else ""
        if op in BY_ELEMENTS and number:
            self._compute_count(op, number, named)
        self.approximate(NO_DATA, where=any_of(others), number=number)
        if given and not others:  # of what is pinned, no number that is possible is refused
            some = all_of(ge(n, 1) for tensor in given for n in tensor.shape if not self.at_least(n, 1))
            self.approximate(
                NO_DATA, "accept" if pinned else "both", some if pinned else True, number=number
            )

    def _total(self, count: TrueCount) -> Dim:
        """Returns the sum of elements that count the true ones of a mask."""
        total = self.contents.total(self, count)
        for name in symbols(total):
            if count.mask >= 0 and name in self.said.unbacked and name not in self.computed_numbers:
                is_free = self.contents.of_mask(count.mask).free == Border()
                self._compute_trues(name, count.mask, count.value, is_free)
        return total

    def _compute_trues(self, name: str, ref: int | None, mask: Tensor, is_free: bool) -> None:
        """Notes how many elements of a mask are true where all are equal, and whether any may be true."""
        if ref is None or has_row(mask) or self._dataless is None:
            self._true_counts.pop(name, None)
            return
        is_any = is_free or is_of_each(self._dataless, ref) or marks_choices(self._dataless, ref)
        self._true_counts[name] = mask.numel, is_any

        def compute(numbers: Sequence[float], sizes: Sizes) -> float:
            return evaluate(mask.numel, sizes.of(symbols(mask.numel))) if numbers[0] else 0

        self.computed_numbers[name] = Computed((ref,), compute)

    def _compute_count(self, op: str, name: str, named: Mapping[str, Any]) -> None:
        """Notes how a call that is given computed integers counts its results, where all these are equal."""
        repeats = named.get("repeats")
        tensor = repeats if isinstance(repeats, Tensor) else named["input"]
        ref = self.contents.name_of(tensor)
        if ref is None or self._dataless is None or self._dataless.made(ref) is None:
            return

        def compute(numbers: Sequence[float], sizes: Sizes) -> float:
            count = number_of_results(op, int(numbers[0]), tensor, named)
            if count is None:
                raise ValueError(op)
            return evaluate(count, sizes.of(symbols(count)))

        self.computed_numbers[name] = Computed((ref,), compute)

    def _learn_count(self, op: str, count: Dim, tensor: Tensor, named: Mapping[str, Any]) -> Formula:
        """Learns the number of results in the known cases of an operand, and returns the sizes of these."""
        told: list[Formula] = []
        for where, number in self._cases(tensor):
            if (found := number_of_results(op, number, tensor, named)) is not None:
                self._learn_of_data(count, implies(where, eq(count, found)))
                told.append(where)
        return any_of(told)

    def _counts_matter(self) -> bool:
        """Returns whether the last call is other than a write of one value to the true elements of a mask."""
        op, named = self._indexed
        value = named.get("value")
        return op not in ("setitem", "index_put") or (isinstance(value, Tensor) and value.rank > 0)

    def _doubt_relation(self, tensor: Tensor) -> None:
        """Marks a number that data decide as approximate where it depends on how results of the same data are
        related.
        """
        ref = self.contents.name_of(tensor)
        if ref is not None and self._dataless is not None and is_doubtful(self._dataless, ref):
            self.approximate(SAME_DATA)

    def _doubt_count(self, mask: Tensor, count: Term) -> None:
        """Marks the number of true elements as approximate, unless the user gives the mask, or data are found
        of which all elements are true, and such of which all are false.
        """
        ref, program = self.contents.name_of(mask), self._dataless
        if ref is None or program is None or program.made(ref) is None or program.region(ref) is True:
            return
        found = self.outlook(ref) if mask.dtype == "bool" else self.outlook_of("ne", ref, 0)
        is_open = found.possible == BOTH or (not found.possible and marks_choices(program, ref))
        doubted = any_of(found.usual) if is_open else True
        if not self.certain(negate(doubted)):
            self.approximate(SAME_DATA, where=doubted, number="".join(symbols(count)))

    def element(self, tensor: Tensor) -> Dim:
        """Returns the only element of a tensor of integers: the value that sizes decide, or a number that the
        data decides, the same one for every call on one tensor.
        """
        known, contents = tensor.elements, self.contents
        if isinstance(known, Affine):
            return known.start
        count = contents.count(tensor) if tensor.dtype != "bool" else None
        total = None if count is None else self._total(count)
        if total is None or self.is_data(total):
            self._doubt_relation(tensor)
        if total is not None:
            return total
        ways = ways_of(tensor, self.at_least) if self.chooser is not None else ()
        way = next((way for given, way in ways if self.choose(given, "an element")), None)
        if isinstance(way, int | Term):
            return way
        extreme = contents.of(tensor).extreme
        found = None if extreme is None else contents.decided(*extreme)

        def make() -> Term:
            span = extremes(tensor) if way is None else way
            low, high = (span.low, span.high) if span else (None, None)
            number = self.fresh("data", low, high)
            ref, name = contents.name_of(tensor), "".join(symbols(number))
            if (choice := self._choice(tensor)) is not None:
                self._choices[name] = choice
            if ref is not None and self._is_doubted(ref, isinstance(span, Span) and span.attained):
                self.computed_numbers[name] = Computed((ref,), lambda numbers, sizes: numbers[0])
            if low != high or low is None:
                known, rest = self.without_data(tensor)
                for where, one in known:
                    if isinstance(one, Between):
                        rest = any_of((rest, where))
                    else:
                        self._learn_of_data(number, one is None or implies(where, eq(number, int(one))))
                self.approximate(NO_DATA, where=rest, number="".join(symbols(number)))
            if extreme is not None:
                self._learn_of_data(number, contents.made(extreme, number))
            return number

        return contents.number("data", contents.ref(tensor), make) if found is None else found

    def _is_doubted(self, ref: int, attained: bool) -> bool:
        """Returns whether perhaps no data give a number, by its reference, some value in its range."""
        if not attained:
            return True
        return self._dataless is not None and is_fixed_choice(self._dataless, ref)

    def _choice(self, tensor: Tensor) -> Choice | Sought | None:
        """Returns what is known of the only element of a tensor."""
        choice = choice_of(tensor, self.at_least)
        if tensor.elements is None or (choice is not None and choice.whole):
            return choice
        return self._sought(tensor) or choice

    def _sought(self, tensor: Tensor, counted: str = "") -> Sought | None:
        """Returns the only element of a tensor, or how many elements are `counted`, as a number that can be
        sought; None where the program is not known.
        """
        places, ref, time = self._places(), self.contents.name_of(tensor), self.node
        some = True if counted == "distinct" else whether_some(tensor) if counted else None
        if places is None or ref is None:
            return None

        def between(low: Dim | None, high: Dim | None) -> tuple[Formula, bool] | None:
            if some is not None and high == 0 and low in (None, 0):
                return any_of((negate(some), eq(tensor.numel, 0))), False
            return needed(places, ref, time, Limits(low, high, counted=counted), self.said.unbacked)

        return Sought(between)

    def forget_data(self) -> None:
        """Takes back some sizes that the data decided: their names may be used again."""
        self.contents.forget(frozenset(self.said.unbacked))

    def take_for_valid(self) -> None:
        """Assumes that the indices of the last call are valid, since it is made whenever the program gets
        here.
        """
        for number, known in self.contents.used(*self._indexed):
            self._learn_of_data(number, known)

    def _learn_of_data(self, number: Dim, known: Formula) -> None:
        """Adds a fact about a size that the data decide, if it mentions inputs and data only."""
        (name,) = symbols(number)
        unbacked = self.said.unbacked
        spoken_of = free_symbols(known)
        if spoken_of and name in unbacked and spoken_of <= {*self.domain.symbols, *unbacked}:
            unbacked[name] = all_of((unbacked[name], known))
            self.known = self.known.after(known)
            self.bounds.learn(known)

    def at_least(self, dim: Dim, bound: int) -> bool:
        return self.bounds.at_least(dim, bound)

    def certain(self, formula: Formula) -> bool:
        return self.bounds.certain(formula)

    def number(self, dim: Dim) -> int:
        """Returns the number of results: a graph contains it, a recorder forks over it."""
        if isinstance(dim, int):
            return dim
        if self.count is None:
            raise BadCall(f"the number of results depends on {dim}")
        self._asked = True
        return self.count(dim)

    def choose(self, formula: Formula, reason: str) -> bool:
        """Returns whether the formula holds. The recorder forks over it."""
        if isinstance(formula, bool):
            return formula
        if self.chooser is None:
            raise BadCall(f"{reason} depends on whether {formula}")
        self._asked = True
        return self.chooser(formula)

    def deepen(self, wanted: Deeper) -> None:
        """Declares more of the rows; where that is impossible the call has no rule."""
        if self.deeper is None:
            raise BadCall(f"{', '.join((*wanted.symbols, *wanted.bounded))} would have to be declared")
        self.deeper(wanted)

    def declare(self, domain: Domain) -> None:
        """Replaces the domain by one that states more."""
        before, self.domain = frozenset(self.domain.assumptions), domain
        self.known = self.known.after(domain)
        for known in domain.assumptions:
            if known not in before:
                self.learn(known)

    def call(
        self, op: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[dict[str, Any], Value | None]:
        """Returns the named arguments of a call and its result; None where no rule of the operator accepts
        them.

        A refusal becomes the constraint `False`, and the result is Dyn, so that later calls are still
        examined. Raises RuleFailed where the rule raises anything else.
        """
        self.repeatable = self._unchecked = False
        self._indexed = self._last = _NO_CALL
        call = self._bound(op, args, kwargs)
        if call is None:
            return {**{f"arg{i}": a for i, a in enumerate(args)}, **kwargs}, None
        if args and args[0] is Dyn:  # as most operands are where some are
            return call.named, Dyn
        # Sets of types and layouts are made in C, which takes less than a call for each argument.
        are_tensors = {*map(type, call.shaped.values())} == _TENSORS
        if not (are_tensors and {*map(_layout, call.shaped.values())} == _PLAIN) and any(
            map(_is_special, call.shaped.values())
        ):
            if any(map(_is_unknown, call.named.values())):
                return call.named, Dyn
            if not self._bound_sparse(call, args, kwargs):
                return call.named, None
            are_tensors = False
        if not (are_tensors and call.rule.counts.isdisjoint(call.shaped)) or call.base in COUNTED:
            try:
                self._read_numbers(call)
            except Refused as refusal:
                self.require(False, str(refusal), refusal.error)
                return call.named, Dyn
        self._announce(call)
        key = self._key(call)
        if (answer := self.known.answered.get(key, _UNANSWERED)) is not _UNANSWERED:
            self.repeatable = True
            return call.named, self.again(answer) if self.known.made else anew(answer)
        before, self._asked = self._heard(), False
        try:
            result = call.rule.returned(self._answer(call), op)
        except BadCall as error:
            self._no_rule(f"{op}: {error}")
            return call.named, None
        except Refused as refusal:
            self.require(False, str(refusal), refusal.error)
            return call.named, Dyn
        except RecursionError:  # sizes are nested too deeply, which is no defect of the rule
            raise
        except Exception as error:
            raise RuleFailed(op, call.rule, error) from error
        once = self._asked or (call.rowed and self.refusals())
        if not once and before == self._heard():
            self.known.answered[key], self.repeatable = result, True
        return call.named, result

    def _bound(self, op: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Call | None:
        """Returns the call with its rule and its named arguments; None, with a note, where no rule takes it.

        An in-place operator without a rule of its own goes by that of the operator which it repeats in place.
        """
        rule, base, writes = self.rules.get(op), op, is_in_place(op)
        inplace = rule is None and writes
        if inplace:
            base = op[:-1]
            rule = self.rules.get(base)
        if rule is None:
            self._no_rule(f"{op} has no rule")
            return None
        try:
            named = rule.bind(args, parameters(base, kwargs) if kwargs else kwargs)
        except BadCall as error:
            self._no_rule(f"{op}: {error}")
            return None
        shaped = {
            key: value
            for key, value in named.items()
            if (kind := type(value)) is Tensor or (kind not in _INERT and not is_numbers(value))
        }
        return _Call(op, base, rule, named, shaped, writes, inplace)

    def _bound_sparse(self, call: _Call, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        """Binds the arguments, some of them sparse, to the operator's rule for sparse tensors, and returns
        whether it has one; else a note says so.
        """
        rule = None if call.inplace else call.rule.of_sparse
        if rule is None:
            self._no_rule(f"{call.op} has no rule for sparse tensors")
            return False
        call.rule, call.named = rule, rule.bind(args, parameters(call.base, kwargs))
        call.shaped = call.named.copy()
        return True

    def _read_numbers(self, call: _Call) -> None:
        """Replaces 0-dim tensors among the arguments by their elements where torch reads them as numbers."""
        for key, value in call.shaped.items():
            sizes = key in call.rule.counts
            if sizes and type(value) is tuple and key != "output_size" and not _are_integers(value):
                self.refuse(f"{key} must consist of integers, not {value}", TypeError)
            if type(value) is not Tensor or sizes:
                call.named[key] = self._numbers(value, sizes, key in PER_DIM)
        for key in COUNTED.get(call.base, ()):
            if key in call.named:
                value = call.named[key] = _element(call.named[key])
                if isinstance(value, Tensor) and value.dtype in INTEGRAL:
                    call.named[key] = self.element(value)

    def _announce(self, call: _Call) -> None:
        """Records what others need to know about a call before its rule runs: the quotients among its
        arguments, the tensors that it writes into, and its arguments by name, unless the rank of one is
        unknown.
        """
        named = call.named
        if self._ratios:
            self._ratios.pop(self.node, None)
        if Quotient in map(type, named.values()):
            self._ratios[self.node] = {k: value for k, value in named.items() if type(value) is Quotient}
        if call.writes or call.base == "setitem":
            self.written(next(iter(named.values())))
        if "out" in named:
            self.written(named["out"])
        if self.domain.rows:
            call.rowed = any(map(has_row, map(named.get, call.shaped)))
        if not call.rowed:
            self._indexed = self._last = call.base, named

    def _key(self, call: _Call) -> tuple[Any, ...]:
        """Returns a key that calls share whose answers can only be the same, where rules ask nothing else."""
        values = [value if type(value) in _EXACT else exactly(value) for value in call.named.values()]
        key = call.op, self.given, *call.named, *values
        if self.known.made:
            key += self.known.origins([*tensors(tuple(map(call.named.get, call.shaped)))])
        return key

    def _answer(self, call: _Call) -> Value:
        """Returns the result of the call by its rule. Raises what the rule raises."""
        given = named = call.named
        if call.rowed:
            given, result = self._lifted(call.rule, call.base, named, call.inplace)
        else:
            result = self._applied(call.rule, call.base, named)
        keeps_shape = call.op not in RESHAPING
        if call.inplace and keeps_shape:
            result = self._in_place(call.op, next(iter(given.values())), result)
        if not call.rowed:
            self._remember(call.rule, named, result, call.inplace and keeps_shape)
        if call.writes and keeps_shape:
            for target in tensors(next(iter(given.values()))):
                require_apart(self, call.op, target, given)
        return result

    def _remember(self, rule: Rule, named: dict[str, Any], result: Value, inplace: bool) -> None:
        """Stores the calls that made results of an unknown layout: for a call in place that leaves the sizes
        as they are, the one that made the tensor written to.
        """
        for tensor, made in remade(result, rule, named):
            if inplace:
                target = next(iter(named.values()))
                made = self.known.made[id(target)][1] if id(target) in self.known.made else made
            self.known.made[id(tensor)] = tensor, made

    def again(self, value: Value) -> Value:
        """Returns an equal value of its own identity, made by the same call."""
        copies, made = anew(value), self.known.made
        if made:
            # Most results are one tensor, for which a generator takes long.
            before = [value] if isinstance(value, Tensor) else tensors(value)
            after = [copies] if isinstance(copies, Tensor) else tensors(copies)
            for tensor, copy in zip(before, after, strict=True):
                if id(tensor) in made:
                    made[id(copy)] = copy, made[id(tensor)][1]
        return copies

    def _applied(self, rule: Rule, op: str, named: dict[str, Any]) -> Value:
        self._unchecked = False
        decided = len(self.said.unbacked)
        if by_sizes := [name for name in AXES.intersection(named) if _has_term(named[name])]:
            named = {**named, **{name: self._axes(named[name], named) for name in by_sizes if op != "tile"}}
        result = rule(self, named)
        fresh = [*self.said.unbacked][decided:] if len(self.said.unbacked) > decided else ()
        counts = [sym(name) for name in fresh if not name.startswith("true_")] if fresh else ()
        if self.kernels is not None:
            require_kernel(self, self.kernels, op, named, result)
        self._last = op, named
        require_elements(self, op, named, result, self._unchecked)
        contents, at_least = self.contents, self.bounds.at_least
        result = with_elements(op, named, result, at_least, contents.is_free, self._usual_of)
        result = self._placed(op, named, result)
        result = self.simplified(result) if self.equations else result
        if any(map(is_, repeat(result), named.values())):
            result = anew(result)  # another tensor, of which other things may be known
        result, told = self.contents.follow(self, op, named, result)
        if counts:
            given = frozenset(chain.from_iterable(map(symbols, _sizes(result))))
            for count in counts:
                if not symbols(count).isdisjoint(given):
                    self._of_nothing(op, count, named)
        self._asked |= told
        return result

    def refusals(self) -> Refusals:
        """Returns the sizes at which the last call is refused for some data of its operands."""
        return refused_by_data(self, *self._last, self._unchecked)

    def errors(self) -> Refusals:
        """Returns the types of the error by which the last call is refused where no rule says so, each with
        the sizes at which it is that one.
        """
        return errors_of(self, *self._last)

    def _axes(self, given: Value, named: Mapping[str, Any]) -> Value:
        """Returns axes, those that sizes decide as numbers: ones that the arguments have, a new one after
        these, or a number beyond.
        """
        if isinstance(given, tuple):
            return tuple([self._axes(axis, named) for axis in given])
        if type(given) is not Term:
            return given
        end = 1 + max((t.rank for t in tensors((*named.values(),))), default=0)
        told = f"which dim {given} is"
        return next((i for i in range(-end, end) if self.choose(eq(given, i), told)), end)

    def _placed(self, op: str, named: Mapping[str, Any], result: Value) -> Value:
        """Returns the result with the facts about its elements that the calls before tell: which of them a
        comparison has chosen, and what the only one is, where it is not known.
        """
        if not isinstance(result, Tensor) or result.dtype not in INTEGRAL:
            return result
        one, known = all(n == 1 for n in result.shape), result.elements
        asked = (one or op in CUTTING) and not is_exact(known)
        if known is None or not (asked or op in CHOOSING or op in CASTS):
            return result
        if (places := self._places()) is None:
            return result
        self._asked = True
        args = {name: referring(value, self.contents.name_of) for name, value in named.items()}
        found = places.of_result(op, args, result, self.node) if asked else None
        pieces = chosen(places, op, args, result, self.node) or scaled_draw(places, op, args, self.node)
        if found is None and pieces is not None:
            found = stored(fitted_to(pieces, result.dtype, self.at_least), result.shape, self.at_least)
        return result if found is None else structs.replace(result, elements=found)

    def _places(self) -> Places | None:
        """Returns what the program says of single elements; None in loops, where a call is made again and
        again.
        """
        program = self._dataless
        if program is None or program.has_loops:
            return None
        return Places(program, self._writes, self.at_least, self.certain, LAWS, self._ratios)

    def _lifted(
        self, rule: Rule, op: str, named: dict[str, Any], writes: bool
    ) -> tuple[dict[str, Any], Value]:
        """Returns the arguments and the result of a call on tensors of unknown rank.

        An operand that the call `writes` into is not broadcast to the others.
        """
        before, noted = len(self.said.constraints), len(self.said.notes)
        if named.get("out") is not None:
            rule = replace(rule, reach=lambda named: None)
        elif writes and sum(1 for _ in tensors(tuple(named.values()))) > 1:
            rule = replace(rule, reach=into_first(rule.reach))
        stray = False
        while True:
            given = prepared(self, rule, named, stray)
            result = self._applied(rule, op, given)
            if not is_stray(self, before, result):
                break
            del self.said.notes[noted:]
            self.retract(before)
            stray = True
        reach = rule.reach(named)
        if reach is None or not reach.into:
            return given, result
        finish = restored if reach.within else shaped if reach.melts else fitted
        fit = finish(self, named, reach.into, result)
        if reach.within:
            return {**given, reach.into: opened(self, named[reach.into])}, fit
        return given if fit is result else {**given, reach.into: named[reach.into]}, fit

    def written(self, target: Value) -> None:
        """Invalidates facts about written tensors: other tensors may alias them."""
        for tensor in tensors(target):
            self.contents.written(tensor)
            self._writes.append(self.node)

    def _heard(self) -> tuple[int, int, int]:
        """Returns how many statements the rules have made so far, their results aside."""
        said = self.said
        return len(said.constraints), len(said.notes), len(said.unbacked)

    def _numbers(self, value: Value, sizes: bool, per_dim: bool) -> Value:
        """Returns an argument with 0-dim tensors replaced by numbers where torch reads them so: in sizes, and
        in bounds of slices.
        """
        match value:
            case tuple() if any(isinstance(part, Tensor | Slice | tuple) for part in value):
                return tuple(self._numbers(part, sizes, per_dim) for part in value)
            case Slice(start, stop, step):
                return Slice(*(_element(part) for part in (start, stop, step)))
            case Tensor() if sizes and value.rank == 0:
                return self.element(value)
            case Tensor() if per_dim:
                self.approximate("a tensor with dims in place of a number is not followed", "both")
                return self.fresh("number", None, None)
            case Tensor() if sizes:
                lone = all_of(eq(n, 1) for n in value.shape)
                reason = f"only a tensor of one element is a number, not {value}"
                if lone is False:
                    self.refuse(reason, TypeError)
                self.require(lone, reason, TypeError)
                told = "torch takes a tensor of one element that has dims in place of some numbers only"
                self.approximate(told, "accept", lone)
                return self.fresh("number", None, None)
        return value

    def _no_rule(self, reason: str) -> None:
        self.said.notes.append(Note("no-rule", reason, self.node))

    def _in_place(self, op: str, target: Value, result: Value) -> Value:
        """Returns the result of an in-place operator, which keeps the shape, dtype and strides of its first
        argument.
        """
        if isinstance(target, tuple) and isinstance(result, tuple) and len(target) == len(result):
            return tuple(self._in_place(op, *pair) for pair in zip(target, result, strict=True))
        if isinstance(target, Tensor) and isinstance(result, Tensor):
            if target.shape != result.shape:
                same: Formula = len(target.shape) == len(result.shape) and all_of(
                    eq(a, b) for a, b in zip(target.shape, result.shape, strict=True)
                )
                shapes = f"a result of shape {_show(result)} into a tensor of shape {_show(target)}"
                self.require(same, f"{op} writes {shapes}")
            if target.dtype and result.dtype and category(result.dtype) > category(target.dtype):
                self.refuse(f"{op} writes {result.dtype} into a tensor of {target.dtype}")
            return Tensor(target.shape, target.dtype, target.layout, result.elements)
        return result


def _sizes(value: Value) -> Iterator[Dim]:
    """Yields the sizes of the tensors in a result, and the numbers."""
    for part in leaves(value):
        yield from part.shape if isinstance(part, Tensor) else [part] if isinstance(part, Term) else []


def anew(value: Value) -> Value:
    """Returns an equal value of its own identity, since values of a program are distinguished by identity."""
    if isinstance(value, Tensor):
        return Tensor(value.shape, value.dtype, value.layout, value.elements)
    return tuple(map(anew, value)) if isinstance(value, tuple) else value


def _are_integers(sizes: tuple[Value, ...]) -> bool:
    """Returns whether no size is None, a float or a text; `x.view(dtype)` is given the name of one alone."""
    wrong = [n for n in sizes if n is None or type(n) in (str, float) or _is_fraction(n)]
    return not wrong or (len(sizes) == 1 and type(sizes[0]) is str)


def _is_fraction(value: Value) -> bool:
    return isinstance(value, Number) and value.kind in ("float", "complex")


AXES: Final = frozenset("dim dims dim0 dim1 axis0 axis1 source destination start_dim end_dim".split())
"""Names of parameters that take axes, but for `tile`, whose `dims` are counts."""


def _has_term(axes: Value) -> bool:
    return type(axes) is Term or (isinstance(axes, tuple) and Term in map(type, axes))


def _show(tensor: Tensor) -> str:
    return f"[{', '.join(map(str, tensor.shape))}]"


def _element(value: Value) -> Value:
    """Returns the element of a 0-dim tensor, where sizes decide it; every other value unchanged."""
    if isinstance(value, Tensor) and value.rank == 0 and isinstance(value.elements, Affine):
        return value.elements.start
    return value


_INERT: Final = frozenset({int, float, bool, str, type(None)})
"""Types of values that need no treatment; tuples of numbers need none, either."""


_EXACT: Final = frozenset({Tensor, int, str})
"""Types of values that are their own keys, as most arguments are."""
_UNANSWERED: Final[Any] = object()
_TENSORS: Final = {Tensor}
_PLAIN: Final = {Layout.CONTIGUOUS}
_layout: Final = attrgetter("layout")


def _is_special(value: Any) -> bool:
    """Returns whether the value is, or contains, an unknown value or a sparse tensor."""
    kind = type(value)
    if kind is Tensor:
        return value.layout in SPARSE_LAYOUTS if type(value.layout) is Layout else False
    if kind is tuple:
        return any(map(_is_special, value))
    return value is Dyn or (kind is Slice and any(map(_is_special, parts_of(value))))


def _is_unknown(value: Any) -> bool:
    if value is Dyn:
        return True
    return (type(value) is tuple or type(value) is Slice) and any(map(_is_unknown, parts_of(value)))


@collector_at_rest()
def generate(
    program: Program,
    rules: Rules,
    domain: Domain,
    *,
    chooser: Callable[[Formula], bool | None] = lambda _: None,
    fallback: Callable[[int], tuple[Value, ...]] = lambda _: (),
    kernels: Kernels | None = None,
) -> Generated:
    """Applies the rules to every node, in order.

    For a graph from a trace, `chooser` returns the trace's answer to a condition on which the kind of a
    result depends, and `fallback` the types that it recorded for the results of a node that no rule covers.
    """
    generator = Generator(rules, domain, kernels=kernels)
    generator.follow(program.inputs, program.nodes)
    values, contents = generator.said.values, generator.contents
    for i in program.inputs:
        values[i.id] = i.type
        if not i.parameter:
            contents.given_freely(i.type, i.id)
    expected = 0

    def count(dim: Dim) -> int:
        # A graph fixes how many results it takes, so the size was fixed by the trace.
        generator.said.constraints.append(
            Constraint(eq(dim, expected), f"the graph takes {expected} results", generator.node, "trace")
        )
        return expected

    def choose(formula: Formula) -> bool:
        if (taken := chooser(formula)) is None:
            raise BadCall(f"the kind of its result depends on whether {formula}")
        formula = formula if taken else negate(formula)
        reason = stated(formula, "the graph is that of sizes with {}", "the graph is that of some sizes")
        generator.said.constraints.append(Constraint(formula, reason, generator.node, "trace"))
        return taken

    generator.count, generator.chooser = count, choose
    for generator.node, node in enumerate(program.nodes):
        expected = len(node.results)
        generator.given = not node.given or all_of(_truth(resolved(a, values), on) for a, on in node.given)
        positional, named, given = [], {}, []
        for name, argument in node.args:
            if type(argument) is Ref:
                value = values[argument.id]
                given.append((value, argument.id))
            elif type(argument) in _INERT:
                value = argument  # type: ignore[assignment]
            else:
                value = resolved(argument, values)
                if parts_of(argument):
                    given += [(values[ref.id], ref.id) for ref in refs(argument)]
            if _is_positional(name):
                positional.append(value)
            else:
                named[name] = value
        contents.about(given)
        try:
            _, result = generator.call(node.op, tuple(positional), named)
        except RuleFailed as error:
            generator.said.notes.append(Note("no-rule", str(error), generator.node))
            result = Dyn
        if result is None and any(value is not Dyn for value in fallback(generator.node)):
            result = fallback(generator.node)
            note = generator.said.notes.pop()
            reason = f"{note.reason}; the result that the trace recorded is used instead"
            generator.said.notes.append(Note("approximate", reason, note.node))
        # A graph need not take what it writes.
        known = expected and result is not None and result is not Dyn
        parts: list[Value] = leaves(result) if known else [Dyn] * expected
        if len(parts) != expected:
            told = f"{node.op} gives {len(parts)} results where the program takes {expected}"
            rule = rules.get(node.op)
            if rule is None or rule.is_own:
                generator.require(False, told)
            else:
                failed = RuleFailed(node.op, rule, TypeError(told))
                generator.said.notes.append(Note("no-rule", str(failed), generator.node))
            parts = [Dyn] * expected
        for id, part in zip(node.results, parts, strict=True):
            values[id] = part
            contents.name(part, id)
    generator.close()
    return generator.said


@functools.cache
def _is_positional(name: str) -> bool:
    """Returns whether the name of an argument is that of a position, such as `arg0`."""
    return name.startswith("arg") and name[3:].isdigit()


def _truth(condition: Value, truth: bool) -> Formula:
    """Returns the condition, or its negation if `truth` is False, as a formula.

    If data decide the condition, it is no restriction on sizes: True on either side.
    """
    if isinstance(condition, bool | Compare | And | Or):
        return condition if truth else negate(condition)
    return True


def resolved(argument: Argument, values: Mapping[int, Value]) -> Value:
    """An argument of a node with the values that it refers to."""
    if isinstance(argument, Ref):
        return values[argument.id]
    if isinstance(argument, tuple):
        return tuple(resolved(a, values) for a in argument)
    if isinstance(argument, Slice):
        return Slice(*(resolved(a, values) for a in parts_of(argument)))
    return argument
