"""What the corpus says of a model: how to build it, what goes in, and which sizes eager PyTorch accepts."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from torch import nn

Verdict = Literal["proved", "refined", "refuted"]
Predicate = Callable[..., bool]

# The values tried of a symbol for which an entry names none.
USUAL = (1, 2, 3, 5)


@dataclass(frozen=True)
class Entry:
    """One model, checked as it is built (a module in training mode is checked in training mode).

    `inputs` and `assume` are spec texts; a symbol is at least 1 unless an assumption bounds it below.
    """

    name: str
    build: Callable[[], nn.Module]
    inputs: str
    accepts: Predicate | None  # over the symbols by name, inside the domain; None: eager alone judges
    verdict: Verdict
    assume: tuple[str, ...] = ()
    probe: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # values on and around the boundary
    needs: tuple[str, ...] = ()  # packages without which it cannot be built


@dataclass(frozen=True)
class Broken:
    """A model with a mistake, and the same model without it.

    `line` is a piece of the one source line at which torch refuses and a person would point.
    """

    name: str
    build: Callable[[], nn.Module]
    repaired: Callable[[], nn.Module]
    inputs: str
    line: str
    verdict: Literal["refined", "refuted"]
    accepts: Predicate | None = None  # None: nothing is accepted
    accepts_repaired: Predicate | None = None  # None: everything in the domain is accepted
    assume: tuple[str, ...] = ()
    probe: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def always(**_: Any) -> bool:
    """The predicate of a model that runs for every assignment in its domain."""
    return True


def never(**_: Any) -> bool:
    """The predicate of a model that runs for none."""
    return False


def conv(size: int, kernel: int, stride: int = 1, pad: int = 0, dilation: int = 1) -> int:
    """Output size of a convolution or a pool; below 1 where torch refuses. Padding may lift a size that
    was below 1 before, so a chain of windows is looked at window by window: `fits`.
    """
    return (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1


def fits(size: int, *windows: tuple[int, ...]) -> bool:
    """Whether `size` passes through windows (kernel, stride, pad, dilation) one after the other."""
    for window in windows:
        size = conv(size, *window)
        if size < 1:
            return False
    return True


def broadcast(a: int, b: int) -> int | None:
    """The size of two sizes broadcast together, None where torch refuses."""
    if a == b or b == 1:
        return a
    return b if a == 1 else None
