"""Programs about which the fuzzer has shown the checker to be wrong: with replays, and as the proofs say."""

from __future__ import annotations

import pytest
from eager_runs import agreed

from benchmarks.fuzz.comparing import checked, wrongs
from benchmarks.fuzz.eager import ALL, outcomes
from benchmarks.fuzz.program import Program, Sizes

MIXED = "F.conv1d(x.long(), torch.ones(5, 3, 3), {bias}, padding=1)"
FOUND: dict[str, tuple[str, str, Sizes]] = {
    "the least elements along a dim that sizes decide": (
        "x.new_zeros(x.shape[1], len(x)).aminmax(dim=x.shape[1] - 3)[0]",
        "x: float32[a, b]", {"a": 2, "b": 3},
    ),
    "a power that 64 bits hold up to 15": ("x + len(x) ** len(x)", "x: float32[a]", {"a": 15}),
    "a power that 64 bits do not hold from 17 on": ("x * (1 - len(x) ** len(x))", "x: float32[a]", {"a": 17}),
    "a power of 20 that 64 bits hold up to 9": ("x.add(1, alpha=len(x) ** 20)", "x: float32[a]", {"a": 9}),
    "the quotient and the rest of a tensor": ("divmod(x, len(x))", "x: float32[a]", {"a": 3}),
    "the hash of a float": ("x[: hash(len(x) / 2)]", "x: float32[a]", {"a": 4}),
    "a float among keys that are numbers": (
        "x[: {1.5: 0, 2.0: 1}.get(len(x) / 2, 2)]", "x: float32[a]", {"a": 4},
    ),
    "a histogram of a triangle from a diagonal that sizes decide": (
        "torch.histc(x.tril(len(x) - 1).sum(0), 4, 4 - len(x), min(len(x), 2))",
        "x: float32[a, b]", {"a": 1, "b": 2},
    ),
    "the inverse of a diagonal that sizes move": (
        "torch.linalg.inv(torch.diag(x[0].abs() + 1, len(x) - 1))", "x: float32[a, b]", {"a": 1, "b": 2},
    ),
    "a float in a set with a number": ("x[: len({len(x) / 2, 1.0})]", "x: float32[a]", {"a": 2}),
    "an element that 63 bits do not hold": ("torch.tensor([1, -len(x) ** 20])", "x: float32[a]", {"a": 10}),
    "a great number as a double": (
        "torch.tensor(len(x) ** 20, dtype=torch.float64)", "x: float32[a]", {"a": 10},
    ),
    "a great number as an integer": (
        "torch.tensor(len(x) ** 20, dtype=torch.int32)", "x: float32[a]", {"a": 4},
    ),
    "padding with a great number": ("F.pad(x, (1, 1), value=len(x) ** 20)", "x: float32[a]", {"a": 10}),
    "a fraction as a small integer": (
        "torch.tensor([1.5 * len(x)], dtype=torch.int8)", "x: float32[a]", {"a": 85},
    ),
    "the end of a line of small integers": (
        "torch.linspace(0, len(x), 3, dtype=torch.int8)", "x: float32[a]", {"a": 128},
    ),
    "a divisor that is 0 as a small integer": (
        "torch.ones(2, dtype=torch.int8) // (len(x) + 1)", "x: float32[a]", {"a": 255},
    ),
    "the only axis of a scalar, moved": (
        "torch.ones(3)[torch.zeros(x.shape[0], x.shape[1] // 2).long().squeeze().movedim(0, -1)]",
        "x: float32[a, b]", {"a": 1, "b": 2},
    ),
    "indices among which there are none": (
        "torch.ones(6)[(x.topk(1).indices[1:, None] * x.shape[0] + torch.arange(x.shape[0])).flatten()]",
        "x: float32[a]", {"a": 2},
    ),
    "a sum of choices among no indices": (
        "F.embedding(((x > 0).nonzero()[:, 0].half() + 1).long().sum(0) >> 1, torch.ones(7, 2))",
        "x: float32[a]", {"a": 1},
    ),
    "a shape without dims, as the size of a new tensor": (
        "x.new(x.squeeze(0).shape)", "x: float32[a]", {"a": 1},
    ),
    "a tuple of which a new tensor is made": ("x.new((3, len(x)))[1]", "x: float32[a]", {"a": 1}),
    "a list of which a new tensor is made": (
        "x.new([1, len(x)]).view(2) + x.new(x.shape + (2,)).sum()", "x: float32[a]", {"a": 3},
    ),
    "few elements that are compared, transposed": (
        "torch.isin(x, x.t())", "x: float32[a, b]", {"a": 2, "b": 3},
    ),
    "a storage that grows with the result it is given": (
        "torch.exp(x, out=(t := torch.ones(len(x), len(x)))[..., :2]) + t.as_strided((4,), (2,), 1).sum()",
        "x: float32[a, b]", {"a": 2, "b": 4},
    ),
    "a slice that begins at the end, less nothing": (
        "x.view(7) if torch.zeros(10)[-(len(x) // 2):].storage_offset() else x", "x: float32[a]", {"a": 1},
    ),
    "a slice that reads what is written, from the end, less nothing": (
        "(z := torch.zeros(10, 2)).index_copy_(0, torch.arange(10), z[-(len(x) // 2):])",
        "x: float32[a]", {"a": 1},
    ),
    "a slice that begins before the end or after the start": (
        "torch.ones(5)[torch.arange(10)[len(x) - 2 :][0]]", "x: float32[a]", {"a": 1},
    ),
    "a slice that begins beyond the end": (
        "x.view(7) if torch.zeros(10)[len(x) :].storage_offset() > 10 else x", "x: float32[a]", {"a": 12},
    ),
    "a class that sizes choose to ignore": (
        "F.cross_entropy(x, torch.zeros(len(x)).long(), ignore_index=min(x.shape[1] * 2, 3))",
        "x: float32[a, b]", {"a": 2, "b": 0},
    ),
    "an inverse whose exponent sizes decide": (
        "torch.linalg.matrix_power((z := torch.cat([x, x])) @ z.t(), 6 - x.shape[0])",
        "x: float32[a, b]", {"a": 7, "b": 2},
    ),
    "vectors along an axis that sizes decide": ("torch.cat([x, x], len(x) - 1)", "x: float32[a]", {"a": 1}),
    "all that dropout drops": (
        "F.alpha_dropout(x > 0, min(len(x), 2) / 1, True)", "x: float32[a]", {"a": 1},
    ),
    "an out= that gets the strides of a new result": (
        "torch.sort(z := x.t().clone(), 0, out=(z.mT, torch.empty(0).long()))[1]",
        "x: float32[a, b]", {"a": 1, "b": 2},
    ),
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
    "rows of a tensor without dims": (
        "F.nll_loss(torch.zeros((t := torch.arange(len(x)).sum() * len(x))[t < 4].numel(), 3), t[t < 4])",
        "x: float32[a]", {"a": 2},
    ),
    "an unpooling of nothing": (
        "F.max_unpool1d(x, torch.arange(2 * len(x)).view(len(x), 1, 2), 2)", "x: float32[a, 1, 2]", {"a": 0},
    ),
    "a product that 32 bits do not hold": (
        "x[(torch.arange(len(x) + 1) < 2 * len(x)).nonzero().view(-1).clamp(1, 2).prod().int().long()]",
        "x: float32[a]", {"a": 63},
    ),
    "a padding that is a tensor": (
        "F.conv_transpose1d(x, torch.ones(2, 3, 2), stride=2, output_padding=[torch.tensor(x.shape[1] - 1)])",
        "x: float32[2, a]", {"a": 2},
    ),
    "sizes from the indices of a triangle": (
        "torch.zeros(torch.triu_indices(len(x) - 1, 2 * len(x), 1)[1].repeat(2).tolist())",
        "x: float32[a]", {"a": 3},
    ),
    "a divisor that one value of a size makes 0": (
        "F.adaptive_avg_pool1d(x[..., 0][None], 1 - len(x) // 2).view(x.shape[2] % 3, -1)",
        "x: float32[a, b, c]", {"a": 0, "b": 2, "c": 1},
    ),
    "strides that a copy keeps of what was expanded to one row": (
        "torch.neg(t := torch.zeros(1, len(x)).expand(x.shape[1] // 2 + 1, -1).flip(0), out=t.t())",
        "x: float32[a, b]", {"a": 1, "b": 1},
    ),
    "a histogram with a range, of what is no number": (
        "torch.histc(torch.fft.rfftfreq(len(x) - 1), 2, max=1).view(7)", "x: float32[a]", {"a": 1},
    ),
    "a histogram of what is no number": (
        "torch.histogram(torch.fft.rfftfreq(len(x) - 1), 2).hist", "x: float32[a]", {"a": 1},
    ),
    "a product that halves do not hold": (
        "torch.ones(500, 2)[: int((torch.arange(len(x)).clamp(1, 2).prod().half() * 4).long())]",
        "x: float32[a]", {"a": 17},
    ),
    "integers that are infinite halves, all of them": (
        "torch.ones(500, 2)[: int((torch.arange(20000, 20001 + len(x)).half() * 4).long().max())]",
        "x: float32[a]", {"a": 3},
    ),
    "an item of one element copied": ("torch.zeros(3).copy_(x.item())", "x: float32[a]", {"a": 1}),
}  # fmt: skip
"""An expression, its inputs, and the sizes at which it was judged wrongly."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("replay", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", FOUND)
def test_no_verdict_is_wrong(name: str, replay: bool) -> None:
    text, spec, sizes = FOUND[name]
    program = Program.of("found", f"def f(x):\n    return {text}\n", spec, ("a >= 0",))
    assert wrongs(checked(program, 10.0, replay), [sizes], outcomes(program, [sizes], ALL)) == []


CACHE = "self.register_buffer('cache', torch.zeros(4, 4))"
TWO = f"{CACHE}; self.register_buffer('other', self.cache[1:])"
WEIGHT = "self.weight = nn.Parameter(torch.zeros(4, 4))"
WIDE = "self.register_buffer('wide', torch.zeros(6, 2))"
PLACES = "self.register_buffer('places', torch.arange(6))"
BUFFERS: dict[str, tuple[str, str]] = {
    "a view copied into its buffer": (CACHE, "self.cache.index_copy_(0, torch.arange(n), self.cache[:n])"),
    "a view added to its buffer": (CACHE, "t = self.cache[:n]; self.cache.add_(t)"),
    "a part added to the next": (CACHE, "self.cache[1:n].add_(self.cache[:n - 1])"),
    "a part put into the next": (CACHE, "self.cache[1:n] = self.cache[:n - 1]"),
    "a part put into the next, whatever the sizes": (CACHE, "self.cache[1:] = self.cache[:-1]; x[n]"),
    "a part added to the next in place": (CACHE, "self.cache[1:] += self.cache[:-1]; x[n]"),
    "an expanded view": (CACHE, "self.cache[:, :1].expand(4, n).add_(1)"),
    "an expanded view, whatever the sizes": (CACHE, "self.cache[:, :1].expand(4, 4).add_(1); x[n]"),
    "too few elements": (CACHE, "self.cache.narrow(0, 1, 2).copy_(torch.zeros(2)); x[n]"),
    "out= of a part": (CACHE, "torch.add(self.cache[:n], 1, out=self.cache[1:n + 1])"),
    "out= of the transposed": (CACHE, "torch.add(self.cache.t(), 1, out=self.cache); x[n]"),
    "out= of its rows": (CACHE, "torch.add(self.cache.view(-1)[:n * 4].view(n, 4), 1, out=self.cache)"),
    "where a view begins": (CACHE, "x.view(2, -1) if self.cache[n:].storage_offset() == 8 else x"),
    "two buffers in one memory": (TWO, "self.cache[:n].copy_(self.other[:n])"),
    "two buffers in one memory, whatever the sizes": (TWO, "self.cache[:3].add_(self.other); x[n]"),
    "a parameter": (WEIGHT, "self.weight.data.lerp_(self.weight[:n], 0.5)"),
    "a parameter that needs a gradient": (WEIGHT, "self.weight.add_(1); x[n]"),
    "a view of a parameter that needs a gradient": (WEIGHT, "self.weight[1:].add_(1); x[n]"),
    "the data of a parameter": (WEIGHT, "self.weight.data[:n] = self.weight[1:n + 1]"),
    "a buffer that is transposed": (WIDE, "self.wide[:n]; self.wide.t_(); self.wide[n]"),
    "a buffer that gets other data": (WIDE, "self.wide[:n]; self.wide.data = x; self.wide[n]"),
    "places that a view has changed": (PLACES, "self.places[:n].zero_(); x[self.places]"),
    "places that were written first": (PLACES, "self.places.zero_(); x[self.places[n]]"),
    "places of which a view was read": (PLACES, "p = self.places[2:]; self.places[n:].zero_(); x[p]"),
    "places that one of two views has changed": (PLACES, "self.places[2:].zero_(); x[self.places]; x[n]"),
    "places in a list": (PLACES, "torch._foreach_add_([self.places[:n]], 3); x[self.places]"),
}
"""What a module has, and what it does with a size."""


@pytest.mark.parametrize("name", BUFFERS)
def test_buffers_that_are_written(name: str) -> None:
    made, body = BUFFERS[name]
    text = f"""
class M(nn.Module):
    def __init__(self):
        super().__init__()
        {made}

    def forward(self, x, n):
        {body}
"""
    program = Program.of("found", text, "x: float32[a]; n: int", ())
    points = [{"a": a, "n": n} for a in (1, 3, 6) for n in range(1, 7)]
    verdict = agreed(program, points)
    assert verdict in ("proved", "refined", "refuted") or "places" in name


ITSELF = (
    "z.contiguous()", "z.to(torch.float32)", "z.to(x)", "z.float()", "z.type_as(x)", "z.type(torch.float32)",
    "z.cpu()", "+z", "z.conj()", "z.resolve_neg()", "z.conj_physical()", "z.real", "z.to_dense()",
    "z.flatten(1)", "z.flatten(0, 0)", "torch.atleast_2d(z)", "torch.broadcast_tensors(z, z[:1])[0]",
    "torch.broadcast_tensors(z, y[:, None])[0]", "z.sum_to_size(z.shape)", "z.sum_to_size(1, z.shape[1])",
    "torch.as_tensor(z)", "F.dropout(z, 0.5, False)", "F.dropout(z, 0.0)", "z.contiguous().float()",
    "z.t().contiguous()",
)  # fmt: skip
"""Expressions whose value is the tensor itself, of some sizes at least."""
ANOTHER = (
    "z.view(z.shape)", "z.expand(z.shape)", "z[:]", "z.detach()", "z.double()", "torch.atleast_3d(z)",
    "z.flatten()", "F.dropout(z)", "z.contiguous().view(-1)", "z.to(torch.float32, copy=True)",
)  # fmt: skip
"""Expressions whose value is another tensor."""


@pytest.mark.parametrize("text", [*ITSELF, *ANOTHER])
def test_one_tensor_has_one_shape(text: str) -> None:
    body = f"def f(x, y):\n    z = x.clone()\n    t = {text}\n    z.unsqueeze_(0)\n    return z, t\n"
    program = Program.of("found", body, "x: float32[a, b]; y: float32[c]", ())
    points = [{"a": a, "b": b, "c": c} for a in (1, 2) for b in (1, 3) for c in (1, 2)]
    verdict = agreed(program, points)
    assert verdict in ("proved", "refined") or (text in ITSELF and verdict == "unknown")


IN_PLACE = ("z.t_()", "z.squeeze_()", "z.transpose_(0, -1)", "z.unsqueeze_(0)", "z.unsqueeze_(-1)")
TAKEN = ("z.select(0, 1)", "z[1]", "z.select(-1, 0)", "z[..., 0]")


@pytest.mark.parametrize("taken", TAKEN)
@pytest.mark.parametrize("changed", IN_PLACE)
def test_a_view_is_that_of_the_dims_before(changed: str, taken: str) -> None:
    """What is written into a view lies where its operator's arguments said, of the tensor as it was then."""
    body = (
        "def f(x):\n    z = torch.zeros(len(x) + 1, 3, dtype=torch.long)\n"
        f"    v = {taken}\n    {changed}\n    v.scatter_(0, torch.zeros(v.shape, dtype=torch.long), len(x))\n"
        "    return torch.zeros(3)[z[0]]\n"
    )
    program = Program.of("found", body, "x: float32[a]", ("a >= 0",))
    points = [{"a": a} for a in range(5)]
    agreed(program, points)


@pytest.mark.parametrize("caught", ["(RuntimeError, IndexError)", "TypeError", "Exception"])
def test_a_refusal_is_caught_by_its_type(caught: str) -> None:
    tried = f"try:\n        return next(iter(x.sum()))\n    except {caught}:\n        return x\n"
    program = Program.of("found", f"def f(x):\n    {tried}", "x: float32[a]", ("a >= 0",))
    points = [{"a": a} for a in range(3)]
    verdict = agreed(program, points)
    assert verdict == ("refuted" if caught.startswith("(") else "proved")


def test_a_tensor_that_takes_the_memory_of_another() -> None:
    """Its layout is that of the other, whatever the call that made it says."""
    body = (
        "def f(x):\n    t = x.clone()\n    v = t.transpose(0, -1)\n    torch.stack([x, x], out=t)\n"
        "    part = v.narrow(0, 1, v.shape[0] - 1)\n    v.resize_(t.shape)\n    flat = part.view(-1)\n"
        "    flat.set_(t)\n    return flat.view(-1)\n"
    )
    program = Program.of("found", body, "x: float32[a, b, c]", ())
    points = [{"a": a, "b": b, "c": c} for a in (1, 2) for b in (1, 3) for c in (1, 2)]
    agreed(program, points)


def test_a_while_whose_law_loses_its_strides() -> None:
    body = (
        "def f(x):\n    t = x\n    for _ in [0, 1]:\n        t = x[:1] if x.shape[1] % 4 == 0 else x\n"
        "    r = x.cumsum(0)\n    while r.shape[-1] % 2 == 0 and r.shape[-1]:\n"
        "        r = r[..., : r.shape[-1] // 2]\n    return r\n"
    )
    program = Program.of("found", body, "x: float32[a, b]", ())
    points = [{"a": a, "b": b} for a in (1, 2) for b in (1, 3, 4, 6, 8)]
    agreed(program, points)


def test_a_view_of_unknown_strides_that_overlaps() -> None:
    """What is not known of it is told, and is no failure of the recorder."""
    body = (
        "def f(x):\n    t = torch.zeros(x.shape[1] // 2, x.shape[1]).t().contiguous().view(-1, 2)\n"
        "    t.squeeze_(0).add_(1)\n    v = t.unbind(-1)[-1]\n    v.add_(v.t())\n    return v\n"
    )
    program = Program.of("found", body, "x: float32[a, b]", ("a >= 0", "b >= 0"))
    points = [{"a": 1, "b": b} for b in range(6)]
    agreed(program, points)


@pytest.mark.parametrize(
    "call",
    [
        "F.batch_norm(x[0], None, None, training=True)",
        "F.batch_norm(x[0].long(), None, None, training=True)",
        "F.batch_norm(x.sum(), None, None, training=True)",
        "F.batch_norm(x, torch.zeros(3), torch.ones(3), training=len(x) > 2)",
        "F.batch_norm(x[:, 0], None, None, torch.ones(2), training=True)",
        "torch.linalg.norm(x, ord=len(x) - 1)",
        "torch.linalg.matrix_norm(x, ord=len(x) - 3)",
        "torch.linalg.matrix_norm(x, ord=len(x) / 2)",
        "torch.combinations(torch.arange(4), len(x) - 2)",
    ],
)
def test_each_kind_of_refusal(call: str) -> None:
    body = (
        f"def f(x):\n    try:\n        return {call}\n    except IndexError:\n        return x.view(3, -1)\n"
        "    except ValueError:\n        return x\n    except RuntimeError:\n        return x.view(2, -1)\n"
    )
    program = Program.of("found", body, "x: float32[a, b]", ("a >= 0", "b >= 0"))
    agreed(program, [{"a": a, "b": b} for a in range(6) for b in (0, 1, 2, 3)])
