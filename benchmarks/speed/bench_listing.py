"""What finding 1,000 runs in other formats below a folder takes, beside listing the folders alone.

Seconds of wall time, in turns; the files are in the cache of the operating system.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

RUNS = 1000
ROWS = 1000
ROUNDS = 7
LOGS = {
    "metrics.csv": ("step,loss\n", "{step},0.5\n"),
    "log.jsonl": ("", '{{"step": {step}, "loss": 0.5}}\n'),
    "events.out.tfevents.1700000000.host.1.0": ("", "{step}"),
    "train.log": ("", "step {step}: train loss 0.5, val loss 0.6\n"),
}


def run(runs: int = RUNS) -> None:
    """Print what finding all runs takes."""
    from rule_runner.loading.trial_search import find_trials

    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), runs)
        find = partial(find_trials, folder, limit=runs)
        if len(find().trials) != runs:
            message = "not all runs were found"
            raise RuntimeError(message)
        pairs = [(_seconds(find), _seconds(lambda: list(os.walk(folder)))) for _ in range(ROUNDS)]
        ratios = sorted(ours / floor for ours, floor in pairs)
        click.echo(f"finding {runs} runs, s: {statistics.median(ours for ours, _ in pairs):.2f}")
        click.echo(f"finding / os.walk: {ratios[0]:.1f} {statistics.median(ratios):.1f}", nl=False)
        click.echo(f" {ratios[-1]:.1f} (min, median, max of {ROUNDS} pairs)")


def write(folder: Path, runs: int) -> None:
    """Write runs of several formats in turns, each in a folder with a file of notes."""
    for number in range(runs):
        name, (head, row) = list(LOGS.items())[number % len(LOGS)]
        run_folder = folder / f"group{number // 100}" / f"run{number}"
        run_folder.mkdir(parents=True)
        text = head + "".join(row.format(step=step) for step in range(ROWS))
        (run_folder / name).write_text(text)
        (run_folder / "notes.md").write_text("# notes\n")


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began
