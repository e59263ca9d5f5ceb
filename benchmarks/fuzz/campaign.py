"""A run over many programs: each is checked, judged and compared, and what is wrong is shrunk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from .comparing import Checked, Wrong, checked, examples, first_by_kind, near, wrongs
from .eager import ALL, Outcome, outcomes
from .families import written
from .program import Program, Sizes, points
from .servant import FORK, Died, Servant

ONCE = ("random",)


@dataclass(frozen=True)
class Effort:
    """Limits on the cost of one program."""

    points: int = 20
    budget_s: float = 1.0
    """Of a check. Of those that need more, nine in ten would use up any budget; they end in `unknown`."""
    check_s: float = 120.0
    """After which a check has hung."""
    eager_s: float = 5.0
    replay: bool = True
    """Whether checks try their examples on the program. Without that, mistakes of proofs show that a replay
    would have turned into `unknown`.
    """


@dataclass(frozen=True)
class Row:
    """The result for one program, as plain values."""

    name: str
    family: str
    constructs: tuple[str, ...]
    verdict: str
    decided: bool
    ran: int
    refused: int
    data: int
    skipped: int
    reasons: tuple[str, ...] = ()
    wrong: tuple[Wrong, ...] = ()
    program: Program | None = None
    """Kept where something is wrong, or nothing is decided."""


class Bench:
    """The two processes that a program goes through: the checker's, and eager PyTorch's."""

    def __init__(self, effort: Effort, check: Callable[..., Checked] = checked) -> None:
        self.effort = effort
        self._checker: Servant[Program, Checked] = Servant(
            partial(check, budget_s=effort.budget_s, replay=effort.replay), effort.check_s
        )
        self._eager: Servant[Any, list[Outcome]] = Servant(_judged, effort.eager_s * 3 + 5)

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self._checker.close()
        self._eager.close()

    def row(self, program: Program, family: str = "") -> Row:
        """Checks the program and compares. A contradiction is looked at again, with more data.

        It is one only where all data contradict, so that a first look with one fill misses none.
        """
        said = self._checker.ask(program)
        if isinstance(said, Died):
            return self._row(program, family, "died", False, (), [], [Wrong("died", None, said.why)])
        at = points(program, self.effort.points, examples(said.report, program.symbols), near(said.report))
        found = self._outcomes(program, at, ONCE)
        against = wrongs(said, at, found)
        doubtful = [w.sizes for w in against if w.sizes is not None]
        if doubtful:
            again = {
                tuple(p.items()): o
                for p, o in zip(doubtful, self._outcomes(program, doubtful, ALL), strict=True)
            }
            found = [again.get(tuple(p.items()), o) for p, o in zip(at, found, strict=True)]
            against = wrongs(said, at, found)
        return self._row(program, family, said.verdict, said.decided, said.reasons, found, against)

    def _outcomes(self, program: Program, at: Sequence[Sizes], fills: Iterable[str]) -> list[Outcome]:
        """Of each point. Where the process dies, each point is run in a process of its own."""
        found = self._eager.ask((program, at, fills, self.effort.eager_s))
        if not isinstance(found, Died):
            return found
        if len(at) == 1:
            return [Outcome("skipped", found.why)]
        return [o for point in at for o in self._outcomes(program, [point], fills)]

    def _row(
        self, program: Program, family: str, verdict: str, decided: bool, reasons: tuple[str, ...],
        found: list[Outcome], against: list[Wrong],
    ) -> Row:  # fmt: skip
        counts = Counter(o.verdict for o in found)
        keep = bool(against) or not decided
        return Row(
            program.name, family, program.constructs, verdict, decided, counts["ran"], counts["refused"],
            counts["data"], counts["skipped"], reasons if not decided else (),
                tuple(first_by_kind(against).values()),
            program if keep else None,
        )  # fmt: skip


def _judged(task: tuple[Program, Sequence[Sizes], Iterable[str], float]) -> list[Outcome]:
    program, at, fills, seconds = task
    try:
        return outcomes(program, at, fills, seconds)
    except Exception as error:  # noqa: BLE001 (the text itself is wrong: it runs nowhere)
        return [Outcome("refused", f"{type(error).__name__}: {error}") for _ in at]


def rows(
    numbers: Iterable[int], seed: int, families: Sequence[str], effort: Effort, jobs: int = 1
) -> Iterator[Row]:
    """The rows of the programs of these numbers: in their order with one job, as they come with more."""
    every = list(numbers)
    if jobs == 1:
        yield from examined((written(seed, number, families) for number in every), effort)
        return
    results = FORK.SimpleQueue()
    workers = [
        FORK.Process(target=_share, args=(every[job::jobs], seed, families, effort, results))
        for job in range(jobs)
    ]
    for worker in workers:
        worker.start()
    try:
        ended = 0
        while ended < jobs:
            row = results.get()
            if row is None:
                ended += 1
            else:
                yield row
    finally:
        for worker in workers:
            worker.terminate()
            worker.join()


def examined(programs: Iterable[tuple[Program, str]], effort: Effort) -> Iterator[Row]:
    """The rows of these programs, each of a family."""
    with Bench(effort) as bench:
        for program, family in programs:
            yield bench.row(program, family)


def _share(numbers: list[int], seed: int, families: Sequence[str], effort: Effort, results: Any) -> None:
    try:
        for row in rows(numbers, seed, families, effort):
            results.put(row)
    finally:
        results.put(None)


@dataclass
class Statistics:
    """The findings of a campaign, in numbers."""

    programs: int = 0
    decided: int = 0
    wrong: int = 0
    points: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    families: dict[str, Counter[str]] = field(default_factory=dict)
    constructs: dict[str, Counter[str]] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, row: Row) -> None:
        self.programs += 1
        self.decided += row.decided
        self.wrong += bool(row.wrong)
        self.points += row.ran + row.refused
        self.verdicts[row.verdict] += 1
        what = "wrong" if row.wrong else "decided" if row.decided else "undecided"
        for table, names in ((self.families, [row.family]), (self.constructs, set(row.constructs))):
            for name in names:
                table.setdefault(name, Counter())[what] += 1
        self.reasons.update(row.reasons)

    def to_json(self) -> dict[str, Any]:
        return {
            "programs": self.programs, "decided": self.decided, "wrong": self.wrong, "points": self.points,
            "verdicts": dict(self.verdicts), "families": {k: dict(v) for k,
            v in sorted(self.families.items())},
            "reasons": dict(self.reasons.most_common()),
            "constructs": {k: dict(v) for k, v in sorted(self.constructs.items())},
        }  # fmt: skip
