"""What anyshape costs, beside what the same questions cost elsewhere.

    make bench                                     everything but the dear exports
    python -m benchmarks.bench [SECTION …] [--models NAME …] [--repeat 5] [--export] [--longest NODES]

Sections: `models` (each stage, against one propagation of fake tensors), `files` (from a `.pt2` to the
verdict, against the export that made it), `gradual` (against torch's `migrate_gradual_types`), `onnx`
(against the inference of shapes of an ONNX export), `cold` (processes from start to end), `growth` (programs
of 100 to 100,000 nodes) `symbols` (of 2 to 200) and `checks` (100 to 900 conditions on 30 sizes).
`--export` exports each model with every dim `Dim.AUTO`, too, once: minutes each.

Each section leaves its numbers in `build/bench/SECTION.json`; `benchmarks/results.md` shows what is there.
"""

from __future__ import annotations

import argparse
import json
import logging
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from . import checks, cold, growth, rivals, stages
from .models import MEASURED, RESNET18, Measured, build
from .programs import BY_SYMBOLS, MAKERS
from .tables import Table, results
from .timing import Spread, ratio, rounds, total

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "bench"
FIXTURE = ROOT / "tests" / "tracer" / "fixtures" / "resnet.pt2"
FILE_STAGES = ("load", "trace", "solve", "report", "together")
STAGES = ("trace", "generate", "solve", "refine", "report", "together")

Row: TypeAlias = dict[str, Any]
Options: TypeAlias = argparse.Namespace


def models(options: Options) -> Table:
    """Stages in milliseconds, and ratios to one propagation of fake tensors through the exported graph."""
    return Table(
        "models",
        "Every stage of a check, in milliseconds, and its ratio to one propagation of fake tensors (`fake`)",
        [row for measured in _chosen(options) for row in _model(measured, options)],
    )


def _model(measured: Measured, options: Options) -> Iterable[Row]:
    model = build(measured)
    program, _ = rivals.exported(measured, model)
    for sizes in ("symbolic", "static"):
        inputs, assume = stages.spec_of(measured, sizes == "symbolic")
        checked = stages.Checked(model, inputs, assume)
        contenders = {
            "check": checked,
            "generate": stages.generation(stages.recorded(model, inputs, assume)),
            "fake": rivals.propagation(program),
        }
        took = rounds(contenders, options.repeat)
        took["check.generate"] = took["generate"]
        told = checked.report
        assert told is not None
        yield {
            "model": measured.name,
            "sizes": sizes,
            "verdict": str(told.verdict),
            "paths": told.stats["paths"],
            "nodes": told.stats["nodes"],
            **{stage: _ms(took[f"check.{stage}"]) for stage in STAGES},
            "fake": _ms(took["fake"]),
            "(generate + solve) / fake": ratio(total(took["generate"], took["check.solve"]), took["fake"]),
            "(trace + solve) / fake": ratio(total(took["check.trace"], took["check.solve"]), took["fake"]),
            "together / fake": ratio(took["check.together"], took["fake"]),
        }


def files(options: Options) -> Table:
    """From a `.pt2` to the verdict, against the export."""
    return Table(
        "files",
        "From a saved `.pt2` to the verdict and its text, in milliseconds, and its ratio to the export",
        [row for measured in _chosen(options) for row in _files(measured, options)],
    )


def _files(measured: Measured, options: Options) -> Iterable[Row]:
    model = build(measured)
    exports = {"static": rivals.exported} | ({"AUTO": rivals.exported_auto} if options.export else {})
    for sizes, export in exports.items():
        program, export_s = export(measured, model)
        path = rivals.saved(program, BUILD / f"{measured.name}-{sizes}.pt2")
        checked = stages.Checked(str(path), replay=True)
        took = rounds({"check": checked}, options.repeat)
        told = checked.report
        assert told is not None
        row: Row = {
            "model": measured.name,
            "sizes": sizes,
            "verdict": str(told.verdict),
            "nodes": told.stats["nodes"],
            "file, MB": round(path.stat().st_size / 2**20, 2),
            **{stage: _ms(took[f"check.{stage}"]) for stage in FILE_STAGES},
            "export": round(export_s * 1000, 1),
            "together / export": Spread.of([s / export_s for s in took["check.together"]]),
        }
        if sizes == "AUTO":
            python = stages.Checked(model, *stages.spec_of(measured, True))
            checks = rounds({"python": python}, options.repeat)["python.together"]
            row["export / check of the Python model"] = Spread.of([export_s / s for s in checks])
        yield row


def gradual(options: Options) -> Table:
    """Against torch's own gradual checker, from the graph to the answer."""
    rows = []
    for measured in (RESNET18, *(m for m in MEASURED if m.name == "resnet50")):
        model = build(measured)
        spec = stages.spec_of(measured, True)
        checked = stages.Checked(model, *spec)
        took = rounds(
            {
                "check": checked,
                "generate": stages.generation(stages.recorded(model, *spec)),
                "torch": lambda model=model: rivals.torch_gradual(model)[1],  # type: ignore[misc]
            },
            min(options.repeat, 3),
        )
        ours = total(took["generate"], took["check.solve"])
        rows.append(
            {
                "model": measured.name,
                "torch": _ms(took["torch"]),
                "generate + solve": _ms(ours),
                "check": _ms(took["check.together"]),
                "torch / (generate + solve)": ratio(took["torch"], ours),
                "torch / check": ratio(took["torch"], took["check.together"]),
            }
        )
    text = "torch's `migrate_gradual_types` from the traced graph to an answer, in milliseconds, and ours"
    return Table("gradual", text, rows)


def onnx(options: Options) -> Table:
    """Against ONNX."""
    return Table(
        "onnx",
        "ONNX's inference of shapes (C++, one example) and ours (Python, all sizes), in milliseconds",
        [_onnx(measured, options) for measured in _chosen(options)],
    )


def _onnx(measured: Measured, options: Options) -> Row:
    model = build(measured)
    exported, export_s = rivals.onnx_model(measured, model)
    spec = stages.spec_of(measured, True)
    checked = stages.Checked(model, *spec)
    contenders = {
        "check": checked,
        "generate": stages.generation(stages.recorded(model, *spec)),
        "onnx": rivals.onnx_inference(exported),
    }
    took = rounds(contenders, options.repeat)
    ours = total(took["generate"], took["check.solve"])
    return {
        "model": measured.name,
        "nodes of ONNX": len(exported.graph.node),
        "export to ONNX": round(export_s * 1000, 1),
        "infer_shapes": _ms(took["onnx"]),
        "generate + solve": _ms(ours),
        "check": _ms(took["check.together"]),
        "(export + infer_shapes) / check": Spread.of(
            [(export_s + s) / t for s, t in zip(took["onnx"], took["check.together"], strict=True)]
        ),
        "infer_shapes / (generate + solve)": ratio(took["onnx"], ours),
    }


def cold_start(options: Options) -> Table:
    """Whole processes."""
    commands = {
        "python -c pass": cold.NOTHING,
        "import torch": cold.IMPORT_TORCH,
        "anyshape check small.pt2": cold.checking(str(FIXTURE)),
    }
    for path in sorted(BUILD.glob("*.pt2")):
        commands[f"anyshape check {path.name}"] = cold.checking(str(path))
    for name in (m.name for m in _chosen(options)):
        commands[f"build {name}"] = cold.building(name)
        commands[f"build and check {name}"] = cold.building(name, "check")
    runs = cold.rounds(commands, options.repeat)
    rows = [
        {
            "command": name,
            "wall": _ms([p.wall_s for p in found]),
            "processor": _ms([p.cpu_s for p in found]),
            "peak, MB": round(max(p.peak_mb for p in found), 1),
            "processor / that of `python -c pass`": ratio(
                [p.cpu_s for p in found], [p.cpu_s for p in runs["python -c pass"]]
            ),
            "wall / that of `python -c pass`": ratio(
                [p.wall_s for p in found], [p.wall_s for p in runs["python -c pass"]]
            ),
        }
        for name, found in runs.items()
    ]
    return Table("cold", "Processes from start to end, in milliseconds", rows)


def grown(options: Options) -> Table:
    """Time and memory per node."""
    lengths = [n for n in (100, 1_000, 10_000, 100_000) if n <= options.longest]
    rows = []
    for maker in MAKERS:
        found = growth.apart(maker, lengths)
        before, last = found[-2:]
        times = (last.us * last.nodes) / (before.us * before.nodes)
        rows.append(
            {
                "program": maker,
                "verdict": last.verdict,
                **{f"{length:,}": round(g.us, 1) for length, g in zip(lengths, found, strict=True)},
                f"time of {lengths[-1]:,} / {lengths[-2]:,} nodes": round(times, 1),
                "peak, KB per node": round(last.peak_kb, 1),
            }
        )
    text = "Generate + solve of generated programs, in microseconds per node, by the number of nodes"
    return Table("growth", text, rows)


def many_symbols(options: Options) -> Table:
    """Time to solve, by the number of symbols."""
    rows = []
    for name, (make, numbers) in BY_SYMBOLS.items():
        row: Row = {"program": name}
        for number in numbers:
            verdict, _, solved = growth.checked(make(1_000, number))
            row[f"{number}"] = f"{solved * 1000:.1f} {verdict}"
        rows.append(row)
    text = "Solving programs of 1,000 nodes, in milliseconds, by the number of symbols"
    return Table("symbols", text, rows)


def many_checks(options: Options) -> Table:
    """Conditions of the program's own on many sizes, decided by us and traced by torch."""
    rows = []
    for count in (100, 300, 900):
        verdict, ours = checks.checked(count)
        theirs = checks.exported(count)
        rows.append({"checks": count, "anyshape": _ms([ours]), "torch": _ms([theirs]), "verdict": verdict})
    text = f"`torch._check`s on {checks.SYMBOLS} sizes: check, and torch.export, in milliseconds"
    return Table("checks", text, rows)


SECTIONS: Mapping[str, Callable[[Options], Table]] = {
    "models": models,
    "files": files,
    "gradual": gradual,
    "onnx": onnx,
    "cold": cold_start,
    "growth": grown,
    "symbols": many_symbols,
    "checks": many_checks,
}


def _chosen(options: Options) -> list[Measured]:
    return [m for m in MEASURED if not options.models or m.name in options.models]


def _ms(seconds: Iterable[float]) -> float:
    return round(Spread.of([*seconds]).median * 1000, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], metavar="SECTION")
    parser.add_argument("--models", nargs="*", default=[], choices=[m.name for m in MEASURED])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--export", action="store_true", help="with Dim.AUTO, too: minutes for each model")
    parser.add_argument("--longest", type=int, default=100_000, help="nodes of the longest generated program")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    BUILD.mkdir(parents=True, exist_ok=True)
    for name in options.sections or SECTIONS:
        table = SECTIONS[name](options)
        print(table.text(), flush=True)
        (BUILD / f"{name}.json").write_text(json.dumps(table.to_json(), indent=1) + "\n")
    results(BUILD, [*SECTIONS], ROOT / "benchmarks" / "results.md")


if __name__ == "__main__":
    main()
