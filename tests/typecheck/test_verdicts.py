"""Verdicts that mean it: an approximation forbids some, what the data decide refuses nothing, and a run of
the program that contradicts ends them.
"""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor
from torch import distributions as D

from anyshape.constraints.ir.language import Context, Direction
from anyshape.constraints.ir.language import Tensor as Known
from anyshape.constraints.rules import default_rules
from anyshape.constraints.terms.dims import sym
from anyshape.constraints.terms.formula import all_of, eq, ge, le, ne
from anyshape.tracer.values.symbolic import SymbolicTensor
from anyshape.typecheck import Code, Report, check

# --- the direction of an approximation -------------------------------------------------------------------


def roughly(may: Direction, where: Any = True, need: Any = True) -> Report:
    """A program with a call whose rule is approximate, and requires something."""

    def rule(c: Context, input: Known) -> Known:
        c.approximate("roughly so", may, where)
        c.require(need, "a need")
        return input

    rules = default_rules + {"relu": rule}
    return check(lambda x: x.relu(), "x: float32[b, h]", rules=rules, replay=False)


h = sym("h")
FAR = ge(h, 8)
EVEN = eq(h % 2, 0)


@pytest.mark.parametrize("may, where, need, verdict, exact, certain", [
    ("accept", True, True, "unknown", False, "False"),
    ("refuse", True, True, "proved", True, "True"),
    ("both", True, True, "unknown", False, "False"),
    ("accept", FAR, True, "unknown", False, "h <= 7"),
    ("both", FAR, True, "unknown", False, "h <= 7"),
    ("accept", le(h, 0), True, "proved", True, "True"),  # no such sizes are declared
    ("accept", True, EVEN, "refined", False, "False"),  # what is required all the same refuses for certain
    ("accept", FAR, EVEN, "refined", False, "h <= 6 and h % 2 == 0"),
    ("refuse", True, EVEN, "unknown", False, "h % 2 == 0"),
    ("refuse", FAR, EVEN, "refined", False, "h % 2 == 0"),  # below 8 odd sizes are surely refused
    ("both", True, EVEN, "unknown", False, "False"),
    ("both", FAR, EVEN, "refined", False, "h <= 6 and h % 2 == 0"),
    ("accept", FAR, le(h, 7), "refined", True, "h <= 7"),  # none comes to the approximation
    ("accept", True, False, "refuted", True, "False"),
    ("refuse", True, False, "unknown", False, "False"),
    ("both", True, False, "unknown", False, "False"),
    ("refuse", FAR, False, "unknown", False, "False"),  # from 8 on they may be accepted
])  # fmt: skip
def test_what_an_approximation_forbids(
    may: Direction, where: Any, need: Any, verdict: str, exact: bool, certain: str
) -> None:
    report = roughly(may, where, need)
    assert report.verdict == verdict, report.to_text()
    assert report.accepts.exact is exact
    assert str(report.accepts.certain) == certain


def test_what_is_not_certain_is_not_claimed_to_be_refused() -> None:
    """What an unknown report says of all accepted sizes leaves out what is doubtful."""
    assert str(roughly("refuse", FAR, False).accepts) == "8 <= h"
    assert str(roughly("both", True, EVEN).accepts) == "True"


def test_the_direction_is_told() -> None:
    told = [f.message for f in roughly("accept", FAR).findings if f.code is Code.APPROXIMATE]
    assert told == ["roughly so: where 8 <= h, sizes may be accepted that torch refuses"]
    told = [f.message for f in roughly("refuse", True, EVEN).findings if f.code is Code.APPROXIMATE]
    assert told == ["roughly so: sizes may be refused that torch accepts"]


def test_a_long_condition_is_left_out_of_a_message() -> None:
    long = all_of(ne(h % n, 1) for n in range(3, 20))
    told = [f.message for f in roughly("refuse", long).findings if f.code is Code.APPROXIMATE]
    assert told == ["roughly so: some sizes may be refused that torch accepts"]


def test_what_comes_after_an_over_acceptance_is_certain() -> None:
    """Its result is right, so that a later refusal refutes."""

    def rule(c: Context, input: Known) -> Known:
        c.approximate("roughly so", "accept")
        return input

    def later(x: Tensor) -> Tensor:
        return x.relu().view(-1, x.shape[1] + 1, x.shape[0] * x.shape[1] + 1)

    report = check(later, "x: float32[b, h]", rules=default_rules + {"relu": rule})
    assert report.verdict == "refuted" and report.accepts.exact


# --- what the data decide --------------------------------------------------------------------------------


def not_a_number(x: Tensor) -> Tensor:
    if x.isnan().any():
        raise ValueError(f"of {x.shape[0]} rows some have no number: {x}")
    return x


def asserts_asynchronously(x: Tensor) -> Tensor:
    torch._assert_async((x >= 0).all())
    return x


def checks_within_a_check(x: Tensor) -> Tensor:
    if (x > 1e9).any():
        if (x > 1e12).any():
            raise ValueError("far too great")
        raise ValueError("too great")
    return x


def either_raises_or_both(x: Tensor) -> Tensor:
    if x.sum() > 1e9:
        raise ValueError("too great")
    if x.shape[0] > 3:
        raise ValueError("too long")
    return x


def raises_for_any_data(x: Tensor) -> Tensor:
    if x.sum() > 0:
        raise ValueError("positive")
    raise ValueError("not positive")


def either_side_refuses_long_ones(x: Tensor) -> Tensor:
    return x[:3].view(3, -1) if x.sum() > 0 else x[:, None][:3].view(3, -1)


@pytest.mark.parametrize("target, verdict, accepts, told", [
    (not_a_number, "proved", "True", 1),
    (asserts_asynchronously, "proved", "True", 0),
    (checks_within_a_check, "proved", "True", 2),
    (either_raises_or_both, "refined", "b <= 3", 1),
    (raises_for_any_data, "refuted", "False", 0),
])  # fmt: skip
def test_what_data_alone_decide_refuses_no_sizes(
    target: Callable[..., Any], verdict: str, accepts: str, told: int
) -> None:
    report = check(target, "x: float32[b, h]")
    said = report.verdict, str(report.accepts), report.accepts.exact
    assert said == (verdict, accepts, True), report.to_text()
    assert [f.code for f in report.findings].count(Code.DATA) == told
    assert "contradicted" not in {f.code for f in report.findings}


def both_signs(x: Tensor) -> Tensor:
    assert (x > 1).all()
    assert (x < 0).all()
    return x


def no_sign(x: Tensor) -> Tensor:
    if x.sum() > 0:
        raise ValueError("positive")
    if x.sum() <= 0:
        raise ValueError("not positive")
    return x.view(-1, 2)


def one_sign_or_another(x: Tensor) -> Tensor:
    if x.sum() > 0:
        assert (x > -1).all()
        assert (x < 1).all()
    return x


@pytest.mark.parametrize("target, exact", [
    (both_signs, False), (no_sign, False), (one_sign_or_another, True), (not_a_number, True),
])  # fmt: skip
def test_checks_that_data_have_to_pass_together_are_no_proof_without_a_run(
    target: Callable[[Tensor], Tensor], exact: bool
) -> None:
    report = check(target, "x: float32[b, h]", replay=False)
    assert report.accepts.exact == exact, report.to_text()
    assert (report.verdict == "proved") == exact
    assert (Code.INCOMPLETE in {f.code for f in report.findings}) != exact


@pytest.mark.parametrize("target, verdict, accepts, told", [
    (lambda x: x[torch.randint(0, 2 * len(x), (5,))[0]], "refined", "False", True),
    (lambda x: x[x.argmax() + 1], "refined", "False", True),
    (lambda x: x[torch.randint(0, 6, (5,))], "refined", "6 <= n", False),
    (lambda x: x[torch.tensor([len(x)])], "refuted", "False", False),
])  # fmt: skip
def test_a_choice_that_is_valid_at_no_size_is_not_refuted(
    target: Callable[..., Any], verdict: str, accepts: str, told: bool
) -> None:
    report = check(target, "x: float32[n]")
    said = report.verdict, str(report.accepts), report.accepts.exact
    assert said == (verdict, accepts, True), report.to_text()
    assert (Code.DATA in {f.code for f in report.findings}) == told
    assert ("at no declared sizes for all data" in report.to_text()) == told
    assert "incomplete" not in {f.code for f in report.findings}


def test_what_one_side_refuses_is_not_certain() -> None:
    def by_data(x: Tensor) -> Tensor:
        return x.view(2, -1) if x.sum() > 0 else x.view(3, -1)

    report = check(by_data, "x: float32[n]", replay=False)
    assert report.verdict == "unknown" and not report.accepts.exact
    assert str(report.accepts.certain) == "n % 6 == 0"
    assert "only for data" in next(f.message for f in report.findings if f.code is Code.INCOMPLETE)
    assert check(by_data, "x: float32[n]", "n % 6 == 1").verdict == "refuted"  # neither side accepts
    assert check(by_data, "x: float32[n]", "n % 6 == 2").verdict == "unknown"
    assert check(by_data, "x: float32[n]", "n % 6 == 0").verdict == "proved"


def scales(x: Tensor) -> Tensor:
    return x.exp()


DISTRIBUTIONS: dict[str, Callable[[Tensor], D.Distribution]] = {
    "Normal": lambda x: D.Normal(x, x.exp()),
    "LogNormal": lambda x: D.LogNormal(x, x.exp()),
    "HalfNormal": lambda x: D.HalfNormal(x.exp()),
    "Cauchy": lambda x: D.Cauchy(x, x.exp()),
    "Laplace": lambda x: D.Laplace(x, x.exp()),
    "Exponential": lambda x: D.Exponential(x.exp()),
    "Gamma": lambda x: D.Gamma(x.exp(), x.exp()),
    "Chi2": lambda x: D.Chi2(x.exp()),
    "StudentT": lambda x: D.StudentT(x.exp(), x, x.exp()),
    "FisherSnedecor": lambda x: D.FisherSnedecor(x.exp(), x.exp()),
    "Beta": lambda x: D.Beta(x.exp(), x.exp()),
    "Pareto": lambda x: D.Pareto(x.exp(), x.exp()),
    "Uniform": lambda x: D.Uniform(x, x + 1),
    "Bernoulli": lambda x: D.Bernoulli(logits=x),
    "ContinuousBernoulli": lambda x: D.ContinuousBernoulli(logits=x),
    "Geometric": lambda x: D.Geometric(logits=x),
    "Binomial": lambda x: D.Binomial(5, logits=x),
    "NegativeBinomial": lambda x: D.NegativeBinomial(5, logits=x),
    "Poisson": lambda x: D.Poisson(x.exp()),
    "Categorical": lambda x: D.Categorical(logits=x),
    "OneHotCategorical": lambda x: D.OneHotCategorical(logits=x),
    "RelaxedBernoulli": lambda x: D.RelaxedBernoulli(torch.tensor(0.5), logits=x),
    "Multinomial": lambda x: D.Multinomial(4, logits=x),
    "Dirichlet": lambda x: D.Dirichlet(x.exp()),
    "Independent": lambda x: D.Independent(D.Normal(x, x.exp()), 1),
    "MultivariateNormal": lambda x: D.MultivariateNormal(x, scale_tril=torch.eye(3)),
    "LowRankMultivariateNormal": lambda x: D.LowRankMultivariateNormal(x, x.unsqueeze(-1), x.exp()),
    "MixtureSameFamily": lambda x: D.MixtureSameFamily(D.Categorical(logits=x), D.Normal(x, x.exp())),
    "Transformed": lambda x: D.TransformedDistribution(
        D.Normal(x, x.exp()), [D.transforms.SigmoidTransform(), D.transforms.AffineTransform(1.0, 2.0)]
    ),
}
METHODS: dict[str, Callable[[D.Distribution], Any]] = {
    "mean": lambda d: d.mean,
    "variance": lambda d: d.variance,
    "log_prob": lambda d: d.log_prob(d.sample()),
    "entropy": lambda d: d.entropy(),
    "rsample": lambda d: d.rsample(),
    "expand": lambda d: d.expand((2, *d.batch_shape)).sample(),
    "kl": lambda d: D.kl_divergence(d, d),
}


OPEN = {"LowRankMultivariateNormal"}
"""Those that compute a matrix, of which it is not known that it has a Cholesky decomposition."""


def ran(target: Callable[[Tensor], Any], b: int, h: int) -> bool | None:
    """Whether it runs with some data; None where the distribution does not have the method."""
    found = False
    for fill in (torch.zeros, torch.ones, torch.randn):
        try:
            target(fill(b, h))
            found = True
        except NotImplementedError:
            return None
        except (RuntimeError, ValueError):
            pass
    return found


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions_check_their_arguments(name: str) -> None:
    """Each method of each: refused where eager PyTorch refuses all data, and nowhere else."""
    decided = 0
    for method in METHODS.values():

        def target(x: Tensor, method: Callable[[D.Distribution], Any] = method) -> Any:
            return method(DISTRIBUTIONS[name](x))

        truth = {(b, h): ran(target, b, h) for b in (1, 2) for h in (1, 2, 3)}
        if None in truth.values():
            continue
        report = check(target, "x: float32[b, h]")
        decided += report.verdict != "unknown"
        for (b, h), runs in truth.items():
            if report.accepts.certain.holds(b=b, h=h):
                assert runs, report.to_text()
            if not report.accepts.holds(b=b, h=h) and (report.accepts.exact or report.verdict == "unknown"):
                assert not runs, report.to_text()
    assert (decided >= 2) == (name not in OPEN)


def test_what_some_choice_refuses_refutes_nothing() -> None:
    table = torch.zeros(3)

    def chosen(x: Tensor) -> Tensor:
        return table[x.topk(2).indices]

    some = check(chosen, "x: float32[n]", "n >= 4")
    assert some.verdict == "refined" and not some.accepts.holds(n=4), some.to_text()
    assert Code.DATA in {finding.code for finding in some.findings}
    every = check(lambda x: table[torch.arange(x.shape[0])], "x: float32[n]", "n >= 4")
    assert every.verdict == "refuted"


# --- runs that contradict --------------------------------------------------------------------------------


def test_data_that_are_never_valid_prove_nothing() -> None:
    report = check(lambda x: D.Normal(x, -torch.rand_like(x).cumsum(0)).mean, "x: float32[b, h]")
    assert report.verdict == "unknown" and not report.accepts.exact
    (found,) = [f for f in report.findings if f.code is Code.CONTRADICTED]
    assert "should run, but it is refused" in found.message
    assert "all data that were tried are refused" in found.message


def test_an_error_that_is_no_refusal_ends_a_verdict() -> None:
    class Reads(torch.nn.Module):
        """It looks at what no recording has: the elements of its input."""

        def forward(self, x: Tensor) -> Tensor:
            if not isinstance(x, SymbolicTensor):
                raise KeyError("missing")
            return x + 1

    report = check(Reads(), "x: float32[b, h]")
    assert report.verdict == "unknown" and str(report.accepts.certain) == "False", report.to_text()
    (found,) = [f for f in report.findings if f.code is Code.CONTRADICTED]
    assert "should run, but it raises KeyError" in found.message and found.witness is not None


def opens_a_file(x: Tensor) -> Tensor:
    def opening(x: Tensor) -> Tensor:
        with open(os.devnull):
            return x + 1

    return torch.cond(x.sum() > 0, opening, lambda x: x - 1, (x,))


def test_a_function_that_torch_cannot_compile_ends_a_proof(caplog: pytest.LogCaptureFixture) -> None:
    """Eager torch raises the compiler's error, whatever the sizes; no rule tells which functions it takes."""
    caplog.set_level(logging.CRITICAL)
    with pytest.raises(RuntimeError, match="captured completely"):
        opens_a_file(torch.ones(3))
    report = check(opens_a_file, "x: float32[n]")
    assert report.verdict == "unknown"
    found, *_ = [f for f in report.findings if f.code is Code.CONTRADICTED]
    assert "captured completely" in found.message


@pytest.mark.parametrize("need, verdict", [(EVEN, "refined"), (False, "refuted")])
def test_no_verdict_stands_beside_a_run_against_it(need: Any, verdict: str) -> None:
    """Not where the data decide about something else, either."""

    def rule(c: Context, input: Known) -> Known:
        c.require(need, "planted")
        return input

    def by_data(x: Tensor) -> Tensor:
        y = x.relu()
        return y + 1 if y.sum() > 0 else y

    rules = default_rules + {"relu": rule}
    assert check(by_data, "x: float32[b, h]", rules=rules, replay=False).verdict == verdict
    report = check(by_data, "x: float32[b, h]", rules=rules)
    assert report.verdict == "unknown" and not report.accepts.exact and str(report.accepts) == "True"
    found, *_ = [f for f in report.findings if f.code is Code.CONTRADICTED]
    assert "should be refused, but it runs" in found.message and found.witness is not None


# --- chance ----------------------------------------------------------------------------------------------


def refused_by_chance(x: Tensor) -> Tensor:
    if torch.bernoulli(torch.randn(1)):
        raise ValueError("so it fell out")
    return x


def drawn(x: Tensor) -> Tensor:
    return x.view(2, -1) if torch.rand(()).item() < 0.5 else x


def filled(x: Tensor) -> Tensor:
    return x.view(2, -1) if torch.empty(1).uniform_() < 0.5 else x


def dropped(x: Tensor) -> Tensor:
    return x.view(2, -1) if torch.nn.functional.dropout(torch.ones(3), 0.5).sum() > 2 else x


def counted(x: Tensor) -> Tensor:
    return x.view(int(torch.randint(1, 4, (1,))), -1)


def sampled(x: Tensor) -> Tensor:
    return x.view(2, -1) if D.Normal(torch.zeros(1), torch.ones(1)).sample() > 0 else x


@pytest.mark.parametrize("target", [drawn, filled, dropped, counted, sampled])
def test_chance_is_for_the_data_to_decide(target: Callable[[Tensor], Tensor]) -> None:
    """At odd sizes it runs or not, as it falls out: neither is claimed, whatever the generator."""
    found = set()
    for seed in range(6):
        torch.manual_seed(seed)
        report = check(target, "x: float32[n]")
        assert not report.accepts.certain.holds(n=5), report.to_text()
        assert report.verdict == "unknown" and not report.accepts.exact, report.to_text()
        found.add((report.verdict, str(report.accepts), str(report.accepts.certain)))
    assert len(found) == 1


@pytest.mark.parametrize("draw", [random.random, lambda: random.choice([0.0, 1.0]), numpy.random.rand])
def test_what_python_draws_decides_nothing(draw: Callable[[], float]) -> None:
    def by_chance(x: Tensor) -> Tensor:
        return x.view(2, -1) if draw() < 0.5 else x

    report = check(by_chance, "x: float32[n]", replay=False)
    assert report.verdict == "unknown" and str(report.accepts.certain) == "False"
    assert "at random" in next(f.message for f in report.findings if f.code is Code.APPROXIMATE)


def test_a_raise_by_chance_refuses_nothing() -> None:
    for seed in range(6):
        torch.manual_seed(seed)
        report = check(refused_by_chance, "x: float32[n]", replay=False)
        assert report.verdict == "unknown" and Code.DATA in {f.code for f in report.findings}


def test_what_is_not_drawn_is_no_data() -> None:
    def kept(x: Tensor) -> Tensor:
        return x.view(2, -1) if torch.nn.functional.dropout(torch.ones(3), 0.5, False).sum() > 2 else x

    report = check(kept, "x: float32[n]")
    assert report.verdict == "refined" and report.accepts.exact
