"""The changes to try at one call: of the module's arguments, of literals, of parameters, of expressions."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Final

from ...constraints.ir.program import Origin
from ...constraints.terms.dims import Dim
from ...tracer.host.modules import buffers_of, parameters_of
from ...tracer.patches.edits import (
    CONVOLUTIONS,
    SIZES,
    Assigned,
    Edit,
    OpenNumber,
    Projected,
    Rebuilt,
    Resized,
    Rewritten,
    arguments,
    module_at,
)
from ..report.report import Link
from . import expressions
from .constructors import changed_likewise
from .expressions import Literal, Text


@dataclass(frozen=True, slots=True)
class RankedChange:
    """A change that may be the repair, and how likely that is."""

    rank: int
    """The less, the likelier."""
    edit: Edit
    origin: Origin
    """The call that it is tried for."""
    is_axis: bool = False
    """Whether it is another axis, of which 1 is as good as any."""

    @property
    def place(self) -> object:
        """Returns a key for the changed location, without its new text: of several changes at one location
        only the likeliest is reported.
        """
        names = ("module", "parameter", "attribute", "name", "axis", "file", "start", "stop")
        return tuple(getattr(self.edit, name, None) for name in names)


NEIGHBOURS: Final = {
    "padding": (0, 4), "output_padding": (0, 1), "stride": (1, 4), "kernel_size": (1, 16), "dilation": (1, 4),
    "groups": (1, 8), "num_groups": (1, 8), "num_heads": (1, 8), "upscale_factor": (1, 4),
    "num_layers": (1, 2), "start_dim": (0, 2), "scale_factor": (1, 8), "downscale_factor": (1, 4),
}  # fmt: skip
"""Arguments that are tried one by one: the least value, and how far from what is there."""
_FED: Final = frozenset(
    """
    in_features in_channels num_features num_channels input_size normalized_shape in1_features in2_features
    embed_dim
    """.split()
)
"""Arguments that say what goes into a module; the others say what comes out."""
_AXES: Final = frozenset(
    """
    mean sum amax amin max min std var prod norm softmax log_softmax flatten squeeze unsqueeze transpose
    permute cumsum argmax argmin logsumexp all any flip
    """.split()
)
"""Operators whose literals are axes."""
_ALONG: Final = frozenset("cat concat stack".split())
"""Operators that join tensors along an axis."""
_MATMULS: Final = frozenset("linear matmul mm bmm addmm baddbmm mv".split())
"""Operators that need sizes of their operands to be equal: an operand that fits once its axes are flattened
or swapped was meant to be so.
"""
_FITTING: Final = (".flatten(1)", ".transpose(-2, -1)")
_WRAPPERS: Final = (
    ".flatten(1)", ".transpose(-2, -1)", ".transpose(1, 2)", ".unsqueeze(-1)", ".unsqueeze(1)",
    "[:, None, None, :]", ".squeeze(-1)", ".squeeze(1)", ".permute(0, 3, 1, 2)", ".permute(0, 2, 3, 1)",
    ".flatten(0, 1)", ".flatten(2)", "[:, None]", ".unsqueeze(0)", ".transpose(0, 1)", ".mean((2, 3))",
    ".unsqueeze(2)", ".flatten(1).unsqueeze(1)",
)  # fmt: skip
"""Changes of an operand, the likeliest first."""


class Changes:
    """The changes to try at one call, so many calls away from the one that is refused."""

    def __init__(self, target: Any, link: Link, distance: int) -> None:
        self.target, self.op, self.origin, self.distance = target, link.op, link.origin, distance
        self.later = 4 if distance else 0
        self.text = expressions.read(link.origin.file) if link.origin.file else None
        self.call = expressions.at(self.text, link.origin) if self.text else None
        self.owner_path = self._owner(link.origin.module)
        self.owner = module_at(target, self.owner_path)
        self.path = self._within(self._called(), link.origin.module)
        self.module = module_at(target, self.path) if self.path else None

    def _owner(self, path: str) -> str:
        """The path of the module whose method the line stands in, which may call a module of torch's."""
        while path and (found := module_at(self.target, path)) is not None:
            if not type(found).__module__.startswith("torch."):
                return path
            path = path.rpartition(".")[0]
        return ""

    def _called(self) -> str:
        """The path of the module that the line calls by name: `self.fc(x)`."""
        name = expressions.path_of(self.call) if self.call is not None else ""
        path = self._path(name)
        return path if name and module_at(self.target, path) is not None else ""

    @staticmethod
    def _within(called: str, refused: str) -> str:
        """The path of the module that refuses, of which the line calls one around it by name."""
        return refused if called and refused.startswith(f"{called}.") else called or refused

    def _path(self, name: str) -> str:
        """Returns the path of `self.name` from the target."""
        return ".".join(filter(None, (self.owner_path, name)))

    def candidates(self) -> Iterator[RankedChange]:
        yield from self._of_module()
        if self.call is not None and self.text is not None:
            for literal in expressions.literals(self.text, self.call, self.owner):
                yield from self._of_literal(self.text, self.call, literal)
            yield from self._joint(self.text, self.call)
            yield from self._of_tensors(self.call)
            yield from self._of_expression(self.text, self.call)

    def projections(self, shapes: Sequence[tuple[Dim, ...]]) -> Iterator[RankedChange]:
        """A sum with a shortcut that hands on what it gets, where the other way changes channels or size.
        `shapes` are those of the operands.
        """
        for operand in expressions.operands(self.call) if self.call is not None else ():
            path = self._path(expressions.path_of(operand))
            if type(module_at(self.target, path)).__name__ != "Identity" or len(shapes) < 2:
                continue
            for one, other in ((shapes[0], shapes[1]), (shapes[1], shapes[0])):
                match one[1:2], other[1:2], len(one) - 2:
                    case (int(fed),), (int(out),), axes if axes in CONVOLUTIONS:
                        for stride in (1, 2):
                            yield self._candidate(2, Projected(path, (fed, out), axes, stride))

    def _candidate(self, rank: int, edit: Edit, is_axis: bool = False) -> RankedChange:
        return RankedChange(rank, edit, self.origin, is_axis)

    # ---- the module's arguments

    def _of_module(self) -> Iterator[RankedChange]:
        given = (arguments(self.module) if self.module is not None else None) or {}
        likewise: dict[str, tuple[str, ...]] = {}
        for rank, name, value in self._arguments(given):
            if name not in likewise:
                likewise[name] = self._likewise(name, given)
            yield self._candidate(rank, Rebuilt(self.path, name, value, likewise[name]))

    def _arguments(self, given: dict[str, Any]) -> Iterator[tuple[int, str, Any]]:
        """Other values of a module's arguments, with their ranks."""
        for name, value in given.items():
            now = number(value)
            if isinstance(value, bool) and name in ("batch_first", "bidirectional", "ceil_mode"):
                yield 3 if name == "bidirectional" else 0, name, not value
            elif name in SIZES and now is not None:
                rank = 4 if name not in _FED else 6 if self.distance else 1
                yield rank + self.distance, name, OpenNumber.nth(0, now)
            elif name in NEIGHBOURS and now is not None:
                for near in _near(now, *NEIGHBOURS[name]):
                    filled = float(near) if isinstance(value, float) else near
                    yield 4 if name == "num_layers" else 3, name, filled

    def _likewise(self, name: str, given: dict[str, Any]) -> tuple[str, ...]:
        """Modules whose argument has the number of the same call: in a comprehension, or in other instances
        of the class that it stands in.
        """
        others = changed_likewise(self.target, self.path, name)
        found = {path: module_at(self.target, path) for path in others}
        return tuple(path for path, other in found.items() if other and arguments(other) == given)

    # ---- literals

    def _of_literal(self, text: Text, call: ast.expr, literal: Literal) -> Iterator[RankedChange]:
        value = literal.value
        if isinstance(value, str):
            for equation in _permuted(value) if "->" in value else ():
                yield self._literal(text, literal, equation, self.later)
        elif isinstance(value, int):
            if self.op in _ALONG:
                for axis in (1, -1, 2, -2, 0):  # the first is that of the batch
                    if axis != value:
                        yield self._literal(text, literal, axis, 0 if axis else 2, True)
                return
            if self.op in _AXES or isinstance(call, ast.Subscript):
                for axis in (-1, 0, 1, 2, 3, -2):
                    if axis != value:
                        yield self._literal(text, literal, axis, 3 + self.later, self.op in _AXES)
                return
            if value > 0:
                yield self._literal(text, literal, OpenNumber.nth(0, value), self._rank_of_size)
                for other in _near(value, 1, 8):
                    yield self._literal(text, literal, other, 3 + self.distance)
            place = _place_among(call, literal.node)
            for name in expressions.parameters(text, call) if place is not None else ():
                yield self._rewritten(text, literal.node, f"{name}.shape[{place}]", 5)
        elif isinstance(value, tuple | list) and all(type(v) is int for v in value):
            if self.op in _AXES:
                for size in (1, 2, 3):
                    for axes in combinations((1, 2, 3), size):
                        if axes != tuple(value):
                            yield self._literal(text, literal, type(value)(axes), 3 + self.later)
            elif any(v > 0 for v in value):
                opened = type(value)(OpenNumber.nth(i, v) if v > 0 else v for i, v in enumerate(value))
                yield self._literal(text, literal, opened, self._rank_of_size)

    @property
    def _rank_of_size(self) -> int:
        return 4 + self.distance if self.distance else 1

    def _literal(
        self, text: Text, literal: Literal, value: Any, rank: int, is_axis: bool = False
    ) -> RankedChange:
        if literal.attribute:
            return self._candidate(rank, Assigned(self.owner_path, literal.attribute, value), is_axis)
        if isinstance(value, OpenNumber):
            return self._rewritten(text, literal.node, value.name, rank, (value,))
        return replace(self._rewritten(text, literal.node, repr(value), rank), is_axis=is_axis)

    def _joint(self, text: Text, call: ast.expr) -> Iterator[RankedChange]:
        """Returns one change that leaves all literals of a call open that are sizes."""
        found = [
            x for x in expressions.literals(text, call, self.owner)
            if type(x.value) is int and x.value > 0 and not x.attribute
        ]  # fmt: skip
        if len(found) < 2 or self.op in _AXES or isinstance(call, ast.Subscript):
            return
        start, stop = text.span(call)
        spans = sorted((text.span(x.node), x.value) for x in found)
        if any(not start <= a < stop for (a, _), _ in spans):
            return
        parts, opened, last = [], [], start
        for index, ((a, b), value) in enumerate(spans):
            hole = OpenNumber.nth(index, value)
            parts += [text.text[last:a], hole.name]
            opened.append(hole)
            last = b
        whole = "".join((*parts, text.text[last:stop]))
        yield self._rewritten(text, call, whole, 3 + self.later, tuple(opened))

    # ---- parameters of the module itself

    def _of_tensors(self, call: ast.expr) -> Iterator[RankedChange]:
        """A size of a parameter among the operands: `tokens + self.position`."""
        held = {} if self.owner is None else {**parameters_of(self.owner), **buffers_of(self.owner)}
        for name in map(expressions.path_of, expressions.operands(call)):
            tensor = held.get(name)
            for axis, size in enumerate(tensor.shape) if tensor is not None else ():
                if size > 1:
                    yield self._candidate(1, Resized(self.owner_path, name, axis, OpenNumber.nth(0, size)))

    # ---- expressions

    def _rewritten(
        self, text: Text, node: ast.expr, new: str, rank: int, opened: tuple[OpenNumber, ...] = ()
    ) -> RankedChange:
        start, stop = text.span(node)
        return self._candidate(rank, Rewritten(text.file, self.origin.function, start, stop, new, opened))

    def _of_expression(self, text: Text, call: ast.expr) -> Iterator[RankedChange]:
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            name, whole, receiver = call.func.attr, text.of(call), text.of(call.func.value)
            rest = whole[len(receiver) :]
            if name == "view":
                reshaped = receiver + rest.replace(".view", ".reshape", 1)
                yield self._rewritten(text, call, reshaped, self.later)
            if name == "squeeze" and not call.args:
                for axis in (-1, 1, 2):
                    yield self._rewritten(text, call, f"{receiver}.squeeze({axis})", 1)
            elif name == "squeeze" and rest.endswith("(0)"):  # the batch, where there is one sample
                yield self._rewritten(text, call, receiver, 1)
        if self.op in _ALONG and isinstance(call, ast.Call) and len(call.args) == 1 and not call.keywords:
            for axis in (1, -1):
                yield self._rewritten(text, call, f"{text.of(call)[:-1].rstrip(', ')}, dim={axis})", 0)
        if self.distance == 0 or self.op in ("expand", "getitem"):
            for operand in expressions.operands(call):
                yield from self._wrapped(text, call, operand)
        yield from self._resized(text, call)

    def _wrapped(self, text: Text, call: ast.expr, operand: ast.expr) -> Iterator[RankedChange]:
        """An operand with other axes."""
        inner = text.of(operand)
        if isinstance(operand, ast.BinOp | ast.UnaryOp | ast.Compare | ast.IfExp):
            inner = f"({inner})"
        (start, stop), (a, b) = text.span(call), text.span(operand)
        if "norm" in self.op:
            changed = f"{text.text[start:a]}{inner}.transpose(1, 2){text.text[b:stop]}.transpose(1, 2)"
            yield self._rewritten(text, call, changed, 2)
        for how in _WRAPPERS:
            fits = self.op in _MATMULS and how in _FITTING
            yield self._rewritten(text, operand, inner + how, 0 if fits else 2)

    def _resized(self, text: Text, call: ast.expr) -> Iterator[RankedChange]:
        """A map that is resized to that of another operand, where two have to agree."""
        if self.distance and isinstance(call, ast.Call):
            transposed = self.op.startswith("conv_transpose") and text.of(call.func).startswith("self.")
            for name in expressions.parameters(text, call):
                for keyword in call.keywords:
                    if keyword.arg in ("size", "output_size"):
                        yield self._rewritten(text, keyword.value, f"{name}.shape[-2:]", 5)
                        yield self._rewritten(text, keyword.value, f"{name}.shape[2:]", 5)
                if transposed:
                    told = f"{text.of(call)[:-1]}, output_size={name}.shape[2:])"
                    yield self._rewritten(text, call, told, 5)
        if self.distance == 0 and self.op in ("cat", "add", "concat", "stack", "mul"):
            several = [*expressions.operands(call)]
            for one in reversed(several):
                for other in several:
                    if other is not one and isinstance(other, ast.Name | ast.Attribute):
                        size = f"{text.of(other)}.shape[2:]"
                        told = f"torch.nn.functional.interpolate({text.of(one)}, size={size})"
                        yield self._rewritten(text, one, told, 6)


def _place_among(call: ast.expr, node: ast.expr) -> int | None:
    """Returns the index of a literal among the sizes of `view(64, 10)` or `expand((2, -1))`; None where the
    literal is not one of them.
    """
    args = expressions.arguments(call) if isinstance(call, ast.Call) else []
    return args.index(node) if node in args else None


def number(value: Any) -> Any:
    """The number that an argument is, or all of its members are."""
    if isinstance(value, bool):
        return value
    if isinstance(value, tuple) and value and len({*value}) == 1:
        value = value[0]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def _near(now: int, least: int, reach: int) -> list[int]:
    """Yields other values, the nearest first; of two that are equally near, the greater comes first."""
    return [v for step in range(1, reach + 1) for v in (now + step, now - step) if v >= least]


def _permuted(equation: str) -> Iterator[str]:
    """An einsum equation with two letters of one operand swapped."""
    inputs, _, output = equation.partition("->")
    terms = inputs.split(",")
    for index, term in reversed([*enumerate(terms)]):
        for i, j in combinations(range(len(term)), 2):
            letters = [*term]
            letters[i], letters[j] = letters[j], letters[i]
            yield f"{','.join((*terms[:index], ''.join(letters), *terms[index + 1 :]))}->{output}"
