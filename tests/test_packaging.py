"""The repository and what installs from it agree."""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
FOLDERS = ("constraints", "solver", "tracer", "typecheck")
ITSELF = ROOT / "typecheck/anyshape"
PACKAGES = {
    f"anyshape.{init.parent.relative_to(ROOT).as_posix().replace('/', '.')}": init.parent
    for folder in FOLDERS for init in sorted((ROOT / folder).rglob("__init__.py")) if init.parent != ITSELF
} | {"anyshape": ITSELF}
OPENTELEMETRY = ("api", "sdk", "exporter-otlp-proto-http")
IMPORT_NAMES = {
    "z3-solver": "z3", "pydantic-settings": "pydantic_settings", "SQLAlchemy": "sqlalchemy",
    **{f"opentelemetry-{part}": "opentelemetry" for part in OPENTELEMETRY},
}  # fmt: skip


def requirement(text: str) -> tuple[str, str]:
    """`z3-solver>=4.13` -> `("z3-solver", "4.13")`."""
    name, bound = text.split(">=")
    return name, bound


def version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


REQUIRED = dict(requirement(text) for text in PYPROJECT["project"]["dependencies"])
EXTRAS = {
    name: bound for extra in PYPROJECT["project"]["optional-dependencies"].values()
    for name, bound in map(requirement, extra)
}
SERVICE = {
    IMPORT_NAMES.get(name, name)
    for extra in ("service", "ray", "telemetry")
    for name, _ in map(requirement, PYPROJECT["project"]["optional-dependencies"][extra])
}
PINS = dict(line.split("==") for line in (ROOT / "pins.txt").read_text().splitlines() if "==" in line)


def sources() -> Iterator[Path]:
    return (file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))


def absolute_imports(source: str) -> set[str]:
    """Top-level names of the modules that a source imports absolutely, lazily or not."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=aliases):
                names |= {alias.name for alias in aliases}
            case ast.ImportFrom(module=str(module), level=0):
                names.add(module)
    return {name.partition(".")[0] for name in names} - {"anyshape"}


def test_every_folder_with_code_is_a_package() -> None:
    assert {file.parent for file in sources()} == set(PACKAGES.values())


def test_every_package_is_installed() -> None:
    setup = PYPROJECT["tool"]["setuptools"]
    assert sorted(setup["packages"]) == sorted(PACKAGES)
    assert {name: ROOT / folder for name, folder in setup["package-dir"].items()} == PACKAGES


@pytest.mark.parametrize("name", PACKAGES)
def test_the_installed_package_is_this_one_and_typed(name: str) -> None:
    module = import_module(name)
    assert module.__file__ is not None
    assert Path(module.__file__).samefile(PACKAGES[name] / "__init__.py")
    assert Path(module.__file__).with_name("py.typed").exists()


def test_every_third_party_import_is_declared() -> None:
    declared = {IMPORT_NAMES.get(name, name) for name in REQUIRED}
    of_the_plugin = {"pytest"}  # which only pytest imports
    of_python = sys.stdlib_module_names | {"annotationlib"}  # since Python 3.14
    for file in sources():
        used = absolute_imports(file.read_text()) - of_python - of_the_plugin
        used -= OF_EXTRAS.get(file, set())
        assert used <= (declared | SERVICE if of_the_service(file) else declared), file


OF_EXTRAS = {
    ROOT / "tracer/values/arrays.py": {"numpy"},
    ROOT / "tracer/values/arrays_of_tensors.py": {"numpy"},
    ROOT / "solver/backends/cvc5_backend.py": {"cvc5"},
}
"""Imported only where these are."""


def test_programs_are_checked_without_numpy() -> None:
    code = (
        "import sys; sys.modules['numpy'] = None\n"
        "from anyshape.typecheck import check\n"
        "import math, torch\n"
        "print(check(lambda x: x.view(math.isqrt(x.shape[0]), -1), 'x: [a]').verdict)\n"
        "print('anyshape.tracer.values.arrays' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["refined", "False"]


def of_the_service(file: Path) -> bool:
    """May it import what the extra `service` brings?"""
    return file.is_relative_to(ROOT / "typecheck/service") or file == ROOT / "typecheck/remote/client.py"


def test_the_package_itself_costs_next_to_nothing() -> None:
    code = "import sys; before = {*sys.modules}; import anyshape; print(*{*sys.modules} - before)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    ours = {name for name in loaded.split() if name.partition(".")[0] not in sys.stdlib_module_names}
    assert ours == {"anyshape"}


def test_the_package_itself_has_every_name() -> None:
    import anyshape
    from anyshape import typecheck

    assert anyshape.__version__ == PYPROJECT["project"]["version"]
    assert {*dir(anyshape)} == {*typecheck.__all__, "__version__", "testing"}
    assert all(getattr(anyshape, name) is getattr(typecheck, name) for name in typecheck.__all__)
    assert {"check", "export", "refine"} <= {*anyshape.__all__}
    with pytest.raises(AttributeError, match="frobnicate"):
        _ = anyshape.frobnicate


@pytest.mark.parametrize("module", ["typecheck", "typecheck.checking.api", "typecheck.cli.main"])
def test_the_service_is_not_imported_by_who_does_not_ask_for_it(module: str) -> None:
    code = f"import sys, anyshape.{module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not SERVICE & {*loaded.split()}


def test_absolute_imports_are_seen_wherever_they_stand() -> None:
    source = "import a.b\nfrom .c import d\ndef f():\n    from e.g import h\n    import i as j, k\n"
    assert absolute_imports(source) == {"a", "e", "i", "k"}


@pytest.mark.parametrize("name", [*REQUIRED, *EXTRAS])
def test_every_dependency_is_pinned_and_explained(name: str) -> None:
    bound = (REQUIRED | EXTRAS)[name]
    assert version(PINS[name]) >= version(bound)
    assert re.search(rf"^\| {re.escape(name)} \|", (ROOT / "docs/dependencies.md").read_text(), re.MULTILINE)
