"""Bounds of a share, given a sample: what chance and the choice of the worst share allow."""

import math
from statistics import NormalDist
from typing import Final

ALPHA: Final = 0.01  # probability that chance makes any of the compared bounds wrong


def deviations(compared: int) -> float:
    """Return the deviations of a one-sided bound that holds for all `compared` shares.

    >>> round(deviations(1), 2), round(deviations(4950), 2)
    (2.33, 4.61)
    """
    return NormalDist().inv_cdf(1 - ALPHA / max(compared, 1))


def lower(hits: float, total: float, compared: int) -> float:
    """Return Wilson's lower bound of the share that ``hits / total`` estimates.

    >>> lower(0, 10, 1), round(lower(90, 100, 1), 3)
    (0.0, 0.808)
    """
    return max(0.0, _wilson(hits, total, -deviations(compared)))


def upper(hits: float, total: float, compared: int) -> float:
    """Return Wilson's upper bound of the share that ``hits / total`` estimates.

    >>> upper(10, 10, 1), round(upper(10, 100, 1), 3)
    (1.0, 0.192)
    """
    return min(1.0, _wilson(hits, total, deviations(compared)))


def _wilson(hits: float, total: float, deviation: float) -> float:
    share, square = hits / total, deviation**2 / total
    spread = math.sqrt(share * (1 - share) / total + square / (4 * total))
    return (share + square / 2 + deviation * spread) / (1 + square)
