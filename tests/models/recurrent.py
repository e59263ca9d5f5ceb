# ruff: noqa: RUF059  # as users write it
"""Recurrent nets: taggers, encoders, decoders that loop over time."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .entry import Entry, always, conv


class LSTMTagger(nn.Module):
    def __init__(self, vocab: int = 50, dim: int = 12, hidden: int = 8, tags: int = 5):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim, padding_idx=0)
        self.lstm = nn.LSTM(dim, hidden, num_layers=2, bidirectional=True, batch_first=True, dropout=0.1)
        self.hidden2tag = nn.Linear(2 * hidden, tags)

    def forward(self, sentence: Tensor) -> Tensor:
        embeds = self.embedding(sentence)
        lstm_out, _ = self.lstm(embeds)
        tag_space = self.hidden2tag(lstm_out)
        return F.log_softmax(tag_space, dim=-1)


class GRUEncoder(nn.Module):
    def __init__(self, hidden: int = 8):
        super().__init__()
        self.hidden = hidden
        self.embedding = nn.Embedding(40, hidden)
        self.gru = nn.GRU(hidden, hidden, batch_first=True)

    def forward(self, src: Tensor) -> tuple[Tensor, Tensor]:
        return self.gru(self.embedding(src))


class AttentionDecoder(nn.Module):
    def __init__(self, hidden: int = 8):
        super().__init__()
        self.embedding = nn.Embedding(30, hidden)
        self.Wa, self.Ua, self.Va = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, 1)
        self.gru = nn.GRU(2 * hidden, hidden, batch_first=True)
        self.out = nn.Linear(hidden, 30)

    def step(self, token: Tensor, hidden: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        embedded = self.embedding(token)
        query = hidden.permute(1, 0, 2)
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys)))
        weights = F.softmax(scores.squeeze(2).unsqueeze(1), dim=-1)
        context = torch.bmm(weights, keys)
        output, hidden = self.gru(torch.cat((embedded, context), dim=2), hidden)
        return self.out(output), hidden


class Seq2Seq(nn.Module):
    """Encodes with a GRU, then decodes with teacher forcing, one step for each target."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = GRUEncoder()
        self.decoder = AttentionDecoder()

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        keys, hidden = self.encoder(src)
        token = torch.zeros(src.size(0), 1, dtype=torch.long)
        outputs = []
        for i in range(tgt.shape[1]):
            output, hidden = self.decoder.step(token, hidden, keys)
            outputs.append(output)
            token = tgt[:, i].unsqueeze(1)
        return torch.cat(outputs, dim=1)


class CellLoop(nn.Module):
    """A cell applied in a Python loop over time."""

    def __init__(self, features: int = 4, hidden: int = 6):
        super().__init__()
        self.hidden = hidden
        self.cell = nn.LSTMCell(features, hidden)
        self.head = nn.Linear(hidden, 1)

    def forward(self, x: Tensor) -> Tensor:
        h = x.new_zeros(x.size(1), self.hidden)
        c = torch.zeros_like(h)
        states = []
        for step in x:
            h, c = self.cell(step, (h, c))
            states.append(h)
        return self.head(torch.stack(states)).squeeze(-1)


class StatefulRNN(nn.Module):
    """The hidden state comes from outside: its batch must be the input's."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(5, 7, num_layers=2)
        self.fc = nn.Linear(7, 2)

    def forward(self, x: Tensor, h0: Tensor, c0: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        out, state = self.rnn(x, (h0, c0))
        return self.fc(out[-1]), state


class LastState(nn.Module):
    """Classifies by the last hidden states of both directions."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(6, 5, num_layers=2, bidirectional=True, batch_first=True)
        self.fc = nn.Linear(10, 3)

    def forward(self, x: Tensor) -> Tensor:
        _, h_n = self.gru(x)
        last = torch.cat((h_n[-2], h_n[-1]), dim=1)
        return self.fc(last)


class CRNN(nn.Module):
    """Reads a line of text: the convolutions must bring its height to 1, its width becomes time."""

    def __init__(self, strict: bool = True):
        super().__init__()
        self.strict = strict
        self.cnn = nn.Sequential(
            nn.Conv2d(1, 4, 3, 1, 1),
            nn.ReLU(True),
            nn.MaxPool2d(2, 2),
            nn.Conv2d(4, 6, 3, 1, 1),
            nn.ReLU(True),
            nn.MaxPool2d((2, 2), (2, 1), (0, 1)),
            nn.Conv2d(6, 8, 2, 1, 0),
            nn.ReLU(True),
        )
        self.rnn = nn.LSTM(8, 6, bidirectional=True)
        self.embedding = nn.Linear(12, 10)

    def forward(self, input: Tensor) -> Tensor:
        features = self.cnn(input)
        b, c, h, w = features.size()
        assert h == 1, "the height of conv must be 1"
        features = features.squeeze(2).permute(2, 0, 1)
        recurrent, _ = self.rnn(features)
        T, b, h = recurrent.size()
        output = self.embedding(recurrent.view(T * b, h))
        return output.view(T, b, -1)


class ConvLSTMCell(nn.Module):
    def __init__(self, in_channels: int, hidden: int):
        super().__init__()
        self.hidden = hidden
        self.conv = nn.Conv2d(in_channels + hidden, 4 * hidden, 3, padding=1)

    def forward(self, x: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        h, c = state
        i, f, o, g = torch.split(self.conv(torch.cat([x, h], dim=1)), self.hidden, dim=1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c


class ConvLSTM(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = ConvLSTMCell(2, 3)

    def forward(self, video: Tensor) -> Tensor:
        b, t, _, h, w = video.size()
        state = (torch.zeros(b, 3, h, w), torch.zeros(b, 3, h, w))
        outputs = []
        for step in range(t):
            state = self.cell(video[:, step], state)
            outputs.append(state[0])
        return torch.stack(outputs, dim=1)


class CharWordTagger(nn.Module):
    """Convolves over the letters of each word, then reads the words with an LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.char_embed = nn.Embedding(30, 6)
        self.conv = nn.Conv1d(6, 8, kernel_size=3)
        self.word_embed = nn.Embedding(100, 10)
        self.lstm = nn.LSTM(18, 12, batch_first=True)
        self.out = nn.Linear(12, 4)

    def forward(self, words: Tensor, chars: Tensor) -> Tensor:
        b, n, letters = chars.shape
        c = self.char_embed(chars.view(b * n, letters)).transpose(1, 2)
        c = F.relu(self.conv(c)).max(dim=2).values
        x = torch.cat([self.word_embed(words), c.view(b, n, -1)], dim=-1)
        out, _ = self.lstm(x)
        return self.out(out)


def crnn_height(h: int) -> int:
    return conv(h // 2 // 2, 2)


ENTRIES = (
    Entry("lstm_tagger", LSTMTagger, "sentence: int64[b, t]", always, "proved", probe={"t": (1, 2, 7, 40)}),
    # A sequence without a step is refused, a batch without a sentence is not.
    Entry(
        "lstm_tagger_empty",
        LSTMTagger,
        "sentence: int64[b, t]",
        lambda b, t: t >= 1,
        "refined",
        ("b >= 0", "t >= 0"),
        probe={"b": (0, 1, 2), "t": (0, 1, 2, 5)},
    ),
    Entry("gru_encoder", GRUEncoder, "src: int64[b, t]", always, "proved", probe={"t": (1, 2, 30)}),
    Entry(
        "seq2seq",
        Seq2Seq,
        "src: int64[b, s]; tgt: int64[c, t]",
        # Targets are taken after the first step, so that a single one is never looked at.
        lambda b, s, c, t: t == 1 or b == c,
        "refined",
        ("t <= 6",),
        probe={"b": (1, 2, 3), "s": (1, 2, 4), "c": (1, 2, 3), "t": (1, 2, 5, 6)},
    ),
    Entry(
        "seq2seq_same_batch",
        Seq2Seq,
        "src: int64[b, s]; tgt: int64[b, t]",
        always,
        "proved",
        ("t <= 4",),
        probe={"t": (1, 2, 3, 4)},
    ),
    Entry(
        "lstm_cell_loop",
        CellLoop,
        "x: float32[t, b, 4]",
        always,
        "proved",
        ("t <= 5",),
        probe={"t": (1, 2, 5)},
    ),
    Entry(
        "stateful_lstm",
        StatefulRNN,
        "x: float32[t, b, 5]; h0: float32[2, c, 7]; c0: float32[layers, d, 7]",
        lambda t, b, c, layers, d: b == c == d and layers == 2,
        "refined",
        probe={"t": (1, 3), "b": (1, 2), "c": (1, 2), "d": (1, 2), "layers": (1, 2, 4)},
    ),
    Entry("gru_last_state", LastState, "x: float32[b, t, 6]", always, "proved", probe={"t": (1, 2, 9)}),
    Entry(
        "crnn",
        CRNN,
        "input: float32[b, 1, h, w]",
        lambda b, h, w: crnn_height(h) == 1 and w >= 2,
        "refined",
        probe={"b": (1, 2), "h": (1, 4, 7, 8, 9, 11, 12, 16, 32), "w": (1, 2, 3, 4, 20)},
    ),
    Entry(
        "conv_lstm",
        ConvLSTM,
        "video: float32[b, t, 2, h, w]",
        always,
        "proved",
        ("t <= 4",),
        probe={"t": (1, 2, 4), "h": (1, 4), "w": (1, 5)},
    ),
    Entry(
        "char_word_tagger",
        CharWordTagger,
        "words: int64[b, n]; chars: int64[c, m, k]",
        lambda b, n, c, m, k: b == c and n == m and k >= 3,
        "refined",
        probe={"b": (1, 2), "n": (1, 3), "c": (1, 2), "m": (1, 3), "k": (1, 2, 3, 4)},
    ),
)
