"""The operation in which a frame failed, with its operands, from the source text and the frame's variables.

Python keeps no operands once an operation has failed. Those that are names, attributes without code behind
them, constants, and lists of such can be looked up again; of all others nothing is said.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import operator
import textwrap
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, FunctionType, MethodDescriptorType, ModuleType, TracebackType
from typing import Any, Final, NamedTuple, TypeVar, cast

import torch

from ..host.modules import buffers_of, children_of, parameters_of
from .codes import instructions
from .operands import expression

Function = TypeVar("Function", bound=Callable[..., Any])


class Operation(NamedTuple):
    """A call, or an operator of Python's as the function behind it."""

    function: Any
    args: tuple[Any, ...] | None
    """None where they cannot be looked up."""
    kwargs: dict[str, Any]


HANDING_ON: Final[set[CodeType]] = set()
"""The code of the functions marked by `hands_on`."""


def hands_on(function: Function) -> Function:
    """Marks a function of this package that calls another one in the program's place."""
    HANDING_ON.add(cast(FunctionType, function).__code__)
    return function


def innermost(error: BaseException) -> TracebackType | None:
    """Returns the traceback entry of the frame that raised the error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace


def is_raised(trace: TracebackType) -> bool:
    """Returns whether a `raise` or an `assert` in Python raised the error, and not C code."""
    return _instruction(trace) in ("RAISE_VARARGS", "RERAISE")


def failed(trace: TracebackType) -> Operation | None:
    """Returns the operation of C code, or the call, that failed in the frame; None where it is not known."""
    node = _node(trace)
    read = _READ.get(_instruction(trace))
    if node is None or read is None:
        return None
    try:
        return read(node, _Scope(trace.tb_frame))
    except _NotLookedUp:
        return None


def called(frame: FrameType) -> Any:
    """Returns the function that the frame's current instruction calls; None where it is not known."""
    node = expression(frame.f_code, frame.f_lasti)
    try:
        return _Scope(frame).value(node.func) if isinstance(node, ast.Call) else None
    except _NotLookedUp:
        return None


def _instruction(trace: TracebackType) -> str:
    return instructions(trace.tb_frame.f_code)[trace.tb_lasti].opname


def _node(trace: TracebackType) -> ast.AST | None:
    """Returns the expression that the instruction was compiled from, or the only statement on its lines."""
    code = trace.tb_frame.f_code
    first, last, start, stop = [*code.co_positions()][trace.tb_lasti // 2]
    if first is None or last is None or start is None or stop is None:
        return None
    lines = [linecache.getline(code.co_filename, line).encode() for line in range(first, last + 1)]
    before = lines[0][:start]
    parts = [*lines[:-1], lines[-1][:stop]]
    parts[0] = parts[0][start:]
    if before.rstrip().endswith(b"."):
        return None  # the rest of a method call, whose object stands on another line
    try:
        return ast.parse(b"(" + b"".join(parts) + b"\n)", mode="eval").body
    except SyntaxError:
        pass
    try:
        statements = ast.parse(textwrap.dedent(b"".join(lines).decode())).body
    except (SyntaxError, UnicodeDecodeError):
        return None
    return statements[0] if len(statements) == 1 else None


class Part(NamedTuple):
    """A part of a tensor, of any rank."""

    whole: torch.Tensor


class _NotLookedUp(Exception):
    """Raised where an operand cannot be looked up again without running code of the program's."""


class _Scope:
    """The variables of a frame."""

    def __init__(self, frame: FrameType) -> None:
        self._scopes = frame.f_locals, frame.f_globals, vars(builtins)

    def value(self, node: ast.AST) -> Any:
        """Returns the value of an expression."""
        match node:
            case ast.Constant(value=value):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return -value
            case ast.Name(id=name):
                found = next((scope[name] for scope in self._scopes if name in scope), _ABSENT)
                if found is _ABSENT:
                    raise _NotLookedUp
                return found
            case ast.Attribute(value=of, attr=name):
                return _attribute(self.value(of), name)
            case ast.Subscript(value=of) if isinstance(whole := self.value(of), torch.Tensor):
                return Part(whole)
            case ast.List(elts=members):
                return [*self.values(members)]
            case ast.Tuple(elts=members):
                return (*self.values(members),)
            case ast.Lambda():
                return _python
            case ast.Slice(lower=lower, upper=upper, step=step):
                return slice(*(part and self.value(part) for part in (lower, upper, step)))
        raise _NotLookedUp

    def values(self, nodes: list[ast.expr]) -> Iterator[Any]:
        for node in nodes:
            if not isinstance(node, ast.Starred):
                yield self.value(node)
            elif type(several := self.value(node.value)) in (list, tuple):
                yield from several
            else:
                raise _NotLookedUp


_ABSENT: Final = object()


def _python() -> None:
    """Represents any function that is written in Python, where nothing else is known about it."""


def _attribute(of: Any, name: str) -> Any:
    """Returns an attribute that is stored, or a method, without running code of the program's."""
    found = inspect.getattr_static(of, name, _ABSENT)
    if found is _ABSENT and isinstance(of, torch.nn.Module):
        held = (parameters_of(of), buffers_of(of), children_of(of))
        found = next((tensors[name] for tensors in held if name in tensors), _ABSENT)
    if found is _ABSENT:
        raise _NotLookedUp
    if not hasattr(type(found), "__get__") or isinstance(of, ModuleType):
        return found
    if isinstance(found, FunctionType | MethodDescriptorType) and not isinstance(of, type):
        return found.__get__(of) if name not in getattr(of, "__dict__", {}) else found
    raise _NotLookedUp


def _call(node: ast.AST, scope: _Scope) -> Operation:
    if not isinstance(node, ast.Call):
        raise _NotLookedUp
    function = scope.value(node.func)
    try:
        args = (*scope.values(node.args),)
        kwargs: dict[str, Any] = {}
        for keyword in node.keywords:
            value = scope.value(keyword.value)
            kwargs |= {keyword.arg: value} if keyword.arg is not None else _mapping(value)
    except _NotLookedUp:
        return Operation(function, None, {})
    return Operation(function, args, kwargs)


def _mapping(value: Any) -> dict[str, Any]:
    if type(value) is not dict:
        raise _NotLookedUp
    return value


def _binary(node: ast.AST, scope: _Scope) -> Operation:
    match node:
        case ast.BinOp(left=left, op=op, right=right) | ast.AugAssign(target=left, op=op, value=right):
            return Operation(OPERATORS[type(op)], (scope.value(left), scope.value(right)), {})
    raise _NotLookedUp


def _subscript(node: ast.AST, scope: _Scope) -> Operation:
    if not isinstance(node, ast.Subscript):
        raise _NotLookedUp
    return Operation(operator.getitem, (scope.value(node.value), scope.value(node.slice)), {})


def _iteration(node: ast.AST, scope: _Scope) -> Operation:
    """Returns the iteration of a loop, or of the only part with a star."""
    match node:
        case ast.For(iter=over) | ast.ListComp(generators=[ast.comprehension(iter=over), *_]):
            pass
        case ast.GeneratorExp(generators=[ast.comprehension(iter=over), *_]):
            pass
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Call(args=parts):
            stars = [part.value for part in parts if isinstance(part, ast.Starred)]
            if len(stars) != 1:
                raise _NotLookedUp
            (over,) = stars
        case _:
            raise _NotLookedUp
    return Operation(iter, (scope.value(over),), {})


OPERATORS: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: operator.pow,
    ast.MatMult: operator.matmul, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
    ast.BitXor: operator.xor, ast.LShift: operator.lshift, ast.RShift: operator.rshift,
}  # fmt: skip
_READ: Final[dict[str, Callable[[ast.AST, _Scope], Operation]]] = {
    "PRECALL": _call, "CALL": _call, "CALL_KW": _call, "CALL_FUNCTION_EX": _call, "BINARY_OP": _binary,
    "BINARY_SUBSCR": _subscript, "GET_ITER": _iteration, "LIST_EXTEND": _iteration,
}  # fmt: skip
"""For each instruction, the operation that it performs on its operands."""
