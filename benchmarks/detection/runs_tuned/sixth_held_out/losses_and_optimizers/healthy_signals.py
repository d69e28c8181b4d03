"""Healthy trainings of trams, Morse code, tunes and dye in a channel."""

from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.sixth_held_out.losses_and_optimizers.shared.lesson import (
    Lesson,
    clock,
    dealt,
    told,
    wave,
)
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.networks import Ear, Memory, ring
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.restarts import going_on
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.signals import (
    NOTES,
    dyes,
    morse,
    trams,
    tunes,
)
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.workers import side_by_side

healthy = training_runs.healthy


@healthy("passengers of trams three hours ahead by a GRU, Huber's loss, AdamW, one cycle, clipped")
def trams_ahead(root: Path) -> int:
    torch.manual_seed(6100)
    model = Memory(3, 32)
    return Lesson(
        model,
        told(model, functional.huber_loss),
        dealt(*trams(1000, 6100), size=25, seed=6100),
        torch.optim.AdamW(model.parameters(), 6e-3, weight_decay=0.01),
        steps=180,
        save_every=2,
        factor=lambda step: 0.1 + 0.9 * step / 50 if step < 50 else wave(50, 185, 0.01)(step),
        clip=0.5,
        test=trams(200, 6101),
    ).run(root)


class _Past(nn.Module):
    """Convolutions that look back, each twice as far as the one before."""

    def __init__(self, width: int, outputs: int) -> None:
        super().__init__()
        widths = (4, width, width, width)
        self.looks = nn.ModuleList(
            nn.Conv1d(before, width, 3, dilation=2**at) for at, before in enumerate(widths[:-1])
        )
        self.drop, self.last = nn.Dropout(0.05), nn.Linear(width, outputs)

    def forward(self, x: Any) -> Any:
        x = x.transpose(1, 2)
        for look in self.looks:
            x = self.drop(functional.elu(look(functional.pad(x, (2 * look.dilation[0], 0)))))
        return self.last(x[:, :, -1])


@healthy(
    "three quantiles of passengers of trams by dilated convolutions, momentum, the rate is halved "
    "once the validation is level, clipped"
)
def quantiles_of_trams(root: Path) -> int:
    torch.manual_seed(6102)
    model = _Past(24, 9)
    shares = torch.tensor([0.1, 0.5, 0.9])
    optimizer = torch.optim.SGD(model.parameters(), 0.08, momentum=0.9)
    level = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)

    def loss(batch: Any) -> Any:
        short = batch[1][..., None] - model(batch[0]).unflatten(1, (3, 3))
        return torch.maximum(shares * short, (shares - 1) * short).mean()

    return Lesson(
        model,
        loss,
        dealt(*trams(1200, 6102), size=30, seed=6102),
        optimizer,
        steps=240,
        save_every=2,
        clip=1.0,
        test=trams(150, 6103),
        test_every=30,
        validated=level.step,
    ).run(root)


@healthy("trams by a recurrent network go on twice with all their state, RMSprop, a linear fall")
def trams_go_on_twice(root: Path) -> int:
    torch.manual_seed(6104)
    model = Memory(3, 28, cell=nn.RNN)
    going_on(
        root,
        model,
        told(model, functional.mse_loss),
        trams(1100, 6104),
        torch.optim.RMSprop(model.parameters(), 1.5e-3),
        stops=((110, 131), (190, 199)),
        steps=300,
        factor=lambda step: 1 - 0.95 * step / 300,
        clip=1.0,
    )
    return 0


@healthy(
    "letters in Morse code in half precision, a scale of the loss that begins at 2^18, Adam, "
    "clipped after unscaling"
)
def morse_in_half(root: Path) -> int:
    torch.manual_seed(6106)
    model = Ear(12)
    return Lesson(
        model,
        told(model),
        dealt(*morse(900, 6106)[:2], size=24, seed=6106),
        torch.optim.Adam(model.parameters(), 2e-3, eps=1e-7),
        steps=160,
        half=torch.float16,
        scaler=torch.amp.GradScaler("cpu", init_scale=2.0**18, growth_interval=50),
        clip=2.0,
        test=morse(200, 6107)[:2],
    ).run(root)


@healthy("letters in Morse code and how fast they come, losses that weigh 1 and 3, RAdam")
def morse_and_its_speed(root: Path) -> int:
    torch.manual_seed(6108)
    model = Ear(12, (8, 1))

    def loss(batch: Any) -> Any:
        letter, speed = model(batch[0])
        of_letter = functional.cross_entropy(letter, batch[1])
        of_speed = functional.mse_loss(speed, batch[2])
        return {"letter": of_letter, "speed": of_speed, "loss": of_letter + 3 * of_speed}

    return Lesson(
        model,
        loss,
        dealt(*morse(1000, 6108, 0.4), size=25, seed=6108),
        torch.optim.RAdam(model.parameters(), 4e-3),
        steps=220,
        save_every=2,
        test=morse(200, 6109, 0.4),
    ).run(root)


@healthy("keys of tunes by an LSTM in both directions, NAdam, clipped, an even rate")
def keys_of_tunes(root: Path) -> int:
    torch.manual_seed(6110)
    model = Memory(6, 20, signs=NOTES, inputs=12, cell=nn.LSTM, bidirectional=True)
    return Lesson(
        model,
        told(model),
        dealt(*tunes(1400, 6110), size=28, seed=6110),
        torch.optim.NAdam(model.parameters(), 3e-3),
        steps=170,
        save_every=2,
        clip=1.0,
        test=tunes(250, 6111),
    ).run(root)


@healthy("keys of tunes by the mean of embeddings on two workers, momentum, a rate in stairs")
def keys_on_two_workers(root: Path) -> int:
    torch.manual_seed(6112)
    model = nn.Sequential(
        nn.EmbeddingBag(NOTES, 16), nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 6)
    )
    side_by_side(
        root,
        model,
        lambda model, batch: functional.cross_entropy(model(batch[0]), batch[1]),
        tunes(1600, 6112),
        lambda model, _: torch.optim.SGD(model.parameters(), 0.2, momentum=0.9),
        steps=160,
        save_every=4,
        size=24,
        factor=lambda step, _: 0.4 ** (step // 60),
        clip=1.0,
    )
    return 0


@healthy(
    "dye a little later by circular convolutions, Adam, half a minute a step, and each 40 steps "
    "20 minutes pass while pictures are drawn"
)
def dye_a_little_later(root: Path) -> int:
    torch.manual_seed(6114)
    model = ring(16)
    with clock(30.0, dict.fromkeys((40, 81, 122), 1200.0)):
        return Lesson(
            model,
            told(model, functional.mse_loss),
            dealt(*dyes(900, 6114), size=20, seed=6114),
            torch.optim.Adam(model.parameters(), 2e-3),
            steps=160,
            factor=lambda step: 0.985**step,
            test=dyes(150, 6115),
        ).run(root)


@healthy("dye later still by deeper convolutions on three workers, AdamW, warm-up, a cosine")
def dye_on_three_workers(root: Path) -> int:
    torch.manual_seed(6116)
    side_by_side(
        root,
        ring(12, 3, 5),
        lambda model, batch: functional.mse_loss(model(batch[0]), batch[1]),
        dyes(1200, 6116, 40, 3),
        lambda model, _: torch.optim.AdamW(model.parameters(), 4e-3),
        workers=3,
        steps=110,
        save_every=3,
        size=12,
        factor=lambda step, _: wave(8, 115, 0.05)(step),
    )
    return 0
