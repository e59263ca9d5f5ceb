"""The annotated graph of a report: inputs, calls and outputs, with a symbolic shape on each edge.

Calls are numbered as in `Report.shapes`; an input is `("input", name)`, an output `("output", name)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final

import networkx as nx

from ..report.codes import Severity
from ..report.report import Finding, Operand, ReportData
from .regions import Part, ProgramRegion, regions

_COLOURS: Final[Mapping[Severity, str]] = {
    Severity.ERROR: "#c62828",
    Severity.WARNING: "#b26a00",
    Severity.NOTE: "#1565c0",
}


def to_graph(report: ReportData) -> nx.MultiDiGraph[Any]:
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
            graph.add_node(key, kind="output", name=output.name, value=str(output.value))
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


def to_dot(report: ReportData) -> str:
    """The graph in the language of Graphviz, with a cluster for each run of calls of one module."""
    graph = to_graph(report)
    worst = {node: min(found, key=_weight).severity for node, found in _about(report.findings).items()}
    ids = {key: f"n{index}" for index, key in enumerate(graph)}
    lines_of = {key: _drawn(ids[key], data, worst.get(key)) for key, data in graph.nodes(data=True)}
    lines = [
        f"digraph {_quoted(report.target)} {{",
        '  graph [rankdir=TB, fontname="sans-serif"];',
        '  node [shape=box, style=rounded, fontname="sans-serif"];',
        '  edge [fontname="monospace", fontsize=10];',
    ]
    lines += [f"  {line}" for key, line in lines_of.items() if isinstance(key, tuple)]
    calls = [lines_of[shape.node] for shape in report.shapes]
    lines += _clusters(regions(report.shapes), calls, count(), "  ")
    lines += [f"  {ids[s]} -> {ids[t]} [label={_quoted(v)}];" for s, t, v in graph.edges(data="value")]
    return "\n".join((*lines, "}")) + "\n"


def _weight(finding: Finding) -> int:
    return [*Severity].index(finding.severity)


def _drawn(id: str, data: Mapping[str, Any], worst: Severity | None) -> str:
    """The line that declares a node."""
    attributes = {"label": data["op"] if data["kind"] == "call" else data["name"]}
    if data["kind"] != "call":
        attributes["shape"] = "ellipse"
    elif data["file"]:
        attributes["tooltip"] = f"{data['file']}:{data['line']}: {data['code']}"
    if worst is not None:
        attributes |= {"color": _COLOURS[worst], "penwidth": "3"}
    return f"{id} [{', '.join(f'{name}={_quoted(value)}' for name, value in attributes.items())}];"


def _clusters(
    parts: Sequence[Part], calls: Sequence[str], number: Iterator[int], indent: str
) -> Iterator[str]:
    for part in parts:
        if not isinstance(part, ProgramRegion):
            yield indent + calls[part]
            continue
        yield f"{indent}subgraph cluster_{next(number)} {{"
        yield f"{indent}  label={_quoted(part.label)};"
        yield from _clusters(part.parts, calls, number, indent + "  ")
        yield f"{indent}}}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
