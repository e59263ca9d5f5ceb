"""A spec of dynamic shapes as Python to paste: the dims, the tree, and in comments what it leaves out."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from ...constraints.terms.dims import Term, plain_text, substitute, sym
from .specs import DimRange, DimSpec, Entries, Hint, Items, ShapeSpec, Size, Tree

WIDTH: Final = 100


def to_python(spec: DimSpec, remarks: Sequence[str] = ()) -> str:
    """Statements that define `dynamic_shapes` for `torch.export.export`, with the remarks as comments."""
    from .dim_names import bearable

    dims = spec.dims
    names = {name: bearable(name, dims) for name in dims}
    lines = ["from torch.export import Dim", ""]
    lines += [f'{names[n]} = Dim("{names[n]}"{_bounds(b)})' for n, b in dims.items()]
    lines += [f"# {names[n]} is the Dim of {n}, not a valid name" for n in dims if names[n] != n]
    lines += _assignment(spec.shapes, names)
    lines += [""] if remarks else []
    lines += [line for remark in remarks for line in _comment(remark)]
    return "\n".join(lines) + "\n"


def _bounds(bounds: DimRange) -> str:
    low = f", min={bounds.min}"
    return low if bounds.max is None else f"{low}, max={bounds.max}"


def _assignment(tree: Tree, names: Mapping[str, str]) -> Iterator[str]:
    yield "dynamic_shapes = {"
    for key, part in tree.entries if isinstance(tree, Entries) else ():
        yield f"    {_quoted(key)}: {_text(part, names)},"
    yield "}"


def _text(tree: Tree, names: Mapping[str, str]) -> str:
    match tree:
        case ShapeSpec(parts):
            inner = [_size(size, names) for size in parts]
            return f"({', '.join(inner)}{',' if len(inner) == 1 else ''})"
        case Items(items):
            return f"[{', '.join(_text(item, names) for item in items)}]"
        case Entries(entries):
            return "{" + ", ".join(f"{_quoted(key)}: {_text(part, names)}" for key, part in entries) + "}"
    return _size(tree, names)


def _size(size: Size, names: Mapping[str, str]) -> str:
    match size:
        case Term():
            return plain_text(substitute(size, {name: sym(other) for name, other in names.items()}))
        case Hint(kind, low, high):
            given = [f"min={low}"] if low is not None else []
            given += [f"max={high}"] if high is not None else []
            return f"Dim.{kind}" + (f"({', '.join(given)})" if given else "")
    return str(size)


def _quoted(key: str | int) -> str:
    return f'"{key}"' if isinstance(key, str) and '"' not in key else repr(key)


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent="# ", subsequent_indent="#   ")
