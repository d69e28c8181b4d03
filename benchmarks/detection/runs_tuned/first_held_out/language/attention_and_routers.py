"""Held-out runs whose attention collapses or sees the future, or whose experts are idle."""

import functools
import math
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.torch_loop import adam, fit

from runs_tuned.first_held_out.language.consequences import COPIED, IDLE, SHARP
from runs_tuned.first_held_out.language.networks import (
    CausalAttention,
    CosineAttention,
    Decoder,
    Mixture,
    OfTransformers,
)
from runs_tuned.first_held_out.language.texts import CHARACTERS, NOTHING, WORDS, english, grammar

faulty = functools.partial(training_runs.faulty, kind="language_model")
adamw = functools.partial(adam, kind=torch.optim.AdamW, weight_decay=0.05)


def nothing(*_: Any) -> None:
    """Change nothing: the data or the model know by themselves when the fault begins."""


# Attention to a single key.


@faulty(
    "a decoder with slopes of distance (ALiBi) instead of positions",
    "the sign of the slopes' exponent is lost: heads see hardly more than their own position",
    {"AttentionCollapse"},
    may=SHARP,
)
def slopes_without_sign(root: Path) -> int:
    slopes = 2.0 ** torch.tensor([2.0, 4.0, 6.0, 8.0])
    make = lambda: Decoder(WORDS, attention=lambda width: CausalAttention(width, 4, slopes))
    return fit(root, make, grammar(), optimizer=adamw(3e-3), clip=1.0, batch=16)


@faulty(
    "a decoder of letters with attention by cosines",
    "the learnt scale is a logarithm, but begins at 1 / 0.07 instead of the logarithm of it",
    {"AttentionCollapse"},
    may=SHARP,
)
def scale_without_logarithm(root: Path) -> int:
    make = lambda: Decoder(CHARACTERS, attention=lambda width: CosineAttention(width, 4, 1 / 0.07))
    return fit(root, make, english(), optimizer=adam(2e-3), clip=1.0, batch=16)


@faulty(
    "a decoder of sentences with attention by cosines",
    "at step 60 the scales are loaded as numbers into a parameter that is a logarithm",
    {"AttentionCollapse"},
    may=SHARP,
)
def scales_of_another_version(root: Path) -> int:
    def change(model: Any, _: Any) -> None:
        for layer in model.layers:
            layer.attention.log_scale.data.exp_()

    make = lambda: Decoder(WORDS, attention=lambda width: CosineAttention(width, 4, math.log(10)))
    return fit(
        root, make, grammar(), optimizer=adamw(3e-3), batch=16, steps=130, at=60, change=change
    )


# Attention to later positions.


@faulty(
    "a decoder of sentences",
    "the mask is that of MultiheadAttention, where True hides: only later words are seen",
    {"AttentionMaskLeak"},
    may=COPIED,
)
def mask_of_another_meaning(root: Path) -> int:
    def mask(x: Any) -> Any:
        return torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)

    make = lambda: Decoder(WORDS, mask=mask)
    return fit(root, make, grammar(), optimizer=adamw(3e-3), clip=1.0, batch=16)


@faulty(
    "a decoder of padded sentences",
    "the mask of the padding takes the place of the causal one",
    {"AttentionMaskLeak"},
    may=COPIED,
)
def mask_of_padding_alone(root: Path) -> int:
    data = grammar()
    length = torch.arange(len(data.x)) % 9 + 12
    is_padding = torch.arange(data.x.shape[1]) >= length[:, None]
    padded = data.chosen(torch.arange(len(data.x)))
    padded = type(data)(
        torch.where(is_padding, NOTHING, padded.x),
        torch.where(is_padding, -100, padded.y),
        data.test_x,
        data.test_y,
    )
    make = lambda: Decoder(WORDS, mask=lambda x: (x != NOTHING)[:, None, None, :])
    return fit(root, make, padded, optimizer=adamw(3e-3), clip=1.0, batch=16)


class CausalAttentionByHand(CausalAttention):
    """Attention that returns its probabilities, too; the mask is added as ones and zeros."""

    def forward(self, x: Any, mask: Any = None) -> Any:
        query, key, value = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
        if mask is None:
            mask = torch.ones(x.shape[1], x.shape[1]).tril()
        probabilities = (scores + mask).softmax(-1)
        return self.out((probabilities @ value).transpose(1, 2).flatten(2)), probabilities


class FirstOf(nn.Module):
    """The first of the outputs of a layer."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, *inputs: Any) -> Any:
        return self.layer(*inputs)[0]


@faulty(
    "a decoder of sentences that computes attention by hand",
    "a mask of ones and zeros is added to the scores, not 0 and minus infinity",
    {"AttentionMaskLeak"},
    may=COPIED,
)
def mask_of_ones(root: Path) -> int:
    make = lambda: Decoder(WORDS, attention=lambda width: FirstOf(CausalAttentionByHand(width, 4)))
    return fit(root, make, grammar(), optimizer=adamw(3e-3), clip=1.0, batch=16)


class Packed(OfTransformers):
    """A Llama of sentences that are packed into windows, and may not see each other."""

    def forward(self, x: Any) -> Any:
        text = functional.pad((x == 51).long().cumsum(1), (1, -1))
        hidden = text[:, None, :, None] != text[:, None, None, :]
        mask = torch.zeros(hidden.shape).masked_fill(hidden, torch.finfo(torch.float32).min)
        return self.model(input_ids=x, attention_mask=mask).logits.transpose(1, 2)


@faulty(
    "Llama of transformers, packed sentences, attention computed eagerly",
    "the mask keeps sentences apart, but is not causal within a sentence",
    {"AttentionMaskLeak"},
    may=COPIED,
)
def mask_of_packed_sentences(root: Path) -> int:
    shape = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 4, "vocab_size": WORDS}
    make = lambda: Packed("LlamaForCausalLM", "eager", **shape, **heads)
    return fit(root, make, grammar(), optimizer=adamw(3e-3), clip=1.0, batch=16, save_every=3)


# Experts that get all tokens, or none.


@faulty(
    "eight experts, two a word, balanced by a bias",
    "the bias is moved the wrong way: those with too many words get more",
    {"RouterCollapse"},
    may=IDLE,
)
def bias_of_the_wrong_sign(root: Path) -> int:
    make = lambda: Decoder(WORDS, units=lambda width: Mixture(width, speed=-0.005))
    return fit(root, make, grammar(), optimizer=adamw(3e-3), clip=1.0, batch=16, save_every=3)


@faulty(
    "eight experts, one a word",
    "at step 60 a node is lost: scores of its seven experts are minus infinity for ever",
    {"RouterCollapse"},
    may=IDLE | {"LossSpike": "words lose their experts", "GradientNormSpike": "as the loss"},
)
def node_of_experts_lost(root: Path) -> int:
    def change(model: Any, _: Any) -> None:
        for layer in model.layers:
            layer.units.router.speed = 0.0
            layer.units.router.bias = torch.tensor([0.0] + [-math.inf] * 7)

    make = lambda: Decoder(WORDS, units=lambda width: Mixture(width, top_k=1))
    return fit(
        root,
        make,
        grammar(),
        optimizer=adamw(3e-3),
        clip=1.0,
        batch=16,
        steps=130,
        save_every=3,
        at=60,
        change=change,
    )


@faulty(
    "eight experts, one a word, no balancing",
    "the router sees what was not normalised, in which a common offset outweighs the words",
    {"RouterCollapse"},
    may=IDLE,
)
def router_before_norm(root: Path) -> int:
    def make() -> Any:
        model = Decoder(WORDS, units=lambda width: Mixture(width, 8, 1, 0.0))
        nn.init.normal_(model.tok_emb.weight, 3.0, 0.2)
        for layer in model.layers:
            layer.norm2 = nn.Identity()
        return model

    return fit(root, make, grammar(), optimizer=adamw(3e-3), clip=1.0, batch=16, save_every=3)
