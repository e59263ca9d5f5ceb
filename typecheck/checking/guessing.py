"""Guesses a spec for inputs that nothing declares, by trying types on the program itself.

A type is tried by a short check. The first of the candidates that runs for some sizes is kept; sizes that the
program fixes become numbers: `Conv2d(1, …)` gives `x: float32[b, 1, h, w]`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final, TypeAlias

from ..report.codes import Code
from ..report.findings import make
from ..report.report import Finding, ReportData, Verdict
from ..targets.target_error import TargetError

Tried: TypeAlias = "Callable[[Mapping[str, str], float], ReportData]"
"""Checks a program with types for its inputs within some seconds."""
_TABLES: Final = frozenset({"Embedding", "EmbeddingBag"})
_RANKS: Final = {"Linear": 2, "Conv1d": 3, "Conv2d": 4, "Conv3d": 5, "LSTM": 3, "GRU": 3, "RNN": 3}
"""The rank that the input of a module of these classes has, with its batch."""
_AXES: Final = {1: "n", 2: "b d", 3: "b t d", 4: "b c h w", 5: "b c t h w"}
"""Names for the axes of a tensor of each rank."""
_INTEGERS: Final = frozenset("idx ids index indices tokens token labels label target targets".split())
_ORDERS: Final = 2000
"""At most so many combinations of types are put in order."""
MOST: Final = 60
"""At most so many specs are tried."""
SECONDS: Final = 10.0
"""No spec is tried after this time."""


def guessed(names: Sequence[str], modules: Sequence[Any], tried: Tried) -> dict[str, str]:
    """Returns a type for each input, such as `float32[b, 3, h, w]`. Raises TargetError where nothing that is
    tried runs.
    """
    kinds = [type(module).__name__ for module in modules]
    kept = max(2, int(_ORDERS ** (1 / len(names))))
    candidates = [
        [*dict.fromkeys(_types(name, kinds, at, len(names)))][:kept] for at, name in enumerate(names)
    ]
    until = time.monotonic() + SECONDS
    orders = sorted(product(*map(range, map(len, candidates))), key=lambda order: (sum(order), max(order)))
    failed: TargetError | None = None
    for order in orders[:MOST]:
        if (left := until - time.monotonic()) <= 0:
            break
        types = {name: one[at] for name, one, at in zip(names, candidates, order, strict=True)}
        try:
            report = tried(types, min(left, 3.0))
        except TargetError as error:  # it fails for a reason other than sizes, perhaps the dtype
            failed = error
            continue
        if _runs(types, report):
            return _determined(types, report)
    forms = " ".join(f'--input "{name}: float32[b, 3, h, w]"' for name in names)
    problem = f"the inputs are not declared, and no usual shape of {', '.join(names)} runs"
    if failed is None:
        raise TargetError(problem, f"declare them, as in {forms}")
    raise TargetError(f"{problem}: {failed.problem}", f"declare them, as in {forms}", failed.origin)


def guesses(spec: Sequence[str], chosen: Sequence[str]) -> tuple[Finding, ...]:
    """Returns the findings that tell a spec which was guessed, or the lines whose dtype was chosen."""
    if spec:
        return (make(Code.GUESSED, f"the inputs are not declared; this is checked: {pasted(spec)}"),)
    if not chosen:
        return ()
    names = " and ".join(line.partition(":")[0] for line in chosen)
    told = f"the dtype of {names} is not declared; what the program needs is checked: {pasted(chosen)}"
    return (make(Code.GUESSED, told),)


def pasted(spec: Iterable[str]) -> str:
    """Returns a spec as options of the command line."""
    return " ".join(f"--input '{line}'" if '"' in line else f'--input "{line}"' for line in spec)


def _types(name: str, kinds: Sequence[str], at: int, count: int) -> Iterator[str]:
    """Yields types for one of several inputs, the likeliest first."""
    words = name.lower().split("_")
    likely = [_RANKS[kind] for kind in kinds if kind in _RANKS][:1]
    ranks = (*likely, *[None] * (count == 1), 4, 3, 2, 5, 1)
    if "mask" in words:
        yield from _of("bool", (2, 3, 4), at)
    first = not _INTEGERS.isdisjoint(words) or (at == 0 and not _TABLES.isdisjoint(kinds))
    if first:
        yield from _of("int64", (2, 1, 3), at)
    yield from _of("float32", ranks, at)
    if not first:
        yield from _of("int64", (2, 1, 3), at)


def _of(dtype: str, ranks: Iterable[int | None], at: int) -> Iterator[str]:
    """Yields tensors of some ranks, where None is any: of each one with the axes of the other inputs, then
    one with axes of its own.
    """
    for rank in ranks:
        if rank is None:
            yield f"{dtype}[...]"
            continue
        names = _AXES[rank] if dtype == "float32" else _AXES[rank].replace("b d", "b t")
        yield f"{dtype}[{', '.join(names.split())}]"
        if at:
            yield f"{dtype}[{', '.join(f'{axis}{at + 1}' for axis in names.split())}]"


def _runs(types: Mapping[str, str], report: ReportData) -> bool:
    """Returns whether some sizes certainly run, and where the rank is any, all of them."""
    if any("..." in type for type in types.values()):
        return report.verdict is Verdict.PROVED
    return report.verdict in (Verdict.PROVED, Verdict.REFINED) and report.accepts.formula is not False


def _determined(types: Mapping[str, str], report: ReportData) -> dict[str, str]:
    """Returns the types with numbers in place of sizes that have one value, and with the sizes of earlier
    inputs in place of those that equal them.
    """
    written: dict[str, str] = {}
    for name, fact in report.dims.items():
        same = str(fact.equals)
        written[name] = str(fact.remainder) if fact.divisor == 0 else written.get(same, name)
    found = {}
    for name, type in types.items():
        dtype, _, axes = type.removesuffix("]").partition("[")
        found[name] = f"{dtype}[{', '.join(written.get(axis, axis) for axis in axes.split(', '))}]"
    return found
