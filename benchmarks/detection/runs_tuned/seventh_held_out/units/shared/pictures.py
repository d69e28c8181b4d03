"""Generated pictures: signs, fabrics, cells and digits; networks that see them."""

import functools
from typing import Any

import numpy as np
import torch
from sklearn import datasets as bundled
from torch import nn
from training.learnt_data import Split

SIGNS, FABRICS = 5, 6


def normalised(x: Any, y: Any, share: float = 0.78) -> Split:
    """Return pictures with a mean of 0 and a deviation of 1 in each channel, as far as trained."""
    x, y = torch.as_tensor(x).float(), torch.as_tensor(y)
    cut = int(share * len(x))
    mean, deviation = x[:cut].mean((0, 2, 3), True), x[:cut].std((0, 2, 3), keepdim=True)
    x = (x - mean) / deviation
    return Split(x[:cut], y[:cut], x[cut:], y[cut:])


def drawn_sign(kind: int, rng: Any, size: int) -> Any:
    """Return a sign of a kind, somewhere in a square."""
    row, column = np.mgrid[:size, :size]
    middle = (size - 1) / 2 + rng.uniform(-1.5, 1.5, 2)
    radius = size * rng.uniform(0.26, 0.38)
    down, right = row - middle[0], column - middle[1]
    far, wide = np.hypot(down, right), np.maximum(abs(down), abs(right))
    return (
        far < radius,
        (wide < radius) & (wide > radius - 2),
        (np.minimum(abs(down), abs(right)) < 1.2) & (wide < radius),
        (down > -radius) & (down < radius) & (abs(right) < (down + radius) / 2),
        (abs(abs(down) - abs(right)) < 1.3) & (wide < radius),
    )[kind]


@functools.cache
def signs(count: int = 1400, noise: float = 0.25, size: int = 12, seed: int = 7201) -> Split:
    """Return grey pictures ``(n, 1, size, size)`` of a sign, and which of five it is."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(SIGNS, size=count)
    light = rng.uniform(0.6, 1.0, (count, 1, 1))
    x = light * np.stack([drawn_sign(one, rng, size) for one in kind])
    x = 0.1 + 0.8 * x + noise * rng.normal(size=x.shape)
    return normalised(x[:, None].clip(0, 1), kind)


@functools.cache
def fabrics(count: int = 1300, noise: float = 0.3, size: int = 12, seed: int = 7202) -> Split:
    """Return coloured pictures ``(n, 3, size, size)`` of a fabric, and how it is woven."""
    rng = np.random.default_rng(seed)
    row, column = np.mgrid[:size, :size][:, None]
    woven = rng.integers(FABRICS, size=count)
    phase, beside = rng.uniform(0, 6.28, (2, count, 1, 1))
    coarse = np.where(woven % 2, 1.9, 1.0)[:, None, None]
    across, down = np.sin(coarse * row + phase), np.sin(coarse * column + beside)
    which = (woven // 2)[:, None, None]
    pattern = np.where(which == 0, across, np.where(which == 1, down, across * down))
    tint, dye = rng.uniform(0.3, 0.6, (count, 3, 1, 1)), rng.uniform(0.1, 0.4, (count, 3, 1, 1))
    x = tint + dye * pattern[:, None] + noise * 0.5 * rng.normal(size=(count, 3, size, size))
    return normalised(x.clip(0, 1), woven)


@functools.cache
def cells(count: int = 700, size: int = 16, seed: int = 7203) -> Split:
    """Return pictures ``(n, 1, size, size)`` of cells, and where they are, of the same shape."""
    rng = np.random.default_rng(seed)
    row, column = np.mgrid[:size, :size]
    there = np.zeros((count, size, size), bool)
    for at in range(count):
        for _ in range(rng.integers(2, 5)):
            middle, radius = rng.uniform(2, size - 2, 2), rng.uniform(1.8, 3.5)
            there[at] |= np.hypot(row - middle[0], column - middle[1]) < radius
    light = rng.uniform(0.3, 0.7, (count, 1, 1))
    x = 0.2 + light * there + 0.12 * rng.normal(size=there.shape)
    return normalised(x[:, None], there[:, None].astype(np.float32))


@functools.cache
def written(first: int = 0, last: int = 9, seed: int = 7204) -> Split:
    """Return digits ``(n, 1, 8, 8)`` from the first to the last one, counted from the first."""
    x, y = bundled.load_digits(return_X_y=True)
    rows = np.flatnonzero((y >= first) & (y <= last))
    rows = np.random.default_rng(seed).permutation(rows)
    return normalised(x[rows].reshape(-1, 1, 8, 8) / 16, y[rows] - first)


class LeNet(nn.Module):
    """Two convolutions with pooling, and three dense layers."""

    def __init__(self, channels: int, size: int, outs: int, act: Any = nn.ReLU) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *(nn.Conv2d(channels, 6, 3, padding=1), act(), nn.MaxPool2d(2)),
            *(nn.Conv2d(6, 16, 3, padding=1), act(), nn.MaxPool2d(2), nn.Flatten()),
        )
        self.classifier = nn.Sequential(
            *(nn.Linear(16 * (size // 4) ** 2, 48), act(), nn.Linear(48, 32), act()),
            nn.Linear(32, outs),
        )

    def forward(self, x: Any) -> Any:
        return self.classifier(self.features(x))


class Vgg(nn.Sequential):
    """Pairs of convolutions with batch norm, pooled in between; dropout before the head."""

    def __init__(self, channels: int, outs: int, widths: Any = (12, 24), drop: float = 0.3) -> None:
        parts: list[Any] = []
        for width in widths:
            for _ in range(2):
                parts += [nn.Conv2d(channels, width, 3, padding=1, bias=False)]
                parts += [nn.BatchNorm2d(width), nn.ReLU(inplace=True)]
                channels = width
            parts.append(nn.MaxPool2d(2))
        parts += [
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Dropout(drop),
            nn.Linear(channels, outs),
        ]
        super().__init__(*parts)


class BasicBlock(nn.Module):
    """The block of ResNet: two convolutions with batch norm, added to what came in."""

    def __init__(self, ins: int, outs: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(ins, outs, 3, stride, 1, bias=False)
        self.conv2 = nn.Conv2d(outs, outs, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(outs), nn.BatchNorm2d(outs)
        self.relu1, self.relu2 = nn.ReLU(), nn.ReLU()
        self.downsample: Any = nn.Identity()
        if stride > 1 or ins != outs:
            self.downsample = nn.Sequential(
                nn.Conv2d(ins, outs, 1, stride, bias=False), nn.BatchNorm2d(outs)
            )

    def forward(self, x: Any) -> Any:
        out = self.bn2(self.conv2(self.relu1(self.bn1(self.conv1(x)))))
        return self.relu2(out + self.downsample(x))


class ResNet(nn.Module):
    """A stem, three residual blocks, and a linear layer on the mean over places."""

    def __init__(self, channels: int, outs: int, width: int = 10) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(channels, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()
        )
        self.layer1 = BasicBlock(width, width)
        self.layer2 = BasicBlock(width, 2 * width, 2)
        self.layer3 = BasicBlock(2 * width, 2 * width)
        self.pool, self.fc = nn.AdaptiveAvgPool2d(1), nn.Linear(2 * width, outs)
        for part in self.modules():
            if isinstance(part, nn.Conv2d):
                nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Any) -> Any:
        x = self.layer3(self.layer2(self.layer1(self.stem(x))))
        return self.fc(self.pool(x).flatten(1))


class MobileBlock(nn.Module):
    """An inverted residual: wider, each channel by itself, narrower again."""

    def __init__(self, width: int, factor: int = 3) -> None:
        super().__init__()
        wide = factor * width
        self.layers = nn.Sequential(
            *(nn.Conv2d(width, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6()),
            *(nn.Conv2d(wide, wide, 3, 1, 1, groups=wide, bias=False), nn.BatchNorm2d(wide)),
            *(nn.ReLU6(), nn.Conv2d(wide, width, 1, bias=False), nn.BatchNorm2d(width)),
        )

    def forward(self, x: Any) -> Any:
        return x + self.layers(x)


class ConvNextBlock(nn.Module):
    """A depthwise convolution, layer norm and a wide layer with GELU, added to what came in."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dwconv = nn.Conv2d(width, width, 5, padding=2, groups=width)
        self.norm = nn.LayerNorm(width)
        self.wide, self.act, self.narrow = (
            nn.Linear(width, 3 * width),
            nn.GELU(),
            nn.Linear(3 * width, width),
        )

    def forward(self, x: Any) -> Any:
        out = self.norm(self.dwconv(x).permute(0, 2, 3, 1))
        return x + self.narrow(self.act(self.wide(out))).permute(0, 3, 1, 2)


class VisionTransformer(nn.Module):
    """Patches of 3 by 3 are tokens; encoder layers, and a head on their mean."""

    def __init__(self, channels: int, size: int, outs: int, width: int = 32) -> None:
        super().__init__()
        self.patches = nn.Conv2d(channels, width, 3, 3)
        self.positions = nn.Parameter(0.02 * torch.randn((size // 3) ** 2, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 64, 0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, outs)

    def forward(self, x: Any) -> Any:
        tokens = self.patches(x).flatten(2).transpose(1, 2) + self.positions
        return self.head(self.norm(self.encoder(tokens)).mean(1))


def double(ins: int, outs: int) -> Any:
    """Return two convolutions with batch norm, as U-Nets have them."""
    return nn.Sequential(
        *(nn.Conv2d(ins, outs, 3, padding=1, bias=False), nn.BatchNorm2d(outs), nn.ReLU()),
        *(nn.Conv2d(outs, outs, 3, padding=1, bias=False), nn.BatchNorm2d(outs), nn.ReLU()),
    )


class UNet(nn.Module):
    """One level down and up again, joined with what was there."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.down, self.pool = double(1, width), nn.MaxPool2d(2)
        self.middle = double(width, 2 * width)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.joined, self.head = double(2 * width, width), nn.Conv2d(width, 1, 1)

    def forward(self, x: Any) -> Any:
        left = self.down(x)
        right = self.up(self.middle(self.pool(left)))
        return self.head(self.joined(torch.cat([left, right], 1)))


def trained_before(model: Any, data: Any, steps: int, rate: float) -> Any:
    """Return a model after some steps of Adam, without a hook."""
    optimizer = torch.optim.Adam(model.parameters(), rate)
    for step in range(steps):
        rows = torch.arange(step * 32, step * 32 + 32) % len(data.x)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data.x[rows]), data.y[rows]).backward()
        optimizer.step()
    return model
