"""Every call that torch's own schemas allow binds to a rule. Graphs name arguments as ATen does."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from anyshape.constraints.generate import BadCall, Rules
from anyshape.constraints.opnames import canonical
from anyshape.constraints.rules import elementwise, loss, norm, reduction

rules = Rules(elementwise.RULES) | reduction.RULES | norm.RULES | loss.RULES
NOT_TENSORS = frozenset(
    "copy.Dict_Tensor copy_.Tensor copy_.int copy_.float eq.Tensor_list ne.Tensor_list sort.Tensor".split()
)
"""Overloads of TorchScript for lists and dictionaries."""


def rule_of(name: str) -> str | None:
    """The rule that a canonical name goes to."""
    return next((n for n in (name, name.removesuffix("_")) if n in rules), None)


def overloads() -> Iterator[tuple[str, Any]]:
    """ATen's overloads that have a rule, but for named dimensions and results that are given."""
    for schema in torch._C._jit_get_all_schemas():
        op = schema.name.removeprefix("aten::")
        name = f"{op}.{schema.overload_name}"
        if op == schema.name or name in NOT_TENSORS or "name" in schema.overload_name:
            continue
        if any(a.is_out for a in schema.arguments):
            continue
        of_tensors = any("Tensor" in a.type.str() for a in schema.arguments)
        if of_tensors and rule_of(canonical(f"aten.{name}")) is not None:
            yield name, schema


OVERLOADS = dict(overloads())


class Anything(tuple[Any, ...]):
    """A value that a rule's signature takes anywhere."""


@pytest.mark.parametrize("name", sorted(OVERLOADS))
def test_aten_overloads_bind(name: str) -> None:
    """By name, with and without defaults, and by position."""
    rule = rules[rule_of(canonical(f"aten.{name}")) or ""]
    arguments = OVERLOADS[name].arguments
    rule.bind((), {a.name: Anything() for a in arguments})
    rule.bind((), {a.name: Anything() for a in arguments if not a.has_default_value()})
    rule.bind(tuple(Anything() for a in arguments if not a.kwarg_only), {})


FUNCTIONS = sorted(n for n in rules if inspect.isfunction(getattr(F, n, None)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functional_forms_bind(name: str) -> None:
    parameters = inspect.signature(getattr(F, name)).parameters.values()
    rules[name].bind((), {p.name: Anything() for p in parameters})
    rules[name].bind((), {p.name: Anything() for p in parameters if p.default is p.empty})
    rules[name].bind(tuple(Anything() for p in parameters if p.kind is not p.KEYWORD_ONLY), {})


def test_schemas_are_found() -> None:
    assert len(OVERLOADS) > 500
    assert len(FUNCTIONS) > 40


def test_an_unknown_name_is_noticed() -> None:
    """The oracle can fail."""
    with pytest.raises(BadCall):
        rules["softmax"].bind((), {"input": Anything(), "dimension": 0})
