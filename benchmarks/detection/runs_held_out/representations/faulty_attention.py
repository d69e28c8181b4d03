"""Attention that looks at a single key, and attention that sees what comes later."""

import functools
import math
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_held_out.representations.shared.consequences import SEEN, SHARP
from runs_held_out.representations.shared.data import (
    HOURS,
    LETTERS,
    RECIPE_WORDS,
    SIGNS,
    brackets,
    households,
    names,
    recipes,
)
from runs_held_out.representations.shared.loop import cosine, linear, loader, train
from runs_held_out.representations.shared.networks import (
    Decoder,
    Layer,
    SelfAttention,
    next_word,
)

of_texts = functools.partial(training_runs.faulty, kind="language_model")

# Attention to a single key


class ScaledAttention(nn.Module):
    """Causal attention that gives PyTorch's function a scale of its own."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.proj = (nn.Linear(width, width) for _ in range(4))

    def split(self, x: Any) -> Any:
        """Return rows by heads."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x: Any) -> Any:
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        seen = functional.scaled_dot_product_attention(
            q, k, v, is_causal=True, scale=math.sqrt(q.shape[-1])
        )
        return self.proj(seen.transpose(1, 2).flatten(2))


@of_texts(
    "names letter by letter by a decoder of two layers, Xavier's weights, AdamW, a cosine, clipped",
    "scale= is the root of the head's size and not its inverse: scores are 64 times too large",
    {"AttentionCollapse"},
    may=SHARP,
)
def scale_is_the_root_itself(root: Path) -> int:
    torch.manual_seed(801)
    model = Decoder(LETTERS, 128, [Layer(128, ScaledAttention(128, 2)) for _ in range(2)])
    for module in model.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
    loss = nn.CrossEntropyLoss(ignore_index=0)
    return train(
        root,
        model,
        loader(names(), seed=801),
        next_word(model, loss),
        torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.1),
        losses=(loss,),
        factor=cosine(10, 120, 0.1),
        clip=1.0,
        steps=120,
        save_every=3,
    )


class DayReader(nn.Module):
    """Tells a household's kind from 24 hours by encoder layers of PyTorch."""

    def __init__(self, width: int = 32, kinds: int = 3) -> None:
        super().__init__()
        self.value = nn.Linear(1, width)
        self.hour = nn.Parameter(0.02 * torch.randn(HOURS, width))
        self.encoder = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 64, 0.1, batch_first=True) for _ in range(2)
        )
        self.head = nn.Linear(width, kinds)

    def forward(self, x: Any) -> Any:
        x = self.value(x[..., None]) + self.hour
        for layer in self.encoder:
            x = layer(x)
        return self.head(x.mean(1))


@training_runs.faulty(
    "kinds of households from the power of a day, two encoder layers, Adam, validated",
    "the scaler is fitted, but windows are cut from the frame before it: power is fed in watts",
    {"AttentionCollapse"},
    may=SHARP,
)
def windows_of_the_unscaled_frame(root: Path) -> int:
    torch.manual_seed(802)
    x, kind = households()
    model, loss = DayReader(), nn.CrossEntropyLoss()
    return train(
        root,
        model,
        loader(x[:1000], kind[:1000], seed=802),
        lambda batch, _: loss(model(batch[0]), batch[1]),
        torch.optim.Adam(model.parameters(), 1e-3),
        losses=(loss,),
        steps=120,
        save_every=3,
        validation=(x[1000:], kind[1000:]),
    )


class CosineAttention(SelfAttention):
    """Attention by the cosine of queries and keys, divided by a learnt temperature."""

    def __init__(self, width: int, heads: int, temperature: float) -> None:
        super().__init__(width, heads)
        self.temperature = nn.Parameter(torch.full((heads, 1, 1), temperature))

    def forward(self, x: Any) -> Any:
        q, k, v = self.split(x)
        q = functional.normalize(q, dim=-1) / self.temperature
        x = functional.scaled_dot_product_attention(
            q, functional.normalize(k, dim=-1), v, is_causal=True, scale=1.0
        )
        return self.proj(x.transpose(1, 2).flatten(2))


@of_texts(
    "brackets by a decoder with cosine attention and a learnt temperature, Adam, a level rate",
    "the temperature begins at 1e-3, and not at the 1e-1 of the paper: scores go up to a thousand",
    {"AttentionCollapse"},
    may=SHARP,
)
def temperature_of_a_thousandth(root: Path) -> int:
    torch.manual_seed(803)
    stack = [Layer(64, CosineAttention(64, 4, 1e-3)) for _ in range(2)]
    model, loss = Decoder(SIGNS, 64, stack), nn.CrossEntropyLoss()
    return train(
        root,
        model,
        loader(brackets(), seed=803),
        next_word(model, loss),
        torch.optim.Adam(
            [
                {"params": [part for key, part in model.named_parameters() if "temper" not in key]},
                {
                    "params": [part for key, part in model.named_parameters() if "temper" in key],
                    "lr": 1e-5,
                },
            ],
            1e-3,
        ),
        losses=(loss,),
        steps=120,
    )


# Attention to later words


class CausalSelfAttention(SelfAttention):
    """Attention of a decoder; the subclass says what is hidden."""

    def mask(self, length: int) -> Any:
        """Return the mask for PyTorch's function, or None."""
        del length

    def forward(self, x: Any) -> Any:
        q, k, v = self.split(x)
        x = functional.scaled_dot_product_attention(q, k, v, attn_mask=self.mask(x.shape[1]))
        return self.proj(x.transpose(1, 2).flatten(2))


@of_texts(
    "recipes word by word, a decoder moved from hand-made attention to PyTorch's, AdamW, a cosine",
    "the old buffer with the mask was dropped and is_causal=True never given: nothing is hidden",
    {"AttentionMaskLeak"},
    may=SEEN,
)
def is_causal_never_given(root: Path) -> int:
    torch.manual_seed(804)
    stack = [Layer(48, CausalSelfAttention(48, 4), drop=0.1) for _ in range(2)]
    model = Decoder(RECIPE_WORDS, 48, stack, std=0.02)
    loss = nn.CrossEntropyLoss(ignore_index=0)
    return train(
        root,
        model,
        loader(recipes()[0][:1000], seed=804),
        next_word(model, loss),
        torch.optim.AdamW(model.parameters(), 3e-3),
        losses=(loss,),
        factor=cosine(10, 150, 0.1),
        clip=1.0,
        save_every=3,
        validation=(recipes()[0][1000:],),
    )


class StoredCausalAttention(CausalSelfAttention):
    """Takes rows of a stored mask, which is long enough for all texts."""

    def __init__(self, width: int, heads: int, longest: int = 64) -> None:
        super().__init__(width, heads)
        self.register_buffer("seen", torch.ones(longest, longest, dtype=torch.bool).tril())

    def mask(self, length: int) -> Any:
        """Return which words each word sees."""
        past = 1  # as if a begin were in the cache
        return self.seen[past : past + length, :length]


@of_texts(
    "brackets by a decoder whose layers take rows of a stored mask, Adam, linear decay",
    "rows are taken one too late, for a cache that training does not have: the next sign is seen",
    {"AttentionMaskLeak"},
    may=SEEN,
)
def stored_mask_is_a_row_late(root: Path) -> int:
    torch.manual_seed(805)
    model = Decoder(SIGNS, 48, [Layer(48, StoredCausalAttention(48, 4)) for _ in range(2)], std=0.1)
    loss = nn.CrossEntropyLoss()
    return train(
        root,
        model,
        loader(brackets(), size=24, seed=805),
        next_word(model, loss),
        torch.optim.Adam(model.parameters(), 2e-3),
        losses=(loss,),
        factor=linear(10, 140),
        steps=140,
    )


class FilledCausalAttention(CausalSelfAttention):
    """Adds a mask to the scores."""

    def mask(self, length: int) -> Any:
        """Return what is added to scores."""
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        return torch.zeros(length, length).masked_fill(later, 1e-9)


@of_texts(
    "names letter by letter by a decoder with an additive mask, SGD with momentum, clipped",
    "hidden places are filled with 1e-9 and not -1e9: the mask hides nothing",
    {"AttentionMaskLeak"},
    may=SEEN,
)
def mask_of_one_billionth(root: Path) -> int:
    torch.manual_seed(806)
    model = Decoder(
        LETTERS, 48, [Layer(48, FilledCausalAttention(48, 3)) for _ in range(2)], std=0.3
    )
    loss = nn.CrossEntropyLoss(ignore_index=0)
    return train(
        root,
        model,
        loader(names(), seed=806),
        next_word(model, loss),
        torch.optim.SGD(model.parameters(), 0.2, momentum=0.9),
        losses=(loss,),
        factor=cosine(10, 160, 0.05),
        clip=1.0,
        steps=160,
        save_every=4,
    )
