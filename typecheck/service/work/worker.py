"""The process of a check: reads questions from its standard input, writes answers to its standard output.

A frame consists of the lengths of its two parts, JSON and bytes, and of the parts. Nothing is pickled. The
process ends when its parent does: a separate thread waits for the end of the standard input, even while z3
computes.
"""

from __future__ import annotations

import json
import os
import queue
import struct
import sys
import threading
import zlib
from typing import IO, Any, Final

HEADER: Final = struct.Struct(">II")
MOST_INFLATED: Final = 1 << 30
SLACK_MB: Final = 2048
"""Address space that is reserved and never used: z3, the interpreter, torch, threads."""
CPU_SLACK_S: Final = 30


def write(stream: IO[bytes], data: Any, content: bytes = b"") -> None:
    """Writes a frame."""
    text = json.dumps(data, separators=(",", ":")).encode()
    stream.write(HEADER.pack(len(text), len(content)))
    stream.write(text)
    stream.write(content)
    stream.flush()


def read(stream: IO[bytes]) -> tuple[Any, bytes] | None:
    """The next frame; None at the end."""
    header = stream.read(HEADER.size)
    if len(header) < HEADER.size:
        return None
    first, second = HEADER.unpack(header)
    text, content = stream.read(first), stream.read(second)
    if len(text) < first or len(content) < second:
        return None
    return json.loads(text), content


def main() -> None:
    """Answers questions until there are no more.

    The arguments are `models` and the memory in MB, or `targets`. A target belongs to this machine, and its
    code is run. Its memory is watched by the parent process, since torch reserves too much for a limit in the
    process itself.
    """
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what else is printed must not come between
    questions: queue.Queue[tuple[Any, bytes]] = queue.Queue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, questions), daemon=True).start()
    of_models = sys.argv[1] == "models"
    if of_models:
        _limit(int(sys.argv[2]))
    from .questions import FORMS, TARGETS, Question, answer

    forms = FORMS if of_models else TARGETS
    _warm()
    write(answers, {"ready": True})
    while True:
        asked, content = questions.get()
        question = Question.from_json(asked["question"])
        _limit_time(asked["seconds"])
        inflate = zlib.decompressobj()
        model = inflate.decompress(content, MOST_INFLATED)
        found = answer(asked["form"], model, question, lambda step: write(answers, {"step": step}), forms)
        write(answers, found)


def _listen(stream: IO[bytes], questions: queue.Queue[tuple[Any, bytes]]) -> None:
    while (frame := read(stream)) is not None:
        questions.put(frame)
    os._exit(0)


def _warm() -> None:
    """Imports in advance the modules that the first question needs."""
    from ....constraints.rules import default_rules
    from ....solver.backends import z3_backend

    assert default_rules is not None and z3_backend is not None


def _limit(memory_mb: int) -> None:
    """The address space that this process may have, and no core files; where the system has such limits."""
    if sys.platform == "win32":
        return
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    most = (memory_mb + SLACK_MB) << 20
    if sys.platform.startswith("linux"):
        resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _limit_time(seconds: float) -> None:
    """Seconds of processor time that the next question may take: a backstop behind the clock outside."""
    if sys.platform == "win32":
        return
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    soft = int(used.ru_utime + used.ru_stime + seconds) + CPU_SLACK_S
    resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


if __name__ == "__main__":
    main()
