"""The judge: does eager PyTorch run a model on inputs of these sizes?

It shares no code with the checker: it has its own small reader of the spec notation, and then simply runs
the model. Float inputs are zeros, and so are indices and masks (index 0 is valid in every table that has a
row).
"""

import ast
import logging
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import product, zip_longest
from math import prod
from random import Random
from typing import Any

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    UnsupportedFakeTensorException,
)

from .entry import USUAL, Predicate

# Inputs larger than this together are made fake. Real kernels are preferred: fake ones sometimes accept more.
REAL_NUMEL = 4_000_000

# What torch and the models raise when sizes do not fit ...
REFUSALS = (RuntimeError, ValueError, AssertionError, IndexError)
# ... and what comes in the same clothes for another reason, and must be seen.
OTHER_REASONS = (
    NotImplementedError,
    RecursionError,
    DataDependentOutputException,
    DynamicOutputShapeException,
    UnsupportedFakeTensorException,
)
OTHER_WORDS = re.compile(
    r"dtype|scalar type|same device|allocate|out of memory|not implemented for|does not require grad|"
    r"leaf Variable|in-place|is not defined|has no attribute|not an instance|unexpected keyword"
)

FAKE_LOG = logging.getLogger(FakeTensorMode.__module__)

OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


@dataclass(frozen=True)
class Input:
    """One line of a spec: where it goes, and what it is."""

    path: tuple[str | int, ...]  # the argument's name, then keys into it
    kind: str  # a torch dtype for a tensor, "int", or "literal"
    dims: tuple[str, ...] = ()
    literal: object = None


def parse(inputs: str) -> tuple[Input, ...]:
    """`x: float32[b, 3, h, w]; n: int; flag=True; batch["pixels"]: float32[b, 3]`"""
    return tuple(_line(line.strip()) for line in re.split(r"[;\n]", inputs) if line.strip())


def _line(line: str) -> Input:
    if literal := re.fullmatch(r"(\w+)\s*=\s*(.+)", line):
        return Input((literal[1],), "literal", literal=ast.literal_eval(literal[2]))
    if integer := re.fullmatch(r"(\w+)\s*:\s*int", line):
        return Input((integer[1],), "int", dims=(integer[1],))
    tensor = re.fullmatch(r"(\w+)((?:\[[^\]]+\])*)\s*:\s*(\w*)\[(.*)\]", line)
    if tensor is None:
        raise SyntaxError(f"not a line of a spec: {line!r}")
    name, keys, dtype, dims = tensor.groups()
    path = (name, *(ast.literal_eval(key) for key in re.findall(r"\[([^\]]+)\]", keys)))
    return Input(path, dtype or "float32", dims=tuple(dim.strip() for dim in dims.split(",") if dim.strip()))


def symbols(inputs: str) -> tuple[str, ...]:
    """The symbols of a spec, in the order in which they appear."""
    texts = [dim for line in parse(inputs) for dim in line.dims]
    return tuple(dict.fromkeys(name for text in texts for name in re.findall(r"[A-Za-z_]\w*", text)))


def evaluate(text: str, sizes: Mapping[str, int]) -> Any:
    """The value of a dim or of an assumption."""
    return _value(ast.parse(text, mode="eval").body, sizes)


def _value(node: ast.expr, sizes: Mapping[str, int]) -> Any:
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.Name(id=name):
            return sizes[name]
        case ast.BinOp(left=left, op=op, right=right):
            return OPERATORS[type(op)](_value(left, sizes), _value(right, sizes))
        case ast.UnaryOp(op=op, operand=operand):
            return OPERATORS[type(op)](_value(operand, sizes))
        case ast.BoolOp(op=op, values=values):
            return (all if isinstance(op, ast.And) else any)(_value(value, sizes) for value in values)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            chain = [_value(side, sizes) for side in (left, *comparators)]
            return all(OPERATORS[type(op)](a, b) for op, a, b in zip(ops, chain, chain[1:], strict=False))
    raise SyntaxError(f"not a dim or an assumption: {ast.unparse(node)!r}")


def in_domain(inputs: str, assume: tuple[str, ...], sizes: Mapping[str, int]) -> bool:
    """Every assumption holds, and a symbol that none of them bounds below is at least 1."""
    bounded = {name for text in assume for name in _bounded_below(text)}
    at_least_one = all(sizes[name] >= 1 for name in symbols(inputs) if name not in bounded)
    return at_least_one and all(evaluate(text, sizes) for text in assume)


def _bounded_below(text: str) -> Iterator[str]:
    """The symbols for which `3 <= h`, `3 <= h <= 9`, `h >= 3` states a lower bound."""
    node = ast.parse(text, mode="eval").body
    if isinstance(node, ast.Compare):
        sides = (node.left, *node.comparators)
        for low, op, high in zip(sides, node.ops, sides[1:], strict=False):
            if isinstance(op, ast.Gt | ast.GtE):
                low, high = high, low
            ordered = isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE)
            if ordered and isinstance(low, ast.Constant) and isinstance(high, ast.Name):
                yield high.id


def make_inputs(inputs: str, sizes: Mapping[str, int]) -> dict[str, Any]:
    """Arguments by name. A path with string keys makes a dict, one with integers a list."""
    arguments: dict[str, Any] = {}
    for line in parse(inputs):
        _put(arguments, line.path, _make(line, sizes))
    return arguments


def _make(line: Input, sizes: Mapping[str, int]) -> Any:
    if line.kind == "literal":
        return line.literal
    dims = [evaluate(dim, sizes) for dim in line.dims]
    return dims[0] if line.kind == "int" else torch.zeros(dims, dtype=getattr(torch, line.kind))


def _put(container: Any, path: tuple[str | int, ...], value: Any) -> None:
    key, *rest = path
    if rest:
        empty: Any = [] if isinstance(rest[0], int) else {}
        if isinstance(container, dict):
            container.setdefault(key, empty)
        elif key == len(container):
            container.append(empty)
        _put(container[key], tuple(rest), value)
    elif isinstance(container, list):
        container.append(value)
    else:
        container[key] = value


def refusal(
    model: Callable[..., Any], inputs: str, sizes: Mapping[str, int], fake: bool | None = None
) -> Exception | None:
    """What eager torch raises because of these sizes, None when it runs. Any other exception passes through.

    `fake` chooses fake tensors or real ones; left out, the amount of input data decides.
    """
    if fake is None:
        tensors = (line for line in parse(inputs) if line.kind not in ("int", "literal"))
        numel = sum(prod(evaluate(dim, sizes) for dim in line.dims) for line in tensors)
        fake = numel > REAL_NUMEL
    with ExitStack() as stack:
        if fake:
            stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
            stack.callback(FAKE_LOG.setLevel, FAKE_LOG.level)
            FAKE_LOG.setLevel(logging.CRITICAL)  # it prints a traceback for each refusal
        arguments = make_inputs(inputs, sizes)
        try:
            model(**arguments)
        except REFUSALS as error:
            if isinstance(error, OTHER_REASONS) or OTHER_WORDS.search(str(error)):
                raise
            return error
    return None


def runs(model: Callable[..., Any], inputs: str, sizes: Mapping[str, int], fake: bool | None = None) -> bool:
    """Does eager torch accept these sizes?"""
    return refusal(model, inputs, sizes, fake) is None


def assignments(
    inputs: str,
    assume: tuple[str, ...],
    probe: Mapping[str, tuple[int, ...]],
    accepts: Predicate | None,
    count: int,
    seed: int = 0,
) -> list[dict[str, int]]:
    """Up to `count` assignments of probed values from the domain: as many accepted as refused where there
    are so many, and of each as many on the boundary as off it.
    """
    names = symbols(inputs)
    values = [sorted(probe.get(name, USUAL)) for name in names]
    grid = [dict(zip(names, point, strict=True)) for point in product(*values)]
    grid = [sizes for sizes in grid if in_domain(inputs, assume, sizes)]
    Random(seed).shuffle(grid)
    if accepts is None:
        return grid[:count]
    accepted = {tuple(sizes.values()): bool(accepts(**sizes)) for sizes in grid}

    def on_boundary(sizes: dict[str, int]) -> bool:
        """Whether the next probed value of one symbol has the other answer."""
        point = tuple(sizes.values())
        for axis, known in enumerate(values):
            at = known.index(point[axis])
            for near in known[max(at - 1, 0) : at + 2]:
                if accepted.get((*point[:axis], near, *point[axis + 1 :])) == (not accepted[point]):
                    return True
        return False

    def mixed(answer: bool) -> list[dict[str, int]]:
        points = [sizes for sizes in grid if accepted[tuple(sizes.values())] is answer]
        edge, rest = [p for p in points if on_boundary(p)], [p for p in points if not on_boundary(p)]
        pairs = zip_longest(edge, rest)
        return [point for pair in pairs for point in pair if point is not None]

    good, bad = mixed(True), mixed(False)
    chosen = good[: max(count // 2, count - len(bad))]
    return chosen + bad[: count - len(chosen)]
