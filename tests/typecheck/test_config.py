"""`[tool.anyshape]`: what it may say, and what is told where it says something else."""

from __future__ import annotations

from pathlib import Path

import pytest

from anyshape.typecheck import Code
from anyshape.typecheck.project.config import KEYS, TARGET_KEYS, ConfigError, ConfiguredJob, find, read

FULL = """\
[project]
name = "p"

[tool.anyshape]
ignore = ["approximate", "raises"]
baseline = "known.json"
budget = 60
replay = false
suspect = ["mixed-batch"]
second-solver = "cvc5"
device = "cuda"
training = true

[[tool.anyshape.targets]]
target = "models/unet.py:UNet"
inputs = "x: float32[b, 3, h, w]"
assume = ["h % 64 == 0", "w % 64 == 0"]

[[tool.anyshape.targets]]
target = "saved.pt2"
budget = 5
replay = true
training = false
"""


MULTIPLES = ("h % 64 == 0", "w % 64 == 0")
MIXED = ("mixed-batch",)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "pyproject.toml"


def test_all_keys(file: Path) -> None:
    file.write_text(FULL)
    project = read(file)
    assert project is not None
    assert project.root == file.parent
    assert project.jobs == (
        ConfiguredJob(
            "models/unet.py:UNet", ("x: float32[b, 3, h, w]",), MULTIPLES, 60.0, False, MIXED, "cvc5", "cuda",
            True,
        ),
        ConfiguredJob("saved.pt2", None, (), 5.0, True, MIXED, "cvc5", "cuda", False),
    )
    assert project.ignore == {Code.APPROXIMATE: 5, Code.RAISES: 5}
    assert project.baseline == file.parent / "known.json"
    assert project.job("saved.pt2") is project.jobs[1]
    assert project.job("other.pt2") is None
    for key in (*KEYS, *TARGET_KEYS):
        assert f"\n{key} = " in FULL or f"tool.anyshape.{key}]" in FULL


def test_the_nearest_project_upwards_counts(file: Path) -> None:
    inner = file.parent / "a/b"
    inner.mkdir(parents=True)
    assert find(inner) is None
    file.write_text("[tool.anyshape]\n")
    (file.parent / "a/pyproject.toml").write_text("[project]\nname = 'another'\n")
    project = find(inner)
    assert project is not None
    assert project.root == file.parent
    assert project.jobs == ()


@pytest.mark.parametrize(
    "text", ["", "[project]\nname = 'p'\n", "[tool.other]\n", "not toml at all", "tool = 3\n"]
)
def test_projects_of_others(file: Path, text: str) -> None:
    file.write_text(text)
    assert read(file) is None


# the file, parts of what is told, the line that it is told at
WRONG = [
    ("[tool.anyshape]\nbudgte = 3\n", ("no key 'budgte'", "did you mean 'budget'"), 2),
    ("[tool.anyshape]\nxyzzy = 3\n", ("no key 'xyzzy'", "the keys are targets, ignore"), 2),
    ("[tool.anyshape]\nbudget = 'soon'\n", ("budget", "number of seconds above zero"), 2),
    ("[tool.anyshape]\nbudget = true\n", ("budget", "number of seconds"), 2),
    ("[tool.anyshape]\nbudget = -1\n", ("budget", "above zero"), 2),
    ("[tool.anyshape]\nreplay = 1\n", ("replay", "true or false"), 2),
    ("[tool.anyshape]\nbaseline = 3\n", ("baseline", "a text"), 2),
    ("[tool.anyshape]\nignore = 3\n", ("ignore", "a list of texts"), 2),
    ("[tool.anyshape]\nignore = [\n  'conditon',\n]\n", ("'conditon'", "did you mean 'condition'"), 2),
    ("[tool.anyshape]\ntargets = 'a.py:A'\n", ("a list of tables", "[[tool.anyshape.targets]]"), 2),
    ("[tool.anyshape]\ntargets = ['a.py:A']\n", ("[[tool.anyshape.targets]] is not a table",), 0),
    ("[[tool.anyshape.targets]]\ninputs = ''\n", ("a target is missing", 'target = "'), 1),
    ("[[tool.anyshape.targets]]\ntarget = ''\n", ("target", "a text"), 2),
    (
        "[[tool.anyshape.targets]]\ntarget = 'a'\n\n[[tool.anyshape.targets]]\ntarget = 'b'\ninput = 'x'\n",
        ("no key 'input'", "did you mean 'inputs'"),
        6,
    ),
    ("[[tool.anyshape.targets]]\ntarget = 'a'\nassume = [1]\n", ("assume", "a list of texts"), 3),
    ("[tool.anyshape\n", ("is not valid TOML", "pyproject.toml"), 1),
    ("tool.anyshape = 3\n", ("[tool.anyshape] is not a table",), 0),
]  # fmt: skip


@pytest.mark.parametrize("text, parts, line", WRONG)
def test_what_cannot_be_used_is_told_with_its_line(
    file: Path, text: str, parts: tuple[str, ...], line: int
) -> None:
    file.write_text(text)
    with pytest.raises(ConfigError) as raised:
        read(file)
    told = f"{raised.value.problem} {raised.value.hint}"
    assert not [part for part in parts if part not in told], told
    assert raised.value.origin.file == str(file)
    assert raised.value.origin.line == line


def test_a_file_that_cannot_be_read(file: Path) -> None:
    file.write_bytes(b"[tool.anyshape]\nbaseline = '\xff'\n")
    with pytest.raises(ConfigError, match="cannot be read"):
        read(file)
