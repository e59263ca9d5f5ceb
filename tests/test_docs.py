"""The examples in README.md and docs/ run.

On each page the blocks share one namespace and one folder, in order. A block marked `python runs` is
executed, one marked `pycon` is a session that shows its output, checked as a doctest. A block marked `console
runs` has commands with their output, where `…` stands for lines or for the rest of one, and a block with a
title is a file. Every other block is there to be read, and so is one with a module that the installed torch
does not have yet.
"""
from __future__ import annotations

import contextlib
import doctest
import io
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType
from typing import Any

import pytest

import anyshape
from anyshape.tracer.host.operators import INSTALLED
from anyshape.typecheck.cli.main import main

ROOT = Path(__file__).parent.parent
PAGES = [page for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if page.exists()]

SINCE = {"torch.fx.experimental.dynamic_spec": (2, 13)}
"""The first release of torch that has a module."""

_BLOCK = re.compile(
    r"^```(?P<mark>python runs|pycon|console runs|\w+ title=\"(?P<file>[\w./-]+)\")\n(?P<code>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """An example: how it is run, its text, and the line of the page that it starts at."""

    mark: str
    code: str
    line: int
    file: str | None = None
    """The name of the file whose text it is."""


def blocks(text: str) -> list[Block]:
    found = _BLOCK.finditer(text)
    return [
        Block(m["mark"], m["code"], text.count("\n", 0, m.start("code")) + 1, m["file"]) for m in found
    ]


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
            elif block.mark == "console runs":
                _commands(page, block)
            elif block.file is not None:
                Path(block.file).write_text(block.code)
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


def _commands(page: str, block: Block) -> None:
    """Runs the commands of a block. Raises AssertionError where one prints other than what follows it."""
    code = 0
    for session in re.split(r"^\$ ", block.code, flags=re.MULTILINE)[1:]:
        command, _, shown = session.partition("\n")
        printed, code = (f"{code}\n", 0) if command == "echo $?" else _ran(command)
        like = re.escape(shown).replace("…\\\n", "…\n")
        like = re.sub(r"^…\n", r"(?s:.*\n)?", like, flags=re.MULTILINE).replace("…", ".*")
        told = f"{page}, from line {block.line}: {command}\nshown:\n{shown}\nprinted:\n{printed}"
        assert re.fullmatch(like, printed), told


def _ran(command: str) -> tuple[str, int]:
    """Returns what a command prints, and its exit code."""
    name, *arguments = shlex.split(command)
    if name == "anyshape":  # here, where torch is imported already
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            code = main(arguments)
        return printed.getvalue(), code
    assert name == "python", f"{name} is no command that the tests run"
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    return done.stdout, done.returncode


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one, with a cache of its own and a terminal of 100 columns."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("ANYSHAPE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path / "here"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_the_page_run(page: Path, folder: Path) -> None:
    text = page.read_text()
    try:
        run(str(page.relative_to(ROOT)), text)
    finally:  # what the page imported from its own files
        for file in {block.file for block in blocks(text) if block.file}:
            sys.modules.pop(Path(file).stem, None)


@pytest.mark.parametrize("shown", ["proved: f.py:f runs for…\n", "…\n", "proved…\n…\n"])
def test_commands_print_what_the_page_shows(shown: str, folder: Path) -> None:
    file = '```python title="f.py"\ndef f(x):\n    return x + 1\n```\n'
    command = "```console runs\n$ anyshape check f.py:f -i 'x: [b]' --concise\n"
    run("p.md", f"{file}{command}{shown}$ echo $?\n0\n```\n")
    with pytest.raises(AssertionError, match="from line 6"):
        run("p.md", f"{file}{command}{shown.replace('p', 'q').replace('…', '') or 'q'}$ echo $?\n1\n```\n")


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


# ---- the site


SITE = runpy.run_path(str(ROOT / "docs/site/pages.py"))


def test_every_page_is_in_the_navigation() -> None:
    listed = [page for names in SITE["NAVIGATION"].values() for page in names]
    assert sorted([*listed, "index"]) == sorted(SITE["pages"]())


@pytest.mark.parametrize("page", SITE["pages"]().values())
def test_links_lead_to_pages_and_sections(page: str) -> None:
    """`make docs` looks at the same links in the site; here they are those of the repository."""
    text = (ROOT / page).read_text()
    for link, section in re.findall(r"\]\((?!\w+:)([^)#\s]*)(#[^)\s]+)?\)", text):
        target = (ROOT / page).parent / link if link else ROOT / page
        assert target.exists(), link
        assert not section or section[1:] in sections(target.read_text()), link + section
    assert SITE["text_of"](page).count("](../") == 0


def sections(text: str) -> set[str]:
    """Returns the anchors of the headings of a page."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_a_link_to_nothing_is_noticed() -> None:
    with pytest.raises(ValueError, match=r"none\.md"):
        SITE["site_link"]("none.md", "docs/ci.md")
    assert SITE["site_link"]("../CONTRIBUTING.md", "docs/ci.md") == "contributing.md"
    assert SITE["site_link"]("docs/ci.md", "README.md") == "ci.md"
    assert SITE["site_link"]("../pins.txt", "docs/ci.md").endswith("/blob/main/pins.txt")


def test_the_site_has_no_marks_of_the_tests() -> None:
    for page in SITE["pages"]().values():
        assert not re.search(r"^```\w+ ", SITE["text_of"](page), re.MULTILINE), page


def test_the_reference_has_every_name_of_the_package() -> None:
    named = re.findall(r"^\.\. auto(\w+):: (\w+)$", NAMED["api.md"], re.MULTILINE)
    assert sorted(name for _, name in named) == sorted(anyshape.__all__)
    kinds = {"function": type(test_a_link_to_nothing_is_noticed), "class": type, "exception": type}
    assert all(isinstance(getattr(anyshape, name), kinds[kind]) for kind, name in named)


def test_the_readme_links_to_every_page() -> None:
    missing = [page for page in SITE["pages"]().values() if f"]({page})" not in NAMED["README.md"]]
    assert missing == ["README.md"]


def test_the_numbers_of_the_readme_are_those_of_the_coverage() -> None:
    (rules,) = re.findall(r"^(\d+) operators have a rule", NAMED["coverage.md"], re.MULTILINE)
    (told,) = re.findall(r"rules for some ([\d,]+)\s+operators", NAMED["README.md"])
    assert int(told.replace(",", "")) == int(rules) // 50 * 50


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
