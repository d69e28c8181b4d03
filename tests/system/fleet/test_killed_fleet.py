"""Workers and drivers of a fleet are killed at random: nothing is lost, and nothing twice."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import evaluating
import fleets
import pytest
import uncounted

from rule_core.clock import SystemClock

RECORDS = ("findings.jsonl", "events.jsonl")


def children(process: int) -> list[int]:
    """Return the worker processes of a driver."""
    workers = []
    with suppress(OSError):
        for child in Path(f"/proc/{process}/task/{process}/children").read_text().split():
            with suppress(OSError):
                if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes():
                    workers.append(int(child))
    return workers


def records(output: Path) -> dict[str, list[object]]:
    """Return what was recorded of each rule job, without times and IDs, in order."""
    found = {}
    for name in RECORDS:
        for path in output.rglob(name):
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            identities = [line.get("id") for line in lines]
            assert len({*identities}) == len(identities), f"{path} has a record twice"
            found[path.relative_to(output).as_posix()] = [_essence(line) for line in lines]
    return found


def _essence(line: Mapping[str, object]) -> object:
    """Return the finding, or the statuses of an event."""
    if "detail" not in line:
        return {name: value for name, value in line.items() if name != "id"}
    statuses = json.dumps(line["detail"])
    return [word for word in ("InProgress", "IssuesFound", "NoIssuesFound") if word in statuses]


class Fleet:
    """A plan whose runs are killed."""

    def __init__(self, folder: Path, trials: int) -> None:
        self.output = folder / "out"
        runs = fleets.write_runs(folder / "runs", trials)
        rules = ("--rule", "VanishingGradient", "--rule", "ExplodingTensor", "--keep-going")
        arguments = (*rules, "--end-grace", "0", "--no-report")
        self.plan = fleets.plan(runs, self.output, folder / "plan.jsonl", *arguments)
        assert fleets.fleet("run", "--plan", self.plan).exit_code == 0
        self.verdicts, self.records = fleets.verdicts(self.output), records(self.output)
        shutil.rmtree(self.output)

    def start(self) -> "subprocess.Popen[bytes]":
        """Start a run in a process of its own."""
        command = [sys.executable, "-m", "rule_runner", "fleet", "run", "--plan", str(self.plan)]
        return subprocess.Popen(
            [*command, "--executor", "local:2"],
            env=uncounted.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def check(self) -> None:
        """Compare the results with those of a run that was not killed, and remove them."""
        assert fleets.verdicts(self.output) == self.verdicts
        assert records(self.output) == self.records
        shutil.rmtree(self.output)

    def kill(self, process: "subprocess.Popen[bytes]", draw: random.Random) -> Iterator[int]:
        """Kill workers, or the driver, at random moments; yield after each kill."""
        clock = SystemClock()
        while process.poll() is None:
            clock.sleep(draw.uniform(0.02, 0.6))
            workers = children(process.pid)
            if not workers:
                continue
            victim = draw.choice([*workers, process.pid])
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
                yield victim
            if victim == process.pid:
                process.wait()
                for worker in workers:  # they end with the driver
                    fleets.wait_until(lambda worker=worker: not Path(f"/proc/{worker}").exists())


def survive(folder: Path, *, trials: int, kills: int, seed: int) -> None:
    """Kill runs until there were enough kills; each run that ends is checked."""
    fleet, draw, done = Fleet(folder, trials), random.Random(seed), 0
    while done < kills:
        with fleet.start() as process:
            for _ in fleet.kill(process, draw):
                done += 1
                if done == kills:
                    break
            process.wait()
        if process.returncode == 0:
            fleet.check()
    assert fleets.fleet("run", "--plan", fleet.plan).exit_code == 0
    fleet.check()


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    evaluating.log_nothing()
    yield
    evaluating.log_nothing()


def test_kills_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    survive(tmp_path, trials=4, kills=2, seed=3)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_two_hundred_kills_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    survive(tmp_path, trials=20, kills=200, seed=2)
