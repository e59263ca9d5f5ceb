"""Types of a program's own that override functions of torch: what they do counts, or the verdict is open."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention.bias import causal_upper_left

from anyshape import check


class Plain(Tensor):
    def halves(self) -> Tensor:
        return self[: self.shape[0] // 2]


class Refusing(Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.add, Tensor.add):
            raise ValueError("no sums")
        return super().__torch_function__(func, types, args, kwargs or {})


class Transposing(Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.matmul, Tensor.matmul):
            args = [part.t() for part in args]
        return super().__torch_function__(func, types, args, kwargs or {})


class Doubling:
    """It is no tensor, and torch asks it all the same."""

    def __init__(self, held: Tensor) -> None:
        self.held = held

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = dict(enumerate(args)) | (kwargs or {})
        plain = {k: torch.cat([a.held, a.held]) if isinstance(a, cls) else a for k, a in given.items()}
        return cls(func(*[plain.pop(k) for k in range(len(args))], **plain))


class Declining:
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return NotImplemented

    def __radd__(self, other: Tensor) -> Tensor:
        return other.view(2, -1)


class Holds(nn.Module):
    held: Tensor

    def __init__(self, kind: Any, apply: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.register_buffer("held", torch.zeros(2, 3).as_subclass(kind))
        self.apply_it = apply

    def forward(self, x: Tensor) -> Tensor:
        return self.apply_it(x, self.held)


def gets_other_data(x: Tensor) -> Tensor:
    weight = nn.Parameter(torch.zeros(4, 4))
    weight.data = weight.data[: x.shape[0]]
    return x @ weight


def attends(x: Tensor) -> Tensor:
    images = x[None, None]
    return F.scaled_dot_product_attention(images, images, images, attn_mask=causal_upper_left(3, 4))


PROGRAMS: dict[str, Any] = {
    "an input of another type": lambda x: x.as_subclass(Plain).halves().view(2, -1),
    "a method of another type": lambda x: x.as_subclass(Plain).add(x[:1]).halves() + x,
    "an overridden operator of an input": lambda x: x.as_subclass(Transposing).matmul(x),
    "torch's own type": lambda x: x.as_subclass(Tensor).view(2, -1),
    "a sum that is refused": Holds(Refusing, lambda x, held: torch.add(x, held)),
    "a product of others": Holds(Transposing, lambda x, held: torch.matmul(x, held)),
    "a product of the buffer alone": Holds(Transposing, lambda x, held: torch.matmul(held.t(), held) @ x),
    "a product the other way": Holds(Transposing, lambda x, held: held.matmul(x.expand(2, -1, -1)[0])),
    "a method of the result": Holds(Plain, lambda x, held: (held + x[:1, :1]).halves() + x),
    "a type that overrides nothing": Holds(Plain, lambda x, held: held + x),
    "an object that holds a tensor": lambda x: torch.add(Doubling(torch.zeros(3)), x).held,  # type: ignore[call-overload]
    "an object on the right": lambda x: torch.add(x, Doubling(x[0])).held,  # type: ignore[call-overload]
    "an object as a keyword": lambda x: torch.add(x, other=Doubling(x[0])).held,  # type: ignore[call-overload]
    "an object that declines": lambda x: x + Declining(),
    "a mask of torch's": attends,
    "a parameter, which overrides nothing": gets_other_data,
}


def accepts(target: Callable[[Tensor], Any], a: int, b: int) -> bool:
    try:
        target(torch.zeros(a, b))
    except (RuntimeError, IndexError, TypeError, ValueError, AttributeError):
        return False
    return True


@pytest.mark.parametrize("replay", [True, False])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_other_types_do_counts_or_is_left_open(name: str, replay: bool) -> None:
    report = check(PROGRAMS[name], "x: float32[a, b]", replay=replay)
    assert "internal-error" not in [finding.code for finding in report.findings], report.to_text()
    for a in range(1, 7):
        for b in range(1, 7):
            runs = accepts(PROGRAMS[name], a, b)
            if report.accepts.exact:
                assert report.accepts.holds(a=a, b=b) == runs, (a, b, report.to_text())
            assert runs or not report.accepts.certain.holds(a=a, b=b), (a, b, report.to_text())
            assert not (runs and report.verdict == "refuted"), (a, b, report.to_text())


FOLLOWED = (
    "torch's own type", "an object on the right", "a sum that is refused",
    "a parameter, which overrides nothing",
)  # fmt: skip


@pytest.mark.parametrize("name", FOLLOWED)
def test_what_other_types_do_is_followed(name: str) -> None:
    assert check(PROGRAMS[name], "x: float32[a, b]").accepts.exact
