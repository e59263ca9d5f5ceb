"""Suspicions: what each is about, what it is not about, and how they are asked for."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from models.broken import BROKEN
from models.entry import Broken, Entry
from models.zoo import ZOO
from torch import Tensor, nn

from anyshape.typecheck import check
from anyshape.typecheck.checking.suspicions import TABLE, wanted
from anyshape.typecheck.report.codes import ON, SUSPICIONS, Code
from anyshape.typecheck.targets.target_error import TargetError

COLUMN = nn.Linear(4, 1)


def codes(target: Callable[..., Any], inputs: str, assume: tuple[str, ...] = ()) -> set[Code]:
    report = check(target, inputs, assume, suspect=["all"])
    return {f.code for f in report.findings} & {*SUSPICIONS}


def test_the_table_has_every_suspicion() -> None:
    assert tuple(TABLE) == SUSPICIONS
    assert set(SUSPICIONS) > ON


def test_they_are_asked_for_by_name() -> None:
    assert wanted([]) == ON
    assert wanted(["idle-branch"]) == ON | {Code.IDLE_BRANCH}
    assert wanted(["all"]) == set(SUSPICIONS)
    with pytest.raises(TargetError, match="'idle' is not a known suspicion; there are row-column"):
        wanted(["idle"])


def outer(x: Tensor, y: Tensor) -> Tensor:
    return x[:, None] - y


def positions(x: Tensor) -> Tensor:
    t = torch.arange(x.shape[0])
    return t.view(-1, 1) - t


def broadcast_on_purpose(x: Tensor, y: Tensor) -> Tensor:
    one, other = torch.broadcast_tensors(x, y)
    return torch.ops.aten.mse_loss(one, other)


@pytest.mark.filterwarnings("ignore:Using a target size", "ignore:Implicit dimension")
@pytest.mark.parametrize(
    "target, inputs, expected",
    [
        (lambda x, y: COLUMN(x) - y, "x: [b, 4]; y: [b]", {Code.ROW_COLUMN}),
        (lambda x, y: y * COLUMN(x), "x: [b, 4]; y: [b]", {Code.ROW_COLUMN}),
        (outer, "x: [b]; y: [b]", set()),  # made a column on purpose
        (positions, "x: [b, 2]", set()),
        (lambda x, y: COLUMN(x) - y, "x: [b, 4]; y: [b, 1]", set()),
        (lambda x, y: COLUMN(x) - y, "x: [1, 4]; y: [1]", set()),  # [1, 1] is no harm
        (lambda x, y: F.mse_loss(COLUMN(x), y), "x: [b, 4]; y: [b]", {Code.LOSS_BROADCAST}),
        (lambda x, y: nn.L1Loss()(COLUMN(x), y), "x: [b, 4]; y: [b]", {Code.LOSS_BROADCAST}),
        (lambda x, y: F.mse_loss(COLUMN(x), y), "x: [b, 4]; y: [b, 1]", set()),
        (broadcast_on_purpose, "x: [b, 1]; y: [b]", set()),
        (lambda x: x.softmax(0), "x: [b, c]", {Code.BATCH_SOFTMAX}),
        (lambda x: x.log_softmax(-2), "x: [batch, c]", {Code.BATCH_SOFTMAX}),
        (lambda x: nn.Softmax()(x), "x: [b, t, 4]", {Code.BATCH_SOFTMAX}),
        (lambda x: x.softmax(0), "x: [t, b]", set()),  # over time
        (lambda x: x.softmax(0), "x: [b]", set()),
        (lambda x: x.softmax(0), "x: [4, b]", set()),
        (lambda x: x.view(4, -1), "x: [b, 4]", {Code.MIXED_BATCH}),
        (lambda x, y: x.view(x.shape[0] + y.shape[0], -1), "x: [b, t]; y: [c]", {Code.MIXED_BATCH}),
        (lambda x: x.view(-1, 2), "x: [b, 4]", set()),
        (lambda x: x.flatten(0, 1), "x: [b, t, 4]", set()),
        (lambda x, y: torch.cat([x, y]), "x: [b, 4]; y: [c, 4]", set()),
        (lambda x: x + 1 if x.shape[0] > 0 else x, "x: [b, 4]", {Code.IDLE_BRANCH}),
        (lambda x: x + 1 if x.shape[0] > 1 else x, "x: [b, 4]", set()),
        (lambda x: F.interpolate(x, scale_factor=2.3) + 1, "x: [b, 3, n]", {Code.LOST_PRECISION}),
        (lambda x: nn.Linear(8, 2)(x), "x: [b, n]", {Code.FIXED_SYMBOL}),
        (lambda x: nn.Linear(8, 2)(x), "x: [b, 8]", set()),
        (lambda x: x @ x, "x: [h, w]", {Code.SWAPPED_SIZES}),
        (lambda x: x @ x, "x: [h, h]", set()),
        (lambda n, x: x * n, "n: int; x: [h, w]", set()),
    ],
)  # fmt: skip
def test_what_is_suspected(target: Callable[..., Any], inputs: str, expected: set[Code]) -> None:
    assert codes(target, inputs) == expected


class OfOneLine(nn.Module):
    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
        return self.function(x, y, z)


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize(
    "function, expected",
    [
        (lambda x, y, z: F.mse_loss(x, z), {Code.LOSS_BROADCAST}),
        (lambda x, y, z: torch.broadcast_tensors(x, z)[0].relu(), set()),
        (lambda x, y, z: torch.ops.aten.mse_loss(x @ y, x), set()),
    ],
)
def test_calls_that_an_exported_program_has_on_one_line(
    function: Callable[..., Tensor], expected: set[Code]
) -> None:
    """Their origins are equal, for a saved program has no columns."""
    given = torch.rand(3, 1), torch.rand(1, 1), torch.rand(3)
    report = check(torch.export.export(OfOneLine(function), given), suspect=["all"])
    assert {f.code for f in report.findings} & {*SUSPICIONS} == expected


def test_an_assumption_fixes_a_symbol_on_purpose() -> None:
    assert codes(nn.Linear(8, 2), "input: [b, n]", ("n == 8",)) == set()


@pytest.mark.parametrize("assume", ["7 <= n and n <= 8", "n >= 8 and n <= 9", "n % 8 == 0"])
def test_a_symbol_is_suspected_if_one_other_value_was_declared(assume: str) -> None:
    """One below, one above, or twice the only value that runs."""
    findings = check(nn.Linear(8, 2), "input: [b, n]", (assume,), suspect=["fixed-symbol"]).findings
    (found,) = [f for f in findings if f.code is Code.FIXED_SYMBOL]
    assert found.message == "n is declared as a symbol, but runs only as 8"


def test_a_symbol_without_an_example_is_not_suspected() -> None:
    assert codes(lambda x: nn.Linear(8, 2)(x).view(3, 3), "x: [2, n]") == set()


def small(x: Tensor) -> Tensor:
    return x * 2 if x.shape[0] < 1 else x + 1


def large(x: Tensor) -> Tensor:
    return x * 2 if x.shape[0] > 0 else x + 1


@pytest.mark.parametrize(
    "target, message",
    [
        (small, "b <= 0 is never true"),
        (large, "1 <= b is always true"),
        (lambda x: x * 2 if x.dim() == 2 else x, None),  # no size decides
        (lambda x: x * 2 if x.sum() > 0 else x, None),  # nor here: data do
    ],
)
def test_idle_branches_say_which_way_they_go(target: Callable[..., Any], message: str | None) -> None:
    findings = check(target, "x: [b, 4]", suspect=["idle-branch"]).findings
    assert [f.message for f in findings if f.code is Code.IDLE_BRANCH] == [message] * (message is not None)


def test_the_line_of_a_symbol_is_the_one_that_imposes_it() -> None:
    def target(x: Tensor) -> Tensor:
        y = x.relu()
        return y @ y

    (finding,) = [f for f in check(target, "x: [h, w]").findings if f.code is Code.SWAPPED_SIZES]
    assert finding.origin.code == "return y @ y"
    assert finding.message == "x is declared with h and w, which must be equal"


def interpolated(x: Tensor) -> tuple[Tensor, ...]:
    y = F.interpolate(x, scale_factor=2.3)
    return y + 1, x * 2, y.relu().abs()


def without_rule(x: Tensor) -> Tensor:
    return torch.ops.aten._test_ambiguous_defaults(x, 2, 3) + 1


@pytest.mark.parametrize(
    "target, inputs, message",
    [
        (interpolated, "x: [b, 3, n]", "3 calls depend on .* with shapes that may not be exact"),
        (without_rule, "x: [b]", "1 call depends on .* 1 of them of unknown shape"),
    ],
)
def test_calls_that_depend_on_what_is_less_than_exact(
    target: Callable[..., Any], inputs: str, message: str
) -> None:
    findings = check(target, inputs, suspect=["lost-precision"]).findings
    (found,) = [f.message for f in findings if f.code is Code.LOST_PRECISION]
    assert re.fullmatch(message, found)


def test_lines_that_impose_something_else_are_not_shown() -> None:
    def before(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        z = y.view(-1, 2)
        return x @ x, z

    def after(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        z = x @ x
        return z, y.view(-1, 2)

    for target, line in ((before, "return x @ x, z"), (after, "z = x @ x")):
        (finding,) = [f for f in check(target, "x: [h, w]; y: [n]").findings if f.code is Code.SWAPPED_SIZES]
        assert finding.origin.code == line


@pytest.mark.parametrize("entry", BROKEN, ids=lambda entry: entry.name)
def test_right_programs_raise_none_unasked(entry: Broken) -> None:
    report = check(entry.repaired(), entry.inputs, entry.assume, replay=False)
    assert not {f.code for f in report.findings} & {*SUSPICIONS}


# Right programs that are suspected unasked, each for a reason: sizes that broadcast where 1 is among them.
SUSPECTED = {"vae": {Code.LOSS_BROADCAST}, "super_resolution_loss": {Code.LOSS_BROADCAST}}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("entry", ZOO, ids=lambda entry: entry.name)
def test_right_models_get_no_error(entry: Entry) -> None:
    """Nor a suspicion, but for those in the table; a model that runs for no declared input has its error."""
    report = check(entry.build(), entry.inputs, entry.assume, replay=False)
    if entry.verdict != "refuted":
        assert not [f for f in report.findings if f.severity == "error"]
    assert {f.code for f in report.findings} & {*SUSPICIONS} == SUSPECTED.get(entry.name, set())
