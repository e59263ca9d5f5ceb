"""Text to the declared inputs of a program and back, by a grammar of our own: text is never evaluated.

    spec    = line ((";" | newline) line)*
    line    = path ":" tensor | path ":" "int" ["=" dim] | path ":" "float" ["=" value] | path "=" value
    path    = name ("[" (integer | string) "]")*              batch["pixels"], xs[0]
    tensor  = [dtype] "[" [size ("," size)*] "]"              int64[b, 4*h, ?]; a dtype left out is
                                                              float32, unless the program needs another
    size    = "?" | dim | "..." | "*" name                    `?` is a size that nothing else mentions, `...`
                                                              any number of them, `*r` too, under a name
    value   = "True" | "False" | "None" | string | number | "[" [value ("," value)*] "]" | dim

The domain that a spec declares:

- A symbol is at least 1, unless the assumptions about this symbol alone state a lower bound of their own (`0
<= b`, `b == 0`; a bound inside an `or` states none).
- A size that is a term (`h - 3`) is at least 0, and its divisors are not zero.
- `n: int` is an integer input whose value is the symbol `n`, at least 1 like any other. A nested one is named
by its path: that of `cfg["n"]: int` is `cfg_n`, of `sizes[0]: int` it is `sizes_0`.
- The dims of a row are at least 1. `...` in the input `x` is the row `x`: assumptions may mention `rank(x)`,
`x[-1]`, `x[0]` and `numel(x)`, which refer to the row and not to the whole input.
- Every assumption holds.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from math import inf
from typing import Any, Final, NoReturn, TypeAlias

from ..terms import parts, rows
from ..terms.dims import KEYWORDS, Dim, Term, sym, symbols
from ..terms.formula import Formula, all_of, conjuncts, free_symbols, ge
from ..terms.formula_text import defined, parse_condition
from ..terms.intervals import EVERYTHING, interval
from ..terms.syntax import DimSyntaxError, Token, Tokens, parse_expression
from .language import Number, Tensor, Value
from .spec import Declared, InputPath, Spec, Step, quoted
from .system import Domain, ranges_of

Inputs: TypeAlias = "str | Mapping[str, Any] | Iterable[str]"
"""`"x: [b, 3]; n: int"`, `["x: [b, 3]", "n: int"]`, or `{"x": "[b, 3]", "n": "int", "k": 3}`."""

_PLAIN_DTYPES = (
    "float64 float32 float16 bfloat16 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz "
    "complex32 complex64 complex128 int64 int32 int16 int8 uint64 uint32 uint16 uint8 bool"
)
DTYPES: Final[Mapping[str, str]] = {
    **{name: name for name in _PLAIN_DTYPES.split()},
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16",
    "double": "float64", "float": "float32", "half": "float16",
    "cdouble": "complex128", "cfloat": "complex64",
    "i64": "int64", "i32": "int32", "i16": "int16", "i8": "int8", "long": "int64", "short": "int16",
    "u64": "uint64", "u32": "uint32", "u16": "uint16", "u8": "uint8",
}
"""For every spelling of a dtype in a spec, torch's name. `int` is missing, since it could mean any of
several.
"""

_CONSTANTS: Final[Mapping[str, bool | None]] = {"True": True, "False": False, "None": None}
_RESERVED = frozenset({*_CONSTANTS, *KEYWORDS})
MAX_INDEX: Final = 999


class SpecError(ValueError):
    """Raised for a spec or an assumption that cannot be read or makes no sense.

    Says where, what is wrong, and what to do.
    """

    def __init__(self, problem: str, text: str = "", column: int = 0, hint: str = "") -> None:
        self.problem = problem
        self.text = text
        self.column = column
        """Counts from 1; 0 where the error is about the text as a whole."""
        self.hint = hint
        where = f" at column {self.column}" if self.column else ""
        told = f"{problem}{where} of {text!r}" if text else problem
        super().__init__(f"{told}; {hint}" if hint else told)

    def __reduce__(self) -> tuple[object, ...]:
        return SpecError, (self.problem, self.text, self.column, self.hint)


def parse_spec(inputs: Inputs, assume: str | Iterable[str] = ()) -> Spec:
    """Returns the inputs and the domain that texts declare. Raises SpecError."""
    reader = _Reader(_statements(inputs))
    declared = reader.read()
    given = _assumptions((assume,) if isinstance(assume, str) else assume, reader)
    ranges = ranges_of(given)
    lows = [ge(sym(n), 1) for n in reader.symbols if ranges.get(n, EVERYTHING)[0] == -inf]
    known = ranges_of((*lows, *given))
    sizes = [ge(dim, 0) for dim in reader.terms if interval(dim, known)[0] < 0]
    domain = Domain(tuple(reader.symbols), conjuncts(all_of((*lows, *reader.divisors, *sizes, *given))))
    if reader.rows:
        domain = replace(domain, symbols=(*domain.symbols, *(str(parts.rank(name)) for name in reader.rows)))
        domain = domain.deepened(rows.Deeper(rows.mentioned(given)))
    return Spec(declared, domain)


def write_spec(spec: Spec) -> tuple[str, ...]:
    """Returns one line per input, which `parse_spec` reads back as the same input."""
    return tuple(f"{d.name}{_type_text(d)}" for d in spec.inputs)


def suggestion(name: str, known: Iterable[str]) -> str:
    """Returns a hint at the name that may have been meant, `did you mean 'h'?`, or an empty text."""
    candidates = [*known]
    close = difflib.get_close_matches(name, candidates, n=1, cutoff=0.5)
    by_case = [c for c in candidates if c.lower() == name.lower()]
    return f"did you mean {(by_case or close)[0]!r}?" if by_case or close else ""


def _type_text(declared: Declared) -> str:
    match declared.type:
        case Tensor() as tensor:
            return f": {tensor}"
        case Number(kind):
            return f": {kind}"
        case Term() as term:
            return ": int" if term == sym(_symbol_of(declared.path)) else f": int = {term}"
        case literal:
            return f"={_literal_text(literal)}"


def _literal_text(value: Value) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_literal_text, value))}]"
    return quoted(value) if isinstance(value, str) else str(value)


def _statements(inputs: Inputs) -> list[tuple[str, Any]]:
    """Returns pairs (text, literal): a text of lines, or a path with the literal that a mapping gives it."""
    if isinstance(inputs, str):
        return [(line, ...) for line in inputs.splitlines()]
    if isinstance(inputs, Mapping):
        return [_item(path, value) for path, value in inputs.items()]
    statements: list[tuple[str, Any]] = []
    for line in inputs:
        if not isinstance(line, str):
            raise SpecError(f"an input is declared by a text, not by {line!r}")
        statements += _statements(line)
    return statements


def _item(path: Any, value: Any) -> tuple[str, Any]:
    if not isinstance(path, str):
        raise SpecError(f"an input is named by a text, not by {path!r}")
    if isinstance(value, str):
        return f"{path}{'' if value.lstrip().startswith('=') else ': '}{value}", ...
    return path, _literal(path, value)


def _literal(path: str, value: Any) -> Value:
    if isinstance(value, list | tuple):
        return tuple(_literal(path, v) for v in value)
    if value is None or type(value) in (bool, int, float):
        return value  # type: ignore[no-any-return]
    raise SpecError(
        f"the input {path!r} is given as {type(value).__name__} {value!r}",
        hint='declare its type as a text ("float32[b, 3]"), or give a number, a boolean or None',
    )


class _Reader:
    """Reads statements one by one and collects the symbols and conditions in them."""

    def __init__(self, statements: list[tuple[str, Any]]) -> None:
        self.statements = statements
        self.symbols: dict[str, None] = {}
        self.sizes: dict[str, None] = {}
        """The symbols that occur in sizes of tensors."""
        self.terms: dict[Term, None] = {}
        """The sizes that are not integers."""
        self.divisors: list[Formula] = []
        """Conditions that no divisor is zero."""
        self.rows: dict[str, None] = {}
        """The names of rows; each row represents any number of sizes."""
        self._values: list[tuple[str, Token, str]] = []
        """Symbols that occur in values: some other input has to declare them."""
        self._fixed: dict[str, tuple[str, Token]] = {}
        """Integer inputs whose value is a dim of their own; their names are no symbols."""
        self._paths: dict[InputPath, None] = {}
        names = {n for text, _ in statements for n in re.findall(r"[A-Za-z_]\w*", text)}
        self._anonymous = (f"_{i}" for i in range(1, 1 << 20) if f"_{i}" not in names)
        self._tokens = Tokens("")

    def read(self) -> tuple[Declared, ...]:
        declared: list[Declared] = []
        for text, literal in self.statements:
            try:
                self._tokens = Tokens(text)
                declared.extend([self._given(literal)] if literal is not ... else self._lines())
            except DimSyntaxError as error:
                raise SpecError(error.problem, error.text, error.column, _hint(error)) from None
        self._check_names()
        self._check_places()
        return tuple(declared)

    def _given(self, literal: Value) -> Declared:
        path = self._path()
        self._tokens.expect_end()
        return Declared(path, literal)

    def _lines(self) -> Iterator[Declared]:
        tokens = self._tokens
        while tokens.peek().kind != "end":
            if tokens.accept(";"):
                continue
            yield self._line()
            if tokens.peek().kind != "end" and not tokens.at(";"):
                raise tokens.expected("';' or the end")

    def _line(self) -> Declared:
        tokens = self._tokens
        start = tokens.peek()
        path = self._path()
        if tokens.accept("="):
            return Declared(path, self._value())
        if not tokens.accept(":"):
            raise tokens.expected("':' and a type, or '=' and a value")
        word = tokens.peek()
        scalar = _SCALARS.get(word.text) if tokens.peek(1).text != "[" else None
        if scalar is None or word.kind != "name":
            return Declared(path, self._tensor(path), open_dtype=word.text == "[")
        tokens.next()
        return Declared(path, scalar(self, path, start))

    # ---- paths

    def _path(self) -> InputPath:
        tokens = self._tokens
        start = tokens.peek()
        if start.text in _RESERVED:
            raise tokens.expected("the name of an input")
        path: list[Step] = [tokens.expect_kind("name", "the name of an input").text]
        while tokens.accept("["):
            step = tokens.peek()
            if step.kind == "string":
                path.append(step.text[1:-1])
            elif step.kind == "int" and len(step.text) <= len(str(MAX_INDEX)):
                path.append(int(step.text))
            else:
                raise tokens.expected(f"a quoted key or an index up to {MAX_INDEX}")
            tokens.next()
            tokens.expect("]")
        found = tuple(path)
        if found in self._paths:
            self._fail(f"the input {Declared(found, None).name} is declared twice", start)
        self._paths[found] = None
        return found

    def _check_places(self) -> None:
        """Checks that an input with parts is declared by its parts only, is a list or a dict, and that a list
        has no gaps.
        """
        steps: dict[InputPath, list[Step]] = {}
        for path in self._paths:
            for i in range(1, len(path)):
                steps.setdefault(path[:i], []).append(path[i])
        for holder, inner in steps.items():
            name = Declared(holder, None).name
            if holder in self._paths:
                raise SpecError(f"{name} is declared, and so is a part of it", hint="declare the parts alone")
            indices = {step for step in inner if isinstance(step, int)}
            if indices and len(indices) < len(set(inner)):
                raise SpecError(f"{name} has keys and indices", hint="it can be a dict or a list, not both")
            if missing := set(range(max(indices, default=-1))) - indices:
                raise SpecError(
                    f"{name}[{min(missing)}] is not declared, though {name}[{max(indices)}] is",
                    hint=f"declare it, or write {name}[{min(missing)}]=None",
                )

    # ---- tensors

    def _tensor(self, path: InputPath) -> Tensor:
        tokens = self._tokens
        dtype = "float32"
        if not tokens.at("["):
            dtype = self._dtype()
        if not tokens.at("["):
            raise tokens.expected("'[' and the sizes of a tensor")
        tokens.next()
        sizes: list[Dim] = []
        found = 0
        while not tokens.accept("]"):
            start = tokens.peek()
            sizes.append(self._row(path) if tokens.at("...", "*") else self._size())
            found += rows.row_of(sizes[-1]) is not None
            if found > 1:
                self._fail("a second row in one shape", start, "a shape has at most one `...` or `*name`")
            if not tokens.at("]"):
                tokens.expect(",", "]")
        return Tensor(tuple(sizes), dtype)

    def _row(self, path: InputPath) -> Dim:
        """Returns a row, any number of sizes: `...` is named after the input, `*r` has its own name."""
        tokens = self._tokens
        if tokens.next().text == "*":
            name = tokens.expect_kind("name", "the name of a row").text
        else:
            name = _symbol_of(path)
        self.rows[name] = None
        return rows.as_dim((parts.RowPart(name),))

    def _dtype(self) -> str:
        tokens = self._tokens
        word = tokens.expect_kind("name", "a dtype, 'int', 'float' or '['")
        if word.text == "torch" and tokens.accept("."):
            word = tokens.expect_kind("name", "a dtype")
        if word.text not in DTYPES:
            integers = "write int64[...] or int32[...]" if word.text == "int" else ""
            known = f"dtypes are {', '.join(dict.fromkeys(DTYPES.values()))}"
            hint = integers or suggestion(word.text, DTYPES) or known
            self._fail(f"{word.text!r} is not a dtype", word, hint)
        return DTYPES[word.text]

    def _size(self) -> Dim:
        tokens = self._tokens
        if tokens.accept("?"):
            name = next(self._anonymous)
            self.symbols[name] = self.sizes[name] = None
            return sym(name)
        start = tokens.peek()
        dim = self._dim(self.sizes)
        if isinstance(dim, int) and dim < 0:
            self._fail(f"a size cannot be {dim}", start, "write `?` for a size that is not known")
        if isinstance(dim, Term):
            self.terms[dim] = None
            self.divisors.append(defined(dim))
        return dim

    def _dim(self, *mentioned_in: dict[str, None]) -> Dim:
        """Returns a dim; its symbols are remembered in the order in which they are written."""
        first = self._tokens.position
        dim = parse_expression(self._tokens)
        found = symbols(dim)
        for token in self._between(first):
            if token.kind == "name" and token.text in _RESERVED:
                self._fail(f"{token.text} is not a size", token)
            if token.text in found:
                for names in (self.symbols, *mentioned_in):
                    names[token.text] = None
        return dim

    def _between(self, first: int) -> list[Token]:
        """The tokens from a position up to the current one."""
        last = self._tokens.position
        self._tokens.rewind(first)
        return [self._tokens.next() for _ in range(last - first)]

    # ---- scalars and values

    def _integer(self, path: InputPath, start: Token) -> Value:
        if not self._tokens.accept("="):
            name = _symbol_of(path)
            self.symbols[name] = None
            return sym(name)
        dim = self._dim()
        self.divisors.append(defined(dim))
        if isinstance(dim, Term) and dim != sym(_symbol_of(path)):
            self._fixed[_symbol_of(path)] = self._tokens.source, start
        return dim

    def _float(self, path: InputPath, start: Token) -> Value:
        if not self._tokens.accept("="):
            return Number("float")
        value = self._value()
        if isinstance(value, bool) or not isinstance(value, int | float):
            hint = f"write {Declared(path, None).name}={value}"
            self._fail("the value of a float is a number", start, hint)
        return float(value)

    def _needs_value(self, path: InputPath, start: Token) -> NoReturn:
        name = Declared(path, None).name
        hint = f'write {name}=True, or {name}="…"'
        self._fail("a bool or a text has to be given by its value", start, hint)

    def _value(self) -> Value:
        tokens = self._tokens
        token = tokens.peek()
        if token.kind == "name" and token.text in _CONSTANTS:
            return _CONSTANTS[tokens.next().text]
        if token.kind == "string":
            return tokens.next().text[1:-1]
        if tokens.accept("["):
            values: list[Value] = []
            while not tokens.accept("]"):
                values.append(self._value())
                if not tokens.at("]"):
                    tokens.expect(",", "]")
            return tuple(values)
        sign = -1.0 if token.text == "-" and tokens.peek(1).kind == "float" else 1.0
        if sign < 0:
            tokens.next()
        if tokens.peek().kind == "float":
            return sign * float(tokens.next().text)
        first = tokens.position
        dim = self._dim()
        self._values += [(tokens.source, t, t.text) for t in self._between(first) if t.text in symbols(dim)]
        self.divisors.append(defined(dim))
        return dim

    # ---- names

    def _check_names(self) -> None:
        declared = {*self.sizes, *(_symbol_of(p) for p in self._paths)}
        for text, token, name in self._values:
            if name not in declared:
                hint = f'a text is quoted: "{name}"'
                raise SpecError(f"{name!r} is not a symbol of another input", text, token.column, hint)
        for name, (text, token) in self._fixed.items():
            if name in self.symbols:
                hint = f"give the symbol another name, or declare `{name}: int` and assume the equation"
                problem = f"{name!r} is a symbol and an input with a value of its own"
                raise SpecError(problem, text, token.column, hint)

    def _fail(self, problem: str, token: Token, hint: str = "") -> NoReturn:
        raise SpecError(problem, self._tokens.source, token.column, hint)

    def unknown_symbol(self, name: str, text: str) -> NoReturn:
        """Raises the error for an assumption about a symbol that no input mentions."""
        at = re.search(rf"(?<![A-Za-z0-9_]){re.escape(name)}(?![A-Za-z0-9_])", text)
        known = ", ".join((*self.symbols, *(str(parts.rank(row)) for row in self.rows))) or "none"
        hint = suggestion(name, self.symbols)
        if name in self._fixed:
            hint = f"{name!r} is an input with a value of its own"
        raise SpecError(
            f"no input mentions the symbol {name!r}", text, at.start() + 1 if at else 0,
            hint or f"the symbols are {known}",
        )


_SCALARS: Final[Mapping[str, Callable[[_Reader, InputPath, Token], Value]]] = {
    "int": _Reader._integer, "float": _Reader._float,
    "bool": _Reader._needs_value, "str": _Reader._needs_value,
}


def _symbol_of(path: InputPath) -> str:
    """Returns the name of the symbol that is an integer input's value: its path, joined."""
    return "_".join(re.sub(r"\W", "_", str(step), flags=re.ASCII) for step in path)


def _hint(error: DimSyntaxError) -> str:
    """Returns advice for the likeliest slips, or an empty text."""
    if re.search(r"\[[^]]*$", error.text) and "the end" in error.problem:
        return "a '[' is not closed"
    if re.match(r"\s*[\w.]*\[", error.text) and ":" not in error.text:
        return "an input has a name: x: float32[b, 3]"
    return ""


def _assumptions(texts: Iterable[str], reader: _Reader) -> tuple[Formula, ...]:
    """Returns the conjuncts of all assumptions. `;` separates several in one text."""
    found: list[Formula] = []
    for text in texts:
        if not isinstance(text, str):
            raise SpecError(f"an assumption is a text, not {text!r}")
        try:
            tokens = Tokens(text)
            while tokens.peek().kind != "end":
                if not tokens.accept(";"):
                    found += _assumption(tokens, reader)
        except DimSyntaxError as error:
            raise SpecError(error.problem, error.text, error.column) from None
    return tuple(found)


def _assumption(tokens: Tokens, reader: _Reader) -> tuple[Formula, ...]:
    formula = parse_condition(tokens)
    if tokens.peek().kind != "end" and not tokens.at(";"):
        raise tokens.expected("an operator or the end")
    for name in sorted(free_symbols(formula) - reader.symbols.keys()):
        if not rows.belongs(name, reader.rows):
            reader.unknown_symbol(name, tokens.source)
    if formula is False:
        raise SpecError("this assumption never holds", tokens.source)
    return conjuncts(formula)
