"""Sum the float32 elements of a file in the page cache: read with pread, and mapped."""

import mmap
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np

from rule_core.storage.base import ByteRange
from rule_core.storage.local import LocalStore

ROUNDS = 15


def paired(first: Callable[[], object], second: Callable[[], object]) -> tuple[float, float]:
    """Return the median seconds of `first`, and the median ratio first / second of the pairs."""
    times, ratios = [], []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        first()
        between = time.perf_counter()
        second()
        ended = time.perf_counter()
        times.append(between - began)
        ratios.append((between - began) / (ended - between))
    return statistics.median(times), statistics.median(ratios)


def run() -> None:
    """Print the table."""
    click.echo("tensor bytes   read, ms   read / mapped")
    with tempfile.TemporaryDirectory() as folder:
        store = LocalStore(folder)
        for size in (1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 27):
            path = Path(folder) / "tensor"
            path.write_bytes(np.ones(size // 4, np.float32).tobytes())

            def read(size: int = size) -> object:
                return np.frombuffer(store.read("tensor", ByteRange(0, size)), np.float32).sum()

            def mapped(path: Path = path) -> object:
                fd = os.open(path, os.O_RDONLY)
                try:
                    with mmap.mmap(fd, 0, access=mmap.ACCESS_READ) as pages:
                        total = np.frombuffer(pages, np.float32).sum()
                finally:
                    os.close(fd)
                return total

            seconds, ratio = paired(read, mapped)
            click.echo(f"{size:12}   {seconds * 1e3:8.3f}   {ratio:13.2f}")
