"""Which way conditions go, watched in the bytecode, against what the program itself writes down."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyshape.tracer.bytecode.conditions import watching
from anyshape.typecheck.targets.target import resolve

PROGRAM = """
def program(a, b):
    seen = []
    if a > 2:
        seen.append("more")
    if not a > 5 and (b == 1 or b == 3):
        seen.append("and")
    while a > 0:
        a -= 1
    c = a if b < 2 else b
    assert b < 9
    if b is None:
        seen.append("none")
    return [n for n in range(b) if n % 2]
"""


def watched(program: Callable[..., Any], *args: int) -> dict[str, list[bool]]:
    with watching() as runs:
        program(*args)
    return {text: truths for (_, text), truths in runs[0][1].truths.items()}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    path = tmp_path_factory.mktemp("watched") / "watched.py"
    path.write_text(PROGRAM)
    found: Callable[..., Any] = resolve(f"{path}:program", ["a", "b"]).value
    return found


@given(st.integers(0, 8), st.integers(0, 8))
@settings(max_examples=60)
def test_truths_are_what_python_takes_them_for(program: Callable[..., Any], a: int, b: int) -> None:
    expected = {
        "a > 2": [a > 2], "a > 5": [a > 5], "b < 2": [b < 2], "b < 9": [True],
        "b == 1": [b == 1] if a <= 5 else [], "b == 3": [b == 3] if a <= 5 and b != 1 else [],
        "n % 2": [bool(n % 2) for n in range(b)],
    }  # fmt: skip
    found = watched(program, a, b)
    loop = found.pop("a > 0")
    assert loop == [True] * a + [False] or loop == ([True] * a + [False])[: len(loop)]
    assert found == {text: truths for text, truths in expected.items() if truths}


def test_lines_and_files_are_told(program: Callable[..., Any]) -> None:
    with watching() as runs:
        program(3, 1)
    places = {text: origin for (origin, text) in runs[0][1].truths}
    assert places["a > 2"].line == 4 and Path(places["a > 2"].file).name == "watched.py"
    assert places["a > 2"].code[places["a > 2"].start : places["a > 2"].stop] == "a > 2"


def test_runs_are_kept_apart(program: Callable[..., Any]) -> None:
    def run(a: int) -> str:
        program(a, 1)
        return f"with {a}"

    with watching(run.__code__) as runs:
        run(1)
        run(7)
    assert [name for name, _ in runs] == ["with 1", "with 7"]
    first = [{text: t for (_, text), t in seen.truths.items()}["a > 2"] for _, seen in runs]
    assert first == [[False], [True]]


def test_what_raises_has_no_truth(tmp_path: Path) -> None:
    path = tmp_path / "raising.py"
    path.write_text("def program(a, b):\n    if a[b] > 1:\n        return 1\n")
    program = resolve(f"{path}:program", ["a", "b"]).value
    with pytest.raises(TypeError), watching() as runs:
        program(1, 2)
    assert not runs[0][1].truths
