"""Tables of specs: what is read, what domain it declares, what is refused and where."""

from typing import Any

import pytest

from anyshape.constraints.ir.language import Number, Tensor, Value
from anyshape.constraints.ir.spec_text import DTYPES, Inputs, SpecError, parse_spec, write_spec
from anyshape.constraints.terms.dims import sym
from anyshape.constraints.terms.formula import all_of, holds
from anyshape.constraints.terms.syntax import parse_dim


def tensor(sizes: str = "", dtype: str = "float32") -> Tensor:
    return Tensor(tuple(map(parse_dim, sizes.split())), dtype)


b, h, n = sym("b"), sym("h"), sym("n")

# inputs: {name: type}
READ: list[tuple[Inputs, dict[str, Value]]] = [
    ("", {}),
    ("x: float32[batch, 3, h, w]", {"x": tensor("batch 3 h w")}),
    ("x: float32[b, 3]; n: int", {"x": tensor("b 3"), "n": n}),
    ("x: [b]\n\ny: i64[b] ;; z: f16[]\n", {
        "x": tensor("b"), "y": tensor("b", "int64"), "z": tensor("", "float16"),
    }),
    ("x: torch.bool[b]; y: long[b]; z: double[b]", {
        "x": tensor("b", "bool"), "y": tensor("b", "int64"), "z": tensor("b", "float64"),
    }),
    ("x: [4*h, h//2 + 1, (h - 1)//2]", {"x": tensor("4*h h//2+1 (h-1)//2")}),
    ("x: [?, _1, ?]", {"x": tensor("_2 _1 _3")}),
    ("x: [b, ]", {"x": tensor("b")}),
    ("n: int = 2*h; x: [h]", {"n": 2 * h, "x": tensor("h")}),
    ("n: int=7", {"n": 7}),
    ("x: [n]; n: int", {"x": tensor("n"), "n": n}),
    ("p: float; q: float = 2; r=0.5; s=-1e-3", {"p": Number("float"), "q": 2.0, "r": 0.5, "s": -1e-3}),
    ("flag=True; off=False; none=None; k=3; m=-3", {
        "flag": True, "off": False, "none": None, "k": 3, "m": -3,
    }),
    ("mode=\"train\"; sep=';'; k=[1, 'a', [True]]", {"mode": "train", "sep": ";", "k": (1, "a", (True,))}),
    ("x: [b]; k=2*b; size=[b, b + 1]", {"x": tensor("b"), "k": 2 * b, "size": (b, b + 1)}),
    ('batch["pixels"]: [b]; batch["k"]: int; xs[0]: [b]; xs[1]=None', {
        'batch["pixels"]': tensor("b"), 'batch["k"]': sym("batch_k"), "xs[0]": tensor("b"), "xs[1]": None,
    }),
    ('xs[1]: [b]; xs[0]["a b"]: int', {"xs[1]": tensor("b"), 'xs[0]["a b"]': sym("xs_0_a_b")}),
    ('d[\'say "x"\']: [b]', {"d['say \"x\"']": tensor("b")}),
    ("x: [...]; y: [b, *x]; z: [*r, 3]", {
        "x": Tensor((sym("x[:]"),)), "y": Tensor((b, sym("x[:]"))), "z": Tensor((sym("r[:]"), 3)),
    }),
    (["x: [b]", "n: int; m: int"], {"x": tensor("b"), "n": n, "m": sym("m")}),
    ({"x": "f32[b]", "n": "int", "k": 3, "s": (1, 2), "m": '="a"', "o": None}, {
        "x": tensor("b"), "n": n, "k": 3, "s": (1, 2), "m": "a", "o": None,
    }),
]

# inputs, assumptions, the domain
DOMAINS: list[tuple[str, tuple[str, ...], str]] = [
    ("x: [b, 3]", (), "1 <= b"),
    ("x: [4*h]", (), "1 <= h"),
    ("x: [b]", ("0 <= b",), "0 <= b"),
    ("x: [b]", ("b == 0",), "b == 0"),
    ("x: [b]", ("b >= -3",), "0 <= b and 0 <= b + 3"),
    ("x: [b]", ("b <= 9",), "1 <= b and b <= 9"),
    ("x: [b]", ("3 <= b <= 9; b % 2 == 0",), "3 <= b and b <= 9 and b % 2 == 0"),
    ("x: [b, h]", ("b >= h",), "1 <= b and 1 <= h and h <= b"),
    ("x: [b]", ("b >= 0 or b == 5",), "1 <= b and (0 <= b or b == 5)"),
    ("x: [h - 3]", (), "1 <= h and 3 <= h"),
    ("x: [h//k]", (), "1 <= h and 1 <= k and k != 0"),
    ("n: int", (), "1 <= n"),
    ("x: [...]", (), "0 <= rank(x)"),
    (
        "x: [...]",
        ("x[-1] == 8",),
        "x[-1] == 8 and 0 <= rank(x) and 1 <= x[-1] and (1 <= rank(x) or x[-1] == 1)",
    ),
    ("n: int = 2*m", (), "1 <= m"),
    ("x: [n]; n: int", (), "1 <= n"),
    ("x: [n]", ("2 <= 3",), "1 <= n"),
]

# inputs, assumptions, column, parts of the message
REFUSED: list[tuple[Any, str, int, tuple[str, ...]]] = [
    ("x: float32[b, 3", "", 16, ("expected ',' or ']'", "not closed")),
    ("x float[b]", "", 3, ("':' and a type", "'float'")),
    ("float32[b, 3]", "", 9, ("name", "x: float32[b, 3]")),
    ("[b]", "", 1, ("name of an input",)),
    ("x: floot32[b]", "", 4, ("not a dtype", "float32")),
    ("x: quux[b]", "", 4, ("not a dtype", "complex128")),
    ("x: int[b]", "", 4, ("not a dtype", "int64[...]")),
    ("x: float32", "", 11, ("'['",)),
    ("x: torch.[b]", "", 10, ("a dtype",)),
    ("x: [..., *r]", "", 10, ("a second row",)),
    ("x: [*3]", "", 6, ("the name of a row",)),
    ("x: [...]", "y[-1] == 2", 1, ("no input mentions the symbol 'y[-1]'", "rank(x)")),
    ("x: [...]", "x[b] == 2", 1, ("a dim of a row (x[-1])",)),
    ("x: [...]", "x[-01] == 2", 1, ("a dim of a row (x[-1])",)),
    ("x: [b, -1]", "", 8, ("a size cannot be -1", "`?`")),
    ("x: [b,,c]", "", 7, ("','",)),
    ("x: [b c]", "", 7, ("',' or ']'",)),
    ("x: [3.5]", "", 5, ("'3.5'",)),
    ("x: [h // 0]", "", 7, ("divisor",)),
    ("x: [True]", "", 5, ("True is not a size",)),
    ("x: [and]", "", 5, ("'and'",)),
    ("x: [b]; x: [c]", "", 9, ("declared twice",)),
    ("x: [b]; x[0]: [c]", "", 0, ("x is declared", "part")),
    ("x[1]: [b]", "", 0, ("x[0] is not declared", "x[0]=None")),
    ('x[0]: [b]; x["a"]: [b]', "", 0, ("keys and indices",)),
    ("x[-1]: [b]", "", 3, ("index",)),
    ("x[99999]: [b]", "", 3, ("index up to 999",)),
    ("None: [b]", "", 1, ("name of an input",)),
    ("mode=train", "", 6, ("'train' is not a symbol", '"train"')),
    ("flag: bool", "", 1, ("given by its value", "flag=True")),
    ("p: float = True", "", 1, ("number",)),
    ("x: [n]; n: int = 2*h", "", 9, ("'n'", "assume")),
    ("x: [b] y: [c]", "", 8, ("';'",)),
    ("x: [b]; y: [`]", "", 13, ("'`'",)),
    ("x: [b] = 3", "", 8, ("';'",)),
    ("x = ", "", 5, ("expected",)),
    ("x: [(((b)]", "", 10, ("')'",)),
    ("x: [" + "b*" * 30_000 + "b]", "", 20_001, ("characters",)),
    ([3], "", 0, ("text", "3")),
    ({3: "f32[b]"}, "", 0, ("named by a text",)),
    ({"x": slice(3)}, "", 0, ("'x'", "slice")),
    ({"x y": 3}, "", 3, ("end",)),
    ("x: [batch, h]", "bacth >= 2", 1, ("no input mentions the symbol 'bacth'", "did you mean 'batch'?")),
    ("x: [b, h]", "h >= 2 and H <= 3", 12, ("'H'", "did you mean 'h'?")),
    ("x: [b, h]", "zzz >= 2", 1, ("'zzz'", "the symbols are b, h")),
    ("n: int = 2*h", "n >= 2", 1, ("'n'", "value of its own")),
    ("x: [b]", "b = 3", 3, ("'=='",)),
    ("x: [b]", "b", 2, ("comparison",)),
    ("x: [b]", "b > 3 b < 4", 7, ("operator or the end",)),
    ("x: [b]", "1 == 2", 0, ("never holds",)),
]


@pytest.mark.parametrize("inputs, expected", READ, ids=lambda value: str(value)[:40])
def test_reads(inputs: Inputs, expected: dict[str, Value]) -> None:
    assert {d.name: d.type for d in parse_spec(inputs).inputs} == expected


@pytest.mark.parametrize("inputs", [inputs for inputs, _ in READ], ids=lambda value: str(value)[:40])
def test_writes_what_it_reads(inputs: Inputs) -> None:
    spec = parse_spec(inputs)
    assert parse_spec(write_spec(spec)).inputs == spec.inputs


@pytest.mark.parametrize("inputs, assume, domain", DOMAINS)
def test_declares_a_domain(inputs: str, assume: tuple[str, ...], domain: str) -> None:
    assert str(all_of(parse_spec(inputs, assume).domain.assumptions)) == domain


@pytest.mark.parametrize("inputs, assume, column, parts", REFUSED, ids=lambda value: str(value)[:30])
def test_refuses(inputs: Any, assume: str, column: int, parts: tuple[str, ...]) -> None:
    with pytest.raises(SpecError) as caught:
        parse_spec(inputs, assume)
    assert caught.value.column == column
    assert all(part in str(caught.value) for part in parts), str(caught.value)


def test_symbols_keep_the_order_in_which_they_are_written() -> None:
    spec = parse_spec("x: [w, 3, h*c]; y: [c, a]; k: int")
    assert spec.domain.symbols == ("w", "h", "c", "a", "k")


def test_a_text_of_assumptions_is_one() -> None:
    assert parse_spec("x: [b]", "b >= 4; b <= 5") == parse_spec("x: [b]", ["b >= 4", "b <= 5"])


def test_a_guarded_division_in_an_assumption_never_raises() -> None:
    spec = parse_spec("x: [h]; k: int", "h % k == 0")
    assert not holds(all_of(spec.domain.assumptions), {"h": 4, "k": 0})


@pytest.mark.parametrize("spelling", DTYPES)
def test_every_dtype_is_one_of_torch(spelling: str) -> None:
    import torch

    assert isinstance(getattr(torch, DTYPES[spelling]), torch.dtype)
    assert getattr(torch, spelling, getattr(torch, DTYPES[spelling])) is getattr(torch, DTYPES[spelling])
