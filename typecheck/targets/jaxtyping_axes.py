"""The axes of jaxtyping, `"b 3 *rest"`, as sizes of a spec.

The modifiers have the meaning that jaxtyping documents. An axis whose name begins with `_` is not bound, so
equal names imply nothing; nor does `...`. `rows=4` is 4. A name is one size wherever it occurs, and `*name`
one row of sizes, which is unrelated to the size `name`. `{n}` is the value of the argument `n`, which is
unrelated to the size `n`. `?name` exists only within a PyTree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ...constraints.ir.annotations import BRACES, PATH, joins, looked_up_in
from ...constraints.ir.claims import ANY_ROW, Axis
from ...constraints.ir.spec_text import SpecError

HINT: Final = 'declare the inputs: --input "x: float32[b, 3]", inputs="x: float32[b, 3]" in Python'
_NAME: Final = re.compile(r"(?<![\w.])[^\W\d]\w*(?!\w*\s*\()")
"""A name in an expression that is not called."""


def axes_of(dims: str) -> tuple[Axis, ...]:
    """The axes of an annotation. Raises SpecError on what jaxtyping refuses, or a spec cannot say."""
    axes = tuple(_axis(part, dims) for part in dims.split())
    if sum(axis.row for axis in axes) > 1:
        raise SpecError("any number of axes may stand at one position only", dims, hint=HINT)
    return axes


def _axis(part: str, dims: str) -> Axis:
    if part == "...":
        return ANY_ROW
    size, modifiers = part, ""
    while size and (size[0] in "#*_?" or size.count("=") == 1):
        if size[0] in "#*_?":
            modifiers, size = modifiers + size[0], size[1:]
        else:
            size = size.partition("=")[2]
    if wrong := _wrong(modifiers, size):
        raise SpecError(f"{part!r} {wrong}", dims, dims.index(part) + 1, HINT)
    if "_" in modifiers:
        return Axis(row="*" in modifiers)
    return Axis(size, "*" in modifiers, "#" in modifiers, "?" in modifiers)


def _wrong(modifiers: str, size: str) -> str:
    """Returns the reason why an axis cannot be read; empty where it can."""
    if repeated := next((m for m in modifiers if modifiers.count(m) > 1), ""):
        return f"has {repeated} twice"
    if "..." in size or size.endswith("#"):
        return "is no axis: `...` stands alone, and `#` in front"
    if "," in size and "(" not in size:
        return "has a comma; blanks separate axes"
    named = not size or size.isidentifier()
    if "_" in modifiers and not named:
        return "is not bound, which only a name can be"
    if "_" in modifiers and "#" in modifiers:
        return "is not bound, and so does not broadcast"
    if "*" in modifiers and not named:
        return "stands for any number of axes, which only a name can"
    if "?" in modifiers and not named:
        return "differs among the leaves of a PyTree, which only a name can"
    return "" if size or "_" in modifiers else "has no name"


def written(
    input: str, axes: Iterable[Axis], arguments: Mapping[str, str | None], rows: Iterable[str], owner: Any
) -> list[str]:
    """The axes of an input as sizes of a spec.

    `arguments` has what a spec calls the value of each argument, None for one that is no integer, `rows` the
    rows that are bound in any input, and `owner` is what `self` means. Raises SpecError.
    """
    # In a spec `...` is the row named after its input. Names with an underscore in front are free: jaxtyping
    # binds none of them.
    unbound = f"*_{input}" if input in rows else "..."
    return [
        (f"*{axis.size}" if axis.size else unbound) if axis.row
        else _size(axis, arguments, owner) if axis.size else "?"
        for axis in axes
    ]  # fmt: skip


def _size(axis: Axis, arguments: Mapping[str, str | None], owner: Any) -> str:
    """Returns the size as a text of a spec, in which names of sizes differ from names of arguments."""
    size = axis.size
    if axis.per_leaf:
        told = f"'?{size}' depends on the position in a PyTree, and the argument is not one"
        raise SpecError(told, hint=HINT)

    def value(found: re.Match[str]) -> str:
        inside = PATH.sub(argument, found[1])
        if not joins(found):
            return f"({inside})"
        if not inside.isdecimal():
            raise SpecError(f"{found[0]} in {size!r} is a part of a name, and no number", hint=HINT)
        return inside

    def argument(found: re.Match[str]) -> str:
        known = arguments.get(found[0])
        if known is None and type(number := looked_up_in(found[0], {"self": owner})) is int:
            return str(number)
        if known is None:
            raise SpecError(f"{found[0]!r} in {size!r} is not an integer argument", hint=HINT)
        return known

    def name(found: re.Match[str]) -> str:
        return f"_dim_{found[0]}" if arguments.get(found[0]) == found[0] else found[0]

    values = [*BRACES.finditer(size)]
    if len(values) == 1 and values[0][0] == size:
        return PATH.sub(argument, values[0][1])
    outside = [_NAME.sub(name, part) for part in BRACES.split(size)[::2]]
    pairs = zip(outside, [*map(value, values), ""], strict=True)
    return "".join(text for pair in pairs for text in pair)
