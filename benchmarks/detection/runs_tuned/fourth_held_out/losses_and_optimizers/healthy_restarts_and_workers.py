"""Healthy trainings that go on from a checkpoint, on several workers, or in half precision."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.fourth_held_out.losses_and_optimizers.shared.lessons import (
    LETTERS,
    addresses,
    lifts,
    plaids,
    power,
    pumps,
    strokes_of_digits,
)
from runs_tuned.fourth_held_out.losses_and_optimizers.shared.loops import cosine, dealt, learn, of
from runs_tuned.fourth_held_out.losses_and_optimizers.shared.networks import (
    Dilated,
    Recalling,
    Weaver,
    Writer,
    stack,
)
from runs_tuned.fourth_held_out.losses_and_optimizers.shared.restarts import go_on, in_turn
from runs_tuned.fourth_held_out.losses_and_optimizers.shared.workers import together

healthy = training_runs.healthy
of_language = functools.partial(healthy, kind="language_model")


@of_language(
    "a decoder of addresses goes on with all its state, AdamW, warm-up and cosine, clipped"
)
def addresses_go_on(root: Path) -> int:
    torch.manual_seed(750)
    model = Writer(len(LETTERS), drop=0.05)
    go_on(
        root,
        model,
        lambda batch: functional.cross_entropy(model(batch[0]), batch[1]),
        in_turn(*addresses(900, 750), size=24, seed=750),
        torch.optim.AdamW(model.parameters(), 4e-3, weight_decay=0.05),
        schedule=cosine(15, 230),
        checkpoint=120,
        lost=17,
        steps=220,
        clip=1.0,
    )
    return 0


@healthy("flow of pumps, goes on with all its state, NAdam, the rate in two stairs, each 4th row")
def pumps_go_on(root: Path) -> int:
    torch.manual_seed(751)
    model = stack(12, 32, 32, 1, drop=0.1)
    go_on(
        root,
        model,
        of(model, nn.HuberLoss()),
        in_turn(*pumps(900, 751, 0.3), size=32, seed=751),
        torch.optim.NAdam(model.parameters(), 3e-3),
        schedule=lambda step: 1.0 if step < 200 else 0.3 if step < 320 else 0.1,
        checkpoint=240,
        lost=40,
        steps=440,
        every=4,
    )
    return 0


@healthy("woven patterns on two workers, group norms, Nesterov momentum, one cycle of the rate")
def plaids_on_two_workers(root: Path) -> int:
    torch.manual_seed(752)
    together(
        root,
        Weaver(),
        lambda model, batch: functional.cross_entropy(model(batch[0]), batch[1]),
        plaids(800, 752),
        functools.partial(torch.optim.SGD, lr=0.15, momentum=0.9, nesterov=True),
        size=16,
        steps=100,
        save_every=4,
        schedule=lambda step: 0.1 + 0.9 * min(step / 30, (100 - step) / 70),
    )
    return 0


@of_language("a GRU of addresses on three workers, gradients of two batches accumulated, clipped")
def addresses_on_three_workers(root: Path) -> int:
    torch.manual_seed(753)
    model = Recalling(16, 40, len(LETTERS), words=len(LETTERS))
    together(
        root,
        model,
        lambda model, batch: functional.cross_entropy(model(batch[0]), batch[1]),
        addresses(960, 753),
        functools.partial(torch.optim.AdamW, lr=8e-3),
        workers=3,
        size=10,
        steps=160,
        save_every=4,
        accumulate=2,
        clip=1.0,
    )
    return 0


@healthy(
    "woven patterns in half precision, AdamW, a scale that begins at 2^22 and is halved to fit"
)
def scale_finds_its_size(root: Path) -> int:
    torch.manual_seed(754)
    model = Weaver()
    return learn(
        root,
        model,
        of(model, nn.CrossEntropyLoss(label_smoothing=0.05)),
        dealt(*plaids(800, 754), size=24, seed=754),
        torch.optim.AdamW(model.parameters(), 3e-3),
        steps=150,
        half=torch.float16,
        scaler=torch.amp.GradScaler("cpu", init_scale=2.0**22, growth_interval=2000),
        held_out=plaids(60, 755),
    )


@healthy(
    "digits by a recurrent network over columns in half precision, a scale that is doubled every "
    "12 good steps, and falls back each time that it is too high"
)
def scale_goes_up_and_down(root: Path) -> int:
    torch.manual_seed(755)
    model = Recalling(8, 32, 10)
    x, y = strokes_of_digits()
    return learn(
        root,
        model,
        of(model, nn.CrossEntropyLoss()),
        dealt(x[:1500], y[:1500], size=32, seed=755),
        torch.optim.Adam(model.parameters(), 6e-3),
        steps=170,
        half=torch.float16,
        scaler=torch.amp.GradScaler("cpu", init_scale=2.0**15, growth_interval=12),
        held_out=(x[1500:], y[1500:]),
        clip=2.0,
    )


@of_language("a decoder of addresses in bfloat16, tied scores, AdamW, warm-up and cosine, clipped")
def addresses_in_bfloat16(root: Path) -> int:
    torch.manual_seed(756)
    model = Writer(len(LETTERS))
    nn.init.normal_(model.embed.weight, std=0.1)
    model.lm_head.weight = model.embed.weight
    return learn(
        root,
        model,
        lambda batch: functional.cross_entropy(model(batch[0]).float(), batch[1]),
        dealt(*addresses(900, 756), size=24, seed=756),
        torch.optim.AdamW(model.parameters(), 5e-3, betas=(0.9, 0.95), weight_decay=0.1),
        steps=170,
        save_every=2,
        schedule=cosine(17, 170, 0.1),
        half=torch.bfloat16,
        clip=1.0,
        held_out=addresses(40, 757),
    )


@healthy("power of a town, four batches to an update, Adam, the rate restarts each 40 updates")
def power_with_restarts(root: Path) -> int:
    torch.manual_seed(757)
    model = Dilated()
    wave = cosine(0, 40, 0.02)
    return learn(
        root,
        model,
        of(model, nn.MSELoss()),
        dealt(*power(700, 757), size=12, seed=757),
        torch.optim.Adam(model.parameters(), 4e-3),
        steps=480,
        save_every=4,
        accumulate=4,
        schedule=lambda step: wave(step % 40) * 0.7 ** (step // 40),
        held_out=power(80, 758),
        validate_every=80,
    )


@healthy("defects of lifts, six labels of 10 to 35 %, rarer ones weigh more, Adagrad, two workers")
def lifts_on_two_workers(root: Path) -> int:
    torch.manual_seed(758)
    weight = torch.tensor([1.0, 1.5, 2.0, 2.5, 1.2, 3.0])

    def objective(model: Any, batch: Any) -> Any:
        return functional.binary_cross_entropy_with_logits(
            model(batch[0]), batch[1], pos_weight=weight
        )

    together(
        root,
        stack(20, 48, 6, norm=True),
        objective,
        lifts(1200, 758),
        functools.partial(torch.optim.Adagrad, lr=0.02),
        size=24,
        steps=120,
        save_every=3,
    )
    return 0
