"""Judging a family's cases once, and asking afterwards whether they said anything."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from anyshape.constraints.engine.ruleset import Rules
from anyshape.typecheck.testing.differential import Case, check_case


class Judge:
    """`check_case` that remembers, so that a family's cases can be counted without running them twice."""

    def __init__(self, rules: Rules, count: int = 40) -> None:
        self.rules = rules
        self.count = count
        self._seen: dict[int, tuple[int, int]] = {}

    def __call__(self, case: Case) -> tuple[int, int]:
        """How many assignments torch accepted and refused. Raises AssertionError where the rule disagrees."""
        if id(case) not in self._seen:
            self._seen[id(case)] = check_case(case, self.rules, self.count)
        return self._seen[id(case)]

    def one_sided(self, cases: Iterable[Case]) -> dict[str, str]:
        """The rules of the family that no case runs, or whose cases are all accepted or all refused."""
        accepted: Counter[str] = Counter()
        refused: Counter[str] = Counter()
        for case in cases:
            yes, no = self(case)
            op = case.op if case.op in self.rules else case.op.removesuffix("_")
            accepted[op] += yes
            refused[op] += no
        says = {(False, False): "untested", (True, False): "never refused", (False, True): "never accepted"}
        sides = {op: (accepted[op] > 0, refused[op] > 0) for op in self.rules}
        return {op: says[side] for op, side in sides.items() if side in says}
