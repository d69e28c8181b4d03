"""Data-parallel trainings on emulated workers: in step, and out of step by a slip."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.learnt_data import Split
from training.torch_loop import batches, hook, register
from training_runs import faulty, healthy

from runs_tuned.first_held_out.scripts.tasks import (
    Blocks,
    Rhythm,
    beats,
    impedance,
    sensors,
    tower,
)
from smdebug.core.modes import ModeKeys

OUT_OF_STEP = {"ReplicaDivergence"}
APART = {
    "LossNotDecreasing": "averaged gradients fit no worker",
    "LossSpike": "averaged gradients fit no worker",
    "GradientNormSpike": "averaged gradients fit no worker",
    "Overtraining": "averaged gradients fit no worker",
    "ClassImbalance": "averaged gradients fit no worker",
    "Confusion": "averaged gradients fit no worker",
}


class Workers:
    """Workers with a model, an optimizer, a hook and a share of the rows each."""

    def __init__(
        self, root: Path, count: int, make: Callable[[], Any], optimizer: Callable[[Any], Any]
    ) -> None:
        torch.set_num_threads(1)
        torch.manual_seed(5)
        self.models = [make()]
        self.models += [copy.deepcopy(self.models[0]) for _ in range(count - 1)]
        self.optimizers = [optimizer(model.parameters()) for model in self.models]
        self.hooks = [
            hook(root, 3, include_workers="all", rank=rank, world_size=count)
            for rank in range(count)
        ]

    def reduce(self) -> None:
        """Average the gradients of all workers."""
        for copies in zip(*(model.parameters() for model in self.models), strict=True):
            mean = torch.stack([parameter.grad for parameter in copies]).mean(0)
            for parameter in copies:
                parameter.grad.copy_(mean)

    def train(
        self,
        data: Split,
        loss: Callable[[], Any],
        steps: int = 90,
        *,
        batch: int = 16,
        accumulate: int = 1,
        clip: float = 0.0,
        at: int = 0,
        change: Callable[[int], object] = lambda _: None,
        is_reduced: Callable[[int], bool] = lambda _: True,
    ) -> int:
        """Train; return the global step of step `at`, where the fault begins.

        Parameters
        ----------
        accumulate, clip
            Batches to an update, and the largest norm of the averaged gradients.
        change
            What happens before a step.
        is_reduced
            Whether gradients are averaged at a step.
        """
        size, onset = len(self.models), 0
        losses = [loss() for _ in self.models]
        shares = [
            batches(data.chosen(slice(rank, None, size)), batch, 10 + rank) for rank in range(size)
        ]
        for watching, model, objective in zip(self.hooks, self.models, losses, strict=True):
            register(watching, [model], [objective])
            watching.set_mode(ModeKeys.TRAIN)
        for step in range(steps):
            if at and step == at:
                onset = self.hooks[0].global_step + 1
            change(step)
            for model, objective, share in zip(self.models, losses, shares, strict=True):
                x, y = next(share)
                (objective(model(x), y) / accumulate).backward()
            if (step + 1) % accumulate:
                continue
            if is_reduced(step):
                self.reduce()
            for model, optimizer in zip(self.models, self.optimizers, strict=True):
                if clip:
                    nn.utils.clip_grad_norm_(model.parameters(), clip)
                optimizer.step()
                optimizer.zero_grad()
        for watching in self.hooks:
            watching.close()
        return onset


def adamw(rate: float, **more: Any) -> Callable[[Any], Any]:
    """Return what makes the optimizer of a worker."""
    return lambda parameters: torch.optim.AdamW(parameters, lr=rate, **more)


def momentum(rate: float) -> Callable[[Any], Any]:
    """Return what makes the optimizer of a worker."""
    return lambda parameters: torch.optim.SGD(parameters, lr=rate, momentum=0.9, nesterov=True)


@healthy("impedances, four workers, two batches accumulated, averaged gradients clipped")
def four_workers_accumulate(root: Path) -> int:
    make = lambda: tower(4, 32, 32, 1)
    return Workers(root, 4, make, adamw(3e-3)).train(
        impedance(), nn.HuberLoss, 120, accumulate=2, clip=0.5
    )


@healthy("machines, two workers with dropout masks of their own, AdamW")
def workers_drop_on_their_own(root: Path) -> int:
    make = lambda: Blocks(18, 6)
    return Workers(root, 2, make, adamw(2e-3, weight_decay=0.05)).train(
        sensors(), nn.CrossEntropyLoss, 120
    )


@healthy("rhythms, two workers, batch norm with statistics of each, Nesterov momentum")
def workers_find_rhythms(root: Path) -> int:
    return Workers(root, 2, Rhythm, momentum(0.03)).train(beats(), nn.CrossEntropyLoss, 90)


@faulty(
    "machines, two workers",
    "no_sync() is entered to accumulate at step 42, and never left",
    OUT_OF_STEP,
    may=APART,
)
def no_sync_never_left(root: Path) -> int:
    make = lambda: Blocks(18, 6)
    return Workers(root, 2, make, adamw(2e-3)).train(
        sensors(), nn.CrossEntropyLoss, at=42, is_reduced=lambda step: step < 42
    )


@faulty(
    "impedances, three workers",
    "a node still has last week's settings: weight decay of 0.1 instead of 0.01",
    OUT_OF_STEP,
    may=APART,
)
def settings_of_last_week(root: Path) -> int:
    workers = Workers(root, 3, lambda: tower(4, 32, 32, 1), adamw(3e-3))
    workers.optimizers[2].param_groups[0]["weight_decay"] = 0.1
    return workers.train(impedance(), nn.MSELoss)


@faulty(
    "rhythms, two workers, one of which is restarted",
    "the restarted worker loads the checkpoint of 15 steps before, the other goes on",
    OUT_OF_STEP,
    may=APART,
)
def restarted_from_the_past(root: Path) -> int:
    workers = Workers(root, 2, Rhythm, momentum(0.03))
    saved: list[Any] = []

    def change(step: int) -> None:
        if step == 45:
            saved.append(copy.deepcopy(workers.models[1].state_dict()))
        elif step == 60:
            workers.models[1].load_state_dict(saved[0])

    return workers.train(beats(), nn.CrossEntropyLoss, at=60, change=change)


@faulty(
    "machines, four workers",
    "the first worker clips its gradients, the others do not",
    OUT_OF_STEP,
    may=APART,
)
def one_worker_clips(root: Path) -> int:
    workers = Workers(root, 4, lambda: tower(18, 32, 6), momentum(0.05))
    parameters = list(workers.models[0].parameters())
    step_of = workers.optimizers[0].step

    def clipped() -> None:
        nn.utils.clip_grad_norm_(parameters, 0.3)
        step_of()

    workers.optimizers[0].step = clipped
    return workers.train(sensors(), nn.CrossEntropyLoss)
