"""Texts: numbers that are spelled in Roman signs, and timetables of a bus."""

from typing import Any, Final

import numpy as np
import torch

ROMAN: Final = (
    *((900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL")),
    *((10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")),
)
SIGNS: Final = "\n 0123456789>MDCLXVI:;"


def _spelled(lines: list[str], length: int) -> tuple[Any, Any]:
    rows = torch.tensor(
        [[SIGNS.index(sign) for sign in line[: length + 1].ljust(length + 1)] for line in lines]
    )
    return rows[:, :-1], rows[:, 1:]


def _in_roman(number: int) -> str:
    signs = ""
    for value, sign in ROMAN:
        signs, number = signs + sign * (number // value), number % value
    return signs


def roman(count: int, seed: int, *, is_back: bool = False) -> tuple[Any, Any]:
    """Return numbers and their Roman signs, or the other way round, and the signs that follow."""
    numbers = np.random.default_rng(seed).integers(1, 700, (count, 3))
    lines = []
    for row in numbers:
        pairs = [(str(number), _in_roman(int(number))) for number in row]
        lines.append("".join(f"{b}>{a};" if is_back else f"{a}>{b};" for a, b in pairs))
    return _spelled(lines, 32)


def buses(count: int, seed: int) -> tuple[Any, Any]:
    """Return times at which a bus leaves, at even distances, and the signs that follow."""
    random = np.random.default_rng(seed)
    lines = []
    for start, apart in zip(
        random.integers(300, 1000, count), random.integers(1, 9, count), strict=True
    ):
        times = [int(start) + 5 * int(apart) * n for n in range(7)]
        lines.append("".join(f"{time // 60}:{time % 60:02d} " for time in times) + "\n")
    return _spelled(lines, 30)
