"""Logs, a line each: JSON with the id of the request, or text. No header or body of a request is in them."""

from __future__ import annotations

import json
import logging
import sys
import time
from contextvars import ContextVar
from typing import Any, Final

LOG: Final = logging.getLogger("anyshape.service")
REQUEST: Final[ContextVar[str]] = ContextVar("request", default="")
"""The id of the request that is being answered."""


def log(event: str, level: int = logging.INFO, **fields: Any) -> None:
    """Logs an event, named in a word or two, with its data."""
    LOG.log(level, event, extra={"fields": fields, "request": REQUEST.get()})


class JsonLines(logging.Formatter):
    """A JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        second = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        data: dict[str, Any] = {
            "time": f"{second}.{record.msecs:03.0f}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        if request := getattr(record, "request", ""):
            data["request"] = request
        data |= getattr(record, "fields", {})
        if record.exc_info:
            data["error"] = self.formatException(record.exc_info)
        return json.dumps(data, default=str)


class TextLines(logging.Formatter):
    """The same for people."""

    def format(self, record: logging.LogRecord) -> str:
        fields = " ".join(f"{key}={value}" for key, value in getattr(record, "fields", {}).items())
        second = time.strftime("%H:%M:%S", time.localtime(record.created))
        told = f"{second} {record.getMessage()} {fields}".rstrip()
        return f"{told}\n{self.formatException(record.exc_info)}" if record.exc_info else told


def set_up(form: str, level: str) -> None:
    """Sends what the service and uvicorn log to stderr, in one form."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    for name in ("anyshape.service", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error"):
        logging.getLogger(name).setLevel(max(logging.WARNING, getattr(logging, level.upper())))
    logging.getLogger("uvicorn.access").handlers = []
    logging.getLogger("uvicorn.access").propagate = False
