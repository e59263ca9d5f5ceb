"""The rules: for each operator, its requirements on its arguments and the type of its result."""

from __future__ import annotations

from functools import reduce
from typing import Final

from ..engine.ruleset import Rules
from . import (
    attention,
    control,
    creation,
    derivatives,
    einsum,
    elementwise,
    gathering,
    gpu_attention,
    gradients,
    histograms,
    indexing,
    joining,
    layout,
    linalg,
    lists,
    loss,
    matrices,
    norm,
    prims,
    quantization,
    random,
    reduction,
    repeating,
    resize,
    rnn,
    sizes,
    sparse,
    spectral,
    storage,
    window,
)
from .numbers import LIMITS
from .reach import REACH

FAMILIES: Final = (
    attention.RULES,
    control.RULES,
    creation.RULES,
    derivatives.RULES,
    einsum.RULES,
    elementwise.RULES,
    gathering.RULES,
    gradients.RULES,
    gpu_attention.RULES,
    histograms.RULES,
    indexing.RULES,
    joining.RULES,
    layout.RULES,
    linalg.RULES,
    lists.RULES,
    loss.RULES,
    matrices.RULES,
    norm.RULES,
    prims.RULES,
    quantization.RULES,
    random.RULES,
    reduction.RULES,
    repeating.RULES,
    resize.RULES,
    rnn.RULES,
    sizes.SIZE_RULES,
    sparse.RULES,
    spectral.RULES,
    storage.RULES,
    window.RULES,
)
"""A table per family; no operator is in two of them."""

_all: Rules = reduce(lambda rules, family: rules | family, FAMILIES, Rules({}))
default_rules: Final[Rules] = _all.reaching(REACH).taking_sparse(sparse.OF_SPARSE).limited(LIMITS)
