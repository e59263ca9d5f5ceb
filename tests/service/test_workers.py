"""The process of a check: what it answers, and how it is ended."""

from __future__ import annotations

import json
import os
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from serving import FIXTURES

from anyshape.constraints.ir import program
from anyshape.constraints.ir.language import Tensor
from anyshape.constraints.ir.program import IllFormed, Input, Node, Origin, Program, Ref
from anyshape.constraints.terms import syntax
from anyshape.constraints.terms.dims import sym
from anyshape.tracer.readers import archive
from anyshape.typecheck import check
from anyshape.typecheck.checking.recorded import Recorded
from anyshape.typecheck.facade import Report
from anyshape.typecheck.remote.sending import package
from anyshape.typecheck.service.work import workers
from anyshape.typecheck.service.work.questions import Question, answer
from anyshape.typecheck.service.work.workers import Broke, CheckLimits, Outcome, Worker, WorkerAnswer

ROOMY = CheckLimits(60.0, 2048)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    worker = Worker()
    yield worker
    worker.close()


def ask(worker: Worker, form: str, content: bytes, limits: CheckLimits = ROOMY, **more: object) -> Outcome:
    question = Question(**more).to_json()  # type: ignore[arg-type]
    return worker.ask(form, zlib.compress(content), question, limits, lambda step: True)


def model(name: str) -> bytes:
    path = FIXTURES / name
    with open(path, "rb") as file:
        return archive.read_bytes(file, "model", str(path))


def halves() -> Program:
    """[b, h] -> [b, 2, h/2]"""
    b, h = sym("b"), sym("h")
    arguments = (("self", Ref(0)), ("size", (b, 2, h // 2)))
    view = Node("view", arguments, (1,), Origin("m.py", 3, code="x.view()"))
    return Program((Input(0, "x", Tensor((b, h))),), (view,), (("0", Ref(1)),))


@pytest.mark.parametrize("name", ["bert.pt2", "resnet.pt2", "sizes.pt2", "data.pt2"])
def test_a_worker_answers_as_check_does(worker: Worker, name: str) -> None:
    outcome = ask(worker, "pt2", model(name))
    assert isinstance(outcome, WorkerAnswer)
    found, expected = Report.from_json(outcome.data["report"]), check(FIXTURES / name)
    assert (found.verdict, found.accepts, found.dims) == (expected.verdict, expected.accepts, expected.dims)
    assert found.shapes == expected.shapes


def test_a_program_of_ours_is_checked(worker: Worker) -> None:
    content = json.dumps(program.to_json(halves())).encode()
    outcome = ask(worker, "program", content)
    assert isinstance(outcome, WorkerAnswer)
    assert Report.from_json(outcome.data["report"]).accepts.formula == check_of("h % 2 == 0")
    narrowed = ask(worker, "program", content, assume=("h % 4 == 0",))
    assert isinstance(narrowed, WorkerAnswer)
    assert narrowed.data["verdict"] == "proved"


def check_of(text: str) -> object:
    from anyshape.constraints.terms.formula_text import parse_formula

    return parse_formula(text)


@pytest.mark.parametrize(
    "form, content, told",
    [
        ("program", b"{", "no JSON"),
        ("program", b"[" * 100_000, "no JSON"),
        ("program", b"{}", "not a program"),
        ("program", b'{"schema": 99}', "schema 99"),
        ("recorded", b'{"form": "anyshape.recorded", "schema": 1}', "not a program"),
        ("recorded", b'{"form": "anyshape.recorded", "schema": 2}', "is not anyshape.recorded 1"),
        ("pt2", b"[]", "not a JSON object"),
        ("pt2", b'{"schema_version": {"major": 8}}', "graph"),
    ],
)
def test_what_cannot_be_used_is_told(worker: Worker, form: str, content: bytes, told: str) -> None:
    outcome = ask(worker, form, content)
    assert isinstance(outcome, WorkerAnswer)
    assert outcome.data["failed"]["kind"] == "input"
    assert told in outcome.data["failed"]["problem"]


def recorded_program() -> Any:
    def splits(x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] > 7:
            return x.view(x.shape[0], 2, -1).sum(1)
        return torch.nn.functional.pad(torch.cat([x, x.relu()], 1)[:, 1:], (1, 2))

    return json.loads(package(splits, "x: float32[b, h]").content)


STRANGE = (None, True, -1, 10**300, float("nan"), "x", "b//0", "b**9999", "\ud800", [], {}, {"dim": 3})


def test_what_is_of_another_kind_is_no_program() -> None:
    """Where something strange stands in the place of any part of a program, that is refused, or is one."""

    def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
        yield path
        for key in data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ():
            yield from places(data[key], (*path, key))

    program = recorded_program()
    refused = 0
    for *path, key in [*places(program)][1:]:
        parent = program
        for step in path:
            parent = parent[step]
        was = parent[key]
        for strange in STRANGE:
            parent[key] = strange
            try:
                found = Recorded.from_json(program)
            except IllFormed:
                refused += 1
            else:
                json.dumps(found.to_json())
        parent[key] = was
    assert refused > 1000
    Recorded.from_json(program)


def test_a_report_that_nobody_could_read_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    many = Question(assume=tuple(f"s27 <= {10**n}" for n in range(6, 16)))
    assert "report" in answer("pt2", model("sizes.pt2"), many, lambda step: None)
    monkeypatch.setattr(syntax, "MAX_LENGTH", 80)
    failed = answer("pt2", model("sizes.pt2"), many, lambda step: None)["failed"]
    assert failed["kind"] == "input"
    assert "longer than can be read: expected at most 80 characters" in failed["problem"]
    assert "fewer assumptions" in failed["hint"]


def test_a_trace_with_a_division_by_zero_is_answered(worker: Worker) -> None:
    program = json.loads(model("sizes.pt2"))
    del program["graph_module"]["graph"]["nodes"][4]["inputs"][0]  # what is viewed is not said
    outcome = ask(worker, "pt2", json.dumps(program).encode())
    assert isinstance(outcome, WorkerAnswer)
    assert "report" in outcome.data


def test_inputs_that_do_not_fit_are_told_with_a_hint(worker: Worker) -> None:
    outcome = ask(worker, "pt2", model("resnet.pt2"), inputs=("y: [b, 3, h, w]",))
    assert isinstance(outcome, WorkerAnswer)
    assert outcome.data["failed"]["kind"] == "input"
    assert "x" in outcome.data["failed"]["problem"]


def test_a_worker_that_dies_breaks_one_check_alone(worker: Worker) -> None:
    ask(worker, "pt2", model("sizes.pt2"))
    before = worker.pid

    def kill_when_it_starts(step: str) -> bool:
        if worker.pid == before:
            os.kill(before, 11)
        return True

    packed = zlib.compress(model("bert.pt2"))
    outcome = worker.ask("pt2", packed, Question().to_json(), ROOMY, kill_when_it_starts)
    assert isinstance(outcome, Broke)
    assert (outcome.kind, "SIGSEGV" in outcome.reason) == ("crash", True)
    assert isinstance(ask(worker, "pt2", model("bert.pt2")), WorkerAnswer)
    assert worker.pid != before


def test_a_worker_that_takes_too_long_is_ended(worker: Worker) -> None:
    ask(worker, "pt2", model("sizes.pt2"))
    before = worker.pid
    outcome = ask(worker, "pt2", model("bert_decomposed.pt2"), CheckLimits(0.0, 2048))
    assert isinstance(outcome, Broke)
    assert outcome.kind == "time"
    assert not Path(f"/proc/{before}").exists()


@pytest.mark.skipif(not Path("/proc").exists(), reason="the memory of a process is read from /proc")
def test_a_worker_that_takes_too_much_is_ended() -> None:
    worker = Worker()
    outcome = ask(worker, "pt2", model("bert_decomposed.pt2"), CheckLimits(60.0, 1))
    assert isinstance(outcome, Broke)
    assert (outcome.kind, outcome.reason) == ("memory", "it took more than 1 MB of memory")


def test_a_check_that_nobody_wants_is_ended(worker: Worker) -> None:
    packed = zlib.compress(model("bert.pt2"))
    outcome = worker.ask("pt2", packed, Question().to_json(), ROOMY, lambda step: False)
    assert isinstance(outcome, Broke)
    assert outcome.kind == "stopped"


def test_whoever_asks_is_told_while_the_process_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """That may take longer than a lease, and nobody may want the check any more."""
    monkeypatch.setattr(workers, "write", lambda *frame: pytest.fail("nothing was to be asked"))
    worker, steps = Worker(), []

    def not_for_long(step: str) -> bool:
        steps.append(step)
        return False

    outcome = worker.ask("pt2", b"", Question().to_json(), ROOMY, not_for_long)
    assert isinstance(outcome, Broke)
    assert (outcome.kind, steps) == ("stopped", [""])
    assert worker.pid is None


def test_workers_see_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANYSHAPE_SERVICE_DATABASE", "postgresql://me:secret@host/db")
    worker = Worker()
    ask(worker, "pt2", model("sizes.pt2"))
    try:
        assert b"secret" not in Path(f"/proc/{worker.pid}/environ").read_bytes()
    finally:
        worker.close()


def test_a_worker_ends_with_whoever_started_it() -> None:
    worker = Worker()
    ask(worker, "pt2", model("sizes.pt2"))
    process = worker._process
    assert process is not None
    assert process.stdin is not None
    process.stdin.close()
    ended = threading.Event()
    threading.Thread(target=lambda: (process.wait(), ended.set()), daemon=True).start()
    assert ended.wait(10)
