"""A context in which a rule is only tried: at some sizes, or before it is applied."""

from __future__ import annotations

from typing import Any, NoReturn

from ..ir.language import Context, Direction, Refused
from ..ir.release import Release, is_since
from ..terms.dims import Dim
from ..terms.formula import Formula, negate
from ..terms.intervals import Bounds


class Undecided(Exception):
    """Raised where a rule asks for more than is known."""


class Trying(Context):
    """A context that records nothing. Refusals are raised; services that are not defined raise Undecided."""

    bounds: Bounds
    release: Release | None
    floats = "float32"

    def require(
        self, formula: Formula, reason: str, error: type[Exception] = RuntimeError, *, by_data: bool = False
    ) -> None:
        """Raises Refused where the formula certainly does not hold."""
        if formula is False or self.bounds.certain(negate(formula)):
            raise Refused(reason, error)

    def refuse(self, reason: str, error: type[Exception] = RuntimeError) -> NoReturn:
        raise Refused(reason, error)

    def approximate(
        self, reason: str, may: Direction = "both", where: Formula = True, *, number: str = ""
    ) -> None:
        """Ignores the note."""

    def since(self, *release: int) -> bool:
        return is_since(self.release, release)

    def unchecked(self, formula: Formula) -> None:
        """Ignores the condition."""

    def certain(self, formula: Formula) -> bool:
        return self.bounds.certain(formula)

    def at_least(self, dim: Dim, bound: int) -> bool:
        return self.bounds.at_least(dim, bound)

    def number(self, dim: Dim) -> int:
        if isinstance(dim, int):
            return dim
        raise Undecided

    def choose(self, formula: Formula, reason: str) -> bool:
        if self.certain(formula):
            return True
        if self.certain(negate(formula)):
            return False
        raise Undecided

    def _undecided(self, *args: Any, **options: Any) -> Any:
        raise Undecided

    fresh = trues = stored = memory_of = at_rest = layouts = _undecided
    without_data = range_of = is_identity = may_be_nan = may_be_alike = is_data = _undecided
    no_inverse = none_between = no_index_between = may_be_true = may_differ = _undecided
