"""Claims inside a program: `assert_shape(x, "b h w")` and `reveal_shape(x)`.

They do nothing when the program runs, and cost next to nothing. The checker takes the first for a
requirement, and tells at the line of the second which shape the value has there.
"""

from __future__ import annotations

from typing import TypeVar

from ...constraints.ir.claims import LISTENER, parse_claim
from ...constraints.ir.spec_text import SpecError

T = TypeVar("T")


def assert_shape(value: T, shape: str) -> T:
    """Returns the value, which the program claims to be a tensor of this shape: `"b h w"`, `"b 3 ..."`, `"_,
    2*n"`.

    Names are those of the input spec; a new name denotes the size at which it is first written. Raises
    SpecError where the text is no shape, even if no check is running.
    """
    _parsed(shape)
    listener = LISTENER.get()
    if listener is not None:
        listener("assert", value, shape)
    return value


def _parsed(shape: str) -> None:
    try:
        parse_claim(shape)
    except SpecError as error:  # raised anew: the recorder takes what rises from the grammar for a defect
        raise SpecError(error.problem, error.text, error.column, error.hint) from None


def reveal_shape(value: T) -> T:
    """Returns the value; a check reports its shape at this line, for all inputs."""
    listener = LISTENER.get()
    if listener is not None:
        listener("reveal", value, "")
    return value
