"""Reads the inputs with which the author of a model calls it: `example_inputs` of the model or of its file,
and the calls that are written in the file, `if __name__ == "__main__":` included.

These calls are read and not run. Functions named `example_inputs` are run, since they exist to be called.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final, TypeAlias

from ...constraints.ir.spec_text import DTYPES
from ...tracer.bytecode.parsing import parsed

Leaf: TypeAlias = "TensorExample | bool | int | float | str | None"
Nested: TypeAlias = "Leaf | list[Nested] | dict[str, Nested]"
"""An example of an input; of a tensor its sizes and dtype."""
_PROVIDERS: Final = ("example_inputs", "get_example_inputs", "get_inputs", "example_input_array")
"""Attributes of a model or of its file that hold example inputs, or functions that make them."""
_FLOATS: Final = frozenset("randn rand zeros ones empty full normal".split())
_MODELS: Final = frozenset("model net m module network".split())
"""Names that a model has where a function makes it."""


@dataclass(frozen=True, slots=True)
class TensorExample:
    """The sizes of a tensor, and its dtype where that is known. A size is a number, or a symbol."""

    sizes: tuple[int | str, ...]
    dtype: str = ""


def examples(target: Any, names: Sequence[str]) -> list[dict[str, Nested]]:
    """Returns examples for inputs of a program, those that are given as values first."""
    module = sys.modules.get(getattr(type(target) if _is_object(target) else target, "__module__", ""))
    calls = [_as_call(values, names) for values in _provided(target, module)]
    if module is not None and (code := _code_of(module)) is not None:
        calls += _Calls(code, target).found
    found = [_bound(values, named, names) for values, named in calls]
    return [one for one in found if one]


def _as_call(values: Any, names: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
    """Returns the arguments of a call that an example stands for: by name, several in order, or one."""
    if isinstance(values, dict) and values.keys() & {*names}:
        return [], values
    several = isinstance(values, list) and (len(names) > 1 or len(values) == 1)
    return values if several else [values], {}


def _is_object(target: Any) -> bool:
    return not inspect.isroutine(target)


def _provided(target: Any, module: ModuleType | None) -> Iterator[Any]:
    """Yields what the model and its file offer as examples."""
    for owner, name in itertools.product((target, module), _PROVIDERS):
        value = getattr(owner, name, None)
        if callable(value):
            try:
                inspect.signature(value).bind()
                value = value()
            except Exception:  # noqa: BLE001 - the user's function is only asked for a hint
                continue
        if value is not None:
            yield _plain(value)


def _plain(value: Any) -> Any:
    """Returns an example with what its tensors are in their place."""
    if type(value).__module__.startswith("torch") and hasattr(value, "dtype"):
        return TensorExample(tuple(map(int, value.shape)), str(value.dtype).removeprefix("torch."))
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    return value if isinstance(value, bool | int | float | str | None) else ...


def _bound(values: Sequence[Any], named: Mapping[str, Any], names: Sequence[str]) -> dict[str, Nested]:
    """Returns the example of each input, as far as a call gives it."""
    given = {**dict(zip(names, values, strict=False)), **named}
    return {name: given[name] for name in names if name in given and not _unknown(given[name])}


def _unknown(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_unknown, value))
    return any(map(_unknown, value.values())) if isinstance(value, dict) else value is ...


def _code_of(module: ModuleType) -> ast.Module | None:
    try:
        return parsed(inspect.getsource(module))
    except (OSError, TypeError, SyntaxError, ValueError, RecursionError):
        return None


class _Calls:
    """The calls of a model in a file, with tensors whose sizes are written there:

        if __name__ == "__main__":
            model = Net()
            x = torch.randn(2, 3, 224, 224)
            print(model(x).shape)
    """

    def __init__(self, code: ast.Module, target: Any) -> None:
        self.is_function = inspect.isroutine(target)
        self.name = target.__name__ if self.is_function else type(target).__name__
        self.found: list[tuple[list[Any], dict[str, Any]]] = []
        blocks = [node.body for node in code.body if isinstance(node, ast.If | ast.FunctionDef | ast.With)]
        for block in [code.body, *blocks]:
            self._read(block)

    def _read(self, block: list[ast.stmt]) -> None:
        known: dict[str, Any] = {}
        models: set[str] = set()
        for statement in _flat(block):
            for call in ast.walk(statement):
                if isinstance(call, ast.Call) and self._is_model(call.func, models):
                    named = {word.arg: _value(word.value, known) for word in call.keywords if word.arg}
                    self.found.append(([_value(argument, known) for argument in call.args], named))
            if isinstance(statement, ast.Assign):
                self._assign(statement, known, models)

    def _assign(self, statement: ast.Assign, known: dict[str, Any], models: set[str]) -> None:
        for target in statement.targets:
            if isinstance(target, ast.Name):
                known[target.id] = _value(statement.value, known)
                if not self.is_function and self._makes_it(target.id, statement.value):
                    models.add(target.id)
            elif isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
                for one, value in zip(target.elts, statement.value.elts, strict=False):
                    if isinstance(one, ast.Name):
                        known[one.id] = _value(value, known)

    def _is_model(self, called: ast.expr, models: set[str]) -> bool:
        if isinstance(called, ast.Name):
            return called.id in models or (self.is_function and called.id == self.name)
        return not self.is_function and _makes(called, self.name)

    def _makes_it(self, name: str, value: ast.expr) -> bool:
        """Returns whether a value is the model: its class makes it, or perhaps a function: `net = resnet()`.
        """
        match value:
            case ast.Call(ast.Name(maker)) if name in _MODELS and not maker[:1].isupper():
                return True
        return _makes(value, self.name)


def _flat(block: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yields the simple statements of a block, those in `with` and `for` within it, too."""
    for statement in block:
        if isinstance(statement, ast.With | ast.For | ast.Try):
            yield from _flat(statement.body)
        elif not isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.If):
            yield statement


def _makes(e: ast.expr, name: str) -> bool:
    """Returns whether an expression is a call of a class, perhaps with methods behind it: `Net(3).eval()`."""
    match e:
        case ast.Call(ast.Name(id)) | ast.Call(ast.Attribute(_, id)) if id == name:
            return True
        case ast.Call(ast.Attribute(inner, "eval" | "to" | "cuda" | "train" | "float" | "half" | "double")):
            return _makes(inner, name)
    return False


def _value(e: ast.expr, known: Mapping[str, Any]) -> Any:
    """Returns the value that an expression has, as far as it is written there; else `...`."""
    match e:
        case ast.Constant(bool() | int() | float() | str() | None as value):
            return value
        case ast.Name(name):
            return known.get(name, ...)
        case ast.List(elements) | ast.Tuple(elements):
            return [_value(one, known) for one in elements]
        case ast.Dict(keys, values):
            pairs = zip(keys, values, strict=True)
            return {k.value: _value(v, known) for k, v in pairs if isinstance(k, ast.Constant)}
        case ast.BinOp(left, ast.Mult(), right):
            pair = _value(left, known), _value(right, known)
            return pair[0] * pair[1] if all(type(n) is int for n in pair) else ...
        case ast.BinOp(left, ast.FloorDiv(), right):
            pair = _value(left, known), _value(right, known)
            return pair[0] // pair[1] if all(type(n) is int for n in pair) and pair[1] else ...
        case ast.Call(ast.Attribute(inner, "to" | "cuda" | "cpu" | "float" | "requires_grad_")):
            return _value(inner, known)
        case ast.Call(ast.Attribute(inner, "long" | "bool" | "half" | "double" as cast)):
            value = _value(inner, known)
            return TensorExample(value.sizes, DTYPES[cast]) if isinstance(value, TensorExample) else ...
        case ast.Call(ast.Attribute(ast.Name("torch"), name)):
            return _created(name, e, known)
    return ...


def _created(name: str, call: ast.Call, known: Mapping[str, Any]) -> Any:
    """Returns the tensor that a function of torch makes: `torch.randn(2, 3)`, `torch.randint(0, 9, (2, 3))`.
    """
    given = [_value(argument, known) for argument in call.args]
    named = {word.arg: word.value for word in call.keywords}
    given_dtype = named.get("dtype")
    dtype = DTYPES.get(given_dtype.attr, "") if isinstance(given_dtype, ast.Attribute) else ""
    sizes: Any = _value(named["size"], known) if "size" in named else ...
    if name == "randint":
        sizes = next((one for one in given if isinstance(one, list)), sizes)
        dtype = dtype or "int64"
    elif name in _FLOATS and sizes is ...:
        first = next((one for one in given if isinstance(one, list)), None)
        sizes = given if first is None else first
    elif name == "arange":
        sizes, dtype = given[-1:], dtype or "int64"
    if isinstance(sizes, list) and all(type(size) is int for size in sizes):
        return TensorExample(tuple(sizes), dtype)
    return ...
