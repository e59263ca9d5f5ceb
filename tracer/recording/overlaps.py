"""Writes that torch refuses because of shared memory: the call reads from another part of the memory that it
writes (`x[1:] += x[:-1]`), or several written elements have one memory location.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import repeat
from typing import Any, Final

import torch

from ...constraints.engine.facts import nowhere
from ...constraints.engine.generate import Generator
from ...constraints.engine.memory import COPYING, Region, clash, lies_there, meets, require_apart, unsettled
from ...constraints.engine.overlap import APART, ITERATED, SHAPED_FIRST, UNCHECKED, Overlap, refused
from ...constraints.engine.trying import Undecided
from ...constraints.ir.language import LOOSE, Layout, Slice, Tensor, Value, tensors
from ...constraints.ir.program import Node, Origin
from ...constraints.terms.dims import Dim
from ...constraints.terms.formula import Formula, all_of, any_of, eq, ne, negate
from ..recorder import Recorder
from ..values.symbolic import Memory, SymbolicTensor
from .fallback import leaves
from .memory import SHAPING, ViewMemory, is_plain, is_view

_OF_ITSELF: Final = {
    Overlap.NOTHING: False,
    Overlap.PART: False,
    Overlap.SOME: False,
    Overlap.ANY: True,
}
"""Whether a tensor that is both written and read is refused."""


def require_no_overlap(
    run: Recorder,
    op: str,
    written: Any,
    arguments: Mapping[str, Any],
    given: tuple[Any, ...],
    into: Value | None = None,
    place: int = 0,
) -> None:
    """Records torch's requirements on the memory that a call writes into.

    The call writes in place, where the requirements on the tensor itself are recorded already, or `into` an
    `out=`, which is the result at this place among several.
    """
    if isinstance(written, list | tuple):
        parts = into if isinstance(into, tuple) else repeat(into)
        for at, (one, result) in enumerate(zip(written, parts, strict=False)):
            require_no_overlap(run, op, one, arguments, given, result, at)
        return
    generator = run.generator
    if not isinstance(written, SymbolicTensor) or not isinstance(written.value, Tensor):
        return
    out = into is not None
    if out:
        _require_apart(generator, op, written.value, into)
    memory = written.memory
    if written.value.layout is Layout.UNKNOWN and memory.may_overlap:
        generator.approximate(
            f"{op} writes into a view that may have several elements at one place", "accept"
        )
    owner = written.memory.whole()
    read = [leaf for leaf in leaves(given) if isinstance(leaf, torch.Tensor)]
    del read[next(place for place, tensor in enumerate(read) if tensor is written)]
    for tensor in read:
        lies, value = _lying(run, tensor)
        if lies is None or lies.whole() is not owner or not isinstance(value, Tensor):
            continue
        if op == "setitem":
            overlapping = _assigned(generator, written, lies, value, arguments)
        else:
            names = _parameters(arguments, value, tensor is written or out)
            if not names:
                continue
            checked = _strictest([refused(op, name, out, place) for name in names])
            region, other = _regions(written.memory, written.value, lies, value)
            if _itself(lies) is _itself(written.memory):
                overlapping = _OF_ITSELF.get(checked)
                if op == "stack" or (op == "cat" and value.rank == 1):  # those without elements are skipped
                    overlapping = meets(other, other)
            elif isinstance(into, Tensor) and op not in ITERATED:
                overlapping = _resized(generator, checked, region, other, into)
            else:
                overlapping = _overlapping(generator, checked, region, other)
                if overlapping is None:
                    overlapping = _in_cases(generator, checked, region, other)
        if overlapping is None:
            generator.approximate(
                f"{op} reads memory that it writes into, which torch may refuse", "accept"
            )
        else:
            reason = f"{op} writes into memory and reads another part of it, {value}"
            generator.require(negate(overlapping), reason)
        if tensor is written and isinstance(into, Tensor):
            reason = f"{op} reads its `out=` {written.value}, which must have the shape of {into}"
            fits = _of_one_shape(into, written.value)
            if op in SHAPED_FIRST:
                generator.require(fits, reason)
            elif not run.truth(any_of((fits, overlapping is not None and overlapping))):
                run.give_up(f"{op} reads its `out=` {written.value} after it has resized it")


def _lying(run: Recorder, tensor: torch.Tensor) -> tuple[Memory | None, Value]:
    """Returns the memory of a tensor, and the tensor's value."""
    value = tensor.value if isinstance(tensor, SymbolicTensor) else run.real_tensor(tensor)[1]
    return run.memory_of(tensor), value


def lying(
    run: Recorder, op: str, given: tuple[Any, ...], values: tuple[Value, ...]
) -> Callable[[Tensor], Formula | None]:
    """Returns the condition under which what a call copies lies there already, as a function of the tensor
    that it is copied into, `given[0]` or a part of it.
    """
    if op not in COPYING or len(given) < 2:
        return nowhere
    written, value = given[0], given[-1] if op == "setitem" else given[1]
    if not isinstance(written, SymbolicTensor) or not isinstance(value, torch.Tensor):
        return nowhere
    lies, read = _lying(run, value)
    if lies is None or lies.whole() is not written.memory.whole():
        return nowhere

    def place(target: Tensor) -> Formula | None:
        memory: Memory = written.memory
        if not isinstance(written.value, Tensor) or not isinstance(read, Tensor):
            return None
        if op == "setitem":
            node = Node("getitem", (("index", values[1]),), (), Origin())
            memory = ViewMemory(memory, written.value, node, 0, (target,), run.generator.at_least)
        return lies_there(*_regions(memory, target, lies, read), op == "setitem")

    return place


def _regions(written: Memory, target: Tensor, read: Memory, value: Tensor) -> tuple[Region, Region]:
    """Returns the places of two tensors in the smallest memory that both are known to be parts of."""
    offsets = {id(memory): start for memory, start in written.offsets()}
    shared, start = next((id(m), start) for m, start in read.offsets() if id(m) in offsets)
    return _region(written, target, offsets[shared]), _region(read, value, start)


def _region(memory: Memory, tensor: Tensor, start: Dim | None) -> Region:
    if isinstance(memory, ViewMemory):
        return Region(tensor, start, memory.expanded_to, memory.kept, memory.is_restrided)
    return Region(tensor, start)


def _itself(memory: Memory) -> Memory:
    """Returns the memory that a tensor had before an operator returned it unchanged (`x.contiguous()`)."""
    while isinstance(memory, ViewMemory) and memory.node.op not in SHAPING and memory.given_back:
        memory = memory.source
    return memory


def _overlapping(
    generator: Generator,
    checked: Overlap,
    written: Region,
    read: Region,
    *,
    seated: bool = False,
    given: Formula = True,
) -> Formula | None:
    """Returns the condition that the two overlap in the form that an operator refuses; None where it is not
    known. Sizes at which it depends on more are recorded as an approximation, if they are among the `given`.
    """
    match checked:
        case Overlap.NOTHING:
            return False
        case Overlap.ANY:
            return meets(written, read)
        case Overlap.PART | Overlap.SOME:
            found = clash(written, read, seated)
            if found is None:
                return None
            cases = (all_of((given, case)) for case in unsettled(written, read, seated))
            unknown = any_of(case for case in cases if _may_hold(generator, case))
            if checked is Overlap.SOME:
                return False if found is False and unknown is False else None
            reason = "whether two views are the same depends on their strides along dims of size 1"
            generator.approximate(reason, "accept", unknown)
            return all_of((found, negate(unknown)))
    return None


def _may_hold(generator: Generator, formula: Formula) -> bool:
    known = generator.bounds.copy()
    known.learn(formula)
    return not known.contradict()


def _in_cases(generator: Generator, checked: Overlap, written: Region, read: Region) -> Formula | None:
    """As `_overlapping`, in each case of sizes that decides the layouts of the tensors."""
    loose = next((r.tensor for r in (read, written) if r.tensor.layout in LOOSE), None)
    cases = None if loose is None else generator.layouts(loose)
    found: list[Formula] = []
    for case, _ in cases or ():
        try:
            one, other = written.here(case.here), read.here(case.here)
        except Undecided:
            return None
        overlapping = _overlapping(generator, checked, one, other, given=case.condition)
        if overlapping is None:
            return None
        found.append(all_of((case.condition, overlapping)))
    return None if cases is None else any_of(found)


def _of_one_shape(a: Tensor, b: Tensor) -> Formula:
    return a.rank == b.rank and all_of(map(eq, a.shape, b.shape))


def _resized(
    generator: Generator, checked: Overlap, written: Region, read: Region, result: Tensor
) -> Formula | None:
    """As `_overlapping`, for an `out=` that torch resizes, to be contiguous or to lie as a new result does,
    before it checks for overlaps.
    """
    fits = _of_one_shape(result, written.tensor)
    before = _overlapping(generator, checked, written, read, given=fits)
    ways = dict.fromkeys((Layout.CONTIGUOUS, result.layout))
    resized = (Region(Tensor(result.shape, result.dtype, layout), written.start) for layout in ways)
    after, *others = (_overlapping(generator, checked, to, read, given=negate(fits)) for to in resized)
    if fits is True or before is None or after is None or any(other != after for other in others):
        return before if fits is True else None
    return any_of((all_of((fits, before)), all_of((negate(fits), after))))


def _assigned(
    generator: Generator,
    written: SymbolicTensor,
    lies: Memory,
    read: Tensor,
    arguments: Mapping[str, Any],
) -> Formula | None:
    """Returns the condition that `written[index] = value` is refused because of a tensor that it reads, the
    value or a tensor of the index.
    """
    found = _part(generator, written, arguments["index"])
    if found is None:
        return None
    part, place = _regions(*found, lies, read)
    is_value = arguments["value"] is read
    if is_value and _is_that_part(lies, written.memory, arguments["index"]):
        return False
    if is_view("getitem", arguments):
        return _overlapping(generator, Overlap.PART, part, place, seated=True)
    overlapping = _overlapping(generator, _of_index(arguments["index"], is_value), part, place)
    same = _itself(lies) is _itself(written.memory)
    if overlapping is None or not same or part.tensor.shape != place.tensor.shape:
        return overlapping
    # It is the same tensor, also without elements, unless leading dims of 1 are dropped.
    return any_of((overlapping, *(ne(n, 1) for n in part.tensor.shape[:1])))


def _is_that_part(memory: Memory, whole: Memory, index: Value) -> bool:
    """Returns whether a tensor is `whole[index]` itself, as it is where Python executes `x[index] += y`."""
    if not isinstance(memory, ViewMemory) or memory.node.op != "getitem":
        return False
    return memory.source is whole and memory.node.get("index") == index


def _require_apart(generator: Generator, op: str, out: Tensor, result: Value) -> None:
    """Requires that no two elements of an `out=` have one memory location.

    Not known for operators outside of the table, and where torch may resize it first.
    """
    fits = isinstance(result, Tensor) and _of_one_shape(result, out) is True
    if op in UNCHECKED:
        return
    if op in ITERATED or (op in APART and fits):
        require_apart(generator, op, out, {})
    elif isinstance(out.layout, tuple) and 0 in out.layout:
        generator.approximate(
            f"whether {op} writes several elements to one place in memory is not known", "accept"
        )


def _parameters(arguments: Mapping[str, Any], value: Tensor, first: bool) -> list[str]:
    """Returns the parameters that a tensor is the argument of, or is among; `first`: it may be the first one.
    There are none for a tensor without dims that the rule has read as a number.
    """
    named = [*arguments.items()]
    if not first and isinstance(named[0][1], Tensor):
        del named[0]
    found = [name for name, argument in named if any(part is value for part in tensors(argument))]
    return found or [""] * bool(value.shape)


def _strictest(checked: list[Overlap]) -> Overlap:
    order = (Overlap.UNKNOWN, Overlap.ANY, Overlap.PART, Overlap.SOME, Overlap.NOTHING)
    return next(one for one in order if one in checked)


def _of_index(index: Value, is_value: bool) -> Overlap:
    """Returns the overlaps that `x[index] = y` refuses for y, and for the tensors of the index; masks differ.
    """
    masks = any(t.dtype in ("bool", "uint8", None) for t in tensors(index))
    return Overlap.UNKNOWN if masks or not (is_value or isinstance(index, tuple | Tensor)) else Overlap.ANY


def _part(generator: Generator, tensor: SymbolicTensor, index: Value) -> tuple[Memory, Tensor] | None:
    """Returns the part of a tensor that `tensor[index] = …` writes into; None where that is not known.

    Index tensors may pick any elements along their dims.
    """
    items = index if isinstance(index, tuple) else (index,)
    bare = tuple(item if is_plain(item) else Slice() for item in items)
    whole = generator.simplified(tensor.value)  # as the part is
    _, part = generator.call("getitem", (whole, bare), {})
    node = Node("getitem", (("index", bare),), (), Origin())
    if not isinstance(whole, Tensor) or not isinstance(part, Tensor):
        return None
    return ViewMemory(tensor.memory, whole, node, 0, (part,), generator.at_least), part
