"""A model on the meta device has no data: what it asks of its own tensors goes both ways."""

from __future__ import annotations

import torch

from anyshape.typecheck import check


class Masked(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mask", torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if (self.mask == 0).all():
            return x.view(2, -1)
        return x


def test_a_question_about_data_that_is_not_there_goes_both_ways() -> None:
    with torch.device("meta"):
        model = Masked()
    report = check(model, "x: float32[4, 4]")
    assert report.verdict == "proved"
    assert [(b.condition, b.outcome) for b in report.branches] == [("", "explored")]


def test_a_model_that_has_data_is_asked_for_them() -> None:
    report = check(Masked(), "x: float32[3, 3]")
    assert report.verdict == "proved" and not report.branches

