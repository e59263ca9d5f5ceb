"""`migrate`: finds the types that fit a program whose annotations are partial or missing.

A *migration* gives every node a type at least as precise as its annotation, such that the program runs. It is
*static* where it contains no Dyn; since types are shapes of inputs, the static migrations are the inputs that
run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import heappop, heappush
from itertools import product
from math import inf
from typing import TYPE_CHECKING, Any

from ...constraints.engine.ranked import of_ranks
from ...constraints.engine.ruleset import Rules
from ...constraints.ir.lattice import Type, least_upper
from ...constraints.ir.spec import Spec
from ...constraints.ir.spec_text import Inputs, parse_spec, write_spec
from ...constraints.ir.system import Domain, Path, System
from ...constraints.ir.typed import at, rewritten
from ...constraints.terms.formula import Formula, conjuncts, eq, holds
from ...constraints.terms.parts import rank
from ...solver.migrate import MANY, SolutionCount, Solutions, count, most_ranks, replacements, shared, spelt
from ...solver.tactics.judge import Budget, Judge
from ..checking.api import examine
from ..checking.clock import Progress
from ..facade import Report
from ..report.report import Verdict
from ..targets.annotations import spec_of
from ..targets.target import is_graph_module, resolve
from ..targets.target_error import TargetError
from .nodes import values_of

if TYPE_CHECKING:
    from ...tracer.readers.annotated import GraphModule


@dataclass(frozen=True, slots=True)
class Migration:
    """One static migration."""

    sizes: Mapping[str, int]
    """The sizes of the inputs, by the symbols of the spec."""
    types: Mapping[str, Type]
    """The type of every node that is reached. A size that the data decides stays Dyn."""

    def __str__(self) -> str:
        return ", ".join(f"{name}={size}" for name, size in self.sizes.items()) or "the declared types"


@dataclass(frozen=True, slots=True)
class _MigrationQuestion:
    """The arguments and the system of a migration, kept for further questions."""

    target: Any
    spec: Spec
    declared: Domain
    """The domain as the spec has it, before the program has asked for more of its rows."""
    system: System
    budget_s: float
    rules: Rules | None

    @property
    def cut(self) -> tuple[str, ...]:
        """Returns the rows whose ranks above some rank are not examined, though they are declared."""
        domain, declared = self.system.domain, self.declared
        ranks = {row: str(rank(row)) for row in domain.rows}
        return tuple(r for r, n in ranks.items() if domain.ranges[n][1] < declared.ranges.get(n, (0, inf))[1])

    def judge(self) -> Judge:
        return Judge(Budget(self.budget_s))


@dataclass(frozen=True)
class Migrations:
    """The migrations of a program under the assumptions."""

    report: Report
    """The check that the answers come from: what stands in the way has its lines there."""
    static: Migration | None
    """A static migration, which was replayed on the program; None if none is known to exist."""
    principal: Mapping[str, Type]
    """The most precise gradual type of each node that all static migrations share."""
    types: Mapping[str, Type]
    """The type of each node with its sizes as terms over the symbols of the inputs."""
    _asked: _MigrationQuestion = field(repr=False)

    @property
    def is_decided(self) -> bool:
        """Returns whether it is certain that a static migration exists, or certain that it does not.

        If only ranks up to a limit were examined, the absence of one is not certain.
        """
        return self.static is not None or (self.report.verdict is Verdict.REFUTED and not self._asked.cut)

    def maximal(self) -> Iterator[Migration]:
        """The maximal migrations, each when it is asked for: by the sum of their sizes, then by the sizes.

        Those of a program with inputs of any rank come by the sum of ranks and sizes; the sizes have names of
        their own there, `x_0`, `x_1`.
        """
        system = self._asked.system
        if self.static is not None and system.domain.rows:
            yield from _by_rank(self)
        elif self.static is not None:
            for sizes in Solutions(self._asked.judge(), system.domain.symbols, self._formulas):
                yield migration(system, sizes)

    def count(self, limit: int = MANY) -> SolutionCount:
        """Returns the number of maximal migrations; those that have to be counted one by one, up to a limit.
        """
        domain = self._asked.system.domain
        if self.static is None:
            return SolutionCount(0, self.is_decided)
        if not domain.rows:
            return count(self._asked.judge(), domain.symbols, self._formulas, limit)
        most = most_ranks(self._asked.judge(), domain, self._formulas)
        if None in most:
            return SolutionCount(inf)
        counts = [self.of_rank(*ranks) for ranks in product(*(range((n or 0) + 1) for n in most))]
        found = [one.count(limit) for one in counts if one is not None]
        return SolutionCount(
            sum(c.number for c in found), all(c.exact for c in found) and not self._asked.cut
        )

    def of_rank(self, *ranks: int) -> Migrations | None:
        """The same question for inputs of these ranks, one for each row of the spec (`...`, `*r`) in order.

        None where the assumptions exclude them.
        """
        asked, domain = self._asked, self._asked.system.domain
        spec = of_ranks(replace(asked.spec, domain=domain), dict(zip(domain.rows, ranks, strict=True)))
        if spec is None:
            return None
        assume = [str(formula) for formula in spec.domain.assumptions]
        return migrate(asked.target, write_spec(spec), assume, budget_s=asked.budget_s, rules=asked.rules)

    @property
    def _formulas(self) -> tuple[Formula, ...]:
        return (*self._asked.system.domain.assumptions, *conjuncts(self.report.supposed))

    @property
    def graph_module(self) -> GraphModule:
        """Returns the program as a torch.fx graph with the type of every node in `node.type`; sizes are
        terms.

        Raises TargetError where the target is not a graph and torch.fx does not trace it.
        """
        from ...tracer.readers.annotated import with_types

        return with_types(*self._graph)

    @property
    def source(self) -> str:
        """The same as Python source, in which every value has an annotation. Raises what `graph_module` does.
        """
        from ...tracer.readers.annotated import source

        return source(*self._graph)

    @cached_property
    def _graph(self) -> tuple[GraphModule, Mapping[str, Type]]:
        asked = self._asked
        if is_graph_module(asked.target):
            return asked.target, self.types
        from ...tracer.readers.annotated import traced
        from ...tracer.recording.binding import NotCallable as NotTraced

        try:
            graph_module = traced(asked.target)
        except NotTraced as error:
            raise TargetError(str(error), "types are written into a torch.fx graph") from None
        assume = [str(formula) for formula in asked.system.domain.declared]
        return graph_module, migrate(graph_module, self.report.inputs, assume, budget_s=asked.budget_s).types

    def to_text(self) -> str:
        """The answers for people."""
        return "\n".join(_lines(self)) + "\n"

    def to_json(self) -> dict[str, Any]:
        """The answers as plain data for `json.dump`."""
        static = self.static
        return {
            "target": self.report.target,
            "inputs": list(self.report.inputs),
            "verdict": self.report.verdict.value,
            "accepts": str(self.report.accepts),
            "static": static and {"sizes": dict(static.sizes), "types": _texts(static.types)},
            "principal": _texts(self.principal),
            "types": _texts(self.types),
        }


def _texts(types: Mapping[str, Type]) -> dict[str, str]:
    return {name: str(type) for name, type in types.items()}


def migrate(
    target: Any, inputs: Inputs | None = None, assume: str | Iterable[str] = (), *, budget_s: float = 30.0,
    rules: Rules | None = None, progress: Progress | None = None,
) -> Migrations:
    """Returns the types that fit a program.

    The arguments are those of `check`. For a `torch.fx.GraphModule` the annotations of its nodes count, inner
    ones as well as those of the inputs. Raises what `check` raises.
    """
    names = [str(d.path[0]) for d in parse_spec(inputs).inputs] if inputs is not None else ()
    found = resolve(target, names)
    value = found.value
    asked: Any = found
    if inputs is None and found.kind == "python":
        inputs = spec_of(value)
    if is_graph_module(value):
        from ...tracer.readers.fx import reporting

        asked = reporting(value)
    examined = examine(asked, inputs, assume, budget_s=budget_s, rules=rules, progress=progress)
    declared = examined.spec.domain if inputs is None else parse_spec(inputs, assume).domain
    report, system = examined.report, examined.system
    static = None if report.runs_at is None else migration(system, report.runs_at)
    principal, types = _all_types(report, system, budget_s) if static is not None else ({}, {})
    answers = _MigrationQuestion(value, examined.spec, declared, system, budget_s, rules)
    return Migrations(report, static, principal, types, answers)


def migration(system: System, sizes: Mapping[str, int]) -> Migration:
    """The static migration with these sizes."""
    taken = next((p for p in system.paths if p.end.how == "returned" and _takes(p, sizes)), None)
    values = {} if taken is None else values_of(taken)
    return Migration(dict(sizes), {name: at(value, sizes) for name, value in values.items()})


def _by_rank(found: Migrations) -> Iterator[Migration]:
    """Yields the migrations of a program with inputs of any rank, ordered by the sum of their ranks and
    sizes.

    Sizes are at least 1, so migrations of ranks with the sum r have a sum of at least 2r: those of greater
    ranks are not searched earlier than that.
    """
    asked = found._asked
    judge, rows = asked.judge(), asked.system.domain.rows
    most = most_ranks(judge, asked.system.domain, found._formulas)
    last = None if None in most else sum(n or 0 for n in most)
    waiting: list[tuple[int, tuple[int, ...], int, Migration, Iterator[Migration]]] = []
    level, turn = 0, 0
    while True:
        while (last is None or level <= last) and (not waiting or waiting[0][0] >= 2 * level):
            for ranks in product(range(level + 1), repeat=len(rows)):
                known = [eq(rank(row), n) for row, n in zip(rows, ranks, strict=True)]
                if sum(ranks) == level and judge.satisfiable((*found._formulas, *known)) != "unsat":
                    one = found.of_rank(*ranks)
                    turn += 1
                    _advance(waiting, ranks, turn, one.maximal() if one else iter(()))
            level += 1
        if not waiting:
            return
        _, ranks, order, migrated, others = heappop(waiting)
        known_ranks = {str(rank(row)): n for row, n in zip(rows, ranks, strict=True)}
        yield Migration({**known_ranks, **migrated.sizes}, migrated.types)
        _advance(waiting, ranks, order, others)


def _advance(waiting: list[Any], ranks: tuple[int, ...], order: int, others: Iterator[Migration]) -> None:
    following = next(others, None)
    if following is not None:
        heappush(waiting, (sum(ranks) + sum(following.sizes.values()), ranks, order, following, others))


def _takes(path: Path, sizes: Mapping[str, int]) -> bool:
    """Returns whether these sizes take the path, or may take it because data decide."""
    try:
        return holds(path.premise, sizes)
    except (KeyError, ZeroDivisionError):
        return True


def _all_types(report: Report, system: System, budget_s: float) -> tuple[dict[str, Type], dict[str, Type]]:
    """The principal type of each node, and that with terms, over all paths that some accepted input takes."""
    judge = Judge(Budget(budget_s))
    accepted = (*system.domain.assumptions, *conjuncts(report.supposed))
    simpler = replacements(report.dims)
    principal: dict[str, list[Type]] = {}
    terms: dict[str, list[Type]] = {}
    for path in system.paths:
        formulas = (*accepted, *conjuncts(path.premise))
        if path.end.how != "returned" or judge.satisfiable(formulas) == "unsat":
            continue
        known: dict[Any, Any] = {}
        for name, value in values_of(path).items():
            type = spelt(judge, formulas, system.domain, value)
            principal.setdefault(name, []).append(shared(judge, formulas, type, known))
            terms.setdefault(name, []).append(rewritten(type, simpler))
    return _joined(principal), _joined(terms)


def _joined(types: Mapping[str, list[Type]]) -> dict[str, Type]:
    return {name: least_upper(found) for name, found in types.items()}


def infer_symbolic(
    graph_module: GraphModule, inputs: Inputs | None = None, assume: str | Iterable[str] = (), *,
    budget_s: float = 30.0,
) -> Migrations:
    """Writes the type of every node of a graph to `node.type`; sizes that are not known are terms over
    symbols.

    Raises TargetError where there is no static migration, or none is known, and the exceptions of `check`.
    """
    from ...tracer.readers.annotated import write_types

    found = migrate(graph_module, inputs, assume, budget_s=budget_s)
    if found.static is None:
        first = next(iter(found.report.findings), None)
        why = f": {first.message}" if first else ""
        problem = f"{found.report.target} has no static migration{why}"
        raise TargetError(problem, origin=first.origin if first else None)
    write_types(graph_module, found.types)
    return found


def _lines(found: Migrations) -> Iterator[str]:
    report, static = found.report, found.static
    if static is None:
        known = "there is no static migration of" if found.is_decided else "no static migration was found of"
        yield f"{known} {report.target}"
        yield report.to_text().rstrip()
        return
    yield f"{report.target} has a static migration: {static}"
    where = "" if report.verdict is Verdict.PROVED else f" with {report.accepts}"
    yield f"others are all declared inputs{where}"
    yield ""
    rows = [("", "type", "shared by all", "this one")]
    for name, type in found.types.items():
        rows.append((name, str(type), str(found.principal[name]), str(static.types.get(name, ""))))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
