#!/usr/bin/env python3
"""Measures `rule-runner serve` over a long time: whether anything grows that should not.

    .venv/bin/python benchmarks/serve/soak.py

It needs Playwright, which scripts/test installs, and Chromium. The command serves a folder in which
trials appear, grow and get findings. Ten clients follow the event stream, and a browser shows the
table and the page of a trial that grows. It prints a line each 30 s: memory, threads and open files
of the service, and the heap and the nodes of both pages after their garbage was collected. Then it
prints by how much each figure has changed from the second quarter of the time to the last one.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from playwright.async_api import CDPSession, Page, async_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from serve_process import browser_options, entries, memory_mb
from serving import Serving, write

IGNORED = 300  # trials without rules, which fill the table from the start
ROWS = 60  # of a new trial
ROWS_EACH_S = 10  # of one that grows
NEW_EACH_S = 20
SAMPLE_S = 30.0
CLIENTS = 10
NAMES = (
    *("seconds", "MB", "threads", "files", "trials", "events"),
    *("table MB", "nodes", "trial MB", "nodes"),
)
CONFIG = """
roots: [runs]
max_concurrent: 3
quiet_after: 20s
judge:
  - {trials: "*/old-*", ignore: true}
  - {trials: "*", rules: [LossNotDecreasing, ExplodingTensor, LossSpike]}
"""


class Work:
    """Writes trials while the service judges them.

    Attributes
    ----------
    new
        How many trials have appeared.
    """

    def __init__(self, folder: Path) -> None:
        self._runs = folder / "runs"
        self.new = 0
        self._rows = 0
        (folder / "fleet.yaml").write_text(CONFIG)
        for number in range(IGNORED):
            write(self._runs / f"old-{number:03}", rows=1)
        self.grow()

    def grow(self) -> None:
        """Let the trials that grow have the rows of a second."""
        for name in ("growing-a", "growing-b"):
            write(self._runs / name, ROWS_EACH_S, first=self._rows)
        self._rows += ROWS_EACH_S

    async def go_on(self) -> None:
        """Write a trial now and then, and rows each second."""
        began = time.monotonic()
        while True:
            await asyncio.sleep(1)
            self.grow()
            if time.monotonic() - began > NEW_EACH_S * (self.new + 1):
                self.new += 1
                write(self._runs / f"new-{self.new:04}", ROWS)


async def follow(host: str, port: int, counts: list[int]) -> None:
    """Follow the event stream, and count its events."""
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(f"GET /api/v1/events HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    try:
        while line := await reader.readline():
            counts[0] += line.startswith(b"event: ")
    finally:
        writer.close()


async def page_figures(session: CDPSession) -> list[float]:
    """Return the heap of a page in MB, and its nodes, after its garbage was collected."""
    await session.send("HeapProfiler.collectGarbage")
    answer: dict[str, Any] = await session.send("Performance.getMetrics")
    figures = {metric["name"]: metric["value"] for metric in answer["metrics"]}
    return [figures["JSHeapUsedSize"] / 2**20, figures["Nodes"]]


async def session_of(page: Page, address: str) -> CDPSession:
    """Open an address in a page, and return what measures the page."""
    await page.goto(address)
    await page.wait_for_selector("#live[data-state=live]")
    session = await page.context.new_cdp_session(page)
    await session.send("Performance.enable")
    return session


async def measure(
    serving: Serving, work: Work, options: argparse.Namespace
) -> list[Sequence[float]]:
    """Print the figures at each sample, and return them."""
    host, port = serving.url.removeprefix("http://").split(":")
    pid = serving.process.pid
    counts = [0]
    samples: list[Sequence[float]] = []
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(**(browser_options() or {}))
        context = await browser.new_context(viewport={"width": 1440, "height": 900})
        tasks = [asyncio.create_task(work.go_on())]
        tasks += [asyncio.create_task(follow(host, int(port), counts)) for _ in range(CLIENTS)]
        growing = await asyncio.to_thread(serving.get, "/api/v1/trials?text=growing-a")
        addresses = ("/trials?sort=-changed", f"/trials/{growing['trials'][0]['id']}")
        sessions = [
            await session_of(await context.new_page(), serving.url + address)
            for address in addresses
        ]
        began = time.monotonic()
        print("".join(f"{name:>9}" for name in NAMES), flush=True)
        while time.monotonic() - began < 60 * options.minutes:
            await asyncio.sleep(SAMPLE_S)
            sample = [time.monotonic() - began, memory_mb(pid, "VmRSS"), entries(pid, "task")]
            sample += [entries(pid, "fd"), work.new, counts[0] / CLIENTS]
            for session in sessions:
                sample += await page_figures(session)
            samples.append(sample)
            print("".join(f"{figure:9.4g}" for figure in sample), flush=True)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await browser.close()
    return samples


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=20)
    options = parser.parse_args()
    if browser_options() is None:
        sys.stderr.write("Chromium is not installed: on Debian, 'apt-get install chromium'.\n")
        return 1
    with TemporaryDirectory() as text:
        work = Work(Path(text))
        with Serving(Path(text), "--config", "fleet.yaml") as serving:
            samples = asyncio.run(measure(serving, work, options))
            serving.stop()
    quarter = max(len(samples) // 4, 1)
    second, last = samples[quarter : 2 * quarter] or samples, samples[-quarter:]
    for place, name in enumerate(NAMES[1:], start=1):
        before, after = (median(sample[place] for sample in part) for part in (second, last))
        print(f"{name:>9}: {before:.4g} in the second quarter, {after:.4g} in the last")
    return 0


if __name__ == "__main__":
    sys.exit(main())
