"""Tries examples on torch's own kernels for tensors without data, in the process of a check alone.

A program is what somebody has sent, so nothing in it is looked up: its operators are keys of a table that is
made of the names that torch itself registers for ATen, its dtypes and memory formats keys of short tables.
All tensors are on the device `meta`, where there are shapes and no elements, and nothing is computed.
What has no place in the tables is not tried, and the rules of the operators have the say, as they have
without torch.

These kernels check less than those that compute: that they accept a call proves nothing against a refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Final, Protocol

from ....constraints.engine.ruleset import Rules
from ....constraints.ir.language import LOOSE, Ellipses, Slice, Tensor
from ....constraints.ir.opnames import IGNORED, PARAMETERS, SYNONYMS, canonical
from ....constraints.ir.program import Node, Ref
from ....constraints.ir.release import Release
from ....constraints.ir.spec import Spec
from ....constraints.ir.system import Path, System
from ....constraints.terms.dims import Term, evaluate
from ....solver.decide import DomainOracle
from ....tracer.host.operators import all_operators, schema_of
from ....tracer.readers.pt2 import DTYPES, MEMORY_FORMATS
from ...checking.clock import Clock
from ...replay.replay import OF_FAKE_TENSORS, OTHERS, Inconclusive, Outcome, Ran, RunRefused, by_rules

HOW: Final = "on torch's kernels for tensors without data"
LENIENT: Final = "torch's kernels accept it for tensors without data, but check less than real kernels"
CALLS: Final = 50_000
"""This many kernels may be called for all examples of a check. It is a count: time decides no verdict."""
NEVER: Final = frozenset({"from_file", "save"})
"""Of ATen's operators those that reach for more than tensors."""
_PYTHON: Final[Mapping[str, Callable[..., Any]]] = {
    "getitem": lambda tensor, index: tensor[tuple(index) if isinstance(index, list) else index],
}
"""Operators that are Python's, of tensors."""
_UNDONE: Final = (
    *OTHERS, *OF_FAKE_TENSORS, "meta tensor", "overflow", "expected a value of type", "expected at most"
)
"""Words of an error that says nothing of sizes."""


class KernelGraph(Protocol):
    """A program that is given as a graph, with its values at concrete sizes."""

    spec: Spec

    def system(self, rules: Rules, oracle: DomainOracle, clock: Clock) -> tuple[System, list[str]]:
        """See `Source`."""

    def at(self, values: Mapping[str, int]) -> Path | Inconclusive:
        """Returns the path of the program at these sizes, with the results of the rules on it."""


class OnKernels:
    """A source whose examples are tried on kernels."""

    def __init__(self, graph: KernelGraph) -> None:
        self.graph, self.spec, self.left = graph, graph.spec, CALLS
        self.release: Release | None = None
        self.floats = "float32"

    def system(self, rules: Rules, oracle: DomainOracle, clock: Clock) -> tuple[System, list[str]]:
        return self.graph.system(rules, oracle, clock)

    def run(self, values: Mapping[str, int], accepted: bool) -> Outcome:
        """Returns the outcome on kernels at these sizes, or else by the rules, with the reason why no kernel
        was tried.
        """
        path = self.graph.at(values)
        if isinstance(path, Inconclusive):
            return path
        by_rule = by_rules(path)
        found = self._tried(path, values)
        if isinstance(found, Inconclusive):
            if isinstance(by_rule, Inconclusive):
                return by_rule
            return replace(by_rule, how=f"{by_rule.how}; not {HOW}: {found.reason}")
        if isinstance(found, Ran) and not accepted and isinstance(by_rule, RunRefused):
            return Inconclusive(f"{LENIENT}: {by_rule.reason}")
        return found

    def _tried(self, path: Path, sizes: Mapping[str, int]) -> Outcome:
        self.left -= len(path.program.nodes)
        if self.left < 0:
            return Inconclusive(f"it would take more than {CALLS} calls of kernels")
        return by_kernels(path, sizes)


class NotTried(Exception):
    """Raised with the reason why no kernel can be called."""


def by_kernels(path: Path, sizes: Mapping[str, int]) -> Outcome:
    """Calls the kernels of a program at these sizes, node by node; sizes that are computed, the rules say."""
    import torch

    from ....tracer.bytecode.origins import REFUSALS

    if path.program.iterations:
        return Inconclusive("it has a loop")
    with torch.no_grad():
        try:
            values = {given.id: _made(given.type) for given in path.program.inputs}
        except NotTried as reason:
            return Inconclusive(str(reason))
        except REFUSALS as error:
            return Inconclusive(f"an input cannot be made: {_line(error)}")
        try:
            for node in path.program.nodes:
                results = _called(node, values, sizes, path)
                values.update(zip(node.results, results, strict=True))
        except NotTried as reason:
            return Inconclusive(str(reason))
        except NotImplementedError as error:
            return Inconclusive(f"there is no such kernel: {_line(error)}")
        except REFUSALS as error:
            if any(word in str(error).lower() for word in _UNDONE):
                return Inconclusive(f"{node.op}: {_line(error)}")
            return RunRefused(HOW, str(error).strip(), type(error).__name__, node.origin)
    if path.end.how == "raised":
        return RunRefused(HOW, path.end.reason, "", path.end.origin)
    return Ran(HOW)


def _line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")[:200]


# ---- calls


def _called(node: Node, values: Mapping[int, Any], sizes: Mapping[str, int], path: Path) -> Sequence[Any]:
    """The leaves of what a call gives back. Raises NotTried, and what the kernel raises."""
    if node.given:
        raise NotTried(f"{node.op} is called under a condition")
    arguments = {name: _argument(argument, values, sizes) for name, argument in node.args}
    if node.op in _PYTHON:
        try:
            results = [*_leaves(_PYTHON[node.op](*arguments.values()))]
        except TypeError as error:
            raise NotTried(f"{node.op} does not take these arguments: {_line(error)}") from None
    elif node.op in kernels():
        results = [*_leaves(_kernel(node.op, arguments))]
    else:
        results = [path.values[id] for id in node.results]
        if not all(isinstance(result, int | float) for result in results):
            raise NotTried(f"{node.op} is not an operator of ATen")
    if len(results) != len(node.results):
        raise NotTried(f"{node.op} gives {len(results)} values where the program has {len(node.results)}")
    return results


def _kernel(op: str, arguments: Mapping[str, Any]) -> Any:
    for name in kernels()[op]:
        for overload in _overloads(name):
            bound = _bound(schema_of(overload).arguments, op, arguments)
            if bound is not None:
                return overload(**bound)
    raise NotTried(f"no overload of {op} takes {', '.join(arguments)} as they are")


@cache
def kernels() -> Mapping[str, tuple[str, ...]]:
    """Operators, by the names that rules have, and ATen's names for each: its own comes first."""

    all_names = all_operators()
    aten = {name.removeprefix("aten::").partition(".")[0] for name in all_names if name.startswith("aten::")}
    found: dict[str, list[str]] = {}
    for name in sorted(aten - NEVER):
        found.setdefault(canonical(f"aten.{name}"), []).append(name)
    return {op: tuple(sorted(names, key=lambda name: name != op)) for op, names in found.items()}


@cache
def _overloads(name: str) -> tuple[Any, ...]:
    """The overloads of an operator of the table."""
    import torch

    packet = getattr(torch.ops.aten, name, None)
    return () if packet is None else tuple(getattr(packet, one) for one in packet.overloads())


def _bound(parameters: Sequence[Any], op: str, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    """The arguments by the overload's names; None where it takes others."""
    renamed: Mapping[str, str] = PARAMETERS.get(op, {})
    left = {_name(name, renamed): value for name, value in arguments.items()}
    bound: dict[str, Any] = {}
    for parameter in parameters:
        name, kind = parameter.name, str(parameter.real_type)
        value = left.pop(_name(name, renamed), None)
        if name == "device":
            bound[name] = "meta"
        elif name not in _PASSED_OVER and not (value is None and parameter.has_default_value()):
            bound[name] = _fitting(kind, value, parameter.N or 1)
            if bound[name] is None and (value is not None or not kind.startswith("Optional[")):
                return None
    return None if left.keys() - IGNORED else bound


_PASSED_OVER: Final = frozenset({"layout", "pin_memory"})
"""Parameters that have no effect here, since all tensors are strided and on one device."""


def _name(name: str, renamed: Mapping[str, str]) -> str:
    """One name for a parameter, whether it is ATen's, the rule's or another that torch has."""
    name = renamed.get(name, name)
    return SYNONYMS.get(name, name)


def _fitting(kind: str, value: Any, length: int = 1) -> Any:
    """Returns the value as a parameter of this kind takes it; None where it does not. One number is repeated
    where the parameter is a list of so many (`int[2]`).
    """
    kind = kind.removeprefix("Optional[").removesuffix("]") if kind.startswith("Optional[") else kind
    if kind.startswith("List["):
        inner = kind[5:-1]
        if not isinstance(value, list):
            one = _fitting(inner, value) if inner in ("int", "float") else None
            return None if one is None else [one] * length
        parts = [_fitting(inner, part) for part in value]
        fits = all(f is not None or p is None for f, p in zip(parts, value, strict=True))
        return parts if fits and (None not in parts or inner.startswith("Optional[")) else None
    if kind in ("ScalarType", "MemoryFormat"):
        return _named().get(value) if isinstance(value, str) else None
    return value if kind in _KINDS and _KINDS[kind](value) else None


def _is_tensor(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


_KINDS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "Tensor": _is_tensor,
    "int": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "float": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "bool": lambda value: isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float | complex),
    "str": lambda value: isinstance(value, str),
}


# ---- values


@cache
def _named() -> Mapping[str, Any]:
    """dtypes and memory formats by name."""
    import torch

    names = (*DTYPES.values(), *MEMORY_FORMATS.values())
    return {name: getattr(torch, name) for name in names if hasattr(torch, name)}


def _made(value: Any) -> Any:
    """An input at concrete sizes. Raises NotTried."""
    import torch

    match value:
        case None | bool() | int() | float() | str():
            return value
        case tuple():
            return [_made(part) for part in value]
        case Tensor(shape, dtype, layout):
            named = _named().get(dtype or "float32")
            if named is None or layout in LOOSE or not all(isinstance(d, int) for d in shape):
                raise NotTried(f"the memory layout of {value} is not known")
            if isinstance(layout, tuple):
                return torch.empty_strided(shape, layout, dtype=named, device="meta")  # type: ignore[arg-type]
            return torch.empty(shape, dtype=named, device="meta")  # type: ignore[arg-type]
    raise NotTried(f"only {value} is known of an input")


def _argument(argument: Any, values: Mapping[int, Any], sizes: Mapping[str, int]) -> Any:
    """Returns an argument with its references and sizes replaced by their values. Raises NotTried."""
    match argument:
        case Ref(id):
            return values[id]
        case Term():
            return _size(argument, sizes)
        case tuple():
            return [_argument(part, values, sizes) for part in argument]
        case Slice(start, stop, step):
            return slice(*(_argument(part, values, sizes) for part in (start, stop, step)))
        case Ellipses():
            return ...
        case None | bool() | int() | float() | complex() | str():
            return argument
    raise NotTried(f"the argument {argument} is not known")


def _size(dim: Term, sizes: Mapping[str, int]) -> int:
    """Raises NotTried where the sizes of the inputs do not say it."""
    try:
        return evaluate(dim, sizes)
    except (KeyError, ZeroDivisionError):
        raise NotTried(f"the size {dim} is not known") from None


def _leaves(value: Any) -> Iterator[Any]:
    """The values that a call gives back, from left to right."""
    if isinstance(value, tuple | list):
        for part in value:
            yield from _leaves(part)
    else:
        yield value
