"""Writes safetensors files without the library, and opens checkpoints as a trial."""

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from clocks import PatientClock

from rule_core.format.safetensors_header import DTYPES
from rule_core.reading.source_index import SourceIndex
from rule_core.sources.format import Recognized
from rule_core.sources.open import open_sources
from rule_core.sources.safetensors import FORMAT
from rule_core.storage.base import TrialStore
from rule_core.trials.trial import Trial

NAMES = {dtype: name for name, dtype in DTYPES.items()}
Tensors = Mapping[str, Any]


def encode(tensors: Tensors, metadata: Mapping[str, str] | None = None) -> bytes:
    """Return the bytes of a file with tensors."""
    header: dict[str, Any] = {} if metadata is None else {"__metadata__": dict(metadata)}
    offset, contents = 0, []
    for name, value in tensors.items():
        array = np.ascontiguousarray(value).reshape(np.shape(value))
        end = offset + array.nbytes
        header[name] = {
            "dtype": NAMES[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [offset, end],
        }
        contents.append(array.tobytes())
        offset = end
    return with_header(json.dumps(header).encode(), b"".join(contents))


def with_header(header: bytes, content: bytes = b"") -> bytes:
    """Return the bytes of a file with a header as given."""
    return struct.pack("<Q", len(header)) + header + content


def write(path: Path, tensors: Tensors) -> Path:
    """Write one file; folders are created."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encode(tensors, {"format": "pt"}))
    return path


def write_sharded(folder: Path, *shards: Tensors, stem: str = "model") -> None:
    """Write shards and their index, as Hugging Face's libraries do."""
    weight_map = {}
    for place, tensors in enumerate(shards, 1):
        name = f"{stem}-{place:05d}-of-{len(shards):05d}.safetensors"
        write(folder / name, tensors)
        weight_map.update(dict.fromkeys(tensors, name))
    index = {"metadata": {"total_size": 0}, "weight_map": weight_map}
    (folder / f"{stem}.safetensors.index.json").write_text(json.dumps(index))


def checkpoint_index(store: TrialStore, key: str = "") -> SourceIndex:
    """Return the index over the checkpoints of a folder or file."""
    return open_sources(store, [(FORMAT, Recognized(FORMAT.kind, key, "the test says so"))])


def whole_trial(index: SourceIndex, path: object = "run") -> Trial:
    """Return a trial whose run has ended."""
    index.refresh()
    index.finish()
    return Trial.over("run", str(path), index, PatientClock())
