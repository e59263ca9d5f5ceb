"""Parts that subcommands share: the target and its inputs, the budget, exit codes, and the display of
progress.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from ..facade import Report
from ..project.config import ConfigError
from ..report.codes import Code
from ..report.report import Verdict
from ..targets.construction import called_with
from ..targets.target_error import TargetError
from .terminal import ProgramOutput, progress


class CommandParser(argparse.ArgumentParser):
    """The parser of a command, with its options in sections."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sections: dict[str, Any] = {}

    def section(self, title: str) -> Any:
        """Returns the group of arguments of this title, which is added at the end if it is new."""
        if title not in self._sections:
            self._sections[title] = self.add_argument_group(title)
        return self._sections[title]


PROGRAM: Final = "the program and its inputs"
PRINTED: Final = "what is printed"
METHOD: Final = "how it is checked"
KNOWN: Final = "known findings"
SERVICE: Final = "the service"
"""The titles of sections of options."""
Commands: TypeAlias = "argparse._SubParsersAction[CommandParser]"
"""Where a subcommand adds its parser. The parser's default `run` is a function from the options to an exit
code, which prints its result to stdout and raises SpecError or TargetError for what the user should mend.
"""

EXIT_CODES: Final[Mapping[Verdict, int]] = {
    Verdict.PROVED: 0,
    Verdict.REFINED: 1,
    Verdict.REFUTED: 1,
    Verdict.UNKNOWN: 3,
}
BAD_INPUT: Final = 2
INTERRUPTED: Final = 130

TARGETS: Final = """\
TARGET is file.py:Name, package.module:Name or a saved .pt2. Name is a class, a model, a function, or a
function that makes one of these. Arguments for a class, or for a function that makes a model, stand in
parentheses, "unet.py:UNet(3, classes=21)", or in --args "3, classes=21".

A spec names an input, its dtype and its sizes, which may be terms. An input without a dtype has the one
that the program needs, and float32 where it does not care:
  --input "x: float32[b, 3, 4*h, w]" --input "idx: [b, t]" --input "n: int" --input "flag=True"
An assumption narrows the inputs: --assume "h % 32 == 0" --assume "2 <= b <= 64"
"""
"""The part of a help text that says what to write for a target and its inputs."""


NAMING_FILES: Final[list[argparse.Action]] = []
"""The arguments of all commands added so far whose values are names of files, which a shell completes."""


def names_file(argument: argparse.Action) -> None:
    """Notes that an argument of a command is the name of a file."""
    NAMING_FILES.append(argument)


def exit_code(report: Report) -> int:
    """Returns the exit code of a check: 0 where the report passes, or that of its verdict; 1 where its file
    raises an error about sizes when it is imported.
    """
    if any(one.code is Code.RAISED_AT_IMPORT and not one.suppressed for one in report.findings):
        return EXIT_CODES[Verdict.REFUTED]
    return 0 if report.passes else EXIT_CODES[report.verdict]


def command(commands: Commands, name: str, purpose: str, epilog: str) -> CommandParser:
    """The parser of a new subcommand, with the options that each of them has."""
    parser = commands.add_parser(
        name,
        help=purpose,
        description=f"{purpose[0].upper()}{purpose[1:]}.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parser


def add_target(parser: CommandParser, *, optional: bool = False) -> None:
    """TARGET, its inputs and assumptions, and the seconds that the answer may take."""
    add_program(parser, optional=optional)
    parser.section(PROGRAM).add_argument(
        "--input",
        "-i",
        action="append",
        metavar="SPEC",
        dest="inputs",
        help='an input: "x: float32[b, 3, h, w]"',
    )
    add_assumptions(parser, "h %% 32 == 0")


def add_program(parser: CommandParser, *, optional: bool = False) -> None:
    """TARGET alone."""
    help = "the program: file.py:Name, package.module:Name or FILE.pt2"
    section = parser.section(PROGRAM)
    names_file(section.add_argument("target", metavar="TARGET", nargs="?" if optional else None, help=help))
    section.add_argument(
        "--args", metavar="TEXT", help='arguments with which TARGET is built: "3, classes=21"; literals only'
    )


def with_args(options: argparse.Namespace) -> argparse.Namespace:
    """Returns the options of a command, with `--args` as part of its target."""
    if getattr(options, "args", None) is not None:
        if options.target is None:
            raise TargetError("--args applies to one TARGET, and none is named")
        options.target = called_with(options.target, options.args)
    return options


def add_assumptions(parser: CommandParser, example: str) -> None:
    """Assumptions, and the seconds that the answer may take."""
    parser.section(PROGRAM).add_argument(
        "--assume", "-a", action="append", metavar="TEXT", default=[], help=f'an assumption: "{example}"'
    )
    parser.section(METHOD).add_argument(
        "--budget",
        type=seconds,
        default=30.0,
        metavar="S",
        help="seconds until the answer is unknown (default: 30)",
    )


def add_format(
    parser: CommandParser, what: str = "answer", formats: Iterable[str] = ("text", "json")
) -> None:
    """The format of what is printed."""
    parser.section(PRINTED).add_argument(
        "--format", choices=formats, default="text", help=f"format of the {what} (default: text)"
    )


def add_output(parser: CommandParser, what: str, *, required: bool = False) -> None:
    """The file into which the result is written."""
    help = f"write the {what} into a file"
    add = parser.section(PRINTED).add_argument
    names_file(add("--output", "-o", metavar="FILE", type=Path, required=required, help=help))


def require_writable(output: Path | None) -> None:
    """Raises ConfigError where the file for the result cannot be written: before the work, not after it."""
    if output is not None:
        is_new = not output.exists()
        try:
            output.open("a").close()
        except OSError as error:
            raise _unwritable(output, error) from None
        if is_new:
            output.unlink()


def put(text: str, output: Path | None) -> None:
    """Prints a result, or writes it into a file."""
    if output is None:
        print(text, end="")
        return
    try:
        output.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise _unwritable(output, error) from None


def _unwritable(output: Path, error: OSError) -> ConfigError:
    return ConfigError(f"{output} cannot be written: {error.strerror}", "name another file by --output")


def seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number of seconds above zero, got {text!r}")
    return number


def running(options: argparse.Namespace) -> contextlib.AbstractContextManager[Callable[[str], Any]]:
    """As `running_for`, for the budget among the options."""
    return running_for(options.budget)


@contextlib.contextmanager
def running_for(budget: float) -> Iterator[Callable[[str], Any]]:
    """While the user's program runs: what it prints goes to stderr, marked as its own output, and a bar tells
    what is being done.
    """
    # A torch without numpy says so at import, which is of no concern here.
    warnings.filterwarnings("ignore", message="Failed to initialize NumPy")
    with progress(budget) as tell, contextlib.redirect_stdout(ProgramOutput(sys.stderr)):
        yield tell
