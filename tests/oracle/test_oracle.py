"""Every operator held to torch itself: a slice of it here, the whole as a slow test; and proofs that a wrong
rule does not go unnoticed.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import pytest
import torch
from msgspec import structs
from oracle import core, coverage
from oracle.exemptions import LEFT_OUT, ON_CUDA, Exemption, complaints, stale, unexpected
from oracle.judge import ALONE, TOGETHER, Points, Remark, Strides, build, judge, points
from oracle.pool import WHOLE, Options, Row, run
from oracle.samples import CONTROL, CORE, PRIMS, Entry, Sample, entries

from anyshape.constraints.engine.ruleset import RuleFunction
from anyshape.constraints.ir.language import Context, Tensor, tensors
from anyshape.constraints.rules import default_rules
from anyshape.constraints.terms.dims import Term
from anyshape.constraints.terms.formula import divides
from anyshape.tracer.host.operators import INSTALLED

JUDGED = [name for name in entries() if name not in LEFT_OUT]
JOBS = os.cpu_count() or 1


def test_slice() -> None:
    quick = [name for name in JUDGED if not name.startswith(CONTROL)]  # those are compiled at every point
    rows = list(run(quick, Options(samples=1, points=5), JOBS))
    assert len(rows) == len(quick)
    assert complaints(rows, whole=False) == []


@pytest.mark.slow
def test_whole() -> None:
    assert complaints(list(run(JUDGED, WHOLE, JOBS)), whole=True) == []


# ---- a wrong rule is caught, in every family


class Careless:
    """A context that hears no requirement."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def require(self, formula: Any, reason: str, error: type[Exception] = RuntimeError) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


class Mistyped(Careless):
    """A context that takes each refusal for one of another type."""

    def require(self, formula: Any, reason: str, error: type[Exception] = RuntimeError) -> None:
        self._context.require(formula, reason, LookupError)

    def refuse(self, reason: str, error: type[Exception] = RuntimeError) -> None:
        self._context.refuse(reason, LookupError)


def lenient(rule: RuleFunction, c: Context, *args: Any, **kwargs: Any) -> Any:
    """The rule, but for what it requires."""
    return rule(Careless(c), *args, **kwargs)


def mistyped(rule: RuleFunction, c: Context, *args: Any, **kwargs: Any) -> Any:
    """The rule, but for the types of exceptions."""
    return rule(Mistyped(c), *args, **kwargs)


def severe(rule: RuleFunction, c: Context, *args: Any, **kwargs: Any) -> Any:
    """The rule, and that the first size of its first tensor is even."""
    first = next(tensors((*args, *kwargs.values())))
    c.require(divides(2, first.shape[0]) if first.shape else True, "for no reason")
    return rule(c, *args, **kwargs)


def longer(rule: RuleFunction, c: Context, *args: Any, **kwargs: Any) -> Any:
    """The rule with one more than there is, in the last size of each result."""

    def one_more(value: Any) -> Any:
        if isinstance(value, Tensor) and value.shape:
            return structs.replace(value, shape=(*value.shape[:-1], value.shape[-1] + 1))
        if isinstance(value, int | Term):
            return value + 1
        return tuple(map(one_more, value)) if isinstance(value, tuple) else value

    return one_more(rule(c, *args, **kwargs))


MISTAKES = {lenient: "accepts", mistyped: "raises", severe: "refuses", longer: "shape"}
"""Each with the remark that it has to lead to."""

SPECIMENS = {
    "attention": ("nn_functional_scaled_dot_product_attention", "scaled_dot_product_attention"),
    "control": ("control_cond", "cond"),
    "creation": ("zeros_like", "zeros_like"),
    "derivatives": ("native_dropout_backward", "native_dropout_backward"),
    "einsum": ("einsum", "einsum"),
    "elementwise": ("add", "add"),
    "gathering": ("gather", "gather"),
    "histograms": ("histogram", "histogram"),
    "indexing": ("select", "select"),
    "joining": ("cat", "cat"),
    "layout": ("view", "view"),
    "linalg": ("bmm", "bmm"),
    "lists": ("_foreach_add", "_foreach_add"),
    "loss": ("nn_functional_nll_loss", "nll_loss_nd"),
    "matrices": ("linalg_cholesky", "linalg_cholesky"),
    "norm": ("nn_functional_layer_norm", "layer_norm"),
    "prims": (PRIMS, "prims::abs"),
    "quantization": ("torch__scaled_mm_v2", "_scaled_mm_v2"),
    "random": ("bernoulli", "bernoulli"),
    "reduction": ("aminmax", "aminmax"),
    "repeating": ("expand", "expand"),
    "resize": ("nn_functional_pixel_shuffle", "pixel_shuffle"),
    "rnn": ("nn.LSTM", "lstm"),
    "sizes": (CORE, "sym_size"),
    "spectral": ("fft_fft", "fft_fft"),
    "storage": ("resize_", "resize"),
    "window": ("nn_functional_conv2d", "conv2d"),
}
"""Of each family an entry, and the operator whose rule it is given a wrong one of."""

ELSEWHERE = {
    "gpu_attention": ON_CUDA,
    "gradients": "they are no operators of torch's: tests/tracer/test_transforms.py runs programs",
    "sparse": "the oracle's samples are dense: tests/rules/test_sparse.py runs programs",
}
"""Families that the samples on a CPU cannot judge, and why; tests/rules holds them to torch otherwise."""

CANNOT = {
    *(
        (family, mistake)
        for family in "control creation histograms prims random sizes storage".split()
        for mistake in (lenient, mistyped)
    ),
    *((family, severe) for family in ("control", "histograms", "sizes")),
}
"""Rules that require nothing of sizes, and such that have no tensor before them."""


def test_every_family_has_a_specimen() -> None:
    assert SPECIMENS.keys() | ELSEWHERE.keys() == coverage.families().keys()
    assert not SPECIMENS.keys() & ELSEWHERE.keys()
    for family, (entry, op) in SPECIMENS.items():
        assert entry in entries() and op in coverage.families()[family]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "family, mistake", [(f, m) for f in SPECIMENS for m in MISTAKES if (f, m) not in CANNOT]
)
def test_wrong_rule_is_caught(family: str, mistake: Callable[..., Any]) -> None:
    entry, op = SPECIMENS[family]
    right = default_rules[op]
    wrong = default_rules + {op: replace(right, function=partial(mistake, right.function))}
    called = f".{op.rpartition(':')[2]}." if entry in (CORE, PRIMS) else ""
    samples = (sample for sample in entries()[entry].samples() if called in str(sample.call))
    limit = 3 if entry.startswith(CONTROL) else None  # torch compiles it at every point
    few = islice(samples, 5)
    remarks = (r for sample in few for r in unexpected(entry, judge(sample, wrong, Points(limit)).remarks))
    assert any(remark.kind == MISTAKES[mistake] for remark in remarks)


# ---- what the harness itself is made of


def test_exemption_for_other_releases_is_not_stale() -> None:
    row = Exemption("add", "accepts", "a reason")
    here, elsewhere = replace(row, only=(INSTALLED,)), replace(row, only=((2, 0), (9, 0)))
    assert stale([], (here, elsewhere)) == [here]


def test_exemption_that_nothing_needs_is_stale() -> None:
    remark = Remark("accepts", "function 0: (float32[2])", "[3]", "RuntimeError: no", "accepts", "add")
    row = Exemption("add", "accepts", "a reason", "RuntimeError: no")
    assert unexpected("add", [remark], (row,)) == []
    assert stale([("add", [remark])], (row,)) == []
    for other in (replace(row, entry="sub"), replace(row, kind="refuses"), replace(row, about="yes")):
        assert unexpected("add", [remark], (other,)) == [remark]
        assert stale([("add", [remark])], (row, other)) == [other]


def test_complaints() -> None:
    remark = Remark("refuses", "function 0: ()", "", "runs", "no", "add")
    assert complaints([Row("add", points=1)], whole=False) == []
    assert complaints([Row("add", points=1, remarks=[remark])], whole=False) == ["add: 1 refuses"]
    assert "LEFT_OUT" in complaints([Row("add")], whole=True)[0]


def crash(x: torch.Tensor) -> torch.Tensor:
    if type(x) is torch.Tensor and len(x) == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return x + 1


def test_call_that_kills_its_process_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Deadly(Entry):
        def samples(self) -> Iterator[Sample]:
            yield Sample("deadly", "function", 0, crash, (torch.ones(3),), {})

        def errors(self) -> Iterator[Sample]:
            yield from ()

    monkeypatch.setitem(entries(), "deadly", Deadly("deadly"))
    (row,) = run(["deadly"], WHOLE, 1)
    assert [(r.kind, r.point) for r in row.remarks] == [("crash", "[0]")]
    assert row.points == row.agreed == 4


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(24).view(2, 3, 4),
        torch.arange(24).view(2, 3, 4).permute(2, 0, 1),
        torch.arange(48).view(2, 3, 8)[..., ::2],
        torch.arange(4).expand(2, 3, 4),
        torch.tensor(3),
    ],
)
def test_tensor_is_built_in_other_sizes(tensor: torch.Tensor) -> None:
    same = build(tensor, Strides.of(tensor), tuple(tensor.shape))
    assert torch.equal(same, tensor) and same.stride() == tensor.stride()
    sizes = tuple(n + 1 for n in tensor.shape)
    layout = Strides.of(tensor)
    assert layout is not None
    made = build(tensor, layout, sizes)
    assert made.shape == sizes and made.stride() == layout.strides(sizes)


def test_points_move_equal_sizes_together() -> None:
    at = {"a": 3, "b": 3, "c": 5}
    made = list(points(at))
    assert made[0] == at
    for expected in ({"a": 4, "b": 3, "c": 5}, {"a": 0, "b": 0, "c": 5}, {"a": 3, "b": 3, "c": 1}):
        assert expected in made
    assert len(made) == len({tuple(point.values()) for point in made})
    assert len(list(points(at, 5))) == 6
    for count, alone in ((20, 80), (24, ALONE), (40, ALONE)):
        assert len(list(points({f"t{i}": 5 for i in range(count)}))) == 1 + alone + TOGETHER


# ---- the page


def test_the_zoo_is_told_with_its_reasons() -> None:
    """The same reason at two lines is one; what is judged wrongly is never left out."""
    row = {"failure": "", "disagreements": [], "exact": True, "approximate": [], "reasons": [], "no_rule": []}
    vague = "gather is given indices that the sizes decide: where n <= 3, sizes may be accepted [{}]"
    rows = [
        {**row, "name": "good", "verdict": "proved"},
        {**row, "name": "a", "verdict": "refined", "exact": False, "approximate": [vague.format("a.py:3 x")]},
        {**row, "name": "b", "verdict": "unknown", "exact": False, "approximate": [vague.format("b:5 [i]")]},
        {**row, "name": "wrong", "verdict": "refined", "disagreements": ["n=1: eager runs"]},
        {**row, "name": "dead", "verdict": "", "failure": "time-out after 2 s", "exact": False},
    ]
    run = {"torch": "", "packages": {}, "left_out": {}, "catalogue": 9, "totals": {}, "rows": rows}
    assert coverage.zoo_figures(run)["inexact"] == {
        "indices are given that the sizes decide: sizes may be accepted": {"a": "refined", "b": "unknown"},
        "n=1: eager runs": {"wrong": "refined"},
        "time-out after 2 s": {"dead": ""},
    }


FIGURED = (coverage.read(coverage.FIGURES) or {}).get("torch")
of_figures = pytest.mark.skipif(
    torch.__version__.partition("+")[0] != FIGURED, reason="the figures of the oracle are of another release"
)


def test_figures_are_those_of_the_pinned_torch() -> None:
    assert f"torch=={FIGURED}" in coverage.PINS.read_text().splitlines(), "make coverage"


@of_figures
def test_page_is_that_of_its_figures() -> None:
    made = coverage.read(coverage.FIGURES)
    assert made is not None
    expected = coverage.page(made, coverage.read(coverage.ZOO), coverage.read(coverage.RELEASES))
    assert coverage.PAGE.read_text() == expected, "write it anew: python tests/oracle/coverage.py"
    assert coverage.text_of(made) == coverage.FIGURES.read_text()


@of_figures
def test_figures_are_those_of_all_entries() -> None:
    made = coverage.read(coverage.FIGURES)
    assert made is not None
    assert set(made["entries"]) == set(JUDGED), "make coverage"
    assert tuple(made["core"]) == core.overloads(), "make coverage"
    assert None not in made["core"].values(), "a core operator that no entry calls"


def test_every_figure_of_the_page_comes_from_the_figures() -> None:
    made = coverage.read(coverage.FIGURES)
    assert made is not None
    entry = next(row for row in made["entries"].values() if row["points"])
    entry["points"] += 1_000_000
    others = coverage.read(coverage.ZOO), coverage.read(coverage.RELEASES)
    assert coverage.page(made, *others) != coverage.PAGE.read_text()


def test_the_figures_of_another_release_are_what_differs() -> None:
    row = {"samples": 2, "points": 5, "agreed": 5, "remarks": {}}
    worse = {**row, "agreed": 4, "remarks": {"accepts": 1}}
    pinned = {"torch": "1", "entries": {"a": row, "b": row, "old": row, "same": worse}}
    made = {"torch": "2", "entries": {"a": worse, "b": row, "new": row, "same": {**worse, "samples": 3}}}
    assert coverage.beside(made, pinned) == {
        "entries": 4, "exact": 2, "samples": 9, "points": 20, "agreed": 18,
        "only here": ["new"], "only there": ["old"], "differ": {"a": [[], ["accepts"]]},
    }  # fmt: skip
