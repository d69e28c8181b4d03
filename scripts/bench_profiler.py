"""What walking a job's system metrics costs: for `scripts/bench profiler`.

A job of 8 nodes with 100 series each, sampled every 500 ms, is written; another process opens it as
a profiler trial and asks for its samples window by window, 60 s each, as rules do.
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
WALK = """
import resource, sys, time
from smdebug.trials import create_trial

trial = create_trial(sys.argv[1], profiler=True, output_dir=None)
windows = samples = 0
for start in range(trial.first_timestamp, trial.newest_timestamp + 1, 60_000_000):
    samples += len(trial.system_samples(start, start + 60_000_000))
    windows += 1
used = resource.getrusage(resource.RUSAGE_SELF)
print(windows, samples, time.process_time(), used.ru_maxrss // 1024)
"""


def run(hours: float = HOURS) -> None:
    """Print what it took."""
    with tempfile.TemporaryDirectory() as folder:
        nbytes = written(Path(folder), hours)
        began = time.monotonic()
        found = subprocess.run(  # noqa: S603 - this Python
            [sys.executable, "-c", WALK, folder], check=True, capture_output=True, text=True
        )
        took = time.monotonic() - began
    windows, samples, cpu_s, memory = found.stdout.split()
    click.echo(
        f"{hours:g} h, {NODES} nodes, {SERIES} series, every {EVERY_S:g} s: {nbytes / 1e6:.0f} MB, "
        f"{int(samples):,} samples in {windows} windows: {took:.1f} s, {float(cpu_s):.1f} s of "
        f"processor, {1e6 * float(cpu_s) / int(samples):.2f} us a sample, {memory} MB at most"
    )


def written(root: Path, hours: float) -> int:
    """Write the job; return how many bytes it has."""
    import profiler_writer  # noqa: PLC0415 - of the tests, where the path above leads

    values = np.round(np.random.default_rng(0).uniform(0, 100, int(hours * 3600 / EVERY_S)), 2)
    series = [
        profiler_writer.cpu(np.roll(values, at), f"cpu{at}", node=f"algo-{node}", every_s=EVERY_S)
        for node in range(1, NODES + 1)
        for at in range(SERIES)
    ]
    nbytes = 0
    for key, content in profiler_writer.each_file(series):
        profiler_writer.write(root, {key: content})
        nbytes += len(content)
    profiler_writer.write(root, profiler_writer.END)
    return nbytes


if __name__ == "__main__":
    run(float(sys.argv[1]) if len(sys.argv) > 1 else HOURS)
