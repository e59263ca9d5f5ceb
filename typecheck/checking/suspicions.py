"""Suspicions: code that runs, and is probably not intended. Each is a function from a checked program to
messages.

Those that correct programs hardly ever have are on by default (`codes.py` says which); the others are turned
on by name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final, TypeAlias

from ...constraints.ir.language import Dynamic, Tensor, tensors
from ...constraints.ir.program import Node, Origin
from ...constraints.ir.system import Path, System
from ...constraints.terms.dims import Dim, Symbol, Term, coefficients, lone_atom, symbols
from ..facade import Report
from ..report.codes import ON, SUSPICIONS, Code
from ..report.findings import main_path, make
from ..report.report import Finding
from ..targets.target_error import TargetError

ALL: Final = "all"


@dataclass(frozen=True, slots=True)
class ReportPath:
    """A report, and the path of the program whose shapes it shows."""

    report: Report
    path: Path

    def operands(self, node: Node) -> list[tuple[int, Tensor]]:
        """The tensors that a call takes, with their ids."""
        found = dict.fromkeys(r.id for r in node.refs)
        values = self.path.values
        return [(id, value) for id in found if isinstance(value := values[id], Tensor)]

    def maker(self, id: int) -> str:
        """The operator of the call that gave a value."""
        return next((node.op for node in self.path.program.nodes if id in node.results), "")

    @property
    def batch(self) -> str:
        """The symbol of the batch, as far as its name and place tell: the first size of the first tensor."""
        for given in self.path.program.inputs:
            if isinstance(given.type, Tensor) and given.type.shape and not given.parameter:
                name = _name(given.type.shape[0])
                return name if name.lower() in _BATCHES else ""
        return ""


_BATCHES: Final = frozenset({"b", "batch", "batch_size", "bs", "bsz", "n", "batches", "samples"})

Suspected: TypeAlias = Iterator[tuple[str, Node | Origin]]
"""Messages, each with the call or the line that it is about."""


def wanted(names: Collection[str]) -> frozenset[Code]:
    """The suspicions that are on: the usual ones, and those named, or all. Raises TargetError for others."""
    codes = {code.value: code for code in SUSPICIONS}
    for name in names:
        if name != ALL and name not in codes:
            known = f"there are {', '.join(codes)}, and {ALL}"
            raise TargetError(f"{name!r} is not a known suspicion", known)
    return frozenset(SUSPICIONS if ALL in names else {*ON, *(codes[name] for name in names)})


def suspected(report: Report, system: System, names: Collection[str] = ()) -> Report:
    """The report with what looks as if it was not meant."""
    path = main_path(system)
    if path is None:
        return report
    subject, on = ReportPath(report, path), wanted(names)
    asked = ((code, suspicion) for code, suspicion in TABLE.items() if code in on)
    found = [_finding(code, *one) for code, suspicion in asked for one in suspicion(subject)]
    return replace(report, findings=(*report.findings, *dict.fromkeys(found)))


def _finding(code: Code, message: str, at: Node | Origin) -> Finding:
    if isinstance(at, Origin):
        return make(code, message, at)
    return replace(make(code, message, at.origin), op=at.op)


def _name(dim: Dim) -> str:
    atom = lone_atom(dim)
    return atom.name if isinstance(atom, Symbol) else ""


# ---- broadcasting


_ARITHMETIC: Final = frozenset({"add", "sub", "mul", "div", "rsub", "true_divide"})
_MEANT: Final = frozenset({"unsqueeze", "getitem", "view", "reshape", "expand", "outer"})
"""Code that makes a column by these operators means it to broadcast."""


def row_column(subject: ReportPath) -> Suspected:
    """[n, 1] with [n] gives [n, n]"""
    for node in subject.path.program.nodes:
        if node.op.rstrip("_") not in _ARITHMETIC:
            continue
        operands = subject.operands(node)
        for id, column in operands:
            for _, row in operands if column.rank == 2 else ():
                outer = row.rank == 1 and column.shape == (row.shape[0], 1)
                floats = all("float" in (t.dtype or "") for t in (row, column))
                if outer and floats and isinstance(row.shape[0], Term) and subject.maker(id) not in _MEANT:
                    n = row.shape[0]
                    message = f"a column {column} and a row {row} broadcast to [{n}, {n}]"
                    yield message, node


_LOSSES: Final = frozenset({"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss"})


def loss_broadcast(subject: ReportPath) -> Suspected:
    """[b, 1] and [b]: the loss compares each element of one with each element of the other."""
    nodes = subject.path.program.nodes
    for before, node in pairwise(nodes):
        if node.op not in _LOSSES or before.op != "broadcast_tensors" or before.origin != node.origin:
            continue
        shapes = [value for _, value in subject.operands(before)]
        if len({value.shape for value in shapes}) > 1:
            message = f"{node.op} broadcasts {' and '.join(map(str, shapes))}"
            yield message, node


# ---- symbols


def swapped_sizes(subject: ReportPath) -> Suspected:
    """Yields findings for two sizes of one input that have different names, although only equal ones are
    accepted.
    """
    report = subject.report
    for given in subject.path.program.inputs:
        if given.parameter or not isinstance(given.type, Tensor):
            continue
        shape = given.type.shape
        names = [name for dim in shape if type(dim) is Term and (name := _name(dim)) in report.dims]
        for place, name in enumerate(names):
            equals = report.dims[name].equals
            other = _name(equals) if equals is not None else ""
            if other in names[:place]:
                message = f"{given.name} is declared with {other} and {name}, which must be equal"
                yield message, _imposing(report, name)


def fixed_symbol(subject: ReportPath) -> Suspected:
    """A symbol that has one value left, of those that were declared."""
    report = subject.report
    for name, fact in report.dims.items():
        if fact.divisor == 0 and fact.exact and _declared_wider(report, name, fact.remainder):
            message = f"{name} is declared as a symbol, but runs only as {fact.remainder}"
            yield message, _imposing(report, name)


def _declared_wider(report: Report, name: str, value: int) -> bool:
    """Returns whether the assumptions allow the symbol another value, with everything else as in the example.
    """
    example = dict(report.runs_at or {})
    others = (value - 1, value + 1, 2 * value)
    return any(report.accepts.declared(**example | {name: other}) for other in others) if example else False


def _imposing(report: Report, name: str) -> Origin:
    """Returns the line that imposes the fact about the symbol."""
    for part in report.parts:
        if name in part.condition.replace("(", " ").replace(")", " ").split() and part.imposed:
            return part.imposed[0].origin
    return Origin()


# ---- the batch


def batch_softmax(subject: ReportPath) -> Suspected:
    """softmax over dim 0 of [b, …]: the samples compete."""
    batch = subject.batch
    for node in subject.path.program.nodes:
        if node.op not in ("softmax", "log_softmax", "softmin") or not batch:
            continue
        if isinstance(dim := node.get("dim"), int):
            for _, value in subject.operands(node):
                if value.rank > 1 and dim in (0, -value.rank) and _name(value.shape[0]) == batch:
                    message = f"{node.op} over dimension 0 of {value}, which is the batch"
                    yield message, node


def mixed_batch(subject: ReportPath) -> Suspected:
    """[b, …] viewed so that samples share a row: the first size is no multiple of b any more."""
    batch = subject.batch
    for node in subject.path.program.nodes:
        if node.op not in ("view", "reshape", "flatten") or not batch:
            continue
        if not (operands := subject.operands(node)):
            continue
        (_, before), *_ = operands
        for result in (t for r in node.results for t in tensors(subject.path.values[r])):
            there = any(batch in symbols(dim) for dim in result.shape)
            first = before.rank > 0 and _name(before.shape[0]) == batch
            if first and there and not _is_multiple(result.shape[0], batch):
                message = f"{before} becomes {result}: samples of the batch share a row"
                yield message, node


def _is_multiple(dim: Dim, name: str) -> bool:
    """Returns whether every term of the dim has the symbol as a factor."""
    parts = coefficients(dim)
    return all(any(isinstance(a, Symbol) and a.name == name for a in mono) for mono, _ in parts)


# ---- branches, precision


def idle_branch(subject: ReportPath) -> Suspected:
    """A branch on sizes that goes one way for all that is declared."""
    for branch in subject.report.branches:
        if branch.outcome == "eliminated" and branch.condition not in ("True", "False", ""):
            way = "always" if branch.taken else "never"
            yield f"{branch.condition} is {way} true", branch.origin


def lost_precision(subject: ReportPath) -> Suspected:
    """An operator after which shapes are not known, or not exactly, and how many calls that concerns."""
    nodes = subject.path.program.nodes
    for note in subject.path.notes:
        if not 0 <= note.node < len(nodes):
            continue
        reached = {*nodes[note.node].results}
        concerned = unknown = 0
        for node in nodes[note.node + 1 :]:
            if any(r.id in reached for r in node.refs):
                reached.update(node.results)
                concerned += 1
                unknown += any(isinstance(subject.path.values[r], Dynamic) for r in node.results)
        what = f"{unknown} of them of unknown shape" if unknown else "with shapes that may not be exact"
        calls = "1 call depends" if concerned == 1 else f"{concerned} calls depend"
        message = f"{calls} on the result of {nodes[note.node].op}, {what}"
        yield message, nodes[note.node]


TABLE: Final[Mapping[Code, Callable[[ReportPath], Suspected]]] = {
    Code.ROW_COLUMN: row_column,
    Code.LOSS_BROADCAST: loss_broadcast,
    Code.SWAPPED_SIZES: swapped_sizes,
    Code.FIXED_SYMBOL: fixed_symbol,
    Code.BATCH_SOFTMAX: batch_softmax,
    Code.MIXED_BATCH: mixed_batch,
    Code.IDLE_BRANCH: idle_branch,
    Code.LOST_PRECISION: lost_precision,
}
