"""Programs that Python compiles differently from release to release have the same verdict in each; those in
newer syntax have it where Python knows that.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor

from anyshape.typecheck.checking.api import check

NEWER = Path(__file__).parent / "newer"
"""Modules whose syntax the oldest release does not know, as texts."""


class Program(NamedTuple):
    name: str
    verdict: str
    runs: str
    """The lengths from 0 up to 6 at which it runs."""


def imported(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (folder / f"{name}.py").write_text((NEWER / f"{name}.txt").read_text())
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module(name)


def runs_at(target: Any) -> Iterator[int]:
    target = target() if isinstance(target, type) else target
    for n in range(7):
        try:
            target(torch.zeros(n))
        except (RuntimeError, ValueError, IndexError):
            continue
        yield n


def judged(target: Any, verdict: str, runs: str) -> None:
    """Holds the verdict to what it should be, and eager runs to both."""
    report = check(target, "x: float32[n]", ["0 <= n"], budget_s=2 if verdict == "unknown" else 60)
    assert report.verdict == verdict, report.to_text()
    assert "".join(map(str, runs_at(target))) == runs
    if verdict != "unknown":
        assert "".join(str(n) for n in range(7) if report.accepts.holds(n=n)) == runs
    for finding in report.findings:
        if finding.origin.line:
            lines = Path(finding.origin.file).read_text().splitlines()
            assert lines[finding.origin.line - 1].strip() == finding.origin.code


# --- loops ------------------------------------------------------------------------------------------------


def breaks_within_a_while(x: Tensor) -> Any:
    n, k = x.shape[0], 3
    while k > 0:
        k -= 1
        while n >= 2:
            n = n - 1
            break
    return x.view(n + 3)


def within_a_for(x: Tensor) -> Any:
    n = x.shape[0]
    t = 0
    for _ in range(3):
        m = n
        while m > 0:
            m = m - 1
            t = t + 1
    return torch.zeros(t).view(3 * n)


def within_while_true(x: Tensor) -> Any:
    n, k = x.shape[0], 0
    while True:
        while n >= 1:
            n = n - 1
            k = k + 2
        if n == 0:
            break
    return torch.zeros(k).view(x.shape[0] * 2)


def breaks_within_while_true(x: Tensor) -> Any:
    n, k = x.shape[0], 0
    while True:
        while n >= 1:
            n = n - 1
            break
        k += 1
        if k == 3:
            break
    return x[:n].view(n), x.view(n + 3)


def left_by_an_error(x: Tensor) -> Any:
    n = x.shape[0]
    for _ in range(3):
        try:
            while n >= 1:
                n = n - 1
                if n + 1:
                    raise KeyError
        except KeyError:
            continue
    return x.view(n + 3)


def goes_on_by_an_error(x: Tensor) -> Any:
    n, k = x.shape[0], 0
    while n >= 1:
        try:
            n = n - 1
            if k == 0:
                raise KeyError
        except KeyError:
            k = k + 1
            continue
        k += 1
    return torch.zeros(k).view(x.shape[0])


def continues(x: Tensor) -> Any:
    n, k = x.shape[0], 0
    while n >= 1:
        n = n - 1
        if k is None:
            continue
        k = k + 2
    return torch.zeros(k).view(x.shape[0] * 2)


def names_what_it_tests(x: Tensor) -> Any:
    n, k = x.shape[0], 0
    while (m := n) > 0:
        n = m - 1
        k = k + 2
    return torch.zeros(k).view(x.shape[0] * 2)


def left_at_times(x: Tensor) -> Any:
    k = 0
    for i in range(4):
        n = x.shape[0]
        while n > 0:
            n = n - 1
            if i == 2:
                break
            k += 1
    return x.view(k // 3)


def returns_from_it(x: Tensor) -> Any:
    def once(n):
        k = 0
        while n > 0:
            n = n - 1
            k = k + 1
            if k == 2:
                return k
        return k
    return x[:once(x.shape[0])].view(2), x[:once(x.shape[0])].view(2)


def of_a_generator(x: Tensor) -> Any:
    def steps(n):
        while n > 0:
            yield n
            n = n - 1
    k = 0
    for _ in steps(x.shape[0]):
        k = k + 1
    return torch.zeros(k).view(x.shape[0])


def beside_hidden_state(x: Tensor) -> Any:
    hidden = memoryview(b"1")
    n = x.shape[0]
    y = torch.stack([x[i] for i in range(n)]).view(n)
    return y, hidden.nbytes


def comprehension_within_a_for(x: Tensor) -> Any:
    ys = []
    for i in range(x.shape[0]):
        ys.append(sum([x[i] for j in range(3)]))
    return torch.stack(ys).view(x.shape[0])


def comprehension_of_comprehensions(x: Tensor) -> Any:
    n = x.shape[0]
    return torch.stack([torch.stack([x[i] + x[j] for j in range(n)]) for i in range(n)]).view(n * n)


def of_the_same_name(x: Tensor) -> Any:
    i = 5
    n = x.shape[0]
    y = torch.stack([x[i] for i in range(n)])
    return y.view(n), x.view(n + i - 5)


def of_the_same_name_as_a_number(x: Tensor) -> Any:
    i, k, n = 0, 0, x.shape[0]
    for _ in range(n):
        z = [i + 1 for i in range(2)]
        k += z[0] + i
    return torch.zeros(k).view(n)


def matched(x: Tensor) -> Any:
    match tuple(x.shape):
        case (1,):
            return x.view(1)
        case (n,) if n % 2 == 0:
            return x.view(n // 2, 2)
        case [n, *_]:
            return x.view(3, -1)


LOOPS = [
    (breaks_within_a_while, "refined", "456"), (within_a_for, "proved", "0123456"),
    (within_while_true, "proved", "0123456"), (breaks_within_while_true, "refined", "3456"),
    (left_by_an_error, "refined", "3456"), (goes_on_by_an_error, "proved", "0123456"),
    (continues, "proved", "0123456"), (names_what_it_tests, "proved", "0123456"),
    (left_at_times, "proved", "0123456"), (returns_from_it, "refined", "23456"),
    (of_a_generator, "unknown", "0123456"), (beside_hidden_state, "refined", "123456"),
    (comprehension_within_a_for, "refined", "123456"), (comprehension_of_comprehensions, "refined", "123456"),
    (of_the_same_name, "refined", "123456"), (of_the_same_name_as_a_number, "proved", "0123456"),
    (matched, "refined", "012346"),
]  # fmt: skip


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("target", "verdict", "runs"), LOOPS, ids=lambda x: getattr(x, "__name__", None))
def test_loops_have_one_verdict_in_every_release(target: Any, verdict: str, runs: str) -> None:
    judged(target, verdict, runs)


# --- newer syntax ----------------------------------------------------------------------------------------


SINCE_3_12 = [
    Program("pairs", "refined", "0246"), Program("Stacked", "refined", "4"),
    Program("calls_generic", "refined", "123456"), Program("in_text", "refined", "01234"),
]  # fmt: skip
SINCE_3_14 = [
    Program("names_nothing", "refined", "0246"), Program("Annotated", "refined", "036"),
    Program("from_template", "refined", "0246"), Program("in_message", "refined", "23456"),
    Program("several_errors", "proved", "0123456"),
]  # fmt: skip


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python 3.11 has no type parameters")
@pytest.mark.parametrize("program", SINCE_3_12, ids=lambda p: p.name)
def test_syntax_of_3_12(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = imported("python_3_12", tmp_path, monkeypatch)
    judged(getattr(module, program.name), program.verdict, program.runs)


@pytest.mark.skipif(sys.version_info < (3, 14), reason="annotations are evaluated at once up to Python 3.13")
@pytest.mark.parametrize("program", SINCE_3_14, ids=lambda p: p.name)
def test_syntax_of_3_14(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = imported("python_3_14", tmp_path, monkeypatch)
    judged(getattr(module, program.name), program.verdict, program.runs)


# --- who is told of jumps --------------------------------------------------------------------------------

watched = pytest.mark.skipif(sys.version_info < (3, 14), reason="a test is compiled twice up to Python 3.13")


def tools() -> list[str | None]:
    monitoring: Any = getattr(sys, "monitoring", None)
    return [monitoring.get_tool(number) for number in range(6)]


@watched
def test_jumps_are_watched_for_no_longer_than_a_check() -> None:
    before = tools()
    judged(within_a_for, "proved", "0123456")
    assert tools() == before


@watched
def test_where_jumps_cannot_be_watched_no_while_is_summarised() -> None:
    monitoring: Any = getattr(sys, "monitoring", None)
    for number in (3, 4):
        monitoring.use_tool_id(number, "another")
    try:
        judged(continues, "unknown", "0123456")
    finally:
        for number in (3, 4):
            monitoring.free_tool_id(number)
