"""The profiler report in a real browser: light and dark, wide, narrow and on paper."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import chromium
import numpy as np
import pytest
from click.testing import CliRunner
from profiler_writer import BEGIN_US, cpu, gpu, io_wait, memory, write_samples
from timeline_writer import Event, step, write

from rule_runner.cli import main

HOSTILE: Final = "</script><script>window.hit = 1</script><img src=x onerror='window.hit = 1'>"
SAMPLES: Final = 12 * 120


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report on a job of three nodes whose GPUs wait, with a stranger's names."""
    folder = tmp_path_factory.mktemp("profile")
    at = np.arange(SAMPLES)
    for node in ("algo-1", "algo-2", "algo-3"):
        write_samples(
            folder,
            *(cpu(np.where(at % 3, 95.0, 20.0), f"cpu{one}", node=node) for one in range(2)),
            io_wait(np.where(at % 2, 60.0, 5.0), node=node),
            gpu(np.full(SAMPLES, 5.0), node=node),
            memory(np.full(SAMPLES, 9.0), node=node),
            gpu(np.full(SAMPLES, 60.0), f"gpu1{HOSTILE}", node=node),
        )
    events = []
    for number in range(300):
        begin = 20_000_000 + 2_000_000 * number
        events += [
            step(number, begin, 1_900_000 if number % 20 == 7 else 300_000),
            Event("cpu_functions", f"aten::{'x' * 150}{HOSTILE}", begin, 100_000),
        ]
    write(folder, events, start_us=BEGIN_US)
    (folder / "system" / "training_job_end.ts").touch()
    output = str(folder / "out")
    done = CliRunner().invoke(main, ["profile", "report", str(folder), "-o", output])
    assert done.exit_code == 0, done.output
    return Path(done.stdout.removeprefix("Report: ").strip())


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium.started() as found:
        yield found


def opened(browser: Any, path: Path, **context: Any) -> Any:
    page = browser.new_context(**context).new_page()
    page.fetched, page.complaints = [], []
    page.on("request", lambda one: page.fetched.append(one.url))
    page.on("console", lambda one: page.complaints.append(one.text))
    page.goto(path.as_uri())
    return page


def test_it_is_read_without_network_or_script(browser: Any, page_file: Path) -> None:
    page = opened(browser, page_file)
    assert (page.fetched, page.complaints) == ([page_file.as_uri()], [])
    assert page.evaluate("window.hit") is None
    assert page.locator("script, img").count() == 0
    first = page.locator(".advice li").first.inner_text()
    assert first.startswith("Reduce the load of the processors: GPUs wait for them.\n")
    assert "CPUBottleneck_threshold sets the limit." in first
    headings = page.locator("h2").all_inner_texts()
    assert headings[:4] == ["What to do first", "Job", "Resource usage", "Steps"]
    page.get_by_role("navigation").get_by_role("link", name="CPUBottleneck").click()
    assert page.url.endswith("#CPUBottleneck")


def test_charts_of_further_nodes_are_folded_away(browser: Any, page_file: Path) -> None:
    page = opened(browser, page_file)
    assert page.locator("details").count() == 3
    assert page.locator("details[open]").count() == 2
    chart = page.get_by_role("img", name="gpu0 of algo-3")
    assert not chart.is_visible()
    page.locator("summary").last.click()
    assert chart.is_visible()
    assert chart.locator("polyline").count() == 2
    assert chart.locator("polygon").count() == 2


@pytest.mark.parametrize("width", [320, 390, 768, 1400])
def test_no_page_is_wider_than_its_screen(browser: Any, page_file: Path, width: int) -> None:
    page = opened(browser, page_file, viewport={"width": width, "height": 700})
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    box = page.locator("figure svg").first.bounding_box()
    assert box is not None
    assert 0.3 * width < box["width"] < width


def test_colours_follow_the_system_but_not_on_paper(browser: Any, page_file: Path) -> None:
    back = "getComputedStyle(document.body).backgroundColor"
    dark = opened(browser, page_file, color_scheme="dark")
    light = opened(browser, page_file, color_scheme="light")
    assert (dark.evaluate(back), light.evaluate(back)) == ("rgb(21, 24, 28)", "rgb(255, 255, 255)")
    dark.emulate_media(media="print", color_scheme="dark")
    assert dark.evaluate(back) == "rgb(255, 255, 255)"
    assert dark.pdf(format="A4").startswith(b"%PDF")


def test_a_finding_is_marked_in_the_charts(browser: Any, page_file: Path) -> None:
    page = opened(browser, page_file)
    bands = page.locator(".band:visible")
    assert bands.count() == 0
    moment = page.locator("#CPUBottleneck .moments li").first
    text = moment.inner_text()
    command = f"rule-runner profile timeline {page_file.parents[2]} -o trace.json "
    assert f"{command}--start 2020-09-13T12:3" in text
    moment.get_by_role("link").click()
    assert page.url.endswith("#at-CPUBottleneck-1")
    assert bands.count() == page.locator("#usage figure:visible, #steps figure:visible").count()
    chart = page.get_by_role("img", name="gpu0 of algo-1")
    box, band = chart.bounding_box(), chart.locator(".band").bounding_box()
    assert box is not None
    assert band is not None
    # Window 8 of 12 minutes, in a drawing whose axis is 480 - 62 - 12 units wide.
    minutes = (band["x"] - box["x"]) / box["width"] * 480
    assert minutes == pytest.approx(62 + 8 / 12 * 406, abs=3)
    assert band["width"] / box["width"] * 480 == pytest.approx(406 / 12, abs=3)
    assert page.complaints == []
