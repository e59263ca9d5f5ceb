"""Facts of sizes: the sets that torch's DimConstraints misses, images of sets, and brute force."""
from __future__ import annotations

from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_formulas import box, dims, formulas, true_at

from anyshape.constraints.ir.language import Fact
from anyshape.constraints.ir.system import Domain
from anyshape.constraints.terms.dims import Dim, evaluate, sym
from anyshape.constraints.terms.formula import Formula, all_of, conjuncts, eq, ge, le
from anyshape.constraints.terms.formula_text import parse_formula
from anyshape.constraints.terms.syntax import parse_dim
from anyshape.solver.facts import refine
from anyshape.solver.facts.facts import fact, facts
from anyshape.solver.tactics.judge import Judge
from anyshape.solver.theory.integer_sets import IntegerSet
from anyshape.solver.theory.periodic import image, solutions

# Within 2 <= b <= 64: formula, the fact, and how it is printed.
OF_ONE_SIZE = [
    ("b//4 == 2", Fact(8, 11, values=((8, 11),)), "8 <= b <= 11"),
    ("b % 4 <= 2", Fact(2, 64, residues=(4, (0, 1, 2))), "2 <= b <= 64, b % 4 != 3"),
    ("b < 4 or b > 10", Fact(2, 64, values=((2, 3), (11, 64))), "2 <= b <= 3 or 11 <= b <= 64"),
    ("b != 7", Fact(2, 64, values=((2, 6), (8, 64))), "2 <= b <= 64, b != 7"),
    ("(2*b) % 6 == 0", Fact(3, 63, 3, values=((3, 63),)), "b = 3*_b, b <= 63"),
    ("(b*b) % 4 == 0", Fact(2, 64, 2, values=((2, 64),)), "b = 2*_b, b <= 64"),
    ("b*b <= 100", Fact(2, 10, values=((2, 10),)), "2 <= b <= 10"),
    ("b % 4 == 0 and b % 6 == 0", Fact(12, 60, 12, values=((12, 60),)), "b = 12*_b, b <= 60"),
    ("b % 6 == 1 or b % 6 == 2", Fact(2, 62, residues=(6, (1, 2))), "2 <= b <= 62, b % 6 == 1 or b % 6 == 2"),
    ("b*b*b == 27", Fact(3, 3, 0, 3, values=((3, 3),)), "b = 3"),
    ("b == 4 or b == 8 or b == 24", Fact(4, 24, 4, values=((4, 8), (24, 24))),
     "b = 4*_b, 4 <= b <= 8 or b = 24"),
    ("b == 4 or b == 8 or b == 19", Fact(4, 19, values=((4, 4), (8, 8), (19, 19))),
     "b = 4 or b = 8 or b = 19"),
]  # fmt: skip


@pytest.mark.parametrize("text, expected, line", OF_ONE_SIZE)
def test_of_one_size(text: str, expected: Fact, line: str) -> None:
    where = Domain(("b",), tuple(map(parse_formula, ("2 <= b", "b <= 64"))))
    found = facts(Judge(), where, parse_formula(text))["b"]
    assert (found, refine.fact_text("b", found)) == (expected, line)
    truth = [v for v in range(2, 65) if true_at([parse_formula(text)], {"b": v})]
    assert [v for v in range(2, 65) if true_at([refine.fact_formula("b", found)], {"b": v})] == truth


# assumptions, relation, and of each symbol the least and the greatest value
RELATIONS = [
    (["x >= 1", "y >= 1"], "x + y == 32", {"x": (1, 31), "y": (1, 31)}, "1 <= x <= 31, y = 32 - x"),
    (["a >= 1", "b <= 64"], "a < b", {"a": (1, 63), "b": (2, 64)}, "1 <= a <= 63, 2 <= b <= 64, a < b"),
    (["h >= 1", "w >= 1"], "h*w % 4 == 0", {"h": (1, None), "w": (1, None)}, "1 <= h, 1 <= w, h*w % 4 == 0"),
]  # fmt: skip


@pytest.mark.parametrize("assumed, relation, bounds, line", RELATIONS)
def test_relations_are_kept(
    assumed: list[str], relation: str, bounds: dict[str, tuple[int, int | None]], line: str
) -> None:
    where = Domain(tuple(bounds), tuple(map(parse_formula, assumed)))
    accepted = parse_formula(relation)
    found = facts(Judge(), where, accepted)
    assert {name: (f.min, f.max) for name, f in found.items()} == bounds
    assert all(f.exact for f in found.values())
    assert str(refine.summary(Judge(), where, accepted, found)) == line


@pytest.mark.parametrize("depth", [6, 8])
@pytest.mark.parametrize("dim, factor", [("h", 1), ("h//2", 2), ("h//{0} + 1", None), ("3*(h//{1})", None)])
def test_sizes_inside_a_unet(depth: int, dim: str, factor: int | None) -> None:
    bottom = 2**depth
    inside = parse_dim(dim.format(bottom, bottom // 2))
    given_ = [ge(sym("h"), 1), eq(sym("h") % bottom, 0)]
    found = fact(Judge(), given_, inside)
    values = [evaluate(inside, {"h": h}) for h in range(bottom, 4 * bottom + 1, bottom)]
    step = values[1] - values[0]
    expected = Fact(values[0], None, step, values[0] % step, values=((values[0], None),))
    assert found == expected


# --- sets, by brute force


def over(name: str, *texts: str) -> IntegerSet:
    found = solutions(all_of(map(parse_formula, texts)), name)
    assert found is not None
    return found


@pytest.mark.parametrize("given_, term, expected", [
    ("h >= 1", "h//4", "h >= 0"),
    ("h >= 64 and h % 64 == 0", "h//4 + 1", "h >= 17 and h % 16 == 1"),
    ("1 <= h <= 20", "20 - 2*h", "-20 <= h and h <= 18 and h % 2 == 0"),
    ("h >= 1", "3 - h", "h <= 2"),
    ("h <= 5", "2*h", "h <= 10 and h % 2 == 0"),
    ("h >= 1", "h % 4", "0 <= h and h <= 3"),
    ("1 <= h <= 3", "h*h", "h == 1 or h == 4 or h == 9"),
    ("h >= 1", "h//2 + (h + 1)//2", "h >= 1"),
])
def test_images(given_: str, term: str, expected: str) -> None:
    dim = parse_dim(term)
    assert not isinstance(dim, int)
    found, truth = image(over("h", given_), dim, "h"), over("h", expected)
    assert found is not None and found <= truth and truth <= found


def test_images_that_are_not_looked_at() -> None:
    for term in ("h*h", "max(h, 7)"):
        dim = parse_dim(term)
        assert not isinstance(dim, int)
        assert image(over("h", "h >= 1"), dim, "h") is None


def same_values(values: IntegerSet | None, given_: Formula, dim: Dim, reach: int) -> None:
    """The set is what the dim takes where the formula holds, among all integers from -reach to reach."""
    if values is None or isinstance(dim, int):
        return
    taken = image(values, dim, "a")
    if taken is None:
        return
    points = [p for p in box("a", -reach, reach) if true_at([given_], p)]
    truth = {evaluate(dim, p) for p in points}
    assert all(v in taken for v in truth)
    if inf not in (-values.min, values.max) and -reach <= values.min and values.max <= reach:
        assert taken.members(1000) == sorted(truth)


@given(formulas("a", symbolic=False), dims("a", symbolic=False), st.integers(0, 40))
@settings(max_examples=200, deadline=None)
def test_images_are_what_brute_force_finds(formula: Formula, dim: Dim, size: int) -> None:
    try:
        for given_ in (formula, all_of((formula, ge(sym("a"), -size), le(sym("a"), size)))):
            same_values(solutions(given_, "a"), given_, dim, 40)
    except ZeroDivisionError:
        pass


def test_a_wrong_image_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "image", lambda values, dim, name: values)
    given_ = parse_formula("1 <= a and a <= 9")
    with pytest.raises(AssertionError):
        same_values(solutions(given_, "a"), given_, parse_dim("a//2"), 40)


@given(formulas("a", symbolic=False))
@settings(max_examples=100, deadline=None)
def test_residues_are_what_brute_force_finds(formula: Formula) -> None:
    given_ = all_of((formula, ge(sym("a"), 1), le(sym("a"), 60)))
    values = solutions(given_, "a")
    if not values or (found := values.residues(4)) is None:
        return
    modulus, wanted = found
    truth = [v for v in range(1, 61) if v in values]
    assert truth == [v for v in range(truth[0], truth[-1] + 1) if v % modulus in wanted]


@given(formulas("ab"), dims("ab"))
@settings(max_examples=60, deadline=None)
def test_facts_of_any_size_are_what_brute_force_finds(formula: Formula, dim: Dim) -> None:
    bounds = [f for n in "ab" for f in (ge(sym(n), 1), le(sym(n), 7))]
    given_ = [*bounds, *conjuncts(formula)]
    try:
        values = sorted({evaluate(dim, p) for p in box("ab", 1, 7) if true_at(given_, p)})
    except ZeroDivisionError:
        return
    if not values:
        return
    found = fact(Judge(), given_, dim)
    said = [(found.min is None or found.min <= v) and (found.max is None or v <= found.max) for v in values]
    assert all(said)
    step = found.divisor
    assert all(v % step == found.remainder if step else v == found.remainder for v in values)
    if found.exact:
        assert (found.min, found.max) == (values[0], values[-1])
    if found.exact and found.values is not None:
        steps = [v for a, b in found.values for v in range(a or 0, (b or 0) + 1, found.divisor or 1)]
        assert steps == values
