"""Models of this piece."""

import itertools
import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional


def dense(*widths: int, unit: Any = nn.ReLU, drop: float = 0.0, norm: Any = None) -> Any:
    """Return linear layers with units, and norms and dropout if wanted, between them."""
    parts: list[Any] = []
    for ins, outs in itertools.pairwise(widths[:-1]):
        parts += [nn.Linear(ins, outs)]
        parts += [norm(outs)] if norm else []
        parts += [unit()]
        parts += [nn.Dropout(drop)] if drop else []
    return nn.Sequential(*parts, nn.Linear(widths[-2], widths[-1]))


class HousePrice(nn.Module):
    """An embedding of the district beside numbers, and dense layers."""

    def __init__(self, width: int = 48, outs: int = 1, drop: float = 0.0, std: float = 1.0) -> None:
        super().__init__()
        self.district = nn.Embedding(12, 8)
        nn.init.normal_(self.district.weight, std=std)
        self.layers = dense(16, width, width, outs, drop=drop)

    def forward(self, district: Any, x: Any) -> Any:
        return self.layers(torch.cat([self.district(district), x], 1))


class Cnn(nn.Module):
    """Convolutions with batch norm, a mean over places, and a linear layer."""

    def __init__(
        self,
        kinds: int,
        width: int = 12,
        drop: float = 0.0,
        unit: Any = nn.ReLU,
        *,
        norm: bool = True,
    ) -> None:
        super().__init__()
        parts: list[Any] = []
        for ins, outs in ((1, width), (width, 2 * width)):
            parts += [nn.Conv2d(ins, outs, 3, padding=1, bias=not norm)]
            parts += [nn.BatchNorm2d(outs)] if norm else []
            parts += [unit(), nn.MaxPool2d(2)]
        self.body = nn.Sequential(*parts, nn.Flatten(), nn.Dropout(drop))
        self.head = nn.Linear(18 * width, kinds)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(x))


class Residual(nn.Module):
    """Two convolutions with batch norm beside a shortcut."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.one, self.two = (nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2))
        self.norm1, self.norm2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)

    def forward(self, x: Any) -> Any:
        return (x + self.norm2(self.two(self.norm1(self.one(x)).relu()))).relu()


def resnet(kinds: int, width: int = 12) -> Any:
    """Return a small residual network."""
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        Residual(width),
        nn.MaxPool2d(2),
        Residual(width),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Linear(4 * width, kinds),
    )


class UNet(nn.Module):
    """Two levels down and up with a shortcut; scores of a mask."""

    def __init__(self, width: int = 8, *, norm: bool = True) -> None:
        super().__init__()

        def block(ins: int, outs: int) -> Any:
            after = [nn.BatchNorm2d(outs)] if norm else []
            return nn.Sequential(nn.Conv2d(ins, outs, 3, padding=1), *after, nn.ReLU())

        self.first, self.deep = block(1, width), block(width, 2 * width)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.last, self.head = block(2 * width, width), nn.Conv2d(width, 1, 1)

    def forward(self, x: Any) -> Any:
        first = self.first(x)
        up = self.up(self.deep(functional.max_pool2d(first, 2)))
        return self.head(self.last(torch.cat([first, up], 1)))


def conv1d(kinds: int, ins: int = 1, width: int = 12, drop: float = 0.0) -> Any:
    """Return convolutions over time."""
    return nn.Sequential(
        nn.Conv1d(ins, width, 7, padding=3),
        nn.BatchNorm1d(width),
        nn.ReLU(),
        nn.MaxPool1d(4),
        nn.Conv1d(width, 2 * width, 5, padding=2),
        nn.BatchNorm1d(2 * width),
        nn.ReLU(),
        nn.AdaptiveMaxPool1d(4),
        nn.Flatten(),
        nn.Dropout(drop),
        nn.Linear(8 * width, kinds),
    )


class Recurrent(nn.Module):
    """A recurrent layer, and a linear one on its last state."""

    def __init__(self, cell: Any, ins: int, outs: int, width: int = 32) -> None:
        super().__init__()
        self.cell = cell(ins, width, batch_first=True)
        self.head = nn.Linear(width, outs)

    def forward(self, x: Any) -> Any:
        return self.head(self.cell(x)[0][:, -1])


class Encoder(nn.Module):
    """Transformer layers over patches of signals ``(n, length, ins)``, and their mean."""

    def __init__(self, ins: int, outs: int, width: int = 32, drop: float = 0.1) -> None:
        super().__init__()
        self.enter = nn.Conv1d(ins, width, 6, stride=3)
        self.places = nn.Parameter(0.02 * torch.randn(40, width))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 64, drop, batch_first=True, norm_first=True)
            for _ in range(2)
        )
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, outs)

    def forward(self, x: Any) -> Any:
        x = self.enter(x.transpose(1, 2)).transpose(1, 2)
        x = x + self.places[: x.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x).mean(1))


class WordMean(nn.Module):
    """The mean of the words' embeddings, and dense layers."""

    def __init__(self, words: int, outs: int, width: int = 24, drop: float = 0.0) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width, padding_idx=0)
        self.layers = dense(width, 32, outs, drop=drop)

    def forward(self, x: Any) -> Any:
        there = (x > 0).float()[..., None]
        mean = (self.words(x) * there).sum(1) / there.sum(1).clamp(min=1)
        return self.layers(mean)


class WordCnn(nn.Module):
    """Convolutions of two widths over words, and the largest answer."""

    def __init__(self, words: int, outs: int, width: int = 16, drop: float = 0.2) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width, padding_idx=0)
        self.spans = nn.ModuleList(nn.Conv1d(width, width, span, padding=1) for span in (2, 3))
        self.drop, self.head = nn.Dropout(drop), nn.Linear(2 * width, outs)

    def forward(self, x: Any) -> Any:
        found = self.words(x).transpose(1, 2)
        largest = [span(found).relu().amax(2) for span in self.spans]
        return self.head(self.drop(torch.cat(largest, 1)))


class Attention(nn.Module):
    """Causal attention with several heads."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        rows, length, width = x.shape
        split = self.qkv(x).view(rows, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        found = functional.scaled_dot_product_attention(*split, is_causal=True)
        return self.proj(found.transpose(1, 2).reshape(rows, length, width))


class Block(nn.Module):
    """A transformer block with norms first."""

    def __init__(self, width: int, heads: int, drop: float) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn, self.drop = Attention(width, heads), nn.Dropout(drop)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Any) -> Any:
        x = x + self.drop(self.attn(self.norm1(x)))
        return x + self.drop(self.mlp(self.norm2(x)))


class NanoGpt(nn.Module):
    """A small decoder of letters, as in nanoGPT; logits are ``(n, letters, length)``."""

    def __init__(
        self, letters: int, width: int = 32, blocks: int = 2, length: int = 48, drop: float = 0.0
    ) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(letters, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, 4, drop) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, letters, bias=False)
        self.head.weight = self.wte.weight
        for name, each in self.named_parameters():
            if each.ndim == 2:
                depth = (
                    math.sqrt(2 * blocks) if name.endswith(("proj.weight", "mlp.2.weight")) else 1
                )
                nn.init.normal_(each, std=0.02 / depth)
            elif name.endswith("bias"):
                nn.init.zeros_(each)

    def forward(self, x: Any) -> Any:
        x = self.wte(x) + self.wpe(torch.arange(x.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)).transpose(1, 2)


class LetterLstm(nn.Module):
    """An LSTM over letters; logits are ``(n, letters, length)``."""

    def __init__(self, letters: int, width: int = 48, drop: float = 0.0) -> None:
        super().__init__()
        self.embed = nn.Embedding(letters, 24)
        self.cell, self.drop = nn.LSTM(24, width, batch_first=True), nn.Dropout(drop)
        self.head = nn.Linear(width, letters)

    def forward(self, x: Any) -> Any:
        return self.head(self.drop(self.cell(self.embed(x))[0])).transpose(1, 2)


class Adder(nn.Module):
    """An encoder and a decoder of digits with attention."""

    def __init__(self, width: int = 40) -> None:
        super().__init__()
        self.digits = nn.Embedding(11, 20)
        self.encoder = nn.GRU(20, width, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(2 * width, width)
        self.decoder = nn.GRU(20, width, batch_first=True)
        self.head = nn.Linear(2 * width, 10)

    def forward(self, x: Any, shifted: Any) -> Any:
        memory = self.bridge(self.encoder(self.digits(x))[0])
        states, _ = self.decoder(self.digits(shifted), memory.mean(1)[None].contiguous())
        weights = (states @ memory.transpose(1, 2) / memory.shape[2] ** 0.5).softmax(2)
        return self.head(torch.cat([states, weights @ memory], 2)).transpose(1, 2)


class Lora(nn.Module):
    """A frozen linear layer with a low-rank update."""

    def __init__(self, base: Any, rank: int = 4, alpha: float = 8.0) -> None:
        super().__init__()
        self.base, self.scale = base.requires_grad_(requires_grad=False), alpha / rank
        self.lora_A = nn.Parameter(torch.empty(rank, base.in_features))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_A, a=math.sqrt(5))

    def forward(self, x: Any) -> Any:
        return self.base(x) + self.scale * (x @ self.lora_A.T) @ self.lora_B.T


def adapted(model: Any, rank: int = 4) -> Any:
    """Freeze a `NanoGpt`, and give its attention low-rank updates."""
    model.requires_grad_(requires_grad=False)
    for block in model.blocks:
        block.attn.qkv = Lora(block.attn.qkv, rank)
        block.attn.proj = Lora(block.attn.proj, rank)
    return model


class Factors(nn.Module):
    """Factors of users and films; the score of a film for a user."""

    def __init__(self, users: int, films: int, width: int = 12) -> None:
        super().__init__()
        self.users, self.films = nn.Embedding(users, width), nn.Embedding(films, width)
        self.popular = nn.Embedding(films, 1)
        nn.init.normal_(self.users.weight, std=0.1)
        nn.init.normal_(self.films.weight, std=0.1)
        nn.init.zeros_(self.popular.weight)

    def forward(self, user: Any, film: Any) -> Any:
        return (self.users(user) * self.films(film)).sum(1) + self.popular(film)[:, 0]


def taught(model: Any, loss: Any, batches: Any, steps: int, rate: float = 3e-3) -> Any:
    """Train a model beforehand, without a hook, and return it in training mode."""
    optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], rate)
    for _ in range(steps):
        optimizer.zero_grad()
        loss(next(batches)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    optimizer.zero_grad()
    return model
