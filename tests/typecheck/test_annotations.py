"""Annotations in jaxtyping's notation are specs, with and without jaxtyping."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Optional

import pytest
from torch import Tensor

from anyshape.constraints.ir.spec_text import SpecError, parse_spec
from anyshape.typecheck import check
from anyshape.typecheck.targets.annotations import spec_of
from anyshape.typecheck.targets.target_error import TargetError


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
    'Float[Tensor, "_n c"] | None': "x: float32[?, c]",
    'Float[Tensor, "*_ c"]': "x: float32[..., c]",
    'Float[Tensor, "*_b c"]': "x: float32[..., c]",
    'Float[Tensor, "_*b c"]': "x: float32[..., c]",
    'Float[Tensor, "... c"]': "x: float32[..., c]",
    'Float[Tensor, "rows=_ cols=n"]': "x: float32[?, n]",
    'Float[Tensor, "n+1 min(n,4)"]': "x: float32[n+1, min(n,4)]",
    'Annotated[Float[Tensor, "b"], "c d"]': "x: float32[b]",
    'Union[Float[Tensor, "b"], None]': "x: float32[b]",
    'Float[Float[Tensor, "h w"], "b"]': "x: float32[b, h, w]",
    'Shaped[Int[Tensor, "h w"], "b"]': "x: int64[b, h, w]",
    'Float[FloatBCHW, "t"]': "x: float32[t, b, 3, h, w]",
    'Float[Tensor, "#b c"]': "x: float32[b, c]",
    'Float[Tensor, "*#b c"]': "x: float32[*b, c]",
    'Shaped[Tensor, "b"]': "x: float32[b]",
    'Integer[Tensor, "b"]': "x: int64[b]",
    'UInt[Tensor, "b"]': "x: uint8[b]",
    'UInt16[Tensor, "b"]': "x: uint16[b]",
    'Int8[Tensor, "b"]': "x: int8[b]",
    'Complex[Tensor, "b"]': "x: complex64[b]",
    'Annotated[Tensor, "b 8"]': "x: float32[b, 8]",
    'Annotated[Tensor, "int64[b, 8]"]': "x: int64[b, 8]",
    Annotated[Tensor, "b 8"]: "x: float32[b, 8]",
    'TensorType["b", 8, "n": 4, -1]': "x: float32[b, 8, 4, ?]",
    'TensorType[..., "c", torch.int64]': "x: int64[..., c]",
    'TensorType["rest": ..., "c"]': "x: float32[*rest, c]",
    "Tensor[B, 2 * N, 8]": "x: float32[B, 2 * N, 8]",
    "Tensor[*Bs, 8]": "x: float32[*Bs, 8]",
}


@pytest.mark.parametrize("annotation", READ, ids=str)
def test_reads(annotation: Any) -> None:
    (line,) = spec_of(function(x=annotation))
    assert line == READ[annotation]
    parse_spec(line)


REFUSED: dict[Any, tuple[type[Exception], str]] = {
    "Tensor": (TargetError, "'x'"),
    Any: (TargetError, "has no shape"),
    'Float[Tensor, "#b #b"]': (SpecError, "broadcasts"),
    'Float[Tensor, "b #b"]': (SpecError, "broadcasts"),
    'Float[Tensor, "#4 c"]': (SpecError, "broadcasts"),
    'Float[Tensor, "rows=#b+1 c"]': (SpecError, "broadcasts"),
    'Float[Tensor, "#_ c"]': (SpecError, "does not broadcast"),
    'Float[Tensor, "... *c"]': (SpecError, "at one position only"),
    'Float[Tensor, "b, c"]': (SpecError, "comma"),
    'Float[Tensor, "c{n}"]': (SpecError, "not an integer argument"),
    'Int4[Tensor, "b"]': (SpecError, "of which torch has no tensor"),
    'Key[Tensor, "b"]': (SpecError, "keys of JAX"),
    'Bool[FloatBCHW, "t"]': (SpecError, "no dtype is allowed by both"),
    'Annotated[Tensor, "batch seq"]': (SpecError, "may be a remark"),
    'Annotated[Tensor, Is[small]]': (SpecError, "validator"),
    'TensorType["b", is_named]': (SpecError, "names of dims"),
    'Tensor[f(B), 3]': (SpecError, "not a size"),
    'Float[Tensor, "?b c"]': (SpecError, "position in a PyTree"),
    'Float[Tensor, "n=... c"]': (SpecError, "stands alone"),
    'Float[Tensor, "__b c"]': (SpecError, "_ twice"),
    'Float[Tensor, "_4"]': (SpecError, "only a name can be"),
    'Float[Tensor, "*b+1"]': (SpecError, "only a name can"),
    'Float[Tensor, "{n} c"]': (SpecError, "not an integer argument"),
    'Float[Unknown, "b"]': (SpecError, "Unknown is not a known type of array"),
    'Float[Tensor, "b"] | Float[Tensor, "b c"]': (SpecError, "several types"),
    'PyTree[Float[Tensor, "b"], "T"]': (TargetError, "has no shape"),
    'list[Float[Tensor, "b"]]': (TargetError, "has no shape"),
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


SEVERAL: list[tuple[dict[str, str], list[str]]] = [
    # A row and a size of one name are two things.
    ({"x": "*b c", "y": "b"}, ["x: float32[*b, c]", "y: float32[b]"]),
    # The row that a spec names after its input is not the one that another input binds.
    ({"x": "... c", "y": "*x c"}, ["x: float32[*_x, c]", "y: float32[*x, c]"]),
    # The value of an argument is `{n}`; the size `n` has nothing to do with it.
    ({"x": "n n+1 {n} {n+1}*n", "n": "int"}, ["x: float32[_dim_n, _dim_n+1, n, (n+1)*_dim_n]", "n: int"]),
    ({"x": "{k} {k}*2 k"}, ["x: float32[3, (3)*2, k]"]),
]


@pytest.mark.parametrize("dims, lines", SEVERAL, ids=str)
def test_what_is_one_name_in_several_inputs(dims: dict[str, str], lines: list[str]) -> None:
    def one(x: Any, k: int = 3) -> None: ...

    def two(x: Any, y: Any) -> None: ...

    def sized(x: Any, n: Any) -> None: ...

    target: Any = one if len(dims) == 1 else two if "y" in dims else sized
    target.__annotations__ = {
        name: text if text == "int" else f'Float[Tensor, "{text}"]' for name, text in dims.items()
    }
    assert spec_of(target) == lines
    parse_spec(lines)


UNBOUND = [("_n c", "_n c"), ("_ c", "_ c"), ("*_ c", "*_ c"), ("*_b c", "*_b c"), ("... c", "... c"),
           ("n c", "{n} c"), ("*b c", "b c")]
BOUND = [("n c", "n c"), ("*b c", "*b c"), ("rows=n c", "n c"), ("n+1 c", "n+1 c"), ("{n} c", "{n} c")]


@pytest.mark.parametrize("one, other", [*UNBOUND, *BOUND])
def test_only_names_that_are_bound_are_one_size(one: str, other: str) -> None:
    def added(x: Any, y: Any, n: Any) -> Any:
        return x + y

    added.__annotations__ = {
        "x": f'Float[Tensor, "{one}"]', "y": f'Float[Tensor, "{other}"]', "n": "int"
    }  # fmt: skip
    assert check(added).verdict == ("proved" if (one, other) in BOUND else "refined")


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
