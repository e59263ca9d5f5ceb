"""How results lie in memory, held to torch: operands laid out anew, at sizes of 0 and 1, too.

A sample is recorded with the sizes that it has, and with a symbol for each. What is then said of the strides
of a result, and whose memory it lies in, has to be so. What is not said, claims nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, product, takewhile, zip_longest
from typing import Any, TypeAlias

import torch
from torch.utils import _pytree as pytree

from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Layout, Tensor
from anyshape.constraints.ir.system import System
from anyshape.constraints.rules import default_rules
from anyshape.tracer.values.symbolic import SymbolicTensor

from .judge import (
    NOT_SAID,
    RECORD_S,
    Deadline,
    Judgement,
    Points,
    Ran,
    Refused,
    Remark,
    Said,
    Strides,
    compare,
    deadline,
    describe,
    one_or_none,
    record_sample,
    results_of,
    rule_of,
    run_eagerly,
    said_at,
    shown,
    sizes_at,
    suits,
)
from .samples import CORE, PRIMS, Entry, Sample

SAMPLES, FEW = 2, Points(10)
"""Samples of an entry, and the points of each, where no more are asked for."""

Lay: TypeAlias = "Callable[[int], Strides | None]"
"""How a tensor of a rank is laid out; None where that is no layout of its own."""


def _in_order(order: Callable[[Sequence[int]], Sequence[int]], rank: int = 2) -> Lay:
    """Without gaps, the axes from the outermost to the innermost."""
    return lambda n: Strides(tuple(order(range(n)))) if n >= rank else None


def _cut(axis: int, step: int, rest: int, order: Callable[[Sequence[int]], Sequence[int]] = tuple) -> Lay:
    return lambda n: Strides(tuple(order(range(n))), 1, (axis % n, step, rest)) if n >= -axis else None


def _channels_last(axes: Sequence[int]) -> Sequence[int]:
    return (axes[0], *axes[2:], axes[1])


LAYOUTS: Mapping[str, Lay] = {
    "contiguous": _in_order(tuple, 0),
    "reversed": _in_order(lambda axes: axes[::-1]),
    "last two swapped": _in_order(lambda axes: (*axes[:-2], axes[-1], axes[-2]), 3),
    "first two swapped": _in_order(lambda axes: (axes[1], axes[0], *axes[2:]), 3),
    "channels innermost": _in_order(_channels_last, 4),
    "moved on": _in_order(lambda axes: (axes[-1], *axes[:-1]), 3),
    "expanded": lambda n: Strides(tuple(range(1, n))) if n else None,
    "expanded along the last axis": _in_order(lambda axes: axes[:-1]),
    "every second element": _cut(-1, 2, 0),
    "every second row": _cut(-2, 2, 0),
    "without the first column": _cut(-1, 1, 1),
    "one less of the channels": lambda n: _cut(1 - n, 1, 1, _channels_last)(n) if n >= 4 else None,
}

WHICH: Mapping[str, Callable[[int, int], int | None]] = {
    "all": lambda layout, operand: layout,
    "by turns from": lambda layout, operand: layout + operand,
    "first": lambda layout, operand: None if operand else layout,
    "all but the first": lambda layout, operand: layout if operand else None,
}
"""The number of the layout of each operand; None where it remains contiguous."""


def anew(sample: Sample) -> Iterator[Sample]:
    """The sample with its operands laid out in each way, as far as these differ."""
    seen: set[tuple[Strides | None, ...]] = set()
    for (number, name), (which, of_operand) in product(enumerate(LAYOUTS), WHICH.items()):
        lies = tuple(_lie(arg, of_operand(number, i)) for i, arg in enumerate(sample.varied))
        if lies not in seen:
            seen.add(lies)
            yield replace(sample, form="layout", lies=lies, told=f"{which} {name}")


def _lie(arg: Any, number: int | None) -> Strides | None:
    if not isinstance(arg, torch.Tensor):
        return None
    lay = None if number is None else [*LAYOUTS.values()][number % len(LAYOUTS)]
    return (lay and lay(arg.dim())) or Strides(tuple(range(arg.dim())))


def chosen(entry: Entry, count: int | None = None) -> list[Sample]:
    """As many samples as asked for, of as many ranks of operands as there are, the greatest first; all those
    of operators that are listed by themselves.
    """
    if entry.name in (CORE, PRIMS):
        return [s for s in entry.samples() if s.tensors and not suits(s)]
    alike: dict[tuple[int, ...], list[Sample]] = defaultdict(list)
    for sample in takewhile(lambda s: s.form in ("function", "module"), entry.samples()):
        if sample.tensors and not suits(sample):
            alike[tuple(tensor.dim() for tensor in sample.tensors)].append(sample)
    rows = [alike[ranks] for ranks in sorted(alike, key=max, reverse=True) if max(ranks)]
    in_turn = (sample for turn in zip_longest(*rows) for sample in turn if sample is not None)
    return list(islice(in_turn, SAMPLES if count is None else count))


# ---- memory that is shared

APART, PERHAPS = -1, -2
"""In place of an operand: the result has a memory of its own; whose memory it has is not known."""


def placing(sample: Sample) -> Sample:
    """The sample with two numbers in place of each result: of the operand in whose memory it lies, and where
    it begins there.
    """

    def call(*args: Any, **kwargs: Any) -> list[int]:
        given, made = pytree.tree_leaves((args, kwargs)), pytree.tree_leaves(sample.call(*args, **kwargs))
        operands = [t for t in given if isinstance(t, torch.Tensor)]
        return [n for t in made if isinstance(t, torch.Tensor) for n in place_of(t, operands)]

    return replace(sample, call=call)


def place_of(result: torch.Tensor, operands: Sequence[torch.Tensor]) -> tuple[int, int]:
    if isinstance(result, SymbolicTensor):
        memory, start = result.memory.begin()
        owner = next((i for i, t in enumerate(operands) if _whole(t) is result.memory.whole()), APART)
        if owner != APART and (memory is not result.memory.whole() or type(start) is not int):
            return PERHAPS, 0
        return owner, start if owner != APART and type(start) is int else 0
    if result.layout is not torch.strided or not result.numel():
        return PERHAPS, 0
    own = result.untyped_storage().data_ptr()
    plain = (t.layout is torch.strided and t.untyped_storage().data_ptr() == own for t in operands)
    owner = next((i for i, found in enumerate(plain) if found), APART)
    return owner, 0 if owner == APART else result.storage_offset()


def _whole(tensor: Any) -> Any:
    return tensor.memory.whole() if isinstance(tensor, SymbolicTensor) else None


# ---- the comparison


def judge_layout(sample: Sample, rules: Rules = default_rules, looked_at: Points = FEW) -> Judgement:
    """Holds what the rules say of how results lie against torch, at the sample and at sizes of 0 and 1."""
    made, told = Judgement(), f"{sample.told}: {describe(sample)}"
    try:
        with deadline(4 * RECORD_S):
            with_nothing, at = record_sample(sample, True, rules)
            with_elements, _ = record_sample(sample, True, rules, least=1)
            concrete, _ = record_sample(sample, False, rules)
            places, _ = record_sample(placing(sample), False, rules)
    except (Exception, Deadline):  # noqa: BLE001 - whether it can be recorded is judged elsewhere
        made.layouts["not recorded"] += 1
        return made

    def said(values: Mapping[str, int]) -> list[Said]:
        return said_at(with_elements if all(values.values()) else with_nothing, values)

    for number, values, real in looked_at.run(sample, made, told, at, said, one_or_none):
        told_by = [(said(values), values)] + [(said_at(concrete, {}), {})] * (number == 0)
        wrong = [found for one, bound in told_by for found in judged(sample, one, real, bound, made.layouts)]
        if number == 0:
            rule = rule_of(concrete.paths[0], sample)
            wrong += [("shared", t, o, rule) for t, o in shared(sample, places, made.layouts)]
        where = shown(sizes_at(sample, values))
        made.remarks += [Remark(kind, told, where, t, o, rule) for kind, t, o, rule in wrong]
    return made


def judged(
    sample: Sample, said: list[Said], real: Ran | Refused, values: Mapping[str, int], counted: Counter[str]
) -> Iterator[tuple[str, str, str, str]]:
    """Counts the results of which the strides are told, and yields where they are told wrong, or anything
    else is, as by a rule that depends on strides.
    """
    verdict = compare(sample, said, real, values)
    if verdict is not None:
        noted = any(one.path is not None and one.path.notes for one in said)
        if verdict[0] in NOT_SAID or (noted and verdict[0] != "strides"):
            counted["undecided"] += 1
        else:
            counted["wrong"] += 1
            yield verdict
    if verdict is not None or isinstance(real, Refused):
        return
    path = next((one.path for one in said if one.verdict == "accepts"), None)
    results = [r for r in results_of(path) if isinstance(r, Tensor)] if path else []
    for ours, theirs in zip(results, real.tensors, strict=False):
        if theirs.layout is torch.strided and theirs.numel():
            counted["untold" if ours.layout is Layout.UNKNOWN else "told"] += 1
            if ours.layout is Layout.CONTIGUOUS and theirs.stride() != row_major(theirs):
                counted["wrong"] += 1
                where = f"{theirs.stride()} of {tuple(theirs.shape)}"
                yield "strides", where, "contiguous, axes of size 1 too", rule_of(path, sample)


def row_major(tensor: torch.Tensor) -> tuple[int, ...]:
    return torch.empty(tensor.shape, device="meta").stride()


def shared(sample: Sample, said: System, counted: Counter[str]) -> Iterator[tuple[str, str]]:
    """Counts the results of which it is told whose memory they lie in, and yields (torch's, ours) where it is
    told wrong.
    """
    real = run_eagerly(placing(sample), sizes_at(sample, {}))
    if len(said.paths) > 1 or not isinstance(real, Ran):
        return
    ours = [n for n in results_of(said.paths[0]) if isinstance(n, int)]
    for mine, theirs in zip(batched_in_pairs(ours), batched_in_pairs(real.sizes), strict=False):
        if theirs[0] != PERHAPS:
            counted["places untold" if mine[0] == PERHAPS else "places"] += 1
            if mine[0] != PERHAPS and mine != theirs:
                yield str(theirs), str(mine)


def batched_in_pairs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def layouts_of(entry: Entry, count: int | None) -> list[Sample]:
    return [laid for sample in chosen(entry, count) for laid in anew(sample)]
