"""A translator: a GRU reads the source, another one with attention writes the target."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Encoder(nn.Module):
    def __init__(self, vocab, emb, hid):
        super().__init__()
        self.embedding, self.rnn = nn.Embedding(vocab, emb), nn.GRU(emb, hid, bidirectional=True)
        self.fc = nn.Linear(hid * 2, hid)

    def forward(self, src):
        outputs, hidden = self.rnn(self.embedding(src))
        return outputs, torch.tanh(self.fc(torch.cat((hidden[-2], hidden[-1]), dim=1)))


class Attention(nn.Module):
    def __init__(self, hid):
        super().__init__()
        self.attn, self.v = nn.Linear(hid * 3, hid), nn.Linear(hid, 1, bias=False)

    def forward(self, hidden, outputs):
        hidden = hidden.unsqueeze(1).repeat(1, outputs.shape[0], 1)
        energy = torch.tanh(self.attn(torch.cat((hidden, outputs.permute(1, 0, 2)), dim=2)))
        return F.softmax(self.v(energy).squeeze(2), dim=1)


class Decoder(nn.Module):
    def __init__(self, vocab, emb, hid):
        super().__init__()
        self.attention = Attention(hid)
        self.embedding, self.rnn = nn.Embedding(vocab, emb), nn.GRU(hid * 2 + emb, hid)
        self.fc_out = nn.Linear(hid * 3 + emb, vocab)

    def forward(self, token, hidden, outputs):
        embedded = self.embedding(token.unsqueeze(0))
        weights = self.attention(hidden, outputs).unsqueeze(1)
        weighted = torch.bmm(weights, outputs.permute(1, 0, 2)).permute(1, 0, 2)
        output, state = self.rnn(torch.cat((embedded, weighted), dim=2), hidden.unsqueeze(0))
        parts = (output.squeeze(0), weighted.squeeze(0), embedded.squeeze(0))
        return self.fc_out(torch.cat(parts, dim=1)), state.squeeze(0)


class Seq2Seq(nn.Module):
    def __init__(self, src_vocab=50, trg_vocab=60, emb=8, hid=16):
        super().__init__()
        self.encoder, self.decoder = Encoder(src_vocab, emb, hid), Decoder(trg_vocab, emb, hid)

    def forward(self, src, trg):
        outputs, hidden = self.encoder(src)
        predictions = []
        for t in range(trg.shape[0]):
            output, hidden = self.decoder(trg[t], hidden, outputs)
            predictions.append(output)
        return torch.stack(predictions)
