"""The context of a call: what its rule may require, and what the elements of its operands say of sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..contents.elements.values import extremes, ways_of
from ..contents.laws.masks import number_of_true, one_value, whether_some
from ..contents.lookups.computed import ComputedRange, chains_of
from ..contents.lookups.extremes import LAWS
from ..contents.lookups.places import Places
from ..contents.outcomes.choices import Asked, Choice, Sought, choice_of, of_each_choice
from ..contents.outcomes.data import is_fixed_choice, share_data
from ..contents.outcomes.dataless import less
from ..contents.outcomes.fitting import may_leave_numbers, never_finite, no_index_between, none_between
from ..contents.outcomes.fixed import comparison, equality, number_of_results, outcomes
from ..contents.outcomes.ranges import OPEN, Outlook, Range, Ranges, Usual, compared, range_of
from ..contents.outcomes.scalars import Computed, Sizes, holding, of_elements
from ..contents.outcomes.scattered import free_numbers
from ..contents.outcomes.singular import no_inverse
from ..contents.outcomes.trials import BOTH, Truth, is_doubtful, is_of_each, marks_choices, outlook, possible
from ..contents.requirements.indices import NO_DATA, SAME_DATA
from ..contents.sizes.needed import Limits, needed
from ..contents.traits import Border, Contents, TrueCount
from ..ir.language import Affine, Between, Cases, Constraint, Situation, Span, Tensor, product, tensors
from ..terms.dims import Dim, Symbol, Term, coefficients, evaluate, lone_atom, minimum, sym, symbols
from ..terms.formula import (
    Compare,
    Formula,
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
from ..terms.intervals import Bounds
from ..terms.rows import Deeper
from .facts import Facts
from .lifting import has_row, number_of_elements
from .ruleset import BadCall
from .unit_sizes import cases_of

PINNED: Final = frozenset(
    "unique unique_dim unique_consecutive unique2 _unique2 nonzero argwhere masked_select".split()
)
"""Operators whose number of results is decided by the data; it is 0 if they get no element."""
BY_ELEMENTS: Final = frozenset("bincount one_hot repeat_interleave".split())
"""Operators whose number of results is computed from integers."""


@dataclass(slots=True)
class Answers(Facts):
    """Takes the requirements of a rule, and answers its questions about the elements of its operands. Numbers
    that the data decide get names.
    """

    def __post_init__(self) -> None:
        self.bounds, self.known = Bounds(self.domain.ranges), self.nothing.after(self.domain)
        self.contents = Contents(self._most)
        self._learnt += self.domain.assumptions
        for known in self.domain.beyond_ranges:
            self._apply(known)

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

    def number(self, dim: Dim) -> int:
        """Returns the number of results: a graph contains it, a recorder forks over it."""
        if isinstance(dim, int):
            return dim
        if self.count is None:
            raise BadCall(f"the number of results depends on {dim}")
        self._asked = True
        return self.count(dim)

    def deepen(self, wanted: Deeper) -> None:
        """Declares more of the rows; where that is impossible the call has no rule."""
        if self.deeper is None:
            raise BadCall(f"{', '.join((*wanted.symbols, *wanted.bounded))} would have to be declared")
        self.deeper(wanted)

    def _places(self) -> Places | None:
        """Returns what the program says of single elements; None in loops, where a call is made again and
        again.
        """
        program = self._dataless
        if program is None or program.has_loops:
            return None
        return Places(program, self._writes, self.at_least, self.certain, LAWS, self._ratios)
