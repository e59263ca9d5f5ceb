"""Calls of torch functions, as steps: from what the program passes to the node and the result.

A call whose rule has answered before is repeated. Any other one goes through `_STEPS`, in their order.
"""

from __future__ import annotations

import functools
import numbers
import re
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import BuiltinFunctionType
from typing import Any, Final

import torch
from msgspec import structs

from ...constraints.contents.writing import assigned
from ...constraints.engine.ruleset import BadRules, RuleFailed
from ...constraints.ir.language import UNTRACKED, Dyn, Number, Tensor, Value, tensors
from ...constraints.ir.opnames import canonical, is_in_place
from ...constraints.ir.program import Node, Origin, Ref
from ...constraints.rules.gradients import NOT_BY, PERHAPS_NOT_BY
from ...constraints.rules.norm import NORMS, statistics_of
from ...constraints.rules.reach import POINTWISE
from ...constraints.terms.dims import Term
from ..bytecode.origins import caller, here
from ..bytecode.spread import Spread
from ..host.interpreter import shows_warnings
from ..host.operators import (
    READ_AS_TYPE,
    OpOverload,
    OpOverloadPacket,
    declared_results,
    default_of,
    misfits,
    qualified_name,
    schema_of,
)
from ..patches import autocast
from ..values import listed
from ..values.numbers import Real, Size
from ..values.real_tensors import dtype_name
from ..values.sequences import SEVERAL, Repeated, counted, joined, physical
from ..values.symbolic import OPERATOR_ATTRIBUTES, QUESTIONS, SymbolicTensor, Within, answer, bound
from .effects import WritingRun, other_sizes
from .fallback import estimated, leaves
from .memory import STRIDING, is_view, note_gradients, remember, require_retyped, retyped, storage
from .overlaps import lying, require_no_overlap
from .repeats import CallKey, FinishedCall
from .subject import Assignment

_SILENT = frozenset(
    {*POINTWISE}
    | frozenset(
        "linear matmul mm bmm conv1d conv2d conv3d layer_norm softmax view reshape flatten unflatten permute "
        "transpose squeeze unsqueeze expand contiguous cat stack split chunk unbind getitem sum mean "
        "mse_loss l1_loss smooth_l1_loss".split()
    )
)
"""Operators whose kernels never warn, whatever the sizes are."""
_WHERE = torch.Tensor.where
_TENSOR_TYPE: Final = re.compile(r"torch\.((cuda|xpu|sparse)\.)?\w*Tensor")
_ACCESS = frozenset({"__get__", "__set__", "__delete__"})
"""The names of functions that read, write and delete attributes."""
_COMPARABLE: Final = torch.Tensor, numbers.Number, torch.SymInt, torch.SymFloat, torch.SymBool
"""Types of what a tensor is compared with, element by element, by `==`."""
_MAKES_TENSORS = frozenset("add div divide floor_divide mul multiply sub subtract true_divide".split())
_COMING = Node("", (), (), Origin())
"""A placeholder for a node to come."""


@dataclass(slots=True)
class _Application:
    """A call of an operator on its way through the steps. Each step adds to it."""

    op: str
    func: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    written: Any
    """The tensor, or the tensors, that it writes into; None for most."""
    call: CallKey
    key: tuple[Any, ...]
    """The key of the call and of what is known of its operands."""
    notes: int
    """The number of notes before it."""
    counts: Any = ()
    """The number of times that each operand is repeated."""
    ids: dict[int, Ref] = field(default_factory=dict)
    """The references of the operands, by the identity of their values."""
    values: tuple[Value, ...] = ()
    named: dict[str, Any] = field(default_factory=dict)
    """The operands as the rule sees them."""
    index: int = 0
    origin: Origin = _COMING.origin
    """The number of its node, and the line that makes the call."""
    constraints: int = 0
    """The number of requirements before it."""
    arguments: dict[str, Any] = field(default_factory=dict)
    result: Any = None
    """The answer of the rule."""
    refusals: Any = ()
    """The sizes at which it is refused for some data."""
    answered: FinishedCall | None = None
    """The call as it may be repeated."""
    results: list[int] = field(default_factory=list)
    lifted: Any = None
    """The result as the program gets it."""
    targets: list[tuple[SymbolicTensor, Any]] = field(default_factory=list)
    """The tensors that it writes into, with their values before."""


class Operators(WritingRun):
    """A run along one path, which records calls of torch functions."""

    def __init__(self, assigned: Assignment) -> None:
        super().__init__(assigned)
        self._filters, self._warns = [*warnings.filters], _handling_of_warnings()
        """The handling of warnings when the run begins."""
        self.infers = False
        """Whether the program has made tensors in inference mode."""
        self.attributes: set[str] = set()
        self.default_dtype = torch.get_default_dtype()
        self.spelt_out = assigned.plans.spelt_out
        """The sites where star arguments are written one by one."""
        self.spread: Spread | None = None
        """The star arguments on their way into a call."""

    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Returns the result of a torch function that the program calls with something symbolic."""
        spelling, is_special = _spelled(func)
        if is_special:
            return self._special(func, args, kwargs)
        first = args[1] if len(args) > 1 else None
        device = first if spelling == "to" and type(first) is str else kwargs.get("device")
        if type(device) is str:
            self._require_device(device)
        if spelling == "type":
            self._require_type(kwargs.get("dtype") if first is None else first)
        return self.operator(spelling, args, kwargs, func)

    def _require_device(self, name: str) -> None:
        """Requires that a text names a device: `x.to("float32")` is refused."""
        try:
            torch.device(name)
        except RuntimeError as error:
            self.require(False, str(error))

    def _require_type(self, given: Any) -> None:
        """Requires that a text names a type of tensors, and refuses Python's own types: `x.type(float)`."""
        if not isinstance(given, str | type | torch.dtype | None):
            self.require(False, "dtype must be a type, a text or a dtype", TypeError)
        elif type(given) is type or (type(given) is str and _TENSOR_TYPE.fullmatch(given) is None):
            self.require(False, f"invalid type: {getattr(given, '__name__', given)!r}", ValueError)

    def _require_assignable(self, value: Any) -> None:
        """Requires that elements of a tensor can be set to a value: of NumPy's, only integers and the floats
        that are Python's, too.
        """
        kind = type(value)
        if kind.__module__ == "numpy" and not isinstance(value, numbers.Integral | float):
            told = f"a numpy.{kind.__name__} cannot be assigned to elements of a tensor"
            self.require(False, told, TypeError)

    def _require_types(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Requires that an operator which the program calls by its name has a schema for such arguments.

        torch reads a tensor in place of a number by its element, and a number in place of a dtype from memory
        that may hold anything.
        """
        given = tuple(map(_of_its_type, args)), {k: _of_its_type(v) for k, v in kwargs.items()}
        problems = misfits(func, *given)
        last = problems[-1]
        for problem in problems:
            if problem and (problem == READ_AS_TYPE or (last and _BY_ELEMENT.search(problem))):
                self.give_up(f"an argument of another type than the operator declares: {problem}")
        if last is not None:
            self.require(False, last, RuntimeError)

    def _special(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Returns the result of a torch function that is no operator, or one in another form."""
        name, spelling = _name_of(func)
        if name in _ACCESS:
            return self._attribute(name, func.__self__.__name__, args)
        if isinstance(func, OpOverload | OpOverloadPacket):
            self._require_types(func, args, kwargs)
        default = default_of(func)
        if default is not None and len(args) <= default.place:
            kwargs = {default.name: default.value, **kwargs}
        if default is not None or isinstance(func, OpOverload):
            return self.operator(spelling, args, kwargs, func)
        if name == "requires_grad_":
            (requires,) = args[1:] or kwargs.values() or (True,)
            return self._let_require(args[0], requires)
        question = QUESTIONS.get(name) or listed.QUESTIONS.get(name)
        if question is not None and args and isinstance(args[0], SymbolicTensor):
            return question(self, *args, **kwargs)
        if name == "__eq__" and not isinstance(args[1], _COMPARABLE):
            return NotImplemented  # torch has no such comparison: Python tells whether they are one object
        if func is _WHERE:  # its tensor is not the condition
            args, kwargs = (), {**dict(zip(("input", "condition", "other"), args, strict=False)), **kwargs}
        if name in _MAKES_TENSORS and not _tensor_among(args, kwargs):
            args = (self.operator("scalar_tensor", (args[0],), {"dtype": torch.int64}), *args[1:])
        return self.operator(spelling, args, kwargs, func)

    def _attribute(self, how: str, name: str, args: tuple[Any, ...]) -> Any:
        tensor = args[0]
        if how == "__get__":
            if name in OPERATOR_ATTRIBUTES:
                return self.operator(OPERATOR_ATTRIBUTES[name], args[:1], {})
            ask = answer(name)
            if ask is None:
                return self.give_up(f"the attribute {name} of a tensor without data")
            return ask(self, tensor)
        if how == "__set__" and name == "data":
            data = args[1] if isinstance(args[1], SymbolicTensor) else self._in_place_of(args[1])
            if not isinstance(tensor, SymbolicTensor):
                tensor = self._overwrite(tensor, SymbolicTensor(self, data.value, data.ref, tensor.dtype))
            tensor.value, tensor.ref = data.value, data.ref
            tensor.lies_in(Within(data.memory, 0))
        elif how == "__set__" and name == "requires_grad":
            self._let_require(tensor, args[1])
        elif how == "__set__" and name == "grad" and args[1] is not None:
            self.give_up("the gradient of a tensor is assigned, which is not followed")
        return None

    def _let_require(self, given: torch.Tensor, requires: bool) -> torch.Tensor:
        """Lets a tensor require gradients, or not, if it is a leaf, and returns it."""
        tensor = self.since(given)
        if not isinstance(tensor, SymbolicTensor):
            if self.gradients.of_real(tensor) == requires:
                return given
            tensor = self._overwrite(tensor)
        QUESTIONS["requires_grad_"](self, tensor, requires)
        if tensor.memory.itself().is_leaf == requires:
            self.gradients.asked(tensor, requires)
        return given

    def operator(self, spelling: str, args: tuple[Any, ...], kwargs: dict[str, Any], func: Any = None) -> Any:
        """Applies the rule of an operator, records the node and returns the program's result."""
        if self._made or self._stopped or self.spread is not None or self.loops.failure is not None:
            self._goes_on(spelling, args, kwargs)
        if torch.get_default_dtype() is not self.default_dtype:
            self.default_dtype = torch.get_default_dtype()
            self.generator.makes_floats(dtype_name(self.default_dtype))
        op, noted = canonical(spelling), len(self.generator.said.notes)
        if torch.is_autocast_enabled(self.kernels):
            args, kwargs = autocast.cast(self, op, args, kwargs)
        if self.infers and torch.is_grad_enabled() and not torch.is_inference_mode_enabled():
            self._doubt_saved(op, (args, kwargs))
        if op not in _SILENT and self._handles_warnings_otherwise():
            self.give_up(f"whether {op} warns decides what the program does")
        if op in listed.TAKING:
            if op == "setitem":
                self._require_assignable(args[2])
                if args[1] is False and isinstance(args[2], torch.Tensor | numbers.Number):
                    return None  # torch does not look at such a write
            args = listed.with_tensors(self, op, args)
        written = _written(op, args, kwargs) if kwargs or op == "setitem" or is_in_place(op) else None
        if written is not None:
            if self._stands_in(written):
                args, kwargs = self.present(args), self.present(kwargs)
                written = _written(op, args, kwargs)
            self._may_write(op, args, kwargs, written)
        call = CallKey(self, spelling, args, kwargs)
        known = self.generator.known
        key = call.key, *known.origins(call.values)
        found = known.repeated.get(key)
        if found is not None and not self.loops.ended and not self.mapping:
            made = self._repeat(found, call, args)
            return self._begun(made, kwargs) if kwargs else made
        if op in listed.LISTED and (several := listed.LISTED[op](args, kwargs)) is not None:
            return several
        application = _Application(op, func, args, kwargs, written, call, key, noted)
        for step in _STEPS:
            step(self, application)
        return self._begun(application.lifted, kwargs) if kwargs else application.lifted

    def _begun(self, made: Any, kwargs: dict[str, Any]) -> Any:
        """Returns the result of a call, noted as a leaf if it was asked to require gradients."""
        if kwargs.get("requires_grad") is True and isinstance(made, SymbolicTensor):
            made.memory.is_leaf = True
            self.gradients.asked(made, True)
        return made

    def _goes_on(self, spelling: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Ends the run where it has failed or takes too long, and follows star arguments into the call."""
        if self.loops.failure is not None or self._stopped is not None:
            self.loops.raise_failure()
            self.raise_stopped()
        if self._made and time.monotonic() > self.until:  # its own branches ask for no size any more
            self.end(f"the budget ran out, after {len(self._made)} branches")
        if self.spread is not None:
            self.spread = self.spread.after(spelling, args, kwargs, caller())

    def _handles_warnings_otherwise(self) -> bool:
        """Returns whether a warning shows other effects than at the beginning of the run."""
        if warnings.filters == self._filters and shows_warnings() == self._warns[0]:
            return False
        return _handling_of_warnings() != self._warns

    # ---- the steps of a call

    def _lower_operands(self, it: _Application) -> None:
        """Finds the operands as the rule sees them."""
        it.args, it.kwargs, it.counts = counted(self, it.op, it.args, it.kwargs)
        if it.op in ("getitem", "setitem"):
            it.args = (it.args[0], _index(it.args[1]), *it.args[2:])
        ids = it.ids
        it.values = tuple([self.lower(a, ids) for a in it.args])
        it.named = {k: self.lower(v, ids) for k, v in it.kwargs.items()}
        self.generator.contents.about(_referred((*it.values, *it.named.values()), ids))

    def _take_place(self, it: _Application) -> None:
        """Takes the node's place before the rule runs, so that branches inside the rule come after it."""
        self.generator.node = it.index = len(self.nodes)
        it.origin = here(self.names)
        self.nodes.append(Node(it.op, (), (), it.origin))
        it.constraints = len(self.generator.said.constraints)

    def _apply_rule(self, it: _Application) -> None:
        """Asks the rule, which sees where the operands lie in memory."""
        generator = self.generator
        generator.storage = storage(it.args[0]) if it.op in STRIDING and it.args else None
        generator.lying = lying(self, it.op, it.args, it.values)
        it.arguments, it.result = self._ask(it.op, it.values, it.named)
        if "::" in it.op and it.result is not None:
            self._require_as_declared(it.op, it.func, it.result)
        if not self.loops.watches:
            generator.take_for_valid()

    def _require_differentiable(self, it: _Application) -> None:
        """Requires that no argument requires gradients by which torch has none."""
        if it.op not in _FIXED:
            return
        named = NOT_BY.get(it.op, ()) or PERHAPS_NOT_BY.get(it.op, ())
        fixed = statistics_of(it.arguments) if it.op in NORMS else [*map(it.arguments.get, named)]
        if not any(fixed) or not torch.is_grad_enabled():
            return
        given = [it.ids[id(x)].id for x in fixed if isinstance(x, Tensor) and id(x) in it.ids]
        required = {self.gradients.of_value(ref) for ref in given}
        told = f"torch has no gradient of {it.op} by its {' or '.join(named) or 'running statistics'}"
        if True in required and it.op not in PERHAPS_NOT_BY:
            self.generator.require(False, f"{told}, which requires one")
        elif required - {False}:
            self.generator.approximate(f"{told}, which may require one", "accept")

    def _require_memory(self, it: _Application) -> None:
        """Adds what torch requires of the memory of what is written into, or viewed as another dtype."""
        require_retyped(it.op, it.args[0] if it.args else None, it.arguments)
        if it.written is not None:
            given = (*it.args, *it.kwargs.values())
            into = it.result if it.kwargs.get("out") is not None else None
            require_no_overlap(self, it.op, it.written, it.arguments, given, into)

    def _refuse(self, it: _Application) -> None:
        """Raises what the program catches."""
        it.refusals = self.generator.refusals()
        self._raise_if_caught(it.constraints)
        self._raise_if_unsure(it.op, it.notes, it.refusals)

    def _keep_answer(self, it: _Application) -> None:
        """Keeps the answer for calls with the same key, where it depends on nothing else."""
        if not self.generator.repeatable or it.counts or (slots := it.call.slots) is None or self.mapping:
            return
        if retyped(it.op, it.arguments) or _is_unsafe(it.func):  # it depends on the memory, or the spelling
            return
        if it.refusals:  # what was valid may have been written into when the call comes again
            return
        writes = it.written is not None
        if writes and not (it.args and it.args[0] is it.written and it.call.writes_data(it.written)):
            return
        if isinstance(it.result, Number):
            return
        told = tuple([(k, self.argument(v, slots)) for k, v in it.arguments.items()])
        it.answered = FinishedCall.of(it.op, told, it.result, is_view(it.op, it.arguments), writes)
        self.generator.known.repeated[it.key] = it.answered

    def _complete_result(self, it: _Application) -> None:
        """Completes the result: of an operator without a rule, of unknown or of repeated operands, and as
        `out=` stores it.
        """
        if it.result is None:
            it.result = estimated(self, it.func, it.args, it.kwargs)
        if it.result is Dyn:
            it.result = (Dyn,) * fields if (fields := _fields(it.op, it.args, it.kwargs)) else Dyn
        if it.counts and isinstance(it.result, Tensor):
            it.result = joined(it.op, it.arguments, it.counts, it.result)
            it.arguments = {**it.arguments, "counts": it.counts}
        if "out" in it.named:
            it.result = self._into(it.op, it.result, it.named["out"])

    def _hand_back(self, it: _Application) -> None:
        """Makes the program's result."""
        if self.mapping and it.written is None and not is_view(it.op, it.arguments):
            given = _referred((*it.values, *it.named.values()), it.ids)
            it.result = self.rows.laid_out(it.op, given, it.result)
        if it.written is not None:
            it.targets = [(t, t.value) for t in leaves((it.written,)) if isinstance(t, SymbolicTensor)]
        it.lifted = self._lift(it.result, it.op, it.ids, it.results, it.written)
        if it.result == () and it.func is not None and declared_results(it.func) == ():
            it.lifted = None

    def _note_writes(self, it: _Application) -> None:
        """Notes what has become of the tensors that were written into."""
        for target, before in it.targets:
            if not it.results and isinstance(before, Tensor):
                left = before.elements and UNTRACKED
                if it.op == "setitem":
                    put = it.arguments["index"], it.arguments["value"]
                    left = assigned(before, *put, self.generator.at_least)
                target.value = structs.replace(before, elements=left)
            self._has_written(it.op, target, before)
            resized = "out" in it.named and other_sizes(before, target.value)
            if resized or it.op in ("resize_", "resize_as_", "set_"):
                target.memory.whole().owner = None  # the storage may hold more elements than before
            if it.op == "detach_":
                target.memory.itself().is_leaf = False
            if it.op == "set_":
                self._move(target, it.args[1:], it.kwargs)

    def _finish_node(self, it: _Application) -> None:
        """Fills the node's place."""
        if it.answered is not None:
            arguments = it.answered.arguments_of(it.call.operands)
        else:
            arguments = tuple([(k, self.argument(v, it.ids)) for k, v in it.arguments.items()])
        node = self.nodes[it.index] = Node(it.op, arguments, tuple(it.results), it.origin)
        for target, _ in it.targets:
            self._overwrites(target, node)
        if self.mapping:
            made = [(ref, self.values.get(ref)) for ref in it.results]
            given = [ref.id for ref in node.refs]
            self.rows.computed(it.op, given, made, is_view(it.op, it.arguments))

    def _note_memory(self, it: _Application) -> None:
        """Notes in whose memory the result lies."""
        if is_view(it.op, it.arguments):
            made = it.lifted
            it.lifted = remember(self.nodes[it.index], it.args, it.values, made)
            if not _is_unsafe(it.func):
                note_gradients(it.op, made)
        elif it.written is None and torch.is_inference_mode_enabled():
            for part in leaves((it.lifted,)):
                if isinstance(part, SymbolicTensor):
                    self.infers = part.memory.is_of_inference = True

    def _ask(
        self, op: str, args: tuple[Value, ...], kwargs: dict[str, Value]
    ) -> tuple[dict[str, Any], Value | None]:
        """Returns the arguments by name and the answer of an operator's rule.

        Handlers of the program do not see a failure of the rule.
        """
        try:
            with self.loops.unwatched():
                return self.generator.call(op, args, kwargs)
        except RuleFailed as failed:
            reason = str(failed)
        except RecursionError as error:
            reason = f"RecursionError: {error}"
        except BadRules as error:
            raise self.stopping(error) from None
        self.end(reason)

    def _require_as_declared(self, op: str, func: Any, result: Value) -> None:
        """Ends the run where the rule of a program's own operator returns other results than its schema
        declares.
        """
        declared, rule = declared_results(func), self.generator.rules.get(op)
        if declared is None or result is Dyn:
            return
        parts = result if len(declared) != 1 and isinstance(result, tuple) else (result,)
        if len(parts) != len(declared) or not all(map(_is_a, parts, declared)):
            told = f"its result is not what its schema declares, {', '.join(declared) or 'nothing'}"
            self.end(str(RuleFailed(op, rule, TypeError(told))))

    def _repeat(self, found: FinishedCall, call: CallKey, args: tuple[Any, ...]) -> Any:
        """Records the node of a call whose rule has answered before."""
        self.generator.node = index = len(self.nodes)
        self.nodes.append(_COMING)
        origin, value = here(self.names), self.generator.again(found.result)
        results: list[int] = []
        if found.writes:
            self.generator.written(call.values[0])
            lifted = self._lift(value, found.op, {}, results, args[0])
            self._has_written(found.op, args[0], call.values[0])
        else:
            lifted = self._lift(value, found.op, {}, results)
        self.nodes[index] = Node(found.op, found.arguments_of(call.operands), tuple(results), origin)
        if found.writes:
            self._overwrites(args[0], self.nodes[index])
        if found.is_view:
            made = lifted
            lifted = remember(self.nodes[index], args, call.values, made)
            note_gradients(found.op, made)
        return lifted


_FIXED: Final = NOT_BY.keys() | PERHAPS_NOT_BY.keys() | NORMS
"""Operators that torch does not differentiate by some argument."""
_STEPS: Final = (
    Operators._lower_operands,
    Operators._take_place,
    Operators._apply_rule,
    Operators._require_differentiable,
    Operators._require_memory,
    Operators._complete_result,
    Operators._refuse,
    Operators._keep_answer,
    Operators._hand_back,
    Operators._note_writes,
    Operators._finish_node,
    Operators._note_memory,
)


@functools.lru_cache(maxsize=4096)
def _spelled(func: Any) -> tuple[str, bool]:
    """Returns the spelling of the operator of a torch function, and whether a call of it is special."""
    name, spelling = _name_of(func)
    asks = name in QUESTIONS or name in listed.QUESTIONS or name == "requires_grad_"
    makes = name in _MAKES_TENSORS or func is _WHERE or name == "__eq__"
    is_overload = isinstance(func, OpOverload | OpOverloadPacket) or default_of(func) is not None
    return spelling, asks or makes or is_overload or name in _ACCESS


def _name_of(func: Any) -> tuple[str, str]:
    """Returns the name of a torch function, and the spelling of its operator."""
    if isinstance(func, OpOverload):
        return func.__name__, schema_of(func).name
    name: str = qualified_name(func) or getattr(func, "__name__", "") or func.name
    # torch's own functions in C++ are those of ATen, also where a Python function has the same name.
    return name, f"aten.{name}" if type(func) is BuiltinFunctionType else name


def _fields(op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Returns how many results an operator has whose results have names; 0 where it has only one."""
    if op in ("max", "min", "median", "nanmedian"):
        along = args[1] if len(args) > 1 else kwargs.get("dim")
        if along is None or isinstance(along, torch.Tensor):
            return 0
    fields: int = getattr(getattr(torch.return_types, op, None), "n_sequence_fields", 0)
    return fields


def _is_a(value: Value, kind: str) -> bool:
    """Returns whether a result is of a type that a schema declares; types not listed here allow any."""
    return value is Dyn or isinstance(value, _DECLARED.get(kind.partition("[")[0], object))


_DECLARED: Final[dict[str, Any]] = {"Tensor": Tensor, "List": tuple, "int": Term | int}


def _of_its_type(value: Any) -> Any:
    """Returns a value that torch takes for one of the same type, with something symbolic in no part of it."""
    if isinstance(value, torch.Tensor):
        return _TENSOR
    if type(value) is Size:
        return 1
    if type(value) is Real:
        return 1.0
    if isinstance(value, list | tuple):
        parts = physical(value) if type(value) in SEVERAL else value
        return [_of_its_type(part.at(0) if type(part) is Repeated else part) for part in parts]
    return value


_TENSOR: Final = torch.zeros(1)
"""A tensor in the place of one of the program's."""
_BY_ELEMENT: Final = re.compile(r"type '(?!\S*Tensor)[^']*' for argument[^$]*tensor\(")
"""Messages about tensors in place of numbers."""


def _referred(values: tuple[Value, ...], ids: Mapping[int, Ref]) -> Iterator[tuple[Tensor, int]]:
    """Yields the tensors in some values that are tensors of the program, with their references."""
    return ((tensor, ids[id(tensor)].id) for tensor in tensors(values) if id(tensor) in ids)


def _tensor_among(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return any(isinstance(a, torch.Tensor) for a in (*args, *kwargs.values()))


def _handling_of_warnings() -> tuple[object, ...]:
    """Returns what shows warnings, and the filters that make errors of them; others, which the first import
    of a module may add, decide nothing.
    """
    return shows_warnings(), [row for row in warnings.filters if row[0] == "error"]


def _index(index: Any) -> Any:
    """Returns an index as `getitem` takes it: a list becomes a tuple, a list that is the whole index one
    item, an array a tensor.

    torch treats a list as a tuple of items where one of them is no number.
    """
    if type(index) is tuple:
        return tuple(map(_index_of_array, index))
    index = _index_of_array(index)
    if isinstance(index, list | range) and all(map(_is_number, index)):
        return (tuple(index),)
    return index


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) or type(value) in (Size, Real)


def _index_of_array(index: Any) -> Any:
    """Returns an array of NumPy's as a tensor of integers or booleans, without requiring that NumPy is
    installed, and a slice with numbers in place of tensors. A boolean of NumPy's, which is no index, becomes
    a number that is none either.
    """
    kind = type(index)
    if kind is slice:
        ends = index.start, index.stop, index.step
        return slice(*(bound(end.run, end) if type(end) is SymbolicTensor else end for end in ends))
    if kind.__module__ != "numpy":
        return index
    if kind.__name__ == "ndarray":
        of = torch.from_numpy(index)
        return of if of.dtype in (torch.bool, torch.uint8) or of.is_complex() else of.long()
    return float(index) if kind.__name__ in ("bool", "bool_") else index


def _written(op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Returns the tensor that a call writes its result into, several where it has several results, or None.
    """
    if (out := kwargs.get("out")) is not None:
        return out
    if op == "setitem" or is_in_place(op):
        return args[0] if args else kwargs.get("input")
    return None


def _is_unsafe(func: Any) -> bool:
    """Returns whether a function of torch returns views that it takes for tensors of their own."""
    return "unsafe" in getattr(func, "__name__", "")
