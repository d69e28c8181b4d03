"""Readers: attention, experts, and the decoders and encoders that are made of them."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional


def waves_of_places(length: int, width: int) -> Any:
    """Return sines and cosines of places."""
    speed = (-math.log(1000.0) * torch.arange(0, width, 2) / width).exp()
    angle = torch.arange(length)[:, None] * speed
    return torch.cat([angle.sin(), angle.cos()], 1)


class SelfAttention(nn.Module):
    """Attention of groups of queries to shared keys; causal unless a mask says otherwise.

    Parameters
    ----------
    mask
        Returns the mask of a length; None for one of earlier words, "all" for none.
    is_normed
        Whether queries and keys are normalised.
    """

    def __init__(
        self,
        width: int = 32,
        heads: int = 4,
        pairs: int = 0,
        mask: Callable[[int], Any] | str | None = None,
        *,
        is_normed: bool = False,
    ) -> None:
        super().__init__()
        self.heads, self.pairs, self.mask = heads, pairs or heads, mask
        size = width // heads
        self.to_q = nn.Linear(width, width, bias=False)
        self.to_kv = nn.Linear(width, 2 * size * self.pairs, bias=False)
        self.to_out = nn.Linear(width, width, bias=False)
        norm = (lambda: nn.LayerNorm(size)) if is_normed else nn.Identity
        self.norm_q, self.norm_k = norm(), norm()

    def parts(self, x: Any) -> tuple[Any, Any, Any]:
        """Return queries, keys and values by heads."""
        query = self.to_q(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        key, value = (
            part.unflatten(-1, (self.pairs, -1)).transpose(1, 2)
            for part in self.to_kv(x).chunk(2, -1)
        )
        return self.norm_q(query), self.norm_k(key), value

    def forward(self, x: Any, hidden: Any = None) -> Any:
        query, key, value = self.parts(x)
        mask = self.mask(x.shape[1]) if callable(self.mask) else None
        if hidden is not None:
            mask = ~hidden[:, None, None, :]
        seen = functional.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=mask,
            is_causal=self.mask is None,
            enable_gqa=self.pairs != self.heads,
        )
        return self.to_out(seen.transpose(1, 2).flatten(2))


class Crossed(nn.Module):
    """Attention of a text to another one."""

    def __init__(self, width: int = 32, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.ask, self.tell = nn.Linear(width, width), nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)

    def split(self, x: Any, read: Any) -> list[Any]:
        """Return queries, keys and values by heads."""
        parts = (self.ask(x), *self.tell(read).chunk(2, -1))
        return [part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts]

    def forward(self, x: Any, read: Any, is_padding: Any) -> Any:
        mask = ~is_padding[:, None, None, :]
        seen = functional.scaled_dot_product_attention(*self.split(x, read), attn_mask=mask)
        return self.out(seen.transpose(1, 2).flatten(2))


def forward_part(width: int = 32, act: Any = nn.GELU) -> Any:
    """Return a feed-forward part of a block."""
    return nn.Sequential(nn.Linear(width, 2 * width), act(), nn.Linear(2 * width, width))


class Block(nn.Module):
    """Attention and a feed-forward part, each after a norm and added to what was there."""

    def __init__(self, attention: Any, units: Any, width: int = 32, drop: float = 0.0) -> None:
        super().__init__()
        self.attention, self.units = attention, units
        self.norm_a, self.norm_u = nn.LayerNorm(width), nn.LayerNorm(width)
        self.drop = nn.Dropout(drop)

    def forward(self, x: Any, **more: Any) -> Any:
        x = x + self.drop(self.attention(self.norm_a(x), **more))
        return x + self.drop(self.units(self.norm_u(x)))


class CausalDecoder(nn.Module):
    """Words and places, blocks, and scores of the next words by the same vectors."""

    def __init__(self, words: int, blocks: list[Any], width: int = 32) -> None:
        super().__init__()
        self.words, self.blocks = nn.Embedding(words, width), nn.ModuleList(blocks)
        self.norm, self.width = nn.LayerNorm(width), width
        nn.init.normal_(self.words.weight, std=0.3)

    def forward(self, x: Any, **more: Any) -> Any:
        x = self.words(x) + 0.3 * waves_of_places(x.shape[1], self.width)
        for block in self.blocks:
            x = block(x, **more)
        return (self.norm(x) @ self.words.weight.T).transpose(1, 2)


class TextEncoder(CausalDecoder):
    """The same with attention to all words, and scores of kinds or of words."""

    def __init__(self, words: int, blocks: list[Any], outs: int, width: int = 32) -> None:
        super().__init__(words, blocks, width)
        self.head = nn.Linear(width, outs)

    def forward(self, x: Any, **more: Any) -> Any:
        x = self.words(x) + 0.3 * waves_of_places(x.shape[1], self.width)
        for block in self.blocks:
            x = block(x, **more)
        return self.head(self.norm(x)).transpose(1, 2)


class Mixture(nn.Module):
    """Experts, of which a router chooses some for each word.

    Parameters
    ----------
    router
        Makes what returns the scores of experts.
    """

    def __init__(
        self, experts: int = 6, top_k: int = 2, width: int = 32, router: Any = None
    ) -> None:
        super().__init__()
        self.top_k = top_k
        self.gate = router() if router else nn.Linear(width, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 24), nn.SiLU(), nn.Linear(24, width))
            for _ in range(experts)
        )
        self.uneven: Any = torch.zeros(())
        self.scores: Any = None

    def choose(self, scores: Any) -> Any:
        """Return weights of all experts."""
        best, which = scores.topk(self.top_k, -1)
        kept = torch.full_like(scores, -math.inf).scatter(-1, which, best)
        chances = scores.softmax(-1)
        used = (kept > -math.inf).float().mean((0, 1)) / self.top_k
        self.uneven = len(self.experts) * (used * chances.mean((0, 1))).sum()
        weights = kept.softmax(-1)
        return weights * chances if self.top_k == 1 else weights

    def forward(self, x: Any) -> Any:
        self.scores = self.gate(x)
        weights = self.choose(self.scores)
        return sum(
            weights[..., number, None] * expert(x) for number, expert in enumerate(self.experts)
        )


def uneven(model: Any) -> Any:
    """Return how uneven the loads of a model's experts are, 1 if they are even."""
    return torch.stack([one.uneven for one in model.modules() if isinstance(one, Mixture)]).mean()


class Translator(nn.Module):
    """An encoder of a text and a decoder of another one."""

    def __init__(self, signs: int, width: int = 32, depth: int = 1, drop: float = 0.0) -> None:
        super().__init__()
        self.reads, self.writes = nn.Embedding(signs, width), nn.Embedding(signs, width)
        self.reader = nn.ModuleList(
            Block(SelfAttention(width, mask="all"), forward_part(width), width, drop)
            for _ in range(depth)
        )
        self.writer = nn.ModuleList(
            Block(SelfAttention(width), forward_part(width), width, drop) for _ in range(depth)
        )
        self.crossed = nn.ModuleList(Crossed(width) for _ in range(depth))
        self.norm, self.head, self.width = nn.LayerNorm(width), nn.Linear(width, signs), width

    def read(self, source: Any) -> Any:
        """Return what is known of a source."""
        x = self.reads(source) + waves_of_places(source.shape[1], self.width)
        for block in self.reader:
            x = block(x, hidden=source == 0)
        return x

    def forward(self, source: Any, target: Any) -> Any:
        known = self.read(source)
        x = self.writes(target) + waves_of_places(target.shape[1], self.width)
        for block, crossed in zip(self.writer, self.crossed, strict=True):
            x = block(x)
            x = x + crossed(x, known, source == 0)
        return self.head(self.norm(x)).transpose(1, 2)
