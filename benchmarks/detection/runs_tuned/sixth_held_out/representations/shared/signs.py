"""Signs: odometers, Morse, Roman numerals, automata, logs of servers, bird calls, and a day."""

from typing import Any, Final

import torch

DIGITS: Final = 11
MORSE: Final = 33
ROMAN: Final = 9
LOGS: Final = 40
CALLS: Final = 18
EVENTS: Final = 24
_CODES: Final = (
    ".- -... -.-. -.. . ..-. --. .... .. .--- -.- .-.. -- "
    "-. --- .--. --.- .-. ... - ..- ...- .-- -..- -.-- --.."
)


def _random(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def odometers(count: int = 1500, seed: int = 0) -> Any:
    """Return seven numbers of three digits, each with a comma (10) after it, at a fixed stride."""
    random = _random(seed)
    first = torch.randint(0, 500, (count, 1), generator=random)
    stride = torch.randint(1, 60, (count, 1), generator=random)
    numbers = (first + stride * torch.arange(7)) % 1000
    digits = torch.stack([numbers // 100, numbers // 10 % 10, numbers % 10], -1)
    return torch.cat([digits, torch.full((count, 7, 1), 10)], -1).flatten(1)


def morse(count: int = 1500, seed: int = 0) -> tuple[Any, Any]:
    """Return four letters (4 to 29), and dots, dashes and gaps (30 to 32).

    0 pads, 1 begins and 2 ends. Letters are drawn as often as by a law of powers.
    """
    random = _random(seed)
    often = 1.0 / (3 + torch.arange(26))
    letters = torch.multinomial(often.expand(count, 26), 4, True, generator=random)
    spelled = _CODES.split()
    written = torch.zeros(count, 22, dtype=torch.long)
    for row, each in enumerate(letters.tolist()):
        signs = " ".join(spelled[letter] for letter in each)
        coded = [1, *(30 + ".- ".index(sign) for sign in signs), 2]
        written[row, : len(coded)] = torch.tensor(coded)
    return 4 + letters, written


def romans(count: int = 1500, seed: int = 0) -> tuple[Any, Any]:
    """Return Roman numerals up to 399, padded by 0 to 14 (8 begins), and their three digits."""
    random = _random(seed)
    numbers = torch.randint(1, 400, (count,), generator=random)
    text = torch.zeros(count, 15, dtype=torch.long)
    text[:, 0] = 8
    for row, number in enumerate(numbers.tolist()):
        left, at = number, 1
        for worth, signs in (
            *((100, "C"), (90, "XC"), (50, "L"), (40, "XL")),
            *((10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")),
        ):
            while left >= worth:
                for sign in signs:
                    text[row, at] = 1 + "IVXLC".index(sign)
                    at += 1
                left -= worth
    return text, torch.stack([numbers // 100, numbers // 10 % 10, numbers % 10], 1)


def automata(rule: int = 110, count: int = 1500, width: int = 10, seed: int = 0) -> Any:
    """Return three rows of cells of an automaton in a ring, with 2 before each of them.

    One cell in fifty is turned by chance.
    """
    random = _random(seed)
    cells = torch.randint(2, (count, width), generator=random)
    table = torch.tensor([rule >> place & 1 for place in range(8)])
    parts = []
    for _ in range(3):
        parts += [torch.full((count, 1), 2), cells]
        cells = table[4 * cells.roll(1, 1) + 2 * cells + cells.roll(-1, 1)]
        turned = torch.rand(cells.shape, generator=random) < 0.02
        cells = torch.where(turned, 1 - cells, cells)
    return torch.cat(parts, 1)


def logs(count: int = 1500, lines: int = 5, kinds: int = 6, seed: int = 0) -> Any:
    """Return lines of a server: a kind, a host, and two words that depend on both."""
    random = _random(seed)
    often = torch.tensor([0.3, 0.25, 0.2, 0.12, 0.08, 0.05, 0.05, 0.05])[:kinds]
    kind = torch.multinomial(often.expand(count, -1), lines, True, generator=random)
    host = torch.randint(6, (count, 1), generator=random)
    moved = torch.rand(count, lines, generator=random) < 0.15
    host = torch.where(moved, torch.randint(6, (count, lines), generator=random), host)
    cause = 14 + (kind * 3 + host) % 12
    code = 26 + (kind + 2 * host + torch.randint(2, host.shape, generator=random)) % 14
    return torch.stack([kind, 8 + host, cause, code], -1).flatten(1)


def calls(count: int = 1500, length: int = 24, kind: int = 0, seed: int = 0) -> tuple[Any, Any]:
    """Return calls of birds, padded by 0, and which of three birds it was (the last is rare).

    Each bird has four phrases of two to four notes, and an order that it prefers.
    """
    order = _random(50 + kind)
    random = _random(seed)
    phrases = [
        [
            torch.randint(1, CALLS, (2 + (bird + part) % 3,), generator=order).tolist()
            for part in range(4)
        ]
        for bird in range(3)
    ]
    bird = torch.multinomial(torch.tensor([0.45, 0.35, 0.2]), count, True, generator=random)
    text = torch.zeros(count, length, dtype=torch.long)
    for row, each in enumerate(bird.tolist()):
        notes: list[int] = []
        part = int(torch.randint(4, (), generator=random))
        until = int(torch.randint(14, length + 1, (), generator=random))
        while len(notes) < until:
            notes += phrases[each][part]
            skips = torch.rand((), generator=random) < 0.2
            part = (part + 1 + int(skips)) % 4
        text[row, :until] = torch.tensor(notes[:until])
    return text, bird


def days(count: int = 1200, length: int = 20, seed: int = 0) -> tuple[Any, Any]:
    """Return events of days and their hours, in order: what happens depends on hour and event."""
    random = _random(seed)
    hours = torch.rand(count, length, generator=random).mul(20).sort(1).values
    chances = torch.rand(4, EVENTS, EVENTS, generator=random).pow(20) + 1e-3
    parts = [torch.randint(EVENTS, (count,), generator=random)]
    for at in range(1, length):
        quarter = (hours[:, at] / 5).long().clamp(max=3)
        parts.append(torch.multinomial(chances[quarter, parts[-1]], 1, generator=random)[:, 0])
    return torch.stack(parts, 1), hours
