"""Finds the parts of a program that fake tensors do not see: elements of index tensors, and caught refusals.

Where a program indexes with tensors that it has computed, or continues after an operator has refused, its
examples run on real kernels as well. This is read off the recorded program, in one pass over its nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Flag, auto
from math import prod
from typing import Final

from ...constraints.contents.requirements.indices import INDICES
from ...constraints.contents.requirements.operands import ASSERTING
from ...constraints.ir.language import Tensor, Value
from ...constraints.ir.program import Node, Program, refs
from ...constraints.ir.system import Path, System
from ...constraints.terms.dims import Dim, Term, UnknownSymbol, evaluate, symbols
from ...constraints.terms.formula import free_symbols, holds


class Origins(Flag):
    """The origins of a tensor's elements."""

    NOTHING = 0
    COMPUTED = auto()
    """The program has made or changed them, and not only moved them."""
    CHOSEN = auto()
    """The data choose them, among values that the sizes may bound: floats of an input, random numbers."""
    GIVEN = auto()
    """They depend on integers of an input."""


MOVING: Final = frozenset(
    """
    getitem slice select narrow view reshape expand expand_as unsqueeze squeeze permute transpose t flatten
    unflatten detach clone contiguous alias view_as reshape_as movedim chunk split unbind
    """.split()
)
"""Operators that leave the elements as they are."""
SHAPES: Final = frozenset(
    """
    zeros_like ones_like full_like empty_like new_zeros new_ones new_full new_empty arange linspace size
    """.split()
)
"""Operators that read nothing of their operands but shapes and dtypes."""
RANDOM: Final = frozenset(
    """
    rand randn randint randperm rand_like randn_like randint_like multinomial bernoulli normal poisson
    """.split()
)
_TABLES: Final = ("embedding", "aten_embedding", "_embedding", "one_hot")
"""The names of the operators that take the index and the indexed tensor in either order."""


@dataclass(frozen=True, slots=True)
class Unseen:
    """The parts of a program that real kernels see, and fake ones do not."""

    indices: Origins = Origins.NOTHING
    """The origins of the indices that the program has computed."""
    caught: bool = False
    """True if the program continues after an operator has refused."""
    asserts: bool = False
    """True if an operator of the program refuses elements that are zero."""
    sizes: tuple[int, ...] = ()
    """Sizes that such an index is used in: the number of rows of a table."""
    symbols: frozenset[str] = frozenset()
    """The sizes that occur in these indices, in the sizes that they index, and in refusals that are caught.
    """

    def __bool__(self) -> bool:
        return self.caught or self.asserts or Origins.COMPUTED in self.indices


def unseen(system: System) -> Unseen:
    """Returns the parts of a program that fake tensors do not see, on any of its paths."""
    indices, dims = Origins.NOTHING, set[Dim]()
    for path in system.paths:
        for source, spoken_of in _indices(path):
            if Origins.COMPUTED in source:
                indices |= source
                dims.update(spoken_of)
    conditions = (c for path in system.paths for c in path.conditions)
    caught = {c.formula for c in conditions if c.caught and c.formula is not None}
    names = frozenset[str]().union(*map(symbols, dims), *map(free_symbols, caught))
    asserts = any(node.op in ASSERTING for path in system.paths for node in path.program.nodes)
    return Unseen(indices, bool(caught), asserts, (*sorted(d for d in dims if isinstance(d, int)),), names)


def _indices(path: Path) -> Iterator[tuple[Origins, tuple[Dim, ...]]]:
    """Yields the origin of each index, with the sizes of the index and of the tensor that it indexes."""
    asked = [(n, [*_index_operands(n, path.values)]) for n in path.program.nodes if n.op in INDICES]
    sources = _sources(path.program, {id for _, operands in asked for id, _ in operands})
    for node, operands in asked:
        into = _indexed(node, path.values)
        for id, index in operands:
            own = (d for d in index.shape if isinstance(d, Term))
            yield sources.get(id, Origins.NOTHING), (*into, *own)


def _sources(program: Program, wanted: set[int]) -> dict[int, Origins]:
    """Returns the origins of the wanted values, and of all values from which they are computed."""
    makers: list[tuple[Node, set[int]]] = []
    for node in reversed(program.nodes):
        if not wanted.isdisjoint(node.results):
            made_of = () if node.op in SHAPES else (r.id for r in node.refs)
            makers.append((node, {*made_of}))
            wanted |= makers[-1][1]
    sources = {i.id: _of_input(i.type, i.parameter) for i in program.inputs if i.id in wanted}
    for node, reads in reversed(makers):
        found = Origins.NOTHING if node.op in MOVING else Origins.COMPUTED
        for id in reads:
            found |= sources.get(id, Origins.NOTHING)
        if node.op in RANDOM:
            found |= Origins.CHOSEN
        sources.update(dict.fromkeys(node.results, found))
    return sources


def _of_input(value: Value, parameter: bool) -> Origins:
    if parameter or not isinstance(value, Tensor):
        return Origins.NOTHING
    whole = value.dtype is not None and value.dtype.startswith(("int", "uint", "bool"))
    return Origins.GIVEN if whole else Origins.CHOSEN


def _index_operands(node: Node, values: Mapping[int, Value]) -> Iterator[tuple[int, Tensor]]:
    """The operands that are integers, but for what is indexed. A mask is never out of range."""
    for place, (_, argument) in enumerate(node.args):
        if place > 0 or node.op.startswith(_TABLES):
            for ref in refs(argument):
                value = values.get(ref.id)
                if isinstance(value, Tensor) and _is_whole(value):
                    yield ref.id, value


def _is_whole(tensor: Tensor) -> bool:
    return (tensor.dtype or "int").startswith(("int", "uint"))


def _indexed(node: Node, values: Mapping[int, Value]) -> tuple[Dim, ...]:
    """The shape of what is indexed: the first operand, or of a table the one that holds no integers."""
    table = node.op.startswith(_TABLES)
    operands = (values.get(ref.id) for ref in node.refs)
    found = (v for v in operands if isinstance(v, Tensor) and not (table and _is_whole(v)))
    return next((v.shape for v in found), ())


def made(system: System, sizes: Mapping[str, int]) -> int:
    """Returns the number of elements of all tensors that a run makes at these sizes, as far as the sizes
    determine it. A size about which nothing is known counts as 2.
    """
    for path in system.paths:
        try:
            taken = holds(path.premise, sizes)
        except (ZeroDivisionError, KeyError):
            taken = False
        if taken:
            return sum(_elements(v, sizes) for v in path.values.values() if isinstance(v, Tensor))
    return 0


def _elements(tensor: Tensor, sizes: Mapping[str, int]) -> int:
    return prod(_size(dim, sizes) for dim in tensor.shape)


def _size(dim: Dim, sizes: Mapping[str, int]) -> int:
    try:
        return max(evaluate(dim, sizes), 0)
    except (UnknownSymbol, ZeroDivisionError):
        return 2
