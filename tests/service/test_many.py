"""`anyshape check-many`, with processes of this machine and of a Ray cluster."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import FIXTURES, ended, in_process

from anyshape.tracer.readers import archive
from anyshape.typecheck.cli.main import main
from anyshape.typecheck.project.config import ConfigError
from anyshape.typecheck.project.listing import listed
from anyshape.typecheck.service.http.uploads import received
from anyshape.typecheck.service.ops.settings import Settings
from anyshape.typecheck.service.work.questions import FORMS, TARGETS, Question
from anyshape.typecheck.service.work.workers import Broke, CheckLimits, WorkerAnswer

SOURCE = """\
import os
import torch

def halves(x):
    print("this is not for stdout")
    return x.view(x.shape[0], 2, -1)

class Crash(torch.nn.Module):
    def forward(self, x):
        os.kill(os.getpid(), 11)
"""
LIST = f"""\
# a comment
model.py:halves\tx: float32[b, h]
model.py:halves\tx: float32[b, h]\th % 2 == 0
{FIXTURES / "sizes.pt2"}
model.py:Gone
model.py:Crash\tx: float32[b]
"""


@pytest.fixture
def zoo(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANYSHAPE_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    (tmp_path / "model.py").write_text(SOURCE)
    (tmp_path / "list.txt").write_text(LIST)
    return tmp_path


def test_lists_are_lines_or_toml(zoo: Path) -> None:
    lines = listed(Path("list.txt"))
    assert len(lines) == 5
    assert (lines[1].inputs, lines[1].assume) == (("x: float32[b, h]",), ("h % 2 == 0",))
    assert lines[3].inputs is None
    table = '[[tool.anyshape.targets]]\ntarget = "model.py:halves"\ninputs = "x: [b, h]"\n'
    Path("zoo.toml").write_text(table)
    assert listed(Path("zoo.toml"))[0].inputs == ("x: [b, h]",)
    for file, text, told in (("a.txt", "# no\n", "no targets"), ("b.txt", "a\tb\tc\td", "more than")):
        Path(file).write_text(text)
        with pytest.raises(ConfigError, match=told):
            listed(Path(file))
    with pytest.raises(ConfigError, match=r"did you mean 'list\.txt'"):
        listed(Path("lists.txt"))


def ran(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, list[dict[str, Any]], str]:
    code = main(["check-many", "list.txt", "-j", "2", "--format", "json", *options])
    told = capsys.readouterr()
    return code, json.loads(told.out)["reports"], told.err


@pytest.mark.slow
def test_a_whole_list_is_checked(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, reports, told = ran(capsys)
    assert code == 2
    assert [(r["target"], r["verdict"]) for r in reports[:2]] == [
        ("model.py:halves", "refined"),
        ("model.py:halves", "proved"),
    ]
    assert len(reports) == 3
    assert "model.py has no 'Gone'" in told
    assert "SIGSEGV" in told
    assert "2 failed" in told
    Path("list.txt").write_text("model.py:halves\tx: float32[b, h]\th % 2 == 0\n")
    assert main(["check-many", "list.txt", "-o", "report.txt"]) == 0
    assert "proved" in Path("report.txt").read_text()


@pytest.mark.slow
def test_what_was_checked_before_is_known(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("list.txt").write_text("model.py:halves\tx: float32[b, h]\n" * 2 + "model.py:Gone\n")
    assert ran(capsys, "-j", "1")[2].count("(kept)") == 1  # the second is the first
    code, reports, told = ran(capsys)
    assert (code, told.count("refined  model.py:halves (kept)")) == (2, 2)
    assert main(["check", "model.py:halves", "--input", "x: float32[b, h]", "--format", "json"]) == 1
    assert json.loads(capsys.readouterr().out) == reports[0]  # what either keeps the other finds
    assert "(kept)" not in ran(capsys, "--no-cache")[2]
    (zoo / "model.py").write_text(SOURCE.replace(", 2, -1", ", 4, -1"))
    code, reports, told = ran(capsys)
    assert "(kept)" not in told
    assert reports[0]["accepts"]["condition"] == "h % 4 == 0"


def test_no_service_takes_targets() -> None:
    """The form in which check-many asks is none that an upload can have."""
    import io

    assert not FORMS.keys() & TARGETS.keys()
    for text in (b'{"form": "target"}', b'{"target": "os:system"}', b'{"form": "anyshape.recorded"}'):
        assert received(io.BytesIO(text), 100).form in FORMS


# ---- Ray


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    ray = pytest.importorskip("ray", reason="needs Ray: the extra anyshape[ray]")
    from anyshape.typecheck.service.work.ray_executor import connect

    connect("local", num_cpus=2)
    yield ray
    ray.shutdown()


@pytest.fixture
def executor(cluster: Any) -> Iterator[Any]:
    from anyshape.typecheck.service.work.ray_executor import RayExecutor

    executor = RayExecutor()
    yield executor
    executor.close()


def content(name: str) -> bytes:
    with open(FIXTURES / name, "rb") as file:
        return zlib.compress(archive.read_bytes(file, "model", name))


ROOMY = CheckLimits(120.0, 2048)


@pytest.mark.slow
def test_a_cluster_answers_with_the_same_limits(executor: Any) -> None:
    question = Question().to_json()
    steps: list[str] = []
    outcome = executor.ask("pt2", content("bert.pt2"), question, ROOMY, lambda step: not steps.append(step))
    assert isinstance(outcome, WorkerAnswer)
    assert outcome.data["verdict"] == "refined"
    assert steps
    late = executor.ask(
        "pt2", content("bert_decomposed.pt2"), question, CheckLimits(0.0, 2048), lambda step: True
    )
    assert isinstance(late, Broke)
    assert late.kind == "time"
    stopped = executor.ask("pt2", content("bert.pt2"), question, ROOMY, lambda step: False)
    assert isinstance(stopped, WorkerAnswer | Broke)  # it may have been done before it was told
    assert isinstance(
        executor.ask("pt2", content("sizes.pt2"), question, ROOMY, lambda step: True), WorkerAnswer
    )


@pytest.mark.slow
def test_a_lost_node_is_a_crash_and_no_more(executor: Any, cluster: Any) -> None:
    question = Question().to_json()

    def lose(step: str) -> bool:
        cluster.kill(executor._seat)
        return True

    outcome = executor.ask("pt2", content("bert.pt2"), question, ROOMY, lose)
    assert isinstance(outcome, Broke)
    assert (outcome.kind, "node was lost" in outcome.reason) == ("crash", True)
    assert isinstance(
        executor.ask("pt2", content("sizes.pt2"), question, ROOMY, lambda step: True), WorkerAnswer
    )


@pytest.mark.slow
def test_a_service_has_its_workers_in_a_cluster(cluster: Any, settings: Settings) -> None:
    from anyshape.typecheck.service.work.ray_executor import RayExecutor

    with in_process(settings, RayExecutor) as client:
        files = {"model": ("bert.pt2", (FIXTURES / "bert.pt2").read_bytes())}
        id = client.post("/v1/checks", files=files).json()["id"]
        assert ended(client, id, 120)["verdict"] == "refined"


@pytest.mark.slow
def test_a_list_is_checked_by_a_cluster(
    zoo: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = pytest.importorskip("ray", reason="needs Ray: the extra anyshape[ray]")
    ray.shutdown()
    try:
        code, reports, told = ran(capsys, "--executor", "ray", "--ray-address", "local")
    finally:
        ray.shutdown()
    assert (code, [r["verdict"] for r in reports[:2]]) == (2, ["refined", "proved"])
    assert "SIGSEGV" in told
