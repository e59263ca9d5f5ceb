"""Whatever is replaced while programs are checked, exported and edited keeps what patches promise.

All patches and settings that these questions enter are held to the same: applied, as before after an error,
nested in any order, of one thread, and never of two owners.
"""

from __future__ import annotations

import ast
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

import pytest
import torch
import whole_state
from torch import nn
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from anyshape import tracer
from anyshape.tracer.host.patches import Patch, PatchRefused, Setting, together
from anyshape.typecheck import ExportError, TargetError, check, export
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


def asked_of_torch() -> None:
    env = ShapeEnv()
    size = env.create_unbacked_symint()
    torch._check(size >= 2)
    with oracle():
        bool(size * 2 > 3)


QUESTIONS: Final[tuple[Callable[[], object], ...]] = (
    lambda: check(Chosen(), "x: [n, 3]", repairs=True),
    lambda: check(Chosen(), "x: [n, 4]", repairs=True),
    lambda: check(half, "x: [n, 3]", repairs=True),
    lambda: export(nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5)), "input: [n, 3]"),
    lambda: export(half, "x: [2*n, 3]"),
    asked_of_torch,
)


@pytest.fixture(scope="module")
def found() -> tuple[Patch | Setting, ...]:
    """One of each place that the questions replace."""
    places: dict[Any, Patch | Setting] = {}
    plain = together.__init__

    def noting(self: together, patches: Any) -> None:
        patches = tuple(patches)
        places.update((patch.key, patch) for patch in patches)
        plain(self, patches)

    with pytest.MonkeyPatch.context() as patching:
        patching.setattr(together, "__init__", noting)
        for question in QUESTIONS:
            with suppress(TargetError, ExportError):
                question()
    return tuple(places.values())


def test_there_are_patches_of_each_kind(found: tuple[Patch | Setting, ...]) -> None:
    names = {name_of(patch) for patch in found}
    assert names >= {
        "__call__", "__getitem__", "vmap", "has_torch_function", "range", "sqrt", "__code__",
        "_maybe_evaluate_static",
    }  # fmt: skip
    assert len(found) > 50


def name_of(patch: Patch | Setting) -> Any:
    return patch.attribute if isinstance(patch, Patch) else patch.name


def members(patch: Patch | Setting) -> Any:
    """What the owner itself has in the place."""
    owner, name = patch.owner, name_of(patch)
    if isinstance(owner, dict):
        return [*owner], owner.get(name)
    return getattr(owner, name, None) if name == "__code__" else (name in vars(owner), vars(owner).get(name))


def now(patch: Patch | Setting) -> Any:
    """What this thread gets there: the value, or the function that a call goes to."""
    if isinstance(patch, Setting):
        return patch.owner[patch.name] if isinstance(patch.owner, dict) else getattr(patch.owner, patch.name)
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
        assert now(patch) is patch.value if isinstance(patch, Setting) else True
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
            assert now(patch) is patch.value


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


# ---- nothing is replaced otherwise

ROOT: Final = Path(tracer.__path__[0]).resolve().parent
KEPT: Final = {
    "tracer/summaries/cells.py": "a program's own attributes, as it writes them",
    "tracer/recording/held.py": "a program's own attributes, put back",
    "tracer/host/surroundings.py": "settings, put back",
    "tracer/values/sequences.py": "methods of a class of its own, once",
    "tracer/values/texts.py": "methods of a class of its own, once",
    "tracer/patches/edits.py": "modules that are built anew, before anybody has them",
    "tracer/readers/fx.py": "a module of its own",
    "tracer/values/numbers.py": "a class of its own",
    "tracer/host/patches.py": "the place for it",
    "typecheck/__init__.py": "names that are imported when they are needed",
    "typecheck/exporting/scans/loop_bodies.py": "a syntax tree of its own",
    "typecheck/checking/target.py": "the module of a file, which is imported",
    "constraints/terms/formula.py": "a field of a frozen object, as it is made",
    "solver/theory/bounds.py": "a copy of its own",
}  # fmt: skip
"""The files that write attributes of what they have not made, and why."""
_OUTER: Final = {"torch", "builtins", "math", "sys", "warnings", "np", "numpy", "nn", "F", "sympy"}
_BY_NAME: Final = {"setattr", "delattr", "__setattr__", "__delattr__"}


def replacing(text: str) -> Iterator[int]:
    """The lines that write attributes by name, or attributes of modules and classes."""
    for node in ast.walk(ast.parse(text)):
        targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else []
        for target in targets:
            for one in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(one, ast.Attribute) and _is_outer(one.value, one.attr):
                    yield node.lineno
                if isinstance(one, ast.Subscript) and _is_names(one.value):
                    yield node.lineno
        if isinstance(node, ast.Call) and _called(node.func) in _BY_NAME:
            yield node.lineno


def _is_outer(value: ast.expr, attribute: str) -> bool:
    root = value
    while isinstance(root, ast.Attribute):
        root = root.value
    named = root.id if isinstance(root, ast.Name) else ""
    return named in _OUTER or named[:1].isupper() or attribute in ("__code__", "__call__", "vmap")


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
     "Owner.method = f", "del m.__dict__[n]"],
)  # fmt: skip
def test_a_replacement_is_seen(text: str) -> None:
    assert [*replacing(text)] == [1]
    assert [*replacing("self.value = 1; x = vars(m)[n]; node.meta = {}; getattr(m, n)")] == []
