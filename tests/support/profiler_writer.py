"""Files of system metrics as the platform's agent leaves them: their content comes from tests."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

BEGIN_S = 1_600_000_020  # a full minute
BEGIN_US = BEGIN_S * 1_000_000
MINUTE_US = 60_000_000
END = {"system/training_job_end.ts": b""}


@dataclass(frozen=True, slots=True)
class Series:
    """Samples of one series: values at equal distances, from some second of the job on."""

    type: str
    dimension: str
    name: str | None
    values: ArrayLike
    node: str = "algo-1"
    begin_s: float = 0.0
    every_s: float = 0.5


def cpu(values: ArrayLike, name: str = "cpu0", **more: Any) -> Series:
    return Series("cpu", "CPUUtilization", name, values, **more)


def gpu(values: ArrayLike, name: str = "gpu0", **more: Any) -> Series:
    return Series("gpu", "GPUUtilization", name, values, **more)


def memory(values: ArrayLike, name: str = "gpu0", **more: Any) -> Series:
    return Series("gpu", "GPUMemoryUtilization", name, values, **more)


def io_wait(values: ArrayLike, name: str = "cpu0", **more: Any) -> Series:
    return Series("i/o", "I/OWaitPercentage", name, values, **more)


def line(
    value: Any,
    time_s: float,
    dimension: str = "CPUUtilization",
    name: str | None = "cpu0",
    node: str = "algo-1",
    kind: str = "cpu",
) -> bytes:
    """Return one line of a file."""
    record = {"Type": kind, "Name": name, "Dimension": dimension, "Value": value}
    record |= {"NodeId": node, "Timestamp": time_s}
    return (
        json.dumps({key: field for key, field in record.items() if field is not None}).encode()
        + b"\n"
    )


def key(stamp_s: int, node: str = "algo-1") -> str:
    """Return where the file of a minute lies."""
    hour = datetime.fromtimestamp(stamp_s, UTC).strftime("%Y%m%d%H")
    return f"system/incremental/{hour}/{stamp_s:010d}.{node}.json"


def each_file(series: Iterable[Series], begin_s: int = BEGIN_S) -> Iterator[tuple[str, bytes]]:
    """Yield key and content of each file, a file for each node and minute, in the order of time."""
    held = [(one, np.asarray(one.values, dtype=float)) for one in series]
    seconds = max((one.begin_s + len(values) * one.every_s for one, values in held), default=0)
    for minute in range(int(-(-seconds // 60))):
        stamp = begin_s + 60 * minute
        for node in sorted({one.node for one, _ in held}):
            mine = ((one, values) for one, values in held if one.node == node)
            lines = [line for part in mine for line in _lines(*part, begin_s, minute)]
            lines.sort(key=lambda one: one[0])
            if lines:
                yield key(stamp, node), "".join(text for _, text in lines).encode()


def _lines(
    one: Series, values: "np.ndarray[Any, Any]", begin_s: int, minute: int
) -> Iterator[tuple[float, str]]:
    """Yield the times and lines of one series in one minute."""
    first, last = (int(-(-(60 * at - one.begin_s) // one.every_s)) for at in (minute, minute + 1))
    first = max(first, 0)
    empty = line("%r", "%r", one.dimension, one.name, one.node, one.type)  # type: ignore[arg-type] # a template
    text = empty.decode().replace('"%r"', "%r")
    some = values[first:last].tolist()
    times = begin_s + one.begin_s + (first + np.arange(len(some))) * one.every_s
    for value, time_s in zip(some, times.tolist(), strict=True):
        yield time_s, text % (value, time_s)


def files(*series: Series, begin_s: int = BEGIN_S) -> dict[str, bytes]:
    """Return all files by their keys."""
    return dict(each_file(series, begin_s))


def minute(
    number: int,
    node: int = 1,
    *,
    seconds: float = 60,
    every_s: float = 10,
    begin_s: int = BEGIN_S,
    **values: float,
) -> dict[str, bytes]:
    """Return the file of one minute; `values` are of cores (`cpu0`) and GPUs (`gpu0`), and stay."""
    count = int(seconds / every_s)
    series = (
        {"cpu": cpu, "gpu": gpu}[name[:3]](
            [value] * count, name, node=f"algo-{node}", every_s=every_s
        )
        for name, value in (values or {"cpu0": 50.0}).items()
    )
    return files(*series, begin_s=begin_s + 60 * number)


def write_samples(root: Path, *series: Series) -> None:
    """Write all files of series below a folder."""
    write(root, files(*series))


def write(root: Path, files: Mapping[str, bytes]) -> None:
    """Write files below a folder."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
