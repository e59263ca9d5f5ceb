"""Records what a Python program does to tensors, without running a kernel: the rules are the kernels.

A run calls the target with tensors that have no data. Each call of a torch function arrives in `Mode`, goes
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
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import torch

from ...constraints.contents.requirements.indices import SAME_DATA
from ...constraints.engine.collector import collector_at_rest
from ...constraints.engine.ruleset import BadRules, Rules
from ...constraints.ir.language import Dynamic, Note, Tensor
from ...constraints.ir.program import Argument, Origin, Program
from ...constraints.ir.spec import Declared, Spec
from ...constraints.ir.system import End, Oracle, Path, System, that_matter
from ...constraints.terms.formula import ge
from ...constraints.terms.rows import Deeper
from ..bytecode.origins import REFUSALS, is_by_library, of_error
from ..bytecode.spread import SpeltOut
from ..host.alone import alone
from ..host.operators import INSTALLED
from ..host.releases import unknown
from ..host.surroundings import seed, surroundings_kept
from ..patches.blame import has_attributes, is_ours, is_programs, is_refusal
from ..patches.caches import forgetting
from ..patches.chosen_modules import chosen_modules
from ..patches.higher_order import entered, uncompiled
from ..patches.stand_ins import AnotherSource, symbolic_builtins
from ..summaries.plans import NotSummarised, Plans
from ..values.keys import is_of_size
from ..values.numbers import Size
from ..values.random import DRAWN, UNSEEN, has_drawn
from ..values.real_tensors import default_dtype
from ..values.sequences import SEVERAL, Repeated, physical
from ..values.symbolic import Sizes, SymbolicTensor
from .binding import NotCallable, bind
from .decisions import NOT_AGAIN, GaveUp
from .guesses import without_idle
from .held import Held, Lent
from .mode import Mode, entering_composites
from .operators import Operators
from .subject import Assignment, BranchDecision, Subject, over

MAX_PATHS = 1024
MANY_PATHS = 32
"""With more paths than this the paths of calls are merged."""


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
    device: str | None = None,
) -> tuple[System, list[str]]:
    """Returns all paths of the target over the domain, and the names of model attributes that a run assigned.

    Raises TargetError where the spec does not fit the target's parameters, or where the target fails on every
    path for a reason other than sizes. The system is incomplete if the bounds on paths and seconds do not
    suffice. With more paths than `ways` (32), the paths of calls may be merged. With `along`, only the path
    that these sizes take is recorded. `held` has the objects that the target refers to, if they are known.
    All of them are left unchanged. `device` is the type of the device whose kernels are to run the program;
    without it, that of the target's tensors.
    """
    bind(target, spec.inputs, lambda declared: declared)
    rules, held = rules.of_torch(INSTALLED, default_dtype()), held or Held(target)
    with surroundings_kept(), held.lent(copied=False) as lent, contextlib.ExitStack() as rebound:
        system = _recorded(
            target, spec, rules, oracle, held, lent, rebound,
            max_paths, budget_s, ways, along, progress, device,
        )  # fmt: skip
    return system, [*dict.fromkeys(lent.changed)]


def _recorded(
    target: Callable[..., Any],
    spec: Spec,
    rules: Rules,
    oracle: Oracle,
    held: Held,
    lent: Lent,
    rebound: contextlib.ExitStack,
    max_paths: int,
    budget_s: float,
    ways: float | None,
    along: Mapping[str, int] | None,
    progress: Callable[[int], None] | None,
    device: str | None,
) -> System:
    """As `record`, for a target whose tensors may be written into, as long as that is undone.

    Python's names stay `rebound` from the first path to the last, since that takes longer than a short path.
    """

    running: list[Recording] = []

    def ranges(*args: Any) -> Any:
        return running[-1].loops.ranges(*args)

    started = time.monotonic()
    with collector_at_rest():
        subject, plans = Subject.of(target, held.modules, lent.aliases), Plans()
        subject = dataclasses.replace(subject, compared=(*held.compared,))
    rebound.enter_context(symbolic_builtins(subject.sources, ranges))
    plans.spelt_out = set()
    pending: list[tuple[BranchDecision, ...]] = [()]
    paths: list[Path] = []
    incomplete = ""
    limits: dict[str, tuple[int, Origin]] = {}
    guessed: dict[int, frozenset[int]] = {}
    fails = False
    first = spec
    while pending:
        if not paths:
            first = spec
        if len(paths) >= max_paths or (paths and time.monotonic() - started > budget_s):
            incomplete = f"only {len(paths)} of at least {len(paths) + len(pending)} paths were followed"
            break
        until = started + budget_s * (1 if paths else 2)
        seed()
        run = Recording(Assignment(subject, spec, rules, oracle, pending.pop(), plans, until, along, device))
        running[:] = [run]
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
        if pending:
            lent.changed.extend(held.restore())
        if progress:
            progress(len(paths))
    running.clear()  # `ranges` stays in a class, which only a garbage collection frees
    if fails and len(paths) == 1 and not any(note.may_refuse for note in paths[0].notes):
        end = paths[0].end
        raise NotCallable(f"the target fails for a reason other than sizes: {end.reason}", end.origin)
    paths = without_idle(paths, guessed, oracle)
    paths[:1] = [dataclasses.replace(p, notes=(*p.notes, *_limits(limits))) for p in paths[:1]]
    return System(spec.domain, tuple(paths), incomplete)


def _limits(limits: Mapping[str, tuple[int, Origin]]) -> Iterator[Note]:
    for name, (most, where) in limits.items():
        told = f"{name} is checked only up to rank {most}: {where} needs every one of its sizes"
        yield Note("bounded-rank", told, -1)


IDENTITY: Final = "whether a size is the object of an integer (is) is not followed; compare them with =="


class Recording(Operators):
    """One run along one path."""

    def __init__(self, assigned: Assignment) -> None:
        super().__init__(assigned)
        self.failed = False
        """Whether an error of the program's has ended the run whose type is not that of a refusal."""
        self.is_astray = False
        """Whether the run did not reach the branch that it was to decide, as may happen where less of a row
        was declared before.
        """

    def close(self) -> None:
        """Releases the target and its weights, and all references back to the run, so that everything is
        freed with its last user and needs no garbage collection.
        """
        self.subject = dataclasses.replace(self.subject, target=over)
        self.real.clear()
        self.generator.close()
        del self.gradients
        for memory in self._memories.values():
            memory.parts.clear()
        self.loops.close()
        self.calls.close()

    def run(self) -> Path:
        """Calls the target once and returns the path."""
        end = End()
        outputs: list[tuple[str, Argument]] = []
        target = self.subject.target
        bound = bind(target, self.spec.inputs, self._input)
        for place in self.subject.compared:
            self._approximate(IDENTITY, at=place)
        try:
            with (
                entering_composites(),
                entered(self),
                forgetting(self.subject.sources),
                chosen_modules(self),
                uncompiled(),
                self.calls.followed(),
                Mode(self),
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
        except Exception as error:  # the target is the user's code
            if unknown(error):
                raise
            # What a loop hands on has none of the attributes that the program has set, nor has an operator's
            # result those of an operand, which it may be in an eager run.
            match error:
                case AttributeError(obj=obj) if has_attributes(obj):
                    lost = bool(self.loops.ended) or self.uses_texts or error.name in self.attributes
                case KeyError():
                    branched = any(made.asked is not None and not made.forced for made in self._made)
                    lost = not branched and not any(map(is_of_size, error.args))
                case _:
                    lost = False
            programs = not lost and is_programs(error)
            who = "the recorder failed: " if is_ours(error) and not programs else ""
            text = str(error).replace(f"'{SymbolicTensor.__name__}'", "'Tensor'")
            told = f"{who}{type(error).__name__}: {text}".removesuffix(": ")
            where, by_library = of_error(error, self.names), is_by_library(error)
            end = End("raised" if programs else "gave-up", told, where, by_library)
            self.failed = programs and not isinstance(error, REFUSALS) and not is_refusal(error)
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
            end = End("gave-up", NOT_AGAIN)
        self.is_astray = end.reason == NOT_AGAIN
        self._over = True
        said = self.generator.said
        if end.how == "raised":  # that some data raise refuses no sizes, whether or not there are such data
            said.notes[:] = [note for note in said.notes if note.reason != SAME_DATA]
        if not self.is_as_lent():
            said.notes.append(Note("approximate", UNSEEN, -1))
        if has_drawn():
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
            yield name or "output", self.ref(result)
        elif type(result) in (Size, Sizes, int, float, bool, str, type(None)):
            yield name or "output", self.argument(self.lower(result, {}), {})
