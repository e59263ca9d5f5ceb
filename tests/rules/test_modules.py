"""Every class of torch.nn is recorded, each call that it makes has a rule, and what comes out is what eager
torch says: sizes accepted or refused, shapes and dtypes of the results.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import pytest
import torch
from absent import found
from torch import nn
from torch.utils import _pytree as pytree

from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Context, Tensor
from anyshape.constraints.ir.program import Ref
from anyshape.constraints.ir.spec_text import parse_spec
from anyshape.constraints.ir.system import Path, System
from anyshape.constraints.rules import default_rules
from anyshape.constraints.terms.dims import evaluate
from anyshape.constraints.terms.formula import all_of, holds
from anyshape.solver.decide import DomainOracle
from anyshape.tracer.recording.binding import bind
from anyshape.tracer.recording.record import record
from anyshape.typecheck.testing.differential import REFUSALS


@dataclass(frozen=True)
class Module:
    """A module and its inputs, one text each: `b 3 h w`, `int64: b t`, or a number.

    A lazy module is first called with `first`, which settles its parameters.
    """

    build: Callable[..., nn.Module]
    inputs: tuple[Any, ...]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    first: tuple[int, ...] = ()

    def __str__(self) -> str:
        given = (*map(str, self.args), *(f"{k}={v}" for k, v in self.kwargs.items()))
        return f"{self.build.__name__}({', '.join(given)}) of {', '.join(map(str, self.inputs))}"

    def make(self) -> nn.Module:
        torch.default_generator.manual_seed(0)
        module = self.build(*self.args, **self.kwargs)
        if self.first:
            module(torch.zeros(self.first))
        return module

    def spec(self, module: nn.Module) -> str:
        names = list(inspect.signature(module.forward).parameters)
        return "; ".join(_declared(*pair) for pair in zip(names, self.inputs, strict=False) if pair[1] != "")


def _declared(name: str, given: Any) -> str:
    if not isinstance(given, str):
        return f"{name}={given!r}"
    dtype, _, sizes = given.rpartition(": ")
    return f"{name}: {dtype or 'float32'}[{', '.join(sizes.split())}]"


def M(build: Callable[..., nn.Module], inputs: str, *args: Any, **kwargs: Any) -> Module:
    """Inputs are separated by semicolons."""
    return Module(build, tuple(i.strip() for i in inputs.split(";")), args, kwargs)


def windows(spatial: int) -> Iterator[Module]:
    """Modules that exist in one, two and three dimensions."""

    def of(name: str) -> Any:
        return getattr(nn, f"{name}{spatial}d")

    sizes = " ".join("h w d".split()[:spatial])
    image, unbatched = f"b 3 {sizes}", f"c {sizes}"
    yield M(of("Conv"), f"b c {sizes}", 3, 6, 3, stride=2, padding=1)
    yield M(of("Conv"), unbatched, 3, 6, 3, padding="same", groups=3, padding_mode="circular")
    yield M(of("ConvTranspose"), f"b c {sizes}", 3, 6, 3, stride=2, padding=1, output_padding=1)
    for lazy in ("LazyConv", "LazyConvTranspose"):
        yield Module(of(lazy), (f"b c {sizes}",), (4, 3), first=(1, 3, *(5,) * spatial))
    for pool in ("MaxPool", "AvgPool"):
        yield M(of(pool), image, 3, stride=2, padding=1, ceil_mode=True)
        yield M(of(pool), unbatched, 2)
    yield M(of("MaxPool"), image, 2, return_indices=True)
    yield M(of("MaxUnpool"), f"b 3 {sizes}; int64: b 3 {sizes}", 2)
    yield M(of("LPPool"), image, 2, 3)
    for pool in ("AdaptiveAvgPool", "AdaptiveMaxPool"):
        yield M(of(pool), image, 2)
    for norm in ("BatchNorm", "InstanceNorm"):
        yield M(of(norm), f"b c {sizes}", 3, affine=True)
        yield M(of(norm), image, 3, track_running_stats=norm == "InstanceNorm")
        yield Module(of(f"Lazy{norm}"), (f"b c {sizes}",), first=(2, 3, *(5,) * spatial))
    for pad in ("Circular", "Reflection", "Replication", "Zero"):
        yield M(of(f"{pad}Pad"), image, 2)
    yield M(of("ConstantPad"), image, (1, -2) * spatial, 0.5)
    yield M(of("Dropout"), f"b c {sizes}", 0.5)


POINTWISE = """AlphaDropout CELU Dropout ELU FeatureAlphaDropout GELU Hardshrink Hardsigmoid Hardswish
Hardtanh Identity LeakyReLU LogSigmoid LogSoftmax Mish PReLU RReLU ReLU ReLU6 SELU SiLU Sigmoid Softmax
Softmin Softplus Softshrink Softsign Tanh Tanhshrink""".split()

LOSSES = """BCEWithLogitsLoss HingeEmbeddingLoss HuberLoss KLDivLoss L1Loss MSELoss MultiLabelSoftMarginLoss
PoissonNLLLoss SmoothL1Loss SoftMarginLoss""".split()

MODULES = [
    *(M(getattr(nn, name), "b n", **{"dim": 1} if "max" in name or name == "Softmin" else {})
      for name in POINTWISE),
    *(M(getattr(nn, name), "b n; c m") for name in LOSSES),
    *(M(getattr(nn, name), "b n; b n", reduction="none") for name in LOSSES),
    *(case for spatial in (1, 2, 3) for case in windows(spatial)),
    M(nn.AdaptiveLogSoftmaxWithLoss, "b 4; int64: c", 4, 6, [4]),
    M(nn.BCELoss, "b n; c m"),
    M(nn.Bilinear, "b 3; c m", 3, 4, 5),
    M(nn.CTCLoss, "t b n; int64: c s; int64: b; int64: b"),
    M(nn.ChannelShuffle, "b c h w", 3),
    M(nn.CosineEmbeddingLoss, "b n; c n; int64: d"),
    M(nn.CosineSimilarity, "b n; c n"),
    M(nn.CrossEntropyLoss, "b n h; int64: c k", label_smoothing=0.1),
    M(nn.CrossMapLRN2d, "b 4 h w", 3),
    M(nn.Embedding, "int64: b t", 5, 4, padding_idx=0),
    M(nn.Embedding, "int64: b t", 5, 4, max_norm=1.0),
    M(nn.EmbeddingBag, "int64: b t", 5, 4, mode="sum"),
    M(nn.EmbeddingBag, "int64: t; int64: b", 5, 4, mode="max"),
    M(nn.EmbeddingBag, "int64: b t; ; b s", 5, 4, mode="sum"),
    M(nn.Flatten, "b c h w", 1, -2),
    M(nn.Fold, "b c 12", (4, 5), 2),
    M(nn.FractionalMaxPool2d, "b c h w", 2, output_size=(3, 2)),
    M(nn.FractionalMaxPool2d, "c h w", 2, output_ratio=(0.5, 0.75), return_indices=True),
    M(nn.FractionalMaxPool3d, "b c h w d", 2, output_ratio=(0.5, 0.5, 0.75)),
    M(nn.GLU, "b n", -1),
    *(M(rnn, inputs, 3, 4, num_layers=2, bidirectional=True, batch_first=first)
      for rnn in (nn.RNN, nn.GRU, nn.LSTM) for inputs, first in (("b t n", True), ("t n", False))),
    M(nn.RNN, "t b 3; 2 c m", 3, 4, num_layers=2, nonlinearity="relu"),
    M(nn.GRU, "t b 3; k c 4", 3, 4, dropout=0.5, num_layers=2),
    M(nn.LSTM, "t b n", 3, 4, proj_size=2),
    *(M(cell, inputs, 3, 4) for cell in (nn.RNNCell, nn.GRUCell) for inputs in ("b 3; c m", "n; 4", "b n")),
    *(M(nn.LSTMCell, inputs, 3, 4) for inputs in ("b n", "n")),
    M(nn.GaussianNLLLoss, "b n; c m; d k"),
    M(nn.GroupNorm, "b c h w", 2, 6),
    M(nn.LayerNorm, "b t 3 m", (3, 4)),
    M(nn.RMSNorm, "b t 3 m", (3, 4)),
    Module(nn.LazyLinear, ("b n",), (4,), first=(2, 3)),
    M(nn.Linear, "b t n", 3, 4),
    M(found(nn, "LinearCrossEntropyLoss"), "b n; int64: c", 3, 4),
    M(nn.LocalResponseNorm, "b c h w", 3),
    M(nn.MarginRankingLoss, "b; c; d"),
    M(nn.MultiLabelMarginLoss, "b n; int64: c m"),
    M(nn.MultiMarginLoss, "b n; int64: c"),
    *(M(nn.MultiheadAttention, "q b 4; k c 3; k d l", 4, 2, kdim=3, vdim=5, dropout=p, add_bias_kv=p > 0)
      for p in (0.0, 0.5)),
    M(nn.MultiheadAttention, "b t n; b t n; b t n", 4, 2, batch_first=True),
    M(nn.NLLLoss, "b n; int64: c"),
    M(nn.NLLLoss2d, "b n h w; int64: c k l"),
    M(nn.PReLU, "b n h", 3),
    M(nn.PairwiseDistance, "b n; c m"),
    M(nn.PixelShuffle, "b c h w", 2),
    M(nn.PixelUnshuffle, "b c h w", 2),
    M(nn.Sequential, "b n", nn.Linear(3, 4), nn.ReLU()),
    M(nn.Softmax2d, "b c h w"),
    M(nn.Threshold, "b n", 0.5, 1.0),
    M(nn.Transformer, "b s n; b t m", 4, 2, 1, 1, 8, batch_first=True),
    M(nn.TransformerDecoderLayer, "t b n; s c m", 4, 2, 8, norm_first=True),
    M(nn.TransformerEncoderLayer, "b t n; q k", 4, 2, 8, batch_first=True),
    M(nn.TransformerDecoder, "t b n; s c m", nn.TransformerDecoderLayer(4, 2, 8), 2),
    M(nn.TransformerEncoder, "t b n", nn.TransformerEncoderLayer(4, 2, 8), 2),
    M(nn.TripletMarginLoss, "b n; c m; d k", swap=True),
    M(nn.TripletMarginWithDistanceLoss, "b n; c m; d k"),
    M(nn.Unflatten, "b n", 1, (3, -1)),
    M(nn.Unfold, "b c h w", 3, padding=1, stride=2),
    M(nn.Upsample, "b c h w", scale_factor=(2.0, 1.5), mode="bilinear"),
    M(nn.Upsample, "b c h", size=3),
    M(nn.UpsamplingBilinear2d, "b c h w", scale_factor=2),
    M(nn.UpsamplingNearest2d, "b c h w", size=(3, 4)),
]

LEFT_OUT = {
    "Container": "it has no forward",
    "DataParallel": "it is for several GPUs; without one it is the module that it wraps",
    "Module": "it has no forward",
    "ModuleDict": "it has no forward",
    "ModuleList": "it has no forward",
    "ParameterDict": "it has no forward",
    "ParameterList": "it has no forward",
    "RNNBase": "it has no mode of its own; RNN, GRU and LSTM are it",
    "RNNCellBase": "it has no forward",
    "SyncBatchNorm": "in training it is for GPUs; in evaluation it is a batch norm",
}
"""Classes of torch.nn that are no modules to run."""


def classes() -> dict[str, type]:
    """Every class of torch.nn that is a module."""
    found = {name: getattr(nn, name) for name in dir(nn)}
    return {n: k for n, k in found.items() if inspect.isclass(k) and issubclass(k, nn.Module)}


def recorded(case: Module, module: nn.Module, rules: Rules = default_rules) -> System:
    """The module's system, every call of which has a rule."""
    spec = parse_spec(case.spec(module), ())
    system, _ = record(module, spec, rules, DomainOracle(spec.domain))
    assert not system.incomplete, system.incomplete
    for path in system.paths:
        assert path.end.how != "gave-up", path.end
        assert not path.notes, path.notes
        assert all(node.op in rules or node.op.removesuffix("_") in rules or node.op == "require"
                   for node in path.program.nodes)
    return system


def outcomes(system: System, values: dict[str, int]) -> Iterator[Any]:
    """All that may come out at these sizes, `results` or None for a refusal: with data that decides sizes, or
    branches, there may be several.
    """
    for path in system.paths:
        names = [name for name, _ in path.unbacked]
        for data in product({0, 1, *values.values()}, repeat=len(names)):
            known = values | dict(zip(names, data, strict=True))
            if holds(all_of(formula for _, formula in path.unbacked), known) and holds(path.premise, known):
                runs = path.end.how == "returned" and all(holds(c.formula, known) for c in path.constraints)
                yield results(path, known) if runs else None


def results(path: Path, values: dict[str, int]) -> list[tuple[tuple[int, ...], str | None]]:
    """Shapes and dtypes of the tensors that a path returns."""
    outputs = (path.values[a.id] for _, a in path.program.outputs if isinstance(a, Ref))
    tensors = (value for value in outputs if isinstance(value, Tensor))
    return [(tuple(evaluate(d, values) for d in t.shape), t.dtype) for t in tensors]


def eager(module: nn.Module, spec: str, values: dict[str, int]) -> Any:
    """What eager torch makes of inputs of these sizes: the same as `results`, or None for a refusal."""

    def zeros(declared: Any) -> Any:
        kind = declared.type
        if not isinstance(kind, Tensor):
            return kind
        return torch.zeros([evaluate(d, values) for d in kind.shape], dtype=getattr(torch, kind.dtype or ""))

    bound = bind(module, parse_spec(spec, ()).inputs, zeros)
    try:
        returned = module(*bound.args, **bound.kwargs)
    except REFUSALS:
        return None
    leaves = [leaf for leaf in pytree.tree_leaves(returned) if isinstance(leaf, torch.Tensor)]
    return [(tuple(leaf.shape), str(leaf.dtype).removeprefix("torch.")) for leaf in leaves]


def assignments(names: tuple[str, ...], count: int) -> Iterator[dict[str, int]]:
    """All alike, then random ones that repeat values often, so that sizes agree."""
    rng = random.Random(str(names))
    for value in (1, 2, 3, 4, 6):
        yield dict.fromkeys(names, value)
    for _ in range(count):
        pool = rng.sample((1, 2, 3, 4, 5, 6, 8), 3)
        yield {name: rng.choice(pool) for name in names}


def judge(case: Module, training: bool, rules: Rules = default_rules, count: int = 60) -> tuple[int, int]:
    """How many assignments eager torch accepts and refuses; at each the system has to say the same."""
    module = case.make().train(training)
    spec, system = case.spec(module), recorded(case, module, rules)
    seen = [0, 0]
    if any(path.unbacked for path in system.paths):
        count //= 8  # what may come out is found by trying all that data may decide
    for values in assignments(system.domain.symbols, count):
        expected = eager(module, spec, values)
        said = list(outcomes(system, values))
        assert expected in said, f"{case} at {values}: torch {expected}, recorded {said}"
        seen[expected is None] += 1
    return seen[0], seen[1]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", MODULES, ids=str)
@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
def test_module(case: Module, training: bool) -> None:
    accepted, _ = judge(case, training)
    assert accepted, f"{case} is never accepted"


def test_the_judge_catches_a_wrong_rule() -> None:
    """One that accepts too much, and one whose result is of another shape."""

    def careless(c: Context, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return Tensor((*input.shape[:-1], weight.shape[0]), input.dtype)

    def larger(c: Context, input: Tensor) -> Tensor:
        return Tensor((input.shape[0] + 1, *input.shape[1:]), input.dtype)

    for case, rules in (
        (M(nn.Linear, "b n", 3, 4), default_rules + {"linear": careless}),
        (M(nn.Sigmoid, "b n"), default_rules + {"sigmoid": larger}),
    ):
        assert judge(case, False)[0]
        with pytest.raises(AssertionError, match="recorded"):
            judge(case, False, rules)


def test_every_class_is_looked_at() -> None:
    made = {type(case.make()).__name__ for case in MODULES if isinstance(case.build, type)}
    looked_at = made | {case.build.__name__ for case in MODULES}
    assert sorted(classes().keys() - looked_at - LEFT_OUT.keys()) == []
    assert sorted(LEFT_OUT.keys() & looked_at) == []
