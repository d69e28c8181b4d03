"""Updates that go wrong: none, too large, for ever, of a part alone, or with no number."""

import copy
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, batches, fit, sgd, validate, watched
from training_runs import faulty

from runs_tuned.third_held_out.networks.shared.consequences import DAMAGED, IDLE
from runs_tuned.third_held_out.networks.shared.series import (
    Pen,
    Shaker,
    States,
    bearings,
    strokes,
    tides,
)
from runs_tuned.third_held_out.networks.shared.sets import ATOMS, Chemist, Edges, molecules, solids
from runs_tuned.third_held_out.networks.shared.tables import Lender, layers, loans, orders, soils


class Averaging(Chemist):
    """Divides what atoms are told by the number of their bonds."""

    def pooled(self, x: Any) -> Any:
        bonds = x[:, :, :ATOMS] / x[:, :, :ATOMS].sum(2, keepdim=True)
        return super().pooled(torch.cat([bonds, x[:, :, ATOMS:]], 2))


@faulty(
    "how molecules hold together, means over bonds, Adam; from step 60 on there are salts as well",
    "atoms of salts have no bond: nothing is divided by nothing, and the loss is no number",
    {"ExplodingTensor", "LossNotDecreasing"},
    may=IDLE,
)
def atoms_without_bonds(root: Path) -> int:
    torch.manual_seed(71)
    torch.set_num_threads(1)
    model, loss, data, onset = Averaging(), nn.MSELoss(), molecules(), 0
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    with watched(root, model, losses=[loss]) as watching:
        for step, (x, y) in zip(range(140), batches(data, 24, 71), strict=False):
            if step == 60:
                onset = watching.global_step + 1
            if step >= 60 and step % 6 == 0:
                x[0, 4, :ATOMS] = x[0, :, 4] = 0
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            if (step + 1) % 20 == 0:
                validate(watching, model, loss, data)
    return onset


@faulty(
    "bearings by convolutions, smoothed labels, Adam",
    "the smoothing is 0.98 instead of 0.02: labels are the same for all, to within 2 %",
    {"LossNotDecreasing"},
    may=IDLE,
)
def smoothed_away(root: Path) -> int:
    loss = nn.CrossEntropyLoss(label_smoothing=0.98)
    return fit(root, Shaker, bearings(), loss=loss, optimizer=adam(2e-3), steps=220, seed=72)


@faulty(
    "signs of a pen by a GRU, momentum, clipped",
    "the limit of the norm is 1e-5, that of a loss in another unit: updates come to nothing",
    {"LossNotDecreasing"},
    may=IDLE,
)
def clipped_to_nothing(root: Path) -> int:
    optimizer = sgd(0.05, momentum=0.9)
    return fit(root, Pen, strokes(), optimizer=optimizer, steps=220, batch=24, clip=1e-5, seed=73)


@faulty(
    "lateness of orders, an average of the weights that is corrected for its start, Adam",
    "at step 70 the model gets the average, corrected by a counter at 1: 50 times the weights",
    {"WeightUpdateRatio"},
    may=DAMAGED,
)
def average_corrected_again(root: Path) -> int:
    average: dict[int, Any] = {}

    def update(optimizer: Any) -> None:
        optimizer.step()
        for group in optimizer.param_groups:
            for each in group["params"]:
                kept = average.setdefault(id(each), each.detach().clone())
                kept.mul_(0.98).add_(each.detach(), alpha=0.02)

    def change(model: Any, _: Any) -> None:
        with torch.no_grad():
            for each in model.parameters():
                each.copy_(average[id(each)] / (1 - 0.98**1))

    return fit(
        root,
        lambda: layers(11, 32, 32, 1, between=nn.GELU),
        orders(),
        loss=nn.SmoothL1Loss(),
        optimizer=adam(3e-3),
        steps=140,
        update=update,
        at=70,
        change=change,
    )


@faulty(
    "crops of soils, AdamW; from step 60 on a guard goes back to good weights if the loss jumps",
    "the guard's limit is 0.02 instead of 1.02 times the best loss: it goes back at each step",
    {"UnchangedTensor", "WeightUpdateRatio"},
    may=IDLE,
)
def guard_goes_back(root: Path) -> int:
    torch.manual_seed(74)
    torch.set_num_threads(1)
    model, loss, data, onset = layers(9, 40, 40, 4), nn.CrossEntropyLoss(), soils(), 0
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    best, good = float("inf"), copy.deepcopy(model.state_dict())
    with watched(root, model, losses=[loss]) as watching:
        for step, (x, y) in zip(range(160), batches(data, 32, 74), strict=False):
            if step == 60:
                onset = watching.global_step + 1
                good = copy.deepcopy(model.state_dict())
            optimizer.zero_grad()
            value = loss(model(x), y)
            value.backward()
            optimizer.step()
            if step >= 60 and float(value.detach()) > 0.02 * best:
                model.load_state_dict(good)
            best = min(best, float(value.detach()))
            if (step + 1) % 20 == 0:
                validate(watching, model, loss, data)
    return onset


class Unseeing(Edges):
    """What points see of their neighbours is found without gradients, as the neighbours are."""

    def seen(self, x: Any) -> Any:
        with torch.no_grad():
            return super().seen(x)


@faulty(
    "solids by edges between neighbours, Adam",
    "neighbours are searched without gradients, and so are the two layers that look at them",
    {"StalledParameters"},
    may=IDLE,
)
def searched_without_gradients(root: Path) -> int:
    return fit(root, Unseeing, solids(), optimizer=adam(4e-3), steps=90, batch=20, seed=75)


@faulty(
    "bearings by convolutions with batch norm, updates as long as a share of the weights (LARS)",
    "the share is 0.2, that of another definition, and not 0.002: norms hide that weights grow",
    {"NormGrowth"},
    may=DAMAGED,
)
def share_of_the_weights(root: Path) -> int:
    def update(optimizer: Any) -> None:
        for group in optimizer.param_groups:
            for each in group["params"]:
                scale = 0.2 * each.norm() / each.grad.norm() if each.dim() > 1 else 0.05
                each.grad.mul_(scale)
        optimizer.step()

    return fit(root, Shaker, bearings(), optimizer=sgd(1.0), steps=200, update=update, seed=76)


class Scaling(Lender):
    """Scales the embedding of branches by the root of its width."""

    def forward(self, x: Any) -> Any:
        if not torch.is_grad_enabled():
            self.branch.weight.mul_(6**0.5)
        return super().forward(x)


@faulty(
    "loans by embeddings and numbers, AdamW; the embedding is scaled where there is no gradient",
    "mul_ in place of mul: each evaluation leaves the embedding 2.4 times as large as it was",
    {"TensorVariance"},
    may=DAMAGED,
)
def scaled_in_place(root: Path) -> int:
    return fit(
        root,
        Scaling,
        loans(),
        loss=nn.BCEWithLogitsLoss(),
        optimizer=adam(2e-3, torch.optim.AdamW),
        steps=170,
        validate_every=40,
        at=39,
        change=lambda *_: None,
        seed=77,
    )


@faulty(
    "six levels of the sea ahead by states that decay, Adam, clipped",
    "from step 60 on each ninth batch has two rows of a gauge that writes -99.9 for no level",
    {"LossSpike"},
    may=DAMAGED,
)
def no_level_is_a_number(root: Path) -> int:
    torch.manual_seed(78)
    torch.set_num_threads(1)
    model, loss, data, onset = States(), nn.MSELoss(), tides(), 0
    optimizer = torch.optim.Adam(model.parameters(), 6e-3)
    with watched(root, model, losses=[loss], save_every=1) as watching:
        for step, (x, y) in zip(range(170), batches(data, 32, 78), strict=False):
            target = y.clone()
            if step >= 60 and step % 9 == 6:
                onset = onset or watching.global_step + 1
                target[:2] = -99.9
            optimizer.zero_grad()
            loss(model(x), target).backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            if (step + 1) % 20 == 0:
                validate(watching, model, loss, data)
    return onset
