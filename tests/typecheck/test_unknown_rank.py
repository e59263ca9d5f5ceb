"""Inputs of unknown rank, from spec to report: the accepted set against eager runs at ranks 0 to 6."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from anyshape.constraints.terms.rows import assignment
from anyshape.typecheck import Verdict, check
from anyshape.typecheck.checking.api import examine

ONE, TWO = "x: float32[...]", "x: float32[...]; y: float32[...]"


class Features(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.norm, self.down = nn.Linear(4, 6), nn.LayerNorm(6), nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        return F.softmax(self.down(F.gelu(self.norm(self.up(x)))), -1)


class Mismatched(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(4, 5), nn.Linear(6, 7)

    def forward(self, x: Tensor) -> Tensor:
        return self.b(self.a(x))


class Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.pool, self.head = nn.Conv2d(3, 4, 2), nn.AdaptiveAvgPool2d(1), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.pool(torch.relu(self.conv(x))).flatten(-3))


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(4, 12)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = q @ k.transpose(-1, -2) / 2.0
        return torch.softmax(scores, -1) @ v


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3).eval()

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x)


def on_rank(x: Tensor) -> Tensor:
    if x.dim() == 3:
        return x.sum(1)
    if x.dim() > 5:
        raise ValueError("too many")
    return x[..., 0]


def heads(x: Tensor) -> Tensor:
    return x.view(*x.shape[:-1], 2, x.shape[-1] // 2).transpose(-2, -3)


def joined_first(x: Tensor) -> Tensor:
    a, b, *rest = x.shape
    return x.reshape(a * b, *rest)


def in_place(x: Tensor, y: Tensor) -> Tensor:
    z = x.clone()
    z += y
    return z


def halves(x: Tensor) -> Tensor:
    return torch.cat([x[..., ::2], x[..., 1::2]], -1) + x


def rows(x: Tensor) -> Tensor:
    if x.dim() == 0:
        raise ValueError("a scalar has no rows")
    return torch.stack([row * 2 for row in x], -1) + len(x)


def rows_if_many(x: Tensor, y: Tensor) -> Tensor:
    return x.reshape(-1, x.size(-1)) if y.numel() > 4 else x


def heads_of_sizes(x: Tensor) -> Tensor:
    return x.view(x.shape[:-1] + (2, -1)).transpose(-2, -3)  # noqa: RUF005 (a tuple is written otherwise)


def set_by_mask(x: Tensor) -> Tensor:
    y = x * 2
    y[y > 1] = 0.0
    return y @ torch.ones(4)


def second(x: Tensor) -> Tensor:
    a, b = x.unbind(1)
    return a - b


def count_of(*sizes: int) -> int:
    return len(sizes)


def squeezed(x: Tensor) -> Tensor:
    return x.squeeze().sum(0)


def sized(x: Tensor) -> Tensor:
    return x.new_zeros(x.shape) + torch.ones(x.size(-1))


TARGETS: dict[str, tuple[Callable[..., Any], str]] = {
    "features": (Features(), ONE),
    "mismatched": (Mismatched(), ONE),
    "convolutions": (Convolutions(), ONE),
    "attention": (Attention(), ONE),
    "batch norm": (Normed(), ONE),
    "on rank": (on_rank, ONE),
    "heads": (heads, ONE),
    "joined first": (joined_first, ONE),
    "in place": (in_place, TWO),
    "halves": (halves, ONE),
    "sized": (sized, ONE),
    "add": (lambda x, y: x + y, TWO),
    "add thrice": (lambda x, y: x + y + x, TWO),
    "cat": (lambda x, y: torch.cat([x, y], 1), TWO),
    "stack": (lambda x, y: torch.stack([x, y]), TWO),
    "matmul": (lambda x, y: x @ y, TWO),
    "mean": (lambda x: x.mean(dim=(-2, -1)) / x.mean(), ONE),
    "columns": (lambda x: x.view(-1, 4), ONE),
    "permuted": (lambda x: x.permute(0, 2, 1) + x, ONE),
    "transposed": (lambda x: x.transpose(1, 2).reshape(x.size(0), -1), ONE),
    "flattened": (lambda x: F.linear(x.flatten(1), torch.ones(2, 12)), ONE),
    "between": (lambda x: x.transpose(1, 2).softmax(-1), "x: float32[b, ..., 4]"),
    "shared": (lambda x, y: x * y.unsqueeze(-1), "x: float32[*r, c]; y: float32[*r]"),
    "unpacked": (lambda x: x.view(x.shape[0] * x.shape[1]), ONE),
    "count of another": (rows_if_many, f"{ONE}; y: float32[b, 4]"),
    "rows": (rows, ONE),
    "columns by twos": (lambda x: torch.stack([column.sum() for column in x.split(1, -1)]), ONE),
    "two of the second": (second, ONE),
    "as another": (lambda x, y: x.view_as(y) + y, TWO),
    "in the sizes of another": (lambda x, y: torch.relu(x).reshape(y.shape), TWO),
    "expanded": (lambda x, y: x.expand_as(y) * 2, TWO),
    "expanded to sizes": (lambda x, y: x.expand(y.shape) + 1, TWO),
    "expanded to": (lambda x: x.expand_as(torch.ones(2, 3, 4)), ONE),
    "heads by sizes": (heads_of_sizes, ONE),
    "written out": (lambda x, y: torch.relu(x).view(*y.shape), TWO),
    "written out beside others": (lambda x: x.reshape(*x.shape[:-1], 2, -1), ONE),
    "written out in a tuple": (lambda x: torch.reshape(x, (*x.shape[1:-1], -1, x.size(0))), ONE),
    "written out of two": (lambda x, y: x.reshape(1, *x.shape, *y.shape), TWO),
    "written out for a function": (lambda x: x.reshape(-1)[: count_of(*x.shape)].view(2), ONE),
    "expanded to written out": (lambda x, y: x.expand(*y.shape), TWO),
    "broadcast of three": (lambda x, y: (x + y).sum(-1) * x, TWO),
    "gathered": (lambda x, y: x.gather(1, y.long()) + 1, TWO),
    "scattered": (lambda x, y: torch.zeros(x.shape).scatter_add(-1, y.long(), x), TWO),
    "of other dtypes": (lambda x, y: (x + y.double()).view(torch.int32), TWO),
    "sizes before": (lambda x: x.new_zeros((2,) + x.shape[1:]) + x, ONE),  # noqa: RUF005
    "zeros of sizes": (lambda x: torch.zeros(x.shape).matmul(x), ONE),
    "hstacked": (lambda x, y: torch.hstack([x, y]), TWO),
    "tiled": (lambda x: x.tile(2, 3) @ torch.ones(12, 2), ONE),
    "masked": (lambda x: x[x > 0].sum() + x, ONE),
    "masked rows": (lambda x, y: y[x > 0] @ torch.ones(4, 2), "x: float32[*r]; y: float32[*r, 4]"),
    "masked rows of a size": (lambda x, y: y[x > 0] @ torch.ones(4), "x: float32[*r]; y: float32[*r, c]"),
    "written by a mask": (set_by_mask, ONE),
    "equal sizes": (lambda x, y: x if x.shape == y.shape else y[0], TWO),
}
SIZES = (1, 2, 3, 4, 6)


def points(
    name: str, spec: str, number: int = 12
) -> Iterator[tuple[dict[str, tuple[int, ...]], dict[str, int]]]:
    """Dims of the rows and sizes of the symbols, most of them such that programs like them."""
    draw = random.Random(name)
    liked = (2, 3, 3, 2, 4)
    rows = (
        ["r"]
        if "*r" in spec
        else [n for n in "xy" if f"{n}: float32[..." in spec or f"{n}: float32[b, ..." in spec]
    )
    for rank in range(7):
        for _ in range(number):
            first = tuple(draw.choice(SIZES) for _ in range(rank))
            if draw.random() < 0.5:
                first = (*first, *liked)[len(first) + len(liked) - rank :] if rank <= 5 else first[:1] + liked
            found = {rows[0]: first}
            if len(rows) > 1:
                other = tuple(draw.choice((n, n, n, n, 1, 2)) for n in first)
                cut = draw.choice((0, 0, 0, 1)) if other else 0
                found[rows[1]] = other[cut:]
                if draw.random() < 0.3:
                    found = {rows[0]: found[rows[1]], rows[1]: first}
            yield found, {s: draw.choice(SIZES) for s in "bc" if f"{s}," in spec or f"{s}]" in spec}


def concrete(spec: str, rows: dict[str, tuple[int, ...]], sizes: dict[str, int]) -> list[tuple[int, ...]]:
    shapes = []
    for line in spec.split("; "):
        name, _, rest = line.partition(": float32[")
        shape: list[int] = []
        for part in rest.rstrip("]").split(", "):
            row = name if part == "..." else part[1:] if part[0] == "*" else ""
            shape += rows[row] if row else [sizes[part] if part in sizes else int(part)]
        shapes.append(tuple(shape))
    return shapes


def runs(target: Callable[..., Any], shapes: list[tuple[int, ...]]) -> bool:
    try:
        target(*(torch.zeros(shape) for shape in shapes))
    except (RuntimeError, IndexError, ValueError, TypeError):
        return False
    return True


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", TARGETS)
def test_accepted_set_is_what_eager_runs(name: str) -> None:
    target, spec = TARGETS[name]
    report = check(target, spec, budget_s=120)
    assert report.verdict in (Verdict.PROVED, Verdict.REFINED, Verdict.REFUTED), report.to_text()
    assert report.accepts.exact
    seen = set()
    for rows, sizes in points(name, spec):
        values = dict.fromkeys(report.accepts.symbols, 1) | sizes | assignment(report.accepts.symbols, rows)
        if not report.accepts.declared(**values):  # beyond the ranks that are looked at
            continue
        expected = runs(target, concrete(spec, rows, sizes))
        assert report.accepts.holds(**values) == expected, (rows, sizes, str(report.accepts))
        seen.add(expected)
    assert seen == {Verdict.PROVED: {True}, Verdict.REFUTED: {False}}.get(report.verdict, {True, False})


@pytest.mark.parametrize("target", [
    lambda x, y: x.view_as(y), lambda x, y: x.reshape(y.shape), lambda x, y: x.expand_as(y),
    lambda x, y: x.expand(y.shape), lambda x, y: torch.zeros(x.shape) + y.new_ones(y.shape).sum(),
    lambda x, y: torch.full(x.shape, 1.0), lambda x, y: x[x > 0],
])  # fmt: skip
def test_one_way_for_all_ranks(target: Callable[..., Any]) -> None:
    assert examine(target, TWO, replay=False).report.stats["paths"] == 1


@pytest.mark.parametrize("target", [
    lambda x, y: x.view(*y.shape), lambda x, y: torch.zeros(*x.shape, 2), lambda x, y: x + y * x,
    lambda x, y: torch.cat([x, y], -1), lambda x, y: x if x.shape == y.shape else y,
    lambda x, y: x.new_zeros((*y.shape[1:], 3)) if y.dim() else x,
])  # fmt: skip
def test_no_rank_is_looked_at_alone(target: Callable[..., Any]) -> None:
    """Not a largest rank is told, and there are few ways."""
    found = examine(target, TWO, replay=False).report
    assert "bounded-rank" not in [f.code for f in found.findings] and found.stats["paths"] <= 4


def test_many_inputs_are_told_in_a_line() -> None:
    spec = "; ".join(f"{name}: float32[...]" for name in "abcdefgh")
    report = check(lambda a, b, c, d, e, f, g, h: a + b + c + d + e + f + g + h, spec)
    assert str(report.accepts) == "broadcast(a,b,c,d,e,f,g,h) == 1"


def test_what_is_expanded_is_not_taken_for_contiguous() -> None:
    """`expand_as` repeats elements: their tensor cannot be viewed as a vector where sizes have grown."""
    with pytest.raises(RuntimeError, match="view size"):
        torch.zeros(1, 3).expand_as(torch.zeros(2, 3)).view(-1)
    assert not check(lambda x, y: x.expand_as(y).view(-1), TWO).accepts.exact
    assert check(lambda x, y: x.expand_as(y).reshape(-1) + y.reshape(-1), TWO).accepts.exact


def test_what_is_told() -> None:
    report = check(Features(), ONE)
    text = report.to_text()
    assert str(report.accepts) == "x[-1] == 4"
    assert "float32[*x[:-1], 3]" in text and "x=[2, 4]" in text
    assert "or x[-1] == 1" not in text, "what holds of any row is not worth telling"


def test_ranks_may_be_assumed() -> None:
    report = check(on_rank, ONE, "1 <= rank(x) <= 4")
    assert report.verdict is Verdict.PROVED
    report = check(Convolutions(), ONE, "rank(x) == 4; x[1] == 3; x[2] >= 8; x[3] >= 8")
    assert report.verdict is Verdict.PROVED


@pytest.mark.parametrize(
    "target", [lambda x: x.reshape([*map(int, x.shape), 1]), lambda x: x.reshape([*map(int, x.shape), 7, -1])]
)
def test_no_more_is_claimed_than_was_looked_at(target: Callable[..., Any]) -> None:
    report = check(target, ONE)
    assert report.verdict is Verdict.UNKNOWN
    assert "bounded-rank" in [f.code for f in report.findings]
    assert check(target, ONE, "rank(x) <= 2").verdict is not Verdict.UNKNOWN


def test_a_call_that_larger_ranks_may_pass_is_not_refuted() -> None:
    report = check(lambda x: torch.linalg.cross(x, x, dim=-9), ONE)
    assert report.verdict is Verdict.UNKNOWN
    report = check(lambda x: torch.gather(x, -9, x.long()), ONE)
    assert report.verdict is Verdict.REFINED and str(report.accepts) == "9 <= rank(x)"


def test_a_largest_rank_that_no_kernel_takes_is_none() -> None:
    report = check(squeezed, ONE, "rank(x) <= 100")
    assert "bounded-rank" in [f.code for f in report.findings]


def test_a_bound_on_ranks_is_told() -> None:
    codes = [f.code for f in check(squeezed, ONE).findings]
    assert "bounded-rank" in codes
    codes = [f.code for f in check(squeezed, ONE, "rank(x) <= 3").findings]
    assert "bounded-rank" not in codes


def test_memory_that_is_shared_at_unknown_rank_is_told_to_be_open() -> None:
    """Whether operands overlap is not asked of rows: the answer is not called exact."""
    report = check(lambda x: x.mT.add_(x), ONE)
    assert "approximate" in [f.code for f in report.findings] and not report.accepts.exact
    assert check(lambda x: x.add_(x), ONE).verdict is Verdict.PROVED
