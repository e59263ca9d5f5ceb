"""Annotations as an input spec: `x: Float[Tensor, "b 3 h w"]` of jaxtyping is `x: float32[b, 3, h, w]`,
`x: TensorType((1, 3, Dyn, Dyn))` of torch.fx is `x: [1, 3, ?, ?]`, and a text may be a spec itself.

jaxtyping need not be installed where annotations are texts (`from __future__ import annotations`). Where they
are classes of it, their attributes `dim_str` and `dtypes` are read. `jaxtyping_axes.py` reads the axes.
"""

from __future__ import annotations

import ast
import inspect
import re
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from ...constraints.ir.spec_text import DTYPES, SpecError
from ...tracer.host.interpreter import signature
from .jaxtyping_axes import HINT, Axis, axes_of, written
from .target import is_graph_module
from .target_error import TargetError

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
"""Names for several dtypes -> the one that is checked."""
_SCALARS: Final[Mapping[Any, str]] = {int: "int", float: "float", "int": "int", "float": "float"}
_PREFERRED = ("float32", "int64", "bool")

_SPEC = re.compile(rf"\s*({'|'.join(DTYPES)})?\[[^]]*\]\s*")
"""The type of an input, as a spec has it."""


@dataclass(frozen=True, slots=True)
class _AnnotatedTensor:
    """The dtype and the axes that a jaxtyping annotation gives to an input."""

    dtype: str
    axes: tuple[Axis, ...]


_ANY: Final = _AnnotatedTensor("float32", (Axis("", row=True),))


def spec_of(target: Any, others: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    """One line of a spec for each parameter of the target that has to be given; a default is left as it is.
    `others` are the types of parameters that say nothing of themselves.

    Raises TargetError where there are more of these, SpecError where a notation has no counterpart.
    """
    if is_graph_module(target):
        return _of_graph(target)
    parameters, said = _annotated(target)
    said |= {name: type for name, type in others.items() if name in said}
    for name, found in said.items():
        if found is None:
            raise TargetError(f"the input {name!r} is not declared, and its annotation has no shape", HINT)
    arguments = {name: _value(name, parameter, said.get(name)) for name, parameter in parameters.items()}
    return _lines(said, arguments)


def undeclared(target: Any) -> list[str]:
    """Returns the names of the parameters that have to be given and say nothing of themselves."""
    if is_graph_module(target):
        return []
    return [name for name, found in _annotated(target)[1].items() if found is None]


def _annotated(
    target: Any,
) -> tuple[dict[str, inspect.Parameter], dict[str, str | _AnnotatedTensor | None]]:
    """Returns the parameters, and what the annotations say of those that have to be given."""
    function = _called(target)
    parameters = {n: p for n, p in _parameters(function).items() if p.kind not in _REST}
    reader = _AnnotationReader(getattr(inspect.unwrap(function), "__globals__", {}))
    said = {n: reader.read(p.annotation) for n, p in parameters.items() if p.default is p.empty}
    return parameters, said


def _lines(
    said: Mapping[str, str | _AnnotatedTensor | None], arguments: Mapping[str, str | None]
) -> list[str]:
    """The lines of a spec for the types of inputs."""
    tensors = [found for found in said.values() if isinstance(found, _AnnotatedTensor)]
    rows = {axis.size for tensor in tensors for axis in tensor.axes if axis.row}
    types = {
        name: f"{found.dtype}[{', '.join(written(name, found.axes, arguments, rows))}]"
        if isinstance(found, _AnnotatedTensor) else found
        for name, found in said.items()
    }  # fmt: skip
    return [f"{name}: {type}" for name, type in types.items()]


def _value(name: str, parameter: inspect.Parameter, said: str | _AnnotatedTensor | None) -> str | None:
    """Returns the value of an integer argument as a spec writes it: its symbol, or the number that it is by
    default.
    """
    if parameter.default is parameter.empty:
        return name if said == "int" else None
    return str(parameter.default) if type(parameter.default) is int else None


def _of_graph(graph_module: Any) -> list[str]:
    """A line for each input of a graph of torch.fx; one that is not annotated is a tensor of any rank."""
    from ...tracer.readers.fx import placeholders

    said: dict[str, str | _AnnotatedTensor | None] = {}
    for name, annotation, dtype in placeholders(graph_module):
        found = _AnnotationReader({}).read(annotation) or _ANY
        if isinstance(found, _AnnotatedTensor):
            said[name] = replace(found, dtype=dtype or found.dtype)
        else:
            said[name] = found.replace("float32[", f"{dtype}[", 1) if dtype else found
    return _lines(said, {})


_REST = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _called(target: Any) -> Any:
    """The function whose parameters are the inputs: a module's `forward`."""
    forward = getattr(target, "forward", None)
    return forward if callable(forward) else target


def _parameters(function: Any) -> Mapping[str, inspect.Parameter]:
    try:
        return signature(function).parameters
    except (TypeError, ValueError):
        raise TargetError("the parameters of the target cannot be read", HINT) from None


class _AnnotationReader:
    """Reads annotations; `names` are those that texts among them may use."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names

    def read(self, annotation: Any) -> str | _AnnotatedTensor | None:
        """The type of an input in a spec, None where the annotation says nothing of use."""
        if isinstance(annotation, str):
            return self._of_text(annotation)
        found = {said: None for option in _options(annotation) if (said := self._of_object(option))}
        return _only(found, str(annotation))

    def _of_object(self, option: Any) -> str | _AnnotatedTensor | None:
        if isinstance(option, str | typing.ForwardRef):
            return self._of_text(option if isinstance(option, str) else option.__forward_arg__)
        if isinstance(getattr(option, "dim_str", None), str):
            return _AnnotatedTensor(_dtype_of(getattr(option, "dtypes", ())), axes_of(option.dim_str))
        if type(option).__module__ == "torch.fx.tensor_type":
            return _gradual(option)
        return _SCALARS.get(option) if isinstance(option, type) else None

    def _of_text(self, text: str) -> str | _AnnotatedTensor | None:
        if _SPEC.fullmatch(text):
            return text.strip()
        try:
            expression = ast.parse(text.strip(), mode="eval").body
        except SyntaxError:
            return None
        options = self._text_options(expression)
        return _only({said: None for o in options if (said := self._of_expression(o, text))}, text)

    def _text_options(self, e: ast.expr) -> tuple[ast.expr, ...]:
        """The members of a union that is written out, as `_options` has those of one that is an object."""
        match e:
            case ast.BinOp(left, ast.BitOr(), right):
                return (*self._text_options(left), *self._text_options(right))
            case ast.Subscript(value, inner) if _last(value) == "Optional":
                return self._text_options(inner)
            case ast.Subscript(value, ast.Tuple([*members])) if _last(value) == "Union":
                return tuple(o for m in members for o in self._text_options(m))
            case ast.Subscript(value, ast.Tuple([first, *_])) if _last(value) == "Annotated":
                return self._text_options(first)
        return (e,)

    def _of_expression(self, e: ast.expr, text: str) -> str | _AnnotatedTensor | None:
        match e:
            case ast.Name(name) if name in _SCALARS:
                return _SCALARS[name]
            case ast.Subscript(family, ast.Tuple([array, ast.Constant(str(dims))])):
                return self._tensor(family, array, dims, text)
        return None

    def _tensor(self, family: ast.expr, array: ast.expr, dims: str, text: str) -> _AnnotatedTensor:
        """`Float[Tensor, "b c"]`. An array that is an annotation itself has its own axes behind these."""
        name = _last(family)
        dtype = FAMILIES.get(name) or DTYPES.get(name.lower())
        if dtype is None:
            raise SpecError(f"{name or ast.unparse(family)} is not a dtype of jaxtyping", text, 1, HINT)
        inner = self.read(self._names.get(array.id)) if isinstance(array, ast.Name) else None
        inner = inner or self._of_expression(array, text)
        if isinstance(inner, _AnnotatedTensor):
            return _AnnotatedTensor(inner.dtype if name in FAMILIES else dtype, (*axes_of(dims), *inner.axes))
        if isinstance(array, ast.Subscript) or (inner is None and not self._is_array(array)):
            raise SpecError(f"{ast.unparse(array)} is not a known type of array", text, hint=HINT)
        return _AnnotatedTensor(dtype, axes_of(dims))

    def _is_array(self, array: ast.expr) -> bool:
        """Returns whether this is a class of arrays: a class in scope, or a name that ends like that of one.
        """
        found = self._names.get(array.id) if isinstance(array, ast.Name) else None
        named = _last(array).endswith(("Tensor", "Array", "Parameter"))
        return named or found is Any or isinstance(found, type)


def _last(e: ast.expr) -> str:
    """`Float` of `Float` and `jaxtyping.Float`."""
    return e.id if isinstance(e, ast.Name) else e.attr if isinstance(e, ast.Attribute) else ""


def _only(found: Iterable[str | _AnnotatedTensor], annotation: str) -> str | _AnnotatedTensor | None:
    """The one type that an annotation allows. Raises SpecError where there are several."""
    types = list(found)
    if len(types) > 1:
        raise SpecError(f"{annotation} allows several types, and one is checked at a time", hint=HINT)
    return types[0] if types else None


def _gradual(annotation: Any) -> str:
    """A type of torch.fx. In a `TensorType` a Dyn is a size that is not known; Dyn itself is any tensor."""
    from ...constraints.ir.language import Dyn
    from ...constraints.ir.lattice import Ranked
    from ...tracer.readers.tensor_types import from_torch

    type = from_torch(annotation)
    if not isinstance(type, Ranked):
        return "float32[...]"
    return f"float32[{', '.join('?' if dim is Dyn else str(dim) for dim in type.dims)}]"


def _options(annotation: Any) -> tuple[Any, ...]:
    """The members of a union, `Annotated` looked through; of anything else itself."""
    if typing.get_origin(annotation) is typing.Annotated:
        return _options(typing.get_args(annotation)[0])
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return tuple(o for a in typing.get_args(annotation) for o in _options(a))
    return (annotation,)


def _dtype_of(dtypes: Iterable[Any]) -> str:
    """The one dtype of several that is checked."""
    found = (
        [d for d in dtypes if isinstance(d, str) and d in DTYPES] if isinstance(dtypes, list | tuple) else []
    )
    return next((d for d in _PREFERRED if d in found), found[0] if found else "float32")
