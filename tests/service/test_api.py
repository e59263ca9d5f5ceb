"""The HTTP API, request by request."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import FIXTURES, ended, in_process, service_of
from starlette.testclient import TestClient

from anyshape.typecheck import check
from anyshape.typecheck.facade import Report
from anyshape.typecheck.service.ops.settings import Settings
from anyshape.typecheck.service.work.workers import Broke, Outcome, WorkerAnswer

BERT = FIXTURES / "bert.pt2"


def submit(client: TestClient, path: Path = BERT, status: int = 202, **fields: Any) -> dict[str, Any]:
    answer = client.post("/v1/checks", files={"model": (path.name, path.read_bytes())}, data=fields)
    assert answer.status_code == status, answer.text
    return answer.json()


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestClient, str]]:
    """A client of a service with a check that is done. Tests that share it add checks and remove none."""
    folder = tmp_path_factory.mktemp("done")
    with in_process(Settings(data=folder, workers=1, drain_s=5.0, log_level="error")) as client:
        id = submit(client)["id"]
        ended(client, id)
        yield client, id


def test_a_check_from_submission_to_report(client: TestClient) -> None:
    asked = submit(client, assume="s31 <= 64")
    assert asked["state"] in ("queued", "running")
    done = ended(client, asked["id"])
    assert (done["state"], done["verdict"], done["name"]) == ("done", "proved", "bert.pt2")
    assert done["asked"]["assume"] == ["s31 <= 64"]
    expected = check(BERT, assume="s31 <= 64")
    report = client.get(f"/v1/checks/{asked['id']}/report").json()
    assert report["accepts"] == expected.to_json()["accepts"]
    assert report["target"] == "bert.pt2"
    assert Report.from_json(report).dims == expected.dims


@pytest.mark.parametrize(
    "form, told",
    [("text", "proved: bert.pt2"), ("html", "<html"), ("sarif", "2.1.0"), ("junit", "<testsuite"),
     ("github", "::warning"), ("dot", "digraph")],
)  # fmt: skip
def test_reports_leave_in_every_form(done: tuple[TestClient, str], form: str, told: str) -> None:
    client, id = done
    answer = client.get(f"/v1/checks/{id}/report", params={"format": form})
    assert answer.status_code == 200
    assert told in answer.text
    again = client.get(
        f"/v1/checks/{id}/report", params={"format": form}, headers={"if-none-match": answer.headers["etag"]}
    )
    assert again.status_code == 304


def test_the_same_question_is_solved_once(client: TestClient) -> None:
    first = submit(client)
    ended(client, first["id"])
    second = submit(client, status=200)
    assert (second["id"], second["state"]) == (first["id"], "done")
    other = submit(client, assume="s31 <= 3")
    assert other["id"] != first["id"]
    metrics = client.get("/metrics").text
    assert 'anyshape_submissions_total{result="known"} 1.0' in metrics
    assert 'anyshape_submissions_total{result="new"} 2.0' in metrics


def test_weights_are_not_kept(client: TestClient, tmp_path: Path) -> None:
    import zipfile

    copy = tmp_path / "weights.pt2"
    copy.write_bytes(BERT.read_bytes())
    with zipfile.ZipFile(copy, "a") as archive:
        archive.writestr("bert/data/weights/weight_99", b"W" * 100_000)
    first, second = submit(client), submit(client, copy)
    assert first["id"] == second["id"]  # what is kept and known again is the program


def test_a_spec_is_fetched(done: tuple[TestClient, str]) -> None:
    client, id = done
    spec = client.get(f"/v1/checks/{id}/spec").json()
    assert spec["json"]["dims"]["s64"]["max"] == 32
    assert 'Dim("s64"' in spec["python"]


def test_refine_bounds_what_is_unbounded(done: tuple[TestClient, str]) -> None:
    client, id = done
    answer = client.post(f"/v1/checks/{id}/variants", json={"kind": "refine", "finite": 16})
    assert answer.status_code == 202
    refined = answer.json()
    ended(client, refined["id"])
    spec = client.get(f"/v1/checks/{refined['id']}/spec").json()
    assert spec["json"]["dims"]["s31"]["max"] == 16
    assert spec["inner_sizes"]


def test_a_variant_asks_about_the_same_program(done: tuple[TestClient, str]) -> None:
    client, id = done
    narrowed = client.post(f"/v1/checks/{id}/variants", json={"assume": ["s64 <= 32"]}).json()
    assert narrowed["model"] == client.get(f"/v1/checks/{id}").json()["model"]
    assert ended(client, narrowed["id"])["verdict"] == "proved"
    retyped = client.post(
        f"/v1/checks/{id}/variants",
        json={"inputs": ["input_ids: int64[b, 32]", "mask: int64[b, 32]"], "assume": []},
    ).json()
    assert ended(client, retyped["id"])["verdict"] == "proved"


def test_two_checks_are_compared(client: TestClient) -> None:
    """What the second refuses and the first takes: sizes above 32; and 8 or less is within both."""
    texts = {"all": "s31 >= 1", "few": "s64 <= 8", "many": "s64 >= 9", "other": "s64 <= 20 and s31 >= 2"}
    ids = {name: submit(client, assume=text)["id"] for name, text in texts.items()}
    for id in ids.values():
        assert ended(client, id)["state"] == "done"

    def relation(first: str, second: str) -> str:
        answer = client.post("/v1/comparisons", json={"first": ids[first], "second": ids[second]})
        assert answer.status_code in (200, 202), answer.text
        found = ended(client, answer.json()["id"])["comparison"]
        assert found["exact"]
        for sizes, side in ((found["only_first"], first), (found["only_second"], second)):
            if sizes is not None:
                report = Report.from_json(client.get(f"/v1/checks/{ids[side]}/report").json())
                assert report.accepts.holds(**sizes)
        told: str = found["relation"]
        return told

    assert relation("all", "all") == "same"
    assert relation("few", "all") == "narrower"
    assert relation("all", "few") == "wider"
    assert relation("few", "many") == "disjoint"
    assert relation("many", "other") == "overlapping"


def test_a_comparison_has_no_report(done: tuple[TestClient, str]) -> None:
    client, id = done
    compared = client.post("/v1/comparisons", json={"first": id, "second": id}).json()["id"]
    ended(client, compared)
    assert client.get(f"/v1/checks/{compared}/report").status_code == 409
    assert client.post(f"/v1/checks/{compared}/variants", json={}).status_code == 409
    assert client.post("/v1/comparisons", json={"first": id, "second": "0" * 20}).status_code == 404


def test_branches_are_listed(done: tuple[TestClient, str]) -> None:
    client, id = done
    assert isinstance(client.get(f"/v1/checks/{id}/branches").json(), list)


def test_progress_is_followed_to_the_end(client: TestClient) -> None:
    id = submit(client)["id"]
    with client.stream("GET", f"/v1/checks/{id}/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        told = [json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: ")]
    assert told[-1]["state"] == "done"
    assert told[-1]["verdict"] == "proved"
    states = [one["state"] for one in told]
    assert states == sorted(states, key=["queued", "running", "done"].index)


def test_history_has_filters(client: TestClient) -> None:
    ids = [submit(client, FIXTURES / name)["id"] for name in ("bert.pt2", "resnet.pt2", "sizes.pt2")]
    for id in ids:
        ended(client, id)
    every = client.get("/v1/checks").json()["checks"]
    assert [one["id"] for one in every] == ids[::-1]
    page = client.get("/v1/checks", params={"limit": 2}).json()
    assert page["next"] == ids[1]
    rest = client.get("/v1/checks", params={"before": page["next"]}).json()["checks"]
    assert [one["id"] for one in rest] == ids[:1]
    proved = client.get("/v1/checks", params={"verdict": "proved"}).json()["checks"]
    assert ids[0] in [one["id"] for one in proved]
    assert all(one["verdict"] == "proved" for one in proved)
    assert [c["id"] for c in client.get("/v1/checks", params={"name": "resn"}).json()["checks"]] == [ids[1]]


def test_a_page_after_a_check_that_is_gone_is_told(client: TestClient) -> None:
    id = submit(client)["id"]
    ended(client, id)
    assert client.get("/v1/checks", params={"before": id}).status_code == 200
    client.delete(f"/v1/checks/{id}")
    answer = client.get("/v1/checks", params={"before": id})
    assert (answer.status_code, "start again without" in answer.json()["detail"]) == (404, True)


def test_what_does_not_exist_is_not_found(client: TestClient) -> None:
    for path in ("", "/report", "/spec", "/events", "/branches"):
        answer = client.get(f"/v1/checks/{'0' * 20}{path}")
        assert answer.status_code == 404, path
        assert answer.headers["content-type"] == "application/problem+json"
        assert "there is no check" in answer.json()["detail"]
    assert client.delete(f"/v1/checks/{'0' * 20}").status_code == 404


def test_a_check_is_deleted(client: TestClient) -> None:
    id = submit(client)["id"]
    ended(client, id)
    assert client.delete(f"/v1/checks/{id}").status_code == 204
    assert client.get(f"/v1/checks/{id}").status_code == 404


@pytest.mark.parametrize(
    "fields, told",
    [
        ({"inputs": "x: floot32[b]"}, "floot32"),
        ({"inputs": "x: [b", "assume": ""}, "column"),
        ({"assume": "b <="}, "column"),
        ({"budget_s": "0"}, "budget_s"),
        ({"budget_s": "1e9"}, "budget_s"),
        ({"budget_s": "nan"}, "budget_s"),
        ({"priority": "urgent"}, "priority"),
        ({"assume": "b > 1 and " * 3000 + "b > 1"}, "longer"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_at_once(
    client: TestClient, fields: dict[str, str], told: str
) -> None:
    answer = submit(client, status=422, **fields)
    assert told in answer["detail"]


def test_what_only_a_worker_reads_is_told_as_well(client: TestClient) -> None:
    check = ended(client, submit(client, assume="s31 ** 9999 <= 4")["id"])
    assert (check["state"], check["failure"]["kind"]) == ("failed", "input")
    assert "expected an exponent from 0 to 256 at column 8" in check["failure"]["problem"]
    assert ended(client, submit(client, assume="s31 ** 2 <= 64")["id"])["verdict"] == "proved"


def test_what_fails_in_the_worker_says_why(client: TestClient) -> None:
    id = submit(client, inputs="y: [b]")["id"]
    check = ended(client, id)
    assert check["state"] == "failed"
    assert check["failure"]["kind"] == "input"
    answer = client.get(f"/v1/checks/{id}/report")
    assert answer.status_code == 409
    assert check["failure"]["problem"] in answer.json()["detail"]
    assert submit(client, status=200, inputs="y: [b]")["id"] == id  # nothing else would come of it


# ---- workers that misbehave, and queues that are full


class Scripted:
    """An executor that does what it is told to, one thing after the other."""

    script: list[Outcome]
    asked: int
    block: threading.Event | None

    def __init__(self) -> None:
        pass

    def ask(self, form: str, content: bytes, question: Any, limits: Any, watch: Any) -> Outcome:
        type(self).asked += 1
        while self.block is not None and not self.block.is_set():
            if not watch("solve"):
                return Broke("stopped", "it was cancelled")
            time.sleep(0.01)
        return self.script.pop(0) if self.script else DONE

    def close(self) -> None:
        pass


DONE = WorkerAnswer({"verdict": "unknown", "report": {}, "spec": None})


def scripted(settings: Settings, *script: Outcome, block: threading.Event | None = None) -> TestClient:
    made = type("Made", (Scripted,), {"script": [*script], "asked": 0, "block": block})
    client = in_process(settings, made)
    client.made = made  # type: ignore[attr-defined]
    return client


def test_a_crash_is_tried_again_once(settings: Settings) -> None:
    with scripted(settings, Broke("crash", "it ended by SIGSEGV")) as client:
        check = ended(client, submit(client)["id"])
        assert check["state"] == "done"
        assert client.made.asked == 2  # type: ignore[attr-defined]


def test_a_second_crash_is_the_end(settings: Settings) -> None:
    broke = Broke("crash", "it ended by SIGSEGV")
    with scripted(settings, broke, broke) as client:
        id = submit(client)["id"]
        check = ended(client, id)
        assert check["state"] == "failed"
        assert check["failure"] == {"kind": "crash", "problem": "it ended by SIGSEGV", "hint": ""}
        assert submit(client)["id"] == id  # another attempt for whoever asks again
        assert ended(client, id)["state"] == "done"


@pytest.mark.parametrize("kind", ["time", "memory"])
def test_what_takes_too_much_twice_is_unknown(settings: Settings, kind: Any) -> None:
    broke = Broke(kind, "it took more than there is")
    with scripted(settings, broke, broke) as client:
        id = submit(client)["id"]
        check = ended(client, id)
        assert (check["state"], check["verdict"]) == ("done", "unknown")
        told = client.get(f"/v1/checks/{id}/report", params={"format": "text"}).text
        assert "it took more than there is, in each of 2 attempts" in told


def test_a_running_check_is_cancelled(settings: Settings) -> None:
    block = threading.Event()
    with scripted(settings, block=block) as client:
        id = submit(client)["id"]
        while client.get(f"/v1/checks/{id}").json()["state"] != "running":
            time.sleep(0.02)
        assert client.post(f"/v1/checks/{id}/cancel").json()["state"] == "cancelled"
        until = time.monotonic() + 10
        while service_of(client).store.counts().get("running") and time.monotonic() < until:
            time.sleep(0.05)
        assert client.get(f"/v1/checks/{id}").json()["state"] == "cancelled"
        block.set()
        assert submit(client)["id"] == id
        assert ended(client, id)["state"] == "done"


@pytest.mark.parametrize("giving_up", [("POST", "/cancel"), ("DELETE", "")])
def test_those_who_follow_hear_at_once_of_a_check_that_is_given_up(
    settings: Settings, giving_up: tuple[str, str]
) -> None:
    """Also where the work goes on, for another tenant wants it."""
    block = threading.Event()
    with scripted(settings.model_copy(update={"require_tokens": True}), block=block) as client:
        tokens = service_of(client).tokens
        mine, theirs = ({"authorization": f"Bearer {tokens.create(name)}"} for name in ("mine", "theirs"))
        files = {"model": BERT.read_bytes()}
        other, id = (
            client.post("/v1/checks", files=files, headers=who).json()["id"] for who in (theirs, mine)
        )
        heard: list[Any] = []

        def follow() -> None:
            with client.stream("GET", f"/v1/checks/{id}/events", headers=mine) as stream:
                heard.extend(json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data"))

        def wait() -> None:
            heard.append(client.get(f"/v1/checks/{id}", params={"wait": 50}, headers=mine).json())

        threads = [threading.Thread(target=one) for one in (follow, wait)]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        began = time.monotonic()
        method, path = giving_up
        assert client.request(method, f"/v1/checks/{id}{path}", headers=mine).status_code in (200, 204)
        for thread in threads:
            thread.join(10)
        assert time.monotonic() - began < 5
        assert "cancelled" in [one.get("state") for one in heard]
        assert client.get(f"/v1/checks/{other}", headers=theirs).json()["state"] == "running"
        block.set()


def test_a_full_queue_says_when_to_come_back(settings: Settings) -> None:
    block = threading.Event()
    full = settings.model_copy(update={"queue_limit": 2})
    with scripted(full, block=block) as client:
        codes = []
        for number in range(6):
            answer = client.post(
                "/v1/checks", files={"model": BERT.read_bytes()}, data={"assume": f"s31 <= {number + 1}"}
            )
            codes.append(answer.status_code)
            time.sleep(0.05)
        assert codes[:2] == [202, 202]
        assert codes[-1] == 429
        assert int(answer.headers["retry-after"]) >= 1
        block.set()


def test_what_runs_when_the_service_ends_is_queued_again(settings: Settings) -> None:
    block = threading.Event()
    with scripted(settings.model_copy(update={"drain_s": 0.2}), block=block) as client:
        id = submit(client)["id"]
        while client.get(f"/v1/checks/{id}").json()["state"] != "running":
            time.sleep(0.02)
    with scripted(settings) as client:
        assert ended(client, id)["state"] == "done"


def test_health_and_readiness(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok", "problems": []}
    assert client.get("/readyz").status_code == 200
    service_of(client).runner._stopping.set()
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["status"]) == (503, "not ready")


def test_the_contract_is_published(client: TestClient) -> None:
    document = client.get("/v1/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert "/v1/checks/{id}/report" in document["paths"]
