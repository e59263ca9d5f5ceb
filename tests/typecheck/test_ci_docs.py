"""docs/ci.md, docs/outputs.md and the hook of pre-commit say what there is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from anyshape.typecheck.cli.main import parser_of
from anyshape.typecheck.project.config import KEYS, TARGET_KEYS, read
from anyshape.typecheck.render.formats import FORMATS

ROOT = Path(__file__).parent.parent.parent
CI = (ROOT / "docs/ci.md").read_text()
OUTPUTS = (ROOT / "docs/outputs.md").read_text()
YAML = [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```$", CI, re.MULTILINE | re.DOTALL)]


def test_the_example_of_a_project_is_one_and_has_all_keys(tmp_path: Path) -> None:
    (example,) = re.findall(r"^```toml\n(.*?)^```$", CI, re.MULTILINE | re.DOTALL)
    (tmp_path / "pyproject.toml").write_text(example)
    project = read(tmp_path / "pyproject.toml")
    assert project is not None
    assert len(project.jobs) == 2
    for key in (*KEYS, *TARGET_KEYS):
        assert f"\n{key} = " in example or f"tool.anyshape.{key}]" in example


def test_the_hook() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["id"] == "anyshape"
    assert hook["pass_filenames"] is False
    parser_of().parse_args(hook["entry"].split()[1:])
    ids = [h["id"] for block in YAML if "repos" in block for repo in block["repos"] for h in repo["hooks"]]
    assert ids == ["anyshape", "anyshape"]


def commands() -> list[str]:
    """Every `anyshape …` that stands in the pages."""
    (action,) = [block for block in YAML if "jobs" in block]
    runs = [step.get("run", "") for step in action["jobs"]["anyshape"]["steps"]]
    text = "\n".join((*runs, *re.findall(r"^\$ (anyshape .*)$", CI, re.MULTILINE)))
    return re.findall(r"^(anyshape [^|#\n]*)", text, re.MULTILINE)


def test_the_commands_are_there() -> None:
    assert len(commands()) == 8


@pytest.mark.parametrize("line", commands())
def test_the_commands_of_the_pages_parse(line: str) -> None:
    options: Any = parser_of().parse_args(line.split()[1:])
    assert options.run


def test_every_form_is_described() -> None:
    assert set(re.findall(r"^\| `(\w+)` \|[^|\n]*\|[^|\n]*\|$", OUTPUTS, re.MULTILINE)) == {*FORMATS}
