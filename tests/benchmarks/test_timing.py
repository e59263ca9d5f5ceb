"""Rounds, ratios and tables."""

from __future__ import annotations

from pathlib import Path

from benchmarks.tables import Table, results
from benchmarks.timing import Spread, ratio, rounds, seconds, total


def test_contenders_take_turns_and_the_first_round_does_not_count() -> None:
    order: list[str] = []

    def contender(name: str, *took: float) -> object:
        numbers = iter(took)
        return lambda: (order.append(name), next(numbers))[1]

    found = rounds({"a": contender("a", 9, 1, 2), "b": contender("b", 9, 3, 4)}, 2)  # type: ignore[dict-item]
    assert order == ["a", "b"] * 3
    assert found == {"a": [1, 2], "b": [3, 4]}


def test_stages_of_a_contender_are_kept_apart() -> None:
    found = rounds({"check": lambda: {"trace": 1.0, "solve": 2.0}}, 1)
    assert found == {"check.trace": [1.0], "check.solve": [2.0]}


def test_ratios_are_taken_round_by_round() -> None:
    assert ratio([1, 4, 9], [1, 2, 3]) == Spread(2, 1, 3)
    assert total([1, 2], [10, 20]) == [11, 22]


def test_seconds_are_those_of_the_work() -> None:
    assert seconds(lambda: sum(range(200_000))) > 5 * seconds(lambda: sum(range(100)))


def test_a_table_is_read_back_as_it_was_written() -> None:
    table = Table("t", "About", [{"model": "m", "ratio": Spread(0.5, 0.25, 1.0)}, {"model": "n"}])
    assert Table.from_json(table.to_json()) == table
    assert "0.50 (0.25–1.00)" in table.text() and table.text().count("\n| ") == 4


def test_the_page_has_every_table_that_is_there(tmp_path: Path) -> None:
    import json

    for name in ("one", "two"):
        (tmp_path / f"{name}.json").write_text(json.dumps(Table(name, f"About {name}", [{"a": 1}]).to_json()))
    results(tmp_path, ["one", "two", "three"], tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text()
    assert "About one" in page and "About two" in page and "three" not in page
