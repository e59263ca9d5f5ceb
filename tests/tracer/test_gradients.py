"""Questions about gradients, compared with eager runs."""
from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from eager_runs import agreed
from torch import Tensor, nn

from anyshape import check
from anyshape.constraints.ir.program import Node
from anyshape.tracer.host.operators import INSTALLED
from anyshape.tracer.recording.gradients import Gradients
from anyshape.typecheck.checking.api import examine
from benchmarks.fuzz.program import Program


def asked(x: Tensor) -> Tensor:
    return x.requires_grad_()


def assigned(x: Tensor) -> Tensor:
    y = x.clone()
    y.requires_grad = True
    return y[0]


def twice(x: Tensor) -> Tensor:
    y = asked(x) * 2
    x.requires_grad_(False)
    return y


def no_more(x: Tensor) -> Tensor:
    asked(x).requires_grad_(False)
    return x * 2


class Added(nn.Module):
    """Writes a parameter into a tensor by a function, and returns that or a view of it."""

    def __init__(self, write: Callable[[Tensor, Tensor], Any], result: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
        self.write, self.result = write, result

    def forward(self, x: Tensor) -> Tensor:
        y = torch.zeros(x.shape)
        self.write(y, self.w)
        return self.result(y)


MADE: list[Callable[[Tensor], Tensor]] = [
    lambda x: x,
    asked,
    assigned,
    twice,
    no_more,
    lambda x: asked(x.clone()),
    lambda x: asked(x).detach() + 1,
    lambda x: asked(x).data,
    lambda x: torch.zeros(x.shape, requires_grad=True),
    lambda x: torch.zeros(x.shape, requires_grad=True).view(-1).exp().sum(),
    lambda x: torch.zeros_like(asked(x)) + 1,
    lambda x: asked(x) > 0,
    lambda x: asked(x).argmax(1),
    lambda x: torch.cat([x, asked(x.clone())]),
    nn.Linear(3, 3),
    nn.Linear(3, 3).requires_grad_(False),
    Added(lambda y, w: y.add_(w), lambda y: y[:1]),
    Added(lambda y, w: y.__setitem__(0, w), lambda y: y),
    Added(lambda y, w: y.__setitem__(0, w.detach()), lambda y: y),
    Added(lambda y, w: w * 2, lambda y: y),
]
"""Makers of tensors that require gradients, or none."""


class Asking(nn.Module):
    """Returns other shapes where the question is answered by yes."""

    def __init__(self, make: Callable[[Tensor], Tensor], question: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.make, self.question = make, question

    def forward(self, x: Tensor) -> Tensor:
        return torch.zeros(2) if self.question(self.make(x)) else torch.zeros(3)


@pytest.mark.parametrize("question", [lambda y: y.requires_grad, lambda y: y.is_leaf])
@pytest.mark.parametrize("make", MADE)
def test_questions_are_answered_as_in_an_eager_run(
    make: Callable[[Tensor], Tensor], question: Callable[[Tensor], Any]
) -> None:
    target = Asking(make, question)
    report = check(target, "x: float32[b, 3]")
    assert report.verdict == "proved"
    assert [str(output.value) for output in report.outputs] == [f"float32[{len(target(torch.ones(2, 3)))}]"]


WRITTEN: list[Callable[[Tensor], Any]] = [
    lambda x: torch.add(x, 1, out=torch.zeros(x.shape)),
    lambda x: torch.add(asked(x), 1, out=torch.zeros(x.shape)),
    lambda x: torch.add(asked(x).detach(), 1, out=torch.zeros(x.shape)),
    lambda x: torch.mul(x, torch.ones(3, requires_grad=True) * 2, out=torch.zeros(x.shape)),
    lambda x: torch.mul(x, 2, out=torch.zeros(x.shape, requires_grad=True) * 2),
]


@pytest.mark.parametrize("target", WRITTEN)
def test_an_out_takes_no_gradients(target: Callable[[Tensor], Any]) -> None:
    try:
        target(torch.ones(2, 3))
        runs = True
    except RuntimeError:
        runs = False
    assert check(target, "x: float32[b, 3]").verdict == ("proved" if runs else "refuted")


@pytest.mark.parametrize(
    "make",
    [
        Added(lambda y, w: None, lambda y: torch.no_grad()(lambda: y * asked(y.clone()))()),
        lambda x: torch.special.i1(asked(x)),
    ],
)
def test_what_is_not_known_is_said(make: Callable[[Tensor], Tensor]) -> None:
    report = check(Asking(make, lambda y: y.requires_grad), "x: float32[b, 3]", replay=False)
    assert not report.accepts.exact or report.verdict == "unknown"


def test_each_node_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[Node] = []
    made = Gradients._made
    monkeypatch.setattr(Gradients, "_made", lambda self, node: (looked_at.append(node), made(self, node))[1])

    def chain(x: Tensor) -> Tensor:
        y = torch.zeros(x.shape)
        for _ in range(40):
            torch.add(y, x, out=y)
        return y

    found = examine(chain, "x: float32[b, 3]", replay=False)
    assert found.report.verdict == "proved"
    assert 40 <= len(looked_at) <= len(found.system.paths[0].program.nodes)


FIXED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "weights of classes": lambda x, w: nn.functional.nll_loss(x, torch.zeros(len(x)).long(), weight=w * 2),
    "weights of logits": lambda x, w: nn.functional.binary_cross_entropy_with_logits(x, x * 0, weight=w),
    "running statistics": lambda x, w: nn.functional.batch_norm(x, w, w),
    "statistics of instances": lambda x, w: nn.functional.instance_norm(
        x[..., None], w, w, use_input_stats=False
    ),
    "a target": lambda x, w: nn.functional.soft_margin_loss(x, w.expand(x.shape)),
}
"""Calls that torch refuses where the second tensor requires gradients."""


@pytest.mark.parametrize("name", FIXED)
@pytest.mark.parametrize("requires", [True, False])
def test_no_gradient_by_some_arguments(name: str, requires: bool) -> None:
    weight = nn.Parameter(torch.ones(3), requires)

    def program(x: Tensor) -> Tensor:
        return FIXED[name](x, weight)

    if requires:
        with pytest.raises(RuntimeError):
            program(torch.ones(2, 3))
    else:
        program(torch.ones(2, 3))
    verdict = check(program, "x: float32[n, 3]", ["n >= 1"], replay=False).verdict
    assert verdict == ("refuted" if requires else "proved")
    with torch.no_grad():
        assert check(program, "x: float32[n, 3]", ["n >= 1"], replay=False).verdict == "proved"


def test_weights_of_classes_or_probabilities() -> None:
    weight = nn.Parameter(torch.ones(3))

    def program(x: Tensor) -> Tensor:
        return nn.functional.cross_entropy(x, torch.zeros(len(x)).long(), weight)

    with pytest.raises(RuntimeError):
        program(torch.ones(2, 3))
    assert check(program, "x: float32[n, 3]", ["n >= 1"], replay=False).verdict == "unknown"


# ---- inputs of `torch.autograd.grad`


def by_none(x: torch.Tensor) -> torch.Tensor:
    torch.autograd.grad(x.requires_grad_().sum(), ())
    return x


def by_a_dict(x: torch.Tensor) -> torch.Tensor:
    x = x.requires_grad_()
    return torch.autograd.grad(x.sum(), {"x": x})["x"]  # type: ignore[call-overload, no-any-return]


@pytest.mark.parametrize("program, runs", [(by_none, False), (by_a_dict, INSTALLED >= (2, 13))])
def test_gradients_are_taken_by_tensors(program: Any, runs: bool) -> None:
    report = check(program, "x: float32[n]", replay=False)
    assert str(report.verdict) == ("proved" if runs else "refuted")
    with contextlib.nullcontext() if runs else pytest.raises((RuntimeError, ValueError)):
        program(torch.ones(3))


MODULE = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(3, 3)
        self.w = nn.Parameter(torch.ones(3))
        self.register_buffer("b", torch.ones(3))
    def forward(self, x):
        y = self.l(x)
        {body}
        return {result}
"""
WHICH_REQUIRE = (
    ("self.w.requires_grad_(False); self.w.add_(1)", "x.view(2, -1)"),
    ("self.w.requires_grad = False; self.w.add_(1)", "x.view(2, -1)"),
    ("z = self.w + x; self.requires_grad_(False); self.w[:2].add_(1)", "z.view(2, -1)"),
    ("self.b.requires_grad_(); self.b.add_(1)", "x.view(2, -1)"),
    ("self.b.requires_grad = True; self.b[:2].add_(1)", "x.view(2, -1)"),
    ("self.w.requires_grad_(False)", "x.view(2, -1) if (self.w * 2).requires_grad else x.view(3, -1)"),
    ("self.w.detach_(); self.w.add_(1)", "x.view(2, -1)"),
    ("y.detach_(); y.resize_(2, 2)", "y"),
    ("x[:2].detach_()", "x"),
    ("x.reshape(-1).detach_()", "x"),
    ("x.detach().detach_()", "x.view(2, -1)"),
    ("x.contiguous().detach_()", "x.view(2, -1)"),
    ("x.t().reshape(-1).detach_()", "x.view(2, -1)"),
)
IN_INFERENCE = (
    "(z + self.w).view(2, -1)", "(z * self.w).view(2, -1)", "(z * 2).view(2, -1)", "self.l(z)",
    "z.requires_grad_()", "torch.cat([z, self.w[None]])", "z.clone().requires_grad_().view(2, -1)",
    "torch.no_grad()(lambda: z * self.w)().view(2, -1)",
)  # fmt: skip


@pytest.mark.parametrize(
    "body, result",
    [
        *WHICH_REQUIRE,
        *(("with torch.inference_mode():\n            z = x + 1", result) for result in IN_INFERENCE),
    ],
)
def test_what_may_require_gradients(body: str, result: str) -> None:
    program = Program.of("found", MODULE.format(body=body, result=result), "x: float32[a, b]", ("a >= 0",))
    agreed(program, [{"a": a, "b": b} for a in (0, 1, 2, 3) for b in (2, 3)])
