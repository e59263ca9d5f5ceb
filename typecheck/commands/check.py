"""`anyshape check TARGET --input … --assume …`: for which of the declared inputs does a program run?"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Final

from ..report import Report
from ..terminal import coloured, width
from .common import EXIT_CODES, TARGETS, Commands, add_target, command, running

_EPILOG: Final = f"""\
{TARGETS}
Exit codes: 0 proved, 1 refined or refuted, 2 bad usage or input, 3 unknown, 130 interrupted.
"""


def add(commands: Commands) -> None:
    parser = command(commands, "check", "for which of the declared inputs does a program run?", _EPILOG)
    add_target(parser)
    parser.add_argument("--format", choices=("text", "json"), default="text", help="of the report (text)")
    parser.add_argument("--shapes", action="store_true", help="show the shape of every intermediate value")
    parser.add_argument("--no-replay", action="store_true", help="do not try examples on the real program")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    with running(options) as tell:
        from ..api import check

        report = check(
            options.target,
            options.inputs,
            options.assume,
            budget_s=options.budget,
            replay=not options.no_replay,
            progress=tell,
        )
    print(_shown(report, options), end="")
    return EXIT_CODES[report.verdict]


def _shown(report: Report, options: argparse.Namespace) -> str:
    if options.format == "json":
        return json.dumps(report.to_json(), indent=2) + "\n"
    return report.to_text(width=width(), colour=coloured(sys.stdout), shapes=options.shapes)
