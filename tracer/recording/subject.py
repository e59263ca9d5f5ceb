"""The target of a recording, and the work of one run of it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, NoReturn

import torch

from ...constraints.engine.known import Known
from ...constraints.engine.ruleset import Rules
from ...constraints.ir.program import Origin
from ...constraints.ir.spec import Spec
from ...constraints.ir.system import Oracle
from ...constraints.terms.formula import Formula
from ..bytecode.origins import ModuleNames
from ..host.modules import buffers_of, parameters_of
from ..host.submodules import Modules, submodules
from ..patches.stand_ins import sources_of
from ..summaries.plans import Plans


@dataclass(frozen=True, slots=True)
class Subject:
    """The target, with the facts that every run of it needs, found by walking through its modules once."""

    target: Callable[..., Any]
    device: torch.device
    """The device of the model's parameters; the CPU for a program without any."""
    names: ModuleNames
    parameters: Mapping[int, str]
    """Names of parameters and buffers, by identity."""
    tensors: tuple[torch.Tensor, ...]
    """The parameters and buffers, and all other tensors that the program refers to."""
    sources: tuple[ModuleType, ...]
    """The Python modules that contain its code."""
    nothing: Known = field(default_factory=Known)
    """The initial knowledge of every run; answers of rules are shared between runs through it."""
    lent: frozenset[int] = frozenset()
    """The parameters and buffers that are stand-ins, by identity: no transform has made them."""
    compared: tuple[Origin, ...] = ()
    """Where the program asks by `is` whether a value is an integer."""

    @classmethod
    def of(
        cls,
        target: Callable[..., Any],
        modules: Modules | None = None,
        others: Sequence[torch.Tensor] = (),
    ) -> Subject:
        """Returns the subject.

        `others` are stand-ins for tensors that the program refers to, as parameters, buffers or elsewhere.
        """
        names: dict[int, str] = {}
        owned: list[torch.Tensor] = []
        device: torch.device | None = None
        modules = submodules(target) if modules is None else modules
        held: list[tuple[str, Mapping[str, torch.Tensor | None]]]
        held = [(path, parameters) for path, module in modules if (parameters := parameters_of(module))]
        held += [(path, buffers) for path, module in modules if (buffers := buffers_of(module))]
        for path, kept in held:
            for name, tensor in kept.items():
                if tensor is not None:
                    names.setdefault(id(tensor), f"{path}.{name}" if path else name)
                    owned.append(tensor)
                    device = device or tensor.device
        owned += (tensor for tensor in others if id(tensor) not in names)
        device = device or torch.device("cpu")
        sources = tuple(sources_of(target, modules))
        lent = frozenset(names.keys() & map(id, others))
        return cls(target, device, ModuleNames(target, modules), names, tuple(owned), sources, lent=lent)


def over(*args: Any) -> NoReturn:
    raise RuntimeError("this run is over")


@dataclass(frozen=True, slots=True)
class BranchDecision:
    """The decision of a run at a branch; `value` is the number that was tried, if one was needed."""

    taken: bool
    forced: bool
    value: int | None = None
    asked: Formula | None = None  # None for a branch on data


@dataclass(frozen=True, slots=True)
class Assignment:
    """The work of one run: a target, its inputs, and the branch decisions that the run repeats."""

    subject: Subject
    spec: Spec
    rules: Rules
    oracle: Oracle
    decided: tuple[BranchDecision, ...]
    plans: Plans
    until: float = math.inf
    """The time, by the monotonic clock, after which no new branch is taken: a `while` may have endlessly
    many.
    """
    along: Mapping[str, int] | None = None
    """The sizes whose path is taken; None where all paths are."""
    device: str | None = None
    """The type of the device that the program is to run on; None for that of its tensors."""

