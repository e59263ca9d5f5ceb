"""The bodies of Python's loops as functions of their own, so that something else than Python can run them.

`for step in x: h = cell(step, h)` becomes

    def body(element, step, h):
        step = element
        h = cell(step, h)
        return step, h
    step, h = LOOP(body, x, ("step", "h"), ("h",), lambda: step, lambda: h)

where LOOP gets the names that the body speaks of, those that are read elsewhere, and their values, as far as
they have any. `[f(step) for step in x]` becomes `GATHER(lambda step: f(step), x)`. Only the code of functions
changes, while it is asked for; their lines stay what they are.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import dis
import functools
import linecache
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from types import CodeType
from typing import Any, Final

from ....tracer.bytecode.codes import codes_within
from ....tracer.bytecode.parsing import parsed
from ....tracer.host.patches import Setting
from ....tracer.patches.functions import first_line, functions_of

LOOP: Final = "_anyshape_loop"
GATHER: Final = "_anyshape_gather"
"""The names, among the globals of the functions, of the runner of a loop and of that of a list comprehension.
"""
_BODY, _ELEMENT = "_anyshape_body", "_anyshape_element"
_STATEMENTS: Final = (
    ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.If, ast.For, ast.Pass, ast.Assert, ast.Raise,
    ast.With, ast.Continue,
)  # fmt: skip
"""The statements that a body may contain: no `break` or `return`, and no new names of another kind."""
_OTHER: Final = (ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr)
_CHANGING: Final = frozenset("append extend insert add update setdefault pop popitem remove clear".split())
"""Methods of Python's containers."""
_FOR: Final = dis.opmap["FOR_ITER"]
_FUTURES: Final = reduce(or_, (getattr(__future__, n).compiler_flag for n in __future__.all_feature_names))


@contextlib.contextmanager
def loops_run_by(run: Callable[..., Any], gather: Callable[..., Any], target: Any) -> Iterator[None]:
    """Inside, the loops of a program's functions are run by `run`, and their list comprehensions by `gather`,
    as far as that is possible.
    """
    scopes: dict[int, dict[str, Any]] = {}
    settings: list[Setting] = []
    for function in functions_of(target):
        new = _with_bodies(function.__code__)
        if new is not None:
            scopes[id(function.__globals__)] = function.__globals__
            settings.append(Setting(function, {"__code__": new}, "its loops are run otherwise"))
    for scope in scopes.values():
        settings.append(Setting(scope, {LOOP: run, GATHER: gather}, "what runs the loops of a program"))
    with contextlib.ExitStack() as stack:
        for setting in settings:
            stack.enter_context(setting.in_force())
        yield


# ---- the code of a function


@functools.cache
def _with_bodies(code: CodeType) -> CodeType | None:
    """Returns the code with its loops in functions of their own; None where no loop can be moved."""
    if not _has_loop(code):
        return None
    try:
        tree = parsed("".join(linecache.getlines(code.co_filename)))
    except SyntaxError:
        return None
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    said = code.co_name, code.co_firstlineno
    found = [node for node in functions if (node.name, first_line(node)) == said]
    if len(found) != 1:
        return None
    writer = _LoopWriter(found[0], code)
    found[0].body = [line for statement in found[0].body for line in writer.written(statement)]
    gathers = _Gathers()
    found[0].body = [gathers.visit(statement) for statement in found[0].body]
    if not writer.count + gathers.count:
        return None
    whole = compile(
        ast.fix_missing_locations(tree), code.co_filename, "exec", code.co_flags & _FUTURES, dont_inherit=True
    )
    for new in codes_within(whole):
        if (new.co_qualname, new.co_firstlineno) == (code.co_qualname, code.co_firstlineno):
            return new if new.co_freevars == code.co_freevars else None
    return None


def _has_loop(code: CodeType) -> bool:
    inner = [c for c in code.co_consts if isinstance(c, CodeType) and c.co_name == "<listcomp>"]
    return bool(inner) or _FOR in code.co_code[::2]


@dataclass
class _LoopWriter:
    """Writes the loops of one function."""

    function: ast.FunctionDef
    code: CodeType
    count: int = 0

    def written(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statement, with loops in it in their other form."""
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            return [statement]
        names = self._names(statement) if isinstance(statement, ast.For) else None
        loop = statement if names is None else _copied(statement)
        for field, value in ast.iter_fields(loop):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                setattr(loop, field, [line for inner in value for line in self.written(inner)])
        if names is None or not isinstance(loop, ast.For):
            return [loop]
        self.count += 1
        read = sorted(names & _loaded(self.function, statement))
        return self._as_function(loop, sorted(names), read)

    def _names(self, loop: ast.For) -> frozenset[str] | None:
        """Returns the local names that the loop uses; None where its body cannot be a function."""
        nodes = [node for part in (loop.target, *loop.body) for node in ast.walk(part)]
        said = [node for node in nodes if isinstance(node, ast.Name)]
        local = {*self.code.co_varnames, *self.code.co_cellvars} - _of_comprehensions(self.function)
        stored = {name.id for name in said if not isinstance(name.ctx, ast.Load)}
        possible = (
            not loop.orelse
            and all(isinstance(n, _STATEMENTS) for n in nodes if isinstance(n, ast.stmt))
            and all(isinstance(n, ast.Name | ast.Tuple | ast.Store) for n in ast.walk(loop.target))
            and not any(isinstance(n, _OTHER) or (isinstance(n, ast.With) and _binds(n)) for n in nodes)
            and not any(isinstance(n.ctx, ast.Del) or n.id in ("super", "__class__", "locals") for n in said)
            and stored <= local  # no globals
            and stored.isdisjoint(self.code.co_cellvars)  # which other functions see, too
            and {*map(_root, filter(_changes, nodes))} <= local
        )
        return frozenset(name.id for name in said if name.id in local) if possible else None

    def _as_function(self, loop: ast.For, names: Sequence[str], read: Sequence[str]) -> list[ast.stmt]:
        values = ", ".join(names) + ","
        given = "".join(f", lambda: {name}" for name in names)
        text = (
            f"def {_BODY}({_ELEMENT}, {values}):\n    pass\n    return ({values})\n"
            f"({values}) = {LOOP}({_BODY}, None, {(*names,)}, {(*read,)}{given})\n"
        )
        body, result = parsed(text).body
        assert isinstance(body, ast.FunctionDef) and isinstance(result, ast.Assign)
        assert isinstance(result.value, ast.Call)
        for node in (*ast.walk(body), *ast.walk(result)):
            ast.copy_location(node, loop)
        element = ast.Assign([loop.target], ast.Name(_ELEMENT, ast.Load()))
        back = body.body[-1]
        assert isinstance(back, ast.Return)
        lines = [_Continues(back).visit(line) for line in loop.body]
        body.body = [ast.copy_location(element, loop), *lines, back]
        result.value.args[1] = loop.iter
        return [body, result]


class _Continues(ast.NodeTransformer):
    """To go on with the next iteration is to return from a body that is a function."""

    def __init__(self, back: ast.Return) -> None:
        self.back = back

    def visit_Continue(self, node: ast.Continue) -> ast.stmt:
        return ast.copy_location(ast.Return(self.back.value), node)

    def visit_For(self, node: ast.For) -> ast.stmt:
        return node  # its own

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        return node


def _changes(node: ast.AST) -> bool:
    """Returns whether the node, as far as the syntax shows, changes an object in place: `a.b = …`, `a[i] =
    …`, `a.append(…)`.
    """
    if isinstance(node, ast.Attribute | ast.Subscript):
        return not isinstance(node.ctx, ast.Load)
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGING


def _root(node: ast.AST) -> str:
    """Returns the name with which the expression begins; empty where it begins otherwise."""
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


class _Gathers(ast.NodeTransformer):
    """List comprehensions over a single iterable, without a condition."""

    count = 0

    def visit_ListComp(self, node: ast.ListComp) -> ast.expr:
        self.generic_visit(node)
        (first, *others) = node.generators
        inner = [part for part in ast.walk(node.elt) if isinstance(part, _OTHER)]
        if others or first.ifs or first.is_async or inner or not isinstance(first.target, ast.Name):
            return node
        self.count += 1
        call = ast.parse(f"{GATHER}(lambda {first.target.id}: None, None)", mode="eval").body
        assert isinstance(call, ast.Call) and isinstance(call.args[0], ast.Lambda)
        for part in ast.walk(call):
            ast.copy_location(part, node)
        call.args[0].body, call.args[1] = node.elt, first.iter
        return call

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        return node


def _copied(loop: ast.stmt) -> ast.stmt:
    """Returns a copy of the statement whose lists of statements can be replaced."""
    return type(loop)(**{**dict(ast.iter_fields(loop)), **{a: getattr(loop, a) for a in loop._attributes}})


def _of_comprehensions(function: ast.FunctionDef) -> frozenset[str]:
    """Returns the names that only comprehensions assign to; from 3.12 on they are variables of the function.
    """
    inner = [part.target for node in ast.walk(function) for part in getattr(node, "generators", ())]
    own = {id(node) for target in inner for node in ast.walk(target)}
    stores = [n for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    others = {n.id for n in stores if id(n) not in own} | {
        n.arg for n in ast.walk(function.args) if isinstance(n, ast.arg)
    }
    return frozenset(n.id for n in stores if id(n) in own) - others


def _binds(block: ast.With) -> bool:
    return any(item.optional_vars is not None for item in block.items)


def _loaded(function: ast.FunctionDef, loop: ast.stmt) -> frozenset[str]:
    """The names that the function reads outside of the loop."""
    found: set[str] = set()
    todo: list[ast.AST] = [*function.body]
    while todo:
        node = todo.pop()
        if node is not loop:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                found.add(node.id)
            todo += ast.iter_child_nodes(node)
    return frozenset(found)
