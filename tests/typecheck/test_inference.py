"""`infer`: which relations among examples a program needs, by what it does elsewhere; the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from anyshape.constraints.ir.spec_text import SpecError
from anyshape.constraints.terms.formula import holds
from anyshape.typecheck import check, infer
from anyshape.typecheck.checking.inference import Inferred
from anyshape.typecheck.cli.main import main


def t(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k = nn.Linear(16, 8), nn.Linear(16, 8)

    def forward(self, x: torch.Tensor, memory: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        scores = self.q(x) @ self.k(memory).transpose(1, 2)
        return scores.masked_fill(mask[:, None, :], 0.0).softmax(-1)


class Interleaves(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.bmm(x.repeat_interleave(2, 0), y)


def stacked(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.cat([x, y])


def flattened(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.stack([x.flatten(), y])


def counted(x: torch.Tensor, n: int) -> torch.Tensor:
    return x.view(n, 4)


def complement(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.cat([x, y]).view(32, -1).reshape(32)


def mask(*shape: int) -> torch.Tensor:
    return t(*shape, dtype=torch.bool)


# target, examples, spec, each relation with its status
CASES: list[tuple[Any, list[Any], tuple[str, ...], dict[str, str]]] = [
    (Attention, [
        (t(2, 10, 16), t(2, 7, 16), mask(2, 7)),
        (t(3, 20, 16), t(3, 14, 16), mask(3, 14)),
        (t(5, 30, 16), t(5, 21, 16), mask(5, 21)),
    ], ("x: float32[x_0, x_1, 16]", "memory: float32[x_0, memory_1, 16]", "mask: bool[x_0, memory_1]"), {
        "memory.shape[0] == x.shape[0]": "proved",
        "mask.shape[0] == x.shape[0]": "proved",
        "mask.shape[1] == memory.shape[1]": "proved",
        "10*memory.shape[1] == 7*x.shape[1]": "refuted",
    }),
    (Interleaves, [(t(2, 5, 7), t(4, 7, 3)), (t(3, 5, 9), t(6, 9, 3))],
     ("x: float32[x_0, 5, x_2]", "y: float32[2*x_0, x_2, 3]"), {
        "y.shape[1] == x.shape[2]": "proved",
        "y.shape[0] == 2*x.shape[0]": "proved",
        "y.shape[0] == x.shape[2] - 3": "refuted",
    }),
    (stacked, [(t(3, 8), t(6, 8)), (t(5, 8), t(10, 8))], ("x: float32[x_0, 8]", "y: float32[y_0, 8]"), {
        "y.shape[0] == 2*x.shape[0]": "refuted",
    }),
    (flattened, [(t(3, 8), t(24)), (t(5, 7), t(35)), (t(2, 2), t(4))],
     ("x: float32[x_0, x_1]", "y: float32[x_0*x_1]"), {"y.shape[0] == x.shape[0]*x.shape[1]": "proved"}),
    (counted, [(t(8), 2), (t(12), 3)], ("x: float32[x_0]", "n: int"), {"n": "proved"}),
    (complement, [(t(8), t(24)), (t(20), t(12)), (t(30), t(2))],
     ("x: float32[x_0]", "y: float32[-x_0 + 32]"), {
        "y.shape[0] == -x.shape[0] + 32": "proved",
    }),
    (nn.Linear(8, 4), [t(3, 8), t(5, 8)], ("input: float32[input_0, 8]",), {}),
]  # fmt: skip


@pytest.mark.parametrize("target, examples, spec, relations", CASES)
def test_relations_are_proved_or_refuted(
    target: Any, examples: list[Any], spec: tuple[str, ...], relations: dict[str, str]
) -> None:
    found = infer(target, examples)
    if target is counted:  # 4*n == x_0: the last symbol is n, and x_0 is no multiple of it
        assert found.spec == ("x: float32[4*n]", "n: int")
        assert [relation.status for relation in found.relations] == ["proved"]
        assert found.report.verdict == "proved"
        return
    assert found.spec == spec
    assert {r.text: r.status for r in found.relations} == relations
    assert found.report.verdict == "proved", found.report
    assert found.refused == ()
    again = check(target, found.text, found.assume)
    assert (again.verdict, again.accepts) == (found.report.verdict, found.report.accepts)


@pytest.mark.parametrize("target, examples, spec, relations", CASES)
def test_what_is_refuted_runs_elsewhere(
    target: Any, examples: list[Any], spec: tuple[str, ...], relations: dict[str, str]
) -> None:
    """On the real program, with sizes at which the relation does not hold."""
    shared = infer(target, examples)
    run = target() if isinstance(target, type) else target
    for relation in shared.relations:
        if relation.witness is not None:
            assert not holds(relation.formula, relation.witness)
            first = examples[0] if isinstance(examples[0], tuple) else (examples[0],)
            run(*resized(first, shared, relation.witness))


def resized(example: tuple[Any, ...], found: Inferred, sizes: Any) -> list[Any]:
    """The example at other sizes."""
    made = [[*part.shape] if isinstance(part, torch.Tensor) else part for part in example]
    names = [*dict.fromkeys(place.partition(".")[0] for place in found.places.values())]
    order = sorted(names, key=lambda name: [line.partition(":")[0] for line in found.spec].index(name))
    for symbol, place in found.places.items():
        name, _, rest = place.partition(".shape[")
        made[order.index(name) if len(order) == len(example) else 0][int(rest[:-1])] = sizes[symbol]
    return [torch.zeros(m, dtype=p.dtype) for m, p in zip(made, example, strict=True)]


def test_needed_only_where_no_size_is_one() -> None:
    def adds(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y

    (relation,) = infer(adds, [(t(2), t(2)), (t(3), t(3))]).relations
    assert relation.status == "proved" and str(relation.given) == "2 <= x_0 and 2 <= y_0"
    (relation,) = infer(adds, [(t(1), t(1)), (t(3), t(3))]).relations  # here 1 is among the examples
    assert relation.status == "refuted" and relation.witness is not None and 1 in relation.witness.values()
    (relation,) = infer(torch.dot, [(t(2), t(2)), (t(3), t(3))]).relations
    assert relation.status == "proved" and relation.given is True


def test_examples_that_are_refused_are_told() -> None:
    found = infer(counted, [(t(8), 2), (t(13), 3), (t(12), 3)])
    assert found.refused == (2,)


def test_assumptions_narrow_what_is_asked() -> None:
    def longer(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return y[: x.shape[0]].view(x.shape[0]) + x

    examples = [(t(3), t(6)), (t(4), t(8)), (t(5), t(10))]
    plain = infer(longer, examples)
    assert plain.report.verdict == "refined" and [r.status for r in plain.relations] == ["refuted"]
    assumed = infer(longer, examples, assume="x_0 <= y_0")
    assert assumed.report.verdict == "proved" and assumed.assume == ("x_0 <= y_0",)


def test_sizes_of_zero_are_declared() -> None:
    found = infer(stacked, [(t(0, 8), t(3, 8)), (t(5, 8), t(4, 8))])
    assert found.assume == ("0 <= x_0",) and found.report.verdict == "proved"


def test_what_is_not_known_is_not_claimed() -> None:
    @torch.library.custom_op("anyshape_tests::opaque_pair", mutates_args=())
    def opaque(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y[: x.shape[0]]

    def model(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.ops.anyshape_tests.opaque_pair(x, y)

    found = infer(model, [(t(3), t(6)), (t(4), t(8)), (t(5), t(10))])
    assert found.report.verdict == "unknown"
    assert all(r.status == "unknown" or r.witness is not None for r in found.relations)


def test_a_program_that_never_runs_proves_nothing() -> None:
    def never(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.view(x.numel() + 1) + y

    found = infer(never, [(t(3, 3), t(3)), (t(4, 4), t(4))])
    assert found.report.verdict == "refuted" and found.refused == (1, 2)
    assert {r.status for r in found.relations} == {"unknown"}


def test_examples_that_are_wrong_in_kind() -> None:
    with pytest.raises(SpecError, match="rank"):
        infer(stacked, [(t(3), t(3)), (t(3, 3), t(3))])


def test_a_result_is_plain_data() -> None:
    found = infer(Interleaves, CASES[1][1])
    data = json.loads(json.dumps(found.to_json()))
    assert data["spec"] == [*found.spec] and data["places"]["x_2"] == "x.shape[2]"
    assert data["relations"][0] == {
        "relation": "x_2 == y_1", "text": "y.shape[1] == x.shape[2]", "status": "proved", "given": "True",
        "witness": None,
    }  # fmt: skip


def test_an_exported_program_has_names_too() -> None:
    exported = torch.export.export(
        Interleaves(), CASES[1][1][0], dynamic_shapes=({0: torch.export.Dim.AUTO}, {0: torch.export.Dim.AUTO})
    )
    found = infer(exported, [(t(2, 5, 7), t(4, 7, 3)), (t(3, 5, 7), t(6, 7, 3))])
    assert found.spec == ("x: float32[x_0, 5, 7]", "y: float32[2*x_0, 7, 3]")


# ---- the command line

SOURCE = """\
import torch
from torch import nn


class Pair(nn.Module):
    def forward(self, x, y):
        return torch.bmm(x.repeat_interleave(2, 0), y)
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("models.py").write_text(SOURCE)
    torch.save(CASES[1][1], "inputs.pt")


def test_the_command_prints_the_spec(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["infer", "models.py:Pair", "--examples", "inputs.pt"]) == 0
    printed = capsys.readouterr().out
    for part in (
        '--input "x: float32[x_0, 5, x_2]"', '--input "y: float32[2*x_0, x_2, 3]"',
        "y.shape[0] == 2*x.shape[0]    needed by the program\n", "a coincidence: it runs with x_2=",
        "proved: models.py:Pair",
    ):  # fmt: skip
        assert part in printed, printed


def test_the_command_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["infer", "models.py:Pair", "-e", "inputs.pt", "--format", "json", "-a", "x_0 <= 64"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["spec"] == ["x: float32[x_0, 5, x_2]", "y: float32[2*x_0, x_2, 3]"]
    assert data["assume"] == ["x_0 <= 64"]


def write(name: str, value: Any) -> Callable[[], None]:
    return lambda: torch.save(value, name)


# arguments, what is written before, part of the message
BAD = [
    (("models.py:Pair", "-e", "nowhere.pt"), None, "cannot be read"),
    (("models.py:Pair", "-e", "models.py"), None, "holds no examples"),
    (("models.py:Pair", "-e", "one.pt"), write("one.pt", [(t(2, 5, 7), t(4, 7, 3))]), "one example"),
    (("models.py:Pair", "-e", "few.pt"), write("few.pt", [(t(2),), (t(3),)]), "a required argument: 'y'"),
    (("models.py:Pear", "-e", "inputs.pt"), None, "did you mean 'Pair'?"),
    (("models.py:Pair", "-e", "inputs.pt", "-a", "z <= 3"), None, "no input mentions the symbol 'z'"),
]  # fmt: skip


@pytest.mark.parametrize("arguments, before, part", BAD)
def test_bad_input_is_told(
    arguments: tuple[str, ...],
    before: Callable[[], None] | None,
    part: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if before is not None:
        before()
    assert main(["infer", *arguments]) == 2
    told = capsys.readouterr().err
    assert part in told and "Traceback" not in told, told


def test_examples_are_required(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["infer", "models.py:Pair"])
    assert left.value.code == 2 and "--examples" in capsys.readouterr().err
