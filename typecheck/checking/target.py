"""Resolves a TARGET: `file.py:Name`, `package.module:Name`, a saved `.pt2`, or a Python object.

torch is imported here only by the user's own code: a `.pt2` is checked without it.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import linecache
import os
import sys
import traceback
from collections.abc import Collection
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NoReturn

from ...constraints.engine.kernels import DEVICES
from ...constraints.ir.program import Origin
from ...constraints.ir.spec_text import suggestion


class TargetError(ValueError):
    """A target that is not there, cannot be made, or cannot be called as the spec says; and what to do."""

    def __init__(self, problem: str, hint: str = "", origin: Origin | None = None) -> None:
        self.problem = problem
        self.hint = hint
        self.origin = origin or Origin()
        """The line of the user's own code that failed, where one did."""
        super().__init__(f"{problem}; {hint}" if hint else problem)


def known_device(device: str | None) -> None:
    """Raises TargetError for a device that nothing is known of."""
    if device is not None and device not in DEVICES:
        raise TargetError(f"{device!r} is no device; known are {', '.join(DEVICES)}")


@dataclass(frozen=True, slots=True)
class Target:
    """A program to check, and the way it is read."""

    name: str
    kind: Literal["python", "exported", "pt2", "traced", "recorded"]
    value: Any
    """A callable, an `ExportedProgram`, the path of an archive, or a program that was read already."""


def resolve(target: Any, inputs: Collection[str] = ()) -> Target:
    """Returns the target that a text or an object denotes. `inputs` are the names of the declared inputs.

    A class is built without arguments. A function that a text names is called as a factory, where it needs no
    arguments and takes none of the inputs.
    """
    if isinstance(target, Target):
        return target
    if isinstance(target, os.PathLike):
        target = os.fspath(target)
    if isinstance(target, str):
        if target.endswith(".pt2"):
            return _archive(target)
        value = _named(target)
        return _made(_call(value, target) if _is_factory(value, inputs) else value, target)
    return _made(target, getattr(target, "__name__", type(target).__name__))


def _archive(path: str) -> Target:
    if not os.path.isfile(path):
        what = "is a folder, not a file" if os.path.isdir(path) else "does not exist"
        raise TargetError(f"{path} {what}", _near_file(path))
    return Target(path, "pt2", path)


def _made(value: Any, name: str) -> Target:
    if inspect.ismodule(value):
        raise TargetError(f"{name} is a module", _choices(value))
    if isinstance(value, type):
        value = _call(value, name)
    if _is_exported(value):
        return Target(name, "exported", value)
    if isinstance(value, str) and value.endswith(".pt2"):
        return _archive(value)
    if not callable(value):
        raise TargetError(
            f"{name} is of type {type(value).__name__} and cannot be called",
            "a target is a class, a model, a function, or a function that makes one of these",
        )
    return Target(name, "python", value)


def _is_exported(value: Any) -> bool:
    """Returns whether the value is an ExportedProgram. Does not import torch: where such a value exists,
    torch is imported already.
    """
    return any(
        (c.__module__, c.__name__) == ("torch.export.exported_program", "ExportedProgram")
        for c in type(value).__mro__
    )


def is_graph_module(value: Any) -> bool:
    """Is it a graph of torch.fx? Asked without importing torch."""
    return any(
        (c.__module__, c.__name__) == ("torch.fx.graph_module", "GraphModule") for c in type(value).__mro__
    )


def _is_factory(value: Any, inputs: Collection[str]) -> bool:
    if not inspect.isfunction(value):
        return False
    takes = _signature(value)
    parameters = takes.parameters.values()
    required = [
        p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    takes_any = any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters)
    return not required and not takes_any and not {*inputs} & takes.parameters.keys()


def _signature(function: Any) -> inspect.Signature:
    from ...tracer.host.interpreter import signature  # which a Python may not have what it takes for

    return signature(function)


def _call(factory: Any, name: str) -> Any:
    try:
        _signature(factory).bind()
    except TypeError:
        takes = _signature(factory)
        raise TargetError(
            f"{name} takes arguments: {name.rpartition(':')[2]}{takes}",
            "name an instance, or a function without arguments that makes one",
        ) from None
    except ValueError:
        pass  # a signature that cannot be read: calling tells
    try:
        return factory()
    except Exception as error:  # whatever the user's own constructor raises is told with its line
        raise TargetError(f"{name}() failed: {_told(error)}", origin=_last_line(error)) from error


# ---- names


def _named(text: str) -> Any:
    """The object that `file.py:Name` or `package.module:Name` names."""
    source, colon, name = text.rpartition(":")
    if not colon or (len(source) == 1 and name.startswith(("\\", "/"))):  # a drive: C:\model.py
        source, name = text, ""
    if not source.endswith(".py") and not all(map(str.isidentifier, source.split("."))):
        raise TargetError(f"{text!r} is not a target", _near_file(text) or _FORMS)
    if not name and os.path.isdir(source):
        raise TargetError(f"{source} is a folder", _FORMS)
    module = _file(source) if source.endswith(".py") else _module(source)
    if not name:
        raise TargetError(f"{text!r} does not name what to check", _choices(module, source))
    value: Any = module
    for part in name.split("."):
        if not hasattr(value, part):
            where = source if value is module else f"{source}:{name.rpartition('.')[0]}"
            known = [n for n in vars(value) if not n.startswith("_")] if hasattr(value, "__dict__") else []
            hint = suggestion(part, known) or (_choices(module, source) if value is module else "")
            raise TargetError(f"{where} has no {part!r}", hint)
        value = getattr(value, part)
    return value


_FORMS = "a target is file.py:Name, package.module:Name, or the path of a .pt2"


def _file(path: str) -> ModuleType:
    """Runs a Python file as a module, with its folder on the import path, as `python file.py` has it."""
    if not os.path.isfile(path):
        what = "is a folder, not a file" if os.path.isdir(path) else "does not exist"
        raise TargetError(f"{path} {what}", _near_file(path))
    absolute = os.path.abspath(path)
    _on_path(os.path.dirname(absolute))
    # A name of its own: the file may be called as a module that is imported already, `torch.py` among them.
    name = f"anyshape_target_{Path(path).stem}"
    spec = importlib.util.spec_from_file_location(name, absolute, loader=_FromSource(name, absolute))
    assert spec is not None and spec.loader is not None, absolute
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look their module up here
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        del sys.modules[name]
        raise TargetError(f"{path} cannot be imported: {_told(error)}", origin=_last_line(error)) from error
    return module


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
        raise TargetError(f"{name} cannot be imported: {_told(error)}", origin=_last_line(error)) from error
    except (Exception, SystemExit) as error:
        raise TargetError(f"{name} cannot be imported: {_told(error)}", origin=_last_line(error)) from error


def _on_path(folder: str) -> None:
    if folder not in sys.path:
        sys.path.insert(0, folder)


# ---- words


def _told(error: BaseException) -> str:
    return traceback.format_exception_only(error)[-1].strip()


def _last_line(error: BaseException) -> Origin:
    """The line where the exception came from; of a syntax error the line that is wrong."""
    if isinstance(error, SyntaxError) and error.filename:
        line = error.lineno or 0
        return Origin(error.filename, line, code=linecache.getline(error.filename, line).strip())
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith(("<", _OURS))]
    if not frames:
        return Origin()
    own = [
        f
        for f in frames
        if os.sep + "site-packages" + os.sep not in f.filename and not f.filename.startswith(_STDLIB)
    ]
    frame = (own or frames)[-1]
    return Origin(frame.filename, frame.lineno or 0, frame.name, code=frame.line or "")


_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_STDLIB = os.path.dirname(os.path.abspath(os.__file__))


def _choices(module: ModuleType, source: str = "") -> str:
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


def _near_file(path: str) -> str:
    """A file of a similar name in the same folder."""
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        return f"there is no folder {folder}"
    return suggestion(os.path.basename(path), os.listdir(folder))
