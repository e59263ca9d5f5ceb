"""Guesses for lists and dicts of tensors, and from what the author wrote: examples and docstrings."""

from __future__ import annotations

import ast
import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from anyshape.typecheck import TargetError, Verdict, check
from anyshape.typecheck.checking.guessing import candidates
from anyshape.typecheck.targets import docstring_shapes, example_calls
from anyshape.typecheck.targets.example_calls import TensorExample
from anyshape.typecheck.targets.uses import uses


class Pyramid(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.sides = nn.ModuleList([nn.Conv2d(c, 8, 1) for c in (16, 32, 64)])

    def forward(self, features):  # type: ignore[no-untyped-def]
        return [side(one) for side, one in zip(self.sides, features, strict=True)]


class Detector(nn.Module):
    """It hands its input on to a module that takes it apart."""

    def __init__(self) -> None:
        super().__init__()
        self.neck = Pyramid()

    def forward(self, features):  # type: ignore[no-untyped-def]
        return self.neck(features)


class Captioner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.look = nn.Embedding(9, 4), nn.Conv2d(3, 4, 3)

    def forward(self, batch):  # type: ignore[no-untyped-def]
        return self.words(batch["tokens"]).mean(1) + self.look(batch["image"]).mean((2, 3))


@dataclass
class Sample:
    tokens: torch.Tensor
    image: torch.Tensor
    weight: float = 1.0


class Pair(NamedTuple):
    image: torch.Tensor
    tokens: torch.Tensor


class OfSample(Captioner):
    def forward(self, batch: Sample):  # type: ignore[no-untyped-def]
        both = self.words(batch.tokens).mean(1) + self.look(batch.image).mean((2, 3))
        return both * batch.weight


class OfPair(Captioner):
    def forward(self, pair: Pair):  # type: ignore[no-untyped-def]
        image, _ = pair
        return self.words(pair.tokens).mean(1) + self.look(image).mean((2, 3))


class Joined(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(10, 2)

    def forward(self, xs):  # type: ignore[no-untyped-def]
        return self.out(torch.cat(xs, dim=1))


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(4, 5)

    def forward(self, x, state):  # type: ignore[no-untyped-def]
        return self.rnn(x, state)


class Documented(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(6, 2)

    def forward(self, q, k):  # type: ignore[no-untyped-def]
        """Attends.

        Args:
            q (Tensor): queries of shape (B, T, D)
            k: (B, S, D)
        """
        return self.out(q @ k.transpose(1, 2) @ k)


class Unpacking(nn.Module):
    def forward(self, x):  # type: ignore[no-untyped-def]
        B, T, _ = x.shape
        return x.view(B * T, -1)


class WithExample(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.example_input_array = (torch.zeros(2, 7, dtype=torch.int64), 3)

    def forward(self, x, n):  # type: ignore[no-untyped-def]
        return x.repeat(n, 1)


SPECS: dict[type[nn.Module], tuple[str, ...]] = {
    Pyramid: (
        "features[0]: float32[b, 16, h0, w0]", "features[1]: float32[b, 32, h1, w1]",
        "features[2]: float32[b, 64, h2, w2]",
    ),
    Detector: (
        "features[0]: float32[b, 16, h0, w0]", "features[1]: float32[b, 32, h1, w1]",
        "features[2]: float32[b, 64, h2, w2]",
    ),
    Captioner: ('batch["tokens"]: int64[b, t]', 'batch["image"]: float32[b, 3, h, w]'),
    OfSample: ('batch["tokens"]: int64[b, t]', 'batch["image"]: float32[b, 3, h, w]'),
    OfPair: ('pair["image"]: float32[b, 3, h, w]', 'pair["tokens"]: int64[b, t]'),
    Joined: ("xs[0]: float32[b, d0]", "xs[1]: float32[b, d1]"),
    Recurrent: ("x: float32[b, t, 4]", "state[0]: float32[1, t, 5]", "state[1]: float32[1, t, 5]"),
    Documented: ("q: float32[B, T, 6]", "k: float32[B, S, 6]"),
    Unpacking: ("x: float32[b, t, d]",),
    WithExample: ("x: int64[b, t]", "n: int"),
}  # fmt: skip


@pytest.mark.parametrize("kind", SPECS, ids=lambda kind: kind.__name__)
def test_the_spec_that_is_found(kind: type[nn.Module]) -> None:
    report = check(kind())
    assert report.inputs == SPECS[kind]
    assert report.verdict in (Verdict.PROVED, Verdict.REFINED)
    again = check(kind(), report.inputs)
    assert (again.verdict, str(again.accepts)) == (report.verdict, str(report.accepts))


FILE = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, n=5):
        super().__init__()
        self.out = nn.Linear(n, 2)

    def forward(self, x, state, scale, flag):
        h, c = state
        return self.out(x * scale if flag else x) + h[0, :, None] + c[0, :, None]

if __name__ == "__main__":
    B, T = 3, 7
    net = Net()
    x = torch.randn(B, T, 5).to("cpu")
    print(net(x, (torch.zeros(1, B, 2), torch.zeros(1, B, 2)), 0.5, flag=True).shape)
    raise SystemExit("this is never run")
"""


def test_the_call_in_the_main_block_counts_and_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(FILE)
    report = check(f"{tmp_path / 'net.py'}:Net")
    assert report.inputs == (
        "x: float32[b, t, 5]", "state[0]: float32[b2, t2, d2]", "state[1]: float32[b2, t2, d2]",
        "scale: float", "flag=True",
    )  # fmt: skip
    assert report.verdict is Verdict.REFINED


CALLS: dict[str, list[tuple[list[Any], dict[str, Any]]]] = {
    "net = Net()\nnet(torch.randn(2, 3))": [([TensorExample((2, 3))], {})],
    "net = Net().eval()\nnet(torch.zeros((2,), dtype=torch.long))": [([TensorExample((2,), "int64")], {})],
    "net = Net()\nnet(x=torch.randint(0, 9, (2, 3)))": [([], {"x": TensorExample((2, 3), "int64")})],
    "n = 4\nx = torch.ones(n * 2, n // 2).bool()\nNet(n)(x)": [([TensorExample((8, 2), "bool")], {})],
    "net = Net()\nnet([torch.rand(1)])": [([[TensorExample((1,))]], {})],
    "net = Net()\nnet({'a': torch.rand(1)})": [([{"a": TensorExample((1,))}], {})],
    "def main():\n    model = build()\n    model(torch.arange(5))": [([TensorExample((5,), "int64")], {})],
    "net = Net()\nnet(load('x.png'))": [([...], {})],
    "net = Net()\nnet(torch.randn(*sizes))": [([...], {})],
    "net = Other()\nnet(torch.randn(2, 3))": [],
    "Net(3)": [],
}


@pytest.mark.parametrize("code", CALLS)
def test_calls_are_read(code: str) -> None:
    class Net:
        pass

    assert example_calls._Calls(ast.parse(code), Net()).found == CALLS[code]


DOCS: dict[str, tuple[int | str, ...] | None] = {
    "x: (B, C, H, W)": ("B", "C", "H", "W"),
    "x (Tensor): the image, [b, 3, h, w]": ("b", 3, "h", "w"),
    ":param x: of shape ``(batch, seq_len)``": ("batch", "seq_len"),
    "x : torch.Tensor\n    shape (n,)": ("n",),
    "x (torch.Tensor): an image (optional)": None,
    "x (Tensor, optional): an image": None,
    "other: (B, C)": None,
    "input: x = torch.randn(128, 20)": None,
    "x: see the paper (Vaswani et al., 2017)": None,
}


@pytest.mark.parametrize("text", DOCS)
def test_docstrings_are_read(text: str) -> None:
    shape = docstring_shapes._described("x", text)
    assert (shape and shape.sizes) == DOCS[text]


def test_a_function_of_the_authors_that_fails_is_no_example() -> None:
    class Failing(nn.Linear):
        def example_inputs(self) -> None:
            raise FileNotFoundError("no data here")

    assert candidates(Failing(3, 4), ["input"])[0][0] == ("input: [...]",)


def test_a_tensor_that_is_used_as_a_whole_is_no_list() -> None:
    def first(x: Any) -> Any:
        return F.relu(x)[0] + x.sum() + x[0]

    assert not uses(first, ["x"])["x"].is_list
    assert uses(first, ["x"])["x"].whole


def test_a_field_that_is_misspelt() -> None:
    with pytest.raises(TargetError, match=r"has no field 'imgae'; did you mean 'image'"):
        check(OfSample(), 'batch["tokens"]: [b, t]; batch["imgae"]: [b, 3, h, w]')
    with pytest.raises(TargetError, match=r"batch is a Sample, which is not made: .*'image'"):
        check(OfSample(), 'batch["tokens"]: [b, t]')


def test_the_message_has_the_form_for_the_inputs_of_the_model() -> None:
    def odd(batch, mask):  # type: ignore[no-untyped-def]
        return batch["a"].no_such_method(batch["tokens"], mask)

    with pytest.raises(TargetError) as caught:
        check(odd)
    told = str(caught.value)
    assert "--input 'batch[\"a\"]: float32[b, c, h, w]' --input 'batch[\"tokens\"]: int64[b, t]'" in told
    assert '--input "mask: bool[b, t]"' in told
    assert inspect.getsourcelines(odd)[1] + 1 == caught.value.origin.line
