"""torch.linalg: factorisations, determinants, inverses, solvers, norms, cross products.

LAPACK answers column by column, so most results are laid out as the transpose of a contiguous tensor. Whether
a matrix is singular depends on the data, and no rule states it.
"""

from __future__ import annotations

from math import inf
from typing import Any

from ..ir.language import Context, Layout, Number, Shape, Tensor, product
from ..terms.dims import Dim, Term, minimum
from ..terms.formula import all_of, any_of, eq, ge, ne
from .common import axes, axis, broadcast, category, contiguous_strides, promote, rank_is
from .elementwise import apply_law
from .numbers import branch, equals, lacks_of_nothing, require_number
from .reduction import reduced
from .strides import strides_of

REAL = {"complex32": "float16", "complex64": "float32", "complex128": "float64"}
COMPLEX = {"float32": "complex64", "float64": "complex128"}


def _columns(shape: Shape) -> Shape:
    """Strides of `[*b, n, m]` stored column by column: those of a contiguous `[*b, m, n]`, swapped."""
    if len(shape) < 2:
        return contiguous_strides(shape)
    *batch, row, column = contiguous_strides((*shape[:-2], shape[-1], shape[-2]))
    return (*batch, column, row)


def _real(dtype: str | None) -> str | None:
    return dtype if dtype is None else REAL.get(dtype, dtype)


def _matrix(c: Context, tensor: Tensor, name: str = "A", square: bool = False) -> tuple[Shape, Dim, Dim]:
    """`[*batch, n, m] -> (batch, n, m)`; n == m where the matrix must be square."""
    if tensor.rank < 2:
        c.refuse(f"{name} must be a matrix or a batch of matrices, not {tensor}")
    *batch, n, m = tensor.shape
    if square:
        c.require(eq(n, m), f"{name} must be square, but it is {n} by {m}")
    return tuple(batch), n, m


# --- factorisations -------------------------------------------------------------------------------------

# A row is the law: a square matrix `n n` or any matrix `n m` on the left, the results on the right, batch
# dims left out; k is min(n, m). A result is contiguous, or `column` by column, of the dtype of the matrix or
# of the one that it names.
FACTORS = {
    "_linalg_det": "n n -> , column n n, int32 n",
    "_linalg_eigvals": "n n -> complex n",
    "_lu_with_info": "n m -> column n m, int32 k, int32",
    "_linalg_slogdet": "n n -> , real, column n n, int32 n",
    "cholesky_inverse": "n n -> column n n",
    "det": "n n -> ",
    "geqrf": "n m -> column n m, k",
    "inverse": "n n -> column n n",
    "linalg_cholesky": "n n -> column n n",
    "linalg_cholesky_ex": "n n -> column n n, int32",
    "linalg_eig": "n n -> complex n, column complex n n",
    "linalg_eigh": "n n -> real n, column n n",
    "linalg_eigvals": "n n -> complex n",
    "linalg_eigvalsh": "n n -> real n",
    "linalg_inv_ex": "n n -> column n n, int32",
    "linalg_ldl_factor": "n n -> column n n, int32 n",
    "linalg_ldl_factor_ex": "n n -> column n n, int32 n, int32",
    "linalg_lu_factor": "n m -> column n m, int32 k",
    "linalg_lu_factor_ex": "n m -> column n m, int32 k, int32",
    "linalg_matrix_sqrth": "n n -> n n",
    "linalg_slogdet": "n n -> , real",
    "linalg_svdvals": "n m -> real k",
    "logdet": "n n -> ",
    "matrix_exp": "n n -> n n",
    "slogdet": "n n -> , real",
}


def _factor(name: str, law: str) -> Any:
    left, right = law.split(" ->")
    results = [result.split() for result in right.split(",")]

    def rule(
        c: Context, input: Tensor, *options: Any, UPLO: Any = None, check_errors: Any = None,
        driver: Any = None, hermitian: Any = None, pivot: Any = True, upper: Any = None,
    ) -> Tensor | tuple[Tensor, ...]:
        batch, n, m = _matrix(c, input, square=left == "n n")
        if name in ("linalg_eigh", "linalg_eigvalsh"):
            _triangle(c, *options, *([] if UPLO is None else [UPLO]))
        _on_cpu(c, input, driver, options[0] if options and "_lu_" in name else pivot)
        dtypes = {
            "real": _real(input.dtype),
            "complex": COMPLEX.get(input.dtype or "", input.dtype),
            "int32": "int32",
        }
        sizes = {"n": n, "m": m, "k": minimum(n, m)}
        made = []
        for words in results:
            shape = batch + tuple(sizes[word] for word in words if word in sizes)
            dtype = next((dtypes[word] for word in words if word in dtypes), input.dtype)
            made.append(Tensor(shape, dtype, _columns(shape) if "column" in words else Layout.CONTIGUOUS))
        return tuple(made) if len(made) > 1 else made[0]

    rule.__name__ = name
    rule.__doc__ = f"[*b, {left.replace(' ', ', ')}] -> " + ", ".join(
        f"[{', '.join(['*b', *(word for word in words if word in 'nmk')])}]" for words in results
    )
    return rule


def _triangle(c: Context, UPLO: str = "L") -> None:
    """Refuses what names neither the lower nor the upper triangle."""
    if UPLO not in ("L", "U", "l", "u"):
        c.refuse(f"UPLO is 'L' or 'U', not {UPLO!r}")


def _on_cpu(c: Context, input: Tensor, driver: Any = None, pivot: Any = True) -> None:
    """Requires that there are no elements where a GPU's library is chosen, or LU has no pivots."""
    nothing = any_of(eq(d, 0) for d in input.shape)
    if driver is not None:
        c.require(nothing, f"there is no driver {driver!r} on the CPU")
    if not pivot:
        c.require(nothing, "without pivots the CPU factors empty matrices only")


def cholesky(c: Context, input: Tensor, upper: bool = False) -> Tensor:
    """[*b, n, n] -> [*b, n, n]; any tensor without elements is returned as it is. Until torch 2.13"""
    if c.since(2, 14):
        c.refuse("torch.cholesky was removed: torch.linalg.cholesky replaces it")
    empty = any_of(eq(d, 0) for d in input.shape)
    if input.rank < 2:
        c.require(empty, f"the matrix must be of rank 2 at least, not {input}")
    else:
        n, m = input.shape[-2:]
        c.require(any_of((eq(n, m), empty)), f"the matrix must be square, but it is {n} by {m}")
    return Tensor(input.shape, input.dtype, _columns(input.shape))


def qr(c: Context, input: Tensor, mode: Any = "reduced") -> tuple[Tensor, Tensor]:
    """[*b, n, m] -> Q [*b, n, k], R [*b, k, m] with k = min(n, m); mode "complete": k = n; mode "r": no Q"""
    batch, n, m = _matrix(c, input)
    if mode not in ("reduced", "complete", "r"):
        c.refuse(f"qr knows the modes reduced, complete and r, not {mode!r}")
    k = n if mode == "complete" else minimum(n, m)
    q, r = (*batch, n, k), (*batch, k, m)
    none = Tensor((0,), input.dtype)
    return none if mode == "r" else Tensor(q, input.dtype, _columns(q)), Tensor(r, input.dtype, _columns(r))


def old_qr(c: Context, input: Tensor, some: bool = True) -> tuple[Tensor, Tensor]:
    """As qr, reduced or complete, until torch 2.13"""
    if c.since(2, 14):
        c.refuse("torch.qr was removed: torch.linalg.qr replaces it")
    return qr(c, input, "reduced" if some else "complete")


def linalg_svd(c: Context, A: Tensor, full_matrices: bool = True, driver: Any = None) -> tuple[Tensor, ...]:
    """[*b, n, m] -> U [*b, n, k], S [*b, k], Vh [*b, k, m] with k = min(n, m); U and Vh square if
    full_matrices
    """
    found = _svd(c, A, full_matrices)
    _on_cpu(c, A, driver)
    return found


def _svd(c: Context, A: Tensor, full: bool) -> tuple[Tensor, Tensor, Tensor]:
    batch, n, m = _matrix(c, A)
    k = minimum(n, m)
    u, vh = (*batch, n, n if full else k), (*batch, m if full else k, m)
    return (
        Tensor(u, A.dtype, _columns(u)),
        Tensor((*batch, k), _real(A.dtype)),
        Tensor(vh, A.dtype, _columns(vh)),
    )


def polar(c: Context, A: Tensor) -> tuple[Tensor, Tensor]:
    """[*b, n, m] -> U [*b, n, m], H [*b, m, m], where n >= m"""
    batch, n, m = _matrix(c, A)
    c.require(ge(n, m), f"linalg.polar takes a row for each column at least, not {n} for {m}")
    return Tensor((*batch, n, m), A.dtype), Tensor((*batch, m, m), A.dtype)


def raw_svd(
    c: Context, A: Tensor, full_matrices: bool = False, compute_uv: bool = True, driver: Any = None
) -> tuple[Tensor, ...]:
    """As linalg_svd; without compute_uv U and Vh are empty vectors"""
    u, s, vh = linalg_svd(c, A, full_matrices, driver)
    return (u, s, vh) if compute_uv else (Tensor((0,), A.dtype), s, Tensor((0,), A.dtype))


def svd(c: Context, input: Tensor, some: bool = True, compute_uv: bool = True) -> tuple[Tensor, ...]:
    """[*b, n, m] -> U [*b, n, k], S [*b, k], V [*b, m, k]; U and V square unless both some and compute_uv"""
    u, s, vh = _svd(c, input, not (some and compute_uv))
    v = (*vh.shape[:-2], vh.shape[-1], vh.shape[-2])
    if compute_uv:
        return u, s, Tensor(v, input.dtype)
    return Tensor(u.shape, input.dtype, Layout.UNKNOWN), s, Tensor(v, input.dtype, Layout.UNKNOWN)


def raw_eigh(c: Context, A: Tensor, UPLO: str = "L", compute_v: bool = True) -> tuple[Tensor, Tensor]:
    """[*b, n, n] -> [*b, n], [*b, n, n]; without compute_v the vectors are an empty vector"""
    batch, n, _ = _matrix(c, A, square=True)
    _triangle(c, UPLO)
    vectors = (*batch, n, n)
    values = Tensor((*batch, n), _real(A.dtype))
    return values, Tensor(vectors, A.dtype, _columns(vectors)) if compute_v else Tensor((0,), A.dtype)


def lu(c: Context, A: Tensor, pivot: bool = True) -> tuple[Tensor, ...]:
    """[*b, n, m] -> P [*b, n, n], L [*b, n, k], U [*b, k, m] with k = min(n, m)"""
    batch, n, m = _matrix(c, A)
    k = minimum(n, m)
    _on_cpu(c, A, pivot=pivot)
    permutation = Tensor((*batch, n, n) if pivot else (0,), A.dtype)
    return permutation, Tensor((*batch, n, k), A.dtype), Tensor((*batch, k, m), A.dtype)


def lu_unpack(
    c: Context, LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True
) -> tuple[Tensor, ...]:
    """LU [*b, n, m], pivots [*b, k] -> P [*b, n, n], L [*b, n, k], U [*b, k, m] with k = min(n, m)

    The kernel takes the shape of the pivots on trust.
    """
    batch, n, m = _matrix(c, LU_data, "LU")
    k = minimum(n, m)
    if unpack_data and LU_data.dtype in ("uint16", "uint32", "uint64"):
        c.require(eq(LU_data.numel, 0), f"LU is not unpacked of {LU_data.dtype}", NotImplementedError)
    if unpack_pivots:
        if LU_pivots.dtype not in (None, "int32"):
            c.refuse(f"pivots are int32, not {LU_pivots.dtype}")
        if LU_pivots.rank != LU_data.rank - 1:
            c.refuse(f"the pivots must have one dim less than LU {LU_data}, not {LU_pivots}")
        fits = all_of(map(eq, LU_pivots.shape, (*batch, k)))
        c.require(fits, f"the pivots {LU_pivots} must have the batch dims of LU {LU_data} and size {k}")
    dtype = LU_data.dtype
    none = Tensor((0,), dtype)
    return (
        Tensor((*batch, n, n), dtype) if unpack_pivots else none,
        *((Tensor((*batch, n, k), dtype), Tensor((*batch, k, m), dtype)) if unpack_data else (none, none)),
    )


def householder_product(c: Context, input: Tensor, tau: Tensor) -> Tensor:
    """[*b, n, m], tau [*b, k] -> [*b, n, m] with n >= m >= k"""
    batch, n, m = _matrix(c, input)
    if tau.rank != input.rank - 1:
        c.refuse(f"tau must have one dim less than {input}, not {tau}")
    c.require(ge(n, m), f"the matrix must not be wider than high: {n} by {m}")
    c.require(ge(m, tau.shape[-1]), f"tau has {tau.shape[-1]} reflections, the matrix only {m} columns")
    c.require(all_of(map(eq, batch, tau.shape[:-1])), "the batch dims of the matrix and of tau must agree")
    return Tensor(input.shape, input.dtype, _columns(input.shape))


def ormqr(
    c: Context, input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False
) -> Tensor:
    """[*b, n, m], tau [*b, min(n, m)], [*b, n, k] -> [*b, n, k]; from the right, [*b, k, n] -> [*b, k, n]"""
    batch, n, m = _matrix(c, input)
    others, high, wide = _matrix(c, other, "other")
    if tau.rank != input.rank - 1 or other.rank != input.rank:
        c.refuse(f"the ranks of {input}, tau {tau} and {other} do not belong together")
    if len({t.dtype for t in (input, tau, other)} - {None}) > 1:
        c.refuse("the matrices and tau must have one dtype")
    c.require(eq(high if left else wide, n), f"a product of an {n} by {n} matrix with {other} does not exist")
    c.require(eq(tau.shape[-1], minimum(n, m)), f"tau has {tau.shape[-1]} reflections for {n} by {m}")
    for name, sizes in (("tau", tau.shape[:-1]), ("other", others)):
        c.require(all_of(map(eq, sizes, batch)), f"{name} must have the batch dims of {input}")
    return Tensor(other.shape, other.dtype, _columns(other.shape))


def ldl_solve(c: Context, LD: Tensor, pivots: Tensor, B: Tensor, hermitian: bool = False) -> Tensor:
    """[*b, n, n], pivots [*b, n], [*b, n, m] -> [*b, n, m]; the batch dims of either matrix broadcast"""
    batch, n, _ = _matrix(c, LD, "LD", square=True)
    if B.rank < 2:
        c.refuse(f"B must be a matrix or a batch of matrices, not {B}", IndexError)
    others, rows, m = _matrix(c, B, "B")
    if pivots.dtype is not None and category(pivots.dtype) != 1:
        c.refuse(f"pivots are integers, not {pivots.dtype}")
    if pivots.rank != LD.rank - 1:
        c.refuse(f"the pivots must have one dim less than {LD}, not {pivots}")
    c.require(all_of(map(eq, pivots.shape, LD.shape)), f"the pivots {pivots} do not fit {LD}")
    if LD.dtype != B.dtype and None not in (LD.dtype, B.dtype):
        c.refuse(f"the matrices must have one dtype, not {LD.dtype} and {B.dtype}")
    c.require(eq(rows, n), f"the system has {n} equations, and B {rows} rows")
    if (strides := strides_of(LD)) is not None and strides[-1] == 0:  # the leading dimension of LAPACK
        told = "a matrix of one number that is expanded along its last axis may be refused"
        c.approximate(told, "accept", eq(n, 1))
    shape = (*broadcast(c, batch, others), n, m)
    return Tensor(shape, apply_law(c, "xx==", B.dtype, "ldl_solve"), _columns(shape))


def tensorinv(c: Context, A: Tensor, ind: int = 2) -> Tensor:
    """[*n, *m] with ∏n = ∏m and len(n) = ind -> [*m, *n]"""
    ind = c.number(ind)
    if ind <= 0:
        c.refuse(f"ind is positive, not {ind}")
    if ind > A.rank:
        c.refuse(f"{A} has fewer than {ind} dims")
    n, m = A.shape[:ind], A.shape[ind:]
    c.require(eq(product(n), product(m)), f"a matrix of {product(n)} by {product(m)} is not square")
    return Tensor((*m, *n), A.dtype, Layout.UNKNOWN)


def tensorsolve(c: Context, A: Tensor, B: Tensor, dims: Any = None) -> Tensor:
    """[*n, *m], [*b] with len(n) = len(b) and ∏n = ∏m = ∏b -> [*m]; `dims` of A go to its end before

    Where ∏m = ∏b = 0 there is nothing to solve, whatever n is.
    """
    given = A
    if dims is not None:
        ends = axes(c, dims, A.rank) if dims != () else ()
        order = [i for i in range(A.rank) if i not in ends] + list(ends)
        given = Tensor(tuple(A.shape[i] for i in order), A.dtype)
    if B.rank > given.rank:
        c.refuse(f"{A} has fewer dims than {B}")
    if len({A.dtype, B.dtype} - {None}) > 1:
        c.refuse(f"tensorsolve takes tensors of one dtype, not {A.dtype} and {B.dtype}")
    n, m = product(given.shape[: B.rank]), given.shape[B.rank :]
    columns = product(m)
    c.require(eq(columns, B.numel), f"there are {columns} unknowns for {B}")
    c.require(any_of((eq(n, columns), eq(columns, 0))), f"a matrix of {n} by {columns} is not square")
    return Tensor(m, A.dtype)


def check_errors(c: Context, info: Tensor, api_name: Any, is_matrix: Any) -> tuple[()]:
    """int32[*b] -> nothing; it raises where the data is singular"""
    if info.dtype not in (None, "int32"):
        c.refuse(f"LAPACK's info is int32, not {info.dtype}")
    return ()


def pinv(
    c: Context, input: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None,
    rtol: Any = None,
) -> Tensor:
    """[*b, n, m] -> [*b, m, n]; a hermitian matrix is square, if it is not empty

    Tolerances broadcast with b, but those of an empty input.
    """
    batch, n, m = _matrix(c, input)
    _square_unless_empty(c, hermitian, input)
    batch = _tolerated(c, input, batch, rcond, atol, rtol)
    return Tensor((*batch, m, n), input.dtype, Layout.UNKNOWN)


def _tolerated(c: Context, input: Tensor, batch: Shape, *tolerances: Any) -> Shape:
    """The batch with that of the tolerances, where they are tensors and the input has elements."""
    shapes = [t.shape for t in tolerances if isinstance(t, Tensor)]
    if not shapes or not c.choose(ge(input.numel, 1), "the batch of the result"):
        return batch
    return broadcast(c, batch, *shapes)


def matrix_rank(
    c: Context, input: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None
) -> Tensor:
    """[*b, n, m] -> int64 [*b], with which tolerances broadcast; if hermitian, square or empty"""
    batch, _, _ = _matrix(c, input)
    _square_unless_empty(c, hermitian, input)
    return Tensor(_tolerated(c, input, batch, tol, atol, rtol), "int64")


def _square_unless_empty(c: Context, wanted: bool, tensor: Tensor) -> None:
    n, m = tensor.shape[-2:]
    if wanted:
        empty = any_of(eq(d, 0) for d in tensor.shape)
        c.require(any_of((empty, eq(n, m))), f"the matrix must be square, but it is {n} by {m}")


def cond(c: Context, input: Tensor, p: Any = None) -> Tensor:
    """[*b, n, m] -> [*b]; square, but for None, 2 and -2 and, where it is empty, for all numbers"""
    batch, _, _ = _matrix(c, input, square=isinstance(p, str))
    if isinstance(p, str) and p not in ("fro", "nuc"):
        c.refuse(f"linalg.cond takes no norm {p!r}", ValueError if c.since(2, 14) else RuntimeError)
    if p is not None and not isinstance(p, str) and p not in (inf, -inf):
        error = ValueError if c.since(2, 14) else RuntimeError
        require_number(c, equals(p, -2, -1, 1, 2), f"linalg.cond takes no norm {p}", error)
    if isinstance(p, Term | Number):
        p = 2 if branch(c, equals(p, -2, 2), False, "the norm") else 1
    _square_unless_empty(c, p not in (None, 2, -2), input)
    return Tensor(batch, _real(input.dtype))


def matrix_power(c: Context, input: Tensor, n: Dim) -> Tensor:
    """[*b, n, n] -> [*b, n, n]; integers and short floats too, where the exponent is not negative"""
    if input.rank < 2:
        c.refuse(f"a power needs a matrix or a batch of matrices, not {input}")
    rows, columns = input.shape[-2:]
    c.require(eq(rows, columns), f"the matrix must be square, but it is {rows} by {columns}")
    if input.dtype not in (None, "float32", "float64", "complex64", "complex128"):
        error = NotImplementedError if c.since(2, 15) else RuntimeError
        c.require(ge(n, 0), f"an inverse cannot be taken of {input.dtype}", error)
    return Tensor(input.shape, input.dtype, Layout.UNKNOWN)


# --- solvers --------------------------------------------------------------------------------------------


def _same(c: Context, *tensors: Tensor) -> str | None:
    known = {t.dtype for t in tensors if t.dtype is not None}
    if len(known) > 1:
        c.refuse(f"the operands must have one dtype, not {' and '.join(sorted(known))}")
    return tensors[0].dtype


def _is_vector(c: Context, A: Tensor, B: Tensor) -> bool:
    """Returns whether B is one vector, or a batch with a vector for each matrix of A; else B is a batch of
    matrices.
    """
    if B.rank == 1:
        return True
    if B.rank != A.rank - 1:
        return False
    return c.choose(all_of(map(eq, B.shape, A.shape[:-1])), "whether B is a batch of vectors or a matrix")


def _solution(c: Context, A: Tensor, B: Tensor, left: bool) -> Shape:
    """`[*b, n, n], [*b, n, m] -> [*b, n, m]`, or with A on the right `[*b, m, n] -> [*b, m, n]`"""
    batch, n, _ = _matrix(c, A, square=True)
    batch_b, rows, columns = _matrix(c, B, "B")
    size = rows if left else columns
    c.require(eq(size, n), f"the equation is of size {n}, but B has {size} {'rows' if left else 'columns'}")
    return (*broadcast(c, batch, batch_b), rows, columns)


def _solve(c: Context, A: Tensor, B: Tensor, left: bool) -> Tensor:
    dtype = _same(c, A, B)
    batch, n, _ = _matrix(c, A, square=True)
    if B.rank and _is_vector(c, A, B):
        if not left:
            c.refuse("with A on the right B must be a matrix")
        c.require(eq(B.shape[-1], n), f"the equation is of size {n}, but B has {B.shape[-1]} rows")
        shape = (*broadcast(c, batch, B.shape[:-1]), n)
    else:
        shape = _solution(c, A, B, left)
    return Tensor(shape, dtype, _columns(shape) if left else Layout.CONTIGUOUS)


def linalg_solve(c: Context, A: Tensor, B: Tensor, left: bool = True) -> Tensor:
    """A [*b, n, n], B [*b, n, m] or [n] -> [*b, n, m] or [*b, n]"""
    return _solve(c, A, B, left)


def linalg_solve_ex(
    c: Context, A: Tensor, B: Tensor, left: bool = True, check_errors: Any = None
) -> tuple[Tensor, ...]:
    """As linalg_solve, with the codes int32 [*b]"""
    return _solve(c, A, B, left), Tensor(A.shape[:-2], "int32")


def raw_solve(
    c: Context, A: Tensor, B: Tensor, left: bool = True, check_errors: Any = None
) -> tuple[Tensor, ...]:
    """As linalg_solve, with LU [*b, n, n], pivots [*b, n] and codes [*b]"""
    result = _solve(c, A, B, left)
    return (
        result,
        Tensor(A.shape, A.dtype, _columns(A.shape)),
        Tensor(A.shape[:-1], "int32"),
        Tensor(A.shape[:-2], "int32"),
    )


def solve_triangular(
    c: Context, input: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Tensor:
    """A [*b, n, n], B [*b, n, m] -> [*b, n, m]"""
    shape = _solution(c, input, B, left)
    return Tensor(shape, _same(c, input, B), _columns(shape))


def triangular_solve(
    c: Context, input: Tensor, A: Tensor, upper: Any = True, transpose: Any = False,
    unitriangular: Any = False,
) -> tuple[Tensor, Tensor]:
    """B [*b, n, m], A [*b, n, n] -> [*b, n, m], [*b, n, n]"""
    shape = _solution(c, A, input, True)
    copied = (*shape[:-2], *A.shape[-2:])
    dtype = _same(c, A, input)
    return Tensor(shape, dtype, _columns(shape)), Tensor(copied, dtype, _columns(copied))


def cholesky_solve(c: Context, input: Tensor, input2: Tensor, upper: bool = False) -> Tensor:
    """B [*b, n, m], L [*b, n, n] -> [*b, n, m]"""
    shape = _solution(c, input2, input, True)
    return Tensor(shape, _same(c, input, input2), _columns(shape))


def linalg_lu_solve(
    c: Context, LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False
) -> Tensor:
    """LU [*b, n, n], pivots [*b, n], B [*b, n, m] -> [*b, n, m]"""
    shape = _solution(c, LU, B, left)
    if pivots.rank != LU.rank - 1:
        c.refuse(f"the pivots must have one dim less than LU {LU}, not {pivots}")
    c.require(
        all_of(map(eq, LU.shape[:-1], pivots.shape)),
        "the pivots must have the shape of LU without its last dim",
    )
    if pivots.dtype not in (None, "int32"):
        c.refuse(f"pivots are int32, not {pivots.dtype}")
    dtype = apply_law(c, "xx==", _same(c, LU, B), "linalg_lu_solve")
    return Tensor(shape, dtype, _columns(shape) if left else Layout.CONTIGUOUS)


def lu_solve(c: Context, input: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """B [*b, n, m], LU [*b, n, n], pivots [*b, n] -> [*b, n, m]"""
    return linalg_lu_solve(c, LU_data, LU_pivots, input)


def lstsq(
    c: Context, input: Tensor, b: Tensor, rcond: Any = None, driver: str | None = None
) -> tuple[Tensor, ...]:
    """A [*b, n, m], B [*b, n, k] or [*b, n] -> X [*b, m, k] or [*b, m], with residuals, ranks and singular
    values
    """
    batch, n, m = _matrix(c, input)
    dtype = _same(c, input, b)
    if b.rank not in (input.rank, input.rank - 1):
        c.refuse(f"B {b} must have as many dims as A {input}, or one less")
    codes = Tensor((0,) if driver == "gels" else batch, "int64")
    singular = Tensor((*batch, minimum(n, m)) if driver in ("gelsd", "gelss") else (0,), _real(dtype))
    residuals = Tensor((0,), _real(dtype), Layout.UNKNOWN)
    if b.rank == input.rank - 1:
        c.approximate(
            "a right side with one dim less is read as a batch of vectors, which torch does where the "
            "sizes agree"
        )
        c.require(all_of(map(eq, b.shape, input.shape[:-1])), f"A {input} and B {b} do not fit")
        return Tensor((*batch, m), dtype, Layout.UNKNOWN), residuals, codes, singular
    c.require(eq(n, b.shape[-2]), f"A has {n} rows, B has {b.shape[-2]}")
    shape = (*broadcast(c, batch, b.shape[:-2]), m, b.shape[-1])
    if driver != "gelsy" and driver is not None:
        c.approximate("whether there are residuals depends on the ranks that the data gives")
    return Tensor(shape, dtype, Layout.UNKNOWN), residuals, codes, singular


# --- vectors --------------------------------------------------------------------------------------------


def linalg_cross(c: Context, input: Tensor, other: Tensor, dim: int = -1) -> Tensor:
    """[*a, 3, *b] x [*a, 3, *b] -> [*a, 3, *b], broadcast"""
    if input.rank != other.rank:
        c.refuse(f"both operands must have one rank: {input} and {other}")
    at = axis(c, dim, input.rank)
    for tensor in (input, other):
        if not tensor.shape:
            c.refuse("a scalar has no cross product", IndexError)
        c.require(eq(tensor.shape[at], 3), f"dim {dim} must have size 3, but {tensor} has {tensor.shape[at]}")
    return Tensor(broadcast(c, input.shape, other.shape), _same(c, input, other))


def cross(c: Context, input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """As linalg_cross; the dim left out is the first of size 3"""
    if dim is None:
        sizes = enumerate(input.shape)
        dim = next((i for i, d in sizes if c.choose(eq(d, 3), "the dim that torch.cross takes")), None)
        if dim is None:
            c.refuse(f"{input} has no dim of size 3")
    return linalg_cross(c, input, other, dim)


def vecdot(c: Context, x: Tensor, y: Tensor, dim: int = -1) -> Tensor:
    """[*b, n] . [*b, n] -> [*b], broadcast, n included; vectors without a batch have the same n"""
    if _same(c, x, y) is not None and category(x.dtype or "") < 2:
        error = NotImplementedError if c.since(2, 15) else RuntimeError
        c.refuse(f"vecdot takes floating or complex numbers, not {x.dtype}", error)
    shape = broadcast(c, x.shape, y.shape)
    at = axis(c, dim, len(shape))
    if x.rank == y.rank == 1:
        c.require(eq(x.shape[0], y.shape[0]), f"the vectors have {x.shape[0]} and {y.shape[0]} elements")
    return Tensor(shape[:at] + shape[at + 1 :], x.dtype)


def linalg_vander(c: Context, x: Tensor, N: Dim | None = None) -> Tensor:
    """[*b, n] -> [*b, n, N], N = n unless given, 2 at least; a scalar is a vector of one"""
    if not x.shape:
        x = Tensor((1,), x.dtype)
    columns = x.shape[-1] if N is None else N
    c.require(ge(columns, 2), f"the matrix must have 2 columns at least, not {columns}")
    dtype = "int64" if x.dtype and category(x.dtype) < 2 else x.dtype
    return Tensor((*x.shape, columns), dtype, Layout.UNKNOWN)


def vander(c: Context, x: Tensor, N: Dim | None = None, increasing: bool = False) -> Tensor:
    """[n] -> [n, N], N = n unless given"""
    rank_is(c, x, "the vector", 1)
    columns = x.shape[0] if N is None else N
    c.require(ge(columns, 0), f"N must not be negative, but is {columns}")
    dtype = "int64" if x.dtype and category(x.dtype) < 2 else x.dtype
    return Tensor((x.shape[0], columns), dtype, Layout.UNKNOWN)


# --- norms ----------------------------------------------------------------------------------------------


def _norm_dtype(c: Context, input: Tensor, dtype: str | None) -> str | None:
    """The dtype of a norm: real, of the operand's own width or of the wider one asked for."""
    have = input.dtype
    if have is not None and category(have) < 2:
        error = NotImplementedError if c.since(2, 15) else RuntimeError
        c.refuse(f"a norm takes floating or complex numbers, not {have}", error)
    if dtype is not None and have is not None:
        if category(dtype) != category(have):
            c.refuse(f"dtype {dtype} is not of the kind of {have}")
        if promote((Tensor((1,), have), Tensor((1,), dtype))) != dtype:
            c.refuse(f"dtype {dtype} is narrower than {have}")
    return _real(dtype or have)


def vector_norm(
    c: Context, input: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: str | None = None
) -> Tensor:
    """[*a, *r, *b] -> [*a, *b], over all dims unless some are given; norms of no numbers exist for finite
    orders >= 0
    """
    result = _norm_dtype(c, input, dtype)
    over = axes(c, dim, input.rank)
    if lacks_of_nothing(c, ord):
        for i in over if input.shape else ():
            c.require(
                ne(input.shape[i], 0),
                f"the {ord} norm over dim {i} needs numbers, but its size is {input.shape[i]}",
            )
    return Tensor(reduced(input.shape, over, keepdim), result)


MATRIX_ORDERS: dict[Any, str] = {"fro": "", "nuc": "", inf: "", -inf: "n", 1: "", -1: "m", 2: "", -2: "nm"}
"""Orders of matrix norms, and the sizes that may not be 0."""


def matrix_norm(
    c: Context, input: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False,
    dtype: str | None = None,
) -> Tensor:
    """[*a, n, *b, m, *d] -> [*a, *b, *d]"""
    result = _norm_dtype(c, input, dtype)
    if input.rank < 2:
        c.refuse(f"a matrix norm needs rank 2 at least, not {input}")
    if not isinstance(dim, tuple) or len(dim) != 2:
        c.refuse(f"a matrix norm is over two dims, not over {dim}")
    if isinstance(ord, Term | Number):
        require_number(c, equals(ord, -2, -1, 1, 2), f"there is no matrix norm of order {ord}")
        ord = next((k for k in (-2, -1, 1) if branch(c, equals(ord, k), False, "the norm")), 2)
    if ord not in MATRIX_ORDERS:
        c.refuse(f"there is no matrix norm of order {ord}")
    over = axes(c, dim, input.rank)
    for letter, i in zip("nm", over, strict=True):
        if letter in MATRIX_ORDERS[ord]:
            size = input.shape[i]
            told = f"the {ord} norm over dim {i} needs numbers, but its size is {size}"
            c.require(ne(size, 0), told, IndexError)
    return Tensor(reduced(input.shape, over, keepdim), result)


def linalg_norm(
    c: Context, input: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False,
    dtype: str | None = None,
) -> Tensor:
    """A vector norm over one dim, a matrix norm over two; without `ord` and `dim` the 2-norm of all"""
    dims = (dim,) if isinstance(dim, int) else dim
    if dims is not None and len(dims) not in (1, 2):
        c.refuse(f"a norm is over one dim or two, not over {dims}")
    if ord is None:
        return vector_norm(c, input, 2, dims, keepdim, dtype)
    if dims is None and input.rank not in (1, 2):
        c.refuse(f"without dims a norm of order {ord} takes rank 1 or 2, not {input}")
    dims = tuple(range(input.rank)) if dims is None else dims
    if len(dims) == 2 or isinstance(ord, str):
        return matrix_norm(c, input, ord, dims, keepdim, dtype)
    return vector_norm(c, input, ord, dims, keepdim, dtype)


def norm(
    c: Context, input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: object = None,
    dtype: str | None = None,
) -> Tensor:
    """The vector norm of order p over the dims given, or all; "fro" is 2, "nuc" a matrix norm"""
    dims = (dim,) if isinstance(dim, int | Term) else dim
    if p in (None, "fro") and (dims is None or len(dims) <= 2):
        return vector_norm(c, input, 2, dims, keepdim, dtype)
    if isinstance(p, str):
        return matrix_norm(c, input, p, tuple(range(input.rank)) if dims is None else dims, keepdim, dtype)
    return vector_norm(c, input, 2 if p is None else p, dims, keepdim, dtype)


def frobenius_norm(c: Context, input: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    """The vector norm of order 2 over the dims given, or all"""
    return vector_norm(c, input, 2, dim, keepdim)


def nuclear_norm(c: Context, input: Tensor, dim: Any = (-2, -1), keepdim: bool = False) -> Tensor:
    """The matrix norm "nuc" over the two dims given"""
    return matrix_norm(c, input, "nuc", dim, keepdim)


RULES: dict[str, Any] = {name: _factor(name, law) for name, law in FACTORS.items()} | {
    "_linalg_check_errors": check_errors,
    "_linalg_eigh": raw_eigh,
    "_linalg_solve_ex": raw_solve,
    "_linalg_svd": raw_svd,
    "cholesky": cholesky,
    "cholesky_solve": cholesky_solve,
    "cross": cross,
    "frobenius_norm": frobenius_norm,
    "linalg_cond": cond,
    "linalg_cross": linalg_cross,
    "linalg_householder_product": householder_product,
    "linalg_ldl_solve": ldl_solve,
    "linalg_lstsq": lstsq,
    "linalg_lu": lu,
    "linalg_lu_solve": linalg_lu_solve,
    "linalg_matrix_norm": matrix_norm,
    "linalg_matrix_rank": matrix_rank,
    "linalg_norm": linalg_norm,
    "linalg_pinv": pinv,
    "linalg_polar": polar,
    "linalg_qr": qr,
    "linalg_solve": linalg_solve,
    "linalg_solve_ex": linalg_solve_ex,
    "linalg_solve_triangular": solve_triangular,
    "linalg_svd": linalg_svd,
    "linalg_tensorinv": tensorinv,
    "linalg_tensorsolve": tensorsolve,
    "linalg_vander": linalg_vander,
    "linalg_vecdot": vecdot,
    "linalg_vector_norm": vector_norm,
    "lu_solve": lu_solve,
    "lu_unpack": lu_unpack,
    "matrix_power": matrix_power,
    "norm": norm,
    "nuclear_norm": nuclear_norm,
    "orgqr": householder_product,
    "ormqr": ormqr,
    "pinverse": pinv,
    "qr": old_qr,
    "svd": svd,
    "triangular_solve": triangular_solve,
    "vander": vander,
}
