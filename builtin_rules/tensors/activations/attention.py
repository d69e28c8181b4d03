"""Attention probabilities: entropies of heads, and mass above the diagonal."""

from typing import Final

import numpy as np

from builtin_rules.statistics.sustained import finite_array
from builtin_rules.statistics.tensor_selection import SavedTensor
from smdebug.rules.extensions import PatternsParam

TENSOR_REGEX: Final = "tensor_regex"
PROBABILITIES: Final = PatternsParam(
    TENSOR_REGEX,
    "Patterns: a tensor holds attention probabilities if one matches in its name.",
    default=r"(?i)attn_(weights|probs|probabilities)(_output_0)?$",
    also=(r"(?i)attention_?(weights|probs|probabilities)(_output_0)?$",),
)
TOLERANCE: Final = 0.1  # of the mean sum of rows, which dropout changes
_HEADS: Final = 4  # dimensions of (batch, heads, queries, keys)
_MATRIX: Final = 2


def probabilities(saved: SavedTensor, step: int) -> "np.ndarray | None":
    """Return attention probabilities of shape ``(batch, heads, queries, keys)``.

    None if the array has non-finite values, or rows that are not probabilities. Rows of zeros, as
    of padding, are allowed. Dropout changes the sums of single rows, but hardly their mean.
    """
    array = finite_array(saved, step)
    if array is None or not _MATRIX <= array.ndim <= _HEADS:
        return None
    if array.ndim < _HEADS:  # without heads
        array = array.reshape(-1, 1, *array.shape[-2:])
    totals = array.sum(axis=-1)
    has_mass = totals > 0
    if array.min() < 0 or not has_mass.any() or abs(totals[has_mass].mean() - 1.0) > TOLERANCE:
        return None
    return array


def entropies(array: "np.ndarray") -> "np.ndarray":
    """Return the mean of entropy / ln(visible keys) over the rows of each head, by their sums.

    A key is visible to a query if any row of the batch gives it mass. Queries that see fewer than
    two keys are left out; NaN if there are no others.
    """
    visible = (array > 0).any(axis=(0, 1)).sum(axis=-1)
    seeing = visible > 1
    if not seeing.any():
        return np.full(array.shape[1], np.nan)
    rows = array[:, :, seeing]
    totals = rows.sum(axis=-1)
    shares = rows / np.where(totals > 0, totals, 1.0)[..., None]
    relative = -np.sum(shares * np.log(np.where(shares > 0, shares, 1.0)), axis=-1)
    relative /= np.log(visible[seeing])
    mass = totals.sum(axis=(0, 2))
    weighted = (relative * totals).sum(axis=(0, 2))
    return np.asarray(np.where(mass > 0, weighted / np.where(mass > 0, mass, 1.0), np.nan))


def future_mass(array: "np.ndarray") -> float:
    """Return the mean mass that a query gives to keys after it; the last query sees all keys."""
    queries, keys = array.shape[-2:]
    is_future = np.triu(np.ones((queries, keys), np.bool_), k=1 + keys - queries)
    return float((array * is_future).sum(axis=-1).mean())
