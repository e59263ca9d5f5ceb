"""Data of nothing: what is computed from inputs without any element the sizes decide, each time alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributions as D
import torch.nn.functional as F
from torch import Tensor, nn

from anyshape.typecheck import check

REFUSALS = (RuntimeError, ValueError, AssertionError, IndexError)


def holds(condition: Any, x: Tensor) -> Tensor:
    assert condition
    return x


def overwritten(*writes: Callable[[Tensor], Any]) -> Callable[[Tensor], Tensor]:
    def program(x: Tensor) -> Tensor:
        y = x.clone()
        for write in writes:
            write(y)
        return holds(y.sum() > 0, y)

    return program


def zero(part: Any) -> Callable[[Tensor], None]:
    return lambda y: y.__setitem__(part, 0)


FARTHEST = torch.finfo(torch.float32).min


def each_is_zero(x: Tensor) -> Tensor:
    y = x.clone()
    for i in range(x.shape[0]):
        y[i] = 0
    return holds(y.sum() > 0, y)


PROGRAMS: list[tuple[Callable[[Tensor], Any], str, str]] = [
    (lambda x: holds(x.sum() > 0, x), "x: float32[n]", "1 <= n"),
    (lambda x: holds(not x.sum() > 0, x), "x: float32[n]", "1 <= n"),
    (lambda x: holds((x > 0).any(), x), "x: float32[n]", "1 <= n"),
    (lambda x: holds(not (x > 0).all(), x), "x: float32[n]", "1 <= n"),
    (lambda x: holds(x.sum().item() > 0, x), "x: float32[n]", "1 <= n"),
    (lambda x: holds((x > 0).sum() > 0, x), "x: float32[n]", "1 <= n"),
    (lambda x: holds(1 in x, x), "x: float32[n]", "1 <= n"),
    (lambda x: holds(x.unique().shape[0] > 0, x), "x: float32[n]", "1 <= n"),
    (lambda x: holds(not torch.equal(x, x + 1), x), "x: float32[n]", "1 <= n"),
    (lambda x: holds(x.sum().sigmoid() > 0.6, x), "x: float32[n]", "1 <= n"),
    (lambda x: holds(torch.cat([x, torch.zeros(2)]).sum() > 0, x), "x: float32[n]", "1 <= n"),
    (lambda x: torch._assert_async(x.sum() > 0), "x: float32[n]", "1 <= n"),
    (lambda x: torch.zeros(1)[x.prod()], "x: int64[n]", "1 <= n"),
    (lambda x: x.abs().sum(0).multinomial(1), "x: float32[n, 2]", "1 <= n"),
    (lambda x: torch.distributions.Normal(x.sum(0), x.abs().sum(0)).mean, "x: float32[n, m]", "1 <= n"),
    (lambda x: holds(x[1:].sum() > 0, x), "x: float32[n]", "2 <= n"),
    (lambda x: holds(not (x[1:] > x[:-1]).all(), x), "x: float32[n]", "2 <= n"),
    (overwritten(zero(0)), "x: float32[n]", "2 <= n"),
    (overwritten(zero(slice(None, 2))), "x: float32[n]", "3 <= n"),
    (overwritten(lambda y: y[:].zero_()), "x: float32[n]", "False"),
    (overwritten(lambda y: y[:1].zero_(), lambda y: y[1:].fill_(0)), "x: float32[n]", "False"),
    (each_is_zero, "x: float32[n]", "False"),
]
"""Programs that run for some data, with the sizes at which these are data."""


def runs(target: Callable[[Tensor], Any], inputs: str, n: int) -> bool:
    """Whether the program runs with some data."""
    kind = torch.int64 if "int64" in inputs else torch.float32
    shape = (n, 2) if "," in inputs else (n,)
    count = torch.Size(shape).numel()
    rising = torch.arange(count).reshape(shape).to(kind)
    for x in (rising + 1, -rising - 1, torch.zeros(shape, dtype=kind), torch.ones(shape, dtype=kind)):
        try:
            target(x)
        except REFUSALS:
            continue
        return True
    return False


@pytest.mark.parametrize("target, inputs, there", PROGRAMS)
def test_no_data_decide_nothing(target: Callable[[Tensor], Any], inputs: str, there: str) -> None:
    report = check(target, inputs, ["n >= 0"], replay=False)
    for n in range(5):
        ran = runs(target, inputs, n)
        sizes = dict.fromkeys(report.accepts.symbols, 2) | {"n": n}
        certain, accepted = (where.holds(**sizes) for where in (report.accepts.certain, report.accepts))
        assert certain <= ran <= accepted, (n, report.to_text())
        assert certain or not eval(there.replace("False", "n < 0"), {"n": n}), (n, report.to_text())
        assert certain == accepted or there != "1 <= n", (n, report.to_text())


SAME: list[tuple[Callable[[Tensor], Any], str]] = [
    (lambda x: holds((x * 0).sum() > 0, x), "x: float32[n]"),
    (lambda x: holds((x * (x.shape[0] - 3)).sum() > 0, x), "x: float32[n]"),
    (lambda x: holds((x * (x.shape[0] / 2 - 1)).sum() != 0, x), "x: float32[n]"),
    (lambda x: holds((x * torch.tensor(x.shape[0] - 3)).any(), x), "x: float32[n]"),
    (lambda x: holds(((x + 2).abs() ** (x.shape[0] - 3)).sum() != 3, x), "x: float32[n]"),
    (lambda x: holds(x.sum().item() * (x.shape[0] - 3) > 0, x), "x: float32[n]"),
    (lambda x: holds((x.shape[0] / 2 - 1) * x.sum().item() != 0, x), "x: float32[n]"),
    (lambda x: holds((x * (x.shape[0] - 3)).sum().item() > 0, x), "x: int64[n]"),
    (lambda x: holds((x - x).abs().sum() > 0, x), "x: float32[n]"),
    (lambda x: holds(torch.where(x > 0, 0.0, FARTHEST).any(), x), "x: float32[n]"),
    (lambda x: holds(torch.where(x > 0, torch.zeros(()), FARTHEST).any().item(), x), "x: float32[n]"),
    (lambda x: holds(torch.full((2,), FARTHEST).mean() + x.sum() < 0, x), "x: float32[n]"),
    (lambda x: holds(torch.full((2, 2), FARTHEST).tril().any() + x.sum() > 0, x), "x: float32[n]"),
    (lambda x: holds(x.clone().sub_(x).sum() > 0, x), "x: float32[n]"),
    (lambda x: holds((x * 0 + x.shape[0]).sum() > 3, x), "x: float32[n]"),
    (lambda x: holds(x.masked_fill(torch.ones(x.shape).bool(), 0).sum() > 0, x), "x: float32[n]"),
    (lambda x: holds(x.masked_fill(torch.arange(x.shape[0]) < 2, 0).sum() > 0, x), "x: float32[n]"),
    (lambda x: holds(not x.std().isnan(), x), "x: float32[n]"),
    (lambda x: holds(x.var(0, correction=2).sum() >= 0, x), "x: float32[n, m]"),
    (lambda x: holds(((x - x.mean(0)) / x.std(0)).isfinite().any(), x), "x: float32[n, m]"),
    (lambda x: holds(not torch.var_mean(x)[1].isnan(), x), "x: float32[n]"),
    (lambda x: holds(x.softmax(0).max() < 0.9, x), "x: float32[n, m]"),
    (lambda x: holds(x.softmax(0).sum() > 1.5, x), "x: float32[n]"),
    (lambda x: holds(x.log_softmax(0).abs().sum() > 0.01, x), "x: float32[n]"),
    (lambda x: holds(F.layer_norm(x, x.shape[-1:]).abs().sum() > 0, x), "x: float32[n, m]"),
    (lambda x: holds((x - x.mean()).abs().sum() > 0, x), "x: float32[n]"),
    (lambda x: holds(x.max() > x.min(), x), "x: float32[n]"),
    (lambda x: holds(x.triu(1).abs().sum() > 0, x), "x: float32[m, n]"),
    (lambda x: holds(torch.cov(x.T).abs().sum() >= 0, x), "x: float32[n, m]"),
    (lambda x: holds(torch.trapezoid(x) != 0, x), "x: float32[n]"),
    (lambda x: holds(F.mse_loss(x, x) > 0, x), "x: float32[n]"),
    (lambda x: holds(not torch.equal(x, x.clone()), x), "x: float32[n]"),
    (lambda x: holds((x != x).any(), x), "x: float32[n]"),
    (lambda x: holds((x.abs() < 0).any(), x), "x: float32[n]"),
    (lambda x: holds(not (x.abs() >= 0).all(), x), "x: float32[n]"),
    (lambda x: holds(x.exp().sum().item() < 0, x), "x: float32[n]"),
    (lambda x: holds(x.sigmoid().max() > 1.5, x), "x: float32[n]"),
    (lambda x: holds((x > 0).sum() > 3, x), "x: float32[n]"),
    (lambda x: holds((x > 0).float().mean() > 1.5, x), "x: float32[n]"),
    (lambda x: holds(x.argmax() > 1, x), "x: float32[n]"),
    (lambda x: holds(((x > 0) & (x.abs() < 0)).any(), x), "x: float32[n]"),
    (lambda x: holds(not torch.isfinite(x).all(), x), "x: float32[n]"),
    (lambda x: holds((x == x + 1).any(), x), "x: float32[n]"),
    (lambda x: holds(not (x < x + 1).all(), x), "x: float32[n]"),
    (lambda x: holds(((x > 0) & (x < 0)).any(), x), "x: float32[n]"),
    (lambda x: holds(((x > 0) & (x < 0)).sum() > 0, x), "x: float32[n]"),
    (lambda x: holds(((x > 0) & (x < 0)).sum().item() > 0, x), "x: float32[n]"),
    (lambda x: holds(((x > 0) | (x <= 0)).logical_not().any(), x), "x: float32[n]"),
    (lambda x: holds((x - (x + 1)).max() > 0, x), "x: float32[n]"),
    (lambda x: holds(torch.equal(x, x + 1), x), "x: float32[n]"),
    (lambda x: holds(torch.equal(x[:2], x[:2] - 1), x), "x: float32[n]"),
    (lambda x: holds((x.argmax() == x.argmax() + 1), x), "x: float32[n]"),
    (lambda x: holds((x.flip(0) - 1 > x.max()).any(), x), "x: float32[n]"),
    (lambda x: D.Uniform(x, x - 1).mean, "x: float32[n]"),
    (lambda x: D.Normal(x, x - x).mean, "x: float32[n]"),
    (lambda x: holds(len(set(x.tolist())) == 1, x), "x: float32[n]"),
    (lambda x: holds((x * 0).unique().shape[0] > 1, x), "x: float32[n]"),
    (lambda x: holds((x * 0).nonzero().shape[0] > 0, x), "x: float32[n]"),
    (lambda x: holds(torch.arange(x.shape[0]).unique().shape[0] != x.shape[0], x), "x: float32[n]"),
    (lambda x: holds((torch.arange(x.shape[0]) // 2).unique().shape[0] > 2, x), "x: float32[n]"),
    (lambda x: holds((torch.arange(x.shape[0]) > 2).nonzero().shape[0] == 1, x), "x: float32[n]"),
    (lambda x: holds((torch.arange(x.shape[0]) % 2).nonzero().shape[0] > 1, x), "x: float32[n]"),
    (lambda x: holds(torch.eye(x.shape[0]).nonzero().shape[0] > 2, x), "x: float32[n]"),
    (lambda x: x.std(0).abs().multinomial(1), "x: float32[n, 2]"),
    (lambda x: (x * 0).multinomial(1), "x: float32[n]"),
    (lambda x: torch.poisson(x * 0 - 1), "x: float32[n]"),
    (lambda x: torch.bernoulli(x.sigmoid() + 1.5), "x: float32[n]"),
    (lambda x: torch.histc(x.std(0)), "x: float32[n, 2]"),
    (lambda x: torch.zeros(5)[x.abs() + 7], "x: int64[n]"),
    (lambda x: torch.zeros(3)[(x * 0).long() + x.shape[0]], "x: float32[n]"),
    (lambda x: torch._assert_async((x.abs() < 0).any()), "x: float32[n]"),
    (lambda x: D.Normal(x.std(0), 1.0).mean, "x: float32[n, 2]"),
    (lambda x: D.Normal(x, -x.abs() - 1).mean, "x: float32[n]"),
    (lambda x: D.Categorical(logits=x.std(0), validate_args=False).sample(), "x: float32[n, 2]"),
    (lambda x: D.Categorical(probs=x * 0).entropy(), "x: float32[n]"),
]
"""Programs in which all data give the same, at some sizes or at all."""


@pytest.mark.parametrize("target, inputs", SAME)
def test_data_that_are_the_same_in_truth_prove_nothing(target: Callable[[Tensor], Any], inputs: str) -> None:
    report = check(target, inputs, ["n >= 0"], replay=False)
    for n in range(6):
        shape = [n if d == "n" else int(d.replace("m", "3")) for d in inputs[:-1].split("[")[1].split(", ")]
        ran = any(_runs_on(target, fill(shape), inputs) for fill in FILLS)
        sizes = dict.fromkeys(report.accepts.symbols, 3) | {"n": n}
        certain, accepted = (where.holds(**sizes) for where in (report.accepts.certain, report.accepts))
        assert certain <= ran <= accepted, (n, report.to_text())


FILLS: list[Callable[[list[int]], Tensor]] = [
    torch.zeros, torch.ones, torch.randn, lambda shape: torch.randn(shape) * 9,
    lambda shape: torch.arange(torch.Size(shape).numel()).reshape(shape) + 1.0,
    lambda shape: -torch.arange(torch.Size(shape).numel()).reshape(shape) - 1.0,
]  # fmt: skip


def _runs_on(target: Callable[[Tensor], Any], x: Tensor, inputs: str) -> bool:
    try:
        target(x.long() if "int64" in inputs else x)
    except REFUSALS:
        return False
    return True


USUAL: list[Callable[[Tensor], Any]] = [
    lambda x: holds((x == x).all(), x),
    lambda x: holds((x.abs() >= 0).all(), x),
    lambda x: holds(not x.isnan().any(), x),
    lambda x: holds((x.softmax(-1).sum(-1) - 1).abs() < 1e-6, x),
    lambda x: D.Normal(x, x.exp()).log_prob(x),
    lambda x: D.Categorical(logits=x).log_prob(x.argmax(-1)),
    lambda x: D.Categorical(probs=x.softmax(-1)).entropy(),
    lambda x: torch.bernoulli(x.sigmoid()),
    lambda x: x[torch.arange(x.shape[0]) < x.shape[0] - 1].view(x.shape[0] - 1),
    lambda x: torch.arange(x.shape[0]).unique().view(x.shape),
]
"""Programs that run with all data but NaN and infinity."""


@pytest.mark.parametrize("target", USUAL)
def test_what_is_usual_is_proved(target: Callable[[Tensor], Any]) -> None:
    report = check(target, "x: float32[n]", replay=False)
    assert report.verdict == "proved" and report.accepts.exact, report.to_text()


TRIED: list[Callable[[Tensor], Any]] = [
    lambda x: holds(((x > 0) & (x < 1)).any(), x),
    lambda x: holds((x < x + 1).all(), x),
    lambda x: holds((x * x >= x).all(), x),
    lambda x: holds(not torch.equal(x, x + 1), x),
    lambda x: holds(x.sum() >= x.prod(), x),
    lambda x: D.Uniform(x, x + 1).mean,
    lambda x: D.Poisson(x.exp()).log_prob(x),
    lambda x: D.Geometric(logits=x).log_prob(x),
    lambda x: D.Bernoulli(logits=x).log_prob(x),
    lambda x: D.Beta(x, x).log_prob(x),
    lambda x: D.Categorical(logits=x).log_prob(x),
    lambda x: D.Kumaraswamy(x.exp(), x.exp()).log_prob(x),
    lambda x: D.Kumaraswamy(x.exp(), x.exp()).log_prob(D.Kumaraswamy(x.exp(), x.exp()).sample()),
    lambda x: D.Kumaraswamy(*(F.adaptive_avg_pool1d(x[None], 3).exp(),) * 2).log_prob(torch.zeros(3)),
    lambda x: D.Geometric(logits=x).log_prob(D.Geometric(logits=x).sample()),
]
"""Programs that run with some data, which are found where two results of the same data meet."""


@pytest.mark.parametrize("target", TRIED)
def test_data_with_which_a_program_runs_are_found(target: Callable[[Tensor], Any]) -> None:
    report = check(target, "x: float32[n]", replay=False)
    assert any(_runs_on(target, torch.full((2,), number), "") for number in (0.0, 0.5, 1.0, 2.0))
    assert report.verdict == "proved" and report.accepts.exact, report.to_text()


def test_of_sizes_that_leave_data_nothing_is_said() -> None:
    for target, inputs, there in PROGRAMS:
        if there == "1 <= n":
            report = check(target, inputs, replay=False)
            assert report.verdict == "proved" and report.accepts.exact, report.to_text()


def checked_twice(x: Tensor) -> Tensor:
    """Two branches on nothing, each with sizes of its own after it."""
    if x.sum() > 0:
        if x.shape[1] > 3:
            raise ValueError("a")
        return x
    if x.shape[1] > 5:
        raise ValueError("b")
    return x


def test_paths_of_overlapping_premises_are_compared() -> None:
    report = check(checked_twice, "x: float32[n, m]", ["n >= 0"], replay=False)
    assert not report.accepts.certain.holds(n=0, m=6)
    assert report.accepts.certain.holds(n=1, m=3) and report.accepts.holds(n=0, m=5)


WRITTEN: list[Callable[[Tensor, Tensor], Any]] = [
    lambda ids, rel: rel[through(ids, lambda i: i[:].fill_(5))],
    lambda ids, rel: rel[through(ids, lambda i: i[:2].fill_(rel.shape[0]))],
    lambda ids, rel: rel[through(ids, lambda i: i.__setitem__(0, rel.shape[0]))],
    lambda ids, rel: rel[through(ids, lambda i: i.view(-1, 1).__setitem__(0, 5))],
    lambda ids, rel: rel[through(ids, lambda i: i.unbind()[0].fill_(5))],
    lambda ids, rel: rel[through(ids, lambda i: i.detach().__setitem__(-1, 5))],
]


def through(ids: Tensor, write: Callable[[Tensor], Any]) -> Tensor:
    found = ids.clone()
    write(found)
    return found


@pytest.mark.parametrize("target", WRITTEN)
def test_sizes_that_are_written_among_indices_of_the_user_are_no_data(target: Callable[..., Any]) -> None:
    report = check(target, "ids: int64[q]; rel: float32[R, 3]", replay=False)
    with pytest.raises(IndexError):
        target(torch.zeros(3, dtype=torch.int64), torch.zeros(2, 3))
    assert report.verdict != "proved" and not report.accepts.certain.holds(q=3, R=2), report.to_text()


INTEGERS = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
DTYPES = [*INTEGERS, torch.float16, torch.float32, torch.complex64]
MAKERS: list[Callable[[Tensor, torch.dtype], Any]] = [
    lambda x, dtype: torch.rand(x.shape[0], dtype=dtype),
    lambda x, dtype: torch.randn(x.shape[0], dtype=dtype),
    lambda x, dtype: torch.rand_like(x, dtype=dtype),
    lambda x, dtype: torch.randn_like(x.to(dtype)),
    lambda x, dtype: torch.randint(0, 2, (x.shape[0],), dtype=dtype),
    lambda x, dtype: torch.randint_like(x, 2, dtype=dtype),
    lambda x, dtype: torch.randperm(x.shape[0], dtype=dtype),
    lambda x, dtype: torch.normal(0.0, 1.0, (x.shape[0],), dtype=dtype),
    lambda x, dtype: torch.normal(x.to(dtype), 1.0),
    lambda x, dtype: torch.normal(0.0, x.to(dtype).abs()),
    lambda x, dtype: torch.linspace(0, 1, x.shape[0], dtype=dtype),
    lambda x, dtype: torch.arange(x.shape[0], dtype=dtype),
    lambda x, dtype: torch.tril_indices(x.shape[0], x.shape[0], dtype=dtype),
    lambda x, dtype: nn.init.normal_(x.to(dtype)),
    lambda x, dtype: nn.init.uniform_(x.to(dtype)),
    lambda x, dtype: torch.sum(x, 0, out=torch.empty(0, dtype=dtype)),
    lambda x, dtype: torch.bernoulli(x, out=torch.empty(0, dtype=dtype)),
    lambda x, dtype: torch.where(x > 0, x, x, out=torch.empty(0, dtype=dtype)),
    lambda x, dtype: torch.abs(x, out=torch.empty(0, dtype=dtype)),
    lambda x, dtype: torch.add(x, x, out=torch.empty(0, dtype=dtype)),
    lambda x, dtype: torch.full((x.shape[0],), 1, out=torch.empty(0, dtype=dtype)),
]


@pytest.mark.parametrize("maker", MAKERS)
def test_which_dtypes_are_made(maker: Callable[[Tensor, torch.dtype], Any]) -> None:
    for dtype in DTYPES:
        report = check(lambda x, d=dtype: maker(x, d), "x: float32[n]", ["n >= 0"], replay=False)
        for n in range(3):
            try:
                maker(torch.zeros(n), dtype)
                ran = True
            except RuntimeError:
                ran = False
            assert report.accepts.certain.holds(n=n) <= ran <= report.accepts.holds(n=n), (dtype, n)
