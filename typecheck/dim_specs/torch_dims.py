"""Specs of dynamic shapes from what `torch.export` is given, and back: torch's dims, hints and containers.

`from_torch` reads the `dynamic_shapes` of an export together with its example inputs, as torch's own dump
does. `to_torch` gives what `torch.export.export` takes.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any, NoReturn, TypeAlias

import sympy
import torch
from torch.export import Dim as TorchDim

from ...constraints.terms.dims import Term, linear_parts, sym
from ...tracer.host.exports import DerivedDim, DimHint, IntWrapper, StaticDim
from ...tracer.host.interpreter import signature
from ...tracer.host.symbolic_shapes import int_oo
from ...tracer.host.trees import pytree
from .dim_names import bearable
from .lowering import lower
from .specs import DimRange, DimSpec, DimSpecError, Entries, Hint, HintKind, Items, ShapeSpec, Size, Tree

Inputs: TypeAlias = list[tuple[str | int, Any]]
"""The inputs in order, each with its name, or with its position if the name is not known."""


# ---- from torch


def from_torch(
    dynamic_shapes: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None,
    target: Any = None,
) -> DimSpec:
    """The spec that `torch.export.export(target, args, kwargs, dynamic_shapes=dynamic_shapes)` is given.

    `dynamic_shapes` is a dict by the names of the inputs, a tuple or list by their order, a
    `ShapesCollection`, `AdditionalInputs`, or None. The result has the inputs by their order where that is
    certain: where the target is given, whose signature tells, or not more than one input is given by name.
    Otherwise it has them by name, if `dynamic_shapes` does.

    Raises DimSpecError where the shapes do not fit the inputs, or make no sense.
    """
    kwargs = kwargs or {}
    inputs = _inputs(args, kwargs, target)
    if callable(find := getattr(dynamic_shapes, "dynamic_shapes", None)):
        dynamic_shapes = _collected(find, args, kwargs, target)
    if dynamic_shapes is None or len(dynamic_shapes) == 0:
        return DimSpec(None)
    reader = _TorchDimsReader()
    named = isinstance(dynamic_shapes, Mapping)
    said = _by_name(dynamic_shapes, inputs) if named else _by_order(dynamic_shapes, inputs)
    trees = tuple((n, reader.tree(value, shape, f"dynamic_shapes[{n!r}]")) for n, value, shape in said)
    if named and target is None and len(kwargs) > 1:
        if any(isinstance(name, int) for name, _ in trees):
            raise DimSpecError("the inputs given by position have no names", hint="give the target")
        return DimSpec(Entries(trees), reader.dims)
    return DimSpec(Items(tuple(tree for _, tree in trees)), reader.dims)


def _inputs(args: Sequence[Any], kwargs: Mapping[str, Any], target: Any) -> Inputs:
    if target is None:
        return [*enumerate(args), *kwargs.items()]
    try:
        takes = signature(getattr(target, "forward", target))
        return [*takes.bind(*args, **kwargs).arguments.items()]
    except (TypeError, ValueError) as error:
        raise DimSpecError(f"the inputs do not fit the target: {error}") from None


def _collected(find: Any, args: Sequence[Any], kwargs: Mapping[str, Any], target: Any) -> Any:
    """Returns the shapes that a collection gives to each input; it finds inputs by identity, or by other
    examples.
    """
    try:
        if target is not None:
            return find(target, tuple(args), dict(kwargs))
        found = find(lambda *args, **kwargs: None, tuple(args), dict(kwargs))
    except ValueError as error:
        raise DimSpecError(str(error)) from None
    return {**dict(enumerate(found.get("args", ()))), **found.get("kwargs", {})}


def _by_name(shapes: Mapping[Any, Any], inputs: Inputs) -> list[tuple[str | int, Any, Any]]:
    """Inputs that are given by position take, in order, the names that no other input has."""
    unnamed = [name for name, _ in inputs if name not in shapes]
    names = iter([key for key in shapes if key not in dict(inputs)])
    called: dict[str | int, Any] = {n: next(names, None) for n in unnamed if isinstance(n, int)}
    extra = next(names, None)
    if extra is not None or None in called.values() or len(called) < len(unnamed):
        told = ", ".join(str(name) if isinstance(name, str) else f"number {name}" for name, _ in inputs)
        raise DimSpecError(
            f"dynamic_shapes names {', '.join(map(str, shapes))}, and the inputs are {told or 'none'}",
            hint="name each input; None means that all its sizes are fixed",
        )
    found = [(called.get(name) or name, value) for name, value in inputs]
    return [(name, value, shapes[name]) for name, value in found]


def _by_order(shapes: Any, inputs: Inputs) -> list[tuple[str | int, Any, Any]]:
    if not isinstance(shapes, list | tuple):
        raise DimSpecError(
            f"dynamic_shapes is of type {_type(shapes)}",
            hint="it is a dict, a tuple, a list, a ShapesCollection or None",
        )
    if len(shapes) != len(inputs):
        raise DimSpecError(f"dynamic_shapes speaks of {len(shapes)} inputs, and there are {len(inputs)}")
    return [(name, value, shape) for (name, value), shape in zip(inputs, shapes, strict=True)]


class _TorchDimsReader:
    """Reads the specs of inputs, and gathers the dims."""

    def __init__(self) -> None:
        self.dims: dict[str, DimRange] = {}

    def tree(self, value: Any, shape: Any, where: str) -> Tree:
        if isinstance(value, torch.Tensor):
            return ShapeSpec(tuple(self.size(size, place) for size, place in _sizes(value, shape, where)))
        children = _children(value)
        if children is None:
            return None if shape is None else self._number(value, shape, where)
        said = _said(value, children, shape, where)
        trees = {key: self.tree(child, said[key], f"{where}[{key!r}]") for key, child in children.items()}
        if isinstance(value, Mapping):
            return Entries(tuple(trees.items()))
        return Items(tuple(trees.values()), "tuple" if isinstance(value, tuple) else "list")

    def _number(self, value: Any, shape: Any, where: str) -> Size:
        if not isinstance(value, int | IntWrapper) or isinstance(value, bool):
            _unfit(where, shape, value)
        size = self.size(shape, where)
        if isinstance(size, Term):
            raise DimSpecError(
                f"{where} is {size}, and the input is an integer",
                hint="torch takes a hint there, such as Dim.AUTO",
            )
        return size

    def size(self, size: Any, where: str) -> Size:
        if isinstance(size, DimHint):
            kind: HintKind = size.type.name  # type: ignore[assignment]
            hint = Hint(kind, _bound(size.min, f"{where}.min"), _bound(size.max, f"{where}.max"))
            DimSpec(hint)  # which checks the bounds
            return hint
        if isinstance(size, StaticDim):
            return int(size.value)
        if isinstance(size, DerivedDim):  # a function that takes 0 to c and 1 to a + c
            constant, following = int(size.fn(0)), int(size.fn(1))
            return (following - constant) * self._root(size.root, where) + constant
        return self._root(size, where) if isinstance(size, TorchDim) else _integer(size, where)

    def _root(self, dim: Any, where: str) -> Term:
        """A named dim, which has the same bounds wherever it occurs."""
        name = dim.__name__
        bounds = DimRange(_bound(dim.min, f"{name}.min") or 0, _bound(dim.max, f"{name}.max"))
        known = DimSpec(None, {name: self.dims.setdefault(name, bounds)}).dims[name]
        if known != bounds:
            raise DimSpecError(
                f"{name} is from {_range(bounds)} at {where}, and from {_range(known)} elsewhere",
                hint="one name is one dim; give the other a name of its own",
            )
        return sym(name)


def _range(bounds: DimRange) -> str:
    return f"{bounds.min} {'on' if bounds.max is None else f'to {bounds.max}'}"


def _sizes(tensor: torch.Tensor, shape: Any, where: str) -> list[tuple[Any, str]]:
    """Returns the spec of each size of a tensor, with its place; STATIC for a size that the shape leaves out.
    """
    if shape is None:
        return [(TorchDim.STATIC, where)] * tensor.dim()
    if isinstance(shape, Mapping):
        for index in shape:
            if type(index) is not int or not 0 <= index < tensor.dim():
                raise DimSpecError(
                    f"{where} speaks of dim {index!r}, and the tensor has {tensor.dim()}",
                    hint="dims are counted from the front, and from 0",
                )
        shape = [shape.get(index) for index in range(tensor.dim())]
    if not isinstance(shape, list | tuple):
        _unfit(where, shape, tensor)
    if len(shape) != tensor.dim():
        raise DimSpecError(f"{where} has {len(shape)} sizes, and the tensor {tensor.dim()}")
    given = zip(shape, tensor.shape, strict=True)
    return [(own if size is None else size, f"{where}[{i}]") for i, (size, own) in enumerate(given)]


def _said(value: Any, children: Mapping[Any, Any], shape: Any, where: str) -> Mapping[Any, Any]:
    """Returns the spec of each part of a container, in a container of the same kind."""
    kind = next((kind for kind in (Mapping, list, tuple) if isinstance(value, kind)), (list, tuple))
    if shape is None:
        return dict.fromkeys(children)
    if not isinstance(shape, kind):
        _unfit(where, shape, value)
    said: Mapping[Any, Any] = shape if isinstance(shape, Mapping) else dict(enumerate(shape))
    if differing := [*(said.keys() ^ children.keys())]:
        raise DimSpecError(f"{where} and the input do not agree on {differing[0]!r}: only one of them has it")
    return said


def _children(value: Any) -> dict[Any, Any] | None:
    """The parts of a container; of a class that pytree knows, what it flattens to."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list | tuple):
        return dict(enumerate(value))
    node = pytree.SUPPORTED_NODES.get(type(value))
    return dict(enumerate(node.flatten_fn(value)[0])) if node else None


def _bound(value: Any, where: str) -> int | None:
    """Returns a bound of a dim; None where it is unbounded."""
    return None if value is None or value in (int_oo, sympy.oo, inf) else _integer(value, where)


def _integer(value: Any, where: str) -> int:
    """Python's own integers, numpy's and sympy's; no booleans, and nothing that torch would have to guard."""
    if not isinstance(value, bool | torch.SymInt | torch.Tensor) and type(value).__name__ != "bool_":
        try:
            return operator.index(value)
        except TypeError:
            pass
    raise DimSpecError(
        f"{where} is {value!r}, of type {_type(value)}",
        hint="a size or a bound is an integer; a size can be a Dim as well, or a hint such as Dim.AUTO",
    )


def _unfit(where: str, shape: Any, value: Any) -> NoReturn:
    raise DimSpecError(f"{where} is a {_type(shape)} and cannot describe a {_type(value)}")


def _type(value: Any) -> str:
    return type(value).__name__


# ---- to torch


def to_torch(
    spec: DimSpec, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None, target: Any = None
) -> tuple[Any, tuple[str, ...]]:
    """Returns the `dynamic_shapes` that `torch.export.export` takes, and the parts of the spec that it cannot
    express.

    Where example inputs are given, lists and tuples follow theirs, since JSON in torch's form does not
    distinguish the two. A name with another meaning in sympy (`N`, `pi`, `lambda`), which torch cannot use
    for a dim, gets an underscore in front.

    Raises DimSpecError where the spec does not fit the inputs, or leaves no sizes.
    """
    lowered = lower(spec)
    names = lowered.spec.dims
    dims = {n: TorchDim(bearable(n, names), min=bounds.min, max=bounds.max) for n, bounds in names.items()}
    inputs = _inputs(args, kwargs or {}, target)
    match lowered.spec.shapes:
        case Items(items):
            values = [value for _, value in inputs] if len(inputs) == len(items) else [...] * len(items)
            shapes: Any = tuple(_built(item, value, dims) for item, value in zip(items, values, strict=True))
        case tree:
            shapes = _built(tree, dict(inputs), dims)
    if inputs:
        from_torch(shapes, args, kwargs, target)
    return shapes, lowered.lost


def _built(tree: Tree, value: Any, dims: Mapping[str, Any]) -> Any:
    """Returns the tree in the form that torch takes, in the containers of an example input where there is
    one.
    """
    match tree:
        case Term():
            return _derived(tree, dims)
        case Hint(kind, low, high):
            hint = getattr(TorchDim, kind)
            return hint if low is high is None else hint(min=low, max=high)
        case Entries(entries):
            keys = {str(key): key for key in value} if isinstance(value, Mapping) else {}
            found = [(keys.get(str(key), key), part) for key, part in entries]
            return {key: _built(part, value[key] if str(key) in keys else ..., dims) for key, part in found}
        case ShapeSpec(parts) | Items(parts):
            inner = [*(_children(value) or {}).values()]
            values = inner if len(inner) == len(parts) else [...] * len(parts)
            built = [_built(part, v, dims) for part, v in zip(parts, values, strict=True)]
            if isinstance(value, tuple) and hasattr(value, "_fields"):
                return type(value)(*built) if len(inner) == len(built) else tuple(built)
            like = value if isinstance(value, list | tuple) else () if _is_tuple(tree) else []
            return tuple(built) if isinstance(like, tuple) else built
    return tree


def _is_tuple(tree: Tree) -> bool:
    return isinstance(tree, Items) and tree.kind == "tuple"


def _derived(size: Term, dims: Mapping[str, Any]) -> Any:
    """a*d + c over torch's dim d."""
    linear = linear_parts(size)
    assert linear is not None, size
    ((atom, factor),), constant = linear
    dim = dims[atom.text]
    dim = dim if factor == 1 else factor * dim
    return dim + constant if constant else dim
