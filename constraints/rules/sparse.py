"""Sparse tensors, which store only some of their elements, such as the matrices of graphs.

The ordinary rules describe operators on dense tensors. SPARSE describes the operators that accept a sparse
argument; the result of any other operator on a sparse tensor is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ..contents.requirements.indices import doubt_places
from ..contents.traits import is_sparse
from ..engine.ruleset import BadCall, RuleFunction
from ..ir.language import Context, Layout, Shape, Tensor, Value
from ..terms.dims import Dim
from ..terms.formula import eq, le
from . import linalg
from .common import rank_is
from .creation import sizes
from .elementwise import same_dtype

# --- made of their parts ---------------------------------------------------------------------------------


def sparse_coo_tensor(
    c: Context, indices: Value = None, values: Value = None, size: Shape | None = None,
    dtype: str | None = None, is_coalesced: bool | None = None, check_invariants: Value = None,
) -> Tensor:
    """`[d, s], [s, *e], (*n, *e) -> [*n, *e]`, n of length d; sizes that are not given the data decide

    Of a size alone, where elements are often given, nothing is stored.
    """
    if values is None and isinstance(size if indices is None else indices, tuple):
        return Tensor(sizes(c, (size if indices is None else indices,)), dtype or c.floats, Layout.COO)
    if not isinstance(indices, Tensor) or not isinstance(values, Tensor):
        raise BadCall("sparse tensors are made of tensors")
    rank_is(c, indices, "indices", 2)
    if values.rank == 0:
        c.refuse("the values of a sparse tensor have at least one dimension")
    places, count = indices.shape
    c.require(eq(count, values.shape[0]), f"indices {indices} and values {values} must be as many")
    if size is None:
        size = (*(c.fresh("rows", 0, None) for _ in range(c.number(places))), *values.shape[1:])
    rank = len(size) - values.rank + 1
    c.require(eq(places, rank), f"indices {indices} must have a row for each of {rank} sizes")
    for wanted, found in zip(size[max(rank, 0) :], values.shape[1:], strict=True):
        c.require(eq(wanted, found), f"the last sizes of {size} must be those of the values {values}")
    layout = Layout.COALESCED if is_coalesced else Layout.COO
    doubt_places(c, indices, size[: max(rank, 0)])
    return Tensor(sizes(c, size), dtype or values.dtype, layout)


def sparse_csr_tensor(
    c: Context, crow_indices: Tensor, col_indices: Tensor, values: Tensor, size: Shape | None = None,
    dtype: str | None = None, check_invariants: Value = None,
) -> Tensor:
    """`[n + 1], [s], [s], (n, m) -> [n, m]`

    torch checks none of the sizes, and reads beyond its memory where they do not fit: such calls are not
    modelled.
    """
    if size is None or len(size) != 2 or (crow_indices.rank, col_indices.rank, values.rank) != (1, 1, 1):
        raise BadCall("compressed sparse tensors are known as matrices whose size is given")
    for apart in (crow_indices.shape[0] - size[0] - 1, col_indices.shape[0] - values.shape[0]):
        if not (c.at_least(apart, 0) and c.at_least(-apart, 0)):
            if not c.is_data(apart):
                raise BadCall("the parts may not fit, which torch does not check")
            reason = "the parts of a sparse tensor are taken to fit, which torch does not check"
            c.approximate(reason, "accept")
    return Tensor(sizes(c, size), dtype or values.dtype, Layout.CSR)


def coo_to_csr(c: Context, input: Tensor, size: Dim, out_int32: bool = False) -> Tensor:
    """`[s], n -> [n + 1]`, where in the list of rows each of n begins"""
    rank_is(c, input, "input", 1)
    return Tensor((size + 1,), "int32" if out_int32 else "int64")


# --- what they are made of -------------------------------------------------------------------------------


def to_dense(c: Context, input: Tensor, dtype: str | None = None, masked_grad: Value = None) -> Tensor:
    """`[*n] -> [*n]`"""
    return Tensor(input.shape, dtype or input.dtype)


def to_sparse(
    c: Context, input: Tensor, sparse_dim: Value = None, blocksize: Value = None, dense_dim: Value = None
) -> Tensor:
    """`[*n] -> [*n]`, where each element that is not 0 is stored"""
    if not sparse_dim is blocksize is dense_dim is None:
        raise BadCall("sparse tensors are known whose elements are numbers, one by one")
    return coalesce(c, input)


def coalesce(c: Context, input: Tensor) -> Tensor:
    """`[*n] -> [*n]`"""
    return Tensor(input.shape, input.dtype, Layout.COALESCED)


def to_sparse_csr(c: Context, input: Tensor, dense_dim: Value = None) -> Tensor:
    """`[n, m] -> [n, m]`"""
    if input.rank != 2 or dense_dim is not None:
        raise BadCall("compressed sparse tensors are known as matrices")
    return Tensor(input.shape, input.dtype, Layout.CSR)


def of_dense(name: str) -> RuleFunction:
    """Returns the rule of an operator that only sparse tensors have: it refuses a dense one."""

    def rule(c: Context, input: Tensor) -> Tensor:
        """Refuses a dense tensor."""
        c.refuse(f"{name} takes a sparse tensor, not the dense {input}")

    return rule


def part(*layouts: Layout, shape: Callable[[Tensor, Dim], Shape], dtype: str | None = None) -> RuleFunction:
    """`[*n] -> shape(n, s)`, where s elements are stored; one element is stored once, whatever the layout"""

    def rule(c: Context, input: Tensor) -> Tensor:
        """`[*n] -> shape(n, s)`, where s elements are stored"""
        assert isinstance(input.layout, Layout)
        count = c.stored(input)
        if input.layout is Layout.COO and Layout.COALESCED in layouts and Layout.COO not in layouts:
            c.require(le(count, 1), "the tensor is not coalesced, and has no such part before it is")
        elif input.layout not in layouts:
            c.refuse(f"a tensor in the layout {input.layout.value} has no such part")
        return Tensor(shape(input, count), dtype or input.dtype, Layout.UNKNOWN)

    return rule


# --- operators on them -----------------------------------------------------------------------------------


def same(c: Context, input: Tensor) -> Tensor:
    """`[*n] -> [*n]`, where elements that are not stored stay so"""
    return Tensor(input.shape, input.dtype, input.layout)


def scaled(c: Context, input: Value, other: Value) -> Tensor:
    """`[*n] -> [*n]`, by a number"""
    if not isinstance(input, Tensor) or isinstance(other, Tensor):
        raise BadCall("a sparse tensor is multiplied by numbers only")
    return same(c, input)


def matmul(c: Context, input: Tensor, other: Tensor) -> Tensor:
    """`[n, k] @ [k, m] -> [n, m]`, `[n, k] @ [k] -> [n]`; sparse where both are, in the same way"""
    if input.rank != 2 or other.rank not in (1, 2):
        raise BadCall("products of sparse matrices are known without batches")
    same_dtype(c, "a product of sparse matrices", input, other)
    both = is_sparse(input) and is_sparse(other)
    if both and (input.layout is Layout.CSR) != (other.layout is Layout.CSR):
        raise BadCall("sparse matrices are multiplied of which both are stored in one way")
    c.require(eq(input.shape[1], other.shape[0]), f"{input} and {other} cannot be multiplied")
    layout = Layout.CONTIGUOUS
    if both:
        layout = Layout.CSR if input.layout is Layout.CSR else Layout.COALESCED
    elif other.rank == 2:
        layout = Layout.UNKNOWN
    return Tensor((input.shape[0], *other.shape[1:]), input.dtype, layout)


def mm(c: Context, input: Tensor, mat2: Tensor) -> Tensor:
    """`[n, k] @ [k, m] -> [n, m]`"""
    rank_is(c, mat2, "mat2", 2)
    return matmul(c, input, mat2)


def sparse_mm(c: Context, sparse: Tensor, dense: Tensor, reduce: str = "sum") -> Tensor:
    """`[n, k] @ [k, m] -> [n, m]`"""
    return mm(c, sparse, dense) if is_sparse(sparse) or is_sparse(dense) else linalg.mm(c, sparse, dense)


def total(c: Context, input: Tensor, dtype: str | None = None) -> Tensor:
    """`[*n] -> []`"""
    return Tensor((), dtype or input.dtype)


# --- tables ----------------------------------------------------------------------------------------------

COO, COALESCED, CSR = Layout.COO, Layout.COALESCED, Layout.CSR

PARTS: Final[dict[str, RuleFunction]] = {
    "indices": part(COALESCED, shape=lambda x, count: (x.rank, count), dtype="int64"),
    "_indices": part(COO, COALESCED, shape=lambda x, count: (x.rank, count), dtype="int64"),
    "values": part(COALESCED, CSR, shape=lambda x, count: (count,)),
    "_values": part(COO, COALESCED, shape=lambda x, count: (count,)),
    "crow_indices": part(CSR, shape=lambda x, count: (x.shape[0] + 1,), dtype="int64"),
    "col_indices": part(CSR, shape=lambda x, count: (count,), dtype="int64"),
    "coalesce": coalesce,
}
"""Operators that only sparse tensors have."""

OF_SPARSE: Final[dict[str, RuleFunction]] = {
    **PARTS,
    **dict.fromkeys("abs clone detach neg relu sqrt".split(), same),
    "_sparse_mm": sparse_mm,
    "matmul": matmul,
    "mm": mm,
    "mul": scaled,
    "sum": total,
    "to_dense": to_dense,
    "to_sparse": to_sparse,
    "to_sparse_csr": to_sparse_csr,
}
"""The rules of operators for calls with a sparse argument."""

RULES: Final[dict[str, RuleFunction]] = {
    **{name: of_dense(name) for name in PARTS},
    "_convert_indices_from_coo_to_csr": coo_to_csr,
    "_sparse_mm": sparse_mm,
    "sparse_coo_tensor": sparse_coo_tensor,
    "sparse_csr_tensor": sparse_csr_tensor,
    "to_dense": to_dense,
    "to_sparse": to_sparse,
    "to_sparse_csr": to_sparse_csr,
}
