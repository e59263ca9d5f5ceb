"""A saved `.pt2` archive, read as JSON alone: no torch, no pickle, no weights.

`torch.export.save` writes the graph as JSON beside the weights. Each value in it is a JSON object whose
single key is its kind; the tables below have a reader for each. Everything is checked while it is read, so
that a damaged or hostile archive raises an ArchiveError and nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from ...constraints.engine.collector import collector_at_rest
from ...constraints.ir.language import Dyn, Dynamic, Number, Value
from ...constraints.ir.release import release_of
from ...constraints.ir.spec import InputPath
from ...constraints.terms.dims import Dim
from .archive import SCHEMA, ArchiveError, PathLike, later_schema, read_json
from .exported import (
    ExportedCall,
    ExportedGraph,
    ExportedParts,
    Given,
    GraphError,
    Name,
    Operand,
    build,
    innermost,
    tensor,
)
from .expressions import NotRead, dim_of, formula_of
from .graph import Traced
from .trees import Fields, NoTree, argument_paths, leaf_paths, output_names

DTYPES: Final[Mapping[int, str]] = {
    1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32", 8: "float64",
    9: "complex32", 10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16", 28: "uint16",
    29: "float8_e4m3fn", 30: "float8_e5m2", 31: "float8_e4m3fnuz", 32: "float8_e5m2fnuz",
    33: "float8_e8m0fnu", 34: "uint32", 35: "uint64",
}  # fmt: skip
LAYOUTS: Final[Mapping[int, str]] = {
    1: "sparse_coo", 2: "sparse_csr", 3: "sparse_csc", 4: "sparse_bsr", 5: "sparse_bsc", 6: "_mkldnn",
    7: "strided",
}  # fmt: skip
MEMORY_FORMATS: Final[Mapping[int, str]] = {
    1: "contiguous_format", 2: "channels_last", 3: "channels_last_3d", 4: "preserve_format",
}  # fmt: skip


def read(path: PathLike, model: str = "model") -> Traced:
    """Returns the program in a saved archive.

    Raises ArchiveError, OSError where the file cannot be opened.
    """
    with collector_at_rest():
        return program_of(read_json(path, model), os.fspath(path))


def program_of(data: Mapping[str, Any], path: str = "the archive") -> Traced:
    """Returns the program that the JSON of an archive describes. Raises ArchiveError."""
    try:
        return build(_exported(data))
    except GraphError as error:
        problem = f"{path} has an invalid graph{later_schema(data)}: {error}"
        raise ArchiveError(f"{problem}; export the model again") from None
    except RecursionError:
        raise ArchiveError(f"{path} has a graph that is nested too deeply; export the model again") from None


# ---- JSON as it should be

T = TypeVar("T")


class Malformed(GraphError):
    """Raised for JSON that the schema does not allow."""


def _get(data: Any, key: str, kind: type[T], default: T | None = None) -> T:
    """Returns `data[key]`, which must be of this kind; the default where it is left out or null."""
    if type(data) is not dict:
        raise Malformed(f"an object with {key!r} was expected, not {_shown(data)}")
    value = data.get(key)
    if type(value) is kind:
        return value
    if value is None:
        if default is None:
            raise Malformed(f"{key!r} is missing in {_shown(data)}")
        return default
    return _of(value, kind)


def _of(value: Any, kind: type[T]) -> T:
    if type(value) is not kind:
        raise Malformed(f"a value of the kind {kind.__name__} was expected, not {_shown(value)}")
    return value


def _one(data: Any) -> tuple[str, Any]:
    """Returns the one key of a union that is set, and its value."""
    if type(data) is not dict or len(data) != 1:
        raise Malformed(f"an object with one key was expected, not {_shown(data)}")
    ((key, value),) = data.items()
    return key, value


def _shown(data: Any) -> str:
    if type(data) not in (dict, str, int, float, bool):
        return type(data).__name__
    text = repr([*data][:5] if type(data) is dict else data)
    return text if len(text) <= 80 else text[:77] + "…"


# ---- arguments


def _list(item: Callable[[Any], Operand]) -> Callable[[Any], Operand]:
    return lambda data: tuple(map(item, _of(data, list)))


def _plain(kind: type[bool | int | float | str]) -> Callable[[Any], Operand]:
    return lambda data: _of(data, kind)


def _number(data: Any) -> float:
    """Returns a float, which may be written as `Infinity` or as an integer."""
    if type(data) is int and data.bit_length() <= 1024:
        return float(data)
    if data in ("Infinity", "-Infinity", "NaN"):
        return float(data)
    return _of(data, float)


def _name(data: Any) -> Name:
    return Name(_get(data, "name", str))


def _enum(names: Mapping[int, str]) -> Callable[[Any], Operand]:
    return lambda data: names.get(_of(data, int), "unknown")


def _symbolic(plain: str, item: Callable[[Any], Operand]) -> Callable[[Any], Operand]:
    """Returns the reader of `{"as_name": "add"}`, or of a number under the key `plain`."""

    def read_one(data: Any) -> Operand:
        key, value = _one(data)
        if key == "as_name":
            return Name(_of(value, str))
        if key == plain:
            return item(value)
        raise Malformed(f"{key!r} was not expected")

    return read_one


def _optional(data: Any) -> Operand:
    key, value = _one(data)
    return None if key == "as_none" else _name(value)


def _graph_argument(data: Any) -> Operand:
    return _graph(_get(data, "graph", dict), _get(data, "name", str))


def _complex(data: Any) -> Operand:
    return complex(_number(_get(data, "real", float)), _number(_get(data, "imag", float)))


def _device(data: Any) -> Operand:
    index = data.get("index") if type(data) is dict else None
    return _get(data, "type", str) + (f":{_of(index, int)}" if index is not None else "")


def _mapping(data: Any) -> Operand:
    return tuple((_of(key, str), _operand(value)) for key, value in _of(data, dict).items())


_INT, _FLOAT, _BOOL, _STRING = _plain(int), _number, _plain(bool), _plain(str)
_SYM_INT, _SYM_FLOAT = _symbolic("as_int", _INT), _symbolic("as_float", _FLOAT)
_SYM_BOOL = _symbolic("as_bool", _BOOL)

_KINDS: Final[Mapping[str, Callable[[Any], Operand]]] = {
    "as_none": lambda _: None,
    "as_tensor": _name, "as_tensors": _list(_name), "as_nested_tensors": _list(_list(_name)),
    "as_optional_tensor": _optional, "as_optional_tensors": _list(_optional),
    "as_int": _INT, "as_ints": _list(_INT), "as_int_lists": _list(_list(_INT)),
    "as_float": _FLOAT, "as_floats": _list(_FLOAT), "as_float_lists": _list(_list(_FLOAT)),
    "as_bool": _BOOL, "as_bools": _list(_BOOL),
    "as_string": _STRING, "as_strings": _list(_STRING), "as_operator": _STRING,
    "as_sym_int": _SYM_INT, "as_sym_ints": _list(_SYM_INT),
    "as_sym_float": _SYM_FLOAT, "as_sym_floats": _list(_SYM_FLOAT),
    "as_sym_bool": _SYM_BOOL, "as_sym_bools": _list(_SYM_BOOL),
    "as_scalar_type": _enum(DTYPES), "as_layout": _enum(LAYOUTS), "as_memory_format": _enum(MEMORY_FORMATS),
    "as_device": _device, "as_complex": _complex, "as_graph": _graph_argument,
    "as_string_to_argument": _mapping,
}  # fmt: skip


def _operand(data: Any) -> Operand:
    key, value = _one(data)
    if key == "as_custom_obj":
        raise Malformed(
            f"it uses an object of the class {_get(value, 'class_fqn', str, '?')!r}, which is stored as a"
            " pickle, and no pickle is read"
        )
    kind = _KINDS.get(key)
    if kind is None:
        raise Malformed(f"{key!r} is not a kind of argument of schema {SCHEMA[0]}.{SCHEMA[1]}")
    return kind(value)


# ---- graphs


def _graph(data: Any, name: str = "") -> ExportedGraph:
    return ExportedGraph(
        name,
        tuple(map(_operand, _get(data, "inputs", list))),
        tuple(map(_call, _get(data, "nodes", list))),
        tuple(map(_operand, _get(data, "outputs", list))),
        _types(data),
    )


def _call(data: Any) -> ExportedCall:
    metadata = _get(data, "metadata", dict, {})
    return ExportedCall(
        _get(data, "target", str),
        tuple((_get(i, "name", str, ""), _operand(_get(i, "arg", dict))) for i in _get(data, "inputs", list)),
        tuple(_results(_get(data, "outputs", list))),
        _get(metadata, "stack_trace", str, ""),
        innermost(_get(metadata, "nn_module_stack", str, "")),
    )


def _results(outputs: Iterable[Any]) -> Iterator[str]:
    """Yields the names of results, a list's one after the other; a result that is None or a number has no
    name.
    """
    for data in outputs:
        operand = _operand(data)
        for part in operand if isinstance(operand, tuple) else (operand,):
            yield part.text if isinstance(part, Name) else ""


def _types(data: Any) -> dict[str, Callable[[], Value]]:
    """Returns functions that return the type recorded for each value, since few are ever needed."""
    types: dict[str, Callable[[], Value]] = {}
    for table, read_one in (
        ("tensor_values", _tensor), ("sym_int_values", _sym_int), ("sym_bool_values", _sym_bool),
        ("sym_float_values", lambda _: Number("float")),
    ):  # fmt: skip
        types.update((name, partial(read_one, value)) for name, value in _get(data, table, dict, {}).items())
    return types


def _tensor(data: Any) -> Value:
    """Returns the type of a tensor; Dyn where a size is an expression that is no dim."""
    sizes = tuple(map(_sym_int, _get(data, "sizes", list)))
    strides = tuple(map(_sym_int, _get(data, "strides", list)))
    strided = _get(data, "layout", int) == 7
    return tensor(sizes, DTYPES.get(_get(data, "dtype", int)), strides if strided else None)


def _sym_int(data: Any) -> Dim | Dynamic:
    key, value = _one(data)
    if key == "as_int":
        return _of(value, int)
    try:
        return dim_of(_get(value, "expr_str", str))
    except NotRead:
        return Dyn


def _sym_bool(data: Any) -> Value:
    key, value = _one(data)
    if key == "as_bool":
        return _of(value, bool)
    try:
        return formula_of(_get(value, "expr_str", str))
    except NotRead:
        return Dyn


# ---- the whole


def _exported(data: Mapping[str, Any]) -> ExportedParts:
    module = _get(data, "graph_module", dict)
    written = _get(module, "graph", dict)
    graph = _graph(written)
    signature = _get(module, "signature", dict)
    fields = {
        name: tuple(_of(f, str) for f in _get(entry, "field_names", list))
        for name, entry in _get(module, "treespec_namedtuple_fields", dict, {}).items()
    }
    calls = _get(module, "module_call_graph", list, [])
    call = _get(calls[0], "signature", dict, {}) if calls else {}
    return ExportedParts(
        graph,
        tuple(_given(_get(signature, "input_specs", list), graph, written, call, fields)),
        tuple(_outputs(_get(signature, "output_specs", list), graph, call, fields)),
        {name: _range(bounds) for name, bounds in _get(data, "range_constraints", dict, {}).items()},
        tuple(_of(text, str) for text in _get(data, "guards_code", list, [])),
        release_of(data.get("torch_version")),
        frozenset(_devices(written)),
    )


def _devices(written: Any) -> Iterator[str]:
    """Yields the types of the devices of the tensors of a graph."""
    for data in _get(written, "tensor_values", dict).values():
        device = _get(data, "device", dict, {})
        yield _get(device, "type", str, "cpu")


def _given(
    specs: list[Any], graph: ExportedGraph, written: Any, call: Any, fields: Fields
) -> Iterator[Given]:
    """Yields the inputs of the graph; the tree of arguments gives the paths of the user's."""
    if len(specs) != len(graph.inputs):
        raise Malformed(f"{len(graph.inputs)} inputs have {len(specs)} specs")
    kinds = [_one(spec) for spec in specs]
    users = [index for index, (kind, _) in enumerate(kinds) if kind in _USER]
    paths = dict(zip(users, _user_paths(call, fields, len(users)), strict=False))
    for index, ((kind, body), operand) in enumerate(zip(kinds, graph.inputs, strict=True)):
        user = kind in _USER
        path = paths.get(index) if user else None
        example = tuple(map(_hint, _sizes(written, operand))) if user else ()
        constant = kind in ("buffer", "tensor_constant")
        yield Given(operand, path or (_label(kind, body, operand, index),), user, constant, example)


def _sizes(written: Any, operand: Operand) -> Sequence[Any]:
    """Returns the sizes of an input as written, or its value if it is a number."""
    if not isinstance(operand, Name):
        return ()
    meta = _get(written, "tensor_values", dict).get(operand.text)
    value = _get(written, "sym_int_values", dict, {}).get(operand.text)
    return _get(meta, "sizes", list) if meta is not None else () if value is None else (value,)


def _hint(size: Any) -> int | None:
    """Returns the number that a size was in the example, or None."""
    key, value = _one(size)
    if key == "as_expr" and type(value) is dict and type(value.get("hint")) is dict:
        value = value["hint"].get("as_int")
    return value if type(value) is int else None


_USER: Final = frozenset({"user_input", "constant_input"})
_LABELS: Final[Mapping[str, str]] = {
    "parameter": "parameter_name", "buffer": "buffer_name", "tensor_constant": "tensor_constant_name",
}  # fmt: skip


def _label(kind: str, body: Any, operand: Operand, index: int) -> str:
    if kind in _LABELS:
        return _get(body, _LABELS[kind], str)
    if kind == "constant_input":
        return _get(body, "name", str)
    return operand.text if isinstance(operand, Name) else f"input_{index}"


def _user_paths(call: Any, fields: Fields, count: int) -> Sequence[InputPath]:
    names = [_of(name, str) for name in _get(call, "forward_arg_names", list, [])]
    try:
        paths = argument_paths(_get(call, "in_spec", str, ""), names, fields)
    except NoTree:
        return ()
    return paths if len(paths) == count and len(set(paths)) == count else ()


def _outputs(
    specs: list[Any], graph: ExportedGraph, call: Any, fields: Fields
) -> Iterator[tuple[str, Operand]]:
    """Yields the user's outputs; values written back into buffers are no outputs."""
    if len(specs) != len(graph.outputs):
        raise Malformed(f"{len(graph.outputs)} outputs have {len(specs)} specs")
    kinds = [_one(spec)[0] for spec in specs]
    users = [
        o for kind, o in zip(kinds, graph.outputs, strict=True) if kind in ("user_output", "loss_output")
    ]
    try:
        paths = leaf_paths(_get(call, "out_spec", str, ""), fields)
    except NoTree:
        paths = ()
    names = output_names(paths) if len(paths) == len(users) else [str(i) for i in range(len(users))]
    return iter(zip(names, users, strict=True))


def _range(bounds: Any) -> tuple[int | None, int | None]:
    low, high = (bounds.get("min_val"), bounds.get("max_val")) if type(bounds) is dict else ("", "")
    return (None if low is None else _of(low, int)), (None if high is None else _of(high, int))
