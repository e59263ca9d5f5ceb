"""Rules held to torch itself, over concrete shapes, accepting and refusing.

A `Case` is one call with sizes as texts. It is run three ways at many assignments of its symbols: by torch on
real tensors of zeros, by the rule on concrete shapes, and by the rule once on symbols, evaluated at the
assignment. All three must agree: accepted or refused, result shapes, dtypes (where the rule states one) and
strides (where it states them).
"""

from __future__ import annotations

import os
import random
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

import torch

from ...constraints.engine.generate import Generator
from ...constraints.engine.kernels import kernels_of
from ...constraints.engine.ruleset import Rules, leaves
from ...constraints.ir.language import Constraint, Dots, Dyn, Layout, Slice, Tensor
from ...constraints.ir.system import Domain
from ...constraints.rules.common import contiguous_strides
from ...constraints.terms import syntax
from ...constraints.terms.dims import Term, evaluate, sym, symbols
from ...constraints.terms.formula import Compare, Formula, all_of, free_symbols, ge, holds
from ...tracer.host.operators import INSTALLED
from ...tracer.host.trees import pytree

TORCH = os.path.dirname(torch.__file__)

parse_dim = cache(syntax.parse_dim)  # a case is built at some forty assignments

REFUSALS = (
    RuntimeError, ValueError, IndexError, TypeError, AssertionError, NotImplementedError, ZeroDivisionError
)


class Disagreement(AssertionError):
    """A rule does not say what torch does. The message has the call, the sizes, and both sides."""


def _hold(agreed: bool, message: str) -> None:
    if not agreed:
        raise Disagreement(message)


@dataclass(frozen=True)
class T:
    """A tensor argument: sizes separated by blanks (`"b n 2*k"`), the dtype, and a permutation that is
    applied to it.

    `strides`, written as the sizes are, lays it out otherwise. `fill` is the value of all its elements.
    """

    sizes: str
    dtype: torch.dtype = torch.float32
    permute: tuple[int, ...] | None = None
    strides: str = ""
    fill: int = 0

    def build(self, values: dict[str, int]) -> torch.Tensor:
        sizes = [evaluate(parse_dim(s), values) for s in self.sizes.split()]
        if self.strides:
            strides = [evaluate(parse_dim(s), values) for s in self.strides.split()]
            room = 1 + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True)) if all(sizes) else 0
            return torch.full([room], self.fill, dtype=self.dtype).as_strided(sizes, strides)
        tensor = torch.full(sizes, self.fill, dtype=self.dtype)
        return tensor if self.permute is None else tensor.permute(self.permute)

    def symbolic(self) -> Tensor:
        shape = tuple(parse_dim(s) for s in self.sizes.split())
        strides: list[Any] = [1] * len(shape)
        for i in reversed(range(len(shape) - 1)):
            strides[i] = strides[i + 1] * shape[i + 1]
        name = str(self.dtype).removeprefix("torch.")
        if self.strides:
            return Tensor(shape, name, tuple(parse_dim(s) for s in self.strides.split()))
        if self.permute is None:
            return Tensor(shape, name)
        return Tensor(tuple(shape[i] for i in self.permute), name, tuple(strides[i] for i in self.permute))


@dataclass(frozen=True)
class D:
    """A size argument: a dim as text."""

    text: str


@dataclass(frozen=True)
class Case:
    """`op` is the canonical name; `call` is torch's function or `Tensor.method`; arguments may hold T and
    D.
    """

    op: str
    call: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    where: str = ""
    """Symbols in this text (blank separated) are drawn from 1 up instead of 0 up."""
    data: dict[str, str] = field(default_factory=dict)
    """Terms for the sizes that the data decides, where the rule requires something of them."""

    def __str__(self) -> str:
        return f"{self.op}({', '.join(map(str, self.args))}{', ' if self.kwargs else ''}{self.kwargs or ''})"

    def leaves(self) -> Iterator[Any]:
        for leaf in pytree.tree_leaves((self.args, self.kwargs)):
            yield from bounds(leaf) if isinstance(leaf, slice) else (leaf,)

    def symbols(self) -> list[str]:
        texts = [
            (leaf.sizes + " " + leaf.strides).split() if isinstance(leaf, T) else [leaf.text]
            for leaf in self.leaves() if isinstance(leaf, T | D)
        ]
        names: dict[str, None] = {}
        for text in (t for ts in texts for t in ts):
            dim = parse_dim(text)
            if isinstance(dim, Term):
                names.update(dict.fromkeys(sorted(free_symbols(Compare("==", dim)))))
        return list(names)


def bounds(index: slice) -> tuple[Any, Any, Any]:
    return index.start, index.stop, index.step


def fill_in(value: Any, one: Callable[[Any], Any]) -> Any:
    """The arguments of a case with every T and D replaced, also within the bounds of slices."""
    return pytree.tree_map(lambda a: slice(*map(one, bounds(a))) if isinstance(a, slice) else one(a), value)


def lower(value: Any) -> Any:
    """A real torch argument as a rule sees it."""
    if isinstance(value, torch.Tensor):
        name = str(value.dtype).removeprefix("torch.")
        # A tensor may be contiguous although a dim of size 1 has another stride, which some kernels look at.
        row_major = value.numel() == 0 or value.stride() == contiguous_strides(tuple(value.shape))
        return Tensor(tuple(value.shape), name, Layout.CONTIGUOUS if row_major else tuple(value.stride()))
    if isinstance(value, torch.dtype | torch.memory_format):
        return str(value).removeprefix("torch.")
    if isinstance(value, slice):
        return Slice(*bounds(value))
    if value is Ellipsis:
        return Dots
    if isinstance(value, list | tuple):
        return tuple(lower(v) for v in value)
    return value


class LeftOpen(BaseException):
    """Raised when a rule needs a number, or the truth of a formula, that the symbols leave open."""


def run_rule(
    rules: Rules, op: str, args: tuple[Any, ...], kwargs: dict[str, Any], domain: Domain,
    values: dict[str, int] | None = None,
) -> Any:
    """(accepted formula, result or None, notes). What the rule asks is answered from the values; without,
    LeftOpen.
    """

    def answer(dim: Any, evaluated: Callable[[Any, dict[str, int]], Any]) -> Any:
        if values is None:
            raise LeftOpen
        return evaluated(dim, values)

    generator = Generator(
        rules.of_torch(INSTALLED),
        domain,
        count=lambda dim: answer(dim, evaluate),
        chooser=lambda formula: answer(formula, holds),
        kernels=kernels_of("cpu", INSTALLED),
    )
    _, result = generator.call(op, args, kwargs)
    if result is None:
        raise Disagreement(f"{op} has no result: {', '.join(n.reason for n in generator.said.notes)}")
    return all_of(c.formula for c in generator.said.constraints), result, generator


def run_torch(case: Case, values: dict[str, int]) -> Any:
    """(accepted, result or the refusal)."""

    def build(arg: Any) -> Any:
        if isinstance(arg, T):
            return arg.build(values)
        return evaluate(parse_dim(arg.text), values) if isinstance(arg, D) else arg

    args, kwargs = fill_in((case.args, case.kwargs), build)
    try:
        return (args, kwargs), True, case.call(*args, **kwargs)
    except REFUSALS as error:
        return (args, kwargs), False, error


def compare_results(
    rule: Any, real: Any, values: dict[str, int], where: str,
    unbacked: Mapping[str, Formula] = MappingProxyType({}),
) -> None:
    """Sizes that the data decides, `unbacked`, are what torch says they are; what the rule knows of them must
    hold.
    """
    values = dict(values)
    expected = [r for r in pytree.tree_leaves(real) if isinstance(r, torch.Tensor)]
    got = [r for r in leaves(rule) if isinstance(r, Tensor)]
    _hold(rule is not Dyn, f"{where}: torch accepts, the rule gives Dyn")
    _hold(len(got) == len(expected), f"{where}: {len(got)} tensors, torch gives {len(expected)}")
    for mine, theirs in zip(got, expected, strict=True):
        rank = f"{where}: rule says {mine.shape}, torch {tuple(theirs.shape)}"
        _hold(len(mine.shape) == theirs.dim(), rank)
        for dim, size in zip(mine.shape, theirs.shape, strict=True):
            for name in symbols(dim) - values.keys():
                fits = [n for n in range(size + 1) if evaluate(dim, {**values, name: n}) == size]
                values[name] = fits[0] if fits else -1
                _hold(holds(unbacked[name], values), f"{where}: {dim} is {size}, not in {unbacked[name]}")
        shape = tuple(evaluate(d, values) for d in mine.shape)
        _hold(shape == tuple(theirs.shape), f"{where}: rule says {shape}, torch {tuple(theirs.shape)}")
        if mine.dtype is not None:
            dtype = str(theirs.dtype).removeprefix("torch.")
            _hold(mine.dtype == dtype, f"{where}: rule {mine.dtype}, torch {dtype}")
        if mine.layout in (Layout.CONTIGUOUS, Layout.ROW_MAJOR):
            strides = f"{where}: rule says contiguous, torch strides {theirs.stride()} of {shape}"
            _hold(theirs.is_contiguous(), strides)
        elif isinstance(mine.layout, tuple) and theirs.numel() > 0:
            pairs = zip(mine.layout, theirs.stride(), shape, strict=True)
            _hold(
                all(evaluate(m, values) == t for m, t, n in pairs if n > 1),
                f"{where}: rule says strides {mine.layout} at {values}, torch {theirs.stride()}",
            )


def compare_errors(
    constraints: Sequence[Constraint], real: Exception, values: dict[str, int], where: str
) -> None:
    """Of concrete shapes, the first requirement that fails has the type of torch's exception.

    What Python's side of torch raises is not judged: it is recorded as any program is, and raises by itself.
    Neither are arguments that no signature takes.
    """
    *_, (innermost, _) = traceback.walk_tb(real.__traceback__)
    if innermost.f_code.co_filename.startswith(TORCH) or isinstance(real, TypeError):
        return
    first = next(c for c in constraints if not holds(c.formula, values))
    theirs = next(kind for kind in type(real).__mro__ if kind.__module__ == "builtins")
    said = f"{where}: rule raises {first.error.__name__} ({first.reason})"
    reason = str(real).partition("\n")[0]
    _hold(first.error in (Exception, theirs), f"{said}, torch {theirs.__name__}: {reason}")


def assignments(case: Case, count: int, seed: int = 0) -> Iterator[dict[str, int]]:
    """Boundary values first (all 0, all 1, all 2), then random ones that repeat values often, so that sizes
    agree.
    """
    names = case.symbols()
    low = {n: 1 if n in case.where.split() else 0 for n in names}
    rng = random.Random(f"{case}{seed}")
    for value in (0, 1, 2, 6):
        yield {n: max(value, low[n]) for n in names}
    for _ in range(count):
        pool = rng.sample(range(9), 3)
        yield {n: max(rng.choice(pool), low[n]) for n in names}


def check_case(case: Case, rules: Rules, count: int = 40) -> tuple[int, int]:
    """Returns the number of assignments that torch accepted and that of those it refused.

    Raises Disagreement at the first assignment at which the rule differs from torch.
    """
    names = case.symbols()
    domain = Domain(tuple(names), tuple(ge(sym(n), 1 if n in case.where.split() else 0) for n in names))
    args, kwargs = fill_in(
        (case.args, case.kwargs),
        lambda a: a.symbolic() if isinstance(a, T) else parse_dim(a.text) if isinstance(a, D) else lower(a),
    )
    args = tuple(lower(a) for a in args)
    kwargs = {k: lower(v) for k, v in kwargs.items()}
    try:
        accepted_set, symbolic, said = run_rule(rules, case.op, args, kwargs, domain)
        asks = False
    except LeftOpen:
        asks = True
    seen = [0, 0]
    for values in assignments(case, count):
        (real_args, real_kwargs), accepted, real = run_torch(case, values)
        where = f"{case} at {values}"
        known = tuple(map(lower, real_args)), {k: lower(v) for k, v in real_kwargs.items()}
        concrete, result, generator = run_rule(rules, case.op, *known, Domain())
        values |= {name: evaluate(parse_dim(text), values) for name, text in case.data.items()}
        if not isinstance(concrete, bool) and case.data:
            concrete = holds(concrete, values)
        _hold(isinstance(concrete, bool), f"{where}: concrete shapes leave {concrete}")
        if asks:
            accepted_set, symbolic, said = run_rule(rules, case.op, args, kwargs, domain, values)
        reasons = [c.reason for c in generator.said.constraints]
        torch_says = "accepts" if accepted else str(real).partition("\n")[0]
        rule_says = "accepts" if concrete else f"refuses {reasons}"
        _hold(concrete == accepted, f"{where}: rule {rule_says}, torch: {torch_says}")
        if not accepted:
            compare_errors(generator.said.constraints, real, values, where)
        try:
            symbolically = holds(accepted_set, values)
        except ZeroDivisionError:
            symbolically = False
        symbols_say = f"accepted set {accepted_set} says {symbolically}"
        _hold(symbolically == accepted, f"{where}: rule's {symbols_say}, torch: {torch_says}")
        if accepted:
            compare_results(result, real, values, where, generator.said.unbacked)
            compare_results(symbolic, real, values, f"{where} (symbolically)", said.said.unbacked)
        seen[not accepted] += 1
    return seen[0], seen[1]
