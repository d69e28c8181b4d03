"""Updates that are too large, rounded away, undone, never due, or that scatter weights."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.torch_loop import adam, batches, fit, sgd, watched
from training_runs import faulty

from runs_tuned.fourth_held_out.units.shared.consequences import STILL, WILD
from runs_tuned.fourth_held_out.units.shared.signals import Ear, Pace, calls, strides
from runs_tuned.fourth_held_out.units.shared.tables import Bag, kilns, minerals, plain, recipes


@faulty(
    "hardness of pots by Langevin dynamics: noise is added to each step of SGD",
    "noise has a temperature of 1 and not 1 / 1,000 rows: weights only walk about",
    {"TensorVariance"},
    may=WILD,
)
def noise_too_hot(root: Path) -> int:
    weights: list[Any] = []

    def make() -> Any:
        model = plain(10, 32, 32, 1, between=nn.Tanh)
        weights.extend(model.parameters())
        return model

    def update(optimizer: Any) -> None:
        optimizer.step()
        with torch.no_grad():
            for weight in weights:
                weight.add_(torch.randn_like(weight), alpha=(2 * 0.05) ** 0.5)

    data, loss = kilns(1500, 0.3, 961), nn.MSELoss()
    return fit(root, make, data, loss=loss, optimizer=sgd(0.05), steps=180, update=update)


@faulty(
    "minerals by two networks that are averaged at step 60, AdamW",
    "the mean is taken over all numbers of a weight, not over networks: each becomes one number",
    {"TensorVariance"},
    may=WILD | STILL,
)
def mean_without_an_axis(root: Path) -> int:
    def change(model: Any, _optimizer: Any) -> None:
        with torch.no_grad():
            for weight in model.parameters():
                weight.fill_(torch.stack([weight, 0.98 * weight]).mean())

    make = lambda: plain(12, 40, 40, 5)
    optimizer = adam(1e-3, torch.optim.AdamW)
    data = minerals(1500, 962)
    return fit(
        root, make, data, optimizer=optimizer, steps=130, at=60, change=change, save_every=1, seed=1
    )


class Bounded(nn.Module):
    """Cross entropy that is cut at a bound."""

    def forward(self, output: Any, target: Any) -> Any:
        return nn.functional.cross_entropy(output, target).clamp(max=1.0)


@faulty(
    "calls of birds, the loss is bounded so that no batch counts too much, Adam",
    "the bound of 1 is below the first loss of ln 5: it has no slope, and nothing moves",
    {"UnchangedTensor", "LossNotDecreasing"},
    may=STILL,
)
def loss_bounded_too_low(root: Path) -> int:
    data = calls(900, 0.5, 963)
    return fit(root, Ear, data, loss=Bounded(), optimizer=adam(3e-3), steps=100, seed=2)


@faulty(
    "hardness of pots, from step 60 on steps that make a batch's loss worse are taken back, SGD",
    "the comparison is the wrong way round: what makes it better is taken back",
    {"UnchangedTensor"},
    may=STILL,
)
def better_steps_taken_back(root: Path) -> int:
    torch.manual_seed(3)
    data, loss, onset = kilns(1500, 0.3, 964), nn.MSELoss(), 0
    model = plain(10, 32, 32, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    with watched(root, model, losses=[loss]) as watching:
        for number, (x, y) in zip(range(130), batches(data, 64, 3), strict=False):
            optimizer.zero_grad()
            value = loss(model(x), y)
            value.backward()
            kept = [each.detach().clone() for each in model.parameters()]
            optimizer.step()
            if number < 60:
                continue
            onset = onset or watching.global_step
            with torch.no_grad():
                h = x
                for layer in model:
                    h = (
                        nn.functional.relu(h)
                        if isinstance(layer, nn.ReLU)
                        else (nn.functional.linear(h, layer.weight, layer.bias))
                    )
                if ((h - y) ** 2).mean() < value:
                    for each, old in zip(model.parameters(), kept, strict=True):
                        each.copy_(old)
    return onset


@faulty(
    "recipes, gradients of 32 batches are accumulated, Adam",
    "an epoch has 28 batches, and gradients and count begin anew with each: no step is ever due",
    {"UnchangedTensor", "LossNotDecreasing"},
    may=STILL | {"GradientAccumulates": "gradients are added up over an epoch"},
)
def step_never_due(root: Path) -> int:
    count = [0]

    def update(optimizer: Any) -> None:
        count[0] += 1
        if count[0] % 32 == 0:
            optimizer.step()

    def clear(optimizer: Any) -> None:
        if count[0] == 28:
            count[0] = 0
            optimizer.zero_grad()

    data = recipes(1200, 10, 965)
    return fit(root, Bag, data, optimizer=adam(3e-3), steps=140, update=update, clear=clear, seed=4)


@faulty(
    "hardness of pots, gradients are divided by a diagonal of curvatures",
    "the damping is 1e-5, not 0.1: where squared gradients are tiny, the quotient is huge",
    {"WeightUpdateRatio"},
    may=WILD,
)
def curvature_hardly_damped(root: Path) -> int:
    def update(optimizer: Any) -> None:
        for group in optimizer.param_groups:
            for weight in group["params"]:
                weight.grad.div_(weight.grad**2 + 1e-5)
        optimizer.step()

    make = lambda: plain(10, 40, 40, 1, between=nn.Tanh)
    data, loss = kilns(1500, 0.3, 966), nn.MSELoss()
    return fit(root, make, data, loss=loss, optimizer=sgd(0.05), steps=100, update=update, seed=5)


@faulty(
    "gaits by dilated convolutions, weights go half the way to those of a faster copy, Adam",
    "the way is given as 50, in per cent, and is taken as a factor",
    {"WeightUpdateRatio"},
    may=WILD,
)
def half_the_way_in_per_cent(root: Path) -> int:
    slow: list[Any] = []
    count = [0]

    def update(optimizer: Any) -> None:
        weights = [each for group in optimizer.param_groups for each in group["params"]]
        if not slow:
            slow.extend(each.detach().clone() for each in weights)
        optimizer.step()
        count[0] += 1
        if count[0] % 6 == 0:
            with torch.no_grad():
                for old, each in zip(slow, weights, strict=True):
                    old.add_(each - old, alpha=50)
                    each.copy_(old)

    data = strides(900, 24, 0.5, 967)
    return fit(root, Pace, data, optimizer=adam(8e-3), steps=100, update=update, seed=6)


@faulty(
    "hardness of pots by a fixed scale of the loss of 2^20, SGD",
    "from step 60 on gradients are divided by the scale twice, by the loop and by a callback",
    {"WeightUpdateRatio"},
    may=STILL,
)
def unscaled_twice(root: Path) -> int:
    scale, count = 2.0**20, [0]

    def update(optimizer: Any) -> None:
        count[0] += 1
        for group in optimizer.param_groups:
            for weight in group["params"]:
                weight.grad.div_(scale if count[0] <= 60 else scale**2)
        optimizer.step()

    make = lambda: plain(10, 32, 32, 1)
    return fit(
        root,
        make,
        kilns(1500, 0.3, 968),
        loss=nn.MSELoss(),
        optimizer=sgd(0.05),
        steps=140,
        update=update,
        backward=lambda value: (value * scale).backward(),
        at=60,
        change=lambda _model, _optimizer: None,
        seed=7,
    )


class Short(nn.Module):
    """Layers in a list, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(ins, 32) for ins in (12, 32, 32))
        self.head = nn.Linear(32, 5)

    def forward(self, x: Any) -> Any:
        for at in range(len(self.layers) - 1):
            x = nn.functional.gelu(self.layers[at](x))
        return self.head(x)


@faulty(
    "minerals by layers in a list, AdamW without decay",
    "the loop over layers ends one too early: the last one is never called",
    {"StalledParameters"},
    may=STILL,
)
def last_layer_never_called(root: Path) -> int:
    optimizer = adam(3e-3, torch.optim.AdamW, weight_decay=0.0)
    return fit(root, Short, minerals(1500, 969), optimizer=optimizer, steps=140, seed=8)


class Rounded(nn.Module):
    """A trunk in bfloat16, and a head in full precision."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = plain(12, 48, 32, between=nn.GELU).to(torch.bfloat16)
        self.head = nn.Linear(32, 5)

    def forward(self, x: Any) -> Any:
        return self.head(self.trunk(x.to(torch.bfloat16)).float())


@faulty(
    "minerals, a trunk of another network fine-tuned at a low rate, a new head at a higher one",
    "the trunk is kept in bfloat16, which rounds away all updates of 1e-6",
    {"StalledParameters"},
    may=STILL,
)
def trunk_kept_in_bfloat16(root: Path) -> int:
    def optimizer(parameters: Any) -> Any:
        *trunk, weight, bias = parameters
        return torch.optim.Adam([{"params": trunk, "lr": 1e-6}, {"params": [weight, bias]}], 5e-3)

    return fit(root, Rounded, minerals(1500, 970), optimizer=optimizer, steps=140, seed=9)


@faulty(
    "gaits by dilated convolutions, an optimizer for kernels and another one for all else",
    "the step of the first one is forgotten: only norms, shifts and the head learn",
    {"StalledParameters", "UnchangedTensor"},
    may=STILL,
)
def step_of_kernels_forgotten(root: Path) -> int:
    torch.manual_seed(10)
    data, loss = strides(900, 24, 0.5, 971), nn.CrossEntropyLoss()
    model = Pace()
    kernels = [each for each in model.parameters() if each.dim() > 2]
    others = [each for each in model.parameters() if each.dim() <= 2]
    first, second = torch.optim.SGD(kernels, 0.05, 0.9), torch.optim.Adam(others, 5e-3)
    with watched(root, model, losses=[loss]):
        for _, (x, y) in zip(range(120), batches(data, 32, 10), strict=False):
            first.zero_grad()
            second.zero_grad()
            loss(model(x), y).backward()
            second.step()
    return 0
