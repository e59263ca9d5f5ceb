"""Why torch refuses a call although its sizes are right: two small tables of messages.

Each row is a pattern and what it stands for. A pattern that is too wide would hide refusals for the sake of
sizes, so each names what it is about.
"""

from __future__ import annotations

DATA = (
    (r"index \S+ is out of bounds", "an element of an index tensor"),
    (r"index out of range in self", "an element of an index tensor"),
    (r"Target \S+ is out of bounds", "a class that is out of range"),
    (r"Class values must be", "a class that is out of range"),
    (r"singular", "a matrix without inverse"),
    (r"positive-definite|positive definite", "a matrix that is not positive-definite"),
    (r"failed to converge", "a matrix that is ill-conditioned"),
    (r"probability (tensor|value)|invalid multinomial distribution", "elements that are no probabilities"),
)
"""Refused for the sake of the elements: other elements of the same sizes would be accepted."""

NOT_OF_SIZES = (
    (r"not implemented for '\w+'", "a kernel is missing for a dtype"),
    (r"dtype|scalar type|data type", "dtypes that do not fit"),
    (r"device", "devices that do not fit"),
    (r"^TypeError: ", "arguments of another type than the function takes"),
    (r"cannot be converted to type \w+ without overflow", "a number that the dtype does not hold"),
    (r"expects (sigma|lambda|std|p to be|to return a \[from, to\))", "parameters of a distribution"),
    (r"[ra]tol must be greater than or equal to zero", "a tolerance below zero"),
    (r"more than one element of the written-to tensor", "an `out=` whose elements lie on each other"),
)
"""Refused for the sake of arguments that are no sizes: a checker of shapes need not refuse it."""
