"""What judging and merging a job's profiler data costs: for `benchmarks/speed profiler`.

A job of 8 nodes with 100 series each, sampled every 500 ms, is written; another process opens it as
a profiler trial and asks for its samples window by window, 60 s each, and one more evaluates all
profiler rules over it. Then a gigabyte of timelines in files of some 10 MB is written and merged.
Hours and gigabytes may be given: ``bench_profiler.py 10 1``.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click
import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "support"))

HOURS, NODES, SERIES, EVERY_S = 1.0, 8, 100, 0.5
GIGABYTES, EVENTS, GAP_US = 1.0, 80_000, 1_000  # of timelines; events of a file, and their distance
GPUS = 8  # of each node: two series each
WALK = """
import sys
from smdebug.trials import create_trial

trial = create_trial(sys.argv[1], profiler=True, output_dir=None)
for start in range(trial.first_timestamp, trial.newest_timestamp + 1, 60_000_000):
    trial.system_samples(start, start + 60_000_000)
"""
RULES = """
import sys, tempfile
from rule_runner.cli import main

with tempfile.TemporaryDirectory() as output:
    main(["evaluate", "--profiler-trial", sys.argv[1], "--rule", "all", "--keep-going",
          "--output", output + "/out", "--quiet"])
"""
MERGE = """
import sys
from smdebug.profiler.analysis.utils.merge_timelines import merge_timelines

merge_timelines(sys.argv[1], sys.argv[1] + "/merged.json")
"""
USED = """
import atexit, resource, sys

@atexit.register
def _used():
    found = resource.getrusage(resource.RUSAGE_SELF)
    print("used", found.ru_utime + found.ru_stime, found.ru_maxrss // 1024, file=sys.stderr)
"""


def run(hours: float = HOURS, gigabytes: float = GIGABYTES) -> None:
    """Print what it took."""
    with tempfile.TemporaryDirectory() as folder:
        nbytes, samples = written(Path(folder), hours)
        click.echo(
            f"{hours:g} h, {NODES} nodes, {SERIES} series, every {EVERY_S:g} s: "
            f"{nbytes / 1e6:.0f} MB, {samples:,} samples"
        )
        measure("reading", WALK, folder, samples, "sample")
        measure("all rules", RULES, folder, samples, "sample")
    with tempfile.TemporaryDirectory() as folder:
        nbytes, events = timelines(Path(folder), gigabytes * 1e9)
        click.echo(f"timelines: {nbytes / 1e6:.0f} MB, {events:,} events")
        measure("merging", MERGE, folder, events, "event")


def measure(what: str, program: str, folder: str, count: int, unit: str) -> None:
    """Print what a program takes over a folder that holds so many of a unit."""
    began = time.monotonic()
    found = subprocess.run(
        [sys.executable, "-c", USED + program, folder], check=True, capture_output=True, text=True
    )
    took = time.monotonic() - began
    cpu_s, memory = found.stderr.split("used")[-1].split()
    click.echo(
        f"{what}: {took:.1f} s, {float(cpu_s):.1f} s of processor, "
        f"{1e6 * float(cpu_s) / count:.2f} us for each {unit}, {memory} MB at most"
    )


def timelines(root: Path, nbytes: float) -> tuple[int, int]:
    """Write timelines of two processes; return how many bytes and events they have."""
    import timeline_writer

    done = files = 0
    while done < nbytes:
        start_us = timeline_writer.START_US + files * EVENTS * GAP_US
        events = [
            timeline_writer.step(files * EVENTS + at, at * GAP_US, GAP_US // 2)
            for at in range(EVENTS)
        ]
        node = f"{11 + files % 2}-algo-1"
        path = timeline_writer.write(root, events, node=node, start_us=start_us)
        done += path.stat().st_size
        files += 1
    return done, files * EVENTS


def written(root: Path, hours: float) -> tuple[int, int]:
    """Write the job; return how many bytes and samples it has."""
    import profiler_writer

    values = np.round(np.random.default_rng(0).uniform(0, 100, int(hours * 3600 / EVERY_S)), 2)
    kinds = [*[(profiler_writer.gpu, "gpu")] * GPUS, *[(profiler_writer.memory, "gpu")] * GPUS]
    kinds += [(profiler_writer.cpu, "cpu")] * (SERIES - len(kinds))
    series = [
        kind(
            np.roll(values, at),
            f"{name}{at % GPUS if name == 'gpu' else at}",
            node=f"algo-{node}",
            every_s=EVERY_S,
        )
        for node in range(1, NODES + 1)
        for at, (kind, name) in enumerate(kinds)
    ]
    nbytes = 0
    for key, content in profiler_writer.each_file(series):
        profiler_writer.write(root, {key: content})
        nbytes += len(content)
    profiler_writer.write(root, profiler_writer.END)
    return nbytes, len(values) * len(series)


if __name__ == "__main__":
    run(*map(float, sys.argv[1:]))
