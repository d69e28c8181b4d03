"""Growing runs of every source under a controller that is killed, as are its evaluations."""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import fleet_kills
import fleet_sources
import fleets
import mlflow_runs
import pytest
import yaml

from rule_core.clock import SystemClock
from rule_runner.config.output_names import digest
from rule_runner.errors import OutputError
from rule_runner.index.leases import holder
from rule_runner.index.reader import IndexReader
from rule_runner.index.records import TrialRecord
from rule_runner.index.states import RESTARTS
from rule_runner.watch.growth import mark_of
from smdebug.core.locations import END_OF_JOB

ROOT: Final = Path(__file__).parents[3]
PROGRAM: Final = ROOT / "tests" / "support" / "watch_program.py"
STEPS: Final = range(1, 9)
METRICS: Final = {"trials": "*-_system_metrics", "rules": ["LowGPUUtilization"]}
JUDGE: Final = [
    METRICS,
    {"rules": ["LossNotDecreasing", "ExplodingTensor", "VanishingGradient"]},
]
JUDGE_LAST: Final = [
    METRICS,
    {
        "rules": ["LossNotDecreasing", "ExplodingTensor"],
        "parameters": ["LossNotDecreasing.num_steps=1", "LossNotDecreasing.literal=true"],
    },
]
# Their last values are infinite; of others, the last loss rises.
TENSORS: Final = (fleet_sources._trial, fleet_sources._trial_of_two_workers, fleet_sources._shards)
FAULTLESS: Final = {"_checkpoints", "_system_metrics"}  # they hold no loss


class GrowingRun:
    """A run of a source that is written bit by bit, as a training does.

    One that `dies` has a fault in its last row, and no end mark unless its format has one.
    """

    def __init__(self, folder: Path, number: int, *, dies: bool = False) -> None:
        self._source = fleet_sources.SOURCES[number % len(fleet_sources.SOURCES)]
        kind = self._source.args[0] if isinstance(self._source, partial) else self._source.__name__
        self.folder = folder / f"{number:02}-{kind.replace(' ', '-')}"
        growth = 2.0 if number % 3 else 0.5
        self._losses = {10 * step: growth**step for step in STEPS}
        self._dies = dies
        if dies:
            last = float("inf") if self._source in TENSORS else 9.0
            self._losses = {10 * step: 0.5**step for step in STEPS} | {80: last}
        has_rows = isinstance(self._source, partial) or self._source is fleet_sources._tensorboard
        self._stages = self._rows() if has_rows else self._files()

    def _rows(self) -> Sequence[Mapping[str, bytes]]:
        losses = [*self._losses.items()]
        return [self._source(dict(losses[:count])) for count in STEPS]

    def _files(self) -> Sequence[Mapping[str, bytes]]:
        """Return the files one after the other; those that say that the run has ended come last."""
        if self._source is fleet_sources._mlflow_folder:
            rows = fleet_sources._mlflow_rows(self._losses)
            running = [mlflow_runs.run_files(rows[:count], status=1) for count in STEPS]
            return [*running, self._source(self._losses)]
        files = sorted(self._source(self._losses).items(), key=lambda file: file[0] == END_OF_JOB)
        return [dict([file]) for file in files]

    @property
    def stages_left(self) -> int:
        return len(self._stages)

    def grow(self) -> None:
        """Write the next rows or files; with the last ones, that the run has ended."""
        stage, *self._stages = self._stages
        for name, data in stage.items():
            self._write(self.folder / name, data)
        if not (self._stages or self._dies):
            (self.folder / END_OF_JOB).touch()

    @staticmethod
    def _write(path: Path, data: bytes) -> None:
        """Append to a file, or replace it if it does not merely grow."""
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_bytes() if path.exists() else b""
        if before and data.startswith(before):
            with path.open("ab") as file:
                file.write(data[len(before) :])
            return
        draft = path.with_name(f".{path.name}.tmp")
        draft.write_bytes(data)
        draft.replace(path)


class Controller:
    """The controller over a folder of runs."""

    def __init__(self, folder: Path, output: str, *options: str, **more: Any) -> None:
        config = {
            "roots": ["runs"],
            "judge": JUDGE,
            "output": f"{output}/{{trial}}",
            "max_concurrent": 4,
            **more,
        }
        (folder / f"{output}.yaml").write_text(yaml.safe_dump(config))
        self._command = [sys.executable, str(PROGRAM), f"{output}.yaml", *options]
        self._folder = folder
        self.output = folder / output
        self.start()

    def start(self) -> None:
        with (self._folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                self._command,
                cwd=self._folder,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
                stdout=log,
                stderr=log,
            )

    def end(self) -> None:
        self.process.kill()
        self.process.wait()

    def kill(self) -> None:
        self.end()
        self.start()

    def trials(self) -> list[TrialRecord]:
        with suppress(OutputError), IndexReader(self.output / "watch.sqlite") as reader:
            return reader.trials()
        return []  # it is being made

    def kill_evaluation(self, draw: random.Random, runs: Sequence[GrowingRun]) -> None:
        """Kill an evaluation; those that have died too often must have a turn first."""
        victims: list[int] = []

        def are_there() -> bool:
            victims.extend(self.victims())
            for run in runs:  # as far as the controller can tell, all grow
                os.utime(run.folder)
            return bool(victims)

        fleets.wait_until(are_there, 600.0)
        with suppress(ProcessLookupError):
            os.kill(draw.choice(victims), signal.SIGKILL)

    def victims(self) -> list[int]:
        """Return the evaluations that may die once more without being given up."""
        leases = self.output / "watch.sqlite-evaluations"
        pids = (
            holder(leases / f"{digest(trial.output)}.lock")
            for trial in self.trials()
            if trial.restarts < RESTARTS
        )
        return [pid for pid in pids if pid is not None]


def essence(records: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Return records, without what differs by when the end of a trial was noticed."""
    return {path: [record for record, _ in groupby(lines)] for path, lines in records.items()}


@pytest.mark.parametrize(
    ("evaluations", "controllers", "count"),
    [pytest.param(100, 50, 30, marks=pytest.mark.nightly)],
)
def test_kills_over_growing_runs_of_every_source_change_nothing(
    tmp_path: Path,
    request: pytest.FixtureRequest,
    evaluations: int,
    controllers: int,
    count: int,
) -> None:
    runs = [GrowingRun(tmp_path / "runs", number) for number in range(count)]
    for run in runs:
        run.grow()
    controller = Controller(tmp_path, "killed")
    request.addfinalizer(controller.end)
    grow_under_kills(controller, runs, evaluations, controllers)
    log = tmp_path / "log"
    fleets.wait_until(lambda: _all_judged(controller.trials(), count), 600.0)
    controller.process.terminate()
    assert controller.process.wait(60.0) == 143, log.read_text()
    offline = Controller(tmp_path, "offline", "--once")
    assert offline.process.wait(600.0) == 0, log.read_text()
    assert fleets.verdicts(controller.output) == fleets.verdicts(offline.output)
    assert essence(fleet_kills.records(controller.output)) == essence(
        fleet_kills.records(offline.output)
    )
    outcomes = {json.dumps(rule["outcome"]) for rule in fleets.verdicts(offline.output).values()}
    assert {'"IssuesFound"', '"NoIssuesFound"'} <= outcomes


@pytest.mark.nightly
def test_no_run_is_stopped_before_the_fault_in_its_last_row(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    count = 30
    runs = [GrowingRun(tmp_path / "runs", number, dies=True) for number in range(count)]
    for run in runs:
        run.grow()
    config: dict[str, Any] = {"judge": JUDGE_LAST, "quiet_after": "20s"}
    controller = Controller(tmp_path, "killed", **config)
    request.addfinalizer(controller.end)
    grow_under_kills(controller, runs, evaluations=40, controllers=20)
    log = tmp_path / "log"
    fleets.wait_until(lambda: _has_judged_all(controller.trials(), count), 900.0)
    controller.process.terminate()
    assert controller.process.wait(60.0) == 143, log.read_text()
    offline = Controller(tmp_path, "offline", "--once", **config)
    assert offline.process.wait(600.0) == 0, log.read_text()
    assert _without_notes(controller.output) == _without_notes(offline.output)
    assert essence(findings(controller.output)) == essence(findings(offline.output))
    outcomes: dict[str | None, set[str]] = {}
    for trial in controller.trials():
        outcomes.setdefault(trial.outcome, set()).add(Path(trial.path).name[3:])
    assert FAULTLESS.isdisjoint(outcomes.pop("IssuesFound"))
    assert "Stopped" not in outcomes
    assert set().union(*outcomes.values()) == FAULTLESS


def findings(output: Path) -> dict[str, list[object]]:
    records = fleet_kills.records(output)
    return {path: lines for path, lines in records.items() if path.endswith("findings.jsonl")}


def _without_notes(output: Path) -> dict[str, dict[str, Any]]:
    """Return verdicts without how it was known that a run has ended."""
    return {
        path: {name: value for name, value in rule.items() if name not in {"notes", "trial_ended"}}
        for path, rule in fleets.verdicts(output).items()
    }


def _has_judged_all(trials: Sequence[TrialRecord], count: int) -> bool:
    """Return whether all is judged, also what has come since the last look."""
    return _all_judged(trials, count) and all(
        trial.final or mark_of(trial.path) == trial.mark for trial in trials
    )


def grow_under_kills(
    controller: Controller, runs: Sequence[GrowingRun], evaluations: int, controllers: int
) -> None:
    """Let runs grow to their ends while so many evaluations and controllers are killed."""
    draw, clock = random.Random(len(runs)), SystemClock()
    kills = ["evaluation"] * evaluations + ["controller"] * controllers
    draw.shuffle(kills)
    stages = [run for run in runs for _ in range(run.stages_left - 1)]
    draw.shuffle(stages)
    for number, kill in enumerate(kills):
        for run in stages[number :: len(kills)]:  # none ends as long as it may be killed
            run.grow()
        clock.sleep(draw.uniform(0.0, 0.5))
        if kill == "controller":
            controller.kill()
            continue
        controller.kill_evaluation(draw, runs)
    for run in runs:
        while run.stages_left:
            run.grow()


def _all_judged(trials: Sequence[TrialRecord], count: int) -> bool:
    return len(trials) >= count and {trial.state for trial in trials} == {"judged"}
