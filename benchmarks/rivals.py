"""What the same questions cost elsewhere: one propagation of fake tensors, an export, torch's own checker,
and ONNX's inference of shapes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from .models import Measured, example_inputs
from .timing import now, seconds


def exported(measured: Measured, model: Any) -> tuple[torch.export.ExportedProgram, float]:
    """The model exported at the example's sizes, and the seconds that it took."""
    inputs = example_inputs(measured)
    started = now()
    program = torch.export.export(model, (), inputs, strict=False)
    return program, now() - started


def exported_auto(measured: Measured, model: Any) -> tuple[torch.export.ExportedProgram, float]:
    """The model exported with every dim of every input `Dim.AUTO`, and the seconds that it took."""
    inputs = example_inputs(measured)
    dynamic = {name: dict.fromkeys(range(t.dim()), torch.export.Dim.AUTO) for name, t in inputs.items()}
    started = now()
    program = torch.export.export(model, (), inputs, dynamic_shapes=dynamic, strict=False)
    return program, now() - started


def saved(program: torch.export.ExportedProgram, path: Path) -> Path:
    """The program as a `.pt2`. One that was exported on the meta device has no weights to save."""
    torch.export.save(program, path)
    return path


def propagation(program: torch.export.ExportedProgram) -> Callable[[], float]:
    """One propagation of fake tensors through the graph, at the sizes that it was exported with."""
    from torch.fx.passes.fake_tensor_prop import FakeTensorProp

    module = program.module()
    values = [n.meta["val"] for n in module.graph.nodes if n.op == "placeholder"]
    mode = values[0].fake_mode
    return lambda: seconds(lambda: FakeTensorProp(module, mode).propagate_dont_convert_inputs(*values))


def onnx_model(measured: Measured, model: Any) -> tuple[Any, float]:
    """The model as ONNX has it at the example's sizes, no shape but those of its inputs told, and the seconds
    that its export took.

    A model on the meta device has no weights to store: they become inputs.
    """
    started = now()
    program = torch.onnx.export(
        model, (), kwargs=example_inputs(measured), dynamo=True, optimize=False, verbose=False
    )
    took = now() - started
    assert program is not None
    graph = program.model.graph
    for name, value in [*graph.initializers.items()]:
        if getattr(getattr(value.const_value, "raw", None), "is_meta", False):
            del graph.initializers[name]
            value.const_value = None
            graph.inputs.append(value)
    found = program.model_proto
    del found.graph.value_info[:]
    for output in found.graph.output:
        output.type.tensor_type.ClearField("shape")
    return found, took


def onnx_inference(model: Any) -> Callable[[], float]:
    """One inference of all shapes of an ONNX model, at the sizes of its inputs; raises where it fails."""
    import onnx

    return lambda: seconds(lambda: onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True))


def torch_gradual(model: torch.nn.Module) -> tuple[str, float]:
    """What `migrate_gradual_types` answers for an input of which nothing is known, and the seconds.

    Tracing is left out. It asks whether any rank from 1 to 4 and any sizes fit.
    """
    import z3
    from torch.fx.experimental.migrate_gradual_types.transform_to_z3 import transform_all_constraints
    from torch.fx.experimental.rewriter import RewritingTracer

    graph = RewritingTracer().trace(model)
    module = torch.fx.GraphModule(model, graph, "traced")
    started = now()
    constraints = transform_all_constraints(module, counter=0)
    solver = z3.Solver()
    solver.add(constraints)
    answer = str(solver.check())
    return answer, now() - started
