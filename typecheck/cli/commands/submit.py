"""`anyshape submit TARGET`: has a service check a program that is traced here."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...checking.clock import Progress
from ...facade import Report
from ...project.config import ConfigError, ConfiguredJob
from ...render.formats import FORMATS
from ..common import (
    SERVICE,
    TARGETS,
    CommandParser,
    Commands,
    add_format,
    add_target,
    command,
    exit_code,
    running,
)
from ..terminal import coloured, width

if TYPE_CHECKING:
    from ...remote.client import Client, Priority, Submitted
    from ...remote.sending import Package

_EPILOG: Final = f"""\
{TARGETS}
The program is traced here. Its calls are sent, but no weights, and no source except the lines that reports
show; with --no-source not even these. A .pt2 is sent as the JSON of its graph. The same program and spec are
solved once, whoever asks.

The service is that of --server or of ANYSHAPE_SERVER (http://127.0.0.1:8765); the token is read from
--token-file or from ANYSHAPE_TOKEN.

Exit codes: those of `anyshape check`; 0 with --no-wait, once the service has accepted it.
"""


def add(commands: Commands) -> None:
    parser = command(commands, "submit", "send a program to a service that checks it", _EPILOG)
    add_target(parser)
    add_server(parser)
    parser.section(SERVICE).add_argument(
        "--no-wait", action="store_true", help="print the id of the check and do not wait for it"
    )
    parser.section(SERVICE).add_argument(
        "--priority", choices=("low", "normal", "high"), help="priority of the check (default: normal)"
    )
    add_format(parser, "report", FORMATS)
    parser.set_defaults(run=run)


def add_server(parser: CommandParser) -> None:
    """Adds the options that name the service, identify the user, and limit what is sent."""
    service = parser.section(SERVICE)
    service.add_argument("--server", metavar="URL", help="address of the service")
    service.add_argument("--token-file", metavar="FILE", type=Path, help="file that holds the token")
    service.add_argument("--no-source", action="store_true", help="send no text of source lines")


def client_of(options: argparse.Namespace) -> Client:
    """Raises ConfigError where the file with the token cannot be read."""
    from ...remote.client import Client

    token = None
    if options.token_file is not None:
        try:
            token = options.token_file.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ConfigError(f"{options.token_file} cannot be read: {error.strerror}") from None
    return Client(options.server, token)


def packed(job: ConfiguredJob, tell: Progress, *, source: bool) -> Package:
    """Traces the target of a job here. Raises what `check` raises."""
    from ...remote.sending import package

    return package(
        job.target, job.inputs, job.assume, source=source, budget_s=job.budget_s, progress=tell,
        device=job.device, training=job.training,
    )  # fmt: skip


def submitted(
    client: Client, job: ConfiguredJob, sent: Package, priority: Priority | None = None
) -> Submitted:
    """Asks the service about the target of a job."""
    return client.send(
        sent, budget_s=job.budget_s, replay=job.replay, suspect=job.suspect,
        second_solver=job.second_solver, device=job.device, priority=priority,
    )  # fmt: skip


def awaited(client: Client, asked: Submitted, tell: Progress) -> Report:
    """Returns the report as soon as it exists, and shows the progress until then."""
    for now in client.follow(asked.id):
        tell(f"{now['state']} {now['step']}".strip())
    return client.report(asked.id)


def run(options: argparse.Namespace) -> int:
    inputs = None if options.inputs is None else tuple(options.inputs)
    job = ConfiguredJob(options.target, inputs, tuple(options.assume), options.budget)
    with client_of(options) as client, running(options) as tell:
        sent = packed(job, tell, source=not options.no_source)
        asked = submitted(client, job, sent, options.priority)
        if not options.no_wait:
            report = awaited(client, asked, tell)
            written = None if options.format == "text" else client.written(asked.id, options.format)
    if options.no_wait:
        print(asked.id)
        return 0
    text = report.to_text(width=width(), colour=coloured(sys.stdout)) if written is None else written
    print(text, end="")
    return exit_code(report)
