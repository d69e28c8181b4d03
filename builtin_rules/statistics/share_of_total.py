"""Shares: how far from what was counted a share may be, by chance and by choice of the worst."""

import math
from statistics import NormalDist
from typing import Final

ALPHA: Final = 0.01  # how often a bound may be wrong by chance, over all that are compared


def deviations(compared: int) -> float:
    """Return the deviations of a one-sided bound that holds for each of so many shares.

    >>> round(deviations(1), 2), round(deviations(4950), 2)
    (2.33, 4.61)
    """
    return NormalDist().inv_cdf(1 - ALPHA / max(compared, 1))


def lower(hits: int, total: int, compared: int) -> float:
    """Return a lower bound of the share that ``hits / total`` stands for: Wilson's.

    >>> lower(0, 10, 1), round(lower(90, 100, 1), 3)
    (0.0, 0.808)
    """
    return max(0.0, _wilson(hits, total, -deviations(compared)))


def upper(hits: int, total: int, compared: int) -> float:
    """Return an upper bound likewise.

    >>> upper(10, 10, 1), round(upper(10, 100, 1), 3)
    (1.0, 0.192)
    """
    return min(1.0, _wilson(hits, total, deviations(compared)))


def _wilson(hits: int, total: int, deviation: float) -> float:
    share, square = hits / total, deviation**2 / total
    spread = math.sqrt(share * (1 - share) / total + square / (4 * total))
    return (share + square / 2 + deviation * spread) / (1 + square)
