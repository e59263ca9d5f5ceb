"""Dumped systems: another solver, which reads the SMT-LIB file, has to find the same verdict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import cvc5
import pytest
import torch
import z3
from hypothesis import given, settings
from hypothesis import strategies as st

from anyshape.constraints.ir.language import Constraint
from anyshape.constraints.ir.program import Program
from anyshape.constraints.ir.system import Domain, System
from anyshape.constraints.ir.system import Path as Way
from anyshape.constraints.terms.dims import Dim, evaluate, maximum, minimum, rounded, square_root, sym
from anyshape.constraints.terms.formula import Compare, compare, holds
from anyshape.solver.smtlib import VERDICTS, as_smt2, as_text
from anyshape.typecheck import check
from anyshape.typecheck.cli.dumping import dump
from anyshape.typecheck.cli.main import main
from anyshape.typecheck.targets.target_error import TargetError


def by_cvc5(text: str) -> tuple[str, ...]:
    """The answers of cvc5 to the questions of a file."""
    solver = cvc5.Solver()
    solver.setOption("incremental", "true")
    solver.setOption("tlimit-per", "20000")
    parser = cvc5.InputParser(solver)
    parser.setStringInput(cvc5.InputLanguage.SMT_LIB_2_6, text, "dumped")
    symbols, answers = parser.getSymbolManager(), []
    while not (command := parser.nextCommand()).isNull():
        said = str(command.invoke(solver, symbols)).strip()
        assert "error" not in said, said
        answers += [said] if said else []
    return tuple(answers)


def by_z3(text: str) -> tuple[str, ...]:
    """The same by Z3, which reads the text as well."""
    answers = []
    declared, *questions = text.split("(push 1)")
    for question in questions:
        solver = z3.Solver()
        solver.from_string(declared + question.split("(check-sat)")[0])
        answers.append(str(solver.check()))
    return tuple(answers)


def pooled(x: torch.Tensor) -> torch.Tensor:
    x = torch.nn.functional.max_pool2d(x, 3, 2, ceil_mode=True)
    return x.view(x.shape[0], -1, 4)


def branching(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.shape[0] > 3:
        return x @ y
    if x.shape[1] % 2 == 0:
        raise ValueError
    return x + y


def squares(x: torch.Tensor) -> torch.Tensor:
    n = int(x.shape[0] ** 0.5)
    return x.view(n, n)


PROGRAMS: list[tuple[Callable[..., Any], str, str, str]] = [
    (torch.relu, "input: [b, h]", "", "proved"),
    (torch.nn.Linear(8, 4), "input: [b, c]", "", "refined"),
    (torch.nn.Linear(8, 4), "input: [b, 2*c + 1]", "", "refuted"),
    (torch.nn.Linear(8, 4), "input: [...]", "", "refined"),
    (pooled, "x: [b, 2, h, w]", "h <= 40 and w <= 40", "refined"),
    (branching, "x: [a, b]; y: [c, d]", "", "refined"),
    (branching, "x: [a, 2*b]; y: [c, d]", "a <= 3", "refuted"),
    (squares, "x: [n]", "n <= 100", "refined"),
    (lambda x, y: x.view(y.shape[0], -1), "x: [a]; y: [b]", "a <= 60 and b <= 20", "refined"),
]


@pytest.mark.parametrize("target, inputs, assume, verdict", PROGRAMS)
def test_other_solvers_find_the_verdict(
    target: Callable[..., Any], inputs: str, assume: str, verdict: str
) -> None:
    assert check(target, inputs, assume).verdict == verdict
    text = dump(target, inputs, assume, "smt2")
    assert VERDICTS[by_cvc5(text)] == verdict  # type: ignore[index]
    assert VERDICTS[by_z3(text)] == verdict  # type: ignore[index]


def test_a_requirement_that_is_left_out_is_noticed() -> None:
    text = dump(torch.nn.Linear(8, 4), "input: [b, c]", "", "smt2")
    (needed,) = [line for line in text.splitlines() if "features" in line]
    assert VERDICTS[by_cvc5(text.replace(needed, "").replace("(not (= (+ c (- 8)) 0))", ""))] == "proved"  # type: ignore[index]


b, h = sym("b"), sym("h")
leaf = st.sampled_from([b, h, 1, 2, 3, -2])


def _joined(part: st.SearchStrategy[Dim]) -> st.SearchStrategy[Dim]:
    two = st.tuples(part, part)
    return st.one_of(
        two.map(lambda p: p[0] + p[1]), two.map(lambda p: p[0] * p[1]), two.map(lambda p: minimum(*p)),
        two.map(lambda p: maximum(*p)), part.map(square_root), part.map(lambda p: rounded(p, 2)),
        st.tuples(part, st.integers(1, 5)).map(lambda p: p[0] // p[1]),
        st.tuples(part, st.integers(1, 5)).map(lambda p: p[0] % p[1]),
        part.map(lambda p: p // (b - 2)), part.map(lambda p: p % (h - 4)),
    )  # fmt: skip


@given(st.recursive(leaf, _joined, max_leaves=5), st.integers(-9, 9), st.integers(-9, 9))
@settings(max_examples=150, deadline=None)
def test_terms_mean_what_they_mean_to_python(dim: Dim, at_b: int, at_h: int) -> None:
    values = {"b": at_b, "h": at_h}
    try:
        value = evaluate(dim, values)
    except ZeroDivisionError:
        return
    formula = compare("==", dim - value)
    fixed = (compare("==", b - at_b), compare("==", h - at_h))
    path = Way(Program((), (), ()), {}, (Constraint(formula, "", -1),))
    said = by_cvc5(as_smt2(System(Domain(("b", "h"), fixed), (path,))))
    assert said == ("sat", "unsat")
    assert not isinstance(formula, Compare) or holds(formula, values)


def test_the_text_has_all_that_is_asked() -> None:
    text = dump(branching, "x: [a, b]; y: [c, d]")
    assert "symbols: a, b, c, d" in text and "branch 4 <= a" in text and "path 2" in text
    assert "raised, ValueError" in text and "require b == c  #" in text and "test_smtlib.py:" in text
    assert as_text(System(Domain(), ())) == "symbols: none\n"


def test_what_data_decide_is_in_no_file() -> None:
    with pytest.raises(TargetError, match="no exact system: data decide"):
        dump(lambda x: x[x > 0].view(-1, 2), "x: [b]", "", "smt2")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.py"
    path.write_text("def net(x):\n    return x.view(-1, 2)\n")
    assert main(["check", f"{path}:net", "-i", "x: [b]", "--dump", "constraints"]) == 0
    assert "require b % 2 == 0" in capsys.readouterr().out
    out = tmp_path / "net.smt2"
    assert main(["check", f"{path}:net", "-i", "x: [b]", "--dump", "smt2", "-o", str(out)]) == 0
    assert VERDICTS[by_cvc5(out.read_text())] == "refined"  # type: ignore[index]
    assert main(["check", "--dump", "smt2"]) == 2
