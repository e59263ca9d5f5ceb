"""Reads the shapes that docstrings give to inputs: `x: (B, C, H, W)`, `x (Tensor): tokens of shape [b, t]`.
"""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Sequence
from typing import Any, Final

from ...constraints.ir.spec_text import SpecError, parse_spec
from .example_calls import TensorExample

_NOT_SHAPES: Final = frozenset(
    "tensor torch.tensor optional int float bool str list tuple dict none default shape".split()
)
"""Words that stand in parentheses behind the name of an input, and are no sizes."""


def described(target: Any, names: Sequence[str]) -> dict[str, TensorExample]:
    """Returns the shapes of inputs that the docstrings of a program name."""
    forward = getattr(target, "forward", target)
    documented = [forward] if inspect.isroutine(target) else [forward, type(target)]
    texts = [inspect.getdoc(one) or "" for one in documented]
    found: dict[str, TensorExample] = {}
    for name, text in itertools.product(names, texts):
        shape = _described(name, text)
        if shape is not None and name not in found:
            found[name] = shape
    return found


def _described(name: str, text: str) -> TensorExample | None:
    """Returns the first shape on the line of a docstring that begins with a name, or on the line after it."""
    lines = text.splitlines()
    for at, line in enumerate(lines):
        if re.match(rf"\W*(?::param\s+|\*\s*)?`*{re.escape(name)}\b", line):
            for shape in re.findall(r"[(\[]([^()\[\]]+)[)\]]", " ".join(lines[at : at + 2])):
                if (sizes := _sizes(shape)) is not None:
                    return TensorExample(sizes)
    return None


def _sizes(text: str) -> tuple[int | str, ...] | None:
    """Returns the sizes that a text lists, one of which is a name; None where it lists other things."""
    parts = [part.strip() for part in text.replace("`", "").strip(" ,").split(",")]
    single = len(parts) == 1 and not text.rstrip().endswith(",")
    if single or all(map(str.isdigit, parts)) or {part.lower() for part in parts} & _NOT_SHAPES:
        return None
    try:
        parse_spec(f"x: [{', '.join(parts)}]")
    except SpecError:
        return None
    return tuple([int(part) if part.isdigit() else part for part in parts])
