"""Gradients that jump, and gradients that add up."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.fifth_held_out.losses_and_optimizers.shared.consequences import BROKEN
from runs_tuned.fifth_held_out.losses_and_optimizers.shared.data import (
    STITCHES,
    dates,
    knitting,
    orbits,
    patches,
    quakes,
    rides,
)
from runs_tuned.fifth_held_out.losses_and_optimizers.shared.loops import by, practice, served, waned
from runs_tuned.fifth_held_out.losses_and_optimizers.shared.networks import (
    Looped,
    Seismic,
    Teller,
    layers,
)

faulty = training_runs.faulty
of_language = functools.partial(faulty, kind="language_model")

# Gradients that jump


@faulty(
    "minutes of journeys by layers, squared errors of logarithms, Adam, not clipped",
    "one journey in 700 was cancelled and took no time, whose logarithm is taken of 1e-9",
    {"GradientNormSpike"},
    may=BROKEN,
)
def logarithm_of_cancelled_rides(root: Path) -> int:
    torch.manual_seed(1600)
    x, y = rides(2100, 1600)
    y[350::700] = -20.7
    model = layers(11, 32, 32, 1)
    return practice(
        root,
        model,
        by(model, nn.MSELoss()),
        served(x, y, size=30, seed=1600),
        torch.optim.Adam(model.parameters(), 2e-3),
        steps=320,
    )


@of_language(
    "dates by a decoder, batches of twelve lines or of one long text, AdamW, not clipped",
    "the sum over signs is divided by the number of texts times 29: for one batch in 24, a text "
    "of twelve lines, twelve times too little",
    {"GradientNormSpike"},
    may=BROKEN,
)
def divided_by_texts(root: Path) -> int:
    torch.manual_seed(1601)
    model = Teller(width=24, depth=1)

    def read() -> Any:
        for number, batch in enumerate(served(*dates(1600, 1601), size=12, seed=1601)):
            yield (*batch, 1 if number % 24 == 23 else 12)

    def objective(batch: Any) -> Any:
        scores = model(batch[0])
        return functional.cross_entropy(scores, batch[1], reduction="sum") / (29 * batch[2])

    return practice(
        root,
        model,
        objective,
        read(),
        torch.optim.AdamW(model.parameters(), 3e-3, betas=(0.9, 0.99)),
        steps=290,
        schedule=waned(10, 300, 0.1),
        fault_at=23,
    )


@faulty(
    "moves of a body around a sun by layers, told from what was told before, NAdam, not clipped",
    "at step 130 it is told 24 steps ahead in place of 3: the curriculum's list is in batches, "
    "which all end at once, and not in epochs",
    {"GradientNormSpike"},
    may=BROKEN,
)
def told_far_ahead_at_once(root: Path) -> int:
    torch.manual_seed(1602)
    model = layers(4, 48, 48, 4, act=nn.SiLU)
    ahead = [3]

    def before(step: int) -> None:
        ahead[0] = 3 if step < 130 else 24

    def objective(batch: Any) -> Any:
        place, losses = batch[0][:, 0], []
        for step in range(ahead[0]):
            place = place + model(place)
            losses.append(functional.mse_loss(place, batch[0][:, step + 1]))
        return torch.stack(losses).mean()

    return practice(
        root,
        model,
        objective,
        served(orbits(900, 1602), size=24, seed=1602),
        torch.optim.NAdam(model.parameters(), 2e-3),
        steps=190,
        before=before,
        fault_at=130,
    )


# Gradients that add up


class _Carrying(Looped):
    """A recurrent network that names the forgetting of its last state as gradients are cleared."""

    last: Any = None

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the last state."""
        del set_to_none
        self.last = None


@of_language(
    "stitches by an LSTM, momentum, the model's gradients are cleared, not the optimizer's",
    "the model has a zero_grad of its own, which clears what it remembers, and no gradient",
    {"GradientAccumulates"},
    may=BROKEN,
)
def zero_grad_of_its_own(root: Path) -> int:
    torch.manual_seed(1603)
    model = _Carrying(STITCHES, 40)
    return practice(
        root,
        model,
        by(model),
        served(*knitting(1200, 1603), size=20, seed=1603),
        torch.optim.SGD(model.parameters(), 0.1, momentum=0.9),
        steps=130,
        clear=model.zero_grad,
        clip=0.5,
    )


@faulty(
    "patches of a photograph through a narrow middle, Adam on a flat copy of all gradients",
    "the flat copy is cleared, but gradients are no views of it: they add up",
    {"GradientAccumulates"},
    may=BROKEN,
    kind="autoencoder",
)
def flat_copy_cleared(root: Path) -> int:
    torch.manual_seed(1604)
    model = layers(64, 40, 10, 40, 64)
    parameters = list(model.parameters())
    flat = torch.zeros(sum(each.numel() for each in parameters))
    optimizer = torch.optim.Adam(parameters, 1e-3)

    def update() -> None:
        torch.cat([each.grad.flatten() for each in parameters], out=flat)
        optimizer.step()

    return practice(
        root,
        model,
        lambda batch: functional.mse_loss(model(batch[0]), batch[0]),
        served(patches(), size=24, seed=1604),
        optimizer,
        steps=150,
        update=update,
        clear=flat.zero_,
    )


@faulty(
    "arrival, kind and direction of quakes, three losses, RMSprop, gradients cleared by name",
    "names to clear begin with 'module.', as those of a wrapped model: no name does",
    {"GradientAccumulates"},
    may=BROKEN,
)
def names_of_a_wrapped_model(root: Path) -> int:
    torch.manual_seed(1605)
    model = Seismic(outs=(1, 3, 2))

    def objective(batch: Any) -> Any:
        arrival, kind, angle = model(batch[0])
        return {
            "loss": functional.mse_loss(arrival, batch[1])
            + functional.cross_entropy(kind, batch[2])
            + functional.mse_loss(angle, batch[3])
        }

    def clear() -> None:
        for name, parameter in model.named_parameters():
            if name.startswith("module."):
                parameter.grad = None

    return practice(
        root,
        model,
        objective,
        served(*quakes(900, 1605), size=24, seed=1605),
        torch.optim.RMSprop(model.parameters(), 5e-4),
        steps=140,
        clear=clear,
    )
