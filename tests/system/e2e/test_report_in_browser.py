"""The report in a real browser: read, pointed at, narrowed and printed; nothing is fetched."""

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import chromium
import pytest
import reports

from builtin_rules import RULES
from builtin_rules.profiler_table import PROFILER_RULES
from rule_runner.commands.check.command import check_trials
from rule_runner.config.request import EvaluationRequest
from rule_runner.report import write_report
from rule_runner.results.schema import Evidence

HOSTILE: Final = (
    "</script></title></desc><script>window.hit = 1</script>"
    "<img src=x onerror='window.hit = 1'>\u202e\x1b" + "x" * 120
)
STEPS: Final = range(0, 20_000, 20)
LINES: Final = 30
MANY_RULES: Final = [*RULES, *PROFILER_RULES][:30]


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a report on two runs: large, hostile, with every kind of verdict."""
    folder = tmp_path_factory.mktemp("results")
    lines = [
        reports.series(
            {step: math.exp(-step / 700 / (n + 1)) for step in STEPS},
            met=[step for step in STEPS if math.exp(-step / 700 / (n + 1)) < 1e-7],
            tensor=f"layer{n}/{HOSTILE}",
        )
        for n in range(LINES)
    ]
    found = [Evidence(step, HOSTILE, "worker_0", 1e-8, 1e-7, HOSTILE) for step in range(100)]
    first = reports.result(outcome="IssuesFound", step=20, evidence=found, trial=f"/runs/{HOSTILE}")
    reports.save(folder / "first", first, reports.measurements(*lines))
    for name, outcome in [("Quiet", "NotEvaluated"), ("Fine", "NoIssuesFound"), ("Bad", "Error")]:
        one = reports.result(name, outcome, status_details=f"Because of {HOSTILE}.")
        reports.save(folder / "second" / name, one, reports.measurements(lines[0]))
    return write_report(folder, HOSTILE)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium.started() as found:
        yield found


class Opened:
    """The report, opened; with what the browser fetched and complained about."""

    def __init__(self, browser: Any, path: Path, **context: Any) -> None:
        self.context = browser.new_context(**context)
        self.page = self.context.new_page()
        self.fetched: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda one: self.fetched.append(one.url))
        self.page.on("console", lambda one: self.complaints.append(one.text))
        self.page.on("pageerror", lambda one: self.complaints.append(str(one)))
        self.page.goto(path.as_uri())


@pytest.fixture(params=["light", "dark"])
def opened(browser: Any, page_file: Path, request: pytest.FixtureRequest) -> Iterator[Opened]:
    one = Opened(browser, page_file, color_scheme=request.param)
    yield one
    one.context.close()


def test_nothing_is_fetched_and_nothing_of_a_stranger_runs(opened: Opened, page_file: Path) -> None:
    opened.page.locator("summary").last.click()
    assert opened.fetched == [page_file.as_uri()]
    assert opened.complaints == []
    assert opened.page.evaluate("window.hit") is None
    assert opened.page.locator("img").count() == 0
    assert opened.page.locator("script").count() == 1 + opened.page.locator("figure").count()


def test_verdicts_are_read(opened: Opened) -> None:
    page = opened.page
    assert page.locator(".tally li").all_inner_texts() == [
        *("Issues found 1", "Error 1", "Not evaluated 1", "No issues found 1"),
    ]
    names = page.locator("article h3").all_text_contents()
    assert names == ["VanishingGradient", "Bad", "Quiet", "Fine"]
    callout = page.locator("article .callout.NotEvaluated")
    assert callout.is_visible()
    said = (callout.text_content() or "").strip()
    assert said.startswith(
        "No step was judged, so the training may still be faulty. Because of </script>"
    )
    cell = page.get_by_role("row").filter(has_text="second").get_by_role("link", name="Error")
    assert cell.count() == 1
    # A column of it would say nothing of any run.
    assert page.get_by_text("Not evaluated on any run: Quiet.").is_visible()


def test_colours_follow_the_system(browser: Any, page_file: Path) -> None:
    seen = []
    for scheme in ("light", "dark"):
        one = Opened(browser, page_file, color_scheme=scheme)
        seen.append(one.page.evaluate("getComputedStyle(document.body).backgroundColor"))
        one.context.close()
    assert seen == ["rgb(244, 245, 247)", "rgb(13, 17, 22)"]


def test_a_chart_is_read_by_pointing(opened: Opened) -> None:
    box = opened.page.locator(".box").first
    place = box.bounding_box()
    assert place is not None
    box.hover(position={"x": 0.5 * place["width"], "y": 0.5 * place["height"]})
    said = opened.page.locator(".said").first
    assert "limit 1e-7" in said.inner_text()
    assert said.inner_text().startswith("Step ")
    assert opened.page.locator(".cursor").first.is_visible()


def test_a_line_is_chosen_and_read_with_the_keyboard(opened: Opened) -> None:
    page = opened.page
    button = page.locator("figure button").nth(1)
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-pressed") == "true"
    assert page.locator(".line.chosen").get_attribute("data-line") == "1"
    page.locator(".box").first.focus()
    page.keyboard.press("End")
    assert page.locator(".said").first.inner_text().startswith("Step 19,980: ")
    page.keyboard.press("Home")
    assert page.locator(".said").first.inner_text().startswith("Step 0: 1, limit 1e-7. layer1")
    page.keyboard.press("ArrowRight")
    assert not page.locator(".said").first.inner_text().startswith("Step 0:")
    button.click()
    assert page.locator(".line.chosen").count() == 0


def test_charts_have_names_for_screen_readers(opened: Opened) -> None:
    chart = opened.page.get_by_role("img", name="mean |gradient| over the steps")
    assert chart.count() == 4
    for table in opened.page.locator("table").all():
        assert table.locator("caption").count() == 1


@pytest.fixture(scope="module")
def many_rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a report on four runs of 30 rules, a third of which was not evaluated."""
    folder = tmp_path_factory.mktemp("many")
    outcomes = ("NotEvaluated", "NoIssuesFound", "IssuesFound")
    for run in range(4):
        for number, name in enumerate(MANY_RULES):
            outcome = outcomes[(number + run) % 3]
            details = f"It looked for {name}." if outcome == "NotEvaluated" else None
            one = reports.result(name, outcome, status_details=details, trial=f"/runs/run-{run}")
            reports.save(folder / f"run{run}" / name, one)
    return write_report(folder, "4 runs")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_the_table_of_many_runs_with_30_rules_fits(
    browser: Any, many_rules: Path, width: int, scheme: Any
) -> None:
    one = Opened(browser, many_rules, viewport={"width": width, "height": 800}, color_scheme=scheme)
    sizes = "e => [e.scrollWidth, e.clientWidth]"
    assert one.page.evaluate("document.documentElement.scrollWidth") == width
    held, seen = one.page.locator(".scroll").evaluate(sizes)
    assert held == seen
    rows = one.page.locator(".matrix tbody tr")
    assert rows.count() == 4
    for row in rows.all():
        issues = row.locator("a.IssuesFound")
        assert issues.count() == 10
        for link in issues.all():
            box = link.bounding_box()
            assert box is not None
            assert 0 <= box["x"] < box["x"] + box["width"] <= width
    # A narrow screen names what needs a reader, and counts the rest.
    narrow = width == 390
    assert rows.first.locator(".rule").first.is_visible() is False
    assert rows.first.locator("a.IssuesFound .rule").first.is_visible() is narrow
    assert rows.first.locator(".counts").is_visible() is narrow
    assert rows.first.locator("a.NoIssuesFound").first.is_visible() is not narrow
    if narrow:
        assert rows.first.locator(".counts").inner_text().split() == ["?", "10", "✓", "10"]
    one.context.close()


def test_the_table_of_many_runs_fits_paper(browser: Any, many_rules: Path) -> None:
    one = Opened(browser, many_rules, viewport={"width": 680, "height": 1000})
    one.page.emulate_media(media="print")
    assert one.page.evaluate("document.documentElement.scrollWidth") == 680
    assert one.page.locator(".matrix").evaluate("e => e.scrollWidth") <= 680
    one.context.close()


def test_what_was_not_evaluated_is_one_line_behind_the_verdicts(
    browser: Any, many_rules: Path
) -> None:
    one = Opened(browser, many_rules, java_script_enabled=False)
    run = one.page.locator("section.run").first
    assert run.locator(".verdicts tbody tr").count() == 20
    badges = run.locator(".verdicts .badge").all_inner_texts()
    assert badges == ["✕ Issues found"] * 10 + ["✓ No issues found"] * 10
    summary = run.locator("details.folded > summary")
    names = ", ".join(sorted(MANY_RULES[::3]))
    assert summary.inner_text() == f"10 rules were not evaluated: {names}"
    reason = run.get_by_text("It looked for AllZero.")
    assert not reason.is_visible()
    summary.click()
    assert reason.is_visible()
    assert run.locator("article").count() == 20
    one.context.close()


@pytest.mark.parametrize("width", [320, 375, 768])
def test_no_page_is_wider_than_its_screen(browser: Any, page_file: Path, width: int) -> None:
    one = Opened(browser, page_file, viewport={"width": width, "height": 700})
    one.page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert one.page.evaluate("document.documentElement.scrollWidth") == width
    box = one.page.locator(".box").first.bounding_box()
    assert box is not None
    assert 0.6 * width < box["width"] < width
    one.context.close()


def test_a_link_opens_what_is_folded_up(browser: Any, page_file: Path) -> None:
    one = Opened(browser, page_file)
    job = one.page.locator("article > details").last
    job.evaluate("(node) => { node.open = false }")
    one.page.locator(f"a[href='#{job.get_attribute('id')}']").first.click()
    chromium.sync_api.expect(job).to_have_attribute("open", "")
    one.context.close()


def test_overview_of_runs_in_other_formats(browser: Any, tmp_path: Path) -> None:
    rows = [f"{step},{2 / (step + 1) if step != 5 else 'nan'}\n" for step in range(20)]
    runs = tmp_path / "runs"
    for name in ("lightning_logs/version_0/metrics.csv", "sweep/run1.csv", "sweep/run2.csv"):
        path = runs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("step,loss\n" + "".join(rows))
        os.utime(path, (0, 1))
    request = EvaluationRequest(wait=False, output=str(tmp_path / "out"), format="json")
    check_trials([str(runs)], request)
    opened = Opened(browser, tmp_path / "out" / "report.html")
    table = opened.page.locator("table").first
    text = table.inner_text()
    assert all(name in text for name in ("version_0", "run1.csv", "run2.csv", "ExplodingTensor"))
    assert not opened.complaints
    opened.page.get_by_role("link", name="run1.csv").first.click()
    body = opened.page.locator("body")
    chromium.sync_api.expect(body).to_contain_text("ExplodingTensor")
    opened.context.close()


def test_everything_is_on_paper(browser: Any, page_file: Path) -> None:
    one = Opened(browser, page_file)
    assert one.page.pdf(format="A4").startswith(b"%PDF")
    one.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    jobs = one.page.locator("article > details")
    assert [job.get_attribute("open") for job in jobs.all()] == [""] * 4
    one.page.emulate_media(media="print", color_scheme="dark")
    ink = one.page.evaluate("getComputedStyle(document.body).color")
    assert ink == "rgb(0, 0, 0)"
    one.context.close()
