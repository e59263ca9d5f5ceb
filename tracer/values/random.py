"""Numbers that torch draws at random: the data decide branches on them, not the state of a generator while
the program is recorded.
"""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch

from ..host.surroundings import SEED

DRAWING: Final = frozenset(
    """
    rand randn randint randperm rand_like randn_like randint_like normal bernoulli multinomial poisson
    binomial _standard_gamma _sample_dirichlet
    """.split()
)
_DROPPING: Final = frozenset("dropout alpha_dropout feature_dropout feature_alpha_dropout".split())
FILLING: Final = frozenset(
    "uniform_ normal_ random_ bernoulli_ exponential_ cauchy_ log_normal_ geometric_".split()
)


def is_drawn(func: Any, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a call without symbolic arguments draws its result at random.

    Filling a parameter does not count: a module that is created meanwhile keeps the weights that it got.
    """
    if name in DRAWING:
        return True
    if name in _DROPPING:
        p, train = (*args[1:3], *(kwargs.get(key, default) for key, default in _DEFAULTS[len(args[1:3]) :]))
        return bool(train) and 0 < p < 1
    if name in FILLING and func is getattr(torch.Tensor, name):
        return not isinstance(args[0], torch.nn.Parameter)
    return False


_DEFAULTS: Final = (("p", 0.5), ("train", True))


UNSEEN: Final = "writes of other code, such as NumPy, into the memory of a tensor are not followed"
DRAWN: Final = "numbers that Python or NumPy drew at random are those of one run"


def has_drawn() -> bool:
    """Returns whether Python or NumPy have drawn numbers since the run was seeded."""
    if random.getstate() != _seeded(random.Random):
        return True
    numpy = sys.modules.get("numpy")
    return numpy is not None and _words(numpy.random.get_state()) != _seeded(numpy.random.RandomState)


@functools.cache
def _seeded(kind: Any) -> object:
    """Returns the state of a generator of numbers at the beginning of each run."""
    generator = kind(SEED)
    return generator.getstate() if kind is random.Random else _words(generator.get_state())


def _words(state: tuple[Any, ...]) -> object:
    """Returns a state of NumPy's in comparable form."""
    kind, keys, *more = state
    return kind, keys.tobytes(), more
