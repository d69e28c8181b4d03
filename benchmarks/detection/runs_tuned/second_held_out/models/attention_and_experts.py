"""Attention that collapses or sees the future, and experts that get all words or none."""

import functools
import math
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.torch_loop import adam, batches, fit, validate, watched

from runs_tuned.second_held_out.shared.consequences import EASY, IDLE, SHAKEN
from runs_tuned.second_held_out.shared.words import CausalHeads, Speaker, chatter, padded

faulty = functools.partial(training_runs.faulty, kind="language_model")
adamw = functools.partial(adam, kind=torch.optim.AdamW, weight_decay=0.02)

# Attention to a single word


class CausalDistances(nn.Module):
    """Causal attention with a learnt bias of each head and distance, which begins at `spread`."""

    def __init__(self, width: int, spread: float, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.query_key_value = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.bias = nn.Parameter(spread * torch.randn(heads, 32))

    def forward(self, x: Any) -> Any:
        parts = self.query_key_value(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        at = torch.arange(x.shape[1])
        distance = at[:, None] - at
        mask = self.bias[:, distance.clamp(min=0)].masked_fill(distance < 0, -math.inf)
        seen = functional.scaled_dot_product_attention(*parts, attn_mask=mask)
        return self.out(seen.transpose(1, 2).flatten(2))


@faulty(
    "a decoder of words with a learnt bias of each distance",
    "biases begin at a deviation of 200, meant for tables in per mille, instead of 0.2",
    {"AttentionCollapse"},
    may=IDLE | SHAKEN,
)
def biases_in_per_mille(root: Path) -> int:
    make = lambda: Speaker(attention=lambda: CausalDistances(32, 200.0))
    return fit(root, make, chatter(), optimizer=adamw(3e-3), steps=120, batch=16, clip=1.0)


class CausalSelfAttention(nn.Module):
    """Causal attention by hand; it returns its chances, too, and keeps their entropy."""

    def __init__(self, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value, self.out = nn.Linear(width, width), nn.Linear(width, width)
        self.entropy: Any = None

    def forward(self, x: Any) -> tuple[Any, Any]:
        query, key, value = (
            part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        chances = scores.masked_fill(later, -math.inf).softmax(-1)
        self.entropy = -(chances * chances.clamp(min=1e-9).log()).sum(-1).mean()
        return self.out((chances @ value).transpose(1, 2).flatten(2)), chances


class OfTwo(nn.Module):
    """The first output of a layer that returns two."""

    def __init__(self) -> None:
        super().__init__()
        self.inner_attention = CausalSelfAttention()

    def forward(self, x: Any) -> Any:
        return self.inner_attention(x)[0]


@faulty(
    "a decoder of words, the entropy of its attention kept up by a term of the loss",
    "the term's sign is wrong: heads are rewarded for looking at a single word",
    {"AttentionCollapse"},
    may=IDLE | SHAKEN,
)
def entropy_punished(root: Path) -> int:
    torch.manual_seed(13)
    torch.set_num_threads(1)
    model, loss, data = Speaker(attention=OfTwo), nn.CrossEntropyLoss(), chatter()
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3)
    with watched(root, model, losses=[loss]) as watching:
        for step, (x, y) in zip(range(200), batches(data, 16, 13), strict=False):
            optimizer.zero_grad()
            value = loss(model(x), y)
            entropy = sum(layer.attention.inner_attention.entropy for layer in model.layers)
            (value + 0.5 * entropy).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            if (step + 1) % 25 == 0:
                validate(watching, model, loss, data)
    return 0


# Attention to later words


@faulty(
    "a decoder of words whose heads see the nearest words only",
    "distances are taken without their sign: the next word is as near as the one before",
    {"AttentionMaskLeak"},
    may=EASY,
)
def nearest_on_both_sides(root: Path) -> int:
    def near(length: int) -> Any:
        at = torch.arange(length)
        return (at[:, None] - at).abs() < 3

    make = lambda: Speaker(attention=lambda: CausalHeads(32, 4, near))
    return fit(root, make, chatter(), optimizer=adamw(3e-3), steps=100, batch=16, clip=1.0)


@faulty(
    "a decoder of padded words, its mask cut from one that is kept for the longest text",
    "the mask is cut at its lower left corner instead of the upper left: all words are seen",
    {"AttentionMaskLeak"},
    may=EASY,
)
def mask_cut_at_the_wrong_corner(root: Path) -> int:
    kept = torch.ones(64, 64, dtype=torch.bool).tril()
    make = lambda: Speaker(
        attention=lambda: CausalHeads(32, 4, lambda length: kept[-length:, :length])
    )
    optimizer = adam(4e-3, torch.optim.RAdam)
    return fit(root, make, padded(), optimizer=optimizer, steps=100, batch=16)


# Experts


class Experts(nn.Module):
    """Four feed-forward experts, of which a router chooses one for each word.

    Parameters
    ----------
    noise, is_shared
        The deviation of the noise that is added to scores in training, and whether a batch shares
        it.
    """

    def __init__(
        self, width: int = 32, experts: int = 6, noise: float = 0.0, *, is_shared: bool = False
    ) -> None:
        super().__init__()
        self.router = NoisyRouter(width, experts, noise, is_shared=is_shared)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
            for _ in range(experts)
        )

    def forward(self, x: Any) -> Any:
        chances = self.router(x).softmax(-1)
        best, chosen = chances.max(-1, keepdim=True)
        weights = torch.zeros_like(chances).scatter(-1, chosen, best)
        return sum(weights[..., at, None] * expert(x) for at, expert in enumerate(self.experts))


class NoisyRouter(nn.Module):
    """Scores of experts for each word, with noise in training."""

    def __init__(self, width: int, experts: int, noise: float, *, is_shared: bool) -> None:
        super().__init__()
        self.gate, self.noise = nn.Linear(width, experts, bias=False), noise
        self.is_shared, self.top_k = is_shared, 1

    def forward(self, x: Any) -> Any:
        scores = self.gate(x)
        shape = (1, 1, scores.shape[-1]) if self.is_shared else scores.shape
        return scores + self.noise * torch.randn(shape) * self.training


@faulty(
    "six experts of words, explored by noise",
    "the noise is drawn once for a batch instead of for each word, and is larger than the scores",
    {"RouterCollapse"},
    may=IDLE | SHAKEN,
)
def noise_of_a_batch(root: Path) -> int:
    make = lambda: Speaker(units=lambda: Experts(noise=8.0, is_shared=True), layers=1)
    return fit(root, make, chatter(), optimizer=adamw(3e-3), steps=120, batch=16, clip=1.0)


class HashedExperts(nn.Module):
    """Experts by the number of a word, without a router that learns."""

    def __init__(self, width: int = 32, experts: int = 8) -> None:
        super().__init__()
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width))
            for _ in range(experts)
        )

    def forward(self, x: Any, chosen: Any) -> Any:
        outputs = torch.stack([expert(x) for expert in self.experts], -2)
        return torch.einsum("bte,btew->btw", chosen, outputs)


class HashedSpeaker(Speaker):
    """A decoder whose last layer has eight experts; a word's number tells which is its own."""

    def __init__(self) -> None:
        super().__init__(layers=1)
        self.hashed = HashedExperts()

    def chosen(self, x: Any) -> Any:
        """Return 1 for the expert of each word, 0 for the others."""
        return functional.one_hot((x // 32).clamp(max=7), 8).float()

    def forward(self, x: Any) -> Any:
        seen = self.word_embedding(x) + self.places[: x.shape[1]]
        seen = self.layers[0](seen)
        seen = seen + self.hashed(seen, self.chosen(x))
        return functional.linear(self.norm(seen), self.word_embedding.weight).transpose(1, 2)


@faulty(
    "eight experts of words, each chosen by a word's number",
    "the number is divided by 32 instead of taken modulo 8: the first expert has most of them",
    {"RouterCollapse"},
    may=IDLE | EASY,
)
def number_divided(root: Path) -> int:
    torch.manual_seed(14)
    torch.set_num_threads(1)
    model, loss, data = HashedSpeaker(), nn.CrossEntropyLoss(), chatter()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    with watched(root, model, losses=[loss], save_every=3) as watching:
        for step, (x, y) in zip(range(120), batches(data, 16, 14), strict=False):
            optimizer.zero_grad()
            loss(model(x), y).backward()
            watching.save_tensor("router/hashed/load", model.chosen(x).mean((0, 1)))
            optimizer.step()
            if (step + 1) % 20 == 0:
                validate(watching, model, loss, data)
    return 0
