"""`anyshape watch [TARGET]`: checks again whenever a file is saved that the answer depends on."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from ....constraints.ir.spec_text import SpecError
from ...project.config import FILE
from ...project.watching import changed, look, until_changed
from ...report.target_names import source_of
from ...targets.target_error import TargetError
from ..common import Commands, command
from ..errors import told
from . import check

if TYPE_CHECKING:
    from multiprocessing.context import ForkServerContext, SpawnContext

Context: TypeAlias = "ForkServerContext | SpawnContext"
_EPILOG: Final = """\
Options are those of `anyshape check`. Each check runs in a process of its own, in which torch is imported
already, so that it sees the program as it was saved. Ctrl-C ends it.
"""
_IMPORTED: Final = ["torch", "z3", "anyshape.typecheck.checking.api", "anyshape.tracer.recording.record"]


def add(commands: Commands) -> None:
    parser = command(commands, "watch", "check again whenever a file of the program is saved", _EPILOG)
    check.add_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    try:
        _watch(options)
    except KeyboardInterrupt:
        print()
    return 0


def _watch(options: argparse.Namespace) -> None:
    context = _context()
    files = _first(options)
    while True:
        before = look(files)
        files |= _one_check(context, options, files)
        edited = changed(before, {file: seen for file, seen in look(files).items() if file in before})
        if not edited:
            noun = "file" if len(files) == 1 else "files"
            print(f"watching {len(files)} {noun}", file=sys.stderr, flush=True)
            edited = until_changed(files, look(files))
        names = ", ".join(map(os.path.relpath, edited[:3])) + (" …" if len(edited) > 3 else "")
        print(f"\n{time.strftime('%H:%M:%S')} {names} changed\n", flush=True)


def _first(options: argparse.Namespace) -> set[str]:
    """Returns the files to watch before the first answer, which names the files that it depends on."""
    folders = (Path.cwd(), *Path.cwd().parents)
    files = {str(folder / FILE) for folder in folders if (folder / FILE).is_file()}
    source = source_of(options.target or "")
    return files | {os.path.abspath(source if source.endswith(".py") else options.target or FILE)}


def _context() -> Context:
    """Processes that have torch imported already, where the system can fork; else fresh ones."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)
    return context


def _one_check(context: Context, options: argparse.Namespace, files: set[str]) -> set[str]:
    """Checks in another process, and ends that if a file is saved meanwhile; the files that were read."""
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_check, args=(options, theirs), daemon=True)
    process.start()
    theirs.close()
    until_changed(files, look(files), process.is_alive)
    process.terminate()
    process.join()
    try:
        return set(ours.recv()) if ours.poll() else set()
    except EOFError:  # it was ended before it knew
        return set()


def _check(options: argparse.Namespace, result: Connection) -> None:
    read: set[str] = set()
    try:
        check.run(options, read)
    except (SpecError, TargetError) as error:
        print(told(error), file=sys.stderr)
    except KeyboardInterrupt:
        return
    sys.stdout.flush()
    result.send(sorted(read))
