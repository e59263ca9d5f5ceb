"""Programs of any length, made as plain data: no torch, no recording.

Each maker takes the number of nodes, and returns a program of about as many with the domain of its inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeAlias

from anyshape.constraints.ir.language import Dyn, Tensor, Value
from anyshape.constraints.ir.program import Argument, Input, Node, Origin, Program, Ref
from anyshape.constraints.ir.system import Domain
from anyshape.constraints.terms.dims import Dim, Term, sym
from anyshape.constraints.terms.formula import ge

Made: TypeAlias = tuple[Program, Domain]
WIDTH = 64


class Builder:
    """A program as it grows."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.symbols: list[str] = []
        self._inputs: list[Input] = []
        self._nodes: list[Node] = []
        self._ids = 0

    def symbol(self, name: str) -> Term:
        self.symbols.append(name)
        return sym(name)

    def input(self, name: str, *shape: Dim) -> Ref:
        return self.given(name, Tensor(shape))

    def given(self, name: str, value: Value) -> Ref:
        self._inputs.append(Input(self._ids, name, value))
        return self._new()

    def weight(self, *shape: int) -> Ref:
        self._inputs.append(Input(self._ids, f"weight_{self._ids}", Tensor(shape), parameter=True))
        return self._new()

    def call(self, op: str, *args: Argument, **kwargs: Argument) -> Ref:
        """Appends a node, on a line of its own."""
        origin = Origin("model.py", len(self._nodes) + 1, "forward", "", f"{op}(…)")
        named = (*((f"arg{i}", value) for i, value in enumerate(args)), *kwargs.items())
        self._nodes.append(Node(op, named, (self._ids,), origin))
        return self._new()

    def unfinished(self, more: int = 1) -> bool:
        """Returns whether there is room for so many more nodes."""
        return len(self._nodes) + more <= self.length

    def made(self, *outputs: Ref) -> Made:
        named = tuple((f"output_{i}", ref) for i, ref in enumerate(outputs))
        program = Program(tuple(self._inputs), tuple(self._nodes), named)
        return program, Domain(tuple(self.symbols), tuple(ge(sym(name), 1) for name in self.symbols))

    def _new(self) -> Ref:
        self._ids += 1
        return Ref(self._ids - 1)


def perceptron(length: int) -> Made:
    """x + relu(linear(x)), one after the other"""
    b = Builder(length)
    x, w = b.input("x", b.symbol("batch"), b.symbol("t"), WIDTH), b.weight(WIDTH, WIDTH)
    while b.unfinished(3):
        x = b.call("add", x, b.call("relu", b.call("linear", x, w)))
    return b.made(x)


def transformer(length: int) -> Made:
    """Self-attention of four heads and its residual, one after the other"""
    b = Builder(length)
    batch, t = b.symbol("batch"), b.symbol("t")
    x, w = b.input("x", batch, t, WIDTH), b.weight(WIDTH, WIDTH)
    while b.unfinished(10):
        q = b.call("transpose", b.call("view", b.call("linear", x, w), (batch, t, 4, WIDTH // 4)), 1, 2)
        scores = b.call("softmax", b.call("matmul", q, b.call("transpose", q, -1, -2)), -1)
        heads = b.call("transpose", b.call("matmul", scores, q), 1, 2)
        x = b.call("add", x, b.call("reshape", heads, (batch, t, WIDTH)))
    return b.made(x)


def wide(length: int) -> Made:
    """relu(linear(x)) over and over on the same x, all concatenated"""
    b = Builder(length)
    x, w = b.input("x", b.symbol("batch"), b.symbol("t"), WIDTH), b.weight(WIDTH, WIDTH)
    branches = []
    while b.unfinished(3):
        branches.append(b.call("relu", b.call("linear", x, w)))
    return b.made(b.call("cat", tuple(branches), 1))


def hourglasses(length: int, depth: int = 4) -> Made:
    """U-Nets, one after the other: each halves the image four times and doubles it again"""
    b = Builder(length)
    x = b.input("x", b.symbol("batch"), 8, b.symbol("h"), b.symbol("w"))
    down, up = b.weight(8, 8, 3, 3), b.weight(8, 16, 3, 3)
    while b.unfinished(5 * depth):
        skips = []
        for _ in range(depth):
            skips.append(b.call("conv2d", x, down, None, 1, 1))
            x = b.call("max_pool2d", skips[-1], 2)
        for skip in reversed(skips):
            x = b.call("cat", (skip, b.call("interpolate", x, scale_factor=2)), 1)
            x = b.call("conv2d", x, up, None, 1, 1)
    return b.made(x)


def divisors(length: int) -> Made:
    """Pooling by 2 to 49 on the same x, over and over"""
    b = Builder(length)
    x, k = b.input("x", b.symbol("batch"), 8, b.symbol("h")), 0
    heads = []
    while b.unfinished(3):
        heads.append(b.call("mean", b.call("relu", b.call("max_pool1d", x, k + 2)), 2))
        k = (k + 1) % 48
    return b.made(*heads)


def windows(length: int) -> Made:
    """Partition into windows of 8, and back"""
    b = Builder(length)
    batch, h = b.symbol("batch"), b.symbol("h")
    x, w = b.input("x", batch, h, WIDTH), b.weight(WIDTH, WIDTH)
    while b.unfinished(3):
        y = b.call("linear", b.call("view", x, (batch, h // 8, 8, WIDTH)), w)
        x = b.call("view", y, (batch, h, WIDTH))
    return b.made(x)


def chains(length: int, depth: int = 12) -> Made:
    """x of a size h, resized to (2*h)//3 of it twelve times, quotients inside quotients; over and over"""
    b = Builder(length)
    x = b.input("x", b.symbol("batch"), 8, b.symbol("h"))
    ends = []
    while b.unfinished(2 * depth):
        y = x
        for _ in range(depth):
            y = b.call("max_pool1d", b.call("interpolate", y, scale_factor=2), 3)
        ends.append(y)
    return b.made(*ends)


def strided(length: int) -> Made:
    """Convolutions of stride 2, again and again: one quotient, by ever larger powers of 2"""
    b = Builder(length)
    x, w = b.input("x", b.symbol("batch"), 8, b.symbol("h")), b.weight(8, 8, 3)
    while b.unfinished(2):
        x = b.call("conv1d", b.call("relu", x), w, None, 2, 1)
    return b.made(x)


def joined(length: int, inputs: int) -> Made:
    """Inputs with a batch each, worked on in turn, then concatenated: a sum of all symbols"""
    b = Builder(length)
    xs = [b.input(f"x{i}", b.symbol(f"b{i}"), WIDTH) for i in range(inputs)]
    w, turn = b.weight(WIDTH, WIDTH), 0
    while b.unfinished(3):
        xs[turn % inputs] = b.call("relu", b.call("linear", xs[turn % inputs], w))
        turn += 1
    return b.made(b.call("cat", tuple(xs), 0))


def equated(length: int, inputs: int) -> Made:
    """Inputs with a batch each, concatenated one by one along another axis: all batches have to be equal"""
    b = Builder(length)
    xs = [b.input(f"x{i}", b.symbol(f"b{i}"), WIDTH) for i in range(inputs)]
    w, x, turn = b.weight(WIDTH, WIDTH), xs[0], 0
    while b.unfinished(3):
        turn += 1
        y = b.call("linear", xs[turn % inputs], w)
        x = b.call("narrow", b.call("cat", (x, y), 1), 1, 0, WIDTH)
    return b.made(x)


def broadcast(length: int, inputs: int) -> Made:
    """Inputs with a batch each, added up: each batch is 1 or that of the others"""
    b = Builder(length)
    xs = [b.input(f"x{i}", b.symbol(f"b{i}"), WIDTH) for i in range(inputs)]
    x, turn = xs[0], 0
    while b.unfinished(2):
        turn += 1
        x = b.call("relu", b.call("add", x, xs[turn % inputs]))
    return b.made(x)


def unknown(length: int) -> Made:
    """An input of which nothing is known, not even its rank"""
    b = Builder(length)
    x, w = b.given("x", Dyn), b.weight(WIDTH, WIDTH)
    while b.unfinished(3):
        x = b.call("add", x, b.call("relu", b.call("linear", x, w)))
    return b.made(x)


MAKERS: Final[Mapping[str, Callable[[int], Made]]] = {
    "perceptron": perceptron,
    "transformer": transformer,
    "wide": wide,
    "hourglasses": hourglasses,
    "divisors": divisors,
    "windows": windows,
    "chains": chains,
    "strided": strided,
    "joined, 20 symbols": partial(joined, inputs=20),
    "equated, 20 symbols": partial(equated, inputs=20),
    "broadcast, 3 symbols": partial(broadcast, inputs=3),
    "unknown rank": unknown,
}
BY_SYMBOLS: Final[Mapping[str, tuple[Callable[[int, int], Made], tuple[int, ...]]]] = {
    "joined": (joined, (2, 20, 200)),
    "equated": (equated, (2, 20, 200)),
    "broadcast": (broadcast, (2, 4)),
}
"""Makers that take the number of inputs, each with a symbol of its own, and numbers worth measuring."""
