"""Language: generated texts and the small language models that learn them."""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from training.learnt_data import Split

WORDS = 48
WINDOW = 16
MASK = 0


@functools.cache
def corpus(words: int = WORDS, window: int = WINDOW, count: int = 800, seed: int = 3) -> Split:
    """Return windows of a generated language and their next words, both ``(n, window)``.

    Words are as unequal as Zipf's law has it, and each word has four usual successors.
    """
    rng = np.random.default_rng(seed)
    frequency = 1 / np.arange(1, words)
    frequency /= frequency.sum()
    successors = rng.choice(np.arange(1, words), (words, 4), p=frequency)
    tokens = rng.choice(np.arange(1, words), (count, window + 1), p=frequency)
    for column in range(window):
        usual = successors[tokens[:, column], rng.integers(0, 4, count) ** 2 // 3]
        tokens[:, column + 1] = np.where(rng.random(count) < 0.9, usual, tokens[:, column + 1])
    tensor = torch.tensor(tokens)
    cut = count * 4 // 5
    inputs, targets = tensor[:, :-1], tensor[:, 1:]
    return Split(inputs[:cut], targets[:cut], inputs[cut:], targets[cut:])


class CausalSelfAttention(nn.Module):
    """Multi-head attention to this and earlier positions.

    Parameters
    ----------
    scale
        A factor of the attention scores.
    visible
        The number of later positions that each one sees: 0 unless there is a leak.
    """

    def __init__(self, width: int, heads: int, scale: float = 1.0, visible: int = 0) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.scale, self.visible = scale, visible

    def forward(self, x: Any) -> Any:
        length = x.shape[1]
        mask = torch.ones(length, length, dtype=torch.bool).triu(1 + self.visible)
        output, _ = self.attention(x * self.scale, x, x, attn_mask=mask, need_weights=True)
        return output


class Router(nn.Module):
    """Scores of experts for each token."""

    def __init__(self, width: int, experts: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, experts, bias=False)
        self.bias = nn.Parameter(torch.zeros(experts))

    def forward(self, x: Any) -> Any:
        return self.linear(x) + self.bias


class Experts(nn.Module):
    """A mixture of feed-forward experts; each token goes to one."""

    def __init__(self, width: int, experts: int = 4) -> None:
        super().__init__()
        self.top_k = 1
        self.router = Router(width, experts)
        self.experts = nn.ModuleList(feed_forward(width) for _ in range(experts))
        self.balance: Any = torch.zeros(())

    def forward(self, x: Any) -> Any:
        chances = self.router(x).softmax(-1)
        chance, expert = chances.max(-1)
        loads = functional.one_hot(expert, len(self.experts)).float().mean((0, 1))
        self.balance = len(self.experts) * (loads * chances.mean((0, 1))).sum()
        output = torch.zeros_like(x)
        for number, module in enumerate(self.experts):
            output = output + module(x) * (chance * (expert == number)).unsqueeze(-1)
        return output


def feed_forward(width: int) -> Any:
    """Return two linear layers with GELU between them."""
    return nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))


class Block(nn.Module):
    """A transformer block with norms before its layers."""

    def __init__(self, width: int, heads: int, experts: int, **attention: Any) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = CausalSelfAttention(width, heads, **attention)
        self.mlp = Experts(width, experts) if experts else feed_forward(width)

    def forward(self, x: Any) -> Any:
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    """A decoder-only transformer; it returns logits ``(n, words, length)``."""

    def __init__(
        self,
        words: int = WORDS,
        width: int = 32,
        layers: int = 2,
        heads: int = 4,
        *,
        window: int = WINDOW,
        experts: int = 0,
        tied: bool = True,
        drop: float = 0.0,
        **attention: Any,
    ) -> None:
        super().__init__()
        self.wte = nn.Embedding(words, width)
        self.wpe = nn.Parameter(0.02 * torch.randn(window, width))
        self.drop = nn.Dropout(drop)
        self.blocks = nn.ModuleList(
            Block(width, heads, experts, **attention) for _ in range(layers)
        )
        self.norm = nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, words, bias=False)
        nn.init.normal_(self.wte.weight, std=0.02 if tied else 1.0)
        if tied:
            self.lm_head.weight = self.wte.weight

    def embed(self, x: Any) -> Any:
        """Return the last hidden states."""
        x = self.drop(self.wte(x) + self.wpe[: x.shape[1]])
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def forward(self, x: Any) -> Any:
        return self.lm_head(self.embed(x)).transpose(1, 2)


class MaskedModel(nn.Module):
    """A bidirectional encoder that predicts masked words."""

    def __init__(self, words: int = WORDS, width: int = 32) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.positions = nn.Parameter(0.02 * torch.randn(WINDOW, width))
        self.encoder = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 4, 64, 0.1, batch_first=True, norm_first=True)
            for _ in range(2)
        )
        self.head = nn.Linear(width, words)

    def forward(self, x: Any) -> Any:
        x = self.embedding(x) + self.positions
        for layer in self.encoder:
            x = layer(x)
        return self.head(x).transpose(1, 2)


def masked(split: Split, share: float = 0.15) -> Split:
    """Return sentences with masked words, and targets that ignore all others."""
    generator = torch.Generator().manual_seed(0)

    def pair(x: Any) -> tuple[Any, Any]:
        is_masked = torch.rand(x.shape, generator=generator) < share
        return torch.where(is_masked, MASK, x), torch.where(is_masked, x, -100)

    return Split(*pair(split.x), *pair(split.test_x))


class StateSpace(nn.Module):
    """A gated linear recurrence, with the logarithm of its decay as a parameter."""

    def __init__(self, words: int = WORDS, width: int = 32) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.A_log = nn.Parameter(torch.linspace(-2.0, 1.0, width))
        self.gate = nn.Parameter(torch.ones(width))
        self.mix, self.norm = nn.Linear(width, width), nn.LayerNorm(width)
        self.head = nn.Linear(width, words)

    def forward(self, x: Any) -> Any:
        inputs = self.embedding(x)
        decay = torch.exp(-torch.exp(self.A_log))
        state, states = torch.zeros_like(inputs[:, 0]), []
        for position in range(x.shape[1]):
            state = decay * state + self.mix(inputs[:, position])
            states.append(state)
        hidden = self.norm(inputs + self.gate * torch.stack(states, 1))
        return self.head(hidden).transpose(1, 2)


class HuggingFace(nn.Module):
    """A language model of transformers, made from a small configuration.

    Its attention is computed eagerly.
    """

    def __init__(self, kind: str, **config: Any) -> None:
        super().__init__()
        import transformers

        shape = {"vocab_size": WORDS, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
        make = getattr(transformers, f"{kind}Config")
        name = f"{kind}LMHeadModel" if kind == "GPT2" else f"{kind}ForCausalLM"
        configuration = make(attn_implementation="eager", use_cache=False, **shape, **config)
        self.model = getattr(transformers, name)(configuration)

    def forward(self, x: Any) -> Any:
        return self.model(input_ids=x).logits.transpose(1, 2)


def gpt2(**config: Any) -> Any:
    """Return a small GPT-2."""
    shape = {"n_positions": WINDOW, "n_embd": 32, "n_layer": 2, "n_head": 4}
    return HuggingFace("GPT2", **shape | config)


def llama(**config: Any) -> Any:
    """Return a small Llama."""
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2}
    return HuggingFace("Llama", **shape | heads | config)


class LoraLinear(nn.Module):
    """A frozen linear layer with a low-rank update, named as adapters are."""

    def __init__(self, base: Any, rank: int = 4) -> None:
        super().__init__()
        self.base = base.requires_grad_(requires_grad=False)
        self.lora_A = nn.Parameter(torch.randn(rank, base.in_features) / math.sqrt(rank))
        self.lora_B = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x: Any) -> Any:
        return self.base(x) + x @ self.lora_A.T @ self.lora_B.T


def with_adapters(model: Any, rank: int = 4) -> Any:
    """Freeze a `Gpt`, and give its feed-forward layers low-rank updates."""
    model.requires_grad_(requires_grad=False)
    for block in model.blocks:
        for place in (0, 2):
            block.mlp[place] = LoraLinear(block.mlp[place], rank)
    return model


def pretrained(make: Callable[[], Any], split: Split, steps: int = 150) -> Any:
    """Return a language model that was trained before, without a hook."""
    torch.manual_seed(1)
    model = make()
    optimizer = torch.optim.AdamW(model.parameters(), 5e-3)
    for step in range(steps):
        rows = torch.arange(step * 16, step * 16 + 16) % len(split.x)
        optimizer.zero_grad()
        functional.cross_entropy(model(split.x[rows]), split.y[rows]).backward()
        optimizer.step()
    return model


def warm_up_and_cosine(warm_up: int, steps: int, floor: float = 0.1) -> Callable[[int], float]:
    """Return the factor of the learning rate by step."""

    def factor(step: int) -> float:
        if step < warm_up:
            return (step + 1) / warm_up
        progress = min(1.0, (step - warm_up) / (steps - warm_up))
        return floor + (1 - floor) * 0.5 * (1 + math.cos(math.pi * progress))

    return factor
