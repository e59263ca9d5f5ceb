"""From a decision to findings: what the solver knows, in the words and at the lines of the user's program."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from operator import itemgetter
from typing import Final, TypeAlias

from ...constraints.contents.requirements.indices import SAME_DATA
from ...constraints.engine.generate import resolved
from ...constraints.engine.ruleset import RULE_DEFECT, Rules
from ...constraints.ir.language import Dyn, Note, Number, Slice, Tensor, Value
from ...constraints.ir.opnames import is_in_place, shown_name
from ...constraints.ir.program import Argument, Node, Origin, Program, Ref, parts_of, refs
from ...constraints.ir.system import Path, System
from ...constraints.terms.formula import Formula, all_of, any_of, conjuncts, free_symbols, holds
from ...constraints.terms.formula_text import stated
from ...solver.decide import Core, Decision, OpenSizes, Requirement
from ...solver.explain import Flow, Imposed, shape_of
from .codes import Code, Severity
from .per_rank import merged
from .report import Branch, ConditionPart, Finding, Link, Operand, Output, Shape
from .values import SymbolicValue, readable, symbolic

MAX_WAYS = 32
DEFECT = "the recorder failed"
"""The beginning of the reason where a path ended by a defect of the recorder or of a rule."""


@dataclass(frozen=True, slots=True)
class Group:
    """Requirements of one line of the program, and what they say together."""

    requirements: tuple[Requirement, ...]
    condition: Formula


Witness: TypeAlias = "tuple[Mapping[str, int] | None, str]"
"""Sizes that show a finding, and what the program raised there."""


def findings(
    system: System, decision: Decision, rules: Rules, changed: Sequence[str],
    summary: Callable[[Sequence[Formula]], Formula], witness: Callable[[Group], Witness],
) -> tuple[Finding, ...]:
    """Everything worth telling, each once: what the verdict rests on first, then what is not exact.

    `summary` says the conjunction of formulas shorter; `witness` shows a group of requirements broken.
    """
    others = (
        *(_open(system, reason) for reason in decision.reasons),
        *_declared_limits(system, decision),
        *_of_notes(system, decision.exact),
        *_revealed(system),
        *_of_data(decision),
        *_of_changes(changed),
    )
    explained = _Explained(system, rules)
    if decision.verdict == "refuted":
        cores = dict.fromkeys(core for core in decision.cores if core.requirements)
        shown = [_conflict(explained, core, witness) for core in cores]
    else:
        shown = [_condition(explained, group, witness) for group in _by_line(decision.residual, summary)]
    return (*shown, *dict.fromkeys(others))


def make(code: Code, message: str, origin: Origin | None = None) -> Finding:
    """Returns a finding with the severity of its code."""
    return Finding(code, message, code.severity, origin or Origin())


def _of_data(decision: Decision) -> Iterator[Finding]:
    """Yields the finding that a line raises for some data, once for each such line."""
    for line in {(one.origin.file, one.origin.line): one for one in reversed(decision.on_data)}.values():
        yield make(Code.DATA, f"for some data it raises {line.reason}", line.origin)


def _of_changes(changed: Sequence[str]) -> Iterator[Finding]:
    if changed:
        more = f" and {len(changed) - 8} more" if len(changed) > 8 else ""
        yield make(
            Code.CHANGED_STATE, f"a run assigns {', '.join(changed[:8])}{more}; restored after the check"
        )


def _by_line(
    requirements: Sequence[Requirement], summary: Callable[[Sequence[Formula]], Formula]
) -> list[Group]:
    """Returns the requirements grouped by line. Those of one line, repeated in each iteration of a loop, are
    one matter to the user.
    """
    lines: dict[tuple[object, ...], list[Requirement]] = {}
    for r in requirements:
        limit = r.formula if r.of_trace else None
        lines.setdefault((r.origin.file, r.origin.line, r.constraint is None, limit), []).append(r)
    return [Group(tuple(group), summary([r.needs for r in group])) for group in lines.values()]


def _condition(explained: _Explained, group: Group, witness: Callable[[Group], Witness]) -> Finding:
    """Returns the finding for a line's requirements of the inputs, where inputs can meet them."""
    system = explained.system
    # The message is that of a requirement which the condition states as it is, not of one that others imply.
    stated = conjuncts(group.condition)
    first = next((r for r in group.requirements if r.needs in stated), group.requirements[0])
    code = _code(system, first, Code.CONDITION)
    values, evidence = witness(Group((first,), first.needs))
    return Finding(
        code,
        first.reason,
        code.severity,
        first.origin,
        _op(system, first),
        str(group.condition),
        len(group.requirements),
        explained.chain([r for r in group.requirements if r.node == first.node and r.path == first.path]),
        (),
        values,
        evidence,
        _shown(system, first),
    )


def _conflict(explained: _Explained, core: Core, witness: Callable[[Group], Witness]) -> Finding:
    """Returns the finding for a minimal set of requirements that no input meets together.

    It is reported at the line of the last of them.
    """
    system = explained.system
    *before, last = core.requirements
    # What this line asks on one way through the program and on another is one matter.
    others = [r for r in before if r.origin != last.origin]
    alone = last.needs is False or (before and not others)
    message = last.reason
    if others:
        message += "; no input meets this and what other lines require"
    if core.assumptions:
        message += f" (given {all_of(core.assumptions)})"
    values, evidence = witness(Group((last,), last.needs))
    return Finding(
        _code(system, last, Code.SHAPE_MISMATCH),
        message,
        Severity.ERROR,
        last.origin,
        _op(system, last),
        "" if alone else str(last.needs),
        1,
        explained.chain(core.requirements),
        tuple(Link(_op(system, r), f"{r.needs}: {r.reason}", r.origin, _shown(system, r)) for r in others),
        values,
        evidence,
        _shown(system, last),
    )


def _code(system: System, requirement: Requirement, of_calls: Code) -> Code:
    """Returns the code of a finding about a requirement, where that of a call is `of_calls`."""
    if requirement.constraint is None:
        return Code.RAISES
    if requirement.of_trace:
        return Code.TRACE_LIMIT
    return Code.ANNOTATION if _op(system, requirement) == "annotation" else of_calls


def parts(system: System, found: Iterable[Imposed]) -> tuple[ConditionPart, ...]:
    """Returns the parts of the condition with the lines that impose them."""
    return tuple(
        ConditionPart(
            str(part.condition),
            tuple(Link(_op(system, r), str(r.needs), r.origin, _shown(system, r)) for r in part.requirements),
            part.refused,
        )
        for part in found
    )


def _open(system: System, reason: OpenSizes) -> Finding:
    """Returns the finding that says why the verdict is unknown."""
    if reason.reason.startswith(DEFECT):
        return make(Code.INTERNAL_ERROR, f"{reason.reason}; please report it", reason.origin)
    if reason.reason.startswith(RULE_DEFECT):
        return make(Code.INTERNAL_ERROR, f"{reason.reason}; report it to its authors", reason.origin)
    notes = system.paths[reason.path].notes if system.paths else ()
    note = next((note for note in notes if note.inexact and note.reason == reason.reason), None)
    if note is None:
        return make(Code.INCOMPLETE, reason.reason, reason.origin)
    return make(Code(note.code), _told(note, system), reason.origin)


def _declared_limits(system: System, decision: Decision) -> Iterator[Finding]:
    """Yields a finding for each limit of the trace that the declared inputs keep to, as those do that a file
    declares itself.
    """
    left = {requirement.formula for requirement in decision.residual}
    needed = {
        formula: path.program.nodes[constraint.node].origin
        for path in system.paths
        for constraint in path.constraints
        if constraint.kind == "model"
        for formula in conjuncts(constraint.formula)
    }
    for limit in decision.trace:
        if limit.formula in left:
            continue
        told, origin = limit.reason, needed.get(limit.formula)
        finding = make(Code.TRACE_LIMIT, told if origin is None else f"{told}, which is needed here", origin)
        yield replace(finding, condition=str(limit.formula))


def _of_notes(system: System, exact: bool) -> Iterator[Finding]:
    """Yields a finding for each note, but where it makes no difference if data get to some place."""
    for path in system.paths:
        for note in path.notes:
            if exact and note.reason == SAME_DATA:
                continue
            origin = path.program.nodes[note.node].origin if note.node >= 0 else Origin()
            yield make(Code(note.code), _told(note, system), origin)


_ERRS: Final[Mapping[str, str]] = {
    "accept": "accepted that torch refuses",
    "refuse": "refused that torch accepts",
    "both": "accepted that torch refuses, or refused that torch accepts",
}


def _told(note: Note, system: System) -> str:
    """Returns the reason of a note; for an approximation also the possible errors, and the sizes concerned.
    """
    if note.code != "approximate":
        return note.reason
    anywhere = note.where is True or not free_symbols(note.where) <= {*system.domain.symbols}
    sizes = "sizes" if anywhere else stated(note.where, "where {}, sizes", "some sizes")
    return f"{note.reason}: {sizes} may be {_ERRS[note.may]}"


def _revealed(system: System) -> Iterator[Finding]:
    """Yields the shapes that the program asks to have reported, on every path that reaches the request."""
    for path in system.paths:
        for node in path.program.nodes:
            if node.op == "reveal_shape":
                (_, argument), = node.args
                value = readable(resolved(argument, path.values))
                yield make(Code.REVEALED, f"the value is {value}", node.origin)
            elif node.op == "unread_annotation":
                reason = dict(node.args)["reason"]
                yield make(Code.UNREAD_ANNOTATION, f"the annotation is not compared: {reason}", node.origin)


def _op(system: System, requirement: Requirement) -> str:
    if requirement.constraint is None:
        return "raise"
    return shown_name(system.paths[requirement.path].program.nodes[requirement.node].op)


def _shown(system: System, requirement: Requirement) -> int | None:
    """The call in the list of shapes, which follows the main path."""
    on_main_path = system.paths[requirement.path] is main_path(system)
    return requirement.node if on_main_path and requirement.constraint is not None else None


# ---- where sizes come from


class _Explained:
    """The chains of calls that lead to findings."""

    def __init__(self, system: System, rules: Rules) -> None:
        self.system, self.rules = system, rules
        self._flows: dict[int, Flow] = {}

    def chain(self, requirements: Sequence[Requirement]) -> tuple[Link, ...]:
        """The calls that gave the sizes in a conflict, those that hand them on among them, nearest last."""
        index = requirements[-1].path
        path = self.system.paths[index]
        if index not in self._flows:
            self._flows[index] = Flow(path, self.rules, self.system.domain)
        shown = path is main_path(self.system)
        names = {given.id: given for given in path.program.inputs}
        links = []
        for step in self._flows[index].chain([r for r in requirements if r.path == index]):
            result = shape_of(path, step)
            if step.node is None:
                given = names[step.value]
                op = f"{'parameter' if given.parameter else 'input'} {given.name}"
                links.append(Link(op, result, Origin(), None, step.passed, step.axes))
            else:
                node = path.program.nodes[step.node]
                place = step.node if shown else None
                links.append(Link(shown_name(node.op), result, node.origin, place, step.passed, step.axes))
        return tuple(links)


# ---- shapes and branches


def ways(system: System, usual: Mapping[str, int] | None = None) -> tuple[Formula, ...]:
    """Returns, for each path that returns, the sizes that take it, where there are several paths.

    If there are very many, only some are returned: the path of the usual sizes is first, then those with the
    fewest calls. Paths that make the same calls count as one. Where data decide as well, the same sizes may
    take several paths.
    """
    names = {*system.domain.symbols}

    def unusual(path: Path) -> tuple[bool, int]:
        sizes = usual or {}
        takes = free_symbols(path.premise) <= sizes.keys() and holds(path.premise, sizes)
        return not takes, len(path.program.nodes)

    found: dict[object, list[Formula]] = {}
    returned = [path for path in system.paths if path.end.how == "returned"]
    if len(returned) < 2:
        return ()
    for path in sorted(returned, key=unusual):
        of_sizes = (part for part in conjuncts(path.premise) if free_symbols(part) <= names)
        found.setdefault(_calls(path), []).append(all_of(of_sizes))
    told = tuple(dict.fromkeys(any_of(premises) for premises in found.values()))[:MAX_WAYS]
    return told if len(told) > 1 else ()


def _calls(path: Path) -> object:
    """Returns the calls of a path with their arguments, for comparing paths. A path that holds a number about
    which nothing is known equals no other path.

    The copy that `contiguous` makes equals its source, so it does not count as a call where the program
    writes into nothing.
    """
    nodes = path.program.nodes
    copies = () if any(map(_writes, nodes)) else ("contiguous",)
    fresh, names = count(), dict[int, int]()

    def numbered(id: int) -> int:
        if id not in names:
            names[id] = next(fresh)  # not how many names there are: a copy has that of what it is made of
        return names[id]

    def named(argument: Argument) -> object:
        kind = type(argument)
        if kind is Ref:
            return Ref, numbered(argument.id)  # type: ignore[union-attr]
        if kind is tuple or kind is Slice:
            return kind, *[named(part) for part in parts_of(argument)]
        return object() if kind is Number or argument is Dyn else argument

    calls = []
    for node in nodes:
        if node.op in copies and isinstance(given := node.args[0][1], Ref):
            names[node.results[0]] = numbered(given.id)
            continue
        arguments = [one if type(one[1]) in _ITSELF else (one[0], named(one[1])) for one in node.args]
        calls.append((node.op, *arguments, *map(numbered, node.results), node.given))
    return tuple(calls), tuple((name, named(output)) for name, output in path.program.outputs)


_ITSELF: Final = frozenset({int, float, bool, str, type(None)})
"""Types of arguments that are no values of the program, and contain none."""


def _writes(node: Node) -> bool:
    return is_in_place(node.op) or node.op == "setitem" or "out" in map(_NAME, node.args)


_NAME: Final = itemgetter(0)


def main_path(system: System) -> Path | None:
    """The first path that returned, else the first."""
    return next((p for p in system.paths if p.end.how == "returned"), next(iter(system.paths), None))


def shapes(system: System) -> tuple[Shape, ...]:
    """The results of every call along the main path."""
    path = main_path(system)
    if path is None:
        return ()
    flow = _ValueOrigins(path)
    return tuple(
        Shape(
            index,
            shown_name(node.op),
            tuple([flow.text(r) for r in node.results]),
            node.origin,
            flow.operands(node.refs),
        )
        for index, node in enumerate(path.program.nodes)
        if node.results
    )


class _ValueOrigins:
    """The texts of the values of a path, and which call or input made each."""

    def __init__(self, path: Path) -> None:
        self.values = path.values
        self._made: dict[int, tuple[int | None, str]] = {
            r: (index, "") for index, node in enumerate(path.program.nodes) for r in node.results
        }
        """By value, the call that made it, or the name of the input that it is."""
        for given in path.program.inputs:
            if not given.parameter:
                self._made.setdefault(given.id, (None, given.name))
        self._of_value: dict[int, str] = {}
        self._texts: dict[tuple[int, str | None], str] = {}
        self._operands: dict[int, Operand] = {}

    def text(self, ref: int) -> str:
        """Returns the text of a value; repeated calls of a program give results that share their shape."""
        text = self._of_value.get(ref)
        if text is not None:
            return text
        value = self.values[ref]
        if type(value) is not Tensor:
            return readable(value)
        key = id(value.shape), value.dtype
        text = self._texts.get(key)
        if text is None:
            text = self._texts[key] = readable(value)
        self._of_value[ref] = text
        return text

    def operands(self, given: Iterable[Ref]) -> tuple[Operand, ...]:
        """Returns the operands among these references, each value once and without parameters."""
        made, known = self._made, self._operands
        found: dict[int, Operand] = {}
        for ref in given:
            id = ref.id
            if id in known:
                found[id] = known[id]
            elif id in made:
                found[id] = known[id] = Operand(self.text(id), *made[id])
        return tuple(found.values())


def outputs(system: System) -> tuple[Output, ...]:
    """Returns the program's outputs on every path that returns; a single list where all paths agree.

    A path that is refused at all of its sizes is reported only where every path is.
    """
    ended = [p for p in system.paths if p.end.how == "returned"]
    returned = [p for p in ended if all(c.formula is not False for c in p.constraints)] or ended
    main = main_path(system)
    operands = dict(_operands(main))
    if len({tuple(_outputs(p.program, p)) for p in returned}) <= 1:
        first = _outputs(returned[0].program, returned[0]) if returned else ()
        return tuple(Output(name, value, "", operands.get(name, ())) for name, value in first)
    if not system.domain.rows:
        return tuple(
            Output(name, value, _when(p), operands.get(name, ()) if p is main else ())
            for p in returned
            for name, value in _outputs(p.program, p)
        )
    ways = merged([(p.premise, _results(p)) for p in returned], system.domain)
    on_data = "some data" if any(p.on_data for p in returned) else ""
    return tuple(
        Output(name, symbolic(value), when, () if at else operands.get(name, ()))
        for at, way in enumerate(ways)
        for when in (way.when(system.domain) or on_data,)
        for name, value in way.results
    )


def _results(path: Path) -> tuple[tuple[str, Value], ...]:
    return tuple((name, resolved(argument, path.values)) for name, argument in path.program.outputs)


def _operands(path: Path | None) -> Iterator[tuple[str, tuple[Operand, ...]]]:
    if path is not None:
        flow = _ValueOrigins(path)
        for name, argument in path.program.outputs:
            yield name, flow.operands(refs(argument))


def _when(path: Path) -> str:
    if path.premise is True:
        return "some data" if path.on_data else ""
    return str(_without_implied(path.premise))


def _without_implied(premise: Formula) -> Formula:
    """Returns a premise that some sizes satisfy, without `n != 1` where it has `n == 2`."""
    parts = conjuncts(premise)
    fixing = {part: m[1] for part in parts if (m := re.fullmatch(r"(\w+) == \d+", str(part)))}
    fixed = {*fixing.values()}
    return all_of(part for part in parts if part in fixing or not free_symbols(part) <= fixed)


def _outputs(program: Program, path: Path) -> Iterator[tuple[str, SymbolicValue]]:
    for name, argument in program.outputs:
        yield name, symbolic(resolved(argument, path.values))


def branches(system: System) -> tuple[Branch, ...]:
    """Each branch once, in the order in which the paths met them."""
    found: dict[Branch, None] = {}
    for path in system.paths:
        for c in (*path.conditions, *path.turns):
            condition = "" if c.formula is None else str(c.formula)
            if c.forced:
                found[Branch(c.origin, condition, "eliminated", c.taken)] = None
            else:
                found[Branch(c.origin, condition, "explored")] = None
    return tuple(found)
