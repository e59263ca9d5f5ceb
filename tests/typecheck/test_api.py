"""`check`, end to end: verdicts, what a report holds, and that replay unmasks what is wrong."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Context
from anyshape.constraints.ir.language import Tensor as Known
from anyshape.constraints.rules import default_rules
from anyshape.constraints.terms.dims import sym
from anyshape.constraints.terms.formula import eq, holds
from anyshape.typecheck import Code, Report, Severity, SpecError, TargetError, check

ARCHIVES = Path(__file__).parent.parent / "tracer/fixtures"


def relu(x: Tensor) -> Tensor:
    return torch.relu(x)


def pairs(x: Tensor) -> Tensor:
    return x.view(x.shape[0], -1, 2)


def wrong(x: Tensor) -> Tensor:
    return torch.relu(x) @ torch.zeros(8, 4)


def asserts(x: Tensor) -> Tensor:
    assert x.shape[0] % 2 == 0, "the batch must be even"
    return x


def joins(x: Tensor, y: Tensor) -> Tensor:
    return torch.cat([x, y], 1)


def conflict(x: Tensor) -> Tensor:
    a = x.view(-1, 2)
    return a + x[1:].view(-1, 2).sum()


def branches(x: Tensor) -> Tensor:
    if x.shape[0] > 0:
        x = x + 1
    if x.shape[0] > 7:
        return x.view(-1, 2)
    return x


class Counts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return x


def scales(x: Tensor, p: float) -> Tensor:
    return x * p


def shaped(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    return x.view(*shape)


def chooses(batch: dict[str, Any], *rest: Tensor) -> Tensor:
    total: Tensor = batch["a"] + batch["parts"][0] + rest[0]
    return total


# target, inputs, assumptions, verdict, accepted set
VERDICTS: list[tuple[Callable[..., Any], str, tuple[str, ...], str, str]] = [
    (relu, "x: [b, c]", (), "proved", "True"),
    (pairs, "x: [b, c]", (), "refined", "c % 2 == 0"),
    (pairs, "x: [b, c]", ("c % 4 == 0",), "proved", "True"),
    (pairs, "x: [b, 2*c + 1]", (), "refuted", "False"),
    (wrong, "x: [b, 16]", (), "refuted", "False"),
    (asserts, "x: [b]", (), "refined", "b % 2 == 0"),
    (joins, "x: [b, c]; y: [d, e]", (), "refined", "b == d"),
    (conflict, "x: [n]", (), "refuted", "False"),
    (Counts(), "x: [b]", (), "proved", "True"),
    (scales, "x: [b]; p: float", (), "proved", "True"),
    (shaped, "x: [b, c]; shape=[b*c]", (), "proved", "True"),
    (shaped, "x: [b, c]; shape[0]: int = c; shape[1]: int = b", (), "proved", "True"),
    (chooses, 'batch["a"]: [2]; batch["parts"][0]: [1]; rest[0]: [b]', (), "refined", "b <= 2"),
    (torch.relu, "input: [b]", (), "proved", "True"),
    (nn.functional.linear, "input: [b, 3]; weight: [4, c]", (), "refined", "c == 3"),
]


@pytest.mark.parametrize("target, inputs, assume, verdict, accepted", VERDICTS)
def test_verdicts(
    target: Callable[..., Any], inputs: str, assume: tuple[str, ...], verdict: str, accepted: str
) -> None:
    report = check(target, inputs, assume)
    assert (report.verdict, str(report.accepts)) == (verdict, accepted), report.to_text()
    assert report.replayed
    assert not [f for f in report.findings if f.code is Code.INTERNAL_ERROR]


def test_a_report_in_full() -> None:
    report = check(pairs, "x: [b, c]")
    assert (report.target, report.inputs) == ("pairs", ("x: float32[b, c]",))
    assert report.accepts.holds(b=3, c=4) and not report.accepts.holds(b=3, c=5)
    assert report.accepts.symbols == ("b", "c")
    fact = report.dims["c"]
    assert (fact.min, fact.max, fact.divisor, fact.remainder) == (2, None, 2, 0)
    assert [(o.name, str(o.value)) for o in report.outputs] == [("output", "float32[b, c//2, 2]")]
    assert "view" in [s.op for s in report.shapes]
    (finding,) = report.findings
    assert (finding.code, finding.severity) == (Code.CONDITION, Severity.WARNING)
    assert (finding.condition, finding.origin.code) == ("c % 2 == 0", "return x.view(x.shape[0], -1, 2)")
    assert finding.witness is not None and finding.witness["c"] % 2 == 1
    assert finding.evidence.startswith("RuntimeError: shape")
    assert report.runs_at is not None and report.accepts.holds(**report.runs_at)
    assert report.fails_at is not None and not report.accepts.holds(**report.fails_at)
    wanted = "load_s trace_s generate_s solve_s replay_s total_s nodes constraints z3_queries paths"
    assert {*wanted.split()} <= report.stats.keys()
    assert Report.from_json(report.to_json()) == report


def test_a_refutation_names_line_chain_and_conflict() -> None:
    (finding,) = check(wrong, "x: [b, 16]").findings
    assert (finding.code, finding.severity) == (Code.SHAPE_MISMATCH, Severity.ERROR)
    assert finding.origin.code == "return torch.relu(x) @ torch.zeros(8, 4)"
    (other,) = check(conflict, "x: [n]").findings
    lines = [other.origin.code, *(link.origin.code for link in other.conflict)]
    assert sorted(lines) == ["a = x.view(-1, 2)", "return a + x[1:].view(-1, 2).sum()"]


def test_the_programs_own_words_are_told() -> None:
    (finding,) = check(asserts, "x: [b]").findings
    assert finding.code is Code.RAISES
    assert "the batch must be even" in finding.message
    assert finding.origin.code.startswith("assert")


def test_branches_are_eliminated_or_explored() -> None:
    report = check(branches, "x: [b]")
    assert [(b.condition, b.outcome, b.taken) for b in report.branches] == [
        ("1 <= b", "eliminated", True), ("8 <= b", "explored", None),
    ]  # fmt: skip
    assert {(str(o.value), o.when) for o in report.outputs} == {
        ("float32[b]", "b <= 7"), ("float32[b//2, 2]", "8 <= b"),
    }  # fmt: skip


def three_ways(x: Tensor) -> Tensor:
    return x if x.shape[0] == 1 else x[1:] if x.shape[0] == 2 else x[2:]


def test_the_condition_of_a_path_leaves_out_what_it_implies() -> None:
    assert [o.when for o in check(three_ways, "x: [b]").outputs] == ["b == 1", "b == 2", "b != 1 and b != 2"]


class Halved(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down, self.up = nn.Conv2d(3, 8, 2, stride=2), nn.ConvTranspose2d(8, 3, 2, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.up(self.down(x))], dim=1)


def test_of_the_requirements_of_a_line_one_that_the_condition_states_is_told() -> None:
    """Not that a kernel fits, which the others imply; and the example breaks the one that is told."""
    (finding,) = check(Halved(), "x: [b, 3, h, w]").findings
    assert (finding.op, finding.condition) == ("cat", "h % 2 == 0 and w % 2 == 0")
    assert "takes equal sizes in dim 2, not h and 2*(h//2)" in finding.message
    assert finding.witness is not None and finding.witness["h"] % 2 == 1
    assert "Expected size" in finding.evidence


class Unfitting(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(nn.Linear(8, 16), nn.Linear(12, 4))

    def forward(self, x: Tensor) -> Tensor:
        return self[1](self[0](x))


def test_the_error_of_another_call_in_the_line_is_no_evidence() -> None:
    """At the sizes of the example the first layer is refused, and the finding is about the second."""
    (finding,) = check(Unfitting(), "x: [b, h]").findings
    assert finding.code is Code.SHAPE_MISMATCH and "12 features" in finding.message
    assert finding.witness is not None and (finding.witness["h"] != 8) == (finding.evidence == "")


def test_changed_attributes_are_told_and_put_back() -> None:
    model = Counts()
    (finding,) = check(model, "x: [b]").findings
    assert (finding.code, finding.severity, model.calls) == (Code.CHANGED_STATE, Severity.NOTE, 0)
    assert "calls" in finding.message


def test_what_torchs_own_layers_note_of_themselves_is_not_told() -> None:
    """An LSTM looks its weights up when it is called, and keeps the list."""
    assert not check(torch.nn.LSTM(8, 6), "input: [t, b, 8]").findings


@pytest.mark.parametrize("name", ["b", "nonzero_0", "data_0"])
def test_a_size_that_the_data_decides_is_none_of_the_inputs(name: str) -> None:
    """Whatever the user calls a size, it is not the one that a run of the program gives that name."""

    def counts(x: Tensor) -> Tensor:
        return x.nonzero() + x.new_zeros(x.shape[0])[:, None]

    def needs(x: Tensor, n: Tensor) -> Tensor:
        return x.expand(n.item())  # type: ignore[arg-type]

    assert check(counts, f"x: [{name}]").verdict == "unknown"
    assert check(needs, f"x: [{name}]; n: int64[]").verdict == "unknown"


def test_where_the_data_decide_which_index_is_greatest_nothing_is_claimed() -> None:
    """Of an odd width the last column is not pooled, and unpooling to the even one loses a column a row."""

    def unpools(x: Tensor) -> Tensor:
        found, places = nn.functional.max_pool2d(x, 2, return_indices=True)
        return nn.functional.max_unpool2d(found, places, 2)

    rising = torch.arange(25.0).view(1, 1, 5, 5)
    unpools(-rising)
    with pytest.raises(RuntimeError, match="invalid max index"):
        unpools(rising)
    report = check(unpools, "x: [b, c, h, w]")
    assert report.verdict == "unknown"
    assert not report.accepts.exact
    even = check(unpools, "x: [b, c, h, w]", ["h % 2 == 0", "w % 2 == 0"])
    assert even.verdict == "proved"


# ---- replay: the oracle is shown to fail


def even_relu(c: Context, input: Known) -> Known:
    """A wrong rule: relu asks for nothing."""
    c.require(eq(input.shape[0] % 2, 0), "planted")
    return input


def careless_view(c: Context, input: Known, *shape: Any) -> Known:
    """A wrong rule: view does not take every size."""
    return Known((sym("b"), sym("c") // 2, 2))


@pytest.mark.parametrize("target, wrong", [
    (relu, {"relu": even_relu}),  # refuses what runs
    (pairs, {"view": careless_view}),  # accepts what is refused
])  # fmt: skip
def test_a_wrong_rule_is_unmasked(target: Callable[..., Any], wrong: dict[str, Any]) -> None:
    report = check(target, "x: [b, c]", rules=default_rules + wrong)
    assert report.verdict == "unknown"
    assert not report.accepts.exact
    first = report.findings[0]
    assert (first.code, first.severity) == (Code.INTERNAL_ERROR, Severity.ERROR)
    assert first.witness is not None
    assert "please report" in first.message
    assert "internal-error" in report.to_text()


def test_without_replay_a_wrong_rule_stays_hidden() -> None:
    report = check(relu, "x: [b, c]", rules=default_rules + {"relu": even_relu}, replay=False)
    assert (report.verdict, report.replayed) == ("refined", "")


def test_an_approximation_that_misleads_is_told_as_such() -> None:
    def approximate(c: Context, input: Known) -> Known:
        c.approximate("planted")
        return even_relu(c, input)

    report = check(relu, "x: [b, c]", rules=default_rules + {"relu": approximate})
    assert report.verdict == "unknown"
    assert {f.code for f in report.findings} >= {Code.APPROXIMATE}
    assert Code.INTERNAL_ERROR not in {f.code for f in report.findings}


def test_what_depends_on_data_is_no_internal_error() -> None:
    def asks_data(x: Tensor) -> Tensor:
        if x.sum() > 1e9:
            return x.view(-1, 2)
        return x

    report = check(asks_data, "x: [b]")
    codes = {f.code for f in report.findings}
    assert Code.INTERNAL_ERROR not in codes
    assert Code.NOT_REPLAYED in codes


@pytest.mark.parametrize("device", ["cuda", "xpu"])
@pytest.mark.parametrize("spec, verdict", [
    ("x: [b, 4]", "proved"), ("x: [b, 3]", "refuted"), ("x: [b, c]", "refined"),
])
def test_a_device_that_this_machine_lacks_is_no_defect(device: str, spec: str, verdict: str) -> None:
    def moves(x: Tensor) -> Tensor:
        made = torch.zeros(4, device=device).to(f"{device}:0") + getattr(torch.ones(1), device)()
        return x.to(device) + made.to(torch.device(device))

    report = check(moves, spec)
    codes = {f.code for f in report.findings}
    assert report.verdict == verdict and Code.INTERNAL_ERROR not in codes
    built_for = torch.accelerator.current_accelerator()  # of which there may be none here
    assert (Code.NOT_REPLAYED in codes) == (built_for is None or built_for.type != device)


# ---- bad input


@pytest.mark.parametrize("target, inputs, assume, error, part", [
    (relu, "x: [b", (), SpecError, "expected"),
    (relu, "x: [b]", ("c > 1",), SpecError, "'c'"),
    (relu, "x: [b]", ("b > 4", "b < 3"), SpecError, "no input meets the assumptions"),
    (relu, "y: [b]", (), TargetError, "x"),
    (joins, "x: [b]", (), TargetError, "y"),
    (lambda x: x.absent, None, (), TargetError, "no usual shape of x runs"),
    (3, "x: [b]", (), TargetError, "cannot be called"),
    ("absent.py:f", "x: [b]", (), TargetError, "absent.py"),
])  # fmt: skip
def test_bad_input(target: Any, inputs: Any, assume: Any, error: type[Exception], part: str) -> None:
    with pytest.raises(error, match=part):
        check(target, inputs, assume)


def test_a_program_that_fails_for_another_reason() -> None:
    def misspelt(x: Tensor) -> Tensor:
        return x.veiw(-1)  # type: ignore[attr-defined, no-any-return]

    with pytest.raises(TargetError, match="veiw") as caught:
        check(misspelt, "x: [b]")
    assert caught.value.origin.code.startswith("return x.veiw(-1)")


# ---- other targets


def test_annotations_serve_as_inputs() -> None:
    def annotated(x: Any) -> Tensor:
        return pairs(x)

    annotated.__annotations__["x"] = 'Float[Tensor, "b c"]'
    assert str(check(annotated).accepts) == "c % 2 == 0"
    assert check(annotated, assume="c % 2 == 0").verdict == "proved"


def test_a_graph_module() -> None:
    graph = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(8, 4), nn.ReLU()))
    assert str(check(graph, "input: [b, d]").accepts) == "d == 8"


def test_an_exported_program_and_its_archive(tmp_path: Path) -> None:
    class Pairs(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.view(x.shape[0], -1, 2)

    b, c = torch.export.Dim("b", min=2, max=64), torch.export.Dim("c", min=1, max=64)
    program = torch.export.export(Pairs(), (torch.zeros(3, 8),), dynamic_shapes=({0: b, 1: 2 * c},))
    torch.export.save(program, tmp_path / "pairs.pt2")
    for target in (program, tmp_path / "pairs.pt2", str(tmp_path / "pairs.pt2")):
        report = check(target, "x: [b, c]")
        condition = "b <= 64 and 4 <= c and c <= 128 and c % 2 == 0"
        assert (report.verdict, str(report.accepts)) == ("refined", condition), report.to_text()
        assert "rules" in report.replayed
        needed = {f.code: f.condition for f in report.findings}
        assert needed[Code.CONDITION] == "c % 2 == 0" and Code.TRACE_LIMIT in needed
        with pytest.raises(AssertionError):
            program.module()(torch.zeros(65, 8))
        declared = check(target)
        assert declared.verdict == "proved" and "<= 64" in str(declared.accepts.domain)


def test_assumptions_on_the_symbols_of_an_archive() -> None:
    symbols = check(ARCHIVES / "resnet.pt2").accepts.symbols
    report = check(ARCHIVES / "resnet.pt2", assume=f"{symbols[0]} <= 4")
    assert (report.verdict, report.dims[symbols[0]].max) == ("proved", 4)


def test_progress_is_told() -> None:
    steps: list[str] = []
    check(relu, "x: [b]", progress=steps.append)
    assert [s for s in dict.fromkeys(steps) if s in ("load", "trace", "solve", "replay")] == [
        "load", "trace", "solve", "replay",
    ]  # fmt: skip


@pytest.mark.parametrize("package", ["anyshape", "anyshape.typecheck"])
def test_the_package_imports_no_torch(package: str) -> None:
    code = (
        f"import sys, {package} as t; t.check; t.Report; t.SpecError; t.Verdict\n"
        "assert not {'torch', 'z3', 'sympy'} & sys.modules.keys(), sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_every_export_is_there() -> None:
    import anyshape.typecheck

    assert all(hasattr(anyshape.typecheck, name) for name in anyshape.typecheck.__all__)
    assert dir(anyshape.typecheck) == sorted(anyshape.typecheck.__all__)
    with pytest.raises(AttributeError, match="frobnicate"):
        _ = anyshape.typecheck.frobnicate


def test_the_rules_are_an_argument() -> None:
    report = check(relu, "x: [b]", rules=Rules({}))
    assert {f.code for f in report.findings} & {Code.APPROXIMATE, Code.NO_RULE}


# ---- what is no refusal


def test_a_defect_of_a_rule_is_no_refusal_of_the_program() -> None:
    def asserts_wrongly(c: Context, input: Known) -> Known:
        c.require(holds(eq(input.shape[0], 1), {}), "there is no value")
        return input

    def recurses(c: Context, input: Known) -> Known:
        return recurses(c, input)

    wrong = (asserts_wrongly, recurses)
    reports = [check(relu, "x: [b]", rules=default_rules + {"relu": rule}) for rule in wrong]
    assert [report.verdict for report in reports] == ["unknown", "unknown"]
    assert Code.INTERNAL_ERROR in {f.code for f in reports[0].findings}


def test_endless_recursion_of_the_program_is_no_matter_of_sizes() -> None:
    def endless(x: Tensor) -> Tensor:
        return endless(x + 1)

    with pytest.raises(TargetError, match="RecursionError"):
        check(endless, "x: [b]")
