"""Operators on lists of tensors, judged by torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from absent import found
from rules.judge import Judge

from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Tensor
from anyshape.constraints.rules.lists import RULES, UNARY
from anyshape.typecheck import check
from anyshape.typecheck.testing.differential import Case, T, check_case

judge = Judge(Rules(RULES))
aten = torch.ops.aten
i64, flag = torch.int64, torch.bool
x, y = T("a b"), T("c", i64)


def case(name: str, *args: Any, **kwargs: Any) -> Case:
    op = f"_foreach_{name}"
    return Case(op, getattr(torch, op, None) or found(aten, op), args, kwargs)


CASES = [
    *(case(name, tensors) for name in UNARY for tensors in ([T("a b", permute=(1, 0)), T("")], [])),
    *(case(f"{name}_", [x, y]) for name in ("neg", "sqrt", "zero")),
    *(
        case(name, *lists)
        for name in ("add", "sub", "mul", "div", "clamp_min", "clamp_max", "maximum", "minimum", "pow")
        for lists in (
            ([x, y], [T("d b"), T("")]), ([x, y], [x]), ([x, y], 2.5),
            ([x, y], [1.0, 2.0]), ([x, y], [1.0]), ([], 1.0),
            ([T("a b", permute=(1, 0))], [T("a b", permute=(1, 0))]),
        )
    ),
    *(case(f"{name}_", [x, y], [T("d b"), T("d", i64)]) for name in ("add", "mul", "div", "copy")),
    *(case(name, [x, y], number) for name in ("add", "mul", "div") for number in (T(""), T("a"))),
    case("add", [x], [x], alpha=2),
    case("pow", 2.0, [x, y]),
    *(
        case(name, [x], [T("d b")], [T("b")], *numbers)
        for name in ("addcdiv", "addcmul")
        for numbers in ((), (2.0,), ([2.0],), ([1.0, 2.0],), (T("n"),), (T("n m"),))
    ),
    case("lerp", [x], [T("d b")], [T("b")]),
    case("lerp", [x, x], [x, x], [0.5, 0.2]),
    case("lerp", [x, x], [x, x], 0.5),
    case("lerp", [x], [x, x], 0.5),
    case("clone", [T("a b", permute=(1, 0))]),
    case("clone", []),
    case("copy", [T("a b", permute=(1, 0))], [T("c")]),
    case("max", [x, T("n")]),
    case("norm", [x, T("n")]),
    case("norm", [x, T("n")], float("inf")),
    case("norm", [x, y], 2, torch.float64),
    case("powsum", [x], 2),
    case("powsum", [y], 2),
    case("mm", [x, x], [T("c d"), T("b 2")]),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_torch_judges(case: Case) -> None:
    judge(case)


def in_place(x: Any, y: Any) -> Any:
    given = [x.clone(), y.clone()]
    assert torch.foreach.add_(given, [x, y], alpha=2) is given
    return torch.foreach.norm(given)


@pytest.mark.skipif(not hasattr(torch, "foreach"), reason="torch.foreach is not in this release of torch")
@pytest.mark.parametrize("target, accepts", [
    (lambda x, y: torch.foreach.exp([x, y]), lambda b, c: True),
    (lambda x, y: torch.foreach.max([x, y]), lambda b, c: True),
    (lambda x, y: torch.foreach.mul([x], [y]), lambda b, c: b == c or 1 in (b, c)),
    (lambda x, y: torch.foreach.mul([x], [x, y]), lambda b, c: False),
    (in_place, lambda b, c: True),
], ids=["exp", "max", "mul", "lengths", "add_"])  # fmt: skip
def test_functions_for_lists_are_not_those_of_the_same_name(target: Any, accepts: Any) -> None:
    report = check(target, "x: float32[a, b]; y: float32[c]")
    assert report.accepts.exact
    for b in range(1, 4):
        for c in range(1, 4):
            assert report.accepts.holds(a=2, b=b, c=c) == accepts(b, c)


def test_every_rule_is_accepted_and_refused() -> None:
    assert judge.one_sided(CASES) == {}


def test_the_judge_catches_a_wrong_rule() -> None:
    wrong = Rules({"_foreach_add": lambda c, input, other: tuple(Tensor(t.shape, t.dtype) for t in input)})
    with pytest.raises(AssertionError):
        check_case(case("add", [x, y], [T("d b"), T("")]), wrong)
