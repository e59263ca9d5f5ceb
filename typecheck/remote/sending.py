"""Packs the data that leaves this machine when a service is asked for a check: the program, without weights.

A saved `.pt2` is sent as the JSON of its model; anything else is traced here and the recorded program is
sent. Lines of source are sent along, since reports show them, unless that is turned off.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from ...constraints.engine.ruleset import Rules
from ...constraints.ir.spec import Spec
from ...constraints.ir.spec_text import Inputs
from ...constraints.ir.system import System
from ...tracer.readers.archive import MAX_BYTES, ArchiveError, parse_json, read_bytes
from ..checking.api import default_rules, question, resolved_in_mode
from ..checking.clock import Clock, Progress
from ..facade import Report
from ..targets.target import resolve
from ..targets.target_error import TargetError

_TEXT_OF_A_LINE: Final = re.compile(r'(?m)^(?!\s*File ").*\n?')


@dataclass(frozen=True, slots=True)
class LocalParts:
    """The parts of a Python program that stay on this machine: the program, and its recorded trace."""

    program: Any
    spec: Spec
    system: System
    rules: Rules


@dataclass(frozen=True, slots=True)
class Package:
    """A program to be sent, and what is asked about it."""

    name: str
    content: bytes
    inputs: tuple[str, ...] | None
    """None where the program says itself what its inputs are."""
    assume: tuple[str, ...]
    kept: LocalParts | None = None

    def repaired(self, report: Report) -> Report:
        """Returns the report of a service with repairs, which are searched on the machine that has the
        program.
        """
        if self.kept is None:
            return report
        from ..repairs import repaired

        return repaired(report, self.kept.program, self.kept.spec, self.kept.system, self.kept.rules)


def package(
    target: Any, inputs: Inputs | None = None, assume: str | Iterable[str] = (), *, source: bool = True,
    budget_s: float = 30.0, rules: Rules | None = None, progress: Progress | None = None,
    device: str | None = None, training: bool | None = None,
) -> Package:
    """Returns the data to send for a target; the arguments are those of `check`. Without `source`, it
    contains no text of a source line.

    Raises what `check` raises.
    """
    assume = (assume,) if isinstance(assume, str) else tuple(assume)
    path = os.fspath(target) if isinstance(target, str | os.PathLike) else ""
    if path.endswith(".pt2"):
        lines = None if inputs is None else _lines(inputs)
        return Package(os.path.basename(path), _of_archive(path, source), lines, assume)
    rules = default_rules() if rules is None else rules
    clock = Clock(progress or (lambda step: None), budget_s)
    with resolved_in_mode(target, inputs, assume, training) as found_in_mode:
        asked = question(found_in_mode, inputs, assume, clock, rules, device=device)
    found = asked.recorded.with_files_in(os.getcwd())
    python = source and asked.target.kind == "python"
    kept = LocalParts(asked.target.value, asked.spec, found.system, rules) if python else None
    if not source:
        found = found.without_source()
    name = path or getattr(target, "__name__", type(target).__name__)
    return Package(name, _dumped(found.to_json()), None, (), kept)


def _lines(inputs: Inputs) -> tuple[str, ...]:
    """The spec as lines. Raises SpecError."""
    from ...constraints.ir.spec_text import parse_spec, write_spec

    if isinstance(inputs, str):
        return tuple(line for line in inputs.splitlines() if line.strip())
    return write_spec(parse_spec(inputs))


def _of_archive(path: str, source: bool) -> bytes:
    """Returns the JSON of the model. Raises TargetError."""
    resolve(path)
    try:
        with open(path, "rb") as file:
            content = read_bytes(file, "model", path, MAX_BYTES)
        if source:
            return content
        program = parse_json(content, path)
    except OSError as error:
        raise TargetError(f"{path} cannot be read: {error.strerror}") from None
    except ArchiveError as error:
        raise TargetError(str(error)) from None
    _strip(program)
    return _dumped(program)


def _strip(data: Any) -> None:
    """Takes the texts of lines out of the stack traces of all nodes, in graphs within graphs, too."""
    pending = [data]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            trace = part.get("stack_trace")
            if isinstance(trace, str):
                part["stack_trace"] = _TEXT_OF_A_LINE.sub("", trace)
            pending.extend(part.values())
        elif isinstance(part, list):
            pending.extend(part)


def _dumped(data: Any) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode()
