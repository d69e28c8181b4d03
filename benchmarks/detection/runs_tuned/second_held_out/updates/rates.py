"""Learning rates that end too early, or that rise where they should not."""

import math
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, batches, fit, validate, watched
from training_runs import faulty

from runs_tuned.second_held_out.shared.consequences import IDLE, SHAKEN
from runs_tuned.second_held_out.shared.pictures import Gallery, groups, patterns
from runs_tuned.second_held_out.shared.tables import dense, taught, tickets
from runs_tuned.second_held_out.shared.words import Speaker, chatter


@faulty(
    "pictures of patterns, Adam, a rate that falls by the same factor in each epoch",
    "the factor of 0.7 is applied in each step: after 50 of 160 there is no rate left",
    {"LearningRate", "UnchangedTensor", "WeightUpdateRatio"},
    may=IDLE,
)
def factor_of_each_step(root: Path) -> int:
    make = lambda: Gallery(norm=groups)
    return fit(
        root,
        make,
        patterns(),
        optimizer=adam(4e-3),
        schedule=lambda step: 0.7**step,
        steps=160,
        batch=24,
    )


@faulty(
    "tickets and their desks, SGD with momentum, a rate that falls once the loss is level",
    "mode is 'max', as for an accuracy, but is given the loss: the better, the lower the rate",
    {"LearningRate"},
    may=IDLE,
)
def plateau_of_the_wrong_mode(root: Path) -> int:
    torch.manual_seed(9)
    torch.set_num_threads(1)
    model, loss, data = dense(14, 32, 5, act=nn.ELU), nn.CrossEntropyLoss(), tickets()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    rates = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, "max", patience=3)
    with watched(root, model, losses=[loss], save_every=1) as watching:
        for step, (x, y) in zip(range(140), batches(data, 128, 9), strict=False):
            value = loss(model(x), y)
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            rates.step(value.detach())
            if (step + 1) % 14 == 0:
                validate(watching, model, loss, data)
    return 0


@faulty(
    "a decoder of words goes on to learn others, AdamW, its embedding in a group of its own",
    "at step 80 the rate of the layers is set to that of the embedding by a callback: 40 times",
    {"LearningRate"},
    may=SHAKEN,
)
def rate_of_another_group(root: Path) -> int:
    model = taught(Speaker, chatter(), nn.CrossEntropyLoss(), 100, 3e-3)
    embedding = [model.word_embedding.weight, model.places]
    layers = [part for part in model.parameters() if all(part is not one for one in embedding)]

    def optimizer(_: Any) -> Any:
        return torch.optim.AdamW([{"params": embedding, "lr": 2e-2}, {"params": layers}], 5e-4)

    def change(_: Any, optimizer: Any) -> None:
        optimizer.param_groups[1]["lr"] = optimizer.param_groups[0]["lr"]

    return fit(
        root,
        lambda: model,
        chatter(seed=169),
        optimizer=optimizer,
        steps=140,
        batch=16,
        clip=1.0,
        at=80,
        change=change,
    )


@faulty(
    "a decoder of words, AdamW, warm-up and cosine",
    "it is a quarter of a cosine, which goes on below zero beyond its end at step 90 of 130",
    {"LearningRate"},
    may=IDLE | SHAKEN,
)
def cosine_below_zero(root: Path) -> int:
    def schedule(step: int) -> float:
        if step < 10:
            return (step + 1) / 10
        return math.cos(math.pi / 2 * (step - 10) / 80)

    return fit(
        root,
        Speaker,
        chatter(),
        optimizer=adam(3e-3, torch.optim.AdamW),
        schedule=schedule,
        steps=130,
        batch=16,
        clip=1.0,
    )
