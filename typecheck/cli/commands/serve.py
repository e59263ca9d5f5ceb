"""`anyshape serve`: runs the service."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Final

from ..common import Commands, command

_EPILOG: Final = """\
With no options the service listens at http://127.0.0.1:8765/, keeps its database in ./anyshape-service and
asks for no token. Each setting is also an environment variable (ANYSHAPE_SERVICE_PORT=8100) or a line of a
file in TOML (--config); docs/service.md lists them all.

Exit codes: 0 ended on request, 2 bad usage or settings.
"""


def add(commands: Commands) -> None:
    parser = command(commands, "serve", "run the service that models are sent to", _EPILOG)
    add_store(parser)
    parser.add_argument("--host", help="address to listen at (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, help="port to listen at (default: 8765); 0 for any")
    parser.add_argument(
        "--workers", type=int, metavar="N", help="checks at a time (default: number of processors - 1)"
    )
    parser.add_argument("--executor", choices=("local", "ray"), help="where checks run (default: local)")
    parser.add_argument(
        "--insecure", action="store_true", default=None, help="serve other machines without tokens"
    )
    parser.add_argument(
        "--log-format", choices=("json", "text"), help="format of the log on stderr (default: json)"
    )
    parser.set_defaults(run=run)


def add_store(parser: argparse.ArgumentParser) -> None:
    """Adds the options for the settings and the database."""
    parser.add_argument("--config", metavar="FILE", type=Path, help="file of settings, in TOML")
    parser.add_argument(
        "--data", metavar="FOLDER", type=Path, help="folder of the database (default: anyshape-service)"
    )
    parser.add_argument("--database", metavar="URL", help="use PostgreSQL instead: postgresql+psycopg://…")


def settings_of(options: argparse.Namespace) -> Any:
    """The settings that the options ask for. Raises ConfigError."""
    from ...service.ops.settings import Settings, load

    given = {name: value for name, value in vars(options).items() if name in Settings.model_fields}
    return load(options.config, **given)


def run(options: argparse.Namespace) -> int:
    settings = settings_of(options)
    from ...service.serving import serve

    serve(settings)
    return 0
