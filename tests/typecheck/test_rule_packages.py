"""Rules that installed packages bring: found by the namespace of their operators, imported when called."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from anyshape.constraints.ir.language import Tensor
from anyshape.constraints.rules import default_rules
from anyshape.typecheck import check
from anyshape.typecheck.checking.rule_packages import _rules_of
from anyshape.typecheck.targets.target_error import TargetError


@torch.library.custom_op("announced::pairs", mutates_args=())
def pairs(x: torch.Tensor) -> torch.Tensor:
    return x.unflatten(-1, (-1, 2)).sum(-1)


@pairs.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return x.unflatten(-1, (-1, 2)).sum(-1)


def model(x: torch.Tensor) -> torch.Tensor:
    return pairs(x).relu()


GOOD = """
from anyshape.constraints.terms.formula import divides
from anyshape.constraints.ir.language import Tensor

def rule(c, x):
    "[*batch, n] -> [*batch, n/2] where 2 divides n"
    *batch, n = x.shape
    c.require(divides(2, n), f"2 must divide {n}")
    return Tensor((*batch, n // 2), x.dtype)

RULES = {"announced::pairs": rule}
"""


def tried(x: torch.Tensor) -> torch.Tensor:
    try:
        return pairs(x)
    except Exception:  # noqa: BLE001 (the point of the program)
        return x


def tried_by_any(x: torch.Tensor) -> torch.Tensor:
    try:
        x = pairs(x)
    finally:
        return x  # noqa: B012


FAILING = """
def rule(c, x):
    "[*batch, n] -> [*batch, n/2] where 2 divides n"
    return x.no_such_attribute

RULES = {"announced::pairs": rule}
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Installs a package with one module and one entry point, as pip leaves them behind."""
    _rules_of.cache_clear()
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(module: str, source: str, point: str = "announced") -> None:
        (tmp_path / f"{module}.py").write_text(source)
        info = tmp_path / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[anyshape.rules]\n{point} = {module}:RULES\n")

    yield write
    _rules_of.cache_clear()
    for name in [n for n, m in sys.modules.items() if str(tmp_path) in str(getattr(m, "__file__", ""))]:
        del sys.modules[name]


def test_a_packages_rule_is_found(install: Callable[..., None]) -> None:
    install("shipped_rules", GOOD)
    report = check(model, "x: float32[b, h]")
    assert str(report.accepts) == "h % 2 == 0" and str(report.outputs[0].value) == "float32[b, h//2]"


def test_it_serves_a_traced_graph_too(install: Callable[..., None], tmp_path: Path) -> None:
    class Module(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return model(x)

    install("shipped_rules", GOOD)
    program = torch.export.export(
        Module(), (torch.ones(2, 6),), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},)
    )
    torch.export.save(program, tmp_path / "saved.pt2")
    for target in (program, tmp_path / "saved.pt2"):
        report = check(target, "x: float32[b, 6]")
        assert not report.findings and str(report.outputs[0].value) == "float32[b, 3]"


def test_a_package_is_imported_only_for_its_own_operators(install: Callable[..., None]) -> None:
    install("shipped_rules", "raise RuntimeError('imported')")
    check(lambda x: x.relu(), "x: float32[b]")
    assert "shipped_rules" not in sys.modules
    with pytest.raises(TargetError, match=r"shipped_rules.*cannot be loaded: RuntimeError: imported"):
        check(model, "x: float32[b, h]")


def test_the_callers_own_rules_are_all_there_is(install: Callable[..., None]) -> None:
    install("shipped_rules", GOOD)
    report = check(model, "x: float32[b, h]", rules=default_rules)
    assert {f.code.value for f in report.findings} & {"no-rule", "approximate"}


@pytest.mark.parametrize(
    "source, problem",
    [
        ("RULES = 3", "is int, not a table of rules"),
        ("RULES = {'other::op': print}", "a rule for 'other::op', not for an operator of announced"),
        ("RULES = {'announced::pairs': 3}", "must give a function as the rule of announced::pairs"),
        ("", "has no attribute 'RULES'"),
    ],
)
def test_what_an_entry_point_must_be(install: Callable[..., None], source: str, problem: str) -> None:
    install("shipped_rules", source)
    with pytest.raises(TargetError, match=problem) as refused:
        check(model, "x: float32[b, h]")
    assert "shipped_rules" in str(refused.value)


def test_two_packages_for_one_namespace(install: Callable[..., None]) -> None:
    install("shipped_rules", GOOD)
    install("more_rules", GOOD)
    with pytest.raises(TargetError, match=r"two packages have rules for announced: more_.*shipped_"):
        check(model, "x: float32[b, h]")


@pytest.mark.parametrize("target", [model, tried, tried_by_any])
def test_a_rule_that_fails_is_told_as_a_defect_of_its_package(
    install: Callable[..., None], target: Callable[..., torch.Tensor]
) -> None:
    install("failing_rules", FAILING)
    report = check(target, "x: [b, h]")
    assert report.verdict == "unknown"
    (finding,) = [f for f in report.findings if f.code == "internal-error"]
    told = "the rule of `announced::pairs` in package `failing_rules` failed: AttributeError"
    assert finding.message.startswith(told) and "to its authors" in finding.message
    assert "pairs(x)" in finding.origin.code and finding.origin.file == __file__


OTHERS = ["None", "()", "(x, x)", "object()"]
RETURNING = """
from anyshape.constraints.ir.language import Tensor

def rule(c, x):
    "Returns what is given here."
    return {result}

RULES = {{"announced::pairs": rule}}
"""


@pytest.mark.parametrize("target", [model, tried, tried_by_any])
@pytest.mark.parametrize("result", [*OTHERS, "'text'", "(x,)", "x.shape[0]", "__import__('torch').ones(2)"])
def test_a_result_that_the_operator_does_not_declare_is_a_defect_of_the_rule(
    install: Callable[..., None], target: Callable[..., torch.Tensor], result: str
) -> None:
    install("returning_rules", RETURNING.format(result=result))
    report = check(target, "x: [b, h]")
    assert report.verdict == "unknown"
    (finding,) = [f for f in report.findings if f.code == "internal-error"]
    assert "the rule of `announced::pairs` in package `returning_rules` failed: TypeError" in finding.message


@pytest.mark.parametrize("result", OTHERS)
def test_other_results_than_an_exported_program_takes_are_a_defect_of_the_rule(
    install: Callable[..., None], tmp_path: Path, result: str
) -> None:
    class Paired(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return pairs(x)

    install("returning_rules", RETURNING.format(result=result))
    torch.export.save(torch.export.export(Paired(), (torch.ones(3, 4),)), tmp_path / "paired.pt2")
    report = check(str(tmp_path / "paired.pt2"))
    assert report.verdict == "unknown"
    told = "the rule of `announced::pairs` in package `returning_rules` failed: TypeError"
    assert any(told in finding.message for finding in report.findings), report.to_text()


@torch.library.custom_op("declaring::nothing", mutates_args=("x",))
def nothing(x: torch.Tensor) -> None:
    x.add_(1)


@torch.library.custom_op("declaring::two", mutates_args=())
def two(x: torch.Tensor) -> tuple[torch.Tensor, int]:
    return x.clone(), x.shape[0]


@torch.library.custom_op("declaring::several", mutates_args=())
def several(x: torch.Tensor) -> list[torch.Tensor]:
    return [x.clone(), x.sum()]


PACKET = torch.ops.declaring.nothing
DECLARING = {
    "declaring::nothing": lambda c, x: None,
    "declaring::two": lambda c, x: (Tensor(x.shape, x.dtype), x.shape[0]),
    "declaring::several": lambda c, x: (Tensor(x.shape, x.dtype), Tensor((), x.dtype)),
}


@pytest.mark.parametrize("called", [nothing, PACKET, PACKET.default])
def test_an_operator_without_results_returns_none(called: Callable[..., None]) -> None:
    def target(x: torch.Tensor) -> torch.Tensor:
        return x if called(x.clone()) is None else x.view(-1, 7)

    assert check(target, "x: [b, h]", rules=default_rules + DECLARING).verdict == "proved"


def test_results_as_declared() -> None:
    def target(x: torch.Tensor) -> torch.Tensor:
        copy, size = torch.ops.declaring.two(x)
        whole, total = torch.ops.declaring.several(x)
        return copy.view(size, -1) + whole + total

    assert check(target, "x: float32[b, h]", rules=default_rules + DECLARING).verdict == "proved"
    for name in ("two", "several"):
        wrong = {f"declaring::{name}": lambda c, x: Tensor(x.shape, x.dtype)}
        report = check(target, "x: float32[b, h]", rules=default_rules + {**DECLARING, **wrong})
        assert report.verdict == "unknown"
        assert "its schema declares" in next(f for f in report.findings if f.code == "internal-error").message


def test_a_rule_fails_at_the_ranks_that_it_forgets(install: Callable[..., None]) -> None:
    install("forgetful_rules", GOOD)
    report = check(model, "x: [...]")
    assert report.verdict == "unknown"
    (finding,) = [f for f in report.findings if f.code == "internal-error"]
    assert "not enough values to unpack" in finding.message
    mended = GOOD.replace("*batch, n = x.shape", """if not x.shape:
        c.refuse("no last size", IndexError)
    *batch, n = x.shape""")
    careful = {}
    exec(mended, careful)
    report = check(model, "x: [...]", rules=default_rules + careful["RULES"])
    assert report.verdict == "refined" and report.accepts.exact
