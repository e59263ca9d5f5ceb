"""Loops of Python's over a size, as the `scan` of an exported graph.

A graph has no loop of Python's: torch writes down as many steps as the example has, and the number of steps
is a number then. Here the body of such a loop is traced once, as the function of a `scan`:

* what the body changes from one iteration to the next is carried, tensor by tensor;
* the sequence that the loop iterates over, and tensors that the body indexes by the number of the iteration,
  as in `x[:, i]`, are cut into slices, and each iteration gets one;
* what the body appends to a list, what it writes into a slice of a tensor that it does not read, and those of
  its values that are read after the loop, are stacked;
* all other tensors that it uses are the same in each iteration.

To find this out the body runs once by itself, on the elements of the first iteration, and its effects are
undone. A body that does something else (writes into a module or the whole of a tensor, counts, asks for the
number of the iteration) is run by Python, step by step, as torch traces it.

`scan` has at least one step, and each iteration makes the shapes that the first has been given.
"""

from __future__ import annotations

import builtins
import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import EllipsisType
from typing import Any, Final, TypeAlias

import torch
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
from torch.overrides import TorchFunctionMode

from ....tracer.host.modules import find_flat_weights
from ....tracer.host.operators import scan
from ....tracer.host.tensors import memory_id, writes_into
from ....tracer.host.trees import pytree
from ....tracer.recording.held import Held
from .loop_bodies import loops_run_by
from .loop_rows import (
    BUILTINS,
    UNBOUND,
    Gathering,
    IterationIndex,
    NotScanned,
    Rows,
    Run,
    rows_of,
    same_index,
    same_size,
)

Body: TypeAlias = Callable[..., Sequence[Any]]
"""Takes an element and the values of the names, and returns the values of the names."""


class Scans:
    """Runs the loops of a model as scans, as far as that is possible."""

    builtins: Final[Mapping[str, Callable[..., Any]]]
    """Replacements of Python's own names while this is in force."""

    def __init__(self, model: Any, modes: Callable[[], contextlib.AbstractContextManager[Any]]) -> None:
        """`modes`: what is in force while the model is traced, and has to be in the body of a loop."""
        self.model = model
        self.modes = modes
        self.builtins = BUILTINS
        self.found = 0
        """The number of loops that became scans."""
        self.inner: dict[int, torch.Tensor] = {}
        """Tensors that were made in the bodies of loops, by identity: they do not exist outside of them."""

    @contextlib.contextmanager
    def in_force(self) -> Iterator[None]:
        with loops_run_by(self.loop, self.gather, self.model), Gathering(self.inner):
            yield

    def gather(self, of: Callable[[Any], Any], iterable: Any) -> list[Any]:
        """A list comprehension, whose elements are `of` those that it goes over."""
        if rows_of(iterable) is None:
            return [of(element) for element in iterable]
        found: list[Any] = []

        def body(element: Any, gathered: list[Any]) -> tuple[list[Any]]:
            gathered.append(of(element))
            return (gathered,)

        self.loop(body, iterable, ("gathered",), (), lambda: found)
        return found

    def _state(self) -> Held:
        """Returns the model as it is, recurrent modules knowing their weights, which they look up while they
        run.
        """
        for module in self.model.modules() if isinstance(self.model, torch.nn.Module) else ():
            if isinstance(module, torch.nn.RNNBase):
                find_flat_weights(module)
        return Held(self.model)

    @contextlib.contextmanager
    def _in_body(self) -> Iterator[None]:
        with Gathering(self.inner), self.modes():
            yield

    def loop(
        self, body: Body, iterable: Any, names: Sequence[str], read: Sequence[str], *values: Callable[[], Any]
    ) -> Sequence[Any]:
        """Runs a loop whose body uses these names, where some names are read elsewhere; returns the values of
        the names after the loop.
        """
        before = [*map(_value, values)]
        rows = rows_of(iterable)
        if rows is not None:
            state = self._state()
            try:
                with disable_proxy_modes_tracing():
                    plan = _Plan.of(body, rows, names, read, before)
            except Exception:  # noqa: BLE001 (the body may raise anything where it asks for a number)
                plan = None
            if not state.restore() and plan is not None:
                self.found += 1
                after = plan.scanned(self._in_body)
                self.inner.update(plan.inner)
                return after
        for element in iterable:
            before = [*body(element, *before)]
        return before


def _value(get: Callable[[], Any]) -> Any:
    try:
        return get()
    except NameError:
        return UNBOUND


# ---- the body


_KINDS: Final = frozenset({torch.Tensor.dtype.__get__, torch.Tensor.device.__get__})  # type: ignore[attr-defined]
"""Questions about a tensor that do not use it: what is written into changes neither."""


@dataclass(eq=False)
class _BodyRun(TorchFunctionMode):
    """The tensors that a run of a body uses, with those from outside in place of those that the scan gives
    it.
    """

    stands: list[tuple[torch.Tensor, torch.Tensor]]
    """Tensors that names had before the loop, each with its stand-in in the body."""
    outside: list[torch.Tensor]
    """Other tensors from outside that the body has used, in order, and used beyond taking slices."""
    given: dict[int, torch.Tensor]
    """The body's tensors for those from outside, by the identity of the latter."""
    slices: list[tuple[torch.Tensor, int, IterationIndex]]
    """Tensors from outside whose slices the body has taken."""
    cut: list[torch.Tensor]
    """The slices of this iteration, as far as they are known."""
    known: dict[int, torch.Tensor] = field(default_factory=dict)
    """The tensors that exist in the body, by identity."""
    used: set[int] = field(default_factory=set)
    """The identities of those that the body has used."""
    versions: list[tuple[torch.Tensor, int]] = field(default_factory=list)
    """Tensors from outside, and how often they had been written into before."""
    fills: list[tuple[torch.Tensor, int, IterationIndex, torch.Tensor]] = field(default_factory=list)
    """Tensors from outside into which it writes a slice, with the slice and its new content."""
    first: bool = True
    """True in the run that finds out which tensors the body uses."""

    def __post_init__(self) -> None:
        super().__init__()
        self._know([*(inner for _, inner in self.stands), *self.given.values(), *self.cut])
        self.versions += [(outer, writes_into(outer)) for outer, _ in self.stands]

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = kwargs or {}
        if func in _KINDS:
            return func(*args)
        if func is torch.Tensor.__getitem__ and (taken := self._taken(*args)) is not None:
            return taken
        if func is torch.Tensor.__setitem__ and self._fills(*args):
            return None
        if any(isinstance(leaf, IterationIndex) for leaf in pytree.tree_leaves((args, given))):
            raise NotScanned(f"{func} of the number of an iteration")
        args, given = pytree.tree_map_only(torch.Tensor, self._inner, (args, given))
        result = func(*args, **given)
        self._know(result)
        return result

    def element(self, rows: Rows) -> Any:
        """The element of this iteration."""
        found = rows.element(self)
        self._know(found)
        return found

    def _know(self, made: Any) -> None:
        leaves = pytree.tree_leaves(made)
        self.known.update({id(leaf): leaf for leaf in leaves if isinstance(leaf, torch.Tensor)})

    def _inner(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns the tensor of the body that replaces a tensor from outside."""
        if id(tensor) not in self.known:
            if id(tensor) not in self.given:
                if not self.first:
                    raise NotScanned("each run uses something else")
                self.outside.append(tensor)
                self.given[id(tensor)] = tensor
                self.versions.append((tensor, writes_into(tensor)))
            tensor = self.given[id(tensor)]
        self.used.add(id(tensor))
        return tensor

    def slice(self, tensor: torch.Tensor, axis: int, index: IterationIndex) -> torch.Tensor:
        """The slice of a tensor from outside that is meant in this iteration."""
        outer = self._outer(tensor)
        for place, (other, at, number) in enumerate(self.slices):
            if other is outer and at == axis and same_index(number, index):
                return self.cut[place]
        if not self.first:
            raise NotScanned("each run takes other slices")
        self.versions.append((outer, writes_into(outer)))
        row = index.cut(outer, axis)[0]
        self.slices.append((outer, axis, index))
        self.cut.append(row)
        self._know(row)
        return row

    def _outer(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns the tensor from outside that this one is, or replaces."""
        for outer, inner in (*self.stands, *((outer, self.given[id(outer)]) for outer in self.outside)):
            if inner is tensor:
                return outer
        if id(tensor) in self.known:
            raise NotScanned("a slice of what is made in the body")
        return tensor

    def _taken(self, tensor: torch.Tensor, key: Any) -> torch.Tensor | None:
        """`x[:, i]`; None where no number of an iteration stands in the brackets."""
        if (said := _Key.of(tensor, key)) is None:
            return None
        row = self.slice(tensor, said.axis, said.index)
        found: torch.Tensor = row[said.rest] if said.rest else row
        self._know(found)
        return found

    def _fills(self, tensor: torch.Tensor, key: Any, value: Any) -> bool:
        """`x[:, i] = value`; False where no number of an iteration stands in the brackets."""
        if (said := _Key.of(tensor, key)) is None:
            return False
        if said.index.width or said.rest or not isinstance(value, torch.Tensor):
            raise NotScanned("more than a slice")
        outer = self._outer(tensor)
        shape = [*outer.shape[: said.axis], *outer.shape[said.axis + 1 :]]
        row = self._inner(value).to(outer.dtype).expand(shape)
        self._know(row)
        self.fills.append((outer, said.axis, said.index, row))
        return True


@dataclass(frozen=True)
class _Key:
    """The key in the brackets of `x[:, i]`, which contains the number of an iteration once."""

    axis: int
    index: IterationIndex
    """It has a width in `x[:, i:i + 1]`, which keeps the axis."""
    rest: tuple[Any, ...]
    """The rest of the key, applied to the slice; empty for all of it."""

    @classmethod
    def of(cls, tensor: torch.Tensor, key: Any) -> _Key | None:
        """Returns the key if it contains the number of an iteration, else None. Raises NotScanned where the
        key is more than a slice.
        """
        items = [*key] if isinstance(key, tuple) else [key]
        places = [place for place, item in enumerate(items) if _index(item) is not None]
        if not places:
            return None
        plain = (int, slice, type(None), EllipsisType, IterationIndex, torch.SymInt)
        if len(places) > 1 or not all(isinstance(i, plain) and not isinstance(i, bool) for i in items):
            raise NotScanned("more than a slice")
        (place,) = places
        before, after = items[:place], items[place + 1 :]
        axis = sum(item is not None for item in before)
        if any(item is Ellipsis for item in before):
            axis = tensor.dim() - 1 - sum(item is not None for item in after)
        index = _index(items[place])
        assert index is not None
        rest = (*before, *([slice(None)] if index.width else []), *after)
        whole = all(isinstance(i, slice) and i.start is i.stop is i.step is None for i in rest)
        return cls(axis, index, () if whole else rest)


def _index(item: Any) -> IterationIndex | None:
    """The number of the iteration in `x[i]` and `x[i:i + 4]`."""
    if isinstance(item, slice):
        start, stop = item.start, item.stop
        if not isinstance(start, IterationIndex) and not isinstance(stop, IterationIndex):
            return None
        if (
            not isinstance(start, IterationIndex)
            or not isinstance(stop, IterationIndex)
            or item.step is not None
        ):
            raise NotScanned("a part that grows")
        return start.up_to(stop)
    return item if isinstance(item, IterationIndex) else None


@dataclass
class _Plan:
    """A loop as a scan: what is carried, what is cut, what is gathered, and what stays the same."""

    body: Body
    rows: Rows
    before: list[Any]
    """The values of the names before the loop."""
    leaves: list[Any]
    """The leaves of these values, without their containers."""
    tree: Any
    """The structure by which the values are made from their leaves."""
    carried: list[int]
    """The leaves that an iteration changes."""
    appended: list[int]
    """The names of lists to which an iteration appends."""
    made: list[int]
    """The names that get a tensor in the body, which is read after it."""
    fills: list[tuple[torch.Tensor, int, IterationIndex]]
    """The tensors into which an iteration writes a slice."""
    outside: list[torch.Tensor]
    """Other tensors that the body uses, the same in each iteration."""
    slices: list[tuple[torch.Tensor, int, IterationIndex]]
    """The tensors whose slices the body takes."""
    inner: dict[int, torch.Tensor]
    """The tensors that the runs of the body have made."""

    @classmethod
    def of(
        cls, body: Body, rows: Rows, names: Sequence[str], read: Sequence[str], before: Sequence[Any]
    ) -> _Plan:
        """Returns the plan of a scan, from the body's first iteration. Raises NotScanned where a scan cannot
        do the same.
        """
        leaves, tree = pytree.tree_flatten([*before])
        stand_ins = [leaf.detach() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        stands = [both for both in zip(leaves, stand_ins, strict=True) if isinstance(both[0], torch.Tensor)]
        run = _BodyRun(stands, [], {}, [], [])
        values = pytree.tree_unflatten(stand_ins, tree)
        element = run.element(rows)
        with run:
            after = [*body(element, *values)]
        appended, made_in, same = [], [], [*after]
        for place, (old, new) in enumerate(zip(pytree.tree_unflatten(stand_ins, tree), after, strict=True)):
            if old is UNBOUND:
                made_in += [place] if isinstance(new, torch.Tensor) and names[place] in read else []
                same[place] = UNBOUND
            elif _grows(old, new):
                appended.append(place)
                same[place] = new[:-1]
        now, shape = pytree.tree_flatten(same)
        if shape != tree:
            raise NotScanned("what is kept from one iteration to the next changes its form")
        carried = [i for i, (a, b) in enumerate(zip(stand_ins, now, strict=True)) if not _unchanged(a, b)]
        fixed = [
            leaf
            for i, (leaf, inner) in enumerate(zip(leaves, stand_ins, strict=True))
            if isinstance(leaf, torch.Tensor) and i not in carried and id(inner) in run.used
        ]
        outside = [*{id(tensor): tensor for tensor in (*fixed, *run.outside)}.values()]
        _look_at(run, [(leaves[i], stand_ins[i], now[i]) for i in carried])
        inner = {key: made for key, made in run.known.items() if key not in map(id, outside)}
        fills = [(tensor, axis, index) for tensor, axis, index, _ in run.fills]
        return cls(
            body, rows, [*before], leaves, tree, carried, appended, made_in, fills, outside, run.slices, inner
        )

    def scanned(self, modes: Callable[[], contextlib.AbstractContextManager[Any]]) -> Sequence[Any]:
        """Traces the scan; returns the values of the names after it."""
        operands = _distinct([*self.outside, *(self.leaves[place] for place in self.carried)])
        same, init = operands[: len(self.outside)], operands[len(self.outside) :]
        xs = [index.cut(tensor, axis) for tensor, axis, index in self.slices]
        xs = xs or [torch.arange(self.rows.count)]
        results = [*scan(lambda *flat: self._step(flat, len(xs), modes), init, xs, (*same,))]
        leaves = [*self.leaves]
        for place in self.carried:
            leaves[place] = results.pop(0)
        values: list[Any] = pytree.tree_unflatten(leaves, self.tree)
        for place in self.appended:
            values[place].append(Run(results.pop(0)))
        for place in self.made:
            values[place] = results.pop(0)[-1]
        for tensor, axis, index in self.fills:
            index.fill(tensor, axis, results.pop(0))
        return [*map(_refilled, self.before, values)]

    def _step(
        self, flat: Sequence[torch.Tensor], cut: int,
        modes: Callable[[], contextlib.AbstractContextManager[Any]],
    ) -> list[torch.Tensor]:
        """One iteration, of what it carries, of the slices, and of what is the same in each."""
        carried, rest = [*flat[: len(self.carried)]], flat[len(self.carried) :]
        slices, fixed = [*rest[:cut]], rest[cut:]
        given = {id(outer): inner for outer, inner in zip(self.outside, fixed, strict=True)}
        leaves = [given.get(id(leaf), leaf) for leaf in self.leaves]
        for place, inner in zip(self.carried, carried, strict=True):
            leaves[place] = inner
        run = _BodyRun([], [*self.outside], given, self.slices, slices, first=False)
        run._know(carried)
        values = pytree.tree_unflatten(leaves, self.tree)
        element = run.element(self.rows)
        with modes(), run:
            after = [*self.body(element, *values)]
            gathered = [after[place].pop() for place in self.appended]
            gathered += [after[place] for place in self.made] + [row for *_, row in run.fills]
            for place in self.made:
                after[place] = UNBOUND
            now = pytree.tree_leaves(after)
            outputs = [now[place] for place in self.carried] + gathered
            self.inner.update({key: made for key, made in run.known.items() if key not in map(id, flat)})
            return _apart(outputs, flat)


def _distinct(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Returns the tensors, each once, since a trace of the body recognises its operands by identity."""
    seen: set[int] = set()
    found = []
    for tensor in tensors:
        found.append(tensor.clone() if id(tensor) in seen else tensor)
        seen.add(id(tensor))
    return found


def _apart(outputs: Sequence[torch.Tensor], inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Returns the outputs, with a copy of each that shares memory with another output or with an input."""
    seen = {memory_id(tensor) for tensor in inputs}
    found = []
    for tensor in outputs:
        storage = memory_id(tensor)
        found.append(tensor.clone() if storage in seen else tensor)
        seen.add(storage)
    return found


def _look_at(run: _BodyRun, carried: Sequence[tuple[Any, Any, Any]]) -> None:
    """Raises NotScanned if the body writes into its operands, or carries something that a scan cannot carry.
    Each item of `carried` has the value before the loop, its stand-in, and the value after an iteration.
    """
    if any(writes_into(tensor) != version for tensor, version in run.versions):
        raise NotScanned("it writes into a tensor")
    filled = [memory_id(tensor) for tensor, *_ in run.fills]
    used = [outer for outer, inner in run.stands if id(inner) in run.used]
    used += [*run.outside, *(tensor for tensor, *_ in run.slices)]
    read = {memory_id(tensor) for tensor in used}
    if not read.isdisjoint(filled) or len({*filled}) < len(filled):
        raise NotScanned("it reads what it writes")
    for before, old, new in carried:
        if not isinstance(old, torch.Tensor) or not isinstance(new, torch.Tensor):
            raise NotScanned("something is counted")
        if old.dtype != new.dtype or old.shape != new.shape:  # torch guards that sizes do not differ
            raise NotScanned("what is carried changes its shape")
        if any(before is tensor for tensor, *_ in run.slices):
            raise NotScanned("slices of what is carried")


def _grows(old: Any, new: Any) -> bool:
    """Returns whether the new list is the old one with one tensor appended."""
    return (
        type(old) is builtins.list
        and type(new) is builtins.list
        and len(new) == len(old) + 1
        and all(a is b for a, b in zip(old, new, strict=False))
        and isinstance(new[-1], torch.Tensor)
    )


def _unchanged(old: Any, new: Any) -> bool:
    if old is new:
        return True
    if isinstance(old, torch.Tensor) or isinstance(new, torch.Tensor):
        return False
    if isinstance(old, torch.SymInt) or isinstance(new, torch.SymInt):
        return same_size(old, new)
    return type(old) is type(new) and isinstance(old, int | float | str) and old == new


def _refilled(before: Any, after: Any) -> Any:
    """The value after the loop; where it is a list or dict, the one that was there before."""
    if type(before) is builtins.list:
        before[:] = after
        return before
    if type(before) is builtins.dict:
        before.update(after)
        return before
    return after
