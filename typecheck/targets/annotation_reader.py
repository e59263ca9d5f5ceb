"""Reads annotations, as objects or as texts, into data (constraints/ir/annotations.py).

jaxtyping need not be installed where annotations are texts. Of its classes the attributes `dim_str` and
`dtypes` are read. A name in a text is looked up; nothing is evaluated.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import sys
import types
import typing
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from ...constraints.ir.annotations import (
    ANYTHING,
    Annotation,
    Each,
    Fields,
    Kind,
    OneOf,
    Tree,
    TupleOf,
    Unread,
    speaks_of_shapes,
)
from ...constraints.ir.claims import ANY_ROW, Axis, Claim, parse_claim
from ...constraints.ir.spec_text import DTYPES, SpecError
from .jaxtyping_axes import HINT, axes_of

_FLOATS: Final = "float16 bfloat16 float32 float64 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz"
_GROUPS: Final[Mapping[str, str]] = {
    "Bool": "bool",
    "Float": _FLOATS,
    "Complex": "complex32 complex64 complex128",
    "Int": "int8 int16 int32 int64",
    "UInt": "uint8 uint16 uint32 uint64",
    "Integer": "Int UInt",
    "Inexact": "Float Complex",
    "Real": "Float Integer",
    "Num": "Real Complex",
    "Half": "float16",
    "Double": "float64",
    "Long": "int64",
    "BFloat16": "bfloat16",
    "Float8e4m3fn": "float8_e4m3fn",
    "Float8e4m3fnuz": "float8_e4m3fnuz",
    "Float8e5m2": "float8_e5m2",
    "Float8e5m2fnuz": "float8_e5m2fnuz",
}
"""Names for several dtypes, by those of others or by torch's."""
_FOREIGN: Final[Mapping[str, str]] = {
    **dict.fromkeys(("Int2", "Int4", "UInt2", "UInt4"), "of which torch has no tensor"),
    **dict.fromkeys(("Float8e4m3b11fnuz", "Float8e3m4", "Float8e4m3", "Float8e8m0fnu"), "that torch lacks"),
    **dict.fromkeys(("Float4e2m1fn", "Float6e2m3fn", "Float6e3m2fn"), "that torch lacks"),
    "Key": "of the keys of JAX",
}
"""Dtypes of jaxtyping that no tensor of torch has, and what is said of them."""
_ANY_DTYPE: Final = "Shaped"
_LISTS: Final = "list List Sequence MutableSequence Iterable Collection".split()
_DICTS: Final = "dict Dict Mapping MutableMapping OrderedDict defaultdict".split()
_TENSORS: Final = ("Tensor", "Array", "Parameter", "ndarray", "Any")
_KINDS: Final = frozenset({"int", "float", "bool", "str", "complex", "None", "NoneType"})
_SPEC: Final = re.compile(rf"\s*({'|'.join(DTYPES)})?\s*(\[[^]]*\])\s*")
"""The type of an input, as a spec has it."""
_SURE: Final = re.compile(r"(?<![^\W_])(?:\d+|\w)(?![^\W_])|\.\.\.")
"""What tells the shape in an `Annotated` from a remark: a number, a single letter, dots."""
_CALL_OF_VALIDATOR: Final = re.compile(r"Is\w*")


def _dtypes(name: str) -> frozenset[str] | None:
    """Returns the dtypes of torch that a name of jaxtyping stands for; None where it is not known."""
    if name in _GROUPS:
        return frozenset().union(*(_dtypes(one) or frozenset({one}) for one in _GROUPS[name].split()))
    if name.lower() in DTYPES and name[:1].isupper():
        return frozenset({DTYPES[name.lower()]})
    return None


class AnnotationReader:
    """Reads annotations; `names` are those that texts among them may use."""

    def __init__(self, names: Mapping[str, Any] = MappingProxyType({})) -> None:
        self._names = names
        self._within: list[Any] = []
        """The objects whose annotations are being read, so that one within itself is read once."""

    def shaped(self, annotation: Any) -> Annotation | None:
        """Returns an annotation that states something of shapes; None where it does not."""
        try:
            found = self.read(annotation)
        except SpecError as error:
            return Unread(str(error.problem))
        return found if speaks_of_shapes(found) else None

    def read(self, annotation: Any) -> Annotation:
        """Returns an annotation as data; where it states nothing that is understood, ANYTHING.

        Raises SpecError where it states something of shapes and cannot be read.
        """
        if isinstance(annotation, typing.ForwardRef):
            annotation = annotation.__forward_arg__
        if isinstance(annotation, str):
            return self._of_text(annotation)
        if isinstance(annotation, ast.expr):
            return self._of_expression(annotation)
        return self._of_object(annotation)

    def _of_text(self, text: str) -> Annotation:
        if spec := _SPEC.fullmatch(text):
            return _of_spec(spec)
        try:
            return self._of_expression(ast.parse(text.strip(), mode="eval").body)
        except SyntaxError:
            return ANYTHING

    def _of_expression(self, e: ast.expr) -> Annotation:
        match e:
            case ast.Constant(str(text)):
                return self._of_text(text)
            case ast.Constant(None):
                return Kind("NoneType")
            case ast.BinOp(left, ast.BitOr(), right):
                return self._of_parts("Union", (left, right), e)
            case ast.Subscript(head, ast.Tuple([*parts])):
                return self._of_parts(_last(head), tuple(parts), e)
            case ast.Subscript(head, part):
                return self._of_parts(_last(head), (part,), e)
            case ast.Name() | ast.Attribute():
                found = self._looked_up(e)
                return self._of_name(_last(e)) if found is None else self._of_object(found)
        return ANYTHING

    def _of_name(self, name: str) -> Annotation:
        if name in _KINDS:
            return Kind("NoneType" if name == "None" else name)
        return Claim("", (ANY_ROW,)) if name.endswith(_TENSORS[:3]) else ANYTHING

    def _looked_up(self, e: ast.expr) -> Any:
        """Returns the object that a name stands for; None where it is not known."""
        if isinstance(e, ast.Name):
            return self._names.get(e.id)
        if isinstance(e, ast.Attribute) and (owner := self._looked_up(e.value)) is not None:
            return inspect.getattr_static(owner, e.attr, None)
        return None

    def _of_object(self, found: Any) -> Annotation:
        if any(found is one for one in self._within):
            return ANYTHING
        self._within.append(found)
        try:
            return self._of_known(found)
        finally:
            self._within.pop()

    def _of_known(self, found: Any) -> Annotation:
        if isinstance(getattr(found, "dim_str", None), str):
            return _of_class(found)
        if hasattr(found, "__value__"):  # `type Image = …`
            return self.read(found.__value__)
        if isinstance(found, str):
            return self._of_text(found)
        if type(found).__module__ == "torch.fx.tensor_type":
            return _gradual(found)
        origin = typing.get_origin(found)
        if origin is typing.Annotated:
            return self._of_parts("Annotated", (found.__origin__, *found.__metadata__), found)
        if origin in (typing.Union, types.UnionType):
            return self._of_parts("Union", typing.get_args(found), found)
        if origin is not None:
            return self._of_parts(getattr(origin, "__name__", ""), typing.get_args(found), found)
        if (leaf := getattr(found, "leaftype", None)) is not None:
            return Tree(self.read(leaf), getattr(found, "structure", None) or "")
        if isinstance(found, type):
            return self._of_fields(found) or self._of_name(found.__name__)
        return Kind("NoneType") if found is None else ANYTHING

    def _of_fields(self, kind: type) -> Annotation | None:
        """Returns the annotations of the fields of a dataclass, a NamedTuple or a TypedDict; None for another
        class.
        """
        keys = issubclass(kind, dict) and hasattr(kind, "__total__")
        if not (keys or dataclasses.is_dataclass(kind) or hasattr(kind, "_fields")):
            return None
        scope = getattr(sys.modules.get(kind.__module__), "__dict__", self._names)
        reader = AnnotationReader({**self._names, **scope})
        reader._within = self._within
        said = inspect.get_annotations(kind)
        return Fields(tuple((name, reader.read(one)) for name, one in said.items()), keys)

    def _of_parts(self, head: str, parts: tuple[Any, ...], whole: Any) -> Annotation:
        """Returns what `head[parts]` says."""
        text = _shown(whole)
        match head:
            case "Annotated":
                return self._of_annotated(parts, text)
            case "Optional":
                return OneOf((*_members(self.read(parts[0])), Kind("NoneType")))
            case "Union":
                return OneOf(tuple(one for part in parts for one in _members(self.read(part))))
            case "tuple" | "Tuple":
                if len(parts) == 2 and _is_dots(parts[1]):
                    return Each(self.read(parts[0]))
                return TupleOf(tuple(map(self.read, parts)))
            case "PyTree":
                return Tree(self.read(parts[0]), _string(parts[1]) or "" if len(parts) > 1 else "")
            case "TensorType":
                return _torchtyping(parts, text)
            case "ClassVar" | "Final" | "Required" | "NotRequired" | "ReadOnly":
                return self.read(parts[0])
            case "Literal" | "Callable" | "type" | "Type":
                return ANYTHING
        if head in _LISTS:
            return Each(self.read(parts[0]))
        if head in _DICTS and len(parts) == 2:
            return Each(self.read(parts[1]))
        if len(parts) == 2 and (dims := _string(parts[1])) is not None:
            return self._of_array(head, parts[0], dims, text)
        if head == "Tensor" and isinstance(whole, ast.Subscript):
            return _pyrefly(parts, text)
        return ANYTHING

    def _of_annotated(self, parts: tuple[Any, ...], text: str) -> Annotation:
        """`Annotated[Tensor, "b 8"]`; other remarks are not about shapes."""
        said = self.read(parts[0])
        if not isinstance(said, Claim) or said.text:
            return said
        for remark in parts[1:]:
            if isinstance(remark, dict) and "details" in remark:
                return _of_details(remark["details"], text)
            if (dims := _string(remark)) is not None:
                if spec := _SPEC.fullmatch(dims):
                    return dataclasses.replace(_of_spec(spec), text=text)
                if not _SURE.search(dims):
                    raise SpecError(f"{dims!r} in {text} may be a remark; write a shape in brackets")
                return Claim(text, axes_of(dims))
            name = _last(remark.func if isinstance(remark, ast.Call) else getattr(remark, "value", remark))
            validates = _CALL_OF_VALIDATOR.fullmatch(name) if isinstance(remark, ast.expr) else None
            if validates or type(remark).__module__.partition(".")[0] == "beartype":
                raise SpecError(f"the validator in {text} is not followed")
        return said

    def _of_array(self, name: str, array: Any, dims: str, text: str) -> Annotation:
        """`Float[Tensor, "b c"]`. An array that is an annotation itself has its own axes behind these."""
        dtypes, of_arrays = _dtypes(name), _string(array) is None and self._is_array(array)
        if name in _FOREIGN:
            raise SpecError(f"{name} in {text} is a dtype {_FOREIGN[name]}")
        if dtypes is None and name != _ANY_DTYPE:
            if not of_arrays:
                return ANYTHING
            raise SpecError(f"{name} is not a dtype of jaxtyping", text, 1, HINT)
        members: list[Annotation] = []
        for inner in _members(self.read(array)):
            if isinstance(inner, Claim):
                axes = (*axes_of(dims), *(inner.axes if inner.text else ()))
                if sum(axis.row for axis in axes) > 1:
                    raise SpecError("any number of axes may stand at one position only", text, hint=HINT)
                members.append(Claim(text, axes, _both(dtypes, inner.dtypes, text)))
            elif inner == ANYTHING and of_arrays:
                members.append(Claim(text, axes_of(dims), dtypes))
            elif isinstance(inner, Kind) and inner.name:
                members.append(inner)
            else:
                raise SpecError(f"{_shown(array)} is not a known type of array", text, hint=HINT)
        return members[0] if len(members) == 1 else OneOf(tuple(members))

    def _is_array(self, array: Any) -> bool:
        """Returns whether this is a class of arrays: a class in scope, or a name that ends like that of one.
        """
        if not isinstance(array, ast.expr):
            return isinstance(array, type) or array is Any
        found = self._looked_up(array)
        return _last(array).endswith(_TENSORS) or found is Any or isinstance(found, type)


def _members(annotation: Annotation) -> tuple[Annotation, ...]:
    return annotation.members if isinstance(annotation, OneOf) else (annotation,)


def _both(one: frozenset[str] | None, other: frozenset[str] | None, text: str) -> frozenset[str] | None:
    """Returns the dtypes that both allow."""
    if one is None or other is None:
        return other if one is None else one
    if not one & other:
        raise SpecError("no dtype is allowed by both", text, hint=HINT)
    return one & other


def _of_spec(found: re.Match[str]) -> Claim:
    claim = parse_claim(found[2])
    axes = tuple(Axis(axis.size[1:], row=True) if axis.size[:1] == "*" else axis for axis in claim.axes)
    return Claim(found[0].strip(), axes, frozenset({DTYPES[found[1]]}) if found[1] else None)


def _of_class(kind: Any) -> Claim:
    """Returns what a class of jaxtyping says."""
    dtypes, text = getattr(kind, "dtypes", None), _shown(getattr(kind, "__name__", kind.dim_str))
    shown = text if "[" in text else f"[{kind.dim_str}]"
    if not isinstance(dtypes, list | tuple):
        return Claim(shown, axes_of(kind.dim_str))
    if any(not isinstance(one, str) for one in dtypes):
        raise SpecError(f"the dtypes of {shown} are patterns")
    known = frozenset(one for one in dtypes if one in DTYPES)
    if not known:
        raise SpecError(f"no tensor of torch has a dtype of {shown}")
    return Claim(shown, axes_of(kind.dim_str), known)


def _gradual(annotation: Any) -> Annotation:
    """A type of torch.fx. In a `TensorType` a Dyn is a size that is not known; Dyn itself is any tensor."""
    from ...constraints.ir.lattice import Ranked
    from ...tracer.readers.tensor_types import claim_text, from_torch

    if not isinstance(from_torch(annotation), Ranked):
        return Claim("[...]", (ANY_ROW,))
    return parse_claim(claim_text(annotation))


# ---- other packages


def _torchtyping(parts: tuple[Any, ...], text: str) -> Claim:
    """`TensorType["b", 3, "n": 4, ..., float]` of torchtyping, or `TensorType((1, 3, Dyn))` of torch.fx."""
    axes: list[Axis] = []
    dtypes: frozenset[str] | None = None
    for part in parts:
        match part:
            case ast.Constant(value=types.EllipsisType()):
                axes.append(ANY_ROW)
            case ast.Constant(str(name)):
                axes.append(Axis(name))
            case ast.Constant(int(size)):
                axes.append(Axis(str(size)))
            case ast.UnaryOp(ast.USub(), ast.Constant(1)) | ast.Constant(None) | ast.Name("Any"):
                axes.append(Axis())
            case ast.Slice(ast.Constant(str(name)), ast.Constant(value=types.EllipsisType())):
                axes.append(Axis(name, row=True))
            case ast.Slice(ast.Constant(), ast.Constant(int(size))):
                axes.append(Axis(str(size)))
            case ast.Slice(ast.Constant(str(name)), ast.UnaryOp(ast.USub(), ast.Constant(1))):
                axes.append(Axis(name))
            case ast.Name() | ast.Attribute() if (named := _torchtyping_dtype(_last(part))) is not None:
                dtypes = named
            case ast.Name("is_named"):
                raise SpecError(f"{text} is about names of dims, which are not compared")
            case ast.Tuple([]):
                return Claim(text, (), dtypes)
            case _:
                raise SpecError(f"{_shown(part)} in {text} is not read")
    if sum(axis.row for axis in axes) > 1:
        raise SpecError("any number of axes may stand at one position only", text, hint=HINT)
    return Claim(text, tuple(axes) or (ANY_ROW,), dtypes)


def _torchtyping_dtype(name: str) -> frozenset[str] | None:
    plain: Mapping[str, str] = {"float": "float32", "int": "int64", "bool": "bool"}
    found = plain.get(name) or DTYPES.get(name)
    return None if found is None else frozenset({found})


def _of_details(details: Iterable[Any], text: str) -> Claim:
    """Returns what an object of torchtyping says: its details have `dims` or a `dtype`."""
    axes: tuple[Axis, ...] = (ANY_ROW,)
    dtypes = None
    for detail in details:
        if (dims := getattr(detail, "dims", None)) is not None:
            axes = tuple(map(_of_detail, dims))
        elif (dtype := getattr(detail, "dtype", None)) is not None:
            dtypes = frozenset({str(dtype).removeprefix("torch.")})
    if sum(axis.row for axis in axes) > 1:
        raise SpecError("any number of axes may stand at one position only", text, hint=HINT)
    return Claim(text, axes, dtypes)


def _of_detail(dim: Any) -> Axis:
    name = dim.name if isinstance(dim.name, str) else ""
    if dim.size is ...:
        return Axis(name, row=True)
    return Axis(name if dim.size == -1 else str(dim.size))


def _pyrefly(parts: tuple[Any, ...], text: str) -> Claim:
    """`Tensor[B, 8, 2 * N]` and `Tensor[*Bs, 8]`, as Pyrefly has them."""
    axes = []
    for part in parts:
        match part:
            case ast.Starred(ast.Name(name)):
                axes.append(Axis(name, row=True))
            case ast.Starred():
                axes.append(ANY_ROW)
            case ast.Name("Any"):
                axes.append(Axis())
            case _ if all(isinstance(node, _ARITHMETIC) for node in ast.walk(part)):
                axes.append(Axis(ast.unparse(part)))
            case _:
                raise SpecError(f"{_shown(part)} in {text} is not a size")
    return Claim(text, tuple(axes))


_ARITHMETIC: Final = (
    ast.Name, ast.Load, ast.BinOp, ast.UnaryOp, ast.USub, ast.Constant, ast.Add, ast.Sub, ast.Mult,
    ast.FloorDiv, ast.Mod, ast.Pow,
)  # fmt: skip


# ---- texts and objects alike


def _last(e: Any) -> str:
    """`Float` of `Float` and `jaxtyping.Float`."""
    return e.id if isinstance(e, ast.Name) else e.attr if isinstance(e, ast.Attribute) else ""


def _string(part: Any) -> str | None:
    if isinstance(part, ast.Constant):
        part = part.value
    return part if isinstance(part, str) else None


def _is_dots(part: Any) -> bool:
    return (part.value if isinstance(part, ast.Constant) else part) is ...


def _shown(whole: Any) -> str:
    """Returns the text of an annotation, with the quotation marks that most people write."""
    text = ast.unparse(whole) if isinstance(whole, ast.expr) else str(whole)
    return text if '"' in text else text.replace("'", '"')


def read_shaped(annotation: ast.expr, names: Mapping[str, Any]) -> Annotation | None:
    """Returns what an annotation says of shapes, by the names in its scope; None if nothing."""
    return AnnotationReader(names).shaped(annotation)
