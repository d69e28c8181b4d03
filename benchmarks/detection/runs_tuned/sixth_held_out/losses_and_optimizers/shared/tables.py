"""Tables: breads, auctions, races, borrowed books and crowds of points."""

import math
from typing import Any, Final

import torch

LOT_LEVELS: Final = (12, 7, 9)
READERS: Final = 80
BOOKS: Final = 120


def chance(seed: int) -> torch.Generator:
    """Return random numbers of a seed."""
    return torch.Generator().manual_seed(seed)


def breads(count: int, seed: int) -> tuple[Any, Any]:
    """Return twelve facts about how breads were baked, and their class: four, of equal shares."""
    random = chance(seed)
    x = torch.randn(count, 12, generator=random)
    rise = 1.2 * x[:, 0] - 0.8 * (x[:, 1] - 0.5).pow(2) + x[:, 2] * x[:, 3]
    crust = x[:, 4] + 0.9 * (2 * x[:, 5]).sin() - 0.6 * x[:, 0] * (x[:, 6] > 0)
    rise = rise + 0.3 * torch.randn(count, generator=random)
    crust = crust + 0.3 * torch.randn(count, generator=random)
    return x, 2 * (rise > -0.7).long() + (crust > 0).long()


def auctions(count: int, seed: int, noise: float = 0.25) -> tuple[Any, Any, Any]:
    """Return the maker, kind and house of lots, five numbers, and the logarithm of the price."""
    rule, random = chance(601), chance(seed)
    words = torch.stack([torch.randint(n, (count,), generator=random) for n in LOT_LEVELS], 1)
    numbers = torch.randn(count, 5, generator=random)
    price = sum(torch.randn(n, generator=rule)[words[:, at]] for at, n in enumerate(LOT_LEVELS))
    bent = torch.randn(LOT_LEVELS[1], generator=rule)[words[:, 1]]
    price = 0.5 * price + 0.5 * bent * numbers[:, 0] + 0.4 * numbers[:, 1].abs()
    price = price + 0.3 * numbers[:, 2] + noise * torch.randn(count, generator=random)
    return words, numbers, price[:, None]


def races(count: int, seed: int, runners: int = 8) -> tuple[Any, Any]:
    """Return nine facts about the runners of races, and the places in which they come in."""
    random = chance(seed)
    x = torch.randn(count, runners, 9, generator=random)
    ground = torch.randn(count, 1, generator=random)
    x[:, :, 8] = ground
    speed = 1.1 * x[..., 0] - 0.7 * x[..., 1].abs() + ground * x[..., 2] + 0.5 * x[..., 3]
    speed = speed + 0.5 * torch.randn(count, runners, generator=random)
    return x, speed.argsort(1, descending=True).argsort(1)


def borrowed(count: int, seed: int) -> tuple[Any, Any, Any]:
    """Return readers, a book that each borrowed, and a book that was drawn for them."""
    rule, random = chance(602), chance(seed)
    tastes = torch.randn(READERS, 5, generator=rule)
    topics = torch.randn(BOOKS, 5, generator=rule)
    reader = torch.randint(READERS, (count,), generator=random)
    liked = (tastes @ topics.T / 1.2).softmax(1)
    book = torch.multinomial(liked[reader], 1, generator=random)[:, 0]
    return reader, book, torch.randint(BOOKS, (count,), generator=random)


def crowds(count: int, seed: int, points: int = 24) -> tuple[Any, Any]:
    """Return sets of points in a plane, and around how many centres they stand: one to four."""
    random = chance(seed)
    number = torch.randint(4, (count,), generator=random)
    turn = 2 * math.pi * torch.rand(count, 1, generator=random)
    which = torch.randint(4, (count, points), generator=random) % (number[:, None] + 1)
    angle = turn + 2 * math.pi * which / (number[:, None] + 1)
    far = 1.0 + 0.5 * torch.rand(count, 1, generator=random)
    places = torch.stack([far * angle.cos(), far * angle.sin()], 2)
    return places + 0.3 * torch.randn(places.shape, generator=random), number
