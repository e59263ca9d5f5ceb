"""The axes of jaxtyping, `"b 3 *rest"`, as sizes of a spec.

The modifiers have the meaning that jaxtyping documents. An axis whose name begins with `_` is not bound, so
equal names imply nothing; nor does `...`. `rows=4` is 4. A name is one size wherever it occurs, and `*name`
one row of sizes, which is unrelated to the size `name`. `{n}` is the value of the argument `n`, which is
unrelated to the size `n`. `?name` exists only within a PyTree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from ...constraints.ir.spec_text import SpecError

HINT: Final = 'declare the inputs: --input "x: float32[b, 3]", inputs="x: float32[b, 3]" in Python'
_NAME: Final = re.compile(r"(?<![\w.])[^\W\d]\w*(?!\w*\s*\()")
"""A name in an expression that is not called."""
_VALUE: Final = re.compile(r"\{([^{}]*)\}")
"""`{n}`: replaced by the value of the expression before the rest is read."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis, or with `row` any number of them."""

    size: str
    """A name, a number or an expression; empty where the axis is not bound."""
    row: bool = False


def axes_of(dims: str) -> tuple[Axis, ...]:
    """The axes of an annotation. Raises SpecError on what jaxtyping refuses, or a spec cannot say."""
    return tuple(_axis(part, dims) for part in dims.split())


def _axis(part: str, dims: str) -> Axis:
    if part == "...":
        return Axis("", row=True)
    size, modifiers = part, ""
    while size and (size[0] in "#*_?" or size.count("=") == 1):
        if size[0] in "#*_?":
            modifiers, size = modifiers + size[0], size[1:]
        else:
            size = size.partition("=")[2]
    if wrong := _wrong(modifiers, size):
        raise SpecError(f"{part!r} {wrong}", dims, dims.index(part) + 1, HINT)
    return Axis("" if "_" in modifiers else size, "*" in modifiers)


def _wrong(modifiers: str, size: str) -> str:
    """Returns the reason why an axis cannot be read; empty where it can."""
    if repeated := next((m for m in modifiers if modifiers.count(m) > 1), ""):
        return f"has {repeated} twice"
    if "#" in modifiers:
        return "is a size that broadcasts, which a spec cannot express"
    if "..." in size or size.endswith("#"):
        return "is no axis: `...` stands alone, and `#` in front"
    if "?" in modifiers and "_" not in modifiers:
        return "is a size that depends on the position in a PyTree, and the argument is not one"
    named = not size or size.isidentifier()
    if "_" in modifiers and not named:
        return "is not bound, which only a name can be"
    if "*" in modifiers and not named:
        return "stands for any number of axes, which only a name can"
    return "" if size or "_" in modifiers else "has no name"


def written(
    input: str, axes: Iterable[Axis], arguments: Mapping[str, str | None], rows: Iterable[str]
) -> list[str]:
    """The axes of an input as sizes of a spec.

    `arguments` has what a spec calls the value of each argument, None for one that is no integer, and `rows`
    the rows that are bound in any input. Raises SpecError.
    """
    # In a spec `...` is the row named after its input. Names with an underscore in front are free: jaxtyping
    # binds none of them.
    unbound = f"*_{input}" if input in rows else "..."
    return [
        (f"*{axis.size}" if axis.size else unbound) if axis.row
        else _size(axis.size, arguments) if axis.size else "?"
        for axis in axes
    ]  # fmt: skip


def _size(size: str, arguments: Mapping[str, str | None]) -> str:
    """Returns the size as a text of a spec, in which names of sizes differ from names of arguments."""

    def value(found: re.Match[str]) -> str:
        return f"({_NAME.sub(argument, found[1])})"

    def argument(found: re.Match[str]) -> str:
        known = arguments.get(found[0])
        if known is None:
            raise SpecError(f"{found[0]!r} in {size!r} is not an integer argument", hint=HINT)
        return known

    def name(found: re.Match[str]) -> str:
        return f"_dim_{found[0]}" if arguments.get(found[0]) == found[0] else found[0]

    parts = _VALUE.split(size)
    if len(parts) == 3 and not parts[0] and not parts[2]:
        return _NAME.sub(argument, parts[1])
    outside = [_NAME.sub(name, part) for part in parts[::2]]
    inside = [value(found) for found in _VALUE.finditer(size)]
    return "".join(text for pair in zip(outside, [*inside, ""], strict=True) for text in pair)
