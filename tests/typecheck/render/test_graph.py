"""The annotated graph: its nodes and edges are the program's calls and the values that flow between them."""

from __future__ import annotations

import re
from dataclasses import replace

import networkx as nx
import pytest
from rendered import PROGRAMS, report

from anyshape.typecheck import Code, Finding, Severity
from anyshape.typecheck.render.graph import to_dot, to_graph


def test_a_small_graph() -> None:
    graph = to_graph(report("refuted"))
    assert dict(graph.nodes(data="kind")) == {0: "call", ("input", "x"): "input", 1: "call",
                                              ("output", "output"): "output"}  # fmt: skip
    assert [*graph.edges(data="value")] == [
        (0, 1, "float32[b, 6]"),
        (("input", "x"), 0, "float32[b, 8]"),
        (1, ("output", "output"), "float32[b, 2]"),
    ]
    assert graph.nodes[1]["findings"] == ["shape-mismatch"]
    assert graph.nodes[1]["module"] == "second"
    assert graph.nodes[1]["code"] == "return self.second(self.first(x))"
    assert graph.graph == {"target": "Wrong", "verdict": "refuted"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_graphs_flow_from_inputs_to_outputs(name: str) -> None:
    graph = to_graph(report(name))
    assert nx.is_directed_acyclic_graph(graph)
    sources = {node for node in graph if graph.nodes[node]["kind"] == "input"}
    assert sources
    for node in graph:
        if graph.nodes[node]["kind"] == "output" and graph.nodes[node]["value"] != "None":
            assert any(nx.has_path(graph, source, node) for source in sources), node


def test_an_operand_taken_twice_is_one_edge() -> None:
    graph = to_graph(report("refined"))
    adds = [n for n, op in graph.nodes(data="op") if op == "add"]
    assert [graph.in_degree(n) for n in adds] == [2, 2, 2]


def test_only_what_is_not_suppressed_marks_a_node() -> None:
    found = Finding(Code.CONDITION, "told", Severity.WARNING, node=0)
    for suppressed, codes in (("", ["condition"]), ("source", [])):
        graph = to_graph(replace(report("proved"), findings=(replace(found, suppressed=suppressed),)))
        assert graph.nodes[0]["findings"] == codes


# ---- DOT


@pytest.mark.parametrize("name", PROGRAMS)
def test_dot_has_every_node_and_edge(name: str) -> None:
    graph, dot = to_graph(report(name)), to_dot(report(name))
    assert len(re.findall(r"^ *n\d+ \[label=", dot, re.MULTILINE)) == len(graph)
    assert len(re.findall(r"^ *n\d+ -> n\d+ \[label=", dot, re.MULTILINE)) == graph.number_of_edges()
    assert dot.count("{") == dot.count("}")


def test_modules_are_nested_clusters() -> None:
    dot = to_dot(report("refined"))
    clusters = [dot.index(f'label="{name}"') for name in ("blocks", "blocks.0", "blocks.1", "blocks.2")]
    assert clusters == sorted(clusters)
    assert dot.count("subgraph") == 4


def test_texts_are_quoted() -> None:
    dot = to_dot(replace(report("proved"), target='a "b" \\ c\nd'))
    assert dot.startswith('digraph "a \\"b\\" \\\\ c\\nd" {\n')


def test_a_finding_is_drawn() -> None:
    (line,) = [line for line in to_dot(report("refuted")).splitlines() if "penwidth" in line]
    assert "linear" in line
    assert "self.second" in line
