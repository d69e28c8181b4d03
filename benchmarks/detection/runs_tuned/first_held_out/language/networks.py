"""Networks of the held-out language runs."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from runs_tuned.first_held_out.language.texts import CHARACTERS, PAIRED_WORDS, SOURCE, TAGS


class OfTransformers(nn.Module):
    """A model of transformers, made from a small configuration."""

    def __init__(self, name: str, attention: str = "sdpa", /, **config: Any) -> None:
        super().__init__()
        import transformers

        family = name.partition("For")[0]
        configuration = getattr(transformers, f"{family}Config")(
            attn_implementation=attention, **config
        )
        self.model = getattr(transformers, name)(configuration)

    def forward(self, x: Any) -> Any:
        return self.model(input_ids=x).logits.transpose(1, 2)


def opt(words: int = CHARACTERS, **config: Any) -> Any:
    """Return a small OPT."""
    shape = {"hidden_size": 32, "ffn_dim": 96, "num_hidden_layers": 2, "num_attention_heads": 4}
    more = {"max_position_embeddings": 64, "word_embed_proj_dim": 32, "dropout": 0.0}
    return OfTransformers("OPTForCausalLM", vocab_size=words, **shape | more | config)


class Translator(nn.Module):
    """A small T5 that takes a source and the target before each word, side by side."""

    def __init__(self) -> None:
        super().__init__()
        from transformers import T5Config, T5ForConditionalGeneration

        shape = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 1, "num_heads": 4}
        ends = {"decoder_start_token_id": 0, "dropout_rate": 0.0}
        self.model = T5ForConditionalGeneration(T5Config(vocab_size=PAIRED_WORDS, **shape, **ends))

    def forward(self, x: Any) -> Any:
        source, before = x[:, :SOURCE], x[:, SOURCE:]
        output = self.model(
            input_ids=source, attention_mask=(source != 0).long(), decoder_input_ids=before
        )
        return output.logits.transpose(1, 2)


class RecurrentTranslator(nn.Module):
    """A GRU that attends to the states of another by added scores."""

    def __init__(self, width: int = 40) -> None:
        super().__init__()
        self.embedding = nn.Embedding(PAIRED_WORDS, width, padding_idx=0)
        self.encoder = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.decoder = nn.GRU(width, width, batch_first=True)
        self.of_states, self.of_queries = nn.Linear(2 * width, width), nn.Linear(width, width)
        self.score = nn.Linear(width, 1, bias=False)
        self.generator = nn.Linear(3 * width, PAIRED_WORDS)

    def forward(self, x: Any) -> Any:
        source, before = x[:, :SOURCE], x[:, SOURCE:]
        states, _ = self.encoder(self.embedding(source))
        queries, _ = self.decoder(self.embedding(before))
        mixed = torch.tanh(self.of_states(states)[:, None] + self.of_queries(queries)[:, :, None])
        scores = self.score(mixed).squeeze(-1).masked_fill((source == 0)[:, None], -math.inf)
        context = scores.softmax(-1) @ states
        return self.generator(torch.cat([queries, context], -1)).transpose(1, 2)


class LetterLstm(nn.Module):
    """An LSTM with dropout whose last layer is its embedding."""

    def __init__(self, words: int = CHARACTERS, width: int = 48, drop: float = 0.2) -> None:
        super().__init__()
        self.drop = nn.Dropout(drop)
        self.encoder = nn.Embedding(words, width)
        self.rnn = nn.LSTM(width, width, batch_first=True)
        self.decoder = nn.Linear(width, words)
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        self.decoder.weight = self.encoder.weight

    def forward(self, x: Any) -> Any:
        states, _ = self.rnn(self.drop(self.encoder(x)))
        return self.decoder(self.drop(states)).transpose(1, 2)


class Tagger(nn.Module):
    """A bidirectional LSTM with a tag for each word."""

    def __init__(self, words: int = 31, width: int = 24) -> None:
        super().__init__()
        self.word_embedding = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.tags = nn.Linear(2 * width, TAGS)

    def forward(self, x: Any) -> Any:
        return self.tags(self.lstm(self.word_embedding(x))[0]).transpose(1, 2)


class DilatedConvolutions(nn.Module):
    """Causal convolutions of growing dilation, with gates and residuals."""

    def __init__(self, words: int, width: int = 40, layers: int = 3) -> None:
        super().__init__()
        self.tok_emb = nn.Embedding(words, width)
        self.layers = nn.ModuleList(
            nn.Conv1d(width, 2 * width, 2, dilation=2**layer) for layer in range(layers)
        )
        self.head = nn.Conv1d(width, words, 1)

    def forward(self, x: Any) -> Any:
        x = self.tok_emb(x).transpose(1, 2)
        for layer in self.layers:
            x = x + functional.glu(layer(functional.pad(x, (layer.dilation[0], 0))), 1)
        return self.head(x)


class CausalAttention(nn.Module):
    """Attention to earlier positions; a mask, if there is one, says which.

    Parameters
    ----------
    slopes
        How fast the scores of each head fall with the distance; none by default.
    """

    def __init__(self, width: int, heads: int, slopes: Any = None) -> None:
        super().__init__()
        self.heads, self.slopes = heads, slopes
        self.qkv, self.out = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width)

    def forward(self, x: Any, mask: Any = None) -> Any:
        split = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        if self.slopes is not None:
            at = torch.arange(x.shape[1])
            distance = (at[:, None] - at).float()
            mask = torch.where(distance < 0, -math.inf, -distance * self.slopes[:, None, None])
        merged = self.attend(*split, mask)
        return self.out(merged.transpose(1, 2).flatten(2))

    def attend(self, query: Any, key: Any, value: Any, mask: Any) -> Any:
        """Return the values that each position attends to."""
        return functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=mask is None
        )


class CosineAttention(CausalAttention):
    """Attention by cosines times a learnt scale, whose logarithm is a parameter."""

    def __init__(self, width: int, heads: int, logarithm: float) -> None:
        super().__init__(width, heads)
        self.log_scale = nn.Parameter(torch.full((heads, 1, 1), logarithm))

    def attend(self, query: Any, key: Any, value: Any, mask: Any) -> Any:
        """Return the values that each position attends to."""
        query = functional.normalize(query, dim=-1) * self.log_scale.exp()
        key = functional.normalize(key, dim=-1)
        return functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=mask is None, scale=1.0
        )


class GatedUnits(nn.Module):
    """A feed-forward layer with SiLU gates."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.up, self.gated = nn.Linear(width, hidden), nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x: Any) -> Any:
        return self.down(self.up(x) * functional.silu(self.gated(x)))


class TopRouter(nn.Module):
    """Chooses the best experts of each token; a bias, which has no gradient, helps to choose.

    Parameters
    ----------
    speed
        By how much the bias of an expert falls after each batch in which it had too many tokens.
    """

    def __init__(self, width: int, experts: int, top_k: int, speed: float) -> None:
        super().__init__()
        self.top_k, self.speed = top_k, speed
        self.weight = nn.Parameter(torch.randn(experts, width) / math.sqrt(width))
        self.register_buffer("bias", torch.zeros(experts))

    def forward(self, x: Any) -> Any:
        scores = functional.linear(x, self.weight).softmax(-1)
        chosen = (scores + self.bias).topk(self.top_k, -1).indices
        load = functional.one_hot(chosen, len(self.weight)).float().mean((0, 1, 2))
        if self.training:
            self.bias = self.bias + self.speed * (load.mean() - load).sign()
        return scores, chosen


class Mixture(nn.Module):
    """Feed-forward experts; each token goes to the best two of them."""

    def __init__(self, width: int, experts: int = 8, top_k: int = 2, speed: float = 0.005) -> None:
        super().__init__()
        self.router = TopRouter(width, experts, top_k, speed)
        self.experts = nn.ModuleList(GatedUnits(width, width) for _ in range(experts))

    def forward(self, x: Any) -> Any:
        scores, chosen = self.router(x)
        weights = torch.zeros_like(scores).scatter(-1, chosen, scores.gather(-1, chosen))
        weights = weights / weights.sum(-1, keepdim=True)
        return sum(
            weights[..., number, None] * expert(x) for number, expert in enumerate(self.experts)
        )


class DecoderLayer(nn.Module):
    """Attention and a feed-forward layer, each after a norm."""

    def __init__(self, width: int, attention: Any, units: Any) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.attention, self.units = attention, units

    def forward(self, x: Any, mask: Any) -> Any:
        x = x + self.attention(self.norm1(x), mask)
        return x + self.units(self.norm2(x))


class Decoder(nn.Module):
    """A decoder of RMS norms and gated units.

    Parameters
    ----------
    attention, units
        Make the parts of each layer for a width.
    mask
        Makes the mask of a batch of tokens; plain causal attention by default.
    """

    def __init__(
        self,
        words: int,
        width: int = 32,
        layers: int = 2,
        *,
        attention: Callable[[int], Any] = lambda width: CausalAttention(width, 4),
        units: Callable[[int], Any] = lambda width: GatedUnits(width, 2 * width),
        mask: Callable[[Any], Any] = lambda _: None,
    ) -> None:
        super().__init__()
        self.tok_emb = nn.Embedding(words, width)
        self.pos_emb = nn.Parameter(0.02 * torch.randn(64, width))
        self.layers = nn.ModuleList(
            DecoderLayer(width, attention(width), units(width)) for _ in range(layers)
        )
        self.norm = nn.RMSNorm(width)
        self.lm_head = nn.Linear(width, words, bias=False)
        self.mask = mask

    def forward(self, x: Any) -> Any:
        mask = self.mask(x)
        x = self.tok_emb(x) + self.pos_emb[: x.shape[1]]
        for layer in self.layers:
            x = layer(x, mask)
        return self.lm_head(self.norm(x)).transpose(1, 2)


class Bottleneck(nn.Module):
    """A small residual adapter after a layer, which changes nothing at first."""

    def __init__(self, base: Any, width: int, hidden: int = 6) -> None:
        super().__init__()
        self.base = base
        self.down, self.up = nn.Linear(width, hidden), nn.Linear(hidden, width)
        nn.init.zeros_(self.up.weight)
        nn.init.zeros_(self.up.bias)

    def forward(self, x: Any) -> Any:
        x = self.base(x)
        return x + self.up(functional.gelu(self.down(x)))
