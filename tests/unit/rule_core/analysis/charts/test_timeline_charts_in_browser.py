"""A chart's page in a real browser: it tells indexes of what is selected, and fetches nothing."""

from pathlib import Path
from typing import Final

import chromium
import profiler_writer as pw
import pytest

from rule_core.analysis.charts.timeline_charts import TimelineCharts
from smdebug.profiler import LocalSystemMetricsReader

pytest.importorskip("bokeh", reason="bokeh is not installed.")

HOSTILE: Final = "</script><img src=x onerror='window.hit = 1'>$$x$$"


def test_a_stretch_is_selected_in_a_page(tmp_path: Path) -> None:
    pw.write(tmp_path, pw.files(pw.cpu(range(100), HOSTILE)))
    charts = TimelineCharts(LocalSystemMetricsReader(tmp_path), None, select_events=["img"])
    page_file = charts.save(tmp_path / "chart.html")
    fetched: list[str] = []
    complaints: list[str] = []
    with chromium.started() as browser:
        page = browser.new_page(color_scheme="dark", viewport={"width": 1000, "height": 400})
        page.on("request", lambda one: fetched.append(one.url))
        page.on("pageerror", lambda one: complaints.append(str(one)))
        page.goto(page_file.as_uri())
        page.get_by_text("Drag over a chart").wait_for()
        canvas = page.locator("canvas").first.bounding_box()
        assert canvas is not None
        y = canvas["y"] + canvas["height"] / 2
        page.mouse.move(canvas["x"] + 0.4 * canvas["width"], y)
        page.mouse.down()
        page.mouse.move(canvas["x"] + 0.6 * canvas["width"], y, steps=4)
        page.mouse.up()
        told = page.get_by_text("Selected indexes: [").text_content()
        hit = page.evaluate("window.hit")
    first, last = numbers_of(told)
    assert 20 < first < last < 80
    assert (fetched, complaints, hit) == ([page_file.as_uri()], [], None)


def numbers_of(text: str) -> tuple[int, int]:
    """Return the two numbers of a text such as ``Selected indexes: [1, 2]``."""
    first, last = text.partition("[")[2].rstrip("]").split(", ")
    return int(first), int(last)
