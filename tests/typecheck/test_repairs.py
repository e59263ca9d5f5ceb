"""Repairs are what a person would change, proved before they are told, and leave the program as it was."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from jsonschema import Draft4Validator
from models.broken import BROKEN
from models.entry import Broken
from models.public import PUBLIC, Reported
from models.repairs import BETTER, FIRST, OTHER, SAME
from torch import nn

from anyshape.constraints.ir.program import Origin
from anyshape.constraints.ir.system import Domain
from anyshape.constraints.rules import default_rules
from anyshape.constraints.terms.formula_text import parse_formula
from anyshape.solver.backends.z3_backend import nearest
from anyshape.solver.repair import fillings
from anyshape.solver.tactics.judge import Judge
from anyshape.tracer.patches.edits import Assigned, CannotApply, Rebuilt, Rewritten, applied, arguments
from anyshape.typecheck import check
from anyshape.typecheck.checking.api import examine
from anyshape.typecheck.facade import Report
from anyshape.typecheck.render.sarif import to_sarif
from anyshape.typecheck.repairs import repaired, search
from anyshape.typecheck.replay.replay import Replayer, RunRefused
from anyshape.typecheck.report.report import Repair

SARIF = json.loads((Path(__file__).parent / "render/sarif-2.1.0-rtm.5.json").read_text())

SOURCE = """\
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 6, 3)
        self.fc = nn.Linear(500, 10)

    def forward(self, x):
        x = torch.relu(self.conv(x)).flatten(1)
        return self.fc(x)
"""


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found does not depend on how busy the machine is."""
    monkeypatch.setattr(search, "SECONDS", 60.0)
    monkeypatch.setattr(search, "SECONDS_EACH", 60.0)
    monkeypatch.setattr(search, "SECONDS_NATURAL", 60.0)


def first(report: Report, line: str) -> str:
    (finding, *_) = [f for f in report.findings if line in f.origin.code]
    return finding.repairs[0].message


def sampled(entries: Sequence[Broken | Reported]) -> list[Any]:
    """All of them, of which most are looked at by the slow tests alone."""
    return [
        pytest.param(entry, id=entry.name, marks=() if index % 4 == 0 else pytest.mark.slow)
        for index, entry in enumerate(entries)
    ]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("entry", sampled(BROKEN))
def test_the_first_repair(entry: Broken) -> None:
    report = check(entry.build(), entry.inputs, entry.assume, repairs=True)
    assert first(report, entry.line) == FIRST[entry.name]
    assert Report.from_json(report.to_json()) == report


@pytest.mark.parametrize("entry", sampled(PUBLIC))
def test_reported_mistakes(entry: Reported) -> None:
    """The line is the one that a person would point at, and the first repair the one that the table has."""
    report = check(entry.build(), entry.inputs, entry.assume, repairs=True)
    assert report.verdict in ("refined", "refuted")
    assert first(report, entry.line) == entry.repair


def test_repairs_compare_well_with_the_authors() -> None:
    assert {**SAME, **BETTER, **OTHER}.keys() == {entry.name for entry in BROKEN}
    kinds = [*(entry.kind for entry in PUBLIC), *["same"] * len(SAME), *["better"] * len(BETTER)]
    assert len(PUBLIC) >= 30
    assert len({entry.source for entry in PUBLIC}) == len(PUBLIC)
    assert sum(kind != "other" for kind in kinds) >= 0.9 * (len(PUBLIC) + len(BROKEN))


@pytest.mark.parametrize(
    "name", ["wrong_in_features", "missing_transpose", "hard_coded_batch", "lstm_batch_first"]
)
def test_the_program_is_left_as_it_was(name: str) -> None:
    entry = next(e for e in BROKEN if e.name == name)
    model = entry.build()
    code, shapes = type(model).forward.__code__, {k: v.shape for k, v in model.state_dict().items()}
    modules, before = [*map(id, model.modules())], dict(vars(model))
    check(model, entry.inputs, entry.assume, repairs=True)
    assert type(model).forward.__code__ is code
    assert {k: v.shape for k, v in model.state_dict().items()} == shapes
    assert [*map(id, model.modules())] == modules
    assert vars(model) == before


def test_the_repair_of_a_file_is_made_and_proved(tmp_path: Path) -> None:
    """The text that is told, put into the file, makes it right."""
    file = tmp_path / "net.py"
    file.write_text(SOURCE)
    inputs = "x: [b, 3, 8, 8]"
    report = check(f"{file}:Net", inputs, repairs=True)
    repair = report.findings[0].repairs[0]
    assert (repair.old, repair.new, repair.origin.line) == ("500", "216", 8)
    assert f"repair: change 500 to 216 (in_features of fc) at {file}:8" in report.to_text(width=300)
    (fix,) = to_sarif([report])["runs"][0]["results"][0]["fixes"]
    Draft4Validator(SARIF).validate(to_sarif([report]))
    (replacement,) = fix["artifactChanges"][0]["replacements"]
    assert replacement["insertedContent"] == {"text": "216"}
    assert replacement["deletedRegion"] == {"startLine": 8, "startColumn": 29, "endColumn": 32}
    file.write_text(made(repair, SOURCE))
    assert check(f"{file}:Net", inputs).verdict == "proved"


def made(repair: Repair, source: str) -> str:
    lines = source.splitlines(keepends=True)
    line, at = lines[repair.origin.line - 1], repair.origin.indent
    start, stop = at + repair.origin.start, at + repair.origin.stop
    assert line[start:stop] == repair.old
    lines[repair.origin.line - 1] = line[:start] + repair.new + line[stop:]
    return "".join(lines)


def test_what_does_not_run_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Should a proof be wrong, the replay stands before the user."""
    entry = BROKEN[0]
    found = examine(entry.build(), entry.inputs, entry.assume)
    monkeypatch.setattr(Replayer, "run", lambda *_: RunRefused("", "", "", Origin()))
    report = repaired(found.report, found.target.value, found.spec, found.system, default_rules)
    assert not any(f.repairs for f in report.findings)


def test_what_is_not_proved_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever numbers are proposed, only those that are right get through."""
    monkeypatch.setattr(search, "fillings", lambda *_: iter([{"open_number_a": n} for n in (300, 255)]))
    report = check(BROKEN[0].build(), BROKEN[0].inputs, repairs=True)
    told = [r.message for f in report.findings for r in f.repairs]
    assert not any("in_features of fc1" in message for message in told)


def test_the_declaration_may_be_what_is_wrong() -> None:
    """The program takes images of 28, and 32 are declared; or 8 * 7 * 7 should be 512."""
    entry = next(e for e in PUBLIC if e.name == "face_embedding")
    report = check(entry.build(), entry.inputs, repairs=True)
    told = [repair.message for repair in report.findings[0].repairs]
    assert told[-1] == "declare face: float32[b, 3, 28, 28], if that is what comes"


def test_a_right_program_gets_no_repairs() -> None:
    report = check(nn.Linear(4, 2), "input: [b, 4]", repairs=True)
    assert (report.verdict, report.findings) == ("proved", ())


def test_a_repair_of_one_finding_leaves_others() -> None:
    class Two(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(5, 4), nn.Linear(6, 2)

        def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
            first = self.a(x)
            second = self.b(y)
            return first.sum() + second.sum()

    report = check(Two(), "x: [b, 7]; y: [b, 3]", repairs=True)
    assert [f.repairs[0].message for f in report.findings] == [
        "change 5 to 7 (in_features of a)", "change 6 to 3 (in_features of b)",
    ]  # fmt: skip


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wide, self.narrow = nn.Linear(8, 16), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.narrow(torch.relu(self.wide(x)))


def test_what_one_line_has_built_is_changed_together() -> None:
    model = nn.Sequential(Block(), Block(), Block())
    (finding,) = check(model, "input: [b, 8]", repairs=True).findings
    (repair, *_) = finding.repairs
    assert repair.message == "change 8 to 16 (in_features of 0.narrow and 2 like it)"
    assert repair.origin.code == "self.wide, self.narrow = nn.Linear(8, 16), nn.Linear(8, 8)"
    assert repair.origin.start == repair.origin.code.rindex("Linear(8") + len("Linear(")


class Enlarged(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Upsample(scale_factor=3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.up(nn.functional.max_pool2d(x, 2))


def test_a_scale_factor() -> None:
    report = check(Enlarged(), "x: [b, 3, 2*h, 2*w]", repairs=True)
    assert report.verdict == "refuted"
    for finding in report.findings:
        assert finding.repairs[0].message == "change 3 to 2 (scale_factor of up)"


# ---- which numbers


def values(needs: str, holes: dict[str, int], assume: str = "1 <= b") -> list[dict[str, int]]:
    domain = Domain(("b",), (parse_formula(assume),))
    found = fillings([parse_formula(needs)], domain, holes, Judge())
    return [value for _, value in zip(range(2), found, strict=False)]


@pytest.mark.parametrize(
    "needs, holes, expected",
    [
        ("16*b == k*b", {"k": 20}, [{"k": 16}]),
        ("k == b", {"k": 2}, []),  # no number is right for every b
        ("k >= b", {"k": 2}, []),
        ("(k*b) % 6 == 0", {"k": 10}, [{"k": 12}]),
        ("j*k*b == 120*b", {"j": 7, "k": 16}, [{"j": 8, "k": 15}]),
        ("j + k == 10", {"j": 4, "k": 5}, [{"j": 4, "k": 6}]),  # one of two suffices
    ],
)
def test_the_smallest_change(needs: str, holes: dict[str, int], expected: list[dict[str, int]]) -> None:
    assert values(needs, holes)[: len(expected) or 1] == expected


def test_the_domain_counts() -> None:
    assert values("k >= b", {"k": 2}, "1 <= b and b <= 9")[0] == {"k": 9}


def test_nothing_satisfies_a_contradiction() -> None:
    assert nearest([parse_formula("k == 3"), parse_formula("k == 4")], {"k": 3}, 10**6) is None


# ---- changes


def test_arguments_build_the_same_module_again() -> None:
    modules = [
        nn.Linear(3, 4, bias=False), nn.Conv2d(4, 6, 3, stride=2, groups=2), nn.ConvTranspose1d(2, 3, 4),
        nn.LSTM(3, 4, 2, bidirectional=True), nn.GRU(3, 4), nn.BatchNorm2d(5), nn.LayerNorm((3, 4)),
        nn.GroupNorm(2, 4), nn.Embedding(10, 3), nn.MultiheadAttention(8, 2, kdim=4, bias=False),
        nn.Flatten(), nn.Upsample(scale_factor=2), nn.MaxPool2d(2, ceil_mode=True), nn.PixelShuffle(2),
    ]  # fmt: skip
    for module in modules:
        given = arguments(module)
        assert given is not None, module
        again = type(module)(**given)
        shapes = {k: v.shape for k, v in module.state_dict().items()}
        assert {k: v.shape for k, v in again.state_dict().items()} == shapes
        assert repr(again) == repr(module)
    assert arguments(nn.Sequential()) is None


def test_changes_are_in_force_and_taken_back() -> None:
    model = next(e for e in BROKEN if e.name == "groups_do_not_divide").build()
    with applied(model, Assigned("", "groups", 4)):
        assert model.groups == 4
    assert model.groups == 3
    with applied(model, Rebuilt("conv", "out_channels", 9)):
        assert model.conv(torch.zeros(1, 3, 2, 2)).shape[1] == 9
    assert model.conv.out_channels == 8
    with pytest.raises(CannotApply), applied(model, Rebuilt("conv", "in_features", 9)):
        pass


def test_a_text_that_does_not_parse_is_not_applied() -> None:
    model = BROKEN[0].build()
    code = type(model).forward.__code__
    file, start = code.co_filename, Path(code.co_filename).read_text().index("F.max_pool2d")
    edit = Rewritten(file, code.co_qualname, start, start + 1, "(")
    with pytest.raises(CannotApply), applied(model, edit):
        pass
    assert type(model).forward.__code__ is code


def asserted(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    torch._assert(x.shape[0] >= 2, f"at least two, not {x.shape[0]}")
    return x * y


def test_texts_that_are_tried_warn_of_nothing(recwarn: pytest.WarningsRecorder) -> None:
    """Some are nonsense, such as an index of a message; nobody has written them."""
    assert check(asserted, "x: [a, b]; y: [a, c]", repairs=True).verdict == "refined"
    assert [w.category for w in recwarn if w.category is SyntaxWarning] == []
