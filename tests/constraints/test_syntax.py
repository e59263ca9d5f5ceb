"""The grammar of dims: what it reads, and how it refuses."""

from __future__ import annotations

import pickle
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyshape.constraints.terms.dims import Dim, evaluate, maximum, minimum, sym
from anyshape.constraints.terms.syntax import (
    MAX_DEPTH,
    MAX_LENGTH,
    DimSyntaxError,
    Token,
    Tokens,
    parse_dim,
    parse_expression,
)

a, b, h, w = map(sym, "abhw")


@pytest.mark.parametrize("text, dim", [
    ("7", 7), ("007", 7), (" h ", h), ("(((h)))", h), ("-3", -3), ("--h", h), ("---h", -h),
    ("h+w*2", h + 2 * w), ("(h+w)*2", 2 * h + 2 * w), ("h-w-b", h - w - b), ("h-(w-b)", h - w + b),
    ("h//2*2", h // 2 * 2), ("h//(2*2)", h // 4), ("h*3//2", h * 3 // 2), ("h*(3//2)", h),
    ("h % 7 * 2", h % 7 * 2),
    ("-h//2", -h // 2), ("-(h//2)", -(h // 2)), ("-h**2", -(h**2)), ("(-h)**2", h**2), ("2**3**2", 512),
    ("h**0", 1), ("h**(1+1)", h**2), ("0**0", 1), ("2*-h", -2 * h), ("h- -w", h + w), ("h**-0", 1),
    ("min(h, 3, w+1)", minimum(h, 3, w + 1)), ("max(h)", h), ("max(min(h,w),2)", maximum(minimum(h, w), 2)),
    ("min", sym("min")), ("min*(h)", sym("min") * h), ("\n h\t+\n1 ", h + 1), ("9"*100, int("9"*100)),
])  # fmt: skip
def test_reads(text: str, dim: Dim) -> None:
    assert parse_dim(text) == dim


@pytest.mark.parametrize("text, column, problem", [
    ("", 1, "expected a name, an integer, '-' or '(', got the end"),
    ("   ", 4, "got the end"),
    ("h +", 4, "expected a name, an integer, '-' or '(', got the end"),
    ("h + * w", 5, "got '*'"),
    ("+h", 1, "got '+'"),
    ("h w", 3, "expected an operator or the end, got 'w'"),
    ("3h", 2, "expected an operator or the end, got 'h'"),
    ("1_000", 2, "got '_000'"),
    ("(h", 3, "expected ')', got the end"),
    ("h)", 2, "expected an operator or the end, got ')'"),
    ("min(h,)", 7, "got ')'"),
    ("min()", 5, "got ')'"),
    ("min(h w)", 7, "expected ')', got 'w'"),
    ("foo(h)", 4, "expected an operator or the end, got '('"),
    ("h.shape", 2, "got '.'"),
    ("x[h]", 1, "expected a dim of a row (x[-1]), rank(x) or numel(x), got 'x[h]'"),
    ("x[0", 4, "expected ']', got the end"),
    ("rank(x", 7, "expected ')', got the end"),
    ("numel(x[1])", 1, "got 'numel(x[1])'"),
    ("h / 2", 3, "got '/'"),
    ("1.5*h", 1, "got '1.5'"),
    ("1e9", 1, "got '1e9'"),
    ("h and w", 3, "got 'and'"),
    ("not h", 1, "got 'not'"),
    ("h < 3", 3, "got '<'"),
    ("'h'", 1, "got \"'h'\""),
    ("'h", 1, "expected a name, a number or an operator, got \"'\""),
    ("h ¹", 3, "got '¹'"),
    ("h + é", 5, "got 'é'"),
    ("h + ٣", 5, "got '٣'"),
    ("h\x00", 2, "expected a name, a number or an operator"),
    ("h ! w", 3, "got '!'"),
    ("h // 0", 3, "expected a divisor other than zero"),
    ("h % (w - w)", 3, "expected a divisor other than zero"),
    ("h**-1", 4, "expected an exponent from 0 to 256"),
    ("h**w", 4, "expected an exponent from 0 to 256"),
    ("h**257", 4, "expected an exponent from 0 to 256"),
    ("10**10**10", 5, "expected an exponent from 0 to 256"),
    ("lambda: 0", 7, "got ':'"),
    ("__import__('os')", 11, "got '('"),
])  # fmt: skip
def test_refuses_and_says_where(text: str, column: int, problem: str) -> None:
    with pytest.raises(DimSyntaxError) as caught:
        parse_dim(text)
    assert caught.value.column == column
    assert problem in caught.value.problem
    assert f"at column {column} " in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


HOSTILE = {
    "parentheses": "(" * 100_000,
    "balanced parentheses": "(" * 9_000 + "h" + ")" * 9_000,
    "calls": "min(" * 4_000 + "h" + ")" * 4_000,
    "tower": "10**10**10",
    "tower of sixty-fours": "h**" + "64**" * 1000 + "1",
    "nested powers": "((((h**64)**64)**64)**64)**64",
    "powers of a sum": "(a + b + c + d + e + f)**64",
    "product of sums": "*".join(f"(a{i} + b{i})" for i in range(1000)),
    "large power of a number": "((10**64)**64)**64",
    "long number": "9" * 15_000,
    "long product of numbers": "*".join(["9" * 90] * 200),
    "long name, then nothing": "a" * 19_990 + " +",
    "too long": "h" * (MAX_LENGTH + 1),
    "many levels": "h//(w+" * 3000,
    "open quote": "'" + "a" * 15_000,
    "divisions that do not fold": "h" + "//w" * 5000,
    "divisions that multiply": "h" + "//2" * 5000,
    "a large number inside": "h//" + "9" * 399,
    "powers that repeat the text of atoms": "(" * 39 + "h" + "//w + a)**2" * 39,
    "larger ones": "(" * 39 + "h" + "//w + a)**20" * 39,
    "alternating nesting": "min(1, max(2, " * 700,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_refused_at_once(name: str) -> None:
    start = time.process_time()
    with pytest.raises(DimSyntaxError) as caught:
        parse_dim(HOSTILE[name])
    assert time.process_time() - start < 2
    assert len(str(caught.value)) < 250


LARGE = {
    "signs": "-" * 19_000 + "h",
    "one symbol": "+".join(["h"] * 9_000),
    "many symbols": "+".join(f"h{i}" for i in range(2_500)),
    "many arguments": "min(" + ",".join(f"h{i}" for i in range(2_500)) + ")",
    "divisions that fold": "h" + "//2" * 1_000,
    "remainders that fold": "h" + " % 7" * 4_000,
    "divisions that do not fold": "h" + "//w" * (MAX_DEPTH // 2),
    "parentheses": "(" * (MAX_DEPTH - 1) + "h" + ")" * (MAX_DEPTH - 1),
    "degree": "*".join(["h"] * 256),
    "power of a sum": "(a + b + c)**20*h",
    "long division": "h**64//(h - a - b - c)",
}


@pytest.mark.parametrize("name", LARGE)
def test_large_text_that_is_harmless_is_read_in_time(name: str) -> None:
    start = time.process_time()
    dim = parse_dim(LARGE[name])
    assert time.process_time() - start < 2
    assert len(str(dim)) > MAX_LENGTH or parse_dim(str(dim)) == dim


@settings(max_examples=500, deadline=None, derandomize=True, database=None)
@given(st.text(alphabet="hw12 +-*/%(),<>=.'\"[]:éminax_&\n\x00", max_size=30) | st.text(max_size=20))
def test_any_text_is_a_dim_or_a_syntax_error(text: str) -> None:
    try:
        dim = parse_dim(text)
    except DimSyntaxError as error:
        column = error.column
    else:
        column = 1
        assert parse_dim(str(dim)) == dim
    assert 1 <= column <= len(text) + 1


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.lists(st.sampled_from(["-", "+", "*", "//", "%", "(", ")", "h", "w", "2", "3", "5"]), max_size=12))
def test_precedence_is_python_s(parts: list[str]) -> None:
    """The only place where text is evaluated, and it is the test's own."""
    text = " ".join(parts)
    try:
        dim = parse_dim(text)
    except DimSyntaxError:
        return
    for values in ({"h": 7, "w": 4}, {"h": -5, "w": 3}, {"h": 64, "w": -9}):
        try:
            expected = eval(text, {}, dict(values))
        except ZeroDivisionError:
            continue
        assert evaluate(dim, values) == expected


# --- tokens, as other parsers use them --------------------------------------------------------------------


def test_an_expression_ends_where_it_ends() -> None:
    tokens = Tokens("1 <= 2*h + 1 <= 64 and h % 32 == 0")
    assert parse_expression(tokens) == 1
    tokens.expect("<=")
    assert parse_expression(tokens) == 2 * h + 1
    assert tokens.accept("<", "<=") == Token("op", "<=", 14)
    assert parse_expression(tokens) == 64
    assert tokens.at("and")
    tokens.next()
    assert parse_expression(tokens) == h % 32
    assert tokens.accept("!=") is None
    tokens.expect("==")
    assert parse_expression(tokens) == 0
    tokens.expect_end()
    assert tokens.next().kind == tokens.next().kind == "end"


def test_kinds_of_tokens() -> None:
    tokens = Tokens("""x: float32[b, ..., 4*h]; r=0.5e-3 batch["a b"] -> n != 'q' 1...""")
    kinds = []
    while tokens.peek().kind != "end":
        token = tokens.next()
        kinds.append((token.kind, token.text))
        assert tokens.source[token.column - 1 :].startswith(token.text)
    assert kinds == [
        ("name", "x"), ("op", ":"), ("name", "float32"), ("op", "["), ("name", "b"), ("op", ","),
        ("op", "..."), ("op", ","), ("int", "4"), ("op", "*"), ("name", "h"), ("op", "]"), ("op", ";"),
        ("name", "r"), ("op", "="), ("float", "0.5e-3"), ("name", "batch"), ("op", "["), ("string", '"a b"'),
        ("op", "]"), ("op", "->"), ("name", "n"), ("op", "!="), ("string", "'q'"), ("int", "1"),
        ("op", "..."),
    ]  # fmt: skip


def test_peeking_and_rewinding() -> None:
    tokens = Tokens("h + w")
    start = tokens.position
    assert [tokens.peek(i).text for i in range(5)] == ["h", "+", "w", "", ""]
    assert parse_expression(tokens) == h + w
    tokens.rewind(start)
    assert tokens.expect_kind("name", "a name").text == "h"
    with pytest.raises(DimSyntaxError, match="expected an integer, got '\\+' at column 3"):
        tokens.expect_kind("int", "an integer")
    with pytest.raises(DimSyntaxError, match="expected '-' or '/', got '\\+'"):
        tokens.expect("-", "/")


def test_a_refused_reading_leaves_the_depth_as_it_was() -> None:
    tokens = Tokens("(h <")
    start = tokens.position
    for _ in range(2 * MAX_DEPTH):
        with pytest.raises(DimSyntaxError, match="expected '\\)'"):
            parse_expression(tokens)
        tokens.rewind(start)


def test_a_message_quotes_the_neighbourhood_only() -> None:
    with pytest.raises(DimSyntaxError) as caught:
        parse_dim("h + " * 1000 + "! + " + "h + " * 1000)
    assert caught.value.column == 4001
    assert "! + h" in str(caught.value)
    assert len(str(caught.value)) < 200
