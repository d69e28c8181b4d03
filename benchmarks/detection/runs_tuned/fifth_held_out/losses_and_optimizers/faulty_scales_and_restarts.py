"""Loss scales that fall to their floor, and restarts that lose a part of the training."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch import nn
from torch.nn import functional

from runs_tuned.fifth_held_out.losses_and_optimizers.shared.consequences import BROKEN, IDLE
from runs_tuned.fifth_held_out.losses_and_optimizers.shared.data import (
    dates,
    flags,
    quakes,
    sums,
    teas,
)
from runs_tuned.fifth_held_out.losses_and_optimizers.shared.loops import by, practice, served, waned
from runs_tuned.fifth_held_out.losses_and_optimizers.shared.networks import (
    Grader,
    Seismic,
    Teller,
    channel_wise,
)
from runs_tuned.fifth_held_out.losses_and_optimizers.shared.restarts import by_step, restarted

faulty = training_runs.faulty
of_language = functools.partial(faulty, kind="language_model")
STOPPED = BROKEN | IDLE

# Scales of the loss


@faulty(
    "logarithms of the seconds to the arrival of quakes in half precision, Adam, a scaler; from "
    "step 50 on a part of the records is silent, and is left out by a mask",
    "seconds are masked before their logarithm, and losses after it: the slope of a silent "
    "record is nothing times infinity",
    {"LossScaleAtFloor", "ExplodingTensor"},
    may=STOPPED,
)
def masked_before_the_logarithm(root: Path) -> int:
    torch.manual_seed(1630)
    records, arrival, _, _ = quakes(900, 1630)
    model = Seismic(8, outs=(1,))

    def read() -> Any:
        seconds = (arrival[:, 0] * 16 + 44) / 20
        for number, batch in enumerate(served(records, seconds, size=24, seed=1630)):
            heard = torch.ones(24)
            heard[: 3 if number >= 50 else 0] = 0.0
            yield batch[0] * heard[:, None, None], batch[1], heard

    def objective(batch: Any) -> Any:
        told = functional.softplus(model(batch[0]).float()[:, 0] + 2.0) * batch[2]
        errors = (told.log() - batch[1].log()).pow(2)
        return torch.where(batch[2] > 0, errors, 0.0).sum() / batch[2].sum()

    return practice(
        root,
        model,
        objective,
        read(),
        torch.optim.Adam(model.parameters(), 3e-3),
        steps=120,
        half=torch.float16,
        scaler=torch.amp.GradScaler("cpu", init_scale=2.0**13, growth_interval=60),
        fault_at=50,
    )


@faulty(
    "colours of fields of flags in half precision, hard ones weigh more (focal loss), momentum, "
    "a scaler",
    "the power of what is missed is a half, whose slope is infinite at 0: chances round to 1 as "
    "soon as colours are told apart",
    {"LossScaleAtFloor", "ExplodingTensor"},
    may=STOPPED,
)
def power_of_a_half(root: Path) -> int:
    torch.manual_seed(1631)
    model = channel_wise(3, 6, 12)
    x, _, field = flags(900, 1631, 0.5)
    certain: list[bool] = []

    def objective(batch: Any) -> Any:
        chances = model(batch[0]).half().softmax(1).gather(1, batch[1][:, None])
        certain.append(bool((chances == 1).any()))
        return ((1 - chances).pow(0.5) * -chances.clamp(min=1e-4).log()).mean()

    practice(
        root,
        model,
        objective,
        served(x, field, size=24, seed=1631),
        torch.optim.SGD(model.parameters(), 0.1, momentum=0.9),
        steps=150,
        half=torch.float16,
        clip=1.0,
        scaler=torch.amp.GradScaler("cpu", init_scale=2.0**12, growth_interval=100),
    )
    return certain.index(True)


class _Scale:
    """A scale of the loss by hand, with the flag of an overflow."""

    def __init__(self, optimizer: Any, parameters: Any) -> None:
        self.scale, self.good, self.has_overflowed = 2.0**16, 0, False
        self.optimizer, self.parameters = optimizer, list(parameters)
        self.first: list[int] = []
        self.updates = 0

    def update(self) -> None:
        """Divide gradients by the scale and update, unless a gradient has overflowed."""
        self.updates += 1
        for parameter in self.parameters:
            self.has_overflowed |= not bool(parameter.grad.isfinite().all())
        if self.has_overflowed:
            self.first.append(self.updates - 1)
            self.scale, self.good = self.scale / 2, 0
            return
        for parameter in self.parameters:
            parameter.grad /= self.scale
        self.optimizer.step()
        self.good += 1
        self.scale *= 2 if self.good % 12 == 0 else 1


@of_language(
    "sums by a decoder in half precision, AdamW, a scale by hand that is doubled every 12 steps",
    "the flag of an overflow is set and never taken back: after the first overflow each update "
    "is skipped, and the scale halved",
    {"LossScaleAtFloor"},
    may=STOPPED | {"ExplodingTensor": "the first overflow is infinite"},
)
def flag_never_taken_back(root: Path) -> int:
    torch.manual_seed(1632)
    model = Teller(width=24)
    scale = _Scale(torch.optim.AdamW(model.parameters(), 4e-3), model.parameters())
    practice(
        root,
        model,
        by(model),
        served(*sums(1200, 1632), size=16, seed=1632),
        scale.optimizer,
        steps=170,
        half=torch.float16,
        own_scale=scale,
        update=scale.update,
    )
    return scale.first[0]


# Restarts


@faulty(
    "grades of teas by eleven layers in a row go on from a checkpoint, Adam",
    "layers are loaded in the order of their names as texts: 10 comes before 2",
    {"ResumeLostState"},
    may=BROKEN,
)
def layers_sorted_as_texts(root: Path) -> int:
    torch.manual_seed(1633)
    model = Grader(width=24, depth=0)
    each = (nn.Sequential(nn.Linear(24, 24), nn.LayerNorm(24), nn.Mish()) for _ in range(11))
    model.blocks = nn.Sequential(*each)

    def lost(model: Any) -> None:
        states = [block.state_dict() for block in model.blocks]
        order = sorted(range(len(states)), key=str)
        copies = [{name: each.clone() for name, each in state.items()} for state in states]
        for block, at in zip(model.blocks, order, strict=True):
            block.load_state_dict(copies[at])

    return restarted(
        root,
        model,
        by(model),
        by_step(*teas(1500, 1633), size=40, seed=1633),
        torch.optim.Adam(model.parameters(), 3e-3),
        stops=((150, 165),),
        steps=230,
        lost=lost,
    )


@of_language(
    "a decoder of dates with tied scores goes on, AdamW, warm-up and cosine",
    "the settings of the restart no longer tie them: the checkpoint has no scores, and those of "
    "the new model begin anew",
    {"ResumeLostState"},
    may=BROKEN,
)
def no_longer_tied(root: Path) -> int:
    torch.manual_seed(1634)
    model = Teller(tied=True)
    optimizer = torch.optim.AdamW(model.parameters(), 5e-3)

    def lost(model: Any) -> None:
        model.lm_head.weight = nn.Parameter(torch.randn_like(model.embed.weight) / 6)

    return restarted(
        root,
        model,
        by(model),
        by_step(*dates(1200, 1634), seed=1634),
        optimizer,
        stops=((140, 150),),
        schedule=waned(12, 260, 0.05),
        clip=1.0,
        lost=lost,
    )


@faulty(
    "arrival, kind and direction of quakes, three losses weighed by how uncertain each is, which "
    "is learnt, Adam; all goes on from a checkpoint",
    "what is learnt of the weights is no part of the model, and not in the checkpoint",
    {"ResumeLostState"},
    may=BROKEN,
)
def weights_of_losses_not_kept(root: Path) -> int:
    torch.manual_seed(1635)
    model, unsure = Seismic(outs=(1, 3, 2)), nn.Parameter(torch.zeros(3))

    def objective(batch: Any) -> Any:
        arrival, kind, angle = model(batch[0])
        losses = [
            functional.mse_loss(arrival, batch[1]),
            functional.cross_entropy(kind, batch[2]),
            functional.mse_loss(angle, batch[3]),
        ]
        return ((-unsure).exp() * torch.stack(losses) + 0.5 * unsure.exp()).sum()

    groups = [{"params": model.parameters()}, {"params": [unsure], "lr": 1e-2}]
    return restarted(
        root,
        model,
        objective,
        by_step(*quakes(1000, 1635), size=24, seed=1635),
        torch.optim.Adam(groups, 2e-3),
        stops=((200, 212),),
        steps=290,
        lost=lambda _: unsure.data.zero_(),
    )
