"""The functions that a package uses to write stand-ins for its own functions.

A function that turns sizes into numbers, say to generate code from them, cannot be recorded. Its stand-in
does the same by calls of torch's functions, with sizes that may be symbolic: those of a recording, or of a
trace of torch's. It is called only where an argument is symbolic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ...constraints.terms.dims import sym
from ...constraints.terms.formula import Formula, all_of, divides, eq, ge, holds, le
from ..values.numbers import Size, dim_of


class UnsupportedCall(Exception):
    """Raised by a stand-in for arguments that it does not support: the function itself is called then."""


@dataclass(frozen=True, slots=True)
class PluginFunctions:
    """Stand-ins of a package, by the full names of its functions, `"mylib.add"`."""

    functions: Mapping[str, Callable[..., Any]]
    refusals: Callable[[], tuple[type[Exception], ...]] = tuple
    """A function that returns the exceptions by which the package refuses sizes. It is called once the
    package is imported.
    """


def require_equal(n: Any, other: Any, what: str, error: type[Exception] = RuntimeError) -> None:
    """Requires that two integers are equal; the function raises this error where they are not.

    `what` says what the first is, as the beginning of a sentence: "the size of the axis h".
    """
    _require(eq, (n, other), lambda n, other: f"{what} is {n}, and must be {other}", error)


def require_multiple(n: Any, divisor: Any, what: str, error: type[Exception] = RuntimeError) -> None:
    """Requires that an integer is a multiple of another one, which is known not to be 0."""
    _require(
        lambda n, divisor: divides(divisor, n),
        (n, divisor),
        lambda n, divisor: f"{what} is {n}, and must be a multiple of {divisor}",
        error,
    )


def require_between(
    n: Any, low: int, high: int | None, what: str, error: type[Exception] = RuntimeError
) -> None:
    """Requires that an integer is at least `low`, and at most `high`, unless that is None."""
    most = "" if high is None else f" and at most {high}"
    _require(
        lambda n: all_of((ge(n, low), high is None or le(n, high))),
        (n,),
        lambda n: f"{what} is {n}, and must be at least {low}{most}",
        error,
    )


def _require(
    law: Callable[..., Formula], numbers: tuple[Any, ...], reason: Callable[..., str], error: type[Exception]
) -> None:
    """Requires a law of numbers; they may be sizes of a recording or of a trace of torch's."""
    run = next((n.run for n in numbers if type(n) is Size), None)
    if run is not None:
        dims = [dim_of(n) for n in numbers]
        run.require(law(*dims), reason(*dims), error)
        return
    values = {f"n{place}": n for place, n in enumerate(numbers)}
    if not holds(law(*map(sym, values)), values):
        raise error(reason(*numbers))
