"""An exported program, run next to the model that it was made from."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch.export import ExportedProgram

from ....constraints.ir.spec import Spec
from ....constraints.terms.dims import sym
from ....constraints.terms.formula import Formula, any_of, conjuncts, eq, free_symbols, ne, negate
from ....solver.facts.facts import fact
from ....solver.tactics import examples
from ....solver.tactics.judge import Judge
from ....tracer.host.trees import pytree
from ...checking.trial import show
from ..examples import example_inputs

SECONDS: Final = 20.0
"""The time limit, in seconds, of running both at the ends of the ranges."""
POINTS: Final = 12
"""Both are run at no more sizes than this."""
LARGE: Final = 4_000_000
"""Both are run with no more elements of all inputs together than this."""
EFFORT: Final = 300_000
"""Z3's resource units for sizes at which to run the program."""
TOLERANCE: Final = 1e-3


@dataclass(frozen=True, slots=True)
class Raised:
    """That a run raised, and what: in words, for an error keeps alive all that was there when it came."""

    error: str


class Comparison:
    """Runs the program and the model at the same sizes."""

    def __init__(
        self, model: Any, spec: Spec, program: ExportedProgram, accepted: Formula, fill: str, more: bool,
        judge: Judge,
    ) -> None:
        """`accepted`: the sizes that both should take. `more`: the program may refuse more than that."""
        self.model, self.spec, self.judge = model, spec, judge
        self.accepted, self.fill, self.more = accepted, fill, more
        self.domain = spec.domain.assumptions
        self.module = program.module()
        self.wrong = ""
        """The difference between the two, if one was found."""
        self.same: list[dict[str, int]] = []
        self.refused: list[dict[str, int]] = []

    def agree_where(self, region: Formula) -> bool:
        """Returns whether the two agree at the accepted sizes of a region that are tried. True if the region
        has none.
        """
        given = (*self.domain, self.accepted, region)
        if self.judge.satisfiable(given, (), EFFORT) == "unsat":
            return True
        first = next(self._found([given], 1), None)
        if first is None:
            return False
        elsewhere = any_of(ne(sym(name), first[name]) for name in sorted(free_symbols(region)))
        return all(self._agrees(sizes) for sizes in (first, *self._found([(*given, elsewhere)], 1)))

    def meet_where(self, region: Formula) -> bool:
        """Returns whether the two were run at some sizes of a region, and agreed there."""
        before = len(self.same)
        return self.agree_where(region) and len(self.same) > before

    def at_the_ends(self, loops: bool = False) -> None:
        """Runs both at the ends of each range, while there is time, and the program beyond them. Where it has
        loops, at a few more, for these to take several steps.
        """
        started = time.monotonic()
        ends = []
        for name in self.spec.domain.symbols:
            known = fact(self.judge, (*self.domain, self.accepted), sym(name))
            steps = (0, 1, 2, 5) if loops else (0, 1)
            wished = [] if known.min is None else [known.min + step * known.divisor for step in steps]
            ends += [eq(sym(name), end) for end in (*wished, known.max) if end is not None]
        most = 2 * POINTS if loops else POINTS
        for sizes in self._found([(*self.domain, self.accepted, end) for end in ends], most):
            if time.monotonic() - started < SECONDS:
                self._agrees(sizes)
        refusals = [(*self.domain, negate(f)) for f in conjuncts(self.accepted)]
        for sizes in self._found(refusals, POINTS):
            if not isinstance(self._run(self.module, sizes), Raised):
                self.wrong = f"at {show(sizes)} it runs"
            self.refused.append(sizes)

    def _agrees(self, sizes: dict[str, int]) -> bool:
        """Returns whether both do the same at these accepted sizes. Sets `wrong` where they certainly differ.
        """
        expected = self._run(self.model, sizes)
        actual = self._run(self.module, sizes)
        if isinstance(expected, Raised):
            return False  # because of the data: an index out of range
        if isinstance(actual, Raised):
            if not self.more:
                self.wrong = f"at {show(sizes)} it raises {actual.error}"
            return False
        again = expected if _equal(expected, actual) else self._run(self.model, sizes)
        if not _equal(again, actual) and _equal(expected, again) and not _equal(self._slowly(sizes), actual):
            self.wrong = f"at {show(sizes)} the results differ"
            return False
        self.same.append(sizes)
        return True

    def _slowly(self, sizes: Mapping[str, int]) -> Any:
        """Returns the model's result without the fast path of torch's attention, which no trace takes: in
        rows that are masked altogether the fast path returns other numbers.
        """
        enabled = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            return self._run(self.model, sizes)
        finally:
            torch.backends.mha.set_fastpath_enabled(enabled)

    def _run(self, target: Any, sizes: Mapping[str, int]) -> Any:
        """Returns the result of the target, or the error that it raised."""
        failed: Raised | None = None
        with self.judge.resting():
            for fill in (self.fill, "zeros"):
                given = example_inputs.arguments(self.model, self.spec, sizes, fill)
                try:
                    return example_inputs.run(target, given, self.model)
                except Exception as error:  # noqa: BLE001 (the user's program may raise anything; it is told)
                    failed = failed or Raised(f"{type(error).__name__}: {error}")
        return failed

    def _found(self, wishes: Iterable[tuple[Formula, ...]], most: int) -> Iterator[dict[str, int]]:
        """Sizes that satisfy each wish, as far as there are such sizes, and not too large."""
        seen: list[dict[str, int]] = []
        names = self.spec.domain.symbols
        for given in wishes:
            if len(seen) >= most or self.judge.satisfiable(given, names, EFFORT) != "sat":
                continue
            model = {name: self.judge.model[name] for name in names}
            sizes = examples.polished(model, given, self.judge.known(given), names)
            if sizes not in seen and example_inputs.elements(self.spec, sizes) <= LARGE:
                seen.append(sizes)
                yield sizes


def _equal(one: Any, other: Any) -> bool:
    """Returns whether the leaves are the same, floats up to rounding."""
    if isinstance(one, Raised) or isinstance(other, Raised):
        return False
    left, right = pytree.tree_leaves(one), pytree.tree_leaves(other)
    return len(left) == len(right) and all(map(_equal_leaf, left, right))


def _equal_leaf(one: Any, other: Any) -> bool:
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return type(one) is type(other) and (one == other or one != one)
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if not (one.is_floating_point() or one.is_complex()):
        return torch.equal(one, other)
    return torch.allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE / 10, equal_nan=True)
