"""Comparisons of tensors with sizes and other objects, and calls by signatures that few know, against eager
runs.
"""

from __future__ import annotations

import pytest
from eager_runs import agreed

from benchmarks.fuzz.program import Program

POINTS = [{"a": a, "b": b} for a in range(4) for b in (1, 2, 5)]
COMPARED = """
n == x; n != x; x == n; n / 2 == x; x != n / 2; n == torch.arange(3); torch.arange(3) != n;
(n > 1) == (x > 0)
n in x; n not in x; x[0] in x; x.shape in [(2, 2)]; x in [None, x]; None in x; "a" in x
x == None; x != None; None == x; x == "a"; x == [n]; [n] == x; (n,) != x; x == x.shape; x == {n: 1}
torch.zeros(3) == [n]; torch.zeros(3) == (n,); torch.zeros(3) != {n}; x == x; x == x.view(-1); x == complex(n)
(n == x).sum() + n; x.view(7) if x == None else x; x.view(7) if x != None else x; x == (y := x.sum())
"""
SIGNATURES = """
x.add_(1, alpha=x[0, 0]); x.addcmul_(x, x, value=x[0, 0]); x.nan_to_num_(x[0, 0]); x.add_(x[0, 0])
x.long().tril_(x.long()[0, 0]); (y := x.long()).cumsum_(y[0, 0] * 0); x.fill_(x[0, 0]); x.bernoulli_(x.long())
torch.vmap(); torch.autograd.grad(x); torch.nn.utils.rnn.pad_sequence(); torch.sym_ite(x); torch.cond(x)
torch.linalg.tensorinv(x[None], ind=n); F.multilabel_margin_loss(x, x); F.multi_margin_loss(x, x[:, 0])
F.adaptive_avg_pool2d(x, n); F.adaptive_avg_pool2d(x, 1); F.adaptive_avg_pool3d(x, n); format(range(n))
x.type((1, 0)); x.type(2); x.type(x); x.type(n); x.type(torch.FloatTensor); x.type("torch.DoubleTensor")
x.new_tensor(1, torch.int64); x.new_tensor([1, n], dtype=torch.int8); x.new(x, 1); x.new(1, x); x.new(n, 2)
x.hsplit(x, 1); x.hsplit(x, n); x.hsplit(2)[0]; x.hsplit([1])[1]; x.vsplit(1, 2)[0]; x.vsplit(x, n)
x.as_subclass(3); x.as_subclass(x); x.hash_tensor(0); x.is_pinned()
torch.zeros(torch.broadcast_shapes(x.shape)); torch.zeros(torch.broadcast_shapes(n, (2, 1)))
torch.zeros(torch.broadcast_shapes(x.shape, (1,))); torch.zeros(torch.broadcast_shapes(x.shape, n))
torch.kl_div(x, x); torch.kl_div(x, x, 1); torch.kl_div(x, x, log_target=True)
torch.hinge_embedding_loss(x, x)
torch.margin_ranking_loss(x, x, x, 0.5); torch.margin_ranking_loss(x, x, x, 0.5, 2);
F.margin_ranking_loss(x, x, x)
torch.binary_cross_entropy_with_logits(x, x); torch.cosine_embedding_loss(x, x, x[:, 0])
F.kl_div(x, x)
torch.group_norm(x, 1); torch.group_norm(x, n); torch.group_norm(x, 2, None, None, 1e-5, False)
F.group_norm(x, n)
torch.ops.aten.group_norm(x, 1); torch.ops.aten.group_norm.default(x, n)
torch.randint_like(x, x); torch.randint_like(x, torch.tensor(5)); torch.lobpcg(x @ x.mT + torch.eye(n))
torch.triplet_margin_loss(x, x, x); torch._C._nn.mse_loss(x, x); torch.ops.aten.mse_loss(x, x)
"""


TEXTS = [text.strip() for text in f"{COMPARED};{SIGNATURES}".replace("\n", ";").split(";") if text.strip()]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("text", TEXTS)
def test_the_verdict_is_that_of_eager_runs(text: str) -> None:
    source = f"def f(x):\n    n = x.shape[0]\n    return {text}\n"
    agreed(Program.of("found", source, "x: float32[a, b]", ("a >= 0",)), POINTS)


@pytest.mark.parametrize("text, verdict", [
    ("n in x", "proved"), ("n == x", "proved"), ("x.view(7) if x == None else x", "proved"),
    ("torch.kl_div(x, x)", "proved"), ("torch.lobpcg(x)", "unknown"), ("x.new(x, 1)", "unknown"),
    ("torch.zeros(torch.broadcast_shapes(x.shape))", "proved"), ("x.as_subclass(3)", "refuted"),
])  # fmt: skip
def test_a_call_is_decided(text: str, verdict: str) -> None:
    source = f"def f(x):\n    n = x.shape[0]\n    return {text}\n"
    assert agreed(Program.of("found", source, "x: float32[a, b]"), POINTS[3:]) == verdict
