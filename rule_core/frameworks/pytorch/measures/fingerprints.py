"""Fingerprints of batches: a hash of each row, to recognize rows that occur again."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import torch

from rule_core.frameworks.pytorch.modules import tensors_in

MOST_ROWS: Final = 4096
MOST_ELEMENTS: Final = 4096  # of a row
LABELS: Final = "labels"
_LABEL_KEYS: Final = frozenset({LABELS, "label", "targets", "target", "label_ids"})
_BITS: Final = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_MASK: Final = (1 << 64) - 1


def row_hashes(tensor: Any) -> Any:
    """Return a hash of each row as int64, computed on the tensor's device.

    At most `MOST_ROWS` rows, and of each row at most `MOST_ELEMENTS` evenly spaced elements, are
    hashed. Equal rows of one type have equal hashes in every run.
    """
    rows = tensor.detach()[:MOST_ROWS]
    rows = torch.view_as_real(rows) if rows.is_complex() else rows
    rows = rows.reshape(rows.shape[0], -1)
    rows = rows[:, :: max(1, -(-rows.shape[1] // MOST_ELEMENTS))]
    if rows.is_floating_point():
        rows = rows.contiguous().view(_BITS[rows.dtype.itemsize])
    bits = rows.to(torch.int64)
    weights = _weights(rows.shape[1]).to(rows.device)
    # Products and sums wrap around at 64 bits; mixing the bits first tells apart sums of elements.
    mixed = (bits + weights) * 0x2545F4914F6CDD1D
    mixed = (mixed ^ (mixed >> 29)) * weights
    return (mixed ^ (mixed >> 32)).sum(1)


@lru_cache(maxsize=64)
def _weights(count: int) -> Any:
    """Return odd numbers that look random, without the use of a random state."""
    weight, weights = 0x9E3779B97F4A7C15, []
    for _ in range(count):
        weight = (weight * 6364136223846793005 + 1442695040888963407) & _MASK
        unsigned = (weight ^ (weight >> 31)) | 1
        weights.append(unsigned - (1 << 64) if unsigned >> 63 else unsigned)
    return torch.tensor(weights, dtype=torch.int64)


def batch_hashes(arguments: Any) -> tuple[Any, Any]:
    """Return the hashes of the inputs and of the labels among a model's arguments.

    All tensors with as many rows as the first one are inputs, except those whose key says that
    they are labels. Either is None if there is no such tensor.
    """
    inputs = labels = None
    for key, tensor in tensors_in(arguments):
        if not tensor.ndim or not tensor.numel() or tensor.layout is not torch.strided:
            continue
        if key in _LABEL_KEYS:
            labels = row_hashes(tensor) if labels is None else labels
            continue
        hashes = row_hashes(tensor)
        if inputs is None:
            inputs = hashes
        elif len(inputs) == len(hashes):
            inputs = inputs * 31 + hashes
    return inputs, labels


def split_batch(batch: Any) -> tuple[Any, Any]:
    """Return the inputs and the labels of a batch from a data loader.

    >>> split_batch([1, 2]), split_batch({"image": 1, "label": 2})
    ((1, 2), ({'image': 1}, 2))
    """
    if isinstance(batch, Mapping):
        key = next((key for key in batch if key in _LABEL_KEYS), None)
        rest = {name: value for name, value in batch.items() if name != key}
        return rest, None if key is None else batch[key]
    pair = 2
    if isinstance(batch, (list, tuple)) and len(batch) == pair:
        return batch[0], batch[1]
    return batch, None
