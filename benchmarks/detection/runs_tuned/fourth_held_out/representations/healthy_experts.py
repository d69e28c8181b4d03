"""Healthy language models of experts."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.fourth_held_out.representations.shared.loop import draws, learn, rises_and_falls
from runs_tuned.fourth_held_out.representations.shared.readers import (
    Block,
    CausalDecoder,
    Mixture,
    SelfAttention,
    TextEncoder,
    uneven,
)
from runs_tuned.fourth_held_out.representations.shared.words import (
    MASK,
    PANTRY,
    TOWNS,
    journeys,
    recipes,
)

healthy = functools.partial(training_runs.healthy, kind="language_model")


@healthy("journeys by six experts, two a town, balanced by a loss of 0.02, AdamW, clipped")
def journeys_by_experts(root: Path) -> int:
    torch.manual_seed(749)
    blocks = [Block(SelfAttention(), Mixture(6, 2)) for _ in range(2)]
    model = CausalDecoder(TOWNS, blocks)

    def objective(batch: Any, _: Any) -> Any:
        scores = model(batch[0][:, :-1])
        return functional.cross_entropy(scores, batch[0][:, 1:]) + 0.02 * uneven(model)

    return learn(
        root,
        model,
        draws(journeys(), seed=749),
        objective,
        torch.optim.AdamW(model.parameters(), 3e-3),
        steps=140,
        rate=rises_and_falls(10, 140),
        clip=1.0,
    )


class Shaken(nn.Linear):
    """A router whose inputs are shaken a little while it learns."""

    def forward(self, x: Any) -> Any:
        return super().forward(x * (0.95 + 0.1 * torch.rand_like(x)) if self.training else x)


@healthy("hidden words of recipes by four experts, one a word, shaken, scores kept small")
def recipes_by_one_expert_each(root: Path) -> int:
    torch.manual_seed(750)
    units = Mixture(4, 1, router=lambda: Shaken(32, 4))
    model = TextEncoder(PANTRY + 1, [Block(SelfAttention(mask="all"), units)], PANTRY)

    def objective(batch: Any, _: Any) -> Any:
        is_hidden = torch.rand(batch[0].shape) < 0.2
        scores = model(batch[0].masked_fill(is_hidden, MASK))
        value = functional.cross_entropy(scores, batch[0].masked_fill(~is_hidden, -100))
        return value + 0.05 * uneven(model) + 1e-3 * units.scores.logsumexp(-1).pow(2).mean()

    return learn(
        root,
        model,
        draws(recipes()[0], seed=750),
        objective,
        torch.optim.Adam(model.parameters(), 4e-3),
        steps=160,
        save_every=3,
    )
