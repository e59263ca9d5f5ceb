"""The zip file of a saved exported program: finds the JSON in it, reads nothing else, unpacks nothing.

An archive may come from anywhere. Any defect raises an ArchiveError that says what to do.
"""

from __future__ import annotations

import json
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import IO, Any, Final, TypeAlias

from ..host.releases import NEWEST, OLDEST

PathLike: TypeAlias = "str | os.PathLike[str]"

MAX_BYTES: Final = 1 << 29
"""The graph of a model with 2,000 nodes takes some 5 MB."""
MAX_DIRECTORY: Final = 1 << 23
"""Limit for the bytes of an archive's directory. It has one entry for each weight, of about 100 bytes."""
SCHEMA: Final = 8, 20
"""The schema that torch writes in all releases from OLDEST to NEWEST. A greater minor number adds what older
readers may ignore, or what they refuse where they come upon it.
"""

_AGAIN: Final = "save it again with torch.export.save(program, path)"
_MODEL = re.compile(r"(?:[^/]+/)?models/([^/]+)\.json")


class ArchiveError(ValueError):
    """Raised for a file that cannot be read as an exported program; says what to do about it."""


def read_json(path: PathLike, model: str = "model") -> dict[str, Any]:
    """Returns the JSON of one model in an archive.

    Raises ArchiveError; OSError where the file cannot be opened.
    """
    with open(path, "rb") as file:
        return parse_json(read_bytes(file, model, os.fspath(path)), os.fspath(path))


def parse_json(data: bytes, path: str) -> dict[str, Any]:
    """Returns the JSON in the bytes from an archive called `path`. Raises ArchiveError."""
    try:
        program = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ArchiveError(f"the model in {path} is not valid JSON ({_short(error)}); {_AGAIN}") from None
    if not isinstance(program, dict):
        raise ArchiveError(f"the model in {path} is not a JSON object; {_AGAIN}")
    _check_version(program.get("schema_version"), program.get("torch_version"), path)
    return program


def read_bytes(file: IO[bytes], model: str, path: str, most: int | None = None) -> bytes:
    """Returns the JSON of one model in an archive called `path`, unparsed, of at most so many bytes
    (MAX_BYTES).

    Raises ArchiveError. The directory of a zip file may point anywhere, hence the OSError below.
    """
    try:
        bounded = _Bounded(file, MAX_DIRECTORY)
        with zipfile.ZipFile(bounded) as archive:  # which reads the directory whole
            bounded.most = None
            return _model(archive, model, path, MAX_BYTES if most is None else most)
    except (zipfile.BadZipFile, zipfile.LargeZipFile, EOFError, OSError, struct.error, zlib.error) as error:
        raise ArchiveError(f"{path} is not a complete zip file ({_short(error)}); {_AGAIN}") from None
    except (NotImplementedError, RuntimeError, ValueError, OverflowError) as error:
        if isinstance(error, ArchiveError):
            raise
        raise ArchiveError(f"{path} is an unsupported kind of zip file ({_short(error)}); {_AGAIN}") from None


class _Bounded:
    """A file from which at most so many bytes are read at a time."""

    def __init__(self, file: IO[bytes], most: int | None) -> None:
        self.file, self.most = file, most
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        if self.most is None:
            return self.file.read(size)
        if size > self.most:
            raise ArchiveError(f"the archive's directory is too large: {size} bytes; {self.most} are read")
        return self.file.read(size if size >= 0 else self.most)


def _model(archive: zipfile.ZipFile, model: str, path: str, most: int) -> bytes:
    """Returns the bytes of `<root>/models/<model>.json`."""
    entries = archive.infolist()
    models: dict[str, zipfile.ZipInfo] = {}
    for entry in entries:
        if match := _MODEL.fullmatch(entry.filename):
            if match[1] in models:
                raise ArchiveError(f"{path} has two entries for the model {match[1]!r}; {_AGAIN}")
            models[match[1]] = entry
    if model not in models:
        raise ArchiveError(_missing(path, model, models, [entry.filename for entry in entries]))
    entry = models[model]
    if entry.file_size > most:
        problem = f"{entry.filename} in {path} is too large: {entry.file_size} bytes, and {most} are read"
        raise ArchiveError(f"{problem}; {_AGAIN}")
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        # Of these, zipfile inflates whatever there is at once, however little is asked for.
        raise ArchiveError(f"{entry.filename} in {path} is compressed as torch never does; {_AGAIN}")
    with archive.open(entry) as stream:
        return stream.read(most)


def _missing(path: str, model: str, models: dict[str, zipfile.ZipInfo], names: list[str]) -> str:
    """Returns the message for a file without this model, which says what the file is instead."""
    if models:
        return f"{path} has no model {model!r}; it has {', '.join(sorted(models))}"
    if any(name.endswith("serialized_exported_program.json") for name in names):
        return f"{path} was saved by a torch before 2.7; load it with that torch and {_AGAIN}"
    if any("aotinductor" in name for name in names):
        return f"{path} is compiled code without a graph; check the program that it was compiled from"
    if any(name.endswith("constants.pkl") for name in names):
        return f"{path} is a TorchScript program; export its model with torch.export.export instead"
    if any(name.endswith("data.pkl") for name in names):
        return f"{path} holds weights or a pickled model; export the model with torch.export.export instead"
    return f"{path} has no models/{model}.json; {_AGAIN}"


def _check_version(version: Any, writer: Any, path: str) -> None:
    """Raises ArchiveError where the schema is one that this reader does not know."""
    major = version.get("major") if isinstance(version, dict) else None
    if type(major) is not int:
        raise ArchiveError(f"{path} does not say the version of its schema; {_AGAIN}")
    if major != SCHEMA[0]:
        raise ArchiveError(
            f"{path} has schema {_short(major)} of torch {_short(writer)}, where schema {SCHEMA[0]} of torch"
            f" {OLDEST} to {NEWEST} is expected: export the model again with such a torch, or update anyshape"
        )


def later_schema(program: Mapping[str, Any]) -> str:
    """Returns the words for a schema that adds to the one that is known; "" of the known one."""
    version = program.get("schema_version")
    minor = version.get("minor") if isinstance(version, dict) else None
    if type(minor) is not int or minor <= SCHEMA[1]:
        return ""
    known = ".".join(map(str, SCHEMA))
    written = f"schema {SCHEMA[0]}.{_short(minor)} of torch {_short(program.get('torch_version'))}"
    return f" (it has {written}, and {known} is known)"


def _short(what: object) -> str:
    text = str(what)
    return text if len(text) <= 100 else text[:97] + "…"
