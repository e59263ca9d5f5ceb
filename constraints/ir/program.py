"""The program: nodes in order, each an operator call with named arguments, results and an origin.

Plain data: no torch, no solver. `verify` states the laws; `to_json` and `from_json` are inverses.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from fractions import Fraction
from itertools import count
from typing import Any, Final, Literal, TypeAlias, cast

from msgspec import Struct

from ..terms.dims import Dim, Term, substitute, sym, symbols
from ..terms.formula import And, Compare, Formula, Or, all_of, any_of
from ..terms.syntax import parse_dim
from .language import (
    UNTRACKED,
    Affine,
    Comparison,
    Dots,
    Dyn,
    Dynamic,
    Ellipses,
    Image,
    Index,
    Layout,
    Number,
    Piece,
    Pieces,
    Plain,
    Ratio,
    Slice,
    Span,
    Subscripts,
    Tensor,
    Truths,
    Untracked,
    Value,
)

SCHEMA = 2


class Ref(Struct, frozen=True):
    """The value with this id."""

    id: int


Argument: TypeAlias = "Ref | Tensor | tuple[Argument, ...] | Plain"


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a node comes from: the user's own line, and the path of the module that ran it."""

    file: str = ""
    line: int = 0
    function: str = ""
    module: str = ""
    code: str = ""
    """The text of the line, without its indentation."""
    indent: int = 0
    """Characters before the code in its line."""
    start: int = 0
    stop: int = 0
    """The call is `code[start:stop]`, as far as it is on this line; stop is 0 where that is not known."""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.file else self.module or "?"


Contents: TypeAlias = Literal["data", "finite", "given"]
CONTENTS: Final[tuple[Contents, ...]] = ("data", "finite", "given")


class Input(Struct, frozen=True):
    """An input of the program: an argument of the user's, or a parameter or buffer of the model."""

    id: int
    name: str
    type: Value
    parameter: bool = False
    holds: Contents = "data"
    """Any data, as those of a parameter, which may be trained to be anything; or elements that are given with
    the program, as those of a buffer are: finite numbers, or others.
    """


class Node(Struct, frozen=True):
    """One call. `results` are the ids of the leaves of its result, from left to right."""

    op: str
    args: tuple[tuple[str, Argument], ...]
    results: tuple[int, ...]
    origin: Origin
    given: tuple[tuple[Argument, bool], ...] = ()
    """The conditions, with their truths, under which the call is made at all: a branch of `torch.cond`."""

    @property
    def refs(self) -> list[Ref]:
        """Returns every reference in the arguments, from left to right."""
        found: list[Ref] = []
        for _, argument in self.args:
            if type(argument) is Ref:
                found.append(argument)
            elif isinstance(argument, _COMPOSED):
                found += refs(argument)
        return found

    def get(self, name: str) -> Argument | None:
        """Returns the argument of this name, or None."""
        for key, argument in self.args:
            if key == name:
                return argument
        return None


@dataclass(frozen=True, slots=True)
class Iteration:
    """Nodes `start` to `stop - 1` represent every iteration of a loop from `first` to `count - 1`.

    Their values depend on the iteration through the symbol `index`. The nodes `carried` read the values that
    an iteration takes over from the previous one; their argument is the value before the first iteration.
    """

    index: str
    first: int
    count: Dim
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Program:
    """Inputs, nodes in an order in which every value is made before it is used, and outputs by name."""

    inputs: tuple[Input, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[tuple[str, Argument], ...]
    iterations: tuple[Iteration, ...] = ()

    def verify(self) -> None:
        """The laws of the IR. Raises IllFormed with the first that is broken.

        1. Every id is made once: by one input or one node.
        2. A node and an output use only ids that were made before.
        3. The argument names of a node differ, and so do the names of inputs.
        4. Iterations lie within the nodes, and of two that overlap one lies within the other.
        """
        made: set[int] = set()
        for given in self.inputs:
            _make(made, given.id, f"input {given.name}")
        if len({i.name for i in self.inputs}) != len(self.inputs):
            raise IllFormed("two inputs have the same name")
        for index, node in enumerate(self.nodes):
            where = f"node {index} ({node.op}) at {node.origin}"
            if len({name for name, _ in node.args}) != len(node.args):
                raise IllFormed(f"{where}: two arguments have the same name")
            for ref in refs((*(a for _, a in node.args), *(condition for condition, _ in node.given))):
                if ref.id not in made:
                    raise IllFormed(f"{where}: value {ref.id} is used before it is made")
            for result in node.results:
                _make(made, result, where)
        for name, argument in self.outputs:
            for ref in refs(argument):
                if ref.id not in made:
                    raise IllFormed(f"output {name}: value {ref.id} is never made")
        for one in self.iterations:
            if not 0 <= one.start <= one.stop <= len(self.nodes):
                raise IllFormed(f"the iteration {one.index} spans nodes {one.start} to {one.stop}")
            for other in self.iterations:
                if one.start < other.start < one.stop < other.stop:
                    raise IllFormed(f"the iterations {one.index} and {other.index} overlap")


class IllFormed(ValueError):
    """Raised for a program that breaks a law of the IR, or a text that is no program."""


def _make(made: set[int], id: int, where: str) -> None:
    if id in made:
        raise IllFormed(f"{where}: value {id} is made twice")
    made.add(id)


def refs(argument: Argument) -> list[Ref]:
    """Every reference in an argument, from left to right."""
    if type(argument) is Ref:
        return [argument]
    found: list[Ref] = []
    for part in parts_of(argument):
        if type(part) is Ref:
            found.append(part)
        elif isinstance(part, _COMPOSED):
            found += refs(part)
    return found


_COMPOSED: Final = (tuple, Slice)
_NUMBERS: Final = frozenset({int})


def is_numbers(argument: Any) -> bool:
    """Returns whether the argument is a tuple of numbers only, as a stride is."""
    return type(argument) is tuple and _NUMBERS.issuperset(map(type, argument))


def parts_of(argument: Any) -> tuple[Any, ...]:
    """Returns the parts of an argument: the members of a tuple, the bounds of a slice; none for other
    arguments.
    """
    if isinstance(argument, Slice):
        return argument.start, argument.stop, argument.step
    return argument if isinstance(argument, tuple) else ()


# JSON: numbers, strings, booleans and null stand for themselves, a list for a tuple; everything else is an
# object with one key that says its kind.


def pack(value: Any) -> Any:
    """Returns a value or formula as plain data."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case tuple():
            return [pack(v) for v in value]
        case Term():
            return {"dim": str(value)}
        case Ref(id):
            return {"ref": id}
        case Tensor(shape, dtype, layout, elements):
            strides = layout.value if isinstance(layout, Layout) else [pack(s) for s in layout]
            body = {"shape": [pack(d) for d in shape], "dtype": dtype, "layout": strides}
            return {"tensor": body if elements is None else body | {"elements": pack(elements)}}
        case Affine(start, steps):
            return {"affine": [pack(start), [list(step) for step in steps]]}
        case Span(low, high, attained, by_data, dense):
            return {"span": [pack(low), pack(high), attained, by_data, dense]}
        case Subscripts(shape, added, attained):
            return {"subscripts": [[pack(d) for d in shape], added, attained]}
        case Ratio(numerator, denominator, roundings):
            return {"ratio": [pack(numerator), denominator, roundings]}
        case Pieces(pieces, by_data, roundings, slack, and_data):
            packed = [_packed_piece(piece) for piece in pieces]
            return {"pieces": [packed, by_data, roundings, slack, and_data]}
        case Truths(some, every, within, compares):
            beside = [
                [_packed_piece(c.piece), c.bound, c.below] for c in (compares,) if c is not None
            ]
            return {"truths": [pack(some), pack(every), pack(within), *beside]}
        case Image(piece, low, high, steps, others):
            whole = [_packed_piece(piece), str(low), str(high), [list(step) for step in steps]]
            return {"image": [*whole, *map(_packed_piece, others)]}
        case Untracked():
            return {"untracked": True}
        case Compare(op, term):
            return {"compare": [op, str(term)]}
        case And(parts):
            return {"and": [pack(p) for p in parts]}
        case Or(parts):
            return {"or": [pack(p) for p in parts]}
        case Number(kind):
            return {"number": kind}
        case Slice():
            return {"slice": [pack(part) for part in parts_of(value)]}
        case Ellipses():
            return {"dots": True}
        case complex():
            return {"complex": [value.real, value.imag]}
        case Dynamic():
            return {"dyn": True}
    raise TypeError(f"{value!r} has no JSON form in a program")


def unpack(data: Any) -> Any:
    """Inverts `pack`. Raises IllFormed, and Python's own exceptions for data of other kinds."""
    if isinstance(data, list):
        return tuple(unpack(d) for d in data)
    if not isinstance(data, dict):
        return data
    if len(data) != 1:
        raise IllFormed(f"an object with one key was expected, not {sorted(data)}")
    ((kind, body),) = data.items()
    match kind:
        case "dim":
            return parse_dim(text(body))
        case "ref":
            return Ref(integer(body))
        case "tensor":
            return _tensor(body)
        case "affine":
            return Affine(_dim(body[0]), tuple((integer(axis), integer(step)) for axis, step in body[1]))
        case "span":
            return Span(_dim(body[0]), _dim(body[1]), *map(truth, body[2:5]))
        case "subscripts":
            return Subscripts(tuple(map(_dim, body[0])), integer(body[1]), *map(truth, body[2:3]))
        case "ratio":
            return Ratio(_dim(body[0]), integer(body[1]), integer(body[2]))
        case "pieces":
            return Pieces(
                tuple(map(_piece, body[0])), truth(body[1]), integer(body[2]), *map(truth, body[3:5])
            )
        case "truths":
            compares = [Comparison(_piece(p), integer(n), truth(b)) for p, n, b in body[3:4]]
            return Truths(formula_of(body[0]), formula_of(body[1]), _within(body[2]), *compares)
        case "image":
            low, high = (Fraction(text(end)) for end in body[1:3])
            steps = tuple((text(op), float(n)) for op, n in body[3])
            return Image(_piece(body[0]), low, high, steps, tuple(map(_piece, body[4:])))
        case "untracked":
            return UNTRACKED
        case "compare":
            op, difference = body
            if op not in ("==", "!=", ">="):
                raise IllFormed(f"unknown comparison: {op!r}")
            return Compare(op, parse_dim(text(difference)))  # type: ignore[arg-type]
        case "and":
            return all_of(map(formula_of, body))
        case "or":
            return any_of(map(formula_of, body))
        case "number":
            if body not in ("bool", "int", "float", "complex"):
                raise IllFormed(f"unknown kind of number: {body!r}")
            return Number(body)
        case "slice":
            return Slice(*unpack(body))
        case "dots":
            return Dots
        case "complex":
            return complex(*body)
        case "dyn":
            return Dyn
    raise IllFormed(f"unknown kind of value: {kind!r}")


def _within(data: Any) -> tuple[int, Dim | None, Dim | None] | None:
    if data is None:
        return None
    axis, first, last = data
    return integer(axis), None if first is None else _dim(first), None if last is None else _dim(last)


def _packed_piece(piece: Piece) -> Any:
    """Returns a piece as plain data, its indices under names that the grammar of dims can read."""
    term, taken = piece.term, frozenset[str]() if piece.term is None else symbols(piece.term)
    free = (name for n in count() if (name := f"i{n}") not in taken)
    names = {index.name: name for index, name in zip(piece.indices, free, strict=False)}
    if term is not None:
        term = substitute(term, {old: sym(new) for old, new in names.items()})
    indices = [[names[i.name], pack(i.size), i.axis, i.ordered, i.dense] for i in piece.indices]
    fixed = [list(place) for place in piece.fixed]
    doubt = [pack(piece.doubt), piece.least]
    return [pack(term), pack(piece.over), indices, pack(piece.given), piece.attained, fixed, doubt]


def _piece(body: Any) -> Piece:
    term, over, indices, given, attained, fixed, (doubt, least) = body
    read = tuple(
        Index(f"#{n}", _dim(size), None if axis is None else integer(axis), truth(ordered), truth(dense))
        for n, (_, size, axis, ordered, dense) in enumerate(indices)
    )
    names = {text(i[0]): sym(index.name) for i, index in zip(indices, read, strict=True)}
    return Piece(
        None if term is None else substitute(_dim(term), names),
        _dim(over),
        read,
        formula_of(given),
        truth(attained),
        tuple((integer(axis), integer(at)) for axis, at in fixed),
        formula_of(doubt),
        integer(least),
    )


def _tensor(body: Any) -> Tensor:
    layout, dtype, elements = body["layout"], body["dtype"], unpack(body.get("elements"))
    shape = tuple(map(_dim, body["shape"]))
    strides = Layout(layout) if isinstance(layout, str) else tuple(map(_dim, layout))
    kinds = Affine | Span | Subscripts | Ratio | Pieces | Truths | Image | Untracked | None
    if not isinstance(elements, kinds):
        raise IllFormed(f"elements of a tensor were expected, not {elements!r}")
    if isinstance(strides, tuple) and len(strides) != len(shape):
        raise IllFormed(f"{len(shape)} sizes have {len(strides)} strides")
    return Tensor(shape, None if dtype is None else text(dtype), strides, elements)


def _dim(data: Any) -> Dim:
    value = unpack(data)
    if isinstance(value, Term):
        return value
    return integer(value)


def formula_of(data: Any) -> Formula:
    """Returns a formula from its packed form. Raises IllFormed."""
    value = unpack(data)
    if not isinstance(value, bool | Compare | And | Or):
        raise IllFormed(f"a condition was expected, not {value!r}")
    return value


def integer(value: Any) -> int:
    """Returns the value if it is an integer. Raises IllFormed."""
    if type(value) is not int:
        raise IllFormed(f"an integer was expected, not {value!r}")
    return value


def text(value: Any) -> str:
    """Returns the value if it is a text. Raises IllFormed."""
    if type(value) is not str:
        raise IllFormed(f"a text was expected, not {value!r}")
    return value


def truth(value: Any) -> bool:
    """Returns the value if it is a bool. Raises IllFormed."""
    if type(value) is not bool:
        raise IllFormed(f"a truth was expected, not {value!r}")
    return value


def contents_of(value: Any) -> Contents:
    """Returns the value if it is one of `CONTENTS`. Raises IllFormed."""
    if value not in CONTENTS:
        raise IllFormed(f"one of {', '.join(CONTENTS)} was expected, not {value!r}")
    return cast(Contents, value)


def origin_of(fields: Any) -> Origin:
    """Returns an origin from its fields. Raises IllFormed, and TypeError where there are too many."""
    made = Origin(*fields)
    for words in (made.file, made.function, made.module, made.code):
        text(words)
    for number in (made.line, made.indent, made.start, made.stop):
        integer(number)
    return made


def to_json(program: Program) -> dict[str, Any]:
    """Returns the program as plain data for `json.dump`; origins are shared through a table."""
    table: dict[Origin, int] = {}
    nodes = [
        {
            "op": node.op,
            "args": [[name, pack(argument)] for name, argument in node.args],
            "results": list(node.results),
            "origin": table.setdefault(node.origin, len(table)),
        }
        | ({"given": [[pack(condition), truth] for condition, truth in node.given]} if node.given else {})
        for node in program.nodes
    ]
    return {
        "schema": SCHEMA,
        "inputs": [[i.id, i.name, pack(i.type), i.parameter, i.holds] for i in program.inputs],
        "nodes": nodes,
        "outputs": [[name, pack(argument)] for name, argument in program.outputs],
        "iterations": [[i.index, i.first, pack(i.count), i.start, i.stop] for i in program.iterations],
        "origins": [list(astuple(o)) for o in table],
    }


def from_json(data: Any) -> Program:
    """The inverse of `to_json`. Raises IllFormed, with the reason, on anything else."""
    try:
        if data["schema"] != SCHEMA:
            raise IllFormed(f"schema {data['schema']!r} is not {SCHEMA}, the one that this version reads")
        origins = [origin_of(fields) for fields in data["origins"]]
        program = Program(
            tuple(
                Input(integer(id), text(name), unpack(type), truth(parameter), contents_of(holds))
                for id, name, type, parameter, holds in data["inputs"]
            ),
            tuple(
                Node(
                    text(n["op"]),
                    tuple((text(name), unpack(argument)) for name, argument in n["args"]),
                    tuple(map(integer, n["results"])),
                    origins[n["origin"]],
                    tuple((unpack(condition), truth(holds)) for condition, holds in n.get("given", ())),
                )
                for n in data["nodes"]
            ),
            tuple((text(name), unpack(argument)) for name, argument in data["outputs"]),
            tuple(
                Iteration(text(index), integer(first), _dim(count), integer(start), integer(stop))
                for index, first, count, start, stop in data.get("iterations", ())
            ),
        )
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise IllFormed(f"this is not a program of anyshape: {error!r}") from error
    except ValueError as error:
        raise error if isinstance(error, IllFormed) else IllFormed(str(error)) from error
    program.verify()
    return program
