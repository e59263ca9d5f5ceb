"""Converts torch's gradual types (`torch.fx.tensor_type`) to ours and back, and dims to sympy's expressions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import GenericAlias
from typing import Any, Final, get_args, get_origin

import sympy
from torch.fx import tensor_type as theirs

from ...constraints.ir.language import Dyn
from ...constraints.ir.lattice import DimType, Plain, Ranked, Rowed, Several, Type
from ...constraints.ir.spec_text import DTYPES
from ...constraints.terms.dims import Apply, Atom, Dim, coefficients, sym

_SCALARS: Final[Mapping[str, Any]] = {"int": int, "bool": bool, "float": float}


def from_torch(annotation: Any) -> Type:
    """Returns the type of a node's annotation: a `TensorType`, torch's `Dyn`, `int`, or a tuple of these as
    `tuple[…]` or `(…,)`.

    No annotation (None), and one without a shape, is Dyn.
    """
    if annotation is None or annotation is theirs.Dyn:
        return Dyn
    if isinstance(annotation, theirs.TensorType):
        return Ranked(tuple(map(_dim_from_torch, annotation.__args__)))
    parts = get_args(annotation) if get_origin(annotation) is tuple else annotation
    if isinstance(parts, tuple):
        return Several(tuple(map(from_torch, parts)))
    name = next((name for name, kind in _SCALARS.items() if annotation is kind), None)
    return Dyn if name is None else Plain(name)


def _dim_from_torch(dim: Any) -> DimType:
    """Returns an integer, or a symbol by its name; torch's inference calls its symbols `~7`."""
    if isinstance(dim, int):
        return dim
    name = re.sub(r"\W", "s", dim.name, flags=re.ASCII) if isinstance(dim, sympy.Symbol) else ""
    return sym(name) if name.isidentifier() else Dyn


def to_torch(type: Type) -> Any:
    """Returns the equivalent annotation, as far as torch's types allow: a row becomes torch's `Dyn`."""
    match type:
        case Ranked(dims):
            return theirs.TensorType(tuple(map(_dim_to_torch, dims)))
        case Several(parts):
            return GenericAlias(tuple, tuple(map(to_torch, parts)))
        case Plain(name):
            return _SCALARS[name]
        case Rowed():
            return theirs.Dyn
    return theirs.Dyn


def _dim_to_torch(dim: DimType) -> Any:
    return theirs.Dyn if dim is Dyn else dim if isinstance(dim, int) else to_sympy(dim)  # type: ignore[arg-type]


def to_sympy(dim: Dim) -> Any:
    """Returns the dim as a sympy expression, over positive integers with the names of its symbols."""
    return sympy.Add(*(sympy.Mul(c, *map(_atom, mono)) for mono, c in coefficients(dim)))


def _atom(atom: Atom) -> Any:
    if isinstance(atom, Apply):
        return _WRITE[atom.op](*map(to_sympy, atom.args))
    return sympy.Symbol(atom.name, integer=True, positive=True)


_WRITE: Final[Mapping[str, Callable[..., Any]]] = {
    "//": lambda p, q: sympy.floor(p / q, evaluate=False),
    "%": sympy.Mod,
    "min": sympy.Min,
    "max": sympy.Max,
    "isqrt": lambda p: sympy.floor(sympy.sqrt(p)),
    "rounded": sympy.Function("rounded"),
    "**": lambda base, exponent: base**exponent,
}


_OWN: Final = re.compile(rf"\s*(?:{'|'.join(DTYPES)})?\s*\[(?P<sizes>[^]]*)\]\s*")
_JAXTYPING: Final = re.compile(r"""\w\[\s*[\w.]+\s*,\s*(?P<quote>['"])(?P<sizes>[^'"]*)(?P=quote)\s*\]""")


def claim_text(annotation: Any) -> str:
    """Returns an annotation as a claim on a value (constraints/ir/claims.py); empty where it states nothing.

    A text is read like the type of an input (`float32[b, 3]`), or as one of jaxtyping. Sizes that are no
    integers match any size.
    """
    if isinstance(annotation, str):
        own, jaxtyping = _OWN.fullmatch(annotation), _JAXTYPING.search(annotation)
        return f"[{own['sizes']}]" if own else jaxtyping["sizes"] if jaxtyping else ""
    type = from_torch(annotation)
    if not isinstance(type, Ranked):
        return ""
    return f"[{', '.join(str(d) if isinstance(d, int) else '_' for d in type.dims)}]"
