"""Networks: the models that the detection suite trains, each a function that makes one."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from training.learnt_data import LENGTH, TOKENS

Make = Callable[[], Any]


def mlp(
    *widths: int,
    act: Callable[[], Any] = nn.ReLU,
    norm: Callable[[int], Any] | None = None,
    drop: float = 0.0,
    start: Callable[[Any], Any] | None = None,
) -> Make:
    """Return what makes linear layers with activations, norms and dropout between them.

    `start` initialises the model.
    """

    def make() -> Any:
        layers: list[Any] = []
        for ins, outs in itertools.pairwise(widths[:-1]):
            layers.append(nn.Linear(ins, outs))
            layers += [norm(outs)] if norm else []
            layers.append(act())
            layers += [nn.Dropout(drop)] if drop else []
        model = nn.Sequential(*layers, nn.Linear(*widths[-2:]))
        if start:
            start(model)
        return model

    return make


def initialised(how: Callable[[Any], Any], kind: type = nn.Linear) -> Callable[[Any], Any]:
    """Return what initialises the weights of all layers of a kind."""

    def start(model: Any) -> None:
        for module in model.modules():
            if isinstance(module, kind):
                how(module.weight)

    return start


def biased(value: float, kind: type = nn.Linear, *, last: bool = False) -> Callable[[Any], Any]:
    """Return what sets the biases of all layers of a kind but (by default) the last one's."""

    def start(model: Any) -> None:
        found = [one for one in model.modules() if isinstance(one, kind)]
        for module in found if last else found[:-1]:
            nn.init.constant_(module.bias, value)

    return start


class Cnn(nn.Module):
    """Two convolutions and a linear layer."""

    def __init__(self, channels: int = 1, *, norm: bool = False, act: Any = nn.ReLU) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, 8, 3, padding=1)
        self.norm1 = nn.BatchNorm2d(8) if norm else nn.Identity()
        self.relu1 = act()
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.norm2 = nn.BatchNorm2d(16) if norm else nn.Identity()
        self.relu2 = act()
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Linear(64, 10)

    def forward(self, x: Any) -> Any:
        x = self.pool(self.relu1(self.norm1(self.conv1(x))))
        x = self.pool(self.relu2(self.norm2(self.conv2(x))))
        return self.head(x.flatten(1))


class Residual(nn.Module):
    """A deep stack of blocks, each added to what it was given."""

    def __init__(self, ins: int, classes: int, blocks: int = 8, width: int = 32) -> None:
        super().__init__()
        self.stem = nn.Linear(ins, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.ReLU())
            for _ in range(blocks)
        )
        self.head = nn.Linear(width, classes)

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


class Recurrent(nn.Module):
    """An embedding (of tokens), a recurrent layer, and a linear one on its last output."""

    def __init__(self, cell: type, outs: int, *, tokens: bool = True, width: int = 24) -> None:
        super().__init__()
        self.embedding = nn.Embedding(TOKENS, 12, padding_idx=0) if tokens else nn.Identity()
        self.cell = cell(12 if tokens else 1, width, batch_first=True)
        self.head = nn.Linear(width, outs)

    def forward(self, x: Any) -> Any:
        found, _ = self.cell(self.embedding(x))
        return self.head(found.mean(1) if x.ndim == 2 else found[:, -1])


class Transformer(nn.Module):
    """Token and position embeddings, encoder layers, and a linear layer."""

    def __init__(self, outs: int, *, causal: bool = False, layers: int = 2) -> None:
        super().__init__()
        width = 32
        self.tokens = nn.Embedding(TOKENS, width)
        self.positions = nn.Parameter(0.1 * torch.randn(LENGTH, width))
        self.encoders = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, 4, 64, 0.1, activation="gelu", batch_first=True, norm_first=True
            )
            for _ in range(layers)
        )
        self.head = nn.Linear(width, outs)
        self.causal = causal

    def forward(self, x: Any) -> Any:
        mask = nn.Transformer.generate_square_subsequent_mask(LENGTH) if self.causal else None
        found = self.tokens(x) + self.positions
        for encoder in self.encoders:
            found = encoder(found, src_mask=mask)
        # Classes at axis 1, where CrossEntropyLoss wants them.
        return self.head(found).transpose(1, 2) if self.causal else self.head(found.mean(1))


class Lora(nn.Module):
    """A frozen linear layer with a low-rank update that begins at zero."""

    def __init__(self, base: Any, rank: int = 4) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.lora_a = nn.Linear(base.in_features, rank, bias=False)
        self.lora_b = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.lora_b.weight)

    def forward(self, x: Any) -> Any:
        return self.base(x) + self.lora_b(self.lora_a(x))


class Autoencoder(nn.Module):
    """An encoder to a few numbers, and a decoder."""

    def __init__(self, ins: int = 64, inner: int = 12, act: Any = nn.ReLU) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(ins, 32), act(), nn.Linear(32, inner))
        self.decoder = nn.Sequential(nn.Linear(inner, 32), act(), nn.Linear(32, ins))

    def forward(self, x: Any) -> Any:
        return self.decoder(self.encoder(x))


def trained(make: Make, data: Any, steps: int, rate: float = 0.1, seed: int = 0) -> Any:
    """Return a model that was trained before, without a hook."""
    torch.manual_seed(seed)
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), rate, momentum=0.9)
    for step in range(steps):
        rows = torch.arange(step * 32, step * 32 + 32) % len(data.x)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(data.x[rows]), data.y[rows]).backward()
        optimizer.step()
    return model


def deep(depth: int, width: int = 24, ins: int = 64, outs: int = 10) -> Sequence[int]:
    """Return the widths of a deep stack."""
    return (ins, *[width] * depth, outs)
