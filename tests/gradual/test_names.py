"""The page on coming from torch has every public name of torch's packages for gradual types."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType

import pytest

PAGE = (Path(__file__).parent.parent.parent / "docs/migrating-from-torch.md").read_text()
FX = "torch.fx"
PACKAGES = ("migrate_gradual_types", "unification")
MODULES = "graph_gradual_typechecker unify_refinements refinement_types rewriter normalize"
IGNORED = {"TYPE_CHECKING", "Ts"}  # Ts is a type variable, `_Ts` since torch 2.13


def modules() -> Iterator[str]:
    """torch's modules for gradual types, those within packages as well."""
    yield from (f"{FX}.tensor_type", f"{FX}.annotate")
    yield from (f"{FX}.experimental.{name}" for name in MODULES.split())
    for name in PACKAGES:
        package = import_module(f"{FX}.experimental.{name}")
        yield package.__name__
        yield from (m.name for m in walk_packages(package.__path__, f"{package.__name__}."))


FOUND = tuple(modules())


def public(name: str) -> Iterator[str]:
    """What a module has under a public name that it, or another of these modules, defines."""
    module = import_module(name)
    for attribute in dir(module):
        value = getattr(module, attribute)
        home = "" if isinstance(value, ModuleType) else getattr(value, "__module__", None) or name
        if not attribute.startswith("_") and attribute not in IGNORED and home in FOUND:
            yield attribute


def missing(module: str, page: str) -> set[str]:
    return {*public(module)} - {*re.findall(r"`(\w+)`", page)}


@pytest.mark.parametrize("module", FOUND)
def test_every_public_name_is_on_the_page(module: str) -> None:
    assert not missing(module, PAGE)


def test_the_modules_are_found() -> None:
    assert len(FOUND) > 20 and f"{FX}.experimental.unification.multipledispatch.core" in FOUND
    assert {"TensorType", "is_consistent"} <= {*public(f"{FX}.tensor_type")}


def test_a_name_that_is_left_out_is_noticed() -> None:
    assert missing(f"{FX}.tensor_type", PAGE.replace("`is_more_precise`", "")) == {"is_more_precise"}
