"""torch's higher-order operators while a Python program is recorded.

Eager torch compiles the functions of a higher-order operator. While recording, the functions are called
instead, once each, with values of the recording (`control.py`): their calls become nodes with the user's
lines.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from ..host import operators
from ..host.patches import Function, Patch, together
from ..host.trees import pytree
from ..ledger import Position
from ..recorder import Recorder
from ..values.sequences import Repeated
from ..values.symbolic import SymbolicTensor
from . import gradients, vmap
from .control import CONTROL, Branch


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
        *vmap.by_rows(recording),
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
