"""Expressions of all kinds over float tensors: what other families fill their blocks with."""

from __future__ import annotations

from typing import Final

from .program import Program
from .writer import Construct, Tensor, Writer

C = Construct

EXPRESSIONS: Final = (
    C("add-one", "{t} + 1"),
    C("relu", "F.relu({t})"),
    C("add", "{t} + {u}", "!"),
    C("mul-self", "{t} * {t}.sum(-1, keepdim=True)"),
    C("outer", "{t1}[:, None] * {u1}", "t1.0, u1.0"),
    C("matmul", "{t2} @ {t2}.t()", "t2.0, t2.0"),
    C("mm", "torch.mm({t2}, {u2})", "t2.0, u2.1"),
    C("linear", "F.linear({t}, torch.ones({k}, {t}.shape[-1]))", "*t[:-1], {k}"),
    C("linear-fixed", "F.linear({t2}, torch.ones({k}, {j}))", "t2.0, {k}"),
    C("sum", "{t}.sum(0)", "*t[1:]"),
    C("mean-keep", "{t}.mean(-1, keepdim=True)", "*t[:-1], 1"),
    C("max", "{t}.max(0).values", "*t[1:]"),
    C("amax", "{t}.amax(-1)", "*t[:-1]"),
    C("max-all", "{t}.max()", ""),
    C("cat", "torch.cat([{t}, {t}], 0)", "2 * t.0, *t[1:]"),
    C("cat-last", "torch.cat([{t}, {u}], -1)", "!"),
    C("stack", "torch.stack([{t}, {t}], 1)", "t.0, 2, *t[1:]"),
    C("stack-two", "torch.stack([{t}, {u}])", "2, *t"),
    C("transpose", "{t2}.t()", "t2.1, t2.0"),
    C("view-flat", "{t2}.view(-1)", "t2.0 * t2.1"),
    C("view-columns", "{t}.view(-1, {k})", "?, {k}"),
    C("reshape-columns", "{t}.reshape({k}, -1)", "{k}, ?"),
    C("view-split", "{t2}.view({t2}.shape[0], {k}, {t2}.shape[1] // {k})", "t2.0, {k}, t2.1 // {k}"),
    C("flatten", "{t3}.flatten(1)", "t3.0, t3.1 * t3.2"),
    C("slice", "{t}[1:]", "t.0 - 1, *t[1:]"),
    C("slice-size", "{t}[:{n}]", "?, *t[1:]"),
    C("slice-half", "{t}[: {t}.shape[0] // 2]", "t.0 // 2, *t[1:]"),
    C("index", "{t}[{k}]", "*t[1:]"),
    C("index-last", "{t}[..., -1]", "*t[:-1]"),
    C("chunk", "{t}.chunk(2, -1)[0]", "*t[:-1], (t.-1 + 1) // 2"),
    C("chunk-two", "{t}.chunk(2, 0)[1]", "t.0 // 2, *t[1:]"),
    C("split-sum", "sum(c.sum() for c in {t}.split({k}))", ""),
    C("unbind", "{t}.unbind(0)[{k}]", "*t[1:]"),
    C("conv1d", "F.conv1d({t2}[:, None], torch.ones(1, 1, {k}))[:, 0]", "t2.0, t2.1 - {k} + 1"),
    C("conv1d-stride", "F.conv1d({t2}[:, None], torch.ones(2, 1, {k}), stride=2, padding=1)", "t2.0, 2, ?"),
    C("conv2d", "F.conv2d({t2}[None, None], torch.ones(1, 1, {k}, {k}))[0, 0]",
        "t2.0 - {k} + 1, t2.1 - {k} + 1"),
    C("max-pool", "F.max_pool1d({t2}, {k})", "t2.0, t2.1 // {k}"),
    C("avg-pool", "F.avg_pool2d({t2}[None], {k}, 2, ceil_mode=True)[0]", "?, ?"),
    C("adaptive", "F.adaptive_avg_pool1d({t2}, {k})", "t2.0, {k}"),
    C("interpolate", "F.interpolate({t2}[None], scale_factor=2)[0]", "t2.0, 2 * t2.1"),
    C("interpolate-size", "F.interpolate({t2}[None, None], ({n}, {k}), mode='bilinear')[0, 0]", "{n}, {k}"),
    C("pad", "F.pad({t2}, ({k}, 1))", "t2.0, t2.1 + {k} + 1"),
    C("pad-negative", "F.pad({t2}, (-{k}, 0))", "t2.0, t2.1 - {k}"),
    C("pad-reflect", "F.pad({t2}, ({k}, {k}), mode='reflect')", "t2.0, t2.1 + 2 * {k}"),
    C("pad-circular", "F.pad({t2}, (0, {k}), mode='circular')", "t2.0, t2.1 + {k}"),
    C("softmax", "{t}.softmax(-1)"),
    C("layer-norm", "F.layer_norm({t}, {t}.shape[-1:])"),
    C("layer-norm-fixed", "F.layer_norm({t}, ({k},))"),
    C("group-norm", "F.group_norm({t2}, {k})"),
    C("cumsum", "{t}.cumsum({d})"),
    C("topk", "{t}.topk({k}, -1).values", "*t[:-1], {k}"),
    C("sort", "{t}.sort(0).values"),
    C("unfold", "{t}.unfold(-1, {k}, 1)", "*t[:-1], t.-1 - {k} + 1, {k}"),
    C("expand", "{t1}.expand({k}, -1)", "{k}, *t1"),
    C("expand-size", "{t}[:1].expand({n}, *{t}.shape[1:])", "{n}, *t[1:]"),
    C("repeat", "{t2}.repeat(2, {k})", "2 * t2.0, t2.1 * {k}"),
    C("roll", "{t}.roll(1, 0)"),
    C("flip", "{t}.flip(-1)"),
    C("permute", "{t3}.permute(1, 2, 0)", "t3.1, t3.2, t3.0"),
    C("permute-view", "{t3}.permute(1, 2, 0).reshape({t3}.shape[1], -1).view(-1)", "t3.0 * t3.1 * t3.2"),
    C("roll-view", "{t2}.roll(1, 1).t().flatten().view(-1)", "t2.0 * t2.1"),
    C("channels-last-view",
      "{t2}[None, None].contiguous(memory_format=torch.channels_last).mul(2).view({t2}.shape[0], -1)",
      "t2.0, t2.1"),
    C("interpolate-view",
      "F.interpolate({t3}[None].contiguous(memory_format=torch.channels_last), "
      "scale_factor=2).view({t3}.shape[0], -1)",
      "t3.0, 4 * t3.1 * t3.2"),
    C("einsum", "torch.einsum('ij,jk->ik', {t2}, {u2})", "t2.0, u2.1"),
    C("einsum-self", "torch.einsum('ij,ij->i', {t2}, {u2})", "t2.0"),
    C("bmm", "torch.bmm({t3}, {t3}.transpose(1, 2))", "t3.0, t3.1, t3.1"),
    C("norm", "{t}.norm(dim=-1)", "*t[:-1]"),
    C("squeeze", "{t}.squeeze(0)", "!"),
    C("unsqueeze", "{t}.unsqueeze(1)", "t.0, 1, *t[1:]"),
    C("where", "torch.where({t} > 0, {t}, {u})", "!"),
    C("gather-arange", "{t}[torch.arange({t}.shape[0] - 1, -1, -1)]"),
    C("diag", "torch.diag({t2})", "min(t2.0, t2.1)"),
    C("tril", "{t2}.tril()"),
    C("kron", "torch.kron({t1}, {u1})", "t1.0 * u1.0"),
    C("cdist", "torch.cdist({t2}, {u2})", "t2.0, u2.0"),
    C("tensordot", "torch.tensordot({t2}, {u2}, 1)", "t2.0, u2.1"),
    C("broadcast", "torch.broadcast_tensors({t}, {u})[0]", "!"),
    C("pixel-shuffle", "F.pixel_shuffle({t3}[None], 2)[0]", "t3.0 // 4, 2 * t3.1, 2 * t3.2"),
    C("attention", "F.scaled_dot_product_attention({t2}, {u2}, {u2})", "t2.0, u2.1"),
    C("fft", "torch.fft.rfft({t}).real", "*t[:-1], t.-1 // 2 + 1"),
    C("fold-sum", "F.fold(F.unfold({t2}[None, None], {k}), {t2}.shape, {k})[0, 0]", "*t2"),
    C("movedim", "{t3}.movedim(-1, 0)", "t3.2, t3.0, t3.1"),
    C("glu", "F.glu({t}, -1)", "*t[:-1], t.-1 // 2"),
    C("median", "{t}.median(-1).values", "*t[:-1]"),
    C("std", "{t}.std(0)", "*t[1:]"),
    C("logsumexp", "{t}.logsumexp(0)", "*t[1:]"),
    C("hstack", "torch.hstack([{t}, {u}])", "!"),
    C("meshgrid", "torch.meshgrid({t1}, {u1}, indexing='ij')[0]", "t1.0, u1.0"),
    C("combinations", "torch.combinations({t1})", "?, 2"),
    C("block-diag", "torch.block_diag({t2}, {u2})", "t2.0 + u2.0, t2.1 + u2.1"),
    C("linspace-times", "{t1} * torch.linspace(0, 1, {t1}.shape[0])"),
    C("arange-row", "{t2} + torch.arange({t2}.shape[1])", "*t2"),
    C("arange-fixed", "{t2} + torch.ones({k})", "!"),
    C("one-hot-dot", "F.one_hot(torch.arange({k}), {n}).float() @ torch.ones({n})", "{k}"),
    C("narrow", "{t}.narrow(0, {k}, {j})", "{j}, *t[1:]"),
    C("unflatten", "{t}.unflatten(-1, ({k}, -1))", "*t[:-1], {k}, ?"),
    C("tensor-split", "torch.tensor_split({t}, 3)[2]", "?, *t[1:]"),
    C("repeat-interleave", "{t}.repeat_interleave({k}, 0)", "t.0 * {k}, *t[1:]"),
    C("as-strided", "{t1}.as_strided(({t1}.shape[0] - 1, 2), (1, 1))", "t1.0 - 1, 2"),
    C("zeros-size", "{t2}.new_zeros({t2}.shape[1], {n})", "t2.1, {n}"),
    C("item-shape", "torch.zeros(int({t2}.shape[0] * 0.5), 2)", "?, 2"),
)  # fmt: skip


def inputs(w: Writer) -> Tensor:
    """One to three inputs whose sizes are related."""
    least = w.rng.choice((None, None, None, 0))
    for symbol in ("a", "b"):
        w.symbol(symbol, least)
    x = w.input("x", *w.rng.choice((("a", "b"), ("a", "b"), ("a", "b", "c"), ("a",), ("a", "2 * b"), ("a",
        "4"), ("a", "b", "b"))))
    if w.rng.random() < 0.5:
        w.input("y", *w.rng.choice((("b",), ("b", "c"), ("a", "b"), ("c", "b"), ("a",), ("c",), ("3", "b"))))
    if w.rng.random() < 0.15:
        w.integer("n")
    if w.rng.random() < 0.4:
        w.unpack(x)
    return x


def steps(w: Writer, count: int) -> Tensor:
    """So many expressions, each of tensors in scope. Returns the last."""
    made = None
    for _ in range(count):
        made = step(w) or made
    return made or w.tensors[-1]


def step(w: Writer) -> Tensor | None:
    """One expression whose operands have the ranks that it needs."""
    for construct in w.rng.sample(EXPRESSIONS, 12):
        if (made := w.apply(construct)) is not None:
            return made
    return None


def operators(w: Writer, name: str) -> Program:
    """A chain of expressions."""
    inputs(w)
    made = steps(w, w.rng.choice((2, 3, 3, 4, 5)))
    return w.program(name, made.name if w.rng.random() < 0.8 else f"{made.name}, {w.tensors[-2].name}")
