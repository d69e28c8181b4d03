"""Files of a trial, byte by byte: a second writer and reader that share no code with the package.

They follow the format's description alone, are slow, and write whatever they are told to.
"""

import json
import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

FOOTER = 0x062DC0B3
# TensorFlow's numbers of the data types.
NUMBERS = {
    "float32": 1,
    "float64": 2,
    "int32": 3,
    "uint8": 4,
    "int16": 5,
    "int8": 6,
    "complex64": 8,
    "int64": 9,
    "bool": 10,
    "bfloat16": 14,
    "uint16": 17,
    "complex128": 18,
    "float16": 19,
    "uint32": 22,
    "uint64": 23,
}
QUANTIZED = {11: "int8", 12: "uint8", 13: "int32", 15: "int16", 16: "uint16"}
NAMES = {number: name for name, number in NUMBERS.items()} | QUANTIZED
TRAINING_JOB_END = "training_job_end.ts"


def dtype_of(name: str) -> "np.dtype[Any]":
    """Return the data type of this name."""
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def crc32c(data: bytes) -> int:
    """Return the Castagnoli checksum, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ 0x82F63B78 * (crc & 1)
    return crc ^ 0xFFFFFFFF


def masked(data: bytes) -> int:
    """Return the masked checksum of the record format."""
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32


def record(payload: bytes, footer: int = FOOTER) -> bytes:
    """Return one record."""
    length = struct.pack("<Q", len(payload))
    return length + struct.pack("<I", masked(length)) + payload + struct.pack("<I", footer)


def varint(value: int) -> bytes:
    """Return a protobuf varint."""
    groups = []
    while True:
        groups.append(value & 0x7F)
        value >>= 7
        if not value:
            break
    return bytes(group | 0x80 for group in groups[:-1]) + bytes(groups[-1:])


def field(number: int, value: int | bytes) -> bytes:
    """Return a protobuf field: a varint, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


@lru_cache
def dimension(size: int) -> bytes:
    """Return a dimension of a TensorShapeProto; kept, for some tests have a million of them."""
    return field(2, field(1, size) if size else b"")


def shape_message(sizes: Sequence[int]) -> bytes:
    """Return a TensorShapeProto."""
    return b"".join(map(dimension, sizes))


def tensor_message(
    number: int, sizes: Sequence[int], content: bytes | None, strings: Sequence[bytes] = ()
) -> bytes:
    """Return a TensorProto."""
    message = (field(1, number) if number else b"") + field(2, shape_message(sizes))
    if content is not None:
        message += field(4, content)
    return message + b"".join(field(8, text) for text in strings)


def array_message(array: "np.ndarray") -> bytes:
    """Return the TensorProto of an array."""
    if array.dtype.kind == "U":
        return tensor_message(0, array.shape, None, [text.encode() for text in array.tolist()])
    content = array.tobytes() or None
    return tensor_message(NUMBERS[array.dtype.name], array.shape, content)


def event(tensor: bytes, tag: bytes = b"t", step: int = 1) -> bytes:
    """Return an Event around a TensorProto."""
    value = field(1, tag) + field(8, tensor)
    return b"\x09" + struct.pack("<d", 1.6e9) + field(2, step) + field(5, field(1, value))


def parse(message: bytes) -> dict[int, list[Any]]:
    """Return the fields of a protobuf message by number."""
    values: dict[int, list[Any]] = {}
    offset = 0

    def number() -> int:
        nonlocal offset
        value = shift = 0
        while True:
            byte = message[offset]
            offset += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while offset < len(message):
        key = number()
        wire = key & 7
        value: Any = number() if wire in {0, 2} else {1: 8, 5: 4}[wire]
        if wire:
            offset += value
            value = message[offset - value : offset]
        values.setdefault(key >> 3, []).append(value)
    return values


def array_of(data: bytes) -> "np.ndarray":
    """Return the array in a record."""
    summary = parse(data[12:-4])[5][0]
    message = parse(parse(parse(summary)[1][0])[8][0])
    dims = parse(message.get(2, [b""])[0]).get(2, [])
    shape = [parse(dim).get(1, [0])[0] for dim in dims]
    if 1 not in message:
        return np.array([text.decode() for text in message[8]]).reshape(shape)
    dtype = dtype_of(NAMES[message[1][0]])
    return np.frombuffer(message.get(4, [b""])[0], dtype).reshape(shape)


def saved_value(root: Path, name: str, step: int, worker: str = "worker_0") -> "np.ndarray":
    """Return the value of a tensor, found through the index file by hand."""
    path = root / f"index/{step // 1000:09d}/{step:012d}_{worker}.json"
    index = json.loads(path.read_text())
    content = (root / index["meta"]["event_file_name"]).read_bytes()
    (record,) = (entry for entry in index["tensor_payload"] if entry["tensorname"] == name)
    return array_of(content[record["start_idx"] :][: record["length"]])


def event_key(step: int, worker: str = "worker_0") -> str:
    """Return the key of an event file."""
    return f"events/{step:012d}/{step:012d}_{worker}.tfevents"


def index_key(step: int, worker: str = "worker_0") -> str:
    """Return the key of an index file."""
    return f"index/{step // 1000:09d}/{step:012d}_{worker}.json"


def collections_key(worker: str = "worker_0") -> str:
    """Return the key of a collections file."""
    return f"collections/000000000/{worker}_collections.json"


def collections(patterns: Mapping[str, Sequence[str]], num_workers: Any = 1) -> bytes:
    """Return a collections file."""
    named = {
        name: {"name": name, "include_regex": list(regexes), "tensor_names": []}
        for name, regexes in patterns.items()
    }
    return json.dumps({"collections": named, "_meta": {"num_workers": num_workers}}).encode()


def step_files(
    step: int,
    values: Mapping[str, "np.ndarray"],
    mode: str = "GLOBAL",
    mode_step: int | None = None,
    worker: str = "worker_0",
) -> dict[str, bytes]:
    """Return the event file and the index file of one step."""
    payload, events = [], b""
    for name, array in values.items():
        data = record(event(array_message(array), name.encode(), step))
        payload.append({"tensorname": name, "start_idx": len(events), "length": len(data)})
        events += data
    meta = {
        "mode": mode,
        "mode_step": step if mode_step is None else mode_step,
        "event_file_name": event_key(step, worker),
    }
    index = {"meta": meta, "tensor_payload": payload}
    return {event_key(step, worker): events, index_key(step, worker): json.dumps(index).encode()}


def write(root: Path, files: Mapping[str, bytes]) -> Path:
    """Write files below a root."""
    for key, content in files.items():
        path = root / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root
