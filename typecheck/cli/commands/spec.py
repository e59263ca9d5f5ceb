"""`anyshape spec FILE.json`: reads a saved spec of dynamic shapes, and writes it in either schema."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Final

from ...dim_specs.lowering import to_torch_json
from ...dim_specs.specs import DimSpec, DimSpecError, loads, to_json
from ..common import Commands, command

_EPILOG: Final = """\
FILE.json is a spec in torch's schema (torch._export.serde.dynamic_shapes) or in anyshape's, which has a
version and carries what torch's cannot; - is the standard input. Nothing in it is evaluated. What torch's
schema cannot say is listed on stderr.

Exit codes: 0 converted in full, 1 some of it is lost, 2 the file is not a spec, 130 interrupted.
"""


def add(commands: Commands) -> None:
    parser = command(
        commands, "spec", "convert a saved spec of dynamic shapes to torch's schema or to anyshape's", _EPILOG
    )
    parser.add_argument("file", metavar="FILE.json", help="a spec as JSON, or - for the standard input")
    parser.add_argument(
        "--to",
        choices=("torch", "anyshape"),
        default="anyshape",
        help="schema of the output (default: anyshape)",
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    spec = _read(options.file)
    data, lost = to_torch_json(spec) if options.to == "torch" else (to_json(spec), ())
    print(json.dumps(data, indent=2))
    for part in lost:
        print(f"anyshape: lost: {part}", file=sys.stderr)
    return 1 if lost else 0


def _read(path: str) -> DimSpec:
    if path == "-":
        return loads(sys.stdin.buffer.read())
    try:
        with open(path, "rb") as file:
            return loads(file.read())
    except OSError as error:
        raise DimSpecError(f"{path} cannot be read: {error.strerror}") from None
