"""Changes of a program after which a finding is gone: tried on the program itself, proved, and replayed.

The line of the finding is looked at first, then the lines that led to it. There, a literal may be another
one: where it is a size, its place is left open, and the solver says which values are right
(`solver/repair.py`); where it is an axis or a stride, its neighbours are tried. Or an operand may be
transposed, or lack a dimension. Whatever is tried, the changed program is recorded anew, decided, and run at
examples before it is told.
"""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations, islice
from typing import TYPE_CHECKING, Any, Final

from ..constraints.dims import Dim, sym
from ..constraints.formula import all_of, ge, implies, negate
from ..constraints.generate import Rules
from ..constraints.language import Tensor, tensors
from ..constraints.program import Node, Origin, refs
from ..constraints.spec import Spec
from ..constraints.spec_text import write_spec
from ..constraints.system import Answer, Domain, Path, System
from ..solver.decide import Decision, Oracle, decide, requirements
from ..solver.judge import Budget, Judge
from ..solver.repair import fillings
from . import expressions
from .codes import Code
from .expressions import Literal, Text
from .findings import outputs
from .replay import Ran, Replayer, values_kept
from .report import Finding, Link, Repair, Report, Verdict

if TYPE_CHECKING:
    from ..tracer.edits import Edit, Open

SECONDS: Final = 6.0
"""For all findings of a program together,"""
SECONDS_EACH: Final = 3.0
"""for one of them,"""
SECONDS_NATURAL: Final = 1.0
"""for one that asks for multiples or least sizes alone, which is most often as it should be."""
MAX_REPAIRS: Final = 3
MAX_PLACES: Final = 5
MAX_PATHS: Final = 64
MAX_FILLINGS: Final = 2
ALTERNATIVES: Final = 1
"""How much less likely than the first a repair may be that is told beside it."""
REPAIRABLE: Final = frozenset({Code.SHAPE_MISMATCH, Code.CONDITION, Code.RAISES})


@dataclass(frozen=True, slots=True)
class Candidate:
    """A change that may be the repair, and how likely that is."""

    rank: int
    edit: Edit
    tell: Callable[[Edit], Repair]

    @property
    def place(self) -> object:
        """What is changed, whatever to: of one place the likeliest change is told."""
        edit: Any = self.edit
        names = ("module", "parameter", "attribute", "name", "axis", "file", "start", "stop")
        return tuple(getattr(edit, name, None) for name in names)


def repaired(report: Report, target: Any, spec: Spec, system: System, rules: Rules) -> Report:
    """The report with repairs at those of its findings that have one."""
    if not any(finding.code in REPAIRABLE for finding in report.findings):
        return report
    until = time.monotonic() + SECONDS
    search = _Search(report, target, spec, system, rules)
    told: list[Finding] = []
    for finding in report.findings:
        same = next((f for f in told if f.origin == finding.origin and f.code == finding.code), None)
        if same is not None:
            finding = replace(finding, repairs=same.repairs)
        elif finding.code in REPAIRABLE and time.monotonic() < until and search.possible:
            natural = bool(finding.condition) and _leaves_most(finding.condition)
            limit = min(until, time.monotonic() + (SECONDS_NATURAL if natural else SECONDS_EACH))
            finding = replace(finding, repairs=tuple(search.repairs(finding, limit)))
        told.append(finding)
    return replace(report, findings=tuple(told))


class _Search:
    """Tries changes on one program."""

    def __init__(self, report: Report, target: Any, spec: Spec, system: System, rules: Rules) -> None:
        self.report, self.target, self.spec, self.rules = report, target, spec, rules
        self.system, self.before = system, decide(system, Budget(SECONDS_EACH))
        self.replayer = Replayer(target, spec)

    @property
    def possible(self) -> bool:
        told = self.report.verdict in (Verdict.REFINED, Verdict.REFUTED)
        return told and self.before.verdict in ("refined", "refuted")

    def repairs(self, finding: Finding, until: float) -> Iterator[Repair]:
        """What makes the finding go away, the most likely change first."""
        found: dict[object, tuple[int, int, int, Repair]] = {}
        best = 99
        postponed: list[tuple[Candidate, Edit]] = []
        for candidate in sorted(self._candidates(finding), key=lambda c: c.rank):
            if len(found) >= MAX_REPAIRS or candidate.rank > best + ALTERNATIVES or time.monotonic() > until:
                break
            if candidate.place in found:
                continue
            for edit in self._concrete(candidate, finding, until):
                if _is_trivial(edit):
                    postponed.append((candidate, edit))
                elif (length := self._works(edit, finding, until)) is not None:
                    told = candidate.tell(edit)
                    found.setdefault(candidate.place, (candidate.rank, length, len(found), told))
                    best = min(best, candidate.rank)
                    break
        declared = self._declared(finding, bool(found))
        for candidate, edit in postponed if declared is None or not _leaves_most(finding.condition) else ():
            if not found and self._works(edit, finding, until) is not None:
                found[candidate.place] = candidate.rank, 0, 0, candidate.tell(edit)
        yield from (repair for _, _, _, repair in sorted(found.values(), key=lambda f: f[:3]))
        if declared is not None:
            yield declared
        if self.before.verdict == "refuted" and len(found) < MAX_REPAIRS:
            yield from self._redeclared(finding, until)

    def _declared(self, finding: Finding, repaired: bool) -> Repair | None:
        """To declare that such inputs never come: the domain may change, too. Beside another repair that is
        told where it leaves most sizes: a multiple, a least size.
        """
        if finding.code is Code.SHAPE_MISMATCH or self.before.verdict != "refined":
            return None
        condition = finding.condition
        if not condition or len(condition) > 60 or (repaired and not _leaves_most(condition)):
            return None
        return Repair(f"declare that other inputs never come: assume {condition}", Origin())

    def _redeclared(self, finding: Finding, until: float) -> Iterator[Repair]:
        """Other sizes of an input, where they are declared as numbers: the program may be right, these wrong.
        """
        for index, declared in enumerate(self.spec.inputs):
            if not isinstance(declared.type, Tensor):
                continue
            shape = declared.type.shape
            sizes_now = [*dict.fromkeys(n for n in shape if isinstance(n, int) and n > 1)]
            # What is equal stays equal: a square image is one number.
            numbers = {
                i: _open(n, sizes_now.index(n)) for i, n in enumerate(shape) if isinstance(n, int) and n > 1
            }
            holes = {number.name: number.now for number in numbers.values()}
            dims = tuple(sym(numbers[i].name) if i in numbers else d for i, d in enumerate(shape))
            spec = _with_input(self.spec, index, dims, holes)
            system = self._recorded(self.target, spec, until) if holes else None
            judge = Judge(Budget(max(until - time.monotonic(), 0.1)))
            asked = None if system is None else requirements(system, judge)
            needs = [r.needs for r in asked or ()]
            for values in islice(fillings(needs, self.spec.domain, holes, judge) if asked else (), 1):
                sizes = tuple(values[numbers[i].name] if i in numbers else d for i, d in enumerate(shape))
                told = _with_input(self.spec, index, sizes, {})
                found = self._recorded(self.target, told, until)
                left = Budget(max(until - time.monotonic(), 0.1))
                decision = None if found is None else decide(found, left)
                if decision is None or decision.verdict != "proved" or decision.inside is None:
                    continue
                if isinstance(Replayer(self.target, told).run(decision.inside, True), Ran):
                    yield Repair(f"declare {write_spec(told)[index]}, if that is what comes", Origin())

    # ---- trying

    def _concrete(self, candidate: Candidate, finding: Finding, until: float) -> Iterator[Edit]:
        """The change with each number that it leaves open filled in, in the ways that are right."""
        from ..tracer.edits import CannotApply, WithOpenNumbers

        try:
            open_target = WithOpenNumbers(self.target, candidate.edit)
        except CannotApply:
            return
        if not open_target.numbers:
            yield candidate.edit
            return
        holes = {n.name: n.now for n in open_target.numbers}
        domain = self.spec.domain
        spec = Spec((*self.spec.inputs, *open_target.inputs()), _widened(domain, holes))
        judge = Judge(Budget(max(until - time.monotonic(), 0.1)))
        system = self._recorded(open_target, spec, until)
        asked = None if system is None else requirements(system, judge)
        if asked is None:
            return
        others = self._lines() - {_line(finding.origin)}
        every = [r.needs for r in asked]
        these = [r.needs for r in asked if _line(r.origin) not in others]
        seen: list[dict[str, int]] = []
        for needs in (every, these) if len(these) < len(every) else (every,):
            for values in islice(fillings(needs, domain, holes, judge), MAX_FILLINGS):
                if values not in seen:
                    seen.append(values)
                    yield _filled(candidate.edit, values)

    def _recorded(self, target: Any, spec: Spec, until: float) -> System | None:
        """What the program asks, changed as it is; None where that is not known in full."""
        from ..tracer.edits import CannotApply
        from ..tracer.record import TargetError, record

        left = until - time.monotonic()
        if left <= 0:
            return None
        oracle = Oracle(spec.domain, Budget(left))
        try:
            with values_kept(self.target, parameters=False):
                system, _ = record(target, spec, self.rules, oracle, max_paths=MAX_PATHS, budget_s=left)
        except (TargetError, CannotApply):
            return None
        gave_up = any(path.end.how == "gave-up" for path in system.paths)
        return None if system.incomplete or gave_up else system

    def _works(self, edit: Edit, finding: Finding, until: float) -> int | None:
        """Is the finding gone with the change, and nothing else come instead? Proved, and run at examples.

        If so, how long it takes to say what the program returns then: of two changes alike, the one after
        which the sizes of the results are simpler is likelier.
        """
        from ..tracer.edits import CannotApply, applied

        try:
            with applied(self.target, edit):
                system = self._recorded(self.target, self.spec, until)
                if system is None:
                    return None
                if not self._may_work(system, finding, until) or self._outgrows(system, finding):
                    return None
                decision = decide(system, Budget(max(until - time.monotonic(), 0.1)))
                if not self._better(decision, finding) or not self._runs(decision):
                    return None
                return sum(len(output.value) for output in outputs(system))
        except CannotApply:
            return None

    def _may_work(self, system: System, finding: Finding, until: float) -> bool:
        """Does nothing require anything but where it did before? This is found faster than a verdict."""
        judge = Judge(Budget(max(until - time.monotonic(), 0.1)))
        asked = requirements(system, judge)
        before, given = self._lines() - {_line(finding.origin)}, self.spec.domain.assumptions
        return asked is not None and all(
            _line(r.origin) in before or judge.ask(r.needs, given) is Answer.ALWAYS for r in asked
        )

    def _outgrows(self, system: System, finding: Finding) -> bool:
        """Does an elementwise call of this line give more dimensions than any of its operands has now? A
        change that lets everything broadcast with everything is none.
        """
        if finding.op not in _ELEMENTWISE:
            return False
        before = [r for node, path in self._calls(self.system, finding) for r in _ranks(path, node, False)]
        after = [r for node, path in self._calls(system, finding) for r in _ranks(path, node, True)]
        return max(after, default=0) > max(before, default=0)

    def _calls(self, system: System, finding: Finding) -> Iterator[tuple[Node, Path]]:
        for path in system.paths:
            for node in path.program.nodes:
                if node.op == finding.op and _line(node.origin) == _line(finding.origin):
                    yield node, path

    def _better(self, decision: Decision, finding: Finding) -> bool:
        """Nothing is refused at this line, nor where nothing was before, nor what was accepted before."""
        if decision.verdict == "proved":
            return True
        before, failed = self._lines(), {_line(r.origin) for c in self.before.cores for r in c.requirements}
        now = {_line(r.origin) for r in decision.residual}
        if decision.verdict not in ("refined", "refuted") or not now <= before - {_line(finding.origin)}:
            return False
        if decision.verdict == "refuted":
            return {_line(r.origin) for c in decision.cores for r in c.requirements} < failed
        if self.before.verdict == "refuted":
            return True
        kept = implies(self.before.accepted, decision.accepted)
        given = all_of(self.spec.domain.assumptions)
        return Judge(Budget(1.0)).satisfiable((given, negate(kept))) == "unsat"

    def _lines(self) -> set[tuple[str, int]]:
        """The lines that refuse something as the program stands."""
        return {_line(r.origin) for r in self.before.residual}

    def _runs(self, decision: Decision) -> bool:
        """Does the changed program run where it is said to, at the sizes that were refused among others?"""
        examples = [e for e in (decision.inside, self.report.fails_at) if e and decision.holds(e)]
        if decision.verdict == "refuted":  # for another reason, at another line
            return True
        return bool(examples) and all(isinstance(self.replayer.run(e, True), Ran) for e in examples)

    # ---- what may be tried

    def _candidates(self, finding: Finding) -> Iterator[Candidate]:
        places = self._places(finding)
        for distance, link in enumerate(places):
            yield from _Place(self.target, link, distance).candidates()
        yield from self._projections(finding)

    def _projections(self, finding: Finding) -> Iterator[Candidate]:
        """A sum with a shortcut that hands on what it gets, where the other way changes channels or size."""
        from ..tracer.edits import CONVOLUTIONS, Projected, module_at

        place = _Place(self.target, Link(finding.op, "", finding.origin), 0)
        shapes = [
            value.shape
            for node, path in self._calls(self.system, finding)
            for ref in refs(tuple(argument for _, argument in node.args))
            if isinstance(value := path.values[ref.id], Tensor)
        ]
        for operand in expressions.operands(place.call) if place.call is not None else ():
            path_ = ".".join(filter(None, (place.owner_path, expressions.path_of(operand))))
            shortcut = module_at(self.target, path_)
            if type(shortcut).__name__ != "Identity" or len(shapes) < 2:
                continue
            for one, other in ((shapes[0], shapes[1]), (shapes[1], shapes[0])):
                fed, out, axes = one[1:2], other[1:2], len(one) - 2
                if axes in CONVOLUTIONS and all(isinstance(n, int) for n in (*fed, *out)):
                    for stride in (1, 2):
                        edit = Projected(path_, (*fed, *out), axes, stride)  # type: ignore[arg-type]
                        yield Candidate(2, edit, self._tell_projection)

    def _tell_projection(self, edit: Any) -> Repair:
        stride = f", stride={edit.stride}" if edit.stride > 1 else ""
        new = f"nn.Conv{edit.axes}d({edit.channels[0]}, {edit.channels[1]}, 1{stride})"
        message = f"change nn.Identity() to {new} ({edit.module})"
        built = expressions.built_at(self.target, edit.module)
        if built is None:
            return Repair(message, Origin(module=edit.module))
        text, call = built
        return Repair(message, text.origin(call, Origin(module=edit.module)))

    def _places(self, finding: Finding) -> list[Link]:
        """The call that is refused, then those that led there, the nearest first."""
        here = Link(finding.op, "", finding.origin)
        chain = [link for link in reversed(finding.chain) if link.origin.file]
        near = [link for link in chain if not link.passed] + [link for link in chain if link.passed]
        if finding.op == "raise":
            calls = [s for s in self.report.shapes if s.origin.function == finding.origin.function]
            near += [Link(s.op, ", ".join(s.results), s.origin) for s in reversed(calls)]
        near[:0] = _assigned(finding.origin)
        places = {link.origin: link for link in reversed((here, *finding.conflict, *near))}
        places = dict(reversed(places.items()))
        return [*places.values()][:MAX_PLACES]


_ELEMENTWISE: Final = frozenset({"add", "sub", "mul", "div", "masked_fill", "where", "addcmul", "lerp"})


def _ranks(path: Path, node: Node, results: bool) -> Iterator[int]:
    """Of the results of a call, or of its operands."""
    ids = node.results if results else [r.id for r in refs(tuple(a for _, a in node.args))]
    yield from (t.rank for id in ids for t in tensors(path.values[id]))


def _widened(domain: Domain, holes: Iterable[str]) -> Domain:
    """The domain with symbols for numbers that are left open."""
    at_least = (ge(sym(name), 1) for name in holes)
    return replace(
        domain, symbols=(*domain.symbols, *holes), assumptions=(*domain.assumptions, *at_least)
    )


def _with_input(spec: Spec, index: int, shape: tuple[Dim, ...], holes: Iterable[str]) -> Spec:
    """The spec with other sizes of one input."""
    inputs = [*spec.inputs]
    old = inputs[index].type
    assert isinstance(old, Tensor)
    inputs[index] = replace(inputs[index], type=replace(old, shape=shape))
    return Spec(tuple(inputs), _widened(spec.domain, holes))


def _leaves_most(condition: str) -> bool:
    """Does it ask for multiples and for least sizes alone?"""
    asked = re.compile(r"\w+ % \d+ == \d+|\d+ <= \w+|\w+ != \d+")
    return all(asked.fullmatch(part) for part in condition.split(" and "))


def _assigned(origin: Origin) -> list[Link]:
    """The calls in the source that gave the operands of a call, and theirs: some are made before recording
    begins, or only hand a shape on.
    """
    text = expressions.read(origin.file) if origin.file else None
    call = expressions.at(text, origin) if text else None
    found: dict[ast.expr, None] = {}
    todo = [] if call is None else [call]
    while text is not None and todo and len(found) < MAX_PLACES:
        for made in expressions.made_by(text, todo.pop(0)):
            if made not in found:
                found[made] = None
                todo.append(made)
    return [
        Link(made.func.attr if isinstance(made.func, ast.Attribute) else "", "", text.origin(made, origin))
        for made in found
        if text is not None and isinstance(made, ast.Call)
    ]


def _line(origin: Origin) -> tuple[str, int]:
    return origin.file, origin.line


# ---- one place


NEIGHBOURS: Final = {
    "padding": (0, 4), "output_padding": (0, 1), "stride": (1, 4), "kernel_size": (1, 16), "dilation": (1, 4),
    "groups": (1, 8), "num_groups": (1, 8), "num_heads": (1, 8), "upscale_factor": (1, 4),
    "num_layers": (1, 2), "start_dim": (0, 2), "scale_factor": (1, 8), "downscale_factor": (1, 4),
}  # fmt: skip
"""Arguments that are tried one by one: the least value, and how far from what is there."""
_LEAST: Final = {"padding": 0}
"""Values that undo what an argument is there for, where that is not 1: told last."""
_FED: Final = frozenset(
    """
    in_features in_channels num_features num_channels input_size normalized_shape in1_features in2_features
    embed_dim
    """.split()
)
"""Arguments that say what goes into a module; the others say what comes out."""
_AXES: Final = frozenset(
    """
    mean sum amax amin max min std var prod norm softmax log_softmax flatten squeeze unsqueeze transpose
    permute cumsum argmax argmin logsumexp all any flip
    """.split()
)
"""Operators whose literals are axes."""


class _Place:
    """The changes to try at one call."""

    def __init__(self, target: Any, link: Link, distance: int) -> None:
        from ..tracer.edits import module_at

        self.target, self.op, self.origin, self.distance = target, link.op, link.origin, distance
        self.text = expressions.read(link.origin.file) if link.origin.file else None
        self.call = expressions.at(self.text, link.origin) if self.text else None
        self.owner_path = self._owner(link.origin.module)
        self.owner = module_at(target, self.owner_path)
        self.path = self._called() or link.origin.module
        self.module = module_at(target, self.path) if self.path else None

    def _owner(self, path: str) -> str:
        """The path of the module whose method the line stands in, which may call a module of torch's."""
        while path and (found := _at(self.target, path)) is not None:
            if not type(found).__module__.startswith("torch."):
                return path
            path = path.rpartition(".")[0]
        return ""

    def _called(self) -> str:
        """The path of the module that the line calls by name: `self.fc(x)`."""
        name = expressions.path_of(self.call) if self.call is not None else ""
        path = ".".join(filter(None, (self.owner_path, name)))
        return path if name and _at(self.target, path) is not None else ""

    def candidates(self) -> Iterator[Candidate]:
        yield from self._of_module()
        if self.call is not None and self.text is not None:
            for literal in expressions.literals(self.text, self.call, self.owner):
                yield from self._of_literal(self.text, self.call, literal)
            yield from self._joint(self.text, self.call)
            yield from self._of_tensors(self.text, self.call)
            yield from self._of_expression(self.text, self.call)

    # ---- the module's arguments

    def _of_module(self) -> Iterator[Candidate]:
        from ..tracer.edits import SIZES, Rebuilt, arguments

        given = None if self.module is None else arguments(self.module)
        likewise = self._likewise() if given else ()
        for name, value in (given or {}).items():
            path = self.path
            number = _number(value)
            if isinstance(value, bool) and name in ("batch_first", "bidirectional", "ceil_mode"):
                far = 4 * (self.distance > 0 and name == "ceil_mode")
                rank = 0 if name == "batch_first" else 3 + far
                yield Candidate(rank, Rebuilt(path, name, not value, likewise), self._tell_argument)
            elif name in SIZES and number is not None:
                fed = name in _FED
                rank = 1 if fed and self.distance == 0 else 4 if not fed else 6
                opened = Rebuilt(path, name, _open(number), likewise)
                yield Candidate(rank + self.distance, opened, self._tell_argument)
            elif name in NEIGHBOURS and number is not None:
                least, reach = NEIGHBOURS[name]
                rank = 4 if name == "num_layers" else 3
                for near in _near(number, least, reach):
                    filled: Any = float(near) if isinstance(value, float) else near
                    yield Candidate(rank, Rebuilt(path, name, filled, likewise), self._tell_argument)

    def _likewise(self) -> tuple[str, ...]:
        """Modules that the same line has built, in other instances of the class that it stands in."""
        from ..tracer.edits import arguments

        inner = self.path.removeprefix(self.owner_path).lstrip(".")
        if self.owner is None or self.module is None or not self.owner_path:
            return ()
        given = arguments(self.module)
        found = []
        for path, owner in self.target.named_modules():
            other: Any = _at(self.target, f"{path}.{inner}") if type(owner) is type(self.owner) else None
            if type(other) is type(self.module) and other is not self.module and arguments(other) == given:
                found.append(f"{path}.{inner}")
        return tuple(found)

    def _tell_argument(self, edit: Any) -> Repair:
        from ..tracer.edits import arguments

        assert self.module is not None
        old = _number((arguments(self.module) or {})[edit.parameter])
        several = f" and {len(edit.likewise)} like it" if edit.likewise else ""
        what = f"{edit.parameter} of {edit.module}{several}"
        message = f"change {old} to {_shown(edit.value)} ({what})"
        built = expressions.built_at(self.target, edit.module)
        if built is None:
            return Repair(message, Origin(module=edit.module), str(old), _shown(edit.value))
        text, call = built
        node = expressions.argument(call, type(self.module), edit.parameter)
        like = Origin(module=edit.module)
        if node is None:
            added = f"add {edit.parameter}={_shown(edit.value)} ({edit.module})"
            return Repair(added, text.origin(call, like))
        if expressions.is_number(node):
            told = f"change {text.of(node)} to {_shown(edit.value)} ({what})"
            return Repair(told, text.origin(node, like), text.of(node), _shown(edit.value))
        return Repair(message, text.origin(call, like))

    # ---- literals

    def _of_literal(self, text: Text, call: ast.expr, literal: Literal) -> Iterator[Candidate]:
        value, chain = literal.value, 4 * (self.distance > 0)
        if isinstance(value, str):
            for equation in _permuted(value) if "->" in value else ():
                yield self._literal(text, literal, equation, 0 + chain)
        elif isinstance(value, int):
            axis = self.op in _AXES or isinstance(call, ast.Subscript)
            if axis:
                for other in (-1, 0, 1, 2, 3, -2):
                    if other != value:
                        yield self._literal(text, literal, other, 3 + chain)
                return
            if value > 0:
                yield self._literal(text, literal, _open(value), self._rank_of_size)
                for other in _near(value, 1, 8):
                    yield self._literal(text, literal, other, 3 + self.distance)
            place = _place_among(call, literal.node)
            for name in expressions.parameters(text, call) if place is not None else ():
                yield self._rewritten(text, literal.node, f"{name}.shape[{place}]", 5)
        elif isinstance(value, tuple | list) and all(type(v) is int for v in value):
            if self.op in _AXES:
                for size in (1, 2, 3):
                    for axes in combinations((1, 2, 3), size):
                        if axes != tuple(value):
                            yield self._literal(text, literal, type(value)(axes), 3 + chain)
            elif any(v > 0 for v in value):
                opened = type(value)(_open(v, i) if v > 0 else v for i, v in enumerate(value))
                yield self._literal(text, literal, opened, self._rank_of_size)

    @property
    def _rank_of_size(self) -> int:
        return 4 + self.distance if self.distance else 1

    def _literal(self, text: Text, literal: Literal, value: Any, rank: int) -> Candidate:
        from ..tracer.edits import Assigned, Open, Rewritten

        if literal.attribute:
            edit: Edit = Assigned(self.owner_path, literal.attribute, value)
            return Candidate(rank, edit, lambda e: self._tell_attribute(literal, e))
        start, stop = text.span(literal.node)
        told = value.name if isinstance(value, Open) else repr(value)
        opened = (value,) if isinstance(value, Open) else ()
        edit = Rewritten(text.file, self.origin.function, start, stop, told, opened)
        return Candidate(rank, edit, lambda e: self._tell_text(text, literal.node, e))

    def _joint(self, text: Text, call: ast.expr) -> Iterator[Candidate]:
        """All literals of a call that are sizes, left open together."""
        from ..tracer.edits import Rewritten

        found = [
            x for x in expressions.literals(text, call, self.owner)
            if type(x.value) is int and x.value > 0 and not x.attribute
        ]  # fmt: skip
        if len(found) < 2 or self.op in _AXES or isinstance(call, ast.Subscript):
            return
        start, stop = text.span(call)
        spans = sorted((text.span(x.node), x.value) for x in found)
        if any(not start <= a < stop for (a, _), _ in spans):
            return
        parts, opened, last = [], [], start
        for index, ((a, b), value) in enumerate(spans):
            number = _open(value, index)
            parts += [text.text[last:a], number.name]
            opened.append(number)
            last = b
        whole = "".join((*parts, text.text[last:stop]))
        edit = Rewritten(text.file, self.origin.function, start, stop, whole, tuple(opened))
        yield Candidate(3 + 4 * (self.distance > 0), edit, lambda e: self._tell_text(text, call, e))

    def _tell_attribute(self, literal: Literal, edit: Any) -> Repair:
        told = repr(literal.value)
        where = f"{edit.module}.{edit.attribute}" if edit.module else f"self.{edit.attribute}"
        message = f"change {where} from {told} to {edit.value!r}"
        found = expressions.assigned_at(self.owner, edit.attribute)
        if found is None:
            return Repair(message, Origin(module=edit.module), told, repr(edit.value))
        text, node = found
        origin = text.origin(node, Origin(module=edit.module))
        constant = isinstance(node, ast.Constant) and text.of(node) == told
        return Repair(message, origin, told if constant else "", repr(edit.value) if constant else "")

    # ---- parameters of the module itself

    def _of_tensors(self, text: Text, call: ast.expr) -> Iterator[Candidate]:
        """A size of a parameter among the operands: `tokens + self.position`."""
        from ..tracer.edits import Resized

        held = {} if self.owner is None else {**self.owner._parameters, **self.owner._buffers}
        for operand in expressions.operands(call):
            tensor = held.get(expressions.path_of(operand))
            for axis, size in enumerate(tensor.shape) if tensor is not None else ():
                if size > 1:
                    name = expressions.path_of(operand)
                    edit = Resized(self.owner_path, name, axis, _open(size))
                    yield Candidate(1, edit, self._tell_size)

    def _tell_size(self, edit: Any) -> Repair:
        assert self.owner is not None
        size = getattr(self.owner, edit.name).shape[edit.axis]
        message = f"change {size} to {edit.value} (size {edit.axis} of {edit.name})"
        found = expressions.assigned_at(self.owner, edit.name)
        node = found and expressions.size_in(found[1], edit.axis, size)
        if found is None or node is None:
            return Repair(message, Origin(module=edit.module))
        return Repair(message, found[0].origin(node, Origin(module=edit.module)), str(size), str(edit.value))

    # ---- expressions

    def _rewritten(self, text: Text, node: ast.expr, new: str, rank: int) -> Candidate:
        from ..tracer.edits import Rewritten

        start, stop = text.span(node)
        edit = Rewritten(text.file, self.origin.function, start, stop, new)
        return Candidate(rank, edit, lambda e: self._tell_text(text, node, e))

    def _tell_text(self, text: Text, node: ast.expr, edit: Any) -> Repair:
        origin = text.origin(node, replace(self.origin, start=0, stop=0))
        return Repair(f"change {text.of(node)} to {edit.text}", origin, text.of(node), edit.text)

    def _of_expression(self, text: Text, call: ast.expr) -> Iterator[Candidate]:
        later = 4 * (self.distance > 0)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            name, whole, receiver = call.func.attr, text.of(call), text.of(call.func.value)
            rest = whole[len(receiver) :]
            if name == "view":
                yield self._rewritten(text, call, receiver + rest.replace(".view", ".reshape", 1), 0 + later)
            if name == "squeeze" and not call.args:
                for axis in (-1, 1, 2):
                    yield self._rewritten(text, call, f"{receiver}.squeeze({axis})", 1)
            elif name == "squeeze" and rest.endswith("(0)"):  # the batch, where there is one sample
                yield self._rewritten(text, call, receiver, 1)
        if self.distance == 0 or self.op in ("expand", "getitem"):
            for operand in expressions.operands(call):
                yield from self._wrapped(text, call, operand)
        yield from self._resized(text, call)

    def _wrapped(self, text: Text, call: ast.expr, operand: ast.expr) -> Iterator[Candidate]:
        """An operand with other axes."""
        inner = text.of(operand)
        if isinstance(operand, ast.BinOp | ast.UnaryOp | ast.Compare | ast.IfExp):
            inner = f"({inner})"
        (start, stop), (a, b) = text.span(call), text.span(operand)
        if "norm" in self.op:
            changed = f"{text.text[start:a]}{inner}.transpose(1, 2){text.text[b:stop]}.transpose(1, 2)"
            yield self._rewritten(text, call, changed, 2)
        for rank, how in _WRAPPERS:
            yield self._rewritten(text, operand, inner + how, rank)

    def _resized(self, text: Text, call: ast.expr) -> Iterator[Candidate]:
        """A map that is resized to that of another operand, where two have to agree."""
        names = expressions.parameters(text, call) if self.distance else []
        if isinstance(call, ast.Call):
            function = text.of(call.func)
            for name in names:
                for keyword in call.keywords:
                    if keyword.arg in ("size", "output_size"):
                        yield self._rewritten(text, keyword.value, f"{name}.shape[-2:]", 5)
                        yield self._rewritten(text, keyword.value, f"{name}.shape[2:]", 5)
                if self.op.startswith("conv_transpose") and function.startswith("self."):
                    whole = text.of(call)
                    told = f"{whole[:-1]}, output_size={name}.shape[2:])"
                    yield self._rewritten(text, call, told, 5)
        if self.distance == 0 and self.op in ("cat", "add", "concat", "stack", "mul"):
            several = [*expressions.operands(call)]
            for one in reversed(several):
                for other in several:
                    if other is not one and isinstance(other, ast.Name | ast.Attribute):
                        size = f"{text.of(other)}.shape[2:]"
                        told = f"torch.nn.functional.interpolate({text.of(one)}, size={size})"
                        yield self._rewritten(text, one, told, 6)


_WRAPPERS: Final = (
    (2, ".flatten(1)"), (2, ".transpose(-2, -1)"), (2, ".transpose(1, 2)"), (2, ".unsqueeze(-1)"),
    (2, ".unsqueeze(1)"), (2, "[:, None, None, :]"), (2, ".squeeze(-1)"), (2, ".squeeze(1)"),
    (2, ".permute(0, 3, 1, 2)"), (2, ".permute(0, 2, 3, 1)"), (2, ".flatten(0, 1)"), (2, ".flatten(2)"),
    (2, "[:, None]"), (2, ".unsqueeze(0)"), (2, ".transpose(0, 1)"), (2, ".mean((2, 3))"),
    (2, ".unsqueeze(2)"), (2, ".flatten(1).unsqueeze(1)"),
)  # fmt: skip
"""What is done to an operand, with its rank."""


def _at(target: Any, path: str) -> Any:
    from ..tracer.edits import module_at

    return module_at(target, path)


def _place_among(call: ast.expr, node: ast.expr) -> int | None:
    """Which size of `view(64, 10)` or `expand((2, -1))` a literal is; None where it is none of these."""
    args = call.args if isinstance(call, ast.Call) else []
    if len(args) == 1 and isinstance(args[0], ast.Tuple | ast.List):
        args = args[0].elts
    return args.index(node) if node in args else None


def _open(now: int, index: int = 0) -> Open:
    from ..tracer.edits import OPEN, Open

    return Open(f"{OPEN}{chr(ord('a') + index)}", now)


def _number(value: Any) -> Any:
    """The number that an argument is, or all of its members are."""
    if isinstance(value, bool):
        return value
    if isinstance(value, tuple) and value and len({*value}) == 1:
        value = value[0]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def _near(now: int, least: int, reach: int) -> Iterable[int]:
    """Other values, the nearest first, the greater of two as near first; what undoes most comes last."""
    values = [v for step in range(1, reach + 1) for v in (now + step, now - step) if v >= least]
    return values


def _permuted(equation: str) -> Iterator[str]:
    """An einsum equation with two letters of one operand swapped."""
    inputs, _, output = equation.partition("->")
    terms = inputs.split(",")
    for index, term in reversed([*enumerate(terms)]):
        for i, j in combinations(range(len(term)), 2):
            letters = [*term]
            letters[i], letters[j] = letters[j], letters[i]
            yield f"{','.join((*terms[:index], ''.join(letters), *terms[index + 1 :]))}->{output}"


def _filled(edit: Any, values: dict[str, int]) -> Any:
    """The change with its open numbers filled in."""
    from ..tracer.edits import Open, Rewritten

    def fill(value: Any) -> Any:
        if isinstance(value, Open):
            return values[value.name]
        return type(value)(map(fill, value)) if isinstance(value, list | tuple) else value

    if isinstance(edit, Rewritten):
        text = edit.text
        for name, value in values.items():
            text = text.replace(name, str(value))
        return replace(edit, text=text, open=())
    return replace(edit, value=fill(edit.value))


def _is_trivial(edit: Any) -> bool:
    """Does the change undo what was wanted, by a size of 1 or a stride of 1?"""
    value = getattr(edit, "value", None)
    if getattr(edit, "text", "") == "1":
        return True
    return type(value) is int and value == _LEAST.get(getattr(edit, "parameter", ""), 1)


def _shown(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
