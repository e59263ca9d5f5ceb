"""The regression gate: counts repeat exactly, and a slower package fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from anyshape.constraints.engine.generate import Generator
from anyshape.constraints.terms.dims import sym
from anyshape.constraints.terms.intervals import Bounds
from benchmarks import gate
from benchmarks.growth import checked
from benchmarks.instructions import instructions
from benchmarks.programs import perceptron, transformer


def counted(length: int = gate.SHORT) -> dict[str, int]:
    return {f"transformer {length}": instructions(lambda: checked(transformer(length)))}


def test_counts_repeat() -> None:
    counted()
    assert counted() == counted()


def test_only_our_own_instructions_count() -> None:
    assert instructions(lambda: sum(i * i for i in range(1_000))) == 0


def test_the_same_passes() -> None:
    assert gate.compared(counted(), counted()) == []


def test_a_slower_rule_loop_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    before = counted()
    bind = Generator.call

    def slower(self: Generator, *args: object) -> object:
        for _ in range(10):  # asks again and again what it knows
            Bounds({}).at_least(sym("h"), 1)
        return bind(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Generator, "call", slower)
    (failure,) = gate.compared(counted(), before)
    assert failure.case == f"transformer {gate.SHORT}"
    assert failure.count > gate.ALLOWED * failure.allowed
    assert "over the baseline" in str(failure)


def test_work_that_grows_faster_than_the_program_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def growing() -> dict[str, int]:
        made = {n: perceptron(n) for n in (gate.SHORT, gate.LONG)}
        return {f"perceptron {n}": instructions(lambda n=n: checked(made[n])) for n in made}  # type: ignore[misc]

    counts = growing()
    assert gate.compared(counts, {}) == []
    call = Generator.call

    def quadratic(self: Generator, *args: object) -> object:
        for _ in self.said.values:
            self.bounds.at_least(sym("h"), 1)
        return call(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Generator, "call", quadratic)
    (failure,) = gate.compared(growing(), dict.fromkeys(counts, 10**9))
    assert failure.case == f"perceptron {gate.LONG}" and "times those of" in str(failure)


def test_fifteen_percent_are_allowed_and_no_more() -> None:
    assert gate.compared({"case": 1_150}, {"case": 1_000}) == []
    assert [f.case for f in gate.compared({"case": 1_151}, {"case": 1_000})] == ["case"]


def test_a_baseline_is_kept_for_each_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "baseline.json"
    assert gate.read(path) == {}
    gate.write(path, {"case": 1})
    monkeypatch.setattr(gate, "version", lambda: "4.0")
    assert gate.read(path) == {}
    gate.write(path, {"case": 2})
    assert gate.read(path) == {"case": 2}
    monkeypatch.undo()
    assert gate.read(path) == {"case": 1}


def test_the_baseline_has_every_case() -> None:
    recorded = gate.read(gate.BASELINE)
    if not recorded:
        pytest.skip("the instructions of another release of Python are recorded")
    assert {name for name, _ in gate.cases()} == set(recorded)
