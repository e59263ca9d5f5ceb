"""What is left of a program while a property of it stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.fuzz import failures
from benchmarks.fuzz.comparing import Wrong
from benchmarks.fuzz.failures import Failure
from benchmarks.fuzz.program import Program
from benchmarks.fuzz.shrinking import candidates, shrunk, weight

SOURCE = """\
def f(x, y):
    a, b = x.shape
    t1 = torch.arange(a + 7).flip(0)
    t2 = y * 2
    try:
        t3 = t1[:5] + 1
        if a > 3:
            t4 = t2.sum(0)
    except RuntimeError:
        t3 = t1
    t5 = torch.ones(100, 3)[t3]
    return t5
"""
PROGRAM = Program.of("p", SOURCE, "x: float32[a, b]; y: float32[b]", ("a >= 0",))


def smallest(*words: str) -> Program:
    def still(program: Program) -> bool:
        program.build()
        return all(word in program.source for word in words)

    return shrunk(PROGRAM, still)


def test_statements_blocks_and_inputs_go() -> None:
    left = smallest("arange")
    assert left.source.count("\n") <= 2 and "try" not in left.source and len(left.inputs) == 1
    assert left.assume == ()


def test_what_matters_stays() -> None:
    left = smallest("try", "t1[:", "except RuntimeError")
    assert "try" in left.source and "flip" not in left.source and "t4" not in left.source


def test_numbers_become_small() -> None:
    assert "100" not in smallest("ones(").source


def test_nothing_is_changed_where_nothing_may() -> None:
    assert shrunk(PROGRAM, lambda program: False) == PROGRAM


def test_candidates_parse() -> None:
    made = list(candidates(PROGRAM))
    assert len(made) > 50
    for candidate in made:
        compile(candidate.source, "candidate", "exec")
    assert any(weight(c) < weight(PROGRAM) for c in made)


@pytest.mark.parametrize("sizes, wrong", [({"a": 3}, True), ({"a": 2}, False)])
def test_a_failure_is_a_test(sizes: dict[str, int], wrong: bool, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program.of("contents 1/2", "def f(x):\n    return torch.ones(2)[len(x) - 1]\n", "x: float32[a]")
    failure = Failure(program, Wrong("proved-refused", sizes, 'proved: "True" \\', "IndexError: out"),
        "contents 1/2")
    file = failures.write(failure, tmp_path)
    names: dict[str, object] = {}
    exec(compile(file.read_text(), str(file), "exec"), names)
    assert names["PROGRAM"] == program and names["AT"] == sizes
    test = names["test_contents_1_2"]
    assert callable(test)
    test()
    if wrong:  # a checker that takes every size: then it fails
        real = failures.checked
        proved = real(Program.of("p", "def f(x):\n    return x\n", "x: float32[a]"), 10.0)
        monkeypatch.setattr(failures, "checked", lambda program, budget_s: proved)
        with pytest.raises(AssertionError):
            test()


def test_failures_are_grouped_by_cause() -> None:
    def failure(name: str, text: str) -> Failure:
        program = Program.of(name, f"def f(x):\n    {text}\n", "x: float32[a]")
        return Failure(program, Wrong("proved-refused", {"a": 1}, "proved", "IndexError"), name)

    three = [failure("a", "x.flip(0)"), failure("b", "x.sum()"), failure("c", "y = x.flip(1)")]
    groups = failures.grouped(three)
    assert [len(group) for group in groups.values()] == [2, 1]
    page = failures.page(three)
    assert "## proved-refused: flip (2)" in page and "programs: a, c" in page
