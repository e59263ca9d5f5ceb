"""What is written: the same each time, in all families, and Python."""

from __future__ import annotations

import ast

import pytest

from benchmarks.fuzz import contents, memory, operators
from benchmarks.fuzz.families import FAMILIES, named, written
from benchmarks.fuzz.program import Input, Program, points

SLICE = 400


@pytest.mark.parametrize("family", FAMILIES)
def test_a_program_is_the_same_each_time(family: str) -> None:
    for number in range(20):
        program, where = written(5, number, [family])
        assert written(5, number, [family]) == (program, where) and named(program.name) == program


def test_families_take_turns() -> None:
    names = [written(0, n, ["contents", "memory"])[1] for n in range(4)]
    assert names == ["contents", "memory", "contents", "memory"]


@pytest.mark.parametrize("family", FAMILIES)
def test_programs_are_python(family: str) -> None:
    for number in range(100):
        program, _ = written(3, number, [family])
        ast.parse(program.source)
        program.build()
        assert program.symbols or not program.assume
        assert Program.of(program.name, program.source, program.spec, program.assume).inputs == program.inputs


@pytest.mark.parametrize(
    "family, table",
    [
        ("contents", contents.MAKERS), ("contents", contents.TRANSFORMS), ("contents", contents.CONSUMERS),
        ("casts", contents.CASTS), ("memory", memory.VIEWS), ("memory", memory.BASES),
        ("operators", operators.EXPRESSIONS),
    ],
)  # fmt: skip
def test_every_construct_is_written(family: str, table: tuple[contents.Construct, ...]) -> None:
    missing = {construct.name for construct in table}
    for number in range(10 * SLICE):
        missing.difference_update(written(1, number, [family])[0].constructs)
        if not missing:
            break
    assert missing == set()


def test_names_of_constructs_are_unique() -> None:
    tables = (
        contents.MAKERS, contents.TRANSFORMS, contents.CASTS, contents.TABLES, contents.CONSUMERS,
        memory.BASES, memory.VIEWS,
    )  # fmt: skip
    names = [construct.name for table in tables for construct in table]
    assert len(set(names)) == len(names)


def test_points_are_declared_and_distinct() -> None:
    program = Program(
        "p", "def f(x):\n    return x[:70]\n", (Input("x", "float32", ("a", "2 * b")),), ("a >= 0",)
    )
    found = points(program, 20, [{"a": 999, "b": 2}], {"b": (333,)})
    assert found[0] == {"a": 999, "b": 2}
    assert len(found) == 20 == len({tuple(p.values()) for p in found})
    assert all(p["b"] >= 1 and p["a"] >= 0 for p in found) and any(p["a"] == 0 for p in found)
    assert {69, 70, 71} & {v for p in found for v in p.values()} and any(p["b"] == 333 for p in found)
    assert found == points(program, 20, [{"a": 999, "b": 2}], {"b": (333,)})
