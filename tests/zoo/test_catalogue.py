"""The catalogue is well formed, its models are measured each in a process, and what is wrong is seen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from models import eager
from torch import nn
from zoo import measure as measuring
from zoo.catalogue import CATALOGUE
from zoo.measure import Result, chosen, measure
from zoo.row import Row
from zoo.workers import Limits, preload, run

from anyshape.constraints.ir.spec_text import parse_spec
from anyshape.constraints.terms.formula_text import parse_formula

ROOT = Path(__file__).parents[2]
ROWS = {row.name: row for row in CATALOGUE}

# Models that are not decided, by what stands in the way: `unknown` is honest; docs/coverage.md has all.
CONTENTS = "indices that sizes decide are not followed, or floats are rounded"
LAYOUT = "whether strides let a tensor be viewed is not known"
DATA = "the data decide a size"
WAYS = "more ways through the program, or larger formulas, than are looked at in time"
UNDECIDED = {
    name: why
    for why, names in {
        CONTENTS: "pyg_attentive_fp",
        LAYOUT: "hf_longformer hf_led",
        DATA: "cv_segnet_cityscapes",
        WAYS: """
            hf_encodec timm_mvitv2_tiny cv_simplepose_resnet18_coco cv_superpointnet pyg_graph_unet
            audio_hdemucs
        """,
    }.items()
    for name in names.split()
}


# ---- every row


def test_there_are_many_and_each_has_a_name_of_its_own() -> None:
    assert len(CATALOGUE) >= 200
    assert [name for name, count in Counter(row.name for row in CATALOGUE).items() if count > 1] == []


def test_every_package_is_declared() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    declared = {text.split(">=")[0].replace("-", "_") for text in (*extras["zoo"], *extras["zoo-more"])}
    assert {row.package for row in CATALOGUE} <= {"torch", *declared}


def test_every_input_is_a_spec() -> None:
    """The judge's reader and the checker's find the same symbols."""
    for row in CATALOGUE:
        spec = parse_spec(row.inputs, row.assume)
        assert set(spec.domain.symbols) == set(eager.symbols(row.inputs)), row.name


# ---- one model


@pytest.mark.parametrize("name", ["torch_lstm_cell", "torch_gru", "torch_embedding_bag", "hf_bert"])
def test_measured(name: str) -> None:
    if find_spec(ROWS[name].package) is None:
        pytest.skip("not installed")
    result = measure(ROWS[name], samples=8, budget_s=30)
    assert result.failure == ""
    assert result.traced and result.runs and not result.no_rule
    assert result.sampled > 0
    assert (result.agreed, result.disagreements) == (result.sampled, ())


def test_samples_stand_at_the_boundary() -> None:
    row = ROWS["torch_lstm_projected"]
    report = measuring.check(row.build(), row.inputs, replay=False)
    samples = chosen(row, report, 8)
    accepted = [sizes for sizes in samples if report.accepts.holds(**sizes)]
    assert len(samples) == 8
    assert len(accepted) == 4
    assert any(sizes["b"] == 1 for sizes in samples)


def test_a_wrong_accepted_set_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison fails where the checker says too much, and where it says too little."""
    honest = measuring.check
    for lie in ("b <= c", "b == c and b >= 2"):

        def lies(*arguments: Any, lie: str = lie, **options: Any) -> Any:
            report = honest(*arguments, **options)
            return replace(report, accepts=replace(report.accepts, formula=parse_formula(lie)))

        monkeypatch.setattr(measuring, "check", lies)
        assert measure(ROWS["torch_gru"], samples=12, budget_s=30).disagreements != ()


# ---- processes


class Sleeps(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        time.sleep(60)


class Hoards(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.held = torch.ones(2**30)  # 4 GiB


class Fails(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        raise RecursionError("too deep")


class Dies(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        os._exit(7)


@pytest.mark.parametrize(
    "build, told",
    [
        (Sleeps, "time-out after 2 s"),
        (Hoards, "allocate"),
        (Fails, "RecursionError: too deep"),
        (Dies, "exit code 7"),
    ],
)
def test_what_goes_wrong_is_a_row(build: Callable[[], nn.Module], told: str) -> None:
    def work(row: Row) -> Result:
        row.build()
        return Result(row.name, row.package)

    rows = [Row("good", "torch", nn.Identity, "input: [b]"), Row("bad", "torch", build, "input: [b]")]
    results = {
        result.name: result for result in run([*rows, replace(rows[0], name="last")], 1, Limits(2, 1), work)
    }
    assert [results[name].failure for name in ("good", "last")] == ["", ""]
    assert told in results["bad"].failure


def test_the_command(tmp_path: Path) -> None:
    found = tmp_path / "zoo.json"
    command = [
        sys.executable,
        str(ROOT / "benchmarks/zoo.py"),
        "--only",
        "^torch_lstm_cell$",
        "--json",
        str(found),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "torch_lstm_cell" in done.stdout
    told = json.loads(found.read_text())
    assert told["totals"]["models"] == 1
    assert told["rows"][0]["agreed"] == told["rows"][0]["sampled"] > 0


def test_no_model_of_that_name() -> None:
    command = [sys.executable, str(ROOT / "benchmarks/zoo.py"), "--only", "no such model"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, done.stdout.strip()) == (1, "no model is left to measure")


@pytest.mark.skipif(find_spec("torchvision") is None, reason="torchvision is not installed")
def test_torchvision_is_imported_without_its_binary() -> None:
    program = """
from zoo import shims
shims.install()
import torchvision
assert not torchvision.extension._has_ops()
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "benchmarks")}
    subprocess.run([sys.executable, "-c", program], check=True, env=environment, timeout=300)


# ---- all of them


@pytest.mark.slow
@pytest.mark.parametrize("row", CATALOGUE, ids=lambda row: row.name)
def test_whole(row: Row) -> None:
    if find_spec(row.package) is None:
        pytest.skip("not installed")
    assert preload([row]) == {}
    (result,) = run([row], 1, Limits(600, 8), partial(measure, samples=12, budget_s=60))
    why = UNDECIDED.get(row.name)
    if why == WAYS and result.failure.startswith("time-out"):
        return  # a matter of seconds, as is whether it is decided
    assert result.failure == ""
    assert why == WAYS or (result.verdict == "unknown") == (why is not None), result.reasons
    assert result.no_rule == ()
    assert result.disagreements == ()
    assert result.runs


def test_exceptions_are_models_of_the_catalogue() -> None:
    assert {*UNDECIDED} <= set(ROWS)
