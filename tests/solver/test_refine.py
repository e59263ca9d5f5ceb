"""Facts and conditions: the list that torch's DimConstraints misses, and random sets by brute force."""
from __future__ import annotations

from collections.abc import Sequence
from math import gcd

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_formulas import box, formulas, true_at

from anyshape.constraints.ir.language import Fact
from anyshape.constraints.ir.system import Domain
from anyshape.constraints.terms.dims import Dim, sym
from anyshape.constraints.terms.formula import Formula, all_of, conjuncts, eq, free_symbols, ge, le
from anyshape.constraints.terms.formula_text import parse_formula
from anyshape.constraints.terms.syntax import parse_dim
from anyshape.solver.facts import facts, refine
from anyshape.solver.tactics.judge import Budget, Judge


def domain(*texts: str) -> Domain:
    assumed = tuple(map(parse_formula, texts))
    return Domain(tuple(sorted(frozenset().union(*map(free_symbols, assumed)))), assumed)


def refined(where: Domain, *requirements: Formula | str) -> tuple[Formula, refine.Summary]:
    judge = Judge()
    parts = [parse_formula(r) if isinstance(r, str) else r for r in requirements]
    accepted = refine.simplify(judge, where, parts)
    return accepted, refine.summary(judge, where, accepted, refine.facts(judge, where, accepted))


def halvings(depth: int, padded: bool = False) -> list[Formula]:
    """What a U-Net of a depth asks: each level is twice the one below; or, padded, that something is left."""
    h: Dim = sym("h")
    asked = []
    for _ in range(depth):
        asked.append(ge((h - 1) // 2, 1) if padded else eq(2 * (h // 2), h))
        h = (h - 1) // 2 if padded else h // 2
    return asked


TORCH_MISSES = [
    ("b//4 == 2", "8 <= b and b <= 11", "8 <= b <= 11"),
    ("b % 4 <= 2", "b % 4 != 3", "2 <= b <= 64, b % 4 != 3"),
    ("b < 4 or b > 10", "b <= 3 or 11 <= b", "2 <= b <= 3 or 11 <= b <= 64"),
    ("b != 7", "b != 7", "2 <= b <= 64, b != 7"),
    ("(2*b) % 6 == 0", "b % 3 == 0", "b = 3*_b, b <= 63"),
    ("(b*b) % 4 == 0", "b % 2 == 0", "b = 2*_b, b <= 64"),
    ("b*b <= 100", "b <= 10", "2 <= b <= 10"),
    ("b % 4 == 0 and b % 6 == 0", "b % 12 == 0", "b = 12*_b, b <= 60"),
    ("b % 8 == 3 or b % 8 == 6", "b % 8 == 3 or b % 8 == 6", "3 <= b <= 62, b % 8 == 3 or b % 8 == 6"),
    ("b == 7 or b == 9", "b == 7 or b == 9", "b = 2*_b + 1, 7 <= b <= 9"),
    ("b % 64 == 0", "b == 64", "b = 64"),
    ("b % 16 == 5", "b % 16 == 5", "b = 16*_b + 5, b <= 53"),
    ("b % 2 != 0 or b % 3 != 0", "b % 6 != 0", "2 <= b <= 64, b % 6 != 0"),
]


@pytest.mark.parametrize("text, accepted, line", TORCH_MISSES)
def test_what_torch_misses(text: str, accepted: str, line: str) -> None:
    where = domain("2 <= b <= 64")
    formula, summary = refined(where, text)
    assert (str(formula), str(summary)) == (accepted, line)
    truth = [v for v in range(2, 65) if true_at([parse_formula(text)], {"b": v})]
    assert [v for v in range(2, 65) if true_at([formula], {"b": v})] == truth
    fact = summary.facts["b"]
    assert fact.exact and (fact.min, fact.max) == (truth[0], truth[-1])
    assert fact.divisor == gcd(*(v - truth[0] for v in truth))


@pytest.mark.parametrize("depth", [1, 4, 6, 8])
def test_unets(depth: int) -> None:
    where = domain("h >= 1", "batch >= 1")
    formula, summary = refined(where, *halvings(depth))
    assert str(formula) == f"h % {2**depth} == 0"
    assert str(summary) == f"1 <= batch, h = {2**depth}*_h"
    assert summary.facts["h"] == Fact(2**depth, None, 2**depth, 0, None, ((2**depth, None),))


def test_unets_that_only_need_something_left() -> None:
    where = domain("64 <= h <= 2048")
    formula, summary = refined(where, ge((sym("h") - 1) // 256, 1))
    assert (str(formula), str(summary)) == ("257 <= h", "257 <= h <= 2048")
    formula, summary = refined(domain("h >= 1"), *halvings(7, padded=True))
    truth = next(v for v in range(1, 999) if true_at(halvings(7, padded=True), {"h": v}))
    assert summary.facts["h"].min == truth and str(formula) == f"{truth} <= h"


@pytest.mark.parametrize("assumed, requirement, line", [
    (["a >= 1", "b >= 1"], "a + b == 32", "1 <= a <= 31, b = 32 - a"),
    (["a >= 1", "b >= 1"], "a < b and b <= 64", "1 <= a <= 63, 2 <= b <= 64, a < b"),
    (["h >= 1", "w >= 1"], "h*w % 4 == 0", "1 <= h, 1 <= w, h*w % 4 == 0"),
    (["a >= 1", "b >= 1"], "a == b", "1 <= a, b = a"),
    (["a >= 1", "b >= 1"], "a == b and a % 4 == 2", "a = 4*_a + 2, b = a"),
    (["h >= 1", "w >= 1"], "w == h//2 and h % 2 == 0", "h = 2*_h, w = h//2"),
    (["a >= 1", "b >= 1"], "2*a == 3*b", "a = 3*_a, b = 2*_b, 2*a == 3*b"),
    (["a >= 1", "b >= 1"], "b == a*a", "1 <= a, b = a**2"),
    (["n: int"], "n >= 3", ""),
    (["a >= 1", "b >= 1", "a == 2*b"], "b % 3 == 0", "a = 6*_a, b = 3*_b, a == 2*b"),
    (["a >= 1"], "True", "1 <= a"),
    (["1 <= t <= 6", "b >= 1", "c >= 1"], " and ".join(f"(t != {t} or b == c)" for t in range(2, 7)),
     "1 <= b, 1 <= c, 1 <= t <= 6, t == 1 or b == c"),
    (["b >= 1", "c >= 1"], "c == max(b, c) or c == 1", "1 <= b, 1 <= c, b <= c or c == 1"),
    (["b >= 1", "c >= 1"], "(c == max(b, c) or c == 1) and (b == max(b, c) or b == 1)",
     "1 <= b, 1 <= c, b == c or b == 1 or c == 1"),
    (["h >= 1", "w >= 1"], "max(h, w) <= 64 and min(h, w) >= 3", "3 <= h <= 64, 3 <= w <= 64"),
    (["h >= 1"], "4*((h - 1)//4) + 4 == h or h == 1", "1 <= h, h == 1 or h % 4 == 0"),
    (["b >= 1", "n >= 0"], "b*n >= 1", "1 <= b, 1 <= n"),
    (["h >= 1", "w >= 1"], "((h + 3)//8)*((w + 3)//8) == 1", "5 <= h <= 12, 5 <= w <= 12"),
    (["h >= 1", "w >= 1"], "(h//8)*(w//4)*w >= 1", "8 <= h, 4 <= w"),
    (["h >= 1", "w >= 1"],
     "(h % 8 == 0 or h % 8 == 7) and (w % 8 == 0 or w % 8 == 7)"
     " and 4*((h + 3)//8)*((w + 3)//8) == ((h - 1)//4 + 1)*((w - 1)//4 + 1)",
     "7 <= h, h % 8 == 0 or h % 8 == 7, 7 <= w, w % 8 == 0 or w % 8 == 7"),
    (["b >= 1", "t >= 1", "c >= 1", "s >= 1"], "b*t == c*s", "1 <= b, 1 <= c, 1 <= s, 1 <= t, b*t == c*s"),
    (["a >= 1", "b >= 1", "c >= 1"], "a*b % (4*c) == 0", "1 <= a, 1 <= b, 1 <= c, a*b % (4*c) == 0"),
])
def test_conditions(assumed: list[str], requirement: str, line: str) -> None:
    if assumed == ["n: int"]:  # no assumption at all
        judge, where = Judge(), Domain(("n",))
        summary = refine.summary(judge, where, True, refine.facts(judge, where, True))
        assert str(summary) == "any sizes"
        return
    where = domain(*assumed)
    formula, summary = refined(where, requirement)
    assert str(summary) == line
    assert all(f.exact for f in summary.facts.values())
    same_set(where, formula, summary, 40 if len(where.symbols) < 3 else 7)


def test_what_relates_sizes_and_comes_to_be_about_one_is_said_of_that() -> None:
    """As of a GCViT, whose windows are as large as its pictures."""
    requirements = [
        "2*((h + 3)//8) == (h - 1)//4 + 1", "2*((w + 3)//8) == (w - 1)//4 + 1",
        "((h - 1)//32)*((w - 1)//32) + (h - 1)//32 + (w - 1)//32 == 3 or ((h + 3)//8)*((w + 3)//8)*b == 0",
        "2*((h + 3)//16) == (h + 3)//8", "2*((w + 3)//16) == (w + 3)//8",
        "((h - 5)//32)*((w - 5)//32) + (h - 5)//32 + (w - 5)//32 == 3 or ((h + 3)//16)*((w + 3)//16)*b == 0",
        "(h + 3)//16 == 4*((h + 3)//64)", "(w + 3)//16 == 4*((w + 3)//64)",
        "((h + 3)//64)*((w + 3)//64) == 1 or ((h + 3)//64)*((w + 3)//64)*b == 0",
    ]
    formula, _ = refined(domain("b >= 1", "h >= 1", "w >= 1"), *requirements)
    assert str(formula) == "61 <= h and h <= 64 and 61 <= w and w <= 64"


def same_set(where: Domain, accepted: Formula, summary: refine.Summary, high: int) -> None:
    """Facts and relations together are the accepted set, point by point."""
    said = [refine.fact_formula(n, f) for n, f in summary.facts.items()]
    for point in box("".join(where.symbols), 0, high):
        assert true_at((*where.assumptions, accepted), point) == true_at((*said, *summary.relations), point)


@pytest.mark.parametrize("assumed, dim, expected", [
    (["h >= 64", "h % 64 == 0"], "h//4", Fact(16, None, 16, 0, None, ((16, None),))),
    (["b >= 1", "t >= 2", "t <= 9"], "b*t", Fact(2, None, 1, 0)),
    (["1 <= b <= 5", "1 <= t <= 5", "b == t"], "b + t", Fact(2, 10, 2, 0, None, ((2, 10),))),
    (["1 <= b <= 5"], "b*b", Fact(1, 25, 1, 0, None, ((1, 1), (4, 4), (9, 9), (16, 16), (25, 25)))),
    (["h >= 1"], "h % 4", Fact(0, 3, 1, 0, None, ((0, 3),))),
    (["a >= 1", "b >= 1", "a + b <= 20"], "a*b", Fact(1, 100, 1, 0)),
    (["a >= 1", "b >= 1", "a < b"], "a - b", Fact(None, -1, 1, 0)),
    (["a == 3"], "7*a", Fact(21, 21, 0, 21, None, ((21, 21),))),
])
def test_facts_of_any_dim(assumed: list[str], dim: str, expected: Fact) -> None:
    where = domain(*assumed)
    assert refine.fact(Judge(), conjuncts(all_of(where.assumptions)), parse_dim(dim)) == expected


def check_by_brute_force(where: Domain, requirements: Sequence[Formula], high: int) -> None:
    """Over a domain that the box contains, every part of every fact is what brute force finds."""
    judge = Judge(Budget(seconds=20, units=500_000))
    names = "".join(where.symbols)
    points = [p for p in box(names, 1, high) if true_at((*where.assumptions, *requirements), p)]
    if not points:
        return
    accepted = refine.simplify(judge, where, requirements)
    assert [p for p in box(names, 1, high) if true_at((*where.assumptions, accepted), p)] == points
    found = refine.facts(judge, where, accepted)
    for name, fact in found.items():
        values = {p[name] for p in points}
        assert fact.min is not None and fact.max is not None
        assert fact.min <= min(values) and max(values) <= fact.max
        step = fact.divisor
        assert all((v - fact.remainder) % step == 0 if step else v == fact.remainder for v in values)
        if fact.exact:
            assert (fact.min, fact.max) == (min(values), max(values))
            assert fact.divisor == gcd(*(v - min(values) for v in values))
            if fact.values is not None:
                steps = [v for a, b in fact.values for v in range(a or 0, (b or 0) + 1, fact.divisor or 1)]
                assert steps == sorted(values)
        assert fact.equals is None or all(true_at([eq(sym(name), fact.equals)], p) for p in points)
    same_set(where, accepted, refine.summary(judge, where, accepted, found), high)


@given(st.lists(formulas("ab"), min_size=1, max_size=3))
@settings(max_examples=60, deadline=None)
def test_facts_are_what_brute_force_finds(requirements: list[Formula]) -> None:
    bounds = [f for n in "ab" for f in (ge(sym(n), 1), le(sym(n), 8))]
    check_by_brute_force(Domain(("a", "b"), tuple(bounds)), requirements, 8)


def test_brute_force_catches_a_wrong_fact(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that does not look beyond its first example."""
    monkeypatch.setattr(facts._FactSearch, "_greatest", lambda self, sign: max(sign * v for v in self.seen))
    where = domain("1 <= a <= 8", "1 <= b <= 8")
    with pytest.raises(AssertionError):
        check_by_brute_force(where, [parse_formula("a < b")], 8)
