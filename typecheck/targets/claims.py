"""The claims of a program on its values: `assert_shape`, and the annotations of its functions."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from .annotation_reader import read_shaped


class TargetAnnotations:
    """The annotations of a program."""

    def __init__(self, target: Any) -> None:
        from ...tracer.patches.annotated import AnnotatedFunctions

        self._functions = AnnotatedFunctions(target, read_shaped)

    def reported(self) -> AbstractContextManager[None]:
        """Makes the program report what it annotates, inside the block, as it reports other claims."""
        return self._functions.reporting()
