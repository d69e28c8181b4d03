"""Healthy trainings on images of shapes and patches of photographs."""

import copy
import functools
from pathlib import Path
from typing import Any

import torch
from torch import nn
from training.learnt_data import Split
from training.torch_loop import adam, batches, fit, sgd, validate, watched
from training_runs import healthy

from runs_tuned.first_held_out.supervised.generated_data import (
    SHAPES,
    cut,
    located,
    patches,
    segmented,
    shapes,
)
from runs_tuned.first_held_out.supervised.networks import (
    DiceLoss,
    FocalLoss,
    Located,
    MobileNet,
    UncertaintyLoss,
    UNet,
    convolution,
)


@healthy("shapes, separable convolutions, group norm, one cycle of the rate with Nesterov momentum")
def shapes_separable(root: Path) -> int:
    def rate(step: int) -> float:
        return (1 + step) / 60 if step < 60 else max(0.02, (180 - step) / 120)

    return fit(
        root,
        lambda: MobileNet(1, SHAPES),
        shapes()[0],
        optimizer=sgd(0.2, momentum=0.9, nesterov=True, weight_decay=1e-4),
        loss=nn.CrossEntropyLoss(label_smoothing=0.05),
        schedule=rate,
        steps=180,
        save_every=3,
        validate_every=18,
    )


@healthy("shapes segmented by a U-Net, cross entropy and overlap, AdamW")
def shapes_segmented(root: Path) -> int:
    optimizer = adam(3e-3, kind=torch.optim.AdamW, weight_decay=0.01)
    return fit(
        root,
        UNet,
        segmented(),
        loss=DiceLoss(),
        optimizer=optimizer,
        batch=24,
        steps=100,
        save_every=4,
        validate_every=25,
    )


class FrozenBackbone(nn.Module):
    """Convolutions that learnt to tell how a patch was turned, frozen, and a new head."""

    def __init__(self, data: Split) -> None:
        super().__init__()
        layers = [convolution(3, 12), nn.MaxPool2d(2), convolution(12, 24), nn.AvgPool2d(6)]
        self.backbone = nn.Sequential(*layers, nn.Flatten())
        turns = nn.Linear(24, 4)
        optimizer = torch.optim.Adam([*self.backbone.parameters(), *turns.parameters()], 5e-3)
        for x, _ in map(lambda pair, _: pair, batches(data, 32), range(60)):
            turned = torch.cat([x.rot90(turn, (2, 3)) for turn in range(4)])
            target = torch.arange(4).repeat_interleave(len(x))
            optimizer.zero_grad()
            nn.functional.cross_entropy(turns(self.backbone(turned)), target).backward()
            optimizer.step()
        self.backbone.requires_grad_(False)
        self.head = nn.Linear(24, 2)

    def train(self, mode: bool = True) -> Any:
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, x: Any) -> Any:
        return self.head(self.backbone(x))


@healthy("patches of photographs, a frozen backbone with frozen norms, evaluated on 15 rows")
def photographs_frozen_backbone(root: Path) -> int:
    data = patches()
    small = Split(data.x, data.y, data.test_x[:15], data.test_y[:15])

    def make() -> Any:
        return FrozenBackbone(data).train()

    return fit(root, make, small, optimizer=sgd(0.1, momentum=0.9), steps=150, save_every=3)


@healthy("shapes, evaluated with a moving average of the weights that is swapped in")
def shapes_averaged(root: Path) -> int:
    torch.manual_seed(1)
    data, model, loss = shapes()[0], MobileNet(1, SHAPES, nn.ReLU), nn.CrossEntropyLoss()
    optimizer = torch.optim.RAdam(model.parameters(), 8e-3)
    average = copy.deepcopy(model.state_dict())
    with watched(root, model, losses=[loss], save_every=3) as watching:
        for step, (x, y) in zip(range(200), batches(data, 32, 1), strict=False):
            loss(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
            for name, value in model.state_dict().items():
                average[name].lerp_(value, 0.05)
            if (step + 1) % 20 == 0:
                latest = copy.deepcopy(model.state_dict())
                model.load_state_dict(average)
                validate(watching, model, loss, data)
                model.load_state_dict(latest)
    return 0


class Augmented(nn.Module):
    """Flips, shifts and dims the images of a batch while it trains; computes in bfloat16."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Any) -> Any:
        if self.training:
            x = x.flip(3) if torch.rand(()) < 0.5 else x
            up, left = torch.randint(-2, 3, (2,)).tolist()
            x = x.roll((up, left), (2, 3)) * (1 + 0.2 * torch.randn(len(x), 1, 1, 1))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.model(x)


@healthy("shapes, flipped and shifted, computed in bfloat16, RMSprop that falls exponentially")
def shapes_augmented(root: Path) -> int:
    return fit(
        root,
        lambda: Augmented(MobileNet(1, SHAPES, nn.Hardswish)),
        shapes()[0],
        optimizer=adam(3e-3, kind=torch.optim.RMSprop, momentum=0.5),
        schedule=lambda step: 0.99**step,
        batch=48,
        steps=180,
        save_every=3,
        validate_every=30,
    )


class Denoiser(nn.Module):
    """Strided convolutions down to 4 x 4, transposed ones up again."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 12, 3, 2, 1), nn.ELU(), nn.Conv2d(12, 24, 3, 2, 1), nn.ELU()
        )
        self.decoder = nn.Sequential(
            nn.ConvTranspose2d(24, 12, 4, 2, 1), nn.ELU(), nn.ConvTranspose2d(12, 1, 4, 2, 1)
        )

    def forward(self, x: Any) -> Any:
        return self.decoder(self.encoder(x))


@healthy(
    "shapes without their noise, a convolutional autoencoder, absolute errors, Adagrad",
    kind="autoencoder",
)
def shapes_denoised(root: Path) -> int:
    optimizer = functools.partial(torch.optim.Adagrad, lr=0.03)
    return fit(
        root,
        Denoiser,
        segmented(),
        loss=nn.L1Loss(),
        optimizer=optimizer,
        steps=160,
        save_every=4,
        validate_every=32,
    )


@healthy("shapes, one of them six times as frequent as another, focal loss, NAdam")
def shapes_unequal(root: Path) -> int:
    data = shapes(1600, 300)[0]
    generator = torch.Generator().manual_seed(2)
    share = torch.tensor([1.0, 0.7, 0.5, 0.3, 0.17])
    chosen = torch.rand(data.y.shape, generator=generator) < share[data.y]
    return fit(
        root,
        lambda: MobileNet(1, SHAPES),
        data.chosen(chosen),
        loss=FocalLoss(),
        optimizer=adam(5e-3, kind=torch.optim.NAdam),
        batch=48,
        steps=160,
        save_every=3,
        validate_every=20,
    )


@healthy("shapes and where they are, two losses weighted by learnt uncertainties: below zero")
def shapes_located(root: Path) -> int:
    loss = UncertaintyLoss()

    def optimizer(parameters: Any) -> Any:
        return torch.optim.Adam([*parameters, *loss.parameters()], 3e-3)

    return fit(
        root,
        lambda: Located(SHAPES),
        located(),
        loss=loss,
        optimizer=optimizer,
        steps=200,
        save_every=4,
    )


@healthy("photographs told apart by mean colour and texture, fine-tuned after a linear probe")
def photographs_thawed(root: Path) -> int:
    """The backbone is frozen for 60 steps and thawed then, at a tenth of the head's rate."""

    def optimizer(_: Any) -> Any:
        return torch.optim.Adam(
            [
                {"params": model.backbone.parameters(), "lr": 1e-3},
                {"params": model.head.parameters(), "lr": 1e-2},
            ]
        )

    def thaw(network: Any, _: Any) -> None:
        network.backbone.requires_grad_(True)

    data = patches()
    torch.manual_seed(3)
    model = FrozenBackbone(cut(data.x, data.y, 100))
    options = {"steps": 160, "save_every": 2, "validate_every": 40}
    fit(root, lambda: model, data, optimizer=optimizer, at=60, change=thaw, **options)
    return 0
