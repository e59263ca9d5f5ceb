"""Real kernels are asked where fake ones do not see what matters, and what they say counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from anyshape.constraints.engine import generate
from anyshape.constraints.ir.spec_text import parse_spec
from anyshape.constraints.ir.system import System
from anyshape.constraints.rules import default_rules
from anyshape.solver.decide import DomainOracle
from anyshape.tracer.recording.record import record
from anyshape.typecheck import check
from anyshape.typecheck.replay.replay import FAKE, REAL, Inconclusive, Ran, Replayer, RunLimits, RunRefused
from anyshape.typecheck.replay.unseen import Origins, Unseen, made, unseen


def recorded(target: Callable[..., Any], inputs: str) -> System:
    spec = parse_spec(inputs)
    return record(target, spec, default_rules, DomainOracle(spec.domain))[0]


def replayer(target: Callable[..., Any], inputs: str, limits: RunLimits | None = None) -> Replayer:
    made = Replayer(target, parse_spec(inputs), limits or RunLimits())
    made.see(recorded(target, inputs))
    return made


def given(i: Tensor, table: Tensor) -> Tensor:
    return F.embedding(i.view(-1), table)


def shifted(i: Tensor, table: Tensor) -> Tensor:
    return F.embedding(i + 1, table)


def counted(x: Tensor, table: Tensor) -> Tensor:
    return table[torch.arange(x.shape[0])]


def bytes_of(x: Tensor) -> Tensor:
    return F.embedding(torch.arange(x.shape[0]).to(torch.int8).long(), torch.ones(500, 4))


def sorted_(x: Tensor, table: Tensor) -> Tensor:
    return table.index_select(0, x.argsort())


def drawn(x: Tensor, table: Tensor) -> Tensor:
    return table[torch.randint(0, x.shape[0], (4,))]


def masked(x: Tensor) -> Tensor:
    return x[x > 0]


def sliced(x: Tensor) -> Tensor:
    return x[1:, None]


def caught(x: Tensor) -> Tensor:
    try:
        return x.view(-1, 2)
    except RuntimeError:
        return x


class Buffered(nn.Module):
    places: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("places", torch.arange(8).view(1, 8))
        self.table = nn.Embedding(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table(self.places[:, : x.shape[1]])


def asserting(x: Tensor) -> None:
    torch._assert_async(x.sum() > 0)


def asserting_what_contradicts(x: Tensor) -> None:
    torch._assert_async(x.sum() > 0)
    torch._assert_async(x.sum() < 0)


COMPUTED, CHOSEN, GIVEN = Origins.COMPUTED, Origins.CHOSEN, Origins.GIVEN

# target, spec, what is not seen
CASES: list[tuple[Callable[..., Any], str, Unseen]] = [
    (given, "i: int64[n]; table: [r, d]", Unseen()),
    (shifted, "i: int64[n]; table: [r, d]", Unseen(COMPUTED | GIVEN, symbols=frozenset("nrd"))),
    (counted, "x: [n]; table: [r, d]", Unseen(COMPUTED, symbols=frozenset("nrd"))),
    (counted, "x: [n]; table: [7, d]", Unseen(COMPUTED, sizes=(7,), symbols=frozenset("nd"))),
    (bytes_of, "x: [n]", Unseen(COMPUTED, sizes=(4, 500), symbols=frozenset("n"))),
    (sorted_, "x: [n]; table: [r, d]", Unseen(COMPUTED | CHOSEN, symbols=frozenset("nrd"))),
    (drawn, "x: [n]; table: [r, 3]", Unseen(COMPUTED | CHOSEN, sizes=(3,), symbols=frozenset("r"))),
    (masked, "x: [n]", Unseen()),
    (sliced, "x: [n]", Unseen()),
    (caught, "x: [n]", Unseen(caught=True, symbols=frozenset("n"))),
    (asserting, "x: [n]", Unseen(asserts=True)),
    (Buffered(), "x: [b, t, 4]", Unseen()),
]


@pytest.mark.parametrize("target, inputs, expected", CASES)
def test_what_is_not_seen(target: Callable[..., Any], inputs: str, expected: Unseen) -> None:
    found = unseen(recorded(target, inputs))
    assert found == expected and bool(found) == bool(expected)


def test_assertions_are_tried_with_data() -> None:
    assert check(asserting, "x: [n]").verdict == "proved"
    assert check(asserting_what_contradicts, "x: [n]").verdict == "unknown", "no data pass both"


def test_how_much_a_run_makes() -> None:
    system = recorded(lambda x: (x * 2).sum(0), "x: [n, 3]")
    assert made(system, {"n": 5}) == 15 + 15 + 3


def too_large(x: Tensor, table: Tensor) -> Tensor:
    """No machine has the memory that real kernels need, and fake tensors see no index."""
    return F.embedding(torch.arange(x.shape[0]), torch.empty(table.shape[0], 1 << 50))


# target, spec, sizes, what is claimed, what is found out
OUTCOMES: list[tuple[Callable[..., Any], str, dict[str, int], bool, type]] = [
    (counted, "x: [n]; table: [r, 2]", {"n": 3, "r": 3}, True, Ran),
    (counted, "x: [n]; table: [r, 2]", {"n": 4, "r": 3}, True, RunRefused),
    (counted, "x: [n]; table: [r, 2]", {"n": 4, "r": 3}, False, RunRefused),
    (bytes_of, "x: [n]", {"n": 128}, True, Ran),
    (bytes_of, "x: [n]", {"n": 129}, True, RunRefused),
    (sorted_, "x: [n]; table: [r, 2]", {"n": 4, "r": 3}, True, RunRefused),
    (sorted_, "x: [n]; table: [r, 2]", {"n": 4, "r": 3}, False, RunRefused),
    (sorted_, "x: [n]; table: [r, 2]", {"n": 3, "r": 3}, False, Inconclusive),
    (shifted, "i: int64[n]; table: [r, 2]", {"n": 3, "r": 1}, True, Inconclusive),
    (shifted, "i: int64[n]; table: [r, 2]", {"n": 3, "r": 2}, True, Ran),
    (caught, "x: [n]", {"n": 3}, True, Ran),
    (too_large, "x: [n]; table: [r, 2]", {"n": 4, "r": 3}, False, Inconclusive),
]


@pytest.mark.parametrize("target, inputs, sizes, accepted, kind", OUTCOMES)
def test_real_kernels_have_the_last_word(
    target: Callable[..., Any], inputs: str, sizes: dict[str, int], accepted: bool, kind: type
) -> None:
    outcome = replayer(target, inputs).run(sizes, accepted)
    assert isinstance(outcome, kind), outcome
    assert isinstance(outcome, Inconclusive) or outcome.how == REAL


def test_the_greatest_is_chosen_last_by_some_data() -> None:
    """Of zeros and of ones `argmax` chooses the first."""

    def last(x: Tensor, table: Tensor) -> Tensor:
        return table[x.argmax()]

    outcome = replayer(last, "x: [n]; table: [r, 2]").run({"n": 5, "r": 3}, False)
    assert isinstance(outcome, RunRefused) and outcome.exception == "IndexError"


@pytest.mark.parametrize("limits", [RunLimits(made=10), RunLimits(total=10), RunLimits(inputs=10)])
def test_beyond_the_limits_fake_tensors_are_believed(limits: RunLimits) -> None:
    run = replayer(counted, "x: [n]; table: [r, 2]", limits).run
    assert run({"n": 20, "r": 20}, True) == Ran(FAKE)
    assert run({"n": 20, "r": 3}, True) == Ran(FAKE), "they see no index"


def viewed_if_possible(x: Tensor) -> Tensor:
    try:
        return x.t().view(4, -1)
    except RuntimeError:  # fake tensors raise a ValueError
        return x


def test_fake_tensors_raise_other_errors() -> None:
    run = replayer(viewed_if_possible, "x: [n, m]", RunLimits(inputs=10)).run
    assert isinstance(run({"n": 20, "m": 20}, True), Inconclusive)
    assert run({"n": 2, "m": 2}, True) == Ran(REAL)


def test_what_is_left_is_used_up() -> None:
    run = replayer(counted, "x: [n]; table: [r, 2]", RunLimits(total=100)).run
    hows = [run({"n": 4, "r": 4 + k}, True) for k in range(8)]
    assert hows[0] == Ran(REAL) and hows[-1] == Ran(FAKE)


def endless(x: Tensor, table: Tensor) -> Tensor:
    while bool((x[:0] > 0).all()) and not isinstance(x, torch._subclasses.FakeTensor):
        x = x + 0
    return table[torch.arange(x.shape[0])]


@pytest.mark.parametrize("limits, reason, late", [(RunLimits(seconds=0.1), "longer than", True),
                                                  (RunLimits(calls=500), "more than 500 functions", False)])
def test_a_run_that_takes_too_long_is_broken_off(limits: RunLimits, reason: str, late: bool) -> None:
    made = Replayer(endless, parse_spec("x: [n]; table: [r, 2]"), limits)
    made.see(recorded(counted, "x: [n]; table: [r, 2]"))
    outcome = made.run({"n": 2, "r": 2}, True)
    assert isinstance(outcome, Inconclusive) and reason in outcome.reason and outcome.late == late


@pytest.mark.parametrize("limits, verdict, code", [(RunLimits(seconds=0.0), "unknown", "incomplete"),
                                                   (RunLimits(calls=0), "refined", "not-replayed")])
def test_the_clock_ends_in_unknown_and_counts_do_not(
    limits: RunLimits, verdict: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A count is the same in each run, so that the verdict may stand. The clock is not."""
    monkeypatch.setattr(Replayer.__init__, "__defaults__", (limits,))
    report = check(counted, "x: [n]; table: [r, 2]")
    assert report.verdict == verdict and code in [finding.code for finding in report.findings]
    assert (report.accepts.exact, str(report.accepts.certain)) == (
        (True, "n <= r") if verdict == "refined" else (False, "False")
    )


@pytest.mark.parametrize("target", [counted, sorted_])
def test_a_law_that_is_wrong_is_found_out(target: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any requirement on indices these would be proved."""
    monkeypatch.setattr(generate, "require_elements", lambda *args: None)
    report = check(target, "x: [n]; table: [r, d]")
    assert report.verdict == "unknown", report.to_text()
    assert any(dict(finding.witness or {}).get("n", 0) > 1 for finding in report.findings)
    assert check(target, "x: [n]; table: [r, d]", replay=False).verdict == "proved"
