"""Finds the calls at which a finding may be repaired: the call that is refused, and those that led to it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from ...constraints.ir.program import Node, Origin
from ...constraints.ir.system import Path, System
from ...constraints.terms.formula import Compare, Formula, conjuncts, free_symbols, holds
from ..facade import Report
from ..report.report import Finding, Link
from . import expressions

MAX_PLACES: Final = 5


def places(finding: Finding, report: Report) -> list[Link]:
    """The call that is refused, then those that led there, the nearest first."""
    here = Link(finding.op, "", finding.origin)
    chain = [link for link in reversed(finding.chain) if link.origin.file]
    near = [link for link in chain if not link.passed] + [link for link in chain if link.passed]
    if finding.op == "raise":
        shapes = [s for s in report.shapes if s.origin.function == finding.origin.function]
        near += [Link(s.op, ", ".join(s.results), s.origin) for s in reversed(shapes)]
    near[:0] = _assigned(finding.origin)
    found: dict[Origin, Link] = {}
    for link in (here, *finding.conflict, *near):
        found.setdefault(link.origin, link)
    return [*found.values()][:MAX_PLACES]


def _assigned(origin: Origin) -> list[Link]:
    """The calls in the source that gave the operands of a call, and theirs: some are made before recording
    begins, or only hand a shape on.
    """
    text = expressions.read(origin.file) if origin.file else None
    call = expressions.at(text, origin) if text else None
    if text is None or call is None:
        return []
    found: dict[ast.Call, None] = {}
    todo: list[ast.expr] = [call]
    while todo and len(found) < MAX_PLACES:
        for made in expressions.made_by(text, todo.pop(0)):
            if made not in found:
                found[made] = None
                todo.append(made)
    return [
        Link(
            made.func.attr if isinstance(made.func, ast.Attribute) else "", "",
            text.origin(text.span(made), origin),
        )
        for made in found
    ]  # fmt: skip


def calls(system: System, finding: Finding) -> Iterator[tuple[Node, Path]]:
    """The calls of the finding's operator at its line, on every path of a program."""
    for path in system.paths:
        for node in path.program.nodes:
            if node.op == finding.op and line(node.origin) == line(finding.origin):
                yield node, path


def leaves_most(condition: str) -> bool:
    """Returns whether the condition consists of multiples, least sizes and unequal sizes alone."""
    asked = re.compile(r"\w+ % \d+ == \d+|\d+ <= \w+|\w+ != \d+")
    return all(asked.fullmatch(part) for part in condition.split(" and "))


def is_usual(formula: Formula) -> bool:
    """Returns whether a requirement consists of multiples, least sizes and unequal sizes alone, such as
    `5 <= h//2`.
    """
    return all(leaves_most(str(part)) or _is_least(part) for part in conjuncts(formula))


def _is_least(formula: Formula) -> bool:
    """Returns whether an inequality over one size holds of large ones."""
    names = free_symbols(formula)
    if not isinstance(formula, Compare) or formula.op != ">=" or len(names) != 1:
        return False
    return all(holds(formula, dict.fromkeys(names, size)) for size in (10**6, 10**6 + 1))


def call(origin: Origin) -> tuple[str, int, int, int]:
    """Returns the call at an origin, whatever module makes it."""
    return origin.file, origin.line, origin.start, origin.stop


def line(origin: Origin) -> tuple[str, int]:
    return origin.file, origin.line
