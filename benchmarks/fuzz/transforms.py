"""Functions that torch transforms: `vmap`, derivatives, and one inside the other."""

from __future__ import annotations

from typing import Final

from .control import filled
from .operators import inputs, step
from .program import Program
from .writer import Writer

STATEMENTS: Final = (
    "r = r * 2", "r = r + s", "r = r.sum(-1)", "r = r.sum(0)", "r = r.reshape(-1)", "r = r.view(-1)",
    "r = r[0]", "r = r[..., {k}:]", "r = r.t()", "r = r.transpose(0, -1)", "r = r @ r", "r = r.relu()",
    "r = r.exp()", "r = torch.cat([r, r])", "r = torch.stack([r, r], -1)", "r = r.unsqueeze(0)",
    "r = r.expand({k}, *r.shape)", "r = r.repeat(2, 1)", "r = F.pad(r, (0, {k}))", "r = r.view({k}, -1)",
    "r = r.flatten()", "r = r.squeeze()", "r = r.softmax(-1)", "r = r.cumsum(0)", "r = r.mean()",
    "r = r.max()", "r = r.max(0).values", "r = r.sort(-1).values", "r = r.topk({k}).values",
    "r = F.layer_norm(r, r.shape[-1:])", "r = F.linear(r, torch.ones({k}, r.shape[-1]))",
    "r = r * torch.arange(r.shape[-1])", "r = r[torch.arange(r.shape[0])]", "r = r[torch.tensor([0, {k}])]",
    "r = r.gather(0, torch.zeros_like(r).long())", "r = r.chunk(2)[0]", "r = r.split({k})[-1]",
    "r = r.unbind(0)[{k}]", "r = r.new_zeros({k}) + r", "r = torch.zeros(r.shape) + r", "r = r.clone()",
    "r = r.detach()", "r = r.norm()", "r = F.dropout(r, training=False)",
    "r = r if r.shape[0] > {k} else r * 2", "r = r.half().float()", "r = r.clone().add_(1)",
    "r = r * s.shape[0]", "r = r * {t}", "r = torch.einsum('...i,...i->...', r, r)", "r = torch.outer(r, r)",
    "assert r.dim() < 2", "assert r.shape[0] > {k}", "r = r * r.stride(0)", "r = r.unfold(0, {k}, 1)",
    "r = r.index_add(0, torch.tensor([0]), r[:1])", "r = r.masked_fill(r > 1, 0.0)",
    "r = torch.where(r > 0, r, 0.0)", "r = r.to(torch.float64)", "r = r.diag()", "r = r.tril()",
    "r = r.flip(0)", "r = r.roll(1, 0)",
    "r = r.index_fill(0, torch.tensor({k}), 1.0)",
)  # fmt: skip
"""Lines of a function of `r`, which also sees a constant, `s`, and the tensors outside."""

SUSPECT: Final = (
    "r = F.dropout(r)", "r = r + torch.rand(r.shape)", "r = torch.rand_like(r)",
    "r = torch.bernoulli(r.sigmoid())", "r = r + r.sum().item()", "r = r * len(r.tolist())",
    "r = r if r.sum() > 0 else -r", "r = r[r > 0]", "r = r.nonzero().float()", "r = r.add_(1)", "r[0] = 1.0",
    "z = torch.zeros({k}); z.add_(r); r = z", "z = torch.zeros(r.shape); z[0] = r[0]; r = z",
    "z = r.new_zeros(r.shape); z.copy_(r); r = z", "r = torch.add(r, 1, out=torch.zeros(r.shape))",
    "r = torch.mul(r, 2, out=r.clone())", "s.add_(1)", "s[0] = 2.0", "s.add_(r)", "{t}.mul_(1)",
    "r = nn.Linear({k}, 2)(r)", "r = r.as_strided((2,), (1,))",
    "r = F.one_hot(r.abs().long() * 0, {k}).float()", "r = r.long()",
)  # fmt: skip
"""Lines that torch refuses of a function that it transforms, or treats otherwise."""

CALLS: Final = (
    "torch.vmap({f})({t})", "torch.vmap({f}, in_dims=1)({t})", "torch.vmap({f}, out_dims=-1)({t})",
    "torch.vmap({f}, in_dims={d}, out_dims=1)({t})", "torch.vmap({f}, randomness='different')({t})",
    "torch.vmap({f}, randomness='same')({t})", "torch.vmap(torch.vmap({f}))({t})",
    "torch.vmap(lambda p, q: {f}(p) + q)({t}, {u})",
    "torch.vmap(lambda p, q: {f}(p * q), in_dims=(0, None))({t}, {u})",
    "torch.vmap({f}, chunk_size={k})({t})", "torch.func.grad(lambda p: {f}(p).sum())({t})",
    "torch.func.grad_and_value(lambda p: {f}(p).sum())({t})[0]", "torch.func.jacrev({f})({t})",
    "torch.func.jacfwd({f})({t})", "torch.func.hessian(lambda p: {f}(p).sum())({t})",
    "torch.func.jvp({f}, ({t},), ({u},))[1]", "torch.func.vjp({f}, {t})[1]({f}({t}))[0]",
    "torch.vmap(torch.func.grad(lambda p: {f}(p).sum()))({t})",
    "torch.func.grad(lambda p: torch.vmap({f})(p).sum())({t})", "torch.vmap(torch.func.jacrev({f}))({t})",
    "torch.autograd.functional.jacobian({f}, {t})", "torch.autograd.functional.vjp({f}, {t}, {f}({t}))[1]",
    "torch.autograd.functional.hessian(lambda p: {f}(p).sum(), {t})",
)  # fmt: skip


def transforms(w: Writer, name: str) -> Program:
    """A function of one tensor, of up to four lines, and one or two calls that transform it."""
    inputs(w)
    if w.rng.random() < 0.3:
        step(w)
    w.emit(f"s = torch.ones({w.spelt(str(w.rng.choice((w.small(), w.size()))))})")
    function = w.fresh("h")
    with w.block(f"def {function}(r):"):
        for _ in range(w.rng.choice((1, 2, 2, 3, 4))):
            text = w.rng.choice(SUSPECT if w.rng.random() < 0.1 else STATEMENTS)
            w.used.append(text)
            for line in filled(w, text).split("; "):
                w.emit(line)
        w.emit("return r")
    for _ in range(w.rng.choice((1, 1, 1, 2))):
        text = w.rng.choice(CALLS)
        w.used.append(text)
        text = text.replace("{f}", function).replace("{d}", str(w.rng.choice((0, 1, -1, None))))
        w.let(filled(w, text), None)
    return w.program(name, w.tensors[-1].name)
