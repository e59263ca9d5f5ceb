"""Names that torch can bear in a `Dim`."""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Container

import sympy


def bearable(name: str, taken: Container[str]) -> str:
    """The name, with an underscore in front where torch would read it as something else.

    torch hands the names of dims to sympy, for which `N`, `pi`, `len` and `lambda` mean other things.
    """
    while hasattr(sympy, name) or hasattr(builtins, name) or keyword.iskeyword(name):
        name = f"_{name}"
        while name in taken:
            name = f"_{name}"
    return name
