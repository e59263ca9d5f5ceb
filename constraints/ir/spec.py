"""The user's declaration of the inputs: a value per input, found by its path, and the domain of the symbols.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from msgspec import structs

from .language import Tensor, Value
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
    open_dtype: bool = field(default=False, compare=False)
    """Whether the line of a tensor leaves its dtype out: it is float32 unless the program needs another."""

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

    def dtypes(self, *, only_open: bool = False) -> dict[str, str]:
        """Returns the dtypes of the tensors among the inputs, or of those that leave theirs out."""
        return {
            one.name: one.type.dtype
            for one in self.inputs
            if isinstance(one.type, Tensor) and one.type.dtype and (one.open_dtype or not only_open)
        }

    def with_dtypes(self, dtypes: Mapping[str, str]) -> Spec:
        """Returns the spec with other dtypes of some inputs, by their names."""
        inputs = [
            replace(one, type=structs.replace(one.type, dtype=dtypes[one.name]))
            if isinstance(one.type, Tensor) and one.name in dtypes else one
            for one in self.inputs
        ]  # fmt: skip
        return replace(self, inputs=tuple(inputs))

    def with_dtypes_of(self, other: Spec) -> Spec:
        """Returns the spec with the dtypes of another spec for the inputs that leave theirs out."""
        known = other.dtypes()
        return self.with_dtypes({n: known[n] for n in self.dtypes(only_open=True) if n in known})
