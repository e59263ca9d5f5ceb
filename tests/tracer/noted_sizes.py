"""The judge of rules on whole exported programs: what the trace itself noted of every value.

A trace has sizes of its own for each value, over the symbols of the inputs. Where the inputs satisfy what the
rules require and the trace allows, the rules must give the same numbers.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Tensor, Value
from anyshape.constraints.ir.system import Path
from anyshape.constraints.terms.dims import Dim, Symbol, Term, evaluate, lone_atom, symbols
from anyshape.constraints.terms.formula import free_symbols, holds
from anyshape.tracer.readers.graph import Traced, system

KNOWN = {("_native_batch_norm_legit_no_training", 1), ("_native_batch_norm_legit_no_training", 2)}
"""Results where the trace is wrong: on the CPU the saved mean and deviation are empty."""


def assignments(traced: Traced, path: Path, count: int = 6) -> Iterator[dict[str, int]]:
    """The example, and other sizes that every constraint over the inputs holds for."""
    domain = traced.spec.domain
    formulas = [*domain.assumptions, *(c.formula for c in path.constraints)]
    formulas = [f for f in formulas if free_symbols(f) <= set(domain.symbols)]
    rng = random.Random(0)
    tried = [dict(traced.example)]
    tried += [{s: n * factor for s, n in traced.example.items()} for factor in (2, 3)]
    for _ in range(300):
        near = {s: (n, n + 1, n + 2, 2 * n, n + 8, 16 * n, 9) for s, n in traced.example.items()}
        tried.append({s: rng.choice(sizes) for s, sizes in near.items()})
    found = 0
    for values in tried:
        if all(holds(f, values) for f in formulas):
            yield values
            found += 1
        if found == count:
            return


def disagreements(traced: Traced, rules: Rules) -> tuple[int, list[str]]:
    """How many values were compared, and where the rules and the trace differ."""
    (path,) = system(traced, rules).paths
    where = {id: (node, i) for node in traced.program.nodes for i, id in enumerate(node.results)}
    same = _unbacked(traced, path)
    compared, found = 0, []
    data = dict.fromkeys((*same, *same.values()), 3)
    points = [values | data for values in assignments(traced, path)]
    assert points, "no sizes satisfy the constraints"
    for id, read in traced.recorded.items():
        noted, ruled = read(), path.values[id]
        node, index = where[id]
        if (node.op, index) in KNOWN:
            continue
        for values in points:
            if not _symbols(noted) | _symbols(ruled) <= values.keys():
                found.append(f"{node.op} at {node.origin}: {ruled} or {noted} has sizes that nothing says")
                break
            compared += 1
            if not _agree(noted, ruled, values):
                what = f"{ruled} by its rule, {noted} in the trace, at {values}"
                found.append(f"{node.op} at {node.origin}: {what}")
                break
    return compared, found


def _unbacked(traced: Traced, path: Path) -> dict[str, str]:
    """Names of the trace for sizes that the data decides -> those that the rules gave them."""
    names = {name for name, _ in path.unbacked}
    same: dict[str, str] = {}
    for id, read in traced.recorded.items():
        for a, b in zip(_dims(read()), _dims(path.values[id]), strict=False):
            mine, theirs = lone_atom(b), lone_atom(a)
            if isinstance(mine, Symbol) and isinstance(theirs, Symbol) and mine.name in names:
                same.setdefault(theirs.name, mine.name)
                same.setdefault(mine.name, mine.name)
    return same


def _dims(value: Value) -> tuple[Dim, ...]:
    if isinstance(value, Tensor):
        return value.shape
    return (value,) if isinstance(value, int | Term) and not isinstance(value, bool) else ()


def _symbols(value: Value) -> set[str]:
    return {name for dim in _dims(value) for name in symbols(dim)}


def _agree(noted: Value, ruled: Value, values: dict[str, int]) -> bool:
    """The same sizes, and no different dtypes. A value that is no tensor and no size is not compared."""
    dtypes = {v.dtype for v in (noted, ruled) if isinstance(v, Tensor)} - {None}
    if len(dtypes) > 1:
        return False
    return [evaluate(d, values) for d in _dims(noted)] == [evaluate(d, values) for d in _dims(ruled)]
