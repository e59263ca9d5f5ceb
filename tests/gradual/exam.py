"""The questions of torch's own tests for its gradual checkers, put anew: a row per program and annotation.

The names are those of the tests in `test/fx/test_z3_gradual_types.py` and `test/fx/test_gradual_type.py` of
torch's repository. `answer` says whether there is a static migration; where torch's test has another answer,
`torch` is that, and `runs` are sizes at which an eager run shows it wrong. Sizes are `D` where they are not
known, `...` is a tensor of any rank.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import EllipsisType
from typing import Any

import torch
from torch import nn
from torch.fx import GraphModule, symbolic_trace
from torch.fx.tensor_type import Dyn, TensorType

D = Dyn
Annotation = Any
"""A tuple of sizes, `...` for a tensor of any rank, or a Python type."""


@dataclass(frozen=True)
class Row:
    """One question to one program."""

    test: str
    body: str
    types: Mapping[str, Annotation]
    answer: bool
    shared: Mapping[str, str] = field(default_factory=dict)
    """The principal types of nodes, as they are printed."""
    modules: Callable[[], dict[str, nn.Module]] = dict
    inner: Mapping[str, Annotation] = field(default_factory=dict)
    assume: str = ""
    torch: bool | None = None
    runs: Mapping[str, tuple[int, ...]] | None = None
    """Shapes of the inputs with which it runs, though torch says that there is no migration."""
    why: str = ""

    def __str__(self) -> str:
        return f"{self.test}-{self.types}".replace("Ellipsis", "...").replace(" ", "")

    @property
    def has_rows(self) -> bool:
        """Is an input of any rank?"""
        return any(isinstance(t, EllipsisType) for t in self.types.values())

    def module(self) -> nn.Module:
        """The program, untraced."""
        lines = self.body.strip().split("\n")
        lines[-1] = lines[-1] if lines[-1].lstrip().startswith("return") else f"return {lines[-1]}"
        names: dict[str, Any] = {}
        source = f"def forward(self, {', '.join(self.types)}):\n" + "\n".join(f"    {line}" for line in lines)
        exec(source, {"torch": torch, "F": nn.functional}, names)
        made: nn.Module = type("Program", (nn.Module,), {"forward": names["forward"]})()
        for name, module in self.modules().items():
            made.add_module(name, module)
        return made

    def graph(self) -> GraphModule:
        """The program as a graph with the annotations on its nodes."""
        graph_module = symbolic_trace(self.module())
        for node in graph_module.graph.nodes:
            annotation = {**self.types, **self.inner}.get(node.name)
            node.type = TensorType(annotation) if isinstance(annotation, tuple) else \
                Dyn if annotation is ... else annotation
        return graph_module


def conv(*, i: int = 2, o: int = 2, k: int = 2, s: int = 3, p: int = 2, g: int = 2, d: int = 2) -> nn.Module:
    return nn.Conv2d(i, o, k, s, p, d, g, bias=False)


def conv3x3(i: int, o: int) -> nn.Module:
    return nn.Conv2d(i, o, 3, 1, 1, bias=False)


CONV = {"modules": lambda: {"conv": conv()}}
TABLE = {"modules": lambda: {"table": nn.Embedding(50, 1024, padding_idx=1)}}
LAYERS = {
    "modules": lambda: {
        "conv1": nn.Conv2d(3, 6, 5), "pool": nn.MaxPool2d(2, 2), "conv2": nn.Conv2d(6, 16, 5),
        "fc1": nn.Linear(5, 120), "pool2": nn.AdaptiveAvgPool2d((6, 7)),
    }
}  # fmt: skip
LAYERS_BODY = "torch.flatten(self.pool2(self.fc1(self.pool(self.conv2(self.pool(self.conv1(x)))))), 1)"
HAS_SIZE = "x.view(-1, x.size()[-1])"


def Q(test: str, body: str, answer: bool, /, shared: Any = None, **more: Any) -> Row:
    """A row; types of inputs are those keywords that are not fields."""
    fields = {"modules", "inner", "assume", "torch", "runs", "why"}
    types = {name: value for name, value in more.items() if name not in fields}
    rest = {name: value for name, value in more.items() if name in fields}
    nodes = {"output": shared} if isinstance(shared, str) else shared or {}
    return Row(test, body, types, answer, nodes, **rest)


Z3 = [
    # ---- what torch.compile asked for
    Q("test_dim", "x.dim()", True, "int", x=(1, 2)),
    Q("test_reshape", "x.view(100).size()[0]", True, {"view": "[100]"}, x=...),
    # ---- operators of HuggingFace's models
    Q("test_eq_dim", "x.dim() == 3", True, "bool", x=(32, 4, 4)),
    Q("test_conditional_ne_1", "size = x.size()\ny.size() != (size[0], size[1], size[2])", True, "bool",
      x=(32, 4, 4), y=(32, 4, 4)),
    Q("test_bmm", "torch.bmm(x, y)", True, {"bmm": "[1, 2, 2]", "x": "[1, 2, 3]"}, x=(D, 2, 3), y=(1, 3, 2)),
    Q("test_bmm2", "torch.bmm(x, y)", True, {"bmm": "[1, Dyn, 2]", "x": "[1, Dyn, 3]"}, x=..., y=(1, 3, 2)),
    Q("test_bmm3", "torch.bmm(x, y)", False, x=(2, 3, 3), y=(1, 3, 2)),
    Q("test_transpose", "x.transpose(0, 1)", True, "[2, 1, 3, 4]", x=(1, 2, 3, 4)),
    Q("test_transpose", "x.transpose(0, 1)", True, x=...),
    Q("test_index_select", "x.index_select(0, y)", True, "[Dyn, 1024]", x=(2050, 1024), y=(D,)),
    Q("test_index_select", "x.index_select(0, y)", True, "[Dyn, 1024]", x=(2050, 1024), y=...),
    Q("test_get_attr", "x.to(x.device)", True, "[1, 2, 3]", x=(1, 2, 3)),
    Q("test_expand", "x.expand(x.size()[-1], 4)", True, "[4, 4]", x=(1, 4)),
    Q("test_expand", "x.expand(x.size()[-1], 4)", True, "[Dyn, 4]", x=...),
    Q("test_getitem_tensor", "x[None, None, :, :]", True, "[1, 1, 4, 4]", x=(4, 4)),
    Q("test_getitem_tensor", "x[None, None, :, :]", True, "[1, 1, Dyn, 4]", x=(D, 4)),
    Q("test_getitem_tensor2", "x[None, None]", True, "[1, 1, 4, 4]", x=(4, 4)),
    Q("test_getitem_tensor_3", "x[None, :, None, :]", True, "[1, 4, 1, 4]", x=(4, 4)),
    *(
        Q("test_layer_norm", "self.norm(x)", answer, shared, x=x, inner=inner,
          modules=lambda: {"norm": nn.LayerNorm((1024,))})
        for x, inner, answer, shared in [
            (..., {}, True, "[..., 1024]"), (..., {"norm": (1024,)}, True, {"x": "[1024]"}),
            ((10, 10), {}, False, None), ((10, 1024), {}, True, "[10, 1024]"),
        ]
    ),
    Q("test_layer_norm_functional", "F.layer_norm(x, (1024,))", True, "[..., 1024]", x=...),
    Q("test_layer_norm_functional", "F.layer_norm(x, (1024,))", True, {"x": "[1024]"}, x=...,
      inner={"layer_norm": (1024,)}),
    Q("test_ne_int_long_type_as", "torch.ne(x, y).int().type_as(y).long()", True, "[Dyn, Dyn]",
      x=(D, D), y=(D, D)),
    Q("test_ne_int_long_type_as", "torch.ne(x, y).int().type_as(y).long()", True, x=(2, 4), y=(D, D)),
    Q("test_ne", "torch.ne(x, y)", True, x=..., y=...),
    Q("test_ne", "torch.ne(x, y)", True, "[2, 2]", x=(1, 2), y=(2, D)),
    Q("test_cumsum", "torch.cumsum(x, 3)", False, x=(D, 4, 3)),
    Q("test_cumsum", "torch.cumsum(x, 3)", True, x=...),
    Q("test_cumsum", "torch.cumsum(x, 3)", True, "[1, 2, 3, 4]", x=(1, 2, 3, 4)),
    Q("test_cumsum_kwargs", "torch.cumsum(x, dim=3)", False, x=(D, 4, 3)),
    Q("test_cumsum_kwargs", "torch.cumsum(x, dim=3)", True, x=...),
    Q("test_arange", "torch.arange(x.size()[-1])", True, "[4]", x=(2, 4)),
    Q("test_arange", "torch.arange(x.size()[-1])", True, "[Dyn]", x=...),
    Q("test_arange", "torch.arange(x.size()[-1])", True, "[Dyn]", x=(D, D, D, D)),
    Q("test_scalar_add", "torch.arange(x.size()[-1]) + 1", True, {"arange": "[4]", "add": "[4]"}, x=(2, 4)),
    Q("test_regular_add_2", "x.to(x.dtype).size()[-1] + 1", True, "int", x=(2, 4)),
    Q("test_regular_add_3", "1 + x.to(x.dtype).size()[-1]", True, "int", x=(2, 4)),
    Q("test_embedding", "self.table(x)", True, "[2, 4, 1024]", x=(2, 4), **TABLE),
    Q("test_embedding", "self.table(x)", True, "[Dyn, Dyn, 1024]", x=(D, D), **TABLE),
    Q("test_embedding", "self.table(x)", True, "[..., 1024]", x=..., **TABLE),
    Q("test_embedding_2", "F.embedding(x, y)", True, "[2, 4, 1024]", x=(2, 4), y=(D, 1024)),
    Q("test_size_two_args", "x.size(-1)", True, {"x": "[Dyn, 2, Dyn]", "output": "int"}, x=(D, 2, D)),
    Q("test_size_getitem", "x.size()[-1]", True, "int", x=...),
    Q("test_size_getitem", "x.size()[-1]", True, "int", x=(D, D, D, D)),
    Q("test_size_getitem", "x.size()[-10]", True, "int",
      x=..., assume="9 <= rank(x) <= 12", torch=False, runs={"x": (2,) * 10},
      why="torch knows no rank above 4: for it the index is out of range of every tensor"),
    Q("test_view_mul", f"self.table({HAS_SIZE}) * 32.0", True, "[2, 4, 1024]", x=(2, 4), **TABLE),
    Q("test_gt", "x.size()[-1] > 1", True, "bool", x=(D, 4)),
    Q("test_view", "x.view(-1, 8)", True, "[1, 8]", x=(2, 4)),
    Q("test_lt_tensor", "x > y", True, x=(2, 4), y=...),
    Q("test_conditional_wrong_assumption", "x > 1", True, x=...),
    *(
        Q(test, f"size = x.size()\ny = self.table(x.view(-1, size[-1])) * 32.0\nsize[-1] {ask} 1", True,
          {"mul": shared}, x=x, **TABLE)
        for test, ask in (("test_conditional", ">"), ("test_conditional_2", "<"))
        for x, shared in (((D, 4), "[Dyn, 4, 1024]"), ((D, D), "[Dyn, Dyn, 1024]"), (..., "[Dyn, Dyn, 1024]"))
    ),
    # ---- several operators together
    *(
        Q("test_masked_fill", f"y = torch.arange(x.size()[-1])\nx.masked_fill_(y > {HAS_SIZE}, 0)", True,
          shared, x=x)
        for x, shared in (((2, 4), "[2, 4]"), (..., None), ((D, D, D, D), None))
    ),
    Q("test_add_reshape_1", "torch.reshape(x, (1, 2)) + torch.reshape(y, (2, 2))", True, "[2, 2]",
      x=..., y=...),
    Q("test_add_reshape_2", "torch.reshape(x, (-1, 2)) + torch.reshape(y, (2, 2, 2))", True, "[2, 2, 2]",
      x=..., y=...),
    *(
        Q(test, "self.conv(torch.reshape(x, (1, 2, 10, 20))) + y", answer, shared, x=..., y=y, **CONV)
        for test, y, answer, shared in [
            ("test_conv_reshape_add_0", ..., True, {"conv": "[1, 2, 4, 8]"}),
            ("test_conv_reshape_add_0_2", (4, 1), True, {"conv": "[1, 2, 4, 8]", "add": "[1, 2, 4, 8]"}),
            ("test_conv_reshape_add_0_3", (11, 1), False, None),
            ("test_conv_reshape_add_1", (1, 2, 10, 20), False, None),
        ]
    ),
    Q("test_conv_reshape_unsat", "self.conv(torch.reshape(x, (1, 2, 10)))", False, x=..., **CONV),
    Q("test_conv_reshape0", "self.conv(torch.reshape(x, (1, 2, 10, 20)))", True, "[1, 2, 4, 8]",
      x=..., **CONV),
    Q("test_conv_reshape1", "self.conv(torch.reshape(x, (1, -1, 10, 20)))", True, "[1, 2, 4, 8]",
      x=(20, 20), **CONV),
    # ---- one operator
    *(
        Q("test_conv_wrong_example", "y = self.conv(x).relu()\nself.other(x).relu()", False, x=x,
          modules=lambda: {"conv": conv(s=2), "other": conv(i=4, s=2)})
        for x in (..., (D, D, D, D))
    ),
    Q("test_conv_dyn", "self.conv(x)", True, x=..., modules=lambda: {"conv": conv(s=2)}),
    Q("test_conv_dyn", "self.conv(x)", True, {"x": "[Dyn, 2, Dyn, Dyn]", "conv": "[Dyn, 2, Dyn, Dyn]"},
      x=(D, D, D, D), modules=lambda: {"conv": conv(s=2)}),
    Q("test_conv_dyn", "self.conv(x)", False, x=(D, 3, D, D), modules=lambda: {"conv": conv(s=2)}),
    Q("test_conv_dyn", "self.conv(x)", True, {"x": "[2, Dyn, Dyn]"}, x=(D, D, D),
      modules=lambda: {"conv": conv(s=2)}, torch=False, runs={"x": (2, 3, 4)},
      why="an image without a batch is a tensor of rank 3, which torch's checker refuses"),
    Q("test_add", "x + y", True, x=..., y=...),
    Q("test_add", "x + y", True, "[2]", x=(1,), y=(2,)),
    Q("test_add", "x + y", True, x=(D,), y=...),
    Q("test_add", "x + y", False, x=(4,), y=(5,)),
    Q("test_add_padding", "x + y", True, "[Dyn, Dyn]", x=(D,), y=(D, D)),
    Q("test_add_padding_2", "x + y", True, "[Dyn, Dyn]", x=(D, D), y=(D,)),
    Q("test_add_padding_2", "x + y", True, "[Dyn, 3]", x=(D, 3), y=(D,)),
    Q("test_add_padding_3", "x + y", True, "[Dyn, Dyn]", x=(D, 1), y=(D,)),
    Q("test_add_padding_4", "x + y", True, "[2, 3]", x=(2, 1), y=(3,)),
    Q("test_add_padding_5", "x + y", False, x=(2, 2), y=(3,)),
    Q("test_add_size_3", "x + y", True, "[Dyn, Dyn, Dyn]", x=(D, D, D), y=(D, D, D)),
    Q("test_add_size_3", "x + y", True, "[Dyn, Dyn, 5]", x=(D, 1, 5), y=(D, D, D)),
    Q("test_add_size_3", "x + y", False, x=(D, 1, 5), y=(D, D, 6)),
    Q("test_add_padding_6", "x + y", True, "[Dyn, Dyn, Dyn]", x=(D,), y=(D, D, D)),
    Q("test_add_padding_6", "x + y", False, x=(4,), y=(D, D, 5)),
    Q("test_add_padding_7", "x + y", True, "[Dyn, Dyn, Dyn, Dyn]", x=(D,), y=(D, D, D, D)),
    Q("test_add_padding_8", "x + y", True, "[Dyn, Dyn, Dyn, Dyn]", x=(1,), y=(D, D, D, D)),
    Q("test_add_padding_9", "x + y", True, x=..., y=(D, D, D, D)),
    Q("test_add_padding_9", "x + y", True, "[Dyn, Dyn, Dyn, Dyn]",
      x=(D,), y=(D, D, D, D), assume="_1 != 1 and _5 != 1"),
    Q("test_conv_static", "self.conv(x)", True, "[1, 2, 4, 8]",
      x=(1, 2, 10, 20), modules=lambda: {"conv": conv(g=1)}),
    Q("test_conv_static", "self.conv(x)", True, "[1, 4, 10, 15]", x=(1, 2, 10, 20),
      modules=lambda: {"conv": conv(o=4, k=5, s=2, p=9, g=1)}),
    Q("test_reshape_dyn", "torch.reshape(x, (2, -1))", True, "[2, Dyn]", x=...),
    Q("test_reshape_dyn", "torch.reshape(x, (2, -1))", True, "[2, 2]", x=(4,)),
    Q("test_reshape_dyn", "torch.reshape(x, (2, -1))", False, x=(9,)),
    Q("test_reshape_annotated", "torch.reshape(x, (2, -1))", True, "[2, Dyn]", x=(D,)),
    Q("test_reshape_static_target", "torch.reshape(x, (2, 3))", True, {"x": "[6]"}, x=(D,)),
    Q("test_reshape_static_target2", "torch.reshape(x, (2, 3, 1, 1))", True, "[2, 3, 1, 1]", x=...),
    Q("test_reshape_static_target2", "torch.reshape(x, (2, 3, 1, 1))", True, {"x": "[6]"}, x=(D,)),
    Q("test_conv2D_maxpool2d_flatten", LAYERS_BODY, True, "[4, 672]", x=(4, 3, 32, 32), **LAYERS),
    Q("test_conv2D_maxpool2d_flatten_unsat", LAYERS_BODY, False, x=(4, 3, 32, 45), **LAYERS),
    Q("test_conv2D_maxpool2d_flatten_dyn", LAYERS_BODY, True, "[Dyn, 672]", x=(D, 3, 32, 32), **LAYERS),
    Q("test_type_check_flatten", "torch.flatten(x, start_dim=1, end_dim=3)", True, "[2, 60]", x=(2, 3, 4, 5)),
    Q("test_type_check_flatten", "torch.flatten(x, start_dim=1, end_dim=3)", True, "[2, Dyn]",
      x=(2, 3, D, 5)),
    Q("test_type_check_flatten", "torch.flatten(x, 10, 0)", False, x=(2, 3, D)),
    # ---- constraints of the same programs
    Q("test_add_reshape", "torch.reshape(x, (1, 2)) + torch.reshape(y, (2, 2))", True, "[2, 2]",
      x=..., y=...),
    Q("test_conv_reshape_add", "self.conv(torch.reshape(x, (1, 2, 10, 20))) + y", True, x=..., y=..., **CONV),
]


def batch_norm(features: int) -> dict[str, Any]:
    return {"modules": lambda: {"bn1": nn.BatchNorm2d(features)}, "inner": {"bn1": (2, 2, D, 4)}}


def conv_block(planes: int) -> dict[str, Any]:
    return {"modules": lambda: {"conv1": conv3x3(planes, 2)}, "inner": {"conv1": (2, 2, D, 4)}}


RESIDUAL = "out = self.{}(x)\nout += x\nout"
BASIC = "y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))\ny += x\nself.relu(y)"

# annotation, planes, stride, groups, dilation, padding, kernel size, annotation of the result, the principal
CONVS = [
    ((1, 2, 3, 5), 2, 1, 1, 1, 1, 1, (1, D, D, 7), "[1, 2, Dyn, 7]"),
    ((2, 5, 6, 9), 5, 2, 5, 2, 2, 2, (2, D, 4, 6), "[2, 5, 4, 6]"),
    ((10, 15, 13, 14), 15, 3, 5, 3, 3, 3, (10, 15, D, 5), "[10, 15, Dyn, 5]"),
    ((10, D, 13, 14), 15, 2, 5, 3, 3, 3, (10, 15, 7, 7), "[10, 15, 7, 7]"),
    ((D, D, D, 3), 2, 2, 2, 3, 3, 3, (1, D, D, D), "[1, 2, Dyn, Dyn]"),
]  # fmt: skip
# annotation, kernel size, stride, padding, dilation, annotation of the result, what it comes to
POOLS = [
    ((D, D, 3, 5), 2, 1, 1, 1, (1, 2, D, D), "[1, 2, 4, 6]"),
    ((2, 5, 6, 9), 4, 2, 2, 1, (2, D, 4, 5), "[2, 5, 4, 5]"),
    ((10, 15, 13, 14), 6, 3, 3, 1, (10, 15, D, 5), "[10, 15, 5, 5]"),
    ((10, D, 13, 14), 6, 2, 3, 1, (10, 15, 7, 8), "[10, 15, 7, 8]"),
    ((D, D, D, 10), 3, 1, 1, 2, (2, D, D, D), "[2, Dyn, Dyn, 8]"),
]  # fmt: skip

UNIFICATION = [
    Q("test_type_check_add_with_broadcast", "torch.add(x, y)", True, "[1, 2, 3, 4]",
      x=(1, 2, 3, D), y=(2, 3, 4)),
    Q("test_type_check_add_with_scalar", "torch.add(x, y)", True, "[2, 3, 4]", x=int, y=(2, 3, 4)),
    Q("test_type_check_add_false", "torch.add(x, y)", False, x=(1, 2, 3, D), y=(1, 2, 3)),
    Q("test_type_check_add_true", "torch.add(x, y)", True, "[1, 2, 3]", x=(1, 2, D), y=(1, 2, 3)),
    Q("test_type_check_reshape_true", "torch.reshape(x, [1, 2, 3])", True, "[1, 2, 3]", x=(1, 6)),
    Q("test_type_check_reshape_false", "torch.reshape(x, [1, 2, 3])", False, x=(1, 5)),
    Q("test_type_check_reshape_dyn_false", "torch.reshape(x, [1, 2, -1])", False, x=(1, 5)),
    Q("test_type_check_reshape_dyn_true", "torch.reshape(x, [1, 5, -1])", True, "[1, 5, 3]", x=(1, 15)),
    Q("test_type_check_reshape_dyn_true_param_false", "torch.reshape(x, [1, 2, -1])", True,
      "[1, 2, Dyn]", x=(D, 5),
      torch=False, runs={"x": (2, 5)}, why="ten elements are two rows of five: the unknown size may be even"),
    Q("test_type_check_transpose_true", "torch.transpose(x, 0, 1)", True, "[2, 1, 3, 5]", x=(1, 2, 3, 5)),
    Q("test_type_check_transpose_False", "torch.transpose(x, 0, 10)", False, x=(1, 2, 3, 5)),
    Q("test_type_check_batch_norm_2D", RESIDUAL.format("bn1"), True, "[2, 2, 5, 4]",
      x=(2, 2, 5, 4), **batch_norm(2)),
    Q("test_type_check_batch_norm_2D_false", RESIDUAL.format("bn1"), False, x=(2, 2, 5), **batch_norm(2)),
    Q("test_type_check_batch_norm_2D_broadcast", RESIDUAL.format("bn1"), True, "[2, 2, Dyn, 4]",
      x=..., **batch_norm(2)),
    Q("test_type_check_batch_norm_2D_broadcast", RESIDUAL.format("bn1"), False, x=..., **batch_norm(1)),
    Q("test_type_check_conv2D", RESIDUAL.format("conv1"), True, {"conv1": "[2, 2, Dyn, 4]"},
      x=..., **conv_block(2)),
    Q("test_type_check_conv2D_2", RESIDUAL.format("conv1"), True, "[5, 2, 3, 4]", x=(5, 2, 3, 4),
      modules=lambda: {"conv1": conv3x3(2, 2)}),
    Q("test_type_check_conv2D_2", RESIDUAL.format("conv1"), False, x=(5, 2, 3, 4),
      modules=lambda: {"conv1": conv3x3(1, 2)}),
    *(
        Q("test_type_check_conv2D_2_fully_static", "self.conv(x)", True, shared if inner else None, x=x,
          inner=inner, modules=lambda c=(n, n, k, s, p, d, g): {"conv": nn.Conv2d(*c, bias=False)})
        for annotation, n, s, g, d, p, k, result, shared in CONVS
        for x, inner in ((annotation, {}), (..., {"conv": result}))
    ),
    Q("test_typecheck_basicblock", BASIC, True, "[2, 2, 4, 5]", x=(2, 2, 4, 5), modules=lambda: {
        "conv1": conv3x3(2, 2), "bn1": nn.BatchNorm2d(2), "relu": nn.ReLU(inplace=True),
        "conv2": conv3x3(2, 2), "bn2": nn.BatchNorm2d(2)}),
    Q("test_type_check_conv2D_maxpool2d_flatten", LAYERS_BODY, True,
      {"conv1": "[4, 6, 28, 28]", "pool": "[4, 6, 14, 14]", "conv2": "[4, 16, 10, 10]",
      "pool_1": "[4, 16, 5, 5]",
       "fc1": "[4, 16, 5, 120]", "pool2": "[4, 16, 6, 7]", "flatten": "[4, 672]"},
       x=(4, 3, 32, 32), **LAYERS),
    Q("test_type_check_flatten (unification)", "torch.flatten(x, 1, 2)", True, "[1, 6, 5, Dyn]",
      x=(1, 2, 3, 5, D)),
    Q("test_type_check_flatten_2", "torch.flatten(x, 1, 2)", True, "[1, Dyn, 5, Dyn]", x=(1, D, 3, 5, D)),
    Q("test_type_check_flatten3", "torch.flatten(x, start_dim=1, end_dim=3)", True, "[2, 60]",
      x=(2, 3, 4, 5)),
    Q("test_type_typechecl_maxpool2d_3dinput", "self.pool(x)", True, "[64, 1, 1]", x=(64, 8, 8),
      modules=lambda: {"pool": nn.MaxPool2d(5, 8)}),
    *(
        Q("test_type_maxpool2d_fully_static", "self.pool(x)", True, shared if inner else None,
          x=x, inner=inner,
          modules=lambda c=(k, s, p, d): {"pool": nn.MaxPool2d(*c)})
        for x, k, s, p, d, result, shared in POOLS
        for inner in ({}, {"pool": result})
    ),
    *(
        Q("test_flatten_fully_static", f"torch.flatten(x, {start}, {end})", True, shared, x=x)
        for x, start, end, shared in [
            (..., 1, 1, None), ((2, 5, 6, 9), 2, 3, "[2, 5, 54]"), ((10, 15, 13, 14), 1, 3, "[10, 2730]"),
            ((10, D, 13, 14), 2, 3, "[10, Dyn, 182]"), ((D, D, D, 10), 0, -2, "[Dyn, 10]"),
        ]
    ),
    Q("test_type_check_batch_norm_symbolic", RESIDUAL.format("bn1"), True,
      {"x": "[2, 2, Dyn, 4]", "bn1": "[2, 2, Dyn, 4]", "output": "[2, 2, Dyn, 4]"}, x=..., **batch_norm(2)),
    Q("test_symbolic_add_with_broadcast", "torch.add(x, y)", True, {"x": "[1, 2, 3, Dyn]",
      "add": "[1, 2, 3, 4]"},
      x=(1, 2, 3, D), y=(2, 3, 4)),
    Q("test_symbolic_add_with_broadcast_2", "torch.add(x, y)", True, "[Dyn, 2]", x=(1, 2), y=(D, 2)),
]  # fmt: skip
