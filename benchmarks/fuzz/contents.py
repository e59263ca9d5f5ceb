"""Programs that compute index tensors from sizes: a maker, some transformations, and a consumer."""

from __future__ import annotations

from typing import Final

from .program import Program
from .writer import EDGES, Construct, Tensor, Writer

C = Construct

MAKERS: Final = (
    C("arange", "torch.arange({n})", "{n}", "i"),
    C("arange-from", "torch.arange({k}, {n} + {k})", "{n}", "i"),
    C("arange-step", "torch.arange(0, {n}, {k})", "({n} + {k} - 1) // {k}", "i"),
    C("arange-down", "torch.arange({n} - 1, -1, -1)", "{n}", "i"),
    C("arange-negative", "torch.arange(-{n}, 0)", "{n}", "i"),
    C("arange-float", "torch.arange(float({n})).long()", "{n}", "i"),
    C("arange-fraction", "torch.arange(0, {n}, 0.5).long()", "2 * {n}", "i"),
    C("arange-dtype", "torch.arange({n}, dtype=torch.{D}).long()", "{n}", "i"),
    C("linspace", "torch.linspace(0, {n} - 1, {k}).long()", "{k}", "i"),
    C("linspace-steps", "torch.linspace(0, {k}, {n}).long()", "{n}", "i"),
    C("linspace-round", "torch.linspace(0, {n} - 1, {m}).round().long()", "{m}", "i"),
    C("logspace", "torch.logspace(0, {k}, {j}, base=2).long()", "{j}", "i"),
    C("logspace-size", "torch.logspace(0, {n}, {j}, base=2).long()", "{j}", "i"),
    C("full-size", "torch.full(({k},), {n})", "{k}", "i"),
    C("full", "torch.full(({n},), {k})", "{n}", "i"),
    C("full-both", "torch.full(({n},), {m} - 1)", "{n}", "i"),
    C("zeros", "torch.zeros({n}, dtype=torch.long)", "{n}", "i"),
    C("ones-like", "torch.ones_like({x}).long()", "*x", "i"),
    C("new-full", "{x}.new_full(({k},), {n}).long()", "{k}", "i"),
    C("tensor", "torch.tensor([{n} - 1])", "1", "i"),
    C("tensor-three", "torch.tensor([0, {n}, {k}])", "3", "i"),
    C("tensor-scalar", "torch.tensor({n})", "", "i"),
    C("tensor-shape", "torch.tensor({t}.shape)", "?", "i"),
    C("tensor-range", "torch.tensor(list(range({n})))", "{n}", "i"),
    C("tensor-comprehension", "torch.tensor([e * {k} for e in range({n})])", "{n}", "i"),
    C("as-tensor", "torch.as_tensor(({n}, {m}))", "2", "i"),
    C("eye", "torch.eye({n}, dtype=torch.long)", "{n}, {n}", "i"),
    C("eye-rectangle", "torch.eye({n}, {m}).long()", "{n}, {m}", "i"),
    C("tril-indices", "torch.tril_indices({n}, {m})[0]", "?", "i"),
    C("tril-columns", "torch.tril_indices({n}, {n})[1]", "({n}) * ({n} + 1) // 2", "i"),
    C("triu-indices", "torch.triu_indices({n}, {m}, offset=1)[1]", "?", "i"),
    C("triu-both", "torch.triu_indices({n}, {n})", "2, ?", "i"),
    C("randperm", "torch.randperm({n})", "{n}", "i"),
    C("randint", "torch.randint(0, {n}, ({k},))", "{k}", "i"),
    C("randint-many", "torch.randint({k}, ({n},))", "{n}", "i"),
    C("randint-like", "torch.randint({n}, {x}.shape)", "*x", "i"),
    C("rand-scaled", "(torch.rand({k}) * {n}).long()", "{k}", "i"),
    C("multinomial", "torch.multinomial(torch.ones({n}), {k})", "{k}", "i"),
    C("multinomial-replacement", "torch.multinomial(torch.ones({n}), {m}, replacement=True)", "{m}", "i"),
    C("argsort", "{x}.argsort()", "*x", "i"),
    C("argsort-dim", "{t2}.argsort(0)", "*t2", "i"),
    C("sort-indices", "torch.sort({x}).indices", "*x", "i"),
    C("sort-second", "{t2}.sort(dim=1, descending=True)[1]", "*t2", "i"),
    C("topk", "{x}.topk({k}).indices", "{k}", "i"),
    C("topk-all", "{x}.topk({x}.shape[0])[1]", "*x", "i"),
    C("argmax", "{x}.argmax()", "", "i"),
    C("argmax-dim", "{t2}.argmax(1)", "t2.0", "i"),
    C("argmin-keep", "{t2}.argmin(0, keepdim=True)", "1, t2.1", "i"),
    C("max-indices", "{t2}.max(1).indices", "t2.0", "i"),
    C("median-indices", "{x}.median(0).indices", "", "i"),
    C("kthvalue", "{x}.kthvalue({k}).indices", "", "i"),
    C("cummax", "{x}.cummax(0).indices", "*x", "i"),
    C("mode", "{t2}.mode(1)[1]", "t2.0", "i"),
    C("nonzero-ones", "torch.ones({n}).nonzero().flatten()", "{n}", "i"),
    C("nonzero-eye", "torch.eye({n}).nonzero()[:, 1]", "{n}", "i"),
    C("nonzero-data", "({x} > 0).nonzero()[:, 0]", "?", "i"),
    C("nonzero-known", "(torch.arange({n}) < {m}).nonzero().view(-1)", "?", "i"),
    C("where-one", "torch.where({x} >= 0)[0]", "?", "i"),
    C("argwhere", "torch.argwhere(torch.ones({n}, {m}))[:, 1]", "({n}) * ({m})", "i"),
    C("unique", "torch.arange({n}).unique()", "{n}", "i"),
    C("unique-inverse", "torch.unique({x}, return_inverse=True)[1]", "*x", "i"),
    C("unique-consecutive", "torch.arange({n}).unique_consecutive(return_counts=True)[1]", "{n}", "i"),
    C("bucketize", "torch.bucketize({x}, torch.linspace(0, 1, {k}))", "*x", "i"),
    C("bucketize-arange", "torch.bucketize(torch.arange({n}), torch.arange({m}))", "{n}", "i"),
    C("searchsorted", "torch.searchsorted(torch.arange({n}), torch.tensor([0, {k}]))", "2", "i"),
    C("unravel", "torch.unravel_index(torch.arange({n}), ({k}, {n}))[1]", "{n}", "i"),
    C("unravel-rows", "torch.unravel_index(torch.arange({n}), ({n}, {k}))[0]", "{n}", "i"),
    C("meshgrid", "torch.meshgrid(torch.arange({n}), torch.arange({m}), indexing='ij')[0]", "{n}, {m}", "i"),
    C("cartesian", "torch.cartesian_prod(torch.arange({n}), torch.arange({m}))[:, 0]", "({n}) * ({m})", "i"),
    C("combinations", "torch.combinations(torch.arange({n}))[:, 1]", "?", "i"),
    C("one-hot", "F.one_hot(torch.arange({n}))", "{n}, {n}", "i"),
    C("one-hot-classes", "F.one_hot(torch.arange({n}), {m})", "{n}, {m}", "i"),
    C("bincount", "torch.bincount(torch.arange({n}))", "{n}", "i"),
    C("cumsum-ones", "torch.ones({n}, dtype=torch.long).cumsum(0)", "{n}", "i"),
    C("relative", "torch.arange({n})[:, None] - torch.arange({m})[None, :]", "{n}, {m}", "i"),
    C("relative-shifted", "torch.arange({n})[:, None] - torch.arange({n})[None, :] + {n} - 1", "{n}, {n}",
        "i"),
    C("rel-pos", "(torch.arange({n})[:, None] * max({m} / {n}, 1.0) - torch.arange({m})[None, :]).long()",
      "{n}, {m}", "i"),
    C("repeat-interleave", "torch.arange({n}).repeat_interleave({k})", "({n}) * {k}", "i"),
    C("diag", "torch.diag(torch.arange({n}))", "{n}, {n}", "i"),
    C("stacked", "torch.stack([torch.arange({n}), torch.zeros({n}, dtype=torch.long)])", "2, {n}", "i"),
    C("joined", "torch.cat([torch.arange({n}), torch.arange({m})])", "{n} + ({m})", "i"),
    C("scaled", "(torch.arange({n}) * ({m} / {n})).long()", "{n}", "i"),
    C("halves", "(torch.arange({n}) / {k}).floor().long()", "{n}", "i"),
    C("blocks", "torch.arange({n}) // {k} * {k}", "{n}", "i"),
    C("mask", "(torch.arange({n}) < {m}).long()", "{n}", "i"),
    C("ramp", "torch.clamp(torch.arange({n}), 0, {m} - 1)", "{n}", "i"),
)  # fmt: skip

TRANSFORMS: Final = (
    C("plus", "{i} + {k}", "*i", "i"),
    C("minus", "{i} - {k}", "*i", "i"),
    C("plus-size", "{i} + {n}", "*i", "i"),
    C("minus-size", "{i} - {n}", "*i", "i"),
    C("from-size", "{n} - 1 - {i}", "*i", "i"),
    C("times", "{i} * {k}", "*i", "i"),
    C("times-size", "{i} * {n}", "*i", "i"),
    C("floordiv", "{i} // {k}", "*i", "i"),
    C("floordiv-size", "{i} // {n}", "*i", "i"),
    C("mod", "{i} % {k}", "*i", "i"),
    C("mod-size", "{i} % {n}", "*i", "i"),
    C("remainder", "torch.remainder({i}, {K})", "*i", "i"),
    C("fmod", "torch.fmod({i}, {k})", "*i", "i"),
    C("square", "{i} ** 2", "*i", "i"),
    C("power", "torch.pow(2, {i}.clamp(0, 9))", "*i", "i"),
    C("negative", "-{i}", "*i", "i"),
    C("abs", "{i}.abs()", "*i", "i"),
    C("clamp-max", "{i}.clamp(max={k})", "*i", "i"),
    C("clamp-min", "{i}.clamp(min={k})", "*i", "i"),
    C("clamp-size", "{i}.clamp(0, {n} - 1)", "*i", "i"),
    C("clamp-large", "{i}.clamp(0, {K})", "*i", "i"),
    C("where", "torch.where({i} > {k}, {i}, 0)", "*i", "i"),
    C("where-cap", "torch.where({i} < {n}, {i}, {n} - 1)", "*i", "i"),
    C("masked-fill", "{i}.masked_fill({i} > {k}, 0)", "*i", "i"),
    C("minimum", "torch.minimum({i}, torch.tensor({k}))", "*i", "i"),
    C("maximum", "torch.maximum({i}, torch.zeros_like({i}))", "*i", "i"),
    C("cumsum", "{i}.cumsum(0)", "*i", "i"),
    C("cumprod", "({i} + 1).clamp(max=2).cumprod(0)", "*i", "i"),
    C("diff", "{i}.diff()", "!", "i"),
    C("flip", "{i}.flip(0)", "*i", "i"),
    C("roll", "{i}.roll(1)", "*i", "i"),
    C("every-second", "{i}[::2]", "!", "i"),
    C("from-one", "{i}[1:]", "!", "i"),
    C("first-few", "{i}[:{k}]", "!", "i"),
    C("last", "{i}[-1:]", "!", "i"),
    C("first", "{i}[0]", "*i[1:]", "i"),
    C("last-one", "{i}[-1]", "*i[1:]", "i"),
    C("unsqueeze", "{i}.unsqueeze(0)", "1, *i", "i"),
    C("column", "{i}[..., None]", "*i, 1", "i"),
    C("transpose", "{i2}.t()", "i2.1, i2.0", "i"),
    C("repeat", "{i1}.repeat({k})", "i1.0 * {k}", "i"),
    C("expand", "{i1}.expand({k}, -1)", "{k}, *i1", "i"),
    C("double", "torch.cat(({i}, {i}))", "!", "i"),
    C("stack", "torch.stack(({i}, {i} + 1))", "2, *i", "i"),
    C("sum", "{i}.sum(0)", "*i[1:]", "i"),
    C("sum-all", "{i}.sum()", "", "i"),
    C("max", "{i}.max()", "", "i"),
    C("amin", "{i}.amin(0)", "*i[1:]", "i"),
    C("prod", "{i}.clamp(1, 2).prod()", "", "i"),
    C("half", "({i} / 2).long()", "*i", "i"),
    C("true-half", "({i} * 0.5).floor().long()", "*i", "i"),
    C("rounded", "({i} * 0.7).round().long()", "*i", "i"),
    C("ceiling", "({i} / {k}).ceil().to(torch.int64)", "*i", "i"),
    C("ratio", "({i} * ({k} / {n})).long()", "*i", "i"),
    C("div-floor", "torch.div({i}, {k}, rounding_mode='floor')", "*i", "i"),
    C("div-trunc", "torch.div({i}, -{k}, rounding_mode='trunc')", "*i", "i"),
    C("sqrt", "{i}.abs().sqrt().long()", "*i", "i"),
    C("tenth", "{i}.double().mul(0.1).long()", "*i", "i"),
    C("normalized", "({i} / max({n} - 1, 1) * ({k} - 1)).long()", "*i", "i"),
    C("bit-and", "{i} & 3", "*i", "i"),
    C("shift-left", "{i} << 1", "*i", "i"),
    C("shift-right", "{i} >> 1", "*i", "i"),
    C("select-small", "{i}[{i} < {k}]", "?", "i"),
    C("sorted", "{i}.sort().values", "*i", "i"),
    C("argsorted", "{i}.argsort()", "*i", "i"),
    C("uniqued", "{i}.unique()", "?", "i"),
    C("outer-sum", "{i1}[None, :] + {i1}[:, None]", "i1.0, i1.0", "i"),
    C("outer-flat", "({i1}[:, None] * {n} + torch.arange({n})).flatten()", "i1.0 * ({n})", "i"),
    C("reshape", "{i}.reshape(-1)", "!", "i"),
    C("clone", "{i}.clone()", "*i", "i"),
    C("contiguous", "{i}.contiguous().detach()", "*i", "i"),
    C("tril", "{i2}.tril()", "*i2", "i"),
    C("minus-min", "{i} - {i}.min()", "*i", "i"),
    C("added-in-place", "{i}.clone().add_({k})", "*i", "i"),
    C("written-slice", "F.pad({i}, (1, 0))", "!", "i"),
    C("padded", "F.pad({i}, (0, 2), value={k})", "!", "i"),
    C("from-list", "torch.tensor({i}.tolist())", "*i", "i"),
    C("self-index", "{i1}[{i1}]", "*i1", "i"),
    C("reversed-index", "{i1}[torch.arange({i1}.shape[0] - 1, -1, -1)]", "*i1", "i"),
    C("permuted", "{i1}[torch.randperm(len({i1}))]", "*i1", "i"),
    C("xor", "{i} ^ 1", "*i", "i"),
    C("sign", "{i}.sign()", "*i", "i"),
    C("equal", "({i} == {k}).long()", "*i", "i"),
)  # fmt: skip

CASTS: Final = (
    C("int8", "{i}.to(torch.int8).long()", "*i", "i"),
    C("uint8", "{i}.to(torch.uint8).long()", "*i", "i"),
    C("byte-plain", "{i}.byte().to(torch.int64)", "*i", "i"),
    C("int16", "{i}.short().long()", "*i", "i"),
    C("int32", "{i}.int().long()", "*i", "i"),
    C("float16", "{i}.half().long()", "*i", "i"),
    C("bfloat16", "{i}.bfloat16().long()", "*i", "i"),
    C("float32", "{i}.float().long()", "*i", "i"),
    C("float64", "{i}.to(torch.float64).to(torch.int64)", "*i", "i"),
    C("bool", "{i}.bool().long()", "*i", "i"),
    C("int8-sum", "({i}.to(torch.int8) + {k}).long()", "*i", "i"),
    C("uint8-product", "({i}.to(torch.uint8) * {k}).long()", "*i", "i"),
    C("uint8-minus", "({i}.byte() - {k}).long()", "*i", "i"),
    C("half-times", "({i}.half() * {k}).long()", "*i", "i"),
    C("half-plus", "({i}.half() + 1).long()", "*i", "i"),
    C("type-as", "{i}.type(torch.int16).type_as(torch.zeros(1, dtype=torch.long))", "*i", "i"),
    C("int8-half", "{i}.char().half().long()", "*i", "i"),
)  # fmt: skip

TABLES: Final = (
    C("table-ones", "torch.ones({K}, 3)", "{K}, 3"),
    C("table-eye", "torch.eye({K})", "{K}, {K}"),
    C("table-size", "torch.zeros({n}, 2)", "{n}, 2"),
    C("table-more", "torch.zeros({n} + {k}, 2)", "{n} + {k}, 2"),
    C("table-double", "torch.randn(2 * {n} - 1, {k})", "2 * ({n}) - 1, {k}"),
    C("table-vector", "torch.ones({K})", "{K}"),
    C("table-square", "torch.zeros({n}, {m})", "{n}, {m}"),
)  # fmt: skip

CONSUMERS: Final = (
    C("index", "{T}[{i}]", "!"),
    C("index-columns", "{T}[:, {i}]", "!"),
    C("index-last", "{T}[..., {i}]", "!"),
    C("index-both", "{T}[{i}, {i}]", "!"),
    C("index-pair", "{T}[{i}, 0]", "!"),
    C("index-first", "{T}[{i}.flatten()[0]]", "!"),
    C("index-max", "{T}[{i}.max()]", "!"),
    C("index-select", "{T}.index_select(0, {i})", "!"),
    C("index-select-last", "torch.index_select({T}, -1, {i})", "!"),
    C("embedding", "F.embedding({i}, {T})", "!"),
    C("embedding-module", "nn.Embedding({K}, 2)({i})", "!"),
    C("embedding-bag", "F.embedding_bag({i2}, {T})", "!"),
    C("gather", "{T}.gather(0, {i})", "!"),
    C("gather-column", "torch.gather({T}, 1, {i}.reshape(1, -1))", "!"),
    C("take", "{T}.take({i})", "!"),
    C("take-along", "torch.take_along_dim({T}, {i}.reshape(-1, 1), 0)", "!"),
    C("one-hot-consumer", "F.one_hot({i}, {K})", "!"),
    C("index-fill", "{T}.index_fill(0, {i}, 1.0)", "!"),
    C("index-add", "{T}.index_add(0, {i}, torch.ones(len({i}), *{T}.shape[1:]))", "!"),
    C("index-copy", "{T}.index_copy(0, {i}, torch.ones(len({i}), *{T}.shape[1:]))", "!"),
    C("index-put", "{T}.index_put(({i},), torch.tensor(1.0))", "!"),
    C("index-put-accumulate", "{T}.index_put(({i},), torch.tensor(1.0), accumulate=True)", "!"),
    C("scatter", "{T}.scatter(0, {i}, 1.0)", "!"),
    C("scatter-column", "{T}.scatter(0, {i}.reshape(-1, 1), 1.0)", "!"),
    C("scatter-add", "torch.zeros({K}).scatter_add(0, {i}, torch.ones({i}.shape))", "!"),
    C("scatter-reduce", "torch.zeros({n}).scatter_reduce(0, {i}, torch.ones({i}.shape), 'sum')", "!"),
    C("nll-loss", "F.nll_loss(torch.zeros(len({i}), {K}), {i})", "!"),
    C("cross-entropy", "F.cross_entropy(torch.zeros(len({i}), {K}), {i})", "!"),
    C("cross-entropy-size", "F.cross_entropy(torch.zeros({i}.shape[0], {n}), {i}, reduction='none')", "!"),
    C("bincount-consumer", "torch.bincount({i})", "!"),
    C("repeat-consumer", "torch.repeat_interleave({T}, {i}, dim=0)", "!"),
    C("repeat-all", "torch.ones(len({i})).repeat_interleave({i})", "!"),
    C("split-consumer", "torch.split({T}, {i}.tolist())", "!"),
    C("slice-consumer", "{T}[: int({i}.max())]", "!"),
    C("narrow-consumer", "{T}.narrow(0, int({i}.flatten()[0]), 1)", "!"),
    C("select-consumer", "{T}.select(0, {i}.flatten()[0].item())", "!"),
    C("zeros-consumer", "torch.zeros({i}.tolist())", "!"),
    C("multinomial-count", "torch.multinomial(torch.ones({K}), int({i}.max()))", "!"),
    C("put", "{T}.clone().put_({i}, torch.ones({i}.shape))", "!"),
    C("put-written", "{T}.clone().index_put_(({i},), torch.tensor(2.0))", "!"),
    C("set-item", "{T}.clone().__setitem__({i}, 0.0)", "!"),
    C("index-reduce", "{T}.index_reduce(0, {i}, torch.ones(len({i}), *{T}.shape[1:]), 'amax')", "!"),
)  # fmt: skip


def contents(w: Writer, name: str, casts: bool = False) -> Program:
    """A maker, up to three transformations, and a consumer that looks into a table; `casts`: through narrow
    dtypes, into tables of sizes that these just hold.
    """
    least = w.rng.choice((None, None, 0))
    w.symbol("a", least)
    vector = w.input("x", "a")
    if w.rng.random() < 0.5:
        w.symbol("b", least)
        w.input("y", *w.rng.choice((("b",), ("b", "c"), ("a", "b"))))
    if w.rng.random() < 0.3:
        w.unpack(vector)
    index = w.choose(MAKERS[:5] if casts and w.rng.random() < 0.7 else MAKERS)
    assert index is not None
    count = w.rng.choice((0, 1, 1, 2, 2, 3))
    steps = [w.rng.choice((TRANSFORMS, TRANSFORMS, TRANSFORMS, CASTS)) for _ in range(count)]
    if casts:
        steps = [*steps[:1], CASTS, *steps[2:]]
    for table in steps:
        index = _next(w, table, index)
    if casts and w.rng.random() < 0.8:
        rows = w.rng.choice(EDGES)
        table = w.let(f"torch.ones({rows}, 2)", (str(rows), "2"))
    else:
        table = _table(w)
    result = _consumed(w, index, table)
    return w.program(name, result)


def _next(w: Writer, table: tuple[Construct, ...], index: Tensor) -> Tensor:
    """The index after one more step, if one fits it."""
    return w.choose([c for c in table if _fits(c, index)], **_named(index)) or index


def _fits(construct: Construct, index: Tensor) -> bool:
    """The construct takes an index of this rank; where the rank is not known, it is worth a try."""
    for rank, hole in ((1, "{i1}"), (2, "{i2}")):
        if hole in construct.text and index.rank not in (rank, None):
            return False
    return not ("{i}[0]" in construct.text or "{i}[-1]" in construct.text) or index.rank != 0


COLUMNS: Final = frozenset({"index-columns", "index-both", "index-pair", "gather-column", "take-along"})
FLAT: Final = frozenset("""index-select index-select-last index-add index-copy index-reduce repeat-consumer
    repeat-all bincount-consumer index-fill nll-loss cross-entropy cross-entropy-size
    scatter-column""".split())


def _takes(construct: Construct, index: Tensor, table: Tensor) -> bool:
    """The ranks of the index and of the table are such that the consumer may run."""
    rows, rank = table.rank or 1, index.rank
    if (construct.name in COLUMNS and rows < 2) or (construct.name == "embedding" and rows != 2):
        return False
    if rank is None:
        return True
    if construct.name in FLAT or construct.name in ("split-consumer", "zeros-consumer"):
        return rank == 1
    return construct.name not in ("gather", "scatter") or rank == rows


def _named(index: Tensor) -> dict[str, Tensor]:
    return {"i": index, "i1": index, "i2": index}


def _table(w: Writer) -> Tensor:
    """Returns the table that is indexed: an input, or a tensor made for it."""
    inputs = [t for t in w.tensors if t.dtype == "f"]
    if w.rng.random() < 0.4:
        return w.rng.choice(inputs)
    made = w.choose(TABLES)
    assert made is not None
    return made


def _consumed(w: Writer, index: Tensor, table: Tensor) -> str:
    """Writes the consumer. Returns what the program returns."""
    fit = [c for c in CONSUMERS if _fits(c, index) and _takes(c, index, table)]
    made = w.choose(fit, T=table, **_named(index))
    assert made is not None
    return made.name
