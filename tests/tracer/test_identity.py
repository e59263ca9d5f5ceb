"""Programs that ask whether two tensors are one object, or copy an object, compared with eager runs."""

from __future__ import annotations

import pytest
import torch
from eager_runs import agreed
from torch import Tensor

from anyshape import check
from benchmarks.fuzz.comparing import checked
from benchmarks.fuzz.program import Program, Sizes

POINTS: list[Sizes] = [{"a": a, "b": b} for a in (0, 1, 2, 3) for b in (1, 2, 3)]

SAME = """
    x.contiguous(); x.float(); x.to("cpu"); x.to(torch.float32); x.to(x); x.type(torch.float32); x.type_as(x)
    x.cpu(); x.requires_grad_(False); x.conj(); x.resolve_conj(); x.resolve_neg(); x.real; torch.real(x)
    x.positive(); +x; torch.atleast_1d(x); torch.atleast_2d(x); torch.atleast_2d(x, x)[0]; x.to_dense()
    torch.as_tensor(x); torch.asarray(x); F.dropout(x, 0.5, False); F.dropout(x, 0.0); x.flatten(1)
    F.alpha_dropout(x, 0.5, False); nn.Flatten()(x); nn.Identity()(x); x.float().contiguous()
    x.sum_to_size(x.shape); torch.broadcast_tensors(x, x)[0]; x.mul_(1); F.relu(x, inplace=True)
    torch.add(x, 1, out=x); torch.ops.aten.contiguous(x)
"""
OTHER = """
    x.clone(); x.detach(); x.data; x.t(); x.t().t(); x.view(x.shape); x.reshape(x.shape); x[:]; x[...]
    x.expand_as(x); x.double(); x.to(torch.float64).float(); x.to("cpu", copy=True); x.squeeze(0); x.flatten()
    x.as_subclass(torch.Tensor); F.dropout(x + 1); torch.einsum("ij->ij", x); torch.meshgrid(x.sum(0))[0]
    copy.copy([x])[0].clone(); copy.deepcopy(x); copy.deepcopy([x, x])[1]; nn.Parameter(x); x.transpose(0, 0)
    torch.cat([x]); torch.atleast_3d(x); torch.broadcast_tensors(x, torch.ones(2, 1, 1))[0]
"""
SIZES = "torch.broadcast_tensors(x, torch.ones(3, 1))[0]; x.sum_to_size(x.shape[0], 1); F.dropout(x, 0.5)"
"""Sizes decide which object the result is."""


def _each(table: str) -> list[str]:
    return [call.strip() for call in table.replace("\n", ";").split(";") if call.strip()]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("call", [*_each(SAME), *_each(OTHER), *_each(SIZES)])
def test_the_object_that_an_operator_returns(call: str) -> None:
    """The shape of the result tells the object, and a wrong answer would be a wrong shape."""
    body = (
        "def f(x):\n    import copy\n    x = x.clone()\n"
        f"    y = {call}\n    return torch.zeros(x.shape[0], 2) if y is x else torch.zeros(3)\n"
    )
    verdict = agreed(Program.of("is", body, "x: float32[a, b]", ("a >= 0", "b >= 1")), POINTS)
    assert verdict == "proved" or (call in _each(SIZES) and verdict == "refined")


@pytest.mark.parametrize("call", ["x.t().contiguous()", "x[:, :1].contiguous()"])
@pytest.mark.parametrize("asked", ["y is z", "id(y) == id(z)"])
def test_an_object_that_strides_decide_is_unknown(call: str, asked: str) -> None:
    call, made = call.removesuffix(".contiguous()"), "z.contiguous()"
    body = f"def f(x):\n    z = {call}\n    y = {made}\n    return x.view(7) if {asked} else x\n"
    verdict = agreed(Program.of("is", body, "x: float32[a, b]", ("a >= 0", "b >= 1")), POINTS)
    assert verdict == "unknown"


@pytest.mark.parametrize("asked", ["y is not None", "type(y) is torch.Tensor", "y.dtype is torch.float32"])
def test_an_object_is_followed_only_where_tensors_are_compared(asked: str) -> None:
    body = f"def f(x):\n    y = x.t().contiguous()\n    return x.view(2, -1) if {asked} else x\n"
    verdict = agreed(Program.of("is", body, "x: float32[a, b]", ("a >= 0", "b >= 1")), POINTS)
    assert verdict == "refined"


PROGRAMS = {
    "an object in a loop": """
        y = x
        for _ in range(x.shape[1]):
            y = y.float()
        return x.view(3, -1) if y is x else x
    """,
    "a write into the object itself": """
        z = torch.zeros(3, dtype=torch.long)
        y = z.long()
        y += x.shape[0]
        return torch.ones(3)[z]
    """,
    "another shape of the object itself": """
        z = x.clone()
        y = torch.atleast_2d(z)
        z.unsqueeze_(0)
        return y.view(y.shape[1], 2, -1)
    """,
    "a deep copy of what has gaps": """
        import copy
        return copy.deepcopy(x[:, :2]).view(-1)
    """,
    "a deep copy that is written into": """
        import copy
        z = torch.zeros(3, dtype=torch.long)
        copy.deepcopy(z).add_(x.shape[0])
        return torch.ones(1)[z]
    """,
    "a deep copy of no leaf": """
        import copy
        return copy.deepcopy(nn.Linear(3, 3)(x))
    """,
    "a hook on what requires no gradients": """
        x.register_hook(lambda g: g)
        return x
    """,
    "a hook that is removed": """
        z = x.clone().requires_grad_()
        z.register_hook(lambda g: g).remove()
        return z.view(2, -1)
    """,
    "a hook of leaves on no leaf": """
        z = x.clone().requires_grad_()
        (z * 2).register_post_accumulate_grad_hook(lambda g: g)
        return z
    """,
    "a gradient that is retained": """
        z = x.clone().requires_grad_() * 2
        z.retain_grad()
        return z.view(2, -1)
    """,
    "no gradient to retain": """
        x.retain_grad()
        return x
    """,
    "a gradient": """
        z = x.clone().requires_grad_()
        z.sum().backward()
        return z.grad.view(2, -1)
    """,
    "a gradient that is assigned": """
        x.grad = torch.ones(2, 3)
        return x.view(3, -1)
    """,
    "what requires gradients, resized": """
        return nn.Linear(3, 3)(x).resize_(2, 2)
    """,
    "what requires gradients, resized without them": """
        y = nn.Linear(3, 3)(x)
        with torch.no_grad():
            return y.resize_as_(x[:2])
    """,
    "what is detached, resized": """
        return nn.Linear(3, 3)(x).detach().resize_(3, 2)
    """,
    "hashes of one shape": """
        return x.view(2, -1) if hash(x.shape) == hash(x.shape) else x
    """,
    "hashes of two sizes": """
        return x.view(2, -1) if hash(x.shape[0]) == hash(x.shape[1]) else x
    """,
    "a hash of the program's own": """
        class Key:
            def __init__(self, size):
                self.size = size
            def __hash__(self):
                return hash(self.size)
            def __eq__(self, other):
                return self.size == other.size
        return x.view(2, -1) if len({Key(x.shape[0]), Key(x.shape[1])}) == 1 else x
    """,
    "one of two sizes": """
        return torch.ones(5)[torch.sym_ite(x.shape[0] > 2, 2, x.shape[1])]
    """,
    "one of two types": """
        return torch.ones(5)[torch.sym_ite(x.shape[0] > 2, 2.0, x.shape[1])]
    """,
    "a sum of sizes": """
        return torch.ones(5)[torch.sym_sum([x.shape[0], x.shape[1], 1])]
    """,
    "an attribute that arrays have": """
        import numpy
        return x.view(2, -1) if hasattr(numpy.ones(x.shape[0]), "tobytes") else x
    """,
    "an error inside NumPy": """
        import numpy
        return torch.ones(3)[torch.as_tensor(numpy.mgrid[: x.shape[0], :2][0])]
    """,
    "an attribute whose name has a size": """
        class Parts:
            p2 = 2
        return x.view(getattr(Parts(), f"p{x.shape[1]}"), -1)
    """,
    "an array that is shuffled": """
        import numpy
        numpy.random.shuffle(numpy.arange(x.shape[0]))
        return x.view(2, -1)
    """,
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str) -> None:
    body = "def f(x):\n" + "\n".join(line[4:] for line in PROGRAMS[name].splitlines() if line.strip())
    agreed(Program.of(name, body, "x: float32[a, b]", ("a >= 0", "b >= 1")), POINTS)


ABOUT = (
    "x.T._base is not None", "x._base is None", "x.detach()._base is None", "x.clone().add_(1)._version == 1",
    "x.__class__ is torch.Tensor", "x.shape[0].__eq__(2) is True", "x.shape[0].__index__() == 2",
    "x.shape[0].__hash__() == 2", "{2: 1}.__contains__(x.shape[0])", "[2, 3].__contains__(x.shape[0])",
    "x.shape[0].__lt__(3)", "x.__getitem__(slice(1)).shape[0] == 1",
)  # fmt: skip


@pytest.mark.parametrize("asked", ABOUT)
def test_what_a_program_asks_about_a_value(asked: str) -> None:
    body = f"def f(x):\n    return x.view(2, -1) if {asked} else x.reshape(3, -1)\n"
    agreed(Program.of("about", body, "x: float32[a, b]", ("a >= 0", "b >= 1")), POINTS)


@pytest.mark.filterwarnings("ignore:.is.:SyntaxWarning")
@pytest.mark.parametrize("asked", [
    "x.shape[0] is 2", "2 is len(x)", "x.shape[0] is not 2", "(lambda n: n is 2)(x.shape[0])",
])
def test_a_size_that_is_the_object_of_an_integer_is_not_followed(asked: str) -> None:
    program = Program.of("a size", f"def f(x):\n    return x[5] if {asked} else x\n", "x: float32[a]")
    report = checked(program, 10.0, replay=False).report
    assert report is not None and report.verdict in ("unknown", "refined") and not report.accepts.exact
    assert "approximate" in [finding.code for finding in report.findings]


def asserted(x: Tensor) -> Tensor:
    assert x.dtype is torch.float32 and x.sum(0).dtype is not None
    return x[0]


def test_an_assert_that_pytest_has_rewritten_is_followed() -> None:
    assert check(asserted, "x: float32[a]", replay=False).verdict == "proved"


def test_what_is_asked_of_other_constants_is_followed() -> None:
    text = "def f(x):\n    return x[5] if x is None or len(x) is True else x\n"
    assert checked(Program.of("constants", text, "x: float32[a]"), 10.0, replay=False).verdict == "proved"
