"""What is known of floats that depend on sizes, against the floats themselves."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from anyshape.constraints.terms.dims import sym
from anyshape.constraints.terms.formula import holds
from anyshape.tracer.values.floats import PLAIN, Near, Rise

n = sym("n")

RISES: list[tuple[str, Rise | None, Callable[[int], float]]] = [
    ("times", Rise(n, float).then(lambda x: x * 0.7), lambda k: k * 0.7),
    ("falls", Rise(n, float).then(lambda x: x * -0.3, False), lambda k: k * -0.3),
    ("less", Rise(n, float).then(lambda x: 5.5 - x, False), lambda k: 5.5 - k),
    ("root", Rise(n, float, low=0).then(math.sqrt), math.sqrt),
    ("log", Rise(n, float, low=1).then(math.log2), math.log2),
    ("decay", Rise(n, float, low=-500).then(lambda x: x * -1.0, False), lambda k: k * -1.0),
    ("rounded", Rise(n, float).then(lambda x: round(x / 3, 1)), lambda k: round(k / 3, 1)),
]


@pytest.mark.parametrize("rise, value", [row[1:] for row in RISES], ids=[row[0] for row in RISES])
def test_a_comparison_with_a_number_is_one_of_the_size(rise: Rise, value: Callable[[int], float]) -> None:
    met = map(value, (5, 7, 9))
    for limit in (0.0, 2.0, 2.1, 3.3000000000000003, 0.3 * 7, -1.5, math.inf, math.nan, *met):
        for how, plain in PLAIN.items():
            formula = rise.compared(how, limit)
            for k in range(1, 30):
                assert holds(formula, {"n": k}) == plain(value(k), limit), (how, limit, k)


def test_a_step_that_falls_and_says_that_it_rises_is_seen() -> None:
    wrong = Rise(n, float).then(lambda x: -x)
    assert wrong is not None
    assert any(holds(wrong.compared(">", -3.0), {"n": k}) != (-k > -3.0) for k in range(1, 30))


def test_what_is_beyond_all_floats_is_not_followed() -> None:
    far = Rise(n, float).then(lambda x: x * 1e300)
    assert far is None


def test_a_rounded_float_is_one_of_few_integers() -> None:
    logarithm = Rise(n, float, low=1).then(math.log2)
    assert logarithm is not None
    for k in (1, 2, 3, 4, 1023, 1024, 1025, 2**40 - 1, 2**40):
        asked: list[bool] = []

        def truth(formula: object, k: int = k, asked: list[bool] = asked) -> bool:
            asked.append(holds(formula, {"n": k}))  # type: ignore[arg-type]
            return asked[-1]

        assert logarithm.whole(math.floor, truth) == math.floor(math.log2(k))
        assert len(asked) <= 7
    assert Rise(n, float).whole(math.floor, lambda formula: True) is None  # as many as there are sizes


def _certain(bound: int) -> Callable[[object], bool]:
    """What is certain of sizes up to a bound: decided by trying the largest."""
    return lambda formula: holds(formula, dict.fromkeys("abcd", bound))  # type: ignore[arg-type]


def _disagreements(near: Near, other: Near, rounds: int, bound: int) -> list[dict[str, int]]:
    """Where floats compare otherwise than they should: a*(b/c) with d, and with 1."""
    draw, found = random.Random(1), []
    greater, less, equal = near.against(other, _certain(bound))
    for _ in range(rounds):
        c, b, d = draw.randint(1, bound), draw.randint(1, bound), draw.randint(1, 20)
        a = draw.choice([draw.randint(1, bound), max(1, d * c // b), c, max(1, d * c // math.gcd(b, c))])
        values = {"a": a, "b": b, "c": c, "d": d}
        mine, theirs = a * (b / c), float(d)
        wrong = (
            (holds(greater, values) and not mine > theirs)
            or (holds(less, values) and not mine < theirs)
            or (holds(equal, values) and mine != theirs)
        )
        if wrong:
            found.append(values)
    return found


@pytest.mark.parametrize("bound", [60, 2**30])
def test_floats_that_are_near_a_fraction_compare_as_it_does(bound: int) -> None:
    a, b, c, d = (Near(sym(name), 1) for name in "abcd")
    ratio = b.over(c)
    assert ratio is not None
    product = a.times(ratio)
    assert product is not None
    assert _disagreements(product, d, 20_000, bound) == []
    careless = replace(product, exact=True, nearest=True)  # 49 * (1/49) is less than 1
    assert bound > 60 or _disagreements(careless, d, 20_000, bound)


def test_what_is_certain_of_near_floats_covers_almost_all() -> None:
    a, b, c = (Near(sym(name), 1) for name in "abc")
    ratio = a.over(b)
    assert ratio is not None
    greater, less, equal = ratio.against(c, _certain(100))
    for values in ({"a": x, "b": y, "c": z} for x in range(1, 9) for y in range(1, 9) for z in range(1, 9)):
        assert sum(holds(f, values) for f in (greater, less, equal)) == 1
        assert holds(greater, values) == (values["a"] / values["b"] > values["c"])


def test_bounds_of_errors_hold_without_a_bound_on_sizes() -> None:
    a, b = Near(sym("a"), 1), Near(sym("b"), 1)
    ratio = a.over(b)
    assert ratio is not None
    greater, _, _ = ratio.against(Near(sym("c"), sym("d"), 1), lambda formula: False)
    assert holds(greater, {"a": 3, "b": 1, "c": 1, "d": 1})
    assert not holds(greater, {"a": 2**60 + 1, "b": 2**60, "c": 1, "d": 1})  # one float, of two fractions
