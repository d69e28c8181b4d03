"""Lessons: generated data that the networks of this piece learn."""

import math
from typing import Any, Final

import torch
from sklearn.datasets import load_digits

LETTERS: Final = "abcdefghijklmnopqrstuvwxyz 0123456789,.\n"
CARDS: Final = 12
WORDS: Final = 160
TOPICS: Final = 4


def dice(seed: int) -> torch.Generator:
    """Return random numbers of their own."""
    return torch.Generator().manual_seed(seed)


def pumps(count: int = 800, seed: int = 1, noise: float = 0.1) -> tuple[Any, Any]:
    """Return twelve readings of pumps, and their flow, a smooth function with noise."""
    fixed, random = dice(77), dice(seed)
    inner, outer = torch.randn(12, 10, generator=fixed) / 3, torch.randn(10, 1, generator=fixed) / 2
    x = torch.randn(count, 12, generator=random)
    return x, (x @ inner).tanh() @ outer + noise * torch.randn(count, 1, generator=random)


def plaids(count: int = 600, seed: int = 1, noise: float = 0.5) -> tuple[Any, Any]:
    """Return pictures of 12 by 12 pixels of five woven patterns, and their numbers."""
    random = dice(seed)
    y = torch.randint(0, 5, (count,), generator=random)
    phase = 2 * math.pi * torch.rand(2, count, 1, 1, generator=random)
    rows, columns = torch.arange(12.0)[:, None], torch.arange(12.0)[None]
    fast = torch.tensor([0.6, 1.2, 0.6, 1.2, 0.2])[y][:, None, None]
    across = torch.tensor([0.6, 0.6, 1.4, 1.4, 1.6])[y][:, None, None]
    x = (fast * rows + phase[0]).sin() * 0.7 + (across * columns + phase[1]).sin() * 0.7
    return (x + noise * torch.randn(x.shape, generator=random))[:, None], y


def addresses(count: int = 500, seed: int = 1, size: int = 28) -> tuple[Any, Any]:
    """Return pieces of a list of addresses, as numbers of letters, and the letters that follow."""
    random = dice(seed)

    def pick(words: list[str]) -> str:
        return words[int(torch.randint(0, len(words), (1,), generator=random))]

    names = ["anna", "bruno", "clara", "david", "emil", "frida", "gustav", "hanna", "igor", "julia"]
    streets = ["oak", "elm", "mill", "park", "lake", "hill", "church", "station"]
    towns = ["ashford", "brighton", "carlisle", "dover", "exeter"]
    lines: list[str] = []
    while sum(len(line) for line in lines) < count * size // 2:
        house = int(torch.randint(1, 99, (1,), generator=random))
        lines.append(f"{pick(names)}, {pick(streets)} street {house}, {pick(towns)}.\n")
    text = torch.tensor([LETTERS.index(letter) for letter in "".join(lines)])
    starts = torch.randint(0, len(text) - size - 1, (count,), generator=random)
    rows = text[starts[:, None] + torch.arange(size + 1)]
    return rows[:, :-1], rows[:, 1:]


def power(count: int = 500, seed: int = 1, noise: float = 0.15) -> tuple[Any, Any]:
    """Return 24 hours of the power of a town, and the six that follow."""
    random = dice(seed)
    hours = torch.arange(30.0) + 24 * torch.rand(count, 1, generator=random)
    weight = 0.6 + 0.8 * torch.rand(count, 1, generator=random)
    day = (2 * math.pi * hours / 24).sin() + 0.5 * (4 * math.pi * hours / 24 + 1).cos()
    rows = weight * day + noise * torch.randn(day.shape, generator=random)
    return rows[:, :24, None], rows[:, 24:]


def lifts(count: int = 900, seed: int = 1) -> tuple[Any, Any]:
    """Return twenty readings of lifts, and which of six defects each has: 10 to 35 %."""
    fixed, random = dice(78), dice(seed)
    inner = torch.randn(20, 6, generator=fixed) / 2
    x = torch.randn(count, 20, generator=random)
    noise = 0.7 * torch.randn(count, 6, generator=random)
    limits = torch.tensor([1.0, 1.5, 2.0, 2.5, 1.2, 2.8])
    return x, (x @ inner + noise > limits).float()


def decks(count: int = 700, seed: int = 1) -> tuple[Any, Any]:
    """Return hands of seven cards, and the same cards in order."""
    x = torch.randint(0, CARDS, (count, 7), generator=dice(seed))
    return x, x.sort(1).values


def letters_to_editors(count: int = 800, seed: int = 1) -> tuple[Any, Any]:
    """Return letters of 14 words, which are chosen by one of four topics, and the topics."""
    fixed, random = dice(79), dice(seed)
    chances = torch.rand(TOPICS, WORDS, generator=fixed).pow(6) + 0.01
    y = torch.randint(0, TOPICS, (count,), generator=random)
    return torch.multinomial(chances[y], 14, replacement=True, generator=random), y


def visits(count: int = 800, seed: int = 1) -> tuple[Any, Any, Any]:
    """Return features of shops, for how many days each was watched, and its visits."""
    fixed, random = dice(80), dice(seed)
    weight = torch.randn(8, 1, generator=fixed) / 4
    x = torch.randn(count, 8, generator=random)
    days = 1 + 6 * torch.rand(count, 1, generator=random)
    rate = (x @ weight + 0.3 * (x[:, :1] * x[:, 1:2]) + 0.5).clamp(max=2).exp()
    return x, days, torch.poisson(rate * days, generator=random)


def strokes_of_digits() -> tuple[Any, Any]:
    """Return the bundled digits as sequences of eight columns of pixels, and their numbers."""
    data = load_digits()
    x = torch.tensor(data.images, dtype=torch.float32).transpose(1, 2) / 8 - 1
    return x, torch.tensor(data.target)
