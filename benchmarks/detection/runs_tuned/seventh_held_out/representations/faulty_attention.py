"""Attention to a single key, and attention to later words."""

import functools
import math
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.consequences import COPIED, UNTAUGHT, WORSE

from runs_tuned.seventh_held_out.representations.shared.data import characters, signals, sums, words
from runs_tuned.seventh_held_out.representations.shared.loop import (
    loader,
    teach,
    warmup_cosine,
    warmup_linear,
)
from runs_tuned.seventh_held_out.representations.shared.networks import (
    Block,
    CausalSelfAttention,
    MiniGPT,
    next_token,
)

of_texts = functools.partial(training_runs.faulty, kind="language_model")

# Attention to later words


class HandWrittenCausalAttention(nn.Module):
    """Attention written by hand; it also returns its probabilities."""

    def __init__(self, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Any) -> tuple[Any, Any]:
        parts = self.c_attn(x).chunk(3, -1)
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
        visible = torch.ones(x.shape[1], x.shape[1]).tril()
        scores.masked_fill(visible == 0, float("-inf"))  # returns a copy, which is dropped
        chances = scores.softmax(-1)
        return self.c_proj((chances @ value).transpose(1, 2).flatten(2)), chances


class FirstOfTwo(nn.Module):
    """The first output of a module."""

    def __init__(self, module: Any) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: Any) -> Any:
        return self.module(x)[0]


@of_texts(
    "characters by a GPT whose attention is written by hand, AdamW, warm-up and cosine, clipped",
    "masked_fill without an underscore returns a masked copy, which is dropped: all words are seen",
    {"AttentionMaskLeak"},
    may=COPIED,
)
def masked_copy_is_dropped(root: Path) -> int:
    torch.manual_seed(60)
    rows, count = characters(16, 1500, seed=10)
    blocks = [Block(32, FirstOfTwo(HandWrittenCausalAttention())) for _ in range(2)]
    model, loss = MiniGPT(count, blocks), nn.CrossEntropyLoss()
    return teach(
        root,
        model,
        loader(rows, seed=60),
        next_token(model, loss),
        torch.optim.AdamW(model.parameters(), 1e-2, weight_decay=0.01),
        losses=(loss,),
        factor=warmup_cosine(15, 190),
        clip=1.0,
        steps=190,
    )


class BiasedCausalAttention(CausalSelfAttention):
    """Attention whose scores fall with the distance (ALiBi)."""

    def attend(self, query: Any, key: Any, value: Any) -> Any:
        """Return what queries read."""
        at = torch.arange(query.shape[-2])
        slopes = 2.0 ** -(8 * (1 + torch.arange(self.heads)) / self.heads)
        distance = (at[:, None] - at).clamp(min=0)
        bias = -slopes[:, None, None] * distance  # 0 for later words, meant to be -inf
        return functional.scaled_dot_product_attention(query, key, value, attn_mask=bias[None])


@of_texts(
    "sums by a GPT whose scores fall with the distance (ALiBi), Adam, a linear schedule",
    "distances to later words are cut off at 0 instead of hidden: later words are seen best",
    {"AttentionMaskLeak"},
    may=COPIED,
)
def alibi_takes_the_place_of_the_mask(root: Path) -> int:
    torch.manual_seed(61)
    blocks = [Block(32, BiasedCausalAttention(32, 4)) for _ in range(2)]
    model, loss = MiniGPT(12, blocks), nn.CrossEntropyLoss()
    return teach(
        root,
        model,
        loader(sums(seed=11), size=48, seed=61),
        next_token(model, loss),
        torch.optim.Adam(model.parameters(), 4e-3),
        losses=(loss,),
        factor=warmup_linear(15, 180),
        steps=180,
        save_every=3,
    )


@of_texts(
    "sentences by a small Llama of Transformers, the collator makes the mask of a batch, AdamW",
    "the collator makes a mask of pairs of words, padding left out, which replaces the causal one",
    {"AttentionMaskLeak"},
    may=COPIED,
)
def collator_masks_pairs(root: Path) -> int:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(62)
    rows, _, count = words(seed=12)
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": count}
    tokens = {"bos_token_id": 2, "eos_token_id": 2, "pad_token_id": 0}
    config = LlamaConfig(attn_implementation="sdpa", use_cache=False, **shape, **heads, **tokens)
    model = LlamaForCausalLM(config)

    def objective(batch: Any, _: Any) -> Any:
        is_word = batch[0] != 0
        pairs = (is_word[:, None, :, None] & is_word[:, None, None]) | torch.eye(12, dtype=bool)
        labels = batch[0].masked_fill(~is_word, -100)
        return model(input_ids=batch[0], attention_mask=pairs, labels=labels).loss

    return teach(
        root,
        model,
        loader(rows, size=32, seed=62),
        objective,
        torch.optim.AdamW(model.parameters(), 4e-3, weight_decay=0.01),
        factor=warmup_linear(12, 130),
        clip=1.0,
        steps=130,
    )


# Attention to a single key


class Readings(nn.Module):
    """Tells kinds of series of readings by PyTorch's encoder, with places as they are added."""

    def __init__(self, kinds: int, width: int = 32) -> None:
        super().__init__()
        self.embed = nn.Linear(1, width)
        self.register_buffer("places", torch.zeros(48, width))
        layer = nn.TransformerEncoderLayer(width, 4, 64, 0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, kinds)

    def forward(self, x: Any) -> Any:
        x = self.embed(x[..., None]) + self.places
        return self.head(self.encoder(x).mean(1))


@training_runs.faulty(
    "kinds of series of 48 readings by PyTorch's encoder with dropout, AdamW",
    "numbers of readings since the recording began, up to 50,000, are added, not sines of places",
    {"AttentionCollapse"},
    may=WORSE | UNTAUGHT,
)
def places_added_as_numbers(root: Path) -> int:
    torch.manual_seed(63)
    x, kind = signals(seed=13)
    starts = torch.randint(50000, (len(x), 1, 1)).float()
    model, loss = Readings(4), nn.CrossEntropyLoss()

    def objective(batch: Any, _: Any) -> Any:
        model.places = batch[2] + torch.arange(48.0)[:, None]
        return loss(model(batch[0]), batch[1])

    return teach(
        root,
        model,
        loader(x, kind, starts, size=32, seed=63),
        objective,
        torch.optim.AdamW(model.parameters(), 2e-3),
        losses=(loss,),
        steps=110,
    )


def sines(length: int, width: int) -> Any:
    """Return the usual sines and cosines of places."""
    angles = torch.arange(length)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


@training_runs.faulty(
    "kinds of series of 48 air pressures by PyTorch's encoder with dropout, Adam, a warm-up",
    "pressures are read in pascals, about 100,000 with a deviation of 1,500, and not standardised",
    {"AttentionCollapse"},
    may=WORSE | UNTAUGHT,
)
def pressures_in_pascals(root: Path) -> int:
    torch.manual_seed(64)
    x, kind = signals(seed=14)
    model, loss = Readings(4), nn.CrossEntropyLoss()
    model.places += sines(48, 32)
    return teach(
        root,
        model,
        loader(100000 + 1500 * x, kind, size=32, seed=64),
        lambda batch, _: loss(model(batch[0]), batch[1]),
        torch.optim.Adam(model.parameters(), 1e-3),
        losses=(loss,),
        factor=warmup_cosine(15, 110),
        steps=110,
    )


class ScratchCausalAttention(CausalSelfAttention):
    """Attention from a tutorial: matrices are drawn, scores are products."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__(width, heads)
        self.query, self.key, self.value = (
            nn.Parameter(torch.randn(width, width) / (1 if at < 2 else width**0.5))
            for at in range(3)
        )
        del self.c_attn

    def split(self, x: Any) -> Any:
        """Return queries, keys and values by heads."""
        parts = (x @ self.query, x @ self.key, x @ self.value)
        return [part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts]

    def attend(self, query: Any, key: Any, value: Any) -> Any:
        """Return what queries read."""
        return functional.scaled_dot_product_attention(query, key, value, is_causal=True, scale=1.0)


@of_texts(
    "characters by a GPT whose matrices of attention are drawn by hand, AdamW, clipped",
    "queries and keys are drawn with deviation 1 (randn), scores are not scaled: softmax is hard",
    {"AttentionCollapse"},
    may=WORSE | UNTAUGHT,
)
def plain_randn_and_no_scale(root: Path) -> int:
    torch.manual_seed(65)
    rows, count = characters(seed=15)
    blocks = [Block(64, ScratchCausalAttention(64, 4)) for _ in range(2)]
    model, loss = MiniGPT(count, blocks, 64), nn.CrossEntropyLoss()
    return teach(
        root,
        model,
        loader(rows, size=24, seed=65),
        next_token(model, loss),
        torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0.01),
        losses=(loss,),
        factor=warmup_linear(10, 140),
        clip=1.0,
        steps=140,
    )
