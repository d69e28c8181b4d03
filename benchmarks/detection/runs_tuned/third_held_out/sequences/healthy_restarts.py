"""Healthy trainings that go on from a checkpoint, and healthy trainings on several workers."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn

from runs_tuned.third_held_out.sequences.rates_and_restarts import go_on, reader
from runs_tuned.third_held_out.sequences.shared.decoders import Beside, Composer, Gates, Latent
from runs_tuned.third_held_out.sequences.shared.lessons import LETTERS, NOTES, cut, lines, notes
from runs_tuned.third_held_out.sequences.shared.loops import warmed
from runs_tuned.third_held_out.sequences.shared.readers import Layer
from runs_tuned.third_held_out.sequences.shared.shapes import stack
from runs_tuned.third_held_out.sequences.shared.texts import windows
from runs_tuned.third_held_out.sequences.shared.workers import work_together

healthy = functools.partial(training_runs.healthy, kind="language_model")


@healthy("melodies, goes on with all its state, warm restarts of a cosine, Adamax, every 3rd row")
def melodies_go_on(root: Path) -> int:
    torch.manual_seed(470)
    model = Composer(NOTES, [Beside(32, Latent(), 64) for _ in range(2)])
    cosine = warmed(1, 70, 0.1)
    go_on(
        root,
        model,
        reader(notes(), seed=470),
        optimizer=torch.optim.Adamax(model.parameters(), 6e-3),
        schedule=lambda step: cosine(step % 70) * 0.8 ** (step // 70),
        checkpoint=130,
        lost=24,
        steps=280,
        every=3,
        clip=1.0,
    )
    return 0


@healthy(
    "melodies, goes on with other melodies of the same kinds in a second stage, warmed up again"
)
def second_stage(root: Path) -> int:
    torch.manual_seed(471)
    model = Composer(NOTES, [Layer(Gates(32), stack(32, 64, 32)) for _ in range(2)])
    first, second = reader(notes(), 24, 471), reader(notes(seed=413), 24, 472)
    again = lambda step: 0.2 + 0.4 * min(1.0, (step - 120) / 30)
    go_on(
        root,
        model,
        lambda step, goes_on: (second if goes_on else first)(step, goes_on),
        optimizer=torch.optim.AdamW(model.parameters(), 5e-3),
        schedule=lambda step: max(0.2, 1 - step / 150) if step < 120 else again(step),
        checkpoint=120,
        lost=6,
        steps=240,
    )
    return 0


@healthy("lines of a log on three workers, gates that see two letters, Adam, one cycle of the rate")
def log_on_three_workers(root: Path) -> int:
    torch.manual_seed(472)
    model = Composer(len(LETTERS), [Layer(Gates(32), stack(32, 48, 32))])
    x, y = cut(lines(), 20)
    cycle = lambda step: 0.1 + 0.9 * min(step / 35, (110 - step) / 75)
    adam = functools.partial(torch.optim.Adam, lr=6e-3)
    more: dict[str, Any] = {"workers": 3, "steps": 105, "save_every": 3, "schedule": cycle}
    return work_together(root, model, x, y, adam, **more)


@healthy("melodies on two workers, the lower block is frozen until step 30, then all is averaged")
def thawed_on_two_workers(root: Path) -> int:
    torch.manual_seed(473)
    model = Composer(NOTES, [Beside(32, Latent(), 64, 0.1) for _ in range(2)])
    model.blocks[0].requires_grad_(requires_grad=False)

    def before(step: int, models: list[nn.Module]) -> None:
        if step == 30:
            for one in models:
                one.requires_grad_(requires_grad=True)

    adamw = functools.partial(torch.optim.AdamW, lr=3e-3, weight_decay=0.05)
    return work_together(root, model, *windows(notes()), adamw, before=before, steps=110)
