"""Finds the sizes and numbers that change from example to example: the contract of
`torch.fx.experimental._dynamism`.

The names, arguments and results are torch's. The differences correct errors of torch's: examples are not
changed, and may be lists, tuples or tensors; a value that differs in kind or rank, or is missing in an
example, counts as changing; names and strides are kept.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import torch

from ..host.modules import MODULES, PARAMETERS
from ..host.trees import pytree

Dynamism: TypeAlias = dict[Any, dict[str, tuple[bool, ...]]]
"""By an example's keys: for the path of each value in it, whether each of its sizes changes."""

_ACCESS: Final = re.compile(
    r"""\[(?: '(?:[^'\\]|\\.)*' | "(?:[^"\\]|\\.)*" | [^\]'"] )*\]   # a subscript, whatever is in it
      | \.(?P<name>[a-zA-Z_][a-zA-Z0-9_]*)""",
    re.VERBOSE,
)


def normalize_source_name(name: str) -> str:
    """Returns `L['x']['weight']` for `L['x'].weight`; a dot inside a key (`L['x.y']`) is part of the key."""
    return _ACCESS.sub(lambda found: f"['{found['name']}']" if found["name"] else found[0], name)


def module_to_nested_dict(module: torch.nn.Module) -> dict[str, Any]:
    """Returns the numbers and tensors among a module's public attributes, with those of its children.

    `_parameters` has the parameters and buffers by name, `_modules` a dict like this one per child. Booleans
    do not count as numbers. An attribute that raises when it is read is left out.
    """
    tensors = (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False))
    found: dict[str, Any] = {
        PARAMETERS: dict(tensors),
        MODULES: {name: module_to_nested_dict(child) for name, child in module.named_children()},
    }
    for name in dir(module):
        if not name.startswith("_"):
            for value in _read(module, name):
                if isinstance(value, int | float | torch.Tensor) and not isinstance(value, bool):
                    found[name] = value
    return found


def _read(module: torch.nn.Module, name: str) -> Iterator[Any]:
    """Yields the attribute, or nothing where it cannot be read."""
    try:
        value = getattr(module, name)
    except Exception:  # noqa: BLE001 - a property of the user's may raise anything
        return
    if not callable(value):
        yield value


def track_dynamism_across_examples(example_inputs: Sequence[Any]) -> Dynamism:
    """Returns which sizes of tensors, and which numbers, differ among the examples.

    An example is a dict of inputs (a module under `self` is replaced by its attributes), a list or a tuple of
    them, or one tensor. All sizes of a value change if some example lacks it, or has it in another kind or
    rank.
    """
    examples = [dict(_leaves(example)) for example in example_inputs]
    result: Dynamism = {}
    for path in dict.fromkeys(path for example in examples for path in example):
        seen = [_sizes(example.get(path)) for example in examples]
        if all(kind is None for kind, _ in seen):
            continue
        rank = max(len(sizes) for _, sizes in seen)
        if len({(kind, len(sizes)) for kind, sizes in seen}) > 1:
            changes: tuple[bool, ...] = (True,) * max(rank, 1)
        else:
            changes = tuple(len({sizes[axis] for _, sizes in seen}) > 1 for axis in range(rank))
        name = "L" + "".join(map(str, path))
        result.setdefault(_key(path), {})[name] = changes
    return result


def _leaves(example: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(example, Mapping) and isinstance(example.get("self"), torch.nn.Module):
        example = {**example, "self": module_to_nested_dict(example["self"])}
    leaves, _ = pytree.tree_flatten_with_path(example)
    yield from leaves


def _sizes(value: Any) -> tuple[Any, tuple[Hashable, ...]]:
    """Returns the kind of a value and its sizes; a number is its own size.

    The kind of a value that is not tracked is None.
    """
    if isinstance(value, torch.Tensor):
        return torch.Tensor, tuple(value.shape)
    if isinstance(value, float) and value != value:
        return float, ("nan",)
    return (type(value), (value,)) if isinstance(value, int | float) else (None, ())


def _key(path: tuple[Any, ...]) -> Any:
    """Returns the first step of a path: a dict's key, an index, an attribute; None for an example that is a
    leaf.
    """
    if not path:
        return ""
    return next(getattr(path[0], field) for field in ("key", "idx", "name") if hasattr(path[0], field))


def clone_and_convert_to_meta(example_input: Any) -> Any:
    """Returns the example with each tensor replaced by one of the same sizes, strides and dtype, without
    data.
    """
    return pytree.tree_map_only(torch.Tensor, _meta, example_input)


def _meta(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.layout is not torch.strided or tensor.is_nested or tensor.is_quantized:
        return tensor.detach().to("meta").requires_grad_(tensor.requires_grad)
    clone = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")
    return clone.requires_grad_(tensor.requires_grad)
