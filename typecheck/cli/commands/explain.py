"""`anyshape explain CODE`: what a kind of finding means, with an example of it and one repaired."""

from __future__ import annotations

import argparse
import re
import sys
from typing import Final

from ....constraints.ir.spec_text import suggestion
from ...project.config import ConfigError
from ...report.catalogue import section
from ...report.codes import Code
from ..common import Commands, command
from ..terminal import coloured

_EPILOG: Final = "Without CODE, all codes are listed."


def add(commands: Commands) -> None:
    parser = command(
        commands, "explain", "explain a code of findings, with an example and its repair", _EPILOG
    )
    parser.add_argument("code", metavar="CODE", nargs="?", help="code of a finding, such as shape-mismatch")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    if options.code is None:
        wide = max(map(len, Code))
        for code in Code:
            print(f"{code.ljust(wide)}  {code.severity.ljust(7)}  {code.summary}")
        return 0
    codes = [code.value for code in Code]
    if options.code not in codes:
        hint = suggestion(options.code, codes) or "`anyshape explain` lists them"
        raise ConfigError(f"{options.code!r} is not a code of findings", hint)
    print(explanation(Code(options.code), colour=coloured(sys.stdout)), end="")
    return 0


def explanation(code: Code, *, colour: bool = False) -> str:
    """The section of docs/findings.md, which comes with the package."""
    return f"{_styled(code.value, '1', colour)}\n\n{_plain(section(code), colour)}\n"


def _plain(text: str, colour: bool) -> str:
    """Markdown for a terminal: code is indented, its fences are words."""
    lines, inside = [], False
    for line in text.splitlines():
        if line.startswith("```"):
            inside = not inside
            if inside:
                lines.append(_styled(f"{line.split()[-1].capitalize()}:", "1", colour))
        else:
            lines.append(f"    {line}".rstrip() if inside else re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", line))
    return "\n".join(lines)


def _styled(text: str, style: str, colour: bool) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if colour else text
