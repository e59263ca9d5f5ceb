"""The benchmarks themselves, on a model of two layers."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pytest
import torch

from benchmarks import bench, cold, growth, rivals, stages
from benchmarks.models import Measured, build
from benchmarks.timing import Spread, rounds


class Tiny(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.relu = torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.relu(self.conv(x))


TINY = Measured("tiny", Tiny, "x: float32[b, 3, h, w]", {"x": ((2, 3, 8, 8), torch.float32)})
OPTIONS = argparse.Namespace(models=[], repeat=1, export=True, longest=100)


def test_stages_add_up_to_the_whole() -> None:
    checked = stages.Checked(build(TINY), *stages.spec_of(TINY, True))
    took = checked()
    assert checked.report is not None and checked.report.verdict == "refined"
    assert took["together"] == pytest.approx(sum(took[s] for s in ("load", "trace", "solve", "report")))
    assert 0 < took["refine"] < took["solve"]


def test_a_model_is_measured_beside_fake_tensors() -> None:
    symbolic, static = bench._model(TINY, OPTIONS)
    assert symbolic["verdict"] == "refined" and static["verdict"] == "proved"
    for row in (symbolic, static):
        assert row["nodes"] == 2
        assert isinstance(row["together / fake"], Spread) and row["together / fake"].median > 0
        assert row["(generate + solve) / fake"].median < row["together / fake"].median


def test_a_file_is_measured_against_its_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "BUILD", tmp_path)
    static, auto = bench._files(TINY, OPTIONS)
    assert static["sizes"] == "static" and auto["sizes"] == "AUTO"
    assert (tmp_path / "tiny-AUTO.pt2").exists()
    assert static["together / export"].median > 0
    assert auto["export / check of the Python model"].median > 0


def test_a_model_is_measured_beside_onnx() -> None:
    row = bench._onnx(TINY, OPTIONS)
    assert row["nodes of ONNX"] == 2
    assert row["infer_shapes / (generate + solve)"].median > 0 and row["export to ONNX"] > row["check"]


def test_onnx_is_told_no_shape_but_those_of_the_inputs_and_infers_the_others() -> None:
    import onnx

    model, _ = rivals.onnx_model(TINY, build(TINY))
    assert not model.graph.value_info and not model.graph.output[0].type.tensor_type.HasField("shape")
    found = onnx.shape_inference.infer_shapes(model, strict_mode=True).graph.output[0].type.tensor_type.shape
    assert [dim.dim_value for dim in found.dim] == [2, 4, 6, 6]


def test_the_fake_propagation_runs_the_whole_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch.fx.passes.fake_tensor_prop import FakeTensorProp

    ran = []
    run_node = FakeTensorProp.run_node
    monkeypatch.setattr(FakeTensorProp, "run_node", lambda self, n: (ran.append(n.op), run_node(self, n))[1])
    program, _ = rivals.exported(TINY, build(TINY))
    assert rivals.propagation(program)() > 0
    assert ran.count("call_function") == 2


def test_torchs_gradual_checker_answers() -> None:
    answer, took = rivals.torch_gradual(build(TINY))
    assert answer == "sat" and took > 0


def test_a_process_is_measured_from_start_to_end() -> None:
    found = rounds({"x": lambda: cold.run([sys.executable, "-c", "sum(range(10**6))"]).cpu_s}, 1)
    assert found["x"][0] > 0
    process = cold.run([sys.executable, "-c", "import sys; b = bytearray(64 << 20); sys.exit(3)"])
    assert process.code == 3 and process.peak_mb > 64


def test_the_memory_of_whoever_starts_a_process_is_not_its_own() -> None:
    held = bytearray(200 << 20)
    assert cold.run(cold.NOTHING).peak_mb < 100 < len(held) / 2**20
    (grown,) = growth.apart("perceptron", [2000])
    assert 0 < grown.peak_kb < 50


def test_a_command_that_is_not_there_is_told() -> None:
    with pytest.raises(FileNotFoundError):
        cold.run(["no-such-command-anywhere"])


def test_the_small_file_of_the_cold_start_is_there() -> None:
    assert bench.FIXTURE.exists()
    assert cold.run(cold.checking(str(bench.FIXTURE))).code in (0, 1)
