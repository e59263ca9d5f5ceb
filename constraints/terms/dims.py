"""Dims: integer terms over symbols, in normal form.

A dim is a Python `int` or a `Term`. A `Term` is a polynomial with integer coefficients over *atoms*; an atom
is a symbol or one of `//`, `%`, `min`, `max`, `isqrt`, `rounded`, `**` applied to dims. Every operation
normalises, so that polynomials that are equal over their atoms are equal objects, and whatever is constant is
an `int`.

Dims never solve: there is no `<` here, and nothing depends on the range of a symbol. Floor division and
modulo are Python's. Where the divisor is symbolic the term is partial: `p // q` means something only where `q
!= 0`, whoever builds it states that requirement, and every rewriting below is exact wherever it holds.

`//` and `%` by an integer relate through `k*(p//k) + p % k = p`, which addition applies (`_rejoin`) and
nothing applies backwards: `h - 2*(h//2)` stays as it is, since later divisions cancel `2*(h//2)`.
"""

from __future__ import annotations

import heapq
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, reduce
from itertools import groupby
from math import gcd, isqrt
from re import ASCII
from re import compile as regex
from typing import Final, NamedTuple, NoReturn, TypeAlias

Dim: TypeAlias = "int | Term"
Atom: TypeAlias = "Symbol | Apply"
Mono: TypeAlias = "tuple[Atom, ...]"
"""A product of atoms, sorted by text, with multiplicity: `(x, x, y)` is x²y, `()` is 1."""

DIVISION_STEPS: Final = 4096
"""Polynomial division gives up (quotient 0) beyond this many steps, so that no dividend makes it explode."""

LONGEST: Final = 20_000
"""The texts of longer atoms, in characters, are abbreviated, since the parser would not accept them."""

MOST_FACTORED: Final = 24
"""A sum of more monomials is written as it is."""

REMEMBERED: Final = 1 << 15
"""The number of results that each of the more expensive operations keeps: blocks of a model, and its paths,
repeat them.
"""

_INDEX, _SLICE = r"\[(?:0|-?[1-9]\d*)\]", r"\[(?:[1-9]\d*)?:(?:-[1-9]\d*)?\]"
_WORD = r"[A-Za-z_]\w*"
_NAME = regex(
    rf"{_WORD}(?:{_INDEX})?|(?:_\w*)?(?:rank|numel)\({_WORD}(?:{_SLICE})?\)"
    rf"|{_WORD}{_SLICE}(?:\|{_WORD}{_SLICE})*"
    rf"|(?:_\w*)?(?:broadcast|equal|expands|within)\({_WORD}(?:{_SLICE})?(?:,{_WORD}(?:{_SLICE})?)+\)"
    r"|\#\w+",
    ASCII,
)
"""The names of symbols: `h`; facts about rows (rows.py), `x[-1]`, `rank(x)`, `numel(x[1:-2])`,
`x[1:]|y[:-2]`; relations between rows (relations.py), `broadcast(x,y[:-1])`, where a symbol made of one of
these begins with `_`; and `#1`, an index of the elements of a tensor (contents/).
"""
KEYWORDS: Final = frozenset({"and", "or", "not"})
"""Words of the formula language, which no symbol may be called."""


class UnknownSymbol(KeyError):
    """Raised by `evaluate` for a symbol of the dim that has no value."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return f"no value for the symbol {self.name!r}"


class _Frozen:
    """Base of values whose slots are written once, by `_set`."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is immutable")


_set = object.__setattr__
_ABBREVIATION: Final = "⟨"
"""Marks an abbreviated text, one that nothing reads back; no other text contains it."""


class _Atom(_Frozen):
    """An atom of the polynomials that dims are.

    Two atoms are equal if their texts are, for the text determines the atom. A text that is too long to be
    read is replaced by a digest, since nested terms share parts and their texts do not.
    """

    __slots__ = ("depth", "symbols", "text")
    text: str
    symbols: frozenset[str]
    depth: int
    """The depth to which applications are nested in the atom."""

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, _Atom) and self.text == other.text)

    def __hash__(self) -> int:
        return hash(self.text)


class Symbol(_Atom):
    """An unknown integer."""

    __slots__ = ("name",)
    name: str

    def __init__(self, name: str) -> None:
        if not _NAME.fullmatch(name) or name in KEYWORDS:
            raise ValueError(f"{name!r} is no name for a symbol")
        _set(self, "name", name)
        _set(self, "text", name)
        _set(self, "symbols", frozenset((name,)))
        _set(self, "depth", 0)

    def __repr__(self) -> str:
        return f"Symbol({self.name!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return Symbol, (self.name,)


class Apply(_Atom):
    """`op` applied to dims, where no rule rewrites the application. Only the operations below build one."""

    __slots__ = ("args", "op")
    op: str
    args: tuple[Dim, ...]

    def __init__(self, op: str, args: tuple[Dim, ...]) -> None:
        _set(self, "op", op)
        _set(self, "args", args)
        text = _PLAIN.application(op, args)
        _set(self, "text", text if len(text) <= LONGEST else _abbreviated(op, text))
        _set(self, "symbols", frozenset().union(*map(symbols, args)))
        _set(self, "depth", 1 + max(map(depth, args)))

    @property
    def is_abbreviated(self) -> bool:
        """Returns whether the text leaves out a part of the application."""
        return _ABBREVIATION in self.text

    def __repr__(self) -> str:
        return f"Apply({self.op!r}, {self.args!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return Apply, (self.op, self.args)


class Term(_Frozen):
    """A polynomial that is not constant: `(monomial, coefficient)` pairs, leading monomial first.

    Monomials are ordered by degree, highest first, then by the texts of their atoms (graded lexicographic,
    an order that multiplication respects). No coefficient is 0. `modular`: one of the atoms is a `%`.
    """

    __slots__ = ("_hash", "_shown", "_symbols", "_text", "modular", "terms")
    terms: tuple[tuple[Mono, int], ...]
    modular: bool
    _hash: int | None
    _symbols: frozenset[str] | None
    _text: str | None
    _shown: str | None

    def __init__(self, terms: tuple[tuple[Mono, int], ...], modular: bool) -> None:
        _set(self, "terms", terms)
        _set(self, "modular", modular)
        _set(self, "_hash", None)
        _set(self, "_symbols", None)
        _set(self, "_text", None)
        _set(self, "_shown", None)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, Term):
            mine, others = self._hash, other._hash  # to call `hash` would take most of the time
            if mine != others and mine is not None and others is not None:
                return False
            return self.terms == other.terms
        return False if isinstance(other, int) else NotImplemented

    def __hash__(self) -> int:
        if self._hash is None:
            _set(self, "_hash", hash(self.terms))
        return self._hash  # type: ignore[return-value]

    @property
    def text(self) -> str:
        """Returns the sum in Python's operators on integers: `2*((h + 3)//4) + w`."""
        if self._text is None:
            _set(self, "_text", _PLAIN.sum(self.terms))
        return self._text  # type: ignore[return-value]

    def __str__(self) -> str:
        """Returns the term as people write it, factored where that is shorter: `2*ceil(h/4) + w`."""
        if self._shown is None:
            _set(self, "_shown", sum_text(products(self)))
        return self._shown  # type: ignore[return-value]

    def __repr__(self) -> str:
        return f"Term({str(self)!r})"

    def __bool__(self) -> NoReturn:
        raise TypeError(f"whether {self} is zero is for the solver to say, not for bool()")

    def __reduce__(self) -> tuple[object, ...]:
        return Term, (self.terms, self.modular)

    def __add__(self, other: Dim) -> Dim:
        return add(self, other) if isinstance(other, (int, Term)) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: Dim) -> Dim:
        return add(self, -other) if isinstance(other, (int, Term)) else NotImplemented

    def __rsub__(self, other: int) -> Dim:
        return add(-self, other) if isinstance(other, int) else NotImplemented

    def __neg__(self) -> Term:
        return Term(tuple((mono, -c) for mono, c in self.terms), self.modular)

    def __pos__(self) -> Term:
        return self

    def __mul__(self, other: Dim) -> Dim:
        return multiply(self, other) if isinstance(other, (int, Term)) else NotImplemented

    __rmul__ = __mul__

    def __floordiv__(self, other: Dim) -> Dim:
        return floordiv(self, other) if isinstance(other, (int, Term)) else NotImplemented

    def __rfloordiv__(self, other: int) -> Dim:
        return floordiv(other, self) if isinstance(other, int) else NotImplemented

    def __mod__(self, other: Dim) -> Dim:
        return modulo(self, other) if isinstance(other, (int, Term)) else NotImplemented

    def __rmod__(self, other: int) -> Dim:
        return modulo(other, self) if isinstance(other, int) else NotImplemented

    def __pow__(self, exponent: int) -> Dim:
        return power(self, exponent) if isinstance(exponent, int) else NotImplemented


@lru_cache(maxsize=4096)
def sym(name: str) -> Term:
    """The dim that is the symbol `name`."""
    return lone(Symbol(name))


# --- looking into a dim ----------------------------------------------------------------------------------


def coefficients(dim: Dim) -> tuple[tuple[Mono, int], ...]:
    """The monomials with their coefficients, leading first; of 0 there are none."""
    if isinstance(dim, Term):
        return dim.terms
    return (((), int(dim)),) if dim else ()


def constant_part(dim: Dim) -> int:
    """The coefficient of the constant monomial."""
    if isinstance(dim, Term):
        mono, c = dim.terms[-1]
        return 0 if mono else c
    return dim


def linear_parts(dim: Dim) -> tuple[tuple[tuple[Atom, int], ...], int] | None:
    """`((atom, coefficient), …), constant` where the dim is linear in its atoms, else None."""
    if isinstance(dim, int):
        return (), dim
    if len(dim.terms[0][0]) > 1:
        return None
    return tuple((mono[0], c) for mono, c in dim.terms if mono), constant_part(dim)


def lone_atom(dim: Dim) -> Atom | None:
    """Returns the atom if the dim consists of just one, else None."""
    if isinstance(dim, Term) and len(dim.terms) == 1:
        mono, c = dim.terms[0]
        if c == 1 and len(mono) == 1:
            return mono[0]
    return None


def symbols(dim: Dim) -> frozenset[str]:
    """The names of the symbols that occur in the dim."""
    if isinstance(dim, int):
        return frozenset()
    if dim._symbols is None:
        _set(dim, "_symbols", frozenset().union(*(atom.symbols for mono, _ in dim.terms for atom in mono)))
    return dim._symbols  # type: ignore[return-value]


def depth(dim: Dim) -> int:
    """Returns the depth to which applications are nested in the dim; 0 for a polynomial over symbols."""
    if isinstance(dim, int):
        return 0
    return max(atom.depth for mono, _ in dim.terms for atom in mono)


def applications(*dims: Dim) -> tuple[Apply, ...]:
    """Returns every application in the dims, once each and after those nested in it, although nested dims
    hold many copies.
    """
    found: dict[Apply, None] = {}
    _find_applications(dims, found)
    return (*found,)


def _find_applications(dims: Iterable[Dim], found: dict[Apply, None]) -> None:
    for dim in dims:
        for mono, _ in coefficients(dim):
            for atom in mono:
                if isinstance(atom, Apply) and atom not in found:
                    _find_applications(atom.args, found)
                    found[atom] = None


def evaluate(dim: Dim, values: Mapping[str, int]) -> int:
    """The value at an assignment. A zero divisor raises ZeroDivisionError, a missing name UnknownSymbol."""
    return _evaluate(dim, values, {})


def _evaluate(dim: Dim, values: Mapping[str, int], done: dict[Apply, int]) -> int:
    """Returns the value of the dim.

    `done` keeps the values of applications, since nested dims hold many copies.
    """
    if isinstance(dim, int):
        return dim
    result = 0
    for mono, c in dim.terms:
        for atom in mono:
            c *= _evaluate_atom(atom, values, done)
        result += c
    return result


def _evaluate_atom(atom: Atom, values: Mapping[str, int], done: dict[Apply, int]) -> int:
    if isinstance(atom, Apply):
        if atom not in done:
            done[atom] = _PYTHON[atom.op](*[_evaluate(arg, values, done) for arg in atom.args])
        return done[atom]
    try:
        return values[atom.name]
    except KeyError:
        raise UnknownSymbol(atom.name) from None


_PYTHON: Final[Mapping[str, Callable[..., int]]] = {
    "//": operator.floordiv, "%": operator.mod, "min": min, "max": max, "isqrt": lambda p: isqrt(max(p, 0)),
    "rounded": lambda p, digits: nearest_float(p, digits),
    "**": lambda base, exponent: base ** min(max(exponent, 0), MOST_EXPONENT),
}


def substitute(dim: Dim, replacement: Mapping[str, Dim]) -> Dim:
    """The dim with all symbols replaced at once, normalised anew; symbols not named stay."""
    return _substitute(dim, replacement, {})


def _substitute(dim: Dim, replacement: Mapping[str, Dim], done: dict[Atom, Dim]) -> Dim:
    if isinstance(dim, int) or replacement.keys().isdisjoint(symbols(dim)):
        return dim
    parts: list[Dim] = []
    for mono, c in dim.terms:
        part: Dim = 1
        for atom in mono:
            if atom not in done:
                done[atom] = _substitute_atom(atom, replacement, done)
            part = multiply(part, done[atom])  # remembered: powers of a symbol share it
        parts.append(multiply(part, c))
    return total(parts)


def _substitute_atom(atom: Atom, replacement: Mapping[str, Dim], done: dict[Atom, Dim]) -> Dim:
    if isinstance(atom, Symbol):
        return replacement[atom.name] if atom.name in replacement else lone(atom)
    return BUILD[atom.op](*[_substitute(arg, replacement, done) for arg in atom.args])


def mapped(dim: Dim, change: Callable[[Apply], Dim]) -> Dim:
    """The dim with every application changed, innermost first; as it is, if that divides by zero."""
    done: dict[Atom, Dim] = {}

    def whole(dim: Dim) -> Dim:
        if isinstance(dim, int) or not any(isinstance(a, Apply) for mono, _ in dim.terms for a in mono):
            return dim
        parts: list[Dim] = []
        for mono, c in dim.terms:
            part: Dim = c
            for atom in mono:
                part = part * inside(atom)
            parts.append(part)
        return total(parts)

    def inside(atom: Atom) -> Dim:
        if isinstance(atom, Symbol):
            return lone(atom)
        if atom not in done:
            built = BUILD[atom.op](*map(whole, atom.args))
            alone = lone_atom(built)
            done[atom] = change(alone) if isinstance(alone, Apply) else built
        return done[atom]

    try:
        return whole(dim)
    except ZeroDivisionError:
        return dim


# --- sums and products -----------------------------------------------------------------------------------


def lone(atom: Atom) -> Term:
    """The atom as a dim."""
    return Term((((atom,), 1),), _is_modulo(atom))


def _is_division(atom: Atom) -> bool:
    return isinstance(atom, Apply) and atom.op in ("//", "%")


def _is_modulo(atom: Atom) -> bool:
    return isinstance(atom, Apply) and atom.op == "%"


def _text_of(atom: Atom) -> str:
    return atom.text


def _rank(term: tuple[Mono, int]) -> tuple[int, list[str]]:
    mono = term[0]
    return -len(mono), [atom.text for atom in mono]


def _joined(m: Mono, n: Mono) -> Mono:
    """m·n"""
    return tuple(sorted(m + n, key=_text_of)) if m and n else m or n


def _build(acc: dict[Mono, int], modular: bool) -> Dim:
    """Returns the dim with these coefficients, some perhaps 0.

    Without `modular`, no `%` is among its atoms.
    """
    if modular:
        _rejoin(acc)
    terms = [term for term in acc.items() if term[1]]
    modular = modular and any(map(_is_modulo, (atom for mono, _ in terms for atom in mono)))
    if len(terms) > 1:
        terms.sort(key=_rank)
    elif not terms:
        return 0
    if not terms[0][0]:
        return terms[0][1]
    return Term(tuple(terms), modular)


def add(p: Dim, q: Dim) -> Dim:
    """p + q"""
    if isinstance(p, int):
        p, q = q, p
    if isinstance(p, int):
        return p + q
    if isinstance(q, int):
        return _add_int(p, q)
    acc = dict(p.terms)
    for mono, c in q.terms:
        acc[mono] = acc.get(mono, 0) + c
    return _build(acc, p.modular or q.modular)


def _add_int(p: Term, c: int) -> Term:
    """p + c: the constant is the last monomial, and no other one changes."""
    mono, last = p.terms[-1]
    head = p.terms if mono else p.terms[:-1]
    c = c + (0 if mono else last)
    return Term((*head, ((), c)) if c else head, p.modular)


def total(dims: Iterable[Dim]) -> Dim:
    """The sum, collected in one pass: linear in the number of monomials, where repeated `+` is quadratic."""
    acc: dict[Mono, int] = {}
    modular = False
    for dim in dims:
        for mono, c in coefficients(dim):
            acc[mono] = acc.get(mono, 0) + c
        modular = modular or (isinstance(dim, Term) and dim.modular)
    return _build(acc, modular)


@lru_cache(maxsize=REMEMBERED)
def multiply(p: Dim, q: Dim) -> Dim:
    """p * q, distributed: Σ a·m times Σ b·n is Σ (a·b)·(m·n)"""
    if isinstance(p, int):
        p, q = q, p
    if isinstance(p, int):
        return p * q
    if isinstance(q, int):
        if q in (0, 1):
            return p if q else 0
        return Term(tuple((mono, c * q) for mono, c in p.terms), p.modular)
    acc: dict[Mono, int] = {}
    for m, a in p.terms:
        for n, b in q.terms:
            mono = _joined(m, n)
            acc[mono] = acc.get(mono, 0) + a * b
    return _build(acc, p.modular or q.modular)


def power(p: Dim, exponent: int) -> Dim:
    """p ** exponent, multiplied out, by repeated squaring."""
    if exponent < 0:
        raise ValueError(f"the exponent of a dim must not be negative, got {exponent}")
    result: Dim = 1
    while exponent:
        if exponent % 2:
            result = multiply(result, p)
        exponent //= 2
        if exponent:
            p = multiply(p, p)
    return result


def _without(mono: Mono, at: int) -> Mono:
    return mono[:at] + mono[at + 1 :]


def _rejoin(acc: dict[Mono, int]) -> None:
    """c·m·R + d·m·A = c·m·rest + (d - a·c)·m·A, where a·A + R = rest (`_relations`).

    Applied where it removes the `%` and takes away from A: a·c and d have one sign, and |d| >= |a·c|. It is
    applied too where it takes away from all of rest but its constant: `h + -h % 4` is `-4*(-h//4)`.
    """
    places = [(mono, i) for mono in acc for i, atom in enumerate(mono) if _is_division(atom)]
    both = len({mono[i].op for mono, i in places}) == 2  # type: ignore[union-attr]
    for by_quotient in (True, False) if both else (False,):
        for mono, i in places:
            others = mono[:i] + mono[i + 1 :]
            for a, quotient, remainder, rest in _relations(mono[i]):
                r, q = _joined(others, (remainder,)), _joined(others, (quotient,))
                c, d = acc.get(r, 0), acc.get(q, 0)
                taken = [(_joined(others, n), b * c) for n, b in coefficients(rest)]
                if by_quotient:
                    applies = a * c * d > 0 and abs(d) >= abs(a * c)
                else:
                    pairs = [(acc.get(n, 0), b) for n, b in taken if n != others]
                    applies = c != 0 and all(held * b < 0 and abs(held) >= abs(b) for held, b in pairs)
                if applies:
                    acc[q] = d - a * c
                    acc[r] = 0
                    for n, b in taken:
                        acc[n] = acc.get(n, 0) + b


@lru_cache(maxsize=4096)
def _relations(atom: Atom) -> tuple[tuple[int, Atom, Atom, Dim], ...]:
    """Returns all (a, A, R, rest) known for a `//` or `%` by an integer k, with A a `//`, R a `%` and a·A + R
    = rest.

    Each is k·(n//k) + n % k = n, where n//k = e·A + s and n % k = R + t with constants e, s, t in normal form
    (rest = n - k·s - t): for `n % k` with its own n; for `Q//k` with n = Q, and with n = k - 1 - Q, whose
    quotient is -(Q//k), as ⌊(k - 1 - Q)/k⌋ = -⌈(Q - k + 1)/k⌉ = -⌊Q/k⌋. Numbers n with a `%` inside are left
    alone.
    """
    if isinstance(atom, Symbol) or not _is_division(atom):
        return ()
    n, k = atom.args
    if isinstance(k, Term) or isinstance(n, int) or n.modular:
        return ()
    found = []
    for number in (n,) if atom.op == "%" else (n, k - 1 - n):
        quotient, remainder = _atom_and_constant(floordiv(number, k)), _atom_and_constant(modulo(number, k))
        if quotient and remainder and remainder[0] == 1:
            (e, a, s), (_, r, t) = quotient, remainder
            found.append((e * k, a, r, number - (k * s + t)))
    return tuple(found)


def _atom_and_constant(dim: Dim) -> tuple[int, Atom, int] | None:
    """(e, A, s) if the dim is e·A + s with an atom A and integers e, s"""
    linear = linear_parts(dim)
    if linear is None or len(linear[0]) != 1:
        return None
    ((atom, e),), s = linear
    return e, atom, s


# --- division by an integer ------------------------------------------------------------------------------


@lru_cache(maxsize=REMEMBERED)
def floordiv(p: Dim, q: Dim) -> Dim:
    """⌊p/q⌋, where q != 0"""
    if isinstance(q, Term):
        return _floordiv_term(p, q)
    if q < 0:  # p/q = (-p)/(-q)
        p, q = -p, -q
    if isinstance(p, int):
        return p // q
    return _floordiv_int(p, q) if q else _zero_division()


@lru_cache(maxsize=REMEMBERED)
def modulo(p: Dim, q: Dim) -> Dim:
    """p % q = p - q·⌊p/q⌋, where q != 0"""
    if isinstance(q, Term):
        return _modulo_term(p, q)
    if isinstance(p, int):
        return p % q
    if q < 0:  # p - q·⌊p/q⌋ = -(-p - (-q)·⌊(-p)/(-q)⌋)
        return -_modulo_int(-p, -q)
    return _modulo_int(p, q) if q else _zero_division()


def ceildiv(p: Dim, q: Dim) -> Dim:
    """⌈p/q⌉ = -⌊-p/q⌋"""
    return -floordiv(-p, q)


def _zero_division() -> NoReturn:
    raise ZeroDivisionError("a dim divided by zero")


def _toward_zero(c: int, k: int) -> int:
    """Returns c/k rounded toward zero: the rest, c - k·(c/k), keeps the sign of c."""
    return c // k if c >= 0 else -(-c // k)


def _nearest(c: int, k: int) -> int:
    """The integer t for which -k/2 < c - k·t <= k/2."""
    return -((k // 2 - c) // k)


def _wholes(p: Term, k: int) -> Dim:
    """s, such that p - k·s has a constant in (-k/2, k/2] and all other coefficients in (-k, k).

    The constant is unique modulo k; the others keep their sign, so that `3*h//4` and `(a - b)//2` stay as
    they were written (a unique residue would make `h - (h - 1)//4 - 1` and `(a + b)//2 - b` of them).
    """
    acc = {mono: _toward_zero(c, k) if mono else _nearest(c, k) for mono, c in p.terms}
    return _build(acc, p.modular)


def _span(p: Term) -> tuple[int, int] | None:
    """Bounds of Σ cᵢ·(xᵢ % mᵢ) + c with integers mᵢ > 0, from 0 <= x % m <= m - 1; None for other terms."""
    low = high = 0
    for mono, c in p.terms:
        if not mono:
            low, high = low + c, high + c
            continue
        atom = mono[0]
        if len(mono) > 1 or isinstance(atom, Symbol) or atom.op != "%" or not isinstance(atom.args[1], int):
            return None
        reach = c * (atom.args[1] - 1)
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high


def _common(p: Term, k: int) -> int:
    """The greatest common divisor of k and the coefficients, but for the constant."""
    return gcd(k, *(c for mono, c in p.terms if mono))


def _shrink(p: Term, g: int) -> Dim:
    """x + ⌊c/g⌋ of p = g·x + c"""
    return _build({mono: c // g for mono, c in p.terms}, p.modular)


def _floordiv_int(p: Dim, k: int) -> Dim:
    """⌊p/k⌋ for an integer k > 0, by the first of these that applies, n standing for integers:

    - constant range: ⌊low/k⌋ = ⌊high/k⌋ where low <= p <= high, and ⌊·/k⌋ is monotone
    - whole parts: ⌊(k·s + r)/k⌋ = s + ⌊r/k⌋
    - common factor: ⌊(g·x + c)/(g·d)⌋ = ⌊⌊(g·x + c)/g⌋/d⌋ = ⌊(x + ⌊c/g⌋)/d⌋
    - sign: ⌊p/k⌋ = -⌈-p/k⌉ = -⌊(k - 1 - p)/k⌋ where the coefficients but for the constant add up to less
      than 0: `-(-h//4)` is `(h + 3)//4`, and `(b - a)//2` stays as it is
    - `_unnest`, `_unmod`
    """
    if isinstance(p, int) or k == 1:
        return p // k if isinstance(p, int) else p
    if p.modular and (span := _span(p)) and span[0] // k == span[1] // k:
        return span[0] // k
    whole = _wholes(p, k)
    if whole != 0:
        return whole + _floordiv_int(p - k * whole, k)
    if (g := _common(p, k)) > 1:
        return _floordiv_int(_shrink(p, g), k // g)
    if sum(c for mono, c in p.terms if mono) < 0:
        return -_floordiv_int(k - 1 - p, k)
    if (flat := _unnest(p, k)) is not None:
        return _floordiv_int(*flat)
    if p.modular and (shorter := _unmod(p, k)) is not None:
        return shorter
    return lone(Apply("//", (p, k)))


def _unnest(p: Term, k: int) -> tuple[Dim, int] | None:
    """⌊(A + ⌊n/a⌋)/k⌋ = ⌊(a·A + n)/(a·k)⌋ for integers a, k > 0

    since A + ⌊n/a⌋ = ⌊(a·A + n)/a⌋ and ⌊⌊m/a⌋/k⌋ = ⌊m/(a·k)⌋. And -⌊n/a⌋ = ⌈-n/a⌉ = ⌊(a - 1 - n)/a⌋.
    """
    for mono, c in p.terms:
        if len(mono) == 1 and abs(c) == 1:
            atom = mono[0]
            if isinstance(atom, Apply) and atom.op == "//" and isinstance(atom.args[1], int):
                n, a = atom.args[0], atom.args[1]
                rest = p - c * lone(atom)
                return a * rest + (n if c == 1 else a - 1 - n), a * k
    return None


def _unmod(p: Term, k: int) -> Dim | None:
    """⌊(A + c·(x % m))/k⌋ = ⌊(A + c·x)/k⌋ - (c·m/k)·⌊x/m⌋ where k divides c·m, as x % m = x - m·⌊x/m⌋

    applied where A + c·x is shorter than A + c·(x % m): `(h - h % 32)//32` is `h//32`.
    """
    for c, x, m, rest in _mods(p, k):
        plain = rest + c * x
        if len(coefficients(plain)) < len(p.terms):
            return floordiv(plain, k) - c * m // k * floordiv(x, m)
    return None


def _mods(p: Term, k: int) -> Iterator[tuple[int, Dim, int, Dim]]:
    """(c, x, m, rest) for each c·(x % m) of p with k | c·m and p = c·(x % m) + rest"""
    for mono, c in p.terms:
        if len(mono) == 1 and isinstance(atom := mono[0], Apply) and atom.op == "%":
            x, m = atom.args
            if isinstance(m, int) and c * m % k == 0:
                yield c, x, m, p - c * lone(atom)


def _modulo_int(p: Dim, k: int) -> Dim:
    """p % k for an integer k > 0, by the first of these that applies:

    - constant quotient: p % k = p - k·t where p lies in a known range on which ⌊p/k⌋ = t
    - p % k depends on p modulo k only: coefficients reduced to (-k/2, k/2], and c·(x % m) replaced by
      c·x where k | c·m, for it is c·x - c·m·⌊x/m⌋
    - common factor: (g·x + c) % (g·d) = g·((x + ⌊c/g⌋) % d) + c % g; with y = x + ⌊c/g⌋ the left-hand
      number is g·y + c % g = g·d·⌊y/d⌋ + g·(y % d) + c % g, and 0 <= g·(y % d) + c % g < g·d
    """
    if isinstance(p, int) or k == 1:
        return p % k if isinstance(p, int) else 0
    if p.modular and (span := _span(p)) and span[0] // k == span[1] // k:
        return p - span[0] // k * k
    if p.modular and (mod := next(_mods(p, k), None)):
        c, x, _, rest = mod
        return _modulo_int(rest + c * x, k)
    reduced = _build({mono: c - k * _nearest(c, k) for mono, c in p.terms}, p.modular)
    if reduced != p:
        return _modulo_int(reduced, k)
    if (g := _common(p, k)) > 1:
        return g * _modulo_int(_shrink(p, g), k // g) + constant_part(p) % g
    return lone(Apply("%", (p, k)))


# --- division by a term ----------------------------------------------------------------------------------


@lru_cache(maxsize=REMEMBERED)
def divide(p: Dim, q: Dim) -> tuple[Dim, Dim]:
    """(s, r) with p = s·q + r and no monomial of r divisible by the leading one of q, coefficients included.

    Schoolbook division, leading monomial by leading monomial; every step keeps p = s·q + r + rest and removes
    the leading monomial of the rest, so it ends. Beyond DIVISION_STEPS the answer is (0, p).
    """
    if q == 0:
        _zero_division()
    lead, unit = coefficients(q)[0]
    left = dict(coefficients(p))
    queue = [(_rank(term), term[0]) for term in left.items()]  # sorted, hence a heap
    quotient: dict[Mono, int] = {}
    rest: dict[Mono, int] = {}
    steps = 0
    while queue:
        _, mono = heapq.heappop(queue)
        c = left.pop(mono, 0)
        if not c:
            continue
        factor = _cofactor(mono, lead) if c % unit == 0 else None
        if factor is None:
            rest[mono] = c
            continue
        steps += 1
        if steps > DIVISION_STEPS:
            return 0, p
        quotient[factor] = c // unit
        for n, b in coefficients(q)[1:]:
            product = _joined(factor, n)
            if product not in left:
                heapq.heappush(queue, (_rank((product, 0)), product))
            left[product] = left.get(product, 0) - c // unit * b
    modular = any(isinstance(dim, Term) and dim.modular for dim in (p, q))
    return _build(quotient, modular), _build(rest, modular)


def _cofactor(mono: Mono, divisor: Mono) -> Mono | None:
    """mono / divisor, if it is a monomial"""
    left = list(mono)
    for atom in divisor:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


def _shared(mono: Mono, other: Mono) -> Mono:
    """The greatest common divisor of two monomials."""
    left = list(other)
    kept = []
    for atom in mono:
        if atom in left:
            left.remove(atom)
            kept.append(atom)
    return tuple(kept)


def _cancel(p: Dim, q: Term) -> tuple[Dim, Dim, Dim]:
    """(f, p/f, q/f) for the greatest monomial f, integer content included, that divides every term of both"""
    terms = (*q.terms, *coefficients(p))
    mono = terms[0][0]
    for other, _ in terms:
        if not mono:
            break
        mono = _shared(mono, other)
    content = gcd(*(c for _, c in terms))
    if not mono and content == 1:
        return 1, p, q
    return _build({mono: content}, q.modular), _over(p, mono, content), _over(q, mono, content)


def _over(dim: Dim, mono: Mono, content: int) -> Dim:
    """The dim divided by a monomial that divides each of its terms."""
    acc: dict[Mono, int] = {}
    for whole, c in coefficients(dim):
        left = list(whole)
        for atom in mono:
            left.remove(atom)
        acc[tuple(left)] = c // content
    return _build(acc, isinstance(dim, Term) and dim.modular)


def _floordiv_term(p: Dim, q: Term) -> Dim:
    """⌊p/q⌋ where q != 0, by the first of these that applies:

    - sign: p/q = (-p)/(-q), so that the leading coefficient of q is positive
    - division: ⌊(s·q + r)/q⌋ = s + ⌊r/q⌋
    - common factor: (f·p)/(f·q) = p/q, where f·q != 0 and so f != 0 and q != 0
    """
    if q.terms[0][1] < 0:
        return _floordiv_term(-p, -q)
    whole, rest = divide(p, q)
    if rest == 0:
        return whole
    factor, above, below = _cancel(rest, q)
    if whole != 0 or factor != 1:
        return add(whole, floordiv(above, below))
    return lone(Apply("//", (rest, q)))


def _modulo_term(p: Dim, q: Term) -> Dim:
    """p % q = p - q·⌊p/q⌋ where q != 0, by the first of these that applies:

    - sign: p - q·⌊p/q⌋ = -(-p - (-q)·⌊(-p)/(-q)⌋) = -((-p) % (-q)): the leading coefficient of q positive
    - division: (s·q + r) % q = s·q + r - q·(s + ⌊r/q⌋) = r % q
    - common factor: (f·p) % (f·q) = f·p - f·q·⌊p/q⌋ = f·(p % q)
    """
    if q.terms[0][1] < 0:
        return -_modulo_term(-p, -q)
    whole, rest = divide(p, q)
    if rest == 0:
        return 0
    factor, above, below = _cancel(rest, q)
    if whole != 0 or factor != 1:
        return multiply(factor, modulo(above, below))
    return lone(Apply("%", (rest, q)))


# --- min and max -----------------------------------------------------------------------------------------


def minimum(*dims: Dim) -> Dim:
    """Returns the least of the dims, at least one."""
    return _extremum("min", min, dims)


def maximum(*dims: Dim) -> Dim:
    """Returns the greatest of the dims, at least one."""
    return _extremum("max", max, dims)


def _extremum(op: str, pick: Callable[[int, int], int], dims: tuple[Dim, ...]) -> Dim:
    """min and max are associative, commutative and idempotent: nested ones flatten, arguments are a set.

    Addition distributes over them. So min(x + a, x + b) = x + min(a, b): arguments that differ by an integer
    are one; and min(x, y) + c = min(x + c, y + c): nested ones flatten with their constant. They absorb each
    other: max(x, min(x, y)) = x.
    """
    if not dims:
        raise ValueError(f"{op} of no dims")
    constants: dict[Dim, int] = {}
    for dim in _flattened(op, dims):
        c = constant_part(dim)
        varying = dim - c
        constants[varying] = pick(constants[varying], c) if varying in constants else c
    kept = (add(dim, c) for dim, c in constants.items() if not _absorbed(op, pick, dim, constants))
    args = sorted(kept, key=_argument_rank)
    return args[0] if len(args) == 1 else lone(Apply(op, tuple(args)))


def _absorbed(op: str, pick: Callable[[int, int], int], dim: Dim, constants: Mapping[Dim, int]) -> bool:
    """Returns whether other arguments absorb this one.

    An argument min(x, y) + c of a max is never greater than x + c' with c <= c', if that is an argument, too.
    Likewise max(x, y) + c in a min, with c >= c'.
    """
    atom = lone_atom(dim)
    if not isinstance(atom, Apply) or {op, atom.op} != {"min", "max"}:
        return False
    for arg in atom.args:
        c = constant_part(arg)
        other = constants.get(arg - c)
        if other is not None and pick(other, c + constants[dim]) == other:
            return True
    return False


def _flattened(op: str, dims: Iterable[Dim]) -> Iterator[Dim]:
    """Yields the arguments, with those of a nested application of the same operation, which is flat already,
    in its place.
    """
    for dim in dims:
        c = constant_part(dim)
        atom = lone_atom(dim - c)
        if isinstance(atom, Apply) and atom.op == op:
            yield from (arg + c for arg in atom.args)
        else:
            yield dim


def _argument_rank(dim: Dim) -> tuple[bool, str]:
    return isinstance(dim, int), plain_text(dim)


# --- exponentials ----------------------------------------------------------------------------------------


MOST_BASE: Final = 1024
"""Powers of larger numbers with an exponent that is a term are no dims."""
MOST_EXPONENT: Final = 63
"""Larger exponents count as this one: 2**63 is no size of a tensor."""


def exponential(base: Dim, exponent: Dim) -> Dim:
    """Returns base**e for an integer base of at least 2, where e is the exponent if that is from 0 to
    MOST_EXPONENT, and the nearer of the two otherwise.
    """
    if not isinstance(base, int) or base < 2:
        raise ValueError(f"expected a base of at least 2, got {base}")
    if isinstance(exponent, int):
        return _PYTHON["**"](base, exponent)
    return lone(Apply("**", (base, exponent)))


# --- square roots ----------------------------------------------------------------------------------------


def square_root(p: Dim) -> Dim:
    """The greatest integer r with r*r <= p; 0 where p is negative."""
    return isqrt(max(p, 0)) if isinstance(p, int) else lone(Apply("isqrt", (p,)))


def exact_root(p: Dim) -> Dim | None:
    """A dim r with r*r = p, of either sign, where p is the square of a polynomial.

    Its terms are found one after the other, leading first: with r the sum of those found so far, the next is
    the leading term of p - r*r divided by twice that of r.
    """
    if isinstance(p, int):
        return isqrt(p) if p >= 0 and isqrt(p) ** 2 == p else None
    (mono, c), steps = p.terms[0], len(p.terms)
    half = mono[::2]
    if c < 0 or isqrt(c) ** 2 != c or _joined(half, half) != mono:
        return None
    lead = isqrt(c)
    found: Dim = _times_mono(half, lead)
    for _ in range(steps):
        rest = p - found * found
        if rest == 0:
            return found
        next_mono, next_c = coefficients(rest)[0]
        factor = _cofactor(next_mono, half)
        if factor is None or next_c % (2 * lead):
            return None
        found = found + _times_mono(factor, next_c // (2 * lead))
    return None


def _times_mono(mono: Mono, c: int) -> Dim:
    result: Dim = c
    for atom in mono:
        result = multiply(result, lone(atom))
    return result


# --- floats ----------------------------------------------------------------------------------------------


LARGEST_FLOAT: Final = 1 << 64
"""Larger numbers, which no integer of a tensor is, are not rounded."""


def nearest_float(p: int, digits: int) -> int:
    """Returns p as a float with so many binary digits holds it: the nearest integer whose digits after those
    are 0, of two the one with an even last digit.
    """
    unit = 1 << max(abs(p).bit_length() - digits, 0)
    if unit == 1 or abs(p) > LARGEST_FLOAT:
        return p
    down, rest = divmod(p, unit)
    return (down + (2 * rest + down % 2 > unit)) * unit


def least_rounded(bound: int, digits: int) -> int:
    """Returns the least integer whose nearest float is at least a number: rounding keeps order."""
    unit = 1 << max(abs(bound).bit_length() - digits + 1, 0)
    low, high = bound - unit, bound + unit
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if nearest_float(middle, digits) >= bound else (middle + 1, high)
    return low


def rounded(p: Dim, digits: Dim) -> Dim:
    """Returns `nearest_float(p, digits)`. Negatives are as far from 0, and what was rounded to no more digits
    stays.
    """
    if not isinstance(digits, int) or digits < 1:
        raise ValueError(f"expected a positive number of digits, got {digits}")
    if isinstance(p, int):
        return nearest_float(p, digits)
    sign = 1 if p.terms[0][1] > 0 else -1
    atom = lone_atom(sign * p)
    if isinstance(atom, Apply) and atom.op == "rounded" and atom.args[1] in range(digits + 1):
        return p
    return sign * lone(Apply("rounded", (sign * p, digits)))


BUILD: Final[Mapping[str, Callable[..., Dim]]] = {
    "//": floordiv, "%": modulo, "min": minimum, "max": maximum, "isqrt": square_root, "rounded": rounded,
    "**": exponential,
}
"""The function that builds an application, by its operation."""


# --- text ------------------------------------------------------------------------------------------------


class _PlainText:
    """Writes dims with Python's operators on integers and the functions of the language, such that
    `syntax.parse_dim` reads the same dim.
    """

    def dim(self, dim: Dim) -> str:
        return plain_text(dim)

    def atom(self, atom: Atom) -> str:
        return atom.text

    def sum(self, terms: Iterable[tuple[Mono, int]]) -> str:
        """Returns the text of a sum of monomials: `2*h + w - 1`."""
        return sum_text([self.product(mono, c) for mono, c in terms])

    def product(self, mono: Mono, c: int) -> Product:
        """Returns c·mono. A `//` or `%` with other factors is in parentheses."""
        if len(mono) == 1 and abs(c) == 1:
            return Product(c < 0, self.atom(mono[0]), _is_division(mono[0]))
        number = [_number_text(abs(c))] if abs(c) != 1 or not mono else []
        return Product(c < 0, _product_text(number, map(self.factor, mono)))

    def factor(self, atom: Atom) -> str:
        return f"({self.atom(atom)})" if _is_division(atom) else self.atom(atom)

    def application(self, op: str, args: tuple[Dim, ...]) -> str:
        if op in ("min", "max", "isqrt", "rounded"):
            return f"{op}({', '.join(map(self.dim, args))})"
        left, right = self.dividend(args[0]), self.divisor(args[1])
        if op == "ceil":
            return f"ceil({left}/{right})"
        if op == "**":
            return f"{left}**{right}"
        return f"{left}//{right}" if op == "//" else f"{left} % {right}"

    def dividend(self, dim: Dim) -> str:
        """A dividend: products of symbols and of functions need no parentheses."""
        terms = coefficients(dim)
        bare = len(terms) <= 1 and all(c > 0 and not any(map(_is_division, mono)) for mono, c in terms)
        return self.dim(dim) if bare else f"({self.dim(dim)})"

    def divisor(self, dim: Dim) -> str:
        """A divisor: only integers, symbols and functions need no parentheses. Integer ones are positive."""
        atom = lone_atom(dim)
        bare = isinstance(dim, int) or (atom is not None and not _is_division(atom))
        return self.dim(dim) if bare else f"({self.dim(dim)})"


class _ReadableText(_PlainText):
    """Writes dims as people do."""

    def dim(self, dim: Dim) -> str:
        return str(dim) if isinstance(dim, Term) else _number_text(dim)

    def atom(self, atom: Atom) -> str:
        if isinstance(atom, Symbol) or atom.is_abbreviated:
            return atom.text
        return self.application(atom.op, atom.args)


class Product(NamedTuple):
    """The text of a summand without its sign; and whether it is a `//` or `%` that stands alone."""

    negative: bool
    text: str
    divides: bool = False


def products(term: Term) -> tuple[Product, ...]:
    """Returns summands of which the term is the sum, in the shortest text found: the monomials, or
    `(h//2 - 1)*(w//2 - 1)` and `-256`.
    """
    raised = _with_ceilings(term)
    ways = [_summands(way) for way in (raised, term) if isinstance(way, Term)]
    return tuple(_written(*summand) for summand in min(ways, key=_length))


def plain_text(dim: Dim) -> str:
    """Returns the dim in Python's operators on integers and the functions of the language."""
    return dim.text if isinstance(dim, Term) else _number_text(dim)


Factors: TypeAlias = "tuple[int, tuple[Term, ...]]"
"""A number, and terms that it is multiplied by."""


@lru_cache(maxsize=REMEMBERED)
def _summands(term: Term) -> tuple[Factors, ...]:
    best = flat = tuple((c, tuple(map(lone, mono))) for mono, c in term.terms)
    if 1 < len(flat) <= MOST_FACTORED and any(len(mono) > 1 for mono, _ in term.terms):
        for atom in dict.fromkeys(atom for mono, _ in term.terms if len(mono) > 1 for atom in mono):
            found = _factored(term, atom)
            if found is not None and _length(found) < _length(best):
                best = found
    return best


def _factored(term: Term, x: Atom) -> tuple[Factors, ...] | None:
    """Returns the term as (p*x + q)·g + r, where p·g is the coefficient of x, and p an integer; None where x
    has no coefficient that is a term of its own.

    Where x is a factor of every monomial, that is x·g.
    """
    if all(x in mono for mono, _ in term.terms):
        g: Dim = _over(term, (x,), 1)
        other: Dim = lone(x)
        rest: Dim = 0
    else:
        beside = {_without(mono, mono.index(x)): c for mono, c in term.terms if x in mono}
        if any(x in mono for mono in beside):
            return None
        p = gcd(*beside.values())
        g = _build({mono: c // p for mono, c in beside.items()}, term.modular)
        q, rest = divide(_build({m: c for m, c in term.terms if x not in m}, term.modular), g)
        other = add(multiply(p, lone(x)), q)
    if isinstance(g, int) or isinstance(other, int) or add(multiply(g, other), rest) != term:
        return None
    (one, ones), (two, twos) = _product(g), _product(other)
    product = one * two, tuple(sorted((*ones, *twos), key=lambda f: (len(f.terms) > 1, f.text)))
    return product, *(_summands(rest) if isinstance(rest, Term) else [(rest, ())] if rest else [])


def _product(term: Term) -> Factors:
    """Returns the term as a product whose factors that are sums begin with no minus."""
    summands = _summands(term)
    if len(summands) == 1:
        return summands[0]
    content = gcd(*(c for _, c in term.terms))
    content = -content if term.terms[0][1] < 0 else content
    primitive = _over(term, (), content)
    return content, (primitive,) if isinstance(primitive, Term) else ()


def _length(summands: Iterable[Factors]) -> int:
    """Returns the length of the text of their sum."""
    return len(sum_text([_written(*factors) for factors in summands]))


def _written(number: int, factors: tuple[Term, ...]) -> Product:
    atoms = [lone_atom(factor) for factor in factors]
    if abs(number) == 1 and len(atoms) == 1 and atoms[0] is not None:
        return _READABLE.product((atoms[0],), number)
    texts = (f"({sum_text(products(factor))})" if atom is None else _READABLE.factor(atom)
             for factor, atom in zip(factors, atoms, strict=True))
    start = [_number_text(abs(number))] if abs(number) != 1 or not factors else []
    return Product(number < 0, _product_text(start, texts))


def sum_text(summands: Sequence[Product]) -> str:
    """Returns the text of a sum. A `//` or `%` behind the sign that begins it is in parentheses."""
    if not summands:
        return "0"
    first, *others = summands
    parts = [f"-({first.text})" if first.negative and first.divides else f"-{first.text}"
             if first.negative else first.text]
    for negative, text, _ in others:
        parts += " - " if negative else " + ", text
    return "".join(parts)


def _product_text(start: list[str], factors: Iterable[str]) -> str:
    """Returns the product of the texts, equal neighbours as powers."""
    for text, equal in groupby(factors):
        count = len([*equal])
        base = f"({text})" if count > 1 and "**" in text and text[0] != "(" else text
        start.append(text if count == 1 else f"{base}**{count}")
    return "*".join(start)


def _with_ceilings(term: Term) -> Dim:
    """Returns the term with the ceilings that its quotients are.

    No operation simplifies them: they are for texts alone.
    """
    atoms = dict.fromkeys(atom for mono, _ in term.terms for atom in mono)
    found = {atom: parts for atom in atoms if (parts := ceiling(atom)) is not None}
    replaced = {atom: sign * lone(raised) + added for atom, (sign, raised, added) in found.items()}
    if not replaced:
        return term

    def product(mono: Mono, c: Dim) -> Dim:
        return reduce(multiply, (replaced[atom] if atom in replaced else lone(atom) for atom in mono), c)

    return total(product(mono, c) for mono, c in term.terms)


def ceiling(atom: Atom) -> tuple[int, Apply, int] | None:
    """Returns `(sign, c, added)` for a quotient that is `sign*c + added`, where c is a ceiling; else None.

    (p - 1)//k is ⌈p/k⌉ - 1, (p + k - 1)//k is ⌈p/k⌉, and (-p)//k is -⌈p/k⌉, where p has no constant and
    begins with no minus.
    """
    if not isinstance(atom, Apply) or atom.op != "//":
        return None
    dividend, divisor = atom.args
    ways = (dividend + 1, 1, -1), (dividend - divisor + 1, 1, 0), (-dividend, -1, 0)
    for p, sign, added in ways:
        if isinstance(p, Term) and constant_part(p) == 0 and p.terms[0][1] > 0:
            return sign, Apply("ceil", (p, divisor)), added
    return None


def _number_text(n: int) -> str:
    """Python refuses to write thousands of digits in decimal; in a dim they are abbreviated anyway."""
    return str(n) if n.bit_length() <= LONGEST // 2 else hex(n)


def _abbreviated(op: str, text: str) -> str:
    """Returns the short text of an application whose own text is too long; nothing reads it back."""
    from hashlib import blake2b  # which loads OpenSSL

    return f"{_ABBREVIATION}{op} … {blake2b(text.encode(), digest_size=16).hexdigest()}⟩"


_PLAIN: Final = _PlainText()
_READABLE: Final = _ReadableText()
