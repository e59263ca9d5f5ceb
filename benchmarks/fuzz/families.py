"""The families of programs: by name, what writes one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import Final, TypeAlias

from .contents import contents
from .control import branches, lists, loops, refusals
from .libraries import distributions, libraries
from .memory import memory
from .merges import merges
from .modules import modules
from .numbers import numbers
from .operators import operators
from .program import Program
from .transforms import transforms
from .validity import validity
from .writer import Writer

Family: TypeAlias = Callable[[Writer, str], Program]

FAMILIES: Final[Mapping[str, Family]] = {
    "contents": contents,
    "casts": partial(contents, casts=True),
    "memory": memory,
    "operators": operators,
    "branches": branches,
    "loops": loops,
    "lists": lists,
    "try": refusals,
    "modules": modules,
    "merges": merges,
    "distributions": distributions,
    "libraries": libraries,
    "numbers": numbers,
    "transforms": transforms,
    "validity": validity,
}


def written(seed: int, number: int, families: Sequence[str]) -> tuple[Program, str]:
    """The program of this number, the same each time, and its family: they take turns."""
    family = families[number % len(families)]
    return named(f"{family} {seed}/{number}"), family


def named(name: str) -> Program:
    """The program of this name: `contents 7/12` is the program 12 of the seed 7, of that family."""
    return FAMILIES[name.split()[0]](Writer(Random(name)), name)
