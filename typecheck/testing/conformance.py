"""The suite that a package of rules runs: each of its rules against the operator itself.

Calls are made up from the schema that torch has of an operator: tensors of ranks 0 to 3 with a symbol for
each dim, contiguous and transposed, small integers, both truths, and defaults. Each call runs at many sizes
(differential.py). What the schema does not say, such as which texts an operator takes, is for cases that the
package writes itself.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, Final

import torch

from ...constraints.engine.ruleset import Rule, RuleFailed, Rules
from ...tracer.host.operators import schema_of
from .differential import Case, Disagreement, T, check_case

RANKS: Final = range(4)
CALLS: Final = 40
"""The made-up calls of one operator, at most; they are drawn evenly where there are more."""
SIZES: Final = 12
"""The random assignments of sizes at which a made-up call runs, besides those where all sizes are equal."""


@dataclass(frozen=True, slots=True)
class Conformed:
    """The calls at which a rule and its operator were compared and agreed."""

    operator: str
    accepted: int
    """The calls with sizes that the operator accepts."""
    refused: int


def conformance(
    rules: Mapping[str, Callable[..., Any] | Rule], cases: Iterable[Case] = ()
) -> tuple[Conformed, ...]:
    """The number of calls by operator at which each of these rules says what its operator does.

    `rules` is the table that a package announces, `{"mylib::operator": rule}`; `cases` are further calls.
    Raises Disagreement, an AssertionError, with the first disagreement of each rule that has one.
    """
    table = Rules(rules)
    own: dict[str, list[Case]] = {name: [] for name in table}
    for case in cases:
        if case.op not in own:
            raise ValueError(f"a case of {case.op}, which has no rule")
        own[case.op].append(case)
    found: list[Conformed] = []
    problems: list[str] = []
    for name, written in own.items():
        try:
            found.append(_conformed(name, table, written))
        except (Disagreement, RuleFailed) as problem:
            problems.append(f"{name}: {problem}")
    if problems:
        raise Disagreement("\n".join(problems))
    return tuple(found)


def _conformed(name: str, rules: Rules, written: Sequence[Case]) -> Conformed:
    seen: Counter[bool] = Counter()
    for case in written:
        accepted, refused = check_case(case, rules)
        seen.update({True: accepted, False: refused})
    for case in made_up(name):
        accepted, refused = check_case(case, rules, SIZES)
        seen.update({True: accepted, False: refused})
    if not seen[True]:
        raise Disagreement("torch accepts none of the calls that were tried; pass cases that it accepts")
    return Conformed(name, seen[True], seen[False])


def made_up(name: str) -> Iterator[Case]:
    """Calls of an operator by its schema; none where an argument that it needs is of an unknown kind.

    Raises Disagreement where torch has no such operator.
    """
    operator = _operator(name)
    arguments = schema_of(operator).arguments
    choices = [[*_values(argument)] for argument in arguments]
    for values in _some(choices, random.Random(name)):
        pairs = [*zip(arguments, values, strict=True)]
        yield Case(
            name,
            operator,
            tuple(value for argument, value in pairs if not argument.kwarg_only),
            {argument.name: value for argument, value in pairs if argument.kwarg_only},
        )


def _operator(name: str) -> Any:
    """The first overload of an operator."""
    namespace, _, operator = name.rpartition("::")
    packet = getattr(getattr(torch.ops, namespace or "aten"), operator, None)
    if packet is None:
        raise Disagreement("torch knows no operator of this name; is the module that defines it imported?")
    return getattr(packet, packet.overloads()[0])


def _values(argument: Any) -> Iterator[Any]:
    """Values for an argument, by the type that the schema has of it."""
    kind = str(argument.type)
    optional = kind.startswith("Optional[")
    kind = kind.removeprefix("Optional[").removesuffix("]") if optional else kind
    if argument.has_default_value():
        yield argument.default_value
    elif optional:
        yield None
    match kind:
        case "Tensor":
            yield from _tensors(argument.name)
        case "List[Tensor]":
            yield from ([tensor] for tensor in _tensors(argument.name))
            for rank in RANKS:
                yield [_tensor(f"{argument.name}{i}", rank) for i in range(2)]
        case "int" | "SymInt" | "number":
            yield from (-1, 0, 1, 2, 3)
        case "List[int]" | "List[SymInt]":
            yield from ([], [0], [1], [2], [-1], [1, 2], [0, 1])
        case "bool":
            yield from (False, True)
        case "float":
            yield 0.5


def _tensors(name: str) -> Iterator[T]:
    for rank in RANKS:
        yield _tensor(name, rank)
    yield T(_tensor(name, 2).sizes, permute=(1, 0))
    yield T(_tensor(name, 3).sizes, permute=(0, 2, 1))


def _tensor(name: str, rank: int) -> T:
    return T(" ".join(f"{name}_{i}" for i in range(rank)))


def _some(choices: Sequence[Sequence[Any]], rng: random.Random) -> Iterator[tuple[Any, ...]]:
    """All combinations of the choices where they are few, else as many as are tried, drawn evenly."""
    if prod(map(len, choices)) <= CALLS:
        yield from product(*choices)
        return
    for _ in range(CALLS):
        yield tuple(map(rng.choice, choices))
