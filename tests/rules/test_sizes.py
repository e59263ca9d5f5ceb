"""Arithmetic and conditions on sizes, judged by Python; sizes and strides, judged by torch."""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch

from anyshape.constraints.engine.generate import Generator
from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Layout, Number, Tensor
from anyshape.constraints.ir.opnames import SIZES as SPELLINGS
from anyshape.constraints.ir.opnames import canonical
from anyshape.constraints.ir.system import Domain
from anyshape.constraints.rules.sizes import SIZE_RULES
from anyshape.constraints.terms.dims import Term, evaluate, sym
from anyshape.constraints.terms.formula import And, Compare, Or, all_of, eq, ge, holds
from anyshape.typecheck.testing.differential import T, lower

rules = Rules(SIZE_RULES)
n, m = sym("n"), sym("m")
DOMAIN = Domain(("n", "m"), (ge(n, 0), ge(m, 0)))


def run(op: str, *args: Any, domain: Domain = DOMAIN, **kwargs: Any) -> tuple[Any, Generator]:
    generator = Generator(rules, domain)
    return generator.call(op, args, kwargs)[1], generator


def value_of(result: Any, values: dict[str, int]) -> Any:
    if isinstance(result, Term):
        return evaluate(result, values)
    return holds(result, values) if isinstance(result, Compare | And | Or) else result


def outcome(call: Callable[..., Any], *args: Any) -> Any:
    try:
        return call(*args)
    except (ZeroDivisionError, ValueError) as error:
        return type(error)


PYTHON: dict[str, Callable[..., Any]] = {
    "sym_add": operator.add,
    "sym_sub": operator.sub,
    "sym_mul": operator.mul,
    "sym_floordiv": operator.floordiv,
    "sym_mod": operator.mod,
    "sym_pow": operator.pow,
    "sym_lshift": operator.lshift,
    "sym_rshift": operator.rshift,
    "sym_neg": operator.neg,
    "sym_pos": operator.pos,
    "sym_abs": abs,
    "sym_max": max,
    "sym_min": min,
    "sym_sum": sum,
    "sym_int": int,
    "sym_index": operator.index,
    "sym_trunc": math.trunc,
    "sym_floor": math.floor,
    "sym_ceil": math.ceil,
    "sym_round": round,
    **{f"sym_{name}": getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    "sym_not": operator.not_,
}
OPERANDS: dict[str, list[tuple[Any, ...]]] = {
    "sym_pow": [(n - 2, 3), (n, 0), (2, 5)],
    "sym_lshift": [(n - 3, 2), (m, 0), (7, 1)],
    "sym_rshift": [(n - 3, 2), (m, 0), (7, 1)],
    "sym_sum": [((n, m, 3),), ((),)],
    **{
        f"sym_{name}": [(n - 3,), (m,), (7,)]
        for name in "neg pos abs int index trunc floor ceil round not".split()
    },
}
PAIRS = [(n, m), (n - m, 3), (7, n - 2), (n, n + 1), (2 * n, n), (m, 0), (5, 2)]
FLOATS = [
    *((n, f) for f in (2.5, 3.0, -0.5, math.inf, -math.inf, math.nan)),
    (2.5, m), (3.0, n - 2), (-math.inf, n), (2.5, 2.5),
]  # fmt: skip


@pytest.mark.parametrize("op", PYTHON)
def test_python_agrees(op: str) -> None:
    comparison = op.removeprefix("sym_") in ("eq", "ne", "lt", "le", "gt", "ge")
    cases = OPERANDS.get(op) or (PAIRS + FLOATS * comparison)
    rng = random.Random(op)
    for args in cases:
        result, generator = run(op, *args)
        required = all_of(c.formula for c in generator.said.constraints)
        for _ in range(30):
            values = {"n": rng.randrange(9), "m": rng.randrange(9)}
            plain = [
                [evaluate(a, values) for a in arg] if isinstance(arg, tuple) else value_of(arg, values)
                for arg in args
            ]
            expected = outcome(PYTHON[op], *plain)
            if expected is ZeroDivisionError:
                assert not holds(required, values), (op, args, values)
            else:
                assert holds(required, values), (op, args, values)
                assert value_of(result, values) == expected, (op, args, values, result)


def test_every_rule_of_arithmetic_is_compared() -> None:
    """With Python above, or by hand below."""
    by_hand = {"sym_truediv", "sym_float", "sym_sqrt", "sym_log2", "sym_and", "sym_or", "sym_ite"}
    reading = {"sym_size", "sym_numel", "sym_stride", "sym_storage_offset", "item", "_local_scalar_dense"}
    reading.add("sym_is_contiguous")
    told = ("_assert", "_check", "_functional_assert")
    asserting = {name for name in rules if "constrain" in name or name.startswith(told)}
    assert set(rules) == set(PYTHON) | by_hand | reading | asserting


def test_floats_of_sizes_are_only_known_to_be_floats() -> None:
    for op, *args in ("sym_truediv", n, 2), ("sym_float", n), ("sym_mul", n, 1.5), ("sym_max", n, 0.5):
        result, generator = run(op, *args)
        assert isinstance(result, Number) and result.kind == "float" and not generator.said.notes
    assert run("sym_truediv", 3, 2)[0] == 1.5
    assert run("sym_mul", Number("int"), n)[0] == Number("int")
    assert run("sym_gt", Number("float"), n)[0] == Number("bool")
    assert run("sym_sqrt", 9)[0] == 3.0 and run("sym_log2", n)[0] == Number("float")


def test_the_least_is_known_within_bounds() -> None:
    domain = Domain(("n",), (ge(62, n), ge(n, 2)))
    for a, b, least, greatest in ((n, 63, n, 63), (62, n, n, 62), (n, 2, 2, n), (1, n, 1, n)):
        assert run("sym_min", a, b, domain=domain)[0] == least
        assert run("sym_max", a, b, domain=domain)[0] == greatest
    assert str(run("sym_min", n, 61, domain=domain)[0]) == "min(n, 61)"


def test_a_rounded_float_is_an_unknown_integer() -> None:
    result, generator = run("sym_floor", Number("float"))
    assert isinstance(result, Term) and [note.code for note in generator.said.notes] == ["approximate"]
    assert generator.said.unbacked == {str(result): True}, "it may be negative"


def test_conditions_join() -> None:
    small, large = eq(n, 3), ge(m, 4)
    assert run("sym_and", small, large)[0] == all_of((small, large))
    assert run("sym_or", False, small)[0] == small
    assert run("sym_and", Number("bool"), False)[0] is False
    assert run("sym_or", small, Number("bool"))[0] == Number("bool")
    assert run("sym_and", 6, 3)[0] == 2
    assert run("sym_not", small)[0] == run("sym_ne", n, 3)[0]
    assert run("sym_eq", small, False)[0] == run("sym_ne", n, 3)[0]
    assert run("sym_eq", True, small)[0] == small


def test_the_condition_of_a_choice_is_asked_for() -> None:
    assert run("sym_ite", eq(n, 3), m, m)[0] == m
    assert run("sym_ite", True, n, m)[0] == n
    generator = Generator(rules, DOMAIN, chooser=lambda formula: formula != eq(n, 3))
    assert generator.call("sym_ite", (eq(n, 3), n, m), {})[1] == m


def test_division_by_zero() -> None:
    for op in ("sym_floordiv", "sym_mod", "sym_truediv"):
        _, generator = run(op, n, m)
        assert [str(c.formula) for c in generator.said.constraints] == ["m != 0"]
        assert not run(op, n, m + 1)[1].said.constraints
        assert run(op, n, 0)[1].said.constraints[0].formula is False


def test_assertions_are_required() -> None:
    for op, args, kwargs, formula in (
        ("_assert_scalar", (ge(n, 3), "at least 3"), {}, "3 <= n"),
        ("_assert_scalar", (n,), {}, "n != 0"),
        ("_check", (ge(n, 3),), {}, "3 <= n"),
        ("_check_is_size", (n - 1,), {}, "1 <= n"),
        ("_check_is_size", (n - 1,), {"max": 4}, "1 <= n and n <= 5"),
        ("sym_constrain_range", (n,), {"min": 2, "max": 4}, "2 <= n and n <= 4"),
        ("sym_constrain_range_for_size", (n - 1,), {"max": 4}, "1 <= n and n <= 5"),
    ):
        result, generator = run(op, *args, **kwargs)
        assert result == () and [str(c.formula) for c in generator.said.constraints] == [formula]


def test_the_reason_is_the_user_s() -> None:
    assert run("_assert_scalar", eq(n, 3), "three at most")[1].said.constraints[0].reason == "three at most"


def test_what_is_said_of_data_is_no_condition() -> None:
    for op, args in (
        ("_assert_scalar", (Number("bool"), "")),
        ("_assert_async", (Tensor(()), "")),
        ("_assert_tensor_metadata", (Tensor((n,)), (3,), None, "float32")),
    ):
        result, generator = run(op, *args)
        assert result == () and not generator.said.constraints and not generator.said.notes


@pytest.mark.parametrize("low, high", [(None, None), (2, 4), (0, 2), (4, 3), (1, None)])
@pytest.mark.parametrize("op", ["sym_constrain_range", "sym_constrain_range_for_size"])
def test_torch_agrees_on_ranges(op: str, low: int | None, high: int | None) -> None:
    for size in (-1, 0, 1, 2, 4, 5):
        try:
            getattr(torch.ops.aten, op)(size, min=low, max=high)
            accepted = True
        except RuntimeError:
            accepted = False
        _, generator = run(op, size, min=low, max=high)
        assert accepted == all(c.formula is True for c in generator.said.constraints), (size, low, high)


@pytest.mark.parametrize("tensor", [T("n m 3"), T("n m 3", permute=(2, 0, 1)), T("")], ids=str)
def test_torch_agrees_on_sizes_and_strides(tensor: T) -> None:
    for values in ({"n": i, "m": j} for i in range(4) for j in range(4)):
        real = tensor.build(values)
        for known in (lower(real), tensor.symbolic()):
            sizes, _ = run("sym_size", known)
            assert [value_of(size, values) for size in sizes] == list(real.shape)
            assert value_of(run("sym_numel", known)[0], values) == real.numel()
            if real.numel() or tensor.permute is None:
                strides, _ = run("sym_stride", known)
                assert [value_of(stride, values) for stride in strides] == list(real.stride())
            for dim in range(-real.dim(), real.dim()):
                assert value_of(run("sym_size", known, dim)[0], values) == real.size(dim)


@pytest.mark.parametrize("tensor", [T("a b"), T("a b", permute=(1, 0)), T("a b c d"), T("a b c"),
    T("a c d b", permute=(0, 3, 1, 2)), T("a c d e b", permute=(0, 4, 1, 2, 3)), T("a b", strides="2*b 2")],
    ids=str)  # fmt: skip
def test_contiguity_is_torchs(tensor: T) -> None:
    formats = (torch.contiguous_format, torch.channels_last, torch.channels_last_3d)
    for form in formats:
        known = tensor.symbolic()
        said, _ = run("sym_is_contiguous", known, str(form))
        for sizes in product((1, 2, 3), repeat=known.rank):
            values = dict(zip("abcde", sizes, strict=False))
            real = tensor.build(values)
            assert value_of(said, values) == real.is_contiguous(memory_format=form), (form, values)


def test_unknown_strides_are_approximate() -> None:
    result, generator = run("sym_stride", Tensor((n,), "float32", Layout.UNKNOWN), 0)
    assert isinstance(result, Term) and generator.said.notes[0].code == "approximate"
    assert run("sym_storage_offset", Tensor((n,)))[1].said.notes[0].code == "approximate"
    unknown = Tensor((n,), "float32", Layout.UNKNOWN)
    assert run("sym_is_contiguous", unknown)[1].said.notes[0].code == "approximate"


@pytest.mark.parametrize(
    "dtype, known", [("float32", Number("float")), ("bool", Number("bool")), ("complex64", Number("complex"))]
)
def test_the_element_of_a_tensor_of_one(dtype: str, known: Number) -> None:
    result, generator = run("item", Tensor((n, 1), dtype))
    assert result == known and [str(c.formula) for c in generator.said.constraints] == ["n == 1"]


def test_the_first_of_many_elements() -> None:
    """ATen's `_local_scalar_dense` takes larger tensors, too."""
    result, generator = run("_local_scalar_dense", Tensor((n, 2)))
    assert result == Number("float") and [str(c.formula) for c in generator.said.constraints] == ["1 <= n"]
    assert torch.ops.aten._local_scalar_dense(torch.ones(3, 2)) == 1
    with pytest.raises(RuntimeError):
        torch.ops.aten._local_scalar_dense(torch.ones(0, 2))


def test_assertions_as_functions_return_their_token() -> None:
    token = Tensor((0,))
    for op, *args in (
        ("_functional_assert_scalar", ge(n, 3), "no", token),
        ("_functional_sym_constrain_range", n, 3, None, token),
        ("_functional_sym_constrain_range_for_size", n, 3, None, token),
    ):
        result, generator = run(op, *args)
        assert isinstance(result, Tensor) and result.shape == (0,)
        assert holds(all_of(c.formula for c in generator.said.constraints), {"n": 3})
        assert not holds(all_of(c.formula for c in generator.said.constraints), {"n": 2})
    result, generator = run("_functional_assert_async", Tensor((), "bool"), "no", token)
    assert result.shape == (0,) and not generator.said.constraints


def test_an_integer_that_data_decide_may_be_negative() -> None:
    result, generator = run("item", Tensor((), "int64"))
    assert isinstance(result, Term) and generator.said.unbacked == {str(result): True}
    assert not generator.said.constraints and not generator.said.notes


def test_a_scalar_has_no_size_to_ask_for() -> None:
    assert run("sym_size", Tensor(()), 0)[1].said.constraints[0].formula is False


@pytest.mark.parametrize(
    "spelling, name",
    [
        ("_operator.add", "sym_add"),
        ("_operator.and_", "sym_and"),
        ("builtins.max", "sym_max"),
        ("math.trunc", "sym_trunc"),
        ("torch.sym_max", "sym_max"),
        ("torch._sym_sqrt", "sym_sqrt"),
        ("torch.ops.aten.sym_size.int", "sym_size"),
        ("torch.ops.aten.add.Tensor", "add"),
        ("_operator.getitem", "getitem"),
        ("_operator.matmul", "matmul"),
        ("aten::unique_consecutive", "_unique_consecutive"),
    ],
)
def test_spellings(spelling: str, name: str) -> None:
    assert canonical(spelling) == name


def test_every_spelling_has_a_rule() -> None:
    assert set(SPELLINGS.values()) <= set(rules)


def test_the_comparison_with_python_sees_wrong_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Rules({**SIZE_RULES, "sym_floordiv": SIZE_RULES["sym_mod"], "sym_lt": SIZE_RULES["sym_le"]})
    monkeypatch.setitem(globals(), "rules", wrong)
    for op in ("sym_floordiv", "sym_lt"):
        with pytest.raises(AssertionError):
            test_python_agrees(op)


# what Python computes with floats, and the rules with sizes
ROUNDED: list[tuple[str, Callable[[int], int], str, tuple[Any, ...]]] = [
    ("floor", lambda n: math.floor(n / 4), "sym_truediv", (n, 4)),
    ("trunc", lambda n: math.trunc((3 * n) / (8 / 4.0)), "sym_truediv", (3 * n, 2.0)),
    ("ceil", lambda n: math.ceil(n / 3), "sym_truediv", (n, 3)),
    ("int", lambda n: int(100 / (n + 1)), "sym_truediv", (100, n + 1)),
    ("round", lambda n: round(n / 4), "sym_truediv", (n, 4)),
    ("round", lambda n: round(n / 6), "sym_truediv", (n, 6)),
    ("int", lambda n: int(n**0.5), "sym_pow", (n, 0.5)),
    ("floor", lambda n: math.floor(math.sqrt(n)), "sym_sqrt", (n,)),
]


@pytest.mark.parametrize("rounding, python, op, args", ROUNDED)
def test_quotients_and_roots_are_sizes_when_they_are_rounded(
    rounding: str, python: Callable[[int], int], op: str, args: tuple[Any, ...]
) -> None:
    result, _ = run(op, *args)
    assert isinstance(result, Number) and result.kind == "float"
    rounded, generator = run(f"sym_{rounding}", result)
    assert not generator.said.notes
    assert all(evaluate(rounded, {"n": size}) == python(size) for size in range(1, 400))


def test_a_fraction_of_fractions_is_rounded_twice() -> None:
    third, _ = run("sym_truediv", n, 3)
    for args in ((third, 7), (n, third)):
        result, _ = run("sym_truediv", *args)
        assert result == Number("float")
    half, _ = run("sym_truediv", n, 4)
    result, _ = run("sym_truediv", 5 * n, half)
    assert evaluate(run("sym_floor", result)[0], {"n": 3}) == 20


def test_masks_of_the_last_bits_are_remainders() -> None:
    for mask in (0, 1, 3, 7):
        result, generator = run("sym_and", n, mask)
        assert result == n % (mask + 1) and not generator.said.notes
    assert isinstance(run("sym_and", n, 2)[0], Number)
