"""Reports on a terminal: the excerpt with its mark, columns, width, and what is suppressed."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from rendered import report

from anyshape.constraints.program import Origin
from anyshape.typecheck import Finding, Severity
from anyshape.typecheck.codes import Code
from anyshape.typecheck.render.text import excerpt, to_text

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
    text = report("refined").to_text()
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
    lines = report("refuted").to_text(width=140).splitlines()
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
