"""What refuses some data, given what is computed from the inputs: operators, and assertions on data."""

from __future__ import annotations

from typing import Final

from .control import filled
from .program import Program
from .writer import Writer

STEPS: Final = (
    "-{t}", "{t}.abs()", "-{t}.abs()", "{t}.exp()", "-{t}.exp()", "F.relu({t})", "{t}.sigmoid()",
    "{t}.softmax(-1)", "{t}.tanh()", "{t} * 0", "{t} * 2", "{t} / 3", "{t} + 1", "{t} - 1", "1 - {t}",
    "{t} ** 2", "{t} ** 0", "{t}.sqrt()", "{t}.log()", "{t}.clamp(max=0)", "{t}.clamp(0, 1)",
    "{t}.round()", "{t}.sign()",
    "torch.where({t} > 0, {t}, 0.0)", "torch.where({t} > 0, 1.0, {t})", "({t} > 0).float()",
    "({t} > {t}).float()", "{t} - {t}.mean(0)", "{t} - {t}.amax()", "{t} / {t}.sum(-1, keepdim=True)",
    "{t} - {t}", "{t} + {u}", "{t} * {t}", "{t} / {t}", "{t}.flip(0)", "{t}[..., :2]", "{t}[1:]", "{t}.mT",
    "{t}.sort(0).values", "{t}.cumsum(0)", "{t}.clone()", "{t}.expand_as({t})", "{t}[:1].expand({n}, -1)",
    "torch.cat([{t}, {t}])", "torch.stack([{t}[0], {t}[-1]])", "{t}.masked_fill({t} > 1, 0.0)",
)  # fmt: skip
"""Tensors of the shapes that their operands have, or of like ones."""
MATRICES: Final = (
    "{t} @ {t}.mT", "{t}.mT @ {t}", "{t} @ {u}.mT", "{t} @ {t}.mT + torch.eye({t}.shape[-2])",
    "{t} + torch.eye({t}.shape[-2])", "torch.eye({t}.shape[0]) * {t}.sum()", "torch.cov({t})",
    "F.linear({t}, torch.ones({n}, {t}.shape[-1]))", "F.linear({t}, {t})", "torch.diag({t}[0])",
    "{t}[0][:, None] * {t}[0]", "torch.outer({t}[0], {u}[0])", "{t} - {t}.mT", "{t} + {t}.mT", "{t}.tril()",
    "torch.matrix_exp({t})", "torch.einsum('ij,kj->ik', {t}, {u})",
    "F.interpolate({t}[None, None], ({n}, {n}))[0, 0]",
    "F.pad({t}, (0, 1, 0, 1))", "{t}.view({n}, -1)", "torch.rand({n}, {n})", "torch.linalg.inv({t})",
)  # fmt: skip
REFUSING: Final = (
    "torch.linalg.inv({t})", "torch.linalg.cholesky({t})", "torch.linalg.solve({t}, {u})", "{t}.inverse()",
    "torch.linalg.inv_ex({t}, check_errors=True)[0]", "torch.linalg.matrix_power({t}, -1)",
    "torch.linalg.svdvals({t})", "torch.linalg.eigvalsh({t})", "torch.linalg.pinv({t})",
    "torch.histc({t}, 3)",
    "torch.multinomial({t}, 1)", "torch.multinomial({t}.softmax(-1), 1)", "torch.bernoulli({t})",
    "torch.poisson({t})", "torch.normal({t}, {t})", "torch.normal(0.0, {t})",
    "F.binary_cross_entropy({t}, {u})", "F.binary_cross_entropy({t}, torch.ones_like({t}))",
    "torch.quantile({u}, {t}.flatten())", "torch.bincount({t}.flatten().long())", "F.one_hot({t}.long(), 9)",
    "torch.repeat_interleave({t}, {t}[:, 0].long(), 0)", "{t}.long() // {u}.long()",
)  # fmt: skip
"""Operators that refuse singular matrices, NaN, or numbers beyond a range."""
CHECKS: Final = (
    "{t}.sum() > {c}", "{t}.min() < {c}", "({t} > {c}).any()", "({t} < {c}).all()", "{t}.std(0).max() > {c}",
    "{t}.max().item() * 2 > {c}", "-{t}.norm().item() > {c}", "int({t}.sum()) > {c}",
    "{t}.mean().item() / {n} < {c}", "float({t}[0, 0]) < {c}", "{t}[{t} > {c}].numel() > 0",
    "({t} == {u}).any()", "({t} > {u}).any()", "torch.allclose({t}, {u})", "{t}.long().max().item() > {c}",
    "{t}.argmax().item() > 1", "torch.cdist({t}, {u}).max() > {c}", "({t} * {u}).sum() < {c}",
    "F.layer_norm({t}, {t}.shape[-1:]).sum() > {c}", "{t}.flatten().tolist()[0] > {c}",
)  # fmt: skip
"""Conditions on data, some of which no data meet."""


def validity(w: Writer, name: str) -> Program:
    """A tensor of two dims, some steps, perhaps a matrix, and what refuses some data."""
    w.input("x", "a", w.rng.choice(("a", "a", "b")))
    if w.rng.random() < 0.3:
        w.input("y", "a", w.rng.choice(("a", "b")))
    w.unpack(w.tensors[0])
    for _ in range(w.rng.choice((0, 0, 1, 1, 2, 3))):
        _apply(w, STEPS)
    if w.rng.random() < 0.5:
        _apply(w, MATRICES)
    if w.rng.random() < 0.3:
        check = w.rng.choice(CHECKS)
        w.used.append(check)
        number = str(w.rng.choice((0, 1, 0.5, -1, 5, -20)))
        w.emit(f"assert {filled(w, check.replace('{t}', w.tensors[-1].name).replace('{c}', number))}")
    else:
        _apply(w, REFUSING)
    return w.program(name, w.tensors[-1].name)


def _apply(w: Writer, table: tuple[str, ...]) -> None:
    """Computes a tensor from the last one by a text of the table."""
    text = w.rng.choice(table)
    w.used.append(text)
    w.let(filled(w, text.replace("{t}", w.tensors[-1].name)), None)
