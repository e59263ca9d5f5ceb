"""Compares a release of torch with what `tracer/host/` relies on: private names, and replaced functions.

`sources.json` lists the functions of torch that are replaced, the reasons, and a hash of the text of each in
every release in which it was read. This prints the private names that are gone, and the functions whose text
is another than all that were read, with the difference to the installed release. It exits with 1 if there are
any. `--read` notes that the functions have been read in the release.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import hashlib
import inspect
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import torch

from anyshape.tracer.host.names import NAMES

SOURCES: Final = Path(__file__).parent / "tracer" / "host" / "sources.json"
WHEELS: Final = Path(__file__).parent.parent / "build" / "torch"
INSTALLED: Final = Path(torch.__file__).parent.parent
OPERATORS: Final = "torchgen/packaged/ATen/native/native_functions.yaml"


def release_of(version: str) -> str:
    """`2.13` of `2.13.0+cpu`"""
    return ".".join(version.split(".")[:2])


# ---- sources of a release


def unpacked(release: str) -> Path:
    """The folder with the Python files of a release, whose wheel pip downloads the first time."""
    folder = WHEELS / release
    if not folder.exists():
        # The wheels for macOS are the small ones; the Python files are the same in all.
        tags = [f"--platform=macosx_{major}_0_arm64" for major in range(11, 16)]
        download = ["download", "-q", "--no-deps", "--only-binary=:all:", "--python-version=3.11", *tags]
        subprocess.run(
            [sys.executable, "-m", "pip", *download, f"--dest={WHEELS}", f"torch=={release}.*"], check=True
        )
        wheel = max(WHEELS.glob(f"torch-{release}.*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            python = (n for n in archive.namelist() if n.endswith((".py", ".pyi")) or n == OPERATORS)
            archive.extractall(folder, python)
        wheel.unlink()
    return folder


@cache
def _tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


def text_of(root: Path, place: str) -> str | None:
    """The text of the function at a place such as `torch/_ops.py:OpOverload.__call__`; None without one."""
    file, _, name = place.partition(":")
    if not (root / file).exists():
        return None
    found: list[Any] = [_tree(root / file)]
    for part in name.replace(".<locals>", "").split("."):
        found = [node for outer in found for name, node in _defined(outer) if name == part]
    lines = (root / file).read_text(encoding="utf-8").splitlines(keepends=True)
    starts = (min(d.lineno for d in (node, *getattr(node, "decorator_list", ()))) - 1 for node in found)
    return "".join("".join(lines[a : node.end_lineno]) for a, node in zip(starts, found, strict=True)) or None


def _defined(outer: ast.AST) -> Iterator[tuple[str, Any]]:
    """Yields the names that a module, a class or a function defines, under conditions, too, each with its
    function, class or assignment: a function that is written in C is assigned.
    """
    for node in ast.iter_child_nodes(outer):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name, node
            case ast.Assign(targets=[ast.Name(id=name)]):
                yield name, node
            case _ if not isinstance(node, ast.expr):
                yield from _defined(node)


def place_of(function: Any) -> str:
    """The place of a function of torch that is written in Python, "" of all else."""
    function = inspect.unwrap(function) if callable(function) else function
    code = getattr(function, "__code__", None)
    file = Path(code.co_filename) if code else Path()
    if INSTALLED / "torch" not in file.parents:
        return ""
    return f"{file.relative_to(INSTALLED).as_posix()}:{function.__qualname__}"


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


# ---- names of a release


def has(root: Path, name: str) -> bool:
    """Whether a release has a name: of an operator, a module, or what a module defines or imports."""
    if name.startswith("torch.ops.aten."):
        return f"- func: {name.rpartition('.')[2]}(" in (root / OPERATORS).read_text(encoding="utf-8")
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        base = root.joinpath(*parts[:length])
        files = [*base.parent.glob(f"{base.name}.py*"), *base.glob("__init__.py*")]
        if files:
            return length == len(parts) or any(parts[-1] in _bound(file) for file in files)
    return False


@cache
def _bound(file: Path) -> frozenset[str]:
    """All that the file gives a name to, attributes of `self` among it."""
    found: set[str] = set()
    for node in ast.walk(_tree(file)):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                found.add(name)
            case ast.alias(name=name, asname=other):
                found.add(other or name)
    return frozenset(found)


# ---- findings


def gone(root: Path) -> Iterator[str]:
    """The names of torch that a release has not got, and what is done without them."""
    for name, known in NAMES.items():
        if name.startswith("torch.") and not has(root, name):
            yield f"gone: {name} (seen in {known.seen}): {known.without}"


def unread(root: Path, sources: dict[str, Any]) -> Iterator[str]:
    """The replaced functions whose text in a release nobody has read, with what is different in it."""
    for place, known in sources.items():
        text, here = text_of(root, place), text_of(INSTALLED, place)
        if text is None:
            yield f"gone: {place}, replaced because {known['why']}"
        elif digest(text) not in known["read"].values():
            lines = difflib.unified_diff((here or "").splitlines(), text.splitlines(), n=2, lineterm="")
            yield "\n".join((f"to read: {place}, replaced because {known['why']}", *lines))


def read(root: Path, release: str, sources: dict[str, Any]) -> dict[str, Any]:
    """The sources, all of which have been read in a release."""
    found = {}
    for place, known in sorted(sources.items()):
        text = text_of(root, place)
        now = {} if text is None else {release: digest(text)}
        found[place] = {"why": known["why"], "read": known["read"] | now}
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch", metavar="RELEASE", help="such as 2.14; by default the installed one")
    parser.add_argument("--read", action="store_true", help="note that all functions have been read")
    given = parser.parse_args()
    release = given.torch or release_of(torch.__version__)
    root = unpacked(release) if given.torch else INSTALLED
    sources = json.loads(SOURCES.read_text(encoding="utf-8"))
    if given.read:
        SOURCES.write_text(json.dumps(read(root, release, sources), indent=1) + "\n", encoding="utf-8")
        return 0
    findings = [*gone(root), *unread(root, sources)]
    print("\n".join(findings) or f"torch {release}: no name is gone, every replaced function was read")
    return bool(findings)


if __name__ == "__main__":
    sys.exit(main())
