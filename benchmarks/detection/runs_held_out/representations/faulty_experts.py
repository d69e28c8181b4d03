"""Mixtures of experts that use few of them."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_held_out.representations.shared.consequences import IDLE
from runs_held_out.representations.shared.data import (
    LETTERS,
    RECIPE_WORDS,
    names,
    recipes,
    standardised,
    table,
)
from runs_held_out.representations.shared.loop import cosine, loader, train
from runs_held_out.representations.shared.networks import (
    Decoder,
    Layer,
    MixtureLayer,
    SelfAttention,
    layers,
    next_word,
)

of_texts = functools.partial(training_runs.faulty, kind="language_model")


class BiasedRouter(nn.Module):
    """Scores of experts, with a bias that is moved by their loads and not by gradients."""

    def __init__(self, width: int, experts: int) -> None:
        super().__init__()
        self.linear = nn.Linear(width, experts, bias=False)
        self.register_buffer("bias", torch.zeros(experts))

    def forward(self, x: Any) -> Any:
        return self.linear(x) + self.bias


@of_texts(
    "names by eight experts, one a letter, evened out by biases instead of a loss, AdamW",
    "the bias of an expert with much load is raised, and not lowered: the full get fuller",
    {"RouterCollapse"},
    may=IDLE,
)
def biases_follow_the_load(root: Path) -> int:
    torch.manual_seed(811)
    router = BiasedRouter(32, 8)
    mixture = MixtureLayer(32, 8, 1, router=router)
    model = Decoder(LETTERS, 32, [Layer(32, SelfAttention(32, 4, causal=True), mixture)])
    loss = nn.CrossEntropyLoss(ignore_index=0)

    def even_out(_: int) -> None:
        router.bias += 0.3 * (mixture.load - mixture.load.mean())

    return train(
        root,
        model,
        loader(names(), seed=811),
        next_word(model, loss),
        torch.optim.AdamW(model.parameters(), 3e-3),
        losses=(loss,),
        factor=cosine(10, 200, 0.1),
        clip=1.0,
        steps=200,
        after=even_out,
    )


class TwoInputs(nn.Module):
    """Experts that are given scaled columns, and a router that is given the table's."""

    def __init__(self, columns: int, kinds: int, experts: int = 6) -> None:
        super().__init__()
        self.top_k = 1
        self.router = nn.Linear(columns, experts)
        self.experts = nn.ModuleList(layers(columns, 24, kinds) for _ in range(experts))

    def forward(self, raw: Any, scaled: Any) -> Any:
        chances = self.router(raw).softmax(-1)
        best = functional.one_hot(chances.argmax(-1), len(self.experts))
        outputs = torch.stack([expert(scaled) for expert in self.experts], 1)
        return (outputs * (chances * best)[..., None]).sum(1)


@training_runs.faulty(
    "tumours by six experts, one a row, that a router chooses by the columns of the table, Adam",
    "the router is given columns that were not scaled, and areas of 2,000 decide: one is chosen",
    {"RouterCollapse"},
    may=IDLE,
)
def router_of_raw_columns(root: Path) -> int:
    torch.manual_seed(812)
    x, kind = table("breast_cancer")
    model, loss = TwoInputs(30, 2), nn.CrossEntropyLoss()
    return train(
        root,
        model,
        loader(x, standardised(x), kind, size=48, seed=812),
        lambda batch, _: loss(model(*batch[:2]), batch[2]),
        torch.optim.Adam(model.parameters(), 1e-3),
        losses=(loss,),
        steps=130,
    )


class ChosenBeforeSoftmax(MixtureLayer):
    """Experts weighted by the softmax of the chosen scores alone."""

    def weights(self, logits: Any) -> tuple[Any, Any]:
        """Return the weights of the chosen experts, and which these are."""
        best, chosen = logits.topk(self.top_k, -1)
        return best.softmax(-1), chosen


@of_texts(
    "recipes by four experts, a router that begins at zero, AdamW, clipped, labels smoothed",
    "softmax comes after the choice of one: its weight is always 1, and the router learns nothing",
    {"RouterCollapse"},
    may=IDLE,
)
def softmax_of_the_only_choice(root: Path) -> int:
    torch.manual_seed(813)
    mixture = ChosenBeforeSoftmax(48, 4, 1)
    nn.init.zeros_(mixture.router.weight)
    stack = [
        Layer(48, SelfAttention(48, 4, causal=True)),
        Layer(48, SelfAttention(48, 4, causal=True), mixture),
    ]
    model = Decoder(RECIPE_WORDS, 48, stack, std=0.1)
    loss = nn.CrossEntropyLoss(ignore_index=0, label_smoothing=0.05)
    return train(
        root,
        model,
        loader(recipes()[0], seed=813),
        next_word(model, loss),
        torch.optim.AdamW(model.parameters(), 2e-3),
        losses=(loss,),
        clip=1.0,
        steps=140,
    )
