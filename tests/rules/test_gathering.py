"""Picking and placing elements by index tensors and masks, judged by torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from anyshape.constraints.engine.generate import Generator
from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Tensor
from anyshape.constraints.ir.system import Domain
from anyshape.constraints.rules.gathering import RULES
from anyshape.constraints.terms.dims import sym
from anyshape.constraints.terms.formula import ge
from anyshape.typecheck.testing.differential import Case, D, T, check_case

rules = Rules(RULES)
aten = torch.ops.aten
i32, i64, flag = torch.int32, torch.int64, torch.bool
TURNED = T("a b", permute=(1, 0))


def case(op: str, *args: Any, call: Any = None, where: str = "", **kwargs: Any) -> Case:
    return Case(op, call or getattr(torch, op), args, kwargs, where)


def long(sizes: str, **kwargs: Any) -> T:
    return T(sizes, i64, **kwargs)


def ones(sizes: str) -> T:
    return T(sizes, fill=1)


def bag(*args: Any, **kwargs: Any) -> Case:
    return Case("embedding_bag", F.embedding_bag, args, kwargs)


MIXED = [
    case("_nested_tensor_from_mask_left_aligned", T("b n d"), T("a m", flag)),
    case("put", T("a b", permute=(1, 0)), long("k l"), T("m")),
    case("put_", T("a b"), long("k"), T("l"), True, call=torch.Tensor.put_),
    case("segment_reduce", T("0 b c"), "max", lengths=long("d")),
    case("segment_reduce", T("a 0 c"), "mean", lengths=long("a d"), axis=1),
    case("segment_reduce", T("0 b"), "sum", offsets=long("d")),
    case("index_select", T("a b c"), 1, long("k")),
    case("index_select", T("a b c"), -1, long("")),
    case("index_select", T("a"), 0, long("k")),
    case("index_select", T(""), 0, long("k")),
    case("index_select", TURNED, 0, T("k", i32)),
    case("index_add", T("a b c"), 1, long("k"), T("a d c")),
    case("index_add", T("a"), 0, long("k"), T("d")),
    case("index_add", TURNED, 0, long("k"), T("d a")),
    case("index_reduce", T("a b c"), 1, long("k"), T("a d c"), "mean"),
    case("index_reduce", T("a"), 0, long("k"), T("d"), "amax"),
    case("index_copy", T("a b c"), 1, long("k"), T("a d c")),
    case("index_copy", T("a"), 0, long("k"), T("d")),
    case("index_copy", T("a"), 0, long("k"), T("")),
    case("index_copy", TURNED, 0, long("k"), T("d a")),
    case("index_copy", T(""), 0, long("k"), T("d")),
    case("index_fill", T("a b c"), 1, long("k"), 0.5),
    case("index_fill", TURNED, 1, long("k"), T("")),
    case("index_fill", T("a"), 0, long("k"), 0.5),
    case("gather", T("a b"), 1, long("c d")),
    case("gather", T("a b"), 0, T("c b", i32)),
    case("gather", T("a b"), 0, long("c")),
    case("gather", T("a"), 0, long("")),
    case("gather", T("a b"), 0, T("c d")),
    case("scatter", T("a b"), 1, long("c d"), T("e f")),
    case("scatter", T("a b"), 1, long("c d"), 1.0),
    case("scatter", T("a b"), 1, long("c d"), T("e f"), reduce="add"),
    case("scatter", TURNED, 1, long("c d"), T("c d")),
    case("scatter", T("a b"), 1, long("c"), 1.0),
    case("scatter", T("a b"), 1, T("c d"), 1.0),
    case("scatter", T(""), 0, long("c"), T("d")),
    case("scatter_add", T("a b"), 1, long("c d"), T("e f")),
    case("scatter_reduce", T("a b"), 1, long("c d"), T("e f"), "amax"),
    case("take", T("a b"), long("")),
    case("take", T("a b"), long("c d+1")),
    case("take_along_dim", T("a b"), long("c d"), 1),
    case("take_along_dim", T("a b"), long("c d")),
    case("take_along_dim", T("a b", permute=(1, 0)), long("c d")),
    case("take_along_dim", T("a b"), long("c d", permute=(1, 0))),
    case("take_along_dim", T("a b 4"), long("a 1 4"), 1),
    case("take_along_dim", T("a b"), long("1 c"), 1),
    case("masked_select", T("a b"), T("c 1", flag, fill=1)),
    case("masked_scatter", T("a b"), T("c b", flag), T("d")),
    case("unique", T("a b c"), dim=1),
    case("unique", T("a b c"), dim=0, return_counts=True),
    case("unique_consecutive", T("a b"), dim=1, return_inverse=True),
    case("unique_dim", T("a b"), 1, call=aten.unique_dim),
    case("_unique_consecutive", T("a b"), dim=0, call=aten.unique_consecutive),
    case("embedding", long("k l"), T("v d"), D("p-3"), call=F.embedding),
    case("embedding", long(""), T("v d"), call=F.embedding),
    case("embedding", long("k l+1"), T("v d"), call=F.embedding),
    case("embedding_renorm", T("v d"), long("k l"), 1.0, 2.0, call=aten.embedding_renorm),
    case("embedding_renorm_", T("v d"), long("k"), 1.0, 2.0, call=aten.embedding_renorm_),
    case("embedding_renorm", long("v d"), long("k"), 1.0, 2.0, call=aten.embedding_renorm),
    case("aten_embedding", T("v d"), long("k+1"), D("p-3"), call=aten.embedding),
    case("embedding", long("k l+1", permute=(1, 0)), T("v d", permute=(1, 0)), call=F.embedding),
    bag(long("b k"), T("v d+1")),
    bag(long("b k"), T("v d+1"), mode="max"),
    bag(long("b k"), T("v d+1"), per_sample_weights=T("b l"), mode="sum"),
    bag(long("n"), T("v d+1"), long("b+1"), mode="max"),
    bag(long("n"), T("v d+1"), long("b"), include_last_offset=True, mode="sum"),
    case("one_hot", long("a b"), call=F.one_hot),
    case("one_hot", long("a b"), D("n-1"), call=F.one_hot, where="n"),
]

ACCEPTED = [
    case("_unique", long("a b")),
    case("_unique", long("a b"), True, True),
    case("segment_reduce", T("a b c"), "sum", lengths=long("d"), unsafe=True),
    case("gather", T(""), 0, long("k")),
    case("gather", T("a b c", permute=(2, 0, 1)), 0, long("c a b")),
    case("masked_select", T("a b"), T("a b", flag)),
    case("masked_scatter", TURNED, T("b a", flag), T("d")),
    case("nonzero", T("a b")),
    case("nonzero", ones("a b")),
    case("nonzero", ones("a b"), as_tuple=True),
    case("nonzero", ones("")),
    case("nonzero", ones(""), as_tuple=True),
    case("nonzero_static", T("a b"), size=D("k")),
    case("argwhere", ones("a b")),
    case("nonzero_numpy", ones("a b"), call=aten.nonzero_numpy),
    case("unique", T("a b")),
    case("unique", TURNED, return_inverse=True, return_counts=True),
    case("unique", T("")),
    case("unique_consecutive", T("a b"), return_counts=True),
    case("_unique2", T("a b"), call=aten._unique2),
    case("_unique2", T("a b"), True, True, False, call=aten._unique2),
    case("_unique2", T("a b"), True, False, True, call=aten._unique2),
    case("_unique_consecutive", T("a b"), call=aten.unique_consecutive),
    case("_unique_consecutive", T("a b"), True, True, call=aten.unique_consecutive),
    *(
        case(name, T("v+1 d+1"), long("n"), long("b+1"), False, mode, call=getattr(aten, name))
        for name in ("_embedding_bag", "_embedding_bag_forward_only")
        for mode in (0, 1, 2)
    ),
]

REFUSED = [
    case("scatter", T("a b"), 1, long("c d"), T("e f"), reduce="sum"),
    case("_nested_tensor_from_mask_left_aligned", T("b n"), T("b n", flag)),
    case("_nested_tensor_from_mask_left_aligned", T("b n d"), T("b n d", flag)),
    case("_nested_tensor_from_mask_left_aligned", T("b n d"), T("b n")),
    case("segment_reduce", T("a b"), "sum", lengths=long("a"), axis=1, unsafe=True),
    case("index_select", T("a b"), 2, long("k")),
    case("index_select", T("a b"), 0, long("k l")),
    case("index_select", T("a b"), 0, T("k")),
    case("index_add", T("a"), 0, long("k"), long("k")),
    case("index_add", T("a b"), 0, long("k"), T("k")),
    case("index_copy", T("a"), 0, T("k", i32), T("k")),
    case("index_copy", T("a b"), 0, long(""), T("")),
    case("index_fill", T("a"), 0, long("k"), T("1")),
    case("index_reduce", T("a"), 0, long("k"), T("k"), "sum"),
    case("gather", T("a b"), 2, long("c d")),
    case("gather", T("a b"), 0, T("c+1 d+1")),
    case("scatter", T("a"), 0, long("c"), long("c")),
    case("scatter_reduce", T("a"), 0, long("c"), T("c"), "most"),
    case("take", T("a"), T("c", i32)),
    case("take_along_dim", T("a b"), long("c"), 0),
    case("take_along_dim", T(""), long(""), 0),
    case("take_along_dim", T("a"), T("a", i32), 0),
    case("masked_select", T("a"), T("a", torch.uint8)),
    case("masked_scatter", T("a"), T("a", flag), long("a")),
    case("unique", T(""), dim=0),
    case("embedding", T("k"), T("v d"), call=F.embedding),
    case("embedding_renorm", T("v d e"), long("k"), 1.0, 2.0, call=aten.embedding_renorm),
    case("embedding_renorm", T("v d"), T("k"), 1.0, 2.0, call=aten.embedding_renorm),
    case("embedding", long("k"), T("v"), call=F.embedding),
    case("embedding", long("k"), T("v d e"), call=F.embedding),
    bag(long("n"), T("v d")),
    bag(long("n m"), T("v d"), long("b")),
    bag(long("n m k"), T("v d")),
    bag(long("b k"), T("v d"), mode="most"),
    bag(long("b k"), T("v d"), per_sample_weights=T("b k")),
    bag(long("b k"), long("v d")),
    case("one_hot", T("a"), call=F.one_hot),
    case("one_hot", T("a", i32), 3, call=F.one_hot),
]


@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.parametrize("case", MIXED, ids=str)
def test_accepted_and_refused(case: Case) -> None:
    accepted, refused = check_case(case, rules, 60)
    assert accepted and refused


@pytest.mark.parametrize("case", ACCEPTED, ids=str)
def test_accepted(case: Case) -> None:
    assert check_case(case, rules, 30)[1] == 0


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_refused(case: Case) -> None:
    assert check_case(case, rules, 5)[0] == 0


b, t, v, d = sym("b"), sym("t"), sym("v"), sym("d")
SIZES = Domain(("b", "t", "v", "d"), tuple(ge(size, 1) for size in (b, t, v, d)))


@pytest.mark.parametrize(
    "op, args, shape, required",
    [
        ("embedding", (Tensor((b, t), "int64"), Tensor((v, d))), (b, t, d), []),
        ("index_select", (Tensor((b, v)), 1, Tensor((t,), "int64")), (b, t), []),
        ("gather", (Tensor((b, t)), 1, Tensor((b, 1), "int64")), (b, 1), []),
        ("gather", (Tensor((b, t)), 1, Tensor((v, 1), "int64")), (v, 1), ["v <= b"]),
        ("scatter", (Tensor((b, t)), 1, Tensor((b, 1), "int64"), 1.0), (b, t), []),
        ("take_along_dim", (Tensor((b, t)), Tensor((b, 1), "int64"), 1), (b, 1), []),
    ],
)
def test_no_condition_where_sizes_are_positive(op: str, args: Any, shape: Any, required: list[str]) -> None:
    generator = Generator(rules, SIZES)
    _, result = generator.call(op, args, {})
    assert isinstance(result, Tensor) and result.shape == shape
    assert [str(c.formula) for c in generator.said.constraints] == required


def test_data_decide_between_bounds() -> None:
    generator = Generator(rules, SIZES)
    _, found = generator.call("nonzero", (Tensor((b, t)),), {})
    _, distinct = generator.call("unique", (Tensor((b, t)),), {})
    assert isinstance(found, Tensor) and isinstance(distinct, Tensor)
    known = generator.said.unbacked
    assert str(known[str(found.shape[0])]) == f"0 <= {found.shape[0]} and {found.shape[0]} <= b*t"
    assert str(known[str(distinct.shape[0])]) == f"1 <= {distinct.shape[0]} and {distinct.shape[0]} <= b*t"


def test_the_judge_sees_wrong_rules() -> None:
    def careless(c: Any, input: Tensor, dim: int, index: Tensor) -> Tensor:
        """gather that takes any index"""
        return Tensor(index.shape, input.dtype)

    def row_major(c: Any, input: Tensor) -> Tensor:
        result = RULES["nonzero"](c, input)
        return Tensor(result.shape, result.dtype)

    def all_of_them(c: Any, input: Tensor, mask: Tensor) -> Tensor:
        """masked_select that knows too little of its size"""
        return Tensor((c.fresh("selected", 1, None),), input.dtype)

    for op, wrong, wanted in (
        ("gather", careless, case("gather", T("a b"), 1, long("c d"))),
        ("nonzero", row_major, case("nonzero", ones("a b"))),
        ("masked_select", all_of_them, case("masked_select", T("a"), T("a", flag))),
    ):
        with pytest.raises(AssertionError, match=r"rule|not in"):
            check_case(wanted, Rules({op: wrong}))
