"""`anyshape init [FOLDER]`: writes the settings of a project, with the models that are found in it."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from ....constraints.ir.spec_text import SpecError
from ...project.config import FILE, ConfigError
from ...project.discovery import FoundModel, found_models
from ...project.settings_text import TriedModel, require_no_table, settings, written
from ...targets.target_error import TargetError
from ..common import METHOD, PRINTED, Commands, command, names_file, running_for, seconds

_EPILOG: Final = f"""\
Files are read to find the classes that are models and no parts of other models. Each is then imported, and
types of inputs are tried until it runs. The first spec that runs becomes a target in {FILE}, with what the
check says as a comment; a model for which none is found becomes a comment. A model with arguments is built as
the project builds it somewhere, if these arguments are literals.

A table [tool.anyshape] that is there already is never changed.

Exit codes: 0 written, 2 there is such a table already, or there is no model, 130 interrupted.
"""
BUDGET_S: Final = 10.0


def add(commands: Commands) -> None:
    purpose = "write the settings of a project: its models, and inputs that were tried on them"
    parser = command(commands, "init", purpose, _EPILOG)
    help = "root of the project (default: the current folder)"
    folder = parser.add_argument("folder", metavar="FOLDER", nargs="?", type=Path, default=Path(), help=help)
    names_file(folder)
    help = "print the settings and write nothing"
    parser.section(PRINTED).add_argument("--dry-run", action="store_true", help=help)
    parser.section(METHOD).add_argument(
        "--budget", type=seconds, default=BUDGET_S, metavar="S", help="seconds for each model (default: 10)"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    folder = options.folder
    if not folder.is_dir():
        raise ConfigError(f"{folder} is not a folder", "name the root of the project")
    require_no_table(folder)
    models = found_models(folder)
    if not models:
        raise ConfigError(f"no class in {folder.resolve()} is a model", "name the folder of the project")
    with contextlib.chdir(folder), running_for(options.budget) as tell:
        tried = [_tried(model, options.budget, tell) for model in models]
    text = settings(tried)
    if options.dry_run:
        print(text, end="")
        return 0
    file = written(folder, text)
    without = sum(one.report is None for one in tried)
    told = f"; for {without} no inputs were found, see the comments" if without else ""
    print(f"{file}: {len(tried)} {'model' if len(tried) == 1 else 'models'}{told}")
    print("anyshape check checks them")
    return 0


def _tried(model: FoundModel, budget: float, tell: Callable[[str], Any]) -> TriedModel:
    """Returns a model with what a check says of the inputs that are guessed for it."""
    print(f"{model.file}: {model.name}", file=sys.stderr)
    if model.needs and not model.built:
        return TriedModel(model, None, f"its constructor needs {', '.join(model.needs)}")
    from ...checking.api import check

    try:
        report = check(model.target, budget_s=budget, replay=False, training=False, progress=tell)
    except (SpecError, TargetError) as error:
        return TriedModel(model, None, error.problem)
    return TriedModel(model, report) if report.inputs else TriedModel(model, None, report.findings[0].message)
