"""Reports on a terminal: the excerpt with its mark, columns, width, and what is suppressed."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from rendered import report

from anyshape.constraints.ir.program import Origin
from anyshape.typecheck import Finding, Severity
from anyshape.typecheck.render.text import excerpt, to_text
from anyshape.typecheck.report.codes import Code
from anyshape.typecheck.report.report import ConditionPart, Link, Repair

ONCE = "torch.cat([f(x), y])"
LINE = f"return g({ONCE}, {ONCE})"
SECOND = Origin("m.py", 3, code=LINE, start=LINE.rindex(ONCE), stop=LINE.rindex(ONCE) + len(ONCE))


def marked(origin: Origin, op: str, room: int = 100) -> str:
    line = excerpt(origin, op, room)
    return line.code[line.start : line.start + line.length]


def test_positions_tell_two_equal_calls_apart() -> None:
    assert excerpt(SECOND, "cat", 100).start == LINE.rindex(ONCE)
    assert excerpt(replace(SECOND, stop=0), "cat", 100).start == LINE.index(ONCE)  # as it looks
    assert marked(SECOND, "cat") == marked(replace(SECOND, stop=0), "cat") == ONCE


@pytest.mark.parametrize("room", range(24, 70))
def test_a_long_line_is_cut_around_its_mark(room: int) -> None:
    line = excerpt(SECOND, "cat", room)
    assert len(line.code) == min(room, len(LINE))
    shown = line.code[line.start : line.start + line.length]
    assert shown == ONCE or (shown == ONCE[: line.length - 1] + "…" and line.code.endswith(shown))
    assert line.code.startswith("…") == (room < len(LINE))


def test_marks_stand_below_wide_characters() -> None:
    code = 'print("形状"); y = f(x)'
    line = excerpt(Origin("m.py", 1, code=code, start=code.index("f(x)"), stop=len(code)), "f", 100)
    assert line.start == code.index("f(x)") + 2  # two characters of two columns


def test_the_real_excerpt() -> None:
    text = report("refined").to_text(verbose=True)
    assert "| return x.view(x.shape[0], 2, x.shape[1] // 2, 8)" in text
    marks = re.search(r"\n +\| {8}(\^+)\n", text)
    assert marks and len(marks[1]) == len("x.view(x.shape[0], 2, x.shape[1] // 2, 8)"), text


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_line_but_a_shape_or_a_place_is_wider(width: int) -> None:
    for name in ("refined", "refuted", "two-ways"):
        for line in to_text(report(name), width=width, shapes=False).splitlines():
            place = "test" in line or "rendered.py" in line or ".venv" in line
            assert len(line) <= width + 4 or place or "float32[" in line, line


def test_steps_stand_in_columns() -> None:
    lines = report("refuted").to_text(width=140, verbose=True).splitlines()
    steps = [line for line in lines if re.match(r" +(= after|then ) ", line)]
    assert steps
    assert len({line.index("float32[") for line in steps}) == 1


def test_what_is_suppressed_is_counted_only() -> None:
    told = Finding(Code.CONDITION, "told", Severity.WARNING)
    hushed = replace(told, message="hushed", suppressed="source")
    text = to_text(replace(report("proved"), findings=(told, hushed, hushed)))
    assert "told" in text
    assert "hushed" not in text
    assert "2 findings suppressed" in text


def test_a_finding_is_told_in_short_or_in_full() -> None:
    link = Link("relu", "float32[b, 6]", Origin("m.py", 2, code="y = x.relu()"), passed=True)
    made = replace(link, op="linear", passed=False, origin=Origin("m.py", 1, code="x = self.fc(x)"))
    part = ConditionPart("h % 2 == 0", (made,), {"h": 3})
    told = Finding(Code.CONDITION, "told", Severity.WARNING, chain=(made, link))
    refined = replace(report("refined"), findings=(told,), parts=(part,))
    short, full = to_text(refined), to_text(refined, verbose=True)
    assert "linear" not in short
    assert "after linear  float32[b, 6]  m.py:1  x = self.fc(x)" in full
    assert "(1 call that passes the sizes on)" in full and "relu" not in full
    assert "h % 2 == 0: imposed by m.py:1; refused at h=3" in full


def test_repairs_are_told_in_their_order() -> None:
    origin = Origin("m.py", 7, code="self.fc = nn.Linear(500, 10)", start=20, stop=23)
    first = Repair("change 500 to 512", origin, "500", "512")
    repairs = (first, Repair("declare x: float32[b, 500]", Origin()))
    told = Finding(Code.CONDITION, "told", Severity.WARNING, repairs=repairs)
    short = to_text(replace(report("proved"), findings=(told,)))
    assert "repair: change 500 to 512 at m.py:7\n" in short and "declare x" not in short
    text = to_text(replace(report("proved"), findings=(told,)), verbose=True)
    assert "= repair change 500 to 512 at m.py:7\n" in text
    assert "= or declare x: float32[b, 500]\n" in text
