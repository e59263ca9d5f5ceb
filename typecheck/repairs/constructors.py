"""Finds the place in the user's source where a module or a parameter is made, and the numbers given there."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from typing import Any

from ...tracer.host.interpreter import signature
from .expressions import Text, arguments, read


def built_at(target: Any, path: str) -> tuple[Text, ast.Call] | None:
    """The call in the user's source that built the module at a path: `self.fc = nn.Linear(400, 10)`.

    Within a `Sequential` or a list it is the member of that place.
    """
    steps = path.split(".")
    for cut in range(len(steps) - 1, -1, -1):
        owner = target.get_submodule(".".join(steps[:cut]))
        if (found := assigned_at(owner, steps[cut])) is not None:
            text, assigned = found
            value: ast.expr | None = assigned
            for step in steps[cut + 1 :]:
                value = _member(value, step)
            return (text, value) if isinstance(value, ast.Call) else None
    return None


def assigned_at(owner: Any, name: str) -> tuple[Text, ast.expr] | None:
    """Returns the expression that the class of a module assigns to `self.name`, with its file."""
    found = (_assignment(kind, name) for kind in type(owner).__mro__)
    return next((assignment for assignment in found if assignment is not None), None)


def _assignment(kind: type, name: str) -> tuple[Text, ast.expr] | None:
    """Returns the expression that a class assigns to `self.name`, with its file, where it does so exactly
    once.
    """
    try:
        file = inspect.getsourcefile(kind)
    except TypeError:
        return None
    text = read(file) if file else None
    if text is None or kind.__module__.startswith("torch."):
        return None
    found = []
    for owner in ast.walk(text.tree):
        if isinstance(owner, ast.ClassDef) and owner.name == kind.__name__:
            for step in ast.walk(owner):
                if isinstance(step, ast.Assign) and any(_is_self(t, name) for t in step.targets):
                    found.append(step.value)
                elif isinstance(step, ast.Assign) and isinstance(step.targets[0], ast.Tuple):
                    found += _unpacked(step.targets[0], step.value, name)
    return (text, found[0]) if len(found) == 1 else None


def _unpacked(targets: ast.Tuple, value: ast.expr, name: str) -> Iterator[ast.expr]:
    """`self.a, self.b = nn.Linear(1, 2), nn.Linear(3, 4)`."""
    if isinstance(value, ast.Tuple) and len(value.elts) == len(targets.elts):
        yield from (v for t, v in zip(targets.elts, value.elts, strict=True) if _is_self(t, name))
    elif isinstance(value, ast.GeneratorExp) and any(_is_self(t, name) for t in targets.elts):
        yield value.elt


def _is_self(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.value, ast.Name)


def _member(value: ast.expr | None, step: str) -> ast.expr | None:
    """The member of `nn.Sequential(…)` or of `nn.ModuleList([…])` at a place."""
    if not isinstance(value, ast.Call) or not step.isdigit():
        return None
    members = arguments(value)
    if any(isinstance(m, ast.Starred) for m in members) or int(step) >= len(members):
        return None
    return members[int(step)]


def argument(call: ast.Call, kind: type, name: str) -> ast.expr | None:
    """The expression that a constructor was given for a parameter."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    names = [*signature(kind.__init__).parameters][1:]  # type: ignore[misc]
    if name in names and names.index(name) < len(call.args):
        return call.args[names.index(name)]
    recurrent = ["input_size", "hidden_size", "num_layers"]
    if names == ["args", "kwargs"] and name in recurrent and recurrent.index(name) < len(call.args):
        return call.args[recurrent.index(name)]
    return None


def size_in(value: ast.expr, axis: int, size: int) -> ast.expr | None:
    """The literal that is the size of an axis in `nn.Parameter(torch.zeros(1, 16, 8))`."""
    for call in ast.walk(value):
        if isinstance(call, ast.Call):
            for found in arguments(call)[axis : axis + 1]:
                if isinstance(found, ast.Constant) and found.value == size:
                    return found
    return None


def is_number(node: ast.expr) -> bool:
    """Returns whether the expression consists of numbers alone: `400`, `16 * 5 * 5`."""
    kinds = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.Tuple, ast.expr_context)
    return all(isinstance(part, kinds) for part in ast.walk(node))
