"""Generated programs are programs, as long as was asked for, and have the verdict that they should."""

from __future__ import annotations

import pytest

from benchmarks.growth import checked, grow
from benchmarks.programs import BY_SYMBOLS, MAKERS

REFINED = {"hourglasses", "divisors", "windows", "chains", "equated, 20 symbols", "broadcast, 3 symbols"}


@pytest.mark.parametrize("name", MAKERS)
def test_is_well_formed_and_about_as_long_as_asked(name: str) -> None:
    program, domain = MAKERS[name](400)
    program.verify()
    assert 370 < len(program.nodes) <= 400
    assert all(given.type is not None for given in program.inputs)
    assert len(set(domain.symbols)) == len(domain.symbols)


@pytest.mark.parametrize("name", [name for name in MAKERS if name not in ("chains", "broadcast, 3 symbols")])
def test_verdict(name: str) -> None:
    verdict, generated, solved = checked(MAKERS[name](60))
    assert verdict == ("refined" if name in REFINED else "proved")
    assert generated > 0 and solved > 0


@pytest.mark.parametrize("name", BY_SYMBOLS)
def test_makers_by_symbols_have_as_many(name: str) -> None:
    make, numbers = BY_SYMBOLS[name]
    for number in numbers:
        assert len(make(1_000, number)[1].symbols) == number


def test_growth_is_told_per_node() -> None:
    short, long = grow("perceptron", [300, 30])
    assert (short.nodes, long.nodes) == (30, 300)
    assert 0 < long.us < 5_000 and long.verdict == "proved"
