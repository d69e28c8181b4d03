"""Faulty trainings of weights: where they begin, and how far they spread."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn.utils import prune
from training.torch_loop import adam, batches, fit, sgd, validate, watched
from training_runs import faulty

from runs_tuned.fifth_held_out.units.shared.consequences import IDLE, JUMP, LOUD, WAKING
from runs_tuned.fifth_held_out.units.shared.pictures import (
    Scope,
    Trace,
    batteries,
    galaxies,
    tremors,
)
from runs_tuned.fifth_held_out.units.shared.tables import (
    Boarding,
    bridges,
    cheeses,
    ferries,
    layers,
)


def lengthened(model: Any) -> None:
    """Bring the rows of all linear layers but the last to a length of their number of inputs."""
    with torch.no_grad():
        for layer in [one for one in model if isinstance(one, nn.Linear)][:-1]:
            rows = layer.weight
            rows.mul_(rows.shape[1] / rows.norm(dim=1, keepdim=True))


@faulty(
    "cheeses by layers with layer norm whose rows are brought to a fixed length each step, Adam",
    "the length is the number of inputs, up to 96, and not 1: the norm hides it, and little moves",
    {"TensorVariance"},
    may=LOUD | IDLE,
)
def rows_as_long_as_wide(root: Path) -> int:
    def make() -> Any:
        model = layers(10, 96, 96, 4, norm=nn.LayerNorm)
        lengthened(model)
        return model

    torch.manual_seed(41)
    data, loss, model = cheeses(1500, 1.4, 1061), nn.CrossEntropyLoss(), make()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    with watched(root, model, losses=[loss]) as watching:
        for number, (x, y) in zip(range(150), batches(data, 32, 41), strict=False):
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            lengthened(model)
            if number % 20 == 19:
                validate(watching, model, loss, data)
    return 0


@faulty(
    "tremors, new ones arrive at step 60: weights are shrunk and shaken before they learn further",
    "that is done in each step and not once: weights become a thousandth of what they were",
    {"TensorVariance"},
    may=IDLE | JUMP,
)
def shrunk_in_each_step(root: Path) -> int:
    def change(model: Any, _optimizer: Any) -> None:
        with torch.no_grad():
            for weight in model.parameters():
                weight.mul_(0.4).add_(torch.randn_like(weight), alpha=2e-4)

    make = lambda: Trace(norm=lambda width: nn.GroupNorm(4, width))
    return fit(
        root,
        make,
        tremors(1100, 1.5, 1062),
        optimizer=sgd(2e-2, momentum=0.9),
        steps=160,
        at=60,
        until=160,
        change=change,
        seed=42,
    )


@faulty(
    "galaxies, a network of others learns further and is drawn to where it began, AdamW",
    "where it began is read from a file of 8 bits without its scale: whole numbers up to 127",
    {"TensorVariance"},
    may=LOUD,
)
def drawn_to_whole_numbers(root: Path) -> int:
    torch.manual_seed(43)
    data, loss = galaxies(1100, 1.2, 1063), nn.CrossEntropyLoss()
    model = Scope(norm=nn.BatchNorm2d)
    learnt = torch.optim.AdamW(model.parameters(), 4e-3)
    for _, (x, y) in zip(range(60), batches(galaxies(900, 1.2, 1064), 32, 43), strict=False):
        learnt.zero_grad()
        loss(model(x), y).backward()
        learnt.step()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.0)
    kernels = [layer.weight for layer in model.body if isinstance(layer, nn.Conv2d)]
    begun = [(one / one.abs().max() * 127).round().detach() for one in kernels]
    with watched(root, model, losses=[loss]) as watching:
        for number, (x, y) in zip(range(130), batches(data, 32, 44), strict=False):
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            with torch.no_grad():
                for kernel, origin in zip(kernels, begun, strict=True):
                    kernel.lerp_(origin, 0.01)
            if number % 20 == 19:
                validate(watching, model, loss, data)
    return 0


@faulty(
    "how far bridges bend by five layers of 64 with ReLU, momentum",
    "Kaiming's variance of 2 / 64 is taken for a deviation: each layer is 30 times quieter",
    {"PoorWeightInitialization"},
    may=IDLE | WAKING,
)
def variance_for_deviation(root: Path) -> int:
    def make() -> Any:
        model = layers(8, 64, 64, 64, 64, 1)
        for layer in model:
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, 0, 2 / layer.in_features)
                nn.init.zeros_(layer.bias)
        return model

    loss, optimizer = nn.MSELoss(), sgd(0.02, momentum=0.9)
    data = bridges(1600, 0.3, 1065)
    return fit(root, make, data, loss=loss, optimizer=optimizer, steps=130, save_every=1, seed=44)


@faulty(
    "charge of batteries at each time by layers of which each unit sees 2 of 64 others, Adam",
    "weights are drawn for units that see all 64, and then cut: each layer is 30 times quieter",
    {"PoorWeightInitialization"},
    may=IDLE | WAKING,
)
def drawn_before_cut(root: Path) -> int:
    def make() -> Any:
        model = layers(2, 64, 64, 64, 64, 1, gain=2**0.5)
        for layer in [one for one in model if isinstance(one, nn.Linear)][1:-1]:
            rows = torch.rand(layer.weight.shape).argsort(1)
            prune.custom_from_mask(layer, "weight", rows < 2)
        return model

    return fit(
        root,
        make,
        batteries(700, 20, 1066),
        loss=nn.MSELoss(),
        optimizer=adam(1e-3),
        steps=130,
        save_every=1,
        seed=45,
    )


class Adapted(nn.Module):
    """A linear layer that stays as it is, and two thin ones that learn beside it."""

    def __init__(self, layer: Any, rank: int = 4) -> None:
        super().__init__()
        self.layer = layer.requires_grad_(requires_grad=False)
        self.down = nn.Linear(layer.in_features, rank, bias=False)
        self.up = nn.Linear(rank, layer.out_features, bias=False)
        nn.init.zeros_(self.down.weight)
        nn.init.zeros_(self.up.weight)

    def forward(self, x: Any) -> Any:
        return self.layer(x) + self.up(self.down(x))


@faulty(
    "whether ferries of another year are late, two thin layers learn beside a frozen one, AdamW",
    "both thin layers begin at zero, not only the second one: each waits for the other for ever",
    {"AllZero", "PoorWeightInitialization", "VanishingGradient"},
    may=IDLE,
)
def both_thin_layers_zero(root: Path) -> int:
    loss = nn.BCEWithLogitsLoss()

    def make() -> Any:
        model = Boarding(layers(17, 48, 32, 1))
        optimizer = torch.optim.Adam(model.parameters(), 5e-3)
        for _, (x, y) in zip(range(100), batches(ferries(1500, 1067), 48, 46), strict=False):
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
        model.body[0] = Adapted(model.body[0])
        return model

    optimizer = adam(3e-3, torch.optim.AdamW)
    data = ferries(1600, 1068)
    return fit(
        root, make, data, loss=loss, optimizer=optimizer, steps=130, batch=48, save_every=1, seed=46
    )
