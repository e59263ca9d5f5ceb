"""Whatever is replaced while programs are checked, exported and edited keeps what patches promise.

All patches and settings that these questions enter are held to the same: applied, as before after an error,
nested in any order, of one thread, and never of two owners.
"""

from __future__ import annotations

import ast
import json
import threading
from collections.abc import Callable, Iterator, Set
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Annotated, Any, Final

import host_releases
import pytest
import torch
import whole_state
from torch import nn
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from anyshape import tracer
from anyshape.tracer.host.patches import Patch, PatchRefused, Setting, together
from anyshape.tracer.recording import record as recorder
from anyshape.typecheck import ExportError, TargetError, check, eliminate, export
from anyshape.typecheck.feedback import oracle

# ---- what is replaced


class Chosen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.by_place = nn.ModuleList([nn.Linear(3, 4), nn.Linear(3, 4)])
        self.norm = nn.BatchNorm1d(5)
        self.gru = nn.GRU(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = [self.by_place[len(range(n))](x) for n in (0, 1)]
        mapped: torch.Tensor = torch.func.vmap(lambda row: row * 2)(rows[0])
        return self.norm(self.gru((mapped + rows[1])[None])[0][0])


def half(x: torch.Tensor) -> torch.Tensor:
    n = 0
    for _ in range(x.shape[0]):
        n += 1
    return x.reshape(n // 2, 2, -1)


def annotated(x: Annotated[torch.Tensor, "n 3"]) -> Annotated[torch.Tensor, "n 3"]:
    return x + 1


def asked_of_torch() -> None:
    env = ShapeEnv()
    size = env.create_unbacked_symint()
    torch._check(size >= 2)
    with oracle():
        bool(size * 2 > 3)


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.steps = nn.ModuleList([Step(number) for number in (2, 3)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for step in self.steps:
            x = step(x)
        return x


class Step(nn.Module):
    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[0] % self.number else x + 1


def ways_merged() -> None:
    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(recorder, "MANY_PATHS", 1)
        check(Branches(), "x: [n, 3]")


QUESTIONS: Final[tuple[Callable[[], object], ...]] = (
    lambda: check(Chosen(), "x: [n, 3]", repairs=True),
    lambda: check(Chosen(), "x: [n, 4]", repairs=True),
    lambda: check(half, "x: [n, 3]", repairs=True),
    lambda: export(nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5)), "input: [n, 3]"),
    lambda: export(half, "x: [2*n, 3]"),
    lambda: check(annotated),
    asked_of_torch,
    ways_merged,
    lambda: eliminate(half, "x: [2*n, 3]"),
)


def single(patch: Patch | Setting) -> Iterator[Patch | Setting]:
    """The patch, or a setting for each value."""
    if isinstance(patch, Patch):
        yield patch
    else:
        yield from (Setting(patch.owner, {n: v}, patch.reason) for n, v in patch.values.items())


@pytest.fixture(scope="module")
def entered() -> tuple[Patch | Setting, ...]:
    """All that the questions replace."""
    noted: list[Patch | Setting] = []
    plain = together.__init__

    def noting(self: together, patches: Any) -> None:
        patches = tuple(patches)
        noted.extend(one for patch in patches for one in single(patch))
        plain(self, patches)

    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(together, "__init__", noting)
        for question in QUESTIONS:
            with suppress(TargetError, ExportError):
                question()
    return tuple(noted)


@pytest.fixture(scope="module")
def found(entered: tuple[Patch | Setting, ...]) -> tuple[Patch | Setting, ...]:
    """One of each place."""
    return tuple({(patch.key, name_of(patch)): patch for patch in entered}.values())


def test_there_are_patches_of_each_kind(found: tuple[Patch | Setting, ...]) -> None:
    names = {name_of(patch) for patch in found}
    assert names >= {
        "__call__", "__getitem__", "vmap", "has_torch_function", "range", "sqrt", "__code__",
        "_maybe_evaluate_static",
    }  # fmt: skip
    assert len(found) > 50


def name_of(patch: Patch | Setting) -> Any:
    return patch.attribute if isinstance(patch, Patch) else next(iter(patch.values))


def members(patch: Patch | Setting) -> Any:
    """What the owner itself has in the place."""
    owner, name = patch.owner, name_of(patch)
    if isinstance(owner, dict):
        return [*owner], owner.get(name)
    return getattr(owner, name, None) if name == "__code__" else (name in vars(owner), vars(owner).get(name))


def now(patch: Patch | Setting) -> Any:
    """What this thread gets there: the value, or the function that a call goes to."""
    if isinstance(patch, Setting):
        owner, name = patch.owner, name_of(patch)
        return owner[name] if isinstance(owner, dict) else getattr(owner, name)
    seen: list[Any] = []

    def make(plain: Any) -> Any:
        seen.append(plain)
        return plain

    with Patch(patch.owner, patch.attribute, make, "a look").in_force():
        return seen[0]


def in_another_thread(call: Callable[[], Any]) -> Any:
    told: list[Any] = []

    def run() -> None:
        try:
            told.append(call())
        except PatchRefused as refused:
            told.append(refused)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return told[0]


def applied(patch: Patch | Setting) -> None:
    with patch.in_force():
        assert now(patch) is patch.values[name_of(patch)] if isinstance(patch, Setting) else True
        inside = now(patch)
    assert isinstance(patch, Setting) or inside is not now(patch)


def as_before_after_an_error(patch: Patch | Setting) -> None:
    for error in (KeyError, KeyboardInterrupt, SystemExit):
        with suppress(error), patch.in_force():
            raise error


def nested_in_any_order(patch: Patch | Setting) -> None:
    for first, second in ((0, 1), (1, 0)):
        stacks = [ExitStack(), ExitStack()]
        for stack in stacks:
            stack.enter_context(patch.in_force())
        inside = members(patch)
        stacks[first].close()
        assert members(patch) == inside
        stacks[second].close()


def of_one_thread(patch: Patch | Setting) -> None:
    plain = now(patch) if isinstance(patch, Patch) else None
    with patch.in_force():
        if isinstance(patch, Patch):
            assert in_another_thread(lambda: now(patch)) is plain
        else:
            refused = in_another_thread(lambda: patch.in_force().__enter__())
            assert isinstance(refused, PatchRefused) and patch.reason in str(refused)
            assert now(patch) is patch.values[name_of(patch)]


@pytest.mark.parametrize(
    "holds", [applied, as_before_after_an_error, nested_in_any_order, of_one_thread], ids=lambda f: f.__name__
)
def test_every_patch(holds: Callable[[Patch | Setting], None], found: tuple[Patch | Setting, ...]) -> None:
    for patch in found:
        before = members(patch)
        holds(patch)
        assert members(patch) == before, patch


def test_every_place_is_looked_at_afterwards(found: tuple[Patch | Setting, ...]) -> None:
    """Where torch and Python are patched, `whole_state` compares."""
    owners = {patch.owner for patch in found if isinstance(patch.owner, type | type(torch))}
    homes = {owner: getattr(owner, "__module__", owner.__name__).partition(".")[0] for owner in owners}
    places = {owner for owner, home in homes.items() if home in ("torch", "sympy", "numpy", "math")}
    assert len(places) > 8
    assert sorted(map(str, places - {*whole_state.PATCHED})) == []


# ---- what was read of torch


def test_replaced_functions_of_torch_have_been_read(entered: tuple[Patch | Setting, ...]) -> None:
    """`sources.json` lists them, and has the hash of each in the installed release: `make host-diff`."""
    whys: dict[str, set[str]] = {}
    for patch in entered:
        if place := host_releases.place_of(plain_of(patch)):
            whys.setdefault(place, set()).add(patch.reason)
    listed = json.loads(host_releases.SOURCES.read_text(encoding="utf-8"))
    release = host_releases.release_of(torch.__version__)
    text = {place: host_releases.text_of(host_releases.INSTALLED, place) or "" for place in listed}
    # Others are not there in this release, or written in C.
    here = {place: known for place, known in listed.items() if "def " in text[place]}
    assert sorted(here) == sorted(whys)
    assert [place for place, known in here.items() if known["why"] not in whys[place]] == []
    assert host_releases.read(host_releases.INSTALLED, release, listed) == listed


def plain_of(patch: Patch | Setting) -> Any:
    owner, name = patch.owner, name_of(patch)
    return owner.get(name) if isinstance(owner, dict) else getattr(owner, name, None)


def test_a_function_that_is_another_is_to_be_read(tmp_path: Path) -> None:
    place = "torch/_ops.py:HigherOrderOperator.__call__"
    text = (host_releases.INSTALLED / "torch/_ops.py").read_text(encoding="utf-8")
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "_ops.py").write_text(text, encoding="utf-8")
    listed = json.loads(host_releases.SOURCES.read_text(encoding="utf-8"))
    known = {place: listed[place]}
    assert [*host_releases.unread(tmp_path, known)] == []
    (told,) = host_releases.unread(tmp_path, known | {place: {"why": "…", "read": {}}})
    assert told.startswith(f"to read: {place}")
    (told,) = host_releases.unread(tmp_path, {"torch/nowhere.py:f": known[place]})
    assert told.startswith("gone: torch/nowhere.py:f")


def reasons(tree: ast.Module) -> Iterator[str]:
    """The reasons of patches and settings, where they are written down or have a name in the file."""
    names: dict[str, ast.expr] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            names[ast.unparse(target)] = node.value
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _called(node.func) in ("Patch", "Setting"):
            reason = node.args[-1]
            yield ast.literal_eval(names.get(ast.unparse(reason), reason))


def test_every_patch_of_the_package_is_among_them(entered: tuple[Patch | Setting, ...]) -> None:
    files = (file for folder in ("tracer", "typecheck") for file in (ROOT / folder).rglob("*.py"))
    written = {r for f in files if f.parent.name != "host" for r in reasons(ast.parse(f.read_text("utf-8")))}
    assert written == {patch.reason for patch in entered}


# ---- nothing is replaced otherwise

ROOT: Final = Path(tracer.__path__[0]).resolve().parent
KEPT: Final = {
    "tracer/summaries/cells.py": "a program's own attributes, as it writes them",
    "tracer/recording/held.py": "a program's own attributes, put back",
    "tracer/host/surroundings.py": "settings, put back",
    "tracer/values/sequences.py": "methods of a class of its own, once",
    "tracer/values/symbolic.py": "a program's own attributes, as it writes them",
    "tracer/values/texts.py": "methods of a class of its own, once",
    "tracer/patches/edits.py": "modules that are built anew, before anybody has them",
    "tracer/readers/fx.py": "a module of its own",
    "tracer/values/numbers.py": "a class of its own",
    "tracer/host/patches.py": "the place for it",
    "typecheck/__init__.py": "names that are imported when they are needed",
    "typecheck/anyshape/__init__.py": "names that are imported when they are needed",
    "typecheck/exporting/scans/loop_bodies.py": "a syntax tree of its own",
    "typecheck/targets/importing.py": "the module of a file, which is imported",
    "constraints/terms/formula.py": "a field of a frozen object, as it is made",
    "solver/theory/bounds.py": "a copy of its own",
}  # fmt: skip
"""The files that write attributes of what they have not made, and why."""
_OUTER: Final = {"torch", "builtins", "math", "sys", "warnings", "np", "numpy", "nn", "F", "sympy"}
_BY_NAME: Final = {"setattr", "delattr", "__setattr__", "__delattr__"}


def replacing(text: str) -> Iterator[int]:
    """The lines that write attributes by name, or attributes of modules, classes and imported objects."""
    tree = ast.parse(text)
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    outer = _OUTER.union(alias.asname or alias.name for node in imports for alias in node.names)
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else []
        for target in targets:
            for one in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(one, ast.Attribute) and _is_outer(one.value, one.attr, outer):
                    yield node.lineno
                if isinstance(one, ast.Subscript) and _is_names(one.value):
                    yield node.lineno
        if isinstance(node, ast.Call) and _called(node.func) in _BY_NAME:
            yield node.lineno


def _is_outer(value: ast.expr, attribute: str, outer: Set[str]) -> bool:
    root = value
    while isinstance(root, ast.Attribute):
        root = root.value
    named = root.id if isinstance(root, ast.Name) else ""
    return named in outer or named[:1].isupper() or attribute in ("__code__", "__call__", "vmap")


def _is_names(value: ast.expr) -> bool:
    """`vars(module)`, `globals()`, `module.__dict__`, `sys.modules`."""
    if isinstance(value, ast.Call):
        return _called(value.func) in ("vars", "globals")
    return isinstance(value, ast.Attribute) and value.attr in ("__dict__", "modules", "__globals__")


def _called(function: ast.expr) -> str:
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def test_attributes_are_replaced_by_patches_alone() -> None:
    lines = {
        str(file.relative_to(ROOT)): [*replacing(file.read_text(encoding="utf-8"))]
        for folder in ("constraints", "solver", "tracer", "typecheck")
        for file in sorted((ROOT / folder).rglob("*.py"))
    }
    assert {file: at for file, at in lines.items() if at and file not in KEPT} == {}
    assert [file for file in KEPT if not lines[file]] == []


@pytest.mark.parametrize(
    "text",
    ["torch.relu = f", "nn.Module.__call__, x = f, g", "setattr(m, n, f)", "f.__code__ = c", "vars(m)[n] = f",
     "Owner.method = f", "del m.__dict__[n]", "def f():\n from torch.x import y; y.z = f"],
)  # fmt: skip
def test_a_replacement_is_seen(text: str) -> None:
    assert [*replacing(text)] == [1 + text.count("\n")]
    assert [*replacing("self.value = 1; x = vars(m)[n]; node.meta = {}; getattr(m, n)")] == []
