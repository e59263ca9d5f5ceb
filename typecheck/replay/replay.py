"""Runs the real program at concrete sizes, to test an example.

Real tensors of zeros come first if the run is short: it takes less time than torch takes to prepare fake
ones. For longer runs fake tensors come first: they cost nothing. If they need data, do not know an
operator, or accept sizes that should be refused (some of torch's fake kernels check less than the real
ones), real tensors of zeros and of ones on the CPU decide, as long as they are of moderate size. The same
holds where fake tensors do not see everything that matters (`unseen.py`): no fake kernel checks an index.
Everything is left unchanged.

A graph without a Python program behind it (a `.pt2`) is replayed by the rules of its operators at concrete
sizes, where nothing is left for the solver.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from math import prod
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import structs

from ...constraints.ir.claims import listening
from ...constraints.ir.language import Number, Tensor, Value
from ...constraints.ir.program import Origin
from ...constraints.ir.spec import Declared, Spec
from ...constraints.ir.system import Domain, Path, System
from ...constraints.terms.dims import Term, evaluate
from ...constraints.terms.rows import sizes
from ...tracer.host.alone import alone
from ...tracer.host.patches import Setting
from ...tracer.host.releases import unknown
from ..targets.claims import TargetAnnotations
from .unseen import Origins, Unseen, made, unseen

if TYPE_CHECKING:
    from ...tracer.recording.held import Held



@dataclass(frozen=True, slots=True)
class RunLimits:
    """Limits on the cost of runs on real kernels.

    All but the last are counted, and are the same from run to run: a run beyond them is not tried, and the
    verdict stays. A run that the clock interrupts makes the verdict `unknown`.
    """

    inputs: int = 4_000_000
    """Elements of all inputs together."""
    weights: int = 200_000_000
    """Elements of all parameters and buffers together. They are copied for each run."""
    short: int = 4_000_000
    """Elements of all tensors that a short run makes, as recorded. Its weights have at most as many."""
    made: int = 16_000_000
    """Elements of all tensors that a run makes, as recorded, where fake tensors do not see all."""
    total: int = 100_000_000
    """Elements copied and made by all such runs together: 400 megabytes of float32."""
    calls: int = 100_000
    """Calls of torch's functions in a run."""
    seconds: float = 20.0
    """A run that takes longer is broken off, and what it would have shown is not known."""


LIMITS: Final = RunLimits()

FAKE = "on the program itself, with fake tensors"
REAL = "on the program itself, with tensors of zeros"
RULES = "by the rules of its operators at these sizes, without the solver"


@dataclass(frozen=True, slots=True)
class Ran:
    """The program returned."""

    how: str


@dataclass(frozen=True, slots=True)
class RunRefused:
    """The program raised what it raises for the sake of sizes."""

    how: str
    reason: str
    exception: str
    origin: Origin


@dataclass(frozen=True, slots=True)
class Inconclusive:
    """The outcome of a run that does not decide whether the program runs at these sizes."""

    reason: str
    raised: bool = False
    """The program raised this, and it is no matter of sizes: a defect of the program."""
    origin: Origin = field(default_factory=Origin)
    final: bool = False
    """No other run at these sizes says more: it took too long, or the data decide."""
    late: bool = False
    """The clock has broken it off, so that another time, or another machine, may say more."""


Outcome: TypeAlias = "Ran | RunRefused | Inconclusive"


class Fill(Enum):
    """The values of the floats in the inputs. The order matters: it decides which elements sorting chooses.
    """

    ZEROS = auto()
    ONES = auto()
    RISING = auto()
    FALLING = auto()


class Replayer:
    """Replays assignments on one target."""

    def __init__(self, target: Callable[..., Any], spec: Spec, limits: RunLimits = LIMITS) -> None:
        self.target, self.spec, self.limits = target, spec, limits
        self._system: System | None = None
        self._found: Unseen | None = None
        self._left = limits.total
        self._known: Held | None = None
        self.annotations = TargetAnnotations(target)

    def see(self, system: System) -> None:
        """Real kernels are asked from now on where the system says that fake ones do not see all."""
        self._system, self._found = system, None

    @property
    def _unseen(self) -> Unseen:
        """Returns what fake kernels do not see of the program, read off it when the first example runs."""
        if self._found is None:
            self._found = Unseen() if self._system is None else unseen(self._system)
        return self._found

    @alone
    def run(self, values: Mapping[str, int], accepted: bool) -> Outcome:
        """Returns the outcome of the program at these sizes; `accepted` is the expected outcome.

        Fake tensors decide where they agree with the expectation and see everything that matters. Otherwise
        real tensors decide, and so they do where the run is short and they agree. Only real ones can show
        that the program raises an error that is no refusal, since fake tensors may lack an operation.
        """
        if self._unseen and self._afford(values):
            real = self._real(values, accepted)
            if not isinstance(real, Inconclusive) or real.raised or real.final:
                return real
        elif self._is_short(values) and self._afford(values):
            real = self._attempt(values, REAL, Fill.ZEROS)
            if isinstance(real, Ran if accepted else RunRefused):
                return real
        fake = self._attempt(values, FAKE, Fill.ZEROS)
        if isinstance(fake, Ran if accepted else RunRefused):
            return fake
        if not self._moderate(values):
            if isinstance(fake, Ran):
                return Inconclusive("fake tensors check less, and real ones would be too large")
            if isinstance(fake, RunRefused) and self._unseen.caught:
                return Inconclusive("fake tensors raise other errors, and real ones would be too large")
            return replace(fake, raised=False) if isinstance(fake, Inconclusive) else fake
        real = self._real(values, accepted)
        if not isinstance(real, Inconclusive) or (real.raised and not isinstance(fake, RunRefused)):
            return real
        if isinstance(fake, Ran) and (self._unseen or _is_of_matrix(real)):
            return real  # fake tensors check less, so that it is no evidence that they run
        return replace(fake, raised=False) if isinstance(fake, Inconclusive) else fake

    def _real(self, values: Mapping[str, int], accepted: bool) -> Outcome:
        """Returns the outcome on real kernels: the expected outcome if some data leads to it, else that of
        the last run.
        """
        for fill in Fill if self._unseen and not accepted else (Fill.ZEROS, Fill.ONES):
            real = self._attempt(values, REAL, fill)
            if isinstance(real, Ran if accepted else RunRefused) or (
                isinstance(real, Inconclusive) and real.final
            ):
                return real
        if isinstance(real, Inconclusive):
            if not accepted and any(text in real.reason for text in _NO_KERNEL):
                exception, _, reason = real.reason.partition(": ")
                return RunRefused(REAL, reason, exception, real.origin)
            return real
        return self._by_data(real) or real

    def _by_data(self, real: Ran | RunRefused) -> Inconclusive | None:
        """Returns the reason why the data may explain a run that contradicts the claim about the sizes, if
        they may.

        Indices that the data choose may be valid for those that were tried, and not for others; those that
        are computed from integers of the inputs are invalid for some integers whatever the sizes.
        """
        if isinstance(real, Ran) and Origins.CHOSEN in self._unseen.indices:
            return Inconclusive("data decide the indices, and those that were tried are valid", final=True)
        if isinstance(real, RunRefused) and Origins.GIVEN in self._unseen.indices and _is_of_index(real):
            told = f"indices are computed from integers of the inputs, which are zeros: {real.reason}"
            return Inconclusive(told, origin=real.origin, final=True)
        return None

    def _is_short(self, values: Mapping[str, int]) -> bool:
        """Returns whether a run on real kernels takes about a tenth of a second at most."""
        if self._system is None or not self._moderate(values):
            return False
        return made(self._system, values) <= self.limits.short and self._weights() <= self.limits.short

    def _weights(self) -> int:
        """Returns the number of elements of all parameters and buffers together."""
        return sum(w.numel() for w in self.held().tensors.values() if not _is_uninitialized(w))

    def _afford(self, values: Mapping[str, int]) -> bool:
        """Returns whether the program may run on real kernels, whatever the outcome on fake tensors. If so,
        the cost is subtracted from the budget.
        """
        if self._system is None or not self._moderate(values):
            return False
        elements = made(self._system, values)
        cost = elements + self._weights()
        if elements > self.limits.made or cost > self._left:
            return False
        self._left -= cost
        return True

    def _moderate(self, values: Mapping[str, int]) -> bool:
        shapes = [d.type.shape for d in self.spec.inputs if isinstance(d.type, Tensor)]
        elements = sum(prod(sizes(shape, values)) for shape in shapes)
        return (
            elements <= self.limits.inputs
            and self._weights() <= self.limits.weights
            and all(w.device.type == "cpu" for w in self.held().tensors.values())
        )

    def _attempt(self, values: Mapping[str, int], how: str, fill: Fill) -> Outcome:
        """Runs the program once, and restores everything that it changed.

        Among real tensors those that the program holds are copied, since kernels write into running means
        without notice. Among fake tensors they are aliases, since a call with only real operands (`self.count
        += 1`) really runs.
        """
        from ...tracer.host.surroundings import surroundings_kept
        from ...tracer.recording.writes import Undone

        held = self.held()
        copied = how == REAL
        with (
            surroundings_kept(), _threads(1 if copied and self._is_short(values) else None),
            held.lent(copied=copied) as lent, Undone(lent.aliases),
            self.annotations.reported(),
        ):  # fmt: skip
            return _outcome(self.target, self.spec, values, how, fill, self.limits)

    def held(self) -> Held:
        """Returns the tensors that the program holds, looked up again if the program has been changed."""
        from ...tracer.recording.held import Held

        if self._known is None or not self._known.is_current():
            self._known = Held(self.target)
        return self._known


def at(spec: Spec, values: Mapping[str, int]) -> Spec:
    """The spec at concrete sizes, with nothing left to assume."""
    return Spec(tuple(replace(d, type=_at(d.type, values)) for d in spec.inputs), Domain())


def by_rules(path: Path) -> Outcome:
    """Returns the outcome by the rules, for a graph whose inputs have concrete sizes: each requirement is
    true or false.
    """
    for constraint in path.constraints:
        if constraint.formula is not True:
            if constraint.formula is not False:
                return Inconclusive(f"{constraint.formula} is open at concrete sizes: {constraint.reason}")
            origin = path.program.nodes[constraint.node].origin if constraint.node >= 0 else Origin()
            return RunRefused(RULES, constraint.reason, "", origin)
    if inexact := [note for note in path.notes if note.inexact]:
        return Inconclusive(inexact[0].reason)
    return RunRefused(RULES, path.end.reason, "", path.end.origin) if path.end.how == "raised" else Ran(RULES)


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


@contextlib.contextmanager
def _threads(number: int | None) -> Iterator[None]:
    """Makes torch use so many threads, if a number is given, until `surroundings_kept` ends.

    On a busy machine the threads of a short run wait for each other.
    """
    if number is not None:
        import torch

        torch.set_num_threads(number)
    yield


# ---- one run


def _outcome(
    target: Callable[..., Any], spec: Spec, values: Mapping[str, int], how: str, fill: Fill, limits: RunLimits
) -> Outcome:
    from ...tracer.bytecode.origins import REFUSALS, ModuleNames, of_error
    from ...tracer.host.deadline import BrokenOff, until
    from ...tracer.host.operators import compiler_error
    from ...tracer.host.submodules import submodules
    from ...tracer.host.surroundings import seed
    from ...tracer.patches.blame import is_programs
    from ...tracer.patches.caches import forgetting
    from ...tracer.patches.stand_ins import sources_of
    from ...tracer.plugins.announced import refusals
    from ...tracer.recording.binding import bind
    from ...tracer.recording.claims import checked

    modules = submodules(target)
    device = _device(target)
    refused: tuple[type[Exception], ...] = (*REFUSALS, *refusals())
    try:
        with (
            forgetting(sources_of(target, modules)),
            _fake_mode() if how == FAKE else until(limits.calls, limits.seconds),
            _uncompiled(),
            listening(checked(values)),
        ):
            seed(fill.value)
            bound = bind(target, spec.inputs, lambda declared: _build(declared, values, fill, device))
            target(*bound.args, **bound.kwargs)
    except BrokenOff as end:
        return Inconclusive(end.reason, final=True, late=end.late)
    except refused as error:
        told = f"{type(error).__name__}: {error}"
        if _is_other(error, how):
            raised = isinstance(error, RecursionError) or (how == REAL and bool(compiler_error(error)))
            return Inconclusive(told, raised, of_error(error, ModuleNames(target)))
        return RunRefused(how, str(error).strip(), type(error).__name__, of_error(error, ModuleNames(target)))
    except Exception as error:  # the user's program may raise anything; it is told
        if unknown(error):
            raise
        if type(error) is TypeError and is_programs(error):
            return RunRefused(how, str(error), type(error).__name__, of_error(error, ModuleNames(target)))
        return Inconclusive(f"{type(error).__name__}: {error}", True, of_error(error, ModuleNames(target)))
    return Ran(how)


def _build(declared: Declared, values: Mapping[str, int], fill: Fill, device: Any) -> Any:
    """The input at concrete sizes; integers are zeros, which are indices wherever any are."""
    import torch

    value = declared.type
    if isinstance(value, Tensor):
        dtype, shape = getattr(torch, value.dtype or "float32"), sizes(value.shape, values)
        if not (dtype.is_floating_point or dtype is torch.bool):
            return torch.zeros(shape, dtype=dtype, device=device)
        if dtype is torch.bool or fill in (Fill.ZEROS, Fill.ONES):
            return torch.full(shape, int(fill is not Fill.ZEROS), dtype=dtype, device=device)
        rising = torch.arange(prod(shape), device=device).reshape(shape)
        return (rising if fill is Fill.RISING else -rising).to(dtype)
    if isinstance(value, Number):
        return 0.5 if value.kind == "float" else int(fill is not Fill.ZEROS)
    return _at(value, values)


def _device(target: Any) -> Any:
    import torch

    if isinstance(target, torch.nn.Module):
        for tensor in (*target.parameters(), *target.buffers()):
            return tensor.device
    return torch.device("cpu")


ABSENT = (
    "torch not compiled with", "not linked with support for", "cannot initialize cuda", "no nvidia driver",
    "cannot access accelerator",
)
"""Words of an error that says that this machine has no such device."""
OTHERS = ("allocate", "out of memory", "not implemented for '", *ABSENT)
"""Words of an error that was raised for another reason than sizes."""
OF_FAKE_TENSORS = ("fake tensor", "faketensor", "tensor subclasses", "data pointer")
"""Words of an error that only fake tensors raise for such a reason."""

_CARRIED = "to have same metadata"
"""torch's message for a loop whose body returns another shape than it was given."""


_NO_KERNEL: Final = (
    "not implemented for '", "is not supported for complex", "is not intended to support complex"
)  # fmt: skip
"""torch's messages for a dtype that an operator does not take. Fake tensors take all."""


def _is_of_index(real: RunRefused) -> bool:
    """Returns whether the refusal is that of an index, or of a count."""
    told = real.reason.lower()
    return real.exception == "IndexError" or "index" in told or "negative" in told


def _is_uninitialized(tensor: Any) -> bool:
    """Returns whether the tensor is a lazy parameter, whose shape its module does not know yet."""
    from torch.nn.parameter import is_lazy

    return is_lazy(tensor)


def _is_of_matrix(outcome: Inconclusive) -> bool:
    """Returns whether a run has ended at a matrix that is singular or indefinite."""
    return outcome.reason.partition(":")[0] == "_LinAlgError"


def _is_other(error: Exception, how: str) -> bool:
    """Returns whether the error has another reason than sizes: missing data, a missing kernel, missing
    memory.
    """
    import torch

    from ...tracer.host.operators import compiler_error
    from ...tracer.host.tensors import FAKE_TENSORS_CANNOT

    if name := compiler_error(error):  # a higher-order operator's functions, compiled
        return name != "TorchRuntimeError" and _CARRIED not in str(error)
    others = (
        torch.linalg.LinAlgError,  # type: ignore[attr-defined]
        NotImplementedError,
        RecursionError,
        *FAKE_TENSORS_CANNOT,
    )
    words = OTHERS if how == REAL else (*OTHERS, *OF_FAKE_TENSORS)
    return isinstance(error, others) or any(word in str(error).lower() for word in words)


@contextlib.contextmanager
def _fake_mode() -> Iterator[None]:
    """Fake tensors all around; the traceback that torch logs for each refusal is kept quiet."""
    from ...tracer.host.tensors import FakeTensorMode

    log = logging.getLogger(FakeTensorMode.__module__)
    quiet = Setting(log, {"disabled": True}, "a refusal is no error")
    with quiet.in_force(), FakeTensorMode(allow_non_fake_inputs=True):
        yield


@contextlib.contextmanager
def _uncompiled() -> Iterator[None]:
    """While this lasts, functions that `torch.compile` compiled run uncompiled. Where nothing is compiled,
    dynamo is not imported.

    A higher-order operator always compiles its functions, and so checks them; that compilation stays.
    """
    import torch

    from ...tracer.host.operators import COMPILED_CALL, compiler_is_loaded

    if not compiler_is_loaded():
        yield
        return
    from ...tracer.host.patches import Function, Patch
    from ...tracer.patches.higher_order import uncompiled

    def compiling(compile_and_call: Function) -> Function:
        def compiled(*args: Any, **kwargs: Any) -> Any:
            with torch.compiler.set_stance("default"):
                return compile_and_call(*args, **kwargs)

        return compiled

    with Patch(*COMPILED_CALL, compiling, "functions are compiled and checked").in_force(), uncompiled():
        yield
