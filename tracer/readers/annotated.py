"""A torch.fx graph with types on all of its nodes, and as Python source with annotations."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from torch import fx

from ...constraints.ir.lattice import Type
from ..recording.binding import NotCallable
from .tensor_types import to_torch

GraphModule: TypeAlias = fx.GraphModule


def traced(target: Any) -> fx.GraphModule:
    """Returns the graph that torch's own tracer makes of a program. Raises TargetError where it fails."""
    try:
        return fx.symbolic_trace(target)
    except Exception as error:  # noqa: BLE001 (the target is the user's code, and so is what it raises)
        raise NotCallable(f"torch.fx does not trace it: {error}") from None


def with_types(graph_module: fx.GraphModule, types: Mapping[str, Type]) -> fx.GraphModule:
    """Returns a copy of the graph, each node with the type of its name; modules and parameters are shared."""
    made = fx.GraphModule(graph_module, copy.deepcopy(graph_module.graph), type(graph_module).__name__)
    write_types(made, types)
    return made


def write_types(graph_module: fx.GraphModule, types: Mapping[str, Type]) -> None:
    """Writes types to the nodes in torch's form, as `node.type`. Terms become sympy's."""
    for node in graph_module.graph.nodes:
        if node.name in types:
            node.type = to_torch(types[node.name])


_ASSIGNED = re.compile(r"^(?P<indent> {4})(?P<name>\w+) = ", re.MULTILINE)
_FORWARD = re.compile(r"^def forward\(self(?P<parameters>[^)]*)\):", re.MULTILINE)


def source(graph_module: fx.GraphModule, types: Mapping[str, Type]) -> str:
    """Returns the source of `forward`, with a text as annotation of every parameter and every value: `[b,
    h//2]`.

    It is Python, and computes the same as the graph.
    """
    plain = copy.deepcopy(graph_module.graph)
    for node in plain.nodes:
        node.type = None
    code: str = plain.python_code("self").src

    def parameter(text: str) -> str:
        name = text.split("=")[0].strip()
        return text.replace(name, f'{name}: "{types[name]}"', 1) if name in types else text

    def forward(found: re.Match[str]) -> str:
        parameters = [p.strip() for p in found["parameters"].split(",") if p.strip()]
        return f"def forward({', '.join(['self', *map(parameter, parameters)])}):"

    def assigned(found: re.Match[str]) -> str:
        known = types.get(found["name"])
        return found[0] if known is None else f'{found["indent"]}{found["name"]}: "{known}" = '

    return _ASSIGNED.sub(assigned, _FORWARD.sub(forward, code, count=1)).strip() + "\n"
