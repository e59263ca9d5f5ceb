"""The tensor that a program is recorded with: it has a type of ours, and no data.

`SymbolicTensor` is a `torch.Tensor` to whoever asks. Every call on it arrives in the run that records it,
through a `TorchFunctionMode`; the few questions that are not operators (`x.shape`, `x.dtype`, `x.dim()`) are
answered here.
"""

from __future__ import annotations

import operator
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any, Final

import torch
from msgspec import structs
from torch.utils.hooks import RemovableHandle

from ...constraints.contents.laws.masks import whether_some
from ...constraints.contents.traits import is_sparse
from ...constraints.contents.writing import seen_in
from ...constraints.engine.lifting import are_equal, number_of_elements, opened, reached, spelt_out
from ...constraints.engine.memory import extent, strides_of
from ...constraints.ir.language import LOOSE, UNTRACKED, Dynamic, Elements, Layout, Shape, Tensor, Value
from ...constraints.ir.program import Ref
from ...constraints.rules.common import contiguous_strides
from ...constraints.rules.sizes import sym_is_contiguous
from ...constraints.terms.dims import Dim, maximum
from ...constraints.terms.formula import Formula, all_of, any_of, eq, ge, le, ne
from ...constraints.terms.rows import place_of, rank_of
from ..bytecode.operations import hands_on
from ..bytecode.spread import Spread, destination, is_written_out
from ..host.interpreter import frame_above
from ..host.operators import schema_of
from ..host.tensors import BASE, VERSION, make_wrapper, subclass_overrides_off
from ..recorder import Recorder
from .numbers import Size, dim_of, size


class Sizes(tuple[Any, ...]):
    """A `torch.Size` that may hold Sizes. (torch's own would need numbers in `numel`.)"""

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return torch.Size

    def numel(self) -> Any:
        result: Any = 1
        for n in self:
            result = result * n
        return result

    @hands_on
    def __getitem__(self, key: Any) -> Any:
        found = tuple.__getitem__(self, key)
        return Sizes(found) if type(key) is slice else found

    def __eq__(self, other: object) -> bool:
        found: bool = _compared(self, other, eq, all_of, tuple.__eq__)
        return found

    def __ne__(self, other: object) -> bool:
        found: bool = _compared(self, other, ne, any_of, tuple.__ne__)
        return found

    __hash__ = tuple.__hash__

    def __add__(self, other: Any) -> Sizes:
        return Sizes((*self, *other)) if isinstance(other, tuple) else NotImplemented

    def __radd__(self, other: Any) -> Sizes:
        return Sizes((*other, *self)) if isinstance(other, tuple) else NotImplemented

    @hands_on
    def __mul__(self, times: Any) -> Sizes:
        return Sizes(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __reduce__(self) -> Any:
        return Sizes, (tuple(self),)


def _compared(
    sizes: Sizes,
    other: object,
    compare: Callable[[Dim, Dim], Formula],
    joined: Callable[[Iterable[Formula]], Formula],
    plain: Callable[[Any, Any], Any],
) -> Any:
    """Returns a comparison of sizes, as one branch.

    Python would branch on one size after the other, even for tuples of different lengths.
    """
    if isinstance(other, tuple):
        count, every = len(sizes), (*tuple(sizes), *other)
        if count != len(other):
            return compare is ne
        run = next((part.run for part in every if type(part) is Size), None)
        dims = [dim for part in every if (dim := dim_of(part)) is not None]
        if run is not None and len(dims) == 2 * count:
            return run.truth(joined(map(compare, dims[:count], dims[count:])))
    return plain(sizes, other)


class RowSizes(Sizes):
    """The sizes of a tensor of unknown rank: each is determined when the program reads it."""

    run: Recorder
    value: Tensor

    @staticmethod
    def __new__(cls, run: Recorder, value: Tensor) -> RowSizes:
        self = tuple.__new__(cls)
        self.run, self.value = run, value
        return self

    def _all(self) -> Sizes:
        value = spelt_out(self.run.generator, self.value)
        return Sizes(size(self.run, d) for d in value.shape)

    def _part(self, key: Any, leading: int, trailing: int) -> Any:
        found = reached(self.run.generator, self.value, leading, trailing).shape[key]
        return sizes_of(self.run, Tensor(found)) if isinstance(found, tuple) else size(self.run, found)

    def __len__(self) -> int:
        if self.run.spread is not None and is_written_out(frame_above(1)):
            raise TypeError("Python asks for a hint, which it can do without")
        return len(self._all())

    def __bool__(self) -> bool:
        return self.run.truth(ge(rank_of(self.value.shape), 1))

    def __iter__(self) -> Iterator[Any]:
        frame = frame_above(1)
        return iter(self._written_out(frame) or self._all())

    def _written_out(self, frame: FrameType) -> list[Any] | None:
        """Returns the sizes, with those between the ends as a single one, where the program passes them on to
        a call that accepts this; else None.
        """
        site, spelt = (frame.f_code, frame.f_lasti), self.run.spelt_out
        if spelt is None or site in spelt or self.run.spread is not None or not is_written_out(frame):
            return None
        if (into := destination(frame)) is None:
            return None
        call, alone = into
        value = opened(self.run.generator, self.value)
        if (place := place_of(value.shape)) is None:
            return None
        if alone:
            self.run.require(ge(rank_of(value.shape), 1), "no sizes are no argument", TypeError)
        sizes = [size(self.run, dim) for dim in value.shape]
        self.run.spread = Spread(frame, site, call, sizes[place])
        return sizes

    def __contains__(self, size: Any) -> bool:
        return size in self._all()

    def __getitem__(self, key: Any) -> Any:
        if type(key) is slice:
            ends = (key.start or 0, key.stop)
            if key.step is None and all(type(end) in (int, type(None)) for end in ends):
                return self._part(key, max(0, *(e or 0 for e in ends)), max(0, *(-(e or 0) for e in ends)))
            return self._all()[key]
        index = operator.index(key)
        return self._part(index, index + 1, 0) if index >= 0 else self._part(index, 0, -index)

    def __eq__(self, other: object) -> bool:
        return not self != other

    def __ne__(self, other: object) -> bool:
        if not isinstance(other, tuple):
            return True
        if isinstance(other, RowSizes):
            same = are_equal(self.run.generator, self.value, other.value)
            return self._all() != other._all() if same is None else not self.run.truth(same)
        if not self.run.truth(eq(rank_of(self.value.shape), len(other))):
            return True
        return self._all() != other

    def __hash__(self) -> int:
        return hash(self._all())

    def __add__(self, other: Any) -> Sizes:
        joined = self._joined((), other)
        return Sizes((*self._all(), *other)) if joined is None else joined

    def __radd__(self, other: Any) -> Sizes:
        joined = self._joined(other, ())
        return Sizes((*other, *self._all())) if joined is None else joined

    def _joined(self, before: Any, after: Any) -> Sizes | None:
        """Returns the concatenation with other sizes; None where one of them is no size, or a row."""
        sizes = (before, after)
        if any(type(part) is RowSizes for part in sizes):
            return None
        front, behind = ([d for d in map(dim_of, part) if d is not None] for part in sizes)
        if len(front) < len(before) or len(behind) < len(after):
            return None
        return RowSizes(self.run, structs.replace(self.value, shape=(*front, *self.value.shape, *behind)))

    def __mul__(self, times: Any) -> Sizes:
        return Sizes(tuple(self._all()) * times)

    def numel(self) -> Any:
        return size(self.run, number_of_elements(self.run.generator, self.value))

    def index(self, *args: Any) -> int:
        return self._all().index(*args)

    def count(self, value: Any) -> int:
        return self._all().count(value)

    def __reduce__(self) -> Any:
        return Sizes, (tuple(self._all()),)


class Memory:
    """A tensor's memory; the tensor that owns it begins at its start."""

    is_leaf = False
    """Whether its tensor is a leaf that requires gradients."""
    is_of_inference = False
    """Whether its tensor was made in inference mode."""
    is_kept_from_gradients = False
    """Whether its tensor is a view that torch writes no gradients through: one of several that a call has
    returned, or made while gradients were off.
    """
    may_overlap = False
    """Whether several elements of its tensor may lie at one place, though its layout does not tell."""
    is_restrided = False
    """Whether its strides along dims of size 1 may differ from those of its layout."""
    expanded_to: Shape = ()
    """The sizes that dims were expanded to, on the way from the memory to its tensor."""

    def __init__(self, owner: Tensor | None = None) -> None:
        self.owner = owner
        """The value of a tensor that fills the memory; None if no such tensor is known."""
        self.tensors: list[weakref.ref[SymbolicTensor]] = []
        """The tensors that lie in this memory."""

    @property
    def extent(self) -> Dim | None:
        """Returns the number of elements that it can hold; None where that is not known."""
        return None if self.owner is None else extent(self.owner)

    def whole(self) -> Memory:
        """Returns the memory that this one is, or is a part of."""
        return self

    def itself(self) -> Memory:
        """Returns the memory of the tensor that an operator has returned unchanged, if one has."""
        return self

    def is_of_leaf(self) -> bool:
        """Returns whether its tensor is a leaf that requires gradients, or a view of one."""
        return self.itself().is_leaf

    def is_of_graph(self) -> bool | None:
        """Returns whether its tensor is a view in the graph of gradients; None where that is not known. What
        `detach` returns is none, and neither is a view of another dtype or one made in inference mode.
        """
        return False

    def above(self) -> tuple[Memory, Dim | None] | None:
        """Returns the memory that this one is a part of, if it is one, and the offset in it, in elements,
        which is None where it is not known.
        """
        return None

    def begin(self) -> tuple[Memory, Dim | None]:
        """Returns the memory, and the offset in it, in elements, where a tensor begins; None where that is
        not known.
        """
        *_, found = self.offsets()
        return found

    def offsets(self) -> Iterator[tuple[Memory, Dim | None]]:
        """Yields this memory and all that it is a part of, each with the offset in it."""
        memory: Memory = self
        start: Dim | None = 0
        yield memory, start
        while (step := memory.above()) is not None:
            memory, within = step
            start = None if start is None or within is None else start + within
            yield memory, start

    @property
    def is_anew(self) -> bool:
        """Returns whether the strides of its tensor may have been computed anew, from its sizes."""
        return False

    @property
    def is_sure(self) -> bool:
        """Returns whether its tensor certainly lies there: an operator may have returned a copy."""
        return True

    def strided(self) -> Formula:
        """Returns the condition under which the offset of a tensor in a memory with elements is known.

        torch counts a size of 0 as 1 in strides that it computes anew: a view of nothing may begin elsewhere.
        """
        return True

    def before_expansion(self) -> Tensor | Dynamic | None:
        """Returns what its tensor was expanded from; unknown if something else was done since, and None if
        no dim was expanded.
        """
        return None

    def written(self, other: SymbolicTensor, part: Value) -> Elements:
        """Returns the elements of another tensor after a tensor of this memory has become `part`."""
        return UNTRACKED

    def has_turned_signs(self) -> bool | None:
        """Returns whether torch notes that its tensor's elements are those in memory with another sign: of a
        conjugate, or of the imaginary part of one; None where that is not known.
        """
        return False


class StoredMemory(Memory):
    """The memory of real tensors, which is kept alive, as they are."""

    def __init__(self, storage: torch.UntypedStorage, key: int) -> None:
        super().__init__()
        self.storage, self.key = storage, key
        self.parts: dict[int, tuple[torch.Tensor, Within]] = {}
        """The real tensors that lie in it, by identity, each with its part."""

    def part(self, tensor: torch.Tensor, start: int) -> Within:
        """Returns the part that a real tensor is, which begins at this element.

        Where elements of others are of another size, it is not known where that is.
        """
        if id(tensor) not in self.parts:
            alike = all(other.itemsize == tensor.itemsize for other, _ in self.parts.values())
            self.parts[id(tensor)] = tensor, Within(self, start if alike else None)
        return self.parts[id(tensor)][1]


class Within(Memory):
    """A part of a memory, from an element on."""

    def __init__(self, source: Memory, start: Dim | None) -> None:
        super().__init__()
        self.source, self.start = source, start
        self.may_overlap, self.is_restrided = source.may_overlap, source.is_restrided
        self.expanded_to = source.expanded_to

    def before_expansion(self) -> Tensor | Dynamic | None:
        return self.source.before_expansion()

    def whole(self) -> Memory:
        return self.source.whole()

    def above(self) -> tuple[Memory, Dim | None]:
        return self.source, self.start


class SymbolicTensor(torch.Tensor):
    """A tensor without data: `value` is its type, as far as it is known, and `ref` its id in the program."""

    run: Recorder
    value: Tensor | Dynamic
    ref: Ref
    owns: bool
    """Whether it fills a memory of its own."""
    is_plain: bool
    """Whether its strides without elements equal those that its sizes give."""
    _memory: Memory | None = None

    @property
    def memory(self) -> Memory:
        """Returns the tensor's memory; a view gets a new one until its base is known."""
        if self._memory is None:
            self.lies_in(Memory(self.value if self.owns and isinstance(self.value, Tensor) else None))
        assert self._memory is not None
        return self._memory

    def lies_in(self, memory: Memory) -> None:
        """Puts the tensor into a memory."""
        vars(self)["_memory"] = memory
        memory.whole().tensors.append(weakref.ref(self))

    def is_written(self) -> None:
        """Notes that the tensor was written into: the elements of others that share its memory may have
        changed.
        """
        if self._memory is None:
            return
        for found in self._memory.whole().tensors:
            other = found()
            if other is None or other is self or not isinstance(other.value, Tensor):
                continue
            if other.value.elements is not None:
                left = self._memory.written(other, self.value)
                other.value = structs.replace(other.value, elements=left)
            elif isinstance(self.value, Tensor) and self.value.elements is not None:
                left = seen_in(other.value, self.value, self.run.generator.at_least)
                other.value = structs.replace(other.value, elements=left)

    def has_overwritten(self, by: list[int], whole: Formula, is_finite: bool) -> None:
        """Values have been written into it, at some sizes over the `whole` of it, and so into what shares its
        memory. A number among them is finite or not.
        """
        if whole is not True or by != [self.ref.id]:  # of the result of a call its node says all
            self.run.generator.overwritten(self.ref.id, by, whole, is_finite)
        for found in () if self._memory is None else self._memory.whole().tensors:
            other = found()
            if other is None or other is self:
                continue
            over: Formula = True
            if isinstance(other.value, Tensor) and isinstance(self.value, Tensor):
                over = ge(self.value.numel, other.value.numel)
            self.run.generator.overwritten(other.ref.id, by, all_of((whole, over)), is_finite)

    @staticmethod
    def __new__(
        cls,
        run: Recorder,
        value: Tensor | Dynamic,
        ref: Ref,
        dtype: torch.dtype,
        owns: bool = False,
        is_plain: bool = False,
    ) -> SymbolicTensor:
        # Sizes that C++ code asks for behind Python's back are dispatched to Python, where they are symbolic.
        self: SymbolicTensor = make_wrapper(
            cls,
            [1] * (len(value.shape) if isinstance(value, Tensor) else 0),
            dtype=dtype,
            device=run.device,
            dispatch_sizes_strides_policy="sizes",
        )
        # No detour through `__setattr__`.
        vars(self).update(run=run, value=value, ref=ref, owns=owns, is_plain=is_plain)
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _OWN:
            self.run.attributes.add(name)
        super().__setattr__(name, value)

    # What programs ask most, answered without the way through torch's dispatcher and the mode.

    @property
    def shape(self) -> Sizes:  # type: ignore[override]
        return shape(self.run, self)

    @property
    def ndim(self) -> Any:  # type: ignore[override]
        return rank(self.run, self)

    def dim(self) -> Any:
        return rank(self.run, self)

    def size(self, dim: int | None = None) -> Any:
        return one_size(self.run, self, dim)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return torch.Tensor

    def as_subclass(self, cls: Any) -> Any:
        """Returns another tensor of torch's own type in this memory; another type is not followed."""
        if cls is torch.Tensor:
            return self.run.operator("alias", (self,), {})
        if not isinstance(cls, type):
            self.run.require(False, f"cls must be a type (got {cls.__class__.__name__})", TypeError)
            return self
        return self.run.give_up(f"a tensor becomes one of type {cls.__name__}")

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Records a call outside the mode (from hooks of torch itself) in the first tensor's run."""
        return _run_of(args, kwargs).call(func, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        """Answers or records an operator that C++ code calls inside a function that bypassed the mode."""
        run = _run_of(args, kwargs)
        name = schema_of(func).name
        if name in ("aten::size", "aten::sym_size"):
            return shape(run, args[0]) if len(args) == 1 else shape(run, args[0])[args[1]]
        if name in ("aten::stride", "aten::sym_stride"):
            return stride(run, args[0])
        if name in ("aten::sym_numel", "aten::numel"):
            return numel(run, args[0])
        if name in ("aten::dim",):
            return rank(run, args[0])
        if name in ("aten::is_contiguous",):
            return is_contiguous(run, args[0])
        if name in ("aten::storage_offset", "aten::sym_storage_offset"):
            return storage_offset(run, args[0])
        return run.operator(name, args, kwargs or {})

    def __iter__(self) -> Iterator[Any]:
        """Returns an iterator: `a, b = x` determines the number of parts, a `for` may be summarised."""
        return self.run.iterate(self, frame_above(1))

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"SymbolicTensor({self.value})"

    def __format__(self, spec: str) -> str:
        """Returns the text of a number, or a name where the data decide it."""
        integral = not (self.dtype.is_floating_point or self.dtype.is_complex or self.dtype == torch.bool)
        if not integral or not isinstance(self.value, Tensor) or self.value.rank:
            return repr(self)
        number = item(self.run, self)
        if type(number) is Size and not spec:
            return self.run.text(number, frame_above(1))
        return format(number, spec)

    def __deepcopy__(self, memo: Any) -> Any:
        """Returns a copy; ends the path of a view with gaps, since its copy has the same gaps."""
        if not is_contiguous(self.run, self):
            self.run.give_up("a tensor whose elements may lie apart is copied with copy.deepcopy")
        self.run.require(is_leaf(self.run, self), "only leaves of the graph of gradients are deep-copied")
        return self.run.operator("clone", (self,), {})

    def register_hook(self, hook: Any) -> RemovableHandle:
        """Returns a handle. The hook is not called, since no gradients are computed."""
        self.run.require(self.requires_grad, "a tensor that requires no gradients takes no hook")
        return RemovableHandle(OrderedDict())

    def register_post_accumulate_grad_hook(self, hook: Any) -> RemovableHandle:
        """Returns a handle, of a leaf alone. The hook is not called, since no gradients are computed."""
        self.run.require(is_leaf(self.run, self), "only a leaf takes a hook of this kind")
        return self.register_hook(hook)

    def backward(self, *args: Any, **kwargs: Any) -> Any:
        """Ends the path, since the gradients of tensors are not followed."""
        self.run.give_up("backward() computes gradients of tensors without data")


_OWN: Final = frozenset("run value ref owns is_plain memory _memory".split())
"""Attributes that a recording sets."""


def _run_of(args: Any, kwargs: Any) -> Recorder:
    todo = [args, kwargs or {}]
    while todo:
        item = todo.pop()
        if isinstance(item, SymbolicTensor):
            return item.run
        if isinstance(item, list | tuple):
            todo.extend(list.__iter__(item) if isinstance(item, list) else tuple.__iter__(item))
        elif isinstance(item, dict):
            todo.extend(item.values())
    raise TypeError("no symbolic tensor among the arguments")


def known(run: Recorder, x: SymbolicTensor) -> Tensor:
    """Returns the tensor's type; ends the path where the value is unknown."""
    if isinstance(x.value, Tensor):
        return x.value
    return run.give_up("the shape of a value is needed, and nothing is known about the value")


def sizes_of(run: Recorder, value: Tensor) -> Sizes:
    """Returns the sizes of a tensor, as its program sees them."""
    if run.domain.rows and place_of(value.shape) is not None:
        value = opened(run.generator, value)
        if place_of(value.shape) is not None:
            return RowSizes(run, value)
    return Sizes([size(run, d) for d in value.shape])


def ranked(run: Recorder, x: SymbolicTensor) -> Tensor:
    """Returns the tensor's type with each of its sizes."""
    value = known(run, x)
    return spelt_out(run.generator, value) if run.domain.rows else value


def shape(run: Recorder, x: SymbolicTensor) -> Sizes:
    return sizes_of(run, known(run, x))


def one_size(run: Recorder, x: SymbolicTensor, dim: int | None = None) -> Any:
    sizes = shape(run, x)
    if dim is None:
        return sizes
    if isinstance(dim, str | float):
        raise TypeError(f"size() takes the place of a dim, not {dim!r}")
    try:
        return sizes[dim]
    except IndexError:
        raise IndexError(f"dimension {dim} of a tensor of rank {len(sizes)}") from None


def rank(run: Recorder, x: SymbolicTensor) -> Any:
    return size(run, rank_of(known(run, x).shape))


def elements(run: Recorder, x: SymbolicTensor) -> Dim:
    """Returns the number of elements of the tensor."""
    value = known(run, x)
    return number_of_elements(run.generator, value) if run.domain.rows else value.numel


def numel(run: Recorder, x: SymbolicTensor) -> Any:
    return size(run, elements(run, x))


def stride(run: Recorder, x: SymbolicTensor, dim: int | None = None) -> Any:
    strides = tuple(size(run, s) for s in _strides(run, x))
    return strides if dim is None else strides[dim]


def _strides(run: Recorder, x: SymbolicTensor) -> Shape:
    """Returns the strides in elements; ends the path where they are not known."""
    value = ranked(run, x)
    if is_sparse(value):
        run.give_up("a sparse tensor is asked for strides")
    if value.layout in LOOSE:
        where = any_of(eq(n, 1) for n in value.shape) if value.layout is Layout.ROW_MAJOR else True
        reason = "the strides of a value whose layout is not known are taken as contiguous"
        run.generator.approximate(reason, where=where)
    shape, views = value.shape, isinstance(value.layout, tuple) or not x.is_plain
    if views and not run.truth(all_of(ge(n, 1) for n in shape)):
        run.give_up("a view without elements is asked for strides")
    if (before := x.memory.before_expansion()) is not None:
        return _expanded_strides(run, before, value)
    if not views:  # torch counts a size of 0 as 1 here
        shape = tuple(n if run.generator.at_least(n, 1) else maximum(n, 1) for n in shape)
    return value.layout if isinstance(value.layout, tuple) else contiguous_strides(shape)


def _expanded_strides(run: Recorder, before: Tensor | Dynamic, value: Tensor) -> Shape:
    """Returns the strides of a tensor that was expanded, or made of one that was; ends the path where they
    are not known.

    torch goes from the last dim to the first. One of the size that it had keeps its stride, also if that is
    1, and one of another has 0. A new one of size 1 has the stride of a contiguous dim.
    """
    own = strides_of(before) if isinstance(before, Tensor) else None
    if own is None or not isinstance(before, Tensor):
        if run.truth(any_of(le(n, 1) for n in value.shape)):
            run.give_up("it is not known which stride a dim of size 1 has after others were expanded")
        return strides_of(value) or contiguous_strides(value.shape)
    if not before.shape:
        return (0,) * value.rank
    missing = value.rank - before.rank
    found: list[Dim] = []
    for at in reversed(range(value.rank)):
        old, step = (before.shape[at - missing], own[at - missing]) if at >= missing else (1, None)
        step = value.shape[at + 1] * found[-1] if step is None else step
        found.append(step if run.truth(eq(value.shape[at], old)) else 0)
    return tuple(reversed(found))


def storage_offset(run: Recorder, x: SymbolicTensor) -> Any:
    """Returns the offset of the tensor in its memory; every input has offset 0."""
    memory, start = x.memory.begin()
    if start is None:
        return run.give_up("it is not known where a view begins")
    some = True if start == 0 or memory.extent is None else ge(memory.extent, 1)
    if not run.truth(all_of((some, x.memory.strided()))):
        run.give_up("a view without elements is asked where it begins")
    return size(run, start)


def has_turned_signs(run: Recorder, x: SymbolicTensor) -> bool:
    """Returns whether its elements are those in memory with another sign."""
    turned = x.memory.has_turned_signs()
    return run.give_up("it is not known if a conjugate was copied") if turned is None else turned


def is_contiguous(run: Recorder, x: SymbolicTensor, memory_format: Any = torch.contiguous_format) -> bool:
    """Returns whether the elements have this order in memory, sizes of 1 aside."""
    value = known(run, x)
    plainly = memory_format is torch.contiguous_format
    if plainly and value.layout in (Layout.CONTIGUOUS, Layout.ROW_MAJOR):
        return True
    if is_sparse(value):
        run.give_up("a sparse tensor is asked for strides")
    value = ranked(run, x)
    if not plainly and value.rank in (4, 5) and not run.truth(ge(value.numel, 1)):
        value = structs.replace(value, layout=_strides(run, x))  # those of the other sizes count
    return run.truth(sym_is_contiguous(run.generator, value, str(memory_format)))


def layout_of(run: Recorder, x: SymbolicTensor) -> torch.layout:
    """Returns `torch.strided`, or the layout of a sparse tensor."""
    layout = known(run, x).layout
    if layout is Layout.CSR:
        return torch.sparse_csr
    return torch.sparse_coo if layout in (Layout.COO, Layout.COALESCED) else torch.strided


def is_coalesced(run: Recorder, x: SymbolicTensor) -> bool:
    """Returns whether each index is stored once, which holds for a single element."""
    value = known(run, x)
    if not is_sparse(value):
        run.give_up("a dense tensor is asked for what it stores")
    return value.layout is Layout.COALESCED or run.truth(le(_stored(run, x, value), 1))


def stored(run: Recorder, x: SymbolicTensor) -> Any:
    """Returns the number of stored elements of a sparse tensor."""
    value = known(run, x)
    if not is_sparse(value):
        run.give_up("a dense tensor is asked for what it stores")
    return size(run, _stored(run, x, value))


def _stored(run: Recorder, x: SymbolicTensor, value: Tensor) -> Dim:
    run.generator.contents.about(((value, x.ref.id),))
    return run.generator.stored(value)


def without_elements(run: Recorder, x: SymbolicTensor, **options: Any) -> Any:
    """Ends the path where another library gets the memory of a tensor."""
    run.give_up("NumPy, or another library, needs the elements of a tensor")


def ask_data(run: Recorder) -> None:
    """Notes that the program asks for numbers of a tensor, which `vmap` refuses of a row."""
    if run.mapping:
        run.doubt("vmap may refuse to tell the data of a row")


def item(run: Recorder, x: SymbolicTensor) -> Any:
    """Returns the only element of a tensor: a number from the data, unless sizes decide it."""
    value = known(run, x)
    ask_data(run)
    run.require(eq(elements(run, x), 1), "item() needs a tensor of one element")
    if value.dtype == "bool":
        return truth(run, x)
    if value.dtype is not None and value.dtype.startswith(("int", "uint")):
        run.generator.contents.about(((value, x.ref.id),))
        return size(run, run.generator.element(value))
    if (number := run.generator.float_of(x.ref.id)) is not None:
        return number
    about, ref = run.generator.outlook_of, x.ref.id
    return run.datum(value.dtype, dataless(run, x), lambda op, number: about(op, ref, number), ref)


def as_int(run: Recorder, x: SymbolicTensor) -> int:
    """Returns `int(x)` where Python insists on a number."""
    run.insists(frame_above(1))
    return int(item(run, x))


def index(run: Recorder, x: SymbolicTensor) -> int:
    """Returns the only element as an index."""
    return int(bound(run, x))


@hands_on
def bound(run: Recorder, x: SymbolicTensor) -> Any:
    """Returns the only element as the bound of a slice.

    Raises TypeError for other tensors, as torch does; C++ code that looks for integers expects it.
    """
    if x.dtype.is_floating_point or x.dtype.is_complex or numel(run, x) != 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return item(run, x)


def truth(run: Recorder, x: SymbolicTensor) -> bool:
    ask_data(run)
    run.require(eq(elements(run, x), 1), "the truth of a tensor needs one element")
    value = known(run, x)
    condition = whether_some(value)
    if condition is not None:
        return run.truth(condition)
    region = dataless(run, x)
    if value.elements is not UNTRACKED or region is False:
        return run.coin(run.generator.outlook(x.ref.id))
    for outcome, where in zip((True, False), run.generator.outcomes(x.ref.id), strict=True):
        if run.truth(where):
            return outcome
    outlook = run.generator.outlook(x.ref.id)._replace(unknown=False)
    return run.guess("a condition on elements that sizes decide is treated as one on data", region, outlook)


def dataless(run: Recorder, x: SymbolicTensor) -> Formula:
    """The sizes at which the elements depend on no data."""
    return run.generator.dataless(x.ref.id)


def contains(run: Recorder, x: SymbolicTensor, element: Any) -> bool:
    """`element in x`, which is `(x == element).any()`."""
    return truth(run, run.operator("any", (run.operator("eq", (x, element), {}),), {}))


def result_type(run: Recorder, *operands: Any) -> torch.dtype:
    """Returns the dtype that the operands are promoted to, which torch computes without their elements."""
    with subclass_overrides_off():
        return torch.result_type(*(0 if type(o) is Size else o for o in operands))


def _plain(name: str) -> Callable[..., Any]:
    """Returns a function that lets torch answer a question about the wrapper itself."""

    def ask(run: Recorder, x: Any, *args: Any) -> Any:
        with subclass_overrides_off():
            found = getattr(torch.Tensor, name)
            return found.__get__(x) if hasattr(found, "__get__") and not callable(found) else found(x, *args)

    return ask


def _same(run: Recorder, x: SymbolicTensor, *args: Any, **kwargs: Any) -> Any:
    return x


def can_require_grad(dtype: torch.dtype) -> bool:
    """Returns whether torch lets tensors of this dtype require gradients."""
    return dtype.is_floating_point or dtype.is_complex


def requires_grad(run: Recorder, x: SymbolicTensor, requires_grad: bool = True) -> SymbolicTensor:
    """Returns the tensor, which becomes a leaf that requires gradients, or one that does not; what a call has
    made of others that require gradients goes on to require them.
    """
    if requires_grad and not can_require_grad(x.dtype):
        run.require(False, "only floating point and complex tensors can require gradients")
    if requires_grad and x.memory.whole().is_of_inference and not torch.is_inference_mode_enabled():
        run.require(False, "a tensor of inference mode requires no gradients outside of it")
    if is_leaf(run, x):
        x.memory.itself().is_leaf = requires_grad
    elif not requires_grad:
        run.require(False, "only a leaf is made to require no gradients; detach() makes one")
    return x


def gradient_function(run: Recorder, x: SymbolicTensor) -> None:
    """Returns None, as of a tensor that requires no gradients, or is a leaf."""
    if not is_leaf(run, x):
        run.give_up("the function of a gradient is asked for")


def is_leaf(run: Recorder, x: SymbolicTensor) -> bool:
    return x.memory.itself().is_leaf or not run.requires_gradients(x)


def retain_gradient(run: Recorder, x: SymbolicTensor) -> None:
    """Returns None; requires that the tensor requires gradients."""
    run.require(run.requires_gradients(x), "a tensor that requires no gradients retains none")


def base_of(run: Recorder, x: SymbolicTensor) -> None:
    """Returns None, as of a tensor that is no view."""
    if x.memory.is_of_graph() is not False:
        run.give_up("the base of a view is asked for")


def _nothing(run: Recorder, x: SymbolicTensor, *args: Any, **kwargs: Any) -> None:
    return None


# Attributes (`x.shape`); those that are operators (`x.T`) are in OPERATOR_ATTRIBUTES.
ATTRIBUTES: dict[str, Callable[..., Any]] = {
    "shape": shape,
    "ndim": rank,
    "layout": layout_of,
    "is_sparse": lambda run, x: layout_of(run, x) is torch.sparse_coo,
    "is_sparse_csr": lambda run, x: layout_of(run, x) is torch.sparse_csr,
    "grad": _nothing,
    "requires_grad": lambda run, x: run.requires_gradients(x),
    "grad_fn": gradient_function,
    "is_leaf": is_leaf,
    "itemsize": lambda run, x: x.dtype.itemsize,
    "nbytes": lambda run, x: numel(run, x) * x.dtype.itemsize,
    "names": lambda run, x: (None,) * len(shape(run, x)),
    BASE: base_of,
    VERSION: lambda run, x: run.give_up("how often a tensor was written into is asked for"),
}
OPERATOR_ATTRIBUTES = {
    "T": "T",
    "mT": "mT",
    "H": "H",
    "mH": "mH",
    "data": "detach",
    "real": "real",
    "imag": "imag",
}

ABOUT_DATA = frozenset("item tolist __bool__ is_nonzero __int__ __index__ __float__".split())
"""Questions that only data can answer."""

# Methods and functions that ask and compute nothing.
QUESTIONS: dict[str, Callable[..., Any]] = {
    "size": one_size,
    "dim": rank,
    "ndimension": rank,
    "numel": numel,
    "nelement": numel,
    "stride": stride,
    "storage_offset": storage_offset,
    "is_contiguous": is_contiguous,
    "is_floating_point": lambda run, x: x.dtype.is_floating_point,
    "is_complex": lambda run, x: x.dtype.is_complex,
    "is_signed": lambda run, x: x.dtype.is_signed,
    "element_size": lambda run, x: x.dtype.itemsize,
    "get_device": lambda run, x: -1,
    "result_type": result_type,
    "is_same_size": lambda run, x, y: shape(run, x) == y.shape,
    "is_inference": lambda run, x: x.memory.whole().is_of_inference,
    "is_conj": lambda run, x: x.dtype.is_complex and has_turned_signs(run, x),
    "is_neg": lambda run, x: not x.dtype.is_complex and has_turned_signs(run, x),
    "has_names": lambda run, x: False,
    "is_pinned": lambda run, x, device=None: False,
    "is_shared": lambda run, x: False,
    "requires_grad_": requires_grad,
    "retain_grad": retain_gradient,
    "share_memory_": _same,
    "pin_memory": _same,
    "item": item,
    "__bool__": truth,
    "is_nonzero": truth,
    "is_coalesced": is_coalesced,
    "_nnz": stored,
    "__int__": as_int,
    "__index__": index,
    "__float__": lambda run, x: float(item(run, x)),
    "numpy": without_elements,
    "__hash__": lambda run, x: id(x),
    "__repr__": lambda run, x, **options: f"SymbolicTensor({x.value})",
    "__format__": lambda run, x, spec: f"SymbolicTensor({x.value})",
    "__deepcopy__": lambda run, x, memo: x.__deepcopy__(memo),
    "__len__": lambda run, x: int(shape(run, x)[0]),
    "__contains__": contains,
}

PLAIN_ATTRIBUTES = frozenset(
    """
    dtype device is_cuda is_cpu is_meta is_quantized is_nested
    is_mkldnn is_xpu is_mps is_ipu is_xla is_vulkan is_maia is_mtia output_nr
    _backward_hooks name retains_grad
    """.split()
)


def answer(name: str) -> Callable[..., Any] | None:
    """Returns the function that answers an attribute which is no operator; None for an operator."""
    return ATTRIBUTES.get(name) or (_plain(name) if name in PLAIN_ATTRIBUTES else None)


__all__ = ["ABOUT_DATA", "OPERATOR_ATTRIBUTES", "QUESTIONS", "Size", "Sizes", "SymbolicTensor", "answer"]
