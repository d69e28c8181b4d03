"""Networks of pictures, of texts and of tables."""

from typing import Any

import torch
from torch import nn


def convolutions(ins: int, kinds: int, width: int = 12, drop: float = 0.0) -> Any:
    """Return two blocks of a convolution, batch norm, ReLU and pooling, and a linear layer."""
    return nn.Sequential(
        nn.Conv2d(ins, width, 3, padding=1),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
        nn.Dropout(drop),
        nn.Linear(8 * width, kinds),
    )


def lenet(ins: int, kinds: int, size: int, width: int = 8) -> Any:
    """Return two convolutions with pooling, and two linear layers, without norms."""
    flat = 2 * width * (((size - 4) // 2 - 2) // 2) ** 2
    return nn.Sequential(
        nn.Conv2d(ins, width, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(flat, 48),
        nn.ReLU(),
        nn.Linear(48, kinds),
    )


class Block(nn.Module):
    """Two convolutions with batch norm around which the input is passed."""

    def __init__(self, ins: int, outs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(ins, outs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outs)
        self.conv2 = nn.Conv2d(outs, outs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outs)
        self.relu = nn.ReLU()
        self.shortcut = (
            nn.Identity()
            if stride == 1 and ins == outs
            else nn.Sequential(nn.Conv2d(ins, outs, 1, stride, bias=False), nn.BatchNorm2d(outs))
        )

    def forward(self, x: Any) -> Any:
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(out + self.shortcut(x))


class ResNet(nn.Module):
    """A stem, three blocks and a linear layer."""

    def __init__(self, ins: int, kinds: int, width: int = 10) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(ins, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()
        )
        self.blocks = nn.Sequential(
            Block(width, width, 2), Block(width, 2 * width, 2), Block(2 * width, 2 * width, 1)
        )
        self.fc = nn.Linear(2 * width, kinds)

    def forward(self, x: Any) -> Any:
        return self.fc(self.blocks(self.stem(x)).mean((2, 3)))


class VisionTransformer(nn.Module):
    """Patches of four by four pixels, a class token, and two encoder layers."""

    def __init__(self, ins: int, kinds: int, size: int, width: int = 32) -> None:
        super().__init__()
        self.patch = nn.Conv2d(ins, width, 4, 4)
        self.cls = nn.Parameter(0.02 * torch.randn(1, 1, width))
        self.positions = nn.Parameter(0.02 * torch.randn(1, 1 + (size // 4) ** 2, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, 0.1, "gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, kinds)

    def forward(self, x: Any) -> Any:
        seen = self.patch(x).flatten(2).transpose(1, 2)
        seen = torch.cat([self.cls.expand(len(x), -1, -1), seen], 1) + self.positions
        return self.head(self.norm(self.encoder(seen))[:, 0])


class TextCnn(nn.Module):
    """Convolutions over three, four and five words, the largest of each, and dropout."""

    def __init__(self, words: int, kinds: int, width: int = 24, drop: float = 0.3) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, 24, padding_idx=0)
        self.convs = nn.ModuleList(nn.Conv1d(24, width, size, padding=1) for size in (3, 4, 5))
        self.drop, self.fc = nn.Dropout(drop), nn.Linear(3 * width, kinds)

    def forward(self, x: Any) -> Any:
        read = self.embedding(x).transpose(1, 2)
        found = torch.cat([torch.relu(conv(read)).amax(2) for conv in self.convs], 1)
        return self.fc(self.drop(found))


class MeanOfWords(nn.Module):
    """The mean vector of the words, and two linear layers."""

    def __init__(self, words: int, kinds: int, width: int = 32, drop: float = 0.2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width, padding_idx=0)
        self.tell = nn.Sequential(
            nn.Linear(width, 32), nn.ReLU(), nn.Dropout(drop), nn.Linear(32, kinds)
        )

    def forward(self, x: Any) -> Any:
        there = (x > 0).sum(1, keepdim=True).clamp(min=1)
        return self.tell(self.embedding(x).sum(1) / there)


class Packed(nn.Module):
    """A recurrent layer over texts without their padding, and a linear layer on its last state."""

    def __init__(
        self, words: int, kinds: int, cell: Any = nn.LSTM, width: int = 32, drop: float = 0.2
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, 24, padding_idx=0)
        self.rnn = cell(24, width, batch_first=True, bidirectional=True)
        self.drop, self.fc = nn.Dropout(drop), nn.Linear(2 * width, kinds)

    def forward(self, x: Any) -> Any:
        packed = nn.utils.rnn.pack_padded_sequence(
            self.embedding(x), (x > 0).sum(1), batch_first=True, enforce_sorted=False
        )
        _, last = self.rnn(packed)
        state = last[0] if isinstance(last, tuple) else last
        return self.fc(self.drop(torch.cat([state[0], state[1]], 1)))


class TextEncoder(nn.Module):
    """Embeddings of words and places, two encoder layers that leave padding out, and a mean."""

    def __init__(self, words: int, kinds: int, width: int = 32, drop: float = 0.1) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width, padding_idx=0)
        self.position = nn.Parameter(0.02 * torch.randn(160, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, drop, "gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, kinds)

    def forward(self, x: Any) -> Any:
        away = x == 0
        read = self.embedding(x) + self.position[: x.shape[1]]
        read = self.norm(self.encoder(read, src_key_padding_mask=away))
        read = read.masked_fill(away[:, :, None], 0.0)
        return self.head(read.sum(1) / (~away).sum(1, keepdim=True))


class Entities(nn.Module):
    """Embeddings of districts and tariffs beside numbers, and layers with batch norm."""

    def __init__(self, sizes: tuple[int, ...], numbers: int, outs: int, drop: float = 0.1) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(size, 6) for size in sizes)
        self.layers = nn.Sequential(
            nn.Linear(6 * len(sizes) + numbers, 48),
            nn.BatchNorm1d(48),
            nn.ReLU(),
            nn.Dropout(drop),
            nn.Linear(48, 24),
            nn.BatchNorm1d(24),
            nn.ReLU(),
            nn.Linear(24, outs),
        )

    def forward(self, x: Any) -> Any:
        vectors = [table(x[:, at].long()) for at, table in enumerate(self.tables)]
        return self.layers(torch.cat([*vectors, x[:, len(vectors) :]], 1))


class TableResNet(nn.Module):
    """Blocks of layer norm, two linear layers and dropout, each added to its input."""

    def __init__(self, ins: int, outs: int, width: int = 32, drop: float = 0.1) -> None:
        super().__init__()
        self.stem = nn.Linear(ins, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.LayerNorm(width),
                nn.Linear(width, 2 * width),
                nn.ReLU(),
                nn.Dropout(drop),
                nn.Linear(2 * width, width),
            )
            for _ in range(2)
        )
        self.head = nn.Sequential(nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, outs))

    def forward(self, x: Any) -> Any:
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


def layers(ins: int, outs: int, *, width: int = 32, drop: float = 0.0, norm: bool = False) -> Any:
    """Return two hidden layers with ReLU, batch norm if asked for, and dropout."""
    parts: list[Any] = []
    for before in (ins, width):
        parts += [nn.Linear(before, width), *([nn.BatchNorm1d(width)] if norm else []), nn.ReLU()]
        parts += [nn.Dropout(drop)] if drop else []
    return nn.Sequential(*parts, nn.Linear(width, outs))
