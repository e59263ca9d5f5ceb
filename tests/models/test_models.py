"""The corpus agrees with eager PyTorch: what it says is accepted runs, what it says is refused is refused."""

import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from . import broken, eager
from .broken import BROKEN
from .entry import Broken, Entry, always, never
from .packages import PACKAGES
from .zoo import ZOO

COUNT = 12


def by_name(entry: Entry | Broken) -> str:
    return entry.name


def truth(
    build: Callable[[], nn.Module], entry: Entry | Broken, count: int = COUNT
) -> Iterator[tuple[dict[str, int], Exception | None]]:
    """Assignments and eager torch's refusals. Each is tried on a fresh model: some models remember what they
    saw.
    """
    for sizes in eager.assignments(entry.inputs, entry.assume, entry.probe, entry.accepts or never, count):
        yield sizes, eager.refusal(build(), entry.inputs, sizes)


def disagreements(entry: Entry) -> list[str]:
    """What is wrong with an entry: predicates that eager torch contradicts, a verdict that the samples
    contradict.
    """
    found, wrong = set(), []
    for sizes, refusal in truth(entry.build, entry):
        found.add(refusal is None)
        if entry.accepts is not None and entry.accepts(**sizes) != (refusal is None):
            wrong.append(f"{sizes}: eager says {refusal or 'accepted'}")
    expected = {"proved": {True}, "refined": {True, False}, "refuted": {False}}[entry.verdict]
    if found != expected:
        wrong.append(f"{entry.verdict}, but accepted are {sorted(found)}")
    return wrong


@pytest.mark.sampled(3)
@pytest.mark.parametrize("entry", ZOO, ids=by_name)
def test_zoo(entry: Entry) -> None:
    assert disagreements(entry) == []


@pytest.mark.sampled(3)
@pytest.mark.parametrize("entry", PACKAGES, ids=by_name)
def test_packages(entry: Entry) -> None:
    for package in entry.needs:
        pytest.importorskip(package)
    assert disagreements(entry) == []


@pytest.mark.parametrize("entry", BROKEN, ids=by_name)
def test_broken(entry: Broken) -> None:
    accepts = entry.accepts or never
    found = set()
    for sizes, refusal in truth(entry.build, entry):
        found.add(refusal is None)
        assert accepts(**sizes) == (refusal is None), (sizes, refusal)
        assert refusal is None or entry.line in last_line(refusal), sizes
    assert found == {"refined": {True, False}, "refuted": {False}}[entry.verdict]


@pytest.mark.parametrize("entry", BROKEN, ids=by_name)
def test_repaired(entry: Broken) -> None:
    accepts = entry.accepts_repaired or always
    for sizes, refusal in truth(entry.repaired, entry):
        assert accepts(**sizes) == (refusal is None), (sizes, refusal)


@pytest.mark.parametrize("entry", BROKEN, ids=by_name)
def test_line_is_unique(entry: Broken) -> None:
    code = Path(broken.__file__).read_text().split("\nBROKEN = (")[0]
    assert code.count(entry.line) == 1


def last_line(error: Exception) -> str:
    """The innermost line of the models' own file on the way to an error."""
    frames = traceback.extract_tb(error.__traceback__)
    return [frame.line for frame in frames if frame.filename == broken.__file__][-1] or ""


def test_names_are_unique() -> None:
    names = [entry.name for entry in (*ZOO, *PACKAGES, *BROKEN)]
    assert len(set(names)) == len(names)
    assert len(BROKEN) >= 20


# The judge and the comparison notice what they are there to notice ------------------------------------------


def entry(name: str) -> Entry:
    return next(entry for entry in ZOO if entry.name == name)


@pytest.mark.parametrize(
    "name, accepts",
    [
        ("unet_depth4", lambda b, h, w: h % 8 == 0 and w % 8 == 0),
        ("gpt", lambda b, t: t <= 127),
        ("wav2vec_features", lambda b, n: n > 400),
        ("resnet18", lambda b, h, w: h >= 2),
    ],
)
def test_wrong_predicate_is_noticed(name: str, accepts: Callable[..., bool]) -> None:
    assert disagreements(replace(entry(name), accepts=accepts)) != []


@pytest.mark.parametrize(
    "name, verdict", [("vgg16", "proved"), ("resnet18", "refined"), ("gpt_long", "refined")]
)
def test_wrong_verdict_is_noticed(name: str, verdict: str) -> None:
    assert disagreements(replace(entry(name), verdict=verdict)) != []  # type: ignore[arg-type]


class Raises(nn.Module):
    def __init__(self, error: Exception):
        super().__init__()
        self.error = error

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise self.error


@pytest.mark.parametrize("kind", [RuntimeError, ValueError, AssertionError, IndexError])
def test_refusals(kind: type[Exception]) -> None:
    assert not eager.runs(Raises(kind("sizes do not fit")), "x: float32[b]", {"b": 2})


@pytest.mark.parametrize(
    "error",
    [
        TypeError("sizes do not fit"),
        KeyError("h"),
        NotImplementedError("rank 7"),
        RecursionError("too deep"),
        RuntimeError("mat1 and mat2 must have the same dtype, but got Float and Long"),
        RuntimeError("expected scalar type Float but found Long"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"),
    ],
    ids=repr,
)
def test_other_errors_pass_through(error: Exception) -> None:
    with pytest.raises(type(error)):
        eager.runs(Raises(error), "x: float32[b]", {"b": 2})


def test_data_dependence_is_no_refusal_of_fake_tensors() -> None:
    model, inputs = entry("data_dependent").build(), entry("data_dependent").inputs
    assert eager.runs(model, inputs, {"b": 2, "t": 3})
    with pytest.raises(eager.DataDependentOutputException):
        eager.runs(model, inputs, {"b": 2, "t": 3}, fake=True)


def test_large_inputs_are_fake() -> None:
    sizes = {"b": 10**6, "h": 4096, "w": 4096}
    assert eager.runs(entry("resnet18").build(), entry("resnet18").inputs, sizes)


# The only differences found between fake tensors and real ones: fake kernels do not look at the values of
# indices.
FAKE_ACCEPTS = {
    "relative_bias": {"b": 1, "n": 17},  # embedding
    "two_crops": {"b": 1, "n": 2},  # a list as an index
}


@pytest.mark.parametrize("name", FAKE_ACCEPTS)
def test_fake_kernels_do_not_look_at_indices(name: str) -> None:
    model, inputs, sizes = entry(name).build(), entry(name).inputs, FAKE_ACCEPTS[name]
    assert isinstance(eager.refusal(model, inputs, sizes, fake=False), IndexError)
    assert eager.runs(model, inputs, sizes, fake=True)


@pytest.mark.slow
@pytest.mark.parametrize("entry", ZOO, ids=by_name)
def test_fake_agrees_with_real(entry: Entry) -> None:
    if entry.name in (*FAKE_ACCEPTS, "data_dependent", "asserts_of_data", "translator"):
        pytest.skip("fake kernels do not look at data")
    for sizes, refusal in truth(entry.build, entry, count=4):
        assert eager.runs(entry.build(), entry.inputs, sizes, fake=True) == (refusal is None), sizes


# The reader of specs ----------------------------------------------------------------------------------------


def test_inputs_by_name_and_path() -> None:
    spec = 'batch["pixels"]: [b, 2*h + 1]; masks[0]: bool[b]; masks[1]: bool[n]; n: int; flag=True'
    arguments = eager.make_inputs(spec, {"b": 2, "h": 3, "n": 5})
    assert arguments["batch"]["pixels"].shape == (2, 7)
    assert arguments["batch"]["pixels"].dtype == torch.float32
    assert [mask.shape[0] for mask in arguments["masks"]] == [2, 5]
    assert (arguments["n"], arguments["flag"]) == (5, True)
    assert eager.symbols(spec) == ("b", "h", "n")


@pytest.mark.parametrize(
    "assume, sizes, inside",
    [
        ((), {"b": 1, "t": 1}, True),
        ((), {"b": 0, "t": 1}, False),
        (("b >= 0",), {"b": 0, "t": 1}, True),
        (("0 <= b <= 4",), {"b": 0, "t": 1}, True),
        (("0 <= b <= 4",), {"b": 5, "t": 1}, False),
        (("b <= 4",), {"b": 0, "t": 1}, False),
        (("t % 8 == 0 and b != t",), {"b": 8, "t": 8}, False),
        (("t % 8 == 0 and b != t",), {"b": 3, "t": 16}, True),
    ],
)
def test_domain(assume: tuple[str, ...], sizes: dict[str, int], inside: bool) -> None:
    assert eager.in_domain("x: float32[b, t]", assume, sizes) is inside


@pytest.mark.parametrize("spec", ["x", "x: float32", "x: float32[b", "x: [__import__('os')]"])
def test_no_spec(spec: str) -> None:
    with pytest.raises((SyntaxError, KeyError)):
        eager.make_inputs(spec, {"b": 1})


def test_assignments_take_both_sides() -> None:
    vgg = entry("vgg16")
    chosen = eager.assignments(vgg.inputs, vgg.assume, vgg.probe, vgg.accepts, COUNT)
    accepted = [sizes for sizes in chosen if vgg.accepts and vgg.accepts(**sizes)]
    assert len(chosen) == COUNT
    assert len(accepted) == COUNT // 2
