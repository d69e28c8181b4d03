"""Generated texts, and the transformers that read them."""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from training.learnt_data import Split

from runs_tuned.second_held_out.shared.tables import split

WORDS = 44  # 0 is padding
LENGTH = 20
DIGITS = 14  # 0 is padding, 1 begins, 2 ends, and numbers are 3 to 12; 13 hides a word


@functools.cache
def chatter(seed: int = 69, length: int = LENGTH, count: int = 1400) -> Split:
    """Return windows of words that follow each other by chance, and the words after each.

    A word is followed by one of four, of which the first is the most frequent; after word 1 comes
    the word that was said two words before.
    """
    rng = np.random.default_rng(seed)
    after = np.stack([rng.permutation(np.arange(1, WORDS)) for _ in range(4)], 1)
    words = [int(word) for word in rng.integers(2, WORDS, 3)]
    for draw in rng.choice(4, p=[0.6, 0.25, 0.1, 0.05], size=count * length + 1):
        words.append(words[-3] if words[-1] == 1 else int(after[words[-1] - 1, draw]))
    text = torch.tensor(words[3:]).unfold(0, length + 1, length)
    return split(text[:, :-1].contiguous(), text[:, 1:].contiguous(), 0.8)


@functools.cache
def padded(seed: int = 70, shortest: int = 10, count: int = 1400) -> Split:
    """Return windows of different lengths; what pads them is not to be learnt."""
    data = chatter(seed, LENGTH, count)
    generator = torch.Generator().manual_seed(seed)

    def cut(x: Any, y: Any) -> tuple[Any, Any]:
        length = torch.randint(shortest, LENGTH + 1, (len(x), 1), generator=generator)
        is_padding = torch.arange(LENGTH) >= length
        return x.masked_fill(is_padding, 0), y.masked_fill(is_padding, -100)

    return Split(*cut(data.x, data.y), *cut(data.test_x, data.test_y))


@functools.cache
def moods(count: int = 1000, longest: int = 16, seed: int = 72) -> Split:
    """Return padded reviews and whether, of praise and blame, there is more of the former."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((count, longest), np.int64)
    mood = np.zeros(count, np.int64)
    for at in range(count):
        words = rng.integers(1, WORDS, rng.integers(9, longest + 1))
        balance = (words < 9).sum() - ((words >= 9) & (words < 17)).sum()
        mood[at] = balance > 0 or (balance == 0 and words[0] % 2)
        rows[at, : len(words)] = words
    return split(rows, mood)


class CausalHeads(nn.Module):
    """Attention to earlier words, by a kernel of PyTorch; `mask` makes another mask than that."""

    def __init__(self, width: int, heads: int, mask: Callable[[int], Any] | None = None) -> None:
        super().__init__()
        self.heads, self.mask = heads, mask
        self.query_key_value = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        parts = self.query_key_value(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mask = self.mask(x.shape[1]) if self.mask else None
        seen = functional.scaled_dot_product_attention(
            *parts, attn_mask=mask, is_causal=mask is None
        )
        return self.out(seen.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """Attention and a feed-forward part, each after a norm, and both added."""

    def __init__(self, width: int, attention: Any, units: Any = None, drop: float = 0.0) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.dropout = attention, nn.Dropout(drop)
        self.units = units or nn.Sequential(
            nn.Linear(width, 3 * width), nn.GELU(), nn.Linear(3 * width, width)
        )

    def forward(self, x: Any) -> Any:
        x = x + self.dropout(self.attention(self.norm_1(x)))
        return x + self.dropout(self.units(self.norm_2(x)))


class Speaker(nn.Module):
    """A decoder of words, whose scores are those of its embedding."""

    def __init__(
        self,
        width: int = 32,
        layers: int = 2,
        *,
        attention: Callable[[], Any] | None = None,
        units: Callable[[], Any] | None = None,
        words: int = WORDS,
        drop: float = 0.0,
    ) -> None:
        super().__init__()
        self.word_embedding = nn.Embedding(words, width)
        self.places = nn.Parameter(0.05 * torch.randn(64, width))
        nn.init.normal_(self.word_embedding.weight, std=1 / math.sqrt(width))
        attention = attention or (lambda: CausalHeads(width, 4))
        self.layers = nn.ModuleList(
            Layer(width, attention(), units and units(), drop) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Any) -> Any:
        x = self.word_embedding(x) + self.places[: x.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return functional.linear(self.norm(x), self.word_embedding.weight).transpose(1, 2)


class Listener(nn.Module):
    """An encoder of padded words; a score of each class, from the mean of the words."""

    def __init__(
        self, classes: int = 2, width: int = 24, layers: int = 1, drop: float = 0.1
    ) -> None:
        super().__init__()
        self.word_embedding = nn.Embedding(WORDS, width, padding_idx=0)
        layer = nn.TransformerEncoderLayer(width, 4, 2 * width, drop, "gelu", batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Any) -> Any:
        is_padding = x == 0
        seen = self.encoder(self.word_embedding(x), src_key_padding_mask=is_padding)
        seen = seen.masked_fill(is_padding[..., None], 0.0).sum(1)
        return self.head(seen / (~is_padding).sum(1, keepdim=True))
