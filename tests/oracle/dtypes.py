"""Which dtypes operators take, learnt from torch: `constraints/engine/kernels.json` is made of it.

    python tests/oracle/dtypes.py try build/kernels-2.13.json     once with each release of torch
    python tests/oracle/dtypes.py write build/kernels-*.json      the table, and docs/dtypes.md
    python tests/oracle/dtypes.py compare                         eager torch beside the rules, for each pair

Every operator of torch's database is called with a few samples of each dtype. What a call comes down to is
recorded, so that the outcome is known of the operators that have rules; the calls of ATen's operators that it
makes are made by themselves, too. A refusal for the sake of a dtype is tried once more with no elements.

With `--like` another release's trials are taken for the operators whose samples come to the same in both.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import multiprocessing
import os
import re
import sys
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from itertools import islice
from multiprocessing.connection import wait
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeAlias
from unittest import mock

import torch

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from torch.testing._internal import common_cuda

    for flag in vars(common_cuda):
        if re.fullmatch(r"SM\d+OrLater", flag):  # so that the database speaks of today's GPUs
            setattr(common_cuda, flag, True)

from oracle.judge import (
    Deadline,
    Ran,
    Refused,
    compare,
    deadline,
    record_sample,
    run_eagerly,
    said_at,
    sizes_at,
    spec_of,
    suits,
)
from oracle.samples import Entry, OpInfo, Sample, _aten, databases, entries, seed
from torch.utils import _pytree as pytree
from tqdm import tqdm

from anyshape.constraints.engine import generate
from anyshape.constraints.engine.generate import Generator
from anyshape.constraints.engine.kernels import (
    DEVICES,
    DTYPES,
    ERRORS,
    RUNS,
    UNLESS_ONE,
    dtype_of,
    kernel_of,
    kind_of,
    takes_single,
    words_of,
)
from anyshape.constraints.ir.language import tensors
from anyshape.constraints.ir.release import release_of
from anyshape.constraints.ir.spec import Declared, Spec
from anyshape.constraints.ir.system import Domain
from anyshape.constraints.rules import default_rules
from anyshape.constraints.terms.dims import sym
from anyshape.constraints.terms.formula import ge
from anyshape.solver.decide import DomainOracle
from anyshape.solver.tactics.judge import Budget
from anyshape.tracer.recording.binding import NotCallable
from anyshape.tracer.recording.record import record

TABLE = Path(__file__).parents[2] / "constraints/engine/kernels.json"
PAGE = Path(__file__).parents[2] / "docs/dtypes.md"

NOTHING = RUNS * len(DTYPES)
"""The row of an operator that nothing is said of."""
COMPARED = 2
"""Samples of each pair that are compared."""
SAMPLES, OF_ATEN = 8, 1
"""How many samples of an entry are taken, of each dtype; and of how many the calls of ATen's operators."""
EMPTY = 8
"""How many ways to have no elements are tried of a sample."""
SECONDS, MANY_SECONDS = 5.0, 60.0
CONTROLS = (torch.float32, torch.int64, torch.complex64, torch.bool)
"""Dtypes of which one runs, where a refusal is for the sake of the dtype."""
UNTOLD = frozenset("uint16 uint32 uint64".split())
"""Dtypes that torch's database says nothing of."""
LETTERS = frozenset("NotImplementedError RuntimeError TypeError ValueError IndexError".split())
OF_DTYPES = re.compile(
    r"not implemented for|not support|unsupported|dtype|scalar type|data type|bool|complex|floating|integ"
    r"|half|double|float|result type|could not run|input type|expected .*tensor|same type|integral",
    re.IGNORECASE,
)
"""Words of a refusal for the sake of a dtype, which all of them have."""


Calls: TypeAlias = "list[tuple[str, Any, Any]] | None"
"""Operators with their arguments and results."""


@dataclass(frozen=True)
class Trial:
    """A call, and what came of it: `.` where it ran, else the letter of the exception; with `0` before it, if
    a tensor has no elements.
    """

    kind: str
    words: str
    dtype: str
    outcome: str


# ---- samples of every dtype


def cast(sample: Sample, old: torch.dtype, new: torch.dtype) -> Sample:
    """The sample with tensors of another dtype for those of one, and the name of it."""

    def one(leaf: Any) -> Any:
        if isinstance(leaf, torch.Tensor):
            return leaf.to(new) if leaf.dtype is old else leaf
        return new if leaf is old else leaf

    args, kwargs = pytree.tree_map(one, (sample.args, sample.kwargs))
    return replace(sample, args=args, kwargs=kwargs)


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def drawn(info: OpInfo, dtype: torch.dtype, count: int) -> list[Sample]:
    """Samples of a dtype: torch's own or, where its database makes none, those of another, converted."""
    for own in (dtype, *CONTROLS):
        if own is not dtype and not info.supports_dtype(own, "cpu"):
            continue
        seed()
        with warnings.catch_warnings(), contextlib.suppress(RuntimeError, ValueError, TypeError, KeyError):
            warnings.simplefilter("ignore")
            made = [
                Sample(name_of(dtype), "dtype", i, info.op, (s.input, *s.args), dict(s.kwargs))
                for i, s in enumerate(islice(info.sample_inputs_func(info, "cpu", own, False), count))
            ]
            return [cast(s, own, dtype) for s in made if not suits(s)]
    return []


def outcome(sample: Sample, sizes: list[Any]) -> Ran | Refused | None:
    """What torch does; None where it refuses the elements, or takes too long."""
    with contextlib.suppress(Deadline), deadline(SECONDS):
        real = run_eagerly(sample, sizes)
        return None if isinstance(real, Refused) and real.data else real
    return None


OTHERS = "others"
"""The entry of calls that torch's databases have no samples of."""


def others(dtype: torch.dtype) -> Iterator[Sample]:
    x, p = torch.ones(2, 3, 4, dtype=dtype), torch.zeros(2, 3, 4, dtype=torch.int64)
    calls: tuple[tuple[Any, tuple[Any, ...], dict[str, Any]], ...] = (
        (torch.rand, (3,), {"dtype": dtype}),
        (torch.randn, (3,), {"dtype": dtype}),
        (torch.randint, (2, (3,)), {"dtype": dtype}),
        (torch.randint_like, (x, 2), {}),
        (torch.randint_like, (p, 2), {"dtype": dtype}),
        (torch.rand_like, (p,), {"dtype": dtype}),
        (torch.randn_like, (p,), {"dtype": dtype}),
        (torch.randperm, (3,), {"dtype": dtype}),
        (torch.tril_indices, (3, 3), {"dtype": dtype}),
        (torch.triu_indices, (3, 3), {"dtype": dtype}),
        (torch.cumsum, (p, 0), {"dtype": dtype}),
        (torch.cumprod, (p, 0), {"dtype": dtype}),
        (torch.nn.functional.max_unpool1d, (x[..., :1], p[..., :1], 2), {}),
        (torch.nn.functional.interpolate, (x, 3), {"mode": "nearest"}),
        (torch.nn.functional.interpolate, (x, 3), {"mode": "linear"}),
        (torch.nn.functional.interpolate, (x[None], 3), {"mode": "nearest-exact"}),
        (torch.nn.functional.interpolate, (x[None], 3), {"mode": "bilinear"}),
        (torch.nn.functional.interpolate, (x[None], 3), {"mode": "bicubic"}),
        (torch.nn.functional.interpolate, (x[None, None], 3), {"mode": "trilinear"}),
        (torch.nn.functional.interpolate, (x[None, None], 3), {"mode": "nearest"}),
        (torch.nn.functional.adaptive_avg_pool1d, (x, 1), {}),  # a mean, by another kernel
        (torch.nn.functional.adaptive_avg_pool2d, (x, 1), {}),
        (torch.nn.functional.adaptive_avg_pool3d, (x[None], 1), {}),
        (torch.nn.functional.fold, (x[:1], (2, 2), 1), {}),
        (torch.nn.functional.unfold, (x[None], 1), {}),
        (torch.unique, (x,), {}),
        (torch.unique_consecutive, (x,), {}),
        (torch.searchsorted, (x[0, 0], x[0, 0]), {}),
    )
    for number, (call, args, kwargs) in enumerate(calls):
        yield Sample(name_of(dtype), "dtype", number, call, args, kwargs)


# ---- trials


def calls_of(samples: list[Sample]) -> list[Calls]:
    """For each sample the calls of operators that it comes down to, with arguments and results; None where a
    rule refuses one.

    One recording serves for all that come after each other without an end of the recording.
    """
    found: list[Calls] = []
    while len(found) < len(samples):
        heard = _heard(samples[len(found) :])
        found += heard
        if not heard or len(found) < len(samples):
            found.append(None)
    return found[: len(samples)]


def _heard(samples: list[Sample]) -> list[Calls]:
    """The calls of samples, up to the one in which the recording ended."""
    marks: SimpleQueue[Any] = (
        SimpleQueue()
    )  # a recording leaves it alone, where it takes back changes of lists
    inputs: list[Declared] = []
    sizes: dict[str, int] = {}
    spans = []
    for sample in samples:
        start = len(inputs)
        own, _ = spec_of(sample, False)
        for declared in own.inputs:
            value = declared.type
            if type(value) is int:  # torch itself is called for a number that is known, and no rule
                sizes[f"n{len(inputs)}"] = value
                value = sym(f"n{len(inputs)}")
            inputs.append(Declared(("xs", len(inputs)), value))
        spans.append(slice(start, len(inputs)))

    def heard(context: Any, kernels: Any, op: str, named: Any, result: Any) -> None:
        marks.put((op, dict(named), result))

    def required(self: Generator, formula: Any, *rest: Any, **named: Any) -> None:
        if formula is False:
            marks.put(None)
        require(self, formula, *rest, **named)

    def apart(self: Generator, call: Any) -> object:
        return object()  # a key of its own, so that no call is answered without its rule

    def target(xs: Any = ()) -> None:
        for number, (sample, span) in enumerate(zip(samples, spans, strict=True)):
            marks.put(number)
            try:
                sample.run(list(xs[span]))
            except Exception:  # noqa: BLE001 - whatever it refuses with, nothing is known of its calls
                marks.put(None)
        marks.put(len(samples))

    known = tuple(ge(sym(name), size) for name, size in sizes.items())
    require, spec = Generator.require, Spec(tuple(inputs), Domain(tuple(sizes), known))
    with (
        mock.patch.object(generate, "require_kernel", heard),
        mock.patch.object(Generator, "require", required),
        mock.patch.object(Generator, "_key", apart),
        torch.no_grad(),
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        with contextlib.suppress(Deadline), deadline(MANY_SECONDS):
            oracle = DomainOracle(spec.domain, Budget(MANY_SECONDS))
            record(target, spec, default_rules, oracle, max_paths=1, budget_s=MANY_SECONDS)
    found: list[Calls] = []
    while not marks.empty():
        mark = marks.get()
        if type(mark) is int and mark < len(found):  # a run from the start
            found = []
        if mark == len(samples):
            return found
        if type(mark) is int:
            found.append([])
        elif mark is None:
            found[-1] = None
        elif (calls := found[-1]) is not None:
            calls.append(mark)
    return found[:-1]


def trial(call: tuple[str, Any, Any], came: str) -> Trial:
    op, named, result = call
    op = kernel_of(op, named)
    dtype = dtype_of(named, result) or ""
    if any(0 in tensor.shape for tensor in tensors((*named.values(), result))):
        came = "0" + came.removeprefix("0")
    return Trial(kind_of(op, dtype, named), words_of(op, named), dtype, came)


def is_single(op: str, named: Any, result: Any) -> bool:
    """Whether a call takes a single element, as some operators do of dtypes that they have no kernel for."""
    if takes_single(op, named):
        return not named["input"].shape
    dim = named.get("dim") if op in UNLESS_ONE else None
    return type(dim) is int and named["input"].shape[dim : dim + 1 or None] == (1,)


def letter_of(real: Ran | Refused) -> str:
    if isinstance(real, Ran):
        return RUNS
    return real.error[:1] if real.error in LETTERS and OF_DTYPES.search(real.reason) else ""


def trials_of(
    sample: Sample, dtype: torch.dtype, calls: list[Any], known: set[tuple[Trial, ...]]
) -> Iterator[tuple[Trial, ...]]:
    """What a sample shows of the operators that it calls, and without elements; nothing where it is known."""
    whole = sizes_at(sample, {})
    real = None if any(is_single(*call) for call in calls) else outcome(sample, whole)
    if real is None or not (came := letter_of(real)):
        return
    shown = tuple(trial(call, came) for call in calls)
    if shown in known:
        return
    if came == RUNS:
        yield shown
        return
    control = next((c for c in controls(sample, dtype) if isinstance(outcome(c, whole), Ran)), None)
    if control is None:
        if isinstance(real, Refused) and "not implemented for '" in real.reason:  # of no other call
            yield shown
        return
    yield shown
    if len(calls) != 1:
        return
    for sizes in islice(without_elements(whole), EMPTY):
        ran = outcome(resized(control, sizes), sizes)
        if isinstance(ran, Ran) and is_empty(sample, dtype, sizes, ran):
            real = outcome(resized(sample, sizes), sizes)
            if real is not None and (came := letter_of(real)):
                yield (trial(calls[0], "0" + came),)


def controls(sample: Sample, dtype: torch.dtype) -> Iterator[Sample]:
    for other in CONTROLS:
        if other is not dtype:
            yield cast(sample, dtype, other)


def without_elements(whole: list[Any]) -> Iterator[list[Any]]:
    """The sizes with 0 in the place of one of them, wherever it is, or along one axis of all tensors of the
    highest rank, or of one in one place.
    """
    shapes = [sizes for sizes in whole if isinstance(sizes, tuple)]
    if any(0 in shape for shape in shapes):
        return
    for n in sorted({n for shape in shapes for n in shape}):
        yield [tuple(0 if m == n else m for m in s) if isinstance(s, tuple) else s for s in whole]
    rank = max(map(len, shapes), default=0)
    for axis in range(rank):
        yield [
            (*s[:axis], 0, *s[axis + 1 :]) if isinstance(s, tuple) and len(s) == rank else s for s in whole
        ]
    for i, s in enumerate(whole):
        if isinstance(s, int):
            yield [*whole[:i], 0, *whole[i + 1 :]]
            continue
        for axis in range(len(s)):
            yield [*whole[:i], (*s[:axis], 0, *s[axis + 1 :]), *whole[i + 1 :]]


def resized(sample: Sample, sizes: list[Any]) -> Sample:
    """The sample with tensors of zeros where the sizes are others."""
    rest = iter(sizes)

    def one(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or (size := next(rest)) == tuple(leaf.shape):
            return leaf
        return torch.zeros(size, dtype=leaf.dtype)

    args, kwargs = pytree.tree_map(one, (sample.args, sample.kwargs))
    return replace(sample, args=args, kwargs=kwargs)


def is_empty(sample: Sample, dtype: torch.dtype, sizes: list[Any], ran: Ran) -> bool:
    given = (0 in size for tensor, size in zip(sample.tensors, sizes, strict=False) if tensor.dtype is dtype)
    return any(given) or any(tensor.numel() == 0 for tensor in ran.tensors)


def samples_of(entry: Entry) -> Iterator[Sample]:
    for name in DTYPES:
        if entry.name == OTHERS:
            yield from others(getattr(torch, name))
            continue
        for sample in drawn(entry.info, getattr(torch, name), SAMPLES):
            yield sample
            if sample.number < OF_ATEN:
                own = _aten(entry.name, entry.info, sample.number, sample.args, sample.kwargs)
                yield from (replace(s, entry=name) for s in own if not suits(s))


def tried(entry: Entry) -> dict[str, Any]:
    """What torch does here, and what its database says of CUDA, for the dtypes that its tests hold it to."""
    samples = [*samples_of(entry)]
    here: set[tuple[Trial, ...]] = set()
    cuda: set[tuple[Trial, ...]] = set()
    for sample, calls in zip(samples, calls_of(samples), strict=True):
        if calls:
            dtype = getattr(torch, sample.entry)
            here.update(trials_of(sample, dtype, calls, here))
            if entry.name == OTHERS or sample.form != "dtype" or sample.entry in UNTOLD:
                continue
            takes = entry.info.supports_dtype(dtype, "cuda")
            if takes or len(calls) == 1:
                cuda.add(tuple(trial(call, RUNS if takes else "R") for call in calls))
    told = {"cpu": here, "cuda": cuda}
    return {"came": came_of(entry)} | {
        device: sorted([astuple(t) for t in ts] for ts in own) for device, own in told.items()
    }


# ---- rows


def rows_of(lists: Iterable[tuple[Trial, ...]]) -> dict[str, str]:
    """The rows of what is refused in every trial.

    Of several calls one is to blame for a refusal if the others are known to run, and never to be refused.
    """
    alone: list[Trial] = []
    several: list[tuple[Trial, ...]] = []
    for trials in lists:
        refused = any(t.outcome.strip("0") != RUNS for t in trials)
        if refused and len(trials) > 1:
            several.append(trials)
        else:
            alone += trials
    seen: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for t in alone:
        seen[t.kind, t.dtype][t.words].add(t.outcome)
    runs = {
        place for place, by_words in seen.items() if set().union(*by_words.values()) <= {RUNS, "0" + RUNS}
    }
    for trials in several:
        blamed = {(t.kind, t.dtype): t for t in trials if (t.kind, t.dtype) not in runs}
        if len(blamed) == 1:
            ((place, t),) = blamed.items()
            seen[place][t.words].add(t.outcome)
    letters: dict[str, dict[str, str]] = defaultdict(dict)
    for (kind, dtype), by_words in seen.items():
        every = set().union(*by_words.values())
        if RUNS not in every:
            letters[kind][dtype] = letter(every)
            continue
        for words, outcomes in by_words.items():
            if words and RUNS not in outcomes:
                letters[kind + words][dtype] = letter(outcomes)
    rows = {kind: "".join(row.get(d, RUNS) for d in DTYPES) for kind, row in sorted(letters.items())}
    return {kind: row for kind, row in rows.items() if row != NOTHING}


def letter(outcomes: set[str]) -> str:
    """One letter for several outcomes, none of them a run with elements.

    Where tensors without elements are refused, and none runs, those with elements are, too.
    """
    some = {o for o in outcomes if not o.startswith("0")}
    empty = {o.removeprefix("0") for o in outcomes - some}
    if not some and RUNS in empty:
        return RUNS
    errors = some | empty - {RUNS}
    error = errors.pop() if len(errors) == 1 else "R"  # a NotImplementedError is a RuntimeError
    always, unless_empty, perhaps = next(ways for ways in ERRORS if ways[0] == error)
    if RUNS not in empty:
        return always if empty else perhaps
    return unless_empty if empty == {RUNS} else perhaps


# ---- each entry in a process of its own, which may die


def each(work: Any, names: list[str], jobs: int) -> Iterator[tuple[str, Any]]:
    todo, busy = list(reversed(names)), {}
    context = multiprocessing.get_context("fork")
    entries()  # before the workers fork, so that they share it
    while todo or busy:
        while todo and len(busy) < jobs:
            mine, theirs = context.Pipe(duplex=False)
            process = context.Process(target=_worker, args=(work, todo[-1], theirs), daemon=True)
            process.start()
            theirs.close()
            busy[mine] = todo.pop(), process
        for pipe in wait([*busy], timeout=1.0):
            name, process = busy.pop(pipe)
            try:
                came, failed = pipe.recv()
                if failed:
                    print(name, failed, file=sys.stderr)
                else:
                    yield name, came
            except EOFError:
                print(f"{name}: the process died", file=sys.stderr)
            process.join()


def _worker(work: Any, name: str, pipe: Any) -> None:
    with open(os.devnull, "w") as nowhere:  # torch warns from C++, once per call and more
        os.dup2(nowhere.fileno(), 2)
    try:
        pipe.send((work(entries().get(name, Entry(name))), ""))
    except Exception:  # noqa: BLE001 - a defect of the harness is told as one, with its place
        pipe.send((None, traceback.format_exc()))


# ---- commands


def operators() -> list[str]:
    return [*(info.formatted_name for info in databases.op_db), OTHERS]


def try_all(names: list[str], jobs: int, like: Mapping[str, Any]) -> dict[str, Any]:
    """What torch does with each operator here, and what its database says of CUDA.

    An entry whose samples come to the same as in another release is not looked at any further.
    """
    own = (
        dict(tqdm(each(came_of, names, jobs), total=len(names), unit="operator", smoothing=0)) if like else {}
    )
    same = {name: like[name] for name in names if name in like and like[name]["came"] == own.get(name)}
    found: dict[str, Any] = dict(same)
    rest = [name for name in names if name not in same]
    for name, came in tqdm(each(tried, rest, jobs), total=len(rest), unit="operator", smoothing=0):
        found[name] = came
    return {"release": ".".join(torch.__version__.split(".")[:2]), "entries": found}


def came_of(entry: Entry) -> str:
    """What came of the samples, and the dtypes that the entry takes on CUDA."""
    samples = [(s, getattr(torch, s.entry)) for s in samples_of(entry) if s.form == "dtype"]
    letters = [letter_of(real) if (real := outcome(s, sizes_at(s, {}))) else "-" for s, _ in samples]
    cuda = [
        d for d in DTYPES if entry.info is not None and entry.info.supports_dtype(getattr(torch, d), "cuda")
    ]
    return " ".join((*(f"{s.entry}{letter}" for (s, _), letter in zip(samples, letters, strict=True)), *cuda))


def write(found: list[dict[str, Any]]) -> None:
    """Writes the table, whole for the newest release, and for the others what is not the same there."""
    found.sort(key=lambda one: release_of(one["release"]))
    rows = {d: {one["release"]: rows_of(all_trials(one, d)) for one in found} for d in DEVICES}
    newest = found[-1]
    known = {t.kind.partition(" ")[0].removesuffix(">") for ts in all_trials(newest, "cuda") for t in ts}
    data: dict[str, Any] = {"releases": [one["release"] for one in found]}
    for device, by_release in rows.items():
        last = by_release[newest["release"]]
        changed = {release: changes(last, own) for release, own in by_release.items() if own != last}
        data[device] = {"rows": last, "changed": changed}
    data["cuda"] |= {"known": " ".join(sorted(known)), "untold": " ".join(sorted(UNTOLD))}
    TABLE.write_text(json.dumps(data, indent=1) + "\n")
    PAGE.write_text(page(data))


def all_trials(one: dict[str, Any], device: str) -> Iterator[tuple[Trial, ...]]:
    for entry in one["entries"].values():
        yield from (tuple(Trial(*t) for t in trials) for trials in entry[device])


def changes(newest: dict[str, str], own: dict[str, str]) -> dict[str, str]:
    kinds = sorted(newest.keys() | own.keys())
    return {k: own.get(k, NOTHING) for k in kinds if own.get(k, NOTHING) != newest.get(k, NOTHING)}


def refused(row: str, other: str) -> str:
    """The dtypes of a row at which another one differs, by the exceptions that refuse them; with `*` where
    tensors without elements are not refused, with `?` where they may be.
    """
    named: dict[str, list[str]] = defaultdict(list)
    for dtype, letter, others in zip(DTYPES, row, other, strict=True):
        if letter not in (RUNS, others):
            letters, error = next((ways, error) for ways, error in ERRORS.items() if letter in ways)
            named[error.__name__ + ("", "*", "?")[letters.index(letter)]].append(dtype)
    return "; ".join(f"{error}: {' '.join(dtypes)}" for error, dtypes in named.items()) or "none"


PAGE_TOP = """# Dtypes without a kernel

A kernel of torch accepts some dtypes and refuses others, and this differs between releases and devices. This
page shows how much, and where. A check uses the table in `constraints/engine/kernels.json`: its rows for the
release that wrote a `.pt2`, or else for the installed one, and for the device of the tensors, or for that of
`--device` (`device="cuda"` in Python, `device = "cuda"` below `[tool.anyshape]`). `tests/oracle/dtypes.py`
writes the table and this page. `make dtypes` compares a check's answers with eager torch.

A row of the table describes calls of one kind: those whose tensors all have one dtype, or those whose other
operands have dtypes that the row names. For each dtype it states whether all such calls were refused, with
which exception, and whether tensors without elements were refused, too. It makes no statement about other
calls. The rows for the CPU come from calls in each release. The rows for CUDA come from torch's own database
of operators: no call was made there.

| device | release | rows | refused pairs |
| --- | --- | --- | --- |
"""
PAGE_END = """
On CUDA the dtypes of {known} operators are known. All other operators, and the dtypes {untold}, may be
refused: a check reports that, and proves nothing. Only float32 counts as accepted by all operators.

## What differs between releases

For each kind of calls, the dtypes for which releases differ. `*` means that tensors without elements are
accepted, `?` that they may be.

| device | release | calls | refused there | refused in {newest} |
| --- | --- | --- | --- | --- |
"""


def page(data: dict[str, Any]) -> str:
    *_, newest = data["releases"]
    sums, differences = [], []
    for device in DEVICES:
        last = data[device]["rows"]
        for release in data["releases"]:
            changed = data[device]["changed"].get(release, {})
            own = [row for row in {**last, **changed}.values() if row != NOTHING]
            pairs = sum(len(row) - row.count(RUNS) for row in own)
            sums.append(f"| {device} | {release} | {len(own):,} | {pairs:,} |\n")
            for kind, row in changed.items():
                now = last.get(kind, NOTHING)
                there, here = refused(row, now), refused(now, row)
                differences.append(f"| {device} | {release} | `{kind}` | {there} | {here} |\n")
    known = len(data["cuda"]["known"].split())
    end = PAGE_END.format(known=known, untold=", ".join(sorted(UNTOLD)), newest=newest)
    return PAGE_TOP + "".join(sums) + end + "".join(differences)


# ---- the rules beside torch


def compared(entry: Entry) -> list[tuple[str, str, str, str]]:
    """For each dtype of the entry how the rules differ from torch in its first samples: what `judge` would
    call it, what torch does, and what the rules say; nothing where they agree in all.
    """
    found = []
    for name in DTYPES if entry.name != OTHERS else ():
        ways = [
            way
            for s in drawn(entry.info, getattr(torch, name), COMPARED)
            if (way := difference(s)) is not None
        ]
        if ways:
            found.append((name, *next((way for way in ways if way[0]), ways[0])))
    return found


def difference(sample: Sample) -> tuple[str, str, str] | None:
    real = outcome(sample, sizes_at(sample, {}))
    if real is None:
        return None
    try:
        with deadline(SECONDS):
            system, _ = record_sample(sample, False, default_rules)
    except (Deadline, NotCallable) as error:
        return ("", "", "") if isinstance(real, Refused) else ("deadline", str(real), str(error))
    wrong = compare(sample, said_at(system, {}), real, {})
    if wrong is None:
        return "", "", ""
    if any(path.notes for path in system.paths):
        return "approximate", wrong[1], wrong[2] or ""
    return wrong[0], wrong[1], wrong[2] or ""


def show(names: list[str], jobs: int) -> None:
    """Prints the pairs of operator and dtype that differ, and how many there are."""
    count = Counter[str]()
    for name, pairs in tqdm(each(compared, names, jobs), total=len(names), unit="operator", smoothing=0):
        for dtype, kind, theirs, ours in pairs:
            count[kind or "agree"] += 1
            if kind:
                print(f"{name} {dtype}: {kind}; torch: {theirs[:90]}; ours: {ours[:70]}".replace("\n", " "))
    print(f"torch {torch.__version__}: {sum(count.values()):,} pairs;", dict(count.most_common()))


def main() -> None:
    parser = argparse.ArgumentParser(description="Which dtypes operators take.")
    parser.add_argument("command", choices=("try", "write", "compare"))
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--op", action="append", help="only this entry of the databases; may be repeated")
    parser.add_argument(
        "--like", type=Path, help="trials of another release, which are taken where all is alike"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    tqdm.monitor_interval = 0
    names = given.op or operators()
    if given.command == "try":
        (file,) = given.files
        like = json.loads(given.like.read_text())["entries"] if given.like else {}
        file.write_text(json.dumps(try_all(names, given.jobs, like)))
    elif given.command == "write":
        write([json.loads(file.read_text()) for file in given.files])
    else:
        show(names, given.jobs)


if __name__ == "__main__":
    main()
