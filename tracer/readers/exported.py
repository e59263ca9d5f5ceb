"""The common description of an exported graph, which both readers produce, and the program built from it.

`export.py` reads the graph of a live `ExportedProgram`, `pt2.py` the JSON of a saved one. Both describe it
with the values below, so that one function, `build`, makes the program. Nothing here imports torch.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import Final, TypeAlias

from ...constraints.contents.elements.dtypes import INTEGRAL
from ...constraints.ir.language import Constraint, Dyn, Dynamic, Layout, Plain, Shape, Tensor, Value, tensors
from ...constraints.ir.opnames import ATEN_DEFAULTS, canonical
from ...constraints.ir.program import Argument, Contents, Input, Node, Origin, Program, Ref
from ...constraints.ir.release import Release
from ...constraints.ir.spec import Declared, InputPath, Spec
from ...constraints.ir.system import Domain
from ...constraints.terms.dims import Dim, Term, sym, symbols
from ...constraints.terms.formula import Formula, all_of, conjuncts, ge, le
from ...constraints.terms.intervals import interval
from ...constraints.terms.syntax import DimSyntaxError, parse_dim
from ..patches.control import CONTROL, Branch
from .expressions import NotRead, guard, shown
from .graph import IN_AUTOCAST, Traced, flat, solve

MAX_NESTING: Final = 50
UNBOUNDED: Final = 2**63 - 2
"""torch writes this and larger numbers for `no bound`."""


class GraphError(ValueError):
    """Raised for an invalid graph: one that uses values which nothing makes, or makes a value twice."""


@dataclass(frozen=True, slots=True)
class Name:
    """A value of the graph."""

    text: str


Operand: TypeAlias = "Name | ExportedGraph | Tensor | tuple[Operand, ...] | Plain"


@dataclass(frozen=True, slots=True)
class ExportedCall:
    """One node. `results` names the leaves of its result, from left to right; "" is one that is None."""

    target: str
    operands: tuple[tuple[str, Operand], ...]
    """By the names of the operator's schema; "" where there is no schema."""
    results: tuple[str, ...]
    stack_trace: str = ""
    module: str = ""


@dataclass(frozen=True, slots=True)
class ExportedGraph:
    """Calls in order. `types` has, for each name, a function that returns the type recorded by the trace."""

    name: str
    inputs: tuple[Operand, ...]
    calls: tuple[ExportedCall, ...]
    outputs: tuple[Operand, ...]
    types: Mapping[str, Callable[[], Value]]


@dataclass(frozen=True, slots=True)
class Given:
    """One input of the graph: the user's, found by its path, or a parameter or buffer by its name."""

    operand: Operand
    path: InputPath
    user: bool
    constant: bool = False
    """Whether it is a buffer or a constant of the program."""
    example: tuple[int | None, ...] = ()
    """The sizes that the example had here, or its value."""


@dataclass(frozen=True, slots=True)
class ExportedParts:
    """All the parts read of an exported program."""

    graph: ExportedGraph
    given: tuple[Given, ...]
    outputs: tuple[tuple[str, Operand], ...]
    ranges: Mapping[str, tuple[int | None, int | None]]
    """The ranges that the trace declares for its symbols, and for terms over them."""
    guards: tuple[str, ...]
    release: Release | None = None
    """The release of torch that made it, None where it is not known."""
    devices: frozenset[str] = frozenset()
    """The types of the devices that its tensors are on."""


def tensor(
    sizes: tuple[Dim | Dynamic, ...], dtype: str | None, strides: tuple[Dim | Dynamic, ...] | None
) -> Value:
    """Returns the type of a tensor in a trace; Dyn where a size is not known.

    `strides` is None for a tensor without strides.
    """
    known = tuple(size for size in sizes if not isinstance(size, Dynamic))
    if len(known) < len(sizes):
        return Dyn
    if strides is None or len(strides) != len(sizes):
        return Tensor(known, dtype, Layout.UNKNOWN)
    steps = tuple(step for step in strides if not isinstance(step, Dynamic))
    if len(steps) < len(strides):
        return Tensor(known, dtype, Layout.UNKNOWN)
    return Tensor(known, dtype, Layout.CONTIGUOUS if _is_contiguous(known, steps) else steps)


def _is_contiguous(sizes: Shape, strides: Shape) -> bool:
    """Returns whether each stride is the product of the sizes after it.

    The stride of a size 1 does not matter, nor does any of a tensor without elements.
    """
    step: Dim = 1
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        if size != 1 and stride != step:
            return 0 in sizes
        step = step * size
    return True


# ---- names


_FRAME = re.compile(r'^\s*File "(?P<file>[^"\n]*)", line (?P<line>\d{1,9}), in (?P<function>.*)$')
_INNER = re.compile(
    r"(^|[/\\])torch[/\\](_|(nn|fx|autograd|utils|amp|export)[/\\]|functional\.py)|(site|dist)-packages[/\\]torch[/\\]"
    r"|^<|[/\\](contextlib|functools)\.py$"
)
"""Files of torch itself, and internals of the standard library."""
NO_MODULE: Final = "_empty_nn_module_stack"
"""The module that torch names for a node that it adds itself."""


def origin(stack_trace: str, module: str) -> Origin:
    """Returns the innermost line of the stack trace that is the user's."""
    module = "" if module.startswith(NO_MODULE) else module
    lines = stack_trace.split("\n")
    for index in range(len(lines) - 1, -1, -1):
        frame = _FRAME.match(lines[index])
        if frame and not _INNER.search(frame["file"]):
            below = lines[index + 1] if index + 1 < len(lines) else ""
            code = "" if _FRAME.match(below) else below.strip()
            return Origin(frame["file"], int(frame["line"]), frame["function"], module, code)
    return Origin(module=module)


def innermost(module_stack: str) -> str:
    """Returns `conv` for `L__self__,,main.Net;L__self___conv,conv,torch.nn.Conv2d`."""
    parts = module_stack.rsplit(";", 1)[-1].split(",")
    return parts[1] if len(parts) > 2 else ""


# ---- from the graph to the program


def build(exported: ExportedParts) -> Traced:
    """Returns the program, its inputs as the export describes them, and the limits of the export.

    Raises GraphError.
    """
    builder = _Builder()
    declared = tuple(builder.given(exported))
    names: dict[str, Argument] = {}
    for given, argument in zip(exported.given, builder.arguments, strict=True):
        if isinstance(given.operand, Name):
            _bind(names, given.operand.text, argument)
    builder.run(exported.graph, names)
    outputs = tuple((name, _resolve(operand, names)) for name, operand in exported.outputs)
    program = Program(tuple(builder.inputs), tuple(builder.nodes), outputs)
    spec = Spec(declared, _domain(declared))
    limits, unread = _limits(exported, spec)
    devices = exported.devices or frozenset(("cpu",))
    return Traced(
        program,
        spec,
        limits,
        unread,
        builder.recorded,
        _example(exported),
        device=next(iter(devices)) if len(devices) == 1 else "",
        release=exported.release,
    )


_GRAPH_AT: Final = frozenset(
    "wrap wrap_with_set_grad_enabled wrap_with_autocast hints_wrapper invoke_subgraph"
    " tag_activation_checkpoint wrap_activation_checkpoint".split()
)
"""Higher-order operators that run their one graph, once, on their last operands."""
AUTOCAST: Final = "wrap_with_autocast"
"""An operator whose third operand is whether autocast is on in the region."""


class _Builder:
    """Makes nodes from calls, and ids from names."""

    def __init__(self) -> None:
        self.inputs: list[Input] = []
        self.arguments: list[Argument] = []
        """The argument for each input of the graph, in the order of the graph."""
        self.nodes: list[Node] = []
        self.recorded: dict[int, Callable[[], Value]] = {}
        self.under: tuple[tuple[Argument, bool], ...] = ()
        """The conditions under which the calls that follow are made."""
        self._ids = 0
        self._origins: dict[tuple[str, str], Origin] = {}

    def new(self) -> int:
        self._ids += 1
        return self._ids - 1

    def given(self, exported: ExportedParts) -> Iterator[Declared]:
        """Makes the inputs; yields the user's."""
        taken = {Declared(g.path, None).name for g in exported.given if g.user}
        for given in exported.given:
            named = Declared(given.path, None).name
            value = _type(exported.graph, given.operand)
            if given.user:
                yield Declared(given.path, value)
            elif named in taken:
                named = _free(f"{named} (parameter)", taken)
            taken.add(named)
            if isinstance(given.operand, Name):
                id = self.new()
                holds: Contents = "given" if given.constant and not _may_index(value) else "data"
                self.inputs.append(Input(id, named, value, parameter=not given.user, holds=holds))
                self.arguments.append(Ref(id))
            else:
                self.arguments.append(_resolve(given.operand, {}))

    def run(
        self, graph: ExportedGraph, names: dict[str, Argument], autocast: bool = False, depth: int = 0
    ) -> None:
        """Appends the calls of a graph; `names` has its inputs, and gets everything else that it makes."""
        if depth > MAX_NESTING:
            raise GraphError(f"graphs are nested more than {MAX_NESTING} levels deep")
        for call in graph.calls:
            inner = _inlined(call)
            control = CONTROL.get(call.target.rpartition(".")[2])
            if control is not None and any(_has_graph(operand) for _, operand in call.operands):
                host = _HigherOrderCall(self, call, graph, names, autocast, depth)
                host.results(_called(control, host, call, names))
            elif inner is None:
                self._node(call, graph, names, autocast)
            else:
                self._inline(call, inner, names, autocast, depth)

    def _node(
        self, call: ExportedCall, graph: ExportedGraph, names: dict[str, Argument], autocast: bool
    ) -> None:
        op, arguments = canonical(call.target), tuple(_arguments(call, names))
        default = ATEN_DEFAULTS.get(op) if call.target.startswith("torch.ops.aten.") else None
        if default is not None and len(arguments) <= default.place and default.name not in dict(arguments):
            arguments += ((default.name, default.value),)
        results = tuple(self.new() for _ in call.results)
        where = self.origin(call)
        self.nodes.append(Node(op, arguments, results, where, self.under))
        for name, id in zip(call.results, results, strict=True):
            if name:
                if name in graph.types:
                    self.recorded[id] = partial(_if_known, graph.types[name])
                _bind(names, name, self._typed(Ref(id), None, where) if autocast else Ref(id))

    def _inline(
        self, call: ExportedCall, inner: ExportedGraph, names: dict[str, Argument], autocast: bool, depth: int
    ) -> None:
        operands = [_resolve(operand, names) for _, operand in call.operands]
        last = operands[len(operands) - len(inner.inputs) :] if inner.inputs else []
        if len(last) != len(inner.inputs):
            raise GraphError(f"{call.target} runs a graph of {len(inner.inputs)} inputs on fewer operands")
        region = call.target.endswith(AUTOCAST) and operands[2:3] == [True]
        where = self.origin(call)
        bound: dict[str, Argument] = {}
        for argument, taken in zip(last, inner.inputs, strict=True):
            if isinstance(taken, Name):
                _bind(bound, taken.text, self._typed(argument, None, where) if region else argument)
        self.run(inner, bound, region if call.target.endswith(AUTOCAST) else autocast, depth + 1)
        if len(inner.outputs) != len(call.results):
            raise GraphError(f"{call.target} has {len(call.results)} results, its graph {len(inner.outputs)}")
        for name, operand in zip(call.results, inner.outputs, strict=True):
            if name:
                argument = _resolve(operand, bound)
                known = self.recorded.get(argument.id) if region and isinstance(argument, Ref) else None
                value = None if known is None else known()
                dtype = value.dtype if isinstance(value, Tensor) else None
                _bind(names, name, self._typed(argument, dtype, where) if region else argument)

    def _typed(self, argument: Argument, dtype: str | None, where: Origin) -> Argument:
        """Returns the value with its known dtype where autocast, not the program, chooses dtypes."""
        if not isinstance(argument, Ref):
            return argument
        id = self.new()
        arguments = ("input", argument), ("dtype", dtype)
        self.nodes.append(Node(IN_AUTOCAST, arguments, (id,), where, self.under))
        if argument.id in self.recorded:
            self.recorded[id] = self.recorded[argument.id]
        return Ref(id)

    def origin(self, call: ExportedCall) -> Origin:
        key = call.stack_trace, call.module
        if key not in self._origins:
            self._origins[key] = origin(*key)
        return self._origins[key]


class _HigherOrderCall:
    """One call of a higher-order operator: a host whose functions are graphs and whose values are arguments.
    """

    def __init__(
        self, builder: _Builder, call: ExportedCall, graph: ExportedGraph, names: dict[str, Argument],
        autocast: bool, depth: int,
    ) -> None:
        self.builder, self.call, self.graph, self.names = builder, call, graph, names
        self.autocast, self.depth = autocast, depth

    def node(self, op: str, *args: Argument) -> Argument:
        return Ref(self._append(op, args, 1)[0])

    def run(
        self, function: object, operands: Sequence[Argument], under: Branch = None
    ) -> tuple[Argument, ...]:
        if not isinstance(function, ExportedGraph) or len(function.inputs) != len(operands):
            raise GraphError(f"{self.call.target} runs something other than a graph of its operands")
        bound: dict[str, Argument] = {}
        for argument, taken in zip(operands, function.inputs, strict=True):
            if isinstance(taken, Name):
                _bind(bound, taken.text, argument)
        outside = self.builder.under
        if under is not None:
            self.builder.under = (*outside, under)
        self.builder.run(function, bound, self.autocast, self.depth + 1)
        self.builder.under = outside
        return tuple(_resolve(operand, bound) for operand in function.outputs)

    def join(self, op: str, *args: Argument) -> tuple[Argument, ...]:
        return tuple(map(Ref, self._append(op, args, len(self.call.results))))

    def _append(self, op: str, args: tuple[Argument, ...], results: int) -> tuple[int, ...]:
        ids = tuple(self.builder.new() for _ in range(results))
        named = tuple((f"arg{index}", argument) for index, argument in enumerate(args))
        self.builder.nodes.append(Node(op, named, ids, self.builder.origin(self.call), self.builder.under))
        return ids

    def results(self, results: tuple[Argument, ...]) -> None:
        """Binds the names of the call's results, and keeps the types that the trace recorded for them."""
        types = self.graph.types
        for name, argument in zip(self.call.results, results, strict=True):
            if name:
                if name in types and isinstance(argument, Ref):
                    self.builder.recorded[argument.id] = partial(_if_known, types[name])
                _bind(self.names, name, argument)


def _called(
    control: Callable[..., tuple[Argument, ...]], host: _HigherOrderCall, call: ExportedCall,
    names: Mapping[str, Argument],
) -> tuple[Argument, ...]:
    """Returns the results of the operator for its operands.

    Raises GraphError where it does not accept these operands.
    """
    given = [o if _has_graph(o) else _resolve(o, names) for _, o in call.operands]
    try:
        inspect.signature(control).bind(host, *given)
    except TypeError as error:
        raise GraphError(f"{call.target}: {error}") from None
    return control(host, *given)


def _has_graph(operand: Operand) -> bool:
    """Returns whether the operand is a graph, or a list of graphs."""
    parts = operand if isinstance(operand, tuple) else (operand,)
    return any(isinstance(part, ExportedGraph) for part in parts)


def _if_known(read: Callable[[], Value]) -> Value:
    """Returns the type recorded by the trace, or Dyn where it cannot be read."""
    try:
        return read()
    except GraphError:
        return Dyn


def _inlined(call: ExportedCall) -> ExportedGraph | None:
    """Returns the graph that a call runs inline, or None."""
    if call.target.rpartition(".")[2] not in _GRAPH_AT:
        return None
    graphs = [operand for _, operand in call.operands if isinstance(operand, ExportedGraph)]
    return graphs[0] if len(graphs) == 1 else None


def _arguments(call: ExportedCall, names: Mapping[str, Argument]) -> Iterator[tuple[str, Argument]]:
    """Yields the arguments: of operators with a schema by name, of all others by position."""
    by_name = call.target.startswith("torch.ops.")
    seen: set[str] = set()
    for index, (name, operand) in enumerate(call.operands):
        key = name if name and by_name else f"arg{index}"
        if key in seen:
            raise GraphError(f"{call.target} has two arguments {key!r}")
        seen.add(key)
        yield key, _resolve(operand, names)


def _resolve(operand: Operand, names: Mapping[str, Argument]) -> Argument:
    if isinstance(operand, Name):
        if operand.text not in names:
            raise GraphError(f"the graph uses {operand.text!r}, which no earlier node makes")
        return names[operand.text]
    if isinstance(operand, ExportedGraph):
        return operand.name
    if isinstance(operand, tuple):
        return tuple(_resolve(o, names) for o in operand)
    return operand


def _bind(names: dict[str, Argument], name: str, argument: Argument) -> None:
    if name in names:
        raise GraphError(f"the graph makes {name!r} twice")
    names[name] = argument


def _may_index(value: Value) -> bool:
    """Returns whether a tensor is of integers or truths. An archive is taken to hold indices that are valid,
    as far as its sizes allow that.
    """
    return isinstance(value, Tensor) and value.dtype in INTEGRAL


def _type(graph: ExportedGraph, operand: Operand) -> Value:
    if not isinstance(operand, Name):
        return _constant(operand)
    if operand.text not in graph.types:
        raise GraphError(f"the kind of the input {operand.text!r} is not given")
    return graph.types[operand.text]()


def _constant(operand: Operand) -> Value:
    if isinstance(operand, Name | ExportedGraph):
        raise GraphError("an input that is neither a value nor a constant")
    return tuple(map(_constant, operand)) if isinstance(operand, tuple) else operand


def _free(name: str, taken: Iterable[str]) -> str:
    while name in taken:
        name += "'"
    return name


def _example(exported: ExportedParts) -> dict[str, int]:
    """Returns the sizes that the program was exported with, by symbol."""
    found: dict[str, int] = {}
    for given in exported.given:
        if not given.example:  # a parameter
            continue
        value = _type(exported.graph, given.operand)
        dims = value.shape if isinstance(value, Tensor) else (value,)
        for dim, number in zip(dims, given.example, strict=False):
            if isinstance(dim, Term) and number is not None and (solved := solve(dim, number)):
                name, step, rest = solved
                if isinstance(rest, int) and rest % step == 0:
                    found.setdefault(name, rest // step)
    return found


# ---- what the trace allows


def _domain(declared: tuple[Declared, ...]) -> Domain:
    """Returns the domain, as for a written spec: a symbol of a size is at least 1, a size that is a term at
    least 0.
    """
    sizes = [dim for given in declared for tensor in tensors(given.type) for dim in tensor.shape]
    values = [given.type for given in declared if isinstance(given.type, Term)]
    names = dict.fromkeys(name for dim in (*sizes, *values) for name in sorted(symbols(dim)))
    lows = {name: (1, inf) for dim in sizes for name in sorted(symbols(dim))}
    terms = [ge(dim, 0) for dim in dict.fromkeys(sizes) if interval(dim, lows)[0] < 0]
    return Domain(tuple(names), tuple(conjuncts(all_of((*(ge(sym(name), 1) for name in lows), *terms)))))


def _limits(exported: ExportedParts, spec: Spec) -> tuple[tuple[Constraint, ...], tuple[str, ...]]:
    """Returns ranges and guards as constraints, and the guards that formulas cannot express."""
    limits: dict[Formula, str] = {}
    places = _places(spec)
    for text, (low, high) in exported.ranges.items():
        try:
            dim = parse_dim(text)
        except DimSyntaxError:
            continue  # a bound on a term that dims do not have follows from those on its symbols
        if not isinstance(dim, Term) or not symbols(dim) <= set(spec.domain.symbols):
            continue  # of a size that the data decides, which the graph itself asserts
        # A lower bound up to 2 says that torch takes 0 and 1 apart; it is not enforced when the program runs.
        if low is not None and low > 2:
            limits.setdefault(ge(dim, low), f"the export allows {low} and more for {places.get(dim, dim)}")
        if high is not None and high < UNBOUNDED:
            limits.setdefault(le(dim, high), f"the export allows at most {high} for {places.get(dim, dim)}")
    types = {flat(given.path): given.type for given in spec.inputs}
    sizes = [dim for value in types.values() for tensor in tensors(value) for dim in tensor.shape]
    ranges = {name: (0, inf) for dim in sizes for name in symbols(dim)}
    unread = []
    for text in exported.guards:
        try:
            formula = guard(text, partial(_source, types), ranges)
        except NotRead:
            unread.append(text)
        else:
            limits.setdefault(formula, f"the export has the guard {shown(text)}")
    return tuple(Constraint(f, why, -1, "trace") for f, why in limits.items() if f is not True), tuple(unread)


def _places(spec: Spec) -> dict[Value, str]:
    """Returns where each size occurs first: `x.shape[0]`."""
    places: dict[Value, str] = {}
    for given in spec.inputs:
        if isinstance(given.type, Tensor):
            for axis, dim in enumerate(given.type.shape):
                places.setdefault(dim, f"{given.name}.shape[{axis}]")
        elif isinstance(given.type, Term):
            places.setdefault(given.type, given.name)
    return places


def _source(types: Mapping[str, Value], path: InputPath, axis: int | None) -> Dim:
    value = types.get(flat(path))
    if axis is not None and isinstance(value, Tensor) and 0 <= axis < len(value.shape):
        return value.shape[axis]
    if axis is None and isinstance(value, int | Term):
        return value
    raise NotRead("it is about something that is not an input")
