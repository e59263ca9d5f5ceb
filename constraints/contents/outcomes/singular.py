"""Sizes at which a matrix may lack full rank, or be indefinite, whatever the data.

A matrix of independent numbers has full rank for some data, and so has what is computed from such matrices by
the operators of the tables below. Of any other matrix nothing is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from ...ir.language import Ellipses, Number, Shape, Slice, Tensor
from ...ir.program import refs
from ...terms.dims import Term
from ...terms.formula import Formula, all_of, any_of, ge, lt
from ..elements.dtypes import WHOLE
from .constancy import Made
from .dataless import RANDOM, SAMPLING, STRETCHING, Dataless

_DEFINITE: Final = frozenset("cholesky linalg_cholesky".split())
"""Operators that take positive definite matrices alone."""
_FLATTENING: Final = frozenset("linalg_tensorinv linalg_tensorsolve".split())
"""Operators that take all elements for those of one matrix."""
_INJECTIVE: Final = frozenset(
    "add sub rsub neg asinh atan erf exp exp2 expm1 sigmoid sinh softplus softsign tanh tanhshrink".split()
)
"""Operators that give different numbers for different numbers, element by element."""
_NOT_CONSTANT: Final = frozenset(
    """
    abs cos elu float_power gelu hardswish leaky_relu log log10 log1p log2 mish pow rdiv reciprocal relu rpow
    rsqrt selu silu sin sqrt square
    """.split()
)
"""Operators that give different numbers for some positive numbers, element by element."""
_POSITIVE: Final = frozenset("abs exp exp2 relu sigmoid softplus sqrt square".split())
"""Those of both that give small and large positive numbers for positive ones."""
_COPIES: Final = frozenset(
    "clone contiguous detach alias to type double float half bfloat16 cdouble cfloat conj cpu cuda".split()
)
_TRANSPOSED: Final = frozenset("T mT H mH adjoint t transpose swapaxes swapdims".split())
_MOVED: Final = frozenset(
    """
    permute movedim moveaxis view reshape flatten unflatten squeeze unsqueeze flip roll select narrow slice
    getitem split chunk unbind tensor_split diagonal diag diag_embed
    """.split()
)
"""Operators that give each element of theirs a place of its own, or leave it out; `diag` adds zeros, too."""
_ROWS: Final = frozenset("sum mean norm cumsum softmax sort topk qr linalg_qr svd linalg_svd".split())
"""Operators whose results have full rank for some data where all elements are independent."""
_INVERSES: Final = frozenset("inverse linalg_inv".split())
_PRODUCTS: Final = frozenset("matmul mm bmm linear".split())
_TRIANGLES: Final = {"tril": -1, "triu": 1}
"""For each operator the sign of the diagonals beyond the main one, without which a triangle is singular."""
_SUMS: Final = frozenset("add sub rsub".split())
_JOINING: Final = frozenset("stack cat concat concatenate".split())
_CONSTANT_AT: Final[Mapping[str, tuple[int, ...]]] = {
    **dict.fromkeys("mul div rdiv pow float_power".split(), (0,)), "rpow": (0, 1),
}  # fmt: skip
"""For each operator the numbers at which its result depends on no data."""
_DRAWN: Final = {
    "uniform": ("from", "to", 0), "random": ("low", "high", 1), "randint": ("low", "high", 1),
    "randint_like": ("low", "high", 1),
}  # fmt: skip
"""Operators that draw from a range: its ends, and how far apart they are where it holds one number alone."""
_DEEPEST: Final = 8
"""At most this many operators back a matrix is looked at."""


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
    value = program.value(ref)
    if not isinstance(value, Tensor) or len(value.shape) < 2:
        return False
    if op in _FLATTENING:
        return not _is_scattered(program, ref, _DEEPEST)
    found = _Matrices(program, is_identity).doubt(ref, _DEEPEST)
    return all_of((ge(value.shape[-1], 1), found.indefinite if op in _DEFINITE else found.singular))


@dataclass(frozen=True, slots=True)
class _Matrices:
    """The matrices of a program."""

    program: Dataless
    is_identity: Callable[[int], bool]

    def doubt(self, ref: int, depth: int) -> Doubt:
        """Returns what is not known of a matrix, or of a batch of them, looking so many operators back."""
        numbers, none = _numbers(self.program, ref, depth), self.program.of_elements(ref)
        if numbers is not None:
            return Doubt(none, none if numbers != "some" else True)
        value, made = self.program.value(ref), self.program.made(ref)
        if not isinstance(value, Tensor) or depth == 0 or self.program.is_overwritten(ref):
            return _ANY
        if self._is_one(ref):
            return _NONE
        if made is None:
            return _ANY
        operands = _operands(made)
        first = operands[0] if operands else ref
        if made.op in ("diag", "diag_embed"):
            plain = not made.get("diagonal", "offset") and len(operands) == 1
            return _NONE if plain and _is_scattered(self.program, first, depth - 1) else _ANY
        if made.op in _DRAWN:
            one = _of_one_number(made)
            return Doubt(one, one)
        if made.op == "bernoulli" and type(made.get("p")) is not Number and len(operands) == 1:
            return _NONE  # with a chance that is known not to be 0 or 1, or of the data
        if made.op == "linear" and len(operands) == 3:
            *operands, bias = operands
            if not _is_scattered(self.program, bias, depth - 1) or not all(
                _are_independent(self.program, bias, one) for one in operands
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
        if made.op in _COPIES | _TRANSPOSED | _INVERSES or _scales(self.program, made):
            return given
        if made.op in _INJECTIVE or made.op in ("mul", "div"):
            constant = self.program.of_elements(first)
            is_fixed = made.op in _INJECTIVE or _is_plain(self.program, made)
            return Doubt(any_of((given.singular, constant)), True) if is_fixed else _ANY
        is_whole = made.op in STRETCHING and value.shape[-2:] == _shape(self.program, first)[-2:]
        return given if made.op == "unsqueeze" or _is_part(made) or is_whole else _ANY

    def _of_sum(self, operands: list[int], depth: int) -> Doubt:
        """A sum is positive definite where a term is, and the other is positive semidefinite for all data. So
        is the sum of a matrix and its transpose, for some data.
        """
        one, other = operands
        if _are_transposes(self.program, one, other):
            return self.doubt(one, depth - 1)
        is_same = _shape(self.program, one) == _shape(self.program, other)
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
        operands = _operands(made)
        if made.op == "cov":
            return True
        if made.op in _PRODUCTS and len(operands) == 2:
            is_one = operands[0] == operands[1]
            return is_one if made.op == "linear" else _are_transposes(self.program, *operands)
        if made.op == "add":
            return len(operands) == 2 and all(self._is_semidefinite(one, depth - 1) for one in operands)
        is_scaled = len(operands) == 1 and _scales(self.program, made)
        return is_scaled and self._is_semidefinite(operands[0], depth - 1)

    def _is_one(self, ref: int) -> bool:
        """Returns whether a tensor holds identity matrices."""
        made = self.program.made(ref)
        return self.is_identity(ref) or (made is not None and made.op == "eye")

    def _of_product(self, made: Made, operands: list[int], depth: int) -> Doubt:
        """`[n, k] @ [k, m]` has a rank of at most k, and no more than either operand."""
        (left, right), given = operands, [self.doubt(one, depth - 1) for one in operands]
        rows, inner, columns = (*_shape(self.program, left)[-2:], *_shape(self.program, right)[-1:])
        if made.op == "linear":
            columns = _shape(self.program, right)[0]
        if len(_shape(self.program, left)) < 2 or len(_shape(self.program, right)) < 2:
            return _ANY
        short = all_of((lt(inner, rows), lt(inner, columns)))
        singular = any_of((short, *(one.singular for one in given)))
        is_square = left == right if made.op == "linear" else _are_transposes(self.program, left, right)
        is_free = _are_independent(self.program, left, right)
        return Doubt(singular, singular if is_square or is_free else True)


def _is_scattered(program: Dataless, ref: int, depth: int) -> bool:
    """Returns whether the elements of a tensor are independent numbers that the data decide."""
    return _numbers(program, ref, depth) is not None


def _numbers(program: Dataless, ref: int, depth: int) -> str | None:
    """Returns the numbers that each element of a tensor may be, whatever the others are: "all", "positive"
    ones up to some bound, or "some". None where elements depend on each other or may not be of data.
    """
    value, made = program.value(ref), program.made(ref)
    if not isinstance(value, Tensor) or program.is_overwritten(ref):
        return None
    if made is not None and made.op in RANDOM:
        is_one = made.op in _DRAWN and _of_one_number(made) is not False
        if made.op == "randperm" or is_one or not program.is_given(ref):
            return None
        return "positive" if made.op in ("rand", "rand_like", "randn", "randn_like") else "some"
    if value.elements is not None:
        return None
    if program.is_given(ref):
        return "positive" if value.dtype in ("bool", "uint8") else "all"
    if made is None or depth == 0 or made.op in SAMPLING or not (operands := _operands(made)):
        return None
    first, *others = operands
    if made.op == "copy" and len(others) == 1:
        return _numbers(program, others[0], depth - 1) if _shape(program, others[0]) == value.shape else None
    if made.op in _JOINING:
        apart = not made.get("counts") and all(_are_apart(program, *two) for two in combinations(operands, 2))
        found = {_numbers(program, one, depth - 1) for one in operands} if apart else {None}
        return None if None in found else found.pop() if len(found) == 1 else "some"
    if made.op in _SUMS and len(others) == 1 and made.get("alpha") in (None, 1):
        return _of_terms(program, value.shape, first, others[0], depth)
    given = None if others else _numbers(program, first, depth - 1)
    if given is None:
        return None
    if made.op in _COPIES:
        return given if value.dtype not in WHOLE else None
    if made.op in _TRANSPOSED or _scales(program, made):
        return given
    if made.op in _MOVED:
        is_basic = made.op != "getitem" or _is_basic(made.get("index"))
        fills = made.op in ("diag", "diag_embed") and len(value.shape) > len(_shape(program, first))
        return given if is_basic and not fills else None
    if made.op in ("sum", "mean"):
        return given
    if made.op in ("std", "var"):
        return "some" if given == "some" else "positive"
    if not _is_plain(program, made):
        return None
    if made.op in _INJECTIVE or made.op in ("mul", "div"):
        is_free = given == "all" and made.op in ("neg", "add", "sub", "rsub", "mul", "div")
        return "all" if is_free else "positive" if made.op in _POSITIVE and given != "some" else "some"
    if made.op in _NOT_CONSTANT and given != "some":
        return "positive" if made.op in _POSITIVE else "some"
    return None


def _of_terms(program: Dataless, shape: Shape, one: int, other: int, depth: int) -> str | None:
    """A sum has independent elements where one of the terms has, and the other depends on no data of it."""
    for given, rest in ((one, other), (other, one)):
        numbers = _numbers(program, given, depth - 1) if _shape(program, given) == shape else None
        if numbers is not None and _are_independent(program, given, rest):
            return "all" if numbers == "all" else "some"
    return None


def _of_one_number(made: Made) -> Formula:
    """Returns the sizes at which numbers that are drawn from a range are all the same, as far as is known."""
    first, last, gap = _DRAWN[made.op]
    low, high = made.get(first), made.get(last)
    if high is None:  # `random_(high)`, or the range that is not given
        if low is None or gap == 0:
            return False
        low, high = 0, low
    low = 0 if low is None else low
    if isinstance(low, int | Term) and isinstance(high, int | Term):
        return lt(high - low, gap + 1)
    return high - low <= gap if isinstance(low, int | float) and isinstance(high, int | float) else True


def _scales(program: Dataless, made: Made) -> bool:
    """Returns whether a tensor is multiplied with, or divided by, a positive number."""
    number = made.get("other")
    if made.op not in ("mul", "div") or made.get("rounding_mode") is not None:
        return False
    if isinstance(number, Term):
        return program.is_certain(ge(number, 1))
    return isinstance(number, int | float) and number > 0


def _is_plain(program: Dataless, made: Made) -> bool:
    """Returns whether no number among the arguments makes the result constant, as in `x * 0` and `1 ** x`."""
    if made.op not in _CONSTANT_AT:
        return True
    number = made.get("other", "exponent")
    if isinstance(number, Term):
        return made.op != "rpow" and program.is_certain(ge(number, 1))
    is_other = isinstance(number, int | float) and number not in _CONSTANT_AT[made.op]
    return is_other and made.get("rounding_mode") is None


def _is_basic(index: object) -> bool:
    """Returns whether an index takes each element once: it has numbers, slices, None and Ellipsis alone."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(part is None or isinstance(part, int | Term | Slice | Ellipses) for part in parts)


def _is_part(made: Made) -> bool:
    """Returns whether a call selects matrices of a batch, or rows of one, in their order."""
    is_basic = made.op != "getitem" or _is_basic(made.get("index"))
    return made.op in ("getitem", "narrow", "slice", "select") and is_basic


def _are_transposes(program: Dataless, one: int, other: int) -> bool:
    """Returns whether one of two tensors shows the transposed matrices of the other."""
    for given, rest in ((one, other), (other, one)):
        made = program.made(given)
        if made is not None and made.op in _TRANSPOSED and _are_one(program, _operands(made)[0], rest):
            return getattr(program.value(rest), "dtype", None) not in ("complex64", "complex128")
    return False


def _are_one(program: Dataless, one: int, other: int) -> bool:
    """Returns whether two values are one, or results of calls of one operator with the same arguments."""
    a, b = program.made(one), program.made(other)
    same = a is not None and b is not None and (a.op, a.node.args, a.place) == (b.op, b.node.args, b.place)
    return one == other or (same and a is not None and a.op not in RANDOM | SAMPLING)


def _are_apart(program: Dataless, one: int, other: int) -> bool:
    """Returns whether two tensors have no element in common: each is a part of its own of one call, or they
    depend on different data.
    """
    a, b = program.made(one), program.made(other)
    if a is not None and b is not None and a.op == b.op and _operands(a) == _operands(b):
        if a.time == b.time:
            return a.op in ("unbind", "split", "chunk", "tensor_split") and a.place != b.place
        indices = a.get("index"), b.get("index")
        known = all(isinstance(i, int) and i >= 0 for i in indices)
        return a.op in ("getitem", "select") and known and indices[0] != indices[1]
    return _are_independent(program, one, other)


def _are_independent(program: Dataless, one: int, other: int) -> bool:
    """Returns whether two tensors depend on different data."""
    return not {*_given(program, one)} & {*_given(program, other)}


def _given(program: Dataless, ref: int) -> Iterator[int]:
    """Yields the inputs and the random numbers that a tensor is computed from."""
    seen, stack = {ref}, [ref]
    while stack:
        one = stack.pop()
        sources = program.sources(one)
        if not sources and program.region(one) is not True:
            yield one
        new = [source for source in sources if source not in seen]
        seen.update(new)
        stack += new


def _operands(made: Made) -> list[int]:
    return [r.id for _, argument in made.node.args for r in refs(argument)]


def _shape(program: Dataless, ref: int) -> Shape:
    value = program.value(ref)
    return value.shape if isinstance(value, Tensor) else ()
