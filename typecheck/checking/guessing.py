"""Guesses a spec for inputs that nothing declares, by trying candidates on the program itself.

A candidate gives an input a rank and names for its axes. Its dtype is left open, and found as for any spec
that leaves it out. Each is tried by a short check. The first with which the program runs for some sizes is
kept, and sizes that the program fixes become numbers: `Conv2d(1, …)` gives `x: float32[b, 1, h, w]`.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final, TypeAlias

from ...constraints.ir.spec import quoted
from ...constraints.ir.system import System
from ...constraints.terms.dims import sym
from ...constraints.terms.formula import eq
from ...solver.tactics.judge import Budget, Judge
from ..report.codes import Code
from ..report.findings import main_path, make
from ..report.report import Finding, ReportData, Verdict
from ..targets.docstring_shapes import described
from ..targets.example_calls import Nested, TensorExample, examples
from ..targets.target import is_module
from ..targets.target_error import TargetError
from ..targets.uses import Use, uses

Lines: TypeAlias = tuple[str, ...]
"""The lines of a spec for one input, which are several for a list."""
Tried: TypeAlias = "Callable[[Lines, float], tuple[ReportData, System]]"
"""Checks a program with these lines for its undeclared inputs within some seconds."""
_TABLES: Final = frozenset({"Embedding", "EmbeddingBag"})
_RANKS: Final = {
    "Linear": 2, "BatchNorm1d": 2, "Conv1d": 3, "Conv2d": 4, "ConvTranspose2d": 4, "Conv3d": 5, "LSTM": 3,
    "GRU": 3, "RNN": 3, "MultiheadAttention": 3, "TransformerEncoderLayer": 3, "TransformerDecoderLayer": 3,
}  # fmt: skip
"""The rank that the input of a module of these classes has, with its batch."""
_AXES: Final = {0: "", 1: "n", 2: "b d", 3: "b t d", 4: "b c h w", 5: "b c t h w"}
"""Names for the axes of a tensor of each rank."""
_INTEGERS: Final = frozenset(
    "idx ids index indices token tokens label labels target targets src tgt source words".split()
)
_STATES: Final = frozenset("state states hidden hx".split())
"""Names that the two states of an LSTM have."""
_MOST_ELEMENTS: Final = 16
"""No longer list of tensors is tried."""
_ORDERS: Final = 2000
"""At most so many combinations of candidates are put in order."""
MOST: Final = 60
"""At most so many specs are tried."""
_PATIENCE: Final = 2.0
"""The time limit, in seconds, of questions about a program that is refused."""
_MORE: Final = 12
"""So many more are tried where the first that runs has a size of 1."""
SECONDS: Final = 25.0
"""No spec is tried after this time."""


def guessed(target: Any, names: Sequence[str], tried: Tried) -> list[str]:
    """Returns lines such as `x: float32[b, 3, h, w]` for the inputs of these names.

    Where nothing that is tried runs, they are those with which the program gets furthest before an error
    about sizes. Raises TargetError where that is no further than its first calls.
    """
    groups = candidates(target, names)
    kept = max(2, int(_ORDERS ** (1 / len(groups))))
    sizes = [min(len(group), kept) for group in groups]
    orders = sorted(product(*map(range, sizes)), key=lambda order: (sum(order), max(order)))
    until = time.monotonic() + SECONDS
    failed: TargetError | None = None
    found: dict[int, tuple[Lines, ReportData]] = {}
    refused: list[tuple[Lines, ReportData, System]] = []
    last = MOST
    for number, order in enumerate(orders[:MOST]):
        if (left := until - time.monotonic()) <= 0 or number > last:
            break
        lines = tuple([line for group, at in zip(groups, order, strict=True) for line in group[at]])
        try:
            report, system = tried(lines, min(left, 3.0))
        except TargetError as error:  # it fails for a reason other than sizes
            failed = failed or error
            continue
        if _runs(lines, report):
            narrowness = _narrowness(lines, report)
            last = min(last, number + _MORE * bool(narrowness))
            found.setdefault(narrowness, (lines, report))
        elif report.verdict is Verdict.REFUTED and not any("..." in line for line in lines):
            refused.append((lines, report, system))
    if found:
        return _determined(*_widened(*found[min(found)], tried, until))
    if (furthest := _furthest(refused)) is not None:
        return furthest
    problem = f"the inputs are not declared, and no usual shape of {', '.join(names)} runs"
    forms = pasted([_example(line) for group in groups for line in group[0]])
    if failed is None:
        raise TargetError(problem, f"declare them, as in {forms}")
    raise TargetError(f"{problem}: {failed.problem}", f"declare them, as in {forms}", failed.origin)


def guesses(spec: Sequence[str], chosen: Sequence[str]) -> tuple[Finding, ...]:
    """Returns the findings that tell a spec which was guessed, or the lines whose dtype was chosen."""
    if spec:
        return (make(Code.GUESSED, f"the inputs are not declared; this is checked: {pasted(spec)}"),)
    if not chosen:
        return ()
    names = " and ".join(line.rpartition(": ")[0] for line in chosen)
    told = f"the dtype of {names} is not declared; what the program needs is checked: {pasted(chosen)}"
    return (make(Code.GUESSED, told),)


def pasted(spec: Iterable[str]) -> str:
    """Returns a spec as options of the command line."""
    return " ".join(f"--input '{line}'" if '"' in line else f'--input "{line}"' for line in spec)


# ---- candidates


def candidates(target: Any, names: Sequence[str]) -> list[list[Lines]]:
    """Returns the candidates for each input, the likeliest first: those of examples, those of docstrings, and
    usual ones. A dict has candidates for each of its keys, a dataclass for each of its fields.
    """
    kinds = [type(module).__name__ for module in target.modules()] if is_module(target) else []
    shown = [_of_example(example) for example in examples(target, names)]
    told, used = described(target, names), uses(target, names)
    groups: list[list[Lines]] = []
    for at, name in enumerate(names):
        first = [one for example in shown for one in example.get(name, ())]
        if name in told:
            first += [(_line(name, told[name].dtype, map(str, told[name].sizes)),)]
        parts = _fields(target, name) or used[name].keys
        if parts and not first:
            keys = [f"{name}[{quoted(key)}]" for key in parts]
            groups += [[*_usual(key, kinds, at + n, len(names))] for n, key in enumerate(keys)]
        else:
            usual = _of_use(name, used[name], kinds, at, len(names))
            groups.append([*dict.fromkeys((*first, *usual))])
    return groups


def _fields(target: Any, name: str) -> tuple[str, ...]:
    """Returns the fields of an input that is a dataclass or a named tuple by its annotation; none of others.
    """
    from ...tracer.recording.binding import fields_of, record_class

    kind = record_class(getattr(target, "forward", target), name)
    return () if kind is None else fields_of(kind)


def _of_use(name: str, use: Use, kinds: Sequence[str], at: int, count: int) -> Iterator[Lines]:
    """Yields candidates for an input that a program takes apart in some way."""
    if use.axes:
        usual = _axes(len(use.axes))
        axes = [one.lower() if one.strip("_") else other for one, other in zip(use.axes, usual, strict=True)]
        if len({*axes}) == len(axes):
            yield (_line(name, "", axes),)
    plural = name.endswith("s") and not use.whole
    pair = "LSTM" in kinds and not _STATES.isdisjoint(_words(name))
    length = use.count or 2 * pair
    lists = [*_lists(name, kinds, at, length)] if 0 < length <= _MOST_ELEMENTS else []
    if first := use.is_list or plural or pair:
        yield from lists
    yield from _usual(name, kinds, at, count)
    if not first:
        yield from lists


def _lists(name: str, kinds: Sequence[str], at: int, length: int) -> Iterator[Lines]:
    """Yields lists of so many tensors of one rank, with one batch, and else sizes of their own."""
    for rank, own in product(dict.fromkeys((*_likely(kinds), 4, 3, 2, 1)), (False, True) if at else (False,)):
        batch, *others = _AXES[rank].split()
        batch += f"{at + 1}" * own
        axes = [[batch, *(f"{axis}{n}" for axis in others)] for n in range(length)]
        yield tuple([_line(f"{name}[{n}]", "", one) for n, one in enumerate(axes)])


def _usual(name: str, kinds: Sequence[str], at: int, count: int) -> Iterator[Lines]:
    """Yields tensors of usual ranks, the likeliest first, then an integer."""
    words = _words(name)
    if "mask" in words:
        ranks: tuple[int | None, ...] = (2, 3, 4)
    elif not _INTEGERS.isdisjoint(words) or (at == 0 and not _TABLES.isdisjoint(kinds)):
        ranks = (2, 1, 3)
    else:
        ranks = ()
    integers = bool(ranks)
    for rank in dict.fromkeys((*ranks, *_likely(kinds), *[None] * (count == 1), 4, 3, 2, 1, 5)):
        if rank is None:
            yield (f"{name}: [...]",)
            continue
        axes = _axes(rank, integers)
        yield (_line(name, "", axes),)
        if at:
            yield (_line(name, "", [f"{axis}{at + 1}" for axis in axes]),)
    yield (f"{name}: int",)


def _axes(rank: int, integers: bool = False) -> list[str]:
    """Returns names for the axes of a tensor; one of integers has no channels."""
    if rank == 2 and integers:
        return ["b", "t"]
    return _AXES[rank].split() if rank in _AXES else [f"s{n}" for n in range(rank)]


def _likely(kinds: Sequence[str]) -> list[int]:
    return [_RANKS[kind] for kind in kinds if kind in _RANKS][:1]


def _line(name: str, dtype: str, axes: Iterable[str]) -> str:
    return f"{name}: {dtype}[{', '.join(axes)}]"


def _of_example(example: Mapping[str, Nested]) -> dict[str, list[Lines]]:
    """Returns for each input of an example its type with symbols for all sizes, and one in which only the
    first size is a symbol. Sizes of one symbol are equal in the example.
    """
    known: dict[str, int | str] = {}
    found = {}
    for name, value in example.items():
        free = tuple(_lines_of(name, value, known, fixed=False))
        found[name] = [free, tuple(_lines_of(name, value, known, fixed=True))]
    return found


def _lines_of(name: str, value: Nested, known: dict[str, int | str], *, fixed: bool) -> Iterator[str]:
    """Yields the lines for the parts of an example. `known` has the sizes that symbols have in it."""
    match value:
        case list():
            for at, one in enumerate(value):
                yield from _lines_of(f"{name}[{at}]", one, known, fixed=fixed)
        case dict():
            for key, one in value.items():
                yield from _lines_of(f"{name}[{quoted(key)}]", one, known, fixed=fixed)
        case TensorExample(sizes, dtype):
            usual = _axes(len(sizes), dtype == "int64")
            axes = [_symbol(axis, size, known) for axis, size in zip(usual, sizes, strict=True)]
            if fixed:
                axes = [*axes[:1], *map(str, sizes[1:])]
            yield _line(name, dtype.replace("float32", ""), axes)
        case bool() | None | str():
            yield f"{name}={quoted(value) if isinstance(value, str) else value}"
        case int() | float():
            yield f"{name}={value}" if fixed else f"{name}: {type(value).__name__}"


def _symbol(axis: str, size: int | str, known: dict[str, int | str]) -> str:
    """Returns a symbol for a size: that of the axis, with a number where it has another size already."""
    names = [axis, *(f"{axis}{n}" for n in range(2, 100))]
    name = next(one for one in names if known.get(one, size) == size)
    known[name] = size
    return name


def _words(name: str) -> list[str]:
    return re.split(r"[^a-z0-9]+", name.lower().replace("_", " "))


def _example(line: str) -> str:
    """Returns a line with a dtype, as an example for what to declare."""
    words = _words(_name_of(line))
    dtype = "bool" if "mask" in words else "float32" if _INTEGERS.isdisjoint(words) else "int64"
    return line.replace(": [", f": {dtype}[", 1)


# ---- answers


def _runs(lines: Lines, report: ReportData) -> bool:
    """Returns whether some sizes certainly run, and where the rank is any, all of them."""
    if any("..." in line for line in lines):
        return report.verdict is Verdict.PROVED
    return report.verdict in (Verdict.PROVED, Verdict.REFINED) and report.accepts.formula is not False


def _narrowness(lines: Lines, report: ReportData) -> int:
    """Returns 2 if a size that several inputs share has to be 1, else 1 if a size has to be that is none of
    channels, and 0 if neither is the case. Another rank, or axes of their own, may then fit better.
    """
    ones = [name for name, fact in report.dims.items() if fact.divisor == 0 and fact.remainder == 1]
    used = [(re.split(r"\W", line, maxsplit=1)[0], {*re.findall(r"\w+", line)}) for line in lines]
    if any(len({input for input, names in used if one in names}) > 1 for one in ones):
        return 2
    return int(any(not one.lower().startswith(("c", "d")) for one in ones))


def _widened(lines: Lines, report: ReportData, tried: Tried, until: float) -> tuple[Lines, ReportData]:
    """Returns the lines with sizes of their own for the axes that inputs share, where the same sizes run."""
    for at, line in enumerate(lines):
        name, _, type = line.rpartition(": ")
        before = {word for one in lines[:at] if not _are_parts(one, line) for word in _symbols(one)}
        for axis in [one for one in _symbols(line) if one in before]:
            own = f"{axis}{at + 1}"
            with_own = re.sub(rf"\b{axis}\b", own, type)
            wider = (*lines[:at], f"{name}: {with_own}", *lines[at + 1 :])
            left = until - time.monotonic()
            if left <= 0 or own in {word for one in lines for word in _symbols(one)}:
                continue
            with contextlib.suppress(TargetError):
                new, _ = tried(wider, min(left, 3.0))
                if (new.verdict, str(new.accepts)) == (report.verdict, str(report.accepts)):
                    lines, report, type = wider, new, with_own
    return lines, report


def _are_parts(one: str, other: str) -> bool:
    """Returns whether two lines declare parts of one input."""
    return re.split(r"\W", one, maxsplit=1)[0] == re.split(r"\W", other, maxsplit=1)[0]


def _symbols(line: str) -> list[str]:
    """Returns the symbols among the sizes of a line."""
    return re.findall(r"[A-Za-z_]\w*", line.rpartition("[")[2]) if line.endswith("]") else []


def _determined(lines: Lines, report: ReportData) -> list[str]:
    """Returns the lines as they were checked, with numbers in place of sizes that have one value, and
    with the sizes of earlier inputs in place of those that equal them.
    """
    written: dict[str, str] = {}
    for name, fact in report.dims.items():
        same = str(fact.equals)
        written[name] = str(fact.remainder) if fact.divisor == 0 else written.get(same, name)
    return _written(lines, report, written)


def _written(lines: Lines, report: ReportData, sizes: Mapping[str, str]) -> list[str]:
    """Returns the lines as they were checked, with sizes in place of symbols."""
    names = {_name_of(line) for line in lines}
    return [_with_sizes(line, sizes) for line in report.inputs if _name_of(line) in names]


def _furthest(refused: Sequence[tuple[Lines, ReportData, System]]) -> list[str] | None:
    """Returns the first lines with which a program gets furthest, with the sizes that it fixes until then;
    None where it never gets beyond its first calls.
    """
    reached = [_reached(system) for _, _, system in refused]
    most = max((calls for calls, _ in reached), default=0)
    if most == 0:
        return None
    at = [calls for calls, _ in reached].index(most)
    (lines, report, _), (_, fixed) = refused[at], reached[at]
    return _written(lines, report, {name: str(size) for name, size in fixed.items()})


def _reached(system: System) -> tuple[int, Mapping[str, int]]:
    """Returns how many calls a program that is refused gets through, and the sizes that these fix."""
    path = main_path(system)
    judge, domain = Judge(Budget(_PATIENCE)), system.domain
    met = [*domain.assumptions]
    if path is None:
        return 0, {}
    reached = len(path.program.nodes)
    for constraint in path.constraints:
        if judge.satisfiable([*met, constraint.formula], domain.symbols) != "sat":
            reached = constraint.node
            break
        met.append(constraint.formula)
    if judge.satisfiable(met, domain.symbols) != "sat":
        return reached, {}
    sizes = {name: judge.model[name] for name in domain.symbols}
    return reached, {name: size for name, size in sizes.items() if judge.follows(eq(sym(name), size), met)}


def _name_of(line: str) -> str:
    """Returns the name of the input that a line declares: that before its type, or before its value."""
    return line.rpartition(": ")[0] or line.rpartition("=")[0]


def _with_sizes(line: str, written: Mapping[str, str]) -> str:
    name, _, type = line.rpartition(": ")
    dtype, bracket, axes = type.removesuffix("]").partition("[")
    if not bracket:
        return line
    return _line(name, dtype, [written.get(axis, axis) for axis in axes.split(", ")])
