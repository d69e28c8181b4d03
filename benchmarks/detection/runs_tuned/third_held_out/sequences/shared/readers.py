"""Readers: the networks that read and write sequences."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional


def rotated(x: Any) -> Any:
    """Return queries or keys turned by their positions."""
    half = x.shape[-1] // 2
    speed = 100.0 ** (-torch.arange(half) / half)
    angle = torch.arange(x.shape[-2])[:, None] * speed
    first, second = x.chunk(2, -1)
    return torch.cat(
        [first * angle.cos() - second * angle.sin(), first * angle.sin() + second * angle.cos()], -1
    )


class Heads(nn.Module):
    """Attention with turned queries and keys, by a kernel of PyTorch.

    Parameters
    ----------
    mask
        Returns what a row of a length may see; earlier words alone, by default.
    scale
        Multiplies queries and keys before they meet.
    """

    def __init__(
        self,
        width: int = 32,
        heads: int = 4,
        mask: Callable[[int], Any] | None = None,
        drop: float = 0.0,
    ) -> None:
        super().__init__()
        self.heads, self.mask, self.drop = heads, mask, drop
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value, self.out = nn.Linear(width, width), nn.Linear(width, width)

    def scaled(self, query: Any) -> Any:
        """Return queries as they are to be compared with keys."""
        return query

    def forward(self, x: Any) -> Any:
        query, key, value = (
            part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        mask = self.mask(x.shape[1]) if self.mask else None
        seen = functional.scaled_dot_product_attention(
            self.scaled(rotated(query)),
            rotated(key),
            value,
            attn_mask=mask,
            dropout_p=self.drop if self.training else 0.0,
            is_causal=mask is None,
        )
        return self.out(seen.transpose(1, 2).flatten(2))


class Gated(nn.Module):
    """A feed-forward part with gates."""

    def __init__(self, width: int = 32, inner: int = 64) -> None:
        super().__init__()
        self.up, self.gates = nn.Linear(width, inner), nn.Linear(width, inner)
        self.down = nn.Linear(inner, width)

    def forward(self, x: Any) -> Any:
        return self.down(functional.silu(self.gates(x)) * self.up(x))


class Layer(nn.Module):
    """A mixing and a feed-forward part, each after an RMS norm, and both added."""

    def __init__(self, mixer: Any, units: Any, width: int = 32, drop: float = 0.0) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.mixer, self.units, self.dropout = mixer, units, nn.Dropout(drop)

    def forward(self, x: Any) -> Any:
        x = x + self.dropout(self.mixer(self.norm_1(x)))
        return x + self.dropout(self.units(self.norm_2(x)))


class Writer(nn.Module):
    """Layers between an embedding and scores of words, ``(n, words, length)``."""

    def __init__(
        self,
        words: int,
        *,
        layers: int = 2,
        width: int = 32,
        mixer: Callable[[], Any] | None = None,
        units: Callable[[], Any] = Gated,
        drop: float = 0.0,
        outs: int = 0,
    ) -> None:
        super().__init__()
        mixer = mixer or (lambda: Heads(width))
        self.embed_tokens = nn.Embedding(words, width)
        self.layers = nn.ModuleList(Layer(mixer(), units(), width, drop) for _ in range(layers))
        self.norm, self.scores = nn.RMSNorm(width), nn.Linear(width, outs or words, bias=False)

    def hidden(self, x: Any) -> Any:
        """Return the states of all positions."""
        x = self.embed_tokens(x)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)

    def forward(self, x: Any) -> Any:
        return self.scores(self.hidden(x)).transpose(1, 2)


class Selective(nn.Module):
    """A state space whose decay and inputs depend on the word, step by step."""

    def __init__(self, width: int = 32, states: int = 4) -> None:
        super().__init__()
        self.short = nn.Conv1d(width, width, 3, padding=2, groups=width)
        self.steps = nn.Linear(width, width)
        self.ins, self.outs = nn.Linear(width, states), nn.Linear(width, states)
        self.A_log = nn.Parameter(torch.arange(1.0, states + 1).log().repeat(width, 1))
        self.D, self.out = nn.Parameter(torch.ones(width)), nn.Linear(width, width)
        nn.init.constant_(self.steps.bias, -2.0)

    def forward(self, x: Any) -> Any:
        x = functional.silu(self.short(x.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2))
        step, ins, outs = functional.softplus(self.steps(x)), self.ins(x), self.outs(x)
        decay = (-self.A_log.exp() * step[..., None]).exp()
        added = (step * x)[..., None] * ins[:, :, None]
        state, states = torch.zeros_like(added[:, 0]), []
        for at in range(x.shape[1]):
            state = decay[:, at] * state + added[:, at]
            states.append((state * outs[:, at, None]).sum(-1))
        return self.out(torch.stack(states, 1) + self.D * x)


class Retention(nn.Module):
    """Linear attention with a decay of each head."""

    def __init__(self, width: int = 32, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.projections, self.out = nn.Linear(width, 4 * width), nn.Linear(width, width)
        self.norm = nn.GroupNorm(heads, width)

    def forward(self, x: Any) -> Any:
        query, key, value, gate = self.projections(x).chunk(4, -1)
        query, key, value = (
            part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (query, key, value)
        )
        at = torch.arange(x.shape[1])
        distance = (at[:, None] - at).clamp(min=0)
        decay = (1 - 2.0 ** -torch.arange(1, self.heads + 1))[:, None, None] ** distance
        shares = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1]) * decay.tril()
        mixed = (shares @ value).transpose(1, 2).flatten(2)
        mixed = self.norm(mixed.flatten(0, 1)).view_as(x)
        return self.out(functional.silu(gate) * mixed)


class Spelling(nn.Module):
    """An encoder and a decoder of transformers' first kind, norms after; scores of letters."""

    def __init__(self, letters: int, width: int = 32, layers: int = 1, drop: float = 0.0) -> None:
        super().__init__()
        self.source_embed = nn.Embedding(letters, width, padding_idx=0)
        self.target_embed = nn.Embedding(letters, width, padding_idx=0)
        self.places = nn.Parameter(0.1 * torch.randn(16, width))
        more = {"dropout": drop, "batch_first": True}
        self.encoder = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 2 * width, **more) for _ in range(layers)
        )
        self.decoder = nn.ModuleList(
            nn.TransformerDecoderLayer(width, 4, 2 * width, **more) for _ in range(layers)
        )
        self.head = nn.Linear(width, letters)

    def read(self, source: Any) -> Any:
        """Return what the decoder knows of a source."""
        x = self.source_embed(source) + self.places[: source.shape[1]]
        for layer in self.encoder:
            x = layer(x, src_key_padding_mask=source == 0)
        return x

    def forward(self, source: Any, target: Any) -> Any:
        memory = self.read(source)
        later = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)
        x = self.target_embed(target) + self.places[: target.shape[1]]
        for layer in self.decoder:
            x = layer(
                x, memory, tgt_mask=later, tgt_is_causal=True, memory_key_padding_mask=source == 0
            )
        return self.head(x).transpose(1, 2)


class Router(nn.Module):
    """Scores of experts, with noise while they are learnt."""

    def __init__(self, width: int, experts: int, noise: float = 0.0) -> None:
        super().__init__()
        self.scores, self.noise = nn.Linear(width, experts, bias=False), noise

    def forward(self, x: Any) -> Any:
        scores = self.scores(x)
        is_noisy = self.training and self.noise
        return scores + self.noise * torch.randn_like(scores) if is_noisy else scores


class Experts(nn.Module):
    """The best `top_k` of several experts for each word, and perhaps one for all words."""

    def __init__(
        self,
        experts: int = 6,
        top_k: int = 2,
        *,
        width: int = 32,
        inner: int = 24,
        noise: float = 0.0,
        shared: bool = False,
    ) -> None:
        super().__init__()
        self.top_k, self.router = top_k, Router(width, experts, noise)
        self.experts = nn.ModuleList(Gated(width, inner) for _ in range(experts))
        self.common = Gated(width, inner) if shared else None
        self.balance: Any = torch.zeros(())

    def forward(self, x: Any) -> Any:
        chances = self.router(x).softmax(-1)
        best, which = chances.topk(self.top_k, -1)
        chosen = functional.one_hot(which, len(self.experts)).to(chances.dtype)
        shares = chosen.mean((0, 1, 2))
        self.balance = len(self.experts) * (shares * chances.mean((0, 1))).sum()
        weights = (chosen * (best / best.sum(-1, keepdim=True))[..., None]).sum(-2)
        if self.top_k == 1:
            weights = weights * best
        mixed = sum(
            expert(x) * weights[..., number, None] for number, expert in enumerate(self.experts)
        )
        return mixed if self.common is None else mixed + self.common(x)


def balance_of(model: Any) -> Any:
    """Return the mean of the balancing losses of a model's experts."""
    values = [part.balance for part in model.modules() if isinstance(part, Experts)]
    return torch.stack(values).mean()
