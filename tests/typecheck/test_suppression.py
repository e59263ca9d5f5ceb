"""Suppressions: comments, `pyproject.toml`, baselines; and those that suppress nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from anyshape.constraints.ir.program import Origin
from anyshape.typecheck import Accepts, Code, Finding, Report, Severity, Shape, Verdict
from anyshape.typecheck.project.baseline import Baseline
from anyshape.typecheck.project.baseline import read as read_baseline
from anyshape.typecheck.project.config import ConfigError, Project
from anyshape.typecheck.project.suppression import suppressed

SOURCE = '''\
text = "# anyshape: ignore"


def several(x):
    y = x.view(  # anyshape: ignore[condition]
        -1,
        2,
    )
    return y


def one(x):
    return x.view(-1, 2)  # noqa # anyshape: ignore


def two(x):
    x = x.view(-1, 2)  # anyshape:ignore[raises, condition]
    for _ in range(3):  # anyshape: ignore[condition]
        x = x.view(-1, 2)
    return "# anyshape: ignore", x


def misspelt(x):
    return x  # anyshape: ignore[conditon]


def never_called(x):
    return x  # anyshape: ignore
'''


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(SOURCE)
    return path


def line_of(part: str) -> int:
    return next(n for n, line in enumerate(SOURCE.splitlines(), 1) if part in line)


def report(
    source: Path, *places: tuple[Code, int], visited: tuple[int, ...] = (), name: str = "m:f"
) -> Report:
    """With a finding of a code at each line, and calls at the other lines."""
    lines = SOURCE.splitlines()
    findings = tuple(
        Finding(code, "told", code.severity, Origin(str(source), n, "f", code=lines[n - 1].strip()))
        for code, n in places
    )
    shapes = tuple(Shape(i, "view", (), Origin(str(source), line)) for i, line in enumerate(visited))
    return Report(name, (), Verdict.REFINED, Accepts(True, True, ()), {}, findings, shapes)


def by(reports: list[Report]) -> list[str]:
    return [f.suppressed for r in reports for f in r.findings if f.code is not Code.UNUSED_SUPPRESSION]


def idle(reports: list[Report]) -> list[tuple[int, str]]:
    return [
        (f.origin.line, f.message.partition(":")[0])
        for r in reports for f in r.findings if f.code is Code.UNUSED_SUPPRESSION
    ]  # fmt: skip


# the line of the finding, its code, whether a comment suppresses it
COMMENTS = [
    (5, Code.CONDITION, True),
    (6, Code.CONDITION, True),  # another line of the statement
    (7, Code.CONDITION, True),
    (9, Code.CONDITION, False),
    (5, Code.RAISES, False),
    (13, Code.RAISES, True),  # of all codes
    (13, Code.APPROXIMATE, True),
    (17, Code.RAISES, True),
    (17, Code.CONDITION, True),
    (17, Code.NO_RULE, False),
    (18, Code.CONDITION, True),
    (19, Code.CONDITION, False),  # the head of the loop has the comment
    (1, Code.CONDITION, False),  # a text, no comment
    (20, Code.CONDITION, False),
]


@pytest.mark.parametrize("line, code, known", COMMENTS)
def test_comments(source: Path, line: int, code: Code, known: bool) -> None:
    marked = suppressed([report(source, (code, line))], all=False)
    assert by(marked) == ["source" if known else ""]
    assert marked[0].passes is known


@pytest.mark.parametrize("file", ["", "/nowhere/model.py"])
def test_findings_without_a_source(file: str) -> None:
    found = Finding(Code.CONDITION, "told", Severity.WARNING, Origin(file, 3))
    one = Report("m", (), Verdict.REFINED, Accepts(True, True, ()), {}, (found,))
    assert suppressed([one], all=True) == [one]


@pytest.mark.parametrize("content", [
    b"def f(x:  # anyshape: ignore\n", b"# anyshape: ignore\n\xff\xfe", b"# anyshape: ignore\nx = '''",
])  # fmt: skip
def test_sources_that_do_not_parse(source: Path, content: bytes) -> None:
    one = report(source, (Code.CONDITION, 1))
    source.write_bytes(content)
    assert by(suppressed([one], all=True)) == [""]


def test_idle_comments_in_what_was_looked_at(source: Path) -> None:
    assert idle(suppressed([report(source, visited=(6, 13))], all=True)) == [
        (5, "condition is not found here"), (13, "nothing is found here"),
    ]  # fmt: skip
    assert idle(suppressed([report(source, visited=(6, 13))], all=False)) == []
    assert idle(suppressed([report(source, (Code.CONDITION, 6), visited=(13,))], all=True)) == [
        (13, "nothing is found here")
    ]
    used = report(source, (Code.CONDITION, 17))
    assert idle(suppressed([used], all=True)) == [
        (17, "raises is not found here"), (18, "condition is not found here"),
    ]  # fmt: skip


def test_another_target_may_need_the_comment(source: Path) -> None:
    first, second = report(source, visited=(13,)), report(source, (Code.RAISES, 13), name="m:g")
    assert idle(suppressed([first, second], all=True)) == []


def test_what_was_not_looked_at_to_the_end_may_need_it(source: Path) -> None:
    unknown = replace(report(source, visited=(13,)), verdict=Verdict.UNKNOWN)
    assert idle(suppressed([unknown, report(source, visited=(13,), name="m:g")], all=True)) == []


def test_misspelt_codes(source: Path) -> None:
    (found,) = idle(suppressed([report(source, visited=(line_of("[conditon]"),))], all=True))
    assert found == (line_of("[conditon]"), "'conditon' is not a code of findings, did you mean 'condition'")


def test_an_idle_comment_is_marked_in_its_line(source: Path) -> None:
    (marked,) = suppressed([report(source, visited=(13,))], all=True)
    origin = marked.findings[-1].origin
    assert origin.code[origin.start : origin.stop] == "# anyshape: ignore"


def test_an_idle_suppression_counts_for_nothing(source: Path) -> None:
    proved = replace(report(source, visited=(13,)), verdict=Verdict.PROVED)
    (marked,) = suppressed([proved], all=True)
    assert len(idle([marked])) == 1
    assert marked.passes
    known = report(source, (Code.CONDITION, 5), visited=(13,))
    assert suppressed([known], all=True)[0].passes


# ---- pyproject.toml


def test_codes_of_the_project(source: Path, tmp_path: Path) -> None:
    project = Project(tmp_path, ignore={Code.CONDITION: 3, Code.NO_RULE: 4})
    one = report(source, (Code.CONDITION, 9), (Code.RAISES, 9))
    marked = suppressed([one], project, all=True)
    assert by(marked) == ["project", ""]
    assert idle(marked)[1:] == [(4, "there is no finding no-rule")]
    assert marked[0].findings[-1].origin.file == str(tmp_path / "pyproject.toml")
    assert idle(suppressed([one], project, all=False)) == []


# ---- baselines


@pytest.fixture
def baseline(source: Path) -> Path:
    """With two findings of one line and one of another."""
    path = source.parent / "known.json"
    found = report(source, (Code.CONDITION, 9), (Code.CONDITION, 9), (Code.RAISES, 19))
    Baseline(path).renewed([found]).write()
    return path


def test_a_baseline_knows_what_was_there_before(source: Path, baseline: Path) -> None:
    one = report(source, (Code.CONDITION, 9), (Code.CONDITION, 9), (Code.CONDITION, 9), (Code.RAISES, 9))
    marked = suppressed([one], baseline=read_baseline(baseline), all=True)
    assert by(marked) == ["baseline", "baseline", "", ""]
    assert idle(marked)[1:] == [(0, "raises at model.py")]


def test_it_knows_them_after_lines_were_added_above(source: Path, baseline: Path) -> None:
    one = report(source, (Code.CONDITION, 9), (Code.RAISES, 19))
    moved = replace(one, findings=tuple(replace(f, origin=replace(f.origin, line=90)) for f in one.findings))
    assert by(suppressed([moved], baseline=read_baseline(baseline), all=True)) == ["baseline", "baseline"]


def test_it_knows_them_wherever_the_project_lies(source: Path, baseline: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    moved = elsewhere / source.name
    moved.write_text(SOURCE)
    (elsewhere / baseline.name).write_text(baseline.read_text())
    one = report(moved, (Code.CONDITION, 9))
    assert by(suppressed([one], baseline=read_baseline(elsewhere / baseline.name), all=True)) == ["baseline"]


def test_other_targets_are_left_as_they_are(source: Path, baseline: Path) -> None:
    other = report(source, name="m:other")
    assert idle(suppressed([other], baseline=read_baseline(baseline), all=True)) == []
    renewed = read_baseline(baseline).renewed([other])
    assert renewed.left.total() == 3
    assert read_baseline(baseline).renewed([report(source)]).left.total() == 0


def test_what_is_not_to_be_kept(source: Path) -> None:
    found = report(source, (Code.CONDITION, 9), (Code.CHANGED_STATE, 9), (Code.CONDITION, 5), visited=(13,))
    renewed = Baseline(source.parent / "b.json").renewed(suppressed([found], all=True))
    assert [key.line for key in renewed.left] == ["return y"]


def test_a_baseline_is_stable_text(source: Path, baseline: Path) -> None:
    data = json.loads(baseline.read_text())
    assert data["form"] == 1
    assert [(one["code"], one["file"], one["count"]) for one in data["findings"]] == [
        ("condition", "model.py", 2), ("raises", "model.py", 1),
    ]  # fmt: skip
    before = baseline.read_text()
    read_baseline(baseline).write()
    assert baseline.read_text() == before


@pytest.mark.parametrize("text", [
    "", "nonsense", "[]", "{}", '{"form": 2, "findings": []}', '{"form": 1, "findings": [3]}',
    '{"form": 1, "findings": [{"target": "a"}]}',
    '{"form": 1, "findings": [{"target": 1, "code": "", "file": "", "function": "", "line": "", "count": 1}]}'
])  # fmt: skip
def test_what_is_no_baseline(tmp_path: Path, text: str) -> None:
    path = tmp_path / "b.json"
    path.write_text(text)
    with pytest.raises(ConfigError) as raised:
        read_baseline(path)
    assert "b.json" in raised.value.problem
    assert "--write-baseline" in raised.value.hint


def test_a_missing_baseline(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_baseline(tmp_path / "none.json")
    with pytest.raises(ConfigError, match="cannot be written"):
        Baseline(tmp_path / "no/such/folder.json").write()
