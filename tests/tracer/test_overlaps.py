"""Which operators refuse memory that is shared: the table, held to torch by calling each operator on it.

Each sample of torch's own list of operators is called with a target of which several elements lie at one
place, and with each operand in the memory of the target, as the same elements and one element further. torch
may crash on such calls where it does not refuse them: each operator has a process of its own.
"""

from __future__ import annotations

import faulthandler
import json
import multiprocessing
import signal
import warnings
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

from anyshape.constraints.engine.overlap import APART, IN_PLACE, UNCHECKED, Overlap, refused, writes_anywhere
from anyshape.constraints.engine.ruleset import BadCall
from anyshape.constraints.ir.opnames import canonical, parameters
from anyshape.constraints.rules import default_rules

OPERATORS = {f"{info.name} {info.variant_test_name}".strip(): info for info in op_db}
DTYPES = (torch.float32, torch.complex64, torch.int64)
SAMPLES = 12
SECONDS = 20
"""What one operator may take."""
REFUSALS = (RuntimeError, ValueError, TypeError, IndexError, NotImplementedError, AssertionError)
Seen = tuple[str, str, str, bool]
"""The operator, the parameter or "itself", how it overlaps, and whether torch refuses it for that."""
FEW = (
    *("add", "amax", "addmm", "masked_scatter", "lerp", "mul", "index_add", "index_copy"),
    *("scatter", "index_put", "masked_fill", "cat", "exp", "mm", "bmm", "mv", "baddbmm", "topk", "sort"),
    *("kthvalue", "stack", "cumsum", "cummax", "max reduction_with_dim", "linalg.inv", "linalg.qr", "eq"),
    *("linalg.lu_solve", "special.i1", "softmax"),
)


def plain(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout is torch.strided


def is_refused(call: Callable[[], Any]) -> bool | None:
    """None where it is refused for another reason."""
    try:
        call()
    except REFUSALS as error:
        return True if "single memory location" in str(error) else None
    return False


def named(op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by the names that the rule has for them."""
    rule = default_rules.get(op)
    if rule is None:
        return {}
    try:
        return rule.bind(args, parameters(op, kwargs))  # type: ignore[no-any-return]
    except BadCall:
        return {}


def experiments(name: str) -> Iterator[Seen]:
    """What torch does with the samples of one operator."""
    info = OPERATORS[name]
    for dtype in DTYPES:
        if dtype not in info.dtypes:
            continue
        for sample in islice(info.sample_inputs("cpu", dtype, requires_grad=False), SAMPLES):
            if info.inplace_variant is not None:
                yield from _of_sample(info, sample, None)
            for place in range(3 if info.supports_out else 0):
                yield from _of_sample(info, sample, place)


def operator_of(name: str) -> str:
    """The rule's name of an operator, by its name in torch's list."""
    return canonical(f"aten.{name.removeprefix('nn.functional.').replace('.', '_')}")


def _of_sample(info: Any, sample: Any, place: int | None) -> Iterator[Seen]:
    """What torch does with a sample in place, or with the `out=` at this place among several."""
    leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    out = place is not None

    def fresh() -> list[Any]:
        return [leaf.clone() if plain(leaf) else leaf for leaf in leaves]

    def call(leaves: list[Any], target: Any) -> Any:
        value, args, kwargs = pytree.tree_unflatten(leaves if out else [target, *leaves[1:]], spec)
        if out:
            into = [target if at == place else other.clone() for at, other in enumerate(results)]
            return info.op(value, *args, **kwargs, out=into if several else into[0])
        return info.inplace_variant(value, *args, **kwargs)

    value, args, kwargs = pytree.tree_unflatten(fresh(), spec)
    try:
        found = info.op(value, *args, **kwargs) if out else value
        several = isinstance(found, tuple | list)
        results = found if several else [found]
        target = results[place or 0] if (place or 0) < len(results) else None
        if not all(map(plain, results)) or target is None or target.numel() < 2:
            return
        if is_refused(lambda: call(fresh(), target.clone())) is not False:
            return
    except REFUSALS:  # a sample that torch does not take
        return
    op = operator_of(info.name)
    arguments = named(op, (value, *args), kwargs)
    written, where = (op, f"out {place}") if out else (f"{op}_", "in place")
    shape = list(target.shape)
    shape[max(range(target.dim()), key=lambda axis: target.shape[axis])] = 1
    wide = torch.zeros(shape, dtype=target.dtype).expand(target.shape)
    if (answer := is_refused(lambda: call(fresh(), wide))) is not None:
        yield written, "itself", where, answer
    originals = pytree.tree_flatten((value, args, kwargs))[0]
    for at, leaf in enumerate(leaves):
        if not plain(leaf) or leaf.numel() < 1 or leaf.dtype != target.dtype or (at == 0 and not out):
            continue
        parameter = next((n for n, v in arguments.items() if _among(originals[at], v)), "")
        for how, offset in (("same", 0), ("all", 0), ("part", 1)):
            if (how != "part" and leaf.shape != target.shape) or (how == "same" and not out):
                continue
            memory = torch.zeros(target.numel() + leaf.numel() + 2, dtype=target.dtype)
            operand = memory[offset : offset + leaf.numel()].view(leaf.shape)
            operand.copy_(leaf)
            given = fresh()
            given[at] = operand
            into = operand if how == "same" else memory[: target.numel()].view(target.shape)
            answer = is_refused(lambda given=given, into=into: call(given, into))  # type: ignore[misc]
            if answer is not None and parameter:
                yield written, parameter, f"{how} {where}", answer


def _among(leaf: Any, value: Any) -> bool:
    return any(part is leaf for part in value) if isinstance(value, list | tuple) else value is leaf


def _tell(name: str, sender: Any) -> None:
    warnings.simplefilter("ignore")
    faulthandler.disable()
    signal.alarm(SECONDS)
    for seen in experiments(name):
        sender.send(json.dumps(seen))


def observed(name: str) -> set[Seen]:
    """What torch does with the samples of one operator, as far as it gets."""
    receiver, sender = multiprocessing.Pipe(False)
    process = multiprocessing.get_context("fork").Process(target=_tell, args=(name, sender))
    process.start()
    sender.close()
    found: set[Seen] = set()
    try:
        while True:
            found.add(tuple(json.loads(receiver.recv())))
    except EOFError:
        process.join()
    return found


def told(op: str, parameter: str, how: str) -> bool | None:
    """What the table says of such a call; None where it says nothing."""
    if parameter == "itself":
        if how.startswith("out"):
            return op in APART if op in APART | UNCHECKED else None
        return None if op not in IN_PLACE or writes_anywhere(op, {}) else True
    way, where, place = how.split()
    match refused(op, parameter, where == "out", int(place) if where == "out" else 0):
        case Overlap.SOME if way == "part":
            return None
        case Overlap.PART | Overlap.SOME:
            return way == "part"
        case Overlap.ANY:
            return True
        case Overlap.NOTHING:
            return False
    return None


def differences(seen: set[Seen]) -> list[str]:
    wrong = []
    for op, parameter, how, answer in sorted(seen):
        said = told(op, parameter, how) if parameter != "itself" or op not in LENIENT_FOR_SOME else None
        if said is not None and said != answer:
            wrong.append(f"{op} {parameter} {how}: torch {'refuses' if answer else 'runs'}")
    return wrong


LENIENT_FOR_SOME = {"conj_physical_", "nan_to_num_", "tril_", "triu_", "fill_", "zero_", "mvlgamma_"}
"""Operators that look at their target for some arguments only."""


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", FEW)
def test_the_table_is_that_of_torch(name: str) -> None:
    seen = observed(name)
    assert seen, "the samples are called"
    assert differences(seen) == []


@pytest.mark.slow
def test_the_whole_table_is_that_of_torch() -> None:
    wrong = {name: found for name in OPERATORS if (found := differences(observed(name)))}
    assert wrong == {}


def test_a_wrong_table_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = observed("add")
    monkeypatch.setitem(IN_PLACE, "add_", Overlap.ANY)  # type: ignore[arg-type]
    assert differences(seen)
    monkeypatch.setitem(IN_PLACE, "add_", Overlap.NOTHING)  # type: ignore[arg-type]
    assert differences(seen)
