"""The user's declaration of the inputs: a value per input, found by its path, and the domain of the symbols.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from .language import Value
from .system import Domain

Step: TypeAlias = "str | int"
InputPath: TypeAlias = tuple[Step, ...]
"""`("batch", "pixels")` for `batch["pixels"]`, `("xs", 0)` for `xs[0]`; the first step is a parameter's name.
"""


@dataclass(frozen=True, slots=True)
class Declared:
    """One line of a spec: an input's path and its type. A size is a dim; a literal is the value itself."""

    path: InputPath
    type: Value

    @property
    def name(self) -> str:
        """Returns the path in the notation of specs: `batch["pixels"]`."""
        head, *rest = self.path
        return str(head) + "".join(f"[{step if isinstance(step, int) else quoted(step)}]" for step in rest)


def quoted(text: str) -> str:
    """Returns a text in quotes, as a spec writes it; no quote is escaped."""
    return f"'{text}'" if '"' in text else f'"{text}"'


@dataclass(frozen=True, slots=True)
class Spec:
    """The declared inputs, in order, and their domain."""

    inputs: tuple[Declared, ...]
    domain: Domain
