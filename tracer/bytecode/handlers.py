"""Decides whether the program would catch an exception raised by its current call.

A refusal that a `try` catches does not refuse the program: it is a branch. For each stretch of bytecode,
Python stores the handler that is in force there; the frames of the running program give its position.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import dis
import inspect
import itertools
import sys
from collections.abc import Mapping, Sequence
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, Final, NamedTuple

from ..host.interpreter import ENTERS, GeneratorManager, frame_above
from .codes import ENDS, JUMPS, following, instructions, per_code, steps_from
from .operands import parsed
from .origins import is_inner


class _Handler(NamedTuple):
    """A handler, which catches or passes on an exception, by the offset where it begins in the bytecode."""

    target: int
    names: tuple[str, ...] | None
    """The names in the clauses of an `except`; None where they cannot be read from the code."""
    manager: tuple[str, ...] | None = None
    """For a `with`, the dotted name of the function that makes the context manager; () where it has no name.
    """


@per_code
def _handlers_at(code: CodeType, offset: int) -> tuple[_Handler, ...]:
    """Returns the handlers that an exception raised at this offset reaches, innermost first.

    Python's table has one entry for each offset. An exception that is not caught there is raised again within
    the handler, so the next entry is the one for the handler itself.
    """
    found: list[_Handler] = []
    seen: set[int] = set()
    while True:
        target = next((t for start, end, t in _entries(code) if start <= offset < end), None)
        if target is None or target in seen:
            return tuple(found)
        seen.add(target)
        handler = _handler(code, target)
        if handler is not None:
            found.append(handler)
        offset = target


@per_code
def _entries(code: CodeType) -> tuple[tuple[int, int, int], ...]:
    """Returns stretches of the bytecode, from an offset up to another, each with the offset of its handler.
    """
    if not code.co_exceptiontable:
        return ()
    entries = dis.Bytecode(code).exception_entries  # type: ignore[attr-defined]
    return tuple((entry.start, entry.end, entry.target) for entry in entries)


@per_code
def _handler(code: CodeType, target: int) -> _Handler | None:
    """Returns the handler that begins here; None where it raises every exception again, as a `finally` does.
    """
    handler = steps_from(code, target)
    if handler[0].opname != "PUSH_EXC_INFO":
        return None
    if handler[1].opname == "WITH_EXCEPT_START":
        return _Handler(target, None, _manager(code, target))
    caught = _caught(handler[1:])
    return None if caught == () else _Handler(target, caught)


def _caught(handler: Sequence[dis.Instruction]) -> tuple[str, ...] | None:
    """Returns the names in the `except` clauses of a handler; () for a `finally`, None for a bare `except`
    and where they cannot be read from the code.

    Where a clause does not match, Python jumps to the next one, over the clause's body and over the code that
    deletes the name of the exception.
    """
    names: list[str] = []
    following = 0
    for before, instruction in itertools.pairwise(handler):
        if instruction.offset < following:
            continue
        match instruction.opname:
            case "CHECK_EXC_MATCH":
                if before.opname not in ("LOAD_GLOBAL", "LOAD_NAME"):
                    return None  # a tuple, or an attribute of a module
                names.append(str(before.argval))
            case "CHECK_EG_MATCH":
                return None
            case "POP_EXCEPT":  # a clause without a type
                return None
            case "RERAISE":
                break
            case name if name.startswith("POP_JUMP") and before.opname == "CHECK_EXC_MATCH":
                following = int(instruction.argval)
    return tuple(names)


def _manager(code: CodeType, target: int) -> tuple[str, ...]:
    """Returns the dotted name of the function called in a `with` to make the context manager, or of the
    manager itself: `torch`, `no_grad`.
    """
    start = min(start for start, _, handler in _entries(code) if handler == target)
    before = [step for step in steps_from(code, 0) if step.offset < start]
    if tuple(step.opname for step in before[-len(ENTERS) :]) != ENTERS:
        return ()
    node = parsed(code, before[-len(ENTERS) - 1].positions)
    names: list[str] = []
    node = node.func if isinstance(node, ast.Call) else node
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return (node.id, *reversed(names)) if isinstance(node, ast.Name) else ()


def is_guarded(outermost: CodeType, *errors: type[BaseException]) -> bool:
    """Returns whether a frame of the user's, on the way up to the one that runs `outermost`, may catch one of
    these exceptions.

    If the handler does not in fact catch it, the refusal only becomes a branch, which then ends the program.
    """
    frame: FrameType | None = frame_above(1)
    while frame is not None and frame.f_code is not outermost:
        if frame.f_code.co_filename == contextlib.__file__:
            manager = frame.f_locals.get("self")
            if manager is not None and _handlers_at(frame.f_code, frame.f_lasti) and _swallows(manager):
                return True  # a decorated function runs within the manager
        elif not is_inner(frame.f_code.co_filename):
            handlers = _handlers_at(frame.f_code, frame.f_lasti)
            if any(_catches(frame, handler, errors) for handler in handlers):
                return True
        frame = frame.f_back
    return False


def is_looked_at(frame: FrameType | None, outermost: CodeType) -> bool:
    """Returns whether a frame of the user's, from this one up to `outermost`, may catch an exception raised
    here and act on its contents.
    """
    while frame is not None and frame.f_code is not outermost:
        if not is_inner(frame.f_code.co_filename) and _goes_by_it(frame):
            return True
        frame = frame.f_back
    return False


def _goes_by_it(frame: FrameType) -> bool:
    """Returns whether a handler in force at this point may examine an exception, and do more than raise
    another.
    """
    for handler in _handlers_at(frame.f_code, frame.f_lasti):
        if handler.manager is not None:
            if handler.manager[-1:] != ("suppress",) and _catches(frame, handler, ()):
                return True
        elif _names_it(frame.f_code, handler.target) and not only_raises(frame.f_code, handler.target):
            return True
    return False


@per_code
def _names_it(code: CodeType, target: int) -> bool:
    """Returns whether the handler that begins here, or the code after it, can access the exception, by a name
    or by other means.
    """
    if not _OTHER_WAYS.isdisjoint(code.co_names):
        return True
    for before, instruction in itertools.pairwise(steps_from(code, target)):
        if before.opname.startswith("POP_JUMP") and instruction.opname.startswith("STORE_"):
            return True
        if instruction.opname == "CHECK_EG_MATCH":
            return True
    return False


_OTHER_WAYS: Final = frozenset(
    "exc_info exception last_exc last_value format_exc format_exception format_exception_only "
    "TracebackException __context__ __cause__ sys traceback".split()
)
"""Names by which a handler can access an exception that it does not name."""


_EFFECTS: Final = ("POP_TOP", "RETURN_", "YIELD_", "STORE_")
"""The beginnings of the names of instructions that end a statement or a function."""


@per_code
def only_raises(code: CodeType, offset: int) -> bool:
    """Returns whether every path from here ends in an exception, with no value stored but in local variables.
    """
    waiting, seen = [offset], set[int]()
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        step = instructions(code)[at]
        name = step.opname
        if name in ("RAISE_VARARGS", "RERAISE"):
            waiting += [handler.target for handler in _handlers_at(code, at)[:1]]
        elif name.startswith(_EFFECTS) and not name.startswith("STORE_FAST"):
            return False
        waiting += [step.argval] if step.opcode in JUMPS else []
        waiting += [following(code, at)] if name not in ENDS else []
    return True


def _catches(frame: FrameType, handler: _Handler, errors: tuple[type[BaseException], ...]) -> bool:
    """Returns whether the handler may catch one of these exceptions."""
    known = _Names(frame.f_globals, frame.f_builtins, frame)
    if handler.manager is not None:
        return _swallows(known.value(handler.manager))
    if handler.names is None:
        return True
    for name in handler.names:
        kinds = known.value((name,))
        for kind in kinds if isinstance(kinds, tuple) else (kinds,):
            if not isinstance(kind, type):
                return True
            if any(issubclass(error, kind) or error is Exception for error in errors):
                return True
    return False


class _Names(NamedTuple):
    """The namespaces of some code, to look up the values of its names."""

    globals: Mapping[str, Any]
    builtins: Mapping[str, Any]
    frame: FrameType | None = None

    def value(self, path: tuple[str, ...]) -> Any:
        """Returns the value of a dotted name, without running code of the program's; None if unknown."""
        if not path:
            return None
        first, *rest = path
        held = self.frame.f_locals if self.frame is not None and first not in self.globals else {}
        value = held.get(first, self.globals.get(first, self.builtins.get(first)))
        for name in rest:
            found = inspect.getattr_static(value, name, None)
            value = found.__func__ if isinstance(found, staticmethod | classmethod) else found
        return value


def _swallows(manager: Any) -> bool:
    """Returns whether a context manager, or one that this function makes, may suppress an exception; True if
    that is not known.
    """
    if isinstance(manager, GeneratorManager):
        return _swallows_at_yield(getattr(manager.gen, "gi_code", None))
    if isinstance(manager, FunctionType):
        made = inspect.unwrap(manager)
        if inspect.isgeneratorfunction(made):
            return _swallows_at_yield(made.__code__)
        return _returns_what_swallows(made.__code__, _Names(made.__globals__, vars(builtins)))
    if manager is None or isinstance(manager, property):
        return True
    leave = inspect.getattr_static(manager if isinstance(manager, type) else type(manager), "__exit__", None)
    if leave is None:
        return True
    owner = manager if isinstance(manager, type) else type(manager)
    if owner.__module__ == "contextlib":
        return owner in (contextlib.suppress, contextlib.ExitStack)
    if isinstance(leave, FunctionType):
        return not is_inner(leave.__code__.co_filename) and not _exits_with_nothing(leave.__code__)
    return owner.__module__.partition(".")[0] not in ("torch", "_thread", "threading", "_io", "io")


def _swallows_at_yield(code: CodeType | None) -> bool:
    """Returns whether the generator of a `contextmanager` may catch an exception from the body of the `with`.
    """
    if code is None:
        return True
    yields = (at for at, i in instructions(code).items() if i.opname in ("YIELD_VALUE", "RESUME"))
    return any(_handlers_at(code, offset) for offset in yields)


def _returns_what_swallows(code: CodeType, known: _Names) -> bool:
    """Returns whether a function may return a context manager that catches exceptions, as far as the names in
    its code show.
    """
    values = {name: known.value((name,)) or sys.modules.get(name) for name in code.co_names}
    modules = [value for value in values.values() if isinstance(value, ModuleType)]
    for name, value in values.items():
        found: Any = value or next((vars(module)[name] for module in modules if name in vars(module)), None)
        if found is None:
            return True
        manages = isinstance(found, type) and hasattr(found, "__exit__")
        if (manages or inspect.isgeneratorfunction(inspect.unwrap(found))) and _swallows(found):
            return True
    return False


@per_code
def _exits_with_nothing(code: CodeType) -> bool:
    """Returns whether an `__exit__` returns None or False on every path."""
    for before, instruction in itertools.pairwise(instructions(code).values()):
        if instruction.opname == "RETURN_CONST" and instruction.argval:
            return False
        constant = before.opname == "LOAD_CONST" and not before.argval and not instruction.is_jump_target
        if instruction.opname == "RETURN_VALUE" and not constant:
            return False
    return True
