"""The findings and their documentation: a section for each code, with an example of it and one repaired."""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from anyshape.tracer.host import releases
from anyshape.typecheck import Code, Report, check
from anyshape.typecheck.project.suppression import suppressed

DOCUMENT = (Path(__file__).parent.parent.parent / "docs/findings.md").read_text()
SECTIONS = dict(re.findall(r"^## (\S+)\n\n(.*?)(?=^## |\Z)", DOCUMENT, re.MULTILINE | re.DOTALL))
BLOCK = re.compile(r"^```python (finding|repaired)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_code_has_a_section_and_every_section_a_code() -> None:
    assert list(SECTIONS) == [code.value for code in Code]


@pytest.mark.parametrize("code", Code)
def test_sections_say_severity_meaning_and_two_examples(code: Code) -> None:
    section = SECTIONS[code]
    assert section.startswith(f"*{code.severity}*: {code.summary}.\n\n")
    assert [kind for kind, _ in BLOCK.findall(section)] == ["finding", "repaired"]


def loaded(text: str, path: Path, names: dict[str, object]) -> ModuleType:
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    vars(module).update(names)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def checked(module: ModuleType) -> Report:
    report = check(
        module.target,
        module.inputs,
        getattr(module, "assume", ()),
        rules=getattr(module, "rules", None),
        suspect=getattr(module, "suspect", ()),
    )
    return suppressed([report], all=True)[0]


NEWEST = {Code.UNTESTED_TORCH: "NEWEST", Code.UNTESTED_PYTHON: "NEWEST_PYTHON"}
"""The constants that are older than what is installed, while the example of a finding is checked."""


@pytest.mark.parametrize("code", Code)
def test_the_examples_have_it_and_have_it_not(
    code: Code, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repair may be a part of the program alone: the rest is as it was."""
    (_, finding), (_, repaired) = BLOCK.findall(SECTIONS[code])
    before = loaded(finding, tmp_path / f"finding_{code.name.lower()}.py", {})
    with monkeypatch.context() as older:
        if code in NEWEST:
            older.setattr(releases, NEWEST[code], "2.0")
        found = checked(before)
    assert code in {f.code for f in found.findings}, found
    kept = {name: value for name, value in vars(before).items() if not name.startswith("__")}
    after = checked(loaded(repaired, tmp_path / f"repaired_{code.name.lower()}.py", kept))
    assert code not in {f.code for f in after.findings}, after
    assert not [f for f in after.findings if f.severity != "note"], after
