"""Writes the first settings of a project: `[tool.anyshape]` with its models and inputs that were tried."""

from __future__ import annotations

import json
import textwrap
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..report.report import ReportData, Verdict
from .config import FILE, ConfigError
from .discovery import FoundModel

_HEAD: Final = """\
[tool.anyshape]
# `anyshape check` checks all targets below; docs/ci.md has the settings.
budget = 30
"""


@dataclass(frozen=True, slots=True)
class TriedModel:
    """A model with the report on the inputs that were guessed for it, or the reason why there is none."""

    model: FoundModel
    report: ReportData | None
    problem: str = ""


def require_no_table(folder: Path) -> None:
    """Raises ConfigError where the project has settings of anyshape already, or a file that is not TOML."""
    file = folder / FILE
    if not file.exists():
        return
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file} is not valid TOML: {error}", "correct it first") from None
    tool = data.get("tool")
    if isinstance(tool, dict) and "anyshape" in tool:
        hint = "it is not changed; delete the table to have a new one"
        raise ConfigError(f"{FILE} has a table [tool.anyshape] already", hint)


def settings(tried: Sequence[TriedModel]) -> str:
    """Returns the table as TOML. Models without inputs are comments that say what is missing."""
    return "\n".join((_HEAD, *("\n".join(_target(one)) + "\n" for one in tried)))


def written(folder: Path, text: str) -> Path:
    """Adds the text to the end of the project's file, or makes one, and returns its path."""
    file = folder / FILE
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    gap = "" if not before else "\n" if before.endswith("\n") else "\n\n"
    try:
        file.write_text(before + gap + text, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}") from None
    return file


def _target(one: TriedModel) -> Iterator[str]:
    if one.report is None:
        yield from _comment(f"{one.model.name}: {one.problem}")
        yield "# [[tool.anyshape.targets]]"
        yield f"# target = {_text(one.model.target)}"
        yield '# inputs = "x: float32[b, 3, h, w]"'
        return
    yield from _comment(_answer(one.report))
    yield "[[tool.anyshape.targets]]"
    yield f"target = {_text(one.model.target)}"
    inputs = [_text(line) for line in one.report.inputs]
    if len(inputs) == 1:
        yield f"inputs = {inputs[0]}"
    else:
        yield from ("inputs = [", *(f"    {line}," for line in inputs), "]")


def _answer(report: ReportData) -> str:
    match report.verdict:
        case Verdict.PROVED:
            return "runs for all of these inputs"
        case Verdict.REFINED:
            return f"runs where {report.accepts}"
    return f"{report.verdict}: see `anyshape check {report.target}`"


def _comment(text: str) -> Iterable[str]:
    return (f"# {line}" for line in textwrap.wrap(" ".join(text.split()), 100, break_on_hyphens=False))


def _text(text: str) -> str:
    """Returns a text in quotes: as it is in single ones, or with the escapes of JSON, which are TOML's."""
    plain = '"' in text and "'" not in text and text.isprintable()
    return f"'{text}'" if plain else json.dumps(text, ensure_ascii=False)
