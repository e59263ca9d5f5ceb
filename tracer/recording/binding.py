"""Binds the arguments of a target as a spec declares them."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...constraints.ir.program import Origin
from ...constraints.ir.spec import Declared
from ...constraints.ir.spec_text import suggestion
from ..host.interpreter import signature


class NotCallable(Exception):
    """Raised where the target cannot be called as the spec says, or fails for a reason other than sizes."""

    def __init__(self, problem: str, origin: Origin | None = None, hint: str = "") -> None:
        super().__init__(problem)
        self.hint = hint
        self.origin = origin or Origin()
        """The line of the program that fails, if one does."""


def bind(
    target: Callable[..., Any], inputs: Sequence[Declared], build: Callable[[Declared], Any]
) -> inspect.BoundArguments:
    """Returns the target's arguments as the spec declares them, each leaf made by `build`.

    Raises TargetError, naming the target's parameters, where the two do not fit.
    """
    function = target.forward if isinstance(target, torch.nn.Module) else target
    roots: dict[str, Any] = {}
    for declared in inputs:
        _place(roots, declared, build(declared))
    try:
        takes = signature(function)
    except ValueError:  # a builtin (`torch.relu`): its arguments are given in the order of the spec
        return inspect.signature(lambda *given: None).bind(*roots.values())
    names = ", ".join(takes.parameters) or "no arguments"
    if not any(p.kind is p.VAR_KEYWORD for p in takes.parameters.values()):
        for name in roots.keys() - takes.parameters.keys():
            near = suggestion(name, takes.parameters)
            raise NotCallable(f"the target has no parameter {name!r}; it takes ({names})", hint=near)
    for name, value in roots.items():
        record = record_class(function, name)
        if record is not None and isinstance(value, dict):
            roots[name] = _record(record, name, value)
    kinds = {name: p.kind for name, p in takes.parameters.items() if name in roots}
    by_place: list[Any] = [inspect.Parameter.POSITIONAL_ONLY]
    if inspect.Parameter.VAR_POSITIONAL in kinds.values():  # `*rest` comes after all that stands before it
        by_place.append(inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional: list[Any] = []
    named = dict(roots)
    for name, kind in kinds.items():
        if kind is inspect.Parameter.VAR_POSITIONAL:
            rest = named.pop(name)
            positional.extend(rest if isinstance(rest, list) else [rest])
        elif kind in by_place:
            positional.append(named.pop(name))
    try:
        return takes.bind(*positional, **named)
    except TypeError as error:
        raise NotCallable(f"the inputs do not fit the target: {error}; it takes ({names})") from None


def record_class(function: Callable[..., Any], name: str) -> type | None:
    """Returns the dataclass or the named tuple that annotates a parameter, if it has such an annotation. An
    annotation that is a text is looked up as a name and not evaluated.
    """
    plain = inspect.unwrap(function)
    kind = getattr(plain, "__annotations__", {}).get(name)
    if isinstance(kind, str):
        kind = getattr(plain, "__globals__", {}).get(kind)
    if not isinstance(kind, type):
        return None
    named = issubclass(kind, tuple) and hasattr(kind, "_fields")
    return kind if named or dataclasses.is_dataclass(kind) else None


def fields_of(kind: type) -> tuple[str, ...]:
    """Returns the names of the fields of a dataclass or of a named tuple that have to be given."""
    needed = [p.name for p in signature(kind).parameters.values() if p.default is p.empty]
    return tuple(needed)


def _record(kind: type, name: str, values: dict[str, Any]) -> Any:
    """Returns an object of a dataclass or of a named tuple with these fields."""
    known = signature(kind).parameters
    for field in values.keys() - known.keys():
        hint = suggestion(field, known)
        raise NotCallable(f"{name} is a {kind.__name__}, which has no field {field!r}", hint=hint)
    try:
        return kind(**values)
    except TypeError as error:
        raise NotCallable(f"{name} is a {kind.__name__}, which is not made: {error}") from None


def _place(roots: dict[str, Any], declared: Declared, value: Any) -> None:
    """Puts a value at its path: a string step makes a dict, an integer step a list."""
    holder: Any = roots
    path = declared.path
    for step, following in zip(path, (*path[1:], None), strict=True):
        if isinstance(holder, list):
            holder.extend([None] * (int(step) + 1 - len(holder)))
            inside = holder[int(step)]
        else:
            inside = holder.get(step)
        if following is None:
            inside = value
        elif inside is None:
            inside = [] if isinstance(following, int) else {}
        holder[step] = inside
        holder = inside
