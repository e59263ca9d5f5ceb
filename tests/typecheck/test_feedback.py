"""ShapeEnvs: facts that they are told, a solver behind them, and what they know."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import pytest
import sympy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_formulas import box, formulas
from torch._dynamo.source import LocalSource
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.export import Dim, export
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import (
    DimDynamic,
    GuardOnDataDependentSymNode,
    ShapeEnv,
    StatelessSymbolicContext,
    guard_or_false,
)
from torch.fx.passes.runtime_assert import insert_deferred_runtime_asserts
from torch.utils._sympy.functions import FloorDiv, Mod

from anyshape.constraints.ir.language import Fact
from anyshape.constraints.ir.spec_text import SpecError
from anyshape.constraints.terms.dims import sym, total
from anyshape.constraints.terms.formula import (
    Formula,
    all_of,
    any_of,
    eq,
    free_symbols,
    ge,
    holds,
    lt,
    ne,
    rewrite,
)
from anyshape.constraints.terms.formula_text import parse_formula
from anyshape.solver.tactics.judge import Judge
from anyshape.tracer.host.operators import INSTALLED
from anyshape.tracer.readers.expressions import NotRead
from anyshape.typecheck import check
from anyshape.typecheck.exporting.tracing.data_sizes import settled_by_other_sizes
from anyshape.typecheck.feedback import (
    Fed,
    FeedbackError,
    assumptions_of,
    feed,
    inputs_of,
    known,
    lemmas,
    oracle,
)
from anyshape.typecheck.feedback.answering import Solver
from anyshape.typecheck.feedback.knowledge import symbols_of
from anyshape.typecheck.feedback.terms import Writer, formula_of, size_of


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """torch logs the graph of each failing trace."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


class Own:
    """A ShapeEnv of our own, with tensors whose sizes all vary."""

    def __init__(self, *shapes: tuple[int, ...], tracked: bool = False) -> None:
        self.env = ShapeEnv(tracked_fakes=[] if tracked else None)
        self.mode = FakeTensorMode(shape_env=self.env)
        self.tensors = [self.fake(f"x{i}", shape) for i, shape in enumerate(shapes)]

    def fake(self, name: str, shape: tuple[int, ...]) -> torch.Tensor:
        context = StatelessSymbolicContext([DimDynamic.DYNAMIC] * len(shape))
        return self.mode.from_tensor(torch.empty(shape), source=LocalSource(name), symbolic_context=context)

    def unbacked(self) -> torch.SymInt:
        with self.env.ignore_fresh_unbacked_symbols():
            return self.env.create_unbacked_symint()

    def knows(self, condition: Any) -> bool | None:
        """What the ShapeEnv answers without a guard."""
        answer = self.env._maybe_evaluate_static(condition)
        return None if answer is None else bool(answer)

    def state(self) -> tuple[Any, ...]:
        """All that facts could have touched."""
        env = self.env
        return (
            dict(env.var_to_range), dict(env.replacements), [*env.guards], dict(env.axioms),
            {k: [*v] for k, v in env.deferred_runtime_asserts.items()}, {*env.divisible},
        )  # fmt: skip


def name_of(size: torch.SymInt) -> str:
    return str(size.node.expr)


# ---- facts: ranges


def test_a_range_is_narrowed_and_stale_answers_are_dropped() -> None:
    own = Own((8, 6))
    h = own.tensors[0].shape[0]
    small = sympy.Le(h.node.expr, 64)
    assert own.knows(small) is None  # and is remembered
    fed = feed(own.env, {name_of(h): Fact(2, 64)})
    assert own.knows(small) is True
    assert (own.env.var_to_range[h.node.expr].lower, own.env.var_to_range[h.node.expr].upper) == (2, 64)
    assert [str(f) for f in fed.checked] == [f"{h.node.expr} <= 64"]
    assert [str(f) for f in fed.proved] == [f"2 <= {h.node.expr}"]  # which torch assumes of any size


def test_a_fallback_that_was_taken_is_asked_again() -> None:
    own = Own()
    u = own.unbacked()
    assert guard_or_false(u < 64) is False
    feed(own.env, {name_of(u): Fact(0, 63)})
    assert guard_or_false(u < 64) is True


def test_what_follows_needs_no_check() -> None:
    own = Own()
    a, b = own.unbacked(), own.unbacked()
    torch._check(a < b)
    torch._check(b <= 64)
    before = own.env.num_deferred_runtime_asserts
    question = sympy.Lt(a.node.expr, 64)
    assert own.knows(question) is None  # torch's own reasoning does not see it
    fed = feed(own.env, {"a": Fact(None, 63)}, names={"a": a})
    assert fed.checked == () and own.env.num_deferred_runtime_asserts == before
    assert own.knows(question) is True


# ---- facts: multiples and equalities


def test_a_multiple_of_an_inputs_size_is_a_replacement_with_a_check() -> None:
    own = Own((8, 6))
    x = own.tensors[0]
    h = x.shape[0].node.expr
    even = sympy.Eq(Mod(h, 2), 0)
    assert own.knows(even) is None
    feed(own.env, {str(h): Fact(None, None, 4)})
    assert own.knows(even) is True and own.knows(sympy.Eq(Mod(3 * h, 6), 0)) is True
    assert own.env.replacements[h].free_symbols != {h}
    (size,) = [g for g in own.env.produce_guards([x], [LocalSource("x0")], ignore_static=True) if "4*" in g]
    assert size == "L['x0'].size()[0] == 4*(L['x0'].size()[0] // 4)"
    for rows, holds_there in ((12, True), (10, False)):
        assert eval(size, {"L": {"x0": torch.empty(rows, 6)}}) is holds_there


def test_what_was_assumed_is_checked_where_the_graph_runs() -> None:
    own = Own((8,))
    (x,) = own.tensors
    feed(own.env, {"b": Fact(3, 64, 4)}, names={"b": x.shape[0]})
    guards = len(own.env.guards)
    with own.mode:
        module = make_fx(lambda x: x.view(2, -1).sum(-1))(x)
    assert len(own.env.guards) == guards  # whatever the view asked was known
    insert_deferred_runtime_asserts(module, own.env, "forward")
    module.recompile()
    assert module(torch.ones(12)).shape == (2,)
    with pytest.raises(RuntimeError, match="Mod"):
        module(torch.ones(10))


def test_a_residue_is_a_replacement() -> None:
    own = Own((9,))
    s = own.tensors[0].shape[0].node.expr
    feed(own.env, {str(s): Fact(None, None, 4, 1)})
    assert own.knows(sympy.Eq(Mod(s, 2), 1)) is True and own.knows(sympy.Ne(s, 8)) is True
    (k,) = own.env.replacements[s].free_symbols
    assert own.env.replacements[s] == 4 * k + 1 and own.env.backed_var_to_val[k] == 2


def test_the_factor_of_a_size_that_may_be_zero_may_be_zero() -> None:
    context = StatelessSymbolicContext([DimDynamic.DYNAMIC])
    env = ShapeEnv(specialize_zero_one=False)
    x = FakeTensorMode(shape_env=env).from_tensor(
        torch.empty(8), source=LocalSource("x"), symbolic_context=context
    )
    s = x.shape[0].node.expr
    feed(env, {str(s): Fact(None, None, 4)})
    (k,) = env.replacements[s].free_symbols
    assert env.var_to_range[k].lower == 0 and not k.is_positive
    assert env._maybe_evaluate_static(sympy.Ge(k, 1)) is None


def test_multiples_of_multiples() -> None:
    own = Own((24,))
    s = own.tensors[0].shape[0].node.expr
    feed(own.env, {str(s): Fact(None, None, 4)})
    feed(own.env, {str(s): Fact(None, None, 6)})
    assert own.knows(sympy.Eq(Mod(s, 12), 0)) is True
    assert feed(own.env, {str(s): Fact(None, None, 12)}).checked == ()


def test_two_multiples_at_once() -> None:
    own = Own((24,))
    s = own.tensors[0].shape[0].node.expr
    fed = feed(own.env, {}, [parse_formula(f"{s} % 4 == 0"), parse_formula(f"{s} % 6 == 0")])
    assert len(fed.checked) == 2 and own.knows(sympy.Eq(Mod(s, 4), 0)) is True
    assert [str(f) for f in feed(own.env, {str(s): Fact(None, None, 12)}).checked] == []  # the guards say so


def test_an_equality_of_inputs() -> None:
    own = Own((8,), (17,))
    x, y = own.tensors
    feed(own.env, {"y": Fact(None, None, equals=2 * sym("x") + 1)}, names={"x": x.shape[0], "y": y.shape[0]})
    assert own.knows(sympy.Eq(y.shape[0].node.expr, 2 * x.shape[0].node.expr + 1)) is True
    guards = own.env.produce_guards([x, y], [LocalSource("x0"), LocalSource("x1")])
    assert any("size()[0] == " in guard for guard in guards)


def test_an_equality_of_sizes_that_data_decide_replaces_the_later_one() -> None:
    own = Own()
    a, b = own.unbacked(), own.unbacked()
    feed(own.env, {"a": Fact(None, None, equals=sym("b") - 1)}, names={"a": a, "b": b})
    assert own.env.replacements == {b.node._expr: a.node._expr + 1}
    assert own.knows(sympy.Lt(a.node._expr, b.node._expr)) is True


def test_a_constant() -> None:
    own = Own((8,))
    s = own.tensors[0].shape[0]
    feed(own.env, {name_of(s): Fact(8, 8, 0, 8)})
    assert own.tensors[0].shape[0] == 8 and isinstance(own.tensors[0].shape[0].node.maybe_as_int(), int)


def test_relations_and_unions_are_checked() -> None:
    own = Own((8,), (9,))
    names = {"a": own.tensors[0].shape[0], "b": own.tensors[1].shape[0]}
    fed = feed(
        own.env, {"a": Fact(2, None, values=((2, 3), (8, None)))}, [parse_formula("a < b")], names=names
    )
    assert len(fed.checked) == 2
    assert len(own.env.guards) == 2


# ---- facts: refused before anything is touched

# facts, relations, part of the message
REFUSED: list[tuple[dict[str, Fact], list[str], str]] = [
    ({"a": Fact(2, 7)}, [], "excludes"),
    ({"a": Fact(None, None, 3)}, [], "excludes"),
    ({"b": Fact(2, 64), "a": Fact(9, 64)}, [], "excludes"),  # the first one would be fine
    ({"a": Fact(None, None, equals=sym("b"))}, [], "excludes"),
    ({}, ["a > b"], "excludes"),
    ({"u": Fact(20, 30)}, [], "contradicts"),
    ({"u": Fact(2, 30)}, ["u > 10"], "contradicts"),
    ({}, ["u % 2 == 0", "u % 2 == 1"], "contradicts"),
    ({"nobody": Fact(2, 3)}, [], "no symbol 'nobody'"),
]


@pytest.mark.parametrize("facts, relations, part", REFUSED)
@pytest.mark.parametrize("tracked", [False, True])
def test_a_fact_that_cannot_be_is_refused_and_leaves_no_trace(
    facts: dict[str, Fact], relations: list[str], part: str, tracked: bool
) -> None:
    own = Own((8,), (9,), tracked=tracked)
    u = own.unbacked()
    torch._check(u <= 10)
    names = {"a": own.tensors[0].shape[0], "b": own.tensors[1].shape[0], "u": u}
    before = own.state()
    with pytest.raises(FeedbackError, match=part):
        feed(own.env, facts, map(parse_formula, relations), names=names)
    assert own.state() == before


def test_the_state_sees_what_a_fact_touches() -> None:
    own = Own((8,))
    before = own.state()
    feed(own.env, {name_of(own.tensors[0].shape[0]): Fact(2, 9)})
    assert own.state() != before


def test_a_frozen_env_takes_no_check() -> None:
    own = Own((8,))
    name = name_of(own.tensors[0].shape[0])
    own.env.freeze()
    with pytest.raises(FeedbackError, match="no more guards"):
        feed(own.env, {name: Fact(2, 9)})
    assert feed(own.env, {name: Fact(2, None)}).checked == ()  # it follows: nothing to check


def test_names_may_stand_for_terms() -> None:
    own = Own((8,))
    s = own.tensors[0].shape[0]
    fed = feed(own.env, {"twice": Fact(None, 64)}, names={"twice": 2 * s})
    assert [str(f) for f in fed.checked] == [f"{s.node.expr} <= 32"]
    assert feed(own.env, {"five": Fact(5, 5, 0, 5)}, names={"five": 5}) == Fed((), ())


# ---- facts and the exporter


class Rows(torch.nn.Module):
    def __init__(self, tell: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.tell = tell

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if torch.compiler.is_exporting():
            self.tell(x)
        return x.view(2, -1, 3).sum(-1)


def test_facts_told_during_an_export_are_refused_at_run_time() -> None:
    def tell(x: torch.Tensor) -> None:
        feed(x.shape[0].node.shape_env, {"b": Fact(2, 64, 4)}, names={"b": x.shape[0]})

    exported = export(Rows(tell), (torch.ones(8, 3),), dynamic_shapes=({0: Dim.AUTO},)).module()
    assert exported(torch.ones(12, 3)).shape == (2, 6)
    for rows in (10, 68):
        with pytest.raises((AssertionError, RuntimeError)):
            exported(torch.ones(rows, 3))


class Count(torch.nn.Module):
    """The data decide a size."""

    def __init__(self, tell: Callable[[Any], Any]) -> None:
        super().__init__()
        self.tell = tell

    def forward(self, n: torch.Tensor) -> torch.Tensor:
        u: Any = n.item()
        if torch.compiler.is_exporting():
            self.tell(u)
        x = torch.zeros(u)
        return x.view(2, -1) + 1 if u % 2 == 0 else x


def test_a_multiple_makes_an_export_of_an_error() -> None:
    def tell(u: torch.SymInt) -> None:
        feed(u.node.shape_env, {"u": Fact(4, 64, 4)}, names={"u": u})

    with pytest.raises(GuardOnDataDependentSymNode):
        export(Count(lambda u: None), (torch.tensor(8),))
    exported = export(Count(tell), (torch.tensor(8),)).module()
    assert exported(torch.tensor(12)).shape == (2, 6)
    for n in (6, 10, 0, 68):
        with pytest.raises(RuntimeError, match="assertion"):
            exported(torch.tensor(n))


# ---- the oracle


class Asks(torch.nn.Module):
    """Two sizes that the data decide, a condition on them, and a question."""

    def __init__(self, given: Callable[[Any, Any], list[Any]], question: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self.given, self.question = given, question

    def forward(self, n: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        a, b = n.item(), m.item()
        for condition in self.given(a, b):
            torch._check(condition)
        return torch.zeros(4) + (1 if self.question(a, b) else 2)


# given, question, its answer, two sizes that are refused afterwards
HARD: list[tuple[Callable[..., Any], Callable[..., Any], bool, tuple[int, int]]] = [
    (lambda a, b: [a < b, b <= 64], lambda a, b: a < 64, True, (5, 4)),
    (lambda a, b: [a < b, b <= 64], lambda a, b: a >= 64, False, (8, 65)),
    (lambda a, b: [a % 4 == 0], lambda a, b: a % 2 == 0, True, (6, 9)),
    (lambda a, b: [a + b <= 17, a >= 1, b >= 1], lambda a, b: a <= 16, True, (9, 9)),
    (lambda a, b: [a >= 2, b == 2 * a + 1], lambda a, b: b % 2 == 1, True, (4, 8)),
    (lambda a, b: [a >= 0, b > 3 * a], lambda a, b: a < b, True, (5, 9)),
]


@pytest.mark.parametrize("stated, question, answer, refused", HARD)
def test_hard_errors_become_exports(
    stated: Callable[..., Any], question: Callable[..., Any], answer: bool, refused: tuple[int, int]
) -> None:
    sizes = next((a, b) for a in range(4, 20) for b in range(4, 40) if all(stated(a, b)))
    example = torch.tensor(sizes[0]), torch.tensor(sizes[1])
    with pytest.raises(GuardOnDataDependentSymNode):
        export(Asks(stated, question), example)
    with oracle() as solver:
        exported = export(Asks(stated, question), example).module()
    assert answer in solver.answered.values()
    assert exported(*example)[0] == (1 if answer else 2)
    with pytest.raises(RuntimeError, match="assertion"):  # what was relied on is still checked
        exported(torch.tensor(refused[0]), torch.tensor(refused[1]))
    with pytest.raises(GuardOnDataDependentSymNode):  # and the oracle is gone
        export(Asks(stated, question), example)


def test_what_does_not_follow_is_still_an_error() -> None:
    with oracle() as solver, pytest.raises(GuardOnDataDependentSymNode):
        export(Asks(lambda a, b: [a < b], lambda a, b: a < 64), (torch.tensor(8), torch.tensor(9)))
    assert not solver.answered


TORCHS = ShapeEnv._maybe_evaluate_static


def test_nothing_is_installed_by_import() -> None:
    source = (
        "from torch.fx.experimental.symbolic_shapes import ShapeEnv\n"
        "before = dict(vars(ShapeEnv))\n"
        "import anyshape.typecheck.feedback, anyshape.typecheck\n"
        "assert dict(vars(ShapeEnv)) == before\n"
    )
    subprocess.run([sys.executable, "-c", source], check=True)


def test_the_oracle_is_restored_when_nested_and_when_an_exception_passes() -> None:
    assert ShapeEnv._maybe_evaluate_static is TORCHS
    with oracle():
        inside = ShapeEnv._maybe_evaluate_static
        assert inside is not TORCHS
        with pytest.raises(KeyError), oracle():
            raise KeyError
        assert ShapeEnv._maybe_evaluate_static is inside
    assert ShapeEnv._maybe_evaluate_static is TORCHS
    first, second = ExitStack(), ExitStack()
    first.enter_context(oracle())
    second.enter_context(oracle())
    first.close()
    assert ShapeEnv._maybe_evaluate_static is not TORCHS
    second.close()
    assert ShapeEnv._maybe_evaluate_static is TORCHS


def settling() -> AbstractContextManager[None]:
    """What else stands in for torch's method, while a model is exported."""
    return settled_by_other_sizes(lambda condition: False)


@pytest.mark.parametrize("contexts", [(oracle, settling), (settling, oracle), (oracle, oracle)])
def test_contexts_that_overlap_leave_torch_as_it_was(contexts: tuple[Any, Any]) -> None:
    first, second = ExitStack(), ExitStack()
    first.enter_context(contexts[0]())
    second.enter_context(contexts[1]())
    first.close()
    assert ShapeEnv._maybe_evaluate_static is not TORCHS
    second.close()
    assert ShapeEnv._maybe_evaluate_static is TORCHS


def test_an_oracle_is_not_asked_by_other_threads() -> None:
    own = Own()
    question, found = relation(own), list[Any]()
    with oracle():
        thread = threading.Thread(target=lambda: found.append(own.knows(question)))
        thread.start()
        thread.join()
        assert found == [None] and own.knows(question) is True


def relation(own: Own) -> sympy.Basic:
    """a < b <= 64 is known, a < 64 is asked."""
    a, b = own.unbacked(), own.unbacked()
    torch._check(a < b)
    torch._check(b <= 64)
    return sympy.Lt(a.node.expr, 64)


def test_the_last_oracle_that_is_open_is_asked_and_one_alone() -> None:
    own, other = Own(), Own()
    question, foreign = relation(own), relation(other)
    with oracle() as outer, oracle(own.env) as inner:
        assert own.knows(question) is True and other.knows(foreign) is True
    assert len(inner.answered) == len(outer.answered) == 1
    with oracle(other.env):
        assert own.knows(question) is None


def test_answers_are_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    own = Own()
    question = relation(own)
    asked: list[Formula] = []
    decide = Solver._decide

    def counted(self: Solver, formula: Formula, *rest: Any) -> Any:
        asked.append(formula)
        return decide(self, formula, *rest)

    monkeypatch.setattr(Solver, "_decide", counted)
    with oracle():
        for _ in range(3):
            assert own.knows(question) is True
        assert len(asked) == 1
        own.env.constrain_symbol_range(question.lhs, 3, 9)  # what is known has changed
        assert own.knows(sympy.Lt(question.lhs, 20)) is True


def test_what_fails_nearby_needs_no_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """A guard is written in no more time than torch takes; what does follow is still asked for."""
    asked: list[Formula] = []
    follows = Judge.follows

    def counted(self: Judge, formula: Formula, *rest: Any) -> bool:
        asked.append(formula)
        return follows(self, formula, *rest)

    monkeypatch.setattr(Judge, "follows", counted)
    own = Own((8,), (20,))
    x, y = own.tensors
    with oracle():
        assert x.shape[0] < y.shape[0]
        assert y.shape[0] <= 64
        assert x.shape[0] % 4 == 0
        assert not asked and len(own.env.guards) == 3
        assert x.shape[0] % 2 == 0
        assert x.shape[0] < 64
        assert len(asked) == 2 and len(own.env.guards) == 3


def test_answers_of_the_oracle_do_not_outlive_it() -> None:
    own = Own()
    question = relation(own)
    condition = own.env.create_symboolnode(question)
    assert guard_or_false(condition) is False
    with oracle():
        assert guard_or_false(condition) is True
    assert guard_or_false(condition) is False


def test_the_questions_that_decide_whether_a_guard_is_kept_are_torchs_own() -> None:
    own = Own((8,), (20,))
    x, y = own.tensors
    with oracle():
        assert x.shape[0] < y.shape[0]
        assert y.shape[0] <= 64
        count = len(own.env.guards)
        assert x.shape[0] < 64
        assert len(own.env.guards) == count  # it follows
        guards = own.env.produce_guards(own.tensors, [LocalSource("x0"), LocalSource("x1")])
    assert "L['x0'].size()[0] < L['x1'].size()[0]" in guards


def test_a_question_takes_its_budget_and_no_more() -> None:
    own = Own()
    a, b, c = own.unbacked(), own.unbacked(), own.unbacked()
    for size in (a, b, c):
        torch._check(size >= 2)
    torch._check(a * a * a + b * b * b != 7 * c)
    hard = sympy.Ne(a.node.expr**3 + b.node.expr**3, c.node.expr**3)  # Fermat
    with oracle(budget_ms=200) as solver:
        started = time.monotonic()
        assert own.knows(hard) is None
        assert time.monotonic() - started < 2.0
    assert not solver.answered


# ---- property tests


NAMES = "abc"


def check_answer(stated: list[Formula], question: Formula) -> bool | None:
    """What the oracle answers holds, or fails, wherever in a box all that was stated holds."""
    own = Own()
    sizes = {name: own.unbacked() for name in NAMES}
    own_names = {name: sym(name_of(size)) for name, size in sizes.items()}
    symbols = symbols_of(own.env)
    try:
        conditions = [Writer(symbols).formula(rewrite(f, own_names)) for f in (*stated, question)]
    except NotRead:
        return None
    points = [p for p in box(NAMES, 0, 7) if holds_at(all_of(stated), p)]
    if not points:  # torch does not expect to be told what cannot be
        return None
    for size in sizes.values():
        own.env.constrain_symbol_range(size.node.expr, 0, 7)
    for condition in conditions[:-1]:
        own.env.guard_or_defer_runtime_assert(condition, "stated")
    with oracle():
        answer = own.knows(conditions[-1])
    if answer is not None:
        assert all(holds_at(question, p) is answer for p in points), answer
    return answer


# Linear, and over constant divisors: of a*b + a == 0 torch itself concludes b == -1, and it divides by a size
# that it has replaced by 0.
LINEAR = st.builds(
    lambda factors, constant: total((*(f * sym(n) for n, f in zip(NAMES, factors, strict=True)), constant)),
    st.lists(st.integers(-3, 3), min_size=3, max_size=3),
    st.integers(-9, 9),
)
TERMS = st.one_of(LINEAR, st.builds(lambda d, k: d % k, LINEAR, st.integers(2, 6)),
                  st.builds(lambda d, k: d // k, LINEAR, st.integers(2, 6)))
ATOMS = st.builds(lambda compare, a, b: compare(a, b), st.sampled_from([eq, ne, ge, lt]), TERMS, TERMS)
JOINED = st.builds(lambda join, a, b: join((a, b)), st.sampled_from([all_of, any_of]), ATOMS, ATOMS)
STATED = st.one_of(ATOMS, JOINED)


@given(st.lists(STATED, min_size=1, max_size=3), STATED)
@settings(max_examples=60, deadline=None)
def test_answers_agree_with_evaluation(stated: list[Formula], question: Formula) -> None:
    check_answer(stated, question)


def test_a_wrong_answer_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    stated, question = [parse_formula("a + b <= 7")], parse_formula("2*a + b <= 9")
    assert check_answer(stated, question) is None
    assert check_answer(stated, parse_formula("2*a + b <= 14")) is True
    monkeypatch.setattr(Solver, "_decide", lambda self, formula, given, hints: True)
    with pytest.raises(AssertionError, match="True"):
        check_answer(stated, question)


def holds_at(formula: Formula, values: dict[str, int]) -> bool:
    try:
        return holds(formula, values)
    except ZeroDivisionError:
        return False


FACTS = st.builds(
    lambda low, width, divisor, residue: Fact(low, low + width, divisor, residue % divisor),
    st.integers(0, 9), st.integers(0, 40), st.sampled_from([1, 1, 2, 3, 4]), st.integers(0, 3),
)  # fmt: skip
QUESTIONS = [
    "a % 2 == 0", "a <= 30", "a < b", "a + b >= 4", "2*a % 4 == 0", "a // 2 >= 1", "a != 5", "a == b",
]  # fmt: skip


@given(FACTS, FACTS, st.sampled_from(QUESTIONS), st.booleans(), st.booleans())
@settings(max_examples=100, deadline=None)
def test_what_is_known_after_facts_holds_where_the_facts_hold(
    first: Fact, second: Fact, text: str, ask_first: bool, backed: bool
) -> None:
    def allows(fact: Fact, value: int) -> bool:
        assert fact.min is not None and fact.max is not None
        return fact.min <= value <= fact.max and value % fact.divisor == fact.remainder

    points = [
        {"a": a, "b": b} for a in range(60) for b in range(60) if allows(first, a) and allows(second, b)
    ]
    points = [p for p in points if min(p.values()) >= 2] if backed else points
    own = Own((points[0]["a"],), (points[0]["b"],)) if backed and points else Own()
    if backed and not points:
        return
    sizes = [t.shape[0] for t in own.tensors] if backed else [own.unbacked(), own.unbacked()]
    names = dict(zip("ab", sizes, strict=True))
    symbols = {name: sym(str(size.node._expr)) for name, size in names.items()}
    question = Writer(symbols_of(own.env)).formula(rewrite(parse_formula(text), symbols))
    if ask_first:
        own.knows(question)
    if not points:
        with pytest.raises(FeedbackError):
            feed(own.env, {"a": first, "b": second}, names=names)
        return
    feed(own.env, {"a": first, "b": second}, names=names)
    answer = own.knows(question)
    if answer is not None:
        assert all(holds(parse_formula(text), p) is answer for p in points), answer


@given(formulas("abc"))
@settings(max_examples=150, deadline=None)
def test_conditions_go_to_sympy_and_back(formula: Formula) -> None:
    symbols = {name: sympy.Symbol(name, integer=True) for name in "abc"}
    ranges = {"a": (0, 4), "b": (0, 4)}
    try:
        back = formula_of(Writer(symbols, ranges).formula(formula))
    except (NotRead, ZeroDivisionError, AssertionError):  # torch divides by no constant zero, and no negative
        return
    if back is not None:
        for values in box("abc", 0, 4):
            assert holds_at(back, values) is holds_at(formula, values), values


def test_other_numbers_have_no_counterpart() -> None:
    assert size_of(sympy.Symbol("f", real=True)) is None  # type: ignore[arg-type]
    assert formula_of(sympy.Symbol("f", real=True) < 3) is None
    s = sympy.Symbol("s", integer=True, positive=True)
    assert size_of(FloorDiv(s, 2) + 1) == sym("s") // 2 + 1
    assert size_of(7) == 7 and size_of("s") == sym("s")
    with pytest.raises(NotRead):
        Writer({"s": s}).formula(parse_formula("isqrt(s) == 3"))


# ---- what a ShapeEnv knows


def test_what_a_shape_env_knows_becomes_assumptions() -> None:
    own = Own((8, 6), (16, 6))
    x, y = own.tensors
    assert y.shape[0] == 2 * x.shape[0]  # guards
    assert x.shape[1] % 2 == 0
    assert x.shape[0] < 64
    inputs = inputs_of({"x": x, "y": y})
    texts = assumptions_of(own.env)
    mentioned = {*free_symbols(all_of(known(own.env)))}
    s, t = (size.node.expr for size in x.shape)
    assert f"{s} <= 63" in texts and f"{t} % 2 == 0" in texts
    assert inputs[0] == f"x: float32[{s}, {t}]" and f"2*{s}" in inputs[1]

    def model(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return y.view(2, x.shape[0], -1) + x.view(x.shape[0], 2, -1).sum(1).repeat(1, 2)

    names = {str(s), str(t), str(y.shape[1].node.expr)}
    report = check(model, inputs, [*assumptions_of(own.env, names), f"{y.shape[1].node.expr} == {t}"])
    assert report.verdict == "proved", report
    assert check(model, inputs).verdict == "refined"
    assert names <= mentioned | names
    assert all(free_symbols(parse_formula(text)) <= names for text in assumptions_of(own.env, names))


def test_inputs_of_every_kind_have_lines() -> None:
    own = Own((8, 6))
    (x,) = own.tensors
    s, t = x.shape
    lines = inputs_of({
        "x": x.to(torch.int64), "n": s + 1, "d": {"a b": x, 0: 3}, "xs": [x, None], "flag": True, "how": "up",
    })
    size = f"[{s.node.expr}, {t.node.expr}]"
    assert lines == (
        f"x: int64{size}", f"n: int = {s.node.expr} + 1", f'd["a b"]: float32{size}', "d[0]=3",
        f"xs[0]: float32{size}", "xs[1]=None", "flag=True", 'how="up"',
    )
    with pytest.raises(SpecError, match="of type object"):
        inputs_of({"x": object()})


def test_facts_are_known_afterwards() -> None:
    own = Own((8,), (9,))
    a, b = (t.shape[0].node.expr for t in own.tensors)
    feed(own.env, {str(a): Fact(2, 64, 4)}, [lt(sym(str(a)), sym(str(b)))])
    holding = all_of(known(own.env))
    live = {name: sym(name) for name in free_symbols(holding)}
    assert parse_formula(f"{a} % 4 == 0") not in known(own.env)  # it is said of the term that replaces it
    assert str(a) in live and f"{size_of(own.env.replacements[a])}" in str(holding)


# ---- lemmas


def follows(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if x.shape[0] < y.shape[0] + 5:
        x = x + 1
    return x.sum() + y.sum()


def test_lemmas_are_what_the_program_asks_and_follows() -> None:
    found = lemmas(follows, "x: float32[P]; y: float32[Q]", "P < Q")
    assert [str(f) for f in found.given] == ["P < Q"]
    assert [str(f) for f in found.proved] == ["P <= Q + 4"]
    assert not lemmas(follows, "x: float32[P]; y: float32[Q]").proved
    other = lemmas(lambda x: x.view(2, -1), "x: float32[b, h]", "b % 4 == 0")
    assert [str(f) for f in other.given] == ["b % 4 == 0"]
    assert [str(f) for f in other.proved] == ["b*h % 2 == 0"]


def test_torch_compile_takes_lemmas() -> None:
    specs = pytest.importorskip("torch.fx.experimental.dynamic_spec", reason="torch 2.12 has no ShapesSpec")
    p, q = specs.ShapeVar("P"), specs.ShapeVar("Q")

    def compiled(assumptions: list[torch.SymBool]) -> Any:
        torch._dynamo.reset()
        tensors = {"x": specs.TensorSpec([p]), "y": specs.TensorSpec([q])}
        spec = specs.ShapesSpec(tensors, assumptions=assumptions)
        option = "dynamic_shapes" if INSTALLED >= (2, 14) else "shapes_spec"
        return torch.compile(follows, fullgraph=True, backend="eager", **{option: spec})

    with pytest.raises(torch._dynamo.exc.UserError, match="data-dependent"):
        compiled([p < q])(torch.ones(3), torch.ones(4))
    taken = compiled(lemmas(follows, "x: float32[P]; y: float32[Q]", "P < Q").for_torch({"P": p, "Q": q}))
    assert taken(torch.ones(3), torch.ones(4)) == 10
    with pytest.raises(RuntimeError):
        taken(torch.ones(30), torch.ones(4))
    with oracle():  # which needs no lemmas
        assert compiled([p < q])(torch.ones(3), torch.ones(4)) == 10
    torch._dynamo.reset()


