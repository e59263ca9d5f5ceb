"""torch.linalg, judged by torch."""
from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

import pytest
import torch
from absent import NEWER
from rules.judge import Judge

from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Tensor
from anyshape.constraints.rules.matrices import FACTORS, RULES
from anyshape.tracer.host.operators import INSTALLED
from anyshape.typecheck.testing.differential import Case, T, check_case

judge = Judge(Rules(RULES), count=20)
i32, i64, f64, c64 = torch.int32, torch.int64, torch.float64, torch.complex64
L, aten = torch.linalg, torch.ops.aten


def filled(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function on random numbers with a heavy diagonal: invertible, positive definite."""

    def fill(tensor: Any) -> Any:
        if not isinstance(tensor, torch.Tensor) or not (tensor.is_floating_point() or tensor.is_complex()):
            return tensor
        generator = torch.Generator().manual_seed(tensor.numel())
        result = tensor + torch.rand(tensor.shape, generator=generator, dtype=torch.float64).to(tensor.dtype)
        if result.dim() > 1:
            result.diagonal(dim1=-2, dim2=-1).add_(10)
        return result

    return lambda *args, **kwargs: function(*map(fill, args), **kwargs)


def case(op: str, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Case:
    return Case(op, filled(call), args, kwargs)


def of_lu(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """`function(LU, pivots, b)` with pivots that a factorisation may have."""
    return lambda lu, pivots, b: function(lu, pivots.clamp(1) if pivots.numel() else pivots, b, **options)


def of_ldl(LD: torch.Tensor, pivots: torch.Tensor, b: torch.Tensor) -> Any:
    """ldl_solve with pivots that a factorisation may have."""
    return L.ldl_solve(LD, torch.ones_like(pivots), b)


def spelt(name: str) -> Callable[..., Any]:
    """torch's function of a canonical name."""
    short = name.removeprefix("linalg_")
    return getattr(torch, name, None) or getattr(L, short, None) or getattr(torch.ops.aten, name)


def unpacked(lu: torch.Tensor, pivots: torch.Tensor, *options: bool) -> Any:
    """lu_unpack with pivots that a factorisation may have."""
    return torch.lu_unpack(lu, torch.ones_like(pivots), *options)


FACTOR_CASES = [
    case(name, spelt(name), T(sizes))
    for name in sorted(FACTORS.keys() - NEWER)
    for sizes in ("b n m", "n m", "a b n n", "n")
]

CASES = [
    *(case("linalg_polar", spelt("linalg_polar"), T(sizes))
      for sizes in ("b n m", "n m", "n") if "linalg_polar" not in NEWER),
    case("inverse", L.inv, T("n n", i64)),
    case("inverse", L.inv, T("n n", c64)),
    case("linalg_eigh", L.eigh, T("n n", c64), "U"),
    *(
        case(op, spelt(op), T("n n"), triangle)
        for op in ("linalg_eigh", "linalg_eigvalsh", "_linalg_eigh")
        for triangle in ("l", "X", "", "Lower")
    ),
    case("linalg_eigvalsh", L.eigvalsh, T("b n m"), UPLO="X"),
    case("linalg_eigvals", L.eigvals, T("n n", f64)),
    *(case(op, spelt(op), T("b n m"), driver="gesvd") for op in ("linalg_svd", "linalg_svdvals")),
    *(
        case(op, spelt(op), T("b n m"), pivot=pivot)
        for op in ("linalg_lu_factor", "linalg_lu_factor_ex")
        for pivot in (True, False)
    ),
    case("_lu_with_info", torch._lu_with_info, T("b n m"), False),
    case("linalg_svdvals", L.svdvals, T("n m", c64)),
    case("linalg_eig", L.eig, T("b n n", permute=(0, 2, 1))),
    case("linalg_cholesky", L.cholesky, T("n n"), upper=True),
    case("cholesky", torch.cholesky, T("b n m")),
    case("cholesky", torch.cholesky, T("n m")),
    case("cholesky", torch.cholesky, T("n")),
    *(case("linalg_qr", L.qr, T("b n m"), mode=mode) for mode in ("reduced", "complete", "r", "none")),
    case("linalg_qr", L.qr, T("n")),
    case("qr", torch.qr, T("b n m"), False),
    case("qr", torch.qr, T("b n m"), some=True),
    case("qr", torch.qr, T("n")),
    case("linalg_svd", L.svd, T("b n m")),
    case("linalg_svd", L.svd, T("n m", c64), full_matrices=False),
    case("linalg_svd", L.svd, T("n", c64)),
    case("_linalg_svd", torch._linalg_svd, T("b n m")),
    case("_linalg_svd", torch._linalg_svd, T("b n m"), True, False),
    case("_linalg_svd", torch._linalg_svd, T("n")),
    case("svd", torch.svd, T("b n m")),
    case("svd", torch.svd, T("b n m"), False),
    case("svd", torch.svd, T("b n m"), compute_uv=False),
    case("svd", torch.svd, T("n")),
    case("_linalg_eigh", torch._linalg_eigh, T("b n m")),
    case("_linalg_eigh", torch._linalg_eigh, T("b n n"), "L", False),
    case("linalg_lu", L.lu, T("b n m")),
    case("linalg_lu", L.lu, T("b n m"), pivot=False),
    case("linalg_lu", L.lu, T("n")),
    Case("lu_unpack", unpacked, (T("b n n"), T("b n", i32))),
    Case("lu_unpack", unpacked, (T("b 2*n n"), T("b n", i32), True, False)),
    Case("lu_unpack", unpacked, (T("b n n"), T("b n", i64))),
    Case("lu_unpack", unpacked, (T("n"), T("n", i32))),
    case("linalg_householder_product", L.householder_product, T("b n m"), T("b k")),
    case("linalg_householder_product", L.householder_product, T("b n m"), T("c k")),
    case("linalg_householder_product", L.householder_product, T("n m"), T("c k")),
    case("orgqr", torch.orgqr, T("n m"), T("k")),
    case("linalg_pinv", L.pinv, T("b n m")),
    case("linalg_pinv", L.pinv, T("b n m"), hermitian=True),
    case("linalg_pinv", L.pinv, T("n"), 0.5),
    case("pinverse", torch.pinverse, T("n m")),
    case("pinverse", torch.pinverse, T("n")),
    case("linalg_matrix_rank", L.matrix_rank, T("b n m")),
    case("linalg_matrix_rank", L.matrix_rank, T("b n m"), hermitian=True),
    case("linalg_matrix_rank", L.matrix_rank, T("n")),
    case("linalg_cond", L.cond, T("b n m")),
    case("linalg_cond", L.cond, T("b n m"), -2),
    *(case("linalg_cond", L.cond, T("b n m"), p) for p in ("fro", "nuc", "foo")),
    case("linalg_cond", L.cond, T("b n m"), 1),
    *(case("matrix_power", L.matrix_power, T("b n m"), n) for n in (-2, -1, 0, 1, 3)),
    case("matrix_power", L.matrix_power, T("n n", i64), 2),
    case("matrix_power", L.matrix_power, T("n n", i64), -2),
    case("matrix_power", torch.matrix_power, T("n"), 2),
    case("linalg_solve", L.solve, T("n n"), T("m")),
    case("linalg_solve", L.solve, T("n n"), T("m k")),
    case("linalg_solve", L.solve, T("b n n"), T("m k")),
    case("linalg_solve", L.solve, T("b n n"), T("m")),
    case("linalg_solve", L.solve, T("b n n"), T("c m k")),
    case("linalg_solve", L.solve, T("a b n m"), T("c n k")),
    case("linalg_solve", L.solve, T("n n"), T("m k"), left=False),
    case("linalg_solve", L.solve, T("b n n"), T("m k"), left=False),
    case("linalg_solve", L.solve, T("n n"), T("m"), left=False),
    case("linalg_solve", L.solve, T("n n"), T("")),
    case("linalg_solve", L.solve, T("n n"), T("n", f64)),
    case("linalg_solve_ex", L.solve_ex, T("b n n"), T("b m k")),
    case("_linalg_solve_ex", torch._linalg_solve_ex, T("b n n"), T("b m k")),
    case("_linalg_solve_ex", torch._linalg_solve_ex, T("n n"), T("m")),
    case("linalg_solve_triangular", L.solve_triangular, T("b n m"), T("c m k"), upper=True),
    case("linalg_solve_triangular", L.solve_triangular, T("n n"), T("k m"), upper=True, left=False),
    case("linalg_solve_triangular", L.solve_triangular, T("n n"), T("m"), upper=True),
    case("triangular_solve", torch.triangular_solve, T("c m k"), T("b n n")),
    case("triangular_solve", torch.triangular_solve, T("m"), T("b n n")),
    case("cholesky_solve", torch.cholesky_solve, T("c m k"), T("b n n")),
    case("cholesky_solve", torch.cholesky_solve, T("m k"), T("n l")),
    Case("linalg_lu_solve", of_lu(L.lu_solve), (T("b n n"), T("b n", i32), T("b m k"))),
    Case("linalg_lu_solve", of_lu(L.lu_solve), (T("n n"), T("m", i32), T("n k"))),
    Case("lu_solve", lambda b, lu, p: torch.lu_solve(b, lu, p.clamp(1)), (T("m k"), T("n n"), T("n", i32))),
    case("linalg_lstsq", L.lstsq, T("b n m"), T("b l k")),
    case("linalg_lstsq", L.lstsq, T("n m"), T("l k"), driver="gelsy"),
    case("linalg_lstsq", L.lstsq, T("n m"), T("a b c")),
    case("linalg_cross", L.cross, T("a b"), T("c d")),
    case("linalg_cross", L.cross, T("a 3"), T("c 3")),
    case("linalg_cross", L.cross, T("3 b"), T("3 d"), dim=0),
    case("linalg_cross", L.cross, T("3 b"), T("3"), dim=0),
    case("linalg_cross", L.cross, T("a 3"), T("a 3", i64)),
    case("linalg_cross", L.cross, T("a b"), T("a b"), dim=2),
    case("cross", torch.cross, T("a b c"), T("d e f")),
    case("cross", torch.cross, T("a 3 3"), T("a 3 3")),
    case("cross", torch.cross, T("a 3 c"), T("a 3 c"), dim=1),
    case("linalg_vecdot", L.vecdot, T("a n"), T("b m")),
    case("linalg_vecdot", L.vecdot, T("a n m"), T("n b"), dim=0),
    case("linalg_vecdot", L.vecdot, T("n"), T("n", i64)),
    case("linalg_vecdot", L.vecdot, T("n", i64), T("n", i64)),
    case("linalg_vander", L.vander, T("a n")),
    case("linalg_vander", L.vander, T("a n", i64), N=4),
    case("linalg_vander", L.vander, T("a n"), N=1),
    case("linalg_vander", L.vander, T("")),
    case("vander", torch.vander, T("n")),
    case("vander", torch.vander, T("n"), 4),
    case("vander", torch.vander, T("n m"), 4),
    *(
        case("linalg_vector_norm", L.vector_norm, T("n m k"), order, dim)
        for order in (2, 0, 1.5, -1, inf, -inf)
        for dim in (None, 1, (0, -1), ())
    ),
    case("linalg_vector_norm", L.vector_norm, T("n m"), 2, keepdim=True),
    case("linalg_vector_norm", L.vector_norm, T("n m k", permute=(2, 0, 1)), 2, 1, True),
    case("linalg_vector_norm", L.vector_norm, T("n m"), 2, (0, 0)),
    case("linalg_vector_norm", L.vector_norm, T(""), inf, -1),
    case("linalg_vector_norm", L.vector_norm, T("n", i64)),
    case("linalg_vector_norm", L.vector_norm, T("n"), dtype=f64),
    case("linalg_vector_norm", L.vector_norm, T("n", f64), dtype=torch.float32),
    case("linalg_vector_norm", L.vector_norm, T("n", c64)),
    *(
        case("linalg_matrix_norm", L.matrix_norm, T("a n m"), order, dim)
        for order in ("fro", "nuc", inf, -inf, 1, -1, 2, -2)
        for dim in ((-2, -1), (2, 0))
    ),
    case("linalg_matrix_norm", L.matrix_norm, T("a n m"), "nuc", (0, 2), True),
    case("linalg_matrix_norm", L.matrix_norm, T("n m"), 3),
    case("linalg_matrix_norm", L.matrix_norm, T("n m"), "fro", (0, 0)),
    case("linalg_matrix_norm", L.matrix_norm, T("n"), "fro"),
    case("linalg_norm", L.norm, T("a n m")),
    case("linalg_norm", L.norm, T("a n m"), dim=(0, 1)),
    case("linalg_norm", L.norm, T("a n m"), -inf, (0, 1)),
    case("linalg_norm", L.norm, T("a n m"), 2),
    case("linalg_norm", L.norm, T("n m"), -1),
    case("linalg_norm", L.norm, T("n"), -1),
    case("linalg_norm", L.norm, T("n m"), "fro", 1),
    case("linalg_norm", L.norm, T("a n m"), 2, (0, 1, 2)),
    case("norm", torch.norm, T("a n m")),
    case("norm", torch.norm, T("a n m"), 1, 2, True),
    case("norm", torch.norm, T("a n m"), "nuc", (0, 1)),
    case("norm", torch.norm, T("n m"), "nuc"),
    case("norm", torch.norm, T("a n m"), "nuc"),
    case("norm", torch.norm, T("a n m"), inf, (0, 1)),
    case("norm", torch.norm, T("a n m"), dim=(0, 1, 2)),
    case("norm", torch.Tensor.norm, T("a n m"), 2, -1),
    case("norm", torch.norm, T("n", i64)),
    case("frobenius_norm", torch.ops.aten.frobenius_norm, T("a b"), [1]),
    case("frobenius_norm", torch.ops.aten.frobenius_norm, T("a b"), [2]),
    case("nuclear_norm", torch.ops.aten.nuclear_norm, T("a b c"), [0, 2]),
    case("nuclear_norm", torch.ops.aten.nuclear_norm, T("a b c"), [0]),
    case("ormqr", torch.ormqr, T("n m"), T("k"), T("l j")),
    case("ormqr", torch.ormqr, T("n m"), T("k"), T("j n"), False),
    case("ormqr", torch.ormqr, T("a n n"), T("b n"), T("c n j")),
    case("ormqr", torch.ormqr, T("n n"), T("n"), T("n j", f64)),
    case("ormqr", torch.ormqr, T("n"), T("n"), T("n j")),
    *(
        case("linalg_ldl_solve", of_ldl, T("n m"), T("k", i32), T("l j")),
        case("linalg_ldl_solve", of_ldl, T("a n n"), T("b n", i32), T("a n j")),
        case("linalg_ldl_solve", of_ldl, T("n n"), T("n", i32), T("a n j")),
        case("linalg_ldl_solve", of_ldl, T("n n"), T("n", f64), T("n j")),
        case("linalg_ldl_solve", of_ldl, T("n n"), T("n", i32), T("n j", f64)),
        case("linalg_ldl_solve", of_ldl, T("n n"), T("n", i32), T("n")),
    ),
    case("linalg_tensorinv", L.tensorinv, T("a b c")),
    case("linalg_tensorinv", L.tensorinv, T("a b a*b"), ind=2),
    case("linalg_tensorinv", L.tensorinv, T("a b a b")),
    case("linalg_tensorinv", L.tensorinv, T("a b"), ind=1),
    case("linalg_tensorinv", L.tensorinv, T("a b"), ind=0),
    case("linalg_tensorinv", L.tensorinv, T("a b"), ind=3),
    case("linalg_tensorsolve", L.tensorsolve, T("a b c"), T("d e")),
    case("linalg_tensorsolve", L.tensorsolve, T("a b a*b"), T("a b")),
    case("linalg_tensorsolve", L.tensorsolve, T("a a*b b"), T("a b"), dims=(1,)),
    case("linalg_tensorsolve", L.tensorsolve, T("a a"), T("b"), dims=(2,)),
    case("linalg_tensorsolve", L.tensorsolve, T("a a"), T("a", f64)),
    case("linalg_tensorsolve", L.tensorsolve, T("a"), T("a b")),
    case("_linalg_check_errors", aten._linalg_check_errors, T("n", i32), "inv", is_matrix=False),
    case("_linalg_check_errors", aten._linalg_check_errors, T("n"), "inv", is_matrix=False),
]


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", FACTOR_CASES + CASES, ids=lambda case: f"{case.op}{case.args}")
def test_matrices(case: Case) -> None:
    judge(case)


@pytest.mark.filterwarnings("ignore")
def test_every_rule_is_seen_to_accept_and_to_refuse() -> None:
    removed = dict.fromkeys(("cholesky", "qr"), "never accepted") if INSTALLED >= (2, 14) else {}
    assert judge.one_sided(FACTOR_CASES + CASES) == removed | dict.fromkeys(NEWER & RULES.keys(), "untested")


def test_a_wrong_rule_is_caught() -> None:
    def of_any_matrix(c: Any, input: Any) -> Tensor:
        return Tensor(input.shape[:-2], input.dtype)

    with pytest.raises(AssertionError, match="rule accepts"):
        check_case(case("det", L.det, T("b n m")), Rules({"det": of_any_matrix}))
