"""What a target is, and what is said of one that is none."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from anyshape.typecheck.targets.target import resolve
from anyshape.typecheck.targets.target_error import TargetError

SOURCE = '''\
from dataclasses import dataclass

class Model:
    def __call__(self, x): return x

class Needs:
    def __init__(self, depth, width: int = 3): self.given = depth, width
    def __call__(self, x): return x

class Takes:
    def __init__(self, config: "Configured"): self.given = config
    def __call__(self, x): return x

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
def scaled(times: int): return Model()
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
    "models.py:Needs(3)": "Needs",
    "models.py:Needs(3, width=4)": "Needs",
    "models.py:Needs(depth={'a': [1, -2.5, None, True, 'a(b):c']})": "Needs",
    "models.py:Configured()": "Configured",
    "models.py:Needs(Configured(depth=4))": "Needs",
    "models.py:Needs(width=2, depth=Needs(Configured()))": "Needs",
    "models.py:factory()": "Model",
    "models.py:scaled(2)": "Model",
    "models.py:Outer.Inner()": "Inner",
}

REFUSED = {
    "models.py:Modle": ("models.py has no 'Modle'", "did you mean 'Model'?"),
    "models.py:zzz": ("no 'zzz'", "it defines", "Outer", "and 5 more"),
    "models.py": ("does not name what to check", "factory"),
    "models.py:Outer.Iner": ("models.py:Outer has no 'Iner'", "Inner"),
    "models.py:Needs": ("Needs needs depth", '"models.py:Needs(depth=…)"', "Needs(depth, width: int = 3)"),
    "models.py:Needs(width=4)": ("Needs needs depth", "Needs(width=4, depth=…)"),
    "models.py:Needs(1, 2, 3)": ("does not take the arguments: too many", "Needs(depth, width: int = 3)"),
    "models.py:Needs(1, widht=2)": ("has no parameter 'widht'", "did you mean 'width'?"),
    "models.py:Needs(1, depth=2)": ("multiple values for argument 'depth'",),
    "models.py:Needs(n)": ("the argument n is no literal", "a number, a text in quotes"),
    "models.py:Needs(open('x'))": ("the argument open('x') is no literal",),
    "models.py:Needs(Configred(2))": ("has no class 'Configred'", "did you mean 'Configured'?"),
    "models.py:Needs(dataclass(2))": ("no literal, and its file has no class 'dataclass'",),
    "models.py:Needs(factory())": ("no literal, and its file has no class 'factory'",),
    "models.py:Needs(Configured(open('x')))": ("the argument open('x') is no literal",),
    "models.py:Takes": ('"models.py:Takes(config=Configured())"',),
    "models.py:Needs(*[1])": ("the argument *[1] is no literal",),
    "models.py:Needs(**{'depth': 1})": ("**{'depth': 1} is no argument",),
    "models.py:Needs(1) + f(2)": ("the arguments '1) + f(2' cannot be read",),
    "models.py:Needs(1) or f(2)": ("cannot be read",),
    f"models.py:Needs({'[' * 5000})": ("cannot be read",),
    f"models.py:Needs({'1,' * 6000})": ("12,000 characters; at most 10,000",),
    "models.py:scaled()": ("scaled needs times: int",),
    "models.py:instance(3)": ("instance is built already, with the type Model", "leave out the arguments"),
    "models.py:SIZE(3)": ("SIZE is built already, with the type int",),
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


PACKAGES = {
    "pkg/models/rel.py": ("from .parts import SIZE", "from ..sizes import WIDTH"),
    "namespace/inner/rel.py": ("from .parts import SIZE", "from ..sizes import WIDTH"),
    "flat/rel.py": ("from .parts import SIZE", "from sizes import WIDTH"),
    "plain/rel.py": ("from parts import SIZE", "from pkg.sizes import WIDTH"),
    "src/rel.py": ("from pkg.models.parts import SIZE", "from library.sizes import WIDTH"),
}


@pytest.mark.parametrize("path", PACKAGES)
def test_a_file_imports_as_its_project_does(
    tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relatively, from its own folder, from the root of the project, and from the folder `src` there."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    known = {*sys.modules}
    (tmp_path / "pyproject.toml").touch()
    for file in ("pkg/__init__.py", "pkg/models/__init__.py", "src/library/__init__.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    for folder in ("pkg", "namespace", "flat", "src/library", "."):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "sizes.py").write_text("WIDTH = 4\n")
    for folder in ("pkg/models", "namespace/inner", "flat", "plain"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "parts.py").write_text("SIZE = 3\n")
    (tmp_path / path).write_text("\n".join((*PACKAGES[path], "def f(x): return SIZE * WIDTH\n")))
    try:
        assert resolve(f"{tmp_path / path}:f").value(None) == 12
    finally:
        for name in {*sys.modules} - known:
            del sys.modules[name]


def test_a_relative_import_of_what_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "rel.py").write_text("from .blocks import Block\n")
    with pytest.raises(TargetError, match=r"No module named 'models\.blocks'") as caught:
        resolve(f"{tmp_path}/models/rel.py:Net")
    assert caught.value.origin.code == "from .blocks import Block"
    assert "models.rel" not in sys.modules
