"""Gradients that add up, parameters that no update reaches, and weights without bounds."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from training.torch_loop import adam, batches, fit, sgd, validate, watched
from training_runs import faulty

from runs_tuned.second_held_out.shared.consequences import IDLE, SHAKEN
from runs_tuned.second_held_out.shared.pictures import Gallery, Masker, groups, masks, patterns
from runs_tuned.second_held_out.shared.series import Forecaster, heat
from runs_tuned.second_held_out.shared.tables import dense, ratings, taught, tickets

# Gradients that add up


@faulty(
    "spots in pictures, a score for each pixel, Adam",
    "zero_grad stands without its brackets, and is therefore never called",
    {"GradientAccumulates"},
    may=SHAKEN,
)
def brackets_forgotten(root: Path) -> int:
    return fit(
        root,
        Masker,
        masks(),
        loss=nn.BCEWithLogitsLoss(),
        optimizer=adam(2e-3),
        clear=lambda optimizer: optimizer.zero_grad,
        steps=100,
        batch=16,
    )


@faulty(
    "heat of a furnace by a GRU, a moving average of the weights, RMSprop",
    "zero_grad() is called on the moving average instead of the model",
    {"GradientAccumulates"},
    may=SHAKEN,
)
def average_cleared(root: Path) -> int:
    torch.manual_seed(6)
    torch.set_num_threads(1)
    model, loss, data = Forecaster(), nn.SmoothL1Loss(), heat()
    average = torch.optim.swa_utils.AveragedModel(model)
    optimizer = torch.optim.RMSprop(model.parameters(), 1e-3)
    with watched(root, model, losses=[loss]) as watching:
        for step, (x, y) in zip(range(150), batches(data, 32, 6), strict=False):
            average.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            average.update_parameters(model)
            if (step + 1) % 25 == 0:
                validate(watching, model, loss, data)
    return 0


# Parameters that no update reaches


class HardCode(nn.Module):
    """An encoder whose largest output chooses one of sixteen codes, and a head of the code."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = dense(14, 32, 16)
        self.beside = nn.Linear(14, 12)
        self.head = nn.Linear(28, 5)

    def forward(self, x: Any) -> Any:
        code = functional.one_hot(self.encoder(x).argmax(1), 16).float()
        return self.head(torch.cat([code, functional.mish(self.beside(x))], 1))


@faulty(
    "tickets and their desks by a discrete code, NAdam",
    "the code is chosen by argmax, which passes no gradient, without a straight-through trick",
    {"StalledParameters", "UnchangedTensor"},
    may=IDLE,
)
def code_without_gradient(root: Path) -> int:
    return fit(root, HardCode, tickets(), optimizer=adam(4e-3, torch.optim.NAdam), steps=140)


@faulty(
    "pictures of patterns by a network of others, its trunk frozen for 60 steps",
    "the trunk is thawed at step 60, but the optimizer has only ever got the head",
    {"ParametersWithoutOptimizer", "StalledParameters", "UnchangedTensor"},
    may=IDLE,
)
def thawed_in_vain(root: Path) -> int:
    other = patterns(seed=164)
    model = taught(lambda: Gallery(norm=groups), other, nn.CrossEntropyLoss(), 60)

    def make() -> Any:
        model.features.requires_grad_(requires_grad=False)
        model.head = nn.Linear(28, 5)
        return model

    def change(model: Any, _: Any) -> None:
        model.features.requires_grad_(requires_grad=True)

    return fit(
        root, make, patterns(), optimizer=adam(3e-3), steps=140, batch=24, at=60, change=change
    )


# Weights without bounds


@faulty(
    "films that a user likes beside films that he does not, Adam",
    "the difference of both scores is the loss itself, without a logistic function of it",
    {"NormGrowth"},
    may=SHAKEN,
)
def difference_without_end(root: Path) -> int:
    torch.manual_seed(7)
    torch.set_num_threads(1)
    users, films, data = nn.Embedding(60, 12), nn.Embedding(50, 12), ratings()
    for part in (users, films):
        nn.init.normal_(part.weight, std=0.1)
    model = nn.ModuleDict({"users": users, "films": films})
    liked, other = data.x[data.y[:, 0] > 0], data.x[data.y[:, 0] < 0]
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    random = torch.Generator().manual_seed(7)
    with watched(root) as watching:
        watching.register_module(model, counts_steps=False)
        for _ in range(260):
            watching.begin_step()
            pair = liked[torch.randint(len(liked), (256,), generator=random)]
            film = other[torch.randint(len(other), (256,), generator=random), 1]
            user = users(pair[:, 0])
            value = (user * films(film)).sum(1).mean() - (user * films(pair[:, 1])).sum(1).mean()
            watching.record_tensor_value("loss", value)
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            watching.step()
    return 0


class Rewarded(nn.Module):
    """Cross entropy, less a share of the squares of all weights."""

    def __init__(self, model: Any, weight: float) -> None:
        super().__init__()
        self.parts, self.weight = [*model.parameters()], weight

    def forward(self, scores: Any, y: Any) -> Any:
        squares = sum(part.pow(2).sum() for part in self.parts)
        return functional.cross_entropy(scores, y) - self.weight * squares


@faulty(
    "tickets and their desks, SGD with momentum, squares of weights in the loss",
    "the squares are subtracted from the loss instead of added: weights are rewarded",
    {"NormGrowth"},
    may=SHAKEN,
)
def squares_subtracted(root: Path) -> int:
    torch.manual_seed(8)
    model = dense(14, 32, 24, 5, act=nn.Tanh)
    return fit(
        root,
        lambda: model,
        tickets(),
        loss=Rewarded(model, 0.04),
        optimizer=sgd(0.05, momentum=0.8),
        steps=240,
        save_every=3,
        validate_every=30,
    )
