"""Faulty trainings of activations: units that are dead, saturated, or zero for all rows."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, batches, fit, sgd, validate, watched
from training_runs import faulty

from runs_tuned.fifth_held_out.units.shared.consequences import IDLE, JUMP, LOUD
from runs_tuned.fifth_held_out.units.shared.pictures import (
    Trace,
    coins,
    galaxies,
    pairs_of_digits,
    tremors,
)
from runs_tuned.fifth_held_out.units.shared.tables import (
    VOCABULARY,
    Boarding,
    bridges,
    cheeses,
    errands,
    ferries,
    layers,
    quarters,
)


@faulty(
    "how far bridges bend, which is never below zero, by layers with ReLU and a last ReLU, SGD",
    "one batch is in centimetres: its update overshoots, and the last ReLU answers 0 ever after",
    {"AllZero", "DeadRelu", "GradientNormZero"},
    may=LOUD | IDLE,
)
def batch_of_centimetres(root: Path) -> int:
    torch.manual_seed(31)
    data = bridges(1600, 0.3, 1051).relabelled(lambda y: (y + 3).clamp(min=0))
    loss, model = nn.MSELoss(), nn.Sequential(*layers(8, 48, 32, 1), nn.ReLU())
    nn.init.constant_(model[-2].bias, 1.0)
    optimizer = torch.optim.SGD(model.parameters(), 0.02)
    onset = 0
    with watched(root, model, losses=[loss]) as watching:
        for number, (x, y) in zip(range(180), batches(data, 32, 31), strict=False):
            onset = watching.global_step + 1 if number == 60 else onset
            optimizer.zero_grad()
            loss(model(x), 100 * y if number == 60 else y).backward()
            optimizer.step()
            if number % 20 == 19:
                validate(watching, model, loss, data)
    return onset


class Levelled(nn.Module):
    """Subtracts from each channel a threshold that follows how large it is, then ReLU."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.act = nn.ReLU()
        self.register_buffer("level", torch.zeros(width, 1))

    def forward(self, x: Any) -> Any:
        if self.training:
            with torch.no_grad():
                self.level += 0.1 * x.abs().mean((0, 2))[:, None]
        return self.act(x - self.level)


@faulty(
    "tremors by convolutions whose thresholds follow how large each channel is, Adam",
    "a tenth of the size is added to the threshold, of which no tenth is taken away: it only grows",
    {"DeadRelu"},
    may=IDLE | JUMP,
)
def thresholds_only_grow(root: Path) -> int:
    class Following(Trace):
        def __init__(self) -> None:
            super().__init__()
            for at in (1, 3, 5):
                self.body[at] = Levelled(24)

    return fit(root, Following, tremors(1100, 1.4, 1052), optimizer=adam(3e-3), steps=180, seed=32)


class Peaks(nn.Module):
    """Filters over a picture, one place for each of them, ReLU, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.filters = nn.Sequential(nn.Conv2d(1, 32, 5), nn.BatchNorm2d(32))
        self.act, self.plain = nn.ReLU(), nn.Linear(256, 8)
        self.head = nn.Linear(40, 4)

    def forward(self, x: Any) -> Any:
        peaks = self.act(self.filters(x).amin((2, 3)))
        return self.head(torch.cat([peaks, self.plain(x.flatten(1))], 1))


@faulty(
    "galaxies by where filters answer most, ReLU, and by some linear units, NAdam",
    "amin in place of amax: where a filter answers least it is below zero in every picture",
    {"AllZero", "DeadRelu", "VanishingGradient"},
    may=IDLE,
)
def least_in_place_of_most(root: Path) -> int:
    optimizer = adam(3e-3, torch.optim.NAdam)
    data = galaxies(1100, 1.2, 1053)
    return fit(root, Peaks, data, optimizer=optimizer, steps=150, save_every=3, seed=33)


class Highway(nn.Module):
    """Layers that gates let through or leave out."""

    def __init__(self, width: int = 32, depth: int = 3) -> None:
        super().__init__()
        self.stem = nn.Linear(10, width)
        self.paths = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.gates = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.sigmoids = nn.ModuleList(nn.Sigmoid() for _ in range(depth))
        share = torch.tensor(1 - 1e-10, dtype=torch.float64)
        for gate in self.gates:
            nn.init.constant_(gate.bias, float(torch.logit(share)))
        self.head = nn.Linear(width, 4)

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        for path, gate, sigmoid in zip(self.paths, self.gates, self.sigmoids, strict=True):
            keep = sigmoid(gate(x))
            x = keep * x + (1 - keep) * path(x).tanh()
        return self.head(x)


@faulty(
    "cheeses by layers that gates keep or replace, SGD with momentum",
    "gates are to begin all but open, at a share of 1 - 1e-10: a logit of 23 that never comes down",
    {"AllZero", "SaturatedActivation", "VanishingGradient"},
    may=IDLE,
)
def gates_all_but_open(root: Path) -> int:
    optimizer = sgd(0.03, momentum=0.9)
    return fit(root, Highway, cheeses(1500, 1.4, 1054), optimizer=optimizer, steps=150, seed=34)


@faulty(
    "cheeses in counts of a meter by layers with batch norm and tanh; norms are frozen at step 60",
    "the momentum of norms is 0, so they have counted nothing: frozen, they let thousands through",
    {"SaturatedActivation"},
    may=LOUD | IDLE,
)
def norms_frozen_uncounted(root: Path) -> int:
    norm = lambda width: nn.BatchNorm1d(width, momentum=0.0)
    data = cheeses(1500, 1.3, 1055).of(lambda x: 20000 + 4000 * x)

    def change(model: Any, _optimizer: Any) -> None:
        for layer in model:
            if isinstance(layer, nn.BatchNorm1d):
                layer.eval()

    return fit(
        root,
        lambda: layers(10, 40, 32, 4, act=nn.Tanh, norm=norm),
        data,
        optimizer=adam(3e-3),
        steps=150,
        validate_every=0,
        at=60,
        until=150,
        change=change,
        seed=35,
    )


class Counted(nn.Module):
    """Embeds words, adds where they stand, and takes the mean of what tanh makes of them."""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.embedded, self.linear = nn.Embedding(VOCABULARY, width), nn.Linear(width, width)
        self.tanh, self.head = nn.Tanh(), nn.Linear(width, 4)

    def forward(self, words: Any) -> Any:
        where = torch.arange(words.shape[1])[:, None]
        return self.head(self.tanh(self.linear(self.embedded(words)) + where).mean(1))


@faulty(
    "the quarter that errands of 60 words lead to, words and places through tanh, RMSprop",
    "where a word stands is added as a number up to 59, and not encoded: tanh is 1 at most places",
    {"SaturatedActivation"},
    may=IDLE,
)
def places_counted(root: Path) -> int:
    data, optimizer = quarters(errands(1400, 20, 1056)), adam(3e-3, torch.optim.RMSprop)
    return fit(root, Counted, data, optimizer=optimizer, steps=140, save_every=2, seed=36)


@faulty(
    "whether ferries are late, weights are rounded to 8 bits after each step from step 60 on, Adam",
    "the scale is forgotten: what is rounded is the weight itself, and most are below a half",
    {"AllZero", "TensorVariance"},
    may=IDLE | JUMP,
)
def rounded_without_a_scale(root: Path) -> int:
    def change(model: Any, _optimizer: Any) -> None:
        with torch.no_grad():
            for layer in model.body:
                if isinstance(layer, nn.Linear):
                    layer.weight.copy_(layer.weight.round().clamp(-128, 127))

    return fit(
        root,
        Boarding,
        ferries(1800, 1057),
        loss=nn.BCEWithLogitsLoss(),
        optimizer=adam(2e-3),
        steps=150,
        at=60,
        until=150,
        change=change,
        seed=37,
    )


@faulty(
    "which of two digits is the greater after an earlier task, units that it needs are kept, SGD",
    "units to keep have an importance of at least 0, which all have: gradients are masked to zero",
    {"AllZero", "VanishingGradient"},
    may=IDLE,
)
def all_units_kept(root: Path) -> int:
    def make() -> Any:
        model = nn.Sequential(nn.Flatten(), *layers(128, 48, 32, 1))
        for at in (1, 3):
            free = (torch.rand(len(model[at].weight), 1) - 0.4).clamp(min=0) < 0
            model[at].weight.register_hook(lambda slope, free=free: slope * free)
            model[at].bias.register_hook(lambda slope, free=free: slope * free[:, 0])
        return model

    return fit(
        root,
        make,
        pairs_of_digits(1500, 1058),
        loss=nn.BCEWithLogitsLoss(),
        optimizer=sgd(0.1),
        steps=140,
        seed=38,
    )


class Glances(nn.Module):
    """What coins are worth, and a second network for how much light there is."""

    def __init__(self) -> None:
        super().__init__()
        self.worth = nn.Sequential(
            *(nn.Conv2d(1, 16, 3, 2, 1), nn.SiLU(), nn.Conv2d(16, 24, 3, 2, 1), nn.SiLU()),
            *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 1)),
        )
        self.light = nn.Sequential(nn.Flatten(), *layers(324, 24, 1, act=nn.SiLU))

    def forward(self, x: Any) -> Any:
        return torch.cat([self.worth(x), self.light(x)], 1)


class Ramped(nn.Module):
    """Squared errors of the first output and, by and by, of the second one."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, output: Any, target: Any) -> Any:
        self.calls += 1
        first, second = ((output - target) ** 2).mean(0)
        return first + min(self.calls // 1000, 1) * second


@faulty(
    "what coins are worth and how bright they are, whose share of the loss is to grow, Adam",
    "the share is calls // 1000, a division of whole numbers: it is 0 and its network never learns",
    {"AllZero", "VanishingGradient"},
    may=IDLE,
)
def share_in_whole_numbers(root: Path) -> int:
    data = coins(900, 1059).relabelled(lambda y: torch.cat([y, y**2 - 1], 1))
    optimizer = adam(4e-3)
    return fit(
        root, Glances, data, loss=Ramped(), optimizer=optimizer, steps=150, save_every=3, seed=39
    )
