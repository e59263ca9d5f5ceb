"""A program as text, with what is declared of its inputs: what the fuzzer writes, judges and shrinks."""

from __future__ import annotations

import linecache
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from types import ModuleType
from typing import Any, TypeAlias

Sizes: TypeAlias = Mapping[str, int]

NAME = re.compile(r"[A-Za-z_]\w*")
HEADER = """\
import contextlib
import functools
import math
import warnings

import torch
import torch.nn.functional as F
from torch import nn
"""


@dataclass(frozen=True)
class Input:
    """One input: `dtype` is torch's name of it, or `int` for an integer, whose one dim is its value."""

    name: str
    dtype: str
    dims: tuple[str, ...]

    def __str__(self) -> str:
        return (
            f"{self.name}: int"
            if self.dtype == "int"
            else f"{self.name}: {self.dtype}[{', '.join(self.dims)}]"
        )


@dataclass(frozen=True)
class Program:
    """The text of a function `f`, or of a module class `M`, and its inputs. `name` says how to write it
    again.
    """

    name: str
    source: str
    inputs: tuple[Input, ...]
    assume: tuple[str, ...] = ()
    constructs: tuple[str, ...] = ()
    """The constructs of the grammar that it is made of."""

    @classmethod
    def of(cls, name: str, source: str, spec: str, assume: tuple[str, ...] = ()) -> Program:
        """From the text of a spec: `x: float32[a, 3]; n: int`."""
        return cls(name, source, tuple(map(_line, spec.split(";"))), assume)

    @property
    def spec(self) -> str:
        return "; ".join(map(str, self.inputs))

    @property
    def symbols(self) -> tuple[str, ...]:
        texts = (dim for line in self.inputs for dim in line.dims)
        return tuple(dict.fromkeys(name for text in texts for name in NAME.findall(text)))

    def declares(self, sizes: Sizes) -> bool:
        """Every assumption holds, and a symbol that none of them bounds below is at least 1."""
        bounded = {text.split(" >= ")[0] for text in self.assume if " >= " in text}
        positive = all(sizes[name] >= 1 for name in self.symbols if name not in bounded)
        return positive and all(evaluate(text, sizes) for text in self.assume)

    def build(self) -> Callable[[], Callable[..., Any]]:
        """Compiles the text. The result makes the function, or a fresh module in training mode, anew.

        It is a module of a file as any other, but that the file is in `linecache` alone. Raises whatever the
        text raises when it is run as a file.
        """
        name = "written_" + re.sub(r"\W", "_", self.name)
        file, text = f"/written/{name}.py", HEADER + self.source
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        module = ModuleType(name)
        module.__file__ = file
        sys.modules[name] = module
        exec(compile(text, file, "exec"), module.__dict__)
        return module.M if hasattr(module, "M") else lambda: module.f


def _line(text: str) -> Input:
    name, _, kind = (part.strip() for part in text.partition(":"))
    if kind == "int":
        return Input(name, "int", (name,))
    dtype, _, dims = kind.rstrip("]").partition("[")
    return Input(name, dtype, tuple(split(dims)))


def evaluate(text: str, sizes: Sizes) -> Any:
    """The value of a dim or of an assumption: arithmetic and comparisons that the fuzzer has written."""
    return eval(text, {"__builtins__": {}, "min": min, "max": max}, dict(sizes))


def split(text: str) -> list[str]:
    """The dims of a shape: commas inside parentheses belong to a dim."""
    parts, depth, last = [], 0, 0
    for i, c in enumerate(text):
        depth += (c == "(") - (c == ")")
        if c == "," and depth == 0:
            parts.append(text[last:i])
            last = i + 1
    parts.append(text[last:])
    return [part.strip() for part in parts if part.strip()]


def points(
    program: Program,
    count: int,
    examples: Iterable[Sizes] = (),
    near: Mapping[str, tuple[int, ...]] | None = None,
) -> tuple[dict[str, int], ...]:
    """Up to `count` declared assignments, the same each time: the examples, small sizes, and those next to
    the constants of the program and to the values in `near`.

    No more than one symbol is large, so that inputs stay small.
    """
    rng = Random(program.source)
    small = [*range(10), 12, 17]
    constants = {int(text) for text in re.findall(r"(?<![\w.])\d+(?![\w.])", program.source)}
    around = sorted({c + step for c in constants if c > 3 for step in (-1, 0, 1)})
    usual = {name: sorted({v for v in (near or {}).get(name, ()) if v >= 0}) for name in program.symbols}

    def drawn() -> Iterator[dict[str, int]]:
        yield from ({name: example[name] for name in program.symbols} for example in examples)
        for value in (1, 2, 3, 5, 0):
            yield {name: max(value, 0 if f"{name} >= 0" in program.assume else 1) for name in program.symbols}
        for _ in range(20 * count):
            sizes = {}
            for name in program.symbols:
                pool = rng.choice([small, small, around or small, usual[name] or small])
                value = rng.choice(pool)
                sizes[name] = (
                    rng.choice(small) if value > 40 and max(sizes.values(), default=0) > 40 else value
                )
            if len(sizes) > 1 and rng.random() < 0.2:  # equal sizes hide and show much
                first, second = rng.sample(list(sizes), 2)
                if sizes[first] <= 40:
                    sizes[second] = sizes[first]
            yield sizes

    chosen: dict[tuple[int, ...], dict[str, int]] = {}
    for sizes in drawn():
        if len(chosen) < count and program.declares(sizes):
            chosen.setdefault(tuple(sizes.values()), sizes)
    return tuple(chosen.values())
