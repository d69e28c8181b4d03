"""Healthy trainings of heartbeats, loads, walks, shapes, recipes, reviews and words."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.optim.lr_scheduler import (
    CosineAnnealingWarmRestarts,
    ExponentialLR,
    ReduceLROnPlateau,
    StepLR,
)
from training.small_networks import Lora

from runs_tuned.seventh_held_out.losses_and_optimizers.shared.loops import (
    clock,
    copies,
    cosine,
    linear,
    replicas,
    resumed,
    scored,
    train,
)
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.networks import (
    Beat,
    Forecast,
    Opinion,
    Speaker,
    Teller,
    convolutions,
)
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.signals import (
    heartbeats,
    loads,
    shapes,
    walks,
)
from runs_tuned.seventh_held_out.losses_and_optimizers.shared.texts import (
    REVIEW_WORDS,
    SIGNS,
    backwards,
    recipes,
    reviews,
)

healthy = training_runs.healthy
of_language = functools.partial(healthy, kind="language_model")

# Signals and pictures


@healthy("rhythms of heartbeats by convolutions with batch norm, Adam, the rate falls by a factor")
def rhythms_of_heartbeats(root: Path) -> int:
    torch.manual_seed(7100)
    model = Beat()
    optimizer = torch.optim.Adam(model.parameters(), 4e-3)
    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        heartbeats(1500, 7100),
        optimizer,
        steps=180,
        by_epoch=ExponentialLR(optimizer, 0.8),
    )


@healthy("rhythms of heartbeats in half precision, Adam, a scaler from 2^16 on, clipped")
def heartbeats_in_half(root: Path) -> int:
    torch.manual_seed(7102)
    model = Beat(16)
    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        heartbeats(1300, 7102),
        torch.optim.Adam(model.parameters(), 3e-3),
        steps=150,
        clip=1.0,
        half=torch.float16,
        scaler=torch.amp.GradScaler("cpu"),
    )


@healthy("the next hour's load by an LSTM, Adam, the rate falls once the validation is level")
def loads_by_an_lstm(root: Path) -> int:
    torch.manual_seed(7104)
    model = Forecast(nn.LSTM, 1, 24, 1)
    optimizer = torch.optim.Adam(model.parameters(), 8e-3)
    return train(
        root,
        model,
        nn.MSELoss(),
        loads(1500, 7104),
        optimizer,
        steps=180,
        save_every=2,
        clip=1.0,
        plateau=ReduceLROnPlateau(optimizer, factor=0.5, patience=1),
    )


@healthy(
    "the next six hours' loads by a GRU, absolute errors, AdamW, half a minute a step, and ten "
    "minutes for each validation"
)
def loads_six_hours_ahead(root: Path) -> int:
    torch.manual_seed(7106)
    model = Forecast(nn.GRU, 1, 24, 6)
    with clock(30.0, dict.fromkeys(range(41, 160, 41), 600.0)):
        return train(
            root,
            model,
            nn.L1Loss(),
            loads(1400, 7106, 24, 6),
            torch.optim.AdamW(model.parameters(), 6e-3),
            steps=140,
            clip=1.0,
        )


@healthy("ways to move by a GRU, Adam, clipped, a cosine with restarts")
def ways_to_move(root: Path) -> int:
    torch.manual_seed(7108)
    model = Forecast(nn.GRU, 3, 24, 4)
    optimizer = torch.optim.Adam(model.parameters(), 6e-3)
    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        walks(1600, 7108),
        optimizer,
        steps=180,
        save_every=2,
        clip=1.0,
        scheduler=CosineAnnealingWarmRestarts(optimizer, 60),
    )


@healthy("shapes by convolutions with batch norm, Nesterov momentum, warm-up and a cosine")
def shapes_by_convolutions(root: Path) -> int:
    torch.manual_seed(7110)
    model = convolutions()
    optimizer = torch.optim.SGD(
        model.parameters(), 0.05, momentum=0.9, nesterov=True, weight_decay=5e-4
    )
    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        shapes(1600, 7110),
        optimizer,
        steps=160,
        scheduler=cosine(optimizer, 15, 160, 0.01),
    )


@healthy("shapes in half precision, mirrored at random, two batches to an update, AdamW, a scaler")
def shapes_in_half(root: Path) -> int:
    torch.manual_seed(7112)
    model = convolutions(norm=False)
    random = torch.Generator().manual_seed(7112)

    def mirrored(_: int, x: Any, y: Any) -> tuple[Any, Any]:
        turned = torch.rand(len(x), 1, 1, 1, generator=random) < 0.5
        return torch.where(turned, x.flip(3), x), y

    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        shapes(1600, 7112),
        torch.optim.AdamW(model.parameters(), 6e-3),
        steps=200,
        batch=24,
        accumulate=2,
        half=torch.float16,
        scaler=torch.amp.GradScaler("cpu", init_scale=2.0**16, growth_interval=50),
        served=mirrored,
    )


@healthy("shapes by convolutions on three workers, each with its own running means, momentum")
def shapes_on_three_workers(root: Path) -> int:
    torch.manual_seed(7114)
    return replicas(
        root,
        copies(convolutions(6), 3),
        nn.CrossEntropyLoss,
        shapes(1500, 7114),
        lambda model: torch.optim.SGD(model.parameters(), 0.05, momentum=0.9),
        steps=70,
        batch=16,
        save_every=5,
    )


@healthy("shapes go on from a checkpoint with all of the state, momentum, a rate in steps")
def shapes_go_on(root: Path) -> int:
    return resumed(
        root,
        convolutions,
        nn.CrossEntropyLoss(),
        shapes(1400, 7116),
        functools.partial(torch.optim.SGD, lr=0.03, momentum=0.9),
        lambda optimizer: StepLR(optimizer, 80, 0.3),
        stops=((110, 125),),
        steps=190,
        seed=7116,
    )


# Texts


@healthy("praise in reviews by an encoder, AdamW, warm-up and a line down, clipped")
def praise_in_reviews(root: Path) -> int:
    torch.manual_seed(7120)
    model = Opinion(REVIEW_WORDS)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        reviews(3000, 7120),
        optimizer,
        steps=140,
        save_every=2,
        clip=1.0,
        scheduler=linear(optimizer, 14, 140),
    )


@healthy("praise in reviews in half precision, two batches to an update, Adam, a scaler, clipped")
def praise_in_half(root: Path) -> int:
    torch.manual_seed(7122)
    model = Opinion(REVIEW_WORDS, blocks=1)
    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        reviews(3000, 7122),
        torch.optim.Adam(model.parameters(), 2e-3),
        steps=160,
        batch=16,
        accumulate=2,
        clip=1.0,
        half=torch.float16,
        scaler=torch.amp.GradScaler("cpu", growth_interval=100),
    )


@of_language("recipes sign by sign by a decoder, AdamW, warm-up and a cosine, clipped")
def recipes_by_a_decoder(root: Path) -> int:
    torch.manual_seed(7124)
    model = Speaker(len(SIGNS))
    optimizer = torch.optim.AdamW(model.parameters(), 5e-3, betas=(0.9, 0.95), weight_decay=0.1)
    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        recipes(1600, 7124),
        optimizer,
        steps=150,
        batch=24,
        save_every=2,
        clip=1.0,
        scheduler=cosine(optimizer, 15, 150),
    )


@of_language("recipes by a decoder, four batches to an update, AdamW, warm-up, clipped")
def recipes_accumulated(root: Path) -> int:
    torch.manual_seed(7126)
    model = Speaker(len(SIGNS))
    optimizer = torch.optim.AdamW(model.parameters(), 8e-3, betas=(0.9, 0.95))
    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        recipes(1800, 7126),
        optimizer,
        steps=240,
        batch=8,
        clip=1.0,
        accumulate=4,
        scheduler=cosine(optimizer, 6, 60),
        valid_every=60,
    )


@of_language("recipes by a decoder in bfloat16 autocast with dropout, AdamW, warm-up, clipped")
def recipes_in_bfloat(root: Path) -> int:
    torch.manual_seed(7128)
    model = Speaker(len(SIGNS), drop=0.05)
    optimizer = torch.optim.AdamW(model.parameters(), 5e-3, betas=(0.9, 0.95))
    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        recipes(1600, 7128),
        optimizer,
        steps=130,
        batch=24,
        save_every=2,
        clip=1.0,
        half=torch.bfloat16,
        scheduler=linear(optimizer, 13, 135),
    )


@of_language("recipes by an LSTM with dropout, Adam, clipped")
def recipes_by_an_lstm(root: Path) -> int:
    torch.manual_seed(7130)
    model = Teller(len(SIGNS))
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        recipes(1600, 7130),
        optimizer,
        steps=150,
        batch=24,
        save_every=3,
        clip=1.0,
        scheduler=linear(optimizer, 5, 160),
    )


@of_language("words spelled backwards by a decoder, AdamW, warm-up and a line down")
def words_backwards(root: Path) -> int:
    torch.manual_seed(7132)
    model = Speaker(13, 48)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        backwards(5000, 7132),
        optimizer,
        steps=110,
        batch=32,
        clip=1.0,
        scheduler=linear(optimizer, 15, 115),
        valid_every=25,
    )


def taught(seed: int, steps: int = 150, start: float = 0.02) -> Any:
    """Return a decoder that has learnt recipes."""
    torch.manual_seed(seed)
    model, data = Speaker(len(SIGNS), start=start), recipes(1600, seed)
    optimizer = torch.optim.AdamW(model.parameters(), 5e-3)
    random = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        rows = torch.randint(len(data.x), (24,), generator=random)
        optimizer.zero_grad()
        scored(nn.CrossEntropyLoss(), model(data.x[rows]), data.y[rows]).backward()
        optimizer.step()
    return model


@of_language("a decoder of recipes learns to write of gardens by LoRA, AdamW, warm-up, clipped")
def recipes_by_lora(root: Path) -> int:
    model = taught(7134).requires_grad_(False)
    for block in model.blocks:
        block.mlp[0], block.mlp[2] = Lora(block.mlp[0]), Lora(block.mlp[2])
    optimizer = torch.optim.AdamW([each for each in model.parameters() if each.requires_grad], 5e-3)
    return train(
        root,
        model,
        nn.CrossEntropyLoss(),
        recipes(1500, 7135, of_garden=True),
        optimizer,
        steps=140,
        batch=24,
        save_every=2,
        clip=1.0,
        scheduler=linear(optimizer, 10, 145),
    )


@of_language("recipes by a decoder go on from a checkpoint with all of the state, AdamW, a cosine")
def recipes_go_on(root: Path) -> int:
    return resumed(
        root,
        lambda: Speaker(len(SIGNS)),
        nn.CrossEntropyLoss(),
        recipes(1500, 7136),
        functools.partial(torch.optim.AdamW, lr=5e-3),
        lambda optimizer: cosine(optimizer, 12, 180),
        stops=((100, 115),),
        steps=170,
        batch=20,
        clip=1.0,
        seed=7136,
    )


@of_language("recipes by a decoder on two workers, AdamW, clipped after averaging")
def recipes_on_two_workers(root: Path) -> int:
    torch.manual_seed(7138)
    schedules: list[Any] = []

    def optimizer(model: Any) -> Any:
        made = torch.optim.AdamW(model.parameters(), 5e-3)
        schedules.append(linear(made, 8, 85))
        return made

    return replicas(
        root,
        copies(Speaker(len(SIGNS), 24)),
        nn.CrossEntropyLoss,
        recipes(1500, 7138),
        optimizer,
        steps=80,
        batch=12,
        save_every=4,
        clip=1.0,
        after=lambda _: [each.step() for each in schedules],
    )
