"""Sizes that people pick for an example: a batch of 2, images of 224 x 256, sequences of 16."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from ...constraints.ir.language import Tensor, tensors
from ...constraints.ir.spec import Spec
from ...constraints.terms.dims import Dim, Symbol, evaluate, lone_atom, symbols

IMAGE: Final = (224, 256, 320, 384, 512, 192, 128, 96, 64, 48, 32, 28, 24, 16, 12, 8)
OTHER: Final = (16, 32, 64, 128, 8, 256, 512, 4, 6, 12, 768, 1024, 2)
BATCH: Final = (2, 8, 4, 16, 3, 1)
"""The sizes for heights and widths of images, for batches, and for all else, best first."""
MOST_EQUAL: Final = 256
"""Sizes up to this are tried for all symbols of one of these kinds at once."""
MOST_ELEMENTS: Final = 1 << 21
"""No input of an example is made larger than this, since the program is run on it."""
COLOURS: Final = range(1, 5)
"""The numbers of channels of an image."""


def familiar(
    spec: Spec, values: Mapping[str, int], allowed: Callable[[Mapping[str, int]], bool]
) -> dict[str, int]:
    """Returns familiar sizes that are allowed; symbols for which none are found keep their values.

    Symbols of one kind differ where they may, so that mixed-up sizes are visible, and are near each other.
    """
    inputs = [tensor for declared in spec.inputs for tensor in tensors(declared.type)]
    kinds: dict[tuple[int, ...], list[str]] = {OTHER: [], IMAGE: [], BATCH: []}
    for name, sizes in _kinds(inputs).items():
        if name in values:
            kinds[sizes].append(name)
    found = dict(values)
    for sizes, names in kinds.items():
        together = (dict(zip(names, chosen, strict=True)) for chosen in _chosen(sizes, len(names)))
        for trial in ({**found, **chosen} for chosen in together):
            if _moderate(inputs, trial) and allowed(trial):
                found = trial
                break
        else:
            for name in names:
                alone = ({**found, name: size} for size in sizes)
                found = next((t for t in alone if _moderate(inputs, t) and allowed(t)), found)
    return found


def _kinds(inputs: Iterable[Tensor]) -> dict[str, tuple[int, ...]]:
    """Returns the sizes to choose from for each symbol that is a size of an input by itself.

    What is a height in one input and the length of a sequence in another is a length.
    """
    found: dict[str, tuple[int, ...]] = {}
    for tensor in inputs:
        for axis, dim in enumerate(tensor.shape):
            if isinstance(atom := lone_atom(dim), Symbol):
                seen = {_kind(tensor.shape, axis), found.get(atom.name, IMAGE)}
                found[atom.name] = next(kind for kind in (BATCH, OTHER, IMAGE) if kind in seen)
    return found


def _kind(shape: Sequence[Dim], axis: int) -> tuple[int, ...]:
    """Returns the sizes to choose from for an axis, by the layouts that models use: [batch, …, features],
    [batch, channels, height, width] and with the channels last or a depth before, and [channels, height,
    width].
    """
    rank = len(shape)
    channels_last = rank == 4 and shape[3] in COLOURS
    if axis >= rank - 2 and (rank in (4, 5) or (rank == 3 and shape[0] in COLOURS)) and not channels_last:
        return IMAGE
    if channels_last and axis in (1, 2):
        return IMAGE
    return BATCH if axis == 0 and rank > 1 else OTHER


def _chosen(sizes: tuple[int, ...], count: int) -> Iterator[tuple[int, ...]]:
    """Yields sizes for so many symbols: neighbours among the familiar ones, one for all, any for all."""
    if count:
        yield from (sizes[at : at + count] for at in range(len(sizes) - count + 1))
        yield from ((size,) * count for size in sizes)
    if count > 1:
        yield from ((size,) * count for size in range(2, MOST_EQUAL))


def _moderate(inputs: Iterable[Tensor], values: Mapping[str, int]) -> bool:
    numbers = (t.numel for t in inputs if symbols(t.numel) <= values.keys())
    return all(evaluate(number, values) <= MOST_ELEMENTS for number in numbers)
