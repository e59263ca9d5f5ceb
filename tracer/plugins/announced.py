"""Stand-ins for functions that are announced by entry points, once the program has imported their package.

A package, or another one for it, announces them by an entry point of the group `anyshape.functions`, named as
the package is imported:

    [project.entry-points."anyshape.functions"]
    mylib = "mylib.shapes:STAND_INS"

where `STAND_INS` is a `PluginFunctions` of functions in `mylib`.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import FunctionType
from typing import Any, Final, TypeAlias

import torch

from ...constraints.engine.packages import brought, names
from ...constraints.engine.ruleset import BadRules
from ...constraints.ir.language import Tensor
from ...constraints.terms.rows import row_of
from ..bytecode.origins import hide
from ..values.numbers import Size
from ..values.symbolic import SymbolicTensor
from .door import PluginFunctions, UnsupportedCall

GROUP: Final = "anyshape.functions"
Functions: TypeAlias = Mapping[tuple[str, str], Callable[..., Any]]
"""Functions by module and name."""


def plain_functions() -> Functions:
    """Returns the functions that have stand-ins, as far as their packages are loaded.

    Raises BadRules where what is announced for a loaded package cannot be used.
    """
    return {key: function for package in _loaded() for key, function in _plain(package).items()}


def recorded() -> Functions:
    """Returns the stand-ins for use in a recording."""
    return _standing_in(_is_recorded)


def traced() -> Functions:
    """Returns their stand-ins in a trace of torch's."""
    return _standing_in(_is_traced)


def refusals() -> tuple[type[Exception], ...]:
    """Returns the exceptions by which the loaded packages refuse sizes."""
    return tuple(error for package in _loaded() for error in _announced(package).refusals())


def _loaded() -> Iterator[str]:
    return (package for package in sorted(names(GROUP)) if package in sys.modules)


@cache
def _announced(package: str) -> PluginFunctions:
    found = brought(GROUP, package, "stand-ins")
    assert found is not None, package
    table, told, hint = found
    if not isinstance(table, PluginFunctions):
        raise BadRules(f"{told} is {type(table).__name__}, not a PluginFunctions", hint)
    for name, function in table.functions.items():
        if not name.startswith(f"{package}."):
            raise BadRules(f"{told} has a stand-in for {name}, not for a function of {package}", hint)
        if not isinstance(function, FunctionType):
            raise BadRules(f"{told} must give a function as the stand-in for {name}", hint)
        hide(function.__code__.co_filename)
    return table


@cache
def _plain(package: str) -> Functions:
    return {_key(name): _function(name) for name in _announced(package).functions}


def _key(name: str) -> tuple[str, str]:
    module, _, function = name.rpartition(".")
    return module, function


def _function(name: str) -> Any:
    module, function = _key(name)
    if module in sys.modules and hasattr(sys.modules[module], function):
        return getattr(sys.modules[module], function)
    raise BadRules(f"there is a stand-in for {name}, which does not exist", "install releases that fit")


def _standing_in(is_symbolic: Callable[[Any], bool]) -> Functions:
    return {
        _key(name): _instead(function, _plain(package)[_key(name)], is_symbolic)
        for package in _loaded()
        for name, function in _announced(package).functions.items()
    }


def _instead(
    stand_in: Callable[..., Any], plain: Callable[..., Any], is_symbolic: Callable[[Any], bool]
) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        values = (*args, *kwargs.values())
        if any(map(is_symbolic, values)) and not any(map(_has_any_rank, values)):
            with contextlib.suppress(UnsupportedCall):
                return stand_in(*args, **kwargs)
        return plain(*args, **kwargs)

    return call


def _is_recorded(value: Any) -> bool:
    return type(value) in (SymbolicTensor, Size)


def _has_any_rank(value: Any) -> bool:
    """Returns whether it is a tensor of unknown rank."""
    if type(value) is not SymbolicTensor:
        return False
    return not isinstance(value.value, Tensor) or any(row_of(dim) for dim in value.value.shape)


def _is_traced(value: Any) -> bool:
    """Returns whether the value is a size of a trace, or a tensor with one."""
    sizes = value.shape if isinstance(value, torch.Tensor) else (value,)
    return any(type(n) is torch.SymInt for n in sizes)
