"""Tokens: who sends a request, for which tenant, and how many are allowed. Only a digest of a token is
stored.
"""

from __future__ import annotations

import hashlib
import math
import re
import secrets
import threading
import time
from dataclasses import dataclass
from typing import Final

import sqlalchemy as sa

from ...project.config import ConfigError
from ..queue.database import Database
from ..queue.tables import TokenRow

PREFIX: Final = "anyshape_"
KEPT_S: Final = 2.0
"""Seconds for which a look-up in the database is cached: a revoked token is refused after that at the latest.
"""
PRIORITIES: Final = {"low": -1, "normal": 0, "high": 1}
_NAME = re.compile(r"[\w.@-]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Who:
    """The one who asks."""

    tenant: str
    token: str = ""
    """Its id; empty where no token is asked for."""
    priority: int = 1
    per_minute: int | None = None
    upload_mb: float | None = None


LOCAL: Final = Who("local")
"""Everybody who reaches a service without tokens."""


def digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


class TokenTable:
    """The tokens in a database."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, Who | None]] = {}
        self._some: tuple[float, bool] = (0.0, False)

    def create(
        self, name: str, tenant: str = "", *, priority: int = 0, per_minute: int | None = None,
        upload_mb: float | None = None,
    ) -> str:
        """Creates a token and returns its secret, which cannot be read again later. Raises ConfigError for
        invalid arguments.
        """
        tenant = tenant or name
        for text in (name, tenant):
            if not _NAME.fullmatch(text):
                hint = "letters, digits and . _ - @, at most 64 of them"
                raise ConfigError(f"{text!r} is not a valid name for a token or a tenant", hint)
        for number, what in ((per_minute, "requests per minute"), (upload_mb, "megabytes of a request")):
            if number is not None and not 0 < number < math.inf:
                raise ConfigError(f"{number} is not a number of {what}", "leave it out, or give one above 0")
        secret = PREFIX + secrets.token_urlsafe(32)
        token = TokenRow(
            id=secrets.token_hex(6),
            name=name,
            tenant=tenant,
            digest=digest_of(secret),
            created=time.time(),
            priority=priority,
            per_minute=per_minute,
            upload_mb=upload_mb,
        )
        try:
            with self.database.write() as session:
                session.add(token)
        except sa.exc.IntegrityError:
            hint = "choose another name; the name of a revoked token is not reused"
            raise ConfigError(f"there is a token {name!r} already", hint) from None
        return secret

    def all(self) -> list[TokenRow]:
        with self.database.read() as session:
            return [*session.scalars(sa.select(TokenRow).order_by(TokenRow.created))]

    def revoke(self, name: str) -> None:
        """Raises ConfigError where there is no such token."""
        with self.database.write() as session:
            token = session.scalar(sa.select(TokenRow).where(TokenRow.name == name))
            if token is None:
                raise ConfigError(f"there is no token {name!r}", "`anyshape token list` shows them")
            token.revoked = token.revoked or time.time()

    def exist(self) -> bool:
        """Returns whether any token exists, revoked or not. If so, each request needs one."""
        now = time.monotonic()
        at, some = self._some
        if at == 0.0 or (not some and now - at > KEPT_S):
            with self.database.read() as session:
                some = session.scalar(sa.select(TokenRow.id).limit(1)) is not None
            self._some = now, some
        return some

    def who(self, secret: str) -> Who | None:
        """Whose token this is; None where it is nobody's."""
        if not secret.startswith(PREFIX) or len(secret) > 200:
            return None
        digest, now = digest_of(secret), time.monotonic()
        with self._lock:
            at, found = self._known.get(digest, (0.0, None))
        if at and now - at < KEPT_S:
            return found
        with self.database.read() as session:
            token = session.scalar(
                sa.select(TokenRow).where(TokenRow.digest == digest, TokenRow.revoked.is_(None))
            )
        found = None
        if token is not None:
            found = Who(token.tenant, token.id, token.priority, token.per_minute, token.upload_mb)
        with self._lock:
            if len(self._known) > 10_000:
                self._known.clear()
            self._known[digest] = now, found
        return found


class Rates:
    """The requests that each token has left: a bucket that fills by the minute and holds ten seconds' worth.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._buckets: dict[str, tuple[float, float]] = {}

    def wait(self, token: str, per_minute: int) -> float:
        """Takes one request out of the allowance; returns the seconds to wait if it is empty, else 0."""
        rate, now = per_minute / 60, time.monotonic()
        most = max(rate * 10, 1.0)
        with self._lock:
            left, at = self._buckets.get(token, (most, now))
            left = min(most, left + (now - at) * rate)
            if left < 1:
                self._buckets[token] = left, now
                return (1 - left) / rate
            self._buckets[token] = left - 1, now
            return 0.0
