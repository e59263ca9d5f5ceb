"""A call of an operator, in the form that the laws of elements use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from ...ir.language import Affine, Elements, Pieces, Proportion, Quotient, Tensor
from ...terms.dims import Term
from ...terms.formula import Formula, any_of, ge
from ..elements.dtypes import DIGITS, SMALL
from ..elements.functions import AtLeast
from ..elements.shaping import stretched
from ..elements.values import constant, of, pieces_of

Named: TypeAlias = Mapping[str, Any]
MOST_SINGLE: Final = 1 << DIGITS["float32"]
"""Integers up to this one are singles."""


def nothing_usual(mask: Tensor) -> tuple[Formula, Formula]:
    """Returns that a mask is never known to be the same for all data."""
    return False, False


@dataclass(frozen=True, slots=True)
class NamedCall:
    """A call of an operator, by the names of its arguments, with its result before facts about the result's
    elements.
    """

    op: str
    named: Named
    result: Any
    at_least: AtLeast
    is_free: Callable[[Tensor], bool] = lambda tensor: False
    """Returns whether the user gives the elements of a tensor independently of each other: any occur."""
    usual: Callable[[Tensor], tuple[Formula, Formula]] = nothing_usual
    """Returns the sizes at which no data make a mask true, and those at which all do."""

    @property
    def input(self) -> Tensor:
        found = self.named.get("input")
        if isinstance(found, Tensor):
            return found
        return next(value for value in self.named.values() if isinstance(value, Tensor))

    @property
    def pieces(self) -> Pieces | None:
        """Returns the elements of the input."""
        return pieces_of(of(self.input), self.input.shape)

    def operand(self, name: str) -> Pieces | None:
        """Returns an operand of arithmetic, broadcast to the shape of the result."""
        value = self.named.get(name)
        if isinstance(value, Tensor):
            pieces = pieces_of(of(value), value.shape)
            return None if pieces is None else stretched(pieces, value.shape, self.result.shape)
        return (self.result.dtype == "float32" and _of_single(value)) or of_number(value)


    def are_apart(self, *names: str) -> bool:
        """Returns whether no two operands vary along the same axis."""
        shapes = [value.shape for name in names if isinstance(value := self.named.get(name), Tensor)]
        axes = [at for shape in shapes for at, size in enumerate(reversed(shape)) if size != 1]
        return len(axes) == len(set(axes))


Law: TypeAlias = Callable[[NamedCall], "Elements | Pieces"]
"""Returns the facts about the elements of a result; pieces are not yet restricted to its dtype."""


def one_value(tensor: Tensor) -> int | None:
    """Returns the common value of all elements, where it is a number; else None."""
    match tensor.elements:
        case Affine(int() as value, ()):
            return value
    return None


def _of_single(value: Any) -> Pieces | None:
    """Returns a float that lies next to an integer, as a single: this integer, if singles hold it."""
    match value:
        case Proportion("float", over, under) if over % under == 0:
            (whole,) = constant(over // under).pieces
            number = over // under
            doubt, most = any_of((ge(number, MOST_SINGLE + 1), ge(-MOST_SINGLE - 1, number))), MOST_SINGLE
            return Pieces((replace(whole, doubt=doubt, least=most),))
    return None


def of_number(value: Any) -> Pieces | None:
    """Returns a number as an operand; floats only if they are fractions with a small denominator, else None.
    """
    match value:
        case bool():
            return constant(int(value))
        case int() | Term():
            return constant(value)
        case float() if value == value and abs(value) < 1 << 53:
            over, under = value.as_integer_ratio()
            return constant(over, under) if under <= SMALL else None
        case Quotient("float", over, under):
            if over % under == 0:  # the float nearest to an integer is that
                return constant(over // under)
            part = under // over if under % over == 0 else 0
            power = isinstance(part, int) and part & (part - 1) == 0 < part
            return constant(1, part) if power else constant(over, under, roundings=1)
        case Proportion("float", over, under):
            whole = (over // under, 1) if over % under == 0 else (over, under)
            return replace(constant(*whole, roundings=2), slack=True)
    return None


CASTS: Final = frozenset(
    "to _to_copy type type_as long int short float double half bfloat16 char byte bool "
    "prims::convert_element_type".split()
)
MOVES: Final = frozenset(
    "clone contiguous detach alias lift_fresh_copy cpu unsqueeze squeeze view reshape view_as reshape_as "
    "flatten unflatten ravel transpose permute T t mT movedim flip fliplr flipud roll rot90 msort sort "
    "unique unique2 _unique _unique2 unique_consecutive _unique_consecutive expand expand_as broadcast_to "
    "repeat tile repeat_interleave".split()
)
"""Operators whose first result has all elements of the input, and no others, where it has any."""
