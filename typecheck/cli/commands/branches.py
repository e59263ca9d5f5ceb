"""`anyshape branches TARGET`: find conditions on shapes that have the same outcome for every input"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from ..common import TARGETS, Commands, add_format, add_target, command, running

if TYPE_CHECKING:
    from ....constraints.terms.formula import Formula
    from ...gradual.branching import BranchOn

_EPILOG: Final = f"""\
{TARGETS}
The conditions are those of `if`, `assert`, `while`, `and` and `or` that depend on shapes, and in a
torch.fx.GraphModule the nodes whose value is a bool.

Exit codes: 0 each condition has one outcome, 1 some have two, 2 bad usage or input, 130 interrupted.
"""


def add(commands: Commands) -> None:
    parser = command(
        commands, "branches", "find conditions on shapes that have the same outcome for every input", _EPILOG
    )
    add_target(parser)
    add_format(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    with running(options) as tell:
        from ...gradual.branching import branches

        found = branches(
            options.target, options.inputs, options.assume, budget_s=options.budget, progress=tell
        )
    if options.format == "json":
        print(json.dumps([branch.to_json() for branch in found], indent=2))
    else:
        print("\n".join(line for branch in found for line in _text(branch)) or "no condition on shapes")
    return 0 if all(branch.outcome is not None for branch in found) else 1


def _text(branch: BranchOn) -> Iterator[str]:
    where = f"{branch.origin}: " if branch.origin.line else ""
    if branch.outcome is not None:
        yield f"{where}{branch.text}  is always {branch.outcome}"
        return
    yield f"{where}{branch.text}" + ("  (data decide, too)" if branch.on_data else "")
    if branch.missed:
        yield f"  as far as was examined: {branch.missed}"
    yield f"  True {_where(branch.when_true)}{_at(branch.true_at)}"
    yield f"  False {_where(branch.when_false)}{_at(branch.false_at)}"


def _where(sizes: Formula) -> str:
    return "at all sizes" if sizes is True else "at no sizes" if sizes is False else f"where {sizes}"


def _at(example: Mapping[str, int] | None) -> str:
    return "" if not example else f", as at {', '.join(f'{name}={size}' for name, size in example.items())}"
