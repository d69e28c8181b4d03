"""Words: journeys, recipes and dates, which are made up."""

from typing import Any, Final

import torch

TOWNS: Final = 40
PANTRY: Final = 48
MASK: Final = PANTRY
SIGNS: Final = 32
MONTHS: Final = 12


def journeys(count: int = 1500, length: int = 25, seed: int = 0) -> Any:
    """Return walks by train: of a town's four lines, the next one follows the last two towns."""
    random = torch.Generator().manual_seed(seed)
    lines = torch.stack([torch.randperm(TOWNS, generator=random) for _ in range(4)], 1)
    chances = torch.tensor([0.7, 0.15, 0.1, 0.05])
    towns = [torch.randint(TOWNS, (count,), generator=random) for _ in range(2)]
    for _ in range(length - 2):
        line = torch.multinomial(chances, count, replacement=True, generator=random)
        towns.append(lines[towns[-1], (line + towns[-2]) % 4])
    return torch.stack(towns, 1)


def recipes(count: int = 1500, seed: int = 0) -> tuple[Any, Any]:
    """Return rows of 24 words, and their kind of dish, the rarest of four a tenth of all.

    Three parts are named, each with its kind's verbs: later words name the parts again.
    """
    random = torch.Generator().manual_seed(seed)

    def draw(high: int, *size: int) -> Any:
        return torch.randint(high, (count, *size), generator=random)

    dish = torch.multinomial(
        torch.tensor([0.4, 0.3, 0.2, 0.1]), count, replacement=True, generator=random
    )
    parts = 16 + draw(32, 3)
    words = [2 + dish[:, None] * 0, *parts.split(1, 1)]
    for _ in range(10):
        verb = 4 + 3 * dish + draw(3)
        which = draw(3)
        words += [verb[:, None], parts.gather(1, which[:, None])]
    return torch.cat(words, 1), dish


def digits(text: str) -> list[int]:
    """Return signs of digits."""
    return [int(digit) + 1 for digit in text]


def dates(count: int = 1500, seed: int = 0) -> tuple[Any, Any]:
    """Return dates by day, month and year, padded with 0, and the same ones by year first.

    Signs 1 to 10 are digits, 11 to 22 months, 23 begins and 24 ends a date, 25 is a slash.
    """
    random = torch.Generator().manual_seed(seed)
    sources, targets = [], []
    for _ in range(count):
        day, month, year = (
            int(torch.randint(high, (), generator=random)) for high in (28, MONTHS, 200)
        )
        day, month, year = day + 1, month + 1, year + 1850
        source = [*digits(str(day)), 10 + month, *digits(str(year))]
        target = [23, *digits(f"{year}{month:02}{day:02}"), 24]
        sources.append(source + [0] * (7 - len(source)))
        targets.append(target)
    return torch.tensor(sources), torch.tensor(targets)
