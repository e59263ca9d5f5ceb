"""The paths of a system as plain data for JSON, and back: `paths_from_json(paths_to_json(paths)) == paths`.

The domain is not included: the user declares it, and it has a notation of its own (`spec_text.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple
from typing import Any, Final

from ..terms.formula import free_symbols
from .language import Constraint, Note
from .program import IllFormed, formula_of, from_json, integer, origin_of, pack, text, to_json, truth, unpack
from .system import Condition, End, Path

NOTES: Final = ("approximate", "no-rule", "trace-limit", "bounded-rank")
DIRECTIONS: Final = ("accept", "refuse", "both")


def paths_to_json(paths: Iterable[Path]) -> list[Any]:
    """Returns the paths as plain data for `json.dump`."""
    return [_path(path) for path in paths]


def _path(path: Path) -> dict[str, Any]:
    return {
        "program": to_json(path.program),
        "values": [[id, pack(value)] for id, value in path.values.items()],
        "constraints": [
            [pack(c.formula), c.reason, c.node, c.kind, c.by_data, c.alone, c.decided]
            for c in path.constraints
        ],
        "notes": [[n.code, n.reason, n.node, n.may, pack(n.where)] for n in path.notes],
        "conditions": [_condition(c) for c in path.conditions],
        "end": [path.end.how, path.end.reason, list(astuple(path.end.origin)), path.end.by_library],
        "unbacked": [[name, pack(known)] for name, known in path.unbacked],
        "turns": [_condition(c) for c in path.turns],
    }


def paths_from_json(data: Any, symbols: Iterable[str]) -> tuple[Path, ...]:
    """Returns the paths that `paths_to_json` wrote, over these symbols of inputs.

    Raises IllFormed on anything else.
    """
    try:
        return tuple(_read(path, frozenset(symbols)) for path in data)
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise IllFormed(f"these are not paths of anyshape: {error!r}") from error
    except ValueError as error:
        raise error if isinstance(error, IllFormed) else IllFormed(str(error)) from error


def _read(data: Any, symbols: frozenset[str]) -> Path:
    path = Path(
        from_json(data["program"]),
        {integer(id): unpack(value) for id, value in data["values"]},
        tuple(
            Constraint(
                formula_of(formula),
                text(why),
                integer(node),
                _among(kind, "model", "trace"),
                truth(by_data),
                alone=truth(alone),
                decided=None if decided is None else integer(decided),
            )
            for formula, why, node, kind, by_data, alone, decided in data["constraints"]
        ),
        tuple(
            Note(_among(code, *NOTES), text(why), integer(node), _among(may, *DIRECTIONS), formula_of(where))
            for code, why, node, may, where in data["notes"]
        ),
        tuple(map(_condition_of, data["conditions"])),
        _end(*data["end"]),
        tuple((text(name), formula_of(known)) for name, known in data["unbacked"]),
        tuple(map(_condition_of, data.get("turns", ()))),
    )
    _verify(path, symbols)
    return path


def _condition(c: Condition) -> list[Any]:
    formula = None if c.formula is None else pack(c.formula)
    return [formula, c.taken, list(astuple(c.origin)), c.forced, c.after, pack(c.given), pack(c.settled)]


def _condition_of(data: Any) -> Condition:
    formula, taken, origin, forced, after, given, settled = data
    known = None if formula is None else formula_of(formula)
    return Condition(
        known,
        truth(taken),
        origin_of(origin),
        truth(forced),
        integer(after),
        formula_of(given),
        settled=formula_of(settled),
    )


def _end(how: Any, reason: Any, origin: Any, by_library: Any = False) -> End:
    ending = _among(how, "returned", "raised", "gave-up")
    return End(ending, text(reason), origin_of(origin), truth(by_library))


def _verify(path: Path, symbols: frozenset[str]) -> None:
    """Checks the laws of a path. Raises IllFormed with the first that is broken.

    1. Every input and every result has a value.
    2. Constraints and notes refer to nodes that exist, or to -1, which means the program as a whole.
    3. Formulas mention only symbols of the inputs, sizes that data decide, and indices of iterations.
    """
    program = path.program
    made = {i.id for i in program.inputs} | {id for node in program.nodes for id in node.results}
    if missing := made - path.values.keys():
        raise IllFormed(f"value {min(missing)} is not described")
    said = [(c.node, c.reason) for c in path.constraints] + [(n.node, n.reason) for n in path.notes]
    for node, reason in said:
        if not -1 <= node < len(program.nodes):
            raise IllFormed(f"{reason!r} is about node {node}, which does not exist")
    known = symbols | {name for name, _ in path.unbacked} | {loop.index for loop in program.iterations}
    formulas = [c.formula for c in path.constraints] + [f for _, f in path.unbacked]
    formulas += [note.where for note in path.notes]
    asked = (*path.conditions, *path.turns)
    formulas += [f for c in asked for f in (c.formula, c.given) if f is not None]
    for formula in formulas:
        if strange := free_symbols(formula) - known:
            raise IllFormed(f"{formula} is about {min(strange)}, which is not declared")


def _among(value: Any, *words: str) -> Any:
    if value not in words:
        raise IllFormed(f"one of {', '.join(words)} was expected, not {value!r}")
    return value
