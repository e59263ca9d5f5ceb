"""Elements that sizes decide, and operators and distributions that check them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, arange, eye
from torch import distributions as D

from anyshape import check


def written(x: Tensor) -> Tensor:
    matrix = eye(x.shape[0])
    matrix[0, 0] = -1
    return torch.linalg.cholesky(matrix)


def written_through_a_view(x: Tensor) -> Tensor:
    matrix = eye(x.shape[0])
    matrix.view(-1)[0] = -1
    return torch.linalg.cholesky(matrix)


def of_ones(x: Tensor, add: float) -> Tensor:
    """The root of the number n + add, which is written through views."""
    matrix = (torch.ones(1, x.shape[0]) @ torch.ones(x.shape[0], 1)).contiguous()
    matrix.view(-1, 1)[:, ::2] += add
    return torch.linalg.cholesky(matrix)


def low_rank(x: Tensor, columns: int) -> D.LowRankMultivariateNormal:
    return D.LowRankMultivariateNormal(x, torch.ones(x.shape[0], columns), torch.ones(x.shape[0]))


def lognormal(x: Tensor) -> D.TransformedDistribution:
    return D.TransformedDistribution(D.Normal(x, 1.0), [D.transforms.ExpTransform()])


def normal(x: Tensor, scale: Tensor) -> D.MultivariateNormal:
    return D.MultivariateNormal(x, scale)


def halved(x: Tensor, bound: float) -> Tensor:
    assert (torch.full(x.shape, 3.0) * 0.5 > bound).all()
    return x


@pytest.mark.parametrize("target, exact", [
    (lambda x: torch.linalg.cholesky(eye(x.shape[0])), True),
    (lambda x: torch.linalg.cholesky(eye(x.shape[0]).clone().expand(2, -1, -1)), True),
    (lambda x: torch.linalg.cholesky(torch.linalg.cholesky(eye(x.shape[0]))), True),
    (lambda x: torch.linalg.cholesky(eye(1).expand(x.shape[0], x.shape[0])), False),
    (lambda x: torch.linalg.cholesky(eye(x.shape[0]) - 1), False),
    (written, False), (written_through_a_view, False),
    (lambda x: normal(x, eye(x.shape[0])).rsample(), True),
    (lambda x: normal(x, eye(x.shape[0])).log_prob(x), True),
    (lambda x: normal(x, eye(2)).entropy(), True), (lambda x: normal(x, -eye(x.shape[0])).mean, False),
    (lambda x: of_ones(x, 1), True), (lambda x: of_ones(x, 0), True), (lambda x: of_ones(x, -2), False),
    (lambda x: low_rank(x, 1).log_prob(x), True), (lambda x: low_rank(x, 2).mean, False),
    (lambda x: D.Gumbel(x, 1.0).log_prob(x), True), (lambda x: D.Gumbel(0.0, x.exp()).mean, True),
    (lambda x: D.Normal(0.0, torch.ones(x.shape[0])).log_prob(D.Normal(x, 1.0).sample()), True),
    (lambda x: D.Pareto(1.0, x.exp()).log_prob(torch.zeros(x.shape[0] - 1)), True),
    (lambda x: D.Pareto(1.0, x.exp()).log_prob(torch.full((x.shape[0],), 1.5)), True),
    (lambda x: D.HalfNormal(torch.zeros(x.shape[0]).exp()).mean, True),
    (lambda x: D.HalfNormal(torch.full((x.shape[0],), -0.1)).mean, True),
    (lambda x: D.Beta(x.exp(), 1.0).log_prob(torch.zeros(x.shape[0])), True),
    (lambda x: D.Beta(x.exp(), 1.0).log_prob(torch.full((x.shape[0],), 1.1)), True),
    (lambda x: D.RelaxedBernoulli(torch.tensor(1.0), logits=x).log_prob(torch.zeros(x.shape[0])), True),
    (lambda x: lognormal(x).log_prob(torch.zeros(x.shape[0] - 1)), True),
    (lambda x: D.Multinomial(2, logits=x).perplexity(), True),
    (lambda x: D.Binomial(3, logits=x).log_prob(torch.tensor([[1.0], [4.0]])), False),
    (lambda x: D.Binomial(3, logits=x).log_prob(torch.tensor([[1.0], [3.0]])), True),
    (lambda x: x.view(int((torch.zeros(3) + 2).max())), True),
    (lambda x: x.view(round((torch.zeros(x.shape[0] - 1) + 0.3).sum().item() * 10)), False),
    (lambda x: lognormal(x).log_prob(torch.full((x.shape[0],), 0.1)), True),
    (lambda x: D.Kumaraswamy(x.exp(), x.exp()).log_prob(torch.zeros(x.shape[0])), True),
    (lambda x: D.StudentT(3.0, x).mean, True), (lambda x: D.FisherSnedecor(x.exp(), 2.0).mean, True),
    (lambda x: halved(x, 1.0), True), (lambda x: halved(x, 2.0), True), (lambda x: halved(x, 1.5), False),
    (lambda x: F.multilabel_margin_loss(x, torch.full(x.shape, 2)), True),
    (lambda x: F.multilabel_margin_loss(x, torch.full(x.shape, -2)), True),
    (lambda x: F.multilabel_margin_loss(x, arange(x.shape[0]) - 1), True),
    (lambda x: F.multilabel_margin_loss(x, arange(x.shape[0]) + 1), True),
])  # fmt: skip
def test_elements_that_are_checked(target: Callable[[Tensor], object], exact: bool) -> None:
    report = check(target, "x: [n]", "n >= 1", replay=False)
    assert exact <= (not [f for f in report.findings if f.code.value in ("approximate", "incomplete")])
    for n in range(1, 6):
        try:
            target(torch.ones(n))
        except (RuntimeError, ValueError, AssertionError, IndexError):
            assert not report.accepts.certain.holds(n=n), n
            assert not report.accepts.exact or not report.accepts.holds(n=n), n
        else:
            assert report.verdict != "refuted" and report.accepts.holds(n=n), n


def rows_of_a_convolution(x: Tensor) -> Tensor:
    rows = F.conv1d(x.expand(2, 1, -1), torch.ones(3, 1, 1))
    return torch.linalg.inv(rows[..., :3])


def square(x: Tensor) -> Tensor:
    """Returns a matrix that is regular for most data."""
    return torch.outer(x, x) + torch.diag(x.exp())


@pytest.mark.parametrize("target", [
    lambda x: torch.linalg.inv(x.expand(x.shape[0], -1)),
    lambda x: x.repeat(x.shape[0], 1).exp().inverse(),
    lambda x: torch.outer(x, x).inverse(), lambda x: torch.linalg.inv(x[:, None] @ x[None]),
    lambda x: torch.linalg.inv(x[:, None] * x[None] + 1),
    lambda x: torch.linalg.solve(x.expand(x.shape[0], -1).t(), x),
    lambda x: torch.linalg.cholesky(torch.outer(x, x) * 2),
    lambda x: torch.stack([x[:2], x[:2]]).inverse(), lambda x: torch.cat([x[None], x[None]])[:, :2].inverse(),
    lambda x: torch.diag(x).tril(-1).inverse(), lambda x: (torch.diag(x) - torch.diag(x)).inverse(),
    rows_of_a_convolution,
    lambda x: F.interpolate(torch.diag(x)[None, None], scale_factor=2)[0, 0].inverse(),
    lambda x: F.interpolate(torch.diag(x)[None, None], size=(7, 7), mode="bicubic")[0, 0].inverse(),
    lambda x: F.adaptive_avg_pool2d(torch.diag(x)[None], 7).inverse(),
    lambda x: F.pad(torch.diag(x), (1, 1, 1, 1)).inverse(),
    lambda x: F.linear(x[:, None], x[:, None]).inverse(),
    lambda x: torch.cdist(x[:1, None], x[:1, None]).inverse(),
    lambda x: (x[:1, None] - x[None, :1]).inverse(),
    lambda x: torch.where(x[:, None] > 0, x[:, None], x).inverse(),
    lambda x: torch.where(x > 0, x[:, None], x).inverse(),
    lambda x: torch.maximum(x[:, None], x[:1]).inverse(),
    lambda x: torch.addcmul(x, x[:, None], x).inverse(),
    lambda x: torch.copysign(x[:, None], x).inverse(),
    lambda x: x.masked_fill(x[:, None] > 0, 2.0).inverse(),
    lambda x: x.expand(len(x), -1).sin().inverse(),
    lambda x: x.expand(len(x), -1).clone().uniform_(len(x) - 5, len(x) - 5).inverse(),
    lambda x: x.expand(len(x), -1).clone().random_(len(x), len(x) + 1).inverse(),
    lambda x: x.expand(len(x), -1).reciprocal().hypot(x).inverse(),
    lambda x: (square(x) * torch.arange(len(x))).inverse(),
    lambda x: (square(x) * eye(len(x)).tril(-1)).inverse(),
    lambda x: (square(x) * (torch.arange(len(x)) > 0)[:, None]).inverse(),
    lambda x: torch.addcmul(torch.zeros(len(x), len(x)), square(x), torch.zeros(len(x))).inverse(),
    lambda x: square(x).index_fill(0, torch.tensor([0]), 0.0).inverse(),
    lambda x: square(x).scatter(0, torch.zeros(1, len(x)).long(), 0.0).inverse(),
    lambda x: square(x).select_scatter(torch.zeros(len(x)), 0, 0).inverse(),
    lambda x: square(x)[torch.arange(len(x)) // 2].inverse(),
    lambda x: square(x).index_select(0, torch.zeros(len(x)).long()).inverse(),
    lambda x: square(x).gather(0, torch.zeros(len(x), len(x)).long()).inverse(),
    lambda x: (lambda y: torch.cat([y[1:], y[-1:]]))(square(x)).inverse(),
    lambda x: F.linear(x[:, None], torch.ones(len(x), 1)).inverse(),
    lambda x: torch.einsum("i,j->ij", x, x).inverse(),
    lambda x: torch.linalg.tensorinv(x[:, None, None] * torch.ones(1, 1, len(x)), ind=1),
    lambda x: torch.linalg.tensorsolve(x[:, None] * torch.ones(1, len(x)), x),
    lambda x: torch.stack([x] * len(x)).inverse(),
])  # fmt: skip
def test_matrices_that_are_singular_whatever_the_data(target: Callable[[Tensor], object]) -> None:
    report = check(target, "x: [n]", "n >= 3", replay=False)
    for n in range(3, 6):
        assert not report.accepts.certain.holds(n=n), report.to_text()


@pytest.mark.parametrize("target", [
    lambda x: (x - x.mean(0)).inverse(), lambda x: (x - x.mean(1, keepdim=True)).inverse(),
    lambda x: torch.cov(x[:2].T).inverse(),
    lambda x: torch.einsum("ij,kj->ik", x, x[:, :1].expand(x.shape)).inverse(),
    lambda x: F.linear(x, torch.ones(x.shape)).inverse(),
    lambda x: torch.addmm(torch.zeros(x.shape), x[:, :1], x[:1]).inverse(),
    lambda x: torch.baddbmm(torch.zeros(1, *x.shape), x[None, :, :1], x[None, :1]).inverse(),
    lambda x: torch.tensordot(x[:, :1], x[:1], 1).inverse(), lambda x: (x - x.t()).triu().inverse(),
    lambda x: F.avg_pool1d(x, len(x)).expand(-1, len(x)).inverse(), lambda x: (x + x.flip(0)).inverse(),
    lambda x: x.cummax(0).values.amax(0, keepdim=True).repeat(len(x), 1).inverse(),
    lambda x: torch.stack([r - x[0] for r in x]).inverse(), lambda x: (-x.abs()).relu().inverse(),
    lambda x: (x @ x.t()).neg().relu().inverse(), lambda x: x.sigmoid().long().float().inverse(),
    lambda x: (x * 0).inverse(), lambda x: (1 ** x).inverse(), lambda x: x[[0] * 3].inverse(),
    lambda x: (x.softmax(0) - x.softmax(0)).inverse(), lambda x: torch.cholesky_inverse(x.triu(1)),
    lambda x: torch.linalg.cholesky(-(x @ x.mT) - torch.eye(len(x))),
    lambda x: torch.linalg.cholesky(-x.exp()), lambda x: torch.linalg.cholesky(x.abs().neg()),
    lambda x: torch.linalg.cholesky(-(x @ x.mT)),
    lambda x: torch.linalg.cholesky(x[:1] + x[:1].mT),
    lambda x: torch.linalg.cholesky(torch.eye(len(x)) * -2 + x @ x.mT * 0),
    lambda x: torch.linalg.cholesky_ex(-x @ x.mT, check_errors=True).L,
    lambda x: torch.linalg.inv_ex(x - x, check_errors=True)[0],
    lambda x: torch.linalg.solve_ex(x - x, x, check_errors=True)[0],
    lambda x: torch.linalg.lu_factor_ex(x - x, check_errors=True)[0],
    lambda x: torch.linalg.svdvals((-x.abs() - 1).sqrt()), lambda x: torch.linalg.svdvals((-x.exp()).log()),
    lambda x: torch.linalg.pinv(x * float("inf") - x * float("inf")),
    lambda x: torch.histc((-x.abs() - 1).sqrt(), 3), lambda x: torch.linalg.svdvals((x.exp() + 1.5).asin()),
])  # fmt: skip
def test_square_matrices_that_are_refused_whatever_the_data(target: Callable[[Tensor], object]) -> None:
    with pytest.raises(RuntimeError):
        target(torch.tensor([[4.0, -2.0, -2.0], [2.0, -4.0, 2.0], [0.0, 0.0, 6.0]]))  # eliminated exactly
    report = check(target, "x: float32[n, n]", "n >= 3", replay=False)
    assert not report.accepts.certain.holds(n=3), report.to_text()


@pytest.mark.parametrize("target", [
    lambda x: torch.linalg.pinv(x.std(0)), lambda x: torch.linalg.svdvals(x.var(0)),
    lambda x: torch.svd((x - x.mean(0)) / x.std(0))[1],
    lambda x: torch.linalg.cholesky(x.std(0) @ x.std(0).mT + eye(2)),
    lambda x: torch.linalg.matrix_rank(x.std(0)), lambda x: torch.linalg.svd(x[1:].mean(0))[1],
])  # fmt: skip
def test_matrices_of_no_numbers_are_refused(target: Callable[[Tensor], object]) -> None:
    """The deviation of a single number is NaN, and so is the mean of none."""
    with pytest.raises(RuntimeError):
        target(torch.rand(1, 2, 2))
    target(torch.rand(5, 2, 2) + torch.arange(5)[:, None, None] * eye(2))
    report = check(target, "x: [n, 2, 2]", "n >= 1", replay=False)
    assert report.verdict == "unknown" and not report.accepts.certain.holds(n=1)
    assert report.accepts.certain.holds(n=5)


@pytest.mark.parametrize("target, inputs", [
    (lambda x: x.inverse(), "x: [n, n]"), (lambda x: torch.linalg.inv(x.mT * 2 + 1), "x: [b, n, n]"),
    (lambda x: torch.linalg.inv(x.expand(4, -1, -1)), "x: [n, n]"),
    (lambda x: torch.linalg.inv(torch.diag(x)), "x: [n]"),
    (lambda x: torch.linalg.cholesky(x @ x.mT + 1e-3 * eye(x.shape[0])), "x: [n, m]"),
    (lambda x: torch.linalg.cholesky(x @ x.mT), "x: [n, n]"),
    (lambda x: torch.linalg.inv(torch.stack([x[0], x[1]])), "x: [2, 2]"),
    (lambda x: torch.linalg.solve(x + x.mT, x), "x: [n, n]"),
    (lambda x: torch.linalg.cholesky(x @ x.mT / x.shape[1] + 1e-3 * eye(x.shape[0])), "x: [n, m]"),
    (lambda x: torch.linalg.inv(x @ x.mT + eye(x.shape[0]) * x.shape[1]), "x: [n, m]"),
    (lambda x: torch.linalg.inv(eye(x.shape[0]) - x), "x: [n, n]"),
    (lambda x: torch.linalg.inv(x.exp().tanh().t()), "x: [n, n]"),
    (lambda x: torch.linalg.inv(torch.linalg.qr(x).Q), "x: [n, n]"),
    (lambda x: torch.linalg.inv(x.sort(0).values), "x: [n, n]"),
    (lambda x: torch.linalg.inv(torch.matrix_exp(x)), "x: [n, n]"),
    (lambda x: torch.linalg.inv(torch.zeros(x.shape).copy_(x)), "x: [n, n]"),
    (lambda x: torch.linalg.inv(torch.rand(x.shape[0], x.shape[0]) + x[:, :1]), "x: [n, m]"),
    (lambda x: torch.linalg.inv(x.view(x.shape[0], 2, -1).sum(1)), "x: [n, 2*n]"),
    (lambda x: torch.linalg.inv((x @ x.mT).tanh() * 2), "x: [n, n]"),
    (lambda x: torch.linalg.cholesky(x.sigmoid()), "x: [n, n]"),
    (lambda x: torch.linalg.inv_ex(x, check_errors=True)[0], "x: [n, n]"),
    (lambda x: torch.linalg.inv_ex(x - x, check_errors=False)[0], "x: [n, n]"),
    (lambda x: torch.linalg.svdvals((x / x.norm()) ** 2), "x: [n, m]"),
    (lambda x: torch.linalg.svdvals(F.relu(x).sqrt() / x.shape[0]), "x: [n, m]"),
    (lambda x: torch.histc(x.sigmoid().log(), 4), "x: [n, m]"),
])  # fmt: skip
def test_matrices_that_are_regular_for_some_data(target: Callable[[Tensor], object], inputs: str) -> None:
    assert check(target, inputs, replay=False).verdict == "proved"


@pytest.mark.parametrize("target", [
    lambda x: (x[0] @ x)[None, :1].inverse(), lambda x: F.linear(x[0], x)[None, :1].tanh().inverse(),
    lambda x: (x[0] + x[0].t())[None, :1].inverse(),
])  # fmt: skip
def test_a_row_made_of_a_vector_may_be_inverted(target: Callable[[Tensor], object]) -> None:
    report = check(target, "x: [n, n]", replay=False)
    assert "internal-error" not in report.to_text() and report.accepts.holds(n=3), report.to_text()


@pytest.mark.parametrize("matrix", [((1.0, 2.0), (2.0, 4.0)), ((-1.0, 0.0), (0.0, -1.0))])
def test_a_matrix_of_the_program_is_refused_at_all_sizes(matrix: tuple[tuple[float, ...], ...]) -> None:
    """No fake kernel looks at numbers, so that the run on fake tensors is no evidence."""
    report = check(lambda x: torch.linalg.cholesky(torch.tensor(matrix)) + x, "x: float32[n, m]")
    assert report.verdict == "refuted", report.to_text()


@pytest.mark.parametrize("target", [
    lambda x: x.clamp(max=0).relu().multinomial(1), lambda x: (-x.abs()).clamp(min=0).multinomial(1),
    lambda x: (x - x.amax()).relu().multinomial(1), lambda x: (x - x.abs()).relu().multinomial(1),
    lambda x: (x.sign().abs() - 1).multinomial(1), lambda x: (-x.exp()).multinomial(1),
    lambda x: (x - x).multinomial(1), lambda x: (x > x + 1).float().multinomial(1),
    lambda x: (x * 0 > 0).float().sort(0).values.multinomial(1),
    lambda x: (x.relu() * (x < 0)).multinomial(1), lambda x: torch.where(x > 0, 0.0, x).multinomial(1),
    lambda x: torch.poisson(x - x.max() - 1), lambda x: torch.poisson(x.tanh() - 2),
    lambda x: torch.bernoulli(x.softmax(0) + 1), lambda x: torch.bernoulli(1.5 - x.tanh() * 0.1),
    lambda x: torch.normal(0.0, -x.sum().exp().expand(3)), lambda x: torch.normal(x, x - x.max() - 1),
    lambda x: F.binary_cross_entropy(x - x.min() + 2, x), lambda x: F.binary_cross_entropy(x.exp() + 1.5, x),
    lambda x: torch.bincount(-x.exp().flatten().long() - 1),
])  # fmt: skip
def test_elements_that_are_valid_for_no_data(target: Callable[[Tensor], object]) -> None:
    for x in (torch.zeros(3, 2), torch.ones(3, 2), torch.arange(6.0).view(3, 2) - 3):
        with pytest.raises(RuntimeError):
            target(x)
    report = check(target, "x: [n, m]", "n >= 2", replay=False)
    assert not report.accepts.certain.holds(n=3, m=2), report.to_text()


@pytest.mark.parametrize("target", [
    lambda x: x.softmax(-1).multinomial(1), lambda x: (x.exp() / x.exp().sum(1, keepdim=True)).multinomial(1),
    lambda x: x.abs()[1:].multinomial(1), lambda x: x.multinomial(1),
    lambda x: x.softmax(1).mean(0).multinomial(1),
    lambda x: x.softmax(-1).sort(-1).values.multinomial(1),
    lambda x: torch.bernoulli(x.sigmoid()), lambda x: torch.bernoulli(x),
    lambda x: torch.poisson(F.relu(x) * 3), lambda x: torch.poisson(x.exp()), lambda x: torch.poisson(x),
    lambda x: torch.normal(x, (x * 0.5).exp()), lambda x: torch.normal(x, F.softplus(x) + 1e-3),
    lambda x: F.binary_cross_entropy(x.sigmoid(), x), lambda x: F.binary_cross_entropy(x, (x > 0).float()),
    lambda x: torch.bincount(x.long().flatten()), lambda x: torch.repeat_interleave(x, x[:, 0].long(), 0),
])  # fmt: skip
def test_elements_that_are_valid_for_some_data(target: Callable[[Tensor], object]) -> None:
    target(torch.rand(3, 2))
    report = check(target, "x: [n, m]", "m <= 100", replay=False)
    assert report.verdict == "proved" and report.accepts.exact, report.to_text()
