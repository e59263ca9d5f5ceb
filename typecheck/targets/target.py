"""Resolves a TARGET: `file.py:Name`, `package.module:Name`, a call of such a name, a saved `.pt2`, or a
Python object.

torch is imported here only by the user's own code: a `.pt2` is checked without it.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any, Literal

from ...constraints.engine.kernels import DEVICES
from ..report.report import Finding
from ..report.target_names import source_of, split_call
from .at_import import ran
from .construction import Arguments, built, is_factory, read_arguments
from .extras import require
from .importing import choices, named, near_file
from .target_error import TargetError


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
    built: bool = False
    """Whether the value was made for this check, by a class or a function."""
    remarks: tuple[Finding, ...] = ()
    """What its file did when it was imported, apart from definitions."""


def resolve(target: Any, inputs: Collection[str] = (), training: bool | None = None) -> Target:
    """Returns the target that a text or an object denotes. `inputs` are the names of the declared inputs.

    A class is built, with the arguments that the text gives. A function that a text names is called as a
    factory if the text gives arguments, or if it needs none and takes none of the inputs. A module that is
    built here is put into evaluation, unless `training` is true.

    Raises TargetError for what cannot be checked, which includes a program in Python where there is no torch.
    """
    if isinstance(target, Target):
        return target
    if isinstance(target, os.PathLike):
        target = os.fspath(target)
    if isinstance(target, str):
        if target.endswith(".pt2"):
            return _archive(target)
        name, written = split_call(target)
        value, raised = named(name)
        makes = written is not None or is_factory(value, inputs)
        if makes:
            value = built(value, name, Arguments() if written is None else read_arguments(written))
        remarks = ran(source) if (source := source_of(name)).endswith(".py") else ()
        made = _made(value, target, makes, training)
        return replace(made, remarks=remarks if raised is None else (raised.finding, *remarks))
    return _made(target, getattr(target, "__name__", type(target).__name__), False, training)


def _archive(path: str) -> Target:
    if not os.path.isfile(path):
        what = "is a folder, not a file" if os.path.isdir(path) else "does not exist"
        raise TargetError(f"{path} {what}", near_file(path))
    return Target(path, "pt2", path)


def _made(value: Any, name: str, made: bool, training: bool | None) -> Target:
    if inspect.ismodule(value):
        raise TargetError(f"{name} is a module", choices(value))
    if isinstance(value, type):
        value, made = built(value, name), True
    if made and is_module(value):
        value.train(training is True)
    if _is_exported(value):
        return Target(name, "exported", value)
    if isinstance(value, str) and value.endswith(".pt2"):
        return _archive(value)
    if not callable(value):
        raise TargetError(
            f"{name} is of type {type(value).__name__} and cannot be called",
            "a target is a class, a model, a function, or a function that makes one of these",
        )
    require("torch")
    return Target(name, "python", value, made)


def is_module(value: Any) -> bool:
    """Returns whether the value is a module of torch. Does not import torch."""
    return _is_of("torch.nn.modules.module", "Module", value)


def _is_exported(value: Any) -> bool:
    """Returns whether the value is an ExportedProgram. Does not import torch."""
    return _is_of("torch.export.exported_program", "ExportedProgram", value)


def is_graph_module(value: Any) -> bool:
    """Returns whether the value is a graph of torch.fx. Does not import torch."""
    return _is_of("torch.fx.graph_module", "GraphModule", value)


def _is_of(module: str, name: str, value: Any) -> bool:
    """Returns whether a value is of a class, or of one derived from it, which is known by its name: where
    such a value exists, its module is imported already.
    """
    return any((c.__module__, c.__name__) == (module, name) for c in type(value).__mro__)
