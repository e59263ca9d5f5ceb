"""cvc5 as a second solver: it agrees where the verdict is right, and contradicts where it is made wrong."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from models.zoo import ZOO

from anyshape.constraints.terms.formula import Formula
from anyshape.constraints.terms.formula_text import parse_formula
from anyshape.solver import agreement
from anyshape.solver import decide as deciding
from anyshape.solver.backends import cvc5_backend
from anyshape.solver.backends.cvc5_backend import replies
from anyshape.solver.second_opinion import Chain, OpinionQuestion
from anyshape.solver.smtlib import as_script
from anyshape.solver.tactics import judge
from anyshape.solver.theory import bounds
from anyshape.typecheck import check
from anyshape.typecheck.checking.second_solver import VERSIONS
from anyshape.typecheck.cli.main import main
from anyshape.typecheck.facade import Report
from anyshape.typecheck.remote.sending import package
from anyshape.typecheck.service.http import jobs
from anyshape.typecheck.service.http.gate import Refusal
from anyshape.typecheck.service.ops.settings import Settings
from anyshape.typecheck.service.work import questions
from anyshape.typecheck.targets.target_error import TargetError


def asked(target: Any, inputs: str, assume: Any = "", **options: Any) -> Report:
    return check(target, inputs, assume, second_solver="cvc5", **options)


def halved(x: torch.Tensor) -> torch.Tensor:
    return x.view(x.shape[0], 2, x.shape[1] // 2)


def branching(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.shape[0] > 3:
        return x @ y
    if x.shape[1] % 2 == 0:
        raise ValueError
    return x + y


def eliminated(x: torch.Tensor) -> torch.Tensor:
    """One branch has one outcome, the other depends on it."""
    if x.shape[0] * x.shape[1] < 1:
        raise ValueError
    y = x.view(-1, 4)
    return y if (x.shape[0] * x.shape[1]) % 4 == 0 else y.view(3, 5)


def seven(x: torch.Tensor) -> torch.Tensor:
    if x.shape[0] == 7:
        raise ValueError
    return x


def by_count(x: torch.Tensor) -> torch.Tensor:
    """As many rows as the data decide: any number of them runs."""
    return x[x[:, 0] > 0] @ torch.ones(x.shape[1], 2)


AGREED: list[tuple[Callable[..., Any], str, str, str]] = [
    (torch.relu, "input: [b, h]", "", "proved"),
    (halved, "x: [b, 2*h]", "", "proved"),
    (halved, "x: [b, h]", "", "refined"),
    (halved, "x: [b, 2*h + 1]", "", "refuted"),
    (branching, "x: [a, b]; y: [c, d]", "", "refined"),
    (branching, "x: [a, 2*b]; y: [c, d]", "a <= 3", "refuted"),
    (eliminated, "x: [a, b]", "", "refined"),
    (eliminated, "x: [a, 4*b]", "", "proved"),
    (torch.nn.Linear(8, 4), "input: [...]", "", "refined"),
    (torch.add, "input: [*x, c]; other: [*y, c]", "", "refined"),
    (by_count, "x: [b, c]", "", "proved"),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target, inputs, assume, verdict", AGREED)
def test_it_agrees(target: Callable[..., Any], inputs: str, assume: str, verdict: str) -> None:
    report = asked(target, inputs, assume)
    assert report.verdict == verdict and report.second_opinion is not None
    assert report.second_opinion.outcome == "agreed", report.second_opinion
    assert f"Agreed by cvc5 {cvc5_backend.version()}, in " in report.to_text()
    assert Report.from_json(json.loads(json.dumps(report.to_json()))) == report


# ---- what is made wrong, and found


def taken_for(answer: bool, formula: str) -> Callable[[pytest.MonkeyPatch], None]:
    """The fast path takes a formula for one that always holds, or never does."""
    wrong, right = parse_formula(formula), bounds.Consequences.ask

    def ask(self: bounds.Consequences, asked: Formula) -> bool | None:
        return answer if asked == wrong else right(self, asked)

    return lambda patch: patch.setattr(bounds.Consequences, "ask", ask)


def never_satisfiable(formula: str) -> Callable[[pytest.MonkeyPatch], None]:
    """The judge takes whatever has a formula among its parts for unsatisfiable."""
    wrong, right = parse_formula(formula), judge.Judge.satisfiable

    def satisfiable(self: judge.Judge, formulas: Any, *rest: Any) -> Any:
        formulas = tuple(formulas)
        return "unsat" if wrong in formulas else right(self, formulas, *rest)

    return lambda patch: patch.setattr(judge.Judge, "satisfiable", satisfiable)


def printed(condition: str) -> Callable[[pytest.MonkeyPatch], None]:
    """The condition in short words is another one."""

    def simplified(*_: Any) -> Formula:
        return parse_formula(condition)

    return lambda patch: patch.setattr(deciding.refine, "simplify", simplified)


WRONG: list[tuple[Callable[[pytest.MonkeyPatch], None], Callable[..., Any], str, str]] = [
    # A requirement that the fast path drops, though the domain does not imply it.
    (taken_for(True, "h % 2 == 0"), halved, "x: [b, h]", "what is accepted meets what"),
    # A branch that is not looked at.
    (taken_for(False, "a == 7"), seven, "x: [a]", "the branch at"),
    # A contradiction that is none.
    (never_satisfiable("h % 2 == 0"), halved, "x: [b, h]", "the requirements of a core contradict"),
    # A condition that accepts too much, and one that accepts too little.
    (printed("1 <= h"), halved, "x: [b, h]", "what is accepted meets"),
    (printed("h % 4 == 0"), halved, "x: [b, h]", "what meets all requirements is accepted"),
]


@pytest.mark.parametrize("wrong, target, inputs, reason", WRONG)
def test_it_contradicts_what_is_wrong(
    wrong: Callable[[pytest.MonkeyPatch], None],
    target: Callable[..., Any],
    inputs: str,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wrong(monkeypatch)
    assert check(target, inputs, replay=False).verdict != "unknown"
    report = asked(target, inputs, replay=False)
    opinion = report.second_opinion
    assert opinion is not None and opinion.outcome == "disagreed", opinion
    assert report.verdict == "unknown" and report.findings[0].code == "internal-error"
    assert not report.accepts.exact and str(report.accepts.certain) == "False"
    assert opinion.query in report.findings[0].message
    script = Path(opinion.query).read_text(encoding="utf-8")
    assert replies([script], 10)[0].answer == "sat"
    assert opinion.reason.startswith(reason), opinion.reason


# ---- what it does not decide


def test_what_is_beyond_its_effort_leaves_the_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cvc5_backend, "FEW", 1)
    monkeypatch.setattr(cvc5_backend, "UNITS", 1)
    report = asked(halved, "x: [b, h]")
    assert report.verdict == "refined" and report.second_opinion is not None
    assert report.second_opinion.outcome == "not-decided" and report.second_opinion.query
    assert "Not decided by cvc5" in report.to_text()


def test_the_parts_are_asked_where_the_whole_is_not_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked second are the parts of what was left open first."""
    asked_for: list[list[str]] = []

    def first_open(scripts: list[str], *limits: Any, **options: Any) -> list[cvc5_backend.Reply]:
        asked_for.append(scripts)
        return replies(scripts, *limits) if len(asked_for) > 1 else [cvc5_backend.Reply()] * len(scripts)

    monkeypatch.setattr(agreement.cvc5_backend, "replies", first_open)
    parts = [
        OpinionQuestion(f"part {n}", "unsat", (parse_formula(f"b == {n} and b == {n + 1}"),)) for n in (2, 4)
    ]
    whole = OpinionQuestion("whole", "unsat", (parse_formula("b < b"),), (), lambda: parts)
    found = agreement.opinion(agreement.Questions((whole,)), 10)
    assert found.outcome == "agreed" and found.asked == 3
    assert [len(scripts) for scripts in asked_for] == [1, 2]
    assert all("part" in script for script in asked_for[1])


def test_what_is_left_out_first_is_asked_in_full_then() -> None:
    """A conclusion needs what a product is, and one does not: there it is true or false."""
    needs, plain = parse_formula("a*b >= 9"), parse_formula("a <= 2")
    for formulas, count in (((needs, plain, parse_formula("b <= 4 and 1 <= a and 1 <= b")), 2),
                            ((needs, plain, parse_formula("3 <= a")), 1),
                            ((needs, parse_formula("a*b < 9 or 3 <= a"), plain), 1)):
        question = OpinionQuestion("", "unsat", formulas)
        (easy,) = question.relaxed
        assert "QF_LIA" in as_script(easy) and "(* a b)" not in as_script(easy)
        assert agreement.opinion(agreement.Questions((question,)), 20) == agreement.Opinion("agreed", count)


def test_what_the_data_decide_is_not_all_covered() -> None:
    def picked(x: torch.Tensor) -> torch.Tensor:
        return x[x > 0][: x.shape[0]].view(-1).sum() + x.view(2, -1).sum()

    report = asked(picked, "x: [b]")
    assert report.verdict == "refined" and report.second_opinion is not None
    assert report.second_opinion.outcome == "not-decided"
    assert report.second_opinion.reason == "sizes that the data decide"


def test_nothing_is_asked_about_unknown() -> None:
    report = asked(lambda x: x[x > 0].view(-1, 2), "x: [b]")
    assert report.verdict == "unknown" and report.second_opinion is None


def test_late_and_broken_answers_are_unknown() -> None:
    assert [r.answer for r in replies(["(assert"], 20)] == ["unknown"]
    assert [r.answer for r in replies(["(check-sat)"] * 2, 1e-3)] == ["unknown"] * 2
    assert replies([], 1) == []


def test_a_chain_means_what_its_text_means() -> None:
    texts = (("or", "a >= 9"), ("and", "b >= 3"), ("or", "a == b"))
    links = [(how, parse_formula(text)) for how, text in texts]
    for last in (True, False):
        chain = Chain(tuple(links), last)  # type: ignore[arg-type]
        for a in (2, 3, 9):
            for b in (2, 3):
                at = (parse_formula(f"a == {a}"), parse_formula(f"b == {b}"))
                script = as_script(OpinionQuestion("", "sat", at, (chain,)))
                (reply,) = replies([script], 20)
                assert (reply.answer == "sat") == chain.holds({"a": a, "b": b})


# ---- the command, and the corpus


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "net.py"
    path.write_text("def net(x):\n    return x.view(-1, 2)\n")
    arguments = ["check", f"{path}:net", "-i", "x: [b]", "--second-solver", "cvc5", "--no-cache"]
    assert main(arguments) == 1
    assert "Agreed by cvc5" in capsys.readouterr().out
    assert main([*arguments, "--format", "json"]) == 1
    opinion = json.loads(capsys.readouterr().out)["second_opinion"]
    assert opinion["outcome"] == "agreed" and opinion["solver"] == f"cvc5 {cvc5_backend.version()}"


def test_a_solver_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TargetError, match="not a known solver"):
        check(halved, "x: [b, h]", second_solver="yices")
    monkeypatch.setitem(VERSIONS, "cvc5", lambda: None)  # type: ignore[arg-type]
    with pytest.raises(TargetError, match="cvc5 is not installed"):
        asked(halved, "x: [b, h]")


def test_a_service_that_lacks_it_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(VERSIONS, "cvc5", lambda: None)  # type: ignore[arg-type]
    with pytest.raises(Refusal, match="cvc5 is not installed"):
        jobs.question(Settings(), second_solver="cvc5")


def test_a_service_sends_the_question_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In place of the file, which is on its machine, and which it does not leave there."""
    never_satisfiable("h % 2 == 0")(monkeypatch)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    sent = package(halved, "x: [b, h]")
    question = questions.Question(second_solver="cvc5")
    data = questions.answer("recorded", sent.content, question, lambda step: None)
    report = Report.from_json(data["report"])
    assert report.verdict == "unknown" and report.second_opinion is not None
    assert "second_opinion.query" in report.findings[0].message
    assert replies([report.second_opinion.query], 10)[0].answer == "sat"
    assert [*tmp_path.iterdir()] == []


QUICK = ZOO[::12]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("entry", QUICK, ids=lambda e: e.name)
def test_the_corpus(entry: Any) -> None:
    agrees(entry)


@pytest.mark.slow
@pytest.mark.parametrize("entry", [e for e in ZOO if e not in QUICK], ids=lambda e: e.name)
def test_the_whole_corpus(entry: Any) -> None:
    agrees(entry)


def agrees(entry: Any) -> None:
    report = asked(entry.build(), entry.inputs, entry.assume, replay=False, budget_s=60)
    assert report.verdict == entry.verdict and report.second_opinion is not None
    assert report.second_opinion.outcome == "agreed", report.second_opinion
