"""Containers that end with the expression that makes them: their keys, and the keys that they meet.

In `len({n, 3})`, `k in {n: 1}` and `{n, m} == {3}` all keys are known that a size might be equal to. A
container that a variable or a result keeps may be searched for any number later, which Python does without
asking the size.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any, Final

from .codes import instructions, per_code
from .operands import NoValue, elements_of, expression, read
from .stack import operands

_USING_UP: Final = frozenset("len bool list tuple sorted sum min max any all iter enumerate".split())
"""Builtins that look up nothing in their argument, and hash nothing in the result."""
_SEARCHING: Final = frozenset("get pop __contains__ __getitem__".split())
_COMPARING: Final = frozenset("issubset issuperset isdisjoint".split())
_COMBINING: Final = frozenset("union intersection difference symmetric_difference".split())


def all_met(frame: FrameType) -> list[Any] | None:
    """Returns the keys of the container that the instruction of a frame makes, and those that it meets before
    the expression ends; None where they are not known, or the container goes on.
    """
    try:
        return [*_put(frame), *_met(frame)]
    except NoValue:
        return None


def _put(frame: FrameType) -> list[Any]:
    """Returns the keys that the instruction puts into a new container. Raises NoValue where it does not make
    one, or they are not known.
    """
    step = instructions(frame.f_code)[frame.f_lasti]
    count = step.arg or 0
    match step.opname:
        case "BUILD_SET":
            found = operands(frame, count)
        case "BUILD_MAP":
            found = operands(frame, 2 * count)
            found = found and found[::2]
        case "SET_UPDATE" | "DICT_UPDATE":
            found = operands(frame, count + 1)
            return _elements(found and [found[0], found[-1]])
        case "CALL" if count == 1:
            return _elements(operands(frame, 1))
        case _:
            raise NoValue
    if found is None:
        raise NoValue
    return found


def _elements(containers: list[Any] | None) -> list[Any]:
    elements = [*map(elements_of, containers or [None])]
    if None in elements:
        raise NoValue
    return [key for each in elements for key in each or ()]


def _met(frame: FrameType) -> Iterator[Any]:
    """Yields what the container meets until it is used up. Raises NoValue where that is not known."""
    made = expression(frame.f_code, frame.f_lasti)
    yield from _read_all(frame, _parts(made))
    for around in _around(frame.f_code, frame.f_lasti):
        if any(isinstance(part, _REBINDING) for part in ast.walk(around)):
            break  # a name may be another value by now
        others, made = _with(frame, around, made)
        yield from _read_all(frame, others)
        if made is None:
            return
    raise NoValue


_REBINDING: Final = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)


def _parts(made: ast.expr | None) -> list[ast.expr]:
    """Returns what a display with stars puts into its container in several steps: its keys, and what is
    unpacked.
    """
    match made:
        case ast.Set(elts=parts) if any(isinstance(part, ast.Starred) for part in parts):
            return [part.value if isinstance(part, ast.Starred) else part for part in parts]
        case ast.Dict(keys=keys, values=values) if None in keys:
            return [key or value for key, value in zip(keys, values, strict=True)]
    return []


def _read_all(frame: FrameType, nodes: list[ast.expr]) -> Iterator[Any]:
    """Yields the values of expressions, and the elements of those that are containers."""
    for node in nodes:
        value = read(frame, ast.Tuple(node.elts) if isinstance(node, ast.List) else node)
        elements = elements_of(value)
        yield from (value,) if elements is None else (value, *elements)


def _is_builtin(function: Any, name: str) -> bool:
    """Returns whether a function is the builtin of this name, or what stands for it during a run."""
    own = str(getattr(function, "__module__", "")).partition(".")[0] == __name__.partition(".")[0]
    return own or function is getattr(builtins, name)


@per_code
def _around(code: CodeType, offset: int) -> tuple[ast.expr, ...]:
    """Returns the expressions that contain that of the instruction at this offset, the innermost first."""
    place = instructions(code)[offset].positions
    found: dict[Any, ast.expr] = {}
    for at, step in instructions(code).items():
        if at > offset and _contains(step.positions, place) and (whole := expression(code, at)) is not None:
            found.setdefault(step.positions, whole)
    ordered = sorted(found, key=lambda p: (p.end_lineno - p.lineno, p.end_col_offset - p.col_offset))
    return tuple(found[p] for p in ordered)


def _contains(whole: Any, part: Any) -> bool:
    """Returns whether a place in the source contains another one, and more."""
    if whole is None or part is None or None in (*whole, *part) or whole == part:
        return False
    begins = (whole.lineno, whole.col_offset) <= (part.lineno, part.col_offset)
    return begins and (part.end_lineno, part.end_col_offset) <= (whole.end_lineno, whole.end_col_offset)


def _with(
    frame: FrameType, around: ast.expr, made: ast.expr | None
) -> tuple[list[ast.expr], ast.expr | None]:
    """Returns what an expression compares a container with, and what goes on of it: None where nothing does.

    Raises NoValue where the expression does something else with the container.
    """

    def is_made(node: ast.expr) -> bool:
        return made is not None and ast.dump(node) == ast.dump(made)

    match around:
        case ast.Call(func=ast.Name(id=name) as called, args=[only], keywords=[]) if is_made(only):
            if name in _USING_UP and _is_builtin(read(frame, called), name):
                return [], None
        case ast.Compare(left=left, ops=[compared], comparators=[right]):
            if is_made(right) and isinstance(compared, ast.In | ast.NotIn | ast.Eq | ast.NotEq):
                return [left], None
            if is_made(left) and isinstance(compared, ast.Eq | ast.NotEq):
                return [right], None
        case ast.Subscript(value=value, slice=key) if is_made(value):
            return [key], None
        case ast.Attribute(value=value) if is_made(value):
            return [], around
        case ast.Call(func=ast.Attribute(attr=name) as method, args=args, keywords=[]) if is_made(method):
            if name in _SEARCHING and args:
                return args[:1], None
            if name in _COMPARING | _COMBINING:
                return args, None if name in _COMPARING else around
        case ast.BinOp(left=left, op=ast.BitOr() | ast.BitAnd() | ast.Sub() | ast.BitXor(), right=right):
            if is_made(left) or is_made(right):
                return [right if is_made(left) else left], around
    raise NoValue
