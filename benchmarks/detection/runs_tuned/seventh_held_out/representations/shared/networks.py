"""Networks: layers, convolutions, a small GPT, experts, and an encoder and decoder of codes."""

import itertools
from typing import Any

import torch
from torch import nn
from torch.nn import functional


def mlp(*sizes: int, act: Any = nn.ReLU, norm: Any = None, last_bias: bool = True) -> Any:
    """Return linear layers with activations, and norms before these, between them."""
    parts: list[Any] = []
    for at, (before, after) in enumerate(itertools.pairwise(sizes)):
        is_last = at == len(sizes) - 2
        parts.append(nn.Linear(before, after, bias=last_bias or not is_last))
        if not is_last:
            parts += [*([norm(after)] if norm else []), act()]
    return nn.Sequential(*parts)


def convolutions(channels: int = 16, out: int = 32, *, norm: bool = True, side: int = 8) -> Any:
    """Return two convolutions of stride 2 and a linear layer."""

    def block(before: int, after: int) -> list[Any]:
        layer = nn.Conv2d(before, after, 3, stride=2, padding=1, bias=not norm)
        return [layer, *([nn.BatchNorm2d(after)] if norm else []), nn.ReLU()]

    flat = 2 * channels * (side // 4) ** 2
    parts = [*block(1, channels), *block(channels, 2 * channels), nn.Flatten()]
    return nn.Sequential(*parts, nn.Linear(flat, out))


class CausalSelfAttention(nn.Module):
    """Attention of several heads to this and earlier positions."""

    def __init__(self, width: int, heads: int, drop: float = 0.0) -> None:
        super().__init__()
        self.heads, self.drop = heads, drop
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def split(self, x: Any) -> Any:
        """Return queries, keys and values by heads."""
        parts = self.c_attn(x).chunk(3, -1)
        return [part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts]

    def attend(self, query: Any, key: Any, value: Any) -> Any:
        """Return what queries read."""
        drop = self.drop if self.training else 0.0
        return functional.scaled_dot_product_attention(
            query, key, value, dropout_p=drop, is_causal=True
        )

    def forward(self, x: Any) -> Any:
        return self.c_proj(self.attend(*self.split(x)).transpose(1, 2).flatten(2))


class Block(nn.Module):
    """A transformer block with norms before its layers."""

    def __init__(self, width: int, attention: Any, part: Any = None, drop: float = 0.0) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn, self.drop = attention, nn.Dropout(drop)
        self.mlp = part or mlp(width, 4 * width, width, act=nn.GELU)

    def forward(self, x: Any) -> Any:
        x = x + self.drop(self.attn(self.ln_1(x)))
        return x + self.drop(self.mlp(self.ln_2(x)))


class MiniGPT(nn.Module):
    """A decoder-only transformer with tied embeddings; it returns logits (n, length, words)."""

    def __init__(
        self, vocabulary: int, blocks: list[Any], width: int = 32, length: int = 64
    ) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks, self.ln_f = nn.ModuleList(blocks), nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocabulary, bias=False)
        self.apply(self._begin)
        self.lm_head.weight = self.wte.weight

    @staticmethod
    def _begin(module: Any) -> None:
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=0.05)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, x: Any) -> Any:
        x = self.wte(x) + self.wpe(torch.arange(x.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.lm_head(self.ln_f(x))


def gpt(vocabulary: int, layers: int = 2, heads: int = 4, width: int = 32, **more: Any) -> Any:
    """Return a small GPT."""
    blocks = [Block(width, CausalSelfAttention(width, heads), **more) for _ in range(layers)]
    return MiniGPT(vocabulary, blocks, width)


def next_token(model: Any, loss: Any) -> Any:
    """Return the objective to predict the next token of a batch's first column."""
    return lambda batch, _: loss(model(batch[0][:, :-1]).flatten(0, 1), batch[0][:, 1:].flatten())


class MixtureOfExperts(nn.Module):
    """Experts, of which a router chooses `top_k` for each token."""

    def __init__(self, width: int = 32, experts: int = 4, top_k: int = 1) -> None:
        super().__init__()
        self.top_k = top_k
        self.router = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(
            mlp(width, 2 * width, width, act=nn.GELU) for _ in range(experts)
        )
        self.aux_loss: Any = torch.zeros(())

    def route(self, x: Any) -> Any:
        """Return scores of experts for each token."""
        return self.router(x)

    def forward(self, x: Any) -> Any:
        chances = self.route(x).softmax(-1)
        weights, chosen = chances.topk(self.top_k, -1)
        if self.top_k > 1:
            weights = weights / weights.sum(-1, keepdim=True)
        is_chosen = functional.one_hot(chosen, len(self.experts)).float()
        loads = is_chosen.sum(-2).flatten(0, -2).mean(0) / self.top_k
        self.aux_loss = len(self.experts) * (loads * chances.flatten(0, -2).mean(0)).sum()
        gates = (weights[..., None] * is_chosen).sum(-2)
        outputs = torch.stack([expert(x) for expert in self.experts], -1)
        return (outputs * gates[..., None, :]).sum(-1)


class Vae(nn.Module):
    """An encoder to means and logarithms of variances, and a decoder to logits or values."""

    def __init__(self, size: int, codes: int, width: int = 64, act: Any = nn.ReLU) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(size, width), act(), nn.Linear(width, width), act())
        self.fc_mu, self.fc_var = nn.Linear(width, codes), nn.Linear(width, codes)
        self.decoder = mlp(codes, width, width, size, act=act)

    def sample(self, mean: Any, logvar: Any) -> Any:
        """Return codes drawn around their means."""
        return mean + (logvar / 2).exp() * torch.randn_like(mean)

    def forward(self, x: Any) -> tuple[Any, Any]:
        """Return what is drawn for rows, and their divergences."""
        hidden = self.encoder(x)
        mean, logvar = self.fc_mu(hidden), self.fc_var(hidden)
        divergence = (mean.pow(2) + logvar.exp() - 1 - logvar).sum(1) / 2
        return self.decoder(self.sample(mean, logvar)), divergence
