#!/usr/bin/env python3
"""Measures how long browsers take for the table of trials of `rule-runner serve`.

    .venv/bin/python benchmarks/serve/page_times.py

It needs Playwright, which scripts/test installs, and Chromium: apt-get install chromium. It serves
an index of 1,000 trials by 20 rules, and prints the median of several rounds, in milliseconds:

- when the first text is painted, and when the table is there,
- from a key in the search to the filtered table, with the 80 ms in which further keys are awaited,
- from a change of a trial to its new cell.
"""

import argparse
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

import served

from builtin_rules import RULES
from rule_runner.index.database import WatchDatabase

ISSUE_EVERY = 50  # of the verdicts
TEAMS = ("vision", "language", "speech")
FILTER = """async text => {
    const search = document.getElementById("search"), count = document.getElementById("count");
    const before = count.textContent, began = performance.now();
    search.value = text;
    search.dispatchEvent(new Event("input"));
    while (count.textContent === before || document.querySelector(".busy"))
        await new Promise(done => setTimeout(done, 2));
    await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
    return performance.now() - began;
}"""
CHANGED = """() => new Promise(done => {
    const began = performance.now();
    new MutationObserver((_, observer) => {
        if (!document.querySelector("#trial-1 a[data-rule]")) return;
        observer.disconnect();
        requestAnimationFrame(() => setTimeout(() => done(performance.now() - began)));
    }).observe(document.getElementById("rows"), {childList: true, subtree: true});
})"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
READY = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"


def fill(database: WatchDatabase, trials: int, rules: int) -> None:
    """Write an index in which a few verdicts are issues."""
    for number in range(trials):
        records = [
            served.rule(
                name,
                "IssuesFound" if (number + 7 * place) % ISSUE_EVERY == 0 else "NoIssuesFound",
            )
            for place, name in enumerate(sorted(RULES)[:rules])
        ]
        team = TEAMS[number % len(TEAMS)] if number else "first"
        served.add(database, f"/data/runs/{team}/sweep-{number // 25}/run-{number:05d}", records)


def rounds(browser: Any, server: served.Served, database: WatchDatabase) -> Iterator[list[float]]:
    """Yield the times of one round after the other."""
    page = browser.new_context(viewport={"width": 1440, "height": 900}).new_page()
    while True:
        database.set_rules(1, [served.rule("AllZero")])
        page.goto(f"{server.url}/trials")
        page.wait_for_selector("#live[data-state=live]")
        page.wait_for_timeout(1500)  # the table is looked at again when the stream is open
        times = [page.evaluate(PAINT), page.evaluate(READY)]
        times += [page.evaluate(FILTER, text) for text in ("language", "run-00007")]
        page.evaluate(FILTER, "")
        page.wait_for_timeout(1500)
        page.evaluate(f"() => {{ window.changed = ({CHANGED})(); }}")
        database.set_rules(1, [served.rule("AllZero", "IssuesFound")])
        server.emit("trial", id=1, state="judged", outcome="IssuesFound")
        times.append(page.evaluate("window.changed"))
        yield times


def main() -> int:
    """Measure, and print the medians."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--rules", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    if browser_path is None:
        sys.stderr.write("Chromium is not installed: on Debian, 'apt-get install chromium'.\n")
        return 1
    with (
        TemporaryDirectory() as folder,
        WatchDatabase.empty(Path(folder) / "index.sqlite") as database,
        sync_playwright() as playwright,
    ):
        fill(database, options.trials, options.rules)
        browser = playwright.chromium.launch(
            executable_path=browser_path,
            chromium_sandbox=os.geteuid() != 0,  # root of a container has no sandbox
        )
        with served.served(database.path) as server:
            measured = rounds(browser, server, database)
            times = [next(measured) for _ in range(options.rounds)]
            browser.close()
    names = ("first paint", "table ready", "filter to many", "filter to one", "cell changed")
    for name, values in zip(names, zip(*times, strict=True), strict=True):
        print(f"{name:15} {median(values):6.0f} ms  ({min(values):.0f} to {max(values):.0f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
