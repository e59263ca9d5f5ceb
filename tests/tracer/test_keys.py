"""Sizes as keys: Python searches a dict or a set for a number without asking the size, so what is decided has
to hold however the container is searched.
"""

from __future__ import annotations

import pytest
from eager_runs import agreed

from benchmarks.fuzz.program import Program

USED_UP = (
    "len({n, 3})", "len({n, m})", "len({n, k})", "len({n} | {3})", "len({n}.union([3]))", "len({n, *t})",
    "int(k in {n: 1})", "int(k in {n, 7})", "int(t[0] in {n})",
    "{n: 1, k: 2}[k]", "{n: 1}.get(k, 0)", "{n: 1}.get(m, 0)",
    "{(n, 1): 2}.get((3, 1), 0)", "{x.shape: 2}.get((3,), 0)", "len({x.shape, (3,)})", "int({n} == {3})",
    "int({n: 1} == {k: 1})", "{3.0: 2}.get(n, 0)",
    "{n: 2}.get(3.0, 0)", "int(n in {2, k})", "{2: 1, 3: 2}.get(n, 0)",

)  # fmt: skip
"""Containers that end with the expression: all keys are known."""
KEPT = (
    "d = {}; d[n] = 1; r = d.get(3, 0)",
    "d = {}; d[n] = 1; d[m] = 2; r = d.get(k, 0)",
    "d = {7: 1}; d.setdefault(n, 2); r = d.get(3, 0)",
    "d = {7: 1}; d.update({n: 2}); r = d.get(3, 0)",
    "d = {7: 1}; d |= {n: 2}; r = d.get(3, 0)",
    "d = {**{7: 1}, n: 2}; r = d.get(k, 0)",
    "d = {i: 2 for i in x.shape}; r = d.get(3, 0)",
    "d = dict([(n, 1)]); r = d.get(3, 0)",
    "d = dict.fromkeys([n, len('abc')]); r = len(d)",
    "d = collections.defaultdict(int); d[n] += 1; r = d[3]",
    "d = collections.Counter([n, k]); r = len(d)",
    "d = collections.OrderedDict(); d[n] = 1; r = d.get(3, 0)",
    "d = collections.UserDict(); d[n] = 1; r = d.get(3, 0)",
    "d = {}; d[float(n)] = 1; r = d.get(3, 0)",
    "d = {}; d[n, 1] = 1; r = d.get((3, 1), 0)",
    "d = {}; d[f'k{n}'] = 1; r = d.get('k3', 0)",
    "s = set(); s.add(n); r = int(3 in s)",
    "s = {5}; s.update([n]); r = len(s | {3})",
    "s = frozenset(x.shape); r = int(k in s)",
    "r = int({n}.issubset([len('abc')]))",
    "r = len({n, len('abc')} | {2 + 1})",
    "r = len({i for i in (n, len('abc'))})",
    "look = lambda d: d.get(3, 0); r = look({n: 1})",
    "r = [{n: 1}][0].get(3, 0)",
    "r = ({n: 1} or {}).get(3, 0)",
    "r = int(k in {n: (k := 2)})",
    "r = {n: 1}.get((k := 2) + 1, 0)",
    "r = int(id(n) == id(m))",
    "r = len({*x.shape, *y.shape, 2})",
    "r = {n: 1}.get(x.shape[0] + 1, 0)",
    "r = int(frozenset(x.shape) == frozenset((m, 3)))",
    "r = {n / 2: 1}.get(1.5, 0)",
    "r = len({*()} | {n, 2})",
    "r = int({n}.isdisjoint({m, 2}))",
)
"""Containers that go on, or meet what is not known. Whatever is said of them has to be true."""
POINTS = [{"n": n, "m": m} for n in range(6) for m in range(5)]


def _program(lines: str) -> Program:
    first = "n, m = x.shape[0], y.shape[0]", "k, t = len('abc'), [3]"
    body = "".join(f"    {line}\n" for line in (*first, lines))
    result = "y[r:].view(1 if r else m) if r < m else y[9]"
    text = f"import collections\ndef f(x, y):\n{body}    return {result}\n"
    return Program.of("found", text, "x: float32[n]; y: float32[m]", ("n >= 0", "m >= 0"))


@pytest.mark.parametrize("expression", USED_UP)
def test_keys_of_a_container_that_is_used_up(expression: str) -> None:
    assert agreed(_program(f"r = {expression}"), POINTS) in ("proved", "refined", "refuted")


@pytest.mark.parametrize("lines", KEPT)
def test_keys_of_a_container_that_goes_on(lines: str) -> None:
    agreed(_program(lines), POINTS)
