"""Faulty trainings of updates: none for the model or a part of it, rounded ones, huge ones."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import lr_scheduler as rates
from training_runs import faulty

from runs_held_out.units.shared.consequences import CUT_OFF, OVERSIZED
from runs_held_out.units.shared.data import (
    GESTURES,
    GLYPHS,
    LONGEST,
    SOILS,
    TOPICS,
    gestures,
    glyphs,
    power,
    rivers,
    soils,
    tickets,
)
from runs_held_out.units.shared.loop import train, trained_before
from runs_held_out.units.shared.networks import (
    ConvNet,
    Encoder,
    LastState,
    Outliner,
    layers,
)

SCHEDULED = {"LearningRate": "the schedule is over long before the training"}
UNCLEARED = {
    "GradientAccumulates": "gradients are not cleared where the optimizer does not step",
    "GradientNormSpike": "gradients that are not cleared grow from step to step",
}


@faulty(
    "kinds of soil by ReLU layers, Adam, 64 small batches to an update",
    "the batches are counted anew in each epoch, which has 45 of them: no update is ever made",
    {"UnchangedTensor", "WeightUpdateRatio"},
    may=CUT_OFF | UNCLEARED,
)
def accumulates_longer_than_an_epoch(root: Path) -> int:
    torch.manual_seed(881)
    model, data = layers(14, 48, 32, SOILS), soils(1800, 8801)
    optimizer, in_epoch = torch.optim.Adam(model.parameters(), 3e-3), len(data.x) // 32

    def step(number: int) -> None:
        if (number % in_epoch + 1) % 64 == 0:
            optimizer.step()
            optimizer.zero_grad()

    return train(
        root,
        model,
        data,
        nn.CrossEntropyLoss(),
        optimizer,
        backward=lambda value: (value / 64).backward(),
        step=step,
        epochs=5,
        save_every=1,
        seed=881,
    )


@faulty(
    "gestures by a GRU, AdamW, the rate falls along a line from epoch to epoch",
    "the factor of the rate is divided by // and not by /: it is 0 from the second epoch on",
    {"UnchangedTensor", "WeightUpdateRatio"},
    may=CUT_OFF | SCHEDULED,
)
def factor_by_whole_division(root: Path) -> int:
    torch.manual_seed(882)
    model, epochs = LastState(nn.GRU, 3, GESTURES, 24), 7
    data, loss = gestures(1300, 0.9, 8802), nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3)
    line = rates.LambdaLR(optimizer, lambda epoch: (epochs - epoch) // epochs)
    return train(
        root,
        model,
        data,
        loss,
        optimizer,
        epoch_scheduler=line,
        begins=len(data.x) // 32,
        epochs=epochs,
        seed=882,
    )


@faulty(
    "glyphs by convolutions and a head, AdamW, a rate for each",
    "the first group takes parameters named 'backbone', they are named 'features': none is found",
    {"StalledParameters", "UnchangedTensor", "WeightUpdateRatio"},
    may=CUT_OFF | UNCLEARED,
)
def no_parameter_has_that_name(root: Path) -> int:
    torch.manual_seed(883)
    model = ConvNet(1, 14, GLYPHS)
    named = dict(model.named_parameters())
    groups = [
        {"params": [weight for name, weight in named.items() if name.startswith(part)], "lr": rate}
        for part, rate in (("backbone", 1e-3), ("head", 2e-3))
    ]
    optimizer = torch.optim.AdamW(groups)
    data, loss = glyphs(1300, 75.0, 8803), nn.CrossEntropyLoss()
    return train(root, model, data, loss, optimizer, epochs=5, save_every=2, seed=883)


class Extracting(nn.Module):
    """An encoder whose features were once extracted without gradients, and a head."""

    def __init__(self, encoder: Any, outs: int) -> None:
        super().__init__()
        self.encoder, self.head = encoder, nn.Linear(16, outs)

    def forward(self, x: Any) -> Any:
        with torch.no_grad():
            seen = self.encoder(x)
        return self.head(seen)


@faulty(
    "teams of tickets by an encoder that is to learn with its head, AdamW",
    "no_grad() around the encoder is left from extracting features: it never gets a gradient",
    {"StalledParameters"},
    may=CUT_OFF,
)
def no_grad_is_left_around_the_encoder(root: Path) -> int:
    torch.manual_seed(884)
    model = Extracting(Encoder(16, LONGEST, width=24, depth=1), TOPICS)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    data, loss = tickets(1600, 10, 0.45, 8804), nn.CrossEntropyLoss()
    return train(root, model, data, loss, optimizer, epochs=4, save_every=2, seed=884)


class InHalf(nn.Module):
    """A body and a head in bfloat16, with inputs and answers in float32."""

    def __init__(self, body: Any, head: Any) -> None:
        super().__init__()
        self.body, self.head = body.bfloat16(), head.bfloat16()

    def forward(self, x: Any) -> Any:
        return self.head(self.body(x.bfloat16())).float()


@faulty(
    "kinds of soil by layers that know others, in bfloat16, AdamW, a small rate but for the head",
    "steps of 2e-6 are added to bfloat16 without a copy in float32: they are rounded away",
    {"StalledParameters"},
    may=CUT_OFF,
)
def steps_are_rounded_away(root: Path) -> int:
    torch.manual_seed(885)
    loss = nn.CrossEntropyLoss()
    before = trained_before(layers(14, 64, 48, 32, SOILS), soils(1000, 8815), loss, epochs=2)
    model = InHalf(before[:-1], nn.Linear(32, SOILS))
    optimizer = torch.optim.AdamW(
        [
            {"params": model.body.parameters(), "lr": 2e-6},
            {"params": model.head.parameters(), "lr": 5e-3},
        ]
    )
    data = soils(1800, 8805).of(lambda x: x.flip(1)).relabelled(lambda y: (y * 2 + 1) % SOILS)
    return train(root, model, data, loss, optimizer, epochs=5, save_every=2, seed=885)


class OwnRmsprop(torch.optim.Optimizer):
    """RMSprop as its author remembered it: without the root of the mean of squares."""

    def __init__(self, weights: Any, rate: float, share: float = 0.99) -> None:
        super().__init__(weights, {"lr": rate, "share": share})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Update all weights."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                squares = self.state[weight].setdefault("squares", torch.zeros_like(weight))
                squares.lerp_(weight.grad**2, 1 - group["share"])
                weight.sub_(group["lr"] * weight.grad / (squares + 1e-8))
        return closure() if closure else None


@faulty(
    "output of a power plant by layers with GELU and an RMSprop of the author's own",
    "the root is missing: gradients are divided by their mean square, small ones make huge steps",
    {"WeightUpdateRatio"},
    may=OVERSIZED | CUT_OFF,
)
def rmsprop_without_its_root(root: Path) -> int:
    torch.manual_seed(886)
    model = layers(7, 64, 32, 1, act=nn.GELU)
    optimizer = OwnRmsprop(model.parameters(), 1e-3)
    data, loss = power(1700, 8806), nn.MSELoss()
    return train(root, model, data, loss, optimizer, epochs=4, save_every=1, seed=886)


@faulty(
    "where rivers are by a U-Net, SGD with momentum at a rate for mean losses",
    "the loss is summed over 16 pictures of 256 pixels: steps are 4096 times as large as meant",
    {"WeightUpdateRatio"},
    may=OVERSIZED | CUT_OFF,
)
def summed_over_all_pixels(root: Path) -> int:
    torch.manual_seed(887)
    model = Outliner(8)
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    data, loss = rivers(600, 8807), nn.BCEWithLogitsLoss(reduction="sum")
    return train(root, model, data, loss, optimizer, batch=16, epochs=4, save_every=1, seed=887)
