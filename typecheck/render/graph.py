"""The annotated graph of a report: inputs, calls and outputs, with a symbolic shape on each edge.

Calls are numbered as in `Report.shapes`; an input is `("input", name)`, an output `("output", name)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import networkx as nx

from ..codes import Severity
from ..report import Finding, Operand, Report
from .text import place

_COLOURS: Final[Mapping[Severity, str]] = {
    Severity.ERROR: "#c62828",
    Severity.WARNING: "#b26a00",
    Severity.NOTE: "#1565c0",
}


def to_graph(report: Report) -> nx.MultiDiGraph[Any]:
    """The calls of the main path as a graph of networkx.

    Nodes have a `kind` ("input", "call" or "output"). Calls have `op`, `results`, `file`, `line`, `code`,
    `module`, and as `findings` the codes of those about them. Edges have the `value` that flows.
    """
    graph: nx.MultiDiGraph[Any] = nx.MultiDiGraph(target=report.target, verdict=report.verdict.value)
    about = _about(report.findings)
    for shape in report.shapes:
        origin = shape.origin
        graph.add_node(
            shape.node,
            kind="call",
            op=shape.op,
            results=list(shape.results),
            file=origin.file,
            line=origin.line,
            code=origin.code,
            module=origin.module,
            findings=[finding.code.value for finding in about.get(shape.node, ())],
        )
        _connect(graph, shape.operands, shape.node)
    for output in report.outputs:
        key = "output", output.name
        if key not in graph:
            graph.add_node(key, kind="output", name=output.name, value=output.value)
            _connect(graph, output.operands, key)
    return graph


def _about(findings: Iterable[Finding]) -> dict[int, list[Finding]]:
    about: dict[int, list[Finding]] = {}
    for finding in findings:
        if finding.node is not None and not finding.suppressed:
            about.setdefault(finding.node, []).append(finding)
    return about


def _connect(graph: nx.MultiDiGraph[Any], operands: Iterable[Operand], target: Any) -> None:
    for operand in operands:
        source: Any = operand.node
        if source is None:
            source = "input", operand.name
            if source not in graph:
                graph.add_node(source, kind="input", name=operand.name, value=operand.value)
        graph.add_edge(source, target, value=operand.value)


# ---- DOT


def to_dot(report: Report) -> str:
    """The graph in the language of Graphviz, a cluster for each module."""
    graph = to_graph(report)
    worst = {node: min(found, key=_weight).severity for node, found in _about(report.findings).items()}
    ids = {key: f"n{index}" for index, key in enumerate(graph)}
    lines = [
        f"digraph {_quoted(report.target)} {{",
        '  graph [rankdir=TB, fontname="sans-serif"];',
        '  node [shape=box, style=rounded, fontname="sans-serif"];',
        '  edge [fontname="monospace", fontsize=10];',
    ]
    tree: dict[str, Any] = {}
    for key, data in graph.nodes(data=True):
        label = data["op"] if data["kind"] == "call" else data["name"]
        style = "" if data["kind"] == "call" else ", shape=ellipse"
        if key in worst:
            style += f', color="{_COLOURS[worst[key]]}", penwidth=3'
        if data["kind"] == "call" and data["file"]:
            tooltip = f"{place(report.shapes[_position(report, key)].origin)}: {data['code']}"
            style += f", tooltip={_quoted(tooltip)}"
        _into(tree, data.get("module", ""))[key] = f"{ids[key]} [label={_quoted(label)}{style}];"
    lines += _clusters(tree, "", "  ")
    lines += [f"  {ids[s]} -> {ids[t]} [label={_quoted(v)}];" for s, t, v in graph.edges(data="value")]
    return "\n".join((*lines, "}")) + "\n"


def _weight(finding: Finding) -> int:
    return [*Severity].index(finding.severity)


def _position(report: Report, node: int) -> int:
    return next(index for index, shape in enumerate(report.shapes) if shape.node == node)


def _into(tree: dict[str, Any], module: str) -> dict[Any, Any]:
    """The place of a module in the tree of modules; the texts of its nodes stand beside its submodules."""
    for part in module.split(".") if module else ():
        tree = tree.setdefault(part, {})
    return tree


def _clusters(tree: Mapping[Any, Any], path: str, indent: str) -> Iterator[str]:
    for key, content in tree.items():
        if isinstance(content, str):
            yield indent + content
            continue
        inner = f"{path}.{key}" if path else key
        yield f"{indent}subgraph {_quoted(f'cluster {inner}')} {{"
        yield f"{indent}  label={_quoted(inner)};"
        yield from _clusters(content, inner, indent + "  ")
        yield f"{indent}}}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
