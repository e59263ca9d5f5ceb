"""What a check costs, against one propagation of fake tensors through the same model's graph.

    python benchmarks/bench_check.py [MODEL …] [--repeat 5] [--json FILE] [--export]

Each row is a model with its batch and its sequence or image size symbolic. Seconds are medians of interleaved
repetitions; `trace` records the Python model (generation included: the rules are its kernels), `solve`
decides, `fake` is one warm `FakeTensorProp` over the statically exported graph. Ratios are medians of the
repetitions' ratios, with their range. `--export` also times one `torch.export.export` with every dim
`Dim.AUTO`.
"""

from __future__ import annotations

import argparse
import gc
import json
import logging
import resource
import statistics
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import torch
from models import MEASURED, Measured, build, example_inputs

from anyshape.constraints.rules import default_rules
from anyshape.constraints.spec_text import parse_spec
from anyshape.solver.decide import Oracle, decide
from anyshape.tracer.record import record


def ours(measured: Measured, model: Any) -> dict[str, float]:
    """Seconds of each stage of one check, replay aside; and what it found."""
    started = time.perf_counter()
    spec = parse_spec(measured.inputs, measured.assume)
    system, _ = record(model, spec, default_rules, Oracle(spec.domain))
    traced = time.perf_counter()
    decision = decide(system)
    solved = time.perf_counter()
    return {
        "trace": traced - started,
        "solve": solved - traced,
        "nodes": sum(len(p.program.nodes) for p in system.paths),
        "paths": len(system.paths),
        "no_rule": sum(n.code == "no-rule" for p in system.paths for n in p.notes),
        "verdict": str(decision.verdict),
    }


def fake_propagation(measured: Measured, model: Any) -> Any:
    """A function that propagates fake tensors once through the model's static graph."""
    from torch.fx.passes.fake_tensor_prop import FakeTensorProp

    inputs = example_inputs(measured)
    exported = torch.export.export(model, (), inputs, strict=False)
    module = exported.module()
    placeholders = [n for n in module.graph.nodes if n.op == "placeholder"]
    values = [n.meta["val"] for n in placeholders]
    mode = values[0].fake_mode

    def once() -> float:
        started = time.perf_counter()
        FakeTensorProp(module, mode).propagate_dont_convert_inputs(*values)
        return time.perf_counter() - started

    once()
    return once


def auto_export(measured: Measured, model: Any) -> float:
    """Seconds of one export with every dim of every input `Dim.AUTO`."""
    inputs = example_inputs(measured)
    dynamic = {
        name: dict.fromkeys(range(value.dim()), torch.export.Dim.AUTO) for name, value in inputs.items()
    }
    started = time.perf_counter()
    torch.export.export(model, (), inputs, dynamic_shapes=dynamic, strict=False)
    return time.perf_counter() - started


def bench(measured: Measured, repeat: int, export: bool) -> dict[str, Any]:
    """One row: medians and ratios over interleaved repetitions."""
    model = build(measured)
    fake = fake_propagation(measured, model)
    ours(measured, model)  # imports and caches
    runs = []
    for _ in range(repeat):
        gc.collect()
        row = ours(measured, model)
        row["fake"] = fake()
        runs.append(row)
    ratios = [(r["trace"] + r["solve"]) / r["fake"] for r in runs]
    result = {
        "model": measured.name,
        **{key: statistics.median(r[key] for r in runs) for key in ("trace", "solve", "fake")},
        **{key: runs[0][key] for key in ("nodes", "paths", "no_rule", "verdict")},
        "ratio": statistics.median(ratios),
        "ratio_low": min(ratios),
        "ratio_high": max(ratios),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    if export:
        result["export_auto"] = auto_export(measured, model)
        result["export_ratio"] = result["export_auto"] / (result["trace"] + result["solve"])
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="names of rows; all of them where none is given")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--export", action="store_true", help="time torch.export with Dim.AUTO too (slow)")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    rows = []
    print(
        f"{'model':10} {'verdict':8} {'nodes':>6} {'trace':>7} {'solve':>7} {'fake':>7}  ours/fake  (range)"
    )
    for measured in MEASURED:
        if options.models and measured.name not in options.models:
            continue
        row = bench(measured, options.repeat, options.export)
        rows.append(row)
        export = (
            f"  export {row['export_auto']:.1f} s = {row['export_ratio']:.0f} x" if options.export else ""
        )
        missing = f"  {row['no_rule']} without rule" if row["no_rule"] else ""
        print(
            f"{row['model']:10} {row['verdict']:8} {row['nodes']:6} {row['trace']:7.3f} {row['solve']:7.3f}"
            f" {row['fake']:7.3f}  {row['ratio']:8.2f}   ({row['ratio_low']:.2f}–{row['ratio_high']:.2f})"
            f"{export}{missing}",
            flush=True,
        )
    if options.json:
        options.json.write_text(
            json.dumps({"torch": torch.__version__, "python": sys.version, "rows": rows}, indent=1)
        )


if __name__ == "__main__":
    main()
