"""Tensors whose elements are independent numbers of the data, by the operators that keep them so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from math import isfinite
from typing import Final

from ...ir.language import Between, Ellipses, Shape, Slice, Tensor
from ...ir.program import refs
from ...terms.dims import Term
from ...terms.formula import Formula, ge, lt
from ..elements.dtypes import WHOLE
from .constancy import Made
from .dataless import RANDOM, SAMPLING, Dataless

INJECTIVE: Final = frozenset(
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
_POSITIVE: Final = {
    **dict.fromkeys("abs relu sqrt square".split(), ("all", "positive")),
    **dict.fromkeys("exp exp2 sigmoid softplus".split(), ("all",)),
}
"""For some of both, of which numbers they give all positive ones up to some bound."""
COPIES: Final = frozenset(
    """
    clone contiguous detach alias to type double float half bfloat16 cdouble cfloat long int short conj cpu
    cuda
    """.split()
)
TRANSPOSED: Final = frozenset("T mT H mH adjoint t transpose swapaxes swapdims".split())
MOVED: Final = frozenset(
    """
    permute movedim moveaxis view reshape flatten unflatten squeeze unsqueeze flip roll select narrow slice
    getitem split chunk unbind tensor_split diagonal diag diag_embed
    """.split()
)
"""Operators that give each element of theirs a place of its own, or leave it out; `diag` adds zeros, too."""
_FINITE: Final = INJECTIVE | COPIES | MOVED | TRANSPOSED | frozenset(
    """
    abs cos elu gelu hardswish leaky_relu mish relu selu silu sin square hardtanh hardsigmoid softmax
    log_softmax sum mean amax amin cumsum expand expand_as broadcast_to layer_norm mul linear mm bmm matmul
    """.split()
)
"""Operators whose results are finite if their operands are finite and of a common size."""
_SUMS: Final = frozenset("add sub rsub".split())
JOINING: Final = frozenset("stack cat concat concatenate".split())
_CONSTANT_AT: Final[Mapping[str, tuple[int, ...]]] = {
    **dict.fromkeys("mul div rdiv pow float_power".split(), (0,)), "rpow": (0, 1),
}  # fmt: skip
"""For each operator the numbers at which its result depends on no data."""
DRAWN: Final = {
    "uniform": ("from", "to", 0), "random": ("low", "high", 1), "randint": ("low", "high", 1),
    "randint_like": ("low", "high", 1),
}  # fmt: skip
"""Operators that draw from a range: its ends, and how far apart they are where it holds one number alone."""
DEEPEST: Final = 8
"""At most this many operators back a tensor is looked at."""
_NEAREST: Final = 3
"""At most this many operators back it is looked for what may make a tensor infinite."""


def free_numbers(program: Dataless, ref: int, depth: int = DEEPEST) -> str | None:
    """Returns the numbers that each element of a tensor may be, whatever the others are: "all", "positive"
    ones up to some bound, or "some". None where elements depend on each other or may not be of data.
    """
    value, made = program.value(ref), program.made(ref)
    if not isinstance(value, Tensor) or program.is_overwritten(ref) or program.counted(ref):
        return None
    if made is not None and made.op in RANDOM:
        is_one = made.op in DRAWN and of_one_number(made) is not False
        if made.op == "randperm" or is_one or not program.is_given(ref):
            return None
        return "positive" if made.op in ("rand", "rand_like", "randn", "randn_like") else "some"
    if value.elements is not None:
        return None
    if program.is_given(ref):
        return "positive" if value.dtype in ("bool", "uint8") else "all"
    if made is None or depth == 0 or made.op in SAMPLING or not (operands := operands_of(made)):
        return None
    first, *others = operands
    if made.op == "copy" and len(others) == 1:
        is_whole = shape_of(program, others[0]) == value.shape
        return free_numbers(program, others[0], depth - 1) if is_whole else None
    if made.op in JOINING:
        apart = not made.get("counts") and all(are_apart(program, *two) for two in combinations(operands, 2))
        found = {free_numbers(program, one, depth - 1) for one in operands} if apart else {None}
        return None if None in found else found.pop() if len(found) == 1 else "some"
    if made.op in _SUMS and len(others) == 1 and made.get("alpha") in (None, 1):
        return _of_terms(program, value.shape, first, others[0], depth)
    given = None if others else free_numbers(program, first, depth - 1)
    if given is None:
        return None
    if made.op in COPIES:
        return given if given == "all" or value.dtype not in WHOLE else None
    if made.op in TRANSPOSED or scales(program, made):
        return given
    if made.op in MOVED:
        is_basic = made.op != "getitem" or takes_once(made.get("index"))
        return given if is_basic and not fills(program, made, value) else None
    if made.op in ("sum", "mean"):
        return given
    if made.op in ("std", "var"):
        return "some" if given == "some" else "positive"
    if not is_plain(program, made):
        return None
    if made.op in INJECTIVE or made.op in ("mul", "div"):
        is_free = given == "all" and made.op in ("neg", "add", "sub", "rsub", "mul", "div")
        return "all" if is_free else "positive" if given in _POSITIVE.get(made.op, ()) else "some"
    if made.op in _NOT_CONSTANT and given != "some":
        return "positive" if given in _POSITIVE.get(made.op, ()) else "some"
    return None


def _of_terms(program: Dataless, shape: Shape, one: int, other: int, depth: int) -> str | None:
    """A sum has independent elements where one of the terms has, and the other depends on no data of it."""
    for given, rest in ((one, other), (other, one)):
        numbers = free_numbers(program, given, depth - 1) if shape_of(program, given) == shape else None
        if numbers is None or not are_independent(program, given, rest):
            continue
        if may_be_finite(program, rest, depth - 1):
            return "all" if numbers == "all" else "some"
    return None


def may_be_finite(program: Dataless, ref: int, depth: int) -> bool:
    """Returns whether it is known that some data make all elements of a tensor finite."""
    value, made, depth = program.value(ref), program.made(ref), min(depth, _NEAREST)
    if isinstance(value, Tensor) and value.dtype in WHOLE:
        return True
    if free_numbers(program, ref, depth) is not None:
        return True
    if any(isfinite(low) and isfinite(high) for low, high in bounds(program, ref)):
        return True
    if made is None or depth == 0 or made.op not in _FINITE:
        return False
    numbers = [given for _, given in made.node.args if isinstance(given, float)]
    return all(map(isfinite, numbers)) and all(
        may_be_finite(program, one, depth - 1) for one in operands_of(made)
    )


def bounds(program: Dataless, ref: int) -> Iterator[tuple[float, float]]:
    """Yields bounds of the elements of a tensor that are known at all sizes and depend on no data."""
    for where, number in program.fixed(ref):
        if number is not None and program.is_certain(where):
            yield (number.low, number.high) if isinstance(number, Between) else (number, number)


def of_one_number(made: Made) -> Formula:
    """Returns the sizes at which numbers that are drawn from a range are all the same, as far as is known."""
    first, last, gap = DRAWN[made.op]
    low, high = made.get(first), made.get(last)
    if high is None:  # `random_(high)`, or the range that is not given
        if low is None or gap == 0:
            return False
        low, high = 0, low
    low = 0 if low is None else low
    if isinstance(low, int | Term) and isinstance(high, int | Term):
        return lt(high - low, gap + 1)
    return high - low <= gap if isinstance(low, int | float) and isinstance(high, int | float) else True


def scales(program: Dataless, made: Made) -> bool:
    """Returns whether a tensor is multiplied with, or divided by, a positive number."""
    number = made.get("other")
    if made.op not in ("mul", "div") or made.get("rounding_mode") is not None:
        return False
    if isinstance(number, Term):
        return program.is_certain(ge(number, 1))
    return isinstance(number, int | float) and 0 < number and isfinite(number)


def is_plain(program: Dataless, made: Made) -> bool:
    """Returns whether no number among the arguments makes the result constant, as in `x * 0` and `1 ** x`."""
    if any(isinstance(given, float) and not isfinite(given) for _, given in made.node.args):
        return False
    if made.op not in _CONSTANT_AT:
        return True
    number = made.get("other", "exponent")
    if isinstance(number, Term):
        return made.op != "rpow" and program.is_certain(ge(number, 1))
    is_other = isinstance(number, int | float) and number not in _CONSTANT_AT[made.op]
    return is_other and made.get("rounding_mode") is None


def fills(program: Dataless, made: Made, value: Tensor) -> bool:
    """Returns whether a call puts its operand on the diagonal of a tensor of zeros."""
    operands = operands_of(made)
    return made.op in ("diag", "diag_embed") and len(value.shape) > len(shape_of(program, operands[0]))


def takes_once(index: object) -> bool:
    """Returns whether an index takes each element once: it has numbers, slices, None and Ellipsis alone."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(part is None or isinstance(part, int | Term | Slice | Ellipses) for part in parts)


def are_apart(program: Dataless, one: int, other: int) -> bool:
    """Returns whether two tensors have no element in common: each is a part of its own of one call, or they
    depend on different data.
    """
    a, b = program.made(one), program.made(other)
    if a is not None and b is not None and a.op == b.op and operands_of(a) == operands_of(b):
        if a.time == b.time:
            return a.op in ("unbind", "split", "chunk", "tensor_split") and a.place != b.place
        indices = a.get("index"), b.get("index")
        known = all(isinstance(i, int) and i >= 0 for i in indices)
        return a.op in ("getitem", "select") and known and indices[0] != indices[1]
    return are_independent(program, one, other)


def are_independent(program: Dataless, one: int, other: int) -> bool:
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


def operands_of(made: Made) -> list[int]:
    return [r.id for _, argument in made.node.args for r in refs(argument)]


def shape_of(program: Dataless, ref: int) -> Shape:
    value = program.value(ref)
    return value.shape if isinstance(value, Tensor) else ()
