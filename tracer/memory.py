"""Which tensors of a program share memory, and where in it they begin.

torch refuses to write into a tensor what it reads from another part of the same memory (`x[1:] += x[:-1]`).
A view begins where the tensor does that it is a view of, or at the element that it begins with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final

from msgspec import structs

from ..constraints.contents.following import with_elements
from ..constraints.contents.writing import written_through
from ..constraints.dims import Dim, Term
from ..constraints.language import UNTRACKED, Affine, Elements, Ellipses, Slice, Tensor, Value
from ..constraints.memory import strides_of
from ..constraints.program import Node
from ..constraints.rows import place_of
from ..constraints.rules.elementwise import CONVERSIONS
from .symbolic import Memory, SymbolicTensor

_SAME_START: Final = frozenset(
    """
    alias detach view view_as expand expand_as broadcast_to permute transpose t T mT H mH adjoint movedim
    moveaxis swapaxes swapdims squeeze unsqueeze unflatten unfold atleast_1d atleast_2d atleast_3d
    """.split()
)
_PERHAPS: Final = CONVERSIONS.keys() | frozenset(
    """
    reshape reshape_as contiguous flatten ravel to type type_as cpu to_dense conj resolve_conj resolve_neg
    positive dropout alpha_dropout feature_dropout feature_alpha_dropout dropout1d dropout2d dropout3d
    """.split()
)
"""What gives back the tensor itself, or a view of it, where that is what is asked for."""
_PARTS: Final = frozenset(
    "split split_with_sizes chunk tensor_split unsafe_chunk unsafe_split unsafe_split_with_sizes".split()
)
_WITHIN: Final = frozenset("select narrow slice getitem".split())
_ANYWHERE: Final = frozenset(
    "as_strided diagonal real imag view_as_real view_as_complex hsplit vsplit dsplit".split()
)
_EACH: Final = frozenset({"meshgrid", "broadcast_tensors"})
"""Operators of several tensors, each of whose results lies in the memory of the one at its place."""
VIEWS: Final = _SAME_START | _PERHAPS | _PARTS | _WITHIN | _ANYWHERE | _EACH | {"unbind"}
"""Operators whose results lie in the memory of their first argument, or of one argument each."""


@dataclass(frozen=True, slots=True, eq=False)
class View(Memory):
    """A result of an operator on a tensor of this memory: which of its results, beside the others."""

    source: Memory
    input: Tensor
    node: Node
    place: int
    results: tuple[Value, ...]

    def whole(self) -> Memory:
        return self.source.whole()

    def written(self, other: SymbolicTensor, part: Value) -> Elements:
        if other.memory is not self.source or not isinstance(part, Tensor) or len(self.results) > 1:
            return UNTRACKED
        before = other.value
        assert isinstance(before, Tensor)
        return written_through(before, self.node.op, dict(self.node.args), part, _is_plainly_at_least)

    def begin(self) -> tuple[Memory, Dim | None]:
        memory, start = self.source.begin()
        result = self.results[self.place]
        if start is None or not isinstance(result, Tensor) or result.dtype != self.input.dtype:
            return memory, None
        within = self._within(result)
        return memory, None if within is None else start + within

    def _within(self, result: Tensor) -> Dim | None:
        """Where the result begins in the tensor."""
        op, input, strides = self.node.op, self.input, strides_of(self.input)
        if op in _SAME_START or op in _EACH or (op in _PERHAPS and result.numel == input.numel):
            return 0
        if strides is None or place_of(input.shape) is not None:
            return None
        named = {**dict(self.node.args), "input": input}
        if op in _PARTS or op == "unbind":
            dim = named.get("dim", 0)
            if not isinstance(dim, int):
                return None
            before = self.results[: self.place]
            sizes = [r.shape[dim] if op in _PARTS else 1 for r in before if isinstance(r, Tensor)]
            return sum(sizes[1:], sizes[0]) * strides[dim] if sizes else 0
        if op not in _WITHIN:
            return None
        start: Dim = 0
        for axis, stride in enumerate(strides):  # as many elements along each axis as lie before the first
            along = Affine(0, ((axis - len(strides), 1),))
            ramp = structs.replace(input, dtype="int64", elements=along)
            bare = structs.replace(result, dtype="int64", elements=None)
            found = with_elements(op, {**named, "input": ramp}, bare, _is_plainly_at_least, _is_given)
            if not isinstance(found, Tensor) or not isinstance(found.elements, Affine):
                return None
            start = start + found.elements.start * stride
        return start


def _is_plainly_at_least(dim: Dim, bound: int) -> bool:
    return isinstance(dim, int) and dim >= bound


def _is_given(tensor: Tensor) -> bool:
    return False


def is_view(op: str, arguments: Mapping[str, Any]) -> bool:
    """Do the results lie in the memory of arguments? What tensors pick does not."""
    if op not in VIEWS:
        return False
    index = arguments.get("index") if op == "getitem" else ()
    parts = index if isinstance(index, tuple) else (index,)
    return all(part is None or isinstance(part, int | Term | Slice | Ellipses) for part in parts)


def remember(node: Node, given: Sequence[Any], value: Any, results: Any) -> None:
    """Notes of the results of a view, as the program gets them, that they lie in the memory of its input: the
    first of what is given, which was of this value.
    """
    parts = results if isinstance(results, list | tuple) else (results,)
    values = tuple(part.value if isinstance(part, SymbolicTensor) else None for part in parts)
    sources: Iterable[tuple[Any, Any]] = repeat((given[0] if given else None, value))
    if node.op in _EACH:
        several = given[0] if len(given) == 1 and isinstance(given[0], list | tuple) else given
        sources = ((source, getattr(source, "value", None)) for source in several)
    for place, (part, (source, before)) in enumerate(zip(parts, sources, strict=False)):
        both = isinstance(source, SymbolicTensor) and isinstance(part, SymbolicTensor)
        if both and part is not source and isinstance(before, Tensor):
            part.memory = View(source.memory, before, node, place, values)
