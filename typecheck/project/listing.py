"""The jobs that a file lists, a target on each line or in a table each."""

from __future__ import annotations

from pathlib import Path

from ...constraints.ir.spec_text import suggestion
from .config import ConfigError, ConfiguredJob, read


def listed(file: Path) -> tuple[ConfiguredJob, ...]:
    """The jobs of a list. Raises ConfigError.

    A list is TOML with `[[tool.anyshape.targets]]`, as in a `pyproject.toml`, or lines of a target and, after
    tabs, its inputs and its assumptions; a line that begins with `#` says nothing.
    """
    if file.suffix == ".toml":
        project = read(file)
        jobs = project.jobs if project is not None else ()
    else:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            hint = suggestion(file.name, _names(file))
            raise ConfigError(f"{file} cannot be read: {getattr(error, 'strerror', error)}", hint) from None
        jobs = tuple(_job(line) for line in text.splitlines() if line.strip() and not line.startswith("#"))
    if not jobs:
        raise ConfigError(f"{file} lists no targets", "a target on each line, such as models/unet.py:UNet")
    return jobs


def _names(file: Path) -> list[str]:
    return [path.name for path in file.parent.iterdir()] if file.parent.is_dir() else []


def _job(line: str) -> ConfiguredJob:
    target, inputs, assume, *rest = [*(part.strip() for part in line.split("\t")), "", ""]
    if any(rest[:-2]):
        raise ConfigError(f"{line!r} has more than a target, its inputs and its assumptions")
    return ConfiguredJob(target, (inputs,) if inputs else None, (assume,) if assume else ())
