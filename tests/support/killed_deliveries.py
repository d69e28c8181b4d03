"""Evaluations that are killed: forked from a process that is warm, so that hundreds take a minute.

Run as a program: ``killed_deliveries.py FOLDER KILLS SEED``; AWS is where the environment says.
Run 0 is left alone; the others are killed and started again until everything was told.
Prints how many runs there were, and how many kills.
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

from rule_runner.errors import OutputError
from rule_runner.replay import replay
from rule_runner.runner import Runner
from rule_runner.sinks import parsing
from smdebug.rules import Rule
from smdebug.storage import aws

PLACES = [1, 2, 2, 3, 4, 5, 6, 7, 98, 99]  # step at which each rule finds something
STEPS = 8
SINK = "eventbridge"
ENDED, DONE, LEFT, BROKEN = 3, 0, 4, 70
KILLS_OF_A_RUN = 12


class At(Rule):
    """Finds what it looks for at one step, or at none."""

    def __init__(self, base_trial: Any, at: str) -> None:
        super().__init__(base_trial)
        self.at = int(at)

    def invoke_at_step(self, step: int) -> bool:
        return float(self.base_trial.tensor("loss").value(step)[0]) == self.at


def evaluate(trial: Path, output: Path) -> int:
    """Evaluate ten rules, and wait for the sink."""
    jobs = [
        evaluating.rule_job(At, f"rule-{number}", parameters={"at": str(at)})
        for number, at in enumerate(PLACES)
    ]
    config = evaluating.configured(output, jobs, str(trial), training_job_name=output.name)
    try:
        found = Runner(config, sinks=parsing.parse_sinks([SINK])).run()
    except OutputError as err:
        return ENDED if "ended evaluation" in str(err) else BROKEN
    return LEFT if found.undelivered else DONE


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


def run(trial: Path, output: Path, kills: int, moment: Callable[[], float]) -> int:
    """Evaluate, and after an end that came too early replay, killed `kills` times; count them."""
    killed = 0
    work = lambda: evaluate(trial, output)  # noqa: E731 - one of two
    while True:
        code = forked(work, moment() if killed < kills else None)
        if code == -signal.SIGKILL:
            killed += 1
        elif code == ENDED:
            work = lambda: replay(output, [SINK], again=False, seconds=60)  # noqa: E731
        elif code == DONE:
            return killed
        else:
            msg = f"{output} ended with {code}."
            raise AssertionError(msg)


def timed(work: Callable[[], object]) -> float:
    """Return how many seconds some work takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main(folder: Path, kills: int, seed: int) -> dict[str, int]:
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
    longest = min(timed(lambda at=at: run(trial, folder / f"warm-{at}", 0, float)) for at in "abc")
    run(trial, folder / "run-0", 0, float)
    generator = random.Random(seed)  # noqa: S311 - where to kill
    runs, killed = 1, 0
    while killed < kills:
        output = folder / f"run-{runs}"
        left = min(KILLS_OF_A_RUN, kills - killed)
        killed += run(trial, output, left, lambda: generator.uniform(0, longest))
        runs += 1
    return {"runs": runs, "kills": killed, "ms": round(1000 * longest)}


if __name__ == "__main__":
    found = main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
    print(json.dumps(found))  # noqa: T201 - it is a program
