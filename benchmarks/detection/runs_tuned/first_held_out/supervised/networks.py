"""Networks and losses of the held-out supervised runs."""

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from runs_tuned.first_held_out.supervised.generated_data import CATEGORIES, communities


class Separable(nn.Module):
    """A depthwise convolution, a pointwise one, group norm and an activation."""

    def __init__(self, ins: int, outs: int, act: Any = nn.SiLU) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(ins, ins, 3, padding=1, groups=ins, bias=False)
        self.pointwise = nn.Conv2d(ins, outs, 1, bias=False)
        self.norm, self.act = nn.GroupNorm(4, outs), act()

    def forward(self, x: Any) -> Any:
        return self.act(self.norm(self.pointwise(self.depthwise(x))))


class MobileNet(nn.Module):
    """A stem, separable convolutions that halve the sides, and the mean over positions."""

    def __init__(self, channels: int, classes: int, act: Any = nn.SiLU) -> None:
        super().__init__()
        self.stem = nn.Conv2d(channels, 8, 3, padding=1)
        self.blocks = nn.Sequential(
            Separable(8, 16, act),
            nn.AvgPool2d(2),
            Separable(16, 24, act),
            nn.AvgPool2d(2),
            Separable(24, 32, act),
        )
        self.head = nn.Linear(32, classes)

    def forward(self, x: Any) -> Any:
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


def convolution(ins: int, outs: int) -> Any:
    """Return a convolution with batch norm and ReLU."""
    layers = [nn.Conv2d(ins, outs, 3, padding=1, bias=False), nn.BatchNorm2d(outs), nn.ReLU()]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    """Two levels down and up with skip connections; a logit for each pixel."""

    def __init__(self, channels: int = 1, outs: int = 1) -> None:
        super().__init__()
        self.down1, self.down2 = convolution(channels, 8), convolution(8, 16)
        self.bottom = convolution(16, 16)
        self.up2, self.up1 = convolution(32, 8), convolution(16, 8)
        self.pool, self.grow = nn.MaxPool2d(2), nn.Upsample(scale_factor=2, mode="nearest")
        self.head = nn.Conv2d(8, outs, 1)

    def forward(self, x: Any) -> Any:
        first = self.down1(x)
        second = self.down2(self.pool(first))
        x = self.grow(self.bottom(self.pool(second)))
        x = self.grow(self.up2(torch.cat([x, second], 1)))
        return self.head(self.up1(torch.cat([x, first], 1)))


class DiceLoss(nn.Module):
    """Binary cross entropy of pixels, and one minus the overlap of masks."""

    def forward(self, logits: Any, y: Any) -> Any:
        chance = logits.sigmoid()
        overlap = (2 * (chance * y).sum((1, 2, 3)) + 1) / (chance + y).sum((1, 2, 3)).add(1)
        return functional.binary_cross_entropy_with_logits(logits, y) + (1 - overlap).mean()


class FocalLoss(nn.Module):
    """Cross entropy that weighs what is certain down."""

    def __init__(self, exponent: float = 2.0) -> None:
        super().__init__()
        self.exponent = exponent

    def forward(self, logits: Any, y: Any) -> Any:
        chance = logits.softmax(1).gather(1, y[:, None])[:, 0]
        entropy = functional.cross_entropy(logits, y, reduction="none")
        return ((1 - chance) ** self.exponent * entropy).mean()


class PointNet(nn.Module):
    """The same layers for each point, the largest over all points, and a classifier."""

    def __init__(self, classes: int = 4, width: int = 64, drop: float = 0.3) -> None:
        super().__init__()
        self.points = nn.Sequential(
            nn.Conv1d(3, 32, 1),
            nn.BatchNorm1d(32),
            nn.ReLU(),
            nn.Conv1d(32, width, 1),
            nn.BatchNorm1d(width),
            nn.ReLU(),
        )
        self.head = nn.Sequential(
            nn.Linear(width, 32), nn.ReLU(), nn.Dropout(drop), nn.Linear(32, classes)
        )

    def forward(self, x: Any) -> Any:
        return self.head(self.points(x).amax(2))


class Temporal(nn.Module):
    """Causal dilated convolutions with residuals; the last step decides."""

    def __init__(self, ins: int, classes: int, width: int = 24, drop: float = 0.1) -> None:
        super().__init__()
        self.stem = nn.Conv1d(ins, width, 1)
        weight_norm = nn.utils.parametrizations.weight_norm
        self.layers = nn.ModuleList(
            weight_norm(nn.Conv1d(width, width, 3, dilation=2**level)) for level in range(4)
        )
        self.act, self.drop = nn.ReLU(), nn.Dropout(drop)
        self.head = nn.Linear(width, classes)

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        for level, layer in enumerate(self.layers):
            padded = functional.pad(x, (2 * 2**level, 0))
            x = x + self.drop(self.act(layer(padded)))
        return self.head(x.mean(2))


class Forecaster(nn.Module):
    """A bidirectional GRU, and a linear layer on its last outputs."""

    def __init__(self, outs: int = 4, width: int = 16) -> None:
        super().__init__()
        self.gru = nn.GRU(1, width, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, outs)

    def forward(self, x: Any) -> Any:
        _, state = self.gru(x)
        return self.head(state.transpose(0, 1).flatten(1))


class GraphConvolution(nn.Module):
    """Two graph convolutions; inputs are the numbers of nodes to classify."""

    def __init__(self, width: int = 16, drop: float = 0.4) -> None:
        super().__init__()
        adjacency, features, _ = communities()
        self.register_buffer("adjacency", adjacency)
        self.register_buffer("features", features)
        self.conv1, self.conv2 = nn.Linear(16, width), nn.Linear(width, 3)
        self.act, self.drop = nn.ReLU(), nn.Dropout(drop)

    def forward(self, rows: Any) -> Any:
        hidden = self.act(self.adjacency @ self.conv1(self.drop(self.features)))
        return (self.adjacency @ self.conv2(self.drop(hidden)))[rows]


class Embedded(nn.Module):
    """Embeddings of two categories beside numbers, and layers with batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.town, self.plan = nn.Embedding(CATEGORIES, 8), nn.Embedding(4, 2)
        self.norm = nn.BatchNorm1d(5)
        self.layers = nn.Sequential(nn.Linear(15, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))

    def forward(self, x: Any) -> Any:
        town, plan = self.town(x[:, 5].long()), self.plan(x[:, 6].long())
        return self.layers(torch.cat([self.norm(x[:, :5]), town, plan], 1))


class Mixture(nn.Module):
    """Logits, means and logarithms of deviations of several normal distributions."""

    def __init__(self, components: int = 5, width: int = 32) -> None:
        super().__init__()
        self.hidden, self.act = nn.Linear(1, width), nn.Tanh()
        self.logits, self.means = nn.Linear(width, components), nn.Linear(width, components)
        self.scales = nn.Linear(width, components)

    def forward(self, x: Any) -> tuple[Any, Any, Any]:
        hidden = self.act(self.hidden(x))
        return self.logits(hidden), self.means(hidden), self.scales(hidden)


class MixtureLoss(nn.Module):
    """The negative logarithm of a mixture's density: it goes below zero."""

    def forward(self, outputs: Any, y: Any) -> Any:
        logits, means, scales = outputs
        square = ((y - means) / scales.exp()) ** 2 / 2
        density = logits.log_softmax(1) - square - scales - math.log(2 * math.pi) / 2
        return -density.logsumexp(1).mean()


class PinballLoss(nn.Module):
    """The loss of three quantiles."""

    def forward(self, outputs: Any, y: Any) -> Any:
        shares = torch.tensor([0.1, 0.5, 0.9])
        difference = y - outputs
        return torch.maximum(shares * difference, (shares - 1) * difference).mean()


class Located(nn.Module):
    """One trunk with a head of classes and one of coordinates."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.trunk = nn.Sequential(convolution(1, 8), nn.MaxPool2d(2), convolution(8, 16))
        self.hidden = nn.Sequential(nn.Flatten(), nn.Linear(1024, 32), nn.ReLU())
        self.kind, self.place = nn.Linear(32, classes), nn.Linear(32, 2)

    def forward(self, x: Any) -> tuple[Any, Any]:
        hidden = self.hidden(self.trunk(x))
        return self.kind(hidden), self.place(hidden)


class UncertaintyLoss(nn.Module):
    """Two tasks, weighted by uncertainties that are learnt beside the model."""

    def __init__(self) -> None:
        super().__init__()
        self.variances = nn.Parameter(torch.zeros(2))

    def forward(self, outputs: Any, y: Any) -> Any:
        kind, place = outputs
        losses = torch.stack(
            [
                functional.cross_entropy(kind, y[:, 0].long()),
                functional.mse_loss(place, y[:, 1:]),
            ]
        )
        return (losses * (-self.variances).exp() + self.variances).sum() / 2
