"""Are two graphs that torch has traced the same, whatever their nodes are called?"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.utils import _pytree as pytree

SIZE = torch.ops.aten.sym_size.int
SLICE = torch.ops.aten.slice.Tensor
COPY = torch.ops.aten.contiguous.default
"""It holds what it is made of, which is all that counts where nothing is written into."""
WHOLE = (0, sys.maxsize, 1)
"""Start, stop and step of a slice that are not given."""
ASSERTIONS = (torch.ops.aten._assert_scalar.default, torch.ops.aten._assert_tensor_metadata.default)


def described(module: GraphModule, at: Mapping[str, int] | None = None) -> tuple[Any, ...]:
    """All calls in order, with numbers and other constants, and the shapes that the trace found; but for what
    asserts, and what nothing uses.

    A value is told by what makes it, so that two graphs with the same description compute the same, and say
    the same of their sizes. `at` gives torch's symbols values: then the description is of the graph for
    these, and a size is told by what it is, whether a trace has left it a symbol or made a number of it.
    """
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
        return type(value).__name__, str(value)

    for node in module.graph.nodes:
        if at is not None and (size := _size(node, at)) is not None:
            known[node] = size
        elif node in needed and (_is_whole(node) or (node.target is COPY and node not in written)):
            known[node] = known[node.args[0]]
        elif node.op == "get_attr":
            attribute = _attribute(module, node.target)
            inner = described(attribute, at) if isinstance(attribute, GraphModule) else node.target
            known[node] = ("attribute", inner)
        elif node in needed or node.op in ("placeholder", "output"):
            target = "" if node.op == "placeholder" else str(node.target)
            call = node.op, target, said(node.args), said(node.kwargs), _shapes(node, at or {})
            if node.target is SIZE:
                known[node] = call  # in one graph it stands early, in the other late
            else:
                known[node] = ("value", len(calls))
                calls.append(call)
    return tuple(calls)


def _is_whole(node: Node) -> bool:
    """Is it `x[:]`, all of a tensor along a dimension? torch leaves some of these out, others not."""
    if node.target is not SLICE or node.kwargs:
        return False
    given = node.args[2:]
    start, stop, step = given + WHOLE[len(given) :]
    return bool(start in (None, 0) and stop in (None, sys.maxsize) and step == 1)


def _written(module: GraphModule) -> set[Node]:
    """The values into whose memory something is written, as far as they may share it with what is written to.

    Those that an operator gives back share it with those that it is given, if its schema says so, or if there
    is none, as of getting an item.
    """
    shared: dict[Node, set[Node]] = {}
    changed: list[Node] = []
    for node in module.graph.nodes:
        schema = getattr(node.target, "_schema", None)
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
    """Is it no size, of which two views may be made without a byte in common?"""
    return not isinstance(node.meta.get("val"), int | float | torch.SymInt | torch.SymFloat | torch.SymBool)


def _shapes(node: Node, at: Mapping[str, int]) -> tuple[str, ...]:
    leaves = pytree.tree_leaves(node.meta.get("val"))
    told = [[*v.shape] if isinstance(v, torch.Tensor) else [v] for v in leaves]
    return tuple(str([_at(size, at) for size in sizes]) for sizes in told)


def _at(size: Any, at: Mapping[str, int]) -> str:
    """The size for these values of torch's symbols."""
    if not isinstance(size, torch.SymInt):
        return str(size)
    expression = size.node.expr
    return str(expression.subs({s: at[s.name] for s in expression.free_symbols if s.name in at}))


def _size(node: Node, at: Mapping[str, int]) -> tuple[str, str] | None:
    """A node that is a size of the inputs, as a constant would be told; None for any other."""
    value = node.meta.get("val")
    if not isinstance(value, torch.SymInt) or node.op != "call_function":
        return None
    if any(s.name.startswith("u") for s in value.node.expr.free_symbols):
        return None  # of the data
    return "int", _at(value, at)


def _needed(module: GraphModule) -> set[Node]:
    """The nodes that the output, or something with an effect, depends on."""
    found: set[Node] = set()
    todo = [n for n in module.graph.nodes if n.op == "output" or (n.is_impure() and not _asserts(n))]
    while todo:
        node = todo.pop()
        if node not in found:
            found.add(node)
            todo += node.all_input_nodes
    return found


def _asserts(node: Node) -> bool:
    return node.op == "placeholder" or node.target in ASSERTIONS


def _attribute(module: Any, target: Any) -> Any:
    for part in str(target).split("."):
        module = getattr(module, part)
    return module
