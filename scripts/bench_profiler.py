"""What judging a job's system metrics costs: for `scripts/bench profiler`.

A job of 8 nodes with 100 series each, sampled every 500 ms, is written; another process opens it as
a profiler trial and asks for its samples window by window, 60 s each, and one more evaluates all
profiler rules over it.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click
import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "support"))

HOURS, NODES, SERIES, EVERY_S = 1.0, 8, 100, 0.5
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
USED = """
import atexit, resource, sys

@atexit.register
def _used():
    found = resource.getrusage(resource.RUSAGE_SELF)
    print("used", found.ru_utime + found.ru_stime, found.ru_maxrss // 1024, file=sys.stderr)
"""


def run(hours: float = HOURS) -> None:
    """Print what it took."""
    with tempfile.TemporaryDirectory() as folder:
        nbytes, samples = written(Path(folder), hours)
        click.echo(
            f"{hours:g} h, {NODES} nodes, {SERIES} series, every {EVERY_S:g} s: "
            f"{nbytes / 1e6:.0f} MB, {samples:,} samples"
        )
        for what, program in (("reading", WALK), ("all rules", RULES)):
            began = time.monotonic()
            found = subprocess.run(  # noqa: S603 - this Python
                [sys.executable, "-c", USED + program, folder],
                check=True,
                capture_output=True,
                text=True,
            )
            took = time.monotonic() - began
            cpu_s, memory = found.stderr.split("used")[-1].split()
            click.echo(
                f"{what}: {took:.1f} s, {float(cpu_s):.1f} s of processor, "
                f"{1e6 * float(cpu_s) / samples:.2f} us a sample, {memory} MB at most"
            )


def written(root: Path, hours: float) -> tuple[int, int]:
    """Write the job; return how many bytes and samples it has."""
    import profiler_writer  # noqa: PLC0415 - of the tests, where the path above leads

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
    run(float(sys.argv[1]) if len(sys.argv) > 1 else HOURS)
