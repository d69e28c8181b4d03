"""Ways to damage the files of a trial: bytes, JSON values, and what stands in a file's place."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np

Rng = np.random.Generator
HOSTILE: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2**31, 2**53, 2**62, 2**63, 2**64, -(2**63), 10**30, 1.5, 1e308),
    *("", "0", "-1", "GLOBAL", "train", "\0", "a\0b", "/", "..", ".", "a" * 5000, "\x1b[31m", "ß"),
    *("/etc/passwd", "../../outside", "events/../../outside", "events//x", "index", "events"),
    *("smdebug/reductions/", "smdebug/reductions/x", "smdebug/reductions/abs_/", "(((", "(a+)+$"),
    *([], [[]], {}, [None], [-1], [2**62, 2**62], [1] * 70, [0, 2**62, 2**62], {"name": "x"}),
)


def _at(rng: Rng, data: bytes) -> int:
    return int(rng.integers(0, len(data) + 1))


def flip(data: bytes, rng: Rng) -> bytes:
    """Change a few bits."""
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        if changed:
            changed[int(rng.integers(0, len(changed)))] ^= 1 << int(rng.integers(0, 8))
    return bytes(changed)


def cut(data: bytes, rng: Rng) -> bytes:
    """Leave the beginning only."""
    return data[: _at(rng, data)]


def behead(data: bytes, rng: Rng) -> bytes:
    """Leave the end only."""
    return data[_at(rng, data) :]


def splice(data: bytes, rng: Rng) -> bytes:
    """Put one piece in the place of another."""
    one, two = sorted((_at(rng, data), _at(rng, data)))
    piece = data[_at(rng, data) :][: int(rng.integers(0, 64))]
    return data[:one] + piece + data[two:]


def noise(data: bytes, rng: Rng) -> bytes:
    """Put random bytes somewhere."""
    at = _at(rng, data)
    more = rng.bytes(int(rng.integers(1, 64)))
    return data[:at] + more + data[at + len(more) * int(rng.integers(0, 2)) :]


def fill(data: bytes, rng: Rng) -> bytes:
    """Overwrite a piece with one byte, as crashes leave zeros."""
    one, two = sorted((_at(rng, data), _at(rng, data)))
    return data[:one] + bytes([int(rng.choice([0, 0xFF, 0x7F, 0x80]))]) * (two - one) + data[two:]


def double(data: bytes, _rng: Rng) -> bytes:
    """Write everything twice."""
    return data + data


def value(data: bytes, rng: Rng) -> bytes:
    """Replace, add or remove one value of a JSON document; flip bits in anything else."""
    try:
        document = json.loads(data)
    except ValueError:
        return flip(data, rng)
    holders = list(_containers(document))
    holder = holders[int(rng.integers(0, len(holders)))]
    hostile = HOSTILE[int(rng.integers(0, len(HOSTILE)))]
    keys: list[Any] = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    if not keys:
        return data
    key = keys[int(rng.integers(0, len(keys)))]
    if rng.random() < 0.15:
        del holder[key]
    elif isinstance(holder, dict) and rng.random() < 0.1:
        holder[str(hostile)] = holder[key]
    else:
        holder[key] = hostile
    return json.dumps(document).encode()


def _containers(document: Any) -> "list[Any]":
    """Return all dictionaries and lists of a document."""
    if not isinstance(document, (dict, list)):
        return []
    parts = document.values() if isinstance(document, dict) else document
    return [document, *(one for part in parts for one in _containers(part))]


MUTATIONS: tuple[Callable[[bytes, Rng], bytes], ...] = (
    *(flip, cut, behead, splice, noise, fill, double),
    *(value, value, value, value, value),
)
