"""Finds the place in the user's source where a module or a parameter is made, and the numbers given there."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from ...constraints.ir.program import Origin
from ...tracer.host.interpreter import signature
from ...tracer.patches.edits import Constructed, Edit, Rebuilt, module_at
from ..facade import Report
from ..report.codes import Code
from .expressions import Text, arguments, function_around, number_of, read
from .places import leaves_most


@dataclass(frozen=True, slots=True)
class Built:
    """The call in the user's source that built a module."""

    text: Text
    call: ast.Call
    owner: str
    """The path of the module in whose constructor the call stands."""


def built_at(target: Any, path: str) -> Built | None:
    """The call in the user's source that built the module at a path: `self.fc = nn.Linear(400, 10)`.

    Within a `Sequential` or a list it is the member of that place.
    """
    steps = path.split(".")
    for cut in range(len(steps) - 1, -1, -1):
        owner = ".".join(steps[:cut])
        if (found := assigned_at(target.get_submodule(owner), steps[cut])) is not None:
            text, assigned = found
            value: ast.expr | None = assigned
            for step in steps[cut + 1 :]:
                value = _member(value, step)
            return Built(text, value, owner) if isinstance(value, ast.Call) else None
    return None


def numbers_at(target: Any, path: str) -> Origin | None:
    """Returns the line of the call that gave numbers to the constructor of a module: the call that built it,
    or, if that hands on parameters of the constructor around it, the call of that constructor.
    """
    origin = None
    while path and (built := built_at(target, path)) is not None:
        origin = built.text.origin(built.text.span(built.call), Origin(module=path))
        names = {node.id for node in ast.walk(built.call) if isinstance(node, ast.Name)}
        if not names & {*_handed_on(built)}:
            break
        path = built.owner
    return origin


def with_constructors(report: Report, target: Any) -> Report:
    """Returns the report, with the line at which the module of each finding was built that may be faulty: one
    that refuses more than sizes that are no multiples, or too small.
    """
    modules = {
        f.origin.module: module_at(target, f.origin.module)
        for f in report.findings
        if f.code in _FAULTS and not (f.condition and leaves_most(f.condition))
    }
    built = {path: numbers_at(target, path) for path, module in modules.items() if path and module}
    findings = (
        replace(f, built=built.get(f.origin.module)) if f.code in _FAULTS else f for f in report.findings
    )
    return replace(report, findings=tuple(findings))


_FAULTS: Final = frozenset({Code.SHAPE_MISMATCH, Code.CONDITION, Code.RAISES})


def _handed_on(built: Built) -> list[str]:
    """Returns the parameters of the constructor around a call that it does not assign anew."""
    function = function_around(built.text, built.call)
    if function is None or function.name != "__init__":
        return []
    parameters = [a.arg for a in (*function.args.args[1:], *function.args.kwonlyargs)]
    stored = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return [name for name in parameters if name not in stored]


def where_numbers_stand(target: Any, edit: Edit) -> Edit:
    """Returns the change of a constructor's argument as one of the call in which its number stands: if a
    class of the user's hands a parameter of its constructor on, that is the call of the class.
    """
    if not isinstance(edit, Rebuilt) or type(edit.value) is not int:
        return edit
    path, name = _number_at(target, edit.module, edit.parameter)
    built = built_at(target, path)
    if path == edit.module or built is None:
        return edit
    kind = type(module_at(target, path))
    node = argument(built.call, kind, name)
    given = _literals(built.call, kind, name, edit.value)
    if given is None or not (node is None or number_of(node) is not None):
        return edit
    return Constructed(path, name, edit.value, *given, _built_likewise(target, path))


def changed_likewise(target: Any, path: str, name: str) -> tuple[str, ...]:
    """Returns the paths of the other modules whose parameter `name` has the number of the same call."""
    outer, _ = _number_at(target, path, name)
    return tuple(other + path.removeprefix(outer) for other in _built_likewise(target, outer))


def _number_at(target: Any, path: str, name: str) -> tuple[str, str]:
    """Returns the module, and the parameter of its constructor, in whose call the number stands that a
    parameter of a module has.
    """
    while (built := built_at(target, path)) is not None:
        node = argument(built.call, type(module_at(target, path)), name)
        if not (isinstance(node, ast.Name) and node.id in _handed_on(built) and built.owner):
            break
        path, name = built.owner, node.id
    return path, name


def _literals(
    call: ast.Call, kind: type, name: str, value: int
) -> tuple[tuple[Any, ...], tuple[tuple[str, Any], ...]] | None:
    """Returns the arguments of a call with another value of one parameter; None if some are no literals."""
    replaced = argument(call, kind, name)
    new: list[Any] = []
    for node in (*call.args, *(k.value for k in call.keywords)):
        try:
            number = number_of(node)
            new.append(value if node is replaced else ast.literal_eval(node) if number is None else number)
        except (ValueError, TypeError, SyntaxError):
            return None
    if any(k.arg is None for k in call.keywords):
        return None
    count = len(call.args)
    named = {str(k.arg): v for k, v in zip(call.keywords, new[count:], strict=True)}
    return tuple(new[:count]), tuple((named if replaced else named | {name: value}).items())


def _built_likewise(target: Any, path: str) -> tuple[str, ...]:
    """Returns the paths of the other modules that the call which built a module has built, too."""
    built = built_at(target, path)
    if built is None:
        return ()
    kind = type(module_at(target, path))
    found = []
    for other, module in target.named_modules():
        if other and other != path and type(module) is kind:
            its = built_at(target, other)
            if its is not None and its.call is built.call:
                found.append(other)
    return tuple(found)


def assigned_at(owner: Any, name: str) -> tuple[Text, ast.expr] | None:
    """Returns the expression that the class of a module assigns to `self.name`, with its file."""
    found = (_assignment(kind, name) for kind in type(owner).__mro__)
    return next((assignment for assignment in found if assignment is not None), None)


@lru_cache(maxsize=1024)
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
    """The member of `nn.Sequential(…)` or of `nn.ModuleList([…])` at a place; of a comprehension, the
    expression that makes each.
    """
    if not isinstance(value, ast.Call) or not step.isdigit():
        return None
    members = arguments(value)
    if len(members) == 1:
        only = members[0].value if isinstance(members[0], ast.Starred) else members[0]
        if isinstance(only, ast.ListComp | ast.GeneratorExp):
            return only.elt
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
