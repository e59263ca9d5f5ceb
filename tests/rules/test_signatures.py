"""Every call that torch's own signatures allow binds to a rule: ATen's schemas, whose names graphs use, the
stubs of torch's functions and methods in C++, and the signatures of those in Python.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.functional
import torch.nn.functional as F

from anyshape.constraints.engine.ruleset import BadCall
from anyshape.constraints.ir.opnames import ALIASES, ATEN_ONLY, PARAMETERS, canonical, parameters
from anyshape.constraints.rules import default_rules


@dataclass(frozen=True)
class Signature:
    """One overload: the names of its parameters, those that may be given by position first."""

    positional: tuple[str, ...]
    by_name: tuple[str, ...] = ()
    required: frozenset[str] = frozenset()
    many: bool = False
    """Takes any number of positional arguments more, as `permute(*dims)` does; names are of no use there."""


def rule_of(name: str) -> str | None:
    """The rule that a canonical name goes to."""
    return next((n for n in (name, name.removesuffix("_")) if n in default_rules), None)


# --- ATen ------------------------------------------------------------------------------------------------

NO_SIGNATURE = {
    "_scaled_dot_product_flash_attention.quantized": "of float8, for which GPUs alone have kernels",
    "normal.out": "its functional form is normal_functional, not normal",
}
"""Overloads that are other operators."""


def overloads() -> Iterator[tuple[str, Signature]]:
    """ATen's overloads on tensors, but for named dimensions; results that are given do not count."""
    dispatched = set(torch._C._dispatch_get_all_op_names())  # the others are TorchScript's own
    for schema in torch._C._jit_get_all_schemas():
        op = schema.name.removeprefix("aten::")
        name = f"{op}.{schema.overload_name}" if schema.overload_name else op
        if op == schema.name or f"aten::{name}" not in dispatched or name in NO_SIGNATURE:
            continue
        types = [a.type.str() for a in (*schema.arguments, *schema.returns)]
        if any("Tensor" in kind for kind in types) and "name" not in schema.overload_name:
            given = [a for a in schema.arguments if not a.is_out]
            yield name, Signature(
                tuple(a.name for a in given if not a.kwarg_only),
                tuple(a.name for a in given if a.kwarg_only),
                frozenset(a.name for a in given if not a.has_default_value()),
            )


def aten() -> Iterator[tuple[str, str, Signature]]:
    for name, signature in overloads():
        if (rule := rule_of(canonical(f"aten.{name}"))) is not None:
            yield f"aten.{name}", rule, signature


def prims() -> Iterator[tuple[str, str, Signature]]:
    """torch's primitives, which are registered in Python."""
    for name in dir(torch.ops.prims):
        for overload in getattr(getattr(torch.ops.prims, name), "overloads", list)():
            schema = getattr(getattr(torch.ops.prims, name), overload)._schema
            if (rule := rule_of(canonical(f"prims.{name}.{overload}"))) is not None:
                yield f"prims.{name}", rule, Signature(
                    tuple(a.name for a in schema.arguments if not a.kwarg_only),
                    tuple(a.name for a in schema.arguments if a.kwarg_only),
                    frozenset(a.name for a in schema.arguments if not a.has_default_value()),
                )


# --- stubs -----------------------------------------------------------------------------------------------

STUBS = {"_C/_VariableFunctions.pyi": "", "_C/_nn.pyi": "", "_C/__init__.pyi": "TensorBase"}
"""torch's stub files, with the class whose methods are looked at."""

WRONG_STUBS = {
    "_scaled_dot_product_flash_attention": "one overload is for float8 on GPUs",
    "_softmax_backward_data": "`out` goes by the name grad_input",
    "as_tensor": "all but the data go by name",
    "cpu": "the memory format goes by name",
    "linspace": "steps cannot be left out",
    "logspace": "steps cannot be left out",
    "map_": "it applies a Python function to elements, and has nothing to do with the operator map",
    "new": "it is a method of tensors, not of their class",
    "new_tensor": "all but the data go by name",
    "random_": "`from` is written `from_`, being a word of Python's",
    "requires_grad_": "the parameter is requires_grad",
    "tensor": "all but the data go by name",
    "uniform_": "`from` is written `from_`, being a word of Python's",
}
"""Stubs that say otherwise than torch does, or stand for another operator."""


def stubs() -> Iterator[tuple[str, str, Signature]]:
    for file, owner in STUBS.items():
        body = ast.parse((Path(torch.__file__).parent / file).read_text()).body
        if owner:
            body = next(d for d in body if isinstance(d, ast.ClassDef) and d.name == owner).body
        for index, definition in enumerate(body):
            if isinstance(definition, ast.FunctionDef) and not is_left_out(definition):
                # Functions are ATen's; a method may be that of torch.Tensor in Python, of the same name.
                name = definition.name if owner else f"aten.{definition.name}"
                if (rule := rule_of(canonical(name))) is not None:
                    yield f"{file}:{index}:{definition.name}", rule, declared(definition.args)


def is_left_out(definition: ast.FunctionDef) -> bool:
    """Returns whether the stub is wrong, or that of an overload for dims with names, which 2.12 still has."""
    return definition.name in WRONG_STUBS or "EllipsisType" in ast.unparse(definition.args)


def declared(arguments: ast.arguments) -> Signature:
    positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    required = positional[: len(positional) - len(arguments.defaults)]
    named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    required += [a.arg for a, default in named if default is None]
    by_name = tuple(a.arg for a in arguments.kwonlyargs)
    many = arguments.vararg is not None and arguments.vararg.arg != "args"
    return Signature(tuple(positional), by_name, frozenset(required), many)


# --- Python ----------------------------------------------------------------------------------------------

PREFIXES = {F: "", torch.functional: "", torch.Tensor: ""}
NOT_OPERATORS = {"Tensor.index": "a method of TorchScript's lists"}


def pythonic() -> Iterator[tuple[str, str, Signature]]:
    for owner, prefix in PREFIXES.items():
        for name, function in vars(owner).items():
            label = f"{owner.__name__}.{name}"
            if inspect.isfunction(function) and label not in NOT_OPERATORS:
                for rule in (rule_of(canonical(prefix + name)), rule_of(name.removesuffix("_with_indices"))):
                    if rule is not None and (signature := _of_python(function)) is not None:
                        yield f"{label} as {rule}", rule, signature


def _of_python(function: Any) -> Signature | None:
    """None of a function that says nothing of its parameters."""
    given = inspect.signature(function, follow_wrapped=False).parameters.values()
    if any(p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in given):
        return None
    return Signature(
        tuple(p.name for p in given if p.kind is not p.KEYWORD_ONLY),
        tuple(p.name for p in given if p.kind is p.KEYWORD_ONLY),
        frozenset(p.name for p in given if p.default is p.empty),
    )


# --- the laws --------------------------------------------------------------------------------------------


class Anything(tuple[Any, ...]):
    """A value that a rule's signature takes anywhere."""


def misfits(rule: str, signature: Signature) -> Iterator[str]:
    """What is wrong with calls of this signature: by name with and without defaults, and by position."""
    everything = (*signature.positional, *signature.by_name)
    needed = [name for name in everything if name in signature.required]
    also = {name: Anything() for name in signature.by_name if name in signature.required}
    positional = tuple(Anything() for _ in signature.positional) + (0, 1) * signature.many
    calls: list[tuple[tuple[Any, ...], Iterable[str]]] = [((), everything), ((), needed), (positional, also)]
    for arguments, names in calls[2:] if signature.many else calls:
        try:
            given = parameters(rule, dict.fromkeys(names, Anything()))
            default_rules[rule].bind(arguments, given)
        except BadCall as error:
            yield str(error)


@pytest.mark.parametrize("source, least", [(aten, 1700), (prims, 110), (stubs, 1300), (pythonic, 80)])
def test_signatures_bind(source: Any, least: int) -> None:
    found = list(source())
    assert len(found) > least
    wrong = {label: told for label, rule, signature in found if (told := list(misfits(rule, signature)))}
    assert wrong == {}


def test_exemptions_are_needed() -> None:
    assert NO_SIGNATURE.keys() <= {
        f"{s.name.removeprefix('aten::')}.{s.overload_name}" for s in torch._C._jit_get_all_schemas()
    }
    stubbed = (Path(torch.__file__).parent / file for file in STUBS)
    texts = "".join(path.read_text() for path in stubbed)
    assert all(f"def {name}(" in texts for name in WRONG_STUBS)


def test_the_table_of_parameters_says_something_of_each_rule() -> None:
    """Each name on the right is a parameter of the rule, and none on the left is."""
    for op, names in PARAMETERS.items():
        keywords = default_rules[op].keywords
        assert set(names.values()) <= keywords, op
        assert not names.keys() & keywords, op
        assert op not in ALIASES


def test_atens_own_names_have_rules() -> None:
    assert set(ATEN_ONLY.values()) <= default_rules.keys()


@pytest.mark.parametrize(
    "signature",
    [
        Signature((), ("input", "dimension"), frozenset(("input", "dimension"))),
        Signature(("a",) * 9),
        Signature(("dim",), required=frozenset(("dim",))),
    ],
)
def test_a_call_that_does_not_bind_is_noticed(signature: Signature) -> None:
    """The oracle can fail: at an unknown name, at too many arguments, at one that is missing."""
    assert list(misfits("softmax", signature))
