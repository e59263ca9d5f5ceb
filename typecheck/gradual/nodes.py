"""The nodes of a program by name, and what value each has on each way through it.

The nodes of a torch.fx graph have names. Those of a program that was recorded are called after their
operators here, in order: `linear`, `relu`, `linear_1`.
"""

from __future__ import annotations

from collections import Counter

from ...constraints.engine.generate import resolved
from ...constraints.ir.language import Value
from ...constraints.ir.system import Path

NODE = "fx_node"
"""The operator that names a node of a graph (tracer/readers/fx.py)."""
OUTPUT = "output"


def values_of(path: Path) -> dict[str, Value]:
    """Returns the value of each node on a path: the inputs, the calls, and the program's result."""
    named = _named(path)
    inputs = {i.name: i.type for i in path.program.inputs if not i.parameter}
    found: dict[str, Value] = named or {**inputs, **_by_operator(path)}
    outputs = [resolved(argument, path.values) for _, argument in path.program.outputs]
    if path.end.how == "returned" and outputs:
        found[OUTPUT] = outputs[0] if len(outputs) == 1 else tuple(outputs)
    return found


def _named(path: Path) -> dict[str, Value]:
    tells = [dict(node.args) for node in path.program.nodes if node.op == NODE]
    return {str(arguments["name"]): resolved(arguments["input"], path.values) for arguments in tells}


def _by_operator(path: Path) -> dict[str, Value]:
    found: dict[str, Value] = {}
    seen: Counter[str] = Counter()
    for node in path.program.nodes:
        if node.results:
            name = f"{node.op}_{seen[node.op]}" if seen[node.op] else node.op
            seen[node.op] += 1
            results = tuple(path.values[r] for r in node.results)
            found[name] = results[0] if len(results) == 1 else results
    return found
