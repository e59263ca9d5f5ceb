"""The first repair of a mistake that people often make is what they would do, and the repaired file runs."""

from __future__ import annotations

import itertools
import runpy
import time
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import pytest
import torch
from models.mistakes import KINDS, MISTAKES, Mistake
from torch import Tensor, nn

from anyshape.constraints.ir import language
from anyshape.constraints.ir.spec_text import parse_spec
from anyshape.constraints.terms.dims import evaluate
from anyshape.typecheck import check
from anyshape.typecheck.facade import Report
from anyshape.typecheck.project.fixing import plan
from anyshape.typecheck.repairs import search
from anyshape.typecheck.report.report import Finding

REFUSED = (RuntimeError, ValueError, IndexError, AssertionError)
NUMBER = itertools.count()


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SECONDS", "SECONDS_EACH", "SECONDS_NATURAL"):
        monkeypatch.setattr(search, name, 60.0)


def found(report: Report, mistake: Mistake) -> Finding:
    return next(f for f in report.findings if mistake.line in f.origin.code and f.repairs)


def run(file: Path, inputs: str, sizes: Mapping[str, int]) -> None:
    """Runs the model of a file in torch itself."""
    model: nn.Module = runpy.run_path(str(file), run_name=f"mistake_{next(NUMBER)}")["Net"]().eval()
    given = []
    for declared in parse_spec(inputs).inputs:
        assert isinstance(declared.type, language.Tensor)
        shape = [evaluate(dim, sizes) for dim in declared.type.shape]
        given.append(torch.ones(shape, dtype=getattr(torch, declared.type.dtype or "float32")))
    result = model(*given)
    assert isinstance(result, Tensor)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.name)
def test_a_mistake(mistake: Mistake, tmp_path: Path) -> None:
    file = tmp_path / "net.py"
    file.write_text(mistake.source)
    report = check(f"{file}:Net", mistake.inputs, repairs=True)
    finding = found(report, mistake)
    first, *_ = finding.repairs
    assert (first.message, first.safe) == (mistake.repair, True)
    if first.origin.file:
        (edit,) = plan([report], False, [tmp_path.resolve()], time.time()).edits
        assert edit.write()
        after = check(f"{file}:Net", mistake.inputs)
        assert not any((f.code, f.message) == (finding.code, finding.message) for f in after.findings)
        sizes = gained(report, after)
        run(file, mistake.inputs, sizes)
        file.write_text(mistake.source)
        with pytest.raises(REFUSED):
            run(file, mistake.inputs, sizes)
        return
    declared = first.message.removeprefix("declare ").removesuffix(", if that is what comes")
    narrowed = ":" not in declared
    inputs = mistake.inputs if narrowed else replaced(mistake.inputs, declared)
    after = check(f"{file}:Net", inputs, declared if narrowed else ())
    assert not any(f.message == finding.message for f in after.findings)
    assert after.runs_at is not None
    run(file, inputs, after.runs_at)
    assert report.fails_at is not None
    with pytest.raises(REFUSED):
        run(file, mistake.inputs, report.fails_at)
    if narrowed:
        assert not after.accepts.declared(**report.fails_at)


def gained(before: Report, after: Report) -> Mapping[str, int]:
    """Returns sizes that are refused before a repair and accepted after it."""
    names = before.accepts.symbols
    every = (dict(zip(names, sizes, strict=True)) for sizes in product((2, 4, 33, 17, 1), repeat=len(names)))
    return next(s for s in every if after.accepts.holds(**s) and not before.accepts.holds(**s))


def replaced(inputs: str, declared: str) -> str:
    """Returns a spec with another declaration of one input."""
    name = declared.partition(":")[0]
    return "; ".join(declared if one.strip().startswith(f"{name}:") else one for one in inputs.split(";"))


def test_there_are_five_models_of_each_kind() -> None:
    assert {len(entries) for entries in KINDS.values()} == {5}
    assert len({mistake.source for mistake in MISTAKES}) == len(MISTAKES)


def test_what_changes_the_meaning_never_stands_alone(tmp_path: Path) -> None:
    unsafe = 0
    for mistake in MISTAKES:
        if mistake.name.startswith(("vit", "pooling", "view")):
            file = tmp_path / f"{mistake.name}.py"
            file.write_text(mistake.source)
            for finding in check(f"{file}:Net", mistake.inputs, repairs=True).findings:
                safe = [repair.safe for repair in finding.repairs]
                assert safe == sorted(safe, reverse=True)
                assert not safe or safe[0]
                unsafe += not all(safe)
    assert unsafe
