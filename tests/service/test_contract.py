"""Requests made up by schemathesis from the published document: what is answered is what it says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from serving import Running

from anyshape.typecheck.cli.main import main

SECONDS = int(os.environ.get("ANYSHAPE_FUZZ_SECONDS", "30"))
ST = Path(sys.executable).with_name("st")


@pytest.mark.slow
@pytest.mark.skipif(not ST.exists() and shutil.which("st") is None, reason="needs schemathesis")
def test_the_service_keeps_its_contract(
    running: Callable[..., Running], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--data", str(tmp_path / "anyshape-service"), "--per-minute", "1000000", "--priority", "high"]
    assert main(["token", "create", "fuzz", *where]) == 0
    token = capsys.readouterr().out.strip()
    service = running()
    command = [
        str(ST) if ST.exists() else "st",
        "run", f"{service.client.base_url}/v1/openapi.json",
        "-H", f"Authorization: Bearer {token}",
        "--checks", "all", "--max-time", str(SECONDS), "--seed", "1",
        # A schema does not say which texts are assumptions, nor which bytes are programs.
        "--exclude-checks", "positive_data_acceptance",
    ]  # fmt: skip
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS + 240)
    assert found.returncode == 0, found.stdout[-6000:]
    assert service.process.poll() is None
    log = (tmp_path / "log").read_text()
    assert '"status": 500' not in log
    assert token not in log
