"""Random chains of views, reshapes and index expressions, symbolic beside real, compared after every step."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
import torch

from anyshape.constraints.engine.generate import Generator
from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Dots, Layout, Slice, Tensor
from anyshape.constraints.ir.system import Domain
from anyshape.constraints.rules import indexing, joining, layout, repeating
from anyshape.constraints.terms.dims import Dim, evaluate, sym
from anyshape.constraints.terms.formula import all_of, ge, holds

rules = Rules(layout.RULES) | repeating.RULES | indexing.RULES | joining.RULES
NAMES = "abcde"
a, b, c, d, e = map(sym, NAMES)
Arguments = tuple[Any, ...]


def axis(rng: random.Random, rank: int) -> int:
    return rng.randrange(-rank, rank) if rank else 0


def other_sizes(rng: random.Random, shape: tuple[Dim, ...]) -> Arguments:
    """The shape with dims merged, cut, swapped or added; sometimes one of them is left to be inferred."""
    dims = list(shape)
    how, at = rng.randrange(6), rng.randrange(len(dims)) if dims else 0
    match how:
        case 0 | 1 if len(dims) > 1:
            dims[at : at + 2] = [dims[at] * (dims[at + 1] if at + 1 < len(dims) else 1)]
        case 2 if dims:
            dims[at : at + 1] = rng.choice([[2, dims[at] // 2], [dims[at] // 2, 2]])
        case 3:
            rng.shuffle(dims)
        case 4:
            dims.insert(at, 1)
        case 5 if len(dims) > 2:
            dims[:3] = [dims[0] * dims[1] * dims[2]]
    if dims and rng.random() < 0.4:
        dims[rng.randrange(len(dims))] = -1
    return (tuple(dims),)


def cut(rng: random.Random) -> Slice:
    return Slice(rng.choice([None, 0, 1, -2, a]), rng.choice([None, 1, -1, a, b]), rng.choice([None, 1, 2]))


def index(rng: random.Random, shape: tuple[Dim, ...]) -> Arguments:
    items = [rng.choice([cut(rng), 0, -1, None]) for _ in shape]
    return (tuple(items[: rng.randrange(len(items) + 1)] + [Dots] * rng.randrange(2)),)


def wider(rng: random.Random, shape: tuple[Dim, ...]) -> Arguments:
    new = [rng.choice([2, d])] if rng.random() < 0.3 else []
    return ((*new, *(rng.choice([-1, -1, size, c, 3]) for size in shape)),)


Maker = Callable[[random.Random, tuple[Dim, ...]], Arguments]
STEPS: dict[str, tuple[Callable[..., Any], Maker]] = {
    "view": (torch.Tensor.view, other_sizes),
    "reshape": (torch.Tensor.reshape, other_sizes),
    "flatten": (torch.flatten, lambda rng, shape: (axis(rng, len(shape)),)),
    "unflatten": (
        torch.Tensor.unflatten,
        lambda rng, shape: (axis(rng, len(shape)), rng.choice([(2, -1), (-1, 1)])),
    ),
    "permute": (torch.permute, lambda rng, shape: (tuple(rng.sample(range(len(shape)), len(shape))),)),
    "transpose": (torch.transpose, lambda rng, shape: (axis(rng, len(shape)), axis(rng, len(shape)))),
    "movedim": (torch.movedim, lambda rng, shape: (axis(rng, len(shape)), axis(rng, len(shape)))),
    "squeeze": (torch.squeeze, lambda rng, shape: (axis(rng, len(shape)),)),
    "unsqueeze": (torch.unsqueeze, lambda rng, shape: (rng.randrange(len(shape) + 1),)),
    "expand": (torch.Tensor.expand, wider),
    "flip": (torch.flip, lambda rng, shape: ((axis(rng, len(shape)),),)),
    "diagonal": (
        torch.diagonal,
        lambda rng, shape: (rng.choice([0, 1, -1]), axis(rng, len(shape)), axis(rng, len(shape))),
    ),
    "getitem": (torch.Tensor.__getitem__, index),
    "split": (torch.split, lambda rng, shape: (2, axis(rng, len(shape)))),
    "contiguous": (torch.Tensor.contiguous, lambda rng, shape: ()),
}


def real(value: Any, values: dict[str, int]) -> Any:
    if isinstance(value, tuple):
        return tuple(real(part, values) for part in value)
    if isinstance(value, Slice):
        return slice(*(real(part, values) for part in (value.start, value.stop, value.step)))
    if value is Dots:
        return Ellipsis
    return value if value is None else evaluate(value, values)


def chain(seed: int, low: int) -> int:
    """Steps until torch refuses one, and how many there were. Sizes are drawn from `low` up, often 1."""
    rng = random.Random(seed)
    values = {name: max(low, rng.choice([0, 1, 1, 2, 3, 4, 6])) for name in NAMES}
    generator = Generator(
        rules,
        Domain(tuple(NAMES), tuple(ge(sym(name), low) for name in NAMES)),
        count=lambda dim: evaluate(dim, values),
        chooser=lambda formula: holds(formula, values),
    )
    symbolic = Tensor(tuple(rng.choices([a, b, c, d, e, 2 * a, b + 1, 1, 3], k=rng.randint(1, 4))))
    tensor = torch.zeros(real(symbolic.shape, values))
    log = [f"{symbolic} at {values}"]
    for step in range(6):
        op = rng.choice(list(STEPS))
        call, arguments = STEPS[op]
        args = arguments(rng, symbolic.shape)
        try:
            plain = real(args, values)
        except ZeroDivisionError:
            return step
        log.append(f"{op}{args}")
        before = len(generator.said.constraints)
        _, result = generator.call(op, (symbolic, *args), {})
        required = all_of(constraint.formula for constraint in generator.said.constraints[before:])
        try:
            accepted = holds(required, values)
        except ZeroDivisionError:
            accepted = False
        if generator.said.notes:
            assert {note.code for note in generator.said.notes} == {"approximate"}, log
            return step
        try:
            outcome = call(tensor, *plain)
        except (RuntimeError, IndexError, ValueError):
            outcome = None
        assert accepted == (outcome is not None), (log, str(required), tensor.stride())
        if outcome is None:
            return step + 1
        symbolic, tensor = (result[-1], outcome[-1]) if isinstance(result, tuple) else (result, outcome)
        assert real(symbolic.shape, values) == tuple(tensor.shape), log
        compare_strides(symbolic, tensor, values, log)
    return 6


def compare_strides(symbolic: Tensor, tensor: torch.Tensor, values: dict[str, int], log: list[str]) -> None:
    if tensor.numel() and symbolic.layout is Layout.CONTIGUOUS:
        assert tensor.is_contiguous(), (log, tensor.stride())
    if tensor.numel() and isinstance(symbolic.layout, tuple):
        strides = zip(real(symbolic.layout, values), tensor.stride(), tensor.shape, strict=True)
        assert all(mine == theirs for mine, theirs, size in strides if size > 1), (log, tensor.stride())


@pytest.mark.parametrize("low", [0, 1])
def test_chains(low: int) -> None:
    steps = [chain(seed, low) for seed in range(400)]
    assert sum(steps) > 1000, "most chains go some steps before they are refused"


def test_the_chains_see_wrong_strides(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(c: Any, input: Tensor, dim0: int, dim1: int) -> Tensor:
        result = layout.RULES["transpose"](c, input, dim0, dim1)
        return Tensor(result.shape, result.dtype)

    monkeypatch.setitem(globals(), "rules", rules + {"transpose": wrong})
    with pytest.raises(AssertionError):
        test_chains(1)
