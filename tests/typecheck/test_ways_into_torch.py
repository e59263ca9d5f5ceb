"""The ways to tell torch 2.13 what is known of sizes, what comes of each, and ours where one has a defect."""

from __future__ import annotations

import io
from typing import Any

import pytest
import sympy
import torch
from torch.export import Dim, ShapesCollection, export
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.value_ranges import ValueRanges

from anyshape.constraints.ir.language import Fact
from anyshape.typecheck import export as export_exactly
from anyshape.typecheck.feedback import FeedbackError, feed


class Relu(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.relu()


class Halves(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(2, x.shape[0] // 2, -1).sum(0)


def sized(hint: int = 12) -> tuple[ShapeEnv, torch.SymInt, sympy.Symbol]:
    """A ShapeEnv with one size, as torch and as sympy have it."""
    env = ShapeEnv()
    mode = torch._subclasses.FakeTensorMode(shape_env=env)
    context = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC])
    size = mode.from_tensor(torch.empty(hint), symbolic_context=context).shape[0]
    return env, size, size.node.expr


def static(env: ShapeEnv, expression: Any) -> Any:
    """What the ShapeEnv says without a guard: true, false, or nothing."""
    return env._maybe_evaluate_static(expression)


def accepts(module: Any, rows: int) -> bool:
    try:
        module(torch.zeros(rows, 3))
    except (AssertionError, RuntimeError):
        return False
    return True


@pytest.mark.parametrize(
    "tell",
    [
        lambda env, s: env.constrain_symbol_range(s, 8, 20),
        lambda env, s: env.var_to_range.update({s: env.var_to_range[s] & ValueRanges(8, 20)}),
    ],
)
def test_a_range_is_believed_without_a_guard_and_not_by_who_asked_before(tell: Any) -> None:
    env, _, s = sized()
    assert static(env, s >= 8) is None
    tell(env, s)
    assert not env.guards
    assert static(env, s >= 8) is None, "the answer of before is kept"
    env._maybe_evaluate_static.cache_clear()
    assert static(env, s >= 8) == sympy.true


def test_feeding_a_range_leaves_a_guard_and_no_stale_answer() -> None:
    env, _, s = sized()
    assert static(env, s >= 8) is None
    feed(env, {str(s): Fact(8, 20)})
    assert static(env, s >= 8) == sympy.true
    assert env.guards


def test_a_range_that_excludes_the_hint_is_left_behind() -> None:
    env, _, s = sized(12)
    with pytest.raises(Exception, match="12 not in"):
        env.constrain_symbol_range(s, 20, 30)
    assert env.var_to_range[s].lower == 20
    env, _, s = sized(12)
    before = env.var_to_range[s]
    with pytest.raises(FeedbackError, match="excludes the sizes"):
        feed(env, {str(s): Fact(20, 30)})
    assert env.var_to_range[s] == before


def test_divisibility_is_a_replacement() -> None:
    env, _, s = sized()
    env._add_divisible(sympy.Mod(s, 4))
    env._maybe_evaluate_static.cache_clear()
    assert static(env, sympy.Eq(s % 2, 0)) is None, "of 4 | s it does not conclude 2 | s"
    env, _, s = sized()
    feed(env, {str(s): Fact(4, None, 4, 0)})
    assert static(env, sympy.Eq(env.replace(s) % 2, 0)) == sympy.true


def test_a_check_is_a_guard() -> None:
    env, size, s = sized()
    torch._check(size <= 20)
    assert len(env.guards) == 1
    assert static(env, s <= 20) == sympy.true


def test_auto_is_applied_after_tracing() -> None:
    hints = ({0: Dim.AUTO(min=2, max=64)},)
    program = export(Relu(), (torch.zeros(4, 3),), dynamic_shapes=hints)
    ranges = [*program.range_constraints.values()]
    assert [(r.lower, r.upper) for r in ranges] == [(2, 64)]


def test_the_root_of_a_derived_dim_is_not_enforced() -> None:
    shapes = ({0: 4 * Dim("_b", min=1, max=16)},)
    program = export(Relu(), (torch.zeros(8, 3),), dynamic_shapes=shapes).module()
    assert [rows for rows in (4, 8, 9, 62, 64) if accepts(program, rows)] == [4, 8, 9, 62, 64]
    ours = export_exactly(Relu(), "x: float32[b, 3]", "b % 4 == 0; b <= 64".split("; ")).program.module()
    assert [rows for rows in (4, 8, 9, 62, 64, 68) if accepts(ours, rows)] == [4, 8, 64]


def test_a_collection_is_taken_as_dynamic_shapes() -> None:
    x = torch.zeros(8, 3)
    shapes = ShapesCollection()
    shapes[x] = {0: Dim("b", min=2, max=9)}
    program = export(Relu(), (x,), dynamic_shapes=shapes).module()
    assert accepts(program, 9) and not accepts(program, 10)


def test_fake_inputs_of_ones_own_are_ignored() -> None:
    env = ShapeEnv()
    mode = torch._subclasses.FakeTensorMode(shape_env=env)
    context = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC, DimDynamic.STATIC])
    x = mode.from_tensor(torch.zeros(8, 3), symbolic_context=context)
    env.constrain_symbol_range(x.shape[0].node.expr, 8, 9)
    for told, varies in ((({0: Dim("b")},), True), (None, False)):
        program = export(Relu(), (x,), dynamic_shapes=told)
        (value,) = [n.meta["val"] for n in program.graph.nodes if n.op == "placeholder"]
        assert value.fake_mode.shape_env is not env
        assert isinstance(value.shape[0], torch.SymInt) is varies
        assert [*program.range_constraints.values()] == ([ValueRanges(0, int_oo)] if varies else [])


def test_make_fx_uses_a_shape_env_of_ones_own() -> None:
    env = ShapeEnv()
    mode = torch._subclasses.FakeTensorMode(shape_env=env, allow_non_fake_inputs=True)
    context = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC, DimDynamic.STATIC])
    x = mode.from_tensor(torch.zeros(8, 3), symbolic_context=context)
    feed(env, {str(x.shape[0].node.expr): Fact(4, None, 4, 0)})
    graph = make_fx(Halves(), tracing_mode="real")(x)
    values = [n.meta["val"] for n in graph.graph.nodes if n.op == "placeholder"]
    assert values[0].fake_mode.shape_env is env


def test_edited_ranges_are_enforced_and_survive_saving() -> None:
    program = export(Relu(), (torch.zeros(8, 3),), dynamic_shapes=({0: Dim("b", min=2, max=99)},))
    (symbol,) = program.range_constraints
    program.range_constraints[symbol] = ValueRanges(2, 9)
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    for each in (program.module(), torch.export.load(file).module()):
        assert accepts(each, 9) and not accepts(each, 10)
