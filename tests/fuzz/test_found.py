"""Programs about which the fuzzer has shown the checker to be wrong: with replays, and as the proofs say."""

from __future__ import annotations

import pytest

from benchmarks.fuzz.comparing import checked, wrongs
from benchmarks.fuzz.eager import ALL, outcomes
from benchmarks.fuzz.program import Program, Sizes

MIXED = "F.conv1d(x.long(), torch.ones(5, 3, 3), {bias}, padding=1)"
FOUND: dict[str, tuple[str, str, Sizes]] = {
    "a length of 0": (
        "nn.utils.rnn.pack_padded_sequence(x, [len(x) - 1], batch_first=True).data",
        "x: float32[a, b]", {"a": 1, "b": 3},
    ),
    "dtypes of a convolution": (MIXED.format(bias=None), "x: float32[a, b, b]", {"a": 2, "b": 3}),
    "dtypes of a convolution with a bias": (
        MIXED.format(bias="torch.ones(5)"), "x: float32[a, b, b]", {"a": 0, "b": 3},
    ),
    "dtypes of a convolution of nothing": (MIXED.format(bias=None), "x: float32[a, b, b]", {"a": 0, "b": 3}),
    "a bias of another dtype, transposed": (
        "F.conv_transpose1d(x, torch.ones(3, 4, 3), torch.ones(4).long())",
        "x: float32[a, 3, 6]", {"a": 2},
    ),
    "the stride of a tensor without elements": (
        "torch.fft.rfft(x) if x.stride(0) == 1 else x", "x: float32[3, a]", {"a": 0},
    ),
    "the stride of a view without elements": (
        "x.view(4, 2) if x.t().stride(1) == 1 else x", "x: float32[3, a]", {"a": 0},
    ),
    "an index into a tensor without dims": (
        "x.sum().index_select(0, torch.tensor([5]))", "x: float32[a]", {"a": 3},
    ),
    "a size as an index into a tensor without dims": (
        "x.sum().gather(0, torch.tensor(len(x)))", "x: float32[a]", {"a": 1},
    ),
    "a place beyond a sparse tensor": (
        "torch.sparse_coo_tensor(torch.zeros(2, 3).long(), torch.ones(3), (3, len(x))).to_dense()",
        "x: float32[a]", {"a": 0},
    ),
    "rising places beyond a sparse tensor": (
        "torch.sparse_coo_tensor(torch.arange(len(x)).expand(2, -1), x, (2, 9)).to_dense()",
        "x: float32[a]", {"a": 3},
    ),
}  # fmt: skip
"""An expression, its inputs, and the sizes at which it was judged wrongly."""


@pytest.mark.parametrize("replay", [True, False])
@pytest.mark.parametrize("name", FOUND)
def test_no_verdict_is_wrong(name: str, replay: bool) -> None:
    text, spec, sizes = FOUND[name]
    program = Program.of("found", f"def f(x):\n    return {text}\n", spec, ("a >= 0",))
    assert wrongs(checked(program, 10.0, replay), [sizes], outcomes(program, [sizes], ALL)) == []
