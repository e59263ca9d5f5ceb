"""`anyshape token create|list|revoke`: who may ask the service."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from ..common import Commands, command
from .serve import add_store, settings_of

if TYPE_CHECKING:
    from ...service.http.auth import TokenTable

_EPILOG: Final = """\
A new token is printed once; the service keeps a digest of it. As soon as there is a token, every request
needs one. Tokens of one tenant see the same checks, and tenants see nothing of each other.
"""


def add(commands: Commands) -> None:
    parser = command(commands, "token", "create, list and revoke the tokens of a service", _EPILOG)
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    create = actions.add_parser("create", help="create a token and print it")
    create.add_argument("name", metavar="NAME")
    create.add_argument("--tenant", default="", help="tenant whose checks it sees (default: NAME)")
    create.add_argument(
        "--priority",
        choices=("low", "normal", "high"),
        default="normal",
        help="highest priority of its checks (default: normal)",
    )
    create.add_argument("--per-minute", type=int, metavar="N", help="requests per minute, at most")
    create.add_argument("--upload-mb", type=float, metavar="MB", help="size of an upload, at most")
    listing = actions.add_parser("list", help="show all tokens")
    revoke = actions.add_parser("revoke", help="revoke a token")
    revoke.add_argument("name", metavar="NAME")
    for action, run in ((create, _create), (listing, _list), (revoke, _revoke)):
        add_store(action)
        action.add_argument("--debug", action="store_true", help=argparse.SUPPRESS)
        action.set_defaults(run=run)


def _tokens(options: argparse.Namespace) -> TokenTable:
    settings: Any = settings_of(options)
    from ...service.http.auth import TokenTable
    from ...service.queue.database import Database

    database = Database(settings.url)
    database.migrate()
    return TokenTable(database)


def _create(options: argparse.Namespace) -> int:
    tokens = _tokens(options)
    from ...service.http.auth import PRIORITIES

    secret = tokens.create(
        options.name,
        options.tenant,
        priority=PRIORITIES[options.priority],
        per_minute=options.per_minute,
        upload_mb=options.upload_mb,
    )
    print(secret)
    return 0


def _list(options: argparse.Namespace) -> int:
    tokens = [*_tokens(options).all()]
    if not tokens:
        print("there are no tokens", file=sys.stderr)
    for token in tokens:
        made = time.strftime("%Y-%m-%d", time.localtime(token.created))
        ended = f"revoked {time.strftime('%Y-%m-%d', time.localtime(token.revoked))}" if token.revoked else ""
        print(f"{token.name:20}  tenant {token.tenant:20}  made {made}  {ended}".rstrip())
    return 0


def _revoke(options: argparse.Namespace) -> int:
    _tokens(options).revoke(options.name)
    print(f"{options.name} is revoked; the service knows within some seconds")
    return 0
