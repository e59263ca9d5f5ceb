"""Index expressions, judged by torch."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch

from anyshape.constraints.engine.generate import Generator
from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Dots, Dyn, Layout, Number, Slice, Tensor
from anyshape.constraints.ir.system import Domain
from anyshape.constraints.rules.indexing import RULES
from anyshape.constraints.terms.dims import sym
from anyshape.constraints.terms.formula import ge
from anyshape.typecheck.testing.differential import Case, D, T, check_case

rules = Rules(RULES)
aten = torch.ops.aten
i16, i32, i64, flag, byte = torch.int16, torch.int32, torch.int64, torch.bool, torch.uint8
ALL = slice(None)
X = T("a b c")


def get(*index: Any, of: T = X, data: dict[str, str] | None = None) -> Case:
    """`of[index]`"""
    return Case("getitem", operator.getitem, (of, index), data=data or {})


def _write(tensor: torch.Tensor, index: Any, value: Any) -> tuple[()]:
    tensor[index] = value
    return ()


def put(*index: Any, value: Any, of: T = X) -> Case:
    """`of[index] = value`"""
    return Case("setitem", _write, (of, index, value))


def long(sizes: str, **kwargs: Any) -> T:
    return T(sizes, i64, **kwargs)


def true(sizes: str) -> T:
    return T(sizes, flag, fill=1)


SLICES = [
    get(ALL, slice(None, D("t"))),
    get(ALL, slice(D("t"), None)),
    get(ALL, slice(D("t-4"), D("u-4"))),
    get(ALL, slice(D("t"), D("t+2"))),
    get(ALL, slice(1, None)),
    get(ALL, slice(-1, None)),
    get(ALL, slice(None, -1)),
    get(ALL, slice(-3, -1)),
    get(ALL, slice(1, -1)),
    get(ALL, slice(-9, 2)),
    get(ALL, slice(3, 2)),
    get(ALL, slice(2, 5, 2)),
    get(ALL, slice(None, None, 3)),
    get(ALL, slice(0, D("b"))),
    get(ALL, slice(1, None), ALL, of=T("a b c", permute=(2, 0, 1))),
    Case("slice", aten.slice, (X, 1, D("i-2"), 2**63 - 1, 2)),
    Case("slice", aten.slice, (X, -1, None, D("i"))),
    Case("slice_copy", aten.slice_copy, (X, 1, 1, 3)),
]

ACCEPTED = [
    *SLICES,
    get(True),
    get(False),
    get(Ellipsis),
    get(None, Ellipsis, None),
    get(Ellipsis, None, of=T("")),
    get(T("a", flag)),
    get(true("a")),
    get(ALL, true("b c")),
    get(true("")),
    get(T("a", byte, fill=1)),
    get([]),
    put(true("a b"), value=T("c")),
    put(true("a b"), value=1.0),
    put(slice(1, None), value=2),
]

MIXED = [
    Case("_unsafe_masked_index", aten._unsafe_masked_index, (X, T("k d e", flag), [long("k 1"), long("d")],
         1.0), where="a b c"),
    Case("_unsafe_masked_index", aten._unsafe_masked_index, (X, T("k", flag), [None, long("d"), long("e")],
         1.0), where="a b c"),
    Case("_unsafe_masked_index_put_accumulate", aten._unsafe_masked_index_put_accumulate,
         (X, T("k c", flag), [long("k"), long("l")], T("m c")), where="a b c"),
    get(ALL, slice(-5, D("t"), D("k"))),
    get(0, Ellipsis, -1),
    get(D("i-3"), Ellipsis, D("j")),
    get(None, Ellipsis, None, 0),
    get(ALL, long("i")),
    get(ALL, T("i+1", i32)),
    get(long("i"), ALL, long("j")),
    get(long("i 1"), long("1 j"), slice(1, None)),
    get(long("i"), 0, long("i")),
    get(long("i"), None, long("i")),
    get(long(""), ALL, long("i")),
    get(long("")),
    get([0, -2]),
    get(ALL, [[0, 1], [1, D("i-1")]]),
    get(ALL, [True, False]),
    get(true("i j")),
    get(true("a"), ALL, true("c"), data={"true_0": "a", "true_1": "c"}),
    get(true("a"), ALL, long("i"), data={"true_0": "a"}),
    get(long("i"), of=T("a b c", permute=(1, 0, 2))),
    get(long("i"), of=T("a b c", permute=(1, 2, 0))),
    get(ALL, 0, slice(1, None), of=T("a b c", permute=(1, 2, 0))),
    get(ALL, long("i"), of=T("a b c", permute=(0, 2, 1))),
    get(slice(None, None, 2), ALL, long("i j", permute=(1, 0))),
    get(ALL, long("i"), of=T("a b c", strides="c 0 1")),
    put(0, value=T("b c")),
    put(0, value=T("1 1 c")),
    put(slice(None, D("t")), value=T("d b c")),
    put(ALL, long("i"), value=T("d e")),
    put(0, value=T("b c", i64)),
    put(long("i"), value=T("1 1 d b c")),
    put(long("i"), value=T("x 1 d b c")),
    Case("select", torch.select, (X, 1, D("i-2"))),
    Case("select_copy", torch.select_copy, (T("a b c", permute=(2, 1, 0)), 0, 1)),
    Case("narrow", torch.narrow, (X, 1, D("i-2"), D("j-1"))),
    Case("narrow", torch.narrow, (X, 1, -2, 1)),
    Case("select_scatter", torch.select_scatter, (X, T("d c"), 1, D("i-2"))),
    Case("select_scatter", torch.select_scatter, (T("a b c", permute=(1, 0, 2)), T("b d"), 1, 0)),
    Case("slice_scatter", torch.slice_scatter, (X, T("a d c"), 1, 1, D("i"), 2)),
    Case("slice_scatter", torch.slice_scatter, (T("a 1 c", strides="2*c 0 1"), T("a d c", i64), 1, 0, 1)),
    Case("narrow", torch.narrow, (X, 1, long(""), D("j-1"))),
    Case("index", aten.index, (X, (None, long("i")))),
    Case("index", aten.index, (X, (None, long("")))),
    Case("index_put", torch.index_put, (X, (long("i"), long("1")), T("d c"))),
    Case("index_put", torch.index_put, (T("a b c", permute=(1, 0, 2)), (long("i"),), T("d c"))),
]

REFUSED = [
    get(0, 0, of=T("a")),
    get(0, of=T("")),
    get(T("i")),
    get(T("i", i16)),
    get(1.5),
    get(slice(None, None, -1)),
    get(slice(None, None, 0)),
    get([[0, 1], [2]]),
    put(long("i"), value=T("b c", i64)),
    put(True, value=T("a b c", i64)),
    Case("select", torch.select, (T(""), 0, 0)),
    Case("slice", aten.slice, (T(""),)),
    Case("narrow", torch.narrow, (X, 1, 0, -1)),
    Case("slice_scatter", torch.slice_scatter, (X, T("c"),)),
    Case("index_put", torch.index_put, (X, (long("i"),), T("1 d b c"))),
    Case("index_put", torch.index_put, (X, (long("i"),), T("d b c", i64))),
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


# --- what results look like ------------------------------------------------------------------------------

b, n, t = sym("b"), sym("n"), sym("t")
SIZES = Domain(("b", "n", "t"), (ge(b, 1), ge(n, 1), ge(t, 0)))


def run(op: str, *args: Any) -> tuple[Any, Generator]:
    generator = Generator(rules, SIZES)
    return generator.call(op, args, {})[1], generator


@pytest.mark.parametrize(
    "index, size",
    [
        (Slice(None, t), "min(n, t)"),
        (Slice(None, n), "n"),
        (Slice(t, None), "max(n - t, 0)"),
        (Slice(None, 2 * n), "n"),
        (Slice(1, None), "n - 1"),
        (Slice(2, None), "max(n - 2, 0)"),
        (Slice(-1, None), "1"),
        (Slice(-2, None), "min(n, 2)"),
        (Slice(None, -1), "n - 1"),
        (Slice(None, None, 2), "ceil(n/2)"),
        (Slice(1, None, 2), "n//2"),
        (Slice(-1, None, 4), "1"),
        (Slice(3, 5), "max(min(n - 3, 2), 0)"),
    ],
    ids=str,
)
def test_sizes_of_slices_are_simple(index: Slice, size: str) -> None:
    result, generator = run("getitem", Tensor((b, n)), (Slice(), index))
    assert str(result.shape[1]) == size and not generator.said.constraints


def test_a_slice_of_all_is_contiguous() -> None:
    assert run("getitem", Tensor((b, n)), (Slice(), Slice(None, n)))[0] == Tensor((b, n))
    assert run("getitem", Tensor((b, n)), (Slice(None, t),))[0].layout is Layout.CONTIGUOUS


def test_a_slice_keeps_strides() -> None:
    result, _ = run("getitem", Tensor((b, n, t)), (Slice(None, None, 2), 0, Slice(1)))
    assert result.layout == (2 * n * t, 1)


def test_what_data_decides_is_a_fresh_size() -> None:
    result, generator = run("getitem", Tensor((b, n)), Tensor((b,), "bool"))
    (name,) = generator.said.unbacked
    assert result.shape == (sym(name), n)
    assert str(generator.said.unbacked[name]) == f"0 <= {name} and {name} <= b"
    result, _ = run("getitem", Tensor((b, n)), (Slice(None, Tensor((), "int64")),))
    assert result.rank == 2 and result.shape[1] == n
    assert run("getitem", Tensor((b, n)), Number("int"))[0].shape == (n,)


def test_tuples_are_indexed_too() -> None:
    pair = Tensor((b,)), Tensor((n,))
    assert run("getitem", pair, 1)[0] == pair[1]
    assert run("getitem", pair, -2)[0] == pair[0]
    assert run("getitem", pair, Slice(1))[0] == pair[1:]
    assert run("getitem", (n, t), 0)[0] == n
    assert run("getitem", pair, 2)[0] is Dyn


def test_the_ellipsis() -> None:
    assert run("getitem", Tensor((b, n, t)), (Dots, 0))[0].shape == (b, n)


def test_the_judge_sees_wrong_rules() -> None:
    def unclamped(c: Any, input: Tensor, index: Any) -> Tensor:
        """a slice that reaches past the end is as long as it says"""
        (cut,) = index
        return Tensor((cut.stop, *input.shape[1:]), input.dtype)

    def in_place(c: Any, input: Tensor, index: Any) -> Tensor:
        """the dims of index tensors never move to the front"""
        first = index[0]
        return Tensor((first.shape[0], input.shape[1]), input.dtype)

    for wrong, case in (
        (unclamped, get(slice(None, D("t")))),
        (in_place, get(long("1"), ALL, long("i"), of=T("2 b 2"))),
    ):
        with pytest.raises(AssertionError, match="rule"):
            check_case(case, Rules({"getitem": wrong}))
