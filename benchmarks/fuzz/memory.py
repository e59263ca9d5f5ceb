"""Programs that view tensors and write into them in place."""

from __future__ import annotations

from typing import Final

from .program import Program
from .writer import Construct, Tensor, Writer

C = Construct

BASES: Final = (
    C("base-clone", "{t}.clone()", "*t"),
    C("base-zeros", "torch.zeros({n}, {m})", "{n}, {m}"),
    C("base-square", "torch.ones({n}, {n})", "{n}, {n}"),
    C("base-vector", "torch.zeros({n})", "{n}"),
    C("base-cube", "torch.zeros({n}, {m}, {k})", "{n}, {m}, {k}"),
    C("base-plus", "{t} + 1", "*t"),
    C("base-contiguous", "{t}.contiguous()", "*t"),
    C("base-empty-strided", "torch.empty_strided(({n}, {m}), ({m}, 1)).zero_()", "{n}, {m}"),
    C("base-transposed", "torch.zeros({n}, {m}).t()", "{m}, {n}"),
    C("base-expanded", "torch.zeros(1, {n}).expand({m}, -1)", "{m}, {n}"),
    C("base-expanded-small", "torch.zeros({n}, 1).expand(-1, {k})", "{n}, {k}"),
    C("base-matmul", "torch.ones({n}, {k}) @ torch.ones({k}, {m})", "{n}, {m}"),
    C("base-like", "torch.zeros_like({t2}.t())", "t2.1, t2.0"),
)

VIEWS: Final = (
    C("v-from-one", "{v}[1:]", "v.0 - 1, *v[1:]"),
    C("v-first", "{v}[0]", "*v[1:]"),
    C("v-last", "{v}[-1]", "*v[1:]"),
    C("v-number", "{v}[{k}]", "*v[1:]"),
    C("v-head", "{v}[:{k}]", "{k}, *v[1:]"),
    C("v-tail", "{v}[-{k}:]", "{k}, *v[1:]"),
    C("v-but-last", "{v}[:-1]", "v.0 - 1, *v[1:]"),
    C("v-second", "{v}[::2]", "(v.0 + 1) // 2, *v[1:]"),
    C("v-column", "{v2}[:, 0]", "v2.0"),
    C("v-columns", "{v2}[:, 1:]", "v2.0, v2.1 - 1"),
    C("v-column-last", "{v}[..., -1]", "*v[:-1]"),
    C("v-ellipsis", "{v}[..., :{k}]", "*v[:-1], {k}"),
    C("v-t", "{v2}.t()", "v2.1, v2.0"),
    C("v-transpose", "{v}.transpose(0, -1)", "!"),
    C("v-T", "{v2}.T", "v2.1, v2.0"),
    C("v-mT", "{v2}.mT", "v2.1, v2.0"),
    C("v-unsqueeze", "{v}.unsqueeze(0)", "1, *v"),
    C("v-unsqueeze-last", "{v}.unsqueeze(-1)", "*v, 1"),
    C("v-none", "{v}[None]", "1, *v"),
    C("v-expand", "{v1}.expand({k}, -1)", "{k}, *v1"),
    C("v-expand-size", "{v1}.expand({n}, *{v1}.shape)", "{n}, *v1"),
    C("v-expand-as", "{v}[:1].expand_as({v})", "*v"),
    C("v-broadcast", "{v1}.broadcast_to({k}, {v1}.shape[0])", "{k}, *v1"),
    C("v-flat", "{v}.view(-1)", "!"),
    C("v-flat-two", "{v2}.view(-1)", "v2.0 * v2.1"),
    C("v-rows", "{v2}.view({v2}.shape[0], -1)", "*v2"),
    C("v-rows-small", "{v}.view(-1, {k})", "?, {k}"),
    C("v-swap-view", "{v2}.view({v2}.shape[1], {v2}.shape[0])", "v2.1, v2.0"),
    C("v-narrow", "{v}.narrow(0, {k}, 1)", "1, *v[1:]"),
    C("v-narrow-size", "{v}.narrow(0, 1, {v}.shape[0] - 1)", "v.0 - 1, *v[1:]"),
    C("v-select", "{v}.select(-1, {k})", "*v[:-1]"),
    C("v-unbind", "{v}.unbind(0)[0]", "*v[1:]"),
    C("v-unbind-last", "{v}.unbind(-1)[-1]", "*v[:-1]"),
    C("v-chunk", "{v}.chunk(2)[0]", "(v.0 + 1) // 2, *v[1:]"),
    C("v-chunk-last", "{v}.chunk({k}, dim=0)[-1]", "?, *v[1:]"),
    C("v-split", "{v}.split({k})[-1]", "?, *v[1:]"),
    C("v-split-first", "{v}.split({k}, -1)[0]", "*v[:-1], {k}"),
    C("v-tensor-split", "torch.tensor_split({v}, 3)[1]", "?, *v[1:]"),
    C("v-diagonal", "{v2}.diagonal()", "min(v2.0, v2.1)"),
    C("v-diagonal-off", "{v2}.diagonal(1)", "?"),
    C("v-diag-embed", "torch.diag_embed({v1})", "v1.0, v1.0"),
    C("v-as-strided", "{v}.as_strided(({n}, 2), (1, 1))", "{n}, 2"),
    C("v-as-strided-step", "{v}.as_strided(({k},), (2,), 1)", "{k}"),
    C("v-as-strided-rows", "{v2}.as_strided(({v2}.shape[0],), ({v2}.shape[1],))", "v2.0"),
    C("v-unfold", "{v}.unfold(0, {k}, {j})", "?, *v[1:], {k}"),
    C("v-unfold-last", "{v}.unfold(-1, 2, 1)", "*v[:-1], ?, 2"),
    C("v-squeeze", "{v}.squeeze(0)", "!"),
    C("v-squeeze-all", "{v}.squeeze()", "!"),
    C("v-permute", "{v3}.permute(2, 0, 1)", "v3.2, v3.0, v3.1"),
    C("v-movedim", "{v3}.movedim(0, -1)", "v3.1, v3.2, v3.0"),
    C("v-swapaxes", "{v2}.swapaxes(0, 1)", "v2.1, v2.0"),
    C("v-flatten", "{v3}.flatten(1)", "v3.0, v3.1 * v3.2"),
    C("v-flatten-all", "{v2}.flatten()", "v2.0 * v2.1"),
    C("v-reshape", "{v2}.reshape(-1)", "v2.0 * v2.1"),
    C("v-reshape-swap", "{v2}.reshape({v2}.shape[1], -1)", "v2.1, v2.0"),
    C("v-unflatten", "{v}.unflatten(0, ({k}, -1))", "{k}, ?, *v[1:]"),
    C("v-detach", "{v}.detach()", "*v"),
    C("v-data", "{v}.data", "*v"),
    C("v-alias", "{v}.view_as({v})", "*v"),
    C("v-contiguous", "{v}.contiguous()", "*v"),
    C("v-flip", "{v}.flip(0)", "*v"),
    C("v-real", "torch.view_as_complex({v}.unsqueeze(-1).repeat_interleave(2, -1)).real", "*v"),
    C("v-mask", "{v}[{v} > 0]", "?"),
    C("v-hsplit", "{v2}.hsplit(2)[1]", "v2.0, v2.1 // 2"),
    C("v-vector-index", "{v}[torch.tensor([0, {k}])]", "2, *v[1:]"),
    C("v-index-and-slice", "{v2}[:, torch.tensor([0, 1])]", "v2.0, 2"),
    C("v-channels-last", "{v2}[None, None].contiguous(memory_format=torch.channels_last)", "1, 1, *v2"),
)  # fmt: skip

WRITES: Final = (
    "{v}.add_({s})", "{v}.copy_({s})", "{v}[:] = {s}", "{v}[...] = {s}", "{v}[1:] = {s}[:-1]",
    "{v}[0] = {s}[-1]",
    "{v}[1:] = {v}[:-1]", "{v}[{k}] = 0", "{v}[:{k}] = 1.0", "{v}[:{k}] = {s}[:{k}]", "{v}.mul_(2)",
    "{v} += {s}",
    "{v} -= {v}.flip(0)", "{v}.zero_()", "{v}.fill_({k})", "torch.add({s}, 1, out={v})",
    "torch.mul({s}, {v}, out={v})",
    "torch.add({v}, 1, out={z})", "torch.sum({s}, 0, out={v})",
    "{v}.index_copy_(0, torch.tensor([0]), {s}[:1])",
    "{z}.index_copy_(0, torch.arange({z}.shape[0]), {v})", "{v}.index_add_(0, torch.tensor([0, 1]), {s}[:2])",
    "{v}.index_add_(0, torch.arange({k}), {z}[:{k}])", "{v}.index_fill_(0, torch.tensor([{k}]), 0.0)",
    "{v}.masked_fill_({v} > 0, 0.0)", "{v}.masked_scatter_({v} > -1, {s})", "{v}.lerp_({s}, 0.5)",
    "{v}.lerp_({v}[:1], 0.5)",
    "{v}.clamp_(0, 1)", "{v}.cumsum_(0)", "{v}.fill_diagonal_(1.0)", "{v}.addcmul_({s}, {s})",
    "{v}.addmm_({v}, {v})",
    "{v}.t_()", "{v}.unsqueeze_(0)", "{v}.squeeze_()", "{v}.transpose_(0, -1)",
    "{v}.scatter_(0, torch.zeros_like({s}).long(), {s})",
    "{v}.scatter_(0, torch.zeros({v}.shape, dtype=torch.long), 1.0)", "{v}.copy_({z})", "{z}.copy_({v})",
    "{z}[:] = {v}",
    "{z}[0] = {v}[0]", "{v}.normal_()", "{v}.bernoulli_(0.5)", "{v}.sub_({v}.mean(0))",
    "{v}.div_({v}.sum(-1, keepdim=True) + 1)",
    "{v}.swapaxes_(0, -1)", "{v}.tril_()", "{v}[{v} > 0] = 0", "{v}[torch.tensor([0, 0])] = {s}[:1]",
    "{v}.index_put_((torch.tensor([{k}]),), torch.tensor(1.0))",
    "{v}.resize_({z}.shape)", "{v}[..., 0] = {v}[..., -1]", "{v}[:, 1:] = {v}[:, :-1].clone()",
    "torch.cat([{s}, {s}], out={v})",
    "{v}.set_({z})", "torch.stack([{s}, {s}], out={v})", "{v}.put_(torch.tensor([0]), torch.tensor([1.0]))",
    "torch.neg({v}, out={v}.t())", "{v}.add_({v}.t())", "{v}[:] = {v}.t()",
    "torch.where({v} > 0, {s}, {z}, out={v})",
    "torch.sort({s}, 0, out=({v}, torch.empty(0, dtype=torch.long)))", "{v}[::2] = {v}[1::2]",
    "torch.exp({s}, out={v})",
    "torch._foreach_add_([{v}, {z}], 1.0)", "{v}.random_(0, 5)", "{v}.squeeze_(0).add_(1)",
    "{v}.renorm_(2, 0, 1.0)",
)  # fmt: skip


def memory(w: Writer, name: str) -> Program:
    """A tensor, views of it, and writes into any of them."""
    _inputs(w)
    base = w.choose(BASES)
    assert base is not None
    mine = [base]
    for _ in range(w.rng.choice((1, 2, 2, 3))):
        if (view := viewed(w, w.rng.choice([*mine, mine[-1]]))) is not None:
            mine.append(view)
        if w.rng.random() < 0.6:
            at = w.rng.randrange(len(mine))
            mine[at] = written_into(w, mine[at], mine[0])
    written_into(w, mine[-1], mine[0])
    base, last = mine[0].name, mine[-1].name
    return w.program(name, w.rng.choice((base, last, f"{base}, {last}", f"{last}.view(-1)")))


def _inputs(w: Writer) -> None:
    least = w.rng.choice((None, None, 0))
    w.symbol("a", least)
    w.symbol("b", least)
    x = w.input("x", *w.rng.choice((("a", "b"), ("a", "b"), ("a",), ("a", "a"), ("a", "b", "2"), ("a", "b",
        "c"))))
    if w.rng.random() < 0.4:
        w.input("y", *w.rng.choice((("b",), ("a",), ("b", "a"), ("1", "b"))))
    if w.rng.random() < 0.3:
        w.unpack(x)


def viewed(w: Writer, tensor: Tensor) -> Tensor | None:
    """A view of the tensor that its rank allows."""
    fit = [c for c in VIEWS if fits(c.text, "v", tensor)]
    return w.choose(fit, **holes("v", tensor))


def fits(text: str, hole: str, tensor: Tensor) -> bool:
    """The rank of the tensor is that of the hole, or is not known; a tensor without dims takes few."""
    ranks = [rank for rank in (1, 2, 3, 4) if f"{{{hole}{rank}}}" in text]
    if ranks:
        return tensor.rank in (ranks[0], None)
    return tensor.rank != 0 or "unsqueeze" in text or "[None" in text


def holes(hole: str, tensor: Tensor) -> dict[str, Tensor]:
    return {f"{hole}{rank}": tensor for rank in ("", 1, 2, 3, 4)}


def written_into(w: Writer, tensor: Tensor, base: Tensor) -> Tensor:
    """A write into the tensor, of something that often has its shape. Returns what is then known of the
    tensor.
    """
    text = w.rng.choice(WRITES)
    w.used.append(f"write {text}")
    if "{s}" in text:
        source = [t.name for t in w.tensors if t.dtype == "f" and w.alike(t.shape, tensor.shape)]
        others = [t.name for t in w.tensors if t.dtype == "f"]
        made = [f"torch.ones_like({tensor.name})", f"torch.ones({tensor.name}.shape)", *source,
            w.rng.choice(others)]
        text = text.replace("{s}", w.rng.choice(made))
    text = text.replace("{v}", tensor.name).replace("{z}", base.name)
    while "{k}" in text:
        text = text.replace("{k}", str(w.small()), 1)
    w.emit(text)
    if not any(f".{name}_(" in text for name in ("t", "unsqueeze", "squeeze", "transpose", "swapaxes",
        "resize", "set")):
        return tensor
    changed = Tensor(tensor.name, None, tensor.dtype)
    w.tensors[w.tensors.index(tensor)] = changed
    return changed
