"""`int(size)` without a number: what stands for `int` in the user's modules while a program is recorded.

Python's own `int(x)` insists on a number, and a size would have to be tried value by value. `int(n // 2)`,
`int(h / 2)` and `int(math.ceil(t / 4))` are integers that a dim can say, so the name `int` is rebound, in the
modules that the target's code lives in, to a type that passes them through and is `int` in every other
respect. `math.sqrt` and `math.isqrt` are rebound likewise.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import inspect
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import FrameType, ModuleType
from typing import Any

import torch

from .numbers import Real, Size
from .origins import is_inner


class _IntegerType(type):
    """`isinstance`, comparison and attributes are those of `int`."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs:
            (value,) = args
            if type(value) is Size:
                return value
            if type(value) is Real and (value.ratio is not None or value.square is not None):
                return value.__trunc__()
        return builtins.int(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, builtins.int)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, builtins.int)

    def __eq__(cls, other: object) -> bool:
        return other is builtins.int or other is cls

    def __hash__(cls) -> builtins.int:
        return hash(builtins.int)

    def __getattr__(cls, name: str) -> Any:
        return getattr(builtins.int, name)

    def __repr__(cls) -> str:
        return repr(builtins.int)

    def __or__(cls, other: Any) -> Any:
        return builtins.int | other

    __ror__ = __or__


class _Integer(metaclass=_IntegerType):
    """What `int` is bound to."""


def _sqrt(x: Any, /) -> Any:
    """`math.sqrt`, which of a size is a float that knows of what it is the root."""
    value = x.real() if type(x) is Size else x
    if type(value) is Real and value.ratio and value.ratio[1] == 1:
        return value.root()
    return _PLAIN["sqrt"](x)


def _isqrt(n: Any, /) -> Any:
    if type(n) is Size and n >= 0:
        return math.floor(_sqrt(n))
    return _PLAIN["isqrt"](n)


_ROOTS: Mapping[str, Callable[[Any], Any]] = {"sqrt": _sqrt, "isqrt": _isqrt}
_PLAIN: Mapping[str, Callable[[Any], Any]] = {name: getattr(math, name) for name in _ROOTS}


@functools.cache
def _takes(module: ModuleType) -> bool:
    """Can the name be rebound in this module? Not where it asks `is int`, which the stand-in would answer
    otherwise.
    """
    try:
        source = inspect.getsource(module)
    except (OSError, TypeError):
        return False
    return re.search(r"\bis (not )?int\b", source) is None


def sources_of(target: Any) -> Iterator[ModuleType]:
    """The modules of the user's that the target's code lives in, and the one of torch's own composites."""
    yield torch.nn.functional
    parts = target.modules() if isinstance(target, torch.nn.Module) else (target,)
    names = {getattr(t, "__module__", None) for part in parts for t in (type(part), part)}
    for name in sorted(n for n in names if isinstance(n, str)):
        module = sys.modules.get(name)
        file = getattr(module, "__file__", None)
        if module is not None and file and not is_inner(file) and name != "builtins":
            yield module


class AnotherSource(BaseException):
    """Code outside the sources asks Python's own `int` for a size: the run starts again, with that module
    among them.
    """

    def __init__(self, module: ModuleType) -> None:
        self.module = module


def calls_int(frame: FrameType) -> ModuleType | None:
    """The user's module whose code in this frame speaks of `int`, where the name can be rebound in it."""
    code, names = frame.f_code, frame.f_globals
    module = sys.modules.get(names.get("__name__", ""))
    if module is None or vars(module) is not names or "int" in names or "int" not in code.co_names:
        return None
    return module if not is_inner(code.co_filename) and _takes(module) else None


@contextlib.contextmanager
def symbolic_int(sources: Iterable[ModuleType]) -> Iterator[None]:
    """Rebinds `int` in these modules, and the roots of `math` there and wherever they are called by their
    full names; and unbinds them again.
    """
    sources = tuple(sources)
    rebound = [m for m in sources if "int" not in vars(m) and _takes(m)]
    roots = [(math, name, name) for name in _ROOTS] + [
        (module, alias, name)
        for module in sources
        for alias, value in vars(module).items()
        for name, plain in _PLAIN.items()
        if value is plain
    ]
    try:
        for module in rebound:
            module.int = _Integer  # type: ignore[attr-defined]
        for module, alias, name in roots:
            setattr(module, alias, _ROOTS[name])
        yield
    finally:
        for module, alias, name in roots:
            setattr(module, alias, _PLAIN[name])
        for module in rebound:
            del module.int
