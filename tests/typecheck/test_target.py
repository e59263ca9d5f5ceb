"""What a target is, and what is said of one that is none."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from anyshape.typecheck.checking.target import TargetError, resolve

SOURCE = '''\
from dataclasses import dataclass

class Model:
    def __call__(self, x): return x

class Needs:
    def __init__(self, depth, width=3): pass

class Broken:
    def __init__(self):
        raise RuntimeError("no weights here")

@dataclass
class Configured:
    depth: int = 3
    def __call__(self, x): return x

class Outer:
    class Inner(Model): pass

def function(x, y): return x
def factory(): return Model()
def optional(x=None): return Model()
def anything(*args): return args
def odd(): return 3
def archive(): return "missing.pt2"
instance = Model()
SIZE = 3
'''


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "models.py").write_text(SOURCE)
    return tmp_path


# text: name of the type of what is checked
RESOLVED = {
    "models.py:Model": "Model",
    "models.py:instance": "Model",
    "models.py:factory": "Model",
    "models.py:Configured": "Configured",
    "models.py:Outer.Inner": "Inner",
    "models.py:function": "function",
    "models.py:anything": "function",
    "./models.py:Model": "Model",
    "anyshape_models:Model": "Model",
    "os.path:join": "function",
}

REFUSED = {
    "models.py:Modle": ("models.py has no 'Modle'", "did you mean 'Model'?"),
    "models.py:zzz": ("no 'zzz'", "it defines", "Configured"),
    "models.py": ("does not name what to check", "Configured"),
    "models.py:Outer.Iner": ("models.py:Outer has no 'Iner'", "Inner"),
    "models.py:Needs": ("takes arguments: Needs(depth, width=3)",),
    "models.py:Broken": ("failed: RuntimeError: no weights here",),
    "models.py:SIZE": ("of type int",),
    "models.py:odd": ("of type int",),
    "models.py:archive": ("missing.pt2 does not exist",),
    "model.py:Model": ("model.py does not exist", "did you mean 'models.py'?"),
    "nowhere/models.py:Model": ("no folder nowhere",),
    "no_such_module:Model": ("no module 'no_such_module'",),
    "os.no_such:Model": ("no module 'os.no_such'",),
    "absent.pt2": ("absent.pt2 does not exist",),
    "folder.pt2": ("is a folder",),
    "what is this": ("is not a target", "file.py:Name"),
    "syntax.py:f": ("SyntaxError",),
    "imports.py:f": ("No module named 'no_such_dependency'",),
    "exits.py:f": ("SystemExit",),
}


@pytest.mark.parametrize("text", RESOLVED)
def test_resolves(source: Path, text: str) -> None:
    (source / "anyshape_models.py").write_text(SOURCE)
    target = resolve(text)
    assert (target.kind, type(target.value).__name__) == ("python", RESOLVED[text])
    sys.modules.pop("anyshape_models", None)


@pytest.mark.parametrize("text", REFUSED)
def test_refuses(source: Path, text: str) -> None:
    (source / "folder.pt2").mkdir()
    (source / "syntax.py").write_text("def f(:\n    pass\n")
    (source / "imports.py").write_text("import os\nimport no_such_dependency\n")
    (source / "exits.py").write_text("import sys\nsys.exit('not today')\n")
    with pytest.raises(TargetError) as caught:
        resolve(text)
    assert all(part in str(caught.value) for part in REFUSED[text]), str(caught.value)


LINES = {
    "models.py:Broken": 'raise RuntimeError("no weights here")',
    "syntax.py:f": "def f(:",
    "imports.py:f": "import no_such_dependency",
}


@pytest.mark.parametrize("text", LINES)
def test_shows_the_line_that_failed(source: Path, text: str) -> None:
    (source / "syntax.py").write_text("def f(:\n    pass\n")
    (source / "imports.py").write_text("import os\nimport no_such_dependency\n")
    with pytest.raises(TargetError) as caught:
        resolve(text)
    assert caught.value.origin.code == LINES[text]


def test_a_function_with_inputs_is_no_factory(source: Path) -> None:
    assert resolve("models.py:optional", ["x"]).value.__name__ == "optional"
    assert type(resolve("models.py:optional", ["y"]).value).__name__ == "Model"


def test_a_file_may_have_the_name_of_a_module_in_use(source: Path) -> None:
    (source / "json.py").write_text("def f(x): return x\n")
    import json

    assert resolve("json.py:f").value.__name__ == "f"
    assert sys.modules["json"] is json


def test_objects_are_targets() -> None:
    def f(x: Any) -> Any:
        return x

    def constant() -> int:
        return 3

    assert (resolve(f).value, resolve(f).name) == (f, "f")
    assert resolve(constant).value is constant
    with pytest.raises(TargetError, match="of type int"):
        resolve(3)


def test_an_exported_program_is_known_without_torch() -> None:
    kind = type("ExportedProgram", (), {"__module__": "torch.export.exported_program"})
    assert resolve(kind()).kind == "exported"


def test_a_path_of_an_archive(source: Path) -> None:
    (source / "model.pt2").write_bytes(b"")
    assert (resolve(source / "model.pt2").kind, resolve("model.pt2").value) == ("pt2", "model.pt2")


def test_a_file_is_read_as_it_is_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it has been saved again within the second, with as many bytes."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = tmp_path / "net.py"
    for number in ("500", "216"):
        file.write_text(f"def size(x): return {number}\n")
        os.utime(file, (1_000_000_000, 1_000_000_000))
        assert resolve(f"{file}:size").value(None) == int(number)
