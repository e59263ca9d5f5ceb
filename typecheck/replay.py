"""Runs the real program at concrete sizes, to see whether a witness is one.

Fake tensors come first: they cost nothing. Where they need data, do not know an operator, or accept what was
said to be refused (some of torch's fake kernels check less than the real ones), real tensors of zeros and of
ones on the CPU decide, as long as they are of moderate size. The model is left as it was.

A graph without a Python program behind it (a `.pt2`) is replayed by the rules of its operators at concrete
sizes, where nothing is left for the solver.
"""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Final, TypeAlias

from msgspec import structs

from ..constraints.claims import listening
from ..constraints.dims import Term, evaluate
from ..constraints.language import Number, Tensor, Value
from ..constraints.program import Origin
from ..constraints.rows import sizes
from ..constraints.spec import Declared, Spec
from ..constraints.system import Domain, Path
from ..tracer.alone import alone

MODERATE: Final = 4_000_000
"""Elements of all inputs together up to which real tensors are used."""
LARGEST_MODEL: Final = 200_000_000
"""Elements of all parameters up to which the model is run for real."""

FAKE = "on the program itself, with fake tensors"
REAL = "on the program itself, with tensors of zeros"
RULES = "by the rules of its operators at these sizes, without the solver"


@dataclass(frozen=True, slots=True)
class Ran:
    """The program returned."""

    how: str


@dataclass(frozen=True, slots=True)
class Refused:
    """The program raised what it raises for the sake of sizes."""

    how: str
    reason: str
    exception: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class Failed:
    """Whether the program runs at these sizes could not be found out."""

    reason: str
    raised: bool = False
    """The program raised this, and it is no matter of sizes: a defect of the program."""
    origin: Origin = field(default_factory=Origin)


Outcome: TypeAlias = "Ran | Refused | Failed"


class Replayer:
    """Replays assignments on one target."""

    def __init__(self, target: Callable[..., Any], spec: Spec) -> None:
        self.target, self.spec = target, spec

    @alone
    def run(self, values: Mapping[str, int], accepted: bool) -> Outcome:
        """What the program does at these sizes; `accepted` is what is expected of it.

        Fake tensors are believed where they agree with that. Otherwise real ones have the last word, and they
        alone say that the program raises what is no refusal: it may be fake tensors that cannot do something.
        """
        with values_kept(self.target, parameters=False):
            fake = _attempt(self.target, self.spec, values, FAKE, _fake_mode, 0)
        if isinstance(fake, Ran if accepted else Refused):
            return fake
        if not self._moderate(values):
            if isinstance(fake, Ran):
                return Failed("fake tensors check less, and real ones would be too large")
            return replace(fake, raised=False) if isinstance(fake, Failed) else fake
        for fill in (0, 1):
            with values_kept(self.target, parameters=True):
                real = _attempt(self.target, self.spec, values, REAL, _real_mode, fill)
            if isinstance(real, Ran if accepted else Refused):
                break
        if isinstance(real, Failed) and not accepted and _NO_KERNEL in real.reason:
            return Refused(REAL, real.reason.partition(": ")[2], real.reason.partition(": ")[0], real.origin)
        if not isinstance(real, Failed) or (real.raised and not isinstance(fake, Refused)):
            return real
        return replace(fake, raised=False) if isinstance(fake, Failed) else fake

    def _moderate(self, values: Mapping[str, int]) -> bool:
        import torch

        shapes = [d.type.shape for d in self.spec.inputs if isinstance(d.type, Tensor)]
        elements = sum(prod(sizes(shape, values)) for shape in shapes)
        model = self.target if isinstance(self.target, torch.nn.Module) else torch.nn.Module()
        weights = [*model.parameters(), *model.buffers()]
        return (
            elements <= MODERATE
            and sum(w.numel() for w in weights) <= LARGEST_MODEL
            and all(w.device.type == "cpu" for w in weights)
        )


def at(spec: Spec, values: Mapping[str, int]) -> Spec:
    """The spec at concrete sizes, with nothing left to assume."""
    return Spec(tuple(replace(d, type=_at(d.type, values)) for d in spec.inputs), Domain())


def by_rules(path: Path) -> Outcome:
    """What the rules say of a graph whose inputs have concrete sizes: each requirement is true or false."""
    for constraint in path.constraints:
        if constraint.kind == "model" and constraint.formula is not True:
            if constraint.formula is not False:
                return Failed(f"{constraint.formula} is open at concrete sizes: {constraint.reason}")
            return Refused(RULES, constraint.reason, "", path.program.nodes[constraint.node].origin)
    if inexact := [note for note in path.notes if note.inexact]:
        return Failed(inexact[0].reason)
    return Refused(RULES, path.end.reason, "", path.end.origin) if path.end.how == "raised" else Ran(RULES)


def _at(value: Value, values: Mapping[str, int]) -> Value:
    """A value at concrete sizes."""
    if isinstance(value, Tensor):
        layout = value.layout
        return structs.replace(
            value,
            shape=sizes(value.shape, values),
            layout=tuple(evaluate(d, values) for d in layout) if isinstance(layout, tuple) else layout,
        )
    if isinstance(value, tuple):
        return tuple(_at(v, values) for v in value)
    return evaluate(value, values) if isinstance(value, Term) else value


# ---- one attempt


def _attempt(
    target: Callable[..., Any],
    spec: Spec,
    values: Mapping[str, int],
    how: str,
    mode: Callable[[], contextlib.AbstractContextManager[Any]],
    fill: int,
) -> Outcome:
    import torch

    from ..tracer.caches import forgetting
    from ..tracer.claims import checked
    from ..tracer.model_state import ModelState, submodules
    from ..tracer.named_axes import refusals
    from ..tracer.origins import REFUSALS, ModuleNames, is_miscall, of_error
    from ..tracer.record import bind
    from ..tracer.stand_ins import sources_of

    modules = submodules(target)
    state = ModelState(target, modules)
    device = _device(target)
    refused: tuple[type[Exception], ...] = (*REFUSALS, *refusals())
    try:
        with (
            forgetting(sources_of(target, modules)),
            mode(),
            _uncompiled(),
            torch.random.fork_rng(devices=[]),
            listening(checked(values)),
        ):
            torch.manual_seed(fill)
            bound = bind(target, spec.inputs, lambda declared: _build(declared, values, fill, device))
            target(*bound.args, **bound.kwargs)
    except refused as error:
        told = f"{type(error).__name__}: {error}"
        if _is_other(error):
            return Failed(told, isinstance(error, RecursionError), of_error(error, ModuleNames(target)))
        return Refused(how, str(error).strip(), type(error).__name__, of_error(error, ModuleNames(target)))
    except Exception as error:  # noqa: BLE001 (the user's program may raise anything; it is told)
        if is_miscall(error):
            return Refused(how, str(error), type(error).__name__, of_error(error, ModuleNames(target)))
        return Failed(f"{type(error).__name__}: {error}", True, of_error(error, ModuleNames(target)))
    finally:
        state.restore()
    return Ran(how)


def _build(declared: Declared, values: Mapping[str, int], fill: int, device: Any) -> Any:
    """The input at concrete sizes: zeros or ones; integers are zeros, which are indices wherever any are."""
    import torch

    value = declared.type
    if isinstance(value, Tensor):
        dtype = getattr(torch, value.dtype or "float32")
        varies = dtype.is_floating_point or dtype is torch.bool
        return torch.full(sizes(value.shape, values), fill if varies else 0, dtype=dtype, device=device)
    if isinstance(value, Number):
        return 0.5 if value.kind == "float" else fill
    return _at(value, values)


def _device(target: Any) -> Any:
    import torch

    if isinstance(target, torch.nn.Module):
        for tensor in (*target.parameters(), *target.buffers()):
            return tensor.device
    return torch.device("cpu")


OTHERS = (
    "allocate", "out of memory", "not implemented for", "fake tensor", "faketensor", "tensor subclasses",
    "data pointer",
)
"""Words of an error that was raised for another reason than sizes."""

_CARRIED = "to have same metadata"
"""What torch says of a loop whose body returns another shape than it was given."""


_NO_KERNEL: Final = "not implemented for '"
"""What torch says of a dtype that an operator does not take. Fake tensors take all."""


def _is_other(error: Exception) -> bool:
    """Was it raised for another reason than sizes: missing data, a missing kernel, missing memory?"""
    import torch
    from torch._subclasses import fake_tensor

    if type(error).__module__ == "torch._dynamo.exc":  # a higher-order operator's functions, compiled
        return type(error).__name__ != "TorchRuntimeError" and _CARRIED not in str(error)
    others = (
        torch.linalg.LinAlgError,  # type: ignore[attr-defined]
        NotImplementedError,
        RecursionError,
        fake_tensor.DataDependentOutputException,
        fake_tensor.DynamicOutputShapeException,
        fake_tensor.UnsupportedFakeTensorException,
        fake_tensor.UnsupportedOperatorException,
    )
    return isinstance(error, others) or any(word in str(error).lower() for word in OTHERS)


@contextlib.contextmanager
def _fake_mode() -> Iterator[None]:
    """Fake tensors all around; the traceback that torch logs for each refusal is kept quiet."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    log = logging.getLogger(FakeTensorMode.__module__)
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    try:
        with FakeTensorMode(allow_non_fake_inputs=True):
            yield
    finally:
        log.setLevel(level)


_real_mode = contextlib.nullcontext


@contextlib.contextmanager
def _uncompiled() -> Iterator[None]:
    """What `torch.compile` made runs as it was written. Where nothing is compiled dynamo is not imported.

    A higher-order operator compiles its functions whatever the program asks for, and checks them thereby.
    """
    import torch

    if "torch._dynamo" not in sys.modules:
        yield
        return
    from torch._higher_order_ops import utils

    from ..tracer.higher_order import uncompiled

    compile_and_call = utils._hop_compile_and_call

    def compiled(*args: Any, **kwargs: Any) -> Any:
        with torch.compiler.set_stance("default"):
            return compile_and_call(*args, **kwargs)  # type: ignore[no-untyped-call]

    utils._hop_compile_and_call = compiled
    try:
        with uncompiled():
            yield
    finally:
        utils._hop_compile_and_call = compile_and_call


@contextlib.contextmanager
def values_kept(target: Any, *, parameters: bool) -> Iterator[None]:
    """What a run writes into buffers (running means, counters) and parameters is undone; `parameters`: also
    what is written into parameters by no call that says so.

    Among fake tensors, too: a call with only real ones among its operands (`self.count += 1`) really runs.
    """
    import torch

    from ..tracer.writes import Undone

    model = target if isinstance(target, torch.nn.Module) else torch.nn.Module()
    with torch.no_grad():
        tensors = (*model.buffers(), *(model.parameters() if parameters else ()))
        saved = [(t, t.clone(), t._version) for t in tensors if t.device.type != "meta"]
    try:
        with Undone((*model.buffers(), *model.parameters())):
            yield
    finally:
        with torch.no_grad():
            for tensor, content, version in saved:
                # Not by the version of the tensor: batch_norm updates its running means behind its back. Of
                # sparse tensors torch compares no elements.
                dense = tensor.layout is torch.strided
                if not torch.equal(tensor, content) if dense else tensor._version != version:
                    tensor.copy_(content)
