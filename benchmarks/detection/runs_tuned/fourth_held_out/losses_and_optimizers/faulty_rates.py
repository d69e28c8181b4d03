"""Learning rates that are zero, that jump or that end too soon, and weights that grow."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.fourth_held_out.losses_and_optimizers.shared.consequences import DAMAGED, UNTAUGHT
from runs_tuned.fourth_held_out.losses_and_optimizers.shared.lessons import (
    LETTERS,
    TOPICS,
    WORDS,
    addresses,
    dice,
    letters_to_editors,
    lifts,
    plaids,
    pumps,
)
from runs_tuned.fourth_held_out.losses_and_optimizers.shared.loops import dealt, learn, of
from runs_tuned.fourth_held_out.losses_and_optimizers.shared.networks import (
    Bag,
    Recalling,
    Weaver,
    stack,
)

faulty = training_runs.faulty
of_language = functools.partial(faulty, kind="language_model")


@faulty(
    "defects of lifts, six labels, SGD with momentum, a rate found by a sweep before the training",
    "a restarted callback sweeps again after step 110 and takes the last rate, not the steepest",
    {"LearningRate"},
    may=DAMAGED,
)
def rate_finder_runs_again(root: Path) -> int:
    torch.manual_seed(710)
    model = stack(20, 48, 24, 6)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)

    def before(step: int) -> None:
        if step == 110:
            optimizer.param_groups[0]["lr"] = 2.0

    return learn(
        root,
        model,
        of(model, nn.BCEWithLogitsLoss()),
        dealt(*lifts(900, 710), size=32, seed=710),
        optimizer,
        steps=190,
        before=before,
        held_out=lifts(60, 711),
        at=110,
    )


@of_language(
    "a GRU of addresses, AdamW, a warm-up over four epochs of 60 batches each",
    "the warm-up is the number of the epoch over four, and epochs count from 0: the first is idle",
    {"LearningRate"},
    may=UNTAUGHT,
)
def first_epoch_is_zero(root: Path) -> int:
    torch.manual_seed(711)
    model = Recalling(16, 40, len(LETTERS), words=len(LETTERS))
    return learn(
        root,
        model,
        of(model, nn.CrossEntropyLoss()),
        dealt(*addresses(960, 711), size=16, seed=711),
        torch.optim.AdamW(model.parameters(), 8e-3),
        steps=300,
        save_every=1,
        schedule=lambda step: min(1.0, (step // 60) / 4),
        clip=1.0,
        include_collections=["losses", "learning_rates", "gradient_norms", "weights"],
    )


@faulty(
    "woven patterns by convolutions, Nesterov momentum, a rate that falls on a plateau",
    "the patience of three counts batches, whose losses are noisy, where epochs are meant",
    {"LearningRate"},
    may=UNTAUGHT,
)
def patience_counts_batches(root: Path) -> int:
    torch.manual_seed(712)
    model = Weaver()
    optimizer = torch.optim.SGD(model.parameters(), 0.04, momentum=0.9, nesterov=True)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.3, patience=3, eps=0.0)

    def update(loss: Any) -> None:
        optimizer.step()
        plateau.step(float(loss.detach()))

    return learn(
        root,
        model,
        of(model, nn.CrossEntropyLoss()),
        dealt(*plaids(600, 712), size=24, seed=712),
        optimizer,
        steps=170,
        update=update,
        held_out=plaids(100, 713),
        at=60,
    )


@faulty(
    "pieces are ranked by what they are read with: words beside their topic, two tables, Adam",
    "the margin is 50, of scores in per cent, but scores are products: they must grow",
    {"NormGrowth"},
    may=DAMAGED,
    kind="contrastive",
)
def margin_in_per_cent(root: Path) -> int:
    torch.manual_seed(713)
    model = nn.ModuleDict({"words": nn.Embedding(WORDS, 16), "topics": nn.Embedding(TOPICS, 16)})
    for table in model.values():
        nn.init.normal_(table.weight, std=0.1)
    random = dice(713)

    def objective(batch: Any) -> Any:
        words, topic = batch
        other = (topic + torch.randint(1, TOPICS, topic.shape, generator=random)) % TOPICS
        read = model["words"](words).mean(1)
        right, wrong = ((read * model["topics"](each)).sum(1) for each in (topic, other))
        return (50 - right + wrong).relu().mean()

    return learn(
        root,
        model,
        objective,
        dealt(*letters_to_editors(800, 713), size=32, seed=713),
        torch.optim.Adam(model.parameters(), 0.02),
        steps=160,
        save_every=2,
    )


@faulty(
    "topics of letters, layers of different widths get rates of their own (muP), Adam",
    "the rate of the head is multiplied by the width, 64, where it should be divided by it",
    {"NormGrowth"},
    may=DAMAGED,
)
def multiplied_by_the_width(root: Path) -> int:
    torch.manual_seed(714)
    model = nn.Sequential(Bag(WORDS, 64, 64), nn.LayerNorm(64), nn.SiLU(), nn.Linear(64, TOPICS))
    nn.init.normal_(model[3].weight, std=1 / 64)
    optimizer = torch.optim.Adam(
        [
            {"params": [*model[0].parameters(), *model[1].parameters()], "lr": 2e-3},
            {"params": model[3].parameters(), "lr": 2e-3 * 64},
        ]
    )
    x, y = letters_to_editors(900, 714)
    return learn(
        root,
        model,
        of(model, nn.CrossEntropyLoss(label_smoothing=0.0)),
        dealt(x, y, size=24, seed=714),
        optimizer,
        steps=150,
        save_every=2,
        held_out=letters_to_editors(150, 715),
    )


@faulty(
    "directions of largest spread in readings of pumps, by ascent of the gradient, SGD",
    "directions are normalised after each step, but on a copy: their lengths have no bound",
    {"NormGrowth"},
    may=DAMAGED,
    kind="autoencoder",
)
def normalised_on_a_copy(root: Path) -> int:
    torch.manual_seed(715)
    readings = pumps(800, 715)[0] @ torch.diag(torch.linspace(2.0, 0.3, 12))
    x = torch.cat([readings, readings.roll(1, 0)], 1)
    model = nn.Linear(24, 4, bias=False)

    def objective(batch: Any) -> Any:
        found = model(batch[0])
        spread = found.pow(2).mean(0)
        alike = (found.T @ found / len(found)).tril(-1).pow(2).sum()
        return (alike / spread.detach().sum()) - spread.sum()

    def after(_: int) -> None:
        copied = model.weight.detach().clone()
        copied.copy_(functional.normalize(copied, dim=1))

    return learn(
        root,
        model,
        objective,
        dealt(x, size=40, seed=715),
        torch.optim.SGD(model.parameters(), 5e-3),
        steps=120,
        after=after,
    )
