"""Inputs that nothing declares: a spec is found by trying, and it is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from anyshape.typecheck import TargetError, branches, check
from anyshape.typecheck.checking import guessing
from anyshape.typecheck.report.codes import Code
from anyshape.typecheck.report.report import Verdict


class LeNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.out = nn.Conv2d(1, 6, 5), nn.Linear(6, 10)

    def forward(self, x):  # type: ignore[no-untyped-def]
        return self.out(F.max_pool2d(self.conv(x), 2).mean((2, 3)))


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(784, 10), nn.ReLU(), nn.Linear(10, 3))

    def forward(self, x):  # type: ignore[no-untyped-def]
        return self.layers(x)


class Gpt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places, self.out = nn.Embedding(50, 8), nn.Embedding(16, 8), nn.Linear(8, 50)

    def forward(self, idx):  # type: ignore[no-untyped-def]
        _, t = idx.shape
        return self.out(self.tokens(idx) + self.places(torch.arange(t)))


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.rnn = nn.Embedding(50, 8), nn.LSTM(8, 6, batch_first=True)

    def forward(self, tokens, mask):  # type: ignore[no-untyped-def]
        return self.rnn(self.table(tokens))[0].masked_fill(~mask[..., None], 0)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, q, k, v):  # type: ignore[no-untyped-def]
        return self.attend(q, k, v)[0]


class Sound(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(2, 4, 3, padding=1)

    def forward(self, wave):  # type: ignore[no-untyped-def]
        return self.conv(wave)


def anything(x):  # type: ignore[no-untyped-def]
    return torch.relu(x)


def two(x, y):  # type: ignore[no-untyped-def]
    return x + y


def scaled(x, factor: float, n: int = 3):  # type: ignore[no-untyped-def]
    return x.view(-1, n) * factor


def loss(scores, labels):  # type: ignore[no-untyped-def]
    return F.cross_entropy(scores, labels)


SPECS: dict[Callable[..., Any], tuple[str, ...]] = {
    LeNet(): ("x: float32[b, 1, h, w]",),
    Mlp(): ("x: float32[b, 784]",),
    Gpt(): ("idx: int64[b, t]",),
    Tagger(): ("tokens: int64[b, t]", "mask: bool[b, t]"),
    Attention(): ("q: float32[b, t, 8]", "k: float32[b, t, 8]", "v: float32[b, t, 8]"),
    Sound(): ("wave: float32[b, 2, d]",),
    anything: ("x: float32[*x]",),
    two: ("x: float32[b, c, h, w]", "y: float32[b, c, h, w]"),
    scaled: ("x: float32[b, c, h, w]", "factor: float"),
}


@pytest.mark.parametrize("target", SPECS, ids=lambda t: getattr(t, "__name__", type(t).__name__))
def test_the_spec_that_is_found(target: Callable[..., Any]) -> None:
    report = check(target)
    assert report.inputs == SPECS[target]
    assert report.verdict in (Verdict.PROVED, Verdict.REFINED)
    (told,) = [finding for finding in report.findings if finding.code is Code.GUESSED]
    pasted = told.message.partition("--input ")[2].strip('"').split('" --input "')
    again = check(target, pasted)
    assert (again.verdict, str(again.accepts)) == (report.verdict, str(report.accepts))
    assert [one for one in report.findings if one is not told] == list(again.findings)


def test_classes_are_integers_where_there_are_scores() -> None:
    report = check(loss)
    assert report.verdict is not Verdict.UNKNOWN
    assert "labels: int64" in report.inputs[1] or "labels: float32" in report.inputs[1]


class WrongChannels(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 32, 3), nn.Conv2d(64, 64, 3)

    def forward(self, x):  # type: ignore[no-untyped-def]
        return self.second(self.first(x))


class WrongFeatures(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(128, 10))

    def forward(self, x):  # type: ignore[no-untyped-def]
        return self.layers(x)


class WrongWords(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.rnn = nn.Embedding(50, 8), nn.LSTM(16, 6, batch_first=True)

    def forward(self, words):  # type: ignore[no-untyped-def]
        return self.rnn(self.table(words))[0]


WRONG = {
    WrongChannels(): ("x: float32[b, 3, h, w]", "input has 32 channels, but float32[64, 64, 3, 3] takes 64"),
    WrongFeatures(): ("x: float32[b, 784]", "the last size of the input is 256, but the weight takes 128"),
    WrongWords(): ("words: int64[b, t]", "Expected 16, got 8"),
}
"""Models that run for no sizes: the spec with which they get furthest, and words of the first finding."""


@pytest.mark.parametrize("target", WRONG, ids=lambda t: type(t).__name__)
def test_a_model_that_runs_for_no_sizes_is_refuted_with_the_spec_that_gets_furthest(
    target: nn.Module,
) -> None:
    report = check(target)
    spec, words = WRONG[target]
    assert report.inputs == (spec,)
    assert report.verdict is Verdict.REFUTED
    assert words in report.findings[0].message
    assert Code.GUESSED in [finding.code for finding in report.findings]


def test_what_cannot_be_guessed() -> None:
    def odd(x, y):  # type: ignore[no-untyped-def]
        return x.no_such_method(y)

    with pytest.raises(TargetError) as caught:
        check(odd)
    told = str(caught.value)
    assert "no usual shape of x, y runs" in told
    assert "has no attribute 'no_such_method'" in told
    assert '--input "x: float32[b, c, h, w]" --input "y: float32[b, c, h, w]"' in told
    assert "no_such_method" in caught.value.origin.code


def test_the_tries_end(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[guessing.Lines] = []

    def failing(lines: guessing.Lines, seconds: float) -> Any:
        tried.append(lines)
        raise TargetError("no")

    names = [f"x{i}" for i in range(9)]
    with pytest.raises(TargetError):
        guessing.guessed(anything, names, failing)
    assert len(tried) == guessing.MOST == len({*tried})
    monkeypatch.setattr(guessing, "SECONDS", 0.0)
    with pytest.raises(TargetError):
        guessing.guessed(anything, ["x"], failing)
    assert len(tried) == guessing.MOST


def test_assumptions_are_about_the_names_that_are_found() -> None:
    assert str(check(Mlp(), assume="b <= 8").accepts.domain) == "1 <= b and b <= 8"
    with pytest.raises(ValueError, match="batch"):
        check(Mlp(), assume="batch <= 8")


def test_other_questions_find_it_too() -> None:
    class Branching(nn.Module):
        def forward(self, x):  # type: ignore[no-untyped-def]
            return x * 2 if x.shape[0] > 3 else x.view(x.shape[0], -1)

    assert len(branches(Branching())) == 1
