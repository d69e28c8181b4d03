"""Writes transaction logs of Weights & Biases: records of protobuf in chunks."""

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rule_core.format.event_encoder import varint
from rule_core.sources.wandb.record_log import (
    BLOCK_BYTES,
    FILE_HEAD,
    FIRST,
    FULL,
    HEADER,
    LAST,
    MIDDLE,
)

Rows = Iterable[tuple[int, Mapping[str, Any]]]
HISTORY, SUMMARY, STATS, RUN, EXIT = 2, 3, 7, 17, 18  # fields of a Record


def field(number: int, content: bytes | int) -> bytes:
    """Return a field with an integer, or with a message or text."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def item(keys: str | Sequence[str], value: Any, number: int = 1) -> bytes:
    """Return the item of a history: `nested_key` for a list, else `key`; JSON if it is bytes."""
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    parts = (
        field(1, keys.encode())
        if isinstance(keys, str)
        else b"".join(field(2, key.encode()) for key in keys)
    )
    return field(number, parts + field(16, raw))


def history(step: int | None, *items: bytes) -> bytes:
    """Return the record of a row; protobuf leaves out a step of 0."""
    said = b"" if step is None else field(2, field(1, step) if step else b"")
    return field(1, 7) + field(HISTORY, b"".join(items) + said)


def row(step: int, values: Mapping[str, Any]) -> bytes:
    """Return the record of a row as wandb 0.31 writes it."""
    named = {"_runtime": 0.25, "_step": step, **values, "_timestamp": 1.7e9 + step}
    return history(step, *(item([name], value) for name, value in named.items()))


def log(*records: bytes) -> bytes:
    """Return the bytes of a file with records."""
    data = bytearray(FILE_HEAD)
    for record in records:
        rest, is_first = record, True
        while rest or is_first:
            left = BLOCK_BYTES - len(data) % BLOCK_BYTES
            if left < HEADER.size:
                data += bytes(left)
                continue
            chunk, rest = rest[: left - HEADER.size], rest[left - HEADER.size :]
            kind = (FIRST if rest else FULL) if is_first else (MIDDLE if rest else LAST)
            is_first = False
            data += HEADER.pack(zlib.crc32(bytes([kind]) + chunk), len(chunk), kind) + chunk
    return bytes(data)


def run(rows: Rows) -> bytes:
    """Return the log of a run: each row, and the summary after it."""
    settings = item("api_key", "SECRET") + item("batch_size", 32)
    records = [field(RUN, field(1, b"abc") + field(4, settings))]
    for step, values in rows:
        records += [row(step, values), field(SUMMARY, item(["loss"], -1.0))]
    return log(*records)
