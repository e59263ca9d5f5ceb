"""Annotations of values as data: the tensors and containers of tensors that a program declares.

`Annotations` states the condition that a value is as annotated. Names of sizes are those of one call of a
function: an annotation of an argument binds them, and those of other arguments, of variables and of the
result refer to them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from inspect import getattr_static
from typing import Any, Final, TypeAlias

from ..terms.dims import Dim, Term, substitute
from ..terms.formula import Formula, all_of
from ..terms.rows import place_of
from .claims import Axis, BoundNames, Claim, claimed, size_of
from .language import Tensor
from .spec_text import SpecError


@dataclass(frozen=True, slots=True)
class Kind:
    """A value that is no tensor: of this type of Python's, or with an empty name of one that is not known."""

    name: str = ""


@dataclass(frozen=True, slots=True)
class OneOf:
    """A value that fits one of these, tried in their order."""

    members: tuple[Annotation, ...]


@dataclass(frozen=True, slots=True)
class Each:
    """A list, a tuple or a dict, all of whose values fit."""

    of: Annotation


@dataclass(frozen=True, slots=True)
class TupleOf:
    """A tuple of so many parts."""

    parts: tuple[Annotation, ...]


@dataclass(frozen=True, slots=True)
class Fields:
    """A value with attributes, or a dict with keys, of these names."""

    of: tuple[tuple[str, Annotation], ...]
    keys: bool = False


@dataclass(frozen=True, slots=True)
class Tree:
    """Lists, tuples and dicts within one another, with leaves that fit. Trees with the same name of a
    structure have the same structure.
    """

    of: Annotation
    structure: str = ""


@dataclass(frozen=True, slots=True)
class Unread:
    """An annotation that states something of shapes and cannot be read."""

    reason: str


Annotation: TypeAlias = "Claim | Kind | OneOf | Each | TupleOf | Fields | Tree | Unread"
ANYTHING: Final = Kind()
_BUILTIN: Final = {"NoneType", "bool", "int", "float", "complex", "str", "list", "tuple", "dict"}
"""Types of which no instance is a tensor."""


def parts_of(annotation: Annotation) -> tuple[Annotation, ...]:
    """Returns the annotations directly within one."""
    match annotation:
        case OneOf(parts) | TupleOf(parts):
            return parts
        case Each(of) | Tree(of):
            return (of,)
        case Fields(of):
            return tuple(part for _, part in of)
    return ()


def speaks_of_shapes(annotation: Annotation) -> bool:
    """Returns whether an annotation states anything of a tensor."""
    if isinstance(annotation, Claim):
        return annotation.dtypes is not None or annotation.text != ""
    return isinstance(annotation, Unread) or any(map(speaks_of_shapes, parts_of(annotation)))


@dataclass(frozen=True, slots=True)
class Expected:
    """The condition that a part of a value is as annotated, and the words for where it is false."""

    formula: Formula
    reason: str


@dataclass(frozen=True, slots=True)
class ValuesOfRun:
    """What has to be known of values to compare them with annotations."""

    tensor: Callable[[Any, Claim], Tensor | None]
    """Returns the type of a tensor, with as many dims as the claim mentions; None for what is no tensor."""
    size: Callable[[Any], Dim | None]
    """Returns the size that an integer is; None for what is no integer."""
    elements: Callable[[Any], Iterable[Any]]
    """Returns the elements of a list or tuple. Raises SpecError where their number is not known."""
    decide: Callable[[Formula], bool]
    """Returns the outcome of a condition."""


class Annotations:
    """The annotations of one call of a function."""

    def __init__(self, host: ValuesOfRun, arguments: Mapping[str, Any]) -> None:
        self._host, self._arguments = host, arguments
        self.names = BoundNames()
        self._structures: dict[str, Any] = {}
        self._inserted = 0

    def met(self, annotation: Annotation, value: Any) -> Iterator[Expected]:
        """Yields what has to hold for a value to be as annotated.

        Raises SpecError where that cannot be said, RanksOpen where a rank is not known.
        """
        return self._met(annotation, value, "")

    def _met(self, annotation: Annotation, value: Any, leaf: str) -> Iterator[Expected]:
        match annotation:
            case Claim():
                yield from self._of_tensor(annotation, value, leaf)
            case Unread(reason):
                raise SpecError(reason)
            case OneOf(members):
                yield from self._of_one(members, value, leaf)
            case Each(of):
                for part in self._elements(value):
                    yield from self._met(of, part, leaf)
            case TupleOf(parts):
                yield from self._of_several(parts, value, leaf)
            case Fields(fields, keys):
                for name, of in fields:
                    if keys and isinstance(value, Mapping):
                        if name in value:
                            yield from self._met(of, value[name], leaf)
                    elif not keys and hasattr(value, name):
                        yield from self._met(of, getattr(value, name), leaf)
            case Tree():
                yield from self._of_tree(annotation, value)

    def _of_tensor(self, claim: Claim, value: Any, leaf: str) -> Iterator[Expected]:
        filled = replace(claim, axes=tuple(self._filled(axis, claim) for axis in claim.axes))
        tensor = self._host.tensor(value, filled)
        if tensor is None:
            if (kind := type(value).__name__) in _BUILTIN or self._host.size(value) is not None:
                yield Expected(False, f"declared {claim.text}, found {kind}")
            return
        reason = f"declared {claim.text}, found {tensor}"
        if claim.dtypes is not None:
            if tensor.dtype is None:
                raise SpecError("the dtype of the value is not known")
            if tensor.dtype not in claim.dtypes:
                yield Expected(False, reason)
                return
        yield Expected(claimed(filled, tensor.shape, self.names, leaf), reason)

    def _filled(self, axis: Axis, claim: Claim) -> Axis:
        """Returns the axis with the values of what stands in braces, which are inserted as texts."""
        if "{" not in axis.size:
            return axis
        filled = BRACES.sub(lambda found: self._value(found, claim), axis.size)
        return replace(axis, size=f"({filled})")  # a term, even if it has become a name

    def _value(self, found: re.Match[str], claim: Claim) -> str:
        values: dict[str, Dim] = {}

        def looked_up(path: re.Match[str]) -> str:
            value = self._host.size(looked_up_in(path[0], self._arguments))
            if value is None:
                raise SpecError(f"{path[0]} is not an integer that an argument has", claim.text)
            values[name := f"_{len(values)}"] = value
            return name

        inside = PATH.sub(looked_up, found[1])
        value = substitute(size_of(inside, claim.text), values)
        if not isinstance(value, Term):
            return str(value)
        if joins(found):
            raise SpecError(f"{found[0]} is a part of a name, and has many values", claim.text)
        self._inserted += 1
        self.names.meet(Axis(name := f"_{self._inserted}"), (value,))  # no name of a size begins so
        return name

    def _of_one(self, members: tuple[Annotation, ...], value: Any, leaf: str) -> Iterator[Expected]:
        fitting = [member for member in members if self._may_fit(member, value)]
        if not fitting:
            yield from self._met(next(filter(speaks_of_shapes, members), ANYTHING), value, leaf)
            return
        *others, last = fitting
        for member in others:
            before, self.names = self.names, self.names.copy()
            if self._host.decide(all_of(part.formula for part in [*self._met(member, value, leaf)])):
                return
            self.names = before
        yield from self._met(last, value, leaf)

    def _may_fit(self, member: Annotation, value: Any) -> bool:
        """Returns whether a value is of the kind of a member of a union, whatever its sizes are."""
        match member:
            case Claim(axes=axes, dtypes=dtypes):
                tensor = self._host.tensor(value, _ANY)
                if tensor is None:
                    return type(value).__name__ not in _BUILTIN and self._host.size(value) is None
                ranks_differ = len(tensor.shape) != len(axes) and not any(axis.row for axis in axes)
                is_known = tensor.dtype is not None and place_of(tensor.shape) is None
                return not is_known or (not ranks_differ and (dtypes is None or tensor.dtype in dtypes))
            case Kind(name):
                is_tensor = self._host.tensor(value, _ANY) is not None
                is_size = name in ("int", "float") and self._host.size(value) is not None
                return not is_tensor and (not name or is_size or type(value).__name__ == name)
            case TupleOf(parts):
                return isinstance(value, tuple | list) and len(value) == len(parts)
            case Each():
                return isinstance(value, list | tuple | Mapping)
        return True

    def _of_several(self, parts: tuple[Annotation, ...], value: Any, leaf: str) -> Iterator[Expected]:
        if not isinstance(value, tuple | list):
            if type(value).__name__ in _BUILTIN or self._host.tensor(value, _ANY) is not None:
                yield Expected(False, f"declared a tuple of {len(parts)}, found {type(value).__name__}")
        elif len(value) != len(parts):
            yield Expected(False, f"declared a tuple of {len(parts)}, found one of {len(value)}")
        else:
            for part, one in zip(parts, self._host.elements(value), strict=True):
                yield from self._met(part, one, leaf)

    def _of_tree(self, tree: Tree, value: Any) -> Iterator[Expected]:
        leaves, structure = [*self._leaves(value)], _structure(value)
        if tree.structure:
            if not tree.structure.isidentifier():
                raise SpecError(f"the structure {tree.structure!r} of a PyTree is not compared")
            known = self._structures.setdefault(tree.structure, structure)
            if known != structure:
                yield Expected(False, f"declared a PyTree of structure {tree.structure}, found another")
                return
        for index, leaf in enumerate(leaves):
            yield from self._met(tree.of, leaf, f"{index}:")

    def _elements(self, value: Any) -> Iterable[Any]:
        if isinstance(value, Mapping):
            return value.values()
        return self._host.elements(value) if isinstance(value, list | tuple) else ()

    def _leaves(self, value: Any) -> Iterator[Any]:
        if isinstance(value, Mapping | list | tuple):
            for part in self._elements(value):
                yield from self._leaves(part)
        elif value is not None:
            yield value


_ANY: Final = Claim("", (Axis(row=True),))
BRACES: Final = re.compile(r"\{([^{}]*)\}")
"""`{n}` within a size."""
PATH: Final = re.compile(r"(?<![\w.])[^\W\d]\w*(?:\.[^\W\d]\w*)*(?!\w*\s*\()")
"""`n` and `self.n` within an expression, but for the name of a function."""


def joins(found: re.Match[str]) -> bool:
    """Returns whether braces stand at a name, of which their value becomes a part: `c{n}`."""
    text = found.string
    around = text[: found.start()][-1:], text[found.end() :][:1]
    return any(one.isalnum() or one in ("_", "{", "}") for one in around if one)


def looked_up_in(path: str, arguments: Mapping[str, Any]) -> Any:
    """Returns the value that a path of attributes leads to; None where it leads to none. No code runs: a
    property has no value.
    """
    root, *names = path.split(".")
    value = arguments.get(root)
    for name in names:
        value = getattr_static(value, name, None)
    return value


def _structure(value: Any) -> Any:
    if isinstance(value, Mapping):
        return type(value), {key: _structure(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value), [*map(_structure, value)]
    return value is None
