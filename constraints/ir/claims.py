"""The notation in which a program asserts a shape in a line of its own: `b h w`, `b, 3, _`, `2*n ...`.

    claim = size*                       separated by blanks, or by commas; brackets around it are allowed
    size  = "_" | "?" | "..." | dim     `_` and `?` are any size, `...` any number of sizes, once at most

The names are those of the input spec. A new name is bound to the size where it is first written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

from ..terms.dims import Dim, Symbol, Term, lone_atom, substitute, symbols
from ..terms.formula import Formula, all_of, eq
from ..terms.syntax import DimSyntaxError, parse_dim
from .language import Shape
from .spec_text import SpecError

Listener: TypeAlias = Callable[[str, Any, str], None]
"""`listener(kind, value, text)` is called for each claim while a program runs; the kinds are `assert` and
`reveal`.
"""

LISTENER: Final[ContextVar[Listener | None]] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Passes the claims made inside the block to the listener. Elsewhere a claim does nothing."""
    token = LISTENER.set(listener)
    try:
        yield
    finally:
        LISTENER.reset(token)


@dataclass(frozen=True, slots=True)
class Claim:
    """The sizes of a shape, where None is any size.

    In an `open` claim, further sizes may lie between the two parts.
    """

    text: str
    lead: tuple[Dim | None, ...]
    trail: tuple[Dim | None, ...] = ()
    open: bool = False


@lru_cache(maxsize=1024)
def parse_claim(text: str) -> Claim:
    """Returns the claim that a text makes. Raises SpecError."""
    inner = text.strip()
    if inner.startswith("[") and inner.endswith("]"):
        inner = inner[1:-1]
    words = [w.strip() for w in inner.split(",")] if "," in inner else inner.split()
    if words.count("...") > 1:
        raise SpecError("`...` occurs twice", text, hint="a shape has at most one `...`")
    sizes = [_size(word, text) for word in words if word != "..."]
    at = words.index("...") if "..." in words else len(sizes)
    return Claim(text, tuple(sizes[:at]), tuple(sizes[at:]), "..." in words)


def _size(word: str, text: str) -> Dim | None:
    if word in ("_", "?"):
        return None
    try:
        return parse_dim(word)
    except DimSyntaxError as error:
        column = text.find(word) + error.column if word else 0
        hint = "a size is a name, a number or a term, `_` is any size"
        raise SpecError(error.problem, text, column, hint) from None


def claimed(claim: Claim, shape: Shape, known: dict[str, Dim]) -> Formula:
    """Returns the condition that the claim is true of a shape. `known` has the sizes of names; new names are
    added to it.

    Raises SpecError where a name occurs in a term before it occurs alone.
    """
    count = len(claim.lead) + len(claim.trail)
    if len(shape) < count or (len(shape) > count and not claim.open):
        return False
    last = shape[len(shape) - len(claim.trail) :]
    pairs = [*zip(claim.lead, shape, strict=False), *zip(claim.trail, last, strict=True)]
    for wanted, size in pairs:
        atom = None if wanted is None else lone_atom(wanted)
        if isinstance(atom, Symbol):
            known.setdefault(atom.name, size)
    return all_of(_equal(claim, wanted, size, known) for wanted, size in pairs if wanted is not None)


def _equal(claim: Claim, wanted: Dim, size: Dim, known: dict[str, Dim]) -> Formula:
    if isinstance(wanted, Term) and (new := symbols(wanted) - known.keys()):
        raise SpecError(f"{min(new)} is not defined", claim.text, hint="write it alone first")
    return eq(size, substitute(wanted, known))
