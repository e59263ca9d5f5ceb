"""Rules that expand, repeat and move elements, judged by torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from anyshape.constraints.engine.generate import Generator
from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Tensor
from anyshape.constraints.ir.system import Domain
from anyshape.constraints.rules.repeating import RULES
from anyshape.constraints.terms.dims import sym
from anyshape.constraints.terms.formula import ge
from anyshape.typecheck.testing.differential import Case, D, T, check_case

X = torch.Tensor
rules = Rules(RULES)
i32, i64 = torch.int32, torch.int64
TURNED = T("a b c", permute=(2, 0, 1))

MIXED = [
    Case("expand", X.expand, (T("a b"), D("x"), D("y"))),
    Case("expand", X.expand, (T("a b"), D("x"), D("y-1"), D("z-1")), where="y z"),
    Case("expand", X.expand, (T("a b"), D("x-2"), D("y-2"))),
    Case("expand", X.expand, (T("a b"), D("x-2"), D("y-2"), D("z-2"))),
    Case("broadcast_to", torch.broadcast_to, (T("a 2"), (D("x-2"), -1))),
    Case("expand", X.expand, (T("a b", permute=(1, 0)), (-1, D("x")))),
    Case("expand_as", X.expand_as, (T("a 1"), T("x y z"))),
    Case("broadcast_to", torch.broadcast_to, (T("a b"), (D("x"), D("y"), -1))),
    Case("broadcast_tensors", torch.broadcast_tensors, (T("a b"), T("c 1 d"))),
    Case("repeat", X.repeat, (T("a b"), D("x"), D("y-2"), 3)),
    Case("tile", torch.tile, (T("b"), (D("x-1"), 3))),
    Case("repeat_interleave", torch.repeat_interleave, (T("a b"), D("x-1"))),
    Case("repeat_interleave", torch.repeat_interleave, (T("a b"), D("x"), 1), {"output_size": D("y")}),
    Case("repeat_interleave", torch.repeat_interleave, (T("a b"), T("x", i64, fill=2), 1)),
    Case("repeat_interleave", torch.repeat_interleave, (T("a b"), T("x", i32, fill=2))),
    Case("diagonal_scatter", torch.diagonal_scatter, (T("a b c", permute=(1, 0, 2)), T("c d"), 1)),
    Case("roll", torch.roll, (T("a b"), 1, 4)),
    Case("roll", torch.roll, (T("a b"), (1, 1), (4, 0))),
]

ACCEPTED = [
    Case("expand", X.expand, (T("1 b c"), D("a"), -1, D("c"))),
    Case("expand", X.expand, (T(""), D("a"))),
    Case("broadcast_tensors", torch.broadcast_tensors, (T("a b"), T("c 1 b"))),
    Case("meshgrid", torch.meshgrid, (T("a"), T("b"), T("c")), {"indexing": "ij"}),
    Case("meshgrid", torch.meshgrid, (T("a"), T(""), T("c")), {"indexing": "xy"}),
    Case("meshgrid", torch.meshgrid, (T("a"), T("b")), {"indexing": "xy"}),
    Case("repeat", X.repeat, (T("a b", permute=(1, 0)), 2, D("x"))),
    Case("tile", torch.tile, (T("a b"), (D("x"),))),
    Case("repeat_interleave", torch.repeat_interleave, (T("a b"), T("", i64, fill=2), 1)),
    Case("repeat_interleave", torch.repeat_interleave, (T("a b"), T("1", i64, fill=2), 1)),
    Case("repeat_interleave", torch.repeat_interleave, (T("a", i64, fill=3),)),
    Case("roll", torch.roll, (T("a b"), D("x"), 1)),
    Case("roll", torch.roll, (T("a b", permute=(1, 0)), (1, 2), (0, 1))),
    Case("roll", torch.roll, (T("a b"), 3)),
    Case("flip", torch.flip, (TURNED, (0,))),
    Case("flip", torch.flip, (T("a b c", strides="(b+p)*c c 1"), (0, -1))),
    Case("flip", torch.flip, (T(""), ())),
    Case("fliplr", torch.fliplr, (T("a b"),)),
    Case("flipud", torch.flipud, (T("a", strides="2"),)),
    Case("rot90", torch.rot90, (T("a b c"), 1, (0, 2))),
    Case("rot90", torch.rot90, (TURNED, 2)),
    Case("rot90", torch.rot90, (TURNED, -1, (1, -1))),
    Case("rot90", torch.rot90, (T("a b c", permute=(1, 0, 2)), 0)),
    Case("diagonal", torch.diagonal, (T("a b c"), 1, 0, 2)),
    Case("diagonal", torch.diagonal, (T("a b c", permute=(1, 0, 2)), 0, -1, 0)),
    Case("diagonal", torch.diagonal, (T("a b"), D("x-3"))),
    Case("diagonal", torch.diagonal, (T("a b"), -2)),
    Case("linalg_diagonal", torch.linalg.diagonal, (T("a b c"),)),
    Case("diag", torch.diag, (T("a"), -2)),
    Case("diag", torch.diag, (T("a b"), 1)),
    Case("diag_embed", torch.diag_embed, (T("a b"), D("x-2"), 0, 2)),
    Case("diagflat", torch.diagflat, (T("a b"), 1)),
    Case("expand_copy", torch.expand_copy, (T("a 1"), (D("a"), D("b")))),
]

REFUSED = [
    Case("expand", X.expand, (T("a b"), D("a"))),
    Case("expand", X.expand, (T("a"), -1, -1)),
    Case("meshgrid", torch.meshgrid, (T("a"), T("a b")), {"indexing": "ij"}),
    Case("meshgrid", torch.meshgrid, (T("a"), T("b", i64)), {"indexing": "ij"}),
    Case("repeat", X.repeat, (T("a b"), 2)),
    Case("repeat_interleave", torch.repeat_interleave, (T("a"),)),
    Case("repeat_interleave", torch.repeat_interleave, (T("a"), -1)),
    Case("repeat_interleave", torch.repeat_interleave, (T(""), 2, 0)),
    Case("repeat_interleave", torch.repeat_interleave, (T(""), T("1", i64), 0)),
    Case("repeat_interleave", torch.repeat_interleave, (T("a"), T("1 1", i64), 0)),
    Case("roll", torch.roll, (T("a b"), (1, 2), (0,))),
    Case("roll", torch.roll, (T("a b"), ())),
    Case("flip", torch.flip, (T("a b"), (0, 0))),
    Case("fliplr", torch.fliplr, (T("a"),)),
    Case("flipud", torch.flipud, (T(""),)),
    Case("rot90", torch.rot90, (T("a"),)),
    Case("rot90", torch.rot90, (T("a b"), 1, (0, -2))),
    Case("diagonal", torch.diagonal, (T("a"),)),
    Case("diagonal", torch.diagonal, (T("a b"), 0, 1, -1)),
    Case("diag", torch.diag, (T(""),)),
    Case("diag_embed", torch.diag_embed, (T(""),)),
]


@pytest.mark.parametrize("case", MIXED, ids=str)
def test_accepted_and_refused(case: Case) -> None:
    accepted, refused = check_case(case, rules)
    assert accepted and refused


def test_sizes_below_minus_one_without_elements() -> None:
    """torch makes tensors of such sizes; the rule refuses them, and says so."""
    assert torch.zeros(1, 0).expand(-2, 0).shape == (-2, 0)
    domain = Domain(("b", "n"), (ge(sym("b"), 0), ge(sym("n"), 0)))
    generator = Generator(rules, domain, chooser=lambda formula: False)
    generator.call("expand", (Tensor((1, sym("b"))), sym("n") - 3, sym("b")), {})
    assert [(note.may, str(note.where)) for note in generator.said.notes] == [("refuse", "n <= 1 and b == 0")]


@pytest.mark.parametrize("case", ACCEPTED, ids=str)
def test_accepted(case: Case) -> None:
    assert check_case(case, rules, 30)[1] == 0


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_refused(case: Case) -> None:
    assert check_case(case, rules, 5)[0] == 0


b, n, t = sym("b"), sym("n"), sym("t")
SIZES = Domain(("b", "n", "t"), (ge(b, 1), ge(n, 1), ge(t, 1)))


def shape_of(op: str, *args: Any) -> tuple[Any, list[str]]:
    generator = Generator(rules, SIZES)
    _, result = generator.call(op, args, {})
    assert isinstance(result, Tensor)
    return result.shape, [str(c.formula) for c in generator.said.constraints]


@pytest.mark.parametrize(
    "op, args, shape, required",
    [
        ("expand", (Tensor((b, 1, t)), b, n, -1), (b, n, t), []),
        ("expand", (Tensor((b + 1, t)), n, t), (n, t), ["b + 1 == n"]),
        ("repeat", (Tensor((b, t)), 2, 1), (2 * b, t), []),
        ("diagonal", (Tensor((n, n)),), (n,), []),
        ("diagonal", (Tensor((n, n)), 1), (n - 1,), []),
        ("diag_embed", (Tensor((b, n)),), (b, n, n), []),
        ("repeat_interleave", (Tensor((b, t)), 3, 1), (b, 3 * t), []),
    ],
)
def test_results_are_simple(op: str, args: Any, shape: Any, required: list[str]) -> None:
    assert shape_of(op, *args) == (shape, required)


@pytest.mark.parametrize(
    "shapes", [(), ((2, 3), (3,)), ((2, 1), (1, 4)), ((0,), (1,)), (5, (2, 1)), ((2,), (3,))]
)
def test_broadcast_shapes(shapes: Any) -> None:
    generator = Generator(rules)
    _, result = generator.call("broadcast_shapes", shapes, {})
    try:
        assert result == tuple(torch.broadcast_shapes(*shapes)) and not generator.said.constraints
    except RuntimeError:
        assert [c.formula for c in generator.said.constraints] == [False]


def test_what_expand_repeats_has_stride_0() -> None:
    generator = Generator(rules, SIZES)
    _, result = generator.call("expand", (Tensor((b, 1, t)), b, n, t), {})
    assert isinstance(result, Tensor) and result.layout == (t, 0, 1)


def test_the_judge_sees_wrong_rules() -> None:
    def two_way(c: Any, input: Tensor, *size: Any) -> Tensor:
        """expand as if it were a broadcast of both sides"""
        return RULES["broadcast_tensors"](c, input, Tensor(size))[0]  # type: ignore[no-any-return]

    def in_place_order(c: Any, input: Tensor, *dims: int) -> Tensor:
        return Tensor(input.shape, input.dtype)

    for op, wrong, case in (
        ("expand", two_way, Case("expand", X.expand, (T("a"), D("x")))),
        ("flip", in_place_order, Case("flip", torch.flip, (TURNED, (0,)))),
    ):
        with pytest.raises(AssertionError, match="rule"):
            check_case(case, Rules({op: wrong}))
