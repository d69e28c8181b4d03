"""Scripts that run again: resumed from checkpoints, repeated by the same seed, or interrupted."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.logs import CsvLog
from training.torch_loop import adam, batches, fit
from training_runs import faulty, healthy

from rule_core.model.segments import global_step
from runs_tuned.first_held_out.boosted import tables
from runs_tuned.first_held_out.boosted.tables import grow, halves
from runs_tuned.first_held_out.scripts.tasks import (
    Blocks,
    Rhythm,
    beats,
    impedance,
    sensors,
    tower,
)
from runs_tuned.stalled import passing

DIFFERS = {"SimilarAcrossRuns"}


# Resumed


def interrupted(
    root: Path,
    model: Any,
    data: Any,
    loss: Any,
    forget: Callable[[dict[str, Any]], object] = lambda _: None,
    rate: float = 4e-3,
) -> int:
    """Train to step 130, resume from the checkpoint of step 100, and train to step 240.

    Parameters
    ----------
    forget
        Changes what is loaded of the checkpoint.
    """
    torch.set_num_threads(1)
    optimizer = torch.optim.AdamW(model.parameters(), rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 260, rate / 20)
    parts = {"model": model, "optimizer": optimizer, "schedule": schedule}
    checkpoint: dict[str, Any] = {}
    rows = [batch for batch, _ in zip(batches(data, 32, 31), range(240), strict=False)]
    with CsvLog(root) as log:
        for number, (start, end) in enumerate([(0, 130), (100, 240)]):
            if number:
                forget(checkpoint)
                for name, state in checkpoint.items():
                    parts[name].load_state_dict(state)
            for step in range(start, end):
                if step == 100 and not number:
                    checkpoint |= copy.deepcopy(
                        {name: part.state_dict() for name, part in parts.items()}
                    )
                x, y = rows[step]
                optimizer.zero_grad()
                value = loss(model(x), y)
                value.backward()
                norm = nn.utils.clip_grad_norm_(model.parameters(), 5.0)
                optimizer.step()
                log.write(
                    step,
                    loss=float(value.detach()),
                    grad_norm=float(norm),
                    lr=schedule.get_last_lr()[0],
                )
                schedule.step()
                if (step + 1) % 20 == 0:
                    model.eval()
                    with torch.no_grad():
                        log.write(step, val=float(loss(model(data.test_x), data.test_y)))
                    model.train()
    return global_step(1, 100)


@healthy("rhythms, resumed with optimizer and cosine schedule, the same batches once more")
def rhythms_resumed(root: Path) -> int:
    torch.manual_seed(41)
    interrupted(root, Rhythm(), beats(), nn.CrossEntropyLoss())
    return 0


@healthy("impedances, resumed with all state, a robust loss")
def impedances_resumed(root: Path) -> int:
    torch.manual_seed(42)
    interrupted(root, tower(4, 32, 32, 1), impedance(), nn.SmoothL1Loss())
    return 0


@faulty(
    "machines, resumed",
    "the checkpoint was written by a wrapper: no key of the weights fits, and strict is off",
    {"ResumeLostState"},
    may={
        "LossSpike": "the loss jumps at the border",
        "GradientNormSpike": "gradients jump at the border",
        "LossNotDecreasing": "the loss jumps at the border",
        "Overfit": "the model starts again",
        "Overtraining": "the model starts again",
    },
)
def no_key_fits(root: Path) -> int:
    torch.manual_seed(43)
    model = Blocks(18, 6)
    start = copy.deepcopy(model.state_dict())

    def forget(checkpoint: dict[str, Any]) -> None:
        checkpoint["model"] = start

    return interrupted(root, model, sensors(), nn.CrossEntropyLoss(), forget, rate=1.5e-3)


# Repeated


def machines(root: Path, drop: float = 0.25, seed: int = 44) -> int:
    """Train blocks with dropout on the states of machines."""
    make = lambda: Blocks(18, 6, drop=drop)
    return fit(root, make, sensors(), optimizer=adam(2e-3), steps=100, seed=seed)


def lives(root: Path, **params: Any) -> int:
    """Grow trees on times of survival, with rows and columns sampled."""
    return grow(
        root,
        *halves(*tables.lifetimes(seed=45)),
        25,
        objective="survival:cox",
        max_depth=3,
        eta=0.1,
        subsample=0.8,
        colsample_bytree=0.7,
        tree_method="hist",
        **params,
    )


@healthy("machines, dropout, the seed is set: the run to compare with")
def machines_first(root: Path) -> int:
    return machines(root)


@healthy("machines, dropout, repeated by the same seed", other="machines_first")
def machines_repeated(root: Path) -> int:
    return machines(root)


@healthy("XGBoost, times of survival, the run to compare with", kind="boosted_trees")
def lives_first(root: Path) -> int:
    return lives(root)


@healthy(
    "XGBoost, times of survival, repeated by the same seed",
    other="lives_first",
    kind="boosted_trees",
)
def lives_repeated(root: Path) -> int:
    return lives(root)


@faulty(
    "machines, dropout, repeated by the same seed",
    "a look at a random sample before the training moves the state of the generator",
    DIFFERS,
    other="machines_first",
)
def generator_moved(root: Path) -> int:
    def make() -> Any:
        model = Blocks(18, 6, drop=0.25)
        torch.rand(3)
        return model

    return fit(root, make, sensors(), optimizer=adam(2e-3), steps=100, seed=44)


@faulty(
    "machines, dropout, repeated by the same seed",
    "a new version of the preprocessing clips outliers",
    DIFFERS,
    other="machines_first",
)
def outliers_clipped(root: Path) -> int:
    make = lambda: Blocks(18, 6, drop=0.25)
    data = sensors().of(lambda x: x.clamp(-2.5, 2.5))
    return fit(root, make, data, optimizer=adam(2e-3), steps=100, seed=44)


@faulty(
    "XGBoost, times of survival, repeated by the same seed",
    "another machine's configuration has coarser bins of the features",
    DIFFERS,
    other="lives_first",
    kind="boosted_trees",
)
def coarser_bins(root: Path) -> int:
    return lives(root, max_bin=16)


# Interrupted


@faulty(
    "machines, 3 seconds a step, data on a network drive",
    "the drive is gone for 50 minutes; reads wait without an error",
    {"StalledTrainingRule"},
)
def drive_gone(root: Path) -> int:
    with passing(3.0, {47: 3000.0}):
        machines(root, seed=46)
    return 46


@faulty(
    "rhythms, 40 seconds a step on a shared cluster",
    "the scheduler suspends the job for three hours, twice",
    {"StalledTrainingRule"},
)
def suspended_twice(root: Path) -> int:
    with passing(40.0, {23: 10800.0, 58: 10800.0}):
        fit(root, Rhythm, beats(), optimizer=adam(5e-3), steps=120)
    return 22
