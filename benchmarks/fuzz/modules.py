"""Modules with layers, and with buffers that their forward pass reads and writes."""

from __future__ import annotations

from typing import Final

from .control import filled
from .operators import inputs, step
from .program import Program
from .writer import Tensor, Writer

STATEFUL: Final = (
    ("self.register_buffer('cache', torch.zeros({K}, {K}))",
     ("self.cache[:{t}.shape[0], :{t}.shape[1]] = {t}", "self.cache[:{t}.shape[0]] = {t}",
      "self.cache[{k}:{k} + {t}.shape[0], :{t}.shape[-1]] = {t}",
      "self.cache[0] = {t}", "self.cache[:, {k}] = {t}", "self.cache = self.cache + 1",
      "self.cache.add_({t})", "self.cache[{n}] = 1.0",
      "self.cache.narrow(0, {k}, {t}.shape[0]).copy_({t})", "self.cache[: {n}].zero_()",
      "self.cache = self.cache.roll(1, 0)",
      "self.cache = torch.cat([self.cache, {t}])", "self.cache = torch.cat([self.cache, {t}])[-{K}:]",
      "self.cache.index_copy_(0, torch.arange({n}), {t})",
      "self.cache.view(-1)[:{n}] = 1", "self.cache[torch.arange({n})] = 2.0", "self.cache.data[:{n}] = 3.0",
      "self.cache.mul_({t}.sum())"),
     ("self.cache[:{n}]", "self.cache[:{t}.shape[0]] + {t}", "{t} @ self.cache", "{t} + self.cache",
      "self.cache[{n}]", "self.cache[:{n}, :{m}]",
      "self.cache[torch.arange({n})]", "self.cache.narrow(0, 0, {n})",
      "{t} * self.cache[:{t}.shape[0], :{t}.shape[-1]]", "self.cache.sum(0)",
      "F.linear({t}, self.cache)", "self.cache.view({k}, -1)", "self.cache.expand_as({t})",
      "self.cache[-{n}:]", "torch.cat([{t}, self.cache])")),
    ("self.register_buffer('mask', torch.ones({K}, {K}).tril().bool())", ("self.mask = ~self.mask",
     "self.mask[:{n}] = False"),
     ("{t}.masked_fill(self.mask[:{t}.shape[0], :{t}.shape[1]], 0.0)",
      "{t}.masked_fill(~self.mask[:{n}, :{m}], 0.0)", "{t}.masked_fill(self.mask, 0.0)",
      "torch.where(self.mask[:{n}, :{n}], {t}, 0.0)", "{t}[self.mask[0, :{t}.shape[0]]]")),
    ("self.register_buffer('position', torch.arange({K}))", ("self.position = self.position + 1",
     "self.position[:{n}] = 0"),
     ("self.position[:{n}] + {t}", "{t}[self.position]", "{t}[self.position[:{n}]]",
      "torch.ones({K})[self.position[:{n}]]",
      "F.embedding(self.position[:{t}.shape[0]], {t})", "{t}.index_select(0, self.position[:{n}])",
      "{t}[self.position[{n}]]")),
    ("self.register_buffer('count', torch.zeros(()))", ("self.count += {t}.shape[0]", "self.count += 1",
     "self.count.fill_({n})", "self.count = {t}.mean()"),
     ("{t} * self.count", "{t} / (self.count + 1)", "{t}.expand(int(self.count) + {k}, *{t}.shape)")),
    ("self.step = 0", ("self.step += 1", "self.step = {n}", "self.step += {t}.shape[0]",
     "self.step = self.step + {k}"),
     ("{t}[self.step:]", "{t}[self.step]", "torch.zeros(self.step)", "{t}.view(self.step, -1)",
      "torch.ones({K})[: self.step]", "{t}.narrow(0, 0, self.step)")),
    ("self.history = []", ("self.history.append({t})", "self.history.append({t}.shape[0])",
     "self.history = [{t}]", "self.history += [{t}, {t}]"),
     ("torch.stack(self.history)", "torch.cat(self.history)", "self.history[0]", "self.history[-1] * 2",
      "self.history[{k}]", "torch.cat(self.history, -1)")),
    ("self.last = None", ("self.last = {t}", "self.last = {t} if self.last is None else self.last + {t}",
     "self.last = {n}"),
     ("{t} if self.last is None else {t} + self.last", "self.last", "torch.cat([{t}, self.last])")),
    ("self.weight = nn.Parameter(torch.ones({K}, {K}))", ("self.weight.data[:{n}] = 0.0",
     "self.weight.data.mul_(2)"),
     ("{t} @ self.weight", "F.linear({t}, self.weight)", "self.weight[:{n}]",
      "{t} * self.weight[:{t}.shape[0], :{t}.shape[-1]]", "self.weight[torch.arange({n})]",
      "{t} + self.weight[0]", "self.weight[:{n}, :{n}] @ {t}",
      "F.interpolate(self.weight[None, None], ({n}, {m}))[0, 0] + {t}")),
    ("self.scale = nn.Parameter(torch.ones({k}, 1))", ("self.scale.data = self.scale.data * 2",),
     ("{t} * self.scale", "self.scale.expand(-1, {n})", "{t} + self.scale.squeeze(1)",
      "self.scale.view(-1, {k}) + {t}", "self.scale.expand({n}, {m})")),
)  # fmt: skip

LAYERS: Final = (
    "nn.Linear({k}, {j})", "nn.Linear({K}, {k})", "nn.LayerNorm({k})", "nn.Embedding({K}, {k})",
    "nn.Conv1d({k}, {j}, {k})", "nn.Conv1d({k}, {j}, 3, padding=1)",
    "nn.Sequential(nn.Linear({k}, {j}), nn.ReLU(), nn.Linear({j}, {k}))", "nn.BatchNorm1d({k})",
    "nn.BatchNorm1d({k}, affine=False).eval()", "nn.GroupNorm({k}, {j})",
    "nn.Bilinear({k}, {k}, {j})", "nn.GRUCell({k}, {j})", "nn.LSTM({k}, {j})",
    "nn.GRU({k}, {j}, batch_first=True)", "nn.RNN({k}, {j}, 2, bidirectional=True)",
    "nn.MultiheadAttention(4, {k})", "nn.MultiheadAttention(4, 2, batch_first=True)",
    "nn.TransformerEncoderLayer(4, 2, 8)", "nn.AdaptiveAvgPool1d({k})", "nn.MaxPool1d({k}, 2)",
    "nn.AvgPool1d({k}, padding={j} // 2)", "nn.Flatten()", "nn.Flatten(0)", "nn.Unflatten(-1, ({k}, {j}))",
    "nn.Unflatten(0, (-1, {k}))", "nn.PReLU({k})", "nn.Softmax(dim=1)",
    "nn.GLU()", "nn.GLU(0)", "nn.ReflectionPad1d({k})", "nn.ReplicationPad1d({k})", "nn.CircularPad1d({k})",
    "nn.ConstantPad1d(-{k}, 0.0)", "nn.ZeroPad1d({k})", "nn.Upsample(scale_factor=2)",
    "nn.Upsample(size={k}, mode='linear')", "nn.Dropout(0.5)", "nn.Dropout1d()", "nn.InstanceNorm1d({k})",
    "nn.LocalResponseNorm({k})", "nn.PixelShuffle({k})", "nn.ChannelShuffle({k})",
    "nn.CosineSimilarity(0)", "nn.PairwiseDistance()", "nn.EmbeddingBag({K}, {k})",
    "nn.ConvTranspose1d({k}, {j}, 2, stride=2)", "nn.Fold(({k}, {k}), 2)", "nn.Unfold({k})", "nn.Identity()",
    "nn.FractionalMaxPool2d({k}, output_size={j})", "nn.LPPool1d(2, {k})", "nn.MaxUnpool1d(2)",
    "nn.RMSNorm({k})", "nn.Softmax2d()", "nn.TripletMarginLoss()", "nn.CrossEntropyLoss()", "nn.L1Loss()",
    "nn.utils.parametrizations.weight_norm(nn.Linear({k}, {j}))",
    "nn.utils.parametrizations.spectral_norm(nn.Linear({k}, {j}))", "nn.LazyLinear({k})", "nn.Hardtanh()",
    "nn.Threshold(0.1, 20)",
    "nn.SyncBatchNorm({k})", "nn.Mish()", "nn.LSTMCell({k}, {j})", "nn.Conv2d({k}, {j}, 3)",
    "nn.Conv2d(1, {k}, 3, padding='same')", "nn.BatchNorm2d({k})", "nn.MaxPool2d(2, return_indices=True)",
)  # fmt: skip

CALLS: Final = ("self.{l}({t})", "self.{l}({t})", "self.{l}({t}[None])", "self.{l}({t}[None])[0]",
    "self.{l}({t}, {t})", "self.{l}({t}[None], {t}[None], {t}[None])[0]",
                "self.{l}({t}.flatten(1))", "self.{l}({t}.t())", "self.{l}(torch.arange({n}))",
                "self.{l}({t}[None, None])", "self.{l}({t})[0]", "self.{l}({t}.long())",
                "self.{l}({t}, {u})", "self.{l}({t}.unsqueeze(1))")  # fmt: skip


def modules(w: Writer, name: str) -> Program:
    """One or two things that a module holds, used and changed in any order."""
    inputs(w)
    w.state.append("self.training_steps = 0")
    if w.rng.random() < 0.6:
        _stateful(w)
    else:
        _layer(w)
    if w.rng.random() < 0.3:
        w.rng.choice((_stateful, _layer))(w)
    results = [t.name for t in w.tensors if t.dtype == "f"]
    return w.program(name, results[-1])


def _stateful(w: Writer) -> None:
    line, writes, reads = w.rng.choice(STATEFUL)
    w.used.append(line.split("(")[0])
    w.state.append(filled(w, line))
    for _ in range(w.rng.choice((1, 2, 2, 3))):
        if w.rng.random() < 0.2:
            step(w)
        if w.rng.random() < 0.55:
            text = w.rng.choice(writes)
            w.used.append(text)
            w.emit(filled(w, text))
        else:
            _read(w, reads)
    _read(w, reads)


def _read(w: Writer, reads: tuple[str, ...]) -> None:
    text = w.rng.choice(reads)
    w.used.append(text)
    w.let(filled(w, text), None)


def _layer(w: Writer) -> None:
    layer, name = w.rng.choice(LAYERS), w.fresh("layer")
    w.used.append(layer.split("(")[0])
    w.state.append(f"self.{name} = {filled(w, layer)}")
    if w.rng.random() < 0.3:
        step(w)
    w.let(filled(w, w.rng.choice(CALLS).replace("{l}", name)), None)
    w.tensors.append(Tensor(w.tensors[-1].name, None))
