"""The command line: `anyshape COMMAND …`. Each command is a file of `commands/`.

Exit codes: 0 proved or done, 1 refined or refuted, 2 bad usage or input, 3 unknown, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Final

from ..constraints.spec_text import SpecError
from .commands import check
from .commands.common import BAD_INPUT, INTERRUPTED, Commands
from .target import TargetError
from .terminal import width

COMMANDS: Final[tuple[Callable[[Commands], None], ...]] = (check.add,)
"""Each adds the parser of one command, in the order of the help text."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns its exit code."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.run(options)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return _interrupted()
    except BrokenPipeError:  # the reader of our output is gone, which is its right
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BAD_INPUT
    except (SpecError, TargetError) as error:
        if options.debug:
            raise
        print(_told(error), file=sys.stderr)
        return BAD_INPUT


def _interrupted() -> int:
    print("anyshape: interrupted; nothing was decided", file=sys.stderr)
    return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="anyshape",
        description="Proves for which input shapes a PyTorch program runs, before anything runs.",
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for add in COMMANDS:
        add(commands)
    return parser


def _told(error: SpecError | TargetError) -> str:
    """One message: what is wrong, where, and what to do."""
    lines = [f"anyshape: {error.problem}"]
    if isinstance(error, SpecError) and error.text:
        line, column = _line_at(error.text, error.column)
        lines.append(f"  {line}")
        if column:
            lines.append(f"  {' ' * (column - 1)}^")
    if isinstance(error, TargetError) and error.origin.file:
        lines.append(f"  {error.origin}")
        if error.origin.code:
            lines.append(f"    {error.origin.code}")
    if error.hint:
        lines += textwrap.wrap(error.hint, max(width() - 2, 40), initial_indent="  ", subsequent_indent="  ")
    return "\n".join(lines)


def _line_at(text: str, column: int) -> tuple[str, int]:
    """At most a line's length of the text around a column."""
    start = max(0, column - 60)
    shown = text[start : start + 90]
    if start:
        shown, column = "…" + shown, column + 1 - start
    return shown + ("…" if start + 90 < len(text) else ""), column


if __name__ == "__main__":
    sys.exit(main())
