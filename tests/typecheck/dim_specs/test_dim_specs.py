"""Specs of dynamic shapes: torch's schema byte for byte, what torch gets wrong, our own, strangers' texts."""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import subprocess
import sys
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sympy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_formulas import dims as random_dims
from torch._export.serde.dynamic_shapes import _dump_dynamic_shapes, _load_dynamic_shapes
from torch.export import AdditionalInputs, Dim, ShapesCollection, export
from torch.export import dynamic_shapes as theirs

from anyshape.constraints.terms.dims import Term, evaluate, sym, symbols
from anyshape.constraints.terms.formula import all_of, holds
from anyshape.constraints.terms.formula_text import parse_formula
from anyshape.constraints.terms.syntax import parse_dim
from anyshape.typecheck.cli.main import main
from anyshape.typecheck.dim_specs.lowering import Lowered, lower, to_torch_json
from anyshape.typecheck.dim_specs.specs import (
    LARGEST,
    DimRange,
    DimSpec,
    DimSpecError,
    Entries,
    Hint,
    Items,
    ShapeSpec,
    Size,
    Tree,
    from_json,
    loads,
    mapped,
    sizes,
    tensor_sizes,
    to_json,
)
from anyshape.typecheck.dim_specs.torch_dims import from_torch, to_torch


def tensor(*shape: int) -> torch.Tensor:
    return torch.empty(shape)


def shape(*texts: str | int | Hint | None) -> ShapeSpec:
    return ShapeSpec(tuple(parse_dim(t) if isinstance(t, str) else t for t in texts))


dx = Dim("dx", min=4, max=16)
dy = Dim("dy", max=9)
dz = Dim("dz")
Pair = namedtuple("Pair", "left right")

# dynamic_shapes, args, kwargs: what torch gets right
RIGHT: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = [
    (({0: dx, 1: 3},), (tensor(4, 3),), {}),
    (((dx, dy), (dy, dx)), (tensor(4, 5), tensor(5, 4)), {}),
    ([(dx, None), None], (tensor(4, 5), tensor(5, 4)), {}),
    ({"a": {0: dx + 1}, "b": {1: 2 * dx + 3}}, (tensor(5, 5), tensor(5, 11)), {}),
    ({"a": {0: dx - 1}, "b": {0: 2 * (dx + 1)}}, (tensor(5, 5), tensor(14)), {}),  # two levels
    (({0: 4 * dx, 1: dx}, None), (tensor(16, 4), 7), {}),
    (({0: Dim.AUTO, 1: Dim.DYNAMIC, 2: Dim.STATIC},), (tensor(4, 3, 2),), {}),
    (([(dx, 4), (dx + 1, 4)], (Dim.STATIC,), None, None), (
        [tensor(4, 4), tensor(5, 4)], tensor(4), tensor(4, 4), "hello",
    ), {}),
    ({"a": [(dx, 4), (dx, 4)], "b": {"k": {0: dx}, "l": None}}, (
        [tensor(4, 4), tensor(4, 4)], {"k": tensor(4), "l": tensor(2, 2)},
    ), {}),
    (((),), (tensor(),), {}),
    (([],), ([],), {}),
    (({0: dx},), (tensor(4),), {}),
    (({0: dx}, {0: dy}), (tensor(4),), {"y": tensor(5)}),
    (None, (tensor(4),), {}),
]  # fmt: skip


@pytest.mark.parametrize("shapes, args, kwargs", RIGHT)
def test_the_bytes_are_torchs_where_torch_is_right(
    shapes: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    spec = from_torch(shapes, args, kwargs)
    ours, _ = to_torch_json(spec)
    assert json.dumps(ours) == json.dumps(_dump_dynamic_shapes(shapes, args, kwargs, to_dict=True))


@pytest.mark.parametrize("shapes, args, kwargs", RIGHT)
def test_both_schemas_read_back(shapes: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    spec = from_torch(shapes, args, kwargs)
    assert loads(json.dumps(to_json(spec))) == spec
    ours, lost = to_torch_json(spec)
    assert to_torch_json(loads(json.dumps(ours))) == (ours, ()) and not lost
    assert from_json(_dump_dynamic_shapes(shapes, args, kwargs, to_dict=True)) == loads(json.dumps(ours))


@st.composite
def exports(draw: st.DrawFn) -> tuple[Any, tuple[Any, ...]]:
    """Shapes and inputs as `torch.export` takes them, of those that torch's dump is right about."""
    roots = [dx, dy, dz]

    def size(example: int) -> Any:
        root = draw(st.sampled_from(roots))
        derived = draw(st.integers(1, 3)) * root + draw(st.integers(1, 3))
        return draw(st.sampled_from([root, derived, example, None, Dim.AUTO, Dim.DYNAMIC, Dim.STATIC]))

    def inputs(level: int) -> tuple[Any, Any]:
        kind = draw(st.sampled_from(["tensor", "tensor", "plain", *(["list", "dict"] if level else [])]))
        if kind == "plain":
            return draw(st.sampled_from([3, 0.5, "text", None])), None
        if kind == "tensor":
            example = tensor(*draw(st.lists(st.integers(1, 5), max_size=3)))
            sizes = [size(n) for n in example.shape]
            by_index = {i: s for i, s in enumerate(sizes) if draw(st.booleans())}
            return example, draw(st.sampled_from([sizes, tuple(sizes), by_index, None]))
        parts = [inputs(level - 1) for _ in range(draw(st.integers(1, 2)))]
        if kind == "list":
            return [p for p, _ in parts], [s for _, s in parts]
        named = dict(zip("ab", parts, strict=False))
        return {k: p for k, (p, _) in named.items()}, {k: s for k, (_, s) in named.items()}

    given = [inputs(2) for _ in range(draw(st.integers(1, 3)))]
    shapes = [said for _, said in given]
    return draw(st.sampled_from([tuple(shapes), shapes, dict(zip("xyz", shapes, strict=False))])), tuple(
        value for value, _ in given
    )


@given(exports())
@settings(max_examples=100, deadline=None)
def test_the_bytes_are_torchs_for_any_such_export(case: tuple[Any, tuple[Any, ...]]) -> None:
    shapes, args = case
    ours, lost = to_torch_json(from_torch(shapes, args))
    assert json.dumps(ours) == json.dumps(_dump_dynamic_shapes(shapes, args, to_dict=True)) and not lost


def comparable(shapes: Any) -> Any:
    """Shapes with the dims as (name, min, max); torch's own are compared by identity."""
    if isinstance(shapes, dict):
        return {key: comparable(value) for key, value in shapes.items()}
    if isinstance(shapes, list | tuple):
        return [*map(comparable, shapes)]
    return (shapes.__name__, shapes.min, shapes.max) if isinstance(shapes, Dim) else shapes


@pytest.mark.parametrize("shapes, args, kwargs", [case for case in RIGHT if case[0] is not None])
def test_torchs_loader_and_ours_agree(shapes: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    data = _dump_dynamic_shapes(shapes, args, kwargs, to_dict=True)
    bounded = {**data, "dims": {n: {**d, "max": d["max"] or LARGEST - 1} for n, d in data["dims"].items()}}
    ours, _ = to_torch(from_json(bounded))
    assert comparable(ours) == comparable(_load_dynamic_shapes(bounded, from_dict=True))


# ---- what torch gets wrong (torch 2.13); each test says first what torch does


def test_an_unbounded_dim_is_read_back() -> None:
    data = _dump_dynamic_shapes(({0: dz},), (tensor(4),), to_dict=True)
    with pytest.raises(torch._dynamo.exc.UserError, match="max"):
        _load_dynamic_shapes(data, from_dict=True)
    assert from_json(data) == DimSpec(Items((shape("dz"),)), {"dz": DimRange(0, None)})
    (found,), _ = to_torch(from_json(data))
    assert found[0].max is theirs.Dim("unbounded").max


class Two(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.sum() + y.sum()


def test_keyword_inputs_keep_their_names() -> None:
    shapes, kwargs = {"x": {0: dx}, "y": {0: dy}}, {"y": tensor(5), "x": tensor(4)}
    swapped = {"y": tensor(5, 5), "x": tensor(4)}
    wrong = _dump_dynamic_shapes({"x": {0: dx}, "y": {}}, (), swapped, to_dict=True)
    assert wrong["dynamic_shapes"][0] == ["dx", 5]  # which is said of y
    spec = from_torch(shapes, (), kwargs)
    assert spec.shapes == Entries((("y", shape("dy")), ("x", shape("dx"))))
    back, lost = to_torch(loads(json.dumps(to_torch_json(spec)[0])))
    assert comparable(back) == {"x": [("dx", 4, 16)], "y": [("dy", 0, 9)]} and not lost
    exported = export(Two(), (), kwargs, dynamic_shapes=back)
    assert sorted(r.upper for r in exported.range_constraints.values()) == [9, 16]


def test_the_signature_gives_the_order() -> None:
    spec = from_torch({"x": {0: dx}, "y": {0: dy}}, (), {"y": tensor(5), "x": tensor(4)}, Two())
    assert spec.shapes == Items((shape("dx"), shape("dy")))
    assert from_torch({"y": {0: dy}, "x": {0: dx}}, (tensor(4), tensor(5)), target=Two()) == spec


def test_a_tuple_stays_a_tuple() -> None:
    class Model(torch.nn.Module):
        def forward(self, xs: tuple[torch.Tensor, ...], d: dict[int, torch.Tensor]) -> torch.Tensor:
            return xs[0] + xs[1] + d[0]

    args = ((tensor(4), tensor(4)), {0: tensor(4)})
    shapes = {"xs": ({0: dx}, {0: dx}), "d": {0: {0: dx}}}
    dumped = json.dumps(_dump_dynamic_shapes(shapes, args, to_dict=True))
    through_json = _load_dynamic_shapes(json.loads(dumped), True)
    with pytest.raises(torch._dynamo.exc.UserError, match="tuple"):
        export(Model(), args, dynamic_shapes=through_json)

    spec = from_torch(shapes, args)
    assert loads(json.dumps(to_json(spec))) == spec
    data, lost = to_torch_json(spec)
    assert lost == (
        "dynamic_shapes[0] is a tuple, and is read back as a list",
        "the key 0 of dynamic_shapes[1] is a number, and is read back as a text",
    )
    for found in (to_torch(spec)[0], to_torch(loads(json.dumps(data)), args)[0]):
        export(Model(), args, dynamic_shapes=found)


def test_containers_follow_the_example() -> None:
    args = (Pair(tensor(4), tensor(4)), [3, 4], [tensor(4)])
    data = {"dynamic_shapes": [[["dx"], [4]], ["_DimHint.DYNAMIC", None], [[4]]], "dims": {"dx": DX}}
    (pair, numbers, _), _ = to_torch(from_json(data), args)
    assert type(pair) is Pair and pair.left[0].__name__ == "dx" and numbers[1] is None
    assert numbers[0].type.name == "DYNAMIC"


DX: dict[str, Any] = {"min": 4, "max": 16, "derived": []}


def test_hints_keep_their_bounds() -> None:
    shapes = ({0: Dim.AUTO(min=4, max=16), 1: Dim.DYNAMIC(max=9)},)
    dumped = _dump_dynamic_shapes(shapes, (tensor(5, 5),), to_dict=True)
    assert dumped["dynamic_shapes"][0] == ["_DimHint.AUTO", "_DimHint.DYNAMIC"]
    spec = from_torch(shapes, (tensor(5, 5),))
    assert spec.shapes == Items((ShapeSpec((Hint("AUTO", 4, 16), Hint("DYNAMIC", None, 9))),))
    assert loads(json.dumps(to_json(spec))) == spec
    (found,), _ = to_torch(spec)
    assert (found[0].min, found[0].max, found[1].max) == (4, 16, 9)
    _, lost = to_torch_json(spec)
    assert lost == (
        "the bounds of dynamic_shapes[0][0], from 4 to 16",
        "the bounds of dynamic_shapes[0][1], from 0 to 9",
    )


@pytest.mark.parametrize("target", [None, Two()])
def test_a_collection_is_read(target: Any) -> None:  # torch's dump of one never returns
    x, y = tensor(4), tensor(5)
    collection = ShapesCollection()
    collection[x] = {0: dx}
    collection[y] = (dy,)
    assert from_torch(collection, (x, y), target=target).shapes == Items((shape("dx"), shape("dy")))
    assert from_torch(collection, (x,), {"y": y}, target=target).shapes == Items((shape("dx"), shape("dy")))
    with pytest.raises(DimSpecError, match="not found in args"):
        from_torch(collection, (x, tensor(5)), target=target)


def test_additional_inputs_are_read() -> None:
    more = AdditionalInputs()
    more.add((tensor(5), tensor(5)))
    spec = from_torch(more, (tensor(4), tensor(5)))
    assert spec.shapes == Items((ShapeSpec((Hint("DYNAMIC"),)), ShapeSpec((5,))))


def test_integer_inputs_are_read() -> None:
    shapes = {"x": {0: dx}, "n": Dim.DYNAMIC, "m": None, "k": 3}
    with pytest.raises(torch._dynamo.exc.UserError, match="non-tensor"):
        _dump_dynamic_shapes(shapes, (tensor(4), 3, 3, 3), to_dict=True)
    spec = from_torch(shapes, (tensor(4), 3, 3, 3))
    assert spec.shapes == Items((shape("dx"), Hint("DYNAMIC"), None, 3))
    assert loads(json.dumps(to_json(spec))) == spec
    assert to_torch_json(spec)[0]["dynamic_shapes"][1:] == ["_DimHint.DYNAMIC", None, None]

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor, n: int, m: int, k: int) -> torch.Tensor:
            return x * n * m * k

    export(Model(), (tensor(4), 3, 3, 3), dynamic_shapes=to_torch(spec)[0])


def test_an_integer_has_no_name() -> None:
    with pytest.raises(DimSpecError, match="hint") as raised:
        from_torch((dx,), (4,))
    assert "integer" in raised.value.problem


@pytest.mark.parametrize("bound", [np.int64(4), sympy.Integer(4), np.uint8(4)])
def test_integers_of_other_libraries_are_integers(bound: Any) -> None:
    dim = Dim("n", min=bound, max=sympy.oo)
    dumped = _dump_dynamic_shapes(({0: dim},), (tensor(4),), to_dict=True)
    with pytest.raises((TypeError, AssertionError)):
        assert json.dumps(dumped) and dumped["dims"]["n"]["max"] is None
    spec = from_torch(({0: dim, 1: bound},), (tensor(5, 4),))
    assert spec == DimSpec(Items((shape("n", 4),)), {"n": DimRange(4, None)})
    assert json.dumps(to_json(spec))


# dynamic_shapes, args, part of the message
REFUSED: list[tuple[Any, tuple[Any, ...], str]] = [
    (({-1: dx},), (tensor(4, 4),), "dim -1"),  # torch: static, silently
    (({2: dx},), (tensor(4, 4),), "dim 2"),
    (({True: dx},), (tensor(4, 4),), "dim True"),
    (({0: Dim("n", min=True)},), (tensor(4),), "n.min is True"),  # torch: accepted
    (({0: Dim("n", min=-5)},), (tensor(4),), "min of dims['n'] is -5"),
    (({0: Dim("n", max=True)},), (tensor(4),), "n.max is True"),
    (({0: Dim("größe")},), (tensor(4),), "not a valid name for a dim"),
    (({0: Dim("and")},), (tensor(4),), "not a valid name for a dim"),
    (({0: dx}, {0: Dim("dx", min=5, max=16)}), (tensor(6), tensor(6)), "from 5 to 16"),
    (({0: 2 * dx}, {0: 2 * Dim("dx", min=5)}), (tensor(16), tensor(16)), "5 on"),  # torch: the first wins
    (({0: "dx"},), (tensor(4),), "'dx'"),
    (({0: True},), (tensor(4),), "True"),
    (({0: 4.0},), (tensor(4),), "4.0"),
    (({0: -4},), (tensor(4),), "from 0 to 2**63 - 1"),
    (((dx,),), (tensor(4, 4),), "1 sizes, and the tensor 2"),
    ((dx,), (tensor(4),), "Dim"),
    (({0: dx},), (tensor(4), tensor(4)), "1 inputs, and there are 2"),
    ({"a": {0: dx}, "b": None}, (tensor(4),), "names a, b, and the inputs are number 0"),
    ({"a": {0: dx}}, (tensor(4), tensor(4)), "number 0, number 1"),
    ("abc", (tensor(4),), "type str"),
    (([{0: dx}],), ([tensor(4), tensor(4)],), "do not agree on 1"),
    (([{0: dx}],), ((tensor(4),),), "a list and cannot describe"),
    (({"a": {0: dx}},), ({"b": tensor(4)},), "do not agree"),
    (({0: dx},), ("text",), "a str"),
    ((3,), ("text",), "a str"),
    ((Dim.DYNAMIC,), (True,), "a bool"),
]


@pytest.mark.parametrize("shapes, args, part", REFUSED)
def test_what_makes_no_sense_is_refused(shapes: Any, args: tuple[Any, ...], part: str) -> None:
    with pytest.raises(DimSpecError) as raised:
        from_torch(shapes, args)
    assert part in str(raised.value)


def test_roots_of_one_name_have_one_range_torch_takes_the_first() -> None:
    other = Dim("dx", min=5, max=12)
    data = _dump_dynamic_shapes(({0: 2 * dx}, {0: 2 * other + 1}), (tensor(16), tensor(17)), to_dict=True)
    assert (data["dims"]["dx"]["min"], data["dims"]["dx"]["max"]) == (4, 16)
    with pytest.raises(DimSpecError, match="from 5 to 12"):
        from_torch(({0: 2 * dx}, {0: 2 * other + 1}), (tensor(16), tensor(17)))


def test_no_shapes_at_all_are_a_spec() -> None:
    data = _dump_dynamic_shapes(None, (tensor(4),))
    with pytest.raises(torch._dynamo.exc.UserError):
        _load_dynamic_shapes(data)
    spec = from_torch(None, (tensor(4),))
    assert to_torch_json(spec)[0] == data and from_json(data) == spec == DimSpec(None)
    assert to_torch(spec, (tensor(4),)) == (None, ())
    assert from_torch((), (tensor(4),)) == spec


NAMES = "N S E I O Q C pi beta gamma zeta lambda len sum id input sqrt Symbol is x _ _N".split()


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_a_name(name: str) -> None:
    """torch takes `Dim("N") + 1` for a function plus one, and crashes in export where dims are related."""
    derived = f"2*{name} + 1"
    data = {"dynamic_shapes": [[name, derived]], "dims": {name: {"min": 2, "max": 9, "derived": [derived]}}}
    spec = loads(json.dumps(data))
    assert spec.shapes == Items((ShapeSpec((sym(name), 2 * sym(name) + 1)),))
    assert to_torch_json(spec) == (data, ()) and loads(json.dumps(to_json(spec))) == spec
    ((root, twice),), lost = to_torch(spec)
    assert (twice.min, twice.max) == (5, 19) and not lost

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            assert x.shape[1] == 2 * x.shape[0] + 1
            return x + 1

    exported = export(Model(), (tensor(4, 9),), dynamic_shapes=((root, twice),))
    assert exported.module()(tensor(5, 11)).shape == (5, 11)


@pytest.mark.parametrize("name", ["N", "lambda", "E"])
def test_torch_does_not_bear_such_names(name: str) -> None:
    try:
        said = (Dim(name) + 1).__name__
    except (TypeError, sympy.SympifyError) as error:
        said = str(error)
    assert said != f"{name} + 1"


def test_names_in_the_way_are_told_apart() -> None:
    data = {"dynamic_shapes": [["N", "_N"]], "dims": {"N": DX, "_N": DX}}
    ((one, other),), _ = to_torch(from_json(data))
    assert (one.__name__, other.__name__) == ("__N", "_N")


# ---- texts from strangers


def hostile(path: Path) -> list[dict[str, Any]]:
    code = f"open({str(path)!r}, 'w').close() or 1"
    return [
        {"dynamic_shapes": [["dx"]], "dims": {code: DX, "dx": DX}},
        {"dynamic_shapes": [["dx"]], "dims": {"dx": {**DX, "derived": [f"dx + ({code})"]}}},
    ]


@pytest.mark.parametrize("case", [0, 1])
def test_torchs_loader_runs_code(case: int, tmp_path: Path) -> None:
    with contextlib.suppress(torch._dynamo.exc.UserError, AttributeError):  # the harm is done by then
        _load_dynamic_shapes(hostile(tmp_path / "ran")[case], from_dict=True)
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize("case", [0, 1])
def test_ours_runs_none(case: int, tmp_path: Path) -> None:
    with pytest.raises(DimSpecError):
        loads(json.dumps(hostile(tmp_path / "ran")[case]))
    assert not (tmp_path / "ran").exists()


def spec_json(**changes: Any) -> dict[str, Any]:
    return {"dynamic_shapes": [["dx", 3]], "dims": {"dx": DX}, **changes}


def ours_json(**changes: Any) -> dict[str, Any]:
    return {"version": 1, **spec_json(), "relations": [], "exact": True, **changes}


# data, parts of the message
MALFORMED: list[tuple[Any, tuple[str, ...]]] = [
    (None, ("JSON object", "None")),
    ([], ("JSON object",)),
    ({}, ("no 'dynamic_shapes'",)),
    (spec_json(extra=1), ("has 'extra'", "dynamic_shapes, dims")),
    (spec_json(dims=[]), ("dims is []",)),
    (spec_json(dims={"dx": 3}), ("dims['dx'] is 3",)),
    (spec_json(dims={"dx": {"min": 1}}), ("dims['dx'] has no 'max'",)),
    (spec_json(dims={"dx": {**DX, "step": 1}}), ("dims['dx'] has 'step'",)),
    (spec_json(dims={"dx": {**DX, "min": None}}), ("min of dims['dx'] is null",)),
    (spec_json(dims={"dx": {**DX, "min": True}}), ("min of dims['dx'] is True",)),
    (spec_json(dims={"dx": {**DX, "min": -5}}), ("min of dims['dx'] is -5",)),
    (spec_json(dims={"dx": {**DX, "min": 4.0}}), ("min of dims['dx'] is 4.0",)),
    (spec_json(dims={"dx": {**DX, "min": "4"}}), ("min of dims['dx'] is '4'",)),
    (spec_json(dims={"dx": {**DX, "max": 1 << 63}}), ("max of dims['dx'] is an integer of 64 bits",)),
    (spec_json(dims={"dx": {**DX, "max": 3}}), ("min of dims['dx'] is 4 and its max is 3",)),
    (spec_json(dims={"dx": {**DX, "derived": "dx + 1"}}), ("derived is 'dx + 1'", "not a list")),
    (spec_json(dims={"dx": {**DX, "derived": ["dy + 1"]}}), ("dims['dx'].derived[0]", "over 'dx' alone")),
    (spec_json(dims={"dx": {**DX, "derived": ["3"]}}), ("over 'dx' alone",)),
    (spec_json(dims={"dx": {**DX, "derived": ["dx +"]}}), ("not a term", "column 5")),
    (spec_json(dims={"d x": DX}), ("'d x' is not a valid name",)),
    (spec_json(dims={"None": DX}), ("'None' is not a valid name",)),
    (spec_json(dims={}), ("dynamic_shapes[0][0] mentions 'dx'", "the dims are none")),
    (spec_json(dynamic_shapes=[["dxx"]]), ("'dxx'", "did you mean 'dx'")),
    (spec_json(dynamic_shapes=[[-1]]), ("a size of a tensor is -1",)),
    (spec_json(dynamic_shapes=[1 << 64]), ("dynamic_shapes[0]", "65 bits")),
    (spec_json(dynamic_shapes=[[True]]), ("dynamic_shapes[0][0] is True",)),
    (spec_json(dynamic_shapes=[[1.5]]), ("dynamic_shapes[0][0] is 1.5",)),
    (spec_json(dynamic_shapes=[["_DimHint.MAYBE"]]), ("'MAYBE'", "AUTO, DYNAMIC, STATIC")),
    (spec_json(dynamic_shapes=[["dx // 0"]]), ("divisor",)),
    (spec_json(dynamic_shapes=[["dx.__class__"]]), ("not a term",)),
    (spec_json(dynamic_shapes={"x": ["dy"]}), ("dynamic_shapes['x'][0]",)),
    (spec_json(dynamic_shapes={3: ["dx"]}), ("the key 3",)),
    (spec_json(version=1), ("has no 'relations'",)),
    (ours_json(version=2), ("version is 2", "reads version 1")),
    (ours_json(version=True), ("version is True",)),
    (ours_json(exact=1), ("exact is 1",)),
    (ours_json(relations="dx == 4"), ("relations", "not a list of texts")),
    (ours_json(relations=["dx == "]), ("relations[0] is not a formula", "column")),
    (ours_json(relations=["dy == 4"]), ("relations[0] mentions 'dy'",)),
    (ours_json(dynamic_shapes={"$what": []}), ("has no meaning here",)),
    (ours_json(dynamic_shapes={"$tuple": [], "x": []}), ("has no meaning here",)),
    (ours_json(dynamic_shapes={"$tuple": 3}), ("not a list",)),
    (ours_json(dynamic_shapes={"$sizes": [[]]}), ("shape of a tensor",)),
    (ours_json(dynamic_shapes={"$dict": [["a"]]}), ("not a pair",)),
    (ours_json(dynamic_shapes={"$dict": [[True, None]]}), ("not a pair",)),
    (ours_json(dynamic_shapes=[{"$hint": "AUTO"}]), ("has no 'min'",)),
    (ours_json(dynamic_shapes=[{"$hint": "AUTO", "min": -1, "max": None}]), ("dynamic_shapes[0] is -1",)),
    (ours_json(dynamic_shapes=[{"$hint": [], "min": 1, "max": None}]), ("the hint []",)),
]


@pytest.mark.parametrize("data, parts", MALFORMED)
def test_malformed_data_is_refused_with_its_place(data: Any, parts: tuple[str, ...]) -> None:
    with pytest.raises(DimSpecError) as raised:
        from_json(data)
    assert all(part in str(raised.value) for part in parts), raised.value
    copy = pickle.loads(pickle.dumps(raised.value))
    assert type(copy) is DimSpecError and str(copy) == str(raised.value)


@pytest.mark.parametrize("text, part", [
    ("", "not valid JSON"),
    ("{", "not valid JSON"),
    (b"\xff\xfe\xfa", "not valid JSON"),
    ("[" * 100_000, "nested too deep"),
    ('{"dynamic_shapes": ' + "[" * 200 + "]" * 200 + ', "dims": {}}', "deeper than 64"),
    ('{"dynamic_shapes": [' + "9" * 5000 + '], "dims": {}}', "not valid JSON"),
    ('{"dynamic_shapes": [' + "9" * 4000 + '], "dims": {}}', "bits"),
    ('{"dynamic_shapes": null, "dims": {}, "dims": {}}', "'dims' occurs twice"),
    ('{"dynamic_shapes": NaN, "dims": {}}', "is nan"),
    ('{"dynamic_shapes": ["' + "(" * 10_000 + '"], "dims": {}}', "not a term"),
    ('{"dynamic_shapes": ["\\ud800"], "dims": {}}', "not a term"),
    ('{"dynamic_shapes": ["dx**256**256"], "dims": {}}', "not a term"),
])
def test_malformed_texts_are_refused(text: str | bytes, part: str) -> None:
    with pytest.raises(DimSpecError, match=part):
        loads(text)


# ---- fuzzing


NAME = st.sampled_from(["a", "b", "c", "N", "lambda", "_h"])
HINTS = st.builds(
    lambda kind, ends: Hint(kind, *ends),
    st.sampled_from(["AUTO", "DYNAMIC", "STATIC"]),
    st.tuples(st.none() | st.integers(0, 5), st.none() | st.integers(5, 99)),
)
SIZE: st.SearchStrategy[Size] = st.one_of(st.integers(0, 99), random_dims("abc"), HINTS, st.none())


def grown(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    several = st.lists(inner, max_size=3).map(tuple)
    keys = st.text("ab$[", max_size=3) | st.integers(-3, 9)
    return st.one_of(
        st.builds(Items, several, st.sampled_from(["list", "tuple"])),
        st.dictionaries(keys, inner, max_size=3).map(lambda d: Entries(tuple(d.items()))),
    )


SHAPE = st.builds(ShapeSpec, st.lists(SIZE, max_size=4).map(tuple))
TREE = st.recursive(SIZE | SHAPE, grown, max_leaves=6)
BOUNDS = st.builds(
    lambda low, more: DimRange(low, None if more is None else low + more),
    st.integers(0, 9),
    st.none() | st.integers(0, 60),
)
FORMULA = st.sampled_from([
    "a == b", "a + b == 32", "b == 2*a + 1", "a % 4 == 1", "a < 4 or a > 10", "b != 7", "3 <= c <= 20",
    "c == 5", "a*b <= 100", "a == 2*c and b % 3 == 0", "a % c == 0", "b // c == 2", "c == 0", "True",
    "a*a == 16",
])  # fmt: skip


@st.composite
def specs(draw: st.DrawFn) -> DimSpec:
    shapes = draw(TREE)
    relations = tuple(map(parse_formula, draw(st.lists(FORMULA, max_size=3, unique=True))))
    dims = {name: draw(BOUNDS) for name in "abc"} | draw(st.dictionaries(NAME, BOUNDS, max_size=2))
    fitting = mapped(shapes, lambda size, _: size if not isinstance(size, int) or size >= 0 else 0)
    return DimSpec(fitting, dims, relations, draw(st.booleans()))


@given(specs())
@settings(max_examples=200, deadline=None)
def test_our_schema_reads_back_any_spec(spec: DimSpec) -> None:
    assert loads(json.dumps(to_json(spec))) == spec


def lower_or_none(spec: DimSpec) -> Lowered | None:
    """None where no sizes are left."""
    try:
        return lower(spec)
    except DimSpecError as error:
        if any(words in error.problem for words in ("no sizes", "is left", "divides by zero")):
            return None
        raise


@given(specs())
@settings(max_examples=150, deadline=None)
def test_a_lowered_spec_is_in_torchs_terms(spec: DimSpec) -> None:
    lowered = lower_or_none(spec)
    if lowered is None:
        return
    data, lost = to_torch_json(spec)
    assert set(lowered.lost) <= set(lost)
    back = loads(json.dumps(data))
    assert not lower(back).lost and to_torch_json(back)[0] == data
    for where, size in sizes(lowered.spec.shapes):
        assert not isinstance(size, Term) or len(symbols(size)) == 1, where


@given(specs(), st.data())
@settings(max_examples=300, deadline=None)
def test_what_a_spec_allows_its_lowered_form_allows(spec: DimSpec, data: st.DataObject) -> None:
    """Tried at random sizes, size by size."""
    ranges = {n: (b.min, b.min + 40 if b.max is None else b.max) for n, b in spec.dims.items()}
    values = {name: data.draw(st.integers(*ends)) for name, ends in ranges.items()}
    try:
        if not holds(all_of(spec.relations), values):
            return
        wanted = [evaluate(s, values) for s in tensor_sizes(spec.shapes) if isinstance(s, Term)]
    except ZeroDivisionError:
        return
    if any(size < 0 for size in wanted):
        return
    try:
        lowered = lower(spec)  # for which sizes are left
    except DimSpecError as error:
        if "divides by zero" not in str(error):
            raise
        return
    pairs = zip(tensor_sizes(lowered.spec.shapes), tensor_sizes(spec.shapes), strict=True)
    found = [size for size, old in pairs if isinstance(old, Term)]
    for size, value in zip(found, wanted, strict=True):
        assert attainable(lowered.spec.dims, size, value), (size, value)


def attainable(dims: Any, size: Size, value: int) -> bool:
    if isinstance(size, int):
        return size == value
    assert isinstance(size, Term)
    (name,) = symbols(size)
    bounds = dims[name]
    factor, constant = evaluate(size, {name: 1}) - evaluate(size, {name: 0}), evaluate(size, {name: 0})
    root, rest = divmod(value - constant, factor)
    return rest == 0 and bounds.min <= root and (bounds.max is None or root <= bounds.max)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6)
    | st.sampled_from(["dx", "dx + 1", "_DimHint.AUTO", "_DimHint.", "$tuple", "$hint", "min", "max"]),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(st.text(max_size=4) | st.sampled_from([
        "dynamic_shapes", "dims", "version", "relations", "exact", "min", "max", "derived", "dx", "$tuple",
        "$list", "$dict", "$sizes", "$hint",
    ]), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


def accepts_or_refuses(read: Callable[[], DimSpec]) -> None:
    try:
        spec = read()
    except DimSpecError:
        return
    assert loads(json.dumps(to_json(spec))) == spec


@given(JSON)
@settings(max_examples=300, deadline=None)
def test_arbitrary_json_is_a_spec_or_refused(data: Any) -> None:
    accepts_or_refuses(lambda: from_json(data))
    accepts_or_refuses(lambda: loads(json.dumps(data)))


@given(JSON, JSON, st.sampled_from([None, 1]))
@settings(max_examples=300, deadline=None)
def test_arbitrary_parts_are_a_spec_or_refused(shapes: Any, dims: Any, version: int | None) -> None:
    parts = {"dynamic_shapes": shapes, "dims": dims}
    accepts_or_refuses(lambda: from_json(parts if version is None else ours_json(**parts)))


@given(specs(), st.data())
@settings(max_examples=300, deadline=None)
def test_a_mutated_dump_is_a_spec_or_refused(spec: DimSpec, data: st.DataObject) -> None:
    text = json.dumps(to_json(spec))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.integers(0, 5))
        put = data.draw(st.text('0123abN"[]{}:,-+*/%$.() truefalsn', max_size=4))
        text = text[:at] + put + text[at + cut :]
    accepts_or_refuses(lambda: loads(text))


@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_refused(text: bytes) -> None:
    with pytest.raises(DimSpecError):
        loads(text)


def test_the_fuzzer_sees_another_exception() -> None:
    def broken() -> DimSpec:
        raise KeyError("min")

    with pytest.raises(KeyError):
        accepts_or_refuses(broken)


# ---- what torch cannot say


def test_a_size_that_decreases_is_a_size() -> None:
    with pytest.raises(NotImplementedError):
        32 - dx
    spec = from_json({"dynamic_shapes": [["dx", "32 - dx"]], "dims": {"dx": DX}})
    assert spec.shapes == Items((shape("dx", "32 - dx"),)) and loads(json.dumps(to_json(spec))) == spec
    (((_, other),), lost) = to_torch(spec)
    assert (other.min, other.max) == (16, 28) and lost  # the range of 32 - dx, not that it is 32 - dx


# sizes, dims, relations -> sizes in torch's terms, dims, what is lost
LOWERED: list[tuple[ShapeSpec, dict[str, DimRange], str, ShapeSpec, dict[str, DimRange], tuple[str, ...]]] = [
    (
        shape("x", "32 - x"),
        {"x": DimRange(0, 64)},
        "True",
        shape("x", "_1"),
        {"x": DimRange(0, 32), "_1": DimRange(0, 32)},
        ("the size -x + 32",),
    ),
    (
        shape("x", "y"),
        {"x": DimRange(0, 64), "y": DimRange(0, 9)},
        "y == 2*x + 1",
        shape("x", "2*x + 1"),
        {"x": DimRange(0, 4)},
        (),
    ),
    (
        shape("x", "y"),
        {"x": DimRange(1, 64), "y": DimRange(1, 64)},
        "x + y == 32",
        shape("x", "y"),
        {"x": DimRange(1, 64), "y": DimRange(1, 64)},
        ("the relation x + y == 32",),
    ),
    (shape("h"), {"h": DimRange(2, 64)}, "h % 4 == 1", shape("4*_h + 1"), {"_h": DimRange(1, 15)}, ()),
    (
        shape("h"),
        {"h": DimRange(2, 64)},
        "h % 4 == 0 and h % 6 == 0",
        shape("12*_h"),
        {"_h": DimRange(1, 5)},
        (),
    ),
    (shape("h"), {"h": DimRange(2, 64)}, "h//4 == 2", shape("h"), {"h": DimRange(8, 11)}, ()),
    (
        shape("h"),
        {"h": DimRange(2, 64)},
        "h < 4 or h > 10",
        shape("h"),
        {"h": DimRange(2, 64)},
        ("the relation h <= 3 or 11 <= h",),
    ),
    (shape("h"), {"h": DimRange(2, None)}, "h == 7", shape(7), {}, ()),
    (shape("h", "w"), {"h": DimRange(), "w": DimRange()}, "h == w", shape("w", "w"), {"w": DimRange()}, ()),
    (
        shape("h*w", "h*w"),
        {"h": DimRange(1, 3), "w": DimRange(1, 3)},
        "True",
        shape("_1", "_1"),
        {"h": DimRange(1, 3), "w": DimRange(1, 3), "_1": DimRange(1, 9)},
        ("the size h*w",),
    ),
    (shape("h - 5"), {"h": DimRange(0, 9)}, "True", shape("h - 5"), {"h": DimRange(5, 9)}, ()),
    (shape("4*h"), {"h": DimRange(0, LARGEST)}, "True", shape("4*h"), {"h": DimRange(0, LARGEST // 4)}, ()),
    (shape("h"), {"h": DimRange(0, LARGEST)}, "True", shape("h"), {"h": DimRange(0, LARGEST)}, ()),
]


@pytest.mark.parametrize("given_sizes, dims, relation, wanted, wanted_dims, lost", LOWERED)
def test_lowering(
    given_sizes: ShapeSpec,
    dims: dict[str, DimRange],
    relation: str,
    wanted: ShapeSpec,
    wanted_dims: dict[str, DimRange],
    lost: tuple[str, ...],
) -> None:
    found = lower(DimSpec(given_sizes, dims, (parse_formula(relation),)))
    assert found.spec.shapes == wanted and found.spec.dims == wanted_dims
    assert len(found.lost) == len(lost)
    assert all(part in told for part, told in zip(lost, found.lost, strict=True))
    assert found.spec.exact == (not lost)


EMPTY = ["h < 2", "h % 2 == 0 and h % 2 == 1", "h == 3 and h == 4", "h == w and h == w + 1", "False"]


@pytest.mark.parametrize("relation", EMPTY)
def test_no_sizes_left_is_told(relation: str) -> None:
    spec = DimSpec(shape("h", "w"), {"h": DimRange(2, 64), "w": DimRange(2, 64)}, (parse_formula(relation),))
    with pytest.raises(DimSpecError, match=r"no sizes|is left"):
        lower(spec)


# ---- the command line


def test_the_command_converts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(ours_json(relations=["dx % 4 == 0", "dx != 8"])))
    assert main(["spec", str(path), "--to", "torch"]) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["dynamic_shapes"] == [["4*_dx", 3]]
    assert printed.err == "anyshape: lost: the relation _dx != 2\n"
    path.write_text(json.dumps(spec_json()))
    assert main(["spec", str(path)]) == 0
    assert json.loads(capsys.readouterr().out) == ours_json()


def test_the_command_reads_the_standard_input(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(json.dumps(spec_json()).encode())))
    assert main(["spec", "-", "--to", "torch"]) == 0
    assert json.loads(capsys.readouterr().out) == spec_json()


@pytest.mark.parametrize("content, part", [
    (b"{", "not valid JSON"), (None, "cannot be read"), (b'{"dynamic_shapes": ["dx"], "dims": {}}', "'dx'"),
])
def test_the_command_tells_of_bad_specs(
    content: bytes | None, part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "spec.json"
    if content is not None:
        path.write_bytes(content)
    assert main(["spec", str(path)]) == 2
    told = capsys.readouterr().err
    assert part in told and "Traceback" not in told


def test_the_command_needs_no_torch(tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(spec_json()))
    source = (
        "import sys; from anyshape.typecheck.cli.main import main\n"
        f"assert main(['spec', {str(path)!r}, '--to', 'torch']) == 0\n"
        "assert not {'torch', 'z3', 'sympy'} & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", source], check=True, stdout=subprocess.DEVNULL)


def test_relations_go_to_json_and_back() -> None:
    relations = tuple(map(parse_formula, ("x + y == 32", "x < 4 or x > 10", "x*y >= 7", "x // y <= 3")))
    shapes = Entries((("x", shape("x", "32 - x")), ("y", shape("x*y"))))
    spec = DimSpec(shapes, {"x": DimRange(1, 32), "y": DimRange(1)}, relations, False)
    data = to_json(spec)
    assert data["relations"][1] == "x <= 3 or 11 <= x" and data["exact"] is False
    assert data["dims"]["x"] == {"min": 1, "max": 32, "derived": ["-x + 32"]}
    assert from_json(data) == spec
    with pytest.raises(torch._dynamo.exc.UserError):  # torch refuses what it would misread
        _load_dynamic_shapes(data, from_dict=True)
