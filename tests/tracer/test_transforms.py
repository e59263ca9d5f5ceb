"""Functions that torch transforms: derivatives of `torch.func`, what is compiled, what is scripted."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from anyshape.constraints.ir.opnames import canonical
from anyshape.constraints.ir.spec_text import parse_spec
from anyshape.constraints.rules.gradients import (
    BUT_NOT_WITH,
    DIFFERENTIABLE,
    DIFFERENTIABLE_ONCE,
    NOT_BY,
    PERHAPS_NOT_BY,
)
from anyshape.tracer.host.trees import pytree
from anyshape.typecheck import check


def gradient(x: Tensor) -> Tensor:
    return torch.func.grad(lambda r: (r**2).sum())(x).view(2, -1)


def gradient_of_a_product(x: Tensor) -> Tensor:
    return torch.func.grad(lambda r: (r @ r.t()).exp().sum())(x).view(2, -1)


def gradients_of_rows(x: Tensor) -> Tensor:
    return torch.vmap(torch.func.grad(lambda r: (r**2).sum()))(x).view(-1, 3)


def jacobian(x: Tensor) -> Tensor:
    return torch.func.jacrev(lambda r: r.sum(0))(x) * torch.ones(3)


def jacobian_of_a_view(x: Tensor) -> Tensor:
    return torch.func.jacrev(lambda r: r.view(-1, 2).sum(0))(x)[1] + torch.zeros(3)


def jacobians_by_two(x: Tensor) -> Tensor:
    def both(r: Tensor, s: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        return r.sum(0), {"product": r @ s}

    jacobians = torch.func.jacrev(both, argnums=(0, 1))(x, x)
    return jacobians[1]["product"][1] @ torch.zeros(3, 1)  # type: ignore[no-any-return]


def forward_jacobian(x: Tensor) -> Tensor:
    return torch.func.jacfwd(lambda r: r.sum(0).sin())(x).reshape(4, -1)


def forward_jacobian_of_a_dict(x: Tensor) -> Tensor:
    def first(tree: dict[str, Tensor]) -> Tensor:
        return tree["a"][:2] * tree["b"]

    found = torch.func.jacfwd(first)({"a": x, "b": x[1:]})
    return found["a"] + torch.zeros(1, 1, 3, 1)  # type: ignore[no-any-return]


def hessian(x: Tensor) -> Tensor:
    return torch.func.hessian(lambda r: (r**3).sum())(x).reshape(2, -1, 3)


def hessian_of_rows(x: Tensor) -> Tensor:
    return torch.func.hessian(lambda r: (r**3).sum(1))(x)[2, :, 0, :2].reshape(-1, 4)


def product_with_a_vector(x: Tensor) -> Tensor:
    result, back = torch.func.vjp(lambda r: r.exp().sum(0), x)
    return back(torch.ones(3))[0] + result  # type: ignore[no-any-return]


def product_with_two(x: Tensor) -> Tensor:
    _, back = torch.func.vjp(lambda r, s: {"a": r + s, "b": r.sum(1)}, x, x[:1])
    return back({"a": x, "b": torch.ones(4)})[1].squeeze()  # type: ignore[no-any-return]


def product_of_a_vector(x: Tensor) -> Tensor:
    return torch.func.jvp(torch.sin, (x,), (x[:3],))[1]  # type: ignore[no-any-return]


def older_jacobian(x: Tensor) -> Tensor:
    return torch.autograd.functional.jacobian(lambda r: r[2:].sum(1), x) + torch.zeros(2, 1, 1)  # type: ignore


def older_jacobians(x: Tensor) -> Tensor:
    def both(r: Tensor, s: Tensor) -> tuple[Tensor, Tensor]:
        return r.sum(0), r @ s

    found = torch.autograd.functional.jacobian(both, (x, x.clone()))  # type: ignore[no-untyped-call]
    return found[1][0] + torch.zeros(3)  # type: ignore[no-any-return]


def older_hessian(x: Tensor) -> Tensor:
    found = torch.autograd.functional.hessian(lambda r: (r**3).sum(), x)  # type: ignore[no-untyped-call]
    return found.sum(0) + torch.zeros(3)  # type: ignore[no-any-return]


def older_products(x: Tensor) -> Tensor:
    result, gradient = torch.autograd.functional.vjp(torch.exp, x, x[:3])  # type: ignore[no-untyped-call]
    return gradient + result  # type: ignore[no-any-return]


class Forces(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.energy = nn.Linear(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = x.clone().requires_grad_()
        energy = self.energy(x).exp().sum()
        return -torch.autograd.grad(energy, x, create_graph=True)[0].reshape(-1, 8)


def gradient_through_a_view(x: Tensor) -> Tensor:
    x = x.clone().requires_grad_()
    (found,) = torch.autograd.grad(x.view(-1, 2).sum(), x)
    return found @ torch.zeros(3, 1)


def gradient_of_several(x: Tensor) -> Tensor:
    x = x.clone().requires_grad_()
    return torch.autograd.grad((x**2).sum(0), x, torch.ones(3))[0]


def gradient_of_one_of_several(x: Tensor) -> Tensor:
    x = x.clone().requires_grad_()
    return torch.autograd.grad((x**2).sum(0), x)[0]


def gradient_by_an_inner_value(x: Tensor) -> Tensor:
    x = x.clone().requires_grad_()
    inner = x.clone()
    return torch.autograd.grad((inner**2).sum(), [inner, x])[1] + torch.zeros(2, 1)


def gradient_by_a_weight(x: Tensor) -> Tensor:
    weight = torch.ones(3, requires_grad=True)
    return torch.autograd.grad((x * weight).sum(), weight)[0]


def gradient_without_any(x: Tensor) -> Tensor:
    start = x.clone().requires_grad_()
    end = start.sum() if len(x) > 2 else x.sum()
    return torch.autograd.grad(end, start)[0]


def gradient_of_no_scalar(x: Tensor) -> Tensor:
    return torch.func.grad(lambda r: r.sum() if len(r) > 2 else r.sum(1))(x)


def gradient_of_an_integer(x: Tensor) -> Tensor:
    return torch.func.grad(lambda r: r.sum())(x.long() if len(x) > 2 else x)


def gradient_by_the_second(x: Tensor) -> Tensor:
    with_value = torch.func.grad_and_value(lambda r, s: ((r @ s).mean(), s[2]), 1, has_aux=True)
    gradient, (value, row) = with_value(x, x.t())
    return gradient[:3] + value * row


def gradient_of_a_write(x: Tensor) -> Tensor:
    return torch.func.grad(lambda r: (r.mul_(2) if len(r) > 3 else r).sum())(x)


def gradient_of_a_gradient(x: Tensor) -> Tensor:
    def inner(r: Tensor) -> Tensor:
        return (r * torch.func.grad(lambda s: (s**3).sum())(r)).sum()

    return torch.func.grad(inner)(x).view(-1, 2)


def steps_of_descent(x: Tensor) -> Tensor:
    def loss(weights: Tensor, row: Tensor) -> Tensor:
        for _ in range(2):
            weights = weights - 0.1 * torch.func.grad(lambda w: ((w @ row) ** 2).sum())(weights)
        return (weights @ row).sum()

    return torch.vmap(torch.func.grad(loss), in_dims=(None, 0))(torch.zeros(2, 3), x)


def gradients_of_a_module(x: Tensor) -> Tensor:
    linear = nn.Linear(4, 2)

    def loss(weights: dict[str, Tensor]) -> Tensor:
        return torch.func.functional_call(linear, weights, (x,)).square().mean()

    found = torch.func.grad(loss)(dict(linear.named_parameters()))
    return found["weight"] + x[:1]


@torch.compile(backend="eager")
def compiled(x: Tensor) -> Tensor:
    return x[: x.shape[0] // 2].view(-1, 2) if x.shape[0] > 2 else x


PROGRAMS = [
    (gradient, "x: [n, m]"),
    (gradient_of_a_product, "x: [n, m]"),
    (gradients_of_rows, "x: [n, m]"),
    (jacobian, "x: [n, m]"),
    *(
        (target, "x: [n, m]")
        for target in (
            jacobian_of_a_view,
            jacobians_by_two,
            forward_jacobian,
            forward_jacobian_of_a_dict,
            hessian,
            hessian_of_rows,
            product_with_a_vector,
            product_with_two,
            product_of_a_vector,
            gradient_of_no_scalar,
            gradient_of_an_integer,
            gradient_by_the_second,
            gradient_of_a_write,
            gradient_through_a_view,
            gradient_of_several,
            gradient_of_one_of_several,
            gradient_by_an_inner_value,
            gradient_by_a_weight,
            gradient_without_any,
            older_jacobian,
            older_jacobians,
            older_hessian,
            older_products,
            gradient_of_a_gradient,
            steps_of_descent,
            gradients_of_a_module,
        )
    ),
    (Forces(), "x: [n, m]"),
    (compiled, "x: [n]"),
]


def runs(target: Callable[[Tensor], Any], *sizes: int) -> bool:
    try:
        target(torch.ones(sizes))
    except (RuntimeError, IndexError):
        return False
    return True


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target, inputs", PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_transformed_programs_run_where_it_is_said(target: Callable[..., Any], inputs: str) -> None:
    report = check(target, inputs)
    assert report.verdict in ("proved", "refined"), report.to_text()
    symbols = parse_spec(inputs).domain.symbols
    plain = getattr(target, "_torchdynamo_orig_callable", target)
    for point in itertools.product(range(1, 7), repeat=len(symbols)):
        accepted = report.accepts.holds(**dict(zip(symbols, point, strict=True)))
        assert accepted == runs(plain, *point), f"{point}\n{report}"


class Reshaped(torch.autograd.Function):
    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return x * 2

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0].reshape(3, -1)


def changed_after(x: Tensor) -> Tensor:
    x = x.clone().requires_grad_()
    result = x.exp()
    total = result.sum()
    result.add_(1)
    return torch.autograd.grad(total, x)[0]


def taken_twice(x: Tensor) -> Tensor:
    x = x.clone().requires_grad_()
    total = (x**2).sum()
    return torch.autograd.grad(total, x)[0] + torch.autograd.grad(total, x)[0]


def not_connected(x: Tensor) -> Tensor:
    x = x.clone().requires_grad_()
    return torch.autograd.grad((x**2).sum(), x * 2)[0]


def only_detached(x: Tensor) -> Tensor:
    x, weight = x.clone().requires_grad_(), torch.ones(1, requires_grad=True)
    return torch.autograd.grad((x.detach() * weight).sum(), x)[0]


def only_as_an_index(x: Tensor) -> Tensor:
    x, weight = x.clone().requires_grad_(), torch.ones(9, requires_grad=True)
    return torch.autograd.grad(weight[x.argmax(1) % 9].sum(), x)[0]


def unused(x: Tensor) -> Tensor:
    x, weight = x.clone().requires_grad_(), torch.ones(1, requires_grad=True)
    found = torch.autograd.grad((x.detach() * weight).sum(), x, allow_unused=True)[0]
    return x if found is None else found.view(-1, 7)


STORED = torch.zeros(2)


def writes_what_is_stored(x: Tensor) -> Tensor:
    def writing(x: Tensor) -> Tensor:
        STORED[0] = 1.0
        return x.sum()

    return torch.func.grad(writing)(x)


def one_number(x: Tensor) -> Tensor:
    """Returns a gradient whose elements lie at one place."""
    return torch.func.grad(lambda r: r.sum())(x)


def older_gradient(x: Tensor) -> Tensor:
    x = x.clone().requires_grad_()
    return torch.autograd.grad(x.sum(), x)[0].add_(1)


UNSURE: dict[str, Callable[[Tensor], Tensor]] = {
    "own gradient": lambda x: torch.func.grad(lambda r: Reshaped.apply(r).sum())(x),
    "no derivative": lambda x: torch.func.grad(lambda r: torch.nextafter(r, r).sum())(x),
    "no second derivative": torch.func.hessian(lambda x: nn.functional.hardsigmoid(x).sum()),
    "third derivative": torch.func.jacrev(torch.func.hessian(lambda x: x.exp().sum())),
    "captured write": lambda x: torch.func.grad(lambda r: (x.add_(1) * r).sum())(x.clone()),
    "drawn inside": lambda x: torch.autograd.functional.jacobian(
        lambda r: torch.func.jacfwd(lambda q: nn.functional.dropout(q))(r), x
    ),
    "drawn": torch.func.jacfwd(lambda x: nn.functional.dropout(x)),
    "out": torch.func.jacfwd(lambda x: torch.add(x, 1, out=torch.zeros(x.shape))),
    "writes what is stored": writes_what_is_stored,
    "a number is flipped": torch.func.hessian(lambda x: x.norm().flip(0).sum()),
    "a layer of its own": torch.func.jacfwd(lambda x: nn.Linear(x.shape[1], 2)(x)),
    "a gradient at one place": lambda x: one_number(x).add_(1),
    "a row of gradients at one place": lambda x: torch.vmap(one_number)(x).add_(1),
    "an older gradient at one place": older_gradient,
    "a tangent at one place": lambda x: torch.func.jacfwd(lambda r: r * 2)(one_number(x)),
    "a tangent of an expanded": lambda x: torch.func.jacfwd(lambda r: r * 2)(x[:1].expand(4, x.shape[1])),
    "changed after": changed_after,
    "taken twice": taken_twice,
    "not connected": not_connected,
    "only detached": only_detached,
    "only as an index": only_as_an_index,
    "unused": unused,
    "no derivative, older": lambda x: torch.autograd.functional.vjp(lambda r: r.nextafter(r), x, x)[1],
    "own gradient, older": lambda x: torch.autograd.functional.vjp(Reshaped.apply, x, x)[1],
}


@pytest.mark.parametrize("name", UNSURE)
def test_what_torch_may_not_differentiate_is_not_proved(name: str) -> None:
    report = check(UNSURE[name], "x: [n, m]", replay=False)
    assert report.verdict == "unknown", report.to_text()


@pytest.mark.parametrize("function", [torch.Tensor.long, lambda x: x.argmax(0), lambda x: x > 0])
def test_jacobians_of_integers_are_zeros(function: Callable[[Tensor], Tensor]) -> None:
    def program(x: Tensor) -> Tensor:
        return torch.autograd.functional.jacobian(function, x)

    expected = program(torch.ones(3, 2))
    assert not expected.any()
    report = check(program, "x: [n, m]", ["n >= 1", "m >= 1"], replay=False)
    assert report.verdict != "refuted" and report.outputs[0].value.at(n=3, m=2) == expected.shape


def test_a_jacobian_of_a_constant_is_no_error() -> None:
    def program(x: Tensor) -> Tensor:
        return torch.autograd.functional.jacobian(lambda r: torch.ones(3), x)

    program(torch.ones(3, 2))
    assert check(program, "x: [n, m]", ["n >= 1", "m >= 1"], replay=False).verdict != "refuted"


ELEMENTWISE = [
    torch.exp,
    torch.abs,
    torch.relu,
    torch.tanh,
    torch.sqrt,
    torch.sign,
    torch.floor,
    torch.isnan,
    torch.square,
    lambda x: x.clamp(0, 1),
    lambda x: torch.where(x > 0, x, 0),
    lambda x: x.masked_fill(x > 0, 1),
    torch.logical_not,
    lambda x: x * x.sum(),
    lambda x: x / 2 - x,
    lambda x: x**2,
    lambda x: torch.maximum(x, x),
    lambda x: x.float(),
    nn.functional.gelu,
    nn.functional.silu,
    nn.functional.softplus,
    lambda x: x.detach() + x,
    torch.zeros_like,
    lambda x: x.long(),
    lambda x: x.int().float() * x,
    lambda x: x.fmod(2),
    lambda x: x.sigmoid().logit(),
    lambda x: nn.functional.prelu(x, torch.ones(1)),
    lambda x: nn.functional.binary_cross_entropy(x.sigmoid(), x.detach().sigmoid()),
]
MOVING = [
    torch.t,
    torch.flatten,
    torch.ravel,
    lambda x: x.unsqueeze(1),
    lambda x: x.squeeze(),
    lambda x: x.expand(2, -1, -1),
    lambda x: x.repeat(2, 3),
    lambda x: x.roll(1, 0),
    lambda x: x.flip(0),
    lambda x: x[:1],
    lambda x: x[..., None],
    lambda x: torch.cat([x, x], 1),
    lambda x: torch.stack([x, x]),
    lambda x: x.reshape(-1),
    lambda x: x.unfold(0, 1, 1),
    lambda x: x.tril(),
    lambda x: x.diagonal(),
    lambda x: nn.functional.pad(x, (1, 2)),
    lambda x: x.chunk(2)[0],
    lambda x: x.index_select(0, torch.arange(len(x))),
    lambda x: x.gather(1, torch.zeros_like(x).long()[:, :1]),
    lambda x: x.sort(-1).values,
    lambda x: x.msort(),
    lambda x: x.topk(1).values,
    lambda x: x.repeat_interleave(2, 0),
    lambda x: x.index_put((torch.zeros(1).long(),), x[:1]),
    lambda x: x.masked_scatter(x > 0, x * 2),
    lambda x: nn.functional.interpolate(x[None], scale_factor=2.0),
    lambda x: torch.combinations(x[0]),
]
REDUCING = [
    torch.sum,
    torch.mean,
    lambda x: x.sum(0),
    lambda x: x.mean(1),
    lambda x: x.prod(),
    lambda x: x.prod(1),
    torch.var,
    lambda x: x.std(0),
    lambda x: x.amax(0),
    lambda x: x.max(1).values,
    lambda x: x.logsumexp(0),
    torch.numel,
    lambda x: x.cumsum(0),
    lambda x: x.softmax(1),
    lambda x: x.log_softmax(0),
    lambda x: x @ x.t(),
    lambda x: x.norm(),
    lambda x: torch.outer(x[0], x[0]),
    lambda x: torch.bmm(x[None], x.t()[None]),
    lambda x: x.argmax(1),
    lambda x: nn.functional.layer_norm(x, x.shape[1:]),
    lambda x: nn.functional.normalize(x),
    lambda x: nn.functional.conv1d(x[None], torch.ones(2, len(x), 1)),
    lambda x: nn.functional.mse_loss(x, x * 2),
    lambda x: nn.functional.linear(x, torch.ones(3, x.shape[1])),
    lambda x: nn.functional.avg_pool1d(x, 1),
    lambda x: nn.functional.adaptive_max_pool1d(x, 1),
    lambda x: x.median(0).values,
    lambda x: x.kthvalue(1).values,
    lambda x: x.cumprod(0),
    lambda x: x.cummax(0).values,
    lambda x: x.logcumsumexp(0),
    lambda x: torch.var_mean(x)[0],
    lambda x: torch.std_mean(x, 0)[1],
    lambda x: torch.einsum("ij,ij->i", x, x),
    lambda x: torch.einsum("ij,kj->ik", x, x),
    lambda x: torch.cov(x),
    lambda x: torch.trapezoid(x),
    lambda x: torch.linalg.vecdot(x, x),
    lambda x: torch.matrix_exp(x @ x.t()),
    lambda x: nn.functional.cross_entropy(x, torch.zeros(len(x)).long()),
    lambda x: nn.functional.nll_loss(x, torch.zeros(len(x)).long()),
    lambda x: nn.functional.gaussian_nll_loss(x, x * 2, x.abs()),
]
ONCE = [
    nn.functional.dropout,
    nn.functional.alpha_dropout,
    torch.rand_like,
    lambda x: torch.rand(x.shape) * x,
    lambda x: x.sigmoid().bernoulli() * x,
    nn.functional.hardsigmoid,
    lambda x: nn.functional.glu(x, 0),
    lambda x: nn.functional.huber_loss(x, x * 2),
    lambda x: torch.cdist(x, x * 2),
    lambda x: nn.functional.scaled_dot_product_attention(x[None], x[None], x[None]),
    lambda x: torch.native_layer_norm(x, x.shape[1:], None, None, 1e-5)[0],
]
"""Functions that torch differentiates once, of one vector."""
TRANSFORMED: dict[str, Callable[[Callable[[Tensor], Tensor]], Callable[[Tensor], Any]]] = {
    "grad": lambda f: torch.func.grad(lambda x: (f(x) ** 2).sum()),
    "grad of grad": lambda f: torch.func.grad(
        lambda x: torch.func.grad(lambda y: (f(y) ** 2).sum())(x).sum()
    ),
    "jacrev": torch.func.jacrev,
    "jacfwd": torch.func.jacfwd,
    "hessian": torch.func.hessian,
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("f", ELEMENTWISE + MOVING + REDUCING + ONCE)
def test_derivatives_exist_where_it_is_said(f: Callable[[Tensor], Tensor]) -> None:
    """Compares each transform with torch where either size is 0, 1 or larger."""

    def floats(x: Tensor) -> Tensor:
        result = f(x)
        return result.float() if isinstance(result, Tensor) else x * result

    wrong = []
    for name, transformed in TRANSFORMED.items():
        target = transformed(floats)
        report = check(target, "x: [n, m]", assume=["n >= 0", "m >= 0"], replay=False)
        certain = report.accepts.certain
        wrong += [
            (name, n, m)
            for n, m in itertools.product((0, 1, 2), (0, 1, 3))
            if certain.holds(n=n, m=m) and not runs(target, n, m)
        ]
    assert wrong == []


def put(x: Tensor) -> Tensor:
    z = torch.zeros(x.shape)
    z[0] = x[0]
    return z


def added_twice(x: Tensor) -> Tensor:
    z = x.clone()
    z.add_(1)
    z.sub_(x)
    return z * z


def written_after_use(x: Tensor) -> Tensor:
    z = x.exp().clone()
    y = z * z
    z.add_(1)
    return y


def written_after_a_view(x: Tensor) -> Tensor:
    z = x.clone()
    y = z.view(-1) ** 2
    z.add_(1)
    return y


def written_into_what_is_needed(x: Tensor) -> Tensor:
    return x.exp().add_(1)


@pytest.mark.parametrize("f, expected", [
    (put, "proved"), (added_twice, "proved"), (lambda x: x.new_zeros(x.shape).copy_(x) ** 2, "proved"),
    (written_after_use, "unknown"), (written_after_a_view, "unknown"),
    (written_into_what_is_needed, "unknown"),
])  # fmt: skip
def test_gradients_pass_through_writes_into_new_tensors(f: Callable[[Tensor], Tensor], expected: str) -> None:
    def taken(x: Tensor) -> Tensor:
        return torch.func.grad(lambda x: f(x).sum())(x)

    assert runs(taken, 2, 3) == (expected == "proved")
    assert check(taken, "x: [n, m]", ["n >= 1", "m >= 1"], replay=False).verdict == expected


@pytest.mark.parametrize("f", ONCE)
def test_gradients_are_taken_once(f: Callable[[Tensor], Tensor]) -> None:
    def taken(x: Tensor) -> Tensor:
        return torch.func.grad(lambda x: f(x).sum())(x)

    def of_many(x: Tensor) -> Any:
        results, back = torch.func.vjp(f, x)
        return torch.vmap(back)(torch.stack([results, results]))

    sizes = ["n >= 2", "m >= 2", "n % 2 == 0"]
    taken(torch.ones(2, 3))
    assert check(taken, "x: [n, m]", sizes, replay=False).verdict == "proved"
    for further in (lambda x: torch.func.jacrev(f)(x), torch.func.grad(lambda x: taken(x).sum()), of_many):
        assert check(further, "x: [n, m]", sizes, replay=False).verdict == "unknown"


def _functions(sample: Any, op: Callable[..., Any]) -> tuple[Callable[..., Any], tuple[Tensor, ...]]:
    """Returns a call of an operator as a function of its tensors of floats, and these."""
    leaves, spec = pytree.tree_flatten((sample.input, list(sample.args), dict(sample.kwargs)))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor) and leaf.is_floating_point()]

    def called(*tensors: Tensor) -> tuple[Tensor, ...]:
        given = list(leaves)
        for place, tensor in zip(places, tensors, strict=True):
            given[place] = tensor.clone()
        first, args, kwargs = pytree.tree_unflatten(given, spec)
        results = pytree.tree_leaves(op(first, *args, **kwargs))
        floats = [x for x in results if isinstance(x, Tensor) and x.is_floating_point()]
        return (*floats, tensors[0] * 1)

    return called, tuple(leaves[place].detach() for place in places)


def _differentiate(f: Callable[..., tuple[Tensor, ...]], tensors: tuple[Tensor, ...]) -> None:
    """Takes derivatives up to the second order in both directions, and for two vectors at once."""
    func, every = torch.func, tuple(range(len(tensors)))
    ones = tuple(map(torch.ones_like, tensors))
    two = tuple(torch.stack([x, x]) for x in ones)

    def total(*x: Tensor) -> Tensor:
        return sum((y * y).sum() for y in f(*x))  # type: ignore[return-value]

    def gradients(*x: Tensor) -> Any:
        return func.grad(total, every)(*x)

    def tangents(*x: Tensor) -> Any:
        return func.jvp(f, x, ones)[1]

    results, back = func.vjp(f, *tensors)
    torch.vmap(back)(tuple(torch.stack([x, x]) for x in results))
    torch.vmap(lambda *t: func.jvp(f, tensors, t)[1])(*two)
    torch.vmap(lambda *t: func.jvp(gradients, tensors, t)[1])(*two)
    func.jvp(tangents, tensors, ones)
    func.grad(lambda *x: sum(y.sum() for y in tangents(*x)), every)(*tensors)
    func.grad(lambda *x: sum(y.sum() for y in gradients(*x)), every)(*tensors)


def _differentiate_once(f: Callable[..., tuple[Tensor, ...]], tensors: tuple[Tensor, ...]) -> None:
    """Takes gradients of one vector, as functions do and as the graph of calls does."""
    results, back = torch.func.vjp(f, *tensors)
    back(results)
    leaves = [x.clone().requires_grad_() for x in tensors]
    torch.autograd.grad(sum((y * y).sum() for y in f(*leaves)), leaves, allow_unused=True)  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_operators_that_are_called_differentiable_are() -> None:
    """Compares the table with torch on its own samples of each operator."""
    from torch.testing._internal.common_methods_invocations import op_db

    compared = set()
    for info in op_db:
        name = canonical(info.name.removeprefix("nn.functional.").replace("linalg.", "linalg_"))
        if name not in DIFFERENTIABLE | DIFFERENTIABLE_ONCE or torch.float32 not in info.dtypes:
            continue
        avoided = *BUT_NOT_WITH, *NOT_BY.get(name, ()), *PERHAPS_NOT_BY.get(name, ())
        samples = list(itertools.islice(info.sample_inputs("cpu", torch.float32), 40))
        for sample in samples[:: max(1, len(samples) // 8)]:
            if any(sample.kwargs.get(flag) is not None for flag in avoided):
                continue
            f, tensors = _functions(sample, info)
            if tensors:
                (_differentiate if name in DIFFERENTIABLE else _differentiate_once)(f, tensors)
                compared.add(name)
    assert len(compared) > 250


def test_modules_without_source_have_no_rule() -> None:
    class Traced(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.jit.trace(nn.Sequential(nn.Linear(4, 3), nn.ReLU()), torch.zeros(2, 4))

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x)  # type: ignore[no-any-return]

    assert [finding.code for finding in check(Traced(), "x: [b, h]").findings] == ["no-rule"]


def test_jacobians_by_constants() -> None:
    def target(x: Tensor) -> Tensor:
        return torch.func.jacrev(lambda z: (z * x[0]).sin())(torch.ones(4))

    report = check(target, "x: [n, 4]")
    assert report.verdict == "proved"
    assert str(report.outputs[0].value) == "float32[4, 4]"


def test_gradients_beside_constants() -> None:
    def target(x: Tensor) -> Tensor:
        y = torch.nn.functional.conv1d(x[:, None], torch.ones(1, 1, 3))[:, 0]
        return torch.func.grad(lambda z: z.sum())(y.sum())

    assert check(target, "x: [n, 4]").verdict == "proved"
