"""Networks: layers, attention, decoders, experts, and variational coders."""

import itertools
from typing import Any

import torch
from torch import nn
from torch.nn import functional


def layers(*sizes: int, act: Any = nn.ReLU, norm: Any = None, drop: float = 0.0) -> Any:
    """Return linear layers with activations (and norms and dropout) between them."""
    parts: list[Any] = []
    for at, (ins, outs) in enumerate(itertools.pairwise(sizes)):
        parts.append(nn.Linear(ins, outs))
        if at < len(sizes) - 2:
            parts += [norm(outs)] if norm else []
            parts.append(act())
            parts += [nn.Dropout(drop)] if drop else []
    return nn.Sequential(*parts)


class SelfAttention(nn.Module):
    """Attention of several heads by PyTorch's function, to what was before if `causal`."""

    def __init__(self, width: int, heads: int, *, causal: bool = False, drop: float = 0.0) -> None:
        super().__init__()
        self.heads, self.causal, self.drop = heads, causal, drop
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.proj = nn.Linear(width, width)

    def split(self, x: Any) -> Any:
        """Return queries, keys and values by heads."""
        parts = self.qkv(x).chunk(3, -1)
        return [part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts]

    def forward(self, x: Any) -> Any:
        q, k, v = self.split(x)
        drop = self.drop if self.training else 0.0
        x = functional.scaled_dot_product_attention(q, k, v, dropout_p=drop, is_causal=self.causal)
        return self.proj(x.transpose(1, 2).flatten(2))


class Layer(nn.Module):
    """Norm and attention, norm and a feed-forward part, both added."""

    def __init__(self, width: int, attention: Any, part: Any = None, drop: float = 0.0) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = attention
        self.part = part or layers(width, 4 * width, width, act=nn.GELU)
        self.drop = nn.Dropout(drop)

    def forward(self, x: Any) -> Any:
        x = x + self.drop(self.attention(self.norm1(x)))
        return x + self.drop(self.part(self.norm2(x)))


class Decoder(nn.Module):
    """A language model: embeddings of signs and places, layers, a norm and a head."""

    def __init__(
        self, signs: int, width: int, stack: list[Any], length: int = 32, std: float = 1.0
    ) -> None:
        super().__init__()
        self.signs, self.places = nn.Embedding(signs, width), nn.Embedding(length, width)
        nn.init.normal_(self.signs.weight, std=std)
        nn.init.normal_(self.places.weight, std=std)
        self.stack = nn.ModuleList(stack)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, signs, bias=False)

    def forward(self, x: Any) -> Any:
        x = self.signs(x) + self.places(torch.arange(x.shape[1]))
        for layer in self.stack:
            x = layer(x)
        return self.head(self.norm(x))


def next_word(model: Any, loss: Any) -> Any:
    """Return what computes the loss of the next word at all places."""
    return lambda batch, _: loss(model(batch[0][:, :-1]).flatten(0, 1), batch[0][:, 1:].flatten())


class MixtureLayer(nn.Module):
    """Feed-forward experts; a router sends each word to `top_k` of them (Switch, Mixtral)."""

    def __init__(
        self, width: int, experts: int = 4, top_k: int = 2, hidden: int = 48, router: Any = None
    ) -> None:
        super().__init__()
        self.top_k = top_k
        self.router = router or nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(
            layers(width, hidden, width, act=nn.SiLU) for _ in range(experts)
        )
        self.balance: Any = torch.zeros(())

    def weights(self, logits: Any) -> tuple[Any, Any]:
        """Return the weights of the chosen experts, and which these are."""
        chances, chosen = logits.softmax(-1).topk(self.top_k, -1)
        if self.top_k > 1:
            chances = chances / chances.sum(-1, keepdim=True)
        return chances, chosen

    def forward(self, x: Any) -> Any:
        words = x.flatten(0, -2)
        logits = self.router(words)
        weights, chosen = self.weights(logits)
        count = len(self.experts)
        load = functional.one_hot(chosen, count).float().sum(1).mean(0) / self.top_k
        self.balance = count * (load * logits.softmax(-1).mean(0)).sum()
        self.load = load.detach()
        output = torch.zeros_like(words)
        for number, expert in enumerate(self.experts):
            at, place = (chosen == number).nonzero(as_tuple=True)
            output = output.index_add(0, at, expert(words[at]) * weights[at, place, None])
        return output.view_as(x)


class Variational(nn.Module):
    """An encoder to means and logarithms of variances, and a decoder."""

    def __init__(self, encoder: Any, width: int, codes: int, decoder: Any) -> None:
        super().__init__()
        self.encoder, self.decoder = encoder, decoder
        self.fc_mu, self.fc_logvar = nn.Linear(width, codes), nn.Linear(width, codes)

    def forward(self, x: Any) -> tuple[Any, Any, Any]:
        hidden = self.encoder(x)
        mu, logvar = self.fc_mu(hidden), self.fc_logvar(hidden)
        code = mu + (logvar / 2).exp() * torch.randn_like(mu) if self.training else mu
        return self.decoder(code), mu, logvar


def divergence(mu: Any, logvar: Any) -> Any:
    """Return the divergence from the standard normal, summed over units, averaged over rows."""
    return -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()
