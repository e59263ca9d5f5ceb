"""Tracks which tensors of a program share memory, and where in it they begin.

A view begins where its base does, or at the base's element that is its first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch
from msgspec import structs

from ...constraints.contents.elements.functions import AtLeast
from ...constraints.contents.laws.following import with_elements
from ...constraints.contents.traits import is_sparse
from ...constraints.contents.writing import written_through
from ...constraints.engine.memory import contiguous_strides, is_contiguous, strides_of
from ...constraints.ir.language import (
    UNTRACKED,
    Affine,
    Dyn,
    Dynamic,
    Elements,
    Ellipses,
    Shape,
    Slice,
    Tensor,
    Value,
)
from ...constraints.ir.program import Node
from ...constraints.rules.elementwise import CONVERSIONS
from ...constraints.rules.layout import BYTES
from ...constraints.rules.reach import POINTWISE
from ...constraints.rules.strides import channels_last, lies_so
from ...constraints.terms.dims import Dim, Term, maximum, minimum
from ...constraints.terms.formula import Formula, all_of, any_of, divides, eq, ge
from ...constraints.terms.rows import place_of
from ..bytecode.identity import may_be_compared
from ..values.symbolic import Memory, SymbolicTensor
from .fallback import leaves

_SAME_START: Final = frozenset(
    """
    alias detach view view_as expand expand_as broadcast_to permute transpose t T mT H mH adjoint movedim
    moveaxis swapaxes swapdims squeeze unsqueeze unflatten unfold atleast_1d atleast_2d atleast_3d
    prims::broadcast_in_dim prims::collapse_view prims::conj prims::copy_to prims::split_dim prims::squeeze
    prims::transpose prims::view_of prims::view_of_dtype
    """.split()
)
_PERHAPS: Final = CONVERSIONS.keys() | frozenset(
    """
    reshape reshape_as contiguous flatten ravel to type type_as cpu to_dense conj resolve_conj resolve_neg
    positive dropout alpha_dropout feature_dropout feature_alpha_dropout dropout1d dropout2d dropout3d einsum
    sum_to_size conj_physical cartesian_prod as_tensor asarray lift_fresh
    """.split()
)
"""Operators that return the tensor itself, or a view of it, if it already has the requested form."""
SHAPING: Final = frozenset("reshape reshape_as flatten ravel".split())
_REARRANGING: Final = SHAPING | {"view", "view_as", "unflatten", "prims::split_dim", "prims::collapse_view"}
"""Views in another shape."""
_CONVERTING: Final = CONVERSIONS.keys() | frozenset("to type type_as as_tensor asarray".split())
_DROPPING: Final = frozenset(
    "dropout alpha_dropout feature_dropout feature_alpha_dropout dropout1d dropout2d dropout3d".split()
)
_PARTS: Final = frozenset(
    """
    split split_with_sizes chunk tensor_split unsafe_chunk unsafe_split unsafe_split_with_sizes hsplit vsplit
    dsplit
    """.split()
)
_SPLIT_ALONG: Final[Mapping[str, Callable[[Tensor], int]]] = {
    "hsplit": lambda tensor: min(tensor.rank, 2) - 1,
    "vsplit": lambda tensor: 0,
    "dsplit": lambda tensor: 2,
}
"""The dims that operators without a parameter for it split along."""
_WITHIN: Final = frozenset("select narrow slice getitem".split())
_ANYWHERE: Final = frozenset(
    """
    as_strided as_strided_ diagonal linalg_diagonal real imag view_as_real view_as_complex
    prims::as_strided prims::imag prims::real
    """.split()
)
_SEVERAL: Final = frozenset("split split_with_sizes chunk unbind".split())
"""Operators that return several views at once, none of which is written into while gradients are on. The
`unsafe_` forms of them have the same names; others slice for each result.
"""
_MOVING: Final = _PARTS | _WITHIN | {"unbind", "diagonal"}
"""Views that may begin at a later element, by the strides of the tensor."""
_RANKS: Final = {"atleast_1d": 1, "atleast_2d": 2, "atleast_3d": 3}
"""Operators that return the tensor itself if it has so many dims."""
_GIVEN_BACK: Final = _RANKS.keys() | {"real"}
"""Operators besides `_PERHAPS` that may return the tensor itself; what else they return is a view of it."""
_RESHAPED: Final = frozenset("meshgrid reshape reshape_as ravel einsum".split())
"""Operators that never return the tensor itself, but perhaps all of it, as another tensor."""
_TURNING: Final = frozenset("conj adjoint mH H".split())
"""Views of complex numbers as their conjugates."""
_RETYPING: Final = frozenset("view view_as_real view_as_complex real".split())
"""Views as another dtype, which begin where their tensor does."""
_BY_SIZES: Final = frozenset({"broadcast_tensors", "sum_to_size"})
"""Operators whose sizes decide whether they return the tensor itself. It does so only for a program that
compares objects: the paths of all others remain alike, and can be exported as one graph.
"""
_EACH: Final = frozenset({"meshgrid", "broadcast_tensors"})
"""Operators of several tensors; each result lies in the memory of the corresponding argument."""
_OF_LISTS: Final = frozenset({"einsum", "cartesian_prod"})
"""Operators whose tensors are in a list, or come after a text."""
_RETURNING: Final = _PERHAPS | _EACH | _GIVEN_BACK
"""All operators that may return a tensor that they are given."""
VIEWS: Final = _SAME_START | _PERHAPS | _PARTS | _WITHIN | _ANYWHERE | _EACH | {"unbind"}
"""Operators whose results lie in the memory of their first argument, or of one argument each."""
_EXPANDING: Final = frozenset("expand expand_as broadcast_to broadcast_tensors".split())
_SPREADING: Final = _EACH | frozenset(
    """
    expand expand_as broadcast_to unfold as_strided as_strided_ einsum
    prims::as_strided prims::broadcast_in_dim
    """.split()
)
"""Views that may have several elements at one place, though the elements of the tensor have a place each."""


@dataclass(slots=True, eq=False)
class ViewMemory(Memory):
    """The memory of a result of an operator on a tensor of another memory; it notes which of the results it
    is.
    """

    source: Memory
    input: Tensor
    node: Node
    place: int
    results: tuple[Value, ...]
    at_least: AtLeast
    """Whether a dim is known to be no less than a number."""
    root: Memory = field(init=False)
    given_back: bool | None = field(init=False, default=None)
    """Whether the result is the tensor itself or all of it in another shape, for an operator that returns
    either that or a copy; None where that is not known, and for all other operators.
    """

    def __post_init__(self) -> None:
        self.root = self.source.whole()
        op, result = self.node.op, self.results[self.place]
        if op in _PERHAPS and isinstance(result, Tensor):
            self.given_back = _gives_back(op, {**dict(self.node.args), "input": self.input}, result)

    def itself(self) -> Memory:
        return self.source.itself() if self.is_the_object else self

    def is_of_leaf(self) -> bool:
        return self.itself().is_leaf or (self.node.op != "detach" and self.source.is_of_leaf())

    def is_of_graph(self) -> bool | None:
        found = self.itself()
        if found is not self:
            return found.is_of_graph()
        result = self.results[self.place]
        if self.node.op == "detach":
            return False
        retyped = not isinstance(result, Tensor) or result.dtype != self.input.dtype
        if retyped or self.root.is_of_inference:
            return None
        return self.given_back if self.node.op in _PERHAPS else True

    def whole(self) -> Memory:
        return self.root

    def written(self, other: SymbolicTensor, part: Value) -> Elements:
        if other.memory is not self.source or not isinstance(part, Tensor) or len(self.results) > 1:
            return UNTRACKED
        before = other.value
        assert isinstance(before, Tensor)
        if (before.shape, before.layout) != (self.input.shape, self.input.layout):
            return UNTRACKED  # its dims are others since, and the operator's arguments speak of those before
        return written_through(before, self.node.op, dict(self.node.args), part, self.at_least)

    def above(self) -> tuple[Memory, Dim | None]:
        result = self.results[self.place]
        if not isinstance(result, Tensor) or result.dtype != self.input.dtype:
            return self.source, None
        if self.node.op in ("as_strided", "as_strided_"):
            offset = self.node.get("storage_offset")
            if offset is None:
                return self.source, 0
            if not isinstance(offset, int | Term) or self.source.begin()[1] is None:
                return self.source, None
            return self.root, offset
        return self.source, self._within(result)

    def has_turned_signs(self) -> bool | None:
        before, op = self.source.has_turned_signs(), self.node.op
        of_complex = (self.input.dtype or "complex").startswith("complex")
        if op in _TURNING and of_complex:
            return None if before is None else not before
        resolved = op in ("real", "view_as_real", "resolve_conj", "conj_physical") and of_complex
        if before is False or resolved or op in ("view_as_complex", "resolve_neg"):
            return False
        return None if op in _PERHAPS and not self.given_back else before

    def strided(self) -> Formula:
        before = self.source.strided()
        if self.node.op not in _MOVING or self.input.numel == self.root.extent or not self.source.is_anew:
            return before
        return all_of((ge(self.input.numel, 1), before))

    @property
    def is_anew(self) -> bool:
        return self.node.op in _REARRANGING or self.source.is_anew

    @property
    def is_sure(self) -> bool:
        known = self.node.op not in _PERHAPS or self.given_back is not None
        return known and self.source.is_sure

    @property
    def is_copy(self) -> bool:
        """Returns whether the result certainly has memory of its own."""
        return self.given_back is False

    @property
    def is_the_object(self) -> bool | None:
        """Returns whether the result is the very tensor that was given, so that another shape of one is that
        of the other; None where that is not known.
        """
        op, result = self.node.op, self.results[self.place]
        if op not in _RETURNING or not isinstance(result, Tensor):
            return op == "as_strided_"
        if op in _RESHAPED:
            return False
        named = dict(self.node.args)
        rank = None if place_of(self.input.shape) is not None else self.input.rank
        if op in _RANKS:
            return None if rank is None else rank >= _RANKS[op]
        if op == "flatten":
            start, end = named.get("start_dim", 0), named.get("end_dim", -1)
            if rank is None or not (isinstance(start, int) and isinstance(end, int)):
                return None
            return rank > 0 and start % rank == end % rank
        if op in ("broadcast_tensors", "sum_to_size"):
            return True if self.input.shape == result.shape else None
        if op in ("real", "conj", "conj_physical"):
            return None if self.input.dtype is None else not self.input.dtype.startswith("complex")
        return self.given_back

    @property
    def may_be_the_object(self) -> Formula:
        """Returns the sizes at which the result is the very tensor that was given; True where that is not
        known.
        """
        found = self.is_the_object
        if found is False and self.node.op in _DROPPING:
            return eq(self.input.numel, 0)
        result = self.results[self.place]
        if found is not None or not isinstance(result, Tensor):
            return bool(found)
        if None in map(place_of, (self.input.shape, result.shape)):
            alike = zip(self.input.shape, result.shape, strict=False)
            return self.input.rank == result.rank and all_of(eq(n, m) for n, m in alike)
        return True

    @property
    def may_overlap(self) -> bool:  # type: ignore[override]
        """Whether several of its elements may lie at one place, as far as operators tell."""
        return self.node.op in _SPREADING or self.source.may_overlap

    @property
    def expanded_to(self) -> Shape:  # type: ignore[override]
        """Returns the sizes that dims were expanded to, on the way from the memory to this tensor."""
        before = self.source.expanded_to
        result = self.results[self.place]
        if self.node.op not in _EXPANDING or not isinstance(result, Tensor):
            return before
        along = zip(result.shape, strides_of(result) or (), strict=False)
        return before + tuple(n for n, step in along if step == 0)

    def before_expansion(self) -> Tensor | Dynamic | None:
        if self.source.before_expansion() is not None:
            return Dyn
        return self.input if self.node.op in _EXPANDING else None

    @property
    def kept(self) -> Shape | None:
        """Returns the strides of the dims before they were expanded, if that was the last step."""
        strides, result = strides_of(self.input), self.results[self.place]
        if self.node.op not in _EXPANDING or strides is None or not isinstance(result, Tensor):
            return None
        return (0,) * (result.rank - len(strides)) + strides

    @property
    def is_restrided(self) -> bool:  # type: ignore[override]
        """Returns whether its strides along dims of size 1 may differ from those of its layout.

        torch computes the strides of another shape anew, without regard to such dims. A dim that is expanded
        to a size of 1 keeps its stride, which a view may multiply.
        """
        if self.source.is_restrided:
            return True
        if self.node.op in _REARRANGING:
            return strides_of(self.input) != contiguous_strides(self.input.shape)
        expanded = self.source.may_overlap
        if self.node.op in _EXPANDING:
            return expanded or self._perhaps_expands()
        return expanded and _strides_on(self.node)

    def _perhaps_expands(self) -> bool:
        """Returns whether it depends on a size of its operand if a dim is expanded, perhaps to 1."""
        result, before = self.results[self.place], strides_of(self.input)
        after = strides_of(result) if isinstance(result, Tensor) else None
        if before is None or after is None:
            return True
        return any(step not in (0, own) for own, step in zip(reversed(before), reversed(after), strict=False))

    def _within(self, result: Tensor) -> Dim | None:
        """Returns the offset of the result in the tensor."""
        op, input, strides = self.node.op, self.input, strides_of(self.input)
        named = {**dict(self.node.args), "input": input}
        if op in _SAME_START or op in _EACH:
            return 0
        if op in _PERHAPS:
            return 0 if self.given_back else None
        if strides is None or place_of(input.shape) is not None:
            return None
        if op in _PARTS or op == "unbind":
            dim = _SPLIT_ALONG[op](input) if op in _SPLIT_ALONG else named.get("dim", 0)
            if not isinstance(dim, int):
                return None
            before = self.results[: self.place]
            sizes = [r.shape[dim] if op in _PARTS else 1 for r in before if isinstance(r, Tensor)]
            return sum(sizes[1:], sizes[0]) * strides[dim] if sizes else 0
        if op == "diagonal":
            return _diagonal(named, strides, result)
        if op not in _WITHIN:
            return None
        start: Dim = 0
        for axis, stride in enumerate(strides):  # as many elements along each axis as lie before the first
            along = Affine(0, ((axis - len(strides), 1),))
            ramp = structs.replace(input, dtype="int64", elements=along)
            bare = structs.replace(result, dtype="int64", elements=None)
            found = with_elements(op, {**named, "input": ramp}, bare, self.at_least, _is_given)
            if not isinstance(found, Tensor) or not isinstance(found.elements, Affine):
                return None
            place, size = found.elements.start, input.shape[axis]
            place = place if self.at_least(size - place, 0) else minimum(place, size)
            start = start + place * stride
        return start


def _strides_on(node: Node) -> bool:
    """Returns whether a view has other strides than its operand: it takes every second element, or a
    diagonal.
    """
    index = node.get("index")
    items = index if isinstance(index, tuple) else (index,)
    steps = (node.get("step"), *(item.step for item in items if isinstance(item, Slice)))
    return node.op in ("diagonal", "unfold") or any(step not in (None, 1) for step in steps)


def _is_given(tensor: Tensor) -> bool:
    return False


def _gives_back(op: str, named: Mapping[str, Any], result: Tensor) -> bool | None:
    """Returns True if the result is the operand or a view of it, False if it has memory of its own."""
    input = named["input"]
    if op in SHAPING or op == "contiguous":
        if "channels_last" in str(named.get("memory_format")):
            strides = strides_of(input)
            fits = strides is not None and lies_so(input.shape, strides, channels_last(input.shape))
            return fits if isinstance(fits, bool) else None
        if "memory_format" in named:
            return None
        # What is no view is a contiguous copy; of what is contiguous there is a view.
        return True if is_contiguous(input) or isinstance(result.layout, tuple) else None
    if op in _CONVERTING:
        if named.get("copy") is True:
            return False
        if None in (input.dtype, result.dtype):
            return None
        same = input.dtype == result.dtype
        return None if same and ("memory_format" in named or "copy" in named) else same
    if op in _DROPPING:
        trains, p = named.get("train", named.get("training", True)), named.get("p", 0.5)
        if trains is False or p == 0:
            return True
        return False if trains is True and isinstance(p, float | int) else None
    if op in ("positive", "resolve_conj", "resolve_neg", "cpu", "conj", "conj_physical"):
        return True if input.dtype and not input.dtype.startswith("complex") else None
    if op == "to_dense":
        return not is_sparse(input)
    if op == "sum_to_size":
        return True if input.shape == result.shape else None
    if op == "cartesian_prod":
        return len(named.get("tensors", ())) == 1
    if op == "einsum" and len(named.get("operands", ())) > 1:
        return False
    return True if op == "lift_fresh" else None


def are_one(one: Memory, other: Memory) -> bool | None:
    """Returns whether tensors of these memories are one and the same; None where that is not known."""
    if _source(one, False) is _source(other, False):
        return True
    return None if _source(one, True) is _source(other, True) else False


def _source(memory: Memory, perhaps: bool) -> Memory:
    """Returns the memory that a tensor had before operators returned it, or `perhaps` did, unchanged."""
    while isinstance(memory, ViewMemory):
        same = memory.is_the_object
        if not (same or (perhaps and same is None)):
            break
        memory = memory.source
    return memory


def _diagonal(named: Mapping[str, Any], strides: Sequence[Dim], result: Tensor) -> Dim | None:
    """Returns the offset of a diagonal: above the main one it begins so many columns to the right, below so
    many rows down; a diagonal without elements begins where the matrix does.
    """
    offset, rows, columns = (named.get(key, at) for key, at in (("offset", 0), ("dim1", 0), ("dim2", 1)))
    if not (isinstance(offset, int) and isinstance(rows, int) and isinstance(columns, int)):
        return None
    step = strides[columns] if offset > 0 else strides[rows]
    return abs(offset) * step * minimum(1, maximum(0, result.shape[-1]))


def is_view(op: str, arguments: Mapping[str, Any]) -> bool:
    """Returns whether the results lie in the memory of arguments, which is not so for elements picked by
    tensors.
    """
    if op not in VIEWS:
        return False
    index = arguments.get("index") if op == "getitem" else ()
    parts = index if isinstance(index, tuple) else (index,)
    return all(map(is_plain, parts))


def is_plain(item: Any) -> bool:
    return item is None or (isinstance(item, int | Term | Slice | Ellipses) and not isinstance(item, bool))


_SEQUENCES: Final = (list, tuple)


def remember(node: Node, given: Sequence[Any], values: Sequence[Any], results: Any) -> Any:
    """Notes that the results of a view, as the program gets them, lie in the memory of its input, the first
    of `given`, which had the first of these values. Returns these results; a result that is its very input is
    that input.
    """
    if node.op in _OF_LISTS:
        given, values = _tensors_of(given, values)
    value = values[0] if values else None
    each = node.op in _EACH or (node.op in _RANKS and not isinstance(results, SymbolicTensor))
    if type(results) is SymbolicTensor and not each:
        return _lies_in(results, given[0], value, node, 0, (results.value,)) if given else results
    parts = results if isinstance(results, _SEQUENCES) else (results,)
    values = tuple([part.value if isinstance(part, SymbolicTensor) else None for part in parts])
    if each:
        several = given[0] if len(given) == 1 and isinstance(given[0], _SEQUENCES) else given
        befores = [getattr(source, "value", None) for source in several]
    else:
        several, befores = [given[0]] * len(parts) if given else (), [value] * len(parts)
    found = [
        _lies_in(part, source, before, node, place, values)
        for place, (part, source, before) in enumerate(zip(parts, several, befores, strict=False))
    ]
    if all(one is part for one, part in zip(found, parts, strict=False)):
        return results
    return type(results)(found) if isinstance(results, _SEQUENCES) else found[0]


def _tensors_of(given: Sequence[Any], values: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Returns the tensors among the arguments, those in lists too, and their values."""
    tensors = [one for one in leaves(given) if isinstance(one, torch.Tensor)]
    return tensors, [value for value in leaves(values) if isinstance(value, Tensor) or value is Dyn]


def _lies_in(
    part: Any, source: Any, before: Any, node: Node, place: int, values: tuple[Value, ...]
) -> Any:
    """Notes that a result of a view lies in the memory of a tensor, whose value was `before`, and returns the
    result, or that tensor if they are the same object.
    """
    if not isinstance(part, SymbolicTensor) or not isinstance(before, Tensor):
        return part
    if not isinstance(source, torch.Tensor) or (part is source and node.op != "as_strided_"):
        return part
    if (memory := part.run.memory_of(source)) is None:
        return part
    view = ViewMemory(memory, before, node, place, values, part.run.generator.at_least)
    if node.op not in _RETURNING and node.op != "as_strided_":  # most views are other tensors, at all sizes
        part.lies_in(view)
        return part
    same = view.is_the_object
    if same and isinstance(source, SymbolicTensor) and node.op not in _BY_SIZES:
        return source
    perhaps = view.may_be_the_object
    if perhaps is not False and may_be_compared(source, type(part.run).run.__code__):
        if same is None and perhaps is True:
            part.run.give_up(f"whether {node.op} returns the very tensor that it is given is not known")
        if part.run.truth(perhaps) and isinstance(source, SymbolicTensor):
            return source
    if node.op not in _PERHAPS or not view.is_copy:
        part.lies_in(view)
    return part


OWNING: Final = (POINTWISE - VIEWS - {"broadcast_tensors", "dist", "alias"}) | frozenset(
    """
    clone zeros ones full empty rand randn randint arange linspace eye new_zeros new_ones new_full new_empty
    cat stack mm bmm matmul addmm baddbmm linear softmax log_softmax sum mean amax amin index_select gather
    layer_norm rms_norm repeat copy where cumsum pad embedding conv1d conv2d conv3d
    """.split()
)
"""Operators whose results, if laid out without gaps, fill a memory of their own."""
PLAIN: Final = OWNING - POINTWISE - {"pad"}
"""Those of them whose contiguous results have the strides of their sizes, a 0 counted as 1, without elements,
too. Kernels that go through their operands may order dims of sizes 0 and 1 otherwise; padding that only
crops keeps strides.
"""


def note_gradients(op: str, results: Any) -> None:
    """Notes whether the views that an operator returned are written into while gradients are on."""
    is_several = op in _SEVERAL and isinstance(results, _SEQUENCES)
    has_none = not torch.is_grad_enabled()
    if not (is_several or has_none):
        return
    for part in results if isinstance(results, _SEQUENCES) else (results,):
        if isinstance(part, SymbolicTensor) and isinstance(view := part.memory, ViewMemory):
            view.is_kept_from_gradients = is_several or (has_none and _is_another_view(op, view))


def _is_another_view(op: str, view: ViewMemory) -> bool:
    """Returns whether the result of a view is certainly a view, and not the tensor that was given."""
    return op not in _PERHAPS or (view.given_back is True and view.is_the_object is False)


def is_kept_from_gradients(memory: Memory) -> bool:
    """Returns whether a tensor is a view that torch writes no gradients through, or views one."""
    while isinstance(memory, ViewMemory) and memory.node.op != "detach":
        if memory.is_kept_from_gradients:
            return True
        memory = memory.source
    return False


def _start_unless_copied(memory: Memory) -> tuple[Dim, bool] | None:
    """Returns where a tensor begins, and whether an operator may have copied it, so that it begins at 0; None
    where that is not known.
    """
    start: Dim = 0
    perhaps = False
    while (step := memory.above()) is not None:
        op = memory.node.op if isinstance(memory, ViewMemory) else ""
        if step[1] is not None:
            start = start + step[1]
        elif op in _PERHAPS:
            perhaps = True
        else:
            known = op in _RETYPING and _start_unless_copied(step[0]) == (0, False)
            return (start, perhaps) if known else None
        memory = step[0]
    return start, perhaps


def retyped(op: str, arguments: Mapping[str, Any]) -> str | None:
    """Returns the dtype as which an operator views its tensor; None where it views the elements as they are.
    """
    if op in ("view_as_real", "view_as_complex"):
        return op.removeprefix("view_as_")
    size = arguments.get("size")
    words = (arguments.get("dtype"), *(size if isinstance(size, tuple) else (size,)))
    return next((word for word in words if isinstance(word, str)), None) if op == "view" else None


def require_retyped(op: str, tensor: Any, arguments: Mapping[str, Any]) -> None:
    """Adds what torch requires of the memory of a tensor that is viewed as another dtype: it begins at a
    multiple of the new elements, and its elements have the signs that they have in memory.
    """
    dtype = retyped(op, arguments)
    if dtype is None or not isinstance(tensor, SymbolicTensor) or not isinstance(tensor.value, Tensor):
        return
    before = tensor.value
    generator = tensor.run.generator
    if op != "view_as_complex" and (turned := tensor.memory.has_turned_signs()) is not False:
        if turned:
            generator.require(False, f"{op} of a conjugate, which is not resolved")
        generator.approximate(f"{op} of what may be a conjugate, or a copy of one", "accept")
    ratio = 2 if op == "view_as_complex" else BYTES.get(dtype, 1) // BYTES.get(before.dtype or "", 1)
    if ratio < 2:
        return
    start, perhaps = _start_unless_copied(tensor.memory) or (1, True)
    begins, nothing = divides(ratio, start), eq(before.numel, 0)
    if perhaps and not generator.certain(begins):
        generator.approximate(f"{op} of elements that may begin anywhere in memory", "accept")
    elif begins is not True:
        generator.approximate(f"{op} of no elements may begin elsewhere", "accept", nothing)
        told = f"{op} begins at a multiple of {ratio} elements, not at {start}"
        generator.require(any_of((begins, nothing)), told)


STRIDING: Final = frozenset("as_strided as_strided_ as_strided_copy as_strided_scatter".split())
"""Operators that access any element of the memory."""


def storage(tensor: Any) -> tuple[Dim, Dim] | None:
    """Returns how many elements the memory of a tensor can hold, and where in it the tensor begins; or None.
    """
    if not isinstance(tensor, SymbolicTensor):
        return None
    memory, start = tensor.memory.begin()
    extent, known = memory.extent, tensor.run.generator.certain(tensor.memory.strided())
    return None if extent is None or start is None or not known else (extent, start)
