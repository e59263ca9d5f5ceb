"""How time and memory grow with the length of a program: ten times the nodes should cost ten times as much.

    python -m benchmarks.growth MAKER LENGTH…

prints what it measures as JSON. Each maker is measured in a process of its own: so is its peak memory.
"""

from __future__ import annotations

import json
import pathlib
import resource
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from anyshape.constraints.engine.generate import generate
from anyshape.constraints.ir.system import Path, System
from anyshape.constraints.rules import default_rules
from anyshape.solver.decide import decide

from .programs import MAKERS, Made
from .timing import now

STATUS = pathlib.Path("/proc/self/status")

ENOUGH_S, ENOUGH = 0.5, 25
"""Short programs are measured again and again, for so long or so often."""


@dataclass(frozen=True, slots=True)
class Grown:
    """The cost of a program of some length, per node."""

    maker: str
    nodes: int
    verdict: str
    generate_us: float
    solve_us: float
    peak_kb: float

    @property
    def us(self) -> float:
        return self.generate_us + self.solve_us


def checked(made: Made) -> tuple[str, float, float]:
    """The verdict on a program, and the seconds that generation and solving took."""
    program, domain = made
    started = now()
    said = generate(program, default_rules, domain)
    generated = now()
    path = Path(program, said.values, tuple(said.constraints), tuple(said.notes))
    verdict = decide(System(domain, (path,))).verdict
    return verdict, generated - started, now() - generated


def grow(maker: str, lengths: Sequence[int]) -> Iterator[Grown]:
    """Measures in this process, shortest first."""
    checked(MAKERS[maker](50))  # imports and caches
    before = _peak_kb()
    for length in sorted(lengths):
        made = MAKERS[maker](length)
        nodes = len(made[0].nodes)
        runs = [checked(made)]
        while len(runs) < ENOUGH and sum(g + s for _, g, s in runs) < ENOUGH_S:
            runs.append(checked(made))
        generated, solved = (median(times) for times in list(zip(*runs, strict=True))[1:])
        peak = (_peak_kb() - before) / nodes
        yield Grown(maker, nodes, runs[0][0], generated / nodes * 1e6, solved / nodes * 1e6, peak)


def _peak_kb() -> int:
    """The peak of this process. (`ru_maxrss` on Linux is also that of the process that started it.)"""
    if not STATUS.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    lines = STATUS.read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


def apart(maker: str, lengths: Sequence[int]) -> list[Grown]:
    """Measures in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.growth", maker, *map(str, lengths)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return [Grown(**row) for row in json.loads(done.stdout)]


def main() -> None:
    maker, *lengths = sys.argv[1:]
    print(json.dumps([asdict(grown) for grown in grow(maker, [*map(int, lengths)])]))


if __name__ == "__main__":
    main()
