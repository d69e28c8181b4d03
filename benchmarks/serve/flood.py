#!/usr/bin/env python3
"""Measures `rule-runner serve` while clients hold as many connections as they can.

    .venv/bin/python benchmarks/serve/flood.py

2,000 clients connect and send nothing, and 500 send one byte of a header each second; all connect
again when they are disconnected. Meanwhile /healthz is asked over a new connection each second, and
a new faulty trial appears every 10 s. It prints the longest answer, the longest time from a trial
to its finding in the API, and what the service needed. --files sets its limit of open files.
"""

import argparse
import asyncio
import resource
import sys
import time
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "support"))

from serve_process import entries, memory_mb, processor_s
from serving import Serving

from rule_core.clock import SystemClock

CLOCK = SystemClock()
LOG = "step,loss\n" + "".join(f"{step},nan\n" for step in range(50))
TRIAL_EACH_S = 10
HEADERS = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Padding: "
CONFIG = """
roots: [runs]
judge:
  - {trials: "*", rules: [ExplodingTensor]}
"""


class Flood:
    """Clients that hold connections.

    Attributes
    ----------
    closed
        How often a connection was closed by the service.
    """

    def __init__(self, serving: Serving) -> None:
        host, port = serving.url.removeprefix("http://").split(":")
        self._address = host, int(port)
        self.closed = 0

    async def hold(self, *, sends: bool) -> None:
        """Hold a connection, and open it again when it is closed."""
        while True:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection(*self._address)
                try:
                    if sends:
                        await self._trickle(reader, writer)
                    else:
                        await reader.read()
                finally:
                    self.closed += 1
                    writer.close()
            await asyncio.sleep(1)

    async def _trickle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send one byte a second until the connection is closed."""
        for byte in HEADERS + b"x" * 10_000:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(1)
            if reader.at_eof():
                return


def answer_s(serving: Serving) -> float:
    """Return how long /healthz takes over a new connection."""
    began = time.monotonic()
    serving.open("/healthz").close()
    return time.monotonic() - began


async def ask(serving: Serving, times: list[float]) -> None:
    """Ask for /healthz each second; in a thread, so that the clients' event loop adds no time."""
    while True:
        times.append(await asyncio.to_thread(answer_s, serving))
        await asyncio.sleep(1)


def wait_for_finding(serving: Serving, name: str) -> None:
    """Return when the API has the finding of a trial."""
    while not serving.get(f"/api/v1/trials?text={name}&outcome=IssuesFound")["trials"]:
        CLOCK.sleep(0.1)


async def judge(serving: Serving, runs: Path, times: list[float]) -> None:
    """Write a faulty trial now and then, and note when its finding is there."""
    number = 0
    while True:
        name = f"faulty-{number}"
        began = time.monotonic()
        (runs / name).mkdir()
        (runs / name / "log.csv").write_text(LOG)
        await asyncio.to_thread(wait_for_finding, serving, name)
        times.append(time.monotonic() - began)
        number += 1
        await asyncio.sleep(max(0.0, began + TRIAL_EACH_S - time.monotonic()))


async def measure(serving: Serving, runs: Path, options: argparse.Namespace) -> None:
    """Load the service, and print the figures."""
    flood = Flood(serving)
    pid = serving.process.pid
    answers: list[float] = []
    judged: list[float] = []
    holders = [flood.hold(sends=number >= options.idle) for number in range(options.clients)]
    tasks = [asyncio.create_task(task) for task in holders]
    await asyncio.sleep(5)  # until all have connected
    before = processor_s(pid)
    tasks.append(asyncio.create_task(ask(serving, answers)))
    tasks.append(asyncio.create_task(judge(serving, runs, judged)))
    files = 0
    for _ in range(options.seconds):
        await asyncio.sleep(1)
        files = max(files, entries(pid, "fd"))
    for task in tasks:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    for error in results:
        if not isinstance(error, asyncio.CancelledError):
            print(f"error: {error!r}")
    print(f"/healthz: {len(answers)} answers, the longest in {max(answers):.2f} s")
    print(f"trials: {len(judged)} judged, the longest in {max(judged, default=0):.2f} s")
    share = 100 * (processor_s(pid) - before) / options.seconds
    print(f"service: {share:.0f} % of a core, {memory_mb(pid, 'VmHWM'):.0f} MB, {files} files")
    print(f"closed connections: {flood.closed:,}; {len(serving.log)} lines of log")


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--idle", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=2500, help="with those that are idle")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--files", type=int, help="limit of open files of the service")
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with TemporaryDirectory() as text:
        folder = Path(text)
        runs = folder / "runs"
        runs.mkdir()
        (folder / "fleet.yaml").write_text(CONFIG)
        with Serving(folder, "--config", "fleet.yaml", limit_files=options.files) as serving:
            asyncio.run(measure(serving, runs, options))
            serving.stop()
            print("".join(serving.log[-5:]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
