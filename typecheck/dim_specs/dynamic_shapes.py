"""Returns the largest part of the accepted sizes that `torch.export` can express as a spec, and the rest.

torch's language has fixed sizes, `Dim`s with a range, sizes `step*dim + start`, and dims that sizes share: a
box (solver/facts/boxes.py). Of an accepted set that is no box a part is described, and the sizes left out are
reported. A trace holds one path through the program, so where sizes take different paths one is chosen, too.

Nothing here imports torch: `to_torch` is a step of its own, and `to_python` writes it for others to take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import asdict, dataclass
from math import prod
from typing import Any, Final, Literal

from ...constraints.ir.language import Tensor
from ...constraints.ir.spec import Declared, Spec
from ...constraints.ir.spec_text import parse_spec
from ...constraints.terms.dims import Dim, Term, evaluate, substitute, sym, symbols
from ...constraints.terms.formula import Formula, conjuncts, eq, free_symbols, ge
from ...solver.facts import boxes
from ...solver.facts.boxes import Box
from ...solver.facts.progressions import HORIZON
from ...solver.tactics.judge import Budget, Judge
from ...solver.theory.periodic import solutions
from ..report.report import ReportData, Verdict
from .python import to_python
from .specs import DimRange, DimSpec, Entries, Hint, Items, ShapeSpec, Size, Tree, sizes
from .specs import to_json as spec_json

SECONDS: Final = 20.0
"""The time limit of choosing, in seconds. At its end, sizes stay numbers that could have been more."""
SMALL: Final = 2_000_000
"""Elements of all inputs together. A path that only larger inputs take, such as that of a model which splits
tensors with more than 2**31 elements, is chosen only if no other exists.
"""


@dataclass(frozen=True, slots=True)
class GivenUp:
    """Something that the accepted sizes may do and those of the spec may not."""

    cause: Literal["language", "way", "trace"]
    """The cause: torch's language cannot express it, a trace contains one path through a program, or the
    trace fixes a size.
    """
    condition: str
    """The accepted sizes, as a formula over the symbols."""
    kept: str
    """The part of them that the spec keeps."""
    reason: str
    """The reason why the rest is given up, in a sentence."""

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True, slots=True)
class DynamicShapes:
    """A spec in torch's language, all of whose sizes are accepted."""

    spec: DimSpec
    """The inputs by name, over the named dims."""
    box: Box
    """Each symbol of the input spec, over the same dims and those of integer inputs."""
    given_up: tuple[GivenUp, ...] = ()
    notes: tuple[str, ...] = ()
    """Remarks on torch's behaviour for the reader."""
    proved: bool = True
    """False where the accepted set itself is not known for certain."""
    way: Formula = True
    """The sizes that take the path through the program that the spec describes."""

    @property
    def exact(self) -> bool:
        """Returns whether all accepted sizes are described."""
        return self.spec.exact

    @property
    def formula(self) -> Formula:
        """The sizes that are described, as a condition on the symbols of the input spec."""
        return self.box.formula()

    def to_json(self) -> dict[str, Any]:
        """Plain data for `json.dump`: the spec in the schema of `dim_specs`, and what was given up."""
        return {
            **spec_json(self.spec),
            "sizes": {n: s if isinstance(s, int) else str(s) for n, s in self.box.sizes.items()},
            "given_up": [asdict(given_up) for given_up in self.given_up],
            "notes": [*self.notes],
            "proved": self.proved,
        }

    def to_python(self) -> str:
        """The spec as Python to paste: the dims, and `dynamic_shapes`."""
        return to_python(self.spec, [*(f"given up: {given_up}" for given_up in self.given_up), *self.notes])

    def to_torch(self, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None) -> Any:
        """The `dynamic_shapes` argument of `torch.export.export`; lists and tuples follow the example inputs.
        """
        from .torch_dims import to_torch

        return to_torch(self.spec, args, kwargs)[0]

    def __str__(self) -> str:
        return self.to_python()


def of_report(
    report: ReportData, given: Iterable[Formula] = (), seconds: float = SECONDS
) -> DynamicShapes | None:
    """The largest spec that was found within what a report says is accepted; None where nothing is.

    `given` narrows the sizes further: what a trace is known to fix.
    """
    if report.verdict is Verdict.REFUTED:
        return None
    chooser = _Chooser(parse_spec(report.inputs), report, tuple(given), Judge(Budget(seconds)))
    return chooser.chosen()


class _Chooser:
    """Chooses the way and the box, and tells what both leave out."""

    def __init__(self, spec: Spec, report: ReportData, given: tuple[Formula, ...], judge: Judge) -> None:
        self.spec, self.report, self.judge = spec, report, judge
        self.names = spec.domain.symbols
        self.lone = [min(symbols(d.type)) for d in spec.inputs if _is_integer(d) and isinstance(d.type, Term)]
        self.wanted = [dim for d in spec.inputs for dim in _dims(d)]
        accepts = report.accepts
        self.domain = [*conjuncts(accepts.domain)]
        self.accepted = [*self.domain, *conjuncts(report.supposed)]
        self.given = [*given, *(ge(sym(name), 0) for name in self.lone)]
        """torch's dynamic integers are sizes, and not below 0."""

    def chosen(self) -> DynamicShapes | None:
        found = [(way, box) for way in self.report.ways or (True,) if (box := self._box(way)) is not None]
        if not found:
            return None
        way, box = max(found, key=lambda pair: self._worth(pair[1]))
        exact = boxes.is_all(self.judge, box, self.accepted)
        given_up = () if exact else tuple(self._given_up(way, box))
        return DynamicShapes(
            _dim_spec(self.spec, box, exact, self._fixed(box)),
            box,
            given_up,
            tuple(self._notes(box)),
            self.report.accepts.exact,
            way,
        )

    def _worth(self, box: Box) -> tuple[object, ...]:
        """Returns a sort key for the path that the sizes of a box take: the greatest is the best.

        Preferred are, in this order, small inputs, usual sizes, unbounded roots, sizes that are multiples
        where they go in steps, and a large box.
        """
        least = box.at({root.name: root.low for root in box.roots})
        usual = all(size <= HORIZON for size in least.values())
        even = sum(substitute(size, dict.fromkeys(symbols(size), 0)) == 0 for size in box.sizes.values())
        return self._least(box) <= SMALL, usual, box.rank[0], even, box.rank

    def _least(self, box: Box) -> int:
        """The elements of all inputs together, at the smallest sizes of the box: what an example costs."""
        values = box.at({root.name: root.low for root in box.roots})
        shapes = [d.type.shape for d in self.spec.inputs if isinstance(d.type, Tensor)]
        return sum(prod(evaluate(dim, values) for dim in shape) for shape in shapes)

    def _box(self, way: Formula) -> Box | None:
        """Returns the largest box found on one path of the program; None where no accepted size takes that
        path.
        """
        accepted = [*self.accepted, *self.given, *conjuncts(way)]
        if self.judge.satisfiable(accepted, self.names) != "sat":
            return None
        seed = {name: self.judge.model[name] for name in self.names}
        box = boxes.largest_box(self.judge, self.names, accepted, seed, self.wanted, self.lone)
        if boxes.proved(self.judge, box, accepted):
            return box
        return Box(seed, ())  # sizes that are accepted: nothing is left to prove

    # --- what is left out

    def _given_up(self, way: Formula, box: Box) -> Iterator[GivenUp]:
        narrowed = [*self.accepted]
        if way is not True and not self._follows(way, self.accepted):
            yield self._other_ways(way, box)
            narrowed += conjuncts(way)
        for formula in conjuncts(self.report.supposed):
            names = free_symbols(formula)
            if not _is_plain(formula) and not self._follows(_restricted(box, names), narrowed):
                kept = _kept(box, names)
                reason = f"no Dim can express `{formula}`; the spec keeps {kept}"
                yield GivenUp("language", str(formula), kept, reason)
                narrowed.append(_restricted(box, names))
        fixed = self._fixed(box)
        for formula in self.given:
            names = free_symbols(formula)
            if not self._follows(formula, narrowed):
                kept = _kept(box, names)
                reason = (
                    f"torch's trace takes {_listed(sorted(names))} at the size of the example alone"
                    if names <= fixed
                    else f"torch's trace takes fewer sizes than the model; the spec keeps {kept}"
                )
                yield GivenUp("trace", "", kept, reason)
                narrowed.append(_restricted(box, names))
        for dim in dict.fromkeys(self.wanted):
            if isinstance(dim, Term) and not self._follows(_restricted(box, symbols(dim)), narrowed):
                kept = _kept(box, symbols(dim))
                reason = f"no Dim can express `{dim}`, the size of an input; the spec keeps {kept}"
                yield GivenUp("language", "", kept, reason)
                narrowed.append(_restricted(box, symbols(dim)))

    def _fixed(self, box: Box) -> set[str]:
        """Returns the symbols of which a trace takes one size alone, that of its example."""
        numbers = {name: eq(sym(name), size) for name, size in box.sizes.items() if isinstance(size, int)}
        return {
            name
            for name, only in numbers.items()
            if any(free_symbols(f) == {name} for f in self.given)
            and self._follows(only, [*self.accepted, *self.given])
            and not self._follows(only, self.accepted)
        }

    def _follows(self, formula: Formula, given: list[Formula]) -> bool:
        return self.judge.follows(formula, given)

    def _other_ways(self, way: Formula, box: Box) -> GivenUp:
        """Returns the note that sizes on other paths are given up, with the path that the spec takes and the
        lines at which the program branches.
        """
        lines = []
        for branch in self.report.branches:
            if branch.outcome == "explored" and branch.condition:
                place = f"{branch.origin}: {branch.origin.code}" if branch.origin.code else f"{branch.origin}"
                lines.append(place.strip())
        where = f" ({'; '.join(dict.fromkeys(lines[:3]))})" if lines else ""
        kept = _kept(box, free_symbols(way) or {*box.sizes})
        others = f"other sizes take another{where}"
        reason = f"a trace holds one path through the program, here for {kept}; {others}"
        return GivenUp("way", str(way), kept, reason)

    def _notes(self, box: Box) -> Iterator[str]:
        ones = [r.name for r in box.roots if r.low <= 1 and sym(r.name) in box.sizes.values()]
        if ones:
            yield (
                f"{_listed(ones)} may be 1: torch.export traces as if sizes were at least 2, and in some "
                "cases refuses 1, unless torch.fx.experimental._config.backed_size_oblivious is set"
            )


def _is_integer(declared: Declared) -> bool:
    return isinstance(declared.type, int | Term) and not isinstance(declared.type, bool)


def _dims(declared: Declared) -> tuple[Dim, ...]:
    match declared.type:
        case Tensor(shape=shape):
            return shape
        case Term() as term:
            return (term,)
    return ()


def _is_plain(formula: Formula) -> bool:
    """Returns whether the formula is a range or a step of one symbol, which a Dim can express."""
    names = free_symbols(formula)
    if len(names) != 1:
        return not names
    values = solutions(formula, min(names))
    return values is not None and values.runs(1) is not None


def _restricted(box: Box, names: Iterable[str]) -> Formula:
    """Returns the conditions of the box on some symbols."""
    return Box({n: s for n, s in box.sizes.items() if n in {*names}}, box.roots).formula()


def _kept(box: Box, names: Iterable[str]) -> str:
    """Returns the conditions of the box on some symbols as text: `h = 2*_h with 1 <= _h`, `c = b`."""
    wanted = {*names}
    sizes = {n: s for n, s in box.sizes.items() if n in wanted}
    used = frozenset().union(*map(symbols, sizes.values()))
    said = [f"{name} = {size}" for name, size in sizes.items() if size != sym(name)]
    roots = [r for r in box.roots if r.name in used]
    return ", ".join(said + [f"{r.low} <= {r.name}" + _at_most(r.high) for r in roots])


def _at_most(high: int | None) -> str:
    return "" if high is None else f" <= {high}"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


# ---- the inputs, as a tree


def tree_of(spec: Spec, said: Callable[[Dim], Size], number: Callable[[Term], Size]) -> Tree:
    """Returns the inputs by name, with the spec of each size of a tensor, and of the value of each integer
    input.
    """
    tree: dict[str | int, Any] = {}
    for declared in spec.inputs:
        part: Tree = None
        if isinstance(declared.type, Tensor):
            part = ShapeSpec(tuple(map(said, declared.type.shape)))
        elif isinstance(declared.type, Term):
            part = number(declared.type)
        _put(tree, declared.path, part)
    return Entries(tuple((key, _tree(part)) for key, part in tree.items()))


def _dim_spec(spec: Spec, box: Box, exact: bool, fixed: Set[str]) -> DimSpec:
    """Returns the spec of the inputs. The sizes that depend on the fixed symbols are those of the example."""

    def size(dim: Dim) -> Size:
        return Hint("STATIC") if symbols(dim) & fixed else substitute(dim, box.sizes)

    shapes = tree_of(spec, size, lambda value: _number(value, box))
    used = frozenset().union(*(symbols(s) for _, s in sizes(shapes) if isinstance(s, Term)))
    return DimSpec(shapes, {r.name: DimRange(r.low, r.high) for r in box.roots if r.name in used}, (), exact)


def _number(value: Term, box: Box) -> Size:
    """An integer input varies by a hint, for torch has no Dims for those."""
    size = substitute(value, box.sizes)
    if isinstance(size, int):
        return None
    (root,) = (r for r in box.roots if r.name in symbols(size))
    low = substitute(size, {root.name: root.low})
    high = None if root.high is None else substitute(size, {root.name: root.high})
    assert isinstance(low, int) and not isinstance(high, Term)
    return Hint("DYNAMIC", low, high)


def _put(tree: dict[str | int, Any], path: tuple[str | int, ...], value: Tree) -> None:
    *steps, last = path
    for step in steps:
        tree = tree.setdefault(step, {})
    tree[last] = value


def _tree(value: Any) -> Tree:
    """Nested dicts as a tree: keys that are numbers make a list."""
    if not isinstance(value, dict):
        found: Tree = value
        return found
    if all(isinstance(key, int) for key in value):
        return Items(tuple(_tree(value[key]) for key in sorted(value)))
    return Entries(tuple((key, _tree(part)) for key, part in value.items()))

