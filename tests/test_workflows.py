"""The workflows of GitHub Actions run what is here, on the releases that are supported."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from anyshape.tracer.host import releases
from anyshape.tracer.host.releases import number

ROOT: Final = Path(__file__).parent.parent
WORKFLOWS: Final[dict[str, dict[str, Any]]] = {
    path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / ".github/workflows").glob("*.yml")
}


def between(oldest: str, newest: str) -> list[str]:
    """Returns the releases from one to the other, both of which are included."""
    (major, first), (same, last) = number(oldest), number(newest)
    assert major == same
    return [f"{major}.{minor}" for minor in range(first, last + 1)]


def job(workflow: str) -> dict[str, Any]:
    (only,) = WORKFLOWS[workflow]["jobs"].values()
    assert isinstance(only, dict)
    return only


def commands(workflow: str) -> str:
    return "\n".join(step.get("run", "") for step in job(workflow)["steps"])


def oldest_python() -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = re.fullmatch(r">=(\d+\.\d+)", project["requires-python"])
    assert found is not None
    return found[1]


def test_the_matrix_is_what_is_supported() -> None:
    matrix = job("compat")["strategy"]["matrix"]
    assert matrix["torch"] == between(releases.OLDEST, releases.NEWEST)
    assert matrix["python"] == between(oldest_python(), releases.NEWEST_PYTHON)
    assert matrix.keys() == {"torch", "python", "index", "include"} and len(matrix["index"]) == 1


def test_one_release_does_not_hide_another_and_a_nightly_may_fail() -> None:
    test = job("compat")
    assert test["strategy"]["fail-fast"] is False
    (nightly,) = test["strategy"]["matrix"]["include"]
    assert nightly["torch"] == "nightly" and nightly["python"] in test["strategy"]["matrix"]["python"]
    assert test["continue-on-error"] == "${{ matrix.torch == 'nightly' }}"


def test_what_starts_them() -> None:
    assert WORKFLOWS["compat"]["on"].keys() == {"schedule", "workflow_dispatch"}
    assert WORKFLOWS["ci"]["on"].keys() == {"push", "pull_request"}


def test_they_run_what_anyone_can_run() -> None:
    assert "bash .ci/run" in commands("ci").splitlines()
    asked = {"torch", "python", "index"}
    assert set(re.findall(r"--(\w+) \$\{\{ matrix\.\1 \}\}", commands("compat"))) == asked
    assert "python tests/compat.py " in commands("compat")


@pytest.mark.parametrize("name", WORKFLOWS)
def test_they_may_only_read_and_end_some_time(name: str) -> None:
    assert WORKFLOWS[name]["permissions"] == {"contents": "read"}
    assert all(job["timeout-minutes"] <= 180 for job in WORKFLOWS[name]["jobs"].values())


def test_a_release_that_is_not_in_the_matrix_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert between("2.9", "2.11") == ["2.9", "2.10", "2.11"]
    monkeypatch.setattr(releases, "NEWEST", "2.99")
    with pytest.raises(AssertionError):
        test_the_matrix_is_what_is_supported()
