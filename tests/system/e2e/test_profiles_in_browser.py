"""Profiles on the pages of `serve` in a real browser: live, by keyboard, hostile, on a phone."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import chromium
import profiler_writer
import pytest
import reports
import served
import timeline_writer
from profiler_writer import BEGIN_S, BEGIN_US, MINUTE_US, minute
from tabs import Tab, opened
from timeline_writer import Event, step

from rule_core.profiler.recording.layout import kineto_key
from rule_runner.index.database import WatchDatabase
from rule_runner.results.schema import Evidence, WindowTimes

expect = chromium.sync_api.expect

HOSTILE: Final = "<img src=x onerror='window.hit=1'>"
PHONE: Final = {"width": 360, "height": 740}
UNFOLD: Final = "document.querySelectorAll('details').forEach(node => { node.open = true })"


class Profiles:
    """A training with its profile, and a profile that a stranger wrote."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.profile = folder / "mnist" / "profile"
        profiler_writer.write(self.profile, minute(0, cpu0=50.0, gpu0=5.0))
        self.write_steps(0)
        (folder / "mnist" / "log.csv").write_text("step,loss\n1,0.5\n2,0.25\n")
        start = BEGIN_US + MINUTE_US + 7
        trace = self.profile / kineto_key(9, "0-box", start, start + 9, is_inside=False)
        trace.parent.mkdir(parents=True)
        trace.touch()
        self.database = WatchDatabase.empty(folder / "index.sqlite")
        rules = [served.rule("LossSpike")]
        self.training = served.add(self.database, str(folder / "mnist"), rules, state="running").id
        self.judged = self._judged(str(self.profile), "gpu0")
        hostile = folder / "hostile"
        lines = [profiler_writer.line(n * 1e29, BEGIN_S + n, node=HOSTILE) for n in range(9)]
        broken = b"".join(lines) + b'{"Value": NaN}\n' + lines[0][:30]
        profiler_writer.write(hostile, {profiler_writer.key(BEGIN_S): broken, **minute(1)})
        timeline_writer.write(hostile, [step(1, 0, 9e9, mode=HOSTILE), step(2, 9e9, 5)])
        self.hostile = self._judged(str(hostile), HOSTILE)
        gone = folder / "gone"
        gone.mkdir()
        self.gone = served.add(self.database, str(gone), profiler=True, tensors=False).id
        shutil.rmtree(gone)

    def write_steps(self, number: int) -> None:
        """Write the timeline of a minute with two steps."""
        phases = [Event(name, name, 0, 2e6) for name in ("Forward", "Backward(post-forward)")]
        events = [*phases, step(1, 0, 5e6), step(2, 6e6, 7e6)]
        timeline_writer.write(self.profile, events, start_us=BEGIN_US + number * MINUTE_US)

    def _judged(self, path: str, name: str) -> int:
        output = self.folder / "out" / re.sub(r"\W+", "-", path)
        windows = WindowTimes(BEGIN_US, MINUTE_US)
        found = [Evidence(1, name, "algo-1", 62.5, 50.0, name)]
        more = {"unit": "window", "windows": windows, "findings_count": 1, "trial": path}
        result = reports.result("CPUBottleneck", "IssuesFound", step=1, evidence=found, **more)
        line = reports.series({0: 20.0, 1: 62.5}, 50.0, met=[1], tensor=name)
        reports.save(output, result, reports.measurements(line))
        rules = [served.rule("CPUBottleneck", "IssuesFound", step=1, findings=1)]
        fields = {"output": str(output), "profiler": True, "tensors": False}
        return served.add(self.database, path, rules, **fields).id


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Profiles]:
    profiles = Profiles(tmp_path_factory.mktemp("profiles"))
    yield profiles
    profiles.database.close()


@pytest.fixture(scope="module")
def server(profiles: Profiles) -> Iterator[served.Served]:
    with served.served(profiles.folder / "index.sqlite") as server:
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium.started() as browser:
        yield browser


@pytest.fixture
def tab(browser: Any, server: served.Served) -> Iterator[Tab]:
    with opened(browser, server) as tab:
        yield tab


def chart(page: Any, heading: str) -> Any:
    """Return a chart of the profile by its heading."""
    return page.locator("#profile-charts .chart").filter(
        has=page.locator("strong", has_text=re.compile(f"^{heading}$"))
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_profiles_are_accessible_and_hostile_names_are_text(
    browser: Any, server: served.Served, profiles: Profiles, scheme: str
) -> None:
    name = "axe_playwright_python.sync_playwright"
    axe = pytest.importorskip(name, reason="axe is not installed.")
    with opened(browser, server, color_scheme=scheme, viewport=PHONE) as tab:
        trials = (profiles.judged, profiles.hostile, profiles.gone, profiles.training)
        for trial in trials[:1] if scheme == "dark" else trials:
            page = tab.open(f"/trials/{trial}")
            expect(page.get_by_text("Reading the profile")).to_have_count(0)
            page.evaluate(UNFOLD)
            if page.locator("#findings button").count():
                page.locator("#findings button").first.click()
            result = axe.Axe().run(page)
            assert result.violations_count == 0, f"{trial}: {result.generate_report()}"
            assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
            assert page.evaluate("window.hit") is None
            assert page.locator("main img").count() == 0
    assert [url for url in tab.fetched if not url.startswith(server.url)] == []


def test_a_recording_grows_while_the_page_is_open(
    tab: Tab, server: served.Served, profiles: Profiles
) -> None:
    page = tab.open(f"/trials/{profiles.training}")
    cpu = chart(page, "CPU utilisation")
    expect(cpu.locator("tbody td").first).to_have_text("50")
    expect(chart(page, "Step time").locator("tbody tr")).to_have_count(1)
    phases = chart(page, "Phases of steps, 11-algo-1").locator("tbody th")
    expect(phases).to_have_text(["forward", "backward", "rest"])
    expect(page.locator("#profile-of")).to_contain_text("has 1 finding")
    cpu.scroll_into_view_if_needed()
    canvas = cpu.locator("canvas").element_handle()
    profiler_writer.write(profiles.profile, minute(1, cpu0=80.0, gpu0=90.0, gpu1=33.0))
    server.emit("series", id=profiles.judged, last_step=1)
    expect(cpu.locator("tbody td").first).to_have_text("80")
    expect(chart(page, "GPU utilisation").locator("tbody th")).to_have_text(
        ["algo-1 gpu0", "algo-1 gpu1"]
    )
    assert canvas.is_visible()  # drawn on, not again
    box = cpu.locator(".plot")
    box.focus()
    page.keyboard.press("End")
    expect(cpu.locator(".said")).to_have_text("1:50 (12:28:50 UTC).")
    page.keyboard.press("+")
    expect(page.locator("#reset-times")).to_be_visible()
    assert re.search(r"times=\d+-\d+", page.url)
    page.reload()
    expect(page.locator("#reset-times")).to_be_visible()


def test_a_finding_leads_to_its_time(tab: Tab, profiles: Profiles) -> None:
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = tab.open(f"/trials/{profiles.judged}")
    expect(chart(page, "CPUBottleneck").locator("tbody tr")).to_have_count(1)
    finding = page.locator("#findings button")
    expect(finding.locator(".step")).to_have_text("12:28:00")
    finding.click()
    command = (
        f"rule-runner profile timeline {profiles.profile} -o trace.json "
        "--start 2020-09-13T12:28:00Z --end 2020-09-13T12:29:00Z"
    )
    expect(page.locator("#moment code")).to_have_text(command)
    expect(page.locator("#moment li")).to_contain_text(str(profiles.profile / "kineto"))
    page.get_by_role("button", name="Copy the command").click()
    expect(page.get_by_text("Copied.")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == command
    page.get_by_role("button", name="Zoom the charts").click()
    expect(page.locator("#reset-times")).to_be_visible()
    finding.click()
    expect(page.locator("#moment")).to_be_hidden()
    page.locator("#profile-of a").click()
    expect(page).to_have_url(re.compile(f"/trials/{profiles.training}$"))


def test_a_profile_that_is_gone_or_damaged_says_so(tab: Tab, profiles: Profiles) -> None:
    page = tab.open(f"/trials/{profiles.gone}")
    expect(page.locator("#profile-problem")).to_have_text(
        re.compile(r"^Trial '.*/gone' does not exist\.")
    )
    page = tab.open(f"/trials/{profiles.hostile}")
    expect(page.locator("#profile-problem")).to_contain_text("are no system metrics")
