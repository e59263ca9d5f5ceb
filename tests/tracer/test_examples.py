"""What examples have in common, and torch's contract for what changes among them."""

from __future__ import annotations

import copy
import inspect
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.fx.experimental import _dynamism as theirs

from anyshape.constraints.ir.spec import Spec
from anyshape.constraints.ir.spec_text import SpecError, parse_spec, write_spec
from anyshape.constraints.ir.system import Domain
from anyshape.constraints.terms.formula import holds
from anyshape.tracer.readers.dynamism import (
    clone_and_convert_to_meta,
    module_to_nested_dict,
    normalize_source_name,
    track_dynamism_across_examples,
)
from anyshape.tracer.readers.examples import common, proposals, read


def t(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype)


# ---- torch's contract


class Leaf(torch.nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(t(size, 3))
        self.register_buffer("mean", t(size))
        self.steps, self.rate, self.flag, self.label = size, 0.5, True, "leaf"


class Tree(torch.nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.left, self.right = Leaf(size), Leaf(4)
        self.size = size


# examples that torch gets right
RIGHT: list[list[Any]] = [
    [{"x": 1, "y": t(1, 1), "z": {0: t(1)}}, {"x": 2, "y": t(2, 1), "z": {0: t(2)}}],
    [{"x": 1.5, "y": [t(2, 3), t(4)]}, {"x": 1.5, "y": [t(2, 5), t(4)]}],
    [{"x": (t(2), {"k": t(3, 4)})}, {"x": (t(2), {"k": t(3, 5)})}],
    [{"s": "text", "n": None, "x": t(2)}, {"s": "other", "n": None, "x": t(2)}],
    [{"x": t(), "n": 3}, {"x": t(), "n": 4}],
    [{"x": t(2)}],
    [{"self": Tree(2), "x": t(2)}, {"self": Tree(3), "x": t(2)}],
    [],
]


@pytest.mark.parametrize("examples", RIGHT)
def test_where_torch_is_right_we_say_the_same(examples: list[Any]) -> None:
    ours = track_dynamism_across_examples(examples)
    assert ours == theirs.track_dynamism_across_examples([dict(e) for e in examples])


def test_a_comparison_with_torch_can_fail() -> None:
    assert track_dynamism_across_examples(RIGHT[0]) != theirs.track_dynamism_across_examples(RIGHT[0][:1])


def test_examples_are_left_as_they_are() -> None:
    module, ours = Tree(2), {"self": Tree(2)}
    example = {"self": module}
    theirs.track_dynamism_across_examples([example])
    assert example["self"] is not module
    kept = ours["self"]
    track_dynamism_across_examples([ours, {"self": Tree(3)}])
    assert ours["self"] is kept


nan = float("nan")

# examples, what changes, what torch says
WRONG: list[tuple[list[Any], dict[str, tuple[bool, ...]], Any]] = [
    ([{"x": t(2)}, {"x": t(2, 3)}], {"L['x']": (True, True)}, (False, False)),  # a rank
    ([{"x": t(2, 3)}, {}], {"L['x']": (True, True)}, (False, False)),  # a missing input
    ([{}, {"x": t(2)}], {"L['x']": (True,)}, (False,)),
    ([{"x": None}, {"x": t(2)}], {"L['x']": (True,)}, (False,)),
    ([{"x": t()}, {"x": None}], {"L['x']": (True,)}, ()),
    ([{"x": t(3)}, {"x": 3}], {"L['x']": (True,)}, (False,)),  # a tensor and an integer
    ([{"x": True}, {"x": 1}], {"L['x']": (True,)}, (False,)),
    ([{"x": 1}, {"x": 1.0}], {"L['x']": (True,)}, (False,)),
    ([{"x": "text"}, {"x": 1}], {"L['x']": (True,)}, (False,)),
    ([{"x": nan}, {"x": float("nan")}], {"L['x']": (False,)}, (True,)),
    ([{"x": nan}, {"x": 1.0}], {"L['x']": (True,)}, (True,)),
]


@pytest.mark.parametrize("examples, changes, torchs", WRONG)
def test_what_torch_gets_wrong(
    examples: list[Any], changes: dict[str, tuple[bool, ...]], torchs: tuple[bool, ...]
) -> None:
    assert theirs.track_dynamism_across_examples(copy.copy(examples)) == {"x": {"L['x']": torchs}}
    assert track_dynamism_across_examples(examples) == {"x": changes}


# examples, result; torch raises
CRASHES: list[tuple[list[Any], Any]] = [
    ([(t(2), t(3)), (t(4), t(3))], {0: {"L[0]": (True,)}, 1: {"L[1]": (False,)}}),
    ([[t(2)], [t(4)]], {0: {"L[0]": (True,)}}),
    ([t(2, 3), t(4, 3)], {"": {"L": (True, False)}}),
    ([3, 4], {"": {"L": (True,)}}),
]


@pytest.mark.parametrize("examples, result", CRASHES)
def test_what_torch_crashes_on(examples: list[Any], result: Any) -> None:
    with pytest.raises((AttributeError, TypeError, IndexError, RuntimeError)):
        theirs.track_dynamism_across_examples(copy.copy(examples))
    assert track_dynamism_across_examples(examples) == result


def test_named_tuples_have_names() -> None:
    pair = namedtuple("pair", "left right")
    assert track_dynamism_across_examples([pair(t(2), 1), pair(t(3), 1)]) == {
        "left": {"L.left": (True,)}, "right": {"L.right": (False,)},
    }  # fmt: skip


class Raises(torch.nn.Module):
    steps = 3

    @property
    def broken(self) -> int:
        raise ValueError("no data yet")

    @property
    def missing(self) -> int:
        raise NotImplementedError


def test_a_property_that_raises_is_left_out() -> None:
    with pytest.raises(ValueError, match="no data"):
        theirs.module_to_nested_dict(Raises())
    found = module_to_nested_dict(Raises())
    assert found["steps"] == 3 and "broken" not in found and "missing" not in found


def test_a_module_is_the_dict_that_torch_makes_of_it() -> None:
    model = Tree(2)
    ours, torchs = module_to_nested_dict(model), theirs.module_to_nested_dict(model)
    assert ours.keys() == torchs.keys() and "flag" not in ours["_modules"]["left"]
    assert ours["_modules"].keys() == {"left", "right"}
    assert ours["_modules"]["left"].keys() == torchs["_modules"]["left"].keys()
    assert ours["_modules"]["left"]["_parameters"].keys() == {"weight", "mean"}
    assert ours["_modules"]["left"]["steps"] == 2 and ours["size"] == 2


# name, normalised
NAMES = [
    ("L['x']", "L['x']"),
    ("L.x", "L['x']"),
    ("L['self'].layers[0].weight", "L['self']['layers'][0]['weight']"),
    ("L['self']._modules['a']._parameters['w']", "L['self']['_modules']['a']['_parameters']['w']"),
    ("x.y.z", "x['y']['z']"),
    ("x.0", "x.0"),
    ("", ""),
]
DOTTED = [
    ("L['x.y']", "L['x.y']"),
    ("L['x.y'].z", "L['x.y']['z']"),
    ('L["x.y"].z', "L[\"x.y\"]['z']"),
    (r"L['it\'s.here'].z", r"L['it\'s.here']['z']"),
    ("L['a]b.c'].z", "L['a]b.c']['z']"),
    ("L[x.y].z", "L[x.y]['z']"),
]


@pytest.mark.parametrize("name, normal", NAMES)
def test_source_names(name: str, normal: str) -> None:
    assert normalize_source_name(name) == normal == theirs.normalize_source_name(name)


@pytest.mark.parametrize("name, normal", DOTTED)
def test_a_dot_inside_a_key_is_part_of_it(name: str, normal: str) -> None:
    assert normalize_source_name(name) == normal != theirs.normalize_source_name(name)


def test_meta_clones_keep_their_strides() -> None:
    expanded = torch.ones(3, 1, requires_grad=True).expand(3, 4)
    assert theirs.clone_and_convert_to_meta(expanded).stride() != expanded.stride()
    tensors = {
        "expanded": expanded,
        "transposed": t(2, 3).t(),
        "strided": t(8)[::2],
        "scalar": t(),
        "half": t(2, dtype=torch.float16),
        "last": t(2, 3, 4, 5).to(memory_format=torch.channels_last),
    }
    clones = clone_and_convert_to_meta([tensors, 3, "text"])
    assert clones[1:] == [3, "text"]
    for name, tensor in tensors.items():
        clone = clones[0][name]
        assert clone.is_meta and clone.dtype == tensor.dtype, name
        assert (clone.shape, clone.stride()) == (tensor.shape, tensor.stride()), name
        assert clone.requires_grad == tensor.requires_grad, name
    assert clone_and_convert_to_meta(torch.eye(3).to_sparse()).shape == (3, 3)


# ---- a spec


def takes(
    x: Any, y: Any = None, *, mask: Any = None, n: int = 1, flag: bool = False, how: str = "", p: float = 0.5
) -> None:
    """A signature for examples."""


def spec_of(*examples: Any) -> tuple[str, ...]:
    return write_spec(Spec(common(inspect.signature(takes), examples).inputs, Domain()))


# examples, the spec
SPECS: list[tuple[tuple[Any, ...], tuple[str, ...]]] = [
    ((t(2, 3), t(4, 3)), ("x: float32[x_0, 3]",)),
    (((t(2, 3),), (t(4, 3),)), ("x: float32[x_0, 3]",)),
    (([t(2), t(3)], [t(4), t(3)]), ("x: float32[x_0]", "y: float32[3]")),
    (({"x": t(2), "mask": t(5, dtype=torch.bool)}, {"mask": t(7, dtype=torch.bool), "x": t(2)}), (
        "x: float32[2]", "mask: bool[mask_0]",
    )),
    (({"x": {"ids": t(2, 8, dtype=torch.int64), "n": 3}}, {"x": {"ids": t(2, 9, dtype=torch.int64), "n": 4}}),
     ('x["ids"]: int64[2, x_ids_1]', 'x["n"]: int')),
    ((([t(2), t(3)],), ([t(4), t(3)],)), ("x[0]: float32[x_0_0]", "x[1]: float32[3]")),
    (({"x": t(), "n": 3, "flag": True, "how": "up", "p": 0.5},
      {"x": t(), "n": 5, "flag": True, "how": "up", "p": 0.5}),
     ("x: float32[]", "n: int", "flag=True", 'how="up"', "p=0.5")),
    (({"x": t(2), "p": 0.5}, {"x": t(2), "p": 0.7}), ("x: float32[2]", "p: float")),
    (({"x": t(2), "p": nan}, {"x": t(2), "p": nan}), ("x: float32[2]", "p: float")),
    (((t(2), None), (t(3), None)), ("x: float32[x_0]", "y=None")),
    (((t(2), t(2)), (t(3), t(3))), ("x: float32[x_0]", "y: float32[y_0]")),
    ((torch.empty(2, device="meta"), torch.empty(3, device="meta")), ("x: float32[x_0]",)),
]  # fmt: skip


@pytest.mark.parametrize("examples, spec", SPECS)
def test_sizes_that_vary_are_symbols(examples: tuple[Any, ...], spec: tuple[str, ...]) -> None:
    assert spec_of(*examples) == spec
    assert parse_spec(spec).inputs == common(inspect.signature(takes), examples).inputs


# examples, parts of the message
REFUSED: list[tuple[tuple[Any, ...], tuple[str, ...]]] = [
    ((), ("no examples", "two or more")),
    ((t(2),), ("one example", "two or more")),
    ((t(2), t(2, 3)), ("x is a float32 tensor of rank 1 in example 1", "rank 2 in example 2")),
    ((t(2), t(2, dtype=torch.int64)), ("float32", "int64")),
    (((t(2),), (t(2), t(3))), ("y is missing in example 1", "float32 tensor of rank 1 in example 2")),
    (((t(2), None), (t(2), t(3))), ("y is None in example 1",)),
    (({"x": t(2), "n": 1}, {"x": t(2), "n": True}), ("n is an integer in example 1", "True in example 2")),
    (({"x": t(2), "n": 1}, {"x": t(2), "n": 1.0}), ("an integer", "a float")),
    (({"x": t(2), "flag": True}, {"x": t(2), "flag": False}), ("flag is True", "False")),
    (({"x": t(2), "how": "up"}, {"x": t(2), "how": "down"}), ("'up'", "'down'")),
    ((([t(2)],), ([t(2), t(3)],)), ("x[1] is missing in example 1",)),
    (({"x": t(2), "z": 1}, {"x": t(2), "z": 1}), ("does not fit", "'z'", "takes")),
    (({"x": object()}, {"x": t(2)}), ("x is of type object",)),
    (({"x": {3: t(2)}}, {"x": {3: t(2)}}), ("x has the key 3",)),
    (({3: t(2)}, {3: t(2)}), ("the argument 3",)),
    (("text", "text"), ("of type str",)),
]


@pytest.mark.parametrize("examples, parts", REFUSED)
def test_examples_of_several_kinds_are_refused(examples: tuple[Any, ...], parts: tuple[str, ...]) -> None:
    with pytest.raises(SpecError) as raised:
        spec_of(*examples)
    assert all(part in str(raised.value) for part in parts), raised.value


def test_variadic_parameters_and_builtins() -> None:
    def several(*xs: Any, **more: Any) -> None:
        """Takes anything."""

    found = common(inspect.signature(several), [{"k": t(2)}, {"k": t(3)}])
    assert write_spec(Spec(found.inputs, Domain())) == ("k: float32[k_0]",)
    found = common(inspect.signature(several), [(t(2), t(3)), (t(4), t(3))])
    assert write_spec(Spec(found.inputs, Domain())) == ("xs[0]: float32[xs_0_0]", "xs[1]: float32[3]")
    found = common(None, [(t(2),), (t(4),)])
    assert write_spec(Spec(found.inputs, Domain())) == ("input0: float32[input0_0]",)


def test_places_and_values() -> None:
    found = common(inspect.signature(takes), [{"x": [t(2, 3)], "n": 4}, {"x": [t(5, 3)], "n": 6}])
    assert {name: str(place) for name, place in found.places.items()} == {"x_0_0": "x[0].shape[0]", "n": "n"}
    assert found.example(1) == {"x_0_0": 5, "n": 6}


def test_symbols_of_one_name_are_told_apart() -> None:
    def clash(x: Any, x_0: int) -> None:
        """A parameter that is called as a symbol."""

    found = common(inspect.signature(clash), [(t(2), 5), (t(3), 7)])
    assert [*found.places] == ["x_0", "x_0_"]
    assert write_spec(Spec(found.inputs, Domain())) == ("x: float32[x_0]", "x_0: int = x_0_")


# ---- relations

# values, what is proposed first
RELATED: list[tuple[dict[str, tuple[int, ...]], list[str]]] = [
    ({"x": (2, 3), "y": (2, 3)}, ["x == y"]),
    ({"x": (2, 3, 5), "y": (4, 6, 10)}, ["2*x == y"]),
    ({"x": (2, 3, 5), "y": (5, 7, 11)}, ["2*x + 1 == y"]),
    ({"x": (10, 20, 30), "y": (7, 14, 21)}, ["7*x == 10*y"]),
    ({"x": (10, 20), "y": (22, 12)}, ["x + y == 32"]),
    ({"x": (2, 3, 5), "y": (4, 6, 9)}, []),
    ({"x": (2, 9), "y": (40, 71)}, []),  # through two points there is always a line
    ({"x": (2, 3, 5), "y": (7, 4, 2), "z": (9, 7, 7)}, ["x + y == z"]),
    ({"x": (2, 3, 5), "y": (7, 4, 2), "z": (14, 12, 10)}, ["x*y == z"]),
    ({"x": (2, 3), "y": (2, 3), "z": (4, 6)}, ["x == y", "2*x == z", "2*y == z", "x + y == z"]),
]


@pytest.mark.parametrize("values, wanted", RELATED)
def test_relations(values: dict[str, tuple[int, ...]], wanted: list[str]) -> None:
    assert [str(f) for f in proposals(values)] == wanted


@given(st.lists(st.lists(st.integers(0, 12), min_size=4, max_size=4), min_size=2, max_size=4))
@settings(max_examples=200, deadline=None)
def test_what_is_proposed_holds_in_all_examples(examples: list[list[int]]) -> None:
    columns = dict(zip("abcd", zip(*examples, strict=True), strict=True))
    values = {name: column for name, column in columns.items() if len({*column}) > 1}
    for formula in proposals(values):
        for index in range(len(examples)):
            assert holds(formula, {name: column[index] for name, column in values.items()}), formula


SEVERAL = st.lists(st.integers(2, 30), min_size=3, max_size=5, unique=True)


@given(st.integers(1, 5), st.integers(-3, 5), SEVERAL)
@settings(max_examples=100, deadline=None)
def test_a_linear_relation_is_found(factor: int, constant: int, xs: list[int]) -> None:
    (found, *_) = proposals({"x": tuple(xs), "y": tuple(factor * x + constant for x in xs)})
    for x in range(20):
        for y in range(120):
            assert holds(found, {"x": x, "y": y}) == (y == factor * x + constant)


# ---- files


class Hostile:
    def __reduce__(self) -> Any:
        return open, ("hostile-code-ran", "w")


def test_a_file_of_examples_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save([Hostile()], "bad.pt")
    with pytest.raises(SpecError, match="tensors and plain values"):
        read("bad.pt")
    assert not Path("hostile-code-ran").exists()
    torch.load("bad.pt", weights_only=False)  # it would have
    assert Path("hostile-code-ran").exists()


@pytest.mark.parametrize("content", [b"", b"text", b"PK\x03\x04", b"\x80\x02."])
def test_a_file_of_something_else_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "bad.pt").write_bytes(content)
    with pytest.raises(SpecError, match="holds no examples"):
        read(str(tmp_path / "bad.pt"))


def test_files(tmp_path: Path) -> None:
    path = str(tmp_path / "inputs.pt")
    torch.save([(t(2), {"a": 3}), (t(3), {"a": 4})], path)
    assert [e[0].shape[0] for e in read(path)] == [2, 3]
    torch.save(t(2), path)
    with pytest.raises(SpecError, match="holds a Tensor"):
        read(path)
    with pytest.raises(SpecError, match="No such file"):
        read(str(tmp_path / "nowhere.pt"))
    with pytest.raises(SpecError, match="cannot be read"):
        read(str(tmp_path))
