"""A program in the form in which it leaves the machine that traced it: the calls and requirements of its
paths.

It contains no weights and nothing that could be run. `api.recorded` traces a target; its JSON is decided
without torch, and without the target.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path as File
from typing import Any, Final

from msgspec import structs

from ...constraints.engine.generate import generate
from ...constraints.engine.ruleset import Rules
from ...constraints.ir.language import (
    Affine,
    Image,
    Layout,
    Piece,
    Pieces,
    Ratio,
    Slice,
    Span,
    Subscripts,
    Tensor,
    Truths,
)
from ...constraints.ir.program import IllFormed, Node, Origin, Program
from ...constraints.ir.release import Release
from ...constraints.ir.spec import Spec
from ...constraints.ir.spec_text import SpecError, parse_spec, write_spec
from ...constraints.ir.system import Domain, Path, System
from ...constraints.ir.system_json import paths_from_json, paths_to_json
from ...constraints.terms.dims import Term, evaluate, substitute, sym
from ...constraints.terms.formula import And, Compare, Or, holds
from ...solver.decide import DomainOracle
from ..replay.replay import Inconclusive, Outcome, by_rules
from ..targets.target import Target
from .clock import Clock

FORM: Final = "anyshape.recorded"
SCHEMA: Final = 1


@dataclass(frozen=True, slots=True)
class Recorded:
    """A target traced under a spec."""

    spec: Spec
    system: System
    changed: tuple[str, ...] = ()
    """The attributes that a run assigns."""

    def to_json(self) -> dict[str, Any]:
        """Plain data for `json.dump`."""
        return {
            "form": FORM,
            "schema": SCHEMA,
            "inputs": list(write_spec(self.spec)),
            "assume": [str(formula) for formula in self.spec.domain.assumptions],
            "changed": list(self.changed),
            "incomplete": self.system.incomplete,
            "paths": paths_to_json(self.system.paths),
        }

    @staticmethod
    def from_json(data: Any) -> Recorded:
        """The inverse of `to_json`. Raises IllFormed, with the reason, on anything else."""
        try:
            if data["form"] != FORM or data["schema"] != SCHEMA:
                raise IllFormed(f"form {data['form']!r} {data['schema']!r} is not {FORM} {SCHEMA}")
            inputs, assume, changed = (_texts(data[key]) for key in ("inputs", "assume", "changed"))
            spec = parse_spec(inputs, assume)
            paths = paths_from_json(data["paths"], spec.domain.symbols)
            incomplete = data["incomplete"]
        except SpecError as error:
            raise IllFormed(f"its spec cannot be read: {error}") from error
        except (KeyError, TypeError) as error:
            raise IllFormed(f"this is not a program of anyshape: {error!r}") from error
        if not paths or type(incomplete) is not str:
            raise IllFormed("a recorded program needs a path, and texts for what is missing")
        return Recorded(spec, System(spec.domain, paths, incomplete), changed)

    def target(self, name: str) -> Target:
        """Returns the recorded program as a target for `check`."""
        return Target(name, "recorded", self)

    def without_source(self) -> Recorded:
        """The same without the texts of lines; files keep their names and lines their numbers."""
        return replace(self, system=_with_origins(self.system, _no_text))

    def with_files_in(self, folder: str) -> Recorded:
        """The same with files named as seen from a folder, and those elsewhere by their last name alone."""
        return replace(self, system=_with_origins(self.system, lambda origin: _inside(origin, folder)))


class RecordedSource:
    """A recorded program, as a thing to check. A spec may narrow what it was recorded for, and no more."""

    release: Release | None = None
    floats: str = "float32"

    def __init__(self, recorded: Recorded, spec: Spec | None, assume: str | Iterable[str]) -> None:
        self.recorded = recorded
        base = recorded.spec
        spec = spec and spec.with_dtypes_of(base)
        if spec is not None and write_spec(spec) != write_spec(base):
            was, asked = "; ".join(write_spec(base)), "; ".join(write_spec(spec))
            hint = "assumptions can be added; other inputs need the program to be traced and sent again"
            raise SpecError(f"the program was recorded for {was}, not for {asked}", hint=hint)
        given = (assume,) if isinstance(assume, str) else (*assume,)
        known = [str(formula) for formula in base.domain.assumptions]
        self.spec = parse_spec(write_spec(base), (*known, *given)) if given else base

    def system(self, rules: Rules, oracle: DomainOracle, clock: Clock) -> tuple[System, list[str]]:
        self._rules = rules
        self._paths = self.recorded.system.paths
        system = replace(self.recorded.system, domain=self.spec.domain)
        return system, list(self.recorded.changed)

    def run(self, values: Mapping[str, int], accepted: bool) -> Outcome:
        """Returns the outcome by the rules, evaluated at these sizes along the path that they take."""
        path = self.at(values)
        return path if isinstance(path, Inconclusive) else by_rules(path)

    def at(self, values: Mapping[str, int]) -> Path | Inconclusive:
        """The path that these sizes take, at these sizes, with what the rules say there."""
        try:
            taken = [path for path in self._paths if holds(path.premise, values)]
        except (ZeroDivisionError, KeyError) as error:
            return Inconclusive(f"its branches cannot be decided there: {error!r}")
        if len(taken) != 1 or taken[0].on_data or taken[0].unbacked or taken[0].program.iterations:
            return Inconclusive("more than sizes decides which path the program takes")
        (path,) = taken
        if path.end.how == "gave-up":
            return Inconclusive(path.end.reason, origin=path.end.origin)
        try:
            program = _at(path.program, values)
        except (ZeroDivisionError, KeyError) as error:
            return Inconclusive(f"its sizes have no value there: {error!r}")
        said = generate(program, self._rules, Domain())
        return Path(program, said.values, tuple(said.constraints), tuple(said.notes), end=path.end)


# ---- a program at concrete sizes


def _at(program: Program, values: Mapping[str, int]) -> Program:
    """The program with a number for each size."""
    return replace(
        program,
        inputs=tuple(structs.replace(i, type=_value_at(i.type, values)) for i in program.inputs),
        nodes=tuple(_node_at(node, values) for node in program.nodes),
    )


def _node_at(node: Node, values: Mapping[str, int]) -> Node:
    return structs.replace(
        node,
        args=tuple((name, _value_at(argument, values)) for name, argument in node.args),
        given=tuple((_value_at(condition, values), truth) for condition, truth in node.given),
    )


def _value_at(value: Any, values: Mapping[str, int]) -> Any:
    """A value or argument with a number for each dim and a truth for each formula."""
    match value:
        case Term():
            return evaluate(value, values)
        case Compare() | And() | Or():
            return holds(value, values)
        case tuple():
            return tuple(_value_at(part, values) for part in value)
        case Slice(start, stop, step):
            return Slice(*(_value_at(part, values) for part in (start, stop, step)))
        case Tensor(shape, _, layout, elements):
            return structs.replace(
                value,
                shape=_value_at(shape, values),
                layout=layout if isinstance(layout, Layout) else _value_at(layout, values),
                elements=_value_at(elements, values),
            )
        case Affine(start, _):
            return replace(value, start=_value_at(start, values))
        case Subscripts(shape, _):
            return replace(value, shape=_value_at(shape, values))
        case Span(low, high, _):
            return replace(value, low=_value_at(low, values), high=_value_at(high, values))
        case Ratio(numerator, _, _):
            return replace(value, numerator=_value_at(numerator, values))
        case Pieces(pieces):
            return replace(value, pieces=tuple(_value_at(piece, values) for piece in pieces))
        case Piece(term, over, indices, given):
            own = {index.name: sym(index.name) for index in indices}
            return replace(
                value,
                term=None if term is None else substitute(term, {**values, **own}),
                over=_value_at(over, values),
                indices=tuple(replace(index, size=_value_at(index.size, values)) for index in indices),
                given=_value_at(given, values),
                doubt=_value_at(value.doubt, values),
            )
        case Truths(some, every, within, compares):
            some, every, within = (_value_at(part, values) for part in (some, every, within))
            compares = compares and replace(compares, piece=_value_at(compares.piece, values))
            return Truths(some, every, within, compares)
        case Image(piece, others=others):
            whole = tuple(_value_at(one, values) for one in (piece, *others))
            return replace(value, piece=whole[0], others=whole[1:])
    return value


# ---- where its lines are


def _with_origins(system: System, change: Any) -> System:
    return replace(system, paths=tuple(_path_with_origins(path, change) for path in system.paths))


def _path_with_origins(path: Path, change: Any) -> Path:
    nodes = tuple(structs.replace(node, origin=change(node.origin)) for node in path.program.nodes)
    return replace(
        path,
        program=replace(path.program, nodes=nodes),
        conditions=tuple(replace(c, origin=change(c.origin)) for c in path.conditions),
        turns=tuple(replace(c, origin=change(c.origin)) for c in path.turns),
        end=replace(path.end, origin=change(path.end.origin)),
    )


def _no_text(origin: Origin) -> Origin:
    return replace(origin, code="", indent=0, start=0, stop=0)


def _inside(origin: Origin, folder: str) -> Origin:
    if not os.path.isabs(origin.file):
        return origin
    file = File(origin.file)
    inside = file.relative_to(folder) if file.is_relative_to(folder) else file.name
    return replace(origin, file=str(inside))


def _texts(data: Any) -> tuple[str, ...]:
    if not isinstance(data, list) or any(type(text) is not str for text in data):
        raise IllFormed(f"a list of texts was expected, not {data!r}")
    return tuple(data)


