"""The expression that a running frame evaluates, and the containers that its operands are.

The position of an instruction in the source gives the expression. Names are looked up in the frame, and
attributes and members of plain containers are read, all without running code of the program's.
"""

from __future__ import annotations

import ast
import builtins
import dis
import inspect
import linecache
from collections.abc import Callable, Iterable, Mapping
from types import CodeType, FrameType, MemberDescriptorType
from typing import Any, Final

import torch

from .codes import following, instructions, per_code

MOST: Final = 64
"""A size is compared with at most this many keys."""
_PLAIN: Final = (dict, list, tuple)
"""Types whose members are read: a subclass might compute them."""


class NoValue(Exception):
    """Raised where a value is not known without running code."""


def parsed(code: CodeType, positions: dis.Positions | None) -> ast.expr | None:
    """Returns the expression at these positions in the source of the code; None where there is no source."""
    if positions is None:
        return None
    first, last, column, stop = positions
    if first is None or last is None:
        return None
    lines = [linecache.getline(code.co_filename, line).encode() for line in range(first, last + 1)]
    lines[-1] = lines[-1][:stop]
    lines[0] = lines[0][column:]
    try:
        return ast.parse(b"(" + b"".join(lines) + b")", mode="eval").body
    except SyntaxError:
        return None


@per_code
def expression(code: CodeType, offset: int) -> ast.expr | None:
    """Returns the expression whose value the instruction at this offset computes, if it is known."""
    return parsed(code, instructions(code)[offset].positions)


class Keys(tuple[Any, ...]):
    """The keys of a dict or a set that an expression makes."""

    __slots__ = ()


def searched(frame: FrameType, offset: int) -> Any:
    """Returns the container that the instruction at this offset looks something up in: `d[k]`, `k in d`,
    `d.get(k)`; None where it is not known.

    It is the container itself, or its keys, or a tuple of as many elements.
    """
    found = expression(frame.f_code, offset)
    match found:
        case ast.Subscript(value=container, slice=key):
            pass
        case ast.Compare(left=key, comparators=[container], ops=[ast.In() | ast.NotIn()]):
            pass
        case ast.Call(func=ast.Attribute(value=container), args=[key, *_]):
            pass
        case _:
            return None
    if any(isinstance(part, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom) for part in ast.walk(key)):
        return None  # a name may be another value by now
    try:
        return read(frame, container)
    except NoValue:
        return None


def key_of_pairs(frame: FrameType) -> int | None:
    """Returns the number that the frame looks up in the dict that its current call makes, and then drops, as
    in `dict(pairs)[7]`; else None.
    """
    code, call = frame.f_code, frame.f_lasti
    if instructions(code)[call].opname == "PRECALL":  # where Python 3.11 makes calls that it knows
        call = following(code, call)
    made, lookup = expression(code, call), expression(code, following(code, following(code, call)))
    match made, lookup:
        case ast.Call(args=[_], keywords=[]), ast.Subscript(value=whole, slice=ast.Constant(int(key))):
            return key if ast.dump(whole) == ast.dump(made) and _is_dict(frame, made.func) else None
    return None


def _is_dict(frame: FrameType, node: ast.expr) -> bool:
    try:
        return read(frame, node) is builtins.dict
    except NoValue:
        return False


def read(frame: FrameType, node: ast.expr) -> Any:
    """Returns the value of an expression, or a value with the same keys or the same number of elements.

    Raises NoValue where that is not known.
    """
    reader = _READERS.get(type(node))
    if reader is None:
        raise NoValue
    return reader(frame, node)


def _name(frame: FrameType, node: ast.Name) -> Any:
    code, name = frame.f_code, node.id
    local = name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars)
    spaces: Iterable[Mapping[str, Any]]
    spaces = (frame.f_locals,) if local else (frame.f_globals, frame.f_builtins)
    for space in spaces:
        if name in space:
            return space[name]
    raise NoValue


def _attribute(frame: FrameType, node: ast.Attribute) -> Any:
    of = read(frame, node.value)
    if node.attr == "shape" and isinstance(of, torch.Tensor):
        return of.shape
    found = inspect.getattr_static(of, node.attr, NoValue)
    if isinstance(found, MemberDescriptorType):
        found = found.__get__(of)
    if found is NoValue or hasattr(type(found), "__get__"):
        raise NoValue
    return found


def _member(frame: FrameType, node: ast.Subscript) -> Any:
    whole = read(frame, node.value)
    try:
        key = ast.literal_eval(node.slice)
        if type(whole) in _PLAIN or isinstance(whole, torch.Size):
            return whole[key]
    except (ValueError, LookupError, TypeError):
        pass
    raise NoValue


def _dict(frame: FrameType, node: ast.Dict) -> Keys:
    if None in node.keys:
        raise NoValue
    return Keys(read(frame, key) for key in node.keys if key is not None)


def _keys_of_call(frame: FrameType, node: ast.Call) -> Keys:
    """Returns the keys of `dict(a=1, b=2)`, and the elements of `set(found)`."""
    made, names = read(frame, node.func), [keyword.arg for keyword in node.keywords]
    if made is builtins.dict and not node.args and None not in names:
        return Keys(names)
    if made not in (builtins.set, builtins.frozenset) or names or len(node.args) != 1:
        raise NoValue
    elements = elements_of(read(frame, node.args[0]))
    if elements is None:
        raise NoValue
    return Keys(elements)


def elements_of(container: Any) -> list[Any] | None:
    """Returns the elements, or the keys, of a plain container; None of anything else."""
    kind = type(container)
    plain = kind in (*_PLAIN, set, frozenset, range, Keys)
    if not plain and not (issubclass(kind, tuple) and isinstance(container, torch.Size)):
        return None
    return [*container] if len(container) <= MOST else None


def _set(frame: FrameType, node: ast.Set) -> Keys:
    return Keys(_key(frame, node))


def _key(frame: FrameType, node: ast.Tuple | ast.Set) -> tuple[Any, ...]:
    return tuple(read(frame, element) for element in node.elts)


def _list(frame: FrameType, node: ast.List) -> tuple[None, ...]:
    """Returns as many elements."""
    if any(isinstance(element, ast.Starred) for element in node.elts):
        raise NoValue
    return (None,) * len(node.elts)


def _number(frame: FrameType, node: ast.UnaryOp) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        raise NoValue from None


_READERS: Final[Mapping[type, Callable[[FrameType, Any], Any]]] = {
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Subscript: _member,
    ast.Dict: _dict,
    ast.Call: _keys_of_call,
    ast.List: _list,
    ast.Tuple: _key,
    ast.Set: _set,
    ast.Constant: lambda frame, node: node.value,
    ast.UnaryOp: _number,
}
