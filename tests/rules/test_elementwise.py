"""Pointwise operators, judged by torch."""
from __future__ import annotations

import itertools
import operator
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from anyshape.constraints.engine.generate import Generator
from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Layout, Number, Tensor
from anyshape.constraints.ir.system import Domain
from anyshape.constraints.rules import elementwise
from anyshape.constraints.rules.elementwise import BINARY, RULES, UNARY, pointwise_layout
from anyshape.constraints.terms.dims import sym
from anyshape.constraints.terms.formula import eq, ge
from anyshape.typecheck.testing.differential import (
    REFUSALS,
    Case,
    D,
    T,
    check_case,
    lower,
    run_rule,
)

rules = Rules(RULES)
f16, f64, i32, i64, flag, c64 = (
    torch.float16, torch.float64, torch.int32, torch.int64, torch.bool, torch.complex64,
)  # fmt: skip
DTYPES = (flag, i32, i64, torch.bfloat16, f16, torch.float32, f64, c64)


def torch_function(name: str) -> Callable[..., Any]:
    """The function of torch that a canonical name stands for."""
    special = name.removeprefix("special_")
    if special != name:
        return getattr(torch.special, special)
    renamed = {"lshift": torch.bitwise_left_shift, "rshift": torch.bitwise_right_shift}
    for place in (torch, F, torch.Tensor):
        if name in renamed or hasattr(place, name):
            return renamed.get(name) or getattr(place, name)
    raise AttributeError(name)


EXTRA = {"threshold": (0.5, 0.0)}
"""Arguments that torch insists on."""


@pytest.mark.parametrize("name", sorted(UNARY))
def test_unary_shapes(name: str) -> None:
    """A result has the shape of its operand, is contiguous or permuted as it is, and of rank 0 if it is."""
    call = torch_function(name)
    dtype = next(d for d in (torch.float32, i64, c64) if _accepts(call, name, (d,)))
    for sizes, permute in (("a b c", None), ("a b c", (2, 0, 1)), ("", None)):
        case = Case(name, call, (T(sizes, dtype, permute), *EXTRA.get(name, ())))
        accepted, refused = check_case(case, rules, 6)
        assert accepted
        assert not refused


@pytest.mark.parametrize("name", sorted(BINARY))
def test_binary_shapes(name: str) -> None:
    """Operands broadcast."""
    call = torch_function(name)
    candidates = (torch.float32, flag, i64)
    dtype = next(d for d in candidates if _accepts(call, name, (d, d)))
    if dtype == i64:
        call = _nonzero(call)
    for a, b in (("a b", "c b"), ("n", "a b m"), ("a 1 c", "b c"), ("", "a b"), ("a b", "")):
        accepted, refused = check_case(Case(name, call, (T(a, dtype), T(b, dtype))), rules, 24)
        assert accepted
        assert refused or a in ("", "a 1 c") or not b


def _nonzero(call: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, b: call(a + 1, b + 1)


def _accepts(call: Callable[..., Any], name: str, dtypes: tuple[torch.dtype, ...]) -> torch.dtype | None:
    """The dtype of the result on ones, None if torch refuses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = call(*(torch.ones(2, 4, dtype=d) for d in dtypes), *EXTRA.get(name, ()))
        except REFUSALS:
            return None
    return result.dtype


SHORT_COMPLEX = getattr(torch, "bcomplex32", None)
"""Complex numbers as short as bfloat16, since torch 2.14; hardly any kernel takes them."""
HALF_MISSING = {
    *elementwise.POLYNOMIALS.split(),
    *"special_airy_ai special_erfcx special_log_ndtr special_ndtri special_zeta".split(),
    *(n for n in UNARY if "bessel" in n),
}
"""Kernels that CPU torch lacks for half precision, which the rules do not look at."""


@pytest.mark.parametrize("name", sorted(UNARY))
def test_unary_dtypes(name: str) -> None:
    for dtype in DTYPES:
        if name in HALF_MISSING and dtype.itemsize == 2:
            continue
        expected = _accepts(torch_function(name), name, (dtype,))
        assert rule_dtype(name, torch.ones(2, 4, dtype=dtype), *EXTRA.get(name, ())) == expected, dtype


@pytest.mark.parametrize("name", [*sorted(BINARY), *"add sub rsub div pow clamp_min clamp_max".split()])
def test_binary_dtypes(name: str) -> None:
    """Promotion between tensors, 0-dim tensors and numbers, and what is refused."""
    call = torch_function(name)
    for left, right in itertools.product(DTYPES, DTYPES):
        if name in HALF_MISSING and 2 in (left.itemsize, right.itemsize):
            continue
        for a, b in (((2,), (2,)), ((2,), ()), ((), (2,))):
            x, y = torch.ones(a, dtype=left), torch.ones(b, dtype=right)
            try:
                expected = call(x, y).dtype
            except REFUSALS:
                expected = None
            if torch.result_type(x, y) == SHORT_COMPLEX:
                continue
            if expected is None and (name == "ldexp" or torch.complex32 == torch.result_type(x, y)):
                continue  # kernels that CPU torch lacks
            assert rule_dtype(name, x, y) == expected, (x.dtype, a, y.dtype, b)
    for left, number in itertools.product(DTYPES, (True, 2, 2.5, 1j)):
        x = torch.ones(2, dtype=left)
        if name in HALF_MISSING and left.itemsize == 2:
            continue
        try:
            expected = call(x, number).dtype
        except REFUSALS:
            expected = None
        if expected is None and left == f16 and number == 1j:
            continue
        if torch.result_type(x, number) == SHORT_COMPLEX:
            continue
        assert rule_dtype(name, x, number) == expected, (x.dtype, number)


def rule_dtype(name: str, *args: Any, **kwargs: Any) -> torch.dtype | None:
    accepted, result, _ = run_rule(
        rules, name, tuple(map(lower, args)), {k: lower(v) for k, v in kwargs.items()}, Domain()
    )
    return getattr(torch, result.dtype) if accepted is True else None


P = (2, 0, 1)
CASES = [
    Case("add", torch.add, (T("a b c"), T("a 1 d"))),
    Case("add", operator.add, (T("a b"), D("n"))),
    Case("add", torch.add, (T("a b"), T("a b", i64)), {"alpha": 2}),
    Case("add", torch.add, (T("a b", i64), T("a b", i64)), {"alpha": 2.5}),
    Case("add", torch.add, (T("a b c", permute=P), T("c"))),
    Case("add", torch.add, (T("b"), T("a b c", permute=P))),
    Case("add", torch.add, (T("a b c", permute=P), T("c a b"))),
    Case("add", torch.add, (T("c a b"), T("a b c", permute=P))),
    Case("add", torch.add, (T("b h w c", permute=(0, 3, 1, 2)), T("b c h w"))),
    Case("add", torch.add, (T("b h w c", permute=(0, 3, 1, 2)), T("b h w c", permute=(0, 3, 1, 2)))),
    Case("add", torch.add, (T("1 c 1 1"), T("b h w c", permute=(0, 3, 1, 2)))),
    Case("mul", torch.mul, (T("b h w c", permute=(0, 3, 1, 2)), T("b c 1 1"))),
    Case("sub", torch.sub, (T("a b"), T("b")), {"alpha": 2}),
    Case("rsub", torch.rsub, (T("a b c", permute=P), T("c a b"))),
    Case("rsub", torch.rsub, (T("a b"), 1)),
    Case("div", torch.div, (T("a b", i64), T("c", f64)), {"rounding_mode": "floor"}),
    Case("div", torch.div, (T("a b"), T("c")), {"rounding_mode": "up"}),
    Case("rdiv", lambda x, y: y / x, (T("a b c", permute=P), T("c a b"))),
    Case("hardtanh", F.hardtanh, (T("a b"),)),
    Case("hardtanh", F.hardtanh, (T("a b c", i64, permute=P), -2, 3)),
    Case("hardtanh", F.hardtanh, (T("a b", torch.uint8),)),
    Case("hardtanh", F.hardtanh, (T("a b", torch.uint8), 0, 3)),
    Case("rpow", lambda x, y: y**x, (T("a b"), 2)),
    Case("rfloordiv", lambda x, y: y // x, (T("a b"), 2.0)),
    Case("rremainder", lambda x, y: y % x, (T("a b"), T("a c"))),
    Case("pow", torch.pow, (T("a b", i64), -1)),
    Case("where", torch.where, (T("a b", flag), T("c"), T("d 1 1", f64))),
    Case("where", torch.where, (T("a b", flag), 1.0, T("b"))),
    Case("where", torch.where, (T("a b", flag), 1.0, 0)),
    Case("where", torch.where, (T("a b"), 1.0, 0)),
    Case("where", torch.where, (T("a b c", flag, P), T("c a b"), 1.0)),
    Case("clamp", torch.clamp, (T("a b"), T("c"), T("d 1 1"))),
    Case("clamp", torch.clamp, (T("a b"), 0)),
    Case("clamp", torch.clamp, (T("a b", i64),), {"max": 0.5}),
    Case("clamp", torch.clamp, (T("a b"),)),
    Case("clamp", torch.clamp, (T("a b"), T("b"), 1.0)),
    Case("clamp", torch.clamp, (T("a b", i64), 0, T("", i64))),
    Case("clamp", torch.clamp, (T("a b", i64), T(""), 3)),
    Case("clamp", torch.clamp, (T("a b c", permute=P),), {"min": T("b")}),
    Case("clamp_min", torch.clamp_min, (T("a b"), T("c"))),
    Case("clamp_max", torch.clamp_max, (T("a b", i64), 1.5)),
    Case("lerp", torch.lerp, (T("a b"), T("b"), T("c 1 1"))),
    Case("lerp", torch.lerp, (T("a b"), T("c"), 0.5)),
    Case("lerp", torch.lerp, (T("a b"), T("c"), T("", f64))),
    Case("lerp", torch.lerp, (T("a b"), T("c", f64), 0.5)),
    Case("lerp", torch.lerp, (T("a b"), T("c"), T("c", f64))),
    Case("addcmul", torch.addcmul, (T("a"), T("b 1"), T("c 1 1")), {"value": 2}),
    Case("addcmul", torch.addcmul, (T("a b", flag), T("a b", flag), T("a b", flag))),
    Case("addcdiv", torch.addcdiv, (T("a"), T("b a", i64), T("c 1 1"))),
    Case("addcdiv", torch.addcdiv, (T("a"), T("a", i64), T("a", i64))),
    Case("masked_fill", torch.masked_fill, (T("a b"), T("c b", flag), 1.0)),
    Case("masked_fill", torch.masked_fill, (T("a b c", permute=P), T("c a b", flag), T(""))),
    Case("masked_fill", torch.masked_fill, (T("a b"), T("a b", flag), T("1"))),
    Case("masked_fill", torch.masked_fill, (T("a b"), T("a b", i64), 1.0)),
    Case("masked_fill_", torch.Tensor.masked_fill_, (T("a b"), T("c b", flag), 1.0)),
    Case("add_", torch.Tensor.add_, (T("a b"), T("c d"))),
    Case("mul_", torch.Tensor.mul_, (T("a b c", permute=P), T("c"))),
    Case("add_", torch.Tensor.add_, (T("a b", i64), T("b"))),
    Case("add_", torch.Tensor.add_, (T("a b", i32), T("b", i64))),
    Case("mul_", torch.Tensor.mul_, (T("a b", flag), 2)),
    Case("sqrt_", torch.Tensor.sqrt_, (T("a b", i64),)),
    Case("lt_", torch.Tensor.lt_, (T("a b"), 2)),
    Case("glu", F.glu, (T("a b"),)),
    Case("glu", F.glu, (T("a 2*b c"), 1)),
    Case("glu", F.glu, (T("a b c", permute=P), -3)),
    Case("glu", F.glu, (T(""),)),
    Case("glu", F.glu, (T("a"), 1)),
    Case("prelu", F.prelu, (T("a b"), T("c"))),
    Case("prelu", F.prelu, (T("a b c d"), T("e"))),
    Case("prelu", F.prelu, (T("a b c", permute=P), T("a"))),
    Case("prelu", F.prelu, (T("a"), T("b"))),
    Case("prelu", F.prelu, (T(""), T("b"))),
    Case("prelu", F.prelu, (T("a b"), T(""))),
    Case("prelu", F.prelu, (T("a b"), T("1 1"))),
    Case("prelu", F.prelu, (T("a b"), T("b", f64))),
    Case("_prelu_kernel", torch.ops.aten._prelu_kernel, (T("a b"), T("1 c"))),
    Case("gelu", F.gelu, (T("a b c", permute=P),), {"approximate": "tanh"}),
    Case("gelu", F.gelu, (T("a b"),), {"approximate": "sigmoid"}),
    Case("gelu", F.gelu, (T("a b", i64),)),
    Case("logsigmoid", F.logsigmoid, (T("a b c", permute=P),)),
    Case("rrelu", F.rrelu, (T("a b c", permute=P),)),
    Case("rrelu", F.rrelu, (T("a b"), 0.1, 0.2, True)),
    Case("rrelu_with_noise", torch.ops.aten.rrelu_with_noise, (T("a b"), T("a b"), 0.1, 0.2, True)),
    Case("rrelu_with_noise_functional", torch.ops.aten.rrelu_with_noise_functional, (T("a b"), T("a b"))),
    Case("round", torch.round, (T("a b", i64),), {"decimals": 2}),
    Case("round", torch.round, (T("a b c", permute=P),), {"decimals": 2}),
    Case("polygamma", torch.polygamma, (1, T("a b"))),
    Case("polygamma", torch.Tensor.polygamma, (T("a b"), 1)),
    Case("frexp", torch.frexp, (T("a b c", permute=P),)),
    Case("frexp", torch.frexp, (T("a b", i64),)),
    Case("isin", torch.isin, (T("a b"), T("c d"))),
    Case("isin", torch.isin, (T("a b"), T("c d", permute=(1, 0)))),
    Case("isin", torch.isin, (T("a b"), T("2 4", permute=(1, 0)))),
    Case("isin", torch.isin, (T("a 3"), T("4 3", permute=(1, 0)))),
    Case("allclose", torch.allclose, (T("a b"), T("c"))),
    Case("allclose", torch.allclose, (T("a b"), T("b", f64))),
    Case("equal", torch.equal, (T("a b"), T("c"))),
    Case("ldexp", torch.ldexp, (T("a b"), T("c", i64))),
    Case("clone", torch.clone, (T("a b c", permute=P),)),
    Case("clone", torch.clone, (T("a b c d"),), {"memory_format": torch.channels_last}),
    Case("clone", torch.clone, (T("a b c"),), {"memory_format": torch.channels_last}),
    Case("to", torch.Tensor.to, (T("a b c", permute=P), f64)),
    Case("to", torch.Tensor.to, (T("a b c", permute=P), torch.float32)),
    Case("to", torch.Tensor.to, (T("a b"), T("c", f64))),
    Case("to", torch.Tensor.to, (T("a b c", permute=P),), {"dtype": f16, "copy": True}),
    Case("to", torch.Tensor.to, (T("a b c d"),), {"memory_format": torch.channels_last}),
    Case("to", torch.Tensor.to, (T("a b"), "cpu", f64)),
    Case("type", torch.Tensor.type, (T("a b"), i64)),
    Case("type", torch.Tensor.type, (T("a b"), "torch.DoubleTensor")),
    Case("type_as", torch.Tensor.type_as, (T("a b c", permute=P), T("d", f64))),
    Case("_to_copy", torch.ops.aten._to_copy, (T("a b c", permute=P),), {"dtype": f64}),
    Case("float", torch.Tensor.float, (T("a b c", permute=P),)),
    Case("long", torch.Tensor.long, (T("a b c", permute=P),)),
    Case("detach", torch.Tensor.detach, (T("a b c", permute=P),)),
    Case("copy_", torch.Tensor.copy_, (T("a b"), T("c d", i64))),
    Case("copy_", torch.Tensor.copy_, (T("a b"), T("1 a b"))),
    Case("copy", torch.ops.aten.copy, (T("a b c", permute=P), T("d"))),
    *(Case("float_power_", torch.Tensor.float_power_, (T("a b", dtype), T("c", torch.complex64)))
      for dtype in (torch.float32, torch.float64, torch.complex128)),
    Case("float_power_", torch.Tensor.float_power_, (T("a b", torch.float64), T("c a b"))),
    Case("float_power_", torch.Tensor.float_power_, (T("a b", torch.float64), T("c", torch.int64))),
    Case("fill_", torch.Tensor.fill_, (T("a b"), T(""))),
    Case("fill_", torch.Tensor.fill_, (T("a b"), T("1"))),
    Case("fill", torch.fill, (T("a b c", permute=P), 1.0)),
    Case("detach_", torch.Tensor.detach_, (T("a b c"),)),
    Case("zero_", torch.Tensor.zero_, (T("a b c", permute=P),)),
    Case("zero", torch.ops.aten.zero, (T("a b c", permute=P),)),
    Case("log_sigmoid_forward", torch.ops.aten.log_sigmoid_forward, (T("a b c", permute=P),)),
    Case("type", torch.Tensor.type, (T("a b"), "torch.HalfTensor")),
    Case("cpu", torch.Tensor.cpu, (T("a b c", permute=P),)),
    Case("mvlgamma", torch.mvlgamma, (T("a b c", fill=5), 2)),
    Case("complex", torch.complex, (T("a b"), T("c"))),
    Case("complex", torch.complex, (T("a b"), T("b", f64))),
    Case("complex", torch.complex, (T("b", i64), T("b", i64))),
    Case("complex", torch.complex, (T("b"), T("b", i64))),
    Case("polar", torch.polar, (T("a b c", f64, P), T("c a b", f64))),
    Case("real", torch.real, (T("a b c", c64, P),)),
    Case("real", torch.real, (T("a b c", permute=P),)),
    Case("imag", torch.imag, (T("a b c", c64, P),)),
    Case("imag", torch.imag, (T("a b"),)),
    Case("conj", torch.conj, (T("a b c", c64, P),)),
    Case("conj_physical", torch.conj_physical, (T("a b c", c64, P),)),
    Case("positive", torch.positive, (T("a b c", permute=P),)),
    Case("positive", torch.positive, (T("a", flag),)),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_clauses(case: Case) -> None:
    check_case(case, rules)


def test_every_rule_is_judged() -> None:
    """A new row without a case is noticed."""
    judged = {*UNARY, *BINARY, *(c.op.removesuffix("_") for c in CASES), *(c.op for c in CASES)}
    aliases = {"_conj", "detach_", "detach_copy", "requires_grad_"}
    same = {"resolve_conj", "resolve_neg", *elementwise.CONVERSIONS}
    assert set(RULES) - judged - aliases - same == set()


ASKING = "add clamp copy_ glu masked_fill prelu where".split()


def test_both_answers_are_seen() -> None:
    """Operators that ask something of sizes are accepted at some and refused at others."""
    for name in ASKING:
        counts = [check_case(c, rules) for c in CASES if c.op == name]
        assert any(accepted and refused for accepted, refused in counts), name


# Layout.


def tensor(sizes: str, *strides: Any) -> Tensor:
    shape = (sym(size.removesuffix("+1")) + size.endswith("+1") for size in sizes.split())
    return Tensor(tuple(shape), "float32", strides)


def layout(*operands: Tensor) -> Any:
    domain = Domain(tuple("abcn"), tuple(ge(sym(n), 1) for n in "abcn"))
    return pointwise_layout(Generator(rules, domain), operands, operands[0].shape)


def test_layout_of_slices_and_expanded_tensors() -> None:
    a, b, c, n = map(sym, "abcn")
    chunk = tensor("a b c", b * c * 3, c * 3, 1)
    assert layout(chunk) is Layout.CONTIGUOUS
    assert layout(tensor("b a c", c * 3, b * c * 3, 1)) is Layout.UNKNOWN, "a and b may be 1"
    assert layout(tensor("b+1 a+1 c", c * 3, (b + 1) * c * 3, 1)) == (c, (b + 1) * c, 1)
    expanded = tensor("a b c", c, 0, 1)
    assert layout(expanded) is Layout.CONTIGUOUS
    assert layout(expanded, Tensor((a, b, c))) is Layout.CONTIGUOUS
    assert layout(tensor("c b a", 1, 0, c)) is Layout.UNKNOWN, "the expanded axis has no order"
    assert layout(tensor("a b", n, 1)) is Layout.UNKNOWN, "n may be less than b"
    assert layout(tensor("a b", b + n, 1)) is Layout.CONTIGUOUS
    assert layout(Tensor((a, b), "float32", Layout.UNKNOWN)) is Layout.UNKNOWN
    unknown = Tensor((a + 1, b + 1), "float32", Layout.UNKNOWN)
    assert layout(Tensor(unknown.shape), unknown) is Layout.CONTIGUOUS


STRIDED = [
    torch.zeros(4, 6, 6)[:, :, ::2],
    torch.zeros(4, 6, 6)[:, :, :3].transpose(0, 1),
    torch.zeros(4, 1, 6).expand(4, 5, 6),
    torch.zeros(4, 1, 6).expand(4, 5, 6).transpose(0, 2),
    torch.zeros(1, 1, 1).expand(4, 5, 6),
    torch.zeros(12).as_strided((4, 3), (1, 1)),
    torch.zeros(12).as_strided((3, 4), (1, 1)),
    torch.zeros(30).as_strided((4, 3, 2), (2, 2, 1)),
    torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last),
    torch.zeros(2, 3, 4, 5).permute(3, 1, 0, 2)[1:, :, :, ::2],
    torch.zeros(1, 3, 1, 5).permute(3, 2, 0, 1),
    torch.zeros(6),
]


@pytest.mark.parametrize("left,right", [*itertools.product(range(len(STRIDED)), repeat=2)])
def test_layout_agrees_with_torch_on_concrete_strides(left: int, right: int) -> None:
    x, y = STRIDED[left], STRIDED[right]
    try:
        real = x + y
    except RuntimeError:
        return
    _, result, _ = run_rule(rules, "add", (lower(x), lower(y)), {}, Domain())
    if result.layout is Layout.CONTIGUOUS:
        assert real.is_contiguous()
    elif isinstance(result.layout, tuple):
        assert [s for s, n in zip(result.layout, result.shape, strict=True) if n > 1] == [
            s for s, n in zip(real.stride(), real.shape, strict=True) if n > 1
        ]
    if left == right and x.stride() not in ((6, 0, 1), (1, 0, 6)):
        assert left in (5, 6, 7) or result.layout is not Layout.UNKNOWN


# Numbers.


def test_operators_on_sizes() -> None:
    """A graph writes `mul` for `h * w`, too."""
    h, w = sym("h"), sym("w")
    domain = Domain(("h", "w"))

    def value(op: str, *args: Any) -> Any:
        return run_rule(rules, op, args, {}, domain)[:2]

    assert value("mul", h, w) == (True, h * w)
    assert value("rsub", h, w) == (True, w - h)
    assert value("eq", h, w) == (True, eq(h, w))
    assert str(value("floor_divide", h, w)[0]) == "w != 0"
    assert value("mul", h, 0.5) == (True, Number("float"))
    assert value("div", 3, 2) == (True, 1.5)
    assert value("div", 3, 0)[0] is False
    assert value("exp", h)[0] is False


def test_the_judge_refutes_wrong_rules() -> None:
    """An oracle that cannot fail proves nothing."""

    def first_shape(c: Any, input: Tensor, other: Tensor) -> Tensor:
        return Tensor(input.shape)

    def no_order(c: Any, input: Tensor) -> Tensor:
        return Tensor(input.shape)

    def no_dtype(c: Any, input: Tensor, other: Tensor) -> Any:
        return elementwise.pointwise(c, "====", input, other)

    wrong = Rules({"add": first_shape, "exp": no_order, "eq": no_dtype})
    for case in (
        Case("add", torch.add, (T("a b"), T("a c"))),
        Case("exp", torch.exp, (T("a b c", permute=P),)),
        Case("eq", torch.eq, (T("a b"), T("a b"))),
    ):
        check_case(case, rules)
        with pytest.raises(AssertionError):
            check_case(case, wrong)
