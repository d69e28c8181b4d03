"""Networks of pictures, of texts and of tables."""

from typing import Any

import torch
from torch import nn


def _separable(ins: int, outs: int, stride: int) -> list[Any]:
    return [
        nn.Conv2d(ins, ins, 3, stride, 1, groups=ins, bias=False),
        nn.BatchNorm2d(ins),
        nn.ReLU(),
        nn.Conv2d(ins, outs, 1, bias=False),
        nn.BatchNorm2d(outs),
        nn.ReLU(),
    ]


def mobile(ins: int, kinds: int, width: int = 12, drop: float = 0.1) -> Any:
    """Return a stem and three separable convolutions with batch norm, as in MobileNet."""
    return nn.Sequential(
        nn.Conv2d(ins, width, 3, padding=1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(),
        *_separable(width, 2 * width, 2),
        *_separable(2 * width, 3 * width, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Dropout(drop),
        nn.Linear(3 * width, kinds),
    )


def vgg(ins: int, kinds: int, width: int = 8, *, norm: bool = False, drop: float = 0.0) -> Any:
    """Return three blocks of a convolution, ReLU and pooling, and two linear layers."""
    layers: list[Any] = []
    for before, after in ((ins, width), (width, 2 * width), (2 * width, 2 * width)):
        layers += [nn.Conv2d(before, after, 3, padding=1)]
        layers += [nn.BatchNorm2d(after)] if norm else []
        layers += [nn.ReLU(), nn.MaxPool2d(2)]
    head = [nn.Linear(8 * width, 32), nn.ReLU(), nn.Dropout(drop), nn.Linear(32, kinds)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), *head)


class _Next(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.mix = nn.Conv2d(width, width, 5, padding=2, groups=width)
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 3 * width), nn.Linear(3 * width, width)
        self.act = nn.GELU()

    def forward(self, x: Any) -> Any:
        found = self.norm(self.mix(x).permute(0, 2, 3, 1))
        return x + self.down(self.act(self.up(found))).permute(0, 3, 1, 2)


class ConvNext(nn.Module):
    """Patches of two by two, two blocks of ConvNeXt, a norm and a linear layer."""

    def __init__(self, ins: int, kinds: int, width: int = 16) -> None:
        super().__init__()
        self.stem = nn.Conv2d(ins, width, 2, 2)
        self.blocks = nn.Sequential(_Next(width), _Next(width))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, kinds)

    def forward(self, x: Any) -> Any:
        return self.head(self.norm(self.blocks(self.stem(x)).mean((2, 3))))


class Dense(nn.Module):
    """Convolutions with group norm, each of which gets what all before it found."""

    def __init__(self, ins: int, kinds: int, growth: int = 8) -> None:
        super().__init__()
        self.stem = nn.Conv2d(ins, 16, 3, 2, 1)
        self.layers = nn.ModuleList(
            nn.Sequential(
                nn.GroupNorm(4, 16 + growth * at),
                nn.ReLU(),
                nn.Conv2d(16 + growth * at, growth, 3, padding=1),
            )
            for at in range(3)
        )
        self.norm, self.fc = nn.GroupNorm(4, 16 + 3 * growth), nn.Linear(16 + 3 * growth, kinds)

    def forward(self, x: Any) -> Any:
        found = self.stem(x)
        for layer in self.layers:
            found = torch.cat([found, layer(found)], 1)
        return self.fc(torch.relu(self.norm(found)).mean((2, 3)))


class BagOfWords(nn.Module):
    """The mean vector of a text's words, a hidden layer and dropout."""

    def __init__(self, words: int, kinds: int, width: int = 32, drop: float = 0.2) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=0)
        self.hidden, self.act = nn.Linear(width, 32), nn.ReLU()
        self.drop, self.fc = nn.Dropout(drop), nn.Linear(32, kinds)

    def forward(self, x: Any) -> Any:
        mean = self.embed(x).sum(1) / (x > 0).sum(1, keepdim=True).clamp(min=1)
        return self.fc(self.drop(self.act(self.hidden(mean))))


class Recurrent(nn.Module):
    """A recurrent layer in both directions, the largest of what it finds, and a linear layer."""

    def __init__(
        self, words: int, kinds: int, cell: Any = nn.GRU, width: int = 24, drop: float = 0.2
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, 32, padding_idx=0)
        self.rnn = cell(32, width, batch_first=True, bidirectional=True)
        self.drop, self.fc = nn.Dropout(drop), nn.Linear(2 * width, kinds)

    def forward(self, x: Any) -> Any:
        found, _ = self.rnn(self.drop(self.embed(x)))
        found = found.masked_fill((x == 0)[..., None], -1.0)
        return self.fc(self.drop(found.amax(1)))


class WordCnn(nn.Module):
    """Two convolutions along the words with batch norm, the largest of each, dropout."""

    def __init__(self, words: int, kinds: int, width: int = 32, drop: float = 0.3) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, 24, padding_idx=0)
        self.convs = nn.Sequential(
            nn.Conv1d(24, width, 3, padding=1),
            nn.BatchNorm1d(width),
            nn.ReLU(),
            nn.Conv1d(width, width, 3, padding=1),
            nn.ReLU(),
        )
        self.drop, self.fc = nn.Dropout(drop), nn.Linear(width, kinds)

    def forward(self, x: Any) -> Any:
        return self.fc(self.drop(self.convs(self.embed(x).transpose(1, 2)).amax(2)))


class Encoder(nn.Module):
    """Words and places, encoder layers that do not look at padding, the mean, a linear layer."""

    def __init__(
        self, words: int, kinds: int, longest: int, width: int = 32, drop: float = 0.1
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width, padding_idx=0)
        self.places = nn.Parameter(0.02 * torch.randn(longest, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, drop, "gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm, self.fc = nn.LayerNorm(width), nn.Linear(width, kinds)

    def forward(self, x: Any) -> Any:
        there = (x > 0)[..., None].float()
        read = self.encoder(self.embed(x) + self.places[: x.shape[1]], src_key_padding_mask=x == 0)
        return self.fc((self.norm(read) * there).sum(1) / there.sum(1))


class HuggingFace(nn.Module):
    """A model of Hugging Face that gets tokens and does not look at padding."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Any) -> Any:
        return self.model(input_ids=x, attention_mask=(x > 0).long()).logits


def perceptron(
    ins: int, outs: int, width: int = 32, *, norm: bool = False, act: Any = nn.ReLU, drop: float = 0
) -> Any:
    """Return two hidden layers, with batch norm and dropout if asked for."""
    layers: list[Any] = []
    for before in (ins, width):
        layers += [nn.Linear(before, width)]
        layers += [nn.BatchNorm1d(width)] if norm else []
        layers += [act()]
        layers += [nn.Dropout(drop)] if drop else []
    return nn.Sequential(*layers, nn.Linear(width, outs))


class Categories(nn.Module):
    """Vectors of categories (the first columns) beside numbers, and two hidden layers."""

    def __init__(self, sizes: tuple[int, ...], numbers: int, width: int = 48) -> None:
        super().__init__()
        self.embeds = nn.ModuleList(nn.Embedding(size, 6) for size in sizes)
        self.layers = perceptron(6 * len(sizes) + numbers, 1, width, drop=0.05)

    def forward(self, x: Any) -> Any:
        at = len(self.embeds)
        told = [embed(x[:, one].long()) for one, embed in enumerate(self.embeds)]
        return self.layers(torch.cat([*told, x[:, at:]], 1))


class WideAndDeep(nn.Module):
    """A linear layer, and two hidden ones beside it, whose scores are added."""

    def __init__(self, ins: int, outs: int, width: int = 32) -> None:
        super().__init__()
        self.wide, self.deep = nn.Linear(ins, outs), perceptron(ins, outs, width, drop=0.1)

    def forward(self, x: Any) -> Any:
        return self.wide(x) + self.deep(x)
