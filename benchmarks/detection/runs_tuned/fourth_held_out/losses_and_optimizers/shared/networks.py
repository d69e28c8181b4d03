"""Networks that learn the lessons of this piece."""

import itertools
from typing import Any

import torch
from torch import nn
from torch.nn import functional


def stack(*sizes: int, act: Any = nn.SiLU, norm: bool = False, drop: float = 0.0) -> nn.Sequential:
    """Return linear layers with what stands between them."""
    parts: list[nn.Module] = []
    for before, after in itertools.pairwise(sizes[:-1]):
        parts += [nn.Linear(before, after), *([nn.LayerNorm(after)] if norm else []), act()]
        parts += [nn.Dropout(drop)] if drop else []
    return nn.Sequential(*parts, nn.Linear(sizes[-2], sizes[-1]))


class Weaver(nn.Module):
    """Convolutions of woven patterns, normalised in groups or over the batch."""

    def __init__(self, width: int = 12, outs: int = 5, *, over_batch: bool = False) -> None:
        super().__init__()
        norm = nn.BatchNorm2d if over_batch else lambda size: nn.GroupNorm(3, size)
        self.body = nn.Sequential(
            *(nn.Conv2d(1, width, 3, padding=1), norm(width), nn.GELU()),
            *(nn.Conv2d(width, 2 * width, 3, 2, 1), norm(2 * width), nn.GELU()),
            *(nn.Conv2d(2 * width, 2 * width, 3, 2, 1), norm(2 * width), nn.GELU()),
        )
        self.head = nn.Linear(2 * width, outs)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(x).mean((2, 3)))


class Mixer(nn.Module):
    """Layers that mix the patches of a picture, and then what is in each (MLP-Mixer)."""

    def __init__(self, width: int = 24, depth: int = 2, outs: int = 5) -> None:
        super().__init__()
        self.cut = nn.Conv2d(1, width, 3, 3)
        self.across = nn.ModuleList(stack(16, 24, 16, act=nn.GELU) for _ in range(depth))
        self.along = nn.ModuleList(stack(width, 48, width, act=nn.GELU) for _ in range(depth))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2 * depth))
        self.head = nn.Linear(width, outs)

    def forward(self, x: Any) -> Any:
        x = self.cut(x).flatten(2).transpose(1, 2)
        for at, (across, along) in enumerate(zip(self.across, self.along, strict=True)):
            x = x + across(self.norms[2 * at](x).transpose(1, 2)).transpose(1, 2)
            x = x + along(self.norms[2 * at + 1](x))
        return self.head(x.mean(1))


class Block(nn.Module):
    """Attention of two heads and a layer of gated units, each normalised before."""

    def __init__(self, width: int, *, ahead: bool = False, drop: float = 0.0) -> None:
        super().__init__()
        self.ahead = ahead
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(2 * width, width)
        self.drop = nn.Dropout(drop)

    def forward(self, x: Any) -> Any:
        rows, length, width = x.shape
        parts = self.qkv(self.before(x)).view(rows, length, 3, 2, width // 2).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(*parts, is_causal=not self.ahead)
        x = x + self.drop(self.out(seen.transpose(1, 2).reshape(rows, length, width)))
        gate, value = self.up(self.between(x)).chunk(2, -1)
        return x + self.drop(self.down(functional.gelu(gate) * value))


class Writer(nn.Module):
    """A decoder of letters, or, if it sees ahead, an encoder that gives an answer for each."""

    def __init__(
        self,
        words: int,
        width: int = 32,
        depth: int = 2,
        *,
        length: int = 32,
        ahead: bool = False,
        drop: float = 0.0,
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.places = nn.Parameter(0.1 * torch.randn(length, width))
        self.blocks = nn.ModuleList(Block(width, ahead=ahead, drop=drop) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, words, bias=False)
        nn.init.normal_(self.lm_head.weight, std=0.05)

    def forward(self, x: Any) -> Any:
        x = self.embed(x) + self.places[: x.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.lm_head(self.norm(x)).transpose(1, 2)


class Recalling(nn.Module):
    """A recurrent network over what comes in, and a head for its last state or for each."""

    def __init__(
        self, ins: int, width: int, outs: int, kind: Any = nn.GRU, *, words: int = 0
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, ins) if words else nn.Identity()
        self.inner = kind(ins, width, batch_first=True)
        self.head = nn.Linear(width, outs)
        self.each = bool(words)

    def forward(self, x: Any) -> Any:
        states, _ = self.inner(self.embed(x))
        return self.head(states).transpose(1, 2) if self.each else self.head(states[:, -1])


class Dilated(nn.Module):
    """Convolutions over hours, each with larger gaps, and a head for the hours that follow."""

    def __init__(self, width: int = 16, outs: int = 6) -> None:
        super().__init__()
        self.first = nn.Conv1d(1, width, 1)
        self.layers = nn.ModuleList(
            nn.Conv1d(width, 2 * width, 3, dilation=gap) for gap in (1, 2, 4)
        )
        self.head = nn.Linear(width * 10, outs)

    def forward(self, x: Any) -> Any:
        x = self.first(x.transpose(1, 2))
        for layer in self.layers:
            value, gate = layer(x).chunk(2, 1)
            x = x[:, :, -value.shape[2] :] + value.tanh() * gate.sigmoid()
        return self.head(x.flatten(1))


class Bag(nn.Module):
    """The mean of embeddings of words, and layers behind it."""

    def __init__(self, words: int, outs: int, width: int = 24, drop: float = 0.0) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.layers = stack(width, 32, outs, act=nn.Tanh, drop=drop)

    def forward(self, x: Any) -> Any:
        return self.layers(self.embed(x).mean(1))
