"""The effects of calls that write into tensors, on them and on all that share their memory."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import torch
from msgspec import structs

from ...constraints.contents.writing import takes_all
from ...constraints.engine.generate import resolved
from ...constraints.engine.overlap import CONVERTING, PROMOTED
from ...constraints.ir.language import UNTRACKED, Dynamic, Layout, Tensor, Value
from ...constraints.ir.program import Input, Node, refs
from ...constraints.rules.norm import statistics_of
from ...constraints.terms.formula import Formula, all_of, eq
from ..ledger import Position
from ..values.symbolic import StoredMemory, SymbolicTensor, Within
from .fallback import leaves
from .lowering import Lowering
from .memory import VIEWS, are_one, is_kept_from_gradients
from .writes import NO_WRITES, RESHAPING, destinations, memory_of_real

_SAVING_NOTHING: Final = frozenset("add sub cat stack clone sum mean neg".split())
"""Operators whose gradients need no operand."""


_UPDATING: Final = {"batch_norm": "training", "instance_norm": "use_input_stats"}
"""Operators that write into running statistics, if this argument is true."""


class CalledFunction:
    """A function of a higher-order operator, while it runs: its own tensors, and its writes into others."""

    def __init__(self, begin: Position, around: CalledFunction | None) -> None:
        self.begin, self.around = begin, around
        self.writes: bool | None = False
        """Whether it has written into a tensor from before its call; None where it may have."""
        self._own: dict[int, torch.Tensor] = {}
        """Tensors with data that it has made, by the identity of their memory."""

    def calls(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Looks at what a call of a torch function writes into."""
        for tensor in destinations(func, args, kwargs):
            found = self._is_earlier(tensor)
            if found is not False and not self.writes:
                self.writes = found

    def makes(self, given: Any, result: Any) -> None:
        """Notes the memory of a result that lies in that of no argument."""
        known = {memory_of_real(leaf) for leaf in leaves(given) if _is_real(leaf)}
        made = {memory_of_real(leaf): leaf for leaf in leaves((result,)) if _is_real(leaf)}
        self._own.update((key, leaf) for key, leaf in made.items() if key not in known)
        if self.around is not None:
            self.around.makes(given, result)

    def updates(
        self, nodes: Sequence[Node], inputs: Sequence[Input], real: Mapping[int, torch.Tensor]
    ) -> bool:
        """Returns whether one of its calls updates running statistics from before it. The tensors with data
        are given by reference.
        """
        first_used = {one.id for one in inputs[self.begin.inputs :]}
        first_used -= {id for id, tensor in real.items() if memory_of_real(tensor) in self._own}
        for node in nodes[self.begin.nodes :]:
            if node.op not in _UPDATING:
                continue
            named = dict(node.args)
            statistics = [ref.id for ref in refs(statistics_of(named))]
            are_earlier = any(id < self.begin.values or id in first_used for id in statistics)
            if are_earlier and named.get(_UPDATING[node.op]) is not False:
                return True
        return False

    def _is_earlier(self, tensor: torch.Tensor) -> bool | None:
        """Returns whether a tensor lies in memory from before the call; None where it may."""
        if not isinstance(tensor, SymbolicTensor):
            return memory_of_real(tensor) not in self._own
        memory = tensor.memory.whole()
        if isinstance(memory, StoredMemory):
            return any(memory_of_real(part) not in self._own for part, _ in memory.parts.values())
        others = [other() for other in memory.tensors]
        if any(other is not None and other.ref.id < self.begin.values for other in others):
            return True if tensor.memory.is_sure else None
        return False


class WritingRun(Lowering):
    """A run along one path, with what its calls have written."""

    inside: CalledFunction | None = None
    """The function of a higher-order operator that is running, if any is."""

    def _may_write(self, op: str, args: tuple[Any, ...], kwargs: dict[str, Any], written: Any) -> None:
        """Requires what torch requires of a call that writes into these tensors, outside of inference mode,
        and while gradients are on.
        """
        targets = [t for t in leaves((written,)) if isinstance(t, SymbolicTensor)]
        if not torch.is_inference_mode_enabled() and any(t.memory.whole().is_of_inference for t in targets):
            self.require(False, f"{op} writes into a tensor of inference mode, outside of it")
        self.calls_with_out += kwargs.get("out") is not None
        if op == "detach_":
            self._require_no_views(targets)
        if op in ("resize_", "resize_as_"):
            self._require_no_gradients(targets, f"{op} takes no tensor that requires gradients")
        if not torch.is_grad_enabled() or op in NO_WRITES:
            return
        self._require_no_leaf(op, written)
        self._require_views_with_gradients(op, args, kwargs, written)
        if kwargs.get("out") is not None:
            told = f"{op} has no `out=` where an operand requires gradients"
            self._require_no_gradients((args, written), told)

    def _doubt_saved(self, op: str, operands: tuple[Any, ...]) -> None:
        """Marks a call as approximate that may save a tensor of inference mode for its gradient."""
        tensors = [leaf for leaf in leaves(operands) if isinstance(leaf, torch.Tensor)]
        made = (leaf for leaf in tensors if isinstance(leaf, SymbolicTensor))
        if op in VIEWS or op in _SAVING_NOTHING or not any(t.memory.whole().is_of_inference for t in made):
            return
        if self.gradients.required(tensors) is not False:
            self._approximate(f"{op} may save a tensor of inference mode for its gradient", may="accept")

    def _require_no_views(self, targets: list[SymbolicTensor]) -> None:
        """Requires that none of the tensors is a view of another, in the graph of gradients."""
        told = "detach_ takes no view; detach() makes a tensor of its own"
        for found in (tensor.memory.is_of_graph() for tensor in targets):
            if found:
                self.require(False, told)
            elif found is None:
                self._approximate(told, may="accept")

    def _require_no_leaf(self, op: str, written: Any) -> None:
        """Requires that no tensor that a call writes into is a leaf that requires gradients, or views one."""
        for tensor in leaves((written,)):
            if isinstance(tensor, SymbolicTensor) and tensor._memory and tensor._memory.is_of_leaf():
                self.require(False, f"{op} writes into a leaf that requires gradients, outside of no_grad")

    def _require_views_with_gradients(
        self, op: str, args: tuple[Any, ...], kwargs: dict[str, Any], written: Any
    ) -> None:
        """Requires that no tensor that a call writes into is a view that torch writes no gradients through,
        where the result requires gradients.
        """
        targets = [t for t in leaves((written,)) if isinstance(t, SymbolicTensor)]
        if not any(is_kept_from_gradients(t.memory) for t in targets):
            return
        operands = [leaf for leaf in leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        required = self.gradients.required([*operands, *targets])
        reason = f"{op} writes, with gradients, into one of several views, or into a view made without them"
        if required:
            self.require(False, reason)
        elif required is None:
            self._approximate(reason)

    def _require_no_gradients(self, operands: Any, reason: str) -> None:
        """Requires that no tensor among the operands requires gradients."""
        required = self.gradients.required([t for t in leaves(operands) if isinstance(t, torch.Tensor)])
        if required:
            self.require(False, reason)
        elif required is None:
            self._approximate(reason)

    def requires_gradients(self, tensor: torch.Tensor) -> bool:
        required: bool | None = self.gradients.required([tensor])
        if required is None:
            return self.guess("whether a tensor requires gradients is not known")
        return required

    @contextlib.contextmanager
    def body(self) -> Iterator[CalledFunction]:
        """Watches what a function of a higher-order operator writes into, inside the block."""
        self.inside = body = CalledFunction(self.position, self.inside)
        try:
            yield body
        finally:
            self.inside = body.around
        real = {ref.id: tensor for tensor, _, ref in self.real.values()}
        if body.updates(self.nodes, self.inputs, real):
            body.writes = True

    def _has_written(self, op: str, written: SymbolicTensor, before: Any) -> None:
        """Notes that a call has written into the tensor, whose value was `before`.

        Of real tensors in its memory of whose elements sizes may decide some, stand-ins take the place.
        """
        memory = None if written._memory is None else written._memory.whole()
        if isinstance(memory, StoredMemory):
            known = [(part, self.real_tensor(part)[1]) for part, _ in memory.parts.values()]
            values = (before, written.value, *(value for _, value in known))
            if any(isinstance(value, Tensor) and value.elements is not None for value in values):
                self._changed.add(memory.key)
                for part, _ in known:
                    self.since(part)
        if other_sizes(before, written.value):
            self._has_reshaped(op, written, before)
        written.is_written()
        if isinstance(before, Tensor):
            self.constants_written |= before.dtype == "bool" or before.elements is not None
        self._check_written(op, written, before)

    def _has_reshaped(self, op: str, tensor: SymbolicTensor, before: Any) -> None:
        """Gives the shape of a tensor that was changed in place to all that are the same tensor: operators
        return their operand where they have nothing to do.
        """
        shapes = [value.shape if isinstance(value, Tensor) else None for value in (before, tensor.value)]
        for other in [found() for found in tensor.memory.whole().tensors]:
            if other is None or other is tensor:
                continue
            same = are_one(other.memory, tensor.memory)
            if same:
                other.value, other.ref = tensor.value, tensor.ref
            elif same is None and (op in RESHAPING or shapes[0] != shapes[1]):
                self.give_up(f"{op} changes the shape of a tensor that another one may be")

    def _move(self, tensor: SymbolicTensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Moves a tensor, and all that are the same one, into the memory that `set_` gives it."""
        source = args[0] if args else kwargs.get("source")
        into = self.memory_of(source) if isinstance(source, torch.Tensor) else None
        if into is None:
            return
        alone = len(args) + len(kwargs) == 1
        same = [found() for found in tensor.memory.whole().tensors]
        for other in [t for t in same if t is not None and are_one(t.memory, tensor.memory)] or [tensor]:
            other.lies_in(Within(into, 0) if alone else Within(into.whole(), None))

    def _overwrites(self, written: SymbolicTensor, node: Node) -> None:
        """Notes that a node has written into the tensor: into all of it, unless it assigns to a part."""
        whole: Formula = True
        by, is_finite = [written.ref.id], True
        if node.op == "setitem" and isinstance(written.value, Tensor):
            named = dict(node.args)
            by = [ref.id for ref in refs(named["value"])]
            whole = takes_all(resolved(named["index"], self.values), written.value)
            is_finite = not isinstance(named["value"], float) or math.isfinite(named["value"])
        written.has_overwritten(by, whole, is_finite)

    def _check_written(self, op: str, tensor: SymbolicTensor, before: Tensor | Dynamic) -> None:
        """Fails a loop that depends on which of two equal tensors is written: loops treat tensors as values.
        """
        told = isinstance(before, Tensor) and before.elements not in (None, UNTRACKED)
        if told and id(tensor) in self.loops.met:
            self.give_up(f"{op} writes into a tensor of indices, one of several")
        if other_sizes(before, tensor.value) and (self.loops.summarising or id(tensor) in self.loops.met):
            self.give_up(f"{op} changes the shape of a tensor in place")

    def _into(self, op: str, value: Value, out: Value) -> Value:
        """Returns a result as it is stored in `out=`: with its dtype, and its layout if the sizes stay.

        Some operators convert their result; of others it is not known.
        """
        if isinstance(value, tuple) and isinstance(out, tuple):
            wanted = f"{len(value)} results are written into an `out=` of {len(out)}"
            self.generator.require(len(value) == len(out), wanted)
            both = zip(value, out, strict=False)
            return tuple(self._into(op, *pair) for pair in both) if len(value) == len(out) else value
        if isinstance(value, Tensor) and isinstance(out, Tensor):
            alike = len(out.shape) == len(value.shape) and all_of(map(eq, out.shape, value.shape))
            layout = out.layout if self.generator.bounds.certain(alike) else Layout.UNKNOWN
            if value.dtype is not None and out.dtype is not None and value.dtype != out.dtype:
                told = f"a result of {value.dtype} in an `out=` of {out.dtype}"
                held = torch.can_cast(getattr(torch, value.dtype), getattr(torch, out.dtype))
                if not held and op not in CONVERTING:
                    self.generator.require(False, told)
                elif not held or op not in PROMOTED:
                    self.generator.approximate(f"whether {op} leaves {told} is not known", "accept")
            return structs.replace(value, dtype=out.dtype, layout=layout)
        return value


def other_sizes(before: Tensor | Dynamic, after: Tensor | Dynamic) -> bool:
    """Returns whether the shape or the strides have changed."""
    if not isinstance(before, Tensor) or not isinstance(after, Tensor):
        return before is not after
    return before.shape != after.shape or before.layout != after.layout


def _is_real(leaf: Any) -> bool:
    return isinstance(leaf, torch.Tensor) and not isinstance(leaf, SymbolicTensor)
