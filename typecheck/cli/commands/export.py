"""`anyshape export TARGET --output FILE.pt2`: saves the exported program that takes all sizes that the model
takes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...project.config import ConfigError
from ...render.text import sizes
from ..common import TARGETS, Commands, add_format, add_output, add_target, command, require_writable, running
from .refine import bounds

if TYPE_CHECKING:
    from ...exporting.export import Exported

_EPILOG: Final = f"""\
{TARGETS}
The program is run next to the model at several sizes before it is saved. It checks its inputs: what the model
refuses, it refuses, too. What the model takes and the program does not is listed with the reasons.

Exit codes: 0 the file takes exactly the sizes that the model takes, 1 some are given up, 2 bad usage or
input, or torch cannot trace the model, 130 interrupted.
"""


def add(commands: Commands) -> None:
    parser = command(commands, "export", "save a model as a .pt2 that takes all sizes that run", _EPILOG)
    add_target(parser)
    add_output(parser, "program", required=True)
    parser.add_argument(
        "--finite", type=bounds, metavar="N|b=N,t=N", help="upper bounds for symbols without one"
    )
    add_format(parser)
    parser.set_defaults(run=run, budget=60.0)


def run(options: argparse.Namespace) -> int:
    file: Path = options.output
    if file.suffix != ".pt2":
        hint = f"did you mean {file.with_suffix('.pt2')}?"
        raise ConfigError(f"{file} is no name of an exported program", hint)
    require_writable(file)
    with running(options) as tell:
        from ...exporting.export import export

        found = export(
            options.target, options.inputs, options.assume, finite=options.finite, budget_s=options.budget,
            progress=tell,
        )  # fmt: skip
        tell("save")
        found.save(file)
    print(_json(found, file) if options.format == "json" else _text(found, file), end="")
    return 0 if found.exact else 1


def _json(found: Exported, file: Path) -> str:
    data: dict[str, Any] = {
        "target": found.report.target,
        "file": str(file),
        "inputs": list(found.report.inputs),
        "accepts": str(found.accepts),
        "exact": found.exact,
        "given_up": [str(one) for one in found.given_up],
        "checks": list(found.checks),
        "example": dict(found.example),
        "tried": [dict(at) for at in found.tried],
        "refused": [dict(at) for at in found.refused],
        "spec": found.shapes.to_json(),
    }
    return json.dumps(data, indent=2) + "\n"


def _text(found: Exported, file: Path) -> str:
    return "\n".join(_lines(found, file)) + "\n"


def _lines(found: Exported, file: Path) -> Iterator[str]:
    yield f"exported: {found.report.target} to {file} ({file.stat().st_size / 1000:,.0f} kB)"
    yield from (f"  {line}" for line in found.report.inputs)
    yield ""
    yield "It takes exactly the sizes that the model takes" if found.exact else "It takes the sizes"
    if found.accepts is not True:
        yield f"  {found.accepts}"
    if found.given_up:
        yield ""
        yield "The model takes more"
        yield from (f"  {one}" for one in found.given_up)
    yield ""
    same = "; ".join(map(sizes, found.tried)) or "no size"
    yield f"Run next to the model, with the same results, at {same}."
    if found.refused:
        yield f"It refuses {'; '.join(map(sizes, found.refused))}."
