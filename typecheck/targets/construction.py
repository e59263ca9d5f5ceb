"""Builds what a target names: `unet.py:UNet(3, classes=21)` calls the class with arguments, which are read as
literals and never evaluated. An argument may itself be such a call of a class of the same file:
`gpt.py:GPT(GPTConfig(n_layer=2))`.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from ...constraints.ir.spec_text import suggestion
from ..report.target_names import split_call
from .target_error import TargetError, last_line, message_of


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a call: literals, and objects that are yet to be made."""

    given: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)

    def of(self, factory: Any) -> Arguments:
        """Returns the arguments with the objects made by classes of the factory's own file."""
        module = getattr(factory, "__module__", "")
        return Arguments(
            tuple([_made(value, module) for value in self.given]),
            {key: _made(value, module) for key, value in self.named.items()},
        )


@dataclass(frozen=True, slots=True)
class Nested:
    """An argument that is an object, made by a class or a function."""

    maker: str
    arguments: Arguments

    def __repr__(self) -> str:
        parts = [*map(repr, self.arguments.given), *(f"{k}={v!r}" for k, v in self.arguments.named.items())]
        return f"{self.maker}({', '.join(parts)})"


def _made(value: Any, module: str) -> Any:
    """Returns an argument, made by a class that its file defines if it is an object."""
    names = vars(sys.modules.get(module, object))
    if not isinstance(value, Nested):
        return value
    own = {key: one for key, one in names.items() if inspect.isclass(one) and one.__module__ == module}
    if value.maker not in own:
        problem = f"the argument {value} is no literal, and its file has no class {value.maker!r}"
        raise TargetError(problem, suggestion(value.maker, own) or _LITERALS)
    return built(own[value.maker], value.maker, value.arguments)


_LONGEST: Final = 10_000
"""The length of the longest text of arguments that is read."""
_PARAMETER: Final = {"*args": inspect.Parameter.VAR_POSITIONAL, "**kwargs": inspect.Parameter.VAR_KEYWORD}


def called_with(target: str, arguments: str) -> str:
    """Returns the target with arguments. Raises TargetError where it has some already, or can have none."""
    if target.endswith(".pt2"):
        raise TargetError(f"{target} is saved and takes no arguments", "leave out --args")
    if split_call(target)[1] is not None:
        raise TargetError(f"{target} has arguments already", "leave out --args, or what is in parentheses")
    return f"{target}({arguments})"


def read_arguments(text: str) -> Arguments:
    """Returns the arguments that a text lists: `3, classes=21`. Raises TargetError for what is no literal."""
    if len(text) > _LONGEST:
        raise TargetError(f"the arguments have {len(text):,} characters; at most {_LONGEST:,} are read")
    try:
        call = ast.parse(f"f({text})", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        call = None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        raise TargetError(f"the arguments {text!r} cannot be read", _LITERALS)
    return _arguments(call)


def _arguments(call: ast.Call) -> Arguments:
    given = tuple([_literal(value) for value in call.args])
    named: dict[str, Any] = {}
    for keyword in call.keywords:
        if keyword.arg is None:
            raise TargetError(f"**{ast.unparse(keyword.value)} is no argument", _LITERALS)
        named[keyword.arg] = _literal(keyword.value)
    return Arguments(given, named)


_LITERALS: Final = (
    'write them as in a call: "3, classes=21"; each is a number, a text in quotes, True, False, None, or a '
    "list, a tuple or a dict of these, or a class of the same file with such arguments: Config(depth=2)"
)


def _literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return Nested(node.func.id, _arguments(node))
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, RecursionError, MemoryError):
        raise TargetError(f"the argument {ast.unparse(node)} is no literal", _LITERALS) from None


def is_factory(value: Any, inputs: Collection[str]) -> bool:
    """Returns whether the value is a function that needs no arguments and takes none of the inputs."""
    if not inspect.isfunction(value):
        return False
    takes = _signature(value)
    parameters = takes.parameters.values()
    takes_any = any(p.kind in _PARAMETER.values() for p in parameters)
    return not any(map(_is_needed, parameters)) and not takes_any and not {*inputs} & takes.parameters.keys()


def built(factory: Any, name: str, arguments: Arguments = Arguments()) -> Any:
    """Returns what a class or a function makes of the arguments. Raises TargetError where it does not take
    them, or fails.
    """
    if not (inspect.isclass(factory) or inspect.isroutine(factory)):
        problem = f"{name} is built already, with the type {type(factory).__name__}"
        raise TargetError(problem, "leave out the arguments")
    try:
        takes = _signature(factory)
    except ValueError:
        takes = None  # of what is compiled: calling tells
    if takes is not None:
        _require_taken(takes, name, arguments, _configs(factory))
    made = arguments.of(factory)
    try:
        return factory(*made.given, **made.named)
    except Exception as error:  # whatever the user's own constructor raises is told with its line
        raise TargetError(f"{name}() failed: {message_of(error)}", origin=last_line(error)) from error


def _signature(function: Any) -> inspect.Signature:
    from ...tracer.host.interpreter import signature  # which a Python may not have what it takes for

    return signature(function)


def _is_needed(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty and parameter.kind not in _PARAMETER.values()


def _configs(factory: Any) -> list[str]:
    """Returns the names of the dataclasses of a factory's file that need no arguments."""
    module = getattr(factory, "__module__", "")
    return [
        key
        for key, value in vars(sys.modules.get(module, object)).items()
        if inspect.isclass(value)
        and value.__module__ == module
        and dataclasses.is_dataclass(value)
        and not any(map(_is_needed, _signature(value).parameters.values()))
    ]


def _require_taken(
    takes: inspect.Signature, name: str, arguments: Arguments, configs: Sequence[str]
) -> None:
    """Raises TargetError where a signature does not take the arguments, and says which of them, or which of
    its parameters, is the reason.
    """
    try:
        takes.bind(*arguments.given, **arguments.named)
        return
    except TypeError as error:
        problem = str(error)
    parameters = takes.parameters
    shown = f"its signature is {name.rpartition(':')[2]}{takes}"
    for key in arguments.named.keys() - parameters.keys():
        if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            raise TargetError(f"{name} has no parameter {key!r}", suggestion(key, parameters) or shown)
    needed = [p for p in parameters.values() if _is_needed(p)]
    missing = [p for p in needed[len(arguments.given) :] if p.name not in arguments.named]
    if not missing:
        raise TargetError(f"{name} does not take the arguments: {problem}", shown)
    _fail_without(name, missing, arguments, shown, configs)


def _fail_without(
    name: str, missing: list[inspect.Parameter], arguments: Arguments, shown: str, configs: Sequence[str]
) -> NoReturn:
    wanted = [f"{p.name}: {_annotation(p)}" if p.annotation is not p.empty else p.name for p in missing]
    listed = " and ".join(filter(None, [", ".join(wanted[:-1]), wanted[-1]]))
    given = [*map(repr, arguments.given), *(f"{key}={value!r}" for key, value in arguments.named.items())]
    form = ", ".join([*given, *(f"{p.name}={_form(p, configs)}" for p in missing)])
    raise TargetError(
        f"{name} needs {listed}",
        f'give arguments as in "{name}({form})", or by --args "{form}", or name a function without arguments '
        f"that makes one; {shown}",
    )


def _form(parameter: inspect.Parameter, configs: Sequence[str]) -> str:
    """Returns what an argument may look like: `GPTConfig()` for a `config`, if the file has such a class."""
    words = (parameter.name.lower(), _annotation(parameter).lower())
    known = [one for one in configs if words[1].endswith(one.lower()) or one.lower().endswith(words[0])]
    return f"{known[0]}()" if known else "…"


def _annotation(parameter: inspect.Parameter) -> str:
    annotation = parameter.annotation
    return annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
