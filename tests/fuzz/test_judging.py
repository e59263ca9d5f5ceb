"""The judge and the comparison: each kind of contradiction is found, and what the data decide is none."""

from __future__ import annotations

import os
import time
from dataclasses import replace

import pytest

from anyshape.typecheck.report.report import Verdict
from benchmarks.fuzz.campaign import Bench, Effort
from benchmarks.fuzz.comparing import Checked, Kind, checked, wrongs
from benchmarks.fuzz.eager import ALL, FIRST, Outcome, outcomes
from benchmarks.fuzz.program import Program
from benchmarks.fuzz.servant import Died, Servant


def program(line: str, spec: str = "x: float32[a]", assume: tuple[str, ...] = ()) -> Program:
    return Program.of("test", f"def f({', '.join(p.split(':')[0].strip() for p in spec.split(';'))}):\n"
                              f"    {line}\n", spec, assume)  # fmt: skip


def verdicts(line: str, *sizes: int, fills: tuple[str, ...] = FIRST) -> list[str]:
    return [o.verdict for o in outcomes(program(line), [{"a": size} for size in sizes], fills)]


@pytest.mark.parametrize(
    "line, expected",
    [
        ("return x[2]", ["refused", "refused", "ran"]),
        ("return x[x.argmax()] if x.sum() > 0 else x", ["ran", "ran", "ran"]),
        ("assert x.sum() <= 0", ["data"] * 3),
        ("return torch.ones(2)[torch.randint(0, len(x), (1,))]", ["ran", "ran", "data"]),
        ("return torch.ones(2)[x.argmax()]", ["ran", "ran", "data"]),
        ("i = torch.multinomial(torch.ones(len(x)), 9, True)\n    return torch.ones(17)[i.sum()]",
         ["ran", "ran", "data"]),
        ("return torch.ones(2)[torch.multinomial(torch.ones(len(x)), 1)]", ["ran", "ran", "data"]),
        ("return torch.ones(2)[x.argsort()]", ["ran", "ran", "refused"]),
        ("return torch.distributions.Uniform(x, x).mean", ["data"] * 3),
        ("return torch.zeros(len(x) * 10 ** 12)[:1]", ["skipped"] * 3),
        ("return x.no_such_method()", ["refused"] * 3),
    ],
)  # fmt: skip
def test_what_a_point_is(line: str, expected: list[str]) -> None:
    assert verdicts(line, 1, 2, 3) == expected


def test_the_fills_of_a_second_look_find_what_the_first_missed() -> None:
    line = "if len(x) and x[0] == 1:\n        raise ValueError\n    return x"
    assert verdicts(line, 3) == ["ran"] and verdicts(line, 3, fills=ALL) == ["data"]


@pytest.mark.parametrize(
    "line, size",
    [
        ("return torch.ones(len(x) - 1)[x.kthvalue(3).indices]", 511),
        ("i = torch.randint(0, len(x), (1,))\n    return torch.ones(9)[(i == 101) * 9]", 256),
        ("i = torch.multinomial(torch.ones(len(x)), 2)\n    return torch.ones(9)[(i == 101) * 9]", 256),
        ("i = torch.randperm(len(x))[0]\n    return torch.ones(9)[(i == 101) * 9]", 256),
        ("i = torch.randint(0, len(x), (3,))\n    return torch.ones(255)[i.max() - i]", 256),
        ("i = torch.randint(0, 6, (9,))\n    return torch.multinomial(torch.ones(9), int((i ^ 1).max()))", 6),
        ("return torch.ones(32)[2 ** (x > 0).sum() % 1000000]", 255),
    ],
)  # fmt: skip
def test_a_second_look_draws_each_choice(line: str, size: int) -> None:
    assert verdicts(line, size) == ["ran"] and verdicts(line, size, fills=ALL) == ["data"]


def test_a_module_is_fresh_at_each_point() -> None:
    text = (
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.seen = 0\n\n"
        "    def forward(self, x):\n        self.seen += 1\n        assert self.seen == 1\n        return x\n"
    )
    found = outcomes(Program.of("m", text, "x: float32[a]"), [{"a": 1}, {"a": 2}])
    assert [o.verdict for o in found] == ["ran", "ran"]


SAID = checked(program("return x[2:], x.sum(), len(x)"), 10.0)
RUNS, REFUSED = Outcome("ran"), Outcome("refused", "IndexError: no")


def said(verdict: Verdict, formula: object = True, exact: bool = True, sure: object = None) -> Checked:
    assert SAID.report is not None
    accepts = replace(SAID.report.accepts, formula=formula, exact=exact, sure=sure)
    return Checked(replace(SAID.report, verdict=verdict, accepts=accepts))


@pytest.mark.parametrize(
    "claim, outcome, kinds",
    [
        (said(Verdict.PROVED), RUNS, []),
        (said(Verdict.PROVED), REFUSED, ["proved-refused"]),
        (said(Verdict.PROVED), Outcome("data", "x"), []),
        (said(Verdict.REFUTED, False), RUNS, ["refuted-ran"]),
        (said(Verdict.REFUTED, False), REFUSED, []),
        (said(Verdict.REFINED), REFUSED, ["accepts-refused"]),
        (said(Verdict.REFINED, False), RUNS, ["refuses-ran"]),
        (said(Verdict.REFINED, True, exact=False, sure=False), REFUSED, []),
        (said(Verdict.UNKNOWN, True, exact=False, sure=True), REFUSED, ["certain-refused"]),
        (said(Verdict.PROVED), Outcome("ran", results=(("0", (3,)), ("1", ()), ("2", 5))), []),
        (said(Verdict.PROVED), Outcome("ran", results=(("0", (4,)),)), ["shape"]),
        (said(Verdict.PROVED), Outcome("ran", results=(("1", (3,)),)), ["shape"]),
        (said(Verdict.PROVED), Outcome("ran", results=(("2", 4),)), ["shape"]),
        (Checked(raised="TypeError: a bug"), RUNS, ["exception"]),
        (Checked(raised="TargetError: no", target_error=True), RUNS, ["refuted-ran"]),
        (Checked(raised="TargetError: no", target_error=True), REFUSED, []),
    ],
)
def test_each_contradiction_is_found(claim: Checked, outcome: Outcome, kinds: list[Kind]) -> None:
    assert [w.kind for w in wrongs(claim, [{"a": 5}], [outcome])] == kinds


def _serve(task: str) -> str:
    if task == "crash":
        os.abort()
    if task == "hang":
        time.sleep(60)
    if task == "eat":
        bytearray(1 << 34)
    return task


def test_a_servant_survives_crashes_and_hangs() -> None:
    servant: Servant[str, str] = Servant(_serve, 2.0)
    assert servant.ask("one") == "one"
    assert isinstance(servant.ask("crash"), Died) and servant.ask("two") == "two"
    assert isinstance(servant.ask("hang"), Died) and servant.ask("three") == "three"
    assert isinstance(servant.ask("eat"), Died) and servant.ask("four") == "four"
    servant.close()


def test_a_row_from_end_to_end() -> None:
    with Bench(Effort(points=12)) as bench:
        right = bench.row(program("return x[2]"))
        assert right.verdict == "refined" and right.decided and not right.wrong
        assert right.ran and right.refused

    def wrong(program: Program, budget_s: float, replay: bool) -> Checked:
        return said(Verdict.PROVED)

    with Bench(Effort(points=12), wrong) as bench:
        assert [w.kind for w in bench.row(program("return x[2:][0]")).wrong] == ["proved-refused"]
