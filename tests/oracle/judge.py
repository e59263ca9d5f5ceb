"""The judge: eager torch, held against what the rules say of the same call.

A sample is recorded as any program is, once with the sizes that it has and once with a symbol for each size
of each tensor. The accepted set and the results are then compared with eager runs, point by point: at the
sample, beside it, and at sizes 0 and 1.
"""

from __future__ import annotations

import contextlib
import io
import re
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations, product
from types import FrameType
from typing import Any

import torch
from torch.utils import _pytree as pytree

from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Dynamic, Layout, Note, Tensor, Value
from anyshape.constraints.ir.program import Ref
from anyshape.constraints.ir.spec import Declared, Spec
from anyshape.constraints.ir.system import Domain, Path, System
from anyshape.constraints.rules import default_rules
from anyshape.constraints.rules.common import contiguous_strides
from anyshape.constraints.terms.dims import Dim, Term, evaluate, sym, symbols
from anyshape.constraints.terms.formula import Formula, free_symbols, ge, holds, le
from anyshape.solver.decide import DomainOracle
from anyshape.solver.tactics.judge import Budget
from anyshape.tracer.recording.binding import NotCallable
from anyshape.tracer.recording.record import record
from anyshape.tracer.values.sequences import SEVERAL, settled

from .reasons import DATA, NO_CHECK, NOT_OF_SIZES, UNCHECKED, UNSAFE
from .samples import Sample

PATHS = {False: 48, True: 320}
"""How many paths are recorded of a program whose sizes have no bound, or have one."""

ALONE, TOGETHER = 96, 32
"""Points of a sample, at most, at which one size is moved, and several: only lists of many tensors have more
than 24 sizes.
"""

RECORD_S = 10.0
"""Seconds that the recording of one sample may take."""
EAGER_S = 60.0
"""Seconds that an eager run may take: control flow is compiled first."""

torch.set_num_threads(1)  # tensors of a few elements: threads only wait for each other

# ---- what is said of a sample

DISAGREEMENTS = ("accepts", "refuses", "raises", "shape", "dtype", "strides", "Dyn", "failed")
"""What must not be: the rule accepts what torch refuses, refuses what it runs, refuses it by an exception of
another type, or has another result.
"""

NOT_SAID = ("no-rule", "approximate", "gave-up", "incomplete", "deadline", "crash")
"""Nothing exact is said: no agreement either."""


@dataclass(frozen=True)
class Remark:
    """One disagreement, or one place where nothing exact is said."""

    kind: str
    sample: str
    point: str
    torch: str
    ours: str
    rule: str = ""
    """The operator whose rule spoke, canonically."""


@dataclass
class Judgement:
    """What came of the points of one sample."""

    points: int = 0
    agreed: int = 0
    accepted: int = 0
    refused: int = 0
    unjudged: int = 0
    """Points where torch refuses the data of the sample, not its sizes, or may do anything."""
    layouts: Counter[str] = field(default_factory=Counter)
    """How many results, at all points, there are whose strides are told, and whose are not."""
    remarks: list[Remark] = field(default_factory=list)


class Deadline(BaseException):
    """No Exception: a program's own `except Exception` must not swallow it."""


@contextlib.contextmanager
def deadline(seconds: float) -> Iterator[None]:
    def ring(number: int, frame: FrameType | None) -> None:
        raise Deadline

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# ---- tensors of other sizes


@dataclass(frozen=True)
class Strides:
    """How a tensor lies in memory, so that one of other sizes can lie likewise.

    `order` has the dims from the outermost to the innermost, without the expanded ones; `step` is the
    innermost stride. None stands for a layout that is no such thing.
    """

    order: tuple[int, ...]
    step: int = 1
    cut: tuple[int, int, int] | None = None
    """An axis cut out of a larger one, how many steps it takes at once there, and how many elements of the
    larger one come besides.
    """

    @classmethod
    def of(cls, tensor: torch.Tensor) -> Strides | None:
        strides = tensor.stride()
        if tensor.is_contiguous():
            return cls(tuple(range(tensor.dim())))
        real = [i for i, s in enumerate(strides) if s]
        order = tuple(sorted(real, key=lambda i: (-strides[i], i)))
        step = min((strides[i] for i in real if tensor.shape[i] > 1), default=1)
        found = cls(order, step)
        expected = found.strides(tuple(tensor.shape))
        rows = zip(tensor.shape, strides, expected, strict=True)
        return found if all(n <= 1 or s == e for n, s, e in rows) else None

    def strides(self, sizes: Sequence[Any]) -> tuple[Any, ...]:
        """The strides of a tensor of these sizes, numbers or terms."""
        found: list[Any] = [0] * len(sizes)
        reach: Any = self.step
        for axis in reversed(self.order):
            step, rest = self.cut[1:] if self.cut and self.cut[0] == axis else (1, 0)
            found[axis] = reach * step
            reach = reach * (sizes[axis] * step + rest)
        return tuple(found)

    @property
    def plain(self) -> bool:
        return self.step == 1 and self.cut is None and self.order == tuple(range(len(self.order)))


def fill(original: torch.Tensor, sizes: tuple[int, ...], how: str) -> torch.Tensor:
    """A contiguous tensor of other sizes: the original's elements, cropped and repeated, or other ones."""
    if how == "zeros" or (how == "own" and original.numel() == 0):
        return torch.zeros(sizes, dtype=original.dtype)
    if how == "ones":
        return torch.ones(sizes, dtype=original.dtype)
    if how == "eye":
        filled = torch.zeros(sizes, dtype=original.dtype)
        if len(sizes) >= 2:
            filled.diagonal(dim1=-2, dim2=-1).fill_(2)
        return filled
    filled = original.detach()
    for axis, (n, m) in enumerate(zip(original.shape, sizes, strict=True)):
        if n != m:
            filled = filled.index_select(axis, torch.arange(m) % n)
    return filled.clone(memory_format=torch.contiguous_format)


def lies_of(sample: Sample) -> Sequence[Strides | None]:
    """How each varied argument lies in memory; None for one that lies in no way that other sizes could."""
    if sample.lies is not None:
        return sample.lies
    return [Strides.of(arg) if isinstance(arg, torch.Tensor) else None for arg in sample.varied]


def build(
    original: torch.Tensor, layout: Strides | None, sizes: tuple[int, ...], how: str = "own"
) -> torch.Tensor:
    filled = fill(original, sizes, how)
    if layout is None:
        if sizes != tuple(original.shape):
            raise ValueError("a tensor of such strides is not made in other sizes")
        strides = original.stride()
    elif layout.plain and len(layout.order) == len(sizes):
        return filled
    else:
        strides = layout.strides(sizes)
    room = 1 + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True)) if all(sizes) else 0
    laid_out = torch.empty([room], dtype=filled.dtype).as_strided(sizes, strides)
    # What is expanded has its elements once: only the first along an expanded dim are written.
    once = tuple(slice(0, 1) if s == 0 else slice(None) for s in strides)
    laid_out[once].copy_(filled[once])
    return laid_out


# ---- eager torch


@dataclass(frozen=True)
class Ran:
    tensors: tuple[torch.Tensor, ...]
    sizes: tuple[int, ...] = ()
    """Integers among the results."""

    def __str__(self) -> str:
        return f"runs: {[tuple(t.shape) for t in self.tensors]}"


@dataclass(frozen=True)
class Refused:
    reason: str
    data: bool = False
    """For the sake of the elements, not of the sizes."""
    error: str = ""
    """The type of the exception; nothing where it says nothing of a rule."""

    def __str__(self) -> str:
        return self.reason


def built_in(error: type[BaseException]) -> str:
    """The built-in type that the exception is of; torch's own (`LinAlgError`) are derived from these. What
    torch's compiler raises, which runs some operators eagerly, too, says nothing.
    """
    if error.__module__.startswith("torch._dynamo"):
        return ""
    return next(kind.__name__ for kind in error.__mro__ if kind.__module__ == "builtins")


def run_eagerly(sample: Sample, sizes: Sequence[Any]) -> Ran | Refused:
    """What torch says of the call with tensors of these sizes. Elements that do not suit it are replaced."""
    outcome: Ran | Refused = Refused("", data=True)
    for how in ("own", "zeros", "ones", "eye"):
        found = _run(sample, sizes, how)
        if isinstance(found, Ran) or not found.data:
            return found
        if how == "own":
            outcome = found
    return outcome


def _run(sample: Sample, sizes: Sequence[Any], how: str) -> Ran | Refused:
    parts = zip(sample.varied, lies_of(sample), sizes, strict=True)
    varied = [size if isinstance(size, int) else build(own, lie, size, how) for own, lie, size in parts]
    torch.default_generator.manual_seed(0)
    try:
        with torch.no_grad(), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            result = sample.run(varied)
    except Exception as error:  # noqa: BLE001 - whatever torch refuses with is its verdict, and is shown
        told = f"{type(error).__name__}: {error}".strip()
        kind = "" if any(re.search(pattern, told) for pattern, _ in NO_CHECK) else built_in(type(error))
        return Refused(told, any(re.search(pattern, told) for pattern, _ in DATA), kind)
    leaves = pytree.tree_leaves(result)
    return Ran(
        tuple(leaf for leaf in leaves if isinstance(leaf, torch.Tensor)),
        tuple(leaf for leaf in leaves if type(leaf) is int),
    )


# ---- the rules


def spec_of(sample: Sample, symbolic: bool, least: int = 0) -> tuple[Spec, dict[str, int]]:
    """The sample's tensors as declared inputs `xs[0]`, `xs[1]`, …, and what their symbols are at the sample.

    No size is less than `least`. Tensors of strides that follow from no rule keep their sizes.
    """
    values: dict[str, int] = {}
    inputs = []
    for i, (tensor, layout) in enumerate(zip(sample.varied, lies_of(sample), strict=True)):
        if not isinstance(tensor, torch.Tensor):
            values |= {f"n{i}": tensor} if symbolic else {}
            inputs.append(Declared(("xs", i), sym(f"n{i}") if symbolic else tensor))
            continue
        names = {f"t{i}_{axis}": n for axis, n in enumerate(tensor.shape)} if symbolic and layout else {}
        values |= names
        shape: tuple[Dim, ...] = tuple(map(sym, names)) if names else tuple(tensor.shape)
        dtype = str(tensor.dtype).removeprefix("torch.")
        strides: Any = layout.strides(shape) if layout else tuple(tensor.stride())
        plain = strides == contiguous_strides(shape) or (not names and tensor.numel() == 0)
        inputs.append(Declared(("xs", i), Tensor(shape, dtype, Layout.CONTIGUOUS if plain else strides)))
    domain = Domain(tuple(values), tuple(ge(sym(name), least) for name in values if name.startswith("t")))
    return Spec(tuple(inputs), domain), values


class _Module(torch.nn.Module):
    """The sample's module as the target, so that its parameters are known as such."""

    def __init__(self, sample: Sample) -> None:
        super().__init__()
        self.inner = sample.module
        self._sample = sample

    def forward(self, xs: Any = ()) -> Any:
        return one_by_one(self._sample.run(list(xs)))


def one_by_one(result: Any) -> Any:
    """As many results as there are, where a single one stands for all of them. The program's `type` is in
    force here.
    """
    return settled(result) if result.__class__ in SEVERAL else result


def record_sample(
    sample: Sample, symbolic: bool, rules: Rules, bounded: bool = False, least: int = 0
) -> tuple[System, dict[str, int]]:
    """The recorded system, and what its symbols are at the sample.

    `bounded` sizes are at most one more than in the sample: where a program needs a size as a number, the
    recorder tries all that there are, and of unbounded ones there is no end.
    """
    spec, values = spec_of(sample, symbolic, least)
    if bounded:
        low, high = min(0, *values.values()) - 1, max(values.values()) + 1
        limits = [f for name in values for f in (ge(sym(name), low), le(sym(name), high))]
        spec = replace(spec, domain=replace(spec.domain, assumptions=(*spec.domain.assumptions, *limits)))

    def target(xs: Any = ()) -> Any:
        return one_by_one(sample.run(list(xs)))

    program: Callable[..., Any] = target if sample.module is None else _Module(sample)
    torch.default_generator.manual_seed(0)
    with torch.no_grad(), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        oracle = DomainOracle(spec.domain, Budget(RECORD_S))
        system, _ = record(program, spec, rules, oracle, max_paths=PATHS[bounded], budget_s=RECORD_S)
    return system, values


def _wants_number(path: Path) -> bool:
    return path.end.how == "gave-up" and "needed as a number" in path.end.reason


@dataclass(frozen=True)
class Said:
    """What the rules say at a point: `accepts`, `refuses`, or one of NOT_SAID; and the path that says it."""

    verdict: str
    reason: str = ""
    path: Path | None = None
    error: str = ""
    """The type of the exception that a rule refuses by."""


def true(formula: Formula, values: Mapping[str, int], known: Mapping[str, Formula]) -> bool:
    """Does the formula hold, for some values of the sizes that the data decides?"""
    unbacked = sorted(free_symbols(formula) - values.keys())
    if not unbacked:
        try:
            return holds(formula, values)
        except ZeroDivisionError:
            return False
    if len(unbacked) > 2:
        return True
    for numbers in product(range(40), repeat=len(unbacked)):
        tried = {**values, **dict(zip(unbacked, numbers, strict=True))}
        with contextlib.suppress(ZeroDivisionError):
            if holds(formula, tried) and all(
                holds(k, tried) for n, k in known.items() if n in unbacked and free_symbols(k) <= tried.keys()
            ):
                return True
    return False


def said_at(system: System, values: Mapping[str, int]) -> list[Said]:
    """One verdict per path that these sizes take; several where the data decides."""
    found = []
    for path in system.paths:
        known = dict(path.unbacked)
        if not true(path.premise, values, known):
            continue
        broken = [c for c in path.constraints if not true(c.formula, values, known)]
        if broken:
            found.append(Said("refuses", broken[0].reason, path, broken[0].error.__name__))
        elif path.end.how == "raised":
            found.append(Said("refuses", path.end.reason, path))
        elif path.end.how == "gave-up":
            failed = path.end.reason.startswith("the recorder failed")
            found.append(Said("failed" if failed else "gave-up", path.end.reason, path))
        else:
            found.append(Said("accepts", "", path))
    return found or [Said("incomplete", system.incomplete or "no path takes these sizes")]


def results_of(path: Path) -> list[Value]:
    return [path.values[a.id] if isinstance(a, Ref) else a for _, a in path.program.outputs]


def differs(path: Path, ran: Ran, values: Mapping[str, int]) -> tuple[str, str, str] | None:
    """(kind, torch's, ours) of the first difference between the results."""
    results = results_of(path)
    values, known = dict(values), dict(path.unbacked)
    if any(isinstance(r, Dynamic) for r in results):
        return "Dyn", f"{len(ran.tensors)} tensors", "Dyn"
    tensors = [r for r in results if isinstance(r, Tensor)]
    if len(tensors) != len(ran.tensors):
        return "shape", f"{len(ran.tensors)} tensors", f"{len(tensors)} tensors"
    for ours, theirs in zip(tensors, ran.tensors, strict=True):
        sizes = tuple(theirs.shape)
        if len(ours.shape) != len(sizes):
            return "shape", str(sizes), str(ours)
        for dim, size in zip(ours.shape, sizes, strict=True):
            _fit(dim, size, values)
        shape = tuple(evaluate(d, values) for d in ours.shape)
        if shape != sizes:
            return "shape", str(sizes), f"{ours} = {shape}"
        judged = [k for n, k in known.items() if n in values and free_symbols(k) <= values.keys()]
        if broken := [str(k) for k in judged if not holds(k, values)]:
            return "shape", str(sizes), f"{ours} where {', '.join(broken)}"
        dtype = str(theirs.dtype).removeprefix("torch.")
        if ours.dtype != dtype:
            return "dtype", dtype, str(ours.dtype)
        if theirs.layout is not torch.strided:
            continue
        if ours.layout is Layout.CONTIGUOUS and not theirs.is_contiguous():
            return "strides", f"{theirs.stride()} of {sizes}", "contiguous"
        if isinstance(ours.layout, tuple) and theirs.numel() > 0:
            strides = tuple(evaluate(s, values) for s in ours.layout)
            rows = zip(sizes, theirs.stride(), strides, strict=True)
            if any(n > 1 and t != o for n, t, o in rows):
                return "strides", f"{theirs.stride()} of {sizes}", str(strides)
    dims = [r for r in results if type(r) is int or isinstance(r, Term)]
    for dim, size in zip(dims, ran.sizes, strict=False):
        _fit(dim, size, values)
    numbers = tuple(evaluate(dim, values) for dim in dims)
    if numbers != ran.sizes:
        return "shape", str(ran.sizes), f"{', '.join(map(str, dims))} = {numbers}"
    return None


def _fit(dim: Dim, size: int, values: dict[str, int]) -> None:
    """A size that the data decides is what makes the dim what torch says it is."""
    unknown = sorted(symbols(dim) - values.keys())
    if len(unknown) == 1 and dim == sym(unknown[0]):
        values[unknown[0]] = size  # an element, which may be negative
    elif len(unknown) == 1:
        fits = [n for n in range(size + 1) if evaluate(dim, {**values, unknown[0]: n}) == size]
        values[unknown[0]] = fits[0] if fits else -1
    else:
        values.update(dict.fromkeys(unknown, -1))


# ---- points


def beside(n: int) -> tuple[int, ...]:
    return n + 1, n - 1, 1, 0


def one_or_none(n: int) -> tuple[int, ...]:
    return 1, 0


def points(
    at: Mapping[str, int], limit: int | None = None, to: Callable[[int], tuple[int, ...]] = beside
) -> Iterator[dict[str, int]]:
    """The sample itself, each size one less, one more, 0 and 1, and sizes that are equal moved together.

    There are many ways to move sizes together: TOGETHER of them are looked at, and ALONE of sizes by
    themselves. With a limit, at most so many points beside the sample are looked at.
    """
    seen = {tuple(at.values())}

    def moved(moves: Iterable[tuple[str, ...]]) -> list[dict[str, int]]:
        made = []
        for names in moves:
            n = at[names[0]]
            for m in to(n):
                point = {**at, **dict.fromkeys(names, m)}
                if (m >= 0 or names[0][0] == "n") and tuple(point.values()) not in seen:
                    seen.add(tuple(point.values()))
                    made.append(point)
        return made

    groups = [tuple(name for name, n in at.items() if n == value) for value in sorted(set(at.values()))]
    pairs = [pair for group in groups if len(group) > 2 for pair in combinations(group, 2)]
    alone, together = moved((name,) for name in at), moved([g for g in groups if len(g) > 1] + pairs)
    found = _evenly(alone, ALONE) + _evenly(together, TOGETHER)
    yield dict(at)
    yield from found if limit is None else _evenly(found, limit)


def _evenly(rows: list[dict[str, int]], limit: int) -> list[dict[str, int]]:
    return [rows[i * len(rows) // limit] for i in range(limit)] if len(rows) > limit else rows


def shown(sizes: Sequence[Any]) -> str:
    return " ".join(str(s if isinstance(s, int) else list(s)) for s in sizes)


def kind_of(note: Note) -> str:
    """torch's own result at two examples, in place of a rule, is no rule."""
    return "no-rule" if note.reason.endswith("at two examples are used instead") else note.code


def rule_of(path: Path | None, sample: Sample, reason: str = "") -> str:
    """The operator whose rule spoke: the one that refused or has no rule; else the one that the entry is
    named after, or the last.
    """
    if path is None or not path.program.nodes:
        return ""
    nodes = path.program.nodes
    for said in (*path.notes, *path.constraints):
        if reason and said.reason == reason and 0 <= said.node < len(nodes):
            return nodes[said.node].op
    name = re.sub("[^a-z0-9]", "", sample.entry.lower())
    named = [node.op for node in nodes if node.op.replace("_", "") in name]
    return max(named, key=len, default=nodes[-1].op)


# ---- one sample


def describe(sample: Sample) -> str:
    """The arguments that are no tensors, in short."""
    def one(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            name = str(leaf.dtype).removeprefix("torch.")
            return f"{name}{list(leaf.shape)}" + ("" if leaf.is_contiguous() else f"~{tuple(leaf.stride())}")
        return leaf

    args, kwargs = pytree.tree_map(one, (sample.args, sample.kwargs))
    told = ", ".join([*map(str, args), *(f"{k}={v}" for k, v in kwargs.items())])
    spelling = f" {sample.call}" if sample.form == "aten" else ""
    return f"{sample.form} {sample.number}{spelling}: ({told})"[:240]


def suits(sample: Sample) -> str:
    """Why a sample is left alone; nothing where it is judged."""
    for tensor in sample.tensors:
        if tensor.layout is not torch.strided or tensor.is_quantized or tensor.is_nested:
            return "sparse, quantized or nested"
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter):
            return "a tensor of another class"
    return ""


def is_unsafe(sample: Sample, sizes: list[Any], said: list[Said]) -> bool:
    """Would torch read or write memory that is not the call's?"""
    name = sample.entry
    if isinstance(sample.call, torch._ops.OpOverload):
        name = sample.call._schema.name.removeprefix("aten::")
    if name in UNCHECKED and all(one.verdict == "refuses" for one in said):
        return True
    return name in UNSAFE and UNSAFE[name][0](sample, sizes)


def every(number: int) -> None:
    """Tells nobody of a point."""


@dataclass(frozen=True)
class Points:
    """The points of a sample that are looked at.

    `limit` is how many beside the sample there are at most. `enter` is told the number of each point before
    torch runs it, so that whoever watches knows where torch died; points to `skip` are those where it did.
    """

    limit: int | None = None
    skip: frozenset[int] = frozenset()
    enter: Callable[[int], None] = every

    def run(
        self, sample: Sample, made: Judgement, told: str, at: Mapping[str, int],
        said: Callable[[Mapping[str, int]], list[Said]], to: Callable[[int], tuple[int, ...]] = beside,
    ) -> Iterator[tuple[int, Mapping[str, int], Ran | Refused]]:
        """Yields the number of each point, its sizes by symbol, and what torch says there. Points where torch
        cannot be asked, or refuses the data, are counted or remarked and left out.
        """
        for number, values in enumerate(points(at, self.limit, to)):
            sizes = sizes_at(sample, values)
            if number in self.skip:
                made.remarks.append(Remark("crash", told, shown(sizes), "the process dies", ""))
                continue
            if is_unsafe(sample, sizes, said(values)):
                made.points += 1
                made.unjudged += 1
                continue
            self.enter(number)
            try:
                with deadline(EAGER_S):
                    real = run_eagerly(sample, sizes)
            except Deadline:
                late = f"runs for more than {EAGER_S} s"
                made.remarks.append(Remark("deadline", told, shown(sizes), late, ""))
                continue
            made.points += 1
            if isinstance(real, Refused) and real.data:
                made.unjudged += 1
                continue
            made.accepted += isinstance(real, Ran)
            made.refused += isinstance(real, Refused)
            yield number, values, real


def judge(sample: Sample, rules: Rules = default_rules, looked_at: Points = Points()) -> Judgement:
    """Holds the rules against torch at a sample and beside it."""
    told = describe(sample)
    made = Judgement()
    if suits(sample):
        return made

    def remark(kind: str, point: str, theirs: str, ours: str, rule: str = "") -> None:
        made.remarks.append(Remark(kind, told, point, theirs, ours, rule))

    try:
        with deadline(RECORD_S):
            concrete, _ = record_sample(sample, False, rules)
            system, at = record_sample(sample, True, rules)
            if at and (system.incomplete or any(map(_wants_number, system.paths))):
                system, at = record_sample(sample, True, rules, bounded=True)
    except Deadline:
        remark("deadline", "", "", f"recording takes more than {RECORD_S} s")
        return made
    except Exception as error:  # noqa: BLE001 - a defect of the recorder is a finding of its own
        remark("failed", "", "", f"{type(error).__name__}: {error}")
        return made
    for known in (concrete, system):
        for path in known.paths:
            for note in path.notes:
                remark(kind_of(note), "", "", note.reason, rule_of(path, sample, note.reason))
        if made.remarks:
            return made
    for number, values, real in looked_at.run(sample, made, told, at, partial(said_at, system)):
        told_by = [("", said_at(system, values), values)]
        if number == 0:
            told_by.append(("as it is: ", said_at(concrete, {}), {}))
        verdicts = [(name, compare(sample, said, real, bound)) for name, said, bound in told_by]
        for name, verdict in verdicts:
            if verdict is not None:
                kind, theirs, ours, rule = verdict
                remark(kind, name + shown(sizes_at(sample, values)), theirs, ours, rule)
        made.agreed += all(verdict is None for _, verdict in verdicts)
    return made


def sizes_at(sample: Sample, values: Mapping[str, int]) -> list[Any]:
    """For each of the sample's varied arguments, a tensor's sizes or the number that it is."""
    return [
        tuple(values.get(f"t{i}_{axis}", n) for axis, n in enumerate(t.shape))
        if isinstance(t, torch.Tensor) else values.get(f"n{i}", t)
        for i, t in enumerate(sample.varied)
    ]


def compare(
    sample: Sample, said: list[Said], real: Ran | Refused, values: Mapping[str, int]
) -> tuple[str, str, str, str] | None:
    """(kind, torch's, ours, rule) where no path says what torch does; None where one does."""
    found: list[tuple[str, str, str, str]] = []
    for one in said:
        if isinstance(real, Refused) and same_refusal(one.reason, real.reason):
            return None
        theirs = str(real)
        if one.verdict in ("gave-up", "incomplete", "failed"):
            found.append((one.verdict, theirs, one.reason, rule_of(one.path, sample)))
        elif isinstance(real, Refused):
            if one.verdict == "refuses":
                if one.error in ("", "Exception", real.error) or not real.error:
                    return None
                told = f"{one.error}: {one.reason}"
                found.append(("raises", theirs, told, rule_of(one.path, sample, one.reason)))
                continue
            operators = ", ".join(node.op for node in one.path.program.nodes[:9]) if one.path else ""
            found.append(("accepts", theirs, f"accepts ({operators})", rule_of(one.path, sample)))
        elif one.verdict == "refuses":
            found.append(("refuses", theirs, one.reason, rule_of(one.path, sample, one.reason)))
        else:
            assert one.path is not None
            difference = differs(one.path, real, values)
            if difference is None:
                return None
            found.append((*difference, rule_of(one.path, sample)))
    return next((one for one in found if one[0] in NOT_SAID), found[0])


def same_refusal(ours: str, theirs: str) -> bool:
    """Is it Python's own code that refuses, in the recorded program as in any other?"""
    kinds = {reason.partition(": ")[0] for reason in (ours, theirs)}
    return ours == theirs or kinds == {"TypeError"}


def judge_error(sample: Sample, rules: Rules = default_rules) -> Judgement:
    """An input that torch's authors expect a refusal of: what it refuses for its sizes, the rules refuse."""
    told = describe(sample)
    made = Judgement()
    if suits(sample):
        return made
    real = run_eagerly(sample, sizes_at(sample, {}))
    if isinstance(real, Ran):
        return made  # refused on other devices only
    if real.data or any(re.search(pattern, real.reason) for pattern, _ in NOT_OF_SIZES):
        made.unjudged += 1
        return made
    made.points, made.refused = 1, 1
    try:
        with deadline(RECORD_S):
            system, _ = record_sample(sample, False, rules)
    except NotCallable as error:  # it fails whatever the sizes are
        made.agreed = str(error).endswith(real.reason)
        if not made.agreed:
            made.remarks.append(Remark("raises", told, "", real.reason, str(error)))
        return made
    except Exception as error:  # noqa: BLE001 - as above
        made.remarks.append(Remark("failed", told, "", real.reason, f"{type(error).__name__}: {error}"))
        return made
    for path in system.paths:
        for note in path.notes:
            rule = rule_of(path, sample, note.reason)
            made.remarks.append(Remark(kind_of(note), told, "", real.reason, note.reason, rule))
            return made
    verdict = compare(sample, said_at(system, {}), real, {})
    made.agreed = verdict is None
    if verdict is not None:
        kind, theirs, ours, rule = verdict
        made.remarks.append(Remark(kind, told, "", theirs, ours, rule))
    return made
