"""The user's own text: the expression that a call stands in, its operands, and the literals that reach it."""

from __future__ import annotations

import ast
import linecache
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from ...constraints.ir.program import Origin
from ...tracer.bytecode.parsing import parsed


@dataclass(frozen=True, slots=True)
class Text:
    """A file of the user's, parsed."""

    file: str
    text: str
    tree: ast.Module
    lines: tuple[str, ...]
    starts: tuple[int, ...]
    """The offset at which each line begins in the text."""

    def offset(self, line: int, column: int) -> int:
        """The character of the text at a line, counted from 1, and a column in bytes, as `ast` counts."""
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode(errors="replace"))

    def span(self, node: ast.expr) -> tuple[int, int]:
        """From which character to which an expression stands, its own parentheses left out."""
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def of(self, node: ast.expr) -> str:
        start, stop = self.span(node)
        return self.text[start:stop]

    def origin(self, span: tuple[int, int], like: Origin) -> Origin:
        """The line on which a span of characters begins, the span marked as far as it stands there."""
        number = bisect_right(self.starts, span[0])
        line = self.lines[number - 1]
        code, indent = line.strip(), len(line) - len(line.lstrip())
        start, stop = (at - self.starts[number - 1] - indent for at in span)
        return replace(
            like, file=self.file, line=number, code=code, indent=indent, start=start,
            stop=min(stop, len(code)),
        )  # fmt: skip


def read(file: str) -> Text | None:
    """The file, if it is Python that can be read."""
    lines = linecache.getlines(file)
    return _parsed(file, tuple(lines)) if lines else None


@lru_cache(maxsize=32)
def _parsed(file: str, lines: tuple[str, ...]) -> Text | None:
    text = "".join(lines)
    try:
        tree = parsed(text)
    except (SyntaxError, ValueError):
        return None
    starts, at = [], 0
    for line in lines:
        starts.append(at)
        at += len(line)
    return Text(file, text, tree, lines, tuple(starts))


def at(text: Text, origin: Origin) -> ast.expr | None:
    """The expression that the call at an origin was compiled from."""
    if not origin.stop:
        return None
    start = text.starts[origin.line - 1] + origin.indent + origin.start
    stop = text.starts[origin.line - 1] + origin.indent + origin.stop
    found = [
        node
        for node in _expressions(text)
        if node.lineno == origin.line and text.span(node)[0] == start
        and (text.span(node)[1] == stop or node.end_lineno != origin.line)
    ]  # fmt: skip
    return max(found, key=lambda node: text.span(node)[1], default=None)


@lru_cache(maxsize=32)
def _expressions(text: Text) -> tuple[ast.expr, ...]:
    kinds = (ast.Call, ast.BinOp, ast.Subscript)
    return tuple(node for node in ast.walk(text.tree) if isinstance(node, kinds))


def operands(node: ast.expr) -> Iterator[ast.expr]:
    """The expressions in a call that may be tensors: its receiver, its arguments, the members of lists."""
    match node:
        case ast.BinOp(left=left, right=right):
            yield from (left, right)
        case ast.Subscript(value=value):
            yield value
        case ast.Call(func=function, args=args, keywords=keywords):
            if isinstance(function, ast.Attribute) and not _is_plain(function.value):
                yield function.value
            for argument in (*args, *(k.value for k in keywords)):
                members = argument.elts if isinstance(argument, ast.List | ast.Tuple) else [argument]
                yield from (m for m in members if not isinstance(m, ast.Constant | ast.Starred | ast.UnaryOp))


def _is_plain(node: ast.expr) -> bool:
    """Returns whether the expression is `self`, a module's path (`self.attn`), or the name of a Python
    module.
    """
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and (node.id in ("self", "torch", "nn", "F", "einops"))


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant that reaches a call: written there, or kept in an attribute of the module."""

    node: ast.expr
    value: Any
    attribute: str = ""


def literals(text: Text, node: ast.expr, module: Any) -> Iterator[Literal]:
    """The literals among the arguments of a call, where needed by way of a name, and attributes of the module
    that the line belongs to.
    """
    match node:
        case ast.Call(args=args, keywords=keywords):
            parts: list[ast.expr] = [*args, *(k.value for k in keywords)]
        case ast.Subscript(slice=index):
            parts = [index]
        case _:
            return
    while parts:
        part = parts.pop(0)
        match part:
            case ast.List(elts=members) | ast.Tuple(elts=members):
                parts = [*members, *parts]
            case ast.Slice(lower=lower, upper=upper):
                parts = [*(p for p in (lower, upper) if p is not None), *parts]
            case ast.Constant(value=int() | str() as value) if not isinstance(value, bool):
                yield Literal(part, value)
            case ast.UnaryOp() | ast.BinOp() if (number := number_of(part)) is not None:
                yield Literal(part, number)
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                held: Any = vars(module).get(name) if module is not None else None
                if isinstance(held, int | str | tuple | list) and not isinstance(held, bool):
                    yield Literal(part, held, name)
            case ast.Name(id=name):
                if (found := _assigned(text, node, name)) is not None:
                    yield found


def number_of(node: ast.expr) -> int | None:
    """Returns the value of an expression of integers, their sums, differences and products alone."""
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return None if (number := number_of(inner)) is None else -number
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as op, right=right):
            a, b = number_of(left), number_of(right)
            if a is None or b is None:
                return None
            return a + b if isinstance(op, ast.Add) else a - b if isinstance(op, ast.Sub) else a * b
    return None


def _assigned(text: Text, node: ast.expr, name: str) -> Literal | None:
    """Returns the one literal that is assigned to a name in the function around an expression."""
    function = function_around(text, node)
    found = [
        a.value
        for a in ast.walk(function or ast.Module([], []))
        if isinstance(a, ast.Assign) and len(a.targets) == 1
        and isinstance(a.targets[0], ast.Name) and a.targets[0].id == name
    ]  # fmt: skip
    if len(found) == 1 and isinstance(found[0], ast.Constant) and type(found[0].value) is int:
        return Literal(found[0], found[0].value)
    return None


def made_by(text: Text, node: ast.expr) -> Iterator[ast.Call]:
    """The calls that the names among the operands of a call were assigned last before it, in its function."""
    function = function_around(text, node)
    for operand in operands(node):
        if isinstance(operand, ast.Name) and function is not None:
            before = [
                a.value
                for a in ast.walk(function)
                if isinstance(a, ast.Assign) and a.lineno < node.lineno
                and any(isinstance(t, ast.Name) and t.id == operand.id for t in a.targets)
            ]  # fmt: skip
            if before and isinstance(before[-1], ast.Call):
                yield before[-1]


def path_of(node: ast.expr) -> str:
    """`attn.heads` of a call `self.attn.heads(…)`."""
    steps = []
    found = node.func if isinstance(node, ast.Call) else node
    while isinstance(found, ast.Attribute):
        steps.append(found.attr)
        found = found.value
    return ".".join(reversed(steps)) if isinstance(found, ast.Name) and found.id == "self" else ""


def function_around(text: Text, node: ast.AST) -> ast.FunctionDef | None:
    """The innermost function that an expression stands in."""
    line = getattr(node, "lineno", 0)
    around = [
        f
        for f in ast.walk(text.tree)
        if isinstance(f, ast.FunctionDef) and f.lineno <= line <= (f.end_lineno or 0)
    ]
    return max(around, key=lambda f: f.lineno, default=None)


def parameters(text: Text, node: ast.expr) -> list[str]:
    """The names of the parameters of the function around an expression, `self` left out."""
    function = function_around(text, node)
    return [] if function is None else [a.arg for a in function.args.args if a.arg != "self"]


def arguments(call: ast.Call) -> list[ast.expr]:
    """Returns the positional arguments of a call, or the members of the one list that is passed instead."""
    if len(call.args) == 1 and isinstance(call.args[0], ast.Tuple | ast.List):
        return call.args[0].elts
    return call.args
