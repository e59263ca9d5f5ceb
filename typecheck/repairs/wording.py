"""Words a change: the old text, the new text, and where it is in the user's source."""

from __future__ import annotations

import ast
from typing import Any

from ...constraints.ir.program import Origin
from ...tracer.patches.edits import (
    Assigned,
    Constructed,
    Edit,
    Projected,
    Rebuilt,
    Resized,
    Rewritten,
    arguments,
    module_at,
)
from ..report.report import Repair
from .changes import number
from .constructors import Built, argument, assigned_at, built_at, is_number, size_in
from .expressions import read


def told(target: Any, edit: Edit, at: Origin) -> Repair:
    """Returns the change in words, with the new text and the text that it replaces, where the source has it.

    `at` is the call for which the change was tried. The target is in its unchanged state.
    """
    match edit:
        case Rebuilt():
            return _argument(target, edit)
        case Constructed():
            return _constructor(target, edit)
        case Assigned():
            return _attribute(module_at(target, edit.module), edit)
        case Resized():
            return _size(module_at(target, edit.module), edit)
        case Projected():
            return _projection(target, edit)
        case Rewritten():
            return _text(edit, at)


def _argument(target: Any, edit: Rebuilt) -> Repair:
    module = module_at(target, edit.module)
    assert module is not None
    old, new = number((arguments(module) or {})[edit.parameter]), _shown(edit.value)
    several = f" and {len(edit.likewise)} like it" if edit.likewise else ""
    what = f"{edit.parameter} of {edit.module}{several}"
    message, like = f"change {old} to {new} ({what})", Origin(module=edit.module)
    built = built_at(target, edit.module)
    if built is None:
        return Repair(message, like, str(old), new)
    return _in_call(built, type(module), edit.parameter, new, what, message, like)


def _constructor(target: Any, edit: Constructed) -> Repair:
    built = built_at(target, edit.module)
    assert built is not None
    several = f" and {len(edit.likewise)} like it" if edit.likewise else ""
    what, new = f"{edit.parameter} of {edit.module}{several}", str(edit.value)
    return _in_call(
        built, type(module_at(target, edit.module)), edit.parameter, new, what,
        f"set {edit.parameter} of {edit.module} to {new}", Origin(module=edit.module),
    )  # fmt: skip


def _in_call(
    built: Built, kind: type, parameter: str, new: str, what: str, message: str, like: Origin
) -> Repair:
    """Returns the change of an argument in the call that built a module; `message` says it where the text of
    the argument is no number.
    """
    text, call = built.text, built.call
    node = argument(call, kind, parameter)
    if node is None:
        old, origin = text.of(call), text.origin(text.span(call), like)
        comma = ", " if call.args or call.keywords else ""
        added = f"{old[:-1].rstrip().removesuffix(',')}{comma}{parameter}={new})"
        found = f"add {parameter}={new} ({like.module})"
        return Repair(found, origin) if "#" in old else Repair(found, origin, old, added)
    if is_number(node):
        origin = text.origin(text.span(node), like)
        return Repair(f"change {text.of(node)} to {new} ({what})", origin, text.of(node), new)
    return Repair(message, text.origin(text.span(call), like))


def _attribute(owner: Any, edit: Assigned) -> Repair:
    old, new = repr(vars(owner)[edit.attribute]), repr(edit.value)
    like = Origin(module=edit.module)
    message = f"change {edit.module or 'self'}.{edit.attribute} from {old} to {new}"
    found = assigned_at(owner, edit.attribute)
    if found is None:
        return Repair(message, like, old, new)
    text, node = found
    origin = text.origin(text.span(node), like)
    if isinstance(node, ast.Constant) and text.of(node) == old:
        return Repair(message, origin, old, new)
    return Repair(message, origin)


def _size(owner: Any, edit: Resized) -> Repair:
    size, like = getattr(owner, edit.name).shape[edit.axis], Origin(module=edit.module)
    message = f"change {size} to {edit.value} (size {edit.axis} of {edit.name})"
    found = assigned_at(owner, edit.name)
    node = found and size_in(found[1], edit.axis, size)
    if found is None or node is None:
        return Repair(message, like)
    text, _ = found
    return Repair(message, text.origin(text.span(node), like), str(size), str(edit.value))


def _projection(target: Any, edit: Projected) -> Repair:
    stride, like = f", stride={edit.stride}" if edit.stride > 1 else "", Origin(module=edit.module)
    new = f"nn.Conv{edit.axes}d({edit.channels[0]}, {edit.channels[1]}, 1{stride})"
    message = f"change nn.Identity() to {new} ({edit.module})"
    built = built_at(target, edit.module)
    if built is None:
        return Repair(message, like)
    text, call = built.text, built.call
    old, origin = text.of(call), text.origin(text.span(call), like)
    if not old.endswith("nn.Identity()"):
        return Repair(message, origin)
    return Repair(message, origin, old, old.removesuffix("nn.Identity()") + new)


def _text(edit: Rewritten, at: Origin) -> Repair:
    text = read(edit.file)
    assert text is not None
    old = text.text[edit.start : edit.stop]
    return Repair(f"change {old} to {edit.text}", text.origin((edit.start, edit.stop), at), old, edit.text)


def _shown(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
