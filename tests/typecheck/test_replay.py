"""Replay tells at concrete sizes whether a program runs, and leaves everything as it was."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from anyshape import check
from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Context
from anyshape.constraints.ir.language import Tensor as Known
from anyshape.constraints.ir.program import Input, Node, Origin, Program, Ref
from anyshape.constraints.ir.spec_text import parse_spec
from anyshape.constraints.terms.formula import eq
from anyshape.tracer.readers.graph import Traced, system
from anyshape.typecheck.replay.replay import (
    FAKE,
    REAL,
    RULES,
    Inconclusive,
    Ran,
    Replayer,
    RunRefused,
    at,
    by_rules,
)


def pairs(x: Tensor) -> Tensor:
    return x.view(-1, 2)


def asserts(x: Tensor) -> Tensor:
    assert x.shape[0] > 2, "too short"
    return x


def asks_data(x: Tensor, mask: Tensor) -> Tensor:
    return x.view(-1, 2) if mask.all() else x.view(-1, 3)


def indexes(x: Tensor, table: Tensor) -> Tensor:
    return F.embedding(x, table)


def takes_all_sorts(x: Tensor, n: int, p: float, flag: bool, mode: str, parts: dict[str, Any]) -> Tensor:
    assert flag and mode == "a" and isinstance(p, float) and n == x.shape[0] * 2 and parts["k"] == (1, 2)
    return x + parts["y"]


def needs_numpy(x: Tensor) -> Tensor:
    return x.view(int(x.detach().numpy().shape[0]) // 2, 2)


def misspelt(x: Tensor) -> Tensor:
    return x.veiw(-1)  # type: ignore[attr-defined, no-any-return]


def noisy_when_fake(x: Tensor) -> Tensor:
    return torch.cat([x, x.new_zeros(3, 3)], 1)


# target, spec, sizes, accepted, how it was found out, or the part of a refusal
CASES: list[tuple[Callable[..., Any], str, dict[str, int], bool, str]] = [
    (pairs, "x: [b]", {"b": 4}, True, FAKE),
    (pairs, "x: [b]", {"b": 3}, False, FAKE),
    (pairs, "x: [2*b]", {"b": 3}, True, FAKE),
    (asserts, "x: [b]", {"b": 2}, False, FAKE),
    (asks_data, "x: [b]; mask: bool[b]", {"b": 4}, True, REAL),
    (asks_data, "x: [b]; mask: bool[b]", {"b": 3}, True, REAL),
    (asks_data, "x: [b]; mask: bool[b]", {"b": 5}, False, REAL),
    (indexes, "x: int64[b]; table: [1, 4]", {"b": 4}, True, FAKE),
    (needs_numpy, "x: [b]", {"b": 4}, True, REAL),
    (needs_numpy, "x: [b]", {"b": 5}, False, REAL),
    (nn.Linear(4, 2), "input: [b, d]", {"b": 2, "d": 4}, True, FAKE),
    (nn.Linear(4, 2), "input: [b, d]", {"b": 2, "d": 5}, False, FAKE),
]


@pytest.mark.parametrize("target, spec, sizes, accepted, how", CASES)
def test_runs_or_is_refused(
    target: Callable[..., Any], spec: str, sizes: dict[str, int], accepted: bool, how: str
) -> None:
    outcome = Replayer(target, parse_spec(spec)).run(sizes, accepted)
    assert isinstance(outcome, Ran if accepted else RunRefused), outcome
    assert outcome.how == how


def test_every_kind_of_input_arrives() -> None:
    spec = parse_spec(
        'x: [b]; n: int = 2*b; p: float; flag=True; mode="a"; parts["k"]=[1, 2]; parts["y"]: [b]'
    )
    assert isinstance(Replayer(takes_all_sorts, spec).run({"b": 3}, True), Ran)


def test_a_wrong_expectation_is_corrected() -> None:
    """Whatever is expected, the outcome is what the program does: this is what unmasks a wrong witness."""
    replayer = Replayer(pairs, parse_spec("x: [b]"))
    assert isinstance(replayer.run({"b": 4}, False), Ran)
    assert isinstance(replayer.run({"b": 3}, True), RunRefused)


def test_a_refusal_names_the_line_and_the_exception() -> None:
    outcome = Replayer(asserts, parse_spec("x: [b]")).run({"b": 1}, False)
    assert isinstance(outcome, RunRefused)
    assert outcome.exception == "AssertionError"
    assert outcome.reason.startswith("too short")
    assert outcome.origin.code == 'assert x.shape[0] > 2, "too short"'


def test_what_is_no_matter_of_sizes_is_told() -> None:
    outcome = Replayer(misspelt, parse_spec("x: [b]")).run({"b": 1}, True)
    assert isinstance(outcome, Inconclusive)
    assert outcome.raised
    assert "veiw" in outcome.reason
    assert "veiw" in outcome.origin.code


@pytest.mark.parametrize("name", ("floor", "ceil", "sign", "relu", "max", "sort"))
def test_a_dtype_without_a_kernel_is_refused_though_fake_tensors_run(name: str) -> None:
    assert check(lambda z: getattr(z, name)(), "z: complex64[a, b]").verdict == "refuted"


def test_huge_sizes_stay_fake() -> None:
    replayer = Replayer(asks_data, parse_spec("x: [b]; mask: bool[b]"))
    assert isinstance(replayer.run({"b": 1 << 40}, True), Inconclusive)
    assert isinstance(Replayer(pairs, parse_spec("x: [b]")).run({"b": 1 << 40}, True), Ran)


def test_missing_memory_is_no_refusal() -> None:
    def grows(x: Tensor, mask: Tensor) -> Tensor:
        return x.new_zeros(1 << 50) if not mask.any() else x

    outcome = Replayer(grows, parse_spec("x: [b]; mask: bool[b]")).run({"b": 1}, False)
    assert not isinstance(outcome, RunRefused), outcome


class Stateful(nn.Module):
    """Changes all that a run can change."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.calls = 0
        self.cache: list[Tensor] = []
        self.register_buffer("counter", torch.zeros(()))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        self.calls += 1
        self.cache.append(x)
        self.counter += 1
        torch.rand(())
        return self.norm(x) if mask.all() else self.norm(x * 2)


def test_the_model_is_left_as_it_was() -> None:
    model = Stateful()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    random = torch.get_rng_state()
    outcome = Replayer(model, parse_spec("x: [b, 3]; mask: bool[b]")).run({"b": 2}, True)
    assert outcome == Ran(REAL)
    assert (model.calls, model.cache) == (0, [])
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), random)


def test_compiled_programs_run_as_they_are_written() -> None:
    replayer = Replayer(torch.compile(nn.Linear(3, 4)), parse_spec("input: [b, d]"))
    assert isinstance(replayer.run({"b": 2, "d": 4}, False), RunRefused)
    assert isinstance(replayer.run({"b": 2, "d": 3}, True), Ran)


def test_nothing_is_logged(capfd: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("torch._subclasses.fake_tensor")
    level = log.level
    Replayer(noisy_when_fake, parse_spec("x: [b, c]")).run({"b": 2, "c": 1}, False)
    assert (capfd.readouterr(), log.level) == (("", ""), level)


# ---- by rules


def halved(c: Context, input: Known) -> Known:
    """[n] -> [n/2]"""
    (n,) = input.shape
    c.require(eq(n % 2, 0), "the size must be even")
    return Known((n // 2,))


LINE = Origin("graph.py", 3, code="half(x)")
SPEC = parse_spec("x: [n]")
GRAPH = Program(
    (Input(0, "x", SPEC.inputs[0].type),),
    (Node("half", (("input", Ref(0)),), (1,), LINE), Node("half", (("input", Ref(1)),), (2,), LINE)),
    (("output", Ref(2)),),
)


def replayed(n: int, rules: Rules) -> Any:
    return by_rules(system(Traced(GRAPH, SPEC, ()), rules, at(SPEC, {"n": n})).paths[0])


@pytest.mark.parametrize("n, accepted", [(4, True), (8, True), (2, False), (3, False)])
def test_a_graph_is_replayed_by_its_rules(n: int, accepted: bool) -> None:
    outcome = replayed(n, Rules({"half": halved}))
    assert outcome == (Ran(RULES) if accepted else RunRefused(RULES, "the size must be even", "", LINE))


def test_a_graph_without_rules_is_not_replayed() -> None:
    assert isinstance(replayed(4, Rules({})), Inconclusive)
