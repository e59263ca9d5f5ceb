"""Finds the program in an upload, and reads nothing else of it.

Of an archive only the JSON of its model is read, up to a limit, and nothing is unpacked onto the disk: so its
paths and the inflated size of its other members do not matter. The JSON itself is for the worker to read.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import IO, Final

from ....tracer.readers.archive import ArchiveError, read_bytes

ZIP: Final = b"PK\x03\x04"
_RECORDED = re.compile(rb'"form"\s*:\s*"anyshape\.recorded"')
_BEGINNING: Final = 4096


class UploadError(ValueError):
    """Raised where an upload cannot be used; says why, and what to do."""

    def __init__(self, problem: str, status: int = 422) -> None:
        self.status = status
        super().__init__(problem)


@dataclass(frozen=True, slots=True)
class Upload:
    """A program, in one of the forms that `questions.FORMS` reads."""

    form: str
    content: bytes

    @property
    def digest(self) -> str:
        """By which the same program is known again."""
        return hashlib.sha256(self.form.encode() + b"\0" + self.content).hexdigest()


def received(file: IO[bytes], most: int) -> Upload:
    """The program in a file, of at most so many bytes. Raises UploadError."""
    beginning = file.read(_BEGINNING)
    file.seek(0)
    if beginning.startswith(ZIP):
        try:
            return Upload("pt2", read_bytes(file, "model", "the upload", most))
        except ArchiveError as error:
            raise UploadError(str(error), 413 if "too large" in str(error) else 422) from None
    if not beginning.lstrip().startswith(b"{"):
        raise UploadError("the upload is neither a .pt2 (torch.export.save) nor the JSON of a program")
    content = file.read(most + 1)
    if len(content) > most:
        raise UploadError(f"the program is larger than the {most} bytes that are accepted", 413)
    if _RECORDED.search(beginning):
        return Upload("recorded", content)
    return Upload("pt2" if b'"graph_module"' in content else "program", content)
