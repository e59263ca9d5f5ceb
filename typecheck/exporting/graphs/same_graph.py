"""Compares two graphs that torch has traced, whatever their nodes are called."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from operator import eq
from typing import Any, TypeAlias

import sympy
import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from ....tracer.host.operators import ASSERT_METADATA, ASSERT_SCALAR, schema_of
from ....tracer.host.trees import pytree

SIZE = torch.ops.aten.sym_size.int
SLICE = torch.ops.aten.slice.Tensor
PADS = frozenset({torch.ops.aten.pad.default, torch.ops.aten.constant_pad_nd.default})
RESIZES = frozenset({
    getattr(torch.ops.aten, f"upsample_{how}").vec
    for how in ("nearest1d", "nearest2d", "nearest3d", "linear1d", "bilinear2d", "trilinear3d", "bicubic2d")
})  # fmt: skip
DETACH = torch.ops.aten.detach_.default
"""It writes nothing into memory."""
COPY = torch.ops.aten.contiguous.default
"""Its result equals its operand; the difference matters only where something is written into, and seen
elsewhere.
"""
WHOLE = (0, sys.maxsize, 1)
"""Start, stop and step of a slice that are not given."""
ASSERTIONS = (ASSERT_SCALAR, ASSERT_METADATA)


@dataclass(frozen=True, slots=True)
class SizeShown:
    """A size in a description of a graph."""

    value: Any


Read: TypeAlias = Callable[[sympy.Expr], Any]
"""Returns the description of a size, from torch's expression of it."""
Equal: TypeAlias = Callable[[Any, Any], bool]
"""Returns whether two sizes with these descriptions are the same."""


def agree(one: Any, other: Any, equal: Equal) -> bool:
    """Returns whether two descriptions are the same, with sizes compared by `equal`."""
    if isinstance(one, tuple) and isinstance(other, tuple):
        return len(one) == len(other) and all(map(agree, one, other, repeat(equal)))
    if isinstance(one, SizeShown) and isinstance(other, SizeShown):
        return equal(one.value, other.value)
    return bool(one == other)


def described(program: ExportedProgram, read: Read = lambda size: size, equal: Equal = eq) -> tuple[Any, ...]:
    """Returns all calls in order, with numbers and other constants, and the shapes that the trace found.
    Assertions and unused values are left out.

    A value is described by the call that makes it, so that two graphs with the same description compute the
    same, and with the same sizes. A size is described by its value: a number in one trace may be a symbol in
    the other. Calls that change nothing where sizes are `equal` are left out: a slice of all of a tensor,
    padding by nothing, resizing to the same size.
    """
    constants = program.graph_signature.inputs_to_lifted_tensor_constants
    made = {name: _constant(program.constants[key]) for name, key in constants.items()}
    return _described(program.graph_module, made, _SizeReader(read, equal))


def _described(module: GraphModule, constants: Mapping[str, Any], sizes: _SizeReader) -> tuple[Any, ...]:
    """The calls of a graph, where constants go by these names."""
    known: dict[Node, Any] = {}
    calls: list[Any] = []
    needed = _needed(module)
    written = _written(module)

    def said(value: Any) -> Any:
        if isinstance(value, Node):
            return known[value]
        if isinstance(value, list | tuple):
            return tuple(map(said, value))
        if isinstance(value, dict):
            return tuple((key, said(part)) for key, part in value.items())
        if isinstance(value, slice):
            return ("slice", said(value.start), said(value.stop), said(value.step))
        return sizes.told(value) if type(value) is int else (type(value).__name__, str(value))

    for node in module.graph.nodes:
        if _is_size(node):
            known[node] = sizes.told(node)
        elif node in needed and (_is_as_good(node, written) or _changes_nothing(node, written, sizes)):
            known[node] = known[node.args[0]]
        elif node.op == "get_attr":
            attribute = _attribute(module, node.target)
            inner = _described(attribute, {}, sizes) if isinstance(attribute, GraphModule) else node.target
            known[node] = ("attribute", inner)
        elif node.op == "placeholder" and node.name in constants:
            known[node] = ("constant", constants[node.name])
        elif node in needed or node.op in ("placeholder", "output"):
            target = "" if node.op == "placeholder" else str(node.target)
            call = node.op, target, said(node.args), said(node.kwargs), sizes.shapes(node)
            if node.target is SIZE:
                known[node] = call  # in one graph it stands early, in the other late
            else:
                known[node] = ("value", len(calls))
                calls.append(call)
    return tuple(calls)


class _SizeReader:
    """Sizes as a description tells them."""

    def __init__(self, read: Read, equal: Equal) -> None:
        self.read, self.equal = read, equal

    def told(self, size: Any) -> Any:
        """A number, torch's symbolic size, or the node that has it; anything else as a text."""
        value = size.meta["val"] if isinstance(size, Node) else size
        if isinstance(value, torch.SymInt):
            return SizeShown(self.read(value.node.expr))
        return SizeShown(self.read(sympy.Integer(value))) if type(value) is int else str(value)

    def shapes(self, node: Node) -> tuple[Any, ...]:
        """The shapes of all that a node gives."""
        leaves = pytree.tree_leaves(node.meta.get("val"))
        return tuple([tuple(map(self.told, v.shape if isinstance(v, torch.Tensor) else [v])) for v in leaves])

    def same(self, one: Sequence[Any], other: Sequence[Any]) -> bool:
        """Returns whether both are the same sizes, one by one."""
        return agree(tuple(map(self.told, one)), tuple(map(self.told, other)), self.equal)


def _changes_nothing(node: Node, written: set[Node], sizes: _SizeReader) -> bool:
    """Returns whether the call returns its operand unchanged. torch leaves out some slices of all of a
    tensor, but not others.
    """
    if node.kwargs or not node.args or not isinstance(x := node.args[0], Node):
        return False
    if node.target is SLICE:
        given: Any = node.args[1:]
        dim, start, stop, step = given + (0, *WHOLE)[len(given) :]
        if start not in (None, 0) or step != 1:
            return False
        return stop in (None, sys.maxsize) or sizes.same([stop], [x.meta["val"].shape[dim]])
    if node.target in PADS:
        around: Any = node.args[1]
        nothing = sizes.same(around, [0] * len(around))
    elif node.target in RESIZES and node.args[1] is not None and node.args[-1] is None:
        nothing = sizes.same(x.meta["val"].shape, node.meta["val"].shape)
    else:
        return False
    return nothing and node not in written and x not in written


def _is_as_good(node: Node, written: set[Node]) -> bool:
    """Returns whether the node is a copy that can be replaced by its source."""
    return node.target is COPY and (node not in written or _sees_alone(node))


def _sees_alone(copy: Node) -> bool:
    """Returns whether the copied memory has no other user than the copy."""
    node = copy.args[0]
    while isinstance(node, Node) and len([user for user in node.users if not _looks_on(user)]) == 1:
        schema = schema_of(node.target)
        if schema is None or node.op != "call_function":
            return False
        if not any(result.alias_info for result in schema.returns):
            return True
        node = node.args[0]
    return False


def _looks_on(node: Node) -> bool:
    """Returns whether the node only reads a size, or only asserts."""
    return node.target in ASSERTIONS or not _has_memory(node)


def _written(module: GraphModule) -> set[Node]:
    """Returns the values into whose memory something is written, as far as they may share it with the written
    value.

    An operator's results share memory with its operands if its schema says so, or if it has no schema, as is
    the case for getting an item.
    """
    shared: dict[Node, set[Node]] = {}
    changed: list[Node] = []
    for node in module.graph.nodes:
        schema = schema_of(node.target)
        group = {node}
        if schema is None or "dropout" in str(node.target) or any(r.alias_info for r in schema.returns):
            for other in filter(_has_memory, node.all_input_nodes):
                group |= shared[other]
        for member in group:
            shared[member] = group
        if schema is not None and schema.is_mutable:
            changed += node.all_input_nodes
    return {member for node in changed for member in shared[node]}


def _has_memory(node: Node) -> bool:
    """Returns whether the value has memory: sizes have none, and neither have other numbers."""
    return not isinstance(node.meta.get("val"), int | float | torch.SymInt | torch.SymFloat | torch.SymBool)


def _is_size(node: Node) -> bool:
    """Returns whether the node is a size of the inputs, and not one that data decide."""
    value = node.meta.get("val")
    if not isinstance(value, torch.SymInt) or node.op != "call_function":
        return False
    return not any(s.name.startswith("u") for s in value.node.expr.free_symbols)


def _needed(module: GraphModule) -> set[Node]:
    """The nodes that the output, or something with an effect, depends on."""
    found: set[Node] = set()
    todo = [n for n in module.graph.nodes if n.op == "output" or (n.is_impure() and not _does_nothing(n))]
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            todo += node.all_input_nodes
    return found


def _does_nothing(node: Node) -> bool:
    """Returns whether the node has no effect but its result or an assertion."""
    return node.op == "placeholder" or node.target in ASSERTIONS or node.target is DETACH


def _constant(value: Any) -> tuple[Any, ...]:
    """All of a tensor that the trace has put into the program: a size may be in it."""
    return (str(value.dtype), tuple(value.shape), str(value.tolist())) if torch.is_tensor(value) else (value,)


def _attribute(module: Any, target: Any) -> Any:
    for part in str(target).split("."):
        module = getattr(module, part)
    return module
