"""The surroundings of a program: settings of torch and of Python, and random generators.

A run may change any of them, and leaves all of them unchanged. It starts from the same random numbers each
time, so that its behaviour is a function of the program and of its sizes.
"""

from __future__ import annotations

import contextlib
import gc
import logging
import os
import random
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

import torch
from torch import _C
from torch.overrides import _get_current_function_mode_stack
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from .interpreter import replace_profiler

SEED: Final = 20
"""The seed of the random numbers of every run."""


class Surrounding(NamedTuple):
    """Functions that read and set a setting. Values are compared by `==`."""

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], object]


def _attribute(holder: Any, name: str) -> Surrounding:
    return Surrounding(name, lambda: getattr(holder, name), lambda value: setattr(holder, name, value))


def _autocast(device: str) -> Surrounding:
    def write(now: tuple[bool, torch.dtype]) -> None:
        torch.set_autocast_enabled(device, now[0])
        torch.set_autocast_dtype(device, now[1])

    def read() -> tuple[bool, torch.dtype]:
        return torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)

    return Surrounding(f"autocast of {device}", read, write)


def _set_environment(before: dict[str, str]) -> None:
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)


def _set_filters(before: Sequence[Any]) -> None:
    with warnings.catch_warnings():  # whose end makes the filters known
        pass
    warnings.filters[:] = before  # type: ignore[index]


def _set_modes(
    now: Callable[[], list[Any]], pop: Callable[[], object], push: Callable[[Any], object]
) -> Callable[[list[Any]], None]:
    """Returns a function that sets a stack of modes: it removes modes that a run left, and restores those
    that it removed.
    """

    def write(before: list[Any]) -> None:
        common = 0
        while common < min(len(now()), len(before)) and now()[common] is before[common]:
            common += 1
        for _ in now()[common:]:
            pop()
        for mode in before[common:]:
            push(mode)

    return write


def _read_filters() -> list[Any]:
    return [*warnings.filters]


SETTINGS: Final[tuple[Surrounding, ...]] = (
    Surrounding(
        "modes of torch functions",
        _get_current_function_mode_stack,
        _set_modes(
            _get_current_function_mode_stack, _C._pop_torch_function_stack, _C._push_on_torch_function_stack
        ),
    ),
    Surrounding(
        "modes of dispatch",
        _get_current_dispatch_mode_stack,
        _set_modes(
            _get_current_dispatch_mode_stack, _C._pop_torch_dispatch_stack, _C._push_on_torch_dispatch_stack
        ),
    ),
    Surrounding("grad mode", torch.is_grad_enabled, _C._set_grad_enabled),
    Surrounding("default dtype", torch.get_default_dtype, torch.set_default_dtype),
    Surrounding(
        "default device",
        lambda: getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None),
        lambda context: setattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", context),
    ),
    _autocast("cpu"),
    _autocast("cuda"),
    Surrounding("autocast cache", torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled),
    Surrounding(
        "deterministic algorithms",
        lambda: (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
        ),
        lambda now: torch.use_deterministic_algorithms(now[0], warn_only=now[1]),
    ),
    Surrounding(
        "anomaly mode",
        lambda: (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()),
        lambda now: torch.set_anomaly_enabled(*now),
    ),
    Surrounding("matmul precision", torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    Surrounding("threads", torch.get_num_threads, torch.set_num_threads),
    Surrounding(
        "fast path of attention",
        torch.backends.mha.get_fastpath_enabled,
        torch.backends.mha.set_fastpath_enabled,
    ),
    Surrounding(
        "flash attention", torch.backends.cuda.flash_sdp_enabled, torch.backends.cuda.enable_flash_sdp
    ),
    Surrounding("math attention", torch.backends.cuda.math_sdp_enabled, torch.backends.cuda.enable_math_sdp),
    *(_attribute(torch.backends.cudnn, name) for name in ("enabled", "benchmark", "deterministic")),
    _attribute(torch.backends.mkldnn, "enabled"),
    _attribute(torch.distributions.Distribution, "_validate_args"),  # compiling anything turns it off
    Surrounding("warning filters", _read_filters, _set_filters),
    _attribute(warnings, "showwarning"),
    Surrounding("trace function", sys.gettrace, sys.settrace),
    Surrounding("profile function", sys.getprofile, replace_profiler),
    Surrounding("recursion limit", sys.getrecursionlimit, sys.setrecursionlimit),
    Surrounding("garbage collection", gc.isenabled, lambda on: gc.enable() if on else gc.disable()),
    _attribute(logging.root.manager, "disable"),
    Surrounding("environment", lambda: dict(os.environ), _set_environment),
)
"""All settings that a run restores."""


def _generators() -> Iterator[Surrounding]:
    """Yields the existing random generators: of torch on the CPU, of Python, of NumPy if it is in use."""
    yield Surrounding("random numbers of torch", torch.get_rng_state, torch.set_rng_state)
    yield Surrounding("random numbers of Python", random.getstate, random.setstate)
    if (numpy := sys.modules.get("numpy")) is not None:
        yield Surrounding("random numbers of NumPy", numpy.random.get_state, numpy.random.set_state)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        yield Surrounding(
            "random numbers of CUDA", torch.cuda.get_rng_state_all, torch.cuda.set_rng_state_all
        )


def seed(number: int = SEED) -> None:
    """Seeds the random number generators of torch, Python and NumPy."""
    torch.default_generator.manual_seed(number)
    random.seed(number)
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(number)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(number)


@contextlib.contextmanager
def surroundings_kept() -> Iterator[None]:
    """Seeds the random numbers, and restores them and every setting at the end of the block."""
    before = [(setting, setting.read()) for setting in SETTINGS]
    generators = [(setting, setting.read()) for setting in _generators()]
    seed()
    try:
        yield
    finally:
        for setting, value in before:
            if setting.read() != value:
                setting.write(value)
        for setting, value in generators:
            setting.write(value)
