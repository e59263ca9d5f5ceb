"""Reports in single lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from anyshape.typecheck.cli.main import main

SOURCE = """\
def halves(x):
    return x.view(x.shape[0], 2, -1)

def same(x):
    return x
"""


@pytest.fixture(autouse=True)
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(SOURCE)


ANSWERS = {
    ("net.py:same", "x: [b, h]"): "proved: net.py:same runs for every declared input",
    ("net.py:halves", "x: [b, h]"): "refined: net.py:halves runs for some .*, where h % 2 == 0",
    ("net.py:halves", "x: [b, 2*h+1]"): "refuted: net.py:halves runs for none of the declared inputs",
}


@pytest.mark.parametrize("form", [["--concise"], ["--format", "concise"]], ids=" ".join)
@pytest.mark.parametrize(("target", "spec"), ANSWERS)
def test_a_line_for_each_finding_and_one_for_the_answer(
    target: str, spec: str, form: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    main(["check", target, "-i", spec, *form])
    *findings, answer = capsys.readouterr().out.splitlines()
    assert re.fullmatch(ANSWERS[target, spec], answer)
    for line in findings:
        found = re.fullmatch(r"(net\.py):(\d+):(\d+): ([a-z-]+): (.+)", line)
        assert found is not None, line
        code = SOURCE.splitlines()[int(found[2]) - 1]
        assert code[int(found[3]) - 1 :].startswith("x.view"), line
    assert bool(findings) == ("halves" in target)


@pytest.mark.parametrize(("target", "spec"), ANSWERS)
def test_quiet_about_what_passes(target: str, spec: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["check", target, "-i", spec, "--quiet"])
    told = capsys.readouterr().out
    assert (code == 0) == (told == "")
    assert told == "" or re.fullmatch(ANSWERS[target, spec], told.removesuffix("\n"))
