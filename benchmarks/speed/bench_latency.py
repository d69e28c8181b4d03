"""How soon a verdict on a running local trial comes: for docs/performance.md.

This process writes steps with pauses; another one evaluates. Both read one monotonic clock. Per
step: from the return of the call that renamed the index file to the end of the step's judgement.
Last step, at which all rules find issues: until the event that says IssuesFound of the first, and
of all of them, is in `events.jsonl`, on the disk for good.
"""

import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click
import numpy as np

from smdebug.core.writer import TrialWriter

STEPS = 60
ROUNDS = 5
PAUSE_S = (0.02, 0.08)
TENSORS = 3
PATIENCE_S = 60.0


def run(before: int = 0) -> None:
    """Print what passes until a verdict; `before` steps are there when the evaluation begins."""
    click.echo("rule jobs  what, ms        min  median    95 %     max")
    for jobs in (1, 12):
        rounds = [measure(jobs, before) for _ in range(ROUNDS)]
        rows = {
            "step": [at for one in rounds for at in one.steps],
            "first event": [one.first_event for one in rounds],
            "last event": [one.last_event for one in rounds],
        }
        for name, seconds in rows.items():
            p95 = statistics.quantiles(seconds, n=20, method="inclusive")[-1]
            shown = (min(seconds), statistics.median(seconds), p95, max(seconds))
            click.echo(f"{jobs:9}  {name:11}" + "".join(f"{one * 1e3:8.1f}" for one in shown))


class Latency(NamedTuple):
    """Seconds from a step's being there.

    Attributes
    ----------
    steps
        Until each step was judged by all rules.
    first_event, last_event
        Until events said of the first rule, and of all, that issues were found at the last step.
    """

    steps: list[float]
    first_event: float
    last_event: float


def measure(jobs: int, before: int) -> Latency:
    """Follow a trial of `before` steps and `STEPS` more with so many rule jobs."""
    with tempfile.TemporaryDirectory() as folder:
        trial, output = Path(folder, "trial"), Path(folder, "out")
        writer = TrialWriter(trial, collections={"all": ".*"})
        for step in range(before):
            writer.step(step, values(1.0))
        command = [sys.executable, __file__, str(trial), str(output), str(jobs)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as evaluator:
            assert evaluator.stdout is not None
            written = [*_write(writer, before, evaluator.stdout.readline)]
            first, last = (_told(output, wanted) - written[-1] for wanted in (1, jobs))
            writer.close()
            judged = json.loads(evaluator.stdout.readline())[-len(written) :]
    steps = [at - since for at, since in zip(judged, written, strict=True)]
    return Latency(steps, first, last)


def values(first: float) -> dict[str, np.ndarray]:
    """Return the tensors of a step."""
    return {f"layer{number}/weight": np.full(16, first) for number in range(TENSORS)}


def _write(writer: TrialWriter, before: int, ready: object) -> Iterator[float]:
    """Write steps, the last one with a NaN; yield when each index file had its name."""
    assert callable(ready)
    ready()
    for step in range(before, before + STEPS):
        time.sleep(random.uniform(*PAUSE_S))  # noqa: S311, TID251 - a pace, no secret
        writer.step(step, values(np.nan if step == before + STEPS - 1 else 1.0))
        yield time.monotonic()


def _told(output: Path, rules: int) -> float:
    """Return when an event says that so many rules have found issues."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        for path in output.rglob("events.jsonl"):
            if any(line.count('"IssuesFound"') >= rules for line in path.open()):
                return time.monotonic()
        time.sleep(0.0005)  # noqa: TID251 - it is a benchmark that waits for another process
    msg = f"No event in {str(output)!r} tells of issues within {PATIENCE_S:.0f} s."
    raise RuntimeError(msg)


def evaluate(trial: str, output: str, jobs: int) -> None:
    """Evaluate, say when all that was there is judged, and print when each step was judged."""
    from rule_core.sources.address import address_of
    from rule_runner.config.model import EvaluationConfig, RuleJobConfig
    from rule_runner.config.request import EvaluationRequest
    from rule_runner.config.resolve import options_of
    from rule_runner.engine.observer import Observer
    from rule_runner.engine.runner import Runner
    from rule_runner.loading.loader import load_builtin
    from rule_runner.logs import configure
    from rule_runner.results.state import RuleJobState
    from rule_runner.steps.watcher import TrialWatcher

    class Noting(Observer):
        def __init__(self) -> None:
            self.at: list[float] = []

        def progress(self, judged: int, known: int) -> None:
            del judged, known
            self.at.append(time.monotonic())

        def decided(self, states: Sequence[RuleJobState]) -> None:
            del states

    class Waiter(TrialWatcher):
        told = False

        def wait(self, seconds: float) -> None:
            if not self.told:
                self.told = True
                click.echo("ready")
            super().wait(seconds)

    configure(-1)
    loaded = load_builtin("ExplodingTensor")
    rules = tuple(RuleJobConfig(f"rule{number}", loaded) for number in range(jobs))
    noting = Noting()
    config = EvaluationConfig(
        rules, address_of(trial), Path(output), **options_of(EvaluationRequest())
    )
    Runner(config, observer=noting, waiter=Waiter([Path(trial)])).run()
    click.echo(json.dumps(noting.at))


if __name__ == "__main__":
    if sys.argv[2:]:  # the other process
        evaluate(sys.argv[1], sys.argv[2], int(sys.argv[3]))
    else:
        run(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
