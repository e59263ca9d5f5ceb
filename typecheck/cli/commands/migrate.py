"""`anyshape migrate TARGET`: find the types that fit a program with few or no types"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import islice
from typing import Any, Final

from ...report.report import Verdict
from ..common import TARGETS, Commands, add_format, add_target, command, running

_EPILOG: Final = f"""\
{TARGETS}
A torch.fx.GraphModule is a target, too, with the types of its nodes (TensorType, Dyn, a text). Without
--input, annotations of the program are used.

Exit codes: 0 there is a static migration, 1 there is none, 2 bad usage or input, 3 it is not known,
130 interrupted.
"""


def add(commands: Commands) -> None:
    parser = command(commands, "migrate", "find the types that fit a program with few or no types", _EPILOG)
    add_target(parser)
    parser.add_argument("--maximal", type=int, metavar="N", default=0, help="list the first N migrations")
    parser.add_argument("--source", action="store_true", help="print the program with all its types")
    add_format(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    with running(options) as tell:
        from ...gradual.migrating import migrate

        found = migrate(
            options.target, options.inputs, options.assume, budget_s=options.budget, progress=tell
        )
        some = [*islice(found.maximal(), options.maximal)] if found.static else []
        count = found.count() if options.maximal and found.static else None
        source = found.source if options.source and found.static else ""
    if options.format == "json":
        data: dict[str, Any] = found.to_json()
        data |= {"maximal": [dict(one.sizes) for one in some], "count": None if count is None else str(count)}
        print(json.dumps(data | ({"source": source} if source else {}), indent=2))
    else:
        print(found.to_text(), end="")
        if count is not None:
            print("\n".join((f"\n{count} maximal", *(f"  {one}" for one in some))))
        if source:
            print(f"\n{source}", end="")
    sys.stdout.flush()
    return 0 if found.static else 1 if found.report.verdict is Verdict.REFUTED else 3
