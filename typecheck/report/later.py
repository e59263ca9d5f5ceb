"""A part of a report that is made when it is first read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T", covariant=True)


class Later(Sequence[T], Generic[T]):
    """The members of a tuple, in every respect but its class; pickled and copied, it is the tuple itself."""

    def __init__(self, make: Callable[[], tuple[T, ...]]) -> None:
        self._make: Callable[[], tuple[T, ...]] | None = make
        self._made: tuple[T, ...] = ()

    @property
    def members(self) -> tuple[T, ...]:
        make = self._make
        if make is not None:
            self._made, self._make = make(), None
        return self._made

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[T, ...]: ...
    def __getitem__(self, place: int | slice) -> T | tuple[T, ...]:
        return self.members[place]

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[T]:
        return iter(self.members)

    def __eq__(self, other: object) -> bool:
        return self.members == (other.members if isinstance(other, Later) else other)

    def __hash__(self) -> int:
        return hash(self.members)

    def __repr__(self) -> str:
        return repr(self.members)

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (self.members,)
