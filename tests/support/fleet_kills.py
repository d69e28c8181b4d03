"""Kills what judges a plan, at random, and compares the results with those of a quiet run."""

import json
import random
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Final, Protocol

import fleets
import processes
from ray_cluster import RayCluster
from slurm_cluster import TEMPLATE, SlurmCluster

from rule_core.clock import SystemClock
from rule_runner.errors import EXIT_TEMPORARY

Kill = Callable[[], bool]  # returns whether there was something to kill

PATIENCE_S: Final = 300.0
STALLED_S: Final = 20.0
RECORDS: Final = ("findings.jsonl", "events.jsonl")


class Run(AbstractContextManager["Run"], Protocol):
    """A run of a plan that can be killed."""

    def is_running(self) -> bool:
        """Return whether anything of it runs or waits."""

    def victims(self) -> Mapping[str, Sequence[Kill]]:
        """Return what can be killed, by kind; nothing while no trial is judged."""

    def wait(self) -> bool:
        """Wait for its end; return whether it says that every trial was judged."""


class KilledPlan:
    """A plan whose runs are killed, and what a quiet run of it leaves."""

    def __init__(self, folder: Path, trials: int) -> None:
        self.output = folder / "out"
        runs = fleets.write_runs(folder / "runs", trials)
        rules = ("--rule", "VanishingGradient", "--rule", "ExplodingTensor", "--keep-going")
        arguments = (*rules, "--end-grace", "0", "--no-report")
        self.path = fleets.plan(runs, self.output, folder / "plan.jsonl", *arguments)
        self.finish()
        self.verdicts, self.records = fleets.verdicts(self.output), records(self.output)
        shutil.rmtree(self.output)

    def finish(self) -> None:
        """Judge what is left, in this process."""
        result = fleets.fleet("run", "--plan", self.path)
        assert result.exit_code == 0, result.output

    def check(self) -> None:
        """Compare the results with those of the quiet run, and remove them."""
        assert fleets.verdicts(self.output) == self.verdicts
        assert records(self.output) == self.records
        shutil.rmtree(self.output)


def survive(
    plan: KilledPlan, start: Callable[[Path], Run], *, kills: int, seed: int
) -> Counter[str]:
    """Kill runs, each kind of victim in turn, and check each run that ends by itself.

    Returns
    -------
    The number of kills by kind.
    """
    draw, clock = random.Random(seed), SystemClock()
    done: Counter[str] = Counter()
    kinds: list[str] = []
    while done.total() < kills:
        with start(plan.path) as run:
            while done.total() < kills and run.is_running():
                clock.sleep(draw.uniform(0.02, 0.6))
                victims = run.victims()
                kinds = kinds or draw.sample(sorted(victims), len(victims))
                if victims and draw.choice(victims[kinds[-1]])():
                    done[kinds.pop()] += 1
            is_complete = run.wait()
        if is_complete:
            plan.check()
    plan.finish()
    plan.check()
    return done


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


class DriverRun(Run):
    """A run on an executor, whose driver and workers can be killed."""

    def __init__(self, plan: Path, executor: str, environment: Mapping[str, str]) -> None:
        command = [sys.executable, "-m", "rule_runner", "fleet", "run", "--plan", str(plan)]
        self._log = plan.with_suffix(".log")
        with self._log.open("ab") as log:
            self._driver = subprocess.Popen(
                [*command, "--executor", executor], env=environment, stdout=log, stderr=log
            )

    def workers(self) -> list[int]:
        """Return the worker processes of local executors."""
        return [
            process
            for process in processes.children(self._driver.pid)
            if b"spawn_main" in processes.command(process)
        ]

    def is_running(self) -> bool:
        """Return whether the driver runs."""
        return self._driver.poll() is None

    def victims(self) -> Mapping[str, Sequence[Kill]]:
        """Return the driver, and the workers."""
        workers = self.workers()
        kills = [partial(processes.kill, worker) for worker in workers]
        return {"driver": [self._kill_driver], "worker": kills} if workers else {}

    def _kill_driver(self) -> bool:
        workers = self.workers()
        was_running = self.is_running()
        self._driver.kill()
        self._driver.wait()
        fleets.wait_until(lambda: not any(map(processes.command, workers)))  # end with the driver
        return was_running

    def wait(self) -> bool:
        """Wait for the driver, which succeeds or says that a retry may help, unless killed."""
        code = self._driver.wait(PATIENCE_S)
        assert code in {0, EXIT_TEMPORARY, -signal.SIGKILL}, self._log.read_text()
        return code == 0

    def __exit__(self, *error: object) -> None:
        self._driver.kill()
        self._driver.wait()


class RayRun(DriverRun):
    """A run on a cluster of Ray, of which nodes can be killed too."""

    def __init__(self, plan: Path, cluster: RayCluster) -> None:
        self._cluster = cluster
        super().__init__(plan, "ray", cluster.environment)

    def workers(self) -> list[int]:
        """Return the worker processes that judge."""
        return self._cluster.workers()

    def victims(self) -> Mapping[str, Sequence[Kill]]:
        """Return the driver, the workers and the nodes."""
        victims = super().victims()
        return {**victims, "node": self._cluster.nodes()} if victims else {}


class ArrayRun(Run):
    """A run as an array of Slurm, whose tasks, node and controller can be killed."""

    def __init__(self, plan: Path, cluster: SlurmCluster) -> None:
        self._cluster = cluster
        self._job = cluster.sbatch(plan.parent, TEMPLATE, plan).stdout.strip()
        assert self._job
        self._clock = SystemClock()
        self._last_seen = self._clock.monotonic()

    def is_running(self) -> bool:
        """Return whether a task runs or waits; do as an administrator if nothing goes on.

        The controller may take tasks for running that ended before it was killed.
        """
        if self._cluster.tasks():
            self._last_seen = self._clock.monotonic()
            return True
        if self._clock.monotonic() - self._last_seen > STALLED_S:
            self._cluster.query("scancel", self._job)
        query = ("squeue", "--noheader", f"--jobs={self._job}", "--format=%T")
        return not self._cluster.is_in_service() or bool(self._cluster.query(*query))

    def victims(self) -> Mapping[str, Sequence[Kill]]:
        """Return the tasks, the node and the controller."""
        if not (tasks := self._cluster.tasks()):
            return {}
        return {
            "task": [partial(processes.kill, task) for task in tasks],
            "node": [self._cluster.replace_node],
            "controller": [self._cluster.restart_controller],
        }

    def wait(self) -> bool:
        """Wait for all tasks; return whether each succeeded."""
        fleets.wait_until(lambda: not self.is_running(), PATIENCE_S)
        lines = self._cluster.query("scontrol", "--oneliner", "show", "job", self._job)
        return bool(lines) and all("JobState=COMPLETED" in line for line in lines)

    def __exit__(self, *error: object) -> None:
        self._cluster.query("scancel", self._job)
