"""Imports the object that `file.py:Name` or `package.module:Name` names."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import itertools
import os
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NoReturn

from ...constraints.ir.spec_text import suggestion
from ...tracer.bytecode.parsing import parsed
from .at_import import RaisedAtImport, is_of_sizes
from .extras import missing
from .target_error import TargetError, last_line, message_of


def named(text: str) -> tuple[Any, RaisedAtImport | None]:
    """Returns the object that `file.py:Name` or `package.module:Name` names, and the error about sizes that
    its file raises after the object is defined. Raises RaisedAtImport where that happens before.
    """
    source, colon, name = text.rpartition(":")
    if not colon or (len(source) == 1 and name.startswith(("\\", "/"))):  # a drive: C:\model.py
        source, name = text, ""
    if not source.endswith(".py") and not all(map(str.isidentifier, source.split("."))):
        raise TargetError(f"{text!r} is not a target", near_file(text) or _FORMS)
    if not name and os.path.isdir(source):
        raise TargetError(f"{source} is a folder", _FORMS)
    module, raised = _file(source) if source.endswith(".py") else (_module(source), None)
    if not name:
        raise TargetError(f"{text!r} does not name what to check", choices(module, source))
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            if raised is not None:
                raise raised
            where = source if value is module else f"{source}:{name.rpartition('.')[0]}"
            known = [n for n in vars(value) if not n.startswith("_")] if hasattr(value, "__dict__") else []
            hint = suggestion(part, known) or (choices(module, source) if value is module else "")
            raise TargetError(f"{where} has no {part!r}", hint)
        value = getattr(value, part)
    return value, raised


_FORMS = "a target is file.py:Name, package.module:Name, or the path of a .pt2"


def _file(path: str) -> tuple[ModuleType, RaisedAtImport | None]:
    """Runs a Python file as a module, with its folder on the import path, as `python file.py` has it, and
    behind it the root of its project and the current folder. After an error about sizes the module has what
    was defined before.

    A file with relative imports is a module of the package that its folders make.
    """
    if not os.path.isfile(path):
        what = "is a folder, not a file" if os.path.isdir(path) else "does not exist"
        raise TargetError(f"{path} {what}", near_file(path))
    absolute = Path(os.path.abspath(path))
    for folder in (os.getcwd(), *_roots(absolute), str(absolute.parent)):
        _on_path(folder)
    name = _name_in_package(absolute)
    if name is None:
        # A name of its own: the file may be called as a module that is imported already, `torch.py`.
        name = f"anyshape_target_{absolute.stem}"
    spec = importlib.util.spec_from_file_location(name, absolute, loader=_FromSource(name, str(absolute)))
    assert spec is not None and spec.loader is not None, absolute
    module = importlib.util.module_from_spec(spec)
    try:
        if module.__package__:
            importlib.import_module(module.__package__)
        sys.modules[name] = module  # dataclasses and pickle look their module up here
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        if is_of_sizes(error):
            return module, RaisedAtImport(path, error)
        sys.modules.pop(name, None)
        raise _failure(path, error) from error
    return module, None


_MARKS: Final = ("pyproject.toml", "setup.py", "setup.cfg", ".git")
"""What the root of a project has."""


def _roots(file: Path) -> list[str]:
    """Returns the root of the project that a file lies in, and its folder `src`, if there are such."""
    root = next((f for f in file.parents if any((f / mark).exists() for mark in _MARKS)), None)
    return [] if root is None else [str(f) for f in (root / "src", root) if f.is_dir()]


def _name_in_package(file: Path) -> str | None:
    """Returns the name that a file with relative imports has as a module, and puts the folder of the package
    on the import path; None for a file without such imports, and where its folders make no package.

    The package is the outermost folder with an `__init__.py`, or the one that the relative imports reach.
    """
    try:
        code = parsed(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None  # to run the file tells
    level = max((node.level for node in ast.walk(code) if isinstance(node, ast.ImportFrom)), default=0)
    if not level:
        return None
    marked = itertools.takewhile(lambda folder: (folder / "__init__.py").is_file(), file.parents)
    depth = max(level, sum(1 for _ in marked))
    parts = [*file.parts[-depth - 1 : -1], file.stem]
    if depth >= len(file.parents) or not all(map(str.isidentifier, parts)):
        return None
    _on_path(str(file.parents[depth]))
    return ".".join(parts)


def _failure(what: str, error: BaseException) -> TargetError:
    absent = missing(error) if isinstance(error, ModuleNotFoundError) else None
    hint = "" if absent is None else absent.hint
    return TargetError(f"{what} cannot be imported: {message_of(error)}", hint, last_line(error))


class _FromSource(SourceFileLoader):
    """Compiles a file each time. What Python keeps of it is taken for new where a file is saved again within
    the second, with as many bytes: by whom watches files, or repairs one.
    """

    def path_stats(self, path: str) -> NoReturn:
        raise OSError("nothing is kept of this file")


def _module(name: str) -> ModuleType:
    _on_path(os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            hint = f"did you mean {name}.py?" if os.path.isfile(f"{name}.py") else ""
            raise TargetError(f"there is no module {error.name!r}", hint) from None
        raise _failure(name, error) from error
    except (Exception, SystemExit) as error:
        raise _failure(name, error) from error


def _on_path(folder: str) -> None:
    if folder not in sys.path:
        sys.path.insert(0, folder)


def choices(module: ModuleType, source: str = "") -> str:
    """Returns the end of a message that lists the targets a module offers: its own classes and functions."""
    own = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == module.__name__
    ]
    if not own:
        return f"nothing is defined in {source or module.__name__}"
    more = f", and {len(own) - 8} more" if len(own) > 8 else ""
    return f"it defines {', '.join(own[-8:])}{more}"


def near_file(path: str) -> str:
    """A file of a similar name in the same folder."""
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        return f"there is no folder {folder}"
    return suggestion(os.path.basename(path), os.listdir(folder))
