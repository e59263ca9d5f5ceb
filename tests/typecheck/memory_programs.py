"""Random programs about memory: writes through views, layouts that are viewed, indices into nothing.

Each seed gives one program, with the sizes that it is to be compared with eager runs at.
"""

from __future__ import annotations

import linecache
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

VIEWS = {
    1: """{v}[:1] | {v}[1:] | {v}[:-1] | {v}[::2] | {v}[None] | {v}[:1].expand(3) | {v}.view(1, -1)
    | {v}[:, None]
        | {v}[None].expand(2, -1) | {v}.view(-1, 2) | {v}.unfold(0, 2, 1) | {v}.reshape(-1, x.shape[1])""",
    2: """{v}.t() | {v}[:1] | {v}[1:] | {v}[:-1] | {v}[:, :1] | {v}[:, 1:] | {v}[::2] | {v}[1::2] | {v}[0]
        | {v}[-1] | {v}[:, 0] | {v}.unbind(0)[0] | {v}.view(-1) | {v}.reshape(-1) | {v}.expand(2, -1, -1)[0]
        | {v}[:, :1].expand(-1, 3) | {v}[:1].expand(2, -1) | {v}.narrow(1, 0, 1) | {v}.diagonal()
        | {v}.as_strided((2, 2), (1, 1)) | {v}.as_strided((x.shape[1], 2), (1, 1)) | {v}.split(1)[0]
        | {v}.chunk(2, 1)[0] | {v}.contiguous() | {v}.unsqueeze(0)[0] | {v}.flatten()
    | {v}[x.shape[0] // 2:]""",
}
OPERANDS = "{v} | {v} | {v} | {v}[:1] | {v}[1:] | {v}.clone() | y | x | x[0] | {v}[:x.shape[0]]"
WRITES = """{t} += {o} | {t} *= {o} | {t}.add_({o}) | {t}.copy_({o}) | {t}[:] = {o} | {t}[1:] = {o}
    | {t}[:1] = {o} | {t}[...] = {o} | {t}.lerp_({o}, 0.5) | {t}.addcmul_({o}, {p}) | {t}.fill_(1.0)
    | {t}.mul_(2)
    | {t}.index_copy_(0, {i}, {o}) | {t}.index_add_(0, {i}, {o}) | {t}[{i}] = {o}
    | {t}.index_put_(({i},), {o})
    | {t}.masked_fill_({o} > 0, 1.0) | torch.add({o}, 1, out={t}) | torch.mul({o}, {p}, out={t})
    | torch.exp({o}, out={t}) | torch.cat([{o}], out={t}) | {t}.index_fill_(0, {i}, 1.0) | {t}.cumsum_(0)
    | {t}.scatter_(0, torch.zeros_like({t}, dtype=torch.long), {o}) | {t}.t_() | {t}.div_({o})"""
IMAGES = """x | x.contiguous(memory_format=torch.channels_last) | x.permute(0, 2, 3, 1) | x.transpose(1, 2)
    | x[:, :, ::2] | x[:, :1].expand(-1, 3, -1, -1) | x.permute(0, 3, 1, 2)
    | x.to(memory_format=torch.channels_last) | x.transpose(0, 1) | x[:, :, :1] | x[..., 1:]"""
STEPS = """F.interpolate(y, scale_factor=2) | F.adaptive_avg_pool2d(y, 2) | F.adaptive_avg_pool2d(y, 1)
    | F.max_pool2d(y, 2) | F.avg_pool2d(y, 2, 1) | F.pad(y, (1, 1)) | y.roll(1, 2) | y.flip(1) | y * 2 | y + z
    | torch.cat([y, y], 1) | torch.cat([y, x], 0) | y.clone() | y.softmax(1) | y.cumsum(2)
    | y.sum(1, keepdim=True)
    | y.mean((2, 3), keepdim=True) | F.layer_norm(y, y.shape[-1:]) | y.transpose(1, 2) | y.permute(0, 2, 3, 1)
    | y.contiguous() | y.contiguous(memory_format=torch.channels_last) | F.instance_norm(y)
    | torch.where(y > 0, y, 0) | y.sort(1).values | F.gelu(y) | y.double() | y.repeat(1, 2, 1, 1)
    | torch.stack([y, y], 1)[:, 0] | torch.zeros_like(y) | y.index_select(1, torch.arange(y.shape[1]))
    | y[:, torch.arange(y.shape[1])] | F.normalize(y) | y.narrow(1, 0, 1) | y.amax(1, keepdim=True)
    | y.clamp(0, 1)"""
SPLITS = """y.flatten(2).unflatten(2, y.shape[2:]) | y.flatten(0, 1).unflatten(0, y.shape[:2])
    | y.flatten(2).transpose(1, 2).transpose(1, 2).view(y.shape)
    | y.reshape(y.shape[0], -1, y.shape[1]).transpose(1, 2).view(y.shape)
    | y.permute(0, 2, 3, 1).reshape(y.shape[0], -1, y.shape[1]).transpose(1, 2).unflatten(2, y.shape[2:])
    | y.flatten(1, 2).transpose(1, 2).unflatten(2, (y.shape[1], y.shape[2]))
    | y.transpose(1, 2).reshape(-1, y.shape[1], y.shape[3]).unflatten(0, (y.shape[0], y.shape[2]))
    | y.view(y.shape[0], 1, *y.shape[1:]).transpose(1, 2).squeeze(2) | y.unsqueeze(1).flatten(0, 1)
    | y.permute(2, 3, 0, 1).flatten(0, 1).unflatten(0, y.shape[2:]) | y.transpose(0, 1)
    | y.permute(0, 3, 1, 2) | y.reshape(-1, y.shape[3]).t().view(1, y.shape[3], y.shape[0], -1)"""
ENDS = """.view(-1) | .view(y.shape[0], -1) | .flatten(2).view(-1) | .transpose(1, 2).flatten(2).view(-1)
    | .view(y.shape[0], y.shape[1], -1) | .permute(0, 2, 3, 1).view(-1) | .flatten(0, 1).view(-1)
    | .permute(0, 2, 3, 1).reshape(-1, y.shape[1]).view(y.shape[0], -1) | .view(-1, y.shape[-1])"""
ITEMS = """: | 1: | :-1 | ::2 | None | 0 | -1 | torch.tensor([0, 1]) | torch.tensor([2])
    | torch.arange(2) | [0, 1]
    | torch.arange(y.shape[0]) | torch.arange(x.shape[0]) | torch.tensor([[0], [1]]) | [-1] | 1:2
    | y.shape[0]:
    | torch.zeros(y.shape[0], dtype=torch.long) | torch.arange(x.shape[1])[:, None] | torch.arange(0) | 2:"""
CONSUMERS = """index_select({d}, i) | index_fill({d}, i, 1.0) | index_add({d}, i, x.new_zeros(s))
    | index_copy({d}, i, x.new_zeros(s)) | take(i) | clone().index_put_((i, i), x.new_zeros(()))
    | gather({d}, i.view([-1 if k == {d} else 1 for k in range(3)]).expand(s))"""


@dataclass(frozen=True)
class Written:
    """A program as text, its inputs as a spec, and the sizes at which it is compared."""

    text: str
    spec: str
    symbols: tuple[str, ...]
    upto: int

    def compiled(self) -> Callable[..., Any]:
        """The program, whose lines can be found by who looks for them."""
        name = f"/memory_programs/{abs(hash(self.text))}.py"
        linecache.cache[name] = len(self.text), None, self.text.splitlines(True), name
        scope: dict[str, Any] = {"torch": torch, "F": F}
        exec(compile(self.text, name, "exec"), scope)
        program: Callable[..., Any] = scope["program"]
        return program

    def arguments(self, sizes: dict[str, int]) -> list[torch.Tensor]:
        """Inputs of these sizes."""
        shapes = [line.partition("[")[2].rstrip("]").split(", ") for line in self.spec.split("; ")]
        return [torch.rand([sizes[name] for name in shape]) for shape in shapes]


def one(rng: random.Random, choices: str) -> str:
    return rng.choice([choice.strip() for choice in " ".join(choices.split()).split(" | ")])


def writes(rng: random.Random) -> Written:
    """Views of a tensor, and views of these; then something is written into one of them."""
    lines, ranks = ["z = x.clone()"], {"z": 2}
    for name in ("u", "v", "w")[: rng.randint(1, 3)]:
        source = rng.choice(list(ranks))
        text = one(rng, VIEWS[ranks[source]]).format(v=source)
        example = torch.zeros((2, 2) if ranks[source] == 2 else 4)
        rank = eval(text, {source: example, "x": torch.zeros(2, 2)}).dim()
        if rank in VIEWS:
            lines.append(f"{name} = {text}")
            ranks[name] = rank
    for _ in range(rng.randint(1, 2)):
        target = rng.choice(list(ranks))
        read = [one(rng, OPERANDS).format(v=rng.choice(list(ranks))) for _ in range(2)]
        index = f"torch.arange({target}.shape[0])"
        lines.append(one(rng, WRITES).format(t=target, o=read[0], p=read[1], i=index))
    return written("x, y", [*lines, "return z"], "x: [a, n]; y: [a, n]", ("a", "n"), 4)


def layouts(rng: random.Random) -> Written:
    """An image that lies in memory somehow goes through kernels, and is viewed."""
    lines = [f"y = {one(rng, IMAGES)}", *(f"y = {one(rng, STEPS)}" for _ in range(rng.randint(1, 2)))]
    names = ("b", "c", "h", "w")
    return written("x, z", [*lines, f"return y{one(rng, ENDS)}"], "x: [b, c, h, w]; z: [w]", names, 3)


def splits(rng: random.Random) -> Written:
    """An image goes through views that split and merge its axes, and then as in `layouts`."""
    lines = [f"y = {one(rng, IMAGES)}", *(f"y = {one(rng, SPLITS)}" for _ in range(rng.randint(1, 2)))]
    lines.append(f"y = {one(rng, STEPS)}")
    names = ("b", "c", "h", "w")
    return written("x, z", [*lines, f"return y{one(rng, ENDS)}"], "x: [b, c, h, w]; z: [w]", names, 3)


def indices(rng: random.Random) -> Written:
    """Index tensors that the sizes decide, into dims that may be too small, or beside one that is empty."""
    items = ", ".join(one(rng, ITEMS) for _ in range(rng.randint(1, 3)))
    dim = rng.randrange(3)
    index = one(rng, "torch.tensor([0, 1]) | torch.arange(y.shape[0]) | torch.tensor([2])")
    lines = ["z = x.clone()", f"i = {index}"]
    match rng.randrange(10):
        case 0 | 1:
            lines += [f"z[{items}] = 1.0", "return z"]
        case 2 | 3 | 4:
            lines += ["s = list(x.shape)", f"s[{dim}] = i.shape[0]"]
            lines.append(f"return z.{one(rng, CONSUMERS).format(d=dim)}")
        case _:
            lines.append(f"return z[{items}]")
    return written("x, y", lines, "x: [a, b, c]; y: [n]", ("a", "b", "c", "n"), 3)


def written(inputs: str, lines: list[str], spec: str, symbols: tuple[str, ...], upto: int) -> Written:
    return Written("\n    ".join([f"def program({inputs}):", *lines]) + "\n", spec, symbols, upto)


KINDS: dict[str, Callable[[random.Random], Written]] = {
    "writes": writes,
    "layouts": layouts,
    "splits": splits,
    "indices": indices,
}


def program(kind: str, seed: int) -> Written:
    return KINDS[kind](random.Random(f"{kind} {seed}"))
