"""The command line: `anyshape COMMAND …`. Each command is a file in `commands/`.

Exit codes: 0 proved or done, 1 refined or refuted, 2 bad usage or input, 3 unknown, 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from ...constraints.ir.spec_text import SpecError, suggestion
from ..targets.extras import missing
from ..targets.target_error import TargetError
from .common import BAD_INPUT, INTERRUPTED, CommandParser, with_args
from .errors import to_json, told

COMMANDS: Final = (
    "check", "init", "explain", "refine", "export", "watch", "infer", "branches", "migrate", "check-many",
    "spec", "submit", "serve", "token", "completion",
)
"""A file in `commands/` each, the most useful first, as in the help text. Only the one that is called is
imported.
"""


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
        return _refused(error, options)
    except ModuleNotFoundError as error:
        absent = missing(error)
        if options.debug or absent is None:
            raise
        return _refused(absent, options)


def _refused(error: SpecError | TargetError, options: argparse.Namespace) -> int:
    if getattr(options, "format", None) == "json":
        print(json.dumps(to_json(error), indent=2))
    else:
        print(told(error), file=sys.stderr)
    return BAD_INPUT


def _interrupted() -> int:
    print("anyshape: interrupted; nothing was decided", file=sys.stderr)
    return INTERRUPTED


def _parsed(given: list[str]) -> argparse.Namespace:
    """Returns the options of a command. Exits with code 2 and a message where the arguments are none."""
    called = given[0] if given else ""
    parser = parser_of(called)
    if called not in COMMANDS and not called.startswith("-") and (hint := suggestion(called, COMMANDS)):
        parser.error(f"there is no command {called!r}: {hint}")
    options, rest = parser.parse_known_args(given)
    if rest and rest[0].startswith("-"):
        name = rest[0].partition("=")[0]
        hint = suggestion(name, _options(called)) or f"anyshape {called} --help lists the options"
        parser.error(f"there is no option {name!r} of {called}: {hint}")
    if rest:
        parser.error(f"there is one TARGET too many: {rest[0]!r}; options such as --input take one value")
    return options


def _options(called: str) -> list[str]:
    """Returns the long options of a command."""
    commands = CommandParser().add_subparsers()
    import_module(f".commands.{called.replace('-', '_')}", __package__).add(commands)
    return [*dict.fromkeys(re.findall(r"--[a-z][a-z-]*", commands.choices[called].format_usage()))]


def parser_of(called: str = "") -> argparse.ArgumentParser:
    """Returns the parser of one command, or of all where none of them is called."""
    parser = CommandParser(
        prog="anyshape",
        description="Proves for which input shapes a PyTorch program runs, before anything runs.",
        epilog="anyshape COMMAND --help says more of a command.",
        add_help=False,
    )
    commands = parser.add_subparsers(
        metavar="COMMAND", required=True, title="commands", parser_class=CommandParser
    )
    options = parser.section("options")
    options.add_argument("-h", "--help", action="help", help="show this help message")
    options.add_argument("--version", action=_Version, nargs=0, help="show the versions that decide answers")
    for name in (called,) if called in COMMANDS else COMMANDS:
        import_module(f".commands.{name.replace('-', '_')}", __package__).add(commands)
    return parser


class _Version(argparse.Action):
    """Prints the versions of this package and of what its answers depend on, without importing them."""

    def __call__(self, parser: argparse.ArgumentParser, *given: object) -> None:
        told = ", ".join(map(_versioned, ("anyshape", "torch", "z3-solver")))
        print(f"{told}, Python {platform.python_version()}")
        parser.exit()


def _versioned(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return f"no {package}"


if __name__ == "__main__":
    sys.exit(main())
