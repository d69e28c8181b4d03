"""Healthy trainings of pictures: convolutions, residual blocks, patches; from scratch."""

import dataclasses
from pathlib import Path

import torch
from torch import nn
from torch.optim import lr_scheduler as schedules
from training_runs import healthy

from runs_tuned.seventh_held_out.units.shared.loop import train
from runs_tuned.seventh_held_out.units.shared.pictures import (
    FABRICS,
    SIGNS,
    ConvNextBlock,
    LeNet,
    MobileBlock,
    ResNet,
    UNet,
    Vgg,
    VisionTransformer,
    cells,
    fabrics,
    signs,
    trained_before,
    written,
)


@healthy("digits by a LeNet with ReLU, SGD with momentum, a tenth of the rate for the last epoch")
def digits_by_lenet(root: Path) -> int:
    torch.manual_seed(21)
    model = LeNet(1, 8, 10)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    return train(
        root,
        model,
        written(),
        loss=nn.CrossEntropyLoss(),
        optimizer=optimizer,
        by_epoch=schedules.MultiStepLR(optimizer, [4], 0.1),
        epochs=5,
        save_every=3,
        seed=21,
    )


@healthy("signs by a LeNet with tanh and Glorot's initialisation, Adam, falls by a tenth an epoch")
def signs_by_tanh_lenet(root: Path) -> int:
    torch.manual_seed(22)
    model = LeNet(1, 12, SIGNS, nn.Tanh)
    for part in model.modules():
        if isinstance(part, nn.Linear | nn.Conv2d):
            nn.init.xavier_normal_(part.weight)
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    return train(
        root,
        model,
        signs(),
        loss=nn.CrossEntropyLoss(),
        optimizer=optimizer,
        by_epoch=schedules.ExponentialLR(optimizer, 0.9),
        epochs=6,
        seed=22,
    )


@healthy("fabrics by pairs of convolutions with batch norm and dropout, Adam")
def fabrics_by_vgg(root: Path) -> int:
    torch.manual_seed(23)
    model = Vgg(3, FABRICS)
    optimizer = torch.optim.Adam(model.parameters(), 3e-3, weight_decay=1e-5)
    loss = nn.CrossEntropyLoss()
    return train(
        root,
        model,
        fabrics(1300, 0.8, 12, 7223),
        loss=loss,
        optimizer=optimizer,
        epochs=5,
        save_every=3,
        seed=23,
    )


@healthy("fabrics by a ResNet, Nesterov's momentum, decay, one cycle of the rate")
def fabrics_by_resnet(root: Path) -> int:
    torch.manual_seed(24)
    model = ResNet(3, FABRICS)
    optimizer = torch.optim.SGD(
        model.parameters(), 0.01, momentum=0.9, weight_decay=5e-4, nesterov=True
    )
    cycle = schedules.OneCycleLR(optimizer, 0.1, epochs=5, steps_per_epoch=1014 // 32)
    loss = nn.CrossEntropyLoss()
    return train(
        root,
        model,
        fabrics(1300, 0.9, 12, 7224),
        loss=loss,
        optimizer=optimizer,
        by_step=cycle,
        epochs=5,
        save_every=3,
        seed=24,
    )


@healthy("signs by inverted residuals with ReLU6, RMSprop with momentum, rate falls by epochs")
def signs_by_inverted_residuals(root: Path) -> int:
    torch.manual_seed(25)
    model = nn.Sequential(
        *(nn.Conv2d(1, 12, 3, 2, 1, bias=False), nn.BatchNorm2d(12), nn.ReLU6()),
        *(MobileBlock(12), MobileBlock(12), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        *(nn.Dropout(0.1), nn.Linear(12, SIGNS)),
    )
    optimizer = torch.optim.RMSprop(
        model.parameters(), 2e-3, alpha=0.9, momentum=0.9, weight_decay=1e-5
    )
    return train(
        root,
        model,
        signs(1500, 0.2, 12, 7225),
        loss=nn.CrossEntropyLoss(),
        optimizer=optimizer,
        by_epoch=schedules.ExponentialLR(optimizer, 0.85),
        epochs=5,
        save_every=4,
        seed=25,
    )


@healthy("fabrics by blocks as in ConvNeXt, AdamW, warm-up and cosine, smoothed labels")
def fabrics_by_convnext(root: Path) -> int:
    torch.manual_seed(26)
    stem = nn.Conv2d(3, 24, 2, 2)
    model = nn.Sequential(
        *(stem, ConvNextBlock(24), ConvNextBlock(24), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        *(nn.LayerNorm(24), nn.Linear(24, FABRICS)),
    )
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3, weight_decay=0.05)
    steps = 5 * (1014 // 32)
    rise = schedules.LinearLR(optimizer, 0.05, 1.0, 15)
    fall = schedules.CosineAnnealingLR(optimizer, steps - 15, 1e-5)
    return train(
        root,
        model,
        fabrics(1300, 0.9, 12, 7226),
        loss=nn.CrossEntropyLoss(label_smoothing=0.1),
        optimizer=optimizer,
        by_step=schedules.SequentialLR(optimizer, [rise, fall], [15]),
        epochs=5,
        seed=26,
    )


@healthy("signs by a small vision transformer, AdamW, warm-up and cosine, clipped")
def signs_by_vision_transformer(root: Path) -> int:
    torch.manual_seed(27)
    model = VisionTransformer(1, 12, SIGNS)
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3, weight_decay=0.05)
    steps = 6 * (1560 // 32)
    rise = schedules.LinearLR(optimizer, 0.1, 1.0, 20)
    fall = schedules.CosineAnnealingLR(optimizer, steps - 20, 1e-5)
    return train(
        root,
        model,
        signs(2000, 0.1, 12, 7227),
        loss=nn.CrossEntropyLoss(),
        optimizer=optimizer,
        by_step=schedules.SequentialLR(optimizer, [rise, fall], [20]),
        epochs=6,
        clip=1.0,
        save_every=4,
        seed=27,
    )


@healthy("where cells are by a U-Net with one level, Adam, halved where the evaluation is level")
def cells_by_unet(root: Path) -> int:
    torch.manual_seed(28)
    model = UNet()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    return train(
        root,
        model,
        cells(),
        loss=nn.BCEWithLogitsLoss(),
        optimizer=optimizer,
        by_epoch=schedules.ReduceLROnPlateau(optimizer, factor=0.5, patience=2),
        epochs=6,
        batch=16,
        save_every=4,
        seed=28,
    )


@healthy("digits from noisy ones by a convolutional autoencoder, Adam", kind="autoencoder")
def digits_without_noise(root: Path) -> int:
    torch.manual_seed(29)
    clean = written()
    chance = torch.Generator().manual_seed(29)
    noisy = lambda x: x + 0.4 * torch.randn(x.shape, generator=chance)
    data = dataclasses.replace(clean.of(noisy), y=clean.x, test_y=clean.test_x)
    model = nn.Sequential(
        *(nn.Conv2d(1, 12, 3, 2, 1), nn.ReLU(), nn.Conv2d(12, 24, 3, 2, 1), nn.ReLU()),
        *(nn.ConvTranspose2d(24, 12, 2, 2), nn.ReLU(), nn.ConvTranspose2d(12, 1, 2, 2)),
    )
    optimizer = torch.optim.Adam(model.parameters(), 4e-3)
    return train(root, model, data, loss=nn.MSELoss(), optimizer=optimizer, epochs=5, seed=29)


@healthy("digits from 5 on by a new head on frozen convolutions that know those before, Adam")
def new_head_on_frozen_convolutions(root: Path) -> int:
    torch.manual_seed(30)
    model = trained_before(LeNet(1, 8, 5), written(0, 4), 120, 3e-3)
    model.requires_grad_(requires_grad=False)
    model.classifier = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 5))
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], 3e-3)
    loss, data = nn.CrossEntropyLoss(), written(5, 9)
    return train(
        root, model, data, loss=loss, optimizer=optimizer, epochs=8, batch=24, save_every=3, seed=30
    )


@healthy(
    "fine weaves after coarse ones by a whole ResNet, the head at ten times the rate, momentum"
)
def whole_resnet_is_tuned(root: Path) -> int:
    torch.manual_seed(31)
    model = trained_before(ResNet(3, FABRICS), fabrics(1000, 0.2, 12, 7231), 70, 5e-3)
    model.fc = nn.Linear(20, FABRICS)
    body = [p for name, p in model.named_parameters() if not name.startswith("fc")]
    groups = [{"params": body, "lr": 5e-3}, {"params": model.fc.parameters(), "lr": 5e-2}]
    optimizer = torch.optim.SGD(groups, momentum=0.9, weight_decay=1e-4)
    return train(
        root,
        model,
        fabrics(1300, 1.0, 12, 7232),
        loss=nn.CrossEntropyLoss(),
        optimizer=optimizer,
        by_step=schedules.CosineAnnealingLR(optimizer, 4 * (1014 // 32)),
        epochs=4,
        seed=31,
    )


@healthy(
    "digits from 5 on by a LeNet that knows those before, frozen for two epochs, then all of it"
)
def lenet_is_thawed_after_two_epochs(root: Path) -> int:
    torch.manual_seed(32)
    model = trained_before(LeNet(1, 8, 5), written(0, 4), 120, 3e-3)
    model.classifier = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 5))
    model.features.requires_grad_(requires_grad=False)
    groups = [
        {"params": model.features.parameters(), "lr": 1e-3},
        {"params": model.classifier.parameters(), "lr": 3e-3},
    ]
    optimizer, data = torch.optim.AdamW(groups, weight_decay=1e-2), written(5, 9)

    def thawed(step: int) -> None:
        if step == 2 * (len(data.x) // 24):
            model.features.requires_grad_(requires_grad=True)

    return train(
        root,
        model,
        data,
        loss=nn.CrossEntropyLoss(),
        optimizer=optimizer,
        before=thawed,
        epochs=6,
        batch=24,
        seed=32,
    )
