"""All that a rule may say: the values it reads and returns, and what it may tell its context."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fractions import Fraction
from typing import Any, Final, Literal, NoReturn, Protocol, TypeAlias

from msgspec import Struct

from ..terms.dims import Dim, Term
from ..terms.formula import Formula
from ..terms.rows import row_of

Shape: TypeAlias = tuple[Dim, ...]


class Layout(Enum):
    """How a tensor lies in memory, where its strides need not be spelt out."""

    CONTIGUOUS = "contiguous"
    UNKNOWN = "unknown"
    COO = "sparse_coo"
    """Sparse: elements and their places, several of which may be one."""
    COALESCED = "coalesced sparse_coo"
    """Likewise, in order and each place once."""
    CSR = "sparse_csr"
    """Sparse: elements row by row, with their columns."""


@dataclass(frozen=True, slots=True)
class Affine:
    """Elements that sizes decide: `start + sum of step * i` at index i of each axis named, axes counted from
    the end.
    """

    start: Dim
    steps: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Span:
    """Elements between two sizes; both occur where `attained` says so, and there are any. Sizes decide the
    elements, or the data, in which case both occur for some data. Of a `dense` span all between occur, too.
    """

    low: Dim
    high: Dim
    attained: bool
    by_data: bool = False
    dense: bool = False


@dataclass(frozen=True, slots=True)
class Subscripts:
    """Places in a shape, which the data decide: number i along the last axis is an index of dim i, to which
    so much has been added.
    """

    shape: Shape
    added: int


@dataclass(frozen=True, slots=True)
class Ratio:
    """Elements that are all the same fraction of sizes, as floats tell it that were rounded so many times."""

    numerator: Dim
    denominator: int
    roundings: int


@dataclass(frozen=True, slots=True)
class Truths:
    """Truths that sizes decide: whether some are true, and whether all are, where there are any. `within`
    says, where that is known, that exactly those are true from a first place on along an axis, counted from
    the end, up to before a last: `(axis, first, last)`, with None for no bound.
    """

    some: Formula
    every: Formula
    within: tuple[int, Dim | None, Dim | None] | None = None
    compares: Comparison | None = None
    """What the elements say, each of a number at its own place, if that is known."""


@dataclass(frozen=True, slots=True)
class Index:
    """A number that runs from 0 to `size - 1` in the term of some elements.

    `axis`, counted from the end, is the one along which the elements differ by it, None where they lie in an
    order that is not known. Of `ordered` indices of one axis the last runs fastest; any other takes all of
    its values along the axis, in an order that is not known. One that is not `dense` takes its first and its
    last value, and perhaps not all between.
    """

    name: str
    size: Dim
    axis: int | None = None
    ordered: bool = True
    dense: bool = True


@dataclass(frozen=True, slots=True)
class Piece:
    """Elements that have the value `term / over` at each value of some indices, for the sizes that `given`
    names.

    `term` is None for elements of which nothing is known, but that sizes decide them. All values occur, or,
    unless `attained`, some of them. `fixed` has axes at one place of which alone these elements lie. At the
    sizes in `doubt` floats have been rounded: of numbers there that are at least `least`, or at most
    `-least`, it is known that they still are, and no more. Smaller ones are what the piece says.
    """

    term: Dim | None
    over: Dim = 1
    indices: tuple[Index, ...] = ()
    given: Formula = True
    attained: bool = True
    fixed: tuple[tuple[int, int], ...] = ()
    doubt: Formula = False
    least: int = 0


@dataclass(frozen=True, slots=True)
class Pieces:
    """Elements that are those of several pieces together. The data choose among them where `by_data` says so,
    each for some data. `roundings` counts the floats that have been rounded on the way; with `slack`, what
    they stand for may lie by less than 1 beside what the pieces say. `and_data`: there may be elements
    besides that the user gives.
    """

    pieces: tuple[Piece, ...]
    by_data: bool = False
    roundings: int = 0
    slack: bool = False
    and_data: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """`x < bound` where `below`, else `x >= bound`, of the x that a piece has at the same place."""

    piece: Piece
    bound: int
    below: bool


@dataclass(frozen=True, slots=True)
class Image:
    """Elements that functions which do not fall make, one after the other, of what a piece has at the same
    place. That lies between two fractions, both included.
    """

    piece: Piece
    low: Fraction
    high: Fraction
    steps: tuple[tuple[str, float], ...]
    """The functions, each with the number that is its other argument, or with 0."""


class Untracked(Enum):
    """Elements that sizes decide in a way that is not followed."""

    UNTRACKED = "untracked"


UNTRACKED: Final = Untracked.UNTRACKED
Elements: TypeAlias = (
    "Affine | Span | Subscripts | Ratio | Pieces | Truths | Image | Untracked | None"
)
"""What is known of the elements of an index tensor; None for elements that are the user's data."""


class Tensor(Struct, frozen=True):
    """A tensor as far as shapes go.

    `dtype` is torch's name without the prefix (`float32`), None where it is not known. `layout` is the
    strides, in elements, or the word that says them shorter; sizes of a tensor whose layout is a tuple and
    the tuple agree in length.
    """

    shape: Shape
    dtype: str | None = "float32"
    layout: Layout | tuple[Dim, ...] = Layout.CONTIGUOUS
    elements: Elements = None

    def __hash__(self) -> int:
        """Of the shape alone, which is quick: few tensors differ in the rest only."""
        return hash(self.shape)

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def numel(self) -> Dim:
        return product(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype or ''}[{', '.join(map(_size_text, self.shape))}]"


def _size_text(dim: Dim) -> str:
    """A size of a shape; a row with a star: `*x` for all of it, `*x[1:]` for a part."""
    return str(dim) if row_of(dim) is None else "*" + str(dim).replace("[:]", "")


class Dynamic:
    """Nothing is known: the type consistent with every other."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Dyn"

    def __reduce__(self) -> str:
        return "Dyn"


Dyn: Final = Dynamic()


@dataclass(frozen=True, slots=True)
class Number:
    """A number that is not a size and whose value is not known: the `float` that `x.item()` gives."""

    kind: Literal["bool", "int", "float", "complex"]


@dataclass(frozen=True, slots=True)
class Quotient(Number):
    """The float nearest to `over / under`. Sizes are far below 2**52, so rounding it rounds the fraction."""

    over: Dim
    under: Dim


@dataclass(frozen=True, slots=True)
class Proportion(Number):
    """A float near `over / under`, rounded a few times on the way."""

    over: Dim
    under: Dim


@dataclass(frozen=True, slots=True)
class Slice:
    """`start:stop:step` in an index. Each is a dim, or None where it is left out."""

    start: Value = None
    stop: Value = None
    step: Value = None

    def __str__(self) -> str:
        return ":".join("" if part is None else str(part) for part in (self.start, self.stop, self.step))


class Ellipses:
    """The `...` in an index: as many full slices as the tensor has dims left."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Dots"

    def __reduce__(self) -> str:
        return "Dots"


Dots: Final = Ellipses()

Plain: TypeAlias = "Dim | Formula | float | complex | str | Number | Dynamic | Slice | Ellipses | None"
"""A value that is no tensor and has no parts."""

Value: TypeAlias = "Tensor | tuple[Value, ...] | Plain"
"""What a rule gets and returns. A list arrives as a tuple; a dtype as its name; a condition on sizes as a
formula.
"""


Direction: TypeAlias = Literal["accept", "refuse", "both"]
"""What an approximation may do wrongly. One that may `accept` leaves out a refusal of torch's; its result is
right, or one of those that it allows for. One that may `refuse` requires more than torch does. Where it is
not certain which, it may do `both`.
"""


class Refused(Exception):
    """Raised by a rule: the call fails for every assignment (a wrong rank, an index out of range).

    `error` is the type of the exception that torch raises there.
    """

    def __init__(self, reason: str, error: type[Exception] = RuntimeError) -> None:
        super().__init__(reason)
        self.error = error


class Context(Protocol):
    """What a rule may tell and ask. It never solves: `at_least` knows intervals of the declared domain, no
    more.
    """

    def require(
        self,
        formula: Formula,
        reason: str,
        error: type[Exception] = RuntimeError,
        *,
        by_data: bool = False,
    ) -> None:
        """The call runs only where the formula holds; elsewhere torch raises an exception of this type:
        `Exception` where more than the sizes decides which. With `by_data`, it runs with all data only there.

        What is required first is what torch looks at first: a call that fails in several ways raises the
        exception of the first.
        """

    def refuse(self, reason: str, error: type[Exception] = RuntimeError) -> NoReturn:
        """The call never runs: torch raises an exception of this type. Raises Refused."""

    def approximate(self, reason: str, may: Direction = "both", where: Formula = True) -> None:
        """The rule's result or requirement is not exact, at the sizes `where` a formula holds, for the reason
        given. `may` is its direction.
        """

    def fresh(
        self, hint: str, low: Dim | None, high: Dim | None, also: Callable[[Term], Formula] | None = None
    ) -> Term:
        """A size that the data decides, between the bounds (both included), of which more may be known."""

    def trues(self, mask: Tensor) -> Dim:
        """How many elements of a mask are true, which the data decides; of one mask always the same."""

    def stored(self, tensor: Tensor) -> Dim:
        """How many elements of a sparse tensor are stored, of one tensor always the same."""

    def unchecked(self, formula: Formula) -> None:
        """Where the formula holds, torch does not look whether the indices of the call are in range."""

    def layouts(self, tensor: Tensor) -> Sequence[tuple[Situation, Tensor]] | None:
        """The tensor, whose layout is not known for all sizes at once, in cases of which always one holds,
        with its layout in each; None where that is not found out. Where it has no elements, or is not made,
        no case need hold.
        """

    def memory_of(self, tensor: Tensor) -> tuple[Dim, Dim] | None:
        """How many elements the memory of the tensor has room for, and where in it the tensor begins; None
        where that is not known.
        """

    def is_data(self, dim: Dim) -> bool:
        """Do the data decide the size?"""

    def at_least(self, dim: Dim, bound: int) -> bool:
        """Is dim >= bound for every input in the declared domain? False also where intervals cannot tell."""

    def certain(self, formula: Formula) -> bool:
        """Does the formula hold by what is known? False also where intervals cannot tell."""

    def number(self, dim: Dim) -> int:
        """How many results the call has, as a number, where that depends on sizes."""

    def choose(self, formula: Formula, reason: str) -> bool:
        """Does the formula hold? For what has to be known before there is a result, such as the rank of it.
        """


class Situation(Context, Protocol):
    """A case that some sizes make, where others are known to be greater."""

    @property
    def condition(self) -> Formula:
        """Where it is the case."""

    def here(self, value: Any) -> Any:
        """A value as it is in this case."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """A formula that must hold for a node to run, and why."""

    formula: Formula
    reason: str
    node: int
    kind: Literal["model", "trace"] = "model"
    by_data: bool = False
    """Whether some data fit elsewhere, too: numbers that are drawn at random, places of the greatest."""
    error: type[Exception] = field(default=RuntimeError, compare=False)
    """What torch raises where it does not hold."""


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of one dim: `min <= dim <= max`, None standing for no bound, and `dim % divisor ==
    remainder`.

    A dim with one value has divisor 0 and that value as remainder. Where `exact` is true, the bounds are
    attained, the divisor is the greatest, and all that stands here is proved.
    """

    min: int | None
    max: int | None
    divisor: int = 1
    remainder: int = 0
    equals: Dim | None = None
    """Another term that the dim always equals."""
    values: tuple[tuple[int | None, int | None], ...] | None = None
    """The values as intervals, in steps of `divisor`; None where they are not such intervals, or not known.
    """
    exact: bool = True
    residues: tuple[int, tuple[int, ...]] | None = None
    """`(m, rs)`: the values are all integers from min to max that are one of rs modulo m; None where that
    says no more than the rest, or is not so.
    """


@dataclass(frozen=True, slots=True)
class Note:
    """What is not exact at a node: `approximate` or `no-rule`. Or, at no node, a limit that nobody has found
    out: `trace-limit` of a trace, which formulas cannot say, `bounded-rank` of what is looked at.
    """

    code: Literal["approximate", "no-rule", "trace-limit", "bounded-rank"]
    reason: str
    node: int
    may: Direction = "both"
    """The direction of an approximation."""
    where: Formula = True
    """The sizes at which an approximation is not exact."""

    @property
    def inexact(self) -> bool:
        return self.code in ("approximate", "no-rule")

    @property
    def may_accept(self) -> bool:
        """Whether sizes may be accepted that torch refuses."""
        return self.code == "approximate" and self.may != "refuse"

    @property
    def may_refuse(self) -> bool:
        """Whether sizes may be refused that torch accepts."""
        return self.code == "approximate" and self.may != "accept"


@dataclass(slots=True)
class Generated:
    """What the rules said of a program: a value per result, constraints and notes in program order."""

    values: dict[int, Value] = field(default_factory=dict)
    constraints: list[Constraint] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    unbacked: dict[str, Formula] = field(default_factory=dict)
    """Sizes that the data decides, by name, with what is known of each."""


def product(dims: Shape | list[Dim]) -> Dim:
    """d0 * d1 * …, which is 1 for no dims."""
    result: Dim = 1
    for dim in dims:
        result = result * dim
    return result


def tensors(value: Value) -> Iterator[Tensor]:
    """Every tensor in a value, from left to right."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from tensors(part)
