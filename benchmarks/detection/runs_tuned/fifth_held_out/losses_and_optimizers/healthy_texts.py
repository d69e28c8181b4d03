"""Healthy trainings of texts, patterns of stitches, and digits told pixel by pixel."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from runs_tuned.fifth_held_out.losses_and_optimizers.shared.data import (
    STITCHES,
    dates,
    knitting,
    pixels_in_turn,
    sums,
)
from runs_tuned.fifth_held_out.losses_and_optimizers.shared.loops import by, practice, served, waned
from runs_tuned.fifth_held_out.losses_and_optimizers.shared.networks import Gated, Looped, Teller

of_language = functools.partial(training_runs.healthy, kind="language_model")


@of_language(
    "dates by a decoder of turned queries, bfloat16, AdamW, warm-up and cosine, clipped, validated "
    "by a moving average of the weights"
)
def dates_by_their_average(root: Path) -> int:
    torch.manual_seed(1500)
    model = Teller(drop=0.05)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.95))
    optimizer = torch.optim.AdamW(model.parameters(), 6e-3, betas=(0.9, 0.95), weight_decay=0.1)
    return practice(
        root,
        model,
        by(model),
        served(*dates(1600, 1500), size=24, seed=1500),
        optimizer,
        steps=220,
        save_every=2,
        schedule=waned(20, 220, 0.1),
        clip=1.0,
        half=torch.bfloat16,
        after=lambda _: average.update_parameters(model),
        test=dates(48, 1501),
        tested=by(average),
    )


@of_language("stitches by an LSTM, dropout, momentum, clipped, the rate a quarter on two plateaus")
def stitches_by_lstm(root: Path) -> int:
    torch.manual_seed(1502)
    model = Looped(STITCHES, 48, drop=0.1)
    return practice(
        root,
        model,
        by(model),
        served(*knitting(1500, 1502), size=20, seed=1502),
        torch.optim.SGD(model.parameters(), 2.0, momentum=0.9),
        steps=300,
        save_every=2,
        schedule=lambda step: 1.0 if step < 180 else 0.25 if step < 250 else 0.0625,
        clip=0.25,
        test=knitting(60, 1503),
    )


@of_language("sums in digits by a decoder whose queries and keys are normalised, Adafactor")
def sums_by_adafactor(root: Path) -> int:
    torch.manual_seed(1504)
    model = Teller(width=40, normed=True)
    return practice(
        root,
        model,
        by(model),
        served(*sums(1600, 1504), size=20, seed=1504),
        torch.optim.Adafactor(model.parameters(), 0.02),
        steps=220,
        save_every=2,
        schedule=lambda step: min(1.0, (step + 1) / 15) * (1.0 if step < 150 else 0.3),
        test=sums(40, 1505),
    )


@of_language(
    "pixels of digits by gated convolutions, Adam, the rate falls as one over the root of steps, "
    "four batches to an update"
)
def pixels_accumulated(root: Path) -> int:
    torch.manual_seed(1506)
    model = Gated(14)
    x, y = pixels_in_turn()
    return practice(
        root,
        model,
        by(model),
        served(x[:1600], y[:1600], size=8, seed=1506),
        torch.optim.Adam(model.parameters(), 8e-3),
        steps=560,
        save_every=4,
        schedule=lambda step: min((step + 1) / 15, (15 / (step + 1)) ** 0.5),
        accumulate=4,
        test=(x[1600:1664], y[1600:1664]),
        test_every=80,
    )


@of_language(
    "a decoder of dates learns that the month comes first: embedding and first layer are frozen, "
    "scores have five times the rate of the rest, AdamW"
)
def month_first_by_upper_layers(root: Path) -> int:
    torch.manual_seed(1507)
    model = Teller(depth=3)
    taught = torch.optim.AdamW(model.parameters(), 5e-3)
    batches = served(*dates(1200, 1507), size=24, seed=1507)
    for _, batch in zip(range(100), batches, strict=False):
        by(model)(batch).backward()
        taught.step()
        taught.zero_grad()
    for part in (model.embed, model.layers[0]):
        part.requires_grad_(requires_grad=False)
    groups = [
        {"params": [*model.layers[1:].parameters(), *model.norm.parameters()], "lr": 1e-3},
        {"params": model.lm_head.parameters(), "lr": 5e-3},
    ]
    return practice(
        root,
        model,
        by(model),
        served(*dates(1200, 1508, is_day_first=False), size=24, seed=1508),
        torch.optim.AdamW(groups, weight_decay=0.01),
        steps=160,
        schedule=waned(8, 170, 0.1),
        clip=1.0,
        test=dates(48, 1509, is_day_first=False),
    )


@of_language(
    "stitches by a decoder with tied scores, labels smoothed and a small loss of large logits "
    "beside the entropy, NAdam; a pattern in twelve is half as long, the rest is not counted"
)
def stitches_of_two_losses(root: Path) -> int:
    torch.manual_seed(1510)
    model = Teller(STITCHES, tied=True)
    x, y = knitting(1500, 1510)
    y = y.clone()
    y[::12, 14:] = -100

    def objective(batch: Any) -> Any:
        scores = model(batch[0])
        entropy = functional.cross_entropy(scores, batch[1], label_smoothing=0.05)
        large = 1e-3 * scores.logsumexp(1).pow(2).mean()
        return {"entropy": entropy, "large_logits": large, "loss": entropy + large}

    return practice(
        root,
        model,
        objective,
        served(x, y, size=20, seed=1510),
        torch.optim.NAdam(model.parameters(), 4e-3),
        steps=240,
        save_every=2,
        schedule=waned(12, 240, 0.05),
        clip=1.0,
        test=knitting(60, 1511),
    )


@of_language(
    "a decoder of sums in half precision, AdamW, a scale that is doubled every 25 good steps, "
    "clipped after unscaling"
)
def sums_in_half_precision(root: Path) -> int:
    torch.manual_seed(1512)
    model = Teller()
    nn.init.normal_(model.lm_head.weight, std=0.02)
    return practice(
        root,
        model,
        by(model),
        served(*sums(1600, 1512), size=20, seed=1512),
        torch.optim.AdamW(model.parameters(), 5e-3),
        steps=180,
        schedule=waned(15, 190, 0.1),
        clip=1.0,
        half=torch.float16,
        scaler=torch.amp.GradScaler("cpu", init_scale=2.0**14, growth_interval=25),
        test=sums(40, 1513),
    )
