"""Tokens, tenants, limits, hostile uploads, and what pages of others may do."""

from __future__ import annotations

import errno
import io
import json
import logging
import socket
import struct
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from serving import FIXTURES, ended, in_process, service_of
from starlette.testclient import TestClient

from anyshape.typecheck.cli.main import main
from anyshape.typecheck.project.config import ConfigError
from anyshape.typecheck.service.app import create_app
from anyshape.typecheck.service.http.auth import Rates
from anyshape.typecheck.service.ops.settings import Settings, load
from anyshape.typecheck.service.serving import serve

BERT = (FIXTURES / "bert.pt2").read_bytes()


def submit(client: TestClient, content: bytes = BERT, token: str = "", **fields: Any) -> Any:
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return client.post("/v1/checks", files={"model": ("m.pt2", content)}, data=fields, headers=headers)


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.fixture
def guarded(settings: Settings) -> Iterator[TestClient]:
    """A service that asks for tokens."""
    with in_process(settings.model_copy(update={"require_tokens": True})) as client:
        yield client


# ---- tokens and tenants


def test_nobody_gets_in_without_a_token(guarded: TestClient) -> None:
    paths = ("/v1/checks", f"/v1/checks/{'0' * 20}", f"/v1/checks/{'0' * 20}/report", "/metrics")
    for headers in ({}, bearer("anyshape_wrong"), {"authorization": "Basic eDp5"}, bearer("")):
        for path in paths:
            answer = guarded.get(path, headers=headers)
            assert answer.status_code == 401, path
            assert answer.headers["www-authenticate"].startswith("Bearer")
    assert submit(guarded).status_code == 401
    assert guarded.get("/healthz").status_code == 200


def test_a_first_token_closes_an_open_service(client: TestClient) -> None:
    assert client.get("/v1/checks").status_code == 200
    service = service_of(client)
    token = service.tokens.create("ci")
    service.tokens._some = (0.0, False)  # what was seen some seconds ago
    assert client.get("/v1/checks").status_code == 401
    assert client.get("/v1/checks", headers=bearer(token)).status_code == 200


def test_tenants_are_apart_and_share_answers(guarded: TestClient) -> None:
    tokens = service_of(guarded).tokens
    one, same, other = tokens.create("one", "a"), tokens.create("same", "a"), tokens.create("other", "b")
    id = submit(guarded, token=one, name="mine").json()["id"]
    for _ in range(100):
        if guarded.get(f"/v1/checks/{id}", headers=bearer(same)).json()["state"] == "done":
            break
        guarded.get(f"/v1/checks/{id}?wait=1", headers=bearer(same))
    for path in ("", "/report", "/spec", "/events"):
        assert guarded.get(f"/v1/checks/{id}{path}", headers=bearer(other)).status_code == 404
    for request in (
        guarded.build_request("POST", f"/v1/checks/{id}/cancel", headers=bearer(other)),
        guarded.build_request("POST", f"/v1/checks/{id}/variants", headers=bearer(other), json={}),
        guarded.build_request("DELETE", f"/v1/checks/{id}", headers=bearer(other)),
    ):
        assert guarded.send(request).status_code == 404
    assert guarded.get("/v1/checks", headers=bearer(other)).json()["checks"] == []
    theirs = submit(guarded, token=other, name="theirs").json()
    assert theirs["state"] == "done"  # solved once, whoever asks
    assert theirs["id"] != id
    report = guarded.get(f"/v1/checks/{theirs['id']}/report", headers=bearer(other)).text
    assert "mine" not in report


def test_a_revoked_token_is_none(guarded: TestClient) -> None:
    tokens = service_of(guarded).tokens
    token = tokens.create("gone")
    tokens.revoke("gone")
    assert guarded.get("/v1/checks", headers=bearer(token)).status_code == 401


def test_tokens_are_not_kept(settings: Settings) -> None:
    with in_process(settings) as client:
        token = service_of(client).tokens.create("ci")
    kept = b"".join(file.read_bytes() for file in settings.data.iterdir())
    assert b"ci" in kept
    assert token.encode() not in kept


def test_tokens_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--data", str(tmp_path)]
    assert main(["token", "create", "ci", "--tenant", "team", *where]) == 0
    secret = capsys.readouterr().out.strip()
    assert secret.startswith("anyshape_")
    assert main(["token", "list", *where]) == 0
    assert "tenant team" in capsys.readouterr().out
    assert main(["token", "create", "ci", *where]) == 2
    assert "already" in capsys.readouterr().err
    assert main(["token", "create", "a b", *where]) == 2
    for wrong in (["--per-minute", "0"], ["--upload-mb", "nan"], ["--upload-mb", "inf"], ["--upload-mb=-1"]):
        assert main(["token", "create", "wrong", *wrong, *where]) == 2
        assert "is not a number of" in capsys.readouterr().err
    assert main(["token", "revoke", "ci", *where]) == 0
    assert main(["token", "revoke", "nobody", *where]) == 2
    assert main(["token", "list", *where]) == 0
    assert "revoked" in capsys.readouterr().out


def test_priorities_are_given_by_tokens(guarded: TestClient) -> None:
    tokens = service_of(guarded).tokens
    usual, urgent = tokens.create("usual"), tokens.create("urgent", priority=1)
    assert submit(guarded, token=usual, priority="high").status_code == 403
    assert submit(guarded, token=usual, priority="low").status_code == 202
    assert submit(guarded, token=urgent, priority="high").status_code == 202
    humble = tokens.create("humble", priority=-1)
    assert submit(guarded, token=humble, priority="normal").status_code == 403
    asked = submit(guarded, token=humble, assume="s31 <= 3")  # which is as it may
    assert (asked.status_code, asked.json()["priority"]) == (202, "low")
    id = asked.json()["id"]
    for _ in range(100):
        if guarded.get(f"/v1/checks/{id}?wait=1", headers=bearer(humble)).json()["state"] == "done":
            break
    variant = guarded.post(f"/v1/checks/{id}/variants", headers=bearer(humble), json={"assume": ["s31 <= 2"]})
    both = {"first": id, "second": id}
    compared = guarded.post("/v1/comparisons", headers=bearer(humble), json=both)
    assert [answer.json()["priority"] for answer in (variant, compared)] == ["low", "low"]


def test_a_token_has_its_rate_and_its_size(guarded: TestClient) -> None:
    tokens = service_of(guarded).tokens
    slow, small = tokens.create("slow", per_minute=12), tokens.create("small", upload_mb=0.001)
    codes = [guarded.get("/v1/checks", headers=bearer(slow)).status_code for _ in range(5)]
    assert codes[:2] == [200, 200]
    assert codes[-1] == 429
    assert int(guarded.get("/v1/checks", headers=bearer(slow)).headers["retry-after"]) >= 1
    assert submit(guarded, token=small).status_code == 413


def test_rates_fill_up_again() -> None:
    rates = Rates()
    assert [rates.wait("t", 600) == 0.0 for _ in range(101)][-2:] == [True, False]
    wait = rates.wait("t", 600)
    assert 0 < wait <= 0.1
    assert rates.wait("another", 600) == 0.0


# ---- uploads


def archive(entries: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", compression) as file:
        for name, content in entries.items():
            file.writestr(name, content)
    return made.getvalue()


def test_a_zip_bomb_is_refused_before_it_goes_off(settings: Settings) -> None:
    small = settings.model_copy(update={"max_program_mb": 1.0})
    bomb = archive({"m/models/model.json": b" " * (64 << 20)}, zipfile.ZIP_DEFLATED)
    assert len(bomb) < 100_000
    lies = bytearray(bomb)  # one that says it is small
    at = lies.rindex(b"PK\x01\x02")
    lies[at + 24 : at + 28] = struct.pack("<I", 100)
    with in_process(small) as client:
        answer = submit(client, bomb)
        assert answer.status_code == 413
        assert "too large" in answer.json()["detail"]
        assert submit(client, bytes(lies)).status_code in (202, 422)
        entries = {"m/models/model.json": b"{}", "m/data/weights/w": b"\0" * (64 << 20)}
        weights = archive(entries, zipfile.ZIP_DEFLATED)
        assert submit(client, weights).status_code == 202  # what is not read does not matter


@pytest.mark.parametrize(
    "name",
    ["../../../etc/models/model.json", "/models/model.json", "m/../models/model.json", "..\\models\\m.json"],
)
def test_paths_in_archives_lead_nowhere(client: TestClient, tmp_path: Path, name: str) -> None:
    before = {*tmp_path.rglob("*")}
    answer = submit(client, archive({name: b"{}", "../../../tmp/anyshape-escaped": b"x"}))
    assert answer.status_code == 422
    assert not Path("/tmp/anyshape-escaped").exists()
    assert {path for path in {*tmp_path.rglob("*")} - before if "escaped" in path.name} == set()


def test_pickles_are_never_read(client: TestClient) -> None:
    """A pickle that would leave a file behind, in each place where a .pt2 has one."""
    import pickle

    class Mischief:
        def __reduce__(self) -> Any:
            return Path.touch, (Path("/tmp/anyshape-pickled"),)

    evil = pickle.dumps(Mischief())
    with zipfile.ZipFile(io.BytesIO(BERT)) as good:
        model = next(good.read(name) for name in good.namelist() if name.endswith("models/model.json"))
    names = ("m/data/sample_inputs/model.pt", "m/data/constants/custom_obj_0", "m/data/weights/weight_0")
    answer = submit(client, archive({"m/models/model.json": model, **dict.fromkeys(names, evil)}))
    assert ended(client, answer.json()["id"])["state"] == "done"
    assert submit(client, evil).status_code == 422
    assert not Path("/tmp/anyshape-pickled").exists()


@pytest.mark.parametrize(
    "content",
    [b"", b"PK", b"PK\x03\x04", BERT[:1000], BERT[:-100], b"hello", b"\0" * 1000, b"[1]",
     b"PK\x05\x06" + b"\0" * 18],  # an archive of nothing
)
def test_damaged_uploads_are_told(client: TestClient, content: bytes) -> None:
    answer = submit(client, content)
    assert answer.status_code == 422
    assert answer.json()["detail"]


def test_hostile_programs_end_in_the_worker(client: TestClient) -> None:
    deep: Any = 0
    for _ in range(900):
        deep = [deep]
    code = {"tensor": {"shape": [{"dim": "__import__('os').abort()"}], "dtype": "f", "layout": "contiguous"}}
    rest: dict[str, Any] = {"nodes": [], "outputs": [], "origins": []}
    recorded = {"form": "anyshape.recorded", "schema": 1, "inputs": ["x: [b]"], "assume": [], "changed": []}
    programs = [
        b'{"graph_module": ' + b"[" * 50_000,
        b'{"schema": 1, "inputs": 1' + b"0" * 5000 + b"}",
        json.dumps({"schema": 1, "inputs": [[0, "x", deep, False]], **rest}).encode(),
        json.dumps({"schema": 1, "inputs": [[0, "x", code, False]], **rest}).encode(),
        json.dumps({**recorded, "incomplete": "", "paths": [{}]}).encode(),
    ]
    for program in programs:
        check = ended(client, submit(client, program).json()["id"])
        assert check["state"] == "failed", program[:60]
        assert check["failure"]["kind"] == "input", check
    assert ended(client, submit(client).json()["id"])["state"] == "done"


def test_too_much_is_refused_though_it_was_not_announced(settings: Settings) -> None:
    small = settings.model_copy(update={"max_upload_mb": 0.01})

    def body() -> Iterator[bytes]:
        yield b'--x\r\ncontent-disposition: form-data; name="model"; filename="m"\r\n\r\n'
        for _ in range(100):
            yield b"x" * 1000
        yield b"\r\n--x--\r\n"

    with in_process(small) as client:
        assert submit(client, b"x" * 20_000).status_code == 413
        headers = {"content-type": "multipart/form-data; boundary=x"}
        assert client.post("/v1/checks", content=body(), headers=headers).status_code == 413


@pytest.mark.parametrize(
    "fields",
    [
        {"inputs": "x: [" + ",".join(["b"] * 9000) + "]"},
        {"inputs": "\n".join(f"x{i}: [b]" for i in range(1500))},
        {"assume": "b <= 9**9**9**9"},
        {"assume": "\n".join(f"(b+c)**{n} <= 4" for n in range(250))},
        {"assume": "*".join(f"(a{i}+b{i})" for i in range(40)) + " <= 3"},
        {"assume": "(" * 9000 + "b" + ")" * 9000 + " <= 3"},
        {"assume": "b <= " + "9" * 19_000},
        {"assume": "not " * 4000 + "b <= 3"},
        {"assume": "\u202e\u0000b <= 3", "name": "\u202e\ud7ff\U0001f4a9"},
    ],
    ids=lambda fields: f"{next(iter(fields.values()))[:12]!r}",
)
def test_a_hostile_question_costs_the_service_little(guarded: TestClient, fields: dict[str, str]) -> None:
    """Its own process reads it, whose other requests wait meanwhile."""
    token = service_of(guarded).tokens.create("hostile")
    began = time.process_time()
    answer = submit(guarded, token=token, **fields)
    assert time.process_time() - began < 3.0
    assert answer.status_code in (202, 422)


def test_names_are_any_text_but_for_what_no_database_keeps(client: TestClient) -> None:
    assert submit(client, name="a\0b").status_code == 422
    told = client.post("/v1/checks", files={"model": ("m\r\n\\..\\x\u00e9\u4e2d.pt2", BERT)}).json()["name"]
    assert told.endswith("\u00e9\u4e2d.pt2")
    assert "\0" not in told
    id = submit(client, name="\u4e2d\u202e\U0001f4a9", assume="s31 <= 7").json()["id"]
    assert client.get(f"/v1/checks/{id}").json()["name"] == "\u4e2d\u202e\U0001f4a9"
    for name in ("a\0b", "\ud800"):
        raw = json.dumps({"name": name}).encode()
        headers = {"content-type": "application/json"}
        assert client.post(f"/v1/checks/{id}/variants", content=raw, headers=headers).status_code == 422


def test_a_disk_without_room_for_an_upload_is_told(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Any, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile.SpooledTemporaryFile, "write", full)
    answer = submit(client)
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert "no room" in answer.json()["detail"]
    monkeypatch.undo()
    assert submit(client).status_code == 202


def test_what_is_in_a_statement_is_in_no_error(client: TestClient) -> None:
    with (
        pytest.raises(sa.exc.SQLAlchemyError) as error,
        service_of(client).database.write() as session,
    ):
        session.execute(sa.text("select * from nowhere where a = :a"), {"a": "SECRET"})
    assert "SECRET" not in str(error.value)


# ---- browsers


@pytest.mark.parametrize("origin", ["null", "http://[", "https://localhost@evil.example", "evil", "http://"])
def test_what_is_no_origin_is_another_s(client: TestClient, origin: str) -> None:
    assert client.get("/v1/checks", headers={"origin": origin}).status_code == 403


@pytest.mark.parametrize("size", ["9" * 5000, "-1", "\u00b2", "1e9", "99999999999999999999"])
def test_sizes_that_are_announced_may_be_any_text(client: TestClient, size: str) -> None:
    headers = {"content-length": size.encode("latin-1")}
    assert client.get("/v1/checks", headers=headers).status_code in (200, 413)


def test_pages_of_others_may_not_call(client: TestClient) -> None:
    answer = client.get("/v1/checks", headers={"origin": "https://evil.example"})
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers
    assert submit(client).status_code == 202
    sneaked = client.post("/v1/checks", files={"model": BERT}, headers={"origin": "https://evil.example"})
    assert sneaked.status_code == 403
    rebound = client.get("/v1/checks", headers={"host": "evil.example"})
    assert rebound.status_code == 421


def test_pages_that_are_named_may_call(settings: Settings) -> None:
    named = settings.model_copy(update={"cors_origins": ("https://tools.example",)})
    with in_process(named) as client:
        asked = {"origin": "https://tools.example", "access-control-request-method": "POST"}
        answer = client.options("/v1/checks", headers=asked)
        assert answer.headers["access-control-allow-origin"] == "https://tools.example"
        other = client.options("/v1/checks", headers=asked | {"origin": "https://x.example"})
        assert other.status_code == 403


def test_answers_have_headers_that_browsers_heed(client: TestClient) -> None:
    for path in ("/", "/v1/checks", "/healthz", f"/v1/checks/{'0' * 20}", "/nothing/here"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff", path
        assert "frame-ancestors" in headers["content-security-policy"], path
        assert "unsafe" not in headers["content-security-policy"], path
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["x-request-id"]
    id = submit(client).json()["id"]
    ended(client, id)
    report = client.get(f"/v1/checks/{id}/report", params={"format": "html"})
    assert "sandbox allow-scripts" in report.headers["content-security-policy"]


def test_files_outside_of_the_page_are_not_served(client: TestClient) -> None:
    for path in ("/../app.py", "/%2e%2e/app.py", "/..%2fapp.py", "/page/../../app.py"):
        assert client.get(path).status_code == 404


# ---- who may listen where


def test_beyond_loopback_tokens_are_needed(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no token is asked for"):
        serve(Settings(host="0.0.0.0", port=0, data=tmp_path))


def test_an_address_that_cannot_be_had_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"127.0.0.1:{port} cannot be listened on: .* in use"):
            serve(Settings(port=port, data=tmp_path))
    with pytest.raises(ConfigError, match=r"no\.such\.host\.invalid:0 cannot be listened on"):
        serve(Settings(host="no.such.host.invalid", port=0, data=tmp_path, insecure=True))


def test_a_folder_is_one_service_s(running: Any, tmp_path: Path) -> None:
    running()
    with pytest.raises(ConfigError, match="another service"):
        serve(Settings(port=0, data=tmp_path / "anyshape-service"))


@pytest.mark.parametrize(
    "given, told",
    [({"port": 70000}, "port"), ({"colour": "red"}, "known settings"), ({"workers": 0}, "workers"),
     ({"database": "mysql+nothing://x"}, "database")],
)  # fmt: skip
def test_settings_that_make_no_sense_are_told(tmp_path: Path, given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError) as error:
        create_app(load(data=tmp_path, **given))
    assert told in str(error.value)


def test_settings_come_from_options_environment_and_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "service.toml"
    file.write_text('port = 1\nworkers = 3\nbudget_s = 7\ncors_origins = ["https://a.example"]\n')
    monkeypatch.setenv("ANYSHAPE_SERVICE_PORT", "2")
    monkeypatch.setenv("ANYSHAPE_SERVICE_WORKERS", "4")
    found = load(file, port=5)
    assert (found.port, found.workers, found.budget_s) == (5, 4, 7)
    assert found.cors_origins == ("https://a.example",)
    file.write_text("port =")
    with pytest.raises(ConfigError, match="not valid TOML"):
        load(file)


# ---- logs


def test_no_secret_is_logged(guarded: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    logging.getLogger("anyshape.service").propagate = True
    token = service_of(guarded).tokens.create("ci")
    id = submit(guarded, token=token, name="SECRET-NAME", inputs="bad spec [").json()
    id = submit(guarded, token=token, name="SECRET-NAME").json()["id"]
    for _ in range(12):
        if guarded.get(f"/v1/checks/{id}?wait=5", headers=bearer(token)).json()["state"] == "done":
            break
    guarded.get(f"/v1/checks?name=SECRET-QUERY&token={token}", headers=bearer(token))
    ours = [record for record in caplog.records if not record.name.startswith("httpx")]
    told = "\n".join(f"{record.getMessage()} {vars(record)}" for record in ours)
    assert "check ended" in told
    assert "/v1/checks/{id}" in told
    assert token not in told
    assert "SECRET" not in told


def test_a_request_keeps_its_id(client: TestClient) -> None:
    assert client.get("/healthz", headers={"x-request-id": "abc-1"}).headers["x-request-id"] == "abc-1"
    assert client.get("/healthz", headers={"x-request-id": "a\tb{}"}).headers["x-request-id"] != "a\tb{}"
