"""Calls that are put into an exported graph, with the values that they have in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy
import torch
from torch.fx import Graph, Node


def value_in_graph(argument: Any) -> Any:
    """The value of a node; anything else is its own."""
    return argument.meta["val"] if isinstance(argument, Node) else argument


def put_call(graph: Graph, function: Callable[..., Any], *args: Any, **meta: Any) -> Any:
    """Returns the result of a call: a new node, at the graph's current insertion point, or the number that it
    equals.
    """
    value = function(*map(value_in_graph, args))
    if not isinstance(value, torch.SymInt | torch.SymFloat | torch.SymBool):
        return value
    if value.node.expr.is_number or value.node.expr in (sympy.true, sympy.false):
        return float(value) if isinstance(value, torch.SymFloat) else int(value)
    node = graph.call_function(function, args)
    node.meta.update({**meta, "val": value})
    return node
