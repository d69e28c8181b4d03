"""The floor: the mean magnitude of every tensor of a trial, by a plain script without a library.

It is what a careful engineer would write who knows the format. The index files tell where records
lie; where in its record a tensor lies is found once for each name and length of record, as it lies
there at every step; the arithmetic runs in parts that stay in the cache. Nothing is checked,
remembered or written. Ways:

    mmap     each event file is mapped, all pages at once, and its numbers are used in place
    pread    each event file is read into the same buffer, and its numbers are used there
    read     as pread, without the arithmetic
    numpy    the arithmetic of all steps over the first one, which is in memory already
    threads  two threads read half of each event file each, without the arithmetic
"""

import json
import mmap
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from bench_child import Watch

PART = 1 << 16  # elements; parts of a quarter of this, and whole tensors, are slower
MAGNITUDES = np.empty(PART, np.float32)
BLOCK = 1 << 20  # bytes that a thread reads at once, into memory that stays in the cache
HEADER = 12  # bytes in front of the event of a record
PATH = (5, 1, 8, 4)  # summary of an event, its value, its tensor, its content
MORE = 128  # the bit of a varint's bytes but the last

Data = Any  # a buffer: mapped pages or a memoryview


def varint(data: Data, at: int) -> tuple[int, int]:
    """Return a protobuf varint, and where the next field begins."""
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & MORE - 1) << shift
        at, shift = at + 1, shift + 7
        if byte < MORE:
            return value, at


def content(data: Data, start: int) -> tuple[int, int]:
    """Return where in the record at `start` its tensor's bytes begin, and how many they are."""
    at, depth = start + HEADER, 0
    while True:
        key, at = varint(data, at)
        if key & 7 == 1:
            at += 8
            continue
        length, at = varint(data, at)
        if key & 7 == 0:
            continue
        if key >> 3 != PATH[depth]:
            at += length
        elif depth == len(PATH) - 1:
            return at - start, length
        else:
            depth += 1


def mean_magnitude(numbers: "np.ndarray[Any, np.dtype[np.float32]]") -> float:
    """Return the mean of the magnitudes."""
    total = 0.0
    for at in range(0, len(numbers), PART):
        part = numbers[at : at + PART]
        total += float(np.abs(part, out=MAGNITUDES[: len(part)]).sum())
    return total / len(numbers)


def mapped(path: Path) -> Data:
    """Return the bytes of a file, mapped."""
    with path.open("rb") as file:
        flags = mmap.MAP_SHARED | mmap.MAP_POPULATE
        return mmap.mmap(file.fileno(), 0, flags=flags, prot=mmap.PROT_READ)


def into_one_buffer() -> Callable[[Path], Data]:
    """Return what reads files into one buffer; what it returns holds until the next one."""
    buffer = np.empty(0, np.uint8)

    def read(path: Path) -> Data:
        nonlocal buffer
        with path.open("rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            if len(buffer) < size:
                buffer = np.empty(size, np.uint8)
            view, done = memoryview(buffer)[:size], 0
            while done < size:
                done += file.readinto(view[done:]) or 0
        return view

    return read


def read_by_two(root: Path) -> int:
    """Read all steps of a trial with two threads; return how many."""
    buffers = [np.zeros(BLOCK, np.uint8) for _ in range(2)]

    def read(part: tuple[int, int, int, int]) -> None:
        file, start, stop, number = part
        for at in range(start, stop, BLOCK):
            os.preadv(file, [buffers[number][: min(BLOCK, stop - at)]], at)

    paths = sorted((root / "index").rglob("*.json"))
    with ThreadPoolExecutor(2) as pool:
        for path in paths:
            index = json.loads(path.read_bytes())
            with (root / index["meta"]["event_file_name"]).open("rb", buffering=0) as file:
                size = os.fstat(file.fileno()).st_size
                cuts = (0, size // 2, size)
                parts = [(file.fileno(), *cuts[half : half + 2], half) for half in range(2)]
                list(pool.map(read, parts))
    return len(paths)


def run(root: Path, way: str) -> int:
    """Judge all steps of a trial; return how many."""
    if way == "threads":
        return read_by_two(root)
    places: dict[tuple[str, int], tuple[int, int]] = {}
    read = mapped if way == "mmap" else into_one_buffer()
    kept: Data = None
    paths = sorted((root / "index").rglob("*.json"))
    for path in paths[:1] * len(paths) if way == "numpy" else paths:
        index = json.loads(path.read_bytes())
        data = kept or read(root / index["meta"]["event_file_name"])
        kept = data if way == "numpy" else None
        for one in index["tensor_payload"] if way != "read" else ():
            name, start, length = one["tensorname"], one["start_idx"], one["length"]
            place = places.get((name, length))
            if place is None:
                place = places[name, length] = content(data, start)
            offset, size = place
            mean_magnitude(np.frombuffer(data, np.float32, size // 4, start + offset))
    return len(paths)


if __name__ == "__main__":
    watch = Watch()
    watch.report(run(Path(sys.argv[1]), sys.argv[2]))
