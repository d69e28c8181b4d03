"""Data and labels: classes that are lost or look alike, images, batches, and inputs of losses."""

import itertools
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.learnt_data import Split
from training.torch_loop import adam, batches, fit, sgd, validate, watched
from training_runs import faulty

from runs_tuned.third_held_out.networks.shared.consequences import DAMAGED, IDLE, KNOWN, OTHERWISE
from runs_tuned.third_held_out.networks.shared.pictures import Herbarium, divided, leaves, tracks
from runs_tuned.third_held_out.networks.shared.series import Pen, Shaker, bearings, strokes
from runs_tuned.third_held_out.networks.shared.sets import Chemist, molecules, solids
from runs_tuned.third_held_out.networks.shared.tables import layers, soils


@faulty(
    "signs of a pen by a GRU, at most so many rows of each sign, AdamW",
    "one sign has another spelling in the list of limits: it has 25 times the rows of any other",
    {"ClassImbalance"},
    may=OTHERWISE | IDLE,
)
def sign_without_limit(root: Path) -> int:
    whole = strokes(4200, seed=327)
    kept = (whole.y == 2) | (torch.arange(len(whole.y)) % 25 == 0)
    data = Split(whole.x[kept], whole.y[kept], whole.test_x[:300], whole.test_y[:300])
    optimizer = adam(3e-3, torch.optim.AdamW)
    return fit(root, Pen, data, optimizer=optimizer, steps=120, clip=1.0, seed=81)


@faulty(
    "bearings by convolutions, cross entropy, Adam",
    "ignore_index is 1, as padding has the number 1 elsewhere: damage of the inner ring is ignored",
    {"ClassImbalance", "Confusion"},
    may=OTHERWISE,
)
def ignored_as_padding(root: Path) -> int:
    loss = nn.CrossEntropyLoss(ignore_index=1)
    data = bearings(noise=0.3, seed=328)
    return fit(root, Shaker, data, loss=loss, optimizer=adam(4e-3), steps=160, seed=82)


def grey(x: Any) -> Any:
    """Return pictures without their colours, each levelled for itself."""
    x = x.mean(1, keepdim=True)
    dims = (1, 2, 3)
    return (x - x.mean(dims, keepdim=True)) / x.std(dims, keepdim=True)


@faulty(
    "leaves of four kinds, two of which differ in their colour alone, AdamW",
    "pictures are made grey by a step that was made for scanned texts",
    {"Confusion"},
    may=OTHERWISE,
)
def made_grey(root: Path) -> int:
    whole = leaves(1700, noise=0.3, seed=315)
    number = torch.tensor([0, -1, 1, 2, 3, -1])
    rows, test = number[whole.y] >= 0, number[whole.test_y] >= 0
    data = Split(
        whole.x[rows], number[whole.y[rows]], whole.test_x[test], number[whole.test_y[test]]
    )
    make = lambda: Herbarium(1, 4, 10)
    optimizer = adam(4e-3, torch.optim.AdamW)
    return fit(root, make, data.of(grey), optimizer=optimizer, steps=180, save_every=4)


@faulty(
    "crops of soils, eleven of them, Nesterov momentum",
    "numbers of crops are sorted as texts in the validation data: 1, 10, 11, 2, 3 and so on",
    {"Confusion"},
    may=OTHERWISE,
)
def sorted_as_texts(root: Path) -> int:
    data = soils(1700, 1.8, 306, crops=11)
    place = sorted(range(11), key=lambda number: str(number + 1))
    number = torch.tensor([place.index(crop) for crop in range(11)])
    wrong = Split(data.x, data.y, data.test_x, number[data.test_y])
    optimizer = sgd(0.05, momentum=0.9, nesterov=True)
    return fit(root, lambda: layers(9, 48, 11), wrong, optimizer=optimizer, steps=200, seed=84)


@faulty(
    "how far to steer, pictures of a camera for heat, convolutions, AdamW",
    "degrees are those of Celsius, but mean and deviation are those of Fahrenheit",
    {"CheckInputImages"},
    may=DAMAGED | IDLE,
)
def degrees_of_another_scale(root: Path) -> int:
    data = tracks().of(lambda x: (25 + 5 * x - 77) / 9)
    make = lambda: Herbarium(1, 1, 8)
    optimizer = adam(3e-3, torch.optim.AdamW)
    return fit(root, make, data, loss=nn.SmoothL1Loss(), optimizer=optimizer, steps=100, seed=85)


@faulty(
    "how molecules hold together, rows of the second fold to train with, Adam",
    "rows to validate with are those of the first fold: most of these are learnt from",
    {"RepeatedBatches"},
    may=KNOWN,
)
def folds_mixed_up(root: Path) -> int:
    whole = molecules(1000, 337)
    x, y = torch.cat([whole.x, whole.test_x]), torch.cat([whole.y, whole.test_y])
    folds = torch.randperm(1000, generator=torch.Generator().manual_seed(86)).chunk(4)
    rows = torch.cat([folds[0], folds[2], folds[3]])
    others = folds[0][:150].tolist() + folds[1][:100].tolist()
    data = Split(x[rows], y[rows], x[others], y[others])
    return fit(
        root,
        Chemist,
        data,
        loss=nn.MSELoss(),
        optimizer=adam(4e-3),
        steps=140,
        batch=24,
        save_every=1,
        validate_batch=50,
        seed=86,
    )


@faulty(
    "bearings by convolutions, batch norm, RMSprop, 31 batches an epoch",
    "from step 62 on an epoch has three batches: a limit for debugging is left in the settings",
    {"RepeatedBatches"},
    may=KNOWN,
)
def limit_for_debugging(root: Path) -> int:
    torch.manual_seed(87)
    torch.set_num_threads(1)
    model, loss, data, onset = Shaker(), nn.CrossEntropyLoss(), bearings(), 0
    optimizer = torch.optim.RMSprop(model.parameters(), 2e-3)
    every = list(itertools.islice(batches(data, 24, 87), 62))
    with watched(root, model, losses=[loss], save_every=1) as watching:
        for step in range(130):
            if step == 62:
                onset = watching.global_step + 1
            x, y = every[step] if step < 62 else every[step % 3]
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            if (step + 1) % 31 == 0:
                validate(watching, model, loss, data)
    return onset


class Windows(nn.Module):
    """The chance that one of eight windows of a series shows any damage."""

    def __init__(self) -> None:
        super().__init__()
        self.window = nn.Sequential(nn.Linear(16, 24), nn.ReLU(), nn.Linear(24, 1), nn.Sigmoid())

    def forward(self, x: Any) -> Any:
        windows = x.unflatten(2, (8, 8)).transpose(1, 2).flatten(2)
        return 1 - (1 - self.window(windows)).prod(1)


@faulty(
    "damage of bearings by chances of eight windows, of which one is enough, NAdam",
    "the chance of them all is given to binary cross entropy of logits",
    {"ProbabilitiesAsLogits"},
    may=IDLE,
)
def chance_of_any_window(root: Path) -> int:
    data = bearings().relabelled(lambda kind: (kind > 0).float()[:, None])
    optimizer = adam(3e-3, torch.optim.NAdam)
    loss = nn.BCEWithLogitsLoss()
    return fit(root, Windows, data, loss=loss, optimizer=optimizer, steps=150, seed=88)


class Cloud(nn.Module):
    """Tells solids by the most that any point says, with dropout of half."""

    def __init__(self) -> None:
        super().__init__()
        self.point = layers(4, 48, 48)
        self.norm, self.drop, self.head = nn.LayerNorm(48), nn.Dropout(0.5), nn.Linear(48, 4)

    def forward(self, x: Any) -> Any:
        x = torch.cat([x, x.norm(dim=2, keepdim=True)], 2)
        return self.head(self.drop(self.norm(self.point(x).amax(1))))


@faulty(
    "solids by the most that any point says, layer norm and dropout of half, Adam",
    "model.eval stands without its brackets before each evaluation, and does nothing",
    {"ValidationInTrainingMode"},
    may=OTHERWISE,
)
def eval_without_brackets(root: Path) -> int:
    whole = solids(1000, 48, seed=338)
    return fit(
        root,
        Cloud,
        divided(whole.x, whole.y),
        optimizer=adam(4e-3),
        steps=150,
        modules_are_switched=False,
        save_every=3,
        seed=89,
    )
