"""The page on coming from torch has every public name of torch's packages for gradual types."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

PAGE = (Path(__file__).parent.parent.parent / "docs/migrating-from-torch.md").read_text()
FX = Path(torch.__file__).parent / "fx"
MIGRATE = "constraint constraint_generator constraint_transformation operation transform_to_z3 util z3_types"
UNIFICATION = "core dispatch match more unification_tools utils variable"
OTHERS = "graph_gradual_typechecker unify_refinements refinement_types rewriter normalize"
MODULES = [
    "tensor_type",
    "annotate",
    *(f"experimental/{name}" for name in OTHERS.split()),
    *(f"experimental/migrate_gradual_types/{name}" for name in MIGRATE.split()),
    *(f"experimental/unification/{name}" for name in UNIFICATION.split()),
]


def defined(body: list[ast.stmt]) -> Iterator[str]:
    """The names that a module defines, in branches as well."""
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            yield statement.name
        elif isinstance(statement, ast.Assign):
            yield from (target.id for target in statement.targets if isinstance(target, ast.Name))
        elif isinstance(statement, ast.Try | ast.If):
            yield from defined(statement.body)


def missing(module: str, page: str) -> set[str]:
    names = {n for n in defined(ast.parse((FX / f"{module}.py").read_text()).body) if not n.startswith("_")}
    return names - {*re.findall(r"`(\w+)`", page)}


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_on_the_page(module: str) -> None:
    assert not missing(module, PAGE)


def test_a_name_that_is_left_out_is_noticed() -> None:
    assert missing("tensor_type", PAGE.replace("`is_more_precise`", "")) == {"is_more_precise"}
