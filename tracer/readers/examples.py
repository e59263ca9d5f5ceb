"""Derives a spec from several example inputs: sizes that vary become symbols, and relations between them are
found.

A relation holds in every example: `y_0 == 2*x_0`. Whether the program needs it is another question.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import gcd
from typing import Any, Final, TypeAlias

import torch

from ...constraints.ir.language import Number, Tensor, Value
from ...constraints.ir.spec import Declared, InputPath
from ...constraints.ir.spec_text import SpecError
from ...constraints.terms.dims import Dim, sym
from ...constraints.terms.formula import Compare, Formula, eq
from ..values.real_tensors import dtype_name

MANY: Final = 12
"""With more symbols than this, relations among three of them are not sought."""
RELATIONS: Final = 128
"""At most this many relations are proposed, the simplest ones."""
NEAR: Final = 8
"""The largest constant of a relation that two points suggest, where it is neither a sum nor a difference."""


@dataclass(frozen=True, slots=True)
class SymbolOrigin:
    """The origin of a symbol: an axis of an input tensor, or an integer input itself."""

    path: InputPath
    axis: int | None

    def __str__(self) -> str:
        name = Declared(self.path, None).name
        return name if self.axis is None else f"{name}.shape[{self.axis}]"


@dataclass(frozen=True, slots=True)
class Common:
    """The common form of several examples."""

    inputs: tuple[Declared, ...]
    """One per input: a size that is the same in all examples is a number, any other a symbol of its own."""
    places: Mapping[str, SymbolOrigin]
    """The origin of each symbol."""
    values: Mapping[str, tuple[int, ...]]
    """The value of each symbol in each example."""
    relations: tuple[Formula, ...]
    """Relations between the symbols that hold in all examples, the simplest first."""

    def example(self, index: int) -> dict[str, int]:
        """Returns the sizes of one example."""
        return {name: values[index] for name, values in self.values.items()}


def common(signature: inspect.Signature | None, examples: Sequence[Any]) -> Common:
    """Returns the common form of the examples as arguments for a signature; None is an unknown signature.

    An example is a tuple or list of positional arguments, a dict of arguments by name, or one tensor. Raises
    SpecError where there are fewer than two, or where they differ in more than sizes: in a rank, a dtype, a
    flag.
    """
    if len(examples) < 2:
        raise SpecError(
            "there is one example" if examples else "there are no examples",
            hint="two or more are needed, with different sizes wherever sizes may vary",
        )
    leaves = [dict(_leaves(arguments(signature, example))) for example in examples]
    merged = _Merged()
    for path in dict.fromkeys(path for example in leaves for path in example):
        merged.add(path, [example.get(path, _MISSING) for example in leaves])
    return Common(tuple(merged.inputs), merged.places, merged.values, proposals(merged.values))


def read(path: str) -> Sequence[Any]:
    """Returns the examples in a file that `torch.save([example, …], path)` has written. No code in it is run.

    Raises SpecError where there is no such file, or where it contains more than tensors and plain values.
    """
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise SpecError(f"{path} cannot be read: {error.strerror or error}") from None
    except Exception as error:  # noqa: BLE001 - a damaged file, or a hostile one, makes torch raise anything
        told = str(error).partition("\n")[0][:200]
        raise SpecError(
            f"{path} holds no examples: {type(error).__name__}: {told}",
            hint="write it with torch.save([(x1, y1), (x2, y2)], path), with tensors and plain values alone",
        ) from None
    if not isinstance(found, list | tuple):
        raise SpecError(
            f"{path} holds a {type(found).__name__}, not a list of examples",
            hint="write it with torch.save([(x1, y1), (x2, y2)], path)",
        )
    return found


def arguments(signature: inspect.Signature | None, example: Any) -> dict[str, Any]:
    """Returns the arguments of an example by the names of the parameters. Raises SpecError."""
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    if isinstance(example, Mapping):
        kwargs = {**example}
    elif isinstance(example, list | tuple):
        args = tuple(example)
    elif isinstance(example, torch.Tensor):
        args = (example,)
    else:
        raise SpecError(
            f"an example is of type {type(example).__name__}",
            hint="it is a tuple of arguments, a dict of arguments by name, or one tensor",
        )
    if unnamed := [key for key in kwargs if not isinstance(key, str)]:
        raise SpecError(f"an example has the argument {unnamed[0]!r}, whose name is not a text")
    if signature is None:
        return {**{f"input{i}": value for i, value in enumerate(args)}, **kwargs}
    try:
        found = dict(signature.bind(*args, **kwargs).arguments)
    except TypeError as error:
        raise SpecError(f"an example does not fit: {error}", hint=f"the target takes {signature}") from None
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            found |= found.pop(parameter.name, {})
    return found


# ---- the values in an example


@dataclass(frozen=True, slots=True)
class _ExampleTensor:
    """A tensor in an example."""

    sizes: tuple[int, ...]
    dtype: str


_Leaf: TypeAlias = "_ExampleTensor | bool | int | float | str | None"


class _Missing:
    """An input that an example does not have."""


_MISSING: Final = _Missing()


def _leaves(value: Any, path: InputPath = ()) -> Iterator[tuple[InputPath, _Leaf]]:
    if isinstance(value, torch.Tensor):
        yield path, _ExampleTensor(tuple(map(int, value.shape)), dtype_name(value.dtype))
    elif isinstance(value, Mapping):
        for key, part in value.items():
            if not isinstance(key, str):
                raise SpecError(f"{_name(path)} has the key {key!r}, which is not a text")
            yield from _leaves(part, (*path, key))
    elif isinstance(value, list | tuple):
        for index, part in enumerate(value):
            yield from _leaves(part, (*path, index))
    elif value is None or isinstance(value, bool | int | float | str):
        yield path, value
    else:
        raise SpecError(
            f"{_name(path)} is of type {type(value).__name__}, which a spec cannot describe",
            hint="a spec has tensors, numbers, texts and None, and lists and dicts of these",
        )


def _name(path: InputPath) -> str:
    return Declared(path, None).name if path else "an example"


class _Merged:
    """The inputs of all examples together, with a symbol for each size that differs."""

    def __init__(self) -> None:
        self.inputs: list[Declared] = []
        self.places: dict[str, SymbolOrigin] = {}
        self.values: dict[str, tuple[int, ...]] = {}

    def add(self, path: InputPath, found: list[Any]) -> None:
        """Adds the input at a path, which has one kind in all examples."""
        kinds = [_kind(value) for value in found]
        if len({*kinds}) > 1:
            other = next(i for i, kind in enumerate(kinds) if kind != kinds[0])
            raise SpecError(
                f"{_name(path)} is {kinds[0]} in example 1 and {kinds[other]} in example {other + 1}",
                hint="give examples of one kind, and run the inference once for each kind",
            )
        self.inputs.append(Declared(path, self._type(path, found)))

    def _type(self, path: InputPath, found: list[Any]) -> Value:
        first = found[0]
        if isinstance(first, _ExampleTensor):
            columns = zip(*(shape.sizes for shape in found), strict=True)
            sizes = [self._size(SymbolOrigin(path, axis), column) for axis, column in enumerate(columns)]
            return Tensor(tuple(sizes), first.dtype)
        if isinstance(first, float):
            same = len({*map(repr, found)}) == 1 and first == first
            return first if same else Number("float")
        if isinstance(first, int) and not isinstance(first, bool):
            return self._size(SymbolOrigin(path, None), tuple(found))
        value: Value = first
        return value

    def _size(self, place: SymbolOrigin, values: tuple[int, ...]) -> Dim:
        if len({*values}) == 1:
            return values[0]
        name = _symbol(place)
        while name in self.places:
            name += "_"
        self.places[name] = place
        self.values[name] = values
        return sym(name)


def _kind(value: Any) -> str:
    """Returns the part of a value that must not differ among examples, in words: for values without sizes,
    the value itself.
    """
    match value:
        case _Missing():
            return "missing"
        case _ExampleTensor(sizes, dtype):
            return f"a {dtype} tensor of rank {len(sizes)}"
        case bool() | str() | None:
            return repr(value)
    return "an integer" if isinstance(value, int) else "a float"


def _symbol(place: SymbolOrigin) -> str:
    """Returns the name of a symbol: `x_0` for `x.shape[0]`, `batch_pixels_1` for `batch["pixels"].shape[1]`,
    `n` for an integer input.
    """
    steps = (*place.path, *(() if place.axis is None else (place.axis,)))
    return "_".join("".join(c if c.isascii() and c.isalnum() else "_" for c in str(step)) for step in steps)


# ---- relations


def proposals(values: Mapping[str, tuple[int, ...]]) -> tuple[Formula, ...]:
    """Returns relations that hold in all examples: equal sizes, linear relations, sums and products, the
    simplest first.
    """
    pairs = [*combinations(values, 2)]
    equal = [eq(sym(other), sym(one)) for one, other in pairs if values[one] == values[other]]
    linear = [found for pair in pairs if (found := _linear(*pair, values)) is not None]
    among_three = [*_sums_and_products([*values], values)] if len(values) <= MANY else []
    return tuple(dict.fromkeys((*equal, *sorted(linear, key=_simplicity), *among_three)))[:RELATIONS]


def _linear(one: str, other: str, values: Mapping[str, tuple[int, ...]]) -> Formula | None:
    """Returns p*(y - y0) == q*(x - x0), where all examples lie on that line; else None.

    Through two points there is always a line, so that it has to be a simple one if there are no more.
    """
    x, y = values[one], values[other]
    at = next(i for i, value in enumerate(x) if value != x[0])
    p, q = x[at] - x[0], y[at] - y[0]
    if q == 0 or any(p * (b - y[0]) != q * (a - x[0]) for a, b in zip(x, y, strict=True)):
        return None
    p, q = p // gcd(p, q), q // gcd(p, q)
    simple = 1 in (abs(p), abs(q)) and (abs(p) == abs(q) or abs(p * y[0] - q * x[0]) <= NEAR)
    if len({*zip(x, y, strict=True)}) == 2 and not simple:
        return None
    return eq(p * (sym(other) - y[0]), q * (sym(one) - x[0]))


def _sums_and_products(names: Sequence[str], values: Mapping[str, tuple[int, ...]]) -> Iterator[Formula]:
    """Yields relations z == x + y and z == x*y."""
    for z, (x, y) in ((z, pair) for pair in combinations(names, 2) for z in names if z not in pair):
        triples = [*zip(values[x], values[y], values[z], strict=True)]
        if all(a + b == c for a, b, c in triples):
            yield eq(sym(z), sym(x) + sym(y))
        if all(a * b == c for a, b, c in triples):
            yield eq(sym(z), sym(x) * sym(y))


def _simplicity(relation: Formula) -> tuple[int, int]:
    """Returns the sizes of the constant and of the factors: `y == 2*x` comes before `y == x + 5`."""
    assert isinstance(relation, Compare), relation
    factors = [abs(c) for mono, c in relation.term.terms if mono]
    constant = sum(abs(c) for mono, c in relation.term.terms if not mono)
    return constant + sum(factors), constant
