"""Lowers a spec to the part that torch's language of dynamic shapes can express, and reports the lost rest.

torch knows fixed sizes, hints, dims with bounds, and sizes `a*d + c` over one dim d with a >= 1. So an
equation `y == a*d + c` takes the place of y, and a condition on one dim alone becomes its bounds and its
step: `h % 4 == 1` is `4*_h + 1`. Everything else in a spec is left out: the lowered spec describes all sizes
that the spec describes, and more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from ...constraints.terms.dims import Dim, Symbol, Term, linear_parts, substitute, sym, symbols
from ...constraints.terms.formula import (
    And,
    Compare,
    Formula,
    Or,
    all_of,
    any_of,
    conjuncts,
    free_symbols,
    ge,
    le,
    rewrite,
)
from ...constraints.terms.intervals import interval
from ...solver.theory.bounds import Consequences
from ...solver.theory.periodic import solutions
from .specs import (
    LARGEST,
    DimRange,
    DimSpec,
    DimSpecError,
    Entries,
    Hint,
    Items,
    ShapeSpec,
    Size,
    Tree,
    dims_json,
    mapped,
    tensor_sizes,
)

MOST: Final = LARGEST - 1
"""The largest size that a dim of torch's may have."""


@dataclass(frozen=True, slots=True)
class Lowered:
    """A spec in torch's terms, and descriptions of what it cannot express."""

    spec: DimSpec
    lost: tuple[str, ...]


def lower(spec: DimSpec) -> Lowered:
    """The spec with nothing but what torch can say. Raises DimSpecError where no sizes are left at all."""
    return _TorchLowering(spec).lowered()


def to_torch_json(spec: DimSpec) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The spec in torch's schema, byte for byte as torch writes it, and what that does not say."""
    lowered = lower(spec)
    lost = [*lowered.lost]
    tree = _written(lowered.spec.shapes, "dynamic_shapes", lost)
    return {"dynamic_shapes": tree, "dims": dims_json(lowered.spec)}, tuple(lost)


def _written(tree: Tree, where: str, lost: list[str]) -> Any:
    match tree:
        case Term():
            return str(tree)
        case Hint(kind, low, high):
            if (low, high) != (None, None):
                ends = f"from {low or 0} {'on' if high is None else f'to {high}'}"
                lost.append(f"the bounds of {where}, {ends}")
            return f"_DimHint.{kind}"
        case ShapeSpec(parts) | Items(parts):
            if isinstance(tree, Items) and tree.kind == "tuple" and where != "dynamic_shapes":
                lost.append(f"{where} is a tuple, and is read back as a list")
            return [_written(part, f"{where}[{index}]", lost) for index, part in enumerate(parts)]
        case Entries(entries):
            for key, _ in entries:
                if not isinstance(key, str):
                    lost.append(f"the key {key} of {where} is a number, and is read back as a text")
            return {str(key): _written(part, f"{where}[{key!r}]", lost) for key, part in entries}
    return tree


class _TorchLowering:
    """The dims and relations of a spec, rewritten until torch can say them."""

    def __init__(self, spec: DimSpec) -> None:
        self.spec = spec
        self.bounds = dict(spec.dims)
        self.relations: list[Formula] = []
        self.replaced: dict[str, Dim] = {}
        """Names that are replaced by another term."""
        self.standing: dict[Dim, str] = {}
        """Names that replace a term which torch cannot express."""
        self.lost: list[str] = []
        self._learn(*spec.relations, *self._limits())

    def lowered(self) -> Lowered:
        while self._define() or any(self._tighten(name) for name in [*self.bounds]):
            pass
        shapes = mapped(self.spec.shapes, self._size)
        known = Consequences(c for name, b in self.bounds.items() for c in _ends(sym(name), b))
        self.lost += [f"the relation {r}" for r in self.relations if known.ask(r) is not True]
        return Lowered(DimSpec(shapes, self.bounds, (), self.spec.exact and not self.lost), tuple(self.lost))

    def _limits(self) -> Iterator[Formula]:
        """Yields the conditions that sizes lie between 0 and MOST. torch has to see them from the bounds of a
        derived dim.
        """
        for size in tensor_sizes(self.spec.shapes):
            if isinstance(size, Term) and len(names := symbols(size)) == 1:
                yield ge(size, 0)
                if str(size) not in names and self.bounds[min(names)].max is not None:
                    yield le(size, MOST)

    def _learn(self, *formulas: Formula) -> None:
        self.relations = [*dict.fromkeys(c for f in (*self.relations, *formulas) for c in conjuncts(f))]
        if False in self.relations:
            raise DimSpecError("no sizes satisfy the spec", hint="its bounds and relations contradict")

    def _replace(self, name: str, dim: Dim) -> None:
        """Replaces the name by the dim from here on; the bounds of the name pass on to the dim."""
        told = [_rewritten(r, {name: dim}) for r in self.relations]
        self.replaced = {n: substitute(d, {name: dim}) for n, d in self.replaced.items()} | {name: dim}
        self.relations = []
        self._learn(*told, *_ends(dim, self.bounds.pop(name)))

    def _define(self) -> bool:
        """Uses an equation `y == a*d + c` or `y == c` as the definition of y, if there is one."""
        for relation in self.relations:
            if not isinstance(relation, Compare) or relation.op != "==":
                continue
            linear = linear_parts(relation.term)
            for atom, factor in linear[0] if linear else ():
                if isinstance(atom, Symbol) and abs(factor) == 1:
                    other = sym(atom.name) - factor * relation.term
                    if atom.name not in symbols(other) and _is_torch_size(other):
                        self._replace(atom.name, other)
                        return True
        return False

    def _tighten(self, name: str) -> bool:
        """Turns conditions on a single dim into its bounds, and into `m*_d + r` for a dim that is r modulo m.
        """
        about = [r for r in self.relations if free_symbols(r) == {name}]
        old = self.bounds[name]
        if old.min == old.max:
            self._replace(name, old.min)
            return True
        values = solutions(all_of((*about, *_ends(sym(name), old))), name)
        if values is None:
            return False  # too much for the fast path
        if not values:
            raise DimSpecError(f"no value is left for {name}", hint=f"it must satisfy {all_of(about)}")
        self.bounds[name] = DimRange(int(values.min), None if values.max == inf else int(values.max))
        low, high = self.bounds[name].min, self.bounds[name].max
        step, residue = values.congruence()
        if step > 1:
            root = self._unused(f"_{name}")
            self.bounds[root] = DimRange(low // step, None if high is None else high // step)
            self._replace(name, step * sym(root) + residue)
        return old != self.bounds.get(name)

    def _size(self, size: Size, of_tensor: bool) -> Size:
        if isinstance(size, int):
            return size if of_tensor else None
        if not isinstance(size, Term):
            return size
        try:
            dim = substitute(size, self.replaced)
        except ZeroDivisionError:
            raise DimSpecError(f"the size {size} divides by zero where the relations hold") from None
        told = f"{size}, which is {dim}" if dim != size else f"{size}"
        if not of_tensor:
            self.lost.append(f"the value {told}, of an integer input")
            return None if isinstance(dim, int) else Hint("DYNAMIC")
        ranges = {n: (b.min, inf if b.max is None else b.max) for n, b in self.bounds.items()}
        low, high = interval(dim, ranges)
        if high < 0 or low > LARGEST:
            raise DimSpecError(f"no sizes satisfy the spec: {told} is never a valid size")
        if _is_torch_size(dim):
            return dim
        low, high = max(low, 0), min(high, LARGEST)
        if low == high:
            return int(low)
        if dim not in self.standing:
            self.standing[dim] = name = self._unused("")
            self.bounds[name] = DimRange(int(low), None if high == LARGEST else int(high))
            self.lost.append(f"the size {told}, which becomes the dim {name}")
        return sym(self.standing[dim])

    def _unused(self, name: str) -> str:
        """The name, or one like it that is free."""
        taken = {"", *self.bounds, *self.spec.dims, *self.replaced}
        return next(n for n in (name, *(f"{name}_{i}" for i in range(1, len(taken) + 2))) if n not in taken)


def _rewritten(formula: Formula, replacements: Mapping[str, Dim]) -> Formula:
    """The formula with symbols replaced; a comparison that comes to divide by zero does not hold."""
    match formula:
        case And(parts):
            return all_of(_rewritten(part, replacements) for part in parts)
        case Or(parts):
            return any_of(_rewritten(part, replacements) for part in parts)
    try:
        return rewrite(formula, replacements)
    except ZeroDivisionError:
        return False


def _is_torch_size(dim: Dim) -> bool:
    """Returns whether the dim is an integer, or a*d + c over one dim with a >= 1."""
    linear = linear_parts(dim)
    return (
        linear is not None
        and len(linear[0]) <= 1
        and all(isinstance(atom, Symbol) and factor >= 1 for atom, factor in linear[0])
    )


def _ends(dim: Dim, bounds: DimRange) -> Iterable[Formula]:
    """That the bounds hold of a dim."""
    return (ge(dim, bounds.min), *(() if bounds.max is None else (le(dim, bounds.max),)))
