"""A file of findings that were there before: they are known, and only new ones count.

A finding is recognised by its target, code, file, function and the text of its line, so that it is still the
same after lines were added above it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from ..facade import Report
from ..render.words import relative
from ..report.codes import Code, Severity
from ..report.report import Finding
from .config import ConfigError

FORM: Final = 1


@dataclass(frozen=True, slots=True, order=True)
class KnownFinding:
    """The key by which a baseline recognises a finding."""

    target: str
    code: str
    file: str
    """From the folder that the baseline lies in."""
    function: str
    line: str
    """The text of the line."""


class Baseline:
    """Known findings, and how often each is left to be met."""

    def __init__(self, path: Path, known: Iterable[KnownFinding] = ()) -> None:
        self.path = path
        self.left = Counter(known)

    def takes(self, target: str, finding: Finding) -> bool:
        """Returns whether the finding is in the baseline, and removes one such entry: each is used once."""
        key = self._key(target, finding)
        if not self.left[key]:
            return False
        self.left[key] -= 1
        return True

    def idle(self, targets: Collection[str]) -> Iterator[KnownFinding]:
        """Yields the baseline's entries for these targets that no finding has used."""
        yield from (key for key, count in sorted(self.left.items()) if count > 0 and key.target in targets)

    def renewed(self, reports: Iterable[Report]) -> Baseline:
        """Returns the baseline with the findings of these reports in place of the former ones of their
        targets.
        """
        reports = [*reports]
        checked = {report.target for report in reports}
        others = (key for key in self.left.elements() if key.target not in checked)
        found = (self._key(r.target, f) for r in reports for f in r.findings if _counts(f))
        return Baseline(self.path, (*others, *found))

    def _key(self, target: str, finding: Finding) -> KnownFinding:
        origin = finding.origin
        file = relative(origin.file, str(self.path.parent)) if origin.file else ""
        return KnownFinding(target, finding.code.value, file, origin.function, origin.code)

    def write(self) -> None:
        """Raises ConfigError where the file cannot be written."""
        data = {
            "form": FORM,
            "findings": [asdict(key) | {"count": n} for key, n in sorted(self.left.items()) if n > 0],
        }
        try:
            self.path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"the baseline {self.path} cannot be written: {error.strerror}") from None


def read(path: Path) -> Baseline:
    """Raises ConfigError where the file is missing, or is no baseline."""
    hint = "`anyshape check --write-baseline` makes one"
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"the baseline {path} cannot be read: {error.strerror}", hint) from None
    except ValueError as error:
        raise ConfigError(f"{path} is not a baseline of anyshape: {error}", hint) from None
    try:
        if data["form"] != FORM:
            raise ConfigError(f"{path} has the form {data['form']!r}, and this version reads {FORM}", hint)
        return Baseline(path, (key for one in data["findings"] for key in _read(one)))
    except (KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"{path} is not a baseline of anyshape: {error!r}", hint) from None


def _read(data: dict[str, Any]) -> list[KnownFinding]:
    fields = {name: value for name, value in data.items() if name != "count"}
    if not all(isinstance(value, str) for value in fields.values()):
        raise TypeError(f"a text was expected in {fields}")
    return [KnownFinding(**fields)] * int(data["count"])


def _counts(finding: Finding) -> bool:
    """Returns whether a finding belongs in a baseline: notes are harmless, and an unused suppression should
    be removed.
    """
    idle = finding.code is Code.UNUSED_SUPPRESSION
    return finding.severity is not Severity.NOTE and not finding.suppressed and not idle
