"""The command line: `anyshape COMMAND …`. Each command is a file of this folder.

Exit codes: 0 proved or done, 1 refined or refuted, 2 bad usage or input, 3 unknown, 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final

from ...constraints.ir.spec_text import SpecError, suggestion
from ..checking.target_error import TargetError
from .common import BAD_INPUT, INTERRUPTED, with_args
from .errors import told

COMMANDS: Final = (
    "check", "watch", "explain", "refine", "infer", "migrate", "branches", "spec", "serve", "submit",
    "check-many", "token",
)
"""A file of this folder each, in the order of the help text. Only the one that is called is imported."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command; returns its exit code."""
    given = sys.argv[1:] if arguments is None else [*arguments]
    options = _parsed(given)
    try:
        code: int = options.run(with_args(options))
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
        print(told(error), file=sys.stderr)
        return BAD_INPUT


def _interrupted() -> int:
    print("anyshape: interrupted; nothing was decided", file=sys.stderr)
    return INTERRUPTED


def _parsed(given: list[str]) -> argparse.Namespace:
    """Returns the options of a command. Exits with code 2 and a message where the arguments are none."""
    called = given[0] if given else ""
    parser = _parser(called)
    if called not in COMMANDS and not called.startswith("-") and (hint := suggestion(called, COMMANDS)):
        parser.error(f"there is no command {called!r}: {hint}")
    options, rest = parser.parse_known_args(given)
    if rest:
        hint = "" if rest[0].startswith("-") else " (options such as --input take one value each time)"
        parser.error(f"unrecognized arguments: {' '.join(rest)}{hint}")
    return options


def _parser(called: str = "") -> argparse.ArgumentParser:
    """The parser of one command, or of all where none of them is called."""
    parser = argparse.ArgumentParser(
        prog="anyshape",
        description="Proves for which input shapes a PyTorch program runs, before anything runs.",
    )
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name in (called,) if called in COMMANDS else COMMANDS:
        import_module(f".{name.replace('-', '_')}", __package__).add(commands)
    return parser


if __name__ == "__main__":
    sys.exit(main())
