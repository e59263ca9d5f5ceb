"""Stand-ins for Python's own names while a program is recorded.

Some of Python's functions and types need numbers: `int(n)`, `range(n)`, `len(rows)`. For a size, each can
return a result that a dim expresses. So their names are rebound, in the modules that contain the target's
code, to stand-ins that pass sizes through and are Python's own in every other respect.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import itertools
import re
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from types import FrameType, FunctionType, ModuleType
from typing import Any, Final

import torch

from ..bytecode.operations import hands_on
from ..bytecode.origins import is_inner, is_of_package
from ..host.patches import Patch, Setting, together
from ..host.submodules import Modules, submodules
from ..plugins import announced
from ..values import sequences
from ..values.numbers import Real, Size
from ..values.symbolic import RowSizes, Sizes, SymbolicTensor
from .integers import FUNCTIONS, PLAIN, symbolic_float, symbolic_int


class TypeStandIn(type):
    """The class of a stand-in for a type, whose `isinstance`, comparison and attributes are those of the
    type.
    """

    real: type
    call: Callable[..., Any]

    @hands_on
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls.call(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls.real)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.real)

    def __eq__(cls, other: object) -> bool:
        return other is cls.real or other is cls

    def __hash__(cls) -> int:
        return hash(cls.real)

    @property
    def dtype(cls) -> Any:
        """Returns the dtype, for which NumPy asks an unknown type: `a.astype(int)`."""
        return sys.modules["numpy"].dtype(cls.real)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls.real, name)

    def __getitem__(cls, parameters: Any) -> Any:
        return cls.real[parameters]  # type: ignore[index]

    def __repr__(cls) -> str:
        return repr(cls.real)

    def __or__(cls, other: Any) -> Any:
        return cls.real | other

    def __ror__(cls, other: Any) -> Any:
        return other | cls.real


def _of_type(real: type, call: Callable[..., Any]) -> Any:
    return TypeStandIn(real.__name__, (), {"real": real, "call": staticmethod(call)})


TYPES: Final[Mapping[type, type]] = {
    Size: int,
    Real: float,
    Sizes: torch.Size,
    RowSizes: torch.Size,
    SymbolicTensor: torch.Tensor,
    sequences.Repeated: torch.Tensor,
    sequences.RepeatingTuple: tuple,
    sequences.Repeating: list,
    sequences.SizeRange: range,
}
"""For each type of the recording, the type that the program sees."""


def symbolic_isinstance(value: Any, kinds: Any, /) -> bool:
    """Returns `isinstance`: a size is an `int` and no `torch.SymInt`, as in an eager run."""
    kind = builtins.type(value)
    return builtins.issubclass(TYPES[kind], kinds) if kind in (Size, Real) else isinstance(value, kinds)


@hands_on
def symbolic_type(*args: Any, **kwargs: Any) -> Any:
    """Returns `type`; for a recorded value, the type that the program sees: `type(n) is int`."""
    kind = builtins.type(*args, **kwargs)
    return TYPES.get(kind, kind) if len(args) == 1 else kind


def symbolic_id(value: Any, /) -> int:
    """Returns `id`. Small equal integers are one object, so sizes are tried number by number."""
    return builtins.id(int(value) if builtins.type(value) is Size else value)


STAND_INS: Final[Mapping[str, Any]] = {
    "type": _of_type(builtins.type, symbolic_type),
    "isinstance": symbolic_isinstance,
    "id": symbolic_id,
    "int": _of_type(builtins.int, symbolic_int),
    "float": _of_type(builtins.float, symbolic_float),
    "range": _of_type(builtins.range, sequences.symbolic_range),
    "enumerate": _of_type(builtins.enumerate, sequences.symbolic_enumerate),
    "zip": _of_type(builtins.zip, sequences.symbolic_zip),
    "reversed": _of_type(builtins.reversed, sequences.symbolic_reversed),
    "list": _of_type(builtins.list, sequences.symbolic_list),
    "tuple": _of_type(builtins.tuple, sequences.symbolic_tuple),
    "iter": sequences.symbolic_iter,
    "len": sequences.symbolic_len,
    "sorted": sequences.symbolic_sorted,
    "sum": sequences.symbolic_sum,
    "max": sequences.symbolic_max,
}
_NAMES: Final = "|".join(STAND_INS)
_TOLD_APART: Final = (
    re.compile(rf"is(?<!\wis) (?:not )?({_NAMES})\b"),
    re.compile(rf"case(?<!\wcase) ({_NAMES})\([^)]"),
    re.compile(rf"dtype(?<!\wdtype) *= *({_NAMES})\b"),
    *(re.compile(rf"\.{name}\((?:[^()\n]*, *)?({_NAMES})[,)]") for name in ("to", "type", "view")),
)
"""Code where a stand-in for a type does not suffice: identity, patterns with a member, arguments of C code.
Each begins with plain letters, which are found fast in a long file.
"""


@functools.cache
def _taken(module: ModuleType) -> frozenset[str]:
    """Returns the names that cannot be rebound in this module."""
    try:
        source = inspect.getsource(module)
    except (OSError, TypeError):
        return frozenset(STAND_INS)
    taken = frozenset(name for told in _TOLD_APART for name in told.findall(source))
    return taken if "torch.Sym" in source else taken | {"isinstance"}


def sources_of(target: Any, modules: Modules | None = None) -> list[ModuleType]:
    """Returns the modules of the user's that contain the target's code, those of functions that they import
    from their own package, and the one of torch's own composites.
    """
    modules = submodules(target) if modules is None else modules
    parts = [*{type(module) for _, module in modules}] or [type(target), target]
    names = [getattr(part, "__module__", None) for part in parts]
    found: dict[str, ModuleType] = {}
    todo = sorted({n for n in names if isinstance(n, str)})
    while todo:
        name = todo.pop()
        module = sys.modules.get(name)
        file = getattr(module, "__file__", None)
        if module is None or not file or is_inner(file) or name in found:
            continue
        found[name] = module
        package = name.partition(".")[0]
        todo += sorted(n for n in _imported(module) if n.partition(".")[0] == package and n not in found)
    return [torch.nn.functional, *found.values()]


@functools.cache
def _imported(module: ModuleType) -> frozenset[str]:
    """The modules whose functions the module has imported by name."""
    functions = (f for f in vars(module).values() if isinstance(f, FunctionType))
    return frozenset(f.__module__ for f in functions if f.__module__)


class AnotherSource(BaseException):
    """Raised where code outside of the sources makes a size a number: the run starts again, with that module
    included.
    """

    def __init__(self, module: ModuleType) -> None:
        self.module = module


def calls_builtins(frame: FrameType) -> ModuleType | None:
    """Returns the user's module whose code runs in this frame, if a name in it can be rebound there; else
    None.
    """
    outer: FrameType | None = frame
    while outer is not None and is_of_package(outer.f_code.co_filename):
        outer = outer.f_back
    if outer is None or is_inner(outer.f_code.co_filename):
        return None
    module = sys.modules.get(outer.f_globals.get("__name__", ""))
    if module is None or vars(module) is not outer.f_globals:
        return None
    return module if _free(module) & {*outer.f_code.co_names} else None


def _free(module: ModuleType) -> frozenset[str]:
    """Returns the names that can be rebound in this module, and are not names of its own."""
    return _allowed(module).difference(vars(module))


@functools.cache
def _allowed(module: ModuleType) -> frozenset[str]:
    """Returns the names that its code allows to rebind: for modules other than the user's, at most `int`."""
    root = module.__name__.partition(".")[0]
    mine = root not in sys.stdlib_module_names and root not in ("torch", "numpy")
    return frozenset(STAND_INS if mine else ("int",)) - _taken(module)


def rebound(
    sources: Iterable[ModuleType], calls: Mapping[str, Callable[..., Any]]
) -> AbstractContextManager[None]:
    """Redirects calls of these builtins inside the block: in the user's modules, and those of `int` in
    others, too. A type is itself in every other respect.
    """
    kinds = {name: real for name in calls if isinstance(real := getattr(builtins, name), type)}
    stand_ins = {name: _of_type(kinds[name], f) if name in kinds else f for name, f in calls.items()}
    return together(
        Setting(
            module,
            {name: stand_in for name, stand_in in stand_ins.items() if _may_be_rebound(module, name)},
            "builtins are called otherwise",
        )
        for module in sources
    )


def _may_be_rebound(module: ModuleType, name: str) -> bool:
    if name in STAND_INS:
        return name in _free(module)
    return "range" in _free(module) and name not in vars(module)  # the user's own module


def _members(module: ModuleType, named: Container[int]) -> Iterator[tuple[str, Any]]:
    """Yields the members of a module that have these identities."""
    members = vars(module)
    return itertools.compress(members.items(), map(named.__contains__, map(id, members.values())))


def symbolic_builtins(
    sources: Iterable[ModuleType], ranges: Callable[..., Any] = sequences.symbolic_range
) -> AbstractContextManager[None]:
    """Rebinds Python's names in these modules, and functions of `math` and NumPy there and wherever they are
    called by their full names; and restores them at the end. `ranges` replaces `range`.
    """
    sources, stand_ins = tuple(sources), {**STAND_INS, "range": _of_type(builtins.range, ranges)}
    return together((
        *(Setting(m, {name: stand_ins[name] for name in _free(m)}, "sizes are recorded") for m in sources),
        *_replacing(
            sources, {**PLAIN, **announced.plain_functions()}, {**FUNCTIONS, **announced.recorded()}
        ),
    ))  # fmt: skip


def replaced(
    sources: Iterable[ModuleType], plain: Mapping[tuple[str, str], Callable[..., Any]],
    stand_ins: Mapping[tuple[str, str], Callable[..., Any]],
) -> AbstractContextManager[None]:
    """Replaces functions, given by module and name, inside the block, in their module and in the user's."""
    return together(_replacing(sources, plain, stand_ins))


def _replacing(
    sources: Iterable[ModuleType], plain: Mapping[tuple[str, str], Callable[..., Any]],
    stand_ins: Mapping[tuple[str, str], Callable[..., Any]],
) -> Iterator[Patch]:
    named = {id(function): key for key, function in plain.items()}
    functions = [(sys.modules[home], name, (home, name)) for home, name in plain] + [
        (module, alias, named[id(value)])
        for module in sources
        for alias, value in _members(module, named)
    ]
    for module, alias, key in functions:
        yield Patch(module, alias, functools.partial(_instead, stand_ins[key]), "functions take sizes")


def _instead(stand_in: Callable[..., Any], plain: Callable[..., Any]) -> Callable[..., Any]:
    return stand_in
