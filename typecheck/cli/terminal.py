"""The properties of the terminal that the command line uses: its width, its colour, and a progress bar on it.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, TextIO

PATIENCE: Final = 2.0
"""Seconds after which a progress bar appears."""


def width() -> int:
    return min(shutil.get_terminal_size((100, 24)).columns, 120)


def coloured(stream: Any) -> bool:
    """On a terminal, unless the environment says no (https://no-color.org) or the terminal cannot."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class ProgramOutput(io.TextIOBase):
    """A stream for what the user's program prints: each line is marked, and the first is preceded by words
    that say what it is.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream, self.begun, self.at_start = stream, False, True

    def write(self, text: str) -> int:
        if text and not self.begun:
            self.stream.write("output of the program itself:\n")
            self.begun = True
        for line in text.splitlines(keepends=True):
            self.stream.write(f"  | {line}" if self.at_start else line)
            self.at_start = line.endswith("\n")
        return len(text)

    def flush(self) -> None:
        self.stream.flush()


@contextlib.contextmanager
def progress(budget: float) -> Iterator[Callable[[str], None]]:
    """A bar of seconds against the budget on a terminal, once there is something to wait for."""
    if not sys.stderr.isatty():
        yield lambda step: None
        return
    step = ["load"]
    done = threading.Event()
    bar = threading.Thread(target=_draw, args=(budget, step, done), daemon=True)
    bar.start()
    try:
        yield lambda now: step.__setitem__(0, now)
    finally:
        done.set()
        bar.join()


def put_now(text: str, stream: Any) -> None:
    """Writes to a stream at once, above the progress bar where there is one."""
    bars = sys.modules.get("tqdm")
    with bars.tqdm.external_write_mode(stream) if bars else contextlib.nullcontext():
        stream.write(text)
        stream.flush()


_DOING: Final = {
    "load": "importing",
    "trace": "tracing",
    "generate": "applying the rules",
    "solve": "deciding",
    "replay": "running examples",
    "repair": "looking for repairs",
}
"""What is being done in a step, where its name does not say it."""


def _draw(budget: float, step: list[str], done: threading.Event) -> None:
    started = time.monotonic()
    if done.wait(PATIENCE):
        return
    from tqdm import tqdm

    form = "{desc}: {n:.0f} of {total:.0f} s |{bar}|"
    with tqdm(
        total=budget,
        initial=min(PATIENCE, budget),
        desc=_DOING.get(step[0], step[0]),
        bar_format=form,
        leave=False,
        file=sys.stderr,
    ) as bar:
        while not done.wait(0.2):
            bar.desc = _DOING.get(step[0], step[0])
            bar.n = min(time.monotonic() - started, budget)
            bar.refresh()
