"""A program while it is written: its lines, its inputs, and what is known of the tensors in scope.

A size is an expression over the symbols of the inputs, as text. Its values at four samples of the symbols
stand for it where sizes are compared: two that agree at all samples are taken to be equal. That makes most
programs run at some sizes; it need not be right, for eager PyTorch judges what is written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import TypeAlias

from .program import NAME, Input, Program, evaluate, split

Size: TypeAlias = str
Shape: TypeAlias = "tuple[Size, ...] | None"
"""None: a rank that is not followed."""

SAMPLES = ((3, 5, 8, 4), (4, 7, 6, 9), (6, 3, 5, 7), (5, 9, 4, 3), (7, 4, 3, 8))
SMALL = (1, 1, 2, 2, 3, 3, 4, 5)
LARGE = (6, 7, 8, 9, 10, 12, 16)
EDGES = (100, 127, 128, 129, 200, 255, 256, 257, 300, 500, 2048, 2050)
"""Sizes of tables next to what narrow integers and short floats hold."""


@dataclass(frozen=True)
class Tensor:
    """A tensor in scope. `dtype` is `f` (float32), `i` (int64), `b` (bool) or the name of another."""

    name: str
    shape: Shape
    dtype: str = "f"

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)


@dataclass(frozen=True)
class Construct:
    """One thing that programs may contain.

    `text` is an expression with holes, `shape` its sizes separated by commas: `*t` is the shape of the tensor
    in hole `t`, `t.0` one of its sizes, `?` a size that is not followed, and `!` alone an unknown rank. Holes
    by their first letter: n, m, p: a size; k, j, l: a small number; K: a larger one; t, u: a float tensor,
    with its rank after it (`{t2}`); x: a float vector; i: an index tensor; b: a mask; d: a dimension;
    D: a dtype.
    """

    name: str
    text: str
    shape: str = "*t"
    dtype: str = "f"


Writing: TypeAlias = "Callable[[Writer], None]"


class Writer:
    """Writes one program. Everything that is left to chance is drawn from `rng`."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.inputs: list[Input] = []
        self.assume: list[str] = []
        self.state: list[str] = []
        """Lines of `__init__`; where there are any, the program is a module."""
        self.tensors: list[Tensor] = []
        self.used: list[str] = []
        self._lines: list[str] = []
        self._depth = 1
        self._samples: dict[str, tuple[int, ...]] = {}
        self._spellings: dict[str, list[str]] = {}
        self._names = 0

    # ---- sizes

    def symbol(self, name: str, least: int | None = None) -> Size:
        """A symbol of the inputs, which may be as small as `least` (1 where it is left out)."""
        if name not in self._samples:
            self._samples[name] = SAMPLES[len(self._samples) % len(SAMPLES)]
            if least is not None:
                self.assume.append(f"{name} >= {least}")
        return name

    def at(self, size: Size) -> tuple[int, ...]:
        """The values of a size at the samples."""
        return tuple(
            evaluate(size, {name: values[i] for name, values in self._samples.items()}) for i in range(4)
        )

    def same(self, one: Size, other: Size) -> bool:
        return one == other or self.at(one) == self.at(other)

    def alike(self, one: Shape, other: Shape) -> bool:
        known = one is not None and other is not None and len(one) == len(other)
        return known and all(map(self.same, one or (), other or ()))

    def size(self) -> Size:
        """Some size: mostly a symbol, sometimes one next to it."""
        names = [name for name in self._spellings if not name.startswith("unknown")] or ["3"]
        name = self.rng.choice(names)
        form = self.rng.choice(("{}",) * 7 + ("({} + 1)", "({} - 1)", "({} * 2)", "({} // 2)", "({} + {})"))
        return form.format(name, self.rng.choice(names))

    def small(self) -> int:
        return self.rng.choice(SMALL)

    def large(self) -> int:
        return self.rng.choice(LARGE)

    def spelt(self, text: str) -> str:
        """The text with the symbols as the program names them."""
        return NAME.sub(lambda m: self.rng.choice(self._spellings.get(m[0], [m[0]])), text)

    # ---- inputs and lines

    def input(self, name: str, *dims: Size, dtype: str = "f") -> Tensor:
        """Declares a tensor. Its symbols are then spelt as its sizes."""
        dtypes = {"f": "float32", "i": "int64", "b": "bool"}
        self.inputs.append(Input(name, dtypes.get(dtype, dtype), dims))
        for axis, dim in enumerate(dims):
            if dim.isidentifier():
                forms = [f"{name}.shape[{axis}]", f"{name}.size({axis})"] + [f"len({name})"] * (axis == 0)
                self._spellings.setdefault(self.symbol(dim), forms)
        self.tensors.append(tensor := Tensor(name, dims, dtype))
        return tensor

    def integer(self, name: str) -> Size:
        """Declares an integer input."""
        self.inputs.append(Input(name, "int", (name,)))
        self._spellings[name] = [name]
        return self.symbol(name)

    def unpack(self, tensor: Tensor) -> None:
        """Names the sizes of an input: from here on its symbols are spelt as themselves."""
        if (
            tensor.shape
            and all(dim.isidentifier() for dim in tensor.shape)
            and len(set(tensor.shape)) == len(tensor.shape)
        ):
            self.emit(f"{', '.join(tensor.shape)}{',' * (len(tensor.shape) == 1)} = {tensor.name}.shape")
            for dim in tensor.shape:
                self._spellings[dim] = [dim]

    def fresh(self, prefix: str = "t") -> str:
        self._names += 1
        return f"{prefix}{self._names}"

    def emit(self, line: str) -> None:
        self._lines.append("    " * self._depth + line)

    def room(self) -> bool:
        """Blocks are not yet nested so deep that nobody would write them."""
        return self._depth < 3

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """An indented block. What is named inside is not in scope afterwards."""
        self.emit(head)
        self._depth += 1
        scope, before = list(self.tensors), len(self._lines)
        try:
            yield
        finally:
            if len(self._lines) == before:
                self.emit("pass")
            self._depth -= 1
            self.tensors = scope

    def let(self, text: str, shape: Shape, dtype: str = "f", name: str = "") -> Tensor:
        """Gives an expression a name. Sizes `?` become unknown ones."""
        name = name or self.fresh()
        self.emit(f"{name} = {text}")
        if shape is not None:
            shape = tuple(self._unknown(name, axis) if dim == "?" else dim for axis, dim in enumerate(shape))
        self.tensors.append(tensor := Tensor(name, shape, dtype))
        return tensor

    def _unknown(self, name: str, axis: int) -> Size:
        symbol = f"unknown{len(self._samples)}"
        self._samples[symbol] = tuple(self.rng.randrange(101, 10_000) for _ in range(4))
        self._spellings[symbol] = [f"{name}.shape[{axis}]"]
        return symbol

    # ---- tensors in scope

    def find(self, dtype: str = "f", rank: int | None = None) -> Tensor | None:
        """One of the tensors in scope, rather a late one; of this rank."""
        fit = [t for t in self.tensors if t.dtype == dtype and rank in (None, t.rank)]
        return self.rng.choice([*fit, *fit[-2:], *fit[-1:]]) if fit else None

    def apply(self, construct: Construct, **given: Tensor) -> Tensor | None:
        """Writes a construct in a line. None where nothing in scope fills a hole."""
        filled = self.filled(construct, given)
        if filled is None:
            return None
        self.used.append(construct.name)
        return self.let(*filled, construct.dtype)

    def filled(self, construct: Construct, given: dict[str, Tensor]) -> tuple[str, Shape] | None:
        """The expression with its holes filled, and its shape."""
        holes: dict[str, str] = {}
        tensors: dict[str, Tensor] = dict(given)
        for hole in dict.fromkeys(re.findall(r"\{(\w+)\}", construct.text)):
            if hole in tensors:
                continue
            kind, digits = hole[0], hole[1:]
            if kind in "tuxib":
                dtype = {"i": "i", "b": "b"}.get(kind, "f")
                rank = 1 if kind == "x" else int(digits) if digits else None
                if (tensor := self.find(dtype, rank)) is None:
                    return None
                tensors[hole] = tensor
            else:
                holes[hole] = self._number(kind, tensors)
        shape = self._shape(construct.shape, holes, tensors)
        texts = {**{k: self.spelt(v) for k, v in holes.items()}, **{k: t.name for k, t in tensors.items()}}
        return re.sub(r"\{(\w+)\}", lambda m: texts[m[1]], construct.text), shape

    def _number(self, kind: str, tensors: dict[str, Tensor]) -> str:
        match kind:
            case "n" | "m" | "p":
                return self.size()
            case "k" | "j" | "l":
                return str(self.small())
            case "K":
                return str(self.rng.choice((*LARGE, *EDGES)) if self.rng.random() < 0.5 else self.large())
            case "d":
                ranks = [t.rank for t in tensors.values() if t.rank]
                return str(self.rng.choice((0, -1, *range(ranks[0]))) if ranks else 0)
            case "D":
                return self.rng.choice(
                    ("int8", "uint8", "int16", "int32", "float16", "bfloat16", "float32", "float64")
                )
        raise ValueError(f"no hole is of the kind {kind!r}")

    def _shape(self, text: str, holes: dict[str, str], tensors: dict[str, Tensor]) -> Shape:
        if text == "!":
            return None
        shape: list[Size] = []
        for part in split(text):
            if part.startswith("*"):
                name, _, rest = part[1:].partition("[")
                dims = _named(tensors, name).shape
                if dims is None:
                    return None
                start, _, stop = rest.rstrip("]").partition(":")
                shape += dims[slice(int(start) if start else None, int(stop) if stop else None)]
            elif part == "?":
                shape.append("?")
            else:
                try:
                    part = re.sub(r"(\w+)\.(-?\d)", lambda m: f"({_dims(tensors[m[1]])[int(m[2])]})", part)
                except (IndexError, _NoShape):
                    return None
                size = re.sub(r"\{(\w+)\}", lambda m: holes[m[1]], part)
                try:
                    self.at(size)
                except ZeroDivisionError:
                    return None
                shape.append(size)
        return tuple(shape)

    def choose(self, table: Sequence[Construct], **given: Tensor) -> Tensor | None:
        """Writes one of the constructs that can be written."""
        for construct in self.rng.sample(table, len(table)):
            if (tensor := self.apply(construct, **given)) is not None:
                return tensor
        return None

    def program(self, name: str, result: str) -> Program:
        """The program, which returns `result`."""
        arguments = ", ".join(line.name for line in self.inputs)
        lines = [*self._lines, f"    return {result}"]
        if self.state:
            body = [f"    {line}" for line in lines]
            head = ["class M(nn.Module):", "    def __init__(self):", "        super().__init__()"]
            lines = [
                *head,
                *(f"        {s}" for s in self.state),
                "",
                f"    def forward(self, {arguments}):",
                *body,
            ]
        else:
            lines = [f"def f({arguments}):", *lines]
        used = tuple(dict.fromkeys(self.used))
        made = Program(name, "\n".join(lines) + "\n", tuple(self.inputs), (), used)
        return replace(
            made, assume=tuple(a for a in self.assume if set(NAME.findall(a)) <= set(made.symbols))
        )


def _named(tensors: dict[str, Tensor], hole: str) -> Tensor:
    """The tensor of a hole: `t` is also the first of `t2`."""
    return tensors[hole] if hole in tensors else next(t for name, t in tensors.items() if name[0] == hole)


class _NoShape(Exception):
    """A size is asked of a tensor whose rank is not followed."""


def _dims(tensor: Tensor) -> tuple[Size, ...]:
    if tensor.shape is None:
        raise _NoShape
    return tensor.shape
