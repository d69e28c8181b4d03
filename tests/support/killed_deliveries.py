"""Evaluations that are killed: forked from a process that is warm, so that hundreds take a minute.

Run as a program: ``killed_deliveries.py FOLDER KILLS SEED PLACE``; AWS is where the environment
says. PLACE is the folder or the address that holds the outputs. Run 0 is left alone; the others are
killed at any moment, also after the verdict, and the same command is started again until it ends:
with an address on this machine, or on another one. Prints how many runs there were, how many kills,
and how many of them came after the verdict.
"""

import gc
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import evaluating
import numpy as np
import rawtrial

from rule_core.storage import aws
from rule_runner.commands.evaluate import _s3_output, evaluate_to
from rule_runner.config.request import EvaluationRequest
from rule_runner.engine.stop_requests import Signals
from rule_runner.notify.sinks import spec
from rule_runner.report.progress import LogObserver
from smdebug.rules import Rule

PLACES = [1, 2, 2, 3, 4, 5, 6, 7, 98, 99]  # step at which each rule finds something
STEPS = 8
SINK = "eventbridge"
VERDICTS = ["IssuesFound"] * 8 + ["NoIssuesFound"] * 2
DONE, LEFT, WRONG, UNREPORTED, BROKEN = 0, 4, 5, 6, 70
KILLS_OF_A_RUN = 12
MACHINES = 3


class At(Rule):
    """Finds what it looks for at one step, or at none."""

    def __init__(self, base_trial: Any, at: str) -> None:
        super().__init__(base_trial)
        self.at = int(at)

    def invoke_at_step(self, step: int) -> bool:
        return float(self.base_trial.tensor("loss").value(step)[0]) == self.at


def evaluate(trial: Path, name: str, place: str, after_verdict: Path) -> int:
    """Evaluate ten rules as the command does, to the report and the upload; check the verdicts."""
    s3_output = _s3_output(EvaluationRequest(output=f"{place}/{name}"))
    output = s3_output.folder if s3_output else Path(place, name)
    jobs = [
        evaluating.rule_job(At, f"rule-{number}", parameters={"at": str(at)})
        for number, at in enumerate(PLACES)
    ]
    config = evaluating.configured(
        output, jobs, str(trial), training_job_name=name, sink_deadline=60.0
    )
    watching = Watching(after_verdict)
    with Signals() as signals:
        found = evaluate_to(s3_output, config, spec.parse_sinks([SINK]), watching, signals)
    if found.undelivered_events or found.output_error:
        return LEFT
    if found.report is None:
        return UNREPORTED
    return DONE if [one.status for one in found.result.rules] == VERDICTS else WRONG


class Watching(LogObserver):
    """Leaves a file when every rule has its verdict, so that kills after that can be counted."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.file = file

    def decided(self, states: object) -> None:
        del states
        self.file.touch()


def forked(work: Callable[[], int], limit_s: float | None) -> int:
    """Do `work` in a process of its own, and return its exit code, or minus the signal.

    It is killed after `limit_s`.
    """
    process = os.fork()
    if not process:
        try:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
            os._exit(work())
        finally:
            os._exit(BROKEN)
    if limit_s is None or signal.sigtimedwait([signal.SIGCHLD], limit_s) is None:
        if limit_s is not None:
            os.kill(process, signal.SIGKILL)
        code = os.waitpid(process, 0)[1]
        signal.sigtimedwait([signal.SIGCHLD], 0)
    else:
        code = os.waitpid(process, 0)[1]
    return os.waitstatus_to_exitcode(code)


class Runs:
    """Starts the same commands until they end; kills them at random moments.

    Attributes
    ----------
    kills, late
        How many there were, and how many of them after the verdict.
    """

    def __init__(self, trial: Path, folder: Path, place: str, seed: int) -> None:
        self._trial, self._folder, self._place = trial, folder, place
        self._random = random.Random(seed)
        self._after_verdict = folder / "after-verdict"
        self.kills = self.late = 0

    def run(self, name: str, kills: int = 0, longest: float = 0.0) -> None:
        """Evaluate on any machine, killed so many times within `longest` seconds, to the end."""
        left = kills
        while True:
            self._after_verdict.unlink(missing_ok=True)
            state = str(self._folder / f"machine-{self._random.randrange(MACHINES)}")
            limit_s = self._random.uniform(0, longest) if left else None
            code = forked(lambda state=state: self._start(name, state), limit_s)
            if code == -signal.SIGKILL:
                left, self.kills = left - 1, self.kills + 1
                self.late += self._after_verdict.exists()
            elif code != DONE:
                msg = f"{name} ended with {code}."
                raise AssertionError(msg)
            elif not left:
                return

    def _start(self, name: str, state: str) -> int:
        os.environ["XDG_STATE_HOME"] = state
        return evaluate(self._trial, name, self._place, self._after_verdict)


def timed(work: Callable[[], object]) -> float:
    """Return how many seconds some work takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main(folder: Path, kills: int, seed: int, place: str) -> dict[str, int]:
    """Run until there were so many kills."""
    evaluating.log_nothing()
    sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115 - what a replay says
    steps = {step: {"loss": np.array([step], np.float32)} for step in range(STEPS)}
    trial = rawtrial.write(folder / "trial", evaluating.trial(steps, {"losses": ["loss"]}))
    aws.client = cache(aws.client)
    aws.client("events", region=None)
    aws.errors()
    os.fsync = lambda _: None  # what was written outlives a process that is killed
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    gc.freeze()
    all_runs = Runs(trial, folder, place, seed)
    longest = min(timed(lambda at=at: all_runs.run(f"warm-{at}")) for at in "abc")
    all_runs.run("run-0")
    runs = 1
    while all_runs.kills < kills:
        all_runs.run(f"run-{runs}", min(KILLS_OF_A_RUN, kills - all_runs.kills), longest)
        runs += 1
    late, ms = all_runs.late, round(1000 * longest)
    return {"runs": runs, "kills": all_runs.kills, "late": late, "ms": ms}


if __name__ == "__main__":
    summary = main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
    print(json.dumps(summary))
