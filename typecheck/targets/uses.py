"""Reads from the code of a program how it takes an input apart: `b, t = x.shape`, `batch["image"]`,
`for one in features`.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from typing import Any, Final

from ...tracer.bytecode.parsing import parsed

_DEPTH: Final = 3
"""An input is followed into the submodules that it is given to, and so many times into theirs."""


@dataclass(slots=True)
class Use:
    """How the code of a program takes an input apart."""

    axes: tuple[str, ...] = ()
    """The names to which its sizes are assigned: `b, t = x.shape`."""
    keys: tuple[str, ...] = ()
    """The keys that are looked up in it, if it is a dict."""
    count: int = 0
    """The number of elements that it has, if it may be a list; at least as many as are looked up."""
    is_list: bool = False
    """Whether it is hardly a tensor, since its elements are joined, or go with several modules."""
    whole: bool = True
    """Whether it is also used as a whole, other than by its keys and elements."""


def uses(target: Any, names: Sequence[str]) -> dict[str, Use]:
    """Returns how the code of a program takes each of some inputs apart, that of its submodules included."""
    forward = getattr(target, "forward", target)
    return {name: _used(target, forward, name, 0) for name in names}


def _used(owner: Any, function: Callable[..., Any], name: str, depth: int) -> Use:
    use = Use()
    code = _function_code(function)
    if code is None:
        return use
    apart, counts, places = 0, [0], set[int]()
    for node in _in_order(code):
        match node:
            case ast.Assign([ast.Tuple(elements)], value) if _is_shape(value, name):
                use.axes = tuple([one.id if isinstance(one, ast.Name) else "_" for one in elements])
            case ast.Assign([ast.Tuple(elements) | ast.List(elements)], ast.Name(used)) if used == name:
                counts.append(len(elements))
                use.is_list, apart = True, apart + 1
            case ast.Subscript(ast.Name(used), ast.Constant(str(key))) if used == name:
                use.keys = (*use.keys, key) if key not in use.keys else use.keys
                apart += 1
            case ast.Subscript(ast.Name(used), ast.Constant(int(at))) if used == name:
                counts.append(at + 1 if at >= 0 else -at)
                places.add(at)
                apart += 1
            case ast.For(iter=over) | ast.comprehension(iter=over) if (steps := _steps(over, name)):
                counts.append(_length(owner, steps))
                use.is_list, apart = use.is_list or len(steps) > 1, apart + 1
            case ast.Call(ast.Attribute(ast.Name("torch"), "cat" | "stack"), [ast.Name(used), *_]):
                if used == name:
                    counts.append(2)
                    use.is_list, apart = True, apart + 1
            case ast.Call(ast.Attribute(ast.Name("self"), attribute), arguments) if depth < _DEPTH:
                inner = getattr(owner, attribute, None)
                for at, argument in enumerate(arguments):
                    if isinstance(argument, ast.Name) and argument.id == name and _is_own(inner):
                        below = _inner(inner, at, depth)
                        use.axes, use.keys = use.axes or below.axes, use.keys or below.keys
                        counts.append(below.count)
                        use.is_list |= below.is_list
                        apart += not below.whole
    use.count = max(counts)
    loads = [n for n in ast.walk(code) if isinstance(n, ast.Name) and n.id == name]
    use.whole = sum(isinstance(n.ctx, ast.Load) for n in loads) > apart
    use.is_list |= len(places) > 1 and not use.whole
    return use


def _in_order(code: ast.AST) -> list[ast.AST]:
    """Returns the nodes of a syntax tree in the order in which they are written."""
    return sorted(ast.walk(code), key=lambda one: (getattr(one, "lineno", 0), getattr(one, "col_offset", 0)))


def _inner(module: Any, at: int, depth: int) -> Use:
    """Returns how a submodule, or another method, takes one of its arguments apart."""
    function = getattr(module, "forward", module)
    names = [*inspect.signature(function).parameters]
    owner = module if hasattr(module, "forward") else getattr(module, "__self__", None)
    return _used(owner, function, names[at], depth + 1) if at < len(names) else Use()


def _is_own(value: Any) -> bool:
    """Returns whether a value is a module or a method of the user's, whose code can be read."""
    kind = type(value) if hasattr(value, "forward") else value
    return callable(value) and not getattr(kind, "__module__", "torch").startswith("torch")


def _function_code(function: Any) -> ast.AST | None:
    try:
        return parsed(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))
    except (OSError, TypeError, SyntaxError, ValueError, RecursionError):
        return None


def _is_shape(e: ast.expr, name: str) -> bool:
    """Returns whether this is `x.shape` or `x.size()`."""
    match e:
        case ast.Attribute(ast.Name(used), "shape") | ast.Call(ast.Attribute(ast.Name(used), "size"), []):
            return used == name
    return False


def _steps(over: ast.expr, name: str) -> list[ast.expr]:
    """Returns what is iterated over together with an input: `zip(features, self.convs)`."""
    match over:
        case ast.Name(used) if used == name:
            return [over]
        case ast.Call(ast.Name("zip" | "enumerate" | "reversed"), arguments):
            if any(_steps(one, name) for one in arguments):
                return [step for one in arguments for step in (_steps(one, name) or [one])]
    return []


def _length(owner: Any, steps: Sequence[ast.expr]) -> int:
    """Returns the length of the lists of modules that are iterated over together with an input, or 2."""
    attributes = [getattr(owner, e.attr, None) for e in steps if isinstance(e, ast.Attribute)]
    return min((len(one) for one in attributes if isinstance(one, Sized)), default=2)
