"""Numbers that the data choose, where sizes are made of them: what holds of all choices, what no sizes make
sure of, and what sizes decide after all; against eager runs with data that choose each number, both ends too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from random import Random

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, arange

from anyshape.constraints.contents.outcomes.choices import MOST_TERMS, Choice, of_each_choice
from anyshape.constraints.contents.sizes import arrays
from anyshape.constraints.terms.dims import minimum, sym, total
from anyshape.constraints.terms.formula import ge, holds
from anyshape.typecheck import check
from anyshape.typecheck.facade import Report
from benchmarks.fuzz.eager import Drawn

Target = Callable[[Tensor], object]
SIZES = (*range(1, 14), 21, 22)


def n(x: Tensor) -> int:
    return x.shape[0]


def data(size: int) -> Iterator[tuple[str, Tensor]]:
    """The draws, and the numbers of an input: in any turn, alike, and negative."""
    rising = arange(size).float()
    yield "low", torch.zeros(size)
    yield "high", torch.ones(size)
    yield "", -rising - 1
    for turn, x in product(range(-3, size + 3), (rising, -rising, rising - 1.5)):
        yield f"turn {turn}", x.roll(turn)


def outcomes(target: Target, size: int, dtype: torch.dtype = torch.float32) -> set[bool]:
    """Whether it runs, for some data and for others."""
    found = set()
    for drawn, x in data(size):
        try:
            with Drawn(drawn):
                target(x.to(dtype))
            found.add(True)
        except (RuntimeError, IndexError, AssertionError, ValueError):
            found.add(False)
    return found


def is_wrong(report: Report, target: Target) -> bool:
    """Returns whether sizes are accepted that some data fail, or refused that all data pass."""
    return any(report.accepts.holds(q=size) != (outcomes(target, size) == {True}) for size in SIZES)


def scaled(x: Tensor) -> Tensor:
    return (torch.rand(3) * n(x)).long().int().long()


def beside(x: Tensor) -> Tensor:
    drawn = torch.multinomial(torch.ones(2 * n(x)), n(x), replacement=True)
    return torch.stack((drawn, drawn + 1))


def least_of_two(x: Tensor) -> Tensor:
    return torch.minimum(torch.randint(n(x), (5,)), torch.full((5,), 3))


@pytest.mark.parametrize("target", [
    lambda x: x.select(0, torch.randint(0, n(x), (3,)).sum().item()),
    lambda x: x.select(0, torch.bucketize(x, torch.linspace(0, 1, 3)).flatten()[0].item()),
    lambda x: x.narrow(0, int(torch.tensor(torch.bucketize(x, torch.zeros(1)).tolist()).unique()[0]), 1),
    lambda x: torch.zeros(7).narrow(0, int((torch.randint(n(x), (4,)) - 3)[0]), 1),
    lambda x: torch.zeros(5).narrow(0, int(x.argmax()), 1),
    lambda x: torch.zeros(5).narrow(0, int((torch.randint(n(x), (2,)) << 1)[::2][0]), 1),
    lambda x: torch.zeros((x.topk(2).indices + 1).clamp(max=2).cumprod(0).tolist()),
    lambda x: torch.multinomial(torch.ones(6), int((torch.randint(n(x), x.shape) + 1).max())),
    lambda x: torch.multinomial(torch.ones(8), int((scaled(x) + 1).max())),
    lambda x: torch.multinomial(torch.ones(7), int(beside(x).max())),
    lambda x: torch.multinomial(torch.ones(9), int(F.pad(torch.randint(n(x), (3,)), (0, 2), value=2).max())),
    lambda x: torch.multinomial(torch.ones(9), int(torch.cat((torch.randint(n(x), (3,)), arange(4))).max())),
    lambda x: torch.zeros(3)[least_of_two(x).max().item()],
    lambda x: x.narrow(0, int((torch.rand(1) * n(x)).long()[0]), 1),
    lambda x: x[(torch.rand(2) * (n(x) - 3)).long()],
    lambda x: torch.zeros(7)[(torch.rand(2) * (n(x) - 3)).long() * n(x)],
    lambda x: torch.zeros(12)[torch.randint(n(x), (4,)).sum().item()],
    lambda x: x.expand(3, -1)[:, torch.tensor(torch.randint(n(x), (2,)).sum().item()).clamp(max=2)],
])  # fmt: skip
def test_all_choices_are_valid(target: Target) -> None:
    report = check(target, "x: float32[q]", replay=False)
    assert report.accepts.exact and not is_wrong(report, target), report.to_text()


def above_zero(x: Tensor) -> Tensor:
    found = (x > 0).nonzero()[:, 0]
    return torch.maximum(found, torch.zeros_like(found))


@pytest.mark.parametrize("target", [
    lambda x: torch.multinomial(torch.ones(6), int(torch.randint(n(x), x.shape).max())),
    lambda x: torch.multinomial(torch.ones(6), int((torch.rand(3) * n(x)).long().max())),
    lambda x: torch.split(x, (torch.randint(5, x.shape).to(torch.uint8) * 5).long().tolist()),
    lambda x: torch.multinomial(torch.ones(6), int(torch.where(x >= 0)[0].max())),
    lambda x: torch.multinomial(torch.ones(6), int(above_zero(x).max())),
])  # fmt: skip
def test_some_choice_is_never_valid(target: Target) -> None:
    report = check(target, "x: float32[q]", replay=False)
    assert report.verdict == "refined" and report.accepts.exact and not is_wrong(report, target)


@pytest.mark.parametrize(("target", "accepted"), [
    (lambda x: x[x > 0].max(), "q >= 1"), (lambda x: x[x > 0][2], "q >= 3"),
    (lambda x: torch.topk(x[x > 0], 3), "q >= 3"), (lambda x: torch.where(x >= 0)[0].amin(0), "q >= 1"),
    (lambda x: x[: int((x > 0).nonzero()[:, 0].max())], "q >= 1"),
    (lambda x: torch.multinomial(torch.ones(5), len(x[x > 0])), "1 <= q <= 5"),
    (lambda x: torch.zeros(4).narrow(0, len(x[x > 0]), 1), "q <= 3"),
    (lambda x: torch.zeros(3 - len(x[x > 0])), "q <= 3"),
    (lambda x: torch.ones(3)[torch.where(x >= 0)[0].max()], "1 <= q <= 3"),
])  # fmt: skip
def test_no_sizes_give_a_mask_true_elements(target: Target, accepted: str) -> None:
    """Where no sizes make sure of it, the data alone decide; else all choices have to be valid."""
    report = check(target, "x: float32[q]", "q >= 0", replay=False)
    expected = check(lambda x: x, "x: float32[q]", ("q >= 0", accepted), replay=False).accepts
    assert report.accepts.exact, report.to_text()
    for size in range(14):
        assert report.accepts.holds(q=size) == expected.holds(q=size), (size, report.to_text())
        assert report.accepts.holds(q=size) in outcomes(target, size), size


def guarded(x: Tensor) -> Tensor:
    return x[x > 0].max() if (x > 0).any() else x.sum()


def asserted(x: Tensor) -> Tensor:
    assert (x > 0).any()
    return x[x > 0].max()


def contrary(x: Tensor) -> Tensor:
    assert (x < 0).all()
    return x[x > 0].max()


def asserted_before(x: Tensor) -> Tensor:
    assert (x > 0).any()
    return torch.ones(5)[torch.randint(0, 9 + n(x), (3,))]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [torch.float32, torch.int8, torch.uint8])
@pytest.mark.parametrize("target", [
    guarded, asserted, contrary, asserted_before, lambda x: x[x >= 0].max(), lambda x: x[x <= 127].max(),
    lambda x: x[x <= 255].max(), lambda x: x[(x > 0) | (x <= 0)].max(), lambda x: x[x == x.max()].max(),
    lambda x: x[x > 0].max() + x[x <= 0].max(), lambda x: x[x > 0][2] + x[x <= 0][1],
    lambda x: x[x > 0].view(5), lambda x: x.view(len(x[x > 0]), -1), lambda x: x[x == x].max(),
    lambda x: torch.cat([x, x])[torch.cat([x > 0, x <= 0])].max(),
    lambda x: torch.multinomial(torch.ones(9), int(torch.cat((x > 0, x == x)).nonzero()[:, 0].max())),
    lambda x: torch.multinomial(torch.ones(9), int(x.cummax(0).indices.max())),
    lambda x: torch.multinomial(torch.ones(9), int((x == x.max()).nonzero()[:, 0].max()) + 1),
    lambda x: torch.multinomial(torch.ones(20), int(x.argsort()[:2].max())),
    lambda x: torch.zeros(9)[x.cummax(0).indices.cumsum(0)],
    lambda x: x.clone().index_put(((t := torch.randint(3, (n(x),)) + 4)[t < 6],), x.new_zeros(())),
])  # fmt: skip
def test_nothing_wrong_is_said(target: Target, dtype: torch.dtype) -> None:
    name = str(dtype).removeprefix("torch.")
    report = check(target, f"x: {name}[q]", replay=False)
    for size in range(1, 10):
        found = outcomes(target, size, dtype)
        if found == {True}:
            assert report.verdict != "refuted", size
            assert not report.accepts.exact or report.accepts.holds(q=size), (size, report.to_text())
        elif found == {False}:
            assert not report.accepts.certain.holds(q=size), (size, report.to_text())
        else:
            assert report.verdict != "refuted", size


def below_three(x: Tensor) -> Tensor:
    chosen = torch.maximum(t := x.topk(n(x))[1], torch.zeros_like(t))
    return chosen[chosen < 3].flip(0)


@pytest.mark.parametrize("target", [
    lambda x: F.embedding(below_three(x), torch.zeros(n(x) // 2, 2)),
    lambda x: x.index_put(((t := F.pad(arange(n(x)), (0, 2), value=2))[t < 1],), torch.tensor(1.0)),
    lambda x: torch.ones(9).index_copy(0, (t := torch.tensor([n(x), 3]))[t < 2] - 2, x.new_ones(1)),
    lambda x: torch.zeros(n(x) + 2, 2).repeat_interleave(arange(n(x)).abs().unique(), dim=0),
    lambda x: torch.zeros(3, 2).repeat_interleave((arange(n(x)) // 2).sqrt().long().unique(), dim=0),
    lambda x: torch.split(x, torch.fmod(torch.tensor([0, n(x), 1]), 1).tolist()),
    lambda x: torch.multinomial(torch.ones(8), int((arange(n(x)) // 2).max()) + 1),
])  # fmt: skip
def test_sizes_decide_how_many(target: Target) -> None:
    report = check(target, "x: float32[q]", replay=False)
    assert report.accepts.exact and not is_wrong(report, target), report.to_text()


def test_choices_that_have_to_differ_are_not_taken_for_free(monkeypatch: pytest.MonkeyPatch) -> None:
    def target(x: Tensor) -> Tensor:
        return torch.multinomial(torch.ones(20), int(x.topk(2).indices.max()))

    assert not check(target, "x: float32[q]", "q >= 2", replay=False).accepts.exact
    monkeypatch.setattr(arrays, "DISTINCT", arrays.DISTINCT - {"topk"})
    assert is_wrong(check(target, "x: float32[q]", "q >= 2", replay=False), target)


@pytest.mark.parametrize("bound, verdict", [(1, "refuted"), (2, "refined")])
def test_what_no_choice_satisfies_is_refuted(bound: int, verdict: str) -> None:
    def target(x: Tensor) -> Tensor:
        return torch.zeros(bound).narrow(0, len(x.nonzero()) + 1, 1)

    report = check(target, "x: float32[q]", replay=False)
    assert (report.verdict, str(report.accepts)) == (verdict, "False")


@pytest.mark.parametrize("terms", range(2, MOST_TERMS + 3))
def test_requirements_on_many_minima_are_not_split(terms: int) -> None:
    """A requirement on few terms, the constant among them, is one on sizes, the same for the choices p, …, q;
    one on more terms is left alone.
    """
    names = [f"a{i}" for i in range(terms - 1)]
    formula = ge(total(minimum(sym("k"), sym(name)) for name in names), terms)
    asked = of_each_choice(formula, {"k": Choice(((True, sym("p")), (True, sym("q"))), whole=True)})
    assert (asked is None) == (terms > MOST_TERMS)
    draw, found = Random(terms), set()
    for _ in range(300 if asked else 0):
        p, q, *others = (draw.randint(0, 4) for _ in range(terms + 1))
        sizes = dict(zip(names, others, strict=True), p=p, q=p + q)
        valid = all(holds(formula, {**sizes, "k": k}) for k in range(p, p + q + 1))
        assert holds(asked.condition, sizes) == valid, sizes
        found.add(valid)
    assert not asked or found == {True, False}


WITH_TRUE: list[Callable[[Tensor], Tensor]] = [
    torch.diag_embed, torch.diag, lambda x: torch.tril(x.expand(3, -1)), torch.abs, torch.relu,
    lambda x: x.index_fill(0, torch.tensor([0]), 0.0), lambda x: torch.stack((x, torch.zeros_like(x))),
    lambda x: x.byte().long(), lambda x: torch.outer(x, x), lambda x: torch.kron(torch.eye(2), x),
    lambda x: torch.diagonal_scatter(torch.zeros(n(x), n(x)), x),
]  # fmt: skip


@pytest.mark.parametrize("made", WITH_TRUE)
def test_a_mask_may_have_true_elements_for_all_data(made: Callable[[Tensor], Tensor]) -> None:
    """More than the source has, then: the data do not decide that."""
    report = check(lambda x, y: made(x).masked_scatter(made(x) > -1, y.to(made(x).dtype)), "x: [q]; y: [r]",
                   replay=False)  # fmt: skip
    assert report.verdict != "proved" and not report.accepts.exact, report.to_text()
    t = made(torch.randn(3))
    with pytest.raises(RuntimeError, match="Number of elements of source"):
        t.masked_scatter(t > -1, torch.zeros(0, dtype=t.dtype))


@pytest.mark.parametrize(("target", "inputs"), [
    (lambda x, y: x.masked_scatter(x > -1, y), "x: float32[q]; y: float32[r]"),
    (lambda x, y: x.roll(1).masked_scatter(~(x.roll(1) > -1), y), "x: float32[q]; y: float32[r]"),
    (lambda x, m, y: x.masked_scatter(m[..., None].expand_as(x), y),
     "x: [b, s, h]; m: bool[b, s]; y: [r, h]"),
    (lambda x, i, y: x.masked_scatter((i == 5)[..., None].expand_as(x), y),
     "x: [b, s, h]; i: int64[b, s]; y: [r, h]"),
])  # fmt: skip
def test_the_data_decide_whether_a_mask_has_true_elements(target: Callable[..., Tensor], inputs: str) -> None:
    assert check(target, inputs, replay=False).verdict == "proved"


@pytest.mark.parametrize("number", [-129, -128, 127, 128, 0])
def test_a_comparison_with_a_number_that_no_element_passes(number: int) -> None:
    """All 8-bit integers are above -129; whether one is -128 the data decide."""
    report = check(lambda x, y: x.masked_scatter(x > number, y), "x: int8[q]; y: int8[r]", replay=False)
    assert (report.verdict == "proved") == (-128 < number < 127), report.to_text()
