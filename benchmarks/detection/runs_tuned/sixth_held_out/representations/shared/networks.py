"""Networks: attention, blocks, readers, writers, translators, experts, coders and plain layers."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional


def dense(*sizes: int, act: Any = nn.ReLU, norm: bool = False) -> Any:
    """Return linear layers with activations between them."""
    parts: list[Any] = []
    for at in range(len(sizes) - 1):
        parts.append(nn.Linear(sizes[at], sizes[at + 1]))
        if at < len(sizes) - 2:
            parts += [*([nn.BatchNorm1d(sizes[at + 1])] if norm else []), act()]
    return nn.Sequential(*parts)


class Heads(nn.Module):
    """Attention of several heads.

    Parameters
    ----------
    mask
        Returns what is seen, or added to scores, of a length; None to see what was before.
    """

    def __init__(
        self, width: int = 32, heads: int = 4, mask: Callable[[int], Any] | None = None
    ) -> None:
        super().__init__()
        self.heads, self.mask = heads, mask
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))

    def apart(self, x: Any) -> Any:
        """Return rows by heads."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x: Any) -> Any:
        mask = self.mask(x.shape[1]) if self.mask else None
        seen = functional.scaled_dot_product_attention(
            self.apart(self.query(x)),
            self.apart(self.key(x)),
            self.apart(self.value(x)),
            attn_mask=mask,
            is_causal=mask is None,
        )
        return self.out(seen.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """Attention and a feed-forward part, with norms before both."""

    def __init__(
        self, attention: Any, part: Any = None, width: int = 32, drop: float = 0.0
    ) -> None:
        super().__init__()
        self.attention = attention
        self.part = part or dense(width, 2 * width, width, act=nn.GELU)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.drop = nn.Dropout(drop)

    def forward(self, x: Any) -> Any:
        x = x + self.drop(self.attention(self.norms[0](x)))
        return x + self.drop(self.part(self.norms[1](x)))


class Writer(nn.Module):
    """Foresees the next sign at each place."""

    def __init__(self, signs: int, blocks: list[Any], width: int = 32, length: int = 64) -> None:
        super().__init__()
        self.signs, self.places = nn.Embedding(signs, width), nn.Embedding(length, width)
        nn.init.normal_(self.signs.weight, std=0.5)
        nn.init.normal_(self.places.weight, std=0.5)
        self.blocks, self.norm = nn.ModuleList(blocks), nn.LayerNorm(width)
        self.head = nn.Linear(width, signs)

    def forward(self, x: Any) -> Any:
        x = self.signs(x) + self.places(torch.arange(x.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def next_sign(model: Any, loss: Any) -> Callable[[Any, Any], Any]:
    """Return the objective to foresee the next sign."""
    return lambda batch, _: loss(model(batch[0][:, :-1]).transpose(1, 2), batch[0][:, 1:])


class Translator(nn.Module):
    """A reader and a writer that attends to what was read, by PyTorch's own attention.

    Parameters
    ----------
    raised
        Factor of what is read, in each layer of the reader.
    """

    def __init__(self, signs: int, width: int = 32, heads: int = 4, raised: float = 1.0) -> None:
        super().__init__()
        self.signs, self.places = nn.Embedding(signs, width), nn.Embedding(64, width)
        self.raised = raised
        self.reads = nn.ModuleList(
            nn.MultiheadAttention(width, heads, batch_first=True) for _ in range(2)
        )
        self.looks_back = nn.MultiheadAttention(width, heads, batch_first=True)
        self.looks_over = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(5))
        self.units, self.head = dense(width, 96, width), nn.Linear(width, signs)

    def forward(self, source: Any, written: Any) -> Any:
        read = self.signs(source) + self.places(torch.arange(source.shape[1]))
        for layer, norm in zip(self.reads, self.norms, strict=False):
            seen = norm(read)
            read = self.raised * read + layer(seen, seen, seen)[0]
        x = self.signs(written) + self.places(torch.arange(written.shape[1]))
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        seen = self.norms[2](x)
        x = x + self.looks_back(seen, seen, seen, attn_mask=later)[0]
        x = x + self.looks_over(self.norms[3](x), read, read)[0]
        return self.head(x + self.units(self.norms[4](x)))


class Mixture(nn.Module):
    """Experts, of which a router chooses `top_k` for each word."""

    def __init__(
        self, number: int = 6, top_k: int = 2, width: int = 32, router: Any = None
    ) -> None:
        super().__init__()
        self.top_k, self.router = top_k, router or nn.Linear(width, number)
        self.experts = nn.ModuleList(dense(width, 24, width, act=nn.SiLU) for _ in range(number))
        self.chances: Any = None
        self.loads: Any = None

    def forward(self, x: Any) -> Any:
        scores = self.router(x)
        self.chances = scores.softmax(-1)
        best = scores.topk(self.top_k, -1).indices
        chosen = functional.one_hot(best, len(self.experts)).sum(-2)
        self.loads = chosen.float().flatten(0, -2).mean(0) / self.top_k
        weights = self.chances * chosen
        if self.top_k > 1:
            weights = weights / weights.sum(-1, keepdim=True)
        outputs = torch.stack([expert(x) for expert in self.experts], -1)
        return (outputs * weights[..., None, :]).sum(-1)

    def imbalance(self) -> Any:
        """Return 1 for equal loads, and more for others."""
        return len(self.experts) * (self.loads * self.chances.flatten(0, -2).mean(0)).sum()


class Codes(nn.Module):
    """An encoder to means and logarithms of variances, and a decoder."""

    def __init__(
        self, size: int, codes: int, width: int = 64, act: Any = nn.ReLU, told: int = 0
    ) -> None:
        super().__init__()
        self.encoder = dense(size + told, width, 2 * codes, act=act)
        self.decoder = dense(codes + told, width, width, size, act=act)

    def forward(self, x: Any, hook: Any, *told: Any) -> tuple[Any, Any]:
        """Return what is drawn for rows, and their divergences, by unit; means are saved."""
        mean, spread = self.encoder(torch.cat([x, *told], 1)).chunk(2, -1)
        spread = spread.clamp(-8, 5)
        hook.save_tensor("latent_means", mean, "latent_means")
        code = mean + (spread / 2).exp() * torch.randn_like(mean)
        drawn = self.decoder(torch.cat([code, *told], 1))
        return drawn, (mean.pow(2) + spread.exp() - 1 - spread) / 2
