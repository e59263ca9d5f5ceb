"""torch's own samples: every operator and module of its databases, in every spelling that torch has for it.

A sample is a call with tensors among its arguments. torch's databases (`op_db`, `module_db`) make them; here
they are put into one form, and spelt as function, method, in-place, `out=` and ATen call.
"""

from __future__ import annotations

import contextlib
import io
import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import chain, islice
from typing import Any, Literal

import numpy as np
import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from torch.testing._internal import common_methods_invocations as databases
    from torch.testing._internal import hop_db
    from torch.testing._internal.common_modules import ModuleErrorEnum, ModuleInfo, module_db
    from torch.testing._internal.opinfo.core import OpInfo

from . import core

DTYPES = (torch.float32, torch.int64, torch.bool, torch.complex64, torch.float8_e4m3fn)
"""The dtypes that samples are made of: the first that the operator takes, and a few samples of the others."""

SPELT = 3
"""How many of an entry's samples are spelt in every other way, and drawn of every other dtype, too."""

CONTROL = "control_"
"""What the names of higher-order operators start with here."""

CORE = "core ATen"
"""The entry of core operators that no other comes down to."""

PRIMS = "prims"
"""The entry of `torch.ops.prims`, which the references of operators in `torch._refs` come down to."""

Form = Literal[
    "function", "method", "in-place", "out", "aten", "strided", "dtype", "module", "error", "layout"
]


@dataclass(frozen=True)
class Sample:
    """One call. `args` and `kwargs` hold the tensors, at any depth; `call` takes them in their places."""

    entry: str
    form: Form
    number: int
    call: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    module: torch.nn.Module | None = None
    lies: tuple[Any, ...] | None = None
    """How each varied argument lies in memory, where that is not how it lies already (`judge.Strides`)."""
    told: str = ""
    """That in words."""

    def __str__(self) -> str:
        return f"{self.entry} {self.form} {self.number}"

    @cached_property
    def leaves(self) -> list[Any]:
        return pytree.tree_leaves((self.args, self.kwargs))

    @cached_property
    def tensors(self) -> list[torch.Tensor]:
        return [leaf for leaf in self.leaves if isinstance(leaf, torch.Tensor)]

    @cached_property
    def varied(self) -> list[Any]:
        """The arguments that are varied: the tensors; the integers of a call that has no tensors."""
        return self.tensors or [leaf for leaf in self.leaves if type(leaf) is int]

    def run(self, varied: list[Any]) -> Any:
        """The call with others in the places of the arguments that are varied."""
        rest = iter(varied)
        leaves, tree = pytree.tree_flatten((self.args, self.kwargs))
        kind = torch.Tensor if self.tensors else int
        leaves = [
            next(rest) if isinstance(leaf, kind) and not isinstance(leaf, bool) else leaf for leaf in leaves
        ]
        args, kwargs = pytree.tree_unflatten(leaves, tree)
        return self.call(*args, **kwargs)


@dataclass(frozen=True)
class Entry:
    """An operator of `op_db`, a module of `module_db`, `CORE` or `PRIMS`."""

    name: str
    info: Any = None

    def samples(self) -> Iterator[Sample]:
        seed()
        if isinstance(self.info, ModuleInfo):
            yield from _module_samples(self)
        elif isinstance(self.info, OpInfo):
            yield from _operator_samples(self)
        else:
            calls = core.calls() if self.name == CORE else _prims()
            for number, (call, args, kwargs) in enumerate(calls):
                yield Sample(self.name, "aten", number, call, args, kwargs)

    def errors(self) -> Iterator[Sample]:
        """What torch's authors say that it refuses, for whatever reason."""
        seed()
        if isinstance(self.info, ModuleInfo):
            yield from _module_errors(self)
        elif isinstance(self.info, OpInfo):
            yield from _operator_errors(self)


def seed() -> None:
    random.seed(0)
    np.random.seed(0)
    torch.default_generator.manual_seed(0)  # that of the CPU alone: the others' take milliseconds


@cache
def entries() -> dict[str, Entry]:
    """Everything in torch's databases, by name."""
    named = vars(databases).items()
    lists = [value for name, value in named if name.endswith("op_db") and isinstance(value, list)]
    found: dict[str, Entry] = {}
    for info in chain.from_iterable(lists):
        found.setdefault(info.formatted_name, Entry(info.formatted_name, info))
    for info in module_db:
        found.setdefault(info.name, Entry(info.name, info))
    found |= {CORE: Entry(CORE), PRIMS: Entry(PRIMS)}
    return found | {CONTROL + info.name: Entry(CONTROL + info.name, info) for info in _control_flow()}


def _control_flow() -> Iterator[OpInfo]:
    """Of torch's higher-order operators those that a program calls by itself, the simplest sample of each."""
    names = ("cond", "map", "scan", "switch", "while_loop")
    for info in hop_db.hop_db:
        if info.name in names and info.variant_test_name == "simple":
            yield info


def dtype_of(info: OpInfo) -> torch.dtype | None:
    return next((d for d in DTYPES if info.supports_dtype(d, "cpu")), None)


# ---- operators


def _drawn(info: OpInfo, dtype: torch.dtype) -> Iterator[Any]:
    """The samples as they are made. (`info.sample_inputs` seeds every generator, and searches the stack for
    the test that asks, once per sample.)
    """
    return iter(info.sample_inputs_func(info, "cpu", dtype, False))


def first_sample(entry: Entry) -> Sample | None:
    """The first sample of an operator, in its first dtype; None where there is none."""
    info = entry.info
    dtype = dtype_of(info) if isinstance(info, OpInfo) else None
    if dtype is None:
        return None
    seed()
    for drawn in _drawn(info, dtype):
        args, kwargs = (drawn.input, *drawn.args), dict(drawn.kwargs)
        return Sample(entry.name, "function", 0, info.op, args, kwargs)
    return None


def _operator_samples(entry: Entry) -> Iterator[Sample]:
    info = entry.info
    dtype = dtype_of(info)
    if dtype is None:
        return
    drawn = list(_drawn(info, dtype))
    for number, sample in enumerate(drawn):
        args, kwargs = (sample.input, *sample.args), dict(sample.kwargs)
        call, args = _of_sizes(info.op, args)
        yield Sample(entry.name, "function", number, call, args, kwargs)
    for other in DTYPES:
        if other is not dtype and info.supports_dtype(other, "cpu"):
            of_dtype = islice(_drawn(info, other), SPELT)
            for number, sample in enumerate(of_dtype):
                call, args = _of_sizes(info.op, (sample.input, *sample.args))
                yield Sample(entry.name, "dtype", number, call, args, dict(sample.kwargs))
    for number, sample in enumerate(drawn[: 0 if entry.name.startswith(CONTROL) else SPELT]):
        args, kwargs = (sample.input, *sample.args), dict(sample.kwargs)
        if (method := info.method_variant) is not None:
            yield Sample(entry.name, "method", number, method, args, kwargs)
        if (inplace := info.inplace_variant) is not None and not sample.broadcasts_input:
            yield Sample(entry.name, "in-place", number, inplace, args, kwargs)
        if info.supports_out and (out := _out_for(info, args, kwargs)) is not None:
            named = {**kwargs, "out": out}
            yield Sample(entry.name, "out", number, _writing(info.op), args, named)
        yield from _aten(entry.name, info, number, args, kwargs)
        tensors = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        if all(map(_is_plain, tensors)) and any(t.numel() > 1 for t in tensors):
            for strided in (sample.noncontiguous(), sample.transform(_turned)):
                args, kwargs = (strided.input, *strided.args), dict(strided.kwargs)
                yield Sample(entry.name, "strided", number, info.op, args, kwargs)


def _turned(value: Any) -> Any:
    """A tensor of the same sizes and elements, whose last axis is not the innermost in memory."""
    return value.mT.contiguous().mT if isinstance(value, torch.Tensor) and value.dim() > 1 else value


def _of_sizes(call: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """The call, and of its arguments those whose numbers are sizes, as axes are not."""
    return (partial(_permuted, call, args[1]), args[:1]) if "empty_permuted" in str(call) else (call, args)


def _permuted(call: Callable[..., Any], order: Any, *args: Any, **kwargs: Any) -> Any:
    return call(*args, order, **kwargs)


def _operator_errors(entry: Entry) -> Iterator[Sample]:
    info = entry.info
    if info.error_inputs_func is None:
        return
    for number, error in enumerate(info.error_inputs_func(info, "cpu")):
        sample = error.sample_input
        yield Sample(entry.name, "error", number, info.op, (sample.input, *sample.args), dict(sample.kwargs))


def _out_for(info: OpInfo, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Empty tensors for a call to write its results into; None where it has none that it could write."""
    result = eager(info.op, args, kwargs)
    if isinstance(result, torch.Tensor):
        out: Any = torch.empty([0], dtype=result.dtype)
    elif isinstance(result, tuple) and all(isinstance(part, torch.Tensor) for part in result):
        out = tuple(torch.empty([0], dtype=part.dtype) for part in result)
    else:
        return None
    return out if eager(_writing(info.op), args, {**kwargs, "out": out}) is not None else None


def _writing(call: Callable[..., Any]) -> Callable[..., Any]:
    """What is in the `out=` after the call."""

    def written(*args: Any, out: Any, **kwargs: Any) -> Any:
        call(*args, out=out, **kwargs)
        return out

    return written


def eager(call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The call's result on copies of its arguments, None where it has none."""
    args, kwargs = pytree.tree_map(lambda a: a.clone() if isinstance(a, torch.Tensor) else a, (args, kwargs))
    with torch.no_grad(), warnings.catch_warnings(), contextlib.suppress(Exception):
        warnings.simplefilter("ignore")
        return call(*args, **kwargs)
    return None


def _is_plain(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.layout is torch.strided


class _Calls(TorchDispatchMode):
    """Writes down the calls of ATen operators that arrive at the dispatcher."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        copied = pytree.tree_map(
            lambda a: a.clone() if _is_plain(a) and a.is_contiguous() else a, (args, kwargs or {})
        )
        self.calls.append((func, *copied))
        return func(*args, **(kwargs or {}))


def _aten(
    name: str, info: OpInfo, number: int, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Iterator[Sample]:
    """The ATen operator of the same name, and those that the call comes down to, the first calls of each."""
    packet = getattr(torch.ops.aten, info.aten_name, None)
    if packet is not None and eager(packet, args, kwargs) is not None:
        yield Sample(name, "aten", number, *_of_sizes(packet, args), kwargs)
    with _Calls() as seen:
        eager(info.op, args, kwargs)
    count: Counter[str] = Counter()
    for func, own, named in seen.calls:
        count[str(func)] += 1
        if func.namespace in ("aten", "prims") and count[str(func)] <= SPELT:
            call, own = _of_sizes(func, own)
            yield Sample(name, "aten", number, call, own, named)


def _prims() -> Iterator[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]]:
    """The first calls of each of them that the references' first samples come down to."""
    count: Counter[str] = Counter()
    for info in databases.python_ref_db:
        dtype = dtype_of(info)
        drawn = [] if dtype is None else islice(_drawn(info, dtype), 1)
        for sample in drawn:
            with _Calls() as seen:
                eager(info.op, (sample.input, *sample.args), dict(sample.kwargs))
            for func, args, kwargs in seen.calls:
                count[str(func)] += 1
                if func.namespace == "prims" and count[str(func)] <= SPELT:
                    yield func, args, kwargs


# ---- modules


def _module_samples(entry: Entry) -> Iterator[Sample]:
    info = entry.info
    number = 0
    for training in (True, False) if info.train_and_eval_differ else (True,):
        for drawn in info.module_inputs_func(
            info, device="cpu", dtype=torch.float32, requires_grad=False, training=training
        ):
            if drawn.forward_input is None:
                continue
            module = info.module_cls(*drawn.constructor_input.args, **drawn.constructor_input.kwargs)
            given = drawn.forward_input
            yield _of_module(entry, "module", number, module.to(torch.float32).train(training), given)
            number += 1


def _of_module(entry: Entry, form: Form, number: int, module: torch.nn.Module, given: Any) -> Sample:
    args, kwargs = tuple(given.args), dict(given.kwargs)
    if entry.info.is_lazy:  # it learns its sizes from its first call, and is an ordinary module from there on
        module(*args, **kwargs)
    return Sample(entry.name, form, number, module, args, kwargs, module)


def _module_errors(entry: Entry) -> Iterator[Sample]:
    info = entry.info
    if info.module_error_inputs_func is None:
        return
    drawn = info.module_error_inputs_func(
        info, device="cpu", dtype=torch.float32, requires_grad=False, training=True
    )
    for number, error in enumerate(drawn):
        if error.error_on is ModuleErrorEnum.FORWARD_ERROR:
            made, given = error.module_error_input.constructor_input, error.module_error_input.forward_input
            yield _of_module(entry, "error", number, info.module_cls(*made.args, **made.kwargs), given)
