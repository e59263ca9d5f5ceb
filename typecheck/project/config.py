"""Reads the settings of a project from `pyproject.toml`:

    [tool.anyshape]
    ignore = ["approximate"]            # codes of findings that are not to be shown
    baseline = "anyshape-baseline.json" # findings that were there before; see `--write-baseline`
    budget = 60                         # seconds for each target

    [[tool.anyshape.targets]]
    target = "models/unet.py:UNet"
    inputs = "x: float32[b, 3, h, w]"   # or a list, one text per input
    assume = ["h % 64 == 0", "w % 64 == 0"]
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from ...constraints.engine.kernels import DEVICES
from ...constraints.ir.program import Origin
from ...constraints.ir.spec_text import suggestion
from ..report.codes import SUSPICIONS, Code
from ..targets.target_error import TargetError

FILE: Final = "pyproject.toml"
BUDGET_S: Final = 30.0
T = TypeVar("T")


class ConfigError(TargetError):
    """A `pyproject.toml` that cannot be used, with its line, and what to do."""


@dataclass(frozen=True, slots=True)
class ConfiguredJob:
    """One thing to check: a target as text, its inputs, and how."""

    target: str
    inputs: tuple[str, ...] | None = None
    """None where the target's annotations, or its trace, say what its inputs are."""
    assume: tuple[str, ...] = ()
    budget_s: float = BUDGET_S
    replay: bool = True
    suspect: tuple[str, ...] = ()
    """Suspicions to look for besides the usual ones."""
    second_solver: str | None = None
    """Another solver that is asked what it makes of the verdict."""
    device: str | None = None
    """The type of the device to run on; None for that of the target's tensors."""
    training: bool | None = None
    """Whether modules are in training; None for evaluation, and what is otherwise in training."""


@dataclass(frozen=True, slots=True)
class Project:
    """The contents of `[tool.anyshape]`. Paths are absolute."""

    root: Path
    jobs: tuple[ConfiguredJob, ...] = ()
    ignore: Mapping[Code, int] | None = None
    """The codes that are not to be shown, each with its line in the file."""
    baseline: Path | None = None

    def job(self, target: str) -> ConfiguredJob | None:
        """The job of a target that is named as the project names it."""
        return next((job for job in self.jobs if job.target == target), None)


def find(start: Path | None = None) -> Project | None:
    """The project that a folder lies in: the nearest `pyproject.toml` upwards that speaks of anyshape.

    Raises ConfigError where it cannot be used.
    """
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        file = folder / FILE
        if file.is_file() and (project := read(file)) is not None:
            return project
    return None


def read(file: Path) -> Project | None:
    """The project of one file; None where it has no `[tool.anyshape]`. Raises ConfigError."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{_shown(file)} cannot be read: {getattr(error, 'strerror', error)}") from None
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        if "anyshape" not in text:
            return None
        at = re.search(r"line (\d+)", str(error))
        where = Origin(str(file), int(at[1])) if at else Origin(str(file))
        raise ConfigError(f"{_shown(file)} is not valid TOML: {error}", "", where) from None
    tool = data.get("tool")
    if not isinstance(tool, dict) or "anyshape" not in tool:
        return None
    return _ConfigReader(file, text).project(tool["anyshape"])


class _ConfigReader:
    """Reads the table, with the lines of its keys at hand for messages."""

    def __init__(self, file: Path, text: str) -> None:
        self.file, self.lines = file, text.splitlines()

    def project(self, data: Any) -> Project:
        table = _Table(self, "[tool.anyshape]", data, KEYS)
        budget = table.get("budget", _seconds) or BUDGET_S
        suspect = table.get("suspect", _suspicions) or ()
        second = table.get("second-solver", _text)
        device, training = table.get("device", _device), table.get("training", _truth)
        replay = table.get("replay", _truth) is not False
        default = ConfiguredJob("", (), (), budget, replay, suspect, second, device, training)
        baseline = table.get("baseline", _text)
        codes = table.get("ignore", _codes) or ()
        return Project(
            self.file.parent,
            tuple(self._job(one, n, default) for n, one in enumerate(table.get("targets", _tables) or ())),
            {code: self.line("ignore") for code in codes},
            None if baseline is None else self.file.parent / baseline,
        )

    def _job(self, data: Any, number: int, default: ConfiguredJob) -> ConfiguredJob:
        table = _Table(self, "[[tool.anyshape.targets]]", data, TARGET_KEYS, number)
        target = table.get("target", _text)
        if target is None:
            table.fail("target", "a target is missing", 'each has one: target = "models/unet.py:UNet"')
        replay = table.get("replay", _truth)
        return ConfiguredJob(
            target,
            table.get("inputs", _texts),
            table.get("assume", _texts) or (),
            table.get("budget", _seconds) or default.budget_s,
            default.replay if replay is None else replay,
            default.suspect,
            default.second_solver,
            default.device,
            default.training if (training := table.get("training", _truth)) is None else training,
        )

    def line(self, key: str, number: int | None = None) -> int:
        """The line of a key in the table, or in the target of this number; else of its header; else 0."""
        header = "[tool.anyshape]" if number is None else "[[tool.anyshape.targets]]"
        starts = [at for at, line in enumerate(self.lines) if line.strip().startswith(header)]
        if len(starts) <= (number or 0):
            return 0
        start = starts[number or 0]
        for at in range(start + 1, len(self.lines)):
            stripped = self.lines[at].strip()
            if stripped.startswith("["):
                break
            if re.match(rf"([\"']?){re.escape(key)}\1\s*=", stripped):
                return at + 1
        return start + 1


class _Table:
    """A table whose keys are known, each read as what it has to be."""

    def __init__(
        self, reader: _ConfigReader, header: str, data: Any, keys: tuple[str, ...], number: int | None = None
    ) -> None:
        self.reader, self.header, self.number = reader, header, number
        if not isinstance(data, dict):
            self.data: dict[str, Any] = {}
            self.fail("anyshape", f"{header} is not a table")
        self.data = data
        for key in data:
            if key not in keys:
                hint = suggestion(key, keys) or f"the keys are {', '.join(keys)}"
                self.fail(key, f"{header} has no key {key!r}", hint)

    def get(self, key: str, reads: Callable[[Any], T]) -> T | None:
        """The value of a key, None where it is left out. Raises ConfigError where it is of another kind."""
        if key not in self.data:
            return None
        try:
            return reads(self.data[key])
        except _Wrong as wrong:
            self.fail(key, f"{key} in {self.header} {wrong.problem}", wrong.hint)

    def fail(self, key: str, problem: str, hint: str = "") -> NoReturn:
        line = self.reader.line(key, self.number)
        code = self.reader.lines[line - 1].strip() if line else ""
        raise ConfigError(problem, hint, Origin(str(self.reader.file), line, code=code))


class _Wrong(ValueError):
    def __init__(self, problem: str, hint: str = "") -> None:
        self.problem, self.hint = problem, hint
        super().__init__(problem)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _Wrong("has to be a text")
    return value


def _device(value: Any) -> str:
    if value not in DEVICES:
        raise _Wrong(f"has to be one of {', '.join(DEVICES)}")
    return str(value)


def _texts(value: Any) -> tuple[str, ...]:
    parts = [value] if isinstance(value, str) else value
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise _Wrong("has to be a text or a list of texts")
    return tuple(parts)


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < float("inf"):
        raise _Wrong("has to be a number of seconds above zero")
    return float(value)


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Wrong("has to be true or false")
    return value


def _tables(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _Wrong("has to be a list of tables", "write [[tool.anyshape.targets]] above each target")
    return value


def _codes(value: Any) -> tuple[Code, ...]:
    return tuple(map(_code, _texts(value)))


def _code(name: str) -> Code:
    try:
        return Code(name)
    except ValueError:
        known = [str(known) for known in Code]
        hint = suggestion(name, known) or f"the codes are {', '.join(known)}"
        raise _Wrong(f"names {name!r}, which is not a code of findings", hint) from None


def _suspicions(value: Any) -> tuple[str, ...]:
    names = _texts(value)
    known = [*(code.value for code in SUSPICIONS), "all"]
    for name in names:
        if name not in known:
            hint = suggestion(name, known) or f"there are {', '.join(known)}"
            raise _Wrong(f"names {name!r}, which is not a known suspicion", hint)
    return names


KEYS: Final = (
    "targets", "ignore", "suspect", "baseline", "budget", "replay", "second-solver", "device", "training",
)  # fmt: skip
TARGET_KEYS: Final = ("target", "inputs", "assume", "budget", "replay", "training")


def _shown(file: Path) -> str:
    relative = os.path.relpath(file)
    return str(file) if relative.startswith("..") else relative
