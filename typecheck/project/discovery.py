"""Finds the models of a project by reading its files, of which nothing is imported or run."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ...tracer.bytecode.parsing import parsed

_SKIPPED: Final = frozenset(
    "__pycache__ node_modules site-packages build dist env venv test tests docs doc".split()
)
"""Folders that hold no models of the project's own. Hidden ones, and environments, hold none either."""
_MODULES: Final = frozenset("Module LightningModule".split())
"""Names of the base classes that make a class a model."""
MOST_FILES: Final = 2000
"""At most so many files are read."""


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A class of a project that is a model and no part of another model."""

    file: str
    """As seen from the root, with slashes."""
    name: str
    needs: tuple[str, ...] = ()
    """The parameters of its constructor that have no default, with their annotations."""
    built: str = ""
    """The arguments, all of them literals, with which the project itself builds it somewhere."""

    @property
    def target(self) -> str:
        """Returns the name by which the command line knows the model."""
        arguments = f"({self.built})" if self.built else ""
        return f"{self.file}:{self.name}{arguments}"


@dataclass(slots=True)
class _File:
    """What is read of one file."""

    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    calls: dict[str, list[tuple[str, ast.Call]]] = field(default_factory=dict)
    """The calls of each name, with the class that they stand in."""


def found_models(root: Path) -> list[FoundModel]:
    """Returns the models of a project, in the order of its files."""
    files = {str(path.relative_to(root).as_posix()): _read(path) for path in _files(root)}
    classes = {name: one for file in files.values() for name, one in file.classes.items()}
    models = {name for name in classes if _is_model(name, classes, frozenset())}
    calls: dict[str, list[tuple[str, ast.Call]]] = {}
    for file in files.values():
        for name, found in file.calls.items():
            calls.setdefault(name, []).extend(found)
    bases = {name for one in classes.values() for name in map(_last, one.bases)}
    return [
        FoundModel(path, name, _needs(name, classes), _literal_call(calls.get(name, [])))
        for path, file in files.items()
        for name in file.classes
        if name in models
        and _method(name, "forward", classes) is not None
        and not any(owner in models and owner != name for owner, _ in calls.get(name, []))
        and name not in bases
    ]


def _files(root: Path) -> Iterator[Path]:
    """Yields the Python files of a project, without those of environments and tests."""
    left = MOST_FILES
    for folder, below, names in os.walk(root):
        below[:] = sorted(
            name
            for name in below
            if name not in _SKIPPED
            and not name.startswith(".")
            and not (Path(folder) / name / "pyvenv.cfg").exists()
        )
        for name in sorted(names):
            if name.endswith(".py") and not name.startswith(("test_", "conftest", "setup.")) and left:
                left -= 1
                yield Path(folder) / name


def _read(path: Path) -> _File:
    found = _File()
    try:
        code = parsed(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return found
    for statement in code.body:
        if isinstance(statement, ast.ClassDef):
            found.classes[statement.name] = statement
        owner = statement.name if isinstance(statement, ast.ClassDef) else ""
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and (name := _last(node.func)):
                found.calls.setdefault(name, []).append((owner, node))
    return found


def _last(e: ast.expr) -> str:
    """`Module` of `nn.Module`."""
    return e.attr if isinstance(e, ast.Attribute) else e.id if isinstance(e, ast.Name) else ""


def _is_model(name: str, classes: dict[str, ast.ClassDef], seen: frozenset[str]) -> bool:
    """Returns whether a class is derived from a module of torch, perhaps by other classes of the project."""
    if name not in classes or name in seen:
        return name in _MODULES
    return any(_is_model(_last(base), classes, seen | {name}) for base in classes[name].bases)


def _method(name: str, method: str, classes: dict[str, ast.ClassDef]) -> ast.FunctionDef | None:
    """Returns a method of a class, or of one of its bases in the project."""
    seen: set[str] = set()
    names = [name]
    while names:
        one = names.pop(0)
        if one in seen or one not in classes:
            continue
        seen.add(one)
        for statement in classes[one].body:
            if isinstance(statement, ast.FunctionDef) and statement.name == method:
                return statement
        names += map(_last, classes[one].bases)
    return None


def _needs(name: str, classes: dict[str, ast.ClassDef]) -> tuple[str, ...]:
    """Returns the parameters of a constructor that have no default."""
    constructor = _method(name, "__init__", classes)
    if constructor is None:
        return ()
    given = constructor.args
    by_place = [*given.posonlyargs, *given.args]
    needed = by_place[1 : len(by_place) - len(given.defaults)]
    needed += [
        one for one, default in zip(given.kwonlyargs, given.kw_defaults, strict=True) if default is None
    ]
    return tuple([one.arg if one.annotation is None else ast.unparse(one) for one in needed])


def _literal_call(calls: list[tuple[str, ast.Call]]) -> str:
    """Returns the arguments of the first call that has any, and only literals."""
    for _, call in calls:
        values = [*call.args, *(word.value for word in call.keywords)]
        if values and all(map(_is_literal, values)) and all(word.arg for word in call.keywords):
            return ", ".join(map(ast.unparse, [*call.args, *call.keywords]))
    return ""


def _is_literal(e: ast.expr) -> bool:
    try:
        ast.literal_eval(e)
    except (ValueError, TypeError, RecursionError, MemoryError):
        return False
    return True
