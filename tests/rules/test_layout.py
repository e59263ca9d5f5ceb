"""Views, reshapes, and the algebra of strides behind them, judged by torch."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
import torch

from anyshape.constraints.engine.generate import Generator
from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Dyn, Layout, Tensor
from anyshape.constraints.ir.system import Domain
from anyshape.constraints.rules.layout import RULES
from anyshape.constraints.terms.dims import sym
from anyshape.constraints.terms.formula import ge, holds
from anyshape.typecheck.testing.differential import Case, D, T, check_case

X = torch.Tensor
aten = torch.ops.aten
rules = Rules(RULES)
i8, i16, i32 = torch.int8, torch.int16, torch.int32
HEADS = T("b t h c", permute=(0, 2, 1, 3))
"""Attention's `transpose(1, 2)`: [b, h, t, c]"""
CUT = T("b t c", strides="n*c c 1")
"""`x[:, :t]` of `[b, n, c]`"""

MIXED = [
    Case("view", X.view, (T("b t c"), D("b"), D("t"), 4, D("c//4"))),
    Case("view", X.view, (T("b t c"), D("b"), D("t"), 4, -1)),
    Case("view", X.view, (T("b t c"), (D("b"), -1, D("h"), D("c//h"))), where="h"),
    Case("view", X.view, (T("b n"), D("a"), D("m"))),
    Case("view", X.view, (T("b n"), D("a-1"), 3), where="a"),
    Case("view", X.view, (T("b n"), D("a-2"), D("b"))),
    Case("view", X.view, (T("b n"), D("a-2"), D("c-2"))),
    Case("view", X.view, (T("b n"), D("a-2"), -1)),
    Case("view", X.view, (T("b n"), -1, D("n"))),
    Case("view", X.view, (HEADS, D("b"), D("h"), D("t*c"))),
    Case("view", X.view, (HEADS, D("b"), D("t*h"), D("c"))),
    Case("view", X.view, (HEADS, D("b*h"), D("t"), D("c"))),
    Case("view", X.view, (HEADS, D("b"), D("h"), D("t"), 2, D("c//2"))),
    Case("view", X.view, (HEADS, -1, D("t*c"))),
    Case("view", X.view, (CUT, D("b*t"), D("c"))),
    Case("view", X.view, (CUT, -1)),
    Case("view", X.view, (T("3 2*a 1", strides="1 3 3"), -1)),
    Case("view", X.view, (T("b t c", strides="p q r"), D("b"), D("t*c"))),
    Case("view", X.view, (T("b t c", strides="p q r"), D("x"), D("y"), D("z"))),
    Case("view", X.view, (T("b t c", strides="p q r"), D("x"), -1)),
    Case("view", X.view, (T("n", i8), i32)),
    Case("view", X.view, (T("b n", i8), i32)),
    Case("view", X.view, (T("b+2 n+1", i8, strides="p 1"), i32)),
    Case("view", X.view, (T("b+2 n+1", i32, strides="p q+1"), i8)),
    Case("view_as", X.view_as, (T("a b"), T("c d"))),
    Case("reshape", X.reshape, (T("a b c", permute=(1, 0, 2)), -1, D("c"))),
    Case("reshape", torch.reshape, (T("a b"), (D("c"), D("d")))),
    Case("reshape", X.reshape, (T("a b c", strides="m*c c 1"), D("a"), -1)),
    Case("reshape_as", X.reshape_as, (T("a b", permute=(1, 0)), T("c d"))),
    Case("view_copy", aten.view_copy, (T("a b", permute=(1, 0)), (D("c"), -1))),
    Case("unflatten", X.unflatten, (T("a n c"), 1, (D("x"), D("y")))),
    Case("unflatten", X.unflatten, (T("a n c", permute=(2, 1, 0)), 1, (D("x"), -1))),
    Case("unflatten", X.unflatten, (T("0 n"), 1, (2, 3))),
    Case("as_strided", torch.as_strided, (T("a b"), (D("x"), D("y")), (D("y"), 1))),
    Case("as_strided_scatter", torch.as_strided_scatter, (T("a b"), T("x y"), (D("x"), 2), (2, 1))),
    Case("as_strided", torch.as_strided, (T("a b"), (D("x"), D("y")), (D("y"), 1), D("z"))),
]

ACCEPTED = [
    Case("view", X.view, (CUT, D("b"), D("t*c"))),
    Case("view", X.view, (CUT, D("b"), 1, D("t"), D("c"), 1)),
    Case("view", X.view, (T("b 1 c", strides="c 7 1"), D("b*c"))),
    Case("view", X.view, (T("b 4*c n"), D("b"), 2, 2, D("c"), D("n"))),
    Case("view", X.view, (T("b n"), i16)),
    Case("view", X.view, (T("b n"), i32)),
    Case("reshape", X.reshape, (HEADS, D("b"), D("h*t"), D("c"))),
    Case("reshape", X.reshape, (T("b h t 64", permute=(0, 2, 1, 3)), D("b"), D("t"), D("h*64"))),
    Case("reshape", X.reshape, (T("a b c", strides="m*c c 1"), D("a*b"), D("c"))),
    Case("flatten", torch.flatten, (T("a b c d"), 1, 2)),
    Case("flatten", torch.flatten, (T("a b c d"),), {"start_dim": 1}),
    Case("flatten", torch.flatten, (T("a b c d", permute=(0, 1, 3, 2)), 1)),
    Case("flatten", torch.flatten, (T("a b c d", permute=(1, 0, 2, 3)), 2)),
    Case("flatten", torch.flatten, (T(""),)),
    Case("ravel", torch.ravel, (T("a b", permute=(1, 0)),)),
    Case("squeeze", X.squeeze, (T("a n c"),)),
    Case("squeeze", X.squeeze, (T("a n c", permute=(1, 2, 0)), 1)),
    Case("squeeze", X.squeeze, (T("a n c"), (0, -1))),
    Case("squeeze", X.squeeze, (T("a 1 c"), ())),
    Case("squeeze", X.squeeze, (T(""), 0)),
    Case("unsqueeze", X.unsqueeze, (T("a n c", permute=(1, 2, 0)), 1)),
    Case("unsqueeze", X.unsqueeze, (T("a n c"), -1)),
    Case("atleast_1d", torch.atleast_1d, (T(""),)),
    Case("atleast_2d", torch.atleast_2d, (T(""), T("a"), T("a b"))),
    Case("atleast_3d", torch.atleast_3d, (T("a"), T("a b", permute=(1, 0)), T("a b c d"))),
    Case("permute", X.permute, (T("a n c"), 2, 0, 1)),
    Case("permute", torch.permute, (T("a n c"), (2, 0, -2))),
    Case("transpose", torch.transpose, (T("a b c d"), 1, -1)),
    Case("transpose", torch.transpose, (T(""), 0, -1)),
    Case("t", torch.t, (T("a b"),)),
    Case("t", torch.t, (T("a"),)),
    Case("T", lambda x: x.T, (T("a b"),)),
    Case("mT", lambda x: x.mT, (T("a b c"),)),
    Case("adjoint", torch.adjoint, (T("a b c"),)),
    Case("H", lambda x: x.H, (T("a b"),)),
    Case("movedim", torch.movedim, (T("a n c d"), (2, 0), (0, -1))),
    Case("movedim", torch.movedim, (T("a n c"), 0, 2)),
    Case("contiguous", X.contiguous, (T("a b", permute=(1, 0)),)),
    Case("contiguous", X.contiguous, (T("a b c d"),), {"memory_format": torch.channels_last}),
    Case("contiguous", X.contiguous, (T("a b c d e"),), {"memory_format": torch.channels_last_3d}),
    Case("alias", aten.alias, (T("a b", permute=(1, 0)),)),
    Case("t_copy", aten.t_copy, (T("a b"),)),
    Case("squeeze_copy", aten.squeeze_copy, (T("a b", permute=(1, 0)), 0)),
]

REFUSED = [
    Case("view", X.view, (T("a b"), -1, -1)),
    Case("view", X.view, (T("a b"), -2, D("b"))),
    Case("view", X.view, (T(""), i8)),
    Case("flatten", torch.flatten, (T("a b c"), 2, 1)),
    Case("flatten", torch.flatten, (T("a b c"), 3)),
    Case("unflatten", X.unflatten, (T("a"), 0, ())),
    Case("squeeze", X.squeeze, (T("a b"), 2)),
    Case("squeeze", X.squeeze, (T("a b"), (0, 0))),
    Case("unsqueeze", X.unsqueeze, (T("a b"), 3)),
    Case("permute", X.permute, (T("a b"), 0)),
    Case("permute", X.permute, (T("a b"), 0, 0)),
    Case("transpose", torch.transpose, (T("a b"), 0, 2)),
    Case("t", torch.t, (T("a b c"),)),
    Case("mT", lambda x: x.mT, (T("a"),)),
    Case("H", lambda x: x.H, (T("a b c"),)),
    Case("movedim", torch.movedim, (T("a b"), (0, 1), (0, 0))),
    Case("movedim", torch.movedim, (T("a b"), (0, 1), 0)),
    Case("contiguous", X.contiguous, (T("a b"),), {"memory_format": torch.channels_last}),
    Case("contiguous", X.contiguous, (T("a+2 b+2", strides="1 a+2"), torch.preserve_format)),
    Case("as_strided", torch.as_strided, (T("a b"), (1, 1), (1,))),
    Case("as_strided", torch.as_strided, (T("a b"), (1,), (-1,))),
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


# --- what the conditions look like -----------------------------------------------------------------------

b, t, h, c, n = map(sym, "bthcn")
SIZES = Domain(("b", "t", "h", "c", "n"), tuple(ge(size, 1) for size in (b, t, h, c, n)))


def call(op: str, *args: Any, domain: Domain = SIZES) -> tuple[Any, list[str], list[str]]:
    """The result, the requirements and the notes."""
    generator = Generator(rules, domain)
    _, result = generator.call(op, args, {})
    said = generator.said
    return result, [str(r.formula) for r in said.constraints], [note.code for note in said.notes]


def transposed(*shape: Any) -> Tensor:
    """`[b, t, h, c].transpose(1, 2)`"""
    result, _, _ = call("transpose", Tensor(shape), 1, 2)
    assert isinstance(result, Tensor)
    return result


@pytest.mark.parametrize(
    "tensor, size, required",
    [
        (Tensor((b, t, c)), (b, t, 4, c // 4), ["c % 4 == 0"]),
        (Tensor((b, t, c)), (b, -1), []),
        (Tensor((b, t, c)), (-1, c), []),
        (Tensor((b, t, c)), (b, t, -1, 4), ["c % 4 == 0"]),
        (Tensor((b, t, c)), (b, t, h, c // h), ["c % h == 0"]),
        (Tensor((b, t)), (b, h), ["h == t"]),
        (Tensor((b, h, h * t)), (b, -1, t), []),
        (transposed(b, t, h, c), (b, h * t, c), ["h == 1 or t == 1"]),
        (transposed(b, t, 4, c), (b, 4 * t, c), ["t == 1"]),
        (Tensor((b, t, c), "float32", (n * c, c, 1)), (b * t, c), ["b == 1 or n == t or t == 1"]),
        (Tensor((b, t, c), "float32", (n * c, c, 1)), (b, t, 2, -1), ["c % 2 == 0"]),
    ],
    ids=str,
)
def test_conditions_are_short(tensor: Tensor, size: tuple[Any, ...], required: list[str]) -> None:
    assert call("view", tensor, *size)[1] == required


def test_a_factor_that_may_be_zero_is_no_factor_to_cancel() -> None:
    maybe_empty = Domain(("b", "c"), (ge(b, 0), ge(c, 0)))
    _, required, _ = call("view", Tensor((b, c)), b, 4, c // 4, domain=maybe_empty)
    assert required == ["c % 4 == 0 or b == 0"]


def test_heads_are_merged_into_a_contiguous_tensor() -> None:
    """Where the reshape after attention is a view (one position, or one head), it is of a contiguous
    tensor.
    """
    result, required, notes = call("reshape", transposed(b, h, t, 64), b, t, -1)
    assert result == Tensor((b, t, 64 * h)) and not required and not notes


def test_merged_heads_of_unknown_width_may_be_a_view() -> None:
    """With heads of width 1, `[b, t, h, 1].transpose(1, 2)` merges into a view that is not contiguous."""
    result, _, _ = call("reshape", transposed(b, h, t, c), b, t, -1)
    assert isinstance(result, Tensor) and result.layout is Layout.UNKNOWN


def test_transposing_twice_is_contiguous() -> None:
    once = transposed(b, t, h, c)
    assert once.layout == (t * h * c, c, h * c, 1)
    assert call("transpose", once, 1, 2)[0] == Tensor((b, t, h, c))


def test_a_view_of_unknown_strides() -> None:
    scattered = Tensor((b, t, c), "float32", Layout.UNKNOWN)
    split, required, notes = call("view", scattered, b, t, 2, c // 2)
    assert required == ["c % 2 == 0"] and not notes, "dims that are split need nothing of the strides"
    assert isinstance(split, Tensor) and split.layout is Layout.UNKNOWN
    assert call("view", scattered, b, t * c)[2] == ["approximate"]


def test_squeeze_of_a_size_that_may_be_1_has_no_rule_without_an_answer() -> None:
    result, required, notes = call("squeeze", Tensor((b, t)), 0)
    assert result is None and not required and notes == ["no-rule"]
    assert call("squeeze", Tensor((b + 1, t)), 0)[0] == Tensor((b + 1, t))
    assert call("squeeze", Tensor((1, t)), 0)[0] == Tensor((t,))


def test_the_answer_decides_the_rank() -> None:
    for lone, shape in ((True, (t,)), (False, (b, t))):
        generator = Generator(rules, SIZES, chooser=lambda formula, lone=lone: lone)
        assert generator.call("squeeze", (Tensor((b, t)), 0), {})[1] == Tensor(shape)


def test_in_place_squeeze_changes_the_shape() -> None:
    assert call("squeeze_", Tensor((1, t)), 0)[0] == Tensor((t,))


def test_a_refused_call_gives_dyn() -> None:
    result, required, _ = call("permute", Tensor((b, t)), 0)
    assert result is Dyn and required == ["False"]


def test_the_judge_sees_wrong_rules() -> None:
    def without_strides(c: Any, input: Tensor, *size: Any) -> Tensor:
        """view as if every tensor were contiguous"""
        return RULES["view"](c, Tensor(input.shape, input.dtype), *size)  # type: ignore[no-any-return]

    def too_strict(c: Any, input: Tensor, *shape: Any) -> Tensor:
        """reshape as if it were view"""
        return RULES["view"](c, input, *shape)  # type: ignore[no-any-return]

    def other_strides(c: Any, input: Tensor, dim0: int, dim1: int) -> Tensor:
        result = RULES["transpose"](c, input, dim0, dim1)
        return Tensor(result.shape, result.dtype)

    for op, wrong, case in (
        ("view", without_strides, Case("view", X.view, (HEADS, D("b"), D("h"), D("t*c")))),
        ("reshape", too_strict, Case("reshape", X.reshape, (HEADS, D("b"), D("h"), D("t*c")))),
        ("transpose", other_strides, Case("transpose", torch.transpose, (T("a b c"), 0, 1))),
    ):
        with pytest.raises(AssertionError, match="rule"):
            check_case(case, Rules({op: wrong}))


def test_conditions_hold_of_what_they_say() -> None:
    """The judge draws its numbers at random; here all small ones are tried for one view across a break."""
    names = ("a", "b", "c", "d")
    generator = Generator(rules, Domain(names, tuple(ge(sym(name), 0) for name in names)))
    tensor = Tensor((sym("a"), sym("b")), "float32", (1, sym("a")))
    generator.call("view", (tensor, sym("c"), sym("d")), {})
    for va, vb, vc, vd in product(range(5), range(5), range(9), range(9)):
        values = {"a": va, "b": vb, "c": vc, "d": vd}
        try:
            torch.zeros(vb, va).t().view(vc, vd)
            accepted = True
        except RuntimeError:
            accepted = False
        assert accepted == all(holds(r.formula, values) for r in generator.said.constraints), values
