"""Operators that make tensors from sizes and numbers, and the triangular ones."""

from __future__ import annotations

from math import factorial
from typing import Any, cast

from ..contents.requirements.widths import require_64_bits
from ..engine.ruleset import RuleFunction
from ..ir.language import Context, Number, Proportion, Quotient, Shape, Slice, Tensor, Value, product
from ..terms.dims import Dim, Term, maximum, minimum
from ..terms.formula import all_of, any_of, eq, ge, gt, le, lt
from .common import DEFAULTS, axis, category, channels_last, contiguous_strides, counted, promote, rank_is
from .numbers import less
from .rounding import steps
from .strides import preserved

Size = Any
"""A dim, or a tuple of them; torch takes `zeros(2, 3)` and `zeros((2, 3))`."""


def _of_floats(c: Context, name: str) -> Term:
    """Returns a size that is computed from floats which the data decide: no range is known of it."""
    size = c.fresh(name, 0, None)
    c.approximate("a number of elements that is computed from floats is any number", number=str(size))
    return size


def kind(c: Context, value: Value) -> str:
    """The dtype that torch gives a tensor made of a number."""
    if isinstance(value, Tensor):
        return DEFAULTS[c.floats][category(value.dtype)] if value.dtype else c.floats
    return promote((value,), c.floats) or "bool"  # promotion passes over conditions on sizes, which are bools


def at_least_0(c: Context, dim: Any, name: str) -> Dim:
    """Returns a size that is required not to be negative.

    A size that is computed from floats becomes a fresh symbol.
    """
    if isinstance(dim, Number | Tensor):
        return _of_floats(c, name)
    if not c.at_least(dim, 0):
        c.require(ge(dim, 0), f"{name} must not be negative, but is {dim}")
    return cast(Dim, dim)


def sizes(c: Context, size: tuple[Size, ...]) -> Shape:
    """`zeros(2, 3)`, `zeros((2, 3))` -> (2, 3)"""
    dims = size[0] if len(size) == 1 and isinstance(size[0], tuple) else size
    return tuple(at_least_0(c, dim, "size") for dim in dims)


# --- of given sizes --------------------------------------------------------------------------------------


def zeros(c: Context, *size: Size, dtype: str | None = None) -> Tensor:
    """`*n -> [*n]`"""
    return Tensor(sizes(c, size), dtype or c.floats)


def empty(c: Context, *size: Size, dtype: str | None = None, memory_format: str | None = None) -> Tensor:
    """`*n -> [*n]`"""
    result = Tensor(sizes(c, size), dtype or c.floats)
    return in_format(c, result, memory_format)


def in_format(c: Context, result: Tensor, memory_format: str | None) -> Tensor:
    """Returns the tensor in the memory format given; None leaves it as it is."""
    if memory_format in ("channels_last", "channels_last_3d"):
        rank_is(c, result, f"a tensor in {memory_format}", 4 if memory_format == "channels_last" else 5)
        return Tensor(result.shape, result.dtype, channels_last(result.shape))
    if memory_format == "contiguous_format":
        return Tensor(result.shape, result.dtype)
    return result


def full(c: Context, size: Shape, fill_value: Value, dtype: str | None = None) -> Tensor:
    """`*n -> [*n]`, of the dtype that the value has"""
    return Tensor(sizes(c, (size,)), dtype or kind(c, fill_value))


def randint(
    c: Context, *bounds: Any, low: Any = 0, high: Any = None, size: Any = None, dtype: str | None = None
) -> Tensor:
    """`randint(high, size)` and `randint(low, high, size)`, of low <= numbers < high `-> [*size]`"""
    given = list(bounds)
    if size is None:
        size = given.pop()
    if high is None:
        high = given.pop()
    if given:
        low = given.pop()
    if given or not isinstance(size, tuple):
        c.refuse("randint takes a low end, a high end and a size")
    if not isinstance(low, Number) and not isinstance(high, Number):
        c.require(lt(low, high), f"there are no numbers from {low} to {high}")
    return Tensor(sizes(c, (size,)), dtype or "int64")


def empty_strided(c: Context, size: Shape, stride: Shape, dtype: str | None = None) -> Tensor:
    """`*n -> [*n]`, with the strides given"""
    if len(size) != len(stride):
        c.refuse(f"{counted(len(stride), 'stride')} for {counted(len(size), 'size')}")
    shape = sizes(c, (size,))
    return Tensor(shape, dtype or c.floats, tuple(at_least_0(c, step, "stride") for step in stride))


def empty_permuted(
    c: Context, size: Shape, physical_layout: tuple[int, ...], dtype: str | None = None
) -> Tensor:
    """`*n -> [*n]`, with the axes in memory in the order given"""
    if sorted(physical_layout) != list(range(len(size))):
        c.refuse(f"{physical_layout} is not an order of {len(size)} axes")
    shape = sizes(c, (size,))
    strides = contiguous_strides(tuple(shape[i] for i in physical_layout))
    of_axis = dict(zip(physical_layout, strides, strict=True))
    return Tensor(shape, dtype or c.floats, tuple(of_axis[i] for i in range(len(shape))))


def new_zeros(c: Context, input: Tensor, *size: Size, dtype: str | None = None) -> Tensor:
    """`*n -> [*n]`, of the dtype of the input"""
    return Tensor(sizes(c, size), dtype or input.dtype)


def new_full(c: Context, input: Tensor, size: Shape, fill_value: Value, dtype: str | None = None) -> Tensor:
    """`*n -> [*n]`, of the dtype of the input"""
    return Tensor(sizes(c, (size,)), dtype or input.dtype)


def new_empty_strided(
    c: Context, input: Tensor, size: Shape, stride: Shape, dtype: str | None = None
) -> Tensor:
    """`*n -> [*n]`, of the dtype of the input, with the strides given"""
    result = empty_strided(c, size, stride)
    return Tensor(result.shape, dtype or input.dtype, result.layout)


def new_tensor(c: Context, input: Tensor, data: Value, *, dtype: str | None = None) -> Tensor:
    """`tensor(data)`, of the dtype of the input"""
    return tensor(c, data, dtype or input.dtype)


def like(c: Context, input: Tensor, dtype: str | None = None, memory_format: str | None = None) -> Tensor:
    """`[*n] -> [*n]`, laid out as the input is, but for gaps and repetitions"""
    result = Tensor(input.shape, dtype or input.dtype, preserved(c, input.shape, input.layout))
    return in_format(c, result, memory_format)


def full_like(
    c: Context, input: Tensor, fill_value: Value, dtype: str | None = None, memory_format: str | None = None
) -> Tensor:
    """`[*n] -> [*n]`, laid out as the input is, but for gaps and repetitions"""
    return like(c, input, dtype, memory_format)


def randint_like(
    c: Context, input: Tensor, *bounds: Any, low: Any = 0, high: Any = None, dtype: str | None = None,
    memory_format: str | None = None,
) -> Tensor:
    """`randint_like(input, high)` and `(input, low, high)`: `[*n] -> [*n]`, of low <= numbers < high

    High may be an element of a tensor without dims.
    """
    drawn = [bound for bound in (*bounds, high) if isinstance(bound, Tensor)]
    for bound in drawn:
        rank_is(c, bound, "the end of the range of randint_like", 0)
    if not drawn:
        randint(c, *bounds, low=low, high=high, size=())
    return like(c, input, dtype, memory_format)


# --- of given numbers ------------------------------------------------------------------------------------


def tensor(c: Context, data: Value, dtype: str | None = None) -> Tensor:
    """`((1, 2, 3), (4, 5, 6)) -> [2, 3]`; tensors inside have one element each and count as numbers."""
    if isinstance(data, Tensor):
        return Tensor(data.shape, dtype or data.dtype, preserved(c, data.shape, data.layout))
    shape, numbers = _nested(c, data)
    if dtype is None:
        require_64_bits(c, tuple(numbers), signed=True)
    return Tensor(shape, dtype or _joint(c, numbers))


def asarray(c: Context, data: Value, dtype: str | None = None, copy: bool | None = None) -> Tensor:
    """As `tensor`."""
    return tensor(c, data, dtype)


def _nested(c: Context, data: Value) -> tuple[Shape, list[Value]]:
    """The shape of nested tuples, which all have one, and the numbers in them."""
    if not isinstance(data, tuple):
        if isinstance(data, Tensor):
            told = f"only a tensor of one element counts as a number, not {data}"
            c.require(eq(data.numel, 1), told, ValueError)
        elif data is None or isinstance(data, str | Slice):
            error = TypeError if isinstance(data, str) else RuntimeError
            c.refuse(f"a tensor is made of numbers, not of {data}", error)
        return (), [data]
    parts = [_nested(c, part) for part in data]
    if any(shape != parts[0][0] for shape, _ in parts):
        c.refuse("the parts of a nested list differ in shape", ValueError)
    return (len(parts), *(parts[0][0] if parts else ())), [n for _, numbers in parts for n in numbers]


def _joint(c: Context, numbers: list[Value]) -> str | None:
    """Returns the widest dtype of these numbers, and float32 where there are no numbers."""
    if not numbers:
        return c.floats
    if any(isinstance(n, Tensor) and n.dtype is None for n in numbers):
        return None
    scalars = [Tensor((), n.dtype if isinstance(n, Tensor) else kind(c, n)) for n in numbers]
    return promote(scalars, c.floats)


def arange(c: Context, start: Any = 0, end: Any = None, step: Any = 1, dtype: str | None = None) -> Tensor:
    """`start, end, step -> [ceil((end - start) / step)]`; the end may not lie against the step."""
    if end is None:
        start, end = 0, start
    bounds = (start, end, step)
    start, end, step = (_whole(n) for n in bounds)
    dtype = dtype or ("int64" if all(kind(c, n) in ("int64", "bool") for n in bounds) else c.floats)
    if any(isinstance(n, Number | Tensor) for n in (start, end, step)):
        up, down = less(0, step), less(step, 0)
        forth, back = less(start, end, or_equal=True), less(end, start, or_equal=True)
        if up is not None and down is not None and forth is not None and back is not None:
            same_way = any_of((all_of((up, forth)), all_of((down, back))))
            c.require(same_way, f"{end} cannot be reached from {start} by {step}")
        elif any(isinstance(n, Quotient | Proportion) for n in bounds):
            c.approximate("whether a range of floats goes on is not followed", "accept")
        return Tensor((_of_floats(c, "arange"),), dtype)
    size = steps(c, start, end, step)
    if dtype == "int64" and any(isinstance(n, float) for n in bounds) and not c.since(2, 14):
        # torch checked the bounds as they are, and truncated them to count
        size = steps(c, *(int(n) if isinstance(n, float) else n for n in bounds))
    return Tensor((size,), dtype)


def _whole(value: Any) -> Any:
    """Returns the integer that a float is, such as `float(n)`; any other value as it is."""
    whole = isinstance(value, Quotient) and value.kind == "float" and value.over % value.under == 0
    return value.over // value.under if whole else value


def inclusive_range(c: Context, start: Any, end: Any, step: Any = 1, dtype: str | None = None) -> Tensor:
    """`start, end, step -> [floor((end - start) / step) + 1]`; the end may not lie against the step."""
    if all(isinstance(n, int | Term) for n in (start, end, step)):
        length = end - start
        same_way = any_of((all_of((gt(step, 0), ge(length, 0))), all_of((lt(step, 0), le(length, 0)))))
        c.require(same_way, f"{end} cannot be reached from {start} by {step}")
        return Tensor((length // (1 if step == 0 else step) + 1,), dtype or c.floats)
    if all(isinstance(n, int | float) for n in (start, end, step)):
        if step == 0 or (end - start) * step < 0:
            c.refuse(f"{end} cannot be reached from {start} by {step}")
        return Tensor((int((end - start) / step + 1),), dtype or c.floats)
    c.approximate("how many numbers there are in a range of floats and sizes is not followed", "accept")
    return Tensor((c.fresh("range", 1, None),), dtype or c.floats)


def shape_as_tensor(c: Context, input: Tensor) -> Tensor:
    """`[*d] -> int64[the number of dims]`"""
    return Tensor((input.rank,), "int64")


def dim_arange(c: Context, like: Tensor, dim: int) -> Tensor:
    """`[*a, n, *z] -> int64[n]`"""
    at = axis(c, dim, like.rank)
    return Tensor((like.shape[at] if like.shape else 1,), "int64")


def dep_token(c: Context, dtype: str | None = None, memory_format: str | None = None) -> Tensor:
    """`-> []`, which assertions are tied to"""
    return Tensor((), dtype or c.floats)


def linspace(
    c: Context, start: Any, end: Any, steps: Any, base: float = 10.0, dtype: str | None = None
) -> Tensor:
    """`steps -> [steps]`; the ends are numbers, or tensors without dims

    Of bools and unsigned numbers of 16 bits and more there is one at most.
    """
    for bound in (start, end):
        if isinstance(bound, Tensor):
            rank_is(c, bound, "an end of linspace", 0)
    complexes = DEFAULTS[c.floats][3]
    found = complexes if complexes in (kind(c, start), kind(c, end)) else c.floats
    size = at_least_0(c, steps, "steps")
    if dtype in ("bool", "uint16", "uint32", "uint64"):
        c.require(le(size, 1), f"linspace does not take {dtype}", NotImplementedError)
    return Tensor((size,), dtype or found)


def scalar_tensor(c: Context, s: Value, dtype: str | None = None) -> Tensor:
    """`-> []`, of floats where no dtype is given"""
    return Tensor((), dtype or c.floats)


def window(
    c: Context, window_length: Any, periodic: bool = True, alpha: float = 0.0, beta: float = 0.0,
    dtype: str | None = None,
) -> Tensor:
    """`n -> [n]`, of floats; complex numbers up to n = 1, which needs no `arange`"""
    size = at_least_0(c, window_length, "window_length")
    real_steps(c, "a window", size, dtype, 1)
    return Tensor((size,), dtype or c.floats)


def real_steps(c: Context, what: str, size: Dim, dtype: str | None, most: int = 0) -> None:
    """Refuses a dtype of whole numbers, and a complex one where there are more elements than `most`."""
    kind = 2 if dtype is None else category(dtype)
    if kind < 2:
        c.refuse(f"{what} is of floats, not of {dtype}")
    if kind == 3:
        told = f"{what} is made by arange, which does not take {dtype}"
        c.require(le(size, most), told, NotImplementedError)


def randperm(c: Context, n: Any, dtype: str | None = None) -> Tensor:
    """`n -> [n]`, where the dtype has the number n"""
    size = at_least_0(c, n, "n")
    if dtype in ("bool", "uint16", "uint32", "uint64") or (dtype or "").startswith("complex"):
        c.refuse(f"randperm does not take {dtype}", NotImplementedError)
    most = {"int8": 128, "uint8": 256, "int16": 32768, "float16": 2049}.get(dtype or "")
    if most is not None:
        c.require(le(size, most), f"randperm takes n up to {most} for {dtype}, not {size}")
    return Tensor((size,), dtype or "int64")


# --- triangles and combinations --------------------------------------------------------------------------


def eye(c: Context, n: Any, m: Any = None, dtype: str | None = None) -> Tensor:
    """`n, m -> [n, m]`, where a missing m is n"""
    rows = at_least_0(c, n, "n")
    return Tensor((rows, rows if m is None else at_least_0(c, m, "m")), dtype or c.floats)


def tril(c: Context, input: Tensor, diagonal: Any = 0) -> Tensor:
    """`[*b, n, m] -> [*b, n, m]`"""
    if input.rank < 2:
        c.refuse(f"input must have at least 2 dimensions, not {input.rank}")
    return Tensor(input.shape, input.dtype)


def _triangle(c: Context, rows: Dim, columns: Dim, diagonal: Dim) -> Dim:
    """Returns how many entries of a matrix lie on or below the diagonal.

    Row i = 0, …, r - 1 has clamp(i + k + 1, 0, n) of them. With g(m) the sum of min(j, n) over j = 1, …, m,
    which is 0 for m <= 0, they are g(r + k) - g(k). For m >= 0 and t = min(m, n), g(m) is t*(t + 1)/2 + (m -
    t)*n.
    """

    def g(last: Dim) -> Dim:
        m = last if c.at_least(last, 0) else maximum(last, 0)
        t = m if c.at_least(columns - m, 0) else minimum(m, columns)
        return t * (t + 1) // 2 + (m - t) * columns

    return g(rows + diagonal) - g(diagonal)


def tril_indices(c: Context, row: Any, col: Any, offset: Dim = 0, dtype: str | None = None) -> Tensor:
    """`n, m, k -> [2, the number of entries (i, j) of an n by m matrix with j - i <= k]`"""
    rows, columns = at_least_0(c, row, "row"), at_least_0(c, col, "col")
    return Tensor((2, _triangle(c, rows, columns, offset)), dtype or "int64")


def triu_indices(c: Context, row: Any, col: Any, offset: Dim = 0, dtype: str | None = None) -> Tensor:
    """`n, m, k -> [2, the number of entries (i, j) of an n by m matrix with j - i >= k]`"""
    rows, columns = at_least_0(c, row, "row"), at_least_0(c, col, "col")
    return Tensor((2, rows * columns - _triangle(c, rows, columns, offset - 1)), dtype or "int64")


def cartesian_prod(c: Context, *tensors: Any) -> Tensor:
    """`[n], [m], … -> [n*m*…, the number of tensors]`; a single one is returned as it is."""
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], tuple) else tensors
    if not given:
        c.refuse("cartesian_prod of nothing")
    for part in given:
        rank_is(c, part, "each tensor", 1)
    if len(given) == 1:
        return cast(Tensor, given[0])
    if len({part.dtype for part in given} - {None}) > 1:
        c.refuse("all tensors must have the same dtype")
    return Tensor((product([part.shape[0] for part in given]), len(given)), given[0].dtype)


def combinations(c: Context, input: Tensor, r: Any = 2, with_replacement: bool = False) -> Tensor:
    """`[n], r -> [n*(n - 1)*…*(n - r + 1)/r!, r]`, with replacement `n*(n + 1)*…*(n + r - 1)/r!`"""
    rank_is(c, input, "input", 1)
    if isinstance(r, Term):
        c.require(ge(r, 0), f"r must not be negative, but is {r}")
        if not c.choose(eq(r, 0), "the number of combinations"):
            return Tensor((c.fresh("combinations", 0, None), r), input.dtype)
        r = 0
    if r < 0:
        c.refuse(f"r must not be negative, but is {r}")
    if r == 0:
        return Tensor((0,), input.dtype)
    (n,) = input.shape
    numerator = product([n + i if with_replacement else n - i for i in range(r)])
    return Tensor((numerator // factorial(r), r), input.dtype)


RULES: dict[str, RuleFunction] = {
    "empty": empty,
    **dict.fromkeys(("zeros", "ones", "rand", "randn"), zeros),
    "full": full,
    "randint": randint,
    "empty_strided": empty_strided,
    "empty_permuted": empty_permuted,
    **dict.fromkeys(("new_zeros", "new_ones", "new_empty"), new_zeros),
    "new_full": new_full,
    "new_empty_strided": new_empty_strided,
    "new_tensor": new_tensor,
    **dict.fromkeys(("zeros_like", "ones_like", "empty_like", "rand_like", "randn_like"), like),
    "full_like": full_like,
    "randint_like": randint_like,
    **dict.fromkeys(("tensor", "as_tensor"), tensor),
    "asarray": asarray,
    "scalar_tensor": scalar_tensor,
    "range": inclusive_range,
    "_shape_as_tensor": shape_as_tensor,
    "_dim_arange": dim_arange,
    "_make_dep_token": dep_token,
    "arange": arange,
    "linspace": linspace,
    "logspace": linspace,
    "randperm": randperm,
    **dict.fromkeys((f"{name}_window" for name in "hann hamming blackman bartlett kaiser".split()), window),
    "eye": eye,
    **dict.fromkeys(("tril", "triu"), tril),
    "tril_indices": tril_indices,
    "triu_indices": triu_indices,
    "cartesian_prod": cartesian_prod,
    "combinations": combinations,
}
