"""The parts of a target's name, such as `unet.py:UNet(3, classes=21)`."""

from __future__ import annotations

import re
from typing import Final

_CALL: Final = re.compile(r"(?P<name>.*?:[^\W\d][\w.]*)\((?P<arguments>.*)\)\s*", re.DOTALL)


def split_call(target: str) -> tuple[str, str | None]:
    """Returns the name that a target has and the text of its arguments: `unet.py:UNet` and `3, classes=21` of
    `unet.py:UNet(3, classes=21)`. The text is None where no call is written.
    """
    found = _CALL.fullmatch(target)
    return (target, None) if found is None else (found["name"], found["arguments"])


def source_of(target: str) -> str:
    """Returns the file or the module that a target names; an empty text for an object of Python."""
    return split_call(target)[0].rpartition(":")[0]
