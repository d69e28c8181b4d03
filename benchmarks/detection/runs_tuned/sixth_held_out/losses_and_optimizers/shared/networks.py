"""Networks: layers, convolutions, recurrent ones, decoders, sets, scorers."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from runs_tuned.sixth_held_out.losses_and_optimizers.shared.tables import LOT_LEVELS
from runs_tuned.sixth_held_out.losses_and_optimizers.shared.texts import SIGNS


def stack(*widths: int, unit: Callable[[], Any] = nn.ReLU, drop: float = 0.0) -> Any:
    """Return layers with a unit, and dropped units if wanted, between them."""
    parts: list[Any] = []
    for before, after in itertools.pairwise(widths):
        parts += [nn.Linear(before, after), unit(), nn.Dropout(drop)]
    return nn.Sequential(*parts[:-2])


class Residual(nn.Module):
    """Adds what a part makes of its input."""

    def __init__(self, part: Any) -> None:
        super().__init__()
        self.part = part

    def forward(self, x: Any) -> Any:
        return x + self.part(x)


def square_layers(inputs: int, width: int, depth: int, outputs: int) -> Any:
    """Return residual layers that are as wide as they are long."""
    blocks = (
        Residual(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.GELU()))
        for _ in range(depth)
    )
    return nn.Sequential(nn.Linear(inputs, width), *blocks, nn.Linear(width, outputs))


def bricks(channels: int, classes: int, width: int = 10) -> Any:
    """Return convolutions with batch norm over dominoes."""
    parts: list[Any] = [nn.Conv2d(channels, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
    for stride in ((1, 2), (2, 2)):
        parts += [nn.Conv2d(width, width, 3, stride, 1), nn.BatchNorm2d(width), nn.ReLU()]
    return nn.Sequential(*parts, nn.Flatten(), nn.Linear(width * 25, classes))


def tiles(channels: int, classes: int, width: int = 24) -> Any:
    """Return layers over tiles of a picture in turn across tiles and channels."""
    blocks = [
        Residual(
            nn.Sequential(
                nn.GroupNorm(1, width),
                nn.Conv2d(width, width, 3, padding=1, groups=width),
                nn.Conv2d(width, 2 * width, 1),
                nn.GELU(),
                nn.Conv2d(2 * width, width, 1),
            )
        )
        for _ in range(2)
    ]
    first = nn.Conv2d(channels, width, 2, 2)
    return nn.Sequential(first, *blocks, nn.Flatten(), nn.Linear(width * 45, classes))


class Ladder(nn.Module):
    """Scores for each place of a picture: down by convolutions, and up again beside them."""

    def __init__(self, width: int = 8, norm: Callable[[int], Any] = nn.BatchNorm2d) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, width, 3, padding=1), norm(width), nn.ReLU())
        self.down = nn.Sequential(nn.Conv2d(width, 2 * width, 3, 2, 1), norm(2 * width), nn.ReLU())
        self.up = nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.last = nn.Conv2d(2 * width, 1, 3, padding=1)

    def forward(self, x: Any) -> Any:
        x = self.first(x)
        return self.last(torch.cat([x, self.up(self.down(x)).relu()], 1))


class Ear(nn.Module):
    """Convolutions over a signal, their mean, and a head for each answer."""

    def __init__(self, width: int = 12, outs: Sequence[int] = (8,), *, normed: bool = True) -> None:
        super().__init__()
        parts: list[Any] = []
        for before in (1, width, width):
            parts += [nn.Conv1d(before, width, 7, 2, 3)]
            parts += [nn.GroupNorm(3, width)] * normed + [nn.ReLU()]
        self.body = nn.Sequential(*parts, nn.Flatten())
        self.heads = nn.ModuleList(nn.Linear(14 * width, out) for out in outs)

    def forward(self, x: Any) -> Any:
        x = self.body(x)
        outs = [head(x) for head in self.heads]
        return outs if len(outs) > 1 else outs[0]


def ring(width: int = 16, depth: int = 2, kernel: int = 7) -> Any:
    """Return convolutions around a ring-shaped channel."""
    around = {"padding": kernel // 2, "padding_mode": "circular"}
    parts: list[Any] = [nn.Conv1d(2, width, kernel, **around), nn.SiLU()]
    for _ in range(depth - 1):
        parts += [nn.Conv1d(width, width, kernel, **around), nn.SiLU()]
    return nn.Sequential(*parts, nn.Conv1d(width, 1, 1))


class Memory(nn.Module):
    """A recurrent network over series of numbers, or of signs by their embeddings."""

    def __init__(
        self,
        outputs: int,
        width: int = 32,
        *,
        signs: int = 0,
        inputs: int = 4,
        cell: Any = nn.GRU,
        is_of_each: bool = False,
        **more: Any,
    ) -> None:
        super().__init__()
        self.embed = nn.Embedding(signs, inputs) if signs else nn.Identity()
        self.cell = cell(inputs, width, batch_first=True, **more)
        self.last = nn.Linear(width * (2 if more.get("bidirectional") else 1), outputs)
        self.is_of_each = is_of_each

    def forward(self, x: Any) -> Any:
        states = self.cell(self.embed(x))[0]
        if self.is_of_each:
            return self.last(states).transpose(1, 2)
        return self.last(states.mean(1) if self.cell.bidirectional else states[:, -1])


class Attending(nn.Module):
    """Attention of several heads, to what is before or to all, and layers behind it."""

    def __init__(self, width: int, heads: int, *, is_causal: bool = True) -> None:
        super().__init__()
        self.heads, self.is_causal = heads, is_causal
        self.norm, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.all = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.layers = stack(width, 2 * width, width, unit=nn.GELU)

    def forward(self, x: Any) -> Any:
        parts = self.all(self.norm(x)).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        told = functional.scaled_dot_product_attention(*parts, is_causal=self.is_causal)
        x = x + self.out(told.transpose(1, 2).flatten(2))
        return x + self.layers(self.after(x))


class Writer(nn.Module):
    """A decoder of signs."""

    def __init__(self, width: int = 32, heads: int = 4, depth: int = 2, length: int = 40) -> None:
        super().__init__()
        self.embed = nn.Embedding(len(SIGNS), width)
        self.places = nn.Parameter(0.1 * torch.randn(length, width))
        self.blocks = nn.Sequential(*(Attending(width, heads) for _ in range(depth)))
        self.norm, self.scores = nn.LayerNorm(width), nn.Linear(width, len(SIGNS))

    def forward(self, x: Any) -> Any:
        x = self.embed(x) + self.places[: x.shape[1]]
        return self.scores(self.norm(self.blocks(x))).transpose(1, 2)


class Gathered(nn.Module):
    """Looks at each point of a set, and at the mean of what it sees."""

    def __init__(self, width: int = 32, outputs: int = 4, unit: Any = nn.ReLU) -> None:
        super().__init__()
        self.each = stack(2, width, width, unit=unit)
        self.together = stack(width, width, outputs, unit=unit)

    def forward(self, x: Any) -> Any:
        return self.together(self.each(x).mean(1))


class Bidder(nn.Module):
    """Embeddings of words and numbers, and layers behind them."""

    def __init__(self, outputs: int = 1, width: int = 32, size: int = 5, drop: float = 0.0) -> None:
        super().__init__()
        self.words = nn.ModuleList(nn.Embedding(n, size) for n in LOT_LEVELS)
        self.layers = stack(3 * size + 5, width, width, outputs, drop=drop)

    def forward(self, words: Any, numbers: Any) -> Any:
        parts = [embed(words[:, at]) for at, embed in enumerate(self.words)]
        return self.layers(torch.cat([*parts, numbers], 1))


class Taste(nn.Module):
    """How much readers like books: the product of what is known of both, and a bias."""

    def __init__(self, readers: int, books: int, width: int = 12, start: float = 0.3) -> None:
        super().__init__()
        self.readers, self.books = nn.Embedding(readers, width), nn.Embedding(books, width)
        self.known = nn.Embedding(books, 1)
        for table in (self.readers, self.books, self.known):
            nn.init.normal_(table.weight, std=start)

    def forward(self, reader: Any, book: Any) -> Any:
        return (self.readers(reader) * self.books(book)).sum(-1) + self.known(book)[..., 0]
