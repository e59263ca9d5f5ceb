"""Gradients of functions that a program takes while it is recorded: by `torch.func.grad`, `vjp`, `jacrev`, ….

The function whose gradients are taken is called once, as it is, and its calls become nodes. torch's own code
checks the arguments and the results; only the functions that it calls to differentiate are replaced. A
gradient by a tensor has the tensor's sizes. A Jacobian consists of one gradient per unit vector: one of these
gradients is recorded, and as many like it are stacked.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final

import torch
from torch.autograd.graph import GradientEdge

from ...constraints.engine.lifting import number_of_elements
from ...constraints.ir.language import Layout, Tensor
from ...constraints.ir.program import Node
from ...constraints.rules.gradients import BUT_NOT_WITH, DIFFERENTIABLE, DIFFERENTIABLE_ONCE
from ...constraints.terms.formula import any_of, eq, ge
from ..host import transforms
from ..host.patches import Function, Patch
from ..host.trees import pytree
from ..recorder import Recorder
from ..values.symbolic import SymbolicTensor, can_require_grad, requires_grad
from .vmap import is_unlike


class _Differentiated:
    """The functions that torch's code calls while gradients are recorded."""

    def __init__(self, recording: Recorder) -> None:
        self.recording = recording
        self.unit_vectors: Any = None
        """The number of the unit vectors that were asked for last."""
        self.depth = 0
        """The number of functions that are being differentiated, each inside the one before."""
        self.one_by_one = False
        """Whether an older Jacobian is being taken, by one unit vector after the other."""
        self.first = 0
        """The node with which the last of them, that is in no other, has begun."""
        self.freed: set[int] = set()
        """The values of the calls that torch has forgotten after it took gradients through them."""
        self.own_gradients = 0
        """The number of calls of functions that the program has given gradients of its own."""

    def alias(self, tensor: Any, level: int) -> Any:
        """Returns the tensor that a function sees for one of its caller's."""
        return self.recording.operator("alias", (tensor,), {}) if isinstance(tensor, torch.Tensor) else tensor

    def require_gradients(self, tensor: Any) -> Any:
        requires_grad(self.recording, tensor)
        tensor.memory.itself().is_leaf = True  # to its function it is one, whatever it is outside
        self.recording.gradients.asked(tensor, True)
        return tensor

    def gradients(
        self,
        outputs: Sequence[torch.Tensor],
        inputs: Sequence[torch.Tensor],
        grad_outputs: Sequence[Any] | None = None,
        **options: Any,
    ) -> tuple[Any, ...]:
        """Returns the gradients of some results by some arguments, one for each of the latter."""
        given = tuple(outputs), tuple(grad_outputs or ())
        return tuple(_as_it_lies(self.recording.operator("gradient_by", (x, *given), {})) for x in inputs)

    def dual(self, tensor: Any, tangent: Any, *, level: int | None = None) -> Any:
        """Returns a tensor with a tangent; it has the sizes of both."""
        if not can_require_grad(tensor.dtype):
            self.recording.require(False, "tensors of integers have no tangents", ValueError)
        if isinstance(tensor, SymbolicTensor) and _may_overlap(tensor):
            self.recording.doubt("a tangent may need a tensor whose elements lie at places of their own")
        self.gradients((tensor,), (tensor,), (tangent,))
        return self.alias(tensor, 0)

    def with_tangent(self, dual: Any, strict: bool) -> Any:
        """Returns a result and its tangent."""
        return dual, *self.gradients((dual,), (dual,))

    def basis(
        self, tensors: Sequence[Any], numels: Sequence[Any], chunk_size: int | None = None
    ) -> Iterator[Any]:
        """Yields one unit vector, in the shapes of the tensors; there are as many as they have elements."""
        if chunk_size == 1:
            self.recording.give_up("unit vectors that are taken one by one")
        self.unit_vectors = sum(numels)
        yield tuple(tensors)

    def mapped(self, function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
        """Returns a function that applies another to each unit vector, and stacks the results."""
        size = self.unit_vectors

        def stacked(result: Any) -> Any:
            return _as_it_lies(self.recording.operator("gradients_by", (result, size), {}))

        def mapped(*basis: Any) -> Any:
            result = pytree.tree_map_only(torch.Tensor, stacked, function(*basis))
            if not self.one_by_one:
                self._doubt_calls(self.recording.nodes[self.first :], self._is_mapped)
                self._doubt_what_is_empty()
            return result

        return mapped

    def _one_by_one(self, does: bool, function: Function, *args: Any) -> Any:
        """Returns what a function does, which takes one unit vector after the other or does not."""
        self.one_by_one, before = does, self.one_by_one
        try:
            return function(*args)
        finally:
            self.one_by_one = before

    def _is_mapped(self, node: Node) -> bool:
        return is_differentiable(node) and not is_unlike(self.recording, node)

    def _doubt_what_is_empty(self) -> None:
        """Claims nothing for sizes at which a tensor of the function has no elements: torch refuses some
        operators for many unit vectors at once there.
        """
        recording = self.recording
        made = (recording.values[ref] for node in recording.nodes[self.first :] for ref in node.results)
        counts = {number_of_elements(recording.generator, x) for x in made if isinstance(x, Tensor)}
        empty = any_of(eq(n, 0) for n in counts if not recording.certain(ge(n, 1)))
        recording.doubt("a Jacobian where a tensor is empty is not followed", "accept", empty)

    @contextlib.contextmanager
    def level(self, by_tangents: bool) -> Iterator[int]:
        """Claims, after a function has run, no more than what is known of the operators that it called. With
        `by_tangents` they are differentiated forwards.
        """
        recording = self.recording
        first, own = len(recording.nodes), self.own_gradients
        outs, filled = recording.calls_with_out, recording.constants_drawn
        if not self.depth:
            self.first = first
        self.depth += 1
        try:
            with recording.body() as body:
                yield 0
        finally:
            self.depth -= 1
        further = by_tangents or self.depth > 0 or recording.mapping
        recording.once = recording.once or not all(map(is_differentiable, recording.nodes[first:]))
        reasons = {
            "what draws at random": filled < recording.constants_drawn,
            "a write into a tensor from before": body.writes is not False,
            "a call with `out=`": outs < recording.calls_with_out,
            "a function with a gradient of its own": own < self.own_gradients,
            "three times": self.depth > 1,
        }
        unsure = [reason for reason, applies in reasons.items() if applies]
        called = recording.nodes[first:]
        if further:
            self._doubt_calls(called, is_differentiable, unsure)
        else:
            puts = {*map(id, writes_into_new(called))}
            self._doubt_calls(called, lambda node: is_differentiable_once(node) or id(node) in puts, unsure)

    def _doubt_calls(
        self, called: Sequence[Node], known: Callable[[Node], bool], unsure: Sequence[str] = ()
    ) -> None:
        """Claims nothing for gradients through calls that are not known to have them, for the first of these
        or of other reasons.
        """
        if named := [*unsure, *(node.op for node in called if not known(node))]:
            self.recording.doubt(f"whether torch differentiates {named[0]} is not followed", "accept")

    def jacobian(self, plain: Function) -> Function:
        """Returns the older function, by way of the newer one. It stacks what it computes for each element of
        a result, so that there must be an element.
        """

        def jacobian(
            func: Any, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False,
            strategy: str = "reverse-mode",
        ) -> Any:  # fmt: skip
            if strict or vectorize:
                self.recording.give_up("a Jacobian that is strict or vectorized")
            several, arguments = transforms.as_tuple(inputs, "inputs", "jacobian")

            def checked(*args: Any) -> Any:
                several, results = transforms.as_tuple(
                    self._one_by_one(False, func, *args), "outputs", "jacobian"
                )
                for result in results:
                    elements = number_of_elements(self.recording.generator, self._value(result))
                    self.recording.require(ge(elements, 1), "the Jacobian of a result without elements")
                # What depends on no input by a derivative, as integers, has a Jacobian of zeros.
                floats = [x if can_require_grad(x.dtype) else x.to(arguments[0].dtype) for x in results]
                return tuple(floats) if several else floats[0]

            return self._one_by_one(
                True, torch.func.jacrev(checked, tuple(range(len(arguments))) if several else 0), *arguments
            )

        return jacobian

    def grad(self, plain: Function) -> Function:
        """Returns `torch.autograd.grad`, which takes gradients through the calls that were made before."""

        def grad(
            outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None,
            create_graph: bool = False, only_inputs: bool = True, allow_unused: bool | None = None,
            is_grads_batched: bool = False, materialize_grads: bool = False,
        ) -> Any:  # fmt: skip
            if transforms.GRAD_TAKES_DICTS and type(inputs) is dict:
                found = self.grad(plain)(
                    outputs, tuple(inputs.values()), grad_outputs, retain_graph, create_graph, only_inputs,
                    allow_unused, is_grads_batched, materialize_grads,
                )  # fmt: skip
                return dict(zip(inputs, found, strict=True))
            results, arguments = _several(outputs), _several(inputs)
            if not arguments or not all(isinstance(x, torch.Tensor | GradientEdge) for x in arguments):
                self.recording.require(False, "gradients are taken by tensors, at least by one")
            factors = (None,) * len(results) if grad_outputs is None else _several(grad_outputs)
            tensors = all(isinstance(x, torch.Tensor) for x in (*results, *arguments))
            symbolic = any(isinstance(x, SymbolicTensor) for x in (*results, *arguments))
            if not (tensors and symbolic) or is_grads_batched or len(factors) != len(results):
                return plain(
                    outputs, inputs, grad_outputs, retain_graph, create_graph, only_inputs, allow_unused,
                    is_grads_batched, materialize_grads,
                )  # fmt: skip
            frees, none = not (retain_graph or create_graph), bool(allow_unused) and not materialize_grads
            self._require_connected(results, arguments, frees, none)
            for result, factor in zip(results, factors, strict=True):
                if factor is None:
                    elements = number_of_elements(self.recording.generator, self._value(result))
                    told = f"only one element has a gradient by itself, not {self._value(result)}"
                    self.recording.require(eq(elements, 1), told)
            given = [x for x, factor in zip(results, factors, strict=True) if factor is not None]
            return self.gradients(given, arguments, [factor for factor in factors if factor is not None])

        return grad

    def _value(self, tensor: torch.Tensor) -> Any:
        return self.recording.lower(tensor, {})

    def _require_connected(
        self, results: Sequence[torch.Tensor], arguments: Sequence[torch.Tensor], frees: bool, none: bool
    ) -> None:
        """Requires that the results and the arguments require gradients, and claims no more than is known of
        the calls between them. With `frees`, no second gradient can be taken through these; with `none`, None
        is the gradient by an argument on which no result depends.
        """
        recording = self.recording
        found = [recording.gradients.required([x]) for x in (*results, *arguments)]
        if False in found:
            recording.require(False, "a gradient of, or by, a tensor that requires no gradients")
        calls, reached = recording.gradients.behind(results)
        unsure = None in found or None in map(recording.gradients.of_value, reached)
        connected = all(recording.ref(x).id in reached for x in arguments)
        if unsure or not connected or not self.freed.isdisjoint(reached) or not self._differentiates(calls):
            reason = "whether the results depend on the arguments in a way that torch can differentiate"
            recording.doubt(reason, "both" if none else "accept")
        if frees:
            self.freed |= {ref for node in calls for ref in node.results}

    def _differentiates(self, calls: Iterable[Node]) -> bool:
        """Returns whether torch surely differentiates these calls: nothing was written into since."""
        writes = self.recording.gradients.writes()
        return not writes and not self.own_gradients and all(map(is_differentiable, calls))

    def older_gradients(
        self, outputs: Sequence[Any], inputs: Sequence[Any], grad_outputs: Any = None, **options: Any
    ) -> tuple[Any, ...]:
        """Returns the gradients of what an older function has called; of what does not depend on the inputs
        they are zeros.
        """
        if not self._differentiates(self.recording.nodes):
            reason = "whether torch differentiates all that is called is not followed"
            self.recording.doubt(reason, "accept")
        return self.gradients(outputs, inputs, grad_outputs)

    def with_own(self, plain: Function) -> Function:
        """Counts the calls."""

        def noted(*args: Any, **options: Any) -> Any:
            self.own_gradients += 1
            return plain(*args, **options)

        return noted


def _may_overlap(tensor: SymbolicTensor) -> bool:
    """Returns whether several elements of a tensor may lie at one place."""
    layout = tensor.value.layout if isinstance(tensor.value, Tensor) else Layout.UNKNOWN
    if isinstance(layout, tuple):
        return 0 in layout
    return layout is Layout.UNKNOWN and tensor.memory.may_overlap


def _as_it_lies(gradient: Any) -> Any:
    """Returns the gradient, of which several elements may lie at one place: that of a sum is one number."""
    if isinstance(gradient, SymbolicTensor):
        gradient.memory.may_overlap = True
    return gradient


def _several(given: Any) -> tuple[Any, ...]:
    return tuple(given) if isinstance(given, list | tuple) else (given,)


def is_differentiable(node: Node) -> bool:
    """Returns whether torch surely differentiates a call twice, by any of its operands."""
    return node.op in DIFFERENTIABLE and not any(node.get(name) for name in BUT_NOT_WITH)


_MAKING: Final = frozenset(
    "clone zeros zeros_like ones ones_like new_zeros new_ones full_like new_full".split()
)
"""Operators that make a tensor of its own, whose gradients do not need it."""
_PUTTING: Final = frozenset("add_ sub_ copy_ fill_ zero_ setitem".split())
"""Operators that write, whose gradients do not need what was there."""


def writes_into_new(called: Iterable[Node]) -> list[Node]:
    """Returns the calls that write into a tensor which nothing has used since it was made, but other such
    calls: no gradient needs what was in it.
    """
    unused: set[int] = set()
    found = []
    for node in called:
        target, *others = [ref.id for ref in node.refs] or [-1]
        if node.op in _PUTTING and target in unused and unused.isdisjoint(others):
            found.append(node)
            unused.update(node.results)
            continue
        unused.difference_update([target, *others])
        if node.op in _MAKING:
            unused.update(node.results)
    return found


def is_differentiable_once(node: Node) -> bool:
    """Returns whether torch surely takes a gradient through a call, by any of its operands."""
    return is_differentiable(node) or (
        node.op in DIFFERENTIABLE_ONCE and not any(node.get(name) for name in BUT_NOT_WITH)
    )


def _in_place_of(function: Function, plain: Function) -> Function:
    return function


def of_functions(recording: Recorder) -> Iterator[Patch]:
    """Yields the patches under which gradients of functions are recorded."""
    calls = _Differentiated(recording)
    replaced: tuple[tuple[tuple[Any, str], Function], ...] = (
        (transforms.ALIAS, calls.alias),
        (transforms.REQUIRE, calls.require_gradients),
        (transforms.UNWRAP, lambda tensor, level: tensor),
        (transforms.GRADIENTS, calls.gradients),
        (transforms.GRADIENTS_OF_FUNCTIONAL, calls.older_gradients),
        (transforms.DUAL, calls.dual),
        (transforms.TANGENT, calls.with_tangent),
        (transforms.BASIS, calls.basis),
        (transforms.MAPPED, calls.mapped),
        (transforms.BACKWARDS, partial(calls.level, False)),
        (transforms.FORWARDS, partial(calls.level, True)),
    )
    for place, function in replaced:
        yield Patch(*place, partial(_in_place_of, function), "gradients are recorded by their shapes")
    yield Patch(*transforms.GRAD, calls.grad, "gradients are recorded by their shapes")
    yield Patch(*transforms.JACOBIAN, calls.jacobian, "a gradient is recorded once")
    yield Patch(*transforms.OWN, calls.with_own, "gradients of the program's own are not followed")
