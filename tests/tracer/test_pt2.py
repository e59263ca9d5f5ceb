"""Saved archives: read right, judged by what the trace itself noted, refused with a reason where damaged.

Nothing here imports torch. fixtures/make.py says what is in the archives.
"""

from __future__ import annotations

import copy
import gc
import json
import re
import struct
import subprocess
import sys
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Constraint, Context, Dyn, Tensor
from anyshape.constraints.ir.program import Node, from_json, to_json
from anyshape.constraints.ir.spec_text import SpecError, parse_spec, write_spec
from anyshape.constraints.rules import default_rules
from anyshape.constraints.terms.dims import sym
from anyshape.constraints.terms.formula import eq, ge, le
from anyshape.constraints.terms.formula_text import parse_formula
from anyshape.constraints.terms.syntax import parse_dim
from anyshape.tracer.host.releases import NEWEST, OLDEST
from anyshape.tracer.readers import archive, pt2
from anyshape.tracer.readers.archive import ArchiveError
from anyshape.tracer.readers.expressions import NotRead, dim_of, formula_of, guard
from anyshape.tracer.readers.graph import Traced, retype, system
from anyshape.typecheck import Code, check

sys.path.insert(0, str(Path(__file__).parent))
from noted_sizes import disagreements

FIXTURES = Path(__file__).parent / "fixtures"
MODEL = "a/models/model.json"
ARCHIVES = sorted(path.stem for path in FIXTURES.glob("*.pt2"))


def load(name: str) -> Traced:
    return pt2.read(FIXTURES / f"{name}.pt2")


def document(name: str) -> dict[str, Any]:
    return archive.read_json(FIXTURES / f"{name}.pt2")


def nodes(traced: Traced, op: str) -> list[Node]:
    return [node for node in traced.program.nodes if node.op == op]


def kinds(constraints: tuple[Constraint, ...], kind: str) -> set[str]:
    return {str(c.formula) for c in constraints if c.kind == kind}


# ---- the archives of all releases


RELEASES = FIXTURES / "releases"
WRITERS = sorted({path.stem.rpartition("-")[2] for path in RELEASES.glob("*.pt2")})
VERDICTS = {
    "control": "proved", "layers": "proved", "nested": "proved", "relations": "proved",
    "unbacked": "unknown",
}  # fmt: skip


def told(name: str, writer: str) -> tuple[Any, ...]:
    """Returns what is said of the model; the limits of a trace, which the file declares, are those of the
    release.
    """
    report = check(RELEASES / f"{name}-{writer}.pt2")
    said = [(f.code, f.message, f.condition) for f in report.findings if f.code is not Code.TRACE_LIMIT]
    return report.verdict, report.accepts.formula, report.inputs, report.outputs, said


def test_every_release_has_written_every_archive() -> None:
    assert {OLDEST, NEWEST} <= {*WRITERS}
    files = {f"{name}-{writer}.pt2" for name in VERDICTS for writer in WRITERS}
    assert {path.name for path in RELEASES.glob("*.pt2")} == files
    for writer in WRITERS:
        assert document(f"releases/layers-{writer}")["torch_version"].startswith(writer)


@pytest.mark.parametrize("name", VERDICTS)
def test_archives_of_all_releases_have_one_verdict(name: str) -> None:
    first = told(name, WRITERS[0])
    assert str(first[0]) == VERDICTS[name]
    for writer in WRITERS[1:]:
        assert told(name, writer) == first


def renamed(data: Any, names: dict[str, str]) -> Any:
    """The JSON of a graph with other names for its values, the tables of values in another order."""
    if isinstance(data, list):
        return [renamed(one, names) for one in data]
    if not isinstance(data, dict):
        return data
    found = {}
    for key, value in data.items():
        if key.endswith("_values"):
            value = {names[name]: value[name] for name in reversed(value)}
        is_name = key in ("name", "as_name") and isinstance(value, str)
        found[key] = names.get(value, value) if is_name else renamed(value, names)
    return found


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("name", VERDICTS)
def test_names_of_values_mean_nothing(name: str, writer: str) -> None:
    data = document(f"releases/{name}-{writer}")
    graph = data["graph_module"]["graph"]
    tables = [holder[key] for holder, key in places(graph) if str(key).endswith("_values")]
    values = list(dict.fromkeys(value for table in tables for value in table))
    names = {value: f"v{len(values) - at}" for at, value in enumerate(values)}
    other = copy.deepcopy(data)
    other["graph_module"] = renamed(other["graph_module"], names)
    assert other != data and len(values) > 3
    mine, theirs = pt2.program_of(data), pt2.program_of(other)
    assert mine.program == theirs.program
    assert (mine.spec, mine.limits, mine.example) == (theirs.spec, theirs.limits, theirs.example)


# ---- whole archives


def test_there_are_archives() -> None:
    assert len(ARCHIVES) >= 10


@pytest.mark.parametrize("name", ARCHIVES)
def test_programs_keep_the_laws(name: str) -> None:
    program = load(name).program
    program.verify()
    assert from_json(json.loads(json.dumps(to_json(program)))) == program
    assert program.nodes and program.outputs


@pytest.mark.parametrize("name", ARCHIVES)
def test_rules_and_trace_agree_on_every_value(name: str) -> None:
    compared, found = disagreements(load(name), default_rules)
    assert not found
    assert compared > 50


@pytest.mark.parametrize("name", ARCHIVES)
def test_every_operator_has_a_rule(name: str) -> None:
    (path,) = system(load(name), default_rules).paths
    without = {note.reason.split()[0] for note in path.notes}
    assert without <= {"higher_order.cond"}


def test_the_oracle_fails_on_a_wrong_rule() -> None:
    def tanh(c: object, input: Tensor) -> Tensor:
        return structs.replace(input, shape=(*input.shape[:-1], input.shape[-1] + 1))

    _, found = disagreements(load("bert"), default_rules + {"tanh": tanh})
    assert len(found) == 1 and found[0].startswith("tanh ")


def test_the_oracle_fails_on_a_rule_that_asks_too_much() -> None:
    def tanh(c: Context, input: Tensor) -> Tensor:
        c.require(False, "never")
        return input

    with pytest.raises(AssertionError, match="no sizes satisfy"):
        disagreements(load("bert"), default_rules + {"tanh": tanh})


def test_the_oracle_fails_on_a_wrong_size() -> None:
    data = document("unet")
    data["graph_module"]["graph"]["tensor_values"]["max_pool2d"]["sizes"][1] = {"as_int": 5}
    _, found = disagreements(pt2.program_of(data), default_rules)
    assert len(found) == 1 and found[0].startswith("max_pool2d ")


# ---- inputs, outputs, origins


def test_inputs_have_the_paths_that_the_model_takes_them_by() -> None:
    traced = load("sizes")
    assert [d.path for d in traced.spec.inputs] == [
        ("x",),
        ("batch", "pixels"),
        ("batch", "list", 0),
        ("n",),
    ]
    x, pixels, _, n = (d.type for d in traced.spec.inputs)
    assert isinstance(x, Tensor) and x.shape[0] == parse_dim("4*s74") and x.dtype == "float32"
    assert isinstance(pixels, Tensor) and n == sym("s86")
    assert ge(sym("s74"), 1) in traced.spec.domain.assumptions
    assert not any(f == ge(sym("s86"), 1) for f in traced.spec.domain.assumptions)


def test_an_archive_says_its_inputs_in_the_notation_of_specs() -> None:
    traced = load("bert")
    assert parse_spec(write_spec(traced.spec)).inputs == traced.spec.inputs


def test_parameters_have_their_own_names() -> None:
    inputs = {i.name: i for i in load("bert").program.inputs}
    assert inputs["words.weight"].parameter and inputs["words.weight"].type == Tensor((100, 16))
    assert inputs["ids"].parameter and inputs["ids"].type == Tensor((1, 32), "int64")
    assert not inputs["mask"].parameter


def test_a_parameter_may_be_called_as_an_input_is() -> None:
    data = document("resnet_static")
    specs = data["graph_module"]["signature"]["input_specs"]
    specs[0]["parameter"]["parameter_name"] = "x"
    program = pt2.program_of(data).program
    program.verify()
    assert [(i.name, i.parameter) for i in program.inputs if i.name.startswith("x")] == [
        ("x (parameter)", True),
        ("x", False),
    ]


def test_outputs_have_the_places_where_they_are_returned() -> None:
    assert [name for name, _ in load("bert").program.outputs] == ["hidden", "pooled"]
    names = [name for name, _ in load("sizes").program.outputs]
    assert names == ["0", "1.pixels", "1.n", "1.room[0]", "1.room[1]", "2"]
    assert [name for name, _ in load("unet").program.outputs] == ["output"]


def test_what_is_written_into_buffers_is_no_output() -> None:
    data = document("unet")
    module = data["graph_module"]
    module["graph"]["outputs"].insert(0, {"as_tensor": {"name": "conv2d"}})
    module["signature"]["output_specs"].insert(
        0, {"buffer_mutation": {"arg": {"name": "conv2d"}, "buffer_name": "b"}}
    )
    assert [name for name, _ in pt2.program_of(data).program.outputs] == ["output"]


def test_origins_are_the_users_lines() -> None:
    (join, *_) = nodes(load("unet"), "cat")
    assert join.origin.file == "tests/tracer/fixtures/make.py" and join.origin.function == "forward"
    assert "torch.cat(" in join.origin.code
    source = [line.strip() for line in (FIXTURES / "make.py").read_text().splitlines()]
    assert join.origin.line > 0 and join.origin.code in source
    first = nodes(load("resnet"), "conv2d")[0]
    assert first.origin.module == "stem.0" and "self.stem(x)" in first.origin.code


def test_operators_have_canonical_names_and_named_arguments() -> None:
    traced = load("sizes")
    (repeat,) = nodes(traced, "repeat")
    assert [name for name, _ in repeat.args] == ["self", "repeats"]
    (half, *_) = nodes(traced, "sym_floordiv")
    assert [name for name, _ in half.args] == ["arg0", "arg1"] and half.args[1][1] == 2


def test_lists_of_results_are_results_one_by_one() -> None:
    (split, *_) = nodes(load("bert"), "unbind")
    assert len(split.results) == 3


def test_regions_and_branches_are_inlined() -> None:
    traced = load("regions")
    ops = [node.op for node in traced.program.nodes]
    assert not any("wrap_with" in op for op in ops) and "mean" in ops and "matmul" in ops
    assert ops.count("cond") == 1 and ops.index("cond") == len(ops) - 1
    assert {truth for node in traced.program.nodes for _, truth in node.given} == {True, False}


def test_dtypes_in_an_autocast_region_are_torchs_to_choose() -> None:
    """In the region a float32 weight meets a bfloat16 operand, which outside of it is refused."""
    data = document("regions")
    traced = pt2.program_of(data)
    mixed = structs.replace(traced.spec.inputs[0].type, dtype="bfloat16")  # type: ignore[type-var]
    inputs = tuple(structs.replace(i, type=mixed) if i.name == "x" else i for i in traced.program.inputs)
    (path,) = system(replace(traced, program=replace(traced.program, inputs=inputs)), default_rules).paths
    refused = [path.program.nodes[c.node].origin.line for c in path.constraints if c.formula is False]
    outside = nodes(traced, "linear")[-1].origin.line
    assert refused == [outside]


# ---- what the trace allows


def test_ranges_and_guards_are_limits_of_the_trace() -> None:
    limits = load("unet").limits
    assert {c.kind for c in limits} == {"trace"} and {c.node for c in limits} == {-1}
    assert "8 <= s53" in kinds(limits, "trace") and "s53 % 8 == 0" in kinds(limits, "trace")


def test_the_model_needs_what_its_operators_need() -> None:
    (path,) = system(load("unet"), default_rules).paths
    assert "s53 % 8 == 0" in kinds(path.constraints, "model")
    assert "s53//4 != 1" in kinds(path.constraints, "trace") - kinds(path.constraints, "model")


def test_a_lower_bound_of_two_is_none() -> None:
    """torch notes that it takes 0 and 1 apart, and does not enforce it."""
    data = document("bert")
    assert data["range_constraints"]["s31"]["min_val"] == 2
    assert not any("s31" in str(c.formula) for c in load("bert").limits)


def test_a_bound_is_told_by_the_input_that_it_is_about() -> None:
    (limit,) = load("bert").limits
    assert limit.formula == le(sym("s64"), 32) and "input_ids.shape[1]" in limit.reason


def test_a_guard_that_formulas_cannot_say_is_kept_as_text() -> None:
    data = document("bert")
    data["guards_code"] = [
        "L['mask'].stride()[0] == 7",
        "__import__('os').system('true')",
        "L['mask'].size()[0] > 1",
    ]
    traced = pt2.program_of(data)
    assert traced.unread == tuple(data["guards_code"][:2])
    assert ge(sym("s20"), 2) in {c.formula for c in traced.limits} or len(traced.limits) == 2


def test_an_assertion_that_repeats_a_limit_is_one() -> None:
    traced = load("data")
    (path,) = system(traced, default_rules).paths
    (ours,) = [
        c for c in path.constraints if path.program.nodes[c.node].op == "_assert_scalar" and c.node >= 0
    ][:1]
    limit = replace(ours, node=-1, kind="trace")
    (path,) = system(replace(traced, limits=(limit,)), default_rules).paths
    assert ours.kind == "model"
    assert {c.kind for c in path.constraints if c.formula == ours.formula} == {"trace"}


# ---- specs of the user's


def test_a_spec_replaces_the_sizes_of_the_trace() -> None:
    traced = retype(load("bert"), parse_spec("input_ids: int64[b, t]; mask: int64[b, t]"))
    assert traced.spec.domain.symbols == ("b", "t")
    assert kinds(traced.limits, "trace") == {"t <= 32"}
    assert traced.example == {"b": 2, "t": 7} and not traced.baked
    _, found = disagreements(traced, default_rules)
    assert not found


def test_one_symbol_of_the_trace_may_not_be_two_sizes() -> None:
    traced = retype(load("bert"), parse_spec("input_ids: int64[b, t]; mask: int64[b, u]"))
    (limit,) = [c for c in traced.limits if c.formula == eq(sym("t"), sym("u"))]
    assert limit.kind == "trace" and "mask.shape[1]" in limit.reason


def test_a_number_of_the_trace_is_a_limit() -> None:
    (path,) = system(load("resnet_static"), default_rules, parse_spec("x: [b, 3, h, w]")).paths
    assert kinds(path.constraints, "trace") == {"b == 2", "h == 48", "w == 56"}
    assert not kinds(path.constraints, "model") & {"b == 2", "h == 48", "w == 56"}
    (limit,) = [c for c in path.constraints if str(c.formula) == "h == 48"]
    assert "x.shape[2] is 48" in limit.reason


def test_a_number_in_the_graph_may_come_from_the_trace() -> None:
    """The view in the static encoder has the batch written out: nothing tells it from the model's own 2."""
    spec = parse_spec("input_ids: int64[b, 7]; mask: int64[b, 7]")
    (path,) = system(load("bert_static"), default_rules, spec).paths
    told = [c for c in path.constraints if c.formula == eq(sym("b"), 2) and c.kind == "model"]
    assert told and "input_ids.shape[0] was 2 when the program was exported" in told[0].reason


def test_a_relation_of_sizes_is_not_said_to_come_from_the_trace() -> None:
    traced = retype(load("unet"), parse_spec("x: [b, 3, h, w]"))
    (path,) = system(traced, default_rules).paths
    assert not any("exported" in c.reason for c in path.constraints if c.kind == "model")


def test_a_derived_size_is_solved_for_its_symbol() -> None:
    spec = parse_spec('x: [b, t]; batch["pixels"]: [p, q]; batch["list"][0]: [r]; n: int')
    traced = retype(load("sizes"), spec)
    assert "b % 4 == 0" in kinds(traced.limits, "trace")
    assert traced.example == {"b": 12, "t": 10, "p": 6, "q": 5, "r": 5, "n": 3}


# fmt: off
MISFITS = [
    ("unet", "x: [b, 3, h]", "x has 4 sizes in the exported program, not 3",
     "declare x: float32[s77, 3, s53, s0]"),
    ("unet", "x: int64[b, 3, h, w]", "x is float32 in the exported program, not int64", "declare x"),
    ("unet", "x: [b, 3, h, w]; y: [b]", "no input 'y'", "its inputs are x"),
    ("bert", "input_id: int64[b, t]; mask: int64[b, t]", "does not declare the input input_ids",
     "declare input_ids"),
    ("bert", "input_ids: int64[b, t]", "does not declare the input mask", "declare mask: int64"),
    ("bert", "input_ids: int64[b, t]; mask: int64[b, t]; maks: [b]", "no input 'maks'",
     "did you mean 'mask'?"),
    ("unet", "x: int", "x is a tensor in the exported program, not an integer", "declare x"),
    ("unet", "x=None", "x is a tensor in the exported program, not None", "declare x"),
]
# fmt: on


@pytest.mark.parametrize("name, text, problem, hint", MISFITS)
def test_a_spec_that_does_not_fit_is_refused(name: str, text: str, problem: str, hint: str) -> None:
    with pytest.raises(SpecError) as caught:
        retype(load(name), parse_spec(text))
    assert problem in caught.value.problem and hint in caught.value.hint


def constants(**values: Any) -> dict[str, Any]:
    """The `unet` document with further inputs that are constants."""
    data = document("unet")
    module = data["graph_module"]
    for name, value in values.items():
        kind = "as_none" if value is None else f"as_{type(value).__name__.replace('str', 'string')}"
        body = {kind: True if value is None else value}
        module["graph"]["inputs"].append(body)
        module["signature"]["input_specs"].append({"constant_input": {"name": name, "value": body}})
    call = module["module_call_graph"][0]["signature"]
    call["forward_arg_names"] += list(values)
    tree = json.loads(call["in_spec"])
    tree[1]["children_spec"][0]["children_spec"] += [
        {"type": None, "context": None, "children_spec": []}
    ] * len(values)
    call["in_spec"] = json.dumps(tree)
    return data


def test_constants_may_be_left_out_or_declared_as_they_were() -> None:
    traced = pt2.program_of(constants(n=3, flag=True, mode="same", rate=0.5, none=None))
    x = "x: [b, 3, h, w]"
    for text in (x, f'{x}; n=3; flag=True; mode="same"; rate=0.5; none=None'):
        assert retype(traced, parse_spec(text)).limits
    assert eq(sym("n"), 3) in {c.formula for c in retype(traced, parse_spec(f"{x}; n: int")).limits}
    for other in ("flag=False", 'mode="valid"', "rate=0.25", "rate: float", "none=1", "flag=1", "n=True"):
        with pytest.raises(SpecError, match=r"in the exported program, not"):
            retype(traced, parse_spec(f"{x}; {other}"))
    assert False in {c.formula for c in retype(traced, parse_spec(f"{x}; n=4")).limits}


# ---- operators without a rule


def without(*ops: str) -> Rules:
    return Rules({name: rule for name, rule in default_rules.items() if name not in ops})


def test_the_trace_stands_in_for_a_rule() -> None:
    (path,) = system(load("unet"), without("max_pool2d")).paths
    assert {(note.code, note.reason.split()[0]) for note in path.notes} == {("approximate", "max_pool2d")}
    _, found = disagreements(load("unet"), without("max_pool2d"))
    assert not found


def test_the_trace_stands_in_over_the_symbols_of_the_spec() -> None:
    traced = retype(load("unet"), parse_spec("x: [b, 3, h, w]"))
    (path,) = system(traced, without("max_pool2d")).paths
    (pool, *_) = nodes(traced, "max_pool2d")
    value = path.values[pool.results[0]]
    assert isinstance(value, Tensor) and value.shape == (sym("b"), 4, sym("h") // 2, sym("w") // 2)


@pytest.mark.parametrize("text", ["x: [b, 3, 48, 56]", "x: [3, 3, 48, 56]"])
def test_the_trace_does_not_stand_in_at_other_sizes_than_its_own(text: str) -> None:
    traced = retype(load("resnet_static"), parse_spec(text))
    (path,) = system(traced, without("max_pool2d")).paths
    assert {note.code for note in path.notes} == {"no-rule"}
    (pool,) = nodes(traced, "max_pool2d")
    assert path.values[pool.results[0]] is Dyn


def test_a_size_that_data_decides_does_not_leak_from_the_trace() -> None:
    (path,) = system(load("data"), without("nonzero")).paths
    (found,) = nodes(load("data"), "nonzero")
    assert path.values[found.results[0]] is Dyn


# ---- what is imported


def test_an_archive_is_checked_without_torch_and_z3() -> None:
    program = f"""
import sys
from anyshape.tracer.readers import pt2, graph
traced = pt2.read({str(FIXTURES / "unet.pt2")!r})
assert not [m for m in ("torch", "z3", "sympy", "numpy", "pickle") if m in sys.modules], "reading"
from anyshape.constraints.rules import default_rules
assert graph.system(traced, default_rules).paths[0].constraints
assert not [m for m in ("torch", "z3", "sympy", "numpy") if m in sys.modules], "applying rules"
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_is_left_as_it_was(enabled: bool, tmp_path: Path) -> None:
    try:
        (gc.enable if enabled else gc.disable)()
        load("unet")
        assert gc.isenabled() == enabled
        with pytest.raises(ArchiveError):
            pt2.read(zipped({}, tmp_path))
        assert gc.isenabled() == enabled
    finally:
        gc.enable()


# ---- damaged and hostile archives


def zipped(entries: dict[str, bytes], tmp_path: Path, compression: int = zipfile.ZIP_STORED) -> Path:
    path = tmp_path / "model.pt2"
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, data in entries.items():
            file.writestr(name, data)
    return path


def as_json(data: Any) -> bytes:
    return json.dumps(data).encode()


def changed(**top: Any) -> bytes:
    return as_json(document("unet") | top)


# fmt: off
WRONG_FILES: dict[str, tuple[dict[str, bytes], str]] = {
    "no model": ({"a/archive_format": b"pt2"}, "has no models/model.json"),
    "another model": ({"a/models/encoder.json": b"{}"}, "it has encoder"),
    "two roots": ({MODEL: b"{}", "b/models/model.json": b"{}"}, "two entries"),
    "path tricks": ({"../../models/model.json": b"{}",
    "/models/model.json": b"{}"}, "has no models/model.json"),
    "TorchScript": ({"a/constants.pkl": b"", "a/data.pkl": b""}, "TorchScript"),
    "weights": ({"a/data.pkl": b"", "a/data/0": b""}, "holds weights"),
    "compiled": ({"a/data/aotinductor/model/x.so": b""}, "compiled code"),
    "old": ({"serialized_exported_program.json": b"{}"}, "before 2.7"),
    "empty": ({MODEL: b""}, "is not valid JSON"),
    "no JSON": ({MODEL: b"\x80\x02}q\x00."}, "is not valid JSON"),
    "a list": ({MODEL: b"[]"}, "not a JSON object"),
    "nested": ({MODEL: b"[" * 200_000}, "is not valid JSON"),
    "long number": ({MODEL: b'{"schema_version": {"major": ' + b"8" * 10_000 + b"}}"}, "is not valid JSON"),
    "no version": ({MODEL: b"{}"}, "does not say the version"),
    "later version": ({MODEL: changed(schema_version={"major": 9, "minor": 0})}, "has schema 9"),
    "earlier version": ({MODEL: changed(schema_version={"major": 7, "minor": 3})}, "has schema 7"),
    "odd version": ({MODEL: changed(schema_version={"major": "8"})}, "does not say the version"),
    "no graph": ({MODEL: changed(graph_module={})}, "'graph' is missing"),
    "graph of another kind": ({MODEL: changed(graph_module=[1])}, "a value of the kind dict"),
    "guards of another kind": ({MODEL: changed(guards_code=[1])}, "a value of the kind str"),
}
# fmt: on


@pytest.mark.parametrize("name", WRONG_FILES)
def test_a_file_that_is_something_else_is_refused(name: str, tmp_path: Path) -> None:
    entries, problem = WRONG_FILES[name]
    with pytest.raises(ArchiveError) as caught:
        pt2.read(zipped(entries, tmp_path))
    message = str(caught.value)
    assert problem in message and "model.pt2" in message and len(message) < 500
    assert re.search("again|export|it has|load|check", message), "says what to do"


def test_a_missing_file_is_the_systems_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        pt2.read(tmp_path / "none.pt2")
    with pytest.raises(IsADirectoryError):
        pt2.read(tmp_path)


@pytest.mark.parametrize("size", [0, 10, 2000, -1, -30])
def test_a_truncated_file_is_refused(size: int, tmp_path: Path) -> None:
    whole = (FIXTURES / "unet.pt2").read_bytes()
    path = tmp_path / "model.pt2"
    path.write_bytes(whole[:size])
    with pytest.raises(ArchiveError, match=r"model\.pt2 is not a complete zip file"):
        pt2.read(path)


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_BYTES", 1 << 20)
    path = zipped({MODEL: b" " * (1 << 21)}, tmp_path, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 10_000
    with pytest.raises(ArchiveError, match="too large"):
        pt2.read(path)


def test_a_directory_of_millions_is_not_read(tmp_path: Path) -> None:
    """An entry takes 47 bytes of the file, and ten times as much where it is read."""
    count = archive.MAX_DIRECTORY // 47 + 1
    fixed = struct.pack("<HHHHHHIIIHHHHHII", 20, 20, 0, 0, 0, 33, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0)
    directory = (b"PK\x01\x02" + fixed + b"a") * count
    end64 = b"PK\x06\x06" + struct.pack("<QHHIIQQQQ", 44, 45, 45, 0, 0, count, count, len(directory), 0)
    locator = b"PK\x06\x07" + struct.pack("<IQI", 0, len(directory), 1)
    end = b"PK\x05\x06" + struct.pack("<HHHHIIH", 0, 0, 0xFFFF, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0)
    path = tmp_path / "model.pt2"
    path.write_bytes(directory + end64 + locator + end)
    began = time.process_time()
    with pytest.raises(ArchiveError, match="directory is too large"):
        pt2.read(path)
    assert time.process_time() - began < 1.0


def test_a_size_that_is_a_lie_ends_in_a_refusal(tmp_path: Path) -> None:
    """The directory says 10 bytes, the entry has a million: 10 are read, and fail their checksum."""
    path = zipped({MODEL: b" " * 1_000_000}, tmp_path, zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(path) as file:
        where = file.start_dir
    data = bytearray(path.read_bytes())
    data[where + 24 : where + 28] = (10).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(ArchiveError):
        pt2.read(path)


@pytest.mark.parametrize("way", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_a_bomb_of_another_compression_is_not_unpacked(way: int, tmp_path: Path) -> None:
    path = zipped({MODEL: b" " * (1 << 26)}, tmp_path, way)
    with zipfile.ZipFile(path) as file:
        where = file.start_dir
    data = bytearray(path.read_bytes())
    data[where + 24 : where + 28] = (10).to_bytes(4, "little")
    path.write_bytes(data)
    tracemalloc.start()
    with pytest.raises(ArchiveError, match="compressed as torch never does"):
        pt2.read(path)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 1 << 24


def test_weights_and_pickles_are_not_read(tmp_path: Path) -> None:
    """Entries beside the JSON may be anything, even damaged."""
    with zipfile.ZipFile(FIXTURES / "unet.pt2") as file:
        model = next(file.read(name) for name in file.namelist() if name.endswith("models/model.json"))
    pickle = b"\x80\x04cos\nsystem\n(S'exit 1'\ntR."
    others = {"a/data/sample_inputs/model.pt": pickle, "a/data/weights/w": b"x"}
    path = zipped({MODEL: model, **others}, tmp_path)
    data = path.read_bytes().replace(b"S'exit 1'", b"S'exit 2'")  # its checksum is wrong now
    path.write_bytes(data)
    assert pt2.read(path).program == load("unet").program


def test_a_pickled_object_in_the_graph_is_refused() -> None:
    data = document("unet")
    argument = {"as_custom_obj": {"name": "obj", "class_fqn": "__torch__.Evil"}}
    data["graph_module"]["graph"]["nodes"][0]["inputs"][0]["arg"] = argument
    with pytest.raises(ArchiveError, match=r"__torch__\.Evil.*no pickle is read"):
        pt2.program_of(data)


def graph_of(data: dict[str, Any]) -> dict[str, Any]:
    graph = data["graph_module"]["graph"]
    assert isinstance(graph, dict)
    return graph


def use_before_made(graph: dict[str, Any]) -> None:
    graph["nodes"].reverse()


def made_twice(graph: dict[str, Any]) -> None:
    graph["nodes"].append(graph["nodes"][0])


def argument_twice(graph: dict[str, Any]) -> None:
    graph["nodes"][0]["inputs"].append(graph["nodes"][0]["inputs"][0])


def unknown_output(graph: dict[str, Any]) -> None:
    graph["outputs"][0] = {"as_tensor": {"name": "nothing"}}


def untyped_input(graph: dict[str, Any]) -> None:
    del graph["tensor_values"]["x"]


def more_inputs(graph: dict[str, Any]) -> None:
    graph["inputs"].append({"as_int": 1})


def two_kinds(graph: dict[str, Any]) -> None:
    graph["nodes"][0]["inputs"][0]["arg"] = {"as_int": 1, "as_float": 1.0}


def unknown_kind(graph: dict[str, Any]) -> None:
    graph["nodes"][0]["inputs"][0]["arg"] = {"as_future": 1}


def text_for_a_number(graph: dict[str, Any]) -> None:
    graph["nodes"][0]["inputs"][-1]["arg"] = {"as_ints": ["1"]}


# fmt: off
BROKEN: list[tuple[Callable[[dict[str, Any]], None], str]] = [
    (use_before_made, "which no earlier node makes"),
    (made_twice, "twice"),
    (argument_twice, "two arguments"),
    (unknown_output, "'nothing'"),
    (untyped_input, "the kind of the input 'x' is not given"),
    (more_inputs, "inputs have"),
    (two_kinds, "an object with one key was expected"),
    (unknown_kind, "'as_future' is not a kind of argument"),
    (text_for_a_number, "a value of the kind int was expected, not '1'"),
]
# fmt: on


@pytest.mark.parametrize("minor, said", [(20, ""), (31, "schema 8.31 of torch 2.99, and 8.20 is known")])
def test_a_graph_of_a_later_schema_is_said_to_be_one(minor: int, said: str) -> None:
    data = document("unet") | {"schema_version": {"major": 8, "minor": minor}, "torch_version": "2.99"}
    assert pt2.program_of(data).program == load("unet").program
    unknown_kind(graph_of(data))
    with pytest.raises(ArchiveError, match=r"8\.20") as caught:
        pt2.program_of(data, "here.pt2")
    assert said in str(caught.value) and ("2.99" in str(caught.value)) == bool(said)


@pytest.mark.parametrize("damage, problem", BROKEN, ids=[damage.__name__ for damage, _ in BROKEN])
def test_a_graph_that_is_none_is_refused(damage: Callable[[dict[str, Any]], None], problem: str) -> None:
    data = document("unet")
    damage(graph_of(data))
    with pytest.raises(ArchiveError) as caught:
        pt2.program_of(data, "here.pt2")
    assert problem in str(caught.value) and str(caught.value).startswith("here.pt2 ")
    assert "export the model again" in str(caught.value)


@pytest.mark.parametrize("depth", [60, 3000])
def test_graphs_that_are_nested_without_end_are_refused(depth: int) -> None:
    data = document("unet")
    inner: dict[str, Any] = {"inputs": [], "outputs": [], "nodes": [], "tensor_values": {}}
    for _ in range(depth):
        named = {"name": "", "arg": {"as_graph": {"name": "g", "graph": inner}}}
        call = {"target": "torch.ops.higher_order.wrap", "inputs": [named], "outputs": [], "metadata": {}}
        inner = {**inner, "nodes": [call]}
    graph_of(data)["nodes"][:0] = inner["nodes"]
    with pytest.raises(ArchiveError, match="nested"):
        pt2.program_of(data)


# fmt: off
JSON_VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from([2**31, -(2**70), 10**30]), st.floats(),
    st.sampled_from(["", "x", "torch.ops.aten.view.default", "_operator.floordiv", "as_int", "é\0",
    "L['x'].size()[0]"]),
    st.just([]), st.just({}), st.just({"as_int": 1}), st.just({"as_tensor": {"name": "x"}}),
)
# fmt: on


def places(data: Any) -> list[tuple[Any, Any]]:
    """Every container in a document with each of its keys."""
    found: list[tuple[Any, Any]] = []
    rest = [data]
    while rest:
        holder = rest.pop()
        indices = range(len(holder)) if isinstance(holder, list) else ()
        for key in list(holder) if isinstance(holder, dict) else indices:
            found.append((holder, key))
            rest.append(holder[key])
    return found


DOCUMENTS = {name: document(name) for name in ("sizes", "data", "regions")}


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_no_mutation_of_the_json_ends_in_another_error(data: st.DataObject) -> None:
    mutated = copy.deepcopy(DOCUMENTS[data.draw(st.sampled_from(sorted(DOCUMENTS)))])
    for _ in range(data.draw(st.integers(1, 3))):
        all_places = places(mutated)
        holder, key = all_places[data.draw(st.integers(0, len(all_places) - 1))]
        how = data.draw(st.sampled_from(["replace", "delete", "swap", "rename"]))
        if how == "delete":
            del holder[key]
        elif how == "swap":
            other, place = all_places[data.draw(st.integers(0, len(all_places) - 1))]
            holder[key] = copy.deepcopy(other[place])
        elif how == "rename" and isinstance(holder, dict):
            name = data.draw(st.sampled_from(["as_int", "as_ints", "as_tensor", "name", "x"]))
            holder[name] = holder.pop(key)
        else:
            holder[key] = data.draw(JSON_VALUES)
    try:
        traced = pt2.program_of(mutated)
    except ArchiveError:
        return
    traced.program.verify()
    for read in traced.recorded.values():
        read()


def test_arguments_that_an_operator_does_not_take_are_told() -> None:
    data = document("unet")
    graph_of(data)["nodes"][0]["inputs"][0]["arg"] = {"as_int": 3}
    (path,) = system(pt2.program_of(data), default_rules).paths
    (note,) = path.notes
    assert note.code == "approximate" and "conv2d: its rule does not take these arguments" in note.reason


@pytest.mark.parametrize("suffix", ["", "_"])
def test_arguments_that_a_rule_knows_by_another_name_are_told_by_position(suffix: str) -> None:
    graph = graph_of(data := document("unet"))
    (relu, *_) = [node for node in graph["nodes"] if node["target"] == "torch.ops.aten.relu.default"]
    relu["target"] = f"torch.ops.aten.leaky_relu{suffix}.default"
    relu["inputs"].append({"name": "negative_slope", "arg": {"as_float": 0.2}, "kind": 1})
    compared, found = disagreements(pt2.program_of(data), default_rules)
    assert compared and not found and not system(pt2.program_of(data), default_rules).paths[0].notes


def test_an_autocast_region_without_types_is_read() -> None:
    data = document("regions")
    for node in graph_of(data)["nodes"]:
        if "autocast" in node["target"]:
            node["inputs"][4]["arg"]["as_graph"]["graph"]["tensor_values"] = {}
    pt2.program_of(data).program.verify()


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=8), st.booleans())
def test_no_mutation_of_the_file_ends_in_another_error(
    tmp_path_factory: pytest.TempPathFactory, changes: list[tuple[int, int]], at_the_end: bool
) -> None:
    path = tmp_path_factory.getbasetemp() / "mutated.pt2"
    whole = bytearray((FIXTURES / "data.pt2").read_bytes())
    for at, byte in changes:
        whole[-1 - at % 700 if at_the_end else at % len(whole)] = byte
    path.write_bytes(whole)
    with suppress(ArchiveError):
        pt2.read(path)


# ---- expressions

S = "Symbol('s0', integer=True, positive=True)"
# fmt: off
DIMS = [
    ("Integer(7)", "7"),
    (S, "s0"),
    (f"Add({S}, Integer(-1))", "s0 - 1"),
    (f"Mul(Integer(2), {S}, Symbol('u0', integer=True))", "2*s0*u0"),
    (f"Pow({S}, Integer(2))", "s0**2"),
    (f"FloorDiv(Add({S}, Integer(1)), Integer(2))", "(s0 + 1)//2"),
    (f"PythonMod({S}, Integer(3))", "s0 % 3"),
    (f"Max(Integer(1), {S})", "max(s0, 1)"),
    (f"CeilToInt(IntTrueDiv({S}, Integer(2)))", "(s0 + 1)//2"),
    (f"TruncToInt(IntTrueDiv({S}, Integer(2)))", "s0//2"),
    (f"FloorToInt(IntTrueDiv(Symbol('u0', integer=True), {S}))", "u0//s0"),
    (f"TruncToInt(Mul(Float('0.75', precision=53), ToFloat({S})))", "3*s0//4"),
]
# fmt: on


@pytest.mark.parametrize("text, dim", DIMS)
def test_sizes_in_sympys_notation(text: str, dim: str) -> None:
    assert dim_of(text) == parse_dim(dim)


# fmt: off
FORMULAS = [
    (f"GreaterThan({S}, Integer(3))", "s0 >= 3"),
    (f"StrictLessThan({S}, Integer(3))", "s0 < 3"),
    (f"And(Unequality({S}, Integer(3)), Not(Equality({S}, Integer(4))))", "s0 != 3 and s0 != 4"),
    (f"Or(LessThan({S}, Integer(1)), StrictGreaterThan({S}, Integer(8)))", "s0 <= 1 or s0 > 8"),
    ("true", "True"),
]
# fmt: on


@pytest.mark.parametrize("text, formula", FORMULAS)
def test_conditions_in_sympys_notation(text: str, formula: str) -> None:
    assert formula_of(text) == parse_formula(formula)


# fmt: off
NO_SIZES = [
    "", "s0", "Integer(x)", "Integer(1", "Integer(1))", "Symbol(s0)", "Symbol('a b')",
    "Float('1.5', precision=53)", f"TruncToInt(Mul(Float('0.1', precision=53), {S}))", "Float('1.5')",
    f"IntTrueDiv({S}, Integer(2))", "TruncToInt(IntTrueDiv(Symbol('u0', integer=True), Integer(2)))",
    "exp(Integer(1))", "Integer", "FloorDiv(Integer(1))", "Not()", "Add()", "__import__('os')",
    f"FloorDiv({S}, Integer(0))", f"Pow({S}, {S})", f"Pow(Add({S}, Symbol('s1')), Integer(257))",
    "Add(" * 5000, "Add(" * 140 + "Integer(1)" + ")" * 140, "Integer(" + "9" * 5000 + ")", "Symbol('and')",
]
# fmt: on


@pytest.mark.parametrize("text", NO_SIZES)
def test_what_is_no_size_is_not_read(text: str) -> None:
    with pytest.raises(NotRead):
        dim_of(text)


def source(path: tuple[str | int, ...], axis: int | None) -> Any:
    if path == ("L",):
        raise AssertionError("L itself is no step")
    if path[0] == "unknown":
        raise NotRead("no such input")
    return sym("_".join(map(str, path)) + ("" if axis is None else f"_{axis}"))


# fmt: off
GUARDS = [
    ("L['x'].size()[2] % 4 == 0", "x_2 % 4 == 0"),
    ("(1 + (((-1) + L['x'].size()[3]) // 2)) != 1", "(x_3 + 1)//2 != 1"),
    ("L['b']['p'].size()[0]*L['b'][1].size()[1] <= 9", "b_p_0*b_1_1 <= 9"),
    ("not (L['n'] == 3 or L['x'].size()[0] < 2)", "n != 3 and x_0 >= 2"),
    ("2 <= L['x'].size()[0] < 9", "2 <= x_0 < 9"),
    ("math.trunc(L['x'].size()[0] / 2) == 4", "x_0//2 == 4"),
    ("math.ceil(L['n'] / 2) == 4", "(n + 1)//2 == 4"),
    ("((3*L['x'].size()[1]) / 4) == 1.5", "x_1 == 2"),
    ("L['n'] / 2 < L['x'].size()[0] / 8 <= 2.25", "4*n < x_0 and x_0 <= 18"),
    ("1.5 == 1", "False"),
    ("L['n'] / 3 == 1", "n == 3"),
    ("L['n'] / (1 + L['x'].size()[1]) < 1.0", "x_1 >= 0 and n <= x_1 or x_1 <= -2 and n > x_1 + 1"),
    ("2 >= L['x'].size()[0] / L['n']", "n >= 1 and 2*n >= x_0 or n <= -1 and 2*n <= x_0"),
    ("L['n'] / L['x'].size()[0] != 3", "x_0 > 0 and n != 3*x_0 or x_0 < 0 and n != 3*x_0"),
    ("math.trunc(0.5 * torch.sym_float(L['x'].size()[0])) == 4", "x_0//2 == 4"),
    ("math.trunc(L['x'].size()[0] / (L['x'].size()[1] / 4 / 4.0)) == 4", "x_1 != 0 and 16*x_0//x_1 == 4"),
    ("math.trunc(torch.sym_float(L['x'].size()[0]) ** 0.5) == 4", "isqrt(x_0) == 4"),
    ("torch.sym_max(L['x'].size()[0], torch.sym_min(9, L['n'])) == 4", "max(x_0, min(9, n)) == 4"),
    ("math.floor(torch._sym_sqrt(torch.sym_float(L['x'].size()[0]))) == 4", "isqrt(x_0) == 4"),
    ("math.isqrt(L['x'].size()[0]) == 4", "isqrt(x_0) == 4"),
    ("round(L['x'].size()[0]) == 4", "x_0 == 4"),
    ("max(1, L['n']) > min(L['n'], 5) ** 2", "max(1, n) > min(n, 5)**2"),
    ("8 % L['n'] == 0", "n != 0 and 8 % n == 0"),
    ("True", "True"),
]
# fmt: on


@pytest.mark.parametrize("text, formula", GUARDS)
def test_guards_are_formulas(text: str, formula: str) -> None:
    assert guard(text, source, {"x_0": (0, 99), "x_1": (1, 99)}) == parse_formula(formula)


# fmt: off
NO_GUARDS = [
    "", "L['x']", "1", "x == 1", "L['x'].stride()[0] == 1", "L['x'].size()[0][1] == 1",
    "L['unknown'].size()[0] == 1",
    "L['x'].size()[L['n']] == 1", "L['x'].size(0) == 1", "__import__('os').system('true')",
    "(lambda: 1)() == 1",
    "[n for n in ()] == 1", "L['n'] / 3 == 5000", "math.trunc(L['n'] / 2) == 1", "L['n'] is 1", "0.1 == 1",
    "'a' == 'b'", "math.trunc(1e999 * L['x'].size()[0]) == 1", "math.trunc(0.1 * L['x'].size()[0]) == 1",
    "L['n'] << 2 == 1", "L['n']**L['n'] == 1", "9**9**9**9 == 1", "1 == 1 if 1 else 2", "(a := 1) == 1", "\0",
    "(" * 3000, "-" * 60_000 + "1", "not " * 20_000 + "True", "1+" * 30_000 + "1 == 1",
    "L" + "[0]" * 20_000, "max() == 1",
    "L['x'].size()[0]\n== 1", "a; b", "1" * 5000 + " == 1",
]
# fmt: on


@pytest.mark.parametrize("text", NO_GUARDS)
def test_other_guards_are_not_read(text: str) -> None:
    with pytest.raises(NotRead):
        guard(text, source, {})
