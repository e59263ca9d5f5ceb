"""Numbers that sizes make, where operators take sizes, axes, or numbers from a range."""

from __future__ import annotations

from typing import Final

from .control import caught, filled
from .operators import inputs, step
from .program import Program
from .writer import Writer

AXES: Final = (
    "{t}.sum({q})", "{t}.mean({q}, keepdim=True)", "{t}.amax({q})", "{t}.all({q})", "{t}.std({q})",
    "{t}.logsumexp({q})", "{t}.softmax({q})", "{t}.argmax({q})", "{t}.flip({q})", "{t}.roll(1, {q})",
    "{t}.unbind({q})[0]", "{t}.split(1, {q})[0]", "{t}.index_select({q}, torch.tensor([0]))",
    "{t}.count_nonzero({q})", "{t}.prod({q})", "{t}.cumsum({q})", "{t}.sort({q})[0]", "{t}.topk(1, {q})[0]",
    "{t}.kthvalue(1, {q})[0]", "{t}.median({q})[0]", "{t}.mode({q})[0]", "{t}.diff(dim={q})",
    "{t}.renorm(2, {q}, 1.)", "{t}.aminmax(dim={q})[0]", "F.normalize({t}, dim={q})",
    "F.cosine_similarity({t}, {t}, {q})", "{t}.movedim({q}, 0)", "{t}.transpose({q}, 0)",
    "{t}.flatten({q})", "{t}.narrow({q}, 0, 1)", "{t}.unfold({q}, 1, 1)", "{t}.cummax({q})[0]",
    "{t}.sum(({q}, {r}))", "{t}.squeeze({q})", "{t}.unsqueeze({q})", "{t}.select({q}, 0)",
    "torch.cat([{t}, {t}], {q})", "torch.stack([{t}, {t}], {q})", "torch.fft.fft({t}, dim={q})",
    "torch.unique({t}, dim={q})", "{t}.argsort(dim={q})", "torch.linalg.vector_norm({t}, dim={q})",
    "{t}.quantile(0.5, {q})", "torch.gradient({t}, dim={q})[0]",
    "{t}.gather({q}, torch.zeros_like({t}).long())",
)  # fmt: skip
SIZES: Final = (
    "torch.zeros({q}, {r})", "torch.arange({q}, {r})", "torch.arange({q}, {r}, {q})",
    "torch.linspace({q}, {r}, 3)",
    "torch.linspace(0, 1, {q})", "torch.eye({q}, {r})", "torch.tril_indices({q}, {r}, {q})",
    "torch.hann_window({q})", "torch.randperm({q})", "torch.full(({q},), {r})", "torch.fft.rfftfreq({q})",
    "torch.fft.rfft({t}, {q})", "torch.fft.irfft({t}, {q})", "{t}.narrow(0, {q}, 1)", "{t}.narrow(0, 0, {q})",
    "{t}.roll({q}, 0)", "{t}.tril({q})", "{t}.diagonal({q})", "{t}.unfold(0, {q}, 1)",
    "{t}.unfold(0, 1, {q})",
    "{t}.repeat({q}, *[1] * {t}.dim())", "{t}.expand({q}, *{t}.shape)", "{t}.repeat_interleave({q}, 0)",
    "F.pad({t}, ({q}, {r}))", "{t}.split({q})[0]", "{t}.chunk({q})[0]", "{t}.view({q}, -1)",
    "{t}.reshape({q}, {r}, -1)", "{t}.unflatten(0, ({q}, -1))", "{t}.topk({q})[0]", "{t}.kthvalue({q})[0]",
    "F.adaptive_avg_pool1d({t2}[None], {q})", "F.max_pool1d({t2}[None], 3, 1, {q})",
    "F.avg_pool1d({t2}[None], {q}, {r})", "F.interpolate({t2}[None], size={q})",
    "F.one_hot(torch.arange({k}), {q})", "{t}[{q}]", "{t}[:{q}]", "{t}[{q}:{r}]", "{t}[::{q}]",
    "torch.bincount(torch.arange(3), minlength={q})", "torch.histc({t}, {q})",
    "F.conv1d({t2}[None], torch.ones(2, {t2}.shape[0], 2), padding={q}, stride={r})",
    "F.conv1d({t2}[None], torch.ones(2, {t2}.shape[0], 2), dilation={q})", "F.unfold({t2}[None, None], {q})",
    "F.pixel_shuffle({t2}[None, None].repeat(1, 4, 1, 1), {q})", "{t2}.rot90({q})",
    "torch.multinomial(torch.ones(4), {q})", "torch.randint({q}, {r}, (2,))", "torch.normal(0., 1., ({q},))",
    "F.local_response_norm({t2}[None], {q})", "torch.signal.windows.hann({q})",
    "torch.tensordot({t}, {t}, {q})",
    "F.max_unpool1d(*F.max_pool1d({t2}[None], 1, return_indices=True), {q})",
    "F.layer_norm({t}, ({q},))", "nn.Linear({q}, {r})({t})",
    "torch.linalg.matrix_power({t2} @ {t2}.t(), {q})",
    "F.embedding(torch.tensor([0]), {t2}, padding_idx={q})", "torch.vander({t1}, {q})",
)  # fmt: skip
RANGES: Final = (
    "{t}.bernoulli({q} / {k})", "F.dropout({t}, {q} / {k})", "F.alpha_dropout({t}, {q} / {k}, True)",
    "F.hardtanh({t}, {q}, {r})", "F.celu({t}, {q})", "F.softshrink({t}, {q})", "F.hardshrink({t}, {q})",
    "F.rrelu({t}, {q}, {r})", "{t}.clone().uniform_({q}, {r})", "{t}.clone().normal_(0, {q})",
    "{t}.clone().exponential_({q} / {k})", "{t}.clone().geometric_({q} / {k})", "{t}.clone().cauchy_(0, {q})",
    "{t}.clone().log_normal_(0, {q})", "{t}.clone().random_({q}, {r})", "torch.cdist({t2}, {t2}, {q})",
    "F.pdist({t2}, {q})", "F.pairwise_distance({t}, {t}, {q})", "{t}.renorm({q}, 0, 1.)", "{t}.norm({q}, 0)",
    "torch.linalg.vector_norm({t}, {q})", "F.huber_loss({t}, {t}, delta={q})", "F.normalize({t}, {q})",
    "F.smooth_l1_loss({t}, {t}, beta={q})", "F.triplet_margin_loss({t}, {t}, {t}, {q})",
    "F.multi_margin_loss({t2}, torch.zeros({t2}.shape[0]).long(), {q})",
    "F.batch_norm({t}, None, None, eps={q})",
    "F.cosine_similarity({t}, {t}, eps={q})", "torch.histc({t}, 4, {q}, {r})",
    "torch.isclose({t}, {t}, {q}, {r})",
    "torch.polygamma({q}, {t})", "({t} + 9).mvlgamma({q})", "{t}.quantile({q} / {k})", "{t}.pow({q})",
    "torch.arange(4) ** {q}", "torch.arange(4) // {q}", "torch.arange(4) % {q}", "{t}.clamp({q}, {r})",
    "F.cross_entropy({t2}, torch.zeros({t2}.shape[0]).long(), label_smoothing={q} / {k})",
    "F.cross_entropy({t2}, torch.zeros({t2}.shape[0]).long(), ignore_index={q})",
    "F.scaled_dot_product_attention({t}, {t}, {t}, dropout_p={q} / {k})",
    "torch.linalg.cond({t2} @ {t2}.t(), {q})",
    "F.embedding_bag(torch.tensor([[0]]), {t2}, padding_idx={q})", "{t}.round(decimals={q})",
    "torch.logspace({q}, {r}, 3, base={k})", "torch.logspace(0, 1, 3, base={q})", "{t}.std(correction={q})",
)  # fmt: skip
ARITHMETIC: Final = (
    "1 / {q}", "{q} // {r}", "{q} % {r}", "{q} ** -1", "{q} ** 0.5", "{q} ** 2", "{q} ** {r}", "2.0 ** {q}",
    "math.sqrt({q})", "1 / math.sqrt({q})", "math.sqrt({q} / {k} - 1)", "math.log({q})", "1 / math.log({q})",
    "math.log2({q} / {k})", "math.exp({q})", "math.log(math.sqrt({q}))", "math.pow({q}, 0.5)", "{q} << {r}",
    "{q} >> {k}", "{q} & {k}", "{q} | {k}", "{q} ^ {k}", "round({q} / {k})",
    "round({q}, -1)", "int({q} / {k})",
    "{q} / ({r} / {k})", "{q} / ({r} / {k} - 1)", "math.isqrt({q})", "math.gcd({q}, 6)", "math.lcm({q}, 4)",
    "math.comb({q}, 2)", "math.perm({q}, 2)", "math.ceil({q} / {r})", "math.floor(-{q} / {k})",
    "math.fmod({q}, {k})", "divmod({q}, {r})[1]", "{q}.bit_length()", "({q} * 0.5) // {k}",
    "abs({q}) ** -0.5",
    "1 / {t}.sum().item()", "({q} - 0.5) ** -1", "max({q}, 0.5) ** -1", "-{q} // {k}", "{q} % -{k}",
)  # fmt: skip
"""Arithmetic of Python's, which raises an error at some sizes."""
COMPARISONS: Final = (
    "{q} == {t}", "{t} != {q}", "{q} < {t}", "({q} / {k}) >= {t}", "{q} in torch.arange({k})",
    "{t} == None", "{t} != [{q}]", "[{q}] == {t}", "{t}.shape == ({q}, {r})", "({q}, {r}) != {t}.shape",
    "{q} in {t}.shape", "{t}.shape == {t}", "{q} is None", "{q} == str({r})", "{t} in [None, {t}]",
    "{q} == {r}", "{q} <= {r} < {k}", "({q} > {r}) == ({q} > {k})", "{t}.shape[:1] == [{q}]",
    "{q} == {r} / {k}", "{q} in ({r}, {k})", "{q} in range({r})", "{q} == {t}.numel()", "{q} == {t}.sum()",
    "{q} == torch.tensor({r})",
)  # fmt: skip
"""Comparisons, of which some are truths, and some have a result for each element."""
REFLECTED: Final = tuple(
    f"{left} {operator} {right}"
    for operator in "+ - * / // % ** & | ^ << >> @".split()
    for left, right in (("{q}", "{t}"), ("{t}", "{q}"), ("{q}", "torch.arange(1, {k})"), ("{q} / {k}", "{t}"))
)
"""Operators with a size, or a quotient, on either side of a tensor."""
NUMBERS: Final = ("{n}", "({n} - {k})", "({n} - {k})", "({k} - {n})", "-{n}", "({n} % {k})", "min({n}, {k})")


def numbers(w: Writer, name: str) -> Program:
    """One or two calls with numbers that are computed from sizes, also out of their ranges."""
    inputs(w)
    for _ in range(w.rng.choice((1, 1, 2))):
        if w.rng.random() < 0.3:
            step(w)
        text = w.rng.choice(w.rng.choice((AXES, SIZES, RANGES, ARITHMETIC, COMPARISONS, REFLECTED)))
        w.used.append(text)
        if text in ARITHMETIC:
            text = w.rng.choice(("torch.zeros(abs(int({0})) % 5, 2)", "{{t}} * ({0})")).format(text)
        if text in COMPARISONS:
            found = f"torch.as_tensor({text})"
            text = w.rng.choice((f"{{t}}[1:] if bool({found}.all()) else {{t}}", f"{found} + {{t}}.sum()"))
        for rank in (1, 2):
            text = text.replace(f"{{t{rank}}}", (w.find(rank=rank) or w.tensors[0]).name)
        for hole in ("{q}", "{r}"):
            text = text.replace(hole, filled(w, w.rng.choice(NUMBERS)))
        w.let(filled(w, text), None)
    if w.rng.random() < 0.1:
        caught(w)
    return w.program(name, w.tensors[-1].name)
