"""A traced graph under a spec: the requirements of its operators, and separately the limits of the trace.

A trace fixes sizes in two ways. It states the sizes of its inputs that it was made for (`limits`), and it
writes sizes into the graph where the model read them. The first can be distinguished from requirements of the
model, the second cannot for certain: `view(x, [2, 64])` may be the model's own `2` or the batch that the
example had. Such a requirement counts as the model's, since the graph runs for no other size, and its reason
names its possible origin.

Nothing here imports torch.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from msgspec import structs

from ...constraints.engine.generate import generate
from ...constraints.engine.kernels import kernels_of
from ...constraints.engine.ruleset import BadCall, Rule, RuleFunction, Rules
from ...constraints.ir.language import Constraint, Context, Dyn, Dynamic, Layout, Note, Number, Tensor, Value
from ...constraints.ir.program import Argument, Node, Program, Ref
from ...constraints.ir.release import Release
from ...constraints.ir.spec import Declared, InputPath, Spec
from ...constraints.ir.spec_text import SpecError, suggestion
from ...constraints.ir.system import Path, System, that_matter
from ...constraints.rules.sizes import assert_scalar
from ...constraints.terms.dims import (
    Dim,
    Symbol,
    Term,
    UnknownSymbol,
    constant_part,
    evaluate,
    lone_atom,
    substitute,
    sym,
    symbols,
)
from ...constraints.terms.formula import Formula, comparisons, divides, eq, free_symbols, holds, rewrite
from .expressions import shown


@dataclass(frozen=True, slots=True)
class Traced:
    """A program with the facts that its trace states."""

    program: Program
    spec: Spec
    """The inputs with the sizes that the trace gave them."""
    limits: tuple[Constraint, ...]
    """The sizes that the trace allows; each constraint is of the kind `trace`, at no node."""
    unread: tuple[str, ...] = ()
    """Guards of the trace that limits cannot express."""
    recorded: Mapping[int, Callable[[], Value]] = field(default_factory=dict)
    """The type that the trace recorded for each value, over the symbols of the spec."""
    example: Mapping[str, int] = field(default_factory=dict)
    """The sizes that it was made with, by symbol."""
    baked: Mapping[str, str] = field(default_factory=dict)
    """Symbols of the spec for which the trace has a number, and where they occur: `x.shape[0]`."""
    lost: tuple[str, ...] = ()
    """Limits of the trace, in words, on sizes that the spec does not mention."""
    release: Release | None = None
    """The release of torch that made the trace, None for the newest that is known."""
    floats: str = "float32"
    """The dtype of floats for which the trace names none."""
    device: str = "cpu"
    """The type of the device that its tensors are on; nothing where there are several."""


def retype(traced: Traced, spec: Spec) -> Traced:
    """Returns the traced program with its inputs declared by a spec. Raises SpecError where the two do not
    fit.

    A size that is a number in the trace, and something else in the spec, becomes a limit of the trace; so
    does a relation between sizes that are one symbol in the trace.
    """
    declared = {flat(d.path): d for given in spec.inputs for d in _leaves(given)}
    fitting = _Fitting(traced)
    types: dict[str, Value] = {}
    for given in traced.spec.inputs:
        new = declared.pop(flat(given.path), None)
        if new is None and isinstance(given.type, Tensor | Term):
            raise SpecError(f"the spec does not declare the input {given.name}", hint=_declare(given))
        if new is not None:
            fitting.input(given, new.type)
            types[given.name] = new.type
    if declared:
        extra = next(iter(declared.values())).name
        known = [given.name for given in traced.spec.inputs]
        hint = suggestion(extra, known) or f"its inputs are {', '.join(known)}"
        raise SpecError(f"the exported program has no input {extra!r}", hint=hint)
    replaced = fitting.solve()
    inputs = tuple(
        i if i.parameter or i.name not in types else structs.replace(i, type=types[i.name])
        for i in traced.program.inputs
    )
    old = [
        replace(c, formula=rewrite(c.formula, replaced))
        for c in traced.limits
        if free_symbols(c.formula) <= replaced.keys()
    ]
    limits: dict[Formula, Constraint] = {}
    for limit in (*fitting.limits, *old):
        if limit.formula is not True:
            limits.setdefault(limit.formula, limit)
    lost = [c.reason for c in traced.limits if not free_symbols(c.formula) <= replaced.keys()]
    recorded: dict[int, Callable[[], Value]] = {}
    if not fitting.elsewhere:
        recorded = {id: partial(_reread, read, replaced) for id, read in traced.recorded.items()}
    return Traced(
        program=replace(traced.program, inputs=inputs),
        spec=spec,
        limits=tuple(limits.values()),
        unread=traced.unread,
        lost=(*traced.lost, *lost),
        recorded=recorded,
        example=fitting.example,
        baked=fitting.baked,
        device=traced.device,
        release=traced.release,
        floats=traced.floats,
    )


def system(traced: Traced, rules: Rules, spec: Spec | None = None, device: str | None = None) -> System:
    """Returns the only path of a traced program under a spec, by default with the sizes of the trace itself,
    and on the device of the trace.

    Its constraints of the kind `trace` state the limits of the trace beyond the requirements of the
    operators.
    """
    if spec is not None:
        traced = retype(traced, spec)
    limits = frozenset(limit.formula for limit in traced.limits)
    operators = {node.op for node in traced.program.nodes}
    rules = _careful(rules, _asserts(limits), operators).of_torch(traced.release, traced.floats)
    said = generate(
        traced.program,
        rules,
        traced.spec.domain,
        chooser=lambda formula: _at(formula, traced.example),
        fallback=lambda node: _taken(traced, node),
        kernels=kernels_of(device or traced.device, traced.release),
    )
    nodes = traced.program.nodes
    constraints = [_told(traced, constraint, nodes[constraint.node]) for constraint in said.constraints]
    notes = that_matter(said.notes, (c.formula for c in (*constraints, *traced.limits)))
    path = Path(
        traced.program,
        said.values,
        (*constraints, *traced.limits),
        (*notes, *_unknown_assertions(traced.program, said.values), *_unknown_limits(traced)),
        unbacked=tuple(said.unbacked.items()),
    )
    return System(traced.spec.domain, (path,))


def _unknown_limits(traced: Traced) -> Iterator[Note]:
    """Yields a note for each limit of the trace that no formula expresses."""
    for text in traced.unread:
        told = f"the export has the guard {shown(text)}, which cannot be written as a formula over sizes"
        yield Note("trace-limit", told, -1)
    for reason in traced.lost:
        yield Note("trace-limit", f"{reason}, whose value the declared sizes do not determine", -1)


def _unknown_assertions(program: Program, values: Mapping[int, Value]) -> Iterator[Note]:
    """Yields notes for assertions about sizes that the rules did not understand.

    (One about data does not restrict sizes.)
    """
    makers = {id: node for node in program.nodes for id in node.results}
    for index, node in enumerate(program.nodes):
        if node.op in ASSERTIONS:
            asserted = [argument for _, argument in node.args[:1] if isinstance(argument, Ref)]
            if any(isinstance(values[a.id], Number | Dynamic) and not _on_data(a, makers) for a in asserted):
                yield Note("no-rule", f"{node.op}: its assertion is not a formula over sizes", index)


def _on_data(value: Argument, makers: Mapping[int, Node]) -> bool:
    """Returns whether elements of tensors decide this number."""
    seen: set[int] = set()
    refs = [value]
    while refs:
        ref = refs.pop()
        if isinstance(ref, tuple):
            refs += ref
        elif isinstance(ref, Ref) and ref.id not in seen:
            seen.add(ref.id)
            if (node := makers.get(ref.id)) is not None and node.op not in _OF_SHAPES:
                if node.op in _OF_ELEMENTS:
                    return True
                refs += [argument for _, argument in node.args]
    return False


# ---- fitting a spec to what was traced


class _Fitting:
    """Compares the declared sizes with those of the trace, input by input."""

    def __init__(self, traced: Traced) -> None:
        self.limits: list[Constraint] = []
        self.example: dict[str, int] = {}
        self.baked: dict[str, str] = {}
        self.elsewhere = False
        """Whether the spec has other sizes where the trace has numbers."""
        self._example = traced.example
        self._pairs: list[tuple[Dim, Dim, str]] = []
        """The dim of the trace, the declared dim, and where they occur."""

    def input(self, traced: Declared, declared: Value) -> None:
        """Adds one input. Raises SpecError where it can never fit."""
        name, known = traced.name, traced.type
        match known, declared:
            case Tensor(), Tensor():
                if len(known.shape) != len(declared.shape):
                    problem = f"{name} has {_counted(len(known.shape))} in the exported program, not"
                    raise SpecError(f"{problem} {_counted(len(declared.shape))}", hint=_declare(traced))
                if None not in (known.dtype, declared.dtype) and known.dtype != declared.dtype:
                    problem = f"{name} is {known.dtype} in the exported program, not {declared.dtype}"
                    raise SpecError(problem, hint=_declare(traced))
                for axis, pair in enumerate(zip(known.shape, declared.shape, strict=True)):
                    self._pairs.append((*pair, f"{name}.shape[{axis}]"))
            case ((bool() | str() | float() | None), _) if _is(known, declared):
                pass
            case ((int() | Term()), (int() | Term())) if bool not in (type(known), type(declared)):
                self._pairs.append((known, declared, name))
            case Dynamic(), _:
                pass
            case _:
                problem = f"{name} is {_shown(known)} in the exported program, not {_shown(declared)}"
                raise SpecError(problem, hint=_declare(traced))

    def solve(self) -> dict[str, Dim]:
        """Returns the symbols of the trace as declared dims.

        Equations that do not follow from these become limits.
        """
        replaced: dict[str, Dim] = {}
        for known, declared, _ in self._pairs:
            if isinstance(atom := lone_atom(known), Symbol):
                replaced.setdefault(atom.name, declared)
        for known, declared, where in self._pairs:
            self._relate(known, declared, where, replaced)
        return replaced

    def _relate(self, known: Dim, declared: Dim, where: str, replaced: dict[str, Dim]) -> None:
        if isinstance(declared, Term):
            self._remember(known, declared, where)
        if isinstance(known, int):
            self.elsewhere = self.elsewhere or known != declared
            self._limit(eq(declared, known), f"{where} is {known} in the exported program")
            return
        if free := symbols(known) - replaced.keys():
            solved = solve(known, declared) if len(free) == len(symbols(known)) == 1 else None
            if solved is None:
                return
            name, step, rest = solved
            replaced[name] = rest // step
            self._limit(divides(step, rest), f"{where} is {known} in the exported program")
        else:
            same = eq(declared, substitute(known, replaced))
            self._limit(same, f"{where} is {known} in the exported program, as elsewhere")

    def _remember(self, known: Dim, declared: Term, where: str) -> None:
        """Stores the size that the example had here, for the declared symbols."""
        try:
            size = evaluate(known, self._example)
        except (UnknownSymbol, ZeroDivisionError):
            return
        if isinstance(known, int):
            for name in symbols(declared):
                self.baked.setdefault(name, where)
        if (solved := solve(declared, size)) is not None:
            name, step, rest = solved
            if rest % step == 0:
                self.example.setdefault(name, int(rest) // step)  # type: ignore[arg-type]

    def _limit(self, formula: Formula, reason: str) -> None:
        self.limits.append(Constraint(formula, reason, -1, "trace"))


def solve(term: Term, value: Dim) -> tuple[str, int, Dim] | None:
    """Returns `(s, c, r)`, c > 0, with `term == value` exactly where `c*s == r`; None if the term is not `c*s
    + d`.
    """
    rest = constant_part(term)
    linear = term - rest
    if not isinstance(linear, Term) or len(linear.terms) != 1:
        return None
    ((mono, step),) = linear.terms
    if len(mono) != 1 or not isinstance(mono[0], Symbol):
        return None
    return mono[0].name, abs(step), value - rest if step > 0 else rest - value


def _leaves(given: Declared) -> Iterator[Declared]:
    """Yields the parts of a list that is declared as a literal."""
    if isinstance(given.type, tuple):
        for index, part in enumerate(given.type):
            yield from _leaves(Declared((*given.path, index), part))
    else:
        yield given


def _declare(given: Declared) -> str:
    typed = isinstance(given.type, Tensor)
    return f"declare {given.name}{': ' if typed else '='}{given.type}"


def _counted(rank: int) -> str:
    return f"{rank} size" if rank == 1 else f"{rank} sizes"


def _is(known: Value, declared: Value) -> bool:
    return type(known) is type(declared) and known == declared


def _shown(value: Value) -> str:
    match value:
        case Tensor():
            return "a tensor"
        case Term():
            return "an integer"
        case Number(kind):
            return f"any {kind}"
    return str(value)


def flat(path: InputPath) -> str:
    """Returns the name that torch gives such an input: `batch_a_0` for `("batch", "a", 0)`."""
    return "_".join(re.sub(r"\W", "_", str(step), flags=re.ASCII) for step in path)


def _reread(read: Callable[[], Value], replaced: Mapping[str, Dim]) -> Value:
    return _replaced(read(), replaced)


def _replaced(value: Value, replaced: Mapping[str, Dim]) -> Value:
    """Returns a value of the trace over the declared symbols, or Dyn where it contains others."""
    if isinstance(value, Tensor):
        dims = (*value.shape, *(value.layout if isinstance(value.layout, tuple) else ()))
        if any(not symbols(dim) <= replaced.keys() for dim in dims):
            return Dyn
        layout = value.layout
        return Tensor(
            tuple(substitute(dim, replaced) for dim in value.shape),
            value.dtype,
            layout if isinstance(layout, Layout) else tuple(substitute(step, replaced) for step in layout),
        )
    if isinstance(value, Term):
        return substitute(value, replaced) if symbols(value) <= replaced.keys() else Dyn
    return value


# ---- what the rules are told


class _Careful(Rule):
    """A rule that checks its arguments: a graph from outside may contain any kind."""

    def __call__(self, context: Context, named: dict[str, Any]) -> Value:
        try:
            return super().__call__(context, named)
        except BadCall:
            raise
        except RecursionError:
            raise BadCall("its sizes are nested too deeply to be followed") from None
        except (TypeError, AttributeError, IndexError) as error:
            raise BadCall(f"its rule does not take these arguments ({error})") from error


def _careful(rules: Rules, asserts: RuleFunction, operators: set[str]) -> Rules:
    """Returns the rules for these operators, with one for assertions; one in place, `add_`, has the rule of
    `add`.
    """
    names = {name for op in operators for name in (op, op.removesuffix("_"))}
    known = {name: rule for name in names if (rule := rules.get(name)) is not None}
    if "_assert_scalar" in names:
        known["_assert_scalar"] = Rule.of(asserts)
    if IN_AUTOCAST in names:
        known[IN_AUTOCAST] = Rule.of(in_autocast)
    fields = [f.name for f in dataclasses.fields(Rule)]
    return Rules({n: _Careful(*(getattr(rule, field) for field in fields)) for n, rule in known.items()})


def _at(formula: Formula, example: Mapping[str, int]) -> bool | None:
    """Returns the truth of a formula at the sizes of the trace's example; None where they do not decide it.
    """
    try:
        return holds(formula, example)
    except (UnknownSymbol, ZeroDivisionError):
        return None


def _taken(traced: Traced, node: int) -> tuple[Value, ...]:
    """Returns the types that the trace recorded for the results of a node; Dyn where they contain sizes that
    data decide.
    """
    same = {name: sym(name) for name in traced.spec.domain.symbols}
    known = [traced.recorded.get(id) for id in traced.program.nodes[node].results]
    return tuple(Dyn if read is None else _replaced(read(), same) for read in known)


IN_AUTOCAST: Final = "in_autocast"


def in_autocast(c: Context, input: Value, dtype: str | None = None) -> Value:
    """Returns a value that enters, leaves or is made in an autocast region: torch chooses its dtype."""
    return structs.replace(input, dtype=dtype) if isinstance(input, Tensor) else input


# ---- sizes that the trace may have written into the graph


ASSERTIONS: Final = frozenset({"_assert_scalar", "sym_constrain_range", "sym_constrain_range_for_size"})
_OF_SHAPES: Final = frozenset({"sym_size", "sym_stride", "sym_numel", "sym_storage_offset"})
_OF_ELEMENTS: Final = frozenset({"item", "_local_scalar_dense"})


def _asserts(limits: frozenset[Formula]) -> Callable[..., Value]:
    """Returns the rule of an assertion, which ignores one that repeats a limit of the trace.

    Otherwise the analysis would assume the limit, and would not report an operator's own requirement of the
    same form.
    """

    def rule(c: Context, input: Formula | Number | Dim, assert_msg: str = "") -> tuple[()]:
        """Requires the condition."""
        return () if input in limits else assert_scalar(c, input, assert_msg)

    return rule


def _told(traced: Traced, constraint: Constraint, node: Node) -> Constraint:
    """Returns the constraint with the known facts about its origin.

    An assertion that repeats a limit of the trace is of kind `trace`.
    """
    if node.op in ASSERTIONS and any(constraint.formula == limit.formula for limit in traced.limits):
        return replace(constraint, kind="trace")
    suspicion = _suspicion(traced, constraint.formula) if constraint.kind == "model" else ""
    return replace(constraint, reason=f"{constraint.reason}; {suspicion}") if suspicion else constraint


def _suspicion(traced: Traced, formula: Formula) -> str:
    """Returns a text on where a number comes from that a size is required to equal, or an empty one.

    An equation is suspect if it has a constant and symbols for which the trace has numbers that satisfy it.
    """
    for comparison in comparisons(formula):
        names = sorted(free_symbols(comparison))
        if (
            comparison.op == "=="
            and constant_part(comparison.term)
            and all(name in traced.baked for name in names)
            and _at(comparison, traced.example)
        ):
            told = " and ".join(f"{traced.baked[name]} was {traced.example[name]}" for name in names)
            return f"{told} when the program was exported, so the trace may have fixed that number"
    return ""
