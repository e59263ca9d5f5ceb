"""Operations on named axes, as the package einx writes them: `einx.add("b n d, s d -> (b s) n d", x, y)`.

einx turns a description and the sizes at hand into Python code of torch's functions. It solves equations of
sizes and writes sizes into the code, which needs numbers. So its functions are implemented here according to
their documentation: by calls of torch's functions, those that einx itself would generate. A description that
is not supported here goes to einx.

Axes of one name have one size, which is at least 1. Of an axis in a group, `(a b)`, it follows from the size
of the group and of the others in it.
"""

from __future__ import annotations

import functools
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import torch

from .door import PluginFunctions, UnsupportedCall, require_between, require_equal, require_multiple

# ---- descriptions


@dataclass(frozen=True, slots=True)
class _NamedAxis:
    """An axis of a description: `a`, `[a]`, or `a...` for any number of axes."""

    name: str
    marked: bool = False
    repeated: bool = False


@dataclass(frozen=True, slots=True)
class _AxisGroup:
    """The axes that form a dim of a tensor: one, or those of `(a b)`; for the number 1, an empty group.

    `a...` alone means several axes with a dim each, `(a...)` one dim of them all.
    """

    axes: tuple[_NamedAxis, ...]
    joined: bool = True

    @property
    def is_alone(self) -> bool:
        return len(self.axes) == 1


@dataclass(frozen=True, slots=True)
class _Expression:
    """The description of one tensor: a group for each dim, except that `a...` covers any number of them."""

    groups: tuple[_AxisGroup, ...]

    @property
    def axes(self) -> tuple[_NamedAxis, ...]:
        return tuple(axis for group in self.groups for axis in group.axes)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(axis.name for axis in self.axes)

    @property
    def marked(self) -> frozenset[str]:
        return frozenset(axis.name for axis in self.axes if axis.marked)

    @property
    def is_apart(self) -> bool:
        """Returns whether every dim is a single axis."""
        return all(group.is_alone for group in self.groups)

    def marking(self, names: Iterable[str]) -> _Expression:
        def marked(group: _AxisGroup) -> _AxisGroup:
            return replace(group, axes=tuple(replace(a, marked=a.name in names) for a in group.axes))

        return _Expression(tuple(map(marked, self.groups)))

    def without_marked(self) -> _Expression:
        """Returns the expression without marked dims, and without the marked axes of a group."""
        left = [replace(g, axes=tuple(a for a in g.axes if not a.marked)) for g in self.groups]
        pairs = zip(self.groups, left, strict=True)
        return _Expression(tuple(now for group, now in pairs if group.joined or now.axes))


_WORD: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")


@functools.lru_cache(maxsize=1 << 10)
def _read(description: str) -> tuple[tuple[_Expression, ...], tuple[_Expression, ...] | None]:
    """Returns the expressions of the operands, and those of the results, if they are given."""
    sides = description.split("->")
    if len(sides) > 2:
        raise UnsupportedCall
    given, *results = (tuple(map(_expression, side.split(","))) for side in sides)
    expressions = [*given, *(results[0] if results else ())]
    axes = {axis for expression in expressions for axis in expression.axes}
    if len(axes) > len({axis.name for axis in axes}):
        raise UnsupportedCall  # marked here and not there, or repeated
    if any(len({*expression.names}) < len(expression.names) for expression in expressions):
        raise UnsupportedCall  # a diagonal
    return given, results[0] if results else None


def _expression(text: str) -> _Expression:
    return _Expression(tuple(_groups(text, marked=False)))


def _groups(text: str, marked: bool) -> Iterator[_AxisGroup]:
    for word in _words(text):
        inner = word[1:-1]
        if word == "1" and not marked:
            yield _AxisGroup(())
        elif word.startswith("(") and word.endswith(")"):
            yield _AxisGroup(tuple(axis for group in _groups(inner, marked) for axis in group.axes))
        elif word.startswith("[") and word.endswith("]"):
            yield from _groups(inner, True)
        else:
            yield _AxisGroup((_axis(word, marked),), joined=False)


def _axis(word: str, marked: bool) -> _NamedAxis:
    name, repeated = word.removesuffix("..."), word.endswith("...")
    if repeated and name.startswith("[") and name.endswith("]"):
        name, marked = name[1:-1], True
    if not _WORD.fullmatch(name) and not (repeated and not name):
        raise UnsupportedCall
    return _NamedAxis(name or "...", marked, repeated)


def _words(text: str) -> Iterator[str]:
    """Yields the parts between spaces that are not inside brackets."""
    word, depth = "", 0
    for letter in f"{text} ":
        depth += (letter in "([") - (letter in ")]")
        if letter != " " or depth > 0:
            word += letter
        elif word:
            if depth < 0 or not _closes_once(word):
                raise UnsupportedCall
            yield word
            word = ""
    if word:
        raise UnsupportedCall


def _closes_once(word: str) -> bool:
    """Returns whether the word is a name, or one pair of brackets with its contents, and not several without
    a space between them.
    """
    open_: list[str] = []
    for place, letter in enumerate(word):
        if letter in "([":
            if not open_ and place:
                return False
            open_.append(letter)
        elif letter in ")]":
            if not open_ or open_.pop() + letter not in ("()", "[]"):
                return False
            if not open_ and word[place + 1 :] not in ("", "..."):
                return False
    return not open_


# ---- sizes


@dataclass(frozen=True, slots=True)
class _AxesCall:
    """A call whose description is parsed: `...` is replaced by the axes that it covers."""

    description: str
    given: tuple[_Expression, ...]
    result: _Expression
    operands: tuple[Any, ...]
    equations: Sequence[tuple[_AxisGroup, Any]]
    """The dims of the operands, with their sizes. In this order each has at most one axis whose size does not
    follow from those before.
    """
    sizes: Mapping[str, Any]
    """The sizes of axes, as far as they are known: those that the call gives by name, until it is solved."""

    def solved(self) -> _AxesCall:
        """Returns the call with the sizes of all axes, and requires of sizes what einx does.

        A dim is the product of its axes. Where one of them is not known yet, it is the dim divided by the
        rest.
        """
        sizes, error = {**self.sizes}, _axis_size_error()
        for name, n in sizes.items():
            require_between(n, 1, _GREATEST, f"the size of the axis {name}", error)
        for group, n in self.equations:
            known = math.prod(sizes[axis.name] for axis in group.axes if axis.name in sizes)
            told = " ".join(axis.name for axis in group.axes) or "1"
            what = f"in {self.description!r} the size of {told}"
            missing = [axis.name for axis in group.axes if axis.name not in sizes]
            for name in missing:
                sizes[name] = n // known
                require_between(sizes[name], 1, None, f"the size of the axis {name}", error)
            (require_multiple if missing else require_equal)(n, known, what, error)
        return replace(self, sizes=sizes)

    def of_axes(self, names: Iterable[str]) -> list[Any]:
        return [self.sizes[name] for name in names]

    def apart(self, place: int) -> tuple[Any, tuple[str, ...]]:
        """Returns an operand with a dim for each of its axes, and their names."""
        tensor, expression = self.operands[place], self.given[place]
        if not expression.is_apart:
            tensor = torch.reshape(tensor, self.of_axes(expression.names))
        return tensor, expression.names

    def aligned(self, place: int, order: Sequence[str]) -> Any:
        """Returns an operand with its axes in this order, and a dim of size 1 for each that it does not have.
        """
        if not isinstance(self.operands[place], torch.Tensor):
            first = next(t for t in self.operands if isinstance(t, torch.Tensor))
            number = torch.asarray(self.operands[place], device=first.device)
            return torch.reshape(number, (1,) * len(order))
        tensor, names = self.apart(place)
        tensor = _permuted(tensor, names, [name for name in order if name in names])
        if len(names) < len(order):
            ones = (n if name in names else 1 for name, n in zip(order, self.of_axes(order), strict=True))
            tensor = torch.reshape(tensor, [*ones])
        return tensor

    def finished(self, tensor: Any, order: Sequence[str]) -> Any:
        """Returns the result, from a tensor that has some of its axes in this order."""
        names = self.result.names
        tensor = _permuted(tensor, order, [name for name in names if name in order])
        if len(order) < len(names):
            every = self.of_axes(names)
            ones = (n if name in order else 1 for name, n in zip(names, every, strict=True))
            tensor = torch.broadcast_to(torch.reshape(tensor, [*ones]), every)
        if not self.result.is_apart:
            groups = (self.of_axes(axis.name for axis in group.axes) for group in self.result.groups)
            tensor = torch.reshape(tensor, [*map(math.prod, groups)])
        return tensor


def _permuted(tensor: Any, names: Sequence[str], order: Sequence[str]) -> Any:
    return tensor if [*names] == [*order] else torch.permute(tensor, [names.index(name) for name in order])


def _call(
    description: str, given: tuple[_Expression, ...], result: _Expression, operands: tuple[Any, ...],
    parameters: Mapping[str, Any],
) -> _AxesCall:
    shapes = [*map(_shape, operands)]
    if len(shapes) != len(given):
        raise UnsupportedCall
    counts = _counts(given, shapes)
    spread = tuple(_spread(expression, counts) for expression in given)
    into = _spread(result, counts)
    if any(len(e.groups) != len(shape) for e, shape in zip(spread, shapes, strict=True)):
        raise UnsupportedCall
    pairs = zip(spread, shapes, strict=True)
    dims = [pair for e, shape in pairs for pair in zip(e.groups, shape, strict=True)]
    sizes = _parameters(parameters, (*given, result))
    equations = [*_in_order(dims, {*sizes})]
    if not {*into.names} <= {*sizes, *(axis.name for group, _ in equations for axis in group.axes)}:
        raise UnsupportedCall
    return _AxesCall(description, spread, into, operands, equations, sizes)


def _shape(operand: Any) -> Sequence[Any]:
    if isinstance(operand, torch.Tensor):
        return operand.shape
    if type(operand) in (int, float, bool):
        return ()
    raise UnsupportedCall


def _parameters(given: Mapping[str, Any], expressions: Iterable[_Expression]) -> dict[str, Any]:
    """Returns the sizes of axes that the call gives by name; einx ignores names of no axis."""
    axes = {axis.name: axis for expression in expressions for axis in expression.axes}
    found = {}
    for name, value in given.items():
        if name in _OPTIONS or isinstance(value, bool) or not isinstance(value, int | torch.SymInt):
            raise UnsupportedCall
        if name in axes:
            if axes[name].repeated:
                raise UnsupportedCall
            found[name] = value
    return found


_OPTIONS: Final = frozenset("backend graph keepdims".split())


def _counts(given: Iterable[_Expression], shapes: Iterable[Sequence[Any]]) -> dict[str, int]:
    """Returns how many axes each `...` covers."""
    found: dict[str, int] = {}
    for expression, shape in zip(given, shapes, strict=True):
        several = [g.axes[0].name for g in expression.groups if not g.joined and g.axes[0].repeated]
        if len(several) > 1:
            raise UnsupportedCall
        for name in several:
            count = len(shape) - len(expression.groups) + 1
            if count < 0 or found.setdefault(name, count) != count:
                raise UnsupportedCall
    return found


def _spread(expression: _Expression, counts: Mapping[str, int]) -> _Expression:
    """Returns the expression with each `...` replaced by the axes that it covers."""
    if not {axis.name for axis in expression.axes if axis.repeated} <= counts.keys():
        raise UnsupportedCall
    groups: list[_AxisGroup] = []
    for group in expression.groups:
        axes = tuple(one for axis in group.axes for one in _several(axis, counts))
        groups += [_AxisGroup(axes)] if group.joined else [_AxisGroup((axis,), joined=False) for axis in axes]
    return _Expression(tuple(groups))


def _several(axis: _NamedAxis, counts: Mapping[str, int]) -> Iterator[_NamedAxis]:
    if not axis.repeated:
        yield axis
        return
    for place in range(counts[axis.name]):
        yield _NamedAxis(f"{axis.name}.{place}", axis.marked)


_GREATEST: Final = 2**31 - 1
"""einx treats sizes that a call gives by name as integers of 32 bits."""


def _in_order(dims: list[tuple[_AxisGroup, Any]], known: set[str]) -> Iterator[tuple[_AxisGroup, Any]]:
    """Yields the dims such that each has at most one axis whose size does not follow from those before."""
    while dims:
        ready = [at for at, (g, _) in enumerate(dims) if sum(a.name not in known for a in g.axes) <= 1]
        if not ready:
            raise UnsupportedCall  # several sizes may do
        group, n = dims.pop(min(ready, key=lambda at: len(dims[at][0].axes)))
        known.update(axis.name for axis in group.axes)
        yield group, n


# ---- operations


def _elementwise(name: str, count: int | None) -> Callable[..., Any]:
    """Returns an elementwise function: elements are matched along axes of one name, and an operand without an
    axis is repeated along it.
    """

    def apply(description: str, *operands: Any, **parameters: Any) -> Any:
        given, results = _read(description)
        result = results[0] if results is not None else _whole(given)
        if (results and len(results) > 1) or any(e.marked for e in (*given, result)):
            raise UnsupportedCall
        if len(given) < 2 or len(given) != (count or len(given)):
            raise UnsupportedCall
        numbers = [o for o in operands if not isinstance(o, torch.Tensor)]
        tensors = [o for o in operands if isinstance(o, torch.Tensor)]
        if numbers and name not in COMPARING.values() and _matters_how_taken(numbers, tensors):
            raise UnsupportedCall
        call = _call(description, given, result, operands, parameters)
        named = {axis for expression in call.given for axis in expression.names}
        order = [axis for axis in call.result.names if axis in named]
        if len(order) < len(named) or (numbers and not order):
            raise UnsupportedCall
        call = call.solved()
        function = getattr(torch, name)
        values = [call.aligned(place, order) for place in range(len(operands))]
        found = function(*values) if count else functools.reduce(function, values)
        return call.finished(found, order)

    return apply


def _matters_how_taken(numbers: Iterable[Any], tensors: Iterable[torch.Tensor]) -> bool:
    """Returns whether the resulting dtype changes if einx turns the numbers into tensors.

    It does not where every axis has one element.
    """
    dtype = functools.reduce(torch.promote_types, (tensor.dtype for tensor in tensors), torch.bool)
    one = torch.empty(1, dtype=dtype)
    return any(torch.result_type(one, n) != torch.result_type(one, torch.asarray([n])) for n in numbers)


def _whole(given: tuple[_Expression, ...]) -> _Expression:
    """Returns the only expression that has the axes of all others."""
    every = {name for expression in given for name in expression.names}
    whole = {expression for expression in given if {*expression.names} == every}
    if len(whole) != 1:
        raise UnsupportedCall
    return whole.pop()


def _reduction(name: str) -> Callable[..., Any]:
    """Returns a reduction over the marked axes, or over those that the result does not have."""

    def apply(description: str, operand: Any, **parameters: Any) -> Any:
        given, results = _read(description)
        if len(given) != 1 or (results is not None and (len(results) != 1 or results[0].marked)):
            raise UnsupportedCall
        expression = given[0]
        if not expression.marked and results:
            expression = expression.marking({*expression.names} - {*results[0].names})
        result = results[0] if results else expression.without_marked()
        call = _call(description, (expression,), result, (operand,), parameters)
        reduced = call.given[0].marked
        names = call.given[0].names
        order = [axis for axis in names if axis not in reduced]
        axes = tuple(place for place, axis in enumerate(names) if axis in reduced)
        if not axes or not {*order} <= {*call.result.names} or (len(axes) > 1 and name == "prod"):
            raise UnsupportedCall
        call = call.solved()
        tensor, _ = call.apart(0)
        return call.finished(getattr(torch, name)(tensor, dim=axes[0] if len(axes) == 1 else axes), order)

    return apply


def _along_axis(name: str) -> Callable[..., Any]:
    """Returns a function that runs along the marked axis."""

    def apply(description: str, operand: Any, **parameters: Any) -> Any:
        given, results = _read(description)
        result = (results or given)[0]
        if len(given) != 1 or (results is not None and len(results) != 1) or not given[0].marked:
            raise UnsupportedCall
        call = _call(description, given, result, (operand,), parameters)
        names = call.given[0].names
        axes = [place for place, axis in enumerate(names) if axis in call.given[0].marked]
        if len(axes) != 1 or call.result.marked != call.given[0].marked:
            raise UnsupportedCall
        if not {*names} <= {*call.result.names}:
            raise UnsupportedCall
        call = call.solved()
        tensor, _ = call.apart(0)
        return call.finished(getattr(torch.nn.functional, name)(tensor, dim=axes[0]), names)

    return apply


def _id(description: str, *operands: Any, **parameters: Any) -> Any:
    """Returns one tensor, with its dims split, joined, reordered and repeated."""
    given, results = _read(description)
    if len(given) != 1 or results is None or len(results) != 1 or given[0].marked or results[0].marked:
        raise UnsupportedCall
    call = _call(description, given, results[0], operands, parameters)
    if not {*call.given[0].names} <= {*call.result.names}:
        raise UnsupportedCall
    call = call.solved()
    return call.finished(*call.apart(0))


def _dot(description: str, *operands: Any, **parameters: Any) -> Any:
    """Returns products summed along the axes that two tensors have and the result does not."""
    given, results = _read(description)
    if len(given) < 2 or results is None or len(results) != 1 or results[0].marked:
        raise UnsupportedCall
    marked = {axis for expression in given for axis in expression.marked}
    call = _call(description, given, results[0], operands, parameters)
    counts = Counter(axis for expression in call.given for axis in expression.names)
    summed = {axis for axis in counts if axis not in call.result.names}
    named = {axis for expression in call.given for axis in expression.marked}
    if (marked and named != summed) or any(counts[axis] != 2 for axis in summed):
        raise UnsupportedCall
    if not all(isinstance(o, torch.Tensor) for o in operands) or len(counts) > len(_LETTERS):
        raise UnsupportedCall
    call = call.solved()
    letters = dict(zip(counts, _LETTERS, strict=False))
    order = [axis for axis in call.result.names if axis in counts]
    tensors = [call.apart(place) for place in range(len(operands))]
    texts = ["".join(letters[axis] for axis in axes) for axes in (*(names for _, names in tensors), order)]
    equation = f"{','.join(texts[:-1])}->{texts[-1]}"
    return call.finished(torch.einsum(equation, *(tensor for tensor, _ in tensors)), order)


_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"
COMPARING: Final = {"equal": "eq", "not_equal": "ne"} | {
    name: name for name in "less less_equal greater greater_equal".split()
}
REDUCTIONS: Final = {"max": "amax", "min": "amin"} | {
    name: name for name in "sum mean var std prod count_nonzero any all logsumexp".split()
}
"""Torch's name of a function, by einx's."""
FOLDED: Final = "add multiply logaddexp logical_and logical_or maximum minimum".split()
"""Functions of any number of operands, applied one after the other."""
BINARY: Final = "subtract true_divide floor_divide divide".split()

_FOLLOWED: Final[Mapping[str, Callable[..., Any]]] = {
    **{name: _elementwise(name, None) for name in FOLDED},
    **{name: _elementwise(name, 2) for name in BINARY},
    **{name: _elementwise(of_torch, 2) for name, of_torch in COMPARING.items()},
    "where": _elementwise("where", 3),
    **{name: _reduction(of_torch) for name, of_torch in REDUCTIONS.items()},
    **{name: _along_axis(name) for name in ("softmax", "log_softmax")},
    "id": _id,
    "dot": _dot,
}


@functools.cache
def _axis_size_error() -> type[Exception]:
    """Returns a subclass of einx's own error that carries messages of this package."""
    error = sys.modules["einx"].errors.AxisSizeError
    return type(error.__name__, (error,), {"__init__": Exception.__init__, "__module__": error.__module__})


STAND_INS: Final = PluginFunctions(
    {f"einx.{name}": function for name, function in _FOLLOWED.items()},
    lambda: (sys.modules["einx"].errors.AxisSizeError,),
)
