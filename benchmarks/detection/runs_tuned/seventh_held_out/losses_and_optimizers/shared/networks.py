"""Networks of these runs: layers, convolutions, recurrent cells and transformers."""

import itertools
from typing import Any

import torch
from torch import nn
from torch.nn import functional


def layers(*widths: int, act: Any = nn.ReLU, drop: float = 0.0, norm: Any = None) -> Any:
    """Return linear layers with activations between them."""
    parts: list[Any] = []
    for ins, outs in itertools.pairwise(widths[:-1]):
        parts += [nn.Linear(ins, outs), *([norm(outs)] if norm else []), act()]
        parts += [nn.Dropout(drop)] if drop else []
    return nn.Sequential(*parts, nn.Linear(*widths[-2:]))


def convolutions(width: int = 8, classes: int = 4, size: int = 12, *, norm: bool = True) -> Any:
    """Return two convolutions with pooling, and a linear layer."""
    parts: list[Any] = []
    for ins, outs in ((1, width), (width, 2 * width)):
        parts += [nn.Conv2d(ins, outs, 3, padding=1, bias=not norm)]
        parts += [nn.BatchNorm2d(outs)] if norm else []
        parts += [nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*parts, nn.Flatten(), nn.Linear(2 * width * (size // 4) ** 2, classes))


class Beat(nn.Module):
    """Convolutions along time, the mean over time, and a linear layer."""

    def __init__(self, width: int = 12, outs: int = 3) -> None:
        super().__init__()
        self.first = nn.Conv1d(1, width, 7, stride=2, padding=3)
        self.second = nn.Conv1d(width, 2 * width, 5, stride=2, padding=2)
        self.norms = nn.ModuleList([nn.BatchNorm1d(width), nn.BatchNorm1d(2 * width)])
        self.head = nn.Linear(2 * width, outs)

    def forward(self, x: Any) -> Any:
        x = functional.relu(self.norms[0](self.first(x)))
        x = functional.relu(self.norms[1](self.second(x)))
        return self.head(x.mean(2))


class Forecast(nn.Module):
    """A recurrent layer and a linear one on its last output."""

    def __init__(self, cell: Any, ins: int, width: int, outs: int) -> None:
        super().__init__()
        self.cell = cell(ins, width, batch_first=True)
        self.head = nn.Linear(width, outs)

    def forward(self, x: Any) -> Any:
        return self.head(self.cell(x)[0][:, -1])


class Opinion(nn.Module):
    """A transformer encoder of reviews that leaves out padding, and a linear layer."""

    def __init__(self, words: int, width: int = 32, blocks: int = 2, drop: float = 0.1) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width, padding_idx=0)
        self.places = nn.Parameter(0.02 * torch.randn(64, width))
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, 4, 2 * width, drop, "gelu", batch_first=True, norm_first=True
            )
            for _ in range(blocks)
        )
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 2)

    def forward(self, x: Any) -> Any:
        padding = x == 0
        y = self.words(x) + self.places[: x.shape[1]]
        for block in self.blocks:
            y = block(y, src_key_padding_mask=padding)
        used = (~padding)[..., None].to(y.dtype)
        return self.head((self.norm(y) * used).sum(1) / used.sum(1).clamp(min=1))


class _Block(nn.Module):
    """Causal attention and a feed-forward part, each added to what it was given."""

    def __init__(self, width: int, heads: int, drop: float, approximate: str) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, drop, batch_first=True)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width),
            nn.GELU(approximate),
            nn.Linear(4 * width, width),
            nn.Dropout(drop),
        )

    def forward(self, x: Any) -> Any:
        y = self.norm1(x)
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], dtype=x.dtype)
        x = x + self.attention(y, y, y, attn_mask=mask, is_causal=True, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class Speaker(nn.Module):
    """A small decoder in the way of GPT-2: the next sign at each place."""

    def __init__(
        self,
        signs: int,
        width: int = 32,
        *,
        blocks: int = 2,
        heads: int = 4,
        drop: float = 0.0,
        approximate: str = "none",
        start: float = 0.02,
    ) -> None:
        super().__init__()
        self.signs, self.places = nn.Embedding(signs, width), nn.Embedding(40, width)
        self.blocks = nn.ModuleList(_Block(width, heads, drop, approximate) for _ in range(blocks))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, signs, bias=False)
        for each, size in ((self.signs, start), (self.places, start), (self.head, 0.02)):
            nn.init.normal_(each.weight, std=size)

    def forward(self, x: Any) -> Any:
        y = self.signs(x) + self.places(torch.arange(x.shape[1]))
        for block in self.blocks:
            y = block(y)
        return self.head(self.norm(y))


class Teller(nn.Module):
    """Embeddings, an LSTM with dropout, and scores of the next sign."""

    def __init__(self, signs: int, width: int = 48, drop: float = 0.1) -> None:
        super().__init__()
        self.signs = nn.Embedding(signs, 24)
        self.cell, self.drop = nn.LSTM(24, width, batch_first=True), nn.Dropout(drop)
        self.head = nn.Linear(width, signs)

    def forward(self, x: Any) -> Any:
        return self.head(self.drop(self.cell(self.drop(self.signs(x)))[0]))


class Factors(nn.Module):
    """Factors and biases of users and films."""

    def __init__(self, users: int = 120, films: int = 80, width: int = 6) -> None:
        super().__init__()
        self.users, self.films = nn.Embedding(users, width), nn.Embedding(films, width)
        self.leanings, self.fame = nn.Embedding(users, 1), nn.Embedding(films, 1)
        for each in (self.users, self.films, self.leanings, self.fame):
            nn.init.normal_(each.weight, std=0.1)

    def forward(self, x: Any) -> Any:
        user, film = x[:, 0], x[:, 1]
        both = (self.users(user) * self.films(film)).sum(1)
        return both + self.leanings(user)[:, 0] + self.fame(film)[:, 0]


class Staged(nn.Module):
    """A backbone of layers, and a head."""

    def __init__(self, ins: int, width: int, outs: int) -> None:
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Linear(ins, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.head = nn.Linear(width, outs)

    def forward(self, x: Any) -> Any:
        return self.head(self.backbone(x))
