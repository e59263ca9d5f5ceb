"""Recurrent networks, judged by torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from rules.judge import Judge

from anyshape.constraints.engine.generate import Generator
from anyshape.constraints.engine.ruleset import Rules
from anyshape.constraints.ir.language import Dyn, Tensor
from anyshape.constraints.rules.rnn import GATES, RULES
from anyshape.typecheck.testing.differential import Case, T, check_case

rules = Rules(RULES)
judge = Judge(rules, count=25)
f64 = torch.float64
MODULES = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU, "rnn_tanh": torch.nn.RNN, "rnn_relu": torch.nn.RNN}


def check_as_module(
    name: str, input: Any, hx: Any, batch_sizes: Any, params: Any, layers: int, both: bool, first: bool
) -> None:
    """What the module checks before its kernel runs: unchecked, the fused LSTM kernel corrupts memory."""
    projected = name == "lstm" and len(params) // (layers * (1 + both)) % 2 == 1
    sizes = {"input_size": params[0].shape[1], "hidden_size": params[0].shape[0] // GATES[name]}
    if projected:
        sizes["proj_size"] = params[1].shape[1]
    module = MODULES[name](**sizes, num_layers=layers, bidirectional=both, batch_first=first)
    module.check_forward_args(input, hx, batch_sizes)


def through_module(name: str) -> Callable[..., Any]:
    def call(
        input: Any, hx: Any, params: Any, biases: bool, layers: int, dropout: float, train: bool, *flags: bool
    ) -> Any:
        check_as_module(name, input, hx, None, params, layers, *flags)
        return getattr(torch, name)(input, hx, params, biases, layers, dropout, train, *flags)

    return call


def parameters(
    name: str, layers: int, both: bool, biases: bool, hidden: int, projection: int, features: str
) -> list[T]:
    made, out = [], projection or hidden
    for layer in range(layers):
        size = features if layer == 0 else str(out * (1 + both))
        rows = GATES[name] * hidden
        cell = [T(f"{rows} {size}"), T(f"{rows} {out}")] + [T(f"{rows}")] * (2 * biases)
        made += (cell + [T(f"{out} {hidden}")] * bool(projection)) * (1 + both)
    return made


def network(
    name: str,
    input: str,
    state: str,
    cell: str = "",
    *,
    layers: int = 1,
    both: bool = False,
    biases: bool = True,
    first: bool = False,
    projection: int = 0,
    features: str = "3",
    dtype: torch.dtype = torch.float32,
) -> Case:
    hx: Any = (T(state), T(cell or state)) if name == "lstm" else T(state)
    params = parameters(name, layers, both, biases, 5, projection, features)
    args = (T(input, dtype), hx, params, biases, layers, 0.0, False, both, first)
    return Case(name, through_module(name), args, where="features" if features == "3" else "")


def packed(name: str, data: str, state: str, *, steps: int = 2, layers: int = 1, both: bool = False) -> Case:
    """Packed sequences of equal length: `steps` steps of b rows each."""

    def call(data: Any, sizes: Any, hx: Any, params: Any, *rest: Any) -> Any:
        sizes = torch.full_like(sizes, data.shape[0] // steps)
        check_as_module(name, data, hx, sizes, params, layers, both, False)
        return getattr(torch, name)(data, sizes, hx, params, *rest)

    hx: Any = (T(state), T(state)) if name == "lstm" else T(state)
    params = parameters(name, layers, both, True, 5, 0, "3")
    args = (T(data), T(str(steps), torch.int64), hx, params, True, layers, 0.0, False, both)
    return Case(name, call, args, where="b")


def cell(name: str, input: str, state: str, w_ih: str, w_hh: str, *biases: str, second: str = "") -> Case:
    hx: Any = (T(state), T(second or state)) if name == "lstm" else T(state)
    return Case(
        f"{name}_cell", getattr(torch, f"{name}_cell"), (T(input), hx, T(w_ih), T(w_hh), *map(T, biases))
    )


CASES = [
    case
    for name, gates in GATES.items()
    for case in (
        network(name, "t b i", "l c 5"),
        network(name, "t b 3", "1 b h"),
        network(name, "b t 3", "4 c 5", layers=2, both=True, first=True),
        network(name, "t b 3", "2 b 5", layers=2, biases=False),
        network(name, "t 3", "1 t 5"),
        network(name, "t b 3", "1 b 5", dtype=f64),
        network(name, "t b 3", "1 b 5", dtype=torch.int64),
        packed(name, "2*b 3", "1 b 5"),
        packed(name, "2*b i", "4 b 5", layers=2, both=True),
        packed(name, "2*b 3", "1 b h"),
        cell(name, "b i", "b h", f"{gates}*h i", f"{gates}*h h", f"{gates}*h", f"{gates}*h"),
        cell(name, "a i", "b h", f"{gates}*h i", f"{gates}*h h"),
        cell(name, "b i", "b h", f"{gates}*h j", f"{gates}*h k", f"{gates}*h"),
        cell(name, "b i", "b h", "m i", f"{gates}*h h", f"{gates}*h"),
        cell(name, "b i", "b h", f"{gates}*h i", f"{gates}*h h", "m", "n"),
        cell(name, "b i", "b h", f"{gates}*h i", f"{gates}*h h", "k m"),
        cell(name, "i", "h", f"{gates}*h i", f"{gates}*h h"),
        cell(name, "a b i", "b h", f"{gates}*h i", f"{gates}*h h"),
    )
] + [
    network("lstm", "t b 3", "2 b 5", "l c k", layers=2),
    network("lstm", "t b 3", "1 b 2", "1 b 5", projection=2),
    network("lstm", "b t i", "4 b h", "4 b k", projection=2, layers=2, both=True, first=True, biases=False),
    cell("lstm", "b i", "b h", "4*h i", "4*h h", "4*h", "4*h", second="c k"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_networks(case: Case) -> None:
    judge(case)


PACKING = [
    Case(
        "_pack_padded_sequence", torch._pack_padded_sequence, (T("t b i"), T("c", torch.int64, fill=1), False)
    ),
    Case(
        "_pack_padded_sequence",
        torch._pack_padded_sequence,
        (T("b t i j"), T("c", torch.int64, fill=1), True),
    ),
    Case("_pack_padded_sequence", torch._pack_padded_sequence, (T("b t"), T("b", torch.int64, fill=1), True)),
    Case("_pack_padded_sequence", torch._pack_padded_sequence, (T("b"), T("b", torch.int64, fill=1), True)),
    Case(
        "_pack_padded_sequence", torch._pack_padded_sequence, (T("t b i"), T("b", torch.int32, fill=1), False)
    ),
    Case(
        "_pack_padded_sequence",
        torch._pack_padded_sequence,
        (T("t b i"), T("b 1", torch.int64, fill=1), False),
    ),
    *(
        Case(
            "_pad_packed_sequence",
            torch._pad_packed_sequence,
            (T(f"t {rest}"), T("t", torch.int64, fill=1), first, 0.0, n),
        )
        for rest in ("i", "i j", "")
        for first in (False, True)
        for n in (-1, 0, 3)
    ),
    Case(
        "_pad_packed_sequence",
        torch._pad_packed_sequence,
        (T("t i"), T("t", torch.int32, fill=1), True, 0.0, -1),
    ),
]


@pytest.mark.parametrize("case", PACKING, ids=str)
def test_packing(case: Case) -> None:
    judge(case)


def test_every_rule_is_seen_to_accept_and_to_refuse() -> None:
    assert judge.one_sided(CASES + PACKING) == {"mkldnn_rnn_layer": "untested"}


def test_a_wrong_rule_is_caught() -> None:
    def empty_sequences_too(c: Any, input: Any, hx: Any, *rest: Any) -> Any:
        return Tensor((*input.shape[:2], 5)), hx

    with pytest.raises(AssertionError, match="rule accepts"):
        check_case(network("gru", "t b 3", "1 b 5"), Rules({"gru": empty_sequences_too}))


@pytest.mark.parametrize("state", [(1, 2, 5), (2, 5)])
def test_a_single_fused_layer(state: tuple[int, ...]) -> None:
    """The kernel checks nothing, so it is compared where the shapes are right."""
    shapes = [(4, 2, 3), (20, 3), (20, 5), (20,), (20,), state, state]
    options = (False, (), 2, 5, 1, True, False, False, False)
    real = torch.mkldnn_rnn_layer(*map(torch.zeros, shapes), *options)
    generator = Generator(rules)
    _, result = generator.call("mkldnn_rnn_layer", (*map(Tensor, shapes), *options), {})
    assert [t.shape for t in result[:3]] == [tuple(t.shape) for t in real[:3]]
    assert result[3] is Dyn
    assert not generator.said.constraints
    generator.call("mkldnn_rnn_layer", (Tensor((4, 2, 4)), *map(Tensor, shapes[1:]), *options), {})
    assert [c.formula for c in generator.said.constraints] == [False]
