"""The suite for packages of rules: a right rule passes, and each wrong one is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from anyshape.constraints.ir.language import Context, Tensor
from anyshape.constraints.terms.formula import divides, eq
from anyshape.testing import Case, Disagreement, T, conformance


@torch.library.custom_op("conforming::pool", mutates_args=())
def pool(x: torch.Tensor, width: int = 2) -> torch.Tensor:
    if width < 1:
        raise ValueError("the width must be positive")
    return x.unflatten(-1, (-1, width)).sum(-1)


@torch.library.custom_op("conforming::joined", mutates_args=())
def joined(x: torch.Tensor, y: torch.Tensor | None = None, twice: bool = False) -> torch.Tensor:
    if y is None:
        return x.clone(memory_format=torch.contiguous_format)
    if x.shape != y.shape:
        raise RuntimeError("shapes must agree")
    return torch.stack([x, y, x, y] if twice else [x, y])


@torch.library.custom_op("conforming::named", mutates_args=())
def named(x: torch.Tensor, how: str) -> torch.Tensor:
    return x.clone(memory_format=torch.contiguous_format) if how == "same" else x.new_zeros([])


def pool_rule(c: Context, x: Tensor, width: int = 2) -> Tensor:
    """[*batch, n] -> [*batch, n/width] where width divides n"""
    if width < 1:
        c.refuse("the width must be positive", ValueError)
    if not x.shape:
        c.refuse("a scalar has no last size", IndexError)
    *batch, n = x.shape
    c.require(divides(width, n), f"{width} must divide {n}")
    return Tensor((*batch, n // width), x.dtype)


def joined_rule(c: Context, x: Tensor, y: Tensor | None = None, twice: bool = False) -> Tensor:
    """[*s] and [*s] -> [2 or 4, *s]"""
    if y is None:
        return Tensor(x.shape, x.dtype)
    if len(x.shape) != len(y.shape):
        c.refuse("ranks must agree")
    for one, other in zip(x.shape, y.shape, strict=True):
        c.require(eq(one, other), f"{one} and {other} must agree")
    return Tensor((4 if twice else 2, *x.shape), x.dtype)


def named_rule(c: Context, x: Tensor, how: str) -> Tensor:
    """[*s] -> [*s] or []"""
    return Tensor(x.shape if how == "same" else (), x.dtype)


def test_right_rules_conform() -> None:
    found = conformance({"conforming::pool": pool_rule, "conforming::joined": joined_rule})
    assert [one.operator for one in found] == ["conforming::pool", "conforming::joined"]
    assert all(one.accepted > 100 and one.refused > 100 for one in found)


def changed(**parts: Any) -> Callable[..., Tensor]:
    """The rule of `pool` with something wrong in it."""

    def rule(c: Context, x: Tensor, width: int = 2) -> Tensor:
        if width < 1 and "width" not in parts:
            c.refuse("the width must be positive", parts.get("error", ValueError))
        if not x.shape:
            c.refuse("a scalar has no last size", IndexError)
        *batch, n = x.shape
        if "requires" not in parts:
            c.require(divides(width, n), "must divide")
        if "more" in parts:
            c.require(eq(x.shape[0], parts["more"]), "something else")
        shape = (*batch, n) if "sizes" in parts else (*batch, n // width)
        return Tensor(shape[1:] if "rank" in parts else shape, parts.get("dtype", x.dtype))

    return rule


@pytest.mark.parametrize("parts, part", [
    ({"requires": None}, "rule accepts, torch: "), ({"more": 4}, "torch: accepts"),
    ({"sizes": None}, "rule says ("), ({"rank": None}, "rule says ("), ({"dtype": "int64"}, "torch float32"),
    ({"error": RuntimeError}, "rule raises RuntimeError"),
])  # fmt: skip
def test_a_wrong_rule_is_found(parts: dict[str, Any], part: str) -> None:
    with pytest.raises(Disagreement, match=r"^conforming::pool: ") as caught:
        conformance({"conforming::pool": changed(**parts)})
    assert part in str(caught.value)


def test_every_wrong_rule_of_a_table_is_told() -> None:
    table = {"conforming::pool": changed(rank=None), "conforming::joined": pool_rule}
    with pytest.raises(Disagreement, match=r"(?s)^conforming::pool: .*\nconforming::joined: "):
        conformance(table)


def test_the_rule_that_is_changed_is_right_before() -> None:
    assert conformance({"conforming::pool": changed()})


def test_a_rule_that_raises_is_found() -> None:
    with pytest.raises(Disagreement, match="no_such_attribute"):
        conformance({"conforming::pool": lambda c, x, width=2: x.no_such_attribute})


def test_cases_say_what_a_schema_does_not() -> None:
    with pytest.raises(Disagreement, match="pass cases"):
        conformance({"conforming::named": named_rule})
    cases = [Case("conforming::named", named, (T("a b"), how)) for how in ("same", "none")]
    (found,) = conformance({"conforming::named": named_rule}, cases)
    assert found.accepted and not found.refused
    with pytest.raises(Disagreement, match="named"):
        conformance({"conforming::named": lambda c, x, how: Tensor(x.shape, x.dtype)}, cases)
    with pytest.raises(ValueError, match="no rule"):
        conformance({}, cases)


def test_an_operator_that_is_not_there_is_told() -> None:
    with pytest.raises(Disagreement, match="torch knows no operator"):
        conformance({"conforming::nowhere": pool_rule})
