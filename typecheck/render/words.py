"""Helpers that the renderers for other tools share: the path of a file, and a finding as a few lines of text.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ..report.report import Finding
from .text import place, repair_text, sizes


def relative(file: str, root: str | None = None) -> str:
    """The path from the root (the current folder) with forward slashes; absolute where it lies elsewhere."""
    path = Path(os.path.abspath(file))
    base = Path(os.path.abspath(root or os.getcwd()))
    return (path.relative_to(base) if path.is_relative_to(base) else path).as_posix()


def told(finding: Finding) -> Iterator[str]:
    """Yields the message, then a line each for the requirement, the calls that contradict it, the example and
    the repairs.
    """
    yield finding.message
    if finding.condition:
        yield f"requires {finding.condition}"
    for link in finding.conflict:
        yield f"against {link.result} ({place(link.origin)})"
    if finding.witness is not None:
        raised = f": {finding.evidence.splitlines()[0]}" if finding.evidence else ""
        yield f"refused at {sizes(finding.witness)}{raised}"
    for repair in finding.repairs:
        yield f"repair: {repair_text(repair)}"
