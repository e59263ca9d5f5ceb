"""The four categories of dtypes, by torch's names."""

from __future__ import annotations

from types import MappingProxyType

CATEGORY = MappingProxyType(
    {
        **dict.fromkeys(["bool"], 0),
        **dict.fromkeys(["uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"], 1),
        **dict.fromkeys(["bfloat16", "float16", "float32", "float64"], 2),
        **dict.fromkeys(["complex32", "complex64", "complex128"], 3),
    }
)


def category(dtype: str) -> int:
    """Returns 0 for bool, 1 for integral, 2 for floating, 3 for complex.

    A dtype outside the table (quantised, 8-bit floats) counts as floating.
    """
    return CATEGORY.get(dtype, 2)
