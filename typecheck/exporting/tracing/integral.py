"""Roundings of fractions in a graph as arithmetic on integers, for torch saves no graph with `math.ceil`."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import torch
from torch.export import ExportedProgram
from torch.fx import GraphModule, Node

from ..graphs.graph_calls import put_call, value_in_graph

_EXACT: Final = 1 << 20
Call: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function, and the numbers and nodes that it is called with."""
Write: TypeAlias = Callable[..., Any]
"""Puts such a call into the graph, and says what it gives."""


def make_integral(program: ExportedProgram) -> None:
    """Rewrites the program: `math.floor(a / b)` is `a // b`, and so on. It computes the same for sizes below
    2**53, up to which a float holds every integer.
    """
    for module in program.graph_module.modules():
        if isinstance(module, GraphModule):
            for node in [*module.graph.nodes]:
                if node.target in _ROUNDINGS and node.args[1:] in ((), (None,)) and not node.kwargs:
                    _rewrite(node)
            module.recompile()


def _rewrite(node: Node) -> None:
    """The node stays, with its name, which may be that of an output."""
    rounded = node.args[0]

    def write(function: Callable[..., Any], *args: Any) -> Any:
        with node.graph.inserting_before(node):
            return put_call(node.graph, function, *args, **node.meta)

    if node.target is math.floor and isinstance(rounded, Node) and _is_root(rounded):
        node.target = math.trunc  # no root is negative
    elif (fraction := _fraction(rounded, write)) is not None:
        node.target, node.args = _ROUNDINGS[node.target](write, *fraction)
        if isinstance(rounded, Node) and not rounded.users:
            rounded.graph.erase_node(rounded)


def _fraction(value: Any, write: Write) -> tuple[Any, Any] | None:
    """Returns the integers a and b if the value is `a / b`, or `a` times a float that equals such a fraction
    and multiplies sizes below 2**32 exactly.
    """
    if _target(value) is operator.truediv:
        over, under = value.args
        return (over, under) if _is_integer(over) and _is_integer(under) else None
    if _target(value) is operator.mul:
        for part, factor in (value.args, value.args[::-1]):
            integer = part.args[0] if _target(part) is torch.sym_float else part
            if _is_integer(integer) and type(factor) is float and math.isfinite(factor):
                over, under = factor.as_integer_ratio()
                if max(abs(over), under) <= _EXACT:
                    return write(operator.mul, integer, over), under
    return None


def _floor(write: Write, a: Any, b: Any) -> Call:
    return operator.floordiv, (a, b)


def _ceil(write: Write, a: Any, b: Any) -> Call:
    """-(-a // b)"""
    return operator.neg, (write(operator.floordiv, write(operator.neg, a), b),)


def _round(write: Write, a: Any, b: Any) -> Call:
    """The nearest integer, the even one of two: q = (2a + b)//2b, less 1 where it is odd and 2b | 2a + b."""
    doubled, under = write(operator.add, write(operator.mul, 2, a), b), write(operator.mul, 2, b)
    nearest = write(operator.floordiv, doubled, under)
    rest = write(torch.sym_min, 1, write(operator.mod, doubled, under))
    odd = write(operator.mod, nearest, 2)
    return operator.sub, (nearest, write(operator.mul, odd, write(operator.sub, 1, rest)))


_ROUNDINGS: Final[Mapping[Any, Callable[[Write, Any, Any], Call]]] = {
    math.floor: _floor, math.ceil: _ceil, builtins.round: _round,
}  # fmt: skip


def _is_root(node: Node) -> bool:
    return node.target in (operator.pow, torch.sym_sqrt) and node.args[1:] in ((), (0.5,))


def _target(value: Any) -> Any:
    return value.target if isinstance(value, Node) else None


def _is_integer(argument: Any) -> bool:
    return isinstance(value_in_graph(argument), int | torch.SymInt)
