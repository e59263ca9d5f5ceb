"""The language of rules: the values that a rule reads and returns, and the questions and requirements that it
may put to its context.
"""
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
    """The position of a tensor's elements in memory, where its strides need not be written out."""

    CONTIGUOUS = "contiguous"
    ROW_MAJOR = "row-major"
    """Contiguous in torch's sense: strides along axes of size 1 are arbitrary."""
    UNKNOWN = "unknown"
    COO = "sparse_coo"
    """Sparse: elements with their indices; the same index may occur several times."""
    COALESCED = "coalesced sparse_coo"
    """As `COO`, but ordered, each index once."""
    CSR = "sparse_csr"
    """Sparse: elements row by row, with their columns."""


LOOSE: Final = Layout.ROW_MAJOR, Layout.UNKNOWN
"""Layouts that leave strides open, which cases of sizes may decide."""


@dataclass(frozen=True, slots=True)
class Affine:
    """Elements that sizes decide: `start + sum of step * i`, where i is the index along each named axis. Axes
    are counted from the end.
    """

    start: Dim
    steps: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Span:
    """Elements between two sizes, or between bounds that the data choose.

    Where `attained`, both bounds occur if there are any elements; where the data decide the elements, both
    occur for some data. In a `dense` span all integers between the bounds occur, too.
    """

    low: Dim
    high: Dim
    attained: bool
    by_data: bool = False
    dense: bool = False


@dataclass(frozen=True, slots=True)
class Subscripts:
    """Indices into a shape, which the data decide: number i along the last axis is an index of dim i, shifted
    by the offset given for that dim. Where `attained`, each index occurs for some data.
    """

    shape: Shape
    added: int
    attained: bool = False


@dataclass(frozen=True, slots=True)
class Ratio:
    """Elements that all equal the same fraction of sizes, computed in floats that were rounded so many times.
    """

    numerator: Dim
    denominator: int
    roundings: int


@dataclass(frozen=True, slots=True)
class Truths:
    """Booleans that sizes decide: whether some are true, and whether all are, provided there are any.

    `within`, where known, is `(axis, first, last)`: exactly the elements from index `first` up to before
    index `last` along the axis, counted from the end, are true. None means no bound.
    """

    some: Formula
    every: Formula
    within: tuple[int, Dim | None, Dim | None] | None = None
    compares: Comparison | None = None
    """The comparison that each element makes of a number at its own index, if that is known."""


@dataclass(frozen=True, slots=True)
class Index:
    """A variable that runs from 0 to `size - 1` in the term of some elements.

    `axis`, counted from the end, is the one along which the elements vary with it; None where their order is
    not known. Of several `ordered` indices of one axis the last runs fastest. An index that is not ordered
    takes all of its values along the axis, in an unknown order. An index that is not `dense` takes its first
    and its last value, and perhaps not all between.
    """

    name: str
    size: Dim
    axis: int | None = None
    ordered: bool = True
    dense: bool = True


@dataclass(frozen=True, slots=True)
class Near:
    """Floats in doubt, made from `term / over`, that differ from it by less than 1 at the sizes in `where`.
    As an integer each differs by at most 1, and none has another sign.

    All are integers, and exact, where `part / over` is one, unless that is None. If they are `sharp`, so is
    the greatest of them wherever none is in doubt.
    """

    term: Dim
    over: Dim
    where: Formula
    part: Dim | None = None
    sharp: bool = False


@dataclass(frozen=True, slots=True)
class Piece:
    """Elements that have the value `term / over` at each value of some indices, at the sizes that satisfy
    `given`.

    `term` is None for elements about which only one thing is known, that sizes decide them. All values occur
    if `attained`, else some of them. `fixed` names axes; these elements lie at a single index of each. At the
    sizes in `doubt` floats have been rounded: numbers there that are at least `least`, or at most `-least`,
    still are, and nothing else is known of them. Smaller numbers are exact. Where `once` is this term, and a
    number of binary digits, each has been rounded once, to the nearest float of so many digits.
    """

    term: Dim | None
    over: Dim = 1
    indices: tuple[Index, ...] = ()
    given: Formula = True
    attained: bool = True
    fixed: tuple[tuple[int, int], ...] = ()
    doubt: Formula = False
    least: int = 0
    once: tuple[Dim, int] | None = None
    near: Near | None = None


@dataclass(frozen=True, slots=True)
class Pieces:
    """Elements that several pieces describe together.

    With `by_data`, the data choose among the pieces, each for some data. `roundings` counts the float
    operations that have rounded; with `slack`, the exact values may differ from the pieces by less than 1.
    With `and_data`, there may be further elements that the user gives.
    """

    pieces: tuple[Piece, ...]
    by_data: bool = False
    roundings: int = 0
    slack: bool = False
    and_data: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """`x < bound` where `below`, else `x >= bound`, for the element x of a piece at the same index."""

    piece: Piece
    bound: int
    below: bool


@dataclass(frozen=True, slots=True)
class Image:
    """Elements that a chain of non-decreasing functions makes from the elements of a piece at the same index.

    The elements of the piece lie between two fractions, both included.
    """

    piece: Piece
    low: Fraction
    high: Fraction
    steps: tuple[tuple[str, float], ...]
    """The functions, each with the number that is its other argument, or with 0."""
    others: tuple[Piece, ...] = ()
    """Pieces of which there are elements besides, in any order."""


class Untracked(Enum):
    """Elements that sizes decide, but whose values are not tracked."""

    UNTRACKED = "untracked"


UNTRACKED: Final = Untracked.UNTRACKED
Elements: TypeAlias = (
    "Affine | Span | Subscripts | Ratio | Pieces | Truths | Image | Untracked | None"
)
"""Knowledge about the elements of an index tensor; None for elements that are the user's data."""


class Tensor(Struct, frozen=True):
    """The type of a tensor: its shape, dtype and layout.

    `dtype` is torch's name without the prefix (`float32`), None where it is not known. `layout` is the tuple
    of strides, in elements, one for each size, or a name for them.
    """

    shape: Shape
    dtype: str | None = "float32"
    layout: Layout | tuple[Dim, ...] = Layout.CONTIGUOUS
    elements: Elements = None

    def __hash__(self) -> int:
        """Returns the hash of the shape alone, which is quick: few tensors differ in the rest only."""
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
    """Returns the text of a size of a shape; a row has a star: `*x` for all of it, `*x[1:]` for a part."""
    return str(dim) if row_of(dim) is None else "*" + str(dim).replace("[:]", "")


class Dynamic:
    """The unknown type, consistent with every other."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Dyn"

    def __reduce__(self) -> str:
        return "Dyn"


Dyn: Final = Dynamic()


@dataclass(frozen=True, slots=True)
class Number:
    """A number that is not a size and whose value is not known: the `float` that `x.item()` returns."""

    kind: Literal["bool", "int", "float", "complex"]


@dataclass(frozen=True, slots=True)
class Quotient(Number):
    """The float nearest to `over / under`. Sizes are far below 2**52, so rounding it rounds the fraction."""

    over: Dim
    under: Dim


@dataclass(frozen=True, slots=True)
class Proportion(Number):
    """A float near `over / under`, after a few roundings."""

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
"""A value that is neither a tensor nor composed of others."""

Value: TypeAlias = "Tensor | tuple[Value, ...] | Plain"
"""An argument or a result of a rule. A list arrives as a tuple; a dtype as its name; a condition on sizes as
a formula.
"""


Direction: TypeAlias = Literal["accept", "refuse", "both"]
"""The errors that an approximation may make. With `accept` it may omit a refusal of torch's; its result is
right, or one of those that it allows for. With `refuse` it may require more than torch does. With `both`,
either is possible.
"""


class NumericalError(RuntimeError):
    """Stands for torch's own error of linear algebra, a RuntimeError: a matrix has no inverse."""


class Refused(Exception):
    """Raised by a rule: the call fails for every assignment (a wrong rank, an index out of range).

    `error` is the type of the exception that torch raises there.
    """

    def __init__(self, reason: str, error: type[Exception] = RuntimeError) -> None:
        super().__init__(reason)
        self.error = error


@dataclass(frozen=True, slots=True)
class Between:
    """Two numbers, neither of them NaN, between which elements lie: as torch's kernels round them, too."""

    low: float
    high: float


Case: TypeAlias = "tuple[Formula, int | float | Between | None]"
"""Sizes, and the number that each element of a tensor is there, or the bounds of all elements; None where it
has no elements.
"""
Cases: TypeAlias = tuple[Case, ...]


class ComputedElements(Protocol):
    """Elements that are computed one by one; with `by_data`, the data choose among them."""

    @property
    def by_data(self) -> bool: ...

    def valid(self, is_valid: Callable[[int | float], bool]) -> Formula | None:
        """Returns the condition under which all of them are valid; None where it is not found."""

    def strides_fit(self, length: Dim) -> Formula | None:
        """Returns the condition under which 64 bits hold the strides of a tensor that has so many elements as
        its sizes; None where it is not found.
        """


class Context(Protocol):
    """The services that a rule may use.

    It never solves: `at_least` knows intervals of the declared domain and nothing else.
    """

    def require(
        self, formula: Formula, reason: str, error: type[Exception] = RuntimeError, *, by_data: bool = False
    ) -> None:
        """Requires the formula: where it is false, torch raises an exception of this type.

        The type is `Exception` where more than the sizes decides it. With `by_data`, the call may also
        succeed elsewhere for some data. Requirements are stated in the order of torch's own checks: a call
        that violates several raises the exception of the first.
        """

    def refuse(self, reason: str, error: type[Exception] = RuntimeError) -> NoReturn:
        """Refuses the call for all sizes: torch raises an exception of this type. Raises Refused."""

    def approximate(
        self, reason: str, may: Direction = "both", where: Formula = True, *, number: str = ""
    ) -> None:
        """Marks the rule's result or requirement as inexact, at the sizes `where` a formula holds, for the
        reason given. `may` is its direction; `number` the symbol of a number, if only that is inexact.
        """

    def fresh(
        self,
        hint: str,
        low: Dim | None,
        high: Dim | None,
        also: Callable[[Term], Formula] | None = None,
        counted: Tensor | None = None,
    ) -> Term:
        """Returns a size that the data decides, between the bounds (both included).

        `also` may state more about it. It may be the number of `true` or `distinct` elements of the tensor
        that is `counted`, which is decided by sizes if the elements are.
        """

    def trues(self, mask: Tensor) -> Dim:
        """Returns how many elements are true, or other than 0, which the data decides; the same for every
        call on one mask.
        """

    def may_be_alike(self, tensor: Tensor) -> bool:
        """Returns whether some data make all elements of a tensor any one number, as far as is known. All
        elements of a mask may then be false.
        """

    def stored(self, tensor: Tensor) -> Dim:
        """Returns how many elements of a sparse tensor are stored; the same for every call on one tensor."""

    def since(self, *release: int) -> bool:
        """Returns whether the program runs with this release of torch, such as `2, 14`, or a later one."""

    @property
    def floats(self) -> str:
        """The dtype of floats for which the program names none: torch's default dtype."""

    def unchecked(self, formula: Formula) -> None:
        """Declares that torch does not check the range of the call's indices where the formula holds."""

    def layouts(self, tensor: Tensor) -> Sequence[tuple[Situation, Tensor]] | None:
        """Returns the tensor in several cases, with its layout in each; None where they cannot be found.

        It is for a tensor whose layout is not known for all sizes at once. One of the cases always holds,
        except where the tensor has no elements, or is not created.
        """

    def memory_of(self, tensor: Tensor) -> tuple[Dim, Dim] | None:
        """Returns how many elements the memory of the tensor can hold, and where in it the tensor begins;
        None where that is not known.
        """

    def at_rest(self, target: Tensor) -> Formula | None:
        """Returns the condition under which the value that the call copies into the tensor lies there
        already, so that torch copies nothing; None where it is not known.
        """

    def without_data(self, tensor: Tensor, *, numbers: bool = False) -> tuple[Cases, Formula]:
        """Returns where the elements of a tensor that the call is given depend on no data: the cases in which
        each is a known number, and the sizes at which there are others. With `numbers`, the latter only where
        the elements are computed from nothing, or may be NaN.
        """

    def range_of(self, tensor: Tensor) -> tuple[Dim | float | None, Dim | float | None]:
        """Returns the least and the greatest number that the elements of a tensor, an argument of the call,
        may be, for any data; None where no bound is known.
        """

    def computed(self, tensor: Tensor, *, one: bool = False) -> Sequence[ComputedElements]:
        """Returns what computes all elements of a tensor, an argument of the call, from the integers of some
        ranges, or of `one`; nothing where it is not known.
        """
        return ()

    def needed(
        self,
        tensor: Tensor,
        low: Dim | None,
        high: Dim | None,
        ignored: int | None = None,
        *,
        sizes: bool = False,
    ) -> tuple[Formula, bool] | None:
        """Returns the sizes at which all elements of a tensor, an argument of the call, that are not ignored
        lie between two numbers, and whether the data choose the elements; None where that is not found. If
        they are `sizes`, 64 bits have to hold the strides of a tensor of these.
        """
        return None

    def with_all_true(self, formula: Formula) -> Formula:
        """Returns the formula for the case that masks which the user may choose freely are all true."""
        return formula

    def is_identity(self, tensor: Tensor) -> bool:
        """Whether each matrix of a tensor, an argument of the call, is the identity."""

    def no_inverse(self, op: str, tensor: Tensor) -> Formula:
        """Returns sizes at which an operator may refuse a matrix, an argument of its, whatever the data."""

    def none_between(self, tensor: Tensor, low: Dim | None, high: Dim | None, some: bool) -> Formula:
        """Returns sizes at which there may be no data that give an argument of the call elements between two
        numbers, or where `some`, above 0.
        """

    def no_index_between(self, tensor: Tensor, low: Dim, high: Dim) -> Formula:
        """Returns sizes at which there may be no data that give indices, an argument of the call that is made
        of floats, between two numbers.
        """

    def may_be_true(self, tensor: Tensor) -> bool:
        """Returns whether it is known that some data make an argument of the call, one element, true."""

    def may_differ(self, tensor: Tensor) -> bool:
        """Returns whether it is known that elements of an argument of the call are equal for some data, and
        differ for others.
        """

    def may_be_nan(self, tensor: Tensor) -> Formula:
        """Returns sizes at which an argument of the call, or what it is made of, may be NaN for all data."""

    def is_data(self, dim: Dim) -> bool:
        """Returns whether the data decide the size."""

    def at_least(self, dim: Dim, bound: int) -> bool:
        """Returns whether dim >= bound for every input in the declared domain.

        False also where intervals cannot decide it.
        """

    def certain(self, formula: Formula) -> bool:
        """Returns whether the known facts imply the formula. False also where intervals cannot decide it."""

    def number(self, dim: Dim) -> int:
        """Returns how many results the call has, as a number, where that depends on sizes."""

    def choose(self, formula: Formula, reason: str) -> bool:
        """Returns whether the formula holds, for questions that the result depends on, such as its rank.

        The recorder may follow both answers on separate paths.
        """


class Situation(Context, Protocol):
    """A context restricted to some of the sizes, where sizes may have larger lower bounds."""

    @property
    def condition(self) -> Formula:
        """The condition that describes this case."""

    def here(self, value: Any) -> Any:
        """Returns the value in this case."""


@dataclass(frozen=True, slots=True)
class Constraint:
    """A formula that must hold for a node to run, and the reason."""

    formula: Formula
    reason: str
    node: int
    kind: Literal["model", "trace"] = "model"
    by_data: bool = False
    """Whether some data also fit where the formula is false: random numbers, positions of a maximum."""
    error: type[Exception] = field(default=RuntimeError, compare=False)
    """The exception that torch raises where the formula is false."""
    alone: bool = False
    """Whether no sizes make sure of it, so that the data alone decide where some of them fit."""
    decided: int | None = field(default=None, compare=False)
    """The number of sizes that the data have decided before it; None if the whole path is known to be taken.
    What is known of later ones may hold only where the requirement is met: a maximum exists where there are
    elements.
    """


@dataclass(frozen=True, slots=True)
class Fact:
    """Knowledge about one dim: `min <= dim <= max`, where None means no bound, and `dim % divisor ==
    remainder`.

    A dim with one value has divisor 0 and that value as remainder. Where `exact` is true, the bounds are
    attained, the divisor is the greatest, and every field is proved.
    """

    min: int | None
    max: int | None
    divisor: int = 1
    remainder: int = 0
    equals: Dim | None = None
    """Another term that always equals the dim."""
    values: tuple[tuple[int | None, int | None], ...] | None = None
    """The values as intervals, in steps of `divisor`; None where they do not form such intervals, or are not
    known.
    """
    exact: bool = True
    residues: tuple[int, tuple[int, ...]] | None = None
    """`(m, rs)`: the values are all integers from min to max that are congruent to one of rs modulo m. None
    where this adds nothing to the other fields, or is false.
    """


@dataclass(frozen=True, slots=True)
class Note:
    """A limit of the analysis.

    At a node, it is an inexact rule (`approximate`) or a missing one (`no-rule`). At no node, it is a limit
    of the whole run: `trace-limit`, a fact of the trace that formulas cannot express, or `bounded-rank`, a
    bound on the ranks examined.
    """

    code: Literal["approximate", "no-rule", "trace-limit", "bounded-rank"]
    reason: str
    node: int
    may: Direction = "both"
    """The direction of an approximation."""
    where: Formula = True
    """The sizes at which an approximation is not exact."""
    number: str = ""
    """The symbol of the number that is approximate, if it is only one: where no condition contains that, the
    note says nothing about the sizes that a program accepts.
    """

    @property
    def inexact(self) -> bool:
        return self.code in ("approximate", "no-rule", "trace-limit")

    @property
    def may_accept(self) -> bool:
        """Returns whether sizes may be accepted that torch refuses."""
        return self.code == "trace-limit" or (self.code == "approximate" and self.may != "refuse")

    @property
    def doubts_call(self) -> bool:
        """Returns whether torch may refuse the call itself at sizes that are accepted."""
        return self.code == "no-rule" or (self.may_accept and not self.number)

    @property
    def may_refuse(self) -> bool:
        """Returns whether sizes may be refused that torch accepts."""
        return self.code == "approximate" and self.may != "accept"


@dataclass(slots=True)
class Generated:
    """The output of the rules for a program: a value per result, and constraints and notes in program order.
    """

    values: dict[int, Value] = field(default_factory=dict)
    constraints: list[Constraint] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    unbacked: dict[str, Formula] = field(default_factory=dict)
    """Sizes that the data decides, by name, with the known condition on each."""


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
