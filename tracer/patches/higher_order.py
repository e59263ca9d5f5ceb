"""torch's higher-order operators and `vmap` while a Python program is recorded.

Eager torch compiles the functions of a higher-order operator. While recording, the functions are called
instead, once each, with values of the recording (`control.py`): their calls become nodes with the user's
lines.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import torch

from ...constraints.ir.opnames import is_in_place
from ...constraints.ir.program import Node
from ...constraints.rules.random import RULES as DISTRIBUTED
from ...constraints.terms.formula import Formula, eq, ge
from ..host import operators
from ..host.patches import Function, Patch, together
from ..host.tensors import all_modes_off
from ..host.trees import pytree
from ..ledger import Position
from ..recorder import Recorder
from ..values.numbers import dim_of
from ..values.random import DRAWING
from ..values.sequences import Repeated
from ..values.symbolic import SymbolicTensor
from . import gradients
from .control import CONTROL, Branch

_RANDOM: Final = DRAWING | {"rrelu"} | {name.removesuffix("_") for name in DISTRIBUTED}
"""The operators that draw numbers."""


class _Called:
    """The host of one call, whose functions are the program's own."""

    def __init__(self, recording: Recorder, name: str) -> None:
        self.recording, self.name = recording, name
        self.returned: Any = None
        """The structure of the last function's result."""

    def node(self, op: str, *args: Any) -> Any:
        return self.recording.operator(op, args, {})

    def run(self, function: Any, operands: Sequence[Any], under: Branch = None) -> tuple[Any, ...]:
        begin = self.recording.position
        with self.recording.body() as body:
            leaves, self.returned = pytree.tree_flatten(function(*operands))
        if self.name != "associative_scan":
            self._require_apart(leaves, begin)
            self._require_unwritten(body.writes)
        return tuple(leaves)

    def _require_apart(self, results: Sequence[Any], begin: Position) -> None:
        """Requires that no result of a function lies in memory from before the call or in that of another."""
        told = f"a function of {self.name} may not return a tensor in the memory of another"
        seen: set[int] = set()
        # The compiler does not see that `dropout` in evaluation returns the tensor itself.
        drops = any("dropout" in node.op for node in self.recording.nodes[begin.nodes :])
        for result in results:
            if not isinstance(result, torch.Tensor):
                continue
            if not isinstance(result, SymbolicTensor) or isinstance(result, Repeated):
                self.recording.doubt(f"{told}, as a constant or one of many may be", "accept")
                continue
            memory = result.memory.whole()
            others = [other() for other in memory.tensors]
            earlier = any(other is not None and other.ref.id < begin.values for other in others)
            if earlier or id(memory) in seen:
                if result.memory.is_sure and not drops:
                    self.recording.require(False, told)
                else:
                    self.recording.doubt(f"{told}, as a result perhaps does", "accept")
            seen.add(id(memory))

    def _require_unwritten(self, writes: bool | None) -> None:
        """Requires that a function has not written into a tensor from before its call; None: it may have.
        Without gradients some may.
        """
        told = f"a function of {self.name} may not write into a tensor that it is given"
        if writes and torch.is_grad_enabled():
            self.recording.require(False, told)
        elif writes is not False:
            self.recording.doubt(told, "accept")

    def join(self, op: str, *args: Any) -> tuple[Any, ...]:
        result = self.recording.operator(op, args, {})
        return result if isinstance(result, tuple) else (result,) * self.returned.num_leaves


def entered(recording: Recorder) -> contextlib.AbstractContextManager[None]:
    """Makes higher-order operators call the functions that they are given, inside the block."""

    def calling(call: Function) -> Function:
        def run(self: operators.HigherOrderOperator, /, *args: Any, **kwargs: Any) -> Any:
            name: str = self.name()  # type: ignore[no-untyped-call]
            if name not in CONTROL:
                if any(isinstance(leaf, SymbolicTensor) for leaf in pytree.tree_leaves((args, kwargs))):
                    recording.give_up(f"the higher-order operator {name}")
                return call(self, *args, **kwargs)
            host = _Called(recording, name)
            results = CONTROL[name](host, *args, **kwargs)
            return pytree.tree_unflatten(results, host.returned)

        return run

    def uncompiled(function: Callable[..., Any], args: Any, kwargs: Any = None) -> Any:
        return function(*args, **(kwargs or {}))

    def scan_of_batches(operator: Any, leaves: Sequence[Any], *more: Any, **options: Any) -> Any:
        """Calls the operator, which takes any number of rows at once, with all of them."""
        if len(leaves) and bool(leaves[0].shape[0] < 2):
            return leaves
        host = _Called(recording, "associative_scan")
        combined = host.run(operator, (*leaves, *leaves))
        return host.join("associative_scan", tuple(leaves), tuple(host.node("row", x) for x in combined))

    return together((
        Patch(operators.HigherOrderOperator, "__call__", calling, "bodies are recorded"),
        Patch(*operators.SCAN_OF_BATCHES, lambda plain: scan_of_batches, "bodies are recorded"),
        Patch(*operators.COMPILED_CALL, lambda plain: uncompiled, "nothing is compiled"),
        *_vmap_by_rows(recording),
        *gradients.of_functions(recording),
    ))  # fmt: skip


@contextlib.contextmanager
def uncompiled() -> Iterator[None]:
    """Makes functions that the program passed to `torch.compile` run as they are."""
    if not operators.compiler_is_loaded():
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


def _writes_rows_into_one(nodes: Sequence[Node], rows: set[int]) -> bool:
    """Returns whether a call writes into a tensor that is the same for all rows what differs among them."""
    for node in nodes:
        used = [ref.id in rows for ref in node.refs]
        if (is_in_place(node.op) or node.op == "setitem") and any(used) and not used[0]:
            return True
        if any(used):
            rows.update(node.results)
    return False


def _state_of_draws() -> bytes:
    """Returns the state of torch's generator, from which calls draw that really run, such as of initializers.
    """
    with all_modes_off():
        return bytes(torch.get_rng_state().numpy())


def _draws(node: Node) -> bool:
    """Returns whether a call may draw numbers at random."""
    named = dict(node.args)
    idle = named.get("p") == 0 or any(named.get(name) is False for name in ("train", "training"))
    if idle and "dropout" in node.op:
        return False
    return node.op.removesuffix("_") in _RANDOM or bool(named.get("dropout_p"))


def _vmap_by_rows(recording: Recorder) -> Iterator[Patch]:
    """Yields patches under which `vmap(f)` calls f once, on one slice of each mapped argument, and stacks its
    results.
    """

    def making(original: Function) -> Function:
        def vmap(func: Any, in_dims: Any = 0, out_dims: Any = 0, *more: Any, **options: Any) -> Any:
            plain = original(func, in_dims, out_dims, *more, **options)  # it looks at its options first
            is_strict = (*more, options.get("randomness", "error"))[0] == "error"

            def mapped(*args: Any, **kwargs: Any) -> Any:
                if not any(isinstance(leaf, SymbolicTensor) for leaf in pytree.tree_leaves(args)):
                    return plain(*args, **kwargs)
                size, dims, leaves, spec = operators.mapped_arguments(in_dims, args, func)
                batch = dim_of(size)
                if batch is None or not recording.certain(ge(batch, 1)):
                    reason = "over no rows, vmap may refuse what it takes of one row"
                    none: Formula = True if batch is None else eq(batch, 0)
                    recording.doubt(reason, "both", none)
                rows = [
                    leaf if dim is None else recording.operator("row", (leaf, dim), {})
                    for leaf, dim in zip(leaves, dims, strict=True)
                ]
                taken = {row.ref.id for row, dim in zip(rows, dims, strict=True) if dim is not None}
                begin, drawn = len(recording.nodes), {*recording.generator.said.unbacked}
                state, outs = _state_of_draws(), recording.calls_with_out
                recording.mapping, outer = True, recording.mapping
                try:
                    result = func(*pytree.tree_unflatten(rows, spec), **kwargs)
                finally:
                    recording.mapping = outer
                returned, shape = pytree.tree_flatten(result)
                made = recording.nodes[begin:]
                if recording.generator.said.unbacked.keys() - drawn:
                    recording.doubt("vmap may refuse what depends on the data of a row")
                if is_strict and (state != _state_of_draws() or any(map(_draws, made))):
                    recording.doubt("vmap may refuse random numbers, as its randomness says")
                if outs < recording.calls_with_out:
                    recording.doubt("vmap may refuse `out=`")
                if _writes_rows_into_one(made, taken):
                    recording.doubt("vmap may refuse that a row is written into a tensor that is no row")
                places = operators.mapped_results(out_dims, shape)
                if places is None or not all(isinstance(part, torch.Tensor) for part in returned):
                    recording.give_up("a result of vmap that is no tensor, or out_dims that do not fit it")
                stacked = [
                    part if dim is None else recording.operator("stack_rows", (part, size, dim), {})
                    for part, dim in zip(returned, places, strict=True)
                ]
                return pytree.tree_unflatten(stacked, shape)

            return mapped

        return vmap

    for place in operators.places_of_vmap():
        yield Patch(*place, making, "rows are recorded")
