#!/usr/bin/env python3
"""Measures `rule-runner serve` under load: event streams, changes and requests at the same time.

    .venv/bin/python benchmarks/serve/load.py

An index of 1,000 trials by 20 rules is served in a process of its own. 200 clients follow the event
stream. Of 50 running trials, one gets a finding every 0.2 s, as evaluations report them; meanwhile
a client reads pages and the API, and a browser shows the table, if Playwright and Chromium are
there. It prints how long a finding takes from the index to the clients and to a painted cell of the
table, and what the service needs.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

import served
import urllib3
from serve_process import browser_options, memory_mb, processor_s

from builtin_rules import RULES
from rule_runner.index.database import WatchDatabase

RULES_OF_A_TRIAL = 20
PAUSE_S = 0.2  # between two findings
# Notes when the cell of each step is painted, in milliseconds since the epoch.
NOTE_PAINTED = """() => {
    window.painted = {};
    const note = () => requestAnimationFrame(() => setTimeout(() => {
        for (const link of document.querySelectorAll("#rows a[data-rule]")) {
            const step = /step ([\\d,]+)/.exec(link.ariaLabel)?.[1].replaceAll(",", "");
            if (step) window.painted[step] ??= Date.now();
        }
    }));
    new MutationObserver(note).observe(document.getElementById("results"), {
        childList: true, subtree: true,
    });
}"""


def fill(database: WatchDatabase, trials: int, running: int) -> list[str]:
    """Write an index, and return the names of the rules in it."""
    names = sorted(RULES)[:RULES_OF_A_TRIAL]
    for number in range(trials):
        state = "running" if number < running else "judged"
        records = [served.rule(name) for name in names]
        served.add(database, f"/data/runs/run-{number:05d}", records, state=state)
    return names


async def follow(host: str, port: int, sent: dict[int, float], latencies: list[float]) -> None:
    """Follow the event stream, and note when each finding arrives."""
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(f"GET /api/v1/events HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    is_finding = False
    try:
        while line := await reader.readline():
            if line.startswith(b"event: "):
                is_finding = line.strip() == b"event: finding"
            elif line.startswith(b"data: ") and is_finding:
                step = json.loads(line.removeprefix(b"data: "))["step"]
                latencies.append(time.monotonic() - sent[step])
    finally:
        writer.close()


def read(address: str) -> int:
    """Read an address of the service, and return the number of bytes."""
    return len(urllib3.request("GET", address).data)


async def read_pages(url: str, times: list[float]) -> None:
    """Read a page and the API every second."""
    while True:
        for path in ("/trials", "/api/v1/trials?limit=200", "/metrics"):
            began = time.monotonic()
            await asyncio.to_thread(read, url + path)
            times.append(time.monotonic() - began)
        await asyncio.sleep(1)


@asynccontextmanager
async def browser_page(url: str) -> AsyncIterator[Any]:
    """Show the table in a browser that notes when cells are painted; None without a browser."""
    options = browser_options() if find_spec("playwright") else None
    if options is None:
        yield None
        return
    async with import_module("playwright.async_api").async_playwright() as playwright:
        browser = await playwright.chromium.launch(**options)
        page = await browser.new_page(viewport={"width": 1440, "height": 900})
        await page.goto(f"{url}/trials")
        await page.wait_for_selector("#live[data-state=live]")
        await page.evaluate(NOTE_PAINTED)
        yield page
        await browser.close()


async def load(
    url: str, database: WatchDatabase, names: list[str], options: argparse.Namespace
) -> None:
    """Load the service, and print the latencies of findings and the times of reads."""
    host, port = url.removeprefix("http://").split(":")
    sent: dict[int, float] = {}
    latencies: list[float] = []
    times: list[float] = []
    tasks = [
        asyncio.create_task(follow(host, int(port), sent, latencies))
        for _ in range(options.clients)
    ]
    async with browser_page(url) as page:
        await asyncio.sleep(3)
        tasks.append(asyncio.create_task(read_pages(url, times)))
        await find(database, names, options, sent)
        await asyncio.sleep(5)
        painted = {} if page is None else await page.evaluate("window.painted")
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    print_latencies("streams", latencies, len(sent) * options.clients)
    offset = time.time() - time.monotonic()
    cells = [
        painted[str(step)] / 1000 - offset - at for step, at in sent.items() if str(step) in painted
    ]
    if page is not None:
        print_latencies("page", cells, len(sent))
    print(f"reads: median {1000 * median(times):.0f} ms, longest {1000 * max(times):.0f} ms")


async def find(
    database: WatchDatabase,
    names: list[str],
    options: argparse.Namespace,
    sent: dict[int, float],
) -> None:
    """Write one finding after the other into the index, and note when."""
    ends = time.monotonic() + options.seconds
    step = 1000
    while time.monotonic() < ends:
        step += 1
        records = [served.rule(name) for name in names]
        records[0] = served.rule(names[0], "IssuesFound", step=step)
        sent[step] = time.monotonic()
        database.set_rules(1 + step % options.running, records)
        await asyncio.sleep(PAUSE_S)


def print_latencies(where: str, latencies: Sequence[float], count: int) -> None:
    """Print how late findings were, and how many of them came."""
    print(
        f"{where}: median {median(latencies):.2f} s, 99 % {quantiles(latencies, n=100)[98]:.2f} s, "
        f"longest {max(latencies):.2f} s; {len(latencies):,} of {count:,} findings"
    )


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--running", type=int, default=50)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    with (
        TemporaryDirectory() as folder,
        WatchDatabase.empty(Path(folder) / "index.sqlite") as database,
    ):
        names = fill(database, options.trials, options.running)
        command = [sys.executable, "-m", "rule_runner", "serve", "--no-watch", "--port", "0"]
        process = subprocess.Popen(
            [*command, "--database", str(database.path)], stderr=subprocess.PIPE, text=True
        )
        try:
            assert process.stderr is not None
            line = next(line for line in process.stderr if "address=" in line)
            url = line.partition("address=")[2].strip().rstrip("/")
            before, idle = memory_mb(process.pid, "VmRSS"), processor_s(process.pid)
            asyncio.run(load(url, database, names, options))
            used = processor_s(process.pid) - idle
            print(
                f"memory: {before:.0f} MB before, {memory_mb(process.pid, 'VmHWM'):.0f} MB at most"
            )
            print(f"processor: {100 * used / (options.seconds + 8):.0f} % of one core")
        finally:
            process.terminate()
            process.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
