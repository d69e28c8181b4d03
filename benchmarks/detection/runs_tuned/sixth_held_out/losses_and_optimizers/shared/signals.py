"""Signals: passengers of trams, letters in Morse code, keys of tunes, dye in a channel."""

import math
from typing import Any, Final

import torch

from runs_tuned.sixth_held_out.losses_and_optimizers.shared.tables import chance

CODES: Final = (".-", "-...", "-.-.", "-..", "..-.", "--.", "....", ".---")
NOTES: Final = 36
SCALE: Final = (0, 2, 4, 5, 7, 9, 11)


def trams(count: int, seed: int, hours: int = 36, ahead: int = 3) -> tuple[Any, Any]:
    """Return passengers (standardised) and the turn of the day by hour, and what comes next."""
    random = chance(seed)
    time = torch.arange(hours + ahead) + torch.randint(168, (count, 1), generator=random)
    size = 0.7 + 0.6 * torch.rand(count, 1, generator=random)
    turn = time * math.pi / 12
    week = (time // 24 % 7 < 5).float()
    rush = (3 * (turn - 2.1).cos()).exp() / 12 + (3 * (turn - 4.6).cos()).exp() / 15
    drift = 0.12 * torch.randn(time.shape, generator=random).cumsum(1)
    level = size * (0.4 + rush * (0.4 + 0.6 * week)) + drift
    level = (level + 0.08 * torch.randn(time.shape, generator=random) - 0.9) / 0.8
    x = torch.stack([level, turn.sin(), turn.cos(), week], 2)[:, :hours]
    return x, level[:, hours:]


def morse(count: int, seed: int, noise: float = 0.5) -> tuple[Any, Any, Any]:
    """Return tones of letters in Morse code, which of eight letters, and how fast it was sent."""
    random = chance(seed)
    letter = torch.randint(8, (count,), generator=random)
    speed = torch.rand(count, generator=random)
    start = 3 + 12 * torch.rand(count, generator=random)
    x = torch.zeros(count, 1, 112)
    for row in range(count):
        at, unit = float(start[row]), 4.0 + 2.0 * float(speed[row])
        for sign in CODES[letter[row]]:
            long = unit * (1 if sign == "." else 3)
            x[row, 0, int(at) : int(at + long)] = 1.0
            at += long + unit
    pitch = (torch.arange(112) * (0.9 + 0.3 * torch.rand(count, 1, generator=random))).sin()
    x = x * (1 + 0.5 * pitch[:, None]) - 0.5
    return x + noise * torch.randn(x.shape, generator=random), letter, speed[:, None] - 0.5


def tunes(count: int, seed: int, length: int = 24) -> tuple[Any, Any]:
    """Return notes of tunes, and in which of six keys they stand."""
    random = chance(seed)
    key = torch.randint(6, (count,), generator=random)
    steps = torch.randint(-2, 3, (count, length), generator=random)
    steps[:, 0] = torch.randint(20, (count,), generator=random)
    place = steps.cumsum(1).clamp(0, 19)
    note = torch.tensor(SCALE)[place % 7] + 12 * (place // 7) + 2 * key[:, None]
    other = torch.randint(NOTES, note.shape, generator=random)
    is_other = torch.rand(note.shape, generator=random) < 0.12
    return torch.where(is_other, other, note % NOTES), key


def dyes(count: int, seed: int, width: int = 48, steps: int = 2) -> tuple[Any, Any]:
    """Return dye and flow along a ring-shaped channel, and the dye a little later."""
    random = chance(seed)
    place = torch.arange(width) * 2 * math.pi / width
    dye, flow = torch.zeros(2, count, width)
    for wave in range(1, 6):
        sizes = torch.tensor([1.0, 0.4])[:, None, None] * torch.randn(2, count, 1, generator=random)
        phases = 2 * math.pi * torch.rand(2, count, 1, generator=random)
        dye, flow = torch.stack([dye, flow]) + sizes * (wave * place + phases).sin()
    before = dye
    for _ in range(4 * steps):
        slope = (dye.roll(-1, 1) - dye.roll(1, 1)) / 2
        bend = dye.roll(-1, 1) + dye.roll(1, 1) - 2 * dye
        dye = dye - 0.25 * flow.tanh() * slope + 0.12 * bend
    noise = 0.05 * torch.randn(dye.shape, generator=random)
    return torch.stack([before / 1.6, flow], 1), (dye / 1.6 + noise)[:, None]
