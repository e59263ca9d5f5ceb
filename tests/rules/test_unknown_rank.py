"""Calls on tensors of unknown rank, against the same calls at each rank from 0 to 6: one law for all."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pytest
from absent import NEWER
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from rules.test_rules_on_rows import cases

from anyshape.constraints.engine.generate import Generator
from anyshape.constraints.engine.ruleset import BadCall, Rules
from anyshape.constraints.ir.language import Dots, Dyn, Slice, Tensor, Value, tensors
from anyshape.constraints.ir.spec import Spec
from anyshape.constraints.ir.spec_text import parse_spec
from anyshape.constraints.rules import default_rules
from anyshape.constraints.rules.reach import POINTWISE, REACH
from anyshape.constraints.rules.whole import FEW
from anyshape.constraints.terms import rows
from anyshape.constraints.terms.dims import evaluate
from anyshape.constraints.terms.formula import holds

RANKS = range(7)
X, Y, A, B = "x", "y", "a", "b"
"""Inputs, and the results of calls before."""
SPEC = parse_spec("x: float32[...]; y: float32[...]")
SIZES = (1, 2, 3, 4, 6)


def tensor(*shape: int, dtype: str = "float32") -> Tensor:
    return Tensor(shape, dtype)


def cast(name: str, dtype: str) -> Tensor:
    """Stands for an input as a tensor of another dtype."""
    return Tensor((), f"{name}:{dtype}")


@dataclass(frozen=True)
class SizesOf:
    """Stands for the sizes of an input."""

    name: str

    def __str__(self) -> str:
        return f"{self.name}.shape"


@dataclass(frozen=True)
class Call:
    op: str
    args: tuple[Any, ...]
    named: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        named = [f"{k}={v}" for k, v in self.named]
        return f"{self.op}({', '.join([*map(str, self.args), *named])})"


def call(op: str, *args: Any, **named: Any) -> Call:
    return Call(op, args, tuple(named.items()))


ALONG = (
    "softmax softmin log_softmax cumsum cumprod cummax cummin logcumsumexp gumbel_softmax unsqueeze "
    "unsqueeze_copy squeeze squeeze_copy unbind"
)
REDUCING = "sum mean amax amin any all var std count_nonzero nansum nanmean logsumexp var_mean std_mean"
W, CHANNELS, INDEX = tensor(5, 4), tensor(3), tensor(2, dtype="int64")
DIMWISE = "softmax sum unsqueeze cumsum unbind".split()
BINARY = "add mul matmul add_ copy_ expand_as reshape_as".split()
UNARY = "relu sum mT flatten clone".split()
CALLS = (
    *(call(op, X) for op in "relu abs exp sigmoid clone contiguous zeros_like".split()),
    *(call(op, X, Y) for op in "add mul div maximum eq lt logical_and atan2".split()),
    call("add", X, 2),
    call("add", X, tensor(4)),
    call("mul", tensor(3, 1, 4), X),
    call("add", X, tensor()),
    call("where", cast(Y, "bool"), X, tensor(4)),
    call("masked_fill", X, cast(Y, "bool"), 1.0),
    call("lerp", X, Y, tensor(2, 1)),
    call("linear", X, W),
    call("linear", X, W, tensor(5)),
    call("linear", tensor(2, 4), X),
    call("linear", X, Y),
    call("embedding", tensor(5, dtype="int64"), X),
    call("layer_norm", tensor(3, 4), (4,), X),
    *(call("matmul", X, tensor(*shape)) for shape in ((4,), (4, 3), (2, 4, 3), (6, 1, 4, 3))),
    *(call("matmul", tensor(*shape), X) for shape in ((4,), (3, 4), (2, 3, 4))),
    call("matmul", X, Y),
    *(call(op, X, dim) for op in ALONG.split() for dim in (0, 1, 2, -1, -2)),
    *(call(op, X, dim) for op in REDUCING.split() for dim in (0, 1, -1, (0, 1), (-2, -1), (0, -1))),
    *(call(op, X, dim) for op in "argmax argmin median nanmedian prod".split() for dim in (0, 1, -1)),
    *(call(op, X, dim, keepdim=True) for op in "sum mean amax max median".split() for dim in (0, 1, -1, 2)),
    *(call(op, X) for op in "sum mean amax max min any argmax ravel flatten t T mT".split()),
    call("logsumexp", X, ()),
    *(call("flatten", X, *dims) for dims in ((1,), (0, 1), (1, 2), (-2,), (1, -2), (2, -2), (-3, 1))),
    *(call("transpose", X, *dims) for dims in ((0, 1), (1, 2), (-1, -2), (0, -1), (1, -1))),
    *(call("permute", X, dims) for dims in ((0,), (1, 0), (0, 2, 1), (0, 1, 3, 2), (-1, 0, 1))),
    *(call("movedim", X, *dims) for dims in ((0, 1), (-1, -2), (0, -1), (1, 0))),
    *(call("select", X, dim, 0) for dim in (0, 1, -1)),
    call("select", X, 0, 3),
    *(call("narrow", X, dim, 1, 2) for dim in (0, 1, -1)),
    *(call("index_select", X, dim, tensor(2, dtype="int64")) for dim in (0, 1, -1)),
    *(call(op, X, 2, dim) for op in ("chunk", "split", "tensor_split") for dim in (0, 1, -1)),
    *(call("flip", X, dims) for dims in ((0,), (0, 1), (-1,), (0, -1))),
    *(call("roll", X, 1, dim) for dim in (0, 1, -1)),
    call("roll", X, 1),
    *(call(op, X, dim) for op in "sort argsort glu mode".split() for dim in (0, 1, -1)),
    *(call("kthvalue", X, 1, dim) for dim in (0, -1)),
    *(call("diff", X, 1, dim) for dim in (0, 1, -1)),
    *(call("topk", X, 2, dim) for dim in (0, -1)),
    *(call("unflatten", X, dim, (2, -1)) for dim in (0, 1, -1)),
    *(call("layer_norm", X, shape) for shape in ((4,), (3, 4), (3, 3, 4))),
    call("layer_norm", X, (4,), tensor(4), tensor(4)),
    call("native_layer_norm", X, (4,), None, None, 1e-5),
    call("rms_norm", X, (4,)),
    call("embedding", cast(X, "int64"), tensor(10, 3)),
    call("aten_embedding", tensor(10, 3), cast(X, "int64")),
    call("group_norm", X, 3),
    call("batch_norm", X, CHANNELS, CHANNELS, CHANNELS, CHANNELS),
    *(call("pad", X, pads) for pads in ((1, 1), (1, 1, 2, 2), (0, -1))),
    *(call(op, X) for op in "tril triu mT mH".split()),
    call("pixel_shuffle", X, 1),
    call("pixel_unshuffle", X, 3),
    call("constant_pad_nd", X, (1, 1)),
    call("split_with_sizes", X, (1, 2), 0),
    call("slice", X, 1, 0, 2),
    call("transpose_copy", X, 0, 1),
    call("select_copy", X, 0, 0),
    *(call("view", X, shape) for shape in ((-1,), (-1, 4), (2, -1), (2, 3, 4), (6, 4))),
    *(call("reshape", X, shape) for shape in ((-1,), (2, -1, 2))),
    *(call("getitem", X, index) for index in (0, (0, 1), (Dots, 0), (0, Dots, 1), Slice(1), (Slice(), 0))),
    *(call("getitem", X, index) for index in ((Dots, Slice(0, 2)), (Dots, None), None, (None, Dots))),
    *(call("getitem", X, index) for index in (INDEX, (Dots, INDEX), (0, INDEX))),
    *(call("cat", (X, Y), dim) for dim in (0, 1, -1)),
    *(call("cat", (X, tensor(3, 4)), dim) for dim in (0, 1, -1)),
    *(call("cat", (X, X), dim) for dim in (0, -1)),
    *(call("stack", (X, Y), dim) for dim in (0, 1, -1)),
    *(call(op, (X, Y)) for op in "hstack vstack dstack column_stack".split()),
    *(call(op, (X, tensor(3, 4))) for op in "hstack vstack dstack column_stack".split()),
    *(call("tile", X, dims) for dims in ((2,), (2, 1), (3, 1, 2))),
    call("conv2d", X, tensor(5, 3, 2, 2)),
    call("conv1d", X, tensor(5, 3, 2)),
    call("max_pool2d", X, 2),
    call("adaptive_avg_pool2d", X, 2),
    call("bmm", X, tensor(3, 4, 2)),
    call("mm", X, tensor(4, 2)),
    call("expand", X, (2, 3, 4)),
    call("expand", X, (-1, 4)),
    call("repeat", X, (2, 1)),
    call("scaled_dot_product_attention", X, X, X),
    *(call("gather", X, dim, cast(Y, "int64")) for dim in (0, 1, -1, -2)),
    *(call("scatter", X, dim, cast(Y, "int64"), 1.0) for dim in (0, -1)),
    *(call("scatter_", X, dim, cast(Y, "int64"), 1.0) for dim in (0, 1)),
    *(call("scatter_add", X, dim, cast(Y, "int64"), X) for dim in (0, -1)),
    call("scatter_add", tensor(3, 4), 0, cast(Y, "int64"), X),
    call("gather", X, 1, tensor(2, 3, 4, dtype="int64")),
    call("gather", tensor(4, 6, 6), 1, cast(X, "int64")),
    *(call("take_along_dim", X, cast(Y, "int64"), dim) for dim in (0, -1, None)),
    call("take", X, cast(Y, "int64")),
    call("index_add", X, 0, INDEX, Y),
    call("masked_fill", X, cast(Y, "bool"), Y),
    call("clamp", X, Y, Y),
    call("add", X, cast(Y, "float64")),
    *(call("count_nonzero", X, *dims) for dims in ((0, 2), ((),))),
    *(call(op, X, ()) for op in ("all", "any")),
    *(call("clone", X, memory_format=f) for f in ("channels_last", "contiguous_format")),
    *(call(op, X) for op in "det inverse matrix_exp msort flipud fliplr".split()),
    *(call("renorm", X, 2, dim, 1.0) for dim in (0, 1, -1)),
    call("repeat_interleave", X, 2),
    call("repeat_interleave", X, 2, -1),
    *(call("fft_fftshift", X, *dim) for dim in ((), (1,))),
    *(call(op, X, None, (-1,)) for op in ("fft_hfftn", "fft_ifftn")),
    call("fft_ihfft2", X),
    call("_reshape_copy", X, (-1, 2)),
    call("narrow_copy", X, 0, 0, 1),
    call("native_channel_shuffle", X, 1),
    call("split_copy", X, 2, 0),
    call("split_with_sizes_copy", X, (1, 2), 0),
    call("einsum", "...ij,...jk->...ik", X, Y),
    call("einsum", "...ij,...jk", X, tensor(2, 4, 3)),
    call("einsum", "...i,...i->...", X, Y),
    call("einsum", "...i,i->...", X, tensor(4)),
    call("einsum", "b...->...b", X),
    call("einsum", "b...i->b", X),
    call("einsum", "...ii->...i", X),
    call("einsum", "...,...->...", X, Y),
    call("einsum", "ij,...j->...i", tensor(5, 4), X),
    *(call("norm", X, **named) for named in ({}, {"dim": -1}, {"dim": (0, 1)}, {"p": 1, "keepdim": True})),
    *(call("linalg_vector_norm", X, 2, dim) for dim in (None, 0, -2, (0, -1))),
    call("norm", X, "nuc"),
    *(call("unfold", X, dim, 2, 1) for dim in (0, 1, -1)),
    call("unfold", X, 2, dilation=1, padding=0, stride=1),
    *(call(op, X, Y) for op in "mse_loss l1_loss smooth_l1_loss huber_loss cdist".split()),
    call("mse_loss", X, Y, reduction="none"),
    call("mse_loss", X, Y, weight=X),
    *(call("diagonal", X, *dims) for dims in ((), (0, -2, -1), (1, 0, -1))),
    call("diagonal_copy", X),
    *(call(f"atleast_{n}d", X) for n in (1, 2, 3)),
    call("atleast_2d", X, Y),
    *(call("setitem", X, index, 1.0) for index in (0, (Dots, 0), (Slice(), 1), None, (0, Dots, Slice(1)))),
    call("setitem", X, (Dots, 0), Y),
    call("setitem", X, (Dots, 0), tensor(3)),
    call("broadcast_tensors", X, Y),
    call("scaled_dot_product_attention", X, Y, Y),
    *(call(op, X, Y) for op in "add_ mul_ copy_ copy expand_as".split()),
    call("add_", X, tensor(3, 4)),
    call("add_", X, X),
    call("add_", X, tensor()),
    call("addcmul_", X, Y, X),
    call("copy_", X, tensor(3, 4)),
    call("copy_", tensor(3, 4), X),
    call("add_", tensor(3, 4), X),
    *(call(op, X, Y) for op in ("view_as", "reshape_as")),
    *(call(op, X, tensor(2, 6)) for op in ("view_as", "reshape_as")),
    *(call(op, tensor(2, 6), X) for op in ("view_as", "reshape_as")),
    call("expand_as", X, tensor(2, 3, 4)),
    call("expand_as", tensor(3, 1), X),
    call("mul_", X, tensor(4)),
    *(call(op, X, SizesOf(Y)) for op in "view reshape expand broadcast_to".split()),
    *(call(op, tensor(3, 4), SizesOf(X)) for op in "view reshape expand broadcast_to".split()),
    *(call(op, SizesOf(X)) for op in "zeros ones empty rand randn".split()),
    *(call(op, Y, SizesOf(X)) for op in "new_zeros new_ones new_empty".split()),
    call("full", SizesOf(X), 1.0),
    call("new_full", Y, SizesOf(X), 1.0),
    call("relu_", X),
    call("one_hot", cast(X, "int64"), 5),
)  # fmt: skip


def start_again(wanted: rows.Deeper) -> None:
    raise wanted


class Answered:
    """A generator whose questions are answered by an assignment of the rows."""

    def __init__(self, spec: Spec, dims: Mapping[str, tuple[int, ...]], rules: Rules = default_rules) -> None:
        self.spec, self.dims, self.rules = spec, dims, rules

    def run(self, calls: list[Call]) -> tuple[bool, list[Value], Mapping[str, int]]:
        """Is all accepted, and what are the results; and the assignment."""
        domain = self.spec.domain
        while True:
            values = rows.assignment(domain.symbols, self.dims)
            assert all(holds(axiom, values) for axiom in domain.axioms)
            every = (
                str(rows.dim_at(name, -j))
                for name, dims in self.dims.items()
                for j in range(1, len(dims) + 1)
            )
            full = {**values, **rows.assignment((*domain.symbols, *every), self.dims)}
            g = Generator(
                self.rules, domain, partial(evaluate, values=full), partial(holds, values=full), start_again
            )
            try:
                results = [*chain(g, calls, {d.name: d.type for d in self.spec.inputs})]
                break
            except rows.Deeper as wanted:
                domain = domain.deepened(wanted)
        assert not any(rows.has_rows(rows.mentioned([c.formula])) for c in g.said.constraints)
        assert not [n for n in g.said.notes if n.code == "no-rule"], g.said.notes
        accepted = all(holds(c.formula, values) for c in g.said.constraints)
        return accepted, results, full


def chain(g: Generator, calls: list[Call], known: dict[str, Value]) -> Iterator[Value]:
    """Each result, which the next call knows as `a`, `b`, …"""

    def put(value: Any) -> Any:
        if isinstance(value, str):
            return known.get(value, value)
        name, _, dtype = (value.dtype or "").partition(":") if isinstance(value, Tensor) else ("", "", "")
        if dtype:
            return structs.replace(of, dtype=dtype) if isinstance(of := known[name], Tensor) else of
        if isinstance(value, SizesOf):
            of = known[value.name]
            return of.shape if isinstance(of, Tensor) else ()
        return tuple(map(put, value)) if isinstance(value, tuple) else value

    for name, one in zip("abcdefgh", calls, strict=False):
        _, result = g.call(one.op, tuple(map(put, one.args)), {k: put(v) for k, v in one.named})
        known[name] = next(tensors(result), Dyn) if isinstance(result, tuple) else result
        yield result


def enumerated(
    calls: list[Call], dims: Mapping[str, tuple[int, ...]], rules: Rules
) -> tuple[bool, list[Value]]:
    """The same calls on shapes that are spelt out."""
    g = Generator(rules, SPEC.domain.__class__())
    results = [*chain(g, calls, {name: Tensor(shape) for name, shape in dims.items()})]
    return not g.said.constraints, results


def compare(calls: list[Call], dims: Mapping[str, tuple[int, ...]], rules: Rules = default_rules) -> bool:
    """Whether the calls are accepted. Raises AssertionError where the two ways differ."""
    expected, wanted = enumerated(calls, dims, default_rules)
    accepted, results, values = Answered(SPEC, dims, rules).run(calls)
    told = f"{'; '.join(map(str, calls))} at {dict(dims)}"
    assert accepted == expected, told
    if accepted:
        for one, other in zip(results, wanted, strict=True):
            shapes = [rows.sizes(t.shape, values) for t in tensors(one)]
            assert shapes == [t.shape for t in tensors(other)], told
            assert [t.dtype for t in tensors(one)] == [t.dtype for t in tensors(other)], told
    return accepted


def shapes(seed: str, number: int) -> Iterator[dict[str, tuple[int, ...]]]:
    """Shapes of each rank for x, most of them ending in sizes that calls like, and some for y."""
    draw = random.Random(seed)
    liked = (2, 2, 3, 3, 4)

    def one(rank: int) -> tuple[int, ...]:
        if draw.random() < 0.6:
            found = [*[draw.choice(SIZES) for _ in range(rank)], *liked][-rank or len(liked) + rank :]
            return tuple(liked[-rank:]) if 0 < rank <= len(liked) else tuple(found[:rank])
        return tuple(draw.choice(SIZES) for _ in range(rank))

    for rank in RANKS:
        for _ in range(number):
            x = one(rank)
            y = (
                one(draw.choice(RANKS))
                if draw.random() < 0.4
                else tuple(draw.choice((n, n, n, 1)) for n in x)
            )
            yield {X: x, Y: y}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("one", CALLS, ids=str)
def test_rows_agree_with_every_rank(one: Call) -> None:
    for dims in shapes(str(one), 4):
        compare([one], dims)


@pytest.mark.parametrize("each", [6, pytest.param(1, marks=pytest.mark.slow)])
def test_calls_are_accepted_somewhere(each: int) -> None:
    """Each call is seen to be accepted at some shapes."""
    never = [c for c in CALLS[::each] if not any(compare([c], d) for d in shapes(str(c), 8))]
    assert never == []


def test_every_operator_of_the_table_is_called() -> None:
    data = {"item", "_local_scalar_dense", "unique_dim_consecutive"}  # decide their results
    called = data | NEWER | {name for c in CALLS for name in (c.op, c.op.removesuffix("_"))} | POINTWISE | FEW
    assert sorted(REACH.keys() - called - cases().keys()) == []


# ---- programs of several calls


def step(at: int) -> st.SearchStrategy[Call]:
    """A call on what is there before it."""
    there = [X, Y, *"abcdefgh"[:at]]
    operand = st.sampled_from([there[-1], there[-1], *there])
    dim = st.sampled_from((0, 1, -1, -2))
    return st.one_of(
        st.builds(lambda op, x: call(op, x), st.sampled_from(UNARY), operand),
        st.builds(lambda op, x, y: call(op, x, y), st.sampled_from(BINARY), operand, operand),
        st.builds(lambda x: call("linear", x, W), operand),
        st.builds(lambda op, x, d: call(op, x, d), st.sampled_from(DIMWISE), operand, dim),
        st.builds(lambda x, d, e: call("transpose", x, d, e), operand, dim, dim),
        st.builds(lambda x, d: call("flatten", x, d), operand, st.sampled_from((1, -2))),
        st.builds(lambda x, s: call("reshape", x, s), operand, st.sampled_from(((-1,), (-1, 4), (2, -1)))),
        st.builds(lambda x, y, d: call("cat", (x, y), d), operand, operand, dim),
        st.builds(lambda x, y: call("einsum", "...i,...i->...", x, y), operand, operand),
        st.builds(lambda x, y, d: call("gather", x, d, cast(y, "int64")), operand, operand, dim),
        st.builds(lambda x, y: call("take_along_dim", x, cast(y, "int64"), -1), operand, operand),
        st.builds(lambda x, y: call("reshape", x, SizesOf(y)), operand, operand),
        st.builds(lambda x, y: call("expand", x, SizesOf(y)), operand, operand),
        st.builds(lambda x, y: call("add", x, cast(y, "float64")), operand, operand),
        st.builds(lambda x, d: call("norm", x, dim=d), operand, dim),
        st.builds(lambda x, i: call("getitem", x, i), operand, st.sampled_from((0, (Dots, 0), (Dots, None)))),
    )  # fmt: skip


PROGRAMS = st.integers(1, 4).flatmap(lambda n: st.tuples(*(step(i) for i in range(n)))).map(list)
SHAPES = st.lists(st.sampled_from(SIZES), max_size=6).map(tuple)


@settings(max_examples=60, deadline=None)
@given(PROGRAMS, SHAPES, SHAPES, st.booleans())
def test_programs_agree_with_every_rank(
    calls: list[Call], x: tuple[int, ...], y: tuple[int, ...], same: bool
) -> None:
    dims = {X: x, Y: x if same else y}
    accepted, _ = enumerated(calls, dims, default_rules)
    if accepted:
        compare(calls, dims)
    else:  # what comes after a refusal is not looked at
        first = next(n for n in range(1, len(calls) + 1) if not enumerated(calls[:n], dims, default_rules)[0])
        compare(calls[:first], dims)


@pytest.mark.parametrize("op", ["add_", "copy_", "expand_as"])
@pytest.mark.parametrize("before", [call("unsqueeze", X, -1), call("mT", X), call("sum", X, -1)], ids=str)
def test_one_row_in_different_places(op: str, before: Call) -> None:
    """The row of an operand may be that of another, and yet stand for other dims of the result."""
    for dims in shapes(f"{op}{before}", 4):
        if enumerated([before], dims, default_rules)[0]:
            compare([before, call(op, A, X)], dims)
            compare([before, call(op, X, A)], dims)


# ---- the judge


@pytest.mark.parametrize(
    "op, reach, one",
    [
        ("softmax", "linalg_vander", call("softmax", X, 1)),
        ("transpose", "relu", call("transpose", X, 0, 1)),
        ("flatten", "relu", call("flatten", X)),
        ("tril", "linalg_vander", call("tril", X)),
        ("conv2d", "linalg_vander", call("conv2d", X, tensor(5, 3, 2, 2))),
    ],
)
def test_wrong_reach_is_caught(op: str, reach: str, one: Call) -> None:
    wrong = default_rules + {op: replace(default_rules[op], reach=REACH[reach])}
    with pytest.raises((AssertionError, IndexError, BadCall)):
        _ = [compare([one], dims, wrong) for dims in shapes(op, 8)]
