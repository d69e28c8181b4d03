"""Healthy trainings of pictures: convolutions, residual blocks, mixers; some trained before."""

from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.optim import lr_scheduler as rates
from training_runs import healthy

from runs_held_out.units.shared.data import CLOUDS, GLYPHS, clouds, glyphs, rivers
from runs_held_out.units.shared.loop import train, trained_before
from runs_held_out.units.shared.networks import (
    ConvNet,
    Mixer,
    Outliner,
    Separable,
    layers,
    squeeze_net,
)


@healthy("glyphs by two convolutions with pooling and dropout, Adam")
def glyphs_by_convolutions(root: Path) -> int:
    torch.manual_seed(811)
    model = ConvNet(1, 14, GLYPHS)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    return train(
        root, model, glyphs(), nn.CrossEntropyLoss(), optimizer, epochs=5, save_every=3, seed=811
    )


def flipped(x: Any) -> Any:
    """Return pictures, about half of them mirrored from left to right."""
    chosen = torch.rand(len(x)) < 0.5
    return torch.where(chosen[:, None, None, None], x.flip(3), x)


@healthy("clouds by squeezed residual blocks with stochastic depth, SGD, warm-up, cosine, flips")
def clouds_with_stochastic_depth(root: Path) -> int:
    torch.manual_seed(812)
    model, total = squeeze_net(CLOUDS, 10, 0.1), 4 * (1040 // 32)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=5e-4)
    rise = rates.LinearLR(optimizer, 0.1, 1.0, 12)
    fall = rates.CosineAnnealingLR(optimizer, total - 12)
    both = rates.SequentialLR(optimizer, [rise, fall], [12])
    return train(
        root,
        model,
        clouds(1300, 1.2),
        nn.CrossEntropyLoss(label_smoothing=0.1),
        optimizer,
        scheduler=both,
        augment=flipped,
        epochs=4,
        save_every=4,
        seed=812,
    )


@healthy("glyphs by separable convolutions with hard swish, RMSprop, rate falls by epochs")
def glyphs_by_separable_convolutions(root: Path) -> int:
    torch.manual_seed(813)
    model = nn.Sequential(
        *(nn.Conv2d(1, 12, 3, 1, 1, bias=False), nn.BatchNorm2d(12), nn.Hardswish()),
        *(Separable(12, 24, 2), Separable(24, 32, 2), nn.AdaptiveAvgPool2d(2), nn.Flatten()),
        *(nn.Dropout(0.1), nn.Linear(128, GLYPHS)),
    )
    optimizer = torch.optim.RMSprop(model.parameters(), 1e-3, momentum=0.9, weight_decay=1e-5)
    falling = rates.ExponentialLR(optimizer, 0.8)
    data, loss = glyphs(1500, 75.0, 8111), nn.CrossEntropyLoss()
    return train(
        root, model, data, loss, optimizer, epoch_scheduler=falling, epochs=5, save_every=3
    )


@healthy("glyphs by a mixer of patches and channels, AdamW, warm-up, clipped")
def glyphs_by_mixer(root: Path) -> int:
    torch.manual_seed(814)
    model = Mixer(1, 14, GLYPHS)
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0.05)
    warm_up = rates.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 20))
    data, loss = glyphs(1500, 65.0, 8112), nn.CrossEntropyLoss()
    return train(
        root,
        model,
        data,
        loss,
        optimizer,
        scheduler=warm_up,
        clip=1.0,
        epochs=4,
        save_every=3,
        seed=814,
    )


@healthy("where rivers are by a U-Net, Adam, halved where the validation is level")
def rivers_by_unet(root: Path) -> int:
    torch.manual_seed(815)
    model = Outliner()
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    plateaus = rates.ReduceLROnPlateau(optimizer, factor=0.5, patience=2)
    return train(
        root,
        model,
        rivers(),
        nn.BCEWithLogitsLoss(),
        optimizer,
        epoch_scheduler=plateaus,
        epochs=4,
        batch=16,
        save_every=4,
        seed=815,
    )


@healthy("other glyphs by convolutions that know some, frozen, and a new head, Adam")
def new_head_for_other_glyphs(root: Path) -> int:
    torch.manual_seed(816)
    loss = nn.CrossEntropyLoss()
    model = trained_before(ConvNet(1, 14, GLYPHS), glyphs(1200, 45.0, 8113), loss)
    model.features.requires_grad_(requires_grad=False)
    model.head = layers(24 * 9, 32, GLYPHS, drop=0.2)
    optimizer = torch.optim.Adam(model.head.parameters(), 1e-3)
    data = glyphs(1400, 65.0, 8114).relabelled(lambda y: (y * 5 + 2) % GLYPHS)
    return train(root, model, data, loss, optimizer, epochs=5, save_every=2, seed=816)


@healthy("clouds by a network trained on clearer ones, all layers, a smaller rate for the trunk")
def fine_tuned_on_noisier_clouds(root: Path) -> int:
    torch.manual_seed(817)
    loss = nn.CrossEntropyLoss()
    model = trained_before(squeeze_net(CLOUDS, 10), clouds(700, 0.5, 8115), loss, epochs=2)
    model[-1] = nn.Linear(10, CLOUDS)
    optimizer = torch.optim.AdamW(
        [
            {"params": model[:-1].parameters(), "lr": 5e-4},
            {"params": model[-1].parameters(), "lr": 5e-3},
        ],
        weight_decay=1e-2,
    )
    data = clouds(1100, 1.6, 8116)
    return train(root, model, data, loss, optimizer, epochs=3, batch=24, save_every=4, seed=817)


@healthy("clouds by convolutions with batch norm, four small batches to an update, momentum")
def clouds_by_accumulated_batches(root: Path) -> int:
    torch.manual_seed(818)
    parts: list[Any] = []
    for ins, outs in ((3, 12), (12, 24)):
        parts += [nn.Conv2d(ins, outs, 3, 1, 1, bias=False), nn.BatchNorm2d(outs)]
        parts += [nn.LeakyReLU(0.1), nn.MaxPool2d(2)]
    head = nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, CLOUDS)
    model = nn.Sequential(*parts, *head)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=1e-4)
    data, loss = clouds(1400, 1.2, 8117), nn.CrossEntropyLoss()
    return train(
        root,
        model,
        data,
        loss,
        optimizer,
        accumulate=4,
        batch=16,
        epochs=5,
        save_every=4,
        seed=818,
    )
