"""Dtypes that a spec leaves out, and declared dtypes that a program refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from anyshape.typecheck import Code, Verdict, check
from anyshape.typecheck.checking import dtypes
from anyshape.typecheck.report.codes import Severity


class Gpt(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places, self.out = nn.Embedding(50, 8), nn.Embedding(16, 8), nn.Linear(8, 50)

    def forward(self, idx, targets=None):  # type: ignore[no-untyped-def]
        _, t = idx.shape
        assert t <= 16, "too long"
        scores = self.out(self.tokens(idx) + self.places(torch.arange(t)))
        return scores if targets is None else F.cross_entropy(scores.flatten(0, 1), targets.flatten())


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table, self.rnn = nn.Embedding(50, 8), nn.LSTM(8, 6, batch_first=True)

    def forward(self, tokens, mask):  # type: ignore[no-untyped-def]
        return self.rnn(self.table(tokens))[0].masked_fill(~mask[..., None], 0)


class Strict(nn.Module):
    def forward(self, x):  # type: ignore[no-untyped-def]
        if x.dtype != torch.int64:
            raise TypeError("expected int64")
        return x + 1


class Broken(nn.Module):
    """Its own error is about a dtype, and no input causes it."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.out = nn.Embedding(9, 4), nn.Linear(4, 2)

    def forward(self, idx):  # type: ignore[no-untyped-def]
        return self.out(self.table(idx).long())


def both(a, b):  # type: ignore[no-untyped-def]
    return a & b


def picked(x, index):  # type: ignore[no-untyped-def]
    return x.gather(1, index)


def chosen(batch):  # type: ignore[no-untyped-def]
    return torch.where(batch["mask"], batch["x"], 0)


def idle(idx):  # type: ignore[no-untyped-def]
    return idx + 1


CHOSEN: dict[str, tuple[Any, str, tuple[str, ...]]] = {
    "embedding": (Gpt(), "idx: [b, t]", ("idx: int64[b, t]",)),
    "targets": (
        Gpt(), "idx: [b, t]; targets: [b, t]", ("idx: int64[b, t]", "targets: int64[b, t]")
    ),
    "mask": (Tagger(), "tokens: [b, t]; mask: [b, t]", ("tokens: int64[b, t]", "mask: bool[b, t]")),
    "index": (picked, "x: [b, t]; index: [b, t]", ("x: float32[b, t]", "index: int64[b, t]")),
    "in a dict": (
        chosen, 'batch["mask"]: [b, t]; batch["x"]: [b, t]',
        ('batch["mask"]: bool[b, t]', 'batch["x"]: float32[b, t]'),
    ),
    "two at once": (both, "a: [n]; b: [n]", ("a: int64[n]", "b: int64[n]")),
    "what is declared stays": (both, "a: bool[n]; b: [n]", ("a: bool[n]", "b: int64[n]")),
    "where it does not matter": (idle, "idx: [b]", ("idx: float32[b]",)),
    "weights of float64": (nn.Linear(3, 4).double(), "input: [b, 3]", ("input: float64[b, 3]",)),
    "weights of bfloat16": (nn.Linear(3, 4).bfloat16(), "input: [b, 3]", ("input: bfloat16[b, 3]",)),
    "an error of the program's": (Strict(), "x: [b]", ("x: int64[b]",)),
}  # fmt: skip


@pytest.mark.parametrize("case", CHOSEN)
def test_a_dtype_that_is_left_out_is_what_the_program_needs(case: str) -> None:
    target, spec, inputs = CHOSEN[case]
    report = check(target, spec)
    assert report.inputs == inputs
    assert report.verdict in (Verdict.PROVED, Verdict.REFINED)
    told = [finding.message for finding in report.findings if finding.code is Code.GUESSED]
    changed = [line for line, given in zip(inputs, spec.split("; "), strict=True) if line != given]
    changed = [line for line in changed if ": float32" not in line]
    assert len(told) == bool(changed)
    assert all(f'"{line}"' in told[0] or f"'{line}'" in told[0] for line in changed)


WRONG: dict[str, tuple[Any, str, str, str]] = {
    "embedding": (Gpt(), "idx: float32[b, t]", "idx should be int64: ", "idx: int64[b, t]"),
    "bytes": (Gpt(), "idx: uint8[b, t]", "idx should be int64: ", "idx: int64[b, t]"),
    "two": (
        Tagger(), "tokens: float32[b, t]; mask: int64[b, t]",
        "tokens should be int64 and mask should be bool: ", "tokens: int64[b, t]; mask: bool[b, t]",
    ),
    "integers": (nn.Linear(3, 4), "input: int64[b, 3]", "input should be float32: ", "input: float32[b, 3]"),
    "halves": (nn.Conv1d(3, 4, 1), "input: float16[b, 3, t]", "input should be float32: ", "input: float32["),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_dtype_is_the_one_error_and_its_repair_is_checked(case: str) -> None:
    target, spec, message, line = WRONG[case]
    report = check(target, spec, repairs=True)
    assert report.verdict is Verdict.REFUTED
    first, *others = report.findings
    assert (first.code, first.message.startswith(message)) == (Code.DTYPE, True)
    assert first.origin.line
    assert not [finding for finding in others if finding.severity is Severity.ERROR]
    (repair,) = first.repairs
    assert repair.message.startswith(f"declare {line}")
    declared = repair.message.removeprefix("declare ").partition(", with which ")[0]
    repaired = check(target, declared)
    assert repaired.verdict in (Verdict.PROVED, Verdict.REFINED)
    proved = repaired.verdict is Verdict.PROVED
    assert ("with which" not in repair.message) if proved else (str(repaired.accepts) in repair.message)


def test_what_else_is_wrong_is_said() -> None:
    report = check(nn.Linear(3, 4), "input: int64[b, 5]")
    assert report.findings[0].code is Code.DTYPE
    assert "another reason is left" in report.findings[0].repairs[0].message


def test_no_input_is_blamed_for_an_error_of_the_programs() -> None:
    report = check(Broken(), "idx: [b]")
    assert (report.verdict, report.inputs) == (Verdict.REFUTED, ("idx: int64[b]",))
    assert Code.DTYPE not in [finding.code for finding in report.findings]
    assert Broken.forward.__code__.co_firstlineno + 1 == report.findings[0].origin.line


def test_sizes_are_not_taken_for_dtypes() -> None:
    report = check(nn.Linear(8, 4), "input: float32[b, 16]")
    assert report.findings[0].code is Code.SHAPE_MISMATCH


def test_a_trace_has_its_dtypes(tmp_path: Path) -> None:
    program = torch.export.export(
        nn.Embedding(9, 4), (torch.zeros(2, 3, dtype=torch.int64),),
        dynamic_shapes=({0: torch.export.Dim("b")},),
    )  # fmt: skip
    torch.export.save(program, tmp_path / "table.pt2")
    for target in (program, str(tmp_path / "table.pt2")):
        assert check(target, "input: [b, 3]").inputs == ("input: int64[b, 3]",)


@pytest.mark.parametrize(
    ("reason", "is_about_dtypes"),
    [
        ("indices are int64 or int32 here, not float32", True),
        ("bitwise_not does not take float32 on cpu", True),
        ("the operands of a product must have one dtype, not float32 and int64", True),
        ("RuntimeError: expected scalar type Long but found Float", True),
        ("input has 16 channels, but float32[8, 32, 1, 1] takes 32", False),
        ("the mask must have rank 2, not float32[b]", False),
        ("randperm takes n up to 2048 for float16, not n", False),
    ],
)
def test_which_reasons_are_about_dtypes(reason: str, is_about_dtypes: bool) -> None:
    assert bool(dtypes._ABOUT_DTYPES.search(reason)) is is_about_dtypes


def test_the_tries_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dtypes, "MOST", 0)
    report = check(Gpt(), "idx: [b, t]")
    assert (report.verdict, report.inputs) == (Verdict.REFUTED, ("idx: float32[b, t]",))


def ended(function: Callable[..., Any], inputs: str) -> list[str]:
    return [finding.code.value for finding in check(function, inputs).findings]


def test_a_program_that_runs_is_left_alone() -> None:
    assert ended(idle, "idx: float16[b]") == []
