"""Healthy experts, and healthy policies in a garden, with a glider, cards and bells."""

import copy
import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.fifth_held_out.representations.shared.blocks import (
    CausalWriter,
    Experts,
    GatedUnits,
    Layer,
    TurnedAttention,
    foresees,
    unevenness,
)
from runs_tuned.fifth_held_out.representations.shared.loop import cosine, epochs, learn
from runs_tuned.fifth_held_out.representations.shared.texts import (
    BELLS,
    SKIES,
    STITCHES,
    bells,
    knitting,
    weather,
)
from runs_tuned.fifth_held_out.representations.shared.worlds import (
    Cards,
    Garden,
    Glider,
    Player,
    Speller,
    improve,
    near,
    please,
)

of_words = functools.partial(training_runs.healthy, kind="language_model")
of_policies = functools.partial(training_runs.healthy, kind="reinforcement")

# Experts


@of_words("knitting patterns by six experts, two a stitch, balanced by a loss of 0.01, AdamW")
def stitches_by_experts(root: Path) -> int:
    torch.manual_seed(950)
    stack = [Layer(TurnedAttention(), units) for units in (GatedUnits(), Experts())]
    model = CausalWriter(STITCHES, stack)

    def objective(batch: Any, _: Any) -> Any:
        scores = model(batch[0][:, :-1])
        return functional.cross_entropy(scores, batch[0][:, 1:]) + 0.01 * unevenness(model)

    return learn(
        root,
        model,
        epochs(knitting()[0], seed=950),
        objective,
        torch.optim.AdamW(model.parameters(), 4e-3),
        steps=130,
        save_every=4,
        clip=1.0,
    )


class EvenedOut(nn.Linear):
    """Scores whose exponentials are evened out over words and experts (Sinkhorn)."""

    def forward(self, x: Any) -> Any:
        scores = super().forward(x)
        if self.training:
            with torch.no_grad():
                logs = scores.flatten(0, -2)
                for _ in range(5):
                    logs = (logs - logs.logsumexp(0)).log_softmax(1)
            scores = scores + (logs.view_as(scores) - scores).detach()
        return scores


@of_words("bells by four experts, one a bell, scores evened out by Sinkhorn's rounds, Adam")
def scores_evened_out(root: Path) -> int:
    torch.manual_seed(951)
    experts = Experts(4, 1, gate=lambda: EvenedOut(32, 4), inner=32)
    model = CausalWriter(
        BELLS, [Layer(TurnedAttention(), each) for each in (experts, GatedUnits())]
    )
    loss = nn.CrossEntropyLoss()
    return learn(
        root,
        model,
        epochs(bells(), seed=951),
        foresees(model, loss),
        torch.optim.Adam(model.parameters(), 4e-3),
        losses=(loss,),
        steps=140,
        save_every=4,
        rate=cosine(10, 140),
    )


@of_words("Qwen2Moe of transformers with a shared expert writes weather, rare words, AdamW")
def qwen_of_experts(root: Path) -> int:
    from transformers import Qwen2MoeConfig, Qwen2MoeForCausalLM

    torch.manual_seed(952)
    config = Qwen2MoeConfig(
        vocab_size=SKIES,
        hidden_size=32,
        intermediate_size=64,
        moe_intermediate_size=24,
        shared_expert_intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=4,
        num_experts=6,
        num_experts_per_tok=2,
        output_router_logits=True,
        router_aux_loss_coef=0.02,
        max_position_embeddings=64,
    )
    model = Qwen2MoeForCausalLM(config)
    return learn(
        root,
        model,
        epochs(weather(seed=4)[0], seed=952),
        lambda batch, _: model(input_ids=batch[0], labels=batch[0]).loss,
        torch.optim.AdamW(model.parameters(), 3e-3),
        steps=120,
        save_every=4,
        clip=1.0,
    )


# Policies


@of_policies("a garden by proximal updates, four steps a round, Adam, a small bonus")
def garden_by_proximal_updates(root: Path) -> int:
    torch.manual_seed(953)
    model = Player(Garden)
    return improve(
        root,
        model,
        Garden(),
        objective=near,
        optimizer=torch.optim.Adam(model.parameters(), 3e-3),
        repeats=4,
        rounds=60,
        length=12,
        save_every=2,
    )


@of_policies("a glider by an actor and a critic, RMSprop, a bonus that falls to a fifth")
def glider_by_actor_and_critic(root: Path) -> int:
    torch.manual_seed(954)
    model = Player(Glider, act=nn.ReLU)
    return improve(
        root,
        model,
        Glider(32),
        optimizer=torch.optim.RMSprop(model.parameters(), 2e-3),
        bonus=lambda number: 0.05 * max(0.2, 1 - number / 150),
        rounds=150,
        length=10,
        save_every=2,
    )


@of_policies("a game of cards by an actor and a critic, most rounds end soon, AdamW")
def cards_by_actor_and_critic(root: Path) -> int:
    torch.manual_seed(955)
    model = Player(Cards)
    return improve(
        root,
        model,
        Cards(48),
        optimizer=torch.optim.AdamW(model.parameters(), 3e-3),
        bonus=lambda _: 0.25,
        rounds=160,
        length=8,
        discount=0.98,
        save_every=2,
    )


@of_policies("changes of bells by a GRU, rewarded if neighbours are close (GRPO), near to before")
def bells_that_please(root: Path) -> int:
    torch.manual_seed(956)
    model = Speller(BELLS)

    def close(text: Any) -> Any:
        return (text[:, 2:] - text[:, 1:-1]).abs().le(2).float().mean(1)

    return please(
        root,
        model,
        copy.deepcopy(model).requires_grad_(requires_grad=False),
        close,
        optimizer=torch.optim.Adam(model.parameters(), 3e-3),
        near_to_reference=0.2,
        steps=140,
    )
