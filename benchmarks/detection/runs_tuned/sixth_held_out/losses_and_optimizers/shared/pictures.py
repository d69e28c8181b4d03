"""Pictures: dominoes, leaves on the ground, and a photograph of a flower by its places."""

import functools
from typing import Any, Final

import torch
from sklearn.datasets import load_sample_image
from torch.nn import functional

from runs_tuned.sixth_held_out.losses_and_optimizers.shared.tables import chance

# Pips by the letters of their places.
PIPS: Final = ("", "c", "ai", "aci", "agdi", "agdic", "agdibh")
PLACES: Final = dict(
    zip("abgcdhi", ((1, 1), (3, 1), (5, 1), (3, 3), (1, 5), (3, 5), (5, 5)), strict=True)
)


def dominoes(count: int, seed: int, noise: float = 0.35) -> tuple[Any, Any]:
    """Return pictures of 10 by 18, turned by chance, and how many pips are on the left: seven."""
    random = chance(seed)
    stamps = torch.zeros(7, 7, 7)
    for number, letters in enumerate(PIPS):
        for letter in letters:
            stamps[number][PLACES[letter]] = 1.0
    halves = torch.randint(7, (2, count), generator=random)
    x = torch.zeros(count, 1, 10, 18)
    places = torch.randint(3, (2, count), generator=random)
    for row in range(count):
        down, across = int(places[0, row]), int(places[1, row])
        x[row, 0, down : down + 7, across : across + 7] = stamps[halves[0, row]]
        x[row, 0, down : down + 7, across + 9 : across + 16] = stamps[halves[1, row]]
        x[row, 0, :, across + 8] = 0.6
    bright = 0.8 + 0.4 * torch.rand(count, 1, 1, 1, generator=random)
    x = bright * x * 2.2 - 0.3
    return x + noise * torch.randn(x.shape, generator=random), halves[0]


def leaves(count: int, seed: int, noise: float = 0.6) -> tuple[Any, Any]:
    """Return pictures of leaves on the ground in three channels, and where leaves are."""
    random = chance(seed)
    down, across = torch.meshgrid(torch.arange(16.0), torch.arange(16.0), indexing="ij")
    masks = torch.zeros(count, 16, 16)
    for _ in range(3):
        y, x, turn, size = torch.rand(4, count, 1, 1, generator=random)
        up, aside = down - 16 * y, across - 16 * x
        long = up * (3 * turn).cos() + aside * (3 * turn).sin()
        wide = aside * (3 * turn).cos() - up * (3 * turn).sin()
        masks = torch.maximum(masks, ((long / (3 + 3 * size)) ** 2 + (wide / 2) ** 2 < 1).float())
    colour = torch.tensor([0.9, -0.4, 0.5])[:, None, None]
    ground = functional.avg_pool2d(torch.randn(count, 3, 18, 18, generator=random), 3, 1)
    pictures = ground + masks[:, None] * colour
    return pictures + noise * torch.randn(pictures.shape, generator=random), masks[:, None]


@functools.cache
def flower() -> tuple[Any, Any]:
    """Return places of a photograph, from -1 to 1, and their colours, standardised together."""
    picture = torch.tensor(load_sample_image("flower.jpg"), dtype=torch.float32)
    small = functional.adaptive_avg_pool2d(picture.permute(2, 0, 1)[None], (64, 96))[0]
    colours = small.flatten(1).T
    down, across = torch.meshgrid(
        torch.linspace(-1, 1, 64), torch.linspace(-1, 1, 96), indexing="ij"
    )
    places = torch.stack([down.flatten(), across.flatten()], 1)
    return places, (colours - colours.mean()) / colours.std()
