"""The line at which a module was built, and repairs of the numbers in it."""

from __future__ import annotations

from pathlib import Path

import pytest
from models.mistakes import net

from anyshape.typecheck import check
from anyshape.typecheck.report.report import Finding

BLOCK = """
class Block(nn.Module):
    def __init__(self, dim, wider=2, *, out=48):
        super().__init__()
        self.up = nn.Linear(dim, wider * dim)
        self.down = nn.Linear(wider * dim, out)

    def forward(self, x):
        return self.down(torch.relu(self.up(x)))


class Outer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.block = Block(width)

    def forward(self, x):
        return self.block(x)


class Doubled(nn.Module):
    def __init__(self, width):
        super().__init__()
        width = 2 * width
        self.block = Block(width)

    def forward(self, x):
        return self.block(x)
"""


def finding(tmp_path: Path, built: str, run: str, inputs: str) -> Finding:
    file = tmp_path / "net.py"
    file.write_text(net(built, f"x\n{run}", BLOCK))
    return check(f"{file}:Net", inputs, repairs=True).findings[0]


@pytest.mark.parametrize(
    "built, line, repair, new",
    [
        ("self.a = nn.Linear(64, 8)", "self.a = nn.Linear(64, 8)",
         "change 64 to 48 (in_features of a)", "48"),
        (
            "self.a = nn.Sequential(\n    nn.ReLU(),\n    nn.Linear(in_features=64, out_features=8),\n)",
            "nn.Linear(in_features=64, out_features=8),", "change 64 to 48 (in_features of a.1)", "48",
        ),
        ("self.a = Block(64)", "self.a = Block(64)", "change 64 to 48 (dim of a)", "48"),
        ("self.a = Outer(8 * 8)", "self.a = Outer(8 * 8)", "change 8 * 8 to 48 (width of a)", "48"),
        (
            "self.a = nn.Sequential(*[Block(64) for _ in range(2)])",
            "self.a = nn.Sequential(*[Block(64) for _ in range(2)])",
            "change 64 to 48 (dim of a.0 and 1 like it)", "48",
        ),
        ("self.a = nn.Sequential(Block(48, out=64), Block(48))",
         "self.a = nn.Sequential(Block(48, out=64), Block(48))", "change 48 to 64 (dim of a.1)", "64"),
    ],
)  # fmt: skip
def test_the_call_with_the_number(tmp_path: Path, built: str, line: str, repair: str, new: str) -> None:
    found = finding(tmp_path, built, "return self.a(x)", "x: [b, 48]")
    assert found.built is not None
    assert found.built.code == line
    (first, *_) = [r for r in found.repairs if r.message == repair]
    assert (first.new, first.origin.code) == (new, line)
    assert line in check(f"{tmp_path / 'net.py'}:Net", "x: [b, 48]").to_text(width=400, verbose=True)


def test_a_parameter_that_is_assigned_anew_is_not_followed(tmp_path: Path) -> None:
    """`Doubled(32)` gives its block twice as much, so that no number in this call is the one to change."""
    found = finding(tmp_path, "self.a = Doubled(32)", "return self.a(x)", "x: [b, 48]")
    assert found.built is not None
    assert found.built.code == "self.block = Block(width)"
    assert not any("of a)" in repair.message for repair in found.repairs)


@pytest.mark.parametrize(
    "built",
    [
        "self.a = nn.ModuleList()\nself.a.append(nn.Linear(64, 8))",
        "self.a = nn.ModuleList([nn.ReLU()])\nself.a = nn.ModuleList([nn.Linear(64, 8)])",
    ],
)
def test_where_it_is_not_known_no_line_is_shown(tmp_path: Path, built: str) -> None:
    found = finding(tmp_path, built, "return self.a[0](x)", "x: [b, 48]")
    assert (found.built, found.origin.module) == (None, "a.0")


def test_a_program_without_modules_has_no_such_line(tmp_path: Path) -> None:
    file = tmp_path / "f.py"
    file.write_text("def f(x, y):\n    return x @ y\n")
    assert check(f"{file}:f", "x: [a, 3]; y: [4, b]").findings[0].built is None
