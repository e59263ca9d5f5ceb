"""Makes repairs in the files of the user's project: chooses them, and gives their diff and the new files."""

from __future__ import annotations

import difflib
import io
import os
import tokenize
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..checking.reading import is_users
from ..facade import Report
from ..render.words import relative
from ..report.codes import Severity
from ..report.report import Finding, Repair


@dataclass(frozen=True, slots=True)
class FileEdit:
    """A file of the project with repairs made in it."""

    file: str
    before: str
    after: str
    encoding: str
    repairs: tuple[Repair, ...]

    @property
    def diff(self) -> str:
        """The change as a unified diff."""
        old, new = (io.StringIO(text.replace("\r\n", "\n")).readlines() for text in (self.before, self.after))
        name = relative(self.file)
        lines = difflib.unified_diff(old, new, f"a/{name}", f"b/{name}")
        ended = (one if one.endswith("\n") else f"{one}\n\\ No newline at end of file\n" for one in lines)
        return "".join(ended)

    def write(self) -> bool:
        """Writes the repaired file. Returns False, and leaves the file, if it was changed in the meantime or
        cannot be written.
        """
        return self._replace(self.before, self.after)

    def undo(self) -> bool:
        """Writes the file as it was. Returns False, and leaves the file, where `write` does so."""
        return self._replace(self.after, self.before)

    def _replace(self, old: str, new: str) -> bool:
        if read(self.file) != (old, self.encoding):
            return False
        try:
            Path(self.file).write_bytes(new.encode(self.encoding))
        except OSError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be changed in one round."""

    edits: tuple[FileEdit, ...]
    left: tuple[tuple[Repair, str], ...]
    """The repairs that are not made, each with the reason."""


def plan(
    reports: Sequence[Report], unsafe: bool, folders: Collection[Path], since: float,
    skipped: Collection[Repair] = (),
) -> Plan:
    """Returns the changes of one round: of each report the first repair that can be made, since the findings
    behind it may be gone with it.

    `folders` are those whose files may be changed. A file that was saved after `since`, in seconds of
    `time.time`, is left. Without `unsafe`, a repair that may change the meaning is left, and so is one of a
    finding for which a declaration is likelier than a change of the program.
    """
    left: list[tuple[Repair, str]] = []
    made: dict[str, dict[Repair, tuple[int, int]]] = {}
    for report in reports:
        for repair in _chosen(report, unsafe):
            if repair in skipped:
                continue
            span = located(repair, folders, since)
            if isinstance(span, str):
                left.append((repair, span))
                continue
            same = made.setdefault(repair.origin.file, {})
            if not any(span[0] < b and a < span[1] for a, b in same.values()):  # else in the next round
                same[repair] = span
            break
    edits = [_edited(file, changes) for file, changes in made.items() if changes]
    return Plan(tuple(edits), tuple(left))


def _chosen(report: Report, unsafe: bool) -> Iterator[Repair]:
    """Yields a repair of each finding that has one to make."""
    for finding in report.findings:
        if finding.repairs and not finding.suppressed and finding.severity is not Severity.NOTE:
            yield from _first(finding, unsafe)


def _first(finding: Finding, unsafe: bool) -> Sequence[Repair]:
    if not unsafe:
        first = finding.repairs[0]
        return [first] if first.safe and _edits(first) else []
    return [repair for repair in finding.repairs if _edits(repair)][:1]


def _edits(repair: Repair) -> bool:
    """Returns whether a repair says which text is to be replaced, and by what."""
    return bool(repair.origin.file and repair.old)


def located(repair: Repair, folders: Collection[Path], since: float) -> tuple[int, int] | str:
    """Returns from which character of its file to which a repair replaces the text; or why it cannot be made.
    """
    origin = repair.origin
    real = Path(os.path.realpath(origin.file))
    if not is_users(origin.file) or not is_users(str(real)) or not any(map(real.is_relative_to, folders)):
        return "the file does not belong to the project"
    found = read(origin.file)
    if found is None:
        return "the file cannot be read"
    text = found[0]
    start = _start(text, origin.line) + origin.indent + origin.start
    stop = start + len(_with_ends(repair.old, text))
    if os.stat(origin.file).st_mtime > since or text[start:stop] != _with_ends(repair.old, text):
        return "the file has changed since it was read"
    return start, stop


def _start(text: str, line: int) -> int:
    """Returns the character at which a line begins, counted from 1."""
    at = 0
    for _ in range(line - 1):
        at = text.find("\n", at) + 1
    return at


def _with_ends(part: str, text: str) -> str:
    """Returns a part of a text with the line ends of the whole."""
    return part.replace("\n", "\r\n") if "\r\n" in text else part


def _edited(file: str, changes: dict[Repair, tuple[int, int]]) -> FileEdit:
    found = read(file)
    assert found is not None  # it was located there
    before, encoding = found
    after = before
    for repair, (start, stop) in sorted(changes.items(), key=lambda change: change[1], reverse=True):
        after = after[:start] + _with_ends(repair.new, before) + after[stop:]
    return FileEdit(file, before, after, encoding, tuple(changes))


def read(file: str) -> tuple[str, str] | None:
    """Returns the text of a Python file with its line ends as they are, and its encoding."""
    try:
        content = Path(file).read_bytes()
        encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
        return content.decode(encoding), encoding
    except (OSError, SyntaxError, UnicodeDecodeError):
        return None
