"""Conditions on data: both outcomes are claimed only where data are found that give each."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributions as D
import torch.nn.functional as F
from torch import Tensor, nn

from anyshape.typecheck import check


def holds(condition: Any, x: Any) -> Any:
    assert condition
    return x


NANS: list[Callable[[Tensor], Tensor]] = [
    lambda x: x.abs().clamp(max=0) / x.relu().clamp(max=0),
    lambda x: (-x.abs() - 1).sqrt(),
    lambda x: (-x.abs() - 1).log(),
    lambda x: (x.exp() + 2).asin(),
    lambda x: (x.abs() + 2).acos(),
    lambda x: (-x.abs() - 1) ** 0.5,
    lambda x: (x / 0) - (x / 0),
    lambda x: (x.abs() + 1) / 0.0 * 0.0,
    lambda x: x.fmod(0),
    lambda x: x % 0,
    lambda x: torch.logit(x.abs() + 2),
    lambda x: torch.xlogy(x.abs() + 1, -x.abs() - 1),
    lambda x: torch.special.ndtri(x.abs() + 2),
    lambda x: x.norm() * math.nan,
    lambda x: (x.tanh() - 2).log(),
    lambda x: (x > 0).float().sub(2).sqrt(),
    lambda x: x.clamp(min=1).neg().sqrt(),
    lambda x: (x - 1).log() + (-x - 1).log(),
    lambda x: (x + torch.full((3, 1), -math.inf)).softmax(0),
]
"""Functions whose results are NaN for all data."""


def written(x: Tensor, number: float) -> Tensor:
    y = x.clone()
    y[:1] = number
    return y


NEVER: list[Callable[[Tensor], Any]] = [
    lambda x: holds((x * -x).sum() > 0, x),
    lambda x: holds((x + -x).sum() > 0, x),
    lambda x: holds((x + x.neg()).any(), x),
    lambda x: holds(torch.dot(x, -x) > 0, x),
    lambda x: holds(x @ -x > 0, x),
    lambda x: holds(torch.outer(x, -x).trace() > 0, x),
    lambda x: holds(torch.einsum("i,i->", x, -x) > 0, x),
    lambda x: holds(torch.kron(x, -x).sum() > 0, x),
    lambda x: holds(torch.addcmul(x, x, x, value=-1).max() > 1, x),
    lambda x: holds(F.pairwise_distance(x, x, eps=0.0) > 0, x),
    lambda x: holds(F.cosine_similarity(x, x, dim=0) < 0, x),
    lambda x: holds(F.triplet_margin_loss(x[None], x[None], x[None]) > 5, x),
    lambda x: holds(F.normalize(x, dim=0).norm() > 2, x),
    lambda x: holds(torch.atan2(x, x).max() > 2.4, x),
    lambda x: holds((x.relu() * (-x).relu()).sum() > 0, x),
    lambda x: holds(x.sort().values[0] > x.max(), x),
    lambda x: holds(x[0] > x.max(), x),
    lambda x: holds((x.cummax(0).values - x).min() < 0, x),
    lambda x: holds(torch.allclose(x, x + 1), x),
    lambda x: holds(torch.equal(x, x + 1), x),
    lambda x: holds(torch.rand(3).max() > 2, x),
    lambda x: holds(F.dropout(x.relu()).sum() < 0, x),
    lambda x: holds(x[x * -x > 0].shape[0] > 0, x),
    lambda x: holds((x.exp() < 0).nonzero().numel() > 0, x),
    # products and sums with constants
    lambda x: holds((x[:1] * torch.tensor([1.0, 0.0]))[1] > 1, x),
    lambda x: holds((x[:1] * torch.tensor([1.0, -1.0])).min() > 1, x),
    lambda x: holds((x[:, None] @ torch.tensor([[1.0, -1.0]])).min() > 1, x),
    lambda x: holds(torch.einsum("i,j->j", x, torch.zeros(2)).max() > 1, x),
    lambda x: holds(torch.kron(x, torch.tensor([1.0, 0.0]))[1] > 1, x),
    lambda x: holds((x * torch.arange(x.shape[0]))[0] > 1, x),
    lambda x: holds((x * torch.linspace(0, 1, x.shape[0]))[0] > 1, x),
    lambda x: holds((x + torch.tensor(float("-inf"))).max() > 1, x),
    lambda x: holds((x[:1] + torch.full((2, 2), float("-inf")).triu(1))[0, 1] > 1, x),
    lambda x: holds((x.cumsum(0) + torch.tensor(float("inf"))).min() < 1, x),
    lambda x: holds((x.cumsum(0) / float("inf")).sum() > 1, x),
    lambda x: holds(torch.add(x.sigmoid(), torch.rand_like(x) * 9, alpha=0).max() > 2, x),
    lambda x: holds(F.conv1d(x[None, None], torch.ones(1, 1, 1), padding=1)[0, 0, 0] > 1, x),
    lambda x: holds(F.conv1d(x[None, None], torch.zeros(1, 1, 1)).max() > 1, x),
    lambda x: holds(F.conv_transpose1d(x[None, None], torch.ones(1, 1, 1), None, 2, 0, 1)[0, 0, 1] > 1, x),
    lambda x: holds(F.pad(x, (1, 0)).cumsum(0).max() < -1, x),
    lambda x: holds(F.pad(x, (1, 1), value=math.nan).sum() < 1, x),
    lambda x: holds(torch.cat([torch.zeros(4), x]).cumsum(0).min() > 1, x),
    lambda x: holds(torch.cat([torch.full((4,), 9.0), x]).logsumexp(0) < 1, x),
    lambda x: holds(torch.diag(x.cumsum(0)).min() > 1, x),
    lambda x: holds(x[:1].expand(5).argmax().item() > 1, x),
    # what is NaN for all data
    *(lambda x, made=made: holds((t := made(x)).eq(t).any(), x) for made in NANS),
    *(lambda x, made=made: holds(not made(x).isnan().any(), x) for made in NANS),
    lambda x: holds(x.abs().exp().min() < 0.5, x),
    lambda x: holds(x.abs().exp().min().item() * 2 < 1, x),
    lambda x: holds(x.sigmoid().sigmoid().min().item() < 0.4, x),
    lambda x: holds(written(x, math.inf).sum() < 1, x),
    lambda x: holds(not written(x, math.nan).isnan().any(), x),
    # what an operator refuses
    lambda x: torch.zeros(2)[(x * -x - 5).long()],
    lambda x: torch.zeros(3)[(x.sigmoid() * 10 + 5).long()],
    lambda x: F.embedding((x * -x - 5).long(), torch.zeros(3, 2)),
    lambda x: torch._assert_async((x * -x).sum() > 0),
    lambda x: holds(x[:1].expand(5).unique().numel() > 1, x),
    # numbers of Python's
    lambda x: holds((x.softmax(0) / 3).max().item() * 2 > 1, x),
    lambda x: holds(x.sigmoid().max().item() * 2 > 3, x),
    lambda x: holds((x * -x).sum().item() > 1, x),
    lambda x: holds((x * -x).sum().item() * 2 > 1, x),
    lambda x: holds(-x.norm().item() > 1, x),
    lambda x: holds(float((x * -x).sum()) + 1 > 3, x),
    lambda x: holds(-math.sqrt(abs(x.sum().item())) > 1, x),
    lambda x: holds((x * -x).sum().item() / x.shape[0] > 1, x),
    lambda x: holds(int((x * -x).sum()) > 100, x),
    lambda x: holds((x * -x).long()[0].item() > 100, x),
    lambda x: holds((x * -x > 1).sum().item() > 0, x),
    lambda x: holds((x.long() * 2).max().item() == 3, x),
    lambda x: holds((x.long() ** 2).max().item() < 0, x),
    lambda x: torch.zeros(int(-x.abs().sum() - 1)),
    lambda x: holds(((x > 0).float() / 3).long().max().item() > 0, x),
    lambda x: holds((t := (x.tanh() > 0).float())[t > 5].numel() > 0, x),
    lambda x: holds(((x > 0).float() * 2 > 3).nonzero().numel() > 0, x),
    lambda x: holds(len(torch.where((x > 0).float() * 2 > 3)[0]) > 0, x),
    lambda x: holds(torch.bincount((x > 0).long()).numel() > 2, x),
    lambda x: holds(torch.bincount((x > 0).long(), minlength=3).shape[0] > 3, x),
    lambda x: holds(torch.bincount((x.sigmoid() * 2).long()).shape[0] > 5, x),
    lambda x: holds(torch.bincount(torch.randint(0, 4, (x.shape[0],))).shape[0] > 4, x),
    lambda x: holds(torch.bincount(x.argsort()).shape[0] < x.shape[0], x),
    lambda x: holds(F.one_hot((x > 0).long()).shape[1] > 2, x),
    lambda x: holds(F.one_hot((x.sigmoid() * 2).long()).shape[1] > 5, x),
    lambda x: holds(F.one_hot(x.argmax()).shape[0] > x.shape[0], x),
    lambda x: holds(x.repeat_interleave((x > 0).long()).numel() > x.shape[0], x),
    lambda x: holds(x.repeat_interleave((x.sigmoid() * 2).long()).numel() > 5 * x.shape[0], x),
    lambda x: holds(torch.repeat_interleave((x > 0).long()).numel() > x.shape[0], x),
    lambda x: holds(torch.arange((x > 0).sum()).shape[0] > 2 * x.shape[0], x),
    lambda x: holds(torch.arange(1, (x > 0).sum() + 2).shape[0] > x.shape[0] + 1, x),
    lambda x: holds(torch.arange((x.sigmoid() * 2).long().sum()).shape[0] > 2 * x.shape[0], x),
    lambda x: holds(torch.arange(x.sigmoid().sum()).shape[0] > 2 * x.shape[0], x),
    lambda x: holds(torch.arange(0, x.sigmoid().sum().item(), 0.5).shape[0] > 2 * x.shape[0], x),
    lambda x: holds(torch.linspace(0, 1, (x > 0).sum()).shape[0] > x.shape[0], x),
    lambda x: holds(torch.randperm((x > 0).sum()).shape[0] > x.shape[0], x),
    lambda x: holds(torch.eye((x > 0).sum()).shape[0] > x.shape[0], x),
    lambda x: holds(torch.hann_window((x > 0).sum() + 1).shape[0] > x.shape[0] + 1, x),
    lambda x: holds(torch.tril_indices((x > 0).sum(), 3).shape[1] > 3 * x.shape[0], x),
    lambda x: holds(torch.nonzero(x.clamp(1, 2)).shape[0] < x.shape[0], x),
    lambda x: holds(torch.nonzero(x.nan_to_num().exp() + 1).shape[0] < x.shape[0], x),
    lambda x: holds(torch.nonzero((x > 0).long() + 1).shape[0] < x.shape[0], x),
    lambda x: holds(x[x.clamp(1, 2).bool()].shape[0] < x.shape[0], x),
    lambda x: holds(x[(x > 0) ^ (x > 0)].shape[0] > 0, x),
    lambda x: holds(x[(x.long() & 1) > 1].shape[0] > 0, x),
    lambda x: holds(x[x.nan_to_num(0, 1, -1).isnan()].shape[0] > 0, x),
    lambda x: holds(torch.zeros(5)[torch.randperm(5) < 2].shape[0] == 3, x),
    lambda x: holds((x.sigmoid() > 5).float().to_sparse()._nnz() > 0, x),
    lambda x: holds(int((x > 1).sum()) > int((x > 0).sum()), x),
    lambda x: holds(x[x > 1].shape[0] > x[x > 0].shape[0], x),
    lambda x: holds(x[x > 0].shape[0] + x[x <= 0].shape[0] > x.shape[0], x),
    lambda x: holds(x[x > 0].shape[0] + x[~(x > 0)].shape[0] == x.shape[0] + 1, x),
    lambda x: holds((k := x[x > 0])[k < 0].shape[0] > 0, x),
    lambda x: holds((x[x > 0] <= 0).any(), x),
    lambda x: holds(x[x > 0].min() < 0, x),
    lambda x: holds((x[torch.nonzero(x > 0)[:, 0]] <= 0).any(), x),
    lambda x: holds(torch.masked_select(x, x > 0).lt(0).any(), x),
    lambda x: holds(torch.nonzero((x > 0).repeat(2)).shape[0] % 2 == 1, x),
    lambda x: holds(x[:, None].expand(-1, 2)[(x > 0)[:, None].expand(-1, 2)].shape[0] == 1, x),
]
"""Programs that fail for all data: nothing says that they run."""


@pytest.mark.parametrize("target", NEVER)
def test_a_condition_that_no_data_meet_is_not_one_that_some_meet(target: Callable[..., Any]) -> None:
    for x in (torch.zeros(2), torch.randn(2), torch.full((2,), -3.0), torch.tensor([-1e4, 1e4])):
        with pytest.raises((AssertionError, RuntimeError, IndexError)):
            target(x)
    report = check(target, "x: float32[n]", replay=False)
    assert report.verdict in ("unknown", "refuted"), report.to_text()
    assert not report.accepts.certain.holds(n=2)


class Layers(nn.Module):
    def __init__(self, condition: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.first, self.last, self.condition = nn.Linear(4, 3), nn.Linear(3, 3), condition

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.first(x[:, None].expand(-1, 4)))
        return holds(self.condition(self.last(x)), x)


SOMETIMES: list[Callable[[Tensor], Any]] = [
    lambda x: holds(x.sum() > 100, x),
    lambda x: holds(x.mean() * 2 + 1 > 50, x),
    lambda x: holds(-x.sum() > 50, x),
    lambda x: holds((x * x).sum() > 50, x),
    lambda x: holds(x.relu().max() > 1, x),
    lambda x: holds(x.median() > 1, x),
    lambda x: holds(x.sort().values[0] > 1, x),
    lambda x: holds(F.avg_pool1d(x[None], 1).max() > 1, x),
    lambda x: holds(torch.rand(3).max() > 0.4, x),
    lambda x: holds(torch.bernoulli(torch.full((3,), 0.5)).sum() > 1, x),
    lambda x: holds(x.sum().item() / x.shape[0] > 3, x),
    lambda x: holds(math.sqrt(abs(x.sum().item())) < 3, x),
    lambda x: holds(round(x.sum().item(), 2) > 100, x),
    lambda x: holds(int(x.sum()) > 100, x),
    lambda x: holds((x.long() * 2).max().item() < x.shape[0], x),
    lambda x: D.Bernoulli(torch.sigmoid(x)).log_prob(x),
    lambda x: D.Gamma(x.exp(), 1.0).log_prob(D.Gamma(x.exp(), 1.0).sample()),
    lambda x: D.Binomial(5, logits=x).log_prob(D.Binomial(5, logits=x).sample()),
    Layers(lambda x: x.max() > 1),
    Layers(lambda x: x.sum().item() > 1),
    Layers(lambda x: x.relu().sum() < 5),
    lambda x: holds((x * torch.rand(x.shape[0], 2).t()).min() > 1, x),
    lambda x: holds((x.cumsum(0) + torch.ones(3, 1)).min() > 50, x),
    lambda x: holds(F.conv1d(x[None, None], torch.ones(1, 1, 1)).max() > 50, x),
    lambda x: holds(F.pad(x, (1, 0)).sum() < -50, x),
    lambda x: torch.zeros(x.shape[0])[(x * -x).long()],
    lambda x: torch.zeros(256)[((x.tanh() + 1) * 127.5).long()],
    lambda x: torch._assert_async(x.sum() > 0),
    lambda x: holds(torch.bincount((x > 0).long()).numel() == 2, x),
    lambda x: holds(torch.bincount(x.abs().long()).shape[0] > 5, x),
    lambda x: holds(F.one_hot((x > 0).long()).shape[1] == 1, x),
    lambda x: holds(x.repeat_interleave((x > 0).long()).numel() == x.shape[0], x),
    lambda x: holds(torch.arange((x > 0).sum()).shape[0] == x.shape[0], x),
    lambda x: holds(x[x > 0].shape[0] % 2 == 0, x),
    lambda x: holds(x[x > 0].sum() > 5, x),
    lambda x: holds(x[x.sigmoid() > 0.5].shape[0] < x.shape[0], x),
    lambda x: holds(x[torch.rand_like(x) < 0.5].shape[0] < x.shape[0], x),
    lambda x: holds(x[(x >= 0) & (x < 1)].shape[0] == 1, x),
]
"""Programs that run for some data, and fail for others."""


@pytest.mark.parametrize("target", SOMETIMES)
def test_data_are_found_for_either_outcome(target: Callable[..., Any]) -> None:
    report = check(target, "x: float32[n]", replay=False)
    assert report.verdict == "proved" and report.accepts.exact, report.to_text()


class Masking(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mask", torch.tensor([1.0, 0.0]))

    def forward(self, x: Tensor) -> Tensor:
        return holds((x[:, None] * self.mask)[0, 1] > 1, x)


def test_what_a_buffer_holds_is_no_data() -> None:
    report = check(Masking(), "x: float32[n]", replay=False)
    assert report.verdict == "unknown", report.to_text()


def test_a_size_at_which_all_data_fail_is_not_accepted() -> None:
    report = check(lambda x: holds(torch.cdist(x, x).sum() > 0, x), "x: float32[n, 3]", replay=False)
    assert not report.accepts.certain.holds(n=1), report.to_text()
    report = check(lambda x: torch.cdist(x, x)[torch.cdist(x, x) > 0][0], "x: float32[n, 3]", replay=False)
    assert not report.accepts.certain.holds(n=1), report.to_text()
    report = check(lambda x: holds(x.softmax(0).max() < 0.4, x), "x: float32[n]", replay=False)
    assert not report.accepts.certain.holds(n=2), report.to_text()


def order_of_a_triangle(x: Tensor) -> Tensor:
    """The greatest elements are the zeros above the diagonal, the first of which is the second element."""
    return holds((x.tanh() - 1).tril().argmax().item() > 1, x)


def order_of_what_is_0(x: Tensor) -> Tensor:
    return holds((x - x.mean(0)).argmax().item() > 1, x)


@pytest.mark.parametrize("target", [order_of_a_triangle, order_of_what_is_0])
def test_an_index_that_data_choose_is_any_only_where_data_give_each_order(target: Callable[..., Any]) -> None:
    report = check(target, "x: float32[a, b]", replay=False)
    assert not report.accepts.certain.holds(a=1, b=2) and not report.accepts.exact, report.to_text()


def test_an_index_of_what_is_free_is_any() -> None:
    report = check(lambda x: holds(x.argmax().item() > 1, x), "x: float32[n]", replay=False)
    assert report.verdict == "refined" and report.accepts.exact, report.to_text()
    assert report.accepts.holds(n=3) and not report.accepts.holds(n=2)


def test_where_both_outcomes_run_it_does_not_matter_which_is_possible() -> None:
    def either(x: Tensor) -> Tensor:
        return x if torch.cdist(x, x).sum() > 0 else x * 2

    report = check(either, "x: float32[n, 3]", replay=False)
    assert report.verdict == "proved" and report.accepts.exact, report.to_text()

    def apart(x: Tensor) -> Tensor:
        return x.view(2, -1) if torch.cdist(x, x).sum() > 0 else x

    report = check(apart, "x: float32[n, 3]", replay=False)
    assert not report.accepts.exact and report.accepts.certain.holds(n=2), report.to_text()


def test_an_error_after_an_approximation_is_not_one_of_the_program() -> None:
    def program(x: Tensor) -> Tensor:
        y = x[None].contiguous(memory_format=torch.channels_last).view(x.shape[0], -1)
        return y * {"a": 1}[str(len(x))] if y.is_contiguous() else y

    program(torch.zeros(2, 2, 2))
    assert check(program, "x: float32[a, b, c]", replay=False).verdict == "unknown"


def test_the_spread_of_data_is_0_or_more() -> None:
    report = check(lambda x: holds(x.std(0) > 0, x), "x: float32[n]", replay=False)
    assert report.verdict == "refined" and report.accepts.exact, report.to_text()
    assert report.accepts.holds(n=2) and not report.accepts.holds(n=1)


@pytest.mark.parametrize("target", [
    lambda x: torch.multinomial((-x.exp()).log().softmax(-1), 1),
    lambda x: torch.bernoulli((-x.exp()).log().sigmoid()),
])  # fmt: skip
def test_chances_that_are_nan_are_no_chances(target: Callable[..., Any]) -> None:
    report = check(target, "x: float32[n]", replay=False)
    assert report.verdict != "proved" and not report.accepts.certain.holds(n=2), report.to_text()


def test_repeats_that_data_decide_are_counted_by_their_own_numbers() -> None:
    """What is repeated is all ones; how often, data decide."""
    report = check(
        lambda x: torch.ones(4, 2).repeat_interleave((x > 0).long(), 0), "x: float32[n]", replay=False
    )
    assert report.accepts.exact, report.to_text()
    assert [n for n in range(1, 9) if report.accepts.holds(n=n)] == [1, 4]


@pytest.mark.parametrize("target", [
    lambda x: x.repeat_interleave((x[:1].std(0) * x).long()),
    lambda x: holds(torch.full((x.shape[0],), float("nan")).unique().shape[0] == 1, x),
    lambda x: holds(torch.full((x.shape[0],), float("nan")).unique_consecutive().shape[0] == 1, x),
])  # fmt: skip
def test_nan_is_no_number_of_results_and_differs_from_itself(target: Callable[..., Any]) -> None:
    report = check(target, "x: float32[n]", replay=False)
    assert "internal-error" not in [f.code for f in report.findings], report.to_text()
    assert report.verdict == "unknown" and not report.accepts.certain.holds(n=2), report.to_text()


def test_each_element_of_a_mask_may_be_true_where_each_is_made_of_its_own_data() -> None:
    """The classes of an adaptive softmax are found by masks, and the rows of all of them are counted."""
    inputs = ["input_: float32[n, 4]", "target_: int64[n]"]
    report = check(nn.AdaptiveLogSoftmaxWithLoss(4, 9, cutoffs=[2, 5]), inputs, replay=False)
    assert report.verdict == "proved" and report.accepts.exact, report.to_text()
