"""A live `torch.export.ExportedProgram`, before or after `run_decompositions()`.

The fx graph is read directly, into the same description that `pt2.py` reads from JSON. The alternative, to
serialise in memory and read the JSON, takes seconds for a large model, refuses programs that cannot be saved
(containers that are not registered) and stands on torch's private serialiser. Only names, arguments and fake
tensors are read here: no weight is touched.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, InputSpec, OutputKind

from ...constraints.ir.language import Dyn, Dynamic, Number, Tensor, Value
from ...constraints.ir.spec import InputPath
from ...constraints.terms.dims import Dim
from ..host.exports import guards_of
from ..host.operators import INSTALLED, OpOverload, home_of, schema_of
from ..host.trees import pytree
from ..values.real_tensors import dtype_name
from .exported import (
    ExportedCall,
    ExportedGraph,
    ExportedParts,
    Given,
    GraphError,
    Name,
    Operand,
    build,
    tensor,
)
from .expressions import NotRead, dim_of, formula_of
from .graph import Traced
from .trees import NoTree, argument_paths, leaf_paths, output_names

USER_OUTPUTS = frozenset({OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT})


def read(program: ExportedProgram) -> Traced:
    """Returns the program that was exported. Raises GraphError where its graph is damaged."""
    graph = _GraphReader(program.graph_module).graph("")
    signature = program.graph_signature
    if len(signature.input_specs) != len(graph.inputs) or len(signature.output_specs) != len(graph.outputs):
        raise GraphError("the signature of the exported program does not fit its graph")
    placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
    outputs = zip(signature.output_specs, graph.outputs, strict=True)
    users = [operand for spec, operand in outputs if spec.kind in USER_OUTPUTS]
    return build(
        ExportedParts(
            graph,
            tuple(_given(program, graph, [node.meta.get("val") for node in placeholders])),
            tuple(zip(_output_names(program, len(users)), users, strict=True)),
            {str(term): (_bound(r.lower), _bound(r.upper)) for term, r in program.range_constraints.items()},
            guards_of(program),
            INSTALLED,
            frozenset(_devices(program)),
        )
    )


def _devices(program: ExportedProgram) -> Iterator[str]:
    """Yields the types of the devices of the tensors of a program."""
    for node in program.graph.nodes:
        if isinstance(value := node.meta.get("val"), torch.Tensor):
            yield value.device.type


# ---- the signature


def _given(program: ExportedProgram, graph: ExportedGraph, values: list[Any]) -> Iterator[Given]:
    specs = program.graph_signature.input_specs
    users = [index for index, spec in enumerate(specs) if spec.kind is InputKind.USER_INPUT]
    paths = dict(zip(users, _user_paths(program, len(users)), strict=False))
    for index, (spec, operand, value) in enumerate(zip(specs, graph.inputs, values, strict=True)):
        user = spec.kind is InputKind.USER_INPUT
        if isinstance(spec.arg, ConstantArgument):
            operand = spec.arg.value  # the placeholder stays in the graph, and nothing uses it
        path = paths.get(index) or (_label(spec),)
        constant = spec.kind in (InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
        yield Given(operand, path, user, constant, _example(value) if user else ())


def _label(spec: InputSpec) -> str:
    return spec.target if spec.kind is not InputKind.USER_INPUT and spec.target else spec.arg.name


def _user_paths(program: ExportedProgram, count: int) -> tuple[InputPath, ...]:
    call = program.module_call_graph[0].signature if program.module_call_graph else None
    names = (call.forward_arg_names if call else None) or []
    try:
        paths = argument_paths(*_tree(program.call_spec.in_spec, names))
    except NoTree:
        return ()
    return paths if len(paths) == count and len(set(paths)) == count else ()


def _output_names(program: ExportedProgram, count: int) -> list[str]:
    try:
        text, _, fields = _tree(program.call_spec.out_spec, [])
        names = output_names(leaf_paths(text, fields))
    except NoTree:
        names = []
    return names if len(names) == count else [str(index) for index in range(count)]


def _tree(spec: Any, names: list[str]) -> tuple[str, list[str], dict[str, tuple[str, ...]]]:
    """Returns a tree of arguments in the text form that archives have, too."""
    if spec is None:
        raise NoTree("no tree")
    fields: dict[str, tuple[str, ...]] = {}
    nodes = [spec]
    while nodes:
        node = nodes.pop()
        if pytree.is_namedtuple_class(node.context) and node.context in pytree.SUPPORTED_SERIALIZED_TYPES:
            registered = pytree.SUPPORTED_SERIALIZED_TYPES[node.context]
            fields[registered.serialized_type_name] = tuple(node.context._fields)
        nodes.extend(node.children())
    try:
        return pytree.treespec_dumps(spec, 1), names, fields
    except (NotImplementedError, TypeError) as error:
        raise NoTree(str(error)) from None


def _example(value: Any) -> tuple[int | None, ...]:
    """Returns the sizes that an input had in the example, or its value."""
    sizes = value.shape if isinstance(value, torch.Tensor) else (value,)
    return tuple(_hint(size) for size in sizes)


def _hint(size: Any) -> int | None:
    if isinstance(size, torch.SymInt):
        hint = size.node.hint
        return int(hint) if hint is not None else None
    return size if type(size) is int else None


def _bound(bound: Any) -> int | None:
    """Returns the bound as an integer; None where there is no bound."""
    return int(bound) if isinstance(bound, int | sympy.Integer) else None


# ---- values


def _value(value: Any) -> Value:
    """Returns the type that the trace recorded for a value."""
    if isinstance(value, torch.Tensor):
        strided = value.layout is torch.strided
        strides = tuple(map(_size, value.stride())) if strided else None
        return tensor(tuple(map(_size, value.shape)), dtype_name(value.dtype), strides)
    if isinstance(value, torch.SymBool):
        return _formula(value)
    if isinstance(value, torch.SymFloat | float):
        return Number("float")
    return _size(value) if isinstance(value, torch.SymInt | int) else Dyn


def _size(size: Any) -> Dim | Dynamic:
    if isinstance(size, int):
        return size
    try:
        return dim_of(sympy.srepr(size.node.expr))
    except NotRead:
        return Dyn


def _formula(value: torch.SymBool) -> Value:
    try:
        return formula_of(sympy.srepr(value.node.expr))
    except NotRead:
        return Dyn


# ---- the graph


class _GraphReader:
    """Reads one graph module. A reader of its own reads each graph that an operator runs."""

    def __init__(self, module: torch.fx.GraphModule) -> None:
        self.module = module
        self.types: dict[str, Callable[[], Value]] = {}
        self._names: dict[str, Operand] = {}
        """The operand for each fx node: its own name, a result of another node, or a constant."""

    def graph(self, name: str) -> ExportedGraph:
        inputs: list[Operand] = []
        calls: list[ExportedCall] = []
        outputs: tuple[Operand, ...] = ()
        for node in self.module.graph.nodes:
            if node.op == "placeholder":
                self._made(node.name, node.meta.get("val"))
                inputs.append(Name(node.name))
            elif node.op == "get_attr":
                self._names[node.name] = self._attribute(node.target)
            elif node.op == "output":
                found = self._operand(node.args[0])
                outputs = found if isinstance(found, tuple) else (found,)
            elif node.op != "call_function":
                raise GraphError(f"the graph has a node of the kind {node.op}")
            elif node.target is not operator.getitem or not self._is_result(node):
                calls.append(self._call(node))
        return ExportedGraph(name, tuple(inputs), tuple(calls), outputs, self.types)

    def _made(self, name: str, value: Any) -> str:
        self._names[name] = Name(name)
        self.types[name] = partial(_value, value)
        return name

    def _is_result(self, node: torch.fx.Node) -> bool:
        """Returns whether the node is `results[i]`, which was handled together with the call that returns the
        results.
        """
        return node.name in self._names

    def _attribute(self, target: Any) -> Operand:
        value: Any = self.module
        for part in str(target).split("."):
            value = getattr(value, part)
        if isinstance(value, torch.fx.GraphModule):
            return _GraphReader(value).graph(str(target))
        known = _value(value)
        return known if isinstance(known, Tensor) else str(target)

    def _call(self, node: torch.fx.Node) -> ExportedCall:
        modules = [str(path) for path, _ in (node.meta.get("nn_module_stack") or {}).values()]
        return ExportedCall(
            _target(node.target),
            tuple(self._operands(node)),
            tuple(self._results(node)),
            node.meta.get("stack_trace") or "",
            modules[-1] if modules else "",
        )

    def _operands(self, node: torch.fx.Node) -> Iterator[tuple[str, Operand]]:
        """Yields the operands; those of an operator with a schema by its names, in its order."""
        if not isinstance(node.target, OpOverload):
            yield from (("", self._operand(arg)) for arg in node.args)
            yield from ((name, self._operand(arg)) for name, arg in node.kwargs.items())
            return
        for index, declared in enumerate(schema_of(node.target).arguments):
            if declared.name in node.kwargs:
                yield declared.name, self._operand(node.kwargs[declared.name])
            elif not declared.kwarg_only and index < len(node.args):
                yield declared.name, self._operand(node.args[index])

    def _results(self, node: torch.fx.Node) -> Iterator[str]:
        """Yields the names of the leaves of a result; for several, those of the `getitem` that takes each."""
        value = node.meta.get("val")
        if isinstance(node.target, OpOverload) and not schema_of(node.target).returns:
            return
        yield from self._leaves(node, value, node.name)

    def _leaves(self, node: torch.fx.Node | None, value: Any, name: str) -> Iterator[str]:
        if isinstance(value, list | tuple):
            taken: dict[Any, list[torch.fx.Node]] = {}
            for user in node.users if node is not None else ():
                if user.target is operator.getitem:
                    taken.setdefault(user.args[1], []).append(user)
            for index, part in enumerate(value):
                first, *others = taken.get(index, [None])
                part_name = first.name if first is not None else f"{name}_unused_{index}"
                if first is not None and isinstance(part, list | tuple):
                    self._names[first.name] = ()
                yield from self._leaves(first, part, part_name)
                for other in others:
                    if other is not None:
                        self._names[other.name] = self._names[part_name]
        elif value is None:
            if node is not None:
                self._names[node.name] = None
            yield ""
        else:
            yield self._made(name, value)

    def _operand(self, arg: Any) -> Operand:
        if isinstance(arg, torch.fx.Node):
            if arg.name not in self._names:
                raise GraphError(f"the graph uses {arg.name!r} before it is made")
            return self._names[arg.name]
        if isinstance(arg, list | tuple):
            return tuple(map(self._operand, arg))
        if isinstance(arg, dict):
            return tuple((str(key), self._operand(value)) for key, value in arg.items())
        if arg is None or type(arg) in (bool, int, float, complex, str):
            return arg  # type: ignore[no-any-return]
        if isinstance(arg, torch.dtype | torch.layout | torch.memory_format):
            return str(arg).removeprefix("torch.")
        return _target(arg) if callable(arg) else str(arg)


def _target(target: Any) -> str:
    """Returns the name of a target: `torch.ops.aten.conv2d.default`, `_operator.floordiv`."""
    if isinstance(target, str):
        return target
    module = home_of(target)
    return f"{module}.{getattr(target, '__name__', target)}"
