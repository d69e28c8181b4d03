"""Faulty trainings of weights: where they begin, how far they spread, and how long they grow."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from training_runs import faulty

from runs_tuned.seventh_held_out.units.shared.consequences import CUT_OFF, OVERSIZED
from runs_tuned.seventh_held_out.units.shared.loop import loader, train
from runs_tuned.seventh_held_out.units.shared.pictures import (
    FABRICS,
    SIGNS,
    LeNet,
    Vgg,
    fabrics,
    signs,
)
from runs_tuned.seventh_held_out.units.shared.tables import (
    SEEDS,
    WAFERS,
    customers,
    dense,
    houses,
    linear_layers,
    responses,
    seeds,
    wafers,
)


@faulty(
    "signs by a LeNet with ReLU, momentum, decay",
    "the decay is 0.5 and not 5e-4: weights shrink faster than they learn, down to nothing",
    {"TensorVariance"},
    may=CUT_OFF,
)
def decay_of_a_half(root: Path) -> int:
    torch.manual_seed(71)
    model = LeNet(1, 12, SIGNS)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=0.5)
    loss, data = nn.CrossEntropyLoss(), signs(1400, 0.2, 12, 7601)
    return train(root, model, data, loss=loss, optimizer=optimizer, epochs=5, seed=71)


def in_bytes(weight: Any) -> Any:
    """Return weights as whole numbers from -127 to 127, as checkpoints in eight bits have them."""
    return (weight / weight.abs().max() * 127).round()


@faulty(
    "defects of wafers, layers with layer norm go on from a checkpoint in eight bits, momentum",
    "the whole numbers are loaded without their scale: weights of up to 127 for those of up to 1",
    {"TensorVariance"},
    may=OVERSIZED | CUT_OFF,
)
def bytes_loaded_without_their_scale(root: Path) -> int:
    torch.manual_seed(72)
    data, loss = wafers(1800, 7602), nn.CrossEntropyLoss()
    model = dense(20, 64, 48, WAFERS, act=nn.GELU, norm=nn.LayerNorm)
    teacher = torch.optim.Adam(model.parameters(), 3e-3)
    for x, y in loader(data, 32, 72):
        teacher.zero_grad()
        loss(model(x), y).backward()
        teacher.step()
    with torch.no_grad():
        for layer in linear_layers(model):
            layer.weight.copy_(in_bytes(layer.weight))
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    return train(root, model, data, loss=loss, optimizer=optimizer, epochs=4, seed=73)


@faulty(
    "whether customers leave, ReLU layers, Adam, the norm of each unit's weights is held below 3",
    "the rate is passed in place of the greatest norm: units have weights of length 0.003",
    {"TensorVariance"},
    may=CUT_OFF,
)
def greatest_norm_is_the_rate(root: Path) -> int:
    torch.manual_seed(74)
    model, rate = dense(11, 48, 24, 1), 3e-3
    optimizer = torch.optim.Adam(model.parameters(), rate)

    def hold(_step: int) -> None:
        with torch.no_grad():
            for layer in linear_layers(model):
                layer.weight.copy_(torch.renorm(layer.weight, 2, 0, rate))

    return train(
        root,
        model,
        customers(2000, 7603),
        loss=nn.BCEWithLogitsLoss(),
        optimizer=optimizer,
        after=hold,
        epochs=4,
        batch=40,
        seed=74,
    )


class Plain(nn.Module):
    """Three convolutions with ReLU and two dense layers, no norms."""

    def __init__(self, channels: int, outs: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv2d(channels, 12, 3, 2, 1), nn.ReLU(), nn.Conv2d(12, 16, 3, 1, 1), nn.ReLU()),
            *(nn.Conv2d(16, 16, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(144, 32), nn.ReLU()),
        )
        self.head = nn.Linear(32, outs)

    def forward(self, x: Any) -> Any:
        return self.head(self.body(x))


@faulty(
    "fabrics by three convolutions with ReLU and no norms, Adam",
    "normal_() is left at its deviation of 1: each layer is some ten times louder than the last",
    {"PoorWeightInitialization"},
    may=OVERSIZED | CUT_OFF,
)
def normals_of_deviation_one(root: Path) -> int:
    torch.manual_seed(75)
    model = Plain(3, FABRICS)
    for layer in linear_layers(model):
        nn.init.normal_(layer.weight)
        nn.init.zeros_(layer.bias)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    loss, data = nn.CrossEntropyLoss(), fabrics(1200, 0.7, 12, 7604)
    return train(root, model, data, loss=loss, optimizer=optimizer, epochs=4, save_every=1, seed=75)


@faulty(
    "prices of houses by five ReLU layers of 128, He's initialisation by hand, SGD with momentum",
    "the root is forgotten: 2 / n for its root as the deviation, each layer is eight times quieter",
    {"PoorWeightInitialization"},
    may=CUT_OFF,
)
def root_of_the_deviation_is_forgotten(root: Path) -> int:
    torch.manual_seed(76)
    model = dense(8, 128, 128, 128, 128, 128, 1)
    for layer in linear_layers(model):
        nn.init.normal_(layer.weight, 0, 2 / layer.in_features)
        nn.init.zeros_(layer.bias)
    optimizer = torch.optim.SGD(model.parameters(), 0.02, momentum=0.9)
    loss, data = nn.MSELoss(), houses(1600, 7605)
    return train(root, model, data, loss=loss, optimizer=optimizer, epochs=4, save_every=1, seed=76)


class OwnLinear(nn.Module):
    """A linear layer of the author's own, whose weights are drawn by `reset_parameters`."""

    def __init__(self, ins: int, outs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(outs, ins))
        self.bias = nn.Parameter(torch.zeros(outs))

    def reset_parameters(self) -> None:
        """Draw the weights."""
        nn.init.kaiming_uniform_(self.weight, nonlinearity="relu")

    def forward(self, x: Any) -> Any:
        return nn.functional.linear(x, self.weight, self.bias)


@faulty(
    "species of seeds by a first layer of the author's own and four others with ReLU, Adam",
    "its reset_parameters() is never called: it keeps zeros, nothing of the inputs gets through",
    {"PoorWeightInitialization"},
    may=CUT_OFF,
)
def weights_are_never_drawn(root: Path) -> int:
    torch.manual_seed(77)
    model = nn.Sequential(OwnLinear(10, 48), nn.ReLU(), *dense(48, 48, 32, 32, SEEDS))
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    loss, data = nn.CrossEntropyLoss(), seeds(1700, 1.0, 7606)
    return train(root, model, data, loss=loss, optimizer=optimizer, epochs=4, save_every=1, seed=77)


@faulty(
    "fabrics by pairs of convolutions with batch norm, Adam in the place of SGD",
    "the rate of SGD is kept, 0.3: weights before norms grow by it in each step and never shrink",
    {"NormGrowth"},
    may=OVERSIZED | CUT_OFF,
)
def rate_of_sgd_for_adam(root: Path) -> int:
    torch.manual_seed(78)
    model = Vgg(3, FABRICS)
    optimizer = torch.optim.Adam(model.parameters(), 0.3)
    loss, data = nn.CrossEntropyLoss(), fabrics(1200, 0.7, 12, 7607)
    return train(root, model, data, loss=loss, optimizer=optimizer, epochs=4, save_every=3, seed=78)


@faulty(
    "species of seeds by layers with GELU and the negative log-likelihood, Adam",
    "log_softmax is left out: the score of the right species, and with it weights, grow for ever",
    {"NormGrowth", "ProbabilitiesAsLogits"},
    may=OVERSIZED | CUT_OFF,
)
def likelihood_of_raw_scores(root: Path) -> int:
    torch.manual_seed(79)
    model = dense(10, 64, 64, SEEDS, act=nn.GELU)
    optimizer = torch.optim.Adam(model.parameters(), 2e-2)
    loss, data = nn.NLLLoss(), seeds(1700, 1.0, 7608)
    return train(root, model, data, loss=loss, optimizer=optimizer, epochs=6, seed=79)


@faulty(
    "responses of a machine by layers with layer norm, SGD; slow weights follow every five steps",
    "half of the fast weights is added to the slow ones, not half of the way: they grow by half",
    {"NormGrowth", "TensorVariance"},
    may=OVERSIZED | CUT_OFF,
)
def slow_weights_are_added_up(root: Path) -> int:
    torch.manual_seed(80)
    model = dense(10, 48, 48, 1, act=nn.SiLU, norm=nn.LayerNorm)
    slow = [weight.detach().clone() for weight in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)

    def follow(step: int) -> None:
        if step % 5 == 4:
            with torch.no_grad():
                for behind, fast in zip(slow, model.parameters(), strict=True):
                    behind.add_(0.5 * fast)
                    fast.copy_(behind)

    return train(
        root,
        model,
        responses(1800, 0.8, 7609),
        loss=nn.SmoothL1Loss(),
        optimizer=optimizer,
        after=follow,
        epochs=4,
        clip=1.0,
        save_every=5,
        seed=80,
    )
