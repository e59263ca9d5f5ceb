"""Z3: the only file that imports it. Formulas become Z3 expressions, questions become checks under
assumptions.

Z3 is asked over the integers. `p // k` for an integer k > 0 is the q with k*q <= p < k*q + k, stated once as
a definition; for a symbolic divisor Python's rounding is stated for either sign, and a divisor 0 is
unconstrained.

A context of Z3's is for one thread at a time, and Python's garbage collector may run in any: it must not
touch objects of a context that another thread uses (`_ThreadContext`).
"""
from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce, wraps
from typing import Any, Concatenate, Literal, ParamSpec, TypeAlias, TypeVar

import z3

from ...constraints.terms.dims import (
    LARGEST_FLOAT,
    MOST_EXPONENT,
    Apply,
    Atom,
    Dim,
    Symbol,
    add,
    coefficients,
    floordiv,
    modulo,
    multiply,
    sym,
)
from ...constraints.terms.formula import (
    And,
    Compare,
    Formula,
    Or,
    all_of,
    any_of,
    eq,
    free_symbols,
    ge,
    gt,
    le,
    lt,
    ne,
    negate,
)

Answer: TypeAlias = Literal["sat", "unsat", "unknown"]
P = ParamSpec("P")
T = TypeVar("T")


class _ThreadContext(z3.Context):  # type: ignore[misc]
    """A context that belongs to the thread that uses it, and to no thread otherwise.

    Each object of Z3's in Python asks its context for `ref()` before it gives back its count, and goes
    without where that is None. So objects that are finalized by another thread, or while no thread uses the
    context, give back nothing: the context frees them when it is freed itself, and no thread uses it by then.
    """

    def __init__(self) -> None:
        super().__init__()
        self._turn = threading.RLock()
        self._user: int | None = None

    def ref(self) -> Any:
        return self.ctx if self._user == threading.get_ident() else None

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Gives the context to this thread inside the block. Other threads wait."""
        with self._turn:
            outer, self._user = self._user, threading.get_ident()
            try:
                yield
            finally:
                self._user = outer


def _using(method: Callable[Concatenate[Z3Problem, P], T]) -> Callable[Concatenate[Z3Problem, P], T]:
    """Decorates a method of a problem to run inside `in_use`; its local names are released before that ends.
    """

    @wraps(method)
    def called(self: Z3Problem, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._context.in_use():
            return method(self, *args, **kwargs)

    return called


class Z3Problem:
    """One incremental Z3 problem: an assumption literal per distinct formula, so that a core names formulas.

    `units` bounds each query in Z3's resource units, which repeat from run to run; `seconds` bounds all
    together. Problems share nothing, and the same questions in the same order get the same answers
    unless time runs out.
    """

    def __init__(self, seconds: float = 30.0, units: int = 3_000_000) -> None:
        self.queries = 0
        self.seconds = 0.0
        self._limit = seconds
        self._units = units
        self._context = _ThreadContext()
        with self._context.in_use():
            self._solver = z3.SimpleSolver(ctx=self._context)
            self._solver.set("random_seed", 0)
        self._encoder = _Encoder(self._context)
        self._literals: dict[Formula, Any] = {}
        self._formulas: dict[str, Formula] = {}
        self._defined = 0
        self._asked: tuple[Formula, ...] = ()
        self._core: tuple[Formula, ...] = ()
        self._model: dict[str, int] = {}

    @property
    @_using
    def units(self) -> int:
        """Returns the Z3 resource units spent so far."""
        return _units(self._solver)

    @property
    def exhausted(self) -> bool:
        """Returns whether the time has run out."""
        return self.seconds >= self._limit

    @_using
    def check(self, formulas: Iterable[Formula], units: int | None = None, *, afresh: bool = True) -> Answer:
        """Returns `sat` if some integers satisfy all formulas, `unsat` if none do, else `unknown`. Afterwards
        `model` or `core` has the details.

        `units` bounds this query, if that is less than the problem allows. With `afresh`, the question is
        asked again from scratch where the incremental solver gives up.
        """
        allowed = min(units or self._units, self._units)
        asked = tuple(dict.fromkeys(f for f in formulas if f is not True))
        self._asked, self._core, self._model = asked, (), {}
        if False in asked:
            self._core = (False,)
            return "unsat"
        literals = [self._literal(f) for f in asked]
        answer = self._run(self._solver, literals, allowed)
        if answer == "unsat":
            self._core = self._in_core(self._solver.unsat_core())
        elif answer == "unknown" and afresh and not self.exhausted:
            # The incremental core gave up: Z3's tactics, from scratch, decide some of these.
            fresh = z3.Solver(ctx=self._context)
            fresh.add(*self._encoder.definitions, *(self._encoder.formula(f) for f in asked))
            answer = self._run(fresh, [], allowed)
            self._core = asked if answer == "unsat" else ()
        return answer

    def model(self) -> dict[str, int]:
        """Returns the integers that the last check found, one for each symbol that it contained."""
        return dict(self._model)

    def core(self) -> tuple[Formula, ...]:
        """Returns formulas of the last check, which was unsat, that are unsat together, but not if any one is
        dropped.

        In the order in which they were asked. Where the budget ends first the core may not be minimal.
        """
        asked, kept = self._asked, [f for f in self._asked if f in self._core]
        for formula in reversed(kept.copy()):
            without = [f for f in kept if f != formula]
            if formula in kept and len(kept) > 1 and self.check(without) == "unsat":
                kept = [f for f in without if f in self._core]
        self._asked, self._core = asked, tuple(kept)
        return self._core

    def _literal(self, formula: Formula) -> Any:
        literal = self._literals.get(formula)
        if literal is None:
            name = f"assume!{len(self._literals)}"
            literal = self._literals[formula] = z3.Bool(name, self._context)
            self._formulas[name] = formula
            self._solver.add(z3.Implies(literal, self._encoder.formula(formula)))
            self._solver.add(*self._encoder.definitions[self._defined :])
            self._defined = len(self._encoder.definitions)
        return literal

    def _in_core(self, literals: Iterable[Any]) -> tuple[Formula, ...]:
        return tuple(self._formulas[str(literal)] for literal in literals)

    def _run(self, solver: Any, literals: Sequence[Any], allowed: int) -> Answer:
        left = self._limit - self.seconds
        if left <= 0:
            return "unknown"
        timeout_ms = max(1, int(left * 1000))
        solver.set("timeout", timeout_ms)
        solver.set("rlimit", allowed)
        self.queries += 1
        before = _units(solver)
        started = time.monotonic()
        result = solver.check(*literals)
        spent = time.monotonic() - started
        self.seconds += spent
        # Z3 takes SIGINT for itself, and says "canceled" whether that, the units or the time ended it.
        within = spent < 0.9e-3 * timeout_ms and _units(solver) - before < 0.9 * allowed
        if result == z3.unknown and solver.reason_unknown() == "canceled" and within:
            raise KeyboardInterrupt
        if result == z3.sat:
            model = solver.model()
            names = sorted(frozenset().union(*map(free_symbols, self._asked)))
            self._model = {
                n: model.eval(self._encoder.symbol(n), model_completion=True).as_long() for n in names
            }
        return "sat" if result == z3.sat else "unsat" if result == z3.unsat else "unknown"


def _units(solver: Any) -> int:
    """Returns the Z3 resource units spent so far in the solver's context."""
    statistics = solver.statistics()
    return int(statistics.get_key_value("rlimit count")) if "rlimit count" in statistics.keys() else 0  # noqa: SIM118


class _Encoder:
    """Encodes dims and formulas as Z3 expressions, each built once; `definitions` defines the names in them.
    """

    def __init__(self, context: Any) -> None:
        self.definitions: list[Any] = []
        self._context = context
        self._symbols: dict[str, Any] = {}
        self._quotients: dict[tuple[Dim, Dim], Any] = {}
        self._roots: list[Any] = []
        self._floats: list[Any] = []
        self._atoms: dict[Atom, Any] = {}
        self._formulas: dict[Formula, Any] = {}

    @property
    def quotients(self) -> list[Any]:
        """Returns the names that the definitions define."""
        return [*self._quotients.values(), *self._roots, *self._floats]

    def symbol(self, name: str) -> Any:
        return self._symbols.setdefault(name, z3.Int(name, self._context))

    def formula(self, formula: Formula) -> Any:
        if formula not in self._formulas:
            self._formulas[formula] = self._formula(formula)
        return self._formulas[formula]

    def _formula(self, formula: Formula) -> Any:
        match formula:
            case bool():
                return z3.BoolVal(formula, self._context)
            case And(parts):
                return z3.And(*map(self.formula, parts))
            case Or(parts):
                return z3.Or(*map(self.formula, parts))
            case Compare(op, term):
                value = self.dim(term)
                return value == 0 if op == "==" else value != 0 if op == "!=" else value >= 0

    def dim(self, dim: Dim) -> Any:
        parts = []
        for mono, c in coefficients(dim):
            factors = [self._atom(atom) for atom in mono]
            product = factors[0] if len(factors) == 1 else z3.Product(*factors) if factors else None
            number = z3.IntVal(c, self._context)
            parts.append(number if product is None else product if c == 1 else number * product)
        if not parts:
            return z3.IntVal(0, self._context)
        return parts[0] if len(parts) == 1 else z3.Sum(*parts)

    def _atom(self, atom: Atom) -> Any:
        if isinstance(atom, Symbol):
            return self.symbol(atom.name)
        if atom not in self._atoms:
            self._atoms[atom] = self._apply(atom)
        return self._atoms[atom]

    def _apply(self, atom: Apply) -> Any:
        if atom.op == "//":
            return self._quotient(*atom.args)
        if atom.op == "%":
            p, k = atom.args
            return self.dim(p) - self.dim(k) * self._quotient(p, k)
        if atom.op == "isqrt":
            return self._root(atom.args[0])
        if atom.op == "rounded":
            return self._rounded(*atom.args)
        if atom.op == "**":
            return self._exponential(*atom.args)
        args = [self.dim(arg) for arg in atom.args]
        least = atom.op == "min"
        found = args[0]
        for arg in args[1:]:
            found = z3.If(found <= arg if least else found >= arg, found, arg)
        return found

    def _root(self, p: Dim) -> Any:
        """Returns r = isqrt(p): r*r <= p < (r + 1)*(r + 1), where p >= 0."""
        r = z3.Int(f"root!{len(self._roots)}", self._context)
        self._roots.append(r)
        number = self.dim(p)
        within = z3.And(r >= 0, r * r <= number, number < (r + 1) * (r + 1))
        self.definitions.append(z3.If(number >= 0, within, r == 0))
        return r

    def _exponential(self, base: Dim, exponent: Dim) -> Any:
        """Returns base**e by cases of e, from 0 to MOST_EXPONENT."""
        assert isinstance(base, int), "the base of an exponential is a number"
        number = self.dim(exponent)
        found: Any = z3.IntVal(base**MOST_EXPONENT, self._context)
        for e in reversed(range(MOST_EXPONENT)):
            found = z3.If(number <= e, z3.IntVal(base**e, self._context), found)
        return found

    def _rounded(self, p: Dim, digits: Dim) -> Any:
        """Returns r = rounded(p, digits): r = p where |p| <= 2**digits, and r = 2**k*q with |p - r| <= 2**k/2
        and an even q of two where 2**(digits + k - 1) < |p| <= 2**(digits + k), for each k.
        """
        assert isinstance(digits, int), "floats have a number of digits"
        fresh = len(self._floats)
        r, q, h = (z3.Int(f"{name}!{fresh}", self._context) for name in ("float", "units", "half"))
        self._floats += r, q, h
        number = self.dim(p)
        size, off = (z3.If(n >= 0, n, -n) for n in (number, number - r))
        whole = z3.Or(size <= 1 << digits, size > LARGEST_FLOAT)
        self.definitions.append(z3.Implies(whole, r == number))
        for k in range(1, LARGEST_FLOAT.bit_length() - digits):
            unit, most = 1 << k, 1 << digits + k
            even = z3.Implies(2 * off == unit, q == 2 * h)
            near = z3.And(r == unit * q, 2 * off <= unit, even)
            self.definitions.append(z3.Implies(z3.And(2 * size > most, size <= most), near))
        return r

    def _quotient(self, p: Dim, k: Dim) -> Any:
        """Returns q = p // k: k*q <= p < k*q + k for k > 0, k*q >= p > k*q + k for k < 0."""
        if (p, k) not in self._quotients:
            q = self._quotients[p, k] = z3.Int(f"quotient!{len(self._quotients)}", self._context)
            number, divisor = self.dim(p), self.dim(k)
            rest = number - divisor * q
            above = z3.And(rest >= 0, rest < divisor)
            if isinstance(k, int):
                assert k > 0, "dims divide by positive integers only"
                self.definitions.append(above)
            else:
                self.definitions.append(z3.Implies(divisor > 0, above))
                self.definitions.append(z3.Implies(divisor < 0, z3.And(rest <= 0, rest > divisor)))
        return self._quotients[p, k]


# --- the smallest change -----------------------------------------------------------------------------------


def nearest(formulas: Iterable[Formula], values: Mapping[str, int], units: int) -> dict[str, int] | None:
    """Returns integers from 1 for these symbols that satisfy all formulas and are as near to the values as
    possible.

    As few symbols as possible differ (MaxSMT: that each stays is a soft constraint), these by as little as
    possible, and upwards rather than downwards. None where none were found or exist.
    """
    context = _ThreadContext()
    with context.in_use():
        return _nearest(context, formulas, values, units)


def _nearest(
    context: _ThreadContext, formulas: Iterable[Formula], values: Mapping[str, int], units: int
) -> dict[str, int] | None:
    encoder = _Encoder(context)
    solver = z3.Optimize(ctx=context)
    solver.set("rlimit", units)
    solver.set("priority", "lex")
    asked = [encoder.formula(f) for f in formulas if f is not True]
    solver.add(*asked, *encoder.definitions)
    symbols = {name: encoder.symbol(name) for name in values}
    for name, value in values.items():
        solver.add(symbols[name] >= 1)
        solver.add_soft(symbols[name] == value, id="changes")
    away = [z3.If(symbols[n] >= v, symbols[n] - v, v - symbols[n]) for n, v in values.items()]
    solver.minimize(z3.Sum(*away))
    solver.maximize(z3.Sum(*symbols.values()))
    if solver.check() != z3.sat:
        return None
    model = solver.model()
    return {n: model.eval(s, model_completion=True).as_long() for n, s in symbols.items()}


# --- quantifiers -------------------------------------------------------------------------------------------


def project(formula: Formula, names: Iterable[str], seconds: float = 30.0) -> Formula | None:
    """Returns a formula without these symbols that is true where some values of them make the given one true.

    It uses Z3's quantifier elimination, which decides linear arithmetic; None where that gives up.
    """
    context = _ThreadContext()
    with context.in_use():
        return _project(context, formula, names, seconds)


def _project(
    context: _ThreadContext, formula: Formula, names: Iterable[str], seconds: float
) -> Formula | None:
    encoder = _Encoder(context)
    body = encoder.formula(formula)
    bound = [encoder.symbol(n) for n in sorted(free_symbols(formula).intersection(names))] + encoder.quotients
    if not bound:
        return formula
    goal = z3.Goal(ctx=context)
    goal.add(z3.Exists(bound, z3.And(body, *encoder.definitions)))
    tactic = z3.TryFor(z3.Tactic("qe", context), max(1, int(seconds * 1000)))
    try:
        parts = [_read_formula(e, True) for part in tactic(goal) for e in part]
    except (z3.Z3Exception, _Unreadable):
        return None
    return all_of(parts)


class _Unreadable(Exception):
    """Raised for a Z3 expression outside the language of formulas."""


def _read_formula(e: Any, wanted: bool) -> Formula:
    """Returns the formula of a Z3 expression, or its negation."""
    kind, parts = e.decl().kind() if z3.is_app(e) else None, e.children()
    match kind:
        case z3.Z3_OP_TRUE | z3.Z3_OP_FALSE:
            return bool((kind == z3.Z3_OP_TRUE) == wanted)
        case z3.Z3_OP_NOT:
            return _read_formula(parts[0], not wanted)
        case z3.Z3_OP_AND | z3.Z3_OP_OR:
            join = all_of if (kind == z3.Z3_OP_AND) == wanted else any_of
            return join(_read_formula(p, wanted) for p in parts)
        case z3.Z3_OP_IMPLIES:
            join = any_of if wanted else all_of
            return join((_read_formula(parts[0], not wanted), _read_formula(parts[1], wanted)))
    if kind not in _RELATIONS or not z3.is_int(parts[0]):
        raise _Unreadable
    found: Formula = _RELATIONS[kind](*map(_read_dim, parts))
    return found if wanted else negate(found)


def _read_dim(e: Any) -> Dim:
    if z3.is_int_value(e):
        return int(e.as_long())
    kind, parts = e.decl().kind() if z3.is_app(e) else None, e.children()
    if kind == z3.Z3_OP_UNINTERPRETED and not parts and "!" not in str(e):
        return sym(str(e))
    if kind not in _DIMS:
        raise _Unreadable
    values = [_read_dim(p) for p in parts]
    if kind in (z3.Z3_OP_IDIV, z3.Z3_OP_MOD) and not (isinstance(values[1], int) and values[1] > 0):
        raise _Unreadable  # Z3 rounds otherwise for a negative divisor, and a symbolic one may be that
    return reduce(_DIMS[kind], values) if len(values) > 1 else -values[0]


_RELATIONS: dict[int, Callable[[Dim, Dim], Formula]] = {
    z3.Z3_OP_EQ: eq, z3.Z3_OP_DISTINCT: ne,
    z3.Z3_OP_LE: le, z3.Z3_OP_GE: ge, z3.Z3_OP_LT: lt, z3.Z3_OP_GT: gt,
}
_DIMS: dict[int, Callable[[Dim, Dim], Dim]] = {
    z3.Z3_OP_ADD: add, z3.Z3_OP_MUL: multiply, z3.Z3_OP_SUB: lambda a, b: a - b, z3.Z3_OP_UMINUS: add,
    z3.Z3_OP_IDIV: floordiv, z3.Z3_OP_MOD: modulo,
}
