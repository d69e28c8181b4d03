"""Networks of these trainings: for tables, pictures, series and texts."""

import itertools
from typing import Any

import torch
from torch import nn

from runs_held_out.units.shared.data import CITIES, DEVICES, LETTERS, SHOPS, TAGS, WORDS


def layers(*sizes: int, act: Any = nn.ReLU, norm: Any = None, drop: float = 0.0) -> Any:
    """Return linear layers with norms, activations and dropout between them."""
    parts: list[Any] = []
    for ins, outs in itertools.pairwise(sizes[:-1]):
        parts.append(nn.Linear(ins, outs))
        parts += [norm(outs)] if norm else []
        parts.append(act())
        parts += [nn.Dropout(drop)] if drop else []
    return nn.Sequential(*parts, nn.Linear(*sizes[-2:]))


def matrices(model: Any) -> list[Any]:
    """Return the linear layers and convolutions of a model."""
    kinds = (nn.Linear, nn.Conv1d, nn.Conv2d)
    return [part for part in model.modules() if isinstance(part, kinds)]


class WideAndDeep(nn.Module):
    """Embeddings and numbers through dense layers, beside a linear part on both."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(many, width) for many in (CITIES, DEVICES, SHOPS))
        self.deep = layers(3 * width + 3, 64, 32, 1, drop=0.1)
        self.wide = nn.Linear(3 * width + 3, 1)

    def forward(self, x: Any) -> Any:
        known = [table(x[:, at].long()) for at, table in enumerate(self.tables)]
        seen = torch.cat([*known, x[:, 3:]], 1)
        return self.deep(seen) + self.wide(seen)


class GatedBlock(nn.Module):
    """A gated linear unit with a sigmoid, added to what came in, and a layer norm."""

    def __init__(self, width: int, drop: float = 0.1) -> None:
        super().__init__()
        self.value, self.gate = nn.Linear(width, width), nn.Linear(width, width)
        self.sigmoid, self.drop, self.norm = nn.Sigmoid(), nn.Dropout(drop), nn.LayerNorm(width)

    def forward(self, x: Any) -> Any:
        return self.norm(x + self.drop(self.value(x) * self.sigmoid(self.gate(x))))


class ConvNet(nn.Module):
    """Convolutions with pooling, a dense layer with dropout, and a head."""

    def __init__(self, channels: int, side: int, outs: int, widths: Any = (12, 24)) -> None:
        super().__init__()
        parts: list[Any] = []
        for width in widths:
            parts += [nn.Conv2d(channels, width, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
            channels, side = width, side // 2
        self.features = nn.Sequential(*parts, nn.Flatten())
        self.head = nn.Sequential(
            nn.Linear(channels * side**2, 48), nn.ReLU(), nn.Dropout(0.25), nn.Linear(48, outs)
        )

    def forward(self, x: Any) -> Any:
        return self.head(self.features(x))


class DropPath(nn.Module):
    """Leaves out a whole branch for a share of the rows while training."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def forward(self, x: Any) -> Any:
        if not self.training or not self.share:
            return x
        kept = 1 - self.share
        chance = kept + torch.rand(len(x), *[1] * (x.ndim - 1))
        return x / kept * chance.floor()


class SqueezeBlock(nn.Module):
    """Two convolutions with batch norm, channels weighed by a sigmoid, added to what came in."""

    def __init__(self, width: int, share: float = 0.0, path: Any = DropPath) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()),
            *(nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)),
        )
        self.weigh = nn.Sequential(
            *(nn.AdaptiveAvgPool2d(1), nn.Conv2d(width, width // 2, 1), nn.SiLU()),
            *(nn.Conv2d(width // 2, width, 1), nn.Sigmoid()),
        )
        self.path, self.relu = path(share), nn.ReLU()

    def forward(self, x: Any) -> Any:
        out = self.body(x)
        return self.relu(x + self.path(out * self.weigh(out)))


def squeeze_net(outs: int, width: int = 16, share: float = 0.0, path: Any = DropPath) -> Any:
    """Return a stem, three squeezed blocks with a step down, and a head on the mean of places."""
    return nn.Sequential(
        *(nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()),
        *(SqueezeBlock(width, share, path), nn.MaxPool2d(2), SqueezeBlock(width, share, path)),
        *(SqueezeBlock(width, share, path), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
        nn.Linear(width, outs),
    )


class Separable(nn.Sequential):
    """A convolution of each channel, one over channels, with batch norms and hard swish."""

    def __init__(self, ins: int, outs: int, stride: int = 1) -> None:
        super().__init__(
            nn.Conv2d(ins, ins, 3, stride, 1, groups=ins, bias=False),
            *(nn.BatchNorm2d(ins), nn.Hardswish()),
            *(nn.Conv2d(ins, outs, 1, bias=False), nn.BatchNorm2d(outs), nn.Hardswish()),
        )


class MixerBlock(nn.Module):
    """Dense layers over patches, then over channels, each behind a norm and added."""

    def __init__(self, patches: int, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.patches = layers(patches, 2 * patches, patches, act=nn.GELU)
        self.channels = layers(width, 2 * width, width, act=nn.GELU)

    def forward(self, x: Any) -> Any:
        x = x + self.patches(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm2(x))


class Mixer(nn.Module):
    """Patches of two by two, mixer blocks, and a head on their mean."""

    def __init__(self, channels: int, side: int, outs: int, width: int = 32) -> None:
        super().__init__()
        self.stem = nn.Conv2d(channels, width, 2, 2)
        self.blocks = nn.Sequential(*(MixerBlock((side // 2) ** 2, width) for _ in range(2)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, outs)

    def forward(self, x: Any) -> Any:
        return self.head(self.norm(self.blocks(self.stem(x).flatten(2).transpose(1, 2))).mean(1))


def twice(ins: int, outs: int) -> list[Any]:
    """Return two convolutions with batch norm and ReLU."""
    return [
        *(nn.Conv2d(ins, outs, 3, 1, 1, bias=False), nn.BatchNorm2d(outs), nn.ReLU()),
        *(nn.Conv2d(outs, outs, 3, 1, 1, bias=False), nn.BatchNorm2d(outs), nn.ReLU()),
    ]


class Outliner(nn.Module):
    """A U-Net of two levels: down, up again, and the fine picture beside the coarse one."""

    def __init__(self, width: int = 10) -> None:
        super().__init__()
        self.down, self.pool = nn.Sequential(*twice(1, width)), nn.MaxPool2d(2)
        self.deep = nn.Sequential(*twice(width, 2 * width))
        self.grow = nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.fine, self.head = nn.Sequential(*twice(2 * width, width)), nn.Conv2d(width, 1, 1)

    def forward(self, x: Any) -> Any:
        fine = self.down(x)
        coarse = self.grow(self.deep(self.pool(fine)))
        return self.head(self.fine(torch.cat([fine, coarse], 1)))


class LastState(nn.Module):
    """A recurrent layer over numbers, and a linear one on its last output."""

    def __init__(self, cell: Any, ins: int, outs: int, width: int = 32, **more: Any) -> None:
        super().__init__()
        self.cell = cell(ins, width, batch_first=True, **more)
        self.head = nn.Linear(width, outs)

    def forward(self, x: Any) -> Any:
        return self.head(self.cell(x)[0][:, -1])


class Causal(nn.Module):
    """Two dilated convolutions that see the past only, with ReLU, added to what came in."""

    def __init__(self, width: int, dilation: int) -> None:
        super().__init__()
        normed = nn.utils.parametrizations.weight_norm
        self.pad = nn.ConstantPad1d((2 * dilation, 0), 0.0)
        self.first = normed(nn.Conv1d(width, width, 3, dilation=dilation))
        self.second = normed(nn.Conv1d(width, width, 3, dilation=dilation))
        self.relu1, self.relu2, self.drop = nn.ReLU(), nn.ReLU(), nn.Dropout(0.1)

    def forward(self, x: Any) -> Any:
        out = self.drop(self.relu1(self.first(self.pad(x))))
        return x + self.drop(self.relu2(self.second(self.pad(out))))


class Inception(nn.Module):
    """Convolutions of three widths beside each other, batch norm and ReLU."""

    def __init__(self, ins: int, width: int = 8) -> None:
        super().__init__()
        self.convs = nn.ModuleList(
            nn.Conv1d(ins, width, size, padding=size // 2, bias=False) for size in (3, 7, 11)
        )
        self.norm, self.relu = nn.BatchNorm1d(3 * width), nn.ReLU()

    def forward(self, x: Any) -> Any:
        return self.relu(self.norm(torch.cat([conv(x) for conv in self.convs], 1)))


class Encoder(nn.Module):
    """Tokens or numbers with places, encoder layers, and a head on the mean of what is there."""

    def __init__(
        self, outs: int, length: int, ins: int = 0, width: int = 32, depth: int = 2
    ) -> None:
        super().__init__()
        self.is_text = not ins
        self.embedding = nn.Linear(ins, width) if ins else nn.Embedding(WORDS, width, padding_idx=0)
        self.places = nn.Parameter(0.02 * torch.randn(length, width))
        layer = nn.TransformerEncoderLayer(
            width, 4, 2 * width, 0.1, "gelu", batch_first=True, norm_first=True
        )
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, outs)

    def forward(self, x: Any) -> Any:
        is_padding = x == 0 if self.is_text else None
        read = self.embedding(x) + self.places[: x.shape[1]]
        read = self.norm(self.encoder(read, src_key_padding_mask=is_padding))
        if is_padding is None:
            return self.head(read.mean(1))
        there = (~is_padding).float()[..., None]
        return self.head((read * there).sum(1) / there.sum(1))


class WordBag(nn.Module):
    """The mean of the embeddings of words that are there, and dense layers."""

    def __init__(self, outs: int, width: int = 32) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(WORDS, width, mode="mean", padding_idx=0)
        self.body = layers(width, 32, outs)

    def forward(self, x: Any) -> Any:
        return self.body(self.bag(x))


class WordFilters(nn.Module):
    """Convolutions over words, the maximum over places, dropout and a linear layer."""

    def __init__(self, outs: int, width: int = 24) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, width, padding_idx=0)
        self.convs = nn.ModuleList(nn.Conv1d(width, 16, size, padding=1) for size in (2, 3))
        self.relu, self.drop, self.fc = nn.ReLU(), nn.Dropout(0.4), nn.Linear(32, outs)

    def forward(self, x: Any) -> Any:
        words = self.embedding(x).transpose(1, 2)
        return self.fc(self.drop(torch.cat([self.relu(c(words)).amax(2) for c in self.convs], 1)))


class BothWays(nn.Module):
    """A recurrent layer in both directions over packed words, and a head on its last states."""

    def __init__(self, outs: int, width: int = 24) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, width, padding_idx=0)
        self.gru = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.drop, self.head = nn.Dropout(0.3), nn.Linear(2 * width, outs)

    def forward(self, x: Any) -> Any:
        packed = nn.utils.rnn.pack_padded_sequence(
            self.embedding(x), (x != 0).sum(1), batch_first=True, enforce_sorted=False
        )
        return self.head(self.drop(torch.cat(list(self.gru(packed)[1]), 1)))


class Attending(nn.Module):
    """Words read by a GRU, weighed by attention with tanh that leaves padding out, and a head."""

    def __init__(self, outs: int, width: int = 24) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, width, padding_idx=0)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.mix, self.tanh = nn.Linear(width, width), nn.Tanh()
        self.score, self.head = nn.Linear(width, 1, bias=False), nn.Linear(width, outs)

    def forward(self, x: Any) -> Any:
        read = self.gru(self.embedding(x))[0]
        scores = self.score(self.tanh(self.mix(read))).masked_fill((x == 0)[..., None], -1e9)
        return self.head((scores.softmax(1) * read).sum(1))


class Speller(nn.Module):
    """Letters embedded, an LSTM, and a head on its last output."""

    def __init__(self, outs: int, width: int = 40) -> None:
        super().__init__()
        self.embedding = nn.Embedding(LETTERS, 12)
        self.lstm, self.drop = nn.LSTM(12, width, batch_first=True), nn.Dropout(0.3)
        self.head = nn.Linear(width, outs)

    def forward(self, x: Any) -> Any:
        return self.head(self.drop(self.lstm(self.embedding(x))[0][:, -1]))


class Tagging(nn.Module):
    """Words embedded, an LSTM in both directions, and a head on each word; classes at axis 1."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 20)
        self.lstm = nn.LSTM(20, width, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * width, TAGS)

    def forward(self, x: Any) -> Any:
        return self.head(self.lstm(self.embedding(x))[0]).transpose(1, 2)


class LowRank(nn.Module):
    """A frozen linear layer, and beside it a product of two thin matrices that begins at zero."""

    def __init__(self, base: Any, rank: int = 4) -> None:
        super().__init__()
        self.base = base.requires_grad_(requires_grad=False)
        self.lora_a = nn.Linear(base.in_features, rank, bias=False)
        self.lora_b = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.lora_b.weight)

    def forward(self, x: Any) -> Any:
        return self.base(x) + 2.0 * self.lora_b(self.lora_a(x))
