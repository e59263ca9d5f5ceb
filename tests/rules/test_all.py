"""Laws that every rule keeps, whatever its family."""
from __future__ import annotations

import contextlib
import inspect
from importlib import import_module
from itertools import combinations
from pkgutil import iter_modules

import pytest
import torch
import torch._prims
import torch.nn.functional as F
from absent import NEWER, SINCE

from anyshape.constraints import rules
from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.opnames import ALIASES, ATEN_ONLY, canonical
from anyshape.constraints.rules import FAMILIES, control, default_rules, gradients

with contextlib.suppress(ModuleNotFoundError):  # in 2.12
    import torch.nn.modules.linear_cross_entropy  # registers its operators

NAMESPACES = (torch, torch.Tensor, F, torch.linalg, torch.special, torch.fft, torch.ops.aten)
SPELT_OTHERWISE = {*ALIASES.values(), *ATEN_ONLY.values(), *control.RULES, *gradients.RULES}
"""Canonical names that stand for spellings of torch's, or for parts of its higher-order operators, and are
none themselves.
"""

def without_mathematics(table: Rules) -> list[str]:
    return [op for op, rule in table.items() if not (rule.function.__doc__ or "").strip()]


def without_context(table: Rules) -> list[str]:
    firsts = {op: next(iter(inspect.signature(rule.function).parameters), "") for op, rule in table.items()}
    return [op for op, first in firsts.items() if first != "c"]


def unreachable(table: Rules) -> list[str]:
    return [op for op in table if canonical(op) != op]


def unknown_to_torch(table: Rules) -> list[str]:
    """Neither a name of torch's, nor what some spelling stands for, nor an operator on sizes."""
    known = {op for op in table if _is_there(op)} | SPELT_OTHERWISE | NEWER
    return [op for op in table if op not in known and not op.startswith("sym_")]


def _is_there(op: str) -> bool:
    return any(hasattr(space, op) for space in NAMESPACES) or _is_registered(op)


def _is_registered(op: str) -> bool:
    """Is it an operator of another namespace than ATen's?"""
    namespace, _, name = op.partition("::")
    return hasattr(getattr(torch.ops, namespace), name) if name else False


@pytest.mark.parametrize("op", SINCE)
def test_operators_are_there_since_then(op: str) -> None:
    assert _is_there(op) != (op in NEWER)


LAWS = [without_mathematics, without_context, unreachable, unknown_to_torch]


@pytest.mark.parametrize("law", LAWS)
def test_every_rule_keeps_the_law(law: object) -> None:
    assert callable(law)
    assert law(default_rules) == []


def _bare(context, input):  # type: ignore[no-untyped-def]
    return input


@pytest.mark.parametrize("law", LAWS)
def test_a_rule_that_breaks_the_law_is_caught(law: object) -> None:
    assert callable(law)
    # No docstring, another first parameter, an alias of `abs`; and no name of torch's.
    wrong = "no_such_operator" if law is unknown_to_torch else "absolute"
    assert law(Rules({wrong: _bare})) == [wrong]


def test_aliases_end_at_canonical_names_and_have_no_rules_of_their_own() -> None:
    for alias, op in ALIASES.items():
        assert canonical(op) == op, f"{alias} -> {op} -> {canonical(op)}"
        assert alias not in default_rules, f"calls of {alias} go to {op}, never to its own rule"


def test_no_operator_is_in_two_families() -> None:
    for left, right in combinations(FAMILIES, 2):
        assert not left.keys() & right.keys()
    assert len(default_rules) == sum(map(len, FAMILIES))


def test_every_table_of_the_package_is_a_family() -> None:
    for found in iter_modules(rules.__path__):
        module = import_module(f"{rules.__name__}.{found.name}")
        tables = [table for name, table in vars(module).items() if name in ("RULES", "SIZE_RULES")]
        assert all(any(table is family for family in FAMILIES) for table in tables), found.name


def test_a_rule_is_replaced_only_where_that_is_said() -> None:
    with pytest.raises(ValueError, match="relu"):
        default_rules | {"relu": _bare}
    assert (default_rules + {"relu": _bare})["relu"].function is _bare
    assert default_rules["relu"].function is not _bare
