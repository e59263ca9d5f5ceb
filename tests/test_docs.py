"""The examples in README.md and docs/ run.

On each page the blocks share one namespace, in order. A block marked `python runs` is executed, one marked
`pycon` is a session that shows its output, checked as a doctest. Every other block is there to be read, and
so is one with a module that the installed torch does not have yet.
"""
from __future__ import annotations

import doctest
import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType
from typing import Any

import pytest

from anyshape.tracer.host.operators import INSTALLED
from anyshape.typecheck.cli.main import main

ROOT = Path(__file__).parent.parent
PAGES = [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if page.exists()]

SINCE = {"torch.fx.experimental.dynamic_spec": (2, 13)}
"""The first release of torch that has a module."""

_BLOCK = re.compile(r"^```(?P<mark>python runs|pycon)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """An example: how it is run, its text, and the line of the page that it starts at."""

    mark: str
    code: str
    line: int


def blocks(text: str) -> list[Block]:
    found = _BLOCK.finditer(text)
    return [Block(m["mark"], m["code"], text.count("\n", 0, m.start("code")) + 1) for m in found]


def run(page: str, text: str) -> None:
    """Runs the blocks of a page. Raises what they raise, and AssertionError where a session shows else."""
    # A module of its own, so that functions of the page have a home that can be looked up by name.
    name = "page_" + re.sub(r"\W", "_", page)
    module = ModuleType(name)
    sys.modules[name] = module
    names: dict[str, Any] = vars(module)
    try:
        for block in blocks(text):
            if any(module in block.code and INSTALLED < first for module, first in SINCE.items()):
                continue
            if block.mark == "pycon":
                _session(page, block, names)
            else:
                source = "\n" * (block.line - 1) + block.code
                exec(compile(source, page, "exec", dont_inherit=True), names)
    finally:
        del sys.modules[name]


def _session(page: str, block: Block, names: dict[str, Any]) -> None:
    # A DocTest copies the namespace that it is given, and the next block has to see what this one makes.
    test = doctest.DocTestParser().get_doctest(block.code, names, page, page, block.line - 1)
    test.globs = names
    said: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(test, out=said.append, clear_globs=False)
    assert not result.failed, "".join(said)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_the_page_run(page: Path) -> None:
    run(str(page.relative_to(ROOT)), page.read_text())


def test_blocks_share_a_namespace_and_others_are_left_alone() -> None:
    run(
        "p.md",
        "```python runs\nx = 2\n```\n```python\n1 / 0\n```\n"
        "```pycon\n>>> x\n2\n>>> y = x\n```\n```pycon\n>>> y\n2\n```\n",
    )


def test_an_example_with_a_module_of_a_later_torch_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SINCE, "torch.absent", (99, 0))
    run("p.md", "```pycon\n>>> import torch.absent\n```\n")
    monkeypatch.setitem(SINCE, "torch.absent", INSTALLED)
    with pytest.raises(AssertionError, match=r"torch\.absent"):
        run("p.md", "```pycon\n>>> import torch.absent\n```\n")


def test_a_wrong_output_is_caught() -> None:
    with pytest.raises(AssertionError, match="line 2"):
        run("p.md", "```pycon\n>>> 1 + 1\n3\n```\n")


def test_an_example_that_raises_is_caught_at_its_line() -> None:
    with pytest.raises(ZeroDivisionError) as raised:
        run("p.md", "text\n\n```python runs\n1 / 0\n```\n")
    assert raised.traceback[-1].lineno == 3  # counted from 0


def test_outputs_that_pages_show_are_printed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "100")
    (start,) = re.findall(r"^\$ anyshape check examples[^\n]*\n(.*?)\n…\n", NAMED["README.md"], re.M | re.S)
    (finding,) = re.findall(r"^```text\n(condition: .*?)```$", NAMED["outputs.md"], re.M | re.S)
    command = ["check", "examples/unet.py:UNet", "--input", "x: float32[batch, 3, h, w]", "--no-cache"]
    assert main(command) == 1
    assert capsys.readouterr().out.startswith(start)
    assert main([*command, "--verbose"]) == 1
    assert finding in capsys.readouterr().out


# ---- paths and names

PACKAGES = ("constraints", "solver", "tracer", "typecheck")
NAMED = {page.name: page.read_text() for page in (*PAGES, ROOT / "CONTRIBUTING.md")}
TESTS = "\n".join(file.read_text() for file in (ROOT / "tests").rglob("test_*.py"))


def absent(text: str) -> list[str]:
    """Returns the paths, the names of modules and values, and the names of tests in a text that do not exist.
    """
    tops = "|".join(PACKAGES)
    paths = re.findall(rf"`((?:{tops}|tests|benchmarks|docs|examples)/[\w./-]*)`", text)
    names = re.findall(rf"`(?:anyshape\.)?((?:{tops})(?:\.\w+)+)(?:\(\w*\))?`", text)
    return [
        *(path for path in paths if not (ROOT / path).exists()),
        *(name for name in names if not _is_importable(f"anyshape.{name}")),
        *(name for name in re.findall(r"`(test_\w+)`", text) if f"def {name}(" not in TESTS),
    ]


def _is_importable(name: str) -> bool:
    try:
        resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


@pytest.mark.parametrize("page", NAMED)
def test_paths_and_names_exist(page: str) -> None:
    assert absent(NAMED[page]) == []


def test_a_path_or_a_name_that_does_not_exist_is_noticed() -> None:
    text = "`tests/none.py` `solver/` `solver.none.that` `anyshape.solver.decide` `test_no_such_test`"
    assert absent(text) == ["tests/none.py", "solver.none.that", "test_no_such_test"]


def test_every_folder_has_its_line_in_the_architecture() -> None:
    page = NAMED["architecture.md"]
    rooms = {init.parent for folder in PACKAGES for init in (ROOT / folder).glob("*/__init__.py")}
    assert [room.name for room in sorted(rooms) if f"`{room.relative_to(ROOT)}/`" not in page] == []


def test_the_rooms_are_in_the_order_of_the_contracts() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    layers = {
        contract["containers"][0].removeprefix("anyshape."): contract["layers"]
        for contract in project["tool"]["importlinter"]["contracts"]
        if contract["name"].startswith("rooms of ")
    }
    for folder in ("constraints", "solver", "tracer"):
        rooms = re.findall(rf"^\| `{folder}/(\w+)/` \|", NAMED["architecture.md"], re.MULTILINE)
        assert rooms == [layer for layer in reversed(layers[folder]) if (ROOT / folder / layer).is_dir()]


def test_the_architecture_names_files_that_there_are() -> None:
    folders = [ROOT / folder for folder in (*PACKAGES, "tests", "benchmarks")]
    there = {path.name for folder in folders for path in folder.rglob("*.py")}
    assert {*re.findall(r"`(?:\w+/)*(\w+\.py)`", NAMED["architecture.md"])} - there == set()
