"""A constraint system as text: to be read, and as SMT-LIB 2, for other solvers.

The SMT-LIB file asks two questions: is a declared input accepted, is a declared input refused? The answers
are the verdict: `sat unsat` is proved, `sat sat` refined, `unsat sat` refuted. Nothing in it comes from our
own solver: it contains each requirement as its rule stated it, under the branches before it.

SMT-LIB's `div` and `mod` have a remainder that is never negative. For a divisor k > 0 that is Python's ⌊p/k⌋;
for k < 0, ⌊p/k⌋ = ⌊(-p)/(-k)⌋.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ..constraints.ir.program import Origin
from ..constraints.ir.system import Condition, Path, System, in_order
from ..constraints.terms.dims import LARGEST_FLOAT, MOST_EXPONENT, Apply, Atom, Dim, Symbol, coefficients
from ..constraints.terms.formula import And, Compare, Formula, Or, free_symbols, implies, negate
from .second_opinion import OpinionQuestion, is_linear

SIMPLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
VERDICTS: Final = {("sat", "unsat"): "proved", ("sat", "sat"): "refined", ("unsat", "sat"): "refuted"}
"""The verdict for each pair of answers."""


class NotExact(ValueError):
    """Raised for a system that is not known in full, so that no file can express it."""


def as_text(system: System) -> str:
    """Returns the system as text for people: the declarations, and for each path its branches and
    requirements in order.
    """
    return "\n".join(_lines(system)) + "\n"


def _lines(system: System) -> Iterator[str]:
    yield f"symbols: {', '.join(system.domain.symbols) or 'none'}"
    yield from (f"  assume {formula}" for formula in system.domain.assumptions)
    for index, path in enumerate(system.paths):
        yield f"path {index}: {path.end.how}" + (f", {path.end.reason}" if path.end.reason else "")
        yield from (f"  data {name}: {known}" for name, known in path.unbacked)
        for _, step in in_order(path.conditions, enumerate(path.constraints)):
            if isinstance(step, Condition):
                yield from _condition(step)
                continue
            node = path.program.nodes[step.node] if step.node >= 0 else None
            where = f"{node.op}, {node.origin}" if node else step.kind
            yield f"  require {step.formula}  # {step.reason}; {where}"
        yield from (f"  {note.code}  # {note.reason}" for note in path.notes)
    if system.incomplete:
        yield f"incomplete: {system.incomplete}"


def _condition(condition: Condition) -> Iterator[str]:
    formula, taken = condition.formula, condition.taken
    asked = "data decide" if formula is None else str(formula if taken else negate(formula))
    yield f"  {'follows' if condition.forced else 'branch'} {asked}  # {condition.origin}"


def as_smt2(system: System) -> str:
    """Returns the system in SMT-LIB 2. Raises NotExact, with the reason, where it is not known in full."""
    requirements = [*_requirements(system)]
    writer = _SmtWriter()
    asserted = [(writer.formula(f), comment) for f, comment in requirements]
    declared = [writer.formula(f) for f in system.domain.assumptions]
    names = {*system.domain.symbols}.union(*(free_symbols(f) for f, _ in requirements))
    names = names.union(*map(free_symbols, system.domain.assumptions))
    lines = ["; is a declared input accepted, and is one refused?", "(set-logic ALL)"]
    lines += [f"(declare-const {_name(name)} Int)" for name in sorted(names)]
    lines += [f"(declare-const {root} Int)" for root in writer.roots]
    lines += [f"(assert {text})" for text in (*writer.definitions, *declared)]
    accepted = [f"(assert {text}) ; {comment}" for text, comment in asserted]
    lines += ["(push 1)", *accepted, "(check-sat)", "(pop 1)"]
    refused = f"(or false {' '.join(f'(not {text})' for text, _ in asserted)})"
    return "\n".join([*lines, "(push 1)", f"(assert {refused})", "(check-sat)", "(pop 1)"]) + "\n"


def as_script(question: OpinionQuestion) -> str:
    """Returns one question in SMT-LIB 2, with a request for the values of all symbols if there are any."""
    writer, names = _SmtWriter(question.linear), question.names
    asserted = [writer.formula(formula) for formula in question.formulas]
    defined = []
    for number, chain in enumerate(question.chains):
        rest = "true" if chain.last else "false"
        for place, (how, formula) in reversed([*enumerate(chain.links)]):
            name = f"chain!{number}!{place}"
            defined.append(f"(define-fun {name} () Bool ({how} {writer.formula(formula)} {rest}))")
            rest = name
        asserted.append(rest)
    lines = [f"; {question.claim}, if this is {question.expected}".replace("\n", " ")]
    logic = "QF_LIA" if question.linear or question.is_linear else "QF_NIA"
    lines += ["(set-option :produce-models true)", f"(set-logic {logic})"]
    lines += [f"(declare-const {_name(name)} Int)" for name in names]
    lines += [f"(declare-const {root} Int)" for root in writer.roots]
    lines += [f"(declare-const {name} Bool)" for name in writer.left_open.values()]
    lines += [*defined, *(f"(assert {text})" for text in (*writer.definitions, *asserted)), "(check-sat)"]
    if names:
        lines.append(f"(get-value ({' '.join(map(_name, names))}))")
    return "\n".join(lines) + "\n"


def _requirements(system: System) -> Iterator[tuple[Formula, str]]:
    """Yields each requirement of each path, for the inputs that follow it, with its origin."""
    if system.incomplete:
        raise NotExact(system.incomplete)
    for path in system.paths:
        reason = _open(path)
        if reason:
            raise NotExact(reason)
        for constraint in path.constraints:
            origin = path.program.nodes[constraint.node].origin if constraint.node >= 0 else Origin()
            yield implies(path.premise, constraint.formula), _comment(constraint.reason, origin)
        if path.end.how == "raised":
            yield negate(path.premise), _comment(path.end.reason, path.end.origin)


def _open(path: Path) -> str:
    """Returns the reason why a path is not known in full; empty where it is."""
    if path.end.how == "gave-up":
        return path.end.reason
    if path.unbacked or path.on_data:
        return "data decide about sizes"
    return next((note.reason for note in path.notes if note.code == "no-rule"), "")


def _comment(reason: str, origin: Origin) -> str:
    return " ".join(f"{reason}; {origin}".split())


def _name(name: str) -> str:
    return name if SIMPLE.fullmatch(name) else f"|{name}|"


class _SmtWriter:
    """Dims and formulas as terms of SMT-LIB."""

    def __init__(self, linear: bool = False) -> None:
        self._linear = linear
        self.left_open: dict[Formula, str] = {}
        """Names of nonlinear comparisons, which may be true or false; a comparison and its negation get
        opposite truths.
        """
        self.roots: list[str] = []
        self.definitions: list[str] = []
        self._root_of: dict[Dim, str] = {}
        self._float_of: dict[Atom, str] = {}

    def formula(self, formula: Formula) -> str:
        match formula:
            case bool():
                return "true" if formula else "false"
            case And(parts):
                return f"(and {' '.join(map(self.formula, parts))})"
            case Or(parts):
                return f"(or {' '.join(map(self.formula, parts))})"
            case Compare() if self._linear and not is_linear(formula):
                contrary = negate(formula)
                if contrary in self.left_open:
                    return f"(not {self.left_open[contrary]})"
                return self.left_open.setdefault(formula, f"open!{len(self.left_open)}")
            case Compare("!=", term):
                return f"(not (= {self.dim(term)} 0))"
            case Compare(op, term):
                return f"({'=' if op == '==' else op} {self.dim(term)} 0)"

    def dim(self, dim: Dim) -> str:
        parts = []
        for mono, c in coefficients(dim):
            factors = [*([_number(c)] if c != 1 or not mono else []), *map(self._atom, mono)]
            parts.append(factors[0] if len(factors) == 1 else f"(* {' '.join(factors)})")
        return "0" if not parts else parts[0] if len(parts) == 1 else f"(+ {' '.join(parts)})"

    def _atom(self, atom: Atom) -> str:
        if isinstance(atom, Symbol):
            return _name(atom.name)
        assert isinstance(atom, Apply)
        if atom.op == "isqrt":
            return self._root(atom.args[0])
        if atom.op == "rounded":
            return self._rounded(atom)
        if atom.op == "**":
            return self._exponential(atom)
        args = [self.dim(arg) for arg in atom.args]
        if atom.op in ("min", "max"):
            found, sign = args[0], "<=" if atom.op == "min" else ">="
            for arg in args[1:]:
                found = f"(ite ({sign} {found} {arg}) {found} {arg})"
            return found
        p, k = args
        quotient = f"(div {p} {k})"
        if not isinstance(atom.args[1], int):
            quotient = f"(ite (> {k} 0) {quotient} (div (- {p}) (- {k})))"
        return quotient if atom.op == "//" else f"(- {p} (* {k} {quotient}))"

    def _root(self, p: Dim) -> str:
        """Returns the name of the r with r*r <= p < (r + 1)*(r + 1); 0 for p < 0."""
        if p not in self._root_of:
            text = self.dim(p)
            r = f"root!{len(self.roots)}"
            self.roots.append(r)
            self._root_of[p] = r
            within = f"(and (>= {r} 0) (<= (* {r} {r}) {text}) (< {text} (* (+ {r} 1) (+ {r} 1))))"
            self.definitions.append(f"(ite (>= {text} 0) {within} (= {r} 0))")
        return self._root_of[p]

    def _exponential(self, atom: Apply) -> str:
        """Returns the name of base**e, by cases of e from 0 to MOST_EXPONENT."""
        if atom not in self._float_of:
            base, exponent = int(str(atom.args[0])), self.dim(atom.args[1])
            found = f"{base**MOST_EXPONENT}"
            for e in reversed(range(MOST_EXPONENT)):
                found = f"(ite (<= {exponent} {e}) {base**e} {found})"
            r = f"power!{len(self._float_of)}"
            self._float_of[atom] = r
            self.roots.append(r)
            self.definitions.append(f"(= {r} {found})")
        return self._float_of[atom]

    def _rounded(self, atom: Apply) -> str:
        """Returns the name of the r = 2**k*q with |p - r| <= 2**k/2, where q is even of two, for the k with
        2**(digits + k - 1) < |p| <= 2**(digits + k); p itself where it has no more digits, or is too large.
        """
        if atom not in self._float_of:
            p, digits = self.dim(atom.args[0]), int(str(atom.args[1]))
            number = len(self._float_of)
            r, q, h = (f"{name}!{number}" for name in ("float", "units", "half"))
            self._float_of[atom] = r
            self.roots += r, q, h
            size, off = (f"(ite (>= {n} 0) {n} (- {n}))" for n in (p, f"(- {p} {r})"))
            known = f"(or (<= {size} {1 << digits}) (> {size} {LARGEST_FLOAT}))"
            self.definitions.append(f"(=> {known} (= {r} {p}))")
            for k in range(1, LARGEST_FLOAT.bit_length() - digits):
                unit, most = 1 << k, 1 << digits + k
                even = f"(=> (= (* 2 {off}) {unit}) (= {q} (* 2 {h})))"
                near = f"(and (= {r} (* {unit} {q})) (<= (* 2 {off}) {unit}) {even})"
                self.definitions.append(f"(=> (and (> (* 2 {size}) {most}) (<= {size} {most})) {near})")
        return self._float_of[atom]


def _number(n: int) -> str:
    return str(n) if n >= 0 else f"(- {-n})"
