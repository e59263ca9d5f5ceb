"""The spec in torch's language: what is chosen, what is given up, and that all its sizes are accepted."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import pytest
import torch
from torch.export import Dim

from anyshape.constraints.terms.dims import evaluate, sym
from anyshape.constraints.terms.formula import holds
from anyshape.typecheck import check, refine
from anyshape.typecheck.cli.main import main
from anyshape.typecheck.dim_specs.dynamic_shapes import DynamicShapes, of_report
from anyshape.typecheck.dim_specs.specs import Hint, from_json, tensor_sizes


def one(condition: Callable[[int], bool]) -> Callable[[torch.Tensor], torch.Tensor]:
    """A program of one input whose first size has to meet a condition."""

    def program(x: torch.Tensor) -> torch.Tensor:
        assert condition(x.shape[0])
        return torch.relu(x)

    return program


def two(condition: Callable[[int, int], bool]) -> Callable[..., torch.Tensor]:
    """A program of two inputs whose first sizes have to meet a condition."""

    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        assert condition(x.shape[0], y.shape[0])
        return x.sum() + y.sum()

    return program


def shapes_of(program: Any, inputs: str, *assume: str) -> DynamicShapes:
    shapes = check(program, inputs, assume, replay=False).dynamic_shapes
    assert shapes is not None
    return shapes


def shown(shapes: DynamicShapes) -> str:
    """`x: [2*_b, 3], _b in 1..32`"""
    data = shapes.to_json()
    inputs = [f"{name}: [{', '.join(map(str, sizes))}]" for name, sizes in data["dynamic_shapes"].items()]
    dims = [f"{n} in {d['min']}..{'' if d['max'] is None else d['max']}" for n, d in data["dims"].items()]
    return ", ".join((*inputs, *dims))


# The sizes of `x: [b, 5]` within 2 <= b <= 64: condition, spec, is it everything
ONE = [
    (lambda b: b // 4 == 2, "x: [b, 5], b in 8..11", True),
    (lambda b: b % 4 <= 2, "x: [2*_b, 5], _b in 1..32", False),
    (lambda b: b < 4 or b > 10, "x: [b, 5], b in 11..64", False),
    (lambda b: b != 7, "x: [b, 5], b in 8..64", False),
    (lambda b: (2 * b) % 6 == 0, "x: [3*_b, 5], _b in 1..21", True),
    (lambda b: (b * b) % 4 == 0, "x: [2*_b, 5], _b in 1..32", True),
    (lambda b: b * b <= 100, "x: [b, 5], b in 2..10", True),
    (lambda b: b % 4 == 0 and b % 6 == 0, "x: [12*_b, 5], _b in 1..5", True),
    (lambda b: b == 7, "x: [7, 5]", True),
]
# The first sizes of `x: [b, 3]` and `y: [c, 3]`
TWO = [
    (lambda b, c: b + c == 32, "x: [16, 3], y: [16, 3]", False),
    (lambda b, c: b < c <= 64, "x: [b, 3], y: [c, 3], b in 1..32, c in 33..64", False),
    (lambda b, c: b * c % 4 == 0, "x: [2*_b, 3], y: [2*_c, 3], _b in 1.., _c in 1..", False),
    (lambda b, c: b == c, "x: [b, 3], y: [b, 3], b in 1..", True),
    (lambda b, c: c == 2 * b + 1, "x: [b, 3], y: [2*b + 1, 3], b in 1..", True),
    (lambda b, c: 2 * b == 3 * c, "x: [3*_b, 3], y: [2*_b, 3], _b in 1..", True),
]


@pytest.mark.parametrize("condition, expected, exact", ONE, ids=[row[1] for row in ONE])
def test_one_size(condition: Callable[[int], bool], expected: str, exact: bool) -> None:
    shapes = shapes_of(one(condition), "x: [b, 5]", "2 <= b <= 64")
    assert (shown(shapes), shapes.exact) == (expected, exact)
    assert bool(shapes.given_up) == (not exact)
    assert all(condition(sizes["b"]) for sizes in all_sizes(shapes))
    assert (len(all_sizes(shapes)) == sum(map(condition, range(2, 65)))) == exact


@pytest.mark.parametrize("condition, expected, exact", TWO, ids=[row[1] for row in TWO])
def test_two_sizes(condition: Callable[[int, int], bool], expected: str, exact: bool) -> None:
    shapes = shapes_of(two(condition), "x: [b, 3]; y: [c, 3]")
    assert (shown(shapes), shapes.exact) == (expected, exact)
    assert bool(shapes.given_up) == (not exact)
    assert all(condition(sizes["b"], sizes["c"]) for sizes in all_sizes(shapes))


def all_sizes(shapes: DynamicShapes, most: int = 40) -> list[dict[str, int]]:
    """The sizes that the spec describes, those of endless roots as far as some number."""
    ranges = [range(r.low, (most if r.high is None else r.high) + 1) for r in shapes.box.roots]
    roots = [dict(zip([r.name for r in shapes.box.roots], v, strict=True)) for v in product(*ranges)]
    return [{name: evaluate(size, r) for name, size in shapes.box.sizes.items()} for r in roots]


def test_what_is_given_up_is_told() -> None:
    shapes = shapes_of(two(lambda b, c: b + c == 32), "x: [b, 3]; y: [c, 3]")
    (given_up,) = shapes.given_up
    assert (given_up.cause, given_up.condition) == ("language", "b + c == 32")
    assert given_up.kept == "b = 16, c = 16"
    assert "b + c == 32" in str(given_up)


def test_a_trace_holds_one_way() -> None:
    def branches(x: torch.Tensor) -> torch.Tensor:
        if x.shape[0] > 7:
            return x[:7]
        return x * 2

    shapes = shapes_of(branches, "x: [b, 3]")
    assert shown(shapes) == "x: [b, 3], b in 8.."
    (given_up,) = shapes.given_up
    assert given_up.cause == "way" and "if x.shape[0] > 7:" in str(given_up)


def test_ways_on_which_the_same_calls_are_made_are_one() -> None:
    def same(x: torch.Tensor) -> torch.Tensor:
        return x.relu() if x.shape[0] > 3 else torch.relu(x)

    def different(x: torch.Tensor) -> torch.Tensor:
        return x * (2.0 if x.shape[0] > 3 else 3.0)

    def copied(x: torch.Tensor) -> torch.Tensor:
        y = x.relu().contiguous() if x.shape[0] > 3 else torch.relu(x)
        return torch.cat((y, y)) * x

    def written(x: torch.Tensor) -> torch.Tensor:
        y = x.contiguous() if x.shape[0] > 3 else x
        y.zero_()
        return x

    def other(x: torch.Tensor) -> torch.Tensor:
        y, z = x.sin(), x.cos()
        return y if x.shape[0] > 3 else z

    assert check(one(lambda b: b < 4 or b > 10), "x: [b]", replay=False).ways == ()
    assert check(copied, "x: [b]", replay=False).ways == ()
    assert len(check(written, "x: [b]", replay=False).ways) == 2
    assert len(check(other, "x: [b]", replay=False).ways) == 2
    for least in (1, 3):  # the way of the sizes that are shown is the first
        report = check(different, "x: [b]", f"b >= {least}", replay=False)
        assert report.runs_at is not None and len(report.ways) == 2
        assert holds(report.ways[0], report.runs_at)
    assert len(check(different, "x: [b]", replay=False).ways) == 2
    assert check(same, "x: [b]", replay=False).ways == ()


def test_inputs_of_all_kinds() -> None:
    def program(batch: Any, masks: Any, n: int, flag: bool) -> Any:
        return batch["pixels"] + masks[0][:, :1], masks[1] * n

    inputs = 'batch["pixels"]: [b, 2*h]; masks[0]: [b, m]; masks[1]: [7]; n: int; flag=True'
    shapes = shapes_of(program, inputs, "3 <= n <= 9")
    data = shapes.to_json()["dynamic_shapes"]
    assert data == {
        "batch": {"pixels": ["b", "2*h"]},
        "masks": [["b", "m"], {"$sizes": [7]}] if isinstance(data["masks"][1], dict) else [["b", "m"], [7]],
        "n": {"$hint": "DYNAMIC", "min": 3, "max": 9},
        "flag": None,
    }


def test_refine_is_the_spec_of_a_check() -> None:
    shapes = refine(lambda x: x.view(-1, 2), "x: [b]", "b <= 9", traced=False)
    assert shapes is not None and shapes.box.sizes == {"b": 2 * sym("_b")} and shapes.exact
    assert shapes == check(lambda x: x.view(-1, 2), "x: [b]", "b <= 9").dynamic_shapes


def test_sizes_that_no_dim_can_say() -> None:
    shapes = shapes_of(lambda x: torch.relu(x), "x: [b, 40 - h]", "h <= 30")
    assert "40 - h" in str(shapes.given_up[0]) or "-h + 40" in str(shapes.given_up[0])
    assert isinstance(shapes.box.sizes["h"], int)


def test_nothing_is_told_of_what_never_runs() -> None:
    report = check(one(lambda b: b > 70), "x: [b, 5]", "b <= 64", replay=False)
    assert report.verdict == "refuted" and report.dynamic_shapes is None
    assert refine(one(lambda b: b > 70), "x: [b, 5]", "b <= 64") is None


def test_what_a_trace_fixes_can_be_given() -> None:
    from anyshape.constraints.terms.formula_text import parse_formula

    report = check(lambda x: torch.relu(x), "x: [b, t]", replay=False)
    shapes = of_report(report, [parse_formula("t == 9")])
    assert shapes is not None and shapes.box.sizes["t"] == 9
    assert [*tensor_sizes(shapes.spec.shapes)] == [sym("b"), Hint("STATIC")]
    assert [g.cause for g in shapes.given_up] == ["trace"]


# ---- in other forms


def test_json_is_a_spec_with_what_was_given_up() -> None:
    shapes = shapes_of(one(lambda b: b != 7), "x: [b, 5]", "2 <= b <= 64")
    data = json.loads(json.dumps(shapes.to_json()))
    keys = ("version", "dynamic_shapes", "dims", "relations", "exact")
    assert from_json({key: data[key] for key in keys}) == shapes.spec
    assert data["sizes"] == {"b": "b"} and data["given_up"][0]["condition"] == "b != 7"


def run_python(text: str) -> Mapping[str, Any]:
    """What the statements define; they are assignments, and use nothing but Dim."""
    tree = ast.parse(text)
    assert all(isinstance(node, ast.ImportFrom | ast.Assign) for node in tree.body)
    namespace: dict[str, Any] = {}
    exec(compile(tree, "<spec>", "exec"), namespace)
    return namespace


NAMES = ["N", "S", "E", "I", "O", "Q", "pi", "beta", "gamma", "zeta", "lambda_", "test", "len", "batch"]


@pytest.mark.parametrize("name", NAMES)
def test_names_that_sympy_knows(name: str) -> None:
    """A dim of that name in a relation crashes torch.export, unless it is given another name."""
    shapes = shapes_of(lambda x, y: (x.relu(), y.relu()), f"x: [{name}, 3]; y: [2*{name} + 1, 3]")
    given = torch.randn(7, 3), torch.randn(15, 3)

    class Both(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
            return x.relu(), y.relu()

    for dynamic in (shapes.to_torch(given), run_python(shapes.to_python())["dynamic_shapes"]):
        program = torch.export.export(Both(), given, dynamic_shapes=dynamic, strict=False)
        assert len(program.range_constraints) >= 1
        program.module()(torch.randn(9, 3), torch.randn(19, 3))


def test_python_and_torch_agree() -> None:
    shapes = shapes_of(two(lambda b, c: 2 * b == 3 * c), "x: [b, 3]; y: [c, 3]")
    given = torch.randn(9, 3), torch.randn(6, 3)
    pasted = run_python(shapes.to_python())
    assert isinstance(pasted["_b"], Dim) and (pasted["_b"].min, pasted["_b"].max) == (1, Dim("free").max)
    assert repr(pasted["dynamic_shapes"]["x"]) == repr(tuple(shapes.to_torch(given)["x"]))


# ---- the command


@pytest.fixture
def program(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "programs.py").write_text(
        "import torch\n\n\ndef halves(x):\n    return x.view(x.shape[0], 2, -1)\n\n\n"
        "def holes(x):\n    assert x.shape[0] != 7\n    return x\n"
    )
    return "programs.py"


def test_refine_prints_python(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["refine", f"{program}:halves", "-i", "x: [b, h]", "--untraced"]) == 0
    printed = capsys.readouterr().out
    assert "runs where: h % 2 == 0" in printed
    assert set(run_python(printed)["dynamic_shapes"]) == {"x"}
    assert '_h = Dim("_h", min=1)' in printed
    assert main(["refine", f"{program}:halves", "-i", "x: [b, h]"]) == 1
    printed = capsys.readouterr().out
    assert '_h = Dim("_h", min=2)' in printed  # torch decides that h//2 is not 1
    assert "torch's trace takes fewer sizes than the model; the spec keeps h = 2*_h, 2 <= _h" in printed
    assert main(["refine", f"{program}:holes", "-i", "x: [b]"]) == 1
    assert "given up: no Dim can express `b != 7`" in capsys.readouterr().out


def test_refine_prints_json(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["refine", f"{program}:halves", "-i", "x: [b, h]", "--untraced", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["accepts"] == "h % 2 == 0" and data["symbols"]["h"]["divisor"] == 2
    assert data["dynamic_shapes"] == {"x": ["b", "2*_h"]}


def test_refine_bounds_every_size(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    target = f"{program}:halves"
    finite = ["--finite", "b=8,h=64", "--untraced"]
    assert main(["refine", target, "-i", "x: [b, h]", *finite, "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    bounds = {size: (known["min"], known["max"]) for size, known in data["inner_sizes"].items()}
    assert bounds == {"b": (1, 8), "h": (2, 64), "h//2": (1, 32)}
    assert main(["refine", target, "-i", "x: [b, h]", "--finite", "b=8"]) == 2
    assert "h has no upper bound" in capsys.readouterr().err
    assert main(["refine", target, "-i", "x: [b, h]", "--finite", "b=8,h=4,k=2"]) == 2
    assert "no input mentions the symbol 'k'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["refine", target, "-i", "x: [b, h]", "--finite", "many"])


def test_refine_of_nothing(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["refine", f"{program}:holes", "-i", "x: [b]", "-a", "b == 7"]) == 1
    assert "runs for none" in capsys.readouterr().err


def test_a_way_that_only_huge_inputs_take_is_not_chosen() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        if x.numel() > 2**31:
            return torch.cat([x[:1], x[1:]])
        if x.shape[0] >= 64:
            return x.contiguous()
        return x * 2

    shapes = of_report(check(model, "x: float32[b, n]"))
    assert shapes is not None
    least = shapes.box.at({root.name: root.low for root in shapes.box.roots})
    assert least["b"] * least["n"] < 1000
