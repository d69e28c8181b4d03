"""A merged timeline in Perfetto itself: its importer finds nothing to complain of."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import perfetto_viewer
import profiler_writer
import pytest
import timeline_writer as tw
from perfetto_viewer import ERRORS, Query

from smdebug.profiler.analysis.utils.merge_timelines import merge_timelines

ZERO: Final = tw.START_US


@pytest.fixture(scope="module")
def viewer() -> Iterator[str]:
    with perfetto_viewer.served_viewer() as address:
        yield address


@pytest.fixture
def opened(viewer: str, tmp_path: Path) -> Iterator[Query]:
    """Merge a job's files and open the trace; return what asks Perfetto about it."""
    trace = Path(merge_timelines(str(job(tmp_path / "job")), tmp_path / "trace.json").path)
    with perfetto_viewer.opened_trace(viewer, trace) as query:
        yield query


def job(root: Path) -> Path:
    """Write two nodes whose events are nested, overlap, and have marks and counters between."""
    for node in ["11-algo-1", "12-algo-2"]:
        forward = [tw.Event("Forward", f"fc{n}", 100 + 7 * n, 50, {"n": n}) for n in range(20)]
        tw.write(root, [tw.step(0, 0, 1000), *forward], node=node)
    mark = {"name": "CYCLE", "ph": "i", "ts": 5, "pid": 1, "s": "g"}
    pair = [
        {"name": "ALLREDUCE", "ph": "B", "ts": 10, "pid": 1, "tid": 3},
        {"ph": "E", "ts": 30, "pid": 1, "tid": 3},
    ]
    raw = [tw.meta(0, start_time_since_epoch_in_micros=ZERO), tw.meta(1, name="Horovod/x")]
    tw.write_text(root, tw.key(ZERO + 30, kind=tw.HOROVOD), tw.text([*raw, mark, *pair]))
    profiler_writer.write_samples(root, profiler_writer.gpu([10, 90], begin_s=10, every_s=80))
    return root


def test_perfetto_finds_all_events_and_no_error(opened: Query) -> None:
    assert opened(ERRORS) == []
    assert opened("select name, pid from process where name is not null order by pid") == [
        ["Step:ModeKeys.TRAIN", 1],
        ["Forward", 10000],
        ["Horovod/x", 90000],
        ["sys_metrics", 1000000],
        ["sys_metrics_bottlenecks", 1000001],
    ]
    counted = "select count(*), sum(dur) from slice where name like 'fc%'"
    assert opened(counted) == [[40, 40 * 50 * 1000]]
    assert opened("select ts, dur from slice where name = 'ALLREDUCE'") == [
        [(ZERO + 10) * 1000, 20_000]
    ]
    assert opened("select value from counter order by ts") == [[10], [90]]
    marks = "select name from slice where name in ('CYCLE', 'sys_metrics_bottlenecks') order by 1"
    assert opened(marks) == [["CYCLE"], ["sys_metrics_bottlenecks"]]
    threads = "select distinct thread.name from thread join thread_track using (utid) join slice on"
    rows = opened(f"{threads} slice.track_id = thread_track.id where slice.name = 'fc0' order by 1")
    assert rows == [["algo-1-11_0"], ["algo-2-12_0"]]
