"""Products of matrices and vectors, and the linear algebra built on them.

Contractions pair sizes exactly: where pointwise operators stretch a size 1, a product refuses it (`tensordot`
excepted). The dims before the matrix dims are a batch, and broadcast.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ..engine.memory import is_contiguous
from ..ir.language import Context, Layout, Shape, Tensor
from ..terms.dims import Dim, ceildiv, maximum, minimum
from ..terms.formula import Formula, all_of, any_of, divides, eq, ge, ne, negate
from .common import axes, broadcast, broadcast_dim, category, promote, rank_is, same_dim, strides_of
from .elementwise import pointwise
from .layout import view

NO_PRODUCTS = frozenset({"bool", "uint16", "uint32", "uint64"})
"""Dtypes for which no product is implemented: such a call runs only where there is nothing to multiply."""


# --- products -------------------------------------------------------------------------------------------


def _inner(
    c: Context, a: Dim, b: Dim, a_name: str, b_name: str, error: type[Exception] = RuntimeError
) -> None:
    c.require(eq(a, b), f"the contracted sizes must agree: {a_name} has {a}, {b_name} has {b}", error)


def no_elements(*dims: Dim) -> Formula:
    return any_of(eq(d, 0) for d in dims)


def _one_dtype(c: Context, *operands: Tensor) -> str | None:
    """The dtype that all operands must share."""
    known = {t.dtype for t in operands if t.dtype is not None}
    if len(known) > 1:
        c.refuse(f"the operands of a product must have one dtype, not {' and '.join(sorted(known))}")
    return operands[-1].dtype


def _has_kernel(
    c: Context, dtype: str | None, *dims: Dim, error: type[Exception] = NotImplementedError
) -> None:
    """Bool matrices are multiplied only where n, k or m is 0, since then no kernel runs."""
    if dtype in NO_PRODUCTS:
        c.require(
            no_elements(*dims),
            f"no product is implemented for {dtype}, and {' x '.join(map(str, dims))} is not empty",
            error,
        )


def mm(c: Context, input: Tensor, mat2: Tensor, out_dtype: str | None = None) -> Tensor:
    """[n, k] @ [k, m] -> [n, m]; only GPUs have kernels for results of another dtype"""
    rank_is(c, input, "the first matrix", 2)
    rank_is(c, mat2, "the second matrix", 2)
    (n, k), (k2, m) = input.shape, mat2.shape
    _inner(c, k, k2, "the first matrix", "the second")
    dtype = _one_dtype(c, input, mat2)
    _has_kernel(c, dtype, n, k, m)
    return Tensor((n, m), out_dtype or dtype)


def mv(c: Context, input: Tensor, vec: Tensor) -> Tensor:
    """[n, k] @ [k] -> [n]"""
    rank_is(c, input, "the matrix", 2)
    rank_is(c, vec, "the vector", 1)
    (n, k), (k2,) = input.shape, vec.shape
    _inner(c, k, k2, "the matrix", "the vector")
    dtype = _one_dtype(c, input, vec)
    _has_kernel(c, dtype, n, k)
    return Tensor((n,), dtype)


def dot(c: Context, input: Tensor, other: Tensor) -> Tensor:
    """[k] @ [k] -> []"""
    rank_is(c, input, "the first vector", 1)
    rank_is(c, other, "the second vector", 1)
    _inner(c, input.shape[0], other.shape[0], "the first vector", "the second")
    dtype = _one_dtype(c, input, other)
    if dtype in NO_PRODUCTS:
        c.refuse(f"no product is implemented for {dtype}", NotImplementedError)
    return Tensor((), dtype)


def bmm(c: Context, input: Tensor, mat2: Tensor, out_dtype: str | None = None) -> Tensor:
    """[b, n, k] @ [b, k, m] -> [b, n, m]; only GPUs have kernels for results of another dtype"""
    rank_is(c, input, "the first batch", 3)
    rank_is(c, mat2, "the second batch", 3)
    (b, n, k), (b2, k2, m) = input.shape, mat2.shape
    batch = same_dim(c, b, b2, f"the batch sizes must agree: {b} and {b2}")
    _inner(c, k, k2, "the first batch", "the second")
    dtype = _batched_dtype(c, input, mat2, batch, n, k, m)
    return Tensor((batch, n, m), out_dtype or dtype)


def _batched_dtype(c: Context, input: Tensor, mat2: Tensor, *dims: Dim) -> str | None:
    """The second operand's dtype; the first has to agree only where there is something to multiply."""
    if None not in (input.dtype, mat2.dtype) and input.dtype != mat2.dtype:
        c.require(no_elements(*dims), f"the operands must have one dtype, not {input.dtype} and {mat2.dtype}")
    _has_kernel(c, mat2.dtype, *dims)
    return mat2.dtype


def matmul(c: Context, input: Tensor, other: Tensor) -> Tensor:
    """[*batch, n, k] @ [*batch, k, m] -> [*batch, n, m]

    A vector on the left is [1, k], one on the right [k, 1], and the added dim is dropped from the result.
    """
    a, b = input.shape, other.shape
    if not a or not b:
        c.refuse(f"both operands of a matrix product need rank 1 at least: {input} and {other}")
    match len(a), len(b):
        case 1, 1:
            return dot(c, input, other)
        case 2, 1:
            return mv(c, input, other)
        case 2, 2:
            return mm(c, input, other)
    k, k2 = a[-1], b[-1] if len(b) == 1 else b[-2]
    _inner(c, k, k2, "the left operand", "the right")
    rows, columns = a[-2:-1], b[-1:] if len(b) > 1 else ()
    shape = broadcast(c, a[:-2], b[:-2]) + rows + columns
    if len(a) > 1 and len(b) > 2:
        return Tensor(shape, _batched_dtype(c, input, other, *shape, k))
    dtype = _one_dtype(c, input, other)
    _has_kernel(c, dtype, *shape, k)
    return Tensor(shape, dtype)


def rmatmul(c: Context, input: Tensor, other: Tensor) -> Tensor:
    """other @ input, as `other.__matmul__` leaves it to `input`."""
    return matmul(c, other, input)


def linear(c: Context, input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """[*batch, k], weight [m, k], bias [m] -> [*batch, m]

    weight [k] gives [*batch]. The bias is added in place, so it may broadcast but not enlarge the result.
    """
    if not input.shape or not weight.shape:
        c.refuse(f"input and weight need rank 1 at least: {input} and {weight}")
    rank_is(c, weight, "the weight", 1, 2)
    k, in_features = input.shape[-1], weight.shape[-1]
    c.require(
        eq(k, in_features), f"the last size of the input is {k}, but the weight takes {in_features} features"
    )
    shape = input.shape[:-1] + weight.shape[:-1]
    dtype = _one_dtype(c, input, weight)
    if dtype in NO_PRODUCTS and (input.rank, weight.rank) == (1, 1):
        c.refuse(f"no product is implemented for {dtype}", NotImplementedError)
    _has_kernel(c, dtype, *shape, k)
    if bias is not None:
        _linear_bias(c, input, weight, bias, shape)
    return Tensor(shape, dtype)


def _linear_bias(c: Context, input: Tensor, weight: Tensor, bias: Tensor, shape: Shape) -> None:
    """`addmm` takes matrices and contiguous inputs, with a bias of one dtype; elsewhere the bias is added in
    place.
    """
    fused = input.rank == 2 or (is_contiguous(input) and bias.rank == 1)
    if weight.rank == 1 and fused:
        c.refuse("a weight of rank 1 takes no bias of rank 1 here: torch fuses the two and wants a matrix")
    if bias.rank > 1 and input.rank != 2:
        c.approximate(
            "whether a bias with batch dims is added in place or fused depends on its sizes and on strides"
        )
    if fused:
        _one_dtype(c, bias, input)
    elif bias.dtype is not None and input.dtype is not None and bias.dtype != input.dtype:
        c.approximate("whether the dtype of the bias may differ depends on strides", "accept")
    _expands(c, bias, shape, "the bias")


def _expands(c: Context, tensor: Tensor, shape: Shape, name: str) -> None:
    """`[*t] -> [*shape]`, aligned at the last dim: each size of the tensor is 1 or already right."""
    if tensor.rank > len(shape):
        c.refuse(f"{name} has rank {tensor.rank}, the result only {len(shape)}")
    for have, want in zip(reversed(tensor.shape), reversed(shape), strict=False):
        c.require(
            any_of((eq(have, want), eq(have, 1))),
            f"{name} {tensor} does not expand to [{', '.join(map(str, shape))}]",
        )


def addmm(
    c: Context, input: Tensor, mat1: Tensor, mat2: Tensor, out_dtype: str | None = None, beta: Any = 1,
    alpha: Any = 1, use_gelu: bool = False,
) -> Tensor:
    """beta * input + alpha * [n, k] @ [k, m] -> [n, m]; input expands to [n, m]"""
    result = mm(c, mat1, mat2, out_dtype)
    _expands(c, input, result.shape, "input")
    dtype = input.dtype if out_dtype else _one_dtype(c, input, mat2)
    _has_kernel(c, dtype, *result.shape, error=RuntimeError)
    return result


def int_mm(c: Context, input: Tensor, mat2: Tensor) -> Tensor:
    """int8 [n, k] @ int8 [k, m] -> int32 [n, m]"""
    for matrix in (input, mat2):
        if matrix.dtype not in (None, "int8", "uint8"):
            c.refuse(f"the operands must be int8 or uint8, not {matrix.dtype}")
    return Tensor(mm(c, Tensor(input.shape, None), Tensor(mat2.shape, None)).shape, "int32")


def addmv(c: Context, input: Tensor, mat: Tensor, vec: Tensor, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * [n, k] @ [k] -> [n]; input is [n], [1] or []

    Where the matrix has no elements torch returns beta * input in input's own shape. The message of torch
    quotes the first size of the input, which a scalar does not have.
    """
    if not input.shape and (mat.rank, vec.rank) == (2, 1):
        _inner(c, mat.shape[1], vec.shape[0], "the matrix", "the vector", IndexError)
    result = mv(c, mat, vec)
    _expands(c, input, result.shape, "input")
    _one_dtype(c, input, vec)
    n, k = mat.shape
    if input.shape == (n,) or (c.at_least(n, 1) and c.at_least(k, 1)):
        return result
    if not input.shape:
        return Tensor((), input.dtype) if c.choose(eq(n * k, 0), "the rank of the result") else result
    filled = minimum(n * k, 1)
    return Tensor((n * filled + input.shape[0] * (1 - filled),), input.dtype)


def baddbmm(
    c: Context, input: Tensor, batch1: Tensor, batch2: Tensor, out_dtype: str | None = None, beta: Any = 1,
    alpha: Any = 1,
) -> Tensor:
    """beta * input + alpha * [b, n, k] @ [b, k, m] -> [b, n, m]; input expands to [b, n, m]"""
    result = bmm(c, batch1, batch2, out_dtype)
    _expands(c, input, result.shape, "input")
    dtype = input.dtype if out_dtype else _one_dtype(c, input, batch1)
    _has_kernel(c, dtype, *result.shape, error=RuntimeError)
    return result


def addbmm(
    c: Context, input: Tensor, batch1: Tensor, batch2: Tensor, beta: Any = 1, alpha: Any = 1
) -> Tensor:
    """beta * input + alpha * (sum over b of [b, n, k] @ [b, k, m]) -> [n, m]; input expands to [n, m]"""
    rank_is(c, batch1, "batch1", 3)
    rank_is(c, batch2, "batch2", 3)
    (b, n, k), (b2, k2, m) = batch1.shape, batch2.shape
    c.require(eq(b, b2), f"the batch sizes must agree: {b} and {b2}")
    _inner(c, k, k2, "batch1", "batch2")
    _expands(c, input, (n, m), "input")
    known = {t.dtype for t in (input, batch1, batch2)} - {None}
    if len(known) > 1:
        c.require(eq(b, 0), f"the operands must have one dtype, not {' and '.join(sorted(map(str, known)))}")
    _has_kernel(c, batch2.dtype, b, n, k, m)
    _has_kernel(c, batch2.dtype, n, m, error=RuntimeError)
    if batch2.dtype in NO_PRODUCTS:
        c.require(ne(b, 0), f"an empty sum scales input, which is not implemented for {batch2.dtype}")
    return Tensor((n, m), input.dtype)


def addr(c: Context, input: Tensor, vec1: Tensor, vec2: Tensor, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * [n] x [m] -> [n, m]; input expands to [n, m]"""
    result = outer(c, vec1, vec2)
    _expands(c, input, result.shape, "input")
    return Tensor(result.shape, promote((input, vec1, vec2)), Layout.UNKNOWN)


def outer(c: Context, input: Tensor, vec2: Tensor) -> Tensor:
    """[n] x [m] -> [n, m]"""
    rank_is(c, input, "the first vector", 1)
    rank_is(c, vec2, "the second vector", 1)
    return Tensor(input.shape + vec2.shape, promote((input, vec2)))


def inner(c: Context, input: Tensor, other: Tensor) -> Tensor:
    """[*a, k], [*b, k] -> [*a, *b]; with a scalar on either side it is the pointwise product"""
    if not input.shape or not other.shape:
        layout = Layout.CONTIGUOUS if is_contiguous(input) and is_contiguous(other) else Layout.UNKNOWN
        return Tensor(input.shape or other.shape, promote((input, other)), layout)
    k, k2 = input.shape[-1], other.shape[-1]
    c.require(eq(k, k2), f"the last sizes must agree: {k} and {k2}")
    shape = input.shape[:-1] + other.shape[:-1]
    dtype = _one_dtype(c, input, other)
    if dtype in NO_PRODUCTS and not shape:
        c.refuse(f"no product is implemented for {dtype}", NotImplementedError)
    _has_kernel(c, dtype, *shape, k)
    return Tensor(shape, dtype)


def tensordot(c: Context, input: Tensor, other: Tensor, dims: Any = 2, dims_other: Any = None) -> Tensor:
    """[*a, *k], [*k, *b] -> [*a, *b] with the contracted dims k named on either side; a size 1 among them
    stretches

    `dims` is a count (the last of input, the first of other) or two lists; the ATen form passes the lists
    apart.
    """
    if isinstance(dims, int):
        if not 0 <= dims <= min(input.rank, other.rank):
            c.refuse(f"{dims} dims cannot be contracted between ranks {input.rank} and {other.rank}")
        left, right = tuple(range(input.rank - dims, input.rank)), tuple(range(dims))
    else:
        given = dims if dims_other is None else (dims, dims_other)
        if len(given) != 2 or len(given[0]) != len(given[1]):
            c.refuse(f"the two lists of dims must have one length: {given}")
        left, right = _distinct(c, given[0], input.rank), _distinct(c, given[1], other.rank)
    pairs = [(input.shape[i], other.shape[j]) for i, j in zip(left, right, strict=True)]
    contracted = [broadcast_dim(c, a, b) for a, b in pairs]
    free = tuple(d for i, d in enumerate(input.shape) if i not in left)
    free += tuple(d for j, d in enumerate(other.shape) if j not in right)
    dtype = _one_dtype(c, input, other)
    if dtype in NO_PRODUCTS:
        told = f"no product is implemented for {dtype}"
        count = len(left)
        permuted = left != tuple(range(input.rank - count, input.rank)) or right != tuple(range(count))
        single = all_of(eq(d, 1) for d in free) if dtype == "bool" and free and permuted else False
        if single is not False:
            c.approximate(f"{told}; a single number of permuted ones may run", "accept", single)
        c.require(any_of((no_elements(*free, *contracted), single)), told, NotImplementedError)
    return Tensor(free, dtype)


def _distinct(c: Context, dims: Sequence[int], rank: int) -> tuple[int, ...]:
    if dims and not rank:
        c.refuse(f"dims {list(dims)} of a tensor that has none")
    return axes(c, tuple(dims), rank) if dims else ()


def kron(c: Context, input: Tensor, other: Tensor) -> Tensor:
    """[a, b], [x, y] -> [a*x, b*y], aligned at the last dim: [a, 1, b, 1] * [1, x, 1, y], viewed"""
    rank = max(input.rank, other.rank)
    a, b = ((1,) * (rank - t.rank) + t.shape for t in (input, other))
    left = view(c, input, *(n for size in a for n in (size, 1)))
    right = view(c, other, *(n for size in b for n in (1, size)))
    return view(c, pointwise(c, "====", left, right), *(x * y for x, y in zip(a, b, strict=True)))


def multi_dot(c: Context, tensors: tuple[Tensor, ...]) -> Tensor:
    """[n, k1] @ [k1, k2] @ … @ [kr, m] -> [n, m]; the first and the last may be vectors, whose free dim is
    dropped
    """
    if len(tensors) < 2:
        c.refuse("a chain of products needs two tensors at least")
    for index, tensor in enumerate(tensors):
        rank_is(c, tensor, f"tensor {index}", *((1, 2) if index in (0, len(tensors) - 1) else (2,)))
    return _chain(c, tensors)


def chain_matmul(c: Context, *matrices: Tensor) -> Tensor:
    """[n, k1] @ [k1, k2] @ … @ [kr, m] -> [n, m]"""
    for index, matrix in enumerate(matrices):
        rank_is(c, matrix, f"matrix {index}", 2)
    return _chain(c, matrices) if len(matrices) > 1 else matrices[0]


def _chain(c: Context, tensors: tuple[Tensor, ...]) -> Tensor:
    for index, (a, b) in enumerate(itertools.pairwise(tensors)):
        _inner(c, a.shape[-1], b.shape[0], f"tensor {index}", f"tensor {index + 1}")
    return Tensor(tensors[0].shape[:-1] + tensors[-1].shape[1:], _one_dtype(c, *tensors))


def bilinear(
    c: Context, input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None
) -> Tensor:
    """[*batch, i], [*batch, j], weight [m, i, j], bias [m] -> [*batch, m]; i and j are not 0"""
    if input1.rank != input2.rank or not input1.shape:
        c.refuse(f"the inputs must have one rank, 1 at least: {input1} and {input2}")
    rank_is(c, weight, "the weight", 3)
    m, i, j = weight.shape
    batch = tuple(
        same_dim(c, a, b, f"the batch sizes of the inputs must agree: {a} and {b}")
        for a, b in zip(input1.shape[:-1], input2.shape[:-1], strict=True)
    )
    for name, have, want in (("input1", input1.shape[-1], i), ("input2", input2.shape[-1], j)):
        c.require(eq(have, want), f"{name} has {have} features, the weight takes {want}")
        c.require(ne(have, 0), f"{name} has no features, so it cannot be flattened to a matrix")
    dtype = _one_dtype(c, input1, input2, weight, *(() if bias is None else (bias,)))
    shape = (*batch, m)
    if bias is not None:
        if not bias.shape:
            c.refuse("the bias must have rank 1 at least")
        c.require(eq(bias.shape[0], m), f"the bias has size {bias.shape[0]}, the weight gives {m} features")
        shape = broadcast(c, shape, bias.shape)
    return Tensor(shape, dtype)


def grouped_mm(
    c: Context, input: Tensor, mat2: Tensor, offs: Tensor | None = None, bias: Tensor | None = None,
    out_dtype: str | None = None,
) -> Tensor:
    """A product per group: `[m, k] @ [g, k, n] -> [m, n]`, its rows split at offs, an int32[g]

    Likewise `[g, m, k] @ [k, n] -> [m, n]`; `[m, k] @ [j, n] -> [g, m, n]`; and of two batches, which have no
    offsets, `[g, m, k] @ [g, k, n] -> [g, m, n]`. Rows, or columns, must begin at multiples of 16 bytes,
    and those of the result do.
    """
    both = input, mat2
    for matrix in both:
        if matrix.rank not in (2, 3):
            c.refuse(f"a grouped product takes matrices and batches of them, not {matrix}")
        if matrix.dtype is not None and matrix.dtype not in GROUPED:
            c.refuse(f"a grouped product takes float32, float16 and bfloat16, not {matrix.dtype}")
        c.require(_aligned(c, matrix), f"rows or columns of {matrix} do not begin at multiples of 16 bytes")
    if None not in (input.dtype, mat2.dtype) and input.dtype != mat2.dtype:
        c.refuse(f"a grouped product takes one dtype, not {input.dtype} and {mat2.dtype}")
    if bias is not None or out_dtype not in (None, input.dtype):
        c.refuse("a grouped product takes no bias and gives the dtype of its operands")
    if input.rank + mat2.rank > 4:  # of two matrices torch takes what the offsets say
        _inner(c, input.shape[-1], mat2.shape[-2], "the first", "the second")
    batches = [matrix.shape[0] for matrix in both if matrix.rank == 3]
    if (offs is None) != (len(batches) == 2):
        c.refuse("a grouped product takes offsets, but for two batches of matrices, which have none")
    if offs is not None:
        if offs.rank != 1 or offs.dtype not in ("int32", None):
            c.refuse(f"offsets are one row of int32, not {offs}")
        batches.append(offs.shape[0])
    for groups in batches[1:]:
        c.require(eq(batches[0], groups), f"there are {batches[0]} groups, and {groups}")
    rows, columns = input.shape[-2], mat2.shape[-1]
    step = _alignment(input) * ceildiv(columns, _alignment(input))
    if len({matrix.rank for matrix in both}) == 2:
        return Tensor((rows, columns), input.dtype, (step, 1))
    return Tensor((batches[0], rows, columns), input.dtype, (rows * step, step, 1))


GROUPED = {"float32": 4, "float16": 8, "bfloat16": 8}
"""Dtypes of grouped products, and how many elements 16 bytes hold."""


def _alignment(matrix: Tensor) -> int:
    return GROUPED[matrix.dtype or "float32"]


def _aligned(c: Context, matrix: Tensor) -> Formula:
    """Column by column, or else row by row, without overlap, and each begins at a multiple of 16 bytes."""
    strides, align = strides_of(matrix), _alignment(matrix)
    if strides is None or not all(c.at_least(n, 1) for n in matrix.shape[1:]):
        reason = f"the strides of {matrix} are not known, and have to be those of rows or columns"
        c.approximate(reason, "accept")
        return True
    (*_, rows, columns), (*_, down, along) = matrix.shape, strides
    by_columns = all_of((eq(down, 1), ge(along, maximum(rows, 1))))
    by_rows = all_of((negate(by_columns), eq(along, 1), ge(down, columns)))
    return any_of((all_of((by_columns, divides(align, along))), all_of((by_rows, divides(align, down)))))


def trilinear(
    c: Context, i1: Tensor, i2: Tensor, i3: Tensor, expand1: Sequence[int], expand2: Sequence[int],
    expand3: Sequence[int], sumdim: Sequence[int], unroll_dim: int = 1,
) -> Tensor:
    """The product of three tensors, each with dims of size 1 put in, summed over some dims

    The result has the sizes of the last tensor that has a dim of its own there, to which those of others
    broadcast, or that it is summed with. Along one dim torch goes step by step, as far as the last one does.
    """
    rank = i1.rank + len(expand1)
    nothing = any_of(no_elements(*tensor.shape) for tensor in (i1, i2, i3))
    sizes: list[list[Dim]] = [[] for _ in range(rank)]
    for tensor, expand in ((i1, expand1), (i2, expand2), (i3, expand3)):
        put_in = axes(c, tuple(expand), rank) if expand else ()
        if tensor.rank + len(put_in) != rank:
            c.refuse(f"{tensor} does not have {rank} dims with {len(put_in)} put in")
        given = iter(tensor.shape)
        for i in range(rank):
            if i not in put_in:
                sizes[i].append(next(given))
    gone = axes(c, tuple(sumdim), rank) if sumdim else ()
    for i, own in enumerate(map(tuple, sizes)):
        for size, last in itertools.combinations(own, 2):
            if i == unroll_dim:
                fits = ge(size, last) if last is own[-1] else True
            elif i in gone:
                fits = any_of((eq(size, last), eq(size, 1), eq(last, 1)))
            else:
                fits = any_of((eq(size, last), eq(size, 1), last is not own[-1] and eq(last, 1)))
            c.require(any_of((fits, nothing)), f"the sizes {size} and {last} must agree")
    shape = tuple(own[-1] for i, own in enumerate(sizes) if i not in gone)
    return Tensor(shape, promote((i1, i2, i3)))


def trace(c: Context, input: Tensor) -> Tensor:
    """[n, m] -> []"""
    rank_is(c, input, "the matrix", 2)
    if input.dtype == "bool":
        c.refuse("trace is not implemented for bool", NotImplementedError)
    return Tensor((), "int64" if input.dtype and category(input.dtype) == 1 else input.dtype)


RULES: dict[str, Any] = {
    "_grouped_mm": grouped_mm,
    "_addmm_activation": addmm,
    "_int_mm": int_mm,
    "addbmm": addbmm,
    "_trilinear": trilinear,
    "addmm": addmm,
    "addmv": addmv,
    "addr": addr,
    "baddbmm": baddbmm,
    "bilinear": bilinear,
    "bmm": bmm,
    "chain_matmul": chain_matmul,
    "dot": dot,
    "ger": outer,
    "inner": inner,
    "kron": kron,
    "linalg_multi_dot": multi_dot,
    "linear": linear,
    "matmul": matmul,
    "mm": mm,
    "mv": mv,
    "outer": outer,
    "rmatmul": rmatmul,
    "tensordot": tensordot,
    "trace": trace,
    "vdot": dot,
}
