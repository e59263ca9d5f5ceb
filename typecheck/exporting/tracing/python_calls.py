"""Functions as they are called while a model is traced: of sizes they make sizes, not numbers."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import torch

from .broadcasting import Certain, size_text
from .positions import Positions, positions


def _int(*args: Any) -> Any:
    """`int(…)` of a fraction of sizes is another size, not a number; that of a tensor is what it holds."""
    of_one = len(args) == 1 and isinstance(args[0], torch.Tensor) and not args[0].is_floating_point()
    value = args[0].item() if of_one else args[0] if len(args) == 1 else None
    symbolic = isinstance(value, torch.SymInt | torch.SymFloat)
    return torch.sym_int(value) if symbolic else int(*args)  # type: ignore[no-untyped-call]


def _extremum(
    plain: Callable[..., Any], symbolic: Callable[[Any, Any], Any], order: str, certain: Certain
) -> Callable[..., Any]:
    """`max` and `min` of sizes are sizes, and no branch: one of the two, where it is known which. torch would
    carry the other along, and take minutes over what comes of a dozen of them.
    """

    def extremum(one: Any, other: Any) -> Any:
        texts = size_text(one), size_text(other)
        if "" not in texts:
            if certain(f"{texts[0]} {order} {texts[1]}"):
                return one
            if certain(f"{texts[1]} {order} {texts[0]}"):
                return other
        return symbolic(one, other)

    def call(*args: Any, **kwargs: Any) -> Any:
        alone = len(args) == 1 and not isinstance(args[0], torch.Tensor)
        several = [*args[0]] if alone else args
        of_sizes = all(isinstance(a, torch.SymInt) or type(a) is int for a in several)
        if kwargs or not of_sizes or not any(isinstance(a, torch.SymInt) for a in several):
            return plain(several, **kwargs) if alone else plain(*args, **kwargs)
        return functools.reduce(extremum, several)

    return call


def _len(value: Any) -> Any:
    """`len(x)` of a tensor is its first size, which Python would make a number; as it would of positions."""
    if type(value) is Positions:
        return value.count
    return value.shape[0] if isinstance(value, torch.Tensor) and value.dim() else len(value)


def _range(*args: Any) -> Any:
    """`range(start, stop, step)` up to a size makes no number of it until its members are asked for, one by
    one: then how many there are is a number, and `stop` need not be one.
    """
    start, stop, step = (0, *args, 1) if len(args) == 1 else (*args, 1)[:3]
    of_sizes = any(isinstance(end, torch.SymInt) for end in (start, stop))
    return positions(start, stop, step) if of_sizes and type(step) is int and step > 0 else range(*args)


def _list(*args: Any) -> Any:
    """`list(range(n))` is asked for no members, either."""
    of_positions = len(args) == 1 and type(args[0]) is Positions
    return Positions(args[0].runs, list) if of_positions else list(*args)


def builtins_on_sizes(certain: Certain) -> Mapping[str, Callable[..., Any]]:
    """Python's functions as they are called while a model is traced."""
    return {
        "int": _int, "len": _len, "range": _range, "list": _list,
        "max": _extremum(max, torch.sym_max, ">=", certain),
        "min": _extremum(min, torch.sym_min, "<=", certain),
    }  # fmt: skip


def _sqrt(x: Any, /) -> Any:
    """`math.sqrt` of a size is a power, for of torch's own symbolic root no saved program can be loaded."""
    return x**0.5 if isinstance(x, torch.SymInt | torch.SymFloat) else _PLAIN_SQRT(x)


def _isqrt(n: Any, /) -> Any:
    """Exact for sizes below 2**52, where the root of a float tells squares from their neighbours."""
    return math.floor(_sqrt(n)) if isinstance(n, torch.SymInt) else _PLAIN_ISQRT(n)


def _as_tensor(data: Any, dtype: Any = None, device: Any = None) -> torch.Tensor:
    """`torch.as_tensor` of a size would be a constant, which `torch.tensor` is not."""
    symbolic = isinstance(data, torch.SymInt | torch.SymFloat)
    made = torch.tensor if symbolic else _PLAIN_AS_TENSOR
    return made(data, dtype=dtype, device=device)


_PLAIN_SQRT: Final = math.sqrt
_PLAIN_ISQRT: Final = math.isqrt
_PLAIN_AS_TENSOR: Final = torch.as_tensor
PLAIN: Final[Mapping[tuple[str, str], Callable[..., Any]]] = {
    ("math", "sqrt"): math.sqrt, ("math", "isqrt"): math.isqrt, ("torch", "as_tensor"): torch.as_tensor,
}  # fmt: skip
ON_SIZES: Final[Mapping[tuple[str, str], Callable[..., Any]]] = {
    ("math", "sqrt"): _sqrt, ("math", "isqrt"): _isqrt, ("torch", "as_tensor"): _as_tensor,
}  # fmt: skip
"""Functions, by module and name, and their replacements."""
