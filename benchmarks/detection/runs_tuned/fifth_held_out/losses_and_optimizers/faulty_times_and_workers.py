"""Trainings that hang, and workers that no longer train the same model."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch.nn import functional

from runs_tuned.fifth_held_out.losses_and_optimizers.shared.consequences import BROKEN
from runs_tuned.fifth_held_out.losses_and_optimizers.shared.data import (
    STITCHES,
    dates,
    flags,
    knitting,
    patches,
    quakes,
    rides,
)
from runs_tuned.fifth_held_out.losses_and_optimizers.shared.loops import (
    by,
    passing_time,
    practice,
    served,
    waned,
)
from runs_tuned.fifth_held_out.losses_and_optimizers.shared.networks import (
    Gated,
    Seismic,
    Teller,
    folded,
    layers,
)
from runs_tuned.fifth_held_out.losses_and_optimizers.shared.workers import (
    Gradients,
    averaged,
    in_parallel,
)

faulty = training_runs.faulty
of_language = functools.partial(faulty, kind="language_model")
MINUTE = 60.0

# Trainings that hang


@of_language(
    "stitches by gated convolutions, NAdam, four seconds a step, numbers are sent to a tracker",
    "the tracker is down at step 64: sending is tried again, each time after twice as long, for "
    "68 minutes in all",
    {"StalledTrainingRule"},
)
def tracker_is_down(root: Path) -> int:
    torch.manual_seed(1640)
    model = Gated(STITCHES, 24, 2)
    with passing_time(4.0, {64: 68 * MINUTE}):
        return practice(
            root,
            model,
            by(model),
            served(*knitting(900, 1640), size=16, seed=1640),
            torch.optim.NAdam(model.parameters(), 4e-3),
            steps=110,
            fault_at=63,
        )


@faulty(
    "patches of a photograph through a narrow middle, Adam, fifteen seconds a step",
    "from the third epoch on its archive is unpacked again at the start of each, which takes 42 "
    "minutes",
    {"StalledTrainingRule"},
    kind="autoencoder",
)
def archive_unpacked_again(root: Path) -> int:
    torch.manual_seed(1641)
    model = layers(64, 40, 12, 40, 64)
    with passing_time(15.0, dict.fromkeys((66, 99, 132), 42 * MINUTE)):
        return practice(
            root,
            model,
            lambda batch: functional.mse_loss(model(batch[0]), batch[0]),
            served(patches(), size=32, seed=1641),
            torch.optim.Adam(model.parameters(), 3e-3),
            steps=140,
            fault_at=65,
        )


@faulty(
    "minutes of journeys on three workers, momentum, ten seconds a step",
    "at step 40 the third worker waits for a lease of its rows, and the others wait for it: two "
    "hours pass",
    {"StalledTrainingRule"},
)
def lease_of_a_worker(root: Path) -> int:
    torch.manual_seed(1642)
    with passing_time(10 / 3, {3 * 40 + 2: 120 * MINUTE}):
        return in_parallel(
            root,
            layers(11, 24, 24, 1),
            lambda model, batch: functional.mse_loss(model(batch[0]), batch[1]),
            rides(900, 1642),
            functools.partial(torch.optim.SGD, lr=0.03, momentum=0.9),
            workers=3,
            steps=90,
            save_every=1,
            size=16,
            fault_at=39,
        )


# Workers that no longer train the same model


@of_language(
    "dates by a decoder on two workers, AdamW, warm-up and cosine, clipped",
    "the second worker made queries after keys: their gradients are taken for each other's",
    {"ReplicaDivergence"},
    may=BROKEN,
)
def keys_before_queries(root: Path) -> int:
    torch.manual_seed(1643)

    def exchange(step: int, gradients: Gradients) -> Gradients:
        sent = dict(gradients)
        for layer in (name for name in gradients if name.endswith(".query.weight")):
            query, key = layer, layer.replace(".query.", ".key.")
            sent[query] = [gradients[query][0], gradients[key][1]]
            sent[key] = [gradients[key][0], gradients[query][1]]
        means = averaged(step, sent)
        taken = dict(means)
        for layer in (name for name in gradients if name.endswith(".query.weight")):
            query, key = layer, layer.replace(".query.", ".key.")
            taken[query] = [means[query][0], means[key][0]]
            taken[key] = [means[key][0], means[query][0]]
        return taken

    return in_parallel(
        root,
        Teller(width=24),
        lambda model, batch: functional.cross_entropy(model(batch[0]), batch[1]),
        dates(1000, 1643),
        functools.partial(torch.optim.AdamW, lr=4e-3),
        steps=110,
        save_every=4,
        size=12,
        clip=1.0,
        exchange=exchange,
        schedule=waned(10, 120, 0.1),
    )


@faulty(
    "arrivals of quakes on three workers, Adam, gradients are averaged during the next read",
    "the third worker does not wait for the mean: it takes that of the step before",
    {"ReplicaDivergence"},
    may=BROKEN,
)
def one_step_behind(root: Path) -> int:
    torch.manual_seed(1644)
    before: Gradients = {}

    def exchange(step: int, gradients: Gradients) -> Gradients:
        means = averaged(step, gradients)
        late = {name: [*each[:2], before.get(name, each)[2]] for name, each in means.items()}
        before.update(means)
        return late

    return in_parallel(
        root,
        Seismic(8, outs=(1,)),
        lambda model, batch: functional.mse_loss(model(batch[0]), batch[1]),
        quakes(900, 1644)[:2],
        functools.partial(torch.optim.Adam, lr=3e-3),
        workers=3,
        steps=100,
        save_every=4,
        size=16,
        exchange=exchange,
    )


@faulty(
    "layouts of flags on two workers, residual convolutions, Nesterov momentum; from step 40 on "
    "rows of the last layer are limited to a length of 0.5",
    "they are limited where the log is written, by the first worker alone",
    {"ReplicaDivergence"},
    may=BROKEN,
)
def limited_by_the_first(root: Path) -> int:
    torch.manual_seed(1645)
    x, layout, _ = flags(900, 1645, 1.0)

    def changed(step: int, models: list[Any]) -> None:
        if step >= 40:
            with torch.no_grad():
                weight = models[0][-1].weight
                weight.copy_(weight.renorm(2, 0, 0.5))

    return in_parallel(
        root,
        folded(3, 6, 8),
        lambda model, batch: functional.cross_entropy(model(batch[0]), batch[1]),
        (x, layout),
        functools.partial(torch.optim.SGD, lr=0.03, momentum=0.9, nesterov=True),
        steps=90,
        save_every=2,
        size=16,
        changed=changed,
        fault_at=40,
    )
