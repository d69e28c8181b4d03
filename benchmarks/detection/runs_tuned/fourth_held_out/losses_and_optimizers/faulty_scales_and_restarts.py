"""Loss scales that fall to their floor, and restarts that lose a part of the training."""

import functools
from pathlib import Path
from typing import Any

import torch
import training_runs
from torch.nn import functional

from runs_tuned.fourth_held_out.losses_and_optimizers.shared.consequences import DAMAGED, UNTAUGHT
from runs_tuned.fourth_held_out.losses_and_optimizers.shared.lessons import (
    LETTERS,
    addresses,
    dice,
    plaids,
    power,
    visits,
)
from runs_tuned.fourth_held_out.losses_and_optimizers.shared.loops import cosine, dealt, learn
from runs_tuned.fourth_held_out.losses_and_optimizers.shared.networks import (
    Dilated,
    Weaver,
    Writer,
    stack,
)
from runs_tuned.fourth_held_out.losses_and_optimizers.shared.restarts import Adapted, go_on, in_turn

faulty = training_runs.faulty
of_language = functools.partial(faulty, kind="language_model")
NOT_FINITE = DAMAGED | UNTAUGHT

# Scales of the loss


@faulty(
    "pictures of a pattern are drawn near to each other, in half precision, Adam, a scaler",
    "from step 30 on batches hold some pictures twice: the root of a distance of 0 has no slope",
    {"LossScaleAtFloor", "ExplodingTensor"},
    may=NOT_FINITE | {"RepeatedBatches": "rows are in a batch twice"},
    kind="contrastive",
)
def distance_of_equal_pictures(root: Path) -> int:
    torch.manual_seed(730)
    x, y = plaids(600, 730)
    model = Weaver(outs=8)

    def read() -> Any:
        for number, batch in enumerate(dealt(x, y, size=24, seed=730)):
            pictures, numbers = (part.clone() for part in batch)
            if number >= 30:
                pictures[:2], numbers[:2] = pictures[2:4], numbers[2:4]
            yield pictures, numbers

    def objective(batch: Any) -> Any:
        found = model(batch[0]).float()
        apart = (found[:, None] - found[None]).pow(2).sum(2)
        first, second = torch.triu_indices(len(found), len(found), 1)
        distance = apart[first, second].sqrt()
        same = (batch[1][:, None] == batch[1])[first, second].float()
        return (same * distance.pow(2) + (1 - same) * (1.5 - distance).relu().pow(2)).mean()

    return learn(
        root,
        model,
        objective,
        read(),
        torch.optim.Adam(model.parameters(), 3e-3),
        steps=110,
        half=torch.float16,
        scaler=torch.amp.GradScaler("cpu", init_scale=2.0**14, growth_interval=50),
        at=30,
    )


@faulty(
    "visits of shops as counts of days, half precision, AdamW, a scaler; the exponent is by hand",
    "from step 45 on days are in minutes: the exponent of their logarithm runs over in half",
    {"LossScaleAtFloor", "ExplodingTensor", "LossNotDecreasing"},
    may=NOT_FINITE,
)
def minutes_for_days(root: Path) -> int:
    torch.manual_seed(731)
    model = stack(8, 32, 24, 1)
    x, days, counts = visits(800, 731)

    def read() -> Any:
        for number, (shops, watched, seen) in enumerate(dealt(x, days, counts, size=32, seed=731)):
            yield shops, watched * (1440 if number >= 45 else 1), seen

    def objective(batch: Any) -> Any:
        expected = (model(batch[0]).half() + batch[1].log().half() + 3.0).exp() / 20.0
        told = batch[2] * ((batch[2] + 0.5) / (expected.float() + 0.5)).log()
        return (told - batch[2] + expected).mean()

    return learn(
        root,
        model,
        objective,
        read(),
        torch.optim.AdamW(model.parameters(), 3e-3),
        steps=120,
        half=torch.float16,
        scaler=torch.amp.GradScaler("cpu", init_scale=2.0**13, growth_interval=200),
        at=45,
    )


class _ByHand:
    """A scale of the loss by hand: halved whenever the norm says so."""

    def __init__(self, optimizer: Any, parameters: Any, limit: float) -> None:
        self.scale, self.optimizer, self.limit = 2.0**15, optimizer, limit
        self.parameters = list(parameters)

    def update(self, _: Any) -> None:
        """Divide gradients by the scale and update, unless their norm is above the limit."""
        norm = torch.stack([one.grad.norm() for one in self.parameters]).norm()
        if float(norm) > self.limit or not bool(norm.isfinite()):
            self.scale /= 2
            return
        for parameter in self.parameters:
            parameter.grad /= self.scale
        self.optimizer.step()


@of_language(
    "a decoder of addresses in half precision, AdamW, a scale of the loss by hand",
    "the norm that tells an overflow is taken before gradients are divided by the scale: the "
    "scale is halved until nearly nothing is left of it, and updates are skipped meanwhile",
    {"LossScaleAtFloor"},
    may=NOT_FINITE,
)
def limit_of_a_scaled_norm(root: Path) -> int:
    torch.manual_seed(732)
    model = Writer(len(LETTERS), depth=1)
    by_hand = _ByHand(
        torch.optim.AdamW(model.parameters(), 3e-3, betas=(0.9, 0.95)), model.parameters(), 0.3
    )
    return learn(
        root,
        model,
        lambda batch: functional.cross_entropy(model(batch[0]), batch[1]),
        dealt(*addresses(800, 732), size=16, seed=732),
        by_hand.optimizer,
        steps=130,
        half=torch.float16,
        scale_by_hand=by_hand,
        update=by_hand.update,
    )


# Restarts


@of_language(
    "a decoder of addresses goes on from the last checkpoint, AdamW, warm-up and cosine",
    "the last one is found by sorting names as texts: step-12 was kept, and comes after step-119",
    {"ResumeLostState"},
    may=DAMAGED,
)
def checkpoints_sorted_as_text(root: Path) -> int:
    torch.manual_seed(733)
    model = Writer(len(LETTERS))
    return go_on(
        root,
        model,
        lambda batch: functional.cross_entropy(model(batch[0]), batch[1]),
        in_turn(*addresses(900, 733), size=24, seed=733),
        torch.optim.AdamW(model.parameters(), 3e-3),
        schedule=cosine(20, 240),
        checkpoint=120,
        weights_of=12,
        lost=15,
        steps=220,
    )


@of_language(
    "a decoder learns other addresses through low-rank adapters (LoRA), goes on, Adam",
    "the checkpoint has merged weights, and adapters are loaded beside them: they count twice",
    {"ResumeLostState"},
    may=DAMAGED,
)
def adapters_count_twice(root: Path) -> int:
    torch.manual_seed(734)
    model = Adapted(Writer(len(LETTERS), 32), rank=8)
    x, y = addresses(900, 734)
    turned = torch.randperm(26, generator=dice(734))
    table = torch.cat([turned, torch.arange(26, len(LETTERS))])
    model.teach(dealt(x[:300], y[:300], size=24, seed=734), 110)
    return go_on(
        root,
        model,
        lambda batch: functional.cross_entropy(model(table[batch[0]]), table[batch[1]]),
        in_turn(x[300:], y[300:], size=24, seed=735),
        torch.optim.Adam([one for one in model.parameters() if one.requires_grad], 4e-3),
        checkpoint=140,
        lost=10,
        steps=230,
        change=lambda model: model.merge(),
    )


@faulty(
    "a network learns what a fixed random one says of power (random network distillation), Adam",
    "the random one is no part of the checkpoint, and begins with other numbers",
    {"ResumeLostState"},
    may=DAMAGED,
)
def random_teacher_drawn_again(root: Path) -> int:
    torch.manual_seed(735)
    teachers = [Dilated(12, 8) for _ in range(2)]
    model = Dilated(16, 8)

    def objective(batch: Any) -> Any:
        with torch.no_grad():
            told = teachers[0](batch[0])
        return functional.mse_loss(model(batch[0]), told)

    return go_on(
        root,
        model,
        objective,
        in_turn(*power(600, 735), size=24, seed=735),
        torch.optim.Adam(model.parameters(), 2e-3),
        checkpoint=130,
        lost=20,
        steps=210,
        change=lambda _: teachers.reverse(),
    )
