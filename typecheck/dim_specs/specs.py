"""Specs of dynamic shapes as plain data: the sizes of inputs that vary, and the conditions on them, as JSON.

Two schemas are read, by the same reader. torch's own (`torch._export.serde.dynamic_shapes`) is

    spec  = {"dynamic_shapes": tree, "dims": {name: {"min": int, "max": int | null, "derived": [text]}}}
    tree  = null | size | [tree, …] | {key: tree}
    size  = int | "name" | "2*name + 1" | "_DimHint.AUTO" | "_DimHint.DYNAMIC" | "_DimHint.STATIC"

and ours, which has a version, is a superset of it. A size is any term over the dims, and there are

    spec  = {"version": 1, "dynamic_shapes": …, "dims": …, "relations": [formula, …], "exact": bool}
    tree  = … | {"$tuple": [tree, …]} | {"$list": [tree, …]} | {"$dict": [[key, tree], …]}
          | {"$sizes": [size, …]} | {"$hint": "AUTO", "min": int | null, "max": int | null}

A list of sizes is the shape of a tensor; `$list` says of one that it is a list of inputs. Terms and formulas
are read by the grammars of `constraints`, and nothing is ever evaluated. Whatever is no spec ends in a
DimSpecError that says where and why.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NoReturn, TypeAlias, TypeVar, get_args

from ...constraints.ir.spec_text import SpecError, suggestion
from ...constraints.terms.dims import Dim, Term, sym, symbols
from ...constraints.terms.formula import Formula, free_symbols
from ...constraints.terms.formula_text import parse_formula
from ...constraints.terms.syntax import DimSyntaxError, parse_dim

VERSION: Final = 1
LARGEST: Final = (1 << 63) - 1
"""Sizes are 64-bit integers with a sign."""
MAX_NESTING: Final = 64

_T = TypeVar("_T")
HintKind: TypeAlias = Literal["AUTO", "DYNAMIC", "STATIC"]
_HINTS: Final[tuple[str, ...]] = get_args(HintKind)
_HINT = "_DimHint."
_WORDS = frozenset({"True", "False", "None"})


class DimSpecError(SpecError):
    """Raised for text or data that is no spec of dynamic shapes: says where, what is wrong, and what to do.
    """

    def __reduce__(self) -> tuple[object, ...]:
        return DimSpecError, (self.problem, self.text, self.column, self.hint)


@dataclass(frozen=True, slots=True)
class DimRange:
    """The range of a named dim, both ends included; `max` None means no upper bound."""

    min: int = 0
    max: int | None = None


@dataclass(frozen=True, slots=True)
class Hint:
    """A size that varies (DYNAMIC), that does not (STATIC), or that torch is to classify itself (AUTO)."""

    kind: HintKind
    min: int | None = None
    max: int | None = None


Size: TypeAlias = "Dim | Hint | None"
"""An integer, a term over the dims, a hint, or None for the size of the example."""


@dataclass(frozen=True, slots=True)
class ShapeSpec:
    """The shape of a tensor."""

    sizes: tuple[Size, ...]


@dataclass(frozen=True, slots=True)
class Items:
    """A list or a tuple of inputs."""

    items: tuple[Tree, ...]
    kind: Literal["list", "tuple"] = "list"


@dataclass(frozen=True, slots=True)
class Entries:
    """A dict of inputs; at the top, the inputs by the names of the parameters."""

    entries: tuple[tuple[str | int, Tree], ...]


Tree: TypeAlias = "ShapeSpec | Items | Entries | Size"
"""The spec of an input. A size alone is the value of an integer input, None any other input."""


@dataclass(frozen=True, slots=True)
class DimSpec:
    """The sizes of the inputs that vary, and the conditions on them.

    Raises DimSpecError where it makes no sense: for a bound that is not a size, or a dim that is not
    declared.
    """

    shapes: Tree
    """The inputs by position (`Items`) or by name (`Entries`); None if no input is specified."""
    dims: Mapping[str, DimRange] = field(default_factory=dict)
    relations: tuple[Formula, ...] = ()
    """Conditions on the dims beyond their bounds: `x + y == 32`, `b < 4 or b > 10`, `h % 4 == 0`."""
    exact: bool = True
    """False where fewer sizes are described than the program takes."""

    def __post_init__(self) -> None:
        for name, bounds in self.dims.items():
            _check_name(name)
            _check_bounds(bounds.min, bounds.max, f"dims[{name!r}]")
        for where, size in sizes(self.shapes):
            if isinstance(size, Hint):
                _check_bounds(size.min, size.max, where)
            elif isinstance(size, Term):
                self._check_symbols(symbols(size), where)
            elif isinstance(size, int) and not -LARGEST <= size <= LARGEST:
                _fail(f"{where} is {_short(size)}", "an integer has 64 bits")
        for size in tensor_sizes(self.shapes):
            if isinstance(size, int) and size < 0:
                _fail(f"a size of a tensor is {size}", "a size is from 0 to 2**63 - 1")
        for index, relation in enumerate(self.relations):
            self._check_symbols(free_symbols(relation), f"relations[{index}]")

    def _check_symbols(self, names: frozenset[str], where: str) -> None:
        for name in sorted(names - self.dims.keys()):
            known = ", ".join(map(repr, sorted(self.dims))) or "none"
            _fail(
                f"{where} mentions {name!r}, which is not one of the dims",
                suggestion(name, self.dims) or f"the dims are {reprlib.repr(known)[1:-1]}",
            )


def sizes(tree: Tree, where: str = "dynamic_shapes") -> Iterator[tuple[str, Size]]:
    """Every size in a tree with its place: `dynamic_shapes['x'][0]`."""
    for place, part in _parts(tree):
        yield from sizes(part, f"{where}[{place!r}]")
    if not isinstance(tree, ShapeSpec | Items | Entries):
        yield where, tree


def tensor_sizes(tree: Tree) -> Iterator[Size]:
    """The sizes of the tensors in a tree, without the values of its integers."""
    if isinstance(tree, ShapeSpec):
        yield from tree.sizes
    else:
        for _, part in _parts(tree):
            yield from tensor_sizes(part)


def _parts(tree: Tree) -> tuple[tuple[str | int, Tree], ...]:
    match tree:
        case ShapeSpec(parts) | Items(parts):
            return tuple(enumerate(parts))
        case Entries(entries):
            return entries
    return ()


def mapped(tree: Tree, change: Callable[[Size, bool], Size]) -> Tree:
    """Returns the tree with each size changed; the second argument of `change` is whether the size is a
    tensor's.
    """
    match tree:
        case ShapeSpec(inner):
            return ShapeSpec(tuple(change(size, True) for size in inner))
        case Items(items, kind):
            return Items(tuple(mapped(item, change) for item in items), kind)
        case Entries(entries):
            return Entries(tuple((key, mapped(item, change)) for key, item in entries))
    return change(tree, False)


# ---- what makes no sense


def _fail(problem: str, hint: str = "") -> NoReturn:
    raise DimSpecError(problem, hint=hint)


def _short(value: object) -> str:
    """A value of anybody's, at moderate length."""
    if isinstance(value, int) and abs(value) > LARGEST:
        return f"an integer of {value.bit_length()} bits"
    return reprlib.repr(value)


def _check_name(name: object) -> None:
    """A name is a symbol of terms and of formulas."""
    try:
        if isinstance(name, str) and name not in _WORDS:
            sym(name)
            return
    except ValueError:
        pass
    _fail(
        f"{_short(name)} is not a valid name for a dim",
        "a name has letters, digits and '_', does not begin with a digit, and is not "
        "True, False, None, and, or, not",
    )


def _check_bounds(low: object, high: object, where: str) -> None:
    """Bounds are integers from 0 to 2**63 - 1 in order, or None."""
    for name, value in (("min", low), ("max", high)):
        if value is not None and (type(value) is not int or not 0 <= value <= LARGEST):
            _fail(f"the {name} of {where} is {_short(value)}", "a bound is an integer from 0 to 2**63 - 1")
    if isinstance(low, int) and isinstance(high, int) and low > high:
        _fail(f"the min of {where} is {low} and its max is {high}")


# ---- JSON, written


def to_json(spec: DimSpec) -> dict[str, Any]:
    """The spec in our schema, as plain data for `json.dumps`. `from_json` reads back the same spec."""
    return {
        "version": VERSION,
        "dynamic_shapes": _written(spec.shapes),
        "dims": dims_json(spec),
        "relations": [str(relation) for relation in spec.relations],
        "exact": spec.exact,
    }


def dims_json(spec: DimSpec) -> dict[str, Any]:
    """The named dims, in order of their names, each with the terms over it alone that are sizes."""
    derived: dict[str, set[str]] = {name: set() for name in spec.dims}
    for _, size in sizes(spec.shapes):
        if isinstance(size, Term) and len(names := symbols(size)) == 1 and str(size) not in names:
            derived[min(names)].add(str(size))
    return {
        name: {"min": bounds.min, "max": bounds.max, "derived": sorted(derived[name])}
        for name, bounds in sorted(spec.dims.items())
    }


def _written(tree: Tree) -> Any:
    match tree:
        case Term():
            return str(tree)
        case Hint(kind, None, None):
            return f"{_HINT}{kind}"
        case Hint(kind, low, high):
            return {"$hint": kind, "min": low, "max": high}
        case ShapeSpec(inner):
            data = [_written(size) for size in inner]
            return data if _is_shape(data) else {"$sizes": data}
        case Items(items, kind):
            data = [_written(item) for item in items]
            return data if kind == "list" and not _is_shape(data) else {f"${kind}": data}
        case Entries(entries):
            plain = all(isinstance(key, str) and not key.startswith("$") for key, _ in entries)
            if plain:
                return {key: _written(item) for key, item in entries}
            return {"$dict": [[key, _written(item)] for key, item in entries]}
    return tree


def _is_shape(data: list[Any]) -> bool:
    """Returns whether a list is the shape of a tensor: it holds sizes alone, and not all of them are null."""
    return any(item is not None for item in data) and all(
        item is None or isinstance(item, int | str) or (isinstance(item, dict) and "$hint" in item)
        for item in data
    )


# ---- JSON, read


def loads(text: str | bytes) -> DimSpec:
    """The spec that a JSON text writes, in either schema. Raises DimSpecError."""
    try:
        data = json.loads(text, object_pairs_hook=_object)
    except RecursionError:
        _fail("the JSON is nested too deeply")
    except DimSpecError:
        raise
    except ValueError as error:  # no JSON, no UTF-8, or an integer of thousands of digits
        _fail(f"this is not valid JSON: {error}")
    return from_json(data)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, in which no name comes twice: one of two values would be lost."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            _fail(f"{_short(name)} occurs twice in one object")
        found[name] = value
    return found


_KEYS: Final[Mapping[bool, tuple[str, ...]]] = {
    False: ("dynamic_shapes", "dims"),
    True: ("version", "dynamic_shapes", "dims", "relations", "exact"),
}
_DIM_KEYS = ("min", "max", "derived")


def from_json(data: Any) -> DimSpec:
    """The spec in data of either schema, as `json.loads` or torch's dump gives it. Raises DimSpecError."""
    if not isinstance(data, dict):
        _fail(f"a spec is a JSON object, not {_short(data)}")
    versioned = "version" in data
    _check_keys(data, _KEYS[versioned], "the spec")
    if versioned and (type(data["version"]) is not int or data["version"] != VERSION):
        _fail(f"the version is {_short(data['version'])}", f"this reads version {VERSION}")
    dims = _dims(data["dims"])
    shapes = _SpecReader(versioned).read(data["dynamic_shapes"], "dynamic_shapes", 0)
    if not versioned:
        return DimSpec(shapes, dims)
    if not isinstance(data["exact"], bool):
        _fail(f"exact is {_short(data['exact'])}, which is neither true nor false")
    relations = _texts(data["relations"], "relations")
    formulas = tuple(_parsed(parse_formula, "formula", *text) for text in relations)
    return DimSpec(shapes, dims, formulas, data["exact"])


def _check_keys(data: Mapping[Any, Any], keys: tuple[str, ...], where: str) -> None:
    if missing := [key for key in keys if key not in data]:
        _fail(f"{where} has no {missing[0]!r}", f"its keys are {', '.join(keys)}")
    if unknown := [key for key in data if key not in keys]:
        _fail(f"{where} has {_short(unknown[0])}", f"its keys are {', '.join(keys)}")


def _dims(data: Any) -> dict[str, DimRange]:
    if not isinstance(data, dict):
        _fail(f"dims is {_short(data)}, which is not an object")
    found: dict[str, DimRange] = {}
    for name, entry in data.items():
        _check_name(name)
        where = f"dims[{name!r}]"
        if not isinstance(entry, dict):
            _fail(f"{where} is {_short(entry)}, which is not an object")
        _check_keys(entry, _DIM_KEYS, where)
        if entry["min"] is None:
            _fail(f"the min of {where} is null", "a dim without a lower bound has min 0")
        _check_bounds(entry["min"], entry["max"], where)
        for text, place in _texts(entry["derived"], f"{where}.derived"):
            if symbols(_parsed(parse_dim, "term", text, place)) != {name}:
                _fail(f"{place} is {_short(text)}, which is not a term over {name!r} alone")
        found[name] = DimRange(entry["min"], entry["max"])
    return found


def _texts(data: Any, where: str) -> list[tuple[str, str]]:
    """Each text with its place."""
    if not isinstance(data, list) or not all(isinstance(text, str) for text in data):
        _fail(f"{where} is {_short(data)}, which is not a list of texts")
    return [(text, f"{where}[{index}]") for index, text in enumerate(data)]


def _parsed(parse: Callable[[str], _T], kind: str, text: str, where: str) -> _T:
    try:
        return parse(text)
    except DimSyntaxError as error:
        raise DimSpecError(f"{where} is not a {kind}: {error.problem}", error.text, error.column) from None


class _SpecReader:
    """Reads a tree. Objects with a `$` mean something in our schema alone."""

    def __init__(self, versioned: bool) -> None:
        self.versioned = versioned

    def read(self, data: Any, where: str, level: int) -> Tree:
        if level > MAX_NESTING:
            _fail(f"dynamic_shapes is nested deeper than {MAX_NESTING} levels")
        if isinstance(data, list | tuple):  # a tuple is torch's own, before it goes through JSON
            inner = self._list(data, where, level)
            return self._shape(inner, where) if _is_shape([*data]) else Items(inner)
        if not isinstance(data, dict):
            return self._size(data, where)
        mark = next((key for key in data if isinstance(key, str) and key.startswith("$")), None)
        if not self.versioned or mark is None:
            for key in data:
                if not isinstance(key, str):
                    _fail(f"{where} has the key {_short(key)}, which is not a text")
            return Entries(tuple((key, self.read(data[key], f"{where}[{key!r}]", level + 1)) for key in data))
        if mark == "$hint":
            return self._hint(data, where)
        if len(data) > 1 or mark not in ("$tuple", "$list", "$dict", "$sizes"):
            _fail(f"{where} is {_short(data)}, which has no meaning here")
        return self._marked(mark, data[mark], where, level + 1)

    def _marked(self, mark: str, data: Any, where: str, level: int) -> Tree:
        if not isinstance(data, list):
            _fail(f"{where}.{mark} is {_short(data)}, which is not a list")
        if mark == "$dict":
            return Entries(tuple(self._entry(pair, where, level) for pair in data))
        inner = self._list(data, where, level)
        return self._shape(inner, where) if mark == "$sizes" else Items(inner, _KINDS[mark])

    def _list(self, data: list[Any] | tuple[Any, ...], where: str, level: int) -> tuple[Tree, ...]:
        return tuple(self.read(item, f"{where}[{index}]", level + 1) for index, item in enumerate(data))

    def _shape(self, inner: tuple[Tree, ...], where: str) -> ShapeSpec:
        found: list[Size] = []
        for size in inner:
            if isinstance(size, ShapeSpec | Items | Entries):
                _fail(f"{where} is the shape of a tensor and may contain sizes only")
            found.append(size)
        return ShapeSpec(tuple(found))

    def _entry(self, pair: Any, where: str, level: int) -> tuple[str | int, Tree]:
        if not isinstance(pair, list) or len(pair) != 2 or type(pair[0]) not in (str, int):
            _fail(f"{where}.$dict has {_short(pair)}, which is not a pair of a key and its value")
        return pair[0], self.read(pair[1], f"{where}[{_short(pair[0])}]", level)

    def _hint(self, data: Mapping[str, Any], where: str) -> Hint:
        _check_keys(data, ("$hint", "min", "max"), where)
        _check_bounds(data["min"], data["max"], where)
        return Hint(_hint_kind(data["$hint"], where), data["min"], data["max"])

    def _size(self, data: Any, where: str) -> Size:
        if data is None or type(data) is int:
            return data
        if not isinstance(data, str):
            _fail(f"{where} is {_short(data)}", "a size is an integer, a term over the dims, or a hint")
        if data.startswith(_HINT):
            return Hint(_hint_kind(data.removeprefix(_HINT), where))
        return _parsed(parse_dim, "term", data, where)


_KINDS: Final[Mapping[str, Literal["list", "tuple"]]] = {"$list": "list", "$tuple": "tuple"}


def _hint_kind(name: Any, where: str) -> HintKind:
    if name not in _HINTS:
        _fail(f"{where} has the hint {_short(name)}", f"hints are {', '.join(_HINTS)}")
    kind: HintKind = name
    return kind
