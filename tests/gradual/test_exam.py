"""The entry exam: the questions of torch's 118 test functions for gradual types, with the answers that they
have there, save where eager torch shows these wrong.

Whatever is answered is held against eager runs: a static migration is run and each node has the shapes that
it says, and where there is none, none of many inputs runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from math import prod
from random import Random
from typing import Any

import pytest
import torch
from torch import fx
from torch.fx import symbolic_trace
from torch.fx.annotate import annotate
from torch.fx.experimental.rewriter import RewritingTracer
from torch.fx.tensor_type import Dyn, TensorType

from anyshape.constraints.ir.lattice import (
    Plain,
    Ranked,
    Type,
    is_consistent,
    is_more_precise,
    is_static,
    meet,
    rowed,
)
from anyshape.tracer.readers.fx import placeholders
from anyshape.tracer.readers.tensor_types import from_torch
from anyshape.typecheck import branches, check, infer_symbolic, migrate
from benchmarks.networks import AlexNet, ResNet
from gradual.exam import UNIFICATION, Z3, D, Row

REFUSALS = (RuntimeError, ValueError, IndexError, TypeError)


def eager(row: Row, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Any]:
    """What each node of the program is in an eager run with inputs of these shapes."""
    graph_module = row.graph()
    dtypes = {name: dtype for name, _, dtype in placeholders(graph_module)}
    device = "meta" if any(prod(shape) > 1_000_000 for shape in shapes.values()) else "cpu"
    inputs = [
        torch.zeros(shapes[name], dtype=getattr(torch, dtypes[name] or "float32"), device=device)
        if name in shapes else 2
        for name in row.types
    ]  # fmt: skip
    run = Shapes(graph_module)
    run.run(*inputs)
    return run.seen


class Shapes(fx.Interpreter):
    """Runs a graph and keeps what each node is."""

    def __init__(self, graph_module: fx.GraphModule) -> None:
        super().__init__(graph_module)
        self.seen: dict[str, Any] = {}

    def run_node(self, n: fx.Node) -> Any:
        value = self.seen[n.name] = super().run_node(n)
        claimed = isinstance(n.type, TensorType) and isinstance(value, torch.Tensor)
        if claimed and not is_consistent(from_torch(n.type), Ranked(tuple(value.shape))):
            raise RuntimeError(f"{n.name} is not of its annotation {n.type}")
        return value


def agrees(type: Type, value: Any) -> bool:
    """Is the value of an eager run of the type?"""
    if isinstance(value, torch.Tensor):
        return is_more_precise(Ranked(tuple(value.shape)), type)
    if isinstance(value, bool | int):
        return type == Plain("bool" if isinstance(value, bool) else "int") or str(type) == "Dyn"
    return True


def candidates(row: Row, count: int) -> Iterator[dict[str, tuple[int, ...]]]:
    """Inputs that the annotations allow: the sizes of the program among others."""
    random = Random(row.test)
    seen = set()
    for _ in range(count):
        made = {}
        for name, annotation in row.types.items():
            if isinstance(annotation, tuple):
                sizes = annotation
            elif annotation is ...:
                sizes = (D,) * random.randrange(6)
            else:
                continue
            made[name] = tuple(random.choice((1, 2, 3, 4, 5, 6, 8, 20)) if n == D else n for n in sizes)
        if tuple(made.items()) not in seen:
            seen.add(tuple(made.items()))
            yield made


def ask(row: Row) -> None:
    graph_module = row.graph()
    found = migrate(graph_module, assume=row.assume)
    assert found.is_decided, found.report
    assert (found.static is not None) == row.answer, found.report
    for name, type in row.shared.items():
        assert str(found.principal[name]) == type, (name, {n: str(t) for n, t in found.principal.items()})
    if found.static is None:
        for shapes in candidates(row, 40):
            with pytest.raises(REFUSALS):
                eager(row, shapes)
        return
    static = found.static.types
    shapes = {name: t.dims for name, t in static.items() if name in row.types and isinstance(t, Ranked)}
    for name, value in eager(row, shapes).items():  # type: ignore[arg-type]
        assert agrees(static[name], value), (name, static[name], value)
        assert agrees(found.principal[name], value) and is_more_precise(static[name], found.principal[name])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("row", [*Z3, *UNIFICATION], ids=str)
def test_question(row: Row) -> None:
    ask(row)


@pytest.mark.parametrize("row", [r for r in (*Z3, *UNIFICATION) if r.torch is not None], ids=str)
def test_where_torch_is_wrong_eager_torch_shows_it(row: Row) -> None:
    assert row.torch is False and row.answer is True and row.runs is not None and row.why
    eager(row, row.runs)


def test_a_wrong_answer_would_be_noticed() -> None:
    (right,) = [r for r in Z3 if r.test == "test_add_padding_4"]
    with pytest.raises(AssertionError):
        ask(Row(right.test, right.body, right.types, False))
    with pytest.raises(AssertionError):
        ask(Row(right.test, right.body, right.types, True, {"output": "[2, 4]"}))


# ---- every solution that torch adds to its constraints as one more equation


@pytest.mark.parametrize("claims, answer", [("2 1", True), ("5 _ 1", True), ("9 _", False)])
def test_reshape_dyn_with_more_constraints(claims: str, answer: bool) -> None:
    graph_module = symbolic_trace(Row("", "torch.reshape(x, (2, -1))", {"x": (D,)}, True).module())
    found = migrate(graph_module, "x: [n]", "n == 2 or n == 4 or n == 9")
    assert sorted(m.sizes["n"] for m in found.maximal()) == [2, 4]


@pytest.mark.slow
def test_the_batch_of_a_result_is_that_of_the_input() -> None:
    """test_resnet502, test_resnet503: a batch above 4 comes out, and it is never another one."""
    graph_module = symbolic_trace(ResNet((3, 4, 6, 3), 4).eval())
    found = migrate(graph_module, "x: [b, 3, 224, 224]", "b > 4")
    assert str(found.types["fc"]) == "[b, 1000]"
    assert found.static is not None and found.static.sizes["b"] > 4
    assert found.static.types["fc"] == Ranked((found.static.sizes["b"], 1000))


# ---- conditions


@pytest.mark.parametrize("body, x, outcome", [
    ("x.dim() == 3", (32, 4, 4), True),  # test_eq_dim
    ("x.size()[-1] > 1", (D, 4), True),  # test_gt, test_conditional
    ("x.size()[-1] > 1", (D, D), None),
    ("x.size()[-1] < 1", (D, 4), False),  # test_conditional_2
    ("size = x.size()\nx.size() != (size[0], size[1], size[2])", (32, 4, 4), False),  # test_conditional_ne_1
])  # fmt: skip
def test_conditions(body: str, x: Any, outcome: bool | None) -> None:
    (*_, found) = branches(Row("", body, {"x": x}, True).graph())
    assert found.outcome is outcome and found.replayed


# ---- networks


SIZES = [((1, 3, 224, 224), True), ((D, D, D, D), True), ((1, 3, 224), False), ((D, 4, 224, 224), False)]


@pytest.mark.slow
@pytest.mark.parametrize("x, answer", SIZES)
def test_resnet50(x: tuple[Any, ...], answer: bool) -> None:
    """test_resnet50, test_resnet50_unsat of both files."""
    model = ResNet((3, 4, 6, 3), 4).eval()
    graph_module = symbolic_trace(model)
    next(iter(graph_module.graph.nodes)).type = TensorType(x)
    found = migrate(graph_module)
    assert found.is_decided and (found.static is not None) == answer
    if found.static is not None:
        types = found.static.types
        run = Shapes(symbolic_trace(model))
        with torch.no_grad():
            run.run(torch.zeros(types["x"].dims))  # type: ignore[union-attr]
        assert all(agrees(types[name], value) for name, value in run.seen.items())
        infer_symbolic(graph_module)
        batches = {str(n.type.__args__[0]) for n in graph_module.graph.nodes}
        assert len(batches) == 1


@pytest.mark.slow
@pytest.mark.parametrize("x, answer", [
    ((10, 3, 227, 227), True), ((D, 4, 227, 227), False), ((D, D, 227, 227), True), ((D, D, 227), False),
])  # fmt: skip
def test_alexnet(x: tuple[Any, ...], answer: bool) -> None:
    """test_alexnet1 to test_alexnet4."""
    model = AlexNet().eval()
    graph_module = symbolic_trace(model)
    next(iter(graph_module.graph.nodes)).type = TensorType(x)
    found = migrate(graph_module)
    assert found.is_decided and (found.static is not None) == answer
    if x == (10, 3, 227, 227):
        said = {str(found.principal[n]) for n in ("features_0", "features_1", "features_2", "features_12")}
        assert said == {"[10, 64, 56, 56]", "[10, 64, 27, 27]", "[10, 256, 6, 6]"}
        assert str(found.principal["flatten"]) == "[10, 9216]"
        assert str(found.principal["output"]) == "[10, 1000]"


# ---- annotations, and the order of types


def test_annotations() -> None:
    """test_annotations: what stands in the signature stands on the inputs of the graph."""
    row = Row("", "torch.add(x, y)", {"x": (1, 2, 3, D), "y": (D,)}, True)
    module = row.module()
    type(module).forward.__annotations__ = {"x": TensorType((1, 2, 3, Dyn)), "y": TensorType((Dyn,))}
    for target in (module, symbolic_trace(module)):
        assert check(target).inputs == ("x: float32[1, 2, 3, _1]", "y: float32[_2]")


def test_annotate() -> None:
    """test_annotate: a type that a program gives to its input."""

    class Annotating(torch.nn.Module):
        def forward(self, x):
            y = annotate(x, TensorType((1, 2, 3, Dyn)))
            return torch.add(x, y)

    assert check(symbolic_trace(Annotating())).inputs == ("x: float32[1, 2, 3, _1]",)


def test_inner_annotations_of_the_rewriting_tracer() -> None:
    class Annotating(torch.nn.Module):
        def forward(self, x):
            y: TensorType((2, Dyn)) = x.flatten(1)
            return y + 1

    Annotating.forward.__globals__.update(TensorType=TensorType, Dyn=Dyn)
    tracer = RewritingTracer()
    try:
        graph = tracer.trace(Annotating())
    except (OSError, SyntaxError, IndentationError, RuntimeError) as error:
        pytest.skip(f"torch's tracer does not rewrite it: {error}")
    graph_module = fx.GraphModule(tracer.root, graph)
    found = migrate(graph_module, "x: [b, c, h]")
    assert str(found.principal["flatten"]) == "[2, Dyn]"


CONSISTENT = [
    ((1, 2, 3), (1, D, 3), True), (int, D, True), (int, int, True), ((1, 2, 3), (1, 2, 3, 5), False),
    ((1, 2, 3), int, False),
]  # fmt: skip


@pytest.mark.parametrize("a, b, answer", CONSISTENT)
def test_consistency_and_precision(a: Any, b: Any, answer: bool) -> None:
    """test_consistency, test_precision: of these pairs the first is the more precise, too."""
    one, other = (from_torch(TensorType(t) if isinstance(t, tuple) else t) for t in (a, b))
    assert is_consistent(one, other) == is_consistent(other, one) == answer
    assert is_more_precise(one, other) == answer


NO = from_torch(Dyn)


def test_relations_among_types() -> None:
    """test_precision, test_matching, test_consistency of the internal constraints: as precise as Dyn is
    anything, as [1, Dyn, 3] what has rank 3; what matches rank 4 is that or Dyn, and so is what is consistent
    with rank 2.
    """
    shapes = (), (1,), (1, 2), (1, 2, 3), (1, NO, 3), (2, 2, 3), (1,) * 4
    some = [Plain("int"), *map(Ranked, shapes)]
    assert all(is_more_precise(t, from_torch(Dyn)) for t in some)
    pattern = from_torch(TensorType((1, D, 3)))
    assert {t for t in some if is_more_precise(t, pattern)} == {Ranked((1, 2, 3)), pattern}
    four = Ranked((NO,) * 4)
    assert meet(from_torch(Dyn), four) == (four,) and meet(rowed((), ()), four) == (four,)
    two = Ranked((NO, NO))
    assert [t for t in some if is_consistent(t, two)] == [Ranked((1, 2))]
    assert is_consistent(from_torch(Dyn), two)
    assert not is_static(two)


BROADCASTS = [
    ((1, 2, 3, 4), (1, 2, 1, 4), "[1, 2, 3, 4]"), ((), (4, 1), "[4, 1]"), ((4, 4, 4), (1,), "[4, 4, 4]"),
    ((2, 3, 4), (1, 2, 1, 4), "[1, 2, 3, 4]"), ((1, 2, 3, D), (2, 3, 4), "[1, 2, 3, 4]"),
]  # fmt: skip


@pytest.mark.parametrize("x, y, result", BROADCASTS)
def test_broadcasting(x: Any, y: Any, result: str) -> None:
    """test_broadcasting1 to test_broadcasting3."""
    ask(Row("test_broadcasting", "torch.add(x, y)", {"x": x, "y": y}, True, {"output": result}))


# ---- symbolic types


def symbolic(row: Row) -> dict[str, str]:
    graph_module = row.graph()
    infer_symbolic(graph_module)
    return {n.name: str(list(getattr(n.type, "__args__", ()))) for n in graph_module.graph.nodes}


def test_symbolic_inference() -> None:
    """test_symbolic_add_with_broadcast and _2, test_type_check_conv2D_types,
    test_type_check_symbolic_inferenceconv2D_maxpool2d_flatten.
    """
    rows = {r.test: r for r in UNIFICATION}
    assert symbolic(rows["test_symbolic_add_with_broadcast"])["x"] == "[1, 2, 3, _1]"
    two = symbolic(rows["test_symbolic_add_with_broadcast_2"])
    assert two["y"] == two["add"] == two["output"] == "[_1, 2]"
    layers = next(r for r in Z3 if r.test == "test_conv2D_maxpool2d_flatten")
    types = symbolic(Row("", layers.body, {"x": (4, 3, D, D)}, True, modules=layers.modules))
    assert types["conv1"] == "[4, 6, _1 - 4, _2 - 4]"
    assert types["conv2"] == "[4, 16, floor(_1/2) - 6, floor(_2/2) - 6]"
    stride = Row("", "self.conv(x)", {"x": (D, 2, D, D)}, True,
                 modules=lambda: {"conv": torch.nn.Conv2d(2, 2, 3, 2, 1)})  # fmt: skip
    assert symbolic(stride)["conv"].count("floor") == 2


def test_all_functions_of_torch_are_here() -> None:
    """80 functions in the one file, 38 in the other; those that are not rows have tests of their own above.
    """
    asked = {r.test for r in Z3}
    others = {"test_resnet50", "test_resnet50_unsat", "test_resnet502", "test_resnet503", "test_alexnet1",
              "test_alexnet2", "test_alexnet3", "test_alexnet4", "test_precision", "test_matching",
              "test_consistency"}  # fmt: skip
    assert len(asked) + len(others) == 80
    unification = {r.test for r in UNIFICATION}
    others = {"test_annotations", "test_annotate", "test_consistency", "test_precision", "test_broadcasting1",
              "test_broadcasting2", "test_broadcasting3", "test_resnet50", "test_type_check_conv2D_types",
              "test_type_check_symbolic_inferenceconv2D_maxpool2d_flatten"}  # fmt: skip
    assert len(unification) + len(others) == 38


def test_solutions_of_every_row_run() -> None:
    """Not one migration alone, but some more of each program of known ranks."""
    for row in (r for r in Z3 if r.answer and not r.has_rows and "self." not in r.body):
        for one in islice(migrate(row.graph(), assume=row.assume).maximal(), 4):
            shapes = {n: t.dims for n, t in one.types.items() if n in row.types and isinstance(t, Ranked)}
            for name, value in eager(row, shapes).items():  # type: ignore[arg-type]
                assert agrees(one.types[name], value)
