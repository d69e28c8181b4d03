"""Decoders: ways to attend to earlier words other than those of `readers`, and adapters."""

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional


def split(x: Any, heads: int) -> Any:
    """Return ``(n, heads, length, size)``."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


class OneKey(nn.Module):
    """Attention of several queries to one key, nearer words first; scores have a cap."""

    def __init__(self, width: int = 36, heads: int = 3, cap: float = 20.0) -> None:
        super().__init__()
        self.heads, self.cap = heads, cap
        size = width // heads
        self.q_proj, self.kv_proj = nn.Linear(width, width), nn.Linear(width, 2 * size)
        self.q_norm, self.k_norm = nn.RMSNorm(size), nn.RMSNorm(size)
        self.o_proj = nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        key, value = self.kv_proj(x)[:, None].chunk(2, -1)
        query = self.q_norm(split(self.q_proj(x), self.heads).float())
        scores = query @ self.k_norm(key.float()).transpose(-1, -2) / math.sqrt(query.shape[-1])
        at = torch.arange(x.shape[1])
        far = (at[:, None] - at) * (2.0 ** -torch.arange(1, self.heads + 1))[:, None, None]
        scores = self.cap * torch.tanh(scores / self.cap) - far
        weights = scores.masked_fill(far < 0, -math.inf).softmax(-1)
        return self.o_proj((weights @ value).transpose(1, 2).flatten(2))


class Latent(nn.Module):
    """Attention whose keys and values are made from a few numbers of each word."""

    def __init__(self, width: int = 32, heads: int = 4, inner: int = 10) -> None:
        super().__init__()
        self.heads = heads
        self.q_proj, self.down, self.up = (
            nn.Linear(width, width, bias=False),
            nn.Linear(width, inner, bias=False),
            nn.Linear(inner, 2 * width, bias=False),
        )
        self.o_proj = nn.Linear(width, width, bias=False)

    def forward(self, x: Any) -> Any:
        key, value = self.up(self.down(x)).chunk(2, -1)
        parts = (split(part, self.heads) for part in (self.q_proj(x), key, value))
        seen = functional.scaled_dot_product_attention(*parts, is_causal=True)
        return self.o_proj(seen.transpose(1, 2).flatten(2))


class Beside(nn.Module):
    """A block whose attention and feed-forward part read the same, and are both added."""

    def __init__(self, width: int, mixer: Any, inner: int, drop: float = 0.0) -> None:
        super().__init__()
        self.norm, self.mixer = nn.LayerNorm(width, bias=False), mixer
        self.fc1, self.fc2 = nn.Linear(width, inner), nn.Linear(inner, width)
        self.dropout = nn.Dropout(drop)

    def forward(self, x: Any) -> Any:
        read = self.norm(x)
        return x + self.dropout(self.mixer(read) + self.fc2(functional.gelu(self.fc1(read))))


class Composer(nn.Module):
    """An embedding with places, blocks, and scores of words; ``(n, words, length)``."""

    def __init__(
        self, words: int, blocks: list[Any], width: int = 32, places: int = 48, outs: int = 0
    ) -> None:
        super().__init__()
        self.wte = nn.Embedding(words, width)
        self.wpe = nn.Parameter(0.1 * torch.randn(places, width))
        self.blocks = nn.ModuleList(blocks)
        self.ln_f, self.lm_head = nn.LayerNorm(width), nn.Linear(width, outs or words, bias=False)

    def read(self, x: Any) -> Any:
        """Return the states of embedded words."""
        x = x + self.wpe[: x.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.ln_f(x)

    def forward(self, x: Any) -> Any:
        return self.lm_head(self.read(self.wte(x))).transpose(1, 2)


class Adapted(nn.Module):
    """A frozen layer with an update of low rank, dropout before it."""

    def __init__(self, base: Any, rank: int = 4, scale: float = 2.0, drop: float = 0.05) -> None:
        super().__init__()
        self.base, self.scale, self.drop = base.requires_grad_(False), scale, nn.Dropout(drop)
        self.lora_A = nn.Linear(base.in_features, rank, bias=False)
        self.lora_B = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.lora_B.weight)

    def forward(self, x: Any) -> Any:
        return self.base(x) + self.scale * self.lora_B(self.lora_A(self.drop(x)))


class Gates(nn.Module):
    """A recurrence whose gates see two words each (QRNN)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv = nn.Conv1d(width, 3 * width, 2, padding=1)

    def forward(self, x: Any) -> Any:
        found = self.conv(x.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2)
        value, forget, out = found.chunk(3, -1)
        value, forget = value.tanh(), (forget + 1).sigmoid()
        state, states = torch.zeros_like(value[:, 0]), []
        for at in range(x.shape[1]):
            state = forget[:, at] * state + (1 - forget[:, at]) * value[:, at]
            states.append(state)
        return out.sigmoid() * torch.stack(states, 1)


def prepared(model: Any, batches: Any, steps: int, rate: float = 4e-3) -> Any:
    """Return a model that was trained before, without a hook."""
    torch.set_num_threads(1)
    optimizer = torch.optim.AdamW(model.parameters(), rate)
    for _, (x, y) in zip(range(steps), batches, strict=False):
        optimizer.zero_grad()
        functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return model
