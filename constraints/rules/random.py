"""Random numbers: tensors filled with samples of a distribution, and dropout."""

from __future__ import annotations

from functools import partial
from typing import Final

from ..engine.ruleset import Rule, RuleFunction
from ..ir.language import Context, Tensor, Value
from ..terms.dims import Term
from ..terms.formula import Formula, all_of, any_of, eq, lt
from .common import ABSENT, broadcast, category, dtype_error
from .creation import sizes
from .elementwise import apply_law, clone, pointwise, same_dtype
from .layout import empty
from .numbers import InRange, branch, equals


def has_kernel(c: Context, law: str, input: Tensor, operation: str) -> None:
    """Refuses dtypes without a kernel, unless the tensor has no elements: then torch asks for no kernel."""
    if input.dtype is not None and law[category(input.dtype)] == "x":
        told = f"{operation} does not take {input.dtype}"
        c.require(empty(c, input.shape), told, dtype_error(c, operation, input.dtype))


def samplers(law: str, names: str, parameters: str = "", always: bool = False) -> dict[str, Rule]:
    """One row of a table: samplers that fill a tensor, their law of dtypes and the numbers that they take.

    The result is a new tensor; the in-place forms, such as `uniform_`, have the same rules. With `always` the
    dtype of a tensor without elements is checked, too.
    """

    def rule(name: str, c: Context, **given: Value) -> Tensor:
        """[*a] -> [*a]"""
        input = given["input"]
        assert isinstance(input, Tensor)
        (apply_law(c, law, input.dtype, name) if always else has_kernel(c, law, input, name))
        return clone(c, input)

    positional = ("input", *parameters.split())
    return {
        name: Rule(partial(rule, name), positional, "", frozenset(positional), frozenset(("input",)))
        for name in names.split()
    }


def random(c: Context, input: Tensor, low: Value = ABSENT, high: Value = ABSENT) -> Tensor:
    """[*a] -> [*a], integers with low <= x < high; of a single bound, that is the high one"""
    if low is ABSENT and high is ABSENT:
        has_kernel(c, "===x", input, "random")
        return clone(c, input)
    apply_law(c, "===x", input.dtype, "random between bounds")
    if high is ABSENT:
        low, high = 0, low
    if low is ABSENT:
        low = 0
    if isinstance(low, int | Term) and isinstance(high, int | Term):
        c.require(lt(low, high), f"there are no integers from {low} to {high}")
    return clone(c, input)


def bernoulli_(c: Context, input: Tensor, p: Value = 0.5) -> Tensor:
    """[*a], p: [*b] or a number -> [*a], where b broadcasts to a."""
    has_kernel(c, "===x", input, "bernoulli_")
    if isinstance(p, Tensor):
        has_kernel(c, "xx=x", p, "bernoulli_")
        fits: Formula = p.rank <= input.rank and all_of(
            any_of((eq(want, have), eq(want, 1)))
            for have, want in zip(reversed(input.shape), reversed(p.shape), strict=False)
        )
        c.require(
            any_of((fits, *(eq(n, 0) for n in input.shape))), f"probabilities {p} do not fit into {input}"
        )
    return input


def bernoulli(c: Context, input: Tensor, p: Value = None) -> Tensor:
    """[*a] -> [*a], contiguous, the probabilities being the input, or p for each"""
    has_kernel(c, "xx=x" if p is None else "===x", input, "bernoulli")
    return Tensor(input.shape, bernoulli_(c, input, p).dtype)


def poisson(c: Context, input: Tensor, generator: Value = None) -> Tensor:
    """[*a] -> [*a], contiguous"""
    return Tensor(input.shape, apply_law(c, "xx=x", input.dtype, "poisson"))


def binomial(c: Context, count: Tensor, prob: Tensor, generator: Value = None) -> Tensor:
    """[*a], [*b] -> [*broadcast(a, b)]"""
    same_dtype(c, "binomial", count, prob)
    return pointwise(c, "xx=x", count, prob, operation="binomial")


def normal_(c: Context, input: Tensor, mean: Value = 0.0, std: Value = 1.0) -> Tensor:
    """[*a] -> [*a], the tensor itself; `normal` in place, which has other parameters"""
    has_kernel(c, "xx==", input, "normal_")
    return input


def standard_gamma(c: Context, input: Tensor, generator: Value = None) -> Tensor:
    """[*a] -> [*a], contiguous; samples of gamma distributions, or of Dirichlet ones along the last axis"""
    return Tensor(input.shape, apply_law(c, "xx=x", input.dtype, "a gamma distribution"))


def normal(
    c: Context, mean: Value = 0.0, std: Value = 1.0, size: Value = None, dtype: str | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """mean: [*a], std: [*b] -> [*broadcast(a, b)]; of two numbers, [*size]. In place of a deviation that is
    one number, torch takes one for each element of the `out=`.
    """
    if isinstance(size, tuple):
        return Tensor(sizes(c, size), dtype or c.floats)
    tensors = [t for t in (mean, std) if isinstance(t, Tensor)]
    shapes = [t.shape for t in tensors]
    if out is not None and not isinstance(std, Tensor):
        shapes.append(out.shape)
    shape = broadcast(c, *shapes)
    if isinstance(std, Tensor) and category(std.dtype or "") == 3:
        c.refuse("deviations must not be complex numbers")
    return Tensor(shape, tensors[0].dtype)


# Dropout: nothing but the ranks that the channel-wise forms take is checked.


def dropout(
    c: Context, input: Tensor, p: Value = 0.5, training: Value = True, inplace: Value = False
) -> Tensor:
    """[*a] -> [*a]; the tensor itself where nothing is dropped, and zero times it where all is."""
    InRange("p", 0, 1)(c, {"p": p})
    if training is False or _is(c, p, 0):
        return input
    if _is(c, p, 1):
        return pointwise(c, "====", input, operation="dropout")
    has_kernel(c, "xx==" if c.since(2, 15) else "xx=x", input, "dropout")
    return pointwise(c, "====", input, clone(c, input))  # the mask lies as a copy does


def _is(c: Context, p: Value, number: int) -> bool:
    """Returns whether a dropout probability is a number; where the data decide it, it may not be."""
    return branch(c, equals(p, number), False, "the dropout")


def alpha_dropout(
    c: Context, input: Tensor, p: Value = 0.5, training: Value = False, inplace: Value = False
) -> Tensor:
    """[*a] -> [*a]"""
    return dropout(c, input, p, training)


def native_dropout(c: Context, input: Tensor, p: Value, train: Value = True) -> tuple[Tensor, Tensor]:
    """[*a] -> [*a], bool[*a]; without elements the mask has the dtype of the input"""
    mask = clone(c, input)
    some = all(c.at_least(n, 1) for n in input.shape)
    empty = not some and c.choose(eq(input.numel, 0), "the dtype of the mask")
    return pointwise(c, "====", input, mask), Tensor(
        input.shape, input.dtype if empty else "bool", mask.layout
    )


def feature_dropout(
    low: int, high: int | None = None, always: bool = False, training: bool = True
) -> RuleFunction:
    """The rule of a dropout of channels for inputs of these ranks, checked in evaluation too if `always`."""
    default = training

    def rule(
        c: Context, input: Tensor, p: Value = 0.5, training: Value = default, inplace: Value = False
    ) -> Tensor:
        """[n, k, *s] -> [n, k, *s]"""
        result = dropout(c, input, p, training)
        if result is not input and input.rank > 1:  # one number for each channel
            noise = Tensor((*input.shape[:2], *(1,) * (input.rank - 2)), input.dtype)
            result = pointwise(c, "====", input, noise)
        drops = training is not False and not _is(c, p, 0) and not _is(c, p, 1)
        if (always or drops) and (input.rank < low or (high is not None and input.rank > high)):
            ranks = f"{low} or more" if high is None else f"{low} to {high}"
            reason = f"dropout of channels takes an input of rank {ranks}, not {input.rank}"
            c.require(False if always else empty(c, input.shape), reason)
        return result

    return rule


SAMPLERS: Final[dict[str, Rule]] = {
    **samplers("xx==", "uniform", "from to", always=True),
    **samplers("xx==", "normal_functional", "mean std"),
    **samplers("xx=x", "exponential", "lambd"),
    **samplers("xx=x", "cauchy", "median sigma", always=True),
    **samplers("xx=x", "log_normal", "mean std"),
    **samplers("x==x", "geometric", "p"),
}

RULES: Final[dict[str, RuleFunction | Rule]] = {
    **SAMPLERS,
    "_sample_dirichlet": standard_gamma,
    "_standard_gamma": standard_gamma,
    "alpha_dropout": alpha_dropout,
    "bernoulli": bernoulli,
    "bernoulli_": bernoulli_,
    "binomial": binomial,
    "dropout": dropout,
    "dropout1d": feature_dropout(2, 3, always=True),
    "dropout2d": feature_dropout(2),
    "dropout3d": feature_dropout(1),
    "feature_alpha_dropout": feature_dropout(2, training=False),
    "feature_dropout": feature_dropout(2),
    "native_dropout": native_dropout,
    "normal": normal,
    "normal_": normal_,
    "poisson": poisson,
    "random": random,
}
