"""Annotations as an input spec: `x: Float[Tensor, "b 3 h w"]` of jaxtyping is `x: float32[b, 3, h, w]`,
`x: TensorType((1, 3, Dyn, Dyn))` of torch.fx is `x: [1, 3, ?, ?]`, and a text may be a spec itself.

`annotation_reader.py` reads the annotations, `jaxtyping_axes.py` the axes of jaxtyping.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from ...constraints.ir.annotations import (
    Annotation,
    Fields,
    Kind,
    OneOf,
    TupleOf,
    speaks_of_shapes,
)
from ...constraints.ir.claims import ANY_ROW, Axis, Claim
from ...constraints.ir.spec_text import SpecError
from ...tracer.host.interpreter import signature
from .annotation_reader import AnnotationReader
from .jaxtyping_axes import HINT, written
from .target import is_graph_module
from .target_error import TargetError

_PREFERRED: Final = ("float32", "int64", "bool", "complex64", "uint8")
"""The dtypes of which the first is checked that an annotation allows."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A tensor among the inputs: its dtype and axes, and the path within the argument, as a spec has it."""

    dtype: str
    axes: tuple[Axis, ...]
    path: str = ""


_Said: TypeAlias = "str | tuple[_Leaf | str, ...] | None"
"""The type of an input as a spec has it, its tensors and the types of its other parts with their paths, or
None.
"""
_ANY: Final = _Leaf("float32", (ANY_ROW,))


def spec_of(target: Any, others: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    """One line of a spec for each parameter of the target that has to be given; a default is left as it is.
    `others` are the types of parameters that say nothing of themselves.

    Raises TargetError where there are more of these, SpecError where a notation has no counterpart.
    """
    if is_graph_module(target):
        return _of_graph(target)
    parameters, said = _annotated(target)
    said |= {name: type for name, type in others.items() if name in said}
    for name, found in said.items():
        if found is None:
            raise TargetError(f"the input {name!r} is not declared, and its annotation has no shape", HINT)
    arguments = {name: _value(name, parameter, said.get(name)) for name, parameter in parameters.items()}
    return _lines(said, arguments, target)


def undeclared(target: Any) -> list[str]:
    """Returns the names of the parameters that have to be given and say nothing of themselves."""
    if is_graph_module(target):
        return []
    return [name for name, found in _annotated(target)[1].items() if found is None]


def _annotated(target: Any) -> tuple[dict[str, inspect.Parameter], dict[str, _Said]]:
    """Returns the parameters, and what the annotations say of those that have to be given."""
    function = _called(target)
    parameters = {n: p for n, p in _parameters(function).items() if p.kind not in _REST}
    reader = AnnotationReader(getattr(inspect.unwrap(function), "__globals__", {}))
    said = {n: _said(reader.read(p.annotation)) for n, p in parameters.items() if p.default is p.empty}
    return parameters, said


def _said(annotation: Annotation) -> _Said:
    """Returns what an annotation says of an input; None where a spec cannot say it, or it says nothing.

    Raises SpecError where it allows several types of tensors.
    """
    match annotation:
        case Kind(name) if name in ("int", "float"):
            return name
        case Claim() | OneOf() | TupleOf() | Fields():
            leaves = [*_leaves(annotation, "")]
            known = tuple(leaf for leaf in leaves if leaf is not None)
            return known if known and len(known) == len(leaves) else None
    return None


def _leaves(annotation: Annotation, path: str) -> Iterator[_Leaf | str | None]:
    """Yields the tensors within an annotation, and the lines of its integers and floats; None for a part that
    a spec cannot declare.
    """
    match annotation:
        case Claim(axes=axes, dtypes=dtypes) if speaks_of_shapes(annotation):
            allowed = dtypes or {"float32"}
            yield _Leaf(next((d for d in _PREFERRED if d in allowed), min(allowed)), axes, path)
        case Kind(name) if name in ("int", "float"):
            yield f"{path}: {name}"
        case OneOf(members):
            shaped = [*dict.fromkeys(filter(speaks_of_shapes, members))]
            if len(shaped) > 1:
                told = " | ".join(getattr(one, "text", "") or type(one).__name__ for one in shaped)
                raise SpecError(f"{told} allows several types, and one is checked at a time", hint=HINT)
            numbers = [one for one in members if isinstance(one, Kind) and one.name in ("int", "float")]
            yield from _leaves((shaped or numbers or [Kind()])[0], path)
        case TupleOf(parts):
            for place, part in enumerate(parts):
                yield from _leaves(part, f"{path}[{place}]")
        case Fields(fields, keys=True):
            for key, part in fields:
                yield from _leaves(part, f'{path}["{key}"]')
        case _:
            yield None


def _lines(said: Mapping[str, _Said], arguments: Mapping[str, str | None], owner: Any = None) -> list[str]:
    """The lines of a spec for the types of inputs; `owner` is the module whose attributes sizes may name."""
    tensors = [one for found in said.values() if isinstance(found, tuple) for one in found]
    axes = [axis for one in tensors if isinstance(one, _Leaf) for axis in one.axes]
    rows = {axis.size for axis in axes if axis.row and axis.size}
    for one in axes:
        others = [other for other in axes if (other.size, other.row) == (one.size, one.row)]
        if one.broadcasts and (len(others) > 1 or not one.size.isidentifier()):
            told = f"{'*' * one.row}#{one.size} is a size that broadcasts"
            raise SpecError(f"{told}, which a spec cannot express", hint=HINT)
    lines = []
    for name, found in said.items():
        if not isinstance(found, tuple):
            lines.append(f"{name}: {found}")
            continue
        for leaf in found:
            if isinstance(leaf, str):
                lines.append(f"{name}{leaf}")
            else:
                sizes = written(name, leaf.axes, arguments, rows, owner)
                lines.append(f"{name}{leaf.path}: {leaf.dtype}[{', '.join(sizes)}]")
    return lines


def _value(name: str, parameter: inspect.Parameter, said: _Said) -> str | None:
    """Returns the value of an integer argument as a spec writes it: its symbol, or the number that it is by
    default.
    """
    if parameter.default is parameter.empty:
        return name if said == "int" else None
    return str(parameter.default) if type(parameter.default) is int else None


def _of_graph(graph_module: Any) -> list[str]:
    """A line for each input of a graph of torch.fx; one that is not annotated is a tensor of any rank."""
    from ...tracer.readers.fx import placeholders

    said: dict[str, _Said] = {}
    for name, annotation, dtype in placeholders(graph_module):
        found = _said(AnnotationReader().read(annotation)) or (_ANY,)
        if isinstance(found, tuple) and dtype:
            found = tuple(replace(one, dtype=dtype) if isinstance(one, _Leaf) else one for one in found)
        said[name] = found
    return _lines(said, {})


_REST = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _called(target: Any) -> Any:
    """The function whose parameters are the inputs: a module's `forward`."""
    forward = getattr(target, "forward", None)
    return forward if callable(forward) else target


def _parameters(function: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return signature(function).parameters
    except (TypeError, ValueError):
        raise TargetError("the parameters of the target cannot be read", HINT) from None
