"""Calls that repeat are answered from memory: as they would be without."""

from __future__ import annotations

from itertools import count

import pytest

from anyshape.constraints.engine import generate as module
from anyshape.constraints.engine.generate import Generator, generate
from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Context, Generated, Number, Slice, Tensor, Value
from anyshape.constraints.ir.system import Domain
from anyshape.constraints.rules import default_rules
from anyshape.constraints.terms.dims import sym
from anyshape.constraints.terms.formula import divides, ge
from benchmarks.programs import MAKERS

H = sym("h")
DOMAIN = Domain(("h",), (ge(H, 1),))


def calling(rules: Rules = default_rules) -> Generator:
    return Generator(rules, DOMAIN)


@pytest.mark.parametrize("maker", MAKERS)
def test_a_program_means_the_same_without_memory(maker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def said() -> Generated:
        return generate(*_with_rules(maker))

    remembered = said()
    fresh = count()
    monkeypatch.setattr(module, "exactly", lambda value: next(fresh))
    assert said() == remembered


def _with_rules(maker: str) -> tuple[object, Rules, Domain]:
    program, domain = MAKERS[maker](60)
    return program, default_rules, domain


def test_a_repeated_call_is_not_asked_again() -> None:
    asked = []

    def rule(c: Context, input: Tensor) -> Tensor:
        """[*d] -> [*d]"""
        asked.append(input)
        return input

    generator = calling(Rules({"same": rule}))
    x = Tensor((H, 4))
    _, first = generator.call("same", (x,), {})
    _, second = generator.call("same", (Tensor((H, 4)),), {})
    assert first == second == x and len(asked) == 1
    assert second is not x and second is not first, "values are told apart by identity"


def test_numbers_that_are_equal_are_not_the_same_argument() -> None:
    generator = calling()
    integers = Tensor((4,), "int64")
    results = [generator.call("add", (integers, number), {})[1] for number in (1, 1.0, True, 1)]
    assert [r.dtype for r in results if isinstance(r, Tensor)] == ["int64", "float32", "int64", "int64"]
    (a, b, c) = (generator.call("full", ((2,), number), {})[1] for number in (1, 1.0, True))
    assert len({a.dtype, b.dtype, c.dtype}) == 3  # type: ignore[union-attr]


def test_slices_count_by_their_parts() -> None:
    generator = calling()
    x = Tensor((8,))
    shapes = [generator.call("getitem", (x, Slice(0, n)), {})[1].shape for n in (2, 3, 2)]  # type: ignore[union-attr]
    assert shapes == [(2,), (3,), (2,)]


def test_what_is_required_is_required_of_every_call() -> None:
    def rule(c: Context, input: Tensor) -> Tensor:
        """[h] -> [h//2] where 2 divides h"""
        c.require(divides(2, input.shape[0]), "even")
        return Tensor((input.shape[0] // 2,))

    generator = calling(Rules({"halve": rule}))
    generator.node = 0
    _, once = generator.call("halve", (Tensor((H,)),), {})
    generator.retract(0)
    generator.node = 1
    _, again = generator.call("halve", (Tensor((H,)),), {})
    assert once == again
    assert [c.node for c in generator.said.constraints] == [1]


def test_what_is_approximate_is_told_of_every_call() -> None:
    def rule(c: Context, input: Tensor) -> Tensor:
        """[*d] -> [*d], roughly"""
        c.approximate("roughly")
        return input

    generator = calling(Rules({"rough": rule}))
    for generator.node in range(3):
        generator.call("rough", (Tensor((H,)),), {})
    assert [n.node for n in generator.said.notes] == [0, 1, 2]


def test_each_size_of_the_data_is_another() -> None:
    generator = calling()
    first, second = (generator.call("nonzero", (Tensor((H,)),), {})[1] for _ in range(2))
    assert first != second


def test_what_was_chosen_is_asked_again() -> None:
    asked = []

    def choosing(formula: object) -> bool:
        asked.append(formula)
        return True

    generator = Generator(default_rules, DOMAIN, chooser=choosing)
    for _ in range(2):
        generator.call("squeeze", (Tensor((H, 4)),), {})
    assert len(asked) == 2


def test_what_is_learnt_in_between_counts() -> None:
    def rule(c: Context, input: Tensor) -> Value:
        """Is the size at least 8, as far as is known?"""
        return Number("int") if c.at_least(input.shape[0], 8) else Number("float")

    generator = calling(Rules({"big": rule}))
    assert generator.call("big", (Tensor((H,)),), {})[1] == Number("float")
    generator.learn(ge(H, 10))
    assert generator.call("big", (Tensor((H,)),), {})[1] == Number("int")


def test_masks_count_by_reference() -> None:
    generator = calling()
    x, mask, other = Tensor((H,)), Tensor((H,), "bool"), Tensor((H,), "bool")

    def chosen(mask: Tensor, ref: int) -> Value:
        generator.contents.about(((x, 0), (mask, ref)))
        return generator.call("getitem", (x, mask), {})[1]

    first, again, second = chosen(mask, 1), chosen(mask, 1), chosen(other, 2)
    assert first == again != second


def test_what_is_forgotten_is_asked_again() -> None:
    def rule(c: Context, input: Tensor) -> Value:
        """Is the size at least 8, as far as is known?"""
        return Number("int") if c.at_least(input.shape[0], 8) else Number("float")

    generator = calling(Rules({"big": rule}))
    generator.learn(ge(H, 10))
    assert generator.call("big", (Tensor((H,)),), {})[1] == Number("int")
    generator.forget()
    assert generator.call("big", (Tensor((H,)),), {})[1] == Number("float")
