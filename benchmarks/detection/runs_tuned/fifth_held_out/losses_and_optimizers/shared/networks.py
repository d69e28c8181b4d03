"""Networks that learn the data of this piece."""

import itertools
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from runs_tuned.fifth_held_out.losses_and_optimizers.shared.data import SIGNS, TEA_LEVELS


def layers(*sizes: int, act: Any = nn.Mish, drop: float = 0.0) -> nn.Sequential:
    """Return linear layers, with an activation (and dropout) behind all but the last."""
    parts: list[nn.Module] = []
    for before, after in itertools.pairwise(sizes[:-1]):
        parts += [nn.Linear(before, after), act(), *([nn.Dropout(drop)] if drop else [])]
    return nn.Sequential(*parts, nn.Linear(sizes[-2], sizes[-1]))


class Residual(nn.Module):
    """What a part returns, added to what it was given."""

    def __init__(self, inner: nn.Module, skipped: float = 0.0) -> None:
        super().__init__()
        self.inner, self.skipped = inner, skipped

    def forward(self, x: Any) -> Any:
        added = self.inner(x)
        if self.training and self.skipped:
            shape = (len(x), *(1 for _ in x.shape[1:]))
            added = added * (torch.rand(shape) >= self.skipped) / (1 - self.skipped)
        return x + added


class Grader(nn.Module):
    """Words and numbers of a row, joined, and residual layers behind them."""

    def __init__(self, outs: int = 5, width: int = 32, depth: int = 2, drop: float = 0.0) -> None:
        super().__init__()
        self.words = nn.ModuleList(nn.Embedding(size, 4) for size in TEA_LEVELS)
        self.join = nn.Linear(4 * len(TEA_LEVELS) + 6, width)
        self.blocks = nn.Sequential(
            *(
                Residual(nn.Sequential(nn.LayerNorm(width), layers(width, width, width, drop=drop)))
                for _ in range(depth)
            )
        )
        self.head = nn.Linear(width, outs)

    def joined(self, words: Any, numbers: Any) -> Any:
        """Return the first layer of a row's words and numbers."""
        looked_up = [each(words[:, at]) for at, each in enumerate(self.words)]
        return self.join(torch.cat([*looked_up, numbers], 1))

    def forward(self, words: Any, numbers: Any) -> Any:
        return self.head(self.blocks(self.joined(words, numbers)))


def folded(ins: int, outs: int, width: int = 10) -> nn.Sequential:
    """Return residual convolutions of pictures with norms over the batch."""

    def fold(size: int) -> nn.Module:
        first = [nn.Conv2d(size, size, 3, padding=1, bias=False), nn.BatchNorm2d(size), nn.SiLU()]
        second = [nn.Conv2d(size, size, 3, padding=1, bias=False), nn.BatchNorm2d(size)]
        return Residual(nn.Sequential(*first, *second))

    return nn.Sequential(
        *(nn.Conv2d(ins, width, 3, padding=1), fold(width), nn.SiLU()),
        *(nn.Conv2d(width, 2 * width, 3, 2, 1), fold(2 * width), nn.SiLU()),
        *(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(8 * width, outs)),
    )


class _Apart(nn.Module):
    """A convolution of each channel apart, a norm over channels, and layers over them."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.each = nn.Conv2d(width, width, 5, padding=2, groups=width)
        self.norm = nn.GroupNorm(1, width)
        self.up, self.down = nn.Conv2d(width, 2 * width, 1), nn.Conv2d(2 * width, width, 1)

    def forward(self, x: Any) -> Any:
        return self.down(functional.gelu(self.up(self.norm(self.each(x)))))


def channel_wise(ins: int, outs: int, width: int = 16, skipped: float = 0.0) -> nn.Sequential:
    """Return blocks of convolutions of each channel apart, which are skipped now and then."""
    blocks = (Residual(_Apart(width), skipped) for _ in range(2))
    return nn.Sequential(
        *(nn.Conv2d(ins, width, 2, 2), *blocks),
        *(nn.AdaptiveAvgPool2d((3, 4)), nn.Flatten(), nn.Linear(12 * width, outs)),
    )


class Seismic(nn.Module):
    """Convolutions of a record, and a head for each thing to be told of it."""

    def __init__(self, width: int = 12, outs: tuple[int, ...] = (1, 3)) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv1d(2, width, 7, 2, 3), nn.GELU(), nn.Conv1d(width, 2 * width, 5, 2, 2)),
            *(nn.GroupNorm(4, 2 * width), nn.GELU(), nn.Conv1d(2 * width, width, 5, 2, 2)),
            *(nn.GELU(), nn.Flatten(), nn.Linear(12 * width, 48), nn.GELU()),
        )
        self.heads = nn.ModuleList(nn.Linear(48, out) for out in outs)

    def forward(self, x: Any) -> Any:
        body = self.body(x)
        answers = [head(body) for head in self.heads]
        return answers if len(answers) > 1 else answers[0]


class Layer(nn.Module):
    """Attention with turned queries and keys, and gated units, each behind an RMS norm."""

    def __init__(self, width: int, heads: int, drop: float, *, normed: bool) -> None:
        super().__init__()
        self.heads, size = heads, width // heads
        self.first, self.second = nn.RMSNorm(width), nn.RMSNorm(width)
        self.query, self.key = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.value, self.out = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, 2 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * width, width, bias=False)
        self.drop = nn.Dropout(drop)
        self.level = nn.RMSNorm(size) if normed else nn.Identity()
        angle = torch.arange(64)[:, None] / 100 ** (torch.arange(0, size, 2) / size)
        self.register_buffer("turn", torch.polar(torch.ones_like(angle), angle), persistent=False)

    def _turned(self, x: Any) -> Any:
        pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)).contiguous())
        return torch.view_as_real(pairs * self.turn[: x.shape[2]]).flatten(-2)

    def forward(self, x: Any) -> Any:
        level = self.first(x)
        query, key, value = (
            layer(level).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        query, key = self._turned(self.level(query)), self._turned(self.level(key))
        mixed = functional.scaled_dot_product_attention(query, key, value.float(), is_causal=True)
        x = x + self.drop(self.out(mixed.transpose(1, 2).flatten(2)))
        level = self.second(x)
        return x + self.drop(self.down(functional.silu(self.gate(level)) * self.up(level)))


class Teller(nn.Module):
    """A decoder that tells the next sign, with scores of its own or those of the embedding."""

    def __init__(
        self,
        words: int = len(SIGNS),
        width: int = 32,
        depth: int = 2,
        *,
        drop: float = 0.0,
        tied: bool = False,
        normed: bool = False,
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        nn.init.normal_(self.embed.weight, std=width**-0.5)
        self.layers = nn.ModuleList(Layer(width, 2, drop, normed=normed) for _ in range(depth))
        self.norm = nn.RMSNorm(width)
        self.lm_head = nn.Linear(width, words, bias=False)
        if tied:
            self.lm_head.weight = self.embed.weight

    def forward(self, x: Any) -> Any:
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x)
        return self.lm_head(self.norm(x)).transpose(1, 2)


class Looped(nn.Module):
    """A recurrent network that tells the next sign, or what comes next of numbers."""

    def __init__(
        self, outs: int, width: int = 40, kind: Any = nn.LSTM, *, ins: int = 0, drop: float = 0.0
    ) -> None:
        super().__init__()
        self.embed = nn.Identity() if ins else nn.Embedding(outs, 20)
        self.inner = kind(ins or 20, width, batch_first=True)
        self.drop = nn.Dropout(drop)
        self.head = nn.Linear(width, outs)
        self.words = not ins

    def forward(self, x: Any) -> Any:
        states, _ = self.inner(self.drop(self.embed(x)))
        scores = self.head(self.drop(states))
        return scores.transpose(1, 2) if self.words else x + scores


class Gated(nn.Module):
    """Gated convolutions that look back only, over words."""

    def __init__(self, words: int, width: int = 28, depth: int = 4) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.layers = nn.ModuleList(
            nn.Conv1d(width, 2 * width, 3, dilation=2**at) for at in range(depth)
        )
        self.head = nn.Conv1d(width, words, 1)

    def forward(self, x: Any) -> Any:
        x = self.embed(x).transpose(1, 2)
        for layer in self.layers:
            gap = 2 * layer.dilation[0]
            x = x + functional.glu(layer(functional.pad(x, (gap, 0))), 1)
        return self.head(x)
