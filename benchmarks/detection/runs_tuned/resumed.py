"""Trainings that are interrupted and resumed from a checkpoint, with a CSV log of their losses."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.language import Gpt, corpus
from training.learnt_data import Split, diabetes, digits, images
from training.logs import CsvLog
from training.small_networks import Cnn, mlp
from training.torch_loop import adam, batches, sgd
from training_runs import faulty, healthy

from rule_core.model.segments import global_step
from runs_tuned.faulty.learning import BLOWN_UP

JUMPS = BLOWN_UP | {
    "LossSpike": "the loss jumps at the border",
    "GradientNormSpike": "gradients jump at the border",
    "LearningRate": "the rate jumps at the border",
    "Overfit": "the model starts again",
}
LOST = {"ResumeLostState"}
Change = Callable[[Any, Any], object]


def resumed(
    root: Path,
    make: Callable[[], Any],
    data: Split,
    optimizer: Any,
    *,
    loss: Any = None,
    steps: int = 160,
    end: int = 100,
    checkpoint: int = 80,
    every: int = 1,
    batch: int = 32,
    change: Change = lambda *_: None,
    data_after: Split | None = None,
) -> int:
    """Train up to `end`, go back to the checkpoint, and go on; return the first step after it.

    Parameters
    ----------
    every
        How many steps lie between two rows of the log.
    change
        What the resumed script does to the model and the optimizer of the checkpoint.
    """
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model, loss = make(), loss or nn.CrossEntropyLoss()
    optimizer_ = optimizer(model.parameters())
    saved: Any = None

    def train(start: int, stop: int, loader: Any) -> None:
        nonlocal saved
        for step, (x, y) in zip(range(start, stop), loader, strict=False):
            if step == checkpoint and saved is None:
                saved = copy.deepcopy((model.state_dict(), optimizer_.state_dict()))
            value = loss(model(x), y)
            optimizer_.zero_grad()
            value.backward()
            norm = nn.utils.clip_grad_norm_(model.parameters(), float("inf"))
            optimizer_.step()
            if step % every == 0:
                rate = optimizer_.param_groups[0]["lr"]
                log.write(step, loss=float(value.detach()), lr=rate, grad_norm=float(norm))
            if step % (20 * every) == 0:
                with torch.no_grad():
                    log.write(step, val=float(loss(model(data.test_x), data.test_y)))

    with CsvLog(root) as log:
        train(0, end, batches(data, batch))
        model.load_state_dict(saved[0])
        optimizer_.load_state_dict(saved[1])
        change(model, optimizer_)
        train(checkpoint, steps, batches(data_after or data, batch, 1))
    return global_step(1, checkpoint)


@healthy("digits, resumed from a checkpoint of 20 steps before")
def resumed_digits(root: Path) -> int:
    resumed(root, mlp(64, 48, 32, 10), digits(), sgd(0.05, momentum=0.9))
    return 0


@healthy("a GPT, resumed from a checkpoint", kind="language_model")
def resumed_gpt(root: Path) -> int:
    resumed(root, Gpt, corpus(), adam(3e-3), batch=16)
    return 0


@healthy("digits, convolutions, resumed with a lower rate")
def resumed_at_a_lower_rate(root: Path) -> int:
    def lower(_: Any, optimizer: Any) -> None:
        optimizer.param_groups[0]["lr"] *= 0.3

    resumed(root, Cnn, images(), sgd(0.05, momentum=0.9), change=lower)
    return 0


@healthy("diabetes, resumed, every fifth step logged")
def resumed_diabetes(root: Path) -> int:
    resumed(
        root,
        mlp(10, 16, 1),
        diabetes(),
        sgd(0.01),
        loss=nn.MSELoss(),
        steps=600,
        end=400,
        checkpoint=300,
        every=5,
    )
    return 0


def fresh(model: Any, _: Any) -> None:
    """Initialise all layers anew."""
    for module in model.modules():
        if hasattr(module, "reset_parameters"):
            module.reset_parameters()


@faulty("digits, resumed", "the weights were not loaded", LOST, may=JUMPS)
def weights_not_loaded(root: Path) -> int:
    return resumed(root, mlp(64, 48, 32, 10), digits(), sgd(0.02, momentum=0.9), change=fresh)


@faulty("a GPT, resumed", "the weights were not loaded", LOST, may=JUMPS, kind="language_model")
def gpt_not_loaded(root: Path) -> int:
    def change(model: Any, _: Any) -> None:
        torch.manual_seed(3)
        for parameter in model.parameters():
            nn.init.normal_(parameter.data, std=0.02)

    return resumed(root, Gpt, corpus(), adam(2e-3), batch=16, change=change)


@faulty("digits, convolutions, resumed", "the head is not in the checkpoint", LOST, may=JUMPS)
def head_not_loaded(root: Path) -> int:
    def change(model: Any, _: Any) -> None:
        nn.init.normal_(model.head.weight, std=1.0)

    return resumed(root, Cnn, images(), sgd(0.005, momentum=0.9), change=change)


@faulty("digits, resumed", "the inputs are no longer normalised after the restart", LOST, may=JUMPS)
def normalisation_lost(root: Path) -> int:
    data = digits()
    return resumed(
        root,
        mlp(64, 48, 10),
        data,
        sgd(0.002, momentum=0.9),
        data_after=data.of(lambda x: 8 * x + 8),
    )


@faulty(
    "digits, resumed",
    "the labels' order differs after the restart",
    LOST,
    may=JUMPS,
)
def labels_reordered(root: Path) -> int:
    data = digits()
    other = data.relabelled(lambda y: (y + 3) % 10)
    return resumed(root, mlp(64, 48, 10), data, adam(1e-3), data_after=other)


@faulty(
    "diabetes, resumed", "the scaler of the targets was fitted anew: units differ", LOST, may=JUMPS
)
def targets_rescaled(root: Path) -> int:
    data = diabetes()
    other = data.taught(lambda y: 5 * y + 10)
    return resumed(
        root, mlp(10, 16, 1), data, sgd(1e-3), loss=nn.MSELoss(), data_after=other, batch=16
    )
