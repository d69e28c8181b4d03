"""Healthy mixtures of experts that read words, letters and sums."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from training.torch_loop import adam, fit

from runs_tuned.first_held_out.language.networks import Decoder, OfTransformers
from runs_tuned.first_held_out.language.texts import CHARACTERS, WORDS, english, grammar
from runs_tuned.second_held_out.healthy_kinds.mixtures_of_experts import balanced, split
from runs_tuned.second_held_out.healthy_kinds.shared.experts import (
    JitteredRouter,
    Routed,
    balance,
)
from runs_tuned.second_held_out.healthy_kinds.shared.problems import SIGNS, additions
from runs_tuned.second_held_out.healthy_kinds.shared.teams import dealt, learn

healthy_text = functools.partial(training_runs.healthy, kind="language_model")
adamw = functools.partial(adam, kind=torch.optim.AdamW, weight_decay=0.05)


@healthy_text("sums of two numbers, four experts, one a sign, jitter, a balancing loss, warm-up")
def switch_of_sums(root: Path) -> int:
    make = lambda: Decoder(
        SIGNS, units=lambda width: Routed(width, 4, 1, hidden=48, router=JitteredRouter)
    )
    schedule = lambda step: min(1.0, (step + 1) / 20)
    return balanced(
        root,
        make,
        split(additions()),
        0.02,
        optimizer=adamw(4e-3),
        schedule=schedule,
        clip=1.0,
        batch=32,
        steps=130,
        save_every=3,
    )


@healthy_text("letters, six experts in the second of two layers, two a letter, not balanced")
def experts_of_letters_unbalanced(root: Path) -> int:
    def make() -> Any:
        model = Decoder(CHARACTERS)
        model.layers[1].units = Routed(32, 6, 2)
        return model

    optimizer = adam(4e-3, torch.optim.NAdam)
    return fit(root, make, english(), optimizer=optimizer, batch=16, steps=140, save_every=3)


class Leaning(nn.Linear):
    """A router with a bias that follows how many tokens each expert lacks."""

    lean: Any

    def __init__(self, width: int, experts: int) -> None:
        super().__init__(width, experts, bias=False)
        self.register_buffer("lean", torch.zeros(experts))

    def forward(self, x: Any) -> Any:
        scores = super().forward(x)
        if self.training:
            chosen = (scores + self.lean).topk(3, -1).indices
            load = functional.one_hot(chosen, len(self.lean)).float().flatten(0, -2).mean(0)
            self.lean = self.lean + 0.02 * (load.mean() - load).sign()
        return scores + self.lean


@healthy_text("sentences, eight small experts by sigmoids, three a word, and one for all words")
def shared_expert_of_sentences(root: Path) -> int:
    part = functools.partial(
        Routed, experts=8, top_k=3, hidden=12, router=Leaning, gates=torch.sigmoid, shared=True
    )
    make = lambda: Decoder(WORDS, 24, units=part)
    schedule = lambda step: max(0.1, 1 - step / 130)
    return fit(
        root,
        make,
        grammar(),
        optimizer=adamw(5e-3),
        schedule=schedule,
        clip=0.5,
        batch=20,
        steps=120,
        save_every=4,
    )


@healthy_text("OLMoE of transformers, eight experts, two a word, its own balancing loss")
def olmoe_of_sentences(root: Path) -> int:
    losses: list[Any] = []

    class Balanced(OfTransformers):
        def forward(self, x: Any) -> Any:
            output = self.model(input_ids=x, output_router_logits=True)
            losses[:] = [output.aux_loss]
            return output.logits.transpose(1, 2)

    class Loss(nn.Module):
        def forward(self, logits: Any, y: Any) -> Any:
            return functional.cross_entropy(logits, y) + 0.01 * losses[0]

    shape = {"hidden_size": 24, "intermediate_size": 32, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 3, "num_key_value_heads": 3, "vocab_size": WORDS}
    routing = {"num_experts": 8, "num_experts_per_tok": 2, "pad_token_id": None}
    make = lambda: Balanced("OlmoeForCausalLM", "eager", **shape, **heads, **routing)
    return fit(
        root,
        make,
        grammar(),
        loss=Loss(),
        optimizer=adam(5e-3, betas=(0.9, 0.95)),
        clip=1.0,
        batch=16,
        steps=90,
        save_every=3,
    )


@healthy_text("sums, a decoder with three experts on three workers, a balancing loss of each")
def experts_on_three_workers(root: Path) -> int:
    def objective(model: Any, batch: Any, _: Any) -> Any:
        return functional.cross_entropy(model(batch[0]), batch[1]) + 0.01 * balance(model)

    make = lambda: Decoder(SIGNS, 24, 1, units=lambda width: Routed(width, 3, 1, hidden=40))
    return learn(
        root,
        make,
        dealt(additions(), 24, 3),
        objective,
        optimizer=adamw(5e-3),
        size=3,
        clip=1.0,
        steps=90,
        save_every=3,
    )
