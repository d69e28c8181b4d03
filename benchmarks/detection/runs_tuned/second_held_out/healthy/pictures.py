"""Healthy trainings with pictures: classes, masks, tags, patches, and noise that is taken away."""

import copy
import math
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from training.learnt_data import Split
from training.torch_loop import adam, batches, fit, sgd, validate, watched
from training_runs import healthy

from runs_tuned.second_held_out.shared.pictures import (
    Gallery,
    Masker,
    coloured,
    groups,
    masks,
    patterns,
)
from runs_tuned.second_held_out.shared.tables import dense, taught


@healthy("pictures of patterns, batch norm, Nesterov momentum, a rate of steps, every step saved")
def patterns_by_steps(root: Path) -> int:
    return fit(
        root,
        Gallery,
        patterns(),
        optimizer=sgd(0.05, momentum=0.9, nesterov=True, weight_decay=5e-4),
        schedule=lambda step: 0.3 ** (step // 60),
        steps=150,
        batch=24,
        save_every=1,
    )


@healthy("fruits in pictures, dropout, Adadelta, every tenth step saved")
def fruits_by_adadelta(root: Path) -> int:
    make = lambda: Gallery(4, 3, 16, norm=groups, act=nn.SiLU, drop=0.2)
    return fit(
        root,
        make,
        coloured(),
        optimizer=adam(1.0, torch.optim.Adadelta),
        steps=300,
        batch=20,
        save_every=10,
        validate_every=30,
    )


class Overlap(nn.Module):
    """Cross entropy of pixels, and one less the overlap of both masks."""

    def forward(self, scores: Any, mask: Any) -> Any:
        chances = scores.sigmoid()
        both = 2 * (chances * mask).sum((1, 2, 3)) + 1
        overlap = both / (chances.sum((1, 2, 3)) + mask.sum((1, 2, 3)) + 1)
        return functional.binary_cross_entropy_with_logits(scores, mask) + 1 - overlap.mean()


@healthy("spots in pictures, a mask of them, cross entropy and overlap, AdamW, cosine")
def spots_masked(root: Path) -> int:
    return fit(
        root,
        Masker,
        masks(),
        loss=Overlap(),
        optimizer=adam(5e-3, torch.optim.AdamW),
        schedule=lambda step: 0.51 + 0.49 * math.cos(math.pi * step / 160),
        steps=160,
        batch=16,
        save_every=2,
    )


@healthy("tags of pictures: what is to be seen on the left and on the right, asymmetric weights")
def tags_of_pictures(root: Path) -> int:
    data = masks(800, seed=166)

    def tags(mask: Any) -> Any:
        halves = (mask[..., :6], mask[..., 6:], mask[..., :6, :], mask[..., 6:, :])
        return torch.stack([half.sum((1, 2, 3)) > 6 for half in halves], 1).float()

    make = lambda: nn.Sequential(
        *(nn.Conv2d(1, 12, 3, padding=1), nn.BatchNorm2d(12), nn.ReLU(), nn.AvgPool2d(3)),
        *(nn.Flatten(), nn.Linear(192, 4)),
    )
    return fit(
        root,
        make,
        Split(data.x, tags(data.y), data.test_x, tags(data.test_y)),
        loss=nn.BCEWithLogitsLoss(pos_weight=torch.tensor([1.0, 1.2, 1.0, 1.2])),
        optimizer=sgd(0.1, momentum=0.8),
        steps=150,
        batch=30,
    )


class Patches(nn.Module):
    """A transformer of nine patches, the mean of which has a score for each class."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, width, 4, 4)
        self.places = nn.Parameter(0.02 * torch.randn(9, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, 0.1, "gelu", batch_first=True, norm_first=True
        )
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 5)

    def forward(self, x: Any) -> Any:
        seen = self.patches(x).flatten(2).transpose(1, 2) + self.places
        return self.head(self.layers(seen).mean(1))


@healthy("pictures of patterns by patches, AdamW with warm-up, in bfloat16 where that is safe")
def patterns_by_patches(root: Path) -> int:
    def make() -> Any:
        model: Any = Patches()
        inner = torch.autocast("cpu", torch.bfloat16)(model.forward)
        model.forward = lambda x: inner(x).float()
        return model

    return fit(
        root,
        make,
        patterns(1400, 0.5, seed=174),
        optimizer=adam(3e-3, torch.optim.AdamW, weight_decay=0.05),
        schedule=lambda step: min(1.0, (step + 1) / 20),
        steps=220,
        batch=32,
        clip=1.0,
        save_every=4,
    )


@healthy("patterns by a network of others: its trunk is frozen, and thawed at a tenth of the rate")
def trunk_thawed(root: Path) -> int:
    torch.manual_seed(32)
    torch.set_num_threads(1)
    loss, data = nn.CrossEntropyLoss(), patterns(seed=175)
    model = taught(lambda: Gallery(norm=groups), patterns(), loss, 120)
    model.head = nn.Linear(28, 5)
    model.features.requires_grad_(requires_grad=False)
    optimizer = torch.optim.Adam(model.head.parameters(), 4e-3)
    with watched(root, model, losses=[loss]) as watching:
        for step, (x, y) in zip(range(180), batches(data, 24, 32), strict=False):
            if step == 80:
                model.features.requires_grad_(requires_grad=True)
                optimizer.add_param_group({"params": model.features.parameters(), "lr": 4e-4})
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            if (step + 1) % 20 == 0:
                validate(watching, model, loss, data)
    return 0


@healthy("fruits in pictures, a moving average of the weights is evaluated, Adamax")
def fruits_averaged(root: Path) -> int:
    torch.manual_seed(33)
    torch.set_num_threads(1)
    model, loss, data = Gallery(4, 3, act=nn.LeakyReLU), nn.CrossEntropyLoss(), coloured()
    average = copy.deepcopy(model).requires_grad_(requires_grad=False)
    optimizer = torch.optim.Adamax(model.parameters(), 5e-3)
    with watched(root, model, losses=[loss], save_every=3) as watching:
        for step, (x, y) in zip(range(180), batches(data, 20, 33), strict=False):
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            with torch.no_grad():
                for slow, fast in zip(
                    average.state_dict().values(), model.state_dict().values(), strict=True
                ):
                    slow.copy_(fast if slow.dtype == torch.long else 0.9 * slow + 0.1 * fast)
            if (step + 1) % 20 == 0:
                own = copy.deepcopy(model.state_dict())
                model.load_state_dict(average.state_dict())
                validate(watching, model, loss, data)
                model.load_state_dict(own)
    return 0


class Cleaner(nn.Module):
    """Says what noise is in rows, at a time between 0 and 1."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = dense(width + 8, 96, 96, width, act=nn.SiLU)

    def forward(self, x: Any, time: Any) -> Any:
        waves = time * torch.tensor([1.0, 2.0, 4.0, 8.0])
        return self.layers(torch.cat([x, waves.sin(), waves.cos()], 1))


def clean(root: Path, rows: Any, *, flow: bool, steps: int, save_every: int, rate: float) -> int:
    """Train a diffusion of rows: to tell noise, or the flow from noise to rows."""
    torch.manual_seed(34)
    torch.set_num_threads(1)
    model, random = Cleaner(rows.shape[1]), torch.Generator().manual_seed(34)
    optimizer = torch.optim.AdamW(model.parameters(), rate)
    rates = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1, (step + 1) / 20))
    with watched(root, model, save_every=save_every) as watching:
        for _ in range(steps):
            x = rows[torch.randint(len(rows), (128,), generator=random)]
            noise = torch.randn(x.shape, generator=random)
            time = torch.rand(len(x), 1, generator=random)
            if flow:
                seen, target = (1 - time) * noise + time * x, x - noise
            else:
                kept = (1.57 * time).cos()
                seen, target = kept * x + (1.57 * time).sin() * noise, noise
            loss = functional.mse_loss(model(seen, time), target)
            watching.record_tensor_value("loss", loss)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            rates.step()
    return 0


@healthy("diffusion of spots, a cosine of time, clipped", kind="diffusion")
def diffusion_of_spots(root: Path) -> int:
    rows = masks().x[:, :, ::2, ::2].flatten(1)
    return clean(root, rows, flow=False, steps=300, save_every=3, rate=2e-3)


@healthy("a flow from noise to patterns, every tenth step saved", kind="diffusion")
def flow_to_patterns(root: Path) -> int:
    rows = patterns(noise=0.2, seed=176).x[:, :, ::2, ::2].flatten(1)
    return clean(root, rows, flow=True, steps=600, save_every=10, rate=3e-3)
