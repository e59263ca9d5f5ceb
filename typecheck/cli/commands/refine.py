"""`anyshape refine TARGET --input … --assume …`: describes the sizes that run as a spec for `torch.export`.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ....constraints.ir.language import Fact
from ....solver.tactics.judge import Budget, Judge
from ...dim_specs.dynamic_shapes import DynamicShapes
from ...facade import Report
from ...report.report import Verdict
from ..common import TARGETS, Commands, add_format, add_target, command, running

_EPILOG: Final = f"""\
{TARGETS}
The command prints Python to paste: the dims and the argument `dynamic_shapes` of torch.export.export. They
describe the largest set of sizes within those that run; comments list the sizes that torch cannot express. A
model in Python is traced by torch, so that the dims are those that torch takes as they are printed.

Exit codes: 0 all sizes that run are described, 1 some are given up, or none run, 2 bad usage or input,
3 it is not known for certain what runs, 130 interrupted.
"""
SECONDS: Final = 20.0


def add(commands: Commands) -> None:
    parser = command(commands, "refine", "describe the sizes that run as a spec for torch.export", _EPILOG)
    add_target(parser)
    add_format(parser)
    parser.add_argument(
        "--finite",
        type=bounds,
        metavar="N|b=N,t=N",
        help="upper bounds for symbols without one; also prints the bounds of every size inside the program",
    )
    parser.add_argument(
        "--untraced",
        action="store_true",
        help="print the dims without a look at what torch.export takes, which traces the model in Python",
    )
    parser.set_defaults(run=run)


def bounds(text: str) -> int | dict[str, int]:
    """`64` is the bound of all symbols that have none, `b=64,t=2048` one for each."""
    try:
        if "=" not in text:
            return int(text)
        parts = [part.split("=") for part in text.split(",")]
        return {name.strip(): int(bound) for name, bound in parts}
    except ValueError:
        problem = f"expected a bound or bounds by name, such as 64 or b=64,t=2048, got {text!r}"
        raise argparse.ArgumentTypeError(problem) from None


def run(options: argparse.Namespace) -> int:
    with running(options) as tell:
        from ...checking.api import examine
        from ...exporting.graphs.inner_sizes import bounding, inner_sizes

        assume = [*options.assume]
        examined = examine(options.target, options.inputs, assume, budget_s=options.budget, progress=tell)
        if options.finite is not None:
            assume += bounding(examined.report, options.finite)
            examined = examine(options.target, options.inputs, assume, budget_s=options.budget, progress=tell)
        report = examined.report
        shapes = report.dynamic_shapes
        if shapes is not None and not options.untraced and examined.target.kind == "python":
            from ...exporting.plain import taken_shapes

            tell("torch.export")
            shapes = taken_shapes(examined, seconds=options.budget)
        sizes: Mapping[str, Fact] = {}
        if options.finite is not None and shapes is not None:
            sizes = inner_sizes(examined.system, Judge(Budget(SECONDS)), shapes.formula)
    if shapes is None:
        problem = "runs for none of the declared inputs; `anyshape check` says why"
        print(f"anyshape: {report.target} {problem}", file=sys.stderr)
        return 1
    print(_json(report, shapes, sizes) if options.format == "json" else _text(report, shapes, sizes), end="")
    return 3 if report.verdict is Verdict.UNKNOWN else 0 if shapes.exact else 1


def _json(report: Report, shapes: DynamicShapes, sizes: Mapping[str, Fact]) -> str:
    from ...render.json import fact_json

    data: dict[str, Any] = {
        "target": report.target,
        "verdict": report.verdict.value,
        "accepts": str(report.accepts),
        "symbols": {name: fact_json(known) for name, known in report.dims.items()},
        **shapes.to_json(),
    }
    if sizes:
        data["inner_sizes"] = {size: fact_json(known) for size, known in sizes.items()}
    return json.dumps(data, indent=2) + "\n"


def _text(report: Report, shapes: DynamicShapes, sizes: Mapping[str, Fact]) -> str:
    everywhere = report.accepts.formula is True
    where = "for all declared inputs" if everywhere else f"where: {report.accepts}"
    lines = [f"# {report.target} runs {where}", *_table(sizes)]
    if not shapes.proved:
        lines.insert(1, "# this is not certain: `anyshape check` gives the reasons")
    return "\n".join((*lines, shapes.to_python()))


def _table(sizes: Mapping[str, Fact]) -> Iterator[str]:
    from ...render.text import fact_text

    width = max(map(len, sizes), default=0)
    yield from (f"# {size.ljust(width)}  {fact_text(known)}" for size, known in sizes.items())
