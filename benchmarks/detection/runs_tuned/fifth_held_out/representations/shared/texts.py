"""Texts: knitting patterns, bells, weather, and runs of signs, which are made up."""

from typing import Any, Final

import torch

STITCHES: Final = 20
BELLS: Final = 9
SKIES: Final = 30
RUNS: Final = 16


def _random(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def knitting(count: int = 1200, length: int = 25, seed: int = 0) -> tuple[Any, Any]:
    """Return rows of stitches and their kinds (0 to 2; the last is rare).

    A motif of four, five or six stitches is repeated; one stitch in twelve is another one. Each
    kind has stitches of its own beside those of all.
    """
    random = _random(seed)
    kind = torch.multinomial(torch.tensor([0.5, 0.35, 0.15]), count, True, generator=random)
    period = torch.randint(4, 7, (count, 1), generator=random)
    motif = torch.randint(10, (count, 6), generator=random)
    own = torch.rand(count, 6, generator=random) < 0.4
    motif = torch.where(own, 10 + 3 * kind[:, None] + motif % 3, motif)
    rows = motif.gather(1, torch.arange(length).expand(count, -1) % period)
    other = torch.randint(STITCHES, rows.shape, generator=random)
    return torch.where(torch.rand(rows.shape, generator=random) < 1 / 12, other, rows), kind


def bells(count: int = 1200, rounds: int = 4, seed: int = 0) -> Any:
    """Return changes of six bells with 0 between: in each, two neighbours change places."""
    random = _random(seed)
    order = torch.stack([1 + torch.randperm(6, generator=random) for _ in range(count)])
    parts = []
    place = torch.randint(5, (count, 1), generator=random)
    for _ in range(rounds):
        parts += [torch.zeros(count, 1, dtype=torch.long), order]
        swapped = torch.arange(6).repeat(count, 1)
        swapped.scatter_(1, place, place + 1).scatter_(1, place + 1, place)
        order = order.gather(1, swapped)
        place = (place + 1) % 5
    return torch.cat(parts, 1)


def weather(count: int = 1200, length: int = 29, seed: int = 0) -> tuple[Any, Any]:
    """Return words of days, of which some are rare, and the season that each year began with."""
    random = _random(seed)
    chances = torch.rand(4, SKIES, SKIES, generator=random).pow(9) + 1e-4
    chances = chances * (1.0 / (1 + torch.arange(SKIES)))
    first = torch.randint(4, (count,), generator=random)
    days = [torch.randint(SKIES, (count,), generator=random)]
    for day in range(length - 1):
        season = (first + day // 8) % 4
        days.append(torch.multinomial(chances[season, days[-1]], 1, generator=random)[:, 0])
    return torch.stack(days, 1), first


def runs_of_signs(count: int = 1200, seed: int = 0) -> tuple[Any, Any]:
    """Return counts and signs in turn, and the signs written out as often, padded with 0.

    1 to 3 are counts, 4 to 13 signs, 14 begins and 15 ends a text.
    """
    random = _random(seed)
    sources, targets = [], []
    for _ in range(count):
        counts = torch.randint(1, 4, (4,), generator=random).tolist()
        signs = torch.randint(4, 14, (4,), generator=random).tolist()
        written = [sign for sign, times in zip(signs, counts, strict=True) for _ in range(times)]
        sources.append([part for pair in zip(counts, signs, strict=True) for part in pair])
        targets.append([14, *written, 15] + [0] * (12 - len(written)))
    return torch.tensor(sources), torch.tensor(targets)
