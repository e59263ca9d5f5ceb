"""Sizes at which a matrix may lack full rank, or be indefinite, whatever the data.

A matrix of independent numbers has full rank for some data, and so has what is computed from such matrices by
the operators of the tables below. Of any other matrix nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ...ir.language import Number, Tensor
from ...terms.formula import Formula, all_of, any_of, ge, lt, ne
from ..elements.dtypes import WHOLE
from .constancy import Made
from .dataless import RANDOM, SAMPLING, STRETCHING, Dataless
from .scattered import (
    COPIES,
    DEEPEST,
    DRAWN,
    INJECTIVE,
    TRANSPOSED,
    are_independent,
    free_numbers,
    is_plain,
    of_one_number,
    operands_of,
    scales,
    shape_of,
    takes_once,
)

_DEFINITE: Final = frozenset("cholesky linalg_cholesky".split())
"""Operators that take positive definite matrices alone."""
_FLATTENING: Final = frozenset("linalg_tensorinv linalg_tensorsolve".split())
"""Operators that take all elements for those of one matrix."""
_ROWS: Final = frozenset("sum mean norm cumsum softmax sort topk qr linalg_qr svd linalg_svd".split())
"""Operators whose results have full rank for some data where all elements are independent."""
_INVERSES: Final = frozenset("inverse linalg_inv".split())
_PRODUCTS: Final = frozenset("matmul mm bmm linear".split())
_TRIANGLES: Final = {"tril": -1, "triu": 1}
"""For each operator the sign of the diagonals beyond the main one, without which a triangle is singular."""


@dataclass(frozen=True, slots=True)
class Doubt:
    """The sizes at which a matrix may lack full rank for all data, and at which it may not be positive
    definite for any.
    """

    singular: Formula
    indefinite: Formula


_NONE: Final = Doubt(False, False)
_ANY: Final = Doubt(True, True)


def no_inverse(program: Dataless, is_identity: Callable[[int], bool], op: str, ref: int) -> Formula:
    """Returns sizes at which an operator may refuse a matrix, by its reference, whatever the data."""
    if op == "_linalg_check_errors":  # of the numbers that `linalg_inv_ex` returns beside the inverse
        made = program.made(ref)
        if made is None:  # the data of an input may be zeros
            return program.of_elements(ref) if free_numbers(program, ref) == "all" else True
        if not made.op.endswith("_ex"):
            return True
        op, ref = made.op.removesuffix("_ex"), operands_of(made)[0]
    value = program.value(ref)
    if not isinstance(value, Tensor) or len(value.shape) < 2:
        return False
    if op in _FLATTENING:
        return not _is_scattered(program, ref)
    found = _Matrices(program, is_identity).doubt(ref, DEEPEST)
    return all_of((ge(value.shape[-1], 1), found.indefinite if op in _DEFINITE else found.singular))


@dataclass(frozen=True, slots=True)
class _Matrices:
    """The matrices of a program."""

    program: Dataless
    is_identity: Callable[[int], bool]

    def doubt(self, ref: int, depth: int) -> Doubt:
        """Returns what is not known of a matrix, or of a batch of them, looking so many operators back."""
        numbers, none = free_numbers(self.program, ref, depth), self.program.of_elements(ref)
        if numbers is not None:
            return Doubt(none, none if numbers != "some" else True)
        value, made = self.program.value(ref), self.program.made(ref)
        if not isinstance(value, Tensor) or depth == 0 or self.program.is_overwritten(ref):
            return _ANY
        if len(value.shape) < 2:
            return _ANY
        if value.dtype in WHOLE:
            return _ANY  # a cast may have rounded all to one number
        if self._is_one(ref):
            return _NONE
        if made is None:
            return _ANY
        operands = operands_of(made)
        first = operands[0] if operands else ref
        if made.op in ("diag", "diag_embed"):
            plain = made.get("diagonal", "offset") in (None, 0) and len(operands) == 1
            return _NONE if plain and _is_scattered(self.program, first, depth - 1) else _ANY
        if made.op in DRAWN:
            one = of_one_number(made)
            return Doubt(one, one)
        if made.op == "bernoulli" and type(made.get("p")) is not Number and len(operands) == 1:
            return _NONE  # with a chance that is known not to be 0 or 1, or of the data
        if made.op == "linear" and len(operands) == 3:
            *operands, bias = operands
            if not _is_scattered(self.program, bias, depth - 1) or not all(
                are_independent(self.program, bias, one) for one in operands
            ):
                return _ANY
        if made.op in _PRODUCTS and len(operands) == 2:
            return self._of_product(made, operands, depth)
        if made.op == "add" and len(operands) == 2 and made.get("alpha") in (None, 1):
            return self._of_sum(operands, depth)
        if len(operands) != 1:
            return _ANY
        if made.op in _TRIANGLES:
            beyond = made.get("diagonal")
            is_full = beyond is None or (isinstance(beyond, int) and beyond * _TRIANGLES[made.op] <= 0)
            return Doubt(not (is_full and _is_scattered(self.program, first, depth - 1)), True)
        if made.op in _ROWS:
            return Doubt(not _is_scattered(self.program, first, depth - 1), True)
        if made.op == "matrix_exp":
            return Doubt(False, True)
        given = self.doubt(first, depth - 1)
        if made.op in COPIES | TRANSPOSED | _INVERSES or scales(self.program, made):
            return given
        if made.op in INJECTIVE or made.op in ("mul", "div"):
            constant = self.program.of_elements(first)
            is_fixed = made.op in INJECTIVE or is_plain(self.program, made)
            return Doubt(any_of((given.singular, constant)), True) if is_fixed else _ANY
        is_whole = made.op in STRETCHING and value.shape[-2:] == shape_of(self.program, first)[-2:]
        return given if made.op == "unsqueeze" or _is_part(made) or is_whole else _ANY

    def _of_sum(self, operands: list[int], depth: int) -> Doubt:
        """A sum is positive definite where a term is, and the other is positive semidefinite for all data. So
        is the sum of a matrix and its transpose, for some data.
        """
        one, other = operands
        if _are_transposes(self.program, one, other) and len(shape_of(self.program, one)) > 1:
            given, (rows, columns) = self.doubt(one, depth - 1), shape_of(self.program, one)[-2:]
            stretched = ne(rows, columns)
            return Doubt(any_of((stretched, given.singular)), any_of((stretched, given.indefinite)))
        is_same = shape_of(self.program, one) == shape_of(self.program, other)
        pairs = ((one, other), (other, one)) if is_same else ()
        indefinite = all_of(
            self.doubt(given, depth - 1).indefinite
            for given, rest in pairs
            if self._is_semidefinite(rest, depth - 1)
        )
        return Doubt(indefinite, indefinite) if pairs else _ANY

    def _is_semidefinite(self, ref: int, depth: int) -> bool:
        """Returns whether a matrix is positive semidefinite for all data: `x @ x.mT`, `eye`, sums of such."""
        value, made = self.program.value(ref), self.program.made(ref)
        if not isinstance(value, Tensor) or depth == 0 or self.program.is_overwritten(ref):
            return False
        if self._is_one(ref):
            return True
        if made is None:
            return False
        operands = operands_of(made)
        if made.op == "cov":
            return True
        if made.op in _PRODUCTS and len(operands) == 2:
            is_one = operands[0] == operands[1]
            return is_one if made.op == "linear" else _are_transposes(self.program, *operands)
        if made.op == "add":
            return len(operands) == 2 and all(self._is_semidefinite(one, depth - 1) for one in operands)
        is_scaled = len(operands) == 1 and scales(self.program, made)
        return is_scaled and self._is_semidefinite(operands[0], depth - 1)

    def _is_one(self, ref: int) -> bool:
        """Returns whether a tensor holds identity matrices."""
        made = self.program.made(ref)
        return self.is_identity(ref) or (made is not None and made.op == "eye")

    def _of_product(self, made: Made, operands: list[int], depth: int) -> Doubt:
        """`[n, k] @ [k, m]` has a rank of at most k, and no more than either operand."""
        left, right = operands
        one, other = shape_of(self.program, left), shape_of(self.program, right)
        if len(one) < 2 or len(other) < 2:
            return _ANY
        given = [self.doubt(ref, depth - 1) for ref in operands]
        rows, inner, columns = *one[-2:], other[0] if made.op == "linear" else other[-1]
        short = all_of((lt(inner, rows), lt(inner, columns)))
        singular = any_of((short, *(doubt.singular for doubt in given)))
        is_square = left == right if made.op == "linear" else _are_transposes(self.program, left, right)
        is_free = are_independent(self.program, left, right)
        return Doubt(singular, singular if is_square or is_free else True)


def _is_scattered(program: Dataless, ref: int, depth: int = DEEPEST) -> bool:
    return free_numbers(program, ref, depth) is not None


def _is_part(made: Made) -> bool:
    """Returns whether a call selects matrices of a batch, or rows of one, in their order."""
    is_basic = made.op != "getitem" or takes_once(made.get("index"))
    return made.op in ("getitem", "narrow", "slice", "select") and is_basic


def _are_transposes(program: Dataless, one: int, other: int) -> bool:
    """Returns whether one of two tensors shows the transposed matrices of the other."""
    for given, rest in ((one, other), (other, one)):
        made = program.made(given)
        if made is not None and made.op in TRANSPOSED and _are_one(program, operands_of(made)[0], rest):
            return getattr(program.value(rest), "dtype", None) not in ("complex64", "complex128")
    return False


def _are_one(program: Dataless, one: int, other: int) -> bool:
    """Returns whether two values are one, or results of calls of one operator with the same arguments."""
    a, b = program.made(one), program.made(other)
    same = a is not None and b is not None and (a.op, a.node.args, a.place) == (b.op, b.node.args, b.place)
    return one == other or (same and a is not None and a.op not in RANDOM | SAMPLING)
