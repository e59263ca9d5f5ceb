"""The command line: `anyshape check TARGET --input … --assume …`.

Exit codes: 0 proved, 1 refined or refuted, 2 bad usage or input, 3 unknown, 130 interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from ..constraints.spec_text import SpecError
from .report import Report, Verdict
from .target import TargetError

EXIT_CODES: Final[Mapping[Verdict, int]] = {
    Verdict.PROVED: 0,
    Verdict.REFINED: 1,
    Verdict.REFUTED: 1,
    Verdict.UNKNOWN: 3,
}
BAD_INPUT: Final = 2
INTERRUPTED: Final = 130
PATIENCE: Final = 2.0
"""Seconds after which a progress bar appears."""

_EPILOG = """\
TARGET is file.py:Name, package.module:Name or a saved .pt2. Name is a class that is built without arguments,
a model, a function, or a function without arguments that makes one of these.

A spec names an input, its dtype and its sizes, which may be terms; float32 is meant if the dtype is left out:
  --input "x: float32[b, 3, 4*h, w]" --input "n: int" --input "flag=True"
An assumption narrows the inputs: --assume "h % 32 == 0" --assume "2 <= b <= 64"

Exit codes: 0 proved, 1 refined or refuted, 2 bad usage or input, 3 unknown, 130 interrupted.
"""


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
    check = commands.add_parser(
        "check",
        help="for which of the declared inputs does a program run?",
        description="For which of the declared inputs does a program run?",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    check.add_argument(
        "target", metavar="TARGET", help="what to check: file.py:Name, package.module:Name, FILE.pt2"
    )
    check.add_argument(
        "--input", "-i", action="append", metavar="SPEC", dest="inputs", help='"x: float32[b, 3, h, w]"'
    )
    check.add_argument("--assume", "-a", action="append", metavar="TEXT", default=[], help='"h %% 32 == 0"')
    check.add_argument("--format", choices=("text", "json"), default="text", help="of the report (text)")
    check.add_argument("--shapes", action="store_true", help="show the shape of every intermediate value")
    check.add_argument(
        "--budget", type=_seconds, default=30.0, metavar="S", help="seconds for the check (30)"
    )
    check.add_argument("--no-replay", action="store_true", help="do not try examples on the real program")
    check.add_argument("--debug", action="store_true", help="show the traceback of an error")
    check.set_defaults(run=_check)
    return parser


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number of seconds above zero, got {text!r}")
    return seconds


def _check(options: argparse.Namespace) -> int:
    # A torch without numpy says so at import, which is of no concern here.
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
    # What the user's program prints does not belong to the report.
    with _progress(options.budget) as tell, contextlib.redirect_stdout(sys.stderr):
        from .api import check

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
    return report.to_text(width=_width(), colour=_coloured(sys.stdout), shapes=options.shapes)


def _width() -> int:
    return min(shutil.get_terminal_size((100, 24)).columns, 120)


def _coloured(stream: Any) -> bool:
    """On a terminal, unless the environment says no (https://no-color.org) or the terminal cannot."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


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
        lines += textwrap.wrap(error.hint, max(_width() - 2, 40), initial_indent="  ", subsequent_indent="  ")
    return "\n".join(lines)


def _line_at(text: str, column: int) -> tuple[str, int]:
    """At most a line's length of the text around a column."""
    start = max(0, column - 60)
    shown = text[start : start + 90]
    if start:
        shown, column = "…" + shown, column + 1 - start
    return shown + ("…" if start + 90 < len(text) else ""), column


@contextlib.contextmanager
def _progress(budget: float) -> Iterator[Callable[[str], None]]:
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


def _draw(budget: float, step: list[str], done: threading.Event) -> None:
    started = time.monotonic()
    if done.wait(PATIENCE):
        return
    from tqdm import tqdm

    form = "{desc}: {n:.0f} of {total:.0f} s |{bar}|"
    with tqdm(
        total=budget,
        initial=min(PATIENCE, budget),
        desc=step[0],
        bar_format=form,
        leave=False,
        file=sys.stderr,
    ) as bar:
        while not done.wait(0.2):
            bar.desc = step[0]
            bar.n = min(time.monotonic() - started, budget)
            bar.refresh()


if __name__ == "__main__":
    sys.exit(main())
