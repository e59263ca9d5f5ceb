"""Requirements of operators on the elements of their operands.

Indices must be in range, certain numbers not negative, a probability must be one, integers must not be
divided by zero, roundings must be exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from math import inf, isfinite, trunc
from typing import Any, Final, TypeAlias

from ...ir.language import (
    Affine,
    Context,
    NumericalError,
    Piece,
    Proportion,
    Quotient,
    Span,
    Tensor,
    product,
)
from ...terms.dims import Dim, Term, modulo, substitute
from ...terms.formula import Formula, all_of, any_of, eq, ge, le, lt, ne, negate
from ..elements.cycles import is_run
from ..elements.dtypes import INTEGRAL, WHOLE, wide, width
from ..elements.functions import Corners, corners, settled
from ..elements.values import extremes_of, is_data, of, pieces_of
from ..laws.calls import NamedCall, of_number
from ..laws.makers import drawn_between
from ..laws.masks import number_of_true, one_dim, one_value
from ..outcomes.ranges import below
from .indices import (
    INDICES,
    approximate,
    errors,
    is_settled,
    require_data,
    require_followed,
    require_in_range,
    require_some,
)
from .widths import fits

Named = Mapping[str, Any]
NUMBER: Final = Tensor((), None)
"""The type that represents the shape of any number."""

RANGES: Final[Mapping[str, tuple[tuple[str, int | None, int | None], ...]]] = {
    "bincount": (("input", 0, None),),
    "one_hot": (("input", 0, None),),
    "repeat_interleave": (("repeats", 0, None),),
    "split_with_sizes": (("split_sizes", 0, None),),
    "shaped_by": (("sizes", 0, None),),
    "multinomial": (("input", 0, None),),
    "poisson": (("input", 0, None),),
    "bernoulli": (("p", 0, 1), ("input", 0, 1)),
    "bernoulli_": (("p", 0, 1),),
    **dict.fromkeys("normal normal_".split(), (("std", 0, None),)),
    "binary_cross_entropy": (("input", 0, 1), ("target", 0, 1)),
    **dict.fromkeys("quantile nanquantile".split(), (("q", 0, 1),)),
}
"""For each operator its operands, with the least and the greatest allowed value of the elements of each.

Where one is given that is no tensor, the operands after it are not checked: the limits of numbers are stated
with the rules.
"""
POINTS: Final = frozenset({f"fake_quantize_per_channel_affine{kind}" for kind in ("", "_cachemask")})
"""Operators whose zero points lie from quant_min to quant_max."""
PUT: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys("full full_like new_full fill_diagonal_".split(), ("fill_value",)),
    **dict.fromkeys(
        "fill fill_ masked_fill index_fill pad constant_pad_nd setitem".split(), ("value",)
    ),
    "scatter": ("src", "value"),
    **dict.fromkeys("tensor new_tensor as_tensor asarray".split(), ("data",)),
    "scalar_tensor": ("s",),
    **dict.fromkeys("clamp clamp_ clamp_min clamp_max".split(), ("min", "max")),
    "threshold": ("threshold", "value"),
    "hardtanh": ("min_val", "max_val"),
    "where": ("input", "other"),
    "pow": ("exponent",),
    **dict.fromkeys("add sub rsub".split(), ("alpha",)),
    **dict.fromkeys("linspace logspace".split(), ("start", "end")),
}
"""For each operator the numbers that it converts to the dtype of its result, which has to hold them. Below
zero, the negatives of numbers that an unsigned dtype holds are allowed.
"""
PUT_UNCHECKED: Final = frozenset(
    "tensor new_tensor as_tensor asarray scalar_tensor setitem where fill_diagonal_".split()
)
"""Those of them that make infinity of numbers that a short float does not hold."""
LIMITS: Final = frozenset("min max min_val max_val".split())
"""Those of the numbers that elements are clamped to."""
SINGLE_UNCHECKED: Final = frozenset("tensor new_tensor as_tensor asarray pow".split())
"""Those of them that do so for a single, too."""
FILLING: Final = frozenset("full full_like new_full fill fill_".split())
"""Those of them that do so for a short float where there is one element."""
FLOATING: Final[Mapping[str, tuple[float, frozenset[str]]]] = {
    "float16": (65504.0, PUT_UNCHECKED),
    "bfloat16": (float.fromhex("0x1.fep127"), PUT_UNCHECKED),
    "float32": (float.fromhex("0x1.fffffep127"), SINGLE_UNCHECKED),
    "float64": (inf, SINGLE_UNCHECKED),
}
"""The greatest number of a floating dtype, and the operators that do not ask for it."""
BAGS: Final = frozenset("embedding_bag _embedding_bag".split())
CHECKED: Final[Mapping[str, tuple[str, ...]]] = {
    "multinomial": ("input",),
    "searchsorted": ("sorter",),
    **dict.fromkeys(BAGS, ("offsets",)),
    "segment_reduce": ("lengths", "offsets"),
    **dict.fromkeys("histc histogram histogramdd histogram_counts histogramdd_counts".split(), ("input",)),
    "_pack_padded_sequence": ("lengths",),
    **dict.fromkeys(
        "inverse linalg_inv cholesky linalg_cholesky cholesky_inverse linalg_lu_factor linalg_ldl_factor "
        "linalg_matrix_power matrix_power linalg_tensorinv linalg_tensorsolve linalg_solve linalg_eigh "
        "linalg_eig linalg_eigvals linalg_eigvalsh linalg_svd linalg_svdvals linalg_lstsq lu svd "
        "linalg_matrix_sqrth linalg_polar".split(),
        ("input", "A"),
    ),
    "_linalg_check_errors": ("info",),
}
"""For each operator the operands that it may refuse for reasons that are not tracked."""
DECOMPOSITIONS: Final = frozenset(
    "cholesky linalg_cholesky cholesky_inverse inverse linalg_inv linalg_solve linalg_tensorsolve "
    "linalg_lu_factor linalg_eigh linalg_svd".split()
)
"""Operators that take an identity matrix."""
LENGTHS: Final = ("input_lengths", "target_lengths")
INVERTING: Final = frozenset(
    """
    inverse linalg_inv linalg_tensorinv linalg_tensorsolve linalg_solve linalg_lu_factor
    cholesky linalg_cholesky cholesky_inverse _linalg_check_errors
    """.split()
)
"""Operators that refuse singular matrices."""
OF_NUMBERS: Final = frozenset(
    """
    cholesky linalg_cholesky svd linalg_svd linalg_svdvals linalg_eigh linalg_eigvalsh linalg_eig
    linalg_eigvals linalg_pinv pinverse linalg_matrix_rank matrix_rank linalg_cond
    """.split()
)
"""Operators that refuse matrices with NaN."""
ASSERTING: Final = frozenset({"_assert_async", "_functional_assert_async"})
CHANCES: Final = frozenset("multinomial bernoulli bernoulli_ binary_cross_entropy poisson".split())
REFUSING: Final[Mapping[str, tuple[str, ...]]] = {
    **{op: tuple(name for name, _, _ in operands) for op, operands in RANGES.items()},
    **CHECKED,
    **dict.fromkeys("ctc_loss _ctc_loss".split(), LENGTHS),
    **dict.fromkeys((*ASSERTING, "histc", "histogram"), ("input",)),
    **dict.fromkeys("floor_divide remainder fmod".split(), ("other",)),
    "pow": ("exponent",),
    "masked_scatter": ("mask",),
    "multilabel_margin_loss": ("target",),
}
"""For each operator the operands that it refuses for some data."""
FAILING: Final[Mapping[str, tuple[str, ...]]] = {
    **REFUSING,
    **dict.fromkeys(
        "linalg_matrix_rank linalg_pinv pinverse linalg_cond linalg_matrix_norm linalg_norm norm "
        "nuclear_norm".split(),
        ("input", "A"),
    ),
    "linalg_lstsq": (*CHECKED["linalg_lstsq"], "B"),
    **dict.fromkeys("max_unpool1d max_unpool2d max_unpool3d".split(), ("indices",)),
    **dict.fromkeys("linalg_lu_solve lu_solve lu_unpack".split(), ("pivots", "LU_pivots")),
    "div": ("other",),
    "repeat_interleave": ("repeats", "input"),
    "pow": (),
}
"""For each operator, the operands with which it refuses some data: besides those above, such as contain NaN
or were computed by another operator. `pow` accepts any exponents in a tensor.
"""
NUMERICAL: Final = frozenset(
    "inverse linalg_inv cholesky linalg_cholesky cholesky_inverse linalg_eigh linalg_eigvalsh linalg_svd svd "
    "linalg_svdvals linalg_matrix_power matrix_power linalg_tensorinv linalg_tensorsolve linalg_solve "
    "linalg_pinv pinverse linalg_matrix_rank linalg_cond linalg_matrix_norm linalg_norm norm "
    "nuclear_norm".split()
)
"""Operators that refuse a matrix by an error of their own."""
NORMS: Final = frozenset("linalg_matrix_norm linalg_norm norm".split())
"""Norms of matrices. Some of them are made of singular values."""
DIVISIONS: Final = frozenset("div floor_divide remainder fmod".split())
ASKING: Final = frozenset("pow randperm randint randint_like random".split()).union(
    INDICES, REFUSING, POINTS, PUT, DIVISIONS, OF_NUMBERS
)
"""Operators whose operands are checked."""


def require_elements(c: Context, op: str, named: Named, result: Any, unchecked: Formula) -> None:
    """Requires that elements that sizes decide are valid for the operator.

    Indices are not checked at the sizes in `unchecked`.
    """
    op = _checking(op, named)
    if op not in ASKING:
        return
    if op in INDICES:
        require_in_range(c, op, named, unchecked)
    if op in DIVISIONS:
        _require_divisor(c, op, named, result)
    _require_operands(c, op, named, result)


def _require_true(c: Context, asserted: Any) -> None:
    """Marks an assertion as approximate of which it is not known that some data meet it."""
    if isinstance(asserted, Tensor) and is_data(asserted) and not c.may_be_true(asserted):
        c.approximate("what the program asserts may be true for no data", "accept")


def _require_operands(c: Context, op: str, named: Named, result: Any) -> None:
    nothing = _repeats_nothing(named) if op == "repeat_interleave" else False
    for name, low, high in RANGES.get(op, ()):
        operand = named.get(name)
        if isinstance(operand, Tensor):
            _require_between(c, op, operand, low, high, nothing)
            require_some(c, op, operand, low, high)
            none = c.none_between(operand, low, high, op == "multinomial")
            reason = f"{op} may be given elements that are valid for no data"
            c.approximate(reason, "accept", all_of((none, _has_elements(c, operand))))
        elif operand is not None:
            break
    if op == "multilabel_margin_loss":  # -1 ends a row of classes
        most = (named["input"].shape or (1,))[-1] - 1
        _require_between(c, op, named["target"], -1, most)
        require_some(c, op, named["target"], -1, most)
    if op in ASSERTING:
        require_some(c, op, named.get("input"), 1, None)
        _require_true(c, named.get("input"))
    if op == "repeat_interleave" and named.get("repeats") is None:
        _require_between(c, op, named.get("input"), 0, None)
    if op in POINTS:
        points, least, most = (named[name] for name in ("zero_point", "quant_min", "quant_max"))
        if isinstance(least, int) and isinstance(most, int):
            _require_between(c, op, points, least, most)
            require_some(c, op, points, least, most)
        else:
            c.approximate("zero points are not compared with numbers that sizes make", "accept")
    whole = isinstance(result, Tensor) and result.dtype in WHOLE
    if op == "pow" and whole and isinstance(exponent := named.get("exponent"), int | Term):
        c.require(ge(exponent, 0), "integers to a negative power")
    if op in PUT:
        _require_put(c, op, named, named["input"] if op == "setitem" else result)
    if isinstance(result, Tensor) and (limits := width(result.dtype or "")) is not None:
        least, most = limits
        if op == "randperm":
            c.require(le(result.shape[0], most + 1), f"numbers below {result.shape[0]} as {result.dtype}")
        if op in ("randint", "randint_like"):
            span = drawn_between(NamedCall(op, named, result, c.at_least))
            for end in (span.low, span.high) if isinstance(span, Span) else ():
                _require_held(c, all_of((ge(end, least), le(end, most))), end, result.dtype)
        if op == "random":
            ends = [n for n in (named.get("low"), named.get("high")) if isinstance(n, int | Term)]
            for end in (*ends[:-1], *(high - 1 for high in ends[-1:])):
                _require_held(c, all_of((ge(end, least), le(end, most))), end, result.dtype)
    if op == "repeat_interleave" and named.get("output_size") is not None:
        _doubt(c, op, named.get("repeats"))
    if op == "shaped_by":
        _require_strides(c, named["sizes"])
    if op == "masked_scatter":
        _require_enough(c, named["mask"], named["source"], result)
    if op in ("ctc_loss", "_ctc_loss"):
        _require_lengths(c, op, named)
    for name in () if op.startswith("hist") and _has_range(named) else CHECKED.get(op, ()):
        _doubt(c, op, named.get(name))
        inverts = op in INVERTING or ("matrix_power" in op and lt(named["n"], 0))
        if inverts and isinstance(matrix := named.get(name), Tensor) and matrix.elements is None:
            reason = f"{op} may be given a matrix that is singular whatever the data"
            c.approximate(reason, "accept", all_of((inverts, c.no_inverse(op, matrix))))
    of_numbers = op in OF_NUMBERS or (op.startswith("hist") and not _has_range(named))
    if of_numbers and isinstance(matrix := next(iter(named.values()), None), Tensor):
        doubted = all_of((_has_elements(c, matrix), c.may_be_nan(matrix)))
        c.approximate(f"{op} may be given NaN, whatever the data", "accept", doubted)
    for name in REFUSING.get(op, ()):
        operand = named.get(name)
        if op not in DIVISIONS or getattr(operand, "dtype", None) in WHOLE:
            is_valid = partial(_is_valid, op, name)
            require_data(c, op, operand, is_valid, unchecked=nothing, numbers=_are_valid(c, op, operand))


def _checking(op: str, named: Named) -> str:
    """Returns the operator that refuses the same data: `linalg_inv` for a checking `linalg_inv_ex`."""
    return op.removesuffix("_ex").lstrip("_") if op.endswith("_ex") and named.get("check_errors") else op


Refusals: TypeAlias = list[tuple[Formula, type[Exception]]]


def refused_by_data(c: Context, op: str, named: Named, unchecked: Formula) -> Refusals:
    """Returns the sizes at which the operator refuses some data, each with the type of its error.

    Operands whose elements the sizes decide, or bound, have requirements instead.
    """
    found: Refusals = []
    op = _checking(op, named)
    for index, size, _ in INDICES[op](named) if op in INDICES else ():
        if index.elements is None:
            there = all_of((negate(unchecked), _has_elements(c, index)))
            found += [(all_of((there, where)), error) for where, error in errors(c, op, named, size)]
    for name in FAILING.get(op, ()):
        operand = named.get(name)
        if isinstance(operand, Tensor) and operand.elements is None and not _takes_all(c, op, name, named):
            found += [(_has_elements(c, operand), error) for _, error in errors_of(c, op, named)[:1]]
    return [(where, error) for where, error in found if where is not False]


def errors_of(c: Context, op: str, named: Named) -> Refusals:
    """Returns the types of the error by which an operator refuses elements of its operands, each with the
    sizes at which it is that one.
    """
    indices = INDICES[op](named) if op in INDICES else ()
    found = [case for _, size, _ in indices for case in errors(c, op, named, size)]
    return found or [(True, NumericalError if op in NUMERICAL else RuntimeError)]


def _has_elements(c: Context, tensor: Tensor) -> Formula:
    return all_of(ge(n, 1) for n in tensor.shape if not c.at_least(n, 1))


def _takes_all(c: Context, op: str, name: str, named: Named) -> bool:
    """Returns whether the operator accepts any data in this operand, which is a tensor."""
    operand = named[name]
    for ranged, low, high in RANGES.get(op, ()):
        if ranged == name:
            least, most = c.range_of(operand)
            fits = (negate(below(least, low)), negate(below(high, most)))
            bounded = (low is None or least is not None) and (high is None or most is not None)
            return operand.dtype in WHOLE and bounded and c.certain(all_of(fits))  # floats may be NaN
        if isinstance(named.get(ranged), int | float | Term):
            return True
    if op in DIVISIONS:
        is_true = op == "div" and named.get("rounding_mode") is None
        types = (operand.dtype, getattr(named["input"], "dtype", None))
        return is_true or not {*types} <= {None, *WHOLE}
    if (op, name) == ("repeat_interleave", "input"):
        return named.get("repeats") is not None
    if op in NORMS:
        return named.get("ord", named.get("p")) not in ("nuc", 2, -2)
    if "matrix_power" in op:
        return lt(named["n"], 0) is False
    if op == "masked_scatter" and operand.shape == named["input"].shape:
        return c.certain(ge(named["source"].numel, operand.numel))
    return op in DECOMPOSITIONS and c.is_identity(operand)


def _repeats_nothing(named: Named) -> Formula:
    """Returns the sizes at which the single number that a tensor of repeats may have is not looked at."""
    input, dim = named["input"], named.get("dim")
    if not isinstance(input, Tensor) or not isinstance(named.get("repeats"), Tensor):
        return False
    return eq(input.numel if dim is None else input.shape[dim], 0)


def _is_valid(op: str, name: str, number: float) -> bool | None:
    """Returns whether the operator takes an operand whose elements are all this number; None where that is
    not known.
    """
    if op in ASSERTING:
        return bool(number)
    if not isfinite(number):
        return None
    if op in DIVISIONS or op == "multinomial":
        return number > 0 or (number != 0 and op in DIVISIONS)
    for ranged, low, high in RANGES.get(op, ()):
        if ranged == name:
            return (low is None or number >= low) and (high is None or number <= high)
    return None


def _are_valid(c: Context, op: str, operand: Any) -> bool:
    """Returns whether the operator takes any numbers that the operand may have: numbers from 0 to 1, as
    shares have, or such as are required to be valid, whatever the data choose.
    """
    if not isinstance(operand, Tensor):
        return False
    return operand.elements is not None or (op in CHANCES and c.range_of(operand) == (0, 1))


def _members(values: Any, *kinds: type) -> Iterator[Any]:
    """Yields the values of these types, those in tuples included; a bool is no integer."""
    for value in values:
        if isinstance(value, tuple):
            yield from _members(value, *kinds)
        elif isinstance(value, kinds) and not isinstance(value, bool):
            yield value


def _require_put(c: Context, op: str, named: Named, result: Any) -> None:
    """Requires that the dtype of the result holds the numbers that are converted to it. Sizes are assumed to
    be no greater than what 32 bits hold.
    """
    dtype = result.dtype if isinstance(result, Tensor) else None
    if dtype not in INTEGRAL | FLOATING.keys():
        return
    greatest, unchecked = FLOATING.get(dtype, (inf, frozenset()))
    anyway: Formula = op in unchecked
    if op in FILLING and dtype in ("float16", "bfloat16"):
        anyway = eq(result.numel, 1)
    if op == "setitem" and dtype in ("float16", "bfloat16") and c.since(2, 15):
        anyway = False
    if op == "scatter":
        anyway = eq(named["index"].numel, 0)
    if op in ("linspace", "logspace"):  # less than two steps are made without
        anyway = le(result.numel, 1)
    least, most = (-greatest, greatest) if dtype in FLOATING else width(dtype) or wide(dtype) or (0, inf)
    truncates, rounds = dtype in INTEGRAL and (op == "hardtanh" or c.since(2, 14)), not c.since(2, 14)
    for name in PUT[op]:
        # It takes a float, and no float is wrapped.
        low, high = least if op == "pad" else least or -most, most
        if name in LIMITS and dtype in INTEGRAL and c.since(2, 15):  # limits beyond it are none
            low, high = (-inf, most) if name.startswith("min") else (least, inf)
        for number in _members((named.get(name),), int, Term):
            if isinstance(number, int):
                held: Formula = low <= number <= high
            elif dtype == "float16" or width(dtype) or (dtype in INTEGRAL and not fits(number, 62)):
                ends = [(low, ge), (high, le)]
                held = all_of(compare(number, int(end)) for end, compare in ends if isfinite(end))
            else:
                held = True
            _require_held(c, any_of((held, anyway)), number, dtype)
        for fraction in _members((named.get(name),), Quotient, Proportion) if width(dtype) else ():
            if isinstance(fraction, Quotient) and c.at_least(fraction.under, 1):
                held = _holds(low, high, fraction, truncates)
                _require_held(c, any_of((held, anyway)), f"{fraction.over}/{fraction.under}", dtype)
            else:
                reason = f"whether {dtype} holds a float that sizes decide is not followed"
                c.approximate(reason, "accept", negate(anyway))
        low = low if name in LIMITS and c.since(2, 15) else least
        for one in _members((named.get(name),), float, complex):
            real = trunc(one.real) if truncates and isfinite(one.real) else one.real
            lies = low <= real <= high or (real == most + 1 and dtype == "int64" and rounds)
            held = lies or (dtype in FLOATING and not isfinite(real))
            if isinstance(one, complex) and (one.imag or op == "index_fill" or op in SINGLE_UNCHECKED):
                held = op == "scatter" and anyway
            elif op not in FILLING or dtype in ("float16", "bfloat16"):
                held = any_of((held, anyway))
            _require_held(c, held, one, dtype)


def _holds(low: float, high: float, fraction: Quotient, truncates: bool) -> Formula:
    """Returns the condition that a fraction, truncated or as it is, lies from low to high, which are
    integers.
    """
    over, under = fraction.over, fraction.under
    below_high = lt(over, (int(high) + 1) * under) if truncates else le(over, int(high) * under)
    above_low = lt((int(low) - 1) * under, over) if truncates else le(int(low) * under, over)
    return all_of((below_high, above_low))


def _require_held(c: Context, held: Formula, number: Any, dtype: str | None) -> None:
    if not c.certain(held):
        c.require(held, f"{number} as {dtype}")


def _require_enough(c: Context, mask: Tensor, source: Tensor, result: Any) -> None:
    """Requires at least as many elements of the source as sizes say that there are true elements in the mask,
    which is repeated along new leading dims of the result.
    """
    same = one_value(mask)
    count = number_of_true(mask) if same is None else same * mask.numel
    new = result.rank - mask.rank if isinstance(result, Tensor) else -1
    if count is None or new < 0 or mask.shape != result.shape[new:]:
        whole = ge(source.numel, product(result.shape))
        _doubt(c, "masked_scatter", mask, whole)
        if mask.elements is None and not c.certain(whole) and not c.may_be_alike(mask):
            told = "masked_scatter is given a mask that may have true elements for all data"
            approximate(c, told, whole)
    else:
        count = count * product(result.shape[:new])
        reason = f"masked_scatter puts {source} into the places of {count} true elements"
        c.require(le(count, source.numel), reason)


def _has_range(named: Named) -> bool:
    """Returns whether the range of a histogram is given, by two numbers or by its edges, so that it is not
    that of the elements, which has to be finite.
    """
    ends, bins = [named.get(name, 0) for name in ("min", "max")], named.get("bins")
    edges = bins[0] if isinstance(bins, tuple) and bins else bins
    given = all(isinstance(end, int | float) for end in ends) and ends[0] != ends[1]
    return given or named.get("range") is not None or isinstance(edges, Tensor)


def _require_lengths(c: Context, op: str, named: Named) -> None:
    """Requires that lengths lie between 0 and the steps, or classes, that there are; those of targets that
    follow one another add up to all of them.
    """
    targets = named["targets"]
    for name, most in zip(LENGTHS, (named["log_probs"].shape[0], targets.shape[-1]), strict=True):
        lengths = named[name]
        if not isinstance(lengths, Tensor):
            continue
        _require_between(c, op, lengths, 0, most)
        if name == "target_lengths" and targets.rank == 1:
            if (same := one_dim(lengths)) is None:
                _doubt(c, op, lengths)
            else:
                reason = f"ctc_loss takes {lengths.numel} times {same} classes, not {targets}"
                c.require(eq(same * lengths.numel, most), reason)


def _require_strides(c: Context, sizes: Tensor) -> None:
    """Requires that 64 bits hold the strides of a tensor of these sizes, as they do if no size exceeds 1."""
    found = c.computed(sizes, one=True)
    fits, by_data = found[0].strides_fit(sizes.shape[0]) if len(found) == 1 else None, False
    if fits is None:
        fits, by_data = c.needed(sizes, 0, None, sizes=True) or (None, False)
    if fits is not None:
        fits = any_of((fits, eq(sizes.shape[0], 0)))  # a number has no strides
        c.require(fits, "64 bits do not hold the strides of a tensor of so many sizes", by_data=by_data)
        return
    pieces = pieces_of(of(sizes), sizes.shape)
    span = None if pieces is None else extremes_of(pieces, c.at_least)
    small = False if span is None else le(span.high, 1)
    fine = any_of((small, le(sizes.shape[0], 1)))
    approximate(c, "64 bits may not hold the strides of a tensor of so many sizes", fine)


def _doubt(c: Context, op: str, operand: Any, fine: Formula = False) -> None:
    """Marks the call as approximate, since the operator may refuse elements that sizes decide, unless they
    are plainly valid. All are valid at the sizes in `fine`.
    """
    if not isinstance(operand, Tensor) or operand.elements is None or _is_fine(op, operand):
        return
    if op in DECOMPOSITIONS and (operand.rank == 2 or "cholesky" in op) and c.is_identity(operand):
        return
    if op in DECOMPOSITIONS and op != "linalg_tensorsolve" and _is_positive_number(c, operand):
        return
    approximate(c, f"{op} is given elements that the sizes decide, some of which it refuses", fine)


def _is_fine(op: str, operand: Tensor) -> bool:
    """Returns whether elements are plainly valid: positive probabilities, and bags that begin at the first
    index.
    """
    known = operand.elements
    if op.startswith("hist"):  # whose range has to be finite
        return isinstance(known, Affine)
    if op == "multinomial":
        if isinstance(known, Affine):
            return not known.steps and isinstance(known.start, int) and known.start > 0
        return bool(getattr(known, "by_data", False))
    if op in BAGS:
        pieces = pieces_of(of(operand), operand.shape)
        return pieces is not None and len(pieces.pieces) == 1 and _begins_at_zero(pieces.pieces[0])
    return False


def _is_positive_number(c: Context, matrix: Tensor) -> bool:
    """Returns whether each matrix is a single number, which is 1 or more as floats round it, too."""
    pieces = pieces_of(of(matrix), matrix.shape)
    if matrix.shape[-2:] != (1, 1) or pieces is None or pieces.by_data or pieces.roundings:
        return False
    exact = [replace(p, doubt=False) if p.least >= 1 else p for p in pieces.pieces]
    span = extremes_of(replace(pieces, pieces=tuple(exact)), c.at_least)
    return span is not None and c.at_least(span.low, 1)


def _begins_at_zero(piece: Piece) -> bool:
    """Returns whether elements are 0 at the first index of their one axis, and in order."""
    in_order = all(index.ordered and index.axis == -1 for index in piece.indices) and not piece.fixed
    first = dict.fromkeys((index.name for index in piece.indices), 0)
    return piece.term is not None and in_order and piece.over == 1 and substitute(piece.term, first) == 0


def _require_between(
    c: Context, op: str, operand: Any, low: int | None, high: Dim | None, unchecked: Formula = False
) -> None:
    limits = f"{low} or more" if high is None else f"from {low} to {high}"
    if isinstance(operand, Tensor) and operand.elements is not None and operand.dtype in INTEGRAL:
        pieces, reason = pieces_of(of(operand), operand.shape), f"{op} takes elements of {limits}"
        none = (unchecked, eq(product(operand.shape), 0))
        settled_by_pieces = pieces is not None and is_settled(c, pieces, low, high)
        if not settled_by_pieces and require_followed(c, operand, low, high, reason, none):
            return
    for piece, ends, nowhere in _parts(c, op, operand, operand, unchecked):
        inside = all_of(
            (
                *(ge(end, low * piece.over) for end in ends[0] if low is not None),
                *(le(end, high * piece.over) for end in ends[1] if high is not None),
            )
        )
        _require(c, any_of((inside, *nowhere)), piece.attained, f"{op} takes elements of {limits}", operand)


def _require_divisor(c: Context, op: str, named: Named, result: Any) -> None:
    """Requires that no divisor of integers is 0.

    Integers without a gap avoid 0 exactly where all are positive, or all are negative.
    """
    divisor = named.get("other")
    true_division = op == "div" and named.get("rounding_mode") is None
    if true_division or not isinstance(result, Tensor) or result.dtype not in INTEGRAL:
        return
    if isinstance(divisor, int | Term) and (limits := width(result.dtype)) is not None:
        wrapped = modulo(divisor, limits[1] - limits[0] + 1)
        c.require(ne(wrapped, 0), f"{op} by zero, which {divisor} is as {result.dtype}")
        return
    if isinstance(divisor, Tensor) and divisor.elements is None:
        none = all_of((c.none_between(divisor, None, None, True), _has_elements(c, divisor)))
        c.approximate(f"{op} of integers by zero, perhaps for all data", "accept", none)
    for piece, ends, nowhere in _parts(c, op, divisor, result):
        one_sign = any_of(
            (all_of(ge(end, 1) for end in ends[0]), all_of(le(end, -1) for end in ends[1]))
        )
        exact = piece.attained if not piece.indices else is_run(piece)
        needed = one_sign if piece.indices else all_of(ne(end, 0) for end in ends[0])
        _require(c, any_of((needed, *nowhere)), exact, f"{op} of integers by zero", divisor)


def _parts(
    c: Context, op: str, operand: Any, shaped: Any, unchecked: Formula = False
) -> list[tuple[Piece, Corners, tuple[Formula, ...]]]:
    """Returns the known pieces of an operand, with their extremes and the conditions under which a piece has
    no elements.

    For unknown pieces the call is marked as approximate. Floats that were rounded are large, and have kept
    their sign.
    """
    if isinstance(operand, Tensor):
        if operand.elements is None:
            return []
        pieces = pieces_of(of(operand), operand.shape)
    elif isinstance(operand, int | float | Term | Quotient | Proportion):
        pieces = of_number(operand)
    else:
        return []
    if not isinstance(shaped, Tensor):
        shaped = NUMBER
    empty = () if all(c.at_least(n, 1) for n in shaped.shape) else (eq(product(shaped.shape), 0),)
    empty = (*empty, unchecked)
    reason = f"{op} is given elements that the sizes decide, in a way that is not followed"
    if pieces is None or pieces.slack:
        c.approximate(reason, "accept", negate(any_of(empty)))
        return []
    found = []
    known = pieces if all(p.doubt is False or p.least > 1 for p in pieces.pieces) else settled(pieces)
    for piece in known.pieces:
        nowhere = (*empty, negate(piece.given))
        ends = None if piece.term is None else corners(piece.term, piece.indices, c.at_least)
        if ends is not None:
            found.append((piece, ends, nowhere))
        else:
            approximate(c, reason, any_of(nowhere))
    return found


def _require(c: Context, needed: Formula, exact: bool, reason: str, operand: Any) -> None:
    if exact and not c.certain(needed):
        known = of(operand) if isinstance(operand, Tensor) else None
        c.require(needed, reason, by_data=bool(getattr(known, "by_data", False)))
    elif not exact:
        approximate(c, f"{reason}: some elements may be such", needed)
