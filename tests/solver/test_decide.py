"""Verdicts: a table of systems, the paths that make them, and random systems against brute force."""
from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_formulas import box, formulas, true_at

from anyshape.constraints.ir.language import Constraint, Note
from anyshape.constraints.ir.program import Node, Origin, Program
from anyshape.constraints.ir.system import Answer, Condition, Domain, End, Path, System
from anyshape.constraints.terms.dims import sym
from anyshape.constraints.terms.formula import Formula, free_symbols, ge, holds, lt, negate
from anyshape.constraints.terms.formula_text import parse_formula
from anyshape.solver import decide as decide_module
from anyshape.solver.backends.z3_backend import Z3Problem
from anyshape.solver.decide import Decision, DomainOracle, decide
from anyshape.solver.tactics.judge import Budget, Judge


def parse(text: str | Formula) -> Formula:
    return parse_formula(text) if isinstance(text, str) else text


def path(
    *constraints: str | Formula,
    when: Iterable[str | None] = (),
    end: End = End(),  # noqa: B008 - frozen
    **more: object,
) -> Path:
    """A path with a node per constraint, and conditions (None for one on data) that come before them all."""
    nodes = tuple(Node("op", (), (), Origin("model.py", i + 1)) for i in range(max(len(constraints), 9)))
    conditions = tuple(Condition(None if t is None else parse(t), True, Origin("model.py", 90)) for t in when)
    said = tuple(Constraint(parse(c), f"reason {i}", i) for i, c in enumerate(constraints))
    return Path(Program((), nodes, ()), {}, said, conditions=conditions, end=end, **more)  # type: ignore[arg-type]


def domain(*texts: str) -> Domain:
    assumed = tuple(map(parse, texts))
    return Domain(tuple(sorted(frozenset().union(*map(free_symbols, assumed)))), assumed)


def verdict(assumed: Sequence[str], *paths: Path, incomplete: str = "") -> Decision:
    return decide(System(domain(*assumed), paths, incomplete))


def lines(decision: Decision) -> list[list[int]]:
    return [[r.origin.line for r in core.requirements] for core in decision.cores]


# --- one path


@pytest.mark.parametrize("assumed, constraints, expected, accepted", [
    (["b >= 1"], ["b*b >= 1", "b + 1 != 1"], "proved", "True"),
    (["b >= 1", "h % 32 == 0"], ["2*(h//2) == h", "4*((h//2)//2) == h"], "proved", "True"),
    (["a >= 1", "b >= 1", "a < b", "b <= 9"], ["a*b <= 72"], "proved", "True"),
    (["h >= 1"], ["h % 2 == 0", "h//2 % 2 == 0", "h >= 5"], "refined", "8 <= h and h % 4 == 0"),
    (["a >= 1", "b >= 1"], ["a == b", "a*3 == b*3"], "refined", "a == b"),
    (["a >= 1", "b >= 1"], ["a == b or a == 1 or b == 1"], "refined", "a == b or a == 1 or b == 1"),
    (["a >= 2", "b >= 2"], ["a == b or a == 1 or b == 1"], "refined", "a == b"),
    (["h >= 1"], ["h == 0"], "refuted", "False"),
    (["h >= 1"], [False], "refuted", "False"),
    (["h >= 1", "w >= 1"], ["h == w", "h % 4 == 0", "w % 4 == 3"], "refuted", "False"),
])
def test_verdicts(assumed: list[str], constraints: list[str | Formula], expected: str, accepted: str) -> None:
    decision = verdict(assumed, path(*constraints))
    assert (decision.verdict, str(decision.accepted)) == (expected, accepted)
    assert (decision.inside is not None) == (expected in ("proved", "refined"))
    assert (decision.outside is not None) == (expected in ("refined", "refuted"))
    assert decision.exact and not decision.reasons


def test_sizes_that_are_refused_meet_what_is_not_to_blame() -> None:
    decision = verdict(["h >= 1", "w >= 1"], path("h >= 7", "w % 5 == 0", False))
    assert decision.verdict == "refuted" and decision.outside is not None
    assert decision.outside["h"] >= 7 and decision.outside["w"] % 5 == 0


def test_independent_errors_are_reported_each() -> None:
    decision = verdict(
        ["a >= 1", "b >= 1", "h % 2 == 0"],
        path("a == b", False, "h % 2 == 1", "a % 4 == 0", "b % 4 == 3", "a <= b", "a == 3"),
    )
    assert decision.verdict == "refuted"
    assert sorted(lines(decision)) == [[1, 4, 5], [2], [3]]
    (odd,) = (c for c in decision.cores if c.requirements[0].origin.line == 3)
    assert [str(f) for f in odd.assumptions] == ["h % 2 == 0"]


def test_cores_are_in_program_order_and_minimal() -> None:
    constraints = ("b < c", "a*b*c >= 2", "a < b", "c >= 3", "c < a")
    decision = verdict(["a >= 1", "b >= 1", "c >= 1"], path(*constraints))
    assert lines(decision) == [[1, 3, 5]]
    core = [r.needs for r in decision.cores[0].requirements]
    assert Z3Problem().check(core) == "unsat"
    assert all(Z3Problem().check(fewer) == "sat" for fewer in combinations(core, 2))


def test_witnesses_are_small_and_differ_in_one_symbol() -> None:
    decision = verdict(["batch >= 1", "h >= 1", "w >= 1"], path("h % 32 == 0", "w % 32 == 0"))
    assert decision.inside == {"batch": 2, "h": 32, "w": 64}
    assert decision.outside is not None
    assert sum(decision.inside[n] != decision.outside[n] for n in decision.inside) == 1
    assert not decision.holds(decision.outside) and decision.violated(decision.outside)
    assert decision.holds(decision.inside) and not decision.violated(decision.inside)


def test_what_the_trace_asks_counts_and_is_told_apart() -> None:
    traced = replace(path("b >= 1", "h == 7"), constraints=(
        Constraint(parse("h % 2 == 1"), "needed", 0), Constraint(parse("h == 7"), "traced", 1, "trace")))
    decision = verdict(["h >= 1"], traced)
    assert str(decision.accepted) == "h == 7"
    assert [r.reason for r in decision.trace] == ["traced"]
    assert [r.of_trace for r in decision.residual] == [False, True]


def test_a_core_keeps_conjunctions_whole() -> None:
    decision = verdict(["a >= 1", "b >= 1"], path("b != 0 and 2*a == a//b", "a != 7"))
    assert [[str(r.formula) for r in c.requirements] for c in decision.cores] == [["b != 0 and 2*a == a//b"]]
    assert [str(f) for f in decision.cores[0].assumptions] == ["1 <= a"]


def test_an_empty_domain_is_said() -> None:
    decision = verdict(["h >= 3", "h <= 2"], path("h == 1"))
    assert decision.verdict == "unknown"
    assert "exclude all sizes" in decision.reasons[0].reason


# --- several paths


def test_paths_join() -> None:
    far, near = path("h % 2 == 0", when=["t > 7"]), path("h >= 4", when=["t <= 7"])
    decision = verdict(["t >= 1", "h >= 1"], far, near)
    assert decision.verdict == "refined"
    assert decision.holds({"t": 8, "h": 2}) and not decision.holds({"t": 7, "h": 2})


def test_what_both_sides_of_a_branch_need_is_said_once() -> None:
    far, near = path("h % 2 == 0", when=["t > 7"]), path("h % 2 == 0", when=["t <= 7"])
    decision = verdict(["t >= 1", "h >= 1"], far, near)
    assert str(decision.accepted) == "h % 2 == 0"


def test_a_constraint_before_a_branch_holds_on_both_sides() -> None:
    branch = Condition(parse("t > 7"), True, Origin(), after=1)
    one = replace(path("h % 2 == 0", "t <= 50"), conditions=(branch,))
    other = replace(path("h % 2 == 0"), conditions=(replace(branch, taken=False),))
    decision = verdict(["t >= 1", "h >= 1"], one, other)
    assert [str(r.premise) for r in decision.residual] == ["True", "8 <= t"]
    assert str(decision.accepted) == "h % 2 == 0 and t <= 50"


def test_a_raise_refuses_its_sizes() -> None:
    raised = path(when=["h % 2 == 1"], end=End("raised", "odd", Origin("model.py", 5)))
    decision = verdict(["h >= 1"], path(when=["h % 2 == 0"]), raised)
    assert decision.verdict == "refined" and str(decision.accepted) == "h % 2 == 0"
    assert decision.residual[0].origin.line == 5


def test_a_raise_that_data_decide_is_only_remarked() -> None:
    raised = on_data(True, end=End("raised", "negative", Origin("model.py", 5)))
    decision = verdict(["h >= 1"], on_data(False, end=End()), raised)
    assert decision.verdict == "proved" and decision.exact
    assert [(one.reason, one.origin.line) for one in decision.on_data] == [("negative", 5)]


def on_data(*answers: bool, end: End) -> Path:
    return replace(path(end=end), conditions=tuple(Condition(None, a, Origin()) for a in answers))


def test_a_raise_on_all_answers_of_the_data_refuses() -> None:
    no, fine = End("raised", "no"), End()
    assert verdict(["h >= 1"], on_data(True, end=no), on_data(False, end=no)).verdict == "refuted"
    below = [on_data(True, True, end=no), on_data(True, False, end=no)]
    assert verdict(["h >= 1"], *below, on_data(False, end=fine)).verdict == "proved"
    assert verdict(["h >= 1"], *below, on_data(False, end=no)).verdict == "refuted"
    assert verdict(["h >= 1"], on_data(True, end=no), incomplete="more").verdict == "unknown"


def test_what_the_recorder_gave_up_is_unknown() -> None:
    gave_up = path("h % 2 == 0", when=["t > 7"], end=End("gave-up", "too deep", Origin("model.py", 6)))
    decision = verdict(["t >= 1", "h >= 1"], path(when=["t <= 7"]), gave_up)
    assert decision.verdict == "unknown"
    assert [(r.reason, r.origin.line) for r in decision.reasons] == [("too deep", 6)]
    assert decision.inside is not None and decision.inside["t"] <= 7
    assert not decision.holds({"t": 8, "h": 3}), "what is known to be needed is still known"


def test_a_path_that_no_size_takes_does_not_matter() -> None:
    gave_up = path(when=["t > 7"], end=End("gave-up", "too deep"))
    assert verdict(["t >= 1", "t <= 7"], path(when=["t <= 7"]), gave_up).verdict == "proved"


def test_paths_that_were_not_looked_at() -> None:
    one = path("h % 2 == 0", when=["t == 1"])
    assert verdict(["t >= 1", "h >= 1"], one, incomplete="64 paths").verdict == "unknown"
    assert verdict(["t == 1", "h >= 1"], one, incomplete="64 paths").verdict == "refined"
    assert verdict(["t >= 1", "h >= 1"], path(False), incomplete="64 paths").verdict == "refuted"


# --- what is not exact


def test_an_operator_without_a_rule_is_unknown_unless_refuted_elsewhere() -> None:
    note = Note("no-rule", "mystery has no rule", 2)
    decision = verdict(["h >= 1"], replace(path("h % 2 == 0"), notes=(note,)))
    assert decision.verdict == "unknown"
    assert [(r.reason, r.origin.line) for r in decision.reasons] == [("mystery has no rule", 3)]
    assert str(decision.accepted) == "h % 2 == 0"
    assert verdict(["h >= 1"], replace(path("h % 2 == 0", "h == 3"), notes=(note,))).verdict == "refuted"


def test_an_approximation_never_refutes() -> None:
    note = Note("approximate", "taken from an example", 1)
    before = replace(path("h == 0", "h >= 1"), notes=(note,))
    after = replace(path("h >= 1", "h == 0"), notes=(note,))
    assert verdict(["h >= 1"], before).verdict == "refuted"
    decision = verdict(["h >= 1"], after)
    assert decision.verdict == "unknown" and "approximation" in decision.reasons[0].reason
    refined = verdict(["h >= 1"], replace(path("h % 2 == 0"), notes=(note,)))
    assert refined.verdict == "refined" and not refined.exact and not refined.facts["h"].exact


def with_data(
    *constraints: str,
    known: str = "u >= 0 and u <= n",
    when: Iterable[str | None] = (),
    end: End = End(),  # noqa: B008 - frozen
) -> Path:
    return replace(path(*constraints, when=when), unbacked=(("u", parse(known)),), end=end)


def test_sizes_that_data_decide() -> None:
    assert verdict(["n >= 1"], with_data("u*2 % 2 == 0", "u <= n")).verdict == "proved"
    always = verdict(["n >= 1"], with_data("u <= 10"))
    assert always.verdict == "unknown" and "data" in always.reasons[0].reason
    assert always.inside is not None and always.inside["n"] <= 10
    assert verdict(["n >= 1", "n <= 10"], with_data("u <= 10")).verdict == "proved"
    assert verdict(["n >= 1"], with_data("u >= n + 1")).verdict == "refuted"
    even = with_data("n % 2 == 0", when=["u >= 3"])
    assert verdict(["n >= 1"], even, with_data(when=["u <= 2"])).verdict == "unknown"
    assert verdict(["n >= 1"], with_data("n >= 1", when=["u >= 3"])).verdict == "proved"


def test_sizes_at_which_something_fails_with_all_data_are_refused() -> None:
    """Whatever the branch on data, either side asks the same, or what no other data makes good."""
    even, odd = (with_data("n % 2 == 0", when=[when]) for when in ("u >= 3", "u <= 2"))
    both = verdict(["n >= 1"], even, odd)
    assert both.verdict == "refined" and str(both.accepted) == "n % 2 == 0"
    assert verdict(["n >= 1"], even, odd, incomplete="more").verdict == "unknown"
    third = with_data("n % 3 == 0", when=["u <= 2"])  # either is asked for some data: sizes between are open
    assert verdict(["n >= 1"], even, third).verdict == "unknown"
    assert verdict(["n >= 3", "n % 6 != 0", "n % 2 == 0"], even, third).verdict == "unknown"
    assert verdict(["n >= 3", "n % 2 != 0", "n % 3 != 0"], even, third).verdict == "refuted"
    raises = with_data(when=["u <= 2"], end=End("raised", "ValueError"))
    assert verdict(["n >= 3", "n % 2 != 0"], even, raises).verdict == "refuted"


def test_requirements_that_no_data_meet_together() -> None:
    apart = verdict(["n >= 1"], with_data("u >= 6", "u <= 1"))
    assert apart.verdict == "refuted" and [1, 2] in lines(apart)
    assert verdict(["n >= 1"], with_data("u >= 6", "u == 1 or u == 7")).verdict == "unknown"
    between = with_data("u <= 1", when=["n >= 9"], known="u >= 6 and u <= n")
    assert str(verdict(["n >= 6"], between, with_data(when=["n <= 8"])).accepted) == "n <= 8"


def test_a_requirement_is_not_proved_by_what_is_known_of_data() -> None:
    """`0 <= u <= n - 4` is known only where the program got so far; that n >= 4 is not to be had from it."""
    decision = verdict(["n >= 1"], with_data("n >= 4", "u >= 0", known="u >= 0 and u <= n - 4"))
    assert decision.verdict == "refined" and str(decision.accepted) == "4 <= n"


def test_the_budget_is_kept_where_facts_are_many() -> None:
    """A chain of 40 inequalities, of which each symbol's exact bounds cost many questions."""
    names = [f"x{i}" for i in range(40)]
    constraints = [lt(sym(a), sym(b)) for a, b in pairwise(names)]
    started = time.monotonic()
    decision = decide(System(domain(*(f"{n} >= 1" for n in names)), (path(*constraints),)), Budget(seconds=2))
    assert time.monotonic() - started < 10
    assert decision.verdict == "refined"
    for index, name in enumerate(names):
        fact = decision.facts[name]
        assert fact.max is None and fact.min is not None
        assert fact.min == index + 1 if fact.exact else fact.min <= index + 1


def test_the_budget_ends_in_unknown() -> None:
    hard = "a*a*a + b*b*b == c*c*c + 42 and a >= 2 and b >= 2 and c >= 2"
    system = System(domain("a >= 1", "b >= 1", "c >= 1"), (path(hard),))
    decision = decide(system, Budget(seconds=20, units=20_000))
    assert decision.verdict == "unknown"
    assert any("budget" in r.reason for r in decision.reasons)


# --- against brute force

NAMES = "ab"
BOX = box(NAMES, 1, 9)


@st.composite
def systems(draw: st.DrawFn) -> System:
    """A domain within the box and a binary tree of branches, with a return or a raise at each leaf."""
    inside = [f for n in NAMES for f in (ge(sym(n), 1), ge(9, sym(n)))]
    assumed = (*inside, *draw(st.lists(formulas(NAMES), max_size=1)))
    paths: list[Path] = []

    def grow(conditions: tuple[Condition, ...], said: tuple[Formula, ...], depth: int) -> None:
        said = (*said, *draw(st.lists(formulas(NAMES), max_size=2)))
        if depth and draw(st.booleans()):
            asked = draw(formulas(NAMES))
            for taken in (True, False):
                condition = Condition(asked, taken, Origin(), after=len(said))
                grow((*conditions, condition), said, depth - 1)
        else:
            end = End("raised", "no") if draw(st.integers(0, 3)) == 0 else End()
            paths.append(replace(path(*said, end=end), conditions=conditions))

    grow((), (), 2)
    return System(Domain(tuple(NAMES), assumed), tuple(paths))


def runs(system: System, point: dict[str, int]) -> bool:
    """What a run at these sizes does: the one path that they take, constraint by constraint."""
    for one in system.paths:
        if all(c.formula is not None and holds(c.formula, point) == c.taken for c in one.conditions):
            return one.end.how == "returned" and true_at((c.formula for c in one.constraints), point)
    raise AssertionError("branches cover everything")


def check_against_runs(system: System) -> None:
    decision = decide(system, Budget(seconds=20, units=500_000))
    inside = [p for p in BOX if true_at(system.domain.assumptions, p)]
    accepted = [p for p in inside if runs(system, p)]
    if decision.verdict == "unknown":
        assert decision.reasons
        return
    assert decision.verdict == (
        "proved" if accepted == inside else "refined" if accepted else "refuted"
    ), (decision.verdict, decision.accepted)
    assert [p for p in inside if decision.holds(p)] == accepted
    assert decision.inside is None or decision.inside in accepted
    assert decision.outside is None or (decision.outside in inside and decision.outside not in accepted)
    for core in decision.cores:
        formulas = [*core.assumptions, *(r.needs for r in core.requirements)]
        assert not any(true_at(formulas, p) for p in inside)
    for name, fact in decision.facts.items():
        values = {p[name] for p in accepted}
        assert fact.min is not None and fact.max is not None
        assert fact.min <= min(values) and max(values) <= fact.max
        assert not fact.exact or (fact.min, fact.max) == (min(values), max(values))


@given(systems())
@settings(max_examples=40, deadline=None)
def test_verdicts_agree_with_brute_force(system: System) -> None:
    check_against_runs(system)


@pytest.mark.slow
@given(systems())
@settings(max_examples=400, deadline=None)
def test_many_verdicts_agree_with_brute_force(system: System) -> None:
    check_against_runs(system)


def test_brute_force_catches_a_wrong_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that forgets the premise of a requirement."""
    monkeypatch.setattr(decide_module._PathPosition, "guard", lambda self, formula: formula)
    branch = Condition(parse("a >= 5"), True, Origin())
    assumed = tuple(map(parse, ("a >= 1", "a <= 9", "b >= 1", "b <= 9")))
    one = replace(path("b % 2 == 0"), conditions=(branch,))
    other = replace(path(), conditions=(replace(branch, taken=False),))
    with pytest.raises(AssertionError):
        check_against_runs(System(Domain(("a", "b"), assumed), (one, other)))


# --- the oracle


@pytest.mark.parametrize("asked, given, answer", [
    ("t >= 1", [], Answer.ALWAYS),
    ("t <= 0", [], Answer.NEVER),
    ("t > 7", [], Answer.SOMETIMES),
    ("t > 7", ["t >= 9"], Answer.ALWAYS),
    ("h % 2 == 0", ["h % 4 == 0"], Answer.ALWAYS),
    ("a < 64", ["a < b", "b <= 64"], Answer.ALWAYS),
    ("a*a == 2*b*b", ["a >= 1"], Answer.SOMETIMES),  # b is an integer of either sign, or 0
])
def test_the_oracle(asked: str, given: list[str], answer: Answer) -> None:
    oracle = DomainOracle(domain("t >= 1", "h >= 1"))
    found = oracle.decide(parse(asked), [parse(g) for g in given])
    assert found is answer or (found is Answer.UNKNOWN and "a*a" in asked)


def test_the_oracle_goes_on_after_a_refusal() -> None:
    """A requirement that cannot hold says nothing of the branches after it."""
    oracle = DomainOracle(domain("h >= 1", "t >= 1"))
    given = [parse("h == 0"), parse("t >= 3")]
    assert oracle.decide(parse("t >= 9"), given) is Answer.SOMETIMES
    assert oracle.decide(parse("t >= 2"), given) is Answer.ALWAYS


def test_examples_of_the_oracle() -> None:
    oracle = DomainOracle(domain("b >= 1", "h >= 1"))
    example = oracle.example([parse("h % 32 == 0")])
    assert example == {"b": 2, "h": 32}
    assert oracle.example([parse("h <= 0")]) is None
    assert oracle.example([parse("h <= 0"), parse("b == 9")], forgiving=True) == {"b": 9, "h": 2}
    welcome = oracle.example([], prefer=lambda values: values["h"] == 7)
    assert welcome is not None and welcome["h"] == 7


def test_the_oracle_does_not_know_everything() -> None:
    oracle = DomainOracle(domain("a >= 2", "b >= 2", "c >= 2"), Budget(units=5_000))
    assert oracle.decide(parse("a*a*a + b*b*b == c*c*c")) is Answer.UNKNOWN


@given(st.lists(formulas("abc"), max_size=2), formulas("abc"))
@settings(max_examples=120, deadline=None)
def test_the_judge_never_contradicts_brute_force(given: list[Formula], asked: Formula) -> None:
    judge = Judge(Budget(units=300_000))
    answer = judge.ask(asked, given)
    fitting = [p for p in box("abc", -1, 5) if true_at(given, p)]
    seen = {holds(asked, p) for p in fitting}
    if answer is Answer.ALWAYS:
        assert seen <= {True}
    elif answer is Answer.NEVER:
        assert seen <= {False}
    for wanted in (asked, negate(asked)):
        if judge.satisfiable((*given, wanted)) == "sat":
            assert true_at((*given, wanted), judge.model)


# --- speed

SCRIPT = """
import sys, time
from anyshape.constraints.terms.dims import sym
from anyshape.constraints.terms.formula import eq, ge, le
from anyshape.constraints.ir.language import Constraint
from anyshape.constraints.ir.program import Program
from anyshape.constraints.ir.system import Domain, Path, System
from anyshape.solver.decide import decide
b, t, h = map(sym, "bth")
formulas = [ge(b * t * n + h // (1 + n % 7), n % 2) for n in range(1, 1001)]
formulas += [eq(h // 2 * (2 * n), h * n) for n in range(1, 1001)]
formulas = [f for f in formulas if f is not True]
domain = Domain(("b", "t", "h"), (ge(b, 1), ge(t, 1), ge(h, 32), eq(h % 32, 0)))
path = Path(Program((), (), ()), {}, tuple(Constraint(f, "", 0) for f in formulas))
started = time.perf_counter()
decision = decide(System(domain, (path,)))
print(len(formulas), decision.verdict, "z3" in sys.modules, time.perf_counter() - started)
"""


def test_trivial_constraints_take_milliseconds_and_no_z3() -> None:
    answer = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True).stdout
    count, said, with_z3, seconds = answer.split()
    assert int(count) > 1000 and said == "proved" and with_z3 == "False"
    assert float(seconds) < 2, "generous, for a noisy machine; it is a tenth of that on a quiet one"
