"""Private names of torch and CPython stand in `tracer/host/`, and each of them in its table."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import host_releases
import pytest
import torch

from anyshape import tracer
from anyshape.tracer.host import releases
from anyshape.tracer.host.names import NAMES

ROOT: Final = Path(tracer.__path__[0]).resolve().parent
HOST: Final = ROOT / "tracer" / "host"
FOLDERS: Final = ("constraints", "solver", "tracer", "typecheck")
FILES: Final = tuple(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))
THEIRS: Final = ("torch", "sympy", "numpy", "sys", "contextlib", "warnings")
DOCUMENTED: Final = frozenset({"_fields", "_make", "_attributes", "_exit", "_value_"})
"""What begins with an underscore and is documented nevertheless: of named tuples, `ast`, `os` and enums."""
PRIVATE: Final = re.compile(r"_[A-Za-z]\w*")
DOTTED: Final = re.compile(r"\w+(\.\w+)*")


def is_private(dotted: str) -> bool:
    return any(map(PRIVATE.fullmatch, dotted.split(".")))


@cache
def tree(file: Path) -> ast.Module:
    return ast.parse(file.read_text(encoding="utf-8"))


@pytest.fixture(scope="module", autouse=True)
def _trees_of_these_tests_alone() -> Iterator[None]:
    """Lets go of the trees, which are millions of objects, after the last test that reads them."""
    yield
    tree.cache_clear()


def members(module: ast.Module) -> Iterator[str]:
    """What the classes of a file have: methods, attributes, slots."""
    for node in ast.walk(module):
        if isinstance(node, ast.ClassDef):
            for member in node.body:
                targets = member.targets if isinstance(member, ast.Assign) else [member]
                for target in targets:
                    named = getattr(target, "target", target)
                    yield getattr(named, "id", getattr(named, "name", ""))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls") else ""


@cache
def own() -> frozenset[str]:
    """All that classes of this package have, and what is documented."""
    return DOCUMENTED.union(*(members(tree(file)) for file in FILES))


LISTED: Final = frozenset(part for name in NAMES for part in name.split(".") if PRIVATE.fullmatch(part))
OPERATORS: Final = frozenset(name.rpartition(".")[2] for name in NAMES if name.startswith("torch.ops."))
"""Rules know operators by name."""


def imported(module: ast.Module) -> Iterator[tuple[int, str, str]]:
    """The lines of absolute imports, what is imported, and the name that the file has for it."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name, alias.asname or ""
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                yield node.lineno, f"{node.module}.{alias.name}", alias.asname or alias.name


def foreign(module: ast.Module) -> Iterator[tuple[int, str]]:
    """The lines with private names of other packages, and these names."""
    homes = {name: name for name in THEIRS}
    for line, what, name in imported(module):
        if what.startswith(THEIRS):
            homes |= {name: what} if name else {}
            if is_private(what):
                yield line, what
    for node in ast.walk(module):
        if isinstance(node, ast.Attribute) and PRIVATE.fullmatch(node.attr):
            root, _, rest = ast.unparse(node.value).partition(".")
            if root in homes:
                yield node.lineno, ".".join(filter(None, (homes[root], rest, node.attr)))
            elif node.attr not in own() or (node.attr in LISTED and not is_own(root)):
                yield node.lineno, node.attr
        elif isinstance(node, ast.Constant) and is_name(str(node.value)):
            yield node.lineno, str(node.value)


def is_own(root: str) -> bool:
    """Whether it is an instance of a class of this package, or the class itself."""
    return root in ("self", "cls") or root[0].isupper()


def is_name(text: str) -> bool:
    """Whether a text is a private name of torch, with its modules or as an attribute."""
    if text.startswith("torch.") and DOTTED.fullmatch(text):
        return is_private(text)
    return text in LISTED - OPERATORS


def test_no_private_name_stands_outside_of_the_host() -> None:
    inside = {HOST, ROOT / "constraints"}  # constraints/ does not import torch, and names its operators
    outside = [file for file in FILES if inside.isdisjoint(file.parents)]
    found = [(str(file.relative_to(ROOT)), *place) for file in outside for place in foreign(tree(file))]
    assert len(outside) > 250
    assert found == []


def test_memory_of_python_is_read_in_the_host_alone() -> None:
    using = [file for file in FILES if any(what == "ctypes" for _, what, _ in imported(tree(file)))]
    assert using != []
    assert [file for file in using if HOST not in file.parents] == []


@pytest.mark.parametrize(
    "text",
    ["import torch._C", "from torch import _refs", "from torch._ops import OpOverload", "x = torch._C.f",
     "from torch import fx\nx = fx._symbolic_trace", "import torch.fx as f\nx = f._x", "x = y._version",
     "x = getattr(y, '_schema')", "x = sys._getframe(1)", "x = import_module('torch._refs')",
     "x = value._never_heard_of"],
)  # fmt: skip
def test_a_private_name_is_seen(text: str) -> None:
    assert [line for line, _ in foreign(ast.parse(text))] == [text.count("\n") + 1]
    assert [*foreign(ast.parse("x = self._run; y = torch.nn.functional.pad; z = 'torch.nn'"))] == []


def test_the_table_has_the_names_that_the_host_uses() -> None:
    used = {name for file in HOST.glob("*.py") if file.name != "names.py" for _, name in foreign(tree(file))}
    parts = {part for name in used for part in name.split(".") if PRIVATE.fullmatch(part)}
    assert parts - LISTED == set()
    assert {last for name in NAMES if PRIVATE.fullmatch(last := name.rpartition(".")[2])} - parts == set()
    whole = {name for name in used if name.startswith("torch.") and not is_private(name.rpartition(".")[2])}
    modules = {name for name in NAMES for name in (name, name.rpartition(".")[0])}
    assert whole - modules == set()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", NAMES)
def test_the_installed_release_has_each_name(name: str) -> None:
    if name.startswith("torch."):
        assert host_releases.has(host_releases.INSTALLED, name)
        first, last = NAMES[name].seen.split("-")
        assert number(first) <= number(releases.OLDEST) <= number(torch.__version__)
        assert number(torch.__version__) <= number(releases.NEWEST) == number(last)
    else:
        module, _, attribute = name.rpartition(".")
        assert hasattr(sys.modules[module], attribute)


def number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split(".")[:2])


def test_a_name_that_is_gone_is_seen() -> None:
    for name in ("torch._C.No", "torch.nowhere.x", "torch.ops.aten._no", "torch._ops.OpOverload._no"):
        assert not host_releases.has(host_releases.INSTALLED, name)


def test_the_oldest_release_is_the_lower_bound() -> None:
    assert f'"torch>={releases.OLDEST}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
