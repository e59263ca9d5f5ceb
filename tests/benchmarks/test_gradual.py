"""The benchmark of gradual typing asks both the same, and stops torch where it is to stop."""

from __future__ import annotations

import pytest
import torch

from benchmarks import networks
from benchmarks.gradual import PROGRAMS, ours, row, theirs


def test_both_answer_a_row() -> None:
    found = row("8 Linear, ReLU", 60.0)
    assert found["answer"] == found["torch"] == "some"
    assert float(found["ratio"]) > 0


def test_the_limit_stops_torch() -> None:
    graph_module = torch.fx.symbolic_trace(networks.linears(200))
    assert theirs(graph_module, 0.1).answer == "gave up"


@pytest.mark.parametrize("name", [n for n in PROGRAMS if "1000" not in n and "24" not in n])
def test_ours_answers_every_program(name: str) -> None:
    graph_module = torch.fx.symbolic_trace(PROGRAMS[name]())
    inputs = [f"{n.target}: float32[...]" for n in graph_module.graph.nodes if n.op == "placeholder"]
    assert ours(graph_module, inputs, 60.0).answer == "some"
