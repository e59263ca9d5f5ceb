"""torch.fx: graphs with gradual types on their nodes, and a tracer whose proxies know their shapes.

A GraphModule is a module, and is recorded like any other. `reporting` makes one that computes the same, and
reports the value of each node and the claim of its annotation on the way.

`ShapeTracer` is a `torch.fx.Tracer`. Each node has the value that the recorder computed for it, so that a
program may read `x.shape`, unpack it, compare, assert, count: the solver decides questions about sizes, and
the graph is that of one path through the program, for all sizes that take it.
"""

from __future__ import annotations

import builtins
import contextlib
import copy
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import fx
from torch.fx.node import map_aggregate

from ...constraints.engine.ruleset import BadRules, Rules
from ...constraints.ir.claims import LISTENER, listening
from ...constraints.ir.language import Constraint
from ...constraints.ir.spec import Spec
from ...constraints.ir.system import Condition, Oracle, premise
from ...constraints.terms.formula import Formula
from ...constraints.terms.rows import Deeper
from ..host.alone import alone
from ..host.exports import without_fx_patches
from ..host.operators import INSTALLED, CondOp
from ..host.patches import Function, Patch, together
from ..host.trees import pytree
from ..patches.higher_order import entered
from ..patches.stand_ins import symbolic_builtins
from ..recording.binding import NotCallable, bind
from ..recording.claims import recorded, run_of, tell
from ..recording.decisions import GaveUp
from ..recording.held import Held
from ..recording.mode import Mode, entering_composites
from ..recording.record import Recording
from ..recording.subject import Assignment, Subject
from ..summaries.plans import Plans
from ..values.numbers import Size
from ..values.real_tensors import default_dtype
from ..values.symbolic import Sizes

NODE: Final = "fx_node"
"""The operator of the recorded node that gives the value of a node of the fx graph."""


# ---- graphs that tell what their nodes are


def node_is(value: Any, name: str, claim: str = "") -> None:
    """Reports the value of a node, and its annotation, to the listener.

    A graph made by `reporting` calls it after each node.
    """
    listener = LISTENER.get()
    if listener is not None:
        listener("node", value, name)
        if claim:
            listener("assert", value, claim)


def reporting(graph_module: fx.GraphModule) -> fx.GraphModule:
    """Returns the same program, which reports its nodes by `node_is`.

    The spec describes the inputs, not their annotations.
    """
    from .tensor_types import claim_text  # which imports sympy

    graph = copy.deepcopy(graph_module.graph)
    for node in [*graph.nodes]:
        claim, node.type = "" if node.op == "placeholder" else claim_text(node.type), None
        if node.op == "output":
            if claim and isinstance(node.args[0], fx.Node):
                with graph.inserting_before(node):
                    graph.call_function(node_is, (node.args[0], node.name, claim))
            continue
        with graph.inserting_after(_last_placeholder(graph) if node.op == "placeholder" else node):
            graph.call_function(node_is, (node, node.name, claim))
    return quiet(graph_module, graph)


def quiet(graph_module: fx.GraphModule, graph: fx.Graph | None = None) -> fx.GraphModule:
    """Returns the same module, hooks included, perhaps with another graph, that raises exceptions without
    printing.

    torch's own prints the exceptions of its generated code, and removes the traceback.
    """
    written = graph_module
    if graph is not None:
        written = fx.GraphModule(graph_module, graph, type(graph_module).__name__)
        for name, value in vars(graph_module).items():
            if name not in vars(written) or name.startswith(("_forward_", "_state_dict_")):
                vars(written)[name] = value
    kind = type(type(graph_module).__name__, (type(written),), {"__call__": torch.nn.Module.__call__})
    made: fx.GraphModule = object.__new__(kind)  # torch's own `__new__` would make a class, too
    vars(made).update(vars(written))
    return made


def _last_placeholder(graph: fx.Graph) -> fx.Node:
    last: fx.Node = [n for n in graph.nodes if n.op == "placeholder"][-1]
    return last


def is_annotated(graph_module: fx.GraphModule) -> bool:
    """Returns whether a node other than an input claims a shape."""
    from .tensor_types import claim_text  # which imports sympy

    return any(n.op != "placeholder" and claim_text(n.type) for n in graph_module.graph.nodes)


def listen(kind: str, value: Any, text: str) -> None:
    """Receives the reports of graphs made by `reporting`, as the recorder's listener."""
    if kind != "node":
        recorded(kind, value, text)
    elif (run := run_of(value)) is not None:
        tell(run, NODE, value, name=text)


# ---- what the inputs of a graph are


def placeholders(graph_module: fx.GraphModule) -> Iterator[tuple[str, Any, str]]:
    """Yields each input that has to be given: its name, its annotation, and the dtype that its uses require.
    """
    for node in graph_module.graph.nodes:
        if node.op == "placeholder" and not node.args and not str(node.target).startswith("*"):
            yield str(node.target), node.type, _dtype_of(graph_module, node)


_INDICES: Final = frozenset({"embedding", "index_select", "gather", "one_hot", "embedding_bag"})
_MASKS: Final = frozenset({"masked_fill", "masked_fill_", "masked_select"})
_KEEPING: Final = frozenset(
    {"view", "reshape", "contiguous", "flatten", "transpose", "unsqueeze", "squeeze", "expand", "permute"}
)


def _dtype_of(graph_module: fx.GraphModule, node: fx.Node) -> str:
    """Returns `int64` for an input used as indices, `bool` for a mask, or an empty text."""
    queue, seen = [node], {node}
    while queue:
        value = queue.pop()
        for user in value.users:
            name = str(getattr(user.target, "__name__", user.target))
            first = bool(user.args) and user.args[0] is value
            if user.op == "call_module":
                module = graph_module.get_submodule(str(user.target))
                if isinstance(module, torch.nn.Embedding | torch.nn.EmbeddingBag):
                    return "int64"
            elif name in _INDICES and first == name.startswith(("embedding", "one_hot")):
                return "int64"
            elif name in _MASKS and not first:
                return "bool"
            elif name in _KEEPING and first and user not in seen:
                seen.add(user)
                queue.append(user)
    return ""


# ---- the tracer


@dataclass(frozen=True, slots=True)
class TracedPath:
    """One path through a program, as a graph."""

    graph_module: fx.GraphModule
    conditions: tuple[Condition, ...]
    """The branch decisions of the path; on a `forced` one all declared inputs agree."""
    constraints: tuple[Constraint, ...]
    """The requirements of the calls on the path."""

    @property
    def premise(self) -> Formula:
        """Returns the condition on declared sizes under which this path is taken."""
        return premise(self.conditions)

    @property
    def open(self) -> tuple[Condition, ...]:
        """Returns the branches that other declared inputs decide differently, or that data decide."""
        return tuple(c for c in self.conditions if not c.forced)


class Shaped(fx.Proxy):
    """A proxy with the value that the recorder has for it, `held`."""

    def __init__(self, node: fx.Node, tracer: ShapeTracer) -> None:
        super().__init__(node, tracer)
        self.later: Callable[[], Any] | None = None
        self.known: Any = None

    @property
    def held(self) -> Any:
        """Returns the value.

        A comparison of sizes is only made when it is read: until then it decides nothing.
        """
        if self.later is not None:
            self.known, self.later = self.later(), None
        return self.known

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """Returns the class of the represented value, so that `isinstance` answers as in an eager run."""
        known = vars(self).get("known")
        if isinstance(known, torch.Tensor):
            return torch.Tensor
        return {Size: int, Sizes: torch.Size, tuple: tuple}.get(type(known), Shaped)

    def __getattr__(self, name: str) -> Any:
        if name in ("_is_param", "_is_buffer"):  # asked by isinstance(x, torch.nn.Parameter)
            return False
        if name in _ASKED:
            return self.tracer.create_proxy("call_function", builtins.getattr, (self, name), {})
        return super().__getattr__(name)

    def __len__(self) -> int:
        held = self.held
        return len(held) if isinstance(held, tuple | list) or type(held) is Sizes else int(held.shape[0])

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])  # type: ignore[index]

    def __bool__(self) -> bool:
        tracer = self.tracer
        assert isinstance(tracer, ShapeTracer)
        with tracer.evaluating():
            return bool(self.held)

    def __index__(self) -> int:
        tracer = self.tracer
        assert isinstance(tracer, ShapeTracer)
        with tracer.evaluating():
            return operator.index(self.held)

    __int__ = __index__


_ASKED: Final = frozenset({"shape", "ndim", "dtype", "device", "is_cuda", "requires_grad"})
_FACTORIES: Final = (
    *"arange empty eye full linspace logspace ones rand randint randn randperm zeros".split(),
    "tril_indices", "triu_indices",
)  # fmt: skip
_LITERALS: Final = frozenset({int, bool, float, str, type(None), torch.dtype, torch.device})
"""Types of values that are the same for all inputs on the path and are no proxies: a program may ask `is
None`.
"""
_COMPARISONS: Final[frozenset[Any]] = frozenset(
    {operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge}
)


class ShapeTracer(fx.Tracer):
    """Traces one path through a program for the inputs that a spec declares.

    At a branch that sizes decide, the path on which the condition holds is taken, unless the solver shows
    that none of the declared inputs takes it.
    """

    proxy_buffer_attributes = True

    def __init__(self, spec: Spec, rules: Rules, oracle: Oracle, **options: Any) -> None:
        super().__init__(**options)
        self.spec, self.rules, self.oracle = spec, rules.of_torch(INSTALLED, default_dtype()), oracle

    def trace_all(self, target: Callable[..., Any]) -> TracedPath:
        """Returns the graph, and the decisions on the path. Raises TargetError where it cannot be traced."""
        with Held(target).kept():
            return self._trace_all(target)

    def _trace_all(self, target: Callable[..., Any]) -> TracedPath:
        name = type(target).__name__ if isinstance(target, torch.nn.Module) else target.__name__
        while True:
            self.run = Recording(
                Assignment(Subject.of(target), self.spec, self.rules, self.oracle, (), Plans())
            )
            self.inputs = bind(target, self.spec.inputs, self.run._input)
            self.inputs.apply_defaults()
            try:
                with listening(listen):
                    graph = self.trace(target)
                self.spec = self.run.spec
                break
            except Deeper as wanted:
                self.run.deepen(wanted)
                self.spec = self.run.spec
            except GaveUp as reason:
                raise NotCallable(f"{name} cannot be traced: {reason}") from None
            except BadRules:
                raise
            except Exception as error:
                raise NotCallable(f"{name} cannot be traced: {type(error).__name__}: {error}") from error
        _drop_unused(graph, self.values)
        graph_module = fx.GraphModule(self.root, graph, name)
        said = self.run.generator.said
        return TracedPath(graph_module, tuple(self.run.conditions), tuple(said.constraints))

    @alone
    def trace(self, root: Any, concrete_args: dict[str, Any] | None = None) -> fx.Graph:
        self.values: dict[fx.Node, Shaped] = {}
        with _cond_is_if(), self._making_tensors():
            return super().trace(root, concrete_args)

    def _making_tensors(self) -> contextlib.AbstractContextManager[None]:
        """Makes functions that create a tensor from sizes nodes: torch's C++ side would ask for numbers."""

        def wrapped(function: Any) -> Callable[..., Any]:
            def made(*args: Any, **kwargs: Any) -> Any:
                if any(type(leaf) is Shaped for leaf in pytree.tree_leaves((args, kwargs))):
                    return self.create_proxy("call_function", function, args, kwargs)
                return function(*args, **kwargs)

            return made

        return together(Patch(torch, name, wrapped, "factories are nodes") for name in _FACTORIES)

    def proxy(self, node: fx.Node) -> Shaped:
        made = self.values[node] = Shaped(node, self)
        return made

    def create_arg(self, a: Any) -> Any:
        return a.node if isinstance(a, fx.Proxy) else super().create_arg(a)

    def create_proxy(self, kind: str, target: Any, args: Any, kwargs: Any, *more: Any, **options: Any) -> Any:
        proxy = super().create_proxy(kind, target, args, kwargs, *more, **options)
        if isinstance(proxy, Shaped):
            held = map_aggregate(args, _held), map_aggregate(kwargs, _held)
            if kind == "call_function" and target in _COMPARISONS and any(type(a) is Size for a in held[0]):
                proxy.later = lambda: self._evaluate(kind, target, *held)
            else:
                proxy.known = self._evaluate(kind, target, *held)
                if type(proxy.known) in _LITERALS:
                    return proxy.known
        return proxy

    @contextlib.contextmanager
    def evaluating(self) -> Iterator[None]:
        """Records torch functions inside the block, without tracing them."""
        run = self.run
        with (
            without_fx_patches(), entering_composites(), entered(run),
            symbolic_builtins(run.subject.sources), Mode(run),
        ):
            yield

    def _evaluate(self, kind: str, target: Any, args: Any, kwargs: Any) -> Any:
        if kind == "placeholder":
            return self.inputs.arguments.get(str(target).lstrip("*"))
        if kind == "get_attr":
            with without_fx_patches():
                return operator.attrgetter(target)(self.root)
        with self.evaluating():
            if kind == "call_module":
                return self.root.get_submodule(target)(*args, **kwargs)
            if kind == "call_method":
                return getattr(args[0], target)(*args[1:], **kwargs)
            return target(*args, **kwargs)


def _held(value: Any) -> Any:
    return value.held if type(value) is Shaped else value.node.meta if isinstance(value, fx.Proxy) else value


def _cond_is_if() -> contextlib.AbstractContextManager[None]:
    """Makes `torch.cond` on sizes, in a program or in an exported graph, an ordinary branch."""

    def on_size(pred: Any) -> bool:
        return type(pred) is Shaped and not isinstance(pred.held, torch.Tensor)

    def of_function(original: Function) -> Function:
        def cond(pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
            if type(pred) is bool or on_size(pred):
                return (true_fn if pred else false_fn)(*operands)
            return original(pred, true_fn, false_fn, operands)

        return cond

    def of_operator(original: Function) -> Function:
        def call(self: Any, pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
            if on_size(pred):
                return (true_fn if pred else false_fn)(*operands)
            return original(self, pred, true_fn, false_fn, operands)

        return call

    reason = "a branch on sizes is Python's"
    cond, operator = Patch(torch, "cond", of_function, reason), Patch(CondOp, "__call__", of_operator, reason)
    return together((cond, operator))


def _drop_unused(graph: fx.Graph, values: dict[fx.Node, Shaped]) -> None:
    """Removes unused sizes, comparisons and the like. Calls on tensors stay, since they may write."""
    for node in reversed([*graph.nodes]):
        pure = node.op in ("call_function", "call_method", "get_attr") and node in values
        if pure and not node.users and (values[node].later or not _has_tensor(values[node].known)):
            graph.erase_node(node)


def _has_tensor(value: Any) -> bool:
    if isinstance(value, list | tuple) and type(value) is not Sizes:
        return any(map(_has_tensor, value))
    return isinstance(value, torch.Tensor) or value is None
