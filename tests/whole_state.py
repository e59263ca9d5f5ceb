"""All that a check could leave behind: of a program, of torch, of Python. Taken twice, and compared.

This is written on its own, and uses nothing of what it is to judge.
"""

from __future__ import annotations

import builtins
import contextlib
import gc
import hashlib
import logging
import math
import os
import random
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, Final, TypeAlias

import numpy as np
import sympy
import torch
import torch._higher_order_ops.associative_scan
from torch import _meta_registrations, nn
from torch._functorch import apis, eager_transforms
from torch._higher_order_ops import utils
from torch._higher_order_ops.cond import CondOp
from torch._ops import HigherOrderOperator
from torch._refs import _conversions
from torch._subclasses import fake_impls
from torch.autograd import forward_ad, functional
from torch.fx.experimental import symbolic_shapes
from torch.overrides import _get_current_function_mode_stack
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

associative_scan = sys.modules["torch._higher_order_ops.associative_scan"]
"""Torch gives a function of that name in its place."""

State: TypeAlias = dict[str, Any]
"""What there is, by a name for each. Objects stand for themselves: they are compared by identity."""

PATCHED: Final = (
    builtins, math, sys, os, threading, warnings, logging, random, gc,
    torch, torch._C, torch.functional, torch.overrides, torch._tensor, torch.nn.functional, torch.Tensor,
    torch.SymInt, torch.SymFloat, torch.Size, torch.nn.Module, torch.utils.checkpoint, torch.autograd,
    torch.random, np, np.ndarray, nn.ModuleDict, nn.ModuleList, nn.utils.rnn, torch.func, apis,
    torch._lowrank, sympy, symbolic_shapes, symbolic_shapes.ShapeEnv, symbolic_shapes.DimConstraints,
    HigherOrderOperator, CondOp, utils, associative_scan, torch._refs, _conversions, _meta_registrations,
    fake_impls, torch._prims_common, eager_transforms, torch.autograd.Function, forward_ad, functional,
    torch.utils.dlpack,
)  # fmt: skip
"""Where a check, or a program that it runs, may put something in the place of something else."""
_UNSTABLE: Final = {"sys": {"last_value", "last_type", "last_traceback", "last_exc", "argv"}}
_TRANSIENT: Final = {"__warningregistry__", "_pytestfixturefunction"}


def whole_state(*held: Any) -> State:
    """The state of the programs, tensors and containers given, and of all around them."""
    return {**dict(_of_program(held)), **dict(_of_settings()), **dict(_of_names())}


def differences(before: State, after: State) -> list[str]:
    """What is no longer as it was."""
    return sorted(name for name in before.keys() | after.keys() if not _same(before, after, name))


_NOTHING: Final = object()


def _same(before: State, after: State, name: str) -> bool:
    was, now = before.get(name, _NOTHING), after.get(name, _NOTHING)
    if type(was) is _ById or type(now) is _ById:
        return type(was) is type(now) and was.it is now.it
    return bool(was == now)


class _ById:
    """An object that is equal to itself alone. It is kept, so that no other gets its identity."""

    def __init__(self, it: Any) -> None:
        self.it = it

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ById) and self.it is other.it

    def __hash__(self) -> int:
        return id(self.it)


# ---- programs


def _of_program(held: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    seen: set[int] = set()
    waiting: list[tuple[str, Any]] = [(str(i), value) for i, value in enumerate(held)]
    while waiting:
        name, value = waiting.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        members: Mapping[Any, Any]
        if isinstance(value, torch.Tensor):
            yield from ((f"{name}: {what}", it) for what, it in _of_tensor(value))
            members = vars(value)
        elif isinstance(value, np.ndarray):
            yield f"{name}: elements", value.tobytes()
            continue
        elif isinstance(value, torch.Generator):
            yield f"{name}: state", value.get_state().numpy().tobytes()
            continue
        elif isinstance(value, dict):
            members = value
        elif isinstance(value, list | tuple | set):
            members = dict(enumerate(value))
        elif callable(value) and hasattr(value, "__closure__"):
            members = {i: cell.cell_contents for i, cell in enumerate(value.__closure__ or ())}
        elif isinstance(value, nn.Module) or type(value).__module__ not in sys.stdlib_module_names:
            yield f"{name}: class", _ById(type(value))
            members = getattr(value, "__dict__", {})
        else:
            continue
        yield f"{name}: names", [*map(str, members)]
        for key, member in members.items():
            yield f"{name}.{key}", _ById(member)
            if not isinstance(member, type | ModuleType | int | float | str | None):
                waiting.append((f"{name}.{key}", member))


def _of_tensor(tensor: torch.Tensor) -> Iterator[tuple[str, Any]]:
    with torch.no_grad():
        yield "shape", (tuple(tensor.shape), tensor.stride(), tensor.storage_offset(), tensor.dtype)
        yield "memory", tensor.data_ptr()
        flat = tensor.detach().reshape(-1).contiguous()
        yield "elements", hashlib.sha1(flat.view(torch.uint8).numpy().data).digest()
    if not tensor.is_inference():
        yield "version", tensor._version
    yield "autograd", (tensor.requires_grad, tensor.is_leaf, _ById(tensor.grad_fn))
    yield "hooks", [*(tensor._backward_hooks or ()), *(tensor._post_accumulate_grad_hooks or ())]
    if tensor.is_leaf and tensor.grad is not None:
        yield "gradient", _ById(tensor.grad)
        yield from ((f"gradient: {what}", it) for what, it in _of_tensor(tensor.grad))


# ---- settings and names


def _of_settings() -> Iterator[tuple[str, Any]]:
    yield "random: torch", torch.get_rng_state().numpy().tobytes()
    yield "random: Python", random.getstate()
    kind, numbers, *rest = np.random.get_state(legacy=True)
    yield "random: NumPy", (kind, bytes(np.asarray(numbers).data), *rest)
    yield "grad mode", (torch.is_grad_enabled(), torch.is_inference_mode_enabled())
    yield "defaults", (torch.get_default_dtype(), torch.get_default_device())
    yield "deterministic", (
        torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled(),
        torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic, torch.backends.cudnn.enabled,
    )  # fmt: skip
    yield "autocast", [(torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in ("cpu", "cuda")]
    yield "threads", torch.get_num_threads()
    yield "precision", torch.get_float32_matmul_precision()
    yield "anomalies", (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled())
    yield "fast path", torch.backends.mha.get_fastpath_enabled()
    yield "modes of functions", [*map(_ById, _get_current_function_mode_stack())]
    yield "modes of dispatch", [*map(_ById, _get_current_dispatch_mode_stack())]
    yield "warning filters", [*warnings.filters]
    yield "trace function", _ById(sys.gettrace())
    yield "profile function", _ById(sys.getprofile())
    yield "recursion limit", sys.getrecursionlimit()
    yield "garbage collection", gc.isenabled()
    yield "logging", (logging.root.manager.disable, logging.root.level)
    yield "environment", dict(os.environ)
    yield "working directory", os.getcwd()


def _of_names() -> Iterator[tuple[str, Any]]:
    """What the names of torch, Python and of the programs' own modules stand for."""
    mine = [m for m in map(sys.modules.get, _PROGRAMS) if m is not None]
    for holder in (*PATCHED, *mine):
        unstable = _UNSTABLE.get(holder.__name__, set()) | _TRANSIENT
        for name, value in [*vars(holder).items()]:
            if name not in unstable and not isinstance(value, ModuleType):
                yield f"{holder.__name__}.{name}", _ById(value)


_PROGRAMS: Final[set[str]] = set()


@contextlib.contextmanager
def looking_at(module: str) -> Iterator[None]:
    """While this lasts the globals of a module belong to the state, too."""
    _PROGRAMS.add(module)
    try:
        yield
    finally:
        _PROGRAMS.discard(module)
