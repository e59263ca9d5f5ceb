"""`anyshape completion SHELL`: prints a script by which a shell completes commands, options and files."""

from __future__ import annotations

import argparse
from typing import Final

from ..common import NAMING_FILES, Commands, command

SHELLS: Final = ("bash", "zsh", "fish")
_EPILOG: Final = """\
To have it in every new shell:
  bash  anyshape completion bash > ~/.local/share/bash-completion/completions/anyshape
  zsh   anyshape completion zsh > ~/.zfunc/_anyshape   (with ~/.zfunc in fpath, before compinit)
  fish  anyshape completion fish > ~/.config/fish/completions/anyshape.fish
"""


def add(commands: Commands) -> None:
    parser = command(commands, "completion", "print the script that completes commands in a shell", _EPILOG)
    parser.add_argument("shell", choices=SHELLS, help="the shell")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    import shtab

    from ..main import parser_of

    parser = parser_of()
    for argument in NAMING_FILES:
        argument.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, options.shell))
    return 0
