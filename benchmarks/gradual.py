"""Gradual typing, ours and torch's, on the same graphs in one process.

    python -m benchmarks.gradual [NAME…] [--limit SECONDS] [--write]

The question is whether there is a static migration where nothing is declared of the inputs: neither sizes
nor ranks. torch's `migrate_gradual_types` looks at ranks from 1 to 4. *generate* is what happens before the
solver is asked, *solve* the rest. What torch answers within 15 seconds is the median of five rounds in which
both take turns, each for a fifth of a second at least; all else was asked once. Programs that torch.fx does
not trace are measured as they are, ours alone.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import torch
from torch import nn

from anyshape.constraints.rules import default_rules
from anyshape.solver.decide import decide
from anyshape.solver.tactics.judge import Budget
from anyshape.tracer.readers.fx import placeholders
from anyshape.typecheck.checking.api import question
from anyshape.typecheck.checking.clock import Clock

from . import networks
from .tables import Table
from .timing import now

PAGE: Final = Path(__file__).parent / "gradual.md"

PROGRAMS: Final[Mapping[str, Callable[[], nn.Module]]] = {
    **{f"{n} Linear, ReLU": partial(networks.linears, n) for n in (8, 32, 64, 1000)},
    **{f"{n} conv, bn, ReLU": partial(networks.convolutions, n) for n in (4, 16, 64, 1000)},
    **{f"{n} broadcasts": partial(networks.Broadcasts, n) for n in (4, 8, 16, 32, 1000)},
    "ResNet-18": lambda: networks.ResNet().eval(),
    "ResNet-50": lambda: networks.ResNet((3, 4, 6, 3), 4).eval(),
    **{f"{n} transformer blocks": partial(networks.transformer, n) for n in (1, 2, 4, 24)},
}
"""Graphs that both take. What is longer than torch gets through within the limit shows how ours grows."""

QUICK: Final = 15.0
ROUNDS: Final = 5
"""What torch answers within so many seconds is asked in so many rounds more, and the median is told."""

LEAST: Final = 0.2
"""What takes less is asked again in the same round, as `timeit` does: else the processor's caches are still
full of what the other contender has done.
"""

MODELS: Final = ("Bert", "Roberta", "Electra", "MobileBert", "MegatronBert", "XGLM")
"""The models of the paper (Migeed, Reed, Ansel, Palsberg, ECOOP 2024), as transformers has them."""


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds, and the answer; `gave up` where the limit came first."""

    answer: str
    generate: float
    solve: float

    @property
    def total(self) -> float:
        return self.generate + self.solve


class OutOfTime(Exception):
    """The limit came first."""


@contextmanager
def limit(seconds: float) -> Iterator[None]:
    """Raises OutOfTime after so many seconds of the processor."""

    def ring(*args: object) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def ours(target: Any, inputs: list[str], seconds: float) -> Took:
    """Recorded and decided; nothing is replayed."""
    started = now()
    asked = question(target, inputs, (), Clock(lambda step: None, seconds), default_rules, replay=False)
    generated = now()
    decision = decide(asked.system, Budget(seconds))
    answer = {"refuted": "none", "unknown": "not known"}.get(decision.verdict, "some")
    return Took(answer, generated - started, now() - generated)


def theirs(graph_module: torch.fx.GraphModule, seconds: float) -> Took:
    """Constraints, their transformation into Z3's terms, and Z3."""
    import z3
    from torch.fx.experimental.migrate_gradual_types.transform_to_z3 import transform_all_constraints
    from torch.fx.tensor_type import Dyn

    for node in graph_module.graph.nodes:
        node.type = Dyn
    started = now()
    try:
        with limit(seconds):
            constraints = transform_all_constraints(graph_module, counter=0)
    except (OutOfTime, ctypes.ArgumentError):  # the alarm may ring within a call of Z3
        return Took("gave up", now() - started, 0.0)
    except RecursionError:
        return Took("too deep", now() - started, 0.0)
    generated = now()
    solver = z3.Solver()
    solver.set("timeout", int(3000 * seconds))  # of the clock on the wall, on a machine that others use
    solver.add(constraints)
    said = str(solver.check())
    solved = now() - generated
    answer = {"sat": "some", "unsat": "none"}.get(said, "gave up") if solved <= seconds else "gave up"
    return Took(answer, generated - started, solved)


def row(name: str, seconds: float) -> dict[str, Any]:
    """Both, on one graph."""
    graph_module = torch.fx.symbolic_trace(PROGRAMS[name]())
    inputs = [f"{parameter}: float32[...]" for parameter, _, _ in placeholders(graph_module)]
    us, them = ours(graph_module, inputs, seconds), theirs(graph_module, seconds)
    if them.total < QUICK:  # those came first, with caches to fill
        pairs = []
        for _ in range(ROUNDS):
            us = _repeated(lambda: ours(graph_module, inputs, seconds))
            pairs.append((us, _repeated(lambda: theirs(graph_module, seconds))))
        us, them = map(_middle, zip(*pairs, strict=True))
    gave_up = them.answer not in ("some", "none")
    return {
        "program": name, "answer": us.answer, **_columns("ours", us),
        "torch": them.answer, **_columns("torch", them),
        "ratio": f"{'> ' if gave_up else ''}{them.total / us.total:.1f}",
    }  # fmt: skip


def _repeated(ask: Callable[[], Took]) -> Took:
    """The mean of as many rounds as fit into `LEAST` seconds, of one at least; what the other contender has
    left behind is collected before.
    """
    gc.collect()
    took = [ask()]
    while sum(one.total for one in took) < LEAST:
        took.append(ask())
    return Took(took[0].answer, fmean(one.generate for one in took), fmean(one.solve for one in took))


def _middle(took: Sequence[Took]) -> Took:
    return sorted(took, key=lambda one: one.total)[len(took) // 2]


def _columns(who: str, took: Took) -> dict[str, str]:
    parts = {"generate": took.generate, "solve": took.solve, "total": took.total}
    return {f"{who} {part}": f"{seconds:.3f}" for part, seconds in parts.items()}


def model(name: str, seconds: float) -> dict[str, Any]:
    """A model of transformers at its default size, on the meta device; batch and length are unknown."""
    import transformers

    config = getattr(transformers, f"{name}Config")()
    with torch.device("meta"):
        made = getattr(transformers, f"{name}Model")(config).eval()
    try:
        torch.fx.symbolic_trace(made)
        them = "traced"
    except Exception as error:  # noqa: BLE001 (whatever it fails with is the answer)
        them = f"not traced: {type(error).__name__}"
    us = ours(made, ["input_ids: int64[batch, length]"], seconds)
    return {"program": name, "answer": us.answer, **_columns("ours", us), "torch": them}


def main() -> int:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs; all where none is named")
    parser.add_argument("--limit", type=float, default=60.0, metavar="SECONDS", help="for torch (60)")
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.name}")
    options = parser.parse_args()
    known = [*PROGRAMS, *MODELS]
    if unknown := [name for name in options.names if name not in known]:
        parser.error(f"no program {unknown[0]!r}; programs are {', '.join(known)}")
    wanted = options.names or known
    sys.setrecursionlimit(100_000)  # torch's transformation recurses over the whole conjunction
    row("8 Linear, ReLU", options.limit)  # imports and caches
    rows = []
    for name in wanted:
        rows.append(row(name, options.limit) if name in PROGRAMS else model(name, options.limit))
        print(rows[-1], flush=True)
    about = f"Is there a static migration? Seconds of the processor, torch's up to {options.limit:.0f}"
    text = Table("gradual", about, rows).text()
    print(text)
    if options.write:
        introduction = (__doc__ or "").split("\n\n", 2)[2]
        PAGE.write_text(f"# Gradual typing\n\n{introduction}\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
