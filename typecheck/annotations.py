"""Annotations as an input spec: `x: Float[Tensor, "b 3 h w"]` of jaxtyping is `x: float32[b, 3, h, w]`,
`x: TensorType((1, 3, Dyn, Dyn))` of torch.fx is `x: [1, 3, ?, ?]`, and a text may be a spec itself.

jaxtyping need not be installed where annotations are texts (`from __future__ import annotations`). Where they
are classes of it, their attributes `dim_str` and `dtypes` are read.
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..constraints.spec_text import DTYPES, SpecError
from .target import TargetError, is_graph_module

_HINT = 'declare the inputs: --input "x: float32[b, 3]", inputs="x: float32[b, 3]" in Python'

FAMILIES: Final[Mapping[str, str]] = {
    "Float": "float32",
    "Inexact": "float32",
    "Real": "float32",
    "Num": "float32",
    "Shaped": "float32",
    "Int": "int64",
    "Integer": "int64",
    "UInt": "uint8",
    "Complex": "complex64",
    "Bool": "bool",
    "Half": "float16",
    "Double": "float64",
    "Long": "int64",
}
"""What stands for several dtypes -> the one that is checked."""
_SCALARS: Final[Mapping[Any, str]] = {int: "int", float: "float", "int": "int", "float": "float"}
_PREFERRED = ("float32", "int64", "bool")

_TEXT = re.compile(
    r"""(?:\w+\.)*(?P<family>\w+) \s* \[ \s* [\w.]+ \s* ,
        \s* (?P<quote>['"]) (?P<dims>[^'"]*) (?P=quote) \s* ,? \s* \]""",
    re.VERBOSE,
)

_SPEC = re.compile(rf"\s*({'|'.join(DTYPES)})?\[[^]]*\]\s*")
"""The type of an input, as a spec has it."""


def spec_of(target: Any) -> list[str]:
    """One line of a spec for each parameter of the target that has to be given; a default is left as it is.

    Raises TargetError where a parameter says nothing of itself, SpecError where a notation has no
    counterpart.
    """
    if is_graph_module(target):
        return _of_graph(target)
    lines: list[str] = []
    for name, parameter in _parameters(_called(target)).items():
        if parameter.default is not parameter.empty or parameter.kind in _REST:
            continue
        line = _line(name, parameter.annotation)
        if line is None:
            raise TargetError(
                f"nothing is declared of the input {name!r}, and its annotation says no shape", _HINT
            )
        lines.append(line)
    return lines


def _of_graph(graph_module: Any) -> list[str]:
    """A line for each input of a graph of torch.fx; one that is not annotated is a tensor of any rank."""
    from ..tracer.fx import placeholders

    lines = []
    for name, annotation, dtype in placeholders(graph_module):
        line = _line(name, annotation) or f"{name}: float32[...]"
        lines.append(line.replace("float32[", f"{dtype}[", 1) if dtype else line)
    return lines


_REST = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _called(target: Any) -> Any:
    """The function whose parameters are the inputs: a module's `forward`."""
    forward = getattr(target, "forward", None)
    return forward if callable(forward) else target


def _parameters(function: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        raise TargetError("the parameters of the target cannot be read", _HINT) from None


def _line(name: str, annotation: Any) -> str | None:
    """A line of a spec, None where the annotation says nothing of use."""
    if isinstance(annotation, str):
        return _of_text(name, annotation)
    for option in _options(annotation):
        if isinstance(getattr(option, "dim_str", None), str):
            return _tensor(name, _dtype_of(getattr(option, "dtypes", ())), option.dim_str)
        if type(option).__module__ == "torch.fx.tensor_type":
            return _gradual(name, option)
        if option in _SCALARS:
            return f"{name}: {_SCALARS[option]}"
    return None


def _gradual(name: str, annotation: Any) -> str:
    """A type of torch.fx. In a `TensorType` a Dyn is a size that is not known; Dyn itself is any tensor."""
    from ..constraints.language import Dyn
    from ..constraints.lattice import Ranked
    from ..tracer.tensor_types import from_torch

    type = from_torch(annotation)
    if not isinstance(type, Ranked):
        return f"{name}: float32[...]"
    return f"{name}: float32[{', '.join('?' if dim is Dyn else str(dim) for dim in type.dims)}]"


def _options(annotation: Any) -> tuple[Any, ...]:
    """The members of a union, `Annotated` and NewTypes looked through; of anything else itself."""
    if typing.get_origin(annotation) is typing.Annotated:
        return _options(typing.get_args(annotation)[0])
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return tuple(o for a in typing.get_args(annotation) for o in _options(a))
    return (annotation,)


def _of_text(name: str, text: str) -> str | None:
    if found := _TEXT.search(text):
        family = found["family"]
        dtype = FAMILIES.get(family) or DTYPES.get(family.lower())
        if dtype is None:
            raise SpecError(f"{family} is no dtype of jaxtyping", text, found.start("family") + 1, _HINT)
        return _tensor(name, dtype, found["dims"])
    if _SPEC.fullmatch(text):
        return f"{name}: {text.strip()}"
    return f"{name}: {_SCALARS[text.strip()]}" if text.strip() in _SCALARS else None


def _dtype_of(dtypes: Iterable[Any]) -> str:
    """The one dtype of several that is checked."""
    found = (
        [d for d in dtypes if isinstance(d, str) and d in DTYPES] if isinstance(dtypes, list | tuple) else []
    )
    return next((d for d in _PREFERRED if d in found), found[0] if found else "float32")


def _tensor(name: str, dtype: str, dims: str) -> str:
    return f"{name}: {dtype}[{', '.join(_size(part, dims) for part in dims.split())}]"


def _size(part: str, dims: str) -> str:
    """One dim of jaxtyping in the notation of a spec. `rows=4` is 4 with a comment."""
    size = part.rpartition("=")[2]
    if size == "_":
        return "?"
    if size.startswith("#"):
        column = dims.index(part) + 1
        raise SpecError("a size that broadcasts has no counterpart in a spec", dims, column, _HINT)
    return size.replace("{", "").replace("}", "").removeprefix("?")
