"""Programs with loops, lists, branches on sizes, and refusals that are caught."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from .operators import inputs, step, steps
from .program import Program
from .writer import Tensor, Writer

Statement: TypeAlias = Callable[[Writer], None]

CONDITIONS: Final = (
    "{n} > {k}", "{n} == {m}", "{n} % {k} == 0", "{n} != {m}", "{n} >= {m} and {m} > {k}",
    "{n} in ({k}, {j})",
    "{n} // 2 > {k}", "not {n} % 2", "{t}.shape[0] == 1", "{t}.dim() > 1", "{t}.numel() > {K}",
    "{t}.shape[-1] % {k} == 0",
    "{n} * {m} <= {K}", "{k} <= {n} < {K}", "{t}.shape[:1] == {u}.shape[:1]", "{t}.shape == {u}.shape",
    "min({n}, {m}) > 1", "{n} - {m} > 0 or {n} == {k}", "{t}.is_contiguous()", "({n} & 1) == 0",
    "bool({n} - {k})",
    "len({t}) > len({u})", "{n} ** 2 > {m} * {k}", "isinstance({n}, int) and {n} > {k}", "{t}.sum() > 0",
    "max({t}.shape) < {K}",
    "math.log2({n} + 1) > {k}", "{n} / {k} > 1.5", "all(s > 1 for s in {t}.shape)",
    "any(s == {k} for s in {t}.shape)",
    "{t}.stride(0) == 1", "{t}.numel() == 0", "torch.is_tensor({t}) and {t}.shape[0]",
    "{n} is not None and {n} < {m}",
)  # fmt: skip

ERRORS: Final = (
    "RuntimeError", "RuntimeError", "IndexError", "Exception", "(RuntimeError, IndexError)", "ValueError",
    "(RuntimeError, ValueError)", "AssertionError", "ZeroDivisionError", "KeyError", "LookupError",
    "ArithmeticError",
    "TypeError", "BaseException", "NotImplementedError", "AttributeError",
)  # fmt: skip

RISKS: Final = (
    "{t}.view(-1, {k})", "{t}.t().view(-1)", "{t}[{k}]", "{t}.cumsum(1)", "{t}.narrow(0, 0, {k})",
    "{t}.reshape({k}, -1)",
    "torch.stack({t}.chunk(2)).sum(0)", "{t} + {u}", "{t} @ {u}", "{t}.expand({k}, -1)",
    "{t}.topk({k}).values",
    "{t}.unfold(0, {k}, 1)", "torch.cat([{t}, {u}])", "torch.cat([{t}, {u}], 1)", "sum({t}.split([2, {k}]))",
    "{t}.max(dim=0).values", "{t}.squeeze(0).item() + {u}", "{t}.unflatten(0, ({k}, -1))",
    "F.avg_pool1d({t}, {k})",
    "F.pad({t}, ({k}, 0), mode='reflect')", "F.linear({t}, torch.ones(2, {k}))",
    "{t}.index_select(0, torch.tensor([{k}]))",
    "torch.linalg.inv({t})", "{t}.diagonal(0, 0, 1)", "{t} * (1 // ({n} - {k}))", "{t} * [1, 2, 3][{n}]",
    "{t} * dict(a=1)[str({n})]",
    "{t} * {{1: 1, 2: 2}}[{n}]", "{t}.permute(1, 0)", "torch.zeros({n} - {k})",
    "F.conv1d({t}[None], torch.ones(1, {k}, 2))",
    "F.embedding(torch.tensor([{n}]), torch.ones({K}, 2))", "torch.ones({K})[torch.arange({n})]",
    "{t}.gather(0, torch.full_like({t}, {k}).long())",
    "{t}.transpose(0, {k})", "torch.arange({k}, {n})", "{t}.unbind(0)[{k}]", "{t}.repeat({n} - {k})",
    "torch.eye({n})[{m}]",
    "F.one_hot(torch.arange({n}), {k}).float()", "{t}.view({u}.shape)", "{t}.copy_({u})",
    "{t}.clone().add_({u})", "{t}.kthvalue({k}).values",
    "F.interpolate({t}, size={k})", "F.layer_norm({t}, ({k},))", "torch.bmm({t}, {u})", "next(iter({t}))",
    "{t}.chunk(3)[2]",
    "{t}.median(0).values", "torch.as_strided({t}, ({k}, {k}), (1, 1))", "{t}.item()", "bool({t}) * {u}",
    "{t}.T.view({k}, -1)",
    "torch.broadcast_shapes({t}.shape, {u}.shape) and {t}", "F.group_norm({t}, {k})",
    "F.batch_norm({t}, None, None, training=True)",
    "{t}.argmax(0)", "torch.nn.functional.cosine_similarity({t}, {u})", "{t}.missing", "{t}.swapaxes(0, 2)",
    "torch.tensor({t}.shape)[{k}]",
    "int('1' * {n})", "range({n})[{k}] * {t}", "F.nll_loss({t}, torch.zeros({n}).long())",
    "torch.einsum('ii', {t})", "{t}.amin(0)",
    "torch.multinomial({t}.exp(), {k})", "{t}[:, {k}]", "F.pixel_shuffle({t}, 2)",
    "torch.nn.Unflatten(0, ({k}, 2))({t})", "F.glu({t})",
)  # fmt: skip


def filled(w: Writer, text: str) -> str:
    """The text with its holes filled from what is in scope."""
    floats = [t for t in w.tensors if t.dtype == "f"]
    first = w.find() or floats[0]
    text = text.replace("{t}", first.name).replace("{u}", w.rng.choice(floats).name)
    for hole, draw in (("{n}", w.size), ("{m}", w.size), ("{K}", w.large), ("{k}", w.small), ("{j}",
        w.small)):
        text = text.replace(hole, w.spelt(str(draw())))
    return text.replace("{{", "{").replace("}}", "}")


def body(w: Writer, target: str) -> None:
    """A line or two that end in an assignment to `target`."""
    if w.rng.random() < 0.3:
        step(w)
    if w.rng.random() < 0.7:
        w.emit(f"{target} = {(step(w) or w.tensors[0]).name}")
    else:
        text = w.rng.choice(("{t} + 1", "{t} * {n}", "{t}.sum()", "{t}[:{k}]", "{t}.relu()"))
        w.emit(f"{target} = {filled(w, text)}")


def branch(w: Writer) -> None:
    """`if` on sizes, with or without `else`; both sides name a tensor."""
    w.used.append("branch")
    target = w.fresh()
    w.emit(f"{target} = {(w.find() or w.tensors[0]).name}")
    with w.block(f"if {filled(w, w.rng.choice(CONDITIONS))}:"):
        _side(w, target)
    if w.rng.random() < 0.3:
        with w.block(f"elif {filled(w, w.rng.choice(CONDITIONS))}:"):
            _side(w, target)
    if w.rng.random() < 0.5:
        with w.block("else:"):
            _side(w, target)
    w.tensors.append(Tensor(target, None))


def _side(w: Writer, target: str) -> None:
    drawn = w.rng.random()
    if drawn < 0.08:
        w.used.append("raise")
        w.emit(f"raise {w.rng.choice(('ValueError', 'RuntimeError', 'NotImplementedError'))}('refused')")
    elif drawn < 0.16:
        w.used.append("return")
        w.emit(f"return {(w.find() or w.tensors[0]).name}")
    elif drawn < 0.26 and w.room():
        w.rng.choice(STATEMENTS)(w)
    else:
        body(w, target)


def assertion(w: Writer) -> None:
    w.used.append("assert")
    w.emit(f"assert {filled(w, w.rng.choice(CONDITIONS))}")


def conditional(w: Writer) -> None:
    """A conditional expression."""
    w.used.append("conditional")
    one, other = filled(w, w.rng.choice(RISKS)), (w.find() or w.tensors[0]).name
    w.let(f"{one} if {filled(w, w.rng.choice(CONDITIONS))} else {other}", None)


LOOPS: Final = (
    "for {e} in range({n}):", "for {e} in range(1, {n}):", "for {e} in range(0, {n}, {k}):",
    "for {e} in range({k}):",
    "for {e} in range({n} - 1, -1, -1):", "for {e} in range({t}.shape[0]):",
    "for {e} in reversed(range({n})):",
    "for {e} in range(min({n}, {m})):", "for {e} in range({n} // {k}):", "for {e}, _ in enumerate({t}):",
    "for {e}, _ in zip(range({n}), range({m})):", "for {e} in [0, 1, {k}]:",
    "for {e} in torch.arange({n}).tolist():",
)  # fmt: skip

IN_LOOPS: Final = (
    "{r} = {r} + {t}[{e}]", "{r} = {r} + {e}", "{r} = {r} + {t}[{e}:{e} + {k}].sum()",
    "{r} = {r} + {t}.narrow(0, {e}, 1).sum()",
    "{r} = torch.cat([{r}, {t}[{e}:]])", "{r} = {r}[1:]", "{r} = {r} + {t}[{e}, {e}]", "{r} = F.relu({r})",
    "{r} = {r} * {t}.shape[0]",
    "{r} = {r} + {t}[-{e} - 1]", "{r} = torch.cat([{r}, {r}])", "{r} = {r}[..., None]",
    "{r} = {r} + {t}[{e} + 1]",
    "{r} = {r}.t()", "{r} = {r} + {u}", "{r} = {r} + {t}.select(0, {e} // 2)", "{r} = F.pad({r}, (1, 0))",
    "{r} = {r}.roll({e})",
    "{r} = torch.maximum({r}, {t}[{e}])", "{r} = {r} + {t}[2 * {e}]", "{r} = {r} @ {r}",
    "{r} = {r} + {t}.unbind(0)[{e}]",
)  # fmt: skip


def loop(w: Writer) -> None:
    """A loop that carries a tensor on."""
    w.used.append("loop")
    target, number = w.fresh("r"), w.fresh("e")
    starts = ("{t}", "{t}", "{t}[0]", "{t}.sum(0)", "{t}.sum()", "0", "torch.zeros({n})", "{t}[:1]")
    w.emit(f"{target} = {filled(w, w.rng.choice(starts))}")
    with w.block(filled(w, w.rng.choice(LOOPS).replace("{e}", number))):
        for _ in range(w.rng.choice((1, 1, 2))):
            drawn = w.rng.random()
            if drawn < 0.15:
                conditions = (number + " == {k}", number + " % 2", number + " > {m}", *CONDITIONS)
                w.emit(f"if {filled(w, w.rng.choice(conditions))}:")
                w.emit(f"    {w.rng.choice(('break', 'continue', f'{target} = {target} + 1'))}")
            elif drawn < 0.25 and w.room():
                w.rng.choice(STATEMENTS)(w)
            else:
                text = w.rng.choice(IN_LOOPS).replace("{r}", target).replace("{e}", number)
                w.used.append("loop " + text.split("=", 1)[0])
                w.emit(filled(w, text))
    w.let(f"torch.as_tensor({target})", None)


WHILES: Final = (
    ("{t}", "while {r}.shape[0] > {k}:", "{r} = {r}[::2]"),
    ("{t}", "while {r}.shape[0] > {k}:", "{r} = {r}[1:]"),
    ("{t}", "while 0 < len({r}) < {K}:", "{r} = torch.cat([{r}, {r}])"),
    ("{t}", "while {r}.shape[-1] % 2 == 0 and {r}.shape[-1]:", "{r} = {r}[..., : {r}.shape[-1] // 2]"),
    ("{t}", "while {r}.dim() > 1:", "{r} = {r}.sum(0)"),
    ("{t}", "while {r}.shape[0] > 1:", "{r} = {r}[: {r}.shape[0] // 2] + {r}[{r}.shape[0] // 2 :]"),
    ("{t}", "while {r}.shape[0] % 4:", "{r} = F.pad({r}.t(), (0, 1)).t()"),
    ("{t}", "while {r}.numel() > {K}:", "{r} = {r}[:-1]"),
)


def repetition(w: Writer) -> None:
    """A `while` over sizes."""
    w.used.append("while")
    start, head, line = w.rng.choice(WHILES)
    target = w.fresh("r")
    w.emit(f"{target} = {filled(w, start)}")
    with w.block(filled(w, head.replace("{r}", target))):
        w.emit(filled(w, line.replace("{r}", target)))
    w.tensors.append(Tensor(target, None))


GATHERED: Final = (
    "torch.stack([{t}[e] for e in range({n})])", "torch.cat([c * 2 for c in {t}.split({k})])",
    "sum(r.sum() for r in {t})",
    "torch.stack([r for r in {t}][:{k}])", "torch.cat([c for c in {t}.chunk({k})][1:])",
    "torch.stack([{t}[e:e + {k}] for e in range({n} - {k} + 1)])",
    "torch.stack(list({t}.unbind(0))[::-1])", "torch.cat([torch.zeros(e) for e in range({n})])",
    "torch.stack([a * b for a, b in zip({t}, {u})])",
    "torch.stack([r for e, r in enumerate({t}) if e % 2 == 0])", "functools.reduce(torch.add, {t}.unbind(0))",
    "torch.cat(sorted({t}.split({k}), key=len))",
    "torch.cat([{t}[e:e + 1] for e in range(0, {n}, {k})])", "torch.stack([{t}] * {n})",
    "torch.cat([{t}] * {n} + [{u}])",
    "{t}[[e for e in range({n}) if e % {k}]]", "torch.stack([{t}[e] + {t}[e + 1] for e in range({n} - 1)])",
    "torch.stack(tuple({t})[-{k}:])",
    "torch.cat([c for c in {t}.split([{k}, {n} - {k}])])",
    "torch.stack(max({t}.chunk(2), {t}.chunk(3), key=len))", "[*{t}][{k}]",
    "torch.stack([c.sum(0) for c in {t}.tensor_split({k})])", "dict(enumerate({t}))[{k}]",
    "list(reversed({t}.unbind(0)))[{k}]",
    "torch.cat([x_.reshape(-1) for x_ in ({t}, {u})])", "torch.stack([{t}.roll(e, 0) for e in range({k})])",
    "torch.block_diag(*{t})",
    "torch.stack([torch.full((2,), float(e)) for e in {t}.shape])", "torch.zeros(sum({t}.shape), {k})",
    "torch.zeros([s + 1 for s in {t}.shape])",
    "{t}.view(*{t}.shape[:-1], {k}, -1)", "torch.zeros(*{u}.shape, *{t}.shape[1:])",
    "{t}.new_zeros(tuple(reversed({t}.shape)))",
    "torch.tensor([len(c) for c in {t}.split({k})])", "(lambda z, s: z[:s] if s < {k} else z)({t}, {n})",
    "{t}.reshape(math.prod({t}.shape))",
    "torch.tensor(list(zip(range({n}), range({m}))))", "{t}[slice({k}, {n})]", "{t}[slice(None, None, {k})]",
    "{t}[({k}, ...)]",
)  # fmt: skip


def gathered(w: Writer) -> None:
    """A list made of pieces, in one expression."""
    text = w.rng.choice(GATHERED)
    w.used.append(f"list {text}")
    w.let(filled(w, text), None)


def listed(w: Writer) -> None:
    """A list that a loop appends to."""
    w.used.append("append")
    parts, number = w.fresh("parts"), w.fresh("e")
    w.emit(f"{parts} = []")
    with w.block(filled(w, w.rng.choice(LOOPS).replace("{e}", number))):
        if w.rng.random() < 0.25:
            w.emit(f"if {filled(w, number + w.rng.choice((' % {k} == 0', ' > {k}', ' < {m}')))}:")
            w.emit("    continue")
        made = ("{t}[%s]", "{t}[%s:]", "{t}[%s : %s + {k}]", "{t} * %s", "{t}[:1]", "torch.zeros(%s, {k})",
            "{t}.sum(0)")
        w.emit(f"{parts}.append({filled(w, w.rng.choice(made).replace('%s', number))})")
    forms = ("torch.stack({p})", "torch.cat({p})", "torch.cat({p}, -1)", "{p}[-1]", "{p}[{k}]",
        "torch.stack({p}[::2])", "sum({p})",
             "torch.cat({p}[1:]) if len({p}) > {k} else {t}", "torch.nn.utils.rnn.pad_sequence({p})",
             "torch.stack({p}, dim=1)")  # fmt: skip
    w.let(filled(w, w.rng.choice(forms).replace("{p}", parts)), None)


def caught(w: Writer) -> None:
    """Something that may be refused, and what is done then."""
    target, risk, error = w.fresh(), w.rng.choice(RISKS), w.rng.choice(ERRORS)
    w.used.append(f"try {risk}")
    fallback = filled(w, w.rng.choice(("{t}", "{t}.reshape(-1)", "{t}.sum()", "{t} + {n}", "{t}[0]",
        "torch.zeros({n})")))
    if w.rng.random() < 0.12:
        w.emit(f"{target} = {fallback}")
        with w.block(f"with contextlib.suppress({error.strip('()')}):"):
            w.emit(f"{target} = {filled(w, risk)}")
    else:
        with w.block("try:"):
            if w.rng.random() < 0.25:
                w.emit(f"assert {filled(w, w.rng.choice(CONDITIONS))}")
            if w.rng.random() < 0.2:
                step(w)
            w.emit(f"{target} = {filled(w, risk)}")
            if w.rng.random() < 0.15:
                w.emit(f"if {filled(w, w.rng.choice(CONDITIONS))}:")
                raised = w.rng.choice(("ValueError", "RuntimeError", "IndexError", "KeyError"))
                w.emit(f"    raise {raised}('chosen')")
        with w.block(f"except {error}{w.rng.choice(('', ' as error'))}:"):
            w.emit(f"{target} = {fallback}")
        if w.rng.random() < 0.2:
            with w.block("except Exception:"):
                w.emit(f"{target} = {filled(w, '{t}.flatten()')}" if w.rng.random() < 0.7 else "raise")
        if w.rng.random() < 0.2:
            with w.block("else:"):
                w.emit(f"{target} = {target} * 2" if w.rng.random() < 0.5 else f"{target} = {target}[0]")
        if w.rng.random() < 0.15:
            with w.block("finally:"):
                w.emit(f"{w.fresh('last')} = {filled(w, '{t}.sum()')}")
    w.tensors.append(Tensor(target, None))


STATEMENTS: Final[tuple[Statement, ...]] = (branch, loop, repetition, gathered, listed, caught, assertion,
    conditional)


def of(*statements: Statement) -> Callable[[Writer, str], Program]:
    """Programs of these statements, among expressions."""

    def write(w: Writer, name: str) -> Program:
        inputs(w)
        for _ in range(w.rng.choice((1, 1, 2))):
            if w.rng.random() < 0.5:
                steps(w, 1)
            w.rng.choice(statements)(w)
        result = [t.name for t in w.tensors if t.dtype == "f"][-1]
        return w.program(name, w.rng.choice((result, result, f"{result} + 1", f"{result}.sum(0)",
            f"{result}, {w.tensors[0].name}")))

    return write


branches = of(branch, branch, assertion, conditional)
loops = of(loop, repetition)
lists = of(gathered, listed)
refusals = of(caught)
