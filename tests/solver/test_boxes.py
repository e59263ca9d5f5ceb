"""The largest box within an accepted set: what is chosen where the set is no box, and brute force."""
from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import given, settings
from random_formulas import box as points_of
from random_formulas import formulas, true_at

from anyshape.constraints.terms.dims import Dim, evaluate, sym
from anyshape.constraints.terms.formula import Formula, conjuncts, ge, le
from anyshape.constraints.terms.formula_text import parse_formula
from anyshape.constraints.terms.syntax import parse_dim
from anyshape.solver.facts import boxes
from anyshape.solver.facts.boxes import Box, Root, is_all, largest_box, proved
from anyshape.solver.facts.progressions import Progression, largest
from anyshape.solver.tactics.judge import Judge
from anyshape.solver.theory.periodic import solutions


def found(
    names: str, accepted: Sequence[Formula], wanted: Sequence[Dim] = (), lone: Sequence[str] = ()
) -> tuple[Judge, Box] | None:
    judge = Judge()
    if judge.satisfiable(accepted, [*names]) != "sat":
        return None
    seed = {name: judge.model[name] for name in names}
    return judge, largest_box(judge, [*names], accepted, seed, wanted, lone)


def shown(box: Box) -> str:
    sizes = ", ".join(f"{name} = {size}" for name, size in box.sizes.items() if size != sym(name))
    roots = ", ".join(f"{r.low} <= {r.name}" + ("" if r.high is None else f" <= {r.high}") for r in box.roots)
    return "; ".join(filter(None, (sizes, roots)))


# symbols, formula, the box, is it everything; each symbol is at least 1
CHOSEN = [
    ("b", "b//4 == 2", "8 <= b <= 11", True),
    ("b", "b <= 64 and b % 4 <= 2 and b >= 2", "b = 2*_b; 1 <= _b <= 32", False),
    ("b", "b <= 64 and (b < 4 or b > 10)", "11 <= b <= 64", False),
    ("b", "b <= 64 and b != 7", "8 <= b <= 64", False),
    ("b", "b <= 64 and (2*b) % 6 == 0", "b = 3*_b; 1 <= _b <= 21", True),
    ("b", "b <= 64 and (b*b) % 4 == 0", "b = 2*_b; 1 <= _b <= 32", True),
    ("b", "b*b <= 100", "1 <= b <= 10", True),
    ("b", "b <= 64 and b % 4 == 0 and b % 6 == 0", "b = 12*_b; 1 <= _b <= 5", True),
    ("b", "b % 6 == 5", "b = 6*_b + 5; 0 <= _b", True),
    ("b", "b == 1 or b == 2 or b % 8 == 0 or b % 8 == 7", "b = 8*_b; 1 <= _b", False),
    ("b", "b == 5", "b = 5", True),
    ("xy", "x + y == 32", "x = 16, y = 16", False),
    ("xy", "x + y <= 20", "1 <= x <= 10, 1 <= y <= 10", False),
    ("ab", "a < b and b <= 64", "1 <= a <= 32, 33 <= b <= 64", False),
    ("ab", "a < b", "1 <= a <= 512, 513 <= b", False),
    ("hw", "h*w % 4 == 0", "h = 2*_h, w = 2*_w; 1 <= _h, 1 <= _w", False),
    ("hw", "h % 64 == 0 and w % 64 == 0", "h = 64*_h, w = 64*_w; 1 <= _h, 1 <= _w", True),
    ("hw", "(h//32)*(w//32) == 49", "224 <= h <= 255, 224 <= w <= 255", False),
    ("hw", "w == h//2 and h % 2 == 0", "h = 2*_h, w = _h; 1 <= _h", True),
    ("hw", "w == 2*h + 1", "w = 2*h + 1; 1 <= h", True),
    ("ab", "2*a == 3*b", "a = 3*_a, b = 2*_a; 1 <= _a", True),
    ("ab", "2*a == 3*b + 1", "a = 3*_a + 2, b = 2*_a + 1; 0 <= _a", True),
    ("ab", "2*a == 4*b + 1 or a == 3", "a = 3; 1 <= b", True),
    ("ab", "b == a + 5 and a % 3 == 1", "a = 3*_a + 1, b = 3*_a + 6; 0 <= _a", True),
    ("bc", "b == c or b == 1 or c == 1", "c = b; 1 <= b", False),
    ("ab", "b == a*a", "a = 2, b = 4", False),
    ("abc", "c == a + b", "a = 2, c = b + 2; 1 <= b", False),
    ("kmpt", "k + m == p + t", "p = k, t = m; 1 <= k, 1 <= m", False),
    ("ntk", "min(n, t) % k == 0", "k = 1; 1 <= n, 1 <= t", False),
    ("ab", "isqrt(b) == 1 or a == isqrt(a)", "1 <= a, 1 <= b <= 3", False),
    ("ab", "a <= 99 and (a % b == 0 or a < 3)", "1 <= a <= 2, 1 <= b", False),
    ("b", "isqrt(b) % 100 < 50", "1 <= b <= 2499", False),
    ("btcs", "b*t == c*s and t <= 128", "c = b, s = t; 1 <= b, 1 <= t <= 128", False),
]  # fmt: skip


@pytest.mark.parametrize("names, text, expected, everything", CHOSEN)
def test_what_is_chosen(names: str, text: str, expected: str, everything: bool) -> None:
    accepted = [*(ge(sym(n), 1) for n in names), *conjuncts(parse_formula(text))]
    answer = found(names, accepted)
    assert answer is not None
    judge, box = answer
    assert shown(box) == expected
    assert proved(judge, box, accepted)
    assert is_all(judge, box, accepted) == everything


# symbols, formula, a dim that has to be sayable, the box or None for a number
WANTED = [
    ("h", "True", "h//4 + 1", "h = 4*_h; 1 <= _h"),
    ("h", "h >= 7", "h//2 + h//3", "h = 6*_h; 2 <= _h"),
    ("h", "h <= 9", "10 - h", None),
    ("h", "True", "h*h", None),
    ("bt", "True", "b*t", "t = 2; 1 <= b"),
    ("h", "h % 2 == 1", "2*h + 3", "h = 2*_h + 1; 0 <= _h"),
]


@pytest.mark.parametrize("names, text, dim, expected", WANTED)
def test_wanted_dims_are_increasing_and_linear(names: str, text: str, dim: str, expected: str | None) -> None:
    accepted = [*(ge(sym(n), 1) for n in names), *conjuncts(parse_formula(text))]
    answer = found(names, accepted, [parse_dim(dim)])
    assert answer is not None
    assert shown(answer[1]) == expected if expected else not answer[1].roots


def test_integer_inputs_have_a_root_of_their_own() -> None:
    accepted = [ge(sym("n"), 1), ge(sym("b"), 1), parse_formula("b == n"), parse_formula("n <= 9")]
    answer = found("bn", accepted, (), ["n"])
    assert answer is not None
    assert all(isinstance(size, int) for size in answer[1].sizes.values())
    stepped = found("n", [ge(sym("n"), 1), parse_formula("n % 4 == 0")], (), ["n"])
    assert stepped is not None and isinstance(stepped[1].sizes["n"], int)


def roots_of(box: Box) -> list[dict[str, int]]:
    ranges = [range(r.low, (r.high or 0) + 1) for r in box.roots]
    return [dict(zip([r.name for r in box.roots], v, strict=True)) for v in product(*ranges)]


def check_by_brute_force(accepted: Sequence[Formula], answer: tuple[Judge, Box], high: int) -> None:
    """All sizes of the box are accepted, its formula says the same, and no root can be widened by one."""
    judge, box = answer
    inside = [box.at(r) for r in roots_of(box)]
    assert all(true_at(accepted, p) for p in inside)
    names = "".join(box.sizes)
    truth = [p for p in points_of(names, 1, high) if true_at(accepted, p)]
    within = [p for p in points_of(names, 1, high) if true_at([box.formula()], p)]
    assert sorted(map(str, within)) == sorted(map(str, inside))
    assert is_all(judge, box, accepted) == (len(inside) == len(truth))
    for root in box.roots:
        assert root.high is not None
        for value in (root.low - 1, root.high + 1):
            others = [r for r in box.roots if r is not root]
            wider = roots_of(Box(box.sizes, (*others, Root(root.name, value, value))))
            assert not all(true_at(accepted, box.at(r)) for r in wider), root


@given(formulas("ab"))
@settings(max_examples=80, deadline=None)
def test_boxes_are_within_and_cannot_be_widened(formula: Formula) -> None:
    accepted = [*(f for n in "ab" for f in (ge(sym(n), 1), le(sym(n), 8))), *conjuncts(formula)]
    if (answer := found("ab", accepted)) is not None:
        check_by_brute_force(accepted, answer, 8)


def test_brute_force_catches_a_box_that_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that believes every guess."""
    monkeypatch.setattr(boxes._BoxGrowth, "_all_accepted", lambda self, about, given: True)
    monkeypatch.setattr(boxes._BoxGrowth, "_points", lambda self, others: [dict.fromkeys(others, 1)])
    accepted = [*(f for n in "ab" for f in (ge(sym(n), 1), le(sym(n), 8))), parse_formula("a != b")]
    answer = found("ab", accepted)
    assert answer is not None
    assert not proved(answer[0], answer[1], accepted)
    with pytest.raises(AssertionError):
        check_by_brute_force(accepted, answer, 8)


# --- progressions


@given(formulas("a", symbolic=False))
@settings(max_examples=150, deadline=None)
def test_the_largest_progression_is_the_longest(formula: Formula) -> None:
    """Of a bounded set, against all progressions within it."""
    bounds = [ge(sym("a"), 1), le(sym("a"), 24)]
    values = solutions(parse_formula("a >= 1 and a <= 24"), "a")
    more = solutions(formula, "a")
    if values is None or more is None or not (values := values & more):
        return
    members = [v for v in range(1, 25) if true_at([*bounds, formula], {"a": v})]
    best = largest(values)
    assert best is not None and all(v in members for v in range(1, 99) if v in best)
    longest = 1
    for start, step in product(members, range(1, 9)):
        run = start
        while run + step in members:
            run += step
        if values.period % step == 0:
            longest = max(longest, (run - start) // step + 1)
    multiples = best.start % best.step == 0 and not best.is_single  # may have one value less
    assert best.count + multiples >= longest


@pytest.mark.parametrize("progression, members", [
    (Progression(3, 9, 2), [3, 5, 7, 9]),
    (Progression.single(4), [4]),
    (Progression(5, None, 5), [5, 10, 15]),
])
def test_a_progression_and_its_formula(progression: Progression, members: list[int]) -> None:
    assert [v for v in range(1, 18) if v in progression] == members
    assert [v for v in range(1, 18) if true_at([progression.formula(sym("s"))], {"s": v})] == members
    halves = progression.split(1)
    if len(members) == 1:
        assert halves is None
    else:
        assert halves is not None
        assert sorted(v for half in halves for v in range(1, 18) if v in half) == members


def test_sizes_at_roots() -> None:
    box = Box({"h": parse_dim("2*_h + 1"), "b": 3}, (Root("_h", 0, None),))
    assert box.at({"_h": 4}) == {"h": 9, "b": 3}
    assert evaluate(box.sizes["h"], {"_h": 0}) == 1
