"""The paths of the leaves of nested arguments and results, read from torch's text form of such trees."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ...constraints.ir.spec import InputPath, Step

MAX_DEPTH: Final = 50
MAX_LENGTH: Final = 1 << 24

Fields = Mapping[str, Sequence[str]]
"""The field names of named tuples, by the name under which their type is registered."""


class NoTree(ValueError):
    """Raised for a text that is no tree, or one whose leaves have no names."""


def leaf_paths(text: str, fields: Fields) -> tuple[InputPath, ...]:
    """Returns the path of every leaf, from left to right. Raises NoTree."""
    return tuple(_paths(_root(text), fields, ()))


def argument_paths(text: str, names: Sequence[str], fields: Fields) -> tuple[InputPath, ...]:
    """Returns the path of every leaf of `(args, kwargs)`; `names` are those of the arguments.

    Raises NoTree.
    """
    children = _children(_root(text))
    if len(children) != 2:
        raise NoTree("a pair of arguments and keyword arguments was expected")
    args, kwargs = children
    positional = _children(args)
    keywords = _steps(kwargs, fields)
    if len(names) < len(positional) or len(set(names)) != len(names):
        raise NoTree("the arguments have no names")
    parts = [*zip(names, positional, strict=False), *zip(keywords, _children(kwargs), strict=True)]
    return tuple(path for step, child in parts for path in _paths(child, fields, (step,)))


def _root(text: str) -> Any:
    if len(text) > MAX_LENGTH:
        raise NoTree(f"a tree of {len(text)} characters")
    try:
        match json.loads(text):
            case [1, dict(root)]:
                return root
    except (ValueError, RecursionError):
        pass
    raise NoTree("not a tree of version 1")


def _paths(tree: Any, fields: Fields, before: InputPath) -> Iterator[InputPath]:
    if len(before) > MAX_DEPTH:
        raise NoTree(f"more than {MAX_DEPTH} levels")
    if isinstance(tree, dict) and tree.get("type") is None:
        yield before
        return
    for step, child in zip(_steps(tree, fields), _children(tree), strict=True):
        yield from _paths(child, fields, (*before, step))


def _children(tree: Any) -> list[Any]:
    children = tree.get("children_spec") if isinstance(tree, dict) else None
    if not isinstance(children, list):
        raise NoTree("a node without children")
    return children


def _steps(tree: Any, fields: Fields) -> list[Step]:
    """Returns the keys of a dict, the fields of a named tuple or dataclass, or positions."""
    count = len(_children(tree))
    context = tree.get("context")
    keys: Any = None
    if tree.get("type") == "collections.namedtuple" and isinstance(context, str):
        keys = fields.get(context)
    elif isinstance(context, str):
        try:
            keys = json.loads(context)
        except (ValueError, RecursionError):
            keys = None
    if isinstance(keys, dict):  # a defaultdict
        keys = keys.get("dict_context")
    if isinstance(keys, list) and len(keys) == 2 and isinstance(keys[0], list):  # a dataclass
        keys = keys[0]
    named = isinstance(keys, list | tuple) and all(type(key) in (str, int) for key in keys)
    return list(keys) if named and len(keys) == len(set(keys)) == count else list(range(count))


def output_names(paths: Sequence[InputPath]) -> list[str]:
    """Returns the names of results: `logits`, `0`, `hidden[1]`, and `output` where there is only one."""
    return [_output_name(path) for path in paths]


def _output_name(path: InputPath) -> str:
    head, *rest = path or ("output",)
    return str(head) + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in rest)
