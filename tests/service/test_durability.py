"""Whatever is accepted is answered, and rightly, though services are killed."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from serving import FIXTURES, Running, ended, free_port

from anyshape.typecheck import check
from benchmarks.postgres import drop_connections

pytestmark = pytest.mark.slow  # each starts services as processes, several times
MODELS = ("bert.pt2", "resnet.pt2", "unet.pt2", "sizes.pt2", "data.pt2", "regions.pt2")


def submit(client: httpx.Client, name: str, assume: str = "") -> str:
    files = {"model": (name, (FIXTURES / name).read_bytes())}
    answer = client.post("/v1/checks", files=files, data={"assume": assume} if assume else {})
    assert answer.status_code in (200, 202), answer.text
    id: str = answer.json()["id"]
    return id


def test_a_killed_service_resumes_all_that_it_accepted(running: Callable[..., Running]) -> None:
    service = running()
    ids = {name: submit(service.client, name) for name in MODELS}
    service.kill()
    for _ in range(2):  # and once more, while it works
        service = running()
        time.sleep(0.5)
        service.kill()
    service = running()
    for name, id in ids.items():
        found = ended(service.client, id)
        assert (found["state"], found["verdict"]) == ("done", check(FIXTURES / name).verdict), name
    assert len(service.client.get("/v1/checks").json()["checks"]) == len(MODELS)


def test_workers_do_not_outlive_a_killed_service(running: Callable[..., Running]) -> None:
    service = running()
    ended(service.client, submit(service.client, "sizes.pt2"))
    children = [
        int(folder.name)
        for folder in Path("/proc").iterdir()
        if folder.name.isdigit() and _parent(folder) == service.process.pid
    ]
    assert children
    service.kill()
    until = time.monotonic() + 10
    while any(Path(f"/proc/{pid}").exists() and _state(pid) != "Z" for pid in children):
        assert time.monotonic() < until, "a worker is still there"
        time.sleep(0.05)


def _parent(folder: Path) -> int:
    try:
        return int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def test_a_service_that_is_told_to_stop_does_so_in_order(running: Callable[..., Running]) -> None:
    service = running()
    ids = [submit(service.client, name) for name in MODELS]
    service.process.send_signal(signal.SIGTERM)
    assert service.process.wait(40) == 0
    service = running()
    assert all(ended(service.client, id)["state"] == "done" for id in ids)


def test_two_services_share_one_postgresql(
    running: Callable[..., Running], new_postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What one takes in the other may answer; what a killed one had the other takes over."""
    monkeypatch.setenv("ANYSHAPE_SERVICE_LEASE_S", "2")
    first = running("--database", new_postgres)
    second = running("--database", new_postgres, port=free_port())
    ids = {name: submit(first.client, name) for name in MODELS}
    wide = {f"s31 <= {n}": submit(second.client, "bert.pt2", f"s31 <= {n}") for n in range(40, 46)}
    time.sleep(0.3)
    first.kill()
    for name, id in ids.items():
        assert ended(second.client, id)["verdict"] == check(FIXTURES / name).verdict
    for assume, id in wide.items():
        assert ended(second.client, id)["verdict"] == check(FIXTURES / "bert.pt2", assume=assume).verdict
    told = second.client.get("/metrics").text
    assert f'anyshape_works{{state="done"}} {len(ids) + len(wide)}.0' in told


def test_connections_to_the_database_may_drop(
    running: Callable[..., Running], new_postgres: str
) -> None:
    """All of them, again and again, while works are taken in and done."""
    service = running("--database", new_postgres)
    ids: dict[str, str] = {}
    refused = 0
    for round in range(6):
        for name in MODELS:
            files = {"model": (name, (FIXTURES / name).read_bytes())}
            answer = service.client.post("/v1/checks", files=files)
            if answer.status_code == 503:
                refused += 1
                assert answer.headers["retry-after"]
            else:
                assert answer.status_code in (200, 202), answer.text
                ids[answer.json()["id"]] = name
        drop_connections(new_postgres)
        time.sleep(0.3 * round)
    for id, name in ids.items():
        assert ended(service.client, id, 120)["verdict"] == check(FIXTURES / name).verdict
    assert ids
    assert service.client.get("/readyz").status_code == 200
