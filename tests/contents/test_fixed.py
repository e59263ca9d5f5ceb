"""Elements that are one number for all data, against those that torch computes of several data."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from anyshape.constraints.contents.outcomes import fixed
from anyshape.constraints.contents.outcomes.dataless import Dataless
from anyshape.constraints.engine import facts
from anyshape.constraints.ir.language import Between
from anyshape.constraints.ir.program import Ref
from anyshape.constraints.ir.spec_text import parse_spec
from anyshape.constraints.ir.system import Path
from anyshape.constraints.rules import default_rules
from anyshape.constraints.terms.formula import holds
from anyshape.solver.decide import DomainOracle
from anyshape.tracer.recording import record as recorder
from anyshape.tracer.recording.binding import NotCallable

Step = Callable[[Any], Any]
SIZES = [dict(zip("nm", sizes, strict=True)) for sizes in itertools.product((0, 1, 2, 5), repeat=2)]
DATA: list[Callable[[int, int], Tensor]] = [
    torch.zeros, torch.ones, torch.randn, lambda n, m: torch.randn(n, m) * 9,
    lambda n, m: -torch.arange(float(n * m)).reshape(n, m) - 1,
]  # fmt: skip

STEPS: list[Step] = [
    lambda x: x.sum(), lambda x: x.sum(0), lambda x: x.sum(-1, keepdim=True), lambda x: x.prod(),
    lambda x: x.prod(0), lambda x: x.mean(), lambda x: x.mean(0), lambda x: x.std(), lambda x: x.std(0),
    lambda x: x.var(0, correction=2), lambda x: x.var(0, correction=0), lambda x: torch.var_mean(x)[1],
    lambda x: torch.std_mean(x, 0)[0], lambda x: x.nansum(), lambda x: x.nanmean(), lambda x: x.norm(),
    lambda x: x.norm(dim=0), lambda x: x.norm(1), lambda x: torch.linalg.vector_norm(x),
    lambda x: x.logsumexp(0), lambda x: x.count_nonzero(), lambda x: x.all(), lambda x: x.all(0),
    lambda x: x.any(), lambda x: x.any(-1), lambda x: (x > 0).all(), lambda x: (x > 0).any(0),
    lambda x: (x == x).all(), lambda x: x.isnan().any(), lambda x: x.isfinite().all(), lambda x: x.amax(0),
    lambda x: x.max(), lambda x: x.min(0).values, lambda x: x.max(0).indices, lambda x: x.median(),
    lambda x: x.nanmedian(), lambda x: x > 0, lambda x: x >= 0, lambda x: x == 0, lambda x: x != 0,
    lambda x: x < 0.6, lambda x: x <= 1e-6, lambda x: x.sum() <= 0, lambda x: x > 1e-12, lambda x: x == 1,
    lambda x: 0 < x, lambda x: x.isnan(), lambda x: x.isinf(), lambda x: x + 1, lambda x: x - 1,
    lambda x: 1 - x, lambda x: x * 2, lambda x: x * 0.1, lambda x: x * 1e30, lambda x: x / 2,
    lambda x: x / 0.3, lambda x: 1 / x, lambda x: x / x, lambda x: x + 0.1, lambda x: x**2, lambda x: x**-1,
    lambda x: x**0.5, lambda x: x.add(1, alpha=2), lambda x: x.sub(x, alpha=2),
    lambda x: torch.div(x, 2, rounding_mode="floor"), lambda x: x // 2, lambda x: x % 3, lambda x: -x,
    lambda x: x.abs(), lambda x: x.square(), lambda x: x.sqrt(), lambda x: x.exp(), lambda x: x.log(),
    lambda x: x.log1p(), lambda x: x.expm1(), lambda x: x.sigmoid(), lambda x: x.tanh(), lambda x: x.cos(),
    lambda x: x.relu(), lambda x: x.reciprocal(), lambda x: x.rsqrt(), lambda x: x.floor(),
    lambda x: x.round(), lambda x: x.clamp(1, 2), lambda x: x.clamp(min=0.5), lambda x: x.clamp(max=-1),
    lambda x: x.clamp_min(1), lambda x: x.nan_to_num(), lambda x: x.logical_not(), lambda x: ~(x > 0),
    lambda x: x.softmax(0), lambda x: x.long(), lambda x: x.half(), lambda x: x.bfloat16(),
    lambda x: x.bool(), lambda x: x.to(torch.uint8), lambda x: x.double(), lambda x: x.int(),
    lambda x: x.to(torch.int8), lambda x: x.view(torch.int32), lambda x: x.reshape(-1),
    lambda x: x.flatten(), lambda x: x.t(), lambda x: x.unsqueeze(0), lambda x: x.squeeze(),
    lambda x: x[1:], lambda x: x[:, None], lambda x: x[0], lambda x: x[..., -1],
    lambda x: x.expand(3, *x.shape), lambda x: x.repeat(2, 1), lambda x: x.flip(0), lambda x: x.roll(1),
    lambda x: x.clone(), lambda x: x.detach(), lambda x: x[x > 0], lambda x: x.unbind(0)[0],
    lambda x: x.chunk(2)[0], lambda x: x.split(1)[-1], lambda x: x.diagonal(), lambda x: x.unique(),
    lambda x: x.masked_select(x > 0), lambda x: x.tile(2), lambda x: x.repeat_interleave(2),
    lambda x: torch.cat([x, x]), lambda x: torch.cat([x.flatten(), torch.zeros(2)]),
    lambda x: torch.cat([x.flatten(), torch.ones(2)]), lambda x: torch.stack([x, x]),
    lambda x: torch.stack([x.sum(), x.prod()]), lambda x: torch.cat([x[:0], x]),
    lambda x: torch.where(x > 0, x, 0.0), lambda x: torch.where(x > 0, 1.0, 1.0),
    lambda x: torch.where(x == 0, 1.0, x), lambda x: x.masked_fill(x == 0, 2.0),
    lambda x: x.masked_fill(x > 0, 0), lambda x: x.minimum(x.sum()), lambda x: x.maximum(x.mean()),
    lambda x: torch.max(x, x.sum()), lambda x: x + x.sum(), lambda x: x.sum() * x.prod(),
    lambda x: x.sum() + x.prod(), lambda x: x.sum(0) / x.sum(), lambda x: x * x.sum(0),
    lambda x: x.sum() == x.prod(), lambda x: x.sum() < x.prod(), lambda x: x == x.sum(),
    lambda x: (x > 0) & (x < 1), lambda x: (x > 0).all() & (x == 0).any(),
    lambda x: (x > 0).any() | (x.sum() == 0), lambda x: (x.sum() == 0).logical_and(x > 0),
    lambda x: (x.sum() > 0).logical_or(x > 0), lambda x: x.sum().long() & 3,
    lambda x: x.sum().logical_and(x.prod()), lambda x: x.sum().long() | 4, lambda x: x @ x.t(),
    lambda x: x.t() @ x, lambda x: x.t().mm(x), lambda x: x.flatten().dot(x.flatten()),
    lambda x: x.nonzero(), lambda x: (x > 0).nonzero()[:, 0] * x.shape[0], lambda x: x.sign(),
    lambda x: torch.argwhere(x > 0) % (2 * x.shape[0]), lambda x: x.long() ^ 1, lambda x: x.fmod(2),
    lambda x: x.long() << 1, lambda x: (x * 0).nonzero()[:, 1], lambda x: x.long() // (x.shape[0] + 1),
    lambda x: x.mv(torch.ones(x.shape[1])), lambda x: F.linear(x, x),
    lambda x: F.linear(x, x, torch.ones(x.shape[0])), lambda x: torch.broadcast_tensors(x, x.sum())[1],
    lambda x: torch.broadcast_tensors(x, x.sum())[0], lambda x: torch.zeros_like(x),
    lambda x: torch.ones_like(x) * 3, lambda x: torch.full_like(x, 0.1), lambda x: x.new_zeros(3),
    lambda x: x.clone().fill_(2), lambda x: x.clone().zero_(), lambda x: x.sum(0).add_(1),
    lambda x: x.sum(0).mul_(0), lambda x: x.sum(0).clamp_(min=1), lambda x: written(x.sum(0)),
    lambda x: written(x.clone()), lambda x: through_a_view(x.sum(0)), lambda x: x.bernoulli(0.5),
    lambda x: torch.rand_like(x), lambda x: x.cumsum(0), lambda x: x.sort(0).values,
    lambda x: F.mse_loss(x, x), lambda x: F.l1_loss(x, x, reduction="none"), lambda x: F.mse_loss(x, x + 1),
    lambda x: torch.cov(x), lambda x: torch.corrcoef(x), lambda x: torch.isclose(x, x.sum()),
    lambda x: x.argmax(0), lambda x: x.nonzero(), lambda x: x.bincount(),
    lambda x: x**-0.5, lambda x: x**1.3, lambda x: x.log2(), lambda x: x / -0.7, lambda x: x.atan(),
    lambda x: x * x, lambda x: x + x, lambda x: x.sinh(), lambda x: x.asinh(), lambda x: x - 0.3,
    lambda x: x.tril(), lambda x: x.triu(1), lambda x: x.topk(1).values, lambda x: x.topk(1, 0).indices,
    lambda x: F.adaptive_avg_pool1d(x, 3), lambda x: F.adaptive_avg_pool2d(x[None], 2), lambda x: x.mT,
    lambda x: x.ceil(), lambda x: x.trunc(), lambda x: x <= x.shape[0], lambda x: x == x.shape[1],
    lambda x: x > 0.3, lambda x: x == 0.3, lambda x: x != 0.1, lambda x: 2.9999999999 % x, lambda x: x >= x,
]  # fmt: skip


CONSTANTS: list[Step] = [
    *(lambda x, c=c: torch.full_like(x, c) for c in (0.3, -0.7, 1, -3, 2.0**-126, 1 - 2**-23, 1e-50, 1e38)),
    lambda x: torch.stack([torch.zeros_like(x), torch.ones_like(x)], -1), torch.zeros_like,
    lambda x: torch.cat([torch.full((3,), -0.3), torch.full((2,), 0.7)]),
    lambda x: torch.full((3, 2), 0.1, dtype=torch.float64), lambda x: torch.where(x > 0, 0.3, -1.0),
    lambda x: torch.full((2, 2), 0.3, dtype=torch.float16), lambda x: torch.tensor(1 / 3),
]  # fmt: skip
"""Steps to elements that the data do not decide."""


def written(x: Tensor) -> Tensor:
    x[:1] = 3
    return x


def through_a_view(x: Tensor) -> Tensor:
    view = x[:1]
    view += 4
    return x


def recorded(program: Step) -> list[tuple[Path, Dataless]]:
    """The paths through a program, each with what its recording knows of its values."""
    known: list[Dataless] = []
    spec = parse_spec("x: float32[n, m]", ["n >= 0", "m >= 0"])
    with mock.patch.object(facts, "Dataless", lambda *of: known.append(Dataless(*of)) or known[-1]):
        system, _ = recorder.record(program, spec, default_rules, DomainOracle(spec.domain))
    return [(path, one) for path in system.paths for one in known if one._values is path.values]


def compare(program: Step) -> int:
    """The number of cases that torch confirms. Raises Mismatch."""
    confirmed = 0
    for path, program_values in recorded(program):
        outputs = [out for _, out in path.program.outputs]
        if path.end.how != "returned" or path.unbacked or not outputs or not isinstance(outputs[0], Ref):
            continue
        for where, number in program_values.fixed(outputs[0].id):
            for sizes in SIZES:
                met = [path.premise, where, *(c.formula for c in path.constraints)]
                if all(holds(formula, sizes) for formula in met if formula is not True):
                    confirmed += confirms(program, sizes, number)
    return confirmed


def confirms(program: Step, sizes: dict[str, int], number: float | Between | None) -> bool:
    for make in DATA:
        try:
            found = program(make(sizes["n"], sizes["m"]))
        except (RuntimeError, IndexError, ValueError):
            return False
        if found.numel() if number is None else not is_everywhere(number, found):
            raise Mismatch(f"{number} at {sizes}: {found}")
    return True


def is_everywhere(number: float | Between, tensor: Tensor) -> bool:
    if isinstance(number, Between):
        return bool(((tensor >= number.low) & (tensor <= number.high)).all())
    return bool((tensor.isnan() if math.isnan(number) else tensor == number).all())


class Mismatch(Exception):
    pass


def chain(*steps: Step) -> Step:
    def program(x: Any) -> Any:
        for step in steps:
            x = step(x)
        return x

    return program


@pytest.mark.parametrize("step", STEPS)
def test_each_number_is_that_of_torch(step: Step) -> None:
    compare(step)


def chains(seeds: range) -> Iterator[Step]:
    for seed in seeds:
        draw = random.Random(seed)
        yield chain(*(draw.choice(STEPS) for _ in range(draw.randint(2, 4))))


def of_chains(seeds: range) -> int:
    confirmed = 0
    for program in chains(seeds):
        try:
            confirmed += compare(program) > 0
        except (TypeError, NotImplementedError, AttributeError, NotCallable):
            continue  # this rank, or this dtype, does not have it
    return confirmed


def test_numbers_of_chains_are_those_of_torch() -> None:
    assert of_chains(range(150)) > 50


def of_constants(seeds: range) -> int:
    confirmed = 0
    for program, seed in zip(chains(seeds), seeds, strict=True):
        first = random.Random(-seed).choice(CONSTANTS)
        try:
            confirmed += compare(chain(first, program)) > 0
        except (TypeError, NotImplementedError, AttributeError, NotCallable):
            continue
    return confirmed


def test_functions_of_constants_are_those_of_torch() -> None:
    for constant, step in itertools.product(CONSTANTS[:2], STEPS):
        compare(chain(constant, step))
    assert of_constants(range(100)) > 40


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_numbers_of_many_chains_are_those_of_torch(part: int) -> None:
    of_chains(range(1000 * (part + 1), 1000 * (part + 1) + 400))
    of_constants(range(1000 * (part + 1), 1000 * (part + 1) + 400))


MISTAKES: dict[str, fixed.Law] = {
    "sum": fixed.reduction(1),
    "all": fixed.LAWS["any"],
    "prod": fixed.reduction(0),
    "mean": fixed.reduction(0),
    "add": fixed.LAWS["sub"],
    "le": fixed.LAWS["lt"],
    "exp": fixed.LAWS["log1p"],
    "mul": fixed.LAWS["add"],
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("op", MISTAKES)
def test_wrong_laws_are_found(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fixed, "LAWS", {**fixed.LAWS, op: MISTAKES[op]})
    with pytest.raises(Mismatch):
        compare_all()


def compare_all() -> None:
    for step in STEPS:
        compare(step)
        compare(chain(CONSTANTS[0], step))
