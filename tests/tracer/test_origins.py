"""Which part of a line a call is: told by the code positions of its frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from anyshape.constraints.ir.program import Origin
from anyshape.constraints.ir.spec_text import parse_spec
from anyshape.constraints.rules import default_rules
from anyshape.solver.decide import DomainOracle
from anyshape.solver.tactics.judge import Budget
from anyshape.tracer.bytecode.origins import ModuleNames, of_error
from anyshape.tracer.recording.record import record


def nested(x: Any) -> Any:
    return torch.relu(x).view(2, torch.cat([x, x]).shape[0] // 2, -1)


def operators(x: Any) -> Any:
    return x @ x.T + x[:, :1]


def beyond_ascii(x: Any) -> Any:
    é = "🦊 is four bytes"; x = torch.relu(x)  # noqa: E702
    return x, é


def several_lines(x: Any) -> Any:
    return torch.cat(
        [x, x],
        dim=1,
    )


PARTS = {
    nested: ["torch.relu(x)", "torch.cat([x, x])",
             "torch.relu(x).view(2, torch.cat([x, x]).shape[0] // 2, -1)"],
    operators: ["x.T", "x @ x.T", "x[:, :1]", "x @ x.T + x[:, :1]"],
    beyond_ascii: ["torch.relu(x)"],
    several_lines: ["torch.cat("],
}


def part(origin: Origin) -> str:
    return origin.code[origin.start : origin.stop]


@pytest.mark.parametrize("program", PARTS, ids=lambda f: f.__name__)
def test_the_call_in_its_line(program: Callable[[Any], Any]) -> None:
    spec = parse_spec("x: float32[b, 4]")
    system, _ = record(program, spec, default_rules, DomainOracle(spec.domain, Budget(10.0)), budget_s=10.0)
    (path,) = system.paths
    origins = list(dict.fromkeys(node.origin for node in path.program.nodes))
    assert [part(origin) for origin in origins] == PARTS[program]
    assert {origin.indent for origin in origins} == {4}


def test_an_error_stands_at_the_expression_that_raised() -> None:
    def divides(n: int) -> int:
        return n + 1 // (n - n)

    with pytest.raises(ZeroDivisionError) as raised:
        divides(3)
    assert part(of_error(raised.value, ModuleNames(None))) == "1 // (n - n)"


def test_a_program_without_source() -> None:
    names: dict[str, Any] = {}
    exec(compile("def f(n):\n    return 1 // n\n", "<nowhere>", "exec"), names)
    with pytest.raises(ZeroDivisionError) as raised:
        names["f"](0)
    origin = of_error(raised.value, ModuleNames(None))
    assert (origin.code, origin.start, origin.stop) == ("", 0, 0)


def test_equal_functions_in_two_files() -> None:
    files = []
    for name in ("<first>", "<second>"):
        names: dict[str, Any] = {}
        exec(compile("def f(n):\n    return 1 // n\n", name, "exec"), names)
        with pytest.raises(ZeroDivisionError) as raised:
            names["f"](0)
        files.append(of_error(raised.value, ModuleNames(None)).file)
    assert files == ["<first>", "<second>"]
