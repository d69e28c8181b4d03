"""Generated texts: reviews, headlines, verses and orders; networks that read them."""

import functools
from typing import Any

import numpy as np
import torch
from torch import nn
from training.learnt_data import Split

WORDS, TOPICS, TAGS, LONGEST = 60, 4, 3, 14
LETTERS, LINE = 27, 24
PAD, NOT = 0, 1


def parted(x: Any, y: Any, share: float = 0.8) -> Split:
    """Return texts, a share of them to train with."""
    cut = int(share * len(x))
    x, y = torch.as_tensor(x), torch.as_tensor(y)
    return Split(x[:cut], y[:cut], x[cut:], y[cut:])


@functools.cache
def reviews(count: int = 1600, shortest: int = 9, seed: int = 7401) -> Split:
    """Return words of a review ``(n, 14)``, padded with 0; does it praise?

    Words from 40 on judge, the last ten kindly; a "not" before one turns it.
    """
    rng = np.random.default_rng(seed)
    x, praise = np.zeros((count, LONGEST), np.int64), rng.integers(2, size=count)
    for row, kind in zip(x, praise, strict=True):
        size = int(rng.integers(shortest, LONGEST + 1))
        row[:size] = rng.integers(2, 40, size)
        places = rng.permutation(size // 2)[: rng.integers(2, 4)] * 2
        for place in places:
            is_kind, is_turned = rng.random() < (0.92 if kind else 0.08), rng.random() < 0.2
            row[place] = NOT if is_turned else row[place]
            row[place + 1] = rng.integers(50, 60) if is_kind != is_turned else rng.integers(40, 50)
    return parted(x, praise)


@functools.cache
def headlines(count: int = 1800, seed: int = 7402) -> Split:
    """Return words of a headline ``(n, 10)``, and its topic."""
    rng = np.random.default_rng(seed)
    topic = rng.integers(TOPICS, size=count)
    often = np.random.default_rng(53).dirichlet(np.full(WORDS - 2, 0.25), TOPICS)
    usual = np.full(WORDS - 2, 1 / (WORDS - 2))
    x = [2 + rng.choice(WORDS - 2, 10, p=0.55 * often[one] + 0.45 * usual) for one in topic]
    return parted(np.stack(x), topic)


@functools.cache
def verses(count: int = 900, seed: int = 7403) -> Split:
    """Return letters of lines and the letters that follow, both ``(n, 24)``.

    Lines are of forty words, the frequent ones short; 0 is the space between them.
    """
    rng = np.random.default_rng(seed)
    words = [rng.integers(1, LETTERS, rng.integers(2, 6)) for _ in range(40)]
    words.sort(key=len)
    frequency = 1 / np.arange(2, 42)
    text: list[int] = []
    while len(text) < count * (LINE + 1):
        text += [*words[rng.choice(40, p=frequency / frequency.sum())], 0]
    lines = torch.tensor(text[: count * (LINE + 1)]).reshape(count, -1)
    data = parted(lines, lines)
    return Split(data.x[:, :-1], data.x[:, 1:], data.test_x[:, :-1], data.test_x[:, 1:])


@functools.cache
def orders(count: int = 1500, seed: int = 7404) -> Split:
    """Return words of an order ``(n, 12)``; is each an amount (1), a good (2) or neither?

    A number is an amount only before a good; goods follow amounts. Padding has the label -100.
    """
    rng = np.random.default_rng(seed)
    x, y = np.zeros((count, 12), np.int64), np.full((count, 12), -100)
    for row, tags in zip(x, y, strict=True):
        size = int(rng.integers(8, 13))
        row[:size], tags[:size] = rng.integers(2, 30, size), 0
        for place in rng.permutation(size // 3)[:2] * 3:
            row[place] = rng.integers(30, 40)
            if rng.random() < 0.7:
                row[place + 1], tags[place : place + 2] = rng.integers(40, 60), (1, 2)
        lone = rng.integers(size) if rng.random() < 0.3 else None
        if lone is not None and tags[lone] == 0:
            row[lone] = rng.integers(2, 30)
    return parted(x, y)


class BagOfWords(nn.Module):
    """The mean of the embeddings of words, and a linear layer."""

    def __init__(self, outs: int = TOPICS, width: int = 32) -> None:
        super().__init__()
        self.embedding, self.fc = nn.EmbeddingBag(WORDS, width), nn.Linear(width, outs)
        for weight in (self.embedding.weight, self.fc.weight):
            nn.init.uniform_(weight, -0.5, 0.5)
        nn.init.zeros_(self.fc.bias)

    def forward(self, x: Any) -> Any:
        return self.fc(self.embedding(x))


class WordConvolutions(nn.Module):
    """Convolutions of three widths over words, the maximum of each, and a linear layer."""

    def __init__(self, outs: int = 2, width: int = 24, drop: float = 0.3) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, width, padding_idx=PAD)
        self.convs = nn.ModuleList(nn.Conv1d(width, 20, size) for size in (2, 3, 4))
        self.relu, self.drop, self.fc = nn.ReLU(), nn.Dropout(drop), nn.Linear(60, outs)

    def forward(self, x: Any) -> Any:
        words = self.embedding(x).transpose(1, 2)
        found = [self.relu(conv(words)).amax(2) for conv in self.convs]
        return self.fc(self.drop(torch.cat(found, 1)))


class BiLstm(nn.Module):
    """An LSTM in both directions over packed words, and a linear layer on its last states."""

    def __init__(self, outs: int = 2, width: int = 24) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, width, padding_idx=PAD)
        self.lstm = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.drop, self.fc = nn.Dropout(0.3), nn.Linear(2 * width, outs)

    def forward(self, x: Any) -> Any:
        packed = nn.utils.rnn.pack_padded_sequence(
            self.embedding(x), (x != PAD).sum(1), batch_first=True, enforce_sorted=False
        )
        _, (state, _) = self.lstm(packed)
        return self.fc(self.drop(torch.cat([state[0], state[1]], 1)))


class Reader(nn.Module):
    """Embeddings of words and places, encoder layers that leave padding out, and a head."""

    def __init__(self, outs: int = 2, width: int = 32, layers: int = 2) -> None:
        super().__init__()
        self.words = nn.Embedding(WORDS, width, padding_idx=PAD)
        self.places = nn.Embedding(LONGEST, width)
        for table in (self.words, self.places):
            nn.init.normal_(table.weight, 0, 0.1)
        layer = nn.TransformerEncoderLayer(width, 4, 64, 0.1, "gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, outs)

    def forward(self, x: Any) -> Any:
        is_padding = x == PAD
        read = self.words(x) + self.places.weight[: x.shape[1]]
        read = self.encoder(read, src_key_padding_mask=is_padding)
        share = (~is_padding).float()[..., None]
        return self.head((read * share).sum(1) / share.sum(1))


class Speller(nn.Module):
    """Embeddings of letters, a GRU, and a linear layer; classes at axis 1."""

    def __init__(self, width: int = 48) -> None:
        super().__init__()
        self.embedding = nn.Embedding(LETTERS, 16)
        self.gru, self.head = nn.GRU(16, width, batch_first=True), nn.Linear(width, LETTERS)

    def forward(self, x: Any) -> Any:
        return self.head(self.gru(self.embedding(x))[0]).transpose(1, 2)


class Tagger(nn.Module):
    """Embeddings of words, a GRU in both directions, and a linear layer; classes at axis 1."""

    def __init__(self, width: int = 20) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 16, padding_idx=PAD)
        self.gru = nn.GRU(16, width, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, TAGS)

    def forward(self, x: Any) -> Any:
        return self.head(self.gru(self.embedding(x))[0]).transpose(1, 2)
