"""Names of torch's operators: overloads and their schemas, kernels, higher-order operators, `vmap`."""

from __future__ import annotations

import functools
import importlib
import numbers
import sys
from collections.abc import Callable, Mapping
from types import BuiltinFunctionType, ModuleType
from typing import Any, Final

import torch
from torch._C import DispatchKey
from torch._functorch import apis
from torch._higher_order_ops import utils
from torch._higher_order_ops.cond import CondOp as CondOp
from torch._higher_order_ops.scan import scan_op
from torch._ops import HigherOrderOperator as HigherOrderOperator
from torch._ops import OpOverload as OpOverload
from torch._ops import OpOverloadPacket as OpOverloadPacket

from ...constraints.ir.opnames import ATEN_DEFAULTS, Default
from ...constraints.ir.release import release_of

INSTALLED: Final = release_of(torch.__version__)
"""The release of torch that runs programs here."""

# ---- overloads

ASSERT_SCALAR: Final = torch.ops.aten._assert_scalar.default
"""The operator by which a graph refuses inputs."""
ASSERT_METADATA: Final = torch.ops.aten._assert_tensor_metadata.default
"""The operator by which a graph refuses dtypes, devices and layouts."""
pad_sequence: Final = torch._C._nn.pad_sequence
"""The operator behind `torch.nn.utils.rnn.pad_sequence`."""


def schema_of(operator: Any) -> Any:
    """The schema of an overload, None of all that has none."""
    return getattr(operator, "_schema", None)


def declared_results(operator: Any) -> tuple[str, ...] | None:
    """Returns the types that the schema of an operator declares for its results; None of what has no schema,
    or several.
    """
    found = _overloads(operator) if isinstance(operator, OpOverload | OpOverloadPacket) else ()
    return tuple(str(result.type) for result in found[0].returns) if len(found) == 1 else None


def misfits(operator: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[str | None]:
    """Returns for each schema, of an overload or of the overloads of a packet, torch's message where it does
    not take values of these types; None, and nothing of those behind it, for the first that does.

    The tensors among the values stand for those of a program by their type alone.
    """
    problems: list[str | None] = []
    for schema in _overloads(operator):
        problems.append(_misfit(schema, args, kwargs))
        if problems[-1] is None:
            break
    return problems


def _overloads(operator: Any) -> list[Any]:
    """Returns the schemas of an overload, or of all overloads of a packet."""
    if isinstance(operator, OpOverload):
        return [operator._schema]
    names: list[str] = operator.overloads()
    return [getattr(operator, name)._schema for name in names]


def _misfit(schema: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
    """Returns torch's message where a schema does not take values of these types, and `READ_AS_TYPE` where it
    takes a number for a dtype, a layout or a memory format.

    Some operators take numbers for tensors, and a list of integers of a declared length (but none of symbolic
    integers) may be given as one number: the check of a schema alone knows neither.
    """
    takes_numbers = torch._C._should_allow_numbers_as_tensors(schema.name.removeprefix("aten::"))
    positional = [a.name for a in schema.arguments if not a.kwarg_only]
    given = dict(zip(positional, args, strict=False)) | dict(kwargs)
    numbers_given = [a for a in schema.arguments if _is_number(given.get(a.name))]
    for argument in numbers_given:
        if takes_numbers and str(argument.type) == "Tensor":
            given[argument.name] = _NUMBER
        elif argument.N is not None and "IntType" in _kinds(argument.real_type):
            given[argument.name] = [given[argument.name]]
    listed = [given[name] for name in positional[: len(args)]]
    try:
        torch._C._check_schema_allow_fake_script_object(
            schema, *listed, *args[len(listed) :], **{name: given[name] for name in kwargs}
        )
    except RuntimeError as error:
        return str(error).partition("\nDeclaration")[0]
    return READ_AS_TYPE if any(str(a.real_type) in _READ_FROM_MEMORY for a in numbers_given) else None


def _kinds(declared: Any) -> tuple[str, ...]:
    """Returns the kinds of a type and of what it is made of: those of `int[2]?` are an optional type, a list
    type and `IntType`.
    """
    kind: str = declared.kind()
    return (kind, *(_kinds(declared.getElementType()) if kind in ("OptionalType", "ListType") else ()))


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Number)


READ_AS_TYPE: Final = "a number is read as a dtype, a layout or a memory format"
"""What stands for a message where torch reads a number as what it may not be."""
_READ_FROM_MEMORY: Final = frozenset(
    "ScalarType Layout MemoryFormat Optional[ScalarType] Optional[Layout] Optional[MemoryFormat]".split()
)
_NUMBER: Final = torch.zeros(())
"""A tensor in place of a number."""


def qualified_name(function: Any) -> str:
    """The name of a packet of overloads with its namespace; "" of all else."""
    name: str = getattr(function, "_qualified_op_name", "")
    return name


@functools.cache
def default_of(function: Any) -> Default | None:
    """Returns the argument by whose default an operator, or a function in C++, differs from Python's function
    of the same name. Losses in C++ reduce nothing unless they are told to, whatever their schema says.
    """
    if isinstance(function, OpOverload | OpOverloadPacket):
        name = function._schema.name if isinstance(function, OpOverload) else qualified_name(function)
        return ATEN_DEFAULTS.get(name.removeprefix("aten::"))
    if type(function) is not BuiltinFunctionType:
        return None
    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{function.__name__}")
    names = [[argument.name for argument in schema.arguments] for schema in schemas]
    places = (listed.index("reduction") for listed in names if "reduction" in listed)
    of_loss = next((Default(place, "reduction", 0) for place in places), None)
    return of_loss or ATEN_DEFAULTS.get(function.__name__)


def home_of(function: Any) -> str:
    """The module of a function; of an operator, the name under which a program finds it."""
    return str(getattr(function, "__module__", "")).replace("torch._ops", "torch.ops", 1)


def is_operator(function: Any) -> bool:
    """Whether it is a function of torch's C code that computes with tensors and has no other effect."""
    if getattr(torch._C._VariableFunctions, getattr(function, "__name__", ""), None) is function:
        return True
    home = getattr(function, "__self__", None)
    return isinstance(home, ModuleType) and home.__name__.startswith(torch._C.__name__ + ".")


def all_operators() -> list[str]:
    """The names of all operators that are registered, each overload's with its namespace."""
    return torch._C._dispatch_get_all_op_names()


# ---- kernels

KEYS_OF_SHAPES: Final = (DispatchKey.CompositeImplicitAutograd, DispatchKey.Autograd, DispatchKey.Meta)
"""The keys of the kernels of a composite operator by which torch finds shapes."""


def forget_kernels(operator: Any) -> None:
    """Makes an overload look up its kernels anew."""
    operator._dispatch_cache.clear()


# ---- higher-order operators

scan: Final[Callable[..., Any]] = scan_op
"""The operator of `scan`."""
COMPILED_CALL: Final = utils, "_hop_compile_and_call"
"""The place of what compiles and calls the function of a higher-order operator that is called eagerly."""
SCAN_OF_BATCHES: Final = (
    importlib.import_module("torch._higher_order_ops.associative_scan"), "generic_associative_scan"
)  # fmt: skip
"""The place of the scan by halves; the module has the name of its function in the package."""


def compiler_is_loaded() -> bool:
    """Whether anything of the process has been compiled."""
    return "torch._dynamo" in sys.modules


def compiler_error(error: BaseException) -> str:
    """The name of an exception of the compiler's, "" of any other."""
    return type(error).__name__ if type(error).__module__ == "torch._dynamo.exc" else ""


# ---- vmap

_vmap: Any = importlib.import_module("torch._functorch.vmap")
mapped_arguments: Final[Callable[..., Any]] = _vmap._process_batched_inputs
"""Of `in_dims`, the arguments and the function of `vmap`: how many rows, the dims, the leaves, the tree."""
mapped_results: Final[Callable[..., Any]] = _vmap._broadcast_to_and_flatten
"""`out_dims` for each leaf of a tree of results; None where they do not fit it."""


def places_of_vmap() -> tuple[tuple[Any, str], ...]:
    """The places that `vmap` stands in."""
    modules = (torch, torch.func, apis)
    return tuple((module, "vmap") for module in modules if getattr(module, "vmap", None) is apis.vmap)
