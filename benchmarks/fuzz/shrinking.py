"""The smallest program that is still wrong in the same way.

Delta debugging over Python's own syntax trees, so that any program can be shrunk, whoever wrote it:
statements go, blocks become their bodies, expressions become parts of themselves, constants and ranks become
smaller. A change is kept where the text becomes shorter, or its numbers smaller, and the contradiction stays.
"""

from __future__ import annotations

import ast
import copy
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from .program import NAME, Input, Program

Still = Callable[[Program], bool]


def shrunk(program: Program, still: Still, seconds: float = 60.0) -> Program:
    """Tries changes until none is left that keeps `still` true, or the time is over."""
    until = time.monotonic() + seconds
    tried = {key(program)}
    changed = True
    while changed:
        changed = False
        for candidate in candidates(program):
            if time.monotonic() > until:
                return program
            if key(candidate) in tried or weight(candidate) >= weight(program):
                continue
            tried.add(key(candidate))
            if still(candidate):
                program, changed = candidate, True
                break
    return program


def key(program: Program) -> tuple[str, str, tuple[str, ...]]:
    return program.source, program.spec, program.assume


def weight(program: Program) -> tuple[int, int]:
    """Returns the quantity that shrinking reduces: the length of the text without its numbers, then the
    numbers.
    """
    text = "\n".join((program.source, program.spec, *program.assume))
    numbers = [int(n) for n in re.findall(r"(?<![\w.])\d+", text)]
    return len(re.sub(r"(?<![\w.])\d+", "#", text)), sum(numbers)


def candidates(program: Program) -> Iterator[Program]:
    """Programs a step smaller, the greatest steps first."""
    yield from _inputs(program)
    tree = ast.parse(program.source)
    for change in (_without_statements, _unwrapped, _substituted, _inlined, _parts, _constants):
        for made in change(tree):
            source = ast.unparse(ast.fix_missing_locations(made)) + "\n"
            if source != program.source:
                yield replace(program, source=source)


def _copies(tree: ast.Module) -> Iterator[tuple[ast.Module, ast.AST]]:
    """A copy for each node, with the node in the copy."""
    for position, _ in enumerate(ast.walk(tree)):
        made = copy.deepcopy(tree)
        yield made, _nth(made, position)


def _nth(tree: ast.AST, position: int) -> ast.AST:
    return next(node for i, node in enumerate(ast.walk(tree)) if i == position)


def _bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        body = getattr(node, name, None)
        if isinstance(body, list):
            yield body


def _without_statements(tree: ast.Module) -> Iterator[ast.Module]:
    """Halves of a block, and single statements, the last first; never what returns."""
    for position, node in enumerate(ast.walk(tree)):
        if isinstance(node, ast.Module):
            continue
        for number, body in enumerate(_bodies(node)):
            spans = [(i, i + 1) for i in reversed(range(len(body)))]
            if len(body) > 4:
                half = len(body) // 2
                spans = [(0, half), (half, len(body) - 1), *spans]
            for start, stop in spans:
                made = copy.deepcopy(tree)
                block = list(_bodies(_nth(made, position)))[number]
                _delete(block, start, stop, needed=number == 0)
                yield made


def _delete(block: list[ast.stmt], start: int, stop: int, *, needed: bool) -> None:
    """Deletes statements of a block; one that is needed is not left empty."""
    del block[start:stop]
    if not block and needed:
        block.append(ast.Pass())


def _unwrapped(tree: ast.Module) -> Iterator[ast.Module]:
    """An `if`, loop, `with` or `try` becomes one of its blocks."""
    for position, node in enumerate(ast.walk(tree)):
        for number, body in enumerate(_bodies(node)):
            for index, statement in enumerate(body):
                if not isinstance(statement, ast.If | ast.For | ast.While | ast.With | ast.Try):
                    continue
                for inner in range(len(list(_bodies(statement)))):
                    made = copy.deepcopy(tree)
                    block = list(_bodies(_nth(made, position)))[number]
                    block[index : index + 1] = list(_bodies(block[index]))[inner] or [ast.Pass()]
                    yield made


class _Renamed(ast.NodeTransformer):
    """Reads of a name become an expression."""

    def __init__(self, name: str, by: ast.expr) -> None:
        self.name, self.by, self.times = name, by, 0

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id != self.name or not isinstance(node.ctx, ast.Load):
            return node
        self.times += 1
        return copy.deepcopy(self.by)


def _assignments(tree: ast.Module) -> Iterator[tuple[int, int, int, ast.Assign, str]]:
    """Where a name is assigned: the node, block and position."""
    for position, node in enumerate(ast.walk(tree)):
        for number, body in enumerate(_bodies(node)):
            for index, statement in enumerate(body):
                if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                    yield position, number, index, statement, statement.targets[0].id


def _substituted(tree: ast.Module) -> Iterator[ast.Module]:
    """`t = f(s)` goes, and what reads t reads s."""
    for position, number, index, statement, name in _assignments(tree):
        names = {n.id for n in ast.walk(statement.value) if isinstance(n, ast.Name)} - {
            "torch",
            "F",
            "nn",
            name,
        }
        for other in sorted(names):
            made = copy.deepcopy(tree)
            _delete(list(_bodies(_nth(made, position)))[number], index, index + 1, needed=number == 0)
            yield _Renamed(name, ast.Name(other, ast.Load())).visit(made)


def _inlined(tree: ast.Module) -> Iterator[ast.Module]:
    """`t = e` goes, and the one read of t becomes e."""
    for position, number, index, statement, name in _assignments(tree):
        made = copy.deepcopy(tree)
        _delete(list(_bodies(_nth(made, position)))[number], index, index + 1, needed=number == 0)
        renamed = _Renamed(name, statement.value)
        made = renamed.visit(made)
        if renamed.times == 1:
            yield made


def _expressions(node: ast.AST) -> Iterator[tuple[str, int | None, ast.expr]]:
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.expr):
            yield name, None, value
        elif isinstance(value, list):
            yield from ((name, i, v) for i, v in enumerate(value) if isinstance(v, ast.expr))


def _put(tree: ast.Module, position: int, name: str, index: int | None, value: ast.expr | None) -> ast.Module:
    """A copy in which a child of the node is another; without one, it is left out of its list."""
    made = copy.deepcopy(tree)
    node = _nth(made, position)
    if index is None:
        setattr(node, name, copy.deepcopy(value))
    elif value is None:
        del getattr(node, name)[index]
    else:
        getattr(node, name)[index] = copy.deepcopy(value)
    return made


def _parts(tree: ast.Module) -> Iterator[ast.Module]:
    """An expression becomes a part of itself, or one of the arguments goes."""
    for position, node in enumerate(ast.walk(tree)):
        for name, index, value in _expressions(node):
            if isinstance(getattr(value, "ctx", None), ast.Store):
                continue
            inner = [v for v in ast.walk(value) if isinstance(v, ast.expr) and v is not value]
            for part in inner:
                package = isinstance(part, ast.Name) and part.id in ("torch", "F", "nn")
                if package or isinstance(part, ast.Slice | ast.Starred):
                    continue
                yield _put(tree, position, name, index, part)
            if index is not None and name in ("args", "elts"):
                yield _put(tree, position, name, index, None)
            if not isinstance(value, ast.Constant):
                yield _put(tree, position, name, index, ast.Constant(1))
        if isinstance(node, ast.Call):
            for index in range(len(node.keywords)):
                made = copy.deepcopy(tree)
                call = _nth(made, position)
                assert isinstance(call, ast.Call)
                del call.keywords[index]
                yield made


def _constants(tree: ast.Module) -> Iterator[ast.Module]:
    """An integer becomes smaller."""
    for made_position, node in enumerate(ast.walk(tree)):
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value > 0:
            for smaller in dict.fromkeys((0, 1, 2, node.value // 2, node.value - 1)):
                if smaller < node.value:
                    made = copy.deepcopy(tree)
                    constant = _nth(made, made_position)
                    assert isinstance(constant, ast.Constant)
                    constant.value = smaller
                    yield made


def _inputs(program: Program) -> Iterator[Program]:
    """An input goes that the text does not read, a rank or a symbol less, an assumption less."""
    for index, line in enumerate(program.inputs):
        source = re.sub(
            rf"(def (?:f|forward)\([^)]*?)(?:, )?\b{line.name}\b(, )?", _joined, program.source, count=1
        )
        if len(program.inputs) > 1 and not re.search(rf"\b{line.name}\b", source):
            yield _used(replace(program, source=source, inputs=_dropped(program.inputs, index)))
    for index, line in enumerate(program.inputs):
        if line.dtype != "int":
            for axis in range(len(line.dims)):
                dims = line.dims[:axis] + line.dims[axis + 1 :]
                yield _used(
                    replace(program, inputs=_with(program.inputs, index, Input(line.name, line.dtype, dims)))
                )
    for assumption in program.assume:
        yield replace(program, assume=tuple(a for a in program.assume if a != assumption))
    for symbol in program.symbols:
        for by in (*(s for s in program.symbols if s < symbol), "1", "2"):
            texts = [tuple(re.sub(rf"\b{symbol}\b", by, d) for d in line.dims) for line in program.inputs]
            if any(
                line.dtype == "int" and not d[0].isidentifier()
                for line, d in zip(program.inputs, texts, strict=True)
            ):
                continue
            made = tuple(
                Input(line.name, line.dtype, d) for line, d in zip(program.inputs, texts, strict=True)
            )
            if len([line for line in made if line.dtype == "int"]) == 0 or by.isdigit():
                yield _used(replace(program, inputs=made))


def _joined(match: re.Match[str]) -> str:
    """A list of arguments without one: `(x, y` for `(x, t, y`."""
    comma = ", " if match[2] and match[0].startswith(match[1] + ", ") else ""
    return match[1] + comma


def _dropped(inputs: tuple[Input, ...], index: int) -> tuple[Input, ...]:
    return inputs[:index] + inputs[index + 1 :]


def _with(inputs: tuple[Input, ...], index: int, line: Input) -> tuple[Input, ...]:
    return (*inputs[:index], line, *inputs[index + 1 :])


def _used(program: Program) -> Program:
    """Without the assumptions on symbols that are gone."""
    names = set(program.symbols)
    return replace(program, assume=tuple(a for a in program.assume if set(NAME.findall(a)) <= names))
