"""Restarts that lose state, trainings that hang, and workers that part from each other."""

import copy
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from runs_tuned.seventh_held_out.losses_and_optimizers.shared.consequences import SHAKEN
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.loops import (
    clock,
    copies,
    cosine,
    linear,
    replicas,
    resumed,
    train,
)
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.networks import (
    Beat,
    Forecast,
    Opinion,
    Speaker,
    convolutions,
    layers,
)
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.signals import (
    heartbeats,
    shapes,
    walks,
)
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.tables import houses, pumps
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.texts import (
    REVIEW_WORDS,
    SIGNS,
    recipes,
    reviews,
)

faulty = training_runs.faulty
of_language = functools.partial(faulty, kind="language_model")
MINUTE = 60.0

# Restarts


def _with_prefix(saved: Mapping[str, Any], model: Any, optimizer: Any, scheduler: Any) -> None:
    wrapped = {f"module.{name}": value for name, value in saved["model"].items()}
    model.load_state_dict(wrapped, strict=False)
    optimizer.load_state_dict(saved["optimizer"])
    scheduler.load_state_dict(saved["scheduler"])


@of_language(
    "recipes by a decoder go on from a checkpoint, AdamW, warm-up and a cosine, clipped",
    "names in the checkpoint begin with `module.`, and with strict=False none of them is loaded",
    {"ResumeLostState"},
    may=SHAKEN,
)
def names_with_a_prefix(root: Path) -> int:
    return resumed(
        root,
        lambda: Speaker(len(SIGNS)),
        nn.CrossEntropyLoss(),
        recipes(1500, 7270),
        functools.partial(torch.optim.AdamW, lr=4e-3),
        lambda optimizer: cosine(optimizer, 12, 230),
        stops=((120, 136),),
        steps=210,
        batch=20,
        clip=1.0,
        seed=7270,
        restore=_with_prefix,
    )


def _without_moments(saved: Mapping[str, Any], model: Any, optimizer: Any, scheduler: Any) -> None:
    model.load_state_dict(saved["model"])
    scheduler.load_state_dict(saved["scheduler"])
    for group, rate in zip(optimizer.param_groups, scheduler.get_last_lr(), strict=True):
        group["lr"] = rate


@faulty(
    "prices of houses by layers go on from a checkpoint, Adam at one rate",
    "the checkpoint has the weights, but not the moments of Adam",
    {"ResumeLostState"},
    may=SHAKEN,
)
def moments_not_saved(root: Path) -> int:
    return resumed(
        root,
        lambda: layers(6, 64, 64, 1),
        nn.MSELoss(),
        houses(2400, 7272),
        functools.partial(torch.optim.Adam, lr=2e-2),
        lambda optimizer: LambdaLR(optimizer, lambda _: 1.0),
        stops=((200, 216),),
        steps=300,
        batch=240,
        seed=7272,
        restore=_without_moments,
    )


def _without_schedule(saved: Mapping[str, Any], model: Any, optimizer: Any, scheduler: Any) -> None:
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    # The script makes the schedule after that, and it sets its first rate.
    for group, rate in zip(optimizer.param_groups, scheduler.get_last_lr(), strict=True):
        group["lr"] = rate


@faulty(
    "praise in reviews by an encoder goes on from a checkpoint, AdamW, warm-up and a line down, "
    "clipped",
    "the schedule is not in the checkpoint: the rate is warmed up again, to where it began",
    {"ResumeLostState"},
    may=SHAKEN | {"LearningRate": "the rate rises once more"},
)
def warmed_up_once_more(root: Path) -> int:
    return resumed(
        root,
        lambda: Opinion(REVIEW_WORDS, blocks=1),
        nn.CrossEntropyLoss(),
        reviews(3000, 7274),
        functools.partial(torch.optim.AdamW, lr=3e-3),
        lambda optimizer: linear(optimizer, 15, 230),
        stops=((140, 155),),
        steps=220,
        clip=1.0,
        seed=7274,
        restore=_without_schedule,
    )


# Trainings that hang


@faulty(
    "ways to move by a GRU, Adam, clipped, five seconds a step",
    "at step 80 the network drive with the data hangs: the loader waits 55 minutes",
    {"StalledTrainingRule"},
)
def network_drive_hangs(root: Path) -> int:
    torch.manual_seed(7280)
    model = Forecast(nn.GRU, 3, 24, 4)
    with clock(5.0, {80: 55 * MINUTE}):
        return train(
            root,
            model,
            nn.CrossEntropyLoss(),
            walks(1500, 7280),
            torch.optim.Adam(model.parameters(), 5e-3),
            steps=130,
            clip=1.0,
            valid_every=0,
            fault_at=80,
        )


@of_language(
    "recipes by a decoder on two workers, AdamW, clipped, eight seconds a step",
    "at step 50 both wait for an answer of each other for 90 minutes, until a time-out",
    {"StalledTrainingRule"},
)
def workers_wait_for_each_other(root: Path) -> int:
    torch.manual_seed(7282)
    with clock(4.0, {100: 90 * MINUTE}):
        return replicas(
            root,
            copies(Speaker(len(SIGNS), 24, blocks=1)),
            nn.CrossEntropyLoss,
            recipes(1500, 7282),
            lambda model: torch.optim.AdamW(model.parameters(), 4e-3),
            steps=90,
            batch=12,
            save_every=1,
            clip=1.0,
            fault_at=50,
        )


@faulty(
    "shapes by convolutions on two workers, momentum, forty seconds a step",
    "the second worker runs out of memory at step 60 and is gone; the first goes on alone",
    {"StalledTrainingRule"},
    may={"LossSpike": "losses of half as many rows", "GradientNormSpike": "fewer rows"},
)
def second_worker_is_gone(root: Path) -> int:
    torch.manual_seed(7284)
    with clock(20.0, {}):
        return replicas(
            root,
            copies(convolutions(6)),
            nn.CrossEntropyLoss,
            shapes(1500, 7284),
            lambda model: torch.optim.SGD(model.parameters(), 0.03, momentum=0.9),
            steps=180,
            save_every=1,
            ends={1: 60},
            fault_at=60,
        )


# Workers that part


@faulty(
    "what ails pumps by layers on two workers, momentum, gradients are averaged by hand",
    "each worker has a seed of its own, and the first weights are not sent from one to the other",
    {"ReplicaDivergence"},
    may=SHAKEN,
)
def seeds_of_their_own(root: Path) -> int:
    models = []
    for rank in range(2):
        torch.manual_seed(7290 + rank)
        models.append(layers(10, 40, 40, 4))
    return replicas(
        root,
        models,
        nn.CrossEntropyLoss,
        pumps(2000, 7290),
        lambda model: torch.optim.SGD(model.parameters(), 0.03, momentum=0.9),
        steps=120,
        save_every=1,
    )


@of_language(
    "recipes by a decoder on two workers, AdamW, clipped",
    "after the validation at step 40 the plain model is called, not its wrapper: gradients are no "
    "longer averaged",
    {"ReplicaDivergence"},
    may=SHAKEN,
)
def past_the_wrapper(root: Path) -> int:
    torch.manual_seed(7292)
    return replicas(
        root,
        copies(Speaker(len(SIGNS), 24, blocks=1)),
        nn.CrossEntropyLoss,
        recipes(1500, 7292),
        lambda model: torch.optim.AdamW(model.parameters(), 5e-3),
        steps=100,
        batch=12,
        save_every=2,
        clip=1.0,
        is_synced=lambda step: step < 40,
        fault_at=40,
    )


@faulty(
    "rhythms of heartbeats by convolutions on three workers, Adam, averaged weights to validate",
    "at step 61 the first worker swaps in its averaged weights to validate, and does not swap back",
    {"ReplicaDivergence"},
    may=SHAKEN,
)
def averages_not_swapped_back(root: Path) -> int:
    torch.manual_seed(7294)
    models = copies(Beat(8), 3)
    average = copy.deepcopy(models[0].state_dict())

    def after(step: int) -> None:
        for name, value in models[0].state_dict().items():
            if value.dtype.is_floating_point:
                average[name].lerp_(value, 0.05)
        if step == 60:
            models[0].load_state_dict(average)

    return replicas(
        root,
        models,
        nn.CrossEntropyLoss,
        heartbeats(1500, 7294),
        lambda model: torch.optim.Adam(model.parameters(), 3e-3),
        steps=110,
        save_every=2,
        after=after,
        fault_at=61,
    )
