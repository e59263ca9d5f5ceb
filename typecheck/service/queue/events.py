"""The followers of each work, and the events that they receive: states and steps, as they change.

Works of this service publish their events at once; those of another service are looked up once a second.
However many follow, the database is queried once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy.exc import SQLAlchemyError

from ..ops.logs import log
from .store import Store
from .tables import State

LOOK_S: Final = 1.0
CHUNK: Final = 500


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of a work, its current step, and its verdict."""

    state: State
    step: str = ""
    verdict: str = ""


@dataclass(slots=True)
class _Followed:
    """A work with followers."""

    latest: Progress | None = None
    followers: set[asyncio.Event] = field(default_factory=set)


class Hub:
    """Tells followers. All of it happens in the event loop but `tell`."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._works: dict[str, _Followed] = {}
        self._stale: set[str] = set()
        self._changed = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._ending = False

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(self._look())

    def end(self) -> None:
        """Ends all streams. From any thread."""
        self._ending = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake_all)

    def look(self, digest: str) -> None:
        """Wakes those who follow a work, since its state may have changed; they get a None. May be called
        from any thread.
        """
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake, digest)

    def _wake(self, digest: str) -> None:
        if digest in self._works:
            for follower in self._works[digest].followers:
                follower.set()

    def _wake_all(self) -> None:
        for digest in self._works:
            self._wake(digest)

    async def stop(self) -> None:
        self.end()
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def tell(self, digest: str, step: str) -> None:
        """A work is at a step, or in another state where no step is named. From any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._told, digest, step)

    def _told(self, digest: str, step: str) -> None:
        if digest not in self._works:
            return
        if step:
            self._set(digest, Progress(State.RUNNING, step))
        else:
            self._stale.add(digest)
            self._changed.set()

    def _set(self, digest: str, progress: Progress) -> None:
        work = self._works.get(digest)
        if work is not None and work.latest != progress:
            work.latest = progress
            for follower in work.followers:
                follower.set()

    async def _look(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), LOOK_S)
            self._changed.clear()
            digests, self._stale = [*(self._stale or self._works)], set()
            try:
                for start in range(0, len(digests), CHUNK):
                    await self._ask(digests[start : start + CHUNK])
            except SQLAlchemyError as error:
                log("followers wait for the database", logging.WARNING, error=type(error).__name__)
                await asyncio.sleep(LOOK_S)

    async def _ask(self, digests: list[str]) -> None:
        found = await asyncio.to_thread(self.store.progress, digests)
        for digest in digests:
            state, step, verdict = found.get(digest, (State.CANCELLED, "", ""))
            known = self._works.get(digest)
            if known is not None and not step and known.latest is not None and state == known.latest.state:
                step = known.latest.step  # the database hears of steps once a second
            self._set(digest, Progress(State(state), step, verdict))

    async def follow(self, digest: str, silence_s: float) -> AsyncIterator[Progress | None]:
        """Where the work stands, now and after each change, until it has ended. None after each silence, and
        where there was a reason to look.
        """
        changed = asyncio.Event()
        work = self._works.setdefault(digest, _Followed())
        work.followers.add(changed)
        told: Progress | None = None
        try:
            await self._ask([digest])
            while not self._ending:
                if work.latest is not None and work.latest != told:
                    told = work.latest
                    yield told
                    if told.state.final:
                        return
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), silence_s)
                changed.clear()
                if work.latest == told:
                    yield None
        finally:
            work.followers.discard(changed)
            if not work.followers:
                self._works.pop(digest, None)
