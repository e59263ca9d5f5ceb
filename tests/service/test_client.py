"""The clients, and `anyshape submit`, against a running service."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch
from models.zoo import ZOO
from serving import FIXTURES, Running, free_port

from anyshape.typecheck import SpecError, check
from anyshape.typecheck.checking.recorded import Recorded
from anyshape.typecheck.cli.main import main
from anyshape.typecheck.facade import Report
from anyshape.typecheck.remote.client import AsyncClient, Client, ServiceError
from anyshape.typecheck.remote.sending import package

SPEC = "x: float32[b, h]"


def halves(x: torch.Tensor) -> torch.Tensor:
    if x.shape[0] > 7:
        return x.view(x.shape[0], 2, -1)  # LINE-OF-SOURCE
    return x


class Gated(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inside = torch.nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inside(x).sigmoid() * x[:, :4]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    service = Running(tmp_path_factory.mktemp("service"), free_port())
    yield service
    service.end()


@pytest.fixture
def client(server: Running) -> Iterator[Client]:
    with Client(str(server.client.base_url)) as client:
        yield client


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target, spec", [(halves, SPEC), (Gated(), "x: float32[b, h]"), (Gated, SPEC)])
def test_a_service_says_what_check_says(client: Client, target: Any, spec: str) -> None:
    found, expected = client.check(target, spec), check(target, spec)
    assert (found.verdict, found.accepts, found.dims) == (expected.verdict, expected.accepts, expected.dims)
    assert [f.message for f in found.findings] == [f.message for f in expected.findings]
    assert found.target == expected.target


ENTRIES = [entry for entry in ZOO if not entry.needs][::9]


@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_models_are_decided_alike_here_and_there(client: Client, entry: Any) -> None:
    model = entry.build()
    asked = (model, entry.inputs, entry.assume)
    found, expected = client.check(*asked), Report.from_json(check(*asked).to_json())
    assert (found.verdict, found.accepts, found.dims) == (expected.verdict, expected.accepts, expected.dims)
    assert [(s.op, s.results) for s in found.shapes] == [(s.op, s.results) for s in expected.shapes]


def test_a_saved_program_is_sent_without_its_weights(client: Client, tmp_path: Path) -> None:
    program = torch.export.export(Gated(), (torch.randn(3, 8),))
    path = tmp_path / "gated.pt2"
    torch.export.save(program, path)
    sent = package(path)
    assert b"graph_module" in sent.content
    assert len(sent.content) < path.stat().st_size
    assert client.check(path).verdict == "proved"
    assert client.check(program).verdict == "proved"


def test_the_same_program_is_the_same_check(client: Client) -> None:
    first, second = client.submit(Gated(), SPEC), client.submit(Gated(), SPEC)  # with other weights
    assert first.id == second.id


@pytest.mark.parametrize("target", [halves, FIXTURES / "bert.pt2"])
def test_no_source_is_sent_that_is_not_to(client: Client, target: Any) -> None:
    spec = SPEC if target is halves else "input_ids: int64[b, t]; mask: int64[b, t]"
    with_source, without = package(target, spec).content, package(target, spec, source=False).content
    excerpt = b"LINE-OF-SOURCE" if target is halves else b"self.words(input_ids)"
    assert excerpt in with_source
    assert excerpt not in without
    assert str(Path.cwd()).encode() not in without
    report = client.check(target, spec, source=False)
    (finding, *_) = report.findings
    assert finding.origin.line > 0
    assert finding.origin.code == ""
    assert report.accepts == check(target, spec).accepts


def test_a_recorded_program_is_the_same_after_a_round_trip() -> None:
    content = package(halves, SPEC).content
    found = Recorded.from_json(json.loads(content))
    assert json.dumps(found.to_json(), separators=(",", ":")).encode() == content
    assert len(found.system.paths) == 2


def test_a_recorded_program_is_narrowed_and_not_widened(client: Client) -> None:
    id = client.submit(halves, SPEC, "b <= 100").id
    assert client.report(id).verdict == "refined"
    assert client.report(client.variant(id, assume=["h % 2 == 0"]).id).verdict == "proved"
    assert client.report(client.variant(id, assume=["b <= 7"]).id).verdict == "proved"
    assert client.report(client.variant(id, assume=["b <= 1000"]).id).accepts.declared(b=101, h=2) is False
    with pytest.raises(ServiceError, match="traced and sent again"):
        client.report(client.variant(id, inputs=["x: float32[b, h, 3]"]).id)


def test_what_the_user_should_mend_is_told_before_anything_is_sent(client: Client) -> None:
    with pytest.raises(SpecError):
        client.check(halves, "x: float32[b")
    before = len(client.checks())
    with pytest.raises(ServiceError) as error:
        client.check(FIXTURES / "bert.pt2", "x: float32[b, c]")
    assert "input_ids" in str(error.value)
    assert len(client.checks()) == before + 1


def test_everything_else_that_a_client_asks(client: Client) -> None:
    first, second = (client.submit(FIXTURES / "bert.pt2", assume=f"s64 <= {n}").id for n in (8, 9))
    told = [now["state"] for now in client.follow(first)]
    assert told[-1] == "done"
    assert "proved: bert.pt2" in client.written(first)
    assert client.spec(first)["json"]["dims"]["s64"]["max"] == 8
    assert client.compare(first, second)["relation"] == "narrower"
    assert client.state(first, wait=1).ended
    assert first in [one.id for one in client.checks(verdict="proved", name="bert")]
    client.cancel(first)
    assert client.state(first).state == "done"
    client.delete(first)
    with pytest.raises(ServiceError, match="there is no check") as error:
        client.state(first)
    assert error.value.status == 404


def test_the_async_client_does_the_same(server: Running) -> None:
    async def talk() -> None:
        async with AsyncClient(str(server.client.base_url)) as client:
            reports = await asyncio.gather(*(client.check(halves, SPEC, f"h % {n} == 0") for n in (1, 2, 4)))
            assert [report.verdict.value for report in reports] == ["refined", "proved", "proved"]
            asked = await client.submit(halves, SPEC)
            assert [now["state"] async for now in client.follow(asked.id)][-1] == "done"
            assert "refined" in await client.written(asked.id)
            assert (await client.spec(asked.id))["python"]
            narrowed = await client.variant(asked.id, assume=["b <= 7"])
            assert (await client.compare(narrowed.id, asked.id))["relation"] == "narrower"
            assert (await client.state(asked.id, wait=1)).ended
            assert await client.checks(name="halves")
            await client.cancel(asked.id)
            await client.delete(asked.id)

    asyncio.run(talk())


class Answers(httpx.BaseTransport):
    """A service that says what it is told to."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self.answers, self.asked = [*answers], 0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.asked += 1
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


DONE = {"id": "0" * 20, "state": "done", "verdict": "proved"}


def talking_to(*answers: httpx.Response | Exception) -> tuple[Client, Answers]:
    client, transport = Client("http://testserver"), Answers(*answers)
    client._blocking._http = httpx.Client(base_url="http://testserver", transport=transport)
    return client, transport


def test_a_busy_service_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    busy = httpx.Response(429, headers={"retry-after": "7"}, json={"detail": "too much"})
    away = httpx.ConnectError("refused")
    client, transport = talking_to(busy, away, httpx.Response(503, json={}), httpx.Response(200, json=DONE))
    assert client.state("0" * 20).verdict == "proved"
    assert transport.asked == 4
    assert slept[0] == 7


def test_a_stream_that_breaks_is_followed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)

    def told(*states: str) -> httpx.Response:
        events = (f'event: progress\ndata: {{"state": "{state}"}}\n\n' for state in states)
        return httpx.Response(200, text="".join(events))

    gone = httpx.ReadError("gone")
    client, transport = talking_to(told("queued", "running"), gone, told("running", "done"))
    assert [now["state"] for now in client.follow("0" * 20)] == ["queued", "running", "running", "done"]
    assert transport.asked == 3
    client, _ = talking_to(*[httpx.ReadError("gone")] * 6)
    with pytest.raises(ServiceError, match="any more"):
        list(client.follow("0" * 20))
    # A proxy that ends streams after a while, and a service that is busy then, are no reason to give up.
    busy = httpx.Response(503, json={"detail": "later"})
    client, transport = talking_to(*[told("running"), busy] * 10, told("done"))
    assert [now["state"] for now in client.follow("0" * 20)] == ["running"] * 10 + ["done"]
    assert transport.asked == 21
    client, transport = talking_to(httpx.Response(404, json={"detail": "there is no check"}))
    with pytest.raises(ServiceError, match="no check"):
        list(client.follow("0" * 20))


def test_a_service_that_stays_away_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    client, transport = talking_to(*[httpx.ConnectError("refused")] * 6)
    with pytest.raises(ServiceError, match="cannot be reached: refused"):
        client.state("0" * 20)
    assert transport.asked == 6


def test_a_refusal_is_not_asked_again() -> None:
    client, transport = talking_to(httpx.Response(401, json={"detail": "a valid token is needed"}))
    with pytest.raises(ServiceError, match="ANYSHAPE_TOKEN"):
        client.checks()
    assert transport.asked == 1


# ---- the command line


def test_submit_on_the_command_line(
    server: Running, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANYSHAPE_SERVER", str(server.client.base_url))
    file = tmp_path / "model.py"
    file.write_text("def halves(x):\n    return x.view(x.shape[0], 2, -1)\n")
    asked = ["submit", f"{file}:halves", "--input", SPEC]
    assert main(asked) == 1
    told = capsys.readouterr().out
    assert "refined" in told
    assert "h % 2 == 0" in told
    assert "x.view(x.shape[0], 2, -1)" in told
    assert main([*asked, "--assume", "h % 2 == 0", "--no-source", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"] == "proved"
    assert main([*asked, "--no-wait"]) == 0
    assert len(capsys.readouterr().out.strip()) == 20


def test_check_asks_a_service(
    server: Running, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text("def halves(x):\n    return x.view(x.shape[0], 2, -1)\n")
    there = ["--server", str(server.client.base_url), "--no-run"]
    here = ["--no-run", "--no-cache"]
    asked = ["check", "model.py:halves", "--input", SPEC]
    for more in ([], ["--assume", "h % 2 == 0"], ["--shapes"], ["--verbose"]):
        code = main([*asked, *more, *here])
        expected = capsys.readouterr().out
        assert main([*asked, *more, *there]) == code
        assert _untimed(capsys.readouterr().out) == _untimed(expected)
    assert main([*asked, *there, "--no-source", "--format", "json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] == "refined"
    assert "x.view" not in json.dumps(told)


def test_repairs_are_looked_for_here(
    server: Running, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(
        "import torch\n\n"
        "class Net(torch.nn.Module):\n"
        "    def __init__(self):\n"
        "        super().__init__()\n"
        "        self.first = torch.nn.Linear(8, 16)\n"
        "        self.second = torch.nn.Linear(15, 4)\n\n"
        "    def forward(self, x):\n"
        "        return self.second(self.first(x))\n"
    )
    asked = ["check", "model.py:Net", "--input", "x: float32[b, 8]"]
    assert main([*asked, "--no-cache"]) == 1
    expected = capsys.readouterr().out
    assert "change 15 to 16" in expected
    there = [*asked, "--server", str(server.client.base_url)]
    assert main(there) == 1
    assert _untimed(capsys.readouterr().out) == _untimed(expected)
    for without in ("--no-source", "--no-run"):
        assert main([*there, without]) == 1
        assert "repair" not in capsys.readouterr().out


def _untimed(text: str) -> list[str]:
    """A report without the line that says how long it took."""
    return [line for line in text.splitlines() if " s: " not in line]


def test_a_project_is_checked_by_a_service(
    server: Running, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text("def halves(x):\n    return x.view(x.shape[0], 2, -1)\n")
    Path("pyproject.toml").write_text(
        "[tool.anyshape]\nreplay = false\n"
        '[[tool.anyshape.targets]]\ntarget = "model.py:halves"\n'
        'inputs = "x: float32[b, h]"\nassume = "h % 6 == 0"\n'
        '[[tool.anyshape.targets]]\ntarget = "model.py:missing"\ninputs = "x: float32[b]"\n'
    )
    before = len(server.client.get("/v1/checks").json()["checks"])
    assert main(["check", "--server", str(server.client.base_url)]) == 2
    told = capsys.readouterr()
    assert "proved" in told.out
    assert "missing" in told.err
    (asked, *rest) = server.client.get("/v1/checks").json()["checks"]
    assert len(rest) + 1 == before + 1
    assert (asked["name"], asked["asked"]["replay"]) == ("model.py:halves", False)


def test_suspicions_are_looked_for_by_a_service(server: Running, client: Client) -> None:
    def differs(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.linear(x, torch.ones(1, 4)) - y

    spec, names = "x: float32[b, 4]; y: float32[b]", ["all"]
    expected = [f.code for f in check(differs, spec, suspect=names).findings]
    found = [f.code for f in client.report(client.submit(differs, spec, suspect=names).id).findings]
    assert found == expected
    assert "row-column" in found
    with pytest.raises(ServiceError, match="is not a known suspicion"):
        client.submit(differs, spec, suspect=["no-such"])


def test_another_solver_is_asked_by_a_service(
    server: Running, client: Client, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = client.submit(halves, SPEC, second_solver="cvc5")
    opinion = client.report(asked.id).second_opinion
    assert opinion is not None and opinion.outcome == "agreed"
    shown = server.client.get(f"/v1/checks/{asked.id}").json()
    assert shown["asked"]["second_solver"] == "cvc5"
    assert "Agreed by cvc5" in client.written(asked.id)
    plain = client.submit(halves, SPEC)
    assert plain.id != asked.id and client.report(plain.id).second_opinion is None
    with pytest.raises(ServiceError, match="'yices' is not a known solver"):
        client.submit(halves, SPEC, second_solver="yices")
    for kind, agreed in (("refine", True), ("migrate", False)):
        variant = server.client.post(f"/v1/checks/{asked.id}/variants", json={"kind": kind}).json()
        assert (client.report(variant["id"]).second_opinion is not None) == agreed
    path = tmp_path / "net.py"
    path.write_text("def net(x):\n    return x.view(-1, 2)\n")
    arguments = ["check", f"{path}:net", "-i", "x: [b]", "--second-solver", "cvc5"]
    assert main([*arguments, "--server", str(server.client.base_url)]) == 1
    assert "Agreed by cvc5" in capsys.readouterr().out


def test_what_is_for_a_service_needs_one(capsys: pytest.CaptureFixture[str]) -> None:
    target = str(FIXTURES / "bert.pt2")
    assert main(["check", target, "--no-source"]) == 2
    assert "--server" in capsys.readouterr().err
    assert main(["check", target, "--dump", "smt2", "--server", "http://127.0.0.1:9"]) == 2
    assert "--dump" in capsys.readouterr().err


def test_submit_tells_what_is_wrong(
    server: Running, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    target = str(FIXTURES / "bert.pt2")
    assert main(["submit", target, "--server", f"http://127.0.0.1:{free_port()}"]) == 2
    assert "cannot be reached" in capsys.readouterr().err
    assert main(["submit", target, "--token-file", str(tmp_path / "none")]) == 2
    assert "cannot be read" in capsys.readouterr().err
    assert main(["submit", target, "--server", str(server.client.base_url), "--input", "x: [b]"]) == 2
    assert "input_ids" in capsys.readouterr().err


@pytest.fixture
def guarded(running: Callable[..., Running], tmp_path: Path) -> tuple[Running, Path]:
    """A service with a token, and the file that this is in."""
    from contextlib import redirect_stdout
    from io import StringIO

    told = StringIO()
    with redirect_stdout(told):
        assert main(["token", "create", "me", "--data", str(tmp_path / "anyshape-service")]) == 0
    file = tmp_path / "token"
    file.write_text(told.getvalue())
    return running(), file


def test_submit_with_a_token(guarded: tuple[Running, Path], capsys: pytest.CaptureFixture[str]) -> None:
    service, file = guarded
    asked = ["submit", str(FIXTURES / "sizes.pt2"), "--server", str(service.client.base_url)]
    assert main(asked) == 2
    assert "--token-file" in capsys.readouterr().err
    assert main([*asked, "--token-file", str(file)]) in (0, 1)
