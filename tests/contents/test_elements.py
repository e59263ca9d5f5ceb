"""What is said of the elements of tensors, against the elements that torch computes.

A chain of operators is put to the rules with symbolic sizes, and to torch at sizes. All elements have to lie
within what is known of them, and where it is said that the least and the greatest occur, they do.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch

from anyshape.constraints.contents.elements.enclosures import FUNCTIONS, image
from anyshape.constraints.contents.elements.functions import corners
from anyshape.constraints.contents.elements.values import between, of, pieces_of
from anyshape.constraints.contents.laws import transfers
from anyshape.constraints.engine.generate import Generator
from anyshape.constraints.ir.language import UNTRACKED, Dyn, Image, Slice, Tensor, Truths
from anyshape.constraints.ir.system import Domain
from anyshape.constraints.rules import default_rules
from anyshape.constraints.terms.dims import Dim, evaluate, substitute, sym
from anyshape.constraints.terms.formula import ge, holds

N, M = sym("n"), sym("m")
SIZES = [(n, m) for n in range(1, 6) for m in (1, 2, 3, 5)]


@dataclass(frozen=True)
class Step:
    """A call: the operator, its arguments by rule, and torch's own function of the values at sizes."""

    op: str
    args: Callable[[Any], tuple[Any, ...]]
    run: Callable[[Any, int, int], Any]
    named: dict[str, Any] | None = None
    place: int | None = None
    """Which of several results goes on."""

    def __str__(self) -> str:
        return self.op


def unary(op: str, run: Callable[[Any], Any], *more: Any, **named: Any) -> Step:
    return Step(op, lambda t: (t, *more), lambda t, n, m: run(t), named)


MAKERS = [
    Step("arange", lambda _: (N,), lambda _, n, m: torch.arange(n)),
    Step("arange", lambda _: (M, N + M), lambda _, n, m: torch.arange(m, n + m)),
    Step("arange", lambda _: (0, 2 * N, 2), lambda _, n, m: torch.arange(0, 2 * n, 2)),
    Step("arange", lambda _: (N, 0, -1), lambda _, n, m: torch.arange(n, 0, -1)),
    Step("arange", lambda _: (N * M,), lambda _, n, m: torch.arange(n * m)),
    Step("linspace", lambda _: (0, N - 1, M), lambda _, n, m: torch.linspace(0, n - 1, m)),
    Step("linspace", lambda _: (N, 0, 3), lambda _, n, m: torch.linspace(n, 0, 3)),
    Step("logspace", lambda _: (0, 3, M), lambda _, n, m: torch.logspace(0, 3, m, base=2.0), {"base": 2.0}),
    Step("full", lambda _: ((M, 2), N), lambda _, n, m: torch.full((m, 2), n)),
    Step("eye", lambda _: (N,), lambda _, n, m: torch.eye(n)),
    Step("ones", lambda _: ((N, M),), lambda _, n, m: torch.ones(n, m), {"dtype": "int64"}),
    Step("tril_indices", lambda _: (N, M), lambda _, n, m: torch.tril_indices(n, m)),
    Step("triu_indices", lambda _: (N, M, 0), lambda _, n, m: torch.triu_indices(n, m)),
    Step("randperm", lambda _: (N,), lambda _, n, m: torch.randperm(n)),
    Step("tensor", lambda _: ((N, 0, M),), lambda _, n, m: torch.tensor([n, 0, m])),
    Step("tensor", lambda _: (((N, 1), (M, N)),), lambda _, n, m: torch.tensor([[n, 1], [m, n]])),
    Step("tensor", lambda _: (N,), lambda _, n, m: torch.tensor(n)),
]  # fmt: skip


def row(tensor: Any) -> Any:
    return tensor.reshape(1, -1) if tensor.dim() < 2 else tensor


STEPS = [
    unary("add", lambda t: t + 1, 1),
    unary("sub", lambda t: t - 2, 2),
    unary("mul", lambda t: t * 3, 3),
    unary("mul", lambda t: t * -1, -1),
    Step("mul", lambda t: (t, N), lambda t, n, m: t * n),
    Step("add", lambda t: (t, M), lambda t, n, m: t + m),
    Step("rsub", lambda t: (t, N), lambda t, n, m: n - t),
    unary("mul", lambda t: t * 0.5, 0.5),
    unary("div", lambda t: t / 2, 2),
    unary("div", lambda t: t / 3, 3),
    Step("div", lambda t: (t, N), lambda t, n, m: t / n),
    unary("div", lambda t: torch.div(t, 2, rounding_mode="floor"), 2, rounding_mode="floor"),
    unary("floor_divide", lambda t: t // 2, 2),
    Step("floor_divide", lambda t: (t, M), lambda t, n, m: t // m),
    unary("remainder", lambda t: t % 3, 3),
    Step("remainder", lambda t: (t, M), lambda t, n, m: t % m),
    unary("pow", lambda t: t**2, 2),
    unary("neg", lambda t: -t),
    unary("abs", lambda t: t.abs()),
    unary("clamp", lambda t: t.clamp(1, 4), 1, 4),
    Step("clamp", lambda t: (t,), lambda t, n, m: t.clamp(max=n), {"max": N}),
    Step("clamp", lambda t: (t, ARANGE), lambda t, n, m: t.clamp(torch.arange(n))),
    unary("pad", lambda t: torch.nn.functional.pad(t, (1, 2), value=3), (1, 2), value=3),
    unary("pad", lambda t: torch.nn.functional.pad(t, (-1, 2)), (-1, 2)),
    Step("pad", lambda t: (t, (0, N - 1)), lambda t, n, m: torch.nn.functional.pad(t, (0, n - 1))),
    unary("ceil", lambda t: t.ceil()),
    unary("floor", lambda t: t.floor()),
    unary("round", lambda t: t.round()),
    unary("long", lambda t: t.long()),
    unary("float", lambda t: t.float()),
    unary("half", lambda t: t.half()),
    unary("to", lambda t: t.to(torch.int8), "int8"),
    unary("to", lambda t: t.to(torch.uint8), "uint8"),
    unary("flip", lambda t: t.flip(0), (0,)),
    unary("roll", lambda t: t.roll(1), 1),
    unary("unsqueeze", lambda t: t.unsqueeze(-1), -1),
    unary("unsqueeze", lambda t: t.unsqueeze(0), 0),
    unary("transpose", lambda t: t.transpose(0, -1), 0, -1),
    unary("flatten", lambda t: t.flatten()),
    unary("reshape", lambda t: t.reshape(-1, 1), (-1, 1)),
    Step("view", lambda t: (t, (N, M)), lambda t, n, m: t.contiguous().view(n, m)),
    unary("repeat", lambda t: t.repeat(2, *[1] * max(t.dim() - 1, 0)), (2, 1)),
    unary("repeat_interleave", lambda t: t.repeat_interleave(2), 2),
    unary("cumsum", lambda t: t.cumsum(0), 0),
    unary("sum", lambda t: t.sum(0), 0),
    unary("sum", lambda t: t.sum()),
    unary("amax", lambda t: t.amax(0), 0),
    unary("amin", lambda t: t.amin()),
    unary("getitem", lambda t: t[0], 0),
    unary("getitem", lambda t: t[1:], Slice(1, None, None)),
    unary("getitem", lambda t: t[::2], Slice(None, None, 2)),
    unary("getitem", lambda t: t[:-1], Slice(None, -1, None)),
    unary("getitem", lambda t: t[-1], -1),
    unary("getitem", lambda t: t[None], None),
    unary("select", lambda t: t.select(-1, 0), -1, 0),
    Step("sort", lambda t: (t,), lambda t, n, m: t.sort().values, None, 0),
    Step("sort", lambda t: (t,), lambda t, n, m: t.sort().indices, None, 1),
    unary("argsort", lambda t: t.argsort()),
    Step("max", lambda t: (t, 0), lambda t, n, m: t.max(0).values, None, 0),
    Step("chunk", lambda t: (t, 1), lambda t, n, m: t.chunk(1)[0], None, 0),
    Step("cat", lambda t: ((t, t),), lambda t, n, m: torch.cat([t, t])),
    Step("stack", lambda t: ((t, t), -1), lambda t, n, m: torch.stack([t, t], -1)),
    Step("meshgrid", lambda t: ((t, t),), lambda t, n, m: torch.meshgrid(t, t, indexing="ij")[1], None, 1),
    Step("add", lambda t: (t, t), lambda t, n, m: t + t),
    Step("minimum", lambda t: (t, t), lambda t, n, m: torch.minimum(t, t)),
    unary("one_hot", lambda t: torch.nn.functional.one_hot(t, 40), 40),
    unary("combinations", lambda t: torch.combinations(t), 2),
    Step("cartesian_prod", lambda t: (t, t), lambda t, n, m: torch.cartesian_prod(t, t)),
    Step("bucketize", lambda t: (t, ARANGE), lambda t, n, m: torch.bucketize(t, torch.arange(n))),
    Step("where", lambda t: _halves(t), lambda t, n, m: torch.where(torch.arange(n) > 1, t, 0)),
    unary("bitwise_and", lambda t: t & 3, 3),
    unary("bitwise_and", lambda t: t & 6, 6),
    unary("bitwise_and", lambda t: t & -2, -2),
    unary("bitwise_or", lambda t: t | 2, 2),
    unary("bitwise_xor", lambda t: t ^ 1, 1),
    unary("bitwise_xor", lambda t: t ^ 5, 5),
    unary("lshift", lambda t: t << 2, 2),
    unary("rshift", lambda t: t >> 1, 1),
    unary("sign", lambda t: t.sign()),
    unary("trunc", lambda t: t.trunc()),
    unary("fmod", lambda t: torch.fmod(t, 3), 3),
    unary("mul", lambda t: t * 0.7, 0.7),
    unary("mul", lambda t: t * 0.1, 0.1),
    unary("mul", lambda t: t * 100, 100),
    unary("mul", lambda t: t * 37, 37),
    unary("remainder", lambda t: t % 100, 100),
    unary("to", lambda t: t.to(torch.int16), "int16"),
    unary("to", lambda t: t.to(torch.bfloat16), "bfloat16"),
    unary("bool", lambda t: t.bool()),
    unary("ne", lambda t: t != 1, 1),
    unary("diag", lambda t: torch.diag(t)),
    unary("tril", lambda t: t.tril()),
    unary("triu", lambda t: t.triu()),
    unary("pad", lambda t: torch.nn.functional.pad(t, (1, 2), value=4), (1, 2), value=4),
    unary("max", lambda t: t.max()),
    Step(
        "masked_fill", lambda t: (t, _halves(t)[0], 7), lambda t, n, m: t.masked_fill(torch.arange(n) > 1, 7)
    ),
    Step("pow", lambda t: (2, t), lambda t, n, m: torch.pow(2, t)),
    Step("arange", lambda t: (0, N, 0.5), lambda t, n, m: torch.arange(0, n, 0.5)),
    Step("arange", lambda t: (60 * N,), lambda t, n, m: torch.arange(60 * n)),
    Step("arange", lambda t: (-130 * M, 70 * N), lambda t, n, m: torch.arange(-130 * m, 70 * n)),
    Step("arange", lambda t: (0, 600 * N, 3), lambda t, n, m: torch.arange(0, 600 * n, 3)),
    Step("arange", lambda t: (0, 1000 * N), lambda t, n, m: torch.arange(0, 1000 * n)),
    unary("diff", lambda t: t.diff()),
    *(unary(op, lambda t, op=op: getattr(torch, op)(t)) for op in FUNCTIONS),
    unary("div", lambda t: t / 2.7, 2.7),
    unary("sub", lambda t: t - 0.3, 0.3),
    unary("clamp", lambda t: t.clamp(-3, 9), -3, 9),
    unary("clamp_min", lambda t: t.clamp_min(1), 1),
    Step("where", lambda t: _where_large(t), lambda t, n, m: torch.where(t < 2, t, _large(t))),
    unary("eq", lambda t: t == 0, 0),
]  # fmt: skip
"""Steps that torch refuses, for the rank or the dtype, end a chain before them."""


class Mismatch(AssertionError):
    """What is said of elements is not so."""


ARANGE: Any = None


def _halves(t: Any) -> tuple[Any, ...]:
    _, positions = GENERATOR.call("arange", (N,), {})
    _, mask = GENERATOR.call("gt", (positions, 1), {})
    return mask, t, 0


def _large(t: torch.Tensor) -> torch.Tensor:
    return torch.log(t.float() / 2).mul(3.0).long()


def _where_large(t: Any) -> tuple[Any, ...]:
    """As T5 has it: a logarithm where the number is not small."""
    value = t
    for op, args in [("float", ()), ("div", (2,)), ("log", ()), ("mul", (3.0,)), ("long", ())]:
        _, value = GENERATOR.call(op, (value, *args), {})
    _, mask = GENERATOR.call("lt", (t, 2), {})
    return mask, t, value


DOMAIN = Domain(("n", "m"), (ge(N, 1), ge(M, 1)))
GENERATOR: Generator


def fresh() -> Generator:
    global ARANGE, GENERATOR
    GENERATOR = Generator(default_rules, DOMAIN)
    _, ARANGE = GENERATOR.call("arange", (N,), {})
    return GENERATOR


def chain(seed: int) -> tuple[Step, ...]:
    draw = random.Random(seed)
    return (draw.choice(MAKERS), *(draw.choice(STEPS) for _ in range(draw.randint(0, 4))))


def compare(steps: Sequence[Step]) -> str:
    """How far the chain was followed: `exact`, `bounded` or `unknown`. Raises Mismatch."""
    generator = fresh()
    value: Any = None
    numbers: dict[tuple[int, int], Any] = {}
    for n, m in SIZES:
        numbers[n, m] = None
    followed = "exact"
    for step in steps:
        reals: dict[tuple[int, int], Any] = {}
        for (n, m), before in numbers.items():
            try:
                reals[n, m] = step.run(before, n, m)
            except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError):
                continue
        if not reals:
            return followed
        try:
            _, result = generator.call(step.op, step.args(value), dict(step.named or {}))
        except TypeError:  # an argument that this rank has no meaning for
            return followed
        value = result[step.place] if isinstance(result, tuple) and step.place is not None else result
        if not isinstance(value, Tensor) or value is Dyn:
            return followed
        numbers = {at: real for at, real in reals.items() if fits(value, real, at)}
        followed = held(value, numbers, steps)
        if followed == "unknown":
            return followed
    return followed


def fits(value: Tensor, real: torch.Tensor, at: tuple[int, int]) -> bool:
    """Whether the rule's shape is torch's at these sizes: elsewhere the rule requires something."""
    sizes = dict(zip("nm", at, strict=True))
    return value.rank == real.dim() and all(
        evaluate(d, sizes) == s if not isinstance(d, int) else d == s
        for d, s in zip(value.shape, real.shape, strict=True)
    )


def held(value: Tensor, numbers: dict[tuple[int, int], Any], steps: Sequence[Step]) -> str:
    elements = of(value)
    if elements is None:
        raise Mismatch(f"{names(steps)}: elements that sizes decide are taken for the user's")
    if isinstance(elements, Truths):
        for at, real in numbers.items():
            sizes = dict(zip("nm", at, strict=True))
            said = [f if isinstance(f, bool) else holds(f, sizes) for f in (elements.some, elements.every)]
            if real.numel() and said != [bool(real.any()), bool(real.all())]:
                raise Mismatch(f"{names(steps)} at {at}: {elements} of {real}")
        return "exact"
    if isinstance(elements, Image):
        ends = image(elements.low, elements.high, elements.steps)
        for real in numbers.values():
            if ends and real.numel() and not ends[0] <= float(real.min()) <= float(real.max()) <= ends[1]:
                raise Mismatch(f"{names(steps)}: {real}, not within {ends}")
        return "bounded"
    pieces = pieces_of(elements, value.shape)
    if elements is UNTRACKED or pieces is None:
        return "unknown"
    followed = "exact" if all(p.attained for p in pieces.pieces) else "bounded"
    for at, real in numbers.items():
        if real.numel() == 0:
            continue
        sizes = dict(zip("nm", at, strict=True))
        bounds = [*_bounds(pieces, sizes)]
        if any(b is None for b in bounds):
            followed = "unknown"
            continue
        low = min(b[0] for b in bounds if b)
        high = max(b[1] for b in bounds if b)
        least, most = float(real.min()), float(real.max())
        rounded = (2**-6 if value.dtype == "bfloat16" else 1e-3) * (1 + abs(most))
        spare = 1.0 if pieces.slack else rounded if pieces.roundings else 1e-6
        if least < low - spare or most > high + spare:
            raise Mismatch(f"{names(steps)} at {at}: {least} to {most}, not within {low} to {high}")
        if followed == "exact" and not pieces.slack and (least > low + spare or most < high - spare):
            raise Mismatch(f"{names(steps)} at {at}: {least} to {most}, and said to be {low} to {high}")
    return followed


def _bounds(pieces: Any, sizes: dict[str, int]) -> Iterator[tuple[float, float] | None]:
    for piece in pieces.pieces:
        if not holds(piece.given, sizes):
            continue
        if piece.term is None or holds(piece.doubt, sizes):
            yield None
            continue
        indices = [
            replace(i, size=_value(i.size, sizes)) for i in piece.indices
        ]
        if any(i.size < 1 for i in indices):
            raise Mismatch(f"{piece} has an index without a value at {sizes}")
        fixed = substitute(piece.term, sizes)
        ends = corners(fixed, indices, lambda dim, bound: isinstance(dim, int) and dim >= bound)
        over = _value(piece.over, sizes)
        if ends is None:
            yield None
        else:
            yield min(map(int, ends[0])) / over, max(map(int, ends[1])) / over


def _value(dim: Dim, sizes: dict[str, int]) -> int:
    return dim if isinstance(dim, int) else evaluate(dim, sizes)


def names(steps: Sequence[Step]) -> str:
    return " | ".join(map(str, steps))


@pytest.mark.parametrize("maker", MAKERS, ids=str)
def test_makers(maker: Step) -> None:
    compare((maker,))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("step", STEPS, ids=str)
def test_steps_after_every_maker(step: Step) -> None:
    for maker in MAKERS:
        compare((maker, step))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(8))
def test_chains(seed: int) -> None:
    found = [compare(chain(seed * 100 + k)) for k in range(100)]
    assert found.count("unknown") < 50


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 200))
def test_more_chains(seed: int) -> None:
    for k in range(200):
        compare(chain(seed * 200 + k))


WRONG: list[tuple[str, Any]] = [
    ("add", transfers.LAWS["sub"]),
    ("long", transfers.LAWS["ceil"]),
    ("cumsum", transfers.LAWS["clone"]),
    ("getitem", transfers.LAWS["clone"]),
    ("remainder", transfers.LAWS["floor_divide"]),
    ("arange", lambda call: between(0, call.result.shape[0])),
]


@pytest.mark.parametrize("op, law", WRONG, ids=lambda w: w if isinstance(w, str) else "")
def test_a_wrong_law_is_found(op: str, law: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfers, "LAWS", {**transfers.LAWS, op: law})
    monkeypatch.setattr("anyshape.constraints.contents.laws.following.LAWS", transfers.LAWS)
    with pytest.raises(Mismatch):
        compare_until(2000)


def compare_until(most: int) -> None:
    for seed in range(most):
        compare(chain(seed))
