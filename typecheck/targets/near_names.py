"""Hints at the name that was meant, where a spec declares another."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...constraints.ir.spec import Declared
from ...constraints.ir.spec_text import suggestion


def key_hint(problem: str, inputs: Sequence[Declared]) -> str:
    """Returns a hint at the key that a program looks up and the spec does not declare, such as
    `batch["image"] is not declared; did you mean 'image' by batch["imgae"]?`; an empty text for other errors.
    """
    missing = re.search(r"KeyError: (['\"])(.+)\1", problem)
    nested = [one for one in inputs if len(one.path) > 1 and isinstance(one.path[-1], str)]
    if missing is None or not nested:
        return ""
    key = missing[2]
    near = suggestion(key, [str(one.path[-1]) for one in nested])
    meant = next((one for one in nested if near == f"did you mean {one.path[-1]!r}?"), nested[0])
    looked_up = Declared((*meant.path[:-1], key), None).name
    if near:
        return f"the program looks up {looked_up}, and {meant.name} is declared; did you mean {key!r}?"
    return f"the program looks up {looked_up}; declare it, too"
