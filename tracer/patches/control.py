"""Control flow as operators: `cond`, `switch`, `while_loop`, `scan`, `map` and `associative_scan`.

A higher-order operator runs functions. Each is run once, on the values that it gets in any of its calls, so
that its nodes occur in the program once; then a node for the operator itself joins the results to the
operands (constraints/rules/control.py). Both users share this code: the recorder, whose functions are
Python's, and exported graphs, whose functions are graphs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias

Branch: TypeAlias = tuple[Any, bool] | None
"""A condition and the truth that it has in the function that runs under it."""


class Host(Protocol):
    """Runs the functions of a higher-order operator. Values are the host's own; several are tuples."""

    def node(self, op: str, *args: Any) -> Any:
        """Appends a node that has one result, and returns that result."""

    def run(self, function: Any, operands: Sequence[Any], under: Branch = None) -> tuple[Any, ...]:
        """Runs a function that an operator was given, and returns the leaves of its result."""

    def join(self, op: str, *args: Any) -> tuple[Any, ...]:
        """Appends the node of the operator itself, and returns its results."""


def cond(host: Host, pred: Any, true: Any, false: Any, operands: Sequence[Any] = ()) -> tuple[Any, ...]:
    """Returns the results of `cond`: both branches must run where data decides between them; else each where
    the condition selects it.
    """
    taken = host.run(true, operands, (pred, True))
    other = host.run(false, operands, (pred, False))
    return host.join("cond", pred, taken, other)


def switch(
    host: Host, index: Any, branches: Sequence[Any], operands: Sequence[Any] = ()
) -> tuple[Any, ...]:
    """Returns the results of `switch`: each branch must run where the index, within their number, may be its
    own.
    """
    results = [
        host.run(branch, operands, (host.node("eq", index, number), True))
        for number, branch in enumerate(branches)
    ]
    return host.join("switch", index, tuple(results))


def while_loop(
    host: Host, condition: Any, body: Any, operands: Sequence[Any], additional: Sequence[Any] = ()
) -> tuple[Any, ...]:
    carried = tuple(host.node("carried", value) for value in operands)
    (proceed,) = host.run(condition, (*carried, *additional))
    after = host.run(body, (*carried, *additional))
    return host.join("while_loop", proceed, carried, after)


def scan(
    host: Host, combine: Any, init: Sequence[Any], xs: Sequence[Any], additional: Sequence[Any] = ()
) -> tuple[Any, ...]:
    rows = tuple(host.node("row", x) for x in xs)
    given = tuple(host.node("carried", value) for value in init)
    results = host.run(combine, (*given, *rows, *additional))
    carry, ys = results[: len(init)], results[len(init) :]
    return host.join("scan", given, carry, tuple(xs), ys)


def map_rows(
    host: Host, function: Any, xs: Sequence[Any], additional: Sequence[Any] = (), *,
    mutated_arg_indices: str = "",
) -> tuple[Any, ...]:
    """Returns the results of `map`. The numbers of operands that the function writes into, which torch 2.14
    names in some graphs, are none where a program is recorded.
    """
    rows = tuple(host.node("row", x) for x in xs)
    return host.join("map", tuple(xs), host.run(function, (*rows, *additional)))


def associative_scan(
    host: Host, combine: Any, xs: Sequence[Any], additional: Sequence[Any] = ()
) -> tuple[Any, ...]:
    """Returns the results of `associative_scan`: an operand of the function is a row, or the function's own
    result, which is like one.
    """
    rows = tuple(host.node("row", x) for x in xs)
    return host.join("associative_scan", tuple(xs), host.run(combine, (*rows, *rows, *additional)))


CONTROL: Final[Mapping[str, Callable[..., tuple[Any, ...]]]] = {
    "cond": cond,
    "switch": switch,
    "while_loop": while_loop,
    "scan": scan,
    "map_impl": map_rows,
    "associative_scan": associative_scan,
}
"""For each operator, by torch's name, a function of the host and the operator's own arguments in torch's
order.
"""
