"""Records what a Python program does to tensors, without running a kernel: the rules are the kernels.

A run calls the target with tensors that have no data. Each call of a torch function arrives in `_Mode`, goes
to its rule and becomes a node with the user's line. torch's Python-level composites (`F.interpolate`,
`nn.LSTM.forward`) are entered, with their checks, so the calls that are recorded are those that reach torch's
C++ side. A call without symbolic arguments really runs. An operator without a rule runs on meta tensors at
two examples (`fallback.py`).

A comparison of sizes is a branch. The oracle decides whether it has one outcome for the whole domain.
Otherwise the path forks: the run takes one side, and another run, which repeats its decisions up to there,
takes the other. Each run gives a `Path`: its conditions, its program, its constraints, and how it ended.

A run that a rule refuses goes on as if the requirement held, so that one run finds several errors. Where the
program would catch torch's exception, the requirement is a branch, and one path raises it. A run that has to
end does so whatever the program catches. Answers of rules are cached for repeated calls and for other paths,
as long as the known facts are the same (`known.py`, `repeats.py`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
import math
import numbers
import time
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import BuiltinFunctionType, CodeType, FrameType, ModuleType
from typing import Any, Final, NamedTuple, NoReturn

import torch
from msgspec import structs
from torch.overrides import TorchFunctionMode

from ...constraints.contents.indices import NO_DATA, SAME_DATA
from ...constraints.contents.outcomes.dataless import CONSTANT
from ...constraints.contents.outcomes.ranges import CLEAR, Outlook
from ...constraints.contents.writing import assigned, takes_all
from ...constraints.engine.collector import collector_at_rest
from ...constraints.engine.generate import BadRules, Generator, RuleFailed, Rules, resolved
from ...constraints.engine.known import Known
from ...constraints.engine.lifting import bounded
from ...constraints.engine.overlap import CONVERTING, PROMOTED
from ...constraints.ir.language import (
    UNTRACKED,
    Dots,
    Dyn,
    Dynamic,
    Layout,
    Note,
    Number,
    Proportion,
    Quotient,
    Slice,
    Tensor,
    Value,
    tensors,
)
from ...constraints.ir.opnames import canonical, is_in_place
from ...constraints.ir.program import Argument, Node, Origin, Program, Ref, refs
from ...constraints.ir.spec import Declared, Spec
from ...constraints.ir.system import Answer, Condition, End, Oracle, Path, System, that_matter
from ...constraints.rules.reach import POINTWISE
from ...constraints.terms.dims import Dim, Term, evaluate, symbols
from ...constraints.terms.formula import Formula, all_of, any_of, eq, free_symbols, ge, holds, le, negate
from ...constraints.terms.intervals import interval
from ...constraints.terms.rows import Deeper, rank_of
from ..bytecode.handlers import is_guarded
from ..bytecode.operations import hands_on
from ..bytecode.origins import (
    REFUSALS,
    ModuleNames,
    caller,
    here,
    is_by_library,
    of_error,
)
from ..bytecode.spread import SpeltOut, Spread
from ..host.alone import alone
from ..host.interpreter import frame_above, shows_warnings
from ..host.model_state import ModelState, Modules, submodules
from ..host.modules import buffers_of, parameters_of
from ..host.operators import OpOverload, qualified_name, schema_of
from ..host.patches import Patch, together
from ..host.surroundings import seed, surroundings_kept
from ..host.tensors import (
    CALLS_WITH_OVERRIDES,
    FakeTensor,
    all_modes_off,
    is_of_transform,
    overrides_off,
    storage_id,
)
from ..patches import autocast
from ..patches.blame import has_attributes, is_ours, is_programs
from ..patches.caches import forgetting
from ..patches.chosen_modules import chosen_modules
from ..patches.higher_order import entered, uncompiled
from ..patches.integers import ARRAYS
from ..patches.stand_ins import AnotherSource, calls_builtins, sources_of, symbolic_builtins
from ..recorder import Recorder
from ..summaries.active import Calling
from ..summaries.loops import Loops
from ..summaries.merging import Calls
from ..summaries.plans import NotSummarised, Plans, Site, Written
from ..values import listed
from ..values.keys import MOST, beside, digits, is_of_size, length, missing, names_module
from ..values.numbers import Real, Size, returned, size
from ..values.random import DRAWN, UNSEEN, drawn_by_python, is_drawn
from ..values.real_tensors import dtype_name, is_identity, number_of_true, value_of, with_numbers
from ..values.sequences import (
    SEVERAL,
    Lazy,
    Repeated,
    counted,
    iterate,
    joined,
    lazy,
    makes_list,
    physical,
    settled,
    times,
)
from ..values.symbolic import (
    ABOUT_DATA,
    OPERATOR_ATTRIBUTES,
    QUESTIONS,
    Memory,
    RowSizes,
    Sizes,
    StoredMemory,
    SymbolicTensor,
    Within,
    answer,
)
from ..values.texts import Message, matters
from .fallback import estimated, leaves
from .gradients import Gradients
from .guesses import without_idle
from .held import Held
from .memory import OWNING, PLAIN, STRIDING, are_one, is_view, remember, storage
from .overlaps import lying, require_no_overlap
from .repeats import PLAIN_TENSORS, CallKey, FinishedCall, OperandSlot
from .writes import LENDING, NO_WRITES, RESHAPING, Writes, destinations, is_assigned, views_leaf, with_copies

MAX_PATHS = 1024
MANY_PATHS = 32
"""With more paths than this the paths of calls are merged."""
FEW = 8
"""The greatest divisor whose values are distinguished."""
MAX_VALUES = 16
"""At most this many values of a size that is needed as a number are tried, each on a path of its own."""

_NOT_AGAIN = "the program does not do the same when it is run again"


class NotCallable(Exception):
    """Raised where the target cannot be called as the spec says, or fails for a reason other than sizes."""

    def __init__(self, problem: str, origin: Origin | None = None) -> None:
        super().__init__(problem)
        self.origin = origin or Origin()
        """The line of the program that fails, if one does."""


class GaveUp(BaseException):
    """Raised where the run cannot go on.

    It is no Exception, so that a model's own `except Exception` does not swallow it.
    """


@dataclass(frozen=True, slots=True)
class BranchDecision:
    """The decision of a run at a branch; `value` is the number that was tried, if one was needed."""

    taken: bool
    forced: bool
    value: int | None = None
    asked: Formula | None = None  # None for a branch on data


@alone
def record(
    target: Callable[..., Any],
    spec: Spec,
    rules: Rules,
    oracle: Oracle,
    *,
    max_paths: int = MAX_PATHS,
    budget_s: float = 30.0,
    ways: float | None = None,
    along: Mapping[str, int] | None = None,
    progress: Callable[[int], None] | None = None,
    held: Held | None = None,
) -> tuple[System, list[str]]:
    """Returns all paths of the target over the domain, and the names of model attributes that a run assigned.

    Raises TargetError where the spec does not fit the target's parameters, or where the target fails on every
    path for a reason other than sizes. The system is incomplete if the bounds on paths and seconds do not
    suffice. With more paths than `ways` (32), the paths of calls may be merged. With `along`, only the path
    that these sizes take is recorded. `held` has the objects that the target refers to, if they are known.
    All of them are left unchanged.
    """
    bind(target, spec.inputs, lambda declared: declared)
    with (
        surroundings_kept(),
        (held or Held(target)).lent(copied=False) as aliases,
        contextlib.ExitStack() as rebound,
    ):
        return _recorded(
            target, spec, rules, oracle, aliases, rebound, max_paths, budget_s, ways, along, progress
        )


def _recorded(
    target: Callable[..., Any],
    spec: Spec,
    rules: Rules,
    oracle: Oracle,
    held: Sequence[torch.Tensor],
    rebound: contextlib.ExitStack,
    max_paths: int,
    budget_s: float,
    ways: float | None,
    along: Mapping[str, int] | None,
    progress: Callable[[int], None] | None,
) -> tuple[System, list[str]]:
    """As `record`, for a target whose tensors may be written into, as long as that is undone.

    Python's names stay `rebound` from the first path to the last, since that takes longer than a short path.
    """

    def ranges(*args: Any) -> Any:
        return run.loops.ranges(*args)

    started = time.monotonic()
    with collector_at_rest():
        modules = submodules(target)
        state, subject, plans = ModelState(target, modules), Subject.of(target, modules, held), Plans()
    rebound.enter_context(symbolic_builtins(subject.sources, ranges))
    plans.spelt_out = set()
    pending: list[tuple[BranchDecision, ...]] = [()]
    paths: list[Path] = []
    changed: dict[str, None] = {}
    incomplete = ""
    limits: dict[str, tuple[int, Origin]] = {}
    guessed: dict[int, frozenset[int]] = {}
    fails = False
    first = spec
    while pending:
        if not paths:
            first = spec
        if len(paths) >= max_paths or (paths and time.monotonic() - started > budget_s):
            incomplete = (
                f"{len(pending)} ways through the program were not looked at, after {len(paths)} paths"
            )
            break
        until = started + budget_s * (1 if paths else 2)
        seed()
        run = Recording(subject, spec, rules, oracle, pending.pop(), plans, until, along)
        try:
            with collector_at_rest():
                paths.append(run.run())
            guessed[len(paths) - 1] = frozenset(run.guessed)
            fails = run.failed
            pending.extend(run.forks)
            if (run.is_narrowed and pending) or (run.is_astray and run.spec is not first):
                pending, paths = [()], []
        except Deeper as wanted:
            run.deepen(wanted)
            pending, paths = [()], []
        except AnotherSource as found:
            rebound.enter_context(symbolic_builtins((found.module,), ranges))
            subject = dataclasses.replace(subject, sources=(*subject.sources, found.module))
            pending, paths = [()], []
        except NotSummarised as failed:
            plans.change(failed)
            pending, paths = [()], []
        except SpeltOut as found:
            plans.spelt_out = {*(plans.spelt_out or ()), found.site}
            pending, paths = [()], []
        else:
            if not plans.merging and len(paths) + len(pending) > (MANY_PATHS if ways is None else ways):
                plans.merging = True
                pending, paths = [()], []
        finally:
            run.close()
        spec = run.spec
        limits.update(run.limits)
        changed.update(dict.fromkeys(state.restore()))
        if progress:
            progress(len(paths))
    if fails and len(paths) == 1:
        end = paths[0].end
        raise NotCallable(f"the target fails for a reason other than sizes: {end.reason}", end.origin)
    paths = without_idle(paths, guessed, oracle)
    paths[:1] = [dataclasses.replace(p, notes=(*p.notes, *_limits(limits))) for p in paths[:1]]
    return System(spec.domain, tuple(paths), incomplete), list(changed)


def _limits(limits: Mapping[str, tuple[int, Origin]]) -> Iterator[Note]:
    for name, (most, where) in limits.items():
        told = f"{name} is looked at up to rank {most}: {where} needs every dim of it"
        yield Note("bounded-rank", told, -1)


def bind(
    target: Callable[..., Any], inputs: Sequence[Declared], build: Callable[[Declared], Any]
) -> inspect.BoundArguments:
    """Returns the target's arguments as the spec declares them, each leaf made by `build`.

    Raises TargetError, naming the target's parameters, where the two do not fit.
    """
    function = target.forward if isinstance(target, torch.nn.Module) else target
    roots: dict[str, Any] = {}
    for declared in inputs:
        _place(roots, declared, build(declared))
    try:
        signature = inspect.signature(function)
    except ValueError:  # a builtin (`torch.relu`): its arguments are given in the order of the spec
        return inspect.signature(lambda *given: None).bind(*roots.values())
    takes = ", ".join(signature.parameters) or "no arguments"
    if not any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
        for name in roots.keys() - signature.parameters.keys():
            raise NotCallable(f"the target has no parameter {name!r}; it takes ({takes})")
    kinds = {name: p.kind for name, p in signature.parameters.items() if name in roots}
    by_place: list[Any] = [inspect.Parameter.POSITIONAL_ONLY]
    if inspect.Parameter.VAR_POSITIONAL in kinds.values():  # `*rest` comes after all that stands before it
        by_place.append(inspect.Parameter.POSITIONAL_OR_KEYWORD)
    positional: list[Any] = []
    named = dict(roots)
    for name, kind in kinds.items():
        if kind is inspect.Parameter.VAR_POSITIONAL:
            rest = named.pop(name)
            positional.extend(rest if isinstance(rest, list) else [rest])
        elif kind in by_place:
            positional.append(named.pop(name))
    try:
        return signature.bind(*positional, **named)
    except TypeError as error:
        raise NotCallable(f"the inputs do not fit the target: {error}; it takes ({takes})") from None


def _place(roots: dict[str, Any], declared: Declared, value: Any) -> None:
    """Puts a value at its path: a string step makes a dict, an integer step a list."""
    holder: Any = roots
    path = declared.path
    for step, following in zip(path, (*path[1:], None), strict=True):
        if isinstance(holder, list):
            holder.extend([None] * (int(step) + 1 - len(holder)))
            inside = holder[int(step)]
        else:
            inside = holder.get(step)
        if following is None:
            inside = value
        elif inside is None:
            inside = [] if isinstance(following, int) else {}
        holder[step] = inside
        holder = inside


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

    @classmethod
    def of(
        cls,
        target: Callable[..., Any],
        modules: Modules | None = None,
        others: Sequence[torch.Tensor] = (),
    ) -> Subject:
        """Returns the subject.

        `others` are tensors that the program refers to, as parameters, buffers or elsewhere.
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
        return cls(target, device, ModuleNames(target, modules), names, tuple(owned), sources)


def _over(*args: Any) -> NoReturn:
    raise RuntimeError("this run is over")


class Recording(Recorder):
    """One run along one path."""

    def __init__(
        self,
        subject: Subject,
        spec: Spec,
        rules: Rules,
        oracle: Oracle,
        decided: tuple[BranchDecision, ...],
        plans: Plans,
        until: float = math.inf,
        along: Mapping[str, int] | None = None,
    ) -> None:
        generator = Generator(
            rules,
            spec.domain,
            count=self._count,
            chooser=self.truth,
            deeper=self._deeper,
            nothing=subject.nothing,
        )
        super().__init__(spec.domain, oracle, generator)
        self.subject, self.spec = subject, spec
        self.device, self.names = subject.device, subject.names
        self.kernels = "cpu" if subject.device.type == "meta" else subject.device.type
        """The type of the device whose kernels run the program; the CPU for a model without data."""
        self.generator.on_cpu = self.kernels == "cpu"
        self.loops: Loops = Loops(self, plans)
        self.calls: Calls = Calls(self, isinstance(subject.target, torch.nn.Module))
        self.decided = decided
        self.until = until
        """The time, by the monotonic clock, after which no new branch is taken: a `while` may have endlessly
        many.
        """
        self.along = along
        """The sizes whose path is taken; None where all paths are."""
        self.forks: list[tuple[BranchDecision, ...]] = []
        self._over = False
        self._catching = False
        """Whether the requirements of a call are being examined whose refusal the program would catch."""
        self._filters, self._warns = [*warnings.filters], _handling_of_warnings()
        """The handling of warnings when the run begins."""
        self.failed = False
        """Whether an error of the program's has ended the run whose type is not that of a refusal."""
        self._stopped: BaseException | None = None
        """The reason why the run has to end, whatever the program catches."""
        self._made: list[BranchDecision] = []
        self.overwritten: dict[int, tuple[torch.Tensor, SymbolicTensor]] = {}
        """Real tensors that the program has written into, each with its present stand-in, by identity."""
        self.gradients = Gradients(self)
        self.followed: set[int] = set()
        """The memories of real tensors of which the elements were noted, as `_placed` names them."""
        self.copies: list[tuple[torch.Tensor, torch.Tensor]] = []
        """Real tensors of which the elements were noted, or that the program was lent, each with a copy: if
        they differ in the end, something has written that is not seen, such as NumPy.
        """
        self._memories: dict[int, StoredMemory] = {}
        """The memories of real tensors, as `_placed` names them."""
        self._changed: set[int] = set()
        """The memories of real tensors of whose elements sizes may decide some, since they were written into.
        """
        self._constants: dict[int, tuple[weakref.ref[torch.Tensor], Site]] = {}
        """By identity, constants that the program has made, and the call that made each."""
        self.constants_written = False
        """Whether a tensor of constants was written into. Then others, which it may be a view of, may have
        changed, too.
        """
        self.turns: list[Condition] = []
        """The branches in calls whose paths are merged."""
        self.guessed: list[int] = []
        """The nodes of branches that sizes decide, but whose outcome is not tracked."""
        self.dataless_floats = False
        self.attributes: set[str] = set()
        self.keys: dict[Dim, Dim] = {}
        """Sizes that were keys, each with the first key that is equal to it."""
        self.hashed: dict[CodeType, dict[Dim, None]] = {}
        """Sizes that were keys, by the code that hashed them."""
        self.limits: dict[str, tuple[int, Origin]] = {}
        """Ranks that are examined up to a bound, and the call that needs them."""
        self.is_narrowed = False
        """Whether a rank was bounded after a branch was taken. Then fewer paths may exist from the start."""
        self.spelt_out = plans.spelt_out
        """The sites where star arguments are written one by one."""
        self.spread: Spread | None = None
        """The star arguments on their way into a call."""
        self.is_astray = False
        """Whether the run did not reach the branch that it was to decide, as may happen where less of a row
        was declared before.
        """

    def close(self) -> None:
        """Releases the target and its weights, and all references back to the run, so that everything is
        freed with its last user and needs no garbage collection.
        """
        self.subject = dataclasses.replace(self.subject, target=_over)
        self.real.clear()
        self.generator.count = self.generator.chooser = self.generator.deeper = None
        self.loops.close()
        self.calls.close()

    # ---- rows

    def _deeper(self, wanted: Deeper) -> None:
        """Declares more of the rows and goes on; during a loop that is being summarised everything starts
        again.
        """
        if self.loops.summarising is not None or self.loops.supposing or self.loops.calls:
            raise self.stopping(wanted)
        self.deepen(wanted)

    def deepen(self, wanted: Deeper) -> None:
        """Declares more of the rows, for this run and those after it."""
        self.is_narrowed |= bool(wanted.bounded) and not all(made.forced for made in self._made)
        self.limits.update((name, (most, here(self.names))) for name, most in wanted.bounded.items())
        self.declare(self.domain.deepened(wanted))
        self.spec = dataclasses.replace(self.spec, domain=self.domain)
        self.oracle.domain = self.domain

    # ---- one run

    def run(self) -> Path:
        """Calls the target once and returns the path."""
        end = End()
        outputs: list[tuple[str, Argument]] = []
        target = self.subject.target
        bound = bind(target, self.spec.inputs, self._input)
        drawn = drawn_by_python()
        try:
            with (
                _entering_composites(),
                entered(self),
                forgetting(self.subject.sources),
                chosen_modules(self),
                uncompiled(),
                self.calls.followed(),
                _Mode(self),
            ):
                try:
                    result = target(*bound.args, **bound.kwargs)
                finally:
                    self.raise_stopped()
            outputs = list(self._outputs(result))
        except BadRules:
            raise
        except GaveUp as reason:
            end = End("gave-up", str(reason), of_error(reason, self.names))
        except Exception as error:  # noqa: BLE001 (the target is the user's code)
            # What a loop hands on has none of the attributes that the program has set, nor has an operator's
            # result those of an operand, which it may be in an eager run.
            match error:
                case AttributeError(obj=obj) if has_attributes(obj):
                    lost = bool(self.loops.ended) or error.name in self.attributes
                case KeyError():
                    branched = any(made.asked is not None and not made.forced for made in self._made)
                    lost = not branched and not any(map(is_of_size, error.args))
                case _:
                    lost = False
            programs = not lost and is_programs(error)
            who = "the recorder failed: " if is_ours(error) and not programs else ""
            text = str(error).replace(f"'{SymbolicTensor.__name__}'", "'Tensor'")
            told = f"{who}{type(error).__name__}: {text}"
            where, by_library = of_error(error, self.names), is_by_library(error)
            end = End("raised" if programs else "gave-up", told, where, by_library)
            self.failed = programs and not isinstance(error, REFUSALS)
        finally:
            failure = self.loops.finish()
        if failure is not None:
            raise failure
        self.known()  # also what the last call requires of sizes that a `while` leaves
        if self.supposes is not None and end.how == "raised":
            self.supposes()
        if self.spread is not None:
            raise SpeltOut(self.spread.site)
        if end.how != "gave-up" and len(self._made) < len(self.decided):
            end = End("gave-up", _NOT_AGAIN)
        self.is_astray = end.reason == _NOT_AGAIN
        self._over = True
        said = self.generator.said
        if end.how == "raised":  # that some data raise refuses no sizes, whether or not there are such data
            said.notes[:] = [note for note in said.notes if note.reason != SAME_DATA]
        if not all(map(_are_alike, self.copies)):
            said.notes.append(Note("approximate", UNSEEN, -1))
        if drawn_by_python() != drawn:
            said.notes.append(Note("approximate", DRAWN, -1))
        asked = [c.formula for c in (*self.conditions, *self.turns) if c.formula is not None]
        return Path(
            Program(tuple(self.inputs), tuple(self.nodes), tuple(outputs), tuple(self.iterations)),
            self.values,
            tuple(said.constraints),
            that_matter(said.notes, asked),
            tuple(self.conditions),
            end,
            tuple(said.unbacked.items()),
            tuple(dict.fromkeys(self.turns)),
        )

    def _input(self, declared: Declared) -> Any:
        value = declared.type
        if isinstance(value, Tensor | Dynamic):
            ref = self.new_input(declared.name, value)
            dtype = value.dtype if isinstance(value, Tensor) and value.dtype else "float32"
            return SymbolicTensor(self, value, ref, getattr(torch, dtype), owns=True, is_plain=True)
        return self._passed(value)

    def _passed(self, value: Value) -> Any:
        """Returns an input other than a tensor, as the program gets it; the value of a float is unknown."""
        if isinstance(value, tuple):
            return tuple(map(self._passed, value))
        if isinstance(value, Number):
            return Real(self, None, None)
        return size(self, value) if isinstance(value, Term) else value

    def _outputs(self, result: Any, name: str = "") -> Iterator[tuple[str, Argument]]:
        """Yields the leaves of the target's result, named by their position: `logits`, `0`, `hidden[1]`."""
        if dataclasses.is_dataclass(result) and not isinstance(result, type) and not isinstance(result, dict):
            result = {f.name: getattr(result, f.name) for f in dataclasses.fields(result)}
        if isinstance(result, Mapping):
            for key, part in result.items():
                yield from self._outputs(part, f"{name}.{key}" if name else str(key))
        elif type(result) in SEVERAL:
            for place, part in enumerate(physical(result)):
                if type(part) is not Repeated:
                    yield from self._outputs(part, f"{name}[{place}]")
                elif self.truth(ge(part.count, 1)):
                    yield from self._outputs(part.at(0), f"{name}[{place}…]")
        elif isinstance(result, list | tuple) and type(result) is not Sizes:
            fields = getattr(result, "_fields", range(len(result)))
            for key, part in zip(fields, result, strict=True):
                yield from self._outputs(part, f"{name}[{key}]" if name else str(key))
        elif isinstance(result, torch.Tensor):
            if isinstance(result, SymbolicTensor):
                self._no_ended(result.value)
            yield name or "output", self._ref(result)
        elif type(result) in (Size, Sizes, int, float, bool, str, type(None)):
            yield name or "output", self.argument(self.lower(result, {}), {})

    # ---- what sizes ask

    def truth(self, formula: Formula) -> bool:
        if self._over:
            self.give_up("the program keeps a size of an earlier run")
        formula = self.generator.equations.simplify_formula(formula)
        if self.loops.plans.repetitions and (goes_on := self.loops.repeats(formula, self._asked)) is not None:
            return goes_on
        return self._asked(formula)

    def _asked(self, formula: Formula) -> bool:
        if isinstance(formula, bool):
            return formula
        self.loops.forget_none(names := free_symbols(formula))
        if (fails := self.fails_on(names)) is not None and self.judged(formula) is Answer.SOMETIMES:
            self.supposes = fails
        if formula in self.settled:
            self.loops.ends(formula)
            return self.settled[formula]
        return self._branch(formula, None)

    def varies(self, dim: Dim) -> bool:
        return self.loops.varies(dim)

    def number(self, term: Term) -> int:
        self.loops.forget_none(symbols(term))
        if (fails := self.fails_on(symbols(term))) is not None:
            fails()
        bounded(self.generator, term)
        if self.loops.supposing:
            return self._suppose_number(term)
        if self.loops.varies(term):
            self.give_up(f"{term} is needed as a number")
        for _ in range(MAX_VALUES):
            step = len(self._made)
            if step < len(self.decided):
                value = self.decided[step].value
                if value is None:
                    self.give_up(_NOT_AGAIN)
            else:
                value = self._example_of(term)
            equal = eq(term, value)
            if isinstance(equal, bool) or self._branch(equal, value):
                return value
        return self.give_up(f"{term} is needed as a number; {MAX_VALUES} values of it were tried")

    def place(self, term: Term, frame: FrameType) -> int:
        """Returns the value of a size where this frame needs it.

        Where it is an index of a list, one number beyond each end represents all others there.
        """
        if makes_list(frame):
            return 0
        most = None if self.loops.supposing or self.loops.varies(term) else length(frame)
        if most is not None and self.truth(ge(term, most)):
            return most + 1
        if most is not None and self.truth(le(term, -1 - most)):
            return -2 - most
        return self.number(term)

    def between(self, dim: Dim) -> tuple[int | None, int | None] | None:
        """Returns bounds of a dim that only the data decide; None for another dim."""
        names = symbols(dim)
        if not names or not names <= self.generator.said.unbacked.keys():
            return None
        low, high = interval(dim, self.generator.bounds.ranges)
        return None if low == -math.inf else int(low), None if high == math.inf else int(high)

    def divisor(self, term: Term) -> Dim:
        """Returns the divisor, where paths of calls are merged and it has few values as a number on each
        path: divisions by numbers are easy to reason about.
        """
        if not self.loops.plans.merging:
            return term
        with self.loops.unwatched():
            if not self.certain(all_of((ge(term, 1), le(term, FEW)))):
                return term
        value = next((value for value in range(1, FEW) if self.truth(eq(term, value))), FEW)
        self.assume(eq(term, value))  # also where it is no news: sizes are rewritten by it
        return value

    def _example_of(self, term: Term) -> int:
        example = self.along or self.oracle.example(self.known())
        if example is None:
            self.give_up(f"{term} is needed as a number, and no example of it was found")
        return evaluate(term, {**dict.fromkeys(free_symbols(eq(term, 0)), 1), **example})

    def insists(self, frame: FrameType) -> None:
        """Called where a part of Python needs a number.

        Restarts the recording if the frame's module is the user's and has no stand-ins for Python's names
        yet.
        """
        module = calls_builtins(frame)
        if module is not None and module not in self.subject.sources:
            self._over = True
            raise self.stopping(AnotherSource(module))

    def writes(self, frame: FrameType) -> None:
        if not self._over and matters(frame, Recording.run.__code__):
            self._approximate("what becomes of a text with or about a size is not followed")

    def text(self, size: Size, frame: FrameType) -> str:
        """Returns the text of a size: its digits, where a key of the container in which this frame looks the
        text up contains them.
        """
        term = size.written()
        if isinstance(term, Term) and self.generator.is_data(term) and names_module(frame):
            return str(term)  # any of the modules whose names fit
        numbers = None if isinstance(term, int) else digits(frame)
        if numbers is None:
            self.writes(frame)
            return str(term)
        if len(numbers) > MOST:
            return str(int(size))
        found = next((number for number in numbers if self.truth(eq(term, number))), None)
        return missing(term) if found is None else str(found)

    def _approximate(self, reason: str, where: Formula = True) -> None:
        """Marks a point outside of any operator as approximate, by a node of its own."""
        self.generator.node = len(self.nodes)
        self.nodes.append(Node("require", (("condition", True),), (), here(self.names)))
        self.generator.approximate(reason, where=where)

    def hash(self, size: Size, frame: FrameType) -> int:
        """Returns the hash of a key: equal keys have that of the first of them."""
        key = size.written()
        self._no_ended(key)
        others = None if isinstance(key, int) else beside(frame)
        if others is not None and isinstance(key, Term):
            if not others.are_all:
                self._approximate("not all keys are known among which a size is looked up")
            keys = [o for o in others.keys if type(o) is int or o.run is self]
            key = self._first_of(key, keys, frame.f_code)
        key = self.keys.get(key, key)
        return hash(key) if isinstance(key, int) else hash((id(self), key))

    def _first_of(self, key: Term, others: list[Any], code: CodeType) -> Dim:
        """Returns the first of these keys, and of those that the code has hashed before, that equals this
        one.
        """
        before = self.hashed.setdefault(code, {})
        if len(others) > MOST:
            return self.number(key)
        for other in (*(o if type(o) is int else o.written() for o in others), *before):
            if other != key and self.truth(eq(key, other)):
                first = self.keys.get(other, other)
                if self.keys.setdefault(key, first) != first:
                    self.give_up(f"{key} and {first}, which are equal here, were keys of their own before")
        before[key] = None
        return self.keys.setdefault(key, key)

    def coin(self, outlook: Outlook = CLEAR) -> bool:
        for known, where in ((True, outlook.true), (False, outlook.false)):
            if self.truth(where):
                return known
        before, unknown = len(self.conditions), outlook.unknown
        if unknown is not False and self.certain(negate(unknown)):
            unknown = False
        outcome = self._branch(None, None) if unknown is False else self.guess(NO_DATA, unknown)
        if outcome not in outlook.possible:
            self._approximate(SAME_DATA)
        settled = outlook.usual.always if outcome else outlook.usual.never
        if settled is not False and len(self.conditions) > before:
            self.conditions[-1] = dataclasses.replace(self.conditions[-1], settled=settled)
        return outcome

    def times(self, members: list[Any] | tuple[Any, ...], count: Term) -> Any:
        if self.domain.rows:
            return members * self.number(count)
        return times(self, members, count)

    def guess(self, reason: str, where: Formula = True) -> bool:
        self.guessed.append(len(self.nodes))
        self._approximate(reason, where)
        return self.coin()

    def require(self, formula: Formula, reason: str, error: type[Exception] | None = RuntimeError) -> None:
        """Adds a requirement outside of any operator (a division of sizes, a `torch._check`) as a node of its
        own, so that it has an origin. With `error` None, nothing is raised in an eager run (a claim).
        """
        if formula is True:
            return
        self.loops.forget_none(free_symbols(formula))
        self.generator.node = len(self.nodes)
        self.nodes.append(Node("require", (("condition", formula),), (), here(self.names)))
        before = len(self.generator.said.constraints)
        self.generator.require(formula, reason, error or RuntimeError)
        if error is not None:
            self._raise_if_caught(before)

    def give_up(self, reason: str) -> NoReturn:
        """Ends the run; in a loop that is summarised, or a call that is merged, only the attempt at that."""
        loop = self.loops.summarising
        if loop is not None:
            loop.fail(reason)
        call = next((call for call in reversed(self.loops.calls) if call.turns), None)
        if call is not None:
            call.give_up(reason)
        self.end(reason)

    def end(self, reason: str) -> NoReturn:
        """Ends the run, and all attempts within it."""
        raise self.stopping(GaveUp(reason))

    def stopping(self, error: BaseException) -> BaseException:
        """Notes why the run has to end, so that it is raised again if the program catches everything."""
        self._stopped = self._stopped or error
        return error

    def raise_stopped(self) -> None:
        if self._stopped is not None:
            raise self._stopped

    @property
    def aside(self) -> tuple[Any, ...]:
        """Returns a snapshot of the run's notes on constants, keys and sizes that data decide."""
        written = tuple((key, id(now)) for key, (_, now) in self.overwritten.items())
        hashed = sum(map(len, self.hashed.values()))
        return written, self.constants_written, len(self.keys), hashed, self.position.unbacked

    def datum(
        self,
        dtype: str | None,
        dataless: Formula = False,
        about: Callable[[str, float], Outlook] | None = None,
    ) -> Any:
        """A number that the data decides: an integer is a fresh size, a float a Real, with what is known
        `about` comparisons of it.
        """
        if dtype == "bool":
            return self.coin(Outlook(unknown=dataless))
        if dtype is not None and dtype.startswith(("int", "uint")):
            if dataless is not False:
                self._approximate(NO_DATA, dataless)
            return Size(self, self.generator.fresh("data", None, None))
        self.dataless_floats = any_of((self.dataless_floats, dataless))
        found = Real(self, None, None)
        found.about = about
        return found

    def _branch(self, formula: Formula | None, value: int | None) -> bool:
        with self.loops.unwatched():
            return self._way(formula, value)

    def _way(self, formula: Formula | None, value: int | None) -> bool:
        loops = self.loops
        loops.raise_failure()
        self.raise_stopped()
        if loops.supposing:
            return self._suppose(formula)
        turning: Calling | None = loops.turning(formula) or self.calls.turning
        step = len(self._made)
        known = Answer.SOMETIMES
        if formula is not None and (turning is not None or step >= len(self.decided)):
            known = self.oracle.decide(formula, self.known())
        forced = known in (Answer.ALWAYS, Answer.NEVER)
        if turning is not None and not forced:
            return turning.way(formula)
        if step < len(self.decided):
            decision = self.decided[step]
            if decision.asked != formula:
                self.give_up(_NOT_AGAIN)
        else:
            if time.monotonic() > self.until:
                self.give_up(f"the budget ran out, after {step} branches")
            taken = known is not Answer.NEVER if forced or self.along is None else self._at(formula)
            decision = BranchDecision(taken, forced, value, formula)
            if not forced and self.along is None:
                if value is None:
                    self.calls.fork()
                    loops.notes_test(formula)
                self.forks.append((*self._made, BranchDecision(False, False, value, formula)))
        self._made.append(decision)
        condition = Condition(
            formula, decision.taken, here(self.names), decision.forced, caught=self._catching
        )
        self.branch(condition)
        if loops.calls:
            self.calls.note(condition)
        return decision.taken

    def _at(self, formula: Formula | None) -> bool:
        """Returns whether the formula holds at the sizes whose path is taken; True where the data decide."""
        if formula is None or not free_symbols(formula) <= (along := self.along or {}).keys():
            return True
        return holds(formula, along)

    def _suppose(self, formula: Formula | None) -> bool:
        """Returns some possible outcome of a branch that only a guess depends on."""
        if formula is None:
            return True
        answer = self.judged(formula)
        for loop in self.loops.guessing if answer is Answer.SOMETIMES else ():
            loop.suspects_last(formula)
        taken = answer is not Answer.NEVER
        self.assume(formula if taken else negate(formula))
        return taken

    def _suppose_number(self, term: Term) -> int:
        value = self._example_of(term)
        self.assume(eq(term, value))
        return value

    def _count(self, dim: Dim) -> int:
        return dim if isinstance(dim, int) else self.number(dim)

    def iterator(self, value: Lazy, frame: FrameType) -> Iterator[Any]:
        return self.loops.iterator(value, frame)

    def iterate(self, tensor: SymbolicTensor, frame: FrameType) -> Iterator[Any]:
        """Returns the rows of a tensor, for the code that the frame runs."""
        if isinstance(tensor.value, Tensor):
            scalar = "a scalar has no rows to iterate over"
            self.require(ge(rank_of(tensor.value.shape), 1), scalar, TypeError)
        rows = lazy(tensor)
        return iterate(rows, frame) if rows is not None else iter(tensor.unbind(0))

    # ---- calls

    def call(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Returns the result of a torch function that the program calls with something symbolic."""
        name, spelling = _spelled(func)
        if name in _ACCESS:
            return self._attribute(name, func.__self__.__name__, args)
        if isinstance(func, OpOverload):
            return self.operator(spelling, args, kwargs)
        if name == "requires_grad_":
            self.gradients.asked(args[0], *args[1:] or kwargs.values() or (True,))
        question = QUESTIONS.get(name) or listed.QUESTIONS.get(name)
        if question is not None and args and isinstance(args[0], SymbolicTensor):
            return question(self, *args, **kwargs)
        if func is _WHERE:  # its tensor is not the condition
            args, kwargs = (), {**dict(zip(("input", "condition", "other"), args, strict=False)), **kwargs}
        if name in _MAKES_TENSORS and not _tensor_among(args, kwargs):
            args = (self.operator("scalar_tensor", (args[0],), {"dtype": torch.int64}), *args[1:])
        return self.operator(spelling, args, kwargs, func)

    def _attribute(self, how: str, name: str, args: tuple[Any, ...]) -> Any:
        tensor = args[0]
        if how == "__get__":
            if name in OPERATOR_ATTRIBUTES:
                return self.operator(OPERATOR_ATTRIBUTES[name], args[:1], {})
            ask = answer(name)
            if ask is None:
                return self.give_up(f"the attribute {name} of a tensor without data")
            return ask(self, tensor)
        if how == "__set__" and name == "data":
            data = args[1] if isinstance(args[1], SymbolicTensor) else self._in_place_of(args[1])
            if not isinstance(tensor, SymbolicTensor):
                tensor = self._overwrite(tensor, SymbolicTensor(self, data.value, data.ref, tensor.dtype))
            tensor.value, tensor.ref = data.value, data.ref
            tensor.lies_in(Within(data.memory, 0))
        elif how == "__set__" and name == "requires_grad" and isinstance(tensor, SymbolicTensor):
            self.gradients.asked(tensor, args[1])
            QUESTIONS["requires_grad_"](self, tensor, args[1])
        return None

    def operator(self, spelling: str, args: tuple[Any, ...], kwargs: dict[str, Any], func: Any = None) -> Any:
        """Applies the rule of an operator, records the node and returns the program's result."""
        if self.loops.failure is not None or self._stopped is not None:
            self.loops.raise_failure()
            self.raise_stopped()
        if self._made and time.monotonic() > self.until:  # its own branches ask for no size any more
            self.end(f"the budget ran out, after {len(self._made)} branches")
        if self.spread is not None:
            self.spread = self.spread.after(spelling, args, kwargs, caller())
        if torch.is_autocast_enabled(self.kernels):
            args, kwargs = autocast.cast(self, canonical(spelling), args, kwargs)
        op = canonical(spelling)
        if op not in _SILENT and self._handles_warnings_otherwise():
            self.give_up(f"whether {op} warns decides what the program does")
        if op in listed.TAKING:
            args = listed.with_tensors(self, op, args)
        if (written := _written(op, args, kwargs)) is not None and self._stands_in(written):
            args, kwargs = self.present(args), self.present(kwargs)
            written = _written(op, args, kwargs)
        if written is not None and torch.is_grad_enabled() and op not in NO_WRITES:
            self._require_no_leaf(op, written)
            if kwargs.get("out") is not None:
                self._require_no_gradients(op, args, written)
        call = CallKey(self, spelling, args, kwargs)
        known = self.generator.known
        key = call.key, *known.origins(call.values)
        found = known.repeated.get(key)
        if found is not None and not self.loops.ended:
            return self._begun(self._repeat(found, call, args), kwargs)
        if op in listed.LISTED and (several := listed.LISTED[op](args, kwargs)) is not None:
            return several
        args, kwargs, counts = counted(self, op, args, kwargs)
        if op in ("getitem", "setitem"):
            args = (args[0], _index(args[1]), *args[2:])
        ids: dict[int, Ref] = {}
        values = tuple([self.lower(a, ids) for a in args])
        named = {k: self.lower(v, ids) for k, v in kwargs.items()}
        generator = self.generator
        lowered = tensors((*values, *named.values()))
        generator.contents.about([(t, ids[id(t)].id) for t in lowered if id(t) in ids])
        generator.node = index = len(self.nodes)
        origin = here(self.names)
        # The node's place is taken before its rule runs, so that branches inside the rule come after it.
        self.nodes.append(Node(op, (), (), origin))
        before = len(generator.said.constraints)
        before_call = values[0] if values else None
        generator.storage = storage(args[0]) if op in STRIDING and args else None
        generator.lying = lying(self, op, args, values)
        arguments, result = self._ask(op, values, named)
        if not self.loops.watches:
            generator.take_for_valid()
        if written is not None:
            given = (*args, *kwargs.values())
            into = result if kwargs.get("out") is not None else None
            require_no_overlap(self, op, written, arguments, given, into)
        self._raise_if_caught(before)
        answered = None
        writes = written is not None
        if generator.repeatable and not counts and (slots := call.slots) is not None and (
            not writes or (args and args[0] is written and call.writes_data(written))
        ) and not isinstance(result, Number):
            told = tuple([(k, self.argument(v, slots)) for k, v in arguments.items()])
            answered = FinishedCall.of(op, told, result, is_view(op, arguments), writes)
            generator.known.repeated[key] = answered
        if result is None:
            result = estimated(self, func, args, kwargs)
        if counts and isinstance(result, Tensor):
            result = joined(op, arguments, counts, result)
            arguments = {**arguments, "counts": counts}
        results: list[int] = []
        if "out" in named:
            result = self._into(op, result, named["out"])
        targets = [(t, t.value) for t in leaves((written,)) if isinstance(t, SymbolicTensor)]
        lifted = self._lift(result, op, ids, results, written)
        for target, before_writing in targets:
            if not results and isinstance(before_writing, Tensor):
                left = before_writing.elements and UNTRACKED
                if op == "setitem":
                    put = arguments["index"], arguments["value"]
                    left = assigned(before_writing, *put, generator.at_least)
                target.value = structs.replace(before_writing, elements=left)
            self._has_written(op, target, before_writing)
            if op in ("resize_", "resize_as_", "set_"):
                target.memory.whole().owner = None
            if op == "set_":
                self._move(target, args[1:], kwargs)
        if answered is not None:
            node_arguments = answered.arguments_of(call.operands)
        else:
            node_arguments = tuple([(k, self.argument(v, ids)) for k, v in arguments.items()])
        self.nodes[index] = Node(op, node_arguments, tuple(results), origin)
        for target, _ in targets:
            self._overwrites(target, self.nodes[index])
        if is_view(op, arguments):
            remember(self.nodes[index], args, before_call, lifted)
        return self._begun(lifted, kwargs)

    def _begun(self, made: Any, kwargs: dict[str, Any]) -> Any:
        """Returns the result of a call, noted as a leaf if it was asked to require gradients."""
        if kwargs.get("requires_grad") is True and isinstance(made, SymbolicTensor):
            made.memory.is_leaf = True
            self.gradients.asked(made, True)
        return made

    def _handles_warnings_otherwise(self) -> bool:
        """Returns whether a warning shows other effects than at the beginning of the run."""
        if warnings.filters == self._filters and shows_warnings() == self._warns[0]:
            return False
        return _handling_of_warnings() != self._warns

    def _require_no_leaf(self, op: str, written: Any) -> None:
        """Requires that no tensor that a call writes into is a leaf that requires gradients, or views one."""
        for tensor in leaves((written,)):
            if isinstance(tensor, SymbolicTensor) and tensor._memory and tensor._memory.is_of_leaf():
                self.require(False, f"{op} writes into a leaf that requires gradients, outside of no_grad")

    def _require_no_gradients(self, op: str, operands: tuple[Any, ...], out: Any) -> None:
        """Requires that neither the operands nor the `out=` of a call require gradients."""
        tensors = [leaf for leaf in leaves((operands, out)) if isinstance(leaf, torch.Tensor)]
        required = self.gradients.required(tensors)
        reason = f"{op} has no `out=` where an operand requires gradients"
        if required:
            self.require(False, reason)
        elif required is None:
            self._approximate(reason)

    def requires_gradients(self, tensor: torch.Tensor) -> bool:
        required = self.gradients.required([tensor])
        if required is None:
            return self.guess("whether a tensor requires gradients is not known")
        return required

    def _ask(
        self, op: str, args: tuple[Value, ...], kwargs: dict[str, Value]
    ) -> tuple[dict[str, Any], Value | None]:
        """Returns the arguments by name and the answer of an operator's rule.

        Handlers of the program do not see a failure of the rule.
        """
        try:
            with self.loops.unwatched():
                return self.generator.call(op, args, kwargs)
        except RuleFailed as failed:
            reason = str(failed)
        except RecursionError as error:
            reason = f"RecursionError: {error}"
        except BadRules as error:
            raise self.stopping(error) from None
        self.end(reason)

    def _repeat(self, found: FinishedCall, call: CallKey, args: tuple[Any, ...]) -> Any:
        """Records the node of a call whose rule has answered before."""
        self.generator.node = index = len(self.nodes)
        self.nodes.append(_COMING)
        origin, value = here(self.names), self.generator.again(found.result)
        results: list[int] = []
        if found.writes:
            self.generator.written(call.values[0])
            lifted = self._lift(value, found.op, {}, results, args[0])
            self._has_written(found.op, args[0], call.values[0])
        else:
            lifted = self._lift(value, found.op, {}, results)
        self.nodes[index] = Node(found.op, found.arguments_of(call.operands), tuple(results), origin)
        if found.writes:
            self._overwrites(args[0], self.nodes[index])
        if found.is_view:
            remember(self.nodes[index], args, call.values[0] if call.values else None, lifted)
        return lifted

    def _has_written(self, op: str, written: SymbolicTensor, before: Any) -> None:
        """Notes that a call has written into the tensor, whose value was `before`.

        Of real tensors in its memory of whose elements sizes may decide some, stand-ins take the place.
        """
        memory = None if written._memory is None else written._memory.whole()
        if isinstance(memory, StoredMemory):
            known = [(part, self.real_tensor(part)[1]) for part, _ in memory.parts.values()]
            values = (before, written.value, *(value for _, value in known))
            if any(isinstance(value, Tensor) and value.elements is not None for value in values):
                self._changed.add(memory.key)
                for part, _ in known:
                    self.since(part)
        if _other_sizes(before, written.value):
            self._has_reshaped(op, written, before)
        written.is_written()
        if isinstance(before, Tensor):
            self.constants_written |= before.dtype == "bool" or before.elements is not None
        self._check_written(op, written, before)

    def _has_reshaped(self, op: str, tensor: SymbolicTensor, before: Any) -> None:
        """Gives the shape of a tensor that was changed in place to all that are the same tensor: operators
        return their operand where they have nothing to do.
        """
        shapes = [value.shape if isinstance(value, Tensor) else None for value in (before, tensor.value)]
        for other in [found() for found in tensor.memory.whole().tensors]:
            if other is None or other is tensor:
                continue
            same = are_one(other.memory, tensor.memory)
            if same:
                other.value, other.ref = tensor.value, tensor.ref
            elif same is None and (op in RESHAPING or shapes[0] != shapes[1]):
                self.give_up(f"{op} changes the shape of a tensor that another one may be")

    def _move(self, tensor: SymbolicTensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Moves a tensor, and all that are the same one, into the memory that `set_` gives it."""
        source = args[0] if args else kwargs.get("source")
        into = self.memory_of(source) if isinstance(source, torch.Tensor) else None
        if into is None:
            return
        alone = len(args) + len(kwargs) == 1
        same = [found() for found in tensor.memory.whole().tensors]
        for other in [t for t in same if t is not None and are_one(t.memory, tensor.memory)] or [tensor]:
            other.lies_in(Within(into, 0) if alone else Within(into.whole(), None))

    def _overwrites(self, written: SymbolicTensor, node: Node) -> None:
        """A node has written into the tensor: into all of it, unless it assigns to a part."""
        whole: Formula = True
        by = [written.ref.id]
        if node.op == "setitem" and isinstance(written.value, Tensor):
            named = dict(node.args)
            by = [ref.id for ref in refs(named["value"])]
            whole = takes_all(resolved(named["index"], self.values), written.value)
        written.has_overwritten(by, whole)

    def _check_written(self, op: str, tensor: SymbolicTensor, before: Tensor | Dynamic) -> None:
        """Fails a loop that depends on which of two equal tensors is written: loops treat tensors as values.
        """
        told = isinstance(before, Tensor) and before.elements not in (None, UNTRACKED)
        if told and id(tensor) in self.loops.met:
            self.give_up(f"{op} writes into a tensor of indices, one of several")
        if _other_sizes(before, tensor.value) and (self.loops.summarising or id(tensor) in self.loops.met):
            self.give_up(f"{op} changes the shape of a tensor in place")

    def _into(self, op: str, value: Value, out: Value) -> Value:
        """Returns a result as it is stored in `out=`: with its dtype, and its layout if the sizes stay.

        Some operators convert their result; of others it is not known.
        """
        if isinstance(value, tuple) and isinstance(out, tuple):
            wanted = f"{len(value)} results are written into an `out=` of {len(out)}"
            self.generator.require(len(value) == len(out), wanted)
            both = zip(value, out, strict=False)
            return tuple(self._into(op, *pair) for pair in both) if len(value) == len(out) else value
        if isinstance(value, Tensor) and isinstance(out, Tensor):
            alike = len(out.shape) == len(value.shape) and all_of(map(eq, out.shape, value.shape))
            layout = out.layout if self.generator.bounds.certain(alike) else Layout.UNKNOWN
            if value.dtype is not None and out.dtype is not None and value.dtype != out.dtype:
                told = f"a result of {value.dtype} in an `out=` of {out.dtype}"
                held = torch.can_cast(getattr(torch, value.dtype), getattr(torch, out.dtype))
                if not held and op not in CONVERTING:
                    self.generator.require(False, told)
                elif not held or op not in PROMOTED:
                    self.generator.approximate(f"whether {op} leaves {told} is not known", "accept")
            return structs.replace(value, dtype=out.dtype, layout=layout)
        return value

    def _raise_if_caught(self, before: int) -> None:
        """Makes the requirements of a call a branch where the program would catch the refusal: one path
        raises torch's exception.
        """
        said = self.generator.said
        fresh = said.constraints[before:]
        if fresh and is_guarded(Recording.run.__code__, *{constraint.error for constraint in fresh}):
            branched = self._seen_constraints > before
            fresh = self.generator.retract(before)
            self.learn_anew()
            if branched:
                self.give_up("a call that branches on sizes is made where its refusal would be caught")
            if any(constraint.error is Exception for constraint in fresh):
                self.give_up("it depends on the type of an exception what becomes of it")
            for constraint in fresh:
                self._catching = True
                try:
                    accepted = self.truth(constraint.formula)
                finally:
                    self._catching = False
                if not accepted and not (constraint.by_data and self.coin()):
                    raise constraint.error(Message.of(constraint.reason, self))

    def lower(self, value: Any, ids: dict[int, Ref]) -> Any:
        """Returns a Python value as a rule sees it; `ids` remembers which values are tensors of the program.
        """
        kind = type(value)
        if kind in _NUMBERS or kind is complex:
            return value
        if kind in ARRAYS:
            value = value.lowered()
        if isinstance(value, SymbolicTensor):
            self._no_ended(value.value)
            ids[id(value.value)] = value.ref
            return value.value
        if type(value) is torch.SymInt:  # as torch's engine of derivatives hands sizes on
            value = returned(value)
        if type(value) is Size:
            self._no_ended(value.term)
            return value.term
        if type(value) is RowSizes:
            self._no_ended(value.value)
            return value.value.shape
        if type(value) in SEVERAL:
            value = tuple(settled(value))
        if isinstance(value, torch.Tensor):
            _, known, ref = self.real_tensor(value)
            ids[id(known)] = ref
            return known
        if isinstance(value, list | tuple):
            return tuple([self.lower(v, ids) for v in value])
        if type(value) is Real:
            parts = value.ratio or (value.near and (value.near.p, value.near.q))
            for dim in parts or ():
                self._no_ended(dim)
            if not parts:
                return Number("float")
            over, under = map(self.generator.equations.simplify, parts)
            return (Quotient if value.ratio else Proportion)("float", over, under)
        if isinstance(value, torch.dtype):
            return dtype_name(value)
        if isinstance(value, slice):
            return Slice(*(self.lower(v, ids) for v in (value.start, value.stop, value.step)))
        if value is Ellipsis:
            return Dots
        if isinstance(value, numbers.Integral):
            return int(value)
        if isinstance(value, numbers.Real):
            return float(value)
        return str(value)

    def _no_ended(self, value: Value) -> None:
        """Checks that no value depends on the iterations of a loop that is over."""
        if self.loops.ended:
            dims = value.shape if isinstance(value, Tensor) else (value,)
            for dim in dims:
                if isinstance(dim, Term):
                    self.loops.forget_none(symbols(dim))

    def real_tensor(self, tensor: torch.Tensor) -> tuple[torch.Tensor, Tensor, Ref]:
        """Returns a parameter, a buffer or a constant of the program with its value and its reference; the
        tensor is kept alive, so that no other object gets the same identity.
        """
        found = self.real.get(id(tensor))
        if found is None:
            if is_of_transform(tensor):
                self.give_up("a transform makes another tensor of a constant that meets one without data")
            if type(tensor) in PLAIN_TENSORS:
                known = value_of(tensor)
            else:  # a subclass may override what is asked of it
                with overrides_off():
                    known = value_of(tensor)
            name = self.subject.parameters.get(id(tensor))
            if name is None:
                kind = "meta_" if tensor.is_meta else CONSTANT  # a meta tensor holds data that are not there
                name, known = f"{kind}{len(self.real)}", with_numbers(known, tensor)
            found = self.real[id(tensor)] = tensor, known, self.new_input(name, known, parameter=True)
            self.gradients.used(tensor, found[2].id)
            if name.startswith(CONSTANT) and is_identity(tensor):
                self.generator.contents.are_identities(known, found[2].id)
            count = None if id(tensor) in self.subject.parameters else number_of_true(tensor)
            if (known.elements is not None or count is not None) and (placed := _placed(tensor)) is not None:
                self.followed.add(placed.key)
                self.copies.append(_copied(tensor))
            if count is not None:
                self.generator.contents.has_trues(known, found[2].id, count)
        return found

    def follows(self, tensor: torch.Tensor) -> bool:
        """Returns whether a real tensor lies in the memory of one of which the elements were noted."""
        placed = None if isinstance(tensor, SymbolicTensor) else _placed(tensor)
        return placed is not None and placed.key in self.followed

    def matters(self, tensor: torch.Tensor, reshapes: bool) -> bool:
        """Returns whether a rule has to follow a write into a tensor that the program refers to: into one
        without data, into integers of the model's, and a new shape of one that was noted.
        """
        with overrides_off():  # a subclass may refuse to tell, such as a parameter without sizes yet
            if tensor.is_meta or (reshapes and id(tensor) in self.real):
                return True
            integral = not (tensor.dtype.is_floating_point or tensor.dtype.is_complex)
            return integral and tensor.dim() > 0 and id(tensor) in self.subject.parameters

    def memory_of(self, tensor: torch.Tensor) -> Memory | None:
        """Returns the memory of a tensor; None for a real one without strides."""
        if isinstance(tensor, SymbolicTensor):
            return tensor.memory
        if (placed := _placed(tensor)) is None:
            return None
        if placed.key not in self._memories:
            self._memories[placed.key] = StoredMemory(placed.storage, placed.key)
        return self._memories[placed.key].part(tensor, placed.offset)

    def _stands_in(self, written: Any) -> bool:
        """Makes stand-ins for the real tensors that a call writes into; returns whether there are any."""
        parts = [part for part in leaves((written,)) if isinstance(part, torch.Tensor)]
        real = [part for part in parts if not isinstance(part, SymbolicTensor)]
        for part in real:
            self._overwrite(part)
        return bool(real)

    def _overwrite(self, tensor: torch.Tensor, now: SymbolicTensor | None = None) -> SymbolicTensor:
        """Puts a tensor without data in the place of a real one that the program writes into, now or before,
        through a view: `now`, where it gets other data.
        """
        if self.loops.summarising:
            reason = "a loop writes into a tensor of constants"
            constant, site = self._constants.get(id(tensor), (None, None))
            if constant is not None and constant() is tensor and site is not None:
                raise self.loops.fails(Written(site, reason, {}))
            self.give_up(reason)
        return self._stand_in(tensor, now)

    def _stand_in(self, tensor: torch.Tensor, now: SymbolicTensor | None = None) -> SymbolicTensor:
        """Returns the tensor without data that takes the place of a real one from now on."""
        symbolic = now if now is not None else self._in_place_of(tensor)
        self.overwritten[id(tensor)] = tensor, symbolic
        return symbolic

    def since(self, tensor: torch.Tensor) -> torch.Tensor:
        """Returns the stand-in for a tensor after the program wrote into it, or into a view of its memory.

        It is not known where, so its elements are unknown.
        """
        _, found = self.overwritten.get(id(tensor), (tensor, tensor))
        if found is not tensor or isinstance(tensor, SymbolicTensor) or not self._changed:
            return found
        placed = _placed(tensor)
        if placed is None or placed.key not in self._changed:
            return tensor
        symbolic = self._overwrite(tensor)
        if isinstance(symbolic.value, Tensor):
            symbolic.value = structs.replace(symbolic.value, elements=UNTRACKED)
        return symbolic

    def present(self, value: Any) -> Any:
        """Returns arguments, with real tensors that were written into replaced by their stand-ins."""
        kind = type(value)
        if kind is tuple or kind is list:
            return kind(map(self.present, value))
        if kind is dict:
            return {key: self.present(part) for key, part in value.items()}
        return self.since(value) if isinstance(value, torch.Tensor) else value

    def lifted(self, tensor: torch.Tensor) -> SymbolicTensor:
        """Returns a symbolic tensor for a real one, in a memory of its own."""
        _, known, ref = self.real_tensor(tensor)
        return SymbolicTensor(self, known, ref, tensor.dtype)

    def _in_place_of(self, tensor: torch.Tensor) -> SymbolicTensor:
        """Returns a symbolic tensor for a real one, in its memory."""
        symbolic = self.lifted(tensor)
        if (memory := self.memory_of(tensor)) is not None:
            memory.is_leaf = self.gradients.of_real(tensor) and views_leaf(tensor)
            symbolic.lies_in(memory)
        return symbolic

    def made(self, tensor: torch.Tensor, frame: FrameType) -> torch.Tensor:
        """Notes a constant that the program has made in this frame."""
        site = Site(frame.f_code, frame.f_lasti)
        if site in self.loops.plans.written:
            return self._stand_in(tensor)
        self._constants[id(tensor)] = weakref.ref(tensor), site
        return tensor

    def _ref(self, tensor: torch.Tensor) -> Ref:
        tensor = self.since(tensor)
        return tensor.ref if isinstance(tensor, SymbolicTensor) else self.real_tensor(tensor)[2]

    def argument(self, value: Any, ids: Mapping[int, Ref | OperandSlot]) -> Any:
        """Returns a value as a node's argument: tensors by reference, everything else as it is."""
        kind = type(value)
        if kind is Tensor or value is Dyn:
            return ids.get(id(value), value)
        if kind is Quotient or kind is Proportion:
            return Number(value.kind)
        return tuple([self.argument(v, ids) for v in value]) if kind is tuple else value

    def _alike(self, values: list[int], op: str, number: float) -> Outlook:
        """Returns what sizes say of a comparison of the equality of values with 0 or 1."""
        found = self.generator.outlook_equal(values)
        return found if (op, number) in (("ne", 0), ("eq", 1)) else found.negated

    def _lift(self, value: Any, op: str, ids: dict[int, Ref], results: list[int], written: Any = None) -> Any:
        """Returns a rule's result as the program gets it.

        `written` is the tensor, or the tensors, that an in-place call or `out=` wrote into.
        """
        if type(value) is Tensor or value is Dyn:
            if id(value) in ids and value is not Dyn:
                value = self.generator.again(value)
            ref = self.new_value(value)
            results.append(ref.id)
            if not torch.is_grad_enabled():
                self.gradients.made_without.add(ref.id)
            if isinstance(written, SymbolicTensor):
                written.value, written.ref = value, ref
                return written
            dtype = value.dtype if value is not Dyn and value.dtype else "float32"
            return SymbolicTensor(self, value, ref, getattr(torch, dtype), op in OWNING, op in PLAIN)
        if isinstance(value, tuple):
            several = isinstance(written, list | tuple) and len(written) == len(value)
            into = written if several else [None] * len(value)
            parts = [self._lift(v, op, ids, results, w) for v, w in zip(value, into, strict=True)]
            named = getattr(torch.return_types, op, None)
            return (
                named(parts) if named is not None and len(parts) == named.n_sequence_fields else tuple(parts)
            )
        if isinstance(value, Number):
            none = all_of(self.generator.dataless(ref.id, empty=True) for ref in ids.values())
            given = [ref.id for ref in ids.values()]
            return self.datum(None, none, functools.partial(self._alike, given) if op in EQUALITIES else None)
        if value is None or isinstance(value, float | str):
            return value
        results.append(self.new_value(value).id)
        if isinstance(value, Term):
            return Size(self, value)
        return value if isinstance(value, int) else self.truth(value)


EQUALITIES: Final = frozenset({"equal", "allclose"})


class _Placed(NamedTuple):
    """The place of a real tensor in memory."""

    storage: torch.UntypedStorage
    offset: int
    key: int
    """The address of the storage; its identity if it is empty, since all of these have the address 0."""


def _placed(tensor: torch.Tensor) -> _Placed | None:
    """Returns the place of a real tensor, None for one without strides, or made of another by a transform."""
    with overrides_off():  # a subclass may refuse to tell, such as a parameter without sizes yet
        if tensor.layout is not torch.strided or is_of_transform(tensor):
            return None
        stored = tensor.untyped_storage()
        return _Placed(stored, int(tensor.storage_offset()), stored.data_ptr() or storage_id(stored))


_MOST: Final = 1 << 20
"""At most so many elements of a real tensor are copied."""


def _copied(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns a real tensor and a copy of it; of a large one, the tensor itself."""
    with overrides_off(), all_modes_off():
        small = tensor.numel() <= _MOST and not tensor.is_meta and not isinstance(tensor, FakeTensor)
        return tensor, tensor.detach().clone() if small else tensor


def _are_alike(pair: tuple[torch.Tensor, torch.Tensor]) -> bool:
    one, other = pair
    with overrides_off(), all_modes_off():
        if one is other or one.shape != other.shape or one.dtype != other.dtype:
            return one is other
        return bool(((one == other) | ((one != one) & (other != other))).all())


_COMING = Node("", (), (), Origin())
"""A placeholder for a node to come."""
_WHERE = torch.Tensor.where
_ACCESS = frozenset({"__get__", "__set__", "__delete__"})
"""The names of functions that read, write and delete attributes."""


def _tensor_among(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return any(isinstance(a, torch.Tensor) for a in (*args, *kwargs.values()))


@functools.lru_cache(maxsize=4096)
def _spelled(func: Any) -> tuple[str, str]:
    """Returns the name of a torch function, and the spelling of its operator."""
    if isinstance(func, OpOverload):
        return func.__name__, schema_of(func).name
    name: str = qualified_name(func) or getattr(func, "__name__", "") or func.name
    # torch's own functions in C++ are those of ATen, also where a Python function has the same name.
    return name, f"aten.{name}" if type(func) is BuiltinFunctionType else name


def _handling_of_warnings() -> tuple[object, ...]:
    """Returns what shows warnings, and the filters that make errors of them; others, which the first import
    of a module may add, decide nothing.
    """
    return shows_warnings(), [row for row in warnings.filters if row[0] == "error"]


_SILENT = frozenset(
    {*POINTWISE}
    | frozenset(
        "linear matmul mm bmm conv1d conv2d conv3d layer_norm softmax view reshape flatten unflatten permute "
        "transpose squeeze unsqueeze expand contiguous cat stack split chunk unbind getitem sum mean "
        "mse_loss l1_loss smooth_l1_loss".split()
    )
)
"""Operators whose kernels never warn, whatever the sizes are."""




def _other_sizes(before: Tensor | Dynamic, after: Tensor | Dynamic) -> bool:
    """Returns whether the shape or the strides have changed."""
    if not isinstance(before, Tensor) or not isinstance(after, Tensor):
        return before is not after
    return before.shape != after.shape or before.layout != after.layout




def _index(index: Any) -> Any:
    """Returns an index as `getitem` takes it: a list becomes a tuple, a list that is the whole index one
    item, an array a tensor.

    torch treats a list as a tuple of items where one of them is no number.
    """
    if type(index) is tuple:
        return tuple(map(_index_of_array, index))
    index = _index_of_array(index)
    if isinstance(index, list | range) and all(isinstance(i, int) or type(i) is Size for i in index):
        return (tuple(index),)
    return index


def _index_of_array(index: Any) -> Any:
    """Returns an array of NumPy's as a tensor, without requiring that NumPy is installed."""
    kind = type(index)
    return torch.from_numpy(index) if (kind.__module__, kind.__name__) == ("numpy", "ndarray") else index


def _written(op: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Returns the tensor that a call writes its result into, several where it has several results, or None.
    """
    if (out := kwargs.get("out")) is not None:
        return out
    if op == "setitem" or is_in_place(op):
        return args[0] if args else kwargs.get("input")
    return None


class _Mode(TorchFunctionMode):
    """Catches every torch function during a run; calls without symbolic arguments really run."""

    def __init__(self, run: Recording) -> None:
        super().__init__()
        self.run = run
        self.writes = Writes(run.subject.tensors)

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self.writes.undo()

    @hands_on
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Records a call, or runs it if it has no symbolic arguments.

        The floats of the model do not affect shapes, so writes into its parameters and buffers run on copies,
        for what torch refuses. Only writes of single numbers run, since a model may read them, such as a
        counter of batches. All such writes are undone after the run.
        """
        kwargs = kwargs or {}
        if self.run.overwritten:
            args, kwargs = self.run.present(args), self.run.present(kwargs)
        if _is_symbolic(args) or (kwargs and _is_symbolic(kwargs.values())):
            return self.run.call(func, args, kwargs)
        name = getattr(func, "__name__", "")
        if name == "requires_grad_":
            self.run.gradients.asked(args[0], *args[1:] or kwargs.values() or (True,))
        if is_drawn(func, name, args, kwargs):
            return self.run.call(func, args, kwargs)
        if self.run.followed and any(map(self.run.follows, destinations(func, args, kwargs))):
            return self.run.call(func, args, kwargs)
        if written := self.writes.written(func, args, kwargs):
            reshapes = is_assigned(func) or name in RESHAPING
            if any(self.run.matters(tensor, reshapes) for tensor in written):
                return self.run.call(func, args, kwargs)
            if reshapes:
                self.writes.keep(written, elements=False)
            elif any(map(self._is_idle, written)):
                result = kwargs.get("out", args[0])
                args, kwargs = with_copies(args, kwargs, written)
                func(*args, **kwargs)
                return result
            else:
                self.writes.keep(written)
        if name in LENDING and self.writes.sharing(args[0]):
            lent = args[0].clone()
            if not lent.is_floating_point():  # the elements of other buffers are data
                self.run.copies.append(_copied(lent))
            return func(lent, *args[1:], **kwargs)
        if name in _MAKING and _elements(args, kwargs) > _LARGE:
            self.run.give_up(f"a constant of {_elements(args, kwargs)} elements is made")
        if name in ABOUT_DATA and args and args[0].is_meta:
            return self.run.call(func, (self.run.lifted(args[0]), *args[1:]), kwargs)
        result = func(*args, **kwargs)
        return self.run.made(result, frame_above(1)) if name in _MAKING else result

    def _is_idle(self, tensor: torch.Tensor) -> bool:
        """Returns whether writes into a tensor of the model's do not affect the recording."""
        return tensor.dim() > 0 and id(tensor) in self.run.subject.parameters


_MAKING = frozenset("zeros ones empty full rand randn zeros_like ones_like full_like empty_like".split())
_LARGE = 1 << 30
"""Constants of more elements are not made: their sizes are numbers that were tried for a size."""


def _elements(args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Returns an upper bound of the number of elements that a call makes from numbers."""
    sizes = kwargs.get("size", args[0] if args and isinstance(args[0], list | tuple) else args)
    return math.prod(max(n, 1) for n in sizes if isinstance(n, int) and not isinstance(n, bool))


# Functions of torch that make a tensor of two numbers.
_MAKES_TENSORS = frozenset("add div divide floor_divide mul multiply sub subtract true_divide".split())
_SYMBOLIC = frozenset({SymbolicTensor, Repeated, RowSizes, Size, Real, *SEVERAL, *ARRAYS})
_NUMBERS = frozenset({int, float, bool, str, type(None)})


def _is_symbolic(arguments: Any) -> bool:
    for a in arguments:
        kind = type(a)
        if kind in _SYMBOLIC:
            return True
        if kind in _NUMBERS:
            continue
        if isinstance(a, list | tuple) and _is_symbolic(a):  # a torch.Size, too: sizes and a real shape added
            return True
        if kind is slice and _is_symbolic((a.start, a.stop, a.step)):
            return True
    return False


_NONE_OVERRIDES: Final = tuple(
    Patch(*place, lambda plain: lambda *args: False, "composites are entered")
    for place in CALLS_WITH_OVERRIDES
)


def _entering_composites() -> contextlib.AbstractContextManager[None]:
    """Makes torch's Python-level functions run their own code while recording, with its checks, so that their
    inner calls are recorded. Otherwise they would pass themselves on as a whole to an overriding argument.
    """
    return together(_NONE_OVERRIDES)
