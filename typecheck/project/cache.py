"""Reports cached on disk, looked up by the content of everything that they were made from.

An entry is a JSON file. It names the question (target, inputs, assumptions, budget), the versions that
answered it (anyshape, Python, the installed packages), and the content of each file that was read for it: the
modules of the project that were imported, and all other files that the program opened. If one of these
differs, the entry is not used. Neither is an entry that is damaged or of another version: then the check is
made anew.

Dependencies that Python does not see (an environment variable, a file opened by a compiled library, an edit
in an installed package of unchanged version) are not noticed: `--no-cache` checks anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from ..facade import Report
from ..report.codes import Code
from ..report.report import Verdict
from .config import ConfiguredJob

FORM: Final = 1
"""The version of the form of an entry."""
MAX_ENTRIES: Final = 1000
VARIABLE: Final = "ANYSHAPE_CACHE_DIR"


@dataclass(frozen=True, slots=True)
class CachedReport:
    """A report from the cache, and the files that it was made from."""

    report: Report
    files: tuple[str, ...]


class Cache:
    """A folder of entries."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, asked: CacheQuestion) -> CachedReport | None:
        """The report that was the answer, if nothing that it was made from has changed since."""
        try:
            data = json.loads((self.folder / asked.file).read_text(encoding="utf-8"))
            if data["form"] != FORM or data["question"] != asked.data or not _holds(data):
                return None
            report = Report.from_json(data["report"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None  # whatever it is, it is not ours
        return CachedReport(replace(report, stats={**report.stats, "cached": 1.0}), tuple(data["files"]))

    def put(self, asked: CacheQuestion, report: Report, files: Iterable[str]) -> None:
        """Keeps a report with the files that it was made from, if the folder can be written."""
        read = sorted(set(files))
        entry = {
            "form": FORM,
            "question": asked.data,
            "files": {file: _content(file) for file in read},
            "folders": {folder: _listing(folder) for folder in sorted({os.path.dirname(f) for f in read})},
            "report": report.to_json(),
        }
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            draft = self.folder / f"{asked.file}.{os.getpid()}"
            draft.write_text(json.dumps(entry), encoding="utf-8")
            draft.replace(self.folder / asked.file)  # whoever reads meanwhile gets the old one or the new
            entries = sorted(self.folder.glob("*.json"), key=lambda path: path.stat().st_mtime)
            for path in entries[:-MAX_ENTRIES]:
                path.unlink(missing_ok=True)


def default_folder() -> Path:
    """`$ANYSHAPE_CACHE_DIR`, or the user's folder for caches."""
    if VARIABLE in os.environ:
        return Path(os.environ[VARIABLE])
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.expanduser(r"~\AppData\Local")
    elif sys.platform == "darwin":
        base = os.path.expanduser("~/Library/Caches")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "anyshape"


def worth_keeping(report: Report) -> bool:
    """Not where another run may know more: the budget had run out, or anyshape itself failed."""
    passing = (Code.INCOMPLETE, Code.INTERNAL_ERROR)
    return report.verdict is not Verdict.UNKNOWN or all(f.code not in passing for f in report.findings)


# ---- what is asked, and of whom


class CacheQuestion:
    """A job, where it is asked, and of whom. Made before the program runs, which may change any of that."""

    def __init__(self, job: ConfiguredJob) -> None:
        self.data: dict[str, Any] = json.loads(json.dumps(asdict(job))) | {
            "folder": os.getcwd(),
            "path": os.environ.get("PYTHONPATH", ""),
            "python": sys.version,
            "anyshape": _own_files(),
            "packages": _packages(),
        }
        digest = hashlib.sha256(json.dumps(self.data).encode())
        self.file = f"{digest.hexdigest()[:40]}.json"


@cache
def _own_files() -> str:
    """A digest of anyshape's own files: their sizes and times of change."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for part in ("constraints", "solver", "tracer", "typecheck"):
        for folder, _, names in sorted(os.walk(root / part)):
            for name in sorted(names):
                if name.endswith(".py"):
                    status = os.stat(os.path.join(folder, name))
                    digest.update(f"{folder}/{name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()


@cache
def _packages() -> str:
    """A digest of the names and versions of all installed packages."""
    names = {
        name
        for folder in sys.path
        if folder.endswith(("site-packages", "dist-packages")) and os.path.isdir(folder)
        for name in os.listdir(folder)
        if name.endswith((".dist-info", ".egg-info", ".egg-link"))
    }
    return hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()


# ---- what the answer depends on


def _holds(entry: dict[str, Any]) -> bool:
    """Returns whether all files and folders are unchanged since the entry was made."""
    files, folders = entry["files"], entry["folders"]
    return all(_content(file) == was for file, was in files.items()) and all(
        _listing(folder) == was for folder, was in folders.items()
    )


def _content(file: str) -> str | None:
    """A digest of what a file holds; None where it cannot be read."""
    try:
        with open(file, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None


def _listing(folder: str) -> str | None:
    """A digest of what an import could find in a folder: a new module may hide another."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(e.name for e in entries if e.name.endswith(".py") or _is_package(e))
    except OSError:
        return None
    return hashlib.sha256("\n".join(names).encode(errors="replace")).hexdigest()


def _is_package(entry: os.DirEntry[str]) -> bool:
    return entry.name.isidentifier() and not entry.name.startswith("__") and entry.is_dir()
