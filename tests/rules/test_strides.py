"""The strides of new results, along axes of size 1 too, by torch itself.

The operands have axes in any order, with gaps, expanded, and of sizes that are 1 or symbols. What a rule
claims of the layout, for all sizes or in cases of them, is compared with the strides that torch gives.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from anyshape.constraints.engine.generate import Generator
from anyshape.constraints.engine.memory import strides_of
from anyshape.constraints.ir.language import LOOSE, Layout
from anyshape.constraints.ir.language import Tensor as Type
from anyshape.constraints.ir.system import Domain
from anyshape.constraints.rules import default_rules
from anyshape.constraints.terms.dims import evaluate, sym
from anyshape.constraints.terms.formula import ge, holds
from anyshape.typecheck.testing.differential import REFUSALS, Case, T, compare_results


class Call(NamedTuple):
    """A call of an operator: by torch, for operands of these ranks, with arguments that follow them."""

    call: Callable[..., Any]
    ranks: tuple[int, int] = (2, 4)
    extra: tuple[Any, ...] = ()
    operands: int = 1


def images(call: Callable[..., Any], *extra: Any) -> Call:
    return Call(call, (4, 4), extra)


def first(call: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: call(*args)[0]


CALLS: Mapping[str, Call] = {
    "neg": Call(torch.neg),
    "add": Call(torch.add, operands=2),
    "addcmul": Call(torch.addcmul, operands=3),
    **{name: Call(getattr(torch, name)) for name in "clone zeros_like empty_like nan_to_num deg2rad".split()},
    **{name: Call(getattr(torch, name)) for name in "isfinite isinf isreal argsort rot90 bernoulli".split()},
    **{name: Call(getattr(F, name)) for name in "relu relu6 hardtanh softsign gelu".split()},
    "special_ndtr": Call(torch.special.ndtr),
    "double": Call(Tensor.double),
    "contiguous": Call(Tensor.contiguous),
    "sort": Call(first(torch.sort)),
    "flip": Call(torch.flip, extra=((1,),)),
    "roll": Call(torch.roll, extra=(1, 1)),
    "softmax": Call(lambda x, dim: torch.softmax(x, dim), extra=(1,)),
    "cumsum": Call(torch.cumsum, extra=(1,)),
    "amax": Call(lambda x, *args: torch.amax(x, *args), extra=((1,), True)),
    "normalize": Call(F.normalize, extra=(2.0, 0)),
    "dropout": Call(F.dropout, extra=(0.5, True)),
    "native_dropout": Call(first(torch.native_dropout), extra=(0.5, True)),
    "feature_dropout": Call(torch.feature_dropout, extra=(0.5, True)),
    "fft_fft": Call(torch.fft.fft),
    "fft_ifft": Call(torch.fft.ifft, extra=(None, 0)),
    "fft_rfft": Call(torch.fft.rfft, extra=(None, 1)),
    "batch_norm": images(lambda x, *_: F.batch_norm(x, None, None, training=True), *(None,) * 4, True),
    "group_norm": images(F.group_norm, 1),
    "max_pool2d": images(F.max_pool2d, 1),
    "avg_pool2d": images(F.avg_pool2d, 1),
    "interpolate": images(F.interpolate, (2, 2)),
}


def random_operand(rng: random.Random, rank: int, all_axes: bool) -> T:
    """The last axes of a result of `rank` axes, some of size 1, in any order, with gaps, expanded."""
    count = rank if all_axes or rng.random() < 0.7 else rng.randint(0, rank)
    sizes = [rng.choice([n, n, n, "1"]) for n in "abcd"[rank - count : rank]]
    order = list(range(count))
    if rng.random() < 0.6:
        rng.shuffle(order)
    strides, step = ["0"] * count, "1"
    for i in order:
        if rng.random() < 0.9:
            strides[i] = step
            step += rng.choice(["", "", "", "*2", f"*({sizes[i]}+1)"]) if sizes[i] == "1" else (
                f"*{sizes[i]}" + rng.choice(["", "", "", "*2"])
            )
    return T(" ".join(sizes), strides=" ".join(strides))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("op", CALLS)
def test_strides_are_as_claimed(op: str) -> None:
    call, ranks, extra, count = CALLS[op]
    rng, claimed, tried = random.Random(op), 0, 0
    for _ in range(60 if count > 1 else 20):
        rank = rng.randint(*ranks)
        operands = tuple(random_operand(rng, rank, count == 1) for _ in range(count))
        case = Case(op, call, operands)
        names = case.symbols()
        domain = Domain(tuple(names), tuple(ge(sym(n), 1) for n in names))
        generator = Generator(default_rules, domain)
        _, result = generator.call(op, (*(o.symbolic() for o in operands), *extra), {})
        result = result[0] if isinstance(result, tuple) else result
        if not isinstance(result, Type):
            continue  # refused for all sizes
        cases = [(True, result)]
        if result.layout in LOOSE:
            cases = [(case.condition, tensor) for case, tensor in generator.layouts(result) or ()]
        tried, claimed = tried + 1, claimed + (cases != [])
        for values in itertools.product((1, 2, 3), repeat=len(names)):
            at = dict(zip(names, values, strict=True))
            try:
                real = call(*(o.build(at) for o in operands), *extra)
            except REFUSALS:
                continue
            for tensor in (tensor for condition, tensor in cases if holds(condition, at)):
                compare_results(tensor, real, at, f"{case} at {at}")
                strides = tuple(evaluate(step, at) for step in strides_of(tensor) or ())
                assert real.stride() == strides, f"{case} at {at}"
    assert claimed > 0.7 * tried > 10


def test_a_contiguous_tensor_is_told_from_one_of_other_strides_along_single_elements() -> None:
    b, h, w, c = map(sym, "bhwc")
    generator = Generator(default_rules, Domain(tuple("bhwc"), tuple(ge(n, 1) for n in (b, h, w, c))))
    image = Type((b, c, h, w), "float32", (h * w * c, 1, w * c, c))
    _, result = generator.call("contiguous", (image,), {})
    assert isinstance(result, Type) and result.layout is Layout.ROW_MAJOR
    layouts = {str(case.condition): tensor.layout for case, tensor in generator.layouts(result) or ()}
    assert len({str(layout) for layout in layouts.values()}) > 1, layouts


def test_a_contiguous_tensor_stays_contiguous_when_it_is_rolled() -> None:
    names = tuple("bchw")
    generator = Generator(default_rules, Domain(names, tuple(ge(sym(n), 1) for n in names)))
    image = Type(tuple(map(sym, names)), "float32", Layout.ROW_MAJOR)
    for dim in range(4):
        _, result = generator.call("roll", (image, 1, dim), {})
        assert isinstance(result, Type) and result.layout is Layout.ROW_MAJOR
    for shape in itertools.product((1, 2, 3), repeat=4):
        for free in (0, 1, 2, 7):
            strides = [free if n == 1 else s for n, s in zip(shape, torch.empty(shape).stride(), strict=True)]
            real = torch.empty_strided(shape, strides)
            assert all(real.roll(shift, dim).is_contiguous() for shift in (1, 2) for dim in range(4))
