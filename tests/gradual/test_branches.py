"""Conditions on shapes: decided for all inputs, or told where they differ; and programs without them."""

from __future__ import annotations

import json
import re
import sys
from itertools import product
from typing import Any

import pytest
import torch
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from torch.fx import symbolic_trace
from torch.fx.tensor_type import Dyn, TensorType

from anyshape.constraints.terms.formula import holds
from anyshape.constraints.terms.formula_text import parse_formula
from anyshape.typecheck import BranchOn, OpenBranch, branches, eliminate
from anyshape.typecheck.cli.main import main


class Asking(torch.nn.Module):
    """Conditions on ranks, sizes, lengths of tuples, and on what a size is."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 4)

    def forward(self, x):
        b, t, _ = x.shape
        if len(x.shape) != 3:
            raise ValueError
        if x.dim() == 4:
            x = x[0]
        y = self.linear(x)
        if t > 4 and b == 2:
            y = y.view(b * t, -1)
        big = t > 7
        if isinstance(b, int) and big:
            y = y + 1
        if self.training:
            y = y * 2
        return y if x.size(1) % 2 == 0 else -y


def told(found: tuple[BranchOn, ...]) -> dict[str, str]:
    return {b.text: str(b).removeprefix(f"{b.text}: ") for b in found}


def test_every_condition_with_its_outcome() -> None:
    found = branches(Asking(), "x: [b, t, 8]")
    assert told(found) == {
        "len(x.shape) != 3": "always False",
        "x.dim() == 4": "always False",
        "t > 4": "True where 5 <= t, False where t <= 4",
        "b == 2": "True where b == 2 and 5 <= t, False where b != 2 and 5 <= t",
        "t > 7": "True where 8 <= t, False where t <= 7",
        "isinstance(b, int)": "always True",
        "big": "True where 8 <= t, False where t <= 7",
        "x.size(1) % 2 == 0": "True where t % 2 == 0, False where t % 2 == 1",
    }
    assert [b.origin.line for b in found] == sorted(b.origin.line for b in found)
    assert not any("training" in b.text for b in found)
    for branch in found:
        assert branch.replayed in (True, None) and (branch.text == "t > 7") == (branch.replayed is None)
        for side, at in ((branch.when_true, branch.true_at), (branch.when_false, branch.false_at)):
            assert (side is False) == (at is None)


def test_assumptions_decide() -> None:
    found = told(branches(Asking(), "x: [b, t, 8]", "t <= 4; t % 2 == 0"))
    assert found["t > 4"] == "always False" and found["x.size(1) % 2 == 0"] == "always True"
    assert "b == 2" not in found  # nothing gets there


def test_what_is_required_before_a_condition_counts() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        y = x.view(-1, 4)
        return y if x.shape[0] * x.shape[1] % 2 == 0 else -y

    (found,) = branches(program, "x: [b, h]")
    assert found.outcome is True


def test_of_what_was_not_looked_at_nothing_is_claimed() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        if x.dim() == 2 and x.shape[0] > 2:
            open("no_such_file").close()
        return x if len(x.shape) == 2 else -x

    found = branches(program, "x: [b, h]")
    assert found and all(b.outcome is None and "no_such_file" in b.missed for b in found)


def test_truths_in_a_graph() -> None:
    class Truths(torch.nn.Module):
        def forward(self, x: TensorType([Dyn, 4])):
            size = x.size()
            return size[-1] > 1, x.dim() == 2, size[0] < 3

    graph_module = symbolic_trace(Truths())
    next(iter(graph_module.graph.nodes)).type = TensorType([Dyn, 4])
    found = branches(graph_module)
    assert [str(b) for b in found] == [
        "gt = getitem > 1: always True",
        "eq = dim == 2: always True",
        "lt = getitem_1 < 3: True where _1 <= 2, False where 3 <= _1",
    ]
    assert all(b.replayed for b in found)


@pytest.mark.parametrize("text, inputs, assume, answer", [
    ("x.sum(1) if x.dim() == 3 else x.sum()", "x: [...]", "",
     {"x.dim() == 3": "True where rank(x) == 3, False where rank(x) != 3"}),
    ("x * 2 if len(x.shape) > 2 else self_conv(x)", "x: [...]", "rank(x) <= 4",
     {"len(x.shape) > 2": "True where 3 <= rank(x), False where rank(x) <= 2"}),
    ("x[0] if x.dim() == 3 else x", "x: [...]", "rank(x) == 3", {"x.dim() == 3": "always True"}),
    ("x if len(x.shape[1:]) == 2 and x.size(-1) > 4 else -x", "x: [*r, 3]", "rank(r) == 2",
     {"len(x.shape[1:]) == 2": "always True", "x.size(-1) > 4": "always False"}),
])  # fmt: skip
def test_conditions_on_ranks(
    tmp_path: Any, text: str, inputs: str, assume: str, answer: dict[str, str]
) -> None:
    path = tmp_path / "ranks.py"
    path.write_text(f"self_conv = abs\ndef program(x):\n    return {text}\n")
    found = branches(f"{path}:program", inputs, assume)
    assert told(found) == answer and all(b.replayed for b in found)


def test_branches_on_ranks_are_eliminated() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return x[0] * 2 if x.dim() >= 3 else x.sum(-1)

    graph_module = eliminate(program, "x: [...]", "rank(x) >= 3")
    for sizes in ((2, 3, 4), (1, 2, 3, 4), (2, 1, 1, 1, 3)):
        x = torch.randn(sizes)
        assert torch.equal(graph_module(x), program(x))


def test_the_command(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "program.py"
    path.write_text("def program(x):\n    return x if x.shape[0] > 3 else -x\n")
    assert main(["branches", f"{path}:program", "-i", "x: [b]"]) == 1
    said = capsys.readouterr().out
    assert "program.py:2: x.shape[0] > 3" in said and "True where 4 <= b, as at b=" in said
    assert main(["branches", f"{path}:program", "-i", "x: [b]", "-a", "b >= 4", "--format", "json"]) == 0
    (data,) = json.loads(capsys.readouterr().out)
    assert data["outcome"] is True and data["line"] == 2 and data["replayed"] is True


# ---- conditions against what Python makes of them at all small sizes

CONDITIONS = (
    "x.shape == y.shape", "x.shape != y.shape", "x.size() == (2, 3)", "tuple(x.shape) != (4, 2)",
    "z.shape == (2,)", "max(x.shape) < 4", "2 in x.shape", "not x.shape[0] > 2",
    "x.shape[1:].numel() == 4", "z.dim() > 1",
    "all(s > 1 for s in z.shape)", "x.shape[:1] == y.shape[1:]", "len(z.shape[1:]) == 1",
    "z.shape[-1] % 2 == 0", "isinstance(z.shape[0], int)", "(3,) == z.shape[:1]",
    "x.shape[0] * 2 == y.shape[0] + 1", "x.numel() > 6",
)  # fmt: skip
BEFORE = ("x", "x[0]", "x.narrow(1, 0, 2)", "x.sum(2)", "x @ y", "x + y", "x.view(2, -1)", "x.chunk(2)[0]")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("condition", CONDITIONS)
@given(st.sampled_from(BEFORE))
@settings(max_examples=4, deadline=None)
def test_both_sides_are_exact(
    tmp_path_factory: pytest.TempPathFactory, condition: str, before: str
) -> None:
    path = tmp_path_factory.mktemp("conditions") / "program.py"
    path.write_text(f"def program(x, y):\n    z = {before}\n    return z if {condition} else -z\n")
    found = branches(f"{path}:program", "x: [a, b]; y: [c, d]", "a <= 4; b <= 4; c <= 4; d <= 4")
    (told,) = [b for b in found if b.text == condition.removeprefix("not ")] or [None]
    for sizes in product(range(1, 5), repeat=4):
        a, b, c, d = sizes
        names: dict[str, Any] = {"x": torch.zeros(a, b), "y": torch.zeros(c, d)}
        try:
            names["z"] = eval(before, names)
            truth = eval(condition.removeprefix("not "), names)
        except (RuntimeError, IndexError):
            truth = None
        values = dict(zip("abcd", sizes, strict=True))
        sides = (False, False)
        if told is not None:
            sides = holds(told.when_true, values), holds(told.when_false, values)
        assert sides == (truth is True, truth is False), (condition, before, values, str(told))
    assert told is None or (told.replayed is not False and not told.on_data)


@pytest.mark.skipif(
    sys.version_info >= (3, 12), reason="CPython 3.12 traces no instructions where a profiler is set"
)
def test_turns_of_a_loop_that_is_looked_at_at_once_are_told_apart() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        for i in range(x.shape[0]):
            x = x + 1 if i > 2 else x * 2
        return x

    (found,) = branches(program, "x: [a]")
    assert found.text == "i > 2" and found.on_data and found.outcome is None


# ---- elimination


def test_the_way_that_is_refused_is_not_taken_for_the_only_one() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.bmm(x, x) if x.shape[0] > 2 else -x

    with pytest.raises(OpenBranch):
        eliminate(program, "x: [a, b]")
    x = torch.randn(2, 3)
    assert torch.equal(eliminate(program, "x: [a, b]", "a <= 2")(x), -x)


def test_a_branch_that_is_left_is_named_with_what_to_assume() -> None:
    with pytest.raises(OpenBranch) as raised:
        eliminate(Asking(), "x: [b, t, 8]")
    assert '"5 <= t" or "t <= 4"' in raised.value.hint and raised.value.origin.file == __file__


CLASSES = [
    "t <= 4 and t % 2 == 1", "t % 2 == 0 and t <= 3", "t >= 8 and b >= 3 and t % 2 == 0", "b == 2 and t == 9",
]  # fmt: skip


@pytest.mark.parametrize("given_", CLASSES)
@given(st.data())
@settings(max_examples=10, deadline=None)
def test_elimination_keeps_results_bit_for_bit(given_: str, data: st.DataObject) -> None:
    torch.manual_seed(0)
    model = Asking()
    graph_module = eliminate(model, "x: [b, t, 8]", given_)
    formula = parse_formula(given_)
    sizes = [(b, t) for b in range(1, 7) for t in range(1, 20) if holds(formula, {"b": b, "t": t})]
    b, t = data.draw(st.sampled_from(sizes))
    x = torch.randn(b, t, 8)
    assert torch.equal(graph_module(x), model(x))


STEPS = (
    "x = x + x.shape[0]",
    "x = x.transpose(0, 1) if x.shape[0] > {n} else x * 2",
    "x = x[: max(x.shape[0] - {n}, 1)]",
    "x.add_(1) if x.dim() == {n} else x.mul_(2)",
    "x = torch.cat([x, x]) if x.shape[1] % 2 == {n} % 2 else x - 1",
    "for i in range(min(x.dim(), {n})): x = x * (i + 1)",
    "x = x.view(x.shape[1], -1) if isinstance(x.shape[0], int) else x",
)


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(1, 4)), min_size=1, max_size=4), st.data())
@settings(max_examples=25, deadline=None)
def test_random_programs_keep_their_results(steps: list[tuple[str, int]], data: st.DataObject) -> None:
    """Of the branches that are not decided that side is assumed which the sizes take, until none is left."""
    body = "\n".join(f"    {step.format(n=n)}" for step, n in steps)
    names: dict[str, Any] = {"torch": torch}
    exec(f"def program(x):\n    x = x * 1\n{body}\n    return x", names)
    sizes = {"b": data.draw(st.integers(1, 6)), "t": data.draw(st.integers(1, 6))}
    x = torch.randn(sizes["b"], sizes["t"])
    try:
        expected = names["program"](x.clone())
    except (RuntimeError, IndexError):
        reject()
    assume: list[str] = []
    while True:
        try:
            graph_module = eliminate(names["program"], "x: [b, t]", assume)
            break
        except OpenBranch as undecided:
            one, other = re.findall(r'"([^"]*)"', undecided.hint)
            assume.append(one if holds(parse_formula(one), sizes) else other)
    assert torch.equal(graph_module(x.clone()), expected)
