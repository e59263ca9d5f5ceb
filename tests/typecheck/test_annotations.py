"""Annotations in jaxtyping's notation are specs, with and without jaxtyping."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Optional

import pytest

from anyshape.constraints.spec_text import SpecError, parse_spec
from anyshape.typecheck.annotations import spec_of
from anyshape.typecheck.target import TargetError


class FloatBCHW:
    """What `Float[Tensor, "b 3 h w"]` of jaxtyping looks like."""

    dim_str = "b 3 h w"
    dtypes: Any = ("float8_e4m3b11fnuz", "bfloat16", "float16", "float32", "float64")


class IntOne(FloatBCHW):
    dim_str = "b"
    dtypes = ("int32", "int64")


class UInt8Scalar(FloatBCHW):
    dim_str = ""
    dtypes = ("uint8",)


class ShapedAny(FloatBCHW):
    dim_str = "rows=4 _ 2*h"
    dtypes = object()  # jaxtyping marks "any dtype" with an object of its own


def function(**annotations: Any) -> Callable[..., None]:
    """A function with these annotations, as objects or as texts."""

    def target(x: Any) -> None: ...

    target.__annotations__ = annotations
    return target


READ = {
    'Float[Tensor, "b 3 h w"]': "x: float32[b, 3, h, w]",
    "jaxtyping.Float[torch.Tensor, 'b  c']": "x: float32[b, c]",
    'Int[Tensor, ""]': "x: int64[]",
    'Float16[Tensor, "b"]': "x: float16[b]",
    'BFloat16[Tensor, "b"]': "x: bfloat16[b]",
    'Bool[Tensor, "b rows=4 _ 2*h h-1"]': "x: bool[b, 4, ?, 2*h, h-1]",
    'Optional[Float[Tensor, "b"]]': "x: float32[b]",
    "int": "x: int",
    FloatBCHW: "x: float32[b, 3, h, w]",
    FloatBCHW | None: "x: float32[b, 3, h, w]",
    Optional[IntOne]: "x: int64[b]",  # noqa: UP045
    Annotated[IntOne, "note"]: "x: int64[b]",
    UInt8Scalar: "x: uint8[]",
    ShapedAny: "x: float32[4, ?, 2*h]",
    float: "x: float",
}


@pytest.mark.parametrize("annotation", READ, ids=str)
def test_reads(annotation: Any) -> None:
    (line,) = spec_of(function(x=annotation))
    assert line == READ[annotation]
    parse_spec(line)


REFUSED: dict[Any, tuple[type[Exception], str]] = {
    "Tensor": (TargetError, "'x'"),
    Any: (TargetError, "says no shape"),
    'Float[Tensor, "#b c"]': (SpecError, "broadcasts"),
    'Quux[Tensor, "b c"]': (SpecError, "Quux"),
}


@pytest.mark.parametrize("annotation", REFUSED, ids=str)
def test_refuses(annotation: Any) -> None:
    kind, part = REFUSED[annotation]
    with pytest.raises(kind, match=part):
        spec_of(function(x=annotation))


@pytest.mark.parametrize("dims, name", [("*batch c", "batch"), ("... c", "x")])
def test_any_number_of_dims(dims: str, name: str) -> None:
    spec = parse_spec(spec_of(function(x=f'Float[Tensor, "{dims}"]')))
    assert str(spec.inputs[0].type) == f"float32[*{name}, c]"
    assert spec.domain.rows == (name,)


def test_defaults_and_the_rest_are_left_alone() -> None:
    def target(n: int, *rest: Any, k: int = 3, mask: Any = None, **more: Any) -> None: ...

    assert spec_of(target) == ["n: int"]


def test_a_module_is_read_at_its_forward() -> None:
    class Model:
        def forward(self, x: int) -> None: ...

        def __call__(self, *args: Any) -> None: ...

    assert spec_of(Model()) == ["x: int"]


def test_unreadable_parameters_are_told() -> None:
    with pytest.raises(TargetError, match="cannot be read"):
        spec_of(type)
