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
