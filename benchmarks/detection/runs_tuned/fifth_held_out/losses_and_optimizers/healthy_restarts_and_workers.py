"""Healthy trainings that go on after a stop, on several workers, or with a scale of the loss."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.fifth_held_out.losses_and_optimizers.shared.data import (
    SIGNS,
    STITCHES,
    dates,
    flags,
    knitting,
    patches,
    quakes,
    rides,
    sums,
    teas,
)
from runs_tuned.fifth_held_out.losses_and_optimizers.shared.loops import by, practice, served, waned
from runs_tuned.fifth_held_out.losses_and_optimizers.shared.networks import (
    Gated,
    Grader,
    Looped,
    Seismic,
    Teller,
    channel_wise,
    folded,
    layers,
)
from runs_tuned.fifth_held_out.losses_and_optimizers.shared.optimizers import Lion
from runs_tuned.fifth_held_out.losses_and_optimizers.shared.restarts import by_step, restarted
from runs_tuned.fifth_held_out.losses_and_optimizers.shared.workers import in_parallel

healthy = training_runs.healthy
of_language = functools.partial(healthy, kind="language_model")


@of_language("a decoder of dates with tied scores goes on with all its state, AdamW, clipped")
def dates_go_on(root: Path) -> int:
    torch.manual_seed(1560)
    model = Teller(tied=True)
    restarted(
        root,
        model,
        by(model),
        by_step(*dates(1200, 1560), seed=1560),
        torch.optim.AdamW(model.parameters(), 5e-3, weight_decay=0.05),
        stops=((130, 149),),
        schedule=waned(15, 240, 0.05),
        clip=1.0,
    )
    return 0


@healthy("grades of teas stop twice and go on with all their state, RMSprop, a rate in stairs")
def teas_go_on_twice(root: Path) -> int:
    torch.manual_seed(1561)
    model = Grader(drop=0.1)
    restarted(
        root,
        model,
        by(model),
        by_step(*teas(1500, 1561), size=32, seed=1561),
        torch.optim.RMSprop(model.parameters(), 2e-3),
        stops=((100, 112), (200, 231)),
        steps=320,
        schedule=lambda step: 1.0 if step < 140 else 0.4 if step < 240 else 0.15,
    )
    return 0


@of_language("stitches by a GRU go on, momentum, each 5th step logged, clipped, an even rate")
def stitches_go_on(root: Path) -> int:
    torch.manual_seed(1562)
    model = Looped(STITCHES, 40, nn.GRU)
    restarted(
        root,
        model,
        by(model),
        by_step(*knitting(1200, 1562), size=20, seed=1562),
        torch.optim.SGD(model.parameters(), 0.5, momentum=0.9),
        stops=((300, 350),),
        steps=520,
        every=5,
        clip=1.0,
    )
    return 0


@healthy(
    "patches of a photograph through a narrow middle go on, Adam with a slower second moment, "
    "at a third of the rate, as was planned",
    kind="autoencoder",
)
def patches_go_on(root: Path) -> int:
    torch.manual_seed(1563)
    model = layers(64, 40, 12, 40, 64, act=nn.CELU)
    restarted(
        root,
        model,
        lambda batch: functional.mse_loss(model(batch[0]), batch[0]),
        by_step(patches(), size=32, seed=1563),
        torch.optim.Adam(model.parameters(), 3e-3, betas=(0.9, 0.99)),
        stops=((160, 175),),
        steps=260,
        schedule=lambda step: 1.0 if step < 160 else 0.33,
    )
    return 0


@healthy("arrivals of quakes on two workers in bfloat16, AdamW, warm-up and cosine, clipped")
def quakes_on_two_workers(root: Path) -> int:
    torch.manual_seed(1564)
    in_parallel(
        root,
        Seismic(outs=(1,)),
        lambda model, batch: functional.smooth_l1_loss(model(batch[0]).float(), batch[1]),
        quakes(900, 1564),
        functools.partial(torch.optim.AdamW, lr=4e-3),
        steps=130,
        save_every=2,
        size=16,
        clip=1.0,
        half=torch.bfloat16,
        schedule=waned(10, 140, 0.1),
    )
    return 0


@of_language("stitches by gated convolutions on four workers, momentum, a rate in stairs")
def stitches_on_four_workers(root: Path) -> int:
    torch.manual_seed(1565)
    in_parallel(
        root,
        Gated(STITCHES, 24, 2),
        lambda model, batch: functional.cross_entropy(model(batch[0]), batch[1]),
        knitting(1600, 1565),
        functools.partial(torch.optim.SGD, lr=0.4, momentum=0.9),
        workers=4,
        steps=100,
        save_every=5,
        size=8,
        clip=2.0,
        schedule=lambda step: 1.0 if step < 70 else 0.2,
    )
    return 0


@healthy("layouts of flags on two workers with batch norm of their own, NAdam, dropped channels")
def flags_on_two_workers(root: Path) -> int:
    torch.manual_seed(1566)
    model = folded(3, 6, 8)
    model.insert(len(model) - 1, nn.Dropout(0.1))
    x, layout, _ = flags(900, 1566, 1.4)
    in_parallel(
        root,
        model,
        lambda model, batch: functional.cross_entropy(model(batch[0]), batch[1]),
        (x, layout),
        functools.partial(torch.optim.NAdam, lr=3e-3),
        steps=90,
        save_every=3,
        size=16,
    )
    return 0


@healthy(
    "fields of faded flags in half precision, a scale that begins at 2^20 and is doubled every 40 "
    "good steps, labels smoothed, Adam, clipped after unscaling, two batches to an update"
)
def flags_in_half_precision(root: Path) -> int:
    torch.manual_seed(1567)
    model = channel_wise(3, 6)
    x, _, field = flags(900, 1567, 2.5)
    test, _, colour = flags(60, 1568, 2.5)
    return practice(
        root,
        model,
        by(model, nn.CrossEntropyLoss(label_smoothing=0.1)),
        served(x, field, size=16, seed=1567),
        torch.optim.Adam(model.parameters(), 4e-3),
        steps=260,
        save_every=2,
        accumulate=2,
        clip=1.0,
        half=torch.float16,
        scaler=torch.amp.GradScaler("cpu", init_scale=2.0**20, growth_interval=40),
        test=(test, colour),
    )


@healthy(
    "minutes of journeys and whether it rained, two heads whose losses weigh 1 and 0.2, Lion "
    "with decay, warm-up"
)
def rides_of_two_heads(root: Path) -> int:
    torch.manual_seed(1569)
    x, y = rides(1500, 1569)
    model = layers(10, 40, 32, 2, act=nn.GELU)
    rain, rest = x[:, 6:7], torch.cat([x[:, :6], x[:, 7:]], 1)

    def objective(batch: Any) -> Any:
        told = model(batch[0])
        minutes = functional.mse_loss(told[:, :1], batch[1])
        wet = functional.binary_cross_entropy_with_logits(told[:, 1:], batch[2])
        return {"minutes": minutes, "wet": wet, "loss": minutes + 0.2 * wet}

    return practice(
        root,
        model,
        objective,
        served(rest, y, rain, size=32, seed=1569),
        Lion(model.parameters(), 1.2e-3, 0.1),
        steps=260,
        save_every=2,
        schedule=waned(15, 270, 0.05),
    )


@of_language("sums by an LSTM, two batches to an update, AdamW, a rate of one cycle, each 4th step")
def sums_by_lstm(root: Path) -> int:
    torch.manual_seed(1570)
    model = Looped(len(SIGNS), 64)
    return practice(
        root,
        model,
        by(model),
        served(*sums(1600, 1570), size=10, seed=1570),
        torch.optim.AdamW(model.parameters(), 1.5e-2),
        steps=480,
        save_every=4,
        accumulate=2,
        clip=1.0,
        schedule=lambda step: 0.05 + 0.95 * min(step / 70, (240 - step) / 170),
        test=sums(40, 1571),
        test_every=60,
    )
