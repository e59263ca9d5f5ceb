"""Determines which values of a run require gradients.

A result requires some if an operand does, unless it was computed where gradients are disabled. The nodes of a
run are looked at once, in their order, when the program asks.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import torch

from ...constraints.ir.language import Tensor
from ...constraints.ir.opnames import is_in_place
from ...constraints.ir.program import Node, refs
from ..host.tensors import overrides_off
from ..recorder import Recorder
from ..values.symbolic import SymbolicTensor, can_require_grad
from .memory import VIEWS
from .repeats import PLAIN_TENSORS

_PASSING: Final = (VIEWS - {"detach"}) | frozenset(
    """
    add sub mul div rsub rdiv neg abs pow square sqrt rsqrt reciprocal exp expm1 log log1p sin cos tanh
    sigmoid relu relu6 gelu silu mish elu selu leaky_relu softplus hardtanh erf where clamp masked_fill
    clone copy setitem index_put index_select gather take cat stack repeat roll flip linear matmul mm
    bmm addmm baddbmm conv1d conv2d conv3d embedding softmax log_softmax sum mean var std prod cumsum
    layer_norm rms_norm group_norm batch_norm dropout scaled_dot_product_attention pad avg_pool1d
    avg_pool2d max_pool1d max_pool2d mse_loss l1_loss cross_entropy nll_loss tril triu
    """.split()
)
"""Operators whose results surely require gradients if an operand does; of others that is not known."""
_STOPPING: Final = frozenset(
    """
    detach detach_ zeros_like ones_like empty_like full_like rand_like randn_like randint_like new_zeros
    new_ones new_full new_empty new_tensor
    """.split()
)
"""Operators whose results require none."""


class Gradients:
    """The values of a run that require gradients."""

    def __init__(self, run: Recorder) -> None:
        self._run = run
        self._asked: dict[int, bool] = {}
        """Whether real tensors require gradients, as the program has set it, by identity."""
        self.made_without: set[int] = set()
        """Values that were made where gradients are disabled."""
        self._known: dict[int, bool | None] = {}
        """For each value that was examined, whether it requires gradients; None where that is not known."""
        self._leaves: set[int] = set()
        """The values that begin to require gradients."""
        self._written: set[int] = set()
        """The values that were written into."""
        self._makers: dict[int, Node] = {}
        """The node that made each value that was looked at."""
        self._next_input = 0
        """The first input that was not looked at."""
        self._seen: list[Node] = []
        """The nodes that were looked at."""

    def asked(self, tensor: torch.Tensor, requires: bool) -> None:
        """Notes that the program lets a tensor require gradients from now on, or not."""
        self._advance()
        if isinstance(tensor, SymbolicTensor):
            self._begins(tensor.ref.id, requires)
            return
        self._asked[id(tensor)] = requires
        if id(tensor) in self._run.real:
            self._begins(self._run.real[id(tensor)][2].id, requires)

    def used(self, tensor: torch.Tensor, ref: int) -> None:
        """Notes the reference of a real tensor."""
        if self.of_real(tensor):
            self._leaves.add(ref)
            self._known[ref] = True

    def of_real(self, tensor: torch.Tensor) -> bool:
        """Returns whether a real tensor requires gradients."""
        if self._asked and (asked := self._asked.get(id(tensor))) is not None:
            return asked
        if type(tensor) in PLAIN_TENSORS:
            return tensor.requires_grad
        with overrides_off():  # a subclass may override what is asked of it
            return tensor.requires_grad

    def _begins(self, ref: int, requires: bool) -> None:
        (self._leaves.add if requires else self._leaves.discard)(ref)
        self._known[ref] = requires

    def required(self, tensors: Iterable[torch.Tensor]) -> bool | None:
        """Returns whether any of the tensors requires gradients; None where that is not known."""
        self._advance()
        found = [self._of(tensor) for tensor in tensors]
        return True if True in found else None if None in found else False

    def of_value(self, ref: int) -> bool | None:
        """Returns whether the value of this reference requires gradients; None where that is not known."""
        self._advance()
        return self._value(ref)

    def writes(self) -> bool:
        """Returns whether the program has written into a tensor."""
        self._advance()
        return bool(self._written)

    def behind(self, results: Iterable[torch.Tensor]) -> tuple[list[Node], set[int]]:
        """Returns the calls through which gradients of the results go back, and the values they reach."""
        self._advance()
        reached = {self._run.ref(x).id for x in results}
        ahead, calls = list(reached), {}
        while ahead:
            node = self._makers.get(ahead.pop())
            if node is None or id(node) in calls:
                continue
            calls[id(node)] = node
            given = {ref.id for _, argument in node.args for ref in refs(argument)}
            further = {ref for ref in given - reached if self._value(ref) is not False}
            reached |= further
            ahead += further
        return list(calls.values()), reached

    def _of(self, tensor: torch.Tensor) -> bool | None:
        if not isinstance(tensor, SymbolicTensor):
            return self.of_real(tensor)
        if not can_require_grad(tensor.dtype):
            return False
        found = self._value(tensor.ref.id)
        shared = () if tensor._memory is None else tensor._memory.whole().tensors
        others = {other.ref.id for other in (other() for other in shared) if other is not None}
        if found is False and any(self._value(ref) is not False for ref in others & self._written):
            return None  # perhaps it is a view of what was written into
        return found

    def _value(self, ref: int) -> bool | None:
        """Returns whether a value requires gradients: one that no node has made may if anything does."""
        return self._known.get(ref, None if self._leaves else False)

    def _advance(self) -> None:
        """Looks at the nodes that have come since. Where a write was taken back, nothing is known any longer.
        """
        nodes, inputs = self._run.nodes, self._run.inputs
        seen = self._seen
        while seen and (len(seen) > len(nodes) or nodes[len(seen) - 1] is not seen[-1]):
            self._forget(seen.pop())
        for given in inputs[self._next_input :]:
            self._known.setdefault(given.id, False)
        self._next_input = len(inputs)
        for node in nodes[len(self._seen) :]:
            found = self._made(node)
            for ref in node.results:
                value = self._run.values.get(ref)
                kind = getattr(torch, value.dtype) if isinstance(value, Tensor) and value.dtype else None
                self._known[ref] = found if kind is None or can_require_grad(kind) else False
                self._makers[ref] = node
            if node.op == "setitem" or is_in_place(node.op):
                self._into(node, found)
            self._seen.append(node)

    def _forget(self, node: Node) -> None:
        """Drops what is known by a node that was taken back, or only took the place of one to come."""
        if node.args and (node.op == "setitem" or is_in_place(node.op)):
            self._known.clear()
            self._makers.clear()
        for ref in node.results:
            self._known.pop(ref, None)
            self._makers.pop(ref, None)

    def _made(self, node: Node) -> bool | None:
        """Returns whether the results of a node require gradients, if they are floats."""
        found = {self._value(ref.id) for _, argument in node.args for ref in refs(argument)}
        if node.op in _STOPPING or found <= {False}:
            return False
        op = node.op[:-1] if is_in_place(node.op) else node.op
        surely = True in found and op in _PASSING and self.made_without.isdisjoint(node.results)
        return True if surely else None

    def _into(self, node: Node, found: bool | None) -> None:
        """Notes what a node has written into, which requires gradients then if a result would."""
        self._written.update(node.results)
        if node.op == "setitem":
            for ref in refs(node.args[0][1]):
                self._known[ref.id] = found
                self._written.add(ref.id)
