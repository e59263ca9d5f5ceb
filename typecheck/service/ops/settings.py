"""The settings of an operator: by environment (`ANYSHAPE_SERVICE_PORT=8100`), by file, by option of `serve`.
"""

from __future__ import annotations

import ipaddress
import os
import tomllib
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from ...project.config import ConfigError

MB = 1 << 20


class Settings(BaseSettings):
    """Each has a default that suits one machine."""

    model_config = SettingsConfigDict(env_prefix="ANYSHAPE_SERVICE_", extra="forbid", frozen=True)

    host: str = "127.0.0.1"
    """The address to listen at. Beyond loopback there have to be tokens, or `insecure`."""
    port: int = Field(8765, ge=0, le=65535)
    data: Path = Path("anyshape-service")
    """The folder of the embedded database. (What arrives is in the system's folder for temporary files.)"""
    database: str = ""
    """A URL, such as `postgresql+psycopg://user:password@host/name`; empty for SQLite in `data`."""
    workers: int = Field(default_factory=lambda: max(1, (os.cpu_count() or 2) - 1), ge=1, le=256)
    """The number of checks at a time."""
    executor: Literal["local", "ray"] = "local"
    """Where checks run: processes of this machine, or a Ray cluster."""
    ray_address: str = ""
    """The cluster to join; left out: that of RAY_ADDRESS, or one that is started for the service."""

    budget_s: float = Field(30.0, gt=0, le=86400)
    """Seconds for a check whose request states no number of its own."""
    max_budget_s: float = Field(120.0, gt=0, le=86400)
    """The most seconds that a request may ask for."""
    grace_s: float = Field(15.0, gt=0)
    """Seconds beyond its budget after which the process of a check is killed."""
    memory_mb: int = Field(2048, ge=256)
    """The memory that the process of a check may use."""
    kernels: bool = Field(default_factory=lambda: find_spec("torch") is not None)
    """Try examples on torch's kernels for tensors without data, which takes a process some 200 MB more."""

    max_upload_mb: float = Field(256.0, gt=0)
    """The largest request."""
    max_program_mb: float = Field(64.0, gt=0)
    """The largest program in a request: the JSON of a `.pt2`, unpacked, or a recorded program."""
    queue_limit: int = Field(1000, ge=1)
    """The number of checks of all clients that may wait."""
    client_queue_limit: int = Field(500, ge=1)
    """The number of checks of one client that may wait."""
    requests_per_minute: int = Field(1200, ge=1)
    """The limit for a token, unless the token has its own."""

    insecure: bool = False
    """Listen beyond loopback though there are no tokens."""
    require_tokens: bool = False
    """Ask for a token on loopback, too, before any was made."""
    cors_origins: tuple[str, ...] = ()
    """Origins of pages elsewhere that may call the API."""
    allowed_hosts: tuple[str, ...] = ()
    """Names that the service goes by; without tokens, loopback's alone."""

    retention_days: float = Field(30.0, gt=0)
    """Days for which a finished job is kept."""
    lease_s: float = Field(30.0, gt=1)
    """Seconds after which the work of a service that is gone goes back into the queue."""
    drain_s: float = Field(20.0, ge=0)
    """Seconds that running checks may take after a request to stop the service; then they are queued again.
    """
    traces: str = ""
    """The URL at which an OpenTelemetry collector takes traces (OTLP over HTTP); empty for none."""
    log_format: Literal["json", "text"] = "json"
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @property
    def url(self) -> str:
        return self.database or f"sqlite:///{(self.data / 'anyshape.db').absolute()}"

    @property
    def loopback(self) -> bool:
        """Returns whether the service can be reached from this machine only."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource, dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings


def load(file: Path | None = None, **options: Any) -> Settings:
    """The settings: options before environment before file. Raises ConfigError, which says what is wrong."""
    given: dict[str, Any] = {}
    if file is not None:
        try:
            given = tomllib.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"{file} cannot be read: {error.strerror}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file} is not valid TOML: {error}") from None
    prefix = str(Settings.model_config["env_prefix"])
    in_environment = {key[len(prefix) :].lower() for key in os.environ if key.upper().startswith(prefix)}
    from_file = {key: value for key, value in given.items() if key not in in_environment}
    set_here = {key: value for key, value in options.items() if value is not None}
    try:
        return Settings(**from_file | set_here)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        unknown = first["type"] == "extra_forbidden"
        hint = f"known settings are {', '.join(Settings.model_fields)}" if unknown else ""
        raise ConfigError(f"the setting {name!r} cannot be used: {first['msg']}", hint) from None
