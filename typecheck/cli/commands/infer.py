"""`anyshape infer TARGET --examples inputs.pt` prints which sizes vary, and which relations the program
needs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from ....constraints.terms.formula import free_symbols
from ..common import EXIT_CODES, Commands, add_assumptions, add_format, add_program, command, running
from ..terminal import coloured, width

if TYPE_CHECKING:
    from ...checking.inference import Inferred, InferredRelation, Status

_EPILOG: Final = """\
TARGET is file.py:Name, package.module:Name or a saved .pt2, as for `anyshape check`.

The file of examples is what torch.save([example, example, ...], "inputs.pt") writes. An example is a tuple of
arguments, a dict of arguments by name, or one tensor. It is loaded with weights_only=True: nothing in it is
run. Sizes that differ among the examples vary. A relation that holds in all examples is proved if the program
needs it, and refuted by sizes at which the program runs without it.

Exit codes: those of a check of the spec: 0 proved, 1 refined or refuted, 2 bad usage or input, 3 unknown,
130 interrupted.
"""


def add(commands: Commands) -> None:
    purpose = "find out from examples which sizes vary, and which relations the program needs"
    parser = command(commands, "infer", purpose, _EPILOG)
    add_program(parser)
    parser.add_argument(
        "--examples", "-e", required=True, metavar="FILE", help="file of two or more example inputs"
    )
    add_assumptions(parser, "x_0 <= 64")
    add_format(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    with running(options) as tell:
        from ....tracer.readers.examples import read
        from ...checking.inference import infer

        examples = read(options.examples)
        found = infer(options.target, examples, assume=options.assume, budget_s=options.budget, progress=tell)
    if options.format == "json":
        print(json.dumps(found.to_json(), indent=2))
    else:
        print("\n".join(_text(found)))
        print(found.report.to_text(width=width(), colour=coloured(sys.stdout)), end="")
    return EXIT_CODES[found.report.verdict]


_WORDS: Final[Mapping[Status, str]] = {
    "proved": "needed by the program",
    "refuted": "a coincidence",
    "unknown": "not known",
}


def _text(found: Inferred) -> Iterator[str]:
    yield from (f'--input "{line}"' for line in found.spec)
    yield from (f'--assume "{condition}"' for condition in found.assume)
    if found.relations:
        yield "\nrelations that hold in all examples"
        longest = max(len(relation.text) for relation in found.relations)
        yield from (f"  {relation.text.ljust(longest)}  {_told(relation)}" for relation in found.relations)
    if found.refused:
        yield f"\nrefused: example {', '.join(map(str, found.refused))}"
    yield ""


def _told(relation: InferredRelation) -> str:
    told = _WORDS[relation.status]
    if relation.witness is not None:
        names = sorted(free_symbols(relation.formula))
        shown = ", ".join(f"{name}={relation.witness[name]}" for name in names)
        told += f": it runs with {shown}"
    return told if relation.given is True else f"{told}, where no size is 1"
