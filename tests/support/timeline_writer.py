"""Writes framework timelines as training jobs leave them: smdebug's, Horovod's, TensorFlow's."""

import gzip
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from profiler_writer import BEGIN_US

START_US = BEGIN_US
PYTHON = "pythontimeline.json"
MODEL = "model_timeline.json"
HOROVOD = "horovod_timeline.json"
SMDATAPARALLEL = "smdataparallel_timeline.json"

Json = dict[str, Any]


class Event(NamedTuple):
    """A complete event; `ts` counts from the file's zero, both times are microseconds."""

    phase: str
    name: str
    ts: float
    dur: float
    args: Json | None = None


def step(number: int, ts: float, dur: float, mode: str = "TRAIN", pid: int = 11) -> Event:
    """Return the event of a step, as hooks write it."""
    name = f"Step:ModeKeys.{mode}"
    return Event(name, name, ts, dur, {"pid": pid, "step_num": str(number)})


def records(events: Iterable[Event], start_us: int = START_US) -> list[Json]:
    """Return the records of a file: its zero, each phase before its first event, the events."""
    records: list[Json] = [meta(0, start_time_since_epoch_in_micros=start_us)]
    pids: dict[str, int] = {}
    for event in events:
        pid = pids.get(event.phase)
        if pid is None:
            pid = pids[event.phase] = len(pids) + 1
            records.append(meta(pid, name=event.phase))
        record = {"name": event.name, "pid": pid, "ph": "X", "ts": event.ts, "dur": event.dur}
        records.append(record if event.args is None else {**record, "args": event.args})
    return records


def meta(pid: int, kind: str = "process_name", tid: int | None = None, **args: Any) -> Json:
    """Return a metadata record."""
    record: Json = {"name": kind, "ph": "M", "pid": pid, "args": args}
    return record if tid is None else {**record, "tid": tid}


def text(records: Sequence[Json]) -> str:
    """Return records as smdebug writes them: one a line."""
    return "[\n" + ",\n".join(json.dumps(record) for record in records) + "\n]"


def key(end_us: int, node: str = "11-algo-1", kind: str = PYTHON) -> str:
    """Return where a timeline lies below a job's folder; its name holds the last event's end."""
    hour = datetime.fromtimestamp(end_us / 1e6, UTC).strftime("%Y%m%d%H")
    return f"framework/pevents/{hour}/{end_us}_{node}_{kind}"


def write(
    root: Path,
    events: Sequence[Event],
    *,
    node: str = "11-algo-1",
    kind: str = PYTHON,
    start_us: int = START_US,
) -> Path:
    """Write a timeline of events into a job's folder."""
    end_us = start_us + int(max((event.ts + event.dur for event in events), default=0))
    return write_text(root, key(end_us, node, kind), text(records(events, start_us)))


def write_text(root: Path, name: str, content: str | bytes) -> Path:
    """Write a file of any content."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def write_tensorflow(
    root: Path,
    found: Sequence[Json],
    *,
    start_us: int = START_US,
    end_us: int = START_US + 1_000_000,
    node: str = "11-algo-1",
    host: str = "algo-1",
) -> Path:
    """Write a detailed profile of TensorFlow, and the empty file whose name holds its time."""
    folder = "framework/tensorflow/detailed_profiling/2020091312/000000005"
    write_text(root, f"{folder}/{node}_{start_us}_{end_us}.metadata", "")
    document = {"displayTimeUnit": "ns", "traceEvents": list(found), "stackFrames": {}}
    content = gzip.compress(json.dumps(document).encode())
    return write_text(root, f"{folder}/plugins/profile/2020_09_13/{host}.trace.json.gz", content)
