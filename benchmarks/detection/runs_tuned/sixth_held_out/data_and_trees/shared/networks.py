"""Networks: of pictures, of tokens and of tables."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn


class Inverted(nn.Module):
    """A step that widens, sees each channel by itself, and narrows; added to its input."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(width, 2 * width, 1),
            nn.BatchNorm2d(2 * width),
            nn.Hardswish(),
            nn.Conv2d(2 * width, 2 * width, 3, padding=1, groups=2 * width),
            nn.BatchNorm2d(2 * width),
            nn.Hardswish(),
            nn.Conv2d(2 * width, width, 1),
        )

    def forward(self, x: Any) -> Any:
        return x + self.layers(x)


def mobile(ins: int, kinds: int, width: int = 16, drop: float = 0.1) -> Any:
    """Return a stem, two inverted steps and a mean over places."""
    return nn.Sequential(
        nn.Conv2d(ins, width, 3, stride=2, padding=1),
        nn.BatchNorm2d(width),
        nn.Hardswish(),
        Inverted(width),
        nn.MaxPool2d(2),
        Inverted(width),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Dropout(drop),
        nn.Linear(4 * width, kinds),
    )


class Stacked(nn.Module):
    """Convolutions each of which sees what all before it have made, and two dense layers."""

    def __init__(self, ins: int, kinds: int, width: int = 10, drop: float = 0.0) -> None:
        super().__init__()
        self.stem = nn.Conv2d(ins, width, 5, stride=2, padding=2)
        self.steps = nn.ModuleList(
            nn.Conv2d(width * number, width, 3, padding=1) for number in (1, 2, 3)
        )
        self.tell = nn.Sequential(
            nn.AdaptiveMaxPool2d(3),
            nn.Flatten(),
            nn.Linear(36 * width, 48),
            nn.GELU(),
            nn.Dropout(drop),
            nn.Linear(48, kinds),
        )

    def forward(self, x: Any) -> Any:
        seen = self.stem(x)
        for step in self.steps:
            seen = torch.cat([seen, nn.functional.gelu(step(seen))], 1)
        return self.tell(seen)


class Listener(nn.Module):
    """Convolutions over tones, and a GRU over times."""

    def __init__(self, kinds: int, width: int = 32, drop: float = 0.1) -> None:
        super().__init__()
        self.hear = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1),
            nn.ELU(),
            nn.MaxPool2d((2, 1)),
            nn.Conv2d(8, 8, 3),
            nn.ELU(),
        )
        self.follow = nn.GRU(48, width, batch_first=True)
        self.tell = nn.Sequential(nn.Dropout(drop), nn.Linear(width, kinds))

    def forward(self, x: Any) -> Any:
        heard = self.hear(x)
        states, _ = self.follow(heard.flatten(1, 2).transpose(1, 2))
        return self.tell(states.mean(1))


class Encoder(nn.Module):
    """Vectors of tokens and places, and self-attention that leaves padding out."""

    def __init__(self, tokens: int, kinds: int, width: int = 32, *, drop: float = 0.1) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, width, padding_idx=0)
        self.place = nn.Parameter(0.1 * torch.randn(40, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, drop, "gelu", batch_first=True, norm_first=True
        )
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.tell = nn.Linear(width, kinds)

    def forward(self, x: Any) -> Any:
        there = (x > 0)[:, :, None].float()
        read = self.body(self.embedding(x) + self.place[: x.shape[1]], src_key_padding_mask=x == 0)
        read = self.norm(read)
        return self.tell((read * there).sum(1) / there.sum(1).clamp(min=1))


class BothWays(nn.Module):
    """An LSTM in both directions: a score of each kind for a text, or for each of its words."""

    def __init__(
        self, tokens: int, kinds: int, width: int = 24, *, drop: float = 0.1, each: bool = False
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, width, padding_idx=0)
        self.follow = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.tell = nn.Sequential(nn.Dropout(drop), nn.Linear(2 * width, kinds))
        self.each = each

    def forward(self, x: Any) -> Any:
        states, _ = self.follow(self.embedding(x))
        if self.each:
            return self.tell(states).transpose(1, 2)
        away = (x == 0)[:, :, None]
        return self.tell(states.masked_fill(away, -1.0).amax(1))


class Spans(nn.Module):
    """Convolutions over two, three and four tokens, and the largest of each over all places."""

    def __init__(
        self, tokens: int, kinds: int, width: int = 24, *, drop: float = 0.2, norm: bool = False
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, 16, padding_idx=0)
        self.spans = nn.ModuleList(nn.Conv1d(16, width, size, padding=2) for size in (2, 3, 4))
        self.tell = nn.Sequential(
            nn.LayerNorm(3 * width) if norm else nn.Identity(),
            nn.Dropout(drop),
            nn.Linear(3 * width, kinds),
        )

    def forward(self, x: Any) -> Any:
        read = self.embedding(x).transpose(1, 2)
        return self.tell(
            torch.cat([nn.functional.silu(span(read)).amax(2) for span in self.spans], 1)
        )


class Around(nn.Module):
    """Two gated convolutions over the words around each word, added to it: scores of each word."""

    def __init__(self, tokens: int, kinds: int, width: int = 28, drop: float = 0.1) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens, width, padding_idx=0)
        self.steps = nn.ModuleList(nn.Conv1d(width, 2 * width, 5, padding=2) for _ in range(2))
        self.tell = nn.Sequential(nn.Dropout(drop), nn.Conv1d(width, kinds, 1))

    def forward(self, x: Any) -> Any:
        read = self.embedding(x).transpose(1, 2)
        for step in self.steps:
            read = read + nn.functional.glu(step(read), 1)
        return self.tell(read)


class BagOfPairs(nn.Module):
    """The mean vector of all pairs of neighbouring tokens: the vector of a first and a second."""

    def __init__(self, tokens: int, kinds: int, width: int = 32) -> None:
        super().__init__()
        self.embedding = nn.Embedding(tokens * tokens, width)
        self.tell = nn.Linear(width, kinds)
        self.tokens = tokens

    def forward(self, x: Any) -> Any:
        pairs = x[:, :-1] * self.tokens + x[:, 1:]
        there = (x[:, 1:] > 0)[:, :, None].float()
        return self.tell((self.embedding(pairs) * there).sum(1) / there.sum(1).clamp(min=1))


class Pieces(nn.Module):
    """The larger one of two lines in each unit (maxout), twice, and a linear layer."""

    def __init__(self, ins: int, outs: int, width: int = 24, drop: float = 0.0) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(ins, 2 * width), nn.Linear(width, 2 * width)
        self.drop, self.tell = nn.Dropout(drop), nn.Linear(width, outs)

    def forward(self, x: Any) -> Any:
        for layer in (self.first, self.second):
            x = self.drop(layer(x).unflatten(1, (-1, 2)).amax(2))
        return self.tell(x)


class WideAndDeep(nn.Module):
    """Vectors of kinds beside numbers: a linear part, and a deep part with layer norms."""

    def __init__(self, sizes: Sequence[int], numbers: int, outs: int, drop: float = 0.1) -> None:
        super().__init__()
        self.kinds = nn.ModuleList(nn.Embedding(size, 4) for size in sizes)
        ins = 4 * len(sizes) + numbers
        self.wide = nn.Linear(ins, outs)
        self.deep = nn.Sequential(
            nn.Linear(ins, 32),
            nn.LayerNorm(32),
            nn.SiLU(),
            nn.Dropout(drop),
            nn.Linear(32, 32),
            nn.LayerNorm(32),
            nn.SiLU(),
            nn.Linear(32, outs),
        )

    def forward(self, x: Any) -> Any:
        count = len(self.kinds)
        vectors = [table(x[:, at].long()) for at, table in enumerate(self.kinds)]
        joined = torch.cat([*vectors, x[:, count:]], 1)
        return self.wide(joined) + self.deep(joined)


def plain(ins: int, outs: int, width: int = 32, unit: Any = nn.SELU, drop: float = 0.0) -> Any:
    """Return three layers of units without a norm."""
    return nn.Sequential(
        nn.Linear(ins, width),
        unit(),
        nn.Dropout(drop),
        nn.Linear(width, width),
        unit(),
        nn.Linear(width, outs),
    )


def normed(ins: int, outs: int, width: int = 32, drop: float = 0.1) -> Any:
    """Return two layers with batch norm, and dropout before the last one."""
    return nn.Sequential(
        nn.Linear(ins, width),
        nn.BatchNorm1d(width),
        nn.LeakyReLU(0.1),
        nn.Linear(width, width),
        nn.BatchNorm1d(width),
        nn.LeakyReLU(0.1),
        nn.Dropout(drop),
        nn.Linear(width, outs),
    )
