"""Functions that report the values that they have annotated, while a program is recorded or replayed.

Of `def f(x: T) -> U: y: V = g(x); return h(y)` the code becomes that of

    def f(x: T) -> U:
        CALLED()
        IS(x, T)
        y: V = IS(g(x), V)
        return IS(h(y), U)

where each call of IS is at the line and column of the annotation. Functions without an annotation that the
reader can make something of stay what they are.
"""

from __future__ import annotations
import __future__

import ast
import linecache
import re
import sys
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import reduce
from operator import is_not, or_
from types import CodeType, FunctionType
from typing import Any, Final, TypeAlias

from ...constraints.ir.annotations import Annotation, Each
from ...constraints.ir.claims import LISTENER
from ...constraints.ir.spec_text import DTYPES
from ..bytecode.codes import codes_within
from ..bytecode.origins import is_inner
from ..bytecode.parsing import parsed
from ..host.interpreter import frame_above
from ..host.patches import Setting, together
from .functions import edited_text, first_line, functions_of

CALLED: Final = "annotated_call"
ANNOTATED: Final = "annotated"
"""What a listener hears of: that a function with annotations is called, and that a value has one."""
_CALLED: Final = "_anyshape_called"
_IS: Final = "_anyshape_is"
"""The names of both among the globals of the functions."""
_REASON: Final = "its annotations are compared with its values"
_HINT: Final = re.compile(
    r"jaxtyping|torchtyping|Annotated\[|Tensor\w*\[|(?::|->) *[\"']"
    rf"(?:{'|'.join(DTYPES)})?\[[^A-Z\]\"']*\][\"']"
)
"""What a file has somewhere that annotates a shape by other means than a name from another file."""
_FUTURES: Final = reduce(or_, (getattr(__future__, n).compiler_flag for n in __future__.all_feature_names))
_Function: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"
Read: TypeAlias = "Callable[[ast.expr, Mapping[str, Any]], Annotation | None]"
"""Returns what an annotation says of shapes, by the names in its scope; None if nothing."""


class AnnotatedFunctions:
    """The functions of a program, which report the values that they annotate as long as that is asked for."""

    def __init__(self, target: Any, read: Read) -> None:
        self._functions = [*functions_of(target)]
        self._read = read
        self._codes: list[CodeType] = []
        self._settings: list[Setting] = []

    def reporting(self) -> AbstractContextManager[None]:
        """Makes the functions report inside the block."""
        codes = [function.__code__ for function in self._functions]
        if len(codes) != len(self._codes) or any(map(is_not, codes, self._codes)):
            self._codes, self._settings = codes, [*self._made()]
        return together(self._settings)

    def _made(self) -> Iterator[Setting]:
        annotations: list[Annotation] = []

        def reported(value: Any, index: int) -> Any:
            """Returns the value, and reports its annotation."""
            listener = LISTENER.get()
            if listener is not None:
                listener(ANNOTATED, (value, frame_above(1)), annotations[index])
            return value

        scopes: dict[int, dict[str, Any]] = {}
        for text, functions in self._by_text():
            scope = functions[0].__globals__
            if not (_HINT.search(text) or any(map(_is_annotation, [*scope.values()]))):
                continue
            found = _AnnotatedSource(text, functions, self._read, annotations)
            for function in functions:
                if (new := found.reporting(function.__code__)) is not None:
                    scopes[id(scope)] = scope
                    yield Setting(function, {"__code__": new}, _REASON)
        for scope in scopes.values():
            yield Setting(scope, {_CALLED: called, _IS: reported}, _REASON)

    def _by_text(self) -> Iterator[tuple[str, list[FunctionType]]]:
        """Yields the texts of the program with the functions compiled from each, in one scope."""
        files: dict[tuple[str, int], list[FunctionType]] = {}
        for function in self._functions:
            code = function.__code__
            if (text := edited_text(code)) is not None:
                yield text, [function]
            elif not is_inner(code.co_filename) and not _is_of_python(function):
                files.setdefault((code.co_filename, id(function.__globals__)), []).append(function)
        for (name, _), functions in files.items():
            yield _text_of_file(name), functions


def _is_of_python(function: FunctionType) -> bool:
    """Returns whether a function belongs to Python's own library, such as `typing.Annotated.__new__`."""
    return f"{function.__module__}".partition(".")[0] in sys.stdlib_module_names


def _text_of_file(name: str) -> str:
    """Returns the text of a file, or of a cell of a notebook as far as Python has noted it."""
    if name.startswith("<") and name not in linecache.cache:
        return ""
    return "".join(linecache.getlines(name))


def _is_annotation(value: Any) -> bool:
    """Returns whether a name stands for an annotation that may have a shape, as one of another file does."""
    if isinstance(value, type):
        return "dim_str" in vars(value)
    return typing.get_origin(value) is typing.Annotated or any(map(_is_annotation, typing.get_args(value)))


def called() -> None:
    """Reports that a function with annotations begins."""
    listener = LISTENER.get()
    if listener is not None:
        listener(CALLED, frame_above(1), None)


class _AnnotatedSource:
    """The text of a file, compiled so that its functions report what they have annotated."""

    def __init__(
        self, text: str, functions: Sequence[FunctionType], read: Read, annotations: list[Annotation]
    ) -> None:
        code = functions[0].__code__
        self._annotations = annotations
        self._scope, self._read = functions[0].__globals__, read
        self._codes: dict[tuple[str, int], CodeType] = {}
        try:
            tree = parsed(text)
        except SyntaxError:
            return
        wanted = {function.__code__.co_firstlineno for function in functions}
        outer = [node for node in _functions_in(tree) if first_line(node) in wanted]
        before = len(annotations)
        for node in {id(node): node for one in outer for node in (one, *_functions_in(one))}.values():
            self._write(node)
        if len(annotations) > before:
            flags = code.co_flags & _FUTURES
            whole = compile(tree, code.co_filename, "exec", flags, dont_inherit=True)
            self._codes = {(c.co_qualname, c.co_firstlineno): c for c in codes_within(whole)}

    def reporting(self, code: CodeType) -> CodeType | None:
        """Returns the code that reports, in place of this one; None where nothing is to be reported."""
        new = self._codes.get((code.co_qualname, code.co_firstlineno))
        if new is None or (new.co_freevars, _parameters(new)) != (code.co_freevars, _parameters(code)):
            return None
        return new if any(_IS in one.co_names for one in (new, *codes_within(new))) else None

    # ---- a function

    def _write(self, function: _Function) -> None:
        before = len(self._annotations)
        entry: list[ast.stmt] = []
        for parameter, several in _annotated_parameters(function.args):
            if (annotation := self._of(parameter.annotation)) is not None and parameter.annotation:
                given = ast.copy_location(ast.Name(parameter.arg, ast.Load()), parameter.annotation)
                call = self._is(given, parameter.annotation, Each(annotation) if several else annotation)
                entry.append(ast.copy_location(ast.Expr(call), call))
        body = [*_own(function.body)]
        returns = None if any(map(_yields, body)) else self._of(function.returns)
        for node in body:
            if isinstance(node, ast.Return) and returns is not None and function.returns is not None:
                value = node.value or ast.copy_location(ast.Constant(None), node)
                node.value = self._is(value, function.returns, returns)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                annotation = self._of(node.annotation)
                if node.value is not None and annotation is not None:
                    node.value = self._is(node.value, node.annotation, annotation)
        if len(self._annotations) > before:
            begins = _located(ast.Expr(_call(_CALLED, [])), function)
            at = 1 if ast.get_docstring(function, clean=False) is not None else 0
            function.body[at:at] = [begins, *entry]

    def _of(self, annotation: ast.expr | None) -> Annotation | None:
        return None if annotation is None else self._read(annotation, self._scope)

    def _is(self, value: ast.expr, at: ast.expr, annotation: Annotation) -> ast.expr:
        self._annotations.append(annotation)
        call = _call(_IS, [value, ast.Constant(len(self._annotations) - 1)])
        for node in (call, call.func, call.args[1]):
            ast.copy_location(node, at)
        return call


def _call(name: str, arguments: list[ast.expr]) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), arguments, [])


def _located(statement: ast.Expr, function: _Function) -> ast.Expr:
    for node in ast.walk(statement):
        if isinstance(node, ast.expr | ast.stmt):
            node.lineno = node.end_lineno = function.lineno
            node.col_offset = node.end_col_offset = function.col_offset
    return statement


def _annotated_parameters(arguments: ast.arguments) -> Iterator[tuple[ast.arg, bool]]:
    """Yields the parameters with an annotation, and whether each has that for all of several values."""
    for parameter in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        yield parameter, False
    for rest in (arguments.vararg, arguments.kwarg):
        if rest is not None:
            yield rest, True


def _own(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yields the nodes of a body but for those of functions and classes within it."""
    todo: list[ast.AST] = [*body]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        yield node
        todo.extend(ast.iter_child_nodes(node))


def _functions_in(node: ast.AST) -> Iterator[_Function]:
    """Yields the functions within a module or a function, those within functions included."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                yield child
            yield from _functions_in(child)


def _yields(node: ast.AST) -> bool:
    return isinstance(node, ast.Yield | ast.YieldFrom)


def _parameters(code: CodeType) -> tuple[str, ...]:
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
