"""The loop that applies rules to a program: each call goes to its rule, which states its requirements and
returns its result.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, repeat
from operator import attrgetter, is_
from typing import Any, Final

from msgspec import structs

from ..contents.elements.dtypes import INTEGRAL
from ..contents.elements.values import fitted as fitted_to
from ..contents.elements.values import stored
from ..contents.laws.calls import CASTS
from ..contents.laws.following import with_elements
from ..contents.lookups.cuts import CHOOSING, chosen
from ..contents.lookups.draws import scaled_draw
from ..contents.lookups.places import CUTTING, is_exact, referring
from ..contents.requirements.operands import Refusals, errors_of, refused_by_data, require_elements
from ..contents.traits import SPARSE_LAYOUTS
from ..ir.dtypes import category
from ..ir.language import (
    Affine,
    Constraint,
    Dyn,
    Generated,
    Layout,
    Note,
    Number,
    Quotient,
    Refused,
    Slice,
    Tensor,
    Value,
    tensors,
)
from ..ir.opnames import is_in_place, parameters
from ..ir.program import Argument, Program, Ref, is_numbers, parts_of, refs
from ..ir.system import Domain
from ..terms.dims import Dim, Term, sym, symbols
from ..terms.formula import And, Compare, Formula, Or, all_of, eq, negate
from ..terms.formula_text import stated
from .answers import Answers
from .collector import collector_at_rest
from .facts import NO_CALL
from .kernels import Kernels, require_kernel
from .known import exactly
from .lifting import fitted, has_row, into_first, is_stray, opened, prepared, restored, shaped
from .memory import require_apart
from .ruleset import PER_DIM, BadCall, Rule, RuleFailed, Rules, leaves
from .unit_sizes import remade

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
class Generator(Answers):
    """Applies rules call by call and collects their statements; it is the Context of each of them."""

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
        self._indexed = self._last = NO_CALL
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
