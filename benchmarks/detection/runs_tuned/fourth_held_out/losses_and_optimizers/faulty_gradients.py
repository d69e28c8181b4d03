"""Gradients that jump and gradients that add up."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.fourth_held_out.losses_and_optimizers.shared.consequences import DAMAGED
from runs_tuned.fourth_held_out.losses_and_optimizers.shared.lessons import (
    CARDS,
    LETTERS,
    addresses,
    decks,
    dice,
    plaids,
    power,
    pumps,
)
from runs_tuned.fourth_held_out.losses_and_optimizers.shared.loops import dealt, learn, of
from runs_tuned.fourth_held_out.losses_and_optimizers.shared.networks import (
    Dilated,
    Mixer,
    Recalling,
    Weaver,
    Writer,
    stack,
)

faulty = training_runs.faulty
of_language = functools.partial(faulty, kind="language_model")

# Gradients that jump


@faulty(
    "flow of pumps, errors as shares of the flow, which is never below a half, Adam, not clipped",
    "one pump in 500 stands still and reads a flow of 0.006, by which its error is divided",
    {"GradientNormSpike"},
    may=DAMAGED,
)
def share_of_nearly_nothing(root: Path) -> int:
    torch.manual_seed(720)
    x, y = pumps(1000, 720)
    y = (0.6 * y + 2.0).clamp(min=0.5)
    y[::500] = 0.006
    model = stack(12, 32, 16, 1)
    return learn(
        root,
        model,
        lambda batch: ((model(batch[0]) - batch[1]) / batch[1]).abs().mean(),
        dealt(x, y, size=32, seed=720),
        torch.optim.Adam(model.parameters(), 3e-3),
        steps=260,
    )


@faulty(
    "woven patterns by convolutions; hard ones are drawn often and weighted by 1 / chance, Adam",
    "chances are not bounded below: one picture in 400 is drawn with a chance that gives it 80",
    {"GradientNormSpike"},
    may=DAMAGED,
)
def weighted_by_tiny_chances(root: Path) -> int:
    torch.manual_seed(721)
    x, y = plaids(3200, 721, 0.5)
    weight = 0.5 + torch.rand(3200, generator=dice(721))
    weight[::400] = 80.0
    model = Weaver()

    def objective(batch: Any) -> Any:
        losses = functional.cross_entropy(
            model(batch[0]), batch[1], reduction="none", label_smoothing=0.1
        )
        return (losses * batch[2]).mean()

    return learn(
        root,
        model,
        objective,
        dealt(x, y, weight, size=20, seed=721),
        torch.optim.Adam(model.parameters(), 2e-3),
        steps=280,
    )


@faulty(
    "power of a town by dilated convolutions, a small penalty of bends, AdaMax, not clipped",
    "the second stage, from step 110 on, has the weight of the penalty in per mille: 20, not 0.02",
    {"GradientNormSpike"},
    may=DAMAGED,
)
def penalty_in_per_mille(root: Path) -> int:
    torch.manual_seed(722)
    model = Dilated()
    weight = [0.02]

    def objective(batch: Any) -> Any:
        foreseen = model(batch[0])
        bends = foreseen.diff(n=2, dim=1).pow(2).mean()
        return functional.mse_loss(foreseen, batch[1]) + weight[0] * bends

    def before(step: int) -> None:
        weight[0] = 0.02 if step < 110 else 20.0

    return learn(
        root,
        model,
        objective,
        dealt(*power(600, 722), size=32, seed=722),
        torch.optim.Adamax(model.parameters(), 2e-3),
        steps=180,
        before=before,
        at=110,
    )


# Gradients that add up


@faulty(
    "a head on a mixer that was trained with few pictures; its lower layers thaw at step 50, Adam",
    "what is cleared is a list of what was trained at the start: all but the head adds up",
    {"GradientAccumulates"},
    may=DAMAGED,
)
def cleared_by_an_old_list(root: Path) -> int:
    torch.manual_seed(723)
    model = Mixer()
    x, y = plaids(700, 723)
    taught = torch.optim.Adam(model.parameters(), 3e-3)
    for _, (pictures, numbers) in zip(range(60), dealt(x[:200], y[:200], size=20), strict=False):
        taught.zero_grad()
        functional.cross_entropy(model(pictures), numbers).backward()
        taught.step()
    taught.zero_grad()
    for parameter in model.parameters():
        parameter.requires_grad_(requires_grad=False)
    model.head.reset_parameters()
    model.head.requires_grad_(requires_grad=True)
    trained = [one for one in model.parameters() if one.requires_grad]
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)

    def before(step: int) -> None:
        if step == 50:
            for parameter in model.parameters():
                parameter.requires_grad_(requires_grad=True)

    def clear(_: int) -> None:
        for parameter in trained:
            parameter.grad = None

    return learn(
        root,
        model,
        of(model, nn.CrossEntropyLoss()),
        dealt(x[200:], y[200:], size=20, seed=723),
        optimizer,
        steps=150,
        before=before,
        clear=clear,
        at=50,
    )


@faulty(
    "hands of cards are put in order by an encoder, RMSprop, clipped; bad updates are skipped",
    "gradients are cleared in the branch that skips an update, and nowhere else",
    {"GradientAccumulates"},
    may=DAMAGED,
)
def cleared_if_skipped(root: Path) -> int:
    torch.manual_seed(724)
    model = Writer(CARDS, 24, ahead=True)
    optimizer = torch.optim.RMSprop(model.parameters(), 5e-4)

    def is_sound() -> bool:
        return all(bool(one.grad.isfinite().all()) for one in model.parameters())

    def update(_: Any) -> None:
        if is_sound():
            optimizer.step()
        else:
            optimizer.zero_grad()

    return learn(
        root,
        model,
        of(model, nn.CrossEntropyLoss()),
        dealt(*decks(800, 724), size=24, seed=724),
        optimizer,
        steps=130,
        update=update,
        clear=lambda _: None,
        clip=1.0,
    )


@of_language(
    "a GRU of addresses, AdamW, gradients of two batches accumulated, a small norm is clipped to",
    "set_to_none was wanted: grad is replaced by its detached self in place of None",
    {"GradientAccumulates"},
    may=DAMAGED,
)
def detached_in_place_of_none(root: Path) -> int:
    torch.manual_seed(725)
    model = Recalling(16, 40, len(LETTERS), words=len(LETTERS))

    def clear(_: int) -> None:
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter.grad = parameter.grad.detach()

    return learn(
        root,
        model,
        of(model, nn.CrossEntropyLoss()),
        dealt(*addresses(900, 725), size=12, seed=725),
        torch.optim.AdamW(model.parameters(), 3e-3),
        steps=200,
        accumulate=2,
        clear=clear,
        clip=2.0,
    )
