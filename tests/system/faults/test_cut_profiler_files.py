"""Files of the profiler, cut off at any byte: whole records are read, the rest is reported."""

import gzip
from collections.abc import Callable

import profiler_writer as writer
import pytest
import timeline_writer
from memory_store import MemoryStore
from profiler_writer import BEGIN_US, END
from timeline_writer import HOROVOD, PYTHON

from smdebug.trials.profiler_trial import ProfilerTrial

MINUTE_US = 60_000_000
PROFILE = "framework/tensorflow/detailed_profiling/2020091312/000000005"
MARK = f"{PROFILE}/11-algo-1_{BEGIN_US}_{BEGIN_US + 9_000_000}.metadata"
STEPS = [timeline_writer.step(at, at * 1e6, 1e6) for at in range(9)]


def timeline() -> bytes:
    return timeline_writer.text(timeline_writer.records(STEPS, BEGIN_US)).encode()


def horovod() -> bytes:
    """Return pairs of begin and end, which leave something open wherever they are cut."""
    found = [timeline_writer.meta(0, start_time_since_epoch_in_micros=BEGIN_US)]
    found += (
        {"name": "ALLREDUCE", "ph": kind, "pid": 1, "ts": at * 1e6 + 5e5 * (kind == "E")}
        for at in range(9)
        for kind in "BE"
    )
    return timeline_writer.text(found).encode()


def profile() -> bytes:
    text = timeline_writer.text(timeline_writer.records(STEPS, BEGIN_US))
    return gzip.compress(f'{{"displayTimeUnit": "ns", "traceEvents": {text}}}'.encode(), mtime=0)


FILES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "system": (
        writer.key(writer.BEGIN_S),
        lambda: next(iter(writer.files(writer.cpu([1.5, 2.5, 99.0, 4.0] * 2)).values())),
    ),
    "timeline": (timeline_writer.key(BEGIN_US + 9_000_000, kind=PYTHON), timeline),
    "horovod": (timeline_writer.key(BEGIN_US + 9_000_000, kind=HOROVOD), horovod),
    "gzip": (f"{PROFILE}/plugins/profile/2020_09_13/algo-1.trace.json.gz", profile),
}


def read(key: str, content: bytes) -> tuple[list[object], list[str]]:
    """Return what is in a file of a job that is over, and what is wrong with it."""
    marks = {MARK: b""} if key.endswith("gz") else {}
    store = MemoryStore(END | marks | {key: content})
    trial = ProfilerTrial.over(store, "t", "/t")
    trial.refresh()
    trial.refresh()
    found: list[object] = trial.system_samples(BEGIN_US, BEGIN_US + MINUTE_US).value.tolist()
    events = trial.framework_events(0, BEGIN_US + MINUTE_US)
    found += [(one.event_name, one.start_time, one.duration) for one in events]
    return found, trial.problems


@pytest.mark.parametrize("kind", FILES)
def test_cut_at_any_byte(kind: str) -> None:
    key, made = FILES[kind]
    content = made()
    whole, problems = read(key, content)
    assert (len(whole), problems) == (9 if kind != "system" else 8, [])
    counts = []
    for length in range(len(content)):
        found, problems = read(key, content[:length])
        assert whole[: len(found)] == found
        counts.append(len(found))
        # Behind a whole record a file may end: writers are killed, and Horovod never closes it.
        between = content[:length].rstrip(b",\n").endswith((b"}", b"["))
        assert len(found) == len(whole) or problems or between or not length
        assert all(one.startswith(f"{key}: It ") for one in problems)
        assert len(problems) <= 1
    assert sorted(counts) == counts
