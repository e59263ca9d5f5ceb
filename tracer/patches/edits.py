"""Changes to a live program, which last for an experiment and are taken back afterwards.

A change is data: another argument of a constructor of torch's (`in_features` of a `Linear`), another value of
a module's attribute, another text in the body of a function. A changed number may also be left open: then the
program takes it as one more input, a size, and its requirements on that size are recorded like all others.
"""

from __future__ import annotations
import __future__

import contextlib
import linecache
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from types import CodeType, FunctionType
from typing import Any, Final, TypeAlias

import torch
from torch import nn

from ...constraints.ir.language import Tensor
from ...constraints.ir.spec import Declared
from ...constraints.terms.dims import sym
from ..bytecode.codes import codes_within
from ..host.interpreter import signature
from ..host.modules import (
    BUFFERS,
    FLAT_WEIGHTS,
    PARAMETERS,
    buffers_of,
    children_of,
    flat_weights,
    parameters_of,
)
from ..host.patches import Setting, together
from ..values.real_tensors import dtype_name
from .functions import compiled_from

OPEN: Final = "open_number_"
"""The prefix of the symbols for numbers left open."""


@dataclass(frozen=True, slots=True)
class OpenNumber:
    """A number that is left open: the symbol, and the number in the program."""

    name: str
    now: int

    @classmethod
    def nth(cls, index: int, now: int) -> OpenNumber:
        """Returns one of several numbers that a change leaves open, up to 26."""
        return cls(f"{OPEN}{chr(ord('a') + index)}", now)


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A module of torch's, built with another argument."""

    module: str
    parameter: str
    value: Any
    likewise: tuple[str, ...] = ()
    """Other modules built by the same line."""


@dataclass(frozen=True, slots=True)
class Constructed:
    """A module of a class of the user's, built by the same call with another argument."""

    module: str
    parameter: str
    value: int
    arguments: tuple[Any, ...]
    keywords: tuple[tuple[str, Any], ...]
    """The arguments of the call, with the other one among them."""
    likewise: tuple[str, ...] = ()
    """Other modules built by the same call."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """Another value of a module's attribute."""

    module: str
    attribute: str
    value: Any


@dataclass(frozen=True, slots=True)
class Projected:
    """A convolution of kernel 1 in place of an `nn.Identity`, as shortcuts have it."""

    module: str
    channels: tuple[int, int]
    """The numbers of input and output channels."""
    axes: int
    stride: int


@dataclass(frozen=True, slots=True)
class Resized:
    """A parameter or buffer of a module with another size of one of its axes."""

    module: str
    name: str
    axis: int
    value: Any


@dataclass(frozen=True, slots=True)
class Rewritten:
    """Another text for the characters `start` to `stop` of a file, within the body of a function; an open
    number is named in it.
    """

    file: str
    function: str
    start: int
    stop: int
    text: str
    open: tuple[OpenNumber, ...] = ()


Edit: TypeAlias = "Rebuilt | Constructed | Assigned | Projected | Resized | Rewritten"


class CannotApply(Exception):
    """Raised where a change cannot be tried on this program."""


@contextlib.contextmanager
def applied(target: Any, edit: Edit, given: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Applies the change to the target inside the block; `given` has the values of numbers that it leaves
    open.

    Raises CannotApply where the program does not allow it.
    """
    values = given or {}
    match edit:
        case Rebuilt(module, parameter, value, likewise):
            with contextlib.ExitStack() as replaced:
                for path in (module, *likewise):
                    new = _rebuilt(_module(target, path), parameter, value, values)
                    replaced.enter_context(_replaced(target, path, new))
                yield
        case Constructed(module, _, _, arguments, keywords, likewise):
            with contextlib.ExitStack() as replaced:
                for path in (module, *likewise):
                    new = _constructed(_module(target, path), arguments, dict(keywords))
                    replaced.enter_context(_replaced(target, path, new))
                yield
        case Assigned(module, attribute, value):
            owner = vars(_module(target, module))
            with Setting(owner, {attribute: _filled(value, values)}, _TRIED).in_force():
                yield
        case Projected(module, (fed, given_out), axes, stride):
            if not isinstance(_module(target, module), nn.Identity):
                raise CannotApply("there is more than an identity")
            kind = CONVOLUTIONS[axes]
            with torch.device("meta"):
                new = kind(fed, given_out, 1, stride=stride)
            with _replaced(target, module, new.to_empty(device=_device(target)).requires_grad_(False)):
                yield
        case Resized(module, name, axis, value):
            with _resized(_module(target, module), name, axis, value, values):
                yield
        case Rewritten():
            with _rewritten(target, edit, values):
                yield


class WithOpenNumbers(nn.Module):
    """A target whose change leaves numbers open: it takes them as inputs besides its own."""

    def __init__(self, target: Any, edit: Edit) -> None:
        super().__init__()
        self.inner = target  # a module is registered, so that its attributes and sources are known
        self.edit = edit
        self.numbers, self.tensors = opened(target, edit)
        self.__module__ = getattr(target, "__module__", None) or type(target).__module__

    def inputs(self) -> tuple[Declared, ...]:
        """Returns the inputs besides the target's own: the numbers, and the weights whose shapes they
        determine.
        """
        tensors = (Declared((name,), type_) for name, type_ in self.tensors.items())
        return (*(Declared((n.name,), sym(n.name)) for n in self.numbers), *tensors)

    def forward(self, **inputs: Any) -> Any:
        given = {name: inputs.pop(name) for name in (*(n.name for n in self.numbers), *self.tensors)}
        with applied(self.inner, self.edit, given):
            return self.inner(**inputs)


def opened(target: Any, edit: Edit) -> tuple[tuple[OpenNumber, ...], dict[str, Tensor]]:
    """Returns the numbers that a change leaves open, and the weights whose shapes they determine, by the
    names of inputs.
    """
    match edit:
        case Rebuilt(module, parameter, OpenNumber() as number, _):
            old = _module(target, module)
            fit = _Fit.of(old, parameter, number.now)
            shapes = {
                _weight(name): Tensor(tuple(_at(d, sym(number.name)) for d in dims), _dtype(old))
                for name, dims in fit.shapes.items()
            }
            return (number,), shapes
        case Resized(module, name, axis, OpenNumber() as number):
            old_tensor = getattr(_module(target, module), name)
            sizes: list[Any] = [*old_tensor.shape]
            sizes[axis] = sym(number.name)
            dtype = dtype_name(old_tensor.dtype)
            return (number,), {_weight(name): Tensor(tuple(sizes), dtype)}
        case Rebuilt() | Constructed() | Resized() | Projected():
            return (), {}
        case Assigned(_, _, value):
            return tuple(_opens(value)), {}
        case Rewritten():
            return edit.open, {}


def closed(edit: Edit, values: Mapping[str, int]) -> Edit:
    """Returns the change with the open numbers filled in."""
    match edit:
        case Rewritten(text=text):
            for name, value in values.items():
                text = text.replace(name, str(value))
            return replace(edit, text=text, open=())
        case Projected() | Constructed():
            return edit
        case _:
            return replace(edit, value=_filled(edit.value, values))


def _opens(value: Any) -> Iterator[OpenNumber]:
    if isinstance(value, OpenNumber):
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _opens(part)


def _filled(value: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(value, OpenNumber):
        return values[value.name]
    if isinstance(value, list | tuple):
        return type(value)(_filled(part, values) for part in value)
    return value


def _resized(
    module: nn.Module, name: str, axis: int, value: Any, given: Mapping[str, Any]
) -> contextlib.AbstractContextManager[None]:
    """Replaces the module's tensor, a parameter or buffer, by one of another size, wherever it is held."""
    held: dict[str, Any] = parameters_of(module) if name in parameters_of(module) else buffers_of(module)
    old = held[name]
    if isinstance(value, OpenNumber):
        new = given[_weight(name)]
    else:
        sizes = [*old.shape]
        sizes[axis] = value
        new = torch.zeros(sizes, dtype=old.dtype, device=old.device)
        if name in parameters_of(module):
            new = nn.Parameter(new, requires_grad=False)
    return Setting(held, {name: new}, _TRIED).in_force()


# ---- modules of torch's


CONVOLUTIONS: Final = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}
"""Convolutions by the number of axes that they slide along."""

SIZES: Final = frozenset(
    """
    in_features out_features in_channels out_channels num_features num_channels input_size hidden_size
    embedding_dim num_embeddings embed_dim normalized_shape in1_features in2_features
    """.split()
)
"""Arguments of constructors that are sizes of weights."""
_RECURRENT: Final = "input_size hidden_size num_layers bias batch_first dropout bidirectional".split()


def arguments(module: nn.Module) -> dict[str, Any] | None:
    """Returns the arguments that a module of torch's was built with; None for other modules, or where they
    are not known.
    """
    kind = type(module)
    if not kind.__module__.startswith("torch.nn.modules."):
        return None
    if isinstance(module, nn.RNNBase):
        return {name: getattr(module, name) for name in _RECURRENT}
    if isinstance(module, nn.MultiheadAttention):
        names = "embed_dim num_heads dropout add_zero_attn batch_first".split()
        found = {n: getattr(module, n) for n in names}
        other = {n: getattr(module, n) for n in ("kdim", "vdim") if getattr(module, n) != module.embed_dim}
        biases = {"bias": module.in_proj_bias is not None, "add_bias_kv": module.bias_k is not None}
        return found | other | biases
    found = {}
    for name, parameter in [*signature(kind.__init__).parameters.items()][1:]:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            return None
        if name in ("device", "dtype") or name.startswith("_"):
            continue
        value = getattr(module, name, parameter.default)
        if value is parameter.empty:
            return None
        found[name] = value if name != "bias" or isinstance(value, bool) else value is not None
    return found


def _built(module: nn.Module, parameter: str, value: Any, device: str) -> nn.Module:
    given = arguments(module)
    if given is None or parameter not in given:
        raise CannotApply(f"{type(module).__name__} has no argument {parameter}")
    if parameter == "padding" and isinstance(value, int) and isinstance(given["padding"], str):
        raise CannotApply("its padding is a word")
    try:
        with torch.device(device):
            new = type(module)(**given | {parameter: value})
    except (TypeError, ValueError, AssertionError, RuntimeError, ZeroDivisionError) as error:
        raise CannotApply(str(error)) from error
    dtype = next((p.dtype for p in module.parameters() if p.dtype.is_floating_point), None)
    return new.to(dtype=dtype).train(module.training)


MAX_WEIGHTS: Final = 50_000_000
"""The most elements of the weights of a module that is constructed anew."""


def _constructed(module: nn.Module, arguments: Sequence[Any], keywords: Mapping[str, Any]) -> nn.Module:
    """Returns another module of the same class. Its buffers are real, since they may hold indices."""
    if sum(p.numel() for p in module.parameters()) > MAX_WEIGHTS:
        raise CannotApply("it is large")
    try:
        with torch.random.fork_rng(devices=[]), _device(module):
            new = type(module)(*arguments, **keywords)
    except Exception as error:  # a constructor of the user's may raise anything
        raise CannotApply(str(error)) from error
    dtype = next((p.dtype for p in module.parameters() if p.dtype.is_floating_point), None)
    return new.to(dtype=dtype).train(module.training).requires_grad_(False)


def _rebuilt(module: nn.Module, parameter: str, value: Any, given: Mapping[str, Any]) -> nn.Module:
    if not isinstance(value, OpenNumber):
        empty = _built(module, parameter, value, "meta").to_empty(device=_device(module))
        for tensor in (*empty.parameters(), *empty.buffers()):
            torch.nn.init.zeros_(tensor) if tensor.numel() < 1_000_000 else None
        return empty.requires_grad_(False)
    fit = _Fit.of(module, parameter, value.now)
    size = given[value.name]
    new: nn.Module = object.__new__(type(module))
    new.__dict__.update(fit.base.__dict__)
    for place in (PARAMETERS, BUFFERS):
        new.__dict__[place] = {
            name: given.get(_weight(name), tensor) for name, tensor in fit.base.__dict__[place].items()
        }
    for name, fitted in fit.attributes.items():
        if isinstance(fitted, tuple):
            new.__dict__[name] = tuple(_at(line, size) for line in fitted)
        else:
            new.__dict__[name] = _at(fitted, size)
    if isinstance(module, nn.RNNBase):
        new.__dict__[FLAT_WEIGHTS] = flat_weights(module, parameters_of(new).__getitem__)
    return new


@dataclass(frozen=True, slots=True)
class _Linear:
    """`slope * k + start`."""

    slope: int
    start: int


def _at(line: _Linear, size: Any) -> Any:
    return line.slope * size + line.start if line.slope else line.start


@dataclass(frozen=True, slots=True)
class _Fit:
    """The dependence of a module on one argument: its attributes and the shapes of its weights, as lines in
    it.
    """

    base: nn.Module
    attributes: Mapping[str, _Linear | tuple[_Linear, ...]]
    shapes: Mapping[str, tuple[_Linear, ...]]

    @classmethod
    def of(cls, module: nn.Module, parameter: str, now: int) -> _Fit:
        """Returns the lines through three values of the argument.

        Raises CannotApply where these are not on a line.
        """
        args = arguments(module) or {}
        step = int(args.get("groups", 1)) * int(args.get("num_heads", 1)) * int(args.get("num_groups", 1))
        several = isinstance(args.get(parameter), tuple)
        points = [now + i * step for i in range(3)]
        built = [_built(module, parameter, (p,) if several else p, "meta") for p in points]
        attributes: dict[str, _Linear | tuple[_Linear, ...]] = {}
        for name, first in vars(built[0]).items():
            values = [vars(b)[name] for b in built]
            if type(first) is int and len({*values}) > 1:
                attributes[name] = _line(points, values)
            elif isinstance(first, tuple) and len({*values}) > 1:
                attributes[name] = tuple(_line(points, [*row]) for row in zip(*values, strict=True))
        shapes = {}
        for name, _ in (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)):
            sizes = [tuple(getattr(b, name).shape) for b in built]
            if len({*sizes}) > 1:
                shapes[name] = tuple(_line(points, [*row]) for row in zip(*sizes, strict=True))
        if any(True for _ in module.children()):
            raise CannotApply("it has modules within")
        return cls(built[0], attributes, shapes)


def _line(points: Sequence[int], values: Sequence[Any]) -> _Linear:
    if not all(type(v) is int for v in values):
        raise CannotApply("it holds more than sizes")
    slope, rest = divmod(values[1] - values[0], points[1] - points[0])
    line = _Linear(slope, values[0] - slope * points[0])
    if rest or any(line.slope * p + line.start != v for p, v in zip(points, values, strict=True)):
        raise CannotApply("a weight's size is no line in the argument")
    return line


def _weight(name: str) -> str:
    return f"{OPEN}weight_{name}"


def _dtype(module: nn.Module) -> str:
    return next((dtype_name(p.dtype) for p in module.parameters()), "float32")


def _device(module: Any) -> torch.device:
    tensors = module.parameters() if isinstance(module, nn.Module) else ()
    return next((p.device for p in tensors), torch.device("cpu"))


def module_at(target: Any, path: str) -> nn.Module | None:
    """Returns the module of the target with this path, or None."""
    return dict(target.named_modules()).get(path) if isinstance(target, nn.Module) else None


def _module(target: Any, path: str) -> nn.Module:
    found = module_at(target, path)
    if found is None:
        raise CannotApply(f"there is no module {path!r}")
    return found


def _replaced(target: Any, path: str, new: nn.Module) -> contextlib.AbstractContextManager[None]:
    """Replaces the module at a path, wherever it occurs."""
    old = _module(target, path)
    places = [
        (children_of(module), name)
        for module in target.modules()
        for name, child in children_of(module).items()
        if child is old
    ]
    if not places:
        raise CannotApply("the target itself would have to be built anew")
    return together(Setting(children, {name: new}, _TRIED) for children, name in places)


# ---- the text of a function


def _rewritten(
    target: Any, edit: Rewritten, given: Mapping[str, Any]
) -> contextlib.AbstractContextManager[None]:
    """Makes the functions compiled from that text run the edited text."""
    functions = [f for f in _functions(target) if _is(f.__code__, edit)]
    if not functions:
        raise CannotApply(f"the function {edit.function} is not found")
    whole, text = _compiled(edit, functions[0].__code__)
    scopes = [f.__globals__ for f in functions]
    changed = [Setting(scope, given, _TRIED) for scope in scopes]
    for function in functions:
        code = function.__code__
        same = (c for c in codes_within(whole) if _is(c, edit) and c.co_firstlineno == code.co_firstlineno)
        new = next(same, None)
        if new is None or new.co_freevars != code.co_freevars:
            raise CannotApply("the function closes over other names then")
        compiled_from(new, text)
        changed.append(Setting(function, {"__code__": new}, _TRIED))
    return together(changed)


_TRIED: Final = "a change of the program is tried"


def _compiled(edit: Rewritten, like: CodeType) -> tuple[CodeType, str]:
    """Returns the code of the outermost statement that contains the edit, at its lines: the user's own text
    with one expression changed, which runs where the original does. Returns the text of the file, too.
    """
    lines = linecache.getlines(edit.file)
    first = next((n for n in range(like.co_firstlineno - 1, -1, -1) if _opens_statement(lines, n)), 0)
    last = next((n for n in range(like.co_firstlineno, len(lines)) if _opens_statement(lines, n)), len(lines))
    before, part = "".join(lines[:first]), "".join(lines[first:last])
    start, stop = edit.start - len(before), edit.stop - len(before)
    if not 0 <= start <= stop <= len(part):
        raise CannotApply("the text has changed since")
    changed = part[:start] + edit.text + part[stop:]
    try:
        with warnings.catch_warnings():  # of a text that nobody has written
            warnings.simplefilter("ignore", SyntaxWarning)
            text, flags = "\n" * first + changed, like.co_flags & _FUTURES
            code: CodeType = compile(text, edit.file, "exec", flags, dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise CannotApply(str(error)) from error
    return code, "".join((before, changed, *lines[last:]))


_FUTURES: Final = reduce(or_, (getattr(__future__, n).compiler_flag for n in __future__.all_feature_names))


def _opens_statement(lines: Sequence[str], number: int) -> bool:
    """Returns whether an outermost class or function, or its decorators, begins at this line."""
    line = lines[number]
    decorated = number > 0 and lines[number - 1].startswith("@")
    return line.startswith(("class ", "def ", "async def ", "@")) and not decorated


def _is(code: CodeType, edit: Rewritten) -> bool:
    return code.co_filename == edit.file and code.co_qualname == edit.function


def _functions(target: Any) -> Iterator[FunctionType]:
    """Yields the functions that a program is known to consist of: its own, methods of its modules, and
    functions defined next to these.
    """
    seen: set[int] = set()
    todo: list[Any] = [target] if isinstance(target, FunctionType) else []
    modules = target.modules() if isinstance(target, nn.Module) else ()
    kinds = dict.fromkeys(k for module in modules for k in type(module).__mro__)
    for kind in kinds:
        if kind.__module__.partition(".")[0] == "torch":
            continue
        todo += [m for m in map(_plain, vars(kind).values()) if m is not None]
    scopes = {id(f.__globals__): f.__globals__ for f in todo}
    for scope in scopes.values():
        todo += [f for f in scope.values() if isinstance(f, FunctionType)]
    for function in todo:
        if id(function) not in seen:
            seen.add(id(function))
            yield function


def _plain(member: Any) -> FunctionType | None:
    """Returns the function behind a member of a class, or None."""
    member = getattr(member, "__func__", member)
    return member if isinstance(member, FunctionType) else None


