"""Facts for a ShapeEnv: knowledge about its sizes beyond its own.

A fact is compared with the ShapeEnv's knowledge before anything is changed. If it does not follow from that,
it is stated by `torch._check`, so that the traced program refuses sizes for which it does not hold. Then it
is stored where the ShapeEnv looks: as a range, an equality, or `s -> m*k + r` for a size s that is r modulo
m.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import gcd, inf
from typing import Any, Final

import sympy
import torch
from torch.fx.experimental.symbolic_shapes import DimDynamic, RuntimeAssert, ShapeEnv, free_unbacked_symbols

from ...constraints.ir.language import Fact
from ...constraints.ir.system import ranges_of
from ...constraints.terms.dims import Apply, Dim, Symbol, linear_parts, sym, symbols
from ...constraints.terms.formula import Compare, Formula, all_of, conjuncts, free_symbols, holds, rewrite
from ...solver.facts.refine import fact_formula
from ...solver.tactics.judge import Budget, Judge
from ...tracer.host.symbolic_shapes import (
    QuotientOrigin,
    assertions_have_changed,
    drops_guards,
    forget_answers,
    int_oo,
    note_order,
    replace,
    stack_of_caller,
)
from ...tracer.host.tensors import torch_check
from ...tracer.readers.expressions import NotRead
from .knowledge import hints_of, known, symbols_of
from .terms import Writer, size_of

SECONDS: Final = 2.0
"""The time limit, in seconds, of finding the facts that follow from the knowledge of the ShapeEnv."""


class FeedbackError(ValueError):
    """Facts that a ShapeEnv cannot take: which one, and why. The ShapeEnv is as it was."""


@dataclass(frozen=True, slots=True)
class Fed:
    """The formulas that were added to a ShapeEnv, over its own symbols."""

    proved: tuple[Formula, ...]
    """Facts that follow from the knowledge of the ShapeEnv, and need no check."""
    checked: tuple[Formula, ...]
    """Facts that were assumed; `torch._check` states them of the traced program."""


def feed(
    shape_env: ShapeEnv, facts: Mapping[str, Fact], relations: Iterable[Formula] = (), *,
    names: Mapping[str, int | torch.SymInt] | None = None,
) -> Fed:
    """Tells a ShapeEnv facts of its sizes, and relations between them.

    `names` says which size a name in the facts means: `{"h": x.shape[2]}`. Any other name is that of a symbol
    of the ShapeEnv itself. That an input's size is a multiple is a replacement only in a ShapeEnv of one's
    own: torch's exporter and compiler cannot say in a guard what k is, and with them it is a guard alone. The
    guards of such a ShapeEnv speak of the sources that its inputs were made with.

    Raises FeedbackError where the facts exclude the sizes that the ShapeEnv was made with, contradict what it
    knows, speak of sizes that it does not have, or could not be checked any more.
    """
    formulas = _over_symbols(shape_env, facts, relations, names or {})
    given = known(shape_env)
    judge = Judge(Budget(SECONDS))
    _fits(formulas, given, hints_of(shape_env), judge)
    proved = tuple(f for f in formulas if judge.follows(f, given))
    checked = tuple(f for f in formulas if f not in proved)
    _takes_checks(shape_env, checked)
    writer = Writer(symbols_of(shape_env), ranges_of((*given, *formulas)))
    for formula, condition in [(f, _in_torch(f, writer)) for f in formulas]:
        _state(shape_env, formula, condition, formula in checked)
    forget_answers()
    return Fed(proved, checked)


# ---- before anything is touched


def _over_symbols(
    shape_env: ShapeEnv, facts: Mapping[str, Fact], relations: Iterable[Formula], names: Mapping[str, Any]
) -> tuple[Formula, ...]:
    """The facts as formulas over the symbols that the ShapeEnv has not replaced."""
    said = all_of((*(fact_formula(name, fact) for name, fact in facts.items()), *relations))
    own = symbols_of(shape_env)
    meaning: dict[str, Dim] = {}
    for name in sorted(free_symbols(said)):
        if name not in names and name not in own:
            known_names = ", ".join(sorted(own)) or "none"
            raise FeedbackError(f"the ShapeEnv has no symbol {name!r}; its symbols are {known_names}")
        size = size_of(names[name] if name in names else shape_env.replace(own[name]))
        if size is None:
            raise FeedbackError(f"{name!r} is {names.get(name)}, which cannot be written as a dim")
        meaning[name] = size
    try:
        return conjuncts(rewrite(said, meaning))
    except ZeroDivisionError:
        raise FeedbackError(f"{said} divides by zero") from None


def _fits(
    formulas: tuple[Formula, ...], given: tuple[Formula, ...], hints: Mapping[str, int], judge: Judge
) -> None:
    """Raises FeedbackError where the ShapeEnv was made with other sizes, or knows better."""
    for formula in formulas:
        names = sorted(free_symbols(formula))
        if names and hints.keys() >= {*names} and not _holds(formula, hints):
            sizes = ", ".join(f"{name} = {hints[name]}" for name in names)
            raise FeedbackError(f"{formula} excludes the sizes that the ShapeEnv was made with: {sizes}")
    if judge.satisfiable((*given, *formulas)) == "unsat":
        core = judge.core((*given, *formulas))
        raise FeedbackError(f"this contradicts what the ShapeEnv knows: {all_of(core) or formulas}")


def _holds(formula: Formula, values: Mapping[str, int]) -> bool:
    try:
        return holds(formula, values)
    except ZeroDivisionError:
        return False


def _takes_checks(shape_env: ShapeEnv, checked: tuple[Formula, ...]) -> None:
    """A frozen ShapeEnv ignores new guards, and nothing would refuse the sizes that a fact excludes."""
    frozen = shape_env.frozen or shape_env.runtime_asserts_frozen or drops_guards(shape_env)
    if checked and frozen:
        raise FeedbackError(f"the ShapeEnv takes no more guards, and nothing would check {all_of(checked)}")


def _in_torch(formula: Formula, writer: Writer) -> Any:
    try:
        return writer.formula(formula)
    except NotRead as error:
        raise FeedbackError(f"{formula} cannot be expressed in torch's terms: {error}") from None


# ---- what is told


def _state(shape_env: ShapeEnv, formula: Formula, condition: Any, check: bool) -> None:
    """One fact: checked if need be, then put where the ShapeEnv looks."""
    if check:
        torch_check(shape_env.create_symboolnode(condition))  # type: ignore[no-untyped-call]
    else:
        shape_env.axioms.update(dict(shape_env.get_implications(shape_env.simplify(condition))))
        note_order(shape_env, condition)
    for name, (low, high) in ranges_of((formula,)).items():
        if (symbol := symbols_of(shape_env).get(name)) is not None:
            ends = -int_oo if low == -inf else int(low), int_oo if high == inf else int(high)
            shape_env.constrain_symbol_range(symbol, *ends)
    for name, term in _equalities(formula, shape_env):
        replace(shape_env, symbols_of(shape_env)[name], term, f"anyshape: {formula}")
    if (congruence := _congruence(formula)) is not None:
        _replace_by_multiple(shape_env, *congruence, condition if check else None)


def _equalities(formula: Formula, shape_env: ShapeEnv) -> Iterator[tuple[str, Any]]:
    """The unbacked symbol made last in an equation, and the term that it equals.

    torch itself does not replace one of those by others, which might not be there yet where it is used; the
    others are older.
    """
    if not isinstance(formula, Compare) or formula.op != "==":
        return
    own = symbols_of(shape_env)
    linear = linear_parts(formula.term)
    unbacked = [n for n in symbols(formula.term) if n in own and free_unbacked_symbols(own[n])]
    latest = max(unbacked, key=lambda name: int(name[1:]), default=None)
    for atom, factor in linear[0] if linear else ():
        if atom.text == latest and abs(factor) == 1:
            other = sym(latest) - factor * formula.term
            if latest not in symbols(other):
                yield latest, Writer(own).size(other)


def _congruence(formula: Formula) -> tuple[str, int, int] | None:
    """`(s, m, r)` of a formula that says that s is r modulo m, with 0 <= r < m.

    c*s + d = e modulo m says so where c has an inverse: s = (e - d)/c modulo m.
    """
    linear = linear_parts(formula.term) if isinstance(formula, Compare) and formula.op == "==" else None
    if linear is None or len(linear[0]) != 1:
        return None
    ((atom, factor),), constant = linear
    if not isinstance(atom, Apply) or atom.op != "%" or abs(factor) != 1:
        return None
    dividend, modulus = atom.args
    moved = linear_parts(dividend)
    if not isinstance(modulus, int) or moved is None or len(moved[0]) != 1:
        return None
    ((symbol, multiple),), added = moved
    if not isinstance(symbol, Symbol) or gcd(multiple, modulus) != 1:
        return None
    return symbol.name, modulus, (-constant * factor - added) * pow(multiple, -1, modulus) % modulus


def _replace_by_multiple(shape_env: ShapeEnv, name: str, modulus: int, residue: int, check: Any) -> None:
    """s -> m*k + r with a new symbol k, which is s // m; a symbol that is replaced already stays as it is."""
    symbol = symbols_of(shape_env)[name]
    if symbol in shape_env.replacements:
        return
    values = shape_env.var_to_range[symbol]
    low, high = (int(end) if isinstance(end, sympy.Integer) else None for end in (values.lower, values.upper))
    ends = (
        -int_oo if low is None else -((residue - low) // modulus),
        int_oo if high is None else (high - residue) // modulus,
    )
    hint = shape_env.backed_var_to_val.get(symbol)
    if hint is None:
        with shape_env.ignore_fresh_unbacked_symbols():
            quotient = shape_env.create_unbacked_symint().node.expr
    elif shape_env.tracked_fakes is None:
        quotient = shape_env.create_symbol(
            int(hint) // modulus,
            source=QuotientOrigin(shape_env.var_to_sources[symbol][0], modulus),
            dynamic_dim=DimDynamic.DYNAMIC,
            constraint_dim=None,
            positive=True if ends[0] >= 1 else None,
            do_not_specialize_zero_one=True,
        )
    else:
        return
    shape_env.constrain_symbol_range(quotient, *ends)
    replace(shape_env, symbol, modulus * quotient + residue, "anyshape: a multiple")
    if check is not None and hint is not None:
        # The guard has become trivial by the replacement; an assert is put into the graph as it stands.
        stack = stack_of_caller()
        found = RuntimeAssert(check, f"assumed: {check}", stack)
        shape_env.deferred_runtime_asserts.setdefault(None, []).append(found)
        assertions_have_changed(shape_env)
