"""How many elements a sparse tensor stores: as many as it was made of, or a number that the data decide."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..dims import Dim
from ..language import Layout, Tensor, Value

SPARSE_LAYOUTS: Final = (Layout.COO, Layout.COALESCED, Layout.CSR)


def is_sparse(value: Value) -> bool:
    lies = value.layout if type(value) is Tensor else Layout.CONTIGUOUS
    return lies is not Layout.CONTIGUOUS and lies in SPARSE_LAYOUTS


class Stored:
    """Sparse tensors, by identity, with how many elements each stores."""

    def __init__(self) -> None:
        self._counts: dict[int, tuple[Tensor, Dim]] = {}

    def of(self, tensor: Tensor) -> Dim | None:
        found = self._counts.get(id(tensor))
        return None if found is None else found[1]

    def learn(self, tensor: Tensor, count: Dim) -> None:
        self._counts[id(tensor)] = tensor, count

    def follow(self, op: str, named: Mapping[str, Any], result: Value) -> None:
        """Remembers how many elements a result stores."""
        if not isinstance(result, Tensor) or not is_sparse(result):
            return
        if op in MADE_OF_VALUES:
            values = named.get("values")
            self.learn(result, 0 if values is None else values.shape[0])
        elif op in KEEPING and (count := self.of(named["input"])) is not None:
            merged = named["input"].layout is Layout.COO and result.layout is not Layout.COO
            if not merged:
                self.learn(result, count)


MADE_OF_VALUES: Final = frozenset("sparse_coo_tensor sparse_csr_tensor".split())
KEEPING: Final = frozenset(
    "abs clone coalesce detach mul neg relu sqrt to_sparse to_sparse_csr".split()
)
"""What stores as many elements as it is given, where none of these lie at one place."""
