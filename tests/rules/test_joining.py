"""Joining and splitting, judged by torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from anyshape.constraints.engine.generate import Generator
from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Layout, Tensor
from anyshape.constraints.ir.system import Domain
from anyshape.constraints.rules.joining import RULES
from anyshape.constraints.terms.dims import Dim, sym
from anyshape.constraints.terms.formula import ge
from anyshape.constraints.terms.syntax import parse_dim
from anyshape.typecheck.testing.differential import Case, D, T, check_case

rules = Rules(RULES)
f64, i64 = torch.float64, torch.int64
LAST = T("n c h w", strides="h*w*c 1 w*c c")
MORE = T("n d h w", strides="h*w*d 1 w*d d")
"""Tensors in the format channels_last."""


def case(op: str, *args: Any, where: str = "", **kwargs: Any) -> Case:
    return Case(op, getattr(torch, op), args, kwargs, where)


def heads(time: str, width: str) -> T:
    return T(f"b {time} h {width}", permute=(0, 2, 1, 3))


MIXED = [
    Case("unflatten_dense_tensors", torch.ops.aten.unflatten_dense_tensors, (T("n"), [T("a b"), T("c",
         i64)])),
    case("_chunk_cat", [T("a b c"), T("d b e")], 0, D("k")),
    case("_chunk_cat", [T("a b c"), T("d e")], 1, 3),
    case("_chunk_cat", [T("a b c"), T("d e c")], -2, 2),
    case("cat", [T("a b"), T("c d")], 0),
    case("cat", [T("a b c"), T("d b e"), T("f b c")], -3),
    case("cat", [T("a"), T("b c"), T("d c")], 0),
    case("cat", [T("b c"), T("a", i64)], -2),
    case("cat", [T("a"), T("b")], 1),
    case("stack", [T("a b"), T("a c")], 1),
    case("stack", [T("a b"), T("a c", i64)], -1),
    case("hstack", [T("a"), T("a c")]),
    case("hstack", [T("a b"), T("c")]),
    case("hstack", [T("a b"), T("c d")]),
    case("vstack", [T("a"), T("b")]),
    case("vstack", [T("a b"), T("c")]),
    case("dstack", [T("a"), T("a b")]),
    case("dstack", [T("a"), T("1 b 3")]),
    case("column_stack", [T("a"), T("b c")]),
    case("column_stack", [T(""), T("b c")]),
    case("split", T("a b"), D("s"), 1),
    case("split", T("a b"), 0, 1),
    case("split", T("a b"), [D("s"), D("t-1")], 1),
    case("split_with_sizes", T("a b c", permute=(2, 1, 0)), [D("s"), 2], 1),
    case("tensor_split", T("a b"), D("s"), 1),
    case("hsplit", T("a b"), 2),
    case("hsplit", T("a"), 2),
    case("hsplit", T("a"), D("s+1")),
    case("vsplit", T("a b"), 3),
    case("dsplit", T("a b c"), 2),
]

ACCEPTED = [
    Case("flatten_dense_tensors", torch.ops.aten.flatten_dense_tensors, ([T("a b"), T("c", i64)],)),
    case("cat", [T("a b c"), T("a d c")], 1),
    case("cat", [T("a"), T("b")], -1),
    case("cat", [T("a b", f64), T("a c", i64), T("a d")], 1),
    case("cat", [LAST, MORE], 1),
    case("cat", [LAST, MORE], 1, where="n c d h w"),
    case("cat", [LAST, T("n d h w")], 1),
    case("cat", [heads("t", "64"), heads("s", "64")], 2),
    case("cat", [heads("t", "c"), heads("s", "c")], 2),
    case("cat", [T("a b c", permute=(0, 2, 1))], 0),
    case("stack", [T("a b")], 0),
    case("stack", [T(""), T("")]),
    case("stack", [LAST, LAST], 1),
    case("stack", [LAST, LAST], 1, where="n c h w"),
    case("stack", [LAST, LAST], 4),
    case("stack", [T("n c h", permute=(0, 2, 1))] * 2, -1),
    case("hstack", [T("a"), T("b")]),
    case("hstack", [T("a b", permute=(1, 0)), T("c b", permute=(1, 0))]),
    case("block_diag", T("a b"), T("c"), T(""), T("d e", i64)),
    case("split", T("a b"), 3, 1),
    case("split", T("a 3*b"), D("b"), 1),
    case("chunk", T("a b"), 2, 1),
    case("chunk", T("a b"), 3, 1),
    case("chunk", T("a b"), 5),
    case("chunk", T("a 3*b"), 3, 1),
    case("tensor_split", T("a b"), 3, 1),
    case("tensor_split", T("a b"), [D("s-3"), D("t")], 1),
    case("tensor_split", T("a b"), [], 1),
    case("dsplit", T("a b c"), [1, 2]),
    case("unbind", T("a b c"), 1),
    case("unbind", T("a b c", permute=(2, 0, 1)), -3),
    Case("unbind_copy", torch.unbind_copy, (T("a b"), 1)),
    Case("split", torch.ops.aten.unsafe_split, (T("a b"), 2, 1)),
]

REFUSED = [
    case("_chunk_cat", [T("a b"), T("a b", f64)], 0, 2, where="a b"),
    case("cat", []),
    case("cat", [T("a"), T("")]),
    case("cat", [T("a b"), T("a b c")]),
    case("cat", [T("a b"), T("a b")], 2),
    case("stack", []),
    case("stack", [T("a"), T("a b")]),
    case("stack", [T("a b")], 3),
    case("block_diag", T("a b c")),
    case("split", T("a b"), -1),
    case("split", T(""), 1),
    case("split_with_sizes", T("a"), [D("a"), -1]),
    case("chunk", T("a"), 0),
    case("chunk", T(""), 1),
    case("tensor_split", T("a"), 0),
    case("hsplit", T("a"), 0),
    case("hsplit", T(""), 1),
    case("vsplit", T("a"), 1),
    case("dsplit", T("a b"), 1),
    case("unbind", T("")),
    case("unbind", T("a"), 1),
]


@pytest.mark.parametrize("case", MIXED, ids=str)
def test_accepted_and_refused(case: Case) -> None:
    accepted, refused = check_case(case, rules, 60)
    assert accepted and refused


@pytest.mark.parametrize("case", ACCEPTED, ids=str)
def test_accepted(case: Case) -> None:
    assert check_case(case, rules)[1] == 0


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_refused(case: Case) -> None:
    assert check_case(case, rules, 5)[0] == 0


b, n, c, h = sym("b"), sym("n"), sym("c"), sym("h")
SIZES = Domain(("b", "n", "c", "h"), tuple(ge(size, 1) for size in (b, n, c, h)))


def run(op: str, *args: Any, count: int | None = None) -> tuple[Any, Generator, list[Dim]]:
    """The result, what was said, and the numbers that were asked for."""
    asked: list[Dim] = []

    def answer(dim: Dim) -> int:
        asked.append(dim)
        assert count is not None
        return count

    generator = Generator(rules, SIZES, count=answer)
    return generator.call(op, args, {})[1], generator, asked


@pytest.mark.parametrize(
    "op, args, sizes",
    [
        ("chunk", (Tensor((b, 3 * c)), 3, 1), ["c", "c", "c"]),
        ("chunk", (Tensor((b, n + 1)), 2, 1), ["(n + 2)//2", "(n + 1)//2"]),
        ("split", (Tensor((b, 3 * c)), c, 1), ["c", "c", "c"]),
        ("split", (Tensor((b, 7)), 3, 1), ["3", "3", "1"]),
        ("split", (Tensor((b, n + h)), (n, h), 1), ["n", "h"]),
        ("tensor_split", (Tensor((b, 2 * n)), 2, 1), ["n", "n"]),
    ],
)
def test_pieces_need_no_number(op: str, args: Any, sizes: list[str]) -> None:
    result, generator, asked = run(op, *args)
    assert [part.shape[1] for part in result] == [parse_dim(size) for size in sizes]
    assert not asked and not generator.said.constraints


@pytest.mark.parametrize(
    "op, args, asked, sizes",
    [
        ("split", (Tensor((b, n)), 4, 1), "(n + 3)//4", ["4", "4", "n - 8"]),
        ("unbind", (Tensor((n, b)),), "n", ["b"] * 3),
        ("chunk", (Tensor((n,)), 4), None, None),
    ],
)
def test_the_number_of_pieces_is_asked_for(op: str, args: Any, asked: str | None, sizes: Any) -> None:
    result, _, questions = run(op, *args, count=3)
    assert len(result) == 3 and len(questions) == 1
    if asked is not None:
        assert questions[0] == parse_dim(asked)
        assert [part.shape[-1] for part in result] == [parse_dim(size) for size in sizes]


def test_pieces_keep_strides() -> None:
    result, _, _ = run("split", Tensor((b, n, 6)), 2, 2)
    assert [part.layout for part in result] == [(6 * n, 6, 1)] * 3


def test_cat_is_contiguous() -> None:
    result, generator, _ = run("cat", (Tensor((b, n, c)), Tensor((b, h, c))), 1)
    assert result == Tensor((b, n + h, c)) and not generator.said.constraints


def test_cat_of_channels_last() -> None:
    last = Tensor((b, c, h, n), "float32", (c * h * n, 1, c * n, c))
    assert run("cat", (last, last), 1)[0].layout is Layout.UNKNOWN, "contiguous where h and n are 1"
    wide = Tensor((b, 3, h + 1, n), "float32", (3 * (h + 1) * n, 1, 3 * n, 3))
    assert run("cat", (wide, wide), 1)[0].layout == (6 * (h + 1) * n, 1, 6 * n, 6)
    unknown = Tensor((b, c, h, n), "float32", Layout.UNKNOWN)
    assert run("cat", (last, unknown), 1)[0].layout is Layout.UNKNOWN
    assert run("cat", (Tensor((b, c, h, n)), unknown), 1)[0].layout is Layout.CONTIGUOUS


def test_the_judge_sees_wrong_rules() -> None:
    def strict(c: Any, tensors: Any, dim: int = 0) -> Tensor:
        """cat that knows nothing of empty vectors"""
        if len({t.rank for t in tensors}) > 1:
            c.refuse("ranks differ")
        return RULES["cat"](c, tensors, dim)  # type: ignore[no-any-return]

    def generous(c: Any, input: Tensor, chunks: int, dim: int = 0) -> Any:
        """chunk that always gives as many pieces as it is asked for"""
        return RULES["tensor_split"](c, input, chunks, dim)

    for op, wrong, wanted in (
        ("cat", strict, case("cat", [T("a"), T("b c")], 0)),
        ("chunk", generous, case("chunk", T("a b"), 3, 1)),
    ):
        with pytest.raises(AssertionError, match=r"rule|torch"):
            check_case(wanted, Rules({op: wrong}))
