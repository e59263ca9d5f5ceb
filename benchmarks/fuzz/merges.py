"""Modules whose calls branch on sizes, so often that the checker merges their paths."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from .control import filled
from .program import Program
from .writer import Tensor, Writer

BLOCKS: Final = 6
"""So many branches make more paths than the checker looks at one by one."""

CONDITIONS: Final = (
    "t.shape[{d}] % {m}", "t.shape[{d}] % {m} == 0", "t.shape[{d}] > {m}", "t.shape[{d}] == {k}",
    "t.shape[0] > t.shape[1]", "(t.shape[{d}] + {k}) % {m} == 1", "t.shape[{d}] // {m} > {k}",
)  # fmt: skip

ARMS: Final = {
    "same": ("t * 2", "t.roll(1, {d})", "F.relu(t)", "t.flip({d})", "t + 1"),
    "new": ("t + 1", "F.pad(t, (0, {k}))", "t[{k}:] * 2", "t[:, :-1].relu()", "t[: t.shape[0] // 2] + 1",
            "torch.cat([t, t], {d})", "t.t() + 1", "t.repeat(2, 1)", "t.new_zeros(t.shape[0], {m})",
            "t[:{m}].clone()", "t + torch.ones({k})", "t[:, ::2] + 1", "t[{m}] + t", "t @ torch.ones({m}, 2)",
            "t * torch.ones({m}, 1)", "t + t.view(-1, {m})[:1, :1]"),
    "view": ("t[:]", "t[{k}:]", "t[:, :-1]", "t[: t.shape[0] // 2]", "t[:, ::2]", "t[:{m}]", "t.t()",
             "t.narrow(0, 0, {m})", "t[: t.shape[1]]", "t.view({k}, -1)", "t.narrow(1, {k}, 1)",
             "t.view(-1, {m})", "t[{m}][None]", "t.unflatten(1, ({m}, -1))[:, 0]"),
    "number": ("t.shape[0]", "t.shape[1] - 1", "{m}", "t.shape[{d}] // 2", "2 * t.shape[{d}]", "{k}",
               "t.shape[0] + t.shape[1]", "t.shape[0] - {k}"),
    "index": ("torch.arange(t.shape[0])", "torch.zeros(t.shape[0]).long()", "torch.arange(t.shape[0]) // 2",
              "torch.full((t.shape[0],), {k})", "torch.arange(t.shape[0]).flip(0)",
              "torch.arange(t.shape[0]) + {k}", "t[:, 0].argsort()", "torch.arange({k}, t.shape[0] + {k})"),
}  # fmt: skip
"""The results of the two paths of a block, by kind: both paths return new memory, or both a view."""

USES: Final = {
    "same": ("t = s",),
    "new": ("t = s",),
    "view": ("t = s",),
    "number": ("t = t[:s]", "t = torch.cat([t, torch.ones(s, t.shape[1])])", "t = t * torch.arange({m})[s]",
               "t = t + torch.ones({m}, 1)[s]", "t = F.pad(t, (0, s))", "t = t.narrow(0, 0, s)"),
    "index": ("t = t[s]", "t = t * torch.ones({k} + {m}, 1)[s]", "t = t + F.embedding(s, torch.ones({m}, 1))",
              "t = t.index_select(0, s)"),
}  # fmt: skip
"""The statements with which the caller uses the result of a block, `s`."""

RESULTS: Final = (
    "t",
    "t.view(-1, {m})",
    "t + x",
    "t.sum(0)",
    "t[{k}]",
    "t.view(2, -1)",
    "t @ x.t()",
    "t[:, {k}]",
)


def merges(w: Writer, name: str) -> Program:
    """A chain of blocks, each with a branch of its own; of one or two it matters which way they go."""
    x = w.input("x", *w.rng.choice((("a", "b"), ("a", "b"), ("a", "2 * b"), ("a", "4"))))
    texts, lines = [], []
    kinds = ["same"] * BLOCKS
    for place in w.rng.sample(range(BLOCKS), w.rng.choice((1, 1, 2))):
        kinds[place] = w.rng.choice(("new", "view", "number", "index"))
    for number, kind in enumerate(kinds):
        texts.append(_block(w, f"Block{number}", kind))
        w.state.append(f"self.block{number} = Block{number}()")
        lines += [f"s = self.block{number}(t)", filled(w, _numbers(w, w.rng.choice(USES[kind])))]
        w.used.append(f"merge {kind}")
    w.emit("t = x")
    for line in lines:
        w.emit(line)
    w.tensors.append(Tensor("t", None))
    result = filled(w, _numbers(w, w.rng.choice(RESULTS)))
    made = w.program(name, result if w.rng.random() < 0.8 else f"{result}, {x.name}")
    return replace(made, source="\n\n".join([*texts, made.source]))


def _block(w: Writer, name: str, kind: str) -> str:
    """The text of a module class with a branch on the sizes of what it is called with."""
    arms = [_numbers(w, w.rng.choice(ARMS[kind])) for _ in range(2)]
    condition = _numbers(w, w.rng.choice(CONDITIONS))
    first = "raise ValueError('refused')" if w.rng.random() < 0.05 else f"return {arms[0]}"
    return (
        f"class {name}(nn.Module):\n    def forward(self, t):\n"
        f"        if {condition}:\n            {first}\n        return {arms[1]}\n"
    )


def _numbers(w: Writer, text: str) -> str:
    """The text with its numbers drawn: `d` a dim, `k` a small one, `m` one of 2 and more."""
    for hole, pool in (("{d}", (0, 1)), ("{k}", (1, 1, 2, 3)), ("{m}", (2, 2, 3, 4, 6, 9))):
        while hole in text:
            text = text.replace(hole, str(w.rng.choice(pool)), 1)
    return text
