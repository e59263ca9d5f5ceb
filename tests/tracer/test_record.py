"""The recorder, program by program: what it records decides for every small assignment whether the program
runs.
"""

from __future__ import annotations

import collections
import functools
import importlib
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy
import pytest
import torch
import torch.nn.functional as F
from msgspec import structs
from torch import Tensor, nn

from anyshape.constraints.ir.program import from_json, to_json
from anyshape.constraints.ir.spec_text import parse_spec
from anyshape.constraints.ir.system import System
from anyshape.constraints.rules import default_rules
from anyshape.constraints.terms.formula import holds
from anyshape.constraints.terms.formula_text import parse_formula
from anyshape.solver.decide import DomainOracle
from anyshape.tracer.host.tensors import overrides_off
from anyshape.tracer.recording.binding import NotCallable
from anyshape.tracer.recording.mode import is_absent
from anyshape.tracer.recording.record import record
from anyshape.typecheck import check


def trace(target: Callable[..., Any], inputs: str, *assume: str, **options: Any) -> System:
    spec = parse_spec(inputs, assume)
    system, _ = record(target, spec, default_rules, DomainOracle(spec.domain), **options)
    for path in system.paths:
        path.program.verify()
        assert from_json(to_json(path.program)) == path.program
        assert not [n for n in path.notes if n.code == "no-rule"], path.notes
    return system


def runs(system: System, **values: int) -> bool:
    """Exactly one path is taken by an assignment; it is accepted where that path returned and its constraints
    hold.
    """
    taken = [p for p in system.paths if holds(p.premise, values)]
    assert len(taken) == 1, f"{values} takes {[str(p.premise) for p in taken]}"
    (path,) = taken
    assert path.end.how != "gave-up", path.end
    return path.end.how == "returned" and all(holds(c.formula, values) for c in path.constraints)


def eager(target: Callable[..., Any], inputs: str, **values: int) -> bool:
    from anyshape.constraints.ir.language import Tensor as Known
    from anyshape.constraints.terms.dims import evaluate
    from anyshape.tracer.recording.binding import bind

    def build(declared: Any) -> Any:
        kind = declared.type
        if isinstance(kind, Known):
            return torch.zeros(
                [evaluate(d, values) for d in kind.shape], dtype=getattr(torch, kind.dtype or "float32")
            )
        return evaluate(kind, values) if hasattr(kind, "terms") else kind

    bound = bind(target, parse_spec(inputs, ()).inputs, build)
    try:
        target(*bound.args, **bound.kwargs)
    except (RuntimeError, ValueError, AssertionError, IndexError, ZeroDivisionError):
        return False
    return True


@dataclass(frozen=True)
class Program:
    target: Any
    inputs: str
    upto: int = 8
    assume: tuple[str, ...] = ()


def in_place(x: Tensor, y: Tensor) -> Tensor:
    x = x.clone()
    x += y
    x.mul_(2).clamp_(min=0)
    x[:, 0] = 1
    return x


def views(x: Tensor) -> Tensor:
    b, t, c = x.shape
    return x.view(b, t, 2, c // 2).transpose(1, 2).reshape(b * 2, -1)


def view_after_transpose(x: Tensor) -> Tensor:
    return x.transpose(0, 1).view(-1)


def branch_on_size(x: Tensor) -> Tensor:
    if x.shape[0] > 4:
        return x.reshape(-1, 3)
    if x.shape[0] % 2:
        return x.view(-1, 2)
    return x


def asserts(x: Tensor) -> Tensor:
    assert x.size(0) % 2 == 0, "an even batch"
    if x.size(1) < 3:
        raise ValueError("too short")
    return x


def chained_comparison(x: Tensor) -> Tensor:
    n = x.shape[0]
    if 2 <= n <= 5 and n != 4:
        return x.view(2, -1)
    return x


def loop_over_size(x: Tensor) -> Tensor:
    total = x.new_zeros(())
    for i in range(x.size(0)):
        total = total + x[i].sum()
    return total


def needs_int(x: Tensor) -> Tensor:
    return torch.cat([x[: int(x.shape[0])]] * int(x.shape[0] // 2 + 1))


def recursion(x: Tensor) -> Tensor:
    return x if x.shape[0] <= 1 else recursion(x[: x.shape[0] // 2])


def list_of_sizes(x: Tensor) -> Tensor:
    sizes = list(x.shape)
    sizes[0] //= 2
    return x.reshape(sizes[0], 2, *sizes[1:])


def float_sizes(x: Tensor) -> Tensor:
    half = int(x.shape[0] / 2)
    up = math.ceil(x.shape[0] / 4)
    return x[:half].sum(0) + torch.zeros(up * 4 - x.shape[0] + 1)[0] + x.view(up, -1).sum()


def keyed_by_size(x: Tensor) -> Tensor:
    cache = {x.shape[0]: x}
    return cache[x.size(0)] if x.shape[0] in cache else x.view(-1, 100)


@functools.lru_cache
def halved(*shape: int) -> tuple[int, ...]:
    return tuple(size // 2 if size % 2 == 0 else size for size in shape)


def cached_by_size(x: Tensor) -> Tensor:
    """What is cached in one run is not there in the next one, which goes another way."""
    return x.view(*halved(*x.shape), -1)


def divides_by_size(x: Tensor) -> Tensor:
    return x.new_zeros(12 // (x.shape[0] - 3) + 20)


def data_branch(x: Tensor) -> Tensor:
    if (x > 0).all():
        return x.view(-1, 2)
    return x


def item_as_size(x: Tensor) -> Tensor:
    return x.view(2, -1) * x.max().item()


def mixed_dtype(x: Tensor) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = torch.matmul(x, x.t())
    return y.float() @ x


def no_grad(x: Tensor) -> Tensor:
    with torch.no_grad():
        y = x.detach() @ x.t()
    with torch.enable_grad():
        return y.data + x.sum()


def integer_input(x: Tensor, n: int) -> Tensor:
    return x.reshape(n, -1)


def chunked(x: Tensor) -> Tensor:
    a, b = x.chunk(2, dim=0)
    return a + b


def split_by_size(x: Tensor) -> Tensor:
    return torch.stack([part.sum() for part in x.split(3)])


def min_and_max(x: Tensor, y: Tensor) -> Tensor:
    n = min(x.shape[0], y.shape[0])
    return x[:n] + y[:n]


def nested(batch: dict[str, Any], pair: list[Tensor]) -> Tensor:
    return batch["pixels"] @ pair[0] + pair[1]


def positional(*xs: Tensor) -> Tensor:
    return torch.cat(xs)


def keyword_only(x: Tensor, *, scale: Tensor | None = None, flag: bool = False) -> Tensor:
    return x * scale if scale is not None and flag else x


def squeezes(x: Tensor) -> Tensor:
    y = x.squeeze(0)
    return y if y.dim() == 1 else y.view(-1, 2)


def star_args_to_view(x: Tensor) -> Tensor:
    return x.view(*x.shape[:-1], 2, -1).flatten(0, 1)


def pads_to_multiple(x: Tensor) -> Tensor:
    pad = (4 - x.shape[-1] % 4) % 4
    return F.pad(x, (0, pad)).unflatten(-1, (-1, 4))


def mask_buffer_like(x: Tensor) -> Tensor:
    t = x.shape[0]
    mask = torch.ones(5, 5).tril()[:t, :t]
    return (x @ x.t()).masked_fill(mask == 0, 0.0)


def swallows(x: Tensor) -> Tensor:
    try:
        return x.view(-1, 2)
    except RuntimeError:
        return x


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(6)
        self.mix = nn.Linear(6, 6)
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self.calls: list[int] = []
        self.last: Any = None

    def forward(self, x: Tensor) -> Tensor:
        self.steps += 1
        self.calls.append(1)
        self.last = x
        return x + self.mix(self.norm(x))


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(10, 4)
        self.lstm = nn.LSTM(4, 3, bidirectional=True, batch_first=True)
        self.head = nn.Linear(6, 5)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.lstm(self.embed(ids))[0])


def scaled_by_a_decimal(x: Tensor) -> Tensor:
    n = x.shape[0]
    assert int(n * 1.7) >= int(1.7 * n) and n * 0.3 != 3.0 and n * 0.3 <= 15.5
    return x.new_zeros(math.floor(n * 0.3), math.ceil(n * 0.9), round(n * 2.4)).view(-1, int(n * 0.6) or 1)


def square_grid(x: Tensor) -> Tensor:
    side = int(x.shape[0] ** 0.5)
    return x.reshape(side, side)


def named_roots(x: Tensor) -> Tensor:
    n = x.shape[0]
    if n**0.5 > 3 and math.sqrt(n) <= 4:
        return x.view(math.isqrt(n), -1)
    if not math.sqrt(n).is_integer():
        raise ValueError("no square")
    return x


def rounded_roots(x: Tensor) -> Tensor:
    n = x.shape[0]
    return x.view(math.ceil(n**0.5), -1).view(round(n**0.5), -1).view(math.floor(math.sqrt(n)), -1)


def root_of_a_square(x: Tensor) -> Tensor:
    a, b = x.shape
    assert math.sqrt(a * a) == a and int((a * a + 2 * a * b + b * b) ** 0.5) == a + b
    return x.view(int(math.sqrt(a * a)), b)


def sizes_before_a_real_shape(x: Tensor) -> Tensor:
    weight = torch.ones(1, 3)
    named = collections.namedtuple("named", "height width")(x.shape[0], 3)
    return weight.expand((x.shape[0],) + weight.shape[-1:]) + x + torch.zeros(named)  # noqa: RUF005 (a torch.Size)


def sizes_in_tensors(x: Tensor) -> Tensor:
    chunks = torch.div(x.shape[0], 4, rounding_mode="trunc")
    shortest = torch.tensor(min(x.shape[0], 6))
    return x.view(chunks, 4, 3)[: shortest - 4].reshape(shortest.item() - 4, -1)


def written_where_a_mask_is(x: Tensor, y: Tensor) -> Tensor:
    mask = x > 0
    x[mask] = y[mask] * 2
    x[mask] -= 1
    return x.view(-1, 3)


def in_numpy(x: Tensor) -> Tensor:
    import numpy

    sizes = numpy.asarray(x.shape)
    assert numpy.issubdtype(sizes.dtype, numpy.integer)
    return x.view(-1, int(sizes.max()))


def roots_by_name(x: Tensor) -> Tensor:
    side = int(sqrt(x.shape[0]))
    return x.view(side, -1, 2)


def where_as_a_method(x: Tensor, y: Tensor) -> Tensor:
    return torch.full_like(x, 0.0).where(x > 0, y).view(-1, 6)


def counts_what_a_mask_takes(x: Tensor) -> Tensor:
    lengths = (x > 0).sum(1)
    assert lengths.max().item() <= x.shape[1]
    return x.view(-1, 2)


def from_the_end(x: Tensor) -> Tensor:
    positions = torch.arange(x.shape[0])
    return torch.ones(7, 2)[positions[-x.shape[1] :]]


def contiguity_of_images(x: Tensor) -> Tensor:
    if x.is_contiguous(memory_format=torch.channels_last):
        return x.view(-1, 4)
    return x.permute(0, 2, 3, 1).view(-1, 3)


def edges_of_bins(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return torch.histogramdd(x, [a, b])[0]


def types_of_tensors(x: Tensor) -> tuple[Tensor, Tensor]:
    made = torch.Tensor(x.shape[0] - 1, x.shape[1]).fill_(1.0), torch.FloatTensor(3, x.shape[0] // 2).zero_()
    return made[0] @ x.t() @ x[:, :2] + torch.LongTensor(x.shape[1] - 2, 2).zero_(), made[1].view(-1, 2)


PROGRAMS = [
    Program(types_of_tensors, "x: [b, t]", 6),
    Program(contiguity_of_images, "x: [n, c, h, w]", 4),
    Program(edges_of_bins, "x: [n, c]; a: [k]; b: [m]", 3, ("k >= 2", "m >= 2")),
    Program(nn.BatchNorm1d(3, momentum=None), "input: [n, c]"),
    Program(scaled_by_a_decimal, "x: [b]", 60),
    Program(square_grid, "x: [b]", 40),
    Program(named_roots, "x: [b]", 40),
    Program(rounded_roots, "x: [b]", 40),
    Program(root_of_a_square, "x: [a, b]"),
    Program(in_place, "x: [b, h]; y: [c, h]"),
    Program(views, "x: [b, t, c]", 5),
    Program(view_after_transpose, "x: [b, t]"),
    Program(branch_on_size, "x: [b, 2]", 16),
    Program(asserts, "x: [b, t]"),
    Program(chained_comparison, "x: [b, 1]"),
    Program(loop_over_size, "x: [b, 3]", 6, ("b <= 6",)),
    Program(needs_int, "x: [b, 3]", 6, ("b <= 6",)),
    Program(recursion, "x: [b, 3]", 20, ("b <= 20",)),
    Program(list_of_sizes, "x: [b, 3]"),
    Program(float_sizes, "x: [b]", 20),
    Program(keyed_by_size, "x: [b]"),
    Program(sizes_in_tensors, "x: [b, 3]", 20),
    Program(written_where_a_mask_is, "x: [a, b]; y: [c, b]"),
    Program(in_numpy, "x: [a, b]", 5, ("a <= 5", "b <= 5")),
    Program(roots_by_name, "x: [b, 3]", 20),
    Program(where_as_a_method, "x: [a, b]; y: [c, b]"),
    Program(counts_what_a_mask_takes, "x: [a, b]"),
    Program(from_the_end, "x: [a, b]", 12),
    Program(cached_by_size, "x: [b, t]"),
    Program(divides_by_size, "x: [b]", 12),
    Program(mixed_dtype, "x: [a, b]"),
    Program(no_grad, "x: [a, b]"),
    Program(integer_input, "x: [a, b]; n: int", 6, ("1 <= n",)),
    Program(chunked, "x: [b]", 12),
    Program(split_by_size, "x: [b]", 12, ("b <= 12",)),
    Program(min_and_max, "x: [a, 2]; y: [b, 2]"),
    Program(nested, 'batch["pixels"]: [a, b]; pair[0]: [c, d]; pair[1]: [d]', 3),
    Program(positional, "xs[0]: [a, b]; xs[1]: [c, d]", 4),
    Program(keyword_only, "x: [a]; scale: [b]; flag=True"),
    Program(keyword_only, "x: [a]; scale: [b]; flag=False"),
    Program(squeezes, "x: [a, b]"),
    Program(star_args_to_view, "x: [a, b, c]", 5),
    Program(pads_to_multiple, "x: [a, b]"),
    Program(mask_buffer_like, "x: [t, 3]"),
    Program(sizes_before_a_real_shape, "x: [b, t]"),
    Program(functools.partial(integer_input, n=2), "x: [a, b]"),
    Program(nn.Sequential(nn.Linear(4, 3), nn.ReLU(inplace=True), nn.Linear(3, 2)), "input: [a, b]"),
    Program(Residual().eval(), "x: [b, c]"),
    Program(Tagger(), "ids: int64[b, t]"),
    Program(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), "src: [b, t, c]", 9),
    Program(nn.MultiheadAttention(4, 2), "query: [t, b, 4]; key: [s, b, 4]; value: [s, c, 4]", 3),
]


@pytest.mark.parametrize(
    "program", PROGRAMS, ids=lambda p: getattr(p.target, "__name__", type(p.target).__name__)
)
def test_agrees_with_eager(program: Program) -> None:
    system = trace(program.target, program.inputs, *program.assume)
    assert not system.incomplete
    symbols = system.domain.symbols
    seen = set()
    for values in itertools.product(range(1, program.upto + 1), repeat=len(symbols)):
        assignment = dict(zip(symbols, values, strict=True))
        if not all(holds(a, assignment) for a in system.domain.assumptions):
            continue
        expected = eager(program.target, program.inputs, **assignment)
        assert runs(system, **assignment) == expected, f"{assignment}: eager says {expected}"
        seen.add(expected)
    assert True in seen


def padded(x: Tensor, mask: Tensor) -> Tensor:
    """What needs other sizes unless the mask is true everywhere."""
    return x if mask.all() else x.view(-1, 7)


def views_written(x: Tensor) -> Tensor:
    mask = torch.ones(x.shape[0], x.shape[1]).bool()
    mask.view(-1)[:1] = False
    return padded(x, mask)


def diagonal_written(x: Tensor) -> Tensor:
    mask = torch.ones(x.shape[0], x.shape[1]).bool()
    mask.diagonal()[:] = False
    return padded(x, mask)


MASKS: dict[str, tuple[Callable[[Tensor], Tensor], bool]] = {
    "ones": (lambda x: padded(x, torch.ones(x.shape[:2]).bool()), True),
    "not zeros": (lambda x: padded(x, ~torch.zeros(x.shape[:2], dtype=torch.bool)), True),
    "full": (lambda x: padded(x, torch.full((x.shape[0], 1, x.shape[1]), 2)[:, 0].expand(x.shape) > 1), True),
    "both": (lambda x: padded(x, torch.ones(2, 3).bool() & torch.ones(3).bool()), True),
    "data": (lambda x: padded(x, x > 0), False),
    "partly data": (lambda x: padded(x, torch.ones(x.shape).bool() & (x > 0)), False),
    "written": (views_written, False),
    "written on the diagonal": (diagonal_written, False),
}


@pytest.mark.parametrize("name", MASKS)
def test_masks_of_constants_leave_no_choice_to_data(name: str) -> None:
    target, certain = MASKS[name]
    system = trace(target, "x: float32[b, t]")
    assert (len(system.paths) == 1) == certain
    if certain:
        assert runs(system, b=2, t=3)


def test_a_wrong_rule_is_seen() -> None:
    """The comparison above fails where a rule is wrong."""

    def view(c: Any, input: Any, *size: Any) -> Any:
        """Requires nothing."""
        return structs.replace(input, shape=tuple(size))

    spec = parse_spec("x: [b, t, c]", ())
    system, _ = record(views, spec, default_rules + {"view": view}, DomainOracle(spec.domain))
    assert runs(system, b=1, t=1, c=3) != eager(views, "x: [b, t, c]", b=1, t=1, c=3)


def test_every_error_in_one_run() -> None:
    def two_errors(x: Tensor) -> Tensor:
        y = x @ torch.zeros(5, 7)
        return y @ torch.zeros(8, 2)

    system = trace(two_errors, "x: [b, 4]")
    (path,) = system.paths
    assert [c.formula for c in path.constraints] == [False, False]
    lines = [path.program.nodes[c.node].origin.code for c in path.constraints]
    assert lines == ["y = x @ torch.zeros(5, 7)", "return y @ torch.zeros(8, 2)"]


def test_origins_are_the_users_lines() -> None:
    model = nn.Sequential(nn.Linear(4, 6), Residual()).eval()
    system = trace(model, "input: [b, 4]")
    mix = [n for n in system.paths[0].program.nodes if n.op == "linear"][-1]
    assert mix.origin.module == "1.mix"
    assert mix.origin.code == "return x + self.mix(self.norm(x))"
    assert mix.origin.file == __file__


def test_the_model_is_left_as_it_was_found() -> None:
    model = Residual()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    spec = parse_spec("x: [b, 6]", ("b >= 2",))
    _, changed = record(model, spec, default_rules, DomainOracle(spec.domain))
    assert all(torch.equal(before[k], v) for k, v in model.state_dict().items())
    assert model.calls == []
    assert model.last is None
    assert set(changed) == {"calls", "last"}


def test_counters_of_a_model_are_put_back() -> None:
    """Without a momentum, a norm divides by how many batches it has seen."""
    norm = nn.BatchNorm1d(3, momentum=None)
    (path,) = trace(norm, "input: [n, 3]", "n >= 2").paths
    assert path.end.how == "returned" and norm.num_batches_tracked == 0


def test_promoted_dtypes_are_known() -> None:
    def promoted(x: Tensor, y: Tensor) -> Any:
        others = (y, y[0, 0], 1.5, x.shape[0], torch.zeros(1, dtype=torch.float64))
        return [torch.result_type(x, other) for other in others]

    found: SimpleQueue[Any] = SimpleQueue()  # a list would be as it was
    trace(lambda x, y: found.put(promoted(x, y)), "x: int64[n]; y: float16[n, n]")
    assert found.get() == promoted(torch.ones(2, dtype=torch.int64), torch.ones(2, 2, dtype=torch.float16))


def test_rows_of_a_tensor_without_any_are_no_outputs() -> None:
    system = trace(lambda x: x.unbind(0), "x: [n, 3]", "n >= 0")
    assert [(str(p.premise), len(p.program.outputs)) for p in system.paths] == [("1 <= n", 1), ("n <= 0", 0)]
    assert all(not path.constraints for path in system.paths)


def test_branches_on_data_are_both_taken() -> None:
    system = trace(data_branch, "x: [b]")
    assert len(system.paths) == 2
    assert all(p.on_data for p in system.paths)


def test_decided_branches_do_not_fork() -> None:
    system = trace(branch_on_size, "x: [b, 2]", "b >= 6")
    (path,) = system.paths
    assert [(str(c.formula), c.taken, c.forced) for c in path.conditions] == [("5 <= b", True, True)]


def test_endless_loops_end_as_incomplete() -> None:
    def left_early(x: Tensor) -> Tensor:
        for i in range(x.size(0)):
            if i == 100:
                break
        return x

    system = trace(left_early, "x: [b, 3]", max_paths=5)
    assert system.incomplete or any(p.end.how == "gave-up" for p in system.paths)
    assert any(p.end.how == "returned" for p in system.paths)


def test_hooks_run() -> None:
    model = nn.Linear(4, 3)
    model.register_forward_hook(lambda module, args, output: output.view(-1, 2))
    system = trace(model, "input: [b, 4]")
    assert runs(system, b=2)
    assert not runs(system, b=1)


@dataclass
class Output:
    logits: Tensor
    hidden: list[Tensor]


def test_outputs_are_named() -> None:
    def outputs(x: Tensor) -> Output:
        return Output(x @ x.t(), [x, x * 2])

    (path,) = trace(outputs, "x: [a, b]").paths
    assert [name for name, _ in path.program.outputs] == ["logits", "hidden[0]", "hidden[1]"]


def test_a_spec_that_does_not_fit() -> None:
    with pytest.raises(NotCallable, match=r"'y'.*it takes \(x\)"):
        trace(views, "y: [b]")


def test_a_defect_that_is_no_matter_of_sizes() -> None:
    def defective(x: Tensor) -> Tensor:
        return x.no_such_method()

    spec = parse_spec("x: [b]", ())
    with pytest.raises(NotCallable, match="no_such_method") as caught:
        record(defective, spec, default_rules, DomainOracle(spec.domain))
    assert caught.value.origin.code == "return x.no_such_method()"


def test_a_mask_that_was_written_into_counts_anew() -> None:
    def changes(x: Tensor, y: Tensor) -> Tensor:
        mask = x > 0
        taken = y[mask]
        mask.view(-1).logical_not_()
        x[mask] = taken
        return x

    system = trace(changes, "x: [a, b]; y: [a, b]")
    assert any("true" in str(c.formula) for p in system.paths for c in p.constraints)


def test_int_in_modules_that_the_target_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`int(size)` stays symbolic wherever the user's code says it, and the modules are left as they were."""
    (tmp_path / "rounds_sizes.py").write_text("def half(n):\n    return tuple(int(x / 2) for x in [n])[0]\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("rounds_sizes")

    def target(x: Tensor) -> Tensor:
        return x.view(module.half(x.shape[0]), -1)

    system = trace(target, "x: [b, 2]", "b >= 2")
    assert len(system.paths) == 1
    assert all(runs(system, b=b) == eager(target, "x: [b, 2]", b=b) for b in range(2, 20))
    assert "int" not in vars(module)


def test_a_program_that_remembers_its_runs_is_not_followed() -> None:
    seen: list[Any] = []

    def alternates(x: Tensor) -> Tensor:
        seen.append(x)
        return x if len(seen) % 2 and x.shape[0] > 3 else x.view(-1, x.shape[0] // 2)

    def keeps(x: Tensor) -> Tensor:
        seen.append(x.shape[0])
        return x if seen[0] > 3 else x.view(-1, 2)

    spec = parse_spec("x: [b]", ())
    for program in (alternates, keeps):
        seen.clear()
        system, _ = record(program, spec, default_rules, DomainOracle(spec.domain))
        assert "gave-up" in {path.end.how for path in system.paths}


def test_a_symbolic_size_that_reaches_torch_is_a_defect() -> None:
    """Where torch refuses a symbolic size, the program is not known to be refused."""

    def reaches(x: Tensor) -> Tensor:
        with overrides_off():
            return torch.zeros(x.shape[0])

    spec = parse_spec("x: [b]", ())
    system, _ = record(reaches, spec, default_rules, DomainOracle(spec.domain))
    assert {path.end.how for path in system.paths} == {"gave-up"}


def test_a_refusal_that_the_program_catches() -> None:
    """A `try` around a call is decided by the rule's requirement, as in an eager run."""
    system = trace(swallows, "x: [b]")
    assert all(runs(system, b=b) == eager(swallows, "x: [b]", b=b) for b in range(1, 9))


def test_constants_that_would_fill_the_memory_are_not_made() -> None:
    """Numbers that are tried for a size may be large; those of `arange` say no such thing."""

    def powers(x: Tensor) -> Tensor:
        return x + torch.ones(2 ** math.floor(math.log2(x.shape[0])))

    assert check(powers, "x: [t]", budget_s=2.0).verdict == "unknown"
    assert check(lambda x: x + torch.arange(0, 100_000, 50_000), "x: [t]").verdict == "refined"


@pytest.mark.parametrize("n, way", [(3, "n % 4 == 3"), (4, "n % 4 == 0"), (6, "n % 4 == 2")])
def test_along_sizes_there_is_one_path(n: int, way: str) -> None:
    def by_digits(x: Tensor) -> Tensor:
        x = x + 1 if x.shape[0] % 2 else x * 2
        return x.relu() if x.shape[0] // 2 % 2 else x

    (path,) = trace(by_digits, "x: [n]", along={"n": n}).paths
    at = [holds(path.premise, {"n": value}) for value in range(1, 20)]
    assert at == [holds(parse_formula(way), {"n": value}) for value in range(1, 20)]


def test_results_with_names_of_an_unknown_tensor_have_these_names() -> None:
    def target(x: torch.Tensor) -> Any:
        unknown = torch.nested.nested_tensor([x, x]).to_padded_tensor(0.0)
        solved = torch.triangular_solve(unknown, x).solution
        greatest, least = unknown.max(0).values, unknown.min(dim=0).indices
        return solved, torch.linalg.qr(unknown).Q, greatest, least, unknown.max(unknown), unknown.median()

    report = check(target, "x: float32[a, 4]", replay=False)
    assert report.verdict == "unknown"
    assert {finding.code for finding in report.findings} == {"no-rule"}, report.to_text()


@pytest.mark.parametrize("device", [["cuda"], {"xpu"}, {}, bytearray(b"cuda"), 0, None, "cpu", torch.float32])
def test_what_names_no_device_is_not_absent(device: Any) -> None:
    """Whether it can be hashed or not; torch refuses it itself."""
    assert not is_absent(device)


@pytest.mark.parametrize("hand_on", [
    torch.from_dlpack, lambda x: torch.utils.dlpack.to_dlpack(x), lambda x: torch.to_dlpack(x),
    lambda x: x.__dlpack__(), torch.Tensor.numpy, numpy.asarray,
])  # fmt: skip
def test_memory_that_a_tensor_does_not_have_is_not_handed_on(hand_on: Callable[[Tensor], object]) -> None:
    """What reads there would end the process."""
    report = check(lambda x: (hand_on(x), x)[1], "x: float32[n, 3]")
    assert report.verdict == "unknown" and "needs the elements of a tensor" in report.to_text()
