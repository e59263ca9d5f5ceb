"""Gives an exported program exactly the checks of its inputs that are wanted.

A program checks its inputs by the ranges of its symbols (`range_constraints`), by conditions in Python that
`module()` runs first (`_guards_code`), and by assertions in its graph. The first two survive `save` and
`load`, the last also decompositions and compilers. torch derives them from its decisions while it traced.
They may be narrower than the program, and wider than what it was made for: torch does not check that a size
`4*s` is a multiple of 4, nor any lower bound below 3. Here all checks are written from one formula.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from math import inf, isqrt
from typing import Any, Final, TypeAlias

import sympy
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Graph, Node

from ....constraints.ir.language import Fact, Tensor
from ....constraints.ir.spec import Spec
from ....constraints.terms.dims import (
    Apply,
    Atom,
    Dim,
    Symbol,
    Term,
    applications,
    linear_parts,
    maximum,
    substitute,
    sym,
    symbols,
)
from ....constraints.terms.formula import (
    And,
    Compare,
    Formula,
    Or,
    comparisons,
    conjuncts,
    divides,
    eq,
    plain_formula,
    rewrite,
)
from ....tracer.host.alone import alone
from ....tracer.host.exports import guards_of, set_checks
from ....tracer.host.operators import ASSERT_SCALAR
from ....tracer.host.symbolic_shapes import ValueRanges, int_oo
from ....tracer.readers import export
from ....tracer.readers.exported import GraphError
from ....tracer.readers.graph import flat
from .graph_calls import put_call

SIZE: Final = torch.ops.aten.sym_size.int

Place: TypeAlias = "tuple[int, int | None]"
"""An input by its index among the user's, and the axis; None for the value of an integer."""


@alone  # torch would write what is made of symbolic sizes here into a trace that another thread makes
def install(
    program: ExportedProgram, spec: Spec, accepted: Formula, fact: Callable[[Dim], Fact],
    guards: Iterable[str] = (),
) -> tuple[str, ...]:
    """Makes the program refuse all inputs but those that fit the spec with accepted sizes.

    `fact` says what the formula says of a dim; `guards` are conditions of the trace's own that stay, and so
    do the assertions of its graph. Returns the conditions that the program checks now, as Python over
    `L['x'].size()[0]`. Raises GraphError where a condition is too long to be one.
    """
    inputs = _Inputs(program, spec)
    conditions = [*inputs.conditions(accepted)]
    set_checks(program, [*map(inputs.python, conditions), *guards], inputs.ranges(fact))
    graph = program.graph_module.graph
    _CheckWriter(graph, inputs).write(conditions)
    program.graph_module.recompile()
    return guards_of(program)


def symbols_of(program: ExportedProgram, spec: Spec) -> dict[str, Dim]:
    """Returns the spec's terms for torch's symbols, by their names, for those symbols that are a size of an
    input.
    """
    inputs = _Inputs(program, spec)
    found: dict[str, Dim] = {}
    for name, dim in inputs.dims.items():
        size = inputs.value(inputs.places[name])
        if isinstance(size, torch.SymInt) and size.node.expr.is_Symbol:
            found.setdefault(size.node.expr.name, dim)
    return found


class _Inputs:
    """The sizes of a program's inputs, each as a symbol of its own, `size_0`, and what a spec says of it."""

    def __init__(self, program: ExportedProgram, spec: Spec) -> None:
        self.program = program
        kinds = [s.kind is InputKind.USER_INPUT for s in program.graph_signature.input_specs]
        placeholders = [n for n in program.graph.nodes if n.op == "placeholder"]
        self.placeholders = [n for n, user in zip(placeholders, kinds, strict=True) if user]
        self.paths = [d.path for d in export.read(program).spec.inputs]
        declared = {flat(d.path): d.type for d in spec.inputs}
        self.places: dict[str, Place] = {}
        self.dims: dict[str, Dim] = {}
        """The spec's term for each size."""
        for index, path in enumerate(self.paths):
            said = declared.get(flat(path))
            sizes = enumerate(said.shape) if isinstance(said, Tensor) else [(None, said)]
            for axis, dim in sizes:
                if isinstance(dim, int | Term) and not isinstance(dim, bool):
                    name = f"size_{len(self.dims)}"
                    self.places[name], self.dims[name] = (index, axis), dim

    def conditions(self, accepted: Formula) -> Iterator[Formula]:
        """Yields the accepted sizes as conditions on the sizes of the inputs.

        A symbol s whose simplest occurrence is a size z = a*s + c is replaced by (z - c)//a, and a divides z
        - c. Conditions on a symbol that no size shows in this way are left out, and those on numbers that
        floats are rounded to: these are indices, which the operators themselves check.
        """
        shown: dict[str, Dim] = {}
        defining: set[str] = set()
        for name, dim in sorted(self.dims.items(), key=lambda item: len(str(item[1]))):
            if (solved := _solved(dim, sym(name))) is not None and solved[0] not in shown:
                symbol, step, rest = solved
                shown[symbol] = rest // step
                defining.add(name)
                yield from conjuncts(divides(step, rest))
        for name, dim in self.dims.items():
            if name not in defining and symbols(dim) <= shown.keys():
                yield from conjuncts(eq(sym(name), substitute(dim, shown)))
        for formula in conjuncts(accepted):
            terms = [c.term for c in comparisons(formula)]
            floats = any(atom.op == "rounded" for atom in applications(*terms))
            if not floats and all(symbols(term) <= shown.keys() for term in terms):
                yield from conjuncts(rewrite(formula, shown))

    def python(self, condition: Formula) -> str:
        """Returns the condition as Python: `L['x'].size()[0] % 4 == 0`. Raises GraphError if a part of it
        cannot be written.
        """
        if any(atom.is_abbreviated for c in comparisons(condition) for atom in applications(c.term)):
            raise GraphError(f"a condition on its sizes is too long to be checked: {condition}")
        text = plain_formula(condition).replace("isqrt(", "math.isqrt(")
        return re.sub(r"\bsize_\d+\b", lambda found: self._source(self.places[found[0]]), text)

    def _source(self, place: Place) -> str:
        index, axis = place
        source = f"L{''.join(f'[{step!r}]' for step in self.paths[index])}"
        return source if axis is None else f"{source}.size()[{axis}]"

    def value(self, place: Place) -> Any:
        """The size as the trace has it."""
        index, axis = place
        value = self.placeholders[index].meta.get("val")
        return value if axis is None else value.shape[axis]

    def ranges(self, fact: Callable[[Dim], Fact]) -> dict[Any, Any]:
        """The ranges of the sizes, of the symbols in them, and those of sizes that the data decides."""
        found: dict[Any, Any] = {}
        for name, dim in self.dims.items():
            size = self.value(self.places[name])
            if isinstance(size, torch.SymInt) and not size.node.expr.is_number:
                known = fact(dim)
                low, high = known.min or 0, inf if known.max is None else known.max
                for expr, least, most in _of_root(size.node.expr, max(low, 0), high):
                    found[expr] = ValueRanges(least, int_oo if most == inf else int(most))
        known_symbols = {s for expr in found for s in expr.free_symbols}
        for expr, old in self.program.range_constraints.items():
            if not expr.free_symbols <= known_symbols:
                found.setdefault(expr, old)
        return found


def _solved(dim: Dim, size: Term) -> tuple[str, int, Dim] | None:
    """`(s, a, r)`, a > 0, with `dim == size` just where `a*s == r`; None where the dim is not `a*s + c`."""
    parts = linear_parts(dim)
    if parts is None or len(parts[0]) != 1 or not isinstance(parts[0][0][0], Symbol):
        return None
    ((atom, step),), constant = parts
    return atom.text, abs(step), size - constant if step > 0 else constant - size


def _of_root(expr: Any, low: int, high: float) -> Iterator[tuple[Any, int, float]]:
    """The range of an expression, and of s if it is `a*s + c` with a > 0."""
    yield expr, low, high
    if len(expr.free_symbols) == 1 and not expr.is_Symbol:
        (symbol,) = expr.free_symbols
        parts = sympy.Poly(expr, symbol).all_coeffs() if expr.is_polynomial(symbol) else []
        if len(parts) == 2 and parts[0] > 0:
            step, start = map(int, parts)
            most = inf if high == inf else (int(high) - start) // step
            yield symbol, max(-((start - low) // step), 0), most


# ---- the graph


class _CheckWriter:
    """Writes conditions into a graph, in front of everything that the program computes."""

    def __init__(self, graph: Graph, inputs: _Inputs) -> None:
        self.graph, self.inputs = graph, inputs
        self.done: dict[Atom, Node | int] = {}
        """Sizes, and nodes computed from them, that are written already: nested dims contain many copies."""

    def write(self, conditions: list[Formula]) -> None:
        """Asserts each condition that the types of the inputs leave open."""
        first = next(n for n in self.graph.nodes if n.op != "placeholder")
        with self.graph.inserting_before(first):
            for condition in conditions:
                if _divides_by_symbols(condition):
                    continue  # no short circuit in a graph; the conditions in Python have it
                if isinstance(holds := self._holds(condition), Node):
                    message = f"the sizes of the inputs do not fit: {self.inputs.python(condition)}"
                    self.graph.call_function(ASSERT_SCALAR, (holds, message)).meta["val"] = None
        written = first.prev
        while written.op != "placeholder" and written.op != "root":
            written, last = written.prev, written
            if not last.users and last.target is not ASSERT_SCALAR:  # of a condition that the types decide
                self.graph.erase_node(last)

    def _holds(self, formula: Formula) -> Node | int:
        if isinstance(formula, Compare):
            compare = {"==": operator.eq, "!=": operator.ne, ">=": operator.ge}[formula.op]
            return self._all(compare, [self._dim(formula.term), 0])
        return self._all(operator.ge, [self._margin(formula), 0])

    def _margin(self, formula: Formula) -> Node | int:
        """A number that is at least 0 where the formula holds.

        It is t of t >= 0, min(t, -t) of t == 0, max(t, -t) - 1 of t != 0; the least of several for `and`,
        the greatest for `or`.
        """
        match formula:
            case Compare(">=", term):
                return self._dim(term)
            case Compare("==", term):
                return self._all(torch.sym_min, [self._dim(term), self._dim(-term)])
            case Compare(_, term):
                distance = self._all(torch.sym_max, [self._dim(term), self._dim(-term)])
                return self._all(operator.sub, [distance, 1])
            case And(parts):
                return self._all(torch.sym_min, [self._margin(p) for p in parts])
            case Or(parts):
                return self._all(torch.sym_max, [self._margin(p) for p in parts])
        return 0 if formula else -1

    def _dim(self, dim: Dim) -> Node | int:
        if isinstance(dim, int):
            return dim
        parts: list[Node | int] = []
        for mono, factor in dim.terms:
            factors = [*map(self._atom, mono), *([factor] if factor != 1 or not mono else [])]
            parts.append(self._all(operator.mul, factors))
        return self._all(operator.add, parts)

    def _atom(self, atom: Atom) -> Node | int:
        if atom not in self.done:
            self.done[atom] = self._size(atom) if isinstance(atom, Symbol) else self._applied(atom)
        return self.done[atom]

    def _applied(self, atom: Apply) -> Node | int:
        if atom.op == "isqrt":
            return self._root(self._dim(atom.args[0]))
        if atom.op == "**":
            return self._all(operator.pow, [self._dim(atom.args[0]), self._dim(maximum(atom.args[1], 0))])
        return self._all(_OPERATORS[atom.op], [*map(self._dim, atom.args)])

    def _size(self, symbol: Symbol) -> Node | int:
        index, axis = place = self.inputs.places[symbol.name]
        placeholder, value = self.inputs.placeholders[index], self.inputs.value(place)
        if isinstance(value, int) or axis is None:
            return value if isinstance(value, int) else placeholder
        node = self.graph.call_function(SIZE, (placeholder, axis))
        node.meta["val"] = value
        return node

    def _root(self, square: Node | int) -> Node | int:
        """floor(sqrt(n)) of an n >= 0 below 2**52, for which the float is exact enough."""
        if isinstance(square, int):
            return isqrt(max(square, 0))
        root = put_call(self.graph, operator.pow, put_call(self.graph, torch.sym_float, square), 0.5)
        floor: Node = put_call(self.graph, math.trunc, root)
        return floor

    def _all(self, function: Any, parts: list[Node | int]) -> Node | int:
        first, *rest = parts
        for part in rest:
            first = put_call(self.graph, function, first, part)
        return first


_OPERATORS: Final = {"//": operator.floordiv, "%": operator.mod, "min": torch.sym_min, "max": torch.sym_max}


def _divides_by_symbols(formula: Formula) -> bool:
    divisions = (a for c in comparisons(formula) for a in applications(c.term) if a.op in ("//", "%"))
    return any(not isinstance(atom.args[1], int) for atom in divisions)
