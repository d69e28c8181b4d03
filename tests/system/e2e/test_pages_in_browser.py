"""The pages of `serve` in a real browser: read, filtered, driven by keyboard, live, on a phone."""

import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import chromium
import pytest
import reports
import served
from tabs import WAIT_S, Tab, opened

from rule_runner.index.database import WatchDatabase
from rule_runner.results.schema import Evidence

expect = chromium.sync_api.expect

HOSTILE: Final = "<img src=x onerror='window.hit=1'>"
PHONE: Final = {"width": 360, "height": 740}
ROWS: Final = 60
RETRY_MS: Final = 30_000
SILENCE_MS: Final = 45_000
UNFOLD: Final = "document.querySelectorAll('details').forEach(node => { node.open = true })"


class Fleet:
    """The trials that the pages show, and their files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.database = WatchDatabase.empty(folder / "index.sqlite")
        names = ["AllZero", "LossSpike", "VanishingGradient"]
        for number in range(ROWS):
            outcome = "IssuesFound" if number % 10 == 0 else "NoIssuesFound"
            rules = [served.rule(names[0], "NotEvaluated" if number % 2 else "NoIssuesFound")]
            rules += [served.rule(names[1]), served.rule(names[2], outcome)]
            served.add(self.database, f"/runs/sweep/trial-{number:03d}", rules)
        self.healthy = self._log("healthy", 0.9)
        self.other = self._log("other", 0.8)
        self.hostile = self._judged(HOSTILE)

    def _log(self, name: str, decay: float) -> int:
        folder = self.folder / name
        folder.mkdir()
        rows = [f"{step},{decay**step},{0.5 + step / 100}\n" for step in range(1, 41)]
        (folder / "log.csv").write_text("step,loss,val_accuracy\n" + "".join(rows))
        rules = [served.rule("LossSpike")]
        return served.add(self.database, str(folder), rules, state="running").id

    def _judged(self, name: str) -> int:
        output = self.folder / "out"
        muted = Evidence(40, "gradient/b", None, 1e-9, 1e-7, None, muted="frozen on purpose")
        found = [Evidence(20, name, "worker_0", 1e-8, 1e-7, name), muted]
        result = reports.result(
            outcome="IssuesFound", step=20, evidence=found, findings_count=1, notes=[name]
        )
        lines = [reports.series({0: 1e-3, 20: 1e-8, 40: 1e-9}, met=[20], tensor=name)]
        reports.save(output, result, reports.measurements(*lines))
        rules = [served.rule(outcome="IssuesFound", step=20, findings=1), served.rule("LossSpike")]
        fields = {"output": str(output), "problem": name}
        return served.add(self.database, f"/runs/{name}/{name}", rules, **fields).id

    def append(self, name: str, step: int, loss: float) -> None:
        with (self.folder / name / "log.csv").open("a") as stream:
            stream.write(f"{step},{loss},0.75\n")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    fleet = Fleet(tmp_path_factory.mktemp("fleet"))
    yield fleet
    fleet.database.close()


@pytest.fixture(scope="module")
def server(fleet: Fleet) -> Iterator[served.Served]:
    with served.served(fleet.folder / "index.sqlite") as server:
        yield server


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium.started() as browser:
        yield browser


@pytest.fixture
def tab(browser: Any, server: served.Served) -> Iterator[Tab]:
    with opened(browser, server) as tab:
        yield tab


def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition of the server holds."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.02)


def pages(fleet: Fleet) -> list[str]:
    return [
        "/trials",
        "/trials?text=nothing",
        f"/trials/{fleet.hostile}",
        f"/trials/{fleet.healthy}?with={fleet.other},{fleet.hostile}",
        "/rules",
        "/rules/VanishingGradient",
        "/login",
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_accessible_and_fetches_nothing_else(
    browser: Any, server: served.Served, fleet: Fleet, scheme: str
) -> None:
    name = "axe_playwright_python.sync_playwright"
    axe = pytest.importorskip(name, reason="axe is not installed.")
    with opened(browser, server, color_scheme=scheme) as tab:
        for address in pages(fleet):
            page = tab.open(address)
            page.evaluate(UNFOLD)
            result = axe.Axe().run(page)
            assert result.violations_count == 0, f"{address}: {result.generate_report()}"
            assert page.evaluate("window.hit") is None, address
            assert page.locator("main img").count() == 0, address
        assert axe.Axe().run(tab.open("/rules/Nothing")).violations_count == 0
        tab.complaints.clear()  # the browser logs that this page is not there
    assert [url for url in tab.fetched if not url.startswith(server.url)] == []


def test_no_page_is_wider_than_a_phone(browser: Any, server: served.Served, fleet: Fleet) -> None:
    with opened(browser, server, viewport=PHONE) as tab:
        for address in pages(fleet):
            page = tab.open(address)
            page.evaluate(UNFOLD)
            width = page.evaluate("document.documentElement.scrollWidth")
            assert width == PHONE["width"], address
        page = tab.open("/trials")
        assert not page.locator("select[name=state]").is_visible()
        page.get_by_role("button", name="Filters").click()
        assert page.locator("select[name=state]").is_visible()


def test_the_filter_is_in_the_address_and_the_history(tab: Tab) -> None:
    page = tab.open("/trials?sort=-path")
    page.keyboard.press("/")
    page.keyboard.type("trial-01")
    expect(page.locator("#count")).to_have_text("10 of 63 trials")
    assert page.url.endswith("/trials?text=trial-01&sort=-path")
    page.keyboard.press("Enter")
    expect(page.locator("#rows > tr").first).to_be_focused()
    page.get_by_role("link", name="Issues found 7").click()
    expect(page.locator("#rows > tr")).to_have_count(1)
    page.reload()
    assert page.locator("#search").input_value() == "trial-01"
    assert page.locator("select[name=outcome]").input_value() == "IssuesFound"
    page.go_back()
    expect(page.locator("#rows > tr")).to_have_count(10)
    page.locator("select[name=rule]").select_option("AllZero")
    page.locator("select[name=rule_outcome]").select_option("NotEvaluated")
    expect(page.locator("#rows > tr")).to_have_count(5)
    assert "rule=AllZero&rule_outcome=NotEvaluated" in page.url


def test_the_table_by_keyboard_only(tab: Tab) -> None:
    page = tab.open("/trials?text=trial-")
    rows = page.locator("#rows > tr")
    for key in ("j", "ArrowDown", "j", "k"):
        page.keyboard.press(key)
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press("x")
    page.keyboard.press("End")
    expect(rows.last).to_be_focused()
    expect(rows.last).to_be_in_viewport()
    page.keyboard.press("x")
    expect(page.locator("#picked")).to_contain_text("2 selected")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("c")
    page.wait_for_url("**/trials/2?with=60")
    names = page.locator("#compare thead th").all_inner_texts()[1:]
    assert [name.strip() for name in names] == ["trial-001", "trial-059"]
    page.keyboard.press("g")
    page.keyboard.press("t")
    page.wait_for_url("**/trials")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/trials/*")


def test_cells_change_in_place(tab: Tab, server: served.Served, fleet: Fleet) -> None:
    page = tab.open("/trials?text=trial-&sort=path")
    expect(page.locator("#live")).to_have_attribute("data-state", "live")
    row = page.locator("#trial-33")
    row.focus()
    page.keyboard.press("x")
    scroll = page.locator("#results").evaluate(
        "node => { node.scrollTop = 700; return node.scrollTop }"
    )
    page.evaluate("window.row = document.getElementById('trial-33')")
    fleet.database.set_rules(33, [served.rule("LossSpike", "IssuesFound", step=77)])
    fleet.database.update(33, outcome="IssuesFound")
    new = served.add(fleet.database, "/runs/sweep/trial-999", [served.rule("LossSpike")])
    server.emit("trial", id=33, state="judged", outcome="IssuesFound")
    server.emit("trial", id=new.id, state="judged", outcome="NoIssuesFound")
    expect(row.locator("a[data-rule=LossSpike]")).to_have_attribute(
        "aria-label", "LossSpike: Warning at step 77, 3 findings"
    )
    expect(page.locator(f"#trial-{new.id}")).to_have_count(1)
    expect(row).to_be_focused()
    expect(row).to_have_attribute("aria-selected", "true")
    assert page.locator("#results").evaluate("node => node.scrollTop") == scroll
    assert page.evaluate("window.row === document.getElementById('trial-33')")


def test_rows_move_with_their_focus(tab: Tab, server: served.Served, fleet: Fleet) -> None:
    page = tab.open("/trials?text=trial-02&sort=-changed")
    expect(page.locator("#live")).to_have_attribute("data-state", "live")
    row = page.locator("#trial-25")
    row.focus()
    fleet.database.update(25, changed_at=served.NOW + 10)
    server.emit("trial", id=25, state="judged", outcome="NoIssuesFound")
    expect(page.locator("#rows > tr").first).to_have_id("trial-25")
    expect(row).to_be_focused()
    others = [f"trial-{number}" for number in range(21, 31) if number != 25]
    ids = page.locator("#rows > tr").evaluate_all("rows => rows.map(row => row.id)")
    assert ids == ["trial-25", *others]


def test_a_lost_connection_is_said_and_made_up_for(
    tab: Tab, server: served.Served, fleet: Fleet
) -> None:
    page = tab.open("/trials?text=trial-04")
    mark = page.locator("#live")
    expect(mark).to_have_attribute("data-state", "live")
    server.is_down = True
    server.cut()
    expect(mark).to_have_text("Connection lost, retrying")
    fleet.database.update(41, outcome="Error")
    server.is_down = False
    expect(mark).to_have_attribute("data-state", "live")
    expect(page.locator("#trial-41 .badge")).to_contain_text("Error")
    tab.complaints.clear()  # the browser logs failed requests


def test_a_page_without_shared_workers_tries_again(
    tab: Tab, server: served.Served, fleet: Fleet
) -> None:
    tab.page.add_init_script("delete window.SharedWorker")
    tab.page.clock.install()
    server.is_down = True
    page = tab.open("/trials?text=trial-04")
    mark = page.locator("#live")
    expect(mark).to_have_text("Connection lost, retrying")
    fleet.database.update(42, outcome="Error")
    server.is_down = False
    page.clock.fast_forward(RETRY_MS)
    expect(mark).to_have_attribute("data-state", "live")
    expect(page.locator("#trial-42 .badge")).to_contain_text("Error")
    tab.complaints.clear()  # the browser logs failed requests


def test_a_stream_that_is_silent_is_not_live(tab: Tab, server: served.Served) -> None:
    tab.page.add_init_script("delete window.SharedWorker")
    tab.page.clock.install()
    page = tab.open("/trials?text=trial-04")
    mark = page.locator("#live")
    expect(mark).to_have_attribute("data-state", "live")
    server.is_silent = True
    page.clock.fast_forward(SILENCE_MS)
    expect(mark).to_have_text("Connection lost, retrying")
    page.clock.fast_forward(RETRY_MS)
    expect(mark).to_have_attribute("data-state", "live")


def test_a_page_beside_a_live_one_misses_no_change(
    tab: Tab, server: served.Served, fleet: Fleet
) -> None:
    expect(tab.open("/trials?text=trial-04").locator("#live")).to_have_text("Live")
    page = tab.context.new_page()

    def change_after_rendering(route: Any) -> None:
        fleet.database.update(43, outcome="Error")
        server.emit("trial", id=43, state="judged", outcome="Error")
        route.continue_()

    page.route("**/live.js", change_after_rendering)
    page.goto("/trials?text=trial-04")
    expect(page.locator("#trial-43 .badge")).to_contain_text("Error")


def test_curves_grow(tab: Tab, server: served.Served, fleet: Fleet) -> None:
    page = tab.open(f"/trials/{fleet.healthy}")
    expect(page.locator("#live")).to_have_attribute("data-state", "live")
    loss = page.get_by_role("figure").filter(has_text="Loss").locator("tbody td").first
    before = loss.inner_text()
    fleet.append("healthy", 50, 0.125)
    fleet.append("healthy", 60, 0.0625)
    page.wait_for_timeout(1100)  # the service looks at a trial once a second
    server.emit("series", id=fleet.healthy, last_step=60)
    expect(loss).to_have_text("0.125")
    assert before != "0.125"
    assert page.locator("canvas").count() == 2


def test_charts_by_keyboard_and_their_tools_in_the_address(tab: Tab, fleet: Fleet) -> None:
    page = tab.open(f"/trials/{fleet.hostile}")
    plot = page.locator(".plot").first
    plot.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    said = page.locator(".chart .said").first
    expect(said).to_contain_text("Step 20: VanishingGradient")
    expect(said).to_contain_text("Limit 1e-7.")
    expect(page.locator(".legend thead th").nth(1)).to_have_text("step 20")
    page.keyboard.press("+")
    expect(page.get_by_role("button", name="All steps")).to_be_visible()
    page.keyboard.press("0")
    page.keyboard.press("l")
    page.keyboard.press("s")
    page.wait_for_url("**?log=1&smooth=0.2")
    page.reload()
    assert page.locator("#log").is_checked()
    page.keyboard.press("n")
    expect(page.locator("#findings button").first).to_be_focused()
    page.locator(".legend button").first.click()
    expect(page.locator(".legend button").first).to_have_attribute("aria-pressed", "false")


def test_runs_are_laid_over_and_compared(tab: Tab, fleet: Fleet) -> None:
    page = tab.open(f"/trials/{fleet.other}")
    overlay = page.locator("#overlay")
    overlay.fill("healthy")
    overlay.press("Enter")
    page.wait_for_url(f"**/trials/{fleet.other}?with={fleet.healthy}")
    row = page.locator("#compare-values tr").filter(has_text="loss")
    expect(row.locator("td")).to_have_count(2)
    expect(row.locator("td").first).to_contain_text("step 39")
    page.get_by_role("link", name="Remove healthy").click()
    page.wait_for_url(f"**/trials/{fleet.other}")


def test_findings_are_acknowledged(tab: Tab, server: served.Served, fleet: Fleet) -> None:
    page = tab.open(f"/trials/{fleet.hostile}")
    page.locator("#jobs").get_by_role("button", name="Acknowledge").click()
    dialog = page.get_by_role("dialog", name="Acknowledge")
    until_day = datetime.now(UTC).date().replace(year=2099).isoformat()
    dialog.get_by_label("Reason").fill("known since Monday")
    dialog.get_by_label("Until").fill(until_day)
    dialog.get_by_label("Mute").check()
    dialog.get_by_role("button", name="Acknowledge").click()
    expect(dialog).not_to_be_visible()
    findings = page.locator("#findings button")
    findings.last.click()  # muted by the job file
    assert not page.locator("#finding-actions").is_visible()
    findings.first.click()
    page.keyboard.press("w")  # nothing was said about it
    assert not dialog.is_visible()
    page.keyboard.press("a")
    dialog.get_by_label("Reason").fill("this one too")
    dialog.get_by_role("button", name="Acknowledge").click()
    expect(dialog).not_to_be_visible()
    own = {"reason": "known since Monday", "until": until_day, "mute": True}
    number = findings.first.get_attribute("data-finding")
    assert server.posted[-2:] == [
        (
            f"{fleet.hostile}:acknowledge",
            {"withdraw": False, "rule": "VanishingGradient", **own},
        ),
        (
            f"{fleet.hostile}:acknowledge",
            {
                "withdraw": False,
                "finding": number,
                "reason": "this one too",
                "until": None,
                "mute": False,
            },
        ),
    ]


def test_ten_tabs_share_one_stream(browser: Any, server: served.Served) -> None:
    until(lambda: server.streams == 0)
    context = browser.new_context(base_url=server.url)
    opened = [context.new_page() for _ in range(10)]
    for page in opened:
        page.goto("/rules")
        expect(page.locator("#live")).to_have_attribute("data-state", "live")
    assert server.streams == 1
    opened[0].close()
    expect(opened[9].locator("#live")).to_have_attribute("data-state", "live")
    assert server.streams == 1
    context.close()
    until(lambda: server.streams == 0)


def test_the_theme_is_chosen_and_kept(tab: Tab) -> None:
    page = tab.open("/rules")
    seen = []
    for _ in range(3):
        seen.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.locator("#theme-button").click()
    assert seen == ["rgb(244, 245, 247)", "rgb(244, 245, 247)", "rgb(13, 17, 22)"]
    page.locator("#theme-button").click()
    page.locator("#theme-button").click()
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_rules_are_searched(tab: Tab) -> None:
    page = tab.open("/rules")
    page.keyboard.press("/")
    page.keyboard.type("vanish")
    expect(page.locator("#rules tr:visible")).to_have_count(1)
    assert page.url.endswith("/rules?text=vanish")
    page.get_by_role("link", name="VanishingGradient").click()
    expect(page.locator("#trials [data-worst]").filter(has_text="1e-9")).to_have_count(1)


def test_pages_read_without_scripts(browser: Any, server: served.Served, fleet: Fleet) -> None:
    context = browser.new_context(base_url=server.url, java_script_enabled=False)
    page = context.new_page()
    page.goto("/trials")
    page.locator("#search").fill("trial-01")
    page.get_by_role("button", name="Filter", exact=True).click()
    expect(page.locator("#rows > tr")).to_have_count(10)
    page.goto(f"/trials/{fleet.hostile}")
    assert "frozen on purpose" in page.inner_text("main")
    context.close()
