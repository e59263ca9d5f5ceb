"""Python's text as a syntax tree, in any thread."""

from __future__ import annotations

import ast
from typing import Final

ATTEMPTS: Final = 20


def parsed(text: str | bytes) -> ast.Module:
    """Returns the syntax tree of a file's text. Raises SyntaxError and ValueError as `ast.parse` does.

    Python 3.11 counts the nested nodes of all threads together, so that each may find its count wrong while
    another parses. That says nothing about the text, which is then parsed again.
    """
    for _ in range(ATTEMPTS):
        try:
            return ast.parse(text)
        except SystemError:
            continue
    return ast.parse(text)
