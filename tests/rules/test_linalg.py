"""Products and linear algebra, judged by torch."""
from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from rules.judge import Judge

from anyshape.constraints.engine.generate import Generator
from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Tensor
from anyshape.constraints.rules import common
from anyshape.constraints.rules import einsum as sums
from anyshape.constraints.rules.linalg import RULES
from anyshape.typecheck.testing.differential import Case, T, check_case

rules = Rules(RULES) | sums.RULES
judge = Judge(rules)
i64, i32, f16, f64, flag = torch.int64, torch.int32, torch.float16, torch.float64, torch.bool
aten = torch.ops.aten


def grouped(*operands: T, where: str = "") -> Case:
    return Case("_grouped_mm", torch._grouped_mm, operands, where=where)


PRODUCTS = [
    Case("mm", torch.mm, (T("n k"), T("j m"))),
    Case("mm", torch.mm, (T("k n", permute=(1, 0)), T("m k", permute=(1, 0)))),
    Case("mm", torch.mm, (T("n k", flag), T("k m", flag))),
    Case("mm", torch.mm, (T("n k", i64), T("k m"))),
    Case("mm", torch.mm, (T("n k"), T("k"))),
    Case("mv", torch.mv, (T("n k"), T("j"))),
    Case("mv", torch.mv, (T("n k", flag), T("k", flag))),
    Case("dot", torch.dot, (T("n"), T("m"))),
    Case("dot", torch.dot, (T("n", flag), T("n", flag))),
    Case("vdot", torch.vdot, (T("n"), T("m"))),
    Case("bmm", torch.bmm, (T("b n k"), T("c j m"))),
    Case("bmm", torch.bmm, (T("b n k", f64), T("b k m"))),
    Case("bmm", torch.bmm, (T("b n k", flag), T("b k m", flag))),
    Case("matmul", torch.matmul, (T("n"), T("m"))),
    Case("matmul", torch.matmul, (T(""), T("m"))),
    Case("matmul", torch.matmul, (T("n k"), T("m"))),
    Case("matmul", torch.matmul, (T("k"), T("j m"))),
    Case("matmul", torch.matmul, (T("n k"), T("j m"))),
    Case("matmul", torch.matmul, (T("b n k"), T("j"))),
    Case("matmul", torch.matmul, (T("j"), T("b k n"))),
    Case("matmul", torch.matmul, (T("b n k"), T("j m"))),
    Case("matmul", torch.matmul, (T("n b k", permute=(1, 0, 2)), T("m k", permute=(1, 0)))),
    Case("matmul", torch.matmul, (T("b k n", permute=(0, 2, 1)), T("k m"))),
    Case("matmul", torch.matmul, (T("n j"), T("b k m"))),
    Case("matmul", torch.matmul, (T("n k"), T("b m k", permute=(0, 2, 1)))),
    Case("matmul", torch.matmul, (T("b n k"), T("c j m"))),
    Case("matmul", torch.matmul, (T("a b n k"), T("c k m"))),
    Case("matmul", torch.matmul, (T("a b n k"), T("c d k m"))),
    Case("matmul", torch.matmul, (T("a n b k", permute=(0, 2, 1, 3)), T("a m b k", permute=(0, 2, 3, 1)))),
    Case("matmul", torch.matmul, (T("n k", i64), T("b k m", i64))),
    Case("matmul", torch.matmul, (T("b n k", i64), T("k m"))),
    Case("matmul", torch.matmul, (T("n k", i64), T("b k m"))),
    Case("matmul", torch.matmul, (T("b n k", flag), T("k m", flag))),
    Case("rmatmul", torch.Tensor.__rmatmul__, (T("b k m"), T("n j"))),
    Case("linear", F.linear, (T("k"), T("m j"))),
    Case("linear", F.linear, (T("n k"), T("m j"), T("l"))),
    Case("linear", F.linear, (T("b n k"), T("m j"), T("l"))),
    Case("linear", F.linear, (T("a b n k"), T("m k"), T("l"))),
    Case("linear", F.linear, (T("n b k", permute=(1, 0, 2)), T("m k"), T("l"))),
    Case("linear", F.linear, (T("b n k"), T("m k"), T(""))),
    Case("linear", F.linear, (T("n k"), T("m k"), T("a b"))),
    Case("linear", F.linear, (T("n k"), T("m k"), T("a n m"))),
    Case("linear", F.linear, (T("b n k"), T("j"))),
    Case("linear", F.linear, (T("b n k"), T("k"), T("l"))),
    Case("linear", F.linear, (T("n b k", permute=(1, 0, 2)), T("k"), T(""))),
    Case("linear", F.linear, (T("n k"), T("k"), T(""))),
    Case("linear", F.linear, (T("b n k"), T("b m k"))),
    Case("linear", F.linear, (T(""), T("m k"))),
    Case("linear", F.linear, (T("n k", i64), T("m k"))),
    Case("linear", F.linear, (T("b n k"), T("m k"), T("m", i64))),
    Case("linear", F.linear, (T("b n k", flag), T("m k", flag))),
    Case("addmm", torch.addmm, (T("a b"), T("n k"), T("j m"))),
    Case("addmm", torch.addmm, (T("a"), T("n k"), T("k m")), {"beta": 2, "alpha": 0.5}),
    Case("addmm", torch.addmm, (T(""), T("n k", i64), T("k m", i64))),
    Case("_addmm_activation", torch._addmm_activation, (T("a"), T("n k"), T("j m"))),
    Case("_int_mm", torch._int_mm, (T("n k", torch.int8), T("j m", torch.int8))),
    Case("_int_mm", torch._int_mm, (T("n k"), T("k m"))),
    Case("addmv", torch.addmv, (T("a"), T("n k"), T("j"))),
    Case("addmv", torch.addmv, (T(""), T("n k"), T("k")), where="n k"),
    Case("addmv", torch.addmv, (T(""), T("0 k"), T("k"))),
    Case("addmv", torch.addmv, (T("1"), T("n k"), T("k"))),
    Case("addmv", torch.addmv, (T("n", flag), T("n k", flag), T("k", flag))),
    Case("addmv", torch.addmv, (T("1 n"), T("n k"), T("k"))),
    Case("baddbmm", torch.baddbmm, (T("a b c"), T("d n k"), T("d k m"))),
    Case("baddbmm", torch.baddbmm, (T("c"), T("d n k"), T("e j m"))),
    Case("baddbmm", torch.baddbmm, (T("m", flag), T("d n k", flag), T("d k m", flag))),
    Case("addbmm", torch.addbmm, (T("a c"), T("d n k"), T("e j m"))),
    Case("addbmm", torch.addbmm, (T("m", i64), T("d n k"), T("d k m"))),
    Case("addmm", torch.addmm, (T("m", flag), T("n k", flag), T("k m", flag))),
    Case("addbmm", torch.addbmm, (T("m", flag), T("d n k", flag), T("d k m", flag))),
    Case("addr", torch.addr, (T("a b"), T("n"), T("m"))),
    Case("addr", torch.addr, (T("a", i64), T("n"), T("m", f64))),
    Case("outer", torch.outer, (T("n"), T("m", i64))),
    Case("outer", torch.outer, (T("n"), T("m k"))),
    Case("ger", torch.ger, (T("n"), T("m"))),
    Case("ger", torch.ger, (T("n"), T("m k"))),
    Case("inner", torch.inner, (T("a n k"), T("b m j"))),
    Case("inner", torch.inner, (T("n k"), T("j"))),
    Case("inner", torch.inner, (T("n k"), T("", i64))),
    Case("inner", torch.inner, (T("n k", flag), T("k", flag))),
    Case("tensordot", torch.tensordot, (T("a b k"), T("i j m")), {"dims": 1}),
    Case("tensordot", torch.tensordot, (T("a b k"), T("b k m"))),
    Case("tensordot", torch.tensordot, (T("a b"), T("k m")), {"dims": 0}),
    Case("tensordot", torch.tensordot, (T("a b k"), T("i j m")), {"dims": ([1, -1], [1, 0])}),
    Case("tensordot", torch.tensordot, (T("a b"), T("b a")), {"dims": ([0, 0], [1, 0])}),
    Case("tensordot", torch.tensordot, (T("a b"), T("b a")), {"dims": ([0], [1, 0])}),
    Case("tensordot", torch.tensordot, (T("a b"), T("b a")), {"dims": 3}),
    Case("tensordot", torch.tensordot, (T(""), T("a")), {"dims": ([0], [0])}),
    Case("tensordot", torch.tensordot, (T("a k", flag), T("k b", flag)), {"dims": 1}),
    Case("tensordot", torch.ops.aten.tensordot, (T("a k"), T("j b"), [1], [0])),
    grouped(T("m 8"), T("g 8 n"), T("h", i32), where="g m n"),
    grouped(T("m k"), T("g n j", permute=(0, 2, 1)), T("g", i32), where="g k n j"),
    grouped(T("m 8", f16), T("g n 8", f16, permute=(0, 2, 1)), T("g", i32), where="g n"),
    grouped(T("g m 8"), T("8 4*n"), T("h", i32), where="m n"),
    grouped(T("m 4*k"), T("n 4*j", permute=(1, 0)), T("g", i32), where="m k j n"),
    grouped(T("g m 8"), T("h n 8", permute=(0, 2, 1)), where="g h m n"),
    grouped(T("m 8"), T("g 8 4")),
    grouped(T("m 8"), T("g 8 4"), T("g")),
    grouped(T("m 8", f64), T("g 8 4", f64), T("g", i32)),
    Case("kron", torch.kron, (T("a b"), T("x y z", i64))),
    Case("kron", torch.kron, (T(""), T("x y"))),
    Case("linalg_multi_dot", torch.linalg.multi_dot, ([T("n a"), T("b c"), T("d m")],)),
    Case("linalg_multi_dot", torch.linalg.multi_dot, ([T("a"), T("b c"), T("d")],)),
    Case("linalg_multi_dot", torch.linalg.multi_dot, ([T("a"), T("b")],)),
    Case("linalg_multi_dot", torch.linalg.multi_dot, ([T("a b")],)),
    Case("linalg_multi_dot", torch.linalg.multi_dot, ([T("n a"), T("a"), T("a m")],)),
    Case("chain_matmul", torch.chain_matmul, (T("n a"), T("b c"), T("d m"))),
    Case("chain_matmul", torch.chain_matmul, (T("n a"),)),
    Case("chain_matmul", torch.chain_matmul, (T("a"), T("a b"))),
    Case("bilinear", F.bilinear, (T("a i"), T("b j"), T("m k l"), T("n"))),
    Case("_trilinear", aten._trilinear,
         (T("a b"), T("c d e"), T("a e"), [1, 3], [0], [1, 2], [2, 3])),
    Case("_trilinear", aten._trilinear, (T("a b"), T("c b e"), T("d e"), [1, -1], [0], [2, 1], [])),
    Case("bilinear", F.bilinear, (T("a b i"), T("a b j"), T("m i j"))),
    Case("bilinear", F.bilinear, (T("i"), T("j"), T("m i j"), T("m"))),
    Case("bilinear", F.bilinear, (T("a b i"), T("a j"), T("m i j"))),
    Case("bilinear", F.bilinear, (T("b i"), T("b j"), T("m i j"), T("m", f64))),
    Case("trace", torch.trace, (T("n m"),)),
    Case("trace", torch.trace, (T("n m", torch.int32),)),
    Case("trace", torch.trace, (T("n"),)),
]


def einsum(equation: str, *operands: T, where: str = "") -> Case:
    return Case("einsum", torch.einsum, (equation, *operands), where=where)


EINSUMS = [
    einsum("ij->ji", T("n m")),
    einsum("ii->i", T("n m")),
    einsum("ii", T("n m")),
    einsum("ij->i", T("n m")),
    einsum("iji->ji", T("n m k")),
    einsum("ij", T("m n", permute=(1, 0))),
    einsum("i j -> j i", T("n m", i64)),
    einsum("ij->", T("n m", i64)),
    einsum("ij->", T("n m", torch.int32)),
    einsum("bij,bjk->bik", T("b n k"), T("c j m")),
    einsum("bij , bjk", T("b n k"), T("c j m")),
    einsum("ij,kj->ki", T("n 4"), T("m 4")),
    einsum("ij,jk->ki", T("n 4"), T("4 m")),
    einsum("bqhd,bkhd->bhqk", T("b q 2 8"), T("b k 2 8")),
    einsum("bhqk,bkhd->bqhd", T("b 2 q 8"), T("b 8 2 d")),
    einsum("bhqk,bkhd->bqhd", T("b 2 q k"), T("b k 2 d")),
    einsum("bij,bkj->kib", T("3 n 4"), T("3 m 4")),
    einsum("bij,bkj->kib", T("b n 4"), T("b m 4")),
    einsum("pxk,byk->bpyx", T("p x 3"), T("b y 3")),
    einsum("pxk,byk->byxp", T("p x 3"), T("b y 3")),
    einsum("pxk,byk->byxp", T("2 4 3"), T("b y 3")),
    einsum("pxk,byk->pxby", T("p x 3"), T("b y 3")),
    einsum("bij,jk->bki", T("b n 5"), T("5 m")),
    einsum("b1ij,bjk->bik".replace("1", "h"), T("b 1 n 5"), T("b 5 m")),
    einsum("bhi,bhj->bhij", T("b h n"), T("b k m")),
    einsum("...ij,...jk->...ik", T("a b n k"), T("c k m")),
    einsum("...ij,jk", T("a b n k"), T("j m")),
    einsum("...ij->j...", T("a b n k")),
    einsum("...,...->", T("a b"), T("b")),
    einsum("i...,...i", T("a b"), T("b a")),
    einsum("bn,anm,bm->ba", T("b n"), T("a n m"), T("c m")),
    einsum("a,b,c->cab", T("a"), T("b"), T("c")),
    einsum("i,j->ij", T("n"), T("m", i64)),
    einsum("i,i->i", T("n"), T("m", i64)),
    einsum("ij,jk->ik", T("n k"), T("k m", f64)),
    einsum("ij,jk->ik", T("n k", flag), T("k m", flag)),
    einsum("ij,jk->ikk", T("n k"), T("k m")),
    einsum("ij,jk->il", T("n k"), T("k m")),
    einsum("ij,jk->ik", T("n k"), T("k")),
    einsum("ij,jk->ik", T("n k")),
    einsum("ij,j.->i", T("n k"), T("k m")),
    einsum("i1->i", T("n k")),
    einsum("...i->i", T("")),
    Case("einsum", torch.einsum, (T("n k"), [0, 1], T("k m"), [1, 27], [27, 0])),
    Case("einsum", torch.einsum, (T("n k"), [..., 1], T("k m"), [1, 2])),
    Case("einsum", torch.einsum, (T("n k"), [0, 52])),
    Case("einsum", torch.ops.aten.einsum, ("ij,jk->ik", [T("n k"), T("j m")])),
]


@pytest.mark.filterwarnings("ignore:torch.chain_matmul")
@pytest.mark.parametrize("case", PRODUCTS + EINSUMS, ids=str)
def test_products(case: Case) -> None:
    judge(case)


@pytest.mark.filterwarnings("ignore:torch.chain_matmul")
def test_every_rule_is_seen_to_accept_and_to_refuse() -> None:
    assert judge.one_sided(PRODUCTS + EINSUMS) == {"kron": "never refused"}


def test_kron_views_a_product_that_may_lie_otherwise() -> None:
    generator = Generator(rules)
    generator.call("kron", (Tensor((2, 3), layout=(1, 2)), Tensor((2, 3))), {})
    assert [c.formula for c in generator.said.constraints] == [False]
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        torch.kron(torch.zeros(3, 2).t(), torch.zeros(2, 3))


def test_a_wrong_rule_is_caught() -> None:
    def stretched(c: Any, input: Any, mat2: Any) -> Tensor:
        common.broadcast_dim(c, input.shape[1], mat2.shape[0])
        return Tensor((input.shape[0], mat2.shape[1]))

    with pytest.raises(AssertionError, match="rule accepts"):
        check_case(Case("mm", torch.mm, (T("n k"), T("j m"))), Rules({"mm": stretched}))
