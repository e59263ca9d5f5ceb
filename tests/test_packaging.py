"""The repository and what installs from it agree."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

import pytest

from anyshape.typecheck.targets import extras

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
    "python-multipart": "python_multipart", "psycopg-binary": "psycopg",
    **{f"opentelemetry-{part}": "opentelemetry" for part in OPENTELEMETRY},
}  # fmt: skip


def requirement(text: str) -> tuple[str, str]:
    """`z3-solver>=4.13` -> `("z3-solver", "4.13")`."""
    name, bound = text.split(">=")
    return name, bound


def version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("."))


def imported(*extras: str) -> set[str]:
    """Returns the names under which the packages of these extras are imported."""
    listed = [text for extra in extras for text in PYPROJECT["project"]["optional-dependencies"][extra]]
    return {IMPORT_NAMES.get(name, name) for name, _ in map(requirement, listed)}


REQUIRED = dict(requirement(text) for text in PYPROJECT["project"]["dependencies"])
EXTRAS = {
    name: bound for extra in PYPROJECT["project"]["optional-dependencies"].values()
    for name, bound in map(requirement, extra)
}
SERVICE = imported("client", "service", "postgresql", "ray", "telemetry")
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
    declared = {IMPORT_NAMES.get(name, name) for name in REQUIRED} | imported("torch") - {"numpy"}
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
    """Returns whether the file may import what the extras of the service and of its client bring."""
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


@pytest.mark.parametrize("package", extras.EXTRAS)
def test_a_missing_package_is_reported_with_an_extra_that_brings_it(package: str) -> None:
    assert package in imported(extras.EXTRAS[package])
    (hint,) = {extras.MissingPackage(package).hint, extras.hint_for(package)}
    assert hint.endswith(f"anyshape[{extras.EXTRAS[package]}]")


def test_extras_that_the_code_asks_for_are_reported() -> None:
    asked = imported("torch", "client", "service", "postgresql", "ray", "telemetry", "cvc5")
    assert asked - {"numpy", "psycopg_binary"} == set(extras.EXTRAS)


def without(package: str, arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command of anyshape as if the package were not installed."""
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from anyshape.typecheck.cli.main import main\n"
        f"sys.exit(main({[*arguments]}))"
    )
    environment = os.environ | {"ANYSHAPE_CACHE_DIR": str(folder / f"cache without {package}")}
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=folder, env=environment,
        check=False, timeout=100,
    )  # fmt: skip


SAVED = str(ROOT / "tests/tracer/fixtures/sizes.pt2")


@pytest.mark.parametrize(("command", "code"), {
    "check": 0, "check --format html": 0, "check --format sarif": 0, "check --dump smt2": 0,
    "refine": 1, "migrate": 0, "branches": 0,
}.items())
def test_a_saved_program_is_checked_without_torch(command: str, code: int, tmp_path: Path) -> None:
    name, *options = command.split()
    done, usual = (
        without(package, (name, SAVED, *options), tmp_path) for package in ("torch", "no_package")
    )
    assert (done.returncode, done.stderr) == (code, "")
    assert re.sub(r"[\d.]+ s:.*", "", done.stdout) == re.sub(r"[\d.]+ s:.*", "", usual.stdout)


NEEDS_TORCH = "anyshape: torch is not installed; programs in Python need it, saved .pt2 files do not\n"


@pytest.mark.parametrize("command", ["check", "refine", "branches", "migrate", "export -o f.pt2"])
def test_a_program_in_python_without_torch_is_told_what_to_install(command: str, tmp_path: Path) -> None:
    (tmp_path / "f.py").write_text("def f(x):\n    return x.view(-1, 2)\n")
    done = without("torch", [*command.split(), "f.py:f", "-i", "x: [b]"], tmp_path)
    assert done.returncode == 2 and done.stderr.startswith(NEEDS_TORCH), done.stderr
    assert "anyshape[torch]" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(("package", "command"), {
    "httpx": f"submit {SAVED}", "fastapi": "serve --port 0", "pydantic_settings": "serve",
    "cvc5": f"check {SAVED} --second-solver cvc5", "torch": "check g.py:f",
}.items())  # fmt: skip
def test_a_command_without_its_packages_says_what_to_install(
    package: str, command: str, tmp_path: Path
) -> None:
    (tmp_path / "g.py").write_text("import torch\n")
    done = without(package, command.split(), tmp_path)
    assert done.returncode == 2 and extras.hint_for(package) in " ".join(done.stderr.split()), done.stderr


def test_a_name_that_needs_torch_is_not_there_without_it(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "import anyshape\n"
        "for use in (lambda: anyshape.export, lambda: anyshape.check(lambda x: x, 'x: [b]')):\n"
        "    try: use()\n"
        "    except ImportError as error: print(isinstance(error, anyshape.TargetError), error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["True", "True"]
    assert done.stdout.count("anyshape[torch]") == 2


@pytest.mark.slow  # pip fetches the back end of the build
def test_the_package_builds_without_warnings(tmp_path: Path) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "-z"], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.split("\0")[:-1]
    for name in tracked:
        (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / "source" / name)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-m", "build", "--outdir", tmp_path / "dist", tmp_path / "source"],
        capture_output=True, text=True, check=True, env=environment,
    )  # fmt: skip
    told = [line for line in (done.stdout + done.stderr).splitlines() if "warning" in line.lower()]
    assert [line for line in told if "Location" not in line] == []  # of pip, about where it looks
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    held = {name.removeprefix("anyshape/") for name in zipfile.ZipFile(wheel).namelist()}
    data = {"typecheck/render/page/page.js", "typecheck/findings.md", "constraints/engine/kernels.json"}
    assert data <= held
