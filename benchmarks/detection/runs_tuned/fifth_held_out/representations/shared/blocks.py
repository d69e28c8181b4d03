"""Blocks: attention with turned queries, decoders, experts, and plain layers."""

import itertools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional


def layers(*sizes: int, act: Any = nn.ReLU, norm: Any = None) -> Any:
    """Return linear layers with activations between them."""
    parts: list[Any] = []
    for size, after in itertools.pairwise(sizes):
        parts += [nn.Linear(size, after), *([norm(after)] if norm else []), act()]
    return nn.Sequential(*(parts[:-2] if norm else parts[:-1]))


def turned(x: Any) -> Any:
    """Turn halves of queries or keys by their places (rotary embeddings)."""
    half = x.shape[-1] // 2
    angle = torch.arange(x.shape[-2])[:, None] * 100.0 ** (-torch.arange(half) / half)
    first, second = x.chunk(2, -1)
    return torch.cat(
        [first * angle.cos() - second * angle.sin(), first * angle.sin() + second * angle.cos()], -1
    )


class TurnedAttention(nn.Module):
    """Attention of several heads; causal unless a mask is made.

    Parameters
    ----------
    mask
        Makes what the attention adds to scores, or what it sees, from a length; None for causal.
    """

    def __init__(
        self, width: int = 32, heads: int = 4, mask: Callable[[int], Any] | None = None
    ) -> None:
        super().__init__()
        self.heads, self.mask = heads, mask
        self.asks, self.names, self.tells = (nn.Linear(width, width, bias=False) for _ in range(3))
        self.joins = nn.Linear(width, width)

    def split(self, x: Any) -> Any:
        """Return heads of rows."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def parts(self, x: Any) -> tuple[Any, Any, Any]:
        """Return queries, keys and values by heads."""
        query, key = turned(self.split(self.asks(x))), turned(self.split(self.names(x)))
        return query, key, self.split(self.tells(x))

    def forward(self, x: Any) -> Any:
        mask = self.mask(x.shape[1]) if self.mask else None
        seen = functional.scaled_dot_product_attention(
            *self.parts(x), attn_mask=mask, is_causal=mask is None
        )
        return self.joins(seen.transpose(1, 2).flatten(2))


class GatedUnits(nn.Module):
    """A feed-forward part with gates (SwiGLU)."""

    def __init__(self, width: int = 32, inner: int = 48) -> None:
        super().__init__()
        self.opens, self.raises = nn.Linear(width, inner), nn.Linear(width, inner)
        self.lowers = nn.Linear(inner, width)

    def forward(self, x: Any) -> Any:
        return self.lowers(functional.silu(self.opens(x)) * self.raises(x))


class Layer(nn.Module):
    """Attention and units, each of what was normalised, and added to it."""

    def __init__(
        self, attention: Any, units: Any, width: int = 32, drop: float = 0.0, norm: Any = nn.RMSNorm
    ) -> None:
        super().__init__()
        self.attention, self.units = attention, units
        self.first, self.second = norm(width), norm(width)
        self.drop = nn.Dropout(drop)

    def forward(self, x: Any) -> Any:
        x = x + self.drop(self.attention(self.first(x)))
        return x + self.drop(self.units(self.second(x)))


class CausalWriter(nn.Module):
    """Foresees the next words of texts."""

    def __init__(self, words: int, stack: list[Any], width: int = 32) -> None:
        super().__init__()
        self.words, self.stack = nn.Embedding(words, width), nn.ModuleList(stack)
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, x: Any) -> Any:
        x = self.words(x)
        for layer in self.stack:
            x = layer(x)
        return self.head(self.norm(x)).transpose(1, 2)


def foresees(model: Any, loss: Any) -> Callable[[Any, Any], Any]:
    """Return an objective: the loss of the next word of each."""
    return lambda batch, _: loss(model(batch[0][:, :-1]), batch[0][:, 1:])


class Experts(nn.Module):
    """Experts, of which a gate chooses `top_k` for each word.

    Parameters
    ----------
    gate
        Makes what returns the scores of experts.
    """

    def __init__(
        self, number: int = 6, top_k: int = 2, width: int = 32, gate: Any = None, inner: int = 24
    ) -> None:
        super().__init__()
        self.top_k = top_k
        self.gate = gate() if gate else nn.Linear(width, number, bias=False)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width))
            for _ in range(number)
        )
        self.scores: Any = None
        self.loads: Any = torch.zeros(number)

    def forward(self, x: Any) -> Any:
        self.scores = self.gate(x)
        best, which = self.scores.topk(self.top_k, -1)
        chosen = functional.one_hot(which, len(self.experts)).sum(-2)
        self.loads = chosen.flatten(0, -2).float().mean(0) / self.top_k
        chances = self.scores.softmax(-1)
        weights = chances if self.top_k == 1 else torch.zeros_like(chances)
        if self.top_k > 1:
            weights = weights.scatter(-1, which, best.softmax(-1))
        weights = weights * chosen
        parts = [expert(x) * weights[..., [at]] for at, expert in enumerate(self.experts)]
        return torch.stack(parts).sum(0)

    def unevenness(self) -> Any:
        """Return the Switch Transformer's loss, 1 if loads are equal."""
        chances = self.scores.softmax(-1).flatten(0, -2).mean(0)
        return len(self.experts) * (self.loads * chances).sum()


def unevenness(model: Any) -> Any:
    """Return the mean unevenness of a model's experts."""
    return torch.stack(
        [part.unevenness() for part in model.modules() if type(part) is Experts]
    ).mean()
